"""What holds at the borders: odd tables, the order of calls, densities of any network."""

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import energy_distance
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.generative import ConsistencyModel, required_discretization
from skextra.generative._plan import kde_bandwidth, smallest_scale, theory_steps
from skextra.generative._schedule import rounded_up
from tests.recorder import Recorder

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), np.arange(60) % 3


def model(**params):
    common = {"max_iter": 20, "hidden_layer_sizes": (16,), "random_state": 0}
    return ConsistencyModel(**common | params)


@pytest.fixture(scope="module")
def classed():
    return model().fit(X, Y)


def calls(fitted):
    """Use a model in all ways."""
    fitted.sample(3, n_steps=2)
    fitted.sample(3, sampler="teacher")
    fitted.score(X, Y)
    fitted.denoise(X, 1.0, Y)
    fitted.score_samples(X[:2], Y[:2])


def test_use_does_not_change_the_model(classed):
    before = pickle.dumps(classed)
    calls(classed)
    assert pickle.dumps(classed) == before


@pytest.mark.parametrize("tau", [0.8, "auto"])
def test_global_generators_are_left_alone(tau):
    before, stream = torch.get_rng_state(), np.random.mtrand._rand
    draws = pickle.dumps(stream)
    calls(model(tau=tau).fit(X, Y))
    assert torch.equal(torch.get_rng_state(), before)
    assert pickle.dumps(stream) == draws


@pytest.mark.parametrize("method", ["tuning", "distillation"])
def test_the_teacher_is_not_trained_further(method):
    short, long = (
        model(method=method, teacher_iter=10, max_iter=n).fit(X) for n in (1, 30)
    )
    for name, weight in short.teacher_.state_dict().items():
        assert torch.equal(weight, long.teacher_.state_dict()[name])


def test_threads_give_the_same():
    expected = model().fit(X).sample(5)
    with ThreadPoolExecutor(3) as pool:
        for samples in pool.map(lambda _: model().fit(X).sample(5), range(3)):
            assert_array_equal(samples, expected)


def test_random_state_of_samples(classed):
    first, _ = classed.sample(5)
    assert_array_equal(first, classed.sample(5)[0])
    assert not np.array_equal(first, classed.sample(5, random_state=1)[0])
    stream = model(random_state=np.random.RandomState(0)).fit(X)
    assert not np.array_equal(stream.sample(5), stream.sample(5))


@pytest.mark.parametrize("preconditioned", [False, True])
def test_any_density_integrates_to_one(preconditioned):
    x = 5 + 2 * RNG.normal(size=(500, 1))
    fitted = model(gaussian_preconditioning=preconditioned).fit(x)
    points = np.linspace(-25, 35, 300)
    density = np.exp(fitted.score_samples(points[:, None]))
    assert_allclose(np.trapezoid(density, points), 1, atol=2e-3)


@pytest.mark.parametrize("scaling", ["standard", "global"])
def test_density_in_other_units(scaling):
    small, large = X[:5], 3 + 100 * X[:5]
    expected = model(scaling=scaling).fit(X).score_samples(small)
    found = model(scaling=scaling).fit(3 + 100 * X).score_samples(large)
    assert_allclose(found, expected - 3 * np.log(100), rtol=1e-4)


def test_score_of_many_rows_draws_their_classes():
    rng = np.random.default_rng(0)

    def draw(y):
        return rng.normal(10.0 * y[:, None], size=(len(y), 2))

    y = np.repeat([0, 1], 50)
    fitted = model(max_iter=100).fit(draw(y), y)
    y = np.repeat([0, 1], [6500, 1500])
    rows = draw(y)
    found = fitted.score(rows, y)
    assert_allclose(found, fitted.score(rows[::2], y[::2]), atol=0.05)
    # Classes in other proportions are told apart.
    assert found > fitted.score(rows) + 0.1
    assert found > fitted.score(rows, np.zeros(8000, int)) + 0.1


def test_classes_in_proportion():
    y = np.repeat(["few", "many"], [6, 54])
    fitted = model().fit(X, y)
    assert_allclose(fitted.class_prior_, [0.1, 0.9])
    _, drawn = fitted.sample(20000)
    assert_allclose((drawn == "few").mean(), 0.1, atol=0.01)


