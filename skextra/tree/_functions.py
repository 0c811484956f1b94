"""The reasoning as functions on any tree, for regression trees too."""

from numbers import Integral

import numpy as np
from sklearn.utils import Bunch, check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight, _get_feature_names

from skextra.tree import _equivalence
from skextra.tree._alike import alike
from skextra.tree._declarations import check_options, checked_costs
from skextra.tree._explanations import explain_rows
from skextra.tree._importance import permutation_importance, positions
from skextra.tree._missing import value_bounds


def trees_equivalent(a, b, output="auto"):
    """Tell whether two trees are the same function, exactly and in polynomial time.

    Parameters
    ----------
    a, b : object
        Fitted trees of any kind that :meth:`BooleanTree.from_tree` takes, or fitted
        regression trees of scikit-learn.

    output : {"auto", "label", "proba", "value"}, default="auto"
        What has to be the same for all rows. "auto" is "label" for classification and
        "value" for regression; probabilities and values are compared up to rounding.

    Returns
    -------
    equivalent : bool
        Whether no row tells the trees apart.

    Raises
    ------
    ValueError
        If the trees have other classes or another number of features, or no such
        `output`.

    References
    ----------
    .. [1] McTavish, Boner, Donnelly, Seltzer, Rudin, "Leveraging Predictive Equivalence
       in Decision Trees", ICML 2025.

    Examples
    --------
    >>> from skextra.tree import trees_equivalent
    >>> yes, no = {"prediction": 1}, {"prediction": 0}
    >>> a = {"feature": 0, "true": {"feature": 1, "true": yes, "false": no}, "false": no}
    >>> b = {"feature": 1, "true": {"feature": 0, "true": yes, "false": no}, "false": no}
    >>> trees_equivalent(a, b)
    True
    """
    return tree_counterexample(a, b, output) is None


def tree_counterexample(a, b, output="auto"):
    """Find a row for which two trees answer otherwise.

    Parameters
    ----------
    a, b : object
        As in :func:`trees_equivalent`.

    output : {"auto", "label", "proba", "value"}, default="auto"
        As in :func:`trees_equivalent`.

    Returns
    -------
    x : array of shape (n_features,) or None
        Such a row, or None if the trees are the same function.

    Raises
    ------
    ValueError
        If the trees have other classes or another number of features, or no such
        `output`.

    Examples
    --------
    >>> from skextra.tree import tree_counterexample
    >>> yes, no = {"prediction": 1}, {"prediction": 0}
    >>> a = {"feature": 0, "threshold": 2.0, "true": yes, "false": no}
    >>> b = {"feature": 0, "threshold": 3.0, "true": yes, "false": no}
    >>> tree_counterexample(a, b)
    array([3.])
    """
    (a, b), inputs = alike([a, b])
    point = _equivalence.find_counterexample(a, b, _output(a, output), inputs)
    return None if point is None else inputs.as_columns(point)


def unique_trees(trees, output="auto"):
    """Find the distinct functions among many trees.

    Labels are compared among trees that agree on a sample of points; for probabilities
    and values each tree is compared with every distinct one.

    Parameters
    ----------
    trees : iterable of object
        Trees as in :func:`trees_equivalent`.

    output : {"auto", "label", "proba", "value"}, default="auto"
        As in :func:`trees_equivalent`.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        With the attributes

        representatives : list of object
            The first tree of each class.
        inverse : array of shape (n_trees,)
            Which representative each tree equals.
        counts : array of shape (n_representatives,)
            Number of trees in each class.

    Raises
    ------
    ValueError
        If the trees have other classes or another number of features, or no such
        `output`.

    Examples
    --------
    >>> from skextra.tree import unique_trees
    >>> yes, no = {"prediction": 1}, {"prediction": 0}
    >>> stump = {"feature": 0, "true": yes, "false": no}
    >>> same = {"feature": 1, "true": stump, "false": stump}
    >>> unique_trees([stump, same, {"feature": 1, "true": yes, "false": no}]).counts
    array([2, 1])
    """
    trees = list(trees)
    if not trees:
        return Bunch(
            representatives=[], inverse=np.empty(0, int), counts=np.empty(0, int)
        )
    flat, inputs = alike(trees)
    output = _output(flat[0], output)
    distinct, inverse = _equivalence.group_equal(flat, output, inputs)
    return Bunch(
        representatives=[trees[i] for i in distinct],
        inverse=inverse,
        counts=np.bincount(inverse, minlength=len(distinct)),
    )


