"""Gains and values against pymdptoolbox, QuantEcon and linear programming."""

from functools import cache

import numpy as np
import pytest
from mdptoolbox.mdp import RelativeValueIteration
from numpy.testing import assert_allclose
from quantecon.markov import DiscreteDP

from skextra.mdp import HalpernMDPSolver
from tests.mdp import reference

NAMES = list(reference.MODELS)
SOLVERS = ["auto", "rvi", "lp"]
# mdpsolver isn't here: on the cycle it never returns.


@cache
def model(name):
    if name == "garnet":
        return reference.garnet(40, 3, 4, np.random.default_rng(0))
    return reference.MODELS[name]()


@cache
def solved(name, solver="auto", discount=None):
    return HalpernMDPSolver(discount, solver=solver, tol=1e-9).fit_mdp(*model(name))


def with_exact_sums(P):
    """Nearly the same chances, whose floating-point sums are exactly 1."""
    P = np.round(P * 2.0**40) / 2.0**40
    largest = P.argmax(axis=2)[..., None]
    value = np.take_along_axis(P, largest, 2) + 1 - P.sum(axis=2, keepdims=True)
    np.put_along_axis(P, largest, value, 2)
    return P


def toolbox_gain(P, R, max_iter):
    """The gain of pymdptoolbox, which refuses sums that are off by a few 1e-15."""
    peer = RelativeValueIteration(
        with_exact_sums(P), R, epsilon=1e-9, max_iter=max_iter
    )
    peer.run()
    return peer.average_reward, peer.iter < max_iter


@pytest.mark.parametrize("name", NAMES)
def test_reference(name):
    """The numbers of the list are those of its models."""
    gain, _, _ = reference.best_gain(*model(name))
    assert_allclose(gain, reference.EXACT_GAINS[name], rtol=0, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", NAMES)
def test_exact_gain(name, solver):
    mdp, exact = solved(name, solver), reference.EXACT_GAINS[name]
    assert mdp.converged_
    low, high = mdp.gain_interval_
    assert high - low <= 1e-9
    assert low - 1e-12 <= exact <= high + 1e-12
    assert low - 1e-12 <= mdp.gain_ <= high + 1e-12
    earned = reference.policy_gain(*model(name), mdp.policy_)
    assert_allclose(earned, exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_bias(name):
    """Zero in the first state, and a solution of the optimality equation."""
    mdp, (P, R) = solved(name), model(name)
    assert mdp.bias_[0] == 0
    q = reference.backup(P, R, mdp.bias_) - mdp.gain_
    assert_allclose(mdp.q_, q, rtol=0, atol=1e-9)
    assert_allclose(mdp.q_.max(axis=1), mdp.bias_, rtol=0, atol=2e-9)


@pytest.mark.parametrize("name", NAMES)
def test_linear_programming(name):
    assert_allclose(
        solved(name).gain_, reference.gain_lp(*model(name)), rtol=0, atol=1e-7
    )


def test_cycle():
    """Sweeps of pymdptoolbox 4.0b3 never settle here; it reports 0.5 as the gain."""
    assert_allclose(solved("periodic_cycle").gain_, 1.625, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "name", [*(name for name in NAMES if name != "periodic_cycle"), "garnet"]
)
def test_pymdptoolbox(name):
    gain, converged = toolbox_gain(*model(name), max_iter=2000)
    assert converged
    assert_allclose(solved(name).gain_, gain, rtol=0, atol=2e-8)


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("name", [*NAMES, "garnet"])
def test_quantecon(name, discount):
    P, R = model(name)
    peer = DiscreteDP(R, P.swapaxes(0, 1).copy(), discount).solve("policy_iteration")
    mdp = solved(name, discount=discount)
    assert_allclose(mdp.bias_, peer.v, rtol=0, atol=1e-8)
    value = reference.policy_value(P, R, mdp.policy_, discount)
    assert_allclose(value, peer.v, rtol=0, atol=1e-8)


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_quantecon_some_actions(discount):
    """Only some actions of each state are allowed."""
    rng = np.random.default_rng(1)
    P, R = reference.garnet(30, 4, 3, rng)
    mask = rng.random(R.shape) < 0.5
    mask[np.arange(30), rng.integers(4, size=30)] = True
    R = np.where(mask, R, -np.inf)
    states, actions = np.nonzero(mask)
    peer = DiscreteDP(R[mask], P[actions, states], discount, states, actions)
    mdp = HalpernMDPSolver(discount, tol=1e-9).fit_mdp(P, R)
    assert_allclose(mdp.bias_, peer.solve("policy_iteration").v, rtol=0, atol=1e-8)
    assert mask[np.arange(30), mdp.policy_].all()
