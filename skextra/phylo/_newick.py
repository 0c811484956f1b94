"""Trees as Newick text."""

import re

import numpy as np
from sklearn.utils import Bunch

from skextra.phylo._alignment_formats import after_comment
from skextra.phylo._trees import checked_lengths, checked_parents, preorder
from skextra.phylo._walk import children_of

TOKEN = re.compile(
    r"""[\s\ufeff]+
    | (?P<mark>[(),:;])
    | '(?P<quoted>(?:[^']|'')*)'
    | (?P<plain>[^\s()\[\]',:;]+)
    """,
    re.VERBOSE,
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def _malformed(what, place):
    return ValueError(f"Malformed Newick text: {what} at position {place}.")


def _tokens(text):
    """Yield (kind, value, position) of the marks and labels of a text."""
    place = 0
    while place < len(text):
        if text[place] == "[":
            start, place = place, after_comment(text, place)
            if place is None:
                raise _malformed("a comment that never ends", start)
            continue
        found = TOKEN.match(text, place)
        if not found:
            quote = text[place] == "'"
            what = "a quote that never ends" if quote else repr(text[place])
            raise _malformed(what, place)
        if found.lastgroup:
            value = found[found.lastgroup]
            if found.lastgroup == "quoted":
                value = value.replace("''", "'")
            yield found.lastgroup, value, place
        place = found.end()
    yield "mark", ";", len(text)


def _shown(mark):
    return "the end" if mark == ";" else repr(mark)


def parse_newick(text):
    """Read a tree from Newick text.

    Blanks between tokens and comments in square brackets are skipped. A label in single
    quotes may hold any character, with two quotes for one; an underscore in a
    label without quotes stays an underscore.

    Parameters
    ----------
    text : str
        One tree, such as ``"((a:1,b:2):.5,c:1);"``.

    Returns
    -------
    tree : Bunch
        With the attributes

        parents : ndarray of shape (n_nodes,), dtype int64
            Parent of each node, -1 for the root. The leaves come first, in the order of
            the text; an inner node comes after those below it.
        branch_lengths : ndarray of shape (n_nodes,)
            Length of the edge above each node; NaN where the text has none.
        names : list of str
            Labels of the nodes; empty where the text has none.

    Raises
    ------
    ValueError
        If the text is not one tree of at least two leaves, each with a label of its
        own, or if a length is negative or not finite. The message tells the position.

    TypeError
        If `text` is not text.

    See Also
    --------
    to_newick : The inverse.
    read_trees : Read a file of Newick or NEXUS text.

    Examples
    --------
    >>> from skextra.phylo import parse_newick
    >>> tree = parse_newick("((a:1,b:2):.5,c:1);")
    >>> tree.parents
    array([ 3,  3,  4,  4, -1])
    >>> tree.branch_lengths
    array([1. , 2. , 1. , 0.5, nan])
    >>> tree.names
    ['a', 'b', 'c', '', '']
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {type(text).__name__}.")
    parents, names, lengths, leaves, above = [], [], [], set(), []
    node, may = None, "begin"  # a subtree; then may be named, measured, and ended

    def begin():
        parents.append(above[-1] if above else -1)
        names.append("")
        lengths.append(float("nan"))
        return len(parents) - 1

    tokens = _tokens(text)
    for kind, value, place in tokens:
        if may == "give a length":
            if kind != "plain" or not NUMBER.fullmatch(value):
                raise _malformed(f"{_shown(value)} where a length is missing", place)
            lengths[node], may = float(value), "end"
            if not 0 <= lengths[node] < np.inf:
                raise _malformed(f"the length {value}, not finite and >= 0,", place)
        elif kind != "mark":
            if may not in ("begin", "be named") or (may == "begin" and not value):
                raise _malformed(f"the label {value!r}", place)
            if may == "begin":
                if value in leaves:
                    raise _malformed(f"a second leaf {value!r}", place)
                leaves.add(value)
                node = begin()
            names[node], may = value, "be measured"
        elif value == "(" and may == "begin":
            above.append(begin())
        elif may == "begin":
            raise _malformed(f"{_shown(value)} in the place of a leaf", place)
        elif value == ":" and may != "end":
            may = "give a length"
        elif value == "," and above:
            may = "begin"
        elif value == ")" and above:
            node, may = above.pop(), "be named"
        elif value == ";" and not above:
            break
        else:
            raise _malformed(_shown(value), place)
    rest = [(value, place) for _, value, place in tokens]
    if rest[:-1]:
        raise _malformed(f"{rest[0][0]!r} after the tree", rest[0][1])
    if len(leaves) < 2:
        raise _malformed("the end of a tree of one leaf", place)
    return leaves_first(parents, lengths, names)


def leaves_first(parents, lengths, names):
    """Number the nodes of a tree, each given after its parent: leaves first, root last.

    A root with one child is left out, since it is no leaf in text.
    """
    children, top = children_of(parents), 0
    while len(children[top]) == 1:
        (top,) = children[top]
    is_leaf = np.array([not below for below in children])
    old = np.concatenate([np.flatnonzero(is_leaf), np.flatnonzero(~is_leaf)[::-1]])
    old = old[old >= top]
    new = np.full(len(parents) + 1, -1)
    new[old] = np.arange(len(old))
    names = [names[i] for i in old]
    if is_leaf.sum() < 2:
        raise ValueError(
            f"A tree must have at least 2 leaves, this one has {is_leaf.sum()}."
        )
    require_names(names[: is_leaf.sum()])
    return Bunch(
        parents=new[np.array(parents)[old]],
        branch_lengths=np.array(lengths, dtype=float)[old],
        names=names,
    )


def require_names(names):
    """Raise a ValueError unless all leaves have names, each its own."""
    if "" in names:
        raise ValueError(f"Leaf {names.index('')} of the tree has no name.")
    seen = set()
    for name in names:
        if name in seen:
            raise ValueError(f"Two leaves of the tree have the name {name!r}.")
        seen.add(name)


def quoted(name):
    """Return a label as Newick text, in quotes where it needs them."""
    name = str(name)
    if name and not re.search(r"[\s()\[\]',:;]", name):
        return name
    return "'" + name.replace("'", "''") + "'" if name else ""


def to_newick(parents, branch_lengths=None, names=None):
    """Write a tree as Newick text.

    Parameters
    ----------
    parents : array-like of shape (n_nodes,)
        Parent of each node, -1 for the root; the leaves are the first nodes.

    branch_lengths : array-like of shape (n_nodes,) or (n_nodes - 1,), default=None
        Length of the edge above each node, where NaN is left out; or of the edges
        in the order of their lower nodes, which leaves the root out.

    names : list of str, of length n_leaves or n_nodes, default=None
        Labels of the leaves, or of all nodes. By default "x0", "x1" and so on.

    Returns
    -------
    text : str
        The tree. Lengths have all their digits, so `parse_newick` gives them back.

    Raises
    ------
    ValueError
        If `parents` is not a tree, or an argument does not fit it.

    See Also
    --------
    parse_newick : The inverse.

    Notes
    -----
    A leaf that is the root of the array is a leaf of the text too, beside what is below
    it and with a length of 0: Newick text has inner nodes for roots.

    Examples
    --------
    >>> from skextra.phylo import to_newick
    >>> to_newick([3, 3, 3, -1], [0.1, 0.2, 0.3], ["a", "b", "c d"])
    "(a:0.1,b:0.2,'c d':0.3);"
    """
    tree = checked_arrays(parents, branch_lengths, names)
    return _text(tree.parents, tree.branch_lengths, tree.names)


def checked_arrays(parents, branch_lengths=None, names=None):
    """Return a tree as a Bunch with one length and one name for each node.

    Raises
    ------
    ValueError
        If `parents` is not a tree, or an argument does not fit it.
    """
    parents, n_leaves = checked_parents(parents)
    n_nodes = len(parents)
    lengths = np.full(n_nodes, np.nan)
    if branch_lengths is not None:
        given = np.asarray(branch_lengths, dtype=float)
        if given.shape not in [(n_nodes,), (n_nodes - 1,)]:
            raise ValueError(
                f"branch_lengths must have one value for each of {n_nodes} nodes, or "
                f"{n_nodes - 1} edges, got shape {given.shape}."
            )
        lengths[np.arange(n_nodes) if given.size == n_nodes else parents >= 0] = given
        checked_lengths(lengths, "branch_lengths")
    names = [f"x{i}" for i in range(n_leaves)] if names is None else list(names)
    if len(names) not in (n_leaves, n_nodes):
        raise ValueError(
            f"names must hold one for each of {n_leaves} leaves, or of {n_nodes} nodes, "
            f"got {len(names)}."
        )
    names = [str(name) for name in names] + [""] * (n_nodes - len(names))
    require_names(names[:n_leaves])
    return Bunch(parents=parents, branch_lengths=lengths, names=names)


def _text(parents, lengths, names):
    """Write the nodes, those with the first leaves first, without recursion."""
    order = preorder(parents)
    root = order[0]
    if np.count_nonzero(parents == root) == 1:  # a leaf: put a root above it
        below = np.flatnonzero(parents == root)[0]
        parents, new = np.append(parents, -1), len(parents)
        parents[[root, below]] = new
        lengths, names = np.append(lengths, np.nan), [*names, ""]
        lengths[root] = 0 * lengths[below]
        root, order = new, [new, *order]
    children = children_of(parents.tolist())
    first = np.arange(len(parents))  # of the leaves below each node
    for node in order[:0:-1]:
        first[parents[node]] = min(first[parents[node]], first[node])
    label = [quoted(name) for name in names]
    for node, length in enumerate(lengths):
        if not np.isnan(length):
            label[node] += f":{float(length)!r}"
    pieces, stack = [], [root]
    while stack:
        step = stack.pop()
        if isinstance(step, str):
            pieces.append(step)
        elif not children[step]:
            pieces.append(label[step])
        else:
            below = sorted(children[step], key=first.__getitem__)
            stack.append(f"){label[step]}")
            for child in below[:0:-1]:
                stack += [child, ","]
            stack += [below[0], "("]
    return "".join(pieces) + ";"
