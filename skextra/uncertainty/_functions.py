"""Uncertainty of beliefs over classes, and its decomposition."""

import warnings

import numpy as np
from sklearn.utils import Bunch

from skextra.uncertainty._finite import LogLoss
from skextra.uncertainty._gains import settled
from skextra.uncertainty._inputs import (
    correction,
    finite_loss,
    members,
    probabilities,
    require_several,
)
from skextra.uncertainty._jackknife import jackknife
from skextra.uncertainty._numba import mean_entropies
from skextra.utils import row_blocks


def predictive_uncertainty(
    p, loss="log_loss", *, cost_matrix=None, outcomes=None, weights=None
):
    """Return the least expected loss of beliefs over outcomes.

    It is the loss that the belief itself expects of its best action,
    ``min_a E_p[loss(a, z)]`` [1]_. It says nothing about the truth: the loss that comes
    is the `score` of :func:`score_decomposition`.

    Read more in the :ref:`User Guide <uncertainty>`.

    Parameters
    ----------
    p : array-like of shape (n_samples, n_classes) or (n_samples, n_members, n_classes)
        Probabilities. Those of members are averaged.

    loss : str, loss object or callable, default="log_loss"
        Loss of an action when an outcome comes:

        - "log_loss", "brier": of a distribution. The uncertainties are the entropy in
          nats, and 1 minus the sum of squares.
        - "zero_one": of a class, 1 if it is wrong.
        - "cost": of a row of `cost_matrix`.
        - "squared_error", "absolute_error", :class:`PinballLoss`,
          :class:`WeightedSquaredError`, :class:`BregmanLoss`: of a number, for
          `outcomes`.
        - "crps": of a distribution over `outcomes`, the continuous ranked probability
          score.
        - a callable takes probabilities (..., n_classes) and returns their uncertainty
          (...), which should be concave and 0 or more.

    cost_matrix : array-like of shape (n_actions, n_classes), default=None
        Cost of each action for each class. There can be more actions than classes, such
        as to abstain. Only for ``loss="cost"``, which needs it.

    outcomes : array-like of shape (n_classes,), default=None
        The numbers that the classes stand for. Only for losses of numbers, which need
        them.

    weights : array-like of shape (n_members,), default=None
        Weights of the members; by default equal. Only for `p` of three dimensions.

    Returns
    -------
    uncertainty : ndarray of shape (n_samples,)
        In units of the loss.

    Raises
    ------
    ValueError
        If probabilities are negative, not finite or do not sum to 1 (to 1e-6; to 1e-4 in
        float32), or if the loss or what it needs is not as documented.

    References
    ----------
    .. [1] F. Bickford Smith, J. Kossen, E. Trollope, M. van der Wilk, A. Foster and
       T. Rainforth, "Rethinking Aleatoric and Epistemic Uncertainty", ICML 2025,
       :arxiv:`2412.20892`.

    Examples
    --------
    >>> from skextra.uncertainty import predictive_uncertainty
    >>> p = [[0.9, 0.1], [0.6, 0.4]]
    >>> predictive_uncertainty(p, "zero_one")
    array([0.1, 0.4])
    >>> missed, false_alarm, ask = 10, 1, 0.5  # actions: pass, alarm, ask
    >>> cost = [[0, missed], [false_alarm, 0], [ask, ask]]
    >>> predictive_uncertainty(p, "cost", cost_matrix=cost)
    array([0.5, 0.5])
    """
    p = _mean(p, weights)
    return finite_loss(loss, p.shape[1], cost_matrix, outcomes).uncertainty(p)


def optimal_action(
    p, loss="log_loss", *, cost_matrix=None, outcomes=None, weights=None
):
    """Return the action of least expected loss.

    Parameters
    ----------
    p : array-like of shape (n_samples, n_classes) or (n_samples, n_members, n_classes)
        Probabilities. Those of members are averaged.

    loss : str or loss object, default="log_loss"
        See :func:`predictive_uncertainty`. A callable has no actions.

    cost_matrix : array-like of shape (n_actions, n_classes), default=None
        Cost of each action for each class, for ``loss="cost"``.

    outcomes : array-like of shape (n_classes,), default=None
        The numbers that the classes stand for, for losses of numbers.

    weights : array-like of shape (n_members,), default=None
        Weights of the members; by default equal.

    Returns
    -------
    action : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Index of a class for "zero_one" and of a row for "cost", the lowest of the best; a
        number for losses of numbers; the mean distribution for "log_loss", "brier" and
        "crps". Where a weighted loss gives no outcome any weight, every action is best,
        and the action is 0.

    Raises
    ------
    ValueError
        As :func:`predictive_uncertainty`, and for a callable loss.

    Examples
    --------
    >>> from skextra.uncertainty import optimal_action
    >>> p = [[0.97, 0.03], [0.6, 0.4]]
    >>> optimal_action(p, "cost", cost_matrix=[[0, 10], [1, 0], [0.5, 0.5]])
    array([0, 2])
    """
    p = _mean(p, weights)
    return finite_loss(loss, p.shape[1], cost_matrix, outcomes).action(p)


