"""Rows of features as states: known rows by their bytes, others by the nearest one."""

from collections.abc import Hashable

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.preprocessing import KBinsDiscretizer

from skextra.utils import row_blocks


class States:
    """The states that rows of features stand for.

    Rows that the discretizer gives the same code are one state; without one, equal
    rows are. A row of a code that is not among them is in the nearest state, or in
    none.
    """

    def __init__(self, rows, lookup, discretizer=None, nearest=True):
        self.rows = rows  # (n_states, n_features), the mean of a state's rows
        self.lookup = lookup  # the state of each code; None: rows are 0, 1, 2, ...
        self.discretizer = discretizer
        self.nearest = nearest
        # A power of 2 brings features near 1, so that squares stay in range.
        self.exponents = -np.frexp(np.abs(rows).max(axis=0))[1]
        spread = np.ldexp(rows, self.exponents).std(axis=0, dtype=np.float64)
        self.variances = np.where(spread > 0, spread, 1.0) ** 2

    @property
    def numbers(self):
        """Return the numbers by which states are known, or else from 0."""
        if self.nearest:
            return np.arange(len(self.rows))
        return self.rows[:, 0].astype(np.int64)

    def known(self, X):
        """Return the state of each row, -1 where its code is not known."""
        if self.lookup is None:
            is_state = np.isin(X[:, 0], self.rows[:, 0])
            return np.where(is_state, X[:, 0], -1).astype(np.int64)
        codes = coded(X, self.discretizer)
        return np.fromiter(
            (self.lookup.get(code, -1) for code in codes), np.int64, len(codes)
        )

    def find(self, X):
        """Return the state of each row; the nearest for rows of unknown code."""
        found = self.known(X)
        lost = np.flatnonzero(found < 0)
        if lost.size and not self.nearest:
            raise ValueError(
                f"Row {lost[0]} of X, {X[lost[0]].tolist()}, is none of the "
                f"{len(self.rows)} states: states_ lists them."
            )
        if lost.size:
            different, inverse = np.unique(X[lost], axis=0, return_inverse=True)
            blocks = row_blocks(len(different), 8 * len(self.rows))
            nearest = [self._nearest(different[block]) for block in blocks]
            found[lost] = np.concatenate(nearest)[inverse.ravel()]
        return found

    def _nearest(self, X):
        """Return the nearest state of each row, of several the first."""
        X, rows = (np.ldexp(each, self.exponents) for each in (X, self.rows))
        return cdist(X, rows, "seuclidean", V=self.variances).argmin(axis=1)


def coded(X, discretizer):
    """Return a hashable code for each row."""
    n_rows = len(X)
    if discretizer is not None and hasattr(discretizer, "predict"):
        X = discretizer.predict(X)
    elif discretizer is not None:
        X = discretizer.transform(X)
    X = X.toarray() if issparse(X) else np.asarray(X)
    if X.shape[:1] != (n_rows,) or X.size < n_rows:
        raise ValueError(
            f"discretizer must return something for each of {n_rows} rows; got shape "
            f"{X.shape} from {discretizer!r}."
        )
    X = X.reshape(n_rows, -1)
    if X.dtype.kind not in "biuf":  # NaN, which is not equal to itself, is one code
        codes = [tuple(None if x != x else x for x in row) for row in X.tolist()]
        if not all(isinstance(code, Hashable) for row in codes for code in row):
            raise ValueError(
                "discretizer must return numbers or strings; got others from "
                f"{discretizer!r}."
            )
        return codes
    dtype = np.float64 if X.dtype.kind == "f" else np.int64
    X = np.ascontiguousarray(X, dtype=dtype) + dtype(0)  # -0. is 0.
    return X.view(np.dtype((np.void, 8 * X.shape[1]))).ravel().tolist()


def numbered_states(n_states):
    """Return states that are known by their numbers alone."""
    return States(np.arange(n_states, dtype=float)[:, None], None, nearest=False)


def given_states(rows, nearest):
    """Return states that are the rows given; if equal rows are among them, None."""
    lookup = {code: s for s, code in enumerate(coded(rows, None))}
    return States(rows, lookup, nearest=nearest) if len(lookup) == len(rows) else None


def discretized(X, discretizer, max_states):
    """Return the states of logged rows, sorted, and the state of each row."""
    codes = None
    if isinstance(discretizer, str):  # "auto"
        discretizer = None
        codes = coded(X, None)
        if len(set(codes)) > max_states:
            discretizer = KBinsDiscretizer(
                5,
                encode="ordinal",
                strategy="quantile",
                quantile_method="averaged_inverted_cdf",
            ).fit(X)
            codes = coded(X, discretizer)
            n_cells = len(set(codes))
            if n_cells > max_states:
                raise ValueError(
                    f"The rows of X are in {n_cells} cells of five bins a feature, more "
                    f"than max_states={max_states}. Give a discretizer that makes fewer "
                    f"states, such as KMeans({max_states // 10 or 1}), or a larger "
                    "max_states."
                )
    else:
        discretizer = clone(discretizer).fit(X)
        codes = coded(X, discretizer)
    number = {}
    first = np.array([number.setdefault(code, len(number)) for code in codes])
    sizes = np.bincount(first)
    rows = np.column_stack(
        [np.bincount(first, weights=column) / sizes for column in X.T.astype(float)]
    )
    if discretizer is None:
        _, representatives = np.unique(first, return_index=True)
        rows = X[representatives] + 0.0
    rows = rows.astype(X.dtype, copy=False)
    order = np.lexsort(rows.T[::-1])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    lookup = {code: int(rank[i]) for code, i in number.items()}
    return States(rows[order], lookup, discretizer), rank[first]
