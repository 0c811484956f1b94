"""Gymnasium's tabular environments, and others made like them."""

from fractions import Fraction

import gymnasium
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skextra.mdp import HalpernMDPSolver, from_gymnasium
from tests.mdp import reference
from tests.mdp.common import EXACT_SOLVERS, dense_rows, earned

ENVIRONMENTS = {
    "frozenlake4": ("FrozenLake-v1", {"map_name": "4x4", "is_slippery": True}),
    "frozenlake8": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": True}),
    "taxi": ("Taxi-v4", {}),
    "cliffwalking": ("CliffWalking-v1", {}),
}


def make(name):
    number, options = ENVIRONMENTS[name]
    return gymnasium.make(number, **options)


class Table:
    """A little environment: three states in a row, and one that nothing leads to.

    Action 1 of state 2 ends the episode with probability 0.25.
    """

    initial_state_distrib = [0.5, 0.5, 0.0, 0.0]

    def __init__(self):
        end = [(0.25, 2, 8.0, True), (0.75, 2, 0.0, False)]
        self.P = {
            0: {0: [(1.0, 1, 1.0, False)], 1: [(1.0, 0, 0.0, False)]},
            1: {0: [(0.5, 2, 0.0, False), (0.5, 2, 3.0, False)], 1: [(1.0, 1, 0.0, 0)]},
            2: {0: [(1.0, 0, -1.0, False)], 1: end},
            3: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 3, 9.0, True)]},
        }

    @property
    def unwrapped(self):
        return self


def value_iteration(env, discount, n=3000):
    """Values and q of env.P as it stands: nothing follows an end."""
    table = env.unwrapped.P
    V = np.zeros(len(table))
    for _ in range(n):
        q = np.array(
            [
                [
                    sum(p * (r + discount * V[t] * (not done)) for p, t, r, done in row)
                    for row in table[s].values()
                ]
                for s in table
            ]
        )
        V = q.max(axis=1)
    return V, q


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gain(name):
    P, R, kept = reference.toy_text(make(name))
    mdp = HalpernMDPSolver(tol=1e-8).fit_env(make(name))
    assert_allclose(mdp.gain_, reference.EXACT_GAINS[name], rtol=0, atol=1e-8)
    assert_allclose(earned(P, R, mdp), mdp.gain_, rtol=0, atol=1e-8)
    assert_array_equal(mdp.states_.ravel(), kept)
    assert_allclose(mdp.transition_.toarray(), dense_rows(P), atol=1e-15)
    assert_allclose(mdp.reward_, R, atol=1e-15)
    assert_array_equal(mdp.predict(kept[:, None]), mdp.policy_)
    assert_array_equal(mdp.actions_, np.arange(R.shape[1]))


def test_taxi_keeps_400_states():
    assert len(HalpernMDPSolver().fit_env(make("taxi")).states_) == 400


def test_model():
    model = from_gymnasium(Table())
    assert_array_equal(model.states, [0, 1, 2])
    assert_allclose(model.start, [0.5, 0.5, 0])
    expected = [
        [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0.125, 0.125, 0.75],
    ]  # fmt: skip
    assert_allclose(model.P.toarray(), expected)
    assert_allclose(model.R, [[1, 0], [1.5, 0], [-1, 2]])
    assert_array_equal(model.end, np.zeros((3, 2)))
    ending = from_gymnasium(Table(), restart=False)
    expected[-1] = [0, 0, 0.75]
    assert_allclose(ending.P.toarray(), expected)
    assert_allclose(ending.R, model.R)
    assert_array_equal(ending.end, [[0, 0], [0, 0], [0, 0.25]])
    assert type(model.end) is type(ending.end) is np.ndarray


def test_what_is_reached_after_an_end_only():
    """A state that only a terminal step leads to isn't part of the process."""
    env = Table()
    env.P[2][1] = [(0.25, 3, 8.0, True), (0.75, 2, 0.0, False)]
    for restart in (True, False):
        assert_array_equal(from_gymnasium(env, restart=restart).states, [0, 1, 2])
    env.P[2][1] = [(0.25, 3, 8.0, False), (0.75, 2, 0.0, False)]
    assert_array_equal(from_gymnasium(env).states, [0, 1, 2, 3])


