"""Linear regression by Spearman's rank correlation."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from skextra.ranking._fitting import (
    LARGEST,
    alike,
    fit_by_search,
    standardised,
    weighted_rows,
)
from skextra.ranking._rank_correlation import (
    line,
    rank_correlation,
    rank_objective,
    rank_start,
    weighted_ranks,
)
from skextra.utils import DocLinkMixin, forget


class SpearmanRegressor(
    DocLinkMixin, CallbackSupportMixin, RegressorMixin, BaseEstimator
):
    """Linear regression that puts rows in the right order.

    The coefficients maximise Spearman's correlation of the predictions with `y`, by
    the soft ranks of LapSum [1]_, less a penalty, at a local optimum. Only the order of
    `y` matters to them: outliers and any increasing transformation of `y` leave them as
    they are, up to a factor. A line by least squares then gives predictions the units
    of `y`.

    Read more in the :ref:`User Guide <ranking>`.

    Parameters
    ----------
    alpha : float, default=1.0
        Temperature of the soft ranks, in standard deviations of the scores, from 1e-6
        to 1e6. The smaller, the nearer is the objective to Spearman's correlation, but
        it then has more local optima and fits noise more; the larger, the nearer to a
        linear correlation with the ranks of `y`.

    C : float, default=1.0
        Inverse of the strength of the penalty on the squared coefficients, from 1e-100
        to 1e100.

    max_iter : int, default=200
        Largest number of iterations.

    tol : float, default=1e-4
        Iterations end when no entry of the gradient of the objective, over 1 plus the
        largest penalty and with columns of about unit variance, is larger.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.

    intercept_ : float
        Constant of the predictions.

    n_iter_ : int
        Number of iterations.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns seen in `fit`, if all are strings.

    See Also
    --------
    soft_rank : The ranks that are used.

    Notes
    -----
    The scores are s = Xw. The objective is one minus the weighted correlation of their
    soft ranks with the ranks of `y`, of which ties share theirs, plus
    ``||w||^2 / (2 C sum(sample_weight) Var(s))``. It does not depend on the scale of w.
    Weights count as repeated rows, also within the ranks. The search starts at ridge
    regression on the ranks of `y`, and is deterministic.

    Where the line by least squares would not increase, as heavy tails may make it, its
    slope is Spearman's correlation times the ratio of the standard deviations of `y`
    and of the scores. `score` is R^2, as of other regressors; `rank_score` is what
    `fit` maximises.

    References
    ----------
    .. [1] Ł. Struski, M. B. Bednarczyk, I. T. Podolak and J. Tabor, "LapSum - One
       Method to Differentiate Them All: Ranking, Sorting and Top-k Selection", ICML
       2025, :arxiv:`2503.06242`.

    Examples
    --------
    >>> import numpy as np
    >>> from skextra.ranking import SpearmanRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.exp(5 * X @ [3, 2, 1])
    >>> model = SpearmanRegressor().fit(X, y)
    >>> (model.coef_ / model.coef_[2]).round()
    array([3., 2., 1.])
    >>> model.rank_score(X, y) > 0.99
    True
    """

    _parameter_constraints: dict = {
        "alpha": [Interval(Real, 1e-6, 1e6, closed="both")],
        "C": [Interval(Real, 1e-100, 1e100, closed="both")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(self, *, alpha=1.0, C=1.0, max_iter=200, tol=1e-4):
        self.alpha = alpha
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the coefficients to the order of `y`, and the line to its values.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.

        y : array-like of shape (n_samples,)
            Targets.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; by default once.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If the parameters or the data are not as documented; or if there is no order
            to learn, because `y` or every column of `X` is constant.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations were not enough.
        """
        forget(self)
        X, y, weight = self._validate(X, y, sample_weight)
        share = weight / weight.sum()
        ranks, y_deviation = standardised(weighted_ranks(y, share), share)
        ridge = 1 / (self.C * weight.sum())
        columns, offset, scale = alike(X, weight, ridge)
        if not (y_deviation and scale.any()):
            constant = "every column of X" if y_deviation else "y"
            raise ValueError(
                f"There is no order to learn: {constant} is constant in the rows of "
                f"positive weight, n_samples={len(y)}."
            )
        start, factor = rank_start(columns, ranks, weight, ridge)
        columns, scale = columns * factor, scale * factor
        fitted = partial(self._fitted, columns, offset, scale, y, share)
        objective = partial(
            rank_objective, columns, ranks, share, self.alpha, ridge * scale**2
        )
        fit_by_search(self, (X, y, weight), start, [(objective, fitted)])
        return self

    def predict(self, X):
        """Predict by the linear model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return X @ self.coef_ + self.intercept_

    def rank_score(self, X, y, sample_weight=None):
        """Return Spearman's correlation of the predictions with `y`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        y : array-like of shape (n_samples,)
            Their targets.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; by default once.

        Returns
        -------
        score : float
            The correlation, from -1 to 1; 0 if the predictions or `y` are constant.
        """
        predicted = self.predict(X)
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        y = column_or_1d(y, warn=True)
        check_consistent_length(predicted, y)
        predicted, y, weight = weighted_rows(predicted, y, sample_weight)
        return rank_correlation(predicted, y, weight / weight.sum())

    def _validate(self, X, y, sample_weight):
        """Return the rows that count, their targets, and their weights."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            y_numeric=True,
            ensure_min_samples=2,
        )
        X, y, weight = weighted_rows(X, y.astype(np.float64), sample_weight)
        largest = np.abs(y).max()
        if largest > LARGEST:
            raise ValueError(
                f"y must hold no value beyond {LARGEST:g} in size, got {largest:g}."
            )
        return X, y, weight

    def _fitted(self, columns, offset, scale, y, share, v, n_iter):
        """Return the fitted attributes at a point of the search."""
        slope, intercept = line(columns @ v, y, share)
        coef = slope * v * scale
        return {
            "coef_": coef,
            "intercept_": float(intercept - coef @ offset),
            "n_iter_": n_iter,
        }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
