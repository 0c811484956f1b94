"""Learning curves against laws that are known, and against loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import curve_fit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skextra.uncertainty import (
    LossUncertaintyClassifier,
    LossUncertaintyRegressor,
    learning_curve_reducible,
)
from skextra.uncertainty._learning_curve import _picked_sizes
from skextra.uncertainty._power_law import fit_power_laws

CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
SIZES = np.array([20, 40, 80, 160, 320])
COSTS = np.array([[0.0, 10.0], [1.0, 0.0]])


def test_power_laws_are_found():
    laws = np.array([[2.0, 0.7, 0.3], [0.1, 0.5, 0.0], [3.0, 1.9, 1.0], [-1, 0.4, 5]])
    curves = np.array([c + a * SIZES**-b for a, b, c in laws])
    assert_allclose(fit_power_laws(SIZES, curves, 0.0), laws, rtol=1e-4, atol=1e-6)


def test_power_law_is_the_least_squares_one():
    noise = np.random.default_rng(0).normal(scale=0.01, size=5)
    curve = 0.3 + 2 * SIZES**-0.7 + noise

    def law(n, a, b, c):
        return c + a * n**-b

    slow, _ = curve_fit(law, SIZES, curve, [1.0, 0.5, 0.1])
    (found,) = fit_power_laws(SIZES, curve[None], -np.inf)
    assert_allclose(found, slow, rtol=1e-3)


def test_limit_is_bound():
    curve = (-0.2 + 1 / SIZES)[None]
    (free,) = fit_power_laws(SIZES, curve, -np.inf)
    assert_allclose(free, [1, 1, -0.2], rtol=1e-4)
    curve = (0.05 - 0.03 * np.log(SIZES / 400))[None]
    (bound,) = fit_power_laws(SIZES, curve, 0.0)
    assert bound[2] == 0
    assert fit_power_laws(SIZES, curve, -np.inf)[0, 2] < 0
    # With the limit at 0, a is the least-squares one and b the best of a fine grid.
    errors = [
        np.linalg.lstsq(SIZES[:, None] ** -b, curve[0], rcond=None)[1][0]
        for b in np.linspace(0.05, 2, 2000)
    ]
    law = bound[0] * SIZES ** -bound[1]
    assert ((curve[0] - law) ** 2).sum() <= min(errors) * (1 + 1e-6)


class Known(RegressorMixin, BaseEstimator):
    """Predicts a variance that follows a power law of the number of rows."""

    def fit(self, X, y):
        self.n_ = len(X)
        return self

    def predict(self, X, return_std=False):
        std = np.full(len(X), np.sqrt(0.5 + 4 * self.n_**-0.8))
        return (np.zeros(len(X)), std) if return_std else np.zeros(len(X))


def test_known_learner():
    X = np.zeros((800, 1))
    y = np.where(np.arange(800) % 2, 1.0, -1.0)
    curves = learning_curve_reducible(Known(), X, y, n_repeats=3, random_state=0)
    assert curves.train_sizes[[0, -1]].tolist() == [30, 600]
    assert len(curves.train_sizes) == 8
    assert_allclose(curves.uncertainty.coef, [4, 0.8, 0.5], rtol=1e-4)
    assert_allclose(curves.uncertainty.total, 0.5 + 4 * 600**-0.8)
    reducible = 4 * 600**-0.8
    assert_allclose(curves.uncertainty.reducible, reducible, rtol=1e-4)
    assert_allclose(curves.uncertainty.interval, reducible, rtol=1e-4)
    assert_allclose(curves.score.per_repeat, 1)
    assert_allclose(curves.score.reducible, 0, atol=1e-9)
    assert curves.model_reducible is None


def test_loop_over_splits():
    X, y = CANCER
    options = {"n_repeats": 2, "train_sizes": [30, 100, 426], "loss": "brier"}
    curves = learning_curve_reducible(GaussianNB(), X, y, random_state=0, **options)
    splitter = StratifiedShuffleSplit(
        2, test_size=0.25, random_state=np.random.RandomState(0)
    )
    for k, (train, test) in enumerate(splitter.split(X, y)):
        p = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
        slow = brier_score_loss(y[test], p, scale_by_half=False)
        assert_allclose(curves.score.per_repeat[k, -1], slow)
        assert_allclose(curves.uncertainty.per_repeat[k, -1], 1 - (p**2).sum(1).mean())
    assert_array_equal(curves.train_sizes, [30, 100, 426])
    assert curves.model_reducible is None
    for curve in (curves.uncertainty, curves.score):
        assert curve.per_repeat.shape == (2, 3)
        assert_allclose(curve.total, curve.per_repeat[:, -1].mean())
        assert_allclose(curve.reducible, curve.total - curve.irreducible)
        assert curve.irreducible >= 0
        assert curve.interval[0] <= curve.interval[1]


def test_every_class_is_in_the_smallest_subset():
    X, y = IRIS
    rare = np.r_[:60, 100:104]
    curves = learning_curve_reducible(
        GaussianNB(var_smoothing=0.1),
        X[rare],
        np.array(list("abc"))[y[rare]],
        train_sizes=[3, 10, 48],
        loss="zero_one",
        n_repeats=5,
        random_state=0,
    )
    assert np.isfinite(curves.score.per_repeat).all()


@pytest.mark.parametrize("loss", ["log_loss", "brier", "zero_one", "cost"])
def test_losses_of_classifiers(loss):
    X, y = CANCER
    forest = RandomForestClassifier(5, max_depth=3, random_state=0)
    costs = {"cost_matrix": COSTS} if loss == "cost" else {}
    options = {"loss": loss, "n_repeats": 2, "train_sizes": [0.2, 0.5, 1.0], **costs}
    curves = learning_curve_reducible(forest, X, y, random_state=0, **options)
    assert_array_equal(curves.train_sizes, [85, 213, 426])
    assert 0 < curves.model_reducible < curves.uncertainty.total
    meta = LossUncertaintyClassifier(forest)
    same = learning_curve_reducible(meta, X, y, random_state=0, **options)
    assert_allclose(same.score.per_repeat, curves.score.per_repeat)
    assert_allclose(same.model_reducible, curves.model_reducible)
    again = learning_curve_reducible(
        forest, X, y, random_state=0, n_jobs=np.int64(2), **options
    )
    assert_array_equal(again.uncertainty.interval, curves.uncertainty.interval)


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "log_loss", "crps"]
)
def test_losses_of_regressors(loss):
    X, y = DIABETES
    trees = ExtraTreesRegressor(4, min_samples_leaf=10, random_state=0)
    options = {"loss": loss, "n_repeats": 2, "train_sizes": [0.25, 0.5, 1.0]}
    model = LossUncertaintyRegressor(trees)
    curves = learning_curve_reducible(model, X, y, random_state=0, **options)
    assert curves.model_reducible > 0
    assert model.loss == "squared_error"
    line = learning_curve_reducible(BayesianRidge(), X, y, random_state=0, **options)
    assert line.model_reducible is None
    assert 0.4 < line.uncertainty.total / line.score.total < 1.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_sizes": [30, 60]}, "train_sizes must have 3 different sizes"),
        ({"train_sizes": [30, 60, 1000]}, "integers from 2 to 426"),
        ({"train_sizes": [1, 30, 60]}, "integers from 2 to 426"),
        ({"train_sizes": [0.1, 0.5, 1.5]}, "shares of 426 rows"),
        ({"train_sizes": ["a", "b", "c"]}, "train_sizes must be numbers"),
        ({"n_repeats": 1}, "'n_repeats' parameter"),
        ({"test_size": 1.0}, "'test_size' parameter"),
        ({"confidence": 95}, "'confidence' parameter"),
        ({"n_bootstrap": 0}, "'n_bootstrap' parameter"),
        ({"loss": "crps"}, "loss must be one of"),
        ({"loss": 3}, "'loss' parameter"),
        ({"loss": "cost"}, "cost_matrix must be given"),
        ({"cost_matrix": COSTS}, "cost_matrix must be given"),
        ({"loss": "cost", "cost_matrix": np.eye(3)}, "cost_matrix"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        learning_curve_reducible(GaussianNB(), *CANCER, **options)


def test_bad_estimators():
    with pytest.raises(TypeError, match="LinearSVC has none"):
        learning_curve_reducible(LinearSVC(), *CANCER)
    with pytest.raises(TypeError, match="return_std=True"):
        learning_curve_reducible(Ridge(), *DIABETES, n_repeats=2)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        learning_curve_reducible(GaussianNB(), CANCER[0][:9], CANCER[1])


def test_sizes_are_resampled_and_still_determine_a_law():
    picked = _picked_sizes(np.random.RandomState(0), 2000, 4)
    n_different = [len(set(row)) for row in picked.tolist()]
    assert min(n_different) == 3
    assert (np.bincount(n_different)[3:] > 100).all()
    assert set(picked.ravel().tolist()) == {0, 1, 2, 3}


def test_the_loss_is_that_of_the_estimator():
    X, y = load_diabetes(return_X_y=True)
    options = {"n_repeats": 2, "n_bootstrap": 5, "random_state": 0}
    trees = ExtraTreesRegressor(5, min_samples_leaf=5, random_state=0)
    model = LossUncertaintyRegressor(trees, loss="absolute_error")
    own = learning_curve_reducible(model, X, y, **options)
    named = learning_curve_reducible(model, X, y, loss="absolute_error", **options)
    assert own.score.total == named.score.total
    other = learning_curve_reducible(model, X, y, loss="squared_error", **options)
    assert own.score.total != other.score.total
