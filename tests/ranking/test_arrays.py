"""Arrays of other namespaces go in and come out, with NumPy's numbers."""

import array_api_strict as xp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skextra.ranking import (
    _arrays,
    _rows,
    soft_permutation_loss,
    soft_rank,
    soft_rank_vjp,
    soft_sort,
    soft_topk,
)
from tests.ranking.common import everything, examples

X = np.random.default_rng(0).normal(size=(2, 4, 3))
TARGET = np.argsort(np.argsort(-X, axis=1), axis=1)
ALPHA = np.random.default_rng(1).uniform(0.2, 2, size=(2, 3))
K = np.random.default_rng(2).uniform(0, 4, size=(2, 3))


@pytest.mark.parametrize("values", [X, X + 1e6, np.round(X)])
def test_everything_equals_numpy(values):
    g = np.cos(X)
    expected = everything(values, K, ALPHA, TARGET, g, axis=1)
    with np.errstate(all="ignore"):
        inputs = [xp.asarray(array) for array in (values, K, ALPHA, TARGET, g)]
        kinds = everything(*inputs, axis=1)
        mixed = everything(inputs[0], K, ALPHA, TARGET, g.tolist(), axis=1)
    for found in (kinds, mixed):
        for one, other in zip(found, expected):
            assert type(one) is type(inputs[0]) and one.dtype == xp.float64
            assert one.shape == np.shape(other)
            # Of x near 1e6, gradients by alpha have fewer digits.
            assert_allclose(np.asarray(one), other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", [xp.float32, xp.float64, xp.int64, xp.uint8, xp.bool])
def test_dtypes(dtype):
    x = xp.astype(xp.asarray([[3.0, 0.0, 2.0], [1.0, 1.0, 0.0]]), dtype)
    out = dtype if xp.isdtype(dtype, "real floating") else xp.float64
    with np.errstate(all="ignore"):
        ranks, weights = soft_rank(x), soft_topk(x, xp.asarray([1, 2]))
    assert ranks.dtype == weights.dtype == out
    wide = np.asarray(x, np.float64)
    assert_allclose(np.asarray(ranks), soft_rank(wide), rtol=1e-6)
    assert_allclose(np.asarray(weights), soft_topk(wide, [1, 2]), rtol=1e-6)


def test_errors():
    x = xp.asarray([[1.0, 2.0]])
    with np.errstate(all="ignore"):
        for bad in (float("nan"), float("inf")):
            with pytest.raises(ValueError, match="NaN or infinity"):
                soft_topk(xp.asarray([1.0, bad]), 1)
            with pytest.raises(ValueError, match="NaN or infinity"):
                soft_sort(xp.asarray([1.0, bad]))
        for function in (soft_rank, soft_sort, lambda x: soft_topk(x, 1)):
            with pytest.raises(ValueError, match="spans more than float64"):
                function(xp.asarray([-1e308, 1e308]))
            with pytest.raises(TypeError, match="x must hold real numbers"):
                function(xp.asarray([1j]))
        with pytest.raises(ValueError, match="k must be between 0 and the 2"):
            soft_topk(x, xp.asarray([2.5]))
        with pytest.raises(ValueError, match="alpha must be from 1e-"):
            soft_rank(x, alpha=xp.asarray(0.0))
        with pytest.raises(ValueError, match="g must have the shape of x"):
            soft_rank_vjp(xp.asarray([1.0, 2.0]), x)
        with pytest.raises(TypeError, match="g must hold real numbers"):
            soft_rank_vjp(xp.asarray([[1j, 2.0]]), x)
        with pytest.raises(TypeError, match="alpha is a torch .* gradient: x must be"):
            soft_rank(x, alpha=torch.tensor(1.0, requires_grad=True))
        with pytest.raises(TypeError, match="target must hold whole numbers"):
            soft_permutation_loss(x, x)


# ------------------------------------------------- the same functions in the two rooms

EXTREMES = [1e-300, 1e-6, 0.1, 1.0, 1e6, 1e300]


@st.composite
def rows(draw):
    """Draw rows of values, tied, far from 0 or in groups, and a temperature for each."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    shape = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    x = rng.normal(size=shape)
    kind = draw(st.sampled_from(["plain", "tied", "offset", "groups", "constant"]))
    x = {
        "plain": x,
        "tied": np.round(x),
        "offset": np.round(x, 3) + 1e6,
        "groups": x / 50 + 40 * rng.integers(3, size=shape),
        "constant": 0 * x + 2,
    }[kind]
    alpha = 10.0 ** rng.uniform(-2, 1, size=shape[0])
    if draw(st.booleans()):
        alpha[0] = draw(st.sampled_from(EXTREMES))
    return rng, np.ascontiguousarray(x), alpha


def rounding(x, alpha):
    """Return how much of a gradient by alpha is lost where sums cancel."""
    return 1e-12 / max(alpha, 1e-140) * (1 + np.ptp(x) / max(alpha, 1e-140))


def close(found, expected, alpha):
    """To rounding of the largest number of a row, in units of alpha."""
    for one, other in zip(found, expected, strict=True):
        one = np.asarray(one)
        assert one.shape == other.shape
        for r in range(len(other)):
            top = np.max(np.abs(other[r]), initial=0)
            if np.isfinite(top):
                atol = 1e-12 * top + 1e-12 / max(alpha[r], 1e-280)
                assert_allclose(one[r], other[r], rtol=1e-10, atol=atol)


@examples(60)
@given(rows(), st.booleans(), st.booleans(), st.booleans())
def test_topk(drawn, largest, log, by_threshold):
    rng, x, alpha = drawn
    n = x.shape[1]
    k = rng.uniform(size=len(x)) * n
    if rng.random() < 0.4:
        k = np.round(k)
    g = rng.normal(size=x.shape)
    inside = (k > 0) & (k < n) & (alpha > 1e-100)
    g_t = rng.normal(size=len(x)) * inside if by_threshold else None
    p, t, saved = _rows.topk(x, k, alpha, largest, log)
    expected = _rows.topk_vjp(g, g_t, saved)
    with np.errstate(all="ignore"):
        arrays = [xp.asarray(array) for array in (x, k, alpha)]
        found_p, found_t, saved = _arrays.topk(*arrays, largest, log)
        g_t = None if g_t is None else xp.asarray(g_t)
        found = _arrays.topk_vjp(xp.asarray(g), g_t, saved)
        nothing = _arrays.topk_vjp(None, g_t, saved)
        zeros = _arrays.topk_vjp(xp.asarray(0 * g), g_t, saved)
    for one, other in zip(nothing, zeros):
        assert_array_equal(np.asarray(one), np.asarray(other))
    assert_allclose(np.asarray(found_p), p, rtol=1e-11, atol=1e-13)
    assert_allclose(np.asarray(found_t), t, rtol=1e-12, atol=1e-12 * np.max(alpha))
    close(found[:1], expected[:1], alpha)
    for one, other in zip(found[1:], expected[1:]):
        one = np.asarray(one)
        for r in np.flatnonzero(np.isfinite(other)):
            scale = rounding(x[r], alpha[r])
            assert_allclose(one[r], other[r], rtol=1e-9, atol=scale)


@examples(40)
@given(rows())
def test_ranks(drawn):
    rng, x, alpha = drawn
    g = rng.normal(size=x.shape)
    ranks, saved = _rows.rank(x, alpha)
    expected = _rows.rank_vjp(g, saved)
    with np.errstate(all="ignore"):
        found_ranks, saved = _arrays.rank(xp.asarray(x), xp.asarray(alpha))
        found = _arrays.rank_vjp(xp.asarray(g), saved)
    assert_allclose(np.asarray(found_ranks), ranks, rtol=1e-13)
    close(found[:1], expected[:1], alpha)
    for r, a in enumerate(alpha):
        scale = rounding(x[r], a)
        assert_allclose(np.asarray(found[1])[r], expected[1][r], rtol=1e-9, atol=scale)


@examples(60)
@given(rows(), st.integers(0, 12), st.booleans())
def test_levels(drawn, m, whole):
    rng, x, alpha = drawn
    n = x.shape[1]
    w = rng.uniform(0.01, 0.99, size=(len(x), m)) * n
    if whole and n > 1:
        w = np.clip(np.round(w), 1, n - 1)
    g = rng.normal(size=w.shape)
    anchor, rest, saved = _rows.levels(w, x, alpha)
    expected = _rows.levels_vjp(g, saved)
    with np.errstate(all="ignore"):
        arrays = [xp.asarray(array) for array in (w, x, alpha)]
        found_anchor, found_rest, saved = _arrays.levels(*arrays)
        found = _arrays.levels_vjp(xp.asarray(g), saved)
    for r, a in enumerate(alpha):
        near = {"rtol": 1e-12, "atol": 1e-12 * (a + np.ptp(x[r]))}
        total = np.asarray(found_anchor)[r] - anchor[r] + np.asarray(found_rest)[r]
        assert_allclose(total, rest[r], **near)
        assert_allclose(np.asarray(found[1])[r], expected[1][r], rtol=1e-9, atol=1e-11)
        for i in (0, 2):
            one, other = np.asarray(found[i])[r], expected[i][r]
            spread = 1e-11 * (1 + np.ptp(x[r]) / a)
            scale = 10 * rounding(x[r], a) * a * a if i == 0 else spread
            known = np.isfinite(other) & (np.abs(other) < 1e290)
            # Whole levels in wide gaps have few digits of their slopes.
            rtol = 1e-9 if a > 0.01 else 1e-3
            assert_allclose(
                np.where(known, one, 0),
                np.where(known, other, 0),
                rtol,
                min(scale, 1e290),
            )


@examples(40)
@given(rows(), st.integers(0, 9))
def test_sums(drawn, m):
    rng, x, alpha = drawn
    b = x[:, :1] + rng.normal(size=(len(x), m)) * 2
    b[:, m // 2 :] = x[:, :1]
    g = rng.normal(size=b.shape)
    value, saved = _rows.lapsum(b, x, alpha)
    with np.errstate(all="ignore"):
        expected = _rows.lapsum_vjp(g, saved)
        arrays = [xp.asarray(array) for array in (b, x, alpha)]
        found_value, saved = _arrays.lapsum(*arrays)
        found = _arrays.lapsum_vjp(xp.asarray(g), saved)
    assert_allclose(np.asarray(found_value), value, rtol=1e-13, atol=1e-300)
    for i in range(2):
        close(found[i : i + 1], expected[i : i + 1], alpha)
    for r, a in enumerate(alpha):
        scale = rounding(x[r], a)
        assert_allclose(np.asarray(found[2])[r], expected[2][r], rtol=1e-9, atol=scale)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 100])
def test_scans_of_any_length(n):
    rng = np.random.default_rng(n)
    decay, values = rng.uniform(size=(2, n)), rng.normal(size=(2, n))
    forth, back = np.zeros((2, n)), np.zeros((2, n))
    for r in range(2):
        for i in range(n):
            forth[r, i] = values[r, i] + (decay[r, i] * forth[r, i - 1] if i else 0)
        for i in reversed(range(n)):
            after = decay[r, i + 1] * back[r, i + 1] if i < n - 1 else 0
            back[r, i] = values[r, i] + after
    arrays = xp.asarray(decay), xp.asarray(values)
    assert_allclose(
        np.asarray(_arrays._scan(xp, *arrays)), forth, rtol=1e-11, atol=1e-14
    )
    found = np.asarray(_arrays._scan_back(xp, *arrays))
    assert_allclose(found, back, rtol=1e-11, atol=1e-14)
    for first in range(n + 1):
        like = xp.zeros((1, 1))
        reached = _arrays._search(xp, lambda i, f=first: i >= f, like, n)
        assert int(reached[0, 0]) == first


def test_unchecked_lanes():
    x = np.array([[1.0, np.nan, 0.0], [3.0, 1.0, 2.0], [np.inf, 1.0, 0.0]])
    for log in (False, True):
        expected = soft_topk(x, 1.5, log=log, check_finite=False, return_threshold=True)
        with np.errstate(all="ignore"):
            found = soft_topk(
                xp.asarray(x), 1.5, log=log, check_finite=False, return_threshold=True
            )
        for one, other in zip(found, expected):
            assert_allclose(np.asarray(one), other, rtol=1e-14)
        assert_allclose(np.isnan(expected[1]), [True, False, True])
