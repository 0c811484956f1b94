"""Scores for model selection: the loss of what is decided."""

import inspect
from copy import copy

import numpy as np
from scipy.special import ndtr
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRequest
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
)

from skextra.uncertainty._functions import optimal_action
from skextra.uncertainty._loss_uncertainty_regressor import LossUncertaintyRegressor
from skextra.uncertainty._losses import BregmanLoss, PinballLoss

OF_CLASSES = "log_loss", "brier", "zero_one", "cost"
OF_NUMBERS = "squared_error", "absolute_error", "log_loss", "crps"
OF_NORMALS = "log_loss", "crps"


def make_loss_scorer(loss="log_loss", *, cost_matrix=None):
    """Return a scorer for model selection by the loss of what is decided.

    Parameters
    ----------
    loss : str, PinballLoss, WeightedSquaredError or BregmanLoss, default="log_loss"
        Of classifiers: "log_loss", "brier", "zero_one" or "cost". The decision is the
        best one under the probabilities of ``predict_proba``. Of regressors:
        "squared_error", "absolute_error" or a loss object, of ``predict(X)``; or
        "log_loss" or "crps", of the normal distribution of
        ``predict(X, return_std=True)``.

    cost_matrix : array-like of shape (n_decisions, n_classes), default=None
        Costs of decisions if `loss` is "cost". The columns are the classes in the order
        of ``estimator.classes_``.

    Returns
    -------
    scorer : callable
        A function ``scorer(estimator, X, y, sample_weight=None)`` that returns the
        negated weighted mean loss, for ``scoring=`` of
        :class:`~sklearn.model_selection.GridSearchCV` and the like.

    Raises
    ------
    ValueError
        If `loss` is not known, or `cost_matrix` does not go with it. The scorer raises
        it, too, if `y` has classes that the estimator has not seen.

    TypeError
        By the scorer, if the estimator does not have what the loss needs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from skextra.uncertainty import make_loss_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = make_loss_scorer("brier")
    >>> cross_val_score(LogisticRegression(max_iter=500), X, y, scoring=scorer).shape
    (5,)
    """
    known = dict.fromkeys(OF_CLASSES + OF_NUMBERS)
    if not isinstance(loss, PinballLoss | BregmanLoss) and (
        not isinstance(loss, str) or loss not in known
    ):
        raise ValueError(
            f"loss must be one of {list(known)}, a PinballLoss, a WeightedSquaredError "
            f"or a BregmanLoss; got {loss!r}."
        )
    if (cost_matrix is not None) != (loss == "cost"):
        raise ValueError(
            "cost_matrix must be given with loss='cost', and with no other; got "
            f"loss={loss!r} and cost_matrix={cost_matrix!r}."
        )
    if cost_matrix is not None:
        cost_matrix = check_array(
            cost_matrix, dtype=np.float64, input_name="cost_matrix"
        )
    return _LossScorer(loss, cost_matrix)


class _LossScorer:
    """Scorer of estimators by the loss of what is decided."""

    def __init__(self, loss, cost_matrix):
        self._loss = loss
        self._cost_matrix = cost_matrix

    def __repr__(self):
        costs = self._cost_matrix
        more = "" if costs is None else f", cost_matrix={costs.tolist()}"
        return f"make_loss_scorer({self._loss!r}{more})"

    def __call__(self, estimator, X, y, sample_weight=None):
        """Return the negated weighted mean loss."""
        losses = row_losses(estimator, X, y, self._loss, self._cost_matrix)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, losses)
        return -float(np.average(losses, weights=sample_weight))

    def set_score_request(self, *, sample_weight):
        """Say whether weights are wanted, where metadata are routed."""
        self._request = self._no_request()
        self._request.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self):
        """Return what metadata are wanted."""
        if hasattr(self, "_request"):
            return self._request
        request = self._no_request()
        request.score.add_request(param="sample_weight", alias=None)
        return request

    def _no_request(self):
        return MetadataRequest(owner=repr(self))

    def _accept_sample_weight(self):
        # scikit-learn asks this of each of several scorers.
        return True


def row_losses(estimator, X, y, loss, cost_matrix=None):
    """Return the loss of what an estimator decides for each row.

    Parameters
    ----------
    estimator : fitted classifier or regressor
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        What came.
    loss : str or loss object
    cost_matrix : ndarray of shape (n_decisions, n_classes), default=None

    Returns
    -------
    losses : ndarray of shape (n_samples,)
    """
    y = column_or_1d(y)
    if is_classifier(estimator) and loss in OF_CLASSES:
        return _class_losses(estimator, X, y, loss, cost_matrix)
    if is_regressor(estimator) and (
        loss in OF_NUMBERS or isinstance(loss, PinballLoss | BregmanLoss)
    ):
        return _number_losses(estimator, X, y.astype(float), loss)
    raise TypeError(
        f"loss={loss!r} does not fit {type(estimator).__name__}: classifiers have "
        f"{OF_CLASSES}, regressors {OF_NUMBERS} and loss objects."
    )


def _class_losses(estimator, X, y, loss, cost_matrix):
    """Return the losses of a classifier's best decisions."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"loss={loss!r} needs predict_proba, which {type(estimator).__name__} does "
            "not have."
        )
    classes = estimator.classes_
    unseen = sorted(set(y.tolist()) - set(classes.tolist()), key=str)
    if unseen:
        raise ValueError(
            f"y has classes that the estimator has not seen: {unseen}; it knows "
            f"{classes.tolist()}."
        )
    place = {label: index for index, label in enumerate(classes.tolist())}
    truth = np.array([place[label] for label in y.tolist()], dtype=int)
    p = estimator.predict_proba(X)
    check_consistent_length(p, truth)
    rows = np.arange(len(p))
    action = optimal_action(p, loss, cost_matrix=cost_matrix)
    if loss == "zero_one":
        return (action != truth).astype(float)
    if loss == "cost":
        return cost_matrix[action, truth]
    if loss == "brier":
        return (action**2).sum(axis=1) - 2 * action[rows, truth] + 1
    # A class of probability 0 that comes costs as much as a float can tell from it.
    return -np.log(np.maximum(action[rows, truth], np.finfo(float).eps))


def _number_losses(estimator, X, y, loss):
    """Return the losses of a regressor's predictions."""
    if isinstance(loss, str) and loss in OF_NORMALS:
        mean, std = normal_of(estimator, X)
        if not (std > 0).all():
            raise ValueError(
                f"loss={loss!r} needs standard deviations above 0; got {std.min()}."
            )
        z = (y - mean) / std
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        if loss == "log_loss":
            return z**2 / 2 + np.log(std) + np.log(2 * np.pi) / 2
        return std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))
    predicted = np.asarray(estimator.predict(X), dtype=float)
    check_consistent_length(predicted, y)
    if loss == "squared_error":
        return (y - predicted) ** 2
    if loss == "absolute_error":
        return np.abs(y - predicted)
    return loss.of(predicted, y)


def normal_of(estimator, X):
    """Return the means and standard deviations that a regressor predicts."""
    if "return_std" not in inspect.signature(estimator.predict).parameters:
        # A pipeline hands on what it does not know itself.
        last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        if "return_std" not in inspect.signature(last.predict).parameters:
            raise TypeError(
                "a distribution needs predict(X, return_std=True), which "
                f"{type(estimator).__name__} does not have."
            )
    if isinstance(estimator, LossUncertaintyRegressor):
        # Its best prediction may be a quantile; under squared errors that is the mean.
        estimator = copy(estimator).set_params(loss="squared_error")
    return estimator.predict(X, return_std=True)
