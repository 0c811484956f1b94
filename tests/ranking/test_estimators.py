"""What the three estimators have in common: parameters, data, callbacks."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from skextra.ranking import SoftTopKSelector, SpearmanRegressor, TopKClassifier
from tests.ranking.common import noisy
from tests.recorder import Recorder

IRIS, NOISY = load_iris(return_X_y=True), noisy()
CLASSIFIER, REGRESSOR, SELECTOR = (
    TopKClassifier(2),
    SpearmanRegressor(),
    SoftTopKSelector(2),
)
MODELS = {
    "classifier": (CLASSIFIER, *IRIS),
    "regressor": (REGRESSOR, *NOISY),
    "selector": (SELECTOR, *NOISY),
}
NAMES = ["p", "q", "r", "s"]


@pytest.fixture(params=MODELS)
def case(request):
    """A model and data for it."""
    model, X, y = MODELS[request.param]
    return clone(model), X, y


def point(model):
    """Return the fitted attribute that tells where a search has ended."""
    return model.scores_ if isinstance(model, SoftTopKSelector) else model.coef_


def use(model, X):
    """Return what a fitted model makes of rows."""
    act = model.transform if isinstance(model, SoftTopKSelector) else model.predict
    return act(X)


# ------------------------------------------------------------------------- what is bad

LINES = {"C": [0, np.nan], "max_iter": [0, 1.5], "tol": [-1, np.nan]}
NUMBERS = {
    CLASSIFIER: LINES | {"k": [0, 2.0], "alpha": [0, np.nan]},
    REGRESSOR: LINES | {"alpha": [0, np.inf]},
    SELECTOR: LINES
    | {
        "n_features_to_select": [0, 1.5],
        "loss": ["hinge"],
        "alpha": [0],
        "alpha_final": [np.nan],
        "n_anneal": [0],
    },
}


@pytest.mark.parametrize(
    "model, name, value",
    [
        (model, name, value)
        for model, bad in NUMBERS.items()
        for name, values in bad.items()
        for value in values
    ],
)
def test_bad_parameters(model, name, value):
    message = f"'{name}' parameter of {type(model).__name__} must be"
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(**{name: value}).fit(*IRIS)


@pytest.mark.parametrize(
    "model, params, message",
    [
        (CLASSIFIER, {"k_weights": [1, 2, 3]}, r"shape \(k,\) = \(2,\), got \(3,\)"),
        (CLASSIFIER, {"k_weights": [1, -1]}, "k_weights must not be negative"),
        (CLASSIFIER, {"k_weights": [0, 0]}, "not all 0"),
        (CLASSIFIER, {"k": 3, "k_weights": [0, 0, 1]}, "not all 0 in the first 2"),
        (CLASSIFIER, {"k_weights": [1, np.nan]}, "k_weights contains NaN"),
        (SELECTOR, {"n_features_to_select": 5}, "n_features=4; got 5"),
        (
            SELECTOR,
            {"alpha": 0.1, "alpha_final": 0.2},
            "alpha_final must not be more than alpha",
        ),
    ],
)
def test_parameters_that_do_not_fit(model, params, message):
    with pytest.raises(ValueError, match=message):
        clone(model).set_params(**params).fit(*IRIS)


def test_bad_weights(case):
    model, X, y = case
    n = len(X)
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(X, y, np.zeros(n))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, -np.ones(n))
    for weight in (1e200, 1e-200):
        with pytest.raises(ValueError, match="sample_weight must sum to more than 1e-"):
            model.fit(X, y, np.full(n, weight))


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_columns_of_odd_units(case, kind):
    model, X, y = case
    if kind is csr_array and isinstance(model, SoftTopKSelector):
        with pytest.raises(TypeError, match="[Ss]parse"):
            model.fit(kind(X), y)
        return
    with pytest.raises(ValueError, match="X must hold no value beyond 1e.150 in size"):
        model.fit(kind(X * 1e200), y)
    little = "X must not have columns that vary by less than 1e-150 without being const"
    for unit in (1e-160, 1e-200, 1e-300):
        with pytest.raises(ValueError, match=little):
            model.fit(kind(unit * X), y)
        beside = np.column_stack([X, unit * X[:, 0]])
        with pytest.raises(ValueError, match=little):
            model.fit(kind(beside), y)
    for value in (0.0, 1e-160):  # which is a constant, and no error
        plain = clone(model).fit(kind(np.column_stack([X, np.zeros(len(X))])), y)
        beside = kind(np.column_stack([X, np.full(len(X), value)]))
        assert_array_equal(use(model.fit(beside, y), beside), use(plain, beside))


def test_columns_near_the_least_unit(case):
    model, X, y = case
    model.fit(1e-140 * X, y)
    assert np.isfinite(point(model)).all()
    if isinstance(model, SoftTopKSelector):
        assert_array_equal(model.support_, SoftTopKSelector(2).fit(X, y).support_)


def test_a_failed_refit_leaves_nothing(case):
    model, X, y = case
    model.fit(X, y)
    with pytest.raises(ValueError, match="one class|no order"):
        model.fit(X, np.zeros(len(X)))
    for name in ("coef_", "support_", "scores_", "n_iter_"):
        assert not hasattr(model, name)


# ------------------------------------------------------------------------ what is good


def test_the_same_twice_and_after_pickling(case):
    model, X, y = case
    model.set_params(alpha=np.float32(0.5), max_iter=np.int64(99)).fit(X, y)
    assert_array_equal(point(clone(model).fit(X, y)), point(model))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(use(again, X), use(model, X))
    assert isinstance(model.n_iter_, int) and model.n_iter_ > 1


def test_data_frames(case):
    model, X, y = case
    plain = point(clone(model).fit(X, y))
    frame = pd.DataFrame(X, columns=NAMES)
    assert_array_equal(point(model.fit(frame, pd.Series(y))), plain)
    assert_array_equal(model.feature_names_in_, NAMES)
    nullable = frame.convert_dtypes()
    assert_array_equal(point(model.fit(nullable, list(y))), plain)
    polar = pl.DataFrame(X, schema=NAMES)
    assert_array_equal(point(model.fit(polar, pl.Series(y))), plain)


# --------------------------------------------------------------- warnings and callbacks


def test_warning_of_too_few_iterations(case):
    model, X, y = case
    model.set_params(max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"increase max_iter \(1\)") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__ and len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(tol=10).fit(X, y)


def test_every_iteration_is_a_task(case):
    model, X, y = case
    recorder = Recorder()
    alone = clone(model).fit(X, y)
    model.set_callbacks(recorder).fit(X, y)
    tasks = [
        (event, "iteration", i)
        for i in range(model.n_iter_)
        for event in ("begin", "end")
    ]
    assert recorder.calls == [
        "setup", ("begin", "fit", 0), *tasks, ("end", "fit", 0), "teardown",
    ]  # fmt: skip
    for n_iter, fitted in enumerate(recorder.fitted, start=1):
        assert fitted.n_iter_ == n_iter
        assert len(use(fitted, X)) == len(X)
    assert_array_equal(point(recorder.fitted[-1]), point(model))
    assert_array_equal(point(alone), point(model))


@pytest.mark.parametrize("stop_after", [1, 2, 4])
def test_a_callback_can_stop_the_fit(case, stop_after):
    model, X, y = case
    recorder = Recorder(stop_after)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(tol=1e-9).set_callbacks(recorder).fit(X, y)
    assert model.n_iter_ == len(recorder.fitted) == stop_after
    assert recorder.calls[-2:] == [("end", "fit", 0), "teardown"]
    assert_array_equal(point(recorder.fitted[-1]), point(model))


def test_the_end_of_the_fit_is_told_before_the_warning(case):
    model, X, y = case
    recorder = Recorder()
    model.set_params(max_iter=1, tol=1e-9).set_callbacks(recorder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.fit(X, y)
    assert recorder.calls[-2:] == [("end", "fit", 0), "teardown"]


def test_progress_bar(case, capfd):
    model, X, y = case
    model.set_callbacks(ProgressBar()).fit(X, y)
    assert f"{type(model).__name__} - fit" in capfd.readouterr().out


@pytest.mark.parametrize(
    "name, scoring", [("classifier", "accuracy"), ("regressor", "r2")]
)
def test_scores_of_every_iteration(name, scoring):
    model, X, y = MODELS[name]
    monitor = ScoringMonitor(scoring=scoring)
    model = clone(model).set_callbacks(monitor).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    assert len(rows) == model.n_iter_
    assert rows[-1][scoring] == pytest.approx(model.score(X, y))
