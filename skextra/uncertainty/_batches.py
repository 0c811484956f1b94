"""Batches of points whose labels are bought together."""

from functools import partial

import numpy as np
from sklearn.utils import check_random_state

from skextra.uncertainty._finite import LogLoss
from skextra.uncertainty._functions import bald, warn_of_negative
from skextra.uncertainty._gains import mean_gains, pairwise_gains
from skextra.uncertainty._inputs import (
    count,
    finite_loss,
    members,
    pair,
    probabilities,
    shares,
)
from skextra.uncertainty._states import (
    LARGEST_EXACT,
    all_labels,
    drawn_labels,
    joint_labels,
)

LARGEST_TABLE = 10**7
METHODS = ("auto", "exact", "sampled")


def batch_bald(
    p,
    batch_size,
    *,
    weights=None,
    method="auto",
    n_samples=10000,
    random_state=None,
):
    """Choose points whose labels together tell most about the members (BatchBALD).

    Points of high BALD often tell the same. The value of a batch is the mutual
    information of all its labels and the member [1]_; points are added one by one, each
    the best next to those before, which reaches at least 63 % of the best batch.

    Parameters
    ----------
    p : array-like of shape (n_pool, n_members, n_classes)
        Probabilities of each member.

    batch_size : int
        Number of points to choose, at most n_pool.

    weights : array-like of shape (n_members,), default=None
        Weights of the members; by default equal.

    method : {"auto", "exact", "sampled"}, default="auto"
        "exact" sums over all labels that a batch can have, ``n_classes**batch_size`` of
        them, at most ten million; "sampled" draws labels of the points chosen so far, and
        sums over those of the next; "auto" is exact up to 100 000 and sampled then.

    n_samples : int, default=10000
        Number of labels drawn for a batch.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    indices : ndarray of shape (batch_size,), dtype int
        The points, in the order of choice; the lowest of equal ones.

    scores : ndarray of shape (batch_size,)
        Mutual information in nats of the labels of the points up to each. The first is
        the BALD of the first point.

    Raises
    ------
    ValueError
        If `p` or `weights` are not as documented; if `batch_size` is not from 1 to
        n_pool; if "exact" would take too much.

    References
    ----------
    .. [1] A. Kirsch, J. van Amersfoort and Y. Gal, "BatchBALD: Efficient and Diverse
       Batch Acquisition for Deep Bayesian Active Learning", NeurIPS 2019,
       :arxiv:`1906.08158`.

    Examples
    --------
    The first two points tell the same:

    >>> from skextra.uncertainty import batch_bald
    >>> twice = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    >>> other = [[0.1, 0.9], [0.1, 0.9], [0.9, 0.1], [0.9, 0.1]]
    >>> indices, scores = batch_bald([twice, twice, other], 2)
    >>> indices
    array([0, 2])
    """
    weights, p = members(weights, probabilities(p))
    states = _states_of(p, weights, batch_size, method, n_samples, random_state)
    alone = bald(p, weights=weights)

    def value(chosen):
        # What the label tells of the member, less what the labels before tell of it.
        known = pairwise_gains(LogLoss(), states(chosen)[None], p, weights)[0]
        return alone - known

    indices, steps = _greedy(value, batch_size)
    return indices, np.cumsum(steps)


def batch_eur(
    p_pool,
    p_target,
    batch_size,
    loss="log_loss",
    *,
    cost_matrix=None,
    outcomes=None,
    weights=None,
    target_weights=None,
    method="auto",
    n_samples=256,
    random_state=None,
):
    """Choose points whose labels together are expected to reduce a loss most.

    The value of a batch is :func:`expected_uncertainty_reduction` by all its labels. Points
    are added one by one, each the best next to those before. Unlike for
    :func:`batch_bald`, nothing is known of how near that comes to the best batch: two
    labels can do together what neither does alone.

    Parameters
    ----------
    p_pool : array-like of shape (n_pool, n_members, n_classes)
        Probabilities of each member where labels could be bought.

    p_target : array-like of shape (n_target, n_members, n_target_classes)
        Probabilities of the same members where predictions will be needed.

    batch_size : int
        Number of points to choose, at most n_pool.

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

    method : {"auto", "exact", "sampled"}, default="auto"
        As in :func:`batch_bald`, but "auto" draws where there are more labels than
        `n_samples` times the classes: each costs a table for every target.

    n_samples : int, default=256
        Number of labels drawn for a batch.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    indices : ndarray of shape (batch_size,), dtype int
        The points, in the order of choice; the lowest of equal ones.

    scores : ndarray of shape (batch_size,)
        Expected reduction by the labels of the points up to each. The first is the
        reduction by the first point alone.

    Raises
    ------
    ValueError
        As :func:`expected_uncertainty_reduction` and :func:`batch_bald`.

    Warns
    -----
    UserWarning
        If a callable loss is not concave, so that labels are expected to do harm.

    Examples
    --------
    >>> from skextra.uncertainty import batch_eur
    >>> a = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    >>> b = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    >>> xor = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    >>> indices, scores = batch_eur([a, b], [xor], 2, "zero_one")
    >>> scores  # one label says nothing of "either or", both say all
    array([0. , 0.5])
    """
    weights, p_pool, p_target = members(weights, *pair(p_pool, p_target))
    target_weights = shares(target_weights, len(p_target), "target_weights", "targets")
    loss = finite_loss(loss, p_target.shape[2], cost_matrix, outcomes)
    limit = count(n_samples, "n_samples") * p_pool.shape[2]
    states = _states_of(
        p_pool, weights, batch_size, method, n_samples, random_state, limit
    )
    features = loss.features(p_target)

    def value(chosen):
        expand = partial(joint_labels, states(chosen))
        gain = mean_gains(loss, p_pool, features, weights, target_weights, expand)
        warn_of_negative(gain, stacklevel=5)
        return gain

    return _greedy(value, batch_size)


def _greedy(value, batch_size):
    """Return points of the highest value next to those before, and these values."""
    chosen, values = [], []
    for _ in range(batch_size):
        each = value(chosen)
        each[chosen] = -np.inf
        chosen.append(int(each.argmax()))
        values.append(each[chosen[-1]])
    return np.array(chosen), np.array(values)


def _states_of(
    p, weights, batch_size, method, n_samples, random_state, limit=LARGEST_EXACT
):
    """Return a function of chosen points that gives the states of their labels."""
    batch_size = count(batch_size, "batch_size", len(p), " points of the pool")
    n_samples = count(n_samples, "n_samples")
    if not (isinstance(method, str) and method in METHODS):
        raise ValueError(f"method must be one of {METHODS}; got {method!r}")
    n_classes = p.shape[2]
    if method == "exact" and n_classes**batch_size > LARGEST_TABLE:
        raise ValueError(
            f'method="exact" takes at most {LARGEST_TABLE} joint labels; {batch_size} '
            f'points of {n_classes} classes have {n_classes**batch_size}: use "sampled"'
        )
    rng = check_random_state(random_state)
    drawn = rng.choice(len(weights), n_samples, p=weights)
    uniform = rng.random_sample((batch_size, n_samples))

    def states(chosen):
        joint = n_classes ** (len(chosen) + 1)
        if method == "exact" or (method == "auto" and joint <= limit):
            return all_labels(p[chosen])
        return drawn_labels(p[chosen], weights, drawn, uniform)

    return states
