"""The estimators among scikit-learn's and torch's own tools."""

import copy
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from socket import socket

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from skorch.callbacks import (
    Checkpoint,
    EarlyStopping,
    EpochScoring,
    GradientNormClipping,
    LRScheduler,
)
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from skextra.neural import NeuralClassifier, NeuralRegressor
from tests.recorder import Recorder

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


def quick(**params):
    return NeuralClassifier(**{"max_epochs": 3, "random_state": 0} | params)


def test_global_generator_is_left_alone(iris):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model = quick(module_params={"dropout": 0.5}).fit(*iris)
    model.predict(iris[0])
    data = TensorDataset(*map(torch.as_tensor, (iris[0].astype("f4"), iris[1])))
    quick(validation_fraction=0.2).fit(data)
    assert_array_equal(torch.rand(3), expected)


def test_global_generator_has_no_say(iris):
    torch.manual_seed(1)
    first = quick(module_params={"dropout": 0.5}).fit(*iris)
    torch.manual_seed(2)
    second = quick(module_params={"dropout": 0.5}).fit(*iris)
    other = quick(module_params={"dropout": 0.5}, random_state=1).fit(*iris)
    probability = first.predict_proba(iris[0])
    assert_array_equal(probability, second.predict_proba(iris[0]))
    assert np.abs(probability - other.predict_proba(iris[0])).max() > 1e-3


def test_threads_take_turns(iris):
    alone = quick(module_params={"dropout": 0.5}).fit(*iris).predict_proba(iris[0])
    models = [quick(module_params={"dropout": 0.5}) for _ in range(4)]
    threads = [threading.Thread(target=model.fit, args=iris) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for model in models:
        assert_array_equal(model.predict_proba(iris[0]), alone)


def test_rows_do_not_depend_on_their_batch(iris):
    X, y = iris
    model = quick(batch_size=7).fit(X, y)
    whole = model.decision_function(X)
    one_by_one = np.concatenate([model.decision_function(row[None]) for row in X])
    assert_allclose(one_by_one, whole, atol=1e-13)
    model.set_params(batch_size=1000)
    assert_allclose(model.decision_function(X[::-1])[::-1], whole, atol=1e-13)


@pytest.mark.parametrize("estimator", [NeuralClassifier, NeuralRegressor])
def test_copies_predict_the_same_and_can_go_on(iris, estimator, tmp_path):
    X, y = iris
    model = estimator(max_epochs=3, random_state=0).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    copies = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "model"),
    ]
    expected = model.predict(X)
    further = model.partial_fit(X, y).predict(X)
    for twin in copies:
        assert_array_equal(twin.predict(X), expected)
        assert_array_equal(twin.partial_fit(X, y).predict(X), further)
    assert not hasattr(clone(model), "net_")


def test_search_in_processes(iris):
    X, y = iris
    search = GridSearchCV(
        make_pipeline(StandardScaler(), quick(learning_rate=1e-2)),
        {
            "neuralclassifier__optimizer": ["adamw", "swan", torch.optim.SGD],
            "neuralclassifier__module_params": [{"hidden_layer_sizes": (8,)}, None],
        },
        n_jobs=2,
        cv=3,
        error_score="raise",
    ).fit(X, y)
    again = clone(search).set_params(n_jobs=None).fit(X, y)
    assert_array_equal(
        search.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"]
    )
    assert search.best_score_ > 0.6


def test_in_other_estimators():
    X, y = load_breast_cancer(return_X_y=True)
    net = make_pipeline(StandardScaler(), quick(max_epochs=10))
    assert cross_val_score(CalibratedClassifierCV(net, cv=2), X, y, cv=3).min() > 0.93
    stack = StackingClassifier(
        [("net", net), ("linear", LogisticRegression(max_iter=5000))], cv=2, n_jobs=2
    )
    assert stack.fit(scale(X), y).score(scale(X), y) > 0.95


def test_frames(iris):
    X, y = iris
    expected = quick().fit(X, y).predict_proba(X)
    columns = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=columns)
    model = quick().fit(frame, pd.Series(y))
    assert_array_equal(model.feature_names_in_, columns)
    assert_array_equal(model.predict_proba(frame), expected)
    other = pl.DataFrame(X, schema=columns)
    assert_array_equal(quick().fit(other, pl.Series(y)).predict_proba(other), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[columns[::-1]])


