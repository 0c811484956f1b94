"""CPU kernels of consensus clustering.

``codes`` has shape (n_clusterings, n_samples): the number of each sample's cluster
among the clusters of all clusterings, -1 where a clustering has not seen the sample.
"""

import numpy as np
from numba import njit


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
def _compare(codes, i, start, agree, seen):
    """Count the clusterings that agree on sample `i` and each later one, and see both."""
    agree[start:] = 0
    seen[start:] = 0
    for t in range(codes.shape[0]):
        code = codes[t, i]
        if code < 0:
            continue
        for j in range(start, codes.shape[1]):
            agree[j] += codes[t, j] == code
            seen[j] += codes[t, j] >= 0


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
        _compare(codes, i, i, agree, seen)
        n_near = 0
        for j in range(i, n_samples):
            entry = table[seen[j], agree[j]]
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
def pair_values(rows, first, second, table):
    """Return ``table[seen, agree]`` of pairs; `rows` is ``codes.T``, in C order."""
    values = np.empty(first.size)
    for p in range(first.size):
        agree, seen = 0, 0
        for t in range(rows.shape[1]):
            a, b = rows[first[p], t], rows[second[p], t]
            agree += (a == b) & (a >= 0)
            seen += (a >= 0) & (b >= 0)
        values[p] = table[seen, agree]
    return values


@njit(cache=True, nogil=True)
def nearest_agreement(codes, counts, samples):
    """Return each sample's largest share of agreement with another sample."""
    n_samples = codes.shape[1]
    agree = np.empty(n_samples, np.int32)
    seen = np.empty(n_samples, np.int32)
    nearest = np.zeros(samples.size)
    for p in range(samples.size):
        _compare(codes, samples[p], 0, agree, seen)
        if counts[samples[p]] == 1:
            agree[samples[p]] = 0
        for j in range(n_samples):
            if seen[j] > 0:
                nearest[p] = max(nearest[p], agree[j] / seen[j])
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
