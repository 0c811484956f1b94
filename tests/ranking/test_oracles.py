"""Values and gradients against 60 digits, closed forms and identities."""

import math

import numpy as np
import pytest
from mpmath import mpf, workdps
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from scipy.stats import rankdata

from skextra.ranking import (
    _rows,
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
from tests.ranking import reference as ref

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=6)
# Values, alpha and k: spread, tied, far from 0, sharp, flat, and of odd units.
CASES = {
    "plain": (NORMAL, 0.7, 2.3),
    "whole k": (NORMAL, 0.3, 2.0),
    "sharp": (NORMAL, 0.02, 3.6),
    "very sharp": (NORMAL, 1e-6, 1.5),
    "flat": (NORMAL, 1e4, 4.0),
    "very flat": (NORMAL, 1e150, 4.2),
    "ties": (np.array([1.0, 1.0, 0.0, 2.0, 1.0, 0.0]), 0.5, 2.5),
    "constant": (np.full(5, -3.0), 0.5, 1.25),
    "offset": (1e6 + NORMAL, 0.05, 2.0),
    "offset, sharp": (1e6 + np.round(NORMAL, 5), 1e-6, 3.4),
    "two groups": (np.array([0, 0.1, 0.2, 50, 50.1]), 1.0, 2.0),
    "little mass": (NORMAL, 0.7, 1e-9),
    "nearly all": (NORMAL, 0.7, 6 - 1e-9),
    "tiny": (1e-200 * NORMAL, 3e-201, 2.3),
    "huge": (1e200 * NORMAL, 3e199, 2.3),
    "one": (np.array([2.0]), 0.7, 0.3),
    "two": (np.array([2.0, -1.0]), 0.9, 1.0),
}
SHARP = "very sharp", "offset, sharp"  # gaps so wide that 60 digits see no level there
BY_CASE = pytest.mark.parametrize("case", CASES)


def close_in_units(found, exact, alpha, anchor, digits=2e-15):
    """Levels to rounding, in units of alpha or of the values themselves."""
    scale = alpha * digits * 10 + 4e-16 * np.max(np.abs(anchor))
    assert_allclose(found, ref.as_floats(exact), rtol=1e-15, atol=scale)


def exact_inputs(x, alpha, *more):
    return ref.numbers(x), mpf(float(alpha)), *more


def check_gradient(found, exact, alpha, relative=1e-10):
    """Ten digits, unless sums cancel: then rounding in units of alpha."""
    found, exact = np.asarray(found), ref.as_floats(exact)
    seen = np.abs(exact) > 1e-200
    scale = np.max(np.abs(exact), initial=0) * 1e-14 + 2e-14 / alpha
    assert np.all(np.abs(found - exact)[seen] <= relative * np.abs(exact)[seen] + scale)
    assert np.all(np.abs(found)[~seen] <= scale + 1e-200)


# ------------------------------------------------------------------------- the values


@BY_CASE
@pytest.mark.parametrize("largest", [True, False])
def test_topk(case, largest):
    x, alpha, k = CASES[case]
    settings = {"alpha": alpha, "largest": largest}
    p, t = soft_topk(x, k, return_threshold=True, **settings)
    log_p = soft_topk(x, k, log=True, **settings)
    with workdps(ref.DIGITS):
        xs, a = exact_inputs(x, alpha)
        exact, threshold = ref.exact_topk(xs, mpf(k), a, largest)
        logs = [ref.mp.log(value) for value in exact]
    assert_allclose(p, ref.as_floats(exact), rtol=1e-13, atol=1e-15)
    # Those near 0 have all their digits too.
    assert_allclose(log_p, ref.as_floats(logs), rtol=1e-12, atol=1e-300)
    close_in_units(t, threshold, alpha, x)
    assert_allclose(p.sum(), k, rtol=1e-14)
    assert_allclose(logsumexp(log_p), np.log(k), atol=1e-14)


