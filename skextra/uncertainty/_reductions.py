"""What labels are expected to reduce."""

from functools import partial

import numpy as np
from sklearn.utils import Bunch

from skextra.uncertainty._functions import warn_of_negative
from skextra.uncertainty._gains import mean_gains, pairwise_gains
from skextra.uncertainty._inputs import (
    count,
    finite_loss,
    members,
    pair,
    require_several,
    shares,
)
from skextra.uncertainty._jackknife import N_BLOCKS, groups, jackknife, without
from skextra.uncertainty._states import count_vectors, repeated
from skextra.utils import row_blocks


def epig(p_pool, p_target, *, weights=None, target_weights=None):
    """Return how much a label is expected to tell about the outcomes at targets.

    The expected predictive information gain in nats, mean over the targets:
    :func:`expected_uncertainty_reduction` with the log loss.

    Parameters
    ----------
    p_pool : array-like of shape (n_pool, n_members, n_classes)
        Probabilities of each member where a label could be bought.

    p_target : array-like of shape (n_target, n_members, n_target_classes)
        Probabilities of the same members where predictions will be needed. Their
        classes can be others.

    weights : array-like of shape (n_members,), default=None
        Weights of the members; by default equal.

    target_weights : array-like of shape (n_target,), default=None
        Weights of the targets; by default equal.

    Returns
    -------
    information : ndarray of shape (n_pool,)
        Not above the BALD of the point, nor the mean BALD of the targets.

    Raises
    ------
    ValueError
        As :func:`expected_uncertainty_reduction`.

    Examples
    --------
    >>> from skextra.uncertainty import epig
    >>> same, other = [[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.9, 0.1]]
    >>> epig([same, other], [same]).round(4)
    array([0.2218, 0.    ])
    """
    return expected_uncertainty_reduction(
        p_pool, p_target, weights=weights, target_weights=target_weights
    )


def expected_uncertainty_reduction(
    p_pool,
    p_target,
    loss="log_loss",
    *,
    cost_matrix=None,
    outcomes=None,
    weights=None,
    target_weights=None,
    pairwise=False,
    n_steps=1,
    return_se=False,
):
    """Return by how much a label is expected to reduce uncertainty at targets.

    The label at a point of the pool is drawn from the model itself, and the weights of
    the members are multiplied by its likelihood. Neither is what happens when a label is
    bought and a model is trained again; the value is exact for an exact Bayesian whose
    posterior the members are.

    Points times targets are worked on in blocks, so that a pool of any size takes little
    memory beside its own.

    Read more in the :ref:`User Guide <uncertainty>`.

    Parameters
    ----------
    p_pool : array-like of shape (n_pool, n_members, n_classes)
        Probabilities of each member where a label could be bought.

    p_target : array-like of shape (n_target, n_members, n_target_classes)
        Probabilities of the same members where predictions will be needed. Their
        classes can be others.

    loss : str, loss object or callable, default="log_loss"
        Loss at the targets, see :func:`predictive_uncertainty`.

    cost_matrix : array-like of shape (n_actions, n_target_classes), default=None
        Cost of each action for each class, for ``loss="cost"``.

    outcomes : array-like of shape (n_target_classes,), default=None
        The numbers that the classes stand for, for losses of numbers.

    weights : array-like of shape (n_members,), default=None
        Weights of the members; by default equal.

    target_weights : array-like of shape (n_target,), default=None
        Weights of the targets; by default equal.

    pairwise : bool, default=False
        Whether to return the reduction at each target instead of the mean.

    n_steps : int, default=1
        Number of independent labels at the point. One label often changes no decision:
        with "zero_one" and "cost" the reduction is then 0, and more labels tell points
        apart.

    return_se : bool, default=False
        Whether to return standard errors beside the means.

    Returns
    -------
    reduction : ndarray of shape (n_pool,) or (n_pool, n_target)
        Reductions. With `return_se` a Bunch of `reduction`, of `member_se` (n_pool,), the
        standard error over draws of the members (ten blocks of them are left out in
        turn), of `target_se` (n_pool,), that over draws of the targets, and of `ties`,
        the share of points whose reduction another point has, too.

    Raises
    ------
    ValueError
        As :func:`predictive_uncertainty`; if pool and targets have different numbers of
        members; if `n_steps` is above 1000, or so many labels have
        more than 100 000 outcomes; if `return_se` is
        asked of a single member or target, or together with `pairwise`.

    Warns
    -----
    UserWarning
        If a callable loss is not concave, so that a label is expected to do harm.

    Examples
    --------
    >>> from skextra.uncertainty import expected_uncertainty_reduction
    >>> split, sure = [[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.9, 0.1]]
    >>> expected_uncertainty_reduction([split, sure], [split], "brier").round(4)
    array([0.1213, 0.    ])
    """
    weights, p_pool, p_target = members(weights, *pair(p_pool, p_target))
    target_weights = shares(target_weights, len(p_target), "target_weights", "targets")
    loss = finite_loss(loss, p_target.shape[2], cost_matrix, outcomes)
    n_steps = count(n_steps, "n_steps", 1000)
    expand = None
    if n_steps > 1:
        expand = partial(repeated, *count_vectors(p_pool.shape[2], n_steps))
    features = loss.features(p_target)
    return reductions(
        loss, p_pool, features, weights, target_weights, expand, pairwise, return_se
    )


def reductions(
    loss, labels, features, weights, target_weights, expand, pairwise, return_se
):
    """Return mean or pairwise reductions, or means with standard errors."""
    if pairwise:
        if return_se:
            raise ValueError("return_se is for means over targets; got pairwise=True")
        pairs = pairwise_gains(loss, labels, features, weights, expand)
        warn_of_negative(pairs, stacklevel=4)
        return pairs
    mean = mean_gains(loss, labels, features, weights, target_weights, expand)
    warn_of_negative(mean, stacklevel=4)
    if not return_se:
        return mean
    require_several(weights, "weights", "members")
    require_several(target_weights, "target_weights", "targets")
    _, counts = np.unique(mean, return_counts=True)
    return Bunch(
        reduction=mean,
        member_se=_member_se(
            mean, loss, labels, features, weights, target_weights, expand
        ),
        target_se=_target_se(loss, labels, features, weights, target_weights, expand),
        ties=1 - (counts == 1).sum() / len(mean),
    )


def _member_se(mean, loss, labels, features, weights, target_weights, expand):
    """Return standard errors over members, by leaving out blocks of them."""
    group = groups(weights, N_BLOCKS)
    left_out = [
        mean_gains(
            loss, labels, features, without(weights, group, g), target_weights, expand
        )
        for g in range(group.max() + 1)
    ]
    return jackknife(mean, np.stack(left_out, axis=-1), weights, group)[1]


def _target_se(loss, labels, features, weights, target_weights, expand):
    """Return standard errors over targets."""
    n_targets, se = len(features), np.empty(len(labels))
    for rows in row_blocks(len(labels), 8 * n_targets):
        pairs = pairwise_gains(loss, labels[rows], features, weights, expand)
        rest = pairs - (pairs @ target_weights)[:, None]
        se[rows] = np.sqrt((rest * target_weights) ** 2 @ np.ones(n_targets))
    return se * np.sqrt(n_targets / (n_targets - 1))
