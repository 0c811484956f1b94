"""Losses of beliefs that are mixtures of normal distributions, one of each member.

Each class is one loss, with ``uncertainty(mean, var, weights)`` of mixtures (n, K), the
``action`` that attains it, ``alone(mean, var)``, the uncertainty of each member, and
``features(mean, var, weights, n_cells)`` as in ``_finite.py``: (n, K, F), of which -h is
the convex function of its ``kind``, up to terms linear in the belief. Where the features
are values on a grid, this has about `n_cells` points.
"""

from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri, roots_hermitenorm, roots_laguerre
from scipy.stats import norm

from skextra.uncertainty._finite import ratio, weighted_phi
from skextra.uncertainty._numba_mixtures import crps, entropy
from skextra.utils import row_blocks

N_NODES = 64
NODES, NODE_WEIGHTS = roots_hermitenorm(N_NODES)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
FEW_NODES, FEW_WEIGHTS = roots_hermitenorm(16)
FEW_WEIGHTS = FEW_WEIGHTS / FEW_WEIGHTS.sum()
TAIL_NODES, TAIL_WEIGHTS = roots_laguerre(32)
FAR_BELOW, FAR_ABOVE = -6.0, 40.0  # standard deviations of 0, see positive_moments


def moments(mean, var, weights):
    """Return the mean of mixtures (n, K) and the two parts of their variance (n,)."""
    # From the first member, so that equal members have exactly no variance.
    rest = mean - mean[:, :1]
    rest -= (rest @ weights)[:, None]
    return mean @ weights, var @ weights, rest**2 @ weights


def grid(mean, var, weights, levels, offsets):
    """Return points near quantiles of mixtures, and others in even steps, (n, 1, L).

    The first are those of a few points of each member, and follow the mixture where a
    member is far from the others, or much wider. The others, at offsets from the mean in
    standard deviations of the mixture, lie in gaps between members, too.
    """
    points = mean[..., None] + np.sqrt(var)[..., None] * FEW_NODES
    points = points.reshape(len(mean), -1)
    mass = np.outer(weights, FEW_WEIGHTS).ravel()
    order = points.argsort(axis=1)
    points = np.take_along_axis(points, order, axis=1)
    middle = mass[order].cumsum(axis=1) - mass[order] / 2
    pairs = zip(middle, points, strict=True)
    near = np.array([np.interp(levels, *pair) for pair in pairs])
    centre, within, between = moments(mean, var, weights)
    even = centre[:, None] + np.sqrt(within + between)[:, None] * offsets
    return np.sort(np.concatenate([near, even], axis=1), axis=1)[:, None]


def standard(z, mean, std):
    """Return (z - mean)/std, infinite where std is 0 and 0 where z is the mean, too."""
    rest = z - mean
    out = np.where(rest > 0, np.inf, np.where(rest < 0, -np.inf, 0.0))
    return np.divide(rest, std, out=out, where=np.broadcast_to(std > 0, rest.shape))


def cell_masses(mean, var, weights, n_cells):
    """Return what each member gives to cells of about equal mass, (n, K, n_cells)."""
    n_even = n_cells // 2
    levels = np.arange(1, n_cells - n_even) / (n_cells - n_even)
    offsets = ndtri(np.arange(1, n_even + 1) / (n_even + 1))
    below = masses_below(grid(mean, var, weights, levels, offsets), mean, var)
    return np.diff(below, axis=-1, prepend=0.0, append=1.0)


def masses_below(points, mean, var):
    """Return what each member gives to outcomes below points (n, 1, L), (n, K, L)."""
    return ndtr(standard(points, mean[..., None], np.sqrt(var)[..., None]))


class SquaredError:
    """Squared distance from a number: variance."""

    kind = "squares"

    def uncertainty(self, mean, var, weights):
        _, within, between = moments(mean, var, weights)
        return within + between

    def alone(self, mean, var):
        return var

    def action(self, mean, var, weights):
        return mean @ weights

    def features(self, mean, var, weights, n_cells):
        rest = mean - mean[:, :1]
        return (rest - (rest @ weights)[:, None])[..., None]


