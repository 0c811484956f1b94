"""Why a row has its label: all reasons, against all sets of features."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pysat.examples.hitman import Hitman
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skextra.tree import BooleanTree, BudgetExceededError, explain_tree, value_interval
from skextra.tree._explanations import (
    as_positions,
    cheapest_hitting_sets,
    hitting_sets,
    minimal,
)
from tests.tree import reference as ref
from tests.tree.common import examples, fitted
from tests.tree.peers import pyxai_reasons

INF = np.inf


def sets(explanations):
    found = {frozenset(e.features) for e in explanations}
    assert len(found) == len(explanations)
    return found


def hit(A, B):
    return all(a & b for a, b in product(A, B))


determined = st.tuples(
    ref.random_trees(4, 4, (0.0, 1.0), n_classes=3), ref.rows(4)
).filter(lambda case: len(ref.possible(*case)) == 1)


@examples(200)
@given(determined, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_all_reasons(case, costs):
    tree, x = case
    (label,) = ref.possible(tree, x)
    model = fitted(tree, n_features=4, acquisition_costs=costs)
    found = {}
    for kind, expected in (("abductive", ref.axps), ("contrastive", ref.cxps)):
        every = model.explain(x, kind, max_explanations="all")
        assert all(tuple(e.bounds) == e.features for e in every)
        found[kind] = sets(every)
        assert found[kind] == expected(tree, x)

        # The cheapest come first.
        price = {s: sum(costs[j] for j in s) for s in found[kind]}
        ordered = model.explain(x, kind, "cost", max_explanations="all")
        assert sets(ordered) == found[kind]
        assert [price[frozenset(e.features)] for e in ordered] == sorted(price.values())

        for minimize in ("subset", "cost"):
            some = model.explain(x, kind, minimize, max_explanations=2)
            assert len(some) == min(2, len(every)) and sets(some) <= found[kind]
            one = model.explain(x, kind, minimize)
            assert len(one) == min(1, len(every)) and sets(one) <= found[kind]
            if minimize == "cost" and one:
                assert price[frozenset(one[0].features)] == min(price.values())
        # Rows as a list, and functions on trees, say the same.
        assert model.explain([x], kind, max_explanations="all") == [every]
        assert explain_tree(model, [x], kind, max_explanations="all") == [every]
    assert hit(found["abductive"], found["contrastive"])
    assert all(e.label == label for e in model.explain(x))


@examples(100)
@given(determined)
def test_hitting_sets(case):
    tree, x = case
    model = fitted(tree, n_features=4)
    reasons = sets(model.explain(x, max_explanations="all"))
    changes = sets(model.explain(x, "contrastive", max_explanations="all"))
    for these, others in ((changes, reasons), (reasons, changes)):
        if these and frozenset() not in these:
            with Hitman(bootstrap_with=[set(s) for s in these], htype="sorted") as h:
                assert {frozenset(s) for s in h.enumerate()} == others


@examples(250)
@given(determined, st.booleans())
def test_bounds_imply_the_label(case, inflate):
    tree, x = case
    (label,) = ref.possible(tree, x)
    cuts = {j: {-INF, INF} for j in range(4)}
    for _, box in ref.leaves(tree):
        if all(low < high for low, high in box.values()):
            for j, ends in box.items():
                cuts[j].update(ends)
    for e in fitted(tree, n_features=4).explain(
        x, inflate=inflate, max_explanations="all"
    ):
        assert e.label == label
        assert all(low < x[j] <= high for j, (low, high) in e.bounds.items())
        assert ref.labels_in(tree, e.bounds) == {label}
        for j, (low, high) in e.bounds.items():
            ends = sorted(cuts[j])
            at = ends.index(low), ends.index(high)
            if not inflate:
                assert at[1] == at[0] + 1
                continue
            # One cell more on any side has another label.
            wider = [(ends[at[0] - 1], high)] if low > -INF else []
            wider += [(low, ends[at[1] + 1])] if high < INF else []
            for bounds in wider:
                assert len(ref.labels_in(tree, e.bounds | {j: bounds})) > 1


@examples(250)
@given(determined)
def test_contrastive_bounds_change_the_label(case):
    tree, x = case
    (label,) = ref.possible(tree, x)
    for e in fitted(tree, n_features=4).explain(
        x, "contrastive", max_explanations="all"
    ):
        assert e.label != label
        # The others as they are: some completion has the new label; all do if known.
        box = {j: (np.nextafter(v, -INF), v) for j, v in enumerate(x) if v == v}
        labels = ref.labels_in(tree, box | e.bounds)
        assert e.label in labels
        if not np.isnan(x).any():
            assert labels == {e.label}
        for j, (low, high) in e.bounds.items():
            assert not low < x[j] <= high and low < high


def test_undetermined_and_budget():
    X, y = load_iris(return_X_y=True)
    model = BooleanTree(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"any of \[0, 1, 2\]"):
        model.explain(np.full(4, np.nan))
    with pytest.raises(ValueError, match="Row 1"):
        model.explain([X[0], np.full(4, np.nan)])
    parity = fitted(ref.parity_tree(6), 2, 6, max_terms=5)
    assert parity.explain(np.zeros(6))[0].features == tuple(range(6))
    assert len(parity.explain(np.zeros(6), max_explanations="all")) == 1
    with pytest.raises(BudgetExceededError, match="max_terms"):
        parity.explain(np.zeros(6), "contrastive", max_explanations="all")


def test_constant_tree_has_the_empty_reason():
    model = fitted({"prediction": 1}, 2, 2)
    for x in ([0.0, 1.0], [np.nan, np.nan]):
        assert model.explain(x, max_explanations="all") == [((), {}, 1)]
        assert model.explain(x, minimize="cost", max_explanations=3) == [((), {}, 1)]
        assert model.explain(x, "contrastive") == []


GROUPS = [[[0, 1, 2]], [[0, 2], [1, 3]], [[1, 2, 4], [0, 3]], [[0, 1]]]


@examples(200)
@given(
    ref.random_trees(5, 4, (0.5,), n_classes=3),
    ref.rows(5, (0.0, 1.0)),
    st.sampled_from(GROUPS),
    st.booleans(),
)
def test_one_hot_groups(tree, x, groups, inflate):
    every = [np.array(z, float) for z in product([0, 1], repeat=5)]
    every = [z for z in every if all(z[list(g)].sum() == 1 for g in groups)]

    def labels(kept):
        rows = [z for z in every if all(z[j] == x[j] for j in kept)]
        return {ref.evaluate(tree, z) for z in rows}

    known = frozenset(np.flatnonzero(~np.isnan(x)).tolist())
    assume(len(labels(known)) == 1)
    (label,) = labels(known)
    params = {"feature_domains": dict.fromkeys(range(5), "binary")}
    model = fitted(tree, n_features=5, one_hot_groups=groups, **params)
    reasons = ref.minimal(s for s in ref.subsets(known) if len(labels(s)) == 1)
    changes = ref.minimal(s for s in ref.subsets(known) if len(labels(known - s)) > 1)
    found = model.explain(x, inflate=inflate, max_explanations="all")
    assert sets(found) == reasons
    assert sets(model.explain(x, inflate=inflate)) <= reasons
    for e in found:
        rows = [z for z in every if inside(e.bounds, z)]
        assert inside(e.bounds, x) and {ref.evaluate(tree, z) for z in rows} == {label}
    found = model.explain(x, "contrastive", max_explanations="all")
    assert sets(found) == changes
    for e in found:
        fixed = known - set(e.features)
        rows = [z for z in every if inside(e.bounds, z)]
        rows = [z for z in rows if all(z[j] == x[j] for j in fixed)]
        after = {ref.evaluate(tree, z) for z in rows}
        assert e.label != label and e.label in after
        if len(known) == 5:
            assert after == {e.label}


def inside(bounds, x):
    return all(low < x[j] <= high for j, (low, high) in bounds.items())


TESTS = {0: ("a", 0.0), 1: ("a", 1.0), 2: ("a", 2.0), 3: ("b", 0.0), 4: ("b", 1.0)}
SOURCES = np.array(list(product([-1.0, 0.5, 1.5, 3.0], [-1.0, 0.5, 2.0], [0.0, 1.0])))
BITS = np.column_stack(
    [*(SOURCES[:, "ab".index(name)] <= t for name, t in TESTS.values()), SOURCES[:, 2]]
)
COLUMNS = [[0, 1, 2], [3, 4], [5]]


@examples(200)
@given(
    ref.random_trees(6, 4, (0.5,), n_classes=3),
    st.sampled_from(list(BITS)),
    st.lists(st.sampled_from([0, 0, 1]), min_size=6, max_size=6),
    st.booleans(),
)
def test_threshold_map(tree, x, hidden, inflate):
    """Features that explain are the sources, each with all that its tests tell."""
    x = np.where(hidden, np.nan, x)

    def labels(kept):
        columns = [c for j in kept for c in COLUMNS[j] if not np.isnan(x[c])]
        rows = BITS[(BITS[:, columns] == x[columns]).all(axis=1)]
        return {ref.evaluate(tree, z) for z in rows}

    assume(len(labels(range(3))) == 1)
    (label,) = labels(range(3))
    every = frozenset(range(3))
    reasons = ref.minimal(s for s in ref.subsets(every) if len(labels(s)) == 1)
    changes = ref.minimal(s for s in ref.subsets(every) if len(labels(every - s)) > 1)
    model = fitted(tree, n_features=6, threshold_map=TESTS)
    found = model.explain(x, inflate=inflate, max_explanations="all")
    assert sets(found) == reasons
    for e in found:
        rows = [z for z, a in zip(BITS, SOURCES) if inside(e.bounds, a)]
        assert {ref.evaluate(tree, z) for z in rows} == {label}
    found = model.explain(x, "contrastive", max_explanations="all")
    assert sets(found) == changes


# Fitted trees


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_fitted_trees(load):
    X, y = load(return_X_y=True)
    model = BooleanTree(random_state=0).fit(X, y)
    rows = X[::40]
    labels = model.predict(rows)
    rng = np.random.default_rng(0)
    for x, label in zip(rows, labels):
        (e,) = model.explain(x, inflate=True)
        others = rng.permuted(X, axis=0)
        Z = others.copy()
        Z[:, e.features] = x[list(e.features)]
        assert (model.predict(Z) == label).all()
        keep = np.array([inside(e.bounds, z) for z in others])
        assert (model.predict(others)[keep] == label).all()
        for j in e.features:
            fewer = x.copy()
            fewer[[k for k in range(len(x)) if k not in e.features or k == j]] = np.nan
            assert not model.is_determined([fewer])[0]
        for e in model.explain(x, "contrastive", max_explanations=3):
            z = x.copy()
            for j, (low, high) in e.bounds.items():
                z[j] = high if np.isfinite(high) else low + 1
            assert model.predict([z])[0] == e.label != label


@examples(40)
@given(st.integers(0, 2**31), st.booleans())
def test_regression(seed, hide):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (40, 4)).astype(float)
    y = rng.integers(0, 3, 40).astype(float)
    reg = DecisionTreeRegressor(max_depth=4, random_state=seed).fit(X, y)
    x = X[0].copy()
    if hide:
        x[rng.integers(4)] = np.nan
        assume(np.ptp(value_interval(reg, [x])[0]) == 0)
    value = value_interval(reg, [x])[0, 0]
    # The same tree, whose labels are the leaves' values.
    t = reg.tree_

    def nested(i):
        if t.children_left[i] < 0:
            return {"prediction": t.value[i, 0, 0]}
        sides = nested(t.children_left[i]), nested(t.children_right[i])
        return ref.split(int(t.feature[i]), float(t.threshold[i]), *sides)

    tree = nested(0)
    for kind, expected in (("abductive", ref.axps), ("contrastive", ref.cxps)):
        (found,) = explain_tree(reg, [x], kind, max_explanations="all")
        assert sets(found) == expected(tree, x)
        for e in found:
            assert (e.label == value) == (kind == "abductive")
    for e in explain_tree(reg, [x], inflate=True)[0]:
        assert ref.labels_in(tree, e.bounds) == {value}
    costs = [1, 3, 2, 5]
    (found,) = explain_tree(reg, [x], minimize="cost", costs=costs)
    price = min(sum(costs[j] for j in s) for s in ref.axps(tree, x))
    assert sum(costs[j] for j in found[0].features) == price


@pytest.mark.parametrize("seed", range(4))
def test_pyxai_agrees(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (120, 6))
    y = (X[:, 0] & X[:, 1]) | (X[:, 2] & X[:, 3] ^ (rng.random(120) < 0.1))
    clf = DecisionTreeClassifier(max_depth=5, random_state=seed).fit(X, y)
    model = BooleanTree.from_tree(clf)
    for x in X[:6]:
        reasons, changes = pyxai_reasons(clf, x)
        assert sets(model.explain(x, max_explanations="all")) == reasons
        found = model.explain(x, "contrastive", max_explanations="all")
        assert sets(found) == changes


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1e9, 1e300])
def test_the_cheapest_does_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(0)
    X = rng.random((120, 7))
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    tree.fit(X, rng.integers(3, size=120))
    costs = (1 + 1e-9 * rng.random(7)) * unit
    settings = {"minimize": "cost", "max_explanations": "all", "costs": costs}
    for found in explain_tree(tree, X[:20], **settings):
        prices = [costs[list(explanation.features)].sum() for explanation in found]
        assert_array_equal(prices, np.sort(prices))
    one = explain_tree(tree, X[:20], **settings | {"max_explanations": 1})
    several = explain_tree(tree, X[:20], **settings)
    assert one == [found[:1] for found in several]


@examples(300)
@given(st.lists(st.integers(1, 63), max_size=7), st.lists(st.floats(0, 9), min_size=6))
def test_minimal_hitting_sets(barriers, costs):
    barriers, costs = minimal(barriers), np.array(costs[:6])
    hitting = [s for s in range(64) if all(s & b for b in barriers)]
    smallest = {s for s in hitting if not any(t & s == t != s for t in hitting)}
    found = list(hitting_sets(barriers))
    assert len(found) == len(smallest) and set(found) == smallest
    by_cost = list(cheapest_hitting_sets(barriers, costs))
    assert len(by_cost) == len(smallest) and set(by_cost) == smallest
    prices = [costs[as_positions(s)].sum() for s in by_cost]
    assert_allclose(prices, np.sort(prices))
