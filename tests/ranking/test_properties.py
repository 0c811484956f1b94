"""Properties of all values, shapes, axes and temperatures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
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
from tests.ranking import reference as ref
from tests.ranking.common import everything, examples

ALPHAS = st.sampled_from([1e-3, 0.1, 1.0, 10.0])
SHARES = st.floats(0.01, 0.99)
# Multiples of 1/8, so that many are tied and sums with whole numbers are exact.
VALUES = st.integers(-40, 40).map(lambda i: i / 8)


def vectors(most=8):
    return st.integers(1, most).flatmap(lambda n: arrays(float, n, elements=VALUES))


@st.composite
def batches(draw):
    """Draw an array, an axis and an alpha for each lane."""
    shape = draw(array_shapes(min_dims=1, max_dims=3, max_side=4))
    x = draw(arrays(float, shape, elements=VALUES))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    lanes = np.delete(shape, axis).tolist()
    return x, axis, draw(arrays(float, tuple(lanes), elements=ALPHAS))


def lanes_of(x, axis):
    """Return indices of lanes with their values."""
    x = np.moveaxis(x, axis, -1)
    return [(i, x[i]) for i in np.ndindex(x.shape[:-1])]


@examples(25)
@given(batches(), SHARES, st.booleans(), st.booleans())
def test_lanes_are_as_if_alone(batch, share, largest, log):
    x, axis, alpha = batch
    n = x.shape[axis]
    k = np.broadcast_to(share * n, alpha.shape)
    g = np.cos(np.arange(x.size)).reshape(x.shape)
    flags = {"largest": largest, "log": log}
    p, t = soft_topk(x, k, alpha=alpha, axis=axis, return_threshold=True, **flags)
    grads = soft_topk_vjp(g, x, k, alpha=alpha, axis=axis, **flags)
    down = {"descending": largest}
    whole = {
        "rank": soft_rank(x, alpha=alpha, axis=axis, **down),
        "sort": soft_sort(x, alpha=alpha, axis=axis, **down),
        "by_rank": soft_rank_vjp(g, x, alpha=alpha, axis=axis, **down),
        "by_sort": soft_sort_vjp(g, x, alpha=alpha, axis=axis, **down),
    }
    quantiles = soft_quantile(x, [share, 0.5], alpha=alpha, axis=axis)
    P = soft_permutation(x, alpha=alpha, axis=axis)
    target = np.argsort(np.argsort(-x, axis=axis, kind="stable"), axis=axis)
    loss = soft_permutation_loss(x, target, alpha=alpha, axis=axis, reduction="none")
    assert p.shape == x.shape == loss.shape and t.shape == alpha.shape
    assert quantiles.shape == (2, *alpha.shape) and P.shape == (*alpha.shape, n, n)

    def lane(values, i):
        return np.moveaxis(values, axis, -1)[i]

    for i, row in lanes_of(x, axis):
        a, g_i = alpha[i], lane(g, i)
        one, threshold = soft_topk(
            row, share * n, alpha=a, return_threshold=True, **flags
        )
        assert_array_equal(lane(p, i), one)
        assert t[i] == threshold
        single = soft_topk_vjp(g_i, row, share * n, alpha=a, **flags)
        assert_array_equal(lane(grads[0], i), single[0])
        assert (grads[1][i], grads[2][i]) == single[1:]
        assert_array_equal(lane(whole["rank"], i), soft_rank(row, alpha=a, **down))
        assert_array_equal(lane(whole["sort"], i), soft_sort(row, alpha=a, **down))
        for name, vjp in (("by_rank", soft_rank_vjp), ("by_sort", soft_sort_vjp)):
            single = vjp(g_i, row, alpha=a, **down)
            assert_array_equal(lane(whole[name][0], i), single[0])
            assert whole[name][1][i] == single[1]
        assert_array_equal(quantiles[:, *i], soft_quantile(row, [share, 0.5], alpha=a))
        assert_array_equal(P[i], soft_permutation(row, alpha=a))
        single = soft_permutation_loss(row, lane(target, i), alpha=a, reduction="none")
        assert_array_equal(lane(loss, i), single)


@examples(40)
@given(vectors(), ALPHAS, SHARES, st.booleans())
def test_definitions(x, alpha, share, flag):
    n = len(x)
    p, t = soft_topk(x, share * n, alpha=alpha, largest=flag, return_threshold=True)
    expected, threshold = ref.topk(x, share * n, alpha, flag)
    assert_allclose(p, expected, rtol=0, atol=1e-11)
    assert_allclose(t, threshold, rtol=1e-12, atol=1e-12 + 1e-9 * alpha)
    assert_allclose(soft_rank(x, alpha=alpha), ref.rank(x, alpha), rtol=1e-13)
    levels = ref.inverse(np.arange(n) + 0.5, x, alpha)
    assert_allclose(soft_sort(x, alpha=alpha), levels, rtol=1e-12, atol=1e-12)
    assert_allclose(
        soft_permutation(x, alpha=alpha), ref.permutation(x, alpha), rtol=0, atol=1e-2
    )
    b = np.array([t, x.mean(), x[0]])
    assert_allclose(lapsum(b, x, alpha=alpha), ref.lapsum(b, x, alpha), rtol=1e-12)


@examples(40)
@given(vectors(), ALPHAS, SHARES, st.randoms(use_true_random=False))
def test_permutations_and_shifts(x, alpha, share, random):
    n = len(x)
    order = list(range(n))
    random.shuffle(order)
    k = share * n
    g = np.sin(np.arange(n))
    p, r = soft_topk(x, k, alpha=alpha), soft_rank(x, alpha=alpha)
    assert_array_equal(soft_topk(x[order], k, alpha=alpha), p[order])
    assert_allclose(soft_rank(x[order], alpha=alpha), r[order], rtol=1e-15)
    assert_array_equal(soft_sort(x[order], alpha=alpha), soft_sort(x, alpha=alpha))
    P = soft_permutation(x, alpha=alpha)
    assert_array_equal(soft_permutation(x[order], alpha=alpha), P[order])
    for value in x:
        assert np.ptp(p[x == value]) == 0
        assert np.ptp(r[x == value]) < 1e-14 * n
    for shift in (-3.0, 2.0**20):
        assert_array_equal(soft_topk(x + shift, k, alpha=alpha), p)
        assert_array_equal(soft_rank(x + shift, alpha=alpha), r)
        assert_array_equal(soft_permutation(x + shift, alpha=alpha), P)
        moved = soft_sort(x + shift, alpha=alpha)
        assert_allclose(
            moved, soft_sort(x, alpha=alpha) + shift, rtol=1e-14, atol=1e-14
        )
        for log in (False, True):
            grad = soft_topk_vjp(g, x, k, alpha=alpha, log=log)
            far = soft_topk_vjp(g, x + shift, k, alpha=alpha, log=log)
            assert_allclose(far[0], grad[0], rtol=1e-12, atol=1e-12 / alpha)
    for scale in (2.0**-30, 2.0**100, -1.0):
        size = abs(scale) * alpha
        largest = scale > 0
        assert_array_equal(soft_topk(x * scale, k, alpha=size, largest=largest), p)
        ranks = soft_rank(x * scale, alpha=size, descending=not largest)
        assert_allclose(ranks, r, rtol=1e-14)
        values = soft_sort(x * scale, alpha=size, descending=not largest)
        assert_allclose(
            values, scale * soft_sort(x, alpha=alpha), rtol=1e-12, atol=1e-14
        )


@examples(40)
@given(vectors(), ALPHAS, SHARES, st.booleans(), st.booleans())
def test_sums_of_gradients(x, alpha, share, largest, log):
    """Weights and ranks feel no shift, levels all of it."""
    n = len(x)
    g = np.cos(3 * np.arange(n))
    atol = 1e-12 / alpha
    flags = {"alpha": alpha, "largest": largest, "log": log}
    grad_x, grad_k, grad_alpha = soft_topk_vjp(g, x, share * n, **flags)
    assert_allclose(grad_x.sum(), 0, atol=atol)
    assert_allclose(x @ grad_x, -alpha * grad_alpha, rtol=1e-9, atol=1e-11 / alpha)
    if not log:
        ones = soft_topk_vjp(np.ones(n), x, share * n, **flags)
        assert_allclose(ones[0], 0, atol=atol)
        assert_allclose(ones[1], 1, rtol=1e-13)
    grad_x, grad_alpha = soft_rank_vjp(g, x, alpha=alpha)
    expected = ref.rank_vjp(g, x, alpha)
    assert_allclose(grad_x, expected[0], rtol=1e-11, atol=atol)
    assert_allclose(grad_alpha, expected[1], rtol=1e-10, atol=10 * atol)
    assert_array_equal(soft_rank_vjp(np.ones(n), x, alpha=alpha)[0], 0)
    grad_x, grad_alpha = soft_sort_vjp(g, x, alpha=alpha)
    assert_allclose(grad_x.sum(), g.sum(), rtol=1e-12, atol=1e-12)
    total = g @ soft_sort(x, alpha=alpha)
    assert_allclose(x @ grad_x + alpha * grad_alpha, total, rtol=1e-11, atol=1e-11)


@examples(40)
@given(vectors(), ALPHAS, st.lists(SHARES, min_size=1, max_size=5))
def test_inverse_and_order(x, alpha, shares):
    n = len(x)
    w = n * np.array(shares)
    b = lapsum_inverse(w, x, alpha=alpha)
    assert_allclose(lapsum(b, x, alpha=alpha), w, rtol=0, atol=1e-11 * n)
    assert_array_equal(b, np.ravel([lapsum_inverse(v, x, alpha=alpha) for v in w]))
    assert np.all(np.diff(lapsum_inverse(np.sort(w), x, alpha=alpha)) >= 0)
    assert_allclose(soft_quantile(x, shares, alpha=alpha), b, rtol=1e-14, atol=1e-14)
    p = soft_topk(x, w[0], alpha=alpha)
    assert np.all(np.diff(p[np.argsort(x)]) >= 0)
    assert np.all(np.diff(soft_rank(x, alpha=alpha)[np.argsort(x)]) >= -1e-14 * n)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_dtypes(dtype):
    x = np.array([[0.5, 2.0, -1.25], [3.0, 3.0, 0.0]], dtype)
    target = [[1, 2, 0], [2, 1, 0]]
    results = everything(x, 1, 0.7, target, g=x)
    assert {result.dtype for result in results} == {np.dtype(dtype)}
    eps = max(np.finfo(dtype).eps, 2e-16)
    for one, other in zip(results, everything(x.astype(float), 1, 0.7, target, g=x)):
        assert_allclose(one, other, rtol=eps, atol=1e-7 if dtype == np.float16 else 0)
