"""Solvers that only draw next states: noise, coverage and cost."""

from functools import cache
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skextra.mdp import HalpernMDPSolver
from skextra.mdp import _sampling as sampling
from skextra.mdp._sampled import plug_in, savia
from skextra.mdp._sampling import ModelSampler
from tests.mdp import reference
from tests.mdp.common import masked_garnet, model_of

RIVERSWIM = reference.riverswim()
RIVERSWIM_GAIN = reference.EXACT_GAINS["riverswim"]


def coins():
    """Fair moves between two states: all the noise that draws can have."""
    return np.full((3, 2, 2), 0.5), np.array([[0.0, 0, 0], [1, 1, 1]])


def steps_of(P, R, tol, delta, seed=0, budget=1e9, discount=None, variant="improved"):
    model = model_of(P, R, discount)
    sampler = ModelSampler(model, np.random.RandomState(seed))
    return model, savia(model, sampler, tol, delta, budget, variant)


def until_narrow(steps, tol):
    for step in steps:
        yield step
        if step.stops and step.high - step.low <= tol:
            return


def runs_of(steps, n_runs):
    """The steps in runs of 2, 3, 5, 9, ..."""
    return [list(islice(steps, 2**i + 1)) for i in range(n_runs)]


@pytest.mark.parametrize("case", [coins, reference.riverswim])
def test_noise(case):
    """T never leaves TQ by more than what the certificates allow for, in any step.

    That the interval covers is a weak test: with a fifth of the draws it still does.
    """
    tol, failed, largest = 0.32, [], 0.0
    for seed in range(100):
        model, steps = steps_of(*case(), tol, delta=0.2, seed=seed)
        worst = 0.0
        for step in until_narrow(steps, tol):
            noise = np.abs(step.q - model.backup(step.h)).max()
            radius = step.high - (model.best(step.q) - step.h).max()
            assert 0 < radius <= 0.2 * tol * (1 + 1e-12)
            worst = max(worst, noise / radius)
            largest = max(largest, noise / (0.2 * tol))
        failed.append(worst > 1)
    assert np.mean(failed) <= 0.2
    assert np.sum(failed) <= 2  # the inequalities are not sharp
    assert largest > 0.1


@pytest.mark.parametrize("variant", ["improved", "paper"])
@pytest.mark.parametrize("discount", [None, 0.6])
def test_number_of_draws(variant, discount):
    """m_k = alpha c_k sp(d)^2 / eps^2, with the constants of each variant."""
    P, R = masked_garnet(5, 3, 3, 0)
    tol, delta, pairs = 0.5, 0.1, int(np.isfinite(R).sum())
    _, steps = steps_of(P, R, tol, delta, discount=discount, variant=variant)
    error = tol / 16 if variant == "paper" else 0.2 * tol
    factor = 5 if variant == "paper" else 1.055
    for i, run in enumerate(runs_of(steps, 5)):
        if variant == "paper":
            share = 5 * (i + 2) * np.log(i + 2) ** 2
            alpha = np.log(2 * pairs * (2**i + 1) * share / delta)
        else:
            alpha = np.log(2 * pairs * (i + 1) * (i + 2) / delta)
        before, total = np.zeros(5), 0.0
        for k, step in enumerate(run):
            width = np.ptp(step.h - before)
            c = factor * (k + 2) * np.log(k + 2) ** 2
            size = max(int(np.ceil(alpha * c * width**2 / error**2)), 1)
            assert step.n_samples == size * pairs
            total += width**2 / size
            before = step.h
            if variant == "improved":  # and what they can be off by, in all
                radius = step.high - (model_best(step, R) - step.h).max()
                if discount:
                    radius -= (1 - discount) * step.h.mean()
                expected = error / 2 + alpha * total / (4 * error)
                assert_allclose(radius, expected, rtol=1e-9)


def model_best(step, R):
    table = np.full(R.shape, -np.inf)
    table[np.isfinite(R)] = step.q
    return table.max(axis=1)


def test_improved_weights_allow_for_all_steps():
    """The inverses of the weights sum to 2 at most, as the inequality needs."""
    k = np.arange(2, 10**6)
    head = (1 / (k * np.log(k) ** 2)).sum()
    assert head + 1 / np.log(10**6 - 1) <= 2 * 1.055


