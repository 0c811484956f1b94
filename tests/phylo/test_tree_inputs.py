"""Trees of every kind, names of leaves, starts, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skextra.phylo import (
    PhyloBranchLengths,
    cfn_distance,
    neighbor_joining,
    parse_newick,
    simulate_characters,
)
from skextra.phylo._distances import distances, least_squares
from skextra.phylo._patterns import as_states
from tests.phylo import reference
from tests.phylo.common import tree_of

TREE = "((a:.1,b:.2):.1,(c:.1,d:.3):.1,e:.2);"
NEXUS = f"#NEXUS\nbegin trees;\n tree one = [&U] {TREE}\n tree two = (a,b,c,d,e);\nend;"
X = simulate_characters(TREE, 300, as_frame=True, random_state=0)
MODEL = PhyloBranchLengths(TREE).fit(X)


def by_split(model, names="abcde"):
    splits = reference.splits_of(model.parents_, model.branch_lengths_)
    whole = frozenset(model.leaf_names_)
    found = {}
    for split, length in splits.items():
        side = frozenset(model.leaf_names_[i] for i in split)
        found[whole - side if names[0] in side else side] = length
    return found


def assert_same_lengths(model, other, atol=1e-7):
    found, expected = by_split(model), by_split(other)
    assert set(found) == set(expected)
    for split, length in expected.items():
        assert found[split] == pytest.approx(length, abs=atol)


@pytest.mark.parametrize(
    "tree",
    [
        NEXUS,
        parse_newick(TREE),
        [5, 5, 6, 6, 7, 7, 7, -1],
        np.array([5, 5, 6, 6, 7, 7, 7, -1], dtype=np.int32),
        np.array([5, 5, 6, 6, 7, 7, 7, -1.0]),
        (5, 5, 6, 6, 7, 7, 7, -1),
        "((a:.1,b:.2)x:.1,((c:.1,d:.3):.1,e:.2):0)root;",
        "(a:.1,(b:.2,((c:.1,d:.3):.1,e:.2):.1):.0);",
        "(((((a:.1,b:.2):.02)):.08,(c:.1,d:.3):.1,(((e:.1):.1))));",
        [-1, 5, 6, 6, 7, 0, 7, 5],  # a leaf for a root
        "(e:.2,(d:.3,c:.1):.1,(b:.2,a:.1):.1);",
    ],
)
def test_kinds_of_trees(tree):
    model = PhyloBranchLengths(tree).fit(X)
    assert model.leaf_names_ == list("abcde")
    assert_same_lengths(model, MODEL)
    assert model.loglik_ == pytest.approx(MODEL.loglik_, abs=1e-8)


def test_numbering_of_an_array_without_nodes_of_degree_two_is_kept():
    parents = np.array([6, 7, 5, 5, 6, 7, 7, -1])
    model = PhyloBranchLengths(parents).fit(X)
    assert_array_equal(model.parents_, parents)
    assert_array_equal(model.edges_, reference.edges_of(parents))


def test_lengths_at_nodes_of_degree_two_add():
    start = {"init": "tree", "max_iter": 0}
    for tree in (
        "(((a:.1,b:.2):.06,((c:.1,d:.3):.1,e:.2):.04));",
        "((a:.1,b:.2):.1,(((c:.1):0,d:.3):.05):.05,(e:.15):.05);",
        "(e:.05,(((a:.1,b:.2):.1,(c:.1,d:.3):.1):.05):.1);",
    ):
        model = PhyloBranchLengths(tree, **start).fit(X)
        assert 2 not in np.bincount(np.ravel(model.edges_))
        expected = by_split(PhyloBranchLengths(TREE, **start).fit(X))
        found = by_split(model)
        assert set(found) == set(expected)
        for split, length in expected.items():
            assert found[split] == pytest.approx(max(length, 1e-8))


@pytest.mark.parametrize(
    "tree",
    ["(a:.1,b:.2);", "((a:.1):.1,(b:.1):0);", [1, -1], [-1, 0], [2, 2, -1], [-1, 2, 0]],
)
def test_two_leaves(tree):
    pair = X[["a", "b"]]
    model = PhyloBranchLengths(tree).fit(pair)
    expected = -np.log(1 - 2 * (pair["a"] != pair["b"]).mean()) / 2
    assert_allclose(model.branch_lengths_, [expected], atol=1e-9)
    assert model.edges_.shape == (1, 2) and model.leaf_names_ == ["a", "b"]
    again = PhyloBranchLengths(model.tree_, init="tree", max_iter=0).fit(pair)
    assert again.loglik_ == pytest.approx(model.loglik_)


def test_names_of_the_leaves():
    mixed = X[list("dbeac")]
    assert_same_lengths(PhyloBranchLengths(TREE).fit(mixed), MODEL)
    assert PhyloBranchLengths(TREE).fit(mixed).leaf_names_ == list("dbeac")
    array = X.to_numpy()
    for letters in ("x0 x1 x2 x3 x4", "0 1 2 3 4"):
        tree = TREE
        for old, new in zip("abcde", letters.split()):
            tree = tree.replace(f"{old}:", f"{new}:")
        model = PhyloBranchLengths(tree).fit(array)
        assert_allclose(model.branch_lengths_, MODEL.branch_lengths_)
        assert model.leaf_names_ == letters.split()
    plain = PhyloBranchLengths(MODEL.parents_).fit(array)
    assert plain.leaf_names_ == [f"x{i}" for i in range(5)]
    quoted = X.rename(columns={"a": "it's (a)"})
    model = PhyloBranchLengths(TREE.replace("a:", "'it''s (a)':")).fit(quoted)
    assert parse_newick(model.tree_).names[0] == "it's (a)"


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("(a,b,c,d,f);", "not in the tree: e; not in X: f"),
        ("(a,b,c,d);", "not in the tree: e; not in X: none"),
        ("(a,b,c,d,e,g);", "not in the tree: none; not in X: g"),
        ([4, 4, 4, 4, -1], "4 leaves, but X has 5 columns"),
        ([5, 5, 5, 5, -1], "parent of node 0 must be a node"),
        ([5, 5, 5, 5, 5, 5], "one root"),
        ("(a,b,c,d,e", "Malformed Newick text: the end at position 10"),
        ("(a,b,c,d,a);", "a second leaf 'a'"),
        ("(a:-1,b,c,d,e);", "the length -1"),
        ([[5, 5, 5, 5, 5, -1]], "shape"),
    ],
)
def test_trees_that_do_not_fit(tree, message):
    with pytest.raises(ValueError, match=message):
        PhyloBranchLengths(tree).fit(X)


def test_a_hint_where_X_has_no_names():
    with pytest.raises(ValueError, match="X has no column names that are str"):
        PhyloBranchLengths(TREE).fit(X.to_numpy())


@pytest.mark.parametrize("tree", [3, 2.5, {"a": 1}, object()])
def test_not_a_tree(tree):
    with pytest.raises(TypeError, match="tree"):
        PhyloBranchLengths(tree).fit(X)


def test_no_tree_is_neighbour_joining():
    model = PhyloBranchLengths().fit(X)
    tree = neighbor_joining(cfn_distance(X), list("abcde"))
    assert_same_lengths(model, PhyloBranchLengths(tree).fit(X))
    holes = X.astype(float)
    holes.iloc[:150, 0] = np.nan
    holes.iloc[150:, 3] = np.nan
    with pytest.raises(ValueError, match="both a and d, so they have no distance"):
        PhyloBranchLengths().fit(holes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PhyloBranchLengths(TREE).fit(holes)


def test_starts():
    def start(**params):
        model = PhyloBranchLengths(**{"tree": TREE, "max_iter": 0} | params).fit(X)
        return model.branch_lengths_

    states = as_states(X.to_numpy(float), None)
    found = distances(states, np.ones(len(X)))
    slow = reference.least_squares_start(MODEL.parents_, found)
    assert_allclose(start(), np.clip(slow, 1e-4, 2), atol=1e-9)
    fast = least_squares(tree_of(MODEL.parents_, 5), found)
    assert_allclose(start(), np.clip(fast, 1e-4, 2), atol=1e-9)
    assert_allclose(start(init="constant"), -np.log(0.8) / 2)
    assert_allclose(start(init="constant", t_max=0.05), 0.05)
    assert_allclose(start(init="tree"), [0.1, 0.2, 0.1, 0.3, 0.2, 0.1, 0.1])
    assert_allclose(start(init=np.arange(7.0), t_max=4.0), [1e-8, 1, 2, 3, 4, 4, 4])
    assert_allclose(start(init=[0] * 7, t_min=0.01), 0.01)
    own = X[list("ebcda")]
    model = PhyloBranchLengths(TREE, init="tree", max_iter=0).fit(own)
    assert_allclose(model.branch_lengths_[:5], [0.2, 0.2, 0.1, 0.3, 0.1])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"init": "tree", "tree": "(a:1,b,c:1,d:1,e:1);"}, "length for each edge"),
        ({"init": [1.0, 2]}, r"init must hold one length for each of 7 .* \(2,\)"),
        ({"init": [1.0] * 6 + [-1]}, "init must be finite .* got -1.0 for edge 6"),
        ({"init": [1.0] * 6 + [np.nan]}, "init must be finite .* got nan for edge 6"),
        ({"init": "middle"}, "'init' parameter .* Got 'middle'"),
        (
            {"t_min": 0.5, "t_max": 0.5},
            "t_min must be less than t_max, got 0.5 and 0.5",
        ),
        ({"t_min": 0.0}, "'t_min' parameter"),
        ({"t_max": 16.0}, "'t_max' parameter"),
        ({"alpha": 0.0}, "'alpha' parameter"),
        ({"n_rate_categories": 0}, "'n_rate_categories' parameter"),
        ({"n_init": 0}, "'n_init' parameter"),
        ({"max_iter": -1}, "'max_iter' parameter"),
        ({"tol": -1.0}, "'tol' parameter"),
        ({"solver": "newton"}, "'solver' parameter"),
        ({"standard_errors": "robust"}, "'standard_errors' parameter"),
        ({"ascertainment": "yes"}, "'ascertainment' parameter"),
        ({"binarize": np.inf}, "'binarize' parameter"),
        ({"solver": "em", "ascertainment": True}, "solver='em' is for"),
        ({"solver": "em", "n_rate_categories": 2}, "solver='em' is for"),
        ({"max_iter": 0, "n_rate_categories": 2}, "alpha must be given"),
        ({"ascertainment": True}, "ascertainment=True is for variable sites, .* rows"),
    ],
)
def test_parameters_that_do_not_fit(params, message):
    with pytest.raises(ValueError, match=message):
        PhyloBranchLengths(**{"tree": TREE} | params).fit(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(300), "[Nn]egative"),
        (np.zeros(300), "at least one non-zero"),
        (np.ones(299), "inconsistent|sample_weight"),
        (np.full(300, np.nan), "NaN"),
        (np.full(300, np.inf), "infinity"),
    ],
)
def test_weights_that_do_not_fit(weights, message):
    with pytest.raises(ValueError, match=message):
        PhyloBranchLengths(TREE).fit(X, sample_weight=weights)


def test_data_that_do_not_fit():
    with pytest.raises(ValueError, match=r"1 feature\(s\)"):
        PhyloBranchLengths().fit(X[["a"]])
    with pytest.raises(ValueError, match="positive weight; there is none in c, d"):
        PhyloBranchLengths(TREE).fit(X.astype(float).assign(c=np.nan, d=np.nan))
    rows = pd.DataFrame([[0, 1, 0], [0, 0, np.nan], [1, np.nan, 0], [1, 1, 1]],
                        columns=list("abc"))  # fmt: skip
    model = PhyloBranchLengths("(a,b,c);", ascertainment=True, standard_errors=None)
    with pytest.raises(ValueError, match="in all columns: 1, 3\\.$"):
        model.fit(rows)
    model.fit(rows.iloc[[0, 2]])
    with pytest.raises(ValueError, match="in all columns: 1, 3\\.$"):
        model.score_samples(rows)
    many = pd.DataFrame(np.zeros((30, 3)), columns=list("abc"))
    with pytest.raises(ValueError, match="7, 8, 9 and 20 more"):
        model.fit(many)


def test_one_site():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PhyloBranchLengths(TREE).fit(X.iloc[:1])
    assert model.at_bound_.any() and model.n_patterns_ == 1


def test_tree_of_a_leaf_root_is_read_back():
    model = PhyloBranchLengths([-1, 5, 6, 6, 7, 0, 7, 5]).fit(X)
    again = PhyloBranchLengths(model.tree_, init="tree", max_iter=0).fit(X)
    assert again.loglik_ == pytest.approx(model.loglik_, abs=1e-9)
    assert_same_lengths(again, model)
