"""LapSum on rows in the array API: CuPy arrays, and torch tensors on a GPU.

The functions return what those of their names in :mod:`skextra.ranking._rows` do. A scan
takes log2(n) steps over whole rows, each of which doubles how far it reaches: affine maps
compose, ``(m1, c1) o (m2, c2) = (m1 m2, c1 m2 + c2)``.
"""

import math

from sklearn.externals.array_api_compat import array_namespace, device


def topk(x, k, alpha, largest=True, log=False, check_finite=True):
    """Weights of a soft top-k of each row, and their threshold."""
    xp, n = array_namespace(x), x.shape[1]
    k, alpha = _one_each(xp, k, x), _one_each(xp, alpha, x)
    sign = -1.0 if largest else 1.0
    s = xp.sort(x * sign, axis=1)
    if check_finite:
        _require_finite(xp, s)
    anchor, rest, *_ = _invert(xp, s, _decay(xp, s, alpha), alpha, k[:, None])
    anchor, rest = anchor[:, 0], rest[:, 0]
    none, every = k <= 0, k >= n
    edge, zero = none | every, xp.zeros_like(k)
    offset = xp.where(edge, zero, xp.clip(rest / alpha, min=-1e300, max=1e300))
    v = offset[:, None] - (x * sign - anchor[:, None]) / alpha[:, None]
    kernel = xp.exp(xp.abs(offset)[:, None] - xp.abs(v))
    peak = xp.where(edge, zero, xp.exp(-xp.abs(offset)) / 2)
    tail = peak[:, None] * kernel
    p = xp.where(v > 0, 1 - tail, tail)
    t = sign * (anchor + rest)
    if log:
        p = xp.where(v > 0, xp.log1p(-tail), v - math.log(2))
    bounds = (-math.inf, 0.0) if log else (0.0, 1.0)
    for rows, value, end in ((none, bounds[0], -sign), (every, bounds[1], sign)):
        p = xp.where(rows[:, None], xp.full_like(p, value), p)
        t = xp.where(rows, xp.full_like(t, end * math.inf), t)
    if not check_finite:
        lost = ~xp.isfinite(s[:, -1] - s[:, 0])
        nan = xp.full_like(t, math.nan)
        p, kernel = (xp.where(lost[:, None], nan[:, None], a) for a in (p, kernel))
        t = xp.where(lost, nan, t)
    inside = (v > 0) | every[:, None]
    return p, t, (x, k, alpha, sign, log, kernel, inside, anchor, offset, peak)


def topk_vjp(g, g_t, saved):
    """Gradients by x, k and alpha, given those by the weights and by the threshold."""
    x, k, alpha, sign, log, kernel, inside, anchor, offset, peak = saved
    xp, n = array_namespace(x), x.shape[1]
    g = xp.zeros_like(x) if g is None else g
    total = xp.sum(kernel, axis=1)
    q = kernel / total[:, None]
    if log:
        tail = peak[:, None] * kernel
        pull = g * xp.where(inside, tail / (1 - tail), xp.ones_like(g))
        grad_x = (pull - q * xp.sum(pull, axis=1, keepdims=True)) / alpha[:, None]
        at_edge = ((k <= 0) | (k >= n))[:, None]
        grad_x = xp.where(at_edge, xp.zeros_like(grad_x), grad_x)
        zero = xp.zeros_like(g)
        inner = xp.sum(xp.where(inside, g * kernel / (1 - tail), zero), axis=1)
        outer = xp.sum(xp.where(inside, zero, g), axis=1)
        outer = xp.where(outer == 0, outer, outer / peak)
        grad_k = (inner + outer) / total
    else:
        grad_k = xp.sum(q * g, axis=1)
        grad_x = peak[:, None] * kernel * (g - grad_k[:, None]) / alpha[:, None]
    grad_x = -sign * grad_x
    if g_t is not None:
        grad_x = grad_x + g_t[:, None] * q
        slope = sign * alpha * g_t / (peak * total)
        grad_k = grad_k + xp.where(g_t == 0, xp.zeros_like(g_t), slope)
    grad_alpha = -xp.sum((x - sign * anchor[:, None]) * grad_x, axis=1) / alpha
    if g_t is not None:
        grad_alpha = grad_alpha + sign * g_t * offset
    return grad_x, grad_k, grad_alpha


