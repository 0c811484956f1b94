"""What the functions take."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from skextra.ranking import (
    lapsum,
    lapsum_inverse,
    soft_permutation,
    soft_permutation_loss,
    soft_quantile,
    soft_rank,
    soft_rank_vjp,
    soft_sort,
    soft_sort_vjp,
    soft_topk,
    soft_topk_vjp,
)
from tests.ranking.common import BY_CALL, CALLS, everything

NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).normal(size=(3, 5))
TARGET = np.argsort(np.argsort(X, axis=-1), axis=-1)


@BY_CALL
def test_arrays_of_any_layout(call):
    expected = call(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((6, 10))
    wide[::2, ::2] = X
    unaligned = np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view(np.float64)
    layouts = {
        "list": X.tolist(),
        "tuple": tuple(map(tuple, X)),
        "frozen": frozen,
        "fortran": np.asfortranarray(X),
        "strided": wide[::2, ::2],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
        "swapped": X.astype(">f8"),
        "unaligned": unaligned.reshape(3, 5),
        "pandas": pd.DataFrame(X),
        "polars": pl.DataFrame(X),
    }
    for name, x in layouts.items():
        found = call(x)
        assert type(found) is type(expected), name
        if name != "swapped":
            assert found.dtype == np.float64
        assert_array_equal(found, expected, err_msg=name)
    assert_array_equal(wide[::2, ::2], X)
    for kind in (pd.Series, pl.Series):
        assert_array_equal(call(kind(X[0])), call(X[0]))
    repeated = np.broadcast_to(X[0], (2, 5))
    assert_array_equal(call(repeated), call(repeated.copy()))


def test_numbers_of_any_kind():
    p = soft_topk(X, 2.0, alpha=0.5)
    for two in (
        2,
        np.int8(2),
        np.float32(2),
        np.array(2),
        [2, 2, 2],
        torch.tensor(2.0),
    ):
        assert_array_equal(soft_topk(X, two, alpha=0.5), p)
    halves = 0.5, np.float16(0.5), np.array(0.5), [0.5], [0.5] * 3, pd.Series([0.5] * 3)
    for half in (*halves, pl.Series([0.5] * 3), np.broadcast_to(0.5, 3)):
        assert_array_equal(soft_topk(X, 2, alpha=half), p)
        found = soft_topk(torch.tensor(X), 2, alpha=half)
        assert_array_equal(found, p)
    assert_array_equal(soft_topk(X, True), soft_topk(X, 1))
    x = torch.tensor(X)
    assert_array_equal(soft_topk(x, np.True_), soft_topk(x, 1))
    for target in (TARGET.tolist(), TARGET.astype(np.uint8), pd.DataFrame(TARGET)):
        for y in (X, x):
            loss = soft_permutation_loss(y, target)
            assert_allclose(loss, soft_permutation_loss(X, TARGET), rtol=1e-14)
    for target in (pl.Series(TARGET[0]), pd.Series(TARGET[0], dtype="Int64")):
        for y in (X[0], x[0]):
            loss = soft_permutation_loss(y, target)
            assert_allclose(loss, soft_permutation_loss(X[0], TARGET[0]), rtol=1e-14)
    grads = soft_rank_vjp(X.tolist(), X)[0]
    for g in (pd.DataFrame(X), pl.DataFrame(X), np.asfortranarray(X)):
        assert_array_equal(soft_rank_vjp(g, X)[0], grads)


def test_broadcasting():
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    alpha, k = np.array([[0.5], [2.0]]), np.array([1.0, 2.5, 3.0])
    p = soft_topk(x, k, alpha=alpha)
    for i in range(2):
        for j in range(3):
            assert_array_equal(p[i, j], soft_topk(x[i, j], k[j], alpha=alpha[i, 0]))
    b = np.array([0.3, 1.2])
    sums = lapsum(b, x, alpha=alpha)
    assert sums.shape == (2, 3, 2)
    assert_array_equal(sums, lapsum(np.broadcast_to(b, (2, 3, 2)), x, alpha=alpha))
    each = b + np.arange(6).reshape(2, 3, 1) / 6
    levels = lapsum_inverse(each, x, alpha=alpha)
    for i in range(2):
        for j in range(3):
            single = lapsum_inverse(each[i, j], x[i, j], alpha=alpha[i, 0])
            assert_array_equal(levels[i, j], single)
    assert lapsum(0.3, x).shape == lapsum(np.array(0.3), x).shape == (2, 3)
    assert_array_equal(lapsum(0.3, x), lapsum([0.3], x)[..., 0])
    assert lapsum_inverse(0.3, x).shape == (2, 3)
    assert isinstance(lapsum(0.3, x[0, 0]), float)
    assert isinstance(soft_quantile(x[0, 0], 0.3), float)
    assert isinstance(soft_topk(x[0, 0], 1, return_threshold=True)[1], float)
    assert isinstance(soft_permutation_loss(x[0, 0], [0, 1, 2, 3]), float)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.uint64])
def test_whole_numbers(dtype):
    x = np.array([[0, 1, 1], [1, 0, 0]]).astype(dtype)
    for call in CALLS.values():
        found = call(x)
        assert found.dtype == np.float64
        assert_array_equal(found, call(x.astype(float)))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3), (0, 1)])
def test_no_lanes(shape):
    x = np.zeros(shape)
    batch = shape[:-1]
    for alpha in (1.0, "scale", np.ones(batch)):
        p, t = soft_topk(x, 1, alpha=alpha, return_threshold=True)
        assert p.shape == shape and t.shape == batch
        assert (
            soft_rank(x, alpha=alpha).shape == soft_sort(x, alpha=alpha).shape == shape
        )
        assert soft_quantile(x, [0.3, 0.5], alpha=alpha).shape == (2, *batch)
        assert soft_permutation(x, alpha=alpha).shape == (*shape, shape[-1])
        target = np.zeros(shape, int)
        losses = soft_permutation_loss(x, target, alpha=alpha, reduction="none")
        assert losses.shape == shape
        assert soft_permutation_loss(x, target, alpha=alpha, reduction="sum") == 0
        assert lapsum([0.0, 1.0], x, alpha=alpha).shape == (*batch, 2)
        assert lapsum_inverse(0.5, x, alpha=alpha).shape == batch
        for vjp in (soft_rank_vjp, soft_sort_vjp):
            grad_x, grad_alpha = vjp(x, x, alpha=alpha)
            assert grad_x.shape == shape and grad_alpha.shape == batch
        assert [r.shape for r in soft_topk_vjp(x, x, 1)] == [shape, batch, batch]
    leaf = torch.zeros(shape, requires_grad=True)
    (soft_topk(leaf, 1).sum() + soft_sort(leaf).sum()).backward()
    assert leaf.grad.shape == shape


def test_no_places():
    for values in ([], np.empty((3, 0))):
        assert lapsum(values, X).shape == lapsum_inverse(values, X).shape == (3, 0)
    assert soft_quantile(X, []).shape == (0, 3)


def test_unchecked_lanes_are_lost_alone():
    x = X.copy()
    x[1, 2] = NAN
    x = np.vstack(
        [x, [1, INF, 0, 0, 0], [-INF, INF, 0, 0, 0], [-1e308, 1e308, 0, 0, 0]]
    )
    lost = np.array([0, 1, 0, 1, 1, 1], bool)
    for flags in ({}, {"largest": False}, {"log": True}, {"alpha": "scale"}):
        for k in (0, 0.5, 2, 5):
            p, t = soft_topk(x, k, check_finite=False, return_threshold=True, **flags)
            assert np.isnan(p[lost]).all() and np.isnan(t[lost]).all()
            known, threshold = soft_topk(X[[0, 2]], k, return_threshold=True, **flags)
            assert_array_equal(p[[0, 2]], known)
            assert_array_equal(t[[0, 2]], threshold)
    assert np.isnan(soft_topk(np.full(70_000, NAN), 3, check_finite=False)).all()


def test_nothing_is_modified():
    rng = np.random.default_rng(2)
    inputs = {
        "x": rng.normal(size=(3, 5)),
        "k": rng.uniform(0, 5, size=3),
        "alpha": rng.uniform(0.1, 1, size=3),
        "g": rng.normal(size=(3, 5)),
        "w": rng.uniform(0, 5, size=(3, 4)),
        "q": rng.uniform(size=4),
        "target": TARGET.copy(),
    }
    before = {name: values.copy() for name, values in inputs.items()}
    x, k, alpha, g, w, q, target = inputs.values()
    for _ in range(2):
        results = [
            *everything(x, k, alpha, target, g),
            soft_quantile(x, q, alpha=alpha),
            lapsum(w, x, alpha=alpha),
            lapsum_inverse(w, x, alpha=alpha),
        ]
        for result in results:
            assert not any(
                np.shares_memory(result, values) for values in inputs.values()
            )
            if isinstance(result, np.ndarray):
                result[...] = 0
        for name, values in inputs.items():
            assert_array_equal(values, before[name])


@pytest.mark.parametrize("unit", [1e-90, 1e-6, 1.0, 1e9, 1e90])
def test_alpha_by_scale(unit):
    x = np.vstack([X, np.ones(5), [1, 1, 1, 1, 2]]) * unit
    x[:2] += 3 * unit
    alpha = x.std(axis=1) / 10
    alpha[3] = 1
    for array in (x, torch.tensor(x)):
        ranks = soft_rank(array, alpha="scale")
        assert_allclose(ranks, soft_rank(x, alpha=alpha), rtol=1e-12)
        values = soft_sort(array.T, alpha="scale", axis=0)
        assert_allclose(values, soft_sort(x, alpha=alpha).T, rtol=1e-12)
    whole = soft_topk(np.array([1, 2, 2, 9]), 2, alpha="scale")
    assert_allclose(whole, soft_topk([1, 2, 2, 9], 2, alpha=np.std([1, 2, 2, 9]) / 10))
    assert_array_equal(soft_rank(np.full(7, 0.1), alpha="scale"), 4)
    for n in range(2, 20):  # the mean of some is not 0.1 to the last digit
        constant = np.full(n, 0.1)
        assert_array_equal(soft_sort(constant, alpha="scale"), soft_sort(constant))


@pytest.mark.parametrize("alpha", [1e-300, 1e-250])
@pytest.mark.parametrize("unit", [1.0, 1e200, 1e250, 1e300])
def test_gaps_of_more_alphas_than_float64_can_hold(alpha, unit):
    """No warning either: infinite exponents have a meaning."""
    x = unit * np.array([3.0, 1.0, 2.0])
    assert_array_equal(soft_topk(x, 1.5, alpha=alpha), [1, 0, 0.5])
    assert_array_equal(soft_topk(x, 2, alpha=alpha), [1, 0, 1])
    assert_array_equal(soft_topk(x, 2, alpha=alpha, largest=False), [0, 1, 1])
    assert_array_equal(soft_rank(x, alpha=alpha), [3, 1, 2])
    assert_array_equal(soft_sort(x, alpha=alpha), np.sort(x))
    assert_array_equal(soft_permutation(x, alpha=alpha), np.eye(3)[[2, 0, 1]])
    assert soft_permutation_loss(x, [2, 0, 1], alpha=alpha) == 0
    assert_array_equal(lapsum(1.5 * unit, x, alpha=alpha), 1)
    assert_array_equal(lapsum_inverse(1, x, alpha=alpha), 1.5 * unit)
