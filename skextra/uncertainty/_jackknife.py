"""Bias and standard error of functions of weighted members, by leaving some out.

Members are taken as independent draws, each with a weight. A plug-in value is off by
about a constant times the sum of squared weights, and leaving a group out shows by how
much. With equal weights and one member a group this is the usual jackknife.
"""

import numpy as np

N_BLOCKS = 10  # of members, where leaving out each on its own would take too long


def groups(weights, n_groups):
    """Return which group each member is in: `n_groups` or fewer, of like weight."""
    by_weight = np.argsort(-weights, kind="stable")
    group = np.empty(len(weights), dtype=int)
    group[by_weight] = np.arange(len(weights)) % min(n_groups, len(weights))
    return group


def without(weights, group, g):
    """Return the weights of the members outside a group, of sum 1."""
    rest = np.where(group == g, 0.0, weights)
    return rest / rest.sum()


def jackknife(value, left_out, weights, group):
    """Return the value without its bias, and its standard error.

    Parameters
    ----------
    value : ndarray of shape (...)
        From all members.
    left_out : ndarray of shape (..., n_groups)
        From the members outside each group.
    weights : ndarray of shape (n_members,)
        Weights of sum 1.
    group : ndarray of shape (n_members,)
        Group of each member.
    """
    n_groups = left_out.shape[-1]
    rest = 1 - np.bincount(group, weights)
    squares = (weights**2).sum()
    squares_left = (squares - np.bincount(group, weights**2)) / rest**2
    # In the mean weighted by what is left, means of members have no bias.
    share = rest / (n_groups - 1)
    factor = squares / (share @ squares_left - squares)
    corrected = value - (left_out @ share - value) * factor
    influence = rest * (value[..., None] - left_out)
    influence -= influence.mean(axis=-1, keepdims=True)
    variance = (influence**2).sum(axis=-1) * n_groups / (n_groups - 1)
    return corrected, np.sqrt(variance)
