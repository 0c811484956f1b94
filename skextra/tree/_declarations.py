"""What the parameters say about the features: domains, groups, tests and costs."""

from numbers import Integral, Real

import numpy as np

from skextra.tree._inputs import declared_inputs, mapped_inputs


class DeclarationsMixin:
    """Check parameters that name features, for the class of the tree."""

    def _declared(self, n_features):
        """Read feature_domains and one_hot_groups."""
        kinds = {"binary", "integer", "continuous"}
        domains = {}
        for feature, kind in (self.feature_domains or {}).items():
            if not isinstance(kind, str) or kind not in kinds:
                raise ValueError(
                    f"feature_domains must hold {sorted(kinds)}; got {kind!r} for "
                    f"feature {feature!r}."
                )
            domains[self._index(feature, n_features, "feature_domains")] = kind
        groups = self._groups_of(self.one_hot_groups, n_features, "one_hot_groups")
        for group in groups:
            other = {domains.get(j, "binary") for j in group.tolist()} - {"binary"}
            if len(group) < 2 or other:
                raise ValueError(
                    "one_hot_groups must hold lists of two or more binary features; got "
                    f"{group.tolist()}."
                )
        return declared_inputs(n_features, domains, groups)

    def _groups_of(self, groups, n_features, name):
        """Read lists of features that have no feature in common."""
        groups = [] if groups is None else list(groups)
        if not all(np.iterable(group) and len(group) for group in groups):
            raise ValueError(f"{name} must hold lists of features; got {groups}.")
        read = [
            np.array(sorted({self._index(j, n_features, name) for j in group}), int)
            for group in groups
        ]
        members = np.concatenate([*read, []])
        if len(np.unique(members)) < len(members):
            raise ValueError(f"{name} must not share features; got {groups}.")
        return read

    def _index(self, feature, n_features, name):
        """Return the index of a feature given by index or name."""
        names = getattr(self, "source_features_", None)
        if names is None:
            names = getattr(self, "feature_names_in_", [])
        if isinstance(feature, Integral) and 0 <= feature < n_features:
            return int(feature)
        if isinstance(feature, str) and feature in names:
            return int(np.flatnonzero(np.asarray(names) == feature)[0])
        raise ValueError(
            f"{name} names the feature {feature!r}; accepted are 0 to {n_features - 1}"
            + (" and the names of the features." if len(names) else ".")
        )

    def _mapped(self, threshold_map, n_columns):
        """Read threshold_map."""
        if self.feature_domains is not None or self.one_hot_groups is not None:
            raise ValueError(
                "threshold_map cannot be combined with feature_domains or one_hot_groups."
            )
        if not isinstance(threshold_map, dict):
            raise ValueError(f"threshold_map must be a dict; got {threshold_map!r}.")
        plain = {f"x{j}" for j in range(n_columns) if j not in threshold_map}
        for column, test in threshold_map.items():
            if not (isinstance(column, Integral) and 0 <= column < n_columns):
                raise ValueError(
                    f"threshold_map maps columns 0 to {n_columns - 1}; got {column!r}."
                )
            is_pair = isinstance(test, (tuple, list)) and len(test) == 2
            if not (is_pair and isinstance(test[1], Real) and np.isfinite(test[1])):
                raise ValueError(
                    "threshold_map holds pairs of a feature and a finite threshold; got "
                    f"{test!r} for column {column}."
                )
            if test[0] in plain:
                raise ValueError(
                    f"threshold_map calls a feature {test[0]!r}, which is the name of a "
                    "column that is not in it."
                )
        return mapped_inputs(n_columns, threshold_map)


def checked_costs(costs, n_features):
    """Read the costs of the features."""
    if costs is None:
        return np.ones(n_features)
    try:
        costs = np.asarray(costs, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"acquisition costs must be an array of numbers; got {costs!r}."
        ) from None
    if costs.shape != (n_features,):
        raise ValueError(
            f"acquisition costs must have shape ({n_features},), one for each "
            f"feature; got {costs.shape}."
        )
    if not (np.isfinite(costs) & (costs >= 0)).all():
        wrong = np.flatnonzero(~(np.isfinite(costs) & (costs >= 0)))[0]
        raise ValueError(
            "acquisition costs must be finite and not negative; got "
            f"{costs[wrong]} for feature {wrong}."
        )
    with np.errstate(over="ignore"):
        total = costs.sum()
    if not np.isfinite(total):
        raise ValueError(
            "acquisition costs must have a finite sum; give them in a larger unit."
        )
    return costs


def check_options(**given):
    """Check what has few accepted values, with the names under which it came."""
    accepted = {
        "kind": ("abductive", "contrastive"),
        "minimize": ("subset", "cost"),
        "output": ("label", "proba"),
    }
    count = given.pop("max_explanations", 1)
    inflate = given.pop("inflate", False)
    if not isinstance(inflate, (bool, np.bool_)):
        raise ValueError(f"inflate must be True or False; got {inflate!r}.")
    is_all = isinstance(count, str) and count == "all"
    if not is_all and not (isinstance(count, Integral) and count >= 1):
        raise ValueError(
            f'max_explanations must be 1 or more, or "all"; got {count!r}.'
        )
    for name, value in given.items():
        if not isinstance(value, str) or value not in accepted[name]:
            raise ValueError(
                f"{name} must be one of {list(accepted[name])}; got {value!r}."
            )
