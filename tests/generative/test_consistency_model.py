"""The estimator: what it learns, and how it behaves."""

import gc
import pickle
import weakref

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skextra.generative import ConsistencyModel, _sampling
from tests.generative import reference
from tests.generative.reference import gaussian_multipliers

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), np.array(["a", "b", "c"])[np.arange(60) % 3]
QUICK = {"max_iter": 20, "hidden_layer_sizes": (8,), "random_state": 0}


def quick(**params):
    return ConsistencyModel(**QUICK | params)


@pytest.fixture(scope="module")
def classed():
    return quick().fit(X, Y)


@pytest.fixture(scope="module")
def ring():
    """Eight normal distributions, learnt with the default method."""
    model = ConsistencyModel(
        max_iter=500,
        teacher_iter=700,
        hidden_layer_sizes=(64, 64),
        learning_rate=3e-3,
        random_state=0,
    )
    return model.fit(reference.ring(2000, np.random.default_rng(0)))


def test_bias_for_normal_data():
    """A coarse grid makes samples too narrow, by as much as the theory says."""
    data, top = np.random.default_rng(1).normal(size=(4000, 2)), 10.0
    model = ConsistencyModel(
        method="training",
        loss="squared",
        index_distribution="uniform",
        n_discretization=10,
        sigma_max=top,
        hidden_layer_sizes=(32,),
        max_iter=2000,
        learning_rate=3e-3,
        random_state=0,
    ).fit(data)
    predicted = gaussian_multipliers(model.schedule_, 0.5)[-1] * top / 0.5
    assert predicted < 0.85
    std = (model.sample(40_000) / data.std(axis=0)).std()
    assert std == pytest.approx(predicted, rel=0.02)
    # The second evaluation does not help.
    again = model.sample(40_000, n_steps=2) / data.std(axis=0)
    assert again.std() == pytest.approx(predicted, rel=0.03)


def test_no_bias_with_normal_preconditioning():
    """Correlated normal data on the same coarse grid."""
    mixing = np.array([[1.0, 0.0], [2.0, 0.5]])
    data = np.random.default_rng(1).normal(size=(4000, 2)) @ mixing.T
    model = ConsistencyModel(
        method="training",
        loss="squared",
        index_distribution="uniform",
        n_discretization=10,
        gaussian_preconditioning=True,
        hidden_layer_sizes=(32,),
        max_iter=300,
        random_state=0,
    ).fit(data)
    samples = model.sample(40_000)
    covariance = np.cov(data.T)
    error = np.linalg.solve(covariance, np.cov(samples.T)) - np.eye(2)
    assert np.abs(np.linalg.eigvals(error)).max() < 0.06


def test_ring(ring):
    """One and two evaluations come close to 49 of the teacher."""
    test = reference.ring(20_000, np.random.default_rng(5))
    one, two, teacher = (
        reference.sliced_w2(ring.sample(5000, random_state=1, **kwargs), test)
        for kwargs in ({}, {"n_steps": 2}, {"sampler": "teacher"})
    )
    assert teacher < 0.12 and two < 0.2 and one < 0.25
    normal = RNG.normal(size=test.shape) * test.std(axis=0)
    assert reference.sliced_w2(normal, test) > 2 * teacher
    # More samples are in a mode than of the normal distribution of the data.
    angles = np.arange(8) * np.pi / 4
    centres = np.column_stack([np.cos(angles), np.sin(angles)])
    samples = ring.sample(2000, n_steps=2, random_state=1)
    shares = [
        (np.linalg.norm(rows[:, None] - centres, axis=2).min(axis=1) < 0.2).mean()
        for rows in (samples, normal)
    ]
    assert shares[0] > 2 * shares[1]


def test_density_of_the_ring(ring):
    """Rows are denser than the middle; the integral over a square is 1."""
    rows, middle = reference.ring(20, np.random.default_rng(6)), np.zeros((1, 2))
    assert ring.score_samples(rows).min() > ring.score_samples(middle) + 1
    axis = np.linspace(-1.8, 1.8, 40)
    square = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    density = np.exp(ring.score_samples(square))
    assert density.mean() * 3.6**2 == pytest.approx(1, abs=0.1)


def test_density_of_normal_data():
    data = np.random.default_rng(0).normal(2, 3, size=(5000, 2))
    model = ConsistencyModel(
        max_iter=1, teacher_iter=800, hidden_layer_sizes=(32,), random_state=0
    ).fit(data)
    rows = data[:200]
    expected = -np.square((rows - 2) / 3).sum(axis=1) / 2 - np.log(2 * np.pi * 9)
    difference = model.score_samples(rows) - expected
    assert abs(difference.mean()) < 0.05
    np.testing.assert_array_less(np.abs(difference), 0.5)


