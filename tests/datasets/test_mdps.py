"""Decision processes from textbooks against independent versions, and their logs."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import chi2, poisson

from skextra.datasets import (
    make_access_control,
    make_forest,
    make_garnet,
    make_inventory,
    make_riverswim,
    simulate_log,
)
from skextra.mdp import HalpernMDPSolver
from tests.mdp import reference

MAKERS = [make_riverswim, make_forest, make_access_control, make_inventory]


@pytest.mark.parametrize("make", MAKERS)
def test_probabilities_and_shapes(make):
    model = make()
    n_actions, n_states, _ = model.P.shape
    assert model.P.shape == (n_actions, n_states, n_states)
    assert model.R.shape == (n_states, n_actions)
    assert len(model.states) == n_states and len(model.actions) == n_actions
    assert (model.P >= 0).all() and np.isfinite(model.R).all()
    assert_allclose(model.P.sum(axis=2), 1, rtol=1e-13)
    if "mask" in model:
        assert model.mask.shape == model.R.shape and model.mask.dtype == bool
        assert model.mask.any(axis=1).all()
    # It unpacks, and is one process.
    mdp = HalpernMDPSolver().fit_mdp(**model)
    assert mdp.converged_
    assert_array_equal(mdp.actions_, model.actions)


def test_riverswim():
    model, (P, R) = make_riverswim(), reference.riverswim()
    assert_allclose(model.P, P)
    assert_array_equal(model.R, R)
    assert list(model.actions) == ["rest", "swim"]
    small = make_riverswim(2)
    assert_allclose(small.P[1], [[0.4, 0.6], [0.4, 0.6]])
    assert_array_equal(small.P[0], [[1, 0], [1, 0]])
    assert make_riverswim(50).P.shape == (2, 50, 50)


@pytest.mark.parametrize("n_states", [2, 3, 10])
def test_forest(n_states):
    for old, cut, fire in ((4.0, 2.0, 0.1), (1.0, 7.0, 0.5), (0, 0, 0), (4, 2, 1)):
        model = make_forest(n_states, old_reward=old, cut_reward=cut, fire=fire)
        P, R = reference.forest(n_states, old, cut, fire)
        assert_allclose(model.P, P)
        assert_array_equal(model.R, R)
    assert list(model.actions) == ["wait", "cut"]


def test_access_control():
    model, (P, R) = make_access_control(), reference.access_control()
    # The reference serves nobody where no server is free; here that isn't feasible.
    assert_array_equal(model.mask[:, 0], True)
    assert_array_equal(model.mask[:, 1], np.arange(44) >= 4)
    feasible = np.broadcast_to(model.mask.T[:, :, None], P.shape)
    assert_allclose(model.P[feasible], P[feasible], rtol=1e-12, atol=1e-15)
    assert_array_equal(model.R[model.mask], R[model.mask])
    assert_array_equal(
        model.states[:6], [[0, 1], [0, 2], [0, 4], [0, 8], [1, 1], [1, 2]]
    )
    mdp = HalpernMDPSolver(tol=1e-9).fit_mdp(**model)
    gain = reference.EXACT_GAINS["access_control"]
    assert_allclose(mdp.gain_, gain, rtol=0, atol=1e-9)


def test_access_control_of_one_server():
    """A customer who pays 3 or 5 takes it, and leaves with probability 0.2."""
    model = make_access_control(1, payments=[5, 3.0], finish=0.2)
    assert_array_equal(model.states, [[0, 5], [0, 3], [1, 5], [1, 3]])
    taken = [0.4, 0.4, 0.1, 0.1]  # in the same step
    assert_allclose(model.P[0], [taken, taken, [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]])
    assert_allclose(model.P[1][2:], [taken, taken])
    assert_array_equal(model.R[2:], [[0, 5], [0, 3]])


def test_inventory():
    """By its law, one stock, order and demand after the other."""
    capacity, mean = 5, 1.7
    model = make_inventory(
        capacity,
        mean_demand=mean,
        price=7.0,
        unit_cost=1.5,
        order_cost=3.0,
        holding_cost=0.25,
    )
    for stock in range(capacity + 1):
        for order in range(capacity + 1):
            assert model.mask[stock, order] == (stock + order <= capacity)
            if stock + order > capacity:
                continue
            row, reward = np.zeros(capacity + 1), -1.5 * order - 3.0 * (order > 0)
            for demand in range(60):
                p = poisson.pmf(demand, mean)
                sold = min(demand, stock + order)
                rest = stock + order - sold
                row[rest] += p
                reward += p * (7.0 * sold - 0.25 * rest)
            assert_allclose(model.P[order, stock], row, rtol=1e-10, atol=1e-14)
            assert_allclose(model.R[stock, order], reward, rtol=1e-10)
    assert_array_equal(model.states, np.arange(6))
    assert_array_equal(model.actions, np.arange(6))


def test_inventory_defaults():
    """An order is put off until little is left, and then is large."""
    mdp = HalpernMDPSolver(tol=1e-8).fit_mdp(**make_inventory())
    orders = mdp.policy_
    assert orders[0] > 10 and orders[-1] == 0
    assert (np.diff(orders) <= 0).all()


def test_garnet():
    model = make_garnet(200, 3, 4, random_state=0)
    assert isinstance(model.P, sparse.csr_array) and model.P.shape == (600, 200)
    assert model.P.has_canonical_format and model.R.shape == (200, 3)
    sizes = np.diff(model.P.indptr)
    assert sizes.max() == 4 and sizes.min() >= 1 and (sizes == 4).mean() > 0.9
    assert_allclose(model.P.sum(axis=1), 1, rtol=1e-14)
    assert (model.P.data > 0).all()
    # Next states are drawn evenly, rewards uniformly from 0 to 1.
    counts = np.bincount(model.P.indices, minlength=200)
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert chi2.ppf(1e-4, 199) < statistic < chi2.ppf(1 - 1e-4, 199)
    assert model.R.min() >= 0 and model.R.max() <= 1
    assert abs(model.R.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 600)
    # Uniform probabilities of four next states: one is Beta(1, 3), of variance 3/80.
    shares = model.P.data[np.repeat(sizes == 4, sizes)]
    assert abs(shares.var() - 3 / 80) < 0.004


def test_garnet_seeds():
    a, b, c = (make_garnet(30, random_state=seed) for seed in (0, 0, 1))
    assert_array_equal(a.P.toarray(), b.P.toarray())
    assert_array_equal(a.R, b.R)
    assert not np.array_equal(a.R, c.R)
    assert make_garnet(1, 1, 3, random_state=0).P.toarray() == pytest.approx(1)


def test_log_follows_the_law():
    """Moves by their probabilities, even feasible actions, and expected rewards."""
    model = make_access_control(2, payments=(1, 2), finish=0.3)
    n = 60_000
    log = simulate_log(model, n, random_state=0)
    assert log.X.shape == log.next_X.shape == (n, 2)
    assert_array_equal(log.X[1:], log.next_X[:-1])
    number = {tuple(row): s for s, row in enumerate(model.states.tolist())}
    s = np.array([number[tuple(row)] for row in log.X.tolist()])
    t = np.array([number[tuple(row)] for row in log.next_X.tolist()])
    a = (log.actions == "accept").astype(int)
    assert model.mask[s, a].all()
    assert_array_equal(log.y, model.R[s, a])
    statistic = freedom = 0
    for i in range(len(model.states)):
        n_actions = model.mask[i].sum()
        for j in np.flatnonzero(model.mask[i]):
            rows = (s == i) & (a == j)
            share = rows.sum() / (s == i).sum()
            spread = np.sqrt(0.25 / (s == i).sum()) if n_actions > 1 else 0
            assert abs(share - 1 / n_actions) <= 5 * spread
            expected = rows.sum() * model.P[j, i]
            counts = np.bincount(t[rows], minlength=len(model.states))
            possible = expected > 0
            assert counts[~possible].sum() == 0
            terms = (counts - expected)[possible] ** 2 / expected[possible]
            statistic += terms.sum()
            freedom += possible.sum() - 1
    assert chi2.ppf(1e-4, freedom) < statistic < chi2.ppf(1 - 1e-4, freedom)


def test_log_of_a_policy():
    model = make_riverswim()
    policy = ["rest", "swim", "swim", "rest", "swim", "swim"]
    log = simulate_log(model, 2000, policy=policy, random_state=0)
    assert_array_equal(log.actions, np.array(policy)[log.X.ravel().astype(int)])
    # A policy that a solver found comes as it is.
    mdp = HalpernMDPSolver().fit_mdp(**model)
    log = simulate_log(model, 60_000, policy=mdp.policy_, random_state=0)
    assert set(log.actions) == {"swim"}
    assert abs(log.y.mean() - mdp.gain_) < 0.05


def test_log_starts_anywhere():
    starts = [
        simulate_log(make_riverswim(), 1, random_state=seed).X[0, 0]
        for seed in range(60)
    ]
    assert set(starts) == set(range(6))


def test_log_seeds_and_frames():
    model = make_access_control()
    log, again = (simulate_log(model, 50, random_state=3) for _ in range(2))
    frame = simulate_log(model, 50, as_frame=True, random_state=3)
    for key in ("X", "y", "actions", "next_X"):
        assert_array_equal(log[key], again[key])
        assert_array_equal(log[key], frame[key])
    assert isinstance(frame.X, pd.DataFrame) and isinstance(frame.next_X, pd.DataFrame)
    assert isinstance(frame.y, pd.Series) and isinstance(frame.actions, pd.Series)
    assert list(frame.X.columns) == list(frame.next_X.columns)
    other = simulate_log(model, 50, random_state=4)
    assert not np.array_equal(log.X, other.X)
    mdp = HalpernMDPSolver().fit(
        frame.X, frame.y, actions=frame.actions, next_X=frame.next_X
    )
    assert list(mdp.feature_names_in_) == list(frame.X.columns)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_riverswim(1), "'n_states' parameter"),
        (lambda: make_riverswim(6.0), "'n_states' parameter"),
        (lambda: make_forest(1), "'n_states' parameter"),
        (lambda: make_forest(fire=1.5), "'fire' parameter"),
        (lambda: make_forest(old_reward="x"), "'old_reward' parameter"),
        (lambda: make_access_control(0), "'n_servers' parameter"),
        (lambda: make_access_control(finish=-0.1), "'finish' parameter"),
        (lambda: make_access_control(payments=[]), "payments must be a list"),
        (lambda: make_access_control(payments=[1, np.nan]), "payments must be a list"),
        (lambda: make_access_control(payments=[[1, 2]]), "payments must be a list"),
        (lambda: make_access_control(payments=[1, 1.0]), "payments must be different"),
        (lambda: make_inventory(0), "'capacity' parameter"),
        (lambda: make_inventory(mean_demand=0), "'mean_demand' parameter"),
        (lambda: make_inventory(price=-1), "'price' parameter"),
        (lambda: make_garnet(0), "'n_states' parameter"),
        (lambda: make_garnet(3, 0), "'n_actions' parameter"),
        (lambda: make_garnet(3, 2, 0), "'n_successors' parameter"),
        (lambda: make_garnet(random_state="a"), "'random_state' parameter"),
        (lambda: simulate_log(make_riverswim(), 0), "'n_steps' parameter"),
        (lambda: simulate_log(3, 5), "'model' parameter"),
        (lambda: simulate_log(make_riverswim(), 5, as_frame="yes"), "'as_frame' param"),
        (
            lambda: simulate_log(make_garnet(5, random_state=0), 5),
            r"model\.P must .*\(n_actions, n_states, n_states\)",
        ),
        (
            lambda: simulate_log(make_riverswim(), 5, policy=["rest"] * 5),
            "policy must name a feasible action for each of the 6 states",
        ),
        (
            lambda: simulate_log(make_riverswim(), 5, policy=["fly"] * 6),
            "policy must name a feasible action",
        ),
        (
            lambda: simulate_log(make_access_control(), 5, policy=["accept"] * 44),
            "policy must name a feasible action",
        ),
    ],
    ids=range(25),
)
def test_bad_parameters(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "made, gain",
    [
        (make_riverswim(2), 0.6),
        (make_forest(4, fire=0), 4.0),
        (make_forest(4, fire=1), 0.0),
        (make_access_control(3, finish=0), 0.0),
        (make_access_control(3, finish=1), 3.75),
        (make_access_control(2, payments=[-2, -1]), 0.0),
        (make_access_control(2, payments=[0]), 0.0),
        # 0 is in stock: order 20, sell them all.
        (make_inventory(mean_demand=1e6), 52.0),
        (make_inventory(1), 0.0),
    ],
)
def test_datasets_at_their_borders(made, gain):
    assert_allclose(HalpernMDPSolver().fit_mdp(**made).gain_, gain, rtol=0, atol=1e-6)


def test_policies_to_log():
    river = make_riverswim()
    for policy in (["swim"] * 6, np.array(["swim"] * 6, object), ("swim",) * 6):
        log = simulate_log(river, 20, policy=policy, random_state=0)
        assert_array_equal(log.actions, "swim")
    for policy in (["swim"] * 5, ["sink"] * 6, [1] * 6, [["swim"]] * 6):
        with pytest.raises(ValueError, match="policy must name a feasible action"):
            simulate_log(river, 20, policy=policy)
    # What is not feasible is not done.
    R = np.where(river.R > 0.5, river.R, -np.inf)
    R[:, 0] = 0
    log = simulate_log({**river, "R": R}, 200, random_state=0)
    assert np.isfinite(log.y).all()
