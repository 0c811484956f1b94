"""States of a log by discretizers, and the solver among scikit-learn's tools."""

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from skextra.datasets import make_access_control, make_riverswim, simulate_log
from skextra.mdp import HalpernMDPSolver
from skextra.mdp import _model as model_room
from tests.mdp import reference
from tests.mdp.common import dense_rows

LOG = simulate_log(make_access_control(4), 4000, random_state=0)
COLUMNS = {"actions": LOG.actions, "next_X": LOG.next_X}
RIVER = simulate_log(make_riverswim(), 4000, random_state=0)
RIVER_COLUMNS = {"actions": RIVER.actions, "next_X": RIVER.next_X}


def bins(n, encode="ordinal"):
    return KBinsDiscretizer(
        n, encode=encode, strategy="uniform", quantile_method="averaged_inverted_cdf"
    )


DISCRETIZERS = {
    "clusters": KMeans(6, n_init=1, random_state=0),
    "ordinal": bins(3),
    "onehot": bins(3, "onehot"),
    "dense onehot": bins(3, "onehot-dense"),
    "pipeline": make_pipeline(StandardScaler(), KMeans(5, n_init=1, random_state=0)),
    "binned pipeline": make_pipeline(StandardScaler(), bins(2)),
    "scaler": StandardScaler(),
}


def coded(discretizer, X):
    name = "predict" if hasattr(discretizer, "predict") else "transform"
    codes = getattr(discretizer, name)(X)
    codes = codes.toarray() if hasattr(codes, "toarray") else codes
    return [tuple(np.ravel(code)) for code in codes]


@pytest.mark.parametrize("kind", DISCRETIZERS)
def test_states_are_the_codes(kind):
    """States are the means of the rows of a code, in order of these."""
    discretizer = DISCRETIZERS[kind]
    fitted = sklearn.base.clone(discretizer).fit(LOG.X)
    codes, next_codes = coded(fitted, LOG.X), coded(fitted, LOG.next_X)
    means = {
        code: LOG.X[[c == code for c in codes]].mean(axis=0) for code in set(codes)
    }
    order = sorted(means, key=lambda code: tuple(means[code]))
    number = {code: i for i, code in enumerate(order)}
    mdp = HalpernMDPSolver(discretizer=discretizer).fit(LOG.X, LOG.y, **COLUMNS)
    assert_allclose(mdp.states_, [means[code] for code in order], rtol=1e-12)
    assert 1 < len(order) <= 20
    s, t = ([number[c] for c in found] for found in (codes, next_codes))
    labels, a = np.unique(LOG.actions, return_inverse=True)
    P, R = reference.aggregate_log(s, a, LOG.y, t, len(order), 2)
    assert mdp.restart_prob_ == 0
    assert_allclose(mdp.transition_.toarray(), dense_rows(P), atol=1e-13)
    assert_allclose(mdp.reward_, R, rtol=1e-10)
    assert_array_equal(mdp.predict(LOG.X), mdp.policy_[s])
    assert_array_equal(mdp.predict_value(LOG.next_X), mdp.bias_[t])
    assert_allclose(mdp.gain_, reference.gain_lp(P, R), rtol=0, atol=2e-6)
    assert not hasattr(discretizer, "n_features_in_")  # it is a clone that is fitted


def test_codes_that_are_new():
    """A bin that no row of fit was in: the nearest state by its mean."""
    X = np.array([[0.0], [1], [9], [10], [0], [9]])
    mdp = HalpernMDPSolver(discretizer=bins(10)).fit(X, [0, 1, 2, 3, 0, 2])
    # Bins 0, 1 and 9, of means 0, 1 and 9.33.
    assert_allclose(mdp.states_.ravel(), [0, 1, 28 / 3])
    assert_array_equal(
        mdp.predict_value([[3.0], [7.0], [0.5], [20], [-7]]), mdp.bias_[[1, 2, 0, 2, 0]]
    )


def test_auto():
    """Different rows up to max_states, else five quantile bins a feature."""
    X = np.random.default_rng(0).normal(size=(300, 1))
    assert len(HalpernMDPSolver(max_states=300).fit(X).states_) == 300
    mdp = HalpernMDPSolver(max_states=299).fit(X)
    assert len(mdp.states_) == 5
    order = np.sort(X.ravel()).reshape(5, 60)
    assert_allclose(mdp.states_.ravel(), order.mean(axis=1), rtol=1e-12)
    X = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.raises(ValueError, match=r"cells of five bins .*max_states=50.*KMeans"):
        HalpernMDPSolver(max_states=50).fit(X)
    n_states = len(HalpernMDPSolver(max_states=125).fit(X).states_)
    assert 100 < n_states <= 125


def test_other_estimators_as_discretizers():
    with pytest.raises(ValueError, match="'discretizer' parameter"):
        HalpernMDPSolver(discretizer=AgglomerativeClustering()).fit(LOG.X)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def solver(**params):
    return (
        HalpernMDPSolver(**params)
        .set_fit_request(actions=True, next_X=True)
        .set_score_request(actions=True, next_X=True)
    )


def test_pipeline(routing):
    """Next rows are scaled as the rows are."""
    pipeline = Pipeline(
        [("scale", StandardScaler()), ("solve", solver())],
        transform_input=["next_X"],
    ).fit(LOG.X, LOG.y, **COLUMNS)
    plain = HalpernMDPSolver().fit(LOG.X, LOG.y, **COLUMNS)
    mdp = pipeline[-1]
    assert_allclose(mdp.transition_.toarray(), plain.transition_.toarray(), atol=1e-13)
    assert_allclose(mdp.gain_, plain.gain_, rtol=1e-9)
    assert_array_equal(pipeline.predict(LOG.X), plain.predict(LOG.X))


