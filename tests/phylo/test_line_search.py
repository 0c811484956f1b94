"""One edge at a time: the kernels against bounded maximisation; and the rates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize, minimize_scalar

from skextra.phylo import PhyloBranchLengths
from skextra.phylo._numba_steps import best_flip, best_length
from skextra.phylo._rates import gamma_rates
from tests.phylo import reference
from tests.phylo.common import evolved, random_parents

LOW, HIGH = 1e-8, (1 - np.exp(-20)) / 2


def objective(agree, gain, weights):
    return lambda p: weights @ np.log(agree + p * gain)


def grid_best(function, low, high):
    """The greatest value on a fine grid, refined by a bounded search."""
    grid = np.concatenate([np.geomspace(low, high, 2001), np.linspace(low, high, 2001)])
    grid.sort()
    values = np.array([function(x) for x in grid])
    i = values.argmax()
    ends = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda x: -function(x), bounds=ends, method="bounded", options={"xatol": 1e-13}
    )
    return max(values[i], -found.fun)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 80),
    st.sampled_from([1e-8, 1e-3, 0.2, 0.4999]),
    st.sampled_from([0.0, 0.9, 1.0]),
)
def test_best_flip(seed, n, start, certainty):
    """Messages of leaves (certain) and of inner nodes."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(n) * (1 - certainty), rng.random(n)
    agree = (1 - a) * b + a * (1 - b)
    gain = a * b + (1 - a) * (1 - b) - agree
    weights = rng.uniform(0, 5, n)
    function = objective(agree, gain, weights)
    p = best_flip(agree, gain, weights, start, LOW, HIGH)
    assert LOW <= p <= HIGH
    best = grid_best(function, LOW, HIGH)
    assert function(p) >= best - 1e-11 * max(1, abs(best))
    assert function(p) >= function(start) - 1e-12 * max(1, abs(best))


@pytest.mark.parametrize("start", [LOW, 0.1, HIGH])
def test_best_flip_of_one_sign(start):
    weights = np.ones(3)
    agree = np.array([0.9, 0.8, 0.7])
    assert best_flip(agree, 1 - 2 * agree, weights, start, LOW, HIGH) == LOW
    assert best_flip(1 - agree, 2 * agree - 1, weights, start, LOW, HIGH) == HIGH


def test_best_flip_of_a_flat_function():
    flat = np.full(4, 0.5), np.zeros(4), np.ones(4)
    assert best_flip(*flat, 0.3, LOW, HIGH) == 0.3
    none = np.array([0.9, 0.1]), np.array([-0.8, 0.8]), np.zeros(2)
    assert best_flip(*none, 0.3, LOW, HIGH) == 0.3


@pytest.mark.parametrize("differ", [1, 10, 40, 1e-3])
@pytest.mark.parametrize("start", [LOW, 0.1, HIGH])
def test_best_flip_in_closed_form(differ, start):
    """Two leaves: the share of the sites that differ."""
    agree, gain = np.array([1.0, 0.0]), np.array([-1.0, 1.0])
    weights = np.array([100.0 - differ, differ])
    p = best_flip(agree, gain, weights, start, LOW, HIGH)
    assert p == pytest.approx(differ / 100, rel=1e-11)


