"""Borders that users meet: exact fractions, and odd labels, codes and scales."""

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from skextra.datasets import (
    make_access_control,
    make_riverswim,
    simulate_log,
)
from skextra.mdp import HalpernMDPSolver
from tests.mdp.common import EXACT_SOLVERS

# ------------------------------------------------------------------ exact arithmetic


def solved(A, b):
    """Solve A x = b in fractions; None if singular."""
    rows = [[*row, right] for row, right in zip(A, b)]
    for i in range(len(rows)):
        pivot = next((r for r in range(i, len(rows)) if rows[r][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(len(rows)):
            if r != i:
                factor = rows[r][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i])]
    return [row[-1] for row in rows]


def in_fractions(P, R, discount):
    """Gain (or the values) of each policy, None where it has several gains."""
    n_actions, n_states, _ = P.shape
    found, d = {}, Fraction(float(discount or 1.0))
    for policy in product(range(n_actions), repeat=n_states):
        A, r = [], []
        for s, a in enumerate(policy):
            row = [Fraction(float(p)) for p in P[a, s]]
            row = [int(s == t) - d * p / sum(row) for t, p in enumerate(row)]
            A.append(row if discount else [*row[1:], Fraction(1)])
            r.append(Fraction(float(R[s, a])))
        x = solved(A, r)
        found[policy] = x if discount or x is None else x[-1]
    return found


def hard_models(n):
    """Nearly periodic and nearly multichain models, and rewards of many sizes."""
    rng = np.random.default_rng(0)
    for i in range(n):
        leak = 10.0 ** -rng.integers(6, 13)
        ring, stay = np.roll(np.eye(3), 1, axis=1), np.eye(3)
        slow = (1 - leak) * stay + leak * ring
        often = (1 - leak) * ring + leak * stay
        P = [
            np.stack([slow, rng.dirichlet(np.ones(3), size=3)]),
            np.stack([often, rng.permutation(ring)]),
            np.stack([ring, np.eye(3)[rng.integers(3, size=3)]]),
            np.stack([slow, often]),
        ][i % 4]
        R = rng.normal(size=(3, 2))
        yield P, [R, 1e9 * R, 1e-9 * R, 1e6 + 1e-3 * R, 1e-200 * R][i % 5]


@pytest.mark.parametrize("discount", [None, 0.5, 1 - 1e-6])
def test_intervals_hold_in_exact_arithmetic(discount):
    """Whether the tolerance is reached or not, rounding is within the interval."""
    for i, (P, R) in enumerate(hard_models(20)):
        exact = in_fractions(P, R, discount)
        solver = EXACT_SOLVERS[i % len(EXACT_SOLVERS)]
        mdp = HalpernMDPSolver(discount, solver=solver, tol=1e-9, max_iter=300)
        low, high = map(Fraction, mdp.fit_mdp(P, R).gain_interval_.tolist())
        own = exact[tuple(mdp.policy_.tolist())]
        if discount is None:
            assert low <= max(g for g in exact.values() if g is not None) <= high
            assert own is None or low <= own
            continue
        share = (1 - Fraction(discount)) / 3
        best = [max(values) for values in zip(*exact.values())]
        assert low <= share * sum(own) and low <= share * sum(best) <= high
        width = Fraction(mdp.span_residual_) / (1 - Fraction(discount))
        for value, of_policy, v in zip(best, own, mdp.bias_.tolist()):
            assert value - of_policy <= width
            assert abs(value - Fraction(v)) <= width


# ------------------------------------------------------------------------ the labels


@pytest.mark.parametrize("as_object", [False, True])
def test_labels_taken_from_arrays(as_object):
    """Items of an array of strings are np.str_, and of one of booleans np.bool_."""
    log = simulate_log(make_riverswim(), 500, random_state=0)
    for labels in (log.actions, log.actions == "swim"):
        items = list(labels)
        items = np.array(items, dtype=object) if as_object else items
        plain = HalpernMDPSolver().fit(log.X, log.y, actions=labels)
        mdp = HalpernMDPSolver().fit(log.X, log.y, actions=items)
        assert_array_equal(mdp.actions_, plain.actions_)
        assert_array_equal(mdp.q_, plain.q_)
        score = mdp.score(log.X, log.y, actions=items)
        assert score == plain.score(log.X, log.y, actions=labels)
    river = make_riverswim()
    named = HalpernMDPSolver().fit_mdp(river.P, river.R, actions=list(river.actions))
    assert_array_equal(named.policy_, "swim")
    mixed = HalpernMDPSolver().fit_mdp(river.P, river.R, actions=[np.str_("a"), "b"])
    assert_array_equal(mixed.actions_, ["a", "b"])


def test_integers_as_labels_are_not_rounded():
    labels = [2**53, 2**53 + 1, 2**53 + 2]
    mdp = HalpernMDPSolver().fit([[0], [1], [0]], [0.0, 1, 2], actions=labels)
    assert mdp.actions_.tolist() == labels


# ------------------------------------------------------------------------- the codes


class Codes(BaseEstimator):
    """A transformer by what it makes of the first column."""

    def __init__(self, coded):
        self.coded = coded

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return self.coded(X[:, 0])


@pytest.mark.parametrize(
    "coded",
    [
        lambda column: column,
        lambda column: column.astype(np.int64) + 2**60,
        lambda column: column.astype(np.uint64) + 2**63,
        lambda column: [f"place {place:.0f}" for place in column],
        lambda column: np.where(column == 0, np.nan, column)[:, None],
        lambda column: np.where(column == 0, np.nan, column).astype(object),
        lambda column: csr_array(column[:, None]),
        lambda column: column[:, None] + 1j,
    ],
)
def test_codes_of_any_kind(coded):
    log = simulate_log(make_riverswim(), 1000, random_state=0)
    columns = {"actions": log.actions, "next_X": log.next_X}
    plain = HalpernMDPSolver().fit(log.X, log.y, **columns)
    mdp = HalpernMDPSolver(discretizer=Codes(coded)).fit(log.X, log.y, **columns)
    assert_array_equal(mdp.q_, plain.q_)
    assert_array_equal(mdp.states_, plain.states_)
    assert_array_equal(mdp.predict_value(log.X), plain.predict_value(log.X))


def as_lists(column):
    lists = np.empty((len(column), 1), dtype=object)
    lists[:, 0] = [[x] for x in column]
    return lists


@pytest.mark.parametrize(
    "coded",
    [
        lambda column: column[:-1],
        lambda column: np.empty((len(column), 0)),
        as_lists,
    ],
)
def test_useless_codes(coded):
    with pytest.raises(ValueError, match="discretizer"):
        HalpernMDPSolver(discretizer=Codes(coded)).fit([[0], [1], [2]], [0.0, 1, 2])


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-160, 1.0, 1e160, 1e200, 1e307])
def test_nearest_at_any_scale(scale):
    rows = scale * np.array([[1.0], [2.0], [3.0]])
    mdp = HalpernMDPSolver().fit(rows, [0.0, 1, 2], actions=[10, 11, 12])
    near = scale * np.array([[2.9], [0.5], [2.2], [1.5], [4.0]])
    assert_array_equal(mdp.predict(near), [12, 10, 11, 10, 12])


