"""Eigenvectors of weighted co-associations, from products of the size of K clusters.

With Z the indicators of samples (rows) in all K clusters (columns), ``Z'Z`` has the
same non-zero eigenvalues as ``ZZ'``, and no n x n matrix is needed.
"""

import warnings

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, lobpcg
from sklearn.utils import gen_batches

from skextra.cluster._numba import add_contingency, gather, scatter

DENSE = 4000  # clusters in all up to which the K x K matrix is formed


def products(runs, sample_weights):
    """Return ``Z' diag(sample_weights) Z``, as a matrix or as an operator."""
    K = runs.n_clusters
    if K > DENSE:

        def times(columns):
            inner = sample_weights[:, None] * gather(runs.codes, columns)
            return scatter(runs.codes, inner, K)

        return LinearOperator((K, K), matvec=times, matmat=times, dtype=float)
    matrix = np.zeros((K, K))
    for t, codes in enumerate(runs.codes):
        for other in runs.codes[: t + 1]:
            add_contingency(codes, other, sample_weights, matrix)
    return np.tril(matrix) + np.tril(matrix, -1).T


def leading(matrix, scale, k, random_state):
    """Return the `k` largest eigenpairs of ``diag(scale) matrix diag(scale)``.

    Largest first; the sign makes each vector's largest entry positive.
    """
    values, vectors = _eigenpairs(matrix, scale, k, random_state)
    vectors = vectors[:, ::-1]
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.maximum(values[::-1], 0), vectors * signs


def _eigenpairs(matrix, scale, k, random_state):
    """Return the `k` largest eigenpairs, or all if there are no more.

    Separated groups of samples give equal eigenvalues, so the methods must find each
    of them: Lanczos' method does not, and LAPACK's fastest one can lose some.
    """
    K = scale.size
    k = min(k, K)
    if isinstance(matrix, np.ndarray):
        scaled = scale[:, None] * matrix * scale
        values, vectors = eigh(scaled, subset_by_index=[K - k, K - 1])
        if values.size == k:
            return values, vectors
    else:

        def times(vectors):
            return scale[:, None] * (matrix @ (scale[:, None] * vectors))

        if 5 * k < K:  # or lobpcg multiplies by a K x K matrix at once
            start = random_state.uniform(-1, 1, size=(K, k))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of accuracy: see below
                values, vectors = lobpcg(
                    times, start, largest=True, tol=1e-8, maxiter=500
                )
            residual = np.abs(times(vectors) - vectors * values).max()
            if residual <= 1e-6 * values.max():
                return values[::-1], vectors[:, ::-1]
        scaled = np.empty((K, K))
        for columns in gen_batches(K, 32):
            scaled[:, columns] = times(np.eye(K, 32, -columns.start))[
                :, : K - columns.start
            ]
    values, vectors = eigh(scaled, driver="evd")  # slow, but it finds all
    return values[K - k :], vectors[:, K - k :]


def leading_overlap(runs, k):
    """Return the function w -> S(w), tr(H'A_t H) for each clustering t.

    S(w) is the sum of the k largest eigenvalues of ``A_w = Z diag(w) Z'``, H holds
    their eigenvectors. An eigenvector v of ``W^1/2 Z'Z W^1/2`` with eigenvalue s^2
    gives ``H = Z W^1/2 v / s``.
    """
    matrix = products(runs, runs.counts)
    rng = np.random.RandomState(0)

    def overlap(weights):
        root = np.sqrt(np.repeat(weights, np.diff(runs.starts)))
        values, vectors = leading(matrix, root, k, rng)
        there = values > 1e-12 * values[0]
        of_clusters = (root[:, None] * vectors[:, there]) / np.sqrt(values[there])
        inside = np.sum((matrix @ of_clusters) ** 2, axis=1)  # |Z_c'H|^2
        return values[there].sum(), np.add.reduceat(inside, runs.starts[:-1])

    return overlap