def score_decomposition(
    p_pred, p_eval, loss="log_loss", *, cost_matrix=None, outcomes=None
):
    """Split the loss that comes into what nobody could avoid and the rest.

    The `score` is the expected loss, under a reference, of the best action for a belief.
    It is the sum of the `dispersion` of the reference, which is the loss of the best
    action for the reference itself, and of the `discrepancy`, which is 0 or more. The
    `uncertainty` of the belief is a fourth number, and no inequality ties it to the
    other three.

    Parameters
    ----------
    p_pred : array-like of shape (n_samples, n_classes)
        Beliefs.

    p_eval : array-like of shape (n_samples, n_classes)
        Reference: the distribution of outcomes, or 1 at the outcome that came.

    loss : str or loss object, default="log_loss"
        See :func:`predictive_uncertainty`. A callable has no actions, so no score.

    cost_matrix : array-like of shape (n_actions, n_classes), default=None
        Cost of each action for each class, for ``loss="cost"``.

    outcomes : array-like of shape (n_classes,), default=None
        The numbers that the classes stand for, for losses of numbers.

    Returns
    -------
    result : Bunch
        `score`, `discrepancy`, `dispersion` and `uncertainty`, each an ndarray of shape
        (n_samples,). For "log_loss" score and discrepancy are infinite where an outcome
        can come that the belief gives no probability.

    Raises
    ------
    ValueError
        As :func:`predictive_uncertainty`; for a callable loss; for a
        :class:`BregmanLoss` without `grad`; if the shapes differ.

    Examples
    --------
    >>> from skextra.uncertainty import score_decomposition
    >>> result = score_decomposition([[0.9, 0.1]], [[0.5, 0.5]], "zero_one")
    >>> result.uncertainty, result.score, result.dispersion
    (array([0.1]), array([0.5]), array([0.5]))
    """
    p_pred = probabilities(p_pred, "p_pred", 2)
    p_eval = probabilities(p_eval, "p_eval", 2)
    if p_pred.shape != p_eval.shape:
        raise ValueError(
            f"p_pred and p_eval must have the same shape; got {p_pred.shape} and "
            f"{p_eval.shape}"
        )
    loss = finite_loss(loss, p_pred.shape[1], cost_matrix, outcomes)
    score, dispersion = loss.score(p_pred, p_eval), loss.uncertainty(p_eval)
    return Bunch(
        score=score,
        discrepancy=np.maximum(score - dispersion, 0),
        dispersion=dispersion,
        uncertainty=loss.uncertainty(p_pred),
    )


def uncertainty_decomposition(
    p,
    loss="log_loss",
    *,
    cost_matrix=None,
    outcomes=None,
    weights=None,
    bias_correction=None,
    return_se=False,
):
    """Split uncertainty by what the members would say on their own.

    The `total` is the uncertainty of the mean belief, the `irreducible` part the mean
    uncertainty of the members, and the `reducible` part the difference, 0 or more. With
    the log loss the last is known as BALD or the mutual information.

    The reducible part is what endless data would remove on average **if** the members
    are draws of an exact posterior, endless data tell which member is right, and
    outcomes come from the model. For other members it is a measure of their
    disagreement. :func:`learning_curve_reducible` asks data instead.

    Read more in the :ref:`User Guide <uncertainty>`.

    Parameters
    ----------
    p : array-like of shape (n_samples, n_members, n_classes)
        Probabilities of each member.

    loss : str, loss object or callable, default="log_loss"
        See :func:`predictive_uncertainty`.

    cost_matrix : array-like of shape (n_actions, n_classes), default=None
        Cost of each action for each class, for ``loss="cost"``.

    outcomes : array-like of shape (n_classes,), default=None
        The numbers that the classes stand for, for losses of numbers.

    weights : array-like of shape (n_members,), default=None
        Weights of the members; by default equal.

    bias_correction : {None, "jackknife"}, default=None
        Few members disagree too little: total and reducible part of K draws are too low
        by about a constant over K. The jackknife removes that, and can leave small
        negative values. For a ranking, None is steadier.

    return_se : bool, default=False
        Whether to return standard errors over draws of the members. Intervals of them
        take quantiles of Student's t with n_members - 1 degrees of freedom, and are
        approximate: of ten members, 95 % intervals held the truth about 86 % of the
        time.

    Returns
    -------
    result : Bunch
        `total`, `irreducible` and `reducible`, each an ndarray of shape (n_samples,), and
        with `return_se` a Bunch `se` of the same names.

    Raises
    ------
    ValueError
        As :func:`predictive_uncertainty`; if `bias_correction` or `return_se` is asked
        of a single member.

    Warns
    -----
    UserWarning
        If a callable loss is not concave, so that members on their own are less certain
        than their mean.

    Examples
    --------
    >>> from skextra.uncertainty import uncertainty_decomposition
    >>> agree, disagree = [[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]
    >>> result = uncertainty_decomposition([agree, disagree], "brier")
    >>> result.total, result.reducible
    (array([0.5, 0.5]), array([0. , 0.5]))
    """
    correct = correction(bias_correction)
    weights, p = members(weights, probabilities(p))
    if correct or return_se:
        require_several(weights, "weights", "members")
    loss = finite_loss(loss, p.shape[2], cost_matrix, outcomes)
    total, irreducible = _parts(loss, p, weights)
    scale = np.abs(total) + np.abs(irreducible) + loss.size
    reducible = settled(total - irreducible, scale, sum(p.shape[1:]))
    warn_of_negative(reducible)
    result = Bunch(total=total, irreducible=irreducible, reducible=reducible)
    if correct or return_se:
        left_out = _parts_left_out(loss, p, weights)
        result = after_jackknife(
            result, *left_out, weights, np.arange(len(weights)), correct, return_se
        )
    return result


