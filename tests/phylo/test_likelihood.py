"""The likelihood of given lengths, and its derivatives, against slow references."""

from unittest import mock

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skextra.phylo import PhyloBranchLengths, _model
from skextra.phylo._rates import gamma_rates
from tests.phylo import reference
from tests.phylo.common import (
    RATES,
    cases,
    moved,
    problem,
    random_parents,
    random_states,
    rerooted,
)

SETTINGS = settings(max_examples=60, deadline=None)


@SETTINGS
@given(cases(), st.integers(1, 4))
def test_value_of_any_tree_and_lengths(case, k):
    parents, lengths, X, weights = case
    rates = RATES[-k:] / RATES[-k:].mean()
    ours = problem(parents, X, weights, rates)
    p = reference.site_likelihoods(parents, lengths, X, rates)
    assert_allclose(ours.site_values(lengths), np.log(p), rtol=1e-12, atol=1e-13)
    expected = reference.loglik(parents, lengths, X, weights, rates)
    assert_allclose(ours.value(lengths), expected, rtol=1e-12)


@SETTINGS
@given(cases(shortest=1e-3), st.integers(1, 4))
def test_value_of_variable_sites(case, k):
    parents, lengths, X, weights = case
    X = np.nan_to_num(X)
    X[:, 0] = 1 - X[:, 1]
    rates = RATES[-k:] / RATES[-k:].mean()
    expected = reference.loglik(parents, lengths, X, weights, rates, True)
    ours = problem(parents, X, weights, rates, True)
    assert_allclose(ours.value(lengths), expected, rtol=1e-12)
    sites = [reference.loglik(parents, lengths, [x], None, rates, True) for x in X]
    assert_allclose(ours.site_values(lengths), sites, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_value_is_a_sum_over_the_states_of_inner_nodes(seed, k):
    rng = np.random.default_rng(seed)
    parents = random_parents(5, rng, leaf_root=seed % 2)
    lengths = rng.uniform(0.01, 1, len(parents) - 1)
    rates = gamma_rates(0.7, k)
    X = random_states(8, 5, rng, 0.3)
    expected = [reference.enumerated_likelihood(parents, lengths, x, rates) for x in X]
    values = problem(parents, X, rates=rates).site_values(lengths)
    assert_allclose(np.exp(values), expected, rtol=1e-12)


@pytest.mark.parametrize("ascertainment", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_every_rooting_has_the_same_value(seed, ascertainment):
    rng = np.random.default_rng(seed)
    parents = random_parents(8, rng)
    lengths = rng.uniform(1e-3, 1, len(parents) - 1)
    X = random_states(20, 8, rng, 0.0 if ascertainment else 0.2)
    X[:, 3] = 1 - X[:, 6]
    rates = gamma_rates(0.4, 3)
    first = problem(parents, X, rates=rates, ascertainment=ascertainment)
    for root in range(len(parents)):
        other = rerooted(parents, root)
        same = moved(parents, lengths, other)
        ours = problem(other, X, rates=rates, ascertainment=ascertainment)
        assert_allclose(ours.value(same), first.value(lengths), rtol=1e-12)
        _, gradient = first.gradient(lengths)
        assert_allclose(
            ours.gradient(same)[1],
            moved(parents, gradient, other),
            rtol=1e-9,
            atol=1e-9,
        )


@SETTINGS
@given(cases())
def test_complements_are_equally_probable(case):
    parents, lengths, X, _ = case
    values = problem(parents, X).site_values(lengths)
    others = problem(parents, 1 - X).site_values(lengths)
    assert_allclose(values, others, rtol=1e-12, atol=1e-13)
    assert_allclose(values[0], 0, atol=1e-13)  # nothing is seen


@pytest.mark.parametrize("ascertainment", [False, True])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("n_leaves", [2, 3, 6, 10])
def test_probabilities_of_all_patterns_sum_to_1(n_leaves, k, ascertainment):
    rng = np.random.default_rng(n_leaves)
    X = reference.all_patterns(n_leaves)
    if ascertainment:
        X = X[X.min(axis=1) < X.max(axis=1)]
    for leaf_root in (False, True):
        parents = random_parents(n_leaves, rng, leaf_root=leaf_root)
        lengths = rng.uniform(0.01, 1, len(parents) - 1)
        ours = problem(parents, X, None, gamma_rates(0.3, k), ascertainment)
        assert_allclose(np.exp(ours.site_values(lengths)).sum(), 1, rtol=1e-12)


@pytest.mark.parametrize("length", [1e-15, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("seed", range(4))
def test_conflicts_across_tiny_lengths(seed, length):
    """Sites that need several changes keep their digits."""
    rng = np.random.default_rng(seed)
    parents = random_parents(7, rng, leaf_root=seed % 2)
    lengths = length * rng.uniform(1, 3, len(parents) - 1)
    lengths[rng.integers(len(lengths))] = 15.0
    X = random_states(8, 7, rng, 0.1)
    with mpmath.workdps(60):
        exact = reference.site_likelihoods(
            parents, [mpmath.mpf(t) for t in lengths], X, mp=True
        )
        expected = [float(mpmath.log(p)) for p in exact]
    values = problem(parents, X).site_values(lengths)
    assert_allclose(values, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("length", [1e-15, 1e-8, 1e-3, 0.5])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("n_leaves", [2, 3, 7])
def test_variable_sites_of_tiny_lengths(n_leaves, k, length):
    """Nearly all sites are constant: 1 - p(constant) would keep no digits."""
    rng = np.random.default_rng(n_leaves)
    rates = gamma_rates(0.5, k)
    for leaf_root in (False, True):
        parents = random_parents(n_leaves, rng, leaf_root=leaf_root)
        lengths = length * rng.uniform(1, 3, len(parents) - 1)
        X = random_states(6, n_leaves, rng)
        X[:, 0] = 1 - X[:, 1]
        weights = rng.uniform(1, 3, 6)
        ours = problem(parents, X, weights, rates, True)
        with mpmath.workdps(60):
            exact = [mpmath.mpf(t) for t in lengths]
            data = X, weights, [mpmath.mpf(float(r)) for r in rates], True
            expected = float(reference.loglik(parents, exact, *data, mp=True))
        assert_allclose(ours.value(lengths), expected, rtol=1e-12)
        assert_allclose(ours.site_values(lengths) @ weights, expected, rtol=1e-12)
        if length >= 1e-8:
            gradient = reference.gradient(parents, lengths, *data)
            scale = np.abs(gradient).max() + 1 / length
            assert_allclose(
                ours.gradient(lengths)[1], gradient, rtol=1e-9, atol=1e-11 * scale
            )


def caterpillar(n):
    parents = np.empty(2 * n - 2, dtype=int)
    parents[:n] = np.r_[n, n, np.arange(n + 1, 2 * n - 2), 2 * n - 3]
    parents[n:] = np.r_[np.arange(n + 1, 2 * n - 2), -1]
    return parents


def star(n):
    return np.r_[np.full(n, n), -1]


def balanced(n):
    parents, active, new = [-1] * (2 * n - 2), list(range(n)), n
    while len(active) > 3:
        for node in (active.pop(0), active.pop(0)):
            parents[node] = new
        active.append(new)
        new += 1
    for node in active:
        parents[node] = new
    return np.array(parents)


@pytest.mark.parametrize("length", [1e-15, 0.1, 15.0])
@pytest.mark.parametrize("shape", [caterpillar, star, balanced])
def test_thousands_of_leaves(shape, length):
    n, rng = 2000, np.random.default_rng(0)
    parents = shape(n)
    X = np.vstack([random_states(3, n, rng), np.zeros(n), random_states(1, n, rng, 1)])
    ours = problem(parents, X)
    lengths = np.full(len(parents) - 1, length)
    values = ours.site_values(lengths)
    assert np.isfinite(values).all() and (values <= 0).all()
    if shape is star:
        p = -np.expm1(-2 * length) / 2
        ones = X.sum(axis=1)[:3]
        sides = [k * np.log1p(-p) + (n - k) * np.log(p) for k in (ones, n - ones)]
        expected = np.logaddexp(*sides) - np.log(2)
        assert_allclose(values[:3], expected, rtol=1e-12)
    if length == 15.0:
        assert_allclose(values[:4], -n * np.log(2), rtol=1e-9)
    _, gradient = ours.gradient(lengths)
    assert np.isfinite(gradient).all()
    length_after, loglik = next(ours.ascend(lengths, 1e-15, 15.0))
    assert np.isfinite(length_after).all()
    assert loglik >= ours.weights @ values - 1e-6


@pytest.mark.parametrize("length", [1e-8, 1e-4])
def test_a_wide_polytomy_of_short_edges(length):
    """First the leaves speak for one state, then more of them for the other."""
    n = 400
    X = np.repeat([[0.0] * 190 + [1.0] * 210], 1, axis=0)
    p = -np.expm1(-2 * length) / 2
    sides = [k * np.log1p(-p) + (n - k) * np.log(p) for k in (190, 210)]
    ours = problem(star(n), X)
    lengths = np.full(n, length)
    assert_allclose(ours.value(lengths), np.logaddexp(*sides) - np.log(2), rtol=1e-12)
    assert_allclose(ours.posterior(lengths), [[1.0]])


VARIANTS = [(k, ascertainment) for k in (1, 3) for ascertainment in (False, True)]


def setting(seed, k, ascertainment, n_leaves=5):
    """A tree with a polytomy or a leaf as root, sites, and lengths."""
    rng = np.random.default_rng(seed)
    parents = random_parents(
        n_leaves, rng, polytomies=seed % 2, leaf_root=seed % 3 == 2
    )
    X = random_states(12, n_leaves, rng, 0.2)
    if ascertainment:
        X[:, 0], X[:, 1] = 0, 1
    weights = rng.uniform(0.5, 4, len(X))
    lengths = rng.uniform(0.02, 0.8, len(parents) - 1)
    return parents, lengths, X, weights, gamma_rates(0.6, k), ascertainment


@pytest.mark.parametrize(("k", "ascertainment"), VARIANTS)
@pytest.mark.parametrize("seed", range(4))
def test_gradient_and_information(seed, k, ascertainment):
    parents, lengths, *data = setting(seed, k, ascertainment)
    ours = problem(parents, *data)
    value, gradient = ours.gradient(lengths)
    assert_allclose(value, reference.loglik(parents, lengths, *data), rtol=1e-12)
    expected = reference.gradient(parents, lengths, *data)
    assert_allclose(gradient, expected, rtol=1e-9, atol=1e-9)
    hessian = reference.hessian(parents, lengths, *data)
    assert_allclose(ours.information(lengths), -hessian, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_leaves", [2, 3, 4])
@pytest.mark.parametrize("leaf_root", [False, True])
def test_derivatives_on_the_smallest_trees(n_leaves, leaf_root):
    rng = np.random.default_rng(n_leaves)
    parents = random_parents(n_leaves, rng, leaf_root=leaf_root)
    lengths = rng.uniform(0.1, 0.5, len(parents) - 1)
    X = random_states(10, n_leaves, rng, 0.1)
    ours = problem(parents, X)
    expected = reference.gradient(parents, lengths, X)
    assert_allclose(ours.gradient(lengths)[1], expected, rtol=1e-10, atol=1e-10)
    expected = -reference.hessian(parents, lengths, X)
    assert_allclose(ours.information(lengths), expected, rtol=1e-9, atol=1e-9)


def test_gradient_of_lengths_of_very_different_size():
    rng = np.random.default_rng(5)
    parents = random_parents(6, rng)
    lengths = 10 ** rng.uniform(-8, 1, len(parents) - 1)
    X = random_states(10, 6, rng)
    expected = reference.gradient(parents, lengths, X)
    ours = problem(parents, X).gradient(lengths)[1]
    assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("k", "ascertainment"), VARIANTS)
def test_scores_are_the_gradients_of_the_sites(k, ascertainment):
    parents, lengths, X, weights, *rest = setting(3, k, ascertainment)
    ours = problem(parents, X, weights, *rest)
    scores = ours.scores(lengths)
    assert scores.shape == (len(lengths), len(X))
    assert_allclose(scores @ weights, ours.gradient(lengths)[1], rtol=1e-10)
    for i in (0, 5):
        one = reference.gradient(parents, lengths, X[[i]], None, *rest)
        assert_allclose(scores[:, i], one, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_posterior_of_the_inner_nodes(seed, k):
    parents, lengths, X, _, rates, _ = setting(seed, k, False)
    expected = reference.ancestral_posterior(parents, lengths, X, rates)
    ours = problem(parents, X, rates=rates)
    assert_allclose(ours.posterior(lengths), expected, rtol=1e-11)
    variable = problem(parents, X, rates=rates, ascertainment=True)
    assert_allclose(variable.posterior(lengths), expected, rtol=1e-11)


def test_information_over_more_columns_than_a_block():
    rng = np.random.default_rng(0)
    parents = random_parents(10, rng)
    lengths = rng.uniform(0.05, 0.5, len(parents) - 1)
    X = random_states(700, 10, rng)
    whole = problem(parents, X).information(lengths)
    parts = [
        problem(parents, X[i : i + 100]).information(lengths)
        for i in range(0, 700, 100)
    ]
    assert_allclose(whole, sum(parts), rtol=1e-9, atol=1e-8)


def test_blocks_of_sites_do_not_change_them():
    rng = np.random.default_rng(0)
    X = random_states(50, 6, rng, 0.1)
    model = PhyloBranchLengths(random_parents(6, rng), n_rate_categories=2, alpha=0.5)
    model.fit(X)
    values, posterior = model.score_samples(X), model.ancestral_posterior(X)

    def small(n, _):
        return [slice(i, min(i + 7, n)) for i in range(0, n, 7)]

    with mock.patch.object(_model, "row_blocks", small):
        assert_array_equal(model.score_samples(X), values)
        assert_array_equal(model.ancestral_posterior(X), posterior)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
@pytest.mark.parametrize("alpha", [0.02, 0.3, 0.5, 1.0, 2.5, 100.0])
def test_rates_have_mean_1_and_increase(alpha, k):
    rates = gamma_rates(alpha, k)
    assert rates.mean() == pytest.approx(1, rel=1e-11)
    assert (np.diff(rates) >= 0).all() and (rates > 0).all()


@pytest.mark.parametrize(("alpha", "k"), [(0.3, 2), (0.5, 3), (2.5, 2), (100.0, 2)])
def test_rates_are_slice_means_of_a_gamma_distribution(alpha, k):
    expected = reference.gamma_rates(alpha, k)
    assert_allclose(gamma_rates(alpha, k), expected, rtol=1e-8)


def test_rates_of_the_literature():
    expected = [0.03339, 0.25192, 0.82027, 2.89443]
    assert_allclose(gamma_rates(0.5, 4), expected, atol=5e-6)
