"""Cases at the border of a rule, where a slip would not show elsewhere."""

from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from skextra.cluster import (
    GPEnsembleClustering,
    _base_clusterings,
    _consensus,
    _labels,
    _pairs,
    _weights,
    coassociation,
    consensus_labels,
    ensemble_bias_diversity,
    ensemble_weights,
)
from skextra.cluster._base_clusterings import cluster_range
from skextra.cluster._labels import runs_of
from skextra.cluster._pairs import contingency, gram, overlap, target_table
from skextra.cluster._spectrum import leading, products
from skextra.datasets import make_label_ensemble
from tests.cluster import reference
from tests.cluster.common import planted


class Half(KMeans):
    """A clusterer whose `predict` is not what it found in `fit`."""

    def predict(self, X, sample_weight=None):
        return (X[:, 0] > 0).astype(int)


def pair_of_rows(agreeing, n_clusterings):
    """Two rows that so many columns put together."""
    other = np.arange(n_clusterings) >= agreeing
    return np.vstack([np.zeros(n_clusterings, int), other])


@pytest.mark.parametrize(
    ("alpha", "m"), [(0.55, 20), (0.15, 20), (0.07, 100), (0.55, 100), (0.1 + 0.2, 10)]
)
def test_pairs_that_just_reach_the_threshold(alpha, m):
    """0.07 * 100 is a little more than 7, and 0.1 + 0.2 a little more than 3 / 10."""
    agreeing = round(m * alpha)
    assert target_table(m, alpha, "hard")[m, agreeing] == 1
    assert target_table(m, alpha, "hard")[m, agreeing - 1] == 0
    _, info = ensemble_weights(pair_of_rows(agreeing, m), alpha, weighting="uniform")
    assert info.in_touch == 1


@pytest.mark.parametrize("alpha", np.arange(1, 21) / 20)
def test_automatic_threshold_of_a_pair(alpha):
    pair = pair_of_rows(round(20 * alpha), 20)
    _, info = ensemble_weights(pair, "auto", weighting="uniform")
    assert info.alpha == alpha


def test_pairs_are_drawn_for_each_column_anew():
    labels, _ = planted(n=40, m=5, noise=0.4)
    labels = np.column_stack([labels, labels[:, 0]])
    runs = runs_of(labels)
    table, g = target_table(6, 0.5, "soft"), np.diag(gram(runs))
    drawn = overlap(runs, table, g, 0, 50, None, np.random.RandomState(0))
    assert drawn[0] != drawn[5]
    for weighting in ("bias-diversity", "alignment", "minmax"):
        w, info = ensemble_weights(
            labels, exact_below=0, n_pairs=50, weighting=weighting, n_clusters=3
        )
        assert info.bias[0] == info.bias[5]
        assert w[0] == pytest.approx(w[5], rel=1e-6, abs=1e-12)


def test_exact_up_to_the_bound():
    labels, _ = planted(n=60, m=6, noise=0.3)
    n_distinct = len(np.unique(labels, axis=0))
    b = reference.biases(labels, 0.6)
    for bound, is_exact in [(n_distinct, True), (n_distinct - 1, False)]:
        _, info = ensemble_weights(labels, exact_below=bound, n_pairs=3, random_state=0)
        assert np.allclose(info.bias, b) == is_exact


def test_all_rows_decide_the_automatic_threshold_of_small_data():
    labels, _ = planted(n=500, m=10, k=3, noise=0.25)
    with mock.patch.object(_pairs, "nearest_agreement") as nearest:
        nearest.side_effect = lambda codes, counts, probes, _: np.ones(probes.size)
        _pairs.threshold(runs_of(labels), "auto", 5000, None, None)
        asked = np.concatenate([call.args[2] for call in nearest.call_args_list])
    assert_array_equal(np.sort(asked), np.arange(runs_of(labels).counts.size))


def test_nearly_equal_biases_share_the_weight():
    G = np.diag([4.0, 4.0, 8.0])
    w, _ = _weights.quadratic_weights(G, np.array([1, 1 + 1e-10, 1.1]), 0, 9, 1e-8)
    assert_allclose(w, [0.5, 0.5, 0])


def test_weights_that_overflow_or_vanish():
    labels, _ = planted(n=30, m=4, k=3, noise=0.1)
    expected = coassociation(labels)
    for scale in (1e308, 1e-300):
        assert_allclose(coassociation(labels, np.full(4, scale)), expected)
    alone = np.array([[0, 0], [0, 0], [-1, 0]])
    assert coassociation(alone, [1, 1e-13])[0, 2] == 0
    assert coassociation(alone, [1, 1e-11])[0, 2] == 1
    weights, _ = ensemble_weights(planted(n=60, m=12, noise=0.4)[0])
    assert np.all((weights == 0) | (weights >= 1e-12))


