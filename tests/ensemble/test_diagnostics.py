"""More members or one wider model?"""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.ensemble import (
    EnsembleOrWiderDisplay,
    RFEnsembleRegressor,
    ensemble_or_wider,
    variance_decomposition,
    width_bias,
)
from skextra.ensemble._diagnostics import _compare

matplotlib.use("Agg")
X, Y = load_diabetes(return_X_y=True)
X, Y = X[:150], Y[:150]


def ensemble(**params):
    params = {"n_components": 16, "alpha": 0.5, "random_state": 0} | params
    return RFEnsembleRegressor(**params)


def test_variance_decomposition_is_exact():
    for y in (Y, np.column_stack([Y, Y**2])):
        est = ensemble().fit(X[:100], y[:100])
        parts = variance_decomposition(est, X[100:], y[100:])
        assert_allclose(
            parts.member_mse, parts.ensemble_mse + parts.member_variance, rtol=1e-12
        )
        errors = (est.predict_members(X[100:]) - y[100:]) ** 2
        assert_allclose(parts.member_mse, errors.mean())
    with pytest.raises(
        ValueError, match=r"shape of a prediction, \(50, 2\); got \(50,"
    ):
        variance_decomposition(est, X[100:], Y[100:])
    with pytest.raises(ValueError, match="y must be finite"):
        variance_decomposition(est, X[100:], y[100:] * np.nan)
    for function in (
        lambda e: variance_decomposition(e, X, Y),
        lambda e: width_bias(e, X),
    ):
        with pytest.raises(TypeError, match="fitted RFEnsembleRegressor; got Ridge"):
            function(Ridge().fit(X, Y))
    with pytest.raises(ValueError, match="needs members"):
        variance_decomposition(ensemble(n_components=np.inf).fit(X, Y), X, Y)


def test_width_bias_is_the_difference_from_the_limit():
    est = ensemble(n_members=30).fit(X, Y)
    result = width_bias(est, X[:9])
    members = est.predict_members(X[:9])
    assert_allclose(result.bias, members.mean(axis=0) - est.predict_infinite(X[:9]))
    assert_allclose(result.standard_error, members.std(axis=0, ddof=1) / np.sqrt(30))
    with pytest.raises(ValueError, match="two members or more"):
        width_bias(ensemble(n_members=1).fit(X, Y), X)


