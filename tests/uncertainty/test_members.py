"""Predictions of members against loops over the members themselves."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from skextra.ensemble import RFEnsembleRegressor
from skextra.uncertainty import (
    LossUncertaintyClassifier,
    LossUncertaintyRegressor,
    member_predictions,
)
from skextra.uncertainty._members import leaf_noise

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["a", "b", "c"])[Y]
XR, YR = load_diabetes(return_X_y=True)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_forest_classifiers(kind, n_jobs):
    forest = kind(7, max_depth=3, random_state=0, n_jobs=n_jobs).fit(X, NAMES)
    p = member_predictions(forest, X)
    slow = np.stack([t.predict_proba(X) for t in forest.estimators_], axis=1)
    assert_array_equal(p, slow)
    assert_allclose(p.mean(axis=1), forest.predict_proba(X), atol=1e-14)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_forest_regressors(kind):
    forest = kind(7, max_depth=4, random_state=0).fit(XR, YR)
    slow = np.stack([t.predict(XR) for t in forest.estimators_], axis=1)
    assert_array_equal(member_predictions(forest, XR), slow)


def test_kinds_of_X():
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    p = member_predictions(forest, X)
    for same in (X.tolist(), csr_array(X), np.asfortranarray(X)):
        assert_array_equal(member_predictions(forest, same), p)
    assert member_predictions(forest, X[:1].astype(np.float32)).shape == (1, 5, 3)
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = clone(forest).fit(frame, Y)
    assert_array_equal(member_predictions(named, frame), p)
    assert_array_equal(member_predictions(named, pl.from_pandas(frame)), p)
    with pytest.raises(ValueError, match="feature names should match"):
        member_predictions(named, frame[list("dcba")])
    with pytest.raises(ValueError, match="infinity"):
        member_predictions(forest, np.full((1, 4), np.inf))
    with pytest.raises(ValueError, match="has 3 features"):
        member_predictions(forest, X[:, :3])


def test_missing_values():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    forest = RandomForestClassifier(5, random_state=0).fit(holes, Y)
    p = member_predictions(forest, holes)
    assert_allclose(p.mean(axis=1), forest.predict_proba(holes), atol=1e-14)


def test_bagging_aligns_classes_and_columns():
    bagging = BaggingClassifier(
        KNeighborsClassifier(1),  # takes no weights, so that members miss classes
        n_estimators=12,
        max_samples=3,
        max_features=2,
        random_state=0,
    ).fit(X, NAMES)
    p = member_predictions(bagging, X)
    assert {len(m.classes_) for m in bagging.estimators_} >= {2, 3}
    assert_allclose(p.mean(axis=1), bagging.predict_proba(X), atol=1e-14)
    for k, (member, columns) in enumerate(
        zip(bagging.estimators_, bagging.estimators_features_, strict=True)
    ):
        slow = np.zeros((len(X), 3))
        slow[:, member.classes_] = member.predict_proba(X[:, columns])
        assert_array_equal(p[:, k], slow)


def test_bagging_regressor():
    bagging = BaggingRegressor(Ridge(), 4, max_features=3, random_state=0, n_jobs=2)
    bagging.fit(XR, YR)
    members = member_predictions(bagging, XR)
    assert members.shape == (len(XR), 4)
    assert_allclose(members.mean(axis=1), bagging.predict(XR))


def test_members_without_probabilities():
    with pytest.raises(TypeError, match="LinearSVC has none"):
        member_predictions(BaggingClassifier(LinearSVC(), 2).fit(X, Y), X)
    with pytest.raises(TypeError, match="LinearSVC has none"):
        member_predictions([LinearSVC().fit(X, Y)], X)


def test_voting():
    named = [("a", LogisticRegression(max_iter=500)), ("b", GaussianNB())]
    soft = VotingClassifier(named, voting="soft").fit(X, NAMES)
    p, weights = member_predictions(soft, X, return_weights=True)
    assert_array_equal(weights, [0.5, 0.5])
    assert_allclose(p.mean(axis=1), soft.predict_proba(X))
    soft.set_params(weights=[1, 3]).fit(X, NAMES)
    p, weights = member_predictions(soft, X, return_weights=True)
    assert_allclose(weights, [0.25, 0.75])
    assert_allclose(np.average(p, axis=1, weights=weights), soft.predict_proba(X))
    soft.set_params(weights=[2, 5], a="drop").fit(X, NAMES)
    p, weights = member_predictions(soft, X, return_weights=True)
    assert p.shape[1] == 1
    assert_array_equal(weights, [1.0])
    with pytest.raises(ValueError, match="voting must be 'soft'"):
        member_predictions(VotingClassifier(named).fit(X, Y), X)
    pair = [("a", Ridge()), ("b", LinearRegression())]
    voting = VotingRegressor(pair, weights=[1, 4]).fit(XR, YR)
    members, weights = member_predictions(voting, XR, return_weights=True)
    assert_allclose(members @ weights, voting.predict(XR))


def test_predict_members():
    model = RFEnsembleRegressor(n_members=3, n_components=8, random_state=0)
    model.fit(XR, YR)
    assert_array_equal(member_predictions(model, XR), model.predict_members(XR).T)
    model.fit(XR, np.column_stack([YR, YR]))
    with pytest.raises(ValueError, match="must have one output"):
        member_predictions(model, XR)


def test_draws():
    model = GaussianProcessRegressor(alpha=0.1, normalize_y=True).fit(XR[:50], YR[:50])
    draws = member_predictions(model, XR[50:60], n_draws=2000, random_state=0)
    mean, std = model.predict(XR[50:60], return_std=True)
    assert draws.shape == (10, 2000)
    assert_allclose(draws.mean(axis=1), mean, atol=5 * std.max() / 2000**0.5)
    assert_allclose(draws.std(axis=1), std, rtol=0.1)
    again = member_predictions(model, XR[50:60], n_draws=np.int64(2000), random_state=0)
    assert_array_equal(draws, again)
    with pytest.raises(ValueError, match="n_draws must be an integer from 1; got 0"):
        member_predictions(model, XR, n_draws=0)


def test_wrappers():
    forest = RandomForestClassifier(5, random_state=0)
    pipeline = make_pipeline(StandardScaler(), forest).fit(X, Y)
    p = member_predictions(pipeline, X)
    scaled = pipeline[0].transform(X)
    assert_array_equal(p, member_predictions(pipeline[-1], scaled))
    assert_array_equal(member_predictions(make_pipeline(pipeline[-1]), scaled), p)
    assert_array_equal(member_predictions(FrozenEstimator(pipeline), X), p)
    search = GridSearchCV(forest, {"max_depth": [2]}, cv=2).fit(X, Y)
    best = member_predictions(search.best_estimator_, X)
    assert_array_equal(member_predictions(search, X), best)
    meta = LossUncertaintyClassifier(forest).fit(X, Y)
    assert_array_equal(
        member_predictions(meta, X), member_predictions(meta.estimator_, X)
    )


def test_lists():
    some = GaussianNB().fit(X[50:], NAMES[50:])
    others = GaussianNB().fit(X[:100], NAMES[:100])
    p = member_predictions((some, others), X)
    assert p.shape == (150, 2, 3)
    assert_array_equal(p[:, 0, 0], 0)
    assert_array_equal(p[:, 0, 1:], some.predict_proba(X))
    assert_array_equal(p[:, 1, :2], others.predict_proba(X))
    pair = [Ridge().fit(XR, YR), LinearRegression().fit(XR, YR)]
    assert_array_equal(member_predictions(pair, XR)[:, 1], pair[1].predict(XR))
    for wrong in ([some, pair[0]], [], [[1.0, 2.0]], [some, StandardScaler()]):
        with pytest.raises(TypeError, match="fitted classifiers alone"):
            member_predictions(wrong, X)
    with pytest.raises(NotFittedError):
        member_predictions([some, GaussianNB()], X)


def test_arrays():
    p = np.full((4, 2, 3), 1 / 3)
    assert member_predictions(p, None) is p
    assert member_predictions(p[..., 0], X[:4]).shape == (4, 2)
    with pytest.raises(ValueError, match="a row for each of X, 5; got 4"):
        member_predictions(p, X[:5])
    with pytest.raises(ValueError, match=r"got \(4,\)"):
        member_predictions(p[:, 0, 0], None)


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostClassifier(n_estimators=2),
        GradientBoostingClassifier(n_estimators=2),
        HistGradientBoostingClassifier(max_iter=2),
        StackingClassifier([("a", GaussianNB())]),
    ],
)
def test_no_members_of_classifiers(model):
    with pytest.raises(TypeError, match=rf"{type(model).__name__} has no .* correct"):
        member_predictions(model.fit(X, Y), X)


@pytest.mark.parametrize(
    "model",
    [
        AdaBoostRegressor(n_estimators=2),
        GradientBoostingRegressor(n_estimators=2),
        HistGradientBoostingRegressor(max_iter=2),
        StackingRegressor([("a", Ridge())]),
    ],
)
def test_no_members_of_regressors(model):
    with pytest.raises(TypeError, match=rf"{type(model).__name__} has no .* correct"):
        member_predictions(model.fit(XR, YR), XR)


def test_strangers():
    for wrong in (GaussianNB().fit(X, Y), 3, "forest", None):
        name = type(wrong).__name__
        with pytest.raises(TypeError, match=f"{name} has no members that are known"):
            member_predictions(wrong, X)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(),
        BaggingRegressor(),
        VotingRegressor([("a", Ridge())]),
        GaussianProcessRegressor(),
        make_pipeline(StandardScaler(), RandomForestClassifier()),
        GridSearchCV(RandomForestClassifier(), {}),
        FrozenEstimator(RandomForestClassifier()),
        LossUncertaintyRegressor(),
    ],
)
def test_not_fitted(model):
    with pytest.raises(NotFittedError):
        member_predictions(model, X)


def test_several_outputs():
    two = np.column_stack([Y, Y])
    for model in (RandomForestClassifier(2), RandomForestRegressor(2)):
        with pytest.raises(ValueError, match="must have one output; got 2"):
            member_predictions(model.fit(X, two), X)
    with pytest.raises(ValueError, match="must have one output"):
        member_predictions([LinearRegression().fit(X, two)], X)


def test_leaf_noise_is_the_variance_in_the_leaf():
    forest = ExtraTreesRegressor(4, min_samples_leaf=9, random_state=0)
    weight = np.random.default_rng(0).random(len(XR))
    forest.fit(XR, YR, sample_weight=weight)
    leaves = forest.apply(XR)
    slow = np.empty(leaves.shape)
    for k, leaf in enumerate(leaves.T):
        for one in np.unique(leaf):
            y, w = YR[leaf == one], weight[leaf == one]
            slow[leaf == one, k] = np.average(
                (y - np.average(y, weights=w)) ** 2, weights=w
            )
    assert_allclose(leaf_noise(forest, XR), slow, rtol=1e-8)


def test_leaf_noise_is_not_negative():
    y = 1e6 / 3 + np.repeat([0.1, 0.2, 0.3], 50)
    forest = ExtraTreesRegressor(50, random_state=0).fit(X, y)
    assert min(tree.tree_.impurity.min() for tree in forest.estimators_) < 0
    assert leaf_noise(forest, X).min() == 0


def test_leaf_noise_of_other_trees():
    tree = DecisionTreeRegressor(max_depth=3).fit(XR, YR)
    one = leaf_noise(tree, XR)
    assert_allclose(one[:, 0], tree.tree_.impurity[tree.apply(XR)])
    voting = VotingRegressor([("a", tree), ("b", DecisionTreeRegressor(max_depth=3))])
    voting.fit(XR, YR)
    assert_allclose(leaf_noise(voting, XR)[:, :1], one)
    bagging = BaggingRegressor(tree, 3, max_features=5, random_state=0).fit(XR, YR)
    columns = bagging.estimators_features_[2]
    slow = leaf_noise(bagging.estimators_[2], XR[:, columns])
    assert_array_equal(leaf_noise(bagging, XR)[:, 2:], slow)
    scaled = make_pipeline(StandardScaler(), tree).fit(XR, YR)
    assert_allclose(leaf_noise(scaled, XR), one, rtol=1e-6)


def test_leaf_noise_needs_trees_of_squared_error():
    absolute = RandomForestRegressor(2, criterion="absolute_error", max_depth=1)
    with pytest.raises(ValueError, match="got 'absolute_error'. Give noise a number"):
        leaf_noise(absolute.fit(XR, YR), XR)
    voting = VotingRegressor([("a", Ridge())]).fit(XR, YR)
    for model, name in ((voting, "Ridge"), (Ridge().fit(XR, YR), "Ridge")):
        with pytest.raises(ValueError, match=f"got {name}. Give noise a number"):
            leaf_noise(model, XR)
