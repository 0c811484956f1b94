"""Kernels: messages on a tree, and what they tell of its edges.

A message is a pair of probabilities, of state 0 and of state 1, that sum to 1; the
paper's magnetisation is their difference. The pair keeps its digits where the
magnetisation loses them, near -1 and 1. ``messages`` has shape (rows, 2, columns): a
column is a pattern in one rate category, category by category. ``flips[edge, category]``
is the probability that the two ends of an edge differ.

The rows of ``events`` are the steps of a walk over the tree (see ``_walk.py``):
(operation, node, start, out, rest, rest_is_node, left, wide). At a node of many
children, where ``wide`` is not 0, the less likely state may fall below the smallest
float and be brought back by later children: there the rows hold logarithms.
"""

import numpy as np
from numba import njit

UP, EDGE, REST, POSTERIOR = range(4)
LAST = 2  # of the children of a wide node
LANES = 32  # partial sums of a fixed order: vectors of any width give the same bits
FLUSH = 8  # factors >= 1e-30 between two logarithms


@njit(cache=True, nogil=True)
def _merge(out, first, second, flips):
    """Multiply a message by one that crosses an edge, and scale it to sum 1."""
    n = first.shape[1] // flips.size
    for k in range(flips.size):
        p = flips[k]
        q = 1 - p
        for j in range(k * n, (k + 1) * n):
            x = first[0, j] * (q * second[0, j] + p * second[1, j])
            y = first[1, j] * (p * second[0, j] + q * second[1, j])
            scale = 1 / (x + y)
            out[0, j] = x * scale
            out[1, j] = y * scale


@njit(cache=True, nogil=True)
def _merge_counted(out, first, second, flips, factor):
    """Merge, and multiply ``factor`` by what the scaling has taken."""
    n = first.shape[1] // flips.size
    for k in range(flips.size):
        p = flips[k]
        q = 1 - p
        for j in range(k * n, (k + 1) * n):
            x = first[0, j] * (q * second[0, j] + p * second[1, j])
            y = first[1, j] * (p * second[0, j] + q * second[1, j])
            total = x + y
            scale = 1 / total
            out[0, j] = x * scale
            out[1, j] = y * scale
            factor[j] *= total


@njit(cache=True, nogil=True)
def cross(out, message, flips):
    """Carry a message across an edge."""
    n = message.shape[1] // flips.size
    for k in range(flips.size):
        p = flips[k]
        q = 1 - p
        for j in range(k * n, (k + 1) * n):
            x, y = message[0, j], message[1, j]
            out[0, j] = q * x + p * y
            out[1, j] = p * x + q * y


@njit(cache=True, nogil=True)
def _add_logs(out, first, second, flips):
    """Add to logarithms those of a message that crosses an edge."""
    n = first.shape[1] // flips.size
    for k in range(flips.size):
        p = flips[k]
        q = 1 - p
        for j in range(k * n, (k + 1) * n):
            x, y = second[0, j], second[1, j]
            out[0, j] = first[0, j] + np.log(q * x + p * y)
            out[1, j] = first[1, j] + np.log(p * x + q * y)


@njit(cache=True, nogil=True)
def _from_logs(row, logs):
    """Turn logarithms into a message, and add that of its scale to ``logs``."""
    for j in range(row.shape[1]):
        top = max(row[0, j], row[1, j])
        x, y = np.exp(row[0, j] - top), np.exp(row[1, j] - top)
        row[0, j], row[1, j] = x / (x + y), y / (x + y)
        logs[j] += top + np.log(x + y)


@njit(cache=True, nogil=True)
def flush(factor, logs):
    """Move the product of the factors into the sum of their logarithms."""
    for j in range(factor.size):
        logs[j] += np.log(factor[j])
        factor[j] = 1.0


@njit(cache=True, nogil=True)
def merge_up(event, messages, flips, factor, logs):
    """Bring the message of a child to its parent."""
    node, start, out, wide = event[1], event[2], event[3], event[7]
    if wide:
        if start < 0:
            messages[out] = 0
        _add_logs(messages[out], messages[out], messages[node], flips[node])
        if wide == LAST:
            _from_logs(messages[out], logs)
    elif start < 0:
        cross(messages[out], messages[node], flips[node])
    else:
        _merge_counted(
            messages[out], messages[start], messages[node], flips[node], factor
        )


