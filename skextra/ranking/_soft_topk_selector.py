"""Selection of exactly k features by soft top-k gates."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skextra.ranking._fitting import alike, fit_by_search, standardised, weighted_rows
from skextra.ranking._gates import (
    gated_objective,
    gates,
    log_loss,
    squared_error,
    start,
)
from skextra.utils import DocLinkMixin, forget


class SoftTopKSelector(
    DocLinkMixin, CallbackSupportMixin, SelectorMixin, BaseEstimator
):
    """Select the k columns that a linear model can do most with.

    Each column passes a gate, and a linear model is fitted to what comes through. The
    gates are soft top-k weights of LapSum [1]_, which sum to k, of scores that are
    fitted together with the model. As the temperature falls, they open or close
    entirely. Columns are so chosen together: of several that say nearly the same, most
    often one is taken, and places are left to columns that add something.

    Read more in the :ref:`User Guide <ranking>`.

    Parameters
    ----------
    n_features_to_select : int or float, default=0.5
        Number of columns to select, or their share in (0, 1], rounded down, but at
        least one column.

    loss : {"auto", "squared_error", "log_loss"}, default="auto"
        Loss of the linear model: ridge regression, or logistic regression for any
        number of classes. "auto" takes squared errors for a `y` of floating-point
        numbers that are not one or two whole ones, and the log loss for any other.

    alpha : float, default=1.0
        First temperature of the gates, up to 1e6.

    alpha_final : float, default=0.01
        Last temperature, from 1e-6 to `alpha`.

    n_anneal : int, default=10
        Number of temperatures, in geometric progression; of one, that is `alpha`.

    C : float, default=1.0
        Inverse of the strength of the penalty on the squared coefficients at the first
        temperature, from 1e-100 to 1e100. The penalty grows as the temperature falls:
        a larger coefficient could otherwise make up for a gate that is half closed.

    max_iter : int, default=200
        Largest number of iterations at a temperature.

    tol : float, default=1e-4
        Iterations at a temperature end when no entry of the gradient is larger.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), dtype bool
        Whether a column is selected: it has one of the largest `scores_`. Of equal
        scores, those of the first columns count as larger; constant columns come last.

    scores_ : ndarray of shape (n_features,)
        Scores of the gates.

    gate_ : ndarray of shape (n_features,)
        Gates at the last temperature, from 0, closed, to 1, open. Those in between
        tell of columns among which there is little to choose.

    n_features_to_select_ : int
        Number of columns selected.

    n_iter_ : int
        Number of iterations at all temperatures together.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns seen in `fit`, if all are strings.

    See Also
    --------
    soft_topk : The gates.
    sklearn.feature_selection.RFE : Leaves out one column after the other.

    Notes
    -----
    Columns are standardised, and so is a `y` of numbers. At a temperature a, with
    gates p of the scores, the weighted mean loss of ``X (p * W) + b`` plus
    ``alpha / a ||W||^2 / (2 C sum(sample_weight))`` is minimised over the scores, W and
    b together, from where the temperature before has ended. All scores start near 0, a
    little lower from column to column, so that of equal columns the first is taken.
    The model is linear: it cannot see a column that `y` follows up and down again.

    References
    ----------
    .. [1] Ł. Struski, M. B. Bednarczyk, I. T. Podolak and J. Tabor, "LapSum - One
       Method to Differentiate Them All: Ranking, Sorting and Top-k Selection", ICML
       2025, :arxiv:`2503.06242`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skextra.ranking import SoftTopKSelector
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> selector = SoftTopKSelector(3).fit(X, y)
    >>> list(selector.get_feature_names_out())
    ['worst radius', 'worst texture', 'worst concave points']
    """

    _parameter_constraints: dict = {
        "n_features_to_select": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "loss": [StrOptions({"auto", "squared_error", "log_loss"})],
        "alpha": [Interval(Real, 1e-6, 1e6, closed="both")],
        "alpha_final": [Interval(Real, 1e-6, 1e6, closed="both")],
        "n_anneal": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 1e-100, 1e100, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_features_to_select=0.5,
        *,
        loss="auto",
        alpha=1.0,
        alpha_final=0.01,
        n_anneal=10,
        C=1.0,
        max_iter=200,
        tol=1e-4,
    ):
        self.n_features_to_select = n_features_to_select
        self.loss = loss
        self.alpha = alpha
        self.alpha_final = alpha_final
        self.n_anneal = n_anneal
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Find the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.

        y : array-like of shape (n_samples,)
            Classes, or numbers.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; by default once.

        Returns
        -------
        self : object
            Fitted selector.

        Raises
        ------
        ValueError
            If the parameters, alone or together, or the data are not as documented: if
            `n_features_to_select` is more than the columns, `alpha_final` more than
            `alpha`, if `y` has a single class or value, or if all columns are constant.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations were not enough at the last temperature.
        """
        forget(self)
        is_float = np.asarray(y).dtype.kind == "f"  # as given: validation may convert
        X, y, weight = self._validate(X, y, sample_weight)
        k = self._n_to_select(X.shape[1])
        loss, target = self._loss_and_target(y, weight, is_float)
        columns, varies = self._columns(X, weight)
        share, ridge = weight / weight.sum(), self.alpha / (self.C * weight.sum())
        objective = partial(gated_objective, loss, columns, target, share, k)
        fitted = partial(self._fitted, varies, k)
        stages = [
            (partial(objective, alpha, ridge / alpha), partial(fitted, alpha))
            for alpha in np.geomspace(self.alpha, self.alpha_final, self.n_anneal)
        ]
        fit_by_search(self, (X, y, weight), start(columns, target), stages)
        return self

    def _validate(self, X, y, sample_weight):
        """Return the rows that count, their targets, and their weights."""
        if self.alpha_final > self.alpha:
            raise ValueError(
                f"alpha_final must not be more than alpha; got {self.alpha_final} and "
                f"{self.alpha}."
            )
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", ensure_min_samples=2
        )
        return weighted_rows(X, y, sample_weight)

    def _n_to_select(self, n_features):
        """Return the number of columns to select."""
        asked = self.n_features_to_select
        if not isinstance(asked, Integral):
            return max(1, int(asked * n_features))
        if asked > n_features:
            raise ValueError(
                "n_features_to_select must not be more than the number of columns, "
                f"n_features={n_features}; got {asked}."
            )
        return int(asked)

    def _columns(self, X, weight):
        """Return standardised columns, and which are not constant."""
        columns, _, scale = alike(X, weight, 0)
        if not scale.any():
            raise ValueError(
                "There is nothing to select: every column of X is constant in the rows "
                f"of positive weight, n_samples={len(X)}."
            )
        return columns, scale > 0

    def _loss_and_target(self, y, weight, is_float):
        """Return the loss, and targets of shape (n_samples, n_outputs)."""
        numbers = is_float and (len(np.unique(y)) > 2 or (y % 1).any())
        if self.loss == "squared_error" or (self.loss == "auto" and numbers):
            y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            target, deviation = standardised(y, weight / weight.sum())
            if deviation == 0:
                raise ValueError(
                    "y must have more than one value in the rows of positive weight, "
                    f"n_samples={len(y)}; got {y[0]:g} alone."
                )
            return squared_error, target[:, None]
        check_classification_targets(y)
        classes, number = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "y must have more than one class in the rows of positive weight; got "
                f"one class, {classes[0]!r}."
            )
        return log_loss, np.eye(len(classes))[number]

    def _fitted(self, varies, k, alpha, x, n_iter):
        """Return the fitted attributes at a point of the search."""
        theta = x[: self.n_features_in_].copy()
        support = np.zeros(len(theta), dtype=bool)
        support[np.lexsort((-theta, ~varies))[:k]] = True
        return {
            "support_": support,
            "scores_": theta,
            "gate_": gates(theta, k, alpha)[0],
            "n_features_to_select_": k,
            "n_iter_": n_iter,
        }

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
