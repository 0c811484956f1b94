"""Trees of every accepted kind predict the same as flat arrays."""

import re
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from skextra.tree._flat import LEAF, FlatTree
from skextra.tree._sources import flatten

RNG = np.random.default_rng(0)
BINARY = RNG.integers(0, 2, (200, 5))
# (x0 and x1) or x3, and three classes of x0 + x3, with some noise
EITHER = (BINARY[:, 0] & BINARY[:, 1]) | BINARY[:, 3]
THREE = np.where(RNG.random(200) < 0.1, 0, BINARY[:, 0] + BINARY[:, 3])
# gosdt and pystreed have no wheels for later versions of Python.
NEEDS_WHEEL = pytest.mark.skipif(sys.version_info >= (3, 13), reason="no wheel")


def leaves_of(flat, X):
    found = []
    for x in X:
        node = 0
        while flat.feature[node] != LEAF:
            goes_left = x[flat.feature[node]] <= flat.threshold[node]
            node = (flat.left if goes_left else flat.right)[node]
        found.append(node)
    return np.array(found)


def predict(flat, X):
    return flat.classes[flat.label[leaves_of(flat, X)]]


def check_arrays(flat):
    """Check what the kernels rely on: dtypes, and a number for each child but the root."""
    split = flat.feature != LEAF
    for name in ("feature", "left", "right", "label"):
        assert getattr(flat, name).dtype == np.int32
    for name in ("threshold", "weight", "value"):
        assert getattr(flat, name).dtype == np.float64
    assert (flat.left[~split] == LEAF).all() and (flat.right[~split] == LEAF).all()
    assert_array_equal(flat.left[split], np.flatnonzero(split) + 1)
    children = np.sort(np.concatenate([flat.left[split], flat.right[split]]))
    assert_array_equal(children, np.arange(1, len(split)))
    assert (flat.threshold[~split] == 0).all()
    below = flat.weight[flat.left[split]] + flat.weight[flat.right[split]]
    assert_allclose(flat.weight[split], below)


# scikit-learn


@pytest.mark.parametrize("wrap", [lambda t: t, FrozenEstimator])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        DecisionTreeClassifier,
        ExtraTreeClassifier,
        partial(DecisionTreeClassifier, max_leaf_nodes=7),
        partial(DecisionTreeClassifier, ccp_alpha=0.01),
        partial(DecisionTreeClassifier, max_depth=2),
    ],
)
def test_sklearn_classifiers(make, weighted, wrap):
    X, y = load_iris(return_X_y=True)
    y = np.array(["b", "c", "a"])[y]
    weight = RNG.integers(0, 3, len(y)) if weighted else None
    tree = make(random_state=0).fit(X, y, sample_weight=weight)
    flat = flatten(wrap(tree))
    check_arrays(flat)
    X = np.concatenate([X, RNG.normal(4, 3, (200, 4))]).astype(np.float32)
    assert_array_equal(flat.value[leaves_of(flat, X)], tree.predict_proba(X))
    assert_array_equal(predict(flat, X), tree.predict(X))
    assert_array_equal(flat.classes, ["a", "b", "c"])
    assert (flat.n_features, flat.dtype) == (4, np.float32)
    assert flat.weight[0] == (weight.sum() if weighted else len(y))


@pytest.mark.parametrize("make", [DecisionTreeRegressor, ExtraTreeRegressor])
def test_sklearn_regressors(make):
    X, y = load_diabetes(return_X_y=True)
    tree = make(max_leaf_nodes=40, random_state=0).fit(X, y.round(-2))
    flat = flatten(tree)
    check_arrays(flat)
    leaves = leaves_of(flat, X.astype(np.float32))
    assert_array_equal(flat.value[leaves, 0], tree.predict(X))
    assert flat.value.shape == (79, 1) and flat.classes is None
    distinct = np.unique(flat.value[flat.leaves])
    assert_array_equal(distinct[flat.label[leaves]], tree.predict(X))


