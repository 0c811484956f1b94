"""The clusterings that are fitted to features."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import (
    DBSCAN,
    HDBSCAN,
    AgglomerativeClustering,
    Birch,
    BisectingKMeans,
    FeatureAgglomeration,
    KMeans,
    MeanShift,
    MiniBatchKMeans,
    SpectralClustering,
)
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.cluster import GPEnsembleClustering
from skextra.cluster import _base_clusterings as bases
from skextra.cluster._base_clusterings import (
    base_clusterings,
    count_distinct_rows,
    seeds,
    tunable,
)
from tests.cluster.common import examples

X, Y = make_blobs(90, centers=3, cluster_std=0.5, random_state=3)


def fit(base=None, n_clusters=3, **settings):
    settings = {"n_estimators": 6, "random_state": 0} | settings
    return GPEnsembleClustering(n_clusters, base_estimator=base, **settings).fit(X)


class Fixed(ClusterMixin, BaseEstimator):
    """Give the labels that it is told, as they are."""

    def __init__(self, labels=(), n_clusters=2):
        self.labels = labels
        self.n_clusters = n_clusters

    def fit(self, X, y=None):
        self.labels_ = np.asarray(self.labels)
        return self


@pytest.mark.parametrize(
    "base",
    [
        KMeans(n_init=1),
        MiniBatchKMeans(n_init=1),
        Birch(threshold=0.1),
        BisectingKMeans(),
        GaussianMixture(3),
        make_pipeline(StandardScaler(), KMeans(n_init=1)),
        make_pipeline(PCA(1), StandardScaler(), Birch(threshold=0.01)),
    ],
    ids=lambda base: type(base).__name__,
)
@pytest.mark.parametrize("consensus", ["spectral", "average"])
def test_clusterers_that_predict(base, consensus):
    before = repr(base), vars(base).keys()
    model = fit(base, consensus=consensus, k_range=(3, 3))
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    model = fit(base, consensus=consensus)
    assert (repr(base), vars(base).keys()) == before
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.transform(X), model.embedding_)
    assert len(model.estimators_) == 6
    for t, fitted in enumerate(model.estimators_):
        assert type(fitted) is type(base)
        labels = fitted.predict(X)
        assert adjusted_rand_score(labels, model.base_labels_[:, t]) == 1
        assert model.n_base_clusters_[t] == np.unique(labels).size


@pytest.mark.parametrize(
    "base",
    [AgglomerativeClustering(), SpectralClustering(gamma=0.05)],
    ids=["agglomerative", "spectral"],
)
def test_clusterers_that_do_not_predict(base):
    model = fit(base)
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    assert model.embedding_.shape == (90, 3)
    assert_array_equal(fit_again := clone(model).fit_predict(X), model.labels_)
    assert fit_again.dtype == np.int32
    for name in ("predict", "transform"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError) as caught:
            getattr(model, name)
        assert "base_estimator" in f"{caught.value} {caught.value.__cause__}"


def test_list_of_clusterers_with_noise():
    mixed = [
        KMeans(3, n_init=1),
        DBSCAN(eps=0.4, min_samples=4),
        AgglomerativeClustering(4),
        HDBSCAN(min_cluster_size=5, copy=True),
    ]
    model = fit(mixed, n_estimators=2, k_range=(2, 2))
    assert model.base_labels_.shape == (90, 4)
    dbscan = model.estimators_[1]
    noise = dbscan.labels_ == -1
    assert 0 < noise.sum() < 45
    assert_array_equal(model.base_labels_[:, 1] == -1, noise)
    assert model.n_base_clusters_[2] == 4 and model.n_base_clusters_[0] == 3
    assert adjusted_rand_score(Y, model.labels_) > 0.9
    assert not hasattr(model, "predict")
    assert not hasattr(mixed[0], "labels_")
    again = fit(tuple(mixed))
    assert_array_equal(again.labels_, model.labels_)
    predicting = fit([KMeans(3), Birch(n_clusters=3, threshold=0.1)])
    assert_array_equal(predicting.predict(X), predicting.labels_)


def test_noise_of_every_clustering():
    with pytest.raises(ValueError, match="at least one label"):
        fit([DBSCAN(eps=0.3, min_samples=5), DBSCAN(eps=0.25, min_samples=5)])


def test_labels_that_are_not_numbered_from_zero():
    labels = 7 - 2 * Y
    labels[:3] = -1
    model = fit([Fixed(tuple(labels)), KMeans(3, n_init=1)])
    expected = (labels - 3) // 2
    expected[:3] = -1
    assert_array_equal(model.base_labels_[:, 0], expected)
    assert model.base_labels_.dtype == np.int32


@pytest.mark.parametrize("base", [DBSCAN(), MeanShift(), make_pipeline(DBSCAN())])
def test_copies_would_be_the_same(base):
    with pytest.raises(ValueError, match="base_estimator has neither n_clusters nor"):
        fit(base)


@pytest.mark.parametrize("few", [[], [KMeans(3)], (KMeans(3),), [KMeans(3), PCA()],
                                 [KMeans(3), "kmeans"]])  # fmt: skip
def test_lists_that_do_not_do(few):
    with pytest.raises(
        ValueError, match="base_estimator must be .* list of at least 2"
    ):
        fit(few)


@pytest.mark.parametrize("base", [PCA(), "kmeans", KMeans, 3])
def test_not_a_clusterer(base):
    with pytest.raises(ValueError, match="base_estimator"):
        fit(base)


def test_numbers_of_clusters():
    model = fit(n_estimators=60)
    assert set(model.n_base_clusters_) == set(range(3, 10))  # 3 to sqrt(90)
    model = fit(n_estimators=40, k_range=(2, 5))
    assert set(model.n_base_clusters_) == {2, 3, 4, 5}
    assert {base.n_clusters for base in model.estimators_} == {2, 3, 4, 5}
    assert set(fit(k_range=[4, 4]).n_base_clusters_) == {4}
    assert set(fit(k_range=np.array([4, 4])).n_base_clusters_) == {4}
    assert set(fit(n_clusters=12).n_base_clusters_) == {12}
    assert set(fit(n_clusters=1, n_estimators=80).n_base_clusters_) == set(range(2, 10))
    base = make_pipeline(StandardScaler(), KMeans())
    model = fit(base, k_range=(4, 4))
    assert {pipe[-1].n_clusters for pipe in model.estimators_} == {4}


def test_no_more_clusters_than_distinct_rows():
    few = np.repeat([[0.0], [1.0], [5.0], [5.5]], 20, axis=0)
    model = GPEnsembleClustering(3, n_estimators=8, random_state=0).fit(few)
    assert model.n_base_clusters_.max() <= 4
    model.set_params(k_range=(6, 9)).fit(few)
    assert set(model.n_base_clusters_) == {4}
    with pytest.raises(ValueError, match="n_clusters=5 is more than the 4 distinct"):
        model.set_params(n_clusters=5).fit(few)


def test_seeds_are_drawn_up_front():
    model = fit(n_estimators=10)
    seeds = [base.random_state for base in model.estimators_]
    assert len(set(seeds)) == 10
    assert all(base.n_init == 1 for base in model.estimators_)
    alone = clone(model.estimators_[7]).fit(X)
    assert adjusted_rand_score(alone.predict(X), model.base_labels_[:, 7]) == 1
    base = make_pipeline(PCA(2, svd_solver="randomized"), KMeans(n_init=1))
    steps = [step for pipe in fit(base).estimators_ for _, step in pipe.steps]
    assert all(isinstance(step.random_state, int) for step in steps)


def test_default_for_many_rows(monkeypatch):
    assert bases.MOST_IN_FULL == 200_000
    monkeypatch.setattr(bases, "MOST_IN_FULL", 90)
    assert all(type(base) is KMeans for base in fit().estimators_)
    monkeypatch.setattr(bases, "MOST_IN_FULL", 89)
    model = fit()
    assert all(type(base) is MiniBatchKMeans for base in model.estimators_)
    assert_array_equal(model.predict(X), model.labels_)


def test_tunable_names():
    pipe = make_pipeline(PCA(), KMeans())
    assert tunable(pipe) == "kmeans__n_clusters"
    assert tunable(make_pipeline(StandardScaler(), pipe)).count("__") == 2
    assert set(seeds(pipe)) == {"pca__random_state", "kmeans__random_state"}
    assert tunable(KMeans()) == "n_clusters"
    assert tunable(make_pipeline(FeatureAgglomeration(), DBSCAN())) is None
    assert tunable(Birch(n_clusters=KMeans(3))) == "n_clusters"


def test_number_of_clusters_of_earlier_steps_is_theirs():
    base = make_pipeline(FeatureAgglomeration(2), KMeans(n_init=1))
    model = GPEnsembleClustering(3, base_estimator=base, random_state=0).fit(X)
    assert {fitted[0].n_clusters for fitted in model.estimators_} == {2}
    assert adjusted_rand_score(Y, model.labels_) > 0.9


def test_prepared_clusterers_are_new():
    base, rng = KMeans(5), np.random.RandomState(0)
    made = base_clusterings(base, 4, (2, 3), 2, X, rng)
    assert len(made) == 4 and all(one is not base for one in made)
    assert {one.n_clusters for one in made} <= {2, 3} and base.n_clusters == 5


@examples(50)
@given(
    arrays(float, st.tuples(st.integers(1, 12), st.integers(1, 3)),
           elements=st.sampled_from([0.0, -0.0, 1.0, 2.5])),
    st.integers(1, 15),
)  # fmt: skip
def test_distinct_rows(values, limit):
    expected = min(limit, len({tuple(row) for row in values.tolist()}))
    assert count_distinct_rows(values, limit) == expected
    sparse = csr_array(values)
    assert count_distinct_rows(sparse, limit) == expected
    # explicit zeros, and columns in any order
    full = csr_array(np.ones(values.shape))
    full.data = values.ravel()
    backwards = csr_array((
        values[:, ::-1].ravel(),
        np.tile(np.arange(values.shape[1])[::-1], len(values)),
        full.indptr,
    ), shape=values.shape)  # fmt: skip
    mixed = full.copy()
    mixed.data[: values.shape[1]] = backwards.data[: values.shape[1]]
    mixed.indices[: values.shape[1]] = backwards.indices[: values.shape[1]]
    for matrix in (full, backwards, mixed):
        assert count_distinct_rows(matrix, limit) == expected
