"""The iterations themselves: kernel, bounds, slow chains, rounding."""

from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skextra.datasets import make_riverswim
from skextra.mdp import HalpernMDPSolver
from skextra.mdp import _model as model_room
from skextra.mdp._exact import anchored, damped, evaluated
from skextra.mdp._model import Sweeper
from tests.mdp import reference
from tests.mdp.common import EXACT_SOLVERS, masked_garnet, model_of

GARNETS = [masked_garnet(20, 4, 3, seed, 0.6) for seed in range(3)]


@pytest.mark.parametrize("discount", [None, 0.8])
@pytest.mark.parametrize("n_blocks", [1, 3])
def test_sweep(discount, n_blocks, monkeypatch):
    """The kernel is the reference's backup, in one block or in several threads."""
    monkeypatch.setattr(model_room, "LEAST_STATES", 20 // n_blocks)
    rng = np.random.default_rng(0)
    d = discount or 1.0
    for P, R in GARNETS:
        model = model_of(P, R, discount)
        sweep = Sweeper(model, n_jobs=n_blocks)
        assert len(sweep.blocks) == n_blocks
        h, anchor = rng.normal(size=(2, 20))
        q = reference.backup(P, R, h, d)
        Th = q.max(axis=1)
        new, step = sweep(h, (0.5, 0.2, 0.3), anchor, shift=1.7)
        assert_allclose(new, 0.5 * (Th - 1.7) + 0.2 * h + 0.3 * anchor, rtol=1e-13)
        assert_array_equal(model.actions[sweep.chosen], q.argmax(axis=1))
        assert_array_equal(model.pair_states[sweep.chosen], np.arange(20))
        offset = (1 - d) * h.mean()
        rho = Th - h + offset
        # Wider by what rounding can do, and not by more than some hundred units.
        assert step.low <= rho.min() <= step.low + 1e-13
        assert step.high - 1e-13 <= rho.max() <= step.high
        assert step.high - step.low >= np.ptp(rho)
        assert step.rounding > 0
        # Under a policy: its own operator.
        actions = [rng.choice(np.flatnonzero(np.isfinite(row))) for row in R]
        policy = np.array(
            [
                np.flatnonzero((model.pair_states == s) & (model.actions == a))[0]
                for s, a in enumerate(actions)
            ]
        )
        new, step = Sweeper(model.under(policy))(h, (1.0, 0.0, 0.0))
        own = q[np.arange(20), actions]
        assert_allclose(new, own, rtol=1e-13)
        assert_allclose(step.low, (own - h).min() + offset, rtol=1e-12)
        assert_allclose(step.high, (own - h).max() + offset, rtol=1e-12)


def test_sweep_takes_the_first_of_equal_pairs():
    P, R = reference.riverswim()
    model = model_of(P[[0, 0, 1, 1]], R[:, [0, 0, 1, 1]])
    sweep = Sweeper(model)
    for h in (np.zeros(6), np.arange(6.0), -np.arange(6.0)):
        sweep(h, (1.0, 0.0, 0.0))
        assert set(model.actions[sweep.chosen]) <= {0, 2}


def test_sweeps_of_large_models_do_not_depend_on_threads():
    P, R = make_large(45_000)
    found = [
        HalpernMDPSolver(solver="rvi", n_jobs=n_jobs).fit_mdp(P, R) for n_jobs in (1, 2)
    ]
    assert_array_equal(found[0].bias_, found[1].bias_)
    assert_array_equal(found[0].gain_history_, found[1].gain_history_)


def make_large(n_states):
    from skextra.datasets import make_garnet

    model = make_garnet(n_states, 2, 3, random_state=0)
    return model.P, model.R


@pytest.mark.parametrize(
    "name", ["riverswim", "forest10", "frozenlake4", "periodic_cycle", "cliffwalking"]
)
def test_anchored_bound(name):
    """sp(T h_n - h_n) <= 8 sp(h_0 - h*) / (n + 2), whatever the start."""
    P, R = reference.MODELS[name]()
    _, _, best = reference.best_gain(P, R)
    rng, n = np.random.default_rng(0), 300
    for h0 in (np.zeros(len(R)), 10 * rng.normal(size=len(R))):
        steps = anchored(model_of(P, R), h=h0, restarts=False)
        widths, expected = [], reference.anchored(P, R, n, h0)
        for step in islice(steps, n + 1):
            rho = reference.sweep(P, R, step.h) - step.h
            widths.append(np.ptp(rho))
            assert step.low <= rho.min() + 1e-12 and rho.max() <= step.high + 1e-12
        # The shift that keeps h in place does not matter.
        assert_allclose(widths, expected, rtol=1e-9, atol=1e-11)
        bound = 8 * np.ptp(h0 - best) / (np.arange(n + 1) + 2)
        assert (np.array(widths) <= bound + 1e-12).all()


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_anchored_discounted(discount):
    for P, R in (reference.riverswim(), GARNETS[0]):
        h0 = np.random.default_rng(1).normal(size=len(R))
        steps = anchored(model_of(P, R, discount), h=h0, restarts=False)
        n = 60
        errors = [
            np.abs(reference.sweep(P, R, step.h, discount) - step.h).max()
            for step in islice(steps, n + 1)
        ]
        expected = reference.anchored_discounted(P, R, discount, n, h0)
        assert_allclose(errors, expected, rtol=1e-9, atol=1e-12)


def test_anchored_discounted_for_long():
    """The weights of the anchor end in 0, not in an overflow."""
    P, R = reference.riverswim()
    steps = anchored(model_of(P, R, 0.5), restarts=False)
    step = next(islice(steps, 2000, None))
    V, _ = reference.discounted_values(P, R, 0.5)
    assert_allclose(step.h, V, rtol=1e-12)


def test_restarts_are_faster():
    P, R = reference.riverswim()
    n_steps = {}
    for restarts in (True, False):
        steps = anchored(model_of(P, R), restarts=restarts)
        n_steps[restarts] = next(
            n for n, step in enumerate(steps) if step.high - step.low < 1e-3
        )
    assert 10 * n_steps[True] < n_steps[False]


def test_damped():
    for P, R in (reference.riverswim(), reference.periodic_cycle(), GARNETS[0]):
        steps = islice(damped(model_of(P, R)), 51)
        for step, h in zip(steps, reference.damped_iterates(P, R, 50)):
            assert_allclose(step.h - step.h[0], h, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("discount", [None, 0.9])
def test_policy_evaluation(discount):
    for P, R in (reference.riverswim(), reference.periodic_cycle()):
        model = model_of(P, R, discount)
        policy = [1] * len(R)
        pairs = np.arange(len(R)) * 2 + 1
        h = evaluated(model.under(pairs))
        # But for a constant, which the certificate does not depend on.
        if discount:
            expected = reference.policy_value(P, R, policy, discount)
        else:
            expected = reference.policy_bias(P, R, policy)
        h, expected = h - h[0], expected - expected[0]
        assert_allclose(h, expected, rtol=0, atol=1e-8)


def birth_death(up, down):
    """Stationary distribution of a walk: chances of i -> i+1 and of i+1 -> i."""
    weights = np.concatenate([[0.0], np.cumsum(np.log(up) - np.log(down))])
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()


def long_riverswim():
    """400 places: swimming up is best, and its gain a formula."""
    model = make_riverswim(400)
    up, down = np.full(399, 0.35), np.full(399, 0.05)
    up[0], down[-1] = 0.6, 0.4
    return model.P, model.R, birth_death(up, down)[-1]


def random_walk():
    """300 places, 1 paid at the first, and a fair and a nearly fair coin."""
    n = 300
    P, R = np.zeros((2, n, n)), np.zeros((n, 2))
    for a, back in enumerate([0.5, 0.505]):
        for s in range(n):
            P[a, s, max(s - 1, 0)] += back
            P[a, s, min(s + 1, n - 1)] += 1 - back
    R[0] = 1
    gain = birth_death(np.full(n - 1, 0.495), np.full(n - 1, 0.505))[0]
    return P, R, gain


def long_cycle():
    """300 places in a ring; the second action waits, at a loss."""
    n = 300
    rewards = np.random.default_rng(0).random(n)
    P = np.array([np.roll(np.eye(n), 1, axis=1), np.eye(n)])
    return P, np.column_stack([rewards, np.full(n, -0.1)]), rewards.mean()


@pytest.mark.parametrize("case", [long_riverswim, random_walk, long_cycle])
@pytest.mark.parametrize("solver", ["auto", "policy_iteration"])
def test_slow_chains(case, solver):
    """Sweeps alone would need 10^5 steps and more."""
    P, R, gain = case()
    mdp = HalpernMDPSolver(solver=solver, tol=1e-8).fit_mdp(P, R)
    assert mdp.converged_
    assert_allclose(mdp.gain_, gain, rtol=0, atol=1e-8)
    assert mdp.n_iter_ < 1000


@pytest.mark.parametrize("scale", [1e-280, 1e-9, 1.0, 1e9, 1e150])
@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_rounding(solver, scale):
    """Certificates hold to the last bit: the gain of this chain is a fraction.

    Action 1 pays less everywhere, so that action 0 is best for any scale.
    """
    up, down = 0.375, 0.0078125  # exact in binary
    chain = np.array([[1 - up, up], [down, 1 - down]])
    rewards = np.array([0.1, 0.7]) * scale
    R = np.column_stack([rewards, rewards - 0.01 * scale])
    gain = (
        Fraction(down) * Fraction(rewards[0]) + Fraction(up) * Fraction(rewards[1])
    ) / (Fraction(up) + Fraction(down))
    mdp = HalpernMDPSolver(solver=solver, tol=1e-10 * scale)
    mdp.fit_mdp(np.array([chain, chain]), R)
    assert mdp.converged_
    for low, high in mdp.gain_history_:
        assert Fraction(low) <= gain <= Fraction(high)
    # As narrow as rounding lets it get, and still it holds.
    mdp.set_params(tol=1e-30 * scale)
    with pytest.warns(ConvergenceWarning, match="rounding leaves no more to gain"):
        mdp.fit_mdp(np.array([chain, chain]), R)
    assert not mdp.converged_
    assert Fraction(mdp.gain_interval_[0]) <= gain <= Fraction(mdp.gain_interval_[1])
    assert np.ptp(mdp.gain_interval_) <= 1e-12 * scale
    assert_array_equal(mdp.policy_, 0)


@pytest.mark.parametrize("discount", [None, 0.99])
@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_rewards_out_of_range(solver, discount):
    P, R = reference.riverswim()
    for scale in (1e308, 1.7e308):
        with pytest.raises(ValueError, match="divide the rewards"):
            HalpernMDPSolver(discount, solver=solver).fit_mdp(P, R * scale)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_max_iter(solver):
    """Too few iterations: a warning, and an interval that holds all the same."""
    P, R = reference.frozenlake()
    few = 1 if solver == "lp" else 3
    mdp = HalpernMDPSolver(solver=solver, max_iter=few, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match=f"max_iter={few} iterations"):
        mdp.fit_mdp(P, R)
    assert mdp.n_iter_ == few and not mdp.converged_
    low, high = mdp.gain_interval_
    assert low <= reference.EXACT_GAINS["frozenlake4"] <= high
    own = reference.policy_gain(P, R, mdp.policy_)
    assert own.min() >= low
