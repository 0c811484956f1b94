"""What users pass: trees, starting lengths and variable characters."""

from dataclasses import replace

import numpy as np

from skextra.phylo._distances import distances, least_squares, neighbor_tree
from skextra.phylo._interchange import as_bunch
from skextra.phylo._trees import Tree, checked_lengths, checked_parents, reordered

CONSTANT = 0.8  # correlation across every edge of a cold start
SHORT, LONG = 1e-4, 2.0  # bounds of the starts that are not the user's own


def listed(items, most=10):
    """Return items as text, without most of them where they are many."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(str(item) for item in items[:most]) + more


def as_tree(tree, n_leaves=None):
    """Return what a user has for a tree; arrays of parents have no names."""
    if isinstance(tree, list | tuple) and any(isinstance(item, str) for item in tree):
        raise TypeError(
            f"tree must be one tree, got a {type(tree).__name__} of {len(tree)} texts."
        )
    if isinstance(tree, list | tuple) or hasattr(tree, "__array__"):
        parents, n_leaves = checked_parents(tree, n_leaves)
        unknown = np.full(len(parents), np.nan)
        return Tree(parents, n_leaves, unknown, ("",) * len(parents))
    given = as_bunch(tree)
    parents, n_leaves = checked_parents(given.parents)
    lengths = np.asarray(given.branch_lengths, dtype=float)
    checked_lengths(lengths, "The branch lengths of the tree")
    return Tree(parents, n_leaves, lengths, tuple(given.names))


def matched(tree, names, has_names):
    """Return the tree with its leaves in the order of the columns of X.

    Raises
    ------
    ValueError
        If the leaves are not the columns. Without names the columns are "x0", "x1" and
        so on, or "0", "1" and so on.
    """
    leaves = tree.names[: tree.n_leaves]
    if not any(leaves):  # an array of parents, in the order of the columns
        return replace(tree, names=(*names, *tree.names[tree.n_leaves :]))
    if not has_names and set(leaves) == {str(i) for i in range(len(names))}:
        names = [str(i) for i in range(len(names))]
    place = {name: i for i, name in enumerate(leaves)}
    absent = [name for name in names if name not in place]
    known = set(names)
    extra = [name for name in leaves if name not in known]
    if absent or extra:
        hint = "" if has_names else " X has no column names that are str."
        raise ValueError(
            "The leaves of the tree must be the columns of X; not in the tree: "
            f"{listed(absent) or 'none'}; not in X: {listed(extra) or 'none'}.{hint}"
        )
    return reordered(tree, np.array([place[name] for name in names]))


def joined_tree(distances, names):
    """Return the neighbour-joining tree, or say which leaves cannot be compared."""
    unknown = np.argwhere(np.isnan(distances))
    if len(unknown):
        i, j = unknown[0]
        raise ValueError(
            f"No site has a state at both {names[i]} and {names[j]}, so they have no "
            "distance for neighbour joining; pass a tree, or drop one of them."
        )
    return neighbor_tree(distances, names)


def starting_lengths(init, tree, patterns, limits):
    """Return the lengths from which the search starts.

    Raises
    ------
    ValueError
        If the lengths given do not fit the tree.
    """
    n_edges = len(tree.edges)
    short, long = limits.clip([SHORT, LONG])
    if isinstance(init, str) and init == "ls":
        found = distances(patterns.states, patterns.weights)
        return np.clip(least_squares(tree, found), short, long)
    if isinstance(init, str) and init == "constant":
        return np.full(n_edges, np.clip(-np.log(CONSTANT) / 2, short, long))
    own = isinstance(init, str)  # "tree"
    return limits.clip(given_lengths(tree, None if own else init, "init"))


def given_lengths(tree, lengths, name):
    """Return lengths of the edges that a user gives, or those that the tree has.

    Raises
    ------
    ValueError
        If they are not finite and >= 0, one for each edge.
    """
    n_edges = len(tree.edges)
    if lengths is None:
        lengths = tree.lengths[tree.edges]
        unknown = tree.edges[np.isnan(lengths)]
        if unknown.size:
            raise ValueError(
                "The tree must have a length for each edge, there is none above the "
                f"nodes {listed(unknown)}."
            )
        return lengths
    try:
        lengths = np.asarray(lengths, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}.") from error
    if lengths.shape == tree.parents.shape:
        lengths = lengths[tree.edges]
    if lengths.shape != (n_edges,):
        raise ValueError(
            f"{name} must hold one length for each of {n_edges} edges, got an array of "
            f"shape {lengths.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths >= 0)))
    if wrong.size:
        raise ValueError(
            f"{name} must be finite and not negative, got {lengths[wrong[0]]} for edge "
            f"{wrong[0]}."
        )
    return lengths


def require_variable(states):
    """Raise a ValueError if a site shows one state alone, or none."""
    constant = np.flatnonzero((states >= 0).all(axis=1) | (states <= 0).all(axis=1))
    if constant.size:
        raise ValueError(
            "ascertainment=True is for variable sites, but these rows of X have the "
            f"same state, or may have, in all columns: {listed(constant)}."
        )
