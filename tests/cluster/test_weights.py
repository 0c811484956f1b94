"""Bias, diversity and the programmes for the weights, against dense references."""

import warnings
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, nnls
from sklearn.datasets import make_blobs

from skextra.cluster import (
    GPEnsembleClustering,
    SparseTargetWarning,
    ensemble_bias_diversity,
    ensemble_weights,
)
from skextra.cluster._labels import runs_of
from skextra.cluster._numba import nearest_agreement
from skextra.cluster._pairs import (
    ALPHAS,
    gram,
    overlap,
    target_table,
    threshold,
)
from skextra.cluster._spectrum import leading_overlap
from skextra.cluster._weights import minmax_weights, quadratic_weights
from skextra.datasets import make_label_ensemble
from tests.cluster import reference
from tests.cluster.common import draw_weights, examples, label_matrices, planted

ALPHA = st.sampled_from([0.05, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 1.0])
DIVERSITY = st.sampled_from([0.3, 1.0, 2.5, 50.0])
TARGET = st.sampled_from(["soft", "hard"])
SEEDS = st.integers(0, 1000)


def exact_overlap(labels, alpha, target="soft"):
    runs = runs_of(labels)
    table = target_table(labels.shape[1], alpha, target)
    return overlap(runs, table, np.diag(gram(runs)), 10**9, 1, None, 0)


def is_unique(labels, diversity):
    """Whether the objective is strictly convex, by a margin."""
    G = reference.gram(labels)
    return np.linalg.eigvalsh(diversity * G / G.max()).min() > 1e-3


# Bias and diversity


@examples(60)
@given(label_matrices(), ALPHA, TARGET)
def test_pairs_are_counted_as_by_the_dense_matrices(labels, alpha, target):
    assert_array_equal(gram(runs_of(labels)), reference.gram(labels))
    c = exact_overlap(labels, alpha, target)
    assert_allclose(c, reference.target_sums(labels, alpha, target), rtol=1e-12)
    _, info = ensemble_weights(labels, alpha, target=target, weighting="uniform")
    expected = reference.biases(labels, alpha, target)
    assert_allclose(info.bias, expected, rtol=1e-12, atol=1e-9)
    assert info.alpha == alpha and info.n_iter == 0


@examples(40)
@given(label_matrices(), ALPHA, TARGET)
def test_entries_of_the_target(labels, alpha, target):
    agree, seen = (counts.astype(int) for counts in reference.agreement_counts(labels))
    E = target_table(labels.shape[1], alpha, target)[seen, agree]
    confident = reference.is_confident(labels, alpha)
    assert_array_equal(E > 0, confident)
    assert_allclose(E, reference.target(labels, alpha, target), rtol=1e-14)
    runs = runs_of(labels)
    samples = np.arange(runs.counts.size)
    nearest = nearest_agreement(runs.codes, runs.counts, samples, 2.0)[runs.inverse]
    assert_allclose(nearest, reference.nearest_agreement(labels), rtol=1e-14)


@examples(30)
@given(label_matrices(missing=False))
def test_gram_from_the_sizes_of_the_clusters(labels):
    G, m = gram(runs_of(labels)), labels.shape[1]
    sizes = [np.unique(column, return_counts=True)[1] for column in labels.T]
    assert_array_equal(np.diag(G), [np.sum(size**2) for size in sizes])
    A = reference.membership_matrices(labels)
    mirkin = [[np.count_nonzero(a != b) for b in A] for a in A]
    assert_array_equal(np.add.outer(np.diag(G), np.diag(G)) - 2 * G, mirkin)
    norm = np.sum(reference.coassociation(labels) ** 2)
    assert_allclose(norm, G.sum() / m**2, rtol=1e-13)


@examples(60)
@given(label_matrices(), ALPHA, TARGET, SEEDS)
def test_distance_to_the_target_is_bias_less_diversity(labels, alpha, target, seed):
    w = draw_weights(labels.shape[1], seed)
    found = ensemble_bias_diversity(labels, 3 * w, alpha, target=target)
    E = reference.target(labels, alpha, target)
    A = reference.membership_matrices(labels)
    distance = np.sum((reference.average(A, w) - E) ** 2)
    scale = len(labels) ** 2
    assert_allclose(
        found.objective + np.sum(E**2), distance, rtol=1e-12, atol=1e-12 * scale
    )
    distances = [np.sum((a - E) ** 2) for a in A]
    assert_allclose(
        found.bias + np.sum(E**2), distances, rtol=1e-12, atol=1e-12 * scale
    )
    spread = reference.spread(labels, w)
    assert_allclose(found.diversity, spread, rtol=1e-12, atol=1e-12 * scale)
    assert_allclose(
        found.objective, w @ found.bias - found.diversity, atol=1e-12 * scale
    )


