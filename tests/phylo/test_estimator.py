"""The estimator: its data, its weights, and what it says of new sites."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skextra.phylo import PhyloBranchLengths, random_tree, simulate_characters
from skextra.phylo._rates import gamma_rates
from tests.phylo import reference
from tests.phylo.common import evolved, random_parents

TREE = "((a:.1,b:.2):.1,(c:.1,d:.3):.1,e:.2);"
FITTED = [
    "tree_", "parents_", "edges_", "branch_lengths_", "theta_", "standard_errors_",
    "covariance_", "at_bound_", "loglik_", "n_iter_", "converged_", "alpha_",
    "n_patterns_", "leaf_names_", "n_features_in_", "feature_names_in_",
]  # fmt: skip


@pytest.fixture(scope="module")
def X():
    return simulate_characters(TREE, 400, as_frame=True, random_state=0)


@pytest.fixture(scope="module")
def model(X):
    return PhyloBranchLengths(TREE).fit(X)


def assert_same(model, other):
    assert_array_equal(model.branch_lengths_, other.branch_lengths_)
    assert_array_equal(model.covariance_, other.covariance_)
    assert model.loglik_ == other.loglik_ and model.n_iter_ == other.n_iter_


def test_attributes(model, X):
    for name in FITTED:
        assert hasattr(model, name)
    n_nodes = len(model.parents_)
    assert model.parents_.dtype == model.edges_.dtype == np.int64
    assert_array_equal(model.edges_, reference.edges_of(model.parents_))
    assert n_nodes == 8 and model.leaf_names_ == list("abcde")
    assert_allclose(model.theta_, np.exp(-2 * model.branch_lengths_))
    assert model.at_bound_.dtype == bool and model.alpha_ is None
    assert isinstance(model.loglik_, float) and isinstance(model.converged_, bool)
    flipped = np.where(X.to_numpy()[:, [0]] == 1, 1 - X, X)
    assert model.n_patterns_ == len(np.unique(flipped, axis=0))
    expected = reference.loglik(model.parents_, model.branch_lengths_, X)
    assert model.loglik_ == pytest.approx(expected, rel=1e-12)
    assert_allclose(np.diag(model.covariance_), model.standard_errors_**2)
    again = PhyloBranchLengths(model.tree_, init="tree", max_iter=0).fit(X)
    assert again.loglik_ == model.loglik_


@pytest.mark.parametrize(
    "kind", ["float32", "int8", "int64", "bool", "signs", "list", "object", "fortran"]
)
def test_kinds_of_numbers(model, X, kind):
    x = X.to_numpy()
    data = {
        "signs": 2 * x - 1,
        "list": x.tolist(),
        "object": x.astype(object),
        "fortran": np.asfortranarray(x),
    }
    data = data[kind] if kind in data else x.astype(kind)
    other = PhyloBranchLengths(model.parents_).fit(data)
    assert_same(other, PhyloBranchLengths(model.parents_).fit(x.astype(float)))
    assert_array_equal(other.score_samples(data), model.score_samples(X))


def test_frames(model, X):
    holes = X.astype(float)
    holes.iloc[::7, 2] = np.nan
    plain = PhyloBranchLengths(TREE).fit(holes)
    nullable = holes.astype("Int64")
    for frame in (nullable, pl.DataFrame(holes.to_dict("list"))):
        other = PhyloBranchLengths(TREE).fit(frame)
        assert_same(other, plain)
        assert list(other.feature_names_in_) == list("abcde")
        assert_array_equal(other.score_samples(frame), plain.score_samples(holes))
    assert_same(PhyloBranchLengths(TREE).fit(X.astype("boolean")), model)


def test_binarize(model, X):
    shifted = X * 3.0 + 1
    assert_same(PhyloBranchLengths(TREE, binarize=2.5).fit(shifted), model)
    assert_same(PhyloBranchLengths(TREE, binarize=None).fit(X), model)
    edge = PhyloBranchLengths(TREE, binarize=1.0).fit(shifted)  # above, not at
    assert_same(edge, model)
    for bad in (2.0, -1.0, 0.5):
        wrong = X.astype(float)
        wrong.iloc[3, 1] = bad
        with pytest.raises(ValueError, match=f"got .*{bad}.* in row 3, column 1"):
            PhyloBranchLengths(TREE, binarize=None).fit(wrong)
    with pytest.raises(ValueError, match="infinity"):
        PhyloBranchLengths(TREE).fit(X.replace(1, np.inf))


def test_order_of_sites_and_complements_do_not_matter(model, X):
    rng = np.random.default_rng(0)
    assert_same(PhyloBranchLengths(TREE).fit(X.sample(frac=1, random_state=1)), model)
    flip = rng.integers(0, 2, (len(X), 1))
    assert_same(PhyloBranchLengths(TREE).fit((X + flip) % 2), model)


def test_weights_are_repetitions(X):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, len(X))
    weighted = PhyloBranchLengths(TREE).fit(X, sample_weight=counts)
    assert_same(PhyloBranchLengths(TREE).fit(X.loc[X.index.repeat(counts)]), weighted)
    joined = PhyloBranchLengths().fit(X, sample_weight=counts)
    again = PhyloBranchLengths().fit(X.loc[X.index.repeat(counts)])
    assert joined.tree_ == again.tree_
    double = PhyloBranchLengths(TREE).fit(X, sample_weight=np.full(len(X), 2.0))
    single = PhyloBranchLengths(TREE).fit(X)
    assert_allclose(double.branch_lengths_, single.branch_lengths_, atol=1e-8)
    assert_allclose(double.covariance_, single.covariance_ / 2, rtol=1e-6)


def test_rows_of_weight_0_are_ignored(model, X):
    odd = pd.concat([X, 1 - X.iloc[:5] * [1, 0, 0, 1, 1]])
    weights = np.r_[np.ones(len(X)), np.zeros(5)]
    assert_same(PhyloBranchLengths(TREE).fit(odd, sample_weight=weights), model)
    unseen = X.astype(float).assign(b=np.nan)
    unseen.iloc[0, 1] = 1
    weights = np.r_[0, np.ones(len(X) - 1)]
    with pytest.raises(ValueError, match="positive weight; there is none in b"):
        PhyloBranchLengths(TREE).fit(unseen, sample_weight=weights)


def test_duplicate_leaves_are_kept(X):
    twice = X.assign(f=X["e"])
    model = PhyloBranchLengths("((a,b),(c,d),(e,f));").fit(twice)
    assert len(model.branch_lengths_) == 9
    assert_allclose(model.branch_lengths_[4:6], 1e-8)
    assert model.at_bound_[4:6].all()


def test_new_sites(model, X):
    new = X.iloc[:20].astype(float)
    new.iloc[0] = np.nan
    new.iloc[3, :3] = np.nan
    values = model.score_samples(new)
    lengths = model.branch_lengths_
    expected = np.log(reference.site_likelihoods(model.parents_, lengths, new))
    assert_allclose(values, expected, rtol=1e-12, atol=1e-13)
    assert values[0] == pytest.approx(0, abs=1e-13)
    assert model.score(new) == pytest.approx(values.mean())
    assert isinstance(model.score(new), float)
    posterior = model.ancestral_posterior(new)
    expected = reference.ancestral_posterior(model.parents_, lengths, new.to_numpy())
    assert_allclose(posterior, expected, rtol=1e-10)
    assert_allclose(posterior[0], 0.5)
    assert_allclose(model.ancestral_posterior(1 - new), 1 - posterior, rtol=1e-10)
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(new[list("bacde")])
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.score_samples(np.zeros((2, 4)))


def test_posterior_of_a_pair_has_no_columns():
    X = np.repeat([[0, 0], [0, 1]], [80, 20], axis=0)
    model = PhyloBranchLengths().fit(X)
    assert model.ancestral_posterior(X).shape == (100, 0)


@pytest.mark.parametrize("params", [{}, {"n_rate_categories": 3, "alpha": 0.4}])
@pytest.mark.parametrize("ascertainment", [False, True])
def test_sample(params, ascertainment):
    lengths = [0.3, 0.1, 0.5, 0.2]
    parents = np.array([4, 4, 4, 4, -1])
    variable = reference.all_patterns(4)[1:-1]
    model = PhyloBranchLengths(
        parents, init=lengths, max_iter=0, ascertainment=ascertainment, **params
    ).fit(variable)
    drawn = model.sample(50_000, random_state=0)
    assert drawn.shape == (50_000, 4) and drawn.dtype == np.int8
    patterns = variable if ascertainment else reference.all_patterns(4)
    rates = gamma_rates(0.4, params.get("n_rate_categories", 1))
    p = reference.site_likelihoods(parents, lengths, patterns, rates)
    count = np.bincount(drawn @ [8, 4, 2, 1], minlength=16)
    if ascertainment:
        assert count[0] == count[15] == 0
        count, p = count[1:-1], p / p.sum()
    z = (count - 5e4 * p) / np.sqrt(5e4 * p * (1 - p))
    assert np.abs(z).max() < 4
    assert_array_equal(model.sample(9, random_state=1), model.sample(9, random_state=1))
    assert model.sample().shape == (1, 4)
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)


def test_variable_sites_that_are_too_rare():
    model = PhyloBranchLengths(
        [3, 3, 3, -1], init=[0, 0, 0], max_iter=0, ascertainment=True, t_min=1e-12
    ).fit(np.eye(3))
    with pytest.raises(ValueError, match="too rare .* 0 of .* sites"):
        model.sample(3, random_state=0)


def test_bootstrap(model, X):
    drawn = model.bootstrap(X, 40, random_state=0)
    assert drawn.shape == (40, len(model.edges_))
    assert_allclose(drawn.std(axis=0), model.standard_errors_, rtol=0.5)
    assert_allclose(drawn.mean(axis=0), model.branch_lengths_, atol=0.03)
    assert_array_equal(model.bootstrap(X, 40, n_jobs=2, random_state=0), drawn)
    assert not np.array_equal(model.bootstrap(X, 40, random_state=1), drawn)
    # Weights are repetitions; and a draw of one pattern is that pattern.
    counts = np.arange(len(X)) % 3
    weighted = model.bootstrap(X, 3, sample_weight=counts, random_state=0)
    repeated = model.bootstrap(X.loc[X.index.repeat(counts)], 3, random_state=0)
    assert_array_equal(weighted, repeated)
    one = model.bootstrap(X.iloc[[0, 0, 0]], 2, random_state=0)
    alone = PhyloBranchLengths(TREE, init=model.branch_lengths_).fit(X.iloc[[0] * 3])
    assert_allclose(one, [alone.branch_lengths_] * 2, atol=1e-7)
    with pytest.raises(ValueError, match="n_bootstraps"):
        model.bootstrap(X, 0)


def test_bootstrap_on_a_cluster(cluster, model, X):
    expected = model.bootstrap(X, 6, random_state=0)
    with joblib.parallel_config("dask"):
        found = model.bootstrap(X, 6, random_state=0)
    assert_array_equal(found, expected)


def test_copies(model, X):
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_same(copied, model)
        assert_array_equal(copied.score_samples(X), model.score_samples(X))
        assert_array_equal(copied.sample(5, 0), model.sample(5, 0))
    unfitted = clone(model)
    assert not hasattr(unfitted, "tree_")
    assert_same(unfitted.fit(X), model)


def test_pipeline_and_search_among_trees(X):
    trees = [TREE, "((a,c),(b,d),e);", "((a,e),(b,c),d);", None]
    pipeline = make_pipeline(
        FunctionTransformer(lambda x: 2.0 * x - 1), PhyloBranchLengths()
    )
    search = GridSearchCV(
        pipeline,
        {"phylobranchlengths__tree": trees[:3]},
        cv=KFold(4, shuffle=True, random_state=0),
    ).fit(X)
    assert search.best_params_["phylobranchlengths__tree"] == TREE
    held_out = search.cv_results_["mean_test_score"]
    by_hand = []
    for train, test in KFold(4, shuffle=True, random_state=0).split(X):
        fitted = PhyloBranchLengths(TREE).fit(X.iloc[train])
        by_hand.append(fitted.score(X.iloc[test]))
    assert held_out[0] == pytest.approx(np.mean(by_hand))


def test_search_among_shapes():
    rng = np.random.default_rng(0)
    parents = random_parents(6, rng)
    lengths = rng.uniform(0.1, 0.4, len(parents) - 1)
    X = evolved(parents, lengths, 6, 3000, rng, gamma_rates(0.3, 4))
    model = PhyloBranchLengths(parents, n_rate_categories=4)
    search = GridSearchCV(model, {"alpha": [0.3, 5.0]}, cv=3).fit(X)
    assert search.best_params_ == {"alpha": 0.3}


def test_error_falls_with_the_root_of_the_number_of_sites():
    tree = random_tree(8, mean_length=0.15, random_state=3)
    truth = np.clip(tree.branch_lengths[:-1], 0.05, 0.4)
    scaled = []
    for m in (1_000, 10_000, 100_000):
        errors = []
        for seed in range(8):
            X = simulate_characters(
                tree, m, branch_lengths=truth, random_state=100 * seed + 1
            )
            fitted = PhyloBranchLengths(tree.parents, standard_errors=None).fit(X)
            errors.append(fitted.branch_lengths_ - truth)
        scaled.append(np.sqrt(m * np.mean(np.square(errors))))
    assert_allclose(scaled, np.mean(scaled), rtol=0.2)
