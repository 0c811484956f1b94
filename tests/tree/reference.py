"""Slow, obvious versions of what the package computes fast, on nested dicts.

A split is ``{"feature": j, "threshold": t, "true": ..., "false": ...}``, where "true"
holds the rows with x[j] <= t. A leaf is ``{"prediction": label}``, with "value" (the
distribution of the classes) and "weight" (of the training rows) where they are needed.
"""

from collections import Counter
from functools import cache
from itertools import combinations, pairwise, product
from math import floor, prod

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

INF = float("inf")


# Trees and the grid of their cells


def find_leaf(tree, x):
    """Leaf of one complete row."""
    while "feature" in tree:
        tree = tree["true" if x[tree["feature"]] <= tree["threshold"] else "false"]
    return tree


def evaluate(tree, x):
    """Label of one complete row."""
    return find_leaf(tree, x)["prediction"]


def nodes(tree):
    """All nodes, parents first."""
    yield tree
    if "feature" in tree:
        yield from nodes(tree["true"])
        yield from nodes(tree["false"])


def leaves(tree, box=None):
    """Pairs of a leaf and its box {j: (low, high)}, also where low >= high."""
    box = box or {}
    if "feature" not in tree:
        yield tree, box
        return
    j, t = tree["feature"], tree["threshold"]
    low, high = box.get(j, (-INF, INF))
    yield from leaves(tree["true"], {**box, j: (low, min(high, t))})
    yield from leaves(tree["false"], {**box, j: (max(low, t), high)})


def thresholds(trees):
    """Distinct thresholds {j: sorted list} of the tested features."""
    cuts = {}
    for tree in trees:
        for node in nodes(tree):
            if "feature" in node:
                cuts.setdefault(node["feature"], set()).add(node["threshold"])
    return {j: sorted(cuts[j]) for j in sorted(cuts)}


def representatives(cuts):
    """One value of each cell, an integer where the cell holds one."""
    inside = [floor(t) if floor(t) > s else t for s, t in pairwise([-INF, *cuts])]
    return [float(v) for v in inside] + [floor(cuts[-1]) + 1.0]


def points(cuts, n_features=None):
    """One point of each cell of the grid of `cuts`; 0 where there is no cut."""
    n_features = n_features or max(cuts, default=0) + 1
    values = [
        representatives(cuts[j]) if j in cuts else [0.0] for j in range(n_features)
    ]
    return np.array(list(product(*values)))


def grid(trees, n_features=None):
    """One point of each cell of the grid of the trees' thresholds."""
    return points(thresholds(trees), n_features)


# The function of a tree


def equal(a, b):
    """Whether the labels agree in all cells."""
    return all(evaluate(a, x) == evaluate(b, x) for x in grid([a, b]))


def equal_values(a, b):
    """Whether the leaves' distributions agree in all cells."""
    pairs = ((find_leaf(a, x), find_leaf(b, x)) for x in grid([a, b]))
    return all(
        np.allclose(p["value"], q["value"], rtol=1e-9, atol=1e-12) for p, q in pairs
    )


def essential(tree):
    """Thresholds {j: list} with two neighbours of different labels."""
    cuts, found = thresholds([tree]), {}
    for j, ts in cuts.items():
        sides = list(pairwise(representatives(ts)))
        for t, (below, above) in zip(ts, sides):
            for x in grid([tree]):
                a, b = x.copy(), x.copy()
                a[j], b[j] = below, above
                if evaluate(tree, a) != evaluate(tree, b):
                    found.setdefault(j, []).append(t)
                    break
    return found


def class_counts(tree):
    """Number of cells of the essential grid with each label."""
    return Counter(evaluate(tree, x) for x in points(essential(tree), width(tree)))


def cell_counts(tree):
    """Number of cells of the essential grid, by (label, feature, cell of the feature)."""
    cuts = essential(tree)
    counts = Counter()
    for x in points(cuts, width(tree)):
        for j in cuts:
            counts[evaluate(tree, x), j, representatives(cuts[j]).index(x[j])] += 1
    return counts


def width(tree):
    """Number of features up to the last that is tested."""
    return max(thresholds([tree]), default=0) + 1


