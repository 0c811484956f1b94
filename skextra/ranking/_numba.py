"""The scans of LapSum over sorted rows: O(n) each, once a row is sorted.

Rows are C-contiguous float64. ``decay[j]`` is ``exp(-(s[j + 1] - s[j]) / alpha)`` of a
sorted row `s`, and 0 for the last; exponentials of whole arrays are left to NumPy, whose
own are faster.
"""

import math

import numpy as np
from numba import njit

_compiled = njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def are_finite(s):
    """Say whether sorted rows, and their ranges, are finite."""
    for r in range(len(s)):
        if not np.isfinite(s[r, -1] - s[r, 0]):
            return False
    return True


@_compiled
def log_decays(s, alpha, out):
    """Write the logarithm of the decay from each sorted value to the next."""
    rows, n = s.shape
    for r in range(rows):
        for j in range(n - 1):
            out[r, j] = (s[r, j] - s[r, j + 1]) / alpha[r]
        out[r, n - 1] = -np.inf


@_compiled
def tails(decay, above, below):
    """Sum ``exp(-|s_i - s_j| / alpha)`` over the values above, and below, each value."""
    rows, n = decay.shape
    for r in range(rows):
        up, down = 0.0, 0.0
        above[r, n - 1], below[r, 0] = 0.0, 0.0
        for j in range(n - 1):  # two chains at once: neither waits for the other
            down = decay[r, j] * (1.0 + down)
            below[r, j + 1] = down
            up = decay[r, n - 2 - j] * (1.0 + up)
            above[r, n - 2 - j] = up


@_compiled
def _reached(above, below, j, w):
    """Say whether the LapSum at the sorted value `j` is `w` or more."""
    return (j - w) + (1.0 + above[j] - below[j]) / 2 >= 0


@_compiled
def _first_reached(above, below, w, start):
    """Return the first sorted value whose LapSum is `w` or more, looking from `start`."""
    n = len(above)
    low, high, step = start - 1, start, 1
    if low >= 0 and _reached(above, below, low, w):
        low, high = -1, low
    while high < n and not _reached(above, below, high, w):
        low, high, step = high, high + step, 2 * step
    high = min(high, n)
    while high - low > 1:
        middle = (low + high) // 2
        if _reached(above, below, middle, w):
            high = middle
        else:
            low = middle
    return high


@_compiled
def _between(low, high, up, down, gap, d, alpha):
    """Find the level between two sorted values by which `d` is still to come.

    `up` and `down` are the kernels of all values above and below, as seen from the two,
    and `gap` that of one as seen from the other. Return the nearer value, the anchor; how
    far from it the level lies, which has all its digits even where the values are far
    from 0; the kernel of the farther value over that of the anchor, with the sign - if
    the anchor lies below; and the sum of all kernels over that of the anchor.
    """
    if d == 0 and gap < 1e-300:  # the kernels of both neighbours may underflow
        middle, half = (math.log(down) - math.log(up)) / 2, (high - low) / 2
        far = math.exp(-2 * abs(middle))
        if middle >= 0:
            return high, middle * alpha - half, far, up + far * down
        return low, middle * alpha + half, -far, down + far * up
    # Kernels to_high and to_low of the two, whose product is the gap, are such that
    # up * to_high - down * to_low = 2 d: a quadratic equation, whose root that does not
    # cancel is taken for the side of d. The paper has two logarithms instead.
    root = math.sqrt(d * d + up * down * gap) + abs(d)
    side = up if d >= 0 else down
    one, other = min(root / side, 1.0), gap * side / root
    larger = max(one, other)
    far, step = min(one, other) / larger, math.log(larger) * alpha
    if (d >= 0) == (one >= other):
        return high, step, far, up + far * down
    return low, -step, -far, down + far * up


