"""Draws of next states: from a known model, and by functions of the user."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from skextra.mdp import HalpernMDPSolver
from skextra.mdp import _sampling as sampling
from skextra.mdp._model import Step
from skextra.mdp._sampling import CallableSampler, ModelSampler
from skextra.mdp._search import Search
from tests.mdp import reference
from tests.mdp.common import masked_garnet, model_of

RIVERSWIM = reference.riverswim()
BY_NEXT_STATE = r"reward must .*shape \(n_states, n_actions\)"


def test_counts_follow_the_law():
    """Chi-square over all pairs and a few seeds, from both sides."""
    P, R = masked_garnet(10, 3, 4, 1)
    model = model_of(P, R)
    size, statistic = 100_000, 0.0
    expected = size * model.probabilities
    assert expected.min() > 5
    for seed in range(10):
        sampler = ModelSampler(model, np.random.RandomState(seed))
        drawn = sampler.counts(size)
        assert drawn.shape == (model.n_pairs, 10)
        assert_array_equal(drawn.sum(axis=1), size)
        assert_array_equal(drawn.indices, model.indices)
        statistic += ((drawn.data - expected) ** 2 / expected).sum()
    freedom = 10 * (expected.size - model.n_pairs)
    assert chi2.ppf(1e-4, freedom) < statistic < chi2.ppf(1 - 1e-4, freedom)
    again = sampler.counts(size)
    assert not np.array_equal(again.data, drawn.data)  # other draws each time


def test_variance_of_means():
    """Draws of a pair are independent: the variance is that of one over their number."""
    P, R = masked_garnet(6, 2, 3, 2)
    model = model_of(P, R)
    sampler = ModelSampler(model, np.random.RandomState(0))
    values, size = np.random.default_rng(0).normal(size=6), 40
    means = np.array([sampler.means(values, size) for _ in range(4000)])
    exact = model.transition @ values
    variance = (model.transition @ values**2 - exact**2) / size
    assert (np.abs(means.mean(axis=0) - exact) < 5 * np.sqrt(variance / 4000)).all()
    assert_allclose(means.var(axis=0), variance, rtol=0.15)
    pairs = np.corrcoef(means.T) - np.eye(model.n_pairs)
    assert np.abs(pairs).max() < 5 / np.sqrt(4000)  # and pairs of each other


def test_blocks_are_independent(monkeypatch):
    """Pairs of the same law, in blocks of their own, don't share their draws."""
    monkeypatch.setattr(sampling, "row_blocks", lambda n, _: [slice(0, 1), slice(1, n)])
    model = model_of(np.full((2, 2, 2), 0.5), np.zeros((2, 2)))
    sampler = ModelSampler(model, np.random.RandomState(0))
    means = np.array([sampler.means(np.array([0.0, 1]), 50) for _ in range(2000)])
    pairs = np.corrcoef(means.T) - np.eye(4)
    assert np.abs(pairs).max() < 5 / np.sqrt(2000)


def test_counts_where_the_process_may_end():
    P, R = masked_garnet(6, 2, 3, 2)
    model = model_of(P, R)
    goes_on = np.linspace(0, 1, model.n_pairs)  # certain ends, and none, are there
    lengths = np.diff(model.indptr)
    model = model._replace(
        probabilities=model.probabilities * np.repeat(goes_on, lengths),
        discount=0.9,
        ends=True,
    )
    size = 100_000
    drawn = ModelSampler(model, np.random.RandomState(0)).counts(size)
    total = drawn.sum(axis=1)
    assert total[0] == 0 and total[-1] == size
    spread = np.sqrt(size * goes_on * (1 - goes_on))
    assert (np.abs(total - size * goes_on) <= 5 * spread).all()
    expected = size * model.probabilities
    off = np.abs(drawn.data - expected)
    assert (off <= 5 * np.sqrt(expected) + 1e-9).all()


def lawful(P):
    return lambda s, a, size, rng: rng.choice(P.shape[1], size=size, p=P[a, s])


