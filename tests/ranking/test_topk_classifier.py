"""The classifier against its objective, written out, and against other models."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, minimize
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.ranking import TopKClassifier
from skextra.ranking._topk_loss import penalised, topk_loss
from tests.ranking.reference import cdf
from tests.recorder import Recorder

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIGITS = load_digits(return_X_y=True)
TIGHT = {"tol": 1e-9, "max_iter": 10_000}


def slow_weight(z, target, k, alpha):
    """Soft top-k weight of one class, by bisection of the threshold."""
    far = 50 * alpha
    t = brentq(
        lambda t: cdf((z - t) / alpha).sum() - k,
        z.min() - far,
        z.max() + far,
        xtol=1e-14,
    )
    return cdf((z[target] - t) / alpha)


def slow_loss(Z, target, weights, alpha):
    return [
        -np.log(
            sum(
                w * slow_weight(z, c, k, alpha)
                for k, w in enumerate(weights, start=1)
                if w
            )
        )
        for z, c in zip(Z, target)
    ]


def slow_objective(model, X, y, sample_weight=None):
    """The objective at the coefficients of a fitted model of three classes or more."""
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    K = len(model.classes_) - 1
    given = np.ones(model.k) if model.k_weights is None else np.array(model.k_weights)
    w = given[:K] / given[:K].sum()
    Z = X @ model.coef_.T + model.intercept_
    loss = slow_loss(Z, np.searchsorted(model.classes_, y), w, model.alpha)
    penalty = (model.coef_**2).sum() / (2 * model.C * weight.sum())
    return weight @ loss / weight.sum() + penalty


@pytest.mark.parametrize("weights", [[1], [0.5, 0.5], [0.1, 0.2, 0.3, 0.4]])
def test_loss_by_bisection(weights):
    rng = np.random.default_rng(0)
    Z, target = rng.normal(scale=3, size=(20, 6)), rng.integers(6, size=20)
    ks = np.arange(1.0, len(weights) + 1)
    loss, _ = topk_loss(Z, target, ks, np.array(weights))
    assert_allclose(loss, slow_loss(Z, target, weights, 1.0), rtol=1e-12)


@pytest.mark.parametrize("scale", [0.1, 2.0, 30.0])
@pytest.mark.parametrize("weights", [[1], [0.2, 0.3, 0.5]])
def test_gradient_of_the_loss(scale, weights):
    rng = np.random.default_rng(1)
    Z, target = rng.normal(scale=scale, size=(8, 5)), rng.integers(5, size=8)
    ks, weights = np.arange(1.0, len(weights) + 1), np.array(weights)
    _, gradient = topk_loss(Z, target, ks, weights)

    def total(z):
        return topk_loss(z.reshape(Z.shape), target, ks, weights)[0].sum()

    steps = 1e-5 * np.eye(Z.size)
    central = [(total(Z.ravel() + h) - total(Z.ravel() - h)) / 2e-5 for h in steps]
    assert_allclose(gradient.ravel(), central, atol=1e-6)
    assert_allclose(gradient.sum(axis=1), 0, atol=1e-12)


def test_class_far_below_the_threshold():
    """Its weight is less than any number, its loss and the pull on it are not lost."""
    Z = np.array([[-5000.0, 0, 1, 2], [-5000.0, 3, 3, 3]])
    loss, gradient = topk_loss(
        Z, np.array([0, 0]), np.array([1.0, 2.0]), np.ones(2) / 2
    )
    assert (loss > 4900).all() and np.isfinite(loss).all()
    assert_allclose(gradient[:, 0], -1, rtol=1e-12)
    assert_allclose(gradient.sum(axis=1), 0, atol=1e-12)


def test_blocks_of_rows_change_nothing():
    rng = np.random.default_rng(2)
    Z, target = rng.normal(size=(9000, 60)), rng.integers(60, size=9000)
    ks, weights = np.arange(1.0, 31), np.full(30, 1 / 30)
    loss, gradient = topk_loss(Z, target, ks, weights)
    part = slice(8000, 8100)
    some = topk_loss(np.ascontiguousarray(Z[part]), target[part], ks, weights)
    assert_allclose(loss[part], some[0], rtol=1e-13)
    assert_allclose(gradient[part], some[1], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("intercept", [0, 1])
def test_gradient_of_the_objective(intercept):
    rng = np.random.default_rng(3)
    X, target = rng.normal(size=(30, 4)), rng.integers(3, size=30)
    share = rng.dirichlet(np.ones(30))
    shape = (4 + intercept, 3)

    def loss(Z):
        return topk_loss(Z, target, np.array([1.0, 2.0]), np.array([0.3, 0.7]))

    def objective(x):
        return penalised(loss, X, share, np.array([0.1, 0.2, 0.3, 0.0]), shape, x)

    x = rng.normal(size=np.prod(shape))
    steps = 1e-5 * np.eye(len(x))
    central = [(objective(x + h)[0] - objective(x - h)[0]) / 2e-5 for h in steps]
    assert_allclose(objective(x)[1], central, atol=1e-8)


@pytest.mark.parametrize("params", [{}, {"alpha": 0.2, "C": 0.1}, {"C": 20.0}])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_classes_minimise_the_closed_form(params, fit_intercept):
    X, y = StandardScaler().fit_transform(CANCER[0][:150, :6]), CANCER[1][:150]
    model = TopKClassifier(fit_intercept=fit_intercept, **params, **TIGHT).fit(X, y)
    sign, n = 2 * y - 1, len(X)

    def objective(v):
        s = X @ v[:-1] + fit_intercept * v[-1]
        p = cdf(sign * s / (2 * model.alpha))
        return -np.log(p).mean() + v[:-1] @ v[:-1] / (4 * model.C * n)

    found = np.append(model.coef_[0], model.intercept_)
    slow = minimize(objective, np.zeros(7), method="BFGS", options={"gtol": 1e-6})
    assert objective(found) <= slow.fun + 1e-10
    assert_allclose(found, slow.x, atol=2e-3 * np.abs(found).max())


@pytest.mark.parametrize("params", [{"k": 1}, {"k": 2}, {"k": 2, "k_weights": [1, 3]}])
def test_three_classes_reach_a_minimum_of_the_slow_objective(params):
    X, y = IRIS[0][::5] - IRIS[0].mean(axis=0), IRIS[1][::5]
    weight = np.random.default_rng(4).uniform(0.5, 2, len(X))
    model = TopKClassifier(alpha=0.7, C=0.5, **params, **TIGHT).fit(X, y, weight)
    best = slow_objective(model, X, y, weight)
    for name in ("coef_", "intercept_"):
        for i in range(getattr(model, name).size):
            for step in (-1e-3, 1e-3):
                other = clone(model)
                vars(other).update(vars(model))
                moved = getattr(model, name).copy()
                moved.flat[i] += step
                setattr(other, name, moved)
                assert slow_objective(other, X, y, weight) > best - 1e-12


def test_integer_weights_are_repeated_rows_and_zeros_are_left_out():
    X, y = IRIS
    weight = np.random.default_rng(5).integers(0, 4, len(X))
    weighted = TopKClassifier(2, **TIGHT).fit(X, y, weight)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = TopKClassifier(2, **TIGHT).fit(X[rows], y[rows])
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-5)
    # A class of weight 0 is no class, whatever the values of its rows.
    X = np.vstack([X, np.full((1, 4), 1e9)])
    y, weight = np.append(y, 7), np.append(weight, 0)
    again = TopKClassifier(2, **TIGHT).fit(X, y, weight)
    assert_array_equal(again.classes_, [0, 1, 2])
    assert_array_equal(again.coef_, weighted.coef_)


def test_temperature_is_a_factor_of_the_penalty():
    X, y = IRIS
    one = TopKClassifier(2, alpha=3.0, C=9.0).fit(X, y)
    other = TopKClassifier(2, alpha=1.0, C=1.0).fit(X, y)
    assert_allclose(one.coef_, 3 * other.coef_, rtol=1e-9)
    assert_array_equal(one.predict(X), other.predict(X))


def test_shift_and_scale_of_columns():
    X, y = IRIS
    model = TopKClassifier(2, C=10.0, **TIGHT).fit(X, y)
    shifted = TopKClassifier(2, C=10.0, **TIGHT).fit(X + 1e6, y)
    assert_allclose(shifted.coef_, model.coef_, rtol=1e-4, atol=1e-4)
    # The penalty is on the coefficients, so that C goes with the scale of the columns.
    scaled = TopKClassifier(2, C=10.0 * 1e8, **TIGHT).fit(X * 1e-4, y)
    assert_allclose(scaled.coef_ * 1e-4, model.coef_, rtol=1e-4, atol=1e-4)


def test_order_and_names_of_the_classes():
    X, y = IRIS
    names = np.array(["c", "a", "b"])
    model, named = TopKClassifier(2, **TIGHT), TopKClassifier(2, **TIGHT)
    model.fit(X, y)
    named.fit(X, names[y])
    assert_array_equal(named.classes_, ["a", "b", "c"])
    assert_array_equal(named.predict(X), names[model.predict(X)])
    assert_allclose(named.coef_[[2, 0, 1]], model.coef_, rtol=1e-4, atol=1e-5)


def test_k_beyond_the_classes_is_capped():
    X, y = IRIS
    model = TopKClassifier(2).fit(X, y)
    assert_array_equal(TopKClassifier(50).fit(X, y).coef_, model.coef_)
    weighted = TopKClassifier(4, k_weights=[3, 3, 9, 9]).fit(X, y)
    assert_allclose(weighted.coef_, model.coef_, rtol=1e-9)
    tiny = TopKClassifier(2, k_weights=[1e-200, 1e-200]).fit(X, y)
    assert_array_equal(tiny.coef_, model.coef_)


def test_predict_topk():
    X, y = DIGITS
    model = TopKClassifier(3, max_iter=50, tol=1e-2).fit(X, y)
    scores = model.decision_function(X)
    best = model.predict_topk(X)
    assert best.shape == (len(X), 3)
    assert_array_equal(best[:, 0], model.predict(X))
    assert_array_equal(model.predict(X), scores.argmax(axis=1))
    assert_array_equal(best, np.argsort(-scores, axis=1)[:, :3])
    assert_array_equal(np.sort(model.predict_topk(X[:5], 10)), [range(10)] * 5)
    for k in (0, 11, 2.0, "3"):
        with pytest.raises(
            ValueError, match="k must be an integer from 1 to the .* 10"
        ):
            model.predict_topk(X, k)


def test_ties_go_by_the_order_of_the_classes():
    X = np.vstack([np.eye(3), np.zeros((1, 3))])
    model = TopKClassifier(2, fit_intercept=False).fit(X, ["b", "a", "c", "a"])
    assert_array_equal(model.predict_topk(np.zeros((1, 3)), 3), [["a", "b", "c"]])


def test_two_classes():
    X, y = StandardScaler().fit_transform(CANCER[0]), CANCER[1]
    model = TopKClassifier().fit(X, y)
    scores = model.decision_function(X)
    assert model.coef_.shape == (1, 30) and model.intercept_.shape == (1,)
    assert scores.shape == (len(X),)
    assert_array_equal(model.predict(X), (scores > 0).astype(int))
    assert_array_equal(model.predict_topk(X)[:, 0], model.predict(X))
    assert_array_equal(model.predict_topk(X, 2).sum(axis=1), 1)
    assert model.score(X, y) > 0.98


def test_accuracy_is_that_of_logistic_regression():
    X, y = DIGITS
    X = X / 16
    ours = TopKClassifier(1).fit(X[:1200], y[:1200])
    theirs = LogisticRegression(max_iter=1000).fit(X[:1200], y[:1200])
    assert ours.score(X[1200:], y[1200:]) > theirs.score(X[1200:], y[1200:]) - 0.02


@pytest.mark.parametrize("kind", [csr_matrix, csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse(kind, fit_intercept):
    X, y = DIGITS[0][:300] / 16, DIGITS[1][:300]
    model = TopKClassifier(2, fit_intercept=fit_intercept, **TIGHT)
    dense = clone(model).fit(X, y)
    sparse = model.fit(kind(X), y)
    assert_allclose(sparse.coef_, dense.coef_, atol=1e-4)
    assert_allclose(
        sparse.decision_function(kind(X)), dense.decision_function(X), atol=1e-3
    )
    assert_array_equal(sparse.predict(kind(X)), dense.predict(X))


def test_categories_and_float32():
    X, y = IRIS
    plain = TopKClassifier(2).fit(X, y)
    labels = pd.Series(y).map({0: "x", 1: "y", 2: "z"}).astype("category")
    assert_array_equal(TopKClassifier(2).fit(X, labels).coef_, plain.coef_)
    single = TopKClassifier(2).fit(X.astype(np.float32), y)
    assert_allclose(single.coef_, plain.coef_, atol=1e-4)


def test_grid_search_in_a_pipeline():
    X, y = DIGITS[0][:500], DIGITS[1][:500]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), TopKClassifier(max_iter=60, tol=1e-2)),
        {"topkclassifier__k": [1, 3], "topkclassifier__C": [0.1, 1.0]},
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.82


def test_huge_and_tiny_columns():
    X, y = IRIS
    plain = TopKClassifier(2).fit(X, y)
    little = np.random.default_rng(6).normal(size=len(X)) * 1e-140
    model = TopKClassifier(2).fit(np.column_stack([X, little]), y)
    assert_allclose(model.coef_[:, :4], plain.coef_, rtol=1e-6)
    huge = TopKClassifier(2).fit(X * 1e140, y)
    assert huge.score(X * 1e140, y) > 0.95 and np.isfinite(huge.coef_).all()
    constant = TopKClassifier(2).fit(np.column_stack([X, np.full(len(X), 0.1)]), y)
    assert_array_equal(constant.coef_[:, 4], 0)


def test_bad_data():
    X, y = IRIS
    with pytest.raises(ValueError, match="more than one class"):
        TopKClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="more than one class"):
        TopKClassifier().fit(X, y, (y == 1).astype(float))
    with pytest.raises(ValueError, match="Unknown label type"):
        TopKClassifier().fit(X, y + 0.5 * X[:, 0])


def test_iterations_go_down():
    recorder = Recorder(3)
    TopKClassifier(2).set_callbacks(recorder).fit(*IRIS)
    values = [slow_objective(fitted, *IRIS) for fitted in recorder.fitted]
    assert values[0] > values[1] > values[2]
