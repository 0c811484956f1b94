"""When two trees are the same function, and what of a tree its function needs."""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from skextra.tree._flat import LEAF, in_domains, in_float32, subtree
from skextra.tree._numba import essential_ends, find_conflict, find_leaves

# Values differ from absolute + relative * value on.
TOLERANCES = {"label": (0.5, 0.0), "proba": (1e-12, 1e-9), "value": (1e-12, 1e-9)}


def find_counterexample(a, b, output, inputs):
    """Return a row of features for which the trees have other outputs, or None."""
    a, b = same_precision([a, b], inputs)
    n_features = max(a.n_features, b.n_features)
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    found = find_conflict(
        *(0, a.splits, _output(a, output)),
        *(0, b.splits, _output(b, output)),
        *(low, high, TOLERANCES[output], inputs.group),
    )
    return _point_in(low, high, a.dtype, inputs.group) if found else None


def same_precision(trees, inputs):
    """Let trees answer for float32 rows if one of them rounds its rows to these."""
    if len({tree.dtype for tree in trees}) == 1:
        return trees
    return [
        in_domains(in_float32(tree), inputs.domains, inputs.groups) for tree in trees
    ]


def _output(tree, output):
    return tree.label[:, None].astype(float) if output == "label" else tree.value


def _point_in(low, high, dtype, group):
    """Return a finite point of the box that `dtype` can hold."""
    with np.errstate(over="ignore"):
        above = np.maximum(low + 1, np.nextafter(low.astype(dtype), dtype(np.inf)))
    point = np.where(np.isfinite(high), high, np.where(np.isfinite(low), above, 0.0))
    for g in range(group.max(initial=-1) + 1):
        members = np.flatnonzero(group == g)
        if not point[members].any():
            point[members[np.argmax(high[members] > 0)]] = 1
    return point


def essential_thresholds(tree):
    """Return ``{feature: thresholds}`` on which the tree's function depends."""
    low, high = tree.boxes
    ends = essential_ends(low, high, tree.label[tree.leaves])
    return {
        int(j): np.unique(high[ends[:, k], k])
        for k, j in enumerate(tree.used)
        if ends[:, k].any()
    }


def fingerprint(tree):
    """Return a hashable key that equal functions share.

    It holds the essential thresholds and, for each label, the number of cells of their
    grid, in all and in each cell of each feature. The function is constant in a cell,
    so it is enough to count the points just above the cells' lower ends.
    """
    essential = essential_thresholds(tree)
    low, high = tree.boxes
    labels = tree.label[tree.leaves]
    n_points, inside = [], {}
    for k, j in enumerate(tree.used):
        starts = np.concatenate([[-np.inf], essential.get(int(j), [])])
        first, end = (np.searchsorted(starts, ends[:, k]) for ends in (low, high))
        n_points.append((end - first).astype(object))
        if int(j) in essential:
            cell = np.arange(len(starts))
            inside[k] = (first[:, None] <= cell) & (cell < end[:, None])
    ones = np.ones(len(labels), dtype=object)
    in_all = np.prod([ones, *n_points], axis=0)
    counts = [_by_label(in_all, labels)]
    for k, cells in inside.items():
        per_cell = in_all // np.maximum(n_points[k], 1)
        counts += [_by_label(per_cell[here], labels[here]) for here in cells.T]
    thresholds = tuple((j, tuple(t.tolist())) for j, t in essential.items())
    return thresholds, tuple(counts)


def _by_label(counts, labels):
    """Sum the counts of each label that has any."""
    sums = defaultdict(int)
    for label, count in zip(labels.tolist(), counts, strict=True):
        sums[label] += count
    return tuple(sorted((label, n) for label, n in sums.items() if n))


def group_equal(trees, output, inputs):
    """Return the positions of distinct trees, and for each tree which one it equals.

    A tree is compared with one of each class met so far whose labels agree on a sample
    of points. Values that agree to rounding need not be the same number: then with all.
    """
    trees = same_precision(trees, inputs)
    points = _sample(trees, inputs)
    distinct, inverse = [], np.empty(len(trees), int)
    buckets = defaultdict(list)
    for i, tree in enumerate(trees):
        key = None
        if output == "label":
            key = tree.label[find_leaves(tree.splits, points)].tobytes()
        for known in buckets[key]:
            if (
                find_counterexample(trees[distinct[known]], tree, output, inputs)
                is None
            ):
                inverse[i] = known
                break
        else:
            inverse[i] = len(distinct)
            buckets[key].append(len(distinct))
            distinct.append(i)
    return distinct, inverse


def _sample(trees, inputs, n_points=256):
    """Draw rows whose values lie in random cells of the grid of all trees."""
    rng = np.random.default_rng(0)
    points = np.zeros((n_points, len(inputs.domains)))
    feature = np.concatenate([tree.feature for tree in trees])
    threshold = np.concatenate([tree.threshold for tree in trees])
    for j in np.unique(feature[feature != LEAF]):
        thresholds = np.unique(threshold[feature == j])
        points[:, j] = rng.choice([*thresholds, thresholds[-1] + 1], n_points)
    for group in inputs.groups:
        points[:, group] = 0
        points[np.arange(n_points), rng.choice(group, n_points)] = 1
    return points


def simplify(tree, output, group):
    """Replace each split, from the leaves up, by a child that can stand for both.

    A child can if it equals the other child on the other child's region.
    """
    low, high = tree.node_boxes
    left, right = tree.left.copy(), tree.right.copy()
    splits = tree.feature, tree.threshold, left, right
    value, tolerance = _output(tree, output), TOLERANCES[output]
    target = np.arange(len(left))
    for node in np.flatnonzero(tree.feature != LEAF)[::-1]:
        regions = [(left[node], right[node]), (right[node], left[node])]
        a, b = left[node], right[node] = target[left[node]], target[right[node]]
        for (_, region), kept in zip(regions, (a, b), strict=True):
            box = np.full((2, tree.n_features), [[-np.inf], [np.inf]])
            box[:, tree.used] = low[region], high[region]
            if not find_conflict(
                a, splits, value, b, splits, value, *box, tolerance, group
            ):
                target[node] = kept
                break
    return subtree(replace(tree, left=left, right=right), target)
