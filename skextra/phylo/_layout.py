"""Where the nodes of a tree are drawn."""

import numpy as np

from skextra.phylo._trees import preorder
from skextra.phylo._walk import children_of


def _distances(parents, lengths, start):
    """Return the distance of all nodes from one, and the node before each."""
    neighbors = [[] for _ in parents]
    for node, parent in enumerate(parents):
        if parent >= 0:
            neighbors[node].append((parent, lengths[node]))
            neighbors[parent].append((node, lengths[node]))
    distance, before = np.full(len(parents), np.nan), np.full(len(parents), -1)
    distance[start], stack = 0, [start]
    while stack:
        node = stack.pop()
        for other, length in neighbors[node]:
            if np.isnan(distance[other]):
                distance[other], before[other] = distance[node] + length, node
                stack.append(other)
    return distance, before


def midpoint(parents, lengths, n_leaves):
    """Return the edge in the middle of the longest path, and how far up it that is."""
    first = np.argmax(_distances(parents, lengths, 0)[0][:n_leaves])
    distance, before = _distances(parents, lengths, first)
    others = np.where(np.arange(n_leaves) == first, -1, distance[:n_leaves])
    node = int(np.argmax(others))
    half = distance[node] / 2
    while distance[before[node]] > half:
        node = int(before[node])
    other = int(before[node])
    if parents[node] == other:
        return node, distance[node] - half
    return other, half - distance[other]


def edge_of(parents, leaves, n_leaves):
    """Return the edge with these leaves, and no others, on one side; or None."""
    below = [
        frozenset([node] if node < n_leaves else []) for node in range(len(parents))
    ]
    for node in preorder(parents)[:0:-1]:
        below[parents[node]] |= below[node]
    sides = frozenset(leaves), frozenset(range(n_leaves)) - frozenset(leaves)
    for node, parent in enumerate(parents):
        if parent >= 0 and below[node] in sides:
            return node
    return None


def rooted(parents, values, edge, up):
    """Put a new root on an edge, at a distance from its lower node.

    The rows of ``values`` belong to the edges above the nodes, the first are the
    lengths. The other values of the edge stay with its longer half.
    """
    root, lower = len(parents), values[:, edge].copy()
    parents = np.append(parents, root)
    values = np.hstack([values, np.full((len(values), 1), np.nan)])
    upper = lower.copy()
    lower[0], upper[0] = up, upper[0] - up
    (lower if lower[0] < upper[0] else upper)[1:] = np.nan
    node, new, carried = parents[edge], root, upper
    parents[edge], values[:, edge] = root, lower
    while node >= 0:  # turn the edges on the way to the old root
        above, own = parents[node], values[:, node].copy()
        parents[node], values[:, node] = new, carried
        node, new, carried = above, node, own
    parents[root] = -1
    return parents, values


def places(parents, lengths):
    """Return the distance of each node from the root, and its height on the page."""
    x, y, row = np.zeros(len(parents)), np.zeros(len(parents)), 0
    children, order = children_of(parents.tolist()), preorder(parents)
    for node in order[1:]:
        x[node] = x[parents[node]] + lengths[node]
        if not children[node]:
            y[node], row = row, row + 1
    for node in order[::-1]:
        if children[node]:
            y[node] = (y[children[node][0]] + y[children[node][-1]]) / 2
    return x, y
