"""What is refused, and what the message says."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from skextra.neural import NeuralClassifier, NeuralRegressor

X = np.random.default_rng(0).normal(size=(20, 3))
y = np.arange(20) % 2


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"optimizer": "adamax"}, "adamw.*swan"),
        ({"optimizer": 3}, "'optimizer' parameter"),
        ({"optimizer_params": {"lr": 1}}, "set learning_rate"),
        ({"learning_rate": 0}, "'learning_rate' parameter"),
        ({"max_epochs": 0}, "'max_epochs' parameter"),
        ({"batch_size": 0}, "'batch_size' parameter"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
        ({"module": 7}, "'module' parameter"),
        ({"criterion": "log_loss"}, "'criterion' parameter"),
        ({"callbacks": 3}, "'callbacks' parameter"),
        ({"device": "foo"}, "device must be 'auto'"),
        ({"validation_fraction": 0.01}, "validation_fraction=0.01 cannot split"),
        ({"criterion": lambda output, target: 3.0}, "criterion must return"),
        ({"criterion": nn.CrossEntropyLoss(reduction="none")}, "criterion must return"),
        ({"module": nn.Linear(3, 5)}, r"shape \(2, 2\).*got \(2, 5\)"),
        (
            {"module": nn.Linear(3, 2), "module_params": {"bias": False}},
            "module_params",
        ),
        ({"module": nn.LSTM(3, 2)}, "got tuple"),
        ({"class_weight": {0: 1, 5: 2}}, "not in class_weight"),
        ({"class_weight": "balanced", "criterion": nn.NLLLoss}, "class_weight must be"),
    ],
)
def test_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        NeuralClassifier(max_epochs=1).set_params(**params).fit(X, y)


@pytest.mark.parametrize("item", [3, "EarlyStopping", ("a", 3), print])
def test_callbacks(item):
    with pytest.raises(TypeError, match="callbacks must hold"):
        NeuralClassifier(callbacks=[item]).fit(X, y)


def test_module_that_is_none():
    with pytest.raises(TypeError, match="made a int"):
        NeuralClassifier(lambda in_features: in_features).fit(X, y)


@pytest.mark.parametrize("estimator", [NeuralClassifier, NeuralRegressor])
def test_data(estimator):
    model = estimator(max_epochs=1)
    for bad, message in (
        (X * np.nan, "NaN"),
        (X * 1e300, "too large for dtype"),
        (X[:, :, None], "3"),
        (X[0], "1D array"),
        (X[:0], "minimum of 1"),
        (X[:, :0], "0 feature"),
        (np.full((20, 3), "a"), "could not convert"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(bad, y[: len(bad)])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:5])
    with pytest.raises(ValueError, match="requires y"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="expecting 3 features"):
        model.fit(X, y).predict(X[:, :2])


def test_targets():
    for bad, message in (
        (y * np.nan, "NaN"),
        (y + 1e300, "too large"),
        (["a"] * 20, "convert"),
    ):
        with pytest.raises(ValueError, match=message):
            NeuralRegressor(max_epochs=1).fit(X, bad)
    with pytest.raises(ValueError, match="MultiOutputClassifier"):
        NeuralClassifier().fit(X, np.c_[y, y + 3])
    with pytest.raises(ValueError, match="Unknown label type"):
        NeuralClassifier().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="class_weight must be None"):
        NeuralClassifier(class_weight={0: 1, 1: 1}).fit(X, np.c_[y, 1 - y])


def test_later_targets():
    model = NeuralClassifier(max_epochs=1).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"got \[2\]"):
        model.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="another kind of target"):
        model.partial_fit(X, np.c_[y, 1 - y])
    several = NeuralClassifier(max_epochs=1).fit(X, np.c_[y, 1 - y, y])
    with pytest.raises(ValueError, match="3 labels a row, as many as classes_; got 2"):
        several.partial_fit(X, np.c_[y, 1 - y])
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="classes must be passed"):
        NeuralClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="compute_class_weight"):
        NeuralClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    numbers = NeuralRegressor(max_epochs=1).partial_fit(X, y)
    with pytest.raises(ValueError, match="1 targets, as before; got 2"):
        numbers.partial_fit(X, np.c_[y, y])


def test_loss_that_is_no_number():
    with pytest.raises(ValueError, match="learning_rate, or clip"):
        NeuralRegressor(optimizer="sgd", learning_rate=1e6, max_epochs=20).fit(X, y)


def test_outputs_are_not_broadcast():
    flat = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    with pytest.raises(ValueError, match=r"shape \(2, 1\) for 2 rows; got \(2,\)"):
        NeuralRegressor(flat).fit(X, y)


def test_torch_data():
    data = TensorDataset(torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y))
    with pytest.raises(ValueError, match="y must be None"):
        NeuralClassifier().fit(data, y)
    with pytest.raises(ValueError, match="validation_fraction must be None"):
        NeuralClassifier(validation_fraction=0.5).fit(DataLoader(data))
    with pytest.raises(ValueError, match='class_weight="balanced"'):
        NeuralClassifier(class_weight="balanced").fit(data)
    gap = TensorDataset(data.tensors[0], data.tensors[1] * 2)
    with pytest.raises(ValueError, match=r"got \[0 2\]"):
        NeuralClassifier().fit(gap)


def test_failed_fit_leaves_no_model():
    model = NeuralClassifier(max_epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X * np.nan, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X * np.nan, y, classes=[0, 1, 2])
    model.partial_fit(X, y, classes=[0, 1])
    assert model.predict_proba(X).shape == (20, 2)


def test_odd_but_answerable():
    one_row = NeuralClassifier(max_epochs=1).fit(X[:1], y[:1])
    assert one_row.predict(X).tolist() == [0] * 20
    constant = NeuralRegressor(max_epochs=1).fit(np.ones((5, 1)), np.ones(5))
    assert np.isfinite(constant.predict([[1.0]])).all()


def test_early_stopping_without_validation():
    from skorch.callbacks import EarlyStopping

    with pytest.raises(ValueError, match="hold rows out by validation_fraction"):
        NeuralClassifier(callbacks=[EarlyStopping()]).fit(X, y)


def test_rows_of_another_shape():
    wide = nn.Sequential(nn.Flatten(), nn.LazyLinear(2))
    images = np.ones((20, 2, 3))
    model = NeuralClassifier(wide, max_epochs=1).fit(images, y)
    with pytest.raises(ValueError, match=r"shape \(2, 3\), as in fit; got \(2, 4\)"):
        model.partial_fit(np.ones((20, 2, 4)), y)
    narrow = TensorDataset(torch.ones(20, 3), torch.as_tensor(y))
    with pytest.raises(ValueError, match=r"shape \(2, 3\), as in fit; got \(3,\)"):
        model.partial_fit(narrow)
    assert model.predict(images).shape == (20,)


def test_output_that_is_nan():
    class Odd(nn.Linear):
        def forward(self, X):
            return super().forward(X) + (0 if self.training or len(X) < 3 else np.nan)

    model = NeuralRegressor(Odd, max_epochs=1).fit(X, y)
    with pytest.raises(ValueError, match="module returned NaN"):
        model.predict(X)
