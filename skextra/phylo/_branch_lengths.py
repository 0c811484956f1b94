"""Branch lengths of a tree by maximum likelihood."""

import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skextra.phylo._distances import distances
from skextra.phylo._fitted_tree import FittedTreeMixin
from skextra.phylo._inputs import (
    as_tree,
    joined_tree,
    listed,
    matched,
    starting_lengths,
)
from skextra.phylo._model import Model, validated, weighted_patterns
from skextra.phylo._rates import MAX_ALPHA
from skextra.phylo._solvers import SOLVERS, Limits
from skextra.phylo._trees import suppressed
from skextra.utils import DocLinkMixin, forget

RANDOM_MEANS = 0.1, 0.6  # of the exponential lengths of random starts


class PhyloBranchLengths(
    DocLinkMixin, FittedTreeMixin, CallbackSupportMixin, DensityMixin, BaseEstimator
):
    """Maximum-likelihood branch lengths of a tree from two-state characters.

    A row of `X` is a site, a column is a leaf, and a cell is the state of a character:
    presence or absence, purine or pyrimidine, 0 or 1. Along each edge of the
    tree the state changes at random, as often one way as the other; the length of the
    edge is the expected number of changes per site. `fit` finds the lengths under which
    the data are most likely, by maximising over one edge after the other with all
    messages between the nodes up to date, and their standard errors.

    Read more in the :ref:`User Guide <phylo>`.

    Parameters
    ----------
    tree : str, Bunch, array-like, tree object or None, default=None
        The topology.

        - str: Newick text, or NEXUS text, of which the first tree is taken. Leaves
          are matched with the columns of `X` by name. Without column names the
          leaves must be "x0", "x1" and so on, or "0", "1" and so on.
        - Bunch: `parents`, `branch_lengths` and `names`, as :func:`parse_newick` and
          :func:`random_tree` return them.
        - array-like of shape (n_nodes,): parent of each node, -1 for the root; the
          first nodes are the leaves, in the order of the columns.
        - a tree of scikit-bio, Biopython or DendroPy.
        - None: neighbour joining on the distances of :func:`cfn_distance`.

        Nodes may have any number of children. A node that has two neighbours, such as
        a root with two children, is left out, and the lengths at it are added: the
        likelihood depends on their sum alone.

    binarize : float or None, default=0.0
        A value above it is state 1, any other state 0. With None all values must be 0
        or 1.

    init : {"ls", "constant", "tree"} or array-like of shape (n_edges,), default="ls"
        Lengths to start from: least squares of the distances; a correlation of 0.8
        across every edge; those of `tree`; or values in the order of `edges_`.

    t_min, t_max : float, default=1e-8 and 10.0
        Bounds of the lengths, in expected changes per site. `t_min` is 1e-15 or more
        and less than `t_max`, which is 15 or less, where the states of the ends are
        independent to 13 digits.

    n_rate_categories : int, default=1
        With more than one, each site has one of so many equally frequent rates, the
        slice means of a gamma distribution of mean 1. Lengths are then those of a site
        of rate 1.

    alpha : float or None, default=None
        Shape of the gamma distribution, up to 1e6: small values are very unequal rates.
        None estimates it, between 0.02 and 100: L-BFGS-B first finds it with the
        lengths, and then `solver` takes over with the lengths alone. Not used with one
        category.

    ascertainment : bool, default=False
        Whether the data were chosen to have variable sites alone. The likelihood is
        then given that a site is variable. It is of another kind than that without: do
        not compare the two.

    solver : {"auto", "coordinate", "em", "lbfgs"}, default="auto"
        - "coordinate": sweeps over the edges, each at its maximum.
        - "em": expectation maximisation, which is slow. Only for one rate and without
          `ascertainment`.
        - "lbfgs": L-BFGS-B on the square roots of the lengths.
        - "auto": sweeps, and L-BFGS where these are slow or where an edge ends at
          `t_max`, which sweeps cannot leave.

    n_init : int, default=1
        Number of starts, of which the best is kept: that of `init`, one of constant
        correlation 0.8, and then exponential random lengths, with means between 0.1 and
        0.6.

    max_iter : int, default=500
        Largest number of iterations from a start, all searches together. With 0 the
        lengths are those of the start, without standard errors; `alpha` must be given.

    tol : float, default=1e-10
        Iterations end when no correlation across an edge, exp(-2 length), changes by
        more, and the log-likelihood by less than 1e-9 of itself.

    standard_errors : {"observed", "opg"} or None, default="observed"
        From the second derivatives of the log-likelihood, or the outer product of the
        gradients of the sites, or not at all.

    random_state : int, RandomState instance or None, default=None
        Seed of the random starts.

    Attributes
    ----------
    tree_ : str
        Newick text of the tree with its lengths.

    parents_ : ndarray of shape (n_nodes,), dtype int64
        Parent of each node, -1 for the root. Node i is the leaf of column i of `X`.

    edges_ : ndarray of shape (n_edges, 2), dtype int64
        Lower and upper node of each edge, in increasing order of the lower node.

    branch_lengths_ : ndarray of shape (n_edges,)
        Lengths in expected changes per site.

    theta_ : ndarray of shape (n_edges,)
        Correlation of the states at the two ends, exp(-2 length).

    standard_errors_ : ndarray of shape (n_edges,)
        Standard errors of the lengths; NaN for an edge at a bound, and where the data
        do not tell the length, as of two edges of which they tell the sum. All are
        NaN if they were not asked for.

    covariance_ : ndarray of shape (n_edges, n_edges) or None
        Their covariance, with NaN in the same rows and columns; None if standard errors
        were not asked for. Where `alpha` was estimated, and not at an end of its range,
        its error is in it.

    at_bound_ : ndarray of shape (n_edges,), dtype bool
        Whether a length is `t_min` or `t_max`.

    loglik_ : float
        Log-likelihood of the data.

    n_iter_ : int
        Number of iterations from the best start.

    converged_ : bool
        Whether they ended by themselves; False with ``max_iter=0``.

    alpha_ : float or None
        Shape of the distribution of the rates; None with one category.

    n_patterns_ : int
        Number of different sites; a site and its complement are not different.

    leaf_names_ : list of str
        Names of the leaves.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns seen in `fit`, if all are strings.

    See Also
    --------
    neighbor_joining : Tree from distances.
    simulate_characters : Data from a tree.
    PhyloTreeDisplay : Picture of the tree and its errors.

    Notes
    -----
    The model is that of Cavender, Farris and Neyman (CFN), the symmetric model of two
    states. The algorithm is the coordinate maximisation of [1]_. For true
    correlations between 1 - C delta and 1 - c delta, with a small delta, the paper
    proves that it converges linearly, and that the error falls with the square root of
    the number of sites. Far from there the likelihood may have several maxima: raise
    `n_init`.

    Standard errors are those of large samples, and take the topology for known. They
    say little for a length within two of them from a bound; see `bootstrap`.

    References
    ----------
    .. [1] D. Clancy Jr., H. Lyu and S. Roch, "Sample complexity of branch-length
       estimation by maximum likelihood", ICML 2025.

    .. [2] P. O. Lewis, "A likelihood approach to estimating phylogeny from discrete
       morphological character data", Systematic Biology 50, 2001 (`ascertainment`).

    .. [3] Z. Yang, "Maximum likelihood phylogenetic estimation from DNA sequences with
       variable rates over sites: approximate methods", Journal of Molecular Evolution
       39, 1994 (rates).

    Examples
    --------
    >>> from skextra.phylo import PhyloBranchLengths, simulate_characters
    >>> tree = "((a:.1,b:.2):.1,c:.1,d:.3);"
    >>> X = simulate_characters(tree, 2000, as_frame=True, random_state=0)
    >>> model = PhyloBranchLengths(tree).fit(X)
    >>> model.branch_lengths_.round(2)
    array([0.1 , 0.2 , 0.1 , 0.31, 0.1 ])
    >>> model.standard_errors_.round(2)
    array([0.01, 0.02, 0.01, 0.02, 0.02])
    """

    _parameter_constraints: dict = {
        "tree": "no_validation",
        "binarize": [Interval(Real, None, None, closed="neither"), None],
        "init": [StrOptions({"ls", "constant", "tree"}), "array-like"],
        "t_min": [Interval(Real, 1e-15, None, closed="left")],
        "t_max": [Interval(Real, 0, 15, closed="right")],
        "n_rate_categories": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, MAX_ALPHA, closed="right"), None],
        "ascertainment": ["boolean"],
        "solver": [StrOptions(set(SOLVERS))],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "standard_errors": [StrOptions({"observed", "opg"}), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        tree=None,
        *,
        binarize=0.0,
        init="ls",
        t_min=1e-8,
        t_max=10.0,
        n_rate_categories=1,
        alpha=None,
        ascertainment=False,
        solver="auto",
        n_init=1,
        max_iter=500,
        tol=1e-10,
        standard_errors="observed",
        random_state=None,
    ):
        self.tree = tree
        self.binarize = binarize
        self.init = init
        self.t_min = t_min
        self.t_max = t_max
        self.n_rate_categories = n_rate_categories
        self.alpha = alpha
        self.ascertainment = ascertainment
        self.solver = solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.standard_errors = standard_errors
        self.random_state = random_state

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Estimate the branch lengths, after the tree where none is given.

        Parameters
        ----------
        X : array-like of shape (n_sites, n_leaves)
            Characters: a row is a site, a column is a leaf. NaN where missing. The
            names of the columns of a DataFrame are those of the leaves.

        y : Ignored
            Not used, present for API consistency.

        sample_weight : array-like of shape (n_sites,), default=None
            How often each site counts; by default once.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If the parameters, alone or together, or the data are not as documented; if
            the leaves of the tree
            are not the columns of `X`; if a leaf has no state at any site; or, with
            `ascertainment`, if a site is constant, or could be where cells are missing.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations were not enough.

        UserWarning
            If the likelihood has no strict maximum in the lengths of some edges between
            their bounds, which then have no standard errors.
        """
        forget(self)
        patterns, names = self._validate(X, sample_weight)
        model = self._model_for(patterns, names)
        problem = model.likelihood(patterns, model.alpha)
        starts = self._starts(model, patterns)

        fit_task = self._init_callback_context(max_subtasks=None)
        fit_task.call_on_fit_task_begin(estimator=self, X=X, y=y)
        stopped = False
        for step in model.search(problem, starts):
            task = fit_task.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            stopped = task.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes=partial(model.fitted, step),
            )
            if stopped:
                break
        found, n_lost = None, 0
        if self.standard_errors is not None and self.max_iter:
            found, n_lost = model.covariance(problem, step, self.standard_errors)
        vars(self).update(model.fitted(step, found))
        if not (step.converged or stopped) and self.max_iter:
            slow = self.solver in ("coordinate", "em")
            hint = ", or take solver='auto'" if slow else ""
            warnings.warn(
                f"The lengths still changed after max_iter={self.max_iter} iterations; "
                f"raise max_iter or tol{hint}.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if n_lost:
            warnings.warn(
                f"The log-likelihood has no strict maximum in the lengths of {n_lost} "
                "edges that are not at a bound, so these have no standard errors.",
                UserWarning,
                stacklevel=4,
            )
        fit_task.call_on_fit_task_end(
            estimator=self, X=X, y=y, reconstruction_attributes={}
        )
        return self

    def _validate(self, X, sample_weight):
        """Return the patterns of the sites that count, and names for the columns."""
        if self.t_min >= self.t_max:
            raise ValueError(
                f"t_min must be less than t_max, got {self.t_min} and {self.t_max}."
            )
        if self.solver == "em" and (self.n_rate_categories > 1 or self.ascertainment):
            raise ValueError(
                "solver='em' is for n_rate_categories=1 and ascertainment=False; use "
                "'auto', 'coordinate' or 'lbfgs'."
            )
        if not self.max_iter and self.n_rate_categories > 1 and self.alpha is None:
            raise ValueError("max_iter=0 estimates nothing, so alpha must be given.")
        X = validated(self, X, ensure_min_features=2)
        patterns = weighted_patterns(
            X, sample_weight, self.binarize, self.ascertainment
        )
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{i}" for i in range(X.shape[1])] if names is None else list(names)
        unseen = np.flatnonzero((patterns.states == 0).all(axis=0))
        if unseen.size:
            raise ValueError(
                "Each column of X must have a state in some row of positive weight; "
                f"there is none in {listed(names[i] for i in unseen)}."
            )
        return patterns, names

    def _model_for(self, patterns, names):
        """Return the tree, without nodes of degree 2, and the settings of this fit."""
        if self.tree is None:
            tree = joined_tree(distances(patterns.states, patterns.weights), names)
        else:
            has_names = hasattr(self, "feature_names_in_")
            tree = matched(as_tree(self.tree, len(names)), names, has_names)
        return Model(
            suppressed(tree),
            len(patterns.states),
            self.binarize,
            self.ascertainment,
            self.n_rate_categories,
            self.alpha if self.n_rate_categories > 1 else None,
            self.solver,
            Limits(self.t_min, self.t_max, self.tol, self.max_iter),
        )

    def _starts(self, model, patterns):
        """Yield the lengths of the starts."""
        cold = isinstance(self.init, str) and self.init == "constant"
        inits = ["constant"] if cold else [self.init, "constant"]
        for init in inits[: self.n_init]:
            yield starting_lengths(init, model.tree, patterns, model.limits)
        rng = check_random_state(self.random_state)
        for _ in range(self.n_init - len(inits)):
            mean = rng.uniform(*RANDOM_MEANS)
            yield model.limits.clip(rng.exponential(mean, len(model.tree.edges)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
