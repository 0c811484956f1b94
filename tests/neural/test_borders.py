"""Odd modules, odd data, and other people's tools."""

import copy
import pickle

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import torch
from accelerate import Accelerator
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import Callback, EarlyStopping, Freezer, LRScheduler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from skextra.neural import NeuralClassifier, NeuralRegressor

X = np.random.default_rng(0).normal(size=(60, 4))
y = (X[:, 0] > 0) + (X[:, 1] > 0.5).astype(int)
X_torch, y_torch = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)


def quick(**params):
    return NeuralClassifier(**{"max_epochs": 2, "random_state": 0} | params)


class Tied(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.first = nn.Linear(in_features, in_features)
        self.second = nn.Linear(in_features, in_features)
        self.second.weight = self.first.weight
        self.last = nn.Linear(in_features, out_features)

    def forward(self, X):
        return self.last(self.second(self.first(X).relu()))


class Recurrent(nn.Module):
    def __init__(self, out_features):
        super().__init__()
        self.cells = nn.LSTM(1, 8, batch_first=True)
        self.last = nn.Linear(8, out_features)

    def forward(self, X):
        return self.last(self.cells(X[:, :, None])[0][:, -1])


class LookedUp(nn.Module):
    def __init__(self, out_features):
        super().__init__()
        self.table = nn.EmbeddingBag(10, 5)
        self.last = nn.Linear(5, out_features)

    def forward(self, X):
        return self.last(self.table(X.long()))


def normed(in_features, out_features):
    return nn.Sequential(
        nn.Linear(in_features, 8), nn.BatchNorm1d(8), nn.Linear(8, out_features)
    )


def test_tied_weights_stay_tied(tmp_path):
    model = quick(module=Tied, optimizer="swan").fit(X, y)
    other = quick(module=Tied, random_state=1).fit(X, y)
    model.save_weights(tmp_path / "weights")
    other.load_weights(tmp_path / "weights").partial_fit(X, y)
    for fitted in (model, other, pickle.loads(pickle.dumps(model))):
        assert fitted.module_.first.weight is fitted.module_.second.weight
    matrices, rest = model.net_.optimizer_.param_groups
    assert matrices["param_names"] == ["first.weight"]
    assert len(rest["params"]) == 4


@pytest.mark.parametrize("optimizer", ["adamw", "swan", "muon"])
@pytest.mark.parametrize("module", [Recurrent, LookedUp, normed])
def test_modules_of_many_kinds(module, optimizer):
    rows = np.abs(3 * X).astype(int).clip(0, 9)
    model = quick(module=module, optimizer=optimizer, batch_size=20).fit(rows, y)
    whole = model.predict_proba(rows)
    assert_allclose(whole.sum(axis=1), 1)
    one_by_one = [model.predict_proba(row[None])[0] for row in rows]
    assert_allclose(one_by_one, whole, atol=1e-13)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(rows), whole)


def test_module_is_not_touched():
    module = normed(4, 3)
    before = copy.deepcopy(module.state_dict())
    first, second = (quick(module=module, learning_rate=r).fit(X, y) for r in (0.1, 1))
    assert module.training
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    for model in (first, second):
        assert model.module is module
        assert model.module_ is not module
        assert not torch.equal(model.module_[0].weight, module[0].weight)


def test_lazy_module_serves_several_widths():
    lazy = nn.LazyLinear(3)
    assert quick(module=lazy).fit(X, y).module_.in_features == 4
    assert quick(module=lazy).fit(X[:, :2], y).module_.in_features == 2
    assert isinstance(lazy, nn.LazyLinear)
    first, again = (quick(module=nn.LazyLinear(3)).fit(X, y) for _ in range(2))
    assert_array_equal(first.predict_proba(X), again.predict_proba(X))


def test_local_functions_travel_by_cloudpickle():
    model = quick(module=lambda in_features: nn.Linear(in_features, 3)).fit(X, y)
    for twin in (cloudpickle.loads(cloudpickle.dumps(model)), copy.deepcopy(model)):
        assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
        twin.partial_fit(X, y)
        assert twin.n_iter_ == 3
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(model)


def test_data_are_not_written_to():
    rows = X.astype(np.float32)
    module = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 3))
    quick(module=module).fit(rows, y).predict(rows)
    assert_array_equal(rows, X.astype(np.float32))


