"""What the tests share."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from skextra.ranking import (
    lapsum,
    lapsum_inverse,
    soft_permutation,
    soft_permutation_loss,
    soft_quantile,
    soft_rank,
    soft_rank_vjp,
    soft_sort,
    soft_sort_vjp,
    soft_topk,
    soft_topk_vjp,
)

# Each function of NumPy arrays as one of x and its settings.
CALLS = {
    "topk": lambda x, **kw: soft_topk(x, 1, **kw),
    "rank": soft_rank,
    "sort": soft_sort,
    "quantile": lambda x, **kw: soft_quantile(x, 0.4, **kw),
    "permutation": soft_permutation,
    "loss": lambda x, **kw: soft_permutation_loss(
        x, np.zeros(np.shape(x), int) + np.arange(np.shape(x)[-1]), **kw
    ),
    "topk_vjp": lambda x, **kw: soft_topk_vjp(np.zeros(np.shape(x)), x, 1, **kw)[0],
    "rank_vjp": lambda x, **kw: soft_rank_vjp(np.zeros(np.shape(x)), x, **kw)[0],
    "sort_vjp": lambda x, **kw: soft_sort_vjp(np.zeros(np.shape(x)), x, **kw)[0],
    "lapsum": lambda x, **kw: lapsum(0.1, x, **kw),
    "inverse": lambda x, **kw: lapsum_inverse(0.7, x, **kw),
}
BY_CALL = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def everything(x, k, alpha, target, g=None, axis=-1):
    """Return what all functions make of an array; gradients too, if g is given."""
    along = {"alpha": alpha, "axis": axis}
    results = []
    for flag in (False, True):
        top, down = {"largest": flag, **along}, {"descending": flag, **along}
        results += [
            *soft_topk(x, k, return_threshold=True, **top),
            soft_topk(x, k, log=True, **top),
            soft_rank(x, **down),
            soft_sort(x, **down),
        ]
        if g is not None:
            results += [
                *soft_topk_vjp(g, x, k, **top),
                *soft_topk_vjp(g, x, k, log=True, **top),
                *soft_rank_vjp(g, x, **down),
                *soft_sort_vjp(g, x, **down),
            ]
    last = alpha if axis == -1 else 0.3
    return [
        *results,
        soft_topk(x, 1, alpha="scale", axis=0, check_finite=False),
        soft_topk(x, 2, alpha=0.7, axis=0, check_finite=False),
        soft_sort(x, alpha="scale", axis=0, descending=True),
        soft_quantile(x, 0.3, **along),
        soft_quantile(x, [0.3, 0.7], alpha=0.5, axis=0),
        soft_permutation(x, **along),
        soft_permutation_loss(x, target, **along),
        soft_permutation_loss(x, target, reduction="none", **along),
        soft_permutation_loss(x, target, axis=axis, reduction="sum"),
        lapsum(0.3, x, alpha=last),
        lapsum([0.3, -1.0], x, alpha=last),
        lapsum_inverse(1.3, x, alpha=last),
        lapsum_inverse([2.9, 0.1], x, alpha=last),
    ]


def examples(n):
    """Settings for `n` examples, the same each time, that may take long."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much]
    return settings(
        max_examples=n, deadline=None, derandomize=True, suppress_health_check=slow
    )


def noisy(n=80, d=4, seed=0):
    """Columns of growing units, and a sum of them with noise of heavy tails."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1)
    return X, X @ np.arange(d, 0, -1) + 5 * rng.standard_t(2, size=n)