@njit(cache=True, nogil=True)
def merge_outside(event, messages, flips):
    """Compute the message at the parent from all that is not below the edge.

    The message of the sibling on the left, and of all below it, is up to date.
    """
    start, out, rest, left = event[2], event[3], event[4], event[6]
    across = flips[rest] if event[5] else flips[-1]  # the last is no edge: 0
    if event[7]:
        if left < 0:
            messages[start] = np.log(messages[start])
        else:
            _add_logs(messages[start], messages[start], messages[left], flips[left])
        if rest < 0:
            messages[out] = messages[start]
        elif event[5]:
            _add_logs(messages[out], messages[start], messages[rest], across)
        else:
            messages[out] = messages[start] + messages[rest]
        _from_logs(messages[out], np.zeros(messages.shape[2]))
        return
    if left >= 0:
        _merge(messages[start], messages[start], messages[left], flips[left])
    if rest < 0:
        messages[out] = messages[start]
    else:
        _merge(messages[out], messages[start], messages[rest], across)


@njit(cache=True, nogil=True)
def merge_rest(event, messages, flips):
    """Merge the messages of the siblings to the right."""
    node, out, rest, is_node = event[1], event[3], event[4], event[5]
    if event[7]:
        messages[out] = 0
        _add_logs(messages[out], messages[out], messages[node], flips[node])
        if is_node:
            _add_logs(messages[out], messages[out], messages[rest], flips[rest])
        else:
            messages[out] += messages[rest]
        return
    cross(messages[out], messages[node], flips[node])
    across = flips[rest] if is_node else flips[-1]
    _merge(messages[out], messages[out], messages[rest], across)


@njit(cache=True, nogil=True)
def compare(below, above, agree, gain):
    """Write the likelihood of a site as agree + p * gain, for an edge of flip p."""
    for j in range(agree.size):
        same = below[0, j] * above[0, j] + below[1, j] * above[1, j]
        agree[j] = same
        gain[j] = below[0, j] * above[1, j] + below[1, j] * above[0, j] - same


@njit(cache=True, nogil=True)
def up_pass(events, messages, flips):
    """Return the log-likelihood of each column, short of constants of the pattern."""
    logs = np.zeros(messages.shape[2])
    factor = np.ones(messages.shape[2])
    for i in range(events.shape[0]):
        merge_up(events[i], messages, flips, factor, logs)
        if i % FLUSH == FLUSH - 1:
            flush(factor, logs)
    flush(factor, logs)
    return logs


@njit(cache=True, nogil=True)
def variable_probability(events, flips, n_rows):
    """Return the probability that a site is variable, with all digits where it is tiny.

    ``some`` is the probability of a 1 at a leaf below a node of state 0, and ``none``
    that of no 1 below a node of state 1.
    """
    some, none = np.zeros((2, n_rows, flips.shape[1]))
    for i in range(events.shape[0]):
        node, start, out = events[i, 1], events[i, 2], events[i, 3]
        for k in range(flips.shape[1]):
            p = flips[node, k]
            one = (1 - p) * some[node, k] + p * (1 - none[node, k])
            other = p * (1 - some[node, k]) + (1 - p) * none[node, k]
            if start >= 0:
                one += some[start, k] - some[start, k] * one
                other *= none[start, k]
            some[out, k], none[out, k] = one, other
    out = events[-1, 3]
    return np.mean(some[out] - none[out])


