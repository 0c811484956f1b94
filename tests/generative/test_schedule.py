"""Grids, the bias they cost, and how the steps are drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from skextra.generative import consistency_schedule, required_discretization
from skextra.generative._schedule import (
    KINDS,
    bias_coefficient,
    doubling_steps,
    grid,
    lognormal_pmf,
    rounded_up,
    tuning_chain,
    tuning_doublings,
    tuning_ratio,
)
from tests.generative import reference
from tests.generative.reference import gaussian_bias, gaussian_multipliers

EPS, T = reference.EPS, reference.T
RHOS = [1, 3, 7, np.inf]


@settings(derandomize=True, deadline=None)
@given(
    st.integers(2, 300),
    st.sampled_from(KINDS),
    st.floats(0.5, 50),
    st.floats(1e-4, 0.1),
    st.floats(0.2, 200),
)
def test_grids_increase_and_end_exactly(n, kind, rho, low, high):
    levels = consistency_schedule(n, kind, rho=rho, sigma_min=low, sigma_max=high)
    assert levels.shape == (n + 1,) and levels.dtype == np.float64
    assert levels[0] == low and levels[-1] == high
    assert (np.diff(levels) > 0).all()


def test_published_grid():
    """The 18 levels of Karras et al., from the largest, for rho=7."""
    ramp = np.linspace(0, 1, 18)
    published = (80 ** (1 / 7) + ramp * (0.002 ** (1 / 7) - 80 ** (1 / 7))) ** 7
    levels = consistency_schedule(17)
    np.testing.assert_allclose(levels[::-1], published, rtol=1e-12)
    first = [80.0, 57.5860, 40.7856, 28.3746, 19.3524, 12.9101, 8.4009, 5.3152]
    np.testing.assert_allclose(levels[::-1][:8], first, rtol=5e-5)


def test_limits_of_the_decay():
    for n in (5, 40):
        uniform, geometric = (grid(n, k, 7, EPS, T) for k in ("uniform", "geometric"))
        np.testing.assert_allclose(uniform, np.linspace(EPS, T, n + 1), rtol=1e-13)
        np.testing.assert_allclose(grid(n, "decay", 1, EPS, T), uniform, rtol=1e-13)
        np.testing.assert_array_equal(grid(n, "decay", np.inf, EPS, T), geometric)
        np.testing.assert_allclose(grid(n, "decay", 1e6, EPS, T), geometric, rtol=1e-3)
        ratios = geometric[1:] / geometric[:-1]
        np.testing.assert_allclose(ratios, ratios[0])


def test_vp_levels_are_equal_steps_of_its_time():
    levels = consistency_schedule(50, "vp")
    time = np.log(1 + levels**2) / 2
    np.testing.assert_allclose(np.diff(time), time[-1] / 50, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.03, 0.5, 2.0])
def test_multipliers_are_euler_steps(kind, scale):
    levels = grid(37, kind, 7.0, EPS, T)
    error = reference.euler_std_error(levels, scale)
    np.testing.assert_allclose(gaussian_bias(levels, scale), error, rtol=1e-12)
    a = gaussian_multipliers(levels, scale)
    assert a[0] == 1 and a.shape == levels.shape and (np.diff(a) < 0).all()


@pytest.mark.parametrize(
    ("n", "errors", "vp"),
    [
        (16, [-0.960, -0.346, -0.200, -0.153], 3.73),
        (64, [-0.901, -0.105, -0.054, -0.041], 1.41),
        (256, [-0.682, -0.027, -0.014, -0.010], 0.44),
        (1024, [-0.266, -0.0069, -0.0035, -0.0026], 0.114),
    ],
)
def test_bias_for_a_scale_of_a_tenth(n, errors, vp):
    found = [gaussian_bias(grid(n, "decay", rho, EPS, T), 0.1) for rho in RHOS]
    np.testing.assert_allclose(found, errors, atol=6e-4)
    assert reference.vp_euler_std_error(n, 0.1) == pytest.approx(vp, abs=6e-3)


@pytest.mark.parametrize(
    ("n", "distances"),
    [
        (10, [0.451, 0.163, 0.120, 0.115]),
        (40, [0.376, 0.0537, 0.0413, 0.0398]),
        (160, [0.175, 0.0182, 0.0136, 0.0129]),
    ],
)
def test_mixture_of_two(n, distances):
    """Larger rho needs fewer steps, for exact scores."""
    found = [reference.mixture_w2(grid(n, "decay", rho, EPS, T)) for rho in RHOS]
    np.testing.assert_allclose(found, distances, rtol=5e-3)
    assert (np.diff(found) < 0).all()


@pytest.mark.parametrize(
    ("scale", "rho", "exact", "formula"),
    [
        (0.5, 3.0, 412, 414),
        (0.5, 7.0, 283, 285),
        (0.5, np.inf, 264, 265),
        (0.1, 3.0, 704, 708),
        (0.1, 7.0, 356, 358),
        (0.1, np.inf, 264, 265),
    ],
)
def test_required_steps(scale, rho, exact, formula):
    assert required_discretization(0.01, scale, rho=rho) == formula

    def error(n):
        return abs(gaussian_bias(grid(n, "decay", rho, EPS, T), scale))

    assert error(exact) <= 0.01 < error(exact - 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0])
def test_bias_coefficient_is_the_integral(kind, scale):
    """It is half the integral of s^2 / (s^2 + t^2)^2 times the speed of the grid."""
    slopes = {
        "decay": lambda t: 7 * t ** (6 / 7) * (T ** (1 / 7) - EPS ** (1 / 7)),
        "uniform": lambda t: T - EPS,
        "vp": lambda t: (1 + t**2) / t * np.log((1 + T**2) / (1 + EPS**2)) / 2,
        "geometric": lambda t: t * np.log(T / EPS),
    }

    def integrand(log_t):
        t = np.exp(log_t)
        return slopes[kind](t) * scale**2 / (scale**2 + t**2) ** 2 * t / 2

    integral, _ = quad(integrand, np.log(EPS), np.log(T), epsabs=1e-9, limit=200)
    tolerance = 1e-9 if kind == "vp" else 0.03  # the others are for 0 and infinity
    found = bias_coefficient(scale, kind, 7.0, EPS, T)
    assert found == pytest.approx(integral, rel=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_bias_is_the_coefficient_over_the_number_of_steps(kind):
    n = 2_000_000 if kind in ("uniform", "vp") else 2000
    bias = gaussian_bias(grid(n, kind, 7.0, EPS, T), 0.5)
    found = bias_coefficient(0.5, kind, 7.0, EPS, T)
    assert -bias * n == pytest.approx(found, rel=0.02)


def test_doubling_of_the_published_training():
    steps, starts = doubling_steps(400_000, 10, 1280)
    assert steps == [10, 20, 40, 80, 160, 320, 640, 1280]
    assert starts == [50_000 * k for k in range(8)]

    def levels(k):
        return steps[sum(start <= k for start in starts) - 1] + 1

    iterations = [0, 49_999, 50_000, 150_000, 350_000, 399_999]
    assert [levels(k) for k in iterations] == [11, 11, 21, 81, 1281, 1281]


def test_doubling_of_short_trainings():
    assert doubling_steps(100, 20, 20) == ([20], [0])
    assert doubling_steps(3, 10, 1280)[0] == [10, 20, 40]
    steps, starts = doubling_steps(1003, 10, 1280)
    assert steps[-1] == 1280 and max(starts) < 1003
    assert [rounded_up(n) for n in (2, 10, 11, 285, 1281, 10**6)] == [
        10,
        10,
        20,
        320,
        1280,
        1280,
    ]


def test_lognormal_pmf():
    levels = grid(10, "decay", 7.0, EPS, T)
    mass = np.diff(norm.cdf(np.log(levels), -1.1, 2.0))
    found = lognormal_pmf(levels)
    np.testing.assert_allclose(found, mass / mass.sum(), rtol=1e-12)
    assert found.sum() == pytest.approx(1, abs=1e-15)
    # 1280 steps have tiny ones, none of them impossible.
    assert (lognormal_pmf(grid(1280, "decay", 7.0, EPS, T)) > 0).all()


def test_steps_of_tuning():
    assert tuning_ratio(0.0, 1) == pytest.approx(5 / 2)
    assert tuning_ratio(1e4, 3) == pytest.approx(1 / 8)
    for n in (10, 320):
        doublings = tuning_doublings(n, EPS, T)
        chain = tuning_chain(doublings, EPS, T)
        assert chain[0] == EPS and chain[-1] == T and (np.diff(chain) > 0).all()
        assert len(chain) - 1 >= n > len(tuning_chain(doublings - 1, EPS, T)) - 1
        lower = chain[1:] * (1 - tuning_ratio(chain[1:], doublings))
        np.testing.assert_allclose(chain[1:-1], lower[1:], rtol=1e-12)


@pytest.mark.parametrize("rho", [1e6, 1e12, 1e18])
def test_large_rho_is_geometric(rho):
    limit = consistency_schedule(50, "geometric")
    np.testing.assert_allclose(consistency_schedule(50, rho=rho), limit, rtol=1e-4)
    assert required_discretization(rho=rho) == required_discretization(kind="geometric")


def test_tuning_has_the_steps_that_it_needs():
    """Its bias is that of the grid which the number of steps was computed for, or near."""
    for scale in (0.5, 0.1, 0.02):
        n_steps = rounded_up(required_discretization(0.01, scale))
        chain = tuning_chain(tuning_doublings(n_steps, EPS, T), EPS, T)
        assert abs(gaussian_bias(chain, scale)) < 0.016
