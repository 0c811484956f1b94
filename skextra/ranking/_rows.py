"""LapSum on the rows of a NumPy array, sorted once, and its gradients.

``L(u)`` is the Laplace distribution function, ``F(b; x, alpha) = sum_j L((b - x_j) /
alpha)`` the LapSum of a row (paper, section 3). What a gradient needs is returned last.
Rows are C-contiguous float64, none of which is changed; temperatures and counts are
numbers, or one for each row.
"""

import threading
from functools import partial

import numpy as np
from numba.core import config

from skextra.ranking import _numba
from skextra.utils import in_threads

# A block of rows whose working arrays fit in a core's cache; what threads are worth.
BLOCK, WORTH_THREADS = 2**16, 2**18
# Working arrays of up to this many numbers are kept: fresh pages take longer than scans.
KEPT = 2**20
ONES = np.ones((1, 1))


class _Scratch(threading.local):
    """Working arrays of a thread, kept between calls."""

    def __init__(self):
        self.kept = np.empty(0)

    def arrays(self, count, shape):
        """Return `count` arrays of this shape, that the next call will overwrite."""
        size = count * shape[0] * shape[1]
        flat = self.kept
        if len(flat) < size:
            flat = np.empty(size)
            if size <= KEPT:
                self.kept = flat
        return flat[:size].reshape(count, *shape)


_scratch = _Scratch()