@_compiled
def _below_all(first, up, w, alpha):
    """Find the level w below the first value, as `_between`."""
    rest = 0.0 if w <= 0 else (math.log(2 * w) - math.log(up)) * alpha
    return first, rest, 0.0, up


@_compiled
def _above_all(last, down, missing, alpha):
    """Find the level of which `missing` is left above the last value, as `_between`."""
    rest = 0.0 if missing <= 0 else (math.log(down) - math.log(2 * missing)) * alpha
    return last, rest, -0.0, down


# Inlined, since a call with arrays takes long; its ends apart, since calls with numbers are
# faster than the same written out. Either makes levels take about half as long again.
@njit(inline="always")
def _level(s, decay, above, below, alpha, w, first):
    """Find the level w of a sorted row, which lies below its value `first`."""
    n = len(s)
    if first == 0:
        return _below_all(s[0], 1 + above[0], w, alpha)
    if first == n:
        return _above_all(s[n - 1], 1 + below[n - 1], n - w, alpha)
    low, high, gap = s[first - 1], s[first], decay[first - 1]
    up, down = 1 + above[first], 1 + below[first - 1]
    return _between(low, high, up, down, gap, w - first, alpha)


@_compiled
def invert(s, decay, above, below, alpha, w, anchor, rest, index, far, mass):
    """Find the levels w of each sorted row, of which there may be many."""
    for r in range(len(s)):
        first = 0
        for m in range(w.shape[1]):  # apart from what follows, which need not wait
            first = _first_reached(above[r], below[r], w[r, m], first)
            index[r, m] = first
        values, to_next, up, down = s[r], decay[r], above[r], below[r]
        for m in range(w.shape[1]):
            anchor[r, m], rest[r, m], far[r, m], mass[r, m] = _level(
                values, to_next, up, down, alpha[r], w[r, m], index[r, m]
            )


@_compiled
def thresholds(s, decay, above, below, alpha, k, sign, anchor, offset, peak, t):
    """Find the level k of each sorted row: its anchor, its offset in units of alpha.

    `peak` is the kernel of the anchor, 0 for k = 0 and k = n: they have no threshold.
    """
    rows, n = s.shape
    for r in range(rows):
        first = _first_reached(above[r], below[r], k[r], 0)
        near, rest, _, _ = _level(
            s[r], decay[r], above[r], below[r], alpha[r], k[r], first
        )
        anchor[r], t[r] = near, sign * (near + rest)
        offset[r] = min(max(rest / alpha[r], -1e300), 1e300)
        peak[r] = math.exp(-abs(offset[r])) / 2
        if k[r] <= 0 or k[r] >= n:
            peak[r] = 0.0
            t[r] = sign * (np.inf if k[r] > 0 else -np.inf)


@_compiled
def arguments(x, sign, anchor, offset, alpha, v, exponent):
    """Write ``v = (b - sign x) / alpha`` and ``|b - anchor| / alpha - |v|``."""
    rows, n = x.shape
    for r in range(rows):
        near = abs(offset[r])
        for j in range(n):
            u = offset[r] - (sign * x[r, j] - anchor[r]) / alpha[r]
            v[r, j] = u
            exponent[r, j] = near - abs(u)


@_compiled
def settle(v, kernel, peak, k, sign, alpha, offset, t):
    """Shift thresholds by what rounding in long scans has left between sum and k."""
    rows, n = v.shape
    for r in range(rows):
        # The sum is inside - peak * missing + peak * beyond.
        inside, missing, beyond = 0, 0.0, 0.0
        for start in range(0, n, 512):  # sums of sums: rounding does not add up
            low, high = 0.0, 0.0
            for j in range(start, min(start + 512, n)):
                if v[r, j] > 0:
                    inside += 1
                    low += kernel[r, j]
                else:
                    high += kernel[r, j]
            missing += low
            beyond += high
        if peak[r] == 0:
            continue
        shift = ((inside - k[r]) / peak[r] + (beyond - missing)) / (beyond + missing)
        if abs(shift) < 1e-15:
            continue
        for j in range(n):
            kernel[r, j] *= 1.0 + shift if v[r, j] > 0 else 1.0 - shift
            v[r, j] -= shift
        offset[r] -= shift
        t[r] -= sign * shift * alpha[r]


