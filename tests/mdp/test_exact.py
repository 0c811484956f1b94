"""Exact solvers against slow references: gains, values, bounds and invariances."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skextra.mdp import HalpernMDPSolver
from tests.mdp import reference
from tests.mdp.common import (
    EXACT_SOLVERS,
    earned,
    examples,
    masked_garnet,
    small_models,
)

NAMES = list(reference.MODELS)


@cache
def model(name):
    return reference.MODELS[name]()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_gain(name, solver):
    P, R = model(name)
    mdp = HalpernMDPSolver(solver=solver, tol=1e-7).fit_mdp(P, R)
    exact = reference.EXACT_GAINS[name]
    assert mdp.converged_
    assert_allclose(mdp.gain_, exact, rtol=0, atol=1e-7)
    assert_allclose(earned(P, R, mdp), exact, rtol=0, atol=1e-7)
    low, high = mdp.gain_interval_
    assert 0 <= high - low <= 1e-7
    assert mdp.span_residual_ <= 1e-7 and mdp.n_iter_ == len(mdp.gain_history_)
    # Every iterate's certificate holds, and the intersection of them is reported.
    assert (mdp.gain_history_[:, 0] <= exact + 1e-14 * abs(exact)).all()
    assert (mdp.gain_history_[:, 1] >= exact - 1e-14 * abs(exact)).all()
    assert low >= mdp.gain_history_[:, 0].max() - 1e-7
    assert high == mdp.gain_history_[:, 1].min()


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_gain_by_the_linear_programme(solver):
    for seed in range(4):
        P, R = masked_garnet(30, 3, 3, seed)
        mdp = HalpernMDPSolver(solver=solver, tol=1e-8).fit_mdp(P, R)
        assert_allclose(mdp.gain_, reference.gain_lp(P, R), rtol=0, atol=1e-7)
        assert_allclose(earned(P, R, mdp), mdp.gain_, rtol=0, atol=1e-8)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_periodic_cycle(solver):
    """Value iteration without damping or an anchor never settles here."""
    P, R = reference.periodic_cycle()
    mdp = HalpernMDPSolver(solver=solver, tol=1e-9).fit_mdp(P, R)
    assert_allclose(mdp.gain_, 1.625, rtol=0, atol=1e-9)
    assert_array_equal(mdp.policy_, 0)
    assert_allclose(np.ptp(mdp.bias_), 1.75, rtol=0, atol=1e-8)
    assert_allclose(mdp.bias_, reference.policy_bias(P, R, [0] * 4), atol=1e-8)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
@pytest.mark.parametrize("discount", [1e-3, 0.5, 0.9, 0.99])
def test_discounted_values(solver, discount):
    for P, R in (model("riverswim"), model("frozenlake4"), masked_garnet(25, 3, 3, 0)):
        tol = 1e-9
        mdp = HalpernMDPSolver(discount, solver=solver, tol=tol).fit_mdp(P, R)
        V, _ = reference.discounted_values(P, R, discount)
        assert mdp.converged_ and mdp.discount_ == discount
        assert_allclose(mdp.bias_, V, rtol=0, atol=1e-8)
        own = reference.policy_value(P, R, mdp.policy_, discount)
        assert (V - own).max() <= tol
        q = reference.backup(P, R, V, discount)
        assert_allclose(mdp.q_, q, rtol=0, atol=1e-8)
        mean = (1 - discount) * V.mean()
        assert mdp.gain_interval_[0] <= (1 - discount) * own.mean() + 1e-14
        assert mdp.gain_interval_[0] - 1e-14 <= mean <= mdp.gain_interval_[1] + 1e-14
        assert (mdp.gain_history_[:, 0] <= mean + 1e-14).all()
        assert (mdp.gain_history_[:, 1] >= mean - 1e-14).all()
        assert mdp.span_residual_ <= (1 - discount) * tol


def test_discount_to_one():
    """(1 - discount) V tends to the best gain, linearly in 1 - discount."""
    for name in ("riverswim", "forest3", "periodic_cycle"):
        (P, R), gain = model(name), reference.EXACT_GAINS[name]
        for d in (1e-2, 1e-4, 1e-6):
            mdp = HalpernMDPSolver(1 - d, tol=1e-3).fit_mdp(P, R)
            bias = HalpernMDPSolver().fit_mdp(P, R).bias_
            away = np.ptp(bias) * d + 2 * d * 1e-3
            assert abs(mdp.gain_ - gain) <= away
            assert_allclose(d * mdp.bias_, gain, rtol=0, atol=2 * away)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_discount_next_to_nothing(solver):
    """Only the next reward counts, and no power of the discount overflows."""
    P, R = masked_garnet(8, 3, 2, 3)
    mdp = HalpernMDPSolver(1e-200, solver=solver).fit_mdp(P, R)
    assert_allclose(mdp.bias_, R.max(axis=1), rtol=0, atol=1e-6)


def test_policy_iteration_against_enumeration():
    for seed in range(8):
        P, R = masked_garnet(4, 3, 2, seed)
        P = 0.8 * P
        P[:, :, seed % 4] += 0.2  # now and then all go to one state
        mdp = HalpernMDPSolver(solver="policy_iteration", tol=1e-10).fit_mdp(P, R)
        best = reference.best_gain_by_enumeration(P, R)
        assert_allclose(mdp.gain_, best, rtol=0, atol=1e-10)
        assert_allclose(earned(P, R, mdp), best, rtol=0, atol=1e-10)
        assert mdp.n_iter_ <= 8  # Howard's steps, not sweeps


def test_first_of_equal_actions():
    """Ties go to the first action, also where that is not feasible everywhere."""
    P, R = reference.riverswim()
    P, R = P[[0, 0, 1, 1]], R[:, [0, 0, 1, 1]]
    R[:3, 0] = -np.inf
    for solver in EXACT_SOLVERS:
        mdp = HalpernMDPSolver(solver=solver).fit_mdp(P, R)
        assert_array_equal(mdp.policy_, 2)
        # Where nothing is earned, all actions are equal.
        idle = HalpernMDPSolver(solver=solver).fit_mdp(P, np.minimum(R, 0))
        assert_array_equal(idle.policy_, [1, 1, 1, 0, 0, 0])


def test_bandit():
    """One state: the best reward is the gain, and the value is gain / (1 - d)."""
    rewards = np.array([[0.3, -np.inf, 2.5, 2.5, -1.0]])
    P = np.ones((5, 1, 1))
    for solver in EXACT_SOLVERS:
        mdp = HalpernMDPSolver(solver=solver).fit_mdp(P, rewards)
        assert_allclose(mdp.gain_, 2.5, rtol=1e-14)
        assert mdp.policy_ == [2] and mdp.bias_ == [0]
        assert_allclose(mdp.q_, rewards - 2.5, atol=1e-14)
        mdp = HalpernMDPSolver(0.75, solver=solver).fit_mdp(P, rewards)
        assert_allclose(mdp.bias_, 10, rtol=1e-7)
        assert_allclose(mdp.gain_, 2.5, rtol=1e-7)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_one_action(solver):
    """Then the gain is that of the chain, weighted by its stationary distribution."""
    rng = np.random.default_rng(5)
    P, R = reference.garnet(15, 1, 3, rng)
    mdp = HalpernMDPSolver(solver=solver, tol=1e-9).fit_mdp(P, R[:, 0])
    pi = reference.limiting_matrix(P[0])[0]
    assert_allclose(mdp.gain_, pi @ R[:, 0], rtol=0, atol=1e-9)
    assert_allclose(mdp.bias_, reference.policy_bias(P, R, [0] * 15), rtol=0, atol=1e-6)


@given(small_models(), st.sampled_from(EXACT_SOLVERS))
@examples(40)
def test_enumeration(P_R, solver):
    P, R = P_R
    best = reference.best_gain_by_enumeration(P, R)
    mdp = HalpernMDPSolver(solver=solver, tol=1e-7).fit_mdp(P, R)
    assert mdp.converged_
    assert_allclose(mdp.gain_, best, rtol=0, atol=1e-7)
    assert_allclose(earned(P, R, mdp), best, rtol=0, atol=1e-7)
    assert mdp.gain_interval_[0] - 1e-12 <= best.max()
    assert best.max() <= mdp.gain_interval_[1] + 1e-12


@given(
    small_models(),
    st.sampled_from(EXACT_SOLVERS),
    st.sampled_from([0.1, 0.5, 0.9, 0.97]),
)
@examples(30)
def test_enumeration_discounted(P_R, solver, discount):
    P, R = P_R
    best = np.max(
        [
            reference.policy_value(P, R, list(p), discount)
            for p in reference.all_policies(R)
        ],
        axis=0,
    )
    mdp = HalpernMDPSolver(discount, solver=solver, tol=1e-7).fit_mdp(P, R)
    assert_allclose(mdp.bias_, best, rtol=0, atol=2e-7)
    own = reference.policy_value(P, R, mdp.policy_, discount)
    assert (best - own).max() <= 1e-7 + 1e-12


@given(
    small_models(),
    st.sampled_from(EXACT_SOLVERS),
    st.floats(-100, 100),
    st.floats(0.01, 100),
)
@examples(30)
def test_shift_and_scale(P_R, solver, shift, scale):
    P, R = P_R
    tol = 1e-7
    plain = HalpernMDPSolver(solver=solver, tol=tol).fit_mdp(P, R)
    moved = HalpernMDPSolver(solver=solver, tol=tol * scale).fit_mdp(
        P, scale * R + shift
    )
    expected = scale * plain.gain_ + shift
    assert_allclose(moved.gain_, expected, rtol=1e-12, atol=2 * tol * scale)
    assert_allclose(
        earned(P, scale * R + shift, moved), expected, rtol=1e-12, atol=2 * tol * scale
    )


@given(small_models(), st.sampled_from(EXACT_SOLVERS), st.randoms())
@examples(30)
def test_order_of_states_and_pauses(P_R, solver, random):
    """Neither renumbered states nor waiting half of the time change the gain."""
    P, R = P_R
    plain = HalpernMDPSolver(solver=solver, tol=1e-8).fit_mdp(P, R)
    order = random.sample(range(len(R)), len(R))
    shuffled = HalpernMDPSolver(solver=solver, tol=1e-8).fit_mdp(
        P[:, order][:, :, order], R[order]
    )
    assert_allclose(shuffled.gain_, plain.gain_, rtol=0, atol=1e-8)
    lazy = HalpernMDPSolver(solver=solver, tol=1e-8).fit_mdp(
        (P + np.eye(len(R))) / 2, R
    )
    assert_allclose(lazy.gain_, plain.gain_, rtol=0, atol=1e-8)
