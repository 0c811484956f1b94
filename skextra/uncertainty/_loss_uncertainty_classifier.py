"""A classifier that says how uncertain it is, for any loss."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from skextra.uncertainty._batches import batch_bald, batch_eur
from skextra.uncertainty._functions import (
    bald,
    mean_belief,
    optimal_action,
    predictive_uncertainty,
    uncertainty_decomposition,
)
from skextra.uncertainty._members import member_predictions
from skextra.uncertainty._queries import QueryMixin
from skextra.uncertainty._reductions import epig, expected_uncertainty_reduction
from skextra.utils import DocLinkMixin, forget


class LossUncertaintyClassifier(
    DocLinkMixin, QueryMixin, ClassifierMixin, BaseEstimator
):
    """Classifier that knows its uncertainty, and which labels would reduce it.

    Fits an ensemble and takes its members for what the truth could be. The uncertainty
    of a row is the expected loss of the best decision there: entropy if the loss is the
    log loss, the expected cost if decisions have costs. It splits into a part that
    would remain if the truth were known and one that data can reduce [1]_, and each
    row of a pool has a score for how much its label is expected to reduce it elsewhere.

    Read more in the :ref:`User Guide <uncertainty>`.

    Parameters
    ----------
    estimator : classifier, default=None
        Ensemble to fit: one whose members :func:`member_predictions` knows. None stands
        for :class:`~sklearn.ensemble.ExtraTreesClassifier` with 100 trees.

    loss : {"log_loss", "brier", "zero_one", "cost"} or callable, default="log_loss"
        Loss of a decision. A callable is the uncertainty itself, the least expected
        loss: it takes an array of probabilities and returns a value for each entry of
        all axes but the last, and must be concave.

    cost_matrix : array-like of shape (n_decisions, n_classes), default=None
        Cost of each decision in each class, if `loss` is "cost". The first `n_classes`
        decisions are for the classes, both in the order of `classes_`; further ones are
        abstentions.

    bias_correction : {"jackknife"} or None, default=None
        How `decompose` corrects for the small number of members.

    abstain_label : object or list of them, default=None
        What `predict` returns for abstentions: one label for all, or a list of one
        for each. They must not be classes.

    n_jobs : int, default=None
        Number of jobs of the default estimator. Another one has its own.

    random_state : int, RandomState instance or None, default=None
        Randomness of the default estimator, of targets that are drawn from a pool, and
        of ties.

    Attributes
    ----------
    estimator_ : classifier
        The fitted ensemble.

    classes_ : ndarray of shape (n_classes,)
        The classes.

    cost_matrix_ : ndarray of shape (n_decisions, n_classes) or None
        Costs, if `loss` is "cost".

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns seen in `fit`, if all are strings.

    See Also
    --------
    LossUncertaintyRegressor : The same for numbers.
    uncertainty_decomposition : The decomposition, of any arrays.

    Notes
    -----
    The reducible part is exact in the long run only if the members are draws of a
    posterior that is right, data make the truth known, and outcomes come from the
    model. Trees of a forest are no such draws; their ranking of rows may still be good.

    References
    ----------
    .. [1] F. Bickford Smith, J. Kossen, E. Trollope, M. van der Wilk, A. Foster and
       T. Rainforth, "Rethinking Aleatoric and Epistemic Uncertainty", ICML 2025,
       :arxiv:`2412.20892`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skextra.uncertainty import LossUncertaintyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LossUncertaintyClassifier(random_state=0).fit(X[::2], y[::2])
    >>> model.uncertainty(X[1::2]).shape
    (75,)
    >>> model.query(X[1::2], n_instances=3).shape
    (3,)
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit"]), None],
        "loss": [StrOptions({"log_loss", "brier", "zero_one", "cost"}), callable],
        "cost_matrix": ["array-like", None],
        "bias_correction": [StrOptions({"jackknife"}), None],
        "abstain_label": "no_validation",
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }
    _strategies = "eur", "epig", "bald", "margin", "entropy"

    def __init__(
        self,
        estimator=None,
        *,
        loss="log_loss",
        cost_matrix=None,
        bias_correction=None,
        abstain_label=None,
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.loss = loss
        self.cost_matrix = cost_matrix
        self.bias_correction = bias_correction
        self.abstain_label = abstain_label
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
            Classes.

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
        check_classification_targets(y)
        estimator = self.estimator
        if estimator is None:
            estimator = self._default_estimator(X, sample_weight)
        estimator = self._fit_clone(estimator, X, y, sample_weight)
        if not hasattr(estimator, "classes_"):
            raise TypeError(
                f"estimator must be a classifier; got {type(estimator).__name__}."
            )
        costs = self._checked_costs(estimator.classes_)
        labels = self._labels(estimator.classes_, costs)
        self._row_bytes = self._try_members(estimator, X)
        self._actions = labels
        self._fitted_loss = self.loss
        self.cost_matrix_ = costs
        self.classes_ = estimator.classes_
        self.estimator_ = estimator
        return self

    def predict_proba(self, X):
        """Return the mean probabilities of the members.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._mapped(_mean, X)

    def predict(self, X):
        """Return the best decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The most probable class; if `loss` is "cost", the label of the decision of
            the least expected cost.
        """
        p = self.predict_proba(X)
        if self.cost_matrix_ is None:
            return self._actions[p.argmax(axis=1)]
        return self._actions[optimal_action(p, "cost", cost_matrix=self.cost_matrix_)]

    def score(self, X, y, sample_weight=None):
        """Return the accuracy of the decisions; an abstention counts as an error.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        y : array-like of shape (n_samples,)
            Classes.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; by default once.

        Returns
        -------
        score : float
            Share of the rows whose class is named.
        """
        # Labels of abstentions may be of another kind than classes.
        right = self.predict(X) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    def uncertainty(self, X):
        """Return the expected loss of the best decision.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to judge.

        Returns
        -------
        uncertainty : ndarray of shape (n_samples,)
            Uncertainties.
        """

        def uncertainty(p, weights):
            return predictive_uncertainty(_mean(p, weights), **self._loss())

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

        def parts(p, weights):
            return uncertainty_decomposition(
                p,
                **self._loss(),
                weights=weights[0],
                bias_correction=self.bias_correction,
                return_se=return_se,
            )

        return self._mapped(parts, X)

    def query(
        self,
        X_pool,
        n_instances=1,
        X_target=None,
        *,
        strategy="eur",
        joint=False,
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

        strategy : {"eur", "epig", "bald", "margin", "entropy"}, default="eur"
            As in `acquisition`.

        joint : bool, default=False
            Whether to judge a batch together, so that its rows do not all say the same:
            for "eur", "epig" and "bald".

        n_targets : int, default=100
            As in `acquisition`.

        target_weights : array-like of shape (n_targets,), default=None
            As in `acquisition`.

        random_ties : bool, default=False
            Whether rows of the same score are in random order, instead of the lowest
            index first. Not used if `joint` is true.

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
        if joint:
            return self._batch(
                X_pool, n_instances, X_target, strategy, n_targets, target_weights
            )
        scores = self.acquisition(
            X_pool,
            X_target,
            strategy=strategy,
            n_targets=n_targets,
            target_weights=target_weights,
        )
        return self._best(scores, n_instances, random_ties)

    def _batch(self, X_pool, size, X_target, strategy, n_targets, target_weights):
        """Return the rows of a batch that is chosen together."""
        self._check_strategy(strategy, X_target, target_weights)
        if strategy in ("margin", "entropy"):
            raise ValueError(
                "joint=True needs the strategy 'eur', 'epig' or 'bald'; got "
                f"{strategy!r}."
            )
        blocks, targets = self._pool(X_pool, X_target, strategy, n_targets)
        blocks = list(blocks)
        p = np.concatenate([block for block, _ in blocks])
        options = {"weights": blocks[0][1][0], "random_state": self.random_state}
        if strategy == "bald":
            return batch_bald(p, size, **options)[0]
        loss = self._loss() if strategy == "eur" else {"loss": "log_loss"}
        options["target_weights"] = target_weights
        return batch_eur(p, targets[0], size, **loss, **options)[0]

    def _default_estimator(self, X, sample_weight):
        """Return extra trees without bootstrap: weights then count as repeats do."""
        return ExtraTreesClassifier(
            n_estimators=100,
            bootstrap=False,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )

    def _loss(self):
        """Return the arguments for the loss."""
        return {"loss": self._fitted_loss, "cost_matrix": self.cost_matrix_}

    def _beliefs(self, estimator, X):
        """Return the predictions of the members, and for each row their weights."""
        p, weights = member_predictions(estimator, X, return_weights=True)
        return p, np.broadcast_to(weights, p.shape[:2])

    def _scores(self, strategy, pool, targets, target_weights):
        """Return the scores of rows of a pool."""
        p, weights = pool
        if strategy == "margin":
            best = np.sort(_mean(p, weights), axis=1)[:, -2:]
            second = best[:, 0] if best.shape[1] == 2 else 0.0
            return 1 - (best[:, -1] - second)
        if strategy == "entropy":
            return predictive_uncertainty(_mean(p, weights), "log_loss")
        if strategy == "bald":
            return bald(p, weights=weights[0])
        options = {"weights": weights[0], "target_weights": target_weights}
        if strategy == "epig":
            return epig(p, targets[0], **options)
        return expected_uncertainty_reduction(p, targets[0], **self._loss(), **options)

    def _checked_costs(self, classes):
        """Return the cost matrix, or None if the loss has none."""
        if self.loss != "cost":
            if self.cost_matrix is not None:
                raise ValueError(
                    f"cost_matrix is for loss='cost' alone; got loss={self.loss!r}."
                )
            return None
        if self.cost_matrix is None:
            raise ValueError("loss='cost' needs a cost_matrix; got None.")
        costs = check_array(
            self.cost_matrix, dtype=np.float64, input_name="cost_matrix"
        )
        n_classes = len(classes)
        if costs.shape[1] != n_classes or len(costs) < n_classes:
            raise ValueError(
                f"cost_matrix must have a column for each of the {n_classes} classes "
                f"in y, and as many rows or more; got shape {costs.shape}."
            )
        return costs

    def _labels(self, classes, costs):
        """Return the labels of decisions: the classes, then abstentions."""
        n_more = 0 if costs is None else len(costs) - len(classes)
        given = self.abstain_label
        if n_more == 0 and given is not None:
            raise ValueError(
                "abstain_label is for rows of cost_matrix after those of the classes, "
                f"of which there are none; got {given!r}."
            )
        if n_more == 0:
            return classes
        if given is None:
            raise ValueError(
                f"cost_matrix has {n_more} more rows than classes: abstain_label must "
                "say what to predict for them; got None."
            )
        many = isinstance(given, list | tuple | np.ndarray)
        more = list(given) if many else [given] * n_more
        if len(more) != n_more:
            raise ValueError(
                f"abstain_label must have one label for each of the {n_more} rows of "
                f"cost_matrix after those of the classes; got {given!r}."
            )
        known = set(classes.tolist())
        if any(label in known for label in more):
            raise ValueError(f"abstain_label must not be a class; got {given!r}.")
        # NumPy would turn numbers beside strings into strings.
        same_kind = np.asarray(more).dtype.kind == classes.dtype.kind
        labels = np.empty(len(costs), dtype=object)
        labels[:] = [*classes.tolist(), *more]
        return np.array(labels.tolist()) if same_kind else labels


def _mean(p, weights):
    """Return the mean of the members."""
    return mean_belief(p, weights[0])
