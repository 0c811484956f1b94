"""Models and parameters that are refused, by errors that say where to look."""

import numpy as np
import pytest
from scipy import sparse

from skextra.mdp import HalpernMDPSolver
from tests.mdp import reference
from tests.mdp.common import dense_rows

P, R = reference.riverswim()
ROWS = dense_rows(P)
BY_NEXT = np.random.default_rng(0).normal(size=P.shape)


def fit(P, R, mask=None, **inputs):
    return HalpernMDPSolver().fit_mdp(P, R, mask, **inputs)


def broken(change):
    """P with another row for state 3 and action 1."""
    bad = P.copy()
    bad[1, 3] = change
    return bad


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0, 0, 0.5, 0.4, 0, 0], r"must sum to 1.*state 3, action 1 sum to 0\.9"),
        ([0, 0, 0.5, 0.5 + 1e-7, 0, 0], r"must sum to 1.*state 3, action 1"),
        ([0] * 6, r"must sum to 1.*state 3, action 1 sum to 0"),
        ([0, 0, -0.5, 1, 0.5, 0], r"-0\.5 for state 3, action 1 and next state 2"),
        ([0, 0, 0, 1, np.nan, 0], r"nan for state 3, action 1 and next state 4"),
        ([0, np.inf, 0, 1, 0, 0], r"inf for state 3, action 1 and next state 1"),
    ],
)
def test_bad_probabilities(row, message, as_sparse):
    bad = broken(row)
    if as_sparse:
        bad = [sparse.csr_array(p) for p in bad]
    with pytest.raises(ValueError, match=message):
        fit(bad, R)


def test_more_bad_sums_are_counted():
    bad = P.copy()
    bad[1, 2:5] *= 0.5
    with pytest.raises(ValueError, match=r"state 2, action 1 .*and 2 more sums"):
        fit(bad, R)
    # The action is named by its number also where others are not feasible.
    mask = np.ones((6, 2), dtype=bool)
    mask[:4, 0] = False
    with pytest.raises(ValueError, match="state 2, action 1"):
        fit(bad, R, mask)


@pytest.mark.parametrize(
    "matrices",
    [
        [],
        None,
        3,
        P[:, :5],
        P[:, :, :5],
        [P[0], P[1][:5, :5]],
        [P[0], np.eye(7)],
        ROWS[:11],
        np.zeros((0, 0)),
        np.zeros((2, 0, 0)),
        P[0, 0],
        P[None],
    ],
    ids=range(12),
)
def test_bad_shapes_of_P(matrices):
    with pytest.raises(ValueError, match=r"P must be an array of shape \(n_actions, "):
        fit(matrices, R)


@pytest.mark.parametrize("matrices", [[["a"]], P + 0j])
def test_no_numbers_in_P(matrices):
    with pytest.raises(ValueError, match="must hold real numbers"):
        fit(matrices, R)


@pytest.mark.parametrize(
    "rewards",
    [R.T, R[:5], np.zeros(5), 0.0, np.zeros((6, 1)), BY_NEXT[:1], BY_NEXT[:, :5, :5]]
    + [sparse.csr_array(R), np.zeros((1, 1, 6, 2)), [sparse.csr_array(BY_NEXT[0])]]
    + [dense_rows(BY_NEXT)[:, :5], dense_rows(BY_NEXT)[:11]],
    ids=range(12),
)
def test_bad_shapes_of_R(rewards):
    with pytest.raises(ValueError, match=r"R must .*shape \(n_states, n_actions\)"):
        fit(P, rewards)


@pytest.mark.parametrize(
    "rewards", [[[0.0, 1.0]] * 5 + [[1.0]], [[[0.0]], [1.0]], [{}] * 6, None, "ten"]
)
def test_no_array_in_R(rewards):
    """The error is ours and names R, also for lists of different lengths."""
    with pytest.raises(ValueError, match="R must "):
        fit(P, rewards)


