"""Samplers and densities, with the exact denoisers of known distributions."""

import numpy as np
import pytest
import torch

from skextra.generative import memorization_report
from skextra.generative._losses import kde_denoise
from skextra.generative._sampling import (
    CHUNK,
    consistency_sample,
    heun_sample,
    in_chunks,
    log_density,
)
from skextra.generative._schedule import grid
from tests.generative import reference
from tests.generative.reference import gaussian_multipliers

EPS, T = reference.EPS, reference.T


def normal_denoiser(s):
    variance = s**2

    def denoise(x, t, y):
        return x * (variance / (variance + t[:, None] ** 2))

    return denoise


class Multipliers:
    """The discrete consistency function of N(0, s^2): a number for each level."""

    sigma_min = EPS

    def __init__(self, levels, s):
        self.table = dict(zip(levels, gaussian_multipliers(levels, s)))

    def __call__(self, x, t, y):
        return x * self.table[t[0].item()]


@pytest.mark.parametrize("n", [10, 40, 160])
def test_variance_of_two_steps(n):
    """Var = a_tau^2 (a_T^2 T^2 + tau^2 - eps^2): the second step keeps the bias."""
    levels, s = grid(n, "decay", 7.0, EPS, T), 0.5
    f, tau = Multipliers(levels, s), levels[n // 3]
    draws = iter([torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [1.0]])])
    both = consistency_sample(
        f, lambda: next(draws).double(), None, [levels[-1], tau]
    ).numpy()
    a = f.table
    variance = a[tau] ** 2 * (a[levels[-1]] ** 2 * T**2 + tau**2 - EPS**2)
    # The two noises enter linearly, each by its own factor.
    assert (both**2).sum() == pytest.approx(variance, rel=1e-12)


def test_samples_come_in_chunks():
    sizes = []

    def sampler(draw, y):
        x = draw()
        sizes.append((len(x), len(y)))
        return x + y[:, None]

    y = torch.arange(CHUNK + 5) * 10
    generator = torch.Generator().manual_seed(0)
    x = in_chunks(sampler, CHUNK + 5, 2, y, generator, "cpu")
    assert sizes == [(CHUNK, CHUNK), (5, 5)] and x.shape == (CHUNK + 5, 2)
    assert (x - y[:, None]).std() == pytest.approx(1, abs=0.02)
    again = in_chunks(sampler, 3, 2, y[:3], torch.Generator().manual_seed(0), "cpu")
    other = in_chunks(sampler, 3, 2, y[:3], torch.Generator().manual_seed(1), "cpu")
    assert again.shape == (3, 2) and not torch.equal(again, other)


def test_heun_counts_its_evaluations():
    calls = []
    denoise = normal_denoiser(0.5)

    def counted(x, t, y):
        calls.append(t[0].item())
        return denoise(x, t, y)

    torch.manual_seed(0)
    levels = grid(24, "decay", 7.0, EPS, T)[::-1].tolist()
    x = heun_sample(counted, lambda: torch.randn(20_000, 1), None, levels)
    assert len(calls) == 49 and max(calls) == T and min(calls) == EPS
    assert x.std() == pytest.approx(0.5 * 1.027, rel=0.02)  # 2.7 % by its steps


def test_heun_is_of_second_order():
    errors = []
    for n in (32, 64):
        levels = grid(n, "decay", 7.0, EPS, T)[::-1].tolist()
        one = torch.ones(1, 1, dtype=torch.float64)
        x = heun_sample(normal_denoiser(0.5), lambda one=one: one, None, levels)
        errors.append(abs(float(x) / (T * 0.5 / np.hypot(T, 0.5)) - 1))
    assert errors[1] < errors[0] / 3.9 and errors[1] < 4e-3


@pytest.mark.parametrize("s", [0.05, 0.5, 1.0])
def test_density_of_a_normal_distribution(s):
    torch.manual_seed(0)
    x = s * torch.randn(30, 3, dtype=torch.float64)
    levels = grid(32, "decay", 7.0, EPS, T).tolist()
    found = log_density(normal_denoiser(s), x, None, levels, 0.5)
    std = np.hypot(s, EPS)
    expected = torch.distributions.Normal(0, std).log_prob(x).sum(dim=1)
    assert (found - expected).abs().max() < 0.05
    assert (found - expected).abs().mean() < 0.01


def test_density_of_a_kernel_density():
    """A mixture in two dimensions, whose divergence has mixed terms."""
    torch.manual_seed(0)
    rows = 0.5 * torch.randn(6, 2, dtype=torch.float64)
    x, h = rows[:4] + 0.2 * torch.randn(4, 2), 0.2

    def denoise(x, t, y):
        return kde_denoise(x, t, rows=rows, bandwidth=h)

    levels = grid(64, "decay", 7.0, EPS, T).tolist()
    found = log_density(denoise, x.double(), None, levels, 0.5)
    std = np.hypot(h, EPS)
    each = torch.distributions.Normal(rows, std).log_prob(x[:, None]).sum(dim=2)
    expected = each.logsumexp(dim=1) - np.log(6)
    torch.testing.assert_close(found, expected, atol=0.02, rtol=0)


def test_density_does_not_depend_on_the_batch():
    torch.manual_seed(0)
    x = torch.randn(5, 2, dtype=torch.float64)
    levels = grid(8, "decay", 7.0, EPS, T).tolist()
    args = normal_denoiser(0.5), levels, 0.5
    whole = log_density(args[0], x, None, *args[1:])
    for i in range(5):
        alone = log_density(args[0], x[i : i + 1], None, *args[1:])
        torch.testing.assert_close(alone, whole[i : i + 1], atol=1e-10, rtol=0)


def test_samples_of_a_kernel_density():
    """Mean and covariance are those of the rows and the kernel."""
    torch.manual_seed(0)
    rows = torch.randn(30, 2) @ torch.tensor([[0.5, 0.3], [0, 0.2]])
    rows = rows.double()

    def denoise(x, t, y):
        return kde_denoise(x, t, rows=rows, bandwidth=0.1)

    levels = grid(24, "decay", 7.0, EPS, T)[::-1].tolist()
    x = heun_sample(
        denoise, lambda: torch.randn(4000, 2, dtype=torch.float64), None, levels
    )
    covariance = np.cov(rows.T.numpy(), ddof=0) + 0.1**2 * np.eye(2)
    np.testing.assert_allclose(x.mean(dim=0), rows.mean(dim=0), atol=0.04)
    np.testing.assert_allclose(np.cov(x.T.numpy()), covariance, atol=0.03)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_copies_in_many_columns(offset):
    rows = np.random.default_rng(0).normal(size=(100, 30)) + offset
    report = memorization_report(rows[:40], rows)
    assert report.copies == 1
    assert np.all(report.distances == 0)
