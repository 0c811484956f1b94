"""Flat arrays from the trees of scikit-learn, of other packages and of nested dicts."""

from numbers import Real

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skextra.tree._flat import LEAF, FlatTree, float32_below, subtree

INDEX = (int, np.integer)
ACCEPTED = (
    "a fitted tree of scikit-learn, a fitted BooleanTree, nested dicts (our own, or of "
    "treefarms or pydl8.5), the paths and predictions of praxis or arborenum, or a "
    "fitted tree of gosdt, pystreed or pydl8.5"
)


def flatten(tree, classes=None, n_features=None):
    """Return the tree as a FlatTree.

    Leaves name labels, which are looked up in `classes`; without them, the labels that
    occur are the classes. What a fitted tree knows itself must agree with what is given.
    """
    tree = unfrozen(tree)
    flat = tree if isinstance(tree, FlatTree) else getattr(tree, "_flat", None)
    if not isinstance(flat, FlatTree):
        flat = _read(tree, classes, n_features)
    if n_features is not None and n_features != flat.n_features:
        raise ValueError(
            f"n_features={n_features} was given, but the tree has {flat.n_features}."
        )
    if classes is not None and not np.array_equal(classes, flat.classes):
        raise ValueError(
            f"classes={classes!r} was given, but the tree has {flat.classes!r}."
        )
    return flat


def unfrozen(tree):
    """Return what is in a FrozenEstimator, or the tree itself."""
    while isinstance(tree, FrozenEstimator):
        tree = tree.estimator
    return tree


def _read(tree, classes, n_features):
    """Choose the reader by what the tree has: the packages are not imported."""
    if isinstance(tree, dict):
        return _assemble(*_grow(tree, _dict_node), classes, n_features)
    if isinstance(tree, tuple) and len(tree) == 2:
        nested = _dict_from_paths(*tree)
        return _assemble(*_grow(nested, _dict_node), classes, n_features)
    if hasattr(tree, "children_left"):
        return _from_sklearn(tree, classes)
    if hasattr(tree, "num_instances_per_class"):
        return _from_streed(tree, None, classes, n_features)
    if isinstance(getattr(tree, "source", None), dict):  # treefarms
        return _read(tree.source, classes, n_features)
    if hasattr(tree, "tree") and hasattr(tree, "classes"):  # gosdt
        own = np.asarray(tree.classes)
        nodes, leaves = _grow(tree.tree, _gosdt_node)
        leaves = {i: (own[index], *rest) for i, (index, *rest) in leaves.items()}
        return _assemble(nodes, leaves, own, len(tree.features))
    if getattr(tree, "trees_", None):  # of a GOSDTClassifier, the one that predicts
        return _read(tree.trees_[0], classes, n_features)
    if hasattr(tree, "tree_"):
        return _from_estimator(tree, classes, n_features)
    name = type(tree).__name__
    if hasattr(tree, "fit"):
        # an unfitted STreeDClassifier has other fitted attributes
        check_is_fitted(tree, "tree_" if hasattr(tree, "get_tree") else None)
    raise TypeError(f"The tree must be {ACCEPTED}; got {name}.")


def _from_estimator(estimator, classes, n_features):
    """Read a fitted estimator whose tree is `tree_`."""
    tree = estimator.tree_
    if not tree or not getattr(estimator, "is_fitted_", True):
        name = type(estimator).__name__
        raise NotFittedError(f"This {name} is not fitted, or its fit found no tree.")
    if getattr(tree, "n_outputs", 1) > 1:  # then classes_ is a list
        raise ValueError(f"The tree has {tree.n_outputs} outputs; it must have one.")
    classes = getattr(estimator, "classes_", classes)
    if hasattr(tree, "num_instances_per_class"):
        return _from_streed(tree, estimator.binarizer_, classes, n_features)
    return _read(tree, classes, getattr(estimator, "n_features_in_", n_features))