@pytest.mark.parametrize("solver", ["auto", "savia", "plug_in"])
@pytest.mark.parametrize("discount", [None, 0.5])
def test_generative(solver, discount):
    P, R = masked_garnet(4, 3, 2, 1)
    asked = []

    def sampler(s, a, size, rng):
        assert isinstance(rng, np.random.Generator)
        assert type(s) is int and type(a) is int and type(size) is int
        assert np.isfinite(R[s, a]), "not feasible"
        asked.append(size)
        return lawful(P)(s, a, size, rng)

    mdp = HalpernMDPSolver(
        discount, solver=solver, sample_tol=0.5, random_state=0
    ).fit_generative(sampler, 4, 3, R)
    assert mdp.converged_ and mdp.n_samples_ == sum(asked)
    exact = HalpernMDPSolver(discount).fit_mdp(P, R)
    assert mdp.gain_interval_[0] <= exact.gain_ <= mdp.gain_interval_[1]
    assert not hasattr(mdp, "transition_")
    assert_array_equal(mdp.reward_, R)
    assert_array_equal(np.isfinite(mdp.q_), np.isfinite(R))
    assert_array_equal(mdp.states_.ravel(), np.arange(4))
    assert_array_equal(mdp.predict([[3], [1]]), mdp.policy_[[3, 1]])
    # By seed, as with a known model.
    again = HalpernMDPSolver(
        discount, solver=solver, sample_tol=0.5, random_state=0
    ).fit_generative(sampler, 4, 3, R)
    assert_array_equal(again.q_, mdp.q_)


def test_generative_draws_in_blocks(monkeypatch):
    """No call asks for more than so many draws, and the sums are the same."""
    monkeypatch.setattr(sampling, "DRAWS_AT_ONCE", 7)
    P, R = RIVERSWIM
    asked = []

    def sampler(s, a, size, rng):
        asked.append(size)
        return np.arange(size, dtype=np.uint8) % 6

    draws = CallableSampler(sampler, model_of(P, R), np.random.RandomState(0))
    counts = draws.counts(20)
    assert asked == [7, 7, 6] * 12
    assert isinstance(counts, sparse.csr_array)
    expected = np.bincount(np.concatenate([np.arange(n) % 6 for n in (7, 7, 6)]))
    assert_array_equal(counts.toarray(), [expected] * 12)
    values = np.arange(6.0) ** 2
    assert_allclose(draws.means(values, 20), expected @ values / 20)