@_compiled
def memberships(v, kernel, peak, k):
    """Overwrite ``v`` by the Laplace distribution function of it."""
    rows, n = v.shape
    for r in range(rows):
        every = k[r] >= n
        for j in range(n):
            tail = peak[r] * kernel[r, j]
            v[r, j] = 1.0 - tail if v[r, j] > 0 or every else tail


@_compiled
def log_memberships(v, kernel, peak, k):
    """Overwrite ``v`` by the logarithm of the Laplace distribution function of it."""
    rows, n = v.shape
    for r in range(rows):
        none, every = k[r] <= 0, k[r] >= n
        for j in range(n):
            if none:
                v[r, j] = -np.inf
            elif v[r, j] > 0 or every:
                v[r, j] = math.log1p(-peak[r] * kernel[r, j])
            else:
                v[r, j] -= math.log(2.0)


@_compiled
def memberships_vjp(g, g_t, kernel, peak, sign, alpha, grad_x, grad_k):
    """Write the gradients of a soft top-k and its threshold by x and k."""
    rows, n = g.shape
    for r in range(rows):
        total, mean = 0.0, 0.0
        for j in range(n):
            total += kernel[r, j]
            mean += g[r, j] * kernel[r, j]
        mean /= total
        for j in range(n):
            slope = -sign * peak[r] * (g[r, j] - mean) / alpha[r] + g_t[r] / total
            grad_x[r, j] = kernel[r, j] * slope
        grad_k[r] = mean
        if g_t[r] != 0:
            grad_k[r] += g_t[r] * sign * alpha[r] / (peak[r] * total)


@_compiled
def log_memberships_vjp(
    g, g_t, kernel, peak, sign, alpha, x, anchor, offset, k, grad_x, grad_k
):
    """Write the gradients of a log soft top-k and its threshold by x and k."""
    rows, n = g.shape
    for r in range(rows):
        at_edge = k[r] <= 0 or k[r] >= n
        total, pull, inner, outer = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            total += kernel[r, j]
            tail = peak[r] * kernel[r, j]
            if k[r] >= n or offset[r] > (sign * x[r, j] - anchor[r]) / alpha[r]:
                grad_x[r, j] = g[r, j] * tail / (1.0 - tail)
                inner += g[r, j] * kernel[r, j] / (1.0 - tail)
            else:
                grad_x[r, j] = g[r, j]
                outer += g[r, j]
            pull += grad_x[r, j]
        for j in range(n):
            share = kernel[r, j] / total
            slope = 0.0 if at_edge else -sign * (grad_x[r, j] - share * pull) / alpha[r]
            grad_x[r, j] = slope + share * g_t[r]
        grad_k[r] = inner / total
        if outer != 0:  # the peak may be 0
            grad_k[r] += outer / (peak[r] * total)
        if g_t[r] != 0:
            grad_k[r] += g_t[r] * sign * alpha[r] / (peak[r] * total)


@_compiled
def ranks(order, decay, weights, out):
    """Write half plus the weighted LapSum at each value: its soft rank."""
    rows, n = order.shape
    step = 0 if weights.shape[1] == 1 else 1
    for r in range(rows):
        before, below, above = 0.0, 0.0, 0.0
        for j in range(n):
            i = order[r, j]
            weight = weights[r, i * step]
            out[r, i] = before + (1.0 + weight - below) / 2
            before += weight
            below = decay[r, j] * (weight + below)
        for j in range(n - 2, -1, -1):
            i = order[r, j + 1]
            above = decay[r, j] * (weights[r, i * step] + above)
            out[r, order[r, j]] += above / 2


