"""Compiled kernels against the loops that they replace."""

import subprocess
import sys
from itertools import product
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skextra.cluster import _numba as kernels
from skextra.cluster import _pairs
from skextra.cluster._labels import encode, label_sets, runs_of
from tests.cluster.common import examples, label_matrices

SEEDS = st.integers(0, 1000)


def codes_of(labels):
    sets = label_sets(labels)
    return encode(labels, sets), sum(known.size for known in sets)


def compare(codes, i, j):
    """Count the clusterings that see both samples, and those that agree on them."""
    pairs = [(a, b) for a, b in zip(codes[:, i], codes[:, j]) if a >= 0 and b >= 0]
    return len(pairs), sum(a == b for a, b in pairs)


def random_table(m, rng):
    table = rng.random((m + 1, m + 1))
    table[rng.random(table.shape) < 0.5] = 0
    table[:, 0] = 0  # clusterings that do not agree on a pair never tell of it
    return table


@examples(40)
@given(label_matrices(), SEEDS)
def test_sums_over_clusters(labels, seed):
    codes, n_clusters = codes_of(labels)
    rng = np.random.default_rng(seed)
    of_clusters, of_samples = rng.random((n_clusters, 3)), rng.random((len(labels), 2))
    gathered = np.zeros((len(labels), 3))
    scattered = np.zeros((n_clusters, 2))
    for row in codes:
        for i, code in enumerate(row):
            if code >= 0:
                gathered[i] += of_clusters[code]
                scattered[code] += of_samples[i]
    assert_allclose(kernels.gather(codes, of_clusters), gathered, rtol=1e-13)
    assert_allclose(
        kernels.scatter(codes, of_samples, n_clusters), scattered, rtol=1e-13
    )


@examples(40)
@given(label_matrices(), SEEDS)
def test_contingency_adds_to_the_table(labels, seed):
    codes, n_clusters = codes_of(labels)
    rng = np.random.default_rng(seed)
    weights, start = rng.random(len(labels)), rng.random((n_clusters, n_clusters))
    found, expected = start.copy(), start.copy()
    kernels.add_contingency(codes[0], codes[-1], weights, found)
    for a, b, weight in zip(codes[0], codes[-1], weights):
        if a >= 0 and b >= 0:
            expected[a, b] += weight
    assert_allclose(found, expected, rtol=1e-13)


@examples(40)
@given(label_matrices(), st.sampled_from([0, 10**9]))
def test_contingency_of_any_size(labels, most_cells):
    runs = runs_of(labels)
    expected = np.zeros((runs.n_clusters, runs.n_clusters))
    for i, count in enumerate(runs.counts):
        there = runs.codes[:, i][runs.codes[:, i] >= 0]
        expected[np.ix_(there, there)] += count
    found = np.zeros_like(expected)
    with mock.patch.object(_pairs, "_MOST_CELLS", most_cells):
        for s, t in product(range(len(runs.codes)), repeat=2):
            rows, columns, counts = _pairs.contingency(runs, s, t)
            assert np.all(counts > 0)
            found[runs.starts[s] + rows, runs.starts[t] + columns] += counts
    assert_array_equal(found, expected)