@BY_CASE
def test_ranks_levels_and_sums(case):
    x, alpha, _ = CASES[case]
    n = len(x)
    q = np.array([0.45, 1e-3, 0.999])
    b = np.array([x[0], x.max() + alpha, x.min() - 2 * alpha, np.median(x), x.mean()])
    with workdps(ref.DIGITS):
        xs, a = exact_inputs(x, alpha)
        ranks, values = ref.exact_rank(xs, a), ref.exact_sort(xs, a)
        quantiles = [ref.exact_inverse(mpf(float(w)), xs, a) for w in n * q]
        sums = [ref.exact_lapsum(place, xs, a) for place in ref.numbers(b)]
        P = None if case in SHARP else ref.exact_permutation(xs, a)
    assert_allclose(soft_rank(x, alpha=alpha), ref.as_floats(ranks), rtol=1e-14)
    down = n + 1 - ref.as_floats(ranks)
    assert_allclose(soft_rank(x, alpha=alpha, descending=True), down, rtol=1e-14)
    close_in_units(soft_sort(x, alpha=alpha), values, alpha, x)
    down = soft_sort(x, alpha=alpha, descending=True)
    close_in_units(down, values[::-1], alpha, x)
    close_in_units(soft_quantile(x, q, alpha=alpha), quantiles, alpha, x)
    close_in_units(lapsum_inverse(n * q, x, alpha=alpha), quantiles, alpha, x)
    assert_allclose(lapsum(b, x, alpha=alpha), ref.as_floats(sums), rtol=1e-13)
    found = soft_permutation(x, alpha=alpha)
    expected = np.eye(n)[np.argsort(np.argsort(x))] if P is None else ref.as_floats(P)
    assert_allclose(found, expected, rtol=0, atol=2e-14)


@pytest.mark.parametrize("case", [case for case in CASES if case not in SHARP])
def test_loss(case):
    x, alpha, _ = CASES[case]
    targets = [
        np.argsort(np.argsort(x, kind="stable")),
        np.argsort(np.argsort(-x, kind="stable")),
        np.arange(len(x)),
    ]
    for target in targets:
        with workdps(ref.DIGITS):
            xs, a = exact_inputs(x, alpha)
            logs = ref.exact_log_permutation(xs, a, target)
        found = soft_permutation_loss(x, target, alpha=alpha, reduction="none")
        assert_allclose(found, -ref.as_floats(logs), rtol=1e-12, atol=2e-15)
        for reduction, expected in (("mean", found.mean()), ("sum", found.sum())):
            value = soft_permutation_loss(x, target, alpha=alpha, reduction=reduction)
            assert_allclose(value, expected, rtol=1e-14)


# ---------------------------------------------------------------------- the gradients

SMOOTH = [case for case in CASES if case not in ("very flat", "tiny", "huge")]
BY_SMOOTH = pytest.mark.parametrize("case", SMOOTH)


def cotangents(x):
    return np.random.default_rng(1).normal(size=len(x))


@BY_SMOOTH
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("log", [False, True])
def test_topk_gradients(case, largest, log):
    x, alpha, k = CASES[case]
    g = cotangents(x)
    found = soft_topk_vjp(g, x, k, alpha=alpha, largest=largest, log=log)

    def loss(x, k, alpha):
        p, _ = ref.exact_topk(x, k[0], alpha[0], largest)
        return ref.dot(g.tolist(), [ref.mp.log(v) for v in p] if log else p)

    with workdps(ref.DIGITS):
        xs, a = exact_inputs(x, alpha)
        step = min(mpf(10) ** -18, a * mpf(10) ** -15, mpf(k) * mpf(10) ** -12)
        exact = ref.slopes(loss, xs, [mpf(k)], [a], step=step)
    check_gradient(found[0], exact[0], alpha)
    assert_allclose(found[1], ref.as_floats(exact[1][0]), rtol=1e-10, atol=1e-13)
    check_gradient(found[2], exact[2][0], alpha)
    assert_allclose((x - x[0]) @ found[0], -alpha * found[2], rtol=1e-9, atol=1e-13)


@BY_SMOOTH
def test_threshold_gradients(case):
    x, alpha, k = CASES[case]
    rows, ones = x[None].astype(float), np.ones(1)
    for largest in (True, False):
        *_, saved = _rows.topk(rows, k * ones, alpha * ones, largest)
        found = _rows.topk_vjp(np.zeros_like(rows), ones, saved)

        def loss(x, k, alpha, largest=largest):
            return ref.exact_topk(x, k[0], alpha[0], largest)[1]

        with workdps(ref.DIGITS):
            xs, a = exact_inputs(x, alpha)
            step = min(mpf(10) ** -18, a * mpf(10) ** -15, mpf(k) * mpf(10) ** -12)
            exact = ref.slopes(loss, xs, [mpf(k)], [a], step=step)
        assert_allclose(found[0][0], ref.as_floats(exact[0]), 1e-10, atol=1e-14)
        assert_allclose(found[1], ref.as_floats(exact[1]), 1e-10)
        check_gradient(found[2], exact[2], alpha)
        assert_allclose(found[0].sum(), 1, rtol=1e-14)