def essential_thresholds(tree):
    """Find the thresholds on which a tree's function depends.

    Parameters
    ----------
    tree : object
        Tree as in :func:`trees_equivalent`.

    Returns
    -------
    thresholds : dict of int to array
        For each relevant feature its thresholds, in order.

    Raises
    ------
    ValueError
        If the tree has one-hot groups.

    Examples
    --------
    >>> from skextra.tree import essential_thresholds
    >>> yes, no = {"prediction": 1}, {"prediction": 0}
    >>> stump = {"feature": 0, "threshold": 2.0, "true": yes, "false": no}
    >>> same = {"feature": 1, "threshold": 7.0, "true": stump, "false": stump}
    >>> essential_thresholds(same)
    {0: array([2.])}
    """
    (tree,), inputs = alike([tree])
    if inputs.groups:
        raise ValueError("Essential thresholds are not defined with one_hot_groups.")
    return _equivalence.essential_thresholds(tree)


def value_interval(tree, X):
    """Bound what a tree can predict once the unknown values are known.

    Parameters
    ----------
    tree : object
        Tree as in :func:`trees_equivalent`.

    X : array-like of shape (n_samples, n_features)
        Rows; NaN is unknown.

    Returns
    -------
    interval : array of shape (n_samples, 2) or (n_samples, n_classes, 2)
        Least and largest prediction of a regression tree, or probability of each class,
        over all completions. Both are attained.

    Raises
    ------
    ValueError
        If `X` has other features than the tree.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skextra.tree import value_interval
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> X[:, 2] = np.nan
    >>> value_interval(tree, X[:1]).round()
    array([[163., 226.]])
    """
    _check_names([tree], X)
    (tree,), inputs = alike([tree])
    bounds = value_bounds(tree, *inputs.read(_rows(X, tree, inputs)), inputs.groups)
    return bounds[:, 0] if tree.classes is None else bounds


def explain_tree(
    tree,
    X,
    kind="abductive",
    minimize="subset",
    inflate=False,
    max_explanations=1,
    *,
    costs=None,
    max_terms=10_000,
):
    """Explain what a tree predicts, as :meth:`BooleanTree.explain` does.

    Parameters
    ----------
    tree : object
        Tree as in :func:`trees_equivalent`. The label of a regression tree is its
        prediction.

    X : array-like of shape (n_samples, n_features)
        Rows; NaN is unknown, and the label must be determined.

    kind : {"abductive", "contrastive"}, default="abductive"
        As in :meth:`BooleanTree.explain`.

    minimize : {"subset", "cost"}, default="subset"
        As in :meth:`BooleanTree.explain`.

    inflate : bool, default=False
        As in :meth:`BooleanTree.explain`.

    max_explanations : int or "all", default=1
        Number of explanations of each row, or as many as there are.

    costs : array-like of shape (n_features,), default=None
        Cost of each feature; None is 1 each.

    max_terms : int, default=10_000
        Largest number of explanations of a row.

    Returns
    -------
    explanations : list of lists of Explanation
        Those of each row.

    Raises
    ------
    ValueError
        If the label of a row is not determined.

    BudgetExceededError
        If "all" are more than `max_terms`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skextra.tree import explain_tree
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> explain_tree(tree, X[:1])[0][0].features
    (2, 8)
    """
    check_options(
        kind=kind,
        minimize=minimize,
        inflate=inflate,
        max_explanations=max_explanations,
    )
    if not (isinstance(max_terms, Integral) and max_terms >= 1):
        raise ValueError(f"max_terms must be 1 or more; got {max_terms!r}.")
    _check_names([tree], X)
    (tree,), inputs = alike([tree])
    costs = checked_costs(costs, len(inputs.domains))
    labels = tree.classes
    if labels is None:
        labels = np.zeros(tree.label.max() + 1)
        labels[tree.label[tree.leaves]] = tree.value[tree.leaves, 0]
    lower, upper = inputs.read(_rows(X, tree, inputs))
    return explain_rows(
        tree,
        lower,
        upper,
        labels,
        inputs.groups,
        costs,
        kind=kind,
        by_cost=minimize == "cost",
        inflate=inflate,
        count=max_explanations,
        max_terms=max_terms,
    )


def exact_permutation_importance(tree, X, y, sample_weight=None):
    """Permutation importance over all pairs of rows instead of some shuffles.

    It is the expectation of the usual estimate, without its noise, and depends on the
    tree's function alone.

    Parameters
    ----------
    tree : object
        Classification tree as in :func:`trees_equivalent`.

    X : array-like of shape (n_samples, n_features)
        Rows, without NaN in the features that the tree tests.

    y : array-like of shape (n_samples,)
        Labels.

    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; None is 1 each.

    Returns
    -------
    importances : array of shape (n_features,)
        Accuracy lost when a feature's value is taken from a random row.

    Raises
    ------
    ValueError
        If a tested feature has NaN, or the weights sum to 0.

    TypeError
        If the tree is a regression tree.

    Notes
    -----
    With weights summing to W: ``MR_j = acc - sum_ik w_i w_k [f(x_i with x_kj) = y_i] /
    W^2``. A row is swapped with itself too; without that the loss is n / (n - 1) times
    as large.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skextra.tree import exact_permutation_importance
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> exact_permutation_importance(tree, X, y).round(2)
    array([0.  , 0.  , 0.1 , 0.54])
    """
    _check_names([tree], X)
    (tree,), inputs = alike([tree])
    _require_classes(tree)
    X = _rows(X, tree, inputs)
    y, weight = column_or_1d(y), _check_sample_weight(sample_weight, X)
    check_consistent_length(X, y)
    if (weight < 0).any() or not weight.sum() > 0:
        raise ValueError("sample_weight must be 0 or more, and not all 0.")
    return _importance(tree, inputs, X, y, weight)


