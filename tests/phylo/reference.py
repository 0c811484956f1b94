"""Slow and obvious versions of everything that ``skextra.phylo`` computes.

Nothing of ``skextra`` is used. A tree is its ``parents`` array (the leaves first, the
root has -1); ``lengths`` has one value per edge, in the order of the lower nodes.
"""

from itertools import combinations, product

import mpmath
import numpy as np
from scipy.optimize import brentq, nnls


def edges_of(parents):
    """Pairs (child, parent), in the order of the children."""
    return [(v, int(p)) for v, p in enumerate(parents) if p >= 0]


def all_patterns(n):
    """The 2^n rows of zeros and ones."""
    return np.array(list(product((0.0, 1.0), repeat=n)))


def flip_probabilities(lengths, rate=1, mp=False):
    """Probability of different states at the two ends of each edge."""
    if mp:
        return [-mpmath.expm1(-2 * mpmath.mpf(rate) * t) / 2 for t in lengths]
    return [-np.expm1(-2 * rate * t) / 2 for t in lengths]


def prune(parents, flips, states):
    """Probability of each site by Felsenstein's pruning (any kind of numbers)."""
    states = np.asarray(states, dtype=float)
    n_sites, n_leaves = states.shape
    edges = edges_of(parents)

    def partial(node):
        """P(what is seen at and below the node | its state), for states 0 and 1."""
        own = [np.ones(n_sites, dtype=int), np.ones(n_sites, dtype=int)]
        if node < n_leaves:
            missing = np.isnan(states[:, node])
            own = [(missing | (states[:, node] == s)).astype(int) for s in (0, 1)]
        for (child, parent), flip in zip(edges, flips):
            if parent == node:
                below = partial(child)
                own = [
                    own[s] * ((1 - flip) * below[s] + flip * below[1 - s])
                    for s in (0, 1)
                ]
        return own

    root = [int(p) for p in parents].index(-1)
    return sum(partial(root)) / 2


def site_likelihoods(parents, lengths, states, rates=(1.0,), mp=False):
    """Probability of each site: the mean over the rates."""
    return sum(
        prune(parents, flip_probabilities(lengths, r, mp), states) for r in rates
    ) / len(rates)


def completions(parents, lengths, site, rate=1, mp=False):
    """All ways to fill in the unseen nodes, each with its probability."""
    site = np.asarray(site, dtype=float)
    known = {v: int(x) for v, x in enumerate(site) if not np.isnan(x)}
    hidden = [v for v in range(len(parents)) if v not in known]
    edges = edges_of(parents)
    flips = flip_probabilities(lengths, rate, mp)
    for filled in product((0, 1), repeat=len(hidden)):
        state = {**known, **dict(zip(hidden, filled))}
        probability = mpmath.mpf(1) / 2 if mp else 0.5
        for (child, parent), flip in zip(edges, flips):
            probability *= flip if state[child] != state[parent] else 1 - flip
        yield state, probability


def enumerated_likelihood(parents, lengths, site, rates=(1.0,), mp=False):
    """Probability of one site as a sum over the states of all unseen nodes."""
    return sum(
        p for r in rates for _, p in completions(parents, lengths, site, r, mp)
    ) / len(rates)


def loglik(
    parents, lengths, states, weights=None, rates=(1.0,), ascertainment=False, mp=False
):
    """Weighted log-likelihood, at will given that every site is variable."""
    states = np.asarray(states, dtype=float)
    weights = np.ones(len(states)) if weights is None else np.asarray(weights)
    log = mpmath.log if mp else np.log
    p = site_likelihoods(parents, lengths, states, rates, mp)
    total = sum(float(w) * log(x) for w, x in zip(weights, p))
    if ascertainment:
        zero = np.zeros((1, states.shape[1]))
        constant = 2 * site_likelihoods(parents, lengths, zero, rates, mp)[0]
        total = total - float(weights.sum()) * log(1 - constant)
    return total


def line_maximum(parents, lengths, states, weights, edge, t_min, t_max):
    """Length of one edge that maximises the log-likelihood, the others fixed.

    The probability of a site is affine in theta: two evaluations give the line.
    """
    flips = flip_probabilities(lengths)
    flips[edge] = 0.5  # theta = 0
    start = prune(parents, flips, states)
    flips[edge] = 0.0  # theta = 1
    slope = prune(parents, flips, states) - start

    def derivative(theta):
        return np.sum(weights * slope / (start + theta * slope))

    low, high = np.exp(-2 * t_max), np.exp(-2 * t_min)
    if derivative(high) >= 0:
        return t_min
    if derivative(low) <= 0:
        return t_max
    return -np.log(brentq(derivative, low, high, xtol=1e-15, rtol=1e-15)) / 2


