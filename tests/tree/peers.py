"""What other packages say about a tree on binary features."""

from contextlib import redirect_stdout
from copy import copy
from io import StringIO

import numpy as np


def pyxai_reasons(clf, x):
    """Return pyxai's sufficient and contrastive reasons, as sets of feature indices.

    `clf` is a fitted DecisionTreeClassifier that does not always predict the same: pyxai
    fails on those. On binary features, a literal of pyxai is a feature.
    """
    import pandas as pd
    from pyxai import Explaining, Learning

    x = np.asarray(x)
    # Its sufficient reasons are wrong, without a word, unless the classes are 0, 1, ...
    clf = copy(clf)
    clf.classes_ = np.arange(clf.n_classes_)
    # The last column holds the classes.
    frame = pd.DataFrame(np.tile(x, (clf.n_classes_, 1))).add_prefix("x")
    frame["y"] = clf.classes_
    with redirect_stdout(StringIO()):
        _, tree = Learning.ModelIO.import_models(clf, frame)
        explainer = Explaining.decision_tree(tree, x)
        sufficient = explainer.sufficient_reason(n=Explaining.ALL)
        contrastive = explainer.contrastive_reason(n=Explaining.ALL)
    literals = tree.map_id_binaries_to_features

    def features(reasons):
        return {frozenset(literals[abs(k)][0] - 1 for k in r) for r in reasons}

    return features(sufficient), features(contrastive)


def bdd_count(tree, n_features, label):
    """Count the binary rows to which a nested dict gives the label."""
    manager = _manager(n_features)
    return manager.count(_bdd(tree, label, manager), nvars=n_features)


def bdd_equal(a, b, n_features):
    """Tell whether two nested dicts give each binary row the same label."""
    manager = _manager(n_features)
    labels = _labels(a) | _labels(b)
    return all(_bdd(a, label, manager) == _bdd(b, label, manager) for label in labels)


def _manager(n_features):
    from dd.autoref import BDD

    manager = BDD()
    manager.declare(*(f"x{j}" for j in range(n_features)))
    return manager


def _bdd(node, label, manager):
    """Where the tree predicts the label; with a threshold, "true" is x <= threshold."""
    if "prediction" in node:
        return manager.true if node["prediction"] == label else manager.false
    first, other = (_bdd(node[side], label, manager) for side in ("true", "false"))
    if "threshold" in node:
        first, other = other, first
    return manager.ite(manager.var(f"x{node['feature']}"), first, other)


def _labels(node):
    if "prediction" in node:
        return {node["prediction"]}
    return _labels(node["true"]) | _labels(node["false"])
