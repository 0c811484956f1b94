"""Trees from and to files, and from the objects of other packages."""

import io
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from skextra.phylo._alignment_formats import (
    QUOTED,
    blocks,
    commands,
    text_of,
    without_comments,
    words,
    write_text,
)
from skextra.phylo._newick import (
    _tokens,
    checked_arrays,
    leaves_first,
    parse_newick,
    quoted,
    to_newick,
)
from skextra.phylo._trees import checked_lengths


def read_trees(source):
    """Read the trees of a file of Newick or NEXUS text.

    Parameters
    ----------
    source : str, path-like or file-like
        Path of a file, or an open text file: Newick trees, each with a semicolon at its
        end, or NEXUS text with a TREES block.

    Returns
    -------
    trees : list of str
        Newick text of each tree, without comments. The leaves of a NEXUS text have the
        names that TRANSLATE or, for numbers, TAXLABELS give them.

    Raises
    ------
    ValueError
        If the text has no tree, or a quote or a comment that never ends.

    See Also
    --------
    write_trees : The inverse.
    parse_newick : Read the text of one tree.

    Examples
    --------
    >>> from io import StringIO
    >>> from skextra.phylo import read_trees
    >>> read_trees(StringIO("(a:1,b:2,c:3);"))
    ['(a:1,b:2,c:3);']
    >>> nexus = '''#NEXUS
    ... begin trees;
    ...   translate 1 cat, 2 dog, 3 'guinea pig';
    ...   tree one = [&U] (1,2,3);
    ... end;'''
    >>> read_trees(StringIO(nexus))
    ["(cat,dog,'guinea pig');"]
    """
    text = text_of(source).lstrip()
    if _is_nexus(text):
        trees = list(_nexus_trees(text))
    else:
        trees = commands(without_comments(text))
    for number, tree in enumerate(trees):
        if not tree.startswith("("):
            raise ValueError(
                f"Tree {number} of the source must be Newick text, which begins with "
                f"'(', or the source NEXUS text; it begins with {tree[:20]!r}."
            )
    if not trees:
        raise ValueError("The source has no tree.")
    return [f"{tree};" for tree in trees]


def _is_nexus(text):
    return text.lstrip()[:6].upper() == "#NEXUS"


def _nexus_trees(text):
    """Yield the trees of NEXUS text, without semicolons."""
    numbers, names = {}, {}
    for block, key, rest in blocks(text):
        if key == "begin":
            names = numbers
        elif key == "taxlabels":
            labels = words(rest)
            numbers = {str(number): label for number, label in enumerate(labels, 1)}
            numbers |= {label: label for label in labels}
        elif block == "trees" and key == "translate":
            pairs = words(rest, separators=",")
            if len(pairs) % 2:
                raise ValueError(
                    f"TRANSLATE must be pairs of labels, got {rest[:60]!r}."
                )
            names = numbers | dict(zip(pairs[::2], pairs[1::2], strict=True))
        elif block == "trees" and key in ("tree", "utree"):
            tree = re.fullmatch(
                rf"\*?\s*({QUOTED}|[^=\s]+)\s*=\s*(.*)", rest, re.DOTALL
            )
            if not tree:
                raise ValueError(f"TREE must be 'name = tree', got {rest[:60]!r}.")
            yield _translated(tree[2], names)


def _translated(newick, names):
    """Return Newick text with other names of leaves.

    Names of inner nodes stay: they may be support values, numbers like the keys.
    """
    pieces, before = [], ""
    for kind, value, _ in _tokens(newick):
        if kind == "mark":
            before = value
        elif before != ":":
            value = quoted(names.get(value, value) if before != ")" else value)
        pieces.append(value)
    return "".join(pieces[:-1])  # the last is the end of the text


