"""Many rows, in blocks and threads, are as one by one; working arrays do not leak."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skextra.ranking import (
    lapsum,
    soft_quantile,
    soft_rank,
    soft_rank_vjp,
    soft_sort,
    soft_sort_vjp,
    soft_topk,
    soft_topk_vjp,
)

# More numbers than a block holds, and than threads are worth, and not whole blocks.
SHAPES = [(701, 500), (70_001, 5), (3, 100_003)]


def everything(x, k, alpha):
    """Return a list of what functions make of rows; the first axis is theirs."""
    g = np.cos(np.arange(x.shape[1])) + 0 * x
    return [
        *soft_topk(x, k, alpha=alpha, return_threshold=True),
        soft_topk(x, k, alpha=alpha, log=True, largest=False),
        *soft_topk_vjp(g, x, k, alpha=alpha),
        *soft_topk_vjp(g, x, k, alpha=alpha, log=True, largest=False),
        soft_rank(x, alpha=alpha),
        *soft_rank_vjp(g, x, alpha=alpha),
        soft_sort(x, alpha=alpha),
        *soft_sort_vjp(g, x, alpha=alpha),
        soft_quantile(x, 0.3, alpha=alpha),
        lapsum([0.5, -0.5, 0.0], x, alpha=alpha),
    ]


def draw(shape, seed=0):
    rng = np.random.default_rng(seed)
    k = rng.uniform(0, shape[1], size=shape[0])
    k[:: max(1, len(k) // 3)] = 0
    return rng.normal(size=shape), k, rng.uniform(0.05, 2, size=shape[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_as_if_alone(shape):
    x, k, alpha = draw(shape)
    whole = everything(x, k, alpha)
    block = max(1, 2**16 // shape[1])
    some = {0, 1, block - 1, block, block + 1, 2 * block, shape[0] - 1, shape[0] // 2}
    for r in sorted(r for r in some if r < shape[0]):
        one = slice(r, r + 1)
        for many, single in zip(whole, everything(x[one], k[one], alpha[one])):
            assert_array_equal(many[one], single)
    half = shape[0] // 2
    parts = [everything(x[s], k[s], alpha[s]) for s in (slice(half), slice(half, None))]
    for many, first, second in zip(whole, *parts):
        assert_array_equal(many, np.concatenate([first, second]))


def test_one_number_for_all_rows():
    x, _, _ = draw((701, 500))
    one = everything(x, 3.5, 0.2)
    for a, b in zip(one, everything(x, np.full(701, 3.5), np.full(701, 0.2))):
        assert_array_equal(a, b)


@pytest.mark.parametrize("n", [7, 1000])
def test_results_outlive_later_calls(n):
    inputs, more = draw((5, n)), draw((6, n + 3), seed=1)
    first = everything(*inputs)
    copies = [result.copy() for result in first]
    for later in (more, draw((2, 3), seed=2), draw((1, 5000), seed=3), inputs):
        everything(*later)
    for result, copy in zip(first, copies):
        assert_array_equal(result, copy)
    for result, again in zip(copies, everything(*inputs)):
        assert_array_equal(result, again)
    arrays = [r for r in first if r.ndim]
    for i, a in enumerate(arrays):
        assert a.flags.writeable
        assert not any(np.shares_memory(a, b) for b in [*arrays[:i], *inputs])


def test_calls_from_many_threads():
    inputs = [draw((4, 300 + i), seed=i) for i in range(12)]
    expected = [everything(*one) for one in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = list(pool.map(lambda one: everything(*one), inputs))
            for results, others in zip(found, expected):
                for one, other in zip(results, others):
                    assert_array_equal(one, other)


def test_error_in_a_block_is_raised():
    x, k, alpha = draw((701, 500))
    x[650, 3] = np.nan
    for call in (
        lambda: soft_topk(x, k),
        lambda: soft_rank(x),
        lambda: soft_sort(x),
        lambda: lapsum(0.0, x),
    ):
        with pytest.raises(ValueError, match="NaN or infinity"):
            call()
    p = soft_topk(x, k, alpha=alpha, check_finite=False)
    assert np.isnan(p[650]).all() and np.isfinite(np.delete(p, 650, axis=0)).all()
