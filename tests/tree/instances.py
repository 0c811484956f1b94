"""Instances of the tree for scikit-learn's checks, beside the default."""

from sklearn.tree import ExtraTreeClassifier

from skextra.tree import BooleanTree

INSTANCES = [
    BooleanTree(missing="marginal"),
    BooleanTree(ExtraTreeClassifier(random_state=0), rule_form="leaves"),
]
