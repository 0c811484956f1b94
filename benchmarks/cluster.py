"""GPEnsembleClustering beside dense routes, other consensus and single clusterings.

Label columns are artificial, with a fifth of the labels replaced at random; the quality
is the normalised mutual information with the classes.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from ccHBGF import find_consensus
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import normalized_mutual_info_score

from benchmarks._harness import Case, main
from skextra.cluster import GPEnsembleClustering
from skextra.datasets import make_label_ensemble

DIGITS = load_digits(return_X_y=True)


def cases(quick):
    """List what is measured; a quick run times once, after ours has been compiled."""
    n, large = (1000, 10_000) if quick else (11_000, 100_000)
    found = [
        dense(n, "spectral", spectral_of_matrix),
        dense(n, "average", linkage_of_matrix),
        uniform(n),
        uniform(large),
        hbgf(large),
        ten_times(large),
        ten_times(10 * large),
        digits("mean of 20 KMeans(n_init=1)", twenty_kmeans),
        digits("KMeans(n_init=20)", one_kmeans),
        blobs(n),
    ]
    if not quick:
        return found
    for case in found:
        case.ours()
    return [replace(case, runs=1) for case in found]


def agreement(y, labels):
    """Return the normalised mutual information."""
    return normalized_mutual_info_score(y, labels)


def ensemble(n, **params):
    """Return label columns, their classes, and a function that clusters columns."""
    labels, y = make_label_ensemble(n, 20, random_state=0)
    model = GPEnsembleClustering(10, input="labels", random_state=0, **params)
    return labels, y, model.fit_predict


def coassociation_by_numpy(labels):
    """Return the share of columns that agree, pair by pair of rows."""
    together = np.zeros((len(labels), len(labels)), dtype=np.float32)
    for column in labels.T:
        together += column[:, None] == column
    return together / labels.shape[1]


def spectral_of_matrix(labels):
    """Cut the co-association matrix by its eigenvectors."""
    model = SpectralClustering(10, affinity="precomputed", random_state=0)
    return model.fit_predict(coassociation_by_numpy(labels))


def linkage_of_matrix(labels):
    """Cut the co-association matrix by average linkage."""
    distances = squareform(1 - coassociation_by_numpy(labels), checks=False)
    return fcluster(linkage(distances, "average"), 10, "maxclust")


def dense(n, consensus, peer):
    """Do without the n x n matrix."""
    labels, y, fit = ensemble(n, consensus=consensus)
    names = {
        "spectral": "NumPy's co-association + SpectralClustering(precomputed)",
        "average": "NumPy's co-association + SciPy's average linkage",
    }
    return Case(
        f"weights and {consensus} consensus of 20 columns, {n} rows",
        names[consensus],
        lambda: fit(labels),
        lambda: peer(labels),
        target=20 if consensus == "spectral" else None,
        quality=partial(agreement, y),
        runs=1,
    )


def uniform(n):
    """Learn weights instead of equal ones."""
    labels, y, fit = ensemble(n)
    _, _, plain = ensemble(n, weighting="uniform")
    return Case(
        f"learned weights, 20 columns, {n} rows",
        'weighting="uniform"',
        lambda: fit(labels),
        lambda: plain(labels),
        target=1 / 1.5,
        quality=partial(agreement, y),
    )


def hbgf(n):
    """Cut the graph of samples and clusters."""
    labels, y, fit = ensemble(n)
    return Case(
        f"consensus of 20 columns, {n} rows",
        "ccHBGF.find_consensus, one start of k-means",
        lambda: fit(labels),
        lambda: find_consensus(labels, 10, random_state=0),
        quality=partial(agreement, y),
    )


def ten_times(n):
    """Show how the time grows with the number of rows."""
    labels, y, fit = ensemble(n, n_jobs=2)
    part = labels[: n // 10]
    return Case(
        f"ours on {n} rows of 20 columns",
        f"ours on {n // 10} rows, ten times",
        lambda: fit(labels),
        lambda: np.tile([fit(part) for _ in range(10)][-1], 10),
        target=1 / 1.15,
        quality=lambda found: agreement(y[: n // 10], found[: n // 10]),
        threads=2,
        runs=3,
    )


def twenty_kmeans(X):
    """Return the labels of 20 single k-means."""
    return [KMeans(10, n_init=1, random_state=s).fit_predict(X) for s in range(20)]


def one_kmeans(X):
    """Return the labels of the best of 20 starts of k-means."""
    return [KMeans(10, n_init=20, random_state=0).fit_predict(X)]


def digits(name, peer):
    """Cluster features, from the base clusterings on."""
    X, y = DIGITS
    model = GPEnsembleClustering(10, random_state=0)
    return Case(
        "digits from features, 20 base clusterings",
        name,
        lambda: [model.fit_predict(X)],
        lambda: peer(X),
        quality=lambda found: np.mean([agreement(y, labels) for labels in found]),
    )


def blobs(n):
    """Cluster features beside a clusterer that finds the number of clusters itself."""
    X, y = make_blobs(n, 16, centers=10, cluster_std=3, random_state=0)
    model = GPEnsembleClustering(10, random_state=0)
    return Case(
        f"ten blobs in 16 dimensions, {n} rows, 20 base clusterings",
        "HDBSCAN()",
        lambda: model.fit_predict(X),
        lambda: HDBSCAN(copy=True).fit_predict(X),
        quality=partial(agreement, y),
        runs=3,
    )


if __name__ == "__main__":
    main("cluster")
