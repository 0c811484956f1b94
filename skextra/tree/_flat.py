"""A tree as flat arrays, the form that all kernels read."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skextra.tree._numba import node_boxes

LEAF = -1


@dataclass(frozen=True)
class FlatTree:
    """A binary tree; node 0 is the root, and children come after their parent.

    ``x[feature] <= threshold`` goes left. `label` is the index of a leaf's class, or of
    its value among the distinct ones of a regression tree.
    """

    feature: np.ndarray  # (n_nodes,) int32, LEAF at leaves
    threshold: np.ndarray  # (n_nodes,) float64, 0 at leaves
    left: np.ndarray  # (n_nodes,) int32, LEAF at leaves
    right: np.ndarray
    weight: np.ndarray  # (n_nodes,) float64, of the training rows
    value: (
        np.ndarray
    )  # (n_nodes, n_outputs) float64: distribution of the classes, or value
    label: np.ndarray  # (n_nodes,) int32
    n_features: int
    classes: np.ndarray | None  # None for a regression tree
    dtype: type  # np.float32 or np.float64: what inputs are rounded to before a test

    @property
    def splits(self):
        """What a traversal reads."""
        return self.feature, self.threshold, self.left, self.right

    @cached_property
    def leaves(self):
        """Nodes without children."""
        return np.flatnonzero(self.feature == LEAF)

    @cached_property
    def used(self):
        """Features that are tested, in order: the columns of boxes and cells."""
        return np.unique(self.feature[self.feature != LEAF])

    @cached_property
    def column(self):
        """Position of each node's feature in `used`, LEAF at leaves."""
        column = np.searchsorted(self.used, self.feature).astype(np.int32)
        return np.where(self.feature == LEAF, np.int32(LEAF), column)

    @cached_property
    def grid(self):
        """Distinct thresholds of each used feature."""
        return [
            np.unique(self.threshold[self.column == k]) for k in range(len(self.used))
        ]

    @cached_property
    def cut(self):
        """Position of each node's threshold in its feature's grid, LEAF at leaves."""
        cut = np.full(len(self.feature), LEAF, np.int32)
        for k, thresholds in enumerate(self.grid):
            here = self.column == k
            cut[here] = np.searchsorted(thresholds, self.threshold[here])
        return cut

    @cached_property
    def node_boxes(self):
        """Bounds of every node, low < x <= high, of shape (n_nodes, n_used) each."""
        splits = self.column, self.threshold, self.left, self.right
        start = np.full(len(self.used), np.inf)
        return node_boxes(*splits, -start, start)

    @cached_property
    def boxes(self):
        """Bounds of every leaf."""
        low, high = self.node_boxes
        return low[self.leaves], high[self.leaves]

    @cached_property
    def node_cells(self):
        """First cell of every node, and one past its last, in each used feature."""
        splits = self.column, self.cut + 1.0, self.left, self.right
        stop = np.array([len(thresholds) + 1.0 for thresholds in self.grid])
        start, stop = node_boxes(*splits, np.zeros_like(stop), stop)
        return start.astype(int), stop.astype(int)

    @cached_property
    def leaf_cells(self):
        """First cell of every leaf, and one past its last, in each used feature."""
        start, stop = self.node_cells
        return start[self.leaves], stop[self.leaves]

    def cells(self, lower, upper):
        """Cell of each row in the used features, -1 where it is not known."""
        cells = np.empty((len(lower), len(self.used)), np.int32)
        for k, (j, thresholds) in enumerate(zip(self.used, self.grid, strict=True)):
            cell = np.searchsorted(thresholds, lower[:, j])
            known = cell == np.searchsorted(thresholds, upper[:, j])
            known &= ~np.isnan(lower[:, j])
            cells[:, k] = np.where(known, cell, -1)
        return cells

    def bounds(self, starts, stops):
        """Bounds ``{feature: (low, high)}`` of boxes of cells, without the infinite."""
        low, high = np.empty(np.shape(starts)), np.empty(np.shape(starts))
        for k, thresholds in enumerate(self.grid):
            ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
            low[:, k], high[:, k] = ends[starts[:, k]], ends[stops[:, k]]
        found = [{} for _ in low]
        boxes, columns = np.nonzero(np.isfinite(low) | np.isfinite(high))
        ends = zip(
            low[boxes, columns].tolist(), high[boxes, columns].tolist(), strict=True
        )
        features = self.used[columns].tolist()
        for box, j, pair in zip(boxes.tolist(), features, ends, strict=True):
            found[box][j] = pair
        return found


