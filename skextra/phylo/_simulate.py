"""Random trees and random characters."""

from collections import deque
from numbers import Integral, Real

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from skextra.phylo._inputs import as_tree, given_lengths
from skextra.phylo._likelihood import flip_probabilities
from skextra.phylo._rates import MAX_ALPHA, gamma_rates


def simulate(tree, lengths, n_sites, rates, rng):
    """Draw the states of the leaves at independent sites, each of a random rate."""
    flips = np.zeros((len(tree.parents), len(rates)))
    flips[tree.edges] = flip_probabilities(lengths, rates)
    rate = rng.randint(len(rates), size=n_sites)
    states = np.empty((len(tree.parents), n_sites), dtype=np.int8)
    states[tree.root] = rng.randint(2, size=n_sites)
    for node in tree.preorder[1:]:
        flipped = rng.uniform(size=n_sites) < flips[node, rate]
        states[node] = states[tree.parents[node]] ^ flipped
    return states[: tree.n_leaves].T


def named(X, names, caller):
    """Return characters as a DataFrame."""
    pd = check_pandas_support(caller)
    return pd.DataFrame(X, columns=list(names))


def variable(draw, n_sites):
    """Draw sites until so many are variable.

    Raises
    ------
    ValueError
        If they are less than one in a million.
    """
    found, n_found, n_drawn = [], 0, 0
    while n_found < n_sites:
        batch = draw(max(n_sites, 1000))
        batch = batch[(batch != batch[:, :1]).any(axis=1)]
        found.append(batch)
        n_found, n_drawn = n_found + len(batch), n_drawn + max(n_sites, 1000)
        if n_drawn > 1_000_000 * (n_found + 1):
            raise ValueError(
                "Variable sites are too rare under the fitted lengths to be drawn: "
                f"{n_found} of {n_drawn} sites."
            )
    return np.vstack(found)[:n_sites]


def _pair(lineages, shape, rng):
    """Take the two lineages that are joined next."""
    for _ in range(2):
        if shape == "coalescent":
            lineages.rotate(rng.randint(len(lineages)))
        yield lineages.popleft()


@validate_params(
    {
        "n_leaves": [Interval(Integral, 2, None, closed="left")],
        "shape": [StrOptions({"coalescent", "balanced", "caterpillar"})],
        "mean_length": [Interval(Real, 0, 1e300, closed="neither")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def random_tree(n_leaves, *, shape="coalescent", mean_length=0.1, random_state=None):
    """Make a random binary tree.

    Parameters
    ----------
    n_leaves : int
        Number of leaves, 2 at least.

    shape : {"coalescent", "balanced", "caterpillar"}, default="coalescent"
        Join two random lineages until three are left, which meet in the middle; or
        always the two that have waited longest; or the last joined and the next leaf.

    mean_length : float, default=0.1
        Mean of the exponential distribution of the branch lengths.

    random_state : int, RandomState instance or None, default=None
        Seed of the topology and the lengths.

    Returns
    -------
    tree : Bunch
        Unrooted tree, with the attributes

        parents : ndarray of shape (2 * n_leaves - 2,), dtype int64
            Parent of each node, -1 for the last. The leaves come first.
        branch_lengths : ndarray of shape (2 * n_leaves - 2,)
            Length of the edge above each node, NaN for the last.
        names : list of str
            "x0", "x1" and so on for the leaves, empty for the other nodes.

    See Also
    --------
    simulate_characters : Random characters on such a tree.

    Examples
    --------
    >>> from skextra.phylo import random_tree, to_newick
    >>> tree = random_tree(4, mean_length=0.2, random_state=0)
    >>> tree.parents
    array([ 4,  5,  5,  4,  5, -1])
    >>> to_newick(tree.parents, tree.branch_lengths.round(2), tree.names)
    '((x0:0.37,x3:0.2):0.1,x1:0.39,x2:0.38);'
    """
    rng = check_random_state(random_state)
    n_nodes = 2 * n_leaves - 2
    parents, lineages = np.full(n_nodes, -1, dtype=np.int64), deque(range(n_leaves))
    for new in range(n_leaves, n_nodes - 1):
        parents[list(_pair(lineages, shape, rng))] = new
        if shape == "caterpillar":
            lineages.appendleft(new)
        else:
            lineages.append(new)
    lineages = [node for node in lineages if node != n_nodes - 1]  # 2 leaves: one edge
    parents[lineages] = n_nodes - 1
    lengths = rng.exponential(mean_length, n_nodes)
    lengths[-1] = np.nan
    names = [f"x{i}" for i in range(n_leaves)] + [""] * (n_nodes - n_leaves)
    return Bunch(parents=parents, branch_lengths=lengths, names=names)


@validate_params(
    {
        "tree": "no_validation",
        "n_sites": [Interval(Integral, 1, None, closed="left")],
        "branch_lengths": ["array-like", None],
        "n_rate_categories": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, MAX_ALPHA, closed="right")],
        "as_frame": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def simulate_characters(
    tree,
    n_sites,
    *,
    branch_lengths=None,
    n_rate_categories=1,
    alpha=1.0,
    as_frame=False,
    random_state=None,
):
    """Draw two-state characters at the leaves of a tree.

    Parameters
    ----------
    tree : str, Bunch, array-like or tree object
        Anything that the parameter `tree` of :class:`PhyloBranchLengths` takes.

    n_sites : int
        Number of sites.

    branch_lengths : array-like of shape (n_edges,) or (n_nodes,), default=None
        Lengths, in the order of the lower nodes of the edges, or of all nodes, of which
        the root's is left out; by default those of the tree.

    n_rate_categories : int, default=1
        Number of equally frequent rates, the slice means of a gamma distribution.

    alpha : float, default=1.0
        Shape of the distribution of the rates, up to 1e6; of no use with one category.

    as_frame : bool, default=False
        Whether to return a pandas DataFrame, whose columns have the leaves' names.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    X : ndarray of shape (n_sites, n_leaves), dtype int8, or DataFrame
        States 0 and 1. The leaves are in the order of the tree, that of
        `parse_newick(tree).names` for text.

    Raises
    ------
    ValueError
        If the tree is not one, or has no lengths and `branch_lengths` is None.

    ImportError
        If `as_frame` is true and pandas is not installed.

    See Also
    --------
    PhyloBranchLengths.sample : Draws from a fitted model.

    Examples
    --------
    >>> from skextra.phylo import simulate_characters
    >>> X = simulate_characters("(a:.1,b:.1,c:2);", 1000, random_state=0)
    >>> float((X[:, 0] != X[:, 1]).mean())
    0.16
    """
    tree = as_tree(tree)
    lengths = given_lengths(tree, branch_lengths, "branch_lengths")
    rates = gamma_rates(alpha, n_rate_categories)
    rng = check_random_state(random_state)
    X = simulate(tree, lengths, n_sites, rates, rng)
    names = tree.names[: tree.n_leaves]
    names = names if any(names) else [f"x{i}" for i in range(tree.n_leaves)]
    return named(X, names, "simulate_characters") if as_frame else X
