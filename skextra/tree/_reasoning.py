"""What a fitted tree says about itself: reasons, rules, equal trees, what to measure."""

import copy
from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skextra.tree._acquisition import AcquisitionPolicy, Problem
from skextra.tree._declarations import check_options, checked_costs
from skextra.tree._equivalence import find_counterexample, simplify
from skextra.tree._explanations import explain_rows
from skextra.tree._flat import as_dict, regrid, route, weighed
from skextra.tree._rules import (
    Rule,
    condition,
    irredundant_boxes,
    minimal_boxes,
    prime_boxes,
)
from skextra.tree._sources import flatten, unfrozen


class ReasoningMixin:
    """Explanations, rules, equivalence and acquisition, for the class of the tree."""

    def explain(
        self,
        X,
        kind="abductive",
        minimize="subset",
        inflate=False,
        max_explanations=1,
    ):
        """Explain the labels of rows.

        An abductive explanation is a set of features whose values imply the label,
        whatever the others are. A contrastive explanation is a set of features that
        could change to give another label, the others as they are. None of them can be
        left out of either.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_features,)
            Rows, or one row. NaN is unknown; the label must be determined.

        kind : {"abductive", "contrastive"}, default="abductive"
            What to explain.

        minimize : {"subset", "cost"}, default="subset"
            "subset" gives sets of which no feature can be left out. "cost" gives the
            cheapest of these by `acquisition_costs`, then the next.

        inflate : bool, default=False
            Whether to widen the intervals of an abductive explanation, one side after
            the other, as far as they imply the label. Otherwise they are between the
            tree's next thresholds.

        max_explanations : int or "all", default=1
            Number of explanations of each row, or as many as there are.

        Returns
        -------
        explanations : list of Explanation
            Those of the row, or a list of such lists for rows.

        Raises
        ------
        ValueError
            If the label of a row is not determined.

        BudgetExceededError
            If "all" are more than `max_terms`.
        """
        check_options(
            kind=kind,
            minimize=minimize,
            inflate=inflate,
            max_explanations=max_explanations,
        )
        check_is_fitted(self)
        self._validate_params()
        one_row = np.ndim(X) == 1
        found = explain_rows(
            self._flat,
            *(self._known_row(X) if one_row else self._known(X)),
            self.classes_,
            self._inputs.groups,
            self._costs,
            kind=kind,
            by_cost=minimize == "cost",
            inflate=inflate,
            count=max_explanations,
            max_terms=self.max_terms,
        )
        return found[0] if one_row else found

    def implicants(self, label):
        """List all largest boxes in which the tree has a label.

        This is the Blake canonical form of the label's region, the same for all equal
        trees. Their number can be exponential in that of the leaves.

        Parameters
        ----------
        label : object
            One of `classes_`.

        Returns
        -------
        implicants : list of Rule
            The boxes, those of most support first.

        Raises
        ------
        BudgetExceededError
            If there are more than `max_terms`.

        ValueError
            If `label` is not among `classes_`, or with one-hot groups.
        """
        at = self._position(label)
        self._without_groups("implicants")
        key = "implicants", at, self.max_terms
        if key not in self._cache:
            boxes = prime_boxes(self._flat, at, self.max_terms)
            self._cache[key] = self._as_rules(*boxes, at)
        return list(self._cache[key])

    def rules(self, label=None):
        """List rules that together say the same as the tree, in the `rule_form`.

        Parameters
        ----------
        label : object, default=None
            One of `classes_`; None lists the rules of all, in the order of `classes_`.

        Returns
        -------
        rules : list of Rule
            For each label, rules of most support first. They hold alone, in any order.

        Raises
        ------
        BudgetExceededError
            For minimal rules, if `max_terms` or `time_limit` do not suffice.

        ValueError
            If `label` is not among `classes_`; with one-hot groups, if `rule_form` is
            not "leaves".
        """
        check_is_fitted(self)
        self._validate_params()
        if label is None:
            return [rule for one in self.classes_ for rule in self.rules(one)]
        at = self._position(label)
        if self.rule_form != "leaves":
            self._without_groups(f"rule_form={self.rule_form!r}")
        key = "rules", at, self.rule_form, self.max_terms, self.time_limit
        if key not in self._cache:
            self._cache[key] = self._as_rules(*self._rule_boxes(at), at)
        return list(self._cache[key])

    def _rule_boxes(self, label):
        tree = self._flat
        if self.rule_form == "irredundant":
            return irredundant_boxes(tree, label)
        if self.rule_form == "minimal":
            return minimal_boxes(tree, label, self.max_terms, self.time_limit)
        has_label = tree.label[tree.leaves] == label
        return tuple(ends[has_label] for ends in tree.leaf_cells)

    def _as_rules(self, starts, stops, label):
        """Return the boxes of cells as rules, those of most support first."""
        rules = [
            Rule(self.classes_[label], bounds, *self._support(start, stop, label))
            for start, stop, bounds in zip(
                starts, stops, self._flat.bounds(starts, stops), strict=True
            )
        ]
        return sorted(rules, key=lambda rule: (-(rule.support or 0), str(rule.bounds)))

    def _support(self, start, stop, label):
        """Return the weight of the training rows in a box, and the share of the label."""
        if self._cells is None:
            return None, None
        n_cells = [len(thresholds) + 1 for thresholds in self._flat.grid]
        inside = np.ones(len(self._cells), bool)
        for k in np.flatnonzero((start > 0) | (stop < n_cells)):
            inside &= (self._cells[:, k] >= start[k]) & (self._cells[:, k] < stop[k])
        support = float(self._weight[inside].sum())
        if self._target is None or support == 0:
            return support, None
        right = inside & (self._target == label)
        return support, float(self._weight[right].sum() / support)

    def export_text(self, feature_names=None, decimals=2):
        """Write the rules as text.

        Parameters
        ----------
        feature_names : array-like of str, default=None
            Names of the features. None takes those seen in `fit`, or x0, x1 and so on.

        decimals : int, default=2
            Digits after the point of the thresholds.

        Returns
        -------
        text : str
            A line for each rule.
        """
        names = self._names(feature_names)
        lines = []
        for rule in self.rules():
            conditions = [
                condition(names[j], low, high, self._inputs.domains[j], decimals)
                for j, (low, high) in rule.bounds.items()
            ]
            line = f"{rule.label}: {' and '.join(conditions) or 'always'}"
            if rule.support is not None:
                line += f"  [{rule.support:g} rows"
                if rule.precision is not None:
                    line += f", {rule.precision:.1%} right"
                line += "]"
            lines.append(line)
        return "\n".join(lines)

    def _names(self, feature_names=None):
        """Return names of the features that bounds number."""
        check_is_fitted(self)
        n_features = self._flat.n_features
        if feature_names is not None:
            if len(feature_names) != n_features:
                raise ValueError(
                    f"feature_names must have {n_features} names; got "
                    f"{len(feature_names)}."
                )
            return list(feature_names)
        if self.source_features_ is not None:
            return list(self.source_features_)
        numbered = [f"x{j}" for j in range(n_features)]
        return list(getattr(self, "feature_names_in_", numbered))

    def equivalent_to(self, other, output="label"):
        """Tell whether another tree is the same function.

        Parameters
        ----------
        other : object
            A fitted tree of any kind that :meth:`from_tree` takes, or a BooleanTree. Its
            features are read as this tree's are.

        output : {"label", "proba"}, default="label"
            What has to be the same for all rows; probabilities, up to rounding.

        Returns
        -------
        equivalent : bool
            Whether no row tells the trees apart.

        Raises
        ------
        ValueError
            If the other tree has other classes or another number of features.
        """
        return self._find_counterexample(other, output) is None

    def counterexample(self, other, output="label"):
        """Find a row for which another tree answers otherwise.

        Parameters
        ----------
        other : object
            As in :meth:`equivalent_to`.

        output : {"label", "proba"}, default="label"
            As in :meth:`equivalent_to`.

        Returns
        -------
        x : array of shape (n_features,) or None
            Such a row, or None if there is none.
        """
        return self._find_counterexample(other, output)

    def _find_counterexample(self, other, output):
        check_is_fitted(self)
        check_options(output=output)
        other = unfrozen(other)
        if isinstance(other, ReasoningMixin):
            check_is_fitted(other)
            self._check_same(other.classes_, other.n_features_in_)
            if not self._inputs.same_as(other._inputs):
                raise ValueError(
                    "The other tree reads its columns with other feature_domains, "
                    "one_hot_groups or threshold_map."
                )
            tree = other._flat
        else:
            is_dict = isinstance(other, dict)
            classes = self.classes_ if is_dict else getattr(other, "classes_", None)
            n_features = self.n_features_in_ if is_dict else None
            tree = flatten(other, classes, n_features)
            self._check_same(tree.classes, tree.n_features)
            tree = self._inputs.adapt(tree)
        point = find_counterexample(self._flat, tree, output, self._inputs)
        return None if point is None else self._inputs.as_columns(point)

    def _check_same(self, classes, n_features):
        if n_features != self.n_features_in_:
            raise ValueError(
                f"The other tree has {n_features} features, and this one "
                f"{self.n_features_in_}."
            )
        if classes is None or not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"The other tree has the classes {classes}, and this one {self.classes_}."
            )

    def simplify(self):
        """Drop splits that the function does not need.

        From the leaves up, a split is replaced by one of its subtrees if that one is
        right on the whole region of the split. The tree never grows; a threshold that is
        not essential can stay where only a rearranged tree could do without it. Labels
        stay as they are for every row. The probabilities of the leaves are computed
        anew from the complete training rows and their weights, without class weights of
        the learner; without rows and their labels, only leaves of equal probabilities
        are merged.

        Returns
        -------
        simpler : BooleanTree
            A new fitted estimator, whose `estimator_` is a nested dictionary.
        """
        check_is_fitted(self)
        has_rows = self._cells is not None and self._target is not None
        output = "label" if has_rows else "proba"
        old, group = self._flat, self._inputs.group
        tree = simplify(old, output, group)
        simpler = copy.copy(self)
        simpler._cache = {}
        if self._cells is not None:
            simpler._cells = regrid(old, tree, self._cells)
            tree = self._recount(tree, simpler._cells, has_rows)
        simpler._share = self._shares(tree, simpler._cells, self._weight)
        simpler._flat, simpler.n_leaves_ = tree, len(tree.leaves)
        simpler.estimator_ = as_dict(tree)
        return simpler

    def _recount(self, tree, cells, has_targets):
        """Set weights and distributions of the leaves from the training rows."""
        tree = weighed(tree, cells, self._weight)
        if not has_targets:
            return tree
        known = (cells >= 0).all(axis=1)
        leaf, weight = route(tree, cells[known]), self._weight[known]
        value = tree.value.copy()
        by_class = np.stack(
            [
                np.bincount(leaf, weight * (self._target[known] == k), len(value))
                for k in range(self.n_classes_)
            ],
            axis=1,
        )
        here = by_class.sum(axis=1) > 0
        value[here] = by_class[here] / by_class[here].sum(axis=1, keepdims=True)
        return replace(tree, value=value)

    def acquisition_policy(self, costs=None, groups=None):
        """Plan which feature to measure next, at the least expected cost.

        Parameters
        ----------
        costs : array-like of shape (n_features,), default=None
            Cost of each feature, 0 or more, in any unit. None takes
            `acquisition_costs`.

        groups : list of lists, or dict of tuple to float, default=None
            Features, by index or name, that are bought together. A group costs as much
            as its dearest member, or what the dictionary gives.

        Returns
        -------
        policy : AcquisitionPolicy
            The plan. It is exact up to `max_states` states and `time_limit`, which its
            ``optimal_`` tells.

        Raises
        ------
        ValueError
            If there are no training rows without NaN in the features that the tree
            tests, if costs or groups are not as above, or with one-hot groups.

        BudgetExceededError
            If `max_states` does not suffice for the outcomes of a group of independent
            features, or for the cost of a policy that is not exact.
        """
        check_is_fitted(self)
        self._validate_params()
        self._without_groups("acquisition_policy")
        tree = self._flat
        costs = self._costs if costs is None else checked_costs(costs, tree.n_features)
        if self._cells is None:
            raise ValueError("acquisition_policy needs rows; pass X to from_tree.")
        known = (self._cells >= 0).all(axis=1) & (self._weight > 0)
        if not known.any():
            raise ValueError(
                "acquisition_policy needs a training row without NaN in the features that "
                "the tree tests; there is none."
            )
        actions, prices = self._actions(costs, groups)
        problem = Problem(
            tree,
            self._cells[known],
            self._weight[known],
            actions,
            prices,
            self.distribution,
            # A copy: a later fit must not change how the policy reads rows.
            copy.copy(self)._cells_of,
            self._names(),
            self._inputs.domains,
            self.max_states,
        )
        return AcquisitionPolicy(problem, self.max_states, self.time_limit)

    def _cells_of(self, X):
        """Return the cells of rows, -1 where unknown."""
        known = self._known_row(X) if np.ndim(X) == 1 else self._known(X)
        return self._flat.cells(*known)

    def _actions(self, costs, groups):
        """Return what can be bought, of the features that the tree tests, and prices."""
        tree = self._flat
        members = self._groups_of(groups, tree.n_features, "groups")
        prices = [costs[group].max() for group in members]
        if isinstance(groups, dict):
            prices = list(groups.values())
            if not all(isinstance(p, Real) and 0 <= p < np.inf for p in prices):
                raise ValueError(
                    f"groups must have finite costs, 0 or more; got {prices}."
                )
        alone = np.setdiff1d(tree.used, np.concatenate([*members, []]))
        members += [[j] for j in alone.astype(int)]
        prices += costs[alone.astype(int)].tolist()
        tested = [
            i for i, group in enumerate(members) if np.isin(group, tree.used).any()
        ]
        tested.sort(key=lambda i: min(np.intersect1d(members[i], tree.used)))
        return [members[i] for i in tested], np.array(
            [prices[i] for i in tested], float
        )

    def plot(self, ax=None):
        """Draw the rules as bars over the features' ranges.

        Parameters
        ----------
        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : RulesDisplay
            The picture.
        """
        from skextra.tree._display import RulesDisplay

        return RulesDisplay.from_estimator(self, ax=ax)

    def plot_acquisition(self, ax=None):
        """Draw the acquisition policy as a tree.

        Parameters
        ----------
        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : AcquisitionDisplay
            The picture.
        """
        return self.acquisition_policy().plot(ax=ax)

    def _position(self, label):
        check_is_fitted(self)
        at = np.flatnonzero(self.classes_ == label) if np.ndim(label) == 0 else ()
        if len(at) != 1:
            raise ValueError(
                f"label must be one of {self.classes_.tolist()}; got {label!r}."
            )
        return at[0]

    def _without_groups(self, what):
        if self._inputs.groups:
            raise ValueError(f"{what} is not defined with one_hot_groups.")