@njit(cache=True, nogil=True)
def edge_terms(events, messages, flips, ratios, posterior, chain):
    """Compute what the derivatives of the log-likelihood are made of.

    ``ratios[node]`` becomes the derivative of the log-likelihood of each column in the
    flip of the edge above the node; ``posterior[inner]`` the probability of state 1.
    ``chain``, where it has columns, gets for each edge how the expectation given the
    state of one end depends on that of the other end (child given parent, parent given
    child), and how that of the derivative depends on the state of the child and of the
    parent.
    """
    n = messages.shape[2]
    agree, gain = np.empty(n), np.empty(n)
    across = np.empty((2, n))
    for i in range(events.shape[0]):
        event = events[i]
        operation, node, out = event[0], event[1], event[3]
        if operation == REST:
            merge_rest(event, messages, flips)
            continue
        if operation == POSTERIOR:
            if event[7]:
                _add_logs(across, messages[event[2]], messages[node], flips[node])
                _from_logs(across, np.zeros(n))
            else:
                _merge(across, messages[event[2]], messages[node], flips[node])
            posterior[out] = across[1]
            continue
        merge_outside(event, messages, flips)
        below, above = messages[node], messages[out]
        compare(below, above, agree, gain)
        width = n // flips.shape[1]
        for j in range(n):
            ratios[node, j] = gain[j] / (agree[j] + flips[node, j // width] * gain[j])
        if chain.shape[2]:
            cross(across, below, flips[node])
            for j in range(n):
                theta = 1 - 2 * flips[node, j // width]
                scale = 1 / (across[0, j] * across[1, j])
                chain[0, node, j] = theta * below[0, j] * below[1, j] * scale
                chain[3, node, j] = (below[1, j] - below[0, j]) * scale
            cross(across, above, flips[node])
            for j in range(n):
                theta = 1 - 2 * flips[node, j // width]
                scale = 1 / (across[0, j] * across[1, j])
                chain[1, node, j] = theta * above[0, j] * above[1, j] * scale
                chain[2, node, j] = (above[1, j] - above[0, j]) * scale
        cross(messages[out], messages[out], flips[node])


@njit(cache=True, nogil=True)
def _dot(first, second):
    """Return the sum of products, in partial sums of a fixed order."""
    sums = np.zeros(LANES)
    whole = first.size // LANES * LANES
    for start in range(0, whole, LANES):
        for lane in range(LANES):
            sums[lane] += first[start + lane] * second[start + lane]
    for j in range(whole, first.size):
        sums[j - whole] += first[j] * second[j]
    return sums.sum()


@njit(cache=True, nogil=True)
def add_covariances(parents, preorder, chain, variance, weights, total):
    """Add the weighted posterior covariances of the derivatives of each two edges.

    Given the data, the states along a path are a Markov chain, so what one edge tells
    of another one shrinks by a factor at every edge between them. ``total`` gets the
    pairs in which the second edge is before the first in ``preorder``.
    """
    n_nodes, n = variance.shape
    carried = np.empty((n_nodes, n))
    ends = np.empty((2, n_nodes, n))  # what an edge adds, reached from below or above
    for edge in preorder[1:]:
        ends[0, edge] = weights * variance[edge] * chain[2, edge]
        ends[1, edge] = weights * variance[parents[edge]] * chain[3, edge]
    above = np.zeros(n_nodes, dtype=np.bool_)
    for place in range(1, n_nodes):
        edge = preorder[place]
        above[:] = False
        node = parents[edge]
        carried[node] = chain[3, edge]
        above[node] = True
        while parents[node] >= 0:
            carried[parents[node]] = chain[0, node] * carried[node]
            node = parents[node]
            above[node] = True
        for other in preorder[1:place]:
            if above[other]:
                total[edge, other] += _dot(carried[other], ends[0, other])
            else:
                carried[other] = chain[1, other] * carried[parents[other]]
                total[edge, other] += _dot(carried[parents[other]], ends[1, other])


@njit(cache=True, nogil=True)
def join_neighbors(d, parents, lengths):
    """Join the two nodes of least criterion until three are left, in place.

    ``d`` are the distances of the leaves, and become those of the joined nodes.
    Criteria that differ by less than 1e-9 of themselves are ties, and the first wins.
    """
    n = d.shape[0]
    nodes = np.arange(n)
    sums = np.empty(n)
    for size in range(n, 3, -1):
        for a in range(size):
            sums[a] = d[a, :size].sum()
        best, first, second = np.inf, 0, 1
        for a in range(size):
            for b in range(a + 1, size):
                criterion = (size - 2) * d[a, b] - sums[a] - sums[b]
                if criterion < best - 1e-9 * abs(criterion):
                    best, first, second = criterion, a, b
        new = 2 * n - size
        half = (sums[first] - sums[second]) / (2 * (size - 2))
        for node, sign in ((first, 1), (second, -1)):
            parents[nodes[node]] = new
            lengths[nodes[node]] = d[first, second] / 2 + sign * half
        between = d[first, second]
        for a in range(size):
            merged = (d[first, a] + d[second, a] - between) / 2
            d[first, a] = d[a, first] = merged
        nodes[first] = new
        for a in range(second, size - 1):  # close the gap, so the order stays
            nodes[a] = nodes[a + 1]
            d[a, :size] = d[a + 1, :size]
        for a in range(second, size - 1):
            d[: size - 1, a] = d[: size - 1, a + 1]
    for a in range(3):
        parents[nodes[a]] = 2 * n - 3
        lengths[nodes[a]] = d[a, :3].sum() - d[:3, :3].sum() / 4
