"""Progress over the members, through scikit-learn's callback protocol."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.ensemble import RFEnsembleRegressor
from tests.recorder import Recorder

X, Y = load_diabetes(return_X_y=True)
X, Y = X[:120], Y[:120]


def fit(*callbacks, **params):
    params = {"n_members": 4, "n_components": 32, "random_state": 0} | params
    est = RFEnsembleRegressor(**params)
    return est.set_callbacks(*callbacks).fit(X, Y)


@pytest.mark.parametrize("params", [{}, {"n_jobs": 2}, {"solver": "cg", "alpha": 1.0}])
def test_one_task_a_member(params):
    recorder = Recorder()
    est = fit(recorder, **params)
    members = [(event, "member", m) for m in range(4) for event in ("begin", "end")]
    assert recorder.calls == [
        "setup", ("begin", "fit", 0), *members, ("end", "fit", 0), "teardown",
    ]  # fmt: skip
    assert_allclose(recorder.fitted[-1].predict(X), est.predict(X))


def test_infinite_width_is_one_task():
    recorder = Recorder()
    fit(recorder, n_components=np.inf)
    assert recorder.calls.count(("begin", "member", 0)) == 1


def test_callback_can_stop_the_fit():
    for params in ({}, {"n_jobs": 2}, {"feature_map": "fourier"}):
        est = fit(Recorder(stop_after=2), **params)
        expected = RFEnsembleRegressor(
            **(est.get_params() | {"n_members": 2, "n_jobs": None})
        ).fit(X, Y)
        assert est.weights_.shape[0] == 2
        assert_allclose(est.predict(X), expected.predict(X))


def test_scoring_monitor_sees_the_ensemble_so_far():
    monitor = ScoringMonitor(scoring="r2")
    fit(monitor)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "member"]
    for m, row in enumerate(rows, start=1):
        smaller = fit(n_members=m)
        assert_allclose(row["r2"], r2_score(Y, smaller.predict(X)), rtol=1e-10)
    assert len(rows) == 4


def test_scoring_monitor_of_an_alpha_path():
    monitor = ScoringMonitor(scoring="r2")
    fit(monitor, alpha=[0.1, 10.0])
    assert len(monitor.get_logs().data) == 5


def test_progress_bar_shows_the_members(capfd):
    fit(ProgressBar())
    printed = capfd.readouterr().out
    assert "RFEnsembleRegressor - fit" in printed and "100%" in printed


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_bar_inside_a_grid_search(capfd, n_jobs):
    pipeline = make_pipeline(
        StandardScaler(), RFEnsembleRegressor(2, 16, random_state=0)
    )
    search = GridSearchCV(
        pipeline, {"rfensembleregressor__alpha": [0.1, 1.0]}, cv=2, n_jobs=n_jobs
    )
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, Y)
    printed = capfd.readouterr().out
    assert "GridSearchCV" in printed and "RFEnsembleRegressor - fit" in printed


def test_callbacks_inside_a_grid_search():
    recorder = Recorder()
    search = GridSearchCV(
        RFEnsembleRegressor(2, 16, random_state=0), {"alpha": [0.1, 1.0]}, cv=2
    )
    search.set_callbacks(recorder).fit(X, Y)
    assert recorder.calls.count(("begin", "member", 1)) == 2 * 2 + 1
    assert recorder.calls.count("setup") == recorder.calls.count("teardown") == 1


def test_teardown_after_a_failed_fit():
    recorder = Recorder()
    with pytest.raises(ValueError, match="elementwise"):
        fit(recorder, feature_map=lambda z: z.sum())
    assert recorder.calls[-1] == "teardown"
