"""Random features: draws, nonlinearities and the kernel that counts in turns."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skextra.ensemble import _numba
from skextra.ensemble._features import (
    FEATURE_MAPS,
    WEIGHT_DISTRIBUTIONS,
    activate,
    draw_weights,
)
from tests.ensemble.reference import MAPS


def test_cosines_are_right_to_the_last_digits():
    z = np.concatenate([np.linspace(-7, 7, 20001), [0.0, math.pi, 1e3, -1e5, 1e-300]])
    phase = np.array([0.7])
    Z = z[:, None].copy()
    _numba.cosine_features(Z, phase)
    with mpmath.workdps(30):
        exact = [mpmath.sqrt(2) * mpmath.cos(mpmath.mpf(a) + phase[0]) for a in z]
    error = np.abs(Z[:, 0] - np.array(exact, dtype=float))
    # the argument is rounded thrice, by half a unit in its last place
    assert np.all(error <= 7e-16 + 2.5e-16 * np.abs(z + phase[0]))


@given(arrays(float, (3, 4), elements=st.floats(-1e4, 1e4)))
def test_cosine_kernel_agrees_with_numpy(Z):
    phases = np.linspace(0, 6, 4)
    expected = math.sqrt(2) * np.cos(Z + phases)
    _numba.cosine_features(Z, phases)
    assert_allclose(Z, expected, atol=1e-11)


def test_cosine_kernel_accepts_float32():
    Z = np.linspace(-9, 9, 40, dtype=np.float32).reshape(4, 10)
    phases = np.linspace(0, 6, 10, dtype=np.float32)
    expected = math.sqrt(2) * np.cos(Z.astype(float) + phases)
    _numba.cosine_features(Z, phases)
    assert Z.dtype == np.float32
    assert_allclose(Z, expected, atol=2e-6)


@pytest.mark.parametrize("feature_map", MAPS)
def test_activations(feature_map):
    Z = np.array([[-800.0, -1.5, -0.0], [0.0, 0.3, 800.0]])
    assert_allclose(activate(Z.copy(), None, feature_map), MAPS[feature_map](Z))


@pytest.mark.parametrize("feature_map", FEATURE_MAPS)
def test_larger_ensembles_begin_with_the_smaller_ones(feature_map):
    small, large = (
        draw_weights(m, 3, 6, feature_map, "normal", np.random.RandomState(1))
        for m in (2, 5)
    )
    assert_array_equal(small[0], large[0][:2])
    if small[1] is not None:
        assert_array_equal(small[1], large[1][:2])


def test_paired_features_have_norm_one():
    weights, phases = draw_weights(
        1, 3, 8, "fourier_paired", "normal", np.random.RandomState(0)
    )
    X = np.random.RandomState(1).randn(5, 3)
    F = activate(X @ weights[0], phases[0], "fourier_paired") / math.sqrt(8)
    assert_allclose((F**2).sum(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize("distribution", WEIGHT_DISTRIBUTIONS)
def test_distributions_have_their_variance(distribution):
    rng = np.random.RandomState(0)
    weights, _ = draw_weights(1, 2, 200_000, "relu", distribution, rng)
    median = np.median(np.abs(weights))
    expected = {
        "normal": 0.67449,
        "uniform": math.sqrt(3) / 2,
        "laplace": math.sqrt(0.5) * math.log(2),
        "student_t": 0.76489,
    }
    assert_allclose(median, expected[distribution], rtol=0.01)
    assert_allclose(weights.mean(), 0, atol=0.02)
