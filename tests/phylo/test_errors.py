"""Standard errors of the lengths."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from skextra.phylo import PhyloBranchLengths
from skextra.phylo import _likelihood as likelihood_room
from skextra.phylo._errors import inverse
from skextra.phylo._rates import gamma_rates
from tests.phylo import reference
from tests.phylo.common import evolved, random_parents, random_states


def simulated(seed, n_leaves=6, n_sites=1000, rates=(1.0,), missing=0.0, **shape):
    rng = np.random.default_rng(seed)
    parents = random_parents(n_leaves, rng, **shape)
    lengths = rng.uniform(0.1, 0.3, len(parents) - 1)
    X = evolved(parents, lengths, n_leaves, n_sites, rng, rates)
    X[rng.random(X.shape) < missing] = np.nan
    return parents, lengths, X


def counted(X):
    """Different rows, a missing cell being equal to another, and their numbers."""
    sites, counts = np.unique(np.nan_to_num(X, nan=-1), axis=0, return_counts=True)
    return np.where(sites < 0, np.nan, sites), counts


@pytest.mark.parametrize(
    ("seed", "params"),
    [
        (0, {}),
        (1, {}),
        (2, {"n_rate_categories": 3, "alpha": 0.5}),
        (3, {"ascertainment": True}),
    ],
)
def test_observed_is_the_inverse_of_the_hessian(seed, params):
    k, ascertainment = params.get("n_rate_categories", 1), "ascertainment" in params
    rates = gamma_rates(0.5, k)
    parents, _, X = simulated(seed, 4, 600, rates, 0.0 if ascertainment else 0.1)
    if ascertainment:
        X = X[X.min(axis=1) < X.max(axis=1)]
    model = PhyloBranchLengths(parents, **params).fit(X)
    assert not model.at_bound_.any()
    hessian = reference.hessian(
        parents, model.branch_lengths_, *counted(X), rates, ascertainment
    )
    expected = np.linalg.inv(-hessian)
    assert_allclose(model.covariance_, expected, rtol=1e-6, atol=1e-10)
    assert_allclose(model.standard_errors_**2, np.diag(expected), rtol=1e-6)


@pytest.mark.parametrize("params", [{}, {"n_rate_categories": 3, "alpha": 0.5}])
def test_opg_is_the_inverse_of_the_outer_products(params):
    rates = gamma_rates(0.5, params.get("n_rate_categories", 1))
    parents, _, X = simulated(3, 4, 1500, rates)
    model = PhyloBranchLengths(parents, standard_errors="opg", **params).fit(X)
    sites, counts = counted(X)
    scores = np.array(
        [
            reference.gradient(parents, model.branch_lengths_, [x], None, rates)
            for x in sites
        ]
    )
    expected = np.linalg.inv((scores.T * counts) @ scores)
    assert_allclose(model.covariance_, expected, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize(
    "params", [{}, {"ascertainment": True}, {"n_rate_categories": 3}]
)
def test_both_kinds_agree_on_many_sites(params):
    rates = gamma_rates(0.5, params.get("n_rate_categories", 1))
    parents, _, X = simulated(1, 6, 40_000, rates)
    if "ascertainment" in params:
        X = X[X.min(axis=1) < X.max(axis=1)]
    observed = PhyloBranchLengths(parents, **params).fit(X)
    opg = PhyloBranchLengths(parents, standard_errors="opg", **params).fit(X)
    assert_allclose(opg.standard_errors_, observed.standard_errors_, rtol=0.05)


@pytest.mark.parametrize("kind", ["observed", "opg"])
def test_an_estimated_shape_makes_lengths_less_sure(kind):
    rates = gamma_rates(0.5, 3)
    parents, _, X = simulated(4, 4, 5000, rates)
    model = PhyloBranchLengths(parents, n_rate_categories=3, standard_errors=kind)
    model.fit(X)
    sites, counts = counted(X)
    n, ends = (
        len(model.branch_lengths_),
        np.append(model.branch_lengths_, np.log(model.alpha_)),
    )

    def by_site(x):
        p = reference.site_likelihoods(
            parents, x[:n], sites, gamma_rates(np.exp(x[n]), 3)
        )
        return np.log(p)

    h = 1e-3 * np.eye(n + 1)
    if kind == "opg":
        scores = np.array([by_site(ends + e) - by_site(ends - e) for e in h]) / 2e-3
        joint = (scores * counts) @ scores.T
    else:
        joint = np.empty((n + 1, n + 1))
        for i, e in enumerate(h):
            for j, f in enumerate(h):
                corners = by_site(ends + e + f) - by_site(ends + e - f)
                corners += by_site(ends - e - f) - by_site(ends - e + f)
                joint[i, j] = -counts @ corners / 4e-6
    expected = np.linalg.inv(joint)[:n, :n]
    assert_allclose(model.covariance_, expected, rtol=5e-3, atol=1e-6)
    fixed = model.set_params(alpha=model.alpha_).fit(X)
    assert (fixed.standard_errors_ < np.sqrt(np.diag(expected))).all()


def test_a_shape_at_its_bound_is_taken_for_known():
    parents, _, X = simulated(0, 5, 2000)
    model = PhyloBranchLengths(parents, n_rate_categories=2).fit(X)
    if model.alpha_ == 100:
        fixed = PhyloBranchLengths(parents, n_rate_categories=2, alpha=100.0).fit(X)
        assert_allclose(model.standard_errors_, fixed.standard_errors_, rtol=1e-4)
    assert np.isfinite(model.standard_errors_).all()


@pytest.mark.parametrize("kind", ["observed", "opg"])
def test_edges_at_a_bound_have_none(kind):
    parents, _, X = simulated(2, 5, 500)
    X = np.column_stack([X, X[:, 0]])  # leaves 0 and 5 are equal
    parents = np.where(parents >= 5, parents + 2, parents)
    parents = np.r_[parents[:5], 6, parents[0], parents[5:]]
    parents[0] = 6
    model = PhyloBranchLengths(parents, standard_errors=kind).fit(X)
    bound = model.branch_lengths_ == 1e-8
    assert bound[0] and bound[5] and not bound.all()
    np.testing.assert_array_equal(model.at_bound_, bound)
    np.testing.assert_array_equal(np.isnan(model.standard_errors_), bound)
    np.testing.assert_array_equal(np.isnan(model.covariance_), bound[:, None] | bound)
    free = ~bound
    if kind == "observed":
        sites, counts = counted(X)
        hessian = reference.hessian(parents, model.branch_lengths_, sites, counts)
        expected = np.linalg.inv(-hessian[np.ix_(free, free)])
        found = model.covariance_[np.ix_(free, free)]
        assert_allclose(found, expected, rtol=1e-6, atol=1e-10)


def test_all_edges_at_a_bound():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = PhyloBranchLengths([3, 3, 3, -1]).fit(np.zeros((5, 3)))
    assert model.at_bound_.all() and np.isnan(model.standard_errors_).all()
    assert model.converged_


def test_no_strict_maximum_is_told():
    """Leaves 0 and 1 share no site, so only sums of two lengths are known."""
    rng = np.random.default_rng(0)
    X = evolved([3, 3, 3, -1], np.full(3, 0.2), 3, 400, rng)
    X[:200, 0] = X[200:, 1] = np.nan
    model = PhyloBranchLengths([3, 3, 3, -1], init="constant")
    with pytest.warns(UserWarning, match="no strict maximum .* of 3 edges"):
        model.fit(X)
    assert np.isnan(model.standard_errors_).all()
    assert np.isnan(model.covariance_).all()
    assert not model.at_bound_.any()


def test_edges_that_the_data_do_not_tell_apart():
    """Only the sum of two lengths is known; the third is, whatever they are."""
    rng = np.random.default_rng(0)
    parents = np.array([4, 4, 5, 5, 5, -1])
    X = evolved(parents, np.full(5, 0.2), 4, 2000, rng)
    X[:1000, 0] = X[1000:, 1] = np.nan
    model = PhyloBranchLengths(parents, init="constant")
    with pytest.warns(UserWarning, match="no strict maximum .* of 3 edges"):
        model.fit(X)
    known = ~np.isnan(model.standard_errors_)
    np.testing.assert_array_equal(known, [False, False, True, True, False])
    hessian = reference.hessian(parents, model.branch_lengths_, *counted(X))
    expected = np.linalg.pinv(-hessian, rtol=1e-9)[np.ix_(known, known)]
    found = model.covariance_[np.ix_(known, known)]
    assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_an_edge_without_effect_has_none():
    """Beyond an edge that carries nothing, a length does not matter."""
    rng = np.random.default_rng(1)
    parents = np.array([4, 4, 5, 5, 5, -1])
    X = random_states(400, 4, rng)
    X[:, 1] = X[:, 0] != (rng.random(400) < 0.1)
    X[:, 3] = X[:, 2] != (rng.random(400) < 0.1)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        model = PhyloBranchLengths(parents).fit(X)
    known = ~np.isnan(model.standard_errors_)
    assert (model.standard_errors_[known] > 0).all()
    assert not (known & model.at_bound_).any()


def test_none():
    parents, _, X = simulated(0, 4, 100)
    model = PhyloBranchLengths(parents, standard_errors=None).fit(X)
    n = len(parents) - 1
    assert model.standard_errors_.shape == (n,) and model.covariance_ is None
    assert np.isnan(model.standard_errors_).all()
    other = PhyloBranchLengths(parents).fit(X)
    np.testing.assert_array_equal(model.branch_lengths_, other.branch_lengths_)


@pytest.mark.parametrize("kind", ["observed", "opg"])
def test_intervals_cover_the_truth(kind):
    covered = []
    for seed in range(40):
        parents, truth, X = simulated(seed, 5, 800)
        model = PhyloBranchLengths(parents, standard_errors=kind).fit(X)
        z = (model.branch_lengths_ - truth) / model.standard_errors_
        covered.extend(np.abs(z) < norm.ppf(0.975))
    assert 0.90 < np.mean(covered) < 0.99


def test_errors_match_the_spread_of_the_estimates():
    rng = np.random.default_rng(0)
    parents, truth, _ = simulated(1, 5, 1, polytomies=False)
    fits = [
        PhyloBranchLengths(parents).fit(evolved(parents, truth, 5, 1000, rng))
        for _ in range(80)
    ]
    spread = np.std([model.branch_lengths_ for model in fits], axis=0)
    mean = np.mean([model.standard_errors_ for model in fits], axis=0)
    assert_allclose(mean, spread, rtol=0.3)


def test_inverse_of_an_indefinite_information_is_not_known():
    """Where the likelihood curves upwards there is no maximum, so no error."""
    assert_allclose(inverse(np.diag([4.0, 2.0]), 1e-10), np.diag([0.25, 0.5]))
    assert np.isnan(inverse(np.array([[1.0, 2.0], [2.0, 1.0]]), 1e-10)).all()
    half = inverse(np.diag([4.0, 0.0]), 1e-10)
    assert (
        half[0, 0] == pytest.approx(0.25) and np.isnan(half[[0, 1, 1], [1, 0, 1]]).all()
    )


@pytest.mark.parametrize(
    "params", [{}, {"ascertainment": True}, {"n_rate_categories": 3, "alpha": 0.5}]
)
def test_blocks_of_patterns_add(params, monkeypatch):
    parents, _, X = simulated(1, 5, 800, gamma_rates(0.5, 1))
    if "ascertainment" in params:
        X = X[X.min(axis=1) < X.max(axis=1)]
    whole = PhyloBranchLengths(parents, **params).fit(X)
    monkeypatch.setattr(
        likelihood_room, "row_blocks", lambda n, _: [slice(0, 3), slice(3, n)]
    )
    parts = PhyloBranchLengths(parents, **params).fit(X)
    assert_allclose(parts.covariance_, whole.covariance_, rtol=1e-8, atol=1e-12)
