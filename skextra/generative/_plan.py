"""The course of a training, from parameters and data."""

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import pairwise_distances
from sklearn.utils import Bunch

from skextra.generative._schedule import (
    FEWEST_STEPS,
    grid,
    required_discretization,
    rounded_up,
    tuning_chain,
    tuning_doublings,
)

EPOCH = 100  # batches, after which callbacks are told
MOST_BANDWIDTH_ROWS, MOST_LEFT_OUT = 5000, 1000


def make_plan(model, Z, rng):
    """Return the iterations, the levels, and what the data say about the networks.

    Parameters
    ----------
    model : ConsistencyModel
        Holds the parameters.
    Z : ndarray of shape (n_samples, n_columns)
        Training rows in the network's space.
    rng : RandomState
        Chooses rows.

    Returns
    -------
    plan : Bunch
        With `n_iter` and `teacher_iter`, the batches of each training, 0 for none;
        `first_steps` and `levels`, the size of the first grid and the last grid;
        `doublings`, those of tuning; `normal`, deviations and axes of the rows, or
        None; and `bandwidth` of a kernel density, or None.
    """
    n_iter = model.max_iter
    if n_iter == "auto":
        n_iter = min(4000, max(100, 4 * len(Z)))
    teacher_iter = 0
    if model.method == "tuning" or model.method == "distillation" and trains_edm(model):
        teacher_iter = model.teacher_iter or n_iter
    ends = model.sigma_min, model.sigma_max
    n_steps = first_steps = model.n_discretization
    deviations = axes = None
    if n_steps == "auto" or model.gaussian_preconditioning:
        deviations, axes = principal_axes(Z)
    if n_steps == "auto":
        scale = smallest_scale(model, deviations)
        # Tuning, with levels of its own, takes as many as the default schedule needs.
        tunes = model.method == "tuning"
        kind, rho = ("decay", 7.0) if tunes else (model.schedule, model.rho)
        n_steps, first_steps = theory_steps(model, scale, kind, rho), FEWEST_STEPS
    doublings = None
    if model.method == "tuning":
        doublings = tuning_doublings(n_steps, *ends)
        levels = tuning_chain(doublings, *ends)
    else:
        levels = grid(n_steps, model.schedule, model.rho, *ends)
    uses_kde = model.method == "distillation" and not trains_edm(model)
    return Bunch(
        n_iter=whole_epochs(n_iter),
        teacher_iter=whole_epochs(teacher_iter),
        first_steps=first_steps,
        levels=levels,
        doublings=doublings,
        normal=(deviations, axes) if model.gaussian_preconditioning else None,
        bandwidth=kde_bandwidth(Z, rng) if uses_kde else None,
    )


def trains_edm(model):
    """Whether a teacher is trained where there is one."""
    return model.teacher == "edm"


def epochs(n_iter):
    """Return the number of epochs, and of batches in each."""
    n_epochs = -(-n_iter // EPOCH)
    return n_epochs, n_iter // max(n_epochs, 1)


def whole_epochs(n_iter):
    """Return the number of batches without a rest: at most 1 % less, of many."""
    return int(np.prod(epochs(n_iter)))


def smallest_scale(model, deviations):
    """Return the least deviation of the rows in any direction, in the network's space."""
    varying = deviations[deviations > 1e-6 * deviations.max()]
    ratio = varying.min() / varying.max() if varying.size else 1.0
    return max(model.sigma_data * ratio, 10 * model.sigma_min)


def theory_steps(model, scale, kind, rho):
    """Return the number of steps of a grid for the tolerance at this scale."""
    return rounded_up(
        required_discretization(
            model.tol,
            scale,
            kind,
            rho=max(rho, 1.0),
            sigma_min=model.sigma_min,
            sigma_max=model.sigma_max,
        )
    )


def principal_axes(Z):
    """Return the standard deviations of rows along the axes of their covariance."""
    covariance = np.cov(Z, rowvar=False, ddof=0).reshape(Z.shape[1], Z.shape[1])
    variances, axes = np.linalg.eigh(covariance)
    return np.sqrt(np.maximum(variances, 0.0)), axes


def kde_bandwidth(Z, rng):
    """Return the bandwidth with the largest leave-one-out likelihood.

    Of more than 1000 rows, 1000 random ones are left out in turn, of at most 5000.
    """
    n, d = Z.shape
    rows = Z[rng.permutation(n)[:MOST_BANDWIDTH_ROWS]]
    left_out = rows[:MOST_LEFT_OUT]
    squares = pairwise_distances(left_out, rows, metric="sqeuclidean")
    np.fill_diagonal(squares, np.inf)
    widths = np.geomspace(0.02, 1.0, 18) * max(Z.std(), 1e-3)
    scores = [
        logsumexp(-squares / (2 * h**2), axis=1).mean() - d * np.log(h) for h in widths
    ]
    # More rows want a narrower kernel, by Scott's rule.
    return float(widths[np.argmax(scores)] * (len(rows) / n) ** (1 / (d + 4)))
