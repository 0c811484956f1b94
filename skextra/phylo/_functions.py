"""Distances between leaves, and the tree that joins neighbours."""

from numbers import Real

import numpy as np
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, validate_params

from skextra.phylo._distances import MAX_DISTANCE, distances, joined
from skextra.phylo._model import weighted_patterns
from skextra.phylo._newick import to_newick


@validate_params(
    {
        "X": "no_validation",
        "binarize": [Interval(Real, None, None, closed="neither"), None],
        "sample_weight": ["array-like", None],
        "max_distance": [Interval(Real, 0, None, closed="neither")],
    },
    prefer_skip_nested_validation=True,
)
def cfn_distance(X, *, binarize=0.0, sample_weight=None, max_distance=MAX_DISTANCE):
    """Compute the distances between leaves in expected changes per site.

    The distance of two leaves that differ at a share p of the sites is
    -ln(1 - 2 p) / 2, its maximum-likelihood estimate under the symmetric model of two
    states (CFN). Sites at which one of the two is missing do not count.

    Parameters
    ----------
    X : array-like of shape (n_sites, n_leaves)
        Characters: a row is a site, a column is a leaf. NaN where missing.

    binarize : float or None, default=0.0
        A value above it is state 1, any other state 0. With None all values must be 0
        or 1.

    sample_weight : array-like of shape (n_sites,), default=None
        How often each site counts; by default once.

    max_distance : float, default=2.0
        Larger distances become this one, also where p is 1/2 or more.

    Returns
    -------
    distances : ndarray of shape (n_leaves, n_leaves)
        Symmetric, with zeros on the diagonal. NaN for leaves that share no site.

    Raises
    ------
    ValueError
        If values or weights are not as documented.

    See Also
    --------
    neighbor_joining : Tree from distances.

    Examples
    --------
    >>> from skextra.phylo import cfn_distance
    >>> X = [[0, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 1, 1]]
    >>> cfn_distance(X).round(3)
    array([[0.   , 0.255, 0.255],
           [0.255, 0.   , 0.805],
           [0.255, 0.805, 0.   ]])
    """
    X = check_array(X, dtype="numeric", ensure_all_finite="allow-nan", input_name="X")
    patterns = weighted_patterns(X, sample_weight, binarize)
    return distances(patterns.states, patterns.weights, max_distance)


@validate_params(
    {"distances": ["array-like"], "names": ["array-like", None]},
    prefer_skip_nested_validation=True,
)
def neighbor_joining(distances, names=None):
    """Join the leaves of a tree by the distances between them.

    Where the distances are sums of branch lengths along paths, this is the tree
    with these lengths. Of pairs that are equally near the first is joined.

    Parameters
    ----------
    distances : array-like of shape (n_leaves, n_leaves)
        Symmetric distances with zeros on the diagonal.

    names : list of str, of length n_leaves, default=None
        Names of the leaves. By default the columns of a DataFrame, or "x0", "x1" and
        so on.

    Returns
    -------
    tree : str
        Newick text of the unrooted tree, whose lengths are set to 0 where they come out
        negative.

    Raises
    ------
    ValueError
        If `distances` are not a square symmetric array of finite values >= 0, with
        zeros on the diagonal, of at least 2 leaves; or if `names` do not fit.

    See Also
    --------
    cfn_distance : Distances between leaves.

    References
    ----------
    .. [1] N. Saitou and M. Nei, "The neighbor-joining method: a new method for
       reconstructing phylogenetic trees", Molecular Biology and Evolution 4, 1987.

    Examples
    --------
    >>> from skextra.phylo import neighbor_joining
    >>> distances = [[0, 3, 6, 7], [3, 0, 7, 8], [6, 7, 0, 5], [7, 8, 5, 0]]
    >>> neighbor_joining(distances, ["a", "b", "c", "d"])
    '((a:1.0,b:2.0):3.0,c:2.0,d:3.0);'
    """
    if names is None:
        names = getattr(distances, "columns", None)
    d = check_array(
        distances, dtype=np.float64, ensure_min_samples=2, input_name="distances"
    )
    if d.shape[0] != d.shape[1]:
        raise ValueError(f"distances must be square, got an array of shape {d.shape}.")
    checks = {
        "must not be negative": d < 0,
        "must be less than 1e300": d >= 1e300,
        "must be 0 on the diagonal": np.diag(np.diag(d) != 0),
        "must be symmetric": ~np.isclose(d, d.T, rtol=1e-8, atol=0),
    }
    for rule, wrong in checks.items():
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ValueError(f"distances {rule}, got {d[i, j]} at ({i}, {j}).")
    if names is not None and len(names) != len(d):
        raise ValueError(
            f"names must hold one for each of {len(d)} leaves, got {len(names)}."
        )
    parents, lengths = joined((d + d.T) / 2)
    return to_newick(parents, lengths, names)
