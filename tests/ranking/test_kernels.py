"""Compiled scans, and the functions on rows that call them, against double sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skextra.ranking import _numba as kernels
from skextra.ranking import _rows
from tests.ranking import reference as ref
from tests.ranking.common import examples

SEEDS = st.integers(0, 10_000)


def random_rows(seed):
    """Return rows of values, some tied, and a temperature for each."""
    rng = np.random.default_rng(seed)
    rows, n = rng.integers(1, 4), rng.integers(1, 12)
    x = rng.normal(size=(rows, n))
    if seed % 3 == 0:
        x = np.round(x)
    return rng, x, 10.0 ** rng.uniform(-1.5, 1, size=rows)


def sorted_rows(x, alpha):
    """Return sorted rows, their decays and the sums of kernels above and below."""
    s = np.sort(x, axis=1)
    decay, above, below = (np.empty_like(x) for _ in range(3))
    kernels.log_decays(s, alpha, decay)
    decay = np.exp(decay)
    kernels.tails(decay, above, below)
    return s, decay, above, below


@examples(30)
@given(SEEDS)
def test_decays_and_tails(seed):
    _, x, alpha = random_rows(seed)
    s, decay, above, below = sorted_rows(x, alpha)
    for r, row in enumerate(s):
        assert_allclose(decay[r], [*np.exp(-np.diff(row) / alpha[r]), 0], rtol=1e-14)
        kernel = np.exp(-np.abs(ref.apart(row, row, alpha[r])))
        up, down = np.triu(kernel, 1).sum(axis=1), np.tril(kernel, -1).sum(axis=1)
        assert_allclose(above[r], up, rtol=1e-13, atol=1e-300)
        assert_allclose(below[r], down, rtol=1e-13, atol=1e-300)


@examples(30)
@given(SEEDS)
def test_first_reached_from_anywhere(seed):
    rng, x, alpha = random_rows(seed)
    s, _, above, below = sorted_rows(x, alpha)
    n = x.shape[1]
    for r, row in enumerate(s):
        sums = np.arange(n) + (1 + above[r] - below[r]) / 2
        assert_allclose(sums, ref.lapsum(row, row, alpha[r]), rtol=1e-13)
        for w in [*rng.uniform(0, n, size=4), 0.0, float(n), sums[0] - 1e-9]:
            expected = np.sum((np.arange(n) - w) + (1 + above[r] - below[r]) / 2 < 0)
            for start in range(n + 1):
                found = kernels._first_reached(above[r], below[r], w, start)
                assert found == expected


@examples(30)
@given(SEEDS)
def test_levels_in_any_order(seed):
    rng, x, alpha = random_rows(seed)
    rows, n = x.shape
    w = rng.uniform(0.01, 0.99, size=(rows, rng.integers(0, 15))) * n
    before = x.copy(), w.copy(), alpha.copy()
    anchor, rest, saved = _rows.levels(w, x, alpha)
    b = anchor + rest
    for r in range(rows):
        assert np.isin(anchor[r], x[r]).all()
        nearest = np.abs(b[r][:, None] - x[r]).min(axis=1, initial=np.inf)
        assert_allclose(np.abs(rest[r]), nearest, rtol=1e-9, atol=1e-12)
        assert_allclose(b[r], ref.inverse(w[r], x[r], alpha[r]), rtol=1e-11, atol=1e-11)
    for old, new in zip(before, (x, w, alpha)):
        assert_array_equal(old, new)
    g = rng.normal(size=w.shape)
    grad_w, grad_x, grad_alpha = _rows.levels_vjp(g, saved)
    for r in range(rows):
        by_w, by_x, by_alpha = ref.levels_vjp(g[r], b[r], x[r], alpha[r])
        assert_allclose(grad_w[r], by_w, rtol=1e-8, atol=1e-12)
        assert_allclose(grad_x[r], by_x, rtol=1e-9, atol=1e-11)
        assert_allclose(grad_alpha[r], by_alpha, rtol=1e-8, atol=1e-9)


@examples(30)
@given(SEEDS)
def test_sums(seed):
    rng, x, alpha = random_rows(seed)
    rows, n = x.shape
    b = rng.normal(size=(rows, rng.integers(0, 9))) * 3
    if b.shape[1]:
        b[:, 0] = x[:, 0]  # at a value itself
    g = rng.normal(size=b.shape)
    value, saved = _rows.lapsum(b, x, alpha)
    grad_b, grad_x, grad_alpha = _rows.lapsum_vjp(g, saved)
    for r in range(rows):
        assert_allclose(value[r], ref.lapsum(b[r], x[r], alpha[r]), rtol=1e-12)
        by_b, by_x, by_alpha = ref.lapsum_jacobians(b[r], x[r], alpha[r])
        assert_allclose(grad_b[r], g[r] @ by_b, rtol=1e-12, atol=1e-13)
        assert_allclose(grad_x[r], g[r] @ by_x, rtol=1e-11, atol=1e-12)
        assert_allclose(grad_alpha[r], g[r] @ by_alpha, rtol=1e-10, atol=1e-11)


@examples(40)
@given(SEEDS, st.sampled_from(["ones", "shared", "own"]))
def test_weighted_ranks(seed, kind):
    rng, x, alpha = random_rows(seed)
    rows, n = x.shape
    weights = {
        "ones": _rows.ONES,
        "shared": rng.uniform(0.1, 3, size=(1, n)),
        "own": rng.uniform(0.1, 3, size=(rows, n)),
    }[kind]
    g = rng.normal(size=x.shape)
    ranks, saved = _rows.rank(x, alpha, weights)
    grad_x, grad_alpha = _rows.rank_vjp(g, saved)
    spread = np.broadcast_to(weights, x.shape)
    for r in range(rows):
        expected = ref.rank(x[r], alpha[r], spread[r])
        assert_allclose(ranks[r], expected, rtol=1e-13)
        by_x, by_alpha = ref.rank_vjp(g[r], x[r], alpha[r], spread[r])
        assert_allclose(grad_x[r], by_x, rtol=1e-10, atol=1e-12)
        assert_allclose(grad_alpha[r], by_alpha, rtol=1e-9, atol=1e-11)


def test_whole_weights_are_repeats():
    rng = np.random.default_rng(0)
    x, counts = rng.normal(size=(1, 8)), rng.integers(1, 4, size=(1, 8))
    alpha = np.array([0.3])
    ranks, _ = _rows.rank(x, alpha, counts.astype(float))
    repeated, _ = _rows.rank(np.repeat(x, counts[0], axis=1), alpha)
    first = np.cumsum(counts) - counts[0]
    assert_allclose(ranks[0], repeated[0][first], rtol=1e-14)


@examples(40)
@given(SEEDS, st.booleans(), st.booleans())
def test_topk(seed, largest, log):
    rng, x, alpha = random_rows(seed)
    rows, n = x.shape
    k = rng.uniform(0.02, 0.98, size=rows) * n
    g, g_t = rng.normal(size=x.shape), rng.normal(size=rows)
    p, t, saved = _rows.topk(x, k, alpha, largest, log)
    both = _rows.topk_vjp(g, g_t, saved)
    alone = _rows.topk_vjp(g, None, saved)
    zero = _rows.topk_vjp(g, np.zeros(rows), saved)
    by_threshold = _rows.topk_vjp(None, g_t, saved)
    no_weights = _rows.topk_vjp(np.zeros_like(x), g_t, saved)
    for one, other in zip((*alone, *by_threshold), (*zero, *no_weights)):
        assert_array_equal(one, other)
    sign = 1 if largest else -1
    for r in range(rows):
        expected, threshold = ref.topk(x[r], k[r], alpha[r], largest)
        assert_allclose(np.exp(p[r]) if log else p[r], expected, rtol=1e-10, atol=1e-12)
        assert_allclose(t[r], threshold, rtol=1e-10, atol=1e-10)
        v = (x[r] - t[r]) / alpha[r]
        slope = ref.density(v) / alpha[r]
        q = slope / slope.sum()
        pull = g[r] / expected if log else g[r]
        by_x = sign * (slope * pull - q * (slope @ pull))
        by_k = q @ pull
        by_alpha = -(x[r] - x[r, 0]) @ by_x / alpha[r]
        tolerance = {"rtol": 1e-8, "atol": 1e-10}
        assert_allclose(alone[0][r], by_x, **tolerance)
        assert_allclose(alone[1][r], by_k, **tolerance)
        assert_allclose(alone[2][r], by_alpha, rtol=1e-8, atol=1e-9)
        assert_allclose(both[0][r], by_x + g_t[r] * q, **tolerance)
        more = -sign * g_t[r] / slope.sum()
        assert_allclose(both[1][r], by_k + more, **tolerance)
        more = g_t[r] * (t[r] - q @ x[r]) / alpha[r]
        assert_allclose(both[2][r], by_alpha + more, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("gap", [30.0, 39.9, 45.0, 300.0, 1500.0, 1e5])
@pytest.mark.parametrize("d", [0.3, -0.3, 1e-9, -1e-9])
def test_wide_gaps(gap, d):
    """On both sides of where an inverse hyperbolic sine would overflow."""
    alpha = 0.5
    x = np.array([[0.0, 0.25, 0.5, 0.5 + gap * alpha, 1.0 + gap * alpha]])
    w = np.array([[3.0 + d, 3.0 - d]])
    anchor, rest, saved = _rows.levels(w, x, np.array([alpha]))
    with ref.mp.workdps(60):
        exact = [
            ref.exact_inverse(ref.mpf(v), ref.numbers(x), ref.mpf(alpha)) for v in w[0]
        ]
        rests = [float(b - ref.mpf(a)) for b, a in zip(exact, anchor[0])]
    assert_allclose(rest[0], rests, rtol=1e-13, atol=1e-16 * gap)
    for m in range(2):
        g = np.eye(2)[[m]]
        _, grad_x, _ = _rows.levels_vjp(g, saved)
        with ref.mp.workdps(60):
            far = [-abs(exact[m] - v) / ref.mpf(alpha) for v in ref.numbers(x)]
            kernel = [ref.mp.exp(u - max(far)) for u in far]
            q = [float(v / sum(kernel)) for v in kernel]
        assert_allclose(grad_x[0], q, rtol=1e-12 * gap, atol=1e-300)


@pytest.mark.parametrize("gap", [20.0, 680.0, 695.0, 715.0, 730.0, 744.0, 2000.0])
@pytest.mark.parametrize("flip", [False, True])
def test_whole_levels_lie_amid_gaps(gap, flip):
    """Whether or not the kernel of the gap underflows."""
    alpha = 0.5
    low, high = np.array([0.0, 0.25, 0.5]), 0.5 + gap * alpha + np.array([0.0, 0.75])
    mass_low, mass_high = np.exp((low - 0.5) / alpha), np.exp((high[0] - high) / alpha)
    lean = alpha * np.log(mass_low.sum() / mass_high.sum()) / 2
    expected = (0.5 + high[0]) / 2 + lean
    x = np.concatenate([low, high])
    x, w, expected = (-x, 2.0, -expected) if flip else (x, 3.0, expected)
    rows = np.ascontiguousarray(x[None])
    anchor, rest, saved = _rows.levels(np.array([[w]]), rows, np.array([alpha]))
    assert_allclose(anchor + rest, expected, rtol=1e-14)
    _, grad_x, grad_alpha = _rows.levels_vjp(np.ones((1, 1)), saved)
    # The masses of the two sides are one: each has half of the gradient.
    shares = (
        np.concatenate([mass_low / mass_low.sum(), mass_high / mass_high.sum()]) / 2
    )
    assert_allclose(grad_x[0], shares, rtol=1e-13)
    assert_allclose(grad_alpha[0], (expected - shares @ x) / alpha, 1e-12, 1e-11)


def test_inner_products_from_a_pivot():
    x, grad = np.array([[1.0, 2.0], [5.0, -1.0]]), np.array([[1.0, 3.0], [0.5, 2.0]])
    out = np.empty(2)
    kernels.inner(x, np.array([1.0, 2.0]), grad, out)
    assert_array_equal(out, [3.0, 1.5 - 6.0])


def test_slope_at_a_level_in_a_wide_gap():
    """It is more than float64 can hold, unless nothing asks for it."""
    x, w = np.array([[0.0, 1.0, 2001.0]]), np.array([[2.0, 1.5]])
    for g, expected in ((0.0, 0.0), (1.0, np.inf)):
        *_, saved = _rows.levels(w, x, np.ones(1))
        grad_w, grad_x, grad_alpha = _rows.levels_vjp(np.array([[g, 1.0]]), saved)
        assert grad_w[0, 0] == expected
        assert np.isfinite(grad_w[0, 1])
        assert np.isfinite(grad_x).all() and np.isfinite(grad_alpha).all()


def test_one_weight_for_all_of_a_row():
    x, weights = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]), np.ones((2, 1))
    found, saved = _rows.rank(x, np.ones(2), np.repeat(weights, 3, axis=1))
    *_, order, decay = saved
    out = np.empty_like(x)
    # Numbers that would be seen if more than one were read.
    weights = np.array([[1.0, np.nan, np.nan], [1.0, np.nan, np.nan]])[:, :1]
    kernels.ranks(order, decay, weights, out)
    assert_array_equal(out, found)
    expected, _ = _rows.rank_vjp(x, saved)
    kernels.ranks_vjp(x, order, decay, weights, np.ones(2), out)
    assert_array_equal(out, expected)


@pytest.mark.parametrize("gap", [1000.0, 1400.0, 1470.0, 1480.0, 1487.0])
def test_settling_where_weights_underflow(gap):
    """Logarithms keep their digits where the weights have hardly any."""
    x = np.array([[0.0, 1.0, 1.0 + gap, 1.5 + gap]])
    p, t, _ = _rows.topk(x, 2.0, 1.0, log=True)
    up, down = 1 + np.exp(-0.5), 1 + np.exp(-1.0)
    exact = 1 + gap / 2 + (np.log(down) - np.log(up)) / 2
    assert_allclose(t, exact, rtol=1e-15)
    assert_allclose(p[0, :2], x[0, :2] - exact - np.log(2), rtol=1e-15)
