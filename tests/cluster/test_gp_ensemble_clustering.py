"""The estimator as its users meet it: inputs, parameters, state, errors."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from skextra.cluster import (
    GPEnsembleClustering,
    consensus_labels,
    ensemble_bias_diversity,
    ensemble_weights,
)
from tests.cluster.common import first_seen, planted

X, Y = make_blobs(90, centers=3, cluster_std=0.6, random_state=3)
IRIS, SPECIES = load_iris(return_X_y=True)
LABELS, GROUPS = planted(n=60, m=8, k=3, noise=0.2, missing=0.15)
CONSENSUS = pytest.mark.parametrize("consensus", ["spectral", "average"])
INPUT = pytest.mark.parametrize("input", ["features", "labels"])


def make(**params):
    params = {"n_clusters": 3, "n_estimators": 5, "random_state": 0} | params
    return GPEnsembleClustering(**params)


def data(input):
    return X if input == "features" else LABELS


def assert_same(model, other):
    assert vars(model).keys() == vars(other).keys()
    for name in ("labels_", "weights_", "base_labels_", "embedding_", "stability_"):
        assert_array_equal(getattr(model, name), getattr(other, name))


# Rows seen and new ones


@CONSENSUS
@INPUT
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"weighting": "uniform"},
        {"weighting": "minmax", "target": "hard"},
        {"cluster_weighting": "entropy", "alpha": "auto"},
        {"exact_below": 0, "n_pairs": 500},
    ],
)
def test_predict_and_transform_repeat_the_fit(consensus, input, params):
    X = data(input)
    model = make(consensus=consensus, input=input, **params).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.transform(X), model.embedding_)
    assert model.labels_.dtype == model.base_labels_.dtype == np.int32
    assert model.predict(X).dtype == np.int32
    assert model.embedding_.shape == (len(X), 3)
    rows = [model.predict(row[None])[0] for row in X]
    assert_array_equal(rows, model.labels_)
    rows = np.vstack([model.transform(row[None]) for row in X])
    assert_array_equal(rows, model.embedding_)
    order = np.random.default_rng(0).permutation(len(X))[:40]
    assert_array_equal(model.predict(X[order]), model.labels_[order])
    again = clone(model)
    assert_array_equal(again.fit_predict(X), model.labels_)
    assert_array_equal(again.fit_transform(X), model.embedding_)


@CONSENSUS
def test_new_rows_go_to_the_nearest_group(consensus):
    model = make(consensus=consensus).fit(X)
    new, y = make_blobs(
        500, centers=[X[Y == c].mean(axis=0) for c in range(3)], random_state=1
    )
    found = model.predict(new)
    assert adjusted_rand_score(y, found) > 0.95
    norms = np.linalg.norm(model.transform(new), axis=1, ord=2 - (consensus[0] == "a"))
    assert_allclose(norms, 1)


@CONSENSUS
def test_labels_not_seen_count_as_missing(consensus):
    model = make(input="labels", consensus=consensus).fit(LABELS)
    new = LABELS.copy()
    assert np.all(model.weights_ > 0)
    new[:, :3] = -1
    strange = new.copy()
    strange[:, :3] = [77, 10**15, 3]
    keep = (new >= 0).any(axis=1)
    assert_array_equal(model.predict(strange[keep]), model.predict(new[keep]))
    assert_array_equal(model.transform(strange[keep]), model.transform(new[keep]))
    lost = LABELS[:5].copy()
    lost[1], lost[3] = 99, -1
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match=r"no label that fit has seen.*: 1, 3\."):
            method(lost)


def test_rows_of_clusterings_without_weight():
    labels = np.column_stack([GROUPS, GROUPS, GROUPS, np.arange(60) % 2])
    model = make(input="labels", diversity=0).fit(labels)
    assert_allclose(model.weights_, [1 / 3, 1 / 3, 1 / 3, 0])
    assert model.predict([[-1, -1, 8, 1]]) in model.labels_[labels[:, 3] == 1]
    with pytest.raises(ValueError, match=r"no label that fit has seen: 0\."):
        model.predict([[-1, -1, 8, 2]])
    labels[5, :3] = -1  # now seen only there
    model.fit(labels)
    assert model.weights_[3] == 0
    assert_array_equal(model.predict(labels), model.labels_)
    known = np.arange(60) != 5
    assert adjusted_rand_score(GROUPS[known], model.labels_[known]) == 1


# Attributes


@INPUT
def test_attributes_agree_with_the_functions(input):
    model = make(input=input).fit(data(input))
    weights, info = ensemble_weights(model.base_labels_)
    assert_allclose(model.weights_, weights)
    assert_allclose(model.bias_, info.bias)
    assert_allclose(model.diversity_, info.diversity)
    assert_allclose(model.objective_, info.objective)
    assert model.alpha_ == info.alpha == 0.6 and model.n_iter_ == info.n_iter
    found = ensemble_bias_diversity(model.base_labels_, weights)
    assert_allclose(found.objective, model.objective_)
    labels = consensus_labels(model.base_labels_, 3, weights, random_state=0)
    assert_array_equal(first_seen(labels), first_seen(model.labels_))
    assert model.eigenvalues_.shape == (3,)
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    assert model.stability_.min() >= 0 and model.stability_.max() <= 1
    assert hasattr(model, "estimators_") == (input == "features")
    assert not hasattr(model, "linkage_labels_")
    assert model.n_features_in_ == data(input).shape[1]
    for t, column in enumerate(model.base_labels_.T):
        there = column[column >= 0]
        assert_array_equal(np.unique(there), np.arange(model.n_base_clusters_[t]))
    if input == "labels":
        assert_array_equal(model.base_labels_ < 0, LABELS < 0)


def test_attributes_that_only_some_settings_have():
    model = make(weighting="uniform").fit(X)
    assert_array_equal(model.weights_, np.full(5, 0.2))
    assert model.n_iter_ == 0
    for name in ("bias_", "diversity_", "objective_", "alpha_"):
        assert not hasattr(model, name)
    model.set_params(consensus="average", weighting="minmax").fit(X)
    assert not hasattr(model, "eigenvalues_")
    assert model.linkage_labels_.dtype == np.int32
    assert np.isfinite(model.objective_)
    model.set_params(input="labels", consensus="spectral").fit(LABELS)
    assert not hasattr(model, "estimators_") and not hasattr(model, "linkage_labels_")


def test_digits():
    X, y = load_digits(return_X_y=True)
    with threadpool_limits(1):  # threads of k-means wait for each other on few cores
        model = make(n_clusters=10, n_estimators=20).fit(X)
        single = [
            normalized_mutual_info_score(
                y, KMeans(10, n_init=1, random_state=seed).fit_predict(X)
            )
            for seed in range(10)
        ]
    ours = normalized_mutual_info_score(y, model.labels_)
    assert ours >= np.mean(single) + 0.03


# Kinds of input


@CONSENSUS
def test_single_precision_is_kept(consensus):
    single = X.astype(np.float32)
    model = make(consensus=consensus).fit(single)
    assert model.embedding_.dtype == model.transform(single).dtype == np.float32
    assert_array_equal(model.transform(single), model.embedding_)
    assert_array_equal(model.predict(single), model.labels_)
    assert model.transform(X).dtype == np.float64
    assert adjusted_rand_score(make(consensus=consensus).fit(X).labels_,
                               model.labels_) == 1  # fmt: skip
    ints = make().fit((10 * X).astype(int))
    assert ints.embedding_.dtype == np.float64


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_of_features(frame):
    names = ["a", "b"]
    table = frame(dict(zip(names, X.T)))
    model = make().fit(table)
    plain = make().fit(X)
    assert model.feature_names_in_.tolist() == names
    assert_array_equal(model.labels_, plain.labels_)
    assert_array_equal(model.predict(table), plain.labels_)
    assert_array_equal(model.transform(table), plain.embedding_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(dict(zip("ba", X.T))))


def test_frames_of_labels():
    names = [f"run{t}" for t in range(8)]
    with_nan = np.where(LABELS < 0, np.nan, LABELS)
    holes = [[None if label < 0 else int(label) for label in c] for c in LABELS.T]
    plain = make(input="labels").fit(LABELS)
    for table in (
        pd.DataFrame(with_nan, columns=names),
        pd.DataFrame({n: pd.array(c, "Int64") for n, c in zip(names, holes)}),
        pl.DataFrame(dict(zip(names, holes))),
        pl.DataFrame(dict(zip(names, with_nan.T))),
    ):
        model = make(input="labels").fit(table)
        assert_array_equal(model.labels_, plain.labels_)
        assert_array_equal(model.base_labels_, plain.base_labels_)
        assert_array_equal(model.predict(table), plain.labels_)
        assert_array_equal(model.transform(table[:7]), plain.embedding_[:7])
        assert model.feature_names_in_.tolist() == names


def test_sparse_features():
    dense = np.maximum(X - X.mean(axis=0), 0)
    sparse = csr_array(dense)
    full = csr_array(np.ones_like(dense))
    full.data = dense.ravel().copy()
    assert full.nnz > sparse.nnz
    model = make().fit(sparse)
    for other in (csr_matrix(dense), coo_array(dense), full):
        again = make().fit(other)
        assert_array_equal(again.labels_, model.labels_)
        assert_array_equal(model.predict(other), model.labels_)
        assert_array_equal(model.transform(other), model.embedding_)
    assert adjusted_rand_score(make().fit(dense).labels_, model.labels_) > 0.9
    assert_array_equal(model.predict(dense), model.labels_)
    assert model.fit(sparse.astype(np.float32)).embedding_.dtype == np.float32
    few = csr_array(np.repeat(np.eye(3), 5, axis=0))
    with pytest.raises(ValueError, match="n_clusters=4 is more than the 3 distinct"):
        make(n_clusters=4).fit(few)


@INPUT
@pytest.mark.parametrize(
    ("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)]
)
def test_set_output(input, kind, frame):
    model = make(input=input).set_output(transform=kind)
    found = model.fit_transform(data(input))
    assert isinstance(found, frame)
    names = [f"gpensembleclustering{j}" for j in range(3)]
    assert list(found.columns) == names == list(model.get_feature_names_out())
    assert_array_equal(model.transform(data(input)).to_numpy(), model.embedding_)


# State


@CONSENSUS
@INPUT
def test_pickle_and_clone(consensus, input, tmp_path):
    model = make(input=input, consensus=consensus).fit(data(input))
    joblib.dump(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        assert_same(copy, model)
        assert_array_equal(copy.predict(data(input)), model.labels_)
    fresh = clone(model)
    assert not hasattr(fresh, "labels_")
    assert_same(fresh.fit(data(input)), model)


@INPUT
def test_random_state(input):
    first, second = (make(input=input).fit(data(input)) for _ in range(2))
    assert_same(first, second)
    first, second = (
        make(input=input, random_state=np.random.RandomState(1)).fit(data(input))
        for _ in range(2)
    )
    assert_same(first, second)
    state = np.random.RandomState(1)
    model = make(random_state=state, n_estimators=3)
    a, b = model.fit(X).base_labels_, model.fit(X).base_labels_
    assert a.shape == b.shape and not np.array_equal(a, b)
    before = check_random_state(None).get_state()[1].copy()
    make().fit(X)
    assert_array_equal(check_random_state(None).get_state()[1], before)
    assert_array_equal(
        first_seen(make(random_state=None).fit(X).labels_), first_seen(Y)
    )


@INPUT
def test_parameters_set_after_fit_do_not_change_predictions(input):
    model = make(input=input).fit(data(input))
    embedding = model.embedding_
    other = "labels" if input == "features" else "features"
    for params in (
        {"n_clusters": 7, "n_estimators": 2, "k_range": (2, 2), "random_state": 5},
        {"consensus": "average", "weighting": "uniform", "alpha": 1.0},
        {"cluster_weighting": "entropy", "target": "hard", "diversity": 0},
        {"input": other},
        {"base_estimator": KMeans(2)},
        {"base_estimator": AgglomerativeClustering()},
    ):
        copy = pickle.loads(pickle.dumps(model)).set_params(**params)
        assert_array_equal(copy.predict(data(input)), model.labels_)
        assert_array_equal(copy.transform(data(input)), embedding)
        assert len(copy.get_feature_names_out()) == 3


def test_inputs_are_not_changed():
    features, labels = X.copy(), np.where(LABELS < 0, np.nan, LABELS)
    for values, input in ((features, "features"), (labels, "labels")):
        before = values.copy()
        values.flags.writeable = False
        model = make(input=input).fit(values)
        model.predict(values)
        assert_array_equal(values, before)


@pytest.mark.parametrize(
    ("input", "X_bad", "params"),
    [
        ("features", X, {"n_clusters": 91}),
        ("features", X, {"k_range": (1, 3)}),
        ("features", X, {"base_estimator": DBSCAN()}),
        ("features", X, {"base_estimator": [KMeans(2), KMeans(2, n_init=-1)]}),
        ("labels", LABELS, {"n_clusters": 61}),
        ("labels", np.vstack([LABELS, np.full(8, -1)]), {}),
        ("labels", LABELS[:, :6] + 0.5, {}),
    ],
)
def test_failed_fit_leaves_no_earlier_fit(input, X_bad, params):
    model = make(input=input).fit(data(input))
    with pytest.raises(ValueError):
        model.set_params(**params).fit(X_bad)
    model.set_params(**make(input=input).get_params())
    for method in (model.predict, model.transform):
        with pytest.raises(NotFittedError):
            method(data(input))
    assert_array_equal(model.fit(data(input)).predict(data(input)), model.labels_)


def test_not_fitted():
    for name in ("predict", "transform", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(make(), name)(*([] if name[0] == "g" else [X]))


# In the company of scikit-learn


def test_search_in_a_pipeline():
    model = make_pipeline(StandardScaler(), make())
    grid = {
        "gpensembleclustering__alpha": [0.3, 0.7],
        "gpensembleclustering__consensus": ["spectral", "average"],
    }
    search = GridSearchCV(model, grid, scoring="adjusted_rand_score", cv=3)
    search.fit(IRIS, SPECIES)
    assert search.best_score_ > 0.4
    assert_array_equal(search.predict(IRIS), search.best_estimator_[-1].labels_)
    assert search.transform(IRIS).shape == (150, 3)


def test_search_on_digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    search = GridSearchCV(
        make(n_clusters=5),
        {"cluster_weighting": [None, "entropy"]},
        scoring="normalized_mutual_info_score",
        cv=2,
    )
    search.fit(X[::2], y[::2])
    assert search.best_score_ > 0.7
    assert normalized_mutual_info_score(y[1::2], search.predict(X[1::2])) > 0.7


def test_checks_of_label_input():
    """The data of two checks are not labels."""
    done = check_estimator(GPEnsembleClustering(2, input="labels"), on_fail=None)
    failed = {
        check["check_name"]: str(check["exception"])
        for check in done
        if check["status"] == "failed"
    }
    assert failed.keys() == {
        "check_clustering", "check_positive_only_tag_during_fit",
    }  # fmt: skip
    assert "labels must be integers" in failed["check_clustering"]
    assert failed["check_positive_only_tag_during_fit"]
    assert sum(check["status"] == "passed" for check in done) > 40


# Errors and warnings


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "'n_clusters' parameter"),
        ({"n_clusters": 2.0}, "'n_clusters' parameter"),
        ({"n_clusters": 91}, "n_clusters=91 is more than the 90 distinct rows"),
        ({"n_estimators": 1}, "'n_estimators' parameter"),
        ({"base_estimator": 5}, "'base_estimator' parameter"),
        ({"k_range": 4}, "k_range"),
        ({"k_range": "ab"}, "k_range"),
        ({"k_range": (1, 5)}, "k_range must be two integers, 2 <= low .*=90"),
        ({"k_range": (2, 91)}, "k_range must be two integers"),
        ({"k_range": (5, 4)}, "k_range must be two integers"),
        ({"k_range": (2, 4.0)}, "k_range must be two integers"),
        ({"k_range": (2, 4, 6)}, "k_range must be two integers"),
        ({"k_range": [3]}, "k_range must be two integers"),
        ({"input": "text"}, "'input' parameter"),
        ({"weighting": None}, "'weighting' parameter"),
        ({"alpha": 0}, "'alpha' parameter"),
        ({"alpha": 1.1}, "'alpha' parameter"),
        ({"alpha": "most"}, "'alpha' parameter"),
        ({"diversity": -1}, "'diversity' parameter"),
        ({"target": "firm"}, "'target' parameter"),
        ({"cluster_weighting": "size"}, "'cluster_weighting' parameter"),
        ({"consensus": "ward"}, "'consensus' parameter"),
        ({"exact_below": -1}, "'exact_below' parameter"),
        ({"n_pairs": 0}, "'n_pairs' parameter"),
        ({"n_init": 0}, "'n_init' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"tol": -1.0}, "'tol' parameter"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter"),
        ({"random_state": "x"}, "'random_state' parameter"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        make(**params).fit(X)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS + 0.5, "labels must be integers"),
        (np.where(LABELS == 1, np.inf, LABELS), "inf"),
        (LABELS[:, :1], "minimum of 2"),
        (LABELS[:1], "minimum of 2"),
        (np.vstack([LABELS, [-1] * 8]), "none in rows 60"),
        (np.column_stack([LABELS, [-1] * 60]), "none in columns 8"),
        (np.repeat([[0, 1], [1, 0]], 4, axis=0), "n_clusters=3 is more than the 2"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        make(input="labels").fit(labels)


def test_sparse_labels():
    with pytest.raises(TypeError, match="(?i)sparse"):
        make(input="labels").fit(csr_array(np.maximum(LABELS, 0)))


@INPUT
def test_other_columns_than_in_fit(input):
    model = make(input=input).fit(data(input))
    for wrong in (data(input)[:, :-1], np.repeat(data(input), 2, axis=1)):
        for method in (model.predict, model.transform):
            with pytest.raises(ValueError, match="features"):
                method(wrong)


def test_labels_to_predict_are_integers():
    model = make(input="labels").fit(LABELS)
    with pytest.raises(ValueError, match="labels must be integers"):
        model.predict(LABELS + 0.5)
    with pytest.raises(ValueError, match="NaN"):
        make().fit(X).predict(X * np.nan)


def test_warning_of_too_few_iterations():
    rng = np.random.default_rng(0)
    noisy = rng.random((90, 40)) < np.linspace(0, 1, 40)
    labels = np.where(
        noisy, rng.integers(9, size=(90, 40)), (np.arange(90) % 3)[:, None]
    )
    model = make(input="labels", max_iter=1)
    with pytest.warns(
        ConvergenceWarning, match="after 1 iterations.* tol=1e-08"
    ) as caught:
        model.fit(labels)
    assert {warning.filename for warning in caught} == {__file__}
    assert model.n_iter_ == 1
