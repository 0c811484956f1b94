"""Logs of steps: the model that they make, ends of episodes, and the score."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skextra.datasets import make_riverswim, simulate_log
from skextra.mdp import HalpernMDPSolver
from tests.mdp import reference
from tests.mdp.common import dense_rows, earned, examples

LOG = simulate_log(make_riverswim(), 3000, random_state=0)


@st.composite
def logs(draw, max_rows=30):
    """Rows of one or two features with repeats, labels, rewards and next rows."""
    n = draw(st.integers(1, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, 3, size=(n, draw(st.integers(1, 2)))).astype(float)
    actions = rng.choice(["left", "right", "stay"], size=n)
    next_X = X[rng.integers(n, size=n)]
    return X, rng.normal(size=n).round(2), actions, next_X, rng.random(n) < 0.3


def codes_of(X, other=None):
    """Sorted different rows, and which of them each row is."""
    rows, codes = np.unique(X, axis=0, return_inverse=True)
    codes = codes.ravel()
    if other is None:
        return rows, codes
    return rows, codes, [int((rows == row).all(axis=1).argmax()) for row in other]


def assert_model(mdp, P, R):
    assert_allclose(mdp.transition_.toarray(), dense_rows(P), rtol=0, atol=1e-14)
    assert_allclose(mdp.reward_, R, rtol=0, atol=1e-14)


@given(logs())
@examples(30)
def test_rows_in_order(log):
    """The next row is the next state, and the first comes after the last."""
    X, y, actions, _, terminal = log
    rows, codes = codes_of(X)
    labels, a = np.unique(actions, return_inverse=True)
    P, R = reference.aggregate_log(
        codes, a, y, np.roll(codes, -1), len(rows), len(labels)
    )
    # With average reward an end leads to the row after, as all rows do here.
    for ends in (None, terminal):
        mdp = HalpernMDPSolver(tol=1e-7).fit(X, y, actions=actions, terminal=ends)
        assert_array_equal(mdp.states_, rows)
        assert_array_equal(mdp.actions_, labels)
        assert_model(mdp, P, R)
        assert mdp.restart_prob_ == 0 and mdp.converged_
        assert_allclose(earned(P, R, mdp), mdp.gain_, rtol=0, atol=2e-7)
        best = reference.gain_lp(P, R)
        assert_allclose(mdp.gain_, best, rtol=0, atol=2e-7)
        assert_array_equal(mdp.predict(X), mdp.policy_[codes])
        assert mdp.score(X) == mdp.gain_interval_[0]


@given(logs(), st.booleans())
@examples(30)
def test_next_rows(log, ends):
    """Next states by next_X; ends lead to the row after; rarely more, if needed."""
    X, y, actions, next_X, terminal = log
    rows, codes, following = codes_of(X, next_X)
    labels, a = np.unique(actions, return_inverse=True)
    after = np.roll(codes, -1)
    if ends:
        following = np.where(terminal, after, following)
    size = len(rows), len(labels)
    P, R = reference.aggregate_log(codes, a, y, following, *size)
    mdp = HalpernMDPSolver(tol=1e-6).fit(
        X, y, actions=actions, next_X=next_X, terminal=terminal if ends else None
    )
    one = reference.is_weakly_communicating(P, np.isfinite(R))
    assert mdp.restart_prob_ == (0 if one else 1e-3)
    if not one:
        walk, _ = reference.aggregate_log(codes, a, y, after, *size)
        P = (1 - 1e-3) * P + 1e-3 * walk
        assert reference.is_weakly_communicating(P, np.isfinite(R))
    assert_model(mdp, P, R)
    assert mdp.converged_
    assert_allclose(earned(P, R, mdp), mdp.gain_, rtol=0, atol=2e-6)


@given(logs(), st.booleans(), st.sampled_from([0.3, 0.9]))
@examples(30)
def test_discounted(log, by_next, discount):
    """Nothing follows an end, and nothing is restarted."""
    X, y, actions, next_X, terminal = log
    rows, codes, following = codes_of(X, next_X)
    if not by_next:
        following = np.roll(codes, -1)
    labels, a = np.unique(actions, return_inverse=True)
    end = len(rows)  # one more state, which earns nothing
    P, R = reference.aggregate_log(
        codes, a, y, np.where(terminal, end, following), end + 1, len(labels)
    )
    P[0, end, end], R[end, 0] = 1, 0
    mdp = HalpernMDPSolver(discount, tol=1e-8).fit(
        X,
        y,
        actions=actions,
        next_X=next_X if by_next else None,
        terminal=terminal,
    )
    V, _ = reference.discounted_values(P, R, discount)
    assert_allclose(mdp.bias_, V[:end], rtol=0, atol=2e-8)
    assert mdp.restart_prob_ == 0
    pairs = dense_rows(P).reshape(end + 1, len(labels), end + 1)[:end, :, :end]
    assert_allclose(mdp.transition_.toarray(), pairs.reshape(-1, end), atol=1e-14)
    assert_allclose(
        mdp.q_, reference.backup(P, R, V, discount)[:end], rtol=0, atol=2e-8
    )
    mean = (1 - discount) * V[:end].mean()
    assert mdp.gain_interval_[0] - 1e-12 <= mean <= mdp.gain_interval_[1] + 1e-12


def test_restarts():
    """Two states that keep to themselves: each is left once in a thousand steps."""
    X, y = np.array([[0.0], [1], [1]]), np.array([1.0, 2, 3])
    mdp = HalpernMDPSolver(tol=1e-10).fit(X, y, next_X=X)
    assert mdp.restart_prob_ == 1e-3
    # The row after the first is in state 1; those after the others in 1 and 0.
    expected = [[0.999, 0.001], [0.0005, 0.9995]]
    assert_allclose(mdp.transition_.toarray(), expected, rtol=1e-12)
    assert_allclose(mdp.gain_, (1 * 1 + 2 * 2.5) / 3, rtol=0, atol=1e-9)
    assert HalpernMDPSolver().fit(X, y).restart_prob_ == 0


def test_unseen_next_rows():
    """They stand for the nearest row of X, in units of the standard deviation."""
    X = np.array([[0.0, 0], [1, 100], [2, 300], [0, 0]])
    next_X = np.array([[1.1, 90], [1.8, 220], [0.4, 20], [0.9, 310]])
    scaled = (next_X[:, None] - np.unique(X, axis=0)) / X[:3].std(axis=0)
    nearest = (scaled**2).sum(axis=2).argmin(axis=1)
    mdp = HalpernMDPSolver().fit(X, [1, 2, 3, 4], actions=[0, 0, 0, 1], next_X=next_X)
    rows = mdp.transition_.toarray()[[0, 2, 4, 1]]
    assert_array_equal(rows, np.eye(3)[nearest])
    assert set(nearest) == {0, 1, 2}


def test_one_action_and_no_reward():
    mdp = HalpernMDPSolver().fit(LOG.X)
    assert mdp.gain_ == 0 and mdp.score(LOG.X) == mdp.gain_interval_[0]
    assert_array_equal(mdp.actions_, [0])
    assert_array_equal(mdp.predict(LOG.X[:5]), 0)


def test_one_row():
    mdp = HalpernMDPSolver().fit([[2.0, 3.0]], [7.0])
    assert_allclose(mdp.gain_, 7, rtol=1e-12)
    assert_array_equal(mdp.transition_.toarray(), [[1.0]])
    assert_array_equal(mdp.predict([[0.0, 9.0]]), [0])
    mdp = HalpernMDPSolver(0.5).fit([[2.0, 3.0]], [7.0])
    assert_allclose(mdp.bias_, 14, rtol=1e-6)
    mdp = HalpernMDPSolver(0.5).fit([[2.0, 3.0]], [7.0], terminal=[True])
    assert_allclose(mdp.bias_, 7, rtol=1e-6)


def test_order_of_rows_counts():
    X, y = np.array([[0.0], [0], [1], [1]]), np.array([0.0, 0, 1, 1])
    mdp = HalpernMDPSolver().fit(X, y)
    assert_allclose(mdp.transition_.toarray(), [[0.5, 0.5], [0.5, 0.5]])
    mdp.fit(X[[0, 2, 1, 3]], y)
    assert_allclose(mdp.transition_.toarray(), [[0, 1], [1, 0]])


def test_from_log_to_model():
    """A long log gives the gain of the process it is from, and its best policy."""
    log = simulate_log(make_riverswim(), 60_000, random_state=1)
    mdp = HalpernMDPSolver().fit(log.X, log.y, actions=log.actions, next_X=log.next_X)
    assert abs(mdp.gain_ - reference.EXACT_GAINS["riverswim"]) < 0.1
    assert_array_equal(mdp.predict(np.arange(6.0)[:, None]), ["swim"] * 6)


@pytest.mark.parametrize("solver", ["rvi", "anchored", "policy_iteration", "lp"])
def test_solvers_agree_on_a_log(solver):
    columns = {"actions": LOG.actions, "next_X": LOG.next_X}
    plain = HalpernMDPSolver(tol=1e-8).fit(LOG.X, LOG.y, **columns)
    mdp = HalpernMDPSolver(solver=solver, tol=1e-8).fit(LOG.X, LOG.y, **columns)
    assert_allclose(mdp.gain_, plain.gain_, rtol=0, atol=1e-8)
    assert_array_equal(mdp.policy_, plain.policy_)


@pytest.mark.parametrize("solver", ["savia", "plug_in"])
def test_sampled_solvers_draw_from_a_log(solver):
    columns = {"actions": LOG.actions, "next_X": LOG.next_X}
    plain = HalpernMDPSolver().fit(LOG.X, LOG.y, **columns)
    mdp = HalpernMDPSolver(solver=solver, sample_tol=0.3, random_state=0)
    mdp.fit(LOG.X, LOG.y, **columns)
    assert mdp.converged_
    assert mdp.gain_interval_[0] <= plain.gain_ <= mdp.gain_interval_[1]


def slow_score(mdp, X, y, actions, next_X, terminal, discount=None):
    """R^2 of the targets, row by row; all states are rows of the log."""
    find = {tuple(row): s for s, row in enumerate(mdp.states_.tolist())}
    number = {label: a for a, label in enumerate(mdp.actions_.tolist())}
    targets, told = [], []
    for t in range(len(X)):
        s = find[tuple(X[t].tolist())]
        after = X[(t + 1) % len(X)]
        over = terminal[t]
        row = after if next_X is None or (over and discount is None) else next_X[t]
        ahead = mdp.bias_[find[tuple(row.tolist())]]
        if discount is None:
            targets.append(y[t] - mdp.gain_ + ahead)
        else:
            targets.append(y[t] + (0 if over else discount * ahead))
        q = mdp.q_[s, number[actions[t]]] if actions[t] in number else -np.inf
        told.append(mdp.q_[s].max() if q == -np.inf else q)
    targets, told = np.array(targets), np.array(told)
    return 1 - ((targets - told) ** 2).sum() / ((targets - targets.mean()) ** 2).sum()


@pytest.mark.parametrize("discount", [None, 0.8])
@pytest.mark.parametrize("by_next", [True, False])
def test_score(discount, by_next):
    """On other steps than those of fit, some by actions that it never saw."""
    ends = np.random.default_rng(0).random(3000) < 0.1
    y = LOG.y + np.random.default_rng(1).normal(size=3000)
    next_X = LOG.next_X if by_next else None
    actions = LOG.actions.astype("<U5")
    seen = slice(0, 200)
    few = np.where(LOG.X[seen, 0] == 0, "rest", actions[seen])
    mdp = HalpernMDPSolver(discount, tol=1e-9).fit(
        LOG.X[seen], y[seen], actions=few, terminal=ends[seen]
    )
    kept = np.flatnonzero(np.isin(LOG.X, mdp.states_).ravel())[:400]
    assert np.isin(LOG.next_X[kept], mdp.states_).all()
    actions[kept[::7]] = "float"
    columns = {
        "actions": actions[kept],
        "next_X": None if next_X is None else next_X[kept],
        "terminal": ends[kept],
    }
    expected = slow_score(mdp, LOG.X[kept], y[kept], *columns.values(), discount)
    assert -1 < expected < 1
    assert_allclose(mdp.score(LOG.X[kept], y[kept], **columns), expected, rtol=1e-9)


@pytest.mark.parametrize("with_y", [True, False])
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[np.nan]], "NaN"),
        ([[np.inf]], "infinity"),
        ([[0.0, 1.0]], "has 2 features, but"),
        ([[]], "0 feature"),
        ([0.0], "2D array"),
        ([["a"]], "could not convert"),
        (np.zeros((0, 1)), "0 sample"),
    ],
)
def test_score_of_bad_rows(rows, message, with_y):
    """Also where only the certified gain is asked for."""
    for mdp in (
        HalpernMDPSolver().fit(LOG.X, LOG.y, actions=LOG.actions),
        HalpernMDPSolver().fit_mdp(*reference.riverswim()),
    ):
        y = {"y": [1.0] * len(rows), "actions": mdp.actions_[[0] * len(rows)]}
        with pytest.raises(ValueError, match=message):
            mdp.score(rows, **(y if with_y else {}))


@pytest.mark.parametrize("actions", [None, [0, 1] * 10, ["fly"] * 20, ["REST"] * 20])
@pytest.mark.parametrize("with_y", [True, False])
def test_score_of_unknown_actions(actions, with_y):
    """A log of other labels is no log of these actions; nor is one of none."""
    mdp = HalpernMDPSolver().fit(LOG.X, LOG.y, actions=LOG.actions)
    y = LOG.y[:20] if with_y else None
    if actions is None and not with_y:
        assert mdp.score(LOG.X[:20]) == mdp.gain_interval_[0]
        return
    with pytest.raises(ValueError, match=r"actions must .*rest.*swim"):
        mdp.score(LOG.X[:20], y, actions=actions)


def test_weighted_score():
    """A row of weight 3 counts as three rows do, and one of weight 0 as none."""
    mdp = HalpernMDPSolver().fit(LOG.X, LOG.y, actions=LOG.actions)
    weights = np.random.default_rng(0).integers(4, size=300)

    def score(rows, **more):
        return mdp.score(
            LOG.X[rows],
            LOG.y[rows],
            actions=LOG.actions[rows],
            next_X=LOG.next_X[rows],
            **more,
        )

    repeated = score(np.repeat(np.arange(300), weights))
    assert_allclose(score(np.arange(300), sample_weight=weights), repeated)
    assert abs(score(np.arange(300)) - repeated) > 1e-6


def test_score_prefers_the_right_states():
    """Splitting by what matters scores more than one state or a random feature."""
    rng = np.random.default_rng(0)
    noise = rng.integers(3, size=(3000, 1)).astype(float)
    scores = [
        HalpernMDPSolver()
        .fit(X[:2000], LOG.y[:2000], actions=LOG.actions[:2000])
        .score(X[2000:], LOG.y[2000:], actions=LOG.actions[2000:])
        for X in (LOG.X, noise, np.zeros((3000, 1)))
    ]
    assert scores[0] > 0.3 > scores[1] and scores[0] > 0.3 > scores[2]


def test_copies():
    mdp = HalpernMDPSolver(0.9).fit(LOG.X, LOG.y, actions=LOG.actions)
    other = pickle.loads(pickle.dumps(mdp))
    assert_array_equal(other.predict(LOG.X), mdp.predict(LOG.X))
    assert_array_equal(other.q_values([[99.0]]), mdp.q_values([[99.0]]))
    again = clone(mdp).fit(LOG.X, LOG.y, actions=LOG.actions)
    assert_array_equal(again.q_, mdp.q_)
    assert_array_equal(again.gain_history_, mdp.gain_history_)


def test_arrays_are_left_alone():
    X, y, next_X = LOG.X.copy(), LOG.y.copy(), LOG.next_X.copy()
    HalpernMDPSolver().fit(X, y, actions=LOG.actions, next_X=next_X)
    for now, before in ((X, LOG.X), (y, LOG.y), (next_X, LOG.next_X)):
        assert_array_equal(now, before)