@BY_SMOOTH
def test_rank_and_sort_gradients(case):
    x, alpha, _ = CASES[case]
    g = cotangents(x)
    vjps = {soft_rank_vjp: ref.exact_rank, soft_sort_vjp: ref.exact_sort}
    for vjp, function in vjps.items():

        def loss(x, alpha, function=function):
            return ref.dot(g.tolist(), function(x, alpha[0]))

        with workdps(ref.DIGITS):
            xs, a = exact_inputs(x, alpha)
            step = min(mpf(10) ** -18, a * mpf(10) ** -15)
            exact_x, (exact_alpha,) = ref.slopes(loss, xs, [a], step=step)
        grad_x, grad_alpha = vjp(g, x, alpha=alpha)
        check_gradient(grad_x, exact_x, alpha)
        spread = 1e-13 * max(1, np.ptp(x) / alpha)
        assert_allclose(grad_alpha, ref.as_floats(exact_alpha), rtol=1e-9, atol=spread)
        flipped = (-g if vjp is soft_rank_vjp else g[::-1]).copy()
        assert_array_equal(vjp(flipped, x, alpha=alpha, descending=True)[0], grad_x)
        if vjp is soft_rank_vjp:
            assert_allclose((x - x[0]) @ grad_x, -alpha * grad_alpha, 1e-9, 1e-13)


@pytest.mark.parametrize("case", ["plain", "ties", "offset", "one", "two groups"])
def test_level_and_sum_gradients(case):
    x, alpha, _ = CASES[case]
    n = len(x)
    rows, ones = x[None].astype(float), np.ones(1)
    w = n * np.array([[0.61, 0.03, 0.97]])
    b = x.mean() + alpha * np.array([[0.31, -2.3, 1.7]])
    g = np.array([[0.3, -1.2, 0.8]])
    anchor, rest, saved = _rows.levels(w, rows, alpha * ones)
    by_levels = _rows.levels_vjp(g, saved)
    _, saved = _rows.lapsum(b, rows, alpha * ones)
    by_sums = _rows.lapsum_vjp(g, saved)

    def levels(w, x, alpha):
        return ref.dot(
            g.ravel().tolist(), [ref.exact_inverse(v, x, alpha[0]) for v in w]
        )

    def sums(b, x, alpha):
        return ref.dot(
            g.ravel().tolist(), [ref.exact_lapsum(v, x, alpha[0]) for v in b]
        )

    with workdps(ref.DIGITS):
        xs, a = exact_inputs(x, alpha)
        pairs = [
            (by_levels, ref.slopes(levels, ref.numbers(w), xs, [a])),
            (by_sums, ref.slopes(sums, ref.numbers(b), xs, [a])),
        ]
    for found, exact in pairs:
        for one, other in zip(found, exact):
            check_gradient(one.ravel(), other, alpha)


# -------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("alpha", [1e-300, 1e-6, 1.0, 1e6, 1e300])
@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("value", [0.0, 1.0, -1e6])
def test_constant_vectors(alpha, n, value):
    x = np.full(n, value)
    for k in (0.0, 0.3, n / 2, float(n)):
        for largest in (True, False):
            p = soft_topk(x, k, alpha=alpha, largest=largest)
            assert_allclose(p, k / n, rtol=1e-14)
    assert_allclose(soft_rank(x, alpha=alpha), (n + 1) / 2, rtol=1e-15)
    assert_allclose(soft_permutation(x, alpha=alpha), 1 / n, rtol=2e-14)
    i = np.arange(n)
    low = np.log((2 * i + 1) / n)
    mirrored = np.where(2 * i + 1 < n, low, -low[::-1])
    assert_allclose(soft_sort(x, alpha=alpha), value + alpha * mirrored, rtol=1e-14)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 30.0, 1e8])
