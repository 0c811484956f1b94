"""What the input says of the features that a tree tests."""

from dataclasses import dataclass, replace

import numpy as np

from skextra.tree._flat import LEAF, in_domains


@dataclass(frozen=True)
class Inputs:
    """How columns are read: domains, one-hot groups, and columns that are tests.

    The features of a tree are the columns, or with a `threshold_map` the `sources` of
    the tests and the columns that are none.
    """

    n_columns: int
    domains: np.ndarray  # (n_features,) "continuous", "integer" or "binary"
    groups: list  # arrays of features
    tests: dict  # column: (feature, threshold)
    columns: dict  # column: feature, for the columns that are no test
    sources: np.ndarray | None  # names of the features, with a threshold_map

    @property
    def group(self):
        """Number of the one-hot group of each feature, -1 for none."""
        group = np.full(len(self.domains), -1)
        for number, members in enumerate(self.groups):
            group[members] = number
        return group

    def same_as(self, other):
        """Tell whether other inputs are read in the same way."""
        return (
            np.array_equal(self.domains, other.domains)
            and np.array_equal(self.group, other.group)
            and self.tests == other.tests
        )

    def as_columns(self, point):
        """Return the columns of a row of features."""
        if not self.tests:
            return point
        x = np.empty(self.n_columns)
        for column, feature in self.columns.items():
            x[column] = point[feature]
        for column, (feature, threshold) in self.tests.items():
            x[column] = point[feature] <= threshold
        return x

    def adapt(self, tree):
        """Rewrite a tree over the columns as one over the features."""
        if not self.tests:
            return in_domains(tree, self.domains, self.groups)
        domains = np.full(self.n_columns, "continuous")
        domains[list(self.tests)] = "binary"
        tree = in_domains(tree, domains, [])
        feature, threshold = tree.feature.copy(), tree.threshold.copy()
        left, right = tree.left.copy(), tree.right.copy()
        for node in np.flatnonzero(tree.feature != LEAF):
            column = int(tree.feature[node])
            if column in self.tests:
                # The test is x <= threshold, and 1 where it holds.
                feature[node], threshold[node] = self.tests[column]
                left[node], right[node] = tree.right[node], tree.left[node]
            else:
                feature[node] = self.columns[column]
        tree = replace(
            tree,
            feature=feature,
            threshold=threshold,
            left=left,
            right=right,
            n_features=len(self.domains),
            dtype=np.float64,
        )
        return in_domains(tree, self.domains, self.groups)

    def read(self, X):
        """Return the bounds of what is known of each feature; NaN is unknown."""
        if not self.tests:
            self._check_domains(X)
            return X, X
        lower = np.full((len(X), len(self.domains)), -np.inf)
        upper = -lower
        for column, feature in self.columns.items():
            known = ~np.isnan(X[:, column])
            lower[known, feature] = upper[known, feature] = X[known, column]
        for column, (feature, threshold) in self.tests.items():
            holds, fails = X[:, column] == 1, X[:, column] == 0
            wrong = ~(holds | fails | np.isnan(X[:, column]))
            if wrong.any():
                raise ValueError(
                    f"Column {column} of X is a test by threshold_map, so it must be 0, "
                    f"1 or NaN; got {X[wrong, column][0]:g} in row {np.argmax(wrong)}."
                )
            above = np.nextafter(threshold, np.inf)
            upper[holds, feature] = np.minimum(upper[holds, feature], threshold)
            lower[fails, feature] = np.maximum(lower[fails, feature], above)
        against = lower > upper
        if against.any():
            row, feature = np.argwhere(against)[0]
            columns = [c for c, (j, _) in self.tests.items() if j == feature]
            raise ValueError(
                f"Row {row} of X contradicts itself: its columns {columns}, which are "
                f"tests of {self.sources[feature]!r} by threshold_map, hold for no value."
            )
        unknown = np.isinf(lower) & np.isinf(upper)
        lower[unknown] = upper[unknown] = np.nan
        return lower, upper

    def _check_domains(self, X):
        for j in np.flatnonzero(self.domains != "continuous"):
            x = X[:, j][~np.isnan(X[:, j])]
            binary = self.domains[j] == "binary"
            wrong = (x != 0) & (x != 1) if binary else x != np.floor(x)
            if wrong.any():
                raise ValueError(
                    f"Feature {j} of X is {self.domains[j]} by feature_domains or "
                    f"one_hot_groups; got {x[wrong][0]:g}."
                )
        for group in self.groups:
            ones = (X[:, group] == 1).sum(axis=1)
            wrong = (ones > 1) | (X[:, group] == 0).all(axis=1)
            if wrong.any():
                raise ValueError(
                    f"Row {np.argmax(wrong)} of X has no place for exactly one 1 in the "
                    f"group {group.tolist()} of one_hot_groups."
                )


def plain_inputs(n_features):
    """Return inputs whose features are continuous columns."""
    columns = {j: j for j in range(n_features)}
    return Inputs(n_features, np.full(n_features, "continuous"), [], {}, columns, None)


def declared_inputs(n_features, domains, groups):
    """Return inputs with the kinds of `domains`, by index, and one-hot groups."""
    kinds = np.full(n_features, "continuous", dtype="<U10")
    for j, kind in domains.items():
        kinds[j] = kind
    for group in groups:
        kinds[group] = "binary"
    return replace(plain_inputs(n_features), domains=kinds, groups=groups)


def mapped_inputs(n_columns, threshold_map):
    """Return inputs of which some columns are tests ``feature <= threshold``."""
    sources, tests, columns = [], {}, {}
    for column in range(n_columns):
        if column not in threshold_map:
            columns[column] = len(sources)
            sources.append(f"x{column}")
            continue
        name, threshold = threshold_map[column]
        if name not in sources:
            sources.append(name)
        tests[column] = sources.index(name), float(threshold)
    names = np.empty(len(sources), dtype=object)
    names[:] = sources
    kinds = np.full(len(sources), "continuous")
    return Inputs(n_columns, kinds, [], tests, columns, names)
