"""Distances, neighbour joining, least squares, and random trees and characters."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from skbio import DistanceMatrix
from skbio.tree import nj

from skextra.phylo import (
    cfn_distance,
    neighbor_joining,
    parse_newick,
    random_tree,
    simulate_characters,
)
from skextra.phylo._distances import least_squares
from skextra.phylo._rates import gamma_rates
from tests.phylo import reference
from tests.phylo.common import random_parents, random_states, tree_of


def splits_of(text):
    """The splits of a Newick text by the names x0, x1 and so on."""
    tree = parse_newick(text)
    parents, names = tree.parents, tree.names
    sides, n_leaves = reference.sides_of(parents)
    lengths = tree.branch_lengths[parents >= 0]
    everyone = frozenset(names[:n_leaves])
    splits = {}
    for side, length in zip(sides, lengths):
        named = frozenset(names[i] for i in side)
        named = everyone - named if "x0" in named else named
        splits[named] = splits.get(named, 0.0) + np.nan_to_num(length)
    return splits


def assert_same_splits(found, expected, atol=1e-9):
    assert set(found) == set(expected)
    for split, length in expected.items():
        assert found[split] == pytest.approx(length, rel=1e-9, abs=atol)


def random_distances(n, rng):
    d = rng.uniform(0.1, 2, (n, n))
    return np.triu(d, 1) + np.triu(d, 1).T


def path_lengths(parents, lengths, n_leaves):
    sides, _ = reference.sides_of(parents)
    below = np.array([[leaf in side for side in sides] for leaf in range(n_leaves)])
    return np.abs((below[:, None] != below[None]) @ lengths)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 15])
@pytest.mark.parametrize("seed", range(3))
def test_neighbor_joining(n, seed):
    d = random_distances(n, np.random.default_rng(seed))
    names = [f"x{i}" for i in range(n)]
    found = splits_of(neighbor_joining(d))
    assert_same_splits(found, reference.neighbor_joining(d, names))
    if n > 2:
        peer = str(nj(DistanceMatrix(d, names)))
        assert_same_splits(found, splits_of(peer), atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_neighbor_joining_of_path_lengths_is_the_tree(seed):
    rng = np.random.default_rng(seed)
    n = 9
    parents = random_parents(n, rng, polytomies=False)
    lengths = rng.uniform(0.05, 1, len(parents) - 1)
    names = [f"x{i}" for i in range(n)]
    found = splits_of(neighbor_joining(path_lengths(parents, lengths, n), names))
    expected = reference.splits_of(parents, lengths, names)
    assert_same_splits(found, expected)


def test_ties_go_to_the_first_pair():
    equal = 1.0 - np.eye(4)
    assert neighbor_joining(equal) == "((x0:0.5,x1:0.5):0.0,x2:0.5,x3:0.5);"
    noise = 1e-13 * random_distances(4, np.random.default_rng(0))
    assert neighbor_joining(equal + noise).startswith("((x0")
    for n in (6, 9):
        d = np.random.default_rng(n).integers(1, 3, (n, n)).astype(float)
        d = np.triu(d, 1) + np.triu(d, 1).T
        noise = 1e-13 * random_distances(n, np.random.default_rng(0))
        once, again = (
            splits_of(neighbor_joining(d)),
            splits_of(neighbor_joining(d + noise)),
        )
        assert_same_splits(again, once)


def test_smallest_and_named_trees():
    (pair,) = splits_of(neighbor_joining([[0, 2], [2, 0]])).values()
    assert pair == 2
    three = [[0, 3, 4], [3, 0, 5], [4, 5, 0]]
    assert neighbor_joining(three) == "(x0:1.0,x1:2.0,x2:3.0);"
    frame = pd.DataFrame(three, columns=["a", "b c", "d"])
    assert neighbor_joining(frame) == "(a:1.0,'b c':2.0,d:3.0);"
    assert neighbor_joining(frame, list("xyz")) == "(x:1.0,y:2.0,z:3.0);"
    clipped = [[0, 1, 1], [1, 0, 5], [1, 5, 0]]
    assert neighbor_joining(clipped).startswith("(x0:0.0,")


@pytest.mark.parametrize(
    ("distances", "names", "message"),
    [
        (np.zeros((2, 3)), None, r"square, got an array of shape \(2, 3\)"),
        ([[0, -1], [-1, 0]], None, r"not be negative, got -1.0 at \(0, 1\)"),
        ([[0, 1], [1, 2]], None, r"0 on the diagonal, got 2.0 at \(1, 1\)"),
        ([[0, 1], [2, 0]], None, r"symmetric, got 1.0 at \(0, 1\)"),
        ([[0, np.nan], [np.nan, 0]], None, "NaN"),
        ([[0.0]], None, "minimum of 2"),
        ([[0, 1], [1, 0]], ["a"], "one for each of 2 leaves, got 1"),
        ([[0, 1], [1, 0]], ["a", "a"], "name 'a'"),
    ],
)
def test_errors_of_neighbor_joining(distances, names, message):
    with pytest.raises(ValueError, match=message):
        neighbor_joining(distances, names)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 5), st.booleans())
def test_cfn_distance(seed, n_sites, n_leaves, weighted):
    rng = np.random.default_rng(seed)
    X = random_states(n_sites, n_leaves, rng, 0.4)
    weights = rng.integers(0, 4, n_sites).astype(float) if weighted else None
    if weighted:
        weights[0] = 1
    expected = reference.cfn_distance(X, weights, max_distance=0.7)
    np.fill_diagonal(expected, 0)
    found = cfn_distance(X, sample_weight=weights, max_distance=0.7)
    assert_allclose(found, expected, rtol=1e-12)
    assert_array_equal(found, found.T)


def test_cfn_distance_of_odd_data():
    X = [[0, 1, np.nan], [0, 1, np.nan], [np.nan, 0, 1]]
    expected = [[0, 2, np.nan], [2, 0, 2], [np.nan, 2, 0]]
    assert_array_equal(cfn_distance(X), expected)
    assert_array_equal(cfn_distance(X, max_distance=5.0)[0, 1], 5)
    X = np.array([[3.0, 5.0], [1.0, 9.0], [7.0, 7.0], [6, 6], [6, 6]])
    third = -np.log(1 - 2 * 0.4) / 2
    assert cfn_distance(X, binarize=4.0)[0, 1] == pytest.approx(third)
    for bad, match in [
        ({"binarize": None}, "binarize=None X must hold 0, 1 and NaN"),
        ({"sample_weight": np.zeros(5)}, "at least one non-zero"),
        ({"sample_weight": -np.ones(5)}, "[Nn]egative"),
        ({"sample_weight": np.ones(4)}, "sample_weight"),
        ({"max_distance": 0.0}, "max_distance"),
    ]:
        with pytest.raises(ValueError, match=match):
            cfn_distance(X, **bad)
    with pytest.raises(ValueError, match="infinity"):
        cfn_distance([[np.inf, 0], [0, 1]])


@pytest.mark.parametrize("seed", range(8))
def test_least_squares(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed
    parents = random_parents(n, rng, leaf_root=seed % 2)
    d = random_distances(n, rng)
    expected = reference.least_squares_start(parents, d)
    assert_allclose(least_squares(tree_of(parents, n), d), expected, atol=1e-9)
    lengths = rng.uniform(0.1, 1, len(parents) - 1)
    exact = path_lengths(parents, lengths, n)
    assert_allclose(least_squares(tree_of(parents, n), exact), lengths, rtol=1e-8)


def test_least_squares_of_unknown_distances():
    rng = np.random.default_rng(0)
    parents = random_parents(6, rng, polytomies=False)
    d = random_distances(6, rng)
    d[1, 4] = d[4, 1] = np.nan
    filled = np.where(np.isnan(d), np.nanmean(d), d)
    expected = reference.least_squares_start(parents, filled)
    assert_allclose(least_squares(tree_of(parents, 6), d), expected, atol=1e-9)


@pytest.mark.parametrize("shape", ["coalescent", "balanced", "caterpillar"])
@pytest.mark.parametrize("n", [2, 3, 4, 8, 33])
def test_random_tree(n, shape):
    tree = random_tree(n, shape=shape, random_state=0)
    parents = tree.parents
    assert parents.dtype == np.int64 and parents.shape == (2 * n - 2,)
    assert parents[-1] == -1 and (parents[:-1] >= (n if n > 2 else 0)).all()
    assert np.isnan(tree.branch_lengths[-1]) and (tree.branch_lengths[:-1] > 0).all()
    assert tree.names == [f"x{i}" for i in range(n)] + [""] * (n - 2)
    if n > 2:
        counts = np.bincount(parents[:-1])[n:]
        assert (counts[:-1] == 2).all() and counts[-1] == 3
    again = random_tree(n, shape=shape, random_state=0)
    assert_array_equal(again.parents, parents)
    assert_array_equal(again.branch_lengths, tree.branch_lengths)


def depth(parents):
    up = [0 if p < 0 else None for p in parents]
    for node in range(len(parents) - 2, -1, -1):
        up[node] = up[parents[node]] + 1
    return up


def test_shapes_of_random_trees():
    n = 48
    balanced = depth(random_tree(n, shape="balanced").parents)[:n]
    assert set(balanced) == {5} or max(balanced) - min(balanced) <= 1
    assert max(depth(random_tree(n, shape="caterpillar").parents)[:n]) == n - 2
    coalescent = [
        max(depth(random_tree(n, random_state=i).parents)[:n]) for i in range(10)
    ]
    assert 6 < np.mean(coalescent) < 25 and len(set(coalescent)) > 1
    topologies = [tuple(random_tree(4, random_state=i).parents) for i in range(600)]
    pairs = [frozenset(np.flatnonzero(np.array(t[:4]) == 4)) for t in topologies]
    shares = np.array([pairs.count(pair) for pair in set(pairs)]) / 600
    assert len(shares) == 6 and np.abs(shares - 1 / 6).max() < 0.06


def test_lengths_of_random_trees():
    lengths = random_tree(5000, mean_length=0.3, random_state=1).branch_lengths[:-1]
    assert lengths.mean() == pytest.approx(0.3, rel=0.05)
    assert lengths.std() == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize(("k", "alpha"), [(1, 1.0), (4, 0.5)])
def test_law_of_the_characters(k, alpha):
    tree = "((a:.1,b:.4):.2,c:.3,d:.05);"
    X = simulate_characters(
        tree, 100_000, n_rate_categories=k, alpha=alpha, random_state=0
    )
    assert (
        X.dtype == np.int8 and X.shape == (100_000, 4) and set(np.unique(X)) == {0, 1}
    )
    parsed = parse_newick(tree)
    lengths = parsed.branch_lengths[parsed.parents >= 0]
    patterns = reference.all_patterns(4)
    p = reference.site_likelihoods(
        parsed.parents, lengths, patterns, gamma_rates(alpha, k)
    )
    count = np.bincount(X @ [8, 4, 2, 1], minlength=16)
    z = (count - 1e5 * p) / np.sqrt(1e5 * p * (1 - p))
    assert np.abs(z).max() < 4
    half = (count - 1e5 * p)[:8].sum()
    assert abs(half) < 4 * np.sqrt(25_000)


def test_characters_of_any_tree():
    frame = simulate_characters("(b:0,a:9);", 50, as_frame=True, random_state=0)
    assert list(frame.columns) == ["b", "a"]
    same = simulate_characters([3, 3, 3, -1], 20, branch_lengths=[0, 0, 0.0])
    assert (same == same[:, :1]).all() and 0 < same.mean() < 1
    named = simulate_characters([-1, 0], 5, branch_lengths=[0.1], as_frame=True)
    assert list(named.columns) == ["x0", "x1"]
    tree = random_tree(5, random_state=0)
    first, second = (simulate_characters(tree, 30, random_state=3) for _ in range(2))
    assert_array_equal(first, second)
    whole = simulate_characters("((a:.1,b:.1):.2,(c:.1,d:9):.2);", 10)
    assert whole.shape == (10, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random_tree(1), "n_leaves"),
        (lambda: random_tree(3, shape="star"), "shape"),
        (lambda: random_tree(3, mean_length=0.0), "mean_length"),
        (lambda: simulate_characters("(a,b:1,c:1);", 3), "length for each edge"),
        (lambda: simulate_characters("(a:1,b:1);", 0), "n_sites"),
        (
            lambda: simulate_characters([2, 2, -1], 3, branch_lengths=[1.0]),
            r"one length for each of 2 edges, got an array of shape \(1,\)",
        ),
        (
            lambda: simulate_characters([2, 2, -1], 3, branch_lengths=[1.0, -1]),
            "branch_lengths must be finite and not negative, got -1.0 for edge 1",
        ),
        (lambda: simulate_characters([2, 2, -1], 3), "length for each edge"),
        (lambda: simulate_characters("(a:1,b:1);", 3, alpha=0.0), "alpha"),
        (
            lambda: simulate_characters("(a:1,b:1);", 3, n_rate_categories=0),
            "n_rate_categories",
        ),
    ],
)
def test_errors_of_random_data(call, message):
    with pytest.raises(ValueError, match=message):
        call()