@pytest.mark.parametrize("d", [0.0, 1e-3, 1.0, 20.0])
def test_two_points(d, alpha):
    p, t = soft_topk([0.0, d], 1, alpha=alpha, return_threshold=True)
    low = np.exp(-d / (2 * alpha)) / 2
    assert_allclose(p, [low, 1 - low], rtol=1e-14)
    assert_allclose(t, d / 2, atol=1e-15 * max(d, alpha))
    grad_x, grad_k, grad_alpha = soft_topk_vjp([1.0, 0.0], [0.0, d], 1, alpha=alpha)
    assert_allclose(grad_x, low / (2 * alpha) * np.array([1, -1]), rtol=1e-13)
    assert_allclose(grad_k, 0.5, rtol=1e-14)
    assert_allclose(grad_alpha, low * d / (2 * alpha**2), rtol=1e-13)


def test_one_value():
    for x in (3.0, -1e6, 0.0):
        for alpha in (1e-9, 1.0, 1e9):
            assert soft_sort([x], alpha=alpha) == x
            assert soft_rank([x], alpha=alpha) == 1
            assert soft_permutation([x], alpha=alpha) == 1
            assert soft_permutation_loss([x], [0], alpha=alpha) == 0
            for k in (0.0, 0.25, 0.5, 0.9, 1.0):
                assert_allclose(soft_topk([x], k, alpha=alpha), k, rtol=1e-15)
            found = soft_topk_vjp([2.0], [x], 0.25, alpha=alpha)
            assert_allclose(np.hstack(found), [0, 2, 0], atol=1e-15)
            for vjp, by_x in ((soft_sort_vjp, 2), (soft_rank_vjp, 0)):
                assert_array_equal(np.hstack(vjp([2.0], [x], alpha=alpha)), [by_x, 0])


@pytest.mark.parametrize("scale", [1e-250, 1e-6, 1.0, 1e6, 1e250])
def test_hard_limits(scale):
    rng = np.random.default_rng(3)
    x = scale * rng.permutation(np.arange(20.0)) + scale * 5
    alpha = 1e-6 * scale
    p = soft_topk(x, 7.25, alpha=alpha)
    expected = np.zeros(20)
    expected[np.argsort(-x)[:8]] = [1] * 7 + [0.25]
    assert_allclose(p, expected, atol=1e-12)
    p = soft_topk(x, 7.25, alpha=alpha, largest=False)
    expected = np.zeros(20)
    expected[np.argsort(x)[:8]] = [1] * 7 + [0.25]
    assert_allclose(p, expected, atol=1e-12)
    assert_array_equal(soft_rank(x, alpha=alpha), rankdata(x))
    assert_array_equal(soft_rank(x, alpha=alpha, descending=True), rankdata(-x))
    assert_allclose(soft_sort(x, alpha=alpha), np.sort(x), rtol=0, atol=1e-4 * scale)
    assert_allclose(soft_quantile(x, 0.5, alpha=alpha), np.median(x), rtol=1e-14)
    P = soft_permutation(x, alpha=alpha)
    assert_allclose(P, np.eye(20)[np.argsort(np.argsort(x))], atol=1e-12)
    tied = np.array([1, 2, 2, 3, 3, 3, 0]) * scale
    assert_allclose(soft_rank(tied, alpha=alpha), rankdata(tied), rtol=1e-15)