def test_info_belongs_to_the_weights():
    labels, _ = planted(missing=0.2)
    for weighting in ("bias-diversity", "minmax", "uniform"):
        w, info = ensemble_weights(
            labels, 0.5, 2.0, weighting=weighting, n_clusters=3, target="hard"
        )
        objective = reference.objective(w, labels, 0.5, 2.0, "hard")
        assert_allclose(info.objective, objective, rtol=1e-12)
        assert_allclose(info.diversity, reference.spread(labels, w), rtol=1e-12)


# The quadratic programme


@examples(80)
@given(label_matrices(), ALPHA, DIVERSITY, TARGET)
def test_quadratic_programme(labels, alpha, diversity, target):
    w, info = ensemble_weights(labels, alpha, diversity, target=target)
    assert_allclose(w.sum(), 1, rtol=1e-10)
    assert w.min() >= 0
    scale = reference.gram(labels).max() * max(1, diversity)
    expected = reference.qp_weights(labels, alpha, diversity, target)
    ours, theirs = (
        reference.objective(v, labels, alpha, diversity, target) for v in (w, expected)
    )
    assert abs(ours - theirs) <= 1e-8 * scale
    assert info.kkt_gap <= 1e-8
    if is_unique(labels, diversity):
        assert_allclose(w, expected, atol=1e-5)


@examples(40)
@given(label_matrices(), ALPHA, DIVERSITY, TARGET)
def test_optimality_conditions(labels, alpha, diversity, target):
    w, info = ensemble_weights(labels, alpha, diversity, target=target)
    G, b = reference.gram(labels), reference.biases(labels, alpha, target)
    gradient = 2 * diversity * G @ w + b - diversity * np.diag(G)
    gap = (gradient[w > 1e-6].max() - gradient.min()) / G.max()
    assert gap <= 2e-8 * max(1, diversity)
    assert info.kkt_gap * max(1, diversity) == pytest.approx(gap, abs=1e-11)


@examples(60)
@given(
    label_matrices(n_clusterings=(2, 2)),
    ALPHA,
    st.sampled_from([0, 0.3, 1.0, 2.5]),
    TARGET,
)
def test_two_clusterings(labels, alpha, diversity, target):
    w, _ = ensemble_weights(labels, alpha, diversity, target=target)
    expected = reference.two_weights(labels, alpha, diversity, target)
    assert_allclose(w, expected, atol=1e-6)


@examples(30)
@given(label_matrices(missing=False))
def test_uniform_weights_reach_the_average(labels):
    m = labels.shape[1]
    w, info = ensemble_weights(labels, 1 / m)
    assert_allclose(w, np.full(m, 1 / m), atol=1e-9)
    norm = np.sum(reference.coassociation(labels) ** 2)
    assert_allclose(info.objective, -norm, rtol=1e-10)


@examples(40)
@given(label_matrices(), ALPHA, TARGET)
def test_bias_alone_shares_the_weight_among_ties(labels, alpha, target):
    w, info = ensemble_weights(labels, alpha, 0, target=target)
    assert_array_equal(w, reference.qp_weights(labels, alpha, 0, target))
    assert info.n_iter == 0 and info.kkt_gap <= 1e-8


def test_two_best_clusterings_tie_without_diversity():
    y = np.arange(12) % 3
    labels = np.column_stack([y, y % 2, 2 - y, np.arange(12)])
    w, _ = ensemble_weights(labels, 0.5, 0)
    assert_array_equal(w, [0.5, 0, 0.5, 0])


def test_much_diversity_makes_the_bias_count_for_nothing():
    labels, _ = planted(n=30, m=5, noise=0.5)
    differ = np.diag(reference.gram(labels))
    differ = np.add.outer(differ, differ) - 2 * reference.gram(labels)
    w, info = ensemble_weights(labels, 0.5, 1e6)
    assert info.kkt_gap <= 1e-8
    best = minimize(
        lambda v: -v @ differ @ v / differ.max(),
        np.full(5, 0.2),
        method="SLSQP",
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        options={"ftol": 1e-14},
    )
    assert_allclose(w, best.x, atol=1e-4)
    assert info.diversity >= 0.999 * best.x @ differ @ best.x / 2