@pytest.mark.parametrize("ascertainment", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_best_length(seed, k, ascertainment):
    """A local maximum that is not below the start."""
    rng = np.random.default_rng(seed)
    n, rates = 30, gamma_rates(0.4, k)
    a, b = rng.random((2, k, n)) * rng.choice([0.05, 1], (2, k, n))
    agree = a * b + (1 - a) * (1 - b)
    gain = 1 - 2 * agree
    weights = rng.uniform(0, 3, n)
    constant, start = 0.0, rng.uniform(0.01, 1)
    if ascertainment:  # the last pattern is the constant one
        weights[-1], constant = 0.0, 0.3
        agree[:, -1], gain[:, -1] = 0.9, -0.8
    flips = -np.expm1(-2 * rates * start) / 2
    share = np.full((k, n), 1 / k)
    site = (share * (agree + flips[:, None] * gain)).sum(axis=0)

    def function(t):
        p = -np.expm1(-2 * rates * t) / 2
        grown = (share * (agree + p[:, None] * gain)).sum(axis=0) / site
        value = weights @ np.log(grown)
        if ascertainment:
            value -= weights.sum() * np.log((1 - constant * grown[-1]) / (1 - constant))
        return value

    mix = np.empty((3, n))
    t, variable = best_length(
        agree.ravel(), gain.ravel(), (share / site).ravel(), weights, rates,
        1 - constant, start, 1e-8, 10.0, mix,
    )  # fmt: skip
    assert variable == pytest.approx(1 - constant * mix[0, -1], rel=1e-12)
    assert 1e-8 <= t <= 10.0
    assert function(t) >= -1e-12
    for other in (t * (1 - 1e-3), t * (1 + 1e-3)):
        if 1e-8 <= other <= 10.0:
            assert function(t) >= function(other) - 1e-12
    p = -np.expm1(-2 * rates * t) / 2
    grown = (share * (agree + p[:, None] * gain)).sum(axis=0) / site
    assert_allclose(mix[0], grown, rtol=1e-12)
    if k == 1 and not ascertainment:
        assert function(t) >= grid_best(function, 1e-8, 10.0) - 1e-11


@pytest.mark.parametrize("start", [1e-8, 0.3, 10.0])
def test_best_length_at_a_bound_and_flat(start):
    rates, mix = np.array([0.5, 1.5]), np.empty((3, 2))
    agree = np.array([0.9, 0.8, 0.9, 0.8])
    weights = np.ones(2)
    flips = np.repeat(-np.expm1(-2 * rates * start) / 2, 2)

    def best(agree):
        gain = 1 - 2 * agree
        share = (
            0.5
            * np.ones(4)
            / np.tile((agree + flips * gain).reshape(2, 2).mean(axis=0), 2)
        )
        t, variable = best_length(
            agree, gain, share, weights, rates, 1.0, start, 1e-8, 10.0, mix
        )
        assert variable == 1
        return t

    assert best(agree) == 1e-8
    assert best(1 - agree) == 10.0
    assert best(np.full(4, 0.5)) == start


def test_shape_of_the_rates_is_the_best():
    """A simplex search over the reference likelihood of all lengths and the shape."""
    rng = np.random.default_rng(2)
    parents = random_parents(4, rng)
    truth = rng.uniform(0.1, 0.4, len(parents) - 1)
    X = evolved(parents, truth, 4, 4000, rng, gamma_rates(0.5, 3))
    model = PhyloBranchLengths(parents, n_rate_categories=3).fit(X)
    sites, counts = np.unique(X, axis=0, return_counts=True)

    def loss(x):
        lengths, alpha = np.exp(x[:-1]), np.exp(x[-1])
        rates = gamma_rates(alpha, 3)
        return -reference.loglik(parents, lengths, sites, counts, rates)

    start = np.log([*truth, 0.7])
    options = {"maxiter": 20000, "maxfev": 20000, "xatol": 1e-7, "fatol": 1e-9}
    found = minimize(loss, start, method="Nelder-Mead", options=options)
    found = minimize(loss, found.x, method="Nelder-Mead", options=options)
    assert model.loglik_ >= -found.fun - 1e-6
    assert model.alpha_ == pytest.approx(np.exp(found.x[-1]), rel=1e-3)
    assert_allclose(model.branch_lengths_, np.exp(found.x[:-1]), rtol=2e-3)
    fixed = PhyloBranchLengths(parents, n_rate_categories=3, alpha=model.alpha_)
    assert fixed.fit(X).loglik_ == pytest.approx(model.loglik_, abs=1e-6)
    for alpha in (0.9 * model.alpha_, 1.1 * model.alpha_):
        assert fixed.set_params(alpha=alpha).fit(X).loglik_ < model.loglik_


def test_equal_rates_send_the_shape_to_its_bound():
    rng = np.random.default_rng(0)
    parents = random_parents(5, rng)
    X = evolved(parents, rng.uniform(0.1, 0.3, len(parents) - 1), 5, 3000, rng)
    model = PhyloBranchLengths(parents, n_rate_categories=3).fit(X)
    assert 3 < model.alpha_ <= 100
    one = PhyloBranchLengths(parents).fit(X)
    assert model.loglik_ >= one.loglik_ - 0.05


def test_one_category_has_no_shape():
    X = np.eye(3)
    for alpha in (None, 0.5):
        assert PhyloBranchLengths([3, 3, 3, -1], alpha=alpha).fit(X).alpha_ is None
    with pytest.raises(ValueError, match="alpha must be given"):
        PhyloBranchLengths([3, 3, 3, -1], n_rate_categories=2, max_iter=0).fit(X)
