"""The functions on label matrices: results, kinds of input, errors."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning

from skextra.cluster import (
    _consensus,
    coassociation,
    consensus_labels,
    ensemble_bias_diversity,
    ensemble_weights,
)
from tests.cluster import reference
from tests.cluster.common import (
    draw_weights,
    examples,
    first_seen,
    label_matrices,
    planted,
)

LABELS, Y = planted(n=30, m=6, k=3, missing=0.2)
CALLS = {
    "coassociation": coassociation,
    "ensemble_weights": ensemble_weights,
    "ensemble_bias_diversity": lambda labels: ensemble_bias_diversity(
        labels, np.ones(np.shape(labels)[-1:])
    ),
    "consensus_labels": lambda labels: consensus_labels(labels, 2, random_state=0),
}
call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@examples(80)
@given(label_matrices(), st.one_of(st.none(), st.integers(0, 1000)))
def test_coassociation(labels, seed):
    w = None if seed is None else draw_weights(labels.shape[1], seed)
    expected = reference.coassociation(labels, w)
    scaled = None if w is None else 100 * w
    dense = coassociation(labels, scaled)
    assert_allclose(dense, expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(dense, dense.T)
    sparse = coassociation(labels, scaled, sparse=True)
    assert isinstance(sparse, csr_array)
    assert sparse.has_sorted_indices
    assert_allclose(sparse.toarray(), expected, rtol=1e-9, atol=1e-12)
    assert sparse.nnz == np.count_nonzero(expected)


@pytest.mark.parametrize("sparse", [False, True])
def test_coassociation_with_weights_of_zero(sparse):
    labels = [[0, 0, -1], [0, 1, 0], [1, -1, 0], [1, 1, -1]]
    found = coassociation(labels, [0, 2, 0], sparse=sparse)
    found = found.toarray() if issparse(found) else found
    expected = [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 1]]
    assert_allclose(found, expected)


def test_rows_and_labels_of_numpy_pandas_and_polars():
    columns = dict(zip("abcdef", LABELS.T))
    holes = [[None if label < 0 else int(label) for label in c] for c in LABELS.T]
    holes = dict(zip("abcdef", holes))
    with_nan = np.where(LABELS < 0, np.nan, LABELS)
    kinds = [
        LABELS.tolist(),
        LABELS.astype(np.int8),
        LABELS.astype(np.float32),
        with_nan,
        np.asfortranarray(with_nan),
        pd.DataFrame(columns),
        pd.DataFrame(with_nan),
        pd.DataFrame({name: pd.array(c, "Int64") for name, c in holes.items()}),
        pl.DataFrame(columns),
        pl.DataFrame(holes),
    ]
    for function in CALLS.values():
        expected = function(LABELS)
        for labels in kinds:
            found = function(labels)
            if isinstance(found, tuple):
                assert_array_equal(found[0], expected[0])
            elif isinstance(found, np.ndarray):
                assert_array_equal(found, expected)
            else:
                assert_array_equal(found.bias, expected.bias)


@call
def test_labels_are_not_changed(call):
    labels = np.where(LABELS < 0, np.nan, LABELS)
    before = labels.copy()
    call(labels)
    assert_array_equal(labels, before)


def test_labels_of_any_size():
    names = np.array([2**62, 0, 2**53 + 1, 2**53])
    labels = np.column_stack([names, names[::-1]])
    assert_array_equal(coassociation(labels), np.eye(4))
    unsigned = labels.astype(np.uint64)
    assert_array_equal(coassociation(unsigned), np.eye(4))
    assert_array_equal(coassociation(labels % 2 == 1), coassociation(labels % 2))


@pytest.mark.parametrize("method", ["spectral", "average"])
@pytest.mark.parametrize("cluster_weighting", [None, "entropy"])
def test_consensus(method, cluster_weighting):
    labels, y = planted(n=60, m=8, k=4, noise=0.15)
    settings = {"method": method, "cluster_weighting": cluster_weighting}
    found = consensus_labels(labels, 4, random_state=0, **settings)
    assert found.dtype == np.int32 and found.shape == (60,)
    assert_array_equal(first_seen(found), y)
    again = consensus_labels(labels, 4, 5 * np.ones(8), random_state=0, **settings)
    assert_array_equal(again, found)
    # columns of weight 0 are as good as absent
    noise = np.random.default_rng(0).integers(4, size=(60, 5))
    more = np.column_stack([labels, noise])
    again = consensus_labels(more, 4, [1] * 8 + [0] * 5, random_state=0, **settings)
    assert_array_equal(first_seen(again), y)


def test_average_consensus_against_the_reference():
    labels, _ = planted(n=20, m=24, k=4, noise=0.45, missing=0.2)
    w = draw_weights(24)
    factors = reference.entropy_factors(labels)
    for k in range(1, 21):
        found = consensus_labels(labels, k, w, "average")
        expected = reference.average_linkage_labels(labels, w, k)
        assert_array_equal(first_seen(found), expected)
        found = consensus_labels(labels, k, w, "average", cluster_weighting="entropy")
        expected = reference.average_linkage_labels(labels, w, k, factors)
        assert_array_equal(first_seen(found), expected)


def test_consensus_is_repeatable():
    labels, _ = planted(n=60, m=4, k=5, noise=0.6)
    first, second = (consensus_labels(labels, 5, random_state=3) for _ in range(2))
    assert_array_equal(first, second)
    state = np.random.RandomState(0)
    first = consensus_labels(labels, 5, random_state=state)
    second = consensus_labels(labels, 5, random_state=np.random.RandomState(0))
    assert_array_equal(first, second)


@examples(40)
@given(label_matrices(), st.data())
def test_consensus_puts_equal_rows_together(labels, data):
    _, same = np.unique(np.maximum(labels, -1), axis=0, return_inverse=True)
    k = data.draw(st.integers(1, same.max() + 1))
    found = consensus_labels(labels, k, n_init=1, random_state=0)
    assert found.min() >= 0 and found.max() < k
    assert len(set(zip(same, found))) == same.max() + 1


def test_warning_of_too_few_iterations():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    noisy = rng.random((90, 40)) < np.linspace(0, 1, 40)
    labels = np.where(noisy, rng.integers(9, size=(90, 40)), y[:, None])
    with pytest.warns(
        ConvergenceWarning, match="after 1 iterations.* tol=1e-08"
    ) as caught:
        _, info = ensemble_weights(labels, max_iter=1)
    assert caught[0].filename == __file__
    assert info.n_iter == 1 and info.kkt_gap > 1e-8
    _, info = ensemble_weights(labels, max_iter=1, tol=1.0)
    assert info.kkt_gap <= 1


@call
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[0, 0.5], [1, 1]], "labels must be integers.* got 0.5 in row 0, column 1"),
        ([[0, 1], [1, -1.5]], "labels must be integers.* got -1.5 in row 1"),
        ([[0.0, 1], [1, np.inf]], "labels .*inf"),
        ([[0.0, 1], [1, 2.0**63]], "labels must be integers"),
        ([["a", "b"], ["c", "d"]], "(?i)labels|numeric|string"),
        ([[0], [1]], "minimum of 2"),
        ([[0, 1]], "minimum of 2"),
        ([0, 1, 2], "labels|2D array"),
        (np.zeros((2, 2, 2)), "labels|dim 3"),
        ([[0, 1], [-1, -1], [-1, np.nan]], "none in rows 1, 2"),
        ([[0, -1], [1, np.nan]], "none in columns 1"),
        (csr_array(np.eye(3)), "(?i)sparse"),
        ([[0, 1j], [1, 1]], "(?i)complex"),
    ],
)
def test_bad_labels(call, labels, message):
    error = TypeError if issparse(labels) else ValueError
    with pytest.raises(error, match=message):
        call(labels)


def test_many_rows_without_a_label_are_not_all_listed():
    labels = np.full((40, 2), -1)
    labels[:5] = 1
    with pytest.raises(ValueError, match=r"5, 6, .*14 and 25 more"):
        coassociation(labels)


@pytest.mark.parametrize("name", ["coassociation", "consensus", "bias"])
@pytest.mark.parametrize(
    "weights",
    [[1, 1], np.ones(7), np.ones((6, 1)), [1, 1, 1, 1, 1, -1e-9], np.zeros(6),
     [np.nan] * 6, [np.inf] * 6, ["a"] * 6],
)  # fmt: skip
def test_bad_weights(name, weights):
    functions = {
        "coassociation": lambda: coassociation(LABELS, weights),
        "consensus": lambda: consensus_labels(LABELS, 2, weights),
        "bias": lambda: ensemble_bias_diversity(LABELS, weights),
    }
    message = "weights|could not convert"
    with pytest.raises(ValueError, match=message):
        functions[name]()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0}, "'alpha' parameter"),
        ({"alpha": 1.01}, "'alpha' parameter"),
        ({"alpha": np.nan}, "'alpha' parameter"),
        ({"alpha": "most"}, "'alpha' parameter"),
        ({"diversity": -0.1}, "'diversity' parameter"),
        ({"diversity": np.inf}, "diversity"),
        ({"diversity": np.nan}, "'diversity' parameter"),
        ({"weighting": "best"}, "'weighting' parameter"),
        ({"weighting": "minmax"}, "minmax.* needs n_clusters"),
        ({"weighting": "minmax", "n_clusters": 0}, "'n_clusters' parameter"),
        ({"weighting": "minmax", "n_clusters": 1.5}, "'n_clusters' parameter"),
        ({"target": "E"}, "'target' parameter"),
        ({"exact_below": -1}, "'exact_below' parameter"),
        ({"n_pairs": 0}, "'n_pairs' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"tol": -1.0}, "'tol' parameter"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "x"}, "'random_state' parameter"),
    ],
)
def test_bad_settings_of_the_weights(settings, message):
    with pytest.raises(ValueError, match=message):
        ensemble_weights(LABELS, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0}, "'alpha' parameter"),
        ({"alpha": "auto"}, "'alpha' parameter"),
        ({"target": 1}, "'target' parameter"),
        ({"n_pairs": 0}, "'n_pairs' parameter"),
        ({"exact_below": 0.5}, "'exact_below' parameter"),
    ],
)
def test_bad_settings_of_bias_and_diversity(settings, message):
    with pytest.raises(ValueError, match=message):
        ensemble_bias_diversity(LABELS, np.ones(6), **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 0}, "'n_clusters' parameter"),
        ({"n_clusters": 2.0}, "'n_clusters' parameter"),
        ({"n_clusters": 31}, "n_clusters=31 is more than the"),
        ({"method": "ward"}, "'method' parameter"),
        ({"cluster_weighting": "size"}, "'cluster_weighting' parameter"),
        ({"n_init": 0}, "'n_init' parameter"),
        ({"random_state": -1.5}, "'random_state' parameter"),
    ],
)
def test_bad_settings_of_the_consensus(settings, message):
    with pytest.raises(ValueError, match=message):
        consensus_labels(LABELS, **{"n_clusters": 2} | settings)


def test_sparse_takes_a_bool():
    with pytest.raises(ValueError, match="'sparse' parameter"):
        coassociation(LABELS, sparse="yes")


@pytest.mark.parametrize("method", ["spectral", "average"])
def test_consensus_of_columns_of_weight_zero(method):
    labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert np.unique(consensus_labels(labels, 4, method=method)).size == 4
    with pytest.raises(ValueError, match="n_clusters=5 is more than the 4 groups"):
        consensus_labels(labels, 5, [1, 0], method=method)
    labels[2] = [-1, 0]
    # the row that only a clustering of weight 0 knows goes with those it is with there
    labels = np.vstack([labels, [0, 0], [0, 0]])
    found = consensus_labels(labels, 2, [1, 0], method=method, random_state=0)
    assert found[0] == found[1] == found[2] == found[4] == found[5] != found[3]


def test_average_linkage_refuses_what_it_cannot_hold(monkeypatch):
    labels = np.zeros((20_001, 2), dtype=int)
    with pytest.raises(ValueError, match='at most 20000.*n_samples=20001.*"spectral"'):
        consensus_labels(labels, 1, method="average")
    monkeypatch.setattr(_consensus, "MOST_LINKED", 29)
    with pytest.raises(ValueError, match=re.escape("n_samples=30")):
        consensus_labels(LABELS, 2, method="average")