def labels_in(tree, box):
    """Labels that occur in the box {j: (low, high)}, whose bounds may be any."""
    cuts = thresholds([tree])
    for j, bounds in box.items():
        finite = {t for t in bounds if abs(t) < INF}
        if finite:
            cuts[j] = sorted({*cuts.get(j, ()), *finite})
    inside = [
        x
        for x in points(cuts)
        if all(low < x[j] <= high for j, (low, high) in box.items() if j in cuts)
    ]
    return {evaluate(tree, x) for x in inside}


# Rows with unknown values


def completions(tree, x, one_hot=()):
    """One row of each way to fill the NaN of `x`; exactly one 1 in a one-hot group."""
    cuts = thresholds([tree])
    grouped = {j for group in one_hot for j in group}
    values = []
    for j, known in enumerate(x):
        if not np.isnan(known):
            values.append([known])
        elif j in grouped:
            values.append([0.0, 1.0])
        else:
            values.append(representatives(cuts[j]) if j in cuts else [0.0])
    rows = np.array(list(product(*values)))
    return [z for z in rows if all(z[list(group)].sum() == 1 for group in one_hot)]


def possible(tree, x, one_hot=()):
    """Labels of all completions."""
    return {evaluate(tree, z) for z in completions(tree, x, one_hot)}


def value_bounds(tree, x, one_hot=()):
    """Least and largest value of each class over all completions, (K,) each."""
    values = [find_leaf(tree, z)["value"] for z in completions(tree, x, one_hot)]
    return np.min(values, axis=0), np.max(values, axis=0)


def weight(tree):
    """Weight of the training rows below a node."""
    if "feature" in tree:
        return weight(tree["true"]) + weight(tree["false"])
    return tree["weight"]


def path_proba(tree, x, box=None):
    """Distribution of one row, sent both ways by the training weights where unknown."""
    if "feature" not in tree:
        return np.array(tree["value"], dtype=float)
    j, t, box = tree["feature"], tree["threshold"], box or {}
    if not np.isnan(x[j]):
        return path_proba(tree["true" if x[j] <= t else "false"], x, box)
    low, high = box.get(j, (-INF, INF))
    if t >= high:
        return path_proba(tree["true"], x, box)
    if t <= low:
        return path_proba(tree["false"], x, box)
    w_true, w_false = weight(tree["true"]), weight(tree["false"])
    share = w_true / (w_true + w_false) if w_true + w_false > 0 else 0.5
    p_true = path_proba(tree["true"], x, {**box, j: (low, t)})
    p_false = path_proba(tree["false"], x, {**box, j: (t, high)})
    return share * p_true + (1 - share) * p_false


def marginal_proba(tree, x, X_train, sample_weight=None):
    """Distribution of one row, unknown values drawn from independent marginals."""
    total = 0.0
    for leaf, box in leaves(tree):
        p = 1.0
        for j, (low, high) in box.items():
            inside = (low < X_train[:, j]) & (X_train[:, j] <= high)
            known = float(low < x[j] <= high)
            p *= np.average(inside, weights=sample_weight) if np.isnan(x[j]) else known
        total = total + p * np.array(leaf["value"], dtype=float)
    return total


# Reasons


def is_sufficient(tree, x, features):
    """Whether the values of these features alone determine the label."""
    keep = np.isin(np.arange(len(x)), list(features))
    return len(possible(tree, np.where(keep, x, np.nan))) == 1


def subsets(features):
    """All subsets, small ones first."""
    for size in range(len(features) + 1):
        yield from map(frozenset, combinations(features, size))


def minimal(sets):
    """Those without a proper subset among them."""
    sets = set(sets)
    return {s for s in sets if not any(other < s for other in sets)}


def tested(tree, x):
    """Features that the tree tests and `x` knows."""
    return [j for j in thresholds([tree]) if not np.isnan(x[j])]


def axps(tree, x):
    """Minimal sets of features whose values determine the label."""
    return minimal(S for S in subsets(tested(tree, x)) if is_sufficient(tree, x, S))


def cxps(tree, x):
    """Minimal sets of features that can change the label when the others stay."""
    known = frozenset(tested(tree, x))
    return minimal(S for S in subsets(known) if not is_sufficient(tree, x, known - S))


# Prime boxes


