"""The classifier against the functions on arrays that it stands for."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.uncertainty import (
    LossUncertaintyClassifier,
    bald,
    batch_bald,
    batch_eur,
    epig,
    expected_uncertainty_reduction,
    make_loss_scorer,
    member_predictions,
    predictive_uncertainty,
    uncertainty_decomposition,
)

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
FOREST = RandomForestClassifier(8, max_depth=2, random_state=0)
COSTS = [[0, 4, 1], [1, 0, 1], [5, 1, 0]]
POOL = np.random.default_rng(0).uniform(X.min(0), X.max(0), size=(40, 4))
STRATEGIES = ["eur", "epig", "bald", "margin", "entropy"]


def fitted(**params):
    return LossUncertaintyClassifier(FOREST, random_state=0, **params).fit(X, Y)


LOSSES = [
    {"loss": "log_loss"},
    {"loss": "brier"},
    {"loss": "zero_one"},
    {"loss": "cost", "cost_matrix": COSTS},
    {"loss": lambda p: 1 - (p**3).sum(axis=-1)},
]


@pytest.mark.parametrize("loss", LOSSES)
def test_what_the_functions_say(loss):
    model = fitted(**loss)
    p = member_predictions(model.estimator_, POOL)
    assert_allclose(model.predict_proba(POOL), p.mean(axis=1), atol=1e-15)
    total = predictive_uncertainty(p, **loss)
    assert_allclose(model.uncertainty(POOL), total, atol=1e-14)
    parts, slow = model.decompose(POOL), uncertainty_decomposition(p, **loss)
    for key in ("total", "irreducible", "reducible"):
        assert_allclose(parts[key], slow[key], atol=1e-14)
    eur = expected_uncertainty_reduction(p, p[:7], **loss)
    assert_allclose(model.acquisition(POOL, POOL[:7]), eur, atol=1e-14)
    weights = np.arange(7.0)
    eur = expected_uncertainty_reduction(p, p[:7], **loss, target_weights=weights)
    scores = model.acquisition(POOL, POOL[:7], target_weights=weights)
    assert_allclose(scores, eur, atol=1e-14)


def test_strategies():
    model = fitted(loss="brier")
    p = member_predictions(model.estimator_, POOL)
    mean = p.mean(axis=1)
    first, second = np.sort(mean, axis=1)[:, [-1, -2]].T
    expected = {
        "eur": expected_uncertainty_reduction(p, p, "brier"),
        "epig": epig(p, p),
        "bald": bald(p),
        "margin": 1 - (first - second),
        "entropy": predictive_uncertainty(mean),
    }
    for strategy, scores in expected.items():
        found = model.acquisition(POOL, strategy=strategy)
        assert_allclose(found, scores, atol=1e-14)
        order = np.argsort(-found, kind="stable")[:5]
        assert_array_equal(model.query(POOL, 5, strategy=strategy), order)


def test_targets_drawn_from_the_pool():
    model = fitted()
    few = model.acquisition(POOL, n_targets=np.int64(5))
    rows = np.random.RandomState(0).choice(40, size=5, replace=False)
    assert_allclose(few, model.acquisition(POOL, POOL[rows]), atol=1e-14)
    assert_array_equal(few, model.acquisition(POOL, n_targets=5))


def test_joint_batches():
    model = fitted(loss="brier")
    p = member_predictions(model.estimator_, POOL)
    chosen = model.query(POOL, 3, strategy="bald", joint=True)
    assert_array_equal(chosen, batch_bald(p, 3, random_state=0)[0])
    chosen = model.query(POOL, 3, POOL[:6], joint=True)
    slow = batch_eur(p, p[:6], 3, "brier", random_state=0)[0]
    assert_array_equal(chosen, slow)
    chosen = model.query(POOL, 3, POOL[:6], strategy="epig", joint=True)
    assert_array_equal(chosen, batch_eur(p, p[:6], 3, random_state=0)[0])
    for strategy in ("margin", "entropy"):
        with pytest.raises(ValueError, match="joint=True needs the strategy"):
            model.query(POOL, 3, strategy=strategy, joint=True)


def test_ties():
    model = fitted()
    same = np.repeat(POOL[:1], 30, axis=0)
    assert_array_equal(model.query(same, 4, strategy="entropy"), np.arange(4))
    random = model.query(same, 30, strategy="entropy", random_ties=True)
    assert_array_equal(np.sort(random), np.arange(30))
    assert not np.array_equal(random, np.arange(30))
    again = model.query(same, 30, strategy="entropy", random_ties=True)
    assert_array_equal(random, again)
    distinct = model.query(POOL, 1, strategy="entropy", random_ties=True)
    best = model.acquisition(POOL, strategy="entropy")
    assert best[distinct[0]] == best.max()


def test_blocks_of_rows_change_nothing():
    model, frame = fitted(loss="brier"), pd.DataFrame(POOL)
    whole = model.decompose(POOL, return_se=True)
    scores = [model.acquisition(POOL, strategy=s, n_targets=9) for s in STRATEGIES]
    predicted = model.predict_proba(POOL)
    model._row_bytes = 64 * 2**20 // 3  # blocks of three rows
    for kind in (POOL, frame, pl.from_pandas(frame), POOL.tolist(), csr_array(POOL)):
        assert_array_equal(model.predict_proba(kind), predicted)
    assert_array_equal(model.predict_proba(coo_array(POOL)), predicted)
    parts = model.decompose(POOL, return_se=True)
    assert_allclose(parts.se.reducible, whole.se.reducible, atol=1e-12)
    assert_allclose(parts.reducible, whole.reducible, atol=1e-12)
    for strategy, score in zip(STRATEGIES, scores, strict=True):
        again = model.acquisition(POOL, strategy=strategy, n_targets=9)
        assert_allclose(again, score, atol=1e-12)


def test_standard_errors_and_correction():
    p = member_predictions(fitted().estimator_, POOL)
    model = fitted(bias_correction="jackknife")
    parts = model.decompose(POOL, return_se=True)
    slow = uncertainty_decomposition(p, bias_correction="jackknife", return_se=True)
    assert_allclose(parts.reducible, slow.reducible, atol=1e-13)
    assert_allclose(parts.se.total, slow.se.total, atol=1e-13)
    assert "se" not in model.decompose(POOL)


def test_weights_of_voting():
    pair = [("a", LogisticRegression(max_iter=500)), ("b", GaussianNB())]
    voting = VotingClassifier(pair, voting="soft", weights=[1, 5])
    model = LossUncertaintyClassifier(voting).fit(X, Y)
    assert_allclose(model.predict_proba(X), model.estimator_.predict_proba(X))
    p = member_predictions(model.estimator_, X)
    assert_allclose(
        model.acquisition(X, strategy="bald"), bald(p, weights=[1, 5]), atol=1e-13
    )
    parts = uncertainty_decomposition(p, weights=[1, 5])
    assert_allclose(model.decompose(X).total, parts.total, atol=1e-13)
    assert_allclose(model.uncertainty(X), parts.total, atol=1e-13)


def test_costs_decide():
    model = fitted(loss="cost", cost_matrix=COSTS)
    expected = model.predict_proba(POOL) @ np.transpose(COSTS)
    assert_array_equal(model.predict(POOL), expected.argmin(axis=1))
    assert_allclose(model.uncertainty(POOL), expected.min(axis=1), atol=1e-14)
    assert (model.predict(POOL) != model.predict_proba(POOL).argmax(axis=1)).any()
    assert_array_equal(model.cost_matrix_, COSTS)
    assert fitted().cost_matrix_ is None


@pytest.mark.parametrize(("label", "kind"), [("unsure", "U"), (-1, "O"), (None, None)])
def test_abstention(label, kind):
    costs = np.vstack([1 - np.eye(3), np.full(3, 0.2)])
    model = LossUncertaintyClassifier(
        FOREST, loss="cost", cost_matrix=costs, abstain_label=label
    )
    if label is None:
        with pytest.raises(ValueError, match="abstain_label must say what to predict"):
            model.fit(X, NAMES)
        return
    found = model.fit(X, NAMES).predict(X)
    unsure = model.predict_proba(X).max(axis=1) < 0.8
    assert 0 < unsure.sum() < len(X)
    assert found.dtype.kind == kind
    assert all(one == label for one in found[unsure])
    assert_array_equal(
        found[~unsure].astype(str),
        model.classes_[model.predict_proba(X).argmax(axis=1)][~unsure],
    )


def test_several_abstentions():
    costs = np.vstack([1 - np.eye(3), [0.1, 0.1, 9], [9, 0.1, 0.1]])
    model = fitted(loss="cost", cost_matrix=costs, abstain_label=[7, 8])
    expected = model.predict_proba(X) @ costs.T
    assert_array_equal(model.predict(X), np.array([0, 1, 2, 7, 8])[expected.argmin(1)])
    assert model.predict(X).dtype.kind == "i"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "cost"}, "needs a cost_matrix"),
        ({"cost_matrix": COSTS}, "cost_matrix is for loss='cost' alone"),
        ({"loss": "cost", "cost_matrix": COSTS[:2]}, "cost_matrix must have a column"),
        ({"loss": "cost", "cost_matrix": np.eye(4)}, "each of the 3 classes"),
        (
            {"loss": "cost", "cost_matrix": np.full((3, 3), np.nan)},
            "cost_matrix contai",
        ),
        ({"loss": "cost", "cost_matrix": np.ones((4, 3))}, "abstain_label must say"),
        (
            {"loss": "cost", "cost_matrix": np.ones((4, 3)), "abstain_label": 2},
            "abstain_label must not be a class; got 2",
        ),
        (
            {"loss": "cost", "cost_matrix": np.ones((4, 3)), "abstain_label": [5, 6]},
            "one label for each of the 1 rows",
        ),
        ({"abstain_label": 5}, "abstain_label is for rows"),
        ({"loss": "hinge"}, "'loss' parameter"),
        ({"bias_correction": "bootstrap"}, "'bias_correction' parameter"),
        ({"estimator": 3}, "'estimator' parameter"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter"),
        ({"estimator": ExtraTreesClassifier(max_depth=-1)}, "'max_depth' parameter"),
        ({"estimator": VotingClassifier([("a", GaussianNB())])}, "must be 'soft'"),
    ],
)
def test_bad_parameters(params, message):
    model = fitted().set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    if not message.endswith("' parameter"):  # which scikit-learn checks before fit
        with pytest.raises(NotFittedError):  # of the earlier fit nothing is left
            model.predict(X)


@pytest.mark.parametrize(
    "inner", [HistGradientBoostingClassifier(max_iter=2), GaussianNB()]
)
def test_estimators_without_members_fail_early(inner):
    with pytest.raises(TypeError, match="has no members"):
        LossUncertaintyClassifier(inner).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "best"}, "strategy must be one of"),
        ({"n_targets": 0}, "n_targets must be an integer from 1; got 0"),
        ({"n_targets": 2.5}, "n_targets must be an integer from 1"),
        ({"target_weights": [1.0]}, "target_weights are of the rows of X_target"),
        ({"X_target": POOL[:2], "target_weights": [1.0]}, "target_weights"),
        ({"X_target": POOL[:2], "target_weights": [1.0, -1.0]}, "target_weights"),
        ({"X_target": POOL[:2, :3]}, "3 features"),
    ],
)
def test_bad_queries(options, message):
    for method in (fitted().acquisition, fitted().query):
        with pytest.raises(ValueError, match=message):
            method(POOL, **options)


@pytest.mark.parametrize("n_instances", [0, 41, 1.0, "all"])
def test_bad_n_instances(n_instances):
    with pytest.raises(ValueError, match="n_instances must be an integer from 1"):
        fitted().query(POOL, n_instances)


@pytest.mark.parametrize("method", ["uncertainty", "decompose", "acquisition", "query"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(LossUncertaintyClassifier(), method)(X)


def test_bad_y():
    with pytest.raises(ValueError, match="1d array"):
        LossUncertaintyClassifier().fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="continuous"):
        LossUncertaintyClassifier().fit(X, X[:, 0])


def test_default_estimator():
    model = LossUncertaintyClassifier(random_state=0, n_jobs=2).fit(X, Y)
    trees = ExtraTreesClassifier(100, random_state=0).fit(X, Y)
    assert_allclose(model.predict_proba(POOL), trees.predict_proba(POOL), atol=1e-13)
    assert model.estimator_.n_jobs == 2
    again = clone(model).fit(X, Y)
    assert_array_equal(again.acquisition(POOL), model.acquisition(POOL))


def test_sample_weight_is_passed_only_if_given():
    nearest = KNeighborsClassifier(3)  # takes none
    pair = VotingClassifier([("a", nearest), ("b", nearest)], voting="soft")
    model = LossUncertaintyClassifier(pair).fit(X, Y)
    assert model.score(X, Y) > 0.9
    weight = (Y > 0).astype(float)
    model = LossUncertaintyClassifier(FOREST).fit(X, Y, weight)
    slow = clone(FOREST).fit(X, Y, weight)
    assert_allclose(model.predict_proba(X), slow.predict_proba(X), atol=1e-14)


def test_data_frames():
    frame = pd.DataFrame(X, columns=list("abcd"))
    labels = pd.Series(NAMES).astype("category")
    model = LossUncertaintyClassifier(FOREST).fit(frame, labels)
    assert_array_equal(model.feature_names_in_, list("abcd"))
    assert model.n_features_in_ == 4
    assert_array_equal(model.classes_, np.unique(NAMES))
    p = fitted().predict_proba(X)
    assert_array_equal(model.predict_proba(frame), p)
    polars = clone(model).fit(pl.from_pandas(frame), pl.Series(NAMES))
    assert_array_equal(polars.predict_proba(pl.from_pandas(frame)), p)
    with pytest.raises(ValueError, match="feature names should match"):
        model.query(frame[list("dcba")])


def test_float32_one_row_and_pickle():
    model = fitted()
    narrow = model.predict_proba(X.astype(np.float32))
    assert_array_equal(narrow, model.predict_proba(X))
    assert model.uncertainty(X[:1]).shape == (1,)
    assert_array_equal(model.query(X[:1]), [0])
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.acquisition(POOL), model.acquisition(POOL))


def test_digits_in_a_pipeline():
    X, y = load_digits(return_X_y=True)
    trees = ExtraTreesClassifier(30, random_state=0)
    model = make_pipeline(StandardScaler(), LossUncertaintyClassifier(trees))
    model.fit(X[:900], y[:900])
    known = model.predict(X[900:]) == y[900:]
    assert known.mean() > 0.9
    scaled = model[0].transform(X[900:])
    uncertainty = model[-1].uncertainty(scaled)
    assert uncertainty[~known].mean() > 1.5 * uncertainty[known].mean()
    joint = model[-1].query(scaled[:200], 4, strategy="bald", joint=True)
    assert len(np.unique(joint)) == 4


def test_texts():
    texts = ["cat dog", "cat cat", "sun moon", "moon moon sun"] * 5
    inner = make_pipeline(TfidfVectorizer(), ExtraTreesClassifier(5, random_state=0))
    model = LossUncertaintyClassifier(inner).fit(texts, [0, 0, 1, 1] * 5)
    assert model.score(texts, [0, 0, 1, 1] * 5) == 1
    assert model.query(texts, 2).shape == (2,)


def test_pipeline_and_grid_search():
    X, y = load_breast_cancer(return_X_y=True)
    model = LossUncertaintyClassifier(
        ExtraTreesClassifier(10, random_state=0), loss="brier"
    )
    pipeline = make_pipeline(StandardScaler(), model)
    grid = {"lossuncertaintyclassifier__estimator__max_depth": [1, 8]}
    search = GridSearchCV(pipeline, grid, scoring=make_loss_scorer("brier"), cv=3)
    search.fit(X[:300], y[:300])
    assert list(search.best_params_.values()) == [8]
    assert search.best_estimator_.score(X[300:], y[300:]) > 0.92
    assert member_predictions(search, X[300:]).shape == (269, 10, 2)


@pytest.mark.parametrize("strategy", ["eur", "epig"])
def test_labels_near_the_targets_are_worth_more(strategy):
    rng = np.random.default_rng(0)
    x = np.r_[rng.uniform(0, 1, 30), rng.uniform(10, 11, 30)][:, None]
    forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
    model = LossUncertaintyClassifier(forest, loss="brier", random_state=0)
    model.fit(x, rng.integers(2, size=60))
    near = np.linspace(0, 1, 21)[:, None]
    scores = model.acquisition(np.vstack([near, near + 10]), near, strategy=strategy)
    assert scores[:21].mean() > 2 * scores[21:].mean()
    chosen = model.query(np.vstack([near + 10, near]), 5, near, strategy=strategy)
    assert (chosen >= 21).all()


def test_a_regressor_is_refused():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2
    with pytest.raises(TypeError, match="must be a classifier; got RandomForestReg"):
        LossUncertaintyClassifier(RandomForestRegressor(2)).fit(X, y)


@pytest.mark.parametrize("label", ["ask", -1, np.nan])
@pytest.mark.parametrize("dtype", [int, float, np.uint8])
def test_score_counts_abstentions_of_any_kind_as_errors(label, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(dtype)
    cost = [[0, 1], [1, 0], [0.05, 0.05]]
    model = LossUncertaintyClassifier(
        loss="cost", cost_matrix=cost, abstain_label=label, random_state=0
    ).fit(X[:30], y[:30])
    named = [decision == truth for decision, truth in zip(model.predict(X), y)]
    assert 0 < np.mean(named) < 1
    assert model.score(X, y) == np.mean(named)
    assert model.score(X, y, np.r_[np.ones(30), np.zeros(30)]) == np.mean(named[:30])


def test_the_loss_is_that_of_the_fit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    cost = [[0, 1], [3, 0]]
    model = LossUncertaintyClassifier(loss="cost", cost_matrix=cost, random_state=0)
    before = model.fit(X, y).uncertainty(X + 0.5)
    model.set_params(loss="log_loss")
    assert_array_equal(model.uncertainty(X + 0.5), before)