@pytest.mark.parametrize("discount", [0.6, 0.95])
@pytest.mark.parametrize("solver", EXACT_SOLVERS)
def test_discounted(solver, discount):
    """A step that ends an episode is worth its reward and no more."""
    for env in (make("frozenlake4"), Table()):
        V, q = value_iteration(env, discount)
        mdp = HalpernMDPSolver(discount, solver=solver, tol=1e-9).fit_env(env)
        kept = mdp.states_.ravel().astype(int)
        assert mdp.converged_
        assert_allclose(mdp.bias_, V[kept], rtol=0, atol=1e-8)
        assert_allclose(mdp.q_, q[kept], rtol=0, atol=1e-8)
        low, high = mdp.gain_interval_
        mean = (1 - discount) * V[kept].mean()
        assert low - 1e-12 <= mean <= high + 1e-12
    assert_array_equal(kept, [0, 1, 2])
    holes = [5, 7, 11, 12, 15]  # and the goal
    mdp.fit_env(make("frozenlake4"))
    assert_array_equal(mdp.states_.ravel(), np.setdiff1d(np.arange(16), holes))


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_reward_below_or_above_nothing(sign):
    """Bounds of an ending process must hold for rewards of any sign."""
    env = Table()
    for s, row in env.P.items():
        env.P[s] = {
            a: [(p, t, sign * 3.0, d) for p, t, _, d in o] for a, o in row.items()
        }
    V, _ = value_iteration(env, 0.9)
    mdp = HalpernMDPSolver(0.9, tol=1e-8).fit_env(env)
    assert_allclose(mdp.bias_, V[:3], rtol=0, atol=1e-8)
    mean = (1 - 0.9) * V[:3].mean()
    assert (mdp.gain_history_[:, 0] <= mean + 1e-12).all()
    assert (mdp.gain_history_[:, 1] >= mean - 1e-12).all()


@pytest.mark.parametrize("solver", ["savia", "plug_in"])
@pytest.mark.parametrize("discount", [None, 0.5])
def test_sampled(solver, discount):
    """Also of an environment whose probabilities don't sum to 1 to the last bit."""
    mdp = HalpernMDPSolver(discount, solver=solver, sample_tol=0.3, random_state=0)
    for env in (make("frozenlake4"), Table()):
        mdp.fit_env(env)
        assert mdp.converged_
        exact = HalpernMDPSolver(discount).fit_env(env)
        low, high = mdp.gain_interval_
        assert low <= exact.gain_ <= high
        if discount:
            assert np.abs(mdp.bias_ - exact.bias_).max() <= 0.3


def test_unknown_states():
    mdp = HalpernMDPSolver().fit_env(make("frozenlake4"))
    # State 5 is a hole: who falls into it starts over.
    with pytest.raises(ValueError, match=r"Row 1 of X, \[5(\.0)?\], is none of the 11"):
        mdp.predict([[0], [5]])
    mdp = HalpernMDPSolver().fit_env(make("taxi"))
    with pytest.raises(ValueError, match="none of the 400 states"):
        mdp.predict([[0]])  # the passenger waits where she wants to go


@pytest.mark.parametrize("env", ["CartPole-v1", None, 3])
def test_no_table(env):
    env = gymnasium.make(env) if isinstance(env, str) else env
    for read in (HalpernMDPSolver().fit_env, from_gymnasium):
        with pytest.raises(ValueError, match="env must be a tabular environment"):
            read(env)


def test_bad_tables():
    env = Table()
    del env.P[2][1]
    with pytest.raises(ValueError, match="for state 2, action 0, .*1 actions, where"):
        from_gymnasium(env)
    env = Table()
    env.P[1][0] = [(0.5, 2, 0.0, False)]
    with pytest.raises(ValueError, match="state 1"):
        HalpernMDPSolver().fit_env(env)
    env = Table()
    env.P[1][0] = [(1.5, 2, 0.0, False), (-0.5, 0, 0.0, False)]
    with pytest.raises(ValueError, match="state 1"):
        HalpernMDPSolver(0.9).fit_env(env)
    env = Table()
    env.P[1][0] = [(1.0, 2, np.nan, False)]
    with pytest.raises(ValueError, match="nan for state 1 and action 0"):
        HalpernMDPSolver().fit_env(env)
    env = Table()
    env.initial_state_distrib = [0.5, 0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="initial_state_distrib"):
        HalpernMDPSolver().fit_env(env)


class Listed:
    """An environment of any table and first states."""

    def __init__(self, P, start):
        self.P, self.initial_state_distrib = P, start

    unwrapped = property(lambda self: self)