def test_zero_has_no_sign_as_a_number_of_a_state():
    river = make_riverswim()
    mdp = HalpernMDPSolver().fit_mdp(river.P, river.R)
    assert_array_equal(mdp.predict([[-0.0], [5.0]]), [1, 1])
    for wrong in (-1.0, 2.5, 6.0):
        with pytest.raises(ValueError, match="none of the 6 states"):
            mdp.predict([[0.0], [wrong]])


def test_index_of_frames_is_no_order():
    log = simulate_log(make_access_control(2), 400, as_frame=True, random_state=0)
    plain = HalpernMDPSolver().fit(
        log.X.to_numpy(),
        log.y.to_numpy(),
        actions=log.actions.to_numpy(),
        next_X=log.next_X.to_numpy(),
        terminal=np.arange(400) % 7 == 0,
    )
    rng = np.random.default_rng(0)
    columns = [
        log.X,
        log.y,
        log.actions,
        log.next_X,
        pd.Series(np.arange(400) % 7 == 0),
    ]
    X, y, actions, next_X, terminal = (
        c.set_axis(rng.permutation(400)) for c in columns
    )
    mdp = HalpernMDPSolver().fit(
        X, y, actions=actions, next_X=next_X.astype(int), terminal=terminal
    )
    assert_array_equal(mdp.q_, plain.q_)


def test_no_more_cells_than_allowed():
    """Five bins for each of two features."""
    X = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2)
    X = np.random.default_rng(0).permutation(X)
    assert HalpernMDPSolver(max_states=25).fit(X).states_.shape == (25, 2)
    with pytest.raises(ValueError, match="in 25 cells .* more than max_states=24"):
        HalpernMDPSolver(max_states=24).fit(X)
    assert HalpernMDPSolver(max_states=100).fit(X).states_.shape == (100, 2)