def primes(tree, label, n_features=None):
    """Inclusion-maximal boxes inside {f = label}, as tuples of (low, high)."""
    cuts = thresholds([tree])
    n_features = n_features or width(tree)
    edges = [[-INF, *cuts.get(j, []), INF] for j in range(n_features)]
    shape = [len(e) - 1 for e in edges]
    labels = [evaluate(tree, x) == label for x in grid([tree], n_features)]
    inside = np.reshape(labels, shape)
    ranges = [list(combinations(range(n + 1), 2)) for n in shape]
    found = {
        box for box in product(*ranges) if inside[tuple(slice(*r) for r in box)].all()
    }
    # Any part of a box inside is inside: one more cell on one side is enough to try.
    return {
        tuple((e[a], e[b]) for e, (a, b) in zip(edges, box))
        for box in found
        if not any(
            (*box[:j], larger, *box[j + 1 :]) in found
            for j, (a, b) in enumerate(box)
            for larger in ((a - 1, b), (a, b + 1))
        )
    }


def contains(box, x):
    """Whether a box as tuple of (low, high) contains a point."""
    return all(low < v <= high for (low, high), v in zip(box, x))


def n_bounds(box):
    """Number of finite bounds of a box as tuple of (low, high)."""
    return int(np.isfinite(box).sum())


def minimum_dnf(tree, label):
    """Least number of boxes whose union is {f = label}, then of their finite bounds."""
    boxes = sorted(primes(tree, label))
    cells = [x for x in grid([tree]) if evaluate(tree, x) == label]
    if not cells:
        return 0, 0
    cover = np.array([[contains(box, x) for box in boxes] for x in cells], dtype=float)
    bounds = np.array([n_bounds(box) for box in boxes], dtype=float)
    ones = np.ones(len(boxes))
    options = dict(integrality=ones, bounds=(0, 1), options={"mip_rel_gap": 0})
    covered = LinearConstraint(cover, lb=1)
    n_terms = round(milp(ones, constraints=covered, **options).fun)
    few = LinearConstraint(ones, ub=n_terms)
    return n_terms, round(milp(bounds, constraints=[covered, few], **options).fun)


# Importance


def permutation_importance(tree, X, y, sample_weight=None):
    """Loss of accuracy when a value comes from each row in turn, (n_features,)."""
    w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    w = w / w.sum()
    accuracy = sum(w[i] * (evaluate(tree, X[i]) == y[i]) for i in range(len(y)))
    importances = []
    for j in range(X.shape[1]):
        swapped = 0.0
        for i, k in product(range(len(y)), repeat=2):
            x = X[i].copy()
            x[j] = X[k, j]
            swapped += w[i] * w[k] * (evaluate(tree, x) == y[i])
        importances.append(accuracy - swapped)
    return np.array(importances)


# Buying features


def reach(tree, known, box=None):
    """Labels of the leaves that the values {j: x_j} leave open."""
    if "feature" not in tree:
        return {tree["prediction"]}
    j, t, box = tree["feature"], tree["threshold"], box or {}
    if j in known:
        return reach(tree["true" if known[j] <= t else "false"], known, box)
    low, high = box.get(j, (-INF, INF))
    labels = set()
    if low < min(high, t):
        labels |= reach(tree["true"], known, {**box, j: (low, min(high, t))})
    if max(low, t) < high:
        labels |= reach(tree["false"], known, {**box, j: (max(low, t), high)})
    return labels


def actions(tree, costs, groups=None):
    """What can be bought: pairs of tested features and their cost.

    A group is bought at once, at the largest cost of its members.
    """
    groups = list(groups or [])
    alone = set(range(len(costs))) - {j for group in groups for j in group}
    cuts = thresholds([tree])
    buys = []
    for group in [*groups, *([j] for j in sorted(alone))]:
        features = [j for j in group if j in cuts]
        if features:
            buys.append((features, float(max(costs[j] for j in group))))
    return buys


def buy_all_cost(tree, costs, groups=None):
    """Cost of all that the tree tests."""
    return sum(cost for _, cost in actions(tree, costs, groups))


def _to_cells(tree, X):
    """Copy of `X` with the representative of its cell for each value."""
    Z = np.zeros(np.shape(X))
    for j, cuts in thresholds([tree]).items():
        Z[:, j] = np.array(representatives(cuts))[np.searchsorted(cuts, X[:, j])]
    return Z


def _shares(Z, w, features):
    """Values that the features take in the rows, and the share of each."""
    shares = Counter()
    for row, weight in zip(Z[:, features].tolist(), w.tolist()):
        shares[tuple(row)] += weight
    total = sum(shares.values())
    return {v: share / total for v, share in shares.items() if share > 0}


