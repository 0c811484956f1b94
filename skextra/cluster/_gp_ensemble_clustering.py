"""Consensus clustering with learned weights."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from skextra.cluster._base_clusterings import (
    base_clusterings,
    codes_new_rows,
    fit_one,
)
from skextra.cluster._consensus import (
    Placement,
    affinity_map,
    cluster_shares,
    linked,
    require_groups,
    spectral,
    stability,
)
from skextra.cluster._functions import WEIGHT_SETTINGS, WEIGHTINGS
from skextra.cluster._labels import (
    as_labels,
    encode,
    label_sets,
    listed,
    merged,
    require_labels,
)
from skextra.cluster._weights import clustering_weights, warn_of
from skextra.utils import DocLinkMixin, forget, run_parallel


def _float_like(X):
    """Return the dtype of coordinates for these inputs."""
    return np.float32 if X.dtype == np.float32 else np.float64  # labels are integers


class GPEnsembleClustering(
    DocLinkMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Consensus of many clusterings, each with a learned weight.

    Fit many cheap clusterings with different numbers of clusters and seeds, or take
    label columns that exist already; weigh them so that their average is close to
    what most of them agree on, a trade of small bias for large diversity; and cut the
    weighted average into one partition. The default forms no n x n matrix.

    The method is based on the abstract of [1]_; what is verified of the paper and what
    is our reconstruction, the :ref:`User Guide <cluster>` says.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters of the consensus.

    n_estimators : int, default=20
        Number of base clusterings fitted to features.

    base_estimator : clusterer, list of clusterers or None, default=None
        What is fitted to features. Of one clusterer, or a pipeline that ends in one,
        `n_estimators` copies are fitted, each with its own `n_clusters` from `k_range`
        and its own seed. A list is fitted as it is but for the seeds, once each, and
        `n_estimators` and `k_range` do not apply. The label -1 (noise) means that a
        clustering has not seen the row. None stands for
        :class:`~sklearn.cluster.KMeans` with one start, or
        :class:`~sklearn.cluster.MiniBatchKMeans` for more than 200 000 rows.

    k_range : tuple (low, high) of int, default=None
        Least and most clusters of a base clustering, at least 2 and at most the number
        of rows; never more than the distinct rows are asked for. None stands for
        `n_clusters` to ``max(n_clusters, min(sqrt(n_samples), 100))``.

    input : {"features", "labels"}, default="features"
        Whether X holds features, or one column of integer labels for each existing
        clustering: negative or NaN where a clustering has not seen a row.

    weighting : {"bias-diversity", "alignment", "minmax", "uniform"}, \
            default="bias-diversity"
        How the clusterings are weighed. "minmax" bounds the norm of the weighted
        co-association through its `n_clusters` largest eigenvalues; "uniform" weighs
        them equally. "alignment" minimises the distance to the target over weights of
        any sum, pairs of different rows only, and so gives no weight to clusterings
        that only make the others fade; better if some are no more than noise.

    alpha : float in (0, 1] or "auto", default=0.6
        Share of the clusterings that must put two samples together for the pair to be
        in the target of the weights. "auto" takes the largest of 0.05, 0.10, ..., 1 at
        which 90 % of the samples are still in a pair with another one, or else 0.05.

    diversity : float, default=1.0
        Weight of the diversity, 0 or from 1e-9 to 1e9. 1 makes the objective the squared
        distance to the target; at 0 all weight goes to the clustering nearest to it.

    target : {"soft", "hard"}, default="soft"
        Whether a pair in the target counts by its co-association, or as 1.

    cluster_weighting : {"entropy"} or None, default=None
        "entropy" also gives less weight to clusters that the other clusterings split
        [2]_.

    consensus : {"spectral", "average"}, default="spectral"
        "spectral" embeds the samples by the graph of samples and clusters, and runs
        k-means. "average" is average linkage on one minus the weighted co-association,
        for at most 20 000 rows.

    exact_below : int, default=5000
        Number of distinct rows of labels up to which all pairs are compared.

    n_pairs : int, default=200_000
        Pairs of samples drawn from the clusters of each clustering in larger data.

    n_init : int, default=10
        Starts of the k-means that gives the consensus.

    max_iter : int, default=1000
        Most iterations of the quadratic programme for the weights; "minmax" does 100 at
        most.

    tol : float, default=1e-8
        Gap in its optimality conditions at which it ends.

    n_jobs : int, default=None
        Number of base clusterings that are fitted at once, as in
        :class:`joblib.Parallel`, and of threads for the weights. The result does not
        depend on it.

    random_state : int, RandomState instance or None, default=None
        Draws the base clusterings, pairs and rows of large data for the weights, and
        the starts of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), dtype int32
        Cluster of each row, as `predict` gives it.

    weights_ : ndarray of shape (n_clusterings,)
        Weights of the clusterings, which sum to 1.

    base_labels_ : ndarray of shape (n_samples, n_clusterings), dtype int32
        Labels of the rows in each clustering, numbered from 0; -1 where missing.

    estimators_ : list of clusterers
        The base clusterings. Only for features.

    n_base_clusters_ : ndarray of shape (n_clusterings,)
        Number of clusters of each clustering.

    bias_ : ndarray of shape (n_clusterings,)
        Squared distance of each clustering to the target, less a constant that is the
        same for all, in ordered pairs of rows. Not for "uniform" weights, which need
        no target; nor are the next three.

    diversity_ : float
        Half the weighted mean squared distance between two clusterings.

    objective_ : float
        The weighted bias less `diversity` times that.

    alpha_ : float
        The threshold in use.

    n_iter_ : int
        Iterations done for the weights, 0 where they need none.

    embedding_ : ndarray of shape (n_samples, n_clusters)
        The rows as `transform` gives them.

    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the normalised weighted co-association, from 1 down.
        Only for the "spectral" consensus.

    linkage_labels_ : ndarray of shape (n_samples,), dtype int32
        The cut of average linkage into `n_clusters`. `labels_` follow the rule for new
        rows instead, which can move a row and even leave one of the clusters empty.
        Only for the "average" consensus.

    stability_ : ndarray of shape (n_samples,)
        1 where a row is with the members of one consensus cluster alone, 0 where it is
        equally often with those of all of them: one minus the entropy of its mean
        weighted co-association with the clusters, over the largest possible.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, if they are all strings.

    See Also
    --------
    ensemble_weights : The weights alone.
    consensus_labels : The partition alone.

    Notes
    -----
    With missing labels, a pair counts in the co-association among the clusterings that
    have seen both rows; the weights, the spectral consensus and the rule for new rows
    use the sum over clusterings as it is. Clusterings of weight 0 decide only what the
    others leave open, such as the place of a row that these have not seen.

    Beyond `exact_below` distinct rows of labels, time grows linearly with the number of
    rows, and with the square of the number of clusterings. The memory of the weights
    and the spectral consensus is a few integers for each label, and the square of the
    number of clusters in all clusterings together, up to 4000 of them.

    References
    ----------
    .. [1] X. Zhang, Y. Qiu, W. Liang, Y. Liu, J. Hou and Y. Jia, "Generalization
       Performance of Ensemble Clustering: From Theory to Algorithm", ICML 2025,
       :arxiv:`2506.02053`.
    .. [2] D. Huang, C.-D. Wang and J.-H. Lai, "Locally Weighted Ensemble Clustering",
       IEEE Transactions on Cybernetics 48(5), 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.metrics import normalized_mutual_info_score
    >>> from skextra.cluster import GPEnsembleClustering
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GPEnsembleClustering(n_clusters=10, random_state=0).fit(X)
    >>> normalized_mutual_info_score(y, model.labels_) > 0.78
    True

    From labels, where one annotator has not seen the last row:

    >>> X = [[0, 1, 1], [0, 1, 1], [1, 0, 1], [1, 0, 2], [1, 0, -1]]
    >>> model = GPEnsembleClustering(n_clusters=2, input="labels", random_state=0)
    >>> labels = model.fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3] == labels[4])
    True
    """

    _parameter_constraints: dict = {
        **WEIGHT_SETTINGS,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_estimators": [Interval(Integral, 2, None, closed="left")],
        "base_estimator": [
            HasMethods(["fit_predict", "get_params"]),
            list,
            tuple,
            None,
        ],
        "k_range": ["array-like", None],
        "input": [StrOptions({"features", "labels"})],
        "weighting": [StrOptions(WEIGHTINGS)],
        "cluster_weighting": [StrOptions({"entropy"}), None],
        "consensus": [StrOptions({"spectral", "average"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        n_estimators=20,
        base_estimator=None,
        k_range=None,
        input="features",
        weighting="bias-diversity",
        alpha=0.6,
        diversity=1.0,
        target="soft",
        cluster_weighting=None,
        consensus="spectral",
        exact_below=5000,
        n_pairs=200_000,
        n_init=10,
        max_iter=1000,
        tol=1e-8,
        n_jobs=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_estimators = n_estimators
        self.base_estimator = base_estimator
        self.k_range = k_range
        self.input = input
        self.weighting = weighting
        self.alpha = alpha
        self.diversity = diversity
        self.target = target
        self.cluster_weighting = cluster_weighting
        self.consensus = consensus
        self.exact_below = exact_below
        self.n_pairs = n_pairs
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)  # of the base estimators
    def fit(self, X, y=None):
        """Fit or take the base clusterings, weigh them, and find the consensus.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features; or the labels, one column for each clustering.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as documented; if `n_clusters` is more
            than the groups of rows that the clusterings tell apart; or if a row has no
            label in any clustering.

        Warns
        -----
        ConvergenceWarning
            If the quadratic programme for the weights ends above `tol`.
        SparseTargetWarning
            If fewer than 90 % of the rows are in a pair which reaches `alpha`.
        """
        forget(self)
        X = self._validate_X(X, reset=True)
        rng = check_random_state(self.random_state)
        labels_input = self.input == "labels"
        bases = [] if labels_input else self._base_clusterings(X, rng)
        seed = rng.randint(np.iinfo(np.int32).max)
        fitted, columns = [], list(X.T) if labels_input else []
        agree = partial(self._agree, columns, fitted, seed, _float_like(X))
        agree_so_far = partial(agree, interim=True)

        fit_task = self._init_callback_context(max_subtasks=len(bases))
        fit_task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        results = run_parallel(
            (delayed(fit_one)(base, X) for base in bases), self.n_jobs
        )
        for _ in bases:
            task = fit_task.subcontext(task_name="clustering")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            base, labels = next(results)
            fitted.append(base)
            columns.append(labels)
            if task.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes=agree_so_far,
            ):
                break
        found = agree()
        info = found.pop("_info", None)
        vars(self).update(found)
        if info is not None:
            warn_of(info, self.tol, stacklevel=4)
        fit_task.call_on_fit_task_end(
            estimator=self, X=X, y=y, reconstruction_attributes={}
        )
        return self

    @available_if(codes_new_rows)
    def predict(self, X):
        """Assign rows to the clusters of the consensus.

        A row is labelled by every base clustering; its labels place it in the
        embedding, where it gets the nearest centre ("spectral"), or are compared with
        those of the clusters' members ("average"). Rows are independent of each other.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features; or labels of the same clusterings as in `fit`. A label that `fit`
            has not seen counts as missing.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
            Cluster of each row.

        Raises
        ------
        ValueError
            If a row has no label that `fit` has seen.
        """
        coordinates, _ = self._place(X)
        return self._placement.labels(coordinates)

    def transform(self, X):
        """Give the rows their coordinates.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features; or labels of the same clusterings as in `fit`. A label that `fit`
            has not seen counts as missing.

        Returns
        -------
        coordinates : ndarray of shape (n_samples, n_clusters)
            "spectral": the directions of the rows in the embedding, of length 1; or 0
            for some of more separate groups than `n_clusters`.
            "average": the mean weighted co-association with the members of each
            cluster, scaled to sum 1.

        Raises
        ------
        ValueError
            If a row has no label that `fit` has seen.
        """
        coordinates, dtype = self._place(X)
        return coordinates.astype(dtype, copy=False)

    def _validate_X(self, X, reset):
        """Return features, or integer labels with -1 where one is missing."""
        fitted_to_labels = hasattr(self, "labels_") and not hasattr(self, "estimators_")
        from_labels = self.input == "labels" if reset else fitted_to_labels
        if not from_labels:
            return validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                reset=reset,
                ensure_min_samples=2 if reset else 1,
            )
        X = validate_data(
            self,
            X,
            dtype=None,
            ensure_all_finite="allow-nan",
            reset=reset,
            ensure_min_samples=2 if reset else 1,
            ensure_min_features=2 if reset else 1,
        )
        return as_labels(X)

    def _base_clusterings(self, X, rng):
        """Return the unfitted base clusterings."""
        return base_clusterings(
            self.base_estimator,
            self.n_estimators,
            self.k_range,
            self.n_clusters,
            X,
            rng,
        )

    def _agree(self, columns, fitted, seed, dtype, interim=False):
        """Weigh the clusterings and find the consensus: the fitted attributes.

        After the first clusterings there may be fewer clusters than there will be, and
        nothing while there are rows without a label.
        """
        rng, k = np.random.RandomState(seed), self.n_clusters
        labels = np.column_stack(columns)
        if interim and (labels.max(axis=1).min() < 0 or labels.max(axis=0).min() < 0):
            return None
        require_labels(labels, "the labels by base_estimator" if fitted else "labels")
        sets = label_sets(labels)
        codes = encode(labels, sets)
        runs = merged(codes, sets)
        if interim:
            k = min(k, runs.counts.size)
        require_groups(runs, k)

        weights, found = self._weigh(runs, rng)
        shares = cluster_shares(runs, weights, self.cluster_weighting)
        if self.consensus == "spectral":
            placement, coordinates, found["eigenvalues_"] = spectral(
                runs, shares, k, self.n_init, rng
            )
        else:
            linkage_labels = linked(runs, shares, weights, k)
            placement = Placement(affinity_map(runs, shares, linkage_labels, k))
            coordinates = placement.coordinates(runs.codes)
            found["linkage_labels_"] = linkage_labels
        assigned = placement.labels(coordinates)
        affinities = affinity_map(runs, shares, assigned[runs.inverse], k)
        if fitted:
            found["estimators_"] = list(fitted)
        return {
            **found,
            "weights_": weights,
            "base_labels_": np.maximum(codes - runs.starts[:-1, None], -1).T,
            "n_base_clusters_": np.diff(runs.starts),
            "labels_": assigned[runs.inverse],
            "embedding_": coordinates[runs.inverse].astype(dtype, copy=False),
            "stability_": stability(runs.codes, affinities)[runs.inverse],
            "_sets": sets,
            "_placement": placement,
        }

    def _weigh(self, runs, rng):
        """Return the weights, and the fitted attributes that tell of them."""
        if self.weighting == "uniform":
            m = len(runs.codes)
            return np.full(m, 1 / m), {"n_iter_": 0}
        names = ("n_clusters", "n_jobs", "weighting", *WEIGHT_SETTINGS)
        settings = {name: getattr(self, name) for name in names}
        weights, info = clustering_weights(runs, **settings, random_state=rng)
        names = ("bias", "diversity", "objective", "alpha", "n_iter")
        return weights, {"_info": info} | {f"{name}_": info[name] for name in names}

    def _place(self, X):
        """Return the coordinates of new rows, and the dtype that they should have."""
        check_is_fitted(self)
        X = self._validate_X(X, reset=False)
        dtype = _float_like(X)
        if hasattr(self, "estimators_"):
            X = X.astype(self.embedding_.dtype, copy=False)  # KMeans takes no other
            X = np.column_stack([base.predict(X) for base in self.estimators_])
        codes = encode(X, self._sets)
        lost = np.flatnonzero((codes < 0).all(axis=0))
        if lost.size:
            raise ValueError(
                f"These rows have no label that fit has seen: {listed(lost)}."
            )
        return self._placement.coordinates(codes), dtype

    @property
    def _n_features_out(self):
        return self.embedding_.shape[1]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "labels_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        from_labels = self.input == "labels"
        floats = ["float64"] if from_labels else ["float64", "float32"]
        tags.transformer_tags.preserves_dtype = floats
        tags.input_tags.sparse = not from_labels
        tags.input_tags.categorical = from_labels
        tags.input_tags.allow_nan = from_labels
        return tags


# Not on the method itself, which scikit-learn wraps for `set_output`.
GPEnsembleClustering.transform = available_if(codes_new_rows)(
    GPEnsembleClustering.transform
)
