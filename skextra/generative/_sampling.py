"""Samples of consistency functions and of denoisers, and densities of the latter.

Levels are float64 tensors on the CPU, and so are the draws, which therefore do not
depend on the device.
"""

from math import log, pi, sqrt

import torch

CHUNK = 8192  # rows at a time
DENSITY_STEPS = 32


def in_chunks(sampler, n_samples, n_features, y, generator, device):
    """Return samples from a function of normal draws and classes, chunk by chunk.

    Parameters
    ----------
    sampler : callable
        ``sampler(draw, y)``, where ``draw()`` gives standard normal rows.
    n_samples, n_features : int
        Shape of the result.
    y : tensor of shape (n_samples,) or None
        Classes.
    generator : torch.Generator
        Source of the draws, on the CPU.
    device : torch.device
        Where the network is.

    Returns
    -------
    samples : tensor of shape (n_samples, n_features), on the CPU
    """
    chunks = []
    with torch.inference_mode():
        for start in range(0, n_samples, CHUNK):
            shape = min(CHUNK, n_samples - start), n_features

            def draw(shape=shape):
                return torch.randn(shape, generator=generator).to(device)

            some = None if y is None else y[start : start + CHUNK].to(device)
            chunks.append(sampler(draw, some).cpu())
    return torch.cat(chunks)


def consistency_sample(f, draw, y, levels):
    """Return samples by one evaluation of f for each level.

    Parameters
    ----------
    f : Preconditioned
        Consistency function.
    draw : callable
        Gives standard normal rows.
    y : tensor of shape (n_samples,) or None
        Classes.
    levels : sequence of float
        The most noise, and then the levels to which noise is added again (Song et al.
        2023, algorithm 1).
    """
    z = draw()
    x = f(levels[0] * z, repeated(levels[0], z), y)
    for level in levels[1:]:
        noise = sqrt(level**2 - f.sigma_min**2) * draw()
        x = f(x + noise, repeated(level, x), y)
    return x


def heun_sample(denoiser, draw, y, levels):
    """Return samples of a denoiser by Heun's method (Karras et al. 2022, algorithm 1).

    Takes ``2 * len(levels) - 1`` evaluations, the last step, to 0, being Euler's.

    Parameters
    ----------
    denoiser : callable
        Function of x, levels and classes.
    draw : callable
        Gives standard normal rows.
    y : tensor of shape (n_samples,) or None
        Classes.
    levels : sequence of float
        Levels from the most noise to the least.
    """
    x = levels[0] * draw()
    for t, lower in zip(levels, [*levels[1:], 0.0], strict=True):
        slope = (x - denoiser(x, repeated(t, x), y)) / t
        end = x + (lower - t) * slope
        if lower:
            slope_end = (end - denoiser(end, repeated(lower, x), y)) / lower
            end = x + (lower - t) * (slope + slope_end) / 2
        x = end
    return x


def log_density(denoiser, x, y, levels, sigma_data):
    """Return log densities by the probability-flow equation (Song et al. 2021, D.2).

    The Runge-Kutta method of order 4 goes up the levels; the divergence is exact.

    Parameters
    ----------
    denoiser : Module
        Function of x, levels and classes.
    x : tensor of shape (n, n_features)
        Rows.
    y : tensor of shape (n,) or None
        Classes.
    levels : sequence of float
        Levels from the least noise to the most.
    sigma_data : float
        Standard deviation of the data.

    Returns
    -------
    log_density : tensor of shape (n,)
    """
    n_features = x.shape[1]
    total = x.new_zeros(len(x))
    for t, upper in zip(levels[:-1], levels[1:], strict=True):
        step, middle = upper - t, (t + upper) / 2
        rate, growth = flow(denoiser, x, t, y)
        rate_2, growth_2 = flow(denoiser, x + step / 2 * rate, middle, y)
        rate_3, growth_3 = flow(denoiser, x + step / 2 * rate_2, middle, y)
        rate_4, growth_4 = flow(denoiser, x + step * rate_3, upper, y)
        x = x + step / 6 * (rate + 2 * rate_2 + 2 * rate_3 + rate_4)
        total = total + step / 6 * (growth + 2 * growth_2 + 2 * growth_3 + growth_4)
    variance = levels[-1] ** 2 + sigma_data**2
    normal = (
        -(x.square().sum(dim=1) / variance + n_features * log(2 * pi * variance)) / 2
    )
    return normal + total


def flow(denoiser, x, t, y):
    """Return the velocity of the probability flow, and its divergence."""
    n, d = x.shape
    # Each row once for each direction: one backward pass gives all derivatives.
    rows = x.detach().repeat_interleave(d, dim=0).requires_grad_()
    directions = torch.eye(d, dtype=x.dtype, device=x.device).repeat(n, 1)
    classes = None if y is None else y.repeat_interleave(d)
    denoised = denoiser(rows, repeated(t, rows), classes)
    (changes,) = torch.autograd.grad((denoised * directions).sum(), rows)
    trace = (changes * directions).sum(dim=1).reshape(n, d).sum(dim=1)
    return (x - denoised[::d].detach()) / t, (d - trace) / t


def piecewise(function, x, y, size):
    """Return a function of rows and classes, for `size` rows at a time, on the CPU."""
    found = []
    for start in range(0, len(x), size):
        some = None if y is None else y[start : start + size]
        found.append(function(x[start : start + size], some).cpu())
    return torch.cat(found)


def repeated(level, x):
    """Return the level for each row."""
    return torch.full((len(x),), level, dtype=torch.float64)
