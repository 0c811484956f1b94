"""Prime boxes and rules, against enumeration of the grid."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris

from skextra.tree import BooleanTree, BudgetExceededError
from tests.tree import reference as ref
from tests.tree.common import examples, fitted

INF = np.inf
FORMS = ["leaves", "irredundant", "minimal"]


def boxes(rules, n_features=3):
    """The boxes of rules as tuples of (low, high)."""
    full = (-INF, INF)
    return [tuple(r.bounds.get(j, full) for j in range(n_features)) for r in rules]


def check_cover(model, tree, n_features=3):
    """Check that the rules of each label hold exactly where the tree has it."""
    grid = ref.grid([tree], n_features)
    labels = np.array([ref.evaluate(tree, x) for x in grid])
    for label in model.classes_:
        rules = model.rules(label)
        assert all(rule.label == label for rule in rules)
        covered = [
            any(ref.contains(box, x) for box in boxes(rules, n_features)) for x in grid
        ]
        np.testing.assert_array_equal(covered, labels == label)
        for rule in rules:
            assert all(low < high for low, high in rule.bounds.values())
            assert all(np.isfinite(ends).any() for ends in rule.bounds.values())


# Prime boxes


@examples(300)
@given(ref.random_trees(max_depth=4, n_classes=3))
def test_primes(tree):
    model = fitted(tree)
    for label in range(3):
        found = boxes(model.implicants(label))
        assert len(found) == len(set(found))
        assert set(found) == ref.primes(tree, label, 3)


@examples(150)
@given(ref.equivalent_pair(n_classes=3))
def test_primes_depend_on_the_function(pair):
    a, b = (fitted(tree) for tree in pair)
    for label in range(3):
        assert a.implicants(label) == b.implicants(label)


@pytest.mark.parametrize("k, n_primes", [(0, 1), (1, 3), (2, 15), (3, 255)])
def test_family_with_many_primes(k, n_primes):
    model = fitted(ref.tree_family(k), 2, 2 ** (k + 1) - 1)
    assert len(model.implicants(1)) == n_primes


def test_too_many_primes():
    model = fitted(ref.tree_family(4), 2, 31)
    with pytest.raises(BudgetExceededError, match="max_terms"):
        model.implicants(1)
    model.set_params(rule_form="minimal")
    with pytest.raises(BudgetExceededError, match="max_terms"):
        model.rules(1)
    model.set_params(rule_form="irredundant")
    assert len(model.rules(1)) <= 16
    small = fitted(ref.tree_family(2), 2, 7, max_terms=14)
    with pytest.raises(BudgetExceededError, match="max_terms=14"):
        small.implicants(1)
    assert len(small.set_params(max_terms=15).implicants(1)) == 15


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("form", FORMS)
def test_parity(n, form):
    model = fitted(ref.parity_tree(n), 2, n, rule_form=form)
    for label in (0, 1):
        for rules in (model.implicants(label), model.rules(label)):
            assert len(rules) == 2 ** (n - 1)
            assert all(sorted(rule.bounds) == list(range(n)) for rule in rules)


@examples(100)
@given(ref.random_trees(n_classes=3), st.permutations(range(3)))
def test_features_and_units_are_names(tree, order):
    """Other columns or a monotone unit rename the bounds, and change nothing else."""

    def unit(v):
        return v**3 + v

    def rename(tree):
        if "feature" not in tree:
            return tree
        sides = rename(tree["true"]), rename(tree["false"])
        return ref.split(order[tree["feature"]], unit(tree["threshold"]), *sides)

    a, b = fitted(tree), fitted(rename(tree))
    for label in range(3):
        expected = {
            frozenset((order[j], *map(unit, ends)) for j, ends in rule.bounds.items())
            for rule in a.implicants(label)
        }
        found = [rule.bounds.items() for rule in b.implicants(label)]
        assert {frozenset((j, *ends) for j, ends in rule) for rule in found} == expected


def test_time_limit():
    X, y = load_breast_cancer(return_X_y=True)
    model = BooleanTree(rule_form="minimal", time_limit=1e-9, random_state=0)
    model.fit(X, y)
    with pytest.raises(BudgetExceededError, match="time_limit"):
        model.rules()
    assert model.set_params(time_limit=None).rules()


# Rules


@examples(300)
@given(ref.random_trees(max_depth=4, n_classes=3), st.sampled_from(FORMS))
def test_rules_cover_the_labels(tree, form):
    check_cover(fitted(tree, rule_form=form), tree)


@examples(300)
@given(ref.random_trees(max_depth=4, n_classes=3))
def test_irredundant_rules(tree):
    model = fitted(tree)
    leaves = fitted(tree, rule_form="leaves")
    for label in range(3):
        rules = boxes(model.rules(label))
        assert set(rules) <= ref.primes(tree, label, 3)
        assert len(rules) == len(set(rules)) <= len(leaves.rules(label))
    assert len(leaves.rules()) == model.n_leaves_


@examples(100)
@given(ref.random_trees(max_depth=4, n_classes=2))
def test_minimal_rules(tree):
    model = fitted(tree, 2, rule_form="minimal")
    other = fitted(tree, 2)
    for label in (0, 1):
        rules = boxes(model.rules(label))
        n_bounds = sum(map(ref.n_bounds, rules))
        assert (len(rules), n_bounds) == ref.minimum_dnf(tree, label)
        assert set(rules) <= ref.primes(tree, label, 3)
        assert len(rules) <= len(other.rules(label))


@examples(150)
@given(
    ref.equivalent_pair(n_features=4, max_depth=3, thresholds=(0.5,)),
    st.sampled_from(FORMS),
)
def test_rules_of_equal_trees(pair, form):
    a, b = (fitted(tree, 2, 4, rule_form=form) for tree in pair)
    for tree, model in zip(pair, (a, b)):
        check_cover(model, tree, 4)
    if form == "minimal":
        assert len(a.rules()) == len(b.rules())


@examples(120)
@given(
    ref.random_trees(max_depth=3, n_classes=3),
    ref.tables(),
    st.sampled_from(FORMS),
    st.data(),
)
def test_support_and_precision(tree, X, form, data):
    y = data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X)))
    model = fitted(tree, X=X, y=y, rule_form=form)
    found = model.rules()
    for rule, box in zip(found, boxes(found)):
        inside = np.array([ref.contains(box, x) for x in X])
        assert rule.support == inside.sum()
        if inside.any():
            assert rule.precision == np.mean(np.array(y)[inside] == rule.label)
        else:
            assert rule.precision is None
    for label in range(3):
        support = [rule.support for rule in model.rules(label)]
        assert support == sorted(support, reverse=True)
    assert all(rule.precision is None for rule in fitted(tree, X=X).rules())
    assert all(rule[2:] == (None, None) for rule in fitted(tree).rules())


fractions = (-0.5, 0.0, 0.2, 0.9, 1.0, 1.5)


@examples(150)
@given(
    ref.random_trees(max_depth=4, n_classes=3, thresholds=fractions),
    st.lists(st.sampled_from(["binary", "integer"]), min_size=3, max_size=3),
    st.sampled_from(FORMS),
)
def test_domains(tree, kinds, form):
    domains = dict(enumerate(kinds))
    model = fitted(tree, rule_form=form, feature_domains=domains)
    values = [[0, 1] if kind == "binary" else range(-2, 4) for kind in kinds]
    points = list(product(*values))
    for label in range(3):
        has_label = [ref.evaluate(tree, x) == label for x in points]
        for rules in (model.rules(label), model.implicants(label)):
            found = [any(ref.contains(b, x) for b in boxes(rules)) for x in points]
            assert found == has_label
            # Each rule holds somewhere.
            for box in boxes(rules):
                assert any(ref.contains(box, x) for x in points)


TESTS = {0: ("a", 0.0), 1: ("a", 1.0), 2: ("a", 2.0), 3: ("b", 0.0), 4: ("b", 1.0)}


@examples(150)
@given(ref.random_trees(6, 4, (0.5,), n_classes=3), st.sampled_from(FORMS))
def test_threshold_map(tree, form):
    model = fitted(tree, n_features=6, rule_form=form, threshold_map=TESTS)
    sources = list(product([-1, 0.5, 1.5, 3], [-1, 0.5, 2], [0, 1]))
    rows = [
        [*({"a": u, "b": v}[name] <= t for name, t in TESTS.values()), w]
        for u, v, w in sources
    ]
    for label in range(3):
        has_label = [ref.evaluate(tree, x) == label for x in rows]
        for rules in (model.rules(label), model.implicants(label)):
            found = [any(ref.contains(b, x) for b in boxes(rules)) for x in sources]
            assert found == has_label


def test_weighted_support_and_rows_with_nan():
    X, y = load_iris(return_X_y=True)
    X[::7, 2] = np.nan
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    model = BooleanTree(max_depth=3, random_state=0)
    model.fit(X, y, sample_weight=weight)
    for rule in model.rules():
        inside = np.ones(len(y), bool)
        for j, (low, high) in rule.bounds.items():
            inside &= (low < X[:, j]) & (X[:, j] <= high)
        assert rule.support == weight[inside].sum()
        right = weight[inside & (y == rule.label)].sum()
        assert rule.precision == pytest.approx(right / rule.support, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_fitted_tree(form):
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    model = BooleanTree(rule_form=form, random_state=0).fit(X, y)
    rng = np.random.default_rng(0)
    Z = np.concatenate([X, rng.permuted(X, axis=0)])
    labels = model.predict(Z)
    for label in model.classes_:
        covered = np.zeros(len(Z), bool)
        for rule in model.rules(label):
            ends = rule.bounds.items()
            covered |= np.all([(a < Z[:, j]) & (Z[:, j] <= b) for j, (a, b) in ends], 0)
        np.testing.assert_array_equal(covered, labels == label)


def test_constant_tree():
    for form in FORMS:
        model = fitted({"prediction": 1}, 2, 2, rule_form=form)
        assert model.rules() == [(1, {}, None, None)]
        assert model.rules(0) == [] == model.implicants(0)
        assert model.implicants(1) == [(1, {}, None, None)]
        assert model.export_text() == "1: always"


# Text


def test_export_text():
    no, yes = {"prediction": "no"}, {"prediction": "yes"}
    tree = ref.split(0, 2.5, no, ref.split(1, 0.5, ref.split(0, 4.25, yes, no), no))
    X = [[3.0, 0], [3.0, 1], [1.0, 0], [5.0, 0]]
    y = ["yes", "no", "no", "yes"]
    model = BooleanTree.from_tree(tree, X=X, y=y, rule_form="leaves")
    assert model.export_text().splitlines() == [
        "no: x0 <= 2.50  [1 rows, 100.0% right]",
        "no: x0 > 2.50 and x1 > 0.50  [1 rows, 100.0% right]",
        "no: x0 > 4.25 and x1 <= 0.50  [1 rows, 0.0% right]",
        "yes: 2.50 < x0 <= 4.25 and x1 <= 0.50  [1 rows, 100.0% right]",
    ]
    text = model.export_text(feature_names=["size", "age"], decimals=1)
    assert "yes: 2.5 < size <= 4.2 and age <= 0.5" in text
    domains = {0: "integer", 1: "binary"}
    model = BooleanTree.from_tree(
        tree, feature_domains=domains, rule_form="leaves", n_features=2
    )
    assert "yes: 2.00 < x0 <= 4.00 and x1 = 0" in model.export_text()
    with pytest.raises(ValueError, match="feature_names"):
        model.export_text(feature_names=["size"])
    tiny = ref.split(0, 1e-7, no, yes)
    assert "x0 <= 1e-07" in BooleanTree.from_tree(tiny).export_text()