@pytest.mark.parametrize("discount", [None, 0.8])
def test_deterministic_moves(discount):
    """Without noise these are exact anchored iterations, from 0 or from the last Q.

    Warm starts follow runs that narrowed the certificate to 0.9, at most four in a row.
    """
    P, R = reference.periodic_cycle()
    d = discount or 1.0
    _, steps = steps_of(P, R, 1e-4, 0.1, budget=np.inf, discount=discount)
    start, width_before, n_warm, warm_runs = np.zeros((4, 2)), np.inf, 0, []
    for i, run in enumerate(runs_of(steps, 9)):
        T = R
        for k, step in enumerate(run):
            b = k / (k + 2)
            Q = (1 - b) * start + b * T
            T = reference.backup(P, R, Q.max(axis=1), d)
            assert_allclose(step.h, Q.max(axis=1), rtol=1e-12, atol=1e-12)
            assert_allclose(step.q, T.ravel(), rtol=1e-12, atol=1e-12)
        width = run[-1].high - run[-1].low
        warm = 0 < i and width < 0.9 * width_before and n_warm < 4
        n_warm = n_warm + 1 if warm else 0
        start, width_before = Q if warm else np.zeros((4, 2)), width
        warm_runs.append(warm)
    assert not warm_runs[0] and any(warm_runs[1:])


def test_paper_starts_from_zero():
    P, R = reference.periodic_cycle()
    _, steps = steps_of(P, R, 1e-2, 0.1, budget=np.inf, variant="paper")
    for i, run in enumerate(runs_of(steps, 5)):
        T = R
        for k, step in enumerate(run):
            Q = k / (k + 2) * T
            T = reference.backup(P, R, Q.max(axis=1))
            assert_allclose(step.h, Q.max(axis=1), rtol=1e-12, atol=1e-12)
            change, error = T - Q, 1e-2 / 16
            assert_allclose(step.low, change.min() - error, rtol=1e-9)
            assert_allclose(step.high, change.max() + error, rtol=1e-9)
            assert step.stops == (k == 2**i)  # at the end of a run only
            # Greedy in Q, not in T.
            assert_allclose(np.ptp(step.q - Q.ravel()), 0, atol=1e-12)


@pytest.mark.parametrize(("delta", "n_seeds"), [(0.05, 200), (0.5, 50)])
def test_coverage(delta, n_seeds):
    P, R = RIVERSWIM
    tol, covered, near = 0.32, [], []
    for seed in range(n_seeds):
        mdp = HalpernMDPSolver(
            solver="savia", sample_tol=tol, delta=delta, random_state=seed
        ).fit_mdp(P, R)
        assert mdp.converged_ and np.ptp(mdp.gain_interval_) <= tol
        low, high = mdp.gain_interval_
        own = reference.policy_gain(P, R, mdp.policy_)
        covered.append(low <= RIVERSWIM_GAIN <= high and low <= own.min())
        near.append(own.min() >= RIVERSWIM_GAIN - tol)
    assert np.mean(covered) >= 1 - delta
    assert np.mean(near) >= 1 - delta


def test_coverage_of_the_plug_in():
    P, R = RIVERSWIM
    tol, good, history = 0.2, [], []
    for seed in range(50):
        mdp = HalpernMDPSolver(
            solver="plug_in", sample_tol=tol, random_state=seed
        ).fit_mdp(P, R)
        assert mdp.converged_ and np.ptp(mdp.gain_interval_) <= tol
        low, high = mdp.gain_interval_
        own = reference.policy_gain(P, R, mdp.policy_).min()
        good.append(low <= RIVERSWIM_GAIN <= high and own >= max(low, 0.42 - tol))
        history.append(mdp.gain_history_)
    assert np.mean(good) >= 0.95
    # All the certificates of a run hold together.
    held = [(h[:, 0] <= RIVERSWIM_GAIN).all() for h in history]
    held += [(h[:, 1] >= RIVERSWIM_GAIN).all() for h in history]
    assert np.mean(held) >= 0.95


