"""The simulated alignments for which ``peer_numbers.json`` holds others' results.

Only NumPy's frozen ``RandomState`` is used, so every version makes the same cells.
"""

import numpy as np

# Means of the four equal slices of Gamma(0.5, mean 1).
RATES = (0.033387751, 0.251915916, 0.820268482, 2.894427851)


def random_tree(n_leaves, rng):
    """Random pairs are joined until three are left; the root comes last."""
    parents = np.full(2 * n_leaves - 2, -1)
    active = list(range(n_leaves))
    for node in range(n_leaves, len(parents)):
        for _ in range(3 if len(active) == 3 else 2):
            parents[active.pop(rng.randint(len(active)))] = node
        active.append(node)
    lengths = np.round(rng.uniform(0.03, 0.3, len(parents) - 1), 4)
    return parents, lengths


def contract(parents, lengths, node):
    """Drop an inner node; its children go to its parent (a polytomy)."""
    parents = np.where(parents == node, parents[node], parents)
    parents = np.delete(parents, node)
    return np.where(parents > node, parents - 1, parents), np.delete(lengths, node)


def evolve(parents, lengths, n_leaves, n_sites, rng, rates=(1.0,)):
    """Zeros and ones at the leaves, from the root (the last node) down."""
    rate = np.asarray(rates)[rng.randint(len(rates), size=n_sites)]
    states = np.zeros((n_sites, len(parents)), dtype=int)
    states[:, -1] = rng.randint(2, size=n_sites)
    for node in range(len(parents) - 2, -1, -1):
        flip = rng.random_sample(n_sites) < -np.expm1(-2 * rate * lengths[node]) / 2
        states[:, node] = states[:, parents[node]] ^ flip
    return states[:, :n_leaves].astype(float)


def make(name):
    """One data set: (names, parents, true lengths, X); X has one row per site."""
    n_leaves, n_sites, seed = {
        "plain": (8, 2000, 1),
        "missing": (12, 1500, 2),
        "gamma": (6, 3000, 3),
        "variable": (7, 1500, 4),
    }[name]
    rng = np.random.RandomState(seed)
    parents, lengths = random_tree(n_leaves, rng)
    if name == "missing":
        parents, lengths = contract(parents, lengths, len(parents) - 3)
    rates = RATES if name == "gamma" else (1.0,)
    X = evolve(parents, lengths, n_leaves, n_sites, rng, rates)
    if name == "missing":
        X[rng.random_sample(X.shape) < 0.1] = np.nan
    elif name == "variable":
        X = X[X.min(axis=1) != X.max(axis=1)]
    return [f"t{i:02d}" for i in range(n_leaves)], parents, lengths, X


def newick(names, parents, lengths=None):
    """Newick text of a parent array."""

    def text(node):
        below = [text(c) for c in np.flatnonzero(parents == node)]
        label = f"({','.join(below)})" if below else names[node]
        if lengths is None or parents[node] < 0:
            return label
        return f"{label}:{lengths[node]!s}"

    return text(len(parents) - 1) + ";"
