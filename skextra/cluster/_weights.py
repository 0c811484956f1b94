"""Weights of the clusterings: bias, diversity and the quadratic programme.

The notation is that of :mod:`._pairs`, and ``b = g - 2 c`` is the bias.
"""

import warnings

import numpy as np
from scipy.linalg import cholesky, eigvalsh, solve, solve_triangular
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch, check_random_state

from skextra.cluster._pairs import TOUCHED, gram, overlap, target_table, threshold
from skextra.cluster._spectrum import leading_overlap


class SparseTargetWarning(UserWarning):
    """Few samples are in a pair that enough clusterings agree on.

    The weights then rest on few pairs, and can be worse than equal ones.
    """


SMALLEST = 1e-12  # weights below are 0
_RIDGE = 1e-10  # on the diagonal of the scaled programme, which makes it definite
_GRADIENT_STEPS = 100
_MINMAX_STEPS = 100
_SUPPORT = 1e-6  # weights below count as zero


def quadratic_weights(G, b, diversity, max_iter, tol):
    """Minimise ``J(w) = diversity w'Gw + w'(b - diversity g)`` over the simplex.

    Accelerated projected gradient with restarts finds which clusterings have weight;
    an active-set method ends it. Clusterings that are the same share their weight.

    Returns
    -------
    weights : array of shape (n_clusterings,)
    n_iter : int
    """
    if diversity == 0:
        best = b <= b.min() + _RIDGE * G.max()
        return best / best.sum(), 0
    first, copy_of = copies(G)
    n_copies = np.bincount(copy_of)
    G, b = G[np.ix_(first, first)], b[first]
    scale = G.max() * max(1.0, diversity)
    Q = diversity / scale * (G + _RIDGE * G.max() * np.eye(len(G)))
    f = (b - diversity * np.diag(G)) / scale
    lipschitz = 2 * eigvalsh(Q, subset_by_index=[len(Q) - 1] * 2)[0]
    w = v = np.full(len(Q), 1 / len(Q))
    momentum = 1.0
    for n_iter in range(1, max_iter + 1):
        new = _onto_simplex(v - (2 * Q @ v + f) / lipschitz)
        if (v - new) @ (new - w) > 0:  # the momentum points uphill
            momentum = 1.0
        before, momentum = momentum, (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        v = new + (before - 1) / momentum * (new - w)
        w = new
        if n_iter == _GRADIENT_STEPS or _gap(2 * Q @ w + f, w) <= tol:
            break
    w, n_iter = _active_set(Q, f, w, n_iter, max_iter, tol)
    return (w / n_copies)[copy_of], n_iter


def _onto_simplex(v):
    """Return the point of the simplex nearest to `v`."""
    falling = np.sort(v)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, v.size + 1)
    return np.maximum(v - excess[falling > excess][-1], 0)


def _active_set(Q, f, w, n_iter, max_iter, tol):
    """Solve the equations on the support of `w`, and change it until all is optimal."""
    w = np.where(w > _SUPPORT, w, 0)
    w /= w.sum()
    support = w > 0
    while True:
        new = np.zeros_like(w)
        new[support] = _level(Q[np.ix_(support, support)], f[support])
        if new.min() >= 0:
            w = new / new.sum()
            gradient = 2 * Q @ w + f
            if gradient[support].max() - gradient.min() <= tol:
                return w, n_iter
            support[np.argmin(gradient)] = True
        else:  # go as far as no weight is negative
            falls = new < 0
            steps = w[falls] / (w[falls] - new[falls])
            w += steps.min() * (new - w)
            w[np.flatnonzero(falls)[steps <= steps.min()]] = 0
            support &= w > 0
        if n_iter == max_iter:
            return w, n_iter
        n_iter += 1


def _level(Q, f):
    """Minimise ``w'Qw + f'w`` with weights of sum 1 and any sign."""
    ones = np.ones(f.size)
    solved = solve(Q, np.column_stack([f, ones]), assume_a="pos")
    level = (2 + solved[:, 0].sum()) / solved[:, 1].sum()
    return (level * solved[:, 1] - solved[:, 0]) / 2


def _gap(gradient, w):
    return float(gradient[w > _SUPPORT].max() - gradient.min())


def kkt_gap(G, b, w, diversity):
    """Return how far the weights are from the optimality conditions.

    By how much the gradient differs among the clusterings of positive weight, or
    exceeds that of another one, over the largest entry of G or of ``diversity G``.
    """
    gradient = 2 * diversity * G @ w + b - diversity * np.diag(G)
    return _gap(gradient / (G.max() * max(1.0, diversity)), w)


def copies(G):
    """Number the distinct clusterings: those at distance 0 are the same partition."""
    g = np.diag(G)
    same = g[:, None] + g - 2 * G == 0
    return np.unique(same.argmax(axis=1), return_index=True, return_inverse=True)[1:]


