"""Spearman's correlation with soft ranks, its gradient, and hard weighted ranks."""

import numpy as np
from sklearn.linear_model import Ridge

from skextra.ranking._fitting import standardised
from skextra.ranking._rows import rank, rank_vjp


def weighted_ranks(y, weight):
    """Return ranks, less a half, as if each row were repeated ``weight`` times.

    Ties share their rank.
    """
    values, place = np.unique(y, return_inverse=True)
    mass = np.bincount(place, weights=weight, minlength=len(values))
    return (np.cumsum(mass) - mass / 2)[place]


def rank_correlation(y, other, share):
    """Return Spearman's correlation, or 0 if either is constant."""
    y, _ = standardised(weighted_ranks(y, share), share)
    other, _ = standardised(weighted_ranks(other, share), share)
    return float(share @ (y * other))


def soft_correlation(scores, ranks, share, alpha):
    """Return the correlation of the soft ranks of scores with ranks, and its gradient.

    ``ranks`` have mean 0 and standard deviation 1.
    """
    soft, saved = rank(scores[None], np.array([alpha]), (share * len(share))[None])
    soft, deviation = standardised(soft[0], share)
    correlation = share @ (soft * ranks)
    slopes = share * (ranks - correlation * soft) / deviation
    gradient, _ = rank_vjp(slopes[None], saved)
    return correlation, gradient[0]


def rank_objective(columns, ranks, share, alpha, penalty, v):
    """Return 1 - correlation + penalty, and the gradient, of scores ``columns @ v``.

    The scores and ``v`` are divided by the standard deviation of the scores, so that
    their scale has no say. The squares of ``v`` are weighted by half the ``penalty`` of
    their column. All is over 1 plus the largest penalty, beside which 1 may be nothing.
    """
    scores, deviation = standardised(columns @ v, share)
    correlation, gradient = soft_correlation(scores, ranks, share, alpha)
    shrink = penalty * v / deviation**2
    price = shrink @ v / 2
    # A score also moves the deviation by which all are divided; ranks feel no shift.
    slopes = share * scores * (gradient @ scores - 2 * price) - gradient
    gradient = columns.T @ slopes / deviation + shrink
    total = 1 + penalty.max()
    return (1 - correlation + price) / total, gradient / total


def rank_start(columns, ranks, weight, ridge):
    """Return coefficients of norm 1, and a factor for the columns.

    With it the scores have deviation 1. The coefficients are those of ridge regression
    on ranks, or all alike where that finds nothing. The ridge is no less than keeps the
    equations solvable.
    """
    share = weight / weight.sum()
    model = Ridge(alpha=max(ridge, 1e-6) * weight.sum())
    v = model.fit(columns, ranks, sample_weight=weight).coef_
    scores, _ = standardised(columns @ v, share)
    if share @ (scores * ranks) < 1e-12:
        v = np.ones_like(v)
    v /= np.abs(v).max()
    v /= np.linalg.norm(v)
    return v, 1 / standardised(columns @ v, share)[1]


def line(scores, y, share):
    """Return slope and intercept of an increasing line from scores to y.

    They are those of least squares, unless heavy tails make that line fall: then the
    slope is Spearman's correlation times the ratio of the standard deviations.
    """
    u, u_deviation = standardised(scores, share)
    z, y_deviation = standardised(y, share)
    slope = share @ (u * z)
    if slope <= 0:
        slope = max(0.0, rank_correlation(scores, y, share))
    slope *= y_deviation / u_deviation
    return slope, share @ y - slope * (share @ scores)
