"""A regressor that says how uncertain it is, for any loss."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import (
    BaseEstimator,
    RegressorMixin,
    _fit_context,
    clone,
    is_regressor,
)
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, _num_samples

from skextra.uncertainty._losses import BregmanLoss, PinballLoss
from skextra.uncertainty._members import leaf_noise, member_predictions
from skextra.uncertainty._mixture_functions import (
    mixture_action,
    mixture_decomposition,
    mixture_eur,
    mixture_uncertainty,
)
from skextra.uncertainty._queries import QueryMixin
from skextra.utils import DocLinkMixin, forget

LEAF_SIZE = 5


class LossUncertaintyRegressor(DocLinkMixin, QueryMixin, RegressorMixin, BaseEstimator):
    """Regressor that knows its uncertainty, and which labels would reduce it.

    Fits an ensemble and takes its members for what the truth could be: each says that
    an outcome is normal around its prediction. The uncertainty of a row is the expected
    loss of the best prediction there: the variance if the loss is the squared error. It
    splits into a part that would remain if the truth were known and one that data can
    reduce [1]_, and each row of a pool has a score for how much its label is expected
    to reduce it elsewhere.

    Read more in the :ref:`User Guide <uncertainty>`.

    Parameters
    ----------
    estimator : regressor, default=None
        Ensemble to fit: one whose members :func:`member_predictions` knows. None stands
        for :class:`~sklearn.ensemble.ExtraTreesRegressor` with 100 trees whose leaves
        have the weight of at least 5 rows.

    loss : {"squared_error", "absolute_error", "crps", "log_loss"}, PinballLoss, \
            WeightedSquaredError or BregmanLoss, default="squared_error"
        Loss of a prediction.

    noise : {"leaf", "oob"} or float, default="leaf"
        Variance of an outcome around the prediction of a member. "leaf" is that of the
        training data in the leaf of the row, of ensembles of trees. "oob" is the mean
        squared error of predictions for rows that the trees did not see, of estimators
        with bootstrap. A number is in squared units of y.

    n_jobs : int, default=None
        Number of jobs of the default estimator. Another one has its own.

    random_state : int, RandomState instance or None, default=None
        Randomness of the default estimator, of members that are drawn, of targets that
        are drawn from a pool, and of ties.

    Attributes
    ----------
    estimator_ : regressor
        The fitted ensemble.

    noise_ : float or "leaf"
        Variance of an outcome around the prediction of a member.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns seen in `fit`, if all are strings.

    See Also
    --------
    LossUncertaintyClassifier : The same for classes.
    mixture_decomposition : The decomposition, of any arrays.

    Notes
    -----
    The reducible part is exact in the long run only if the members are draws of a
    posterior that is right, data make the truth known, and outcomes come from the
    model. Trees of a forest are no such draws; their ranking of rows may still be good.
    Fully grown trees have a single outcome in each leaf, and would claim no noise. The
    weight of a row in a leaf is its `sample_weight`, or, where weights are less than 1
    on average, its multiple of that average.

    References
    ----------
    .. [1] F. Bickford Smith, J. Kossen, E. Trollope, M. van der Wilk, A. Foster and
       T. Rainforth, "Rethinking Aleatoric and Epistemic Uncertainty", ICML 2025,
       :arxiv:`2412.20892`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skextra.uncertainty import LossUncertaintyRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LossUncertaintyRegressor(random_state=0).fit(X[::2], y[::2])
    >>> mean, std = model.predict(X[1::2], return_std=True)
    >>> parts = model.decompose(X[1::2])
    >>> bool((abs(parts.total - std**2) < 1e-6 * parts.total).all())
    True
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "loss": [
            StrOptions({"squared_error", "absolute_error", "crps", "log_loss"}),
            PinballLoss,
            BregmanLoss,
        ],
        "noise": [StrOptions({"leaf", "oob"}), Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }
    _strategies = "eur", "epig", "bald", "entropy", "variance"

    def __init__(
        self,
        estimator=None,
        *,
        loss="squared_error",
        noise="leaf",
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.loss = loss
        self.noise = noise
        self.n_jobs = n_jobs
        self.random_state = random_state

    # The estimator inside validates its own parameters.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Fit the ensemble.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, as the estimator takes them.

        y : array-like of shape (n_samples,)
            Numbers to predict.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; by default once. Passed on only if given.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If the parameters, alone or together, or the data are not as documented.

        TypeError
            If the estimator has no members that are known.
        """
        forget(self)
        y = self._validate(X, y)
        estimator = self.estimator
        if estimator is None:
            estimator = self._default_estimator(X, sample_weight)
        if not is_regressor(estimator):
            raise TypeError(
                f"estimator must be a regressor; got {type(estimator).__name__}."
            )
        if self.noise == "oob":
            estimator = _with_oob(estimator)
        estimator = self._fit_clone(estimator, X, y, sample_weight)
        self._noise = self._noise_of(estimator, y, sample_weight)
        # The same draws in every call, of estimators that draw their members.
        self._seed = self.random_state
        if not isinstance(self._seed, Integral):
            self._seed = check_random_state(self._seed).randint(2**31 - 1)
        self._row_bytes = self._try_members(estimator, X)
        self.noise_ = self._noise
        self.estimator_ = estimator
        return self

    def predict(self, X, return_std=False):
        """Return the best prediction under the loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to predict.

        return_std : bool, default=False
            Whether to return the standard deviation of outcomes, too.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predictions: the mean for "squared_error", "crps" and "log_loss", the median
            for "absolute_error", else as the loss has it.

        std : ndarray of shape (n_samples,)
            Standard deviations. Only if `return_std` is true.
        """
        if not return_std:
            return self._mapped(self._action, X)

        def both(*beliefs):
            mean, var, weights = beliefs
            variance = mixture_uncertainty(mean, var, weights=weights[0])
            return np.column_stack([self._action(*beliefs), np.sqrt(variance)])

        return tuple(self._mapped(both, X).T.copy())

    def uncertainty(self, X):
        """Return the expected loss of the best prediction.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to judge.

        Returns
        -------
        uncertainty : ndarray of shape (n_samples,)
            Uncertainties.
        """

        def uncertainty(mean, var, weights):
            self._check_noise(var)
            return mixture_uncertainty(mean, var, self.loss, weights=weights[0])

        return self._mapped(uncertainty, X)

    def decompose(self, X, *, return_se=False):
        """Split the uncertainty into an irreducible and a reducible part.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to judge.

        return_se : bool, default=False
            Whether to return standard errors over members, too.

        Returns
        -------
        parts : :class:`~sklearn.utils.Bunch`
            Arrays of shape (n_samples,): `total`, `irreducible` and `reducible`; and,
            if `return_se` is true, `se`, a Bunch of the same names.
        """

        def parts(mean, var, weights):
            self._check_noise(var)
            return mixture_decomposition(
                mean, var, self.loss, weights=weights[0], return_se=return_se
            )

        return self._mapped(parts, X)

    def query(
        self,
        X_pool,
        n_instances=1,
        X_target=None,
        *,
        strategy="eur",
        n_targets=100,
        target_weights=None,
        random_ties=False,
    ):
        """Choose rows whose labels are worth most.

        Parameters
        ----------
        X_pool : {array-like, sparse matrix} of shape (n_pool, n_features)
            Rows that could be labelled.

        n_instances : int, default=1
            How many to choose.

        X_target : {array-like, sparse matrix} of shape (n_targets, n_features), \
                default=None
            As in `acquisition`.

        strategy : {"eur", "epig", "bald", "entropy", "variance"}, default="eur"
            As in `acquisition`.

        n_targets : int, default=100
            As in `acquisition`.

        target_weights : array-like of shape (n_targets,), default=None
            As in `acquisition`.

        random_ties : bool, default=False
            Whether rows of the same score are in random order, instead of the lowest
            index first.

        Returns
        -------
        indices : ndarray of shape (n_instances,)
            Rows of the pool, the best first.

        Raises
        ------
        ValueError
            If a parameter is not as documented.
        """
        self._check_query(n_instances, X_pool)
        scores = self.acquisition(
            X_pool,
            X_target,
            strategy=strategy,
            n_targets=n_targets,
            target_weights=target_weights,
        )
        return self._best(scores, n_instances, random_ties)

    def _default_estimator(self, X, sample_weight):
        """Return extra trees without bootstrap, with more than a row in each leaf.

        A number of rows would not count weights as repeats of rows; a share of their
        sum does.
        """
        share = LEAF_SIZE
        if X is not None:
            n_rows = _num_samples(X)
            weight = float(n_rows)
            if sample_weight is not None:
                checked = _check_sample_weight(sample_weight, X)
                n_rows, weight = np.count_nonzero(checked), checked.sum()
            share = LEAF_SIZE / max(1, n_rows, weight)
        return ExtraTreesRegressor(
            n_estimators=100,
            min_weight_fraction_leaf=min(0.5, share),
            bootstrap=False,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _action(self, mean, var, weights):
        """Return the best predictions."""
        return mixture_action(mean, var, self.loss, weights=weights[0])

    def _noise_of(self, estimator, y, sample_weight):
        """Return what stands for the noise: "leaf", or a variance."""
        if self.noise == "leaf":
            return "leaf"
        if self.noise == "oob":
            # Rows by the trees that did not see them, if there are any.
            inside = np.zeros(len(y), dtype=int)
            for rows in estimator.estimators_samples_:
                inside[np.unique(rows)] += 1
            some = inside < len(estimator.estimators_)
            if not some.any():
                raise ValueError(
                    "noise='oob' needs rows that a tree has not seen; got "
                    f"{len(estimator.estimators_)} trees that have seen all."
                )
            errors = (np.asarray(y, dtype=float) - estimator.oob_prediction_)[some] ** 2
            if sample_weight is not None:
                sample_weight = np.asarray(sample_weight)[some]
            return float(np.average(errors, weights=sample_weight))
        return float(self.noise)

    def _beliefs(self, estimator, X):
        """Return the means, the variances and the weights of the members, per row."""
        mean, weights = member_predictions(
            estimator, X, random_state=self._seed, return_weights=True
        )
        if self._noise == "leaf":
            var = leaf_noise(estimator, X)
        else:
            var = np.full((len(mean), 1), self._noise)
        return mean, var, np.broadcast_to(weights, mean.shape)

    def _check_noise(self, var):
        """Raise a ValueError if the loss needs noise and there is none."""
        if isinstance(self.loss, str) and self.loss == "log_loss":
            _require_noise(var, "loss='log_loss'")

    def _scores(self, strategy, pool, targets, target_weights):
        """Return the scores of rows of a pool."""
        *mixture, weights = pool
        if strategy in ("entropy", "bald", "epig"):
            _require_noise(mixture[1], f"strategy={strategy!r}")
        elif strategy == "eur":
            self._check_noise(mixture[1])
        if strategy == "variance":
            return mixture_uncertainty(*mixture, "squared_error", weights=weights[0])
        if strategy == "entropy":
            return mixture_uncertainty(*mixture, "log_loss", weights=weights[0])
        if strategy == "bald":
            parts = mixture_decomposition(*mixture, "log_loss", weights=weights[0])
            return parts.reducible
        return mixture_eur(
            *mixture,
            *targets[:2],
            self.loss if strategy == "eur" else "log_loss",
            weights=weights[0],
            target_weights=target_weights,
        )


def _require_noise(var, what):
    """Raise a ValueError if a member has no variance."""
    if not (var > 0).all():
        raise ValueError(
            f"{what} needs noise above 0, and some members have none: with "
            "noise='leaf', leaves of one outcome. Grow larger leaves "
            "(min_samples_leaf), or give noise a number."
        )


def _with_oob(estimator):
    """Return a clone that predicts rows by the trees that did not see them."""
    params = estimator.get_params(deep=False)
    if not params.get("bootstrap") or "oob_score" not in params:
        raise ValueError(
            "noise='oob' needs an estimator with bootstrap=True and oob_score, such as "
            f"RandomForestRegressor; got {estimator!r}."
        )
    return clone(estimator).set_params(oob_score=True)
