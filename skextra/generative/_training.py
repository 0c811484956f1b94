"""What the training of a consistency model is made of, from its parameters."""

from copy import deepcopy
from functools import partial

import numpy as np
import torch
from skorch.callbacks import Callback, LRScheduler
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.optim.swa_utils import get_ema_multi_avg_fn

from skextra.generative._losses import (
    ConsistencyObjective,
    DenoisingObjective,
    GridPairs,
    TuningPairs,
    kde_denoise,
)
from skextra.generative._modules import Preconditioned, ResidualMLP, UNet
from skextra.generative._schedule import doubling_steps, grid, lognormal_pmf


class Averaging(Callback):
    """Keep the exponential moving average of the weights.

    Parameters
    ----------
    decay : float
        Share of the old average that a step keeps; less in the first steps.
    """

    def __init__(self, decay):
        self.decay = decay

    def on_train_begin(self, net, **kwargs):
        """Begin with the weights as they are."""
        self.step, self.module = 0, deepcopy(net.module_).requires_grad_(False)
        # AveragedModel of torch looks for all parameters anew in each step, which takes
        # as long as the step itself.
        self.pairs = list(self.module.parameters()), list(net.module_.parameters())

    @torch.no_grad()
    def on_batch_end(self, net, training=False, **kwargs):
        """Move the averages toward the weights."""
        if training:
            decay = min(self.decay, (1 + self.step) / (10 + self.step))
            get_ema_multi_avg_fn(decay)(*self.pairs, self.step)
            self.step += 1


def averaged_module(net):
    """Return the module of a net with averaged weights."""
    return dict(net.callbacks_)["averaging"].module


def callbacks(decay, n_iter):
    """Return what the training of a net needs: averaging, and a cosine of the rate."""
    cosine = LRScheduler(CosineAnnealingLR, T_max=n_iter, step_every="batch")
    return [("averaging", Averaging(decay)), ("cosine", cosine)]


def make_network(model, n_columns, n_classes):
    """Return a network for rows, or for images."""
    sizes = list(model.hidden_layer_sizes)
    if model.input_shape is None:
        return ResidualMLP(n_columns, sizes, n_classes)
    return UNet(tuple(model.input_shape), sizes, n_classes)


def precondition(network, model, plan, sigma_min):
    """Return a consistency function around a network, or a denoiser for sigma_min=0."""
    if plan.normal is None:
        return Preconditioned(network, model.sigma_data, sigma_min)
    deviations, axes = plan.normal
    axes = torch.tensor(axes, dtype=torch.float32)
    return Preconditioned(network, deviations, sigma_min, axes)


def teacher(model, plan, n_columns, n_classes):
    """Return a denoiser and its objective."""
    module = precondition(make_network(model, n_columns, n_classes), model, plan, 0.0)
    levels = model.sigma_min, model.sigma_max
    return module, DenoisingObjective(n_classes, model.sigma_data, *levels)


def student(model, plan, data, n_classes, teacher):
    """Return a consistency function and its objective.

    `data` holds the rows and their classes, `teacher` the trained one or None.
    """
    rows, labels = data
    if teacher is None:
        network = make_network(model, rows.shape[1], n_classes)
    else:
        network = deepcopy(teacher.network).requires_grad_(True)
    module = precondition(network, model, plan, model.sigma_min)
    denoise = None
    if model.method == "distillation":
        denoise = teacher
        if teacher is None:
            denoise = partial(
                kde_denoise, rows=rows, bandwidth=plan.bandwidth, labels=labels
            )
    if model.method == "tuning":
        levels = model.sigma_min, model.sigma_max
        pairs = TuningPairs(plan.n_iter, plan.doublings, *levels)
    else:
        pairs = grid_pairs(model, plan)
    return module, ConsistencyObjective(n_classes, pairs, model.loss, denoise)


def grid_pairs(model, plan):
    """Return the steps of grids that double, or of one grid if the user gave its size."""
    ends = model.schedule, model.rho, model.sigma_min, model.sigma_max
    steps, starts = doubling_steps(plan.n_iter, plan.first_steps, len(plan.levels) - 1)
    grids = [grid(n, *ends) for n in steps]
    if model.index_distribution == "lognormal":
        pmfs = [lognormal_pmf(levels) for levels in grids]
    else:
        pmfs = [np.full(n, 1 / n) for n in steps]
    return GridPairs(
        [torch.from_numpy(levels) for levels in grids],
        [torch.from_numpy(pmf) for pmf in pmfs],
        starts,
    )
