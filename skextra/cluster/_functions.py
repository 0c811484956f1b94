"""Functions on label matrices, for those who do not need an estimator."""

from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import (
    Interval,
    Options,
    StrOptions,
    validate_params,
)

from skextra.cluster._consensus import (
    cluster_shares,
    linked,
    require_groups,
    spectral,
)
from skextra.cluster._labels import check_labels, encode, label_sets, runs_of
from skextra.cluster._numba import coassociations
from skextra.cluster._pairs import gram
from skextra.cluster._weights import (
    SMALLEST,
    bias_diversity,
    biases,
    clustering_weights,
    warn_of,
)
from skextra.utils import row_blocks

WEIGHT_SETTINGS = {
    "alpha": [Interval(Real, 0, 1, closed="right"), StrOptions({"auto"})],
    "diversity": [Options(Real, {0}), Interval(Real, 1e-9, 1e9, closed="both")],
    "target": [StrOptions({"soft", "hard"})],
    "exact_below": [Interval(Integral, 0, None, closed="left")],
    "n_pairs": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
}
WEIGHTINGS = {"bias-diversity", "alignment", "minmax", "uniform"}


@validate_params(
    {
        "labels": ["array-like"],
        "weights": ["array-like", None],
        "sparse": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def coassociation(labels, weights=None, *, sparse=False):
    """Compute how often two samples are put into the same cluster.

    Parameters
    ----------
    labels : array-like of shape (n_samples, n_clusterings)
        One column of integer labels for each clustering; negative or NaN where a
        clustering has not seen a sample.

    weights : array-like of shape (n_clusterings,), default=None
        Weights of the clusterings, not negative; None weighs them equally.

    sparse : bool, default=False
        Whether to store only the pairs that are together somewhere. A dense matrix
        takes ``8 * n_samples ** 2`` bytes.

    Returns
    -------
    coassociation : ndarray or csr_array of shape (n_samples, n_samples)
        Share of the clusterings, by weight, that put two samples together, among those
        that have seen both; 0 where none has.

    Raises
    ------
    ValueError
        If the labels are not integers, there are fewer than two samples or
        clusterings, one of them has no label, or the
        weights are negative, all 0 or not as many as the clusterings.

    References
    ----------
    A. L. N. Fred and A. K. Jain, "Combining multiple clusterings using evidence
    accumulation", IEEE TPAMI 27(6), 2005.

    Examples
    --------
    >>> from skextra.cluster import coassociation
    >>> coassociation([[0, 1], [0, 2], [1, 2]])
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0.5],
           [0. , 0.5, 1. ]])
    """
    labels = check_labels(labels)
    sets = label_sets(labels)
    codes = encode(labels, sets)
    weights = np.ones(len(codes)) if weights is None else _check_weights(weights, codes)
    shares = np.repeat(weights, [known.size for known in sets])
    if not sparse:
        matrix = squareform(coassociations(codes, shares, weights))
        np.fill_diagonal(matrix, (codes[weights > 0] >= 0).any(axis=0))
        return matrix
    seen = (codes >= 0).T
    starts = np.cumsum([0, *seen.sum(axis=1)])
    clusters = codes.T[seen]
    Z = csr_array((np.ones(clusters.size), clusters, starts), (len(seen), shares.size))
    matrix = (Z * shares) @ Z.T
    rows = np.repeat(np.arange(len(seen)), np.diff(matrix.indptr))
    for part in row_blocks(max(rows.size, 1), 16 * len(weights)):
        pairs = rows[part], matrix.indices[part]
        matrix.data[part] /= (seen[pairs[0]] & seen[pairs[1]]) @ weights
    matrix.sort_indices()
    return matrix


def _check_weights(weights, codes):
    """Return the weights of the clusterings, scaled to sum 1."""
    weights = check_array(
        weights, ensure_2d=False, dtype=np.float64, input_name="weights"
    )
    if weights.shape != (len(codes),) or weights.min() < 0 or weights.max() == 0:
        raise ValueError(
            f"weights must hold one number for each of the {len(codes)} clusterings, "
            f"none negative and not all 0; got {weights!r}."
        )
    weights = weights / weights.max()
    weights = weights / weights.sum()
    return np.where(weights < SMALLEST, 0.0, weights)


@validate_params(
    {
        **WEIGHT_SETTINGS,
        "labels": ["array-like"],
        "weighting": [StrOptions(WEIGHTINGS)],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def ensemble_weights(
    labels,
    alpha=0.6,
    diversity=1.0,
    *,
    weighting="bias-diversity",
    n_clusters=None,
    target="soft",
    exact_below=5000,
    n_pairs=200_000,
    max_iter=1000,
    tol=1e-8,
    n_jobs=None,
    random_state=None,
):
    """Weigh clusterings so that their average comes close to what most agree on.

    The weights minimise the squared distance of the weighted co-association to a
    target, the bias less the diversity of the clusterings; see the
    :ref:`user guide <cluster>`.

    Parameters
    ----------
    labels : array-like of shape (n_samples, n_clusterings)
        One column of integer labels for each clustering; negative or NaN where a
        clustering has not seen a sample.

    alpha : float in (0, 1] or "auto", default=0.6
        Share of the clusterings that must put two samples together for the pair to be
        in the target. "auto" takes the largest of 0.05, 0.10, ..., 1 at which 90 % of
        the samples are still in a pair with another one, or else 0.05.

    diversity : float, default=1.0
        Weight of the diversity, 0 or from 1e-9 to 1e9. 1 makes the sum the squared
        distance to the target; 0 leaves the bias alone, and all weight goes to the
        clustering nearest to the target.

    weighting : {"bias-diversity", "alignment", "minmax", "uniform"}, \
            default="bias-diversity"
        "minmax" replaces the norm of the weighted co-association by its bound through
        the `n_clusters` largest eigenvalues. "alignment" minimises the distance to the
        target over weights of any sum, pairs of different samples only, which are then
        scaled to sum 1; `diversity` does not matter. "uniform" does not choose weights, and
        tells the bias and the diversity of equal ones.

    n_clusters : int, default=None
        Number of eigenvalues for "minmax", which needs it.

    target : {"soft", "hard"}, default="soft"
        Whether a pair in the target counts by its co-association, or as 1.

    exact_below : int, default=5000
        Number of distinct rows of labels up to which all pairs are compared.

    n_pairs : int, default=200_000
        Pairs of samples drawn from the clusters of each clustering in larger data.

    max_iter : int, default=1000
        Most iterations of the quadratic programme; "minmax" does 100 at most.

    tol : float, default=1e-8
        Largest `kkt_gap` at which it ends.

    n_jobs : int, default=None
        Number of threads, as in :class:`joblib.Parallel`. The result does not depend
        on it.

    random_state : int, RandomState instance or None, default=None
        Draws the pairs, and the samples for `alpha`, in large data.

    Returns
    -------
    weights : ndarray of shape (n_clusterings,)
        Weights, which sum to 1.

    info : :class:`~sklearn.utils.Bunch`
        - ``bias`` (ndarray of shape (n_clusterings,)): squared distance of each
          clustering to the target, less a constant that is the same for all; in
          ordered pairs of samples.
        - ``diversity`` (float): half the weighted mean squared distance between two
          clusterings.
        - ``objective`` (float): the weighted bias less `diversity` times that.
        - ``n_iter`` (int): iterations done.
        - ``kkt_gap`` (float): how far the weights are from optimal, by the gradient of
          the quadratic programme; 0 at the optimum. Relative to the largest number of
          pairs of a clustering, and to `diversity` above 1. NaN for the other weightings.
        - ``alpha`` (float): the threshold in use.
        - ``in_touch`` (float): share of the samples that are in a pair which reaches
          `alpha` with another one; in large data of 300 samples drawn at random.

    Raises
    ------
    ValueError
        If the labels are not integers, there are fewer than two samples or
        clusterings, one of them has no label, or a parameter is not as documented.

    Warns
    -----
    ConvergenceWarning
        If the quadratic programme ends above `tol`.
    SparseTargetWarning
        If fewer than 90 % of the samples are in a pair which reaches `alpha`.

    References
    ----------
    X. Zhang, Y. Qiu, W. Liang, Y. Liu, J. Hou and Y. Jia, "Generalization Performance
    of Ensemble Clustering: From Theory to Algorithm", ICML 2025. The programme is our
    reconstruction from its abstract.

    Examples
    --------
    >>> import numpy as np
    >>> from skextra.cluster import ensemble_weights
    >>> good = np.repeat([0, 1, 2], 10)
    >>> labels = np.column_stack([good, good, good, np.tile([0, 1], 15)])
    >>> weights, info = ensemble_weights(labels)
    >>> weights.round(2)
    array([0.31, 0.31, 0.31, 0.08])
    """
    if weighting == "minmax" and n_clusters is None:
        raise ValueError('weighting="minmax" needs n_clusters; got None.')
    weights, info = clustering_weights(
        runs_of(check_labels(labels)),
        weighting=weighting,
        alpha=alpha,
        diversity=diversity,
        target=target,
        n_clusters=n_clusters,
        exact_below=exact_below,
        n_pairs=n_pairs,
        max_iter=max_iter,
        tol=tol,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    if weighting != "uniform":
        warn_of(info, tol, stacklevel=3)
    return weights, info


@validate_params(
    {
        **{
            name: WEIGHT_SETTINGS[name] for name in ("target", "exact_below", "n_pairs")
        },
        "labels": ["array-like"],
        "weights": ["array-like"],
        "alpha": WEIGHT_SETTINGS["alpha"][:1],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def ensemble_bias_diversity(
    labels,
    weights,
    alpha=0.6,
    *,
    target="soft",
    exact_below=5000,
    n_pairs=200_000,
    n_jobs=None,
    random_state=None,
):
    """Take the distance of weighted clusterings to their target apart.

    For the weighted co-association ``A_w`` and the target ``E``, the squared distance
    ``||A_w - E||^2`` is the weighted mean of the distances of the single clusterings
    (bias) less how much they differ from each other (diversity).

    Parameters
    ----------
    labels : array-like of shape (n_samples, n_clusterings)
        One column of integer labels for each clustering; negative or NaN where a
        clustering has not seen a sample.

    weights : array-like of shape (n_clusterings,)
        Weights, not negative; they are scaled to sum 1.

    alpha : float in (0, 1], default=0.6
        Share of the clusterings that must put two samples together for the pair to be
        in the target.

    target : {"soft", "hard"}, default="soft"
        Whether a pair in the target counts by its co-association, or as 1.

    exact_below : int, default=5000
        Number of distinct rows of labels up to which all pairs are compared.

    n_pairs : int, default=200_000
        Pairs of samples drawn from the clusters of each clustering in larger data.

    n_jobs : int, default=None
        Number of threads, as in :class:`joblib.Parallel`. The result does not depend
        on it.

    random_state : int, RandomState instance or None, default=None
        Draws the pairs in large data.

    Returns
    -------
    found : :class:`~sklearn.utils.Bunch`
        - ``bias`` (ndarray of shape (n_clusterings,)): squared distance of each
          clustering to the target, less the constant ``||E||^2``; in ordered pairs of
          samples.
        - ``diversity`` (float): half the weighted mean squared distance between two
          clusterings.
        - ``objective`` (float): ``||A_w - E||^2 - ||E||^2``, which is
          ``weights @ bias - diversity``.

    Raises
    ------
    ValueError
        If the labels are not integers, there are fewer than two samples or
        clusterings, one of them has no label, or the
        weights are negative, all 0 or not as many as the clusterings.

    Examples
    --------
    >>> from skextra.cluster import ensemble_bias_diversity
    >>> labels = [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]]
    >>> found = ensemble_bias_diversity(labels, [1, 1, 1])
    >>> found.bias.round(2)
    array([-5.33, -5.33,  0.  ])
    """
    labels = check_labels(labels)
    runs = runs_of(labels)
    weights = _check_weights(weights, runs.codes)
    G = gram(runs, n_jobs)
    b = biases(runs, G, alpha, target, exact_below, n_pairs, n_jobs, random_state)
    return bias_diversity(G, b, weights, 1.0)


@validate_params(
    {
        "labels": ["array-like"],
        "weights": ["array-like", None],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"spectral", "average"})],
        "cluster_weighting": [StrOptions({"entropy"}), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def consensus_labels(
    labels,
    n_clusters,
    weights=None,
    method="spectral",
    random_state=None,
    *,
    cluster_weighting=None,
    n_init=10,
):
    """Find one partition that weighted clusterings agree on.

    Parameters
    ----------
    labels : array-like of shape (n_samples, n_clusterings)
        One column of integer labels for each clustering; negative or NaN where a
        clustering has not seen a sample.

    n_clusters : int
        Number of clusters of the partition.

    weights : array-like of shape (n_clusterings,), default=None
        Weights of the clusterings, not negative; None weighs them equally. Those of
        weight 0 decide only what the others leave open.

    method : {"spectral", "average"}, default="spectral"
        "spectral" embeds the samples by the graph of samples and clusters, and runs
        k-means. "average" is average linkage on one minus the co-association, which
        takes ``8 * n_samples ** 2`` bytes and at most 20 000 samples.

    random_state : int, RandomState instance or None, default=None
        Seeds k-means.

    cluster_weighting : {"entropy"} or None, default=None
        "entropy" also gives less weight to clusters that the other clusterings split.

    n_init : int, default=10
        Starts of k-means.

    Returns
    -------
    consensus : ndarray of shape (n_samples,), dtype int32
        Cluster of each sample, from 0.

    Raises
    ------
    ValueError
        If the labels are not integers, there are fewer than two samples or
        clusterings, one of them has no label, the
        weights are not as documented, `n_clusters` is more than the groups that the
        clusterings tell apart, or there are too many samples for "average".

    Examples
    --------
    >>> from skextra.cluster import consensus_labels
    >>> labels = [[0, 5, 1], [0, 5, 1], [1, 3, 1], [1, 3, -1], [1, 4, 2]]
    >>> consensus_labels(labels, 2, method="average")
    array([0, 0, 1, 1, 1], dtype=int32)
    """
    runs = runs_of(check_labels(labels))
    m = len(runs.codes)
    weights = (
        np.full(m, 1 / m) if weights is None else _check_weights(weights, runs.codes)
    )
    require_groups(runs, n_clusters)
    shares = cluster_shares(runs, weights, cluster_weighting)
    if method == "average":
        return linked(runs, shares, weights, n_clusters)
    rng = check_random_state(random_state)
    placement, coordinates, _ = spectral(runs, shares, n_clusters, n_init, rng)
    return placement.labels(coordinates)[runs.inverse]
