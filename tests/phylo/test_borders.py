"""Borders of the rooms of skextra.phylo, each of which a changed line once crossed."""

import io
import itertools
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from skextra.phylo import (
    PhyloBranchLengths,
    PhyloTreeDisplay,
    cfn_distance,
    neighbor_joining,
    parse_newick,
    read_trees,
    simulate_characters,
    to_newick,
)
from skextra.phylo import _distances as distances
from skextra.phylo import _solvers as solvers
from skextra.phylo._errors import inverse
from skextra.phylo._layout import rooted
from skextra.phylo._patterns import as_states, compress
from skextra.phylo._rates import gamma_rates
from skextra.phylo._solvers import Step
from tests.phylo import reference
from tests.phylo.common import moved, problem, random_states, rerooted
from tests.recorder import Recorder

TREE = "((x0:.1,x1:.2):.1,x2:.1,x3:.3);"
X = simulate_characters(TREE, 200, n_rate_categories=4, alpha=0.5, random_state=0)


def assert_least(gram, target):
    """The result is >= 0, and the slope is 0 where it is more, >= 0 elsewhere."""
    x = distances.nonnegative(gram, target)
    slope, size = gram @ x - target, np.abs(target).max()
    assert (x >= 0).all()
    assert (slope > -1e-8 * size).all()
    assert (np.abs(slope[x > 0]) < 1e-8 * size).all()
    root = cholesky(gram)
    expected, _ = nnls(root, solve_triangular(root, target, trans="T"))
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-6 * (1 + expected.max()))


@pytest.mark.parametrize("seed", range(60))
def test_nonnegative_least_squares(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    root = rng.normal(size=(n + 2, n)) + rng.integers(0, 3)
    assert_least(root.T @ root + 0.01 * np.eye(n), 10 * rng.normal(size=n))


def cycle():
    """A problem in which the blocks change sides for ever."""
    rng = np.random.default_rng(727)
    n = int(rng.integers(3, 25))
    root = rng.normal(size=(n + int(rng.integers(0, 2)), n))
    root += rng.normal(size=(1, n)) * 10 ** rng.uniform(0, 2)
    return root.T @ root + 1e-3 * np.eye(n), root.T @ rng.normal(size=len(root))


def test_block_pivoting_that_never_ends_is_left(monkeypatch):
    calls = []
    monkeypatch.setattr(
        distances, "nnls", lambda *given: calls.append(1) or nnls(*given)
    )
    assert_least(*cycle())
    assert calls


def test_few_problems_need_one_variable_at_a_time(monkeypatch):
    monkeypatch.setattr(distances, "nnls", None)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(12, 10))
        distances.nonnegative(root.T @ root, rng.normal(size=10))


def test_equal_leaves_have_a_distance_of_plain_zero():
    assert not np.signbit(cfn_distance([[0, 0], [1, 1]])).any()


@pytest.mark.parametrize("t_max", [3.3, 7.7, 10.0, 12.3, 13.9, 14.6, 15.0])
def test_a_sweep_ends_at_the_bound_itself(t_max):
    opposite = np.tile([[0, 1], [1, 0], [1, 1]], (2, 1))
    model = PhyloBranchLengths("(x0,x1);", solver="coordinate", t_max=t_max)
    model.fit(opposite)
    assert model.branch_lengths_ == t_max
    assert model.at_bound_.all()


def test_a_missing_cell_is_no_state_of_a_pattern():
    states = as_states(
        np.array(list(itertools.product([0, 1, np.nan], repeat=3))), None
    )
    patterns = compress(states)
    assert len(patterns.states) == 14  # 13 pairs of complements, and the empty site
    sign = np.where(patterns.complemented, -1, 1)[:, None]
    np.testing.assert_array_equal(patterns.states[patterns.inverse] * sign, states)


def test_standard_errors_are_those_of_the_shape_found():
    """The rates may be of another start when the search ends."""
    model = PhyloBranchLengths(TREE, n_rate_categories=4).fit(X)
    other = model._model.likelihood(compress(as_states(X, None)), 30.0)
    step = Step(model.branch_lengths_, model.loglik_, alpha=model.alpha_)
    found, _ = model._model.covariance(other, step, "observed")
    np.testing.assert_allclose(found, model.covariance_, rtol=1e-6)


