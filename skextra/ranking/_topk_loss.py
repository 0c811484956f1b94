"""The top-k loss of scores, and its gradient."""

import numpy as np

from skextra.ranking._rows import levels, levels_vjp
from skextra.utils import row_blocks


def topk_loss(Z, target, ks, weights):
    """Return the loss of each row, and its gradient in the scores.

    The loss is -log(sum_m weights[m] p(ks[m])), where p(k) is the soft top-k weight,
    at temperature 1, that the class ``target`` gets from a row of scores ``Z``.
    """
    loss, gradient = np.empty(len(Z)), np.empty_like(Z)
    for block in row_blocks(len(Z), 8 * Z.shape[1] * (len(ks) + 8)):
        loss[block], gradient[block] = _block_loss(Z[block], target[block], ks, weights)
    return loss, gradient


def penalised(loss, columns, share, penalty, shape, x):
    """Return the mean loss of linear scores, with squares of x, and its gradient.

    ``x`` holds the coefficients of the columns, of which the squares are weighted by
    half the ``penalty`` of the column, and after them an intercept if it is that long.
    ``share`` are the weights of the rows, of sum 1.
    """
    V = x.reshape(shape)
    coef, intercept = V[: len(penalty)], V[len(penalty) :]
    losses, slopes = loss(columns @ coef + intercept.sum(axis=0))
    slopes *= share[:, None]
    shrink = penalty[:, None] * coef
    gradient = np.vstack([columns.T @ slopes + shrink, slopes.sum(axis=0)])
    value = share @ losses + (shrink * coef).sum() / 2
    return value, gradient[: len(V)].ravel()


def _block_loss(Z, target, ks, weights):
    rows = np.arange(len(Z))
    anchor, rest, saved = levels(np.tile(ks, (len(Z), 1)), -Z, 1.0)
    # The threshold of the k largest scores is -(anchor + rest).
    u = (Z[rows, target][:, None] + anchor) + rest
    tail = np.exp(-np.abs(u)) / 2
    above = u > 0
    log_p = np.where(above, np.log1p(-tail), u - np.log(2)) + np.log(weights)
    top = log_p.max(axis=1, keepdims=True)
    share = np.exp(log_p - top)
    total = share.sum(axis=1, keepdims=True)
    loss = -(top + np.log(total))[:, 0]

    slope = np.where(above, tail / (1 - tail), 1.0)  # of log L
    pull = -share / total * slope
    _, push, _ = levels_vjp(pull, saved)
    gradient = -push
    gradient[rows, target] += pull.sum(axis=1)
    return loss, gradient
