"""Soft permutations from the levels between their columns; any array namespace.

Column j of a soft permutation holds how much of each value's Laplace distribution lies
between the levels j and j + 1, of which the first is minus and the last plus infinity.
"""

import math

import numpy as np

FAR = 1e300  # in units of alpha: the exponential of minus that is 0


def matrix(xp, x, anchor, rest, alpha):
    """Return P (rows, n values, n columns)."""
    inner = _beyond(xp, anchor[:, None, :], rest[:, None, :], x[:, :, None], alpha)
    edge = xp.full_like(x, FAR)[:, :, None]
    low = xp.concat([-edge, inner], axis=2)
    high = xp.concat([inner, edge], axis=2)
    near, gap, astride, middle = _pieces(xp, low, high)
    return xp.where(astride, middle, -xp.exp(near) * xp.expm1(-gap) / 2)


def log_of(xp, x, anchor, rest, alpha, target):
    """Return ``log P[i, target[i]]`` (rows, n), without the matrix."""
    n = x.shape[1]
    edge = xp.full_like(x, FAR)
    low, high = -edge, edge
    between = xp.full_like(x, FAR)
    if n > 1:
        columns = xp.clip(target - 1, min=0), xp.clip(target, max=n - 2)
        (anchor_low, rest_low), (anchor_high, rest_high) = (
            [xp.take_along_axis(level, column, axis=1) for level in (anchor, rest)]
            for column in columns
        )
        # Not the difference of how far each is from the value, which may cancel.
        between = _beyond(xp, anchor_high, rest_high - rest_low, anchor_low, alpha)
        between = xp.where((target == 0) | (target == n - 1), edge, between)
        below = _beyond(xp, anchor_low, rest_low, x, alpha)
        above = _beyond(xp, anchor_high, rest_high, x, alpha)
        low = xp.where(target == 0, low, below)
        high = xp.where(target == n - 1, high, above)
    near, _, astride, middle = _pieces(xp, low, high)
    return xp.where(
        astride, xp.log(middle), near + xp.log(-xp.expm1(-between)) - math.log(2)
    )


def _beyond(xp, anchor, rest, x, alpha):
    """Return how far levels lie above values, in units of alpha."""
    if not isinstance(alpha, float):
        alpha = xp.reshape(alpha, (-1,) + (1,) * (anchor.ndim - 1))
    with np.errstate(over="ignore"):
        return xp.clip(((anchor - x) + rest) / alpha, min=-FAR, max=FAR)


def _pieces(xp, low, high):
    """Return the parts of ``L(high) - L(low)``, none of which cancels or overflows."""
    near = xp.clip(xp.minimum(high, -low), max=0.0)
    astride = (low < 0) & (high > 0)
    middle = -(xp.expm1(-xp.clip(high, min=0.0)) + xp.expm1(xp.clip(low, max=0.0))) / 2
    return near, high - low, astride, middle
