"""Predictions from incomplete rows, against all ways to complete them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skextra.tree import BooleanTree, value_interval
from tests.tree import reference as ref
from tests.tree.common import examples, fitted

LOADERS = [load_iris, load_wine, load_digits, load_breast_cancer]
NO, YES = {"prediction": 0}, {"prediction": 1}


def without_some(X, share, seed=0):
    unknown = np.random.default_rng(seed).random(X.shape) < share
    return np.where(unknown, np.nan, X)


def one_label(tree):
    """Copy of the tree whose leaves are sure of their label."""
    if "feature" not in tree:
        return {"prediction": tree["prediction"]}
    return tree | {side: one_label(tree[side]) for side in ("true", "false")}


def path_over(tree, rows):
    """Distribution when each split sends an unknown row where completions go."""
    if "feature" not in tree:
        return np.array(tree["value"])
    goes = np.array([x[tree["feature"]] <= tree["threshold"] for x in rows])
    if goes.all() or not goes.any():
        return path_over(tree["true" if goes.all() else "false"], rows)
    rows, weights = np.array(rows), [ref.weight(tree[s]) for s in ("true", "false")]
    share = weights[0] / sum(weights) if sum(weights) else 0.5
    p, q = path_over(tree["true"], rows[goes]), path_over(tree["false"], rows[~goes])
    return share * p + (1 - share) * q


def check_row(model, tree, x, rows):
    """Check all predictions for a row against its completions."""
    values = [ref.find_leaf(tree, z)["value"] for z in rows]
    labels = sorted({ref.evaluate(tree, z) for z in rows})
    assert np.flatnonzero(model.predict_set([x])[0]).tolist() == labels
    assert model.is_determined([x])[0] == (len(labels) == 1)
    interval = model.predict_interval([x])[0]
    assert_array_equal(interval[:, 0], np.min(values, axis=0))
    assert_array_equal(interval[:, 1], np.max(values, axis=0))
    proba = model.predict_proba([x])[0]
    assert_allclose(proba, path_over(tree, rows), rtol=0, atol=1e-12)
    assert abs(proba.sum() - 1) < 1e-12
    expected = labels[0] if len(labels) == 1 else proba.argmax()
    assert model.predict([x])[0] == expected


@examples(400)
@given(ref.random_trees(n_classes=3), ref.rows())
def test_all_completions(tree, x):
    model = fitted(tree)
    check_row(model, tree, x, ref.completions(tree, x))
    assert set(np.flatnonzero(model.predict_set([x])[0])) == ref.possible(tree, x)
    bounds = np.transpose(ref.value_bounds(tree, x))
    assert_array_equal(model.predict_interval([x])[0], bounds)
    assert_array_equal(value_interval(model, [x])[0], bounds)
    expected = ref.path_proba(tree, x)
    assert_allclose(model.predict_proba([x])[0], expected, rtol=0, atol=1e-12)


@examples(200)
@given(ref.random_trees(n_classes=3, max_depth=4), ref.rows(), ref.tables())
def test_weights_from_rows(tree, x, X):
    model = fitted(tree, X=X)
    expected = ref.path_proba(ref.with_weights(tree, X), x)
    assert_allclose(model.predict_proba([x])[0], expected, rtol=0, atol=1e-12)


@examples(300)
@given(ref.random_trees(n_classes=3, max_depth=4), ref.rows(), ref.tables())
def test_marginal(tree, x, X):
    model = fitted(tree, X=X, missing="marginal")
    expected = ref.marginal_proba(tree, x, X)
    proba = model.predict_proba([x])[0]
    assert_allclose(proba, expected, rtol=0, atol=1e-12)
    assert abs(proba.sum() - 1) < 1e-12


@examples(200)
@given(ref.equivalent_pair(n_classes=3), ref.rows(), ref.tables())
def test_marginal_depends_on_the_function(pair, x, X):
    p, q = (
        fitted(one_label(tree), X=X, missing="marginal").predict_proba([x])
        for tree in pair
    )
    assert_allclose(p, q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("missing", ["path", "marginal"])
def test_fitted_trees(missing, weighted):
    X, y = load_wine(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    weight = np.random.default_rng(0).uniform(0, 2, len(y)) if weighted else None
    model = BooleanTree(max_depth=4, missing=missing, random_state=0)
    model.fit(X, y, sample_weight=weight)
    tree = ref.from_sklearn(model.estimator_)
    rows = without_some(X[::2], 0.6)
    if missing == "path":
        expected = [ref.path_proba(tree, x) for x in rows]
    else:
        expected = [ref.marginal_proba(tree, x, X, weight) for x in rows]
    assert_allclose(model.predict_proba(rows), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("missing", ["path", "marginal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_complete_rows_are_those_of_sklearn(load, missing, dtype):
    X, y = load(return_X_y=True)
    X = X.astype(dtype)
    for params in ({}, {"min_samples_leaf": 5}, {"max_leaf_nodes": 7}):
        model = BooleanTree(missing=missing, random_state=0, **params).fit(X, y)
        tree = DecisionTreeClassifier(random_state=0, **params).fit(X, y)
        jittered = X + np.random.default_rng(0).normal(0, X.std(axis=0), X.shape)
        for Z in (X, jittered):
            proba = tree.predict_proba(Z)
            assert_array_equal(model.predict_proba(Z), proba)
            assert_array_equal(model.predict_interval(Z)[..., 0], proba)
            assert_array_equal(model.predict_interval(Z)[..., 1], proba)
            assert_array_equal(model.predict(Z), tree.predict(Z))
            assert model.is_determined(Z).all()


@pytest.mark.parametrize("load", LOADERS)
def test_less_known_leaves_more_open(load):
    X, y = load(return_X_y=True)
    model = BooleanTree(random_state=0).fit(X, y)
    rank = np.random.default_rng(0).random(X.shape)
    # The same values go first.
    rows = [np.where(rank < share, np.nan, X) for share in (0.2, 0.5, 0.8, 1)]
    for more, less in zip(rows, rows[1:]):
        assert not (model.predict_set(more) & ~model.predict_set(less)).any()
        a, b = model.predict_interval(more), model.predict_interval(less)
        assert (b[..., 0] <= a[..., 0]).all() and (a[..., 1] <= b[..., 1]).all()
        both = model.is_determined(less)
        assert model.is_determined(more)[both].all()
        assert_array_equal(model.predict(more)[both], model.predict(less)[both])


@pytest.mark.parametrize("load", LOADERS)
@pytest.mark.parametrize("missing", ["path", "marginal"])
def test_random_completions(load, missing):
    X, y = load(return_X_y=True)
    X, y = X[::3], y[::3]
    model = BooleanTree(missing=missing, random_state=0).fit(X, y)
    rows = without_some(X, 0.5)
    known, proba = model.is_determined(rows), model.predict_proba(rows)
    possible, interval = model.predict_set(rows), model.predict_interval(rows)
    assert 0 < known.mean() < 1
    assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (interval[..., 0] - 1e-12 <= proba).all()
    assert (proba <= interval[..., 1] + 1e-12).all()
    rng = np.random.default_rng(1)
    for _ in range(100):
        other = rng.permuted(X, axis=0)
        full = np.where(np.isnan(rows), other, rows)
        label, p = model.predict(full), model.predict_proba(full)
        assert_array_equal(label[known], model.predict(rows)[known])
        assert possible[np.arange(len(X)), np.searchsorted(model.classes_, label)].all()
        assert (interval[..., 0] <= p).all() and (p <= interval[..., 1]).all()


def test_more_than_64_classes():
    X = np.array(list(product(range(9), repeat=2)), float)
    y = np.random.default_rng(0).permutation(81) + 100
    model = BooleanTree(random_state=0).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    tree = ref.from_sklearn(model.estimator_)
    assert model.predict_set([[np.nan, np.nan]]).sum() == 81
    for x in [(np.nan, 3), (5, np.nan), (4, 4)]:
        found = np.flatnonzero(model.predict_set([x])[0])
        assert set(found) == ref.possible(tree, np.array(x, float))


def test_regression():
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X @ [1, 2, 3])
    rows = without_some(X, 0.5)
    found = value_interval(tree, rows)
    for x, (low, high) in zip(rows, found):
        values = np.where(np.isnan(x), X, x)
        predicted = tree.predict(values)
        assert low <= predicted.min() and predicted.max() <= high
    assert_array_equal(value_interval(tree, X), tree.predict(X)[:, None].repeat(2, 1))
    nothing = value_interval(tree, np.full((1, 3), np.nan))[0]
    leaves = tree.tree_.value[tree.tree_.children_left < 0]
    assert_array_equal(nothing, [leaves.min(), leaves.max()])


# Domains, groups and known thresholds


def complete(x, values):
    """All rows that agree with `x`, from the values of each feature."""
    free = [v if np.isnan(known) else [known] for v, known in zip(values, x)]
    return [np.array(z, float) for z in product(*free)]


fractions = (-0.5, 0.0, 0.2, 0.9, 1.0, 1.5)


@examples(200)
@given(ref.random_trees(n_classes=3, thresholds=fractions), st.data())
def test_domains(tree, data):
    kinds = data.draw(
        st.lists(st.sampled_from(["binary", "integer"]), min_size=3, max_size=3)
    )
    values = [[0.0, 1.0] if kind == "binary" else range(-2, 4) for kind in kinds]
    x = np.array([data.draw(st.sampled_from([*v, np.nan])) for v in values], float)
    X = [[data.draw(st.sampled_from(v)) for v in values] for _ in range(4)]
    X = np.array(X, float)
    model = fitted(tree, X=X, feature_domains=dict(enumerate(kinds)))
    tree = ref.with_weights(tree, X)
    check_row(model, tree, x, complete(x, values))


GROUPS = [[[0, 1, 2]], [[0, 2], [1, 3]], [[1, 2, 4], [0, 3]], [[0, 1]]]


@examples(250)
@given(
    ref.random_trees(5, 4, (0.5,), n_classes=3),
    ref.rows(5, (0.0, 1.0)),
    st.sampled_from(GROUPS),
    st.data(),
)
def test_one_hot_groups(tree, x, groups, data):
    every = [np.array(z, float) for z in product([0, 1], repeat=5)]
    every = [z for z in every if all(z[list(g)].sum() == 1 for g in groups)]
    X = np.array(data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=5)))
    model = fitted(tree, n_features=5, X=X, one_hot_groups=groups)
    tree = ref.with_weights(tree, X)
    rows = [z for z in every if ((x == z) | np.isnan(x)).all()]
    if not rows:
        with pytest.raises(ValueError, match="exactly one 1"):
            model.predict([x])
        return
    check_row(model, tree, x, rows)
    # Several rows at once are as each alone.
    proba = model.predict_proba([x, *every])
    assert_allclose(proba[:1], model.predict_proba([x]), rtol=1e-14)
    assert_array_equal(proba[1:], [ref.find_leaf(tree, z)["value"] for z in every])
    assert_array_equal(model.predict(every), [ref.evaluate(tree, z) for z in every])


TESTS = {0: ("a", 0.0), 1: ("a", 1.0), 2: ("a", 2.0), 3: ("b", 0.0), 4: ("b", 1.0)}
SOURCES = list(product([-1.0, 0.5, 1.5, 3.0], [-1.0, 0.5, 2.0], [0.0, 1.0]))


def bits_of(a, b, c):
    source = {"a": a, "b": b}
    return np.array([*(source[name] <= t for name, t in TESTS.values()), c], float)


EVERY = np.array([bits_of(*row) for row in SOURCES])


@examples(300)
@given(
    ref.random_trees(6, 3, (0.5,), n_classes=3),
    ref.rows(6, (0.0, 1.0)),
    st.lists(st.sampled_from(SOURCES), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.booleans(),
)
def test_threshold_map(tree, x, rows, hidden, consistent):
    X = np.array([bits_of(*row) for row in rows])
    if consistent:  # bits of a row of the sources, some of them lost
        x = np.where(hidden, np.nan, X[0])
    model = fitted(tree, n_features=6, threshold_map=TESTS, X=X)
    assert set(model.source_features_) == {"a", "b", "x5"}
    tree = ref.with_weights(tree, X)
    rows = list(EVERY[((x == EVERY) | np.isnan(x)).all(axis=1)])
    if not rows:
        with pytest.raises(ValueError, match="contradicts"):
            model.predict([x])
        return
    check_row(model, tree, x, rows)
    assert_array_equal(model.predict(EVERY), [ref.evaluate(tree, z) for z in EVERY])


def test_threshold_map_uses_bits_off_the_tree():
    tree = ref.split(1, 0.5, NO, YES)  # whether a <= 1
    model = fitted(tree, 2, 6, threshold_map=TESTS)
    unknown = np.full((3, 6), np.nan)
    unknown[0, 0] = 1  # a <= 0
    unknown[1, 2] = 0  # a > 2
    unknown[2, 2] = 1  # a <= 2 does not tell
    assert model.is_determined(unknown).tolist() == [True, True, False]
    assert model.predict(unknown)[:2].tolist() == [1, 0]
    unknown[0, 2] = 0  # a <= 0 and a > 2
    with pytest.raises(ValueError, match="contradicts"):
        model.predict(unknown)


def test_deep_tree():
    tree = YES
    for i in range(2000):
        tree = ref.split(i % 3, -float(i), {"prediction": i % 2}, tree)
    # From the root down the thresholds grow; each split can end the path.
    model = fitted(tree, 2)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2100, 100, (300, 3))
    assert_array_equal(model.predict(X), [ref.evaluate(tree, x) for x in X])
    X[:, 1] = np.nan
    found = model.predict_set(X)
    for x, possible in zip(X, found):
        values = rng.uniform(-2100, 100, 20)
        labels = {ref.evaluate(tree, np.array([x[0], v, x[2]])) for v in values}
        assert labels <= set(np.flatnonzero(possible))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-12)
    assert model.n_leaves_ == 2001
