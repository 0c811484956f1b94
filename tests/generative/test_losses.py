"""Networks, preconditioning and losses."""

import numpy as np
import pytest
import torch

from skextra.generative import ConsistencyModel
from skextra.generative import _losses as losses
from skextra.generative._modules import Preconditioned, ResidualMLP, UNet
from skextra.generative._plan import make_plan
from skextra.generative._schedule import grid, lognormal_pmf
from skextra.generative._training import grid_pairs
from tests.generative import reference
from tests.generative.reference import gaussian_multipliers

EPS, T = reference.EPS, reference.T
LEVELS = torch.tensor([EPS, 0.01, 0.5, 3.0, T], dtype=torch.float64)


def shaken(module):
    """The module with all weights at random, also those that begin at 0."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module


NETWORKS = {
    "mlp": lambda: ResidualMLP(6, [8, 16], 3),
    "image": lambda: UNet((2, 3), [4, 8], 3),
    "channels": lambda: UNet((3, 1, 2), [4], 3),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name):
    torch.manual_seed(0)
    net, x = NETWORKS[name](), torch.randn(5, 6)
    y, level = torch.tensor([0, 1, 2, 3, 3]), torch.linspace(-1, 1, 5)
    assert torch.equal(net(x, level, y), torch.zeros(5, 6))
    net = shaken(net)
    out = net(x, level, y)
    assert out.shape == (5, 6) and out.abs().min() > 0
    # No class is the last class; rows, levels and classes matter, and only their own.
    torch.testing.assert_close(net(x, level)[3:], out[3:])
    for args in ((x + 1, level, y), (x, level + 1, y), (x, level, (y + 1) % 4)):
        assert not torch.isclose(net(*args), out).all(dim=1).any()
    torch.testing.assert_close(net(x[1:2], level[1:2], y[1:2]), out[1:2])


@pytest.mark.parametrize("shape", [(8, 8), (3, 7, 9), (32, 32)])
def test_unet_of_any_size(shape):
    net, n = UNet(shape, [2, 4, 4]), int(np.prod(shape))
    assert net(torch.randn(2, n), torch.zeros(2)).shape == (2, n)


@pytest.mark.parametrize("basis", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_boundary_is_exact(basis, dtype):
    """At the least noise the function is the identity, to the last bit."""
    axes = torch.linalg.qr(torch.randn(6, 6))[0] if basis else None
    f = Preconditioned(shaken(ResidualMLP(6, [8])), [0.5] * 6, EPS, axes).to(dtype)
    x = torch.randn(7, 6, dtype=dtype)
    t = torch.full((7,), EPS, dtype=torch.float64)
    assert torch.equal(f(x, t), x)
    assert not torch.isclose(f(x, t + 1), x).all(dim=1).any()


def test_published_scalings():
    """The formulas of Song et al. 2023, appendix C, as schedulers have them."""
    sigma_data, sigma_min = 0.5, 0.002
    f = Preconditioned(torch.nn.Identity(), sigma_data, sigma_min)
    skip, out, scale = (c.numpy().ravel() for c in f.scalings(LEVELS))
    sigma = LEVELS.numpy()
    c_skip = sigma_data**2 / ((sigma - sigma_min) ** 2 + sigma_data**2)
    c_out = (sigma - sigma_min) * sigma_data / (sigma**2 + sigma_data**2) ** 0.5
    np.testing.assert_allclose(skip, c_skip, rtol=1e-7)
    np.testing.assert_allclose(out, c_out, rtol=1e-7)
    np.testing.assert_allclose(scale, 1 / np.hypot(sigma, sigma_data), rtol=1e-7)
    # Karras et al. 2022, table 1.
    f.sigma_min = 0.0
    skip, out, _ = (c.numpy().ravel() for c in f.scalings(LEVELS))
    both = sigma**2 + sigma_data**2
    np.testing.assert_allclose(skip, sigma_data**2 / both, rtol=1e-12)
    np.testing.assert_allclose(out, sigma * sigma_data / both**0.5, rtol=1e-12)


def test_normal_preconditioning_is_exact():
    """A network of zeros gives a normal distribution's denoiser and function."""
    torch.manual_seed(0)
    axes = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))[0]
    stds = torch.tensor([0.05, 0.3, 0.8], dtype=torch.float64)
    x, t = torch.randn(5, 3, dtype=torch.float64), LEVELS[:, None]
    covariance = axes @ torch.diag(stds**2) @ axes.T

    def along(values):
        return ((x @ axes) * values) @ axes.T

    for sigma_min in (0.0, EPS):
        f = Preconditioned(ResidualMLP(3, [4]), stds, sigma_min, axes).double()
        # The network's first weights are 0.
        found = f(x, LEVELS)
        if sigma_min:
            expected = along(((stds**2 + EPS**2) / (stds**2 + t**2)).sqrt())
        else:
            expected = torch.stack(
                [
                    covariance @ torch.linalg.solve(covariance + s**2 * torch.eye(3), r)
                    for s, r in zip(LEVELS, x)
                ]
            )
        torch.testing.assert_close(found, expected)
    # The mean of f at the lower level given the upper one, and the gap, make f.
    lower = LEVELS / 2
    step = (stds**2 + lower[:, None] * t) / (stds**2 + t**2)
    mean = along(f.gaussian(lower[:, None]) * step)
    gap = f.discretization_gap(x, LEVELS, lower)
    torch.testing.assert_close(mean + gap, along(f.gaussian(t)))


