"""Losses of denoisers and consistency functions, and the pairs of levels they take.

Levels are float64 tensors on the CPU: neighbours on a grid may be 1e-4 apart.
"""

from math import sqrt

import torch

from skextra.generative._schedule import PAIR_MEAN, PAIR_STD, tuning_ratio

BLOCK = 4096  # rows of a kernel density at a time
EDM_MEAN, EDM_STD = -1.2, 1.2  # of the log levels that a denoiser sees


def squared(difference):
    """Return the squared norms of rows."""
    return difference.square().sum(dim=1)


def pseudo_huber(difference):
    """Return the pseudo-Huber norms of rows (Song and Dhariwal 2024, equation 7)."""
    c = 0.00054 * sqrt(difference.shape[1])
    return (squared(difference) + c**2).sqrt() - c


NORMS = {"squared": squared, "pseudo_huber": pseudo_huber}


def weighted_mean(losses, weights):
    """Return the mean of losses, with weights computed in float64."""
    return (losses * weights.to(losses.dtype).to(losses.device)).mean()


def perturbed(x, t, z):
    """Return x with noise z of level t."""
    return x + t.to(x.dtype).to(x.device)[:, None] * z


def edm_loss(denoiser, x, t, z, y, sigma_data):
    """Return the loss of a denoiser (Karras et al. 2022, table 1)."""
    weights = (t**2 + sigma_data**2) / (t * sigma_data) ** 2
    return weighted_mean(squared(denoiser(perturbed(x, t, z), t, y) - x), weights)


def consistency_loss(f, noisy, t, cleaner, lower, y, norm):
    """Return how far f is from being the same at both ends of a step.

    Parameters
    ----------
    f : Preconditioned
        Consistency function.
    noisy, cleaner : tensors of shape (n, n_features)
        The ends of the step, at levels t and lower.
    t, lower : float64 tensors of shape (n,)
        Levels.
    y : tensor of shape (n,) or None
        Classes.
    norm : callable
        Loss of each row of differences.
    """
    with torch.no_grad():
        target = f(cleaner, lower, y)
        if f.basis is not None:
            target += f.discretization_gap(noisy, t, lower)
    return weighted_mean(norm(f(noisy, t, y) - target), 1 / (t - lower))


def euler_step(noisy, t, lower, denoised):
    """Return the Euler step of the probability-flow equation from t down to lower."""
    share = ((t - lower) / t).to(noisy.dtype).to(noisy.device)[:, None]
    return torch.lerp(noisy, denoised, share)


def kde_denoise(x, t, y=None, *, rows, bandwidth, labels=None):
    """Return the mean of the data given x, for a Gaussian kernel density of rows.

    Parameters
    ----------
    x : tensor of shape (n, n_features)
        Noisy rows.
    t : float64 tensor of shape (n,)
        Their levels.
    y : tensor of shape (n,) or None
        Classes: a row of x belongs to the rows of its class, or to all if none has it.
    rows : tensor of shape (n_rows, n_features)
        Data.
    bandwidth : float
        Standard deviation of the kernel.
    labels : tensor of shape (n_rows,) or None
        Classes of the rows.

    Returns
    -------
    denoised : tensor of shape (n, n_features)
    """
    variance = bandwidth**2 + t**2
    width = (2 * variance).to(x.dtype).to(x.device)[:, None]
    total = x.new_zeros(len(x), 1)
    mean = torch.zeros_like(x)
    highest = x.new_full((len(x), 1), -torch.inf)
    anyone = None if y is None else ~torch.isin(y, labels)
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        distances = torch.cdist(x, some, compute_mode="donot_use_mm_for_euclid_dist")
        logits = -(distances**2) / width
        if y is not None:
            other = y[:, None] != labels[start : start + BLOCK]
            logits = logits.masked_fill(other & ~anyone[:, None], -torch.inf)
        top = torch.maximum(highest, logits.amax(dim=1, keepdim=True))
        shift = torch.where(top.isfinite(), top, 0.0)
        weights = (logits - shift).exp()
        old = (highest - shift).exp()
        total = old * total + weights.sum(dim=1, keepdim=True)
        mean = old * mean + weights @ some
        highest = top
    ratio = (bandwidth**2 / variance).to(x.dtype).to(x.device)[:, None]
    return torch.lerp(mean / total, x, ratio)


