"""Trees from and to files and other packages, and parse_newick beside other parsers."""

import io
import re

import numpy as np
import pytest
from Bio import Phylo
from Bio.Seq import Seq
from dendropy import Tree, TreeList
from hypothesis import example, given, settings
from hypothesis import strategies as st
from skbio import DNA, TreeNode
from sklearn.utils import Bunch

from skextra.phylo._interchange import as_bunch, read_trees, write_trees
from skextra.phylo._newick import parse_newick, to_newick

LENGTHS = st.one_of(st.floats(0, 1e6), st.just(np.nan))
PLAIN = st.text(st.sampled_from("abcXYZ_"), min_size=1, max_size=4)
ANY = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1)


@st.composite
def trees(draw, labels=PLAIN, lengths=LENGTHS, min_children=2):
    """Newick text of a random tree, with some polytomies and some names of inner nodes."""
    n_leaves = draw(st.integers(2, 12))
    parents, tops = [-1] * n_leaves, list(range(n_leaves))
    while len(tops) > 1:
        below = draw(st.permutations(tops))[: draw(st.integers(min_children, 4))]
        for node in below:
            parents[node] = len(parents)
        tops = [node for node in tops if node not in below] + [len(parents)]
        parents.append(-1)
    names = draw(st.lists(labels, min_size=n_leaves, max_size=n_leaves, unique=True))
    inner = [draw(st.sampled_from(["", "inner"])) for _ in parents[n_leaves:]]
    lengths = [draw(lengths) for _ in parents]
    return to_newick(parents, lengths, names + inner)


def assert_same(one, other):
    assert one.names == other.names
    np.testing.assert_array_equal(one.parents, other.parents)
    not_root = one.parents >= 0
    np.testing.assert_array_equal(
        one.branch_lengths[not_root], other.branch_lengths[not_root]
    )


def clades(tree):
    """What does not depend on the order of the nodes: leaves below, name and length."""
    below = [
        {name} if name and i not in tree.parents else set()
        for i, name in enumerate(tree.names)
    ]
    root = list(tree.parents).index(-1)
    for node in range(len(below)):  # inner nodes come after those below them
        if node != root:
            below[tree.parents[node]] |= below[node]
    lengths = [repr(float(length)) for length in tree.branch_lengths]
    lengths[root] = ""
    return sorted(zip(map(sorted, below), tree.names, lengths))


def by_scikit_bio(text):
    return TreeNode.read(io.StringIO(text), format="newick", convert_underscores=False)


def by_biopython(text):
    return Phylo.read(io.StringIO(text), "newick")


def by_dendropy(text):
    return Tree.get(
        data=text,
        schema="newick",
        preserve_underscores=True,
        suppress_internal_node_taxa=True,
    )


PARSERS = [by_scikit_bio, by_biopython, by_dendropy]


@pytest.mark.parametrize("parser", PARSERS)
@settings(max_examples=60, deadline=None)
@given(text=trees())
def test_other_packages_read_our_trees_alike(parser, text):
    assert_same(as_bunch(parser(text)), parse_newick(text))


@pytest.mark.parametrize("parser", [by_scikit_bio, by_dendropy])
@pytest.mark.parametrize(
    "text", ["('a b':1,'c''d':2,'(e:[':3);", "('a_b',a_b2,'é ü');"]
)
def test_other_packages_read_our_quotes_alike(parser, text):
    assert_same(as_bunch(parser(text)), parse_newick(text))


@given(trees(labels=ANY))
@settings(max_examples=60, deadline=None)
def test_newick_round_trip(text):
    tree = parse_newick(text)
    assert clades(parse_newick(to_newick(**tree))) == clades(tree)
    assert_same(as_bunch(dict(tree)), tree)


