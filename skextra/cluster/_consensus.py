"""From weighted clusterings to one partition."""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from scipy.special import entr
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from skextra.cluster._numba import coassociations, gather, scatter
from skextra.cluster._pairs import contingency
from skextra.cluster._spectrum import leading, products
from skextra.utils import row_blocks

MOST_LINKED = 20_000  # samples up to which average linkage is offered
_TRACE = 1e-9
_THETA = 0.4  # of the entropy factors, as Huang, Wang and Lai (2018) recommend


def traced(weights):
    """Return the weights with a trace of the clusterings of weight 0.

    Too small to move the others, it decides where these leave a sample, or the order
    of groups, open.
    """
    return np.maximum(weights, _TRACE)


def cluster_shares(runs, weights, cluster_weighting):
    """Return the weight of each cluster: its clustering's, times its own factor.

    The factor ``exp(-H / (theta m))`` falls with H, the entropy in bits of how each
    clustering splits the cluster's samples (Huang, Wang and Lai, 2018).
    """
    shares = np.repeat(traced(weights), np.diff(runs.starts))
    if cluster_weighting is None:
        return shares
    m = len(weights)
    uncertainty = np.zeros(runs.n_clusters)
    for s in range(m):
        for t in range(s):
            rows, columns, counts = contingency(runs, s, t)
            for run, clusters in [(s, rows), (t, columns)]:
                split = counts / np.bincount(clusters, counts)[clusters]
                entropy = np.bincount(clusters, entr(split)) / np.log(2)
                start = runs.starts[run]
                uncertainty[start : start + entropy.size] += entropy
    return shares * np.exp(-uncertainty / (_THETA * m))


def require_groups(runs, n_clusters):
    """Raise a ValueError if the clusterings cannot give so many clusters."""
    if n_clusters > runs.counts.size:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {runs.counts.size} groups of "
            "samples that the clusterings tell apart; give a smaller n_clusters, or "
            "clusterings with more clusters."
        )


def spectral_map(runs, shares, n_clusters, random_state):
    """Return the map from clusters to the spectral embedding, and the eigenvalues.

    The embedding of a sample is the sum of its clusters' rows, divided by its length:
    the eigenvectors U of ``D^-1/2 A_w D^-1/2`` are ``D^-1/2 Z W^1/2 V / s`` with the
    singular values s and right vectors V of ``D^-1/2 Z W^1/2``, and the degree D of a
    sample drops out of its direction.
    """
    sizes = scatter(runs.codes, runs.counts[:, None], runs.n_clusters)
    degrees = gather(runs.codes, shares[:, None] * sizes)[:, 0]
    root = np.sqrt(shares)
    eigenvalues, vectors = leading(
        products(runs, runs.counts / degrees), root, n_clusters, random_state
    )
    cluster_map = np.zeros((runs.n_clusters, n_clusters))
    there = np.flatnonzero(eigenvalues > 1e-12)
    lengths = np.sqrt(eigenvalues[there])
    cluster_map[:, there] = root[:, None] * vectors[:, there] / lengths
    missing = n_clusters - eigenvalues.size
    return cluster_map, np.pad(np.clip(eigenvalues, 0, 1), (0, missing))


@dataclass(frozen=True)
class Placement:
    """How the labels of a row place it: by the sum of its clusters' rows of a map.

    With centres the direction of the sum counts, and the nearest centre; without, the
    shares of the sum, and the largest of them. Rows do not depend on each other.
    """

    cluster_map: np.ndarray  # (n_clusters of all clusterings, n_coordinates)
    centers: np.ndarray | None = None

    def coordinates(self, codes):
        """Return the coordinates of the rows."""
        norm = "l1" if self.centers is None else "l2"
        return normalize(gather(codes, self.cluster_map), norm)

    def labels(self, coordinates):
        """Return the consensus clusters of rows with these coordinates."""
        if self.centers is None:
            return coordinates.argmax(axis=1).astype(np.int32)
        labels = np.empty(len(coordinates), np.int32)
        for rows in row_blocks(len(coordinates), 8 * len(self.centers)):
            # Row by row: other distances of scikit-learn depend on the batch.
            distances = cdist(coordinates[rows], self.centers, "sqeuclidean")
            labels[rows] = distances.argmin(axis=1)
        return labels


def spectral(runs, shares, n_clusters, n_init, random_state):
    """Return the placement by k-means in the spectral embedding.

    Also the coordinates of the samples there, and the eigenvalues.
    """
    cluster_map, eigenvalues = spectral_map(runs, shares, n_clusters, random_state)
    coordinates = normalize(gather(runs.codes, cluster_map))
    model = KMeans(n_clusters, n_init=n_init, random_state=random_state)
    model.fit(coordinates, sample_weight=runs.counts)
    return Placement(cluster_map, model.cluster_centers_), coordinates, eigenvalues


def linked(runs, shares, weights, n_clusters):
    """Cut average linkage on one minus the co-association, by the order of merges."""
    n_samples = runs.inverse.size
    if n_samples > MOST_LINKED:
        raise ValueError(
            f"Average linkage compares all pairs and takes at most {MOST_LINKED} "
            f'samples; got n_samples={n_samples}. "spectral" has no such limit.'
        )
    codes = runs.codes[:, runs.inverse]
    merges = linkage(1 - coassociations(codes, shares, traced(weights)), "average")
    children = merges[: n_samples - n_clusters, :2].astype(int)
    parents = np.repeat(n_samples + np.arange(len(children)), 2)
    size = (2 * n_samples, 2 * n_samples)
    graph = coo_array((np.ones(parents.size), (parents, children.ravel())), size)
    _, labels = connected_components(graph, directed=False)
    return labels[:n_samples].astype(np.int32)


def affinity_map(runs, shares, labels, n_clusters):
    """Return the map from clusters to the affinity with each consensus cluster.

    Summed over a sample's clusters it is the sample's mean weighted co-association
    with the members of the consensus cluster, 0 for one without members.
    """
    members = np.zeros((runs.counts.size, n_clusters))
    np.add.at(members, (runs.inverse, labels), 1)
    overlap = scatter(runs.codes, members, runs.n_clusters)
    return shares[:, None] * overlap / np.maximum(members.sum(axis=0), 1)


def stability(codes, affinities):
    """Return one minus the entropy of the rows' affinities, over the largest possible."""
    n_clusters = affinities.shape[1]
    if n_clusters == 1:
        return np.ones(codes.shape[1])
    membership = Placement(affinities).coordinates(codes)
    return np.clip(1 - entr(membership).sum(axis=1) / np.log(n_clusters), 0, 1)
