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
    clusterers = base_estimator if many else [base_estimator]
    wrong = [
        c for c in clusterers if isinstance(c, type) or not hasattr(c, "fit_predict")
    ]
    if wrong or (many and len(clusterers) < 2):
        raise ValueError(
            "base_estimator must be a clusterer, an instance that has fit_predict, or a "
            f"list of at least 2 of them; got {base_estimator!r}."
        )
    if not many and tunable(base_estimator) is None and not seeds(base_estimator):
        raise ValueError(
            "All base clusterings would be the same, because base_estimator has neither "
            f"n_clusters nor random_state; got {base_estimator!r}. Give a list of "
            "clusterers with different settings instead."
        )


def tunable(clusterer):
    """Return the name of `n_clusters`, also in the last step of a pipeline, or None."""
    prefix = ""
    while hasattr(clusterer, "steps"):
        step, clusterer = clusterer.steps[-1]
        prefix += f"{step}__"
    there = "n_clusters" in clusterer.get_params(deep=False)
    return f"{prefix}n_clusters" if there else None


def seeds(clusterer):
    """List the parameters that are random states."""
    names = clusterer.get_params()
    return [name for name in names if name.split("__")[-1] == "random_state"]


def codes_new_rows(estimator):
    """Say whether every base clustering can label new rows."""
    if hasattr(estimator, "labels_"):
        bases = getattr(estimator, "estimators_", [])
    elif estimator.input == "labels" or estimator.base_estimator is None:
        return True
    else:
        bases = estimator.base_estimator
    for base in bases if isinstance(bases, list | tuple) else [bases]:
        if not hasattr(base, "predict"):
            raise AttributeError(
                f"New rows need a base_estimator that has predict; got {base!r}. "
                "labels_ and embedding_ hold the results of the rows of fit."
            )
    return True


def base_clusterings(base_estimator, n_estimators, k_range, n_clusters, X, rng):
    """Return the clusterers to fit, with their numbers of clusters and their seeds.

    All is drawn here, up front, so that the result does not depend on who fits them.
    """
    if base_estimator is None:
        family = KMeans if X.shape[0] <= MOST_IN_FULL else MiniBatchKMeans
        base_estimator = family(n_init=1)
    check_clusterers(base_estimator)
    low, high = cluster_range(k_range, n_clusters, X.shape[0])
    distinct = count_distinct_rows(X, max(high, n_clusters))
    if n_clusters > distinct:
        raise ValueError(
            f"{n_clusters=} is more than the {distinct} distinct rows of X."
        )
    if isinstance(base_estimator, list | tuple):
        clusterers = [clone(clusterer) for clusterer in base_estimator]
    else:
        clusterers = [clone(base_estimator) for _ in range(n_estimators)]
        sizes = rng.randint(min(low, distinct), min(high, distinct) + 1, n_estimators)
        if (name := tunable(base_estimator)) is not None:
            for clusterer, size in zip(clusterers, sizes.tolist(), strict=True):
                clusterer.set_params(**{name: size})
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