@pytest.mark.parametrize("data", [0 * X, np.eye(4)[np.arange(100) % 4]])
@pytest.mark.parametrize("bounds", [(1e-8, 10), (0.05, 0.06), (3, 4), (1e-15, 1e-14)])
def test_least_squares_starts_are_within_all_bounds(data, bounds):
    t_min, t_max = bounds
    model = PhyloBranchLengths(TREE, max_iter=0, t_min=t_min, t_max=t_max).fit(data)
    lengths = model.branch_lengths_
    assert (lengths >= max(t_min, min(1e-4, t_max))).all()
    assert (lengths <= min(t_max, max(2, t_min))).all()


def test_a_search_that_rounding_stops_has_converged(monkeypatch):
    def stopped(*args, **kwargs):
        result = minimize(*args, **kwargs)
        result.success = False
        return result

    minimize = solvers.minimize
    monkeypatch.setattr(solvers, "minimize", stopped)
    assert PhyloBranchLengths(TREE, solver="lbfgs").fit(X).converged_


def test_iterations_count_where_they_gained_nothing():
    opposite = np.tile([[0, 1], [1, 0], [1, 1]], (2, 1))
    sweeps = PhyloBranchLengths("(x0,x1);", solver="coordinate").fit(opposite)
    steps = PhyloBranchLengths("(x0,x1);", solver="lbfgs").fit(opposite)
    both = PhyloBranchLengths("(x0,x1);").fit(opposite)
    assert both.loglik_ == sweeps.loglik_
    assert both.n_iter_ == sweeps.n_iter_ + steps.n_iter_


@pytest.mark.parametrize("text", ["(((a,b),c));", "((((a,b),c)x):3)y:1;"])
def test_roots_with_one_child_are_left_out(text):
    tree = parse_newick(text)
    assert tree.parents.tolist() == [3, 3, 4, 4, -1]
    assert tree.names[:3] == ["a", "b", "c"]


@pytest.mark.parametrize("seed", range(5))
def test_starts_that_end_together_leave_the_first(seed):
    data = simulate_characters(TREE, 500, random_state=seed)
    first = PhyloBranchLengths(TREE, standard_errors=None).fit(data)
    many = PhyloBranchLengths(TREE, standard_errors=None, n_init=6, random_state=0)
    np.testing.assert_array_equal(many.fit(data).branch_lengths_, first.branch_lengths_)


def test_short_and_long_edges_both_have_errors():
    parents, lengths = [4, 4, 4, 4, -1], [1e-6, 0.1, 0.1, 3.5]
    patterns = reference.all_patterns(4)
    weights = 1e10 * reference.site_likelihoods(parents, lengths, patterns)
    model = PhyloBranchLengths(parents).fit(patterns, sample_weight=weights)
    np.testing.assert_allclose(model.branch_lengths_, lengths, rtol=1e-3)
    hessian = reference.hessian(parents, model.branch_lengths_, patterns, weights)
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    np.testing.assert_allclose(model.standard_errors_, expected, rtol=1e-4)


def test_information_that_is_rounding_alone_is_none():
    for tiny in [1e-12, 0.0, -1e-17]:
        found = inverse(np.diag([4.0, tiny, 1.0]), 1e-10)
        known = np.array([0.25, np.nan, 1.0])
        np.testing.assert_allclose(np.diag(found), known)


@pytest.mark.parametrize("alpha", [1e-300, 1e-3, 0.02])
def test_no_rate_is_zero(alpha):
    assert (gamma_rates(alpha, 4) > 0).all()
    constant = np.zeros((1, 4))
    model = PhyloBranchLengths(TREE, n_rate_categories=4, alpha=alpha).fit(X)
    assert np.isfinite(model.score_samples(np.vstack([constant, X]))).all()


def test_a_leaf_that_is_the_root_has_no_length_where_none_is_known():
    assert to_newick([1, -1]) == "(x0,x1);"
    assert to_newick([1, -1], [0.5]) == "(x0:0.5,x1:0.0);"