def _outcomes(Z, w, known, features, distribution):
    """Values that the features can take when some are known, and their probabilities."""
    if distribution == "empirical":
        agree = np.ones(len(Z), dtype=bool)
        for j, v in known.items():
            agree &= Z[:, j] == v
        return _shares(Z[agree], w[agree], features)
    single = [_shares(Z, w, [j]) for j in features]
    return {
        tuple(v for (v,) in values): prod(s[v] for s, v in zip(single, values))
        for values in product(*single)
    }


def _expected_cost(tree, X, costs, groups, distribution, sample_weight, choices):
    """Cost from an empty start; `choices` lists the features to try next, or none."""
    Z = _to_cells(tree, np.asarray(X, dtype=float))
    w = np.ones(len(Z)) if sample_weight is None else np.asarray(sample_weight, float)
    buys = actions(tree, costs, groups)

    def buy(known, features, cost):
        shares = _outcomes(Z, w, known, features, distribution).items()
        states = ((known | dict(zip(features, values)), p) for values, p in shares)
        return cost + sum(p * value(frozenset(s.items())) for s, p in states)

    @cache
    def value(state):
        known = dict(state)
        wanted = choices(known)
        tries = [(f, c) for f, c in buys if any(j in wanted for j in f)]
        return min((buy(known, f, c) for f, c in tries), default=0.0)

    return value(frozenset())


def optimal_cost(
    tree, X, costs, groups=None, distribution="empirical", sample_weight=None
):
    """Least expected cost of knowing the label."""
    cuts = thresholds([tree])

    def choices(known):
        return cuts.keys() - known if len(reach(tree, known)) > 1 else ()

    return _expected_cost(tree, X, costs, groups, distribution, sample_weight, choices)


def path_cost(
    tree,
    X,
    costs,
    groups=None,
    distribution="empirical",
    sample_weight=None,
    early_stop=False,
):
    """Expected cost of buying what the tree tests next, down to the leaf.

    With `early_stop`, only until the label is known.
    """

    def choices(known):
        if early_stop and len(reach(tree, known)) == 1:
            return ()
        node = tree
        while node.get("feature") in known:
            j = node["feature"]
            node = node["true" if known[j] <= node["threshold"] else "false"]
        return [node["feature"]] if "feature" in node else ()

    return _expected_cost(tree, X, costs, groups, distribution, sample_weight, choices)


# Data and trees


LINES = [
    *((0, 1, 2), (3, 4, 5), (6, 7, 8)),
    *((0, 3, 6), (1, 4, 7), (2, 5, 8)),
    *((0, 4, 8), (2, 4, 6)),
]


def tic_tac_toe():
    """The 958 boards at the end of a game, and whether x has won.

    The columns are "is o" and "is x" of the first square, then of the second, ...
    """
    ends = set()

    def has_won(board, player):
        return any(all(board[i] == player for i in line) for line in LINES)

    def play(board, player, other):
        if has_won(board, other) or "b" not in board:
            ends.add(board)
            return
        for i in range(9):
            if board[i] == "b":
                play(board[:i] + player + board[i + 1 :], other, player)

    play("b" * 9, "x", "o")
    boards = sorted(ends)
    X = [[float(square == p) for square in board for p in "ox"] for board in boards]
    return np.array(X), np.array([int(has_won(board, "x")) for board in boards])


def from_sklearn(estimator):
    """Nested dict of a fitted scikit-learn classifier; labels are class indices.

    Thresholds are the largest float32 that are not above the fitted ones.
    """
    t = estimator.tree_

    def node(i):
        if t.children_left[i] < 0:
            value = (t.value[i, 0] / t.value[i, 0].sum()).tolist()
            total = float(t.weighted_n_node_samples[i])
            label = int(np.argmax(t.value[i, 0]))
            return {"prediction": label, "value": value, "weight": total}
        threshold = np.float32(t.threshold[i])
        if float(threshold) > t.threshold[i]:
            threshold = np.nextafter(threshold, np.float32(-np.inf))
        return {
            "feature": int(t.feature[i]),
            "threshold": float(threshold),
            "true": node(t.children_left[i]),
            "false": node(t.children_right[i]),
        }

    return node(0)


