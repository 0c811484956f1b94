"""Losses of beliefs over finitely many outcomes.

Each class is one loss, with

- ``uncertainty(p)``, the least expected loss h[p] over the last axis;
- ``action(p)``, what attains it;
- ``score(p_pred, p_eval)``, the loss expected under `p_eval` of the action for `p_pred`;
- ``size``, of the terms that an uncertainty is a sum of, whose rounding stays;
- ``features(p)``, linear in p, and ``kind``: up to terms linear in p, -h[p] is the convex
  function of this kind (see ``_gains.py``) of the features. Terms that are linear in p
  are the same in expectation before and after a label.
"""

import numpy as np
from scipy.special import entr, xlogy


class LogLoss:
    """Minus the logarithm of the probability of the outcome: entropy."""

    kind = "entropy"
    size = 1.0

    def features(self, p):
        return p

    def uncertainty(self, p):
        return entr(p).sum(axis=-1)

    def action(self, p):
        return p

    def score(self, p_pred, p_eval):
        return -xlogy(p_eval, p_pred).sum(axis=-1)


class Brier:
    """Squared distance of the probabilities from the outcome's."""

    kind = "squares"
    size = 1.0

    def features(self, p):
        return p

    def uncertainty(self, p):
        return (p * (1 - p)).sum(axis=-1)

    def action(self, p):
        return p

    def score(self, p_pred, p_eval):
        return ((p_pred - p_eval) ** 2).sum(axis=-1) + self.uncertainty(p_eval)


class ZeroOne:
    """1 for a wrong class."""

    kind = "largest"
    size = 1.0

    def features(self, p):
        return p

    def uncertainty(self, p):
        return 1 - p.max(axis=-1)

    def action(self, p):
        return p.argmax(axis=-1)

    def score(self, p_pred, p_eval):
        return 1 - _pick(p_eval, self.action(p_pred))


class Cost:
    """Row of a matrix of costs, or the entry of `actions` that the row stands for."""

    kind = "largest"

    def __init__(self, matrix, actions=None):
        self.matrix, self.actions = matrix, actions
        self.size = np.abs(matrix).max()

    def features(self, p):
        return -self._costs(p)

    def _costs(self, p):
        return p @ self.matrix.T

    def uncertainty(self, p):
        return self._costs(p).min(axis=-1)

    def action(self, p):
        row = self._costs(p).argmin(axis=-1)
        return row if self.actions is None else self.actions[row]

    def score(self, p_pred, p_eval):
        return _pick(self._costs(p_eval), self._costs(p_pred).argmin(axis=-1))


class SquaredError:
    """Squared distance from a number."""

    kind = "squares"

    def __init__(self, outcomes):
        self.outcomes = outcomes
        self.centred = outcomes - outcomes.mean()
        self.size = np.finfo(float).eps * (self.centred**2).max()

    def features(self, p):
        return (p @ self.centred)[..., None]

    def uncertainty(self, p):
        return self.score(p, p)

    def action(self, p):
        return p @ self.outcomes

    def score(self, p_pred, p_eval):
        rest = self.centred - (p_pred @ self.centred)[..., None]
        return (p_eval * rest**2).sum(axis=-1)


class WeightedSquaredError:
    """Squared distance times a weight of the outcome."""

    kind = "ratio"
    size = 0.0

    def __init__(self, loss, outcomes):
        self.weight, self.offset = loss.weight(outcomes), outcomes.mean()
        self.centred = outcomes - self.offset

    def features(self, p):
        return np.stack([p @ self.weight, p @ (self.weight * self.centred)], axis=-1)

    def convex(self, features):
        weight, product = features[..., 0], features[..., 1]
        return ratio(product**2, weight)

    def _centre(self, p):
        features = self.features(p)
        # Where nothing has weight, no action has a loss: 0 is as good as any.
        return np.where(
            features[..., 0] > 0,
            ratio(features[..., 1], features[..., 0]),
            -self.offset,
        )

    def uncertainty(self, p):
        return self.score(p, p)

    def action(self, p):
        return self._centre(p) + self.offset

    def score(self, p_pred, p_eval):
        rest = self.centred - self._centre(p_pred)[..., None]
        return (p_eval * self.weight * rest**2).sum(axis=-1)