def in_domains(tree, domains, groups):
    """Renormalise the thresholds to the features' domains and drop dead branches.

    Afterwards every interval that the tree's thresholds bound holds an accepted value,
    so that no traversal needs to look at the domains again.
    """
    whole = domains != "continuous"
    if whole.any():
        rounded = np.isin(tree.feature, np.flatnonzero(whole))
        threshold = np.where(rounded, np.floor(tree.threshold), tree.threshold)
        tree = replace(tree, threshold=threshold)
    binary = domains[tree.used] == "binary"
    largest = float(np.finfo(tree.dtype).max)
    splits = tree.column, tree.threshold, tree.left, tree.right
    low, high = node_boxes(
        *splits, np.where(binary, -1.0, -np.inf), np.where(binary, 1.0, largest)
    )
    alive = (low < high).all(axis=1)
    for group in groups:
        members = np.isin(tree.used, group)
        alive &= (low[:, members] >= 0).sum(axis=1) <= 1
        if members.sum() == len(group):
            alive &= (high[:, members] > 0).any(axis=1)
    return tree if alive.all() else _keep(tree, alive)


def _keep(tree, alive):
    """Drop the nodes that are not alive; a split with one child left goes too."""
    target = np.arange(len(alive))
    for node in np.flatnonzero(tree.feature != LEAF)[::-1]:
        children = tree.left[node], tree.right[node]
        living = [child for child in children if alive[child]]
        if len(living) == 1:
            target[node] = target[living[0]]
    return subtree(tree, target)


def subtree(tree, target):
    """Take what is reached from the root if ``target[node]`` stands for each node."""
    left, right = (target[ends].tolist() for ends in (tree.left, tree.right))
    is_leaf, order, stack = (tree.feature == LEAF).tolist(), [], [int(target[0])]
    while stack:
        node = stack.pop()
        order.append(node)
        if not is_leaf[node]:
            stack += [right[node], left[node]]
    order = np.array(order)
    number = np.full(len(tree.feature), LEAF, np.int32)
    number[order] = np.arange(len(order))
    children = {
        side: np.where(
            tree.feature[order] == LEAF,
            np.int32(LEAF),
            number[target[getattr(tree, side)[order]]],
        )
        for side in ("left", "right")
    }
    kept = ("feature", "threshold", "weight", "value", "label")
    arrays = {name: getattr(tree, name)[order] for name in kept}
    return replace(tree, **arrays, **children)


def route(tree, cells):
    """Return the leaf of each row of cells, all of which are known."""
    leaf = np.empty(len(cells), int)
    rows = {0: np.arange(len(cells))}
    for node in range(len(tree.feature)):
        here = rows.pop(node)
        if tree.feature[node] == LEAF:
            leaf[here] = node
        else:
            goes_left = cells[here, tree.column[node]] <= tree.cut[node]
            rows[tree.left[node]] = here[goes_left]
            rows[tree.right[node]] = here[~goes_left]
    return leaf


def weighed(tree, cells, weight):
    """Set the weights of all nodes from rows, of which those that are known count."""
    known = (cells >= 0).all(axis=1)
    leaf = route(tree, cells[known])
    total = np.bincount(leaf, weight[known], len(tree.feature))
    for node in np.flatnonzero(tree.feature != LEAF)[::-1]:
        total[node] = total[tree.left[node]] + total[tree.right[node]]
    return replace(tree, weight=total)


def as_dict(tree):
    """Return the tree as nested dictionaries; "true" holds the rows x <= threshold."""
    nodes = [None] * len(tree.feature)
    for node in range(len(nodes))[::-1]:
        if tree.feature[node] == LEAF:
            nodes[node] = {
                "prediction": tree.classes[tree.label[node]],
                "value": tree.value[node].tolist(),
                "weight": float(tree.weight[node]),
            }
        else:
            nodes[node] = {
                "feature": int(tree.feature[node]),
                "threshold": float(tree.threshold[node]),
                "true": nodes[tree.left[node]],
                "false": nodes[tree.right[node]],
            }
    return nodes[0]


def in_float32(tree):
    """Return the tree as it answers for float32 rows."""
    threshold = float32_below(tree.threshold)
    return replace(tree, threshold=threshold, dtype=np.float32)


def float32_below(threshold):
    """Largest float32 not above each threshold: it sends each float32 the same way."""
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest > threshold, below, nearest).astype(float)


def regrid(old, new, cells):
    """Return the cells on the grid of a tree that has part of the thresholds."""
    found = np.empty((len(cells), len(new.used)), np.int32)
    for k, (j, thresholds) in enumerate(zip(new.used, new.grid, strict=True)):
        was = np.searchsorted(old.used, j)
        upper_end = np.append(old.grid[was], np.inf)
        cell = cells[:, was]
        found[:, k] = np.where(
            cell < 0, -1, np.searchsorted(thresholds, upper_end[cell])
        )
    return found
