"""Eigenvectors of weighted co-associations, from products of the size of K clusters.

With Z the indicators of samples (rows) in all K clusters (columns), ``Z'Z`` has the
same non-zero eigenvalues as ``ZZ'``, and no n x n matrix is needed.
"""

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from skextra.cluster._numba import add_contingency, gather, scatter

DENSE = 4000  # clusters in all up to which the K x K matrix is formed
_IN_FULL = 500  # up to which it is decomposed in full


def products(runs, sample_weights):
    """Return ``Z' diag(sample_weights) Z``, as a matrix or as an operator."""
    K = runs.n_clusters
    if K > DENSE:

        def times(vectors):
            columns = np.reshape(vectors, (K, -1))
            inner = sample_weights[:, None] * gather(runs.codes, columns)
            return scatter(runs.codes, inner, K).reshape(vectors.shape)

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
    """Return the `k` largest eigenpairs, or all if there are no more."""
    K = scale.size
    if _IN_FULL < K and k < K:
        operator = LinearOperator(
            (K, K), matvec=lambda v: scale * (matrix @ (scale * v.ravel())), dtype=float
        )
        start = random_state.uniform(0.5, 1, size=K)
        try:
            return eigsh(operator, k, v0=start)
        except ArpackError:  # of lower rank than it needs
            pass
    dense = matrix if isinstance(matrix, np.ndarray) else matrix @ np.eye(K)
    # The other drivers can lose some of many eigenvalues that are nearly equal.
    values, vectors = eigh(scale[:, None] * dense * scale, driver="evd")
    return values[-k:], vectors[:, -k:]


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
