"""Infinite-width kernels against Monte Carlo, quadrature and mpmath."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import rbf_kernel

from skextra.ensemble import rf_kernel
from skextra.ensemble._features import FEATURE_MAPS, WEIGHT_DISTRIBUTIONS, draw_weights
from skextra.ensemble._features import features as random_features
from skextra.ensemble._kernels import is_monte_carlo, kernel, kernel_diagonal
from tests.ensemble.reference import MAPS, kernel_2d

X = np.random.RandomState(0).randn(6, 3)
Y = np.random.RandomState(1).randn(5, 3) * 1.5


@pytest.mark.parametrize("distribution", WEIGHT_DISTRIBUTIONS)
@pytest.mark.parametrize("feature_map", [*FEATURE_MAPS, np.tanh])
def test_kernel_is_the_expectation_of_the_features(feature_map, distribution):
    rng, n_draws = np.random.RandomState(0), 200_000
    weights, phases = draw_weights(1, 3, n_draws, feature_map, distribution, rng)
    phases = None if phases is None else phases[0]
    phi, psi = (random_features(A, weights[0], phases, feature_map) for A in (X, Y))
    estimate = phi @ psi.T / n_draws
    error = np.sqrt((phi**2 @ (psi**2).T / n_draws - estimate**2) / n_draws)
    if is_monte_carlo(feature_map, distribution):  # an estimate itself, of 2^14 draws
        error = error * math.sqrt(1 + n_draws / 2**14)
    K = kernel(X, Y, feature_map, distribution)
    assert np.all(np.abs(K - estimate) < 5 * error + 1e-12)
    assert_allclose(
        kernel_diagonal(X, feature_map, distribution),
        np.diag(kernel(X, X, feature_map, distribution)),
        rtol=1e-12,
    )


@pytest.mark.parametrize(
    ("feature_map", "tolerance"),
    [("softplus", 2e-8), (np.tanh, 2e-4), (lambda z: z**3 - z, 1e-9)],
)
def test_mehler_expansion_equals_the_double_quadrature(feature_map, tolerance):
    phi = MAPS.get(feature_map, feature_map)
    expected = [[kernel_2d(x, y, phi, 200) for y in Y] for x in X]
    K = rf_kernel(X, Y, feature_map)
    assert_allclose(K, expected, rtol=1e-9, atol=tolerance)
    # within the norms that the automatic weight scale gives
    near = [[kernel_2d(x / 3, y / 3, phi, 200) for y in Y] for x in X]
    assert_allclose(rf_kernel(X / 3, Y / 3, feature_map), near, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("feature_map", ["relu", "step", "erf"])
def test_formulas_agree_with_quadrature(feature_map):
    K = rf_kernel(X, Y, feature_map)
    expected = [[kernel_2d(x, y, MAPS[feature_map], 200) for y in Y] for x in X]
    # the quadrature is what is inaccurate, where the map has a kink or a jump
    tolerance = {"relu": 5e-3, "step": 2e-2, "erf": 1e-6}[feature_map]
    assert_allclose(K, expected, atol=tolerance)


@pytest.mark.parametrize(
    "angle", [0.0, 1e-12, 1e-8, 1e-4, 5e-3, 0.02, 0.45, 2.0, 3.12, math.pi - 1e-9]
)
def test_arc_cosine_kernels_keep_their_digits_at_small_angles(angle):
    x, y = np.array([[2.0, 0.0]]), 3 * np.array([[math.cos(angle), math.sin(angle)]])
    with mpmath.workdps(40):
        t = mpmath.atan2(y[0, 1], y[0, 0])
        shape = mpmath.sin(t) + (mpmath.pi - t) * mpmath.cos(t)
        norm = mpmath.hypot(y[0, 0], y[0, 1])
        relu = float(2 * norm * shape / (2 * mpmath.pi))
        step = float((mpmath.pi - t) / (2 * mpmath.pi))
    assert_allclose(rf_kernel(x, y, "relu"), relu, rtol=3e-15, atol=1e-15)
    assert_allclose(rf_kernel(x, y, "step"), step, rtol=3e-15, atol=1e-15)


def test_diagonal_is_exact():
    assert_allclose(np.diag(rf_kernel(X)), (X**2).sum(axis=1) / 2, rtol=1e-15)
    assert np.all(np.diag(rf_kernel(X, feature_map="step")) == 0.5)
    assert np.all(np.diag(rf_kernel(X, feature_map="fourier")) == 1)


def test_known_shift_invariant_kernels():
    assert_allclose(rf_kernel(X, Y, "fourier"), rbf_kernel(X, Y, gamma=0.5))
    scaled = rf_kernel(X, Y, "fourier_paired", weight_scale=0.3)
    assert_allclose(scaled, rbf_kernel(X, Y, gamma=0.3**2 / 2))
    matern = Matern(length_scale=1.0, nu=1.5)
    assert_allclose(kernel(X, Y, "fourier", "student_t"), matern(X, Y), rtol=1e-12)


def test_gaussian_kernel_keeps_its_digits_far_from_the_origin():
    far = X + 1e6
    assert_allclose(
        rf_kernel(far, feature_map="fourier"), rbf_kernel(X, gamma=0.5), 1e-8
    )


def test_zero_rows():
    zero = np.zeros((1, 3))
    for feature_map in ("relu", "step", "erf"):
        assert np.all(rf_kernel(zero, X, feature_map) == 0)
        assert kernel_diagonal(zero, feature_map) == 0
    # softplus(0) = log 2 is a feature like any other
    assert_allclose(rf_kernel(zero, feature_map="softplus"), math.log(2) ** 2)


def test_bias_appends_a_constant():
    with_constant = np.column_stack([2 * X, np.full(6, 0.7)])
    K = rf_kernel(X, weight_scale=2.0, bias_scale=0.7)
    assert_allclose(K, rf_kernel(with_constant), rtol=1e-14)
    fourier = rf_kernel(X, feature_map="fourier", bias_scale=0.7)
    assert_allclose(fourier, rf_kernel(X, feature_map="fourier"))


@settings(max_examples=40)
@given(
    arrays(float, (4, 2), elements=st.floats(-20, 20, width=32)),
    st.sampled_from(FEATURE_MAPS),
)
def test_kernels_are_symmetric_and_positive(A, feature_map):
    K = rf_kernel(A, feature_map=feature_map)
    assert np.isfinite(K).all()
    assert_allclose(K, K.T, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(K).min() >= -1e-10 * max(1.0, np.trace(K))


def test_float32_is_computed_in_float64():
    assert rf_kernel(X.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"Y": np.ones((2, 4))}, "same number of columns; got 3 and 4"),
        ({"feature_map": "tanh"}, "feature_map"),
        ({"weight_scale": 0}, "weight_scale"),
        ({"bias_scale": -1.0}, "bias_scale"),
        ({"Y": np.full((1, 3), np.nan)}, "NaN"),
        ({"feature_map": lambda z: z.sum()}, "feature_map must be elementwise"),
    ],
)
def test_bad_input(kwargs, message):
    with pytest.raises(ValueError, match=message):
        rf_kernel(X, **kwargs)