def bald(p, *, weights=None):
    """Return how much an outcome and the identity of the member tell of each other.

    The mutual information in nats: the reducible part of
    :func:`uncertainty_decomposition` with the log loss. It is exactly what one label at
    this input is expected to tell about the members, and a poor estimate of what many
    labels will do to the prediction there.

    Parameters
    ----------
    p : array-like of shape (n_samples, n_members, n_classes)
        Probabilities of each member.

    weights : array-like of shape (n_members,), default=None
        Weights of the members; by default equal.

    Returns
    -------
    information : ndarray of shape (n_samples,)
        From 0 to the logarithm of the number of classes.

    Raises
    ------
    ValueError
        As :func:`predictive_uncertainty`.

    Examples
    --------
    >>> from skextra.uncertainty import bald
    >>> bald([[[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 1.0]]]).round(4)
    array([0.    , 0.6931])
    """
    return uncertainty_decomposition(p, weights=weights).reducible


def warn_of_negative(values, stacklevel=3):
    """Warn of reductions below 0, in the line of the user."""
    if values.min() < 0:
        warnings.warn(
            f"a reduction of uncertainty is {values.min():.3g}: loss is not concave",
            stacklevel=stacklevel,
        )


def after_jackknife(
    result, total_left, irreducible_left, weights, group, correct, return_se
):
    """Return a decomposition corrected, with standard errors, from parts left out."""
    left = Bunch(
        total=total_left,
        irreducible=irreducible_left,
        reducible=total_left - irreducible_left,
    )
    both = {name: jackknife(result[name], left[name], weights, group) for name in left}
    if correct:
        result = Bunch(**{name: both[name][0] for name in left})
    if return_se:
        result.se = Bunch(**{name: both[name][1] for name in left})
    return result


def _mean(p, weights):
    """Return mean beliefs (n_samples, n_classes)."""
    p = probabilities(p, ndim=(2, 3))
    if p.ndim == 2:
        if weights is not None:
            raise ValueError(f"weights are for p of three dimensions; got {p.shape}")
        return p
    weights, p = members(weights, p)
    return mean_belief(p, weights)


def mean_belief(p, weights):
    """Return the mean of members (n, K, C), of sum 1 whatever the weights' rounding."""
    mean = np.matmul(weights, p)
    return mean / mean.sum(axis=-1, keepdims=True)


def _parts(loss, p, weights):
    """Return the uncertainty of mean beliefs, and the mean uncertainty of members."""
    n, _, n_classes = p.shape
    irreducible = np.empty(n)
    if isinstance(loss, LogLoss):
        mean_entropies(p.reshape(n, -1), np.repeat(weights, n_classes), irreducible)
    else:
        for rows in row_blocks(n, p[0].nbytes):
            irreducible[rows] = loss.uncertainty(p[rows]) @ weights
    return loss.uncertainty(mean_belief(p, weights)), irreducible


def _parts_left_out(loss, p, weights):
    """Return both parts without each member in turn, (n_samples, n_members)."""
    total, irreducible = np.empty((2, *p.shape[:2]))
    for rows in row_blocks(len(p), p[0].nbytes):
        block = p[rows]
        mean = np.matmul(weights, block)[:, None]
        rest = np.maximum(mean - weights[:, None] * block, 0)
        total[rows] = loss.uncertainty(rest / rest.sum(axis=-1, keepdims=True))
        alone = loss.uncertainty(block)
        own = weights * alone
        irreducible[rows] = (own.sum(axis=1, keepdims=True) - own) / (1 - weights)
    return total, irreducible
