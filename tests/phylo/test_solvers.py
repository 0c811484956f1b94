"""Ways up the likelihood: each step, where they end, and what they say of it."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skextra.phylo import PhyloBranchLengths
from skextra.phylo._numba import EDGE
from skextra.phylo._rates import gamma_rates
from skextra.phylo._solvers import Limits, Step, em
from tests.phylo import reference
from tests.phylo.common import (
    cases,
    evolved,
    problem,
    random_parents,
    random_states,
)

SOLVERS = ["auto", "coordinate", "em", "lbfgs"]
QUARTET = np.array([4, 4, 5, 5, 5, -1])


def prefixes(ours, lengths, t_min=1e-8, t_max=10.0):
    """Yield each edge of a sweep and all lengths after its step."""
    walk = ours.walk
    for i in np.flatnonzero(walk.sweep[:, 0] == EDGE):
        ours.walk = walk._replace(sweep=walk.sweep[: i + 1])
        after, _ = next(ours.ascend(lengths, t_min, t_max))
        yield np.searchsorted(ours.edges, walk.sweep[i, 1]), after
    ours.walk = walk


@settings(max_examples=25, deadline=None)
@given(cases(5, shortest=1e-8, longest=10.0), st.sampled_from([1, 2, 3]), st.booleans())
def test_no_step_goes_down(case, k, ascertainment):
    parents, lengths, X, weights = case
    if ascertainment:
        X, lengths = np.nan_to_num(X), np.maximum(lengths, 0.01)
        X[:, 0] = 1 - X[:, 1]
    data = X, weights, gamma_rates(0.5, k), ascertainment
    ours = problem(parents, *data)
    best = reference.loglik(parents, lengths, *data)
    # Within a sweep the probability of a variable site is brought up to date by
    # differences: where it falls from 1/2 to 1e-8, it keeps eight digits until the next.
    rounding = 1e-10 * abs(best) + (1e-8 * weights.sum() if ascertainment else 1e-10)
    for _, after in prefixes(ours, lengths):
        value = reference.loglik(parents, after, *data)
        assert value >= best - rounding
        best = max(value, best)


@settings(max_examples=25, deadline=None)
@given(cases(6, shortest=1e-8, longest=3.0))
def test_sweep_is_one_line_search_after_the_other(case):
    parents, lengths, X, weights = case
    ours = problem(parents, X, weights)
    steps = list(prefixes(ours, lengths))
    order = [edge for edge, _ in steps]
    assert sorted(order) == list(range(len(lengths)))
    slow = reference.coordinate_sweep(parents, lengths, X, weights, order)
    for (_, after), (_, expected, value) in zip(steps, slow):
        close = np.isclose(after, expected, rtol=1e-6, atol=1e-10).all()
        # A likelihood that is flat in the length of an edge may leave it where it is.
        reached = reference.loglik(parents, after, X, weights)
        assert close or abs(reached - value) <= 1e-10 * abs(value)
        if not close:
            break
    final, loglik = next(problem(parents, X, weights).ascend(lengths, 1e-8, 10.0))
    assert_allclose(final, steps[-1][1], rtol=1e-7, atol=1e-12)
    assert loglik == pytest.approx(reference.loglik(parents, final, X, weights))


@pytest.mark.parametrize("seed", range(6))
def test_sweep_equals_the_reference_where_the_likelihood_is_strict(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(7, rng, leaf_root=seed % 2)
    truth = rng.uniform(0.05, 0.4, len(parents) - 1)
    X = evolved(parents, truth, 7, 300, rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    start = np.full(len(truth), -np.log(0.8) / 2)
    ours = problem(parents, X)
    steps = list(prefixes(ours, start))
    slow = reference.coordinate_sweep(parents, start, X, None, [e for e, _ in steps])
    for (_, after), (_, expected, _) in zip(steps, slow):
        assert_allclose(after, expected, rtol=1e-7, atol=1e-9)
    sweeps = ours.ascend(start, 1e-8, 10.0)
    last = -np.inf
    for _ in range(5):
        lengths, loglik = next(sweeps)
        assert loglik == pytest.approx(reference.loglik(parents, lengths, X), rel=1e-12)
        assert loglik >= last
        last = loglik


@pytest.mark.parametrize("seed", range(5))
def test_em_step(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(5, rng, leaf_root=seed % 2)
    X = random_states(15, 5, rng, 0.2)
    weights = rng.uniform(0.2, 3, len(X))
    lengths = rng.uniform(0.1, 0.5, len(parents) - 1)
    ours = problem(parents, X, weights)
    step = next(
        em(ours, Step(lengths, ours.value(lengths)), Limits(1e-8, 10.0, 1e-10, 500))
    )
    flips = np.minimum(
        reference.em_step(parents, lengths, X, weights), -np.expm1(-20) / 2
    )
    assert_allclose(-np.expm1(-2 * step.lengths) / 2, flips, rtol=1e-9)
    assert step.loglik == pytest.approx(ours.value(step.lengths))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(3))
def test_solvers_agree(solver, seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(8, rng, leaf_root=seed == 2)
    X = evolved(parents, rng.uniform(0.05, 0.3, len(parents) - 1), 8, 1500, rng)
    model = PhyloBranchLengths(parents, solver=solver, max_iter=3000).fit(X)
    assert model.converged_
    if solver == "auto":
        sites, counts = np.unique(X, axis=0, return_counts=True)
        ours = problem(parents, sites, counts)
        assert np.abs(ours.gradient(model.branch_lengths_)[1]).max() < 0.02
    best = PhyloBranchLengths(parents, tol=1e-13).fit(X)
    assert_allclose(model.branch_lengths_, best.branch_lengths_, atol=1e-6)
    assert model.loglik_ == pytest.approx(best.loglik_, abs=1e-6)


@pytest.mark.parametrize("variant", [{"n_rate_categories": 3, "alpha": 0.6},
                                     {"ascertainment": True}])  # fmt: skip
def test_solvers_agree_on_other_models(variant):
    rng = np.random.default_rng(1)
    parents = random_parents(6, rng)
    rates = gamma_rates(0.6, variant.get("n_rate_categories", 1))
    X = evolved(parents, rng.uniform(0.1, 0.3, len(parents) - 1), 6, 3000, rng, rates)
    X = X[X.min(axis=1) < X.max(axis=1)]
    fits = [
        PhyloBranchLengths(parents, solver=solver, max_iter=5000, **variant).fit(X)
        for solver in ("auto", "coordinate", "lbfgs")
    ]
    for model in fits:
        assert model.converged_
        assert_allclose(model.branch_lengths_, fits[0].branch_lengths_, atol=2e-6)
        assert model.loglik_ == pytest.approx(fits[0].loglik_, abs=1e-6)
    ours = problem(parents, X, None, rates, variant.get("ascertainment", False))
    assert np.abs(ours.gradient(fits[0].branch_lengths_)[1]).max() < 0.02


@pytest.mark.parametrize("parents", [[1, -1], [-1, 0]])
@pytest.mark.parametrize("solver", SOLVERS)
def test_pair_in_closed_form(solver, parents):
    X = np.zeros((100, 2))
    X[:13, 1] = 1
    model = PhyloBranchLengths(parents, solver=solver, init="constant", max_iter=2000)
    model.fit(X)
    atol = 1e-10 if solver in ("auto", "coordinate") else 1e-7
    assert_allclose(model.branch_lengths_, -np.log(1 - 0.26) / 2, atol=atol)
    assert_allclose(model.theta_, 0.74, atol=atol)
    p = 0.13
    expected = np.sqrt(p * (1 - p) / 100) / (1 - 2 * p)
    assert_allclose(model.standard_errors_, expected, rtol=1e-5)
    entropy = 13 * np.log(0.065) + 87 * np.log(0.435)
    assert model.loglik_ == pytest.approx(entropy, rel=1e-12)


@pytest.mark.parametrize("n", [0, 60, 100])
@pytest.mark.parametrize("solver", SOLVERS)
def test_pair_at_a_bound(solver, n):
    X = np.zeros((100, 2))
    X[:n, 1] = 1
    model = PhyloBranchLengths([1, -1], solver=solver, max_iter=5000).fit(X)
    if solver == "em" and n == 0:  # sublinear: the bound is far below
        assert model.branch_lengths_[0] < 1e-5
        return
    assert_allclose(model.branch_lengths_, 10.0 if n else 1e-8)
    assert model.at_bound_.all()
    assert np.isnan(model.standard_errors_).all()


@pytest.mark.parametrize("parents", [[3, 3, 3, -1], [-1, 3, 3, 0]])
def test_triple_in_closed_form(parents):
    counts = {(0, 0, 0): 60, (0, 0, 1): 20, (0, 1, 0): 8, (0, 1, 1): 12}
    X = np.repeat(list(counts), list(counts.values()), axis=0).astype(float)
    model = PhyloBranchLengths(parents, tol=1e-14, max_iter=2000).fit(X)
    r01, r02, r12 = 1 - 2 * 0.20, 1 - 2 * 0.32, 1 - 2 * 0.28
    theta = np.sqrt([r01 * r02 / r12, r01 * r12 / r02, r02 * r12 / r01])
    by_leaf = theta if parents[0] == 3 else theta[[1, 2, 0]]
    assert_allclose(model.theta_, by_leaf, atol=1e-10)


def hostile(seed):
    return random_states(41, 4, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(30))
def test_hostile_data(seed):
    """Random sites on a quartet: no signal, bounds, several maxima."""
    X = hostile(seed)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        auto = PhyloBranchLengths(QUARTET).fit(X)
    unfinished = any(w.category is ConvergenceWarning for w in said)
    assert auto.converged_ != unfinished
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        slow = PhyloBranchLengths(QUARTET, solver="coordinate").fit(X)
    assert auto.loglik_ >= slow.loglik_ - 1e-8
    lengths = auto.branch_lengths_
    expected = reference.loglik(QUARTET, lengths, X)
    assert auto.loglik_ == pytest.approx(expected, rel=1e-12)
    if auto.converged_:
        gradient = reference.gradient(QUARTET, lengths, X)
        uphill = np.clip(lengths + gradient, 1e-8, 10.0) - lengths
        # In the roots of the lengths: where a length is huge nothing depends on it.
        assert np.abs(uphill * np.minimum(1, np.exp(-2 * lengths) * 1e3)).max() < 1e-2


def test_budget_that_ends_is_told():
    X = hostile(0)
    for solver in SOLVERS:
        model = PhyloBranchLengths(QUARTET, solver=solver, init="constant", max_iter=1)
        model.set_params(standard_errors=None)
        with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
            model.fit(X)
        assert not model.converged_ and model.n_iter_ == 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_iterations_keep_the_lengths(solver):
    lengths = [0.1, 0.2, 0.3, 0.05, 0.4]
    model = PhyloBranchLengths(QUARTET, solver=solver, init=lengths, max_iter=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(hostile(1))
    assert_array_equal(model.branch_lengths_, lengths)
    assert model.n_iter_ == 0 and not model.converged_
    assert np.isnan(model.standard_errors_).all()
    assert model.covariance_ is None
    expected = reference.loglik(QUARTET, lengths, hostile(1))
    assert model.loglik_ == pytest.approx(expected, rel=1e-12)


def test_more_starts_find_a_better_maximum():
    gains = []
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for seed in range(12):
            one = PhyloBranchLengths(QUARTET).fit(hostile(seed))
            many = PhyloBranchLengths(QUARTET, n_init=15, random_state=0)
            gains.append(many.fit(hostile(seed)).loglik_ - one.loglik_)
    assert min(gains) >= -1e-8
    assert max(gains) > 0.01


def test_random_state_decides_the_starts():
    rng = np.random.default_rng(0)
    parents, X = random_parents(8, rng), random_states(30, 8, rng)
    make = PhyloBranchLengths(
        parents, n_init=5, max_iter=3, random_state=7, standard_errors=None
    )
    with pytest.warns(ConvergenceWarning):
        first, second = (make.fit(X).branch_lengths_.copy() for _ in range(2))
        other = make.set_params(random_state=8).fit(X).branch_lengths_
        state = np.random.RandomState(7)
        third = make.set_params(random_state=state).fit(X).branch_lengths_
    assert_array_equal(first, second)
    assert_array_equal(first, third)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("solver", ["auto", "coordinate", "lbfgs"])
def test_variable_sites_of_many_leaves(solver):
    """Under these lengths a constant site is less probable than a rounding error."""
    n = 70
    X = random_states(30, n, np.random.default_rng(0))
    parents = np.r_[np.full(n, n), -1]
    variable, plain = (
        PhyloBranchLengths(
            parents,
            ascertainment=ascertainment,
            init=np.full(n, 10.0),
            solver=solver,
            standard_errors=None,
        ).fit(X)
        for ascertainment in (True, False)
    )
    expected = reference.loglik(parents, variable.branch_lengths_, X)
    assert variable.loglik_ == pytest.approx(expected, rel=1e-9)
    assert variable.loglik_ == pytest.approx(plain.loglik_, rel=1e-6)


@pytest.mark.parametrize("seed", [34, 38, 5])
def test_auto_leaves_an_edge_that_carries_nothing(seed):
    """Sweeps are caught where a length is `t_max`."""
    params = {"init": "constant", "standard_errors": None}
    caught = PhyloBranchLengths(QUARTET, solver="coordinate", **params)
    caught.fit(hostile(seed))
    assert (caught.branch_lengths_ == 10).any()
    free = PhyloBranchLengths(QUARTET, **params).fit(hostile(seed))
    assert free.loglik_ > caught.loglik_ + 1
