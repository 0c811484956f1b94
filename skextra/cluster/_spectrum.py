"""Eigenvectors of weighted co-associations, from products of the size of K clusters.

With Z the indicators of samples (rows) in all K clusters (columns), ``Z'Z`` has the
same non-zero eigenvalues as ``ZZ'``, and no n x n matrix is needed.
"""

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, lobpcg

from skextra.cluster._numba import add_contingency, gather, scatter

DENSE = 4000  # clusters in all up to which the K x K matrix is formed


def products(runs, sample_weights):
    """Return ``Z' diag(sample_weights) Z``, as a matrix or as an operator."""
    K = runs.n_clusters
    if K > DENSE:

        def times(vectors):
            vectors = np.reshape(vectors, (K, -1)).astype(float)
            inner = sample_weights[:, None] * gather(runs.codes, vectors)
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
    K = matrix.shape[0]
    if isinstance(matrix, np.ndarray) or k >= K:
        scaled = scale[:, None] * (matrix @ np.eye(K)) * scale
        first = max(K - k, 0)
        values, vectors = eigh(scaled, subset_by_index=[first, K - 1])
        if values.size < K - first:  # LAPACK loses some of many that are nearly equal
            values, vectors = eigh(scaled, driver="evd")
            values, vectors = values[first:], vectors[:, first:]
    else:

        def times(vectors):
            vectors = np.reshape(vectors, (K, -1))
            return scale[:, None] * (matrix @ (scale[:, None] * vectors))

        operator = LinearOperator((K, K), matvec=times, matmat=times, dtype=float)
        start = random_state.uniform(0.5, 1, size=(K, k))
        try:
            values, vectors = eigsh(operator, k, v0=start[:, 0])
        except ArpackError:  # of lower rank than k + 1
            values, vectors = lobpcg(operator, start, largest=True)
            values, vectors = values[::-1], vectors[:, ::-1]
    vectors = vectors[:, ::-1]
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.maximum(values[::-1], 0), vectors * signs


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
        H = (root[:, None] * vectors[:, there]) / np.sqrt(values[there])
        inside = np.sum((matrix @ H) ** 2, axis=1)
        return values[there].sum(), np.add.reduceat(inside, runs.starts[:-1])

    return overlap
