"""Formats of a model that mean the same."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skextra.datasets import make_access_control
from skextra.mdp import HalpernMDPSolver
from tests.mdp import reference
from tests.mdp.common import dense_rows, masked_garnet

P, R = reference.riverswim()
ROWS = dense_rows(P)


def untidy(rows):
    """CSR with unsorted indices, explicit zeros, and entries in two parts."""
    indptr, indices, data = [0], [], []
    for row in rows:
        for j in reversed(range(len(row))):
            indices += [j, j]
            data += [0.25 * row[j], 0.75 * row[j]]
        indptr.append(len(indices))
    shape = (len(rows), len(rows[0]))
    return sparse.csr_array((data, indices, indptr), shape=shape)


FORMATS = {
    "array": P,
    "nested lists": P.tolist(),
    "float32": P.astype(np.float32),
    "fortran": np.asfortranarray(P),
    "list of arrays": [P[0], P[1]],
    "tuple of mixed": (P[0], sparse.csr_array(P[1])),
    "frames": [pd.DataFrame(P[0]), pd.DataFrame(P[1])],
    "csr": [sparse.csr_array(p) for p in P],
    "csr matrix": [sparse.csr_matrix(p) for p in P],
    "csc": [sparse.csc_array(p) for p in P],
    "coo": [sparse.coo_array(p) for p in P],
    "lil": [sparse.lil_array(p) for p in P],
    "rows": ROWS,
    "rows csr": sparse.csr_array(ROWS),
    "rows csc": sparse.csc_matrix(ROWS),
    "rows coo float32": sparse.coo_array(ROWS.astype(np.float32)),
    "untidy": untidy(ROWS),
    "list of untidy": [untidy(p) for p in P],
}


def contents(matrix):
    """All arrays of a matrix, copied; of a list, of each."""
    if isinstance(matrix, list | tuple):
        return [part for m in matrix for part in contents(m)]
    if sparse.issparse(matrix) and matrix.format in ("csr", "csc"):
        return [matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()]
    if sparse.issparse(matrix):
        return [matrix.toarray()]
    return [np.array(matrix)]


def fit(P, R, mask=None, discount=None, **inputs):
    return HalpernMDPSolver(discount, tol=1e-9).fit_mdp(P, R, mask, **inputs)


@pytest.mark.parametrize("name", FORMATS)
def test_formats_of_P(name):
    before = contents(FORMATS[name])
    mdp, plain = fit(FORMATS[name], R), fit(P, R)
    for left, then in zip(contents(FORMATS[name]), before):
        assert_array_equal(left, then)
    rtol = 1e-5 if "float32" in name else 1e-12
    assert_allclose(mdp.gain_, plain.gain_, rtol=rtol)
    assert_array_equal(mdp.policy_, plain.policy_)
    transition = mdp.transition_
    assert isinstance(transition, sparse.csr_array) and transition.shape == (12, 6)
    assert_allclose(transition.toarray(), ROWS, rtol=1e-6)
    assert_allclose(transition.sum(axis=1), 1, rtol=1e-15)
    assert transition.data.dtype == np.float64
    assert transition.nnz == np.count_nonzero(ROWS)
    assert mdp.bias_.dtype == mdp.q_.dtype == np.float64


@pytest.mark.parametrize("dtype", [int, np.int8, bool])
def test_deterministic_models_of_integers(dtype):
    P, R = reference.periodic_cycle()
    for matrices in (P.astype(dtype), [sparse.csr_array(p.astype(dtype)) for p in P]):
        mdp = fit(matrices, R)
        assert_allclose(mdp.gain_, 1.625, rtol=0, atol=1e-9)
        assert mdp.transition_.dtype == np.float64


def test_sums_next_to_one():
    """Within 1e-8 they are made 1; float32 may be off by 1e-5."""
    off = P.copy()
    off[1, 3] *= 1 + 5e-9
    mdp = fit(off, R)
    assert_allclose(mdp.transition_.sum(axis=1), 1, rtol=1e-15)
    assert_allclose(mdp.gain_, reference.EXACT_GAINS["riverswim"], atol=1e-9)
    assert off[1, 3].sum() > 1 + 4e-9
    single = P.astype(np.float32)
    single[1, 3] *= np.float32(1 + 5e-6)
    assert_allclose(fit(single, R).transition_.sum(axis=1), 1, rtol=1e-15)


BY_NEXT = np.random.default_rng(0).normal(size=P.shape)
MEANS = (P * BY_NEXT).sum(axis=2).T


@pytest.mark.parametrize(
    "rewards",
    [
        BY_NEXT,
        BY_NEXT.tolist(),
        list(BY_NEXT),
        [sparse.csr_array(r) for r in BY_NEXT],
        [sparse.coo_array(r) for r in BY_NEXT],
        (sparse.csc_array(BY_NEXT[0]), BY_NEXT[1]),
        sparse.csr_array(dense_rows(BY_NEXT)),
        dense_rows(BY_NEXT),
        dense_rows(BY_NEXT).tolist(),
        pd.DataFrame(dense_rows(BY_NEXT)),
        MEANS,
        MEANS.tolist(),
        pd.DataFrame(MEANS),
    ],
    ids=range(13),
)
def test_formats_of_R(rewards):
    for matrices in (P, sparse.csr_array(ROWS), untidy(ROWS)):
        before = contents(matrices)
        mdp = fit(matrices, rewards)
        assert_allclose(mdp.reward_, MEANS, rtol=1e-12, atol=1e-15)
        for left, then in zip(contents(matrices), before):
            assert_array_equal(left, then)
    gain, _, _ = reference.best_gain(P, MEANS)
    assert_allclose(mdp.gain_, gain, rtol=0, atol=1e-9)


@pytest.mark.parametrize("discount", [None, 0.9])
def test_float32_by_next_state(discount):
    """Means are taken in float64, of probabilities that sum to 1; nothing warns."""
    single = P.astype(np.float32), BY_NEXT.astype(np.float32)
    exact_P = single[0].astype(float)
    exact_P /= exact_P.sum(axis=2, keepdims=True)
    means = (exact_P * single[1]).sum(axis=2).T
    exact = fit(exact_P, means, discount=discount)
    for matrices, rewards in (
        single,
        [dense_rows(each) for each in single],
        [[sparse.csr_array(m) for m in each] for each in single],
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mdp = fit(matrices, rewards, discount=discount)
        assert mdp.reward_.dtype == np.float64
        assert_allclose(mdp.reward_, means, rtol=1e-12, atol=1e-14)
        assert_allclose(mdp.gain_, exact.gain_, rtol=0, atol=2e-9)
        assert_allclose(mdp.gain_, fit(P, MEANS, discount=discount).gain_, atol=1e-6)


def test_rewards_by_next_state_of_few_entries():
    """Sparse rewards name some next states alone: the others earn 0."""
    few = np.where(BY_NEXT > 0.5, BY_NEXT, 0)
    mdp = fit(P, [sparse.csr_array(r) for r in few])
    assert_allclose(mdp.reward_, (P * few).sum(axis=2).T, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dtype", [int, np.float32, np.int8])
def test_rewards_of_states(dtype):
    """(S,): the same for all actions."""
    rewards = np.arange(6).astype(dtype)
    mdp = fit(P, rewards)
    assert_array_equal(mdp.reward_, np.repeat(np.arange(6.0)[:, None], 2, axis=1))
    assert mdp.reward_.dtype == np.float64


def test_three_by_three():
    """Three actions of three states: (A, S, S) is not taken for rows or (S, A)."""
    P, R = masked_garnet(3, 3, 2, 0, 1.0)
    by_next = np.random.default_rng(1).normal(size=(3, 3, 3))
    mdp = fit(P, by_next)
    assert_allclose(mdp.reward_, (P * by_next).sum(axis=2).T, rtol=1e-12)
    assert_allclose(mdp.transition_.toarray(), dense_rows(P))


def test_masks():
    """Masks and -inf mean the same, and garbage in such pairs is not looked at."""
    P, R = masked_garnet(12, 3, 3, 4)
    mask = np.isfinite(R)
    plain = fit(P, R)
    junk_P, junk_R = P.copy(), R.copy()
    for s, a in np.argwhere(~mask):
        junk_P[a, s] = [np.nan, -1.0, 2.0][(s + a) % 3]
        junk_R[s, a] = [np.nan, np.inf, 1e9][(s + a) % 3]
    for given in (
        fit(P, np.where(mask, R, 5.0), mask),
        fit(junk_P, junk_R, mask),
        fit(sparse.csr_array(dense_rows(junk_P)), junk_R, mask.tolist()),
        fit(junk_P, R),
    ):
        assert_array_equal(given.policy_, plain.policy_)
        assert_allclose(given.gain_, plain.gain_, rtol=1e-12)
        assert_array_equal(np.isfinite(given.reward_), mask)
        assert_array_equal(given.reward_[~mask], -np.inf)
        assert_array_equal(given.q_[~mask], -np.inf)
        assert np.isfinite(given.q_[mask]).all()
        rows = given.transition_.toarray().reshape(12, 3, 12)
        assert_array_equal(rows[~mask], 0)
        assert_allclose(rows[mask].sum(axis=1), 1)
    # A mask and -inf together.
    both = mask.copy()
    pairs = np.argwhere(mask.sum(axis=1) > 1)
    both[pairs[0, 0], np.argmax(mask[pairs[0, 0]])] = False
    assert_array_equal(np.isfinite(fit(P, R, both).reward_), both)


def test_labels_and_features():
    model = make_access_control()
    mdp = fit(**model)
    assert_array_equal(mdp.states_, model.states)
    assert_array_equal(mdp.actions_, model.actions)
    assert mdp.n_features_in_ == 2
    order = np.random.default_rng(0).permutation(44)
    X = model.states[order]
    assert_array_equal(mdp.predict(X), mdp.policy_[order])
    assert_array_equal(mdp.predict_value(X), mdp.bias_[order])
    assert_array_equal(mdp.q_values(X), mdp.q_[order])
    assert set(mdp.policy_) == {"accept", "reject"}
    # In units of the standard deviations, 3.16 servers and 2.68 of pay.
    near = [[4.6, 6.9], [-50, 100.0], [3, 3.0], [2.5, 8]]
    same = [[5, 8], [0, 8], [3, 2], [2, 8]]  # of two as near, the first
    assert_array_equal(mdp.predict_value(near), mdp.predict_value(same))
    with pytest.raises(ValueError, match="has 1 features, but"):
        mdp.predict([[1.0]])


def test_scaled_features():
    """Without the scale the second feature alone would choose."""
    states = np.array([[0.0, 0], [1, 1000], [2, 500], [3, 2000], [4, 100], [5, 1500]])
    mdp = fit(P, R, states=states)
    query = np.array([[4.8, 1100.0]])
    scaled = (states - query) / states.std(axis=0)
    nearest = (scaled**2).sum(axis=1).argmin()
    assert nearest != np.abs(states[:, 1] - 1100).argmin()
    assert_array_equal(mdp.predict_value(query), mdp.bias_[[nearest]])


def test_a_constant_feature():
    states = np.column_stack([np.arange(6.0), np.full(6, 3.0)])
    mdp = fit(P, R, states=states)
    assert_array_equal(mdp.predict_value([[2.4, 9.0]]), mdp.bias_[[2]])


@pytest.mark.parametrize("kind", [np.array, list, pd.Series])
def test_states_in_one_column(kind):
    mdp = fit(P, R, states=kind([10, 20, 30, 40, 50, 60]))
    assert_array_equal(mdp.states_.ravel(), [10, 20, 30, 40, 50, 60])
    assert_array_equal(mdp.predict_value([[31.0], [11]]), mdp.bias_[[2, 0]])


def test_states_of_a_frame():
    frame = pd.DataFrame({"place": range(6), "depth": range(6, 0, -1)})
    mdp = fit(P, R, states=frame)
    assert list(mdp.feature_names_in_) == ["place", "depth"]
    assert_array_equal(mdp.predict_value(frame[::-1]), mdp.bias_[::-1])


def test_numbers_stand_for_states():
    mdp = fit(P, R)
    assert_array_equal(mdp.states_, np.arange(6.0)[:, None])
    assert mdp.n_features_in_ == 1
    assert_array_equal(mdp.predict([[5], [0]]), mdp.policy_[[5, 0]])
    assert_array_equal(mdp.actions_, [0, 1])
    assert mdp.score([[0]]) == mdp.gain_interval_[0]
    for unknown in (6, -1, 1.5):
        with pytest.raises(ValueError, match=r"Row 1 of X, .* none of the 6 states"):
            mdp.predict([[0], [unknown]])


def test_labels_of_any_kind():
    for labels in (["left", "right"], np.array([7, 3]), [True, False], [0.5, 2]):
        mdp = fit(P, R, actions=labels)
        assert_array_equal(mdp.policy_, np.asarray(labels)[[1] * 6])