@pytest.mark.parametrize(
    "convert",
    [
        np.ndarray.tolist,
        lambda rows: rows.astype(np.float32),
        lambda rows: rows.astype(">f8"),
        lambda rows: rows.astype(str),
        np.asfortranarray,
        torch.as_tensor,
        lambda rows: pd.DataFrame(rows).astype(object).to_numpy(),
        lambda rows: pd.DataFrame(rows, columns=list("abcd")).astype("Float64"),
    ],
)
def test_rows_of_any_kind(convert):
    rows = X.round(3)
    expected = quick().fit(rows, y).predict_proba(rows)
    model = quick().fit(convert(rows), y)
    assert_array_equal(model.predict_proba(convert(rows)), expected)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "b", "c"], dtype=object)[y],
        pd.Categorical(np.array(["a", "b", "c"])[y]),
        pd.Series(np.array(["a", "b", "c"])[y], dtype="string"),
        y.astype(np.uint8),
        y.astype(float),
        y.tolist(),
        y * 2**60 - 2**61,
        y > 0,
    ],
)
def test_labels_of_other_kinds(labels):
    model = quick(learning_rate=0.05, max_epochs=20).fit(X, labels)
    predicted = model.predict(X)
    assert set(predicted) <= set(labels)
    assert np.mean(predicted == np.asarray(labels)) > 0.8
    assert type(predicted[0]) is type(model.classes_[0])


def test_one_class_and_constant_columns():
    model = quick().fit(np.ones((5, 2)), ["only"] * 5)
    assert_array_equal(model.predict_proba(X[:, :2]), np.ones((60, 1)))
    assert_array_equal(model.predict(X[:, :2]), ["only"] * 60)


def test_sparse_labels_are_dense_ones():
    labels = np.c_[y > 0, y > 1].astype(int)
    dense, sparse = (quick().fit(X, each) for each in (labels, csr_matrix(labels)))
    assert_array_equal(sparse.predict_proba(X), dense.predict_proba(X))


@pytest.mark.parametrize("labels", [y, np.c_[y > 0, y > 1].astype(int)])
def test_early_stopping_of_any_target(labels):
    for model in (quick(), NeuralRegressor(random_state=0)):
        model.set_params(
            max_epochs=100,
            learning_rate=0.3,
            validation_fraction=0.3,
            callbacks=[EarlyStopping(patience=3)],
        ).fit(X, labels)
        assert 3 < model.n_iter_ < 100


def test_kinds_of_random_state():
    fits = [
        quick(random_state=np.random.RandomState(3)).fit(X, y).predict_proba(X)
        for _ in range(2)
    ]
    assert_array_equal(*fits)
    state = np.random.RandomState(3)
    first, second = (quick(random_state=state).fit(X, y) for _ in range(2))
    assert_array_equal(first.predict_proba(X), fits[0])
    assert np.abs(second.predict_proba(X) - fits[0]).max() > 1e-3


def test_in_further_estimators():
    both = np.c_[y > 0, y > 1].astype(int)
    for model, target in (
        (OneVsRestClassifier(quick()), y),
        (VotingClassifier([("a", quick()), ("b", quick())], voting="soft"), y),
        (BaggingClassifier(quick(), n_estimators=2, random_state=0), y),
        (MultiOutputClassifier(quick()), both),
        (ClassifierChain(quick()), both),
        (MultiOutputRegressor(NeuralRegressor(max_epochs=1)), both),
        (TransformedTargetRegressor(NeuralRegressor(max_epochs=1)), y),
    ):
        assert model.fit(X, target).predict(X).shape == target.shape


def test_metadata_routing():
    with config_context(enable_metadata_routing=True):
        steps = make_pipeline(StandardScaler(), quick())
        grid = {"neuralclassifier__learning_rate": [0.1, 0.01]}
        search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["neuralclassifier__learning_rate"] in (0.1, 0.01)


def test_fitted_models_can_be_shown():
    model = quick(module=Tied, callbacks=[("plan", LRScheduler())]).fit(X, y)
    assert "NeuralClassifier" in repr(model)
    assert "Tied" in model._repr_html_()


class Fails(Callback):
    def on_batch_end(self, net, **kwargs):
        if len(net.history) == 2:
            raise RuntimeError("in the second epoch")


def test_error_of_a_callback():
    state = torch.get_rng_state()
    model = quick(callbacks=[Fails()])
    with pytest.raises(RuntimeError, match="second epoch"):
        model.fit(X, y)
    assert torch.equal(torch.get_rng_state(), state)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_params(callbacks=None).fit(X, y)
    assert_array_equal(model.predict_proba(X), quick().fit(X, y).predict_proba(X))


def test_refused_data_leave_the_model():
    model = quick().partial_fit(X, y, classes=[0, 1, 2])
    expected = copy.deepcopy(model).partial_fit(X, y).predict_proba(X)
    for rows, labels in ((X * np.nan, y), (X[:, :2], y), (X, y + 1), (X, y[:5])):
        with pytest.raises(ValueError, match="NaN|features|labels|inconsistent"):
            model.partial_fit(rows, labels)
    assert_array_equal(model.partial_fit(X, y).predict_proba(X), expected)