@pytest.mark.parametrize("shortest", [0.1, 1e-12])
def test_a_node_of_many_children_below_the_root(shortest):
    """It is the root in one of the trees, and has a message from above in the other."""
    rng = np.random.default_rng(0)
    top = np.array([14] * 12 + [15, 15, 15, -1])
    wide = rerooted(top, 14)
    lengths = rng.uniform(shortest, 3 * shortest, 15)
    sites = random_states(40, 14, rng, 0.1)
    value, gradient = problem(top, sites).gradient(lengths)
    other = moved(top, lengths, wide)
    expected, there = problem(wide, sites).gradient(other)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(moved(top, gradient, wide), there, rtol=1e-8)
    by_sweep = [
        next(problem(parents, sites).ascend(start, 1e-15, 10.0))[1]
        for parents, start in [(top, lengths), (wide, other)]
    ]
    assert min(by_sweep) > value
    posterior = problem(top, sites).posterior(lengths)
    np.testing.assert_allclose(
        posterior, problem(wide, sites).posterior(other), atol=1e-12
    )


def test_error_bars_do_not_pass_the_upper_end_of_an_edge():
    plt.switch_backend("Agg")
    display = PhyloTreeDisplay([3, 3, 3, -1], [0.1, 0.2, 0.3], "abc", [1, 1, 1]).plot()
    segments = [part for c in display.ax_.collections for part in c.get_segments()]
    assert min(part[:, 0].min() for part in segments) > -1e-12
    assert max(part[:, 0].max() for part in segments) > 2
    plt.close(display.figure_)


@pytest.mark.parametrize("value", [1e-9, 0.5, 2.0])
def test_distances_from_a_leaf_to_itself_are_zero(value):
    with pytest.raises(ValueError, match=r"0 on the diagonal, got .* at \(1, 1\)"):
        neighbor_joining([[0, 1], [1, value]])


def test_one_category_has_no_shape():
    assert PhyloBranchLengths(TREE, alpha=0.5).fit(X).alpha_ is None


def test_numbers_are_no_names_where_the_columns_have_their_own():
    named = pd.DataFrame(X, columns=list("abcd"))
    numbers = "((0,1),2,3);"
    assert PhyloBranchLengths(numbers).fit(X).leaf_names_ == list("0123")
    with pytest.raises(ValueError, match="not in X: 0, 1, 2, 3"):
        PhyloBranchLengths(numbers).fit(named)


def test_each_block_of_trees_has_its_own_names():
    text = """#NEXUS
        begin taxa; taxlabels cat dog 'guinea pig'; end;
        begin trees; translate 1 ape, 2 bee, 3 cow; tree one = (1,2,3); end;
        begin trees; tree two = (1,2,3); end;"""
    found = read_trees(io.StringIO(text))
    assert found == ["(ape,bee,cow);", "(cat,dog,'guinea pig');"]


def test_variable_sites_of_one_in_ten_thousand_are_drawn():
    variable = X[X.min(axis=1) < X.max(axis=1)]
    lengths = [1e-5] * 5
    model = PhyloBranchLengths(TREE, init=lengths, max_iter=0, ascertainment=True)
    drawn = model.fit(variable).sample(2, random_state=0)
    assert (drawn.min(axis=1) < drawn.max(axis=1)).all() and len(drawn) == 2


def test_bootstrap_tells_of_draws_that_did_not_converge():
    model = PhyloBranchLengths(TREE, solver="coordinate", max_iter=200).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.bootstrap(X, 3, random_state=0)
    model.set_params(max_iter=1)
    with pytest.warns(ConvergenceWarning, match="lengths still changed"):
        model.fit(X)
    with pytest.warns(ConvergenceWarning, match="of 3 of 3 draws"):
        model.bootstrap(X, 3, random_state=0)


def test_derivatives_in_the_rates():
    rng = np.random.default_rng(0)
    parents, rates = np.array([4, 4, 5, 5, 5, -1]), np.array([0.1, 0.7, 2.2])
    lengths = rng.uniform(0.05, 0.5, 5)
    for ascertainment in [False, True]:
        sites = X[X.min(axis=1) < X.max(axis=1)] if ascertainment else X
        problems = problem(parents, sites, None, rates, ascertainment)
        _, _, by_rate = problems.gradients(lengths)
        for k, step in enumerate(1e-6 * np.eye(3)):
            values = []
            for problems.rates in (rates + step, rates - step):
                values.append(problems.value(lengths))
            problems.rates = rates
            slope = (values[0] - values[1]) / 2e-6
            assert by_rate[k] == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("up", [0.1, 0.9])
