"""Solvers of one member against least squares and refits."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from skextra.ensemble import RankDeficientWarning, RFEnsembleRegressor
from skextra.ensemble._members import fit_member, make_rows, member_features, score_path
from skextra.ensemble._ridge import Spectrum, conjugate_gradient, solve_path
from tests.ensemble.reference import features, ridge


def problem(n, d, t=1, seed=0, weighted=True, fit_intercept=True):
    """Rows with identity features, and the features, so that members are ridge fits."""
    rng = np.random.RandomState(seed)
    X, y = rng.randn(n, d), rng.randn(n, t)
    w = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    return make_rows(X, y, w, fit_intercept), X / np.sqrt(d), y, w


def identity(z):
    return z


def member(rows, d, alphas, dual, residuals=False, rcond="auto"):
    return fit_member(rows, np.eye(d), None, alphas, identity, dual, rcond, residuals)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 12),
    st.integers(1, 12),
    st.sampled_from([1e-6, 1e-2, 1.0, 100.0]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
def test_every_form_is_the_ridge_solution(n, d, alpha, dual, fit_intercept, seed):
    rows, F, y, w = problem(n, d, t=2, seed=seed, fit_intercept=fit_intercept)
    theta, intercept = ridge(F, y, alpha, w, fit_intercept)
    for residuals in (False, True):
        fitted = member(rows, d, [alpha], dual, residuals)
        assert_allclose(fitted.coef[0], theta, rtol=1e-6, atol=1e-6)
        assert_allclose(fitted.intercept[0], intercept, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_agrees_with_scikit_learn(shape):
    rows, F, y, w = problem(*shape)
    reference = Ridge(alpha=0.3, solver="svd").fit(F, y, sample_weight=w)
    fitted = member(rows, shape[1], [0.3], dual=shape[0] < shape[1])
    assert_allclose(
        fitted.coef[0, :, 0], reference.coef_.ravel(), rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("n", "d", "alpha"),
    [(12, 5, 0.1), (12, 30, 0.1), (12, 5, 0.0), (12, 30, 0.0), (12, 30, 1e-9)],
)
def test_leave_one_out_residuals_are_those_of_refits(n, d, alpha, fit_intercept):
    rows, F, y, w = problem(n, d, t=2, fit_intercept=fit_intercept)
    expected = []
    for i in range(n):
        keep = np.arange(n) != i
        theta, b = ridge(F[keep], y[keep], alpha, w[keep], fit_intercept)
        expected.append(y[i] - F[i] @ theta - b)
    r, slack = member(rows, d, [alpha], dual=d >= n, residuals=True).residuals
    loo = r[0] / slack[0][:, None] / rows.root[:, None]
    assert_allclose(loo, expected, rtol=1e-7, atol=1e-7)


def test_interpolated_rows_of_a_narrow_ridgeless_fit():
    """A row that alone excites a feature has leverage 1: 0 / 0 in the hat matrix."""
    rng = np.random.RandomState(0)
    F = rng.randn(9, 4)
    F[:, 0] = 0
    F[2, 0] = 1.7
    y = rng.randn(9, 1)
    r, slack = Spectrum(None, y, F, ridgeless=True).residuals([0.0])
    keep = np.arange(9) != 2
    theta = np.linalg.lstsq(F[keep], y[keep], rcond=None)[0]
    assert_allclose(r[0, 2] / slack[0, 2], y[2] - F[2] @ theta, rtol=1e-8)


@pytest.mark.parametrize("feature_map", ["fourier", "erf", "softplus", "relu", "step"])
def test_leave_one_out_of_narrow_ridgeless_members(feature_map):
    """Rows of leverage 1, few (ReLU) or all (width N - 1 with an intercept)."""
    for seed, (n, d) in product(range(4), [(25, 24), (40, 12)]):
        rng = np.random.RandomState(seed)
        X, y = rng.randn(n, 3), rng.randn(n)
        est = RFEnsembleRegressor(
            1, d, alpha=0, feature_map=feature_map, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankDeficientWarning)
            loo = est.fit(X, y).loo_predict()
        F = features(est, X)[0]
        for i in range(n):
            keep = np.arange(n) != i
            mean = F[keep].mean(axis=0)
            A, rcond = F[keep] - mean, np.sqrt(n * 2.3e-16)
            theta = np.linalg.pinv(A, rcond=rcond) @ (y[keep] - y[keep].mean())
            expected = y[keep].mean() + (F[i] - mean) @ theta
            assert_allclose(loo[i], expected, rtol=1e-4, atol=1e-6 * np.abs(loo).max())


@pytest.mark.parametrize("n_components", [100, 10, np.inf])
@pytest.mark.parametrize("alpha", [0.0, 1e-20, 1e-16, 1e-14])
def test_alpha_below_rounding_with_conflicting_repeated_rows(alpha, n_components):
    """The answer is that of the groups' means, as it is for alpha = 0."""
    rng = np.random.RandomState(0)
    X, y = np.repeat(rng.randn(10, 3), 4, axis=0), rng.randn(40)
    params = {"n_members": 2, "n_components": n_components, "feature_map": "erf"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankDeficientWarning)
        est = RFEnsembleRegressor(**params, alpha=alpha, random_state=0).fit(X, y)
        zero = RFEnsembleRegressor(**params, alpha=0.0, random_state=0).fit(X, y)
    assert_allclose(est.predict(X), zero.predict(X), atol=2e-4)
    if n_components != 10:
        assert_allclose(zero.predict(X), np.repeat(y.reshape(10, 4).mean(1), 4), 1e-5)