def test_norms():
    difference = torch.randn(4, 64, dtype=torch.float64)
    norms = difference.norm(dim=1)
    torch.testing.assert_close(losses.squared(difference), norms**2)
    c = 0.00432
    found = losses.pseudo_huber(difference)
    torch.testing.assert_close(found, (norms**2 + c**2).sqrt() - c)
    assert not losses.pseudo_huber(torch.zeros(1, 64)).any()


def test_edm_loss():
    torch.manual_seed(0)
    x, z = torch.randn(2, 5, 2)
    noisy = x + LEVELS.float()[:, None] * z
    t = LEVELS
    weights = (t**2 + 0.25) / (t * 0.5) ** 2
    # A denoiser that returns its input leaves the noise.
    found = losses.edm_loss(lambda x, t, y: x, x, t, z, None, 0.5)
    expected = (weights * (noisy - x).double().square().sum(dim=1)).mean()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=0)


def test_consistency_loss():
    """Weights of tiny steps are exact; only the noisier end has a gradient."""
    torch.manual_seed(0)
    f = Preconditioned(shaken(ResidualMLP(2, [4])), 0.5, EPS)
    x, z = torch.randn(2, 3, 2)
    t = torch.tensor([EPS + 1e-4, 0.5, 80.0], dtype=torch.float64)
    lower = torch.tensor([EPS, 0.4, 79.9], dtype=torch.float64)
    noisy, cleaner = losses.perturbed(x, t, z), losses.perturbed(x, lower, z)
    found = losses.consistency_loss(f, noisy, t, cleaner, lower, None, losses.squared)
    target = f(cleaner, lower).detach()
    difference = (f(noisy, t) - target).square().sum(dim=1)
    expected = (difference.double() / (t - lower)).mean()
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=0)
    gradient = torch.autograd.grad(found, list(f.parameters()))
    assert all(torch.isfinite(g).all() for g in gradient)
    expected = torch.autograd.grad(expected, list(f.parameters()))
    for a, b in zip(gradient, expected):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def test_best_multipliers_are_those_of_the_theory():
    """Squared loss on a large sample of N(0, s^2): regression gives each next one."""
    torch.manual_seed(0)
    s, levels = 0.5, torch.from_numpy(grid(6, "decay", 7.0, EPS, T))
    x, z = torch.randn(2, 400_000, dtype=torch.float64)
    a, found = 1.0, [1.0]
    for lower, upper in zip(levels[:-1], levels[1:]):
        noisy, target = s * x + upper * z, a * (s * x + lower * z)
        a = float(noisy @ target / (noisy @ noisy))
        found.append(a)
    theory = gaussian_multipliers(levels.numpy(), s)
    np.testing.assert_allclose(found, theory, rtol=0.02)


@pytest.mark.parametrize("block", [1, 7, 4096])
@pytest.mark.parametrize("h", [0.0, 0.2])
def test_kde_denoiser(block, h, monkeypatch):
    monkeypatch.setattr(losses, "BLOCK", block)
    rng = np.random.default_rng(0)
    rows, x = rng.normal(size=(20, 3)), rng.normal(size=(5, 3))
    t = LEVELS + 0.05
    expected = np.vstack(
        [reference.kde_denoise(a[None], float(s), rows, h) for a, s in zip(x, t)]
    )
    rows, x = torch.from_numpy(rows), torch.from_numpy(x)
    found = losses.kde_denoise(x, t, rows=rows, bandwidth=h)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("block", [3, 4096])
def test_kde_denoiser_with_classes(block, monkeypatch):
    """A row belongs to the rows of its class; without one to all."""
    monkeypatch.setattr(losses, "BLOCK", block)
    torch.manual_seed(0)
    rows, x = torch.randn(20, 3).double(), torch.randn(5, 3).double()
    labels, y = torch.arange(20) // 10, torch.tensor([0, 1, 2, 0, 2])
    kwargs = {"bandwidth": 0.1}
    found = losses.kde_denoise(x, LEVELS, y, rows=rows, labels=labels, **kwargs)
    for i, own in enumerate([labels == 0, labels == 1, labels >= 0] * 2):
        if i < 5 and i not in (3, 4):
            alone = losses.kde_denoise(
                x[i : i + 1], LEVELS[i : i + 1], rows=rows[own], **kwargs
            )
            torch.testing.assert_close(found[i : i + 1], alone)


