"""Arrays of other namespaces go in and come out, with NumPy's numbers."""

import array_api_strict
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.utils._array_api import move_to

from skextra.ensemble import (
    RFEnsembleRegressor,
    rf_kernel,
    variance_decomposition,
    width_bias,
)
from skextra.ensemble._features import FEATURE_MAPS

RNG = np.random.RandomState(0)
X, X_TEST, W = RNG.randn(30, 3), RNG.randn(8, 3), RNG.uniform(0.5, 2, 30)
Y = np.column_stack([X[:, 0] ** 2, RNG.randn(30)])
NAMESPACES = pytest.mark.parametrize("xp", [array_api_strict, torch])

CASES = [
    {},
    {"n_components": 8},
    {"n_components": np.inf},
    {"alpha": 0.0},
    {"alpha": [0.01, 0.1, 1.0]},
    {"n_components": 8, "alpha": [0.01, 0.1], "alpha_selection": "gcv"},
    {"solver": "cg"},
    {"fit_intercept": False, "center": False},
    *({"feature_map": name} for name in FEATURE_MAPS),
    *({"feature_map": name, "n_components": np.inf} for name in FEATURE_MAPS),
    *(
        {"feature_map": "fourier", "n_components": np.inf, "weight_distribution": name}
        for name in ("uniform", "laplace", "student_t")
    ),
    {"weight_distribution": "laplace", "n_components": np.inf},
]


def same(array, expected, xp, rtol=1e-6):
    assert type(array).__module__.split(".")[0] == xp.__name__
    assert_allclose(move_to(array, xp=np, device="cpu"), expected, rtol, atol=1e-7)


@NAMESPACES
@pytest.mark.parametrize("params", CASES, ids=str)
def test_everything_equals_numpy(xp, params):
    est = RFEnsembleRegressor(3, 40, alpha=0.1, random_state=0).set_params(**params)
    finite = not np.isinf(est.n_components)
    est.fit(X, Y, W)
    expected = {
        "predict": est.predict(X_TEST),
        "gp": est.predict(X_TEST, return_std=True, std="gp")[1],
        "infinite": est.predict_infinite(X_TEST),
        "loo": est.loo_predict(),
        "interval": est.predict_interval(X_TEST, 0.8),
        "ridge": est.effective_ridge_,
        "score": est.score(X, Y),
    }
    if finite:
        expected["members"] = est.predict_members(X_TEST)
        expected["std"] = est.predict(X_TEST, return_std=True)[1]
    with config_context(array_api_dispatch=True):
        est.fit(*(xp.asarray(A) for A in (X, Y, W)))
        new = xp.asarray(X_TEST)
        same(est.predict(new), expected["predict"], xp)
        same(est.predict(new, return_std=True, std="gp")[1], expected["gp"], xp, 1e-4)
        same(est.predict_infinite(new), expected["infinite"], xp)
        same(est.loo_predict(), expected["loo"], xp)
        same(est.predict_interval(new, 0.8), expected["interval"], xp)
        assert_allclose(est.effective_ridge_, expected["ridge"], rtol=1e-6)
        assert_allclose(est.score(xp.asarray(X), xp.asarray(Y)), expected["score"])
        if finite:
            same(est.predict_members(new), expected["members"], xp)
            same(est.predict(new, return_std=True)[1], expected["std"], xp)


@NAMESPACES
def test_partial_fit(xp):
    est = RFEnsembleRegressor(3, 16, alpha=0.1, random_state=0)
    expected = est.partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:]).predict(X)
    again = RFEnsembleRegressor(3, 16, alpha=0.1, random_state=0)
    with config_context(array_api_dispatch=True):
        for part in (slice(0, 20), slice(20, 30)):
            again.partial_fit(xp.asarray(X[part]), xp.asarray(Y[part]))
        same(again.predict(xp.asarray(X)), expected, xp)
        with pytest.raises(ValueError, match="namespace"):
            again.predict(X)
        with pytest.raises(ValueError, match="namespace"):
            again.partial_fit(X, Y)


@NAMESPACES
def test_functions(xp):
    kernel = rf_kernel(X, X_TEST, "erf", bias_scale=1.0)
    est = RFEnsembleRegressor(4, 16, alpha=0.1, random_state=0).fit(X, Y)
    parts, bias = variance_decomposition(est, X_TEST, Y[:8]), width_bias(est, X_TEST)
    with config_context(array_api_dispatch=True):
        arrays = [xp.asarray(A) for A in (X, X_TEST, Y[:8])]
        same(rf_kernel(arrays[0], arrays[1], "erf", bias_scale=1.0), kernel, xp)
        est.fit(arrays[0], xp.asarray(Y))
        again = variance_decomposition(est, arrays[1], arrays[2])
        assert_allclose([again[k] for k in parts], list(parts.values()), rtol=1e-6)
        same(width_bias(est, arrays[1]).bias, bias.bias, xp)


def test_float32_stays_float32():
    est = RFEnsembleRegressor(2, 16, random_state=0)
    with config_context(array_api_dispatch=True):
        X32 = torch.asarray(X, dtype=torch.float32)
        est.fit(X32, torch.asarray(Y))
        assert est.weights_.dtype == est.predict(X32).dtype == torch.float32
        assert est.coef_.dtype == torch.float64


def test_torch_matrix_that_is_singular_to_rounding():
    repeated = np.repeat(X[:4], 8, axis=0)
    y = np.repeat(Y[:4], 8, axis=0)
    est = RFEnsembleRegressor(2, 64, alpha=1e-17, random_state=0)
    expected = est.fit(repeated, y).predict(X[:4])
    with config_context(array_api_dispatch=True):
        est.fit(torch.asarray(repeated), torch.asarray(y))
        same(est.predict(torch.asarray(X[:4])), expected, torch, 1e-4)
    assert_allclose(expected, Y[:4], atol=1e-5)
