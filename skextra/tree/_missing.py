"""Predictions from rows of which not all is known.

A row is known as closed intervals, ``lower <= x <= upper``; NaN is unknown.
"""

import numpy as np

from skextra.tree._flat import LEAF
from skextra.tree._numba import reach
from skextra.utils import row_blocks


def path_share(tree):
    """Share of each node's training weight that went left, 1/2 if there was none."""
    left, right = tree.weight[tree.left], tree.weight[tree.right]
    total = left + right
    return np.divide(left, total, out=np.full(len(total), 0.5), where=total > 0)


def marginal_share(tree, masses):
    """Share of the mass in each node's interval of its feature that goes left.

    Along a path the shares of one feature multiply to the mass of the leaf's interval.
    `masses` are the weights of the cells of each used feature.
    """
    share = np.full(len(tree.feature), 0.5)
    start, stop = tree.node_cells
    for k, mass in enumerate(masses):
        below = np.concatenate([[0.0], np.cumsum(mass)])
        nodes = np.flatnonzero(tree.column == k)
        first, end = below[start[nodes, k]], below[stop[nodes, k]]
        here = end > first
        left = below[tree.cut[nodes] + 1] - first
        share[nodes[here]] = left[here] / (end - first)[here]
    return share


def mixture(tree, share, lower, upper, groups):
    """Mean of the leaf values that a row can reach, weighted by the shares."""
    proba = np.zeros((len(lower), tree.value.shape[1]))
    _reach(tree, share, lower, upper, groups, proba=proba)
    return proba


def possible_labels(tree, n_labels, lower, upper, groups):
    """Mark the labels of the leaves that a row can reach."""
    possible = np.zeros((len(lower), n_labels), bool)
    _reach(tree, path_share(tree), lower, upper, groups, possible=possible)
    return possible


def most_likely(tree, share, lower, upper, groups):
    """Label of each row: the one that it can reach, or the first of most weight."""
    proba = np.zeros((len(lower), tree.value.shape[1]))
    possible = np.zeros(proba.shape, bool)
    _reach(tree, share, lower, upper, groups, proba=proba, possible=possible)
    determined = possible.sum(axis=1) == 1
    return np.where(determined, possible.argmax(axis=1), proba.argmax(axis=1))


def value_bounds(tree, lower, upper, groups):
    """Least and largest value of the leaves that a row can reach."""
    low = np.full((len(lower), tree.value.shape[1]), np.inf)
    high = -low
    _reach(tree, path_share(tree), lower, upper, groups, low=low, high=high)
    return np.stack([low, high], axis=-1)


def _reach(tree, share, lower, upper, groups, **outputs):
    nothing = np.empty((0, tree.value.shape[1]))
    outputs = [
        outputs.get("proba", nothing),
        outputs.get("possible", nothing.astype(bool)),
        outputs.get("low", nothing),
        outputs.get("high", nothing),
    ]
    if not groups:
        reach(tree.splits, share, tree.value, tree.label, lower, upper, *outputs)
        return
    for rows in row_blocks(len(lower), 16 * len(tree.feature)) if len(lower) else ():
        block = [output[rows] for output in outputs]
        _reach_groups(tree, share, lower[rows], upper[rows], groups, *block)


def _reach_groups(tree, share, lower, upper, groups, proba, possible, low, high):
    """Do as the kernel does, and leave out leaves that no one-hot row can reach."""
    weight = np.zeros((len(lower), len(tree.feature)))
    reached = np.zeros(weight.shape, bool)
    reached[:, tree.leaves] = meets(tree, lower, upper, groups)
    inner = np.flatnonzero(tree.feature != LEAF)
    for node in inner[::-1]:
        reached[:, node] = reached[:, tree.left[node]] | reached[:, tree.right[node]]
    weight[:, 0] = 1
    for node in inner:
        left, right = tree.left[node], tree.right[node]
        to_left = np.where(reached[:, right], share[node], 1) * reached[:, left]
        weight[:, left] = weight[:, node] * to_left
        weight[:, right] = weight[:, node] * (1 - to_left)
    for leaf in tree.leaves:
        here = reached[:, leaf]
        if len(proba):
            proba += weight[:, [leaf]] * tree.value[leaf]
        if len(possible):
            possible[here, tree.label[leaf]] = True
        if len(low):
            low[here] = np.minimum(low[here], tree.value[leaf])
            high[here] = np.maximum(high[here], tree.value[leaf])


def meets(tree, lower, upper, groups):
    """Whether each row has a completion in each leaf with one 1 in each group."""
    low, high = tree.boxes
    found = np.ones((len(lower), len(low)), bool)
    for k, j in enumerate(tree.used):
        found &= ~(lower[:, [j]] > high[:, k]) & ~(upper[:, [j]] <= low[:, k])
    for group in groups:
        n_ones, all_zero = np.zeros(found.shape, int), np.ones(found.shape, bool)
        for j in group:
            is_one, is_zero = lower[:, [j]] >= 1, upper[:, [j]] <= 0
            if j in tree.used:
                k = np.searchsorted(tree.used, j)
                is_one, is_zero = is_one | (low[:, k] >= 0), is_zero | (high[:, k] <= 0)
            n_ones += is_one
            all_zero &= is_zero
        found &= (n_ones <= 1) & ~all_zero
    return found
