"""Normal equations of the members, summed over batches or blocks of rows."""

import math
from typing import NamedTuple

from sklearn.utils._array_api import get_namespace_and_device

from skextra.ensemble._features import features
from skextra.ensemble._members import Member
from skextra.ensemble._ridge import solve_path
from skextra.utils import row_blocks


class Sums(NamedTuple):
    """Weighted sums over the rows seen, features shifted by `mean`, y by `y_mean`.

    The shifts are the means of the first batch; they keep the digits that centring
    the sums afterwards would lose.
    """

    mean: object  # (D,)
    y_mean: object  # (t,)
    gram: object  # (D, D)
    moment: object  # (D, t)
    feature_sum: object  # (D,)
    y_sum: object  # (t,)
    weight: float
    n_samples: int


def add_batch(sums, X, y, sample_weight, weights, phases, feature_map, fit_intercept):
    """`sums` (None at first) with one more batch of scaled rows."""
    xp, _, _ = get_namespace_and_device(y)
    F = xp.astype(features(X, weights, phases, feature_map), y.dtype, copy=False)
    F /= math.sqrt(F.shape[1])
    root = xp.sqrt(sample_weight)[:, None]
    if sums is None:
        shift = sample_weight / xp.sum(sample_weight) * float(fit_intercept)
        mean, y_mean, previous = shift @ F, shift @ y, (0.0,) * 5 + (0,)
    else:
        mean, y_mean, *previous = sums
    F -= mean
    F *= root
    y = (y - y_mean) * root
    batch = (
        F.T @ F,
        F.T @ y,
        root[:, 0] @ F,
        root[:, 0] @ y,
        float(xp.sum(sample_weight)),
        int(xp.count_nonzero(sample_weight)),
    )
    return Sums(mean, y_mean, *(a + b for a, b in zip(previous, batch, strict=True)))


def fit_member_by_blocks(rows, weights, phases, alpha, feature_map, rcond):
    """Fit one member in the primal form without storing its features."""
    targets, sums = rows.y / rows.root[:, None], None
    for block in row_blocks(rows.X.shape[0], 8 * weights.shape[1]):
        sums = add_batch(
            sums,
            rows.X[block, :],
            targets[block, :],
            rows.root[block] ** 2,
            weights,
            phases,
            feature_map,
            rows.unit is not None,
        )
    member = solve_sums(sums, alpha, rows.unit is not None, rcond)
    return member._replace(intercept=member.intercept + rows.y_offset)


def solve_sums(sums, alpha, fit_intercept, rcond):
    """The member of the rows seen so far, for one alpha."""
    xp, _, _ = get_namespace_and_device(sums.gram)
    mean, y_mean = sums.feature_sum / sums.weight, sums.y_sum / sums.weight
    if not fit_intercept:
        mean, y_mean = xp.zeros_like(mean), xp.zeros_like(y_mean)
    if rcond == "auto":
        rcond = sums.n_samples * float(xp.finfo(sums.gram.dtype).eps)
    coef, _, rank = solve_path(
        lambda: sums.gram - sums.weight * mean[:, None] * mean[None, :],
        sums.moment - sums.weight * mean[:, None] * y_mean[None, :],
        [alpha],
        rcond=rcond,
    )
    return Member(coef, sums.y_mean + y_mean - (sums.mean + mean) @ coef, None, rank)