def test_far_rows_have_finite_means(monkeypatch):
    """Distances at which all weights underflow, for the rows of the first block too."""
    monkeypatch.setattr(losses, "BLOCK", 1)
    rows = torch.tensor([[0.0], [1000.0]], dtype=torch.float64)
    x = torch.tensor([[999.0]], dtype=torch.float64)
    t = torch.tensor([0.01], dtype=torch.float64)
    found = losses.kde_denoise(x, t, rows=rows, bandwidth=0.0)
    torch.testing.assert_close(found, torch.tensor([[1000.0]], dtype=torch.float64))


def test_euler_steps_of_one_point():
    """They shrink the distance to it by the multipliers of a normal distribution."""
    h, levels = 0.3, torch.from_numpy(grid(12, "decay", 7.0, EPS, T))
    rows = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    first = x = rows + torch.tensor([[80.0, 40.0]], dtype=torch.float64)
    for upper, lower in zip(levels.flip(0)[:-1], levels.flip(0)[1:]):
        upper, lower = upper[None], lower[None]
        denoised = losses.kde_denoise(x, upper, rows=rows, bandwidth=h)
        x = losses.euler_step(x, upper, lower, denoised)
    shrink = gaussian_multipliers(levels.numpy(), h)[-1]
    torch.testing.assert_close(x - rows, shrink * (first - rows))


def test_pairs_of_a_grid():
    torch.manual_seed(0)
    grids = [torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 1.5, 2, 3])]
    pmfs = [torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.0, 0.5])]
    pairs = losses.GridPairs(grids, pmfs, [0, 10])
    for iteration in (0, 9):
        t, lower = pairs(iteration, 50)
        assert (t == 3).all() and (lower == 2).all()
    t, lower = pairs(10, 1000)
    assert set(t.tolist()) == {1.5, 3.0} and set(lower.tolist()) == {1.0, 2.0}
    assert 400 < (t == 3).sum() < 600


def test_pairs_of_tuning():
    torch.manual_seed(0)
    pairs = losses.TuningPairs(100, 5, EPS, T)
    t, lower = pairs(0, 10_000)
    assert (lower >= EPS).all() and (lower < t).all() and (t <= T).all()
    assert (lower == EPS).float().mean() > 0.5
    log_t = t.log()
    assert log_t.mean() == pytest.approx(-1.1, abs=0.06)
    assert log_t.std() == pytest.approx(2.0, abs=0.06)
    t, lower = pairs(99, 10_000)
    inner = lower > EPS
    ratio = (1 + 8 * torch.sigmoid(-t)) / 2**5
    torch.testing.assert_close((1 - lower / t)[inner], ratio[inner])


def test_objective_hides_a_tenth_of_the_classes():
    torch.manual_seed(0)
    objective = losses.DenoisingObjective(2, 0.5, EPS, T)
    seen = []

    def denoiser(x, t, y):
        seen.append(y)
        return x

    y = torch.zeros(20_000, dtype=torch.long)
    objective(denoiser, torch.zeros(20_000, 1), y)
    assert set(seen[0].tolist()) == {0, 2}
    assert (seen[0] == 2).float().mean() == pytest.approx(0.1, abs=0.01)
    assert objective.iteration == 0 and not y.any()


def test_grids_double_only_where_their_size_is_found():
    common = {"method": "training", "max_iter": 400, "schedule": "decay"}
    Z = np.random.default_rng(0).normal(size=(50, 2))
    for n_discretization, first, last in (("auto", 10, None), (24, 24, 24)):
        model = ConsistencyModel(n_discretization=n_discretization, **common)
        plan = make_plan(model, Z, np.random.RandomState(0))
        sizes = [len(levels) - 1 for levels in grid_pairs(model, plan).grids]
        assert sizes[0] == first and sizes[-1] == last if last else sizes[-1] > 100


def test_steps_are_drawn_as_asked():
    Z = np.random.default_rng(0).normal(size=(50, 2))
    for kind, expected in (("uniform", np.full(16, 1 / 16)), ("lognormal", None)):
        model = ConsistencyModel(
            method="training", n_discretization=16, index_distribution=kind
        )
        plan = make_plan(model, Z, np.random.RandomState(0))
        (pmf,) = grid_pairs(model, plan).pmfs
        expected = lognormal_pmf(plan.levels) if expected is None else expected
        np.testing.assert_allclose(pmf, expected)