@given(st.lists(trees(labels=ANY), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_files_keep_all_trees(texts):
    for format in ["newick", "nexus"]:
        target = io.StringIO(newline="")
        write_trees(texts, target, format=format)
        found = read_trees(io.StringIO(target.getvalue(), newline=""))
        for one, text in zip(found, texts, strict=True):
            assert clades(parse_newick(one)) == clades(parse_newick(text))


@pytest.mark.parametrize("format", ["newick", "nexus"])
def test_other_packages_read_our_files(format, tmp_path):
    texts = [
        "((a:1.0,b_c:2.0):0.5,d:1e-08,e:3.0);",
        "((a:1.0,d:2.0):0.5,b_c:1.0,e:0.5);",
    ]
    path = tmp_path / "trees.txt"
    write_trees(texts, path, format=format)
    keep = {"preserve_underscores": True}
    for found in [
        read_trees(str(path)),
        Phylo.parse(path, format),
        TreeList.get(path=path, schema=format, **keep),
    ]:
        for tree, text in zip(found, texts, strict=True):
            assert clades(as_bunch(tree)) == clades(parse_newick(text))


@pytest.mark.parametrize("schema", ["newick", "nexus"])
def test_we_read_the_files_of_other_packages(schema):
    texts = ["((a:1,b:2):0.5,'c d':1,e:3);", "((a:1,e:2)x:0.5,b:1,'c d':0.5);"]
    keep = {"suppress_internal_node_taxa": True}
    dendropy = TreeList.get(data="\n".join(texts), schema="newick", **keep)
    biopython = io.StringIO()
    Phylo.write([by_biopython(text) for text in texts], biopython, schema)
    written = dendropy.as_string(schema, preserve_spaces=True)
    for found in [read_trees(io.StringIO(written)), read_trees(_rewound(biopython))]:
        for one, text in zip(found, texts, strict=True):
            assert clades(parse_newick(one)) == clades(parse_newick(text))


def _rewound(file):
    file.seek(0)
    return file


NEXUS = """\ufeff#nexus [made by hand [twice]; it's so]
BEGIN TAXA; DIMENSIONS NTAX=4; TAXLABELS one 'two; 2' three 3; END;
Begin Trees;
  Title none;
  Translate a one, b 'it''s; (b)',
            c three;
  tree first = [&R] ((a:1[&rate=1],b:2)a:.5,c:1[c[d]],2);
  TREE * 'the = second' = [&U] (a,
     b,3)
  ;
END;
begin notes; tree = not a tree; end;
begin trees; utree third=(1,3,2); endblock"""


def test_conventions_of_nexus():
    assert read_trees(io.StringIO(NEXUS)) == [
        "((one:1,'it''s; (b)':2)a:.5,three:1,'two; 2');",
        "(one,'it''s; (b)',3);",
        "(one,3,'two; 2');",
    ]
    assert as_bunch(NEXUS.lstrip("\ufeff")).names[0] == "one"


def test_conventions_of_newick_files():
    text = "[&R] ((a,b)0.9:1,\n c_d);\n\n[one [more]] ('e;f''':1e-3,g)\n"
    expected = ["((a,b)0.9:1,\n c_d);", "('e;f''':1e-3,g);"]
    assert read_trees(io.StringIO(text)) == expected


def test_write_one_tree_of_any_type():
    text = "((a:1.0,b:2.0):0.5,c:1.0,d:3.0);"
    all_types = [text, parse_newick(text), *(parser(text) for parser in PARSERS)]
    for tree in [*all_types, all_types]:
        target = io.StringIO()
        write_trees(tree, target)
        for line in target.getvalue().splitlines():
            assert clades(parse_newick(line)) == clades(parse_newick(text))


def test_arrays_keep_their_numbers():
    tree = as_bunch({"parents": [4, 4, 3, -1, 3], "branch_lengths": [1, 2, 3, 4]})
    assert tree.parents.tolist() == [4, 4, 3, -1, 3]
    assert tree.names == ["x0", "x1", "x2", "", ""]
    np.testing.assert_array_equal(tree.branch_lengths, [1, 2, 3, np.nan, 4])
    assert as_bunch(Bunch(parents=[1, -1], names=["a", "b"])).names == ["a", "b"]


def test_a_clade_of_biopython_and_its_support():
    clade = by_biopython("((a:1,b:2)99:3,c:1);").root
    assert as_bunch(clade).names == ["a", "b", "c", "", ""]


@pytest.mark.parametrize("n_leaves", [5_000])
def test_deep_trees(n_leaves):
    text = "(" * (n_leaves - 1) + "x0"
    text += "".join(f",x{leaf}:1)" for leaf in range(1, n_leaves)) + ";"
    expected = parse_newick(text)
    root = TreeNode()
    clade, deep = root, Phylo.BaseTree.Clade()
    tree, below = Phylo.BaseTree.Tree(root=deep), Tree()
    node = below.seed_node
    for leaf in range(n_leaves - 1, 0, -1):
        name = f"x{leaf}"
        last = leaf == 1
        clades = [Phylo.BaseTree.Clade(name="x0" if last else None)]
        deep.clades = [*clades, Phylo.BaseTree.Clade(1, name)]
        deep = clades[0]
        inner = TreeNode("x0" if last else None)
        clade.children = [inner, TreeNode(name, length=1.0)]
        clade = inner
        first = node.new_child(label="x0" if last else None)
        node.new_child(label=name, edge_length=1.0)
        node = first
    for other in [root, tree, below]:
        assert_same(as_bunch(other), expected)


# Errors.


@pytest.mark.parametrize("package", [TreeNode, Phylo.BaseTree.Clade, Tree])
@pytest.mark.parametrize(
    "text, message",
    [
        ("(a:-1,b:2);", "must be finite and not negative, got -1.0 above node 0"),
        ("(a:1,a:2);", "the name 'a'"),
        ("(a:1,:2);", "Leaf 1 of the tree has no name"),
        ("((a));", "at least 2 leaves"),
    ],
)
def test_errors_of_objects(package, text, message):
    parser = dict(zip([TreeNode, Phylo.BaseTree.Clade, Tree], PARSERS))[package]
    if parser is by_dendropy and "a:2" in text:  # which refuses such text itself
        tree = by_dendropy(text.replace("a:2", "b:2"))
        tree.leaf_nodes()[1].taxon.label = "a"
    else:
        tree = parser(text)
    with pytest.raises(ValueError, match=message):
        as_bunch(tree)


@pytest.mark.parametrize(
    "tree, message",
    [
        (
            {"parents": [2, 2, -1], "branch_lengths": [1]},
            r"branch_lengths .* shape \(1,\)",
        ),
        ({"parents": [2, 2, -1], "branch_lengths": [1, -1]}, "not negative, got -1.0"),
        ({"parents": [2, 2, -1], "names": ["a"]}, "2 leaves, or of 3 nodes, got 1"),
        ({"parents": [2, 2, -1], "names": ["a", "a"]}, "the name 'a'"),
        ({"parents": [2, 2, -1], "names": ["a", ""]}, "Leaf 1 of the tree has no name"),
        ({"parents": [-1, 0, 0]}, "leaves of a tree must be its first nodes"),
        ("(a,b", "the end at position 4"),
        ("#NEXUS begin trees; tree a = (b,,c); end;", "in the place of a leaf"),
    ],
)
def test_errors_of_arrays_and_texts(tree, message):
    with pytest.raises(ValueError, match=message):
        as_bunch(tree)


@pytest.mark.parametrize(
    "tree", [3, None, Seq("A"), DNA("A"), {"a": 1}, object(), b"(a,b);"]
)
def test_other_types(tree):
    message = "Newick or NEXUS text.*TreeNode.*Biopython.*DendroPy Tree, got "
    with pytest.raises(TypeError, match=message + type(tree).__name__):
        as_bunch(tree)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no tree"),
        ("#NEXUS begin data; end;", "no tree"),
        (">a\nACGT", "begins with '>a"),
        ("(a,b);\nc d;", "Tree 1 .* begins with 'c d'"),
        ("(a,b)[c", "comment that begins at position 5 never ends"),
        ("(a,'b);", "odd number of apostrophes"),
        ("#NEXUS begin trees; tree (a,b); end;", "TREE must be 'name = tree', got"),
        ("#NEXUS begin trees; translate 1 a, 2; end;", "TRANSLATE must be pairs"),
    ],
)
def test_errors_of_files(text, message):
    with pytest.raises(ValueError, match=message):
        read_trees(io.StringIO(text))