@pytest.mark.parametrize(
    "P",
    [
        {0: {0: [(1.0, 1, 1.0, False)]}, 1: {0: [(1.0, 0, 2.0, True)]}},
        [[[(1.0, 1, 1.0, False)]], [[(1.0, 0, 2.0, True)]]],
        [{0: [(1.0, 1, 1.0, False)]}, {0: [(1.0, 0, 2.0, True)]}],
        {
            np.int64(s): {
                np.int64(0): ((np.float32(1), np.int8(1 - s), s + 1, np.bool_(s)),)
            }
            for s in (0, 1)
        },
    ],
)
def test_tables_of_any_kind(P):
    """``P[state][action]`` is all that is needed of dictionaries, or of lists."""
    mdp = HalpernMDPSolver().fit_env(Listed(P, [1, 0]))
    assert_allclose(mdp.gain_, 1.5, rtol=0, atol=1e-6)


def test_outcomes_add_up():
    """Two ways to a next state are one, and one of probability 0 is none."""
    P = {
        0: {0: [(0.5, 1, 1.0, False), (0.5, 1, 3.0, False), (0.0, 2, 99.0, False)]},
        1: {0: [(0.25, 1, 0.0, True), (0.25, 0, 4.0, True), (0.5, 1, 0.0, False)]},
        2: {0: [(1.0, 2, 0.0, False)]},
    }
    found = from_gymnasium(Listed(P, [0.5, 0.5, 0]))
    assert_array_equal(found.P.toarray()[:2, :2], [[0, 1], [0.25, 0.75]])
    assert_array_equal(found.R[:2], [[2], [1]])


@pytest.mark.parametrize(
    "outcomes",
    [
        [(1.0, 5, 1.0, False)],
        [(1.0, -1, 1.0, False)],
        [(1.0, 0.7, 1.0, False)],
        [(1.0, 0, 1.0)],
        [(1.0, 0, 1.0, False, {})],
        [],
    ],
)
def test_outcomes_that_are_none(outcomes):
    P = {0: {0: [(1.0, 1, 1.0, False)]}, 1: {0: outcomes}}
    with pytest.raises(ValueError, match=r"env\.P\[1\]\[0\]|state 1, action 0"):
        from_gymnasium(Listed(P, [1, 0]))


def test_first_states_that_end_the_episode():
    P = {0: {0: [(1.0, 1, 1.0, False)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    mdp = HalpernMDPSolver().fit_env(Listed(P, [0.5, 0.5]))
    assert_allclose(mdp.gain_, 1 / 3, rtol=0, atol=1e-6)
    mdp = HalpernMDPSolver(0.5).fit_env(Listed(P, [0.5, 0.5]))
    assert_allclose(mdp.bias_, [1, 0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("solver", EXACT_SOLVERS)
@pytest.mark.parametrize("end", [1e-7, 1e-9, 1e-12])
def test_an_end_of_tiny_probability(solver, end):
    """Over a million steps it tells, and is no rounding of the sum of the row."""
    discount = 1 - 1e-6
    env = Listed({0: {0: [(1 - end, 0, 1.0, False), (end, 0, 1.0, True)]}}, [1.0])
    mdp = HalpernMDPSolver(discount, solver=solver, max_iter=2000).fit_env(env)
    goes_on = float(from_gymnasium(env, restart=False).P.toarray()[0, 0])
    assert_allclose(goes_on, 1 - end, rtol=0, atol=1e-15)
    value = 1 / (1 - Fraction(discount) * Fraction(goes_on))
    low, high = map(Fraction, mdp.gain_interval_.tolist())
    assert low <= (1 - Fraction(discount)) * value <= high
    width = Fraction(mdp.span_residual_) / (1 - Fraction(discount))
    assert abs(value - Fraction(float(mdp.bias_[0]))) <= width
    if solver == "auto":
        assert_allclose(mdp.bias_, float(value), rtol=1e-8)


@pytest.mark.parametrize("end", [0.5, 1.0])
def test_first_states_that_sum_to_one_nearly(end):
    """They are normalised, as rows of P are: certificates need rows of sum 1."""
    step = [(1 - end, 0, 1e4, False), (end, 1, 1e4, True)]
    last = [(1.0, 0, 2e4, True)]
    env = Listed({0: {0: step}, 1: {0: last}}, [0.5, 0.5 + 9e-9])
    model = from_gymnasium(env)
    assert_allclose(model.start.sum(), 1, rtol=0, atol=1e-15)
    assert_allclose(model.P.sum(axis=1), 1, rtol=0, atol=1e-15)
    mdp = HalpernMDPSolver().fit_env(env)
    # By the stationary distribution, with the first states made to sum to 1.
    first = 0.5 / (1 + 9e-9)
    to_last = np.array([end * (1 - first), 1 - first])
    share = to_last[0] / (1 - to_last[1] + to_last[0])
    exact = 1e4 * (1 + share)
    low, high = mdp.gain_interval_
    assert low - 1e-10 <= exact <= high + 1e-10 and high - low <= 1e-6
