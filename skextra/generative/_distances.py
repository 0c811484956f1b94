"""How far generated rows are from real ones, and whether they copy them."""

import numpy as np
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import Bunch, check_array

COPY = 1e-6  # standard deviations


def energy_distance(X, Y):
    """Return the energy distance between the distributions of two sets of rows.

    ``sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|)``, over all pairs of rows.
    """
    between = 2 * mean_distance(X, Y) - mean_distance(X, X) - mean_distance(Y, Y)
    return np.sqrt(max(between, 0.0))


def mean_distance(X, Y):
    """Return the mean Euclidean distance over all pairs."""
    sums = pairwise_distances_chunked(
        X, Y, reduce_func=lambda D, start: D.sum(axis=1), working_memory=32
    )
    return np.concatenate(list(sums)).sum() / (len(X) * len(Y))


def memorization_report(X_synthetic, X_train, X_test=None):
    """Tell whether a generator repeats the rows that it was fitted to.

    All distances are Euclidean, between columns divided by their standard deviations
    in `X_train`.

    Parameters
    ----------
    X_synthetic : array-like of shape (n_synthetic, n_features)
        Generated rows.

    X_train : array-like of shape (n_train, n_features)
        Rows that the generator was fitted to; at least 2.

    X_test : array-like of shape (n_test, n_features), default=None
        Other rows of the same distribution, which the generator has not seen.

    Returns
    -------
    report : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        distances : ndarray of shape (n_synthetic,)
            Distance of each generated row to the nearest training row.
        ratios : ndarray of shape (n_synthetic,)
            The same divided by the distance to the second nearest training row,
            between 0 and 1: near 0 for rows close to one training row only, which is
            what copies are. 1 where both distances are 0.
        copies : float
            Share of generated rows within 1e-6 of a training row.
        median_ratio : float
            Median of the ratios. Of rows that the generator has not seen it is
            `test_median_ratio`; a generator that memorises has a lower one.
        test_median_ratio : float or None
            Median of the ratios for the rows of `X_test`.
        closer_to_train : float or None
            Share of generated rows that are nearer to the training than to the test
            rows, of as many rows each, a fixed draw from the longer set; ties count
            half. 0.5 for a generator that does not memorise, 1 for one that does.

    Raises
    ------
    ValueError
        If the sets differ in their columns, or hold values that are no finite numbers.

    References
    ----------
    .. [1] C. Meehan, K. Chaudhuri and S. Dasgupta, "A Non-Parametric Test to Detect
       Data-Copying in Generative Models", AISTATS 2020, :arxiv:`2004.05675`.

    Examples
    --------
    >>> import numpy as np
    >>> from skextra.generative import memorization_report
    >>> rng = np.random.default_rng(0)
    >>> X_train, X_test, X_new = rng.normal(size=(3, 500, 2))
    >>> memorization_report(X_train, X_train, X_test).closer_to_train
    1.0
    >>> report = memorization_report(X_new, X_train, X_test)
    >>> report.copies, round(report.closer_to_train, 1)
    (0.0, 0.5)
    """
    X_train = check_array(
        X_train, dtype=np.float64, ensure_min_samples=2, input_name="X_train"
    )
    center, scale = X_train.mean(axis=0), X_train.std(axis=0)
    scale[scale == 0] = 1.0
    X_train = (X_train - center) / scale
    X_synthetic = _checked(X_synthetic, center, scale, "X_synthetic")
    distances, ratios = _distance_ratios(X_train, X_synthetic)
    report = Bunch(
        distances=distances,
        ratios=ratios,
        copies=float(np.mean(distances <= COPY)),
        median_ratio=float(np.median(ratios)),
        test_median_ratio=None,
        closer_to_train=None,
    )
    if X_test is not None:
        X_test = _checked(X_test, center, scale, "X_test")
        _, test_ratios = _distance_ratios(X_train, X_test)
        report.test_median_ratio = float(np.median(test_ratios))
        n, rng = min(len(X_train), len(X_test)), np.random.default_rng(0)
        to_train, to_test = (
            _nearest(
                rng.permutation(rows)[:n] if len(rows) > n else rows, X_synthetic, 1
            )
            for rows in (X_train, X_test)
        )
        closer = (to_train < to_test).mean() + (to_train == to_test).mean() / 2
        report.closer_to_train = float(closer)
    return report


def _checked(X, center, scale, name):
    """Return rows with scaled columns, as many as there are scales."""
    X = check_array(X, dtype=np.float64, input_name=name)
    if X.shape[1] != len(scale):
        raise ValueError(
            f"{name} must have the {len(scale)} columns of X_train; got {X.shape[1]}."
        )
    return (X - center) / scale


def _nearest(rows, X, n_neighbors):
    """Return the distances of X to the nearest rows, which are exact for copies."""
    near = NearestNeighbors(n_neighbors=n_neighbors).fit(rows)
    index = near.kneighbors(X, return_distance=False)
    # Computed anew, since those of the search lose digits to a difference of squares.
    return np.sort(np.linalg.norm(rows[index] - X[:, None], axis=2), axis=1)


def _distance_ratios(rows, X):
    """Return distances to the nearest row, and over those to the second nearest."""
    first, second = _nearest(rows, X, 2).T
    ratios = np.divide(first, second, out=np.ones_like(first), where=second > 0)
    return first, ratios
