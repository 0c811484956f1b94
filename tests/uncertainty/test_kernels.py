"""Compiled kernels against arithmetic of fifty digits, NumPy and quadrature."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import xlogy
from scipy.stats import norm

from skextra.uncertainty._numba import (
    entropies,
    largest,
    mean_entropies,
    squares,
    xlogx,
)
from skextra.uncertainty._numba_mixtures import crps, entropy
from tests.uncertainty import reference


@njit
def each_xlogx(x, out):
    for i in range(len(x)):
        out[i] = xlogx(x[i])


def exact_xlogx(x):
    with mp.workdps(50):
        x = mpf(float(x))
        return x * mp.log(x) if x > 0 else mpf(0)


def ulps(x):
    out = np.empty_like(x)
    each_xlogx(x, out)
    with mp.workdps(50):
        exact = [exact_xlogx(v) for v in x]
        return np.array(
            [
                float(abs(mpf(float(o)) - e) / mpf(float(np.spacing(abs(float(e))))))
                for o, e in zip(out, exact)
            ]
        )


def test_xlogx_over_the_whole_range():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.random(400),
            10 ** rng.uniform(-307, 0, 400),
            1 - 10 ** rng.uniform(-16, -1, 200),
            1 + 10 ** rng.uniform(-15, 2, 200),
            2.0 ** -np.arange(0, 1000, 25) * np.sqrt(0.5),
            np.nextafter(np.sqrt(0.5) * 2.0 ** np.arange(-3, 3), 0),
        ]
    )
    assert ulps(x[x != 1]).max() <= 2


def test_xlogx_at_the_ends():
    x = np.array([0.0, 1.0, -0.0])
    out = np.full(3, np.nan)
    each_xlogx(x, out)
    assert_array_equal(out, 0)
    tiny = np.array([5e-324, 1e-320, 1e-310, 2.2e-308, np.finfo(float).tiny])
    out = np.empty(5)
    each_xlogx(tiny, out)
    assert_allclose(out, [float(exact_xlogx(v)) for v in tiny], rtol=0.06)
    assert_allclose(out[-1], float(exact_xlogx(tiny[-1])), rtol=1e-15)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (3, 4, 5, 7), (2, 3, 1, 9)])
def test_convex_functions_of_tables(shape):
    rng = np.random.default_rng(1)
    joint = rng.random(shape)
    joint[rng.random(shape) < 0.2] = 0
    joint[:, 0] = 0  # a label that never comes
    mass = joint.sum(axis=2).mean(axis=-1)
    out = np.full((shape[0], shape[3]), np.nan)
    entropies(joint, out)
    assert_allclose(out, xlogy(joint, joint).sum(axis=(1, 2)), rtol=1e-13, atol=1e-15)
    largest(joint, out)
    assert_allclose(out, joint.max(axis=2).sum(axis=1), rtol=1e-14)
    largest(-joint, out)
    assert_allclose(out, -joint.min(axis=2).sum(axis=1), rtol=1e-14)
    squares(joint, mass, out)
    some = np.where(mass > 0, mass, np.inf)[:, :, None]
    assert_allclose(out, ((joint**2).sum(axis=2) / some).sum(axis=1), rtol=1e-13)


def test_squares_of_labels_that_hardly_come():
    joint = np.array([1.0, 1e-160, 1e-310, 5e-324])[None, :, None, None]
    out = np.empty((1, 1))
    squares(joint, joint[:, :, 0, 0], out)
    assert_allclose(out, 1, rtol=1e-15)


@pytest.mark.parametrize("n_terms", [1, 2, 5, 16, 1003])
def test_mean_entropies_whatever_the_order_of_the_sum(n_terms):
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.full(n_terms, 0.3), size=7)
    p[0] = np.eye(n_terms)[0]
    weights = rng.dirichlet(np.ones(n_terms))
    out = np.full(7, np.nan)
    mean_entropies(p, weights, out)
    exact = [math.fsum(row) for row in -xlogy(p, p) * weights]
    assert_allclose(out, exact, rtol=1e-14, atol=1e-18)


MIXTURES = [
    ([0.3], [1.7], [1.0]),
    ([-1.0, 1.0], [0.5, 0.5], [0.5, 0.5]),
    ([0.0, 0.4, 7.0], [1.0, 0.03, 2.0], [0.2, 0.5, 0.3]),
    ([0.0, 40.0], [1.0, 0.2], [0.9, 0.1]),
    ([0.0, 0.0], [1.0, 1e-4], [0.5, 0.5]),
    ([0.0, 30.0], [1.0, 10.0], [0.5, 0.5]),
    (np.linspace(-2, 2, 8), np.linspace(0.1, 2, 8), np.full(8, 0.125)),
]


@pytest.mark.parametrize("mean, std, weights", MIXTURES)
def test_mixture_kernels(mean, std, weights):
    mean, std, weights = np.array(mean), np.array(std), np.array(weights)
    exact = reference.mixture_entropy(mean, std, weights)
    assert_allclose(entropy(mean[None], std[None] ** 2, weights), exact, atol=1e-10)
    exact = reference.mixture_crps(mean, std, weights)
    assert_allclose(crps(mean[None], std[None] ** 2, weights), exact, rtol=1e-11)


def test_entropy_of_one_member_is_closed():
    mean, var = np.array([[0.0], [1e3], [-5.0]]), np.array([[1.0], [1e-6], [1e6]])
    exact = np.log(2 * np.pi * np.e * var[:, 0]) / 2
    assert_allclose(entropy(mean, var, np.ones(1)), exact, rtol=1e-10)


def test_entropy_far_apart_adds_that_of_the_choice():
    mean, var = np.array([[0.0, 1e3, 2e3]]), np.array([[1.0, 4.0, 9.0]])
    weights = np.array([0.2, 0.3, 0.5])
    alone = np.log(2 * np.pi * np.e * var[0]) / 2
    choice = -(weights * np.log(weights)).sum()
    assert_allclose(entropy(mean, var, weights), weights @ alone + choice, rtol=1e-11)


def test_crps_of_members_without_variance():
    mean = np.array([[0.0, 1.0, 5.0]])
    weights = np.array([0.5, 0.3, 0.2])
    exact = reference.half_distance(weights, mean[0])
    assert_allclose(crps(mean, np.zeros((1, 3)), weights), exact, rtol=1e-14)
    # One of three without variance.
    var = np.array([[0.0, 1.0, 4.0]])

    def term(z):
        F = 0.5 * (z >= 0) + 0.3 * norm.cdf(z - 1) + 0.2 * norm.cdf((z - 5) / 2)
        return F * (1 - F)

    exact = quad(term, -12, 0)[0] + sum(
        quad(term, a, b)[0] for a, b in [(1e-300, 1), (1, 5), (5, 25)]
    )
    assert_allclose(crps(mean, var, weights), exact, rtol=1e-9)