def write_trees(trees, target, *, format="newick"):
    """Write trees to a file of Newick or NEXUS text.

    Parameters
    ----------
    trees : tree or list of trees
        Each is Newick or NEXUS text, what `parse_newick` returns, or a tree of
        scikit-bio, Biopython or DendroPy.

    target : str, path-like or file-like
        Path of a file, or an open text file.

    format : {"newick", "nexus"}, default="newick"
        Format of the text.

    Raises
    ------
    ValueError
        If the format is none of these, or an item is not a proper tree.

    TypeError
        If an item is of another type.

    See Also
    --------
    read_trees : The inverse.

    Examples
    --------
    >>> import sys
    >>> from skextra.phylo import write_trees
    >>> write_trees("(a:1,b:2,c:3);", sys.stdout, format="nexus")
    #NEXUS
    BEGIN TREES;
      TREE tree_1 = (a:1.0,b:2.0,c:3.0);
    END;
    """
    if format not in ("newick", "nexus"):
        raise ValueError(f"format must be 'newick' or 'nexus', got {format!r}.")
    trees = trees if isinstance(trees, list | tuple) else [trees]
    if not trees:
        raise ValueError("trees must hold at least one tree, got an empty list.")
    texts = [to_newick(**as_bunch(tree)) for tree in trees]
    if format == "nexus":
        rows = [
            f"  TREE tree_{number} = {text}" for number, text in enumerate(texts, 1)
        ]
        texts = ["#NEXUS", "BEGIN TREES;", *rows, "END;"]
    write_text("".join(f"{text}\n" for text in texts), target)


class Access(NamedTuple):
    """How a package lets us walk over its trees; its import is not needed."""

    root: Callable
    children: Callable
    name: Callable
    length: Callable


ACCESS = {
    "skbio": Access(
        root=lambda tree: tree,
        children=lambda node: node.children,
        name=lambda node: node.name,
        length=lambda node: node.length,
    ),
    "Bio": Access(
        root=lambda tree: getattr(tree, "root", tree),
        children=lambda node: node.clades,
        name=lambda node: node.name,
        length=lambda node: node.branch_length,
    ),
    "dendropy": Access(
        root=lambda tree: tree.seed_node,
        children=lambda node: node.child_nodes(),
        name=lambda node: node.taxon.label if node.taxon else node.label,
        length=lambda node: node.edge.length,
    ),
}


def as_bunch(tree):
    """Return a tree of any type as the Bunch that `parse_newick` returns.

    The confidence values of Biopython are not names, so they are left out.

    Raises
    ------
    TypeError
        If it is none of the types.

    ValueError
        If it is not a tree of at least two leaves, each with a name of its own, or a
        length is negative or not finite.
    """
    if isinstance(tree, str):
        if _is_nexus(tree):
            tree = read_trees(io.StringIO(tree))[0]
        if "(" not in tree:
            raise ValueError(
                f"Newick text begins with '(', got {tree[:40]!r}; read_trees reads a file."
            )
        return parse_newick(tree)
    if isinstance(tree, Mapping) and "parents" in tree:
        unknown = set(tree) - {"parents", "branch_lengths", "names"}
        if unknown:
            raise ValueError(
                "A tree of arrays must have the keys parents, branch_lengths and names, "
                f"got also {sorted(map(str, unknown))}."
            )
        return checked_arrays(**tree)
    for package in {cls.__module__.partition(".")[0] for cls in type(tree).__mro__}:
        if package in ACCESS:
            try:
                return _from_nodes(tree, ACCESS[package])
            except AttributeError:  # another class of the package
                break
    raise TypeError(
        "A tree must be Newick or NEXUS text, a Bunch or dict of parents, branch_lengths "
        "and names, a skbio.TreeNode, a Biopython Tree or a DendroPy Tree, got "
        f"{type(tree).__name__}."
    )


def _from_nodes(tree, access):
    """Return a tree of linked nodes as a Bunch, without recursion."""
    parents, names, lengths = [], [], []
    stack = [(access.root(tree), -1)]
    while stack:
        node, parent = stack.pop()
        stack.extend((child, len(parents)) for child in reversed(access.children(node)))
        name, length = access.name(node), access.length(node)
        parents.append(parent)
        names.append("" if name is None else str(name))
        lengths.append(np.nan if length is None else float(length))
    found = leaves_first(parents, lengths, names)
    checked_lengths(found.branch_lengths, "The branch lengths of the tree")
    return found
