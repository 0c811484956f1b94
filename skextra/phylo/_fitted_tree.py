"""What can be done with a tree whose lengths are known."""

import warnings
from functools import partial
from numbers import Integral

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted

from skextra.phylo._display import PhyloTreeDisplay
from skextra.phylo._likelihood import Likelihood
from skextra.phylo._model import validated, weighted_patterns
from skextra.phylo._simulate import named, simulate, variable
from skextra.utils import run_parallel


class FittedTreeMixin:
    """Scores, draws and pictures of a fitted tree."""

    def score_samples(self, X):
        """Compute the log-likelihood of each site.

        Parameters
        ----------
        X : array-like of shape (n_sites, n_leaves)
            Characters, as in `fit`.

        Returns
        -------
        loglik : ndarray of shape (n_sites,)
            Natural logarithm of the probability of each site, which is 0 for one
            without states; with `ascertainment`, given that it is variable.

        Raises
        ------
        ValueError
            With `ascertainment`, if a site is constant, or could be where cells are
            missing.
        """
        patterns = self._patterns(X)
        return self._by_blocks(patterns, Likelihood.site_values)[patterns.inverse]

    def score(self, X, y=None):
        """Compute the mean log-likelihood of the sites.

        Parameters
        ----------
        X : array-like of shape (n_sites, n_leaves)
            Characters, as in `fit`.

        y : Ignored
            Not used, present for API consistency.

        Returns
        -------
        loglik : float
            Mean of :meth:`score_samples`.

        Raises
        ------
        ValueError
            As :meth:`score_samples`.
        """
        return float(self.score_samples(X).mean())

    def ancestral_posterior(self, X):
        """Compute the probability of state 1 at the inner nodes, given the leaves.

        Parameters
        ----------
        X : array-like of shape (n_sites, n_leaves)
            Characters, as in `fit`.

        Returns
        -------
        probability : ndarray of shape (n_sites, n_inner_nodes)
            Column j is for node n_leaves + j of `parents_`.

        Raises
        ------
        ValueError
            As :meth:`score_samples`.
        """
        patterns = self._patterns(X)
        ones = self._by_blocks(patterns, Likelihood.posterior)[patterns.inverse]
        return np.where(patterns.complemented[:, None], 1 - ones, ones)

    @validate_params(
        {
            "self": "no_validation",
            "n_samples": [Interval(Integral, 1, None, closed="left")],
            "random_state": ["random_state"],
            "as_frame": ["boolean"],
        },
        prefer_skip_nested_validation=True,
    )
    def sample(self, n_samples=1, random_state=None, *, as_frame=False):
        """Draw sites from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number of sites.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        as_frame : bool, default=False
            Whether to return a pandas DataFrame, whose columns have the leaves' names.

        Returns
        -------
        X : ndarray of shape (n_samples, n_leaves), dtype int8, or DataFrame
            States 0 and 1; of variable sites with `ascertainment`.

        Raises
        ------
        ValueError
            With `ascertainment`, if less than one site in a million is variable.

        ImportError
            If `as_frame` is true and pandas is not installed.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        draw = partial(
            simulate,
            self._model.tree,
            self.branch_lengths_,
            rates=self._model.rates(self.alpha_),
            rng=rng,
        )
        X = variable(draw, n_samples) if self._model.ascertainment else draw(n_samples)
        return named(X, self.leaf_names_, "sample") if as_frame else X

    @validate_params(
        {
            "self": "no_validation",
            "X": "no_validation",
            "n_bootstraps": [Interval(Integral, 1, None, closed="left")],
            "sample_weight": "no_validation",
            "n_jobs": [Integral, None],
            "random_state": ["random_state"],
        },
        prefer_skip_nested_validation=True,
    )
    def bootstrap(
        self, X, n_bootstraps=100, *, sample_weight=None, n_jobs=None, random_state=None
    ):
        """Estimate the lengths of the fitted tree again from sites drawn at random.

        Parameters
        ----------
        X : array-like of shape (n_sites, n_leaves)
            Characters, as a rule those of `fit`.

        n_bootstraps : int, default=100
            Number of draws, each of as many sites as the weights sum to, rounded, and 1
            at least, with replacement.

        sample_weight : array-like of shape (n_sites,), default=None
            How often each site counts; by default once.

        n_jobs : int, default=None
            Number of threads, or of workers of the backend of
            :func:`joblib.parallel_config`.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws.

        Returns
        -------
        lengths : ndarray of shape (n_bootstraps, n_edges)
            Lengths of each draw, in the order of `edges_`; NaN for an edge if in the
            draw no leaf on one of its sides has a state. The searches start from
            `branch_lengths_`.

        Raises
        ------
        ValueError
            If the weights are not as documented or sum to more than 2**62, or if the
            model was fitted with ``max_iter=0``.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations were not enough for a draw.
        """
        patterns, model = self._patterns(X, sample_weight), self._model
        if not model.limits.max_iter:
            raise ValueError("A model of max_iter=0 estimates nothing to bootstrap.")
        rng = check_random_state(random_state)
        total = patterns.weights.sum()
        if total > 2**62:
            raise ValueError(f"sample_weight must sum to at most 2**62, got {total}.")
        share, n_sites = patterns.weights / total, max(1, round(total))
        start, refitted = self.branch_lengths_, delayed(model.refitted)
        draws = (rng.multinomial(n_sites, share) for _ in range(n_bootstraps))
        tasks = (refitted(patterns, counts, start) for counts in draws)
        found = list(run_parallel(tasks, n_jobs))
        lost = sum(not step.converged for step in found)
        if lost:
            warnings.warn(
                f"The lengths of {lost} of {n_bootstraps} draws still changed after "
                f"max_iter={model.limits.max_iter} iterations.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return np.array([step.lengths for step in found])

    def plot(self, **kwargs):
        """Plot the tree with its lengths and their errors.

        Parameters
        ----------
        **kwargs : dict
            Parameters of :meth:`PhyloTreeDisplay.from_estimator`.

        Returns
        -------
        display : PhyloTreeDisplay
            The picture.
        """
        return PhyloTreeDisplay.from_estimator(self, **kwargs)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "branch_lengths_")

    def _patterns(self, X, sample_weight=None):
        """Return the patterns of new sites."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        model = self._model
        return weighted_patterns(X, sample_weight, model.binarize, model.ascertainment)

    def _by_blocks(self, patterns, function):
        """Return what a function of a likelihood and the lengths says of patterns."""
        return self._model.by_blocks(
            patterns,
            self.alpha_,
            lambda problem: function(problem, self.branch_lengths_),
        )