@pytest.mark.parametrize(
    "rewards",
    [
        R + 0j,
        R.astype(str),
        (R + 0j)[:, 0],
        BY_NEXT + 1j,
        dense_rows(BY_NEXT) + 0j,
        [sparse.csr_array(r + 0j) for r in BY_NEXT],
    ],
    ids=range(6),
)
def test_no_numbers_in_R(rewards):
    """In particular, no imaginary part is dropped."""
    with pytest.raises(ValueError, match="R must hold real numbers"):
        fit(P, rewards)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_rewards(bad):
    rewards = R.copy()
    rewards[4, 1] = bad
    with pytest.raises(ValueError, match=f"{bad} for state 4 and action 1"):
        fit(P, rewards)
    by_next = BY_NEXT.copy()
    by_next[1, 4, 4] = bad
    with pytest.raises(ValueError, match="by next state must be finite"):
        fit(P, by_next)


def test_states_without_actions():
    rewards = R.copy()
    rewards[2] = -np.inf
    with pytest.raises(ValueError, match="State 2 has no feasible action"):
        fit(P, rewards)
    mask = np.ones((6, 2), dtype=bool)
    mask[3] = mask[5] = False
    with pytest.raises(ValueError, match="State 3 has no .* in 1 more states"):
        fit(P, R, mask)
    mask = np.ones((6, 2), dtype=bool)
    mask[4, 1] = rewards[4, 0] = False
    rewards[2:5, 0] = -np.inf
    with pytest.raises(ValueError, match="State 2 has no feasible action"):
        fit(P, rewards, mask)


@pytest.mark.parametrize(
    "mask", [np.ones((6, 2)), np.ones((2, 6), bool), np.ones(6, bool), "yes"]
)
def test_bad_masks(mask):
    with pytest.raises(ValueError, match=r"mask must be an array of booleans of shape"):
        fit(P, R, mask)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (np.arange(5), "states must be 6 different rows.* got 5"),
        (np.zeros((0, 2)), "states must be 6 different rows.* got 0|0 sample"),
        ([[0], [1], [2], [3], [4], [4]], "states must be 6 .*not all different"),
        # 0 and -0 are the same number.
        ([[0.0], [1], [2], [3], [4], [-0.0]], "states must be 6 .*not all different"),
        ([[0], [1], [2], [3], [4], [np.nan]], "NaN"),
        (list("abcdef"), "could not convert"),
    ],
)
def test_bad_states(states, message):
    with pytest.raises(ValueError, match=message):
        fit(P, R, states=states)


@pytest.mark.parametrize(
    "labels",
    [["a"], ["a", "a"], [[0, 1], [1, 0]], 3, ["a", 1], np.array([{}, {}], object)],
)
def test_bad_labels(labels):
    with pytest.raises(ValueError, match="actions must be"):
        fit(P, R, actions=labels)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("discount", 0),
        ("discount", 1.0),
        ("discount", -0.5),
        ("discount", "0.9"),
        ("solver", "vi"),
        ("tol", 0),
        ("tol", -1.0),
        ("tol", np.nan),
        ("sample_tol", 0),
        ("delta", 0),
        ("delta", 1),
        ("variant", "best"),
        ("max_iter", 0),
        ("max_iter", 10.0),
        ("max_samples", 0),
        ("multichain", "ignore"),
        ("n_jobs", 1.5),
        ("random_state", "seed"),
        ("discretizer", "kmeans"),
        ("max_states", 0),
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of HalpernMDP"):
        HalpernMDPSolver().set_params(**{name: value}).fit_mdp(P, R)


def test_a_failed_refit_leaves_nothing():
    mdp = fit(P, R)
    with pytest.raises(ValueError, match="must sum to 1"):
        mdp.fit_mdp(P / 2, R)
    left = [k for k in vars(mdp) if k.endswith("_") and not k.endswith("_in_")]
    assert left == [] and not hasattr(mdp, "policy_")
    with pytest.raises(ValueError, match="not fitted"):
        mdp.predict([[0]])
