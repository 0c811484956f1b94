"""Slow, obvious versions of weighted consensus clustering, on dense n x n matrices.

Labels are an (n, m) array of integers, one column for each run of a base clusterer; a
negative label says that the run did not see the sample. The weights of the runs are
not negative and sum to 1. The ideas are those of Zhang et al. (ICML 2025).
"""

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.optimize import minimize
from scipy.spatial.distance import squareform

# Matrices of pairs


def present(labels):
    """Whether a run saw both samples, (m, n, n)."""
    seen = np.asarray(labels).T >= 0
    return np.array([np.outer(s, s) for s in seen]).astype(float)


def membership_matrices(labels):
    """A_t: whether run t saw both samples and gave them the same label, (m, n, n)."""
    columns = np.asarray(labels).T
    same = np.array([np.equal.outer(column, column) for column in columns])
    return same * present(labels)


def average(matrices, weights):
    """Weighted sum of matrices, (m, n, n) to (n, n)."""
    return sum(w * matrix for w, matrix in zip(weights, matrices))


def ratio(numerator, denominator):
    """Quotient of two arrays, 0 where the denominator is 0."""
    quotient = np.zeros(np.shape(numerator))
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient


def uniform(labels):
    """Equal weights of the runs, (m,)."""
    m = np.shape(labels)[1]
    return np.full(m, 1 / m)


def coassociation(labels, weights=None):
    """Weight of the runs that put two samples together, among those that saw both."""
    w = uniform(labels) if weights is None else weights
    together = average(membership_matrices(labels), w)
    return ratio(together, average(present(labels), w))


def agreement_counts(labels):
    """Number of runs that put two samples together, and of those that saw both."""
    return membership_matrices(labels).sum(axis=0), present(labels).sum(axis=0)


def is_confident(labels, alpha):
    """Whether a share alpha of the runs that saw two samples put them together."""
    agree, seen = agreement_counts(labels)
    return (seen > 0) & (agree >= alpha * seen - 1e-9)


def target(labels, alpha, kind="soft"):
    """E: the co-association of the confident pairs (1 if "hard"), 0 elsewhere."""
    confident = is_confident(labels, alpha)
    if kind == "hard":
        return confident.astype(float)
    return np.where(confident, coassociation(labels), 0.0)


# Weights of the runs


def gram(labels):
    """G_st = <A_s, A_t>, (m, m)."""
    A = membership_matrices(labels)
    return np.array([[np.sum(a * b) for b in A] for a in A])


def target_sums(labels, alpha, kind="soft"):
    """c_t = <A_t, E>, (m,)."""
    E = target(labels, alpha, kind)
    return np.array([np.sum(a * E) for a in membership_matrices(labels)])


def biases(labels, alpha, kind="soft"):
    """b_t = ||A_t - E||^2 - ||E||^2 = g_t - 2 c_t, (m,)."""
    return np.diag(gram(labels)) - 2 * target_sums(labels, alpha, kind)


def spread(labels, weights):
    """D(w) = sum_t w_t ||A_t - A_w||^2."""
    A = membership_matrices(labels)
    mean = average(A, weights)
    return sum(w * np.sum((a - mean) ** 2) for w, a in zip(weights, A))


def objective(weights, labels, alpha, diversity=1.0, kind="soft"):
    """J(w) = lam w'Gw + w'(b - lam g); at lam = 1 it is ||A_w - E||^2 - ||E||^2."""
    G, w = gram(labels), np.asarray(weights, dtype=float)
    linear = biases(labels, alpha, kind) - diversity * np.diag(G)
    return diversity * w @ G @ w + w @ linear


def least(values, scale):
    """Equal weights of the least values, and 0 for the others."""
    ties = values <= values.min() + 1e-9 * scale
    return ties / ties.sum()