def test_plug_in_radius():
    """Hoeffding's: sp(h) sqrt(ln(2 pairs / delta_i) / 2 m), with fresh draws alone."""
    P, R = RIVERSWIM
    mdp = HalpernMDPSolver(
        0.5, solver="plug_in", sample_tol=0.2, delta=0.1, random_state=3
    ).fit_mdp(P, R)
    i = mdp.n_iter_ - 1
    size = 32 * 2**i
    log_term = np.log(2 * 12 * (i + 1) * (i + 2) / 0.1)
    radius = 0.5 * np.ptp(mdp.bias_) * np.sqrt(log_term / (2 * size))
    change = mdp.q_.max(axis=1) - mdp.bias_
    assert_allclose(mdp.span_residual_, np.ptp(change) + 2 * radius, rtol=1e-6)
    assert mdp.n_samples_ == 12 * 2 * size


@pytest.mark.parametrize(
    "params", [{"solver": "savia"}, {"solver": "plug_in"}, {"variant": "paper"}]
)
def test_discounted(params):
    P, R = RIVERSWIM
    params = {"solver": "savia", "max_samples": 1e12} | params
    for discount in (0.3, 0.8):
        V, _ = reference.discounted_values(P, R, discount)
        good = []
        for seed in range(20):
            mdp = HalpernMDPSolver(
                discount, sample_tol=0.5, random_state=seed, **params
            ).fit_mdp(P, R)
            own = reference.policy_value(P, R, mdp.policy_, discount)
            low, high = mdp.gain_interval_
            mean = (1 - discount) * V.mean()
            assert mdp.converged_ and high - low <= 0.5 * (1 - discount)
            good.append(
                low <= mean <= high
                and (V - own).max() <= 0.5
                and np.abs(mdp.bias_ - V).max() <= 0.5
            )
        assert np.mean(good) >= 0.95


@pytest.mark.parametrize("scale", [1, -1])
@pytest.mark.parametrize("solver", ["savia", "plug_in"])
def test_discounted_log_with_ends(solver, scale):
    """What follows an end is 0, which may be more or less than all values."""
    X, y = np.array([[0.0], [1], [0], [0]]), np.array([1.0, 2, 1, 2])
    actions, terminal = [0, 0, 0, 1], [0, 1, 0, 1]
    fitted = [
        HalpernMDPSolver(0.5, solver=s, sample_tol=0.1, random_state=0).fit(
            X, scale * y + 3 * scale, actions=actions, terminal=terminal
        )
        for s in (solver, "auto")
    ]
    assert fitted[0].converged_
    assert_allclose(fitted[0].bias_, fitted[1].bias_, rtol=0, atol=0.1)


@pytest.mark.parametrize("solver", ["savia", "plug_in"])
@pytest.mark.parametrize("reward", [1.0, -1.0])
def test_the_end_is_a_state_of_value_zero(solver, reward):
    """One state, so that values differ from that of the end alone."""
    X, y = np.zeros((4, 1)), np.full(4, reward)
    value, good = reward / (1 - 0.8 * 0.75), []
    for seed in range(20):
        mdp = HalpernMDPSolver(0.8, solver=solver, sample_tol=0.3, random_state=seed)
        mdp.fit(X, y, terminal=[0, 0, 1, 0])
        low, high = mdp.gain_interval_
        good.append(low <= 0.2 * value <= high and abs(mdp.bias_[0] - value) <= 0.3)
        assert mdp.converged_ and mdp.n_samples_ > 100
    assert np.mean(good) >= 0.95


def test_plug_in_certifies_by_fresh_draws():
    """Values come from the draws before, and their backup from the last ones alone."""
    P, R = RIVERSWIM
    model = model_of(P, R)
    inner, drawn = ModelSampler(model, np.random.RandomState(0)), []

    class Sampler:
        def counts(self, size):
            drawn.append((inner.counts(size), size))
            return drawn[-1][0]

    for i, step in enumerate(islice(plug_in(model, Sampler(), 0.1, 0.1, 1e9), 6)):
        counts, size = drawn[-1]
        assert size == 32 * 2**i and len(drawn) == i + 2
        assert_allclose(step.q, model.rewards + counts @ step.h / size, rtol=1e-12)
        # The values are those of all draws before.
        before = sum(counts for counts, _ in drawn[:-1]).toarray()
        assert (before.sum(axis=1) == size).all()
        estimate = (before / size).reshape(6, 2, 6).swapaxes(0, 1)
        low, high = reference.certificate(estimate, R, step.h)
        assert high - low <= 0.01