@pytest.mark.parametrize("alpha", [0.0, 1e-20, 1e-3])
@pytest.mark.parametrize("n_components", [8, 64, np.inf])
@pytest.mark.parametrize("feature_map", ["relu", "erf", "softplus", "fourier"])
def test_rows_that_are_all_alike_give_the_mean(feature_map, n_components, alpha):
    X, y = np.full((12, 3), np.pi), np.arange(12.0)
    new = np.vstack([X[:1], np.random.RandomState(0).randn(5, 3)])
    for weight in (None, np.random.RandomState(1).uniform(0.1, 3, 12)):
        est = RFEnsembleRegressor(
            2, n_components, alpha=alpha, feature_map=feature_map, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankDeficientWarning)
            est.fit(X, y, weight)
        assert_allclose(est.predict(new), np.average(y, weights=weight), atol=1e-6)
        assert np.abs(est.predict_interval(new, 0.8)).max() < 20


def test_narrow_ridgeless_fit_keeps_the_digits_of_its_features():
    rng = np.random.RandomState(0)
    X, y = rng.randn(40, 3), rng.randn(40)
    est = RFEnsembleRegressor(
        1, 32, alpha=0, feature_map="softplus", random_state=0
    ).fit(X, y)
    F = features(est, X)[0]
    F = F - F.mean(axis=0)
    assert np.linalg.cond(F) > 1e4
    expected = y.mean() + F @ np.linalg.lstsq(F, y - y.mean(), rcond=None)[0]
    assert_allclose(est.predict(X), expected, rtol=0, atol=1e-10)


def test_path_equals_single_fits():
    alphas = [1e-4, 1e-2, 1.0, 50.0]
    for n, d in ((15, 6), (15, 40)):
        rows, *_ = problem(n, d)
        path = member(rows, d, alphas, dual=d >= n, residuals=True)
        for k, alpha in enumerate(alphas):
            one = member(rows, d, [alpha], dual=d >= n)
            assert_allclose(path.coef[k], one.coef[0], rtol=1e-8, atol=1e-12)
            assert_allclose(path.intercept[k], one.intercept[0], rtol=1e-8)