@pytest.mark.parametrize("alpha", [1e-300, 1e-250, 1e-100, 1e100, 1e250, 1e300])
def test_any_temperature(alpha):
    x = NORMAL
    for k in (0.5, 1.0, 2.7, 5.0):
        for largest in (True, False):
            settings = {"alpha": alpha, "largest": largest}
            p, t = soft_topk(x, k, return_threshold=True, **settings)
            assert_allclose(p.sum(), k, rtol=1e-14)
            assert np.isfinite(t)
            assert_allclose(
                np.exp(soft_topk(x, k, log=True, **settings)),
                p,
                rtol=1e-13,
                atol=1e-300,
            )
            if alpha > 1:
                assert_allclose(p, k / 6, rtol=1e-13)
            else:
                expected = np.clip(
                    k - np.argsort(np.argsort(-x if largest else x)), 0, 1
                )
                assert_allclose(p, expected, atol=1e-12)
            for log in (False, True):
                grads = soft_topk_vjp(cotangents(x), x, k, log=log, **settings)
                assert np.isfinite(grads[0]).all()
                # x / alpha ** 2 may be more than float64 can hold, but is not NaN.
                assert not np.isnan(grads[2])
    ranks = soft_rank(x, alpha=alpha)
    assert_allclose(ranks, rankdata(x) if alpha < 1 else 3.5, rtol=1e-14)
    values = soft_sort(x, alpha=alpha)
    assert np.all(np.diff(values) > 0)
    assert_allclose(values, np.sort(x) if alpha < 1 else soft_sort(0 * x, alpha=alpha))
    assert_allclose(soft_permutation(x, alpha=alpha).sum(axis=0), 1, rtol=1e-14)
    for vjp in (soft_rank_vjp, soft_sort_vjp):
        assert np.isfinite(vjp(cotangents(x), x, alpha=alpha)[0]).all()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_none_and_all(largest, alpha):
    x, g, sign = NORMAL, cotangents(NORMAL), 1 if largest else -1
    for k, value in ((0, 0.0), (6, 1.0)):
        settings = {"alpha": alpha, "largest": largest}
        p, t = soft_topk(x, k, return_threshold=True, **settings)
        log_p = soft_topk(x, k, log=True, **settings)
        assert_array_equal(p, value)
        assert_array_equal(log_p, np.log(value) if value else -np.inf)
        assert t == sign * (np.inf if k == 0 else -np.inf)
        grad_x, grad_k, grad_alpha = soft_topk_vjp(g, x, k, **settings)
        assert_array_equal(grad_x, 0)
        assert grad_alpha == 0
        q = softmax((1 if k == 0 else -1) * sign * x / alpha)
        assert_allclose(grad_k, q @ g, rtol=1e-13)
        grad_x, grad_k, grad_alpha = soft_topk_vjp(g, x, k, log=True, **settings)
        assert_array_equal(grad_x, 0)
        assert grad_alpha == 0
        if k:
            assert_allclose(grad_k, q @ g, rtol=1e-13)
        near = soft_topk(x, abs(k - 1e-12), **settings)
        assert_allclose(near, p, atol=2e-12)


# --------------------------------------------------------------------------- identities


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("n", [2, 5, 64])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_identities(n, alpha, offset):
    x = np.round(np.random.default_rng(n).normal(size=n), 3) + offset
    for k in (0.4, n / 3, n - 1.0):
        p = soft_topk(x, k, alpha=alpha)
        rest = 1 - soft_topk(x, n - k, alpha=alpha, largest=False)
        assert_allclose(p, rest, rtol=0, atol=1e-12)
        assert_allclose(p.sum(), k, rtol=1e-13)
        assert np.all(p >= 0) and np.all(p <= 1)
        log_p = soft_topk(x, k, alpha=alpha, log=True)
        assert_allclose(logsumexp(log_p), np.log(k), atol=1e-13)
    ranks = soft_rank(x, alpha=alpha)
    assert_allclose(ranks.sum(), n * (n + 1) / 2, rtol=1e-14)
    assert np.all(ranks >= 1) and np.all(ranks <= n)
    b = soft_sort(x, alpha=alpha)
    assert np.all(np.diff(b) > 0)
    reach = alpha * np.log(n) + 1e-9 * alpha
    assert np.all(b >= x.min() - reach) and np.all(b <= x.max() + reach)
    away = 1e-12 + n * offset * 2e-16 / alpha  # values are rounded to digits of x
    assert_allclose(lapsum(b, x, alpha=alpha), np.arange(n) + 0.5, rtol=0, atol=away)
    # The levels of whole sums lie in gaps, where the sum is flat.
    w = np.arange(1.0, n)
    inner = lapsum_inverse(w, x, alpha=alpha)
    assert_allclose(lapsum(inner, x, alpha=alpha), w, rtol=0, atol=away)
    median = soft_quantile(x, 0.5, alpha=alpha)
    moved = soft_quantile(-2 * x + 1, 0.5, alpha=2 * alpha)
    assert_allclose(moved, -2 * median + 1, rtol=1e-12)
    P = soft_permutation(x, alpha=alpha)
    assert np.all(P >= 0)
    assert_allclose(P.sum(axis=0), 1, rtol=1e-12, atol=1e-12)
    assert_allclose(P.sum(axis=1), 1, rtol=1e-12, atol=1e-12)
    target = np.random.default_rng(0).permutation(n)
    loss = soft_permutation_loss(x, target, alpha=alpha, reduction="none")
    assert_allclose(np.exp(-loss), P[np.arange(n), target], rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-6, 0.05, 1.0])
