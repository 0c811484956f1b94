"""A decision tree as a function: estimator."""

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    _fit_context,
    clone,
    is_regressor,
)
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _get_feature_names,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from skextra.tree._declarations import DeclarationsMixin, checked_costs
from skextra.tree._equivalence import essential_thresholds, fingerprint
from skextra.tree._flat import weighed
from skextra.tree._importance import cell_masses, permutation_importance, positions
from skextra.tree._missing import (
    marginal_share,
    mixture,
    most_likely,
    path_share,
    possible_labels,
    value_bounds,
)
from skextra.tree._reasoning import ReasoningMixin
from skextra.tree._sources import flatten
from skextra.utils import DocLinkMixin

_CART = (
    *("criterion", "max_depth", "max_leaf_nodes", "min_samples_leaf"),
    *("ccp_alpha", "random_state"),
)
_LAZY = {
    "essential_thresholds_",
    "relevant_features_",
    "feature_importances_",
    "fingerprint_",
}


class BooleanTree(
    DocLinkMixin, DeclarationsMixin, ReasoningMixin, ClassifierMixin, BaseEstimator
):
    """Decision tree that answers as the function it is, whatever its flowchart.

    A tree is learned, or taken over, and then read as a function of intervals of the
    features. It predicts from incomplete rows and says when the prediction is proven,
    explains rows by few features, writes itself as few rules, tells whether another
    tree is the same function, and plans which feature to measure next.

    In `predict`, NaN means *unknown*: the answer is the one that the tree would give
    for the complete row wherever all completions agree. This is not scikit-learn's
    meaning, where NaN is a value that goes to a learned side.

    Read more in the :ref:`User Guide <tree>`.

    Parameters
    ----------
    estimator : object, default=None
        Tree classifier to fit, or a fitted one in a
        :class:`~sklearn.frozen.FrozenEstimator`. None fits a
        :class:`~sklearn.tree.DecisionTreeClassifier` with the parameters below, which
        are ignored otherwise. See :meth:`from_tree` for trees of other packages.

    criterion : {"gini", "entropy", "log_loss"}, default="gini"
        Measure of the quality of a split.

    max_depth : int, default=None
        Largest depth of the tree.

    max_leaf_nodes : int, default=None
        Largest number of leaves.

    min_samples_leaf : int or float, default=1
        Smallest number, or share, of the training rows in a leaf.

    ccp_alpha : float, default=0.0
        Penalty of minimal cost-complexity pruning.

    missing : {"path", "marginal"}, default="path"
        Distribution of what is unknown, for rows whose label is not determined. "path"
        sends a row both ways, in proportion to the training weight of the children.
        "marginal" takes the unknown features as independent, with their distribution
        in the training rows; equal trees then have equal answers, if each leaf is pure
        and no `threshold_map` makes a value known in part.

    rule_form : {"irredundant", "minimal", "leaves"}, default="irredundant"
        Form of :meth:`rules`. "leaves" has a rule for each leaf. "irredundant" widens
        the leaves as far as possible and keeps few of these rules; equal trees may
        give different ones. "minimal" has the fewest rules, and among these the fewest
        bounds; there may be several such forms, and finding one can take long.

    feature_domains : dict, default=None
        "binary" (0 or 1), "integer" or "continuous" for some features, by index or
        name; the others are continuous. Thresholds between the same values are then
        the same.

    one_hot_groups : list of lists, default=None
        Features, by index or name, of which exactly one is 1 and the others are 0.
        Rules in other form than "leaves", essential thresholds, fingerprints and
        acquisition policies are not defined with groups.

    max_terms : int, default=10_000
        Largest number of prime implicants, in any part of the tree, or of explanations.
        Beyond it :class:`BudgetExceededError` is raised.

    time_limit : float, default=None
        Seconds after which the search for minimal rules or for an exact acquisition
        policy is given up. What the policy does instead is not counted.

    acquisition_costs : array-like of shape (n_features,), default=None
        Cost of measuring each feature, 0 or more, in any unit. None is 1 each.

    distribution : {"empirical", "independent"}, default="empirical"
        Distribution under which an acquisition policy has the least expected cost: the
        training rows, or independent features with their distributions.

    max_states : int, default=200_000
        Number of states of knowledge up to which an acquisition policy is exact.

    random_state : int, RandomState instance or None, default=None
        Seed of the tree's training.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Class labels.

    n_classes_ : int
        Number of classes.

    n_features_in_ : int
        Number of features seen in `fit`.

    feature_names_in_ : array of shape (n_features,)
        Names of the features, if all are strings.

    estimator_ : object
        The fitted tree, as it was learned or given.

    n_leaves_ : int
        Number of leaves that some row can reach.

    essential_thresholds_ : dict of int to array
        For each relevant feature, the thresholds that the function depends on.

    relevant_features_ : array of int
        Features that the function depends on.

    feature_importances_ : array of shape (n_features,)
        Exact permutation importance on the training rows without NaN in the tested
        features, clipped at 0 and scaled to the sum 1; zeros if there is none. It
        depends on the function alone, unlike the impurity decrease of scikit-learn.

    fingerprint_ : tuple
        Hashable key that equal functions share. Functions that differ nearly always
        have other keys; :meth:`equivalent_to` is certain.

    source_features_ : array of object or None
        Features that bounds and explanations number, after :meth:`from_tree` with a
        `threshold_map`.

    See Also
    --------
    trees_equivalent : Whether two trees are the same function.
    unique_trees : The distinct functions among many trees.

    References
    ----------
    .. [1] McTavish, Boner, Donnelly, Seltzer, Rudin, "Leveraging Predictive Equivalence
       in Decision Trees", ICML 2025.

    .. [2] Marques-Silva, Ignatiev, "Efficient & Correct Predictive Equivalence for
       Decision Trees", arXiv 2509.17774.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from skextra.tree import BooleanTree
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = BooleanTree(max_depth=3, random_state=0).fit(X, y)
    >>> row = np.array([[np.nan, np.nan, np.nan, 0.2]])
    >>> tree.predict(row), tree.is_determined(row)
    (array([0]), array([ True]))
    >>> tree.explain(X[0])[0].features
    (3,)
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        **{name: DecisionTreeClassifier._parameter_constraints[name] for name in _CART},
        "missing": [StrOptions({"path", "marginal"})],
        "rule_form": [StrOptions({"irredundant", "minimal", "leaves"})],
        "feature_domains": [dict, None],
        "one_hot_groups": ["array-like", None],
        "max_terms": [Interval(Integral, 1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "acquisition_costs": ["array-like", None],
        "distribution": [StrOptions({"empirical", "independent"})],
        "max_states": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator=None,
        *,
        criterion="gini",
        max_depth=None,
        max_leaf_nodes=None,
        min_samples_leaf=1,
        ccp_alpha=0.0,
        missing="path",
        rule_form="irredundant",
        feature_domains=None,
        one_hot_groups=None,
        max_terms=10_000,
        time_limit=None,
        acquisition_costs=None,
        distribution="empirical",
        max_states=200_000,
        random_state=None,
    ):
        self.estimator = estimator
        self.criterion = criterion
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.ccp_alpha = ccp_alpha
        self.missing = missing
        self.rule_form = rule_form
        self.feature_domains = feature_domains
        self.one_hot_groups = one_hot_groups
        self.max_terms = max_terms
        self.time_limit = time_limit
        self.acquisition_costs = acquisition_costs
        self.distribution = distribution
        self.max_states = max_states
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Learn the tree, or take over the one given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows. NaN is passed to the learner.

        y : array-like of shape (n_samples,)
            Class labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; None is 1 each.

        Returns
        -------
        self : BooleanTree
            The fitted estimator.

        Raises
        ------
        TypeError
            If `estimator` is a regressor, or no tree.

        ValueError
            If `X`, `y` or a parameter that names features does not fit the others.
        """
        # A fit that fails must not leave the old tree behind new feature names.
        for name in ("_flat", "source_features_"):
            self.__dict__.pop(name, None)
        if self.estimator is not None and is_regressor(self.estimator):
            raise TypeError(
                f"estimator must be a tree classifier; got {self.estimator!r}. "
                "trees_equivalent, value_interval and explain_tree take regression trees."
            )
        given = X
        X, y = validate_data(
            self, X, y, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X)
        inputs = self._declared(X.shape[1])
        estimator = self._learn(given, X, y, None if sample_weight is None else weight)
        tree = flatten(estimator, getattr(estimator, "classes_", None), X.shape[1])
        self._adopt(estimator, tree, inputs, X, y, weight)
        return self

    def _learn(self, given, X, y, weight):
        """Fit the estimator, on a DataFrame if one was given to it."""
        if self.estimator is None:
            settings = {name: getattr(self, name) for name in _CART}
            return DecisionTreeClassifier(**settings).fit(X, y, weight)
        estimator = clone(self.estimator)
        if weight is None:
            return estimator.fit(given, y)
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight was given, and {estimator!r} takes none in fit."
            )
        return estimator.fit(given, y, sample_weight=weight)

    @classmethod
    def from_tree(
        cls,
        tree,
        classes=None,
        n_features=None,
        threshold_map=None,
        X=None,
        y=None,
        **params,
    ):
        """Take over a tree as it is.

        Parameters
        ----------
        tree : object
            A fitted tree classifier of scikit-learn or its ``tree_``; a nested
            dictionary, or a fitted estimator or tree object, of gosdt, treefarms,
            pydl8.5 or pystreed; the pair of paths and predictions of praxis or
            arborenum; or a nested dictionary with splits
            ``{"feature", "threshold", "true", "false"}``, where "true" holds the rows
            ``x <= threshold``, and leaves ``{"prediction"}``, with an optional "value",
            the distribution of the classes, and "weight".

        classes : array-like of shape (n_classes,), default=None
            Class labels. None takes those that the tree knows.

        n_features : int, default=None
            Number of features. None takes what the tree says, or the shape of `X`, or
            counts up to the last feature that is tested.

        threshold_map : dict, default=None
            For columns of `X` that are tests ``feature <= threshold``, 1 where true:
            ``{column: (feature, threshold)}``, with any name or number for the feature.
            Tests of one feature then bound its value together, also tests that the
            tree does not use.

        X : array-like of shape (n_samples, n_features), default=None
            Rows from which the weights of the tree's nodes are computed, unless it is
            an estimator of scikit-learn, which knows them. Without rows
            the weights are the tree's own, or equal for all leaves, and what needs rows
            raises an error: policies and ``missing="marginal"``.

        y : array-like of shape (n_samples,), default=None
            Labels of these rows, for importance and the precision of rules.

        **params : dict
            Parameters of the estimator.

        Returns
        -------
        estimator : BooleanTree
            Fitted, with `tree` as `estimator_`.

        Raises
        ------
        TypeError
            If the tree is of no known kind, or a regression tree.

        ValueError
            If `X`, `classes`, `n_features` and the tree do not fit each other.

        Examples
        --------
        >>> from skextra.tree import BooleanTree
        >>> yes, no = {"prediction": "yes"}, {"prediction": "no"}
        >>> tree = {"feature": 0, "threshold": 2.5, "true": no, "false": yes}
        >>> BooleanTree.from_tree(tree).predict([[3.0]])
        array(['yes'], dtype='<U3')
        """
        self = cls(**params)
        self._validate_params()
        if n_features is not None and not isinstance(n_features, Integral):
            raise ValueError(f"n_features must be an integer; got {n_features!r}.")
        if classes is not None and len(np.unique(classes)) < len(classes):
            raise ValueError(f"classes must differ; got {classes!r}.")
        names = getattr(tree, "feature_names_in_", None)
        if X is not None:
            names = _get_feature_names(X) if names is None else names
            X = check_array(
                X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
            )
            n_features = X.shape[1] if n_features is None else n_features
        if isinstance(tree, BooleanTree) and tree.source_features_ is not None:
            raise ValueError("tree must not be a BooleanTree with a threshold_map.")
        flat = flatten(tree, classes, n_features)
        if flat.classes is None:
            raise TypeError(
                f"tree must be a classification tree; got the regression tree {tree!r}."
            )
        if y is not None:
            y = column_or_1d(y)
            assert_all_finite(y, input_name="y")
            check_consistent_length(X, y)
        if X is not None and X.shape[1] != flat.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, and the tree {flat.n_features}."
            )
        self.n_features_in_ = flat.n_features
        if names is not None:
            self.feature_names_in_ = names
        if threshold_map is None:
            inputs = self._declared(flat.n_features)
        else:
            inputs = self._mapped(threshold_map, flat.n_features)
        weight = None if X is None else np.ones(len(X))
        self._adopt(tree, flat, inputs, X, y, weight)
        return self

    def _adopt(self, estimator, tree, inputs, X, y, weight):
        """Set the fitted state from a tree and the rows, if there are any."""
        tree = inputs.adapt(tree)
        costs = checked_costs(self.acquisition_costs, len(inputs.domains))
        target = None if y is None else positions(tree.classes, y)
        cells = None
        if X is not None:
            X = check_array(X, dtype=tree.dtype, ensure_all_finite="allow-nan")
            cells = tree.cells(*inputs.read(X))
            # Of fitted estimators only those of scikit-learn know their weights, and
            # those of rows with NaN too.
            if tree.dtype == np.float64 or not hasattr(estimator, "fit"):
                tree = weighed(tree, cells, weight)
        self._missing = self.missing
        self._share = self._shares(tree, cells, weight)
        self._flat, self._inputs, self._costs = tree, inputs, costs
        self._cells, self._weight, self._cache = cells, weight, {}
        self._target = target
        self.source_features_ = inputs.sources
        self.estimator_ = estimator
        self.classes_ = tree.classes
        self.n_classes_ = len(tree.classes)
        self.n_leaves_ = len(tree.leaves)

    def _shares(self, tree, cells, weight):
        """Return the share of each node that goes left where its value is unknown."""
        if self._missing == "path":
            return path_share(tree)
        if cells is None:
            raise ValueError('missing="marginal" needs rows; pass X to from_tree.')
        masses = cell_masses(tree, cells, weight)
        if not all(mass.sum() > 0 for mass in masses):
            raise ValueError(
                'missing="marginal" needs a known value of each feature that the tree '
                "tests; some have none in X."
            )
        return marginal_share(tree, masses)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_flat")

    def _known(self, X):
        """Return the bounds of what is known of each row."""
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=self._flat.dtype,
            ensure_all_finite="allow-nan",
            reset=False,
        )
        return self._inputs.read(X)

    def _known_row(self, x):
        """Return the bounds of what is known of one row, as of rows."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(x, "iloc") and list(x.index) != list(names):
            raise ValueError(
                f"The row must name the features as in fit, {list(names)}; got "
                f"{list(x.index)}."
            )
        x = np.asarray(x)
        if x.shape != (self.n_features_in_,):
            raise ValueError(
                f"The row must have shape ({self.n_features_in_},), a value for each "
                f"feature of the tree; got {x.shape}."
            )
        X = check_array(x[None], dtype=self._flat.dtype, ensure_all_finite="allow-nan")
        return self._inputs.read(X)

    def predict(self, X):
        """Predict class labels; NaN is unknown.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y_pred : array of shape (n_samples,)
            The tree's label where it is determined, else the most probable class of
            :meth:`predict_proba`. That can be a class which no completion gets: the
            second choice of several leaves.
        """
        bounds = self._known(X)
        labels = most_likely(self._flat, self._share, *bounds, self._inputs.groups)
        return self.classes_[labels]

    def predict_proba(self, X):
        """Predict class probabilities; NaN is unknown.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        proba : array of shape (n_samples, n_classes)
            Mean of the class distributions of the leaves that a row can reach, see
            `missing`. For a complete row, that of its leaf.
        """
        bounds = self._known(X)
        return mixture(self._flat, self._share, *bounds, self._inputs.groups)

    def predict_set(self, X):
        """Mark the labels that the tree can give to a row once it is complete.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is unknown.

        Returns
        -------
        possible : array of bool of shape (n_samples, n_classes)
            Whether some completion has the label.
        """
        bounds = self._known(X)
        return possible_labels(
            self._flat, self.n_classes_, *bounds, self._inputs.groups
        )

    def is_determined(self, X):
        """Tell for which rows the label cannot depend on what is unknown.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is unknown.

        Returns
        -------
        determined : array of bool of shape (n_samples,)
            Whether all completions have the same label.
        """
        return self.predict_set(X).sum(axis=1) == 1

    def predict_interval(self, X):
        """Bound the class probabilities that a row can have once it is complete.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is unknown.

        Returns
        -------
        interval : array of shape (n_samples, n_classes, 2)
            Least and largest probability over all completions.
        """
        return value_bounds(self._flat, *self._known(X), self._inputs.groups)

    @property
    def essential_thresholds_(self):
        """Thresholds that the function depends on, by feature."""
        return self._once("thresholds", lambda: essential_thresholds(self._flat))

    @property
    def relevant_features_(self):
        """Features that the function depends on."""
        return np.array(list(self.essential_thresholds_), int)

    @property
    def fingerprint_(self):
        """Hashable key that equal functions share."""
        return self._once("fingerprint", lambda: fingerprint(self._flat))

    def _once(self, name, compute):
        """Return what is computed from the function, once."""
        check_is_fitted(self)
        self._without_groups(f"{name} of the function")
        if name not in self._cache:
            self._cache[name] = compute()
        return self._cache[name]

    @property
    def feature_importances_(self):
        """Exact permutation importance on the training rows, scaled to the sum 1."""
        check_is_fitted(self)
        if self._target is None or self._cells is None:
            raise AttributeError(
                "feature_importances_ needs training rows; pass X and y to from_tree."
            )
        if "importances" not in self._cache:
            self._cache["importances"] = self._importances()
        return self._cache["importances"]

    def _importances(self):
        known = (self._cells >= 0).all(axis=1) & (self._weight > 0)
        if not known.any():
            warnings.warn(
                "feature_importances_ is zero: each training row has NaN in a feature "
                "that the tree tests.",
                UserWarning,
                stacklevel=3,
            )
            return np.zeros(self._flat.n_features)
        rows = self._cells[known], self._target[known], self._weight[known]
        importances = np.maximum(permutation_importance(self._flat, *rows), 0)
        total = importances.sum()
        return importances / total if total > 0 else importances

    def __dir__(self):
        # The HTML view reads every attribute that is listed, and these are slow; so does
        # scikit-learn's own __dir__.
        names = [name for name in object.__dir__(self) if name not in _LAZY]
        return [name for name in names if hasattr(self, name)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
