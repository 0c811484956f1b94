"""The walk over a tree that brings the messages to every edge."""

from typing import NamedTuple

import numpy as np

from skextra.phylo._numba import EDGE, LAST, POSTERIOR, REST, UP

WIDE = 10  # children whose messages, each 1e-27 or more, have a product above 1e-300


class Walk(NamedTuple):
    """Steps of the kernels; each is a row of an int array (see ``_numba.py``)."""

    up: np.ndarray  # messages of all inner nodes, from the leaves to the root
    sweep: np.ndarray  # to every edge in turn, with all messages kept up to date
    edges: np.ndarray  # to every edge when no length changes, and to every inner node
    n_rows: int  # of the messages
    outside: np.ndarray  # row of the message from above each node


def children_of(parents):
    """Return the list of children of each node, in increasing order."""
    children = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(node)
    return children


def walk(parents, n_leaves):
    """Lay out the messages of a tree, and the steps that compute them.

    Rows 0 to n_nodes - 1 are messages of the nodes from below, of which those of the
    leaves are data. Then come, for each inner node, the message from above, merged with
    those of its children as they are finished; a row where a node has more than
    two children for those to the right of each; and last a row for passing use.
    """
    parents = np.asarray(parents).tolist()
    children = children_of(parents)
    n_nodes, root = len(parents), parents.index(-1)
    outside = np.full(n_nodes, -1)
    outside[n_leaves:] = np.arange(n_nodes, 2 * n_nodes - n_leaves)
    if root < n_leaves:
        outside[root] = root  # what is above its only edge is its own state
    free = 2 * n_nodes - n_leaves
    passing = free + sum(max(0, len(below) - 2) for below in children)
    ups, sweep, edges = [], [], []

    def step(lists, *values, wide):
        for steps in lists:
            steps.append((*values, wide))

    def enter(node):
        """Lay out the steps to the children of a node, last first."""
        nonlocal free
        below, steps, rest = children[node], [], (-1, 0)
        wide = int(len(below) > WIDE)
        for place in range(len(below) - 1, -1, -1):
            child, left = below[place], below[place - 1] if place else -1
            out = outside[child] if child >= n_leaves else passing
            step([steps], EDGE, child, outside[node], out, *rest, left, wide=wide)
            if rest[0] < 0:
                rest = child, 1
            elif place:
                step([sweep, edges], REST, child, -1, free, *rest, -1, wide=wide)
                rest, free = (free, 0), free + 1
        return steps

    def leave(node):
        """Merge the messages of all children of a node."""
        start, out = (-1, node) if node >= n_leaves else (node, passing)
        for child in children[node]:
            wide = int(len(children[node]) > WIDE)
            wide *= LAST if child == children[node][-1] else 1
            step([ups, sweep], UP, child, start, out, -1, 0, -1, wide=wide)
            start = out
        if node >= n_leaves:
            row, inner = outside[node], node - n_leaves
            step([edges], POSTERIOR, child, row, inner, -1, 0, -1, wide=wide)

    stack = [(root, enter(root))]  # nodes, and the steps to children still to go
    while stack:
        node, steps = stack[-1]
        if not steps:
            leave(node)
            stack.pop()
            continue
        to_child = steps.pop()
        sweep.append(to_child)
        edges.append(to_child)
        child = to_child[1]
        if children[child]:
            stack.append((child, enter(child)))
    up, sweep, edges = (
        np.array(steps, dtype=np.int64).reshape(-1, 8) for steps in (ups, sweep, edges)
    )
    return Walk(up, sweep, edges, passing + 1, outside)
