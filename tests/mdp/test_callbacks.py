"""Progress of a fit through scikit-learn's callback protocol."""

import warnings

import gymnasium
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.datasets import make_riverswim, simulate_log
from skextra.mdp import HalpernMDPSolver
from tests.mdp import reference
from tests.mdp.common import EXACT_SOLVERS
from tests.recorder import Recorder

P, R = reference.riverswim()
LOG = simulate_log(make_riverswim(), 1000, random_state=0)


def sampler(s, a, size, rng):
    return rng.choice(6, size=size, p=P[a, s])


FITS = {
    "fit": lambda m: m.fit(LOG.X, LOG.y, actions=LOG.actions, next_X=LOG.next_X),
    "fit_mdp": lambda m: m.fit_mdp(P, R),
    "fit_env": lambda m: m.fit_env(gymnasium.make("FrozenLake-v1")),
    "fit_generative": lambda m: m.fit_generative(sampler, 6, 2, R),
}
CASES = [("fit_mdp", {"solver": solver}) for solver in EXACT_SOLVERS]
CASES += [(way, {}) for way in FITS]
CASES += [(way, {"solver": "plug_in"}) for way in FITS]
CASES += [("fit_mdp", {"solver": "savia", "variant": "paper"})]


def make(recorder, **params):
    mdp = HalpernMDPSolver(sample_tol=1.0, random_state=0).set_params(**params)
    return mdp if recorder is None else mdp.set_callbacks(recorder)


@pytest.mark.parametrize(("way", "params"), CASES)
def test_every_iteration_is_a_task(way, params):
    recorder = Recorder()
    mdp = FITS[way](make(recorder, **params))
    n = mdp.n_iter_
    assert n == len(recorder.fitted) > 0
    tasks = [(event, "iteration", i) for i in range(n) for event in ("begin", "end")]
    assert recorder.calls == [
        "setup", ("begin", "fit", 0), *tasks, ("end", "fit", 0), "teardown",
    ]  # fmt: skip
    last = recorder.fitted[-1]
    assert_array_equal(last.q_, mdp.q_)
    assert_array_equal(last.policy_, mdp.policy_)
    assert last.gain_ == mdp.gain_
    # The certified interval gets narrower; only the step that ends the search may
    # certify less for its policy than an earlier one did.
    intervals = np.array([fitted.gain_interval_ for fitted in recorder.fitted])
    assert (np.diff(intervals[:-1, 0]) >= 0).all()
    assert (np.diff(intervals[:, 1]) <= 0).all()
    for i, fitted in enumerate(recorder.fitted):
        assert fitted.n_iter_ == i + 1 == len(fitted.gain_history_)
        assert len(fitted.predict(fitted.states_)) == len(fitted.states_)
    plain = FITS[way](make(None, **params))
    assert_array_equal(plain.q_, mdp.q_)


@pytest.mark.parametrize("way", FITS)
@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_callback_can_stop_the_fit(way, stop_after):
    """Without a warning, and with what has been found so far."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mdp = FITS[way](make(Recorder(stop_after), sample_tol=0.1))
    assert mdp.n_iter_ == stop_after and not mdp.converged_
    low, high = mdp.gain_interval_
    assert low < mdp.gain_ < high
    if way in ("fit_mdp", "fit_generative"):
        assert low <= reference.EXACT_GAINS["riverswim"] <= high
        numbers = [int(a) for a in mdp.policy_]
        assert reference.policy_gain(P, R, numbers).min() >= low


def test_a_stop_does_not_look_into_the_model():
    mdp = make(Recorder(2)).fit_mdp([np.eye(2)], [0.0, 1.0])
    assert_allclose(mdp.gain_interval_, [0, 1], atol=1e-12)


def test_a_callback_that_fails_leaves_nothing():
    class Broken(Recorder):
        def on_fit_task_end(self, *args, **kwargs):
            raise RuntimeError("broken")

    mdp = make(None).fit_mdp(P, R).set_callbacks(Broken())
    with pytest.raises(RuntimeError, match="broken"):
        mdp.fit_mdp(P, R)
    assert not hasattr(mdp, "policy_")


def td_score(estimator, X, y, **columns):
    return estimator.score(X, y, **columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"actions": LOG.actions, "next_X": LOG.next_X},
        {"actions": LOG.actions, "terminal": np.arange(1000) % 10 == 9},
        {},
    ],
    ids=["next_X", "terminal", "none"],
)
@pytest.mark.parametrize("discount", [None, 0.9])
def test_scoring_monitor_sees_the_values_so_far(columns, discount):
    """With all columns of the log, for the score of a step needs its action."""
    monitor, recorder = ScoringMonitor(scoring={"td": td_score}), Recorder()
    mdp = HalpernMDPSolver(discount, solver="rvi").set_callbacks(monitor, recorder)
    mdp.fit(LOG.X, LOG.y, **columns)
    rows = [r for r in monitor.get_logs().data if r["task_name"] == "iteration"]
    scores = [row["td"] for row in rows]
    assert len(scores) == mdp.n_iter_ > 1
    expected = [f.score(LOG.X, LOG.y, **columns) for f in recorder.fitted]
    assert_allclose(scores, expected, rtol=1e-12)
    assert_allclose(scores[-1], mdp.score(LOG.X, LOG.y, **columns), rtol=1e-12)


@pytest.mark.parametrize("way", FITS)
def test_progress_bar(way, capfd):
    FITS[way](make(ProgressBar()))
    printed = capfd.readouterr().out
    assert "HalpernMDPSolver - fit" in printed


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_bar_inside_a_grid_search(capfd, n_jobs, routing):
    mdp = HalpernMDPSolver().set_fit_request(actions=True)
    mdp.set_score_request(actions=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), mdp),
        {"halpernmdpsolver__discount": [None, 0.9]},
        cv=2,
        error_score="raise",
        n_jobs=n_jobs,
    )
    search.set_callbacks(ProgressBar(max_propagation_depth=None))
    search.fit(LOG.X, LOG.y, actions=LOG.actions)
    printed = capfd.readouterr().out
    assert "GridSearchCV" in printed and "HalpernMDPSolver - fit" in printed


def test_callbacks_inside_a_grid_search(routing):
    """Each of four fits and the refit tells of its first iteration."""
    recorder = Recorder()
    mdp = HalpernMDPSolver().set_fit_request(actions=True)
    mdp.set_score_request(actions=True)
    search = GridSearchCV(mdp, {"discount": [None, 0.9]}, cv=2, error_score="raise")
    search.set_callbacks(recorder).fit(LOG.X, LOG.y, actions=LOG.actions)
    assert recorder.calls.count(("begin", "iteration", 0)) == 2 * 2 + 1
    assert recorder.calls.count("setup") == recorder.calls.count("teardown") == 1
