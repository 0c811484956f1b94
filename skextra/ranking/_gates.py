"""A linear model behind soft top-k gates, and its gradient."""

import numpy as np
from scipy.special import logsumexp

from skextra.ranking._rows import topk, topk_vjp


def gates(theta, k, alpha):
    """Return the soft top-k weights of scores, and what their gradient needs."""
    p, _, saved = topk(theta[None], np.array([float(k)]), np.array([alpha]))
    return p[0], saved


def squared_error(Z, target):
    """Return half the squared error of each row, and its gradient."""
    error = Z - target
    return (error**2).sum(axis=1) / 2, error


def log_loss(Z, target):
    """Return the cross-entropy of each row with one-hot targets, and its gradient."""
    log_sum = logsumexp(Z, axis=1, keepdims=True)
    return (log_sum - Z)[target > 0], np.exp(Z - log_sum) - target


def gated_objective(loss, columns, target, share, k, alpha, ridge, x):
    """Return the mean loss plus ridge of gated columns, and the gradient.

    ``x`` holds the scores of the gates, the coefficients, and the intercept.
    """
    n = columns.shape[1]
    theta, V = x[:n], x[n:].reshape(n + 1, -1)
    coef, intercept = V[:n], V[n]
    p, saved = gates(theta, k, alpha)
    losses, slopes = loss(columns @ (p[:, None] * coef) + intercept, target)
    slopes *= share[:, None]
    pull = columns.T @ slopes
    to_theta, _, _ = topk_vjp((pull * coef).sum(axis=1)[None], None, saved)
    to_coef = p[:, None] * pull + ridge * coef
    value = share @ losses + ridge * (coef**2).sum() / 2
    return value, np.concatenate([to_theta[0], to_coef.ravel(), slopes.sum(axis=0)])


def start(columns, target):
    """Return where to search from: all gates nearly alike.

    Scores fall a little from column to column: equal ones would stay so otherwise.
    """
    n = columns.shape[1]
    x = np.zeros(n + (n + 1) * target.shape[1])
    x[:n] = -1e-3 * np.arange(n) / n
    return x
