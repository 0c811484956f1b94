"""Which feature to buy next, so that a tree's label is reached at the least cost."""

import math
import time
from itertools import product

import numpy as np
from sklearn.utils import Bunch

from skextra.tree import _numba_acquisition as kernels
from skextra.tree._errors import BudgetExceededError
from skextra.tree._flat import LEAF, route
from skextra.tree._importance import cell_masses
from skextra.tree._missing import marginal_share
from skextra.tree._rules import interval


class AcquisitionPolicy:
    """Order in which to buy the features that a tree still needs.

    Made by :meth:`BooleanTree.acquisition_policy`. Buying ends as soon as the label can
    no longer depend on what is unknown, so the label reached is always the tree's.

    Parameters
    ----------
    problem : object
        The tree, the actions and the distribution of the rows, made by the estimator.

    max_states : int
        Number of states of knowledge that may be solved exactly.

    time_limit : float or None
        Seconds after which the exact solution is given up.

    Attributes
    ----------
    expected_cost_ : float
        Expected cost of the policy from nothing known, under the distribution it was
        made for.

    path_cost_ : float
        Expected cost of following the tree from its root to a leaf.

    total_cost_ : float
        Cost of buying all features that the tree tests.

    optimal_ : bool
        Whether no policy has a lower expected cost. If False, the budget did not
        suffice, and each step is the best one if the tree's own order came after it; the
        cost is never above `path_cost_`.

    classes_ : array of shape (n_classes,)
        Class labels.

    n_states_ : int
        Number of states solved.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skextra.tree import BooleanTree
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> policy = BooleanTree(max_depth=3, random_state=0).fit(X, y).acquisition_policy()
    >>> policy.optimal_, policy.expected_cost_ <= policy.path_cost_
    (True, True)
    """

    def __init__(self, problem, max_states, time_limit):
        self._problem = problem
        self._max_states, self._time_limit = max_states, time_limit
        self._table, self._count = _empty_table(problem.n_used, 4096, max_states)
        nothing = np.full(problem.n_used, -1, np.int32)
        state = problem.state(nothing)
        self.path_cost_ = problem.path_cost()
        cost = self._solve(state)
        self.optimal_ = cost >= 0
        if not self.optimal_:
            cost = self._rollout_cost(state)
        # They can be the same policy, whose cost is summed in another order.
        self.expected_cost_ = min(float(cost), self.path_cost_)
        self.total_cost_ = float(problem.costs.sum())
        self.n_states_ = int(self._count[0])

    def _solve(self, state):
        """Solve with a table that grows, or return -1 beyond the budget."""
        start = time.monotonic()
        limit = np.inf if self._time_limit is None else self._time_limit
        while True:
            cost = kernels.solve(*state, self._table, self._count)
            now = time.monotonic() - start
            # The next round may solve three times as many states as all before it.
            if cost >= 0 or self._count[1] == self._max_states or 4 * now > limit:
                return cost
            self._table, self._count = _larger(
                self._table, self._count, self._max_states
            )

    def _rollout_cost(self, state):
        """Return the expected cost of the policy that is not exact.

        Rows meet few states; of independent features there can be any number.
        """
        limit = max(1000, self._max_states // 10)
        if self._problem.empirical:
            limit = np.iinfo(np.int64).max
        cost = kernels.rollout_cost(*state, np.array([0, limit]))
        if cost < 0:
            raise BudgetExceededError(
                f"With max_states={self._max_states} not even the cost of a policy that "
                "is not exact can be computed: independent features have too many "
                'outcomes. Raise max_states, or take distribution="empirical".'
            )
        return cost

    def _action(self, known):
        """Return the action to take, or -1 if the label is determined."""
        tree, actions = self._problem.arrays
        if kernels.cheapest_need(known, tree, actions) < 0:
            return -1
        states, _, best_action = self._table
        slot = kernels.find_slot(states, best_action, known)
        if best_action[slot] >= 0:
            return int(best_action[slot])
        state = self._problem.state(known)
        if state is None:  # no training row is like this one
            return int(kernels.next_on_path(known, tree, actions))
        if self.optimal_ and self._solve(state) >= 0:
            states, _, best_action = self._table
            return int(best_action[kernels.find_slot(states, best_action, known)])
        return int(kernels.rollout(*state))

    def next_feature(self, x):
        """Return the feature to buy next.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            One row; NaN is what is not known yet.

        Returns
        -------
        feature : int
            Index of the feature, or -1 if the label is determined. Buying a member of a
            group buys the others too; the first unknown one is returned.
        """
        if np.ndim(x) != 1:
            raise ValueError(f"x must be one row; got {np.ndim(x)} dimensions.")
        known = self._problem.read(x)[0]
        action = self._action(known)
        return -1 if action < 0 else self._problem.first_unknown(action, known)

    def run(self, X):
        """Buy features for rows whose values are there to be bought.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete rows.

        Returns
        -------
        result : :class:`~sklearn.utils.Bunch`
            With the attributes

            labels : array of shape (n_samples,)
                The tree's labels.
            costs : array of shape (n_samples,)
                What was paid for each row.
            orders : list of tuples of int
                Features bought, in order; the members of a group come together.

        Raises
        ------
        ValueError
            If a value that the policy asks for is NaN.
        """
        cells = self._problem.read(X)
        labels = np.empty(len(cells), int)
        costs, orders = np.empty(len(cells)), [None] * len(cells)
        start = np.full(self._problem.n_used, -1, np.int32)
        waiting = [(start, np.arange(len(cells)), 0.0, ())]
        while waiting:
            known, rows, cost, order = waiting.pop()
            action = self._action(known)
            if action < 0:
                labels[rows], costs[rows] = self._problem.label(known), cost
                for row in rows:
                    orders[row] = order
                continue
            cost += self._problem.costs[action]
            order += self._problem.features(action)
            members = self._problem.member[action]
            if (cells[rows][:, members] < 0).any():
                row = rows[(cells[rows][:, members] < 0).any(axis=1)][0]
                raise ValueError(
                    f"X has NaN in row {row}, among the features "
                    f"{list(self._problem.features(action))} that the policy buys."
                )
            found, part = np.unique(
                cells[rows][:, members], axis=0, return_inverse=True
            )
            for v, revealed in enumerate(found):
                after = known.copy()
                after[members] = revealed
                waiting.append((after, rows[part.ravel() == v], cost, order))
        return Bunch(labels=self._problem.classes[labels], costs=costs, orders=orders)

    @property
    def classes_(self):
        """Class labels."""
        return self._problem.classes

    def outline(self, max_depth=None):
        """Describe the policy as a tree of what training rows can meet.

        Outcomes after which all goes on in the same way are one branch.

        Parameters
        ----------
        max_depth : int, default=None
            Number of purchases after which the tree ends; None follows it to the end.

        Returns
        -------
        node : :class:`~sklearn.utils.Bunch`
            With `text`, what is bought and its cost, or the label reached; `label`, the
            latter alone or None; and `children`, pairs of the values that lead on, as
            text, and a node.
        """
        start = np.full(self._problem.n_used, -1, np.int32)
        return self._outline(start, np.inf if max_depth is None else max_depth)

    def _outline(self, known, depth):
        problem = self._problem
        action = self._action(known)
        if action < 0:
            label = problem.classes[problem.label(known)]
            return Bunch(text=str(label), label=label, children=[])
        names = [str(problem.names[j]) for j in problem.features(action)]
        text = "\n".join([*names, f"cost {problem.costs[action]:g}"])
        if depth == 0:
            return Bunch(text="...", label=None, children=[])
        branches = []
        for revealed in problem.outcomes(action, known):
            child = self._outline(revealed, depth - 1)
            cells = revealed[problem.member[action]]
            is_whole = len(cells) == 1 and child.text != "..."
            if branches and branches[-1][1] == child and is_whole:
                branches[-1][0].append(cells)
            else:
                branches.append(([cells], child))
        children = [
            (problem.describe(action, cells), child) for cells, child in branches
        ]
        return Bunch(text=text, label=None, children=children)

    def plot(self, ax=None, *, max_depth=4):
        """Draw the policy as a tree.

        Parameters
        ----------
        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        max_depth : int, default=4
            Number of purchases after which the picture ends.

        Returns
        -------
        display : AcquisitionDisplay
            The picture.
        """
        from skextra.tree._display import AcquisitionDisplay

        return AcquisitionDisplay(self, max_depth=max_depth).plot(ax=ax)


def _empty_table(n_used, limit, max_states):
    limit = min(limit, max_states)
    table = (
        np.empty((2 * limit + 1, n_used), np.int32),
        np.empty(2 * limit + 1),
        np.full(2 * limit + 1, -1),
    )
    return table, np.array([0, limit])


def _larger(table, count, max_states):
    """Return a table with room for four times as many states, with those of the old."""
    new, limits = _empty_table(table[0].shape[1], 4 * count[1], max_states)
    kernels.move_states(table, new)
    limits[0] = count[0]
    return new, limits


class Problem:
    """A tree, actions that each reveal some features, and a distribution of the rows.

    `cells` are the complete training rows; `read` turns inputs into cells.
    """

    def __init__(
        self,
        tree,
        cells,
        weight,
        actions,
        costs,
        distribution,
        read,
        names,
        domains,
        limit,
    ):
        self.tree, self.costs = tree, costs
        self.names, self.domains = names, domains[tree.used]
        self.n_used, self.classes, self.read = len(tree.used), tree.classes, read
        member = [np.isin(tree.used, action) for action in actions]
        self.member = np.reshape(member, (len(actions), self.n_used)).astype(bool)
        rows, at = np.unique(cells, axis=0, return_inverse=True)
        weight = np.bincount(at.ravel(), weight, len(rows))
        rows, weight = rows[weight > 0], weight[weight > 0]
        tables = [
            _outcomes(rows, weight, members, distribution, limit)
            for members in self.member
        ]
        splits = tree.column, tree.cut, tree.left, tree.right
        share = marginal_share(tree, cell_masses(tree, rows, weight))
        codes = [table.codes for table in tables]
        n_outcomes = np.array([len(table.cells) for table in tables], int)
        self.arrays = (
            (*splits, tree.label, share),
            (
                self.member.argmax(axis=0) if len(actions) else np.zeros(0, int),
                self.member,
                costs,
                np.reshape(codes, (len(actions), len(rows))).T.astype(np.int32),
                n_outcomes,
                np.cumsum(n_outcomes) - n_outcomes,
                np.concatenate([rows[:0], *(table.cells for table in tables)]),
                np.concatenate([weight[:0], *(table.chance for table in tables)]),
            ),
        )
        self._rows = rows, weight
        self.empirical = distribution == "empirical"

    def state(self, known):
        """Return the kernels' arguments, or None if no training row agrees."""
        rows, weight = self._rows
        agrees = ((rows == known) | (known < 0)).all(axis=1) & self.empirical
        if self.empirical and not agrees.any():
            return None
        order = np.flatnonzero(agrees)
        return known, *self.arrays, (rows, weight, order), 0, len(order)

    def path_cost(self):
        """Return the expected cost of following the tree to its leaves."""
        tree, (rows, weight) = self.tree, self._rows
        start, stop = tree.leaf_cells
        if self.empirical:
            mass = np.bincount(route(tree, rows), weight, len(tree.feature))
            chance = mass[tree.leaves] / weight.sum()
        else:
            chance = np.ones(len(start))
            for k, mass in enumerate(cell_masses(tree, rows, weight)):
                below = np.concatenate([[0.0], np.cumsum(mass)]) / weight.sum()
                chance *= below[stop[:, k]] - below[start[:, k]]
        n_cells = [len(thresholds) + 1 for thresholds in tree.grid]
        on_path = (start > 0) | (stop < n_cells)
        bought = (on_path[:, None] & self.member).any(axis=2)
        return float(chance @ (bought @ self.costs))

    def features(self, action):
        """Return the features of the action that the tree tests."""
        return tuple(self.tree.used[self.member[action]].tolist())

    def outcomes(self, action, known):
        """Yield what may be known after an action, in the order of the values."""
        members = self.member[action]
        rows = self._rows[0]
        agrees = ((rows == known) | (known < 0))[:, members | self.empirical].all(
            axis=1
        )
        for revealed in np.unique(rows[agrees][:, members], axis=0):
            after = known.copy()
            after[members] = revealed
            yield after

    def describe(self, action, cells):
        """Write the cells, one after the other or of several features, as text."""
        ends = []
        used = np.flatnonzero(self.member[action])
        for k, column in zip(used, np.transpose(cells), strict=True):
            thresholds = np.concatenate([[-np.inf], self.tree.grid[k], [np.inf]])
            low, high = thresholds[column.min()], thresholds[column.max() + 1]
            ends.append(interval(low, high, self.domains[k]))
        return "\n".join(ends)

    def first_unknown(self, action, known):
        """Return the first feature that the action would reveal."""
        return int(self.tree.used[self.member[action] & (known < 0)][0])

    def label(self, known):
        """Return the index of the label that is determined."""
        tree, node = self.tree, 0
        while tree.feature[node] != LEAF:
            goes_left = known[tree.column[node]] <= tree.cut[node]
            node = tree.left[node] if goes_left else tree.right[node]
        return tree.label[node]


def _outcomes(rows, weight, members, distribution, limit):
    """Return what an action can reveal, with what probability, and what each row does."""
    if distribution == "empirical":
        found, codes = np.unique(rows[:, members], axis=0, return_inverse=True)
        chance = np.bincount(codes.ravel(), weight, len(found)) / weight.sum()
    else:
        chances = [np.bincount(c, weight) / weight.sum() for c in rows[:, members].T]
        seen = [np.flatnonzero(chance) for chance in chances]
        n_outcomes = math.prod(map(len, seen))
        if len(seen) > 1 and n_outcomes > max(1000, limit):
            raise BudgetExceededError(
                f"A group of independent features has {n_outcomes} outcomes, too many "
                f"for max_states={limit}. Raise it, or make the groups smaller."
            )
        found = np.array(list(product(*seen)))
        chance = [
            np.prod([c[v] for c, v in zip(chances, f, strict=True)]) for f in found
        ]
        codes = np.zeros(len(rows), int)
    cells = np.full((len(found), len(members)), -1, rows.dtype)
    cells[:, members] = found
    return Bunch(cells=cells, chance=np.array(chance), codes=codes.ravel())
