"""Permutation importance over all pairs of rows, against the loop over the pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.inspection import permutation_importance
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skextra.tree import (
    BooleanTree,
    exact_permutation_importance,
    rashomon_importance,
    unique_trees,
)
from tests.tree import reference as ref
from tests.tree.common import examples, fitted

NO, YES = {"prediction": 0}, {"prediction": 1}


@st.composite
def labelled_tables(draw, values=(-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)):
    """Rows, labels and weights, of which at least one is positive."""
    X = draw(ref.tables(values=values))
    n = len(X)
    y = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    weight = draw(st.lists(st.sampled_from([0, 0.25, 1, 3]), min_size=n, max_size=n))
    return X, np.array(y), np.array(weight) + (0 if any(weight) else 1)


@examples(250)
@given(ref.random_trees(n_classes=3, max_depth=4), labelled_tables())
def test_all_pairs(tree, table):
    X, y, weight = table
    model = fitted(tree)
    for w in (None, weight):
        found = exact_permutation_importance(model, X, y, w)
        expected = ref.permutation_importance(tree, X, y, w)
        assert_allclose(found, expected, rtol=0, atol=1e-12)


@examples(100)
@given(ref.random_trees(n_classes=3, max_depth=4), labelled_tables())
def test_weights_are_copies(tree, table):
    X, y, _ = table
    counts = np.arange(len(y)) % 3 + 1
    model = fitted(tree)
    copies = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    assert_array_equal(
        exact_permutation_importance(model, X, y, counts),
        exact_permutation_importance(model, *copies),
    )
    # The order of the rows does not matter either.
    assert_array_equal(
        exact_permutation_importance(model, X, y),
        exact_permutation_importance(model, X[::-1], y[::-1]),
    )


@examples(150)
@given(ref.equivalent_pair(n_classes=3), labelled_tables())
def test_equal_trees_have_equal_importance(pair, table):
    X, y, _ = table
    a, b = (exact_permutation_importance(fitted(tree), X, y) for tree in pair)
    assert_array_equal(a, b)
    irrelevant = np.setdiff1d(range(3), fitted(pair[0]).relevant_features_)
    assert (a[irrelevant] == 0).all()
    p, q = (fitted(tree, X=X, y=y).feature_importances_ for tree in pair)
    assert_array_equal(p, q)
    clipped = np.maximum(a, 0)
    expected = clipped / clipped.sum() if clipped.any() else clipped
    assert_allclose(p, expected, rtol=1e-12)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_mean_of_shuffles(load):
    X, y = load(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    n = 400 if load is load_iris else 100
    shuffled = permutation_importance(tree, X, y, n_repeats=n, random_state=0)
    exact = exact_permutation_importance(tree, X, y)
    error = shuffled.importances_std / np.sqrt(n)
    assert (abs(shuffled.importances_mean - exact) <= 4.5 * error + 1e-12).all()


def test_row_by_row_on_fitted_tree():
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    accuracy = np.mean(tree.predict(X) == y)
    expected = []
    for j in range(4):
        # Row i with the value of row k, for all i and k.
        swapped = np.repeat(X, len(X), axis=0)
        swapped[:, j] = np.tile(X[:, j], len(X))
        right = tree.predict(swapped) == np.repeat(y, len(X))
        expected.append(accuracy - right.mean())
    assert_allclose(exact_permutation_importance(tree, X, y), expected, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_and_of_features(n):
    # All rows once: y = 1 only if all features are 1.
    X = np.array([[i >> j & 1 for j in range(n)] for i in range(2**n)], float)
    y = X.all(axis=1).astype(int)
    # Half of the swaps change the value, which matters in 2 of the 2^n rows.
    for order in (range(n), range(n)[::-1]):
        tree = YES
        for j in order:
            tree = ref.split(j, 0.5, NO, tree)
        found = exact_permutation_importance(fitted(tree, 2, n), X, y)
        assert_array_equal(found, np.full(n, 2.0**-n))
        shares = fitted(tree, 2, n, X=X, y=y).feature_importances_
        assert_allclose(shares, 1 / n, rtol=1e-15)


def test_impurity_decrease_depends_on_the_flowchart():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
    y = [0, 0, 0, 1]
    mdi, exact = set(), set()
    for seed in range(20):
        model = BooleanTree(random_state=seed).fit(X, y)
        mdi.add(tuple(model.estimator_.feature_importances_.round(4)))
        exact.add(tuple(model.feature_importances_))
    assert mdi == {(0.3333, 0.6667), (0.6667, 0.3333)}
    assert exact == {(0.5, 0.5)}


def test_constant_tree_and_rows_with_nan():
    X, y = load_iris(return_X_y=True)
    assert_array_equal(exact_permutation_importance(fitted(YES, 3, 4), X, y), 0)
    assert_array_equal(fitted(YES, 3, 4, X=X, y=y).feature_importances_, 0)
    X[::2, 2:] = np.nan
    model = BooleanTree(max_depth=3, random_state=0).fit(X, y)
    complete = exact_permutation_importance(model, X[1::2], y[1::2])
    assert_allclose(
        model.feature_importances_, complete.clip(0) / complete.clip(0).sum()
    )
    with pytest.raises(ValueError, match="NaN"):
        exact_permutation_importance(model, X, y)
    X[1::2, 3] = np.nan
    rows = X[:, :3], y
    model = BooleanTree(max_depth=3, random_state=0).fit(*rows)
    everywhere = BooleanTree.from_tree(
        model.estimator_, X=np.full((5, 3), np.nan), y=[0, 1, 2, 0, 1]
    )
    with pytest.warns(UserWarning, match="each training row has NaN"):
        assert_array_equal(everywhere.feature_importances_, 0)


def test_bad_input():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    for weight in (np.zeros(150), -np.ones(150)):
        with pytest.raises(ValueError, match="(?i)sample.weight"):
            exact_permutation_importance(tree, X, y, weight)
    with pytest.raises(ValueError):
        exact_permutation_importance(tree, X, y[:-1])
    with pytest.raises(TypeError, match="classification"):
        exact_permutation_importance(DecisionTreeRegressor().fit(X, y), X, y)
    with pytest.raises(ValueError, match="Set 1"):
        rashomon_importance([[tree], []], X, y)


# Sets of trees


@examples(100)
@given(
    st.lists(
        st.lists(ref.random_trees(max_depth=2, thresholds=(0.0, 1.0)), min_size=1),
        min_size=1,
        max_size=3,
    ),
    labelled_tables(),
    st.booleans(),
)
def test_rashomon_importance(tree_sets, table, deduplicate):
    X, y, _ = table
    sets = [[fitted(tree, 2) for tree in trees] for trees in tree_sets]
    values, weights = [], []
    for trees in tree_sets:
        if deduplicate:  # the first tree of each function
            trees = [
                tree
                for i, tree in enumerate(trees)
                if not any(ref.equal(tree, earlier) for earlier in trees[:i])
            ]
        values += [ref.permutation_importance(tree, X, y) for tree in trees]
        weights += [1 / len(trees) / len(tree_sets)] * len(trees)
    found = rashomon_importance(sets, X, y, deduplicate)
    assert_allclose(found.importances, values, rtol=0, atol=1e-12)
    assert_allclose(found.weights, weights, rtol=1e-14)
    assert abs(found.weights.sum() - 1) < 1e-12


def test_rashomon_importance_by_hand():
    first, second = ref.split(0, 0.5, NO, YES), ref.split(1, 0.5, NO, YES)
    same = ref.split(1, 0.5, first, first)
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float), [0, 0, 1, 1]
    # Half of the swaps of feature 0 make the first tree wrong; none helps the second.
    found = rashomon_importance([[first, same, second], [same]], X, y)
    assert_array_equal(found.importances, [[0.5, 0], [0, 0], [0.5, 0]])
    assert_array_equal(found.weights, [0.25, 0.25, 0.5])
    found = rashomon_importance([[first, same, second], [same]], X, y, False)
    assert_array_equal(found.importances, [[0.5, 0], [0.5, 0], [0, 0], [0.5, 0]])
    assert_allclose(found.weights, [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    assert len(unique_trees([first, same, second]).counts) == 2