def test_gcv_is_its_formula():
    rows, *_ = problem(14, 5, t=2)
    fitted = member(rows, 5, [0.2, 3.0], dual=False, residuals=True)
    F, _ = member_features(rows, np.eye(5), None, identity)
    for k, alpha in enumerate([0.2, 3.0]):
        H = F @ np.linalg.solve(F.T @ F + alpha * np.eye(5), F.T)
        r = rows.y - H @ rows.y
        gcv = 14 * (r**2).sum(axis=0) / (14 - np.trace(H) - 1) ** 2  # 1: the intercept
        path = score_path([fitted], rows, "gcv")
        assert_allclose(path[k], gcv.mean(), rtol=1e-10)


@pytest.mark.parametrize("dual", [True, False])
def test_ridgeless_is_the_minimum_norm_solution(dual):
    n, d = (10, 25) if dual else (25, 10)
    rows, F, y, w = problem(n, d, weighted=False)
    fitted = member(rows, d, [0.0], dual)
    expected = np.linalg.pinv(F - F.mean(axis=0)) @ (y - y.mean(axis=0))
    assert_allclose(fitted.coef[0], expected, rtol=1e-8, atol=1e-10)
    assert fitted.rank == min(n - 1, d)


def test_rank_and_cut_off():
    rng = np.random.RandomState(0)
    Q = np.linalg.qr(rng.randn(8, 8))[0]
    S = (Q * [1.0, 0.5, 1e-3, 1e-13, 1e-18, 0, 0, 0]) @ Q.T
    y = rng.randn(8, 1)
    assert Spectrum(S.copy, y).rank == 4
    assert Spectrum(S.copy, y, rcond=1e-4).rank == 3
    assert_allclose(
        Spectrum(S.copy, y, rcond=0.1).solve([0.0])[0],
        Q[:, :2] @ ((Q[:, :2].T @ y) / [[1.0], [0.5]]),
    )


def test_no_alpha_is_too_small():
    S, y = np.diag([1e-12, 1.0]), np.ones((2, 1))
    for alpha in (1e-12, 1e-15):
        expected = 1 / np.array([1e-12 + alpha, 1 + alpha])
        assert_allclose(
            Spectrum(S.copy, y).solve([alpha])[0, :, 0], expected, rtol=1e-12
        )
        coef, _, _ = solve_path(S.copy, y, [alpha])
        assert_allclose(coef[0, :, 0], expected, rtol=1e-12)


def test_matrix_that_is_singular_to_rounding_goes_to_the_spectrum():
    F = np.ones((4, 3)) * 1e5
    y = np.arange(4.0)[:, None]
    coef, _, rank = solve_path(lambda: F @ F.T, y, [1e-12])
    assert rank == 1 and np.isfinite(coef).all()


def test_dead_features_give_the_mean():
    rows = make_rows(np.zeros((5, 3)), np.arange(5.0)[:, None], np.ones(5), True)
    for alpha in (0.0, 1.0):
        fitted = member(rows, 3, [alpha], dual=False, residuals=True)
        assert np.all(fitted.coef == 0) and fitted.intercept[0, 0] == 2
        r, slack = fitted.residuals
        assert_allclose(r[0, :, 0] / slack[0], np.arange(5) - (10 - np.arange(5.0)) / 4)


def test_conjugate_gradient():
    rng = np.random.RandomState(0)
    A = rng.randn(30, 30)
    A = A @ A.T + np.eye(30)
    y = np.column_stack([rng.randn(30), np.zeros(30), rng.randn(30) * 1e6])
    x, residual = conjugate_gradient(lambda v: A @ v, lambda v: v, y, 1e-10, 500)
    assert residual <= 1e-10
    assert_allclose(x, np.linalg.solve(A, y), rtol=1e-6, atol=1e-9)
    # the exact inverse as preconditioner: one step
    calls = []
    solve = np.linalg.inv(A)
    conjugate_gradient(
        lambda v: calls.append(1) or A @ v, lambda v: solve @ v, y, 1e-8, 500
    )
    assert len(calls) == 1
    assert conjugate_gradient(lambda v: A @ v, lambda v: v, y, 1e-10, 2)[1] > 1e-10