def _from_sklearn(tree, classes):
    """Read scikit-learn's own arrays."""
    if tree.n_outputs > 1:
        raise ValueError(f"The tree has {tree.n_outputs} outputs; it must have one.")
    n_classes = tree.max_n_classes
    if classes is None and n_classes > 1:
        classes = np.arange(n_classes)
    if classes is not None and len(classes) != n_classes:
        raise ValueError(
            f"{len(classes)} classes were given, but the tree's leaves have {n_classes} "
            "values."
        )
    left, right = tree.children_left, tree.children_right
    leaf = left == LEAF
    value = tree.value[:, 0, :].astype(float)
    label = value.argmax(axis=1)
    if classes is None:
        label[leaf] = np.unique(value[leaf, 0], return_inverse=True)[1]
    flat = FlatTree(
        feature=np.where(leaf, LEAF, tree.feature).astype(np.int32),
        threshold=np.where(leaf, 0.0, float32_below(tree.threshold)),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        weight=tree.weighted_n_node_samples.astype(float),
        value=value,
        label=label.astype(np.int32),
        n_features=int(tree.n_features),
        classes=None if classes is None else np.asarray(classes),
        dtype=np.float32,
    )
    return subtree(flat, np.arange(len(left)))


def _from_streed(root, binarizer, classes, n_features):
    """Read pystreed's nodes; a binarizer says what their binary features mean."""
    tests = None
    if binarizer is not None:
        tests, n_features = _streed_tests(binarizer)
    nodes, leaves = _grow(root, lambda node: _streed_node(node, tests))
    found = {label for label, *_ in leaves.values()}
    seen = np.flatnonzero(root.num_instances_per_class).tolist()
    # Tasks other than accuracy do not count by class: their leaves stay one-hot.
    is_counted = found <= set(seen)
    if classes is None:
        classes = seen if is_counted else sorted(found)
    for i, (label, counts, weight) in leaves.items():
        share = None
        if is_counted and weight:
            count = dict(enumerate(counts))
            share = np.array([count.get(c, 0) for c in classes]) / weight
        leaves[i] = label, share, weight
    return _assemble(nodes, leaves, classes, n_features)


def _streed_tests(binarizer):
    """Return pystreed's binary features as (column, t), t None if it is the column.

    Otherwise the feature is 1 where the column is <= t.
    """
    binary, continuous = binarizer.binary_columns, binarizer.continuous_columns
    if binarizer.categorical_columns or binarizer.binary_feature_limiter is not None:
        raise ValueError(
            "An STreeDClassifier with categorical columns or max_num_binary_features "
            "does not tell what its tree tests: fit it on binary columns."
        )
    if not continuous:
        return [(j, None) for j in range(len(binary))], len(binary)
    if not all(isinstance(j, INDEX) for j in [*binary, *continuous]):
        raise ValueError(
            "An STreeDClassifier does not keep the order of a DataFrame's columns if "
            "some are continuous: fit it on an array."
        )
    cuts = zip(continuous, binarizer.continuous_binarizer.thresholds_, strict=True)
    tests = [(j, None) for j in binary] + [(j, t) for j, ts in cuts for t in ts]
    return tests, len(binary) + len(continuous)


def _grow(root, read):
    """Number the nodes in preorder; return their lists and ``{leaf: what it holds}``.

    ``read(node)`` returns the feature, the threshold and the children for ``<=`` and
    ``>``, or LEAF, the label, its distribution and the weight, None where not known.
    """
    feature, threshold, left, right = [], [], [], []
    leaves, stack = {}, [(root, LEAF)]
    while stack:
        node, parent = stack.pop()
        if parent != LEAF:
            right[parent] = len(feature)
        while True:
            i = len(feature)
            j, *rest = read(node)
            feature.append(j)
            right.append(LEAF)
            if j == LEAF:
                threshold.append(0.0)
                left.append(LEAF)
                leaves[i] = rest
                break
            cut, node, other = rest
            threshold.append(cut)
            left.append(i + 1)
            stack.append((other, i))
    return (feature, threshold, left, right), leaves


def _split(feature, threshold, low, high):
    """Check a split that `_grow` reads."""
    if not isinstance(feature, INDEX) or feature < 0:
        raise ValueError(f"A split's feature must be an index; got {feature!r}.")
    return int(feature), threshold, low, high


def _dict_node(node):
    """Read a nested dict: our own, of gosdt and treefarms, or of pydl8.5."""
    if not isinstance(node, dict):
        raise ValueError(f"A node must be a dict; got {node!r}.")
    if "prediction" in node and "feature" not in node:
        return LEAF, node["prediction"], node.get("value"), node.get("weight")
    if "feat" in node:  # pydl8.5, where left is 1
        _require(node, "left", "right")
        return _split(node["feat"], 0.5, node["right"], node["left"])
    if "error" in node:  # a leaf of pydl8.5
        _require(node, "value")
        return LEAF, node["value"], None, None
    _require(node, "feature", "true", "false")
    if "threshold" not in node:
        # treefarms can also test for other values than 1
        relation, reference = node.get("relation", "=="), node.get("reference", 1)
        if relation != "==" or reference not in (1, "true"):
            raise ValueError(
                "A split without 'threshold' must test whether a binary feature is 1; "
                f"got relation {relation!r} and reference {reference!r}."
            )
        return _split(node["feature"], 0.5, node["false"], node["true"])
    threshold = node["threshold"]
    if not isinstance(threshold, Real) or threshold != threshold:
        raise ValueError(f"A split's threshold must be a number; got {threshold!r}.")
    return _split(node["feature"], float(threshold), node["true"], node["false"])