GRID = {"discretizer": ["auto", bins(2), KMeans(1, n_init=1, random_state=0)]}


def search_of(n_jobs=None):
    return GridSearchCV(
        solver(), GRID, cv=TimeSeriesSplit(3), error_score="raise", n_jobs=n_jobs
    )


def test_grid_search(routing):
    """All six places matter: two halves of the river, or one place, tell less."""
    search = search_of().fit(RIVER.X, RIVER.y, **RIVER_COLUMNS)
    assert search.best_params_ == {"discretizer": "auto"}
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] > scores[1] > scores[2] and scores[0] > 0.4
    assert set(search.predict(RIVER.X)) == {"swim"}
    assert_allclose(
        search.score(RIVER.X, RIVER.y, **RIVER_COLUMNS),
        search.best_estimator_.score(RIVER.X, RIVER.y, **RIVER_COLUMNS),
    )


def test_grid_search_over_a_pipeline(routing):
    """Rows and next rows are scaled, and it makes no difference."""
    # Pipelines do not transform what `score` is given besides X.
    last = solver().set_score_request(next_X=False)
    pipeline = Pipeline(
        [("scale", StandardScaler()), ("solve", last)], transform_input=["next_X"]
    )
    fits = [(last, GRID), (pipeline, {"solve__discretizer": GRID["discretizer"]})]
    plain, search = (
        GridSearchCV(*each, cv=TimeSeriesSplit(3), error_score="raise").fit(
            RIVER.X, RIVER.y, **RIVER_COLUMNS
        )
        for each in fits
    )
    scores = plain.cv_results_["mean_test_score"]
    assert_allclose(search.cv_results_["mean_test_score"], scores, atol=1e-5)
    assert scores[0] > 0.4 and search.best_index_ == plain.best_index_ == 0
    assert set(search.predict(RIVER.X)) == {"swim"}


def frozen_lake_log(n_steps=6000, seed=0):
    """Steps of a lake that isn't slippery, by its table; terminal steps start over."""
    table = FrozenLakeEnv(map_name="4x4", is_slippery=False).P
    rng, s, steps = np.random.default_rng(seed), 0, []
    for _ in range(n_steps):
        a = int(rng.integers(4))
        ((_, t, r, done),) = table[s][a]
        steps.append((s, a, t, float(r), done))
        s = 0 if done else t
    frame = pd.DataFrame(steps, columns=["s", "action", "t", "reward", "terminal"])
    for name in "st":
        frame[f"{name}_row"], frame[f"{name}_column"] = np.divmod(frame[name], 4)
    return frame


def test_a_frame_of_frozen_lake(routing):
    """By row and column; the shortest way to the goal takes six steps."""
    frame = frozen_lake_log()
    X = frame[["s_row", "s_column"]].set_axis(["row", "column"], axis=1)
    next_X = frame[["t_row", "t_column"]].set_axis(["row", "column"], axis=1)
    names = np.array(["left", "down", "right", "up"])[frame["action"]]
    columns = {
        "actions": pd.Series(names),
        "next_X": next_X,
        "terminal": frame["terminal"],
    }
    both = {"actions": True, "next_X": True, "terminal": True}
    mdp = HalpernMDPSolver(tol=1e-9).set_fit_request(**both).set_score_request(**both)
    grid = {"discretizer": ["auto", KMeans(3, n_init=1, random_state=0)]}
    search = GridSearchCV(mdp, grid, cv=3, error_score="raise")
    search.fit(X, frame["reward"], **columns)
    best = search.best_estimator_
    assert best.discretizer == "auto" and list(best.feature_names_in_) == list(
        X.columns
    )
    assert_allclose(best.gain_, 1 / 6, rtol=0, atol=1e-9)
    s, path = 0, []
    table = FrozenLakeEnv(map_name="4x4", is_slippery=False).P
    for _ in range(6):
        place = pd.DataFrame({"row": [s // 4], "column": [s % 4]})
        a = ["left", "down", "right", "up"].index(best.predict(place)[0])
        ((_, s, reward, done),) = table[s][a]
        path.append((reward, done))
    assert path == [(0, False)] * 5 + [(1, True)]
    discounted = HalpernMDPSolver(0.9, tol=1e-9).fit(X, frame["reward"], **columns)
    start = pd.DataFrame({"row": [0], "column": [0]})
    assert_allclose(discounted.predict_value(start), 0.9**5, rtol=0, atol=1e-8)


def test_dask(cluster, routing):
    """Fits of a search can be spread over processes; the threads of a sweep cannot."""
    serial = search_of().fit(LOG.X, LOG.y, **COLUMNS)
    with joblib.parallel_config("dask"):
        spread = search_of().fit(LOG.X, LOG.y, **COLUMNS)
    assert_allclose(
        spread.cv_results_["mean_test_score"], serial.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("backend", ["dask", "loky", "threading"])
def test_sweeps_need_shared_memory(cluster, backend, monkeypatch):
    """Whatever the backend, a sweep in blocks gives the serial result."""
    P, R = reference.frozenlake(8)
    serial = HalpernMDPSolver(solver="rvi").fit_mdp(P, R)
    monkeypatch.setattr(model_room, "LEAST_STATES", 20)
    with joblib.parallel_config(backend):
        mdp = HalpernMDPSolver(solver="rvi", n_jobs=2, tol=1e-2).fit_mdp(P, R)
    assert mdp.n_iter_ > 1
    assert_array_equal(mdp.gain_history_, serial.gain_history_[: mdp.n_iter_])
