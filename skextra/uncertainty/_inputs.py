"""Checks of what the functions take."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_array

from skextra.uncertainty import _finite
from skextra.uncertainty._losses import BregmanLoss, PinballLoss, WeightedSquaredError
from skextra.utils import row_blocks

FINITE = {
    "log_loss": _finite.LogLoss,
    "brier": _finite.Brier,
    "zero_one": _finite.ZeroOne,
}
NUMERIC = {
    "squared_error": _finite.SquaredError,
    "absolute_error": lambda outcomes: _doubled(_finite.pinball(0.5, outcomes)),
    "crps": _finite.Crps,
}
TOLERANCE = 1e-6  # of the sum of probabilities
TOLERANCE_32 = 1e-4  # of float32


def real_array(values, name, ndim):
    """Return finite real numbers as float64, of one of the dimensions."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost")
    try:
        values = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array; got rows of several lengths"
        ) from error
    if values.ndim not in np.atleast_1d(ndim):
        expected = " or ".join(f"{d}" for d in np.atleast_1d(ndim))
        raise ValueError(
            f"{name} must have {expected} dimensions; got shape {values.shape}"
        )
    if values.size == 0:
        raise ValueError(f"{name} must not be empty; got shape {values.shape}")
    is_text = values.dtype == object and any(isinstance(v, str) for v in values.flat)
    if values.dtype.kind not in "biufO" or is_text:
        raise ValueError(f"{name} must hold real numbers; got dtype {values.dtype}")
    return check_array(
        values, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name
    )


def probabilities(p, name="p", ndim=3):
    """Return beliefs (..., n_classes) as float64 rows of sum 1."""
    if not isinstance(p, np.ma.MaskedArray):
        p = np.asarray(p) if hasattr(p, "__array__") else p
    narrow = getattr(p, "dtype", None) in (np.float32, np.float16)
    p = np.ascontiguousarray(real_array(p, name, ndim))
    off = 0.0
    for rows in row_blocks(len(p), p[0].nbytes):
        block = p[rows]
        if block.min() < 0:
            raise ValueError(f"{name} must not be negative; got {block.min()}")
        sums = block @ np.ones(block.shape[-1])
        worst = max(sums.min(), sums.max(), key=lambda total: abs(total - 1))
        if abs(worst - 1) > (TOLERANCE_32 if narrow else TOLERANCE):
            raise ValueError(
                f"{name} must sum to 1 over its last axis; got the sum {worst}"
            )
        off = max(off, abs(worst - 1))
    return p / p.sum(axis=-1, keepdims=True) if off > 1e-14 else p


def shares(weights, n, name, of):
    """Return weights of n items as float64 of sum 1."""
    if weights is None:
        return np.full(n, 1 / n)
    weights = real_array(weights, name, 1)
    if weights.shape != (n,):
        raise ValueError(
            f"{name} must have one entry for each of the {n} {of}; got {len(weights)}"
        )
    if (weights < 0).any() or not weights.any():
        raise ValueError(
            f"{name} must not be negative, and not all 0; got {weights.min()}"
        )
    weights = weights / weights.max()
    return weights / weights.sum()


def members(weights, *beliefs):
    """Return the weights, of sum 1, and beliefs of the members that count."""
    weights = shares(weights, beliefs[0].shape[1], "weights", "members")
    if weights.all():
        return weights, *beliefs
    some = weights > 0
    return weights[some], *(np.ascontiguousarray(p[:, some]) for p in beliefs)


def require_several(weights, name, of):
    """Raise if less than two items count."""
    if len(weights) < 2 or weights.max() > 1 - 1e-6:
        raise ValueError(
            f"return_se and bias_correction need at least 2 {of} that count; got "
            f"{len(weights)}, the largest of {name} being {weights.max():.7g} of their sum"
        )


def pair(p_pool, p_target):
    """Return beliefs at points and targets of the same members."""
    p_pool = probabilities(p_pool, "p_pool")
    p_target = probabilities(p_target, "p_target")
    same_members(p_pool, p_target, "p_pool", "p_target")
    return p_pool, p_target