def test_classes_of_partial_fit():
    names = np.array(["a", "b", "c"])[y]
    model = quick().partial_fit(X[:1], names[:1], classes=["c", "a", "b"])
    assert_array_equal(model.classes_, ["a", "b", "c"])
    assert model.predict_proba(X).shape == (60, 3)
    after_fit = quick().fit(X, y).partial_fit(X[y < 1], y[y < 1])
    assert after_fit.n_iter_ == 3


def test_callback_serves_several_fits():
    stop = EarlyStopping(monitor="train_loss", patience=2, threshold=10)
    model = quick(max_epochs=20, callbacks=[stop])
    other = quick(max_epochs=20, callbacks=[stop], random_state=1)
    for each in (model, model, other, clone(model)):
        assert each.fit(X, y).n_iter_ == 3


def test_frozen_layers():
    model = quick(callbacks=[Freezer("0.*")]).fit(X, y)
    start = quick(learning_rate=1e-30).fit(X, y)
    assert torch.equal(model.module_[0].weight, start.module_[0].weight)
    assert not torch.equal(model.module_[2].weight, start.module_[2].weight)


def test_class_that_needs_a_closure():
    model = quick(
        optimizer=torch.optim.LBFGS, learning_rate=1.0, batch_size=60, max_epochs=5
    ).fit(X, y)
    losses = model.history_[:, "train_loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_one_process_of_accelerate_is_none():
    plain = quick(validation_fraction=0.2).fit(X, y)
    model = quick(validation_fraction=0.2, accelerator=Accelerator(cpu=True))
    assert_array_equal(model.fit(X, y).predict_proba(X), plain.predict_proba(X))
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_array_equal(twin.predict_proba(X), plain.predict_proba(X))
    model.partial_fit(X, y)
    assert_array_equal(model.predict_proba(X), plain.partial_fit(X, y).predict_proba(X))


def test_workers_change_nothing():
    data = TensorDataset(X_torch, y_torch)
    alone, helped = (
        quick(max_epochs=1).fit(DataLoader(data, 8, shuffle=True, num_workers=n))
        for n in (0, 2)
    )
    assert_array_equal(alone.predict_proba(X), helped.predict_proba(X))
    assert_array_equal(helped.predict(DataLoader(data, 7)), helped.predict(X))


def test_float64_targets_of_a_dataset():
    single, double = (
        NeuralRegressor(random_state=0, max_epochs=2).fit(
            TensorDataset(X_torch, y_torch.to(kind))
        )
        for kind in (torch.float32, torch.float64)
    )
    assert_allclose(double.predict(X), single.predict(X), atol=1e-6)


def test_refit_is_a_fit():
    labels = np.c_[y > 0, y > 1].astype(int)
    model = quick(module_params={"dropout": 0.5}).fit(X[:, :2], labels)
    first = model.fit(X, y).predict_proba(X)
    assert_array_equal(model.fit(X, y).predict_proba(X), first)
    fresh = quick(module_params={"dropout": 0.5}).fit(X, y)
    assert_array_equal(fresh.predict_proba(X), first)
    assert sorted(vars(fresh)) == sorted(vars(model))
    numbers = NeuralRegressor(max_epochs=1).fit(X, labels).fit(X, y)
    assert numbers.predict(X).shape == (60,)


def test_streams_do_not_mix():
    class Nested(Callback):
        def on_epoch_end(self, net, **kwargs):
            quick(max_epochs=1).fit(X, y)

    dropout = {"module_params": {"dropout": 0.5}}
    expected = quick(max_epochs=3, **dropout).fit(X, y).predict_proba(X)
    nested = quick(max_epochs=3, callbacks=[Nested()], **dropout).fit(X, y)
    assert_array_equal(nested.predict_proba(X), expected)
    model, other = (quick(random_state=seed, **dropout) for seed in (0, 1))
    for _ in range(3):
        for each in (model, other):
            each.partial_fit(X, y, classes=[0, 1, 2])
    assert_array_equal(model.predict_proba(X), expected)


def test_trial_of_a_module_leaves_its_statistics():
    model = quick(module=normed, batch_size=30).fit(X, y)
    assert model.module_[1].num_batches_tracked == 4


def test_infinite_loss():
    with pytest.raises(ValueError, match="loss became inf"):
        NeuralRegressor(max_epochs=1).fit(X, y * 1e30)


def test_integer_rows_of_a_dataset():
    rows = torch.as_tensor(np.abs(3 * X).astype(int).clip(0, 9))
    model = quick(module=nn.EmbeddingBag(10, 3))
    model.fit(TensorDataset(rows, y_torch))
    assert_allclose(
        model.decision_function(TensorDataset(rows)),
        model.module_(rows).detach(),
        atol=1e-6,
    )


def test_warm_fit_after_parts():
    model = quick(warm_start=True).partial_fit(X, y, classes=[0, 1, 2, 3])
    assert model.fit(X, y).predict_proba(X).shape == (60, 4)
    assert_array_equal(model.set_params(warm_start=False).fit(X, y).classes_, [0, 1, 2])
