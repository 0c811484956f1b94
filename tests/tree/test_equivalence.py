"""Two trees are the same function, or a row shows that they are not."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skextra.tree import (
    BooleanTree,
    essential_thresholds,
    tree_counterexample,
    trees_equivalent,
    unique_trees,
)
from tests.tree import reference as ref
from tests.tree.common import examples, fitted
from tests.tree.peers import bdd_count, bdd_equal

NO, YES = {"prediction": 0}, {"prediction": 1}
HALVES = {"thresholds": (0.5,)}


def stump(t):
    return ref.split(0, t, NO, YES)


def check(a, b, equal, differ, output="label"):
    """Check the verdict on two BooleanTrees, and the row that refutes equality."""
    x = tree_counterexample(a, b, output)
    assert (x is None) == equal == trees_equivalent(a, b, output)
    assert a.equivalent_to(b, output) == b.equivalent_to(a, output) == equal
    if x is not None:
        assert np.isfinite(x).all() and differ(x)


@st.composite
def similar_pair(draw, **options):
    """Equal trees, of which one has perhaps another leaf somewhere."""
    a, b = draw(ref.equivalent_pair(**options))
    change = draw(st.integers(-1, sum(1 for _ in ref.leaves(b)) - 1))
    other = draw(ref.random_leaves(options.get("n_classes", 2)))
    count = iter(range(1000))

    def copy(tree):
        if "feature" not in tree:
            return other if next(count) == change else tree
        return tree | {side: copy(tree[side]) for side in ("true", "false")}

    return a, copy(b)


pairs = st.one_of(
    ref.equivalent_pair(),
    similar_pair(),
    st.tuples(ref.random_trees(max_depth=2), ref.random_trees(max_depth=2)),
)


@examples(400)
@given(pairs)
def test_labels(pair):
    a, b = pair
    check(
        fitted(a, 2),
        fitted(b, 2),
        ref.equal(a, b),
        lambda x: ref.evaluate(a, x) != ref.evaluate(b, x),
    )


@examples(300)
@given(st.one_of(ref.equivalent_pair(n_classes=3), similar_pair(n_classes=3)))
def test_probabilities(pair):
    a, b = pair

    def differ(x):
        return ref.find_leaf(a, x)["value"] != ref.find_leaf(b, x)["value"]

    check(fitted(a, 3), fitted(b, 3), ref.equal_values(a, b), differ, "proba")


def test_probabilities_up_to_rounding():
    def leaf(p):
        return fitted({"prediction": 0, "value": [p, 1 - p]}, 2)

    assert trees_equivalent(leaf(0.6), leaf(0.6 + 1e-14), "proba")
    assert not trees_equivalent(leaf(0.6), leaf(0.6 + 1e-6), "proba")
    assert trees_equivalent(leaf(0.6), leaf(0.7))


def test_constant_trees():
    x = ref.split(1, 0.0, YES, YES)
    dead = ref.split(0, 1.0, YES, ref.split(0, 1.0, NO, YES))
    for a, b in product([YES, x, dead], repeat=2):
        assert trees_equivalent(a, b)
    assert_array_equal(tree_counterexample(fitted(YES, 2), fitted(NO, 2)), np.zeros(3))
    for tree in (x, dead):
        assert essential_thresholds(tree) == {}
        assert fitted(tree, 2).fingerprint_ == fitted(YES, 2).fingerprint_
        assert fitted(tree, 2).simplify().estimator_["prediction"] == 1
    assert unique_trees([]).representatives == []


@examples(200)
@given(ref.random_trees(n_classes=3))
def test_essential_thresholds(tree):
    expected = ref.essential(tree)
    model = fitted(tree, 3)
    for found in (model.essential_thresholds_, essential_thresholds(model)):
        assert {j: t.tolist() for j, t in found.items()} == expected
    assert model.relevant_features_.tolist() == list(expected)


@examples(200)
@given(ref.random_trees(n_classes=3))
def test_fingerprint_counts_cells(tree):
    thresholds, (in_all, *by_cell) = fitted(tree, 3).fingerprint_
    essential = ref.essential(tree)
    assert dict(thresholds) == {j: tuple(t) for j, t in essential.items()}
    assert dict(in_all) == ref.class_counts(tree)
    cells = [(j, cell) for j, t in essential.items() for cell in range(len(t) + 1)]
    found = {
        (label, *at): n
        for at, counts in zip(cells, by_cell, strict=True)
        for label, n in counts
    }
    assert found == ref.cell_counts(tree)


@examples(150)
@given(ref.equivalent_pair(n_features=4, max_depth=4, n_classes=3))
def test_equal_trees_share_the_fingerprint(pair):
    a, b = (fitted(tree, 3, 4) for tree in pair)
    assert a.fingerprint_ == b.fingerprint_ and hash(a.fingerprint_)


def test_fingerprint_counts_beyond_int64():
    # 80 binary features in a row: label 1 has one of 2^80 cells.
    tree = YES
    for j in range(80):
        tree = ref.split(j, 0.5, NO, tree)
    _, (counts, *_) = fitted(tree, 2, n_features=80).fingerprint_
    assert dict(counts) == {0: 2**80 - 1, 1: 1}


@examples(150)
@given(st.data())
def test_unique_trees(data):
    small = dict(n_features=2, max_depth=2, thresholds=(0.0, 1.0))
    trees = data.draw(st.lists(ref.random_trees(**small), min_size=1, max_size=8))
    output = data.draw(st.sampled_from(["label", "proba"]))
    equal = ref.equal if output == "label" else ref.equal_values
    first = [next(j for j, b in enumerate(trees) if equal(a, b)) for a in trees]
    models = [fitted(tree, 2) for tree in trees]
    found = unique_trees(models, output)
    distinct = sorted(set(first))
    assert [found.representatives[i] for i in found.inverse] == [
        models[i] for i in first
    ]
    assert found.representatives == [models[i] for i in distinct]
    assert found.counts.tolist() == [first.count(i) for i in distinct]


@examples(120)
@given(ref.equivalent_pair(n_classes=3), ref.tables(), st.booleans(), st.data())
def test_simplify(pair, X, with_targets, data):
    tree = pair[1]
    y = data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X)))
    model = fitted(tree, 3, X=X, y=y if with_targets else None)
    simpler = model.simplify()
    grid = ref.grid([tree], 3)
    assert_array_equal(simpler.predict(grid), [ref.evaluate(tree, x) for x in grid])
    assert model.equivalent_to(simpler)
    assert simpler.n_leaves_ <= model.n_leaves_
    again = simpler.simplify()
    assert again.estimator_ == simpler.estimator_
    assert again.n_leaves_ == simpler.n_leaves_
    if not with_targets:
        assert model.equivalent_to(simpler, "proba")
        return
    # The leaves hold the shares of the rows in them.
    for leaf, box in ref.leaves(simpler.estimator_):
        inside = [
            k
            for x, k in zip(X, y)
            if all(low < x[j] <= high for j, (low, high) in box.items())
        ]
        assert leaf["weight"] == len(inside)
        if inside:
            shares = np.bincount(inside, minlength=3) / len(inside)
            np.testing.assert_allclose(leaf["value"], shares, rtol=1e-12)


def test_simplify_drops_splits_of_cart():
    X, y = load_iris(return_X_y=True)
    model = BooleanTree(min_samples_leaf=5, random_state=0).fit(X, y)
    simpler = model.simplify()
    assert simpler.n_leaves_ < model.n_leaves_
    assert trees_equivalent(simpler, model.estimator_)
    assert_array_equal(simpler.predict(X), model.predict(X))


@pytest.mark.parametrize("missing", ["path", "marginal"])
def test_simplified_tree_predicts_incomplete_rows(missing):
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    model = BooleanTree(min_samples_leaf=5, missing=missing, random_state=0).fit(X, y)
    simpler = model.simplify()
    tree, rng = simpler.estimator_, np.random.default_rng(0)
    rows = np.where(rng.random(X.shape) < 0.5, np.nan, X)
    if missing == "path":
        expected = [ref.path_proba(tree, x) for x in rows]
    else:
        expected = [ref.marginal_proba(tree, x, X) for x in rows]
    np.testing.assert_allclose(simpler.predict_proba(rows), expected, atol=1e-12)
    # What depends on the function alone stays.
    assert simpler.fingerprint_ == model.fingerprint_
    assert_array_equal(simpler.feature_importances_, model.feature_importances_)
    costs = [m.acquisition_policy().expected_cost_ for m in (model, simpler)]
    assert costs[1] <= costs[0] + 1e-12


@examples(60)
@given(ref.random_trees(n_classes=3), ref.tables(), ref.rows(), st.data())
def test_simplified_random_trees_predict_incomplete_rows(tree, X, x, data):
    y = data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X)))
    simpler = fitted(tree, 3, X=X, y=y, missing="marginal").simplify()
    expected = ref.marginal_proba(simpler.estimator_, x, X)
    np.testing.assert_allclose(simpler.predict_proba([x])[0], expected, atol=1e-12)


# Regression


@examples(60)
@given(st.integers(0, 2**31), st.integers(0, 2), st.integers(0, 26))
def test_regression_trees(seed, n_changed, where):
    # One row in each cell tells trees apart. Full trees are nearly always right.
    rng = np.random.default_rng(seed)
    X = np.array(list(product(range(3), repeat=3)), float)
    y = rng.choice(rng.normal(size=4), 27)
    order = rng.permutation(27)
    a = DecisionTreeRegressor(max_features=1, random_state=seed).fit(X, y)
    other = y.copy()
    other[where : where + n_changed] += 1
    b = DecisionTreeRegressor(max_features=1, random_state=seed // 2)
    b.fit(X[order], other[order])
    x = tree_counterexample(a, b)
    equal = np.allclose(a.predict(X), b.predict(X), rtol=1e-9)
    assert (x is None) == equal == trees_equivalent(a, b, "value")
    if x is not None:
        assert a.predict([x]) != b.predict([x])
    found = unique_trees([a, b, a])
    assert found.inverse.tolist() == [0, int(not equal), 0]


def test_regression_trees_of_other_depth():
    X = np.random.default_rng(0).normal(size=(100, 3))
    a, b = (
        DecisionTreeRegressor(max_depth=d, random_state=0).fit(X, X @ [3, 2, 1])
        for d in (3, 4)
    )
    x = tree_counterexample(a, b)
    assert a.predict([x]) != b.predict([x])
    with pytest.raises(ValueError, match="output"):
        trees_equivalent(a, b, "label")


# Precision and domains


def sklearn_stump(t):
    """Fitted stump of scikit-learn with this threshold."""
    clf = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], [0, 1])
    clf.tree_.threshold[0] = t
    assert clf.tree_.threshold[0] == t
    return clf


near_one = st.integers(-20, 20).map(lambda n: 1 + n * 2.0**-25)
anywhere = st.floats(-1e30, 1e30)


@examples(200)
@given(st.tuples(near_one, near_one) | st.tuples(anywhere, anywhere))
def test_float32_trees_differ_only_by_float32(thresholds):
    s, t = thresholds
    a, b = sklearn_stump(s), sklearn_stump(t)
    x = tree_counterexample(a, b)
    # Floats between two float32 do not tell the trees apart.
    below = [np.float32(v) for v in thresholds]
    below = [
        f if float(f) <= v else np.nextafter(f, np.float32(-np.inf))
        for f, v in zip(below, thresholds)
    ]
    assert (x is None) == (below[0] == below[1])
    if x is not None:
        assert a.predict([x]) != b.predict([x])
    # Float64 trees differ by float64, and as float32 trees beside these.
    x = tree_counterexample(stump(s), stump(t))
    assert (x is None) == (s == t)
    if x is not None:
        assert ref.evaluate(stump(s), x) != ref.evaluate(stump(t), x)
    x = tree_counterexample(a, stump(t))
    assert (x is None) == (below[0] == below[1])
    if x is not None:
        assert a.predict([x]) != ref.evaluate(stump(t), x)


def test_mixed_precisions_among_many():
    trees = [stump(1.0), sklearn_stump(1.0), stump(1 + 1e-12), stump(2.0)]
    assert unique_trees(trees).inverse.tolist() == [0, 0, 0, 1]
    assert len(unique_trees([stump(1.0), stump(1 + 1e-12)]).counts) == 2


fractions = (-0.5, 0.0, 0.2, 0.9, 1.0, 1.5)


@examples(300)
@given(
    similar_pair(thresholds=fractions),
    st.lists(st.sampled_from(["binary", "integer"]), min_size=3, max_size=3),
)
def test_domains(pair, kinds):
    a, b = pair
    domains = dict(enumerate(kinds))
    values = [[0.0, 1.0] if kind == "binary" else range(-2, 4) for kind in kinds]
    points = [np.array(x, float) for x in product(*values)]
    equal = all(ref.evaluate(a, x) == ref.evaluate(b, x) for x in points)

    def differ(x):
        assert list(x) in [list(p) for p in points]
        return ref.evaluate(a, x) != ref.evaluate(b, x)

    models = [fitted(tree, 2, feature_domains=domains) for tree in pair]
    check(*models, equal, differ)
    if equal:
        assert models[0].fingerprint_ == models[1].fingerprint_
    assert_array_equal(models[0].predict(points), [ref.evaluate(a, x) for x in points])


def one_hot_rows(n_features, groups):
    rows = [np.array(x, float) for x in product([0, 1], repeat=n_features)]
    return [x for x in rows if all(x[list(g)].sum() == 1 for g in groups)]


@examples(300)
@given(
    st.tuples(*[ref.random_trees(5, 3, (0.5,)) for _ in range(2)])
    | similar_pair(n_features=5, max_depth=3, thresholds=(0.5,)),
    st.sampled_from([[[0, 1, 2]], [[0, 2], [1, 3]], [[1, 2, 4], [0, 3]], [[0, 1]]]),
)
def test_one_hot_groups(pair, groups):
    a, b = pair
    rows = one_hot_rows(5, groups)
    labels = [[ref.evaluate(tree, x) for x in rows] for tree in pair]
    params = {"feature_domains": dict.fromkeys(range(5), "binary")}
    models = [fitted(t, 2, n_features=5, one_hot_groups=groups, **params) for t in pair]

    def differ(x):
        assert list(x) in [list(row) for row in rows]
        return ref.evaluate(a, x) != ref.evaluate(b, x)

    check(*models, labels[0] == labels[1], differ)
    simpler = models[0].simplify()
    assert simpler.n_leaves_ <= models[0].n_leaves_
    assert_array_equal(simpler.predict(rows), labels[0])


TESTS = {0: ("a", 0.0), 1: ("a", 1.0), 2: ("a", 2.0), 3: ("b", 0.0), 4: ("b", 1.0)}


@examples(200)
@given(similar_pair(n_features=6, max_depth=4, thresholds=(0.5,)))
def test_threshold_map(pair):
    a, b = pair
    sources = product([-1, 0.5, 1.5, 3], [-1, 0.5, 2], [0, 1])
    rows = [
        [*({"a": u, "b": v}[name] <= t for name, t in TESTS.values()), w]
        for u, v, w in sources
    ]
    labels = [[ref.evaluate(tree, x) for x in rows] for tree in pair]
    models = [fitted(tree, 2, n_features=6, threshold_map=TESTS) for tree in pair]

    def differ(x):
        # The tests of a feature agree with each other.
        assert x[0] <= x[1] <= x[2] and x[3] <= x[4] and set(x[:5]) <= {0, 1}
        return ref.evaluate(a, x) != ref.evaluate(b, x)

    check(*models, labels[0] == labels[1], differ)
    if labels[0] == labels[1]:
        assert models[0].fingerprint_ == models[1].fingerprint_
    simpler = models[0].simplify()
    assert_array_equal(simpler.predict(rows), labels[0])
    assert simpler.n_leaves_ <= models[0].n_leaves_


# Decision diagrams


@examples(200)
@given(similar_pair(n_features=5, max_depth=4, **HALVES))
def test_decision_diagrams_agree(pair):
    a, b = pair
    models = [fitted(tree, 2, n_features=5) for tree in pair]
    assert trees_equivalent(*models) == bdd_equal(a, b, 5)
    _, (counts, *_) = models[0].fingerprint_
    free = 5 - len(models[0].relevant_features_)
    for label in (0, 1):
        assert dict(counts).get(label, 0) << free == bdd_count(a, 5, label)
