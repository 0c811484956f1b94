"""Kernels: steps along one edge after the other.

The likelihood of a site is linear in the flip of each edge: agree + flip * gain.
"""

import numpy as np
from numba import njit

from skextra.phylo._numba import (
    FLUSH,
    LANES,
    REST,
    UP,
    compare,
    cross,
    flush,
    merge_outside,
    merge_rest,
    merge_up,
)


@njit(cache=True, nogil=True)
def _flip_slopes(agree, gain, weights, p):
    """Return the first derivative of sum w ln(agree + p gain), and minus the second."""
    first = np.zeros(LANES)
    second = np.zeros(LANES)
    whole = agree.size // LANES * LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            j = start + lane
            ratio = gain[j] / (agree[j] + p * gain[j])
            first[lane] += weights[j] * ratio
            second[lane] += weights[j] * ratio * ratio
    for j in range(whole, agree.size):
        ratio = gain[j] / (agree[j] + p * gain[j])
        first[j - whole] += weights[j] * ratio
        second[j - whole] += weights[j] * ratio * ratio
    return first.sum(), second.sum()


@njit(cache=True, nogil=True)
def best_flip(agree, gain, weights, p, low, high):
    """Maximise the concave sum w ln(agree + p gain) by Newton's method in a bracket."""
    seen_low = seen_high = False
    for _ in range(60):
        slope, curve = _flip_slopes(agree, gain, weights, p)
        if slope > 0:
            if p == high:
                return p
            low, seen_low = p, True
        elif slope < 0:
            if p == low:
                return p
            high, seen_high = p, True
        else:
            return p
        new = p + slope / curve
        if abs(new - p) < 1e-6 * p:  # what is left is the square of it
            return min(max(new, low), high)
        if new >= high:
            new = (low + high) / 2 if seen_high else high
        elif new <= low:
            new = (low + high) / 2 if seen_low else low
        p = new
    return p


@njit(cache=True, nogil=True)
def _mixed(agree, gain, share, rates, t, mix):
    """Write the likelihood of each pattern and its two derivatives in the length."""
    n = mix.shape[1]
    mix[:] = 0
    for k in range(rates.size):
        p = -np.expm1(-2 * rates[k] * t) / 2
        slope = rates[k] * (1 - 2 * p)
        curve = -2 * rates[k] * slope
        for j in range(n):
            c = k * n + j
            mix[0, j] += share[c] * (agree[c] + p * gain[c])
            mix[1, j] += share[c] * gain[c] * slope
            mix[2, j] += share[c] * gain[c] * curve


@njit(cache=True, nogil=True)
def _variable_loss(gain, share, rates, old, new):
    """Return the growth of the likelihood of the last pattern, as a share of it.

    Not the difference of two likelihoods, which may both be 1 but for the last digits.
    """
    n = gain.size // rates.size
    total = 0.0
    for k in range(rates.size):
        change = np.exp(-2 * rates[k] * old) * -np.expm1(2 * rates[k] * (old - new)) / 2
        total += share[(k + 1) * n - 1] * gain[(k + 1) * n - 1] * change
    return total


@njit(cache=True, nogil=True)
def _mixed_slopes(mix, weights, constant, variable):
    """Return two derivatives of the log-likelihood, that of variable sites if asked.

    ``constant`` is the probability of a constant site at the start of the step, 0 if
    all sites count, and ``variable`` that of a variable site now.
    """
    first, second = 0.0, 0.0
    for j in range(weights.size):
        ratio = mix[1, j] / mix[0, j]
        first += weights[j] * ratio
        second += weights[j] * (mix[2, j] / mix[0, j] - ratio * ratio)
    if constant > 0:
        ratio = constant * mix[1, -1] / variable
        first += weights.sum() * ratio
        second += weights.sum() * (constant * mix[2, -1] / variable + ratio * ratio)
    return first, second


