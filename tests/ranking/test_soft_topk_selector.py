"""The selector against its objective, written out, and on data with known columns."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_friedman1,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.ranking import SoftTopKSelector
from skextra.ranking._gates import (
    gated_objective,
    log_loss,
    squared_error,
)
from tests.ranking.reference import cdf
from tests.recorder import Recorder

CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
DIGITS = load_digits(return_X_y=True)


def linear(n=100, d=12, seed=0, noise=0.5):
    """Data of which columns 1, 4 and 7 matter, and all are correlated."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    y = X[:, 1] - X[:, 4] + X[:, 7] + noise * rng.normal(size=n)
    return X, y


def slow_gates(theta, k, alpha):
    def excess(t):
        return cdf((theta - t) / alpha).sum() - k

    far = 50 * alpha
    t = brentq(excess, theta.min() - far, theta.max() + far, xtol=1e-15)
    return cdf((theta - t) / alpha)


@pytest.mark.parametrize("loss", [squared_error, log_loss])
def test_value_and_gradient_of_the_objective(loss):
    rng = np.random.default_rng(0)
    columns, share = rng.normal(size=(40, 5)), rng.dirichlet(np.ones(40))
    target = np.eye(3)[rng.integers(3, size=40)]
    x = rng.normal(size=5 + 3 * 6)
    objective = partial(gated_objective, loss, columns, target, share, 2, 0.3, 0.07)
    value, gradient = objective(x)

    theta, W, b = x[:5], x[5:-3].reshape(5, 3), x[-3:]
    Z = (columns * slow_gates(theta, 2, 0.3)) @ W + b
    if loss is squared_error:
        losses = ((Z - target) ** 2).sum(axis=1) / 2
    else:
        losses = -(target * log_softmax(Z, axis=1)).sum(axis=1)
    slow = share @ losses + 0.07 / 2 * (W**2).sum()
    assert value == pytest.approx(slow, rel=1e-12)
    steps = 1e-6 * np.eye(len(x))
    central = [(objective(x + h)[0] - objective(x - h)[0]) / 2e-6 for h in steps]
    assert_allclose(gradient, central, atol=1e-8)


