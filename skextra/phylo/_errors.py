"""Standard errors of the lengths."""

import numpy as np
from scipy.linalg import eigh

from skextra.phylo._rates import gamma_rates

LOG_STEP = 1e-3  # of the shape of the rates, in differences of the gradient
NOTHING = 1e-12  # of information in a site: that of a length of 7
SINGULAR = 1e-8  # of the eigenvalues of an information scaled to a diagonal of 1


def covariance(problem, lengths, free, kind, alpha=None):
    """Return the covariance of the estimated lengths, NaN where there is none.

    Parameters
    ----------
    problem : Likelihood
        Log-likelihood at its maximum.

    lengths : ndarray of shape (n_edges,)
        Lengths of greatest likelihood.

    free : ndarray of shape (n_edges,), dtype bool
        Edges that are not at a bound; the others are taken for known.

    kind : {"observed", "opg"}
        Observed information, or the outer product of the gradients of the sites.

    alpha : float, default=None
        Shape of the rates where it was estimated too, which makes lengths less sure.

    Returns
    -------
    covariance : ndarray of shape (n_edges, n_edges)
        Rows and columns of edges at a bound, and of those whose length the data do not
        tell, are NaN.

    n_lost : int
        Number of the latter edges.
    """
    if kind == "opg":
        scores = problem.scores(lengths)
        if alpha is not None:
            scores = np.vstack([scores, _alpha_scores(problem, lengths, alpha)])
        information = (scores * problem.weights[: problem.n_sites]) @ scores.T
    else:
        information = problem.information(lengths)
        if alpha is not None:
            information = _with_alpha(problem, lengths, alpha, information)
    n = len(lengths)
    rows = np.append(np.flatnonzero(free), np.arange(n, len(information)))
    found = np.full_like(information, np.nan)
    least = NOTHING * problem.total
    found[np.ix_(rows, rows)] = inverse(information[np.ix_(rows, rows)], least)
    found = found[:n, :n]
    return found, int((free & np.isnan(np.diag(found))).sum())


def inverse(information, least):
    """Return the inverse of a positive semi-definite matrix.

    Rows and columns of less information than ``least``, or that a direction of no
    information touches, are NaN; all are, if there is a direction of negative
    information: this is no maximum.
    """
    found = np.full_like(information, np.nan)
    known = np.diag(information) > least
    scale = np.sqrt(np.diag(information)[known])
    values, vectors = eigh(information[np.ix_(known, known)] / np.outer(scale, scale))
    if (values < -SINGULAR).any():
        return found
    null = values < SINGULAR
    touched = (vectors[:, null] ** 2).sum(axis=1) > 1e-6
    vectors = vectors[:, ~null] / scale[:, None]
    values = (vectors / values[~null]) @ vectors.T
    values[touched] = values[:, touched] = np.nan
    found[np.ix_(known, known)] = values
    return found


def _around(problem, alpha, function):
    """Return values of a function at shapes a step below, at, and a step above."""
    n_categories = len(problem.rates)
    values = []
    for shift in (-LOG_STEP, LOG_STEP, 0.0):  # the last leaves the rates as they were
        problem.rates = gamma_rates(alpha * np.exp(shift), n_categories)
        values.append(function())
    return values[0], values[2], values[1]


def _alpha_scores(problem, lengths, alpha):
    """Return the derivative of the log-likelihood of each pattern in ln alpha."""
    low, _, high = _around(problem, alpha, lambda: problem.site_values(lengths))
    return (high - low) / (2 * LOG_STEP)


def _with_alpha(problem, lengths, alpha, information):
    """Border the information with the second derivatives that have ln alpha."""
    low, middle, high = _around(problem, alpha, lambda: problem.gradient(lengths))
    n = len(lengths)
    bordered = np.empty((n + 1, n + 1))
    bordered[:n, :n] = information
    bordered[n, :n] = bordered[:n, n] = (low[1] - high[1]) / (2 * LOG_STEP)
    bordered[n, n] = -(high[0] - 2 * middle[0] + low[0]) / LOG_STEP**2
    return bordered