def rank(x, alpha):
    """Soft ranks of each row, ascending."""
    xp = array_namespace(x)
    alpha = _one_each(xp, alpha, x)
    order, s = _sort(xp, x)
    decay = _decay(xp, s, alpha)
    below, above = _tails(xp, decay)
    ranks = _places(xp, x, 1) + (above - below) / 2
    return _unsort(xp, order, ranks), (x, alpha, order, decay, below, above)


def rank_vjp(g, saved):
    """Gradients of soft ranks by x and alpha."""
    x, alpha, order, decay, below, above = saved
    xp = array_namespace(x)
    g = xp.take_along_axis(g, order, axis=1)
    rise = g[:, 1:] - g[:, :-1]
    nothing = xp.zeros_like(g[:, :1])
    drift = _scan(xp, decay, below * xp.concat([nothing, rise], axis=1))
    fall = above * xp.concat([-rise, nothing], axis=1)
    drift = drift + _scan_back(xp, decay, fall)
    grad_x = _unsort(xp, order, drift) / (2 * alpha[:, None])
    return grad_x, -_inner(xp, x, x[:, :1], grad_x) / alpha


def levels(w, x, alpha):
    """Where the LapSum of each row is w: at ``anchor + rest``."""
    xp = array_namespace(x)
    alpha = _one_each(xp, alpha, x)
    order, s = _sort(xp, x)
    decay = _decay(xp, s, alpha)
    anchor, rest, index, tilt, mass = _invert(xp, s, decay, alpha, w)
    return anchor, rest, (x, alpha, order, decay, anchor, rest, index, tilt, mass)


def levels_vjp(g, saved):
    """Gradients of levels by w, x and alpha."""
    x, alpha, order, decay, anchor, rest, index, tilt, mass = saved
    xp = array_namespace(x)
    share = g / mass
    far = share * xp.exp(-2 * xp.abs(tilt))
    to_upper, to_lower = (
        xp.where(tilt >= 0, share, far),
        xp.where(tilt >= 0, far, share),
    )
    column = alpha[:, None]
    grad_w = 2 * column * share * xp.exp(xp.abs(rest) / column)
    grad_w = xp.where(share == 0, xp.zeros_like(share), grad_w)
    grad_x = _spread(xp, order, decay, index, to_upper, to_lower)
    beyond = (anchor - x[:, :1]) + rest
    by_alpha = xp.sum(g * beyond, axis=1) - _inner(xp, x, x[:, :1], grad_x)
    return grad_w, grad_x, by_alpha / alpha


def lapsum(b, x, alpha):
    """LapSum of each row at each of its b."""
    xp, n = array_namespace(x), x.shape[1]
    alpha = _one_each(xp, alpha, x)
    order, s = _sort(xp, x)
    decay = _decay(xp, s, alpha)
    below, above = _tails(xp, decay)
    index = _search(xp, lambda i: xp.take_along_axis(s, i, axis=1) > b, b, n)
    column = alpha[:, None]
    at, zero = xp.clip(index, max=n - 1), xp.zeros_like(b)
    to_upper = xp.exp((b - xp.take_along_axis(s, at, axis=1)) / column)
    to_upper = xp.where(index < n, to_upper, zero)
    up = to_upper * (1 + xp.take_along_axis(above, at, axis=1)) / 2
    at = xp.clip(index - 1, min=0)
    to_lower = xp.exp((xp.take_along_axis(s, at, axis=1) - b) / column)
    to_lower = xp.where(index > 0, to_lower, zero)
    down = to_lower * (1 + xp.take_along_axis(below, at, axis=1)) / 2
    value = xp.astype(index, b.dtype) + up - down
    density = (up + down) / column
    return value, (x, b, alpha, order, decay, density, index, to_upper, to_lower)


