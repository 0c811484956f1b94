"""The estimator: oracles, invariants, input kinds and life in scikit-learn."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from skextra.ensemble import (
    RankDeficientWarning,
    RFEnsembleRegressor,
    _members,
    _steps,
    _training_rows,
    effective_ridge,
    rf_kernel,
)
from skextra.ensemble._features import FEATURE_MAPS
from skextra.ensemble._kernels import N_DRAWS, monte_carlo_features
from skextra.ensemble._members import make_rows
from tests.ensemble.reference import features, ridge

DIABETES = load_diabetes(return_X_y=True)
RNG = np.random.RandomState(0)
X, X_TEST = RNG.randn(40, 3), RNG.randn(15, 3)
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.randn(40)
W = RNG.uniform(0.2, 3, 40)


def fit(X=X, y=Y, sample_weight=None, **params):
    params = {"n_members": 3, "n_components": 64, "random_state": 0} | params
    return RFEnsembleRegressor(**params).fit(X, y, sample_weight)


# -- right answers ------------------------------------------------------------------


@pytest.mark.parametrize("feature_map", [m for m in FEATURE_MAPS])
@pytest.mark.parametrize("n_components", [16, 80])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_prediction_is_ridge_on_explicit_features(
    feature_map, n_components, fit_intercept
):
    est = fit(
        feature_map=feature_map, n_components=n_components, alpha=0.05,
        fit_intercept=fit_intercept, sample_weight=W,
    )  # fmt: skip
    F, F_test = features(est, X), features(est, X_TEST)
    expected = []
    for f, f_test in zip(F, F_test):
        theta, intercept = ridge(f, Y, 0.05, W, fit_intercept)
        expected.append(f_test @ theta + intercept)
    assert_allclose(est.predict_members(X_TEST), expected, rtol=1e-8, atol=1e-8)
    assert_allclose(
        est.predict(X_TEST), np.mean(expected, axis=0), rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("feature_map", ["relu", "erf", "softplus", "step", "fourier"])
def test_infinite_width_is_kernel_ridge(feature_map):
    est = fit(
        n_components=np.inf, feature_map=feature_map, alpha=0.3, weight_scale=0.8,
        fit_intercept=False,
    )  # fmt: skip
    A, B = X - X.mean(axis=0), X_TEST - X.mean(axis=0)
    spec = {"feature_map": feature_map, "weight_scale": 0.8, "bias_scale": 1.0}
    reference = KernelRidge(alpha=0.3, kernel="precomputed").fit(
        rf_kernel(A, **spec), Y
    )
    expected = reference.predict(rf_kernel(B, A, **spec))
    assert_allclose(est.predict(X_TEST), expected, rtol=1e-9, atol=1e-9)


def test_fourier_limit_is_the_gaussian_kernel_and_process():
    est = fit(
        n_components=np.inf, feature_map="fourier", alpha=0.2, weight_scale=0.7,
        fit_intercept=False,
    )  # fmt: skip
    ridge_ = KernelRidge(alpha=0.2, kernel="rbf", gamma=0.7**2 / 2).fit(X, Y)
    assert_allclose(est.predict(X_TEST), ridge_.predict(X_TEST), rtol=1e-9, atol=1e-9)
    kernel = RBF(1 / 0.7) + WhiteKernel(0.2)
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0).fit(X, Y)
    y_mean, y_std = process.predict(X_TEST, return_std=True)
    ours = est.predict(X_TEST, return_std=True, std="gp")
    assert_allclose(ours[0], y_mean, rtol=1e-9, atol=1e-9)
    assert_allclose(ours[1], np.sqrt(y_std**2 - 0.2), rtol=1e-7)


def test_gp_std_with_intercept_is_a_flat_prior_on_a_constant():
    est = fit(n_components=np.inf, feature_map="fourier", alpha=0.2, weight_scale=0.7)
    flat = 1e4  # variance of the constant
    K = rf_kernel(X, feature_map="fourier", weight_scale=0.7) + flat
    k = rf_kernel(X_TEST, X, "fourier", weight_scale=0.7) + flat
    inverse = np.linalg.inv(K + 0.2 * np.eye(40))
    variance = 1 + flat - np.einsum("ij,jk,ik->i", k, inverse, k)
    _, y_std = est.predict(X_TEST, return_std=True, std="gp")
    assert_allclose(y_std, np.sqrt(variance), rtol=1e-3)
    assert_allclose(est.predict(X_TEST), k @ inverse @ Y, rtol=1e-4, atol=1e-5)
    # many repeated rows: the constant itself becomes known
    _, weighted = fit(
        n_components=np.inf, feature_map="fourier", alpha=0.2, weight_scale=0.7,
        sample_weight=np.full(40, 2.0),
    ).predict(X_TEST, return_std=True, std="gp")  # fmt: skip
    _, repeated = fit(
        np.tile(X, (2, 1)), np.tile(Y, 2), n_components=np.inf, feature_map="fourier",
        alpha=0.2, weight_scale=0.7,
    ).predict(X_TEST, return_std=True, std="gp")  # fmt: skip
    assert_allclose(weighted, repeated, rtol=1e-8)


def test_weighted_gp_std_has_noise_of_variance_alpha_over_weight():
    est = fit(
        n_components=np.inf,
        feature_map="erf",
        alpha=0.2,
        weight_scale=0.7,
        sample_weight=W,
    )
    spec = {"feature_map": "erf", "weight_scale": 0.7, "bias_scale": 1.0}
    A, B = X - est.x_offset_, X_TEST - est.x_offset_
    flat = 1e4
    k = rf_kernel(B, A, **spec) + flat
    inverse = np.linalg.inv(rf_kernel(A, **spec) + flat + np.diag(0.2 / W))
    prior = np.diag(rf_kernel(B, **spec)) + flat
    variance = prior - np.einsum("ij,jk,ik->i", k, inverse, k)
    y_pred, y_std = est.predict(X_TEST, return_std=True, std="gp")
    assert_allclose(y_std, np.sqrt(variance), rtol=1e-3)
    assert_allclose(y_pred, k @ inverse @ Y, rtol=1e-4, atol=1e-5)


def test_gp_std_is_never_nan():
    repeated, y = np.repeat(X, 3, axis=0), np.repeat(Y, 3)
    for alpha in (0.0, 1e-14, 1e-10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankDeficientWarning)
            est = fit(repeated, y, n_components=np.inf, feature_map="erf", alpha=alpha)
        _, y_std = est.predict(repeated, return_std=True, std="gp")
        assert np.all(y_std >= 0) and y_std.max() < 1e-3


@pytest.mark.parametrize("feature_map", ["relu", "erf", "fourier_paired"])
def test_wide_members_approach_the_limit_at_the_square_root_rate(feature_map):
    widths, errors = [256, 1024, 4096, 16384], []
    for n_components in widths:
        est = fit(n_members=8, n_components=n_components, feature_map=feature_map,
                  alpha=0.1, solver="dual")  # fmt: skip
        difference = est.predict_members(X_TEST) - est.predict_infinite(X_TEST)
        errors.append(np.sqrt(np.mean(difference**2)))
    slope = np.polyfit(np.log(widths), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.38
    assert errors[-1] < 0.05


@pytest.mark.parametrize("n_components", [40, 41, 400])
@pytest.mark.parametrize("feature_map", ["erf", "fourier"])
def test_ridgeless_interpolates_at_every_width(feature_map, n_components):
    for fit_intercept in (True, False):
        est = fit(alpha=0, n_components=n_components, feature_map=feature_map,
                  fit_intercept=fit_intercept, random_state=1)  # fmt: skip
        assert est.rank_.min() == 40 - fit_intercept
        residual = est.predict_members(X) - Y
        assert np.abs(residual).max() < 1e-8 * np.linalg.norm(Y)


@pytest.mark.parametrize("feature_map", ["relu", "softplus", "fourier"])
def test_ridgeless_interpolates(feature_map):
    est = fit(alpha=0, n_components=400, feature_map=feature_map)
    assert np.abs(est.predict(X) - Y).max() < 1e-8 * np.linalg.norm(Y)
    assert_array_equal(est.rank_, [39, 39, 39])
    _, y_std = est.predict(X, return_std=True)
    assert y_std.max() < 1e-7


@pytest.mark.parametrize("n_components", [12, 64, np.inf])
def test_solvers_agree(n_components):
    expected = fit(n_components=n_components, alpha=0.1).predict(X_TEST)
    solvers = ["dual"] if np.isinf(n_components) else ["dual", "primal", "cg"]
    for solver in solvers:
        est = fit(n_components=n_components, alpha=0.1, solver=solver)
        assert_allclose(est.predict(X_TEST), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("feature_map", ["relu", "fourier", np.tanh])
def test_conjugate_gradients_solve_the_weighted_centred_problem(feature_map):
    y = np.column_stack([Y, Y**2])
    for fit_intercept in (True, False):
        direct, cg = (
            fit(y=y, sample_weight=W, alpha=0.01, solver=solver, n_components=300,
                feature_map=feature_map, fit_intercept=fit_intercept)
            for solver in ("dual", "cg")
        )  # fmt: skip
        assert_allclose(cg.coef_, direct.coef_, rtol=1e-5, atol=1e-6)
        assert_allclose(
            cg.predict(X_TEST), direct.predict(X_TEST), rtol=1e-6, atol=1e-6
        )


def test_auto_turns_to_conjugate_gradients(monkeypatch):
    monkeypatch.setattr(_steps, "CG_FROM", 30)
    direct = fit(solver="dual", n_components=100, alpha=0.1)

    def fail(*args):
        raise AssertionError("the direct solver was used")

    monkeypatch.setattr(_steps, "fit_member", fail)
    est = fit(n_components=100, alpha=0.1)
    assert_allclose(est.predict(X_TEST), direct.predict(X_TEST), rtol=1e-6)


def test_conjugate_gradients_warn_when_they_stop_early(monkeypatch):
    solve = _members.conjugate_gradient
    monkeypatch.setattr(
        _members, "conjugate_gradient", lambda *args: solve(*args[:4], max_iter=1)
    )
    with pytest.warns(ConvergenceWarning, match="at a relative residual of"):
        fit(solver="cg", alpha=0.1)
    for residual, n_warnings in ((1.1e-8, 1), (1e-8, 0)):
        monkeypatch.setattr(
            _members, "conjugate_gradient", lambda *args, r=residual: (args[2], r)
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(solver="cg", alpha=0.1)
        assert len(caught) == n_warnings
        assert all(warning.filename == __file__ for warning in caught)


def test_monte_carlo_kernel_reports_its_error():
    est = fit(n_components=np.inf, weight_distribution="laplace", alpha=0.1)
    rows = make_rows(est._inputs(X), Y[:, None], np.ones(40), True)
    phi = monte_carlo_features(rows.X, "relu", "laplace", est._kernel_seed)
    products = phi[:, None, :] * phi[None, :, :] * N_DRAWS
    error = products.std(axis=2).max() / np.sqrt(N_DRAWS)
    assert_allclose(est.kernel_standard_error_, error, rtol=1e-8)
    assert not hasattr(fit(n_components=np.inf), "kernel_standard_error_")
    wide = fit(n_members=4, n_components=8192, weight_distribution="laplace", alpha=0.1)
    assert np.abs(est.predict(X_TEST) - wide.predict(X_TEST)).max() < 0.2
    assert_array_equal(wide.predict_infinite(X_TEST), wide.predict_infinite(X_TEST))


def test_effective_ridge_explains_the_mean_member():
    """Kernel ridge with the effective penalty predicts what the mean member does."""
    erf = {"feature_map": "erf"}
    est = fit(n_members=400, n_components=60, alpha=0.1, **erf)
    limit = fit(n_components=np.inf, alpha=est.effective_ridge_, **erf)
    shrunk = np.abs(est.predict(X_TEST) - limit.predict(X_TEST)).mean()
    plain = np.abs(est.predict(X_TEST) - est.predict_infinite(X_TEST)).mean()
    assert est.effective_ridge_ > 1.15 * 0.1
    assert shrunk < 0.45 * plain
    assert fit(n_components=np.inf, alpha=0.7).effective_ridge_ == 0.7


# -- invariants ---------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([16, 64]), st.floats(-50, 50))
def test_invariants(seed, n_components, factor):
    rng = np.random.RandomState(seed)
    X, y, new = rng.randn(20, 2), rng.randn(20), rng.randn(5, 2)
    est = fit(X, y, n_components=n_components, alpha=0.1)
    expected = est.predict(new)
    order = rng.permutation(20)
    permuted = fit(X[order], y[order], n_components=n_components, alpha=0.1)
    assert_allclose(permuted.predict(new), expected, rtol=1e-7, atol=1e-8)
    scaled = fit(X, factor * y + 3, n_components=n_components, alpha=0.1)
    assert_allclose(scaled.predict(new), factor * expected + 3, rtol=1e-7, atol=1e-6)
    doubled = fit(
        X,
        y,
        np.where(np.arange(20) < 3, 2.0, 1.0),
        n_components=n_components,
        alpha=0.1,
    )
    repeated = fit(np.vstack([X, X[:3]]), np.append(y, y[:3]),
                   n_components=n_components, alpha=0.1)  # fmt: skip
    assert_allclose(doubled.predict(new), repeated.predict(new), rtol=1e-7, atol=1e-8)
    order = rng.permutation(3)
    est.weights_, est.coef_ = est.weights_[order], est.coef_[order]
    est.intercept_ = est.intercept_[order]
    assert_allclose(est.predict(new), expected, rtol=1e-12, atol=1e-12)


def test_zero_weight_rows_are_absent():
    weight = np.where(np.arange(40) < 10, 0.0, W)
    for params in (
        {},
        {"n_components": 8},
        {"n_components": np.inf},
        {"alpha": [0.1, 1]},
    ):
        with_zeros = fit(sample_weight=weight, **params)
        without = fit(X[10:], Y[10:], W[10:], **params)
        assert_allclose(with_zeros.predict(X_TEST), without.predict(X_TEST), rtol=1e-7)


def test_random_features_do_not_depend_on_the_rows():
    assert_array_equal(fit().weights_, fit(X[:5], Y[:5]).weights_)
    assert_array_equal(fit(n_members=2).weights_, fit(n_members=5).weights_[:2])


def test_multi_output_is_each_output():
    y = np.column_stack([Y, -Y, Y**2])
    for params in ({}, {"n_components": 8}, {"n_components": np.inf}, {"alpha": 0.0}):
        both = fit(y=y, **params)
        for t in range(3):
            one = fit(y=y[:, t], **params)
            assert_allclose(both.predict(X_TEST)[:, t], one.predict(X_TEST), rtol=1e-7)
    assert both.predict(X_TEST, return_std=True)[1].shape == (15, 3)
    assert both.predict_members(X_TEST).shape == (3, 15, 3)
    assert both.coef_.shape == (3, 64, 3) and both.intercept_.shape == (3, 3)
    assert fit(y=Y[:, None]).predict(X_TEST).shape == (15, 1)


def test_meanings_of_the_standard_deviation():
    est = fit(n_members=7)
    members = est.predict_members(X_TEST)
    y_pred, y_std = est.predict(X_TEST, return_std=True)
    assert_allclose(y_pred, est.predict(X_TEST))
    assert_allclose(y_std, members.std(axis=0, ddof=1))
    ensemble = est.predict(X_TEST, return_std=True, std="ensemble")[1]
    assert_allclose(ensemble, y_std / np.sqrt(7))


# -- leave-one-out path ------------------------------------------------------------


@pytest.mark.parametrize("n_components", [12, 64, np.inf])
def test_alpha_path_minimises_the_error_of_the_mean(n_components):
    alphas = np.logspace(-4, 2, 7)
    path = fit(n_components=n_components, alpha=alphas, sample_weight=W)
    errors = []
    for alpha in alphas:
        one = fit(n_components=n_components, alpha=alpha, sample_weight=W)
        errors.append(np.average((one.loo_predict() - Y) ** 2, weights=W))
    assert_allclose(path.loo_score_path_, errors, rtol=1e-7)
    assert path.alpha_ == alphas[np.argmin(errors)]
    chosen = fit(n_components=n_components, alpha=path.alpha_, sample_weight=W)
    assert_allclose(path.predict(X_TEST), chosen.predict(X_TEST), rtol=1e-8, atol=1e-10)
    assert path.rank_.shape == (1 if np.isinf(n_components) else 3,)


def test_alpha_path_accepts_zero_and_gcv_does_not():
    est = fit(alpha=[0.0, 0.1], n_components=200)
    errors = [
        np.mean((fit(alpha=a, n_components=200).loo_predict() - Y) ** 2)
        for a in (0.0, 0.1)
    ]
    assert_allclose(est.loo_score_path_, errors, rtol=1e-6)
    with pytest.raises(ValueError, match="above 0 for alpha_selection='gcv'"):
        fit(alpha=[0.0, 0.1], alpha_selection="gcv")


def test_gcv_path():
    alphas = [0.01, 0.1, 1.0]
    path = fit(alpha=alphas, alpha_selection="gcv")
    errors = []
    for alpha in alphas:
        residuals, degrees = [], []
        for f in features(fit(alpha=alpha), X):
            f = f - f.mean(axis=0)
            H = f @ np.linalg.solve(f.T @ f + alpha * np.eye(64), f.T)
            residuals.append((Y - Y.mean()) - H @ (Y - Y.mean()))
            degrees.append(40 - 1 - np.trace(H))
        errors.append(
            40 * np.sum(np.mean(residuals, axis=0) ** 2) / np.mean(degrees) ** 2
        )
    assert_allclose(path.loo_score_path_, errors, rtol=1e-7)


# -- partial_fit -------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"alpha": 0.1},
        {"n_components": 16, "alpha": 0.0, "feature_map": "erf"},
        {"fit_intercept": False, "alpha": 0.1},
    ],
)
def test_partial_fit_sums_up_to_fit(params):
    y = np.column_stack([Y, Y + 100])
    batch = RFEnsembleRegressor(3, 64, random_state=0).set_params(**params)
    whole = clone(batch)
    whole.partial_fit(X, y, W)
    assert_allclose(
        whole.predict(X_TEST), clone(batch).fit(X, y, W).predict(X_TEST), 1e-6
    )
    # with fixed centre and scale the batches do not matter
    fixed = {"center": False, "weight_scale": 0.5}
    batch.set_params(**fixed)
    for part in (slice(0, 7), slice(7, 8), slice(8, 40)):
        batch.partial_fit(X[part], y[part], W[part])
    expected = clone(batch).fit(X, y, W)
    assert_allclose(batch.predict(X_TEST), expected.predict(X_TEST), rtol=1e-6)


def test_partial_fit_goes_on_from_fit():
    fixed = {"center": False, "weight_scale": 0.5, "alpha": 0.1}
    est = fit(X[:25], Y[:25], **fixed).partial_fit(X[25:], Y[25:])
    assert_allclose(est.predict(X_TEST), fit(**fixed).predict(X_TEST), rtol=1e-6)
    assert not hasattr(est, "X_fit_")
    est.fit(X[:5], Y[:5])  # and fit starts anew
    assert_array_equal(est.predict(X), fit(X[:5], Y[:5], **fixed).predict(X))


def test_partial_fit_says_what_it_cannot_do():
    est = RFEnsembleRegressor(3, 16, random_state=0).partial_fit(X, Y)
    for method in ("predict_infinite", "predict_interval"):
        with pytest.raises(ValueError, match="needs the training rows, which partial_"):
            getattr(est, method)(X)
    with pytest.raises(ValueError, match="loo_predict needs the training rows"):
        est.loo_predict()
    with pytest.raises(ValueError, match="std='gp' needs the training rows"):
        est.predict(X, return_std=True, std="gp")
    with pytest.raises(
        AttributeError, match="effective_ridge_ needs the training rows"
    ):
        est.effective_ridge_  # noqa: B018
    with pytest.raises(ValueError, match=r"targets of shape \(2,\); the rows before"):
        est.partial_fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="3 features"):
        est.partial_fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="cannot choose among several alpha"):
        RFEnsembleRegressor(alpha=[0.1, 1]).partial_fit(X, Y)
    with pytest.raises(AttributeError, match="partial_fit"):
        RFEnsembleRegressor(n_components=np.inf).partial_fit(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"alpha": "a"}, "alpha"),
        ({"rcond": -5.0}, "rcond"),
        ({"solver": "zzz"}, "solver"),
        ({"feature_map": "erf"}, "feature_map='erf', was 'relu'"),
        ({"fit_intercept": False}, "fit_intercept=False, was True"),
        ({"n_components": 32}, "n_components=32, was 16"),
    ],
)
def test_partial_fit_checks_every_batch(change, message):
    est = RFEnsembleRegressor(3, 16, random_state=0).partial_fit(X, Y)
    with pytest.raises(ValueError, match=message):
        est.set_params(**change).partial_fit(X, Y)
    infinite = fit(n_components=np.inf).set_params(n_components=16)
    with pytest.raises(ValueError, match="n_components=16, was inf"):
        infinite.partial_fit(X, Y)


def test_partial_fit_keeps_the_digits_of_offset_targets():
    fixed = {"center": False, "weight_scale": 0.5, "alpha": 0.1}
    est, expected = (
        RFEnsembleRegressor(3, 16, random_state=0, **fixed),
        fit(n_components=16, **fixed),
    )
    for part in (slice(0, 20), slice(20, 40)):
        est.partial_fit(X[part], Y[part] + 1e9)
    assert_allclose(est.predict(X) - 1e9, expected.predict(X), atol=2e-6)


def test_fit_after_partial_fit_starts_anew():
    fixed = {"center": False, "weight_scale": 0.5, "alpha": 0.1}
    est = RFEnsembleRegressor(3, 16, random_state=0, **fixed).partial_fit(X[:9], Y[:9])
    est.fit(X[9:20], Y[9:20]).partial_fit(X[20:], Y[20:])
    expected = fit(X[9:], Y[9:], n_components=16, **fixed)
    assert_allclose(est.predict(X), expected.predict(X), rtol=1e-6)


def test_ridgeless_rank_over_batches():
    est = RFEnsembleRegressor(2, 30, alpha=0, feature_map="fourier", random_state=0)
    for _ in range(3):
        est.partial_fit(X[:10], Y[:10])
    assert_array_equal(est.rank_, [9, 9])


# -- precision and kinds of input ---------------------------------------------------


def test_float32():
    narrow = fit(X.astype(np.float32), Y.astype(np.float32), alpha=0.1)
    assert narrow.weights_.dtype == narrow.predict(X_TEST).dtype == np.float32
    assert_allclose(narrow.predict(X_TEST), fit(alpha=0.1).predict(X_TEST), atol=2e-4)
    features32 = fit(dtype="float32", alpha=0.1)
    assert features32.weights_.dtype == np.float32
    assert features32.predict(X_TEST).dtype == np.float64
    assert_allclose(features32.predict(X_TEST), narrow.predict(X_TEST), atol=2e-4)


def test_frames_and_lists():
    expected = fit().predict(X_TEST)
    names = ["a", "b", "c"]
    for frame, series in ((pd.DataFrame, pd.Series), (pl.DataFrame, pl.Series)):
        est = fit(frame(dict(zip(names, X.T))), series(Y))
        assert_array_equal(est.feature_names_in_, names)
        assert_allclose(est.predict(frame(dict(zip(names, X_TEST.T)))), expected)
    assert_allclose(fit(X.tolist(), Y.tolist()).predict(X_TEST.tolist()), expected)
    with pytest.raises(ValueError, match="feature names"):
        est.predict(pl.DataFrame(dict(zip("abd", X_TEST.T))))


def test_training_rows_are_a_copy():
    data = X.copy()
    est = fit(data)
    expected = est.loo_predict()
    data[:] = 0
    assert_array_equal(est.loo_predict(), expected)


def test_constant_and_single_rows():
    est = fit(np.full((9, 2), 0.1), np.arange(9.0))
    assert est.weight_scale_ == 1.0
    assert_allclose(est.predict([[0.1, 0.1], [5, 5]])[0], 4)
    one = fit(X[:1], Y[:1])
    assert_allclose(one.predict(X_TEST), Y[0])
    for constant in (1e8, -1e-8):
        assert (
            fit(np.full((50, 2), constant) * np.pi, np.arange(50.0)).weight_scale_ == 1
        )


def test_scale_of_the_inputs():
    est = fit(sample_weight=W)
    mean = np.average(X, axis=0, weights=W)
    variance = np.average((X - mean) ** 2, axis=0, weights=W).mean()
    assert_allclose(est.x_offset_, mean)
    assert_allclose(est.weight_scale_, 1 / np.sqrt(3 * variance))
    raw = fit(center=False, weight_scale=0.5)
    assert_array_equal(raw.x_offset_, 0)
    assert raw.weight_scale_ == 0.5
    # the automatic scale makes the units of X irrelevant
    assert_allclose(
        fit(1000 * X).predict(1000 * X_TEST), fit().predict(X_TEST), rtol=1e-7
    )


def test_callables():
    est = fit(
        feature_map=np.tanh, weight_distribution=lambda rng, shape: rng.randn(*shape)
    )
    assert_array_equal(est.weights_, fit(feature_map=np.tanh).weights_)
    assert est.score(X, Y) > 0.5
    for params, message in (
        ({"feature_map": lambda z: z.sum(axis=1)}, "feature_map must be elementwise"),
        (
            {"feature_map": lambda z: np.where(z > 0, z, np.nan)},
            "feature_map returned NaN or infinity",
        ),
        (
            {"weight_distribution": lambda rng, shape: rng.randn(2)},
            "of the shape it was",
        ),
        (
            {"weight_distribution": lambda rng, shape: np.full(shape, np.nan)},
            "with NaN",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            fit(**params)


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e160, 1e200])
def test_units_of_x_do_not_matter(factor):
    expected = fit(alpha=0.1).predict(X_TEST)
    assert_allclose(fit(factor * X, alpha=0.1).predict(factor * X_TEST), expected, 1e-6)


@pytest.mark.parametrize("factor", [1e-170, 1e-160, 1e100])
@pytest.mark.parametrize("solver", ["dual", "cg"])
def test_units_of_y_do_not_matter(solver, factor):
    expected = fit(alpha=0.1, solver=solver).predict(X_TEST)
    scaled = fit(y=factor * Y, alpha=0.1, solver=solver).predict(X_TEST)
    assert_allclose(scaled / factor, expected, rtol=1e-6, atol=1e-7)


def test_float32_rows_with_targets_beyond_float32():
    est = fit(X.astype(np.float32), 1e60 * Y, alpha=0.1)
    assert_allclose(
        est.predict(X_TEST) / 1e60, fit(alpha=0.1).predict(X_TEST), atol=1e-3
    )


def test_errors_that_are_no_numbers_do_not_choose_alpha():
    for params in ({"y": 1e200 * Y}, {"sample_weight": np.where(W == W[0], 1e200, W)}):
        with pytest.raises(ValueError, match="errors that are no finite numbers"):
            fit(alpha=[0.1, 1.0], **params)


# -- life in scikit-learn ------------------------------------------------------------


def test_pickle_and_clone():
    for params in ({}, {"n_components": np.inf}, {"n_components": 8}):
        est = fit(**params)
        again = pickle.loads(pickle.dumps(est))
        assert_array_equal(again.predict(X_TEST), est.predict(X_TEST))
        assert_array_equal(again.loo_predict(), est.loo_predict())
        assert clone(est).get_params() == est.get_params()
    half = RFEnsembleRegressor(3, 16, random_state=0).partial_fit(X[:20], Y[:20])
    again = pickle.loads(pickle.dumps(half)).partial_fit(X[20:], Y[20:])
    assert_array_equal(again.predict(X), half.partial_fit(X[20:], Y[20:]).predict(X))


def test_random_state():
    assert_array_equal(fit().predict(X_TEST), fit().predict(X_TEST))
    assert np.any(fit().predict(X_TEST) != fit(random_state=1).predict(X_TEST))
    assert_array_equal(fit(n_jobs=2).predict(X_TEST), fit().predict(X_TEST))
    state = check_random_state(None).get_state()[1].copy()  # the global generator
    fit()
    assert_array_equal(check_random_state(None).get_state()[1], state)


def test_a_second_fit_forgets_the_first():
    est = fit(alpha=[0.1, 1.0])
    est.set_params(alpha=0.1).fit(X, Y)
    assert not hasattr(est, "loo_score_path_") and not hasattr(est, "rank_")
    est.set_params(n_components=np.inf).fit(X, Y)
    assert not hasattr(est, "coef_") and not hasattr(est, "weights_")


def test_parameters_set_after_fit_do_not_reach_the_model():
    est = fit(alpha=0.1)
    expected = est.predict(X_TEST), est.loo_predict(), est.predict_infinite(X_TEST)
    est.set_params(
        n_components=np.inf, feature_map="erf", bias_scale=3.0, fit_intercept=False,
        weight_distribution="laplace", weight_scale=9.0, center=False, alpha=5.0,
    )  # fmt: skip
    again = est.predict(X_TEST), est.loo_predict(), est.predict_infinite(X_TEST)
    for a, b in zip(again, expected):
        assert_array_equal(a, b)


def test_html_view_computes_nothing(monkeypatch):
    def fail(*args):
        raise AssertionError("showing a model costs O(n^3)")

    monkeypatch.setattr(_training_rows, "effective_ridge", fail)
    est = fit()
    for model in (est, make_pipeline(StandardScaler(), est)):
        assert "RFEnsembleRegressor" in model._repr_html_()


def test_interrupted_fit_is_no_fit():
    est = RFEnsembleRegressor(3, 16, random_state=0)

    def interrupt(z):
        raise KeyboardInterrupt

    for fitted in (False, True):
        if fitted:
            est.set_params(feature_map="relu").fit(X, Y)
        with pytest.raises(KeyboardInterrupt):
            est.set_params(feature_map=interrupt).fit(X, Y)
        with pytest.raises(NotFittedError):
            est.predict(X)
    est.set_params(feature_map="relu").partial_fit(X[:20], Y[:20])
    expected = clone(est).partial_fit(X[:20], Y[:20])
    assert_array_equal(est.predict(X), expected.predict(X))


def test_refused_fit_leaves_the_model():
    est = fit(alpha=0.1)
    expected = est.predict(X_TEST)
    with pytest.raises(ValueError, match="alpha"):
        est.set_params(alpha=[-1.0]).fit(X[:, :2], Y)
    assert_array_equal(est.predict(X_TEST), expected)


def test_which_solver_runs(monkeypatch):
    """Conjugate gradients from 5000 rows and twice as many features on."""
    assert _steps.CG_FROM == 5000
    monkeypatch.setattr(_steps, "CG_FROM", 20)
    called = []
    for name, kind in (("fit_member_cg", "cg"), ("fit_member", "direct")):
        solve = getattr(_members, name)
        monkeypatch.setattr(
            _steps,
            name,
            lambda *args, s=solve, k=kind: called.append(k) or s(*args),
        )
    cases = (20, 40, ["cg"] * 3), (19, 64, ["direct"] * 3), (20, 39, ["direct"] * 3)
    for n_rows, n_components, expected in cases:
        called.clear()
        fit(X[:n_rows], Y[:n_rows], n_components=n_components, alpha=0.1)
        assert called == expected


def test_infinite_predictions_do_not_depend_on_alpha_floor_or_blocks(monkeypatch):
    finite = fit(alpha=1e-6, feature_map="erf")
    limit = fit(alpha=1e-6, feature_map="erf", n_components=np.inf)
    expected = limit.predict(X_TEST)
    assert_allclose(finite.predict_infinite(X_TEST), expected, rtol=1e-10)
    blocks = [slice(0, 4), slice(4, 15)]
    for module in (_steps, _training_rows):
        monkeypatch.setattr(module, "row_blocks", lambda *args, **kwargs: blocks)
    assert_allclose(limit.predict(X_TEST), expected, rtol=1e-12)
    assert_allclose(finite.predict_infinite(X_TEST), expected, rtol=1e-10)
    assert limit.predict(X_TEST, return_std=True, std="gp")[1].shape == (15,)


def test_effective_ridge_is_that_of_the_centred_weighted_kernel():
    est = fit(alpha=0.1, sample_weight=W)
    K = rf_kernel(X - est.x_offset_, weight_scale=est.weight_scale_, bias_scale=1.0)
    H = np.eye(40) - np.outer(np.ones(40), W) / W.sum()
    root = np.sqrt(W)
    d = np.linalg.eigvalsh(root[:, None] * (H @ K @ H.T) * root)
    assert_allclose(
        est.effective_ridge_, effective_ridge(d.clip(0), 64, 0.1), rtol=1e-9
    )
    repeated = fit(np.repeat(X, 2, axis=0), np.repeat(Y, 2), alpha=0.1)
    assert np.isfinite(repeated.effective_ridge_)


def test_pipeline_and_grid_search_on_diabetes():
    search = GridSearchCV(
        make_pipeline(
            StandardScaler(),
            RFEnsembleRegressor(3, 64, alpha=np.logspace(-2, 2, 5), random_state=0),
        ),
        {
            "rfensembleregressor__feature_map": ["relu", "erf"],
            "rfensembleregressor__n_components": [64, np.inf],
        },
        cv=3,
    )
    search.fit(*DIABETES)
    assert search.best_score_ > 0.47
    assert len(search.cv_results_["params"]) == 4


def test_multi_output_on_linnerud():
    X, Y = load_linnerud(return_X_y=True)
    est = RFEnsembleRegressor(alpha=np.logspace(-2, 3, 11), random_state=0).fit(X, Y)
    assert est.predict(X).shape == (20, 3) and est.score(X, Y) > 0.15


# -- bad input ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_members": 0}, "n_members"),
        ({"n_members": 2.0}, "n_members"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 10.5}, "n_components"),
        ({"n_components": np.nan}, "n_components"),
        ({"n_components": 7, "feature_map": "fourier_paired"}, "needs an even n_comp"),
        ({"alpha": -1e-3}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"alpha": np.inf}, "alpha"),
        ({"alpha": []}, "alpha must be a number or a 1-D array of at least one"),
        ({"alpha": [[1.0]]}, "alpha must be a number or a 1-D array"),
        ({"alpha": [1.0, -1.0]}, "alpha must be finite and not negative"),
        ({"alpha": [1.0, np.nan]}, "alpha must be finite and not negative"),
        ({"alpha": ["a"]}, "alpha"),
        ({"alpha_selection": "cv"}, "alpha_selection"),
        ({"feature_map": "tanh"}, "feature_map"),
        ({"weight_distribution": "cauchy"}, "weight_distribution"),
        ({"weight_scale": 0.0}, "weight_scale"),
        ({"weight_scale": np.inf}, "weight_scale"),
        ({"bias_scale": -1.0}, "bias_scale"),
        ({"bias_scale": np.inf}, "bias_scale"),
        ({"solver": "svd"}, "solver"),
        ({"solver": "cg", "alpha": 0.0}, "one number above 0 for solver='cg'"),
        ({"solver": "cg", "alpha": [0.1, 1]}, "one number above 0 for solver='cg'"),
        ({"solver": "cg", "n_components": np.inf}, "needs solver='auto' or 'dual'"),
        ({"solver": "primal", "n_components": np.inf}, "needs solver='auto' or 'dual'"),
        ({"rcond": -1.0}, "rcond"),
        ({"rcond": 1.0}, "rcond"),
        ({"dtype": "float16"}, "dtype"),
        ({"sample_weight": -W}, "sample_weight"),
        ({"sample_weight": 0 * W}, "weight"),
        ({"sample_weight": W[:5]}, "sample_weight"),
        ({"sample_weight": W * np.nan}, "sample_weight"),
        ({"X": np.where(X > 2, np.nan, X)}, "NaN"),
        ({"y": np.where(Y > 1, np.inf, Y)}, "infinity"),
        ({"y": Y[:5]}, "inconsistent numbers"),
        (
            {"X": X[:1], "y": Y[:1], "alpha": [0.1, 1]},
            "at least 2 rows of posi",
        ),
    ],
)
def test_fit_refuses(params, message):
    with pytest.raises(ValueError, match=message):
        fit(**params)


def test_types_that_are_refused():
    import scipy.sparse as sp

    with pytest.raises(TypeError, match="[Ss]parse"):
        fit(sp.csr_array(X))
    with pytest.raises(ValueError, match="could not convert string"):
        fit([["a", "b", "c"]] * 40)
    with pytest.raises(TypeError):
        fit(np.array([[{}]] * 40, dtype=object))
    with pytest.raises(ValueError, match="Reshape your data"):
        fit(X[:, 0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.predict(X_TEST[:, :2]), "2 features, but RFEnsembleRegressor"),
        (lambda e: e.predict(X_TEST * np.nan), "NaN"),
        (lambda e: e.predict(X_TEST, return_std=True, std="total"), "std must be"),
        (lambda e: e.predict_interval(X_TEST, coverage=0), "coverage must be between"),
        (
            lambda e: e.predict_interval(X_TEST, coverage=1.0),
            "coverage must be between",
        ),
        (
            lambda e: e.predict_interval(X_TEST, coverage="a"),
            "coverage must be between",
        ),
        (lambda e: e.predict_interval(X_TEST, method="cv+"), "method must be"),
    ],
)
def test_methods_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call(fit())


def test_what_does_not_exist():
    with pytest.raises(ValueError, match="needs two members or more"):
        fit(n_members=1).predict(X_TEST, return_std=True)
    infinite = fit(n_components=np.inf)
    for std in ("members", "ensemble"):
        with pytest.raises(ValueError, match="needs members, of which a model of inf"):
            infinite.predict(X_TEST, return_std=True, std=std)
    with pytest.raises(ValueError, match="predict_members needs members"):
        infinite.predict_members(X_TEST)
    for call in ("loo_predict", "predict_interval"):
        args = (X_TEST,) if call == "predict_interval" else ()
        with pytest.raises(
            ValueError, match="at least 2 training rows of positive wei"
        ):
            getattr(fit(X[:1], Y[:1]), call)(*args)
        with pytest.raises(NotFittedError):
            getattr(RFEnsembleRegressor(), call)(*args)


def test_too_small_alpha_for_conjugate_gradients():
    repeated = np.repeat(X[:5], 8, axis=0)
    with pytest.raises(ValueError, match="too small for solver='cg'"):
        fit(repeated, solver="cg", alpha=1e-300)


def test_rank_deficient_ridgeless_warns_once():
    repeated, y = np.vstack([X, X[:4]]), np.append(Y, Y[:4])
    with pytest.warns(
        RankDeficientWarning, match="rank 39, below the full rank of 43"
    ) as w:
        est = fit(repeated, y, alpha=0, n_components=200)
    assert len(w) == 1 and w[0].filename == __file__
    assert_allclose(est.predict(X), Y, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(alpha=0, n_components=200)
        fit(alpha=0, n_components=10)