def test_boundary(ring, classed):
    """At the least noise nothing changes, after training too."""
    rows = reference.ring(50, np.random.default_rng(7))
    module, t = ring.ema_module_, torch.full((50,), ring.sigma_min).double()
    Z = torch.from_numpy(rows).float()
    assert torch.equal(module(Z, t), Z)
    np.testing.assert_allclose(ring.denoise(rows, ring.sigma_min), rows, atol=1e-12)
    np.testing.assert_allclose(classed.denoise(X, 0.002, y=Y), X, atol=1e-12)


def test_denoise(ring):
    """Noisy rows come nearer to the modes; batches do not matter."""
    rng = np.random.default_rng(8)
    rows = reference.ring(300, rng)
    scale = np.sqrt(ring.scaler_.var_) / ring.sigma_data
    noisy = rows + 0.1 * scale * rng.normal(size=rows.shape)
    clean = ring.denoise(noisy, 0.1)
    assert np.abs(clean - rows).mean() < 0.9 * np.abs(noisy - rows).mean()
    np.testing.assert_allclose(ring.denoise(noisy[5:6], 0.1), clean[5:6], atol=1e-10)


def test_classes():
    """Each class has its own place; shares are those of the training rows."""
    y = np.repeat(["left", "right", "top"], [200, 100, 100])
    centres = {"left": (-3, 0), "right": (3, 0), "top": (0, 3)}
    data = np.array([centres[label] for label in y]) + 0.3 * RNG.normal(size=(400, 2))
    model = ConsistencyModel(
        max_iter=500, hidden_layer_sizes=(32, 32), random_state=0
    ).fit(data, y)
    classifier = LogisticRegression().fit(data, y)
    np.testing.assert_array_equal(model.classes_, ["left", "right", "top"])
    np.testing.assert_allclose(model.class_prior_, [0.5, 0.25, 0.25])
    samples, labels = model.sample(2000)
    assert classifier.score(samples, labels) > 0.95
    shares = [(labels == label).mean() for label in model.classes_]
    np.testing.assert_allclose(shares, model.class_prior_, atol=0.04)
    samples, labels = model.sample(100, y="top")
    assert (labels == "top").all() and (
        classifier.predict(samples) == "top"
    ).mean() > 0.9
    wanted = np.array(["right", "left"] * 20)
    samples, labels = model.sample(y=wanted)
    assert samples.shape == (40, 2) and (labels == wanted).all()
    assert classifier.score(samples, wanted) > 0.9
    samples, labels = model.sample(200, sampler="teacher")
    assert classifier.score(samples, labels) > 0.9
    # Rows of other classes are less dense.
    left = data[:20]
    own, other = (model.score_samples(left, y=c).mean() for c in ("left", "right"))
    assert own > other + 2
    assert model.score(data, y) > model.score(data, np.full(400, "top"))


def test_kde_teacher_by_class():
    """The model holds no training rows."""
    y = np.arange(400) % 2
    data = np.column_stack([4.0 * y - 2, 0 * y]) + 0.3 * RNG.normal(size=(400, 2))
    model = ConsistencyModel(
        method="distillation",
        teacher="kde",
        max_iter=500,
        hidden_layer_sizes=(32,),
        random_state=0,
    ).fit(data, y)
    samples, labels = model.sample(1000)
    assert ((samples[:, 0] > 0) == labels).mean() > 0.95
    assert not hasattr(model, "teacher_") and model.net_.criterion_.denoise is None
    assert (
        len(pickle.dumps(model))
        < len(pickle.dumps(clone(model).fit(data[:50], y[:50]))) + 2000
    )


@pytest.mark.parametrize("method", ["tuning", "training", "distillation"])
@pytest.mark.parametrize("schedule", ["decay", "vp"])
def test_methods(method, schedule):
    model = quick(method=method, schedule=schedule, n_discretization=20).fit(X)
    assert hasattr(model, "teacher_") == (method != "training")
    assert np.isfinite(model.sample(10)).all() and model.n_iter_ == 20
    assert model.schedule_[0] == 0.002 and model.schedule_[-1] == 80
    assert len(model.schedule_) == model.n_discretization_ + 1
    assert len(model.loss_curve_) == 1 and np.isfinite(model.loss_curve_).all()
    assert model.n_discretization_ == 20 or method == "tuning"


def test_number_of_steps_follows_the_data():
    """Nearly collinear columns have a small scale, which needs more steps."""
    near = np.column_stack([X[:, 0], X[:, 0] + 0.05 * X[:, 1]])
    for data, n in ((X, 320), (near, 640)):
        model = quick(method="training", max_iter=2).fit(data)
        assert model.n_discretization_ == n
    assert quick(method="training", tol=0.1).fit(X).n_discretization_ == 40
    assert quick(max_iter="auto").fit(X).n_iter_ == 240