class GridPairs:
    """Neighbours on grids that become finer in the course of training.

    Parameters
    ----------
    grids : list of tensors
        Levels of each grid.
    pmfs : list of tensors
        Probabilities of the steps of each grid.
    starts : list of int
        Iteration at which each grid begins.
    """

    def __init__(self, grids, pmfs, starts):
        self.grids, self.pmfs, self.starts = grids, pmfs, starts

    def __call__(self, iteration, n):
        """Draw n steps: return their upper and lower levels."""
        stage = sum(start <= iteration for start in self.starts) - 1
        grid = self.grids[stage]
        index = torch.multinomial(self.pmfs[stage], n, replacement=True)
        return grid[index + 1], grid[index]


class TuningPairs:
    """Levels, and a lower one for each that comes closer in the course of training.

    Parameters
    ----------
    n_iter : int
        Iterations of the training.
    doublings : int
        How often the distance is halved, at equal intervals.
    low, high : float
        Range of the levels.
    """

    def __init__(self, n_iter, doublings, low, high):
        self.n_iter, self.doublings, self.low, self.high = n_iter, doublings, low, high

    def __call__(self, iteration, n):
        """Draw n levels: return them and the lower ones."""
        stage = 1 + iteration * self.doublings // self.n_iter
        t = lognormal_levels(n, PAIR_MEAN, PAIR_STD)
        # A step from the least level would have no length.
        t = t.clamp(self.low * 1.001, self.high)
        ratio = torch.from_numpy(tuning_ratio(t.numpy(), stage))
        return t, (t * (1 - ratio)).clamp(min=self.low)


def lognormal_levels(n, mean, std):
    """Draw n levels whose logarithm is normal."""
    return torch.exp(mean + std * torch.randn(n, dtype=torch.float64))


class Objective:
    """What a net minimises: counts its batches, and hides some of the classes.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    """

    hidden = 0.1  # share of rows that are trained without their class

    def __init__(self, n_classes):
        self.n_classes, self.iteration = n_classes, -1

    def __call__(self, module, x, y):
        """Return the loss of a batch."""
        self.iteration += 1
        if y is not None:
            kept = torch.rand(y.shape) >= self.hidden
            y = torch.where(kept.to(y.device), y, self.n_classes)
        return self.loss(module, x, torch.randn_like(x), y)


class DenoisingObjective(Objective):
    """The loss of a denoiser."""

    def __init__(self, n_classes, sigma_data, low, high):
        super().__init__(n_classes)
        self.sigma_data, self.range = sigma_data, (low, high)

    def loss(self, module, x, z, y):
        """Return the loss at random levels."""
        t = lognormal_levels(len(x), EDM_MEAN, EDM_STD).clamp(*self.range)
        return edm_loss(module, x, t, z, y, self.sigma_data)


class ConsistencyObjective(Objective):
    """The loss of a consistency function.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    pairs : callable
        Draws the ends of steps.
    norm : {"squared", "pseudo_huber"}
        Loss of the differences.
    denoise : callable, default=None
        Denoiser whose Euler steps are followed; None takes the noise that was added.
    """

    def __init__(self, n_classes, pairs, norm, denoise=None):
        super().__init__(n_classes)
        self.pairs, self.norm, self.denoise = pairs, norm, denoise

    def loss(self, module, x, z, y):
        """Return the loss over random steps."""
        t, lower = self.pairs(self.iteration, len(x))
        noisy = perturbed(x, t, z)
        if self.denoise is None:
            cleaner = perturbed(x, lower, z)
        else:
            with torch.no_grad():
                cleaner = euler_step(noisy, t, lower, self.denoise(noisy, t, y))
        args = noisy, t, cleaner, lower, y, NORMS[self.norm]
        return consistency_loss(module, *args)