def test_offsets_lose_no_digits(alpha):
    """An offset of 2 ** 20 keeps all bits of these values."""
    x = np.round(NORMAL * 2**20) / 2**20
    g = cotangents(x)
    for k in (1.5, 2.0):
        p, far = (soft_topk(x + shift, k, alpha=alpha) for shift in (0, 2**20))
        assert_allclose(far, p, rtol=1e-15, atol=1e-18)
        near, far = (soft_topk_vjp(g, x + s, k, alpha=alpha) for s in (0, 2**20))
        for one, other in zip(near, far):
            assert_allclose(other, one, rtol=1e-12, atol=1e-20)
    for function in (soft_rank, soft_permutation):
        near, far = (function(x + shift, alpha=alpha) for shift in (0, 2**20))
        assert_allclose(far, near, rtol=0, atol=1e-15)
    for vjp in (soft_rank_vjp, soft_sort_vjp):
        near, far = (vjp(g, x + shift, alpha=alpha) for shift in (0, 2**20))
        for one, other in zip(near, far):
            assert_allclose(other, one, rtol=1e-11, atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-20, 1e-12, 1e-6, 1.0])
def test_loss_of_far_groups_is_finite(alpha):
    """The gap of two levels is not lost where both are far from a value."""
    x, target = np.array([0.0, 1.0, 1.0, 1.0]), np.array([2, 0, 1, 3])
    with workdps(ref.DIGITS):
        xs, a = exact_inputs(x, alpha)
        ends = [ref.exact_inverse(mpf(w), xs[1:], a) for w in (1, 2)]
    gap = float((ends[1] - ends[0]) / a)
    loss = soft_permutation_loss(x, target, alpha=alpha, reduction="none")
    assert np.isfinite(loss).all()
    if alpha < 1e-3:
        expected = (float(ends[0])) / alpha + np.log(2) - np.log(-np.expm1(-gap))
        assert_allclose(loss[0], expected, rtol=1e-13)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("largest", [True, False])
def test_weights_of_long_rows_sum_to_k(alpha, largest):
    """Rounding does not add up along a row."""
    n = 100_000
    x = np.random.default_rng(5).normal(size=n)
    ranks = soft_rank(x, alpha=alpha)
    assert_allclose(ranks.sum(), n * (n + 1) / 2, rtol=1e-13)
    for k in (3.5, 10_000.0, n - 0.25):
        p = soft_topk(x, k, alpha=alpha, largest=largest)
        assert_allclose(math.fsum(p), k, rtol=0, atol=1e-10)
        log_p = soft_topk(x, k, alpha=alpha, largest=largest, log=True)
        assert_allclose(np.exp(log_p), p, rtol=1e-9, atol=1e-200)


@pytest.mark.parametrize("n", [1000, 20_000])
@pytest.mark.parametrize("alpha", [1.5, 1.0, 0.9, 0.8, 0.3, 0.05])
def test_settling_keeps_thresholds_in_gaps(n, alpha):
    """Where all weights are near 0 and 1, their sum says nothing of the threshold."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=n // 2), 60 + rng.normal(size=n // 2)])
    found, t = soft_topk(x, n // 2, alpha=alpha, log=True, return_threshold=True)
    for _ in range(5):  # Newton's method on what is missing and beyond
        v = (x - t) / alpha
        tail = np.exp(-np.abs(v)) / 2
        t += alpha * np.where(v > 0, -tail, tail).sum() / tail.sum()
    v = (x - t) / alpha
    exact = np.where(v > 0, np.log1p(-np.exp(-np.abs(v)) / 2), v - math.log(2))
    assert_allclose(found, exact, rtol=0, atol=4e-16 * np.abs(v).max() + 1e-13)


@pytest.mark.parametrize("g", [[1.0, 2.0, -0.5], [1.0, -1.0, 0.0], [0.0, -1.0, 0.5]])
def test_slope_of_logarithms_by_k_at_0(g):
    """All logarithms rise alike, without end; opposite cotangents cancel."""
    x = [0.3, -1.0, 2.0]
    _, grad_k, _ = soft_topk_vjp(g, x, 0, log=True)
    assert grad_k == (np.inf * np.sign(sum(g)) if sum(g) else 0)
    _, near, _ = soft_topk_vjp(g, x, 1e-9, log=True)
    assert_allclose(near * 1e-9, sum(g), atol=1e-6)
