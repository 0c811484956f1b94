"""Permutation importance over all pairs of rows, without sampling."""

import numpy as np

from skextra.tree._numba import swap_losses


def permutation_importance(tree, cells, y, weight):
    """Accuracy that each feature's value loses when it comes from any row instead.

    ``MR_j = acc(f) - sum_ik w_i w_k [f(x_i with x_kj) = y_i] / (sum_i w_i)^2``. The
    sums of whole weights are exact. `cells` are those of the tree's used features.
    """
    start, stop = tree.node_cells
    mass = np.zeros((len(tree.feature), len(tree.used)))
    for k, cell_mass in enumerate(cell_masses(tree, cells, weight)):
        below = np.concatenate([[0.0], np.cumsum(cell_mass)])
        mass[:, k] = below[stop[:, k]] - below[start[:, k]]
    splits = tree.column, tree.cut, tree.left, tree.right
    losses = swap_losses(splits, tree.label, mass, cells, y, weight)
    importance = np.zeros(tree.n_features)
    importance[tree.used] = losses / weight.sum() ** 2
    return importance


def cell_masses(tree, cells, weight):
    """Weight in each cell of each used feature, of the rows whose cell is known."""
    return [
        np.bincount(column[known], weight[known], len(thresholds) + 1)
        for column, thresholds in zip(cells.T, tree.grid, strict=True)
        for known in [column >= 0]
    ]


def positions(classes, y):
    """Return the position of each label among the classes, -1 if it is not there."""
    y = np.asarray(y)
    if (y.dtype.kind in "OSTU") != (classes.dtype.kind in "OSTU"):
        raise ValueError(
            f"y must have labels such as those of the tree, {classes.tolist()}; got "
            f"{y[:3].tolist()}."
        )
    order = np.argsort(classes)
    at = order[np.searchsorted(classes, y, sorter=order).clip(max=len(classes) - 1)]
    return np.where(classes[at] == y, at, -1)