def test_thresholds_become_float32():
    below, above = np.float32(4), np.nextafter(np.float32(4), np.float32(5))
    tree = DecisionTreeClassifier().fit([[below], [above]], [0, 1])
    (cut,) = tree.tree_.threshold[:1]
    assert below < cut < above
    flat = flatten(tree)
    assert flat.threshold[0] == below
    assert_array_equal(predict(flat, [[below], [above]]), [0, 1])
    huge = DecisionTreeClassifier().fit([[-3e38], [3.4e38]], [0, 1])
    assert flatten(huge).threshold[0] == np.float32(huge.tree_.threshold[0])


def test_rounding_down_sends_each_float32_the_same_way():
    X = RNG.normal(size=(500, 2)).astype(np.float32)
    tree = ExtraTreeClassifier(random_state=0).fit(X, RNG.integers(0, 2, 500))
    cuts = tree.tree_.threshold[tree.tree_.feature >= 0]
    flat = flatten(tree)
    rounded = flat.threshold[flat.feature >= 0]
    assert (rounded <= cuts).all() and (rounded < cuts).any()
    assert_array_equal(rounded, rounded.astype(np.float32))
    nearby = np.unique(rounded.astype(np.float32))
    for step in (-np.inf, np.inf):
        x = np.nextafter(nearby, np.float32(step))
        assert_array_equal(x[:, None] <= cuts, x[:, None] <= rounded)


def test_infinite_thresholds_are_kept():
    tree = DecisionTreeClassifier().fit(
        [[1.0], [np.nan], [2.0], [np.nan]], [0, 1, 0, 1]
    )
    assert np.isinf(tree.tree_.threshold[0])
    assert flatten(tree).threshold[0] == tree.tree_.threshold[0]


def test_bare_sklearn_tree():
    X, y = load_iris(return_X_y=True)
    bare = DecisionTreeClassifier(random_state=0).fit(X, y).tree_
    assert_array_equal(flatten(bare).classes, [0, 1, 2])
    assert_array_equal(flatten(bare, classes=["a", "b", "c"]).classes, ["a", "b", "c"])
    assert flatten(DecisionTreeRegressor().fit(X, y).tree_).classes is None
    with pytest.raises(ValueError, match="2 classes were given.*3 values"):
        flatten(bare, classes=["a", "b"])


def test_one_class():
    flat = flatten(DecisionTreeClassifier().fit([[0], [1]], ["only", "only"]))
    assert len(flat.feature) == 1 and flat.classes == ["only"]
    assert_array_equal(flat.value, [[1.0]])