@examples(40)
@given(label_matrices(), ALPHA, DIVERSITY, st.data())
def test_equal_columns_have_equal_weights(labels, alpha, diversity, data):
    m = labels.shape[1]
    first = data.draw(st.integers(0, m - 1))
    renamed = np.where(labels[:, first] < 0, -1, labels[:, first] ^ 1)
    labels = np.column_stack([labels, renamed])
    w, _ = ensemble_weights(labels, alpha, diversity)
    assert_allclose(w[m], w[first], atol=1e-5)  # the ridge is 1e-10


@examples(60)
@given(label_matrices(), ALPHA, DIVERSITY, st.randoms(use_true_random=False))
def test_order_and_names_do_not_matter(labels, alpha, diversity, random):
    n, m = labels.shape
    columns, rows = random.sample(range(m), m), random.sample(range(n), n)
    w, info = ensemble_weights(labels, alpha, diversity)

    moved, there = ensemble_weights(labels[rows][:, columns], alpha, diversity)
    assert_allclose(moved, w[columns], atol=1e-5)
    scale = reference.gram(labels).max() * max(1, diversity)
    assert abs(there.objective - info.objective) <= 1e-9 * scale

    names = np.array([np.unique(column, return_inverse=True)[1] for column in labels.T])
    renamed = np.where(labels < 0, -1, 10 * (names.T.max() + 1 - names.T))
    again, _ = ensemble_weights(renamed, alpha, diversity)
    assert_allclose(again, w, atol=1e-5)


@examples(40)
@given(label_matrices(), ALPHA, DIVERSITY)
def test_doubled_rows_leave_the_weights(labels, alpha, diversity):
    w, info = ensemble_weights(labels, alpha, diversity)
    twice, double = ensemble_weights(np.tile(labels, (2, 1)), alpha, diversity)
    assert_allclose(twice, w, atol=1e-5)
    assert_allclose(double.bias, 4 * info.bias, rtol=1e-12, atol=1e-9)


def test_noise_gets_less_weight_than_agreement():
    labels, _ = planted(n=90, m=6, noise=0.1)
    labels[:, -1] = np.random.default_rng(1).integers(3, size=90)
    for target in ("soft", "hard"):
        w, _ = ensemble_weights(labels, target=target)
        assert w[-1] < w[:-1].min()


def test_random_programmes():
    rng = np.random.default_rng(0)
    for m in (2, 10, 40, 120):
        F = rng.random((m, 2 * m))
        G, b = F @ F.T, rng.normal(size=m) * m
        w, _ = quadratic_weights(G, b, 1.0, 1000, 1e-8)
        gradient = 2 * G @ w + b - np.diag(G)
        active = w > 1e-6
        assert np.ptp(gradient[active]) <= 1e-7 * G.max()
        assert gradient[active].max() <= gradient.min() + 1e-7 * G.max()
        assert w.sum() == pytest.approx(1) and w.min() >= 0


@pytest.mark.parametrize("seed", range(2))
def test_many_clusterings_of_few_rows(seed):
    X, _ = make_blobs(90, centers=3, cluster_std=0.5, random_state=3)
    model = GPEnsembleClustering(
        1, n_estimators=80, weighting="uniform", random_state=seed
    )
    labels = model.fit(X).base_labels_
    w, info = ensemble_weights(labels)
    G, b = reference.gram(labels), reference.biases(labels, 0.6)
    gradient = 2 * G @ w + b - np.diag(G)
    assert info.kkt_gap <= 1e-8
    assert gradient[w > 1e-6].max() - gradient.min() <= 1e-7 * G.max()


# All eigenvalues but k left out