def coordinate_sweep(
    parents, lengths, states, weights=None, order=None, t_min=1e-8, t_max=10.0
):
    """One edge after the other to its maximum; yields (edge, lengths, loglik)."""
    lengths = np.array(lengths, dtype=float)
    weights = np.ones(len(states)) if weights is None else np.asarray(weights)
    for edge in range(len(lengths)) if order is None else order:
        lengths[edge] = line_maximum(
            parents, lengths, states, weights, edge, t_min, t_max
        )
        yield edge, lengths.copy(), loglik(parents, lengths, states, weights)


def em_step(parents, lengths, states, weights=None):
    """Expected share of flips on each edge: the new flip probabilities of EM."""
    weights = np.ones(len(states)) if weights is None else np.asarray(weights)
    edges = edges_of(parents)
    flipped = np.zeros(len(edges))
    for site, w in zip(states, weights):
        joint = list(completions(parents, lengths, site))
        total = sum(p for _, p in joint)
        for state, p in joint:
            differs = np.array([state[a] != state[b] for a, b in edges])
            flipped += w * p / total * differs
    return flipped / weights.sum()


def gradient(parents, lengths, states, weights=None, rates=(1.0,), ascertainment=False):
    """Derivatives of the log-likelihood in the lengths, by differences at 60 digits."""
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -18

        def shifted(edge, sign):
            t = [mpmath.mpf(float(x)) for x in lengths]
            t[edge] += sign * step
            return loglik(parents, t, states, weights, rates, ascertainment, mp=True)

        return np.array(
            [
                float((shifted(e, 1) - shifted(e, -1)) / (2 * step))
                for e in range(len(lengths))
            ]
        )


def hessian(parents, lengths, states, weights=None, rates=(1.0,), ascertainment=False):
    """Second derivatives in the lengths, by differences at 60 digits."""
    n_edges = len(lengths)
    result = np.empty((n_edges, n_edges))
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -18

        def shifted(e, f, up, right):
            t = [mpmath.mpf(float(x)) for x in lengths]
            t[e] += up * step
            t[f] += right * step
            return loglik(parents, t, states, weights, rates, ascertainment, mp=True)

        middle = shifted(0, 0, 0, 0)
        for e in range(n_edges):
            second = shifted(e, e, 1, 0) + shifted(e, e, -1, 0) - 2 * middle
            result[e, e] = second / step**2
            for f in range(e):
                corners = shifted(e, f, 1, 1) - shifted(e, f, 1, -1)
                corners += shifted(e, f, -1, -1) - shifted(e, f, -1, 1)
                result[e, f] = result[f, e] = corners / (4 * step**2)
    return result


def gamma_rates(alpha, k):
    """Means of the k equal slices of Gamma(alpha, mean 1), by numerical integration.

    With u = x^s, s = min(1, alpha), the density has no pole at 0.
    """
    alpha = mpmath.mpf(alpha)
    s = min(mpmath.mpf(1), alpha)
    constant = alpha**alpha / mpmath.gamma(alpha) / s

    def density(u):
        return constant * u ** (alpha / s - 1) * mpmath.exp(-alpha * u ** (1 / s))

    def integral(f, a, b):
        return mpmath.quad(f, mpmath.linspace(a, b, 9))

    # At most 1/k of the mass lies above k (Markov): a bracket for every quantile.
    top = mpmath.mpf(k) ** s
    cuts = [mpmath.mpf(0)]
    for j in range(1, k):
        low, high = cuts[-1], top
        for _ in range(60):
            middle = (low + high) / 2
            if integral(density, 0, middle) * k < j:
                low = middle
            else:
                high = middle
        cuts.append(low)
    rates = [
        k * integral(lambda u: u ** (1 / s) * density(u), a, b)
        for a, b in zip(cuts, cuts[1:])
    ]
    return np.array([float(r) for r in [*rates, k - sum(rates)]])  # the mean is 1


