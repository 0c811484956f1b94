"""Leave-one-out predictions and jackknife+ intervals against refits and MAPIE."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapie.regression import CrossConformalRegressor
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_friedman1
from sklearn.model_selection import LeaveOneOut

from skextra.ensemble import RFEnsembleRegressor
from tests.ensemble.reference import features, leave_one_out, ridge

RNG = np.random.RandomState(0)
X, X_TEST = RNG.randn(16, 2), RNG.randn(5, 2)
Y = X[:, 0] - X[:, 1] ** 2 + 0.3 * RNG.randn(16)
W = RNG.uniform(0.2, 3, 16)


def fit(X=X, y=Y, sample_weight=None, **params):
    params = {"n_members": 3, "n_components": 40, "random_state": 0} | params
    return RFEnsembleRegressor(**params).fit(X, y, sample_weight)


@pytest.mark.parametrize("sample_weight", [None, W])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_components", [8, 40])
@pytest.mark.parametrize("alpha", [0.1, 1e-6, 0.0])
@pytest.mark.filterwarnings("ignore:The ridgeless fit")
def test_leave_one_out_equals_refits(alpha, n_components, fit_intercept, sample_weight):
    y = np.column_stack([Y, 2 - Y**2])
    est = fit(y=y, alpha=alpha, n_components=n_components, feature_map="erf",
              fit_intercept=fit_intercept, sample_weight=sample_weight)  # fmt: skip
    expected, _ = leave_one_out(est, X, y, sample_weight=sample_weight)
    assert_allclose(est.loo_predict(), expected, rtol=1e-5, atol=1e-5)
    if alpha == 0.1:
        assert_allclose(est.loo_predict(), expected, rtol=1e-7, atol=1e-7)


def jackknife_plus(est, coverage, sample_weight=None):
    """Ends of the intervals from N refits (Barber et al., 2021, equation 1.6)."""
    loo, at_test = leave_one_out(est, X, Y, X_TEST, sample_weight)
    residuals = np.abs(Y - loo)[:, None]
    n = len(Y)
    low = math.floor(round((1 - coverage) * (n + 1), 9))
    high = math.ceil(round(coverage * (n + 1), 9))
    lower = np.sort(at_test - residuals, axis=0)
    upper = np.sort(at_test + residuals, axis=0)
    lower = lower[low - 1] if low >= 1 else np.full(len(X_TEST), -np.inf)
    upper = upper[high - 1] if high <= n else np.full(len(X_TEST), np.inf)
    return np.column_stack([lower, upper])


@pytest.mark.parametrize("sample_weight", [None, W])
@pytest.mark.parametrize("n_components", [8, 40])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.96])
def test_intervals_equal_refits(coverage, fit_intercept, n_components, sample_weight):
    est = fit(alpha=0.1, n_components=n_components, fit_intercept=fit_intercept,
              sample_weight=sample_weight)  # fmt: skip
    expected = jackknife_plus(est, coverage, sample_weight)
    assert_allclose(
        est.predict_interval(X_TEST, coverage), expected, rtol=1e-7, atol=1e-7
    )
    assert np.isinf(expected).all() == (coverage == 0.96)


@pytest.mark.parametrize(("n", "coverage"), [(9, 0.9), (9, 0.8), (19, 0.9), (24, 0.56)])
def test_ranks_are_safe_from_rounding(n, coverage):
    """(1 - 0.9) * 10 is a little below 1 in binary, and still the first rank."""
    rng = np.random.RandomState(0)
    X, y = rng.randn(n, 2), rng.randn(n)
    est = fit(X, y, alpha=0.1)
    ends = est.predict_interval(X_TEST, coverage)
    loo, at_test = leave_one_out(est, X, y, X_TEST)
    residuals = np.abs(y - loo)[:, None]
    rank = round((1 - coverage) * (n + 1))
    lower = np.sort(at_test - residuals, axis=0)[rank - 1]
    upper = np.sort(at_test + residuals, axis=0)[-rank]
    assert_allclose(ends, np.column_stack([lower, upper]), rtol=1e-7, atol=1e-8)


def test_ridgeless_intervals_equal_refits():
    for n_components in (6, 40):
        est = fit(alpha=0.0, n_components=n_components, feature_map="erf")
        expected = jackknife_plus(est, 0.8)
        assert_allclose(
            est.predict_interval(X_TEST, 0.8), expected, rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("n_components", [40, np.inf])
def test_intervals_agree_with_mapie(n_components):
    fixed = {"center": False, "weight_scale": 0.6, "alpha": 0.1}
    est = fit(n_components=n_components, **fixed)
    mapie = CrossConformalRegressor(
        fit(n_components=n_components, **fixed),
        confidence_level=0.8,
        method="plus",
        cv=LeaveOneOut(),
    ).fit_conformalize(X, Y)
    expected = mapie.predict_interval(X_TEST)[1][:, :, 0]
    assert_allclose(est.predict_interval(X_TEST, 0.8), expected, rtol=1e-7, atol=1e-7)


def test_infinite_width_is_the_wide_limit():
    y = np.column_stack([Y, Y**2])
    limit = fit(y=y, n_components=np.inf, alpha=0.1, sample_weight=W)
    wide = fit(y=y, n_members=20, n_components=20_000, alpha=0.1, sample_weight=W,
               solver="dual")  # fmt: skip
    assert limit.predict_interval(X_TEST).shape == (5, 2, 2)
    assert_allclose(limit.loo_predict(), wide.loo_predict(), atol=0.05)
    assert_allclose(
        limit.predict_interval(X_TEST, 0.8),
        wide.predict_interval(X_TEST, 0.8),
        atol=0.15,
    )


def test_blocks_of_rows_do_not_change_the_intervals(monkeypatch):
    from skextra.ensemble import _training_rows

    est = fit(alpha=0.1)
    expected = est.predict_interval(X_TEST)
    monkeypatch.setattr(
        _training_rows,
        "row_blocks",
        lambda n, *args, **kwargs: [slice(0, 2), slice(2, n)],
    )
    assert_allclose(est.predict_interval(X_TEST), expected, rtol=1e-12)


def test_rows_of_weight_zero():
    weight = np.where(np.arange(16) < 4, 0.0, W)
    est, without = fit(sample_weight=weight), fit(X[4:], Y[4:], W[4:])
    assert_allclose(est.loo_predict()[4:], without.loo_predict(), rtol=1e-7)
    assert_allclose(est.loo_predict()[:4], est.predict(X[:4]), rtol=1e-12)
    assert_allclose(
        est.predict_interval(X_TEST, 0.8), without.predict_interval(X_TEST, 0.8), 1e-7
    )


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_intervals_are_nested(a, b):
    low, high = (fit(alpha=0.1).predict_interval(X_TEST, c) for c in sorted((a, b)))
    assert np.all(high[:, 0] <= low[:, 0]) and np.all(low[:, 1] <= high[:, 1])


def test_intervals_cover():
    """Coverage is that of the theory, in both regimes and with members that interpolate."""
    X, y = make_friedman1(2100, noise=1.0, random_state=0)
    for params in ({"alpha": 1e-2}, {"alpha": 0.0, "n_components": 300}):
        est = fit(X[:100], y[:100], **params)
        ends = est.predict_interval(X[100:], coverage=0.9)
        covered = np.mean((ends[:, 0] <= y[100:]) & (y[100:] <= ends[:, 1]))
        assert 0.85 < covered < 0.96


def test_interval_keeps_the_precision_of_the_rows():
    narrow = fit(X.astype(np.float32), Y.astype(np.float32), alpha=0.1)
    assert narrow.predict_interval(X_TEST).dtype == np.float32
    assert narrow.loo_predict().dtype == np.float32
    expected = fit(alpha=0.1).predict_interval(X_TEST)
    assert_allclose(narrow.predict_interval(X_TEST), expected, atol=1e-4)


def test_two_rows_are_enough():
    est = fit(X[:2], Y[:2])
    assert_allclose(est.loo_predict(), Y[1::-1])
    assert_array_equal(np.isinf(est.predict_interval(X_TEST)), True)


def test_the_reference_itself():
    est = fit(alpha=0.1)
    theta, intercept = ridge(features(est, X)[0], Y, 0.1)
    assert_allclose(theta, est.coef_[0, :, 0], rtol=1e-7, atol=1e-8)
    assert_allclose(intercept, est.intercept_[0, 0], rtol=1e-7)