def rashomon_importance(tree_sets, X, y, deduplicate=True):
    """Distribution of each feature's importance over sets of nearly optimal trees.

    The Rashomon importance distribution gives each set, one for each bootstrap sample
    of the data, the same weight, and divides it among the set's trees; with
    `deduplicate`, among its distinct functions, so that a function does not count for
    more because it can be drawn in many ways.

    Parameters
    ----------
    tree_sets : iterable of iterables of object
        Sets of classification trees as in :func:`trees_equivalent`, from a package that
        enumerates them.

    X : array-like of shape (n_samples, n_features)
        Rows on which importance is measured, without NaN in tested features.

    y : array-like of shape (n_samples,)
        Labels.

    deduplicate : bool, default=True
        Whether a function counts once in a set.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        With the attributes

        importances : array of shape (n_functions, n_features)
            Exact permutation importances of all functions of all sets.
        weights : array of shape (n_functions,)
            Their weights, of sum 1.

    Raises
    ------
    ValueError
        If there is no set, a set has no tree, or a tested feature has NaN.

    TypeError
        If the trees are regression trees.

    Examples
    --------
    >>> from skextra.tree import rashomon_importance
    >>> yes, no = {"prediction": 1}, {"prediction": 0}
    >>> a, b = ({"feature": j, "true": yes, "false": no} for j in (0, 1))
    >>> same = {"feature": 1, "true": a, "false": a}
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 1]
    >>> rashomon_importance([[a, same, b]], X, y).weights
    array([0.5, 0.5])
    """
    values, weights = [], []
    n_features = check_array(X, ensure_all_finite="allow-nan").shape[1]
    y = column_or_1d(y)
    check_consistent_length(X, y)
    tree_sets = [list(trees) for trees in tree_sets]
    if not tree_sets:
        raise ValueError("tree_sets has no set.")
    for number, trees in enumerate(tree_sets):
        if not trees:
            raise ValueError(f"Set {number} of tree_sets has no tree.")
        if deduplicate:
            trees = unique_trees(trees).representatives
        flat, inputs = alike(trees, n_features)
        _require_classes(flat[0])
        _check_names(trees, X)
        example = {tree.dtype: tree for tree in flat}
        rows = {dtype: _rows(X, tree, inputs) for dtype, tree in example.items()}
        for tree in flat:
            read = rows[tree.dtype]
            values.append(_importance(tree, inputs, read, y, np.ones(len(y))))
        weights += [1 / len(trees) / len(tree_sets)] * len(trees)
    return Bunch(importances=np.array(values), weights=np.array(weights))


def _importance(tree, inputs, X, y, weight):
    cells = tree.cells(*inputs.read(X))
    if (cells < 0).any():
        j = tree.used[(cells < 0).any(axis=0)][0]
        raise ValueError(
            f"Permutation importance needs the values of the features that the tree "
            f"tests; feature {j} of X has NaN."
        )
    target = positions(tree.classes, y)
    return permutation_importance(tree, cells, target, weight)


def _require_classes(tree):
    if tree.classes is None:
        raise TypeError("tree must be a classification tree; got a regression tree.")


def _output(tree, output):
    """Resolve "auto", and check that the trees have the output."""
    accepted = ["value"] if tree.classes is None else ["label", "proba"]
    if output == "auto":
        return accepted[0]
    if output not in accepted:
        kind = "regression" if tree.classes is None else "classification"
        raise ValueError(
            f"output must be one of {['auto', *accepted]} for {kind} trees; got "
            f"{output!r}."
        )
    return output


def _check_names(trees, X):
    """Check that a DataFrame has the columns that trees were fitted on."""
    names = _get_feature_names(X)
    for tree in trees:
        known = getattr(tree, "feature_names_in_", None)
        both = names is not None and known is not None
        if both and not np.array_equal(names, known):
            raise ValueError(
                f"X must have the columns that the tree was fitted on, {list(known)}; got "
                f"{list(names)}."
            )


def _rows(X, tree, inputs):
    X = check_array(X, dtype=tree.dtype, ensure_all_finite="allow-nan")
    if X.shape[1] != inputs.n_columns:
        raise ValueError(
            f"X has {X.shape[1]} features, and the tree {inputs.n_columns}."
        )
    return X
