"""The regressor against the functions on arrays that it stands for."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.uncertainty import (
    LossUncertaintyRegressor,
    PinballLoss,
    WeightedSquaredError,
    make_loss_scorer,
    member_predictions,
    mixture_action,
    mixture_decomposition,
    mixture_eur,
    mixture_uncertainty,
)
from skextra.uncertainty._members import leaf_noise

X, Y = load_diabetes(return_X_y=True)
POOL = X[300:330]
TREES = ExtraTreesRegressor(6, min_samples_leaf=10, random_state=0)
PAIR = VotingRegressor([("a", Ridge()), ("b", LinearRegression())], weights=[1, 4])
LOSSES = [
    "squared_error",
    "absolute_error",
    "crps",
    "log_loss",
    PinballLoss(0.8),
    WeightedSquaredError("positive_part"),
]
STRATEGIES = ["eur", "epig", "bald", "entropy", "variance"]


def fitted(estimator=TREES, **params):
    model = LossUncertaintyRegressor(estimator, random_state=0, **params)
    return model.fit(X[:300], Y[:300])


@pytest.mark.parametrize("loss", LOSSES)
def test_what_the_functions_say(loss):
    model = fitted(loss=loss)
    mean = member_predictions(model.estimator_, POOL)
    var = leaf_noise(model.estimator_, POOL)
    action = mixture_action(mean, var, loss)
    assert_allclose(model.predict(POOL), action, rtol=1e-10)
    assert_allclose(
        model.uncertainty(POOL), mixture_uncertainty(mean, var, loss), rtol=1e-10
    )
    parts, slow = model.decompose(POOL), mixture_decomposition(mean, var, loss)
    for key in ("total", "irreducible", "reducible"):
        assert_allclose(parts[key], slow[key], rtol=1e-8)
    found, std = model.predict(POOL, return_std=True)
    assert_allclose(found, action, rtol=1e-10)
    assert_allclose(std**2, var.mean(axis=1) + mean.var(axis=1), rtol=1e-10)


def test_strategies():
    model = fitted(loss="squared_error")
    mean = member_predictions(model.estimator_, POOL)
    var = leaf_noise(model.estimator_, POOL)
    weights = np.arange(1.0, 6)
    target = mean[:5], var[:5]
    expected = {
        "eur": mixture_eur(mean, var, *target, target_weights=weights),
        "epig": mixture_eur(mean, var, *target, "log_loss", target_weights=weights),
        "bald": mixture_decomposition(mean, var, "log_loss").reducible,
        "entropy": mixture_uncertainty(mean, var, "log_loss"),
        "variance": mixture_uncertainty(mean, var),
    }
    for strategy, scores in expected.items():
        options = {"strategy": strategy, "target_weights": weights}
        found = model.acquisition(POOL, POOL[:5], **options)
        assert_allclose(found, scores, rtol=1e-8, atol=1e-12)
        order = np.argsort(-found, kind="stable")[:4]
        assert_array_equal(model.query(POOL, 4, POOL[:5], **options), order)


def test_blocks_of_rows_change_nothing():
    model = fitted()
    whole = model.decompose(POOL, return_se=True)
    predicted = model.predict(POOL, return_std=True)
    scores = [model.acquisition(POOL, strategy=s, n_targets=4) for s in STRATEGIES]
    model._row_bytes = 64 * 2**20 // 3  # blocks of three rows
    assert_allclose(model.predict(POOL, return_std=True), predicted, rtol=1e-12)
    parts = model.decompose(POOL, return_se=True)
    assert_allclose(parts.se.reducible, whole.se.reducible, rtol=1e-9)
    for strategy, score in zip(STRATEGIES, scores, strict=True):
        again = model.acquisition(POOL, strategy=strategy, n_targets=4)
        assert_allclose(again, score, rtol=1e-9)


@pytest.mark.parametrize("noise", [2500, np.int64(2500), np.float32(2500)])
def test_noise_as_a_number(noise):
    model = fitted(PAIR, noise=noise)
    assert model.noise_ == 2500.0
    assert isinstance(model.noise_, float)
    parts = model.decompose(POOL)
    a, b = (member.predict(POOL) for member in model.estimator_.estimators_)
    assert_allclose(parts.irreducible, 2500)
    assert_allclose(parts.reducible, 0.2 * 0.8 * (a - b) ** 2, rtol=1e-6, atol=1e-9)
    assert_allclose(model.predict(POOL), model.estimator_.predict(POOL))


def test_noise_out_of_bag():
    forest = RandomForestRegressor(30, max_depth=3, random_state=0)
    weight = np.random.default_rng(0).random(300)
    model = LossUncertaintyRegressor(forest, noise="oob")
    model.fit(X[:300], Y[:300], sample_weight=weight)
    errors = (model.estimator_.oob_prediction_ - Y[:300]) ** 2
    assert_allclose(model.noise_, np.average(errors, weights=weight))
    assert not forest.oob_score
    for wrong in (None, TREES, PAIR):
        with pytest.raises(
            ValueError, match="noise='oob' needs an estimator with boot"
        ):
            LossUncertaintyRegressor(wrong, noise="oob").fit(X, Y)


def test_default_estimator():
    model = LossUncertaintyRegressor(random_state=0, n_jobs=2).fit(X, Y)
    assert model.noise_ == "leaf"
    assert len(model.estimator_.estimators_) == 100
    assert model.estimator_.n_jobs == 2
    for tree in model.estimator_.estimators_:
        _, counts = np.unique(tree.apply(X), return_counts=True)
        assert counts.min() >= 5
    assert (model.decompose(X).irreducible > 100).all()
    again = clone(model).fit(X, Y)
    assert_array_equal(again.predict(X), model.predict(X))


def test_weights_are_repeats_and_their_scale_does_not_shrink_the_trees():
    weight = np.random.default_rng(0).integers(0, 3, size=200)
    model = LossUncertaintyRegressor(random_state=0).fit(X[:200], Y[:200], weight)
    rows = np.repeat(np.arange(200), weight)
    repeated = clone(model).fit(X[rows], Y[rows])
    assert_allclose(model.predict(POOL), repeated.predict(POOL))
    assert_allclose(model.uncertainty(POOL), repeated.uncertainty(POOL), rtol=1e-6)
    plain = clone(model).fit(X[:256], Y[:256])
    scaled = clone(model).fit(X[:256], Y[:256], np.full(256, 1 / 256))
    assert_allclose(scaled.predict(POOL), plain.predict(POOL))


def test_gaussian_process():
    """Its draws are of whole functions: the pool and the targets must share them."""
    process = GaussianProcessRegressor(RBF(0.2, "fixed"), alpha=0.3, normalize_y=True)
    model = fitted(make_pipeline(StandardScaler(), process), noise=1000.0)
    target = np.vstack([POOL[:1]] * 2)
    scores = model.acquisition(POOL, target)
    members = member_predictions(
        model.estimator_, np.vstack([POOL, target]), random_state=0
    )
    mean, var = members[:30], np.full((30, 1), 1000.0)
    slow = mixture_eur(mean, var, members[30:], var[:2])
    assert_allclose(scores, slow)
    assert scores[0] == scores.max()
    members = member_predictions(model.estimator_, POOL, random_state=0)
    rows = np.sort(np.random.RandomState(0).choice(30, size=3, replace=False))
    slow = mixture_eur(members, var, members[rows], var[:3])
    assert_allclose(model.acquisition(POOL, n_targets=3), slow)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"noise": -1.0}, "'noise' parameter"),
        ({"noise": "tree"}, "'noise' parameter"),
        ({"noise": np.nan}, "'noise' parameter"),
        ({"noise": np.inf}, "'noise' parameter"),
        ({"loss": "brier"}, "'loss' parameter"),
        ({"estimator": PAIR}, "Give noise a number"),
        (
            {"estimator": RandomForestRegressor(2, criterion="absolute_error")},
            "Give noise a number",
        ),
    ],
)
def test_bad_parameters(params, message):
    model = fitted().set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    if not message.endswith("' parameter"):  # which scikit-learn checks before fit
        with pytest.raises(NotFittedError):  # of the earlier fit nothing is left
            model.predict(X)


def test_no_members():
    for wrong in (GradientBoostingRegressor(n_estimators=2), Ridge()):
        with pytest.raises(TypeError, match="has no members"):
            LossUncertaintyRegressor(wrong, noise=1.0).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "margin"}, "strategy must be one of"),
        ({"n_targets": 0}, "n_targets must be an integer from 1; got 0"),
        ({"target_weights": [1.0]}, "target_weights are of the rows of X_target"),
        ({"X_target": POOL[:2], "target_weights": [1.0]}, "target_weights"),
    ],
)
def test_bad_queries(options, message):
    for method in (fitted().acquisition, fitted().query):
        with pytest.raises(ValueError, match=message):
            method(POOL, **options)
    with pytest.raises(ValueError, match="n_instances must be an integer from 1 to"):
        fitted().query(POOL, 31)


@pytest.mark.parametrize("method", ["predict", "uncertainty", "decompose", "query"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(LossUncertaintyRegressor(), method)(X)


def test_frames_float32_one_row_and_pickle():
    frame = pd.DataFrame(X[:300], columns=[f"c{i}" for i in range(10)])
    model, plain = clone(fitted()).fit(frame, pd.Series(Y[:300])), fitted()
    assert_array_equal(model.predict(frame[:9]), plain.predict(X[:9]))
    assert model.n_features_in_ == 10
    assert_allclose(plain.predict(POOL.astype(np.float32)), plain.predict(POOL))
    one, std = plain.predict(POOL[:1], return_std=True)
    assert one.shape == std.shape == (1,)
    copy = pickle.loads(pickle.dumps(plain))
    assert_array_equal(copy.acquisition(POOL), plain.acquisition(POOL))
    with pytest.raises(ValueError, match="1d array"):
        clone(plain).fit(X, np.column_stack([Y, Y]))


def test_pipeline_and_grid_search():
    model = LossUncertaintyRegressor(
        ExtraTreesRegressor(10, min_samples_leaf=5, random_state=0)
    )
    pipeline = make_pipeline(StandardScaler(), model)
    grid = {"lossuncertaintyregressor__estimator__max_depth": [1, 6]}
    search = GridSearchCV(pipeline, grid, scoring=make_loss_scorer("crps"), cv=3)
    search.fit(X, Y)
    assert list(search.best_params_.values()) == [6]
    assert search.best_estimator_.score(X, Y) > 0.4


def test_oob_leaves_out_rows_that_every_tree_has_seen():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    forest = RandomForestRegressor(5, random_state=0)
    model = LossUncertaintyRegressor(forest, noise="oob")
    with pytest.warns(UserWarning, match="OOB scores"):
        near = model.fit(X, y).noise_
    with pytest.warns(UserWarning, match="OOB scores"):
        far = model.fit(X, y + 1e4).noise_
    assert abs(far / near - 1) < 0.05


def test_a_classifier_is_refused():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2
    with pytest.raises(TypeError, match="must be a regressor; got ExtraTreesClass"):
        LossUncertaintyRegressor(ExtraTreesClassifier(2), noise=1.0).fit(X, y)


def test_targets_of_a_gaussian_process_have_the_columns_of_the_fit():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    model = LossUncertaintyRegressor(
        GaussianProcessRegressor(alpha=0.1, optimizer=None), noise=0.1, random_state=0
    ).fit(X.to_numpy(), X["a"])
    with pytest.raises(ValueError, match="3 features"):
        model.acquisition(X.to_numpy(), np.ones((2, 3)))
    model.fit(X, X["a"])
    with pytest.raises(ValueError, match="feature names"):
        model.acquisition(X, X[["b", "a"]])


@pytest.mark.parametrize("strategy", ["entropy", "bald", "epig"])
def test_leaves_without_noise_have_no_entropy(strategy):
    X, y = load_diabetes(return_X_y=True)
    model = LossUncertaintyRegressor(RandomForestRegressor(5, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match=f"strategy='{strategy}' needs noise above 0"):
        model.acquisition(X[:50], strategy=strategy)
    assert (model.acquisition(X[:50]) >= 0).all()
    model.set_params(loss="log_loss")
    for method in (model.uncertainty, model.decompose, model.acquisition):
        with pytest.raises(ValueError, match="needs noise above 0"):
            method(X[:50])


def test_a_gaussian_process_predicts_the_same_twice():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    process = GaussianProcessRegressor(alpha=0.1, optimizer=None)
    model = LossUncertaintyRegressor(process, noise=0.1).fit(X, X[:, 0])
    assert_array_equal(model.predict(X + 0.1), model.predict(X + 0.1))
    assert_array_equal(model.acquisition(X + 0.1), model.acquisition(X + 0.1))
