"""The estimator as its users meet it: inputs, parameters, state, errors."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
)

from skextra.tree import (
    AcquisitionDisplay,
    BooleanTree,
    BudgetExceededError,
    RulesDisplay,
    exact_permutation_importance,
    explain_tree,
    rashomon_importance,
    trees_equivalent,
    value_interval,
)

X, y = load_wine(return_X_y=True)
STUMP = {
    "feature": 0,
    "threshold": 2.5,
    "true": {"prediction": "no"},
    "false": {"prediction": "yes"},
}


@pytest.fixture
def fitted():
    return BooleanTree(max_depth=4, random_state=0).fit(X, y)


def with_missing(X, share=0.5, seed=0):
    X = np.array(X, dtype=float)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def test_default_is_scikit_learns_tree():
    ours = BooleanTree(max_depth=4, min_samples_leaf=3, random_state=1).fit(X, y)
    theirs = DecisionTreeClassifier(max_depth=4, min_samples_leaf=3, random_state=1)
    theirs.fit(X, y)
    assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.n_leaves_ == theirs.get_n_leaves()
    assert isinstance(ours.estimator_, DecisionTreeClassifier)


def test_wraps_unfitted_and_frozen_trees():
    extra = ExtraTreeClassifier(random_state=0)
    ours = BooleanTree(extra).fit(X, y)
    assert_array_equal(ours.predict_proba(X), clone(extra).fit(X, y).predict_proba(X))
    assert not hasattr(extra, "tree_")

    known = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    frozen = BooleanTree(FrozenEstimator(known)).fit(X[:50], y[:50])
    assert_array_equal(frozen.predict_proba(X), known.predict_proba(X))
    assert frozen.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="features"):
        BooleanTree(FrozenEstimator(known)).fit(X[:, :5], y)


def test_search_in_a_pipeline():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = make_pipeline(StandardScaler(), BooleanTree(random_state=0))
    grid = {
        "booleantree__max_depth": [2, 4],
        "booleantree__missing": ["path", "marginal"],
    }
    search = GridSearchCV(model, grid).fit(with_missing(X_train, 0.1), y_train)
    assert search.score(X_test, y_test) > 0.9
    assert search.best_estimator_[-1].is_determined(X_test).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    names = [f"f{j}" for j in range(X.shape[1])]
    table = frame(dict(zip(names, X.T)))
    ours = BooleanTree(max_depth=3, random_state=0).fit(table, y)
    plain = BooleanTree(max_depth=3, random_state=0).fit(X, y)
    assert ours.feature_names_in_.tolist() == names
    assert_array_equal(ours.predict(table), plain.predict(X))
    assert any(name in ours.export_text() for name in names)
    assert ours.explain(table[:3]) == plain.explain(X[:3])
    learner = DecisionTreeClassifier(max_depth=3, random_state=0)
    wrapped = BooleanTree(learner).fit(table, y)
    assert_array_equal(wrapped.predict(table), plain.predict(X))


def test_one_row_with_one_axis(fitted):
    assert fitted.explain(X[0]) == fitted.explain(X[:1])[0]
    assert fitted.explain(pd.Series(X[0])) == fitted.explain(X[0])
    with pytest.raises(ValueError, match=r"shape \(13,\)"):
        fitted.explain(X[0, :4])
    with pytest.raises(ValueError, match="Reshape your data"):
        fitted.predict(X[0])


def test_float32_rows_are_answered_as_by_scikit_learn(fitted):
    rows = X.astype(np.float32)
    assert_array_equal(
        fitted.predict_proba(rows), fitted.estimator_.predict_proba(rows)
    )


def test_labels_may_be_strings():
    names = np.array(["rot", "weiss", "rose"])[y]
    ours = BooleanTree(max_depth=3, random_state=0).fit(X, names)
    assert set(ours.predict(with_missing(X))) <= set(names)
    assert {rule.label for rule in ours.rules()} == set(names)
    assert ours.explain(X[0])[0].label == names[0]
    assert len(ours.implicants("rot")) >= 1


def test_trained_on_missing_values():
    table = with_missing(X, 0.3)
    ours = BooleanTree(max_depth=4, random_state=0).fit(table, y)
    assert ours.score(X, y) > 0.7
    assert_allclose(ours.feature_importances_.sum(), 1)
    policy = ours.acquisition_policy()
    assert policy.expected_cost_ <= policy.path_cost_


def test_no_complete_training_row():
    table = X.copy()
    table[::2, ::2] = np.nan
    table[1::2, 1::2] = np.nan
    ours = BooleanTree(max_depth=4, random_state=0).fit(table, y)
    with pytest.warns(UserWarning, match="feature_importances_ is zero"):
        assert not ours.feature_importances_.any()
    with pytest.raises(ValueError, match="without NaN"):
        ours.acquisition_policy()


def test_sample_weight_counts_like_repeated_rows():
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(X))
    settings = {"max_depth": 3, "random_state": 0}
    weighted = BooleanTree(**settings).fit(X, y, sample_weight=weight)
    repeated = BooleanTree(**settings).fit(
        np.repeat(X, weight, 0), np.repeat(y, weight)
    )
    assert weighted.equivalent_to(repeated)
    assert_allclose(weighted.feature_importances_, repeated.feature_importances_)
    assert [rule.support for rule in weighted.rules()] == [
        rule.support for rule in repeated.rules()
    ]
    costs = weighted.acquisition_policy(), repeated.acquisition_policy()
    assert_allclose(costs[0].expected_cost_, costs[1].expected_cost_)


def test_importances_are_those_of_the_training_rows(fitted):
    theirs = permutation_importance(
        fitted.estimator_, X, y, n_repeats=200, random_state=0
    ).importances_mean
    theirs = np.maximum(theirs, 0)
    assert_allclose(fitted.feature_importances_, theirs / theirs.sum(), atol=0.01)


def test_constant_tree():
    ours = BooleanTree().fit(X, np.ones(len(X)))
    assert ours.n_leaves_ == 1 and ours.essential_thresholds_ == {}
    assert not ours.feature_importances_.any()
    assert ours.is_determined(np.full((1, 13), np.nan)).all()
    assert ours.explain(X[0])[0].features == ()
    assert ours.explain(X[0], kind="contrastive") == []
    assert ours.export_text() == "1.0: always  [178 rows, 100.0% right]"
    policy = ours.acquisition_policy()
    assert policy.expected_cost_ == policy.path_cost_ == policy.total_cost_ == 0
    assert policy.next_feature(np.full(13, np.nan)) == -1
    assert policy.run(X[:2]).orders == [(), ()]
    ours.plot(), ours.plot_acquisition()


@pytest.mark.parametrize("missing", ["path", "marginal"])
def test_pickles_and_clones(fitted, missing):
    ours = fitted.set_params(missing=missing).fit(X, y)
    policy = ours.acquisition_policy()
    rows = with_missing(X)
    again, plan = pickle.loads(pickle.dumps((ours, policy)))
    assert_array_equal(again.predict_proba(rows), ours.predict_proba(rows))
    assert plan.run(X).orders == policy.run(X).orders
    assert again.rules() == ours.rules()
    copy = clone(ours)
    assert not hasattr(copy, "classes_")
    assert_array_equal(copy.fit(X, y).predict_proba(rows), ours.predict_proba(rows))


def test_joblib(fitted, tmp_path):
    joblib.dump(fitted, tmp_path / "tree")
    again = joblib.load(tmp_path / "tree", mmap_mode="r")
    assert_array_equal(again.predict(with_missing(X)), fitted.predict(with_missing(X)))
    assert again.equivalent_to(fitted)


def test_parameters_are_fixed_by_fit(fitted):
    rows = with_missing(X)
    before = fitted.predict_proba(rows)
    fitted.set_params(
        missing="marginal", feature_domains={0: "binary"}, acquisition_costs=[1]
    )
    assert_array_equal(fitted.predict_proba(rows), before)
    fitted.explain(X[0], minimize="cost")


def test_rule_form_is_read_at_the_call(fitted):
    forms = {}
    for form in ("leaves", "irredundant", "minimal"):
        forms[form] = fitted.set_params(rule_form=form).rules()
    assert len(forms["minimal"]) <= len(forms["irredundant"]) <= len(forms["leaves"])
    assert len(forms["leaves"]) == fitted.n_leaves_
    with pytest.raises(ValueError, match="rule_form"):
        fitted.set_params(rule_form="short").rules()


def test_refit_forgets_the_old_tree(fitted):
    old = fitted.rules(), fitted.fingerprint_, fitted.feature_importances_
    X_iris, y_iris = load_iris(return_X_y=True)
    fitted.fit(X_iris, y_iris)
    assert fitted.rules() != old[0] and fitted.fingerprint_ != old[1]
    assert fitted.feature_importances_.shape == (4,)
    with pytest.raises(ValueError, match="acquisition costs"):
        fitted.set_params(acquisition_costs=[1, 2]).fit(X, y)


def test_a_policy_outlives_a_refit(fitted):
    policy = fitted.acquisition_policy()
    before = policy.run(X).labels
    fitted.fit(*load_iris(return_X_y=True))
    assert_array_equal(policy.run(X).labels, before)


def test_returned_lists_are_the_callers(fitted):
    fitted.rules(0).clear(), fitted.implicants(0).clear()
    assert fitted.rules(0) and fitted.implicants(0)


def test_html_view_computes_nothing(fitted):
    fitted._repr_html_()
    assert fitted._cache == {}
    assert "essential_thresholds_" not in dir(fitted)


def test_names_for_domains_groups_and_costs():
    table = pd.DataFrame(
        {"a": [0, 1, 0, 1] * 5, "b": [1, 0, 1, 0] * 5, "c": [1, 2, 3, 4] * 5}
    )
    target = [0, 1, 1, 1] * 5
    by_name = BooleanTree(
        feature_domains={"c": "integer"}, one_hot_groups=[["a", "b"]], random_state=0
    ).fit(table, target)
    by_index = BooleanTree(
        feature_domains={2: "integer"}, one_hot_groups=[[0, 1]], random_state=0
    ).fit(table.to_numpy(), target)
    row = np.array([[np.nan, 0.0, np.nan]])
    assert_array_equal(
        by_name.predict_set(pd.DataFrame(row, columns=list("abc"))),
        by_index.predict_set(row),
    )
    with pytest.raises(ValueError, match="one_hot_groups names the feature 'd'"):
        BooleanTree(one_hot_groups=[["a", "d"]]).fit(table, target)


def test_text_writes_domains():
    tree = {"feature": 0, "true": STUMP | {"feature": 1}, "false": {"prediction": "no"}}
    ours = BooleanTree.from_tree(tree, feature_domains={0: "binary", 1: "integer"})
    assert ours.export_text(["sick", "age"]) == (
        "no: sick = 0\nno: age <= 2.00\nyes: sick = 1 and age > 2.00"
    )


def test_small_thresholds_do_not_look_like_zero():
    ours = BooleanTree.from_tree(STUMP | {"threshold": 0.00123})
    assert ours.export_text() == "no: x0 <= 0.0012\nyes: x0 > 0.0012"


def test_tree_without_rows():
    ours = BooleanTree.from_tree(STUMP, n_features=2)
    assert ours.predict([[2.0, 0], [3.0, 0]]).tolist() == ["no", "yes"]
    assert_array_equal(ours.predict_proba([[np.nan, 0]]), [[0.5, 0.5]])
    assert ours.rules()[0].support is None
    assert not hasattr(ours, "feature_importances_")
    for call in (
        ours.acquisition_policy,
        lambda: BooleanTree.from_tree(STUMP, missing="marginal"),
    ):
        with pytest.raises(ValueError, match="pass X to from_tree"):
            call()


def test_tree_with_rows():
    rows, labels = [[1.0], [2.0], [2.2], [3.0]], ["no", "no", "yes", "yes"]
    ours = BooleanTree.from_tree(STUMP, X=rows, y=labels)
    assert_array_equal(ours.predict_proba([[np.nan]]), [[0.75, 0.25]])
    assert [(r.support, r.precision) for r in ours.rules()] == [(3, 2 / 3), (1, 1)]
    assert_array_equal(ours.feature_importances_, [1])
    with pytest.raises(ValueError, match="X has 2 features"):
        BooleanTree.from_tree(STUMP, X=[[1.0, 2.0]], n_features=1)


def test_simplify_keeps_labels_and_recounts():
    X, y = load_breast_cancer(return_X_y=True)
    full = BooleanTree(random_state=0, max_depth=4).fit(X, y)
    simple = full.simplify()
    assert simple.equivalent_to(full) and simple.n_leaves_ < full.n_leaves_
    assert_array_equal(simple.predict(X), full.predict(X))
    assert_allclose(simple.predict_proba(X).sum(axis=1), 1)
    assert trees_equivalent(simple.estimator_, full.estimator_)
    assert_allclose(simple.feature_importances_, full.feature_importances_)
    assert simple.acquisition_policy().expected_cost_ <= simple._flat.used.size
    bare = BooleanTree.from_tree(full.estimator_).simplify()
    assert_array_equal(bare.predict_proba(X), full.predict_proba(X))


def test_simplify_keeps_the_way_of_missing_values():
    rows, labels = with_missing(X, 0.2).astype(np.float32), y
    full = BooleanTree(missing="marginal", max_depth=5, random_state=0)
    simple = full.fit(rows, labels).simplify()
    again = BooleanTree.from_tree(
        simple.estimator_, n_features=13, X=rows, y=labels, missing="marginal"
    )
    assert_allclose(simple.predict_proba(rows), again.predict_proba(rows))
    full.set_params(missing="path")
    assert_allclose(full.simplify().predict_proba(rows), simple.predict_proba(rows))


def test_displays(fitted, tmp_path):
    display = fitted.plot()
    assert isinstance(display, RulesDisplay)
    assert len(display.bars_) == sum(len(rule.bounds) for rule in fitted.rules())
    one = RulesDisplay.from_estimator(fitted, 1, feature_names=list("abcdefghijklm"))
    assert {rule.label for rule in one.rules} == {1}
    display = fitted.plot_acquisition()
    assert isinstance(display, AcquisitionDisplay)
    assert display.figure_ is display.ax_.figure
    display.figure_.savefig(tmp_path / "policy.png")


def test_unfitted():
    ours = BooleanTree()
    calls = [
        lambda: ours.predict(X),
        lambda: ours.is_determined(X),
        lambda: ours.explain(X),
        lambda: ours.explain(X[0]),
        ours.rules,
        lambda: ours.implicants(0),
        ours.export_text,
        ours.simplify,
        ours.acquisition_policy,
        lambda: ours.equivalent_to(BooleanTree().fit(X, y)),
        lambda: BooleanTree().fit(X, y).equivalent_to(ours),
        ours.plot,
    ]
    for call in calls:
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(ours, "feature_importances_")
    assert not hasattr(ours, "fingerprint_")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"missing": "mean"}, "missing"),
        ({"rule_form": "short"}, "rule_form"),
        ({"distribution": "normal"}, "distribution"),
        ({"max_terms": 0}, "max_terms"),
        ({"time_limit": 0}, "time_limit"),
        ({"feature_domains": {0: "ordinal"}}, "feature_domains.*'ordinal'"),
        ({"feature_domains": {99: "binary"}}, "feature_domains names the feature 99"),
        ({"feature_domains": {0: "binary"}}, "Feature 0 of X is binary"),
        ({"feature_domains": {0: "integer"}}, "Feature 0 of X is integer"),
        ({"one_hot_groups": [[0]]}, "two or more"),
        ({"one_hot_groups": [[0, 1], [1, 2]]}, "share"),
        (
            {"one_hot_groups": [[0, 1]], "feature_domains": {0: "integer"}},
            "binary features",
        ),
        ({"feature_domains": {0: ["binary"]}}, "feature_domains"),
        ({"one_hot_groups": [0, 1]}, "lists of features"),
        ({"acquisition_costs": [1e308] * 13}, "finite sum"),
        ({"acquisition_costs": ["a"] * 13}, "numbers"),
        ({"acquisition_costs": np.ones(3)}, r"shape \(13,\)"),
        ({"acquisition_costs": [-1] + [1] * 12}, "not negative"),
        ({"acquisition_costs": [np.nan] + [1] * 12}, "finite"),
    ],
)
def test_bad_parameters(settings, message):
    with pytest.raises(ValueError, match=message):
        BooleanTree(**settings).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (DecisionTreeRegressor(), TypeError, "classifier"),
        (LogisticRegression(max_iter=5000), TypeError, "LogisticRegression"),
        (RandomForestClassifier(2), TypeError, "RandomForestClassifier"),
    ],
)
def test_other_estimators(estimator, error, message):
    with pytest.raises(error, match=message):
        BooleanTree(estimator).fit(X, y)


def test_bad_rows(fitted):
    bad = X.copy()
    bad[0, 0] = np.inf
    for call in (fitted.predict, fitted.is_determined, fitted.explain):
        with pytest.raises(ValueError, match="infinity"):
            call(bad)
    with pytest.raises(ValueError, match="13 features"):
        fitted.predict(X[:, :3])
    with pytest.raises(ValueError, match="could not convert"):
        fitted.predict(np.full((1, 13), "a"))
    with pytest.raises(ValueError, match="infinity"):
        BooleanTree().fit(bad, y)
    with pytest.raises(ValueError):
        BooleanTree().fit(X, np.column_stack([y, y]))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        import scipy.sparse

        fitted.predict(scipy.sparse.csr_array(X))


def test_bad_questions(fitted):
    undetermined = np.full(13, np.nan)
    with pytest.raises(ValueError, match=r"any of \[0, 1, 2\]"):
        fitted.explain(undetermined)
    for settings, message in [
        ({"kind": "why"}, "kind"),
        ({"minimize": "time"}, "minimize"),
        ({"max_explanations": 0}, "max_explanations"),
        ({"max_explanations": "some"}, "max_explanations"),
        ({"inflate": "no"}, "inflate"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted.explain(X[0], **settings)
    with pytest.raises(ValueError, match="label must be one of"):
        fitted.rules(7)
    with pytest.raises(ValueError, match="feature_names"):
        fitted.export_text(["a"])
    with pytest.raises(ValueError, match="output"):
        fitted.equivalent_to(fitted, output="value")
    other = DecisionTreeClassifier().fit(X[:, :4], y)
    with pytest.raises(ValueError, match="4 features"):
        fitted.equivalent_to(other)
    with pytest.raises(ValueError, match="classes"):
        fitted.equivalent_to(DecisionTreeClassifier().fit(X, y > 0))
    with pytest.raises(BudgetExceededError, match="max_terms=1"):
        fitted.set_params(max_terms=1).implicants(1)
    with pytest.raises(BudgetExceededError, match="max_terms=1"):
        fitted.explain(X[0], kind="contrastive", max_explanations="all")


def test_bad_costs_and_groups(fitted):
    for settings, message in [
        ({"costs": [1, 2]}, r"shape \(13,\)"),
        ({"costs": [-1.0] * 13}, "not negative"),
        ({"groups": [[0, 99]]}, "groups names the feature 99"),
        ({"groups": [[0, 1], [1, 2]]}, "share"),
        ({"groups": {(0, 1): -2.0}}, "finite costs"),
        ({"groups": {(0, 1): None}}, "finite costs"),
        ({"groups": [[]]}, "lists of features"),
        ({"costs": {0: 1}}, "numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted.acquisition_policy(**settings)
    policy = fitted.acquisition_policy()
    with pytest.raises(ValueError, match="NaN in row 0"):
        policy.run(np.full((1, 13), np.nan))
    with pytest.raises(ValueError, match=r"shape \(13,\)"):
        policy.next_feature([1.0])


def test_bad_labels_and_classes_of_a_tree():
    rows = [[1.0], [3.0]]
    for given, message in [
        ({"y": ["no"]}, "inconsistent"),
        ({"y": [["no"], ["yes"]]}, None),
        ({"y": [0, 1]}, "labels such as those of the tree"),
        ({"y": [np.nan, 1]}, "NaN"),
        ({"classes": ["no", "yes", "yes"]}, "classes must differ"),
        ({"n_features": 2.0}, "n_features must be an integer"),
    ]:
        if message is not None:
            with pytest.raises(ValueError, match=message):
                BooleanTree.from_tree(STUMP, X=rows, **given)
    with pytest.raises(ValueError, match="1d array"):
        BooleanTree.from_tree(STUMP, X=rows, y=[["no", "yes"], ["no", "yes"]])


def test_names_of_a_tree():
    table = pd.DataFrame(X[:, :4], columns=list("abcd"))
    known = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, y)
    ours = BooleanTree.from_tree(known, feature_domains={"a": "continuous"})
    assert_array_equal(ours.predict(table), known.predict(table))
    assert any(f"{name} <= " in ours.export_text() for name in "abcd")
    again = BooleanTree.from_tree(known.tree_, known.classes_, X=table)
    assert again.feature_names_in_.tolist() == list("abcd")
    swapped = table[list("dcba")]
    for call in (
        lambda: ours.predict(swapped),
        lambda: value_interval(known, swapped),
        lambda: explain_tree(known, swapped),
        lambda: exact_permutation_importance(known, swapped, y),
        lambda: rashomon_importance([[known]], swapped, y),
    ):
        with pytest.raises(ValueError, match=r"\['a', 'b', 'c', 'd'\]|feature names"):
            call()


def test_bad_sets_of_trees():
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    for sets, rows, labels, message in [
        ([], X, y, "no set"),
        ([[tree], []], X, y, "Set 1"),
        ([[tree]], X, y[:3], "inconsistent"),
        ([[tree]], X[0], y, "2D"),
        ([[tree]], X, None, "y"),
    ]:
        with pytest.raises(ValueError, match=message):
            rashomon_importance(sets, rows, labels)
    with pytest.raises(ValueError, match="others for regression"):
        trees_equivalent(tree, DecisionTreeRegressor().fit(X, y))


def test_series_must_name_the_features_as_in_fit():
    table = pd.DataFrame(X[:, :4], columns=list("abcd"))
    ours = BooleanTree(max_depth=3, random_state=0).fit(table, y)
    assert ours.explain(table.iloc[0]) == ours.explain(table[:1])[0]
    with pytest.raises(ValueError, match="name the features as in fit"):
        ours.explain(table.iloc[0][list("dcba")])


def test_a_fit_that_fails_leaves_no_old_tree(fitted):
    with pytest.raises(ValueError):
        fitted.fit(X[:, :4], np.linspace(0, 1, len(X)))
    with pytest.raises(NotFittedError):
        fitted.predict(X[:, :4])


def test_budget_of_joint_outcomes():
    rng = np.random.default_rng(1)
    rows = rng.random((500, 8))
    ours = BooleanTree(distribution="independent", max_states=100, random_state=0)
    ours.fit(rows, rows.sum(axis=1) > 4)
    with pytest.raises(BudgetExceededError, match="for max_states=100"):
        ours.acquisition_policy(groups=[range(8)])
    with pytest.raises(BudgetExceededError, match="not even the cost"):
        ours.acquisition_policy()
    policy = ours.set_params(distribution="empirical").acquisition_policy()
    assert not policy.optimal_ and policy.expected_cost_ <= policy.path_cost_


def test_outline_ends_with_dots():
    ours = BooleanTree(max_depth=4, random_state=0).fit(X, y)
    root = ours.acquisition_policy().outline(1)
    assert len(root.children) > 1
    assert all(not child.children for _, child in root.children)


def test_one_hot_groups_leave_out_what_is_not_defined():
    rows = np.eye(3)[[0, 1, 2] * 4]
    ours = BooleanTree(one_hot_groups=[[0, 1, 2]]).fit(rows, [0, 1, 1] * 4)
    for call in (
        lambda: ours.essential_thresholds_,
        lambda: ours.fingerprint_,
        lambda: ours.implicants(0),
        ours.rules,
        ours.acquisition_policy,
    ):
        with pytest.raises(ValueError, match="not defined with one_hot_groups"):
            call()
    assert ours.set_params(rule_form="leaves").rules()
    with pytest.raises(ValueError, match="exactly one 1"):
        ours.predict([[1.0, 1.0, 0.0]])


def test_contradictions_of_threshold_map():
    tree = {"feature": 0, "true": {"prediction": 1}, "false": {"prediction": 0}}
    tests = {0: ("age", 20.0), 1: ("age", 40.0)}
    ours = BooleanTree.from_tree(tree, n_features=3, threshold_map=tests)
    assert ours.source_features_.tolist() == ["age", "x2"]
    assert ours.predict([[np.nan, 0, 5]]).tolist() == [0]
    assert ours.is_determined([[np.nan, 0, 5], [np.nan, 1, 5]]).tolist() == [
        True,
        False,
    ]
    assert ours.export_text() == "0: age > 20.00\n1: age <= 20.00"
    assert ours.counterexample({"prediction": 1}) is not None
    with pytest.raises(ValueError, match="contradicts itself"):
        ours.predict([[1, 0, 5]])
    with pytest.raises(ValueError, match="0, 1 or NaN"):
        ours.predict([[0.5, 0, 5]])
    with pytest.raises(ValueError, match="finite threshold"):
        BooleanTree.from_tree(tree, threshold_map={0: ("age", np.inf)})
    for wrong in ([(0, 1)], {0: 5}, {0: ("age", "old")}):
        with pytest.raises(ValueError, match="threshold_map"):
            BooleanTree.from_tree(tree, threshold_map=wrong)
    with pytest.raises(ValueError, match="calls a feature 'x2'"):
        BooleanTree.from_tree(tree, n_features=3, threshold_map={0: ("x2", 5.0)})
    with pytest.raises(ValueError, match="maps columns"):
        BooleanTree.from_tree(tree, threshold_map={5: ("age", 1.0)})
    with pytest.raises(ValueError, match="combined"):
        BooleanTree.from_tree(
            tree, threshold_map={0: ("age", 1.0)}, feature_domains={0: "binary"}
        )


def test_regression_tree_is_no_classifier():
    with pytest.raises(TypeError, match="regression"):
        BooleanTree.from_tree(DecisionTreeRegressor().fit(X, y))


class Dictionary(ClassifierMixin, BaseEstimator):
    """A fitted classifier of another package, whose leaves have no weights."""

    classes_ = np.array(["no", "yes"])
    tree_ = STUMP

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.where(np.ravel(X) <= 2.5, "no", "yes")


def test_rows_weigh_the_nodes_of_other_packages():
    rows, labels = [[1.0]] * 9 + [[3.0]], ["no"] * 9 + ["yes"]
    for ours in (
        BooleanTree.from_tree(Dictionary(), X=rows),
        BooleanTree(FrozenEstimator(Dictionary())).fit(rows, labels),
    ):
        assert_allclose(ours.predict_proba([[np.nan]]), [[0.9, 0.1]])


def test_frozen_trees_keep_their_groups():
    red = {"feature": 0, "true": {"prediction": 1}, "false": {"prediction": 0}}
    blue = {"feature": 1, "true": {"prediction": 0}, "false": {"prediction": 1}}
    settings = {"n_features": 2, "one_hot_groups": [[0, 1]]}
    a, b = (BooleanTree.from_tree(tree, **settings) for tree in (red, blue))
    assert a.equivalent_to(FrozenEstimator(b))
    assert trees_equivalent(FrozenEstimator(a), FrozenEstimator(b))
    assert not trees_equivalent(red, blue)


def test_bare_trees_of_other_widths():
    a, b = (DecisionTreeClassifier().fit(X[:, :d], y).tree_ for d in (5, 3))
    with pytest.raises(ValueError, match="numbers of features"):
        trees_equivalent(a, b)


def test_fit_forgets_a_threshold_map():
    tree = {"feature": 0, "true": {"prediction": 1}, "false": {"prediction": 0}}
    ours = BooleanTree.from_tree(tree, threshold_map={0: ("age", 20.0)})
    with pytest.raises(ValueError, match="threshold_map"):
        BooleanTree.from_tree(ours)
    table = pd.DataFrame({"u": [0, 1, 1, 0], "v": [1.0, 2.0, 3.0, 4.0]})
    ours.set_params(feature_domains={"u": "binary"}).fit(table, [0, 1, 1, 0])
    assert ours.source_features_ is None
    assert ours.export_text().startswith("0: u = 0")


def test_many_one_hot_groups_are_explained():
    """A group that the tree does not test adds nothing to the explanations."""
    groups = [list(range(start, start + 10)) for start in range(0, 200, 10)]
    tree = {"feature": 0, "true": {"prediction": 1}, "false": {"prediction": 0}}
    ours = BooleanTree.from_tree(tree, n_features=200, one_hot_groups=groups)
    row = np.tile(np.eye(10)[0], 20)
    assert ours.explain(row, minimize="cost")[0].features == (0,)
    changes = ours.explain(row, kind="contrastive", max_explanations="all")
    assert [change.features for change in changes] == [(0, j) for j in range(1, 10)]


def test_a_free_feature_may_have_any_value():
    tree = {
        "feature": 0,
        "true": STUMP | {"feature": 1},
        "false": STUMP | {"feature": 1},
    }
    rows = np.array([[0.0, 1], [1, 1], [0, 3], [1, 3]])
    ours = BooleanTree.from_tree(tree, X=rows, feature_domains={0: "binary"})
    ((edge, _),) = ours.acquisition_policy(costs=[0, 1]).outline().children
    assert edge == "any value"