@examples(40)
@given(label_matrices(n_samples=(4, 25)), st.integers(1, 3), SEEDS)
def test_leading_eigenvalues_and_their_slopes(labels, k, seed):
    w = draw_weights(labels.shape[1], seed)
    A = reference.membership_matrices(labels)
    value, slopes = leading_overlap(runs_of(labels), k)(w)
    values = reference.top_eigenvalues(reference.average(A, w), k + 1)
    assert_allclose(value, values[:k].sum(), rtol=1e-10)
    if values[k - 1] - values[k] > 1e-3:  # else there is no gradient
        h = 1e-6
        for t, a in enumerate(A):
            up, down = (
                reference.top_eigenvalues(reference.average(A, w) + s * a, k).sum()
                for s in (h, -h)
            )
            assert_allclose(slopes[t], (up - down) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("k", [1, 3])
def test_gradient_of_the_minmax_objective(k):
    labels, _ = planted(n=25, m=5, noise=0.4, missing=0.2)
    w, lam = draw_weights(5), 1.7
    G, b = reference.gram(labels), reference.biases(labels, 0.5)
    value, slopes = leading_overlap(runs_of(labels), k)(w)
    gradient = b - lam * np.diag(G) + 2 * lam / k * value * slopes
    h = 1e-5
    for t, unit in enumerate(np.eye(5)):
        up, down = (
            reference.minmax_objective(w + s * unit, labels, 0.5, lam, k)
            for s in (h, -h)
        )
        assert_allclose(gradient[t], (up - down) / (2 * h), rtol=1e-6, atol=1e-4)


@examples(25)
@given(label_matrices(n_samples=(4, 25)), st.integers(1, 3), ALPHA, DIVERSITY, TARGET)
def test_minmax_weights(labels, k, alpha, diversity, target):
    w, info = ensemble_weights(
        labels, alpha, diversity, target=target, weighting="minmax", n_clusters=k
    )
    assert w.min() >= 0 and w.sum() == pytest.approx(1)
    assert 1 <= info.n_iter <= 100

    def value(v):
        return reference.minmax_objective(v, labels, alpha, diversity, k, target)

    scale = reference.gram(labels).max() * max(1, diversity)
    m = labels.shape[1]
    others = [
        np.full(m, 1 / m),
        reference.qp_weights(labels, alpha, diversity, target),
        *np.eye(m),
        *np.random.default_rng(0).dirichlet(np.ones(m), size=20),
    ]
    assert value(w) <= value(others[0]) + 1e-9 * scale
    assert value(w) <= min(map(value, others)) + 5e-3 * scale


def test_minmax_with_all_eigenvalues_of_one_size():
    """A_w has the eigenvalue n / k, k times: the bound on its norm is attained."""
    labels = np.column_stack([np.arange(12) % 3, 5 - np.arange(12) % 3])
    w, info = ensemble_weights(labels, weighting="minmax", n_clusters=3)
    assert_allclose(w, [0.5, 0.5])
    expected = reference.minmax_objective(w, labels, 0.6, 1.0, 3)
    assert_allclose(info.objective, expected)


def test_minmax_through_the_operator():
    labels, _ = planted(n=30, m=6, noise=0.4)
    runs = runs_of(labels)
    G, b = gram(runs), reference.biases(labels, 0.5)
    dense, _ = minmax_weights(runs, G, b, 1.0, 3, 100)
    with mock.patch("skextra.cluster._spectrum.DENSE", 0):
        operator, _ = minmax_weights(runs, G, b, 1.0, 3, 100)
    assert_allclose(operator, dense, atol=1e-6)


# Samples of pairs, and threads


@pytest.mark.parametrize("target", ["soft", "hard"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("alpha", [0.2, 0.6, 0.9])
def test_sampled_pairs_estimate_all(target, missing, alpha):
    labels, _ = planted(n=150, m=7, k=4, noise=0.3, missing=missing)
    labels[75:] = labels[:75]  # equal rows are merged
    n_pairs = 20_000
    settings = {"target": target, "weighting": "uniform", "n_pairs": n_pairs}
    A, E = (
        reference.membership_matrices(labels),
        reference.target(labels, alpha, target),
    )
    error = [np.sum(a) * np.std(E[a > 0]) / np.sqrt(n_pairs) for a in A]
    expected = reference.biases(labels, alpha, target)
    _, exact = ensemble_weights(labels, alpha, **settings)
    assert_allclose(exact.bias, expected, rtol=1e-12)
    for seed in range(5):
        _, info = ensemble_weights(
            labels, alpha, **settings, exact_below=0, random_state=seed
        )
        assert np.all(np.abs(info.bias - expected) <= 10 * np.array(error) + 1e-9)


def test_sampled_pairs_come_from_the_random_state():
    labels, _ = planted(n=60)
    settings = {"exact_below": 0, "n_pairs": 100}
    found = [
        ensemble_weights(labels, **settings, random_state=seed)[1].bias
        for seed in (0, 0, 1)
    ]
    assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    w, info = ensemble_weights(labels, exact_below=59, n_pairs=100, random_state=0)
    whole = ensemble_bias_diversity(labels, w, exact_below=60, random_state=5)
    part = ensemble_bias_diversity(labels, w, **settings, random_state=0)
    assert_array_equal(part.bias, found[0])
    n_distinct = len(np.unique(labels, axis=0))
    assert n_distinct <= 59
    assert_array_equal(info.bias, whole.bias)


@pytest.mark.parametrize("settings", [{}, {"exact_below": 0, "n_pairs": 1000}])
def test_threads_do_not_change_the_result(settings):
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 9, size=(700, 9))
    labels[:, 0] = np.abs(labels[:, 0])
    runs = [
        ensemble_weights(labels, **settings, n_jobs=n_jobs, random_state=0)
        for n_jobs in (None, 1, 2, 4)
    ]
    for w, info in runs[1:]:
        assert_array_equal(w, runs[0][0])
        assert_array_equal(info.bias, runs[0][1].bias)
    found = [
        ensemble_bias_diversity(labels, w, **settings, n_jobs=n, random_state=0)
        for n in (1, 4)
    ]
    assert_array_equal(found[0].bias, found[1].bias)


# The threshold


@examples(60)
@given(label_matrices())
def test_automatic_threshold(labels):
    alpha, _ = threshold(runs_of(labels), "auto", 5000, None, None)
    assert alpha == reference.auto_alpha(labels, ALPHAS)
    _, info = ensemble_weights(labels, "auto", weighting="uniform")
    assert info.alpha == alpha


def test_automatic_threshold_from_some_rows():
    labels, _ = planted(n=400, m=10, k=3, noise=0.25)
    exact, _ = threshold(runs_of(labels), "auto", 5000, None, None)
    assert exact == reference.auto_alpha(labels, ALPHAS)
    for probes, error in [(400, 0), (200, 0.1)]:
        with mock.patch("skextra.cluster._pairs._PROBES", probes):
            _, info = ensemble_weights(labels, "auto", exact_below=0, random_state=0)
        assert abs(info.alpha - exact) <= error


@examples(30)
@given(label_matrices(), ALPHA)
def test_share_of_samples_in_a_pair_of_the_target(labels, alpha):
    expected = reference.share_touched(labels, alpha)
    _, info = ensemble_weights(labels, alpha, weighting="uniform")
    assert info.in_touch == pytest.approx(expected)


def test_warning_of_a_target_with_few_pairs():
    labels = np.column_stack([np.arange(20), np.arange(20)])
    with pytest.warns(SparseTargetWarning, match="Only 0% .* alpha=0.6") as caught:
        ensemble_weights(labels)
    assert caught[0].filename == __file__
    labels[10:] = labels[:10]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ensemble_weights(labels)
        ensemble_weights(np.arange(40).reshape(20, 2), weighting="uniform")


def test_threshold_counts_clusterings_without_rounding_errors():
    labels = np.array([[0] * 10, [0] * 3 + [1] * 7])
    for target in ("soft", "hard"):
        c = exact_overlap(labels, 0.3, target)
        entry = 0.3 if target == "soft" else 1.0
        assert_allclose(c, [2 + 2 * entry] * 3 + [2] * 7)
    assert_allclose(exact_overlap(labels, 0.31), [2] * 10)


# Alignment


@examples(40)
@given(label_matrices(), st.sampled_from(["soft", "hard"]), st.sampled_from([0.3, 0.6]))
def test_alignment_is_least_squares_off_the_diagonal(labels, kind, alpha):
    together = reference.membership_matrices(labels)
    off = ~np.eye(len(labels), dtype=bool)
    columns = together[:, off].T
    wanted = reference.target(labels, alpha, kind)[off]
    weights, info = ensemble_weights(labels, alpha, target=kind, weighting="alignment")
    assert weights.min() >= 0 and weights.sum() == pytest.approx(1)
    assert np.isnan(info.kkt_gap) and info.n_iter == 0
    best, _ = nnls(columns, wanted)
    if best.sum() == 0:
        assert_allclose(weights, reference.uniform(labels))
        return
    fitted = columns @ weights
    distance = np.linalg.norm(wanted - fitted * (fitted @ wanted) / (fitted @ fitted))
    assert distance <= np.linalg.norm(wanted - columns @ best) + 1e-6


def test_alignment_does_not_reward_noise():
    labels, _ = make_label_ensemble(
        600,
        20,
        n_classes=5,
        k_range=(5, 10),
        noise=[0.05] * 10 + [1] * 10,
        random_state=0,
    )
    labels = np.column_stack([labels, labels[:, 0]])
    aligned, _ = ensemble_weights(labels, 0.45, weighting="alignment")
    plain, _ = ensemble_weights(labels, 0.45)
    noise = np.arange(21) % 20 >= 10
    assert aligned[noise].sum() < 0.1 < 0.3 < plain[noise].sum()
    assert aligned[0] == pytest.approx(aligned[20], rel=1e-9)  # copies of each other