def aligned_weights(runs, G, c):
    """Minimise ``||sum_t w_t A_t - E||^2`` off the diagonal over weights w >= 0.

    The sum of the weights is free, and is scaled to 1 afterwards: on the simplex a
    clustering can have weight just because it thins the others out. This is kernel
    alignment (Cortes, Mohri and Rostamizadeh, 2012) with the target as the label kernel.
    """
    seen = (runs.codes >= 0).astype(float)
    both = (seen * runs.counts) @ seen.T  # pairs of a sample with itself
    first, copy_of = copies(G)
    n_copies = np.bincount(copy_of)
    c, G = (c - np.diag(both))[first], (G - both)[np.ix_(first, first)]
    if G.max() == 0 or c.max() <= 0:  # no pair in any cluster, or in the target
        return np.full(len(copy_of), 1 / len(copy_of))
    root = cholesky(G / G.max() + _RIDGE * np.eye(len(G)))
    w, _ = nnls(root, solve_triangular(root, c / c.max(), trans="T"))
    return (w / w.sum() / n_copies)[copy_of]


def minmax_weights(runs, G, b, diversity, n_clusters, max_iter):
    """Minimise ``w'(b - diversity g) + diversity / k S(w)^2`` over the simplex.

    S(w) is the sum of the k largest eigenvalues of the weighted co-association, which
    bounds its norm from below (Ky Fan). Exponentiated subgradient steps, then a line
    search along the projected gradient.

    Returns
    -------
    weights : array of shape (n_clusterings,)
    n_iter : int
    """
    f = b - diversity * np.diag(G)
    overlaps = leading_overlap(runs, n_clusters)

    def objective(w):
        value, slopes = overlaps(w)
        gradient = f + 2 * diversity / n_clusters * value * slopes
        return w @ f + diversity / n_clusters * value**2, gradient

    w = np.full(len(b), 1 / len(b))
    best = (np.inf, w, f)
    for n_iter in range(1, max_iter + 1):
        value, gradient = objective(w)
        if value < best[0]:
            best = (value, w, gradient)
        above = gradient - gradient.min()
        if above.max() <= 1e-12 * G.max():
            return w, n_iter
        w = w * np.exp(-2 / (above.max() * np.sqrt(n_iter)) * above)
        w /= w.sum()
    value, w, gradient = best
    step = 1 / np.ptp(gradient)
    for _ in range(20):
        new = _onto_simplex(w - step * gradient)
        new_value, new_gradient = objective(new)
        if new_value < value:
            value, w, gradient = new_value, new, new_gradient
        else:
            step /= 2
    return w, n_iter


def bias_diversity(G, bias, weights, diversity):
    """Return the Bunch of bias, diversity and objective of weights."""
    spread = float(weights @ np.diag(G) - weights @ G @ weights)
    objective = float(weights @ bias - diversity * spread)
    return Bunch(bias=bias, diversity=spread, objective=objective)


def biases(runs, G, alpha, target, exact_below, n_pairs, n_jobs, random_state):
    """Return b; clusterings that are the same get the same, which drawn pairs do not."""
    g, copy_of = np.diag(G), copies(G)[1]
    table = target_table(len(g), alpha, target)
    c = overlap(runs, table, g, exact_below, n_pairs, n_jobs, random_state)
    return (np.bincount(copy_of, g - 2 * c) / np.bincount(copy_of))[copy_of]


def clustering_weights(
    runs,
    *,
    weighting,
    alpha,
    diversity,
    target,
    n_clusters,
    exact_below,
    n_pairs,
    max_iter,
    tol,
    n_jobs,
    random_state,
):
    """Return the weights and a Bunch of what is known of them."""
    rng = check_random_state(random_state)
    alpha, in_touch = threshold(runs, alpha, exact_below, n_jobs, rng)
    G = gram(runs, n_jobs)
    b = biases(runs, G, alpha, target, exact_below, n_pairs, n_jobs, rng)
    weights, n_iter, gap = np.full(len(b), 1 / len(b)), 0, np.nan
    if weighting == "bias-diversity":
        weights, n_iter = quadratic_weights(G, b, diversity, max_iter, tol)
        gap = kkt_gap(G, b, weights, diversity)
    elif weighting == "minmax":
        steps = min(max_iter, _MINMAX_STEPS)
        weights, n_iter = minmax_weights(runs, G, b, diversity, n_clusters, steps)
    elif weighting == "alignment":
        weights = aligned_weights(runs, G, (np.diag(G) - b) / 2)
    weights = np.where(weights < SMALLEST, 0.0, weights)
    return weights, Bunch(
        **bias_diversity(G, b, weights, diversity),
        n_iter=n_iter,
        kkt_gap=gap,
        alpha=alpha,
        in_touch=in_touch,
    )


def warn_of(info, tol, stacklevel):
    """Warn if the weights are not optimal, or rest on too little."""
    if info.in_touch < TOUCHED:
        warnings.warn(
            f"Only {info.in_touch:.0%} of the samples are in a pair of which a share of "
            f"alpha={info.alpha:g} of the clusterings agrees, so the weights rest on "
            'few pairs. Try a smaller alpha, or weighting="uniform".',
            SparseTargetWarning,
            stacklevel=stacklevel + 1,
        )
    if info.kkt_gap > tol:
        warnings.warn(
            f"The weights are not optimal after {info.n_iter} iterations: the gap in the "
            f"optimality conditions is {info.kkt_gap:.1e}, above {tol=:g}. More than "
            "max_iter iterations, or a larger tol, may help.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
