"""CPU kernels of consensus clustering.

``codes`` has shape (n_clusterings, n_samples): the number of each sample's cluster
among the clusters of all clusterings, -1 where a clustering has not seen the sample.
"""

import numpy as np
from numba import njit

_AT_ONCE = 2048  # samples looked at before a search may end


@njit(cache=True, nogil=True)
def add_contingency(first, second, weights, table):
    """Add the weight of each sample to ``table[first, second]``, if both are there."""
    for i in range(first.size):
        if first[i] >= 0 and second[i] >= 0:
            table[first[i], second[i]] += weights[i]


@njit(cache=True, nogil=True)
def gather(codes, values):
    """Sum the rows of `values` that belong to each sample's clusters: ``Z @ values``."""
    n_clusterings, n_samples = codes.shape
    n_columns = values.shape[1]
    sums = np.zeros((n_samples, n_columns))
    for t in range(n_clusterings):
        for i in range(n_samples):
            if codes[t, i] >= 0:
                for j in range(n_columns):
                    sums[i, j] += values[codes[t, i], j]
    return sums


@njit(cache=True, nogil=True)
def scatter(codes, values, n_clusters):
    """Sum the rows of `values` over each cluster's samples: ``Z.T @ values``."""
    n_clusterings, n_samples = codes.shape
    n_columns = values.shape[1]
    sums = np.zeros((n_clusters, n_columns))
    for t in range(n_clusterings):
        for i in range(n_samples):
            if codes[t, i] >= 0:
                for j in range(n_columns):
                    sums[codes[t, i], j] += values[i, j]
    return sums


@njit(cache=True, nogil=True)
def _compare(codes, i, start, stop, agree, seen):
    """Count the clusterings that agree on sample `i` and others, and that see both.

    The others are those from `start` to `stop`, at whose places the counts are.
    """
    agree[: stop - start] = 0
    seen[: stop - start] = 0
    for t in range(codes.shape[0]):
        code = codes[t, i]
        if code < 0:
            continue
        others = codes[t, start:stop]
        for j in range(others.size):
            agree[j] += others[j] == code
            seen[j] += others[j] >= 0


@njit(cache=True, nogil=True)
def target_sums(codes, counts, table, start, stop):
    """Sum ``table[seen, agree]`` over the pairs inside each clustering's clusters.

    The pairs are those of a sample from `start` to `stop` with itself and each later
    one, both ways round; `counts` says how often each sample occurs.
    """
    n_clusterings, n_samples = codes.shape
    sums = np.zeros(n_clusterings)
    agree = np.empty(n_samples, np.int32)
    seen = np.empty(n_samples, np.int32)
    near = np.empty(n_samples, np.int64)
    value = np.empty(n_samples)
    for i in range(start, stop):
        _compare(codes, i, i, n_samples, agree, seen)
        n_near = 0
        for j in range(i, n_samples):
            entry = table[seen[j - i], agree[j - i]]
            if entry > 0:
                near[n_near] = j
                value[n_near] = entry * counts[i] * counts[j] * (1 if j == i else 2)
                n_near += 1
        for t in range(n_clusterings):
            if codes[t, i] >= 0:
                for p in range(n_near):
                    if codes[t, near[p]] == codes[t, i]:
                        sums[t] += value[p]
    return sums


@njit(cache=True, nogil=True)
def _random(state):
    """Return the next state and a number from 0 to below 1 (SplitMix64)."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def sampled_mean(rows, members, starts, n_pairs, seed, table):
    """Return the mean of ``table[seen, agree]`` over pairs drawn inside clusters.

    `rows` holds a sample's labels in a row, 0 where one is missing. Cluster c has the
    `members` from ``starts[c]`` to ``starts[c + 1]``, and ``n_pairs[c]`` pairs of them
    are drawn, with replacement.
    """
    state, total = np.uint64(seed), 0.0
    for c in range(n_pairs.size):
        size = starts[c + 1] - starts[c]
        for _ in range(n_pairs[c]):
            state, u = _random(state)
            state, v = _random(state)
            first = rows[members[starts[c] + int(u * size)]]
            second = rows[members[starts[c] + int(v * size)]]
            agree, seen = 0, 0
            for t in range(first.size):
                agree += (first[t] == second[t]) & (first[t] > 0)
                seen += (first[t] > 0) & (second[t] > 0)
            total += table[seen, agree]
    return total / n_pairs.sum()


@njit(cache=True, nogil=True)
def nearest_agreement(codes, counts, samples, enough):
    """Return each sample's largest share of agreement with another sample.

    The search for a sample ends where the share is `enough`.
    """
    n_samples = codes.shape[1]
    agree = np.empty(_AT_ONCE, np.int32)
    seen = np.empty(_AT_ONCE, np.int32)
    nearest = np.zeros(samples.size)
    for p in range(samples.size):
        i = samples[p]
        for start in range(0, n_samples, _AT_ONCE):
            stop = min(start + _AT_ONCE, n_samples)
            _compare(codes, i, start, stop, agree, seen)
            if start <= i < stop and counts[i] == 1:
                agree[i - start] = 0
            for j in range(stop - start):
                if seen[j] > 0:
                    nearest[p] = max(nearest[p], agree[j] / seen[j])
            if nearest[p] >= enough:
                break
    return nearest


@njit(cache=True, nogil=True)
def coassociations(codes, shares, weights):
    """Return the weighted co-association of each pair of samples, in condensed form.

    `shares` holds a weight per cluster, `weights` one per clustering; a pair that no
    clustering has seen has co-association 0.
    """
    n_clusterings, n_samples = codes.shape
    condensed = np.empty(n_samples * (n_samples - 1) // 2)
    same = np.empty(n_samples)
    total = np.empty(n_samples)
    position = 0
    for i in range(n_samples - 1):
        same[i + 1 :] = 0
        total[i + 1 :] = 0
        for t in range(n_clusterings):
            code = codes[t, i]
            if code < 0:
                continue
            for j in range(i + 1, n_samples):
                same[j] += shares[code] if codes[t, j] == code else 0.0
                total[j] += weights[t] if codes[t, j] >= 0 else 0.0
        for j in range(i + 1, n_samples):
            condensed[position] = same[j] / total[j] if total[j] > 0 else 0.0
            position += 1
    return condensed
