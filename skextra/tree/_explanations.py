"""Why a row has its label, and what would change it.

A barrier is the set of features that keep a row out of one leaf of another label. An
abductive explanation (a sufficient reason) has a feature of each barrier, and a
contrastive explanation is a barrier that contains no other. Sets of features are
integers here, whose bits are positions in a list of columns.
"""

from heapq import heappop, heappush
from itertools import islice, product
from typing import NamedTuple

import numpy as np

from skextra.tree._boxes import grow
from skextra.tree._errors import BudgetExceededError
from skextra.tree._missing import possible_labels


class Explanation(NamedTuple):
    """Features that explain the label of one row.

    Parameters
    ----------
    features : tuple of int
        The features, in order.

    bounds : dict of int to (float, float)
        For each feature the interval ``low < x <= high``. An abductive explanation
        holds for all rows in these intervals; a contrastive one says where the features
        have to move.

    label : object
        The label that the intervals imply: that of the row for an abductive
        explanation, another one for a contrastive explanation.

    Examples
    --------
    >>> from skextra.tree import Explanation
    >>> Explanation((2,), {2: (float("-inf"), 2.45)}, "setosa").features
    (2,)
    """

    features: tuple
    bounds: dict
    label: object


def barriers(tree, lower, upper, label, groups):
    """Return the columns, and the barrier and leaf of each way into another label.

    With one-hot groups, a leaf has one barrier for each smallest choice of the 1s.
    """
    columns = np.unique(np.concatenate([tree.used, *groups]).astype(int))
    low, high = (
        np.full((len(tree.leaves), len(columns)), b) for b in (-np.inf, np.inf)
    )
    at = np.searchsorted(columns, tree.used)
    low[:, at], high[:, at] = tree.boxes
    others = np.flatnonzero(tree.label[tree.leaves] != label)
    low, high = low[others], high[others]
    lower, upper = lower[columns], upper[columns]
    outside = (lower > high) | (upper <= low)
    places = [np.searchsorted(columns, group) for group in groups]
    for place in places:
        outside[:, place] = False
    masks, leaves = [], []
    for i, leaf in enumerate(others):
        ways = [minimal(_ways(low[i], high[i], lower, place)) for place in places]
        for way in product(*ways):
            masks.append(_as_bits(np.flatnonzero(outside[i])) | _union(way))
            leaves.append(leaf)
    return columns, masks, leaves


def _ways(low, high, row, members):
    """Sets of members to change for a row with one 1 among them inside the bounds."""
    ones = members[low[members] >= 0]
    places = [j for j in members if high[j] > 0 and set(ones) <= {j}]
    known = members[~np.isnan(row[members])]
    return [_as_bits(j for j in known if row[j] != (j == place)) for place in places]


def _as_bits(positions):
    return sum(1 << int(j) for j in positions)


def _union(sets):
    union = 0
    for members in sets:
        union |= members
    return union


def as_positions(members):
    """List the positions of the bits that are set."""
    return [j for j in range(members.bit_length()) if members >> j & 1]


def minimal(sets):
    """Return the distinct sets that contain no other, smallest first."""
    found = []
    for members in sorted(set(sets), key=lambda s: (s.bit_count(), as_positions(s))):
        if not any(smaller & members == smaller for smaller in found):
            found.append(members)
    return found


def shrink(barriers, members, order):
    """Drop features in this order as long as each barrier keeps one."""
    for j in order:
        smaller = members & ~(1 << j)
        if all(smaller & barrier for barrier in barriers):
            members = smaller
    return members


def hitting_sets(barriers):
    """Yield all minimal sets with a member of each barrier, one by one.

    Depth-first: the algorithm MMCS of Murakami and Uno, "Efficient algorithms for
    dualizing large-scale hypergraphs", Discrete Applied Mathematics 170, 2014.
    """
    stack = [(0, tuple(barriers), _union(barriers))]
    while stack:
        chosen, left, allowed = stack.pop()
        if left:
            stack += reversed(list(_larger(barriers, chosen, left, allowed)))
        else:
            yield chosen


def cheapest_hitting_sets(barriers, costs):
    """Yield the minimal hitting sets in the order of their cost.

    The same search, always from the set whose cost can be least: its own and that of
    the cheapest members of barriers that have none in common.
    """
    start = 0, tuple(barriers), _union(barriers)
    heap = [(0.0, len(barriers), *start)]
    while heap:
        _, _, chosen, left, allowed = heappop(heap)
        if not left:
            yield chosen
            continue
        for larger, rest, still in _larger(barriers, chosen, left, allowed):
            need, seen = costs[as_positions(larger)].sum(), 0
            for barrier in rest:
                if not barrier & seen:
                    seen |= barrier
                    choices = as_positions(barrier & still)
                    need += costs[choices].min() if choices else np.inf
            if need < np.inf:
                heappush(heap, (need, len(rest), larger, rest, still))