@_compiled
def ranks_vjp(g, order, decay, weights, alpha, out):
    """Write the gradient of the soft ranks.

    The scans carry weighted sums of kernels, and of kernels times differences of `g`: a
    constant `g`, which ranks do not feel, is not lost in rounding but 0.
    """
    rows, n = g.shape
    step = 0 if weights.shape[1] == 1 else 1
    for r in range(rows):
        near, drift, last, here = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            i = order[r, j]
            weight = weights[r, i * step]
            here = g[r, i] / weight
            if j > 0:
                drift = decay[r, j - 1] * (drift + (here - last) * near)
                near = decay[r, j - 1] * near
            out[r, i] = drift
            near += weight
            last = here
        near, drift = 0.0, 0.0
        for j in range(n - 1, -1, -1):
            i = order[r, j]
            weight = weights[r, i * step]
            here = g[r, i] / weight
            if j < n - 1:
                drift = decay[r, j] * (drift + (here - last) * near)
                near = decay[r, j] * near
            out[r, i] = (out[r, i] + drift) * weight / (2 * alpha[r])
            near += weight
            last = here


@_compiled
def level_shares(g, far, mass, rest, alpha, to_upper, to_lower, grad_w):
    """Split the cotangents of levels on the two values about each."""
    rows, n_levels = g.shape
    for r in range(rows):
        for m in range(n_levels):
            share = g[r, m] / mass[r, m]
            smaller = share * abs(far[r, m])
            to_upper[r, m], to_lower[r, m] = share, smaller
            if math.copysign(1.0, far[r, m]) < 0:
                to_upper[r, m], to_lower[r, m] = smaller, share
            grad_w[r, m] = 0.0
            if share != 0:
                grad_w[r, m] = (
                    2 * alpha[r] * share * math.exp(abs(rest[r, m]) / alpha[r])
                )


@_compiled
def spread(order, decay, index, to_upper, to_lower, up, down, out):
    """Carry what levels give to their neighbours on to all values, which decays."""
    rows, n = order.shape
    for r in range(rows):
        up[r], down[r] = 0.0, 0.0
        for m in range(index.shape[1]):
            i = index[r, m]
            if i < n:
                up[r, i] += to_upper[r, m]
            if i > 0:
                down[r, i - 1] += to_lower[r, m]
        for j in range(1, n):
            up[r, j] += decay[r, j - 1] * up[r, j - 1]
        for j in range(n - 2, -1, -1):
            down[r, j] += decay[r, j] * down[r, j + 1]
        for j in range(n):
            out[r, order[r, j]] = up[r, j] + down[r, j]


@_compiled
def evaluate(s, above, below, alpha, b, value, density, index, to_upper, to_lower):
    """Write the LapSum at `b`, its density, and the kernels of the values about `b`."""
    rows, n = s.shape
    for r in range(rows):
        for m in range(b.shape[1]):
            i = np.searchsorted(s[r], b[r, m], side="right")
            up, down = 0.0, 0.0
            to_upper[r, m], to_lower[r, m] = 0.0, 0.0
            if i < n:
                to_upper[r, m] = math.exp((b[r, m] - s[r, i]) / alpha[r])
                up = to_upper[r, m] * (1.0 + above[r, i]) / 2
            if i > 0:
                to_lower[r, m] = math.exp((s[r, i - 1] - b[r, m]) / alpha[r])
                down = to_lower[r, m] * (1.0 + below[r, i - 1]) / 2
            value[r, m] = i + up - down
            density[r, m] = (up + down) / alpha[r]
            index[r, m] = i


@_compiled
def inner(x, pivot, grad, out):
    """Write the inner products of rows, as seen from a pivot, with gradients."""
    rows, n = x.shape
    for r in range(rows):
        total = 0.0
        for j in range(n):
            total += (x[r, j] - pivot[r]) * grad[r, j]
        out[r] = total