@njit(cache=True, nogil=True)
def best_length(agree, gain, share, weights, rates, variable, t, low, high, mix):
    """Climb from the length t to a maximum by Newton's method in a bracket.

    With several rates, or for variable sites alone, the function is not concave: the
    step is halved until the likelihood has not fallen. On return ``mix[0]`` is by what
    factor the likelihood of each pattern has grown. ``variable`` is the probability of
    a variable site, 1 where all sites count; with the length its new value is returned.
    """
    start, now, constant = t, variable, 1 - variable
    seen_low = seen_high = False
    for _ in range(60):
        _mixed(agree, gain, share, rates, t, mix)
        if constant > 0:
            now = variable - constant * _variable_loss(gain, share, rates, start, t)
        slope, curve = _mixed_slopes(mix, weights, constant, now)
        if slope > 0:
            if t == high:
                break
            low, seen_low = t, True
        elif slope < 0:
            if t == low:
                break
            high, seen_high = t, True
        else:
            break
        new = t - slope / curve if curve < 0 else (high if slope > 0 else low)
        if abs(new - t) < 1e-6 * t:
            t = min(max(new, low), high)
            break
        if new >= high:
            new = (low + high) / 2 if seen_high else high
        elif new <= low:
            new = (low + high) / 2 if seen_low else low
        t = new
    for _ in range(60):
        _mixed(agree, gain, share, rates, t, mix)
        growth = 0.0
        for j in range(weights.size):
            growth += weights[j] * np.log(mix[0, j])
        if constant > 0:
            now = variable - constant * _variable_loss(gain, share, rates, start, t)
            growth -= weights.sum() * np.log(now / variable)
        if growth >= 0:
            return t, now
        t = (start + t) / 2
    _mixed(agree, gain, share, rates, start, mix)
    return start, variable


@njit(cache=True, nogil=True)
def _set_share(share, agree, gain, flips, growth):
    """Bring the share of each category in the likelihood of a pattern up to date."""
    n = growth.size
    for k in range(flips.size):
        for j in range(n):
            c = k * n + j
            share[c] *= (agree[c] + flips[k] * gain[c]) / growth[j]


@njit(cache=True, nogil=True)
def sweep(
    events,
    messages,
    flips,
    weights,
    low,
    high,
    concave,
    lengths,
    rates,
    share,
    variable,
):
    """Improve every edge once, in place; return the log-likelihood of each column.

    With one rate for all sites the function of an edge is ``concave``: then the
    coordinates are the flips, and ``low`` and ``high`` bound these; else they are the
    lengths. ``share`` is the share of each category in the likelihood of a pattern;
    ``variable`` the probability of a variable site, where these alone count: then the
    last pattern is a constant one.
    """
    n = messages.shape[2]
    logs, factor = np.zeros(n), np.ones(n)
    agree, gain = np.empty(n), np.empty(n)
    mix = np.empty((3, n // rates.size))
    merged = 0
    for i in range(events.shape[0]):
        event = events[i]
        operation, node, out = event[0], event[1], event[3]
        if operation == UP:
            merge_up(event, messages, flips, factor, logs)
            merged += 1
            if merged % FLUSH == 0:
                flush(factor, logs)
        elif operation == REST:
            merge_rest(event, messages, flips)
        else:
            merge_outside(event, messages, flips)
            compare(messages[node], messages[out], agree, gain)
            if concave:
                flips[node, 0] = best_flip(
                    agree, gain, weights, flips[node, 0], low, high
                )
            else:
                for k in range(rates.size):
                    for j in range(k * mix.shape[1], (k + 1) * mix.shape[1]):
                        share[j] /= agree[j] + flips[node, k] * gain[j]
                lengths[node], variable = best_length(
                    agree,
                    gain,
                    share,
                    weights,
                    rates,
                    variable,
                    lengths[node],
                    low,
                    high,
                    mix,
                )
                flips[node] = -np.expm1(-2 * rates * lengths[node]) / 2
                _set_share(share, agree, gain, flips[node], mix[0])
            if out != messages.shape[0] - 1:  # nothing is below a leaf
                cross(messages[out], messages[out], flips[node])
    flush(factor, logs)
    return logs