def test_rewards_of_states():
    P, R = RIVERSWIM
    rewards = np.arange(6)
    mdp = HalpernMDPSolver(sample_tol=4.0, random_state=0)
    mdp.fit_generative(lawful(P), 6, 2, rewards)
    assert_array_equal(mdp.reward_, np.repeat(rewards[:, None], 2, axis=1))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            lambda size: np.zeros(size + 1, int),
            r"sampler\(0, 0, \d+, rng\) must return",
        ),
        (lambda size: np.zeros((size, 1), int), "integers, the next states"),
        (lambda size: np.zeros(size), "got float64"),
        (lambda size: np.zeros(size, bool), "got bool"),
        (lambda size: None, "integers, the next states"),
        (lambda size: np.full(size, 6), "must return states from 0 to 5; got 6"),
        (lambda size: np.full(size, -1), "must return states from 0 to 5; got -1"),
        (lambda size: 0, "integers, the next states"),
    ],
)
@pytest.mark.parametrize("solver", ["savia", "plug_in"])
def test_bad_draws(result, message, solver):
    def sampler(s, a, size, rng):
        return result(size)

    mdp = HalpernMDPSolver(solver=solver)
    with pytest.raises(ValueError, match=message):
        mdp.fit_generative(sampler, 6, 2, RIVERSWIM[1])
    assert not hasattr(mdp, "policy_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sampler": 3}, "sampler must be a function"),
        ({"n_states": 6.0}, "n_states must be an integer"),
        ({"n_states": 0}, "n_states must be an integer"),
        ({"n_actions": True}, "n_actions must be an integer"),
        ({"n_actions": "two"}, "n_actions must be an integer"),
        ({"n_states": 5}, r"reward must .*shape \(n_states, n_actions\).*\(5, 2\)"),
        # Rewards by next state have no known mean, in any format.
        ({"reward": np.zeros((2, 6, 6))}, BY_NEXT_STATE),
        ({"reward": np.zeros((2, 6, 6)).tolist()}, BY_NEXT_STATE),
        ({"reward": np.zeros((12, 6))}, BY_NEXT_STATE),
        ({"reward": np.zeros((12, 6)).tolist()}, BY_NEXT_STATE),
        ({"reward": sparse.csr_array((12, 6))}, BY_NEXT_STATE),
        ({"reward": [sparse.csr_array((6, 6))] * 2}, BY_NEXT_STATE),
        ({"reward": [[0.0, 1.0], [1.0]]}, "reward must"),
        ({"reward": RIVERSWIM[1] + 0j}, "reward must hold real numbers"),
        ({"reward": np.full((6, 2), np.nan)}, "nan for state 0 and action 0"),
        ({"reward": np.full((6, 2), -np.inf)}, "State 0 has no feasible action"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {
        "sampler": lawful(RIVERSWIM[0]),
        "n_states": 6,
        "n_actions": 2,
        "reward": RIVERSWIM[1],
    } | change
    with pytest.raises(ValueError, match=message):
        HalpernMDPSolver().fit_generative(**arguments)


@pytest.mark.parametrize("solver", ["rvi", "anchored", "lp", "policy_iteration"])
def test_a_known_model_is_needed(solver):
    with pytest.raises(ValueError, match="can only be sampled; got"):
        HalpernMDPSolver(solver=solver).fit_generative(
            lawful(RIVERSWIM[0]), 6, 2, RIVERSWIM[1]
        )


def test_several_gains():
    """Samples cannot tell: the draws end, and the interval holds for all states."""
    P, R = np.array([np.eye(2)]), np.array([[0.0], [1.0]])
    mdp = HalpernMDPSolver(max_samples=10_000, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_samples"):
        mdp.fit_generative(lawful(P), 2, 1, R)
    assert mdp.gain_interval_[0] <= 0 and mdp.gain_interval_[1] >= 1
    with pytest.raises(ValueError, match="depends on the first state"):
        HalpernMDPSolver(solver="savia", max_samples=10_000, random_state=0).fit_mdp(
            P, R
        )


class Counting:
    """A sampler that counts its draws, and is never asked for none."""

    P, R = reference.riverswim()

    def __init__(self):
        self.n_draws = 0

    def __call__(self, s, a, size, rng):
        assert type(size) is int and size > 0
        self.n_draws += size
        return rng.choice(6, p=self.P[a, s], size=size)


@pytest.mark.parametrize("variant", ["improved", "paper"])
@pytest.mark.parametrize("solver", ["savia", "plug_in"])
def test_draws_are_counted_and_within_the_budget(solver, variant):
    for budget in (24, 25, 767, 768, 769, 5000, 12345.6):
        sampler = Counting()
        mdp = HalpernMDPSolver(
            solver=solver,
            variant=variant,
            max_samples=budget,
            sample_tol=0.05,
            random_state=0,
        ).fit_generative(sampler, 6, 2, sampler.R)
        assert mdp.n_samples_ == sampler.n_draws <= budget
        low, high = mdp.gain_interval_
        assert low <= reference.EXACT_GAINS["riverswim"] <= high


@pytest.mark.parametrize("solver", ["savia", "plug_in"])
def test_no_empty_draws_where_blocks_are_full(solver, monkeypatch):
    monkeypatch.setattr(sampling, "DRAWS_AT_ONCE", 8)
    sampler = Counting()
    mdp = HalpernMDPSolver(solver=solver, sample_tol=2.0, random_state=0)
    mdp.fit_generative(sampler, 6, 2, sampler.R)
    assert mdp.n_samples_ == sampler.n_draws


def test_the_policy_is_that_of_the_narrow_interval():
    """With a discount no other step has a bound for every state."""
    model = model_of(*reference.riverswim(), 0.9)
    search = Search(model, 1.0)  # an interval of 0.1
    first, second = np.zeros(6), np.arange(6.0)
    assert not search.take(Step(first, 0.30, 0.50))
    assert search.take(Step(second, 0.29, 0.38))
    assert search.best.h is second and search.converged


@pytest.mark.parametrize("solver", ["savia", "plug_in"])
def test_a_budget_beyond_all_integers(solver):
    mdp = HalpernMDPSolver(
        solver=solver, sample_tol=1e-9, max_samples=2**70, max_iter=60, random_state=0
    )
    with pytest.warns(ConvergenceWarning):
        mdp.fit_mdp(*reference.riverswim())
    low, high = mdp.gain_interval_
    assert low <= reference.EXACT_GAINS["riverswim"] <= high


def test_the_reward_is_named():
    with pytest.raises(ValueError, match="reward must"):
        HalpernMDPSolver().fit_generative(Counting(), 6, 3, np.zeros((6, 2)))