def qp_weights(labels, alpha, diversity=1.0, kind="soft"):
    """Weights of least objective, by a general solver from several starts.

    They need not be unique, unlike their objective.
    """
    G, b = gram(labels), biases(labels, alpha, kind)
    m, scale = len(b), G.max()
    if diversity == 0:
        return least(b, scale)
    Q, q = diversity * G / scale, (b - diversity * np.diag(G)) / scale

    def value(w):
        return w @ Q @ w + w @ q

    rng = np.random.default_rng(0)
    starts = [uniform(labels), *np.eye(m), *rng.dirichlet(np.ones(m), size=3)]
    found = []
    for start in starts:
        result = minimize(
            value,
            start,
            jac=lambda w: 2 * Q @ w + q,
            method="SLSQP",
            bounds=[(0, 1)] * m,
            constraints={
                "type": "eq",
                "fun": lambda w: w.sum() - 1,
                "jac": lambda w: np.ones(m),
            },
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        w = np.clip(result.x, 0, None)
        found.append(w / w.sum())
    return min(found, key=value)


def two_weights(labels, alpha, diversity=1.0, kind="soft"):
    """Weights of two runs of least objective, in closed form."""
    G, b = gram(labels), biases(labels, alpha, kind)
    if diversity == 0:
        return least(b, G.max())
    differ = G[0, 0] + G[1, 1] - 2 * G[0, 1]
    if differ == 0:
        return np.array([0.5, 0.5])
    q = b - diversity * np.diag(G)
    slope = q[1] - q[0] + 2 * diversity * (G[1, 1] - G[0, 1])
    first = np.clip(slope / (2 * diversity * differ), 0, 1)
    return np.array([first, 1 - first])


def top_eigenvalues(A, k):
    """The k largest eigenvalues of a symmetric matrix, largest first."""
    return np.linalg.eigvalsh(A)[::-1][:k]


def minmax_objective(weights, labels, alpha, diversity, n_clusters, kind="soft"):
    """J with ||A_w||^2 replaced by its lower bound S(w)^2 / k.

    S(w) is the sum of the k largest eigenvalues of A_w = sum_t w_t A_t.
    """
    w, g = np.asarray(weights, dtype=float), np.diag(gram(labels))
    total = top_eigenvalues(average(membership_matrices(labels), w), n_clusters).sum()
    linear = w @ (biases(labels, alpha, kind) - diversity * g)
    return linear + diversity * total**2 / n_clusters


# Weights of the clusters


def clusters_of(column):
    """Members of each cluster of one run, in the order of the labels."""
    return [np.flatnonzero(column == label) for label in np.unique(column[column >= 0])]


def entropy(p):
    """Natural entropy of a distribution."""
    p = np.asarray(p, dtype=float)
    p = p[p > 0]
    return -np.sum(p * np.log(p))


def entropy_factors(labels, theta=0.4):
    """exp(-H_c / (theta m)) for each cluster of each run, a list of m arrays.

    H_c sums over the runs the entropy, in bits, of the labels that the run gave to
    those members of cluster c that it saw.
    """
    labels = np.asarray(labels)
    m = labels.shape[1]
    factors = []
    for column in labels.T:
        run = []
        for members in clusters_of(column):
            H = 0.0
            for other in labels.T:
                sizes = np.array([len(c) for c in clusters_of(other[members])])
                H += entropy(sizes / sizes.sum()) / np.log(2)
            run.append(np.exp(-H / (theta * m)))
        factors.append(np.array(run))
    return factors


def weighted_coassociation(labels, weights, factors=None):
    """Sum over the runs and their clusters c of w_t f_c, for pairs inside c."""
    labels = np.asarray(labels)
    A = np.zeros((len(labels), len(labels)))
    for t, column in enumerate(labels.T):
        for c, members in enumerate(clusters_of(column)):
            factor = 1.0 if factors is None else factors[t][c]
            A[np.ix_(members, members)] += weights[t] * factor
    return A


# Consensus


def normalised(labels, weights, factors=None):
    """D^-1/2 A_w D^-1/2, where D holds the row sums of A_w."""
    A = weighted_coassociation(labels, weights, factors)
    scale = np.sqrt(ratio(np.ones(len(A)), A.sum(axis=1)))
    return scale[:, None] * A * scale


def spectral_eigenvalues(labels, weights, factors, k):
    """The k largest eigenvalues of the normalised matrix, largest first."""
    return top_eigenvalues(normalised(labels, weights, factors), k)


def spectral_embedding(labels, weights, factors, k):
    """Rows of length 1 of the leading k eigenvectors of the normalised matrix, (n, k).

    Eigenvectors are unique only up to a rotation among equal eigenvalues.
    """
    _, vectors = np.linalg.eigh(normalised(labels, weights, factors))
    U = vectors[:, ::-1][:, :k]
    return ratio(U, np.linalg.norm(U, axis=1, keepdims=True))


def average_linkage_labels(labels, weights, n_clusters, factors=None):
    """Clusters after all but the last k - 1 merges, numbered by their first sample.

    The distance is 1 less the weighted co-association, divided by the weight of the
    runs that saw both samples.
    """
    together = weighted_coassociation(labels, weights, factors)
    distance = 1 - ratio(together, average(present(labels), weights))
    np.fill_diagonal(distance, 0)
    merges = linkage(squareform(distance, checks=False), method="average")

    n = len(distance)
    groups = {i: [i] for i in range(n)}
    for step, (a, b) in enumerate(merges[: n - n_clusters, :2].astype(int)):
        groups[n + step] = groups.pop(a) + groups.pop(b)
    found = np.empty(n, dtype=int)
    for q, members in enumerate(sorted(groups.values(), key=min)):
        found[members] = q
    return found


def affinity(labels, weights, clusters, factors=None):
    """Mean weighted co-association of a sample with a consensus cluster, (n, k).

    The clusters are numbered from 0; an empty one has affinity 0.
    """
    A = weighted_coassociation(labels, weights, factors)
    n_clusters = np.max(clusters) + 1
    return np.array(
        [
            A[:, clusters == q].mean(axis=1) if np.any(clusters == q) else 0 * A[0]
            for q in range(n_clusters)
        ]
    ).T


def stability(affinity):
    """1 less the normalised entropy of each row of affinities, (n,).

    It is 1 for a single cluster, and 0 for a row of zeros among several.
    """
    n, k = np.shape(affinity)
    if k == 1:
        return np.ones(n)
    return np.array(
        [1 - entropy(row / sum(row)) / np.log(k) if any(row) else 0 for row in affinity]
    )


# The threshold


def nearest_agreement(labels):
    """Largest co-association of each sample with another one, (n,)."""
    CA = coassociation(labels)
    np.fill_diagonal(CA, -1)
    return CA.max(axis=1)


def share_touched(labels, alpha):
    """Share of the samples that form a confident pair with another one."""
    confident = is_confident(labels, alpha)
    np.fill_diagonal(confident, False)
    return confident.any(axis=1).mean()


def auto_alpha(labels, grid):
    """Largest threshold that leaves at least 90 % of the samples a confident pair.

    The least of the grid if there is none.
    """
    fit = [alpha for alpha in grid if share_touched(labels, alpha) >= 0.9 - 1e-9]
    return max(fit, default=min(grid))
