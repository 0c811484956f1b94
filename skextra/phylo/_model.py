"""What a fit has settled before it searches for the lengths."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from skextra.phylo._distances import below
from skextra.phylo._errors import covariance
from skextra.phylo._inputs import require_variable
from skextra.phylo._likelihood import Likelihood
from skextra.phylo._newick import to_newick
from skextra.phylo._patterns import as_states, compress
from skextra.phylo._rates import gamma_rates
from skextra.phylo._solvers import ALPHA_RANGE, Limits, search
from skextra.phylo._trees import Tree
from skextra.utils import row_blocks


class Model(NamedTuple):
    """A tree, and what the estimator was fitted with."""

    tree: Tree
    n_patterns: int
    binarize: float | None
    ascertainment: bool
    n_rate_categories: int
    alpha: float | None  # None: to estimate, or of no use
    solver: str
    limits: Limits

    def rates(self, alpha):
        """Return the rates of the categories; those of shape 1 for alpha=None."""
        return gamma_rates(1.0 if alpha is None else alpha, self.n_rate_categories)

    def likelihood(self, patterns, alpha):
        """Return the log-likelihood of patterns."""
        return Likelihood(
            self.tree,
            patterns.states,
            patterns.weights,
            self.rates(alpha),
            self.ascertainment,
        )

    def search(self, problem, starts):
        """Yield the best step so far after each iteration."""
        return search(problem, starts, self.solver, self.limits, self.alpha)

    def refitted(self, patterns, counts, start):
        """Return the best step for other weights of the patterns.

        The length of an edge is NaN if no leaf on one of its sides has a state.
        """
        drawn = counts > 0
        patterns = patterns._replace(
            states=patterns.states[drawn], weights=counts[drawn].astype(float)
        )
        *_, step = self.search(self.likelihood(patterns, self.alpha), [start])
        seen = (patterns.states != 0).any(axis=0)
        n_below = seen @ below(self.tree)
        lost = (n_below == 0) | (n_below == seen.sum())
        return step._replace(lengths=np.where(lost, np.nan, step.lengths))

    def by_blocks(self, patterns, alpha, function):
        """Return ``function(likelihood)`` of blocks of patterns, one below the other."""
        row_bytes = 16 * self.tree.walk.n_rows * self.n_rate_categories
        found = []
        for block in row_blocks(len(patterns.states), row_bytes):
            part = patterns._replace(
                states=patterns.states[block], weights=patterns.weights[block]
            )
            found.append(function(self.likelihood(part, alpha)))
        return np.concatenate(found)

    def at_bound(self, lengths):
        """Return which lengths are at a bound, within rounding."""
        low, high = self.limits.t_min, self.limits.t_max
        return (lengths <= low * (1 + 1e-9)) | (lengths >= high * (1 - 1e-9))

    def covariance(self, problem, step, kind):
        """Return the covariance of the lengths, and how many free ones have none."""
        problem.rates = self.rates(step.alpha)
        estimated = step.alpha is not None and self.alpha is None
        estimated = estimated and ALPHA_RANGE[0] < step.alpha < ALPHA_RANGE[1]
        free = ~self.at_bound(step.lengths)
        alpha = step.alpha if estimated else None
        return covariance(problem, step.lengths, free, kind, alpha)

    def fitted(self, step, covariance=None):
        """Return the fitted attributes."""
        tree, lengths = self.tree, step.lengths
        edges, errors = tree.edges, np.full(len(lengths), np.nan)
        if covariance is not None:
            errors = np.sqrt(np.diag(covariance))
        return {
            "tree_": to_newick(tree.parents, lengths, tree.names),
            "parents_": tree.parents,
            "edges_": np.column_stack([edges, tree.parents[edges]]),
            "branch_lengths_": lengths,
            "theta_": np.exp(-2 * lengths),
            "standard_errors_": errors,
            "covariance_": covariance,
            "at_bound_": self.at_bound(lengths),
            "loglik_": step.loglik,
            "n_iter_": step.n_iter,
            "converged_": step.converged,
            "alpha_": step.alpha,
            "n_patterns_": self.n_patterns,
            "leaf_names_": list(tree.names[: tree.n_leaves]),
            "_model": self,
        }


def validated(estimator, X, **options):
    """Return the characters as an array of numbers, with NaN where missing."""
    try:
        return validate_data(
            estimator, X, dtype="numeric", ensure_all_finite="allow-nan", **options
        )
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X must hold numbers, the states 0 and 1: {error}. Nucleotides become such "
            "by ry_coding."
        ) from error


def weighted_patterns(X, sample_weight, binarize, ascertainment=False):
    """Return the patterns of the sites of positive weight.

    Raises
    ------
    ValueError
        If values or weights are not as documented.
    """
    if X.dtype.kind not in "biuf":  # categories stay objects
        X = X.astype(np.float64)
    states = as_states(X, binarize)
    if ascertainment:
        require_variable(states)
    if sample_weight is None:
        return compress(states)
    weights = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 1e-300 < total < 1e300:
        raise ValueError(
            f"sample_weight must sum to more than 1e-300 and less than 1e300, got {total}."
        )
    return compress(states[weights > 0], weights[weights > 0])
