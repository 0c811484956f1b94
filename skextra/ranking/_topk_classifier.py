"""A linear classifier for the k best classes."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skextra.ranking._fitting import alike, fit_by_search, weighted_rows
from skextra.ranking._topk_loss import penalised, topk_loss
from skextra.utils import DocLinkMixin, forget


class TopKClassifier(
    DocLinkMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """Linear classifier that wants the true class among the k best.

    The scores of the classes are linear in the columns. A row costs little as soon as
    its class is among the `k` best scores, by the soft top-k weights of LapSum [1]_,
    instead of only when it is the best. It is for answers that are short lists; where
    the best class is all that counts, take ``k=1``, which is much like logistic
    regression.

    Read more in the :ref:`User Guide <ranking>`.

    Parameters
    ----------
    k : int, default=5
        Number of classes that the true one should be among. No more than the number of
        classes less one is used.

    k_weights : array-like of shape (k,), default=None
        How much it counts to be among the best 1, 2, ..., `k`: not negative, and not
        all 0; they are divided by their sum. None counts all alike. Where `k` is more
        than the number of classes less one, the last ones are not used.

    alpha : float, default=1.0
        Temperature of the soft top-k weights, in units of the scores, from 1e-6 to 1e6.

    C : float, default=1.0
        Inverse of the strength of the penalty on the squared coefficients, from 1e-100
        to 1e100.

    fit_intercept : bool, default=True
        Whether the scores have a constant, which is not penalised.

    max_iter : int, default=500
        Largest number of iterations.

    tol : float, default=1e-4
        Iterations end when no entry of the gradient of the objective, with columns of
        about unit variance, is larger.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Coefficients of the scores; those of the second class less those of the first
        where there are two.

    intercept_ : ndarray of shape (n_classes,) or (1,)
        Constants of the scores.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    n_iter_ : int
        Number of iterations.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns seen in `fit`, if all are strings.

    See Also
    --------
    soft_topk : The weights in the loss.
    sklearn.linear_model.LogisticRegression : The same with the cross-entropy.

    Notes
    -----
    With p(k) the soft top-k weight of the class of a row, and v the weights of the k,
    the objective is the weighted mean of ``-log(sum_k v_k p(k))`` plus the sum of
    squared coefficients over ``2 C sum(sample_weight)``. It is convex for two classes.
    For more it need not be; the search starts at 0 and is deterministic. Scores and
    `alpha` have the same unit, so that predictions depend on ``C / alpha^2`` alone.

    References
    ----------
    .. [1] Ł. Struski, M. B. Bednarczyk, I. T. Podolak and J. Tabor, "LapSum - One
       Method to Differentiate Them All: Ranking, Sorting and Top-k Selection", ICML
       2025, :arxiv:`2503.06242`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from skextra.ranking import TopKClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TopKClassifier(k=3).fit(X[:1000], y[:1000])
    >>> model.predict_topk(X[1000:1002], 2).shape
    (2, 2)
    >>> model.score(X[1000:], y[1000:]) > 0.85
    True
    """

    _parameter_constraints: dict = {
        "k": [Interval(Integral, 1, None, closed="left")],
        "k_weights": ["array-like", None],
        "alpha": [Interval(Real, 1e-6, 1e6, closed="both")],
        "C": [Interval(Real, 1e-100, 1e100, closed="both")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        k=5,
        *,
        k_weights=None,
        alpha=1.0,
        C=1.0,
        fit_intercept=True,
        max_iter=500,
        tol=1e-4,
    ):
        self.k = k
        self.k_weights = k_weights
        self.alpha = alpha
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the coefficients.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.

        y : array-like of shape (n_samples,)
            Classes.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; by default once.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If the parameters, alone or together, or the data are not as documented; or
            if there is a single class.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations were not enough.
        """
        forget(self)
        X, target, classes, weight = self._validate(X, y, sample_weight)
        ks, k_weights = self._levels(len(classes))
        # Of scores over alpha, alpha is no more than a factor of the penalty.
        ridge = self.alpha**2 / (self.C * weight.sum())
        columns, *frame = alike(X, weight, ridge, centre=self.fit_intercept)
        loss = partial(topk_loss, target=target, ks=ks, weights=k_weights)
        share, penalty = weight / weight.sum(), ridge * frame[1] ** 2
        shape = (X.shape[1] + self.fit_intercept, len(classes))
        fitted = partial(self._fitted, frame, classes, shape)

        objective = partial(penalised, loss, columns, share, penalty, shape)
        rows = X, classes[target], weight
        fit_by_search(self, rows, np.zeros(shape).ravel(), [(objective, fitted)])
        return self

    def decision_function(self, X):
        """Return the scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes) or (n_samples,)
            Scores of the classes; that of the second less that of the first where
            there are two.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = X @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Return the class of the highest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Classes.
        """
        return self.predict_topk(X, 1)[:, 0]

    def predict_topk(self, X, k=None):
        """Return the classes of the highest scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        k : int, default=None
            How many classes, at most all. None stands for the parameter `k`, or the
            number of classes less one if that is less.

        Returns
        -------
        y : ndarray of shape (n_samples, k)
            Classes, the best first. Of equal scores, the class that is first in
            `classes_` is first.

        Raises
        ------
        ValueError
            If `k` is not from 1 to the number of classes.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        n_classes = len(self.classes_)
        k = min(self.k, n_classes - 1) if k is None else k
        if not (isinstance(k, Integral) and 1 <= k <= n_classes):
            raise ValueError(
                f"k must be an integer from 1 to the number of classes, {n_classes}; "
                f"got {k!r}."
            )
        order = np.argsort(-scores, axis=1, kind="stable")
        return self.classes_[order[:, :k]]

    def _validate(self, X, y, sample_weight):
        """Return rows that count, the numbers of their classes, these, and weights."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, order="C"
        )
        check_classification_targets(y)
        X, y, weight = weighted_rows(X, y, sample_weight)
        classes, target = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "y must have more than one class in the rows of positive weight; got "
                f"one class, {classes[0]!r}."
            )
        return X, target, classes, weight

    def _levels(self, n_classes):
        """Return the k of the loss that count, and their weights, of sum 1."""
        used = min(self.k, n_classes - 1)
        if self.k_weights is None:
            return np.arange(1.0, used + 1), np.full(used, 1 / used)
        weights = check_array(
            self.k_weights, ensure_2d=False, dtype=np.float64, input_name="k_weights"
        )
        if weights.shape != (self.k,):
            raise ValueError(
                f"k_weights must have shape (k,) = ({self.k},), got {weights.shape}."
            )
        weights = weights[:used]
        if (weights < 0).any() or not weights.any():
            raise ValueError(
                "k_weights must not be negative, and not all 0 in the first "
                f"{used} of them, which {n_classes} classes use; got {self.k_weights}."
            )
        weights = weights / weights.max()
        ks = np.flatnonzero(weights)
        return ks + 1.0, weights[ks] / weights.sum()

    def _fitted(self, frame, classes, shape, x, n_iter):
        """Return the fitted attributes at a point of the search."""
        offset, scale = frame
        V = x.reshape(shape) * self.alpha
        coef = V[: len(scale)].T * scale
        intercept = V[len(scale) :].sum(axis=0) - coef @ offset
        if len(classes) == 2:
            coef, intercept = np.diff(coef, axis=0), np.diff(intercept)
        return {
            "coef_": coef,
            "intercept_": intercept,
            "classes_": classes,
            "n_iter_": n_iter,
        }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