def _require(node, *keys):
    """Say what a dict lacks."""
    missing = [key for key in keys if key not in node]
    if missing:
        raise ValueError(
            f"A node lacks {missing}: a leaf needs 'prediction', a split 'feature', "
            f"'true' and 'false'; got {sorted(map(str, node))}."
        )


def _dict_from_paths(paths, predictions):
    """Nest the paths of praxis: j + 1 where feature j is 1, -(j + 1) where it is 0."""
    root = {}
    for path, prediction in zip(paths, predictions, strict=True):
        node = root
        for step in path:
            if node.setdefault("feature", abs(step) - 1) != abs(step) - 1:
                raise ValueError("The paths are not those of one tree.")
            node = node.setdefault("true" if step > 0 else "false", {})
        if prediction == -1:
            raise ValueError("A leaf of the tree defers its prediction.")
        node["prediction"] = prediction
    return root


def _gosdt_node(node):
    """Read gosdt's nodes, where left is 1 and a leaf holds the index of its class."""
    if hasattr(node, "prediction"):
        return LEAF, node.prediction, None, None
    return _split(node.feature, 0.5, node.right_child, node.left_child)


def _streed_node(node, tests):
    """Read pystreed's nodes, where left is 0."""
    if node.is_leaf_node():
        if isinstance(node.label, float):
            raise TypeError(f"A tree of pystreed must classify; got {type(node)}.")
        return LEAF, node.label, node.num_instances_per_class, node.num_instances
    feature, cut = tests[node.feature] if tests else (node.feature, None)
    if cut is None:
        return _split(feature, 0.5, node.left_child, node.right_child)
    return _split(feature, float(cut), node.right_child, node.left_child)


def _assemble(nodes, leaves, classes, n_features):
    """Make the arrays from what `_grow` found."""
    features, thresholds, left, right = nodes
    n_used = max(features) + 1
    if n_features is None:
        n_features = n_used
    elif n_used > n_features:
        raise ValueError(
            f"A split's feature is {n_used - 1}, but there are {n_features} features."
        )
    try:
        if classes is None:
            classes = sorted({label for label, *_ in leaves.values()})
        classes = np.asarray(classes)
        index = {label: k for k, label in enumerate(classes.tolist())}
        at = {i: index[label] for i, (label, *_) in leaves.items()}
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"A leaf must predict a label among the classes, {classes}; got {error}."
        ) from None
    value, label = np.zeros((len(left), len(classes))), np.zeros(len(left), np.int32)
    label[list(at)] = list(at.values())
    weight = [0.0] * len(left)
    for i, (_, share, leaf_weight) in leaves.items():
        if share is None:
            value[i, at[i]] = 1.0
        else:
            value[i] = _distribution(share, len(classes))
        weight[i] = 1.0 if leaf_weight is None else float(leaf_weight)
    for i in range(len(left) - 1, -1, -1):
        if left[i] != LEAF:
            weight[i] = weight[left[i]] + weight[right[i]]
    if not 0 <= min(weight) <= max(weight) < np.inf:
        raise ValueError("The weights of leaves must be finite and not negative.")
    return FlatTree(
        feature=np.array(features, np.int32),
        threshold=np.array(thresholds),
        left=np.array(left, np.int32),
        right=np.array(right, np.int32),
        weight=np.array(weight),
        value=value,
        label=label,
        n_features=n_features,
        classes=classes,
        dtype=np.float64,
    )


def _distribution(share, n_classes):
    """Check the class distribution of a leaf."""
    share = np.asarray(share, float)
    is_share = share.shape == (n_classes,) and (share >= 0).all()
    if not is_share or abs(share.sum() - 1) > 1e-6:
        raise ValueError(
            f"A leaf's value must be {n_classes} shares that sum to 1; got {share}."
        )
    return share