def test_the_end_is_a_minimum_that_gates_have_decided():
    X, y = linear()
    model = SoftTopKSelector(3, tol=1e-8, max_iter=10_000).fit(X, y)
    assert_array_equal(model.get_support(indices=True), [1, 4, 7])
    assert_allclose(model.gate_, model.support_, atol=1e-6)
    assert_allclose(model.gate_.sum(), 3)
    assert_allclose(model.gate_, slow_gates(model.scores_, 3, 0.01), atol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_no_single_exchange_is_much_better(k, seed):
    """Selected columns fit about as well as any set that differs by one of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 10)) + 0.5 * rng.normal(size=(150, 1))
    y = X @ rng.normal(size=10) + rng.normal(size=150)
    chosen = SoftTopKSelector(k).fit(X, y).get_support(indices=True)

    def fit(columns):
        X_k = X[:, columns]
        return LinearRegression().fit(X_k, y).score(X_k, y)

    others = [
        fit([*np.delete(chosen, i), j])
        for i in range(k)
        for j in set(range(10)) - set(chosen)
    ]
    assert fit(chosen) > max(others) - 0.06


def test_recovery_of_friedman():
    """A line sees four of the five columns: the third goes down and up again."""
    found = []
    for seed in range(5):
        X, y = make_friedman1(300, 50, noise=1.0, random_state=seed)
        found.append(SoftTopKSelector(5).fit(X, y).support_[:5])
    assert_array_equal(np.mean(found, axis=0)[[0, 1, 3, 4]], 1)


def test_columns_are_chosen_together():
    """Copies of the best column do not take the places of columns that add to it."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(400, 3))
    copies = Z[:, :1] + 0.1 * rng.normal(size=(400, 4))
    X = np.column_stack([Z, copies, rng.normal(size=(400, 8))])
    y = 3 * Z[:, 0] + Z[:, 1] + Z[:, 2] + 0.1 * rng.normal(size=400)
    assert_array_equal(
        SoftTopKSelector(3).fit(X, y).get_support(indices=True), range(3)
    )
    best = SelectKBest(f_regression, k=3).fit(X, y).get_support()
    assert not best[1] and not best[2]


@pytest.mark.parametrize("data, k", [(CANCER, 3), (DIGITS, 10)])
def test_accuracy_with_few_columns(data, k):
    X, y = data[0][:700], data[1][:700]
    X = X[:, X.std(axis=0) > 0.5] if data is DIGITS else X

    def accuracy(selector):
        model = make_pipeline(
            StandardScaler(), selector, LogisticRegression(max_iter=1000)
        )
        return cross_val_score(model, X, y, cv=3).mean()

    assert accuracy(SoftTopKSelector(k)) > accuracy(SelectKBest(k=k))


def test_loss_that_auto_takes():
    X, y = DIABETES
    numbers = SoftTopKSelector(3, loss="squared_error").fit(X, y)
    assert_array_equal(SoftTopKSelector(3).fit(X, y).scores_, numbers.scores_)
    X, y = DIGITS[0][:200], DIGITS[1][:200] % 3
    classes = SoftTopKSelector(5, loss="log_loss").fit(X, y)
    for labels in (y, y.astype(str), pd.Series(y, dtype="category")):
        assert_array_equal(SoftTopKSelector(5).fit(X, labels).scores_, classes.scores_)
    # Two values are classes, also as floating-point numbers.
    two = SoftTopKSelector(5, loss="log_loss").fit(X, y == 0)
    as_floats = SoftTopKSelector(5).fit(X, (y == 0).astype(float))
    assert_array_equal(as_floats.scores_, two.scores_)


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "string", "category"])
def test_classes_of_any_dtype(dtype):
    """Validation turns nullable integers into floats, which are classes all the same."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 8))
    y = np.argmax(X[:, :4] + 0.5 * rng.normal(size=(300, 4)), axis=1)
    y = np.array([2, 0, 3, 1])[y]
    expected = SoftTopKSelector(4).fit(X, y)
    assert_array_equal(expected.get_support(indices=True), range(4))
    found = SoftTopKSelector(4).fit(X, pd.Series(y).astype(dtype))
    assert_array_equal(found.scores_, expected.scores_)


@pytest.mark.parametrize("dtype", [float, np.float32, "Float64"])
def test_numbers_of_any_dtype(dtype):
    """Floats of more than two values, or not all whole, are numbers."""
    X, y = linear()
    for values in (np.round(y), np.where(y > 0, 0.5, 1.5), np.where(y > 0, 2, 0.5)):
        expected = SoftTopKSelector(3, loss="squared_error").fit(X, values)
        for given in (pd.Series(values).astype(dtype), values.astype(float).tolist()):
            found = SoftTopKSelector(3).fit(X, given)
            assert_array_equal(found.scores_, expected.scores_)


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_integer_weights_are_repeated_rows_and_zeros_are_left_out(loss):
    X, y = linear()
    y = y if loss == "squared_error" else np.digitize(y, [-1, 1])
    weight = np.random.default_rng(3).integers(0, 4, len(X))
    params = {"loss": loss, "tol": 1e-8, "max_iter": 10_000}
    weighted = SoftTopKSelector(3, **params).fit(X, y, weight)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = SoftTopKSelector(3, **params).fit(X[rows], y[rows])
    assert_array_equal(weighted.support_, repeated.support_)
    assert_allclose(weighted.gate_, repeated.gate_, atol=1e-4)
    X, y = np.vstack([X, np.full((1, 12), 1e9)]), np.append(y, 99)
    left_out = SoftTopKSelector(3, **params).fit(X, y, np.append(weight, 0))
    assert_array_equal(left_out.scores_, weighted.scores_)


def test_units_of_columns_and_targets_do_not_matter():
    X, y = linear()
    plain = SoftTopKSelector(3).fit(X, y)
    units = 2.0 ** np.arange(-40, 44, 7)
    other = SoftTopKSelector(3).fit(X * units, 2.0**900 * y)
    assert_allclose(other.scores_, plain.scores_, rtol=1e-6)
    shifted = SoftTopKSelector(3).fit(X + 100, y - 1000)
    assert_array_equal(shifted.support_, plain.support_)
    assert_allclose(shifted.gate_, plain.gate_, atol=1e-6)


def test_number_to_select():
    X, y = linear()
    for asked, k in [(0.5, 6), (0.3, 3), (0.01, 1), (1.0, 12), (1, 1), (12, 12)]:
        model = SoftTopKSelector(asked).fit(X, y)
        assert model.support_.sum() == model.n_features_to_select_ == k
        assert model.transform(X).shape == (len(X), k)
    assert_array_equal(model.gate_, 1)
    assert SoftTopKSelector(np.int64(2)).fit(X, y).support_.sum() == 2
    assert SoftTopKSelector(np.float32(0.5)).fit(X, y).support_.sum() == 6


def test_constant_columns_come_last():
    """Wherever they are, and of them the first ones first."""
    rng = np.random.default_rng(5)
    live, constant = rng.normal(size=(60, 4)), np.tile([1.0, 0.0, 0.1], (60, 1))
    y = 3 * live[:, 0] + live[:, 1] + 0.5 * rng.normal(size=60)
    X = np.column_stack([constant, live, constant])
    for chosen in ([3, 4], [3, 4, 5, 6], [0, 1, 3, 4, 5, 6], range(8)):
        model = SoftTopKSelector(len(chosen)).fit(X, y)
        assert_array_equal(model.get_support(indices=True), chosen)
    # Only rows that count tell what is constant.
    X, y = np.vstack([X, rng.normal(size=(2, 10))]), np.append(y, [1.0, 2.0])
    weight = np.append(np.ones(60), np.zeros(2))
    support = SoftTopKSelector(4).fit(X, y, weight).get_support(indices=True)
    assert_array_equal(support, [3, 4, 5, 6])


@pytest.mark.parametrize("value", [0.0, 0.1, -1e140])
def test_nothing_but_constant_columns(value):
    X, y = np.full((12, 3), value), np.arange(12) / 8
    message = "nothing to select: every column of X is constant .* n_samples=12"
    with pytest.raises(ValueError, match=message):
        SoftTopKSelector(2).fit(X, y)
    with pytest.raises(ValueError, match=message):
        SoftTopKSelector(2).fit(X, np.arange(12) % 3)
    more, weight = np.vstack([X, np.ones((1, 3))]), np.append(np.ones(12), 0)
    with pytest.raises(ValueError, match=message):
        SoftTopKSelector(2).fit(more, np.append(y, 9), weight)


@pytest.mark.parametrize("copies", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_of_copies_the_first_is_taken(copies, seed):
    rng = np.random.default_rng(seed)
    a, b, c, d = rng.normal(size=(4, 200))
    y = 3 * a + b + 0.1 * rng.normal(size=200)
    X = np.column_stack([*[a] * copies, b, c, d])
    model = SoftTopKSelector(2).fit(X, y)
    assert_array_equal(model.get_support(indices=True), [0, copies])
    assert_allclose(model.gate_, model.support_, atol=1e-3)
    X = np.column_stack([c, a, b, d, *[a] * copies])
    model = SoftTopKSelector(2).fit(X, y)
    assert_array_equal(model.get_support(indices=True), [1, 2])
    assert_allclose(model.gate_, model.support_, atol=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_of_the_dummies_of_a_binary_column_one_is_taken(seed):
    rng = np.random.default_rng(seed)
    binary, Z = rng.integers(2, size=200), rng.normal(size=(200, 3))
    X = np.column_stack([binary, 1 - binary, Z])
    model = SoftTopKSelector(2).fit(X, 5 * binary + Z[:, 0])
    assert_array_equal(model.get_support(indices=True), [0, 2])
    model = SoftTopKSelector(2).fit(X[:, [2, 0, 1, 3]], 5 * binary + Z[:, 0])
    assert_array_equal(model.get_support(indices=True), [0, 1])


def test_frames_and_names():
    X, y = linear()
    names = [f"c{i}" for i in range(12)]
    plain = SoftTopKSelector(3).fit(X, y)
    model = SoftTopKSelector(3).fit(pd.DataFrame(X, columns=names), pd.Series(y))
    assert_array_equal(model.scores_, plain.scores_)
    assert_array_equal(model.get_feature_names_out(), ["c1", "c4", "c7"])
    assert_array_equal(plain.get_feature_names_out(), ["x1", "x4", "x7"])
    out = clone(model).set_output(transform="pandas")
    frame = pd.DataFrame(X, columns=names).convert_dtypes()
    out = out.fit(frame, y).transform(frame)
    assert list(out.columns) == ["c1", "c4", "c7"]
    frame = pl.DataFrame(X, schema=names)
    out = clone(model).set_output(transform="polars").fit(frame, pl.Series(y))
    assert out.transform(frame).equals(frame.select("c1", "c4", "c7"))
    back = plain.inverse_transform(plain.transform(X))
    assert_array_equal(back[:, plain.support_], X[:, plain.support_])


def test_float32():
    X, y = linear()
    X, y = X.astype(np.float32), y.astype(np.float32)
    model = SoftTopKSelector(3).fit(X, y)
    assert model.transform(X).dtype == np.float32
    assert_array_equal(model.get_support(indices=True), [1, 4, 7])


def test_grid_search_in_a_pipeline():
    selector = SoftTopKSelector()
    search = GridSearchCV(
        make_pipeline(selector, LinearRegression()),
        {"softtopkselector__n_features_to_select": [1, 3, 0.5]},
        cv=3,
    ).fit(*DIABETES)
    assert search.best_score_ > 0.45


def test_bad_data():
    X, y = linear()
    with pytest.raises(ValueError, match="y must have more than one value"):
        SoftTopKSelector(loss="squared_error").fit(X, np.full(len(X), 0.1))
    with pytest.raises(ValueError, match="more than one value .* got 2.5 alone"):
        SoftTopKSelector().fit(X, np.full(len(X), 2.5))
    for constant in (["a"] * 100, np.zeros(100), np.ones(100, int), [True] * 100):
        with pytest.raises(ValueError, match="y must have more than one class"):
            SoftTopKSelector().fit(X, constant)
    with pytest.raises(ValueError, match="could not convert"):
        SoftTopKSelector(loss="squared_error").fit(X, ["a", "b"] * 50)
    with pytest.raises(ValueError, match="Unknown label type"):
        SoftTopKSelector(loss="log_loss").fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        SoftTopKSelector().fit(X, None)
    assert_array_equal(
        SoftTopKSelector(3).fit(X, y * 1e300).support_,
        SoftTopKSelector(3).fit(X, y).support_,
    )


def test_gates_sum_to_k_at_every_iteration():
    X, y = linear()
    recorder = Recorder()
    model = SoftTopKSelector(3).set_callbacks(recorder).fit(X, y)
    for fitted in recorder.fitted:
        assert_allclose(fitted.gate_.sum(), 3)
        assert fitted.transform(X).shape == (len(X), 3)
    assert_array_equal(recorder.fitted[-1].gate_, model.gate_)