def test_float32_is_what_the_module_gets(iris):
    X, y = iris
    single = quick().fit(X.astype(np.float32), y).predict_proba(X.astype(np.float32))
    assert single.dtype == np.float64
    assert_array_equal(single, quick().fit(X, y).predict_proba(X))


def test_skorch_callbacks(iris, tmp_path):
    X, y = iris
    model = quick(
        max_epochs=200,
        learning_rate=0.05,
        validation_fraction=0.2,
        callbacks=[
            EarlyStopping(patience=3),
            ("accuracy", EpochScoring("accuracy", lower_is_better=False)),
            LRScheduler("StepLR", step_size=1, gamma=0.5),
            GradientNormClipping(1e-3),
            Checkpoint(dirname=tmp_path, load_best=True),
        ],
    ).fit(X, y)
    assert 3 < model.n_iter_ < 200
    history = model.history_[:, ("valid_loss", "accuracy", "train_batch_count")]
    losses, accuracy, _ = zip(*history, strict=True)
    assert all(0 <= share <= 1 for share in accuracy)
    assert model.net_.optimizer_.param_groups[0]["lr"] < 0.05
    # The weights are the checkpoint's, those of the epoch of the smallest loss.
    saved = torch.load(tmp_path / "params.pt")
    for name, weights in model.module_.state_dict().items():
        assert_array_equal(weights, saved[name])
    assert model.history_[int(np.argmin(losses)), "event_cp"]


def test_gradient_clipping_bounds_the_step(iris):
    X, y = iris
    model = quick(
        optimizer="sgd",
        optimizer_params={"momentum": 0.0},
        learning_rate=1.0,
        batch_size=150,
        max_epochs=1,
    )
    loose = copy.deepcopy(model).fit(X, y)
    tight = model.set_params(callbacks=[GradientNormClipping(1e-6)]).fit(X, y)

    def moved(a, b):
        pairs = zip(a.module_.parameters(), b.module_.parameters(), strict=True)
        return sum((p - q).detach().square().sum().item() for p, q in pairs) ** 0.5

    still = quick(learning_rate=1e-12, max_epochs=1, batch_size=150).fit(X, y)
    assert moved(tight, still) < 2e-6
    assert moved(loose, still) > 1e-2


def test_validation_rows_are_held_out(iris):
    X, y = iris
    model = quick(validation_fraction=0.2, batch_size=1000).fit(X, y)
    (batch,) = model.history_[-1, "batches", :, "train_batch_size"][:1]
    assert batch == 120
    assert model.history_[-1, "batches", -1, "valid_batch_size"] == 30


def test_scikit_learn_callbacks(iris):
    recorder = Recorder()
    quick().set_callbacks(recorder).fit(*iris)
    epochs = [
        (step, "epoch", number) for number in range(3) for step in ("begin", "end")
    ]
    assert recorder.calls == [
        "setup",
        ("begin", "fit", 0),
        *epochs,
        ("end", "fit", 0),
        "teardown",
    ]


def test_scikit_learn_callback_stops(iris):
    recorder = Recorder(stop_after=2)
    model = quick(max_epochs=50).set_callbacks(recorder).fit(*iris)
    assert model.n_iter_ == 2
    assert_array_equal(
        model.predict_proba(iris[0]),
        quick(max_epochs=2).fit(*iris).predict_proba(iris[0]),
    )
    assert recorder.fitted[0].score(*iris) > 0


def test_early_stopping_ends_the_epoch_for_scikit_learn_too(iris):
    recorder = Recorder()
    stop = EarlyStopping(monitor="train_loss", patience=2, threshold=10)
    model = quick(max_epochs=50, callbacks=[stop]).set_callbacks(recorder).fit(*iris)
    assert model.n_iter_ == 3
    assert recorder.calls[-3:] == [("end", "epoch", 2), ("end", "fit", 0), "teardown"]


def test_bars_and_scores_in_a_search(iris):
    search = GridSearchCV(quick(), {"optimizer": ["adamw", "swan"]}, cv=2)
    search.set_callbacks(ProgressBar()).fit(*iris)
    monitor = ScoringMonitor(scoring="accuracy")
    model = quick().set_callbacks(monitor).fit(*iris)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "epoch"]
    assert len(rows) == 3
    assert rows[-1]["accuracy"] == model.score(*iris)


