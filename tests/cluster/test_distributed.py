"""Base clusterings spread over processes by joblib's backends."""

import joblib
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.callback import ProgressBar
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_iris

from skextra.cluster import GPEnsembleClustering

X, _ = load_iris(return_X_y=True)


def make(**params):
    return GPEnsembleClustering(3, n_estimators=6, random_state=0).set_params(**params)


def assert_same(model, other):
    assert_array_equal(model.base_labels_, other.base_labels_)
    assert_array_equal(model.labels_, other.labels_)
    assert_array_equal(model.weights_, other.weights_)
    assert_allclose(model.embedding_, other.embedding_)


@pytest.mark.parametrize(
    "params",
    [{}, {"exact_below": 0}, {"base_estimator": AgglomerativeClustering()}],
)
def test_dask_cluster_gives_the_serial_result(cluster, params):
    assert len(cluster.scheduler_info()["workers"]) == 2
    serial = make(**params).fit(X)
    before = dict(cluster.run(lambda dask_worker: len(dask_worker.state.log)))
    with joblib.parallel_config("dask"):
        spread = make(**params).set_callbacks(ProgressBar()).fit(X)
    after = dict(cluster.run(lambda dask_worker: len(dask_worker.state.log)))
    assert sum(after.values()) > sum(before.values())  # the cluster did the work
    assert_same(spread, serial)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_backends_give_the_serial_result(backend):
    # the OpenMP of k-means cannot run in a fork of a process that has run it before
    base = AgglomerativeClustering() if backend == "multiprocessing" else None
    serial = make(base_estimator=base).fit(X)
    with joblib.parallel_config(backend, n_jobs=2):
        assert_same(make(base_estimator=base).fit(X), serial)


@pytest.mark.parametrize("params", [{}, {"exact_below": 0}, {"alpha": "auto"}])
def test_number_of_jobs_does_not_change_the_result(params):
    serial = make(**params).fit(X)
    for n_jobs in (1, 2, 4):
        assert_same(make(n_jobs=n_jobs, **params).fit(X), serial)
