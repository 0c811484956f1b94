"""Models in which the best average reward depends on the first state, or may."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from skextra.mdp import HalpernMDPSolver
from skextra.mdp._components import describe, end_components
from skextra.mdp._exact import improving
from tests.mdp import reference
from tests.mdp.common import EXACT_SOLVERS, earned, examples, masked_garnet, model_of

# Two rings of two states: 0-1 earns 1, 2-3 earns 2; state 4 is left for either.
RINGS = np.zeros((2, 5, 5))
RINGS[:, [0, 1, 2, 3], [1, 0, 3, 2]] = 1
RINGS[0, 4, 0] = RINGS[1, 4, 2] = 1
REWARDS = np.array([[1.0, 1], [1, 1], [2, 2], [2, 2], [0, 0]])


def check_components(P, R):
    """One iff weakly communicating; all maximal end components."""
    feasible = np.isfinite(R)
    found = end_components(model_of(P, R))
    expected = reference.end_components(P, feasible)
    weakly = reference.is_weakly_communicating(P, feasible)
    assert (len(found) == 1) == weakly
    sets = [frozenset(states.tolist()) for states in found]
    assert set(sets) == set(expected) and len(set(sets)) == len(sets)
    return weakly


def clustered(n_states, n_actions, seed, stay=0.85):
    """A random model whose pairs mostly lead to two of the three states nearby."""
    rng = np.random.default_rng(seed)
    P = np.zeros((n_actions, n_states, n_states))
    for a in range(n_actions):
        for s in range(n_states):
            home = s if rng.random() < stay else rng.integers(n_states)
            nearby = [t for t in range(n_states) if t // 3 == home // 3]
            P[a, s, rng.choice(nearby, size=2)] += [0.5, 0.5]
            P[a, s] /= P[a, s].sum()
    mask = rng.random((n_states, n_actions)) < 0.7
    mask[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
    return P, np.where(mask, rng.random(mask.shape), -np.inf)


@given(st.integers(1, 14), st.integers(1, 3), st.integers(0, 2**32 - 1))
@examples(40)
def test_random_models(n_states, n_actions, seed):
    check_components(*clustered(n_states, n_actions, seed))
    check_components(*masked_garnet(n_states, n_actions, 1, seed))


def test_random_models_of_many_kinds():
    """The comparison is about something: one set or some, open ones too."""
    n_sets, n_open = [], 0
    for seed in range(80):
        P, R = clustered(9, 2, seed, [0.2, 0.5, 0.8][seed % 3])
        n_sets.append(len(reference.end_components(P, np.isfinite(R))))
        n_open += not check_components(P, R) and n_closed(P, R) == 1
    assert {1, 2, 3} <= set(n_sets) and n_sets.count(1) >= 10
    assert n_open >= 5


def n_closed(P, R):
    feasible = np.isfinite(R)
    sets = reference.end_components(P, feasible)
    return sum(reference.is_closed(P, feasible, states) for states in sets)


@pytest.mark.parametrize("name", list(reference.MODELS))
def test_listed_models_are_weakly_communicating(name):
    assert check_components(*reference.MODELS[name]())


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_two_gains(solver):
    """The error names the sets, and the refit leaves nothing."""
    mdp = HalpernMDPSolver(solver=solver, max_iter=2000)
    mdp.fit_mdp(*reference.riverswim())
    with pytest.raises(ValueError, match=r"2 sets .*\{0, 1\}; \{2, 3\}.* not earn"):
        mdp.fit_mdp(RINGS, REWARDS)
    assert not hasattr(mdp, "policy_")


def test_an_action_that_keeps_out():
    """One closed set, but one can stay outside of it, at a worse or better gain."""
    P = np.zeros((2, 3, 3))
    P[:, 0, 0] = 1
    P[0, 1, 2] = P[0, 2, 1] = 1  # action 0 keeps to the ring 1-2
    P[1, 1:, 0] = 1
    R = np.array([[0.0, 0], [1, 0], [1, 0]])
    with pytest.raises(ValueError, match=r"2 sets .*\{0\}; \{1, 2\}"):
        HalpernMDPSolver(max_iter=500).fit_mdp(P, R)
    # If it's better to leave, all is one gain, and the certificate proves it.
    mdp = HalpernMDPSolver().fit_mdp(P, -R)
    assert_allclose(mdp.gain_, 0, atol=1e-6)
    assert_array_equal(mdp.policy_[1:] == 1, [True, True])


def test_description():
    """A few states of a few sets."""
    sets = [np.arange(10 * i, 10 * i + 7) for i in range(7)]
    text = describe(sets, np.arange(100))
    assert text.startswith("{0, 1, 2, 3, 4, ...}; {10, 11,")
    assert text.endswith("; and 2 more") and "50" not in text
    assert describe([np.array([3]), np.array([5, 8])], np.arange(9)) == "{3}; {5, 8}"


def test_many_components():
    """Ten absorbing states: five are named."""
    with pytest.raises(ValueError, match=r"10 sets .*\{0\}; .*\{4\}; and 5 more"):
        HalpernMDPSolver(max_iter=200).fit_mdp([np.eye(10)], np.arange(10.0))


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_transient_states(solver):
    """States that are left for ever do not disturb, whatever they pay."""
    P, R = reference.forest()
    n = 6
    wide = np.zeros((2, n, n))
    wide[:, :3, :3] = P
    for s in range(3, n):
        wide[:, s, s - 1] = 0.5
        wide[:, s, s] = 0.5
    rewards = np.vstack([R, [[50.0, -50.0]] * 3])
    mdp = HalpernMDPSolver(solver=solver, tol=1e-9).fit_mdp(wide, rewards)
    assert_allclose(mdp.gain_, 3.24, rtol=0, atol=1e-9)
    assert_array_equal(mdp.policy_[3:], 0)
    assert_allclose(earned(wide, rewards, mdp), 3.24, rtol=0, atol=1e-9)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_components_of_equal_gain(solver):
    """No error where the certificate proves one gain for all the sets."""
    rewards = REWARDS.copy()
    rewards[:4] = [[0.5, 0], [1.5, 0], [2.0, 1], [0.0, -1]]
    mdp = HalpernMDPSolver(solver=solver, tol=1e-8).fit_mdp(RINGS, rewards)
    assert_allclose(mdp.gain_, 1, rtol=0, atol=1e-8)
    assert_allclose(earned(RINGS, rewards, mdp), 1, rtol=0, atol=1e-8)


@pytest.mark.parametrize("solver", [*EXACT_SOLVERS, "plug_in"])
def test_discount_instead(solver):
    mdp = HalpernMDPSolver(
        solver=solver, multichain="discount", sample_tol=900.0, random_state=0
    )
    mdp.fit_mdp(RINGS, REWARDS)
    assert mdp.discount_ == 0.999
    assert mdp.policy_[4] == 1  # the ring that earns more
    V, _ = reference.discounted_values(RINGS, REWARDS, 0.999)
    if solver != "plug_in":
        assert_allclose(mdp.bias_, V, rtol=0, atol=1e-6)
    # Up front, and thus for equal gains too.
    mdp.fit_mdp(RINGS, np.ones((5, 2)))
    assert mdp.discount_ == 0.999
    # A model with one gain keeps it.
    mdp.set_params(sample_tol=2.0).fit_mdp(*reference.riverswim())
    assert mdp.discount_ is None


def test_a_discount_needs_no_check():
    mdp = HalpernMDPSolver(0.95, tol=1e-9).fit_mdp(RINGS, REWARDS)
    V, _ = reference.discounted_values(RINGS, REWARDS, 0.95)
    assert_allclose(mdp.bias_, V, rtol=0, atol=1e-8)
    assert mdp.discount_ == 0.95


@given(st.integers(0, 2**32 - 1), st.sampled_from(EXACT_SOLVERS))
@examples(40)
def test_either_the_best_gain_or_an_error(seed, solver):
    """On any model: an error if and only if there are several gains."""
    P, R = clustered(6, 2, seed) if seed % 2 else masked_garnet(6, 2, 1, seed)
    best = reference.best_gain_by_enumeration(P, R)
    mdp = HalpernMDPSolver(solver=solver, tol=1e-7, max_iter=5000)
    if np.ptp(best) > 1e-9:
        with pytest.raises(ValueError, match="depends? on the first state"):
            mdp.fit_mdp(P, R)
        return
    mdp.fit_mdp(P, R)
    assert_allclose(mdp.gain_, best, rtol=0, atol=1e-7)
    assert_allclose(earned(P, R, mdp), best, rtol=0, atol=1e-7)


def line(n_states, share=1.0):
    """Go on or stay, at a cost of 1 each; the last state is the goal, for ever."""
    states = np.arange(n_states)
    go = np.zeros((n_states, n_states))
    go[states, np.minimum(states + 1, n_states - 1)] += share
    go[states, states] += 1 - share
    R = np.full((n_states, 2), -1.0)
    R[-1] = 0
    return np.stack([go, np.eye(n_states)]), R


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
@pytest.mark.parametrize("n_states, share", [(40, 1.0), (100, 1.0), (20, 0.4)])
def test_a_long_way_to_the_best_set(solver, n_states, share):
    """Each state can be kept, but 0 is earned from all: there is one best gain."""
    mdp = HalpernMDPSolver(solver=solver).fit_mdp(*line(n_states, share))
    assert mdp.converged_
    assert_allclose(mdp.gain_, 0, rtol=0, atol=1e-6)
    assert_array_equal(mdp.policy_[:-1], 0)
    assert_allclose(np.diff(mdp.bias_[:-1]), 1 / share, rtol=1e-3)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_a_slow_way_to_the_best_set(solver):
    P = [[[1, 0, 0], [0, 0, 1], [0, 0, 1]], [[0.975, 0, 0.025], [0, 1, 0], [0, 0, 1]]]
    R = [[-np.inf, 0], [1, 0], [1, -np.inf]]
    mdp = HalpernMDPSolver(solver=solver).fit_mdp(P, R)
    assert_allclose(mdp.gain_, 1, rtol=0, atol=1e-6)
    # Earning nothing in the first state for ever is another matter.
    P[1][0] = [1, 0, 0]
    with pytest.raises(ValueError, match=r"\{0\}"):
        HalpernMDPSolver(solver=solver).fit_mdp(P, R)


LEAVING, SPLIT = np.zeros((2, 2, 3, 3))
LEAVING[0] = SPLIT[0] = np.eye(3)
LEAVING[1, [0, 1, 2], [1, 2, 2]] = 1
SPLIT[1] = [[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
@pytest.mark.parametrize("P", [LEAVING, SPLIT])
def test_the_best_set_can_be_left(P, solver):
    """Only the sets that are for ever earn the same; staying in the first earns more."""
    R = np.array([[5.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    mdp = HalpernMDPSolver(solver=solver, max_iter=2000)
    with pytest.raises(ValueError, match=r"\{0\}"):
        mdp.fit_mdp(P, R)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_sets_of_one_gain(solver, seed):
    """Earning 1 in each of several sets, to which other states lead."""
    rng = np.random.default_rng(seed)
    P = np.stack([np.eye(6)] * 2)
    P[:, 3:] = rng.dirichlet(np.ones(6), size=(2, 3))
    R = np.ones((6, 2))
    R[3:] = rng.uniform(-9, 1, size=(3, 2))
    mdp = HalpernMDPSolver(solver=solver).fit_mdp(P, R)
    assert_allclose(mdp.gain_, 1, rtol=0, atol=1e-6)
    R[0] = 1.001
    with pytest.raises(ValueError, match=r"\{0\}"):
        HalpernMDPSolver(solver=solver).fit_mdp(P, R)


def test_small_steps_end_on_a_ring():
    """Modified policy iteration alone is damped enough for a periodic process."""
    model = model_of(*reference.periodic_cycle())
    steps = list(islice(improving(model), 40))
    assert steps[-1].high - steps[-1].low < 1e-9


def test_auto_on_a_large_ring():
    """No state but one in 10 000 knows soon what the others earn."""
    n_states = 10_000
    states = np.arange(n_states)
    ring = csr_array((np.ones(n_states), (states, np.roll(states, -1))))
    rewards = np.random.default_rng(0).uniform(size=n_states)
    mdp = HalpernMDPSolver(max_iter=3000).fit_mdp([ring], rewards)
    assert mdp.converged_
    assert_allclose(mdp.gain_, rewards.mean(), rtol=0, atol=1e-6)