class Bregman:
    """Divergence of a convex function times a weight of the outcome."""

    kind = "ratio"

    def __init__(self, loss, outcomes):
        self.loss, self.outcomes = loss, outcomes
        self.weight, self.phi = loss.weight(outcomes), loss.convex(outcomes)
        self.size = np.abs(self.weight * self.phi).max()

    def features(self, p):
        return np.stack([p @ self.weight, p @ (self.weight * self.outcomes)], axis=-1)

    def convex(self, features):
        return weighted_phi(self.loss, features)

    def uncertainty(self, p):
        h = p @ (self.weight * self.phi) - self.convex(self.features(p))
        return np.maximum(h, 0)

    def action(self, p):
        features = self.features(p)
        return ratio(features[..., 1], features[..., 0])

    def score(self, p_pred, p_eval):
        losses = self.loss.of(
            *np.broadcast_arrays(self.action(p_pred)[..., None], self.outcomes)
        )
        return (p_eval * losses).sum(axis=-1)


class Crps:
    """Continuous ranked probability score: squared distance of distribution functions."""

    kind = "squares"

    def __init__(self, outcomes):
        self.order = outcomes.argsort()
        self.gaps = np.diff(outcomes[self.order], append=outcomes.max())
        self.size = self.gaps.sum()

    def _cumulative(self, p):
        return p[..., self.order].cumsum(axis=-1)

    def features(self, p):
        return np.sqrt(self.gaps) * self._cumulative(p)

    def uncertainty(self, p):
        return self.score(p, p)

    def action(self, p):
        return p

    def score(self, p_pred, p_eval):
        F, G = self._cumulative(p_pred), self._cumulative(p_eval)
        return ((F - G) ** 2 + np.clip(G * (1 - G), 0, None)) @ self.gaps


class Callable:
    """Uncertainty that a function of the probabilities gives."""

    kind = "ratio"
    size = 0.0

    def __init__(self, function):
        self.function = function

    def features(self, p):
        return p

    def convex(self, features):
        mass = features.sum(axis=-1)
        p = ratio(features, mass[..., None])
        # No mass, no belief: any will do, since its value counts nothing.
        p[mass == 0] = 1 / p.shape[-1]
        return -mass * self.uncertainty(p)

    def uncertainty(self, p):
        h = np.asarray(self.function(p), dtype=float)
        if h.shape != p.shape[:-1] or not np.isfinite(h).all():
            raise ValueError(
                f"loss must return a finite number for each belief: for an array of "
                f"shape {p.shape}, one of shape {p.shape[:-1]}; got shape {h.shape}"
            )
        return h

    def action(self, p):
        raise ValueError(
            "loss must be a name or a loss object: a callable has no action"
        )

    def score(self, p_pred, p_eval):
        return self.action(p_pred)


def pinball(tau, outcomes):
    """Return the pinball loss, whose best action is always one of the outcomes."""
    actions = np.unique(outcomes)
    rest = outcomes - actions[:, None]
    return Cost(np.maximum(tau * rest, (tau - 1) * rest), actions)


def ratio(a, b):
    """Return a/b, and 0 where b is 0."""
    return np.divide(
        a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0
    )


def weighted_phi(loss, features):
    """Return E[w] phi(E[w z]/E[w]) of features E[w] and E[w z] in the last axis."""
    weight, product = features[..., 0], features[..., 1]
    value = np.zeros(weight.shape)
    some = weight > 1e-300  # too small to divide by, and to count
    value[some] = weight[some] * loss.convex(product[some] / weight[some])
    return value


def _pick(values, index):
    """Return one value in each row of the last axis."""
    return np.take_along_axis(values, index[..., None], axis=-1)[..., 0]