@pytest.mark.parametrize("method", ["tuning", "distillation"])
def test_reproducible(method):
    state = torch.random.get_rng_state()
    model = quick(method=method, random_state=3).fit(X, Y)
    first, labels = model.sample(5)
    again, _ = clone(model).fit(X, Y).sample(5)
    refitted, _ = model.fit(X, Y).sample(5)
    other, _ = model.sample(5, random_state=4)
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, refitted)
    assert not np.isclose(first, other).all(axis=1).any()
    differently, _ = (
        model.set_params(random_state=5).fit(X, Y).sample(5, random_state=3)
    )
    assert not np.isclose(first, differently).all(axis=1).any()


def test_average_of_the_weights():
    """Each step keeps the share `decay` of it, the first ones less."""
    from skextra.generative._training import Averaging

    class Net:
        module_ = torch.nn.Linear(1, 1, bias=False)

    averaging, weight = Averaging(0.5), Net.module_.weight
    values, expected = [2.0, -1.0, 4.0, 0.0], 1.0
    weight.data.fill_(1.0)
    averaging.on_train_begin(Net)
    for k, value in enumerate(values):
        weight.data.fill_(value)
        averaging.on_batch_end(Net, training=True)
        averaging.on_batch_end(Net, training=False)
        decay = min(0.5, (1 + k) / (10 + k))
        expected = decay * expected + (1 - decay) * value
    assert averaging.module.weight.item() == pytest.approx(expected, rel=1e-6)
    assert weight.item() == 0 and not averaging.module.weight.requires_grad


def test_pickle(classed):
    other = pickle.loads(pickle.dumps(classed))
    np.testing.assert_array_equal(other.sample(5)[0], classed.sample(5)[0])
    np.testing.assert_array_equal(other.score_samples(X), classed.score_samples(X))


def test_weights(classed, tmp_path):
    """What makes the samples is saved."""
    classed.save_weights(tmp_path / "weights.safetensors")
    other = quick(random_state=9).fit(X, Y)
    before = other.sample(5, random_state=0)[0]
    other.load_weights(tmp_path / "weights.safetensors")
    after = other.sample(5, random_state=0)[0]
    np.testing.assert_array_equal(after, classed.sample(5, random_state=0)[0])
    assert not np.isclose(after, before).all()