FOUR = {
    "riverswim": (reference.riverswim, 1, 0.32),
    "forest3": (reference.forest, 4, 0.32),
    "frozenlake4": (reference.frozenlake, 1, 0.16),
    "periodic_cycle": (reference.periodic_cycle, 3, 0.32),
}


@cache
def cost(name, variant, seed=0):
    case, divisor, tol = FOUR[name]
    P, R = case()
    mdp = HalpernMDPSolver(
        solver="savia", variant=variant, sample_tol=tol, delta=0.1, random_state=seed
    ).fit_mdp(P, R / divisor)
    gain = reference.EXACT_GAINS[name] / divisor
    low, high = mdp.gain_interval_
    assert mdp.converged_ and low <= gain <= high and high - low <= tol
    assert reference.policy_gain(P, R / divisor, mdp.policy_).min() >= gain - tol
    return mdp.n_samples_


@pytest.mark.parametrize("name", FOUR)
def test_improved_needs_far_fewer_draws(name):
    improved = np.mean([cost(name, "improved", seed) for seed in range(5)])
    assert cost(name, "paper") >= 50 * improved


@pytest.mark.parametrize("solver", ["savia", "plug_in"])
def test_seeds(solver):
    P, R = RIVERSWIM

    def fit(seed):
        mdp = HalpernMDPSolver(solver=solver, sample_tol=0.5, random_state=seed)
        return mdp.fit_mdp(P, R)

    a, b, c = fit(0), fit(0), fit(1)
    assert_array_equal(a.q_, b.q_)
    assert_array_equal(a.gain_history_, b.gain_history_)
    assert a.n_samples_ == b.n_samples_ > 0
    assert not np.array_equal(a.q_, c.q_)
    assert_array_equal(a.q_, fit(np.random.RandomState(0)).q_)


@pytest.mark.parametrize("solver", ["savia", "plug_in"])
def test_threads(solver, monkeypatch):
    """Blocks of pairs have their own generators; threads share them out."""
    blocks = [slice(0, 5), slice(5, 10), slice(10, 12)]
    monkeypatch.setattr(sampling, "row_blocks", lambda *_: blocks)
    fitted = [
        HalpernMDPSolver(
            solver=solver, sample_tol=0.5, random_state=0, n_jobs=n_jobs
        ).fit_mdp(*RIVERSWIM)
        for n_jobs in (None, 1, 2, 3)
    ]
    for mdp in fitted[1:]:
        assert_array_equal(mdp.q_, fitted[0].q_)
        assert_array_equal(mdp.gain_history_, fitted[0].gain_history_)
    assert abs(fitted[0].gain_ - RIVERSWIM_GAIN) < 0.25


@pytest.mark.parametrize("solver", ["savia", "plug_in"])
@pytest.mark.parametrize("variant", ["improved", "paper"])
@pytest.mark.parametrize("budget", [24, 100, 5000, 200_000])
def test_max_samples(solver, variant, budget):
    P, R = RIVERSWIM
    mdp = HalpernMDPSolver(
        solver=solver,
        variant=variant,
        max_samples=budget,
        sample_tol=0.01,
        random_state=0,
    )
    with pytest.warns(ConvergenceWarning, match="max_samples="):
        mdp.fit_mdp(P, R)
    assert not mdp.converged_ and 0 < mdp.n_samples_ <= budget
    low, high = mdp.gain_interval_
    assert low <= RIVERSWIM_GAIN <= high
    assert low <= reference.policy_gain(P, R, mdp.policy_).min()
    with pytest.raises(ValueError, match="allow two draws of each of the 12 pairs"):
        mdp.set_params(max_samples=23).fit_mdp(P, R)