def _larger(barriers, chosen, left, allowed):
    """Add to a set each choice for the barrier that has fewest left.

    Only sets each of whose members is the only one in some barrier can become minimal.
    A choice is not allowed in the branches before its own, so that no set comes twice.
    """
    choices = allowed & min(left, key=lambda b: (b & allowed).bit_count())
    allowed &= ~choices
    for j in as_positions(choices):
        larger = chosen | 1 << j
        alone = {b & larger for b in barriers}
        if all(1 << k in alone for k in as_positions(larger)):
            yield larger, tuple(b for b in left if not b >> j & 1), allowed
            allowed |= 1 << j


def take(sets, count, max_terms):
    """Return `count` of the sets, or "all" of them, of which there may be `max_terms`."""
    if count != "all":
        return list(islice(sets, int(count)))
    taken = list(islice(sets, max_terms + 1))
    if len(taken) > max_terms:
        raise BudgetExceededError(
            f"There are more than max_terms={max_terms} explanations. Ask for a number "
            "of them by max_explanations, or raise max_terms."
        )
    return taken


def explain_rows(tree, lower, upper, labels, groups, costs, **settings):
    """Return the explanations of each row, whose label must be determined."""
    possible = possible_labels(tree, len(labels), lower, upper, groups)
    first = tree.cells(lower, lower)
    last = first if upper is lower else tree.cells(upper, upper)
    found = []
    for i, row in enumerate(zip(lower, first, last, upper, strict=True)):
        reached = np.flatnonzero(possible[i])
        if len(reached) > 1:
            raise ValueError(
                f"Row {i} cannot be explained: with its unknown values the label can "
                f"be any of {labels[reached].tolist()}."
            )
        explained = explain_row(tree, *row, reached[0], groups, costs, **settings)
        found.append(
            [
                Explanation(features, bounds, labels[label])
                for features, bounds, label in explained
            ]
        )
    return found


def explain_row(
    tree,
    lower,
    first,
    last,
    upper,
    label,
    groups,
    costs,
    *,
    kind,
    by_cost,
    inflate,
    count,
    max_terms,
):
    """Return (features, bounds, label) of the explanations of a row's label.

    The row is known as bounds, and as its first and last cell in the used features.
    """
    columns, masks, leaves = barriers(tree, lower, upper, label, groups)
    sets, costs = minimal(masks), costs[columns]
    if kind == "contrastive":
        if by_cost:
            sets.sort(key=lambda s: (sum(costs[as_positions(s)]), s.bit_count()))
        leaf_of = dict(zip(masks[::-1], leaves[::-1], strict=True))
        return [
            _contrast(tree, lower, columns[as_positions(members)], leaf_of[members])
            for members in take(sets, count, max_terms)
        ]
    if by_cost:
        found = cheapest_hitting_sets(sets, costs)
    elif count == 1:
        order = sorted(range(len(columns)), key=lambda j: (-costs[j], j))
        found = [shrink(sets, _union(sets), order)]
    else:
        found = hitting_sets(sets)
    features = [
        columns[as_positions(members)] for members in take(found, count, max_terms)
    ]
    boxes = _reasons(tree, first, last, label, features, inflate)
    return [
        (
            tuple(chosen.tolist()),
            {j: box[j] if j in box else _as_binary(lower[j]) for j in chosen.tolist()},
            label,
        )
        for chosen, box in zip(features, boxes, strict=True)
    ]


def _contrast(tree, lower, features, leaf):
    """Where the features have to move for the leaf's label."""
    low, high = (bounds[leaf] for bounds in tree.boxes)
    bounds = {}
    for j in features.tolist():
        k = np.searchsorted(tree.used, j)
        tested = j in tree.used and not (low[k] == -np.inf and high[k] == np.inf)
        bounds[j] = (
            (float(low[k]), float(high[k])) if tested else _as_binary(1 - lower[j])
        )
    return tuple(bounds), bounds, tree.label[tree.leaves[leaf]]


def _reasons(tree, first, last, label, features, inflate):
    """Intervals of each set of features that imply the label, widened if inflated."""
    n_cells = np.array([len(thresholds) + 1 for thresholds in tree.grid], int)
    kept = np.array([np.isin(tree.used, chosen) for chosen in features])
    starts, stops = np.where(kept, first, 0), np.where(kept, last + 1, n_cells)
    if inflate:
        others = tree.label[tree.leaves] != label
        others = tuple(ends[others] for ends in tree.leaf_cells)
        for start, stop, columns in zip(starts, stops, kept, strict=True):
            grow(start, stop, others, np.flatnonzero(columns), n_cells)
    return tree.bounds(starts, stops)


def _as_binary(value):
    """Interval of a value of a one-hot feature."""
    return (0.0, np.inf) if value > 0 else (-np.inf, 0.0)