def test_comparison_equals_its_definition():
    cv = KFold(3)
    result = ensemble_or_wider(ensemble(), X, Y, budgets=[32, 64], n_repeats=2, cv=cv)
    assert_array_equal(result.budget, [32, 64])
    rng = np.random.RandomState(0)
    for b, budget in enumerate([32, 64]):
        mse = np.empty((2, 2))
        for kind, (members, width) in enumerate([(budget // 16, 16), (1, budget)]):
            for r, seed in enumerate(rng.randint(np.iinfo(np.int32).max, size=2)):
                predictions = np.empty(150)
                for train, test in cv.split(X):
                    est = ensemble(
                        n_members=members, n_components=width, random_state=int(seed)
                    )
                    predictions[test] = est.fit(X[train], Y[train]).predict(X[test])
                mse[kind, r] = np.mean((predictions - Y) ** 2)
        assert_allclose(result.ensemble_mse[b], mse[0].mean())
        assert_allclose(result.single_mse[b], mse[1].mean())
        difference = mse[0] - mse[1]
        assert_allclose(result.standard_error[b], difference.std(ddof=1) / np.sqrt(2))
    total = result.bias2 + result.variance
    assert_allclose(total, [result.ensemble_mse, result.single_mse])


def test_recommendation_in_words():
    truth, noise = np.zeros(50), np.random.RandomState(0).randn(2, 1, 2, 6, 50)
    predictions = 0.01 * noise[0] + 1
    predictions[:, 1] += 1
    said = _compare(np.array([64]), predictions, truth, 16).recommendation
    assert said.startswith("More members. With 64 features in all, the mean squared")
    assert "4 members of 16" in said
    swapped = predictions[:, ::-1]
    said = _compare(np.array([64]), swapped, truth, 16).recommendation
    assert said.startswith("One wider model.")
    said = _compare(np.array([64]), noise[1], truth, 16).recommendation
    assert said.startswith("Either, whichever is cheaper to fit.")
    # the largest budget decides
    both = np.concatenate([predictions, swapped])
    said = _compare(np.array([32, 64]), both, truth, 16).recommendation
    assert said.startswith("One wider model. With 64")


def test_recommendation_takes_a_side_when_it_is_significant():
    truth, rng = np.zeros(1), np.random.RandomState(0)
    noise = rng.randn(1, 2, 20, 1)
    noise -= noise.mean(axis=2, keepdims=True)
    noise /= noise.std(axis=2, ddof=1, keepdims=True) * np.sqrt(2)
    for sigmas, side in ((1.5, "Either"), (3.5, "One wider")):
        squares = 100 + noise  # differences of standard deviation about 1
        squares[:, 0] += sigmas / np.sqrt(20)
        result = _compare(np.array([64]), np.sqrt(squares), truth, 16)
        assert_allclose(result.standard_error, 1 / np.sqrt(20), rtol=0.3)
        mse = squares[0, 0, :, 0]
        assert_allclose(
            result.ensemble_standard_error, mse.std(ddof=1) / np.sqrt(20), rtol=1e-6
        )
        assert result.recommendation.startswith(side)
    constant = np.ones((1, 2, 5, 3))
    constant[:, 0] += 1e-13
    assert _compare(np.array([64]), constant, np.zeros(3), 16).recommendation[0] == "E"


def test_default_budgets_and_other_containers():
    result = ensemble_or_wider(ensemble(n_components=4), X, Y, n_repeats=2, cv=2)
    assert_array_equal(result.budget, [8, 16, 32, 64])
    pipeline = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), ensemble(alpha=[0.1, 1.0])),
        transformer=StandardScaler(),
    )
    cv = ShuffleSplit(2, random_state=0)
    result = ensemble_or_wider(pipeline, X, Y, budgets=[32], n_repeats=2, cv=cv)
    assert 0 < result.single_mse[0] < Y.var()
    rows, targets = load_linnerud(return_X_y=True, as_frame=True)
    result = ensemble_or_wider(ensemble(), rows, targets, budgets=[32], n_repeats=2)
    assert result.bias2.shape == (2, 1)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"est": Ridge()}, "must be or contain an RFEnsembleRegressor; got Ridge"),
        ({"est": ensemble(n_components=np.inf)}, "must have a finite n_components"),
        (
            {"budgets": [40]},
            "positive multiples of the width of a member, n_components=16",
        ),
        ({"budgets": [0, 16]}, "positive multiples"),
        ({"budgets": [16.0]}, "positive multiples"),
        ({"budgets": []}, "positive multiples"),
        ({"n_repeats": 1}, "n_repeats"),
        ({"cv": "five"}, "cv"),
        ({"y": Y[:3]}, "inconsistent numbers"),
    ],
)
def test_comparison_refuses(kwargs, message):
    arguments = {"est": ensemble(), "X": X, "y": Y, "n_repeats": 2, "cv": 2} | kwargs
    with pytest.raises(ValueError, match=message):
        ensemble_or_wider(**arguments)


def test_display():
    import matplotlib.pyplot as plt

    display = EnsembleOrWiderDisplay.from_estimator(
        ensemble(), X, Y, budgets=[32, 64], n_repeats=2, cv=2
    )
    heights = display.lines_[1].lines[0].get_ydata()
    assert_array_equal(heights, display.result.single_mse)
    bars = np.array(display.lines_[0].lines[2][0].get_segments())[:, :, 1]
    length = 4 * display.result.ensemble_standard_error
    assert_allclose(bars[:, 1] - bars[:, 0], length)
    assert display.figure_ is display.ax_.figure
    _, ax = plt.subplots()
    assert EnsembleOrWiderDisplay(display.result).plot(ax=ax).ax_ is ax
    plt.close("all")
