"""Parameters and data that are refused, by errors that say what is accepted."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from skextra.generative import (
    ConsistencyModel,
    consistency_schedule,
    memorization_report,
    required_discretization,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 2)), np.arange(30) % 3
QUICK = {"max_iter": 2, "hidden_layer_sizes": (4,), "random_state": 0}


def model(**params):
    return ConsistencyModel(**QUICK | params)


@pytest.fixture(scope="module")
def plain():
    return model(method="training").fit(X)


@pytest.fixture(scope="module")
def classed():
    return model().fit(X, Y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "continuous"),
        ("schedule", "cosine"),
        ("rho", 0),
        ("rho", -1.0),
        ("sigma_min", 0),
        ("sigma_min", -0.1),
        ("sigma_max", 0),
        ("sigma_data", 0),
        ("n_discretization", 1),
        ("n_discretization", "many"),
        ("n_discretization", 10.0),
        ("tol", 0),
        ("hidden_layer_sizes", 128),
        ("max_iter", 0),
        ("max_iter", "all"),
        ("teacher", "vp"),
        ("teacher_iter", 0),
        ("optimizer", None),
        ("optimizer_params", [0.9]),
        ("batch_size", 0),
        ("learning_rate", 0),
        ("ema_decay", 1.0),
        ("loss", "huber"),
        ("index_distribution", "normal"),
        ("gaussian_preconditioning", "yes"),
        ("scaling", "robust"),
        ("categorical_features", "auto"),
        ("clip", None),
        ("conditional", "always"),
        ("tau", 0),
        ("tau", -1.0),
        ("tau", "best"),
        ("input_shape", 8),
        ("device", 0),
        ("random_state", "seed"),
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of Consistency"):
        model(**{name: value}).fit(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sigma_min": 80.0}, "sigma_min must be below sigma_max.*sigma_min=80.0"),
        ({"sigma_max": np.inf}, "sigma_max' parameter|must be finite"),
        ({"hidden_layer_sizes": []}, "hidden_layer_sizes must be a sequence of whole"),
        ({"hidden_layer_sizes": [8.0]}, "each of hidden_layer_sizes must be.*got 8.0"),
        ({"hidden_layer_sizes": [8, 0]}, "each of hidden_layer_sizes must be.*got 0"),
        ({"tau": 0.002}, r"tau must be .* \(0.002, 80.0\]; got 0.002"),
        ({"tau": 81.0}, r"tau must be .*got 81.0"),
        ({"tau": [0.5, 100]}, r"tau must be .*got \[0.5, 100\]"),
        ({"tau": []}, r"tau must be .*got \[\]"),
        ({"tau": ["a"]}, r"tau must be .*got \['a'\]"),
        ({"input_shape": (2,)}, r"input_shape must be \(height, width\) or"),
        ({"input_shape": (2, 0)}, r"input_shape must be \(height, width\) or"),
        ({"input_shape": (8, 8)}, r"\(8, 8\) needs rows of 64 pixels; got 2 columns"),
        ({"conditional": True}, "conditional=True needs y"),
        ({"optimizer": "newton"}, "optimizer='newton' is unknown"),
        ({"optimizer_params": {"lr": 1}}, "must not hold 'lr'"),
    ],
)
def test_parameters_that_do_not_fit(params, message):
    with pytest.raises(ValueError, match=message):
        model(**params).fit(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_no_finite_numbers(bad):
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        model().fit(broken)
    fitted = model().fit(X)
    for method in (fitted.score, fitted.score_samples, lambda X: fitted.denoise(X, 1)):
        with pytest.raises(ValueError, match="NaN|infinity"):
            method(broken)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_categories(missing):
    frame = pd.DataFrame({"a": ["x", "y", missing, "x"], "b": [1.0, 2, 3, 4]})
    frame["a"] = frame["a"].astype(object)
    with pytest.raises(ValueError, match="missing values|NaN"):
        model(categorical_features=["a"]).fit(frame)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_numbers_beside_categories(value):
    frame = pd.DataFrame({"a": ["x", "y", "x", "x"], "b": [1.0, 2, 3, value]})
    with pytest.raises(ValueError, match="missing values; got nan|infinity"):
        model(categorical_features=["a"]).fit(frame)


def test_bad_data(plain):
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        model().fit(X[:1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model().fit(X, Y[:5])
    with pytest.raises(ValueError, match="could not convert string"):
        model().fit(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}))
    with pytest.raises(ValueError, match="continuous"):
        model(conditional=True).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="X has 3 features"):
        plain.score(np.ones((5, 3)))
    with pytest.raises(ValueError, match="not a valid feature name"):
        model(categorical_features=["city"]).fit(pd.DataFrame(X, columns=["a", "b"]))


def test_before_fit():
    for call in (
        lambda: model().sample(),
        lambda: model().score(X),
        lambda: model().denoise(X, 1.0),
        lambda: model().score_samples(X),
    ):
        with pytest.raises(NotFittedError):
            call()


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_bad_numbers_of_samples(plain, n):
    with pytest.raises(ValueError, match=f"n_samples must be .*got {n!r}"):
        plain.sample(n)
    with pytest.raises(ValueError, match=f"n_steps must be .*got {n!r}"):
        plain.sample(n_steps=n)


@pytest.mark.parametrize("tau", [0.002, 0, 81, "much", [0.5, None]])
def test_bad_levels(plain, tau):
    with pytest.raises(ValueError, match=r"tau must be .*\(sigma_min, sigma_max\]"):
        plain.sample(2, n_steps=2, tau=tau)


def test_too_few_levels(plain):
    with pytest.raises(ValueError, match="n_steps=3 needs 2 values of tau; got 1"):
        plain.sample(2, n_steps=3)
    assert plain.sample(2, n_steps=3, tau=[1.0, 0.5]).shape == (2, 2)


@pytest.mark.parametrize("sigma", [0.001, 81, "1", None])
def test_bad_noise(plain, sigma):
    with pytest.raises(ValueError, match=r"sigma must be a number in \[sigma_min"):
        plain.denoise(X, sigma)


def test_without_teacher(plain):
    assert not hasattr(plain, "score_samples")
    with pytest.raises(AttributeError):
        plain.score_samples(X)
    with pytest.raises(ValueError, match="No teacher was kept"):
        plain.sample(sampler="teacher")
    with pytest.raises(ValueError, match="sampler must be .*got 'heun'"):
        plain.sample(sampler="heun")


def test_bad_classes(plain, classed):
    with pytest.raises(ValueError, match="fitted without classes"):
        plain.sample(3, y=0)
    for call in (
        lambda: classed.sample(3, y=5),
        lambda: classed.score(X, Y + 1),
        lambda: classed.denoise(X, 1.0, y=7),
        lambda: classed.score_samples(X, y=7),
    ):
        with pytest.raises(ValueError, match="y holds classes that fit has not seen"):
            call()
    with pytest.raises(ValueError, match="n_samples must be 1 or .* 3; got 2"):
        classed.sample(2, y=[0, 1, 2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classed.score(X, Y[:4])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classed.denoise(X, 1.0, Y[:4])


def test_no_density():
    many = RNG.normal(size=(10, 65))
    with pytest.raises(ValueError, match="at most 64 columns; got 65"):
        model().fit(many).score_samples(many)
    with pytest.raises(ValueError, match="scaling='quantile'"):
        model(scaling="quantile").fit(X).score_samples(X)
    table = np.column_stack([Y, X])
    with pytest.raises(ValueError, match="categorical columns"):
        model(categorical_features=[0]).fit(table).score_samples(table)


def test_a_failed_refit_leaves_nothing():
    fitted = model().fit(X)
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(np.full((5, 2), np.nan))
    assert not [k for k in vars(fitted) if k.endswith("_") and not k.endswith("_in_")]
    with pytest.raises(NotFittedError):
        fitted.sample()


def test_loss_that_is_no_number():
    with pytest.raises(ValueError, match="training loss became"):
        model(learning_rate=1e30, max_iter=30, optimizer="sgd").fit(X)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((1,), {}, "n_discretization"),
        ((2.0,), {}, "n_discretization"),
        ((5, "cosine"), {}, "kind"),
        ((5,), {"rho": 0}, "rho"),
        ((5,), {"sigma_min": 0}, "sigma_min"),
        ((5,), {"sigma_min": 80}, "sigma_min must be below sigma_max"),
        ((5,), {"sigma_max": np.inf}, "sigma_max"),
    ],
)
def test_bad_schedules(args, kwargs, message):
    with pytest.raises(ValueError, match=message):
        consistency_schedule(*args, **kwargs)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"tol": 0}, "tol"),
        ({"scale": 0}, "scale"),
        ({"rho": 0.5}, "rho must be at least 1"),
        ({"sigma_min": 90}, "sigma_min must be below sigma_max"),
    ],
)
def test_bad_requirements(kwargs, message):
    with pytest.raises(ValueError, match=message):
        required_discretization(**kwargs)


def test_bad_reports():
    with pytest.raises(ValueError, match="minimum of 2"):
        memorization_report(X, X[:1])
    with pytest.raises(ValueError, match="X_synthetic must have the 2 columns"):
        memorization_report(np.ones((4, 3)), X)


@pytest.mark.parametrize("frames", [pd, pl])
def test_categories_that_are_not_named(frames):
    labels = ["u", "v", "w"] * 10
    if frames is pd:
        frame = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(labels)})
    else:
        frame = pl.DataFrame({"a": X[:, 0], "c": labels}).cast({"c": pl.Categorical})
    with pytest.raises(ValueError, match=r"not in categorical_features: \['c'\]"):
        model().fit(frame)
    drawn = model(categorical_features="from_dtype").fit(frame).sample(9)
    assert set(drawn["c"]) <= set("uvw")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", None, "b"] * 10, "no missing values; got None"),
        ([0.0, np.nan, 1.0] * 10, "no missing values; got nan"),
        (["a", 1, "b"] * 10, "classes of one type"),
    ],
)
def test_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        model(conditional=True).fit(X, np.array(labels, dtype=object))


def test_no_class_to_sample(classed):
    with pytest.raises(ValueError, match="at least one class"):
        classed.sample(y=[])
    with pytest.raises(ValueError, match="tau must be None for the teacher"):
        classed.sample(sampler="teacher", tau=0.5)


@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_numbers_without_squares(factor):
    with pytest.raises(ValueError, match="whose squares are doubles; got column 1"):
        model().fit(X * [1, factor])


def test_images_with_categories():
    rows = np.column_stack([np.arange(30) % 2, X, X[:, 0]])
    with pytest.raises(ValueError, match="pixels are numbers"):
        model(input_shape=(2, 2), categorical_features=[0]).fit(rows)


def test_levels_beyond_doubles():
    with pytest.raises(ValueError, match="cannot tell apart"):
        consistency_schedule(10, sigma_min=79.99999999999999)
    with pytest.raises(ValueError, match="beyond what doubles can hold"):
        required_discretization(1e-310)


def test_a_fit_that_fails_in_training_leaves_nothing():
    broken = model(max_iter=50, learning_rate=1e30)
    with pytest.raises(ValueError, match="learning_rate, or clip"):
        broken.fit(X, Y)
    assert not [n for n in vars(broken) if n.endswith("_") and not n.endswith("_in_")]


def test_strings_that_are_not_named():
    frame = pd.DataFrame({"a": X[:, 0], "c": ["u", "v", "w"] * 10})
    with pytest.raises(ValueError, match="not in categorical_features: could not"):
        model().fit(frame)