def lapsum_vjp(g, saved):
    """Gradients of LapSums by b, x and alpha."""
    x, b, alpha, order, decay, density, index, to_upper, to_lower = saved
    xp = array_namespace(x)
    share = -g / (2 * alpha[:, None])
    grad_x = _spread(xp, order, decay, index, share * to_upper, share * to_lower)
    grad_b = g * density
    by_alpha = _inner(xp, x, x[:, :1], grad_x) + _inner(xp, b, x[:, :1], grad_b)
    return grad_b, grad_x, -by_alpha / alpha


def _one_each(xp, values, x):
    """Return a number for each row, if it is one for all."""
    return xp.full_like(x[:, 0], values) if isinstance(values, float) else values


def _require_finite(xp, s):
    """Raise unless the sorted rows, and their ranges, are finite."""
    if not bool(xp.all(xp.isfinite(s))):
        raise ValueError("x must be finite; it contains NaN or infinity")
    if not bool(xp.all(xp.isfinite(s[:, -1] - s[:, 0]))):
        raise ValueError("x spans more than float64 can hold; divide x and alpha by 4")


def _sort(xp, x):
    """Return the order of rows and their sorted values, which must be finite."""
    order = xp.argsort(x, axis=1)
    s = xp.take_along_axis(x, order, axis=1)
    _require_finite(xp, s)
    return order, s


def _unsort(xp, order, values):
    return xp.take_along_axis(values, xp.argsort(order, axis=1), axis=1)


def _places(xp, like, first):
    """Return rows of first, first + 1, ..."""
    n = like.shape[1]
    return xp.arange(first, first + n, dtype=xp.float64, device=device(like))[None, :]


def _inner(xp, x, pivot, grad):
    return xp.sum((x - pivot) * grad, axis=1)


def _decay(xp, s, alpha):
    """Return the decay from the value before to each sorted value; 0 for the first."""
    gaps = (s[:, :-1] - s[:, 1:]) / alpha[:, None]
    return xp.concat([xp.zeros_like(s[:, :1]), xp.exp(gaps)], axis=1)


def _scan(xp, decay, values):
    """Return ``out[i] = values[i] + decay[i] out[i - 1]``."""
    reach = 1
    while reach < values.shape[1]:
        ahead = values[:, reach:] + decay[:, reach:] * values[:, :-reach]
        values = xp.concat([values[:, :reach], ahead], axis=1)
        further = decay[:, reach:] * decay[:, :-reach]
        decay = xp.concat([decay[:, :reach], further], axis=1)
        reach *= 2
    return values


def _scan_back(xp, decay, values):
    """Return ``out[i] = values[i] + decay[i + 1] out[i + 1]``."""
    ahead = xp.concat([decay[:, 1:], xp.zeros_like(decay[:, :1])], axis=1)
    out = _scan(xp, xp.flip(ahead, axis=1), xp.flip(values, axis=1))
    return xp.flip(out, axis=1)


def _tails(xp, decay):
    """Sum the kernels of the values below, and above, each sorted value."""
    ones, nothing = xp.ones_like(decay), xp.zeros_like(decay[:, :1])
    from_below = _scan(xp, decay, ones)
    below = decay[:, 1:] * from_below[:, :-1]
    from_above = _scan_back(xp, decay, ones)
    above = decay[:, 1:] * from_above[:, 1:]
    return xp.concat([nothing, below], axis=1), xp.concat([above, nothing], axis=1)


