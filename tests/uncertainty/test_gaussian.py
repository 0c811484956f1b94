"""Closed forms of Gaussian processes against processes that are fitted again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from skextra.uncertainty import gaussian_bald, gaussian_epig, gaussian_eur

NOISE = 0.1


def fitted(X, y, noise=NOISE):
    return GaussianProcessRegressor(RBF(1.0), alpha=noise, optimizer=None).fit(X, y)


def problem():
    rng = np.random.default_rng(0)
    X, pool, target = (rng.uniform(-3, 3, size=(n, 1)) for n in (5, 4, 6))
    y = np.tanh(X[:, 0])
    process = fitted(X, y)
    _, joint = process.predict(np.vstack([pool, target]), return_cov=True)
    return X, y, pool, target, joint[:4, :4], joint[:4, 4:], joint[4:, 4:]


def test_reduction_is_that_of_a_refit():
    X, y, pool, target, pool_cov, cov, target_cov = problem()
    var_pool, var_target = pool_cov.diagonal(), target_cov.diagonal()
    pairs = gaussian_eur(cov, var_pool, NOISE, pairwise=True)
    information = gaussian_epig(cov, var_pool, var_target, NOISE, NOISE, pairwise=True)
    for i in range(4):
        # Whatever the label, the variance afterwards is the same.
        for label in (-1.0, 3.0):
            again = fitted(np.vstack([X, pool[[i]]]), np.append(y, label))
            _, std = again.predict(target, return_std=True)
            assert_allclose(pairs[i], var_target - std**2, rtol=1e-7, atol=1e-10)
            gain = np.log((var_target + NOISE) / (std**2 + NOISE)) / 2
            assert_allclose(information[i], gain, rtol=1e-7, atol=1e-10)
    weights = np.arange(1.0, 7)
    w = weights / weights.sum()
    assert_allclose(gaussian_eur(cov, var_pool, NOISE), pairs.mean(axis=1))
    got = gaussian_eur(cov, var_pool, NOISE, target_weights=weights)
    assert_allclose(got, pairs @ w, rtol=1e-12)
    more = {"noise_pool": NOISE, "noise_target": NOISE}
    assert_allclose(
        gaussian_epig(cov, var_pool, var_target, **more), information.mean(axis=1)
    )
    got = gaussian_epig(cov, var_pool, var_target, target_weights=weights, **more)
    assert_allclose(got, information @ w, rtol=1e-12)


def test_closed_forms():
    cov = np.array([[0.3, -0.2], [0.0, 0.5]])
    var_pool, var_target = np.array([1.0, 2.0]), np.array([0.5, 1.5])
    noise_pool, noise_target = np.array([0.1, 0.2]), np.array([0.3, 0.4])
    rho2 = cov**2 / np.outer(var_pool + noise_pool, var_target + noise_target)
    got = gaussian_epig(
        cov, var_pool, var_target, noise_pool, noise_target, pairwise=True
    )
    assert_allclose(got, -np.log(1 - rho2) / 2, rtol=1e-12)
    got = gaussian_eur(cov, var_pool, noise_pool, pairwise=True)
    assert_allclose(got, cov**2 / (var_pool + noise_pool)[:, None], rtol=1e-13)
    got = gaussian_bald(var_pool, noise_pool)
    assert_allclose(got, np.log(1 + var_pool / noise_pool) / 2, rtol=1e-14)
    assert_allclose(gaussian_bald([1e-20], 1.0), 5e-21)


def test_information_about_the_point_itself():
    var, noise = np.array([0.5, 3.0]), 0.2
    # A target without noise is the value itself: all that a label tells.
    got = gaussian_epig(np.diag(var), var, var, noise, 0.0, pairwise=True)
    assert_allclose(got.diagonal(), gaussian_bald(var, noise), rtol=1e-12)
    assert_array_equal(got[[0, 1], [1, 0]], 0)


def test_where_there_is_no_noise():
    assert_array_equal(gaussian_bald([0.0, 1.0], 0.0), [0, np.inf])
    assert_array_equal(gaussian_bald([0.0, 1.0], [0.0, 1e-320]), [0, np.inf])
    for var in (0.1, 0.3, 1.0, 3e-200, 7e100):
        assert gaussian_epig([[var]], [var], [var]) == np.inf
        assert gaussian_epig([[-var]], [var], [var]) == np.inf
        assert_allclose(gaussian_eur([[var]], [var]), var, rtol=1e-14)
    assert_array_equal(gaussian_epig([[0.0]], [0.0], [1.0]), 0)
    assert_array_equal(gaussian_epig([[0.0]], [1.0], [0.0]), 0)
    assert_array_equal(gaussian_eur([[0.0, 0.0]], [0.0]), 0)
    # One pair that gives the other makes the mean infinite.
    got = gaussian_epig([[1.0, 0.5]], [1.0], [1.0, 1.0])
    assert got == np.inf


def test_rounding_above_the_bound_is_let_through():
    got = gaussian_epig([[1 + 1e-9]], [1.0], [1.0])
    assert got == np.inf
    got = gaussian_epig([[1 + 1e-9]], [1.0], [1.0], 1.0)
    assert_allclose(got, np.log(2) / 2, rtol=1e-8)


def test_near_one_and_near_zero():
    rest = 1e-12
    got = gaussian_epig([[1.0]], [1.0], [1.0], 2 * rest)
    assert_allclose(got, -np.log(2 * rest) / 2, rtol=1e-4)
    got = gaussian_epig([[1e-9]], [1.0], [1.0])
    assert_allclose(got, 5e-19, rtol=1e-6)
    assert (gaussian_epig([[1e-9]], [1.0], [1.0]) > 0).all()


def test_invariants():
    _, _, _, _, pool_cov, cov, target_cov = problem()
    var_pool, var_target = pool_cov.diagonal(), target_cov.diagonal()
    pairs = gaussian_epig(cov, var_pool, var_target, NOISE, 0.3, pairwise=True)
    back = gaussian_epig(cov.T, var_target, var_pool, 0.3, NOISE, pairwise=True)
    assert_allclose(pairs, back.T, rtol=1e-12)
    limit = np.minimum.outer(
        gaussian_bald(var_pool, NOISE), gaussian_bald(var_target, 0.3)
    )
    assert (pairs <= limit + 1e-12).all()
    assert (gaussian_eur(cov, var_pool, NOISE, pairwise=True) <= var_target).all()


BAD = [
    (gaussian_bald, ([-1.0], 1.0), "var must not be negative"),
    (gaussian_bald, ([1.0], -1.0), "noise must not be negative"),
    (gaussian_bald, ([np.nan], 1.0), "var.*NaN"),
    (gaussian_bald, ([1.0], np.inf), "noise.*infinity"),
    (gaussian_bald, ([[1.0]], 1.0), "var must have 1 dimensions"),
    (gaussian_bald, ([1.0, 2.0], [1.0, 2, 3]), "noise must be a number or broadcast"),
    (gaussian_eur, ([[1.0]], [1.0, 2.0]), "var_pool must have shape"),
    (gaussian_eur, ([[1.0]], [-1.0]), "var_pool must not be negative"),
    (gaussian_eur, ([[1.0]], [0.0]), "cov must not be larger"),
    (gaussian_eur, ([1.0], [1.0]), "cov must have 2 dimensions"),
    (gaussian_eur, ([[np.inf]], [1.0]), "cov.*infinity"),
    (gaussian_eur, ([[1.0]], [1.0], [1.0, 2.0]), "noise_pool must be a number"),
    (gaussian_epig, ([[1.0]], [1.0], [1.0, 2.0]), "var_target must have shape"),
    (gaussian_epig, ([[1.0]], [1.0], [-1.0]), "var_target must not be negative"),
    (gaussian_epig, ([[1.1]], [1.0], [1.0]), "cov must not be larger"),
    (gaussian_epig, ([[1.0]], [1.0], [0.5], 1.0, 1.0), "cov must not be larger"),
    (gaussian_epig, ([[0.1]], [1.0], [1.0], 0, -1.0), "noise_target must not be"),
    (gaussian_epig, ([[0.1]], [1.0], [1.0], -1.0), "noise_pool must not be"),
]


@pytest.mark.parametrize("function, arguments, message", BAD)
def test_bad_inputs(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


@pytest.mark.parametrize("function", [gaussian_eur, gaussian_epig])
def test_bad_target_weights(function):
    arguments = ([[0.1, 0.2]], [1.0])
    if function is gaussian_epig:
        arguments += ([1.0, 1.0],)
    for bad in ([1.0], [-1.0, 2.0], [0.0, 0.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="target_weights"):
            function(*arguments, target_weights=bad)