def test_interrupt_is_not_swallowed(iris):
    class Interrupt(EarlyStopping):
        def on_batch_begin(self, net, **kwargs):
            if len(net.history) == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick(callbacks=[Interrupt(monitor="train_loss")]).fit(*iris)


def tensors(iris):
    return torch.as_tensor(iris[0], dtype=torch.float32), torch.as_tensor(iris[1])


def test_dataset_and_loader(iris):
    X, y = iris
    data = TensorDataset(*tensors(iris))
    start = torch.nn.Linear(4, 3)
    common = {"module": start, "optimizer": "sgd", "batch_size": 150}
    expected = quick(**common).fit(X, y).predict_proba(X)
    from_data = quick(**common).fit(data)
    assert_allclose(from_data.predict_proba(X), expected, atol=1e-5)
    assert_allclose(
        from_data.predict_proba(data), from_data.predict_proba(X), atol=1e-13
    )
    assert from_data.n_features_in_ == 4
    loader = DataLoader(data, batch_size=150)
    from_loader = quick(**common).fit(loader)
    assert_allclose(from_loader.predict_proba(X), expected, atol=1e-5)
    assert from_loader.predict(loader).shape == (150,)
    held_out = quick(validation_fraction=0.2, batch_size=1000).fit(data)
    assert held_out.history_[-1, "batches", -1, "valid_batch_size"] == 30


class Stream(IterableDataset):
    def __init__(self, iris):
        self.rows = list(zip(*tensors(iris), strict=True))

    def __iter__(self):
        return iter(self.rows)


def test_stream_of_rows(iris):
    model = quick(max_epochs=20, learning_rate=1e-2).fit(Stream(iris))
    assert model.score(*iris) > 0.8
    with pytest.raises(ValueError, match="cannot be split"):
        quick(validation_fraction=0.5).fit(Stream(iris))


def test_batches_through_partial_fit(iris):
    X, y = iris
    rng = np.random.default_rng(0)
    model = quick(learning_rate=1e-2)
    for _ in range(40):
        rows = rng.integers(150, size=32)
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert model.score(X, y) > 0.9
    loader = DataLoader(TensorDataset(*tensors(iris)), batch_size=50)
    from_loader = quick().partial_fit(loader, classes=[0, 1, 2]).partial_fit(loader)
    assert from_loader.n_iter_ == 2


def test_loader_of_a_regression():
    X = torch.randn(200, 3, generator=torch.Generator().manual_seed(0))
    y = X @ torch.tensor([1.0, -2.0, 0.5])
    loader = DataLoader(TensorDataset(X, y), batch_size=20)
    model = NeuralRegressor(
        torch.nn.Linear, optimizer="adam", learning_rate=0.03, max_epochs=60
    ).fit(loader)
    assert_allclose(model.predict(X.numpy()), y, atol=0.01)


def test_weights_as_safetensors(iris, tmp_path):
    X, y = iris
    model, other = quick().fit(X, y), quick(random_state=1).fit(X, y)
    model.save_weights(tmp_path / "weights.safetensors")
    other.load_weights(tmp_path / "weights.safetensors")
    assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    wide = quick(module_params={"hidden_layer_sizes": (3,)}).fit(X, y)
    before = wide.predict_proba(X)
    with pytest.raises(RuntimeError, match="size mismatch"):
        wide.load_weights(tmp_path / "weights.safetensors")
    assert_array_equal(wide.predict_proba(X), before)


def test_a_fitted_model_moves(iris):
    X, y = iris
    model = quick(device="cpu").fit(X, y)
    expected = model.predict_proba(X)
    assert_array_equal(model.set_params(device="auto").predict_proba(X), expected)
    with pytest.raises(RuntimeError, match="meta"):
        model.set_params(device="meta").predict_proba(X)


def run(*command):
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done


def accelerated(tmp_path, precision, *launcher):
    script = str(Path(__file__).parent / "two_processes.py")
    run(sys.executable, *launcher, script, str(tmp_path / "out.npz"), precision)
    return np.load(tmp_path / "out.npz")


@pytest.fixture(scope="module")
def whole_batches(iris):
    model = quick(optimizer="sgd", learning_rate=0.1, max_epochs=5, batch_size=150)
    return model.fit(*iris).predict_proba(iris[0])