def test_errors_of_writing():
    with pytest.raises(ValueError, match="'newick' or 'nexus', got 'phyloxml'"):
        write_trees("(a,b);", io.StringIO(), format="phyloxml")
    with pytest.raises(ValueError, match="at least one tree"):
        write_trees([], io.StringIO())
    with pytest.raises(TypeError, match="target must be a path"):
        write_trees("(a,b);", 3)
    with pytest.raises(TypeError, match="source must be a path"):
        read_trees(3)


# Broken text.


TREE_ERROR = re.compile(r"at position \d+|at least 2 leaves|has no name|have the name")


@given(st.text(st.sampled_from("(),:;'[] \nab1.-e_é")))
@example("(" * 50_000)
@example("'" * 50_001)
@example("[" * 50_000)
@example("(a,b)" + ";" * 9)
@example("(a:1:1,b)")
@example("(a:nan,b:inf);")
@example("((a,b));")
@settings(max_examples=300, deadline=None)
def test_parse_newick_of_broken_text(text):
    _parses_or_tells_where(text)


@given(trees(labels=ANY), st.data())
@settings(max_examples=200, deadline=None)
def test_parse_newick_of_text_with_one_change(text, data):
    place = data.draw(st.integers(0, len(text) - 1))
    new = data.draw(st.sampled_from(["", *"(),:;'[] a1"]))
    _parses_or_tells_where(text[:place] + new + text[place + 1 :])


def _parses_or_tells_where(text):
    try:
        tree = parse_newick(text)
    except ValueError as error:
        assert TREE_ERROR.search(str(error)), error
        return
    root = len(tree.parents) - 1
    if (tree.parents == root).sum() > 1:  # with one child it would count as a leaf
        assert clades(parse_newick(to_newick(**tree))) == clades(tree)