@pytest.mark.parametrize("make", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_several_outputs(make):
    tree = make().fit(BINARY, BINARY[:, :2])
    for given in (tree, tree.tree_):
        with pytest.raises(ValueError, match="2 outputs"):
            flatten(given)


# Nested dicts


def leaf(label, **more):
    return {"prediction": label, **more}


def split(feature, true, false, **more):
    return {"feature": feature, "true": true, "false": false, **more}


def test_own_dicts():
    inner = split(
        np.int64(3), leaf("no"), leaf("yes", value=[0.25, 0.75]), threshold=-1
    )
    tree = split(0, inner, leaf("no", weight=5), threshold=2.5)
    flat = flatten(tree)
    check_arrays(flat)
    assert_array_equal(flat.feature, [0, 3, LEAF, LEAF, LEAF])
    assert_array_equal(flat.threshold, [2.5, -1, 0, 0, 0])
    assert_array_equal(flat.weight, [7, 2, 1, 1, 5])
    assert_array_equal(flat.value[2:], [[1, 0], [0.25, 0.75], [1, 0]])
    assert_array_equal(flat.label[2:], [0, 1, 0])
    assert_array_equal(flat.classes, ["no", "yes"])
    assert (flat.n_features, flat.dtype) == (4, np.float64)
    X = np.array([[2.5, 0, 0, -1], [2.5, 0, 0, 0], [2.6, 0, 0, 0]])
    assert_array_equal(predict(flat, X), ["no", "yes", "no"])
    assert flatten(tree, n_features=7).n_features == 7


def test_given_classes():
    flat = flatten(split(0, leaf(7), leaf(3)), classes=[3, 5, 7])
    assert_array_equal(flat.classes, [3, 5, 7])
    assert_array_equal(flat.label[1:], [0, 2])
    assert_array_equal(flat.value[1:], [[1, 0, 0], [0, 0, 1]])


def test_split_without_threshold_asks_for_a_one():
    flat = flatten(split(1, leaf("one"), leaf("zero")))
    assert flat.threshold[0] == 0.5
    assert_array_equal(predict(flat, [[9, 0], [9, 1]]), ["zero", "one"])


def test_infinite_threshold_of_a_dict():
    flat = flatten(split(0, leaf(0), leaf(1), threshold=np.inf))
    assert flat.threshold[0] == np.inf


def test_constant():
    flat = flatten(leaf(1), n_features=3)
    check_arrays(flat)
    assert flat.n_features == 3 and flat.classes == [1]


def test_deep_trees():
    tree = leaf(0)
    for j in range(2000):
        tree = split(j, leaf(j % 2), tree, threshold=0.0)
    flat = flatten(tree)
    check_arrays(flat)
    assert flat.n_features == 2000 and flat.weight[0] == 2001


@pytest.mark.parametrize(
    "tree, message",
    [
        ({}, "lacks ['feature', 'true', 'false']"),
        ({"true": leaf(0), "false": leaf(1)}, "lacks ['feature']"),
        ({"feature": 0, "true": leaf(0)}, "lacks ['false']: a leaf needs 'prediction'"),
        ({"value": [0.5, 0.5]}, "a leaf needs 'prediction'"),
        ({"feat": 0, "left": {"value": 0, "error": 0}}, "lacks ['right']"),
        (split(0, leaf(0), 1), "must be a dict; got 1"),
        (split(0, leaf(0), leaf(1), threshold=np.nan), "threshold must be a number"),
        (split(0, leaf(0), leaf(1), threshold="0.5"), "threshold must be a number"),
        (split(-1, leaf(0), leaf(1)), "must be an index; got -1"),
        (split("age", leaf(0), leaf(1)), "must be an index; got 'age'"),
        (split(2, leaf(0), leaf(1)), "feature is 2, but there are 2 features"),
        (
            split(0, leaf(0), leaf(3)),
            "must predict a label among the classes, [0 1]; got 3.",
        ),
        (split(0, leaf(0), leaf([1])), "got unhashable type: 'list'"),
        (split(0, leaf(0), leaf(1, value=[1.0])), "must be 2 shares"),
        (split(0, leaf(0), leaf(1, value=[3, 7])), "shares that sum to 1; got [3. 7.]"),
        (split(0, leaf(0), leaf(1, value=[-1, 2])), "must be 2 shares"),
        (split(0, leaf(0), leaf(1, value=[np.nan, 1])), "must be 2 shares"),
        (split(0, leaf(0), leaf(1, weight=-1)), "weights of leaves"),
        (split(0, leaf(0), leaf(1, weight=np.nan)), "weights of leaves"),
        (split(0, leaf(0), leaf(1, weight=np.inf)), "weights of leaves"),
        (split(0, leaf(0), leaf(1), relation=">="), "relation '>='"),
        (split(0, leaf(0), leaf(1), reference="red"), "reference 'red'"),
    ],
)
def test_malformed_dicts(tree, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        flatten(tree, classes=[0, 1], n_features=2)


def test_labels_without_an_order():
    with pytest.raises(ValueError, match="must predict a label among the classes"):
        flatten(split(0, leaf(1), leaf("a")))


# Other packages: what they return, and the packages themselves


def test_treefarms_dict():
    def node(feature, true, false):
        return split(feature, true, false, relation="==", reference="true")

    zero, one = (leaf(k, name="Prediction") for k in (0, 1))
    tree = node(3, one, node(0, node(1, one, zero), zero))
    assert_array_equal(predict(flatten(tree), BINARY), EITHER)
    assert_array_equal(predict(flatten(SimpleNamespace(source=tree)), BINARY), EITHER)


def test_treefarms():
    import treefarms

    settings = {"regularization": 0.05, "rashomon_bound_adder": 0.05, "depth_budget": 4}
    frame = pd.DataFrame(BINARY)
    trees = treefarms.TREEFARMS(settings).fit(frame, pd.Series(EITHER))
    assert trees.get_tree_count() > 2
    for i in range(trees.get_tree_count()):
        assert_array_equal(predict(flatten(trees[i]), BINARY), trees[i].predict(frame))


@NEEDS_WHEEL
def test_gosdt():
    import gosdt

    tree = gosdt.GOSDTClassifier(regularization=0.01, depth_budget=4)
    with pytest.raises(NotFittedError):
        flatten(tree)
    tree.fit(pd.DataFrame(BINARY), np.array(["no", "yes", "much"])[THREE])
    # its own predict calls scikit-learn with a parameter that is gone
    expected = tree.trees_[0].predict(BINARY)
    for given in (tree, tree.trees_[0]):
        flat = flatten(given)
        check_arrays(flat)
        assert_array_equal(predict(flat, BINARY), expected)
        assert_array_equal(flat.classes, ["much", "no", "yes"])
        assert flat.n_features == 5


def test_praxis_paths():
    paths = [[4], [-4, 1, 2], [-4, 1, -2], [-4, -1]]
    labels = np.array([1, 1, 0, 0], np.int32)
    assert_array_equal(predict(flatten((paths, labels)), BINARY), EITHER)
    assert flatten(([[]], np.array([1], np.int32))).classes == [1]
    with pytest.raises(ValueError, match="defers"):
        flatten((paths, [1, 1, 0, -1]))
    with pytest.raises(ValueError, match="lacks"):
        flatten((paths[:3], labels[:3]))
    with pytest.raises(ValueError, match="not those of one tree"):
        flatten(([[1, 2], [1, -3], [-1]], labels[:3]))


def test_praxis():
    import praxis

    trees = praxis.PRAXIS()
    trees.fit(BINARY, EITHER, lambda_reg=0.02, depth_budget=4, rashomon_mult=0.1)
    for i in range(trees.count_trees()):
        flat = flatten(trees.get_tree_paths(i))
        assert_array_equal(predict(flat, BINARY), trees.get_predictions(i, BINARY))


def streed(feature, counts, left=None, right=None, label=None):
    """A node as pystreed's, which show no `__dict__`."""
    return SimpleNamespace(
        is_leaf_node=lambda: left is None,
        feature=2**31 - 1 if left is None else feature,
        label=2**31 - 1 if label is None else label,
        left_child=left,
        right_child=right,
        num_instances=sum(counts),
        num_instances_per_class=counts,
    )


def test_pystreed_nodes():
    never, seldom = (
        streed(None, counts, label=3) for counts in ([0, 0, 0, 5], [0, 0, 0, 3, 0, 1])
    )
    often = streed(None, [0, 0, 0, 1, 0, 1], label=5)
    inner = streed(2, [0, 0, 0, 4, 0, 2], seldom, often)
    root = streed(0, [0, 0, 0, 9, 0, 2], never, inner)
    flat = flatten(root)
    check_arrays(flat)
    assert_array_equal(flat.classes, [3, 5])
    assert_array_equal(flat.weight, [11, 5, 6, 4, 2])
    assert_array_equal(flat.value[flat.leaves], [[1, 0], [0.75, 0.25], [0.5, 0.5]])
    # the label is what pystreed says, also of equal shares
    assert_array_equal(predict(flat, [[0, 0, 1], [1, 0, 0], [1, 0, 1]]), [3, 3, 5])
    more = flatten(root, classes=[1, 3, 5, 9])
    assert_array_equal(more.value[3], [0, 0.75, 0.25, 0])


def test_pystreed_nodes_that_do_not_count_by_class():
    leaves = streed(None, [4], label=0), streed(None, [6], label=2)
    flat = flatten(streed(0, [10], *leaves))
    assert_array_equal(flat.classes, [0, 2])
    assert_array_equal(flat.value[1:], np.eye(2))
    with pytest.raises(TypeError, match="must classify"):
        flatten(streed(None, [4], label=0.25))


@NEEDS_WHEEL
def test_pystreed():
    import pystreed

    # binary and continuous columns: pystreed puts its thresholds behind the binary ones
    mixed = np.c_[RNG.normal(size=200), BINARY[:, :3], RNG.normal(size=(200, 2))]
    tree = pystreed.STreeDClassifier(max_depth=3)
    with pytest.raises(NotFittedError):
        flatten(tree)
    for X in (BINARY, mixed):
        tree.fit(X, THREE)
        flat = flatten(tree, n_features=X.shape[1])
        check_arrays(flat)
        assert_array_equal(predict(flat, X), tree.predict(X))
        assert_allclose(flat.value[leaves_of(flat, X)], tree.predict_proba(X))
    assert set(flat.feature) & {0, 4, 5}
    names = list("abcdef")
    tree.fit(pd.DataFrame(BINARY, columns=names[:5]), THREE)
    assert_array_equal(
        predict(flatten(tree), BINARY), predict(flatten(tree.tree_), BINARY)
    )
    tree.fit(pd.DataFrame(mixed, columns=names), THREE)
    with pytest.raises(ValueError, match="fit it on an array"):
        flatten(tree)
    tree = pystreed.STreeDClassifier(max_num_binary_features=3).fit(BINARY, THREE)
    with pytest.raises(ValueError, match="max_num_binary_features"):
        flatten(tree)
    with pytest.raises(TypeError, match="must classify"):
        flatten(pystreed.STreeDRegressor(max_depth=1).fit(BINARY, EITHER * 1.5))


def test_pydl85():
    def end(label):
        return {"value": label, "error": 0}

    def node(feature, left, right):
        return {"feat": feature, "left": left, "right": right}

    tree = node(3, end(1), node(0, node(1, end(1), end(0)), end(0)))
    tree["proba"] = [0.4, 0.6]
    fitted = SimpleNamespace(tree_=tree, classes_=np.array([0, 1]), is_fitted_=True)
    for given in (tree, fitted):
        assert_array_equal(predict(flatten(given), BINARY), EITHER)
    assert_array_equal(flatten({**end(2), "proba": [0, 0, 1]}).classes, [2])
    for tree_, is_fitted in [(None, False), (None, True)]:
        fitted.tree_, fitted.is_fitted_ = tree_, is_fitted
        with pytest.raises(NotFittedError, match="found no tree"):
            flatten(fitted)


# Anything else


def test_flat_trees_pass():
    flat = flatten(split(0, leaf(0), leaf(1)))
    assert flatten(flat) is flat
    assert flatten(FrozenEstimator(SimpleNamespace(_flat=flat))) is flat
    assert isinstance(flat, FlatTree)


@pytest.mark.parametrize(
    "tree",
    [3, None, "tree", [leaf(0)], (1, 2, 3), LogisticRegression().fit(BINARY, EITHER)],
)
def test_unaccepted(tree):
    with pytest.raises(
        TypeError, match=f"must be a fitted.*; got {type(tree).__name__}"
    ):
        flatten(tree)


@pytest.mark.parametrize(
    "tree",
    [
        DecisionTreeClassifier(),
        FrozenEstimator(DecisionTreeRegressor()),
        RandomForestClassifier(),
    ],
)
def test_unfitted(tree):
    with pytest.raises(NotFittedError):
        flatten(tree)


def test_disagreement():
    tree = DecisionTreeClassifier().fit(BINARY, EITHER)
    assert flatten(tree, [0, 1], 5).n_features == 5
    with pytest.raises(ValueError, match="n_features=4 was given, but the tree has 5"):
        flatten(tree, n_features=4)
    with pytest.raises(ValueError, match="but the tree has array"):
        flatten(tree, classes=["no", "yes"])
    with pytest.raises(ValueError, match="values"):
        flatten(DecisionTreeRegressor().fit(BINARY, EITHER), classes=[0, 1])
