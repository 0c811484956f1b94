"""Soft order statistics written from their definitions, slowly.

The functions on vectors are double sums in NumPy. Those of the class Exact x.
"""

import numpy as np
from mpmath import mp, mpf

DIGITS = 60


# ------------------------------------------------------------------ double sums (NumPy)


def cdf(u):
    """Laplace distribution function."""
    u = np.asarray(u, float)
    half = np.exp(-np.abs(u)) / 2
    return np.where(u <= 0, half, 1 - half)


def density(u):
    return np.exp(-np.abs(u)) / 2


def apart(a, b, alpha):
    """Differences of all a from all b, in units of alpha."""
    return (np.asarray(a)[:, None] - np.asarray(b)[None, :]) / alpha


def lapsum(b, x, alpha):
    return cdf(apart(b, x, alpha)).sum(axis=1)


def lapsum_jacobians(b, x, alpha):
    """Derivatives of the LapSum by b, x and alpha."""
    u = apart(b, x, alpha)
    slopes = density(u) / alpha
    return np.diag(slopes.sum(axis=1)), -slopes, -(slopes * u).sum(axis=1)


def rank(x, alpha, weights=1.0):
    weights = np.broadcast_to(weights, len(x))
    return 0.5 + cdf(apart(x, x, alpha)) @ weights


def rank_vjp(g, x, alpha, weights=1.0):
    u = apart(x, x, alpha)
    slopes = density(u) / alpha * np.broadcast_to(weights, len(x))
    grad_x = g * slopes.sum(axis=1) - slopes.T @ g
    return grad_x, -(g @ (slopes * u)).sum()


def inverse(w, x, alpha):
    """Where the LapSum is w, by bisection about the first value."""
    x = np.asarray(x, float)
    out = []
    for level in np.atleast_1d(w):
        reach = np.ptp(x) + alpha * (60 + abs(np.log(level * (len(x) - level))))
        low, high = -reach, reach
        for _ in range(200):
            middle = (low + high) / 2
            reached = cdf((middle - (x - x[0])) / alpha).sum() >= level
            low, high = (low, middle) if reached else (middle, high)
        out.append(x[0] + high)
    return np.array(out)


def topk(x, k, alpha, largest=True):
    """Weights and threshold."""
    sign = -1 if largest else 1
    y = sign * np.asarray(x, float)
    b = inverse(k, y, alpha)[0]
    return cdf((b - y) / alpha), sign * b


def shares(b, x, alpha):
    """Softmax of the kernels about each b: the derivative of levels by values."""
    u = -np.abs(apart(b, x, alpha))
    kernel = np.exp(u - u.max(axis=1, keepdims=True))
    return kernel / kernel.sum(axis=1, keepdims=True)


def levels_vjp(g, b, x, alpha):
    """Gradients by w, x and alpha through levels b."""
    q = shares(b, x, alpha)
    grad_w = g / (density(apart(b, x, alpha)).sum(axis=1) / alpha)
    return grad_w, g @ q, g @ ((b - q @ x) / alpha)


def permutation(x, alpha):
    n = len(x)
    inner = inverse(np.arange(1, n), x, alpha) if n > 1 else np.empty(0)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    return np.diff(cdf(-apart(x, edges, alpha)), axis=1)


# --------------------------------------------------------------------- 50 digits (mpmath)


def numbers(values):
    return [mpf(float(value)) for value in np.ravel(values)]


def exact_cdf(u):
    return mp.exp(u) / 2 if u <= 0 else 1 - mp.exp(-u) / 2


def exact_lapsum(b, x, alpha):
    return mp.fsum(exact_cdf((b - value) / alpha) for value in x)


def exact_inverse(w, x, alpha):
    """Where the LapSum is w: by bisection, and Newton's method for the last digits."""
    reach = alpha * (5 + abs(mp.log(w)) + abs(mp.log(len(x) - w)) + mp.log(len(x)))
    low, high = min(x) - reach, max(x) + reach
    while high - low > alpha / 1000:
        middle = (low + high) / 2
        if exact_lapsum(middle, x, alpha) >= w:
            high = middle
        else:
            low = middle
    b = (low + high) / 2
    while True:
        slope = mp.fsum(mp.exp(-abs(b - value) / alpha) for value in x) / (2 * alpha)
        step = (exact_lapsum(b, x, alpha) - w) / slope
        b -= step
        if abs(step) < alpha * mpf(10) ** -22:  # its square is left
            return b


def exact_topk(x, k, alpha, largest=True):
    """Weights and threshold."""
    sign = -1 if largest else 1
    b = exact_inverse(k, [sign * value for value in x], alpha)
    return [exact_cdf((b - sign * value) / alpha) for value in x], sign * b


def exact_rank(x, alpha):
    return [mpf(0.5) + exact_lapsum(value, x, alpha) for value in x]


def exact_sort(x, alpha):
    return [exact_inverse(i + mpf(0.5), x, alpha) for i in range(len(x))]


def exact_permutation(x, alpha):
    levels = [exact_inverse(mpf(i), x, alpha) for i in range(1, len(x))]
    rows = [[exact_cdf((b - value) / alpha) for b in levels] for value in x]
    edges = [[mpf(0), *row, mpf(1)] for row in rows]
    return [[b - a for a, b in zip(row, row[1:])] for row in edges]


def exact_log_permutation(x, alpha, target):
    """Logarithms of the entries at the target, from the tail in which they lie."""
    levels = [exact_inverse(mpf(i), x, alpha) for i in range(1, len(x))]
    out = []
    for value, j in zip(x, target):
        low = (levels[j - 1] - value) / alpha if j > 0 else -mp.inf
        high = (levels[j] - value) / alpha if j < len(levels) else mp.inf
        low, high = (low, high) if low < 0 else (-high, -low)
        out.append(mp.log(exact_cdf(high) - exact_cdf(low)))
    return out


def dot(g, values):
    return mp.fsum(a * b for a, b in zip(g, values))


def slopes(function, *points, step=1e-18):
    """Derivatives of a number by central differences, a list for each list of points."""
    out = []
    for which, point in enumerate(points):
        found = []
        for i in range(len(point)):
            ends = []
            for side in (step, -step):
                moved = [list(other) for other in points]
                moved[which][i] += side
                ends.append(function(*moved))
            found.append((ends[0] - ends[1]) / (2 * step))
        out.append(found)
    return out


def as_floats(values):
    """Return nested lists of mpmath's numbers as an array."""
    if isinstance(values, list):
        return np.array([as_floats(value) for value in values])
    return float(values)