@pytest.mark.parametrize(
    ("y", "conditional", "classes"),
    [
        (Y, "auto", ["a", "b", "c"]),
        (Y, True, ["a", "b", "c"]),
        (Y, False, None),
        (None, "auto", None),
        (X[:, 0], "auto", None),
        (X[:, 0], False, None),
        (np.arange(60), "auto", None),
        (np.arange(60) // 2, "auto", list(range(30))),
        (np.arange(60)[:, None] % 2, "auto", [0, 1]),
        (X[:, :2] > 0, "auto", None),
    ],
)
def test_what_counts_as_classes(y, conditional, classes):
    model = quick(max_iter=1, method="training", conditional=conditional).fit(X, y)
    assert hasattr(model, "classes_") == (classes is not None)
    if classes is None:
        assert model.sample(2).shape == (2, 3)
        model.score(X, y)
    else:
        assert list(model.classes_) == classes
        assert [len(part) for part in model.sample(2)] == [2, 2]


def test_frames():
    frame = pd.DataFrame(
        {
            "age": RNG.integers(18, 90, 80),
            "city": pd.Categorical(RNG.choice(["Oslo", "Rome"], 80)),
            "height": RNG.normal(1.7, 0.1, 80),
            "fixed": 7,
        }
    )
    model = quick(categorical_features="from_dtype").fit(frame)
    samples = model.sample(20)
    pd.testing.assert_series_equal(samples.dtypes, frame.dtypes)
    assert (samples["fixed"] == 7).all() and set(samples["city"]) <= {"Oslo", "Rome"}
    assert model.score(frame) <= 0
    assert list(model.feature_names_in_) == list(frame)
    pd.testing.assert_frame_equal(model.denoise(frame, 0.002), frame)
    named = quick(categorical_features=["city"]).fit(pl.from_pandas(frame))
    assert named.sample(3).schema == pl.from_pandas(frame).schema
    by_mask = quick(categorical_features=[False, True, False, False]).fit(frame)
    pd.testing.assert_frame_equal(by_mask.sample(20), samples)
    by_number = quick(categorical_features=[1], clip=True).fit(frame.to_numpy())
    assert by_number.sample(3).dtype == object
    numbers = quick(clip=True).fit(frame[["age", "height"]]).sample(200)
    assert numbers["height"].between(frame["height"].min(), frame["height"].max()).all()


def test_tau_is_tuned():
    model = quick(tau="auto", max_iter=50).fit(X, Y)
    assert model.tau_.shape == (1,) and 0.1 <= model.tau_[0] <= 3.2
    assert model.sample(3, n_steps=2)[0].shape == (3, 3)
    assert quick(tau=[2.0, 0.5]).fit(X).sample(3, n_steps=3).shape == (3, 3)
    assert quick(tau="auto").fit(X[:3]).sample(2).shape == (2, 3)


def test_images():
    """Two pictures of 4 x 4 pixels, by class; the borders are constant."""
    pictures = np.zeros((2, 4, 4))
    pictures[0, 1:3, 1] = pictures[1, 1, 1:3] = 1.0
    y = np.arange(200) % 2
    data = pictures[y] + 0.05 * RNG.normal(size=(200, 4, 4)) * (
        pictures.sum(axis=0) > 0
    )
    model = ConsistencyModel(
        input_shape=(4, 4),
        hidden_layer_sizes=(8, 8),
        scaling="global",
        max_iter=200,
        batch_size=64,
        random_state=0,
    ).fit(data.reshape(200, 16), y)
    samples, labels = model.sample(50, n_steps=2)
    errors = np.abs(samples.reshape(-1, 1, 4, 4) - pictures).mean(axis=(2, 3))
    assert (errors.argmin(axis=1) == labels).mean() > 0.9
    assert not samples.reshape(-1, 4, 4)[:, 0].any()
    rows = data.reshape(200, 16)
    assert model.score(rows, y) > model.score(1 - rows, y)


def test_score_and_search():
    model = quick(max_iter=1).fit(X)
    assert model.score(X) == model.score(X) < 0
    sizes = [(4,), (16, 16)]
    search = GridSearchCV(
        quick(max_iter=150, learning_rate=0.01, conditional=False),
        {"method": ["tuning"], "hidden_layer_sizes": sizes},
        cv=2,
        error_score="raise",
    ).fit(reference.ring(100, RNG))
    assert (search.cv_results_["mean_test_score"] < 0).all()
    pipe = make_pipeline(MinMaxScaler(), quick()).fit(X)
    assert pipe[-1].sample(2).shape == (2, 3) and pipe.score(X) < 0


def test_score_prefers_the_right_distribution(ring):
    rows = reference.ring(1000, np.random.default_rng(9))
    assert ring.score(rows) > ring.score(rows + 0.3) > ring.score(rows + 2)


def test_callbacks():
    """scikit-learn's, over the epochs of both networks, and skorch's."""
    from skorch.callbacks import Callback

    class Count(Callback):
        epochs = 0

        def on_epoch_end(self, net, **kwargs):
            Count.epochs += 1

    monitor = ScoringMonitor(scoring=None)
    model = quick(max_iter=150, teacher_iter=250, callbacks=[Count()])
    model.set_callbacks(monitor, ProgressBar()).fit(X)
    assert Count.epochs == 5 and model.n_iter_ == 150
    assert len(model.loss_curve_) == 2 and len(model.history_) == 2


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_score_does_not_depend_on_a_shift(offset):
    X = np.random.default_rng(0).normal(size=(60, 3))
    common = {"max_iter": 20, "hidden_layer_sizes": (16,), "random_state": 0}
    here = ConsistencyModel(**common).fit(X).score(X)
    there = ConsistencyModel(**common).fit(X + offset).score(X + offset)
    assert_allclose(there, here, rtol=1e-6)


def test_levels_of_further_evaluations_are_used_when_given():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = ConsistencyModel(max_iter=20, hidden_layer_sizes=(16,), random_state=0).fit(
        X
    )
    asked, given = (
        model.sample(50, n_steps=n_steps, tau=[0.8, 0.3], random_state=1)
        for n_steps in (3, None)
    )
    assert_array_equal(given, asked)
    assert not np.array_equal(given, model.sample(50, random_state=1))


def test_no_training_row_is_kept():
    frame = pd.DataFrame(
        np.random.default_rng(0).normal(size=(50, 2)), columns=["a", "b"]
    )
    values = weakref.ref(frame)
    model = ConsistencyModel(max_iter=5, hidden_layer_sizes=(8,)).fit(frame)
    block = model._table.template.to_numpy()
    while block.base is not None:
        block = block.base
    assert block.size == 0
    del frame
    gc.collect()
    assert values() is None


def test_pieces_do_not_change_densities(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = ConsistencyModel(max_iter=20, hidden_layer_sizes=(16,), random_state=0).fit(
        X
    )
    whole = model.score_samples(X), model.denoise(X, 1.0)
    monkeypatch.setattr(_sampling, "CHUNK", 9)
    assert_allclose(model.score_samples(X), whole[0], rtol=1e-10)
    assert_allclose(model.denoise(X, 1.0), whole[1], rtol=1e-10)