def ancestral_posterior(parents, lengths, states, rates=(1.0,)):
    """P(state 1) of every inner node given each site, (n_sites, n_inner)."""
    n_leaves = np.shape(states)[1]
    result = np.zeros((len(states), len(parents) - n_leaves))
    for i, site in enumerate(states):
        total = 0.0
        for rate in rates:
            for state, p in completions(parents, lengths, site, rate):
                total += p
                for v in range(n_leaves, len(parents)):
                    result[i, v - n_leaves] += p * state[v]
        result[i] /= total
    return result


def cfn_distance(states, weights=None, max_distance=2.0):
    """-ln(1 - 2 p) / 2 of every pair, p over the sites that both leaves have."""
    states = np.asarray(states, dtype=float)
    n_sites, n_leaves = states.shape
    weights = np.ones(n_sites) if weights is None else weights
    result = np.zeros((n_leaves, n_leaves))
    for i in range(n_leaves):
        for j in range(n_leaves):
            both = different = 0.0
            for x, y, w in zip(states[:, i], states[:, j], weights):
                if x == x and y == y:
                    both += w
                    different += w * (x != y)
            if both == 0:
                result[i, j] = np.nan
            elif 2 * different >= both:
                result[i, j] = max_distance
            else:
                distance = -0.5 * np.log1p(-2 * different / both)
                result[i, j] = min(distance, max_distance)
    return result


def named_split(side, n_leaves, names=None):
    """The side that does not hold leaf 0, as a frozenset of names (or numbers)."""
    side = frozenset(side)
    if 0 in side:
        side = frozenset(range(n_leaves)) - side
    return side if names is None else frozenset(names[i] for i in side)


def neighbor_joining(distances, names=None):
    """Saitou and Nei's tree as {split: length}; negative lengths become 0."""
    distances = np.asarray(distances, dtype=float)
    n_leaves = len(distances)
    clusters = [frozenset([i]) for i in range(n_leaves)]
    d = {
        (a, b): distances[min(a), min(b)]
        for a in clusters
        for b in clusters  # single leaves
    }
    splits = {}

    def add(cluster, length):
        splits[named_split(cluster, n_leaves, names)] = max(float(length), 0.0)

    while len(clusters) > 3:
        n = len(clusters)
        total = {a: sum(d[a, b] for b in clusters) for a in clusters}
        a, b = min(
            combinations(clusters, 2),
            key=lambda ab: round((n - 2) * d[ab] - total[ab[0]] - total[ab[1]], 9),
        )
        to_a = d[a, b] / 2 + (total[a] - total[b]) / (2 * (n - 2))
        add(a, to_a)
        add(b, d[a, b] - to_a)
        new = a | b
        clusters = [c for c in clusters if c not in (a, b)]
        for c in clusters:
            d[new, c] = d[c, new] = (d[a, c] + d[b, c] - d[a, b]) / 2
        d[new, new] = 0.0
        clusters.append(new)
    if len(clusters) == 2:
        add(clusters[1], d[clusters[0], clusters[1]])
    elif len(clusters) == 3:
        for a, b, c in [(0, 1, 2), (1, 0, 2), (2, 0, 1)]:
            a, b, c = clusters[a], clusters[b], clusters[c]
            add(a, (d[a, b] + d[a, c] - d[b, c]) / 2)
    return splits


def sides_of(parents):
    """For each edge the set of leaves (nodes of degree 1) below it."""
    edges = edges_of(parents)
    degree = np.bincount(np.ravel(edges), minlength=len(parents))
    sides = []
    for child, _ in edges:
        below = set()
        for leaf in np.flatnonzero(degree == 1):
            node = int(leaf)
            while node != child and node >= 0:
                node = int(parents[node])
            if node == child:
                below.add(int(leaf))
        sides.append(frozenset(below))
    return sides, int(np.sum(degree == 1))


def splits_of(parents, lengths, names=None):
    """The tree as {split: length}; lengths that meet at a node of degree 2 add."""
    sides, n_leaves = sides_of(parents)
    splits = {}
    for side, length in zip(sides, lengths):
        split = named_split(side, n_leaves, names)
        splits[split] = splits.get(split, 0.0) + float(length)
    return splits


def least_squares_start(parents, distances):
    """Non-negative lengths whose path sums are nearest to the distances."""
    sides, n_leaves = sides_of(parents)
    rows, target = [], []
    for i, j in combinations(range(n_leaves), 2):
        if not np.isnan(distances[i][j]):
            # An edge lies on the path if it has just one of the two leaves below it.
            rows.append([float((i in side) != (j in side)) for side in sides])
            target.append(distances[i][j])
    return nnls(np.array(rows), np.array(target))[0]
