"""What is learnt, where it can be known otherwise."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import scale
from torch import nn

from skextra.neural import NeuralClassifier, NeuralRegressor


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return scale(X), scale(y)


def lbfgs(params, lr):
    return torch.optim.LBFGS(params, lr, max_iter=500, line_search_fn="strong_wolfe")


def test_linear_module_is_least_squares(diabetes):
    X, y = diabetes
    model = NeuralRegressor(
        nn.Linear, optimizer=lbfgs, learning_rate=1.0, batch_size=len(X), max_epochs=3
    ).fit(X, y)
    assert_allclose(
        model.predict(X), LinearRegression().fit(X, y).predict(X), atol=2e-3
    )


def test_linear_module_is_logistic_regression(iris):
    X, y = iris
    weak = NeuralClassifier(
        nn.Linear,
        optimizer=lbfgs,
        optimizer_params=None,
        learning_rate=1.0,
        batch_size=len(X),
        max_epochs=2,
        random_state=0,
    ).fit(X[y > 0][:, :2], y[y > 0])
    known = LogisticRegression(C=np.inf).fit(X[y > 0][:, :2], y[y > 0])
    rows = X[y > 0][:, :2]
    assert_allclose(weak.predict_proba(rows), known.predict_proba(rows), atol=2e-3)
    assert_allclose(
        weak.decision_function(rows), known.decision_function(rows), atol=0.02
    )


def test_one_step_of_gradient_descent(diabetes):
    X, y = diabetes
    start = nn.Linear(10, 1)
    model = NeuralRegressor(
        start,
        optimizer="sgd",
        optimizer_params={"momentum": 0.0},
        learning_rate=0.1,
        batch_size=len(X),
        max_epochs=1,
    ).fit(X, y)
    weight, bias = start.weight.detach().numpy()[0], start.bias.item()
    residual = X @ weight + bias - y
    step = 0.1 * 2 * X.T @ residual / len(X)
    assert_allclose(model.module_.weight.detach().numpy()[0], weight - step, atol=1e-6)
    assert model.module_ is not start


def test_class_weight_is_repetition(iris):
    X, y = iris
    common = {
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "max_epochs": 10,
        "random_state": 0,
    }
    repeated = np.r_[np.arange(150), np.flatnonzero(y == 1), np.flatnonzero(y == 1)]
    weighted = NeuralClassifier(
        batch_size=150, class_weight={0: 0.6, 1: 1.8, 2: 0.6}, **common
    ).fit(X, y)
    repeats = NeuralClassifier(batch_size=250, **common).fit(X[repeated], y[repeated])
    assert_allclose(weighted.predict_proba(X), repeats.predict_proba(X), atol=1e-5)


def test_balanced_class_weight(iris):
    X, y = iris
    few = np.r_[0:55, 100:150]
    common = {"max_epochs": 20, "random_state": 0}
    balanced = NeuralClassifier(class_weight="balanced", **common).fit(X[few], y[few])
    given = {c: len(few) / (3 * np.sum(y[few] == c)) for c in range(3)}
    same = NeuralClassifier(class_weight=given, **common).fit(X[few], y[few])
    assert_array_equal(balanced.predict_proba(X), same.predict_proba(X))
    plain = NeuralClassifier(**common).fit(X[few], y[few])
    assert np.abs(balanced.predict_proba(X) - plain.predict_proba(X)).max() > 0.1


@pytest.mark.parametrize(
    "optimizer", ["adamw", "adam", "radam", "sgd", "muon", "swan", "sinkgd"]
)
def test_every_optimizer_learns(iris, optimizer):
    X, y = iris
    model = NeuralClassifier(
        optimizer=optimizer,
        module_params={"hidden_layer_sizes": (32, 32)},
        learning_rate=1e-2,
        max_epochs=50,
        random_state=0,
    ).fit(X, y)
    assert model.score(X, y) > 0.9


def test_class_of_optimizer(iris):
    by_name, by_class = (
        NeuralClassifier(optimizer=optimizer, max_epochs=3, random_state=0).fit(*iris)
        for optimizer in ("radam", torch.optim.RAdam)
    )
    assert_array_equal(by_name.predict_proba(iris[0]), by_class.predict_proba(iris[0]))


def test_partial_fits_are_epochs(iris):
    X, y = iris
    dropout = {"module_params": {"dropout": 0.5}, "random_state": 3}
    at_once = NeuralClassifier(max_epochs=4, **dropout).fit(X, y)
    in_parts = NeuralClassifier(**dropout).partial_fit(X, y, classes=[0, 1, 2])
    for _ in range(3):
        in_parts.partial_fit(X, y)
    assert_array_equal(at_once.predict_proba(X), in_parts.predict_proba(X))
    assert in_parts.n_iter_ == at_once.n_iter_ == len(at_once.history_) == 4


def test_warm_start_goes_on_from_the_weights(diabetes):
    X, y = diabetes
    common = {"optimizer": "sgd", "optimizer_params": {"momentum": 0.0}}
    common |= {"batch_size": len(X), "random_state": 0}
    whole = NeuralRegressor(max_epochs=4, **common).fit(X, y)
    warm = NeuralRegressor(max_epochs=2, warm_start=True, **common).fit(X, y)
    first = warm.module_
    assert_allclose(warm.fit(X, y).predict(X), whole.predict(X), atol=1e-6)
    assert warm.n_iter_ == 2 and warm.module_ is not first
    before = warm.predict(X)
    warm.set_params(learning_rate=1e-12, optimizer="adam", optimizer_params=None)
    assert_allclose(warm.fit(X, y).predict(X), before, atol=1e-6)
    with pytest.raises(ValueError, match="learning_rate, or clip"):
        warm.set_params(learning_rate=1e30).fit(X, y)
    assert_allclose(warm.predict(X), before, atol=1e-6)
    cold = warm.set_params(warm_start=False, learning_rate=1e-12).fit(X, y)
    assert np.abs(cold.predict(X) - before).max() > 0.01


def test_multilabel(iris):
    X, y = iris
    labels = np.c_[y > 0, y > 1, X[:, 0] > 0].astype(int)
    model = NeuralClassifier(learning_rate=1e-2, random_state=0).fit(X, labels)
    assert model.multilabel_
    assert_array_equal(model.classes_, [0, 1, 2])
    predicted, probability = model.predict(X), model.predict_proba(X)
    assert predicted.shape == labels.shape
    assert_array_equal(predicted, probability > 0.5)
    assert_allclose(probability, 1 / (1 + np.exp(-model.decision_function(X))))
    assert model.score(X, labels) > 0.9


def test_several_targets_share_a_module(diabetes):
    X, y = diabetes
    model = NeuralRegressor(max_epochs=50, random_state=0).fit(X, np.c_[y, -y])
    predicted = model.predict(X)
    assert predicted.shape == (len(X), 2)
    assert np.corrcoef(predicted.T)[0, 1] < -0.9
    column = NeuralRegressor(max_epochs=2, random_state=0).fit(X, y[:, None])
    flat = NeuralRegressor(max_epochs=2, random_state=0).fit(X, y)
    assert_array_equal(column.predict(X), flat.predict(X)[:, None])


def test_criterion_of_ones_own(diabetes):
    X, y = diabetes
    outliers = y + 50 * (np.arange(len(y)) % 20 == 0)
    common = {"learning_rate": 1e-2, "max_epochs": 60, "random_state": 0}
    squared = NeuralRegressor(nn.Linear, **common).fit(X, outliers)
    absolute = NeuralRegressor(nn.Linear, criterion=nn.L1Loss, **common).fit(
        X, outliers
    )
    assert absolute.score(X, y) > 0.3 > squared.score(X, y)
    function = NeuralRegressor(
        nn.Linear, criterion=nn.functional.l1_loss, **common
    ).fit(X, outliers)
    assert_array_equal(function.predict(X), absolute.predict(X))


def test_images():
    from sklearn.datasets import load_digits

    def convolutions(out_features):
        return nn.Sequential(
            nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(out_features)
        )

    X, y = load_digits(return_X_y=True)
    images = X.reshape(-1, 1, 8, 8) / 16
    model = NeuralClassifier(
        convolutions, learning_rate=1e-2, max_epochs=5, random_state=0
    ).fit(images[:1000], y[:1000])
    assert model.score(images[1000:], y[1000:]) > 0.9
    with pytest.raises(ValueError, match=r"rows of shape \(1, 8, 8\)"):
        model.predict(images[:, :, :7])


def test_labels_of_any_kind(iris):
    X, y = iris
    numbers = NeuralClassifier(max_epochs=5, random_state=0).fit(X, y)
    for labels in (np.array(["a", "b", "c"])[y], np.array([-1.5, 0, 7])[y].astype(int)):
        model = NeuralClassifier(max_epochs=5, random_state=0).fit(X, labels)
        assert_array_equal(model.predict(X), model.classes_[numbers.predict(X)])


def test_rows_in_any_memory(iris, tmp_path):
    X, y = iris
    single = X.astype(np.float32)
    on_disk = np.memmap(tmp_path / "rows", np.float32, "w+", shape=X.shape)
    on_disk[:] = single
    on_disk.flush()
    read_only = np.memmap(tmp_path / "rows", np.float32, "r", shape=X.shape)
    expected = NeuralClassifier(max_epochs=2, random_state=0).fit(single, y)
    for rows in (read_only, np.asfortranarray(single), single[::-1][::-1]):
        model = NeuralClassifier(max_epochs=2, random_state=0).fit(rows, y)
        assert_allclose(
            model.predict_proba(rows), expected.predict_proba(single), atol=1e-13
        )
    reverse = expected.predict_proba(single[::-1])
    assert_allclose(reverse[::-1], expected.predict_proba(single), atol=1e-13)


@pytest.mark.parametrize("n_samples", [2, 7, 33, 65])
def test_no_batch_of_a_single_row(iris, n_samples):
    X, y = iris
    normed = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    rows = np.linspace(0, 149, n_samples).astype(int)
    classes = np.arange(3)
    for batch_size in (2, 32, 64):
        model = NeuralClassifier(normed, batch_size=batch_size)
        model.partial_fit(X[rows], y[rows], classes=classes)
        sizes = model.history_[-1, "batches", :, "train_batch_size"]
        assert sum(sizes) == n_samples and min(sizes) > 1


def test_batch_size_of_numpy(iris):
    X, y = iris
    for fraction in (None, 0.3):
        kinds = [
            NeuralClassifier(
                batch_size=size,
                validation_fraction=fraction,
                max_epochs=2,
                random_state=0,
            ).fit(X, y)
            for size in (5, np.int64(5))
        ]
        assert_array_equal(*(model.predict_proba(X) for model in kinds))


def test_class_weight_counts_in_the_smallest_batch(iris):
    X, y = iris
    common = {"batch_size": 1, "max_epochs": 2, "random_state": 0, "optimizer": "sgd"}
    heavy = NeuralClassifier(class_weight={0: 1, 1: 50, 2: 1}, **common).fit(X, y)
    plain = NeuralClassifier(**common).fit(X, y)
    weighted, even = (model.predict_proba(X[y == 2])[:, 1] for model in (heavy, plain))
    assert weighted.mean() > max(0.2, 2 * even.mean())
    NeuralClassifier(class_weight={0: 0, 1: 1, 2: 1}, **common).fit(X, y)
    with pytest.raises(ValueError, match="class_weight must be positive"):
        NeuralClassifier(class_weight={0: 0, 1: 0, 2: 0}).fit(X, y)


def test_class_weight_in_parts(iris):
    X, y = iris
    weights = {0: 1, 1: 1, 2: 20}
    common = {"optimizer": "sgd", "batch_size": 150, "random_state": 0}
    parts = [NeuralClassifier(class_weight=w, **common) for w in (weights, None)]
    for model in parts:
        model.partial_fit(X[:100], y[:100], classes=[0, 1, 2])
        for _ in range(5):
            model.partial_fit(X, y)
    heavy, plain = (model.predict_proba(X)[:, 2].mean() for model in parts)
    assert heavy > plain + 0.1
