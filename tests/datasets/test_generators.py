"""Generated data: shapes, shares, repeatability, errors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skextra.datasets import make_label_ensemble, make_plane_density, make_shapes


def within(count, n, p):
    """Whether a binomial count is within 5 standard deviations of its mean."""
    return abs(count - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1e-9


def classes_of(labels, y):
    """Most frequent class of each sample's cluster, for one clustering."""
    n_labels, n_classes = labels.max() + 1, y.max() + 1
    table = np.zeros((n_labels, n_classes))
    np.add.at(table, (labels, y), 1)
    return table.argmax(axis=1)[labels]


def test_defaults():
    labels, y = make_label_ensemble(random_state=0)
    assert labels.shape == (1000, 20) and y.shape == (1000,)
    assert labels.dtype.kind == y.dtype.kind == "i"
    assert set(y) == set(range(10))
    assert labels.min() >= 0 and labels.max() < 100
    assert np.unique([column.max() for column in labels.T]).size > 10


def test_clusterings_without_noise_cut_the_classes():
    labels, y = make_label_ensemble(
        4000, 6, n_classes=4, k_range=(6, 15), noise=0.0, random_state=1
    )
    for column in labels.T:
        assert_array_equal(classes_of(column, y), y)
        k = column.max() + 1
        assert 6 <= k <= 15
        assert set(column) == set(range(k))
        # the arcs of a class have equal length
        per_class = [np.unique(column[y == c], return_counts=True)[1] for c in range(4)]
        assert {len(sizes) for sizes in per_class} <= {k // 4, k // 4 + 1}
        for sizes in per_class:
            n = sizes.sum()
            assert all(within(size, n, 1 / len(sizes)) for size in sizes)
    assert all(within(np.sum(y == c), 4000, 0.25) for c in range(4))


def test_clusterings_have_the_numbers_of_clusters_of_k_range():
    labels, _ = make_label_ensemble(
        3000, 60, n_classes=3, k_range=(3, 6), noise=0.0, random_state=0
    )
    assert {column.max() + 1 for column in labels.T} == {3, 4, 5, 6}
    for k_range in ((5, 5), [5, 5]):
        labels, _ = make_label_ensemble(
            500, 4, n_classes=5, k_range=k_range, random_state=0
        )
        assert {column.max() + 1 for column in labels.T} == {5}
    labels, y = make_label_ensemble(
        500, 4, n_classes=5, k_range=(5, 5), noise=0, random_state=0
    )
    assert_array_equal(labels, np.repeat(y[:, None], 4, axis=1))


@pytest.mark.parametrize("noise", [0.1, 0.5, [0.0, 0.1, 0.4, 0.7]])
def test_share_of_noise(noise):
    n = 20_000
    labels, y = make_label_ensemble(
        n, 4, n_classes=10, k_range=(20, 20), noise=noise, random_state=0
    )
    for column, share in zip(labels.T, np.broadcast_to(noise, 4)):
        # a random cluster is of the right class once in ten times
        wrong = np.count_nonzero(classes_of(column, y) != y)
        assert within(wrong, n, 0.9 * share)


def test_all_noise():
    labels, _ = make_label_ensemble(
        20_000, 2, n_classes=2, k_range=(4, 4), noise=1.0, random_state=0
    )
    together = np.bincount(4 * labels[:, 0] + labels[:, 1], minlength=16)
    assert all(within(count, 20_000, 1 / 16) for count in together)


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.9])
def test_share_of_missing_labels(missing):
    labels, _ = make_label_ensemble(4000, 5, missing=missing, random_state=0)
    lost = labels == -1
    assert labels.min() >= -1
    # one label of each sample, chosen at random, is always kept
    assert within(lost.sum(), 4000 * 5, missing * 4 / 5)
    assert not lost.all(axis=1).any()
    for column in lost.T:
        assert within(column.sum(), 4000, missing * 4 / 5)


def test_ensembles_are_repeatable():
    def make(random_state):
        return make_label_ensemble(50, 4, missing=0.2, random_state=random_state)

    for a, b in zip(make(0), make(0)):
        assert_array_equal(a, b)
    for a, b in zip(make(0), make(np.random.RandomState(0))):
        assert_array_equal(a, b)
    assert not np.array_equal(make(0)[0], make(1)[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 0}, "'n_samples' parameter"),
        ({"n_samples": 10.0}, "'n_samples' parameter"),
        ({"n_clusterings": 0}, "'n_clusterings' parameter"),
        ({"n_classes": 0}, "'n_classes' parameter"),
        ({"k_range": 5}, "'k_range' parameter"),
        ({"k_range": (9, 20)}, "k_range must be .*n_classes=10.*9, 20"),
        ({"k_range": (20, 10)}, "k_range must be two integers"),
        ({"k_range": (10, 20, 30)}, "k_range must be two integers"),
        ({"k_range": (10,)}, "k_range must be two integers"),
        ({"k_range": ()}, "k_range must be two integers"),
        ({"k_range": (10.5, 20)}, "k_range must be two integers"),
        ({"k_range": (10, 20.5)}, "k_range must be two integers"),
        ({"k_range": ("10", "20")}, "k_range must be two integers"),
        ({"noise": -0.1}, "noise"),
        ({"noise": 1.1}, "noise"),
        ({"noise": np.nan}, "noise"),
        ({"noise": "some"}, "noise"),
        ({"noise": [0.1] * 4}, "noise must be a share from 0 to 1, or 5"),
        ({"noise": [[0.1] * 5]}, "noise must be a share"),
        ({"noise": [0.1, 0.1, 0.1, 0.1, 2]}, "noise must be a share"),
        ({"noise": [0.1, 0.1, 0.1, 0.1, np.nan]}, "noise must be a share"),
        ({"missing": 1.0}, "'missing' parameter"),
        ({"missing": -0.1}, "'missing' parameter"),
        ({"random_state": "x"}, "'random_state' parameter"),
    ],
)
def test_bad_settings_of_ensembles(settings, message):
    with pytest.raises(ValueError, match=message):
        make_label_ensemble(**{"n_clusterings": 5} | settings)


