"""Expected reductions of uncertainty by labels, from joint tables that are streamed.

The reduction by a label y is ``h[p(z)] - sum_y p(y) h[p(z|y)]``. Up to terms that are
linear in p, which drop out, -h[p] is G(B p, 1) with linear features B and a function G of
them and the mass of the belief that is convex and homogeneous. With the joint table
J_y = p(y) p(z|y) the reduction is then ``sum_y G(B J_y, p(y)) - G(B p, 1)``, and the
features of all tables come from one matrix product.
"""

import numpy as np
from scipy.special import xlogy
from sklearn.utils import gen_batches

from skextra.uncertainty._finite import ratio
from skextra.uncertainty._numba import entropies, largest, squares
from skextra.utils import row_blocks

TABLE_MIB = 2  # what is written and read at once stays in the cache
LARGEST_MIB = 32  # of the tables of one point


def convex(loss, features, mass):
    """Return G of features (..., F) and the masses (...) of the beliefs."""
    if loss.kind == "entropy":
        return xlogy(features, features).sum(axis=-1) - xlogy(mass, mass)
    if loss.kind == "largest":
        return features.max(axis=-1)
    if loss.kind == "squares":
        return ratio((features**2).sum(axis=-1), mass)
    return loss.convex(features)


def tables(loss, joint, mass, out):
    """Write sum_y G of the features of joint tables (n, Y, F, T) to out (n, T)."""
    if loss.kind == "entropy":
        entropies(joint, out)
        out -= xlogy(mass, mass).sum(axis=1)[:, None]
    elif loss.kind == "largest":
        largest(joint, out)
    elif loss.kind == "squares":
        squares(joint, mass, out)
    else:
        out[:] = loss.convex(np.moveaxis(joint, 2, -1)).sum(axis=1)


def gains(loss, labels, features, weights, expand=None):
    """Yield blocks of reductions at targets by the label of a point.

    Parameters
    ----------
    loss : object
        Gives `kind`, and `convex` where the kind is "ratio".
    labels : ndarray of shape (n_pool, n_members, n_labels)
        Probabilities of the labels of each point.
    features : ndarray of shape (n_target, n_members, n_features)
        Features of the beliefs at the targets.
    weights : ndarray of shape (n_members,)
        Weights of the members, of sum 1.
    expand : callable, default=None
        Turns a block of `labels` into another with more labels.

    Yields
    ------
    rows, targets : slice
        Which points and targets.
    gain : ndarray
        Their reductions.
    """
    expand = expand or _same
    n_pool, n_members, _ = labels.shape
    n_labels = expand(labels[:1]).shape[2]
    n_targets, _, n_features = features.shape
    n_terms = n_members + n_labels * n_features
    table_bytes = 8 * n_labels * n_features
    n_at_once = max(1, int(LARGEST_MIB * 2**20) // table_bytes)
    for targets in gen_batches(n_targets, n_at_once):
        part = features[targets]
        width = len(part)
        mean = np.einsum("tkf,k->tf", part, weights)
        before = convex(loss, mean, np.ones(width))
        scale = _scale(loss, part, weights) + np.abs(before)
        right = part.transpose(1, 2, 0) * weights[:, None, None]
        right = right.reshape(n_members, -1)
        point_bytes = max(width * table_bytes, 8 * n_members * n_labels)
        for rows in row_blocks(n_pool, point_bytes, memory=TABLE_MIB):
            left = expand(labels[rows]).transpose(0, 2, 1).reshape(-1, n_members)
            joint = (left @ right).reshape(-1, n_labels, n_features, width)
            gain = np.empty((len(joint), width))
            tables(loss, joint, (left @ weights).reshape(-1, n_labels), gain)
            yield rows, targets, settled(gain - before, scale, n_terms)


def mean_gains(loss, labels, features, weights, target_weights, expand=None):
    """Return the reduction by the label of each point, mean over targets (n_pool,)."""
    mean = np.zeros(len(labels))
    for rows, targets, gain in gains(loss, labels, features, weights, expand):
        mean[rows] += gain @ target_weights[targets]
    return mean


def pairwise_gains(loss, labels, features, weights, expand=None):
    """Return the reduction by each point at each target (n_pool, n_target)."""
    pairs = np.empty((len(labels), len(features)))
    for rows, targets, gain in gains(loss, labels, features, weights, expand):
        pairs[rows, targets] = gain
    return pairs


def settled(difference, scale, n_terms):
    """Return differences that are 0 where rounding alone can have left them.

    Those below 0, which concave uncertainties cannot have, get more room.
    """
    nothing = np.abs(difference) <= 4 * np.finfo(float).eps * n_terms * scale
    nothing |= (difference < 0) & (difference > -1e-12 * n_terms * scale)
    difference[nothing] = 0
    return difference


def _scale(loss, features, weights):
    """Return the size of what reductions at targets are differences of, (n_target,)."""
    each = np.abs(convex(loss, features, np.ones(features.shape[:2])))
    return each @ weights + (loss.kind == "entropy")


def _same(labels):
    return labels
