"""Label matrices: checked, numbered through, and with equal rows merged."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_array, check_random_state


@dataclass(frozen=True)
class Runs:
    """The clusterings of an ensemble, over its distinct rows of labels.

    ``codes`` numbers the clusters of all clusterings, see :mod:`._numba`; row ``i`` of
    the label matrix is column ``inverse[i]`` of it, and a column stands for ``counts``
    rows. The clusters of clustering t have the numbers ``starts[t]`` to
    ``starts[t + 1]``.
    """

    codes: np.ndarray  # (n_clusterings, n_distinct), int32
    starts: np.ndarray  # (n_clusterings + 1,)
    counts: np.ndarray  # (n_distinct,), float64
    inverse: np.ndarray  # (n_samples,)

    @property
    def n_clusters(self):
        """Number of clusters in all clusterings together."""
        return int(self.starts[-1])


def as_labels(labels):
    """Return an array as integer labels, -1 where one is missing.

    Raises
    ------
    ValueError, TypeError
        If a label is neither an integer nor missing.
    """
    accepted = "labels must be integers, negative or NaN where one is missing"
    if labels.dtype.kind == "O":
        try:
            labels = labels.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{accepted}: {error}") from error
    if labels.dtype.kind not in "biuf":
        raise ValueError(f"{accepted}; got an array of dtype {labels.dtype}.")
    if labels.dtype.kind == "f":
        labels = labels.astype(np.float64, copy=False)
        wrong = (labels != np.rint(labels)) & ~np.isnan(labels) | (labels >= 2.0**53)
        limit = "2**53 for floating-point numbers, which are not exact beyond"
    else:
        wrong, limit = labels > np.iinfo(np.int64).max, "2**63"
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"{accepted}, and below {limit}; got {labels[row, column]} in row {row}, "
            f"column {column}."
        )
    return np.where(labels >= 0, labels, -1).astype(np.int64)


def check_labels(labels):
    """Validate the label matrix given to a function; see :func:`as_labels`."""
    labels = check_array(
        labels,
        dtype=None,
        ensure_all_finite="allow-nan",
        ensure_min_samples=2,
        ensure_min_features=2,
        input_name="labels",
    )
    labels = as_labels(labels)
    require_labels(labels)
    return labels


def require_labels(labels, name="labels"):
    """Raise a ValueError if a sample or a clustering has no label at all."""
    present = labels >= 0
    for axis, what in [(1, "rows"), (0, "columns")]:
        empty = np.flatnonzero(~present.any(axis=axis))
        if empty.size:
            raise ValueError(
                f"Every row (a sample) and every column (a clustering) of {name} needs "
                f"at least one label; there is none in {what} {listed(empty)}."
            )


def listed(numbers, most=10):
    """Write the numbers out, at most so many of them."""
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return ", ".join(map(str, numbers[:most])) + more


def label_sets(labels):
    """List each clustering's distinct labels."""
    found = [np.unique(column) for column in labels.T]
    return [labels[labels >= 0] for labels in found]


def encode(labels, sets):
    """Number the clusters of all clusterings through; an unknown label is missing.

    Returns codes of shape (n_clusterings, n_samples).
    """
    codes = np.empty(labels.shape[::-1], np.int32)
    start = 0
    for row, column, known in zip(codes, labels.T, sets, strict=True):
        place = np.searchsorted(known, column)
        place[place == known.size] = 0
        row[:] = np.where(known[place] == column, start + place, -1)
        start += known.size
    return codes


def merged(codes, sets):
    """Return the :class:`Runs` of codes."""
    starts = np.cumsum([0, *(known.size for known in sets)], dtype=np.int32)
    first, inverse, counts = distinct_columns(codes)
    codes = np.ascontiguousarray(codes[:, first])
    return Runs(codes, starts, counts.astype(float), inverse)


def runs_of(labels):
    """Return the :class:`Runs` of a label matrix."""
    sets = label_sets(labels)
    return merged(encode(labels, sets), sets)


def distinct_columns(codes):
    """Find the distinct columns of `codes` through a hash, which is then verified.

    Sorting whole columns takes many times longer.
    """
    factors = check_random_state(0).randint(2**63, size=len(codes), dtype=np.uint64)
    hashes = sum(
        factor * row.astype(np.uint64)
        for factor, row in zip(factors, codes, strict=True)
    )
    found = np.unique(
        hashes, return_index=True, return_inverse=True, return_counts=True
    )
    _, first, inverse, counts = found
    if any((row[first][inverse] != row).any() for row in codes):  # two rows, one hash
        _, first, inverse, counts = np.unique(
            codes, axis=1, return_index=True, return_inverse=True, return_counts=True
        )
    return first, inverse, counts