def test_shapes():
    X, y = make_shapes(random_state=0)
    assert X.shape == (800, 2) and y.shape == (800,)
    assert X.dtype == np.float64 and y.dtype.kind == "i"
    assert np.count_nonzero(np.diff(y)) > 400  # in any order
    shares = np.bincount(y) / 800
    assert_allclose(shares, [0.22, 0.1, 0.13, 0.13, 0.12, 0.22, 0.08], atol=0.02)


@pytest.mark.parametrize("n_samples", [7, 8, 13, 100, 1001])
def test_number_of_points(n_samples):
    X, y = make_shapes(n_samples, random_state=0)
    assert X.shape == (n_samples, 2)
    assert_array_equal(np.unique(y), np.arange(7))


def test_shapes_without_noise():
    X, y = make_shapes(5000, noise=0, random_state=0)
    radii = [
        np.linalg.norm(X[y == group] - center, axis=1)
        for group, center in enumerate(
            [(0, 0), (0, 0), (7, -1), (9, 0), (0, 0), (8.5, 5.5), (11.3, 5.5)]
        )
    ]
    for group, radius in [(0, 3), (2, 2), (3, 2)]:
        assert_allclose(radii[group], radius)
    for group, radius in [(1, 1), (5, 1.6), (6, 0.7)]:
        assert 0.97 * radius < radii[group].max() <= radius
        n = radii[group].size  # even over the disc
        assert within(np.sum(radii[group] < radius / 2), n, 0.25)
    assert X[y == 2][:, 1].min() >= -1 and X[y == 3][:, 1].max() <= 0
    bar = X[y == 4]
    assert np.all((bar >= [-3, 5]) & (bar <= [5, 5.8]))
    assert np.all(np.ptp(bar, axis=0) > [7.8, 0.78])


def test_noise_of_the_points():
    exact, y = make_shapes(4000, noise=0, random_state=0)
    for noise in (0.1, 2.0):
        X, labels = make_shapes(4000, noise=noise, random_state=0)
        assert_array_equal(labels, y)
        assert_allclose(np.std(X - exact, axis=0), noise, rtol=0.1)
        assert_allclose(np.mean(X - exact, axis=0), 0, atol=0.1 * noise)


def test_shapes_are_repeatable():
    for a, b in zip(make_shapes(random_state=0), make_shapes(random_state=0)):
        assert_array_equal(a, b)
    again = make_shapes(random_state=np.random.RandomState(0))
    assert_array_equal(again[0], make_shapes(random_state=0)[0])
    assert not np.array_equal(again[0], make_shapes(random_state=1)[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": 6}, "'n_samples' parameter"),
        ({"n_samples": 100.0}, "'n_samples' parameter"),
        ({"noise": -1e-9}, "'noise' parameter"),
        ({"noise": "some"}, "'noise' parameter"),
        ({"noise": np.nan}, "'noise' parameter"),
        ({"random_state": "x"}, "'random_state' parameter"),
    ],
)
def test_bad_settings_of_shapes(settings, message):
    with pytest.raises(ValueError, match=message):
        make_shapes(**settings)


def test_ring():
    X = make_plane_density("ring", 8000, random_state=0)
    mode = np.round(np.arctan2(X[:, 1], X[:, 0]) / (np.pi / 4)).astype(int) % 8
    assert all(within(count, 8000, 1 / 8) for count in np.bincount(mode, minlength=8))
    angle = np.pi / 4 * mode
    around = X - 2 * np.column_stack([np.cos(angle), np.sin(angle)])
    assert_allclose(around.std(axis=0), 0.1, rtol=0.05)
    assert_allclose(around.mean(axis=0), 0, atol=0.01)


def test_checkerboard():
    X = make_plane_density("checkerboard", 8000, random_state=0)
    square = np.floor(X).astype(int) + 2
    assert square.min() == 0 and square.max() == 3
    assert np.all(square.sum(axis=1) % 2 == 0)
    _, counts = np.unique(square, axis=0, return_counts=True)
    assert len(counts) == 8
    assert all(within(count, 8000, 1 / 8) for count in counts)
    assert_allclose((X - np.floor(X)).mean(axis=0), 0.5, atol=0.02)


def test_moons_and_draws():
    moons = make_plane_density("moons", 500, random_state=0)
    assert moons.shape == (500, 2)
    assert -1.3 < moons.min() and moons.max() < 2.3
    for kind in ("ring", "moons", "checkerboard"):
        first, again, other = (
            make_plane_density(kind, 50, random_state=seed) for seed in (1, 1, 2)
        )
        assert_array_equal(first, again)
        assert not np.array_equal(first, other)
    with pytest.raises(ValueError, match="'kind' parameter"):
        make_plane_density("spiral")
