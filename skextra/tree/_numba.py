"""CPU kernels of trees: traversals with unknown values, boxes and pairs of trees.

A traversal reads four arrays, ``feature, threshold, left, right``; leaves have the
feature -1. A row is known as closed intervals, ``lower <= x <= upper``; NaN is unknown.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def reach(splits, share, value, label, lower, upper, proba, possible, low, high):
    """Send each row to every leaf that its known values allow.

    `proba` is the mean of the leaf values, where a test of an unknown value sends
    `share` of the weight left; `possible` marks the labels reached; `low` and `high`
    bound the leaf values. An output of length 0 is not computed.
    """
    feature, threshold, left, right = splits
    waiting = np.empty(len(feature) // 2 + 1, np.int32)
    waiting_weight = np.empty(len(waiting))
    for i in range(len(lower)):
        node, weight, n_waiting = 0, 1.0, 0
        while True:
            j = feature[node]
            if j >= 0:
                # written so that NaN goes both ways
                goes_left = not lower[i, j] > threshold[node]
                goes_right = not upper[i, j] <= threshold[node]
                if goes_left and goes_right:
                    waiting[n_waiting] = right[node]
                    waiting_weight[n_waiting] = weight * (1 - share[node])
                    n_waiting += 1
                    weight *= share[node]
                node = left[node] if goes_left else right[node]
                continue
            if len(proba):
                for k in range(value.shape[1]):
                    proba[i, k] += weight * value[node, k]
            if len(possible):
                possible[i, label[node]] = True
            if len(low):
                for k in range(value.shape[1]):
                    low[i, k] = min(low[i, k], value[node, k])
                    high[i, k] = max(high[i, k], value[node, k])
            if n_waiting == 0:
                break
            n_waiting -= 1
            node, weight = waiting[n_waiting], waiting_weight[n_waiting]


@njit(cache=True, nogil=True)
def find_leaves(splits, X):
    """Return the leaf of each complete row."""
    feature, threshold, left, right = splits
    leaf = np.zeros(len(X), np.int32)
    for i in range(len(X)):
        while feature[leaf[i]] >= 0:
            node = leaf[i]
            goes_left = X[i, feature[node]] <= threshold[node]
            leaf[i] = left[node] if goes_left else right[node]
    return leaf


@njit(cache=True, nogil=True)
def node_boxes(column, threshold, left, right, low, high):
    """Bounds ``low < x <= high`` of every node, from those of the root."""
    lows = np.empty((len(column), len(low)))
    highs = np.empty_like(lows)
    lows[0], highs[0] = low, high
    for node in range(len(column)):
        k = column[node]
        if k >= 0:
            for child in (left[node], right[node]):
                lows[child], highs[child] = lows[node], highs[node]
            highs[left[node], k] = min(highs[node, k], threshold[node])
            lows[right[node], k] = max(lows[node, k], threshold[node])
    return lows, highs


@njit(cache=True, nogil=True)
def find_conflict(a, splits_a, value_a, b, splits_b, value_b, low, high, tol, group):
    """Look for a box in which two trees, from nodes a and b on, have other values.

    Both are descended at once, into pairs of nodes whose boxes meet inside
    ``low < x <= high``. If True is returned, `low` and `high` are the box found. `group`
    numbers the one-hot group of each feature, -1 for none.
    """
    size = 3 * (len(splits_a[0]) + len(splits_b[0]))
    # What is waiting: set one bound, and if the pair of nodes is not -1 go on from it.
    pairs = np.empty((size, 2), np.int64)
    axis = np.empty(size, np.int64)
    is_upper = np.empty(size, np.bool_)
    bound = np.empty(size)
    n_waiting = 0
    while True:
        in_a = splits_a[0][a] >= 0
        node = a if in_a else b
        feature, threshold, left, right = splits_a if in_a else splits_b
        j, t = feature[node], threshold[node]
        if j >= 0:
            goes_left, goes_right = low[j] < t, t < high[j]
            if goes_left and goes_right:
                pairs[n_waiting : n_waiting + 3] = -1
                axis[n_waiting : n_waiting + 3] = j
                is_upper[n_waiting : n_waiting + 3] = False
                is_upper[n_waiting + 2] = True
                bound[n_waiting] = low[j]
                bound[n_waiting + 1] = t
                bound[n_waiting + 2] = high[j]
                pairs[n_waiting + 1, 0] = right[node] if in_a else a
                pairs[n_waiting + 1, 1] = b if in_a else right[node]
                n_waiting += 3
                high[j] = t
            node = left[node] if goes_left else right[node]
            a, b = (node, b) if in_a else (a, node)
            continue
        for k in range(value_a.shape[1]):
            u, v = value_a[a, k], value_b[b, k]
            if abs(u - v) > tol[0] + tol[1] * max(abs(u), abs(v)):
                if _is_feasible(low, high, group):
                    return True
                break
        a = -1
        while a < 0:
            if n_waiting == 0:
                return False
            n_waiting -= 1
            if is_upper[n_waiting]:
                high[axis[n_waiting]] = bound[n_waiting]
            else:
                low[axis[n_waiting]] = bound[n_waiting]
            a, b = pairs[n_waiting]


@njit(cache=True, nogil=True)
def _is_feasible(low, high, group):
    """Tell whether the box holds a row with exactly one 1 in each group."""
    for g in range(group.max() + 1 if len(group) else 0):
        n_ones, all_zero = 0, True
        for j in range(len(group)):
            if group[j] == g:
                n_ones += low[j] >= 0
                all_zero = all_zero and high[j] <= 0
        if n_ones > 1 or all_zero:
            return False
    return True


@njit(cache=True, nogil=True)
def essential_ends(low, high, label):
    """Mark the upper ends of leaves at which another label begins.

    The other leaf begins where this one ends and meets it in all other features.
    """
    found = np.zeros(low.shape, np.bool_)
    for a in range(len(low)):
        for b in range(len(low)):
            if label[a] == label[b]:
                continue
            apart = -1
            for k in range(low.shape[1]):
                if low[a, k] >= high[b, k] or low[b, k] >= high[a, k]:
                    if apart >= 0 or high[a, k] != low[b, k]:
                        apart = -1
                        break
                    apart = k
            if apart >= 0:
                found[a, apart] = True
    return found


@njit(cache=True, nogil=True)
def swap_losses(splits, label, mass, cells, y, weight):
    """Weight of correct rows that swapping a feature's value loses, for each feature.

    All pairs of rows are swapped. ``mass[leaf, k]`` is the weight of the rows whose
    feature k falls into the leaf's interval. Features off a row's path change nothing.
    """
    column, cut, left, right = splits
    losses = np.zeros(cells.shape[1])
    waiting = np.empty(len(column) // 2 + 1, np.int32)
    path = np.empty(len(column), np.int32)
    total = weight.sum()
    for i in range(len(cells)):
        node, n_path = 0, 0
        while column[node] >= 0:
            k = column[node]
            path[n_path] = k
            n_path += 1
            node = left[node] if cells[i, k] <= cut[node] else right[node]
        is_right = label[node] == y[i]
        for p in range(n_path):
            free = path[p]
            if np.any(path[:p] == free):
                continue
            correct = 0.0
            n_waiting, waiting[0] = 1, 0
            while n_waiting:
                n_waiting -= 1
                node = waiting[n_waiting]
                while column[node] >= 0:
                    k = column[node]
                    if k == free:
                        waiting[n_waiting] = right[node]
                        n_waiting += 1
                        node = left[node]
                    else:
                        node = left[node] if cells[i, k] <= cut[node] else right[node]
                if label[node] == y[i]:
                    correct += mass[node, free]
            losses[free] += weight[i] * (is_right * total - correct)
    return losses


@njit(cache=True, nogil=True)
def first_maximal(start, stop, max_boxes):
    """Which boxes lie in no other; they come largest first, without duplicates.

    More than `max_boxes` of them give an empty answer.
    """
    kept = np.empty(max_boxes, np.int64)
    n_kept = 0
    for i in range(len(start)):
        inside = False
        for p in range(n_kept):
            other, inside = kept[p], True
            for k in range(start.shape[1]):
                if start[i, k] < start[other, k] or stop[i, k] > stop[other, k]:
                    inside = False
                    break
            if inside:
                break
        if not inside:
            if n_kept == max_boxes:
                return kept[:0]
            kept[n_kept] = i
            n_kept += 1
    return kept[:n_kept]
