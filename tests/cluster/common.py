"""Label matrices for the tests."""

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


def examples(n):
    """Settings for `n` examples that may take long on a busy machine."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(max_examples=n, deadline=None, suppress_health_check=slow)


@st.composite
def label_matrices(draw, n_samples=(2, 25), n_clusterings=(2, 8), missing=None):
    """Draw labels: few or many, with gaps, equal rows and columns, any numbers."""
    n = draw(st.integers(*n_samples))
    m = draw(st.integers(*n_clusterings))
    if missing is None:
        missing = draw(st.booleans())
    most = draw(st.sampled_from([1, 2, 3, n]))
    labels = draw(
        arrays(np.int64, (n, m), elements=st.integers(-1 if missing else 0, most))
    )
    kind = draw(st.sampled_from(["plain", "rows", "columns", "constant", "values"]))
    if kind == "rows":
        labels[n // 2 :] = labels[: n - n // 2]
    elif kind == "columns":
        labels[:, -1] = labels[:, 0]
    elif kind == "constant":
        labels[:, 0] = 5
    for i in np.flatnonzero((labels < 0).all(axis=1)):
        labels[i, i % m] = i % (most + 1)
    for t in np.flatnonzero((labels < 0).all(axis=0)):
        labels[t % n, t] = 0
    if kind == "values":
        values = np.array([10**12, 7, 0, 2**53 + 1, 2**62, *range(100, 130)])
        labels = np.where(labels < 0, -labels - 5, values[labels])
    return labels


def draw_weights(m, seed=0):
    """Draw positive weights that sum to 1."""
    return np.random.default_rng(seed).dirichlet(np.ones(m))


def planted(n=60, m=8, k=3, noise=0.15, missing=0.0, seed=0):
    """Return noisy copies of one partition into `k` groups, and the partition."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    labels = np.repeat(y[:, None], m, axis=1)
    noisy = rng.random((n, m)) < noise
    labels[noisy] = rng.integers(k, size=noisy.sum())
    lost = rng.random((n, m)) < missing
    lost[np.arange(n), rng.integers(m, size=n)] = False
    labels[lost] = -1
    return labels, y


def first_seen(labels):
    """Number the clusters by their first sample, to compare partitions."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