def test_rows_of_equal_hash_are_not_merged():
    labels, _ = planted(n=40, m=5, noise=0.3)
    expected = coassociation(labels)
    with mock.patch.object(_labels, "check_random_state") as state:
        state.return_value.randint.return_value = np.zeros(5, np.uint64)
        runs = runs_of(labels)
    assert runs.counts.size == len(np.unique(labels, axis=0))
    together = runs.codes[:, runs.inverse]
    assert_allclose((together[:, :, None] == together[:, None]).mean(axis=0), expected)


def test_number_of_clusters_of_the_base_clusterings():
    X = np.repeat([[0.0], [1], [5]], 4, axis=0)
    model = GPEnsembleClustering(2, k_range=(2, 10), random_state=0).fit(X)
    assert max(base.n_clusters for base in model.estimators_) == 3
    assert cluster_range(None, 2, 10_609) == (2, 100)
    assert cluster_range(None, 2, 99) == (2, 9)
    assert cluster_range(None, 150, 10_609) == (150, 150)


def test_labels_are_those_that_predict_gives():
    X, _ = make_blobs(50, centers=[[-3, 0], [3, 0]], random_state=0)
    base, labels = _base_clusterings.fit_one(Half(5, n_init=1), X)
    assert_array_equal(labels, base.predict(X))
    assert np.unique(base.labels_).size == 5


def test_number_of_threads_reaches_the_kernels():
    labels, _ = planted(n=40, m=5, noise=0.3)
    with mock.patch.object(_pairs, "Parallel", wraps=_pairs.Parallel) as parallel:
        GPEnsembleClustering(3, input="labels", n_jobs=2, random_state=0).fit(labels)
    asked = [call.kwargs["n_jobs"] for call in parallel.call_args_list]
    assert asked == [2, 2, 2]  # G, the target, the samples in touch


def test_tables_of_very_many_clusters():
    """50 000 squared is more than an int32 holds."""
    labels = np.column_stack([np.arange(50_000), np.arange(50_000)[::-1]])
    rows, columns, counts = contingency(runs_of(labels), 0, 1)
    assert rows.size == columns.size == 50_000 and np.all(counts == 1)


def test_minmax_is_nearly_the_minimum():
    labels, _ = planted(n=40, m=4, k=3, noise=0.3)
    weights, info = ensemble_weights(labels, weighting="minmax", n_clusters=3)

    def value(z):
        w = np.exp(z) / np.exp(z).sum()
        return reference.minmax_objective(w, labels, 0.6, 1.0, 3)

    best = min(
        minimize(value, start, method="Nelder-Mead", options={"maxiter": 2000}).fun
        for start in np.random.default_rng(0).normal(size=(3, 4))
    )
    ours = reference.minmax_objective(weights, labels, 0.6, 1.0, 3)
    assert ours <= best + 1e-4 * reference.gram(labels).max()


def test_equal_rows_before_kmeans():
    """The centres belong to directions: none is longer than 1."""
    labels, y = planted(n=80, m=6, k=4, noise=0.2)
    model = GPEnsembleClustering(4, input="labels", random_state=0).fit(labels)
    lengths = np.linalg.norm(model._placement.centers, axis=1)
    assert lengths.max() <= 1 + 1e-12
    again = KMeans(4, n_init=10, random_state=0).fit(model.embedding_)
    of_cluster = model._placement.centers[model.labels_]
    inertia = np.sum((model.embedding_ - of_cluster) ** 2)
    assert inertia == pytest.approx(again.inertia_, rel=1e-6)


def test_circles_are_cut_at_random_places():
    labels, y = make_label_ensemble(
        3000, 6, n_classes=2, k_range=(7, 7), noise=0, random_state=0
    )
    same = coassociation(labels)
    np.fill_diagonal(same, 0)
    assert set(np.unique(same)) >= {0, 1 / 6, 0.5, 5 / 6, 1}
    more = [np.unique(labels[y == 0, t]).size for t in range(6)]
    assert set(more) == {3, 4}  # the class with the fourth arc changes


def test_consensus_of_weights_of_any_scale():
    labels, _ = planted(n=60, m=6, k=3, noise=0.2)
    expected = consensus_labels(labels, 3, random_state=0)
    found = consensus_labels(labels, 3, np.full(6, 1e308), random_state=0)
    assert_array_equal(found, expected)