def _over_rows(function, *arrays):
    """Call a function on the same rows of all arrays, block by block."""
    rows, n = arrays[0].shape
    step = max(1, BLOCK // n)
    if rows <= step:
        _quietly(function, *arrays)
        return
    tasks = [[array[i : i + step] for array in arrays] for i in range(0, rows, step)]
    n_jobs = config.NUMBA_NUM_THREADS if rows * n >= WORTH_THREADS else 1
    in_threads(partial(_quietly, function), tasks, n_jobs)


def _one_each(values, x):
    """Return a number for each row, if it is one for all."""
    return np.full(len(x), values) if isinstance(values, float) else values


def _quietly(function, *arrays):
    """Call a function without NumPy's warnings: infinite exponents have a meaning."""
    with np.errstate(all="ignore"):
        function(*arrays)


def _require_finite(s):
    """Raise unless the sorted rows, and their ranges, are finite."""
    if _numba.are_finite(s):
        return
    if not np.isfinite(s).all():
        raise ValueError("x must be finite; it contains NaN or infinity")
    raise ValueError("x spans more than float64 can hold; divide x and alpha by 4")


def _measure(s, alpha, decay, above, below):
    """Sum the kernels above and below the values of sorted rows."""
    _numba.log_decays(s, alpha, decay)
    np.exp(decay, out=decay)
    _numba.tails(decay, above, below)


def topk(x, k, alpha, largest=True, log=False, check_finite=True):
    """Weights of a soft top-k of each row, which sum to k, and their threshold."""
    k, alpha = _one_each(k, x), _one_each(alpha, x)
    p, kernel = np.empty_like(x), np.empty_like(x)
    t, anchor, offset, peak = np.empty((4, len(x)))
    sign = -1.0 if largest else 1.0
    _over_rows(
        partial(_topk, sign, log, check_finite),
        *(x, k, alpha, p, kernel, t, anchor, offset, peak),
    )
    return p, t, (x, k, alpha, sign, log, kernel, anchor, offset, peak)


def _topk(sign, log, check_finite, x, k, alpha, p, kernel, t, anchor, offset, peak):
    """Fill the weights of a block of rows: ``p_i = L((b(k) - y_i) / alpha)``, y = +-x."""
    s, decay, above, below = _scratch.arrays(4, x.shape)
    np.multiply(x, sign, out=s)
    s.sort(axis=1)
    if check_finite:
        _require_finite(s)
    _measure(s, alpha, decay, above, below)
    _numba.thresholds(s, decay, above, below, alpha, k, sign, anchor, offset, peak, t)
    _numba.arguments(x, sign, anchor, offset, alpha, p, kernel)
    np.exp(kernel, out=kernel)
    _numba.settle(p, kernel, peak, k, sign, alpha, offset, t)
    (_numba.log_memberships if log else _numba.memberships)(p, kernel, peak, k)
    if not check_finite:
        lost = ~np.isfinite(s[:, -1] - s[:, 0])
        p[lost], kernel[lost], t[lost] = np.nan, np.nan, np.nan


def topk_vjp(g, g_t, saved):
    """Gradients by x, k and alpha, given those by the weights and by the threshold."""
    x, k, alpha, sign, log, kernel, anchor, offset, peak = saved
    g = np.zeros_like(x) if g is None else g
    g_t = np.zeros(len(x)) if g_t is None else g_t
    grad_x, grad_k, grad_alpha = np.empty_like(x), np.empty(len(x)), np.empty(len(x))
    _over_rows(
        partial(_topk_vjp, sign, log),
        *(g, g_t, x, k, alpha, kernel, anchor, offset, peak),
        *(grad_x, grad_k, grad_alpha),
    )
    return grad_x, grad_k, grad_alpha


def _topk_vjp(sign, log, g, g_t, x, k, alpha, kernel, anchor, offset, peak, *grads):
    """Fill the gradients of a block of rows."""
    grad_x, grad_k, grad_alpha = grads
    if log:
        _numba.log_memberships_vjp(
            *(g, g_t, kernel, peak, sign, alpha, x, anchor, offset, k, grad_x, grad_k)
        )
    else:
        _numba.memberships_vjp(g, g_t, kernel, peak, sign, alpha, grad_x, grad_k)
    _numba.inner(x, sign * anchor, grad_x, grad_alpha)
    # The threshold is homogeneous in x and alpha; the weights are so of degree 0.
    grad_alpha[:] = sign * g_t * offset - grad_alpha / alpha


def rank(x, alpha, weights=ONES):
    """Soft ranks of each row, ascending, where a value counts as its weight."""
    alpha = _one_each(alpha, x)
    ranks, order, decay = np.empty_like(x), np.empty(x.shape, np.intp), np.empty_like(x)
    weights = np.broadcast_to(weights, (len(x), weights.shape[1]))
    _over_rows(_rank, x, alpha, weights, ranks, order, decay)
    return ranks, (x, alpha, weights, order, decay)


def _rank(x, alpha, weights, ranks, order, decay):
    """Fill the ranks of a block of rows, and the order and decays of their values."""
    (s,) = _scratch.arrays(1, x.shape)
    _sort(x, order, s)
    _numba.log_decays(s, alpha, decay)
    np.exp(decay, out=decay)
    _numba.ranks(order, decay, weights, ranks)


def _sort(x, order, s):
    """Fill the order of rows and their sorted values, which must be finite."""
    order[...] = np.argsort(x, axis=1)
    s[...] = np.take_along_axis(x, order, axis=1)
    _require_finite(s)


def rank_vjp(g, saved):
    """Gradients of soft ranks by x and alpha."""
    x, alpha, weights, order, decay = saved
    grad_x, grad_alpha = np.empty_like(x), np.empty(len(x))
    _over_rows(_rank_vjp, g, x, alpha, weights, order, decay, grad_x, grad_alpha)
    return grad_x, grad_alpha


def _rank_vjp(g, x, alpha, weights, order, decay, grad_x, grad_alpha):
    """Fill the gradients of a block of rows."""
    _numba.ranks_vjp(g, order, decay, weights, alpha, grad_x)
    middle = x[np.arange(len(x)), order[:, x.shape[1] // 2]]
    _numba.inner(x, middle, grad_x, grad_alpha)
    grad_alpha /= -alpha


def levels(w, x, alpha):
    """Where the LapSum of each row is w: at ``anchor + rest``."""
    alpha = _one_each(alpha, x)
    anchor, rest, far, mass = (np.empty(w.shape) for _ in range(4))
    index = np.empty(w.shape, np.intp)
    order, decay = np.empty(x.shape, np.intp), np.empty_like(x)
    _over_rows(_levels, x, w, alpha, order, decay, anchor, rest, index, far, mass)
    return anchor, rest, (x, alpha, order, decay, anchor, rest, index, far, mass)


def _levels(x, w, alpha, order, decay, anchor, rest, index, far, mass):
    """Fill the levels of a block of rows."""
    s, above, below = _scratch.arrays(3, x.shape)
    _sort(x, order, s)
    _measure(s, alpha, decay, above, below)
    _numba.invert(s, decay, above, below, alpha, w, anchor, rest, index, far, mass)


def levels_vjp(g, saved):
    """Gradients of levels by w, x and alpha."""
    x, alpha, order, decay, anchor, rest, index, far, mass = saved
    grad_w, grad_x, grad_alpha = np.empty_like(g), np.empty_like(x), np.empty(len(x))
    _over_rows(
        _levels_vjp,
        *(x, g, alpha, order, decay, anchor, rest, index, far, mass),
        *(grad_w, grad_x, grad_alpha),
    )
    return grad_w, grad_x, grad_alpha


def _levels_vjp(
    x, g, alpha, order, decay, anchor, rest, index, far, mass, grad_w, *grads
):
    """Fill the gradients of a block of rows."""
    grad_x, grad_alpha = grads
    to_upper, to_lower = np.empty_like(g), np.empty_like(g)
    _numba.level_shares(g, far, mass, rest, alpha, to_upper, to_lower, grad_w)
    up, down = _scratch.arrays(2, x.shape)
    _numba.spread(order, decay, index, to_upper, to_lower, up, down, grad_x)
    pivot = x[np.arange(len(x)), order[:, x.shape[1] // 2]]
    _numba.inner(x, pivot, grad_x, grad_alpha)
    beyond = (anchor - pivot[:, None]) + rest
    grad_alpha[:] = (np.einsum("ij,ij->i", g, beyond) - grad_alpha) / alpha


def lapsum(b, x, alpha):
    """Sum of ``L((b - x_j) / alpha)`` over each row, at each of its `b`."""
    alpha = _one_each(alpha, x)
    value, density, to_upper, to_lower = (np.empty(b.shape) for _ in range(4))
    index = np.empty(b.shape, np.intp)
    order, decay = np.empty(x.shape, np.intp), np.empty_like(x)
    out = (value, density, index, to_upper, to_lower)
    _over_rows(_lapsum, x, b, alpha, order, decay, *out)
    return value, (x, b, alpha, order, decay, *out[1:])


def _lapsum(x, b, alpha, order, decay, *out):
    """Fill the sums of a block of rows."""
    s, above, below = _scratch.arrays(3, x.shape)
    _sort(x, order, s)
    _measure(s, alpha, decay, above, below)
    _numba.evaluate(s, above, below, alpha, b, *out)


def lapsum_vjp(g, saved):
    """Gradients of LapSums by b, x and alpha."""
    x, b, alpha, order, decay, density, index, to_upper, to_lower = saved
    grad_b, grad_x, grad_alpha = np.empty_like(g), np.empty_like(x), np.empty(len(x))
    _over_rows(
        _lapsum_vjp,
        *(x, g, b, alpha, order, decay, density, index, to_upper, to_lower),
        *(grad_b, grad_x, grad_alpha),
    )
    return grad_b, grad_x, grad_alpha


def _lapsum_vjp(
    x, g, b, alpha, order, decay, density, index, to_upper, to_lower, grad_b, *grads
):
    """Fill the gradients of a block of rows."""
    grad_x, grad_alpha = grads
    share = -g / (2 * alpha[:, None])
    up, down = _scratch.arrays(2, x.shape)
    _numba.spread(
        order, decay, index, share * to_upper, share * to_lower, up, down, grad_x
    )
    np.multiply(g, density, out=grad_b)
    pivot = x[:, 0].copy()
    _numba.inner(x, pivot, grad_x, grad_alpha)
    grad_alpha += np.einsum("ij,ij->i", grad_b, b - pivot[:, None])
    grad_alpha /= -alpha
