"""Random trees, and the likelihood of the package on the reference's data."""

import numpy as np
from hypothesis import strategies as st

from skextra.phylo._likelihood import Likelihood
from skextra.phylo._patterns import as_states
from skextra.phylo._trees import Tree

# Means of the four equal slices of Gamma(0.5, mean 1), to all digits.
RATES = np.array(
    [0.03338775078, 0.25191591552, 0.82026848244, 2.89442785126],
)


def random_parents(n_leaves, rng, polytomies=True, leaf_root=False):
    """A random tree, whose inner nodes have two children or more; the root three."""
    if n_leaves == 2:
        return np.array([1, -1] if leaf_root else [-1, 0])
    joins, active = [], list(range(n_leaves))
    n_nodes = n_leaves
    while len(active) > 3:
        k = 2 if not polytomies else int(rng.integers(2, min(4, len(active) - 2) + 1))
        chosen = [active.pop(int(rng.integers(len(active)))) for _ in range(k)]
        joins.append((n_nodes, chosen))
        active.append(n_nodes)
        n_nodes += 1
        if polytomies and rng.random() < 0.15:
            break
    joins.append((n_nodes, active))
    parents = np.full(n_nodes + 1, -1)
    for node, below in joins:
        parents[below] = node
    return rerooted(parents, int(rng.integers(n_leaves))) if leaf_root else parents


def rerooted(parents, root):
    """The same tree, hung up at another node."""
    parents, node, above = np.array(parents), root, -1
    while node >= 0:
        parents[node], node, above = above, int(parents[node]), node
    return parents


def moved(parents, lengths, other):
    """The lengths of a tree in the order of the edges of another rooting of it."""
    by_ends = {
        frozenset((v, int(p))): t
        for (v, p), t in zip([(v, p) for v, p in enumerate(parents) if p >= 0], lengths)
    }
    return np.array(
        [by_ends[frozenset((v, int(p)))] for v, p in enumerate(other) if p >= 0]
    )


def random_states(n_sites, n_leaves, rng, missing=0.0):
    X = rng.integers(0, 2, (n_sites, n_leaves)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def tree_of(parents, n_leaves):
    n = len(parents)
    return Tree(np.array(parents), n_leaves, np.full(n, np.nan), ("",) * n)


def problem(parents, X, weights=None, rates=(1.0,), ascertainment=False):
    """The package's likelihood of all rows of X."""
    X = np.asarray(X, dtype=float)
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    tree = tree_of(parents, X.shape[1])
    return Likelihood(
        tree, as_states(X, None), weights, np.array(rates, dtype=float), ascertainment
    )


def evolved(parents, lengths, n_leaves, n_sites, rng, rates=(1.0,)):
    """Characters at the leaves, from the root down."""
    rate = np.asarray(rates)[rng.integers(len(rates), size=n_sites)]
    states = np.full((n_sites, len(parents)), -1)
    by_node = np.zeros(len(parents))
    by_node[np.asarray(parents) >= 0] = lengths

    def state(node):
        if states[0, node] < 0:
            if parents[node] < 0:
                states[:, node] = rng.integers(0, 2, n_sites)
            else:
                flip = rng.random(n_sites) < -np.expm1(-2 * rate * by_node[node]) / 2
                states[:, node] = state(int(parents[node])) ^ flip
        return states[:, node]

    return np.column_stack([state(leaf) for leaf in range(n_leaves)]).astype(float)


@st.composite
def cases(draw, max_leaves=7, shortest=1e-15, longest=15.0, missing=True):
    """A tree, lengths of any size, and sites: (parents, lengths, X, weights)."""
    n_leaves = draw(st.integers(2, max_leaves))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parents = random_parents(n_leaves, rng, draw(st.booleans()), draw(st.booleans()))
    length = st.one_of(
        st.sampled_from([shortest, 1e-8, 0.1, longest]).filter(lambda t: t >= shortest),
        st.floats(shortest, longest),
    )
    n_edges = len(parents) - 1
    lengths = np.array(draw(st.lists(length, min_size=n_edges, max_size=n_edges)))
    X = random_states(6, n_leaves, rng, 0.3 * draw(st.booleans()) * missing)
    if missing:
        X[0] = np.nan
    return parents, lengths, X, rng.uniform(0.1, 5, len(X))