def same_members(pool, target, name_pool, name_target):
    """Raise if the numbers of members differ."""
    if pool.shape[1] != target.shape[1]:
        raise ValueError(
            f"{name_pool} and {name_target} must have the same members; got "
            f"{pool.shape[1]} and {target.shape[1]}"
        )


def count(value, name, largest=None, of=""):
    """Return a whole number from 1 on."""
    high = np.inf if largest is None else largest
    is_count = isinstance(value, Integral) and not isinstance(value, bool)
    if not (is_count and 1 <= value <= high):
        limit = "" if largest is None else f" to {largest}{of}"
        raise ValueError(f"{name} must be an integer from 1{limit}; got {value!r}")
    return int(value)


def finite_loss(loss, n_classes, cost_matrix=None, outcomes=None):
    """Return a loss of beliefs over n_classes outcomes."""
    numeric = isinstance(loss, BregmanLoss | PinballLoss) or (
        isinstance(loss, str) and loss in NUMERIC
    )
    is_cost = isinstance(loss, str) and loss == "cost"
    _only_with(cost_matrix, "cost_matrix", 'loss="cost"', is_cost)
    _only_with(outcomes, "outcomes", "a loss of numbers", numeric)
    if is_cost:
        return _finite.Cost(costs(cost_matrix, n_classes))
    if numeric:
        outcomes = real_array(outcomes, "outcomes", 1)
        if len(outcomes) != n_classes:
            raise ValueError(
                f"outcomes must have one number for each of the {n_classes} columns of "
                f"the probabilities; got {len(outcomes)}"
            )
        if isinstance(loss, str):
            return NUMERIC[loss](outcomes)
        if isinstance(loss, PinballLoss):
            return _finite.pinball(loss.tau, outcomes)
        squared = isinstance(loss, WeightedSquaredError)
        kind = _finite.WeightedSquaredError if squared else _finite.Bregman
        return kind(loss, outcomes)
    if isinstance(loss, str) and loss in FINITE:
        return FINITE[loss]()
    if callable(loss):
        return _finite.Callable(loss)
    names = ", ".join(repr(name) for name in [*FINITE, "cost", *NUMERIC])
    raise ValueError(
        f"loss must be one of {names}, a PinballLoss, WeightedSquaredError or "
        f"BregmanLoss, or callable; got {loss!r}"
    )


def costs(matrix, n_classes):
    """Return a matrix of costs, one column for each class."""
    matrix = real_array(matrix, "cost_matrix", 2)
    if matrix.shape[1] != n_classes:
        raise ValueError(
            f"cost_matrix must have shape (n_actions, {n_classes}), a column for each "
            f"class; got {matrix.shape}"
        )
    return matrix


def _only_with(value, name, whom, wanted):
    if wanted and value is None:
        raise ValueError(f"{whom} needs {name}")
    if not wanted and value is not None:
        raise ValueError(f"{name} is for {whom} only")


def _doubled(cost):
    """Return the loss |z - a|, twice the pinball loss of 1/2."""
    return _finite.Cost(2 * cost.matrix, cost.actions)


def correction(bias_correction):
    """Return whether to correct."""
    if bias_correction is None:
        return False
    if isinstance(bias_correction, str) and bias_correction == "jackknife":
        return True
    raise ValueError(
        f'bias_correction must be None or "jackknife"; got {bias_correction!r}'
    )


def not_negative(values, name, ndim):
    """Return finite numbers that are not negative."""
    values = real_array(values, name, ndim)
    if (values < 0).any():
        raise ValueError(f"{name} must not be negative; got {values.min()}")
    return values


def number_or_array(value, name, shape):
    """Return finite numbers >= 0, one or many, broadcast to a shape."""
    value = np.asarray(value, dtype=float) if isinstance(value, Real) else value
    value = not_negative(np.atleast_1d(value), name, range(1, len(shape) + 1))
    try:
        return np.broadcast_to(value, shape)
    except ValueError as error:
        raise ValueError(
            f"{name} must be a number or broadcast to shape {shape}; got {value.shape}"
        ) from error
