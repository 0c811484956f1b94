"""Members spread over processes by joblib's backends."""

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.callback import ProgressBar
from threadpoolctl import threadpool_info, threadpool_limits

from skextra.ensemble import RFEnsembleRegressor, ensemble_or_wider
from skextra.ensemble._ridge import _scipy_threads

RNG = np.random.RandomState(0)
X, Y = RNG.randn(60, 3), RNG.randn(60)


@pytest.mark.parametrize("params", [{}, {"alpha": [0.1, 1.0]}, {"solver": "cg"}])
def test_dask_cluster_gives_the_serial_result(cluster, params):
    assert len(cluster.scheduler_info()["workers"]) == 2
    est = RFEnsembleRegressor(6, 80, random_state=0).set_params(**params)
    serial = est.fit(X, Y).predict(X)
    before = dict(cluster.run(lambda dask_worker: len(dask_worker.state.log)))
    with joblib.parallel_config("dask"):
        spread = est.set_callbacks(ProgressBar()).fit(X, Y).predict(X)
    after = dict(cluster.run(lambda dask_worker: len(dask_worker.state.log)))
    assert sum(after.values()) > sum(before.values())  # the cluster did the work
    assert_allclose(spread, serial, rtol=1e-7)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_backends_give_the_serial_result(backend):
    est = RFEnsembleRegressor(4, 80, random_state=0)
    serial = est.fit(X, Y).predict(X)
    with joblib.parallel_config(backend, n_jobs=2):
        assert_allclose(est.fit(X, Y).predict(X), serial, rtol=1e-10)


def test_comparison_of_ensembles_in_parallel():
    est = RFEnsembleRegressor(n_components=8, alpha=1.0, random_state=0)
    serial = ensemble_or_wider(est, X, Y, budgets=[16], n_repeats=2, cv=2)
    spread = ensemble_or_wider(
        est.set_params(n_jobs=2), X, Y, budgets=[16], n_repeats=2, cv=2
    )
    assert_array_equal(serial.ensemble_mse, spread.ensemble_mse)


def test_threads_of_blas_are_left_as_they_were():
    with threadpool_limits(2):
        before = [library["num_threads"] for library in threadpool_info()]
        RFEnsembleRegressor(40, 300, alpha=1.0, n_jobs=4, random_state=0).fit(X, Y)
        assert [library["num_threads"] for library in threadpool_info()] == before
        with _scipy_threads(1.0), _scipy_threads(1.0):
            inside = [
                library["num_threads"]
                for library in threadpool_info()
                if "scipy.libs" in library["filepath"]
            ]
        assert set(inside) <= {1}
        assert [library["num_threads"] for library in threadpool_info()] == before