def test_errors_stay_with_the_longer_half_of_the_edge_of_the_root(up):
    values = np.array([[1.0, 2.0, 3.0, np.nan], [0.5, 0.6, 0.7, np.nan]])
    parents, values = rooted(np.array([3, 3, 3, -1]), values, 0, up)
    halves = np.flatnonzero(parents == 4)
    np.testing.assert_allclose(np.sort(values[0, halves]), [0.1, 0.9])
    longer = halves[values[0, halves].argmax()]
    assert values[1, longer] == 0.5
    assert np.isnan(values[1, halves]).sum() == 1


def test_the_root_is_rather_not_a_leaf():
    for tree in ["((x0,x1,x2),x3);", "(x3,(x0,x1,x2));"]:
        model = PhyloBranchLengths(tree).fit(X)
        assert model.parents_.tolist() == [4, 4, 4, 4, -1]


def test_a_fit_that_was_stopped_does_not_warn():
    model = PhyloBranchLengths(TREE, solver="coordinate").set_callbacks(Recorder(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not model.fit(X).converged_


def test_bootstrap_draws_a_site_at_least():
    model = PhyloBranchLengths(TREE).fit(X)
    weights = np.full(len(X), 1e-6)
    drawn = model.bootstrap(X, 2, sample_weight=weights, random_state=0)
    # One site says that nothing changed, or that all did.
    assert ((drawn <= 1e-7) | (drawn >= 1)).all()


@pytest.mark.parametrize("lengths", [[0, 0, 0], [1e-8, 1e-8, 1e-8]])
def test_a_tree_without_lengths_is_drawn(lengths):
    plt.switch_backend("Agg")
    display = PhyloTreeDisplay([3, 3, 3, -1], lengths, list("abc")).plot()
    assert {text.get_text() for text in display.ax_.texts} == set("abc")
    plt.close(display.figure_)


@pytest.mark.parametrize(
    ("parents", "lengths", "message"),
    [
        ([3, 3, 3, -1], [0.1, np.nan, 0.1], "a length for each edge, got NaN"),
        ([3, 3, 3, -1], [0.1, 0.2], "branch_lengths must have one value for each"),
        ([1, 0, 3, -1], [0.1, 0.2, 0.3], "cycle"),
    ],
)
def test_what_is_no_tree_is_not_drawn(parents, lengths, message):
    with pytest.raises(ValueError, match=message):
        PhyloTreeDisplay(parents, lengths, list("abc")).plot()


def test_nucleotides_are_to_be_coded():
    with pytest.raises(ValueError, match="by ry_coding"):
        PhyloBranchLengths().fit(np.array([["A", "C"], ["G", "T"]], dtype=object))


@pytest.mark.parametrize(
    ("tree", "error", "message"),
    [
        (["(x0,x1);", "(x1,x0);"], TypeError, "one tree, got a list of 2 texts"),
        ("/home/me/tree.nwk", ValueError, "read_trees reads a file"),
        ([[1, 2], [3]], ValueError, "must be one array"),
    ],
)
def test_what_is_not_one_tree(tree, error, message):
    with pytest.raises(error, match=message):
        PhyloBranchLengths(tree).fit(np.eye(2))


def test_lengths_of_all_nodes_leave_the_root_out():
    tree = parse_newick("(a:.1,b:.2,c:.3);")
    draws = [
        simulate_characters(tree, 50, branch_lengths=lengths, random_state=0)
        for lengths in (tree.branch_lengths, tree.branch_lengths[:-1], None)
    ]
    assert (draws[0] == draws[1]).all() and (draws[0] == draws[2]).all()


def test_named_samples_are_fitted_again():
    tree = "(a:.1,b:.2,c:.3);"
    X = simulate_characters(tree, 50, as_frame=True, random_state=0)
    model = PhyloBranchLengths(tree).fit(X)
    drawn = model.sample(40, random_state=0, as_frame=True)
    assert list(drawn.columns) == list("abc")
    assert (drawn.to_numpy() == model.sample(40, random_state=0)).all()
    assert PhyloBranchLengths(tree).fit(drawn).n_features_in_ == 3


def test_no_bootstrap_of_what_was_not_estimated():
    X = simulate_characters("(x0:.1,x1:.2,x2:.3);", 50, random_state=0)
    model = PhyloBranchLengths(max_iter=0).fit(X)
    with pytest.raises(ValueError, match="max_iter=0 estimates nothing"):
        model.bootstrap(X, 2)
