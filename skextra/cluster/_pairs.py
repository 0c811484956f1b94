"""Counts of pairs: what clusterings share with each other and with the target.

The notation follows the user guide: ``G[s, t]`` is the number of ordered pairs of
samples that the clusterings s and t both put together, ``g`` its diagonal, ``c[t]`` the
overlap of clustering t with the target E.
"""

import math

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from skextra.cluster._numba import (
    add_contingency,
    nearest_agreement,
    sampled_mean,
    target_sums,
)

ALPHAS = np.arange(1, 21) / 20  # the grid of "auto"
TOUCHED = 0.9  # the share of samples that "auto" keeps in touch with another one
_BLOCK = 128  # samples whose pairs are compared in one task
_MOST_CELLS = 2**22  # of a table of clusters that is filled as it is
_PROBES = 300  # samples of large data that stand for all in `threshold`


def threads(function, calls, n_jobs):
    """Call a kernel with each of the arguments, in threads."""
    tasks = (delayed(function)(*call) for call in calls)
    return Parallel(n_jobs=n_jobs, require="sharedmem")(tasks)


def contingency(runs, s, t):
    """Cross-tabulate clusterings `s` and `t`: rows, columns and counts of its cells.

    Only cells that are not empty; rows and columns are numbered from 0.
    """
    first, second = runs.codes[s] - runs.starts[s], runs.codes[t] - runs.starts[t]
    shape = np.diff(runs.starts)[[s, t]].tolist()
    if math.prod(shape) <= _MOST_CELLS:
        table = np.zeros(shape)
        add_contingency(first, second, runs.counts, table)
        rows, columns = np.nonzero(table)
        return rows, columns, table[rows, columns]
    both = (first >= 0) & (second >= 0)
    cells = first[both].astype(np.int64) * shape[1] + second[both]
    cells, place = np.unique(cells, return_inverse=True)
    return *divmod(cells, shape[1]), np.bincount(place, runs.counts[both])


def gram(runs, n_jobs=None):
    """Return G: the sums of the squared counts of the contingency tables."""
    m = len(runs.codes)

    def row(s):
        return [np.sum(contingency(runs, s, t)[-1] ** 2) for t in range(s, m)]

    G = np.zeros((m, m))
    G[np.triu_indices(m)] = np.concatenate(
        threads(row, ((s,) for s in range(m)), n_jobs)
    )
    return np.maximum(G, G.T)


def target_table(n_clusterings, alpha, target):
    """Tabulate the entries of the target E by the clusterings that see and that agree.

    An entry of the co-association counts if it reaches `alpha`, and is then kept
    ("soft") or one ("hard").
    """
    seen, agree = np.ogrid[: n_clusterings + 1, : n_clusterings + 1]
    kept = (agree >= alpha * seen - 1e-9) & (agree > 0) & (agree <= seen)
    value = agree / np.maximum(seen, 1) if target == "soft" else np.ones((1, 1))
    return np.where(kept, value, 0.0)


def overlap(runs, table, g, exact_below, n_pairs, n_jobs, random_state):
    """Return c: exactly for few distinct rows, else from a sample of pairs."""
    n_distinct = runs.counts.size
    if n_distinct <= exact_below:
        starts = range(0, n_distinct, _BLOCK)
        blocks = (
            (runs.codes, runs.counts, table, i, min(i + _BLOCK, n_distinct))
            for i in starts
        )
        return np.sum(threads(target_sums, blocks, n_jobs), axis=0)
    sizes = np.diff(runs.starts)
    local = np.maximum(runs.codes - runs.starts[:-1, None] + 1, 0)
    rows = np.ascontiguousarray(local.T, dtype=np.min_scalar_type(sizes.max()))
    seeds = check_random_state(random_state).randint(2**31 - 1, size=len(g))

    def mean(t, seed):
        labels = rows[runs.inverse, t]
        members = runs.inverse[np.argsort(labels, kind="stable")]
        counts = np.bincount(labels, minlength=sizes[t] + 1)
        n_drawn = np.random.RandomState(seed).multinomial(
            n_pairs, counts[1:] ** 2.0 / g[t]
        )
        return sampled_mean(rows, members, np.cumsum(counts), n_drawn, seed, table)

    return g * threads(mean, enumerate(seeds), n_jobs)


def threshold(runs, alpha, exact_below, n_jobs, random_state):
    """Return alpha, and the share of samples that are in a pair of the target.

    That is, whose co-association with another sample reaches alpha. "auto" takes the
    largest alpha of a grid whose share is enough, or else the smallest. In large data
    some samples are looked at, drawn at random.
    """
    alphas = ALPHAS if alpha == "auto" else np.array([alpha])
    samples = np.arange(runs.inverse.size)
    if runs.counts.size > max(exact_below, _PROBES):
        samples = random_state.choice(samples, _PROBES, replace=False)
    probes, counts = np.unique(runs.inverse[samples], return_counts=True)
    parts = np.array_split(probes, -(-probes.size // _BLOCK))
    calls = ((runs.codes, runs.counts, part, alphas[-1]) for part in parts)
    nearest = np.concatenate(threads(nearest_agreement, calls, n_jobs))
    near = nearest >= alphas[:, None] - 1e-9 / len(runs.codes)
    shares = near @ counts / samples.size
    chosen = np.flatnonzero(shares >= TOUCHED).max(initial=0)
    return float(alphas[chosen]), float(shares[chosen])