def test_two_processes_are_one(tmp_path, whole_batches):
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node=2"]
    place = ["--master_addr=127.0.0.1", f"--master_port={port}"]
    found = accelerated(tmp_path, "no", *launcher, *place)
    assert found["n_processes"] == 2
    assert_allclose(found["probability"], whole_batches, atol=1e-6)


def test_mixed_precision(tmp_path, whole_batches):
    found = accelerated(tmp_path, "bf16")
    assert found["n_processes"] == 1
    assert 0 < np.abs(found["probability"] - whole_batches).max() < 0.02


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss"])
def test_skorch_scores_probabilities(iris, scoring):
    X, y = iris[0][50:], iris[1][50:]
    score = EpochScoring(scoring, lower_is_better=False, name="score", on_train=True)
    model = quick(callbacks=[score], learning_rate=1e-12).fit(X, y)
    expected = get_scorer(scoring)(model, X, y)
    assert_allclose(model.history_[-1, "score"], expected, rtol=1e-5)


def test_callbacks_are_not_changed_by_a_fit(iris):
    class Holder(EarlyStopping):
        def __init__(self):
            super().__init__(monitor="train_loss", patience=1, threshold=10)
            self.lock = threading.Lock()

    holder = Holder()
    before = dict(vars(holder))
    first = quick(max_epochs=9, callbacks=[holder]).fit(*iris)
    assert first.n_iter_ == 2 and vars(holder) == before
    assert quick(max_epochs=9, callbacks=[("a", holder)]).fit(*iris).n_iter_ == 2


class Once(IterableDataset):
    """Rows that can be read once, as those of a pipe."""

    def __init__(self, iris):
        self.rows = zip(*tensors(iris), strict=True)

    def __iter__(self):
        return self.rows


def test_stream_that_is_read_once(iris):
    model = quick(batch_size=50).partial_fit(Once(iris), classes=[0, 1, 2])
    model.partial_fit(Once(iris))
    for epoch in range(2):
        assert model.history_[epoch, "batches", :, "train_batch_size"] == [50, 50, 50]
    with pytest.raises(ValueError, match="is for partial_fit"):
        quick().fit(Once(iris))
    rows = Once((iris[0], iris[0][:, :1].astype("f4")))
    with pytest.raises(ValueError, match="no batch in epoch 2"):
        NeuralRegressor(max_epochs=2).fit(rows)


def test_targets_of_any_number_type(iris):
    X, y = tensors(iris)
    start = torch.nn.Linear(4, 3)
    fits = [
        quick(module=start).fit(DataLoader(TensorDataset(X, labels), 50))
        for labels in (y, y.int(), y.to(torch.uint8))
    ]
    for model in fits[1:]:
        assert_array_equal(model.predict_proba(X), fits[0].predict_proba(X))
    several = torch.stack([y > 0, y > 1], dim=1)
    for labels in (several.long(), several.double()):
        assert quick().fit(TensorDataset(X, labels)).multilabel_


def test_held_out_rows_stay_held_out(iris):
    class Seen(EarlyStopping):
        def on_epoch_end(self, net, dataset_valid=None, **kwargs):
            rows.append(np.concatenate([X for X, _ in dataset_valid]))

    for data in (iris, (TensorDataset(*tensors(iris)),)):
        rows = []
        model = quick(
            validation_fraction=0.2,
            callbacks=[Seen()],
            max_epochs=1,
            warm_start=True,
            random_state=np.random.RandomState(0),
        )
        model.fit(*data).fit(*data).partial_fit(*data)
        assert len(rows) == 3
        for later in rows[1:]:
            assert_array_equal(later, rows[0])


def test_module_with_tensors_of_its_own(iris):
    class Recurrent(torch.nn.Module):
        def __init__(self, out_features):
            super().__init__()
            self.cells = torch.nn.LSTM(1, 4, batch_first=True)
            self.last = torch.nn.Linear(4, out_features)

        def forward(self, X):
            start = torch.zeros(1, len(X), 4)
            hidden, _ = self.cells(X[:, :, None], (start, start))
            return self.last(hidden[:, -1])

    model = quick(module=Recurrent).fit(*iris)
    one_by_one = [model.predict_proba(row[None])[0] for row in iris[0][:5]]
    assert_allclose(one_by_one, model.predict_proba(iris[0])[:5], rtol=1e-5)
