"""The ways from weighted clusterings to a partition, against dense references."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from skextra.cluster import GPEnsembleClustering, consensus_labels
from skextra.cluster._consensus import (
    Placement,
    affinity_map,
    cluster_shares,
    linked,
    spectral_map,
    stability,
    traced,
)
from skextra.cluster._labels import runs_of
from tests.cluster import reference
from tests.cluster.common import (
    draw_weights,
    examples,
    first_seen,
    label_matrices,
    planted,
)

SEEDS = st.integers(0, 1000)
FACTORS = st.sampled_from([None, "entropy"])
SETTINGS = [
    {},
    {"consensus": "average"},
    {"weighting": "minmax"},
    {"weighting": "alignment"},
    {"weighting": "uniform", "cluster_weighting": "entropy"},
    {"cluster_weighting": "entropy", "consensus": "average", "target": "hard"},
    {"diversity": 0, "alpha": 1.0},
    {"diversity": 30.0, "alpha": 0.05},
    {"alpha": "auto", "exact_below": 0, "n_pairs": 20},
]


def factors_of(labels, cluster_weighting):
    return reference.entropy_factors(labels) if cluster_weighting else None


def shares_of(labels, w, cluster_weighting=None):
    return cluster_shares(runs_of(labels), w, cluster_weighting)


@examples(40)
@given(label_matrices(), SEEDS)
def test_entropy_factors(labels, seed):
    w = draw_weights(labels.shape[1], seed)
    factors = reference.entropy_factors(labels)
    expected = np.concatenate([wt * run for wt, run in zip(w, factors)])
    assert_allclose(shares_of(labels, w, "entropy"), expected, rtol=1e-12)
    plain = np.concatenate([np.full(len(run), wt) for wt, run in zip(w, factors)])
    assert_array_equal(shares_of(labels, w), plain)


def test_entropy_of_clusters_that_the_others_halve():
    y = np.arange(8) % 2
    whole = np.zeros(8, dtype=int)
    labels = np.column_stack([whole, y, y])
    # two of three clusterings halve the only cluster of the first: 2 bits
    expected = [np.exp(-2 / (0.4 * 3)), 1, 1, 1, 1]
    assert_allclose(shares_of(labels, np.ones(3), "entropy"), expected, rtol=1e-14)


@pytest.mark.parametrize("path", ["dense", "operator"])
@examples(40)
@given(labels=label_matrices(), weighting=FACTORS, seed=SEEDS)
def test_spectral_embedding(path, labels, weighting, seed):
    w, runs = draw_weights(labels.shape[1], seed), runs_of(labels)
    factors = factors_of(labels, weighting)
    shares = shares_of(labels, w, weighting)
    largest = min(runs.n_clusters - 1, len(labels), 5)
    assume(largest >= 1)
    expected = reference.spectral_eigenvalues(labels, w, factors, largest + 1)
    expected = np.append(expected, 0)
    most = 4000 if path == "dense" else 0
    for k in range(1, largest + 1):
        with mock.patch("skextra.cluster._spectrum.DENSE", most):
            found, values = spectral_map(runs, shares, k, np.random.RandomState(0))
        assert values.shape == (k,)
        assert_allclose(values, expected[:k], atol=1e-9)
        there = np.count_nonzero(values > 1e-9)
        # equal eigenvalues have no eigenvectors of their own
        gap = expected[there - 1] - expected[there]
        if gap > 1e-5 and expected[there - 1] > 1e-5:
            assert_array_equal(found[:, there:], 0)
            U = Placement(found[:, :there], np.zeros((1, there))).coordinates(
                runs.codes
            )
            U = U[runs.inverse]
            V = reference.spectral_embedding(labels, w, factors, there)
            # The iterations end at a residual of 1e-8, which the gap divides.
            error = 1e-8 / gap if path == "operator" else 0
            assert_allclose(U @ U.T, V @ V.T, atol=1e-6 + error)


def test_eigenvectors_up_to_their_sign():
    labels, _ = planted(n=40, m=6, noise=0.3, missing=0.1)
    w, runs = draw_weights(6), runs_of(labels)
    found, values = spectral_map(runs, shares_of(labels, w), 4, None)
    U = Placement(found, np.zeros((1, 4))).coordinates(runs.codes)[runs.inverse]
    V = reference.spectral_embedding(labels, w, None, 4)
    assert np.all(np.diff(values) < -1e-3)
    signs = np.sign(np.sum(U * V, axis=0))
    assert_allclose(U * signs, V, atol=1e-8)
    assert_allclose(values[0], 1)


def test_estimator_through_the_operator():
    labels, y = planted(n=60, m=6, k=3, noise=0.1)
    model = GPEnsembleClustering(3, input="labels", random_state=0)
    dense = model.fit(labels).labels_, model.eigenvalues_
    with mock.patch("skextra.cluster._spectrum.DENSE", 0):
        model.fit(labels)
    assert_array_equal(first_seen(model.labels_), first_seen(dense[0]))
    assert_allclose(model.eigenvalues_, dense[1], atol=1e-9)
    assert adjusted_rand_score(y, model.labels_) == 1


def test_fewer_eigenvectors_than_clusters():
    """Two clusterings of two clusters: three eigenvalues are not 0, four groups."""
    labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3)
    model = GPEnsembleClustering(4, input="labels", random_state=0).fit(labels)
    assert_allclose(model.eigenvalues_, [1, 0.5, 0.5, 0], atol=1e-9)
    assert_allclose(model.embedding_[:, 3], 0, atol=1e-12)
    assert_array_equal(first_seen(model.labels_), np.tile(np.arange(4), 3))
    assert_array_equal(model.predict(labels), model.labels_)
    assert_array_equal(model.transform(labels), model.embedding_)
    assert len(model.get_feature_names_out()) == model.embedding_.shape[1] == 4


@pytest.mark.parametrize("cluster_weighting", [None, "entropy"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@examples(20)
@given(seed=SEEDS)
def test_average_linkage(cluster_weighting, missing, seed):
    labels, _ = planted(n=14, m=24, k=3, noise=0.5, missing=missing, seed=seed)
    w, runs = draw_weights(24, seed), runs_of(labels)
    factors = factors_of(labels, cluster_weighting)
    shares = shares_of(labels, w, cluster_weighting)
    together = reference.weighted_coassociation(labels, w, factors)
    seen = reference.average(reference.present(labels), w)
    close = reference.ratio(together, seen)[np.triu_indices(14, 1)]
    assume(len(np.unique(close.round(10))) == close.size)  # no ties
    for k in range(1, 15):
        found = linked(runs, shares, w, k)
        expected = reference.average_linkage_labels(labels, w, k, factors)
        assert_array_equal(first_seen(found), expected)


@examples(40)
@given(label_matrices(), FACTORS, SEEDS)
def test_average_linkage_gives_as_many_clusters_as_asked(labels, weighting, seed):
    w, runs = draw_weights(labels.shape[1], seed), runs_of(labels)
    shares = shares_of(labels, w, weighting)
    for k in range(1, runs.counts.size + 1):
        found = linked(runs, shares, w, k)
        assert_array_equal(np.unique(found), np.arange(k))
        assert found.dtype == np.int32


@examples(40)
@given(label_matrices(), FACTORS, st.integers(1, 4), SEEDS)
def test_affinity_and_stability(labels, weighting, k, seed):
    w, runs = draw_weights(labels.shape[1], seed), runs_of(labels)
    clusters = np.random.default_rng(seed).integers(k, size=len(labels))
    clusters[-1] = k - 1  # the others may be empty
    factors = factors_of(labels, weighting)
    expected = reference.affinity(labels, w, clusters, factors)
    found = affinity_map(runs, shares_of(labels, w, weighting), clusters, k)
    Z = np.array([np.isin(np.arange(runs.n_clusters), c) for c in runs.codes.T])
    assert_allclose((Z @ found)[runs.inverse], expected, rtol=1e-10, atol=1e-14)
    ours = stability(runs.codes, found)[runs.inverse]
    assert_allclose(ours, reference.stability(expected), atol=1e-10)


def test_clusterings_of_weight_zero_decide_what_is_left_open():
    assert_array_equal(traced(np.array([0.6, 0.4, 0])), [0.6, 0.4, 1e-9])
    # the first leaves open which two of its three groups go together
    labels = np.repeat([[0, 0], [1, 0], [2, 1]], 10, axis=0)
    for method in ("spectral", "average"):
        found = consensus_labels(labels, 2, [1, 0], method, random_state=0)
        assert_array_equal(first_seen(found), np.repeat([0, 0, 1], 10))


def test_stability_at_its_ends():
    apart = np.column_stack([np.arange(8) % 2] * 3)
    model = GPEnsembleClustering(2, input="labels", random_state=0).fit(apart)
    assert_allclose(model.stability_, 1)
    model.set_params(n_clusters=1).fit(apart)
    assert_array_equal(model.stability_, np.ones(8))
    # the middle row is as often with the left as with the right ones
    labels = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]]
    model = GPEnsembleClustering(3, input="labels", random_state=0).fit(labels)
    assert np.all(model.stability_[[0, 1, 3, 4]] > model.stability_[2])


@pytest.mark.parametrize("settings", SETTINGS)
@examples(15)
@given(data=st.data())
def test_attributes_against_the_references(settings, data):
    labels = data.draw(label_matrices(n_samples=(4, 25)))
    k = data.draw(st.integers(1, len(np.unique(np.maximum(labels, -1), axis=0))))
    model = GPEnsembleClustering(k, input="labels", random_state=0, n_init=2)
    model.set_params(**settings)
    model.fit(labels)
    factors = factors_of(labels, model.cluster_weighting)
    if model.weighting == "uniform":
        assert_array_equal(model.weights_, reference.uniform(labels))
    w = traced(model.weights_)
    assert_array_equal(model.predict(labels), model.labels_)
    assert_allclose(model.transform(labels), model.embedding_, atol=1e-12)
    assert model.labels_.min() >= 0 and model.labels_.max() < k
    if model.consensus == "spectral":
        expected = reference.spectral_eigenvalues(labels, w, factors, k)
        expected = np.pad(expected, (0, k - expected.size))
        assert_allclose(model.eigenvalues_, expected, atol=1e-8)
        # more unconnected groups than eigenvectors leave some of them at the origin
        norms = np.linalg.norm(model.embedding_, axis=1)
        assert_allclose(norms, norms.round(), atol=1e-9)
        assert norms.max() == pytest.approx(1)
    else:
        cut = model.linkage_labels_
        assert_array_equal(np.unique(cut), np.arange(k))
        close = reference.affinity(labels, w, cut, factors)
        assert_allclose(
            model.embedding_, close / close.sum(axis=1, keepdims=True), atol=1e-12
        )
        chosen = close[np.arange(len(close)), model.labels_]
        assert_allclose(chosen, close.max(axis=1), rtol=1e-12)
    # an unused last cluster has no members to be with
    padded = np.zeros((len(labels), k))
    close = reference.affinity(labels, w, model.labels_, factors)
    padded[:, : close.shape[1]] = close
    assert_allclose(model.stability_, reference.stability(padded), atol=1e-9)
    if model.weighting != "uniform":
        w = model.weights_
        assert_allclose(model.diversity_, reference.spread(labels, w), atol=1e-8)
        if model.exact_below:
            b = reference.biases(labels, model.alpha_, model.target)
            assert_allclose(model.bias_, b, atol=1e-8)
            J = reference.objective(
                w, labels, model.alpha_, model.diversity, model.target
            )
            assert_allclose(model.objective_, J, atol=1e-7 * max(1, model.diversity))


@pytest.mark.parametrize("settings", SETTINGS)
def test_clusterings_that_agree_are_the_consensus(settings):
    rng = np.random.default_rng(0)
    for k, m in [(1, 2), (2, 3), (5, 4), (9, 20)]:
        y = np.append(np.arange(k), rng.integers(k, size=40))
        names = [rng.permutation(100)[:k] for _ in range(m)]
        labels = np.column_stack([name[y] for name in names])
        model = GPEnsembleClustering(k, input="labels", random_state=0)
        model.set_params(**settings).fit(labels)
        assert_array_equal(first_seen(model.labels_), first_seen(y))
        assert_allclose(model.weights_, 1 / m)
        for method in ("spectral", "average"):
            found = consensus_labels(labels, k, method=method, random_state=0)
            assert_array_equal(first_seen(found), first_seen(y))


@pytest.mark.parametrize("settings", SETTINGS)
def test_consensus_does_not_depend_on_order_or_names(settings):
    # without diversity one clustering has all the weight, and must know all rows
    missing = 0.1 if settings.get("diversity", 1) else 0.0
    labels, _ = planted(n=60, m=8, k=3, noise=0.12, missing=missing)
    rng = np.random.default_rng(0)
    model = GPEnsembleClustering(3, input="labels", random_state=0)
    model.set_params(**settings | {"n_pairs": 200_000}).fit(labels)
    first = model.labels_
    rows, columns = rng.permutation(60), rng.permutation(8)
    renamed = np.where(labels < 0, -9, 70 - 3 * labels)
    moved = model.fit(renamed[rows][:, columns]).labels_
    assert adjusted_rand_score(first[rows], moved) > 0.9
    twice = model.fit(np.tile(labels, (2, 1))).labels_
    assert_array_equal(first_seen(twice[:60]), first_seen(twice[60:]))
    assert adjusted_rand_score(first, twice[:60]) > 0.9


def test_consensus_beats_the_clusterings():
    labels, y = planted(n=300, m=15, k=4, noise=0.35, missing=0.1)
    single = max(adjusted_rand_score(y, column) for column in labels.T)
    for method in ("spectral", "average"):
        found = consensus_labels(labels, 4, method=method, random_state=0)
        assert adjusted_rand_score(y, found) > single + 0.2


def test_nearest_centre_in_blocks():
    rng = np.random.default_rng(0)
    centers, points = rng.normal(size=(3, 4)), rng.normal(size=(500, 4))
    place = Placement(np.zeros((0, 4)), centers)
    slow = [pdist(np.vstack([x, centers]))[:3].argmin() for x in points]
    assert_array_equal(place.labels(points), slow)
