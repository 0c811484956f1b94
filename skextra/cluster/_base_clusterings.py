"""The clusterings of an ensemble that is made from features."""

from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.ensemble._base import _set_random_states

MOST_IN_FULL = 200_000  # rows up to which the default is KMeans, not MiniBatchKMeans


def count_distinct_rows(X, limit):
    """Count the distinct rows, at most up to a limit."""
    if issparse(X):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    found = set()
    for i in range(X.shape[0]):
        if issparse(X):
            inside = slice(X.indptr[i], X.indptr[i + 1])
            row = np.column_stack([X.indices[inside], X.data[inside]])
        else:
            row = X[i] + 0.0  # -0.0 is 0.0
        found.add(row.tobytes())
        if len(found) == limit:
            break
    return len(found)


def check_clusterers(base_estimator):
    """Raise a ValueError if these cannot make an ensemble."""
    many = isinstance(base_estimator, list | tuple)
    clusterers = base_estimator if many else [base_estimator or KMeans()]
    if (
        many
        and len(clusterers) < 2
        or any(
            isinstance(clusterer, type) or not hasattr(clusterer, "fit_predict")
            for clusterer in clusterers
        )
    ):
        raise ValueError(
            "base_estimator must be a clusterer, an instance that has fit_predict, or a "
            f"list of at least 2 of them; got {base_estimator!r}."
        )
    names = tunable(clusterers[0], "n_clusters") + tunable(
        clusterers[0], "random_state"
    )
    if not many and not names:
        raise ValueError(
            "All base clusterings would be the same, because base_estimator has neither "
            f"n_clusters nor random_state; got {base_estimator!r}. Give a list of "
            "clusterers with different settings instead."
        )


def base_clusterings(estimator, X, rng):
    """Return the clusterers to fit, with their numbers of clusters and their seeds.

    All is drawn here, up front, so that the result does not depend on who fits them.
    """
    base_estimator, n_clusters = estimator.base_estimator, estimator.n_clusters
    check_clusterers(base_estimator)
    low, high = cluster_range(estimator.k_range, n_clusters, X.shape[0])
    distinct = count_distinct_rows(X, max(high, n_clusters))
    if n_clusters > distinct:
        raise ValueError(
            f"{n_clusters=} is more than the {distinct} distinct rows of X."
        )
    if isinstance(base_estimator, list | tuple):
        clusterers = [clone(clusterer) for clusterer in base_estimator]
    else:
        if base_estimator is None:
            family = KMeans if X.shape[0] <= MOST_IN_FULL else MiniBatchKMeans
            base_estimator = family(n_init=1)
        clusterers = [clone(base_estimator) for _ in range(estimator.n_estimators)]
        for clusterer in clusterers:
            size = int(rng.randint(min(low, distinct), min(high, distinct) + 1))
            names = tunable(clusterer, "n_clusters")
            clusterer.set_params(**dict.fromkeys(names, size))
    for clusterer in clusterers:
        _set_random_states(clusterer, rng)
    return clusterers


def cluster_range(k_range, n_clusters, n_samples):
    """Return the least and the most clusters of a base clustering."""
    if k_range is None:
        most = max(n_clusters, min(int(n_samples**0.5), 100))
        return max(n_clusters, 2), max(most, 2)
    bounds = tuple(np.ravel(k_range).tolist())
    whole = len(bounds) == 2 and all(isinstance(k, Integral) for k in bounds)
    if not whole or not 2 <= bounds[0] <= bounds[1] <= n_samples:
        raise ValueError(
            "k_range must be two integers, 2 <= low <= high <= n_samples="
            f"{n_samples}; got {k_range!r}."
        )
    return bounds


def tunable(clusterer, name):
    """List the parameters of this name, also those of steps inside a pipeline."""
    return [key for key in clusterer.get_params() if key.split("__")[-1] == name]


def fit_one(clusterer, X):
    """Fit a clusterer; return it and the labels of the rows.

    The labels are those that `predict` gives, where it exists, so that rows seen in
    training and new ones are treated alike.
    """
    if hasattr(clusterer, "predict"):
        labels = clusterer.fit(X).predict(X)
    else:
        labels = clusterer.fit_predict(X)
    return clusterer, labels