@examples(40)
@given(label_matrices(), SEEDS, st.data())
def test_target_sums(labels, seed, data):
    codes, _ = codes_of(labels)
    m, n = codes.shape
    rng = np.random.default_rng(seed)
    table, counts = random_table(m, rng), rng.integers(1, 4, size=n).astype(float)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    expected = np.zeros(m)
    for i in range(start, stop):
        for j in range(i, n):
            entry = table[compare(codes, i, j)] * (1 if i == j else 2)
            for t in range(m):
                if codes[t, i] == codes[t, j] >= 0:
                    expected[t] += entry * counts[i] * counts[j]
    found = kernels.target_sums(codes, counts, table, start, stop)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def random_numbers(seed):
    """SplitMix64, as Steele, Lea and Flood (2014) give it, scaled to [0, 1)."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        yield ((z ^ (z >> 31)) >> 11) / 2**53


@examples(40)
@given(label_matrices(), SEEDS, st.sampled_from([np.uint8, np.uint16, np.int32]))
def test_sampled_mean(labels, seed, dtype):
    codes, _ = codes_of(labels)
    rng, numbers = np.random.default_rng(seed), random_numbers(seed)
    table = random_table(len(codes), rng)
    clusters = [np.flatnonzero(codes[0] == c) for c in np.unique(codes[0]) if c >= 0]
    n_pairs = rng.integers(1, 9, size=len(clusters))
    expected = []
    for members, n in zip(clusters, n_pairs):
        for _ in range(n):
            pair = [members[int(next(numbers) * members.size)] for _ in range(2)]
            expected.append(table[compare(codes, *pair)])
    rows = np.ascontiguousarray(codes.T + 1, dtype=dtype)
    starts = np.cumsum([0, *map(len, clusters)])
    members = np.concatenate(clusters)
    found = kernels.sampled_mean(rows, members, starts, n_pairs, seed, table)
    assert found == pytest.approx(np.mean(expected), rel=1e-13)


@examples(40)
@given(label_matrices(), SEEDS)
def test_nearest_agreement(labels, seed):
    codes, _ = codes_of(labels)
    n = len(labels)
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 3, size=n).astype(float)
    samples = np.flatnonzero(rng.random(n) < 0.7)
    enough = rng.choice([0.3, 1, 2])
    expected = np.zeros(samples.size)
    for p, i in enumerate(samples):
        for j in range(n):
            seen, agree = compare(codes, i, j)
            if seen and (i != j or counts[i] > 1):
                expected[p] = max(expected[p], agree / seen)
    with mock.patch.object(kernels, "_AT_ONCE", 3):  # a constant of compiled code
        nearest = kernels.nearest_agreement.py_func
        found = nearest(codes, counts, samples, enough)
    reached = found >= enough
    assert_array_equal(found[~reached], expected[~reached])
    assert np.all(expected[reached] >= found[reached])
    whole = kernels.nearest_agreement(codes, counts, samples, 2.0)
    assert_array_equal(whole, expected)


@examples(40)
@given(label_matrices(), SEEDS)
def test_coassociations(labels, seed):
    codes, n_clusters = codes_of(labels)
    rng = np.random.default_rng(seed)
    shares, weights = rng.random(n_clusters), rng.random(len(codes))
    expected = []
    for i in range(len(labels)):
        for j in range(i + 1, len(labels)):
            same = total = 0.0
            for a, b, weight in zip(codes[:, i], codes[:, j], weights):
                if a >= 0 and b >= 0:
                    total += weight
                    same += shares[a] if a == b else 0
            expected.append(same / total if total else 0)
    found = kernels.coassociations(codes, shares, weights)
    assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("missing", [False, True])
def test_no_sample_or_one(n, missing):
    seen = n * (not missing)
    codes = np.full((2, n), -1, np.int32) if missing else np.arange(2 * n).reshape(2, n)
    codes = codes.astype(np.int32)
    counts, ones = np.ones(n), np.ones((2, 1))
    table = np.ones((3, 3))
    table[:, 0] = 0
    assert_array_equal(kernels.gather(codes, ones), np.full((n, 1), 2 * seen))
    assert_array_equal(
        kernels.scatter(codes, np.ones((n, 1)), 2), np.full((2, 1), seen)
    )
    total = np.zeros((2, 2))
    kernels.add_contingency(codes[0], codes[1], counts, total)
    assert total.sum() == seen
    assert_array_equal(kernels.target_sums(codes, counts, table, 0, n), [seen, seen])
    own = np.arange(n)
    rows = np.ascontiguousarray(codes.T)
    if n:
        starts, three = np.array([0, 1]), np.array([3])
        assert kernels.sampled_mean(rows + 1, own, starts, three, 0, table) == seen
    nearest = kernels.nearest_agreement
    assert_array_equal(nearest(codes, counts, own, 1.0), np.zeros(n))
    assert_array_equal(nearest(codes, 2 * counts, own, 1.0), [seen] * n)
    assert kernels.coassociations(codes, np.ones(2), np.ones(2)).shape == (0,)


def test_no_sample_asked_for():
    codes, none = np.zeros((2, 3), np.int32), np.array([], dtype=int)
    table, counts = np.ones((3, 3)), np.ones(3)
    assert kernels.nearest_agreement(codes, counts, none, 1.0).size == 0
    assert_array_equal(kernels.target_sums(codes, counts, table, 2, 2), [0, 0])


PROGRAM = """
import numpy as np
from skextra.cluster import GPEnsembleClustering
from skextra.cluster import _numba as kernels
X = np.random.default_rng(0).normal(size=(40, 2)) + 9 * (np.arange(40) % 2)[:, None]
for settings in ({"exact_below": 0, "n_pairs": 50}, {"alpha": "auto"}):
    for consensus in ("spectral", "average"):
        model = GPEnsembleClustering(2, n_estimators=4, random_state=0, **settings)
        model.set_params(consensus=consensus).fit(X)
        print(model.labels_.tolist(), model.weights_.tolist())
compiled = [f for f in vars(kernels).values() if hasattr(f, "stats")]
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in compiled))
print(sum(sum(kernel.stats.cache_hits.values()) for kernel in compiled))
"""


def test_kernels_load_from_the_cache_and_give_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    command = [sys.executable, "-c", PROGRAM]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True)
        .stdout.strip()
        .split("\n")
        for _ in range(2)
    )
    assert first[:4] == second[:4]
    assert int(first[4]) >= 7 and first[5] == "0"
    assert second[4] == "0" and int(second[5]) >= 7