def with_weights(tree, X, sample_weight=None):
    """Copy of the tree whose leaves weigh what the rows of `X` in them weigh."""
    w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    if "feature" not in tree:
        return {**tree, "weight": float(w.sum())}
    goes = np.asarray(X)[:, tree["feature"]] <= tree["threshold"]
    sides = {"true": goes, "false": ~goes}
    return tree | {s: with_weights(tree[s], X[m], w[m]) for s, m in sides.items()}


def split(j, t, true, false):
    """Split of two subtrees."""
    return {"feature": j, "threshold": t, "true": true, "false": false}


def tree_family(k):
    """Complete tree of distinct binary variables, with 2^(2^k) - 1 prime boxes of 1."""

    def node(depth, i):
        # The children of variable i are 2i + 1 and 2i + 2.
        if depth < 0:
            return {"prediction": 1 - i % 2}
        return split(i, 0.5, node(depth - 1, 2 * i + 1), node(depth - 1, 2 * i + 2))

    return node(k, 0)


def parity_tree(n, first=0, odd=0):
    """Parity of n binary features, each tested on each path."""
    if first == n:
        return {"prediction": odd}
    sides = [parity_tree(n, first + 1, odd), parity_tree(n, first + 1, 1 - odd)]
    return split(first, 0.5, *sides)


def restrict(tree, j, t, side):
    """The tree where x[j] <= t (side "true") or x[j] > t (side "false") is known."""
    if "feature" not in tree:
        return tree
    if tree["feature"] == j:
        if side == "true" and tree["threshold"] >= t:
            return restrict(tree["true"], j, t, side)
        if side == "false" and tree["threshold"] <= t:
            return restrict(tree["false"], j, t, side)
    return tree | {s: restrict(tree[s], j, t, side) for s in ("true", "false")}


def expand(tree, j, t):
    """Equal tree that tests x[j] <= t first."""
    return split(j, t, restrict(tree, j, t, "true"), restrict(tree, j, t, "false"))


# Strategies


@st.composite
def random_leaves(draw, n_classes=2, dead=False):
    """A leaf; one that no row reaches has no weight."""
    counts = draw(st.lists(st.integers(0, 3), min_size=n_classes, max_size=n_classes))
    counts = np.array(counts) if any(counts) else np.ones(n_classes, dtype=int)
    value = (counts / counts.sum()).tolist()
    weight = 0.0 if dead else float(draw(st.integers(0, 4)))
    return {"prediction": int(np.argmax(counts)), "value": value, "weight": weight}


@st.composite
def random_trees(
    draw, n_features=3, max_depth=3, thresholds=(0.0, 1.0, 2.0), n_classes=2
):
    """A tree; features repeat on paths, branches can be dead and siblings alike."""

    def node(depth, box):
        if depth == 0 or not draw(st.integers(0, 4)):
            dead = any(low >= high for low, high in box.values())
            return draw(random_leaves(n_classes, dead))
        j = draw(st.integers(0, n_features - 1))
        t = draw(st.sampled_from(thresholds))
        low, high = box.get(j, (-INF, INF))
        true = node(depth - 1, {**box, j: (low, min(high, t))})
        return split(j, t, true, node(depth - 1, {**box, j: (max(low, t), high)}))

    return node(max_depth, {})


@st.composite
def equivalent_pair(
    draw, n_features=3, max_depth=3, thresholds=(0.0, 1.0, 2.0), n_classes=2
):
    """Two trees of the same function (labels and values) with different splits.

    The weights of the second tree mean nothing: see `with_weights`.
    """

    def rewrite(tree, depth):
        if depth == 0 or (depth < 3 and draw(st.booleans())):
            return tree
        j = draw(st.integers(0, n_features - 1))
        tree = expand(tree, j, draw(st.sampled_from(thresholds)))
        return tree | {s: rewrite(tree[s], depth - 1) for s in ("true", "false")}

    tree = draw(random_trees(n_features, max_depth, thresholds, n_classes))
    return tree, rewrite(tree, 3)


def rows(n_features=3, values=(-1.0, 0.0, 0.5, 1.0, 2.0, 3.0), missing=True):
    """A row of some of the values, with NaN among them if `missing`."""
    values = st.sampled_from([*values, np.nan] if missing else values)
    row = st.lists(values, min_size=n_features, max_size=n_features)
    return row.map(np.array)


def tables(n_rows=12, n_features=3, values=(-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)):
    """Complete rows, (n_rows, n_features)."""
    row = rows(n_features, values, missing=False)
    return st.lists(row, min_size=1, max_size=n_rows).map(np.array)
