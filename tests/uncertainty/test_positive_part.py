"""Squared errors weighted by the positive part, under normal distributions."""

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose

from skextra.uncertainty import (
    WeightedSquaredError,
    mixture_action,
    mixture_uncertainty,
)

POSITIVE_PART = WeightedSquaredError("positive_part")

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=(4, 3)) * 1.5
VAR = RNG.uniform(0.05, 2, size=(4, 3))


def exact_positive_part(mean, std, weights):
    """Action and uncertainty in many digits; E[w] is the first of three moments."""
    total = [mpf(0)] * 3
    for m, s, w in zip(mean, std, weights):
        m, s, w = mpf(float(m)), mpf(float(s)), mpf(float(w))
        if s == 0:
            each = [max(m, mpf(0)) ** j for j in (1, 2, 3)]
        else:
            C, Z = mp.ncdf(m / s), mp.npdf(m / s)
            each = [
                m * C + s * Z,
                (m**2 + s**2) * C + m * s * Z,
                (m**3 + 3 * m * s**2) * C + (m**2 * s + 2 * s**3) * Z,
            ]
        total = [t + w * e for t, e in zip(total, each)]
    first, second, third = total
    if first == 0:
        return 0.0, 0.0
    return float(second / first), float(third - second**2 / first)


RATIOS = [-37, -30, -20, -10, -6.01, -6, -5.99, -5, -3, -1, 0, 0.5, 1, 5, 10, 20]
RATIOS += [39, 39.99, 40, 40.01, 100, 1e3, 1e5, 1e8]


@pytest.mark.parametrize("std", [1.0, 1e-3, 1e4])
def test_positive_part_of_one_member(std):
    mean = np.array(RATIOS) * std
    with mp.workdps(600):
        exact = np.array([exact_positive_part([m], [std], [1.0]) for m in mean])
    action = mixture_action(mean[:, None], std**2, POSITIVE_PART)
    total = mixture_uncertainty(mean[:, None], std**2, POSITIVE_PART)
    assert_allclose(action, exact[:, 0], rtol=1e-11)
    normal = exact[:, 1] > 1e-300
    assert_allclose(total[normal], exact[normal, 1], rtol=1e-9)
    assert normal.sum() > 20


@pytest.mark.parametrize("ratio", [-39.0, -40.0, -100.0, -1e8])
def test_positive_part_of_what_is_never_above_zero(ratio):
    for std in (1e-3, 1.0, 1e3):
        mean = [[ratio * std]]
        assert mixture_uncertainty(mean, std**2, POSITIVE_PART) == 0
        assert mixture_action(mean, std**2, POSITIVE_PART) == 0


@pytest.mark.parametrize("std", [1e-3, 1.0, 1e3])
def test_positive_part_where_the_weight_underflows(std):
    # The truth is about 2 std/38; 0 where the weight is too small to tell.
    ratio = -np.linspace(37.5, 39, 31)
    mean = ratio * std
    action = mixture_action(mean[:, None], std**2, POSITIVE_PART)
    total = mixture_uncertainty(mean[:, None], std**2, POSITIVE_PART)
    near = np.abs(action / (2 * std / -ratio) - 1) < 0.1
    assert (near | (action == 0)).all()
    assert (total >= 0).all()


@pytest.mark.parametrize(
    "mean, std, weights",
    [
        ([-38.0, -10.0], [1.0, 1.0], [0.5, 0.5]),
        ([-7.0, 50.0], [1.0, 1.0], [0.5, 0.5]),
        ([-7.0, -6.5, -5.0], [1.0, 1.0, 1.0], [0.2, 0.3, 0.5]),
        ([1e8, 1e8 + 1], [1.0, 1.0], [0.5, 0.5]),
        ([1.0, 2.0, -3.0], [0.0, 0.0, 0.0], [0.2, 0.3, 0.5]),
        ([1.0, 2.0, -3.0], [0.0, 1.0, 2.0], [0.2, 0.3, 0.5]),
        ([0.0, 2.0], [0.0, 0.01], [0.2, 0.8]),
    ],
)
def test_positive_part_of_mixtures(mean, std, weights):
    with mp.workdps(600):
        exact = exact_positive_part(mean, std, weights)
    var = [np.square(std)]
    action = mixture_action([mean], var, POSITIVE_PART, weights=weights)
    total = mixture_uncertainty([mean], var, POSITIVE_PART, weights=weights)
    assert_allclose(action, exact[0], rtol=1e-11)
    assert_allclose(total, exact[1], rtol=1e-9)


def test_positive_part_by_name_and_by_function():
    # 64 nodes do not see the kink at 0 exactly, far above it there is none.
    by_nodes = WeightedSquaredError(lambda z: np.maximum(z, 0))
    mean = MEAN + 12
    assert_allclose(
        mixture_uncertainty(mean, VAR, by_nodes),
        mixture_uncertainty(mean, VAR, POSITIVE_PART),
        rtol=1e-9,
    )
