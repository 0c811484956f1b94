"""The kinds of array that the functions take."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from skextra.uncertainty import (
    bald,
    batch_bald,
    batch_eur,
    epig,
    optimal_action,
    predictive_uncertainty,
    uncertainty_decomposition,
)
from tests.uncertainty.common import beliefs

P = beliefs(4, 6, 3, seed=1)
TWO = beliefs(3, 6, 2, seed=2)


def test_kinds_of_arrays():
    flat = P[:, 1]
    expected = predictive_uncertainty(flat)
    columns = {f"c{j}": flat[:, j] for j in range(3)}
    for same in (
        flat.tolist(),
        pd.DataFrame(columns),
        pd.DataFrame(columns).convert_dtypes(),
        pl.DataFrame(columns),
        torch.tensor(flat),
        np.asfortranarray(flat),
        flat.astype(np.longdouble),
    ):
        got = predictive_uncertainty(same)
        assert isinstance(got, np.ndarray) and got.dtype == np.float64
        assert_allclose(got, expected, rtol=1e-15)
    assert_allclose(bald(P.tolist()), bald(P), rtol=1e-15)
    assert_allclose(epig(list(P), torch.tensor(TWO)), epig(P, TWO), rtol=1e-15)
    weights = np.arange(1, 7)
    for same in (weights.tolist(), pd.Series(weights), torch.tensor(weights)):
        assert_allclose(bald(P, weights=same), bald(P, weights=weights), rtol=1e-15)
    assert_array_equal(
        optimal_action(flat, "absolute_error", outcomes=pd.Series([3, 1, 2])),
        optimal_action(flat, "absolute_error", outcomes=[3.0, 1.0, 2.0]),
    )
    costs = np.arange(6.0).reshape(2, 3)
    assert_array_equal(
        predictive_uncertainty(flat, "cost", cost_matrix=pd.DataFrame(costs)),
        predictive_uncertainty(flat, "cost", cost_matrix=costs),
    )
    onehot = np.eye(3, dtype=int)
    assert_array_equal(predictive_uncertainty(onehot), 0)
    assert_array_equal(predictive_uncertainty(onehot.astype(bool)), 0)


def test_narrow_floats():
    rng = np.random.default_rng(0)
    raw = rng.random((5, 4, 1000)).astype(np.float32)
    p = raw / raw.sum(axis=-1, keepdims=True)
    assert p.dtype == np.float32
    wide = p.astype(float)
    wide /= wide.sum(axis=-1, keepdims=True)
    got = bald(p)
    assert got.dtype == np.float64
    assert_allclose(got, bald(wide), rtol=1e-12)
    assert_allclose(predictive_uncertainty(p[:, 0]), predictive_uncertainty(wide[:, 0]))
    off = p.copy()
    off[0, 0, 0] += 5e-5
    bald(off)
    off[0, 0, 0] += 1e-3
    with pytest.raises(ValueError, match="must sum to 1"):
        bald(off)
    with pytest.raises(ValueError, match="must sum to 1"):
        bald(wide * (1 + 5e-6))


def test_rows_are_scaled_to_one():
    p = P.copy()
    p[0] *= 1 + 9e-7
    assert_allclose(bald(p), bald(P), atol=1e-14)
    assert_allclose(predictive_uncertainty(p), predictive_uncertainty(P), atol=1e-14)
    assert_array_equal(p[1:], P[1:])
    same = np.array([[1 + 5e-13, 0.0], [1 - 5e-13, 0.0]])
    for loss in ("log_loss", "brier", "zero_one"):
        assert_allclose(predictive_uncertainty(same, loss), 0, atol=1e-12)


def test_a_fault_in_a_late_block_is_found():
    p = np.tile(P, (60000, 1, 1))  # some 35 MiB
    for value, message in ((-0.1, "negative"), (0.9, "sum to 1")):
        p[-1, -1, -1] = value
        with pytest.raises(ValueError, match=message):
            bald(p)


def test_inputs_stay_as_they_are():
    p = P.copy()
    p.setflags(write=False)
    for call in (
        predictive_uncertainty,
        optimal_action,
        bald,
        lambda p: uncertainty_decomposition(p, "brier", return_se=True),
        lambda p: uncertainty_decomposition(p, bias_correction="jackknife"),
        lambda p: batch_bald(p, 3),
        lambda p: batch_bald(p, 3, method="sampled", random_state=0),
        lambda p: batch_eur(p, p, 2),
    ):
        one, other = call(p), call(np.asfortranarray(p[::-1])[::-1])
        if isinstance(one, dict):
            one, other = one.total, other.total
        assert_allclose(one, other, rtol=1e-13)
    assert_array_equal(p, P)