@pytest.mark.parametrize(
    ("method", "scaling", "loss", "preconditioned"),
    list(
        itertools.product(
            ["tuning", "training", "distillation"],
            ["standard", "global", "quantile"],
            ["squared", "pseudo_huber"],
            [False, True],
        )
    ),
)
def test_combinations(method, scaling, loss, preconditioned):
    fitted = model(
        method=method,
        teacher="kde",
        scaling=scaling,
        loss=loss,
        gaussian_preconditioning=preconditioned,
    ).fit(X)
    samples = fitted.sample(20, n_steps=2)
    assert np.abs(samples).max() < 20
    assert np.all(np.diff(fitted.schedule_) > 0)
    assert len(fitted.schedule_) == fitted.n_discretization_ + 1


@pytest.mark.parametrize(
    "rows",
    [X[:2], X[[0, 0, 0]], np.ones((4, 2)), X[:, :1], np.hstack([X, X]), X[:9].tolist()],
)
@pytest.mark.parametrize("preconditioned", [False, True])
def test_odd_tables(rows, preconditioned):
    fitted = model(gaussian_preconditioning=preconditioned).fit(rows)
    samples = fitted.sample(4, n_steps=2)
    assert samples.shape == (4, np.shape(rows)[1])
    assert np.isfinite(samples).all()
    constant = np.ptp(rows, axis=0) == 0
    assert np.all(samples[:, constant] == np.asarray(rows)[0, constant])
    assert fitted.score(rows) <= 0


def test_more_columns_than_rows():
    wide = RNG.normal(size=(20, 200))
    fitted = model(gaussian_preconditioning=True).fit(wide)
    assert np.isfinite(fitted.sample(3)).all()


@pytest.mark.parametrize("shape", [(7, 5), (1, 1), (2, 1, 6)])
def test_images_of_odd_sizes(shape):
    pixels = RNG.normal(size=(12, int(np.prod(shape))))
    fitted = model(input_shape=shape, hidden_layer_sizes=(4, 4, 4), max_iter=5).fit(
        pixels
    )
    assert fitted.sample(2, n_steps=2).shape == (2, pixels.shape[1])


def test_frame_of_everything():
    frame = pd.DataFrame(
        {
            ("a", 1): X[:40, 0].astype(np.float32),
            ("b", 1): [1, 2, 3, 4] * 10,
            ("c", 1): pd.Categorical(
                ["low", "high"] * 20, categories=["low", "mid", "high"], ordered=True
            ),
            ("d", 1): np.full(40, 7, dtype=np.int8),
        },
        index=np.linspace(5, -5, 40),
    )
    fitted = model(categorical_features="from_dtype").fit(frame)
    samples = fitted.sample(30)
    assert samples.dtypes.equals(frame.dtypes)
    assert samples.index.equals(pd.RangeIndex(30))
    assert not samples.isna().any(axis=None)
    assert set(samples["c", 1]) <= {"low", "high"}
    assert (samples["d", 1] == 7).all()
    assert fitted.score(frame) <= 0
    # Nothing is rounded away at the least noise.
    same = fitted.denoise(frame, fitted.sigma_min)
    pd.testing.assert_frame_equal(same, frame.reset_index(drop=True), rtol=1e-6)


def test_denoise_uses_the_averaged_weights():
    fitted = model(max_iter=50).fit(X)
    with torch.inference_mode():
        Z = torch.from_numpy(fitted._table.transform(X))
        f = fitted.ema_module_.double()
        expected = f(Z, torch.full((60,), 3.0, dtype=torch.float64))
    expected = fitted._table.inverse_transform(expected.numpy())
    assert_allclose(fitted.denoise(X, 3.0), expected, rtol=1e-6)


def test_tuned_tau_is_among_the_better_ones():
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 1.0], 300) + 0.05 * rng.normal(size=300)
    fitted = model(tau="auto", max_iter=100).fit(rows[:, None])
    taus = 0.5 * np.array([0.2, 0.4, 0.8, 1.6, 3.2, 6.4])
    distances = [
        energy_distance(fitted.sample(2000, n_steps=2, tau=tau).ravel(), rows)
        for tau in taus
    ]
    (tuned,) = np.flatnonzero(np.isclose(taus, fitted.tau_))
    assert distances[tuned] <= np.sort(distances)[1]
    assert distances[tuned] < 0.8 * np.max(distances)


def test_rare_categories_are_no_far_outliers():
    table = np.array([["often"]] * 99 + [["once"]] + [["half"]] * 100, dtype=object)
    fitted = model(categorical_features=[0], sigma_data=0.5).fit(table)
    variances = fitted._table.transform(table).var(axis=0)
    assert_allclose(variances.mean(), 0.5**2)
    shares = np.array([0.5, 0.495, 0.005])  # half, often, once
    order = np.argsort(variances)
    expected = np.sort(shares * (1 - shares))
    assert_allclose(variances[order] / variances.sum(), expected / expected.sum())


