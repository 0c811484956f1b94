"""Trees of any kind, made comparable."""

from dataclasses import replace

import numpy as np

from skextra.tree._inputs import plain_inputs
from skextra.tree._reasoning import ReasoningMixin
from skextra.tree._sources import flatten, unfrozen


def alike(trees, n_features=None):
    """Flatten trees that have the same classes, features and reading of the columns.

    What one tree declares holds for those that declare nothing, as dictionaries do,
    which test only some of the features and may predict only some of the classes.
    """
    trees = [unfrozen(tree) for tree in trees]
    declared = [t for t in trees if hasattr(t, "fit") or hasattr(t, "children_left")]
    own = [flatten(tree) for tree in declared]
    classes = own[0].classes if own else None
    for tree in own[1:]:
        if (tree.classes is None) != (classes is None):
            raise ValueError(
                "Some trees are for classification, others for regression."
            )
        if not np.array_equal(tree.classes, classes):
            raise ValueError(
                f"The trees have other classes: {classes} and {tree.classes}."
            )
    readers = [tree._inputs for tree in declared if isinstance(tree, ReasoningMixin)]
    if readers and not all(readers[0].same_as(other) for other in readers):
        raise ValueError(
            "The trees read their columns with other feature_domains, one_hot_groups or "
            "threshold_map."
        )
    known = [
        getattr(t, "n_features_in_", getattr(t, "n_features", None)) for t in declared
    ]
    numbers = {n_features, *known} - {None}
    if len(numbers) > 1:
        raise ValueError(
            f"The trees have other numbers of features: {sorted(numbers)}."
        )
    n_features = numbers.pop() if numbers else None
    flat = [
        tree._flat
        if isinstance(tree, ReasoningMixin)
        else flatten(tree, classes, n_features)
        for tree in trees
    ]
    if n_features is None:
        n_features = max(tree.n_features for tree in flat)
        flat = [replace(tree, n_features=n_features) for tree in flat]
    if classes is None and flat[0].classes is not None:
        union = np.unique(np.concatenate([tree.classes for tree in flat]))
        flat = [
            tree
            if len(tree.classes) == len(union)
            else flatten(given, union, n_features)
            for given, tree in zip(trees, flat, strict=True)
        ]
    read = readers[0] if readers else plain_inputs(n_features)
    flat = [
        tree if isinstance(given, ReasoningMixin) else read.adapt(tree)
        for given, tree in zip(trees, flat, strict=True)
    ]
    return flat, read
