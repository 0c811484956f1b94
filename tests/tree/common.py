"""What the tests with random trees have in common."""

from hypothesis import HealthCheck, settings

from skextra.tree import BooleanTree


def examples(n):
    """Settings for n examples that may take long on a busy machine."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(max_examples=n, deadline=None, suppress_health_check=slow)


def fitted(tree, n_classes=3, n_features=3, **params):
    """Take over a nested dict whose labels are 0, 1, ..."""
    classes = list(range(n_classes))
    return BooleanTree.from_tree(tree, classes, n_features, **params)
