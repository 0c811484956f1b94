"""Progress over the base clusterings, through scikit-learn's callback protocol."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.cluster import GPEnsembleClustering, ensemble_weights
from tests.cluster.common import planted
from tests.recorder import Recorder

X, Y = load_iris(return_X_y=True)


def fit(*callbacks, **params):
    params = {"n_clusters": 3, "n_estimators": 4, "random_state": 0} | params
    return GPEnsembleClustering(**params).set_callbacks(*callbacks).fit(X, Y)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"n_jobs": 2},
        {"consensus": "average"},
        {"base_estimator": AgglomerativeClustering()},
        {"base_estimator": [KMeans(k, n_init=1) for k in (3, 4, 5, 6)]},
    ],
)
def test_one_task_a_clustering(params):
    recorder = Recorder()
    model = fit(recorder, **params)
    tasks = [(event, "clustering", t) for t in range(4) for event in ("begin", "end")]
    assert recorder.calls == [
        "setup", ("begin", "fit", 0), *tasks, ("end", "fit", 0), "teardown",
    ]  # fmt: skip
    assert_array_equal(recorder.fitted[-1].labels_, model.labels_)
    for t, fitted in enumerate(recorder.fitted, start=1):
        assert_array_equal(fitted.base_labels_, model.base_labels_[:, :t])


def test_label_input_is_one_task():
    recorder = Recorder()
    labels, _ = planted()
    model = GPEnsembleClustering(3, input="labels", random_state=0)
    model.set_callbacks(recorder).fit(labels)
    assert recorder.calls == [
        "setup", ("begin", "fit", 0), ("end", "fit", 0), "teardown",
    ]  # fmt: skip


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("stop_after", [1, 2, 4])
def test_callback_can_stop_the_fit(n_jobs, stop_after):
    model = fit(Recorder(stop_after=stop_after), n_jobs=n_jobs)
    whole = fit()
    assert len(model.estimators_) == len(model.weights_) == stop_after
    assert_array_equal(model.base_labels_, whole.base_labels_[:, :stop_after])
    assert_array_equal(model.predict(X), model.labels_)
    if stop_after > 1:
        weights, _ = ensemble_weights(model.base_labels_)
        assert_allclose(model.weights_, weights)
    else:
        assert_array_equal(model.weights_, [1])


def test_scoring_monitor_sees_the_ensemble_so_far():
    monitor, recorder = ScoringMonitor(scoring="adjusted_rand_score"), Recorder()
    model = fit(monitor, recorder)
    rows = monitor.get_logs().data
    rows = [row for row in rows if row["task_name"] == "clustering"]
    scores = [row["adjusted_rand_score"] for row in rows]
    expected = [adjusted_rand_score(Y, f.predict(X)) for f in recorder.fitted]
    assert len(scores) == 4
    assert_allclose(scores, expected)
    assert_allclose(scores[-1], adjusted_rand_score(Y, model.labels_))


def test_progress_bar_shows_the_clusterings(capfd):
    fit(ProgressBar())
    printed = capfd.readouterr().out
    assert "GPEnsembleClustering - fit" in printed and "100%" in printed


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_bar_inside_a_grid_search(capfd, n_jobs):
    model = GPEnsembleClustering(3, n_estimators=3, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"gpensembleclustering__alpha": [0.3, 0.6]},
        scoring="adjusted_rand_score",
        cv=2,
        n_jobs=n_jobs,
    )
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(X, Y)
    printed = capfd.readouterr().out
    assert "GridSearchCV" in printed and "GPEnsembleClustering - fit" in printed


def test_callbacks_inside_a_grid_search():
    recorder = Recorder()
    search = GridSearchCV(
        GPEnsembleClustering(3, n_estimators=2, random_state=0),
        {"alpha": [0.3, 0.6]},
        scoring="adjusted_rand_score",
        cv=2,
    )
    search.set_callbacks(recorder).fit(X, Y)
    assert recorder.calls.count(("begin", "clustering", 1)) == 2 * 2 + 1
    assert recorder.calls.count("setup") == recorder.calls.count("teardown") == 1


def test_teardown_after_a_failed_fit():
    recorder = Recorder()
    with pytest.raises(ValueError, match="n_init"):
        fit(recorder, base_estimator=[KMeans(3), KMeans(3, n_init=0)])
    assert recorder.calls[0] == "setup" and recorder.calls[-1] == "teardown"
    with pytest.raises(ValueError, match="k_range"):
        fit(recorder, k_range=(1, 2))
    assert recorder.calls.count("setup") == recorder.calls.count("teardown")


def test_clusterings_too_coarse_at_first():
    """The first clusterings may not tell as many groups apart as the consensus has."""
    coarse = [KMeans(2, n_init=1, random_state=0), KMeans(6, n_init=1, random_state=0)]
    model = fit(base_estimator=coarse)
    recorder = Recorder()
    again = fit(recorder, base_estimator=coarse)
    assert_array_equal(again.labels_, model.labels_)
    assert np.unique(model.labels_).size == 3


def test_rows_without_a_label_at_first():
    noisy = [DBSCAN(eps=0.4), KMeans(3, n_init=1), KMeans(5, n_init=1)]
    recorder = Recorder()
    model = fit(recorder, base_estimator=noisy)
    assert np.any(model.base_labels_[:, 0] < 0)
    assert_array_equal(model.labels_, fit(base_estimator=noisy).labels_)