@pytest.mark.parametrize("most", [4000, 0])
def test_separated_groups_are_all_found(most):
    """Each is an eigenvalue of 1, and there are 33 of them."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 33, 1500)
    labels = np.column_stack([y * 5 + rng.integers(0, 5, 1500) for _ in range(4)])
    model = GPEnsembleClustering(
        33, input="labels", weighting="uniform", random_state=0
    )
    with mock.patch("skextra.cluster._spectrum.DENSE", most):
        model.fit(labels)
    assert_allclose(model.eigenvalues_, 1)
    assert adjusted_rand_score(y, model.labels_) == 1


def test_eigenvalues_that_lapack_loses():
    labels = np.column_stack([np.repeat(np.arange(10), 6), np.arange(60)])
    matrix = products(runs_of(labels), np.ones(60))
    scale = np.sqrt(np.repeat([3.31547634e-15, 1], [10, 60]))
    whole = eigh

    def losing(matrix, **settings):
        values, vectors = whole(matrix, **settings)
        lost = "subset_by_index" in settings
        return (values[:1], vectors[:, :1]) if lost else (values, vectors)

    with mock.patch("skextra.cluster._spectrum.eigh", losing):
        values, vectors = leading(matrix, scale, 5, None)
    assert_allclose(values, np.ones(5))
    scaled = scale[:, None] * matrix * scale
    assert_allclose(scaled @ vectors, vectors, atol=1e-12)
    assert np.all(vectors[np.abs(vectors).argmax(axis=0), np.arange(5)] > 0)


def test_repeated_rows_count_in_kmeans():
    """Two small groups are nearer to each other than to the large one's halves."""
    labels = np.repeat([[0, 0], [0, 1], [1, 2], [1, 3]], [200, 200, 2, 2], axis=0)
    with mock.patch.object(_consensus, "KMeans", wraps=KMeans) as kmeans:
        GPEnsembleClustering(3, input="labels", n_init=4, random_state=0).fit(labels)
    assert kmeans.call_args.kwargs["n_init"] == 4
    seen = []
    with mock.patch.object(KMeans, "fit", autospec=True) as fit:
        fit.side_effect = lambda model, X, sample_weight: seen.append(sample_weight)
        with pytest.raises(AttributeError):
            consensus_labels(labels, 3, random_state=0)
    assert sorted(seen[0]) == [2, 2, 200, 200]


def test_random_state_reaches_the_starts_of_kmeans():
    rng = np.random.default_rng(0)
    labels = rng.integers(
        6, size=(80, 5)
    )  # nothing to find: every start ends elsewhere
    fits = [
        GPEnsembleClustering(
            6, input="labels", weighting="uniform", n_init=1, random_state=seed
        ).fit_predict(labels)
        for seed in range(4)
    ]
    assert any(adjusted_rand_score(fits[0], other) < 0.99 for other in fits[1:])


def test_pairs_that_only_clusterings_of_weight_zero_have_seen():
    labels = np.array([[0, -1], [0, -1], [1, 0], [1, 0], [-1, 0], [-1, 1], [-1, 1]])
    found = consensus_labels(labels, 3, [1, 0], "average")
    assert_array_equal(found, [0, 0, 1, 1, 1, 2, 2])


@pytest.mark.parametrize("alpha", [0.3, 0.6])
def test_bias_of_the_function_for_weights(alpha):
    labels, _ = planted(n=30, m=5, noise=0.4)
    found = ensemble_bias_diversity(labels, np.ones(5), alpha)
    assert_allclose(found.bias, reference.biases(labels, alpha))


def test_labels_beyond_what_floats_hold():
    labels = np.array([[2**53, 1], [2**53 + 1, 1], [2**53 + 1, 0]])
    assert coassociation(labels)[0, 1] == 0.5
    with pytest.raises(ValueError, match=r"below 2\*\*53 for floating-point"):
        coassociation(labels.astype(float))


def test_number_of_eigenvalues_of_minmax():
    labels, _ = planted(n=40, m=5, k=4, noise=0.4)
    model = GPEnsembleClustering(
        4, input="labels", weighting="minmax", random_state=0
    ).fit(labels)
    found = [
        ensemble_weights(labels, weighting="minmax", n_clusters=k)[0] for k in (2, 4)
    ]
    assert_allclose(model.weights_, found[1])
    assert not np.allclose(model.weights_, found[0], atol=1e-3)


def test_automatic_threshold_does_not_warn_of_itself(recwarn):
    for seed in range(6):
        labels, _ = make_label_ensemble(
            1500, 20, k_range=(20, 60), noise=0.1, random_state=seed
        )
        _, info = ensemble_weights(labels, "auto", random_state=seed)
        assert info.in_touch >= 0.9
    assert not recwarn


@pytest.mark.parametrize("k", [2, 30])
def test_many_clusters_of_low_rank(k):
    """Where the iterative solver fails, and where there is nothing to iterate."""
    labels = np.column_stack([np.arange(60) // 2] * 3)
    model = GPEnsembleClustering(k, input="labels", random_state=0)
    expected = model.fit(labels).eigenvalues_
    with mock.patch("skextra.cluster._spectrum.DENSE", 0):
        assert_allclose(model.fit(labels).eigenvalues_, expected, atol=1e-9)
    assert np.unique(model.labels_).size == k
