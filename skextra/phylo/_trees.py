"""Trees as parent arrays."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skextra.phylo._walk import children_of, walk


@dataclass(frozen=True)
class Tree:
    """A tree whose leaves are the nodes 0 to n_leaves - 1; -1 is the root's parent."""

    parents: np.ndarray  # (n_nodes,) int64
    n_leaves: int
    lengths: np.ndarray  # (n_nodes,) of the edges above the nodes, NaN where unknown
    names: tuple  # of the nodes, "" where there is none

    @cached_property
    def root(self):
        """Return the node without a parent."""
        return int(np.flatnonzero(self.parents < 0)[0])

    @cached_property
    def edges(self):
        """Return the lower nodes of the edges, in increasing order."""
        return np.flatnonzero(self.parents >= 0)

    @cached_property
    def walk(self):
        """Return the steps of the kernels."""
        return walk(self.parents, self.n_leaves)

    @cached_property
    def preorder(self):
        """Return the nodes, each after its parent."""
        return preorder(self.parents)


def preorder(parents):
    """Return the nodes from the root on, each after its parent and before its right.

    Raises
    ------
    ValueError
        If the parents do not make a tree.
    """
    parents = np.asarray(parents)
    children = children_of(parents.tolist())
    stack, order = np.flatnonzero(parents < 0)[:1].tolist(), []
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(children[order[-1]]))
    if len(order) < len(parents):
        lost = sorted(set(range(len(parents))) - set(order))
        raise ValueError(
            f"The parents of these nodes make a cycle, which never gets to the root: "
            f"{lost[:10]}{' ...' if len(lost) > 10 else ''}."
        )
    return np.array(order, dtype=np.int64)


def checked_parents(parents, n_leaves=None):
    """Return parents as an int64 array, and the number of leaves.

    Raises
    ------
    ValueError
        If they are not a tree whose leaves come first.
    """
    try:
        given = np.asarray(parents)
    except ValueError as error:  # ragged
        raise ValueError(f"The parents of a tree must be one array: {error}") from error
    if given.ndim != 1 or given.size < 2:
        raise ValueError(
            "A tree must be an array of the parents of at least 2 nodes, got one of "
            f"shape {given.shape}."
        )
    n_nodes = len(given)
    if given.dtype.kind not in "iuf" or (given != np.floor(given)).any():
        raise ValueError(
            "The parents of a tree must be integers, with -1 for that of the root, got "
            f"{given[:10].tolist()}."
        )
    wrong = np.flatnonzero((given < -1) | (given >= n_nodes))
    if wrong.size:
        raise ValueError(
            f"The parent of node {wrong[0]} must be a node, 0 to {n_nodes - 1}, or -1 "
            f"for the root, got {given[wrong[0]]}."
        )
    parents = given.astype(np.int64)
    roots = np.flatnonzero(parents == -1)
    if len(roots) != 1:
        raise ValueError(
            f"A tree must have one root, with parent -1; got {len(roots)}: "
            f"{roots[:10].tolist()}."
        )
    preorder(parents)
    degree = np.bincount(parents[parents >= 0], minlength=n_nodes) + (parents >= 0)
    ends = np.flatnonzero(degree == 1)
    if not np.array_equal(ends, np.arange(len(ends))):
        raise ValueError(
            "The leaves of a tree must be its first nodes; of this array of parents "
            f"they are the nodes {ends[:10].tolist()}{' ...' * (len(ends) > 10)}."
        )
    if n_leaves is not None and len(ends) != n_leaves:
        raise ValueError(
            f"The tree has {len(ends)} leaves, but X has {n_leaves} columns."
        )
    return parents, len(ends)


def checked_lengths(lengths, what):
    """Raise a ValueError unless lengths are finite and >= 0, or NaN for unknown."""
    wrong = np.flatnonzero((lengths < 0) | np.isinf(lengths))
    if wrong.size:
        raise ValueError(
            f"{what} must be finite and not negative, got {lengths[wrong[0]]} above "
            f"node {wrong[0]}."
        )


def suppressed(tree):
    """Return the tree without nodes of degree 2; the lengths at such a node add.

    Without it the likelihood of a reversible model depends on the sum of the two
    lengths alone. A tree that has no such node is returned as it is.
    """
    parents, lengths = tree.parents.tolist(), tree.lengths.tolist()
    children = children_of(parents)
    degree = [len(children[i]) + (above >= 0) for i, above in enumerate(parents)]
    if 2 not in degree:
        return tree
    root = parents.index(-1)
    if degree[root] == 2:  # one of its children takes its place, rather not a leaf
        first, second = children[root]
        top, other = (first, second) if first >= tree.n_leaves else (second, first)
        while degree[top] == 2:  # a chain below the root
            (below,) = children[top]
            lengths[below] += lengths[top]
            parents[top], top = None, below
        parents[top], parents[other] = -1, top
        lengths[other] += lengths[top]
        lengths[top], parents[root] = float("nan"), None
    for node in range(len(parents)):
        while (above := parents[node]) not in (None, -1) and (
            degree[above] == 2 and parents[above] != -1
        ):
            lengths[node] += lengths[above]
            parents[node], parents[above] = parents[above], None
    kept = [i for i, parent in enumerate(parents) if parent is not None]
    number = {node: i for i, node in enumerate(kept)} | {-1: -1}
    return Tree(
        np.array([number[parents[i]] for i in kept]),
        tree.n_leaves,
        np.array([lengths[i] for i in kept]),
        tuple(tree.names[i] for i in kept),
    )


def reordered(tree, order):
    """Return the tree with its leaves in the order of their present numbers."""
    inner = np.arange(tree.n_leaves, len(tree.parents))
    old = np.concatenate([order, inner])
    new = np.empty(len(old) + 1, dtype=np.int64)
    new[old], new[-1] = np.arange(len(old)), -1
    return Tree(
        new[tree.parents[old]],
        tree.n_leaves,
        tree.lengths[old],
        tuple(tree.names[i] for i in old),
    )