def test_bandwidth_is_that_of_the_best_density_of_rows_left_out():
    Z = 0.5 * RNG.normal(size=(50, 2))
    found = kde_bandwidth(Z, np.random.RandomState(0))
    widths = found * np.array([0.6, 1.0, 1.7])
    scores = [
        cross_val_score(KernelDensity(bandwidth=h), Z, cv=LeaveOneOut()).mean()
        for h in widths
    ]
    assert np.argmax(scores) == 1


def test_scales_near_the_least_noise_ask_for_no_more_steps():
    scales = [smallest_scale(model(), np.array([s, 0.5])) for s in (0.02, 0.01, 0.0005)]
    found = [theory_steps(model(), scale, "decay", 7.0) for scale in scales]
    assert found == [rounded_up(required_discretization(0.01, 0.02))] * 3


def test_unknown_category_is_refused():
    table = np.array([["a", 1.0], ["b", 2.0]] * 5, dtype=object)
    fitted = model(categorical_features=[0]).fit(table)
    table[0, 0] = "new"
    for call in (fitted.score, lambda rows: fitted.denoise(rows, 1.0)):
        with pytest.raises(ValueError, match="unknown categories"):
            call(table)


def test_last_step_of_a_pipeline():
    frame = pd.DataFrame(X, columns=list("abc"))
    pipeline = make_pipeline(StandardScaler(), model()).set_output(transform="pandas")
    pipeline.fit(frame)
    assert list(pipeline[-1].sample(2).columns) == ["a", "b", "c"]
    assert pipeline.score(frame) <= 0
    assert pipeline.score_samples(frame).shape == (60,)


def test_large_whole_numbers():
    whole = (X * 4e18).clip(-9e18, 9e18).astype(np.int64)
    samples = model().fit(whole).sample(500)
    assert samples.dtype == np.int64
    assert (samples < 0).any()
    assert (samples > 0).any()
    bytes_ = (X * 60 + 100).clip(0, 255).astype(np.uint8)
    samples = model(gaussian_preconditioning=True).fit(bytes_).sample(500)
    assert samples.dtype == np.uint8
    # Overflow would wrap the tails: 0 and 255 hold what lies beyond.
    assert (samples == 0).any()


def test_weights_hold_the_preconditioning(tmp_path):
    first = model(gaussian_preconditioning=True).fit(X)
    second = model(gaussian_preconditioning=True, random_state=1).fit(X * [1, 5, 0.1])
    first.save_weights(tmp_path / "weights")
    second.load_weights(tmp_path / "weights")
    draws = [
        fitted._sampler("consistency", 1, None)(lambda: torch.ones(4, 3), None)
        for fitted in (first, second)
    ]
    assert_allclose(*(draw.detach() for draw in draws))


def test_a_row_of_each_class_is_trained_with():
    y = np.r_[np.zeros(58), 1, 2]
    for seed in range(10):
        fitted = model(tau="auto", random_state=seed, conditional=True, max_iter=2)
        _, held_out = fitted._split(60, y.astype(int), np.random.RandomState(seed))
        assert len(held_out) == 12
        assert not y[held_out].any()


def test_labels_with_missing_values():
    labels = pd.Series(["a", pd.NA, "b"] * 20, dtype="string")
    with pytest.raises(ValueError, match="y must hold no missing values; got <NA>"):
        model().fit(X, labels)


def test_callback_that_ends_the_teacher():
    recorder = Recorder(stop_after=1)
    fitted = model(max_iter=150, teacher_iter=300).set_callbacks(recorder).fit(X)
    assert fitted.n_iter_ == 0
    assert fitted.sample(5).shape == (5, 3)


@pytest.mark.parametrize(("n_rows", "batch_size"), [(21, 4), (161, 16), (10, 3)])
def test_every_iteration_is_done(n_rows, batch_size):
    rows = np.random.default_rng(0).normal(size=(n_rows, 2))
    fitted = model(max_iter=50, batch_size=batch_size).fit(rows)
    assert fitted.net_.criterion_.iteration + 1 == fitted.n_iter_ == 50
    assert abs(fitted.net_.optimizer_.param_groups[0]["lr"]) < 1e-12


def test_tau_of_classes_of_one_row():
    fitted = model(tau="auto", conditional=True, max_iter=2).fit(X[:8], np.arange(8))
    assert len(fitted.tau_) == 1