class Pinball:
    """Pinball loss, `factor` times: the action is a quantile."""

    kind = "largest"

    def __init__(self, tau, factor=1.0):
        self.tau, self.factor = tau, factor

    def _expected(self, action, mean, var):
        """Return the loss expected of an action under normal distributions."""
        std = np.sqrt(var)
        r = standard(action, mean, std)
        rest = (mean - action) * (self.tau - ndtr(r))
        return self.factor * (rest + std * norm.pdf(r))

    def uncertainty(self, mean, var, weights):
        quantile = self.action(mean, var, weights)[:, None]
        return self._expected(quantile, mean, var) @ weights

    def alone(self, mean, var):
        return self.factor * norm.pdf(ndtri(self.tau)) * np.sqrt(var)

    def action(self, mean, var, weights):
        """Return the quantile by bisection: it lies between those of the members."""
        std = np.sqrt(var)
        each = mean + std * ndtri(self.tau)
        low, high = each.min(axis=1), each.max(axis=1)
        for _ in range(60):
            middle = (low + high) / 2
            below = ndtr(standard(middle[:, None], mean, std)) @ weights < self.tau
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    def features(self, mean, var, weights, n_cells):
        # A label can shift the quantile by little or by much: actions at distances in
        # geometric progression, of mass and of standard deviations, find the best to a
        # few percent.
        mass = np.geomspace(0.002, 0.998, n_cells // 2)
        below, above = self.tau * (1 - mass), self.tau + (1 - self.tau) * mass
        distance = np.geomspace(0.005, 3.0, n_cells // 2)
        quantile = self.action(mean, var, weights)
        offsets = np.concatenate([-distance, [0.0], distance])
        actions = grid(mean, var, weights, np.concatenate([below, above]), [])
        _, within, between = moments(mean, var, weights)
        even = quantile[:, None] + np.sqrt(within + between)[:, None] * offsets
        actions = np.concatenate([actions, even[:, None]], axis=2)
        return -self._expected(actions, mean[..., None], var[..., None])


class Crps:
    """Continuous ranked probability score: half the mean distance of two outcomes."""

    kind = "squares"

    def uncertainty(self, mean, var, weights):
        return crps(mean, var, weights)

    def alone(self, mean, var):
        return np.sqrt(var / np.pi)

    def action(self, mean, var, weights):
        return mean @ weights

    def features(self, mean, var, weights, n_cells):
        # The integral of F (1 - F) by the trapezoidal rule.
        n_even = n_cells // 2
        levels = ndtr(np.linspace(-4.0, 4.0, n_cells - n_even))
        points = grid(mean, var, weights, levels, np.linspace(-5.0, 5.0, n_even))
        gaps = np.diff(points, axis=2) / 2
        ends = np.zeros_like(gaps[..., :1])
        gaps = np.concatenate([ends, gaps], 2) + np.concatenate([gaps, ends], 2)
        return np.sqrt(gaps) * masses_below(points, mean, var)


class LogLoss:
    """Minus the logarithm of the density: differential entropy."""

    kind = "entropy"

    def __init__(self, approx=None):
        self.approx = approx

    def uncertainty(self, mean, var, weights):
        if self.approx == "gaussian":
            return self.alone(None, SquaredError().uncertainty(mean, var, weights))
        return entropy(mean, var, weights)

    def alone(self, mean, var):
        return np.log(2 * np.pi * np.e * var) / 2

    def action(self, mean, var, weights):
        return mean @ weights

    def features(self, mean, var, weights, n_cells):
        return cell_masses(mean, var, weights, n_cells)


class Bregman:
    """Divergence of a convex function times a weight; expectations by 64 nodes."""

    kind = "ratio"

    def __init__(self, loss):
        self.loss = loss

    def _moments(self, mean, var):
        """Return E[w], E[w z] and E[w phi(z)] of members, (..., 3)."""
        z = mean[..., None] + np.sqrt(var)[..., None] * NODES
        w, phi = self.loss.weight(z), self.loss.convex(z)
        return np.stack([w, w * z, w * phi], axis=-2) @ NODE_WEIGHTS

    def _mixed(self, mean, var, weights):
        out = np.empty((len(mean), 3))
        for rows in row_blocks(len(mean), 3 * N_NODES * mean[0].nbytes):
            parts = self._moments(mean[rows], var[rows])
            out[rows] = np.einsum("nkf,k->nf", parts, weights)
        return out

    def uncertainty(self, mean, var, weights):
        mixed = self._mixed(mean, var, weights)
        return np.maximum(mixed[:, 2] - self.convex(mixed), 0)

    def alone(self, mean, var):
        flat = mean.reshape(-1, 1), var.reshape(-1, 1)
        return self.uncertainty(*flat, np.ones(1)).reshape(mean.shape)

    def action(self, mean, var, weights):
        mixed = self._mixed(mean, var, weights)
        return ratio(mixed[:, 1], mixed[:, 0])

    def features(self, mean, var, weights, n_cells):
        return self._moments(mean, var)[..., :2]

    def convex(self, features):
        return weighted_phi(self.loss, features)


class WeightedSquaredError:
    """Squared error times a weight of the outcome.

    Moments are taken about a centre, so that far from 0 nothing cancels.
    """

    kind = "ratio"

    def __init__(self, loss):
        self.loss = loss
        by_nodes = partial(node_moments, loss.weight)
        self._about = positive_moments if loss.has_closed_form else by_nodes

    def _mixed(self, mean, var, weights, centre):
        out = np.empty((len(mean), 3))
        for rows in row_blocks(len(mean), 3 * N_NODES * mean[0].nbytes):
            parts = self._about(mean[rows], var[rows], centre[rows])
            out[rows] = np.einsum("nkf,k->nf", parts, weights)
        return out

    def uncertainty(self, mean, var, weights):
        return self._mixed(mean, var, weights, self.action(mean, var, weights))[:, 2]

    def alone(self, mean, var):
        flat = mean.reshape(-1, 1), var.reshape(-1, 1)
        return self.uncertainty(*flat, np.ones(1)).reshape(mean.shape)

    def action(self, mean, var, weights):
        centre = mean @ weights
        mixed = self._mixed(mean, var, weights, centre)
        best = centre + ratio(mixed[:, 1], mixed[:, 0])
        # Where nothing has weight, no action has a loss.
        return np.where(mixed[:, 0] > 1e-305, best, 0.0)

    def features(self, mean, var, weights, n_cells):
        return self._about(mean, var, mean @ weights)[..., :2]

    def convex(self, features):
        return ratio(features[..., 1] ** 2, features[..., 0])


def node_moments(weight, mean, var, centre):
    """Return E[w (z - centre)^j], j = 0, 1, 2, of normal distributions, (n, K, 3)."""
    z = mean[..., None] + np.sqrt(var)[..., None] * NODES
    rest = z - centre[:, None, None]
    w = weight(z)
    return np.stack([w, w * rest, w * rest**2], axis=-2) @ NODE_WEIGHTS


def positive_moments(mean, var, centre):
    """Return E[max(z, 0) (z - centre)^j], j = 0, 1, 2, of normal distributions.

    With r = mean/std, y = z/std and b = centre/std they are std^(j+1) times the integral
    of y (y - b)^j phi(y - r) over y > 0.
    """
    std = np.sqrt(var)
    r = standard(mean, 0.0, std)
    out = np.empty((*mean.shape, 3))
    below, above = r < FAR_BELOW, r > FAR_ABOVE
    near = ~(below | above)
    centre = np.broadcast_to(centre[:, None], mean.shape)

    # Far above 0 the cut at 0 is beyond what a float64 holds.
    m, s, rest = mean[above], var[above], mean[above] - centre[above]
    out[above] = np.stack([m, m * rest + s, m * (rest**2 + s) + 2 * rest * s], axis=-1)

    if near.any():
        s, q = std[near], r[near]
        b = ratio(centre[near], s)
        C, Z = ndtr(q), norm.pdf(q)
        n1, n2 = q * C + Z, (q**2 + 1) * C + q * Z
        n3 = (q**3 + 3 * q) * C + (q**2 + 2) * Z
        parts = [s * n1, s**2 * (n2 - b * n1), s**3 * (n3 - 2 * b * n2 + b**2 * n1)]
        out[near] = np.stack(parts, axis=-1)

    if below.any():
        # phi(y - r) = phi(r) exp(-|r| y) exp(-y^2/2), by nodes in u = |r| y.
        s, q = std[below][:, None], np.abs(r[below])[:, None]
        y = TAIL_NODES / np.where(np.isinf(q), 1.0, q)
        rest = s * y - centre[below][:, None]
        w = TAIL_WEIGHTS * s * y * np.exp(-(y**2) / 2) * norm.pdf(q) / q
        out[below] = np.stack([(w * rest**j).sum(axis=1) for j in range(3)], axis=-1)
    return out
