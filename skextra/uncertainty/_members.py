"""Predictions of the members of an ensemble, each on its own."""

from functools import singledispatch

import numpy as np
from scipy.sparse import issparse
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skextra.uncertainty._inputs import count
from skextra.uncertainty._leaves import gather
from skextra.utils import run_parallel

FORESTS = (RandomForestClassifier, ExtraTreesClassifier)
FOREST_REGRESSORS = (RandomForestRegressor, ExtraTreesRegressor)
BOOSTING = (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
STACKING = (StackingClassifier, StackingRegressor)
KNOWN = (
    "random forests, extra trees, bagging, voting, objects with predict_members or "
    "sample_y, pipelines and searches that end in one of these, lists of fitted "
    "estimators, and arrays"
)


def member_predictions(
    estimator, X, *, n_draws=100, random_state=None, return_weights=False
):
    """Return the predictions of each member of an ensemble.

    Members stand for what the truth could be: draws of a posterior, or models fitted to
    variants of the data. The other functions of this sub-package take what this one
    returns.

    Parameters
    ----------
    estimator : fitted estimator, list of fitted estimators or ndarray
        Where the members are. A random forest, extra trees, a bagging or a voting
        estimator; an object with a method ``predict_members(X)`` that returns an array
        of shape (n_members, n_samples), such as
        :class:`~skextra.ensemble.RFEnsembleRegressor`; an object with ``sample_y``,
        such as :class:`~sklearn.gaussian_process.GaussianProcessRegressor`; a pipeline,
        search or frozen estimator around one of them; a list or tuple of fitted
        classifiers, or of fitted regressors; or the predictions themselves.

    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to predict. May be None if `estimator` is an array.

    n_draws : int, default=100
        Number of functions to draw where the members are draws of ``sample_y``.

    random_state : int, RandomState instance or None, default=None
        Where those draws come from.

    return_weights : bool, default=False
        Whether to return the weights of the members, too.

    Returns
    -------
    predictions : ndarray of shape (n_samples, n_members[, n_classes])
        Probabilities of the classes, in the order of ``estimator.classes_``, or, of
        regressors, values. Classes of a list of classifiers are all that any of them
        knows, sorted; a member gives 0 to those it does not know.

    weights : ndarray of shape (n_members,)
        Weights of the members, of sum 1. All are equal, but of a voting estimator that
        has weights. Only if `return_weights` is true.

    Raises
    ------
    TypeError
        If the estimator has no members, such as a boosting or stacking one.

    ValueError
        If it has several outputs, or an array is not of the documented shape.

    NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from skextra.uncertainty import member_predictions
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> member_predictions(forest, X).shape
    (150, 20, 3)
    """
    n_draws = count(n_draws, "n_draws")
    core, X = unwrap(estimator, X)
    predictions = _members(core, X, n_draws, random_state)
    if not return_weights:
        return predictions
    weights = _weights(core)
    if weights is None:
        weights = np.ones(predictions.shape[1])
    return predictions, weights / weights.sum()


@singledispatch
def unwrap(estimator, X):
    """Return the estimator that has the members, and what it sees of X."""
    if hasattr(estimator, "best_estimator_"):
        return unwrap(estimator.best_estimator_, X)
    if not isinstance(estimator, list | tuple | np.ndarray | type):
        if not hasattr(estimator, "__sklearn_tags__") and not hasattr(estimator, "fit"):
            return estimator, X
        check_is_fitted(estimator)
    return estimator, X


@unwrap.register
def _(estimator: Pipeline, X):
    check_is_fitted(estimator)
    if len(estimator) > 1:
        X = estimator[:-1].transform(X)
    return unwrap(estimator[-1], X)


@unwrap.register
def _(estimator: FrozenEstimator, X):
    return unwrap(estimator.estimator, X)


def draws_members(estimator):
    """Return whether members are drawn anew, together for all rows, in each call."""
    known = hasattr(estimator, "predict_members")
    return hasattr(estimator, "sample_y") and not known


def _register(function, types):
    """Return a decorator that registers a function for several types."""

    def decorator(implementation):
        for cls in types:
            function.register(cls, implementation)
        return implementation

    return decorator


@singledispatch
def _members(estimator, X, n_draws, random_state):
    """Return the predictions of the members."""
    if hasattr(estimator, "predict_members"):
        return _one_output(np.asarray(estimator.predict_members(X)).T, estimator)
    if hasattr(estimator, "sample_y"):
        return _one_output(estimator.sample_y(X, n_draws, random_state), estimator)
    name = getattr(estimator, "__name__", type(estimator).__name__)
    raise TypeError(f"{name} has no members that are known: these are {KNOWN}.")


@_register(_members, BOOSTING)
def _(estimator, X, n_draws, random_state):
    raise TypeError(
        f"{type(estimator).__name__} has no members: its stages are corrections of the "
        f"stages before, not predictions of their own. Known are {KNOWN}."
    )


@_register(_members, STACKING)
def _(estimator, X, n_draws, random_state):
    raise TypeError(
        f"{type(estimator).__name__} has no members: its last level corrects the level "
        f"before, whose predictions are not its own. Known are {KNOWN}."
    )


@_members.register
def _(process: GaussianProcessRegressor, X, n_draws, random_state):
    # Without a fit it would draw from the prior.
    check_is_fitted(process, "X_train_")
    return _one_output(process.sample_y(X, n_draws, random_state), process)


@_members.register
def _(estimator: np.ndarray, X, n_draws, random_state):
    if estimator.ndim not in (2, 3):
        raise ValueError(
            "an array of predictions must have shape (n_samples, n_members) or "
            f"(n_samples, n_members, n_classes); got {estimator.shape}."
        )
    if X is not None and _num_samples(X) != len(estimator):
        raise ValueError(
            f"an array of predictions must have a row for each of X, {_num_samples(X)}; "
            f"got {len(estimator)}."
        )
    return estimator


@_register(_members, FORESTS)
def _(forest, X, n_draws, random_state):
    return _at_leaves(forest, X, _node_values)


@_register(_members, FOREST_REGRESSORS)
def _(forest, X, n_draws, random_state):
    return _at_leaves(forest, X, _node_values)[..., 0]


@_members.register
def _(bagging: BaggingClassifier, X, n_draws, random_state):
    # Members are fitted to the numbers of the classes.
    known = np.arange(len(bagging.classes_))
    return np.stack(_bagged(bagging, X, _probabilities, known), axis=1)


@_members.register
def _(bagging: BaggingRegressor, X, n_draws, random_state):
    return np.stack(_bagged(bagging, X, _values), axis=1)


@_members.register
def _(voting: VotingClassifier, X, n_draws, random_state):
    if voting.voting != "soft":
        raise ValueError(
            f"members must give probabilities: voting must be 'soft'; got "
            f"{voting.voting!r}."
        )
    known = np.arange(len(voting.classes_))
    return np.stack([_probabilities(m, X, known) for m in voting.estimators_], axis=1)


@_members.register
def _(voting: VotingRegressor, X, n_draws, random_state):
    return np.stack([_values(m, X) for m in voting.estimators_], axis=1)


@_register(_members, (list, tuple))
def _(estimators, X, n_draws, random_state):
    kinds = {_kind(member) for member in estimators}
    if len(kinds) != 1 or None in kinds:
        names = ", ".join(type(member).__name__ for member in estimators) or "nothing"
        raise TypeError(
            "a list of members must have fitted classifiers alone, or fitted regressors "
            f"alone; got {names}."
        )
    for member in estimators:
        check_is_fitted(member)
    if kinds == {"regressor"}:
        return np.stack([_values(member, X) for member in estimators], axis=1)
    if any(isinstance(member.classes_, list) for member in estimators):
        raise ValueError("a list of members must have one output each; got several.")
    known = unique_labels(*(member.classes_ for member in estimators))
    return np.stack([_probabilities(m, X, known) for m in estimators], axis=1)


def _kind(member):
    """Return "classifier", "regressor", or None."""
    if not hasattr(member, "__sklearn_tags__"):
        return None
    kind = get_tags(member).estimator_type
    return kind if kind in ("classifier", "regressor") else None


@singledispatch
def _weights(estimator):
    """Return the weights of the members, or None where all are equal."""
    return None


@_register(_weights, (VotingClassifier, VotingRegressor))
def _(voting):
    if voting.weights is None:
        return None
    pairs = zip(voting.estimators, voting.weights, strict=True)
    return np.array([w for (_, member), w in pairs if not _dropped(member)], float)


def _dropped(member):
    """Return whether a voting estimator leaves this member out."""
    return isinstance(member, str) and member == "drop"


def _bagged(bagging, X, predict, *args):
    """Return what `predict` gives for each member at the columns that it knows."""
    X = validate_data(
        bagging,
        X,
        accept_sparse=["csr", "csc"],
        dtype=None,
        ensure_all_finite=False,
        reset=False,
    )
    pairs = zip(bagging.estimators_, bagging.estimators_features_, strict=True)
    tasks = (
        delayed(predict)(member, X[:, columns], *args) for member, columns in pairs
    )
    return list(run_parallel(tasks, bagging.n_jobs))


def _probabilities(member, X, known):
    """Return the probabilities of the known classes, 0 for those it does not know."""
    if not hasattr(member, "predict_proba"):
        raise TypeError(
            f"members must have predict_proba; {type(member).__name__} has none."
        )
    p = np.asarray(member.predict_proba(X))
    if len(member.classes_) == len(known):
        return p
    aligned = np.zeros((len(p), len(known)))
    aligned[:, np.searchsorted(known, member.classes_)] = p
    return aligned


def _values(member, X):
    """Return the predictions of a regressor, which must have one output."""
    y = np.asarray(member.predict(X))
    if y.ndim == 2 and y.shape[1] == 1:
        return y[:, 0]
    if y.ndim != 1:
        raise ValueError(
            f"{type(member).__name__} must have one output; got predictions of shape "
            f"{y.shape}."
        )
    return y


def _one_output(predictions, estimator):
    """Return predictions (n_samples, n_members), and refuse several outputs."""
    if predictions.ndim != 2:
        raise ValueError(
            f"{type(estimator).__name__} must have one output; got members of shape "
            f"{predictions.shape}."
        )
    return predictions


def _at_leaves(forest, X, table):
    """Return what a forest's trees say of rows, (n_samples, n_members, n_entries)."""
    check_is_fitted(forest)
    if forest.n_outputs_ > 1:
        raise ValueError(
            f"{type(forest).__name__} must have one output; got {forest.n_outputs_}."
        )
    allow_nan = get_tags(forest).input_tags.allow_nan and not issparse(X)
    X = validate_data(
        forest,
        X,
        accept_sparse="csr",
        dtype=np.float32,
        ensure_all_finite="allow-nan" if allow_nan else True,
        reset=False,
    )
    trees = [tree.tree_ for tree in forest.estimators_]
    return gather(trees, list(map(table, forest.estimators_)), X, forest.n_jobs)


def _node_values(tree):
    """Return the shares of the classes in each node, or the mean of y, (n_nodes, m)."""
    return tree.tree_.value[:, 0]


def leaf_noise(estimator, X):
    """Return the variance of y in the leaf of each row in each tree.

    Parameters
    ----------
    estimator : fitted estimator
        Forest, extra trees, single regression tree, or bagging or voting of such trees,
        grown by squared error; or a pipeline, search or frozen estimator around one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)

    Returns
    -------
    variance : ndarray of shape (n_samples, n_members)

    Raises
    ------
    ValueError
        If the members are no such trees.
    """
    return _leaf_noise(*unwrap(estimator, X))


@singledispatch
def _leaf_noise(estimator, X):
    """Return the impurities of the leaves of the trees."""
    raise ValueError(
        "noise='leaf' needs an ensemble of regression trees; got "
        f"{type(estimator).__name__}. Give noise a number, the variance of an outcome "
        "around the prediction of a member."
    )


@_register(_leaf_noise, FOREST_REGRESSORS)
def _(forest, X):
    return _at_leaves(forest, X, _impurities)[..., 0]


@_leaf_noise.register
def _(tree: DecisionTreeRegressor, X):
    return _leaf_variance(tree, X)[:, None]


@_leaf_noise.register
def _(bagging: BaggingRegressor, X):
    return np.stack(_bagged(bagging, X, _leaf_variance), axis=1)


@_leaf_noise.register
def _(voting: VotingRegressor, X):
    return np.stack([_leaf_variance(m, X) for m in voting.estimators_], axis=1)


def _leaf_variance(tree, X):
    """Return the variance of y in the leaves of one tree."""
    tree, X = unwrap(tree, X)
    if not isinstance(tree, DecisionTreeRegressor):
        _leaf_noise.dispatch(object)(tree, X)
    return _impurities(tree)[tree.apply(X), 0]


def _impurities(tree):
    """Return the variance of y in each node of a tree, (n_nodes, 1)."""
    if tree.criterion not in ("squared_error", "friedman_mse"):
        raise ValueError(
            "noise='leaf' needs trees grown with criterion='squared_error' or "
            f"'friedman_mse'; got {tree.criterion!r}. Give noise a number, the variance "
            "of an outcome around the prediction of a member."
        )
    # A difference of sums of squares, which rounding can take below 0.
    return np.maximum(tree.tree_.impurity, 0)[:, None]
