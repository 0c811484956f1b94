"""Tables to the network's space and back, and distances."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from skextra.generative import ConsistencyModel, memorization_report
from skextra.generative._distances import energy_distance
from skextra.generative._tables import Table
from tests.generative import reference

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(60, 3)) * [1, 10, 0.1] + [0, 5, -3]


def fitted(X, mask=None, scaling="standard", clip=False):
    table = Table(scaling, 0.5, clip)
    rows = np.asarray(X)
    return table.fit(rows, X, None if mask is None else np.asarray(mask)), rows


@pytest.mark.parametrize("scaling", ["standard", "global", "quantile"])
def test_numbers(scaling):
    table, rows = fitted(NUMBERS, scaling=scaling)
    Z = table.transform(rows)
    assert Z.shape == (60, 3) and table.n_columns == 3
    if scaling == "global":
        shares = NUMBERS.std(axis=0) / np.sqrt(NUMBERS.var(axis=0).mean())
        np.testing.assert_allclose(Z.std(axis=0), 0.5 * shares)
    else:
        assert np.allclose(Z.std(axis=0), 0.5, atol=0 if scaling == "standard" else 0.2)
    back = table.inverse_transform(Z)
    assert back.dtype == np.float64
    np.testing.assert_allclose(back, NUMBERS, rtol=1e-6, atol=1e-6)
    # The distance of rows does not depend on the scaling.
    np.testing.assert_allclose(table.standardized(rows).std(axis=0), 1)
    shared = table.standardized(rows, shared=True)
    assert np.mean(shared.var(axis=0)) == pytest.approx(1)


def test_volume():
    table, rows = fitted(NUMBERS)
    jacobian = np.diff(table.transform(rows[:2]), axis=0) / np.diff(rows[:2], axis=0)
    assert table.log_volume() == pytest.approx(np.log(jacobian).sum())


@pytest.mark.parametrize("scaling", ["standard", "global", "quantile"])
def test_constant_columns_come_back_exactly(scaling):
    X = NUMBERS.copy()
    X[:, 1] = 0.1 + 0.2
    table, rows = fitted(X, scaling=scaling)
    assert np.isfinite(table.transform(rows)).all()
    back = table.inverse_transform(RNG.normal(size=(5, 3)))
    assert (back[:, 1] == 0.1 + 0.2).all()


def test_clip():
    far = np.full((2, 3), 9.0) * [[1], [-1]]
    assert (np.abs(fitted(NUMBERS)[0].inverse_transform(far)[0, 0])) > 5
    back = fitted(NUMBERS, clip=True)[0].inverse_transform(far)
    np.testing.assert_allclose(back, [NUMBERS.max(axis=0), NUMBERS.min(axis=0)])


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int8", "bool", "float32"])
def test_dtypes_of_arrays(dtype):
    X = RNG.integers(0, 2 if dtype == "bool" else 100, size=(50, 2)).astype(dtype)
    table, _ = fitted(X)
    back = table.inverse_transform(table.transform(X))
    assert back.dtype == X.dtype
    np.testing.assert_array_equal(back, X)
    # Far out of range, nothing wraps around.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = table.inverse_transform(np.array([[1e20, -1e20]]))
    if dtype not in ("float32",):
        top = True if dtype == "bool" else np.iinfo(dtype).max
        bottom = False if dtype == "bool" else np.iinfo(dtype).min
        assert float(back[0, 0]) == pytest.approx(float(top))
        assert float(back[0, 1]) == pytest.approx(float(bottom))


def mixed_frame(n=40):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "city": pd.Categorical(
                rng.choice(["Oslo", "Rome"], n), categories=["Rome", "Oslo", "Bonn"]
            ),
            "height": rng.normal(1.7, 0.1, n).astype("float32"),
            "grade": rng.choice([3, 1, 7], n),
            "member": rng.random(n) < 0.5,
            "score": pd.array(rng.integers(0, 9, n), dtype="Int64"),
        }
    )


MASK = [False, True, False, True, False, False]


def test_frames_of_pandas():
    frame = mixed_frame()
    table, rows = fitted(frame, MASK)
    Z = table.transform(rows)
    assert Z.shape == (40, 4 + 2 + 3) == (40, table.n_columns)
    assert np.allclose(Z.mean(axis=0), 0)
    # Each column has the same weight, however many categories it has.
    blocks = [Z[:, :1], Z[:, 4:6], Z[:, 6:]]
    assert np.allclose([block.var(axis=0).mean() for block in blocks], 0.25)
    back = table.inverse_transform(Z)
    pd.testing.assert_frame_equal(back, frame)
    noisy = table.inverse_transform(Z + 0.3 * RNG.normal(size=Z.shape))
    pd.testing.assert_series_equal(noisy.dtypes, frame.dtypes)
    assert set(noisy["grade"]) <= {1, 3, 7}


def test_frames_of_polars():
    frame = pl.from_pandas(mixed_frame()).with_columns(
        pl.col("city").cast(pl.Enum(["Rome", "Oslo", "Bonn"]))
    )
    table, rows = fitted(frame, MASK)
    back = table.inverse_transform(table.transform(rows))
    assert back.schema == frame.schema and back.equals(frame)


def test_arrays_of_objects():
    X = np.array([["a", 1.5], ["b", 2.5], ["a", 3.5]] * 5, dtype=object)
    table, rows = fitted(X, [True, False])
    back = table.inverse_transform(table.transform(rows))
    assert back.dtype == object and (back[:, 0] == X[:, 0]).all()
    np.testing.assert_allclose(back[:, 1].astype(float), X[:, 1].astype(float))


def test_only_categories():
    X = RNG.choice(list("abc"), size=(30, 2))
    table, rows = fitted(X, [True, True])
    assert table.transform(rows).shape == (30, 6)
    np.testing.assert_array_equal(table.inverse_transform(table.transform(rows)), X)


def test_one_category_only():
    X = np.array([["a", 1.0], ["a", 2.0]], dtype=object)
    table, rows = fitted(X, [True, False])
    Z = table.transform(rows)
    assert np.isfinite(Z).all() and (table.inverse_transform(Z)[:, 0] == "a").all()


def test_unknown_category():
    table, _ = fitted(np.array([["a"], ["b"]]), [True])
    with pytest.raises(ValueError, match="unknown categories"):
        table.transform(np.array([["c"]]))


@pytest.mark.parametrize("d", [1, 3])
def test_energy_distance(d):
    X, Y = RNG.normal(size=(30, d)), RNG.normal(0.5, 2, size=(20, d))
    found = energy_distance(X, Y)
    assert found == pytest.approx(reference.energy_distance(X, Y))
    if d == 1:
        assert found == pytest.approx(stats.energy_distance(X[:, 0], Y[:, 0]))
    assert energy_distance(X, X[::-1]) == pytest.approx(0, abs=1e-4)


def test_report_of_copies():
    train, test, new = RNG.normal(size=(3, 400, 2)) * [1, 100]
    report = memorization_report(np.vstack([train[:100], new[:100]]), train, test)
    assert report.copies == 0.5 and (report.ratios[:100] == 0).all()
    assert report.distances.shape == (200,) and 0.6 < report.closer_to_train < 0.9
    honest = memorization_report(new, train, test)
    assert honest.copies == 0
    assert honest.closer_to_train == pytest.approx(0.5, abs=0.08)
    assert honest.median_ratio == pytest.approx(honest.test_median_ratio, abs=0.06)
    near = memorization_report(train + 1e-3 * new, train, test)
    assert near.median_ratio < 0.1 and near.closer_to_train > 0.95
    # A longer training set is no nearer for being longer.
    longer = memorization_report(new, train, test[:50])
    assert longer.closer_to_train == pytest.approx(0.5, abs=0.2)
    assert memorization_report(new, train).closer_to_train is None


def test_report_distances():
    """The nearest and second nearest by hand, in units of the training deviations."""
    train = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 20.0], [2.0, 20.0]])
    report = memorization_report([[0.5, 0.0], [1.0, 10.0]], train)
    np.testing.assert_allclose(report.distances, [0.5, np.sqrt(2)])
    np.testing.assert_allclose(report.ratios, [1 / 3, 1])


def test_report_of_repeated_rows():
    report = memorization_report([[1.0]], [[1.0], [1.0], [2.0]])
    assert report.copies == 1 and report.ratios[0] == 1


def test_report_refuses_other_columns():
    with pytest.raises(ValueError, match="X_test must have the 2 columns .* got 3"):
        memorization_report(np.ones((2, 2)), np.eye(2), np.ones((2, 3)))
    with pytest.raises(ValueError, match="X_synthetic contains NaN"):
        memorization_report([[np.nan, 1]], np.eye(2))


def test_quantiles_of_a_column_of_ties():
    """Half of the rows are 0: in the network's space they are spread, and come back."""
    rng = np.random.RandomState(0)
    rows = np.where(
        rng.uniform(size=(1000, 1)) < 0.5, 0, np.exp(rng.normal(size=(1000, 1)))
    )
    table = Table("quantile", 0.5, clip=False).fit(rows, rows, None)
    Z = table.transform(rows, rng)
    assert_allclose([Z.mean(), Z.std()], [0, 0.5], atol=0.01)
    back = table.inverse_transform(Z)
    assert np.mean(np.isclose(back, rows, rtol=0.03, atol=0.01)) > 0.98
    order = np.argsort(rows[:, 0], kind="stable")
    assert np.all(np.diff(Z[order, 0])[np.sum(rows == 0) :] > 0)


def test_flags_and_whole_numbers_beside_categories():
    frame = pd.DataFrame(
        {
            "a": RNG.normal(size=40),
            "flag": [True, False] * 20,
            "whole": pd.array([1, 2, 3, 4] * 10, dtype="Int64"),
            "label": pd.Categorical(["low", "high"] * 20),
        }
    )
    model = ConsistencyModel(
        max_iter=5, hidden_layer_sizes=(8,), categorical_features="from_dtype"
    )
    drawn = model.fit(frame).sample(30)
    assert drawn.dtypes.to_dict() == frame.dtypes.to_dict()
    assert model.score(frame) < 0
    with pytest.raises(ValueError, match="missing|NaN"):
        model.fit(frame.assign(whole=pd.array([1, None, 3, 4] * 10, dtype="Int64")))
