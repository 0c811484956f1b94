"""Losses with a parameter, for outcomes that are numbers."""

from numbers import Real

import numpy as np


class PinballLoss:
    """Loss whose best prediction is a quantile.

    An outcome above the prediction costs `tau` for each unit of difference, one below
    it ``1 - tau``.

    Parameters
    ----------
    tau : float, default=0.5
        Level of the quantile, between 0 and 1, without these.

    Raises
    ------
    ValueError
        If `tau` is not between 0 and 1.

    Examples
    --------
    >>> from skextra.uncertainty import PinballLoss, optimal_action
    >>> optimal_action([[0.5, 0.3, 0.2]], PinballLoss(0.7), outcomes=[0, 10, 20])
    array([10.])
    """

    def __init__(self, tau=0.5):
        if not (isinstance(tau, Real) and 0 < tau < 1):
            raise ValueError(f"tau must be a number between 0 and 1; got {tau!r}")
        self.tau = tau

    def __repr__(self):
        return f"PinballLoss({self.tau!r})"

    def of(self, action, outcome):
        """Return the loss of predictions, elementwise.

        Parameters
        ----------
        action : array-like
            Predictions.

        outcome : array-like
            What came.

        Returns
        -------
        loss : ndarray
            Losses.
        """
        rest = np.asarray(outcome) - np.asarray(action)
        return np.where(rest > 0, self.tau * rest, (self.tau - 1) * rest)


class BregmanLoss:
    """Divergence of a convex function, times a weight that depends on the outcome.

    The loss of the prediction a is ``w(z) (phi(z) - phi(a) - phi'(a) (z - a))``. The best
    prediction is ``E[w z] / E[w]`` whatever phi is. Squared errors have ``phi = z^2``,
    the generalised Kullback-Leibler divergence ``phi = z log z``, and the Itakura-Saito
    divergence ``phi = -log z``.

    Parameters
    ----------
    phi : callable
        Convex function, elementwise on an array.

    grad : callable, default=None
        Derivative of `phi`, which only the loss of a given prediction needs:
        :func:`score_decomposition` and :func:`make_loss_scorer`.

    w : callable, default=None
        Weight of an outcome, at least 0, elementwise on an array; by default 1.

    Raises
    ------
    TypeError
        If one of them is not callable.

    Examples
    --------
    >>> import numpy as np
    >>> from skextra.uncertainty import BregmanLoss, predictive_uncertainty
    >>> itakura_saito = BregmanLoss(lambda z: -np.log(z), grad=lambda z: -1 / z)
    >>> predictive_uncertainty([[0.5, 0.5]], itakura_saito, outcomes=[1, 4]).round(4)
    array([0.2231])
    """

    def __init__(self, phi, grad=None, w=None):
        for name, value in (("phi", phi), ("grad", grad), ("w", w)):
            if not (callable(value) or (value is None and name != "phi")):
                raise TypeError(f"{name} must be callable; got {value!r}")
        self.phi = phi
        self.grad = grad
        self.w = w

    def __repr__(self):
        return f"BregmanLoss({self.phi!r}, grad={self.grad!r}, w={self.w!r})"

    def weight(self, z):
        """Return the weights of outcomes.

        Parameters
        ----------
        z : ndarray
            Outcomes.

        Returns
        -------
        weights : ndarray of the shape of z
            Their weights.

        Raises
        ------
        ValueError
            If one is negative, not finite, or of another shape.
        """
        if self.w is None:
            return np.ones_like(z, dtype=float)
        weights = _values(self.w, z, "w")
        if (weights < 0).any():
            raise ValueError(
                f"w must not be negative; got {weights.min()} at the outcome "
                f"{z.flat[weights.argmin()]}"
            )
        return weights

    def convex(self, z):
        """Return phi.

        Parameters
        ----------
        z : ndarray
            Outcomes or predictions.

        Returns
        -------
        phi : ndarray of the shape of z
            Values of phi.

        Raises
        ------
        ValueError
            If one is not finite, or of another shape.
        """
        return _values(self.phi, z, "phi")

    def of(self, action, outcome):
        """Return the loss of predictions, elementwise.

        Parameters
        ----------
        action : array-like
            Predictions.

        outcome : array-like
            What came, of the same shape.

        Returns
        -------
        loss : ndarray
            Losses.

        Raises
        ------
        ValueError
            If `grad` is missing, or a function has a value that is not finite.
        """
        if self.grad is None:
            raise ValueError("the loss of a given prediction needs grad of BregmanLoss")
        a, z = np.asarray(action, float), np.asarray(outcome, float)
        rest = self.convex(z) - self.convex(a) - _values(self.grad, a, "grad") * (z - a)
        return self.weight(z) * rest


class WeightedSquaredError(BregmanLoss):
    """Squared error times a weight that depends on the outcome.

    Parameters
    ----------
    w : callable or "positive_part"
        Weight of an outcome, at least 0, elementwise on an array. "positive_part" is
        ``max(z, 0)``, with exact expectations also under normal distributions.

    Raises
    ------
    TypeError
        If `w` is neither callable nor "positive_part".

    Examples
    --------
    >>> from skextra.uncertainty import WeightedSquaredError, predictive_uncertainty
    >>> loss = WeightedSquaredError("positive_part")  # what is below 0 does not matter
    >>> predictive_uncertainty([[0.5, 0.5, 0.0]], loss, outcomes=[-1, 1, 2])
    array([0.])
    """

    def __init__(self, w):
        is_name = isinstance(w, str) and w == "positive_part"
        if not (callable(w) or is_name):
            raise TypeError(f'w must be callable or "positive_part"; got {w!r}')
        super().__init__(np.square, _twice, _positive_part if is_name else w)

    def __repr__(self):
        w = "positive_part" if self.w is _positive_part else self.w
        return f"WeightedSquaredError({w!r})"

    @property
    def has_closed_form(self):
        """Return whether expectations under normal distributions are exact."""
        return self.w in (None, _positive_part)

    def of(self, action, outcome):
        """Return the loss of predictions, elementwise.

        Parameters
        ----------
        action : array-like
            Predictions.

        outcome : array-like
            What came, of the same shape.

        Returns
        -------
        loss : ndarray
            Losses.
        """
        z = np.asarray(outcome, float)
        return self.weight(z) * (z - np.asarray(action, float)) ** 2


def _positive_part(z):
    return np.maximum(z, 0.0)


def _twice(z):
    return 2 * z


def _values(function, z, name):
    """Return a user's function of outcomes, which must be finite and of their shape."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(z), dtype=float)
    if values.shape != z.shape:
        raise ValueError(
            f"{name} must return an array of the shape it is given, {z.shape}; "
            f"got {values.shape}"
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise ValueError(
            f"{name} must be finite at outcomes and predictions; got {values[wrong][0]} at "
            f"{z[wrong][0]}"
        )
    return values
