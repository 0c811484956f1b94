"""Distances between leaves, neighbour joining and least-squares lengths."""

import numpy as np
from scipy.linalg import cholesky, solve, solve_triangular
from scipy.optimize import nnls

from skextra.phylo._numba import join_neighbors
from skextra.phylo._trees import Tree

MAX_DISTANCE = 2.0  # beyond it, and without a correlation, a distance is not known


def distances(states, weights, max_distance=MAX_DISTANCE):
    """Return the CFN distances of leaves from their states, NaN where none is shared."""
    zero, one = ((states == sign).astype(float) for sign in (1, -1))
    differ = (zero.T * weights) @ one
    differ += differ.T
    seen = zero + one
    shared = (seen.T * weights) @ seen
    with np.errstate(divide="ignore", invalid="ignore"):
        found = -np.log(np.maximum(1 - 2 * differ / shared, 0)) / 2  # NaN where 0 / 0
    found = np.minimum(found, max_distance) + 0.0
    np.fill_diagonal(found, 0.0)
    return found


def joined(distances):
    """Join neighbours (Saitou and Nei, 1987): an unrooted tree, by parents and lengths.

    Negative lengths become 0.
    """
    n = len(distances)
    if n == 2:
        return np.array([1, -1]), np.array([distances[0, 1], np.nan])
    parents, lengths = np.full(2 * n - 2, -1), np.full(2 * n - 2, np.nan)
    join_neighbors(np.array(distances, dtype=np.float64), parents, lengths)
    return parents, np.maximum(lengths, 0.0)


def below(tree):
    """Return whether each leaf is below each edge, of shape (n_leaves, n_edges)."""
    n_nodes = len(tree.parents)
    reached = np.zeros((n_nodes, tree.n_leaves))
    reached[: tree.n_leaves] = np.eye(tree.n_leaves)
    for node in tree.preorder[:0:-1]:
        reached[tree.parents[node]] += reached[node]
    return reached[tree.edges].T


def least_squares(tree, distances):
    """Return the lengths >= 0 whose sums along paths are nearest to the distances.

    The normal equations come from counts of the leaves on either side of edges, without
    the n_leaves^2 / 2 rows of paths. Distances that are not known are taken for
    the mean of those that are.
    """
    sides = below(tree)
    n = tree.n_leaves
    both = sides.T @ sides
    one = np.diag(both)
    alone = one[:, None] - both  # below the first edge, not below the second
    gram = both * (n - one[:, None] - one + both) + alone * alone.T
    filled = np.where(np.isnan(distances), np.nanmean(distances), distances)
    target = (sides * (filled @ (1 - sides))).sum(axis=0)
    return nonnegative(gram, target)


def nonnegative(gram, target):
    """Minimise x gram x / 2 - target x over x >= 0.

    All variables of a wrong sign change sides at once (block pivoting, Portugal et
    al., 1994), which is done in a few rounds as a rule; else SciPy changes one at a
    time.
    """
    free = np.ones(len(target), dtype=bool)
    for _ in range(30):
        x = np.zeros(len(target))
        x[free] = solve(gram[np.ix_(free, free)], target[free], assume_a="pos")
        wrong = np.where(free, x, gram @ x - target) < -1e-12 * np.abs(target).max()
        if not wrong.any():
            return np.maximum(x, 0)
        free ^= wrong
    root = cholesky(gram)
    return nnls(root, solve_triangular(root, target, trans="T"))[0]


def neighbor_tree(distances, names):
    """Return the neighbour-joining tree of leaves with these names."""
    parents, lengths = joined(distances)
    names = tuple(names) + ("",) * (len(parents) - len(names))
    return Tree(parents, len(distances), lengths, names)
