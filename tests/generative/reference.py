"""Slow and obvious versions, and closed forms."""

import numpy as np
from scipy.stats import norm

EPS, T = 0.002, 80.0
MEANS, STDS, SHARES = np.array([-0.6, 0.4]), np.array([0.1, 0.15]), np.array([0.3, 0.7])


def euler_std_error(levels, scale):
    """Relative error of the std of N(0, scale^2) after Euler steps with its score."""
    a = 1.0
    for lower, upper in zip(levels[:-1], levels[1:]):
        denoiser = scale**2 / (scale**2 + upper**2)
        slope = (1 - denoiser) / upper
        a *= 1 + (lower - upper) * slope
    start, end = np.hypot(scale, levels[-1]), np.hypot(scale, levels[0])
    return a * start / end - 1


def vp_euler_std_error(n_steps, scale):
    """The same for equal Euler steps in time and variables of the VP process."""
    times = np.linspace(np.log1p(EPS**2) / 2, np.log1p(T**2) / 2, n_steps + 1)

    def variance(s):
        return scale**2 * np.exp(-2 * s) + 1 - np.exp(-2 * s)

    a = 1.0
    for lower, upper in zip(times[:-1], times[1:]):
        slope = -1 + 1 / variance(upper)
        a *= 1 + (lower - upper) * slope
    return a * np.sqrt(variance(times[-1]) / variance(times[0])) - 1


def mixture_denoise(x, t):
    """E[x_0 | x_t = x] of the mixture of two normal distributions."""
    variances = STDS**2 + t**2
    weights = SHARES * norm.pdf(x[:, None], MEANS, np.sqrt(variances))
    weights /= weights.sum(axis=1, keepdims=True)
    means = (STDS**2 * x[:, None] + t**2 * MEANS) / variances
    return (weights * means).sum(axis=1)


def mixture_quantiles(u, t):
    """Quantiles of the mixture with noise t."""
    stds = np.sqrt(STDS**2 + t**2)
    low, high = np.full(len(u), -1e3), np.full(len(u), 1e3)
    for _ in range(60):
        middle = (low + high) / 2
        below = norm.cdf(middle[:, None], MEANS, stds) @ SHARES < u
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def mixture_w2(levels, n=4000):
    """W2 distance of Euler's samples of the mixture, started from noise alone."""
    u = (np.arange(n) + 0.5) / n
    x = levels[-1] * norm.ppf(u)
    for upper, lower in zip(levels[:0:-1], levels[-2::-1]):
        x = x + (lower - upper) * (x - mixture_denoise(x, upper)) / upper
    return np.sqrt(np.mean((x - mixture_quantiles(u, levels[0])) ** 2))


def kde_denoise(x, t, rows, h):
    """E[x_0 | x_t = x] of a kernel density, one row after the other."""
    out = []
    for point in x:
        logits = -((point - rows) ** 2).sum(axis=1) / (2 * (h**2 + t**2))
        w = np.exp(logits - logits.max())
        centre = w @ rows / w.sum()
        r = h**2 / (h**2 + t**2)
        out.append((1 - r) * centre + r * point)
    return np.array(out)


def energy_distance(X, Y):
    def mean(A, B):
        return np.mean([np.linalg.norm(a - b) for a in A for b in B])

    return np.sqrt(2 * mean(X, Y) - mean(X, X) - mean(Y, Y))


def ring(n, rng, std=0.05):
    """Eight normal distributions on a circle."""
    angles = rng.integers(8, size=n) * np.pi / 4
    centres = np.column_stack([np.cos(angles), np.sin(angles)])
    return centres + std * rng.normal(size=(n, 2))


def sliced_w2(X, Y, n_directions=128):
    """Sliced Wasserstein distance in the plane."""
    angles = np.linspace(0, np.pi, n_directions, endpoint=False)
    directions = np.array([np.cos(angles), np.sin(angles)])
    u = (np.arange(1000) + 0.5) / 1000
    quantiles = [np.quantile(Z @ directions, u, axis=0) for Z in (X, Y)]
    return np.sqrt(np.mean((quantiles[0] - quantiles[1]) ** 2))


def gaussian_multipliers(levels, scale):
    """Return what each level is multiplied with, at the fixed point for N(0, scale^2)."""
    lower, upper = levels[:-1], levels[1:]
    steps = (scale**2 + lower * upper) / (scale**2 + upper**2)
    return np.concatenate([[1.0], np.cumprod(steps)])


def gaussian_bias(levels, scale):
    """Return the relative error of the standard deviation of the samples."""
    right = np.hypot(scale, levels[0]) / np.hypot(scale, levels[-1])
    return gaussian_multipliers(levels, scale)[-1] / right - 1
