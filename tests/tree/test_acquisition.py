"""Policies that buy features, against exhaustive dynamic programming."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier

from skextra.tree import BooleanTree
from skextra.tree import _numba_acquisition as kernels
from tests.tree import reference as ref
from tests.tree.common import examples

NO, YES = {"prediction": 0}, {"prediction": 1}
DISTRIBUTIONS = ["empirical", "independent"]


def fitted(tree, X, n_classes=3, **params):
    classes = list(range(n_classes))
    return BooleanTree.from_tree(tree, classes, np.shape(X)[1], X=X, **params)


def alive(tree, box=None):
    """The tree without the branches that no row can reach."""
    if "feature" not in tree:
        return tree
    j, t, box = tree["feature"], tree["threshold"], box or {}
    low, high = box.get(j, (-np.inf, np.inf))
    if t >= high:
        return alive(tree["true"], box)
    if t <= low:
        return alive(tree["false"], box)
    return ref.split(
        j,
        t,
        alive(tree["true"], {**box, j: (low, t)}),
        alive(tree["false"], {**box, j: (t, high)}),
    )


costs4 = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5]), min_size=4, max_size=4)
groups4 = st.sampled_from(
    [None, None, [[0, 1]], [[0, 3], [1, 2]], [[0, 1, 2, 3]], [[1, 2, 3]]]
)
problems = st.tuples(
    ref.random_trees(4, 3, (0.0, 1.0), n_classes=3).map(alive),
    ref.tables(10, 4, (-1.0, 0.5, 2.0)),
    costs4,
    groups4,
    st.sampled_from(DISTRIBUTIONS),
)


def buy(policy, x, costs, groups):
    """Follow next_feature on one row; return the cost, and what is then known."""
    known, total = np.full(len(x), np.nan), 0.0
    groups = [list(group) for group in groups or []]
    for _ in range(len(x) + 1):
        j = policy.next_feature(known)
        if j < 0:
            return total, known
        assert np.isnan(known[j])
        members = next((group for group in groups if j in group), [j])
        known[members] = x[members]
        total += max(costs[m] for m in members)
    raise AssertionError("the policy does not end")


@examples(300)
@given(problems)
def test_least_cost(problem):
    tree, X, costs, groups, distribution = problem
    model = fitted(tree, X, distribution=distribution)
    policy = model.acquisition_policy(costs, groups)
    best = ref.optimal_cost(tree, X, costs, groups, distribution)
    path = ref.path_cost(tree, X, costs, groups, distribution)
    every = ref.buy_all_cost(tree, costs, groups)
    assert policy.optimal_
    assert policy.expected_cost_ == pytest.approx(best, abs=1e-9)
    assert policy.path_cost_ == pytest.approx(path, abs=1e-9)
    assert policy.total_cost_ == pytest.approx(every, abs=1e-12)

    # With too small a budget, no worse than the path.
    small = model.set_params(max_states=1).acquisition_policy(costs, groups)
    assert small.optimal_ == (policy.n_states_ <= 1)
    assert best <= small.expected_cost_ + 1e-9
    assert small.expected_cost_ <= path + 1e-9 and path <= every + 1e-9


@examples(200)
@given(problems, st.data())
def test_weights(problem, data):
    tree, X, costs, groups, distribution = problem
    X = X.astype(np.float32)
    weight = data.draw(
        st.lists(st.sampled_from([0.5, 1, 3]), min_size=len(X), max_size=len(X))
    )
    # Rows count as often as they are there.
    copies = np.repeat(X, (2 * np.array(weight)).astype(int), axis=0)
    model = fitted(tree, copies, distribution=distribution)
    found = model.acquisition_policy(costs, groups).expected_cost_
    best = ref.optimal_cost(tree, X, costs, groups, distribution, weight)
    assert found == pytest.approx(best, abs=1e-9)


@examples(200)
@given(problems, st.sampled_from([1, 200_000]))
def test_run(problem, max_states):
    tree, X, costs, groups, distribution = problem
    model = fitted(tree, X, distribution=distribution, max_states=max_states)
    policy = model.acquisition_policy(costs, groups)
    found = policy.run(X)
    assert found.labels.tolist() == [ref.evaluate(tree, x) for x in X]
    if distribution == "empirical":
        assert np.mean(found.costs) == pytest.approx(policy.expected_cost_, abs=1e-9)
    for x, cost, order in zip(X, found.costs, found.orders):
        assert len(order) == len(set(order))
        paid, known = buy(policy, x, costs, groups)
        assert paid == pytest.approx(cost, abs=1e-12)
        assert set(order) <= set(np.flatnonzero(~np.isnan(known)))
    # Rows that are not among those of training.
    other = np.array([[-1.0, 2.0, 0.5, -1.0], [2.0, -1.0, 2.0, 0.5], [0.5] * 4])
    found = policy.run(other)
    assert found.labels.tolist() == [ref.evaluate(tree, x) for x in other]
    for x, cost in zip(other, found.costs):
        assert buy(policy, x, costs, groups)[0] == pytest.approx(cost, abs=1e-12)


@examples(200)
@given(problems, ref.rows(4, (-1.0, 0.5, 2.0)), st.integers(0, 2))
def test_any_start_reaches_the_label(problem, x, fill):
    tree, X, costs, groups, distribution = problem
    policy = fitted(tree, X, distribution=distribution).acquisition_policy(
        costs, groups
    )
    values, x = (-1.0, 0.5, 2.0), x.copy()
    for _ in range(5):
        possible = ref.possible(tree, x)
        j = policy.next_feature(x)
        assert (j < 0) == (len(possible) == 1)
        if j < 0:
            return
        assert np.isnan(x[j])
        x[j] = values[(fill + j) % 3]
    raise AssertionError("the policy does not end")


@examples(80)
@given(problems)
def test_equal_trees_cost_the_same_if_independent(problem):
    tree, X, costs, groups, _ = problem
    other = alive(ref.expand(ref.expand(tree, 1, 1.0), 0, 0.0))
    a, b = (
        fitted(t, X, distribution="independent").acquisition_policy(costs)
        for t in (tree, other)
    )
    assert a.expected_cost_ == pytest.approx(b.expected_cost_, abs=1e-9)


# The boards of tic-tac-toe

boards = cache(ref.tic_tac_toe)


@pytest.mark.parametrize(
    "depth, seed, expected",
    [(3, 0, 9.468), (3, 1, 8.121), (3, 2, 13.378), (4, 0, 15.289), (4, 1, 12.543)],
)
def test_tic_tac_toe(depth, seed, expected):
    X, y = boards()
    assert X.shape == (958, 18) and y.sum() == 626
    costs = np.random.default_rng(seed).integers(1, 10, 18)
    clf = DecisionTreeClassifier(max_depth=depth, random_state=seed)
    model = BooleanTree(clf, acquisition_costs=costs).fit(X, y)
    policy = model.acquisition_policy()
    assert policy.optimal_
    assert policy.expected_cost_ == pytest.approx(expected, abs=5e-4)
    found = policy.run(X)
    assert found.costs.mean() == pytest.approx(policy.expected_cost_, abs=1e-9)
    assert_array_equal(found.labels, model.predict(X))
    if depth == 3:
        tree = ref.from_sklearn(model.estimator_)
        assert policy.path_cost_ == pytest.approx(ref.path_cost(tree, X, costs))
        assert policy.total_cost_ == ref.buy_all_cost(tree, costs)


# Data sets, budgets and special cases


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_fitted_tree_with_weights(distribution):
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    X = X.astype(np.float32).astype(float)
    weight = rng.integers(0, 3, len(y))
    costs = [1.0, 1.0, 3.0, 2.0]
    model = BooleanTree(max_depth=4, random_state=0, distribution=distribution)
    model.fit(X, y, sample_weight=weight)
    tree = ref.from_sklearn(model.estimator_)
    policy = model.acquisition_policy(costs)
    best = ref.optimal_cost(
        tree, X, costs, distribution=distribution, sample_weight=weight
    )
    assert policy.expected_cost_ == pytest.approx(best, abs=1e-9)
    path = ref.path_cost(tree, X, costs, None, distribution, weight)
    assert policy.path_cost_ == pytest.approx(path, abs=1e-9)
    if distribution == "empirical":
        mean = np.average(policy.run(X).costs, weights=weight)
        assert policy.expected_cost_ == pytest.approx(mean, abs=1e-9)


def test_budgets():
    X, y = load_breast_cancer(return_X_y=True)
    costs = np.random.default_rng(0).integers(1, 10, 30)
    model = BooleanTree(max_depth=4, random_state=0, acquisition_costs=costs)
    model.fit(X, y)
    exact = model.acquisition_policy()
    assert exact.optimal_ and exact.n_states_ > 5
    for params in ({"max_states": 5}, {"time_limit": 1e-9, "max_states": 10**6}):
        policy = model.set_params(**params).acquisition_policy()
        if policy.n_states_ < exact.n_states_:
            assert not policy.optimal_
        assert exact.expected_cost_ <= policy.expected_cost_ + 1e-9
        assert policy.expected_cost_ <= policy.path_cost_ + 1e-9
        found = policy.run(X)
        assert_array_equal(found.labels, model.predict(X))
        assert found.costs.mean() == pytest.approx(policy.expected_cost_, abs=1e-9)
    assert not model.set_params(max_states=5).acquisition_policy().optimal_
    # Exactly enough, also for rows that lead to further states.
    model.set_params(max_states=exact.n_states_, time_limit=None)
    policy = model.acquisition_policy()
    assert policy.optimal_ and policy.expected_cost_ == exact.expected_cost_
    other = np.random.default_rng(0).permuted(X, axis=0)
    for one in (policy, exact):
        assert_array_equal(one.run(other).labels, model.predict(other))


def test_time_limit_on_a_large_problem():
    X = np.random.default_rng(0).integers(0, 2, (400, 15)).astype(float)
    y = (X @ np.arange(1, 16) > 60).astype(int)
    model = BooleanTree(max_depth=7, random_state=0, time_limit=1e-3).fit(X, y)
    policy = model.acquisition_policy()
    assert not policy.optimal_
    assert policy.expected_cost_ <= policy.path_cost_ + 1e-9
    found = policy.run(X)
    assert_array_equal(found.labels, model.predict(X))
    assert found.costs.mean() == pytest.approx(policy.expected_cost_, abs=1e-9)


def test_free_features():
    X, y = load_iris(return_X_y=True)
    model = BooleanTree(max_depth=3, random_state=0).fit(X, y)
    policy = model.acquisition_policy(np.zeros(4))
    found = policy.run(X)
    assert policy.expected_cost_ == policy.path_cost_ == found.costs.max() == 0
    assert_array_equal(found.labels, model.predict(X))


def test_constant_tree_buys_nothing():
    policy = fitted(ref.split(0, 0.5, YES, YES), [[0.0], [1.0]]).acquisition_policy()
    assert policy.expected_cost_ == 0 and policy.next_feature([np.nan]) == -1
    assert policy.path_cost_ == policy.total_cost_ == 1
    policy = fitted(YES, [[0.0]]).acquisition_policy()
    assert policy.expected_cost_ == policy.total_cost_ == policy.path_cost_ == 0
    assert policy.run([[5.0]]).orders == [()]


def test_rows_without_support():
    # No training row has x0 = 1; after it, the tree's own order decides.
    tree = ref.split(0, 0.5, NO, ref.split(1, 0.5, NO, ref.split(2, 0.5, NO, YES)))
    policy = fitted(tree, np.zeros((3, 3)), 2).acquisition_policy()
    assert policy.expected_cost_ == 1
    found = policy.run([[1.0, 1, 1], [1, 0, 1], [0, 1, 1]])
    assert found.labels.tolist() == [1, 0, 0]
    assert policy.next_feature([1, np.nan, np.nan]) == 1
    assert policy.next_feature([1, 1, np.nan]) == 2
    assert policy.next_feature([1, 1, 1]) == -1


def test_groups():
    tree = ref.split(0, 0.5, ref.split(1, 0.5, NO, YES), ref.split(2, 0.5, NO, YES))
    X = [[a, b, c] for a in (0.0, 1.0) for b in (0.0, 1.0) for c in (0.0, 1.0)]
    model = fitted(tree, X, 2, acquisition_costs=[1.0, 2.0, 4.0])
    assert model.acquisition_policy().expected_cost_ == 4
    # A group costs as much as its dearest member, or what is given.
    assert model.acquisition_policy(groups=[[0, 1]]).expected_cost_ == 4
    policy = model.acquisition_policy(groups={(0, 1): 0.5})
    assert policy.expected_cost_ == 0.5 + 4 / 2
    assert policy.total_cost_ == 4.5
    policy = model.acquisition_policy(groups={(0, 1, 2): 3.0})
    assert policy.expected_cost_ == policy.path_cost_ == policy.total_cost_ == 3
    found = policy.run(X)
    assert found.orders == [(0, 1, 2)] * 8 and (found.costs == 3).all()
    assert policy.next_feature([0, np.nan, np.nan]) == 1
    for groups, match in [
        ([[0, 1], [1, 2]], "share"),
        ([[0, 7]], "groups"),
        ({(0, 1): -1.0}, "finite"),
        ({(0, 1): np.nan}, "finite"),
    ]:
        with pytest.raises(ValueError, match=match):
            model.acquisition_policy(groups=groups)


def test_bad_input():
    X, y = load_iris(return_X_y=True)
    model = BooleanTree(max_depth=2, random_state=0).fit(X, y)
    for costs in ([1, 2], [1, -1, 1, 1], [1, np.nan, 1, 1], [1, np.inf, 1, 1]):
        with pytest.raises(ValueError, match="costs"):
            model.acquisition_policy(costs)
        with pytest.raises(ValueError, match="costs"):
            BooleanTree(acquisition_costs=costs).fit(X, y)
    with pytest.raises(ValueError, match="needs rows"):
        BooleanTree.from_tree(model.estimator_).acquisition_policy()
    policy = model.acquisition_policy()
    with pytest.raises(ValueError, match="NaN in row 1"):
        policy.run([X[0], np.full(4, np.nan)])
    groups = [[0, 1], [2, 3]]
    Z = np.array([[1.0, 0, 1, 0], [0, 1, 0, 1], [0, 1, 1, 0]])
    hot = BooleanTree(one_hot_groups=groups).fit(Z, [0, 1, 0])
    with pytest.raises(ValueError, match="one_hot_groups"):
        hot.acquisition_policy()


def test_rows_with_nan_are_left_out():
    X, y = load_iris(return_X_y=True)
    model = BooleanTree(max_depth=3, random_state=0).fit(X, y)
    Z = X.copy()
    Z[::2, 2:] = np.nan
    a = BooleanTree.from_tree(model.estimator_, X=Z).acquisition_policy()
    b = BooleanTree.from_tree(model.estimator_, X=X[1::2]).acquisition_policy()
    assert a.expected_cost_ == b.expected_cost_
    Z[:, 2:] = np.nan
    with pytest.raises(ValueError, match="without NaN"):
        BooleanTree.from_tree(model.estimator_, X=Z).acquisition_policy()


def test_outline_has_the_expected_cost():
    X, y = boards()
    model = BooleanTree(max_depth=3, random_state=0).fit(X, y)
    policy = model.acquisition_policy()

    def n_leaves(node):
        return sum(n_leaves(child) for _, child in node.children) or 1

    outline = policy.outline()
    orders = {order for order in policy.run(X).orders}
    assert n_leaves(outline) >= len(orders)
    assert outline.text.endswith("cost 1") and outline.label is None
    assert policy.outline(0).text == "..."
    assert_allclose(policy.run(X).costs, [len(o) for o in policy.run(X).orders])


def test_chances_of_a_group_that_is_partly_known():
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(60, 3)).astype(float)
    model = BooleanTree(distribution="independent", random_state=0)
    model.fit(X, (X.sum(axis=1) > 3).astype(int))
    problem = model.acquisition_policy(groups=[[0, 1]])._problem
    known = problem.read(np.array([X[0, 0], np.nan, np.nan]))[0]
    p = kernels.chances(known, 0, problem.arrays[1], *problem.state(known)[3:])
    second = [np.mean(problem.read(X)[:, 1] == cell) for cell in range(3)]
    assert_allclose(np.sort(p[p > 0]), np.sort(second))


def test_weights_count_by_their_shares():
    rng = np.random.default_rng(0)
    X = rng.random((80, 4))
    y, weight = (X.sum(axis=1) > 2).astype(int), rng.random(80)
    model = BooleanTree(max_depth=4, random_state=0)
    costs = [
        model.fit(X, y, sample_weight=weight * scale).acquisition_policy()
        for scale in (1, 1e-3, 1e3)
    ]
    for cost in costs[1:]:
        assert_allclose(cost.expected_cost_, costs[0].expected_cost_)
        assert_allclose(cost.path_cost_, costs[0].path_cost_)


def test_kernels_work_from_the_cache(tmp_path, monkeypatch):
    """A second process, which finds the compiled kernels, gives the same answers."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    code = """
import numpy as np
from skextra.tree import BooleanTree
from skextra.tree import _numba_acquisition as kernels
X = np.random.default_rng(0).random((50, 4))
for distribution in ("empirical", "independent"):
    for max_states in (1, 1000):
        tree = BooleanTree(random_state=0, max_depth=3, max_states=max_states)
        tree.set_params(distribution=distribution).fit(X, X.sum(axis=1) > 2)
        policy = tree.acquisition_policy()
        print(policy.expected_cost_, policy.run(X).costs.mean())
"""
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout != b""
