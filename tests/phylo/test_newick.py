"""Newick text and arrays of parents: round trips and errors with their places."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skextra.phylo import parse_newick, to_newick
from skextra.phylo._trees import Tree, checked_parents, suppressed
from tests.phylo import reference
from tests.phylo.common import random_parents

NAMES = st.text(min_size=1, max_size=6)


@st.composite
def named_trees(draw):
    n = draw(st.integers(2, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parents = random_parents(n, rng)
    names = draw(st.lists(NAMES, min_size=n, max_size=n, unique=True))
    inner = len(parents) - n
    names += draw(st.lists(st.text(max_size=4), min_size=inner, max_size=inner))
    length = st.one_of(st.floats(0, 1e300), st.just(np.nan))
    lengths = draw(st.lists(length, min_size=len(parents), max_size=len(parents)))
    return parents, np.array(lengths), names


@settings(max_examples=200, deadline=None)
@given(named_trees())
def test_round_trip(case):
    parents, lengths, names = case
    n = sum(np.bincount(parents[parents >= 0], minlength=len(parents)) == 0)
    if len(parents) == 2:
        return  # Newick text has no leaf for a root
    text = to_newick(parents, lengths, names)
    tree = parse_newick(text)
    assert sorted(tree.names[:n]) == sorted(names[:n])
    # Node by node: the same leaves below, the same name and length.
    nodes = {}
    for array, values, labels in [
        (parents, lengths, names),
        (tree.parents, tree.branch_lengths, tree.names),
    ]:
        below = [{labels[i]} if i < n else set() for i in range(len(array))]
        for leaf in range(n):
            node = array[leaf]
            while node >= 0:
                below[node].add(labels[leaf])
                node = array[node]
        for i in range(len(array)):
            value = None if np.isnan(values[i]) else float(values[i])
            nodes.setdefault(frozenset(below[i]), []).append((labels[i], value))
    assert all(len(both) == 2 and both[0] == both[1] for both in nodes.values())
    again = to_newick(tree.parents, tree.branch_lengths, tree.names)
    assert again == text
    assert (tree.parents[:-1] > np.arange(len(parents) - 1)).all()


def test_what_a_text_may_hold():
    tree = parse_newick(" ( 'it''s (a)':1e-3 , b_c [x:(] :.5,\n(d,e)90:2)'root':7 ; ")
    assert tree.names == ["it's (a)", "b_c", "d", "e", "90", "root"]
    assert_array_equal(tree.parents, [5, 5, 4, 4, 5, -1])
    assert_array_equal(tree.branch_lengths, [1e-3, 0.5, np.nan, np.nan, 2, 7])
    assert parse_newick("(a,b)").names == ["a", "b", ""]
    assert parse_newick("(a,b);[end]").names == ["a", "b", ""]
    assert parse_newick("(a[x[y]z],b);").names == ["a", "b", ""]
    tree = parse_newick("((a,b):3);")  # a root with one child is no leaf
    assert tree.parents.tolist() == [2, 2, -1]
    assert parse_newick("(a,(b,(c,d)));").parents.tolist() == [6, 5, 4, 4, 5, 6, -1]


def test_deep_trees_need_no_recursion():
    n = 20_000
    text = "(" * (n - 1) + "a0" + "".join(f",a{i})" for i in range(1, n)) + ";"
    tree = parse_newick(text)
    assert len(tree.parents) == 2 * n - 1
    assert to_newick(tree.parents, None, tree.names) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the end in the place of a leaf at position 0"),
        (";", "the end in the place of a leaf at position 0"),
        ("(a,b", "the end at position 4"),
        ("((a,b),c;", "the end at position 8"),
        ("(a,b));", r"'\)' at position 5"),
        ("a,b;", "',' at position 1"),
        ("(a,,b);", "',' in the place of a leaf at position 3"),
        ("(a,b,);", r"'\)' in the place of a leaf at position 5"),
        ("();", r"'\)' in the place of a leaf at position 1"),
        ("(a b,c);", "the label 'b' at position 3"),
        ("(a:1 2,c);", "the label '2' at position 5"),
        ("((a,b)c d,e);", "the label 'd' at position 8"),
        ("(a:x,c);", "'x' where a length is missing at position 3"),
        ("(a:1_0,c);", "'1_0' where a length is missing at position 3"),
        ("(a:0x1,c);", "'0x1' where a length is missing at position 3"),
        ("(a:'1',c);", "'1' where a length is missing at position 3"),
        ("(a:,c);", "',' where a length is missing at position 3"),
        ("(a:1:2,c);", "':' at position 4"),
        ("(a::2,c);", "':' where a length is missing at position 3"),
        ("(a:-1,c);", "the length -1, not finite and >= 0, at position 3"),
        ("(a:1e999,c);", "the length 1e999, not finite and >= 0, at position 3"),
        ("(a:inf,c);", "'inf' where a length is missing at position 3"),
        ("(a:nan,c);", "'nan' where a length is missing at position 3"),
        ("(a(b,c),d);", r"'\(' at position 2"),
        ("((a,b)(c,d));", r"'\(' at position 6"),
        ("(a,'b);", "a quote that never ends at position 3"),
        ("(a,b[c);", "a comment that never ends at position 4"),
        ("(a,b[[c]);", "a comment that never ends at position 4"),
        ("(a,b]);", "']' at position 4"),
        ("(a,b);c", "'c' after the tree at position 6"),
        ("(a,b);(c,d);", r"'\(' after the tree at position 6"),
        ("(a,b)c d;", "the label 'd' at position 7"),
        ("(a,b):;", "the end where a length is missing at position 6"),
        ("(a,a);", "a second leaf 'a' at position 3"),
        ("(a,:1);", "':' in the place of a leaf at position 3"),
        ("(a,'');", "the label '' at position 3"),
        ("a;", "the end of a tree of one leaf at position 1"),
        ("(a);", "the end of a tree of one leaf at position 3"),
    ],
)
def test_malformed_text(text, message):
    with pytest.raises(ValueError, match=f"^Malformed Newick text: {message}\\.$"):
        parse_newick(text)


def test_text_must_be_text():
    with pytest.raises(TypeError, match="must be a str, got int"):
        parse_newick(3)


def test_lengths_and_names_of_the_text():
    assert to_newick([3, 3, 3, -1]) == "(x0,x1,x2);"
    assert to_newick([3, 3, 3, -1], [1, 2, 3, np.nan]) == "(x0:1.0,x1:2.0,x2:3.0);"
    assert to_newick([3, 3, 3, -1], [1, 2, 3, 4.0]) == "(x0:1.0,x1:2.0,x2:3.0):4.0;"
    assert to_newick([3, 3, 3, -1], [1, np.nan, 0.1]) == "(x0:1.0,x1,x2:0.1);"
    text = to_newick([3, 3, 3, -1], None, ["a", "b's", "", "top"][:2] + ["c:", "top"])
    assert text == "(a,'b''s','c:')top;"
    leaf = to_newick([-1, 3, 3, 0], [0.1, 0.2, 0.3], ["a", "b", "c"])
    tree = parse_newick(leaf)
    assert sorted(tree.names[:3]) == ["a", "b", "c"]
    pair = parse_newick(to_newick([1, -1], [0.5]))
    assert np.nansum(pair.branch_lengths) == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), r"at least 2 nodes, got one of shape \(0,\)"),
        (([[1, -1]],), r"shape \(1, 2\)"),
        (([0.5, -1],), r"integers, with -1 for that of the root, got \[0.5, -1.0\]"),
        ((["a", "b"],), "integers"),
        (([2, 2, 5, -1],), "parent of node 2 must be a node, 0 to 3, .* got 5"),
        (([2, 2, -2],), "parent of node 2 must be a node, .* got -2"),
        (([2, 2, 0],), "one root, with parent -1; got 0"),
        (([-1, 2, -1],), r"got 2: \[0, 2\]"),
        (([4, 4, 3, 2, -1],), r"cycle, which never gets to the root: \[2, 3\]"),
        (([-1, 0, 0],), r"must be its first nodes; .* they are the nodes \[1, 2\]"),
        (([2, 2, -1], [1.0]), r"3 nodes, or 2 edges, got shape \(1,\)"),
        (([2, 2, -1], [1.0, -2]), "finite and not negative, got -2.0 above node 1"),
        (([2, 2, -1], [1.0, np.inf]), "got inf above node 1"),
        (([2, 2, -1], None, ["a"]), "each of 2 leaves, or of 3 nodes, got 1"),
        (([2, 2, -1], None, ["a", "a"]), "name 'a'"),
        (([2, 2, -1], None, ["a", ""]), "Leaf 1 of the tree has no name"),
    ],
)
def test_errors_of_arrays(arguments, message):
    with pytest.raises(ValueError, match=message):
        to_newick(*arguments)


def test_number_of_leaves():
    parents, n = checked_parents(np.array([2.0, 2.0, -1.0]))
    assert parents.dtype == np.int64 and n == 2
    with pytest.raises(ValueError, match="has 2 leaves, but X has 3 columns"):
        checked_parents([2, 2, -1], 3)


def with_degree_two(parents, lengths, rng):
    """Put nodes of degree 2 on edges, at random; the lengths are divided."""
    parents, lengths = list(parents), list(lengths)
    for _ in range(int(rng.integers(1, 6))):
        node = int(rng.integers(len(parents)))
        if parents[node] < 0:
            continue
        share = rng.random()
        parents.append(parents[node])
        lengths.append((1 - share) * lengths[node])
        parents[node], lengths[node] = len(parents) - 1, share * lengths[node]
    return np.array(parents), np.array(lengths)


@pytest.mark.parametrize("seed", range(40))
def test_nodes_of_degree_two_are_left_out(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    parents = random_parents(n, rng, leaf_root=seed % 2)
    lengths = rng.uniform(0.1, 1, len(parents))
    expected = reference.splits_of(parents, lengths[parents >= 0])
    other, longer = with_degree_two(parents, lengths, rng)
    middle = np.flatnonzero(other >= 0)[0]
    chains = [(other, longer)]
    # Hung up at a node of degree 2, where there is one.
    extra = [v for v in range(len(parents), len(other))]
    for root in [*extra, middle]:
        turned, moved_lengths = np.array(other), np.array(longer)
        node, above, carried = root, -1, np.nan
        while node >= 0:
            up, own = int(turned[node]), moved_lengths[node]
            turned[node], moved_lengths[node] = above, carried
            node, above, carried = up, node, own
        chains.append((turned, moved_lengths))
    for array, values in chains:
        tree = Tree(array, n, values, tuple(map(str, range(len(array)))))
        found = suppressed(tree)
        ends = np.ravel(reference.edges_of(found.parents))
        assert 2 not in np.bincount(ends)
        assert len(found.parents) == len(parents)
        assert found.names[:n] == tuple(map(str, range(n)))
        splits = reference.splits_of(found.parents, found.lengths[found.edges])
        assert set(splits) == set(expected)
        for split, length in expected.items():
            assert splits[split] == pytest.approx(length, rel=1e-12)


def test_a_tree_without_such_nodes_stays():
    tree = Tree(np.array([3, 3, 3, -1]), 3, np.full(4, np.nan), ("",) * 4)
    assert suppressed(tree) is tree