def _search(xp, reached, like, n):
    """Return the first of n places that is reached, in the shape of an array."""
    low = xp.full(like.shape, -1, dtype=xp.int64, device=device(like))
    high = xp.full(like.shape, n, dtype=xp.int64, device=device(like))
    for _ in range(n.bit_length()):
        middle = xp.clip((low + high) // 2, min=0, max=n - 1)
        found = reached(middle) & (low < high - 1)
        missed = ~reached(middle) & (low < high - 1)
        high, low = xp.where(found, middle, high), xp.where(missed, middle, low)
    return high


def _invert(xp, s, decay, alpha, w):
    """Invert the LapSum, as the kernel of that name does."""
    n, column = s.shape[1], alpha[:, None]
    below, above = _tails(xp, decay)
    beyond = (1 + above - below) / 2

    def reached(i):
        ahead = xp.astype(i, w.dtype) - w
        return ahead + xp.take_along_axis(beyond, i, axis=1) >= 0

    index = _search(xp, reached, w, n)
    upper, lower = xp.clip(index, max=n - 1), xp.clip(index - 1, min=0)
    high, low = (xp.take_along_axis(s, at, axis=1) for at in (upper, lower))
    up = 1 + xp.take_along_axis(above, upper, axis=1)
    down = 1 + xp.take_along_axis(below, lower, axis=1)
    d = w - xp.astype(index, w.dtype)
    half_gap = (high - low) / 2
    half = half_gap / column
    middle = (xp.log(down) - xp.log(up)) / 2
    y = xp.log(xp.abs(d)) - (xp.log(up) + xp.log(down)) / 2 + half
    arch = xp.asinh(xp.exp(xp.clip(y, max=20.0)))
    tilt = xp.where(d == 0, middle, middle + xp.where(d > 0, arch, -arch))
    rest = xp.where(tilt >= 0, tilt - half, tilt + half) * column
    even = middle * column + xp.where(tilt >= 0, -half_gap, half_gap)
    rest = xp.where(d == 0, even, rest)
    # Where the inverse hyperbolic sine would overflow, and beyond the ends.
    from_upper = xp.log(2 * xp.abs(d)) - xp.log(up)
    from_lower = xp.log(down) - xp.log(2 * xp.abs(d))
    far_up, far_down = (y > 20) & (d > 0), (y > 20) & (d < 0)
    tilt = xp.where(far_up, half + from_upper, tilt)
    tilt = xp.where(far_down, from_lower - half, tilt)
    first, last = index == 0, index == n
    infinite = xp.full_like(tilt, math.inf)
    tilt = xp.where(first, infinite, xp.where(last, -infinite, tilt))
    rest = xp.where(far_up | first, from_upper * column, rest)
    rest = xp.where(far_down | last, from_lower * column, rest)
    anchor = xp.where(tilt >= 0, high, low)
    far = xp.exp(-2 * xp.abs(tilt))
    mass = xp.where(tilt >= 0, up + far * down, far * up + down)
    return anchor, rest, index, tilt, mass


def _spread(xp, order, decay, index, to_upper, to_lower):
    """Carry what levels give to their neighbours on to all values, which decays."""
    if index.shape[1] == 0:
        return xp.zeros_like(decay)
    place = xp.argsort(index, axis=1)
    index = xp.take_along_axis(index, place, axis=1)
    same = xp.astype(index[:, 1:] == index[:, :-1], decay.dtype)
    same = xp.concat([xp.zeros_like(decay[:, :1]), same], axis=1)
    n_levels = index.shape[1]

    def received(parts, first):
        """Add up the parts of the levels that lie below the values from `first` on."""
        sums = _scan(xp, same, xp.take_along_axis(parts, place, axis=1))
        value = xp.zeros_like(order) + xp.astype(_places(xp, order, first), order.dtype)
        after = _search(
            xp, lambda i: xp.take_along_axis(index, i, axis=1) > value, value, n_levels
        )
        last = xp.clip(after - 1, min=0)
        own = (after > 0) & (xp.take_along_axis(index, last, axis=1) == value)
        sums = xp.take_along_axis(sums, last, axis=1)
        return xp.where(own, sums, xp.zeros_like(sums))

    up = _scan(xp, decay, received(to_upper, 0))
    down = _scan_back(xp, decay, received(to_lower, 1))
    return _unsort(xp, order, up + down)
