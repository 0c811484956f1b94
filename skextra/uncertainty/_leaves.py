"""What the leaves of trees say about rows, side by side."""

import numpy as np
from joblib import effective_n_jobs
from numba import njit
from sklearn.utils import gen_even_slices

from skextra.utils import in_threads


def gather(trees, tables, X, n_jobs=None):
    """Return what each tree says in the leaf of each row.

    Parameters
    ----------
    trees : list of sklearn.tree._tree.Tree
        The arrays of fitted trees, their attribute ``tree_``.
    tables : list of ndarray of shape (n_nodes, n_entries)
        What each tree says in each of its nodes.
    X : {ndarray, csr matrix} of float32 of shape (n_samples, n_features)
        The rows.
    n_jobs : int, default=None
        As in :class:`joblib.Parallel`.

    Returns
    -------
    entries : ndarray of shape (n_samples, n_trees, n_entries)
    """
    out = np.empty((X.shape[0], len(trees), tables[0].shape[1]))
    # No smaller blocks: a tree that stays in the cache for all its rows saves more than
    # rows of the output that stay there for all trees.
    blocks = gen_even_slices(len(out), min(len(out), effective_n_jobs(n_jobs)))
    tasks = [(trees, tables, X[rows], out[rows]) for rows in blocks]
    in_threads(_gather, tasks, n_jobs)
    return out


def _gather(trees, tables, X, out):
    """Write what each tree says to its column of a block."""
    for k, (tree, table) in enumerate(zip(trees, tables, strict=True)):
        _put(table, tree.apply(X), out[:, k])


@njit(cache=True, nogil=True)
def _put(table, at, out):
    """Write the rows of a table at the given places to out."""
    for i in range(len(at)):
        for j in range(table.shape[1]):
            out[i, j] = table[at[i], j]
