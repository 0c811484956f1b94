"""Centre and scale of the inputs: the paper's x~ = [s (x - mu), 1]."""

import math

import numpy as np
from sklearn.utils._array_api import get_namespace_and_device, move_to


def centre_and_scale(X, sample_weight, center):
    """mu, or zeros, and the scale that makes the mean squared norm of a row 1.

    Where all columns are constant, up to the rounding of their mean, the scale is 1.
    """
    xp, _, _ = get_namespace_and_device(X)
    share = sample_weight / xp.sum(sample_weight)
    epsilon = float(xp.finfo(X.dtype).eps)
    X = xp.astype(X, share.dtype, copy=False)
    mean = share @ X
    X = X - mean
    spread = float(xp.max(xp.abs(X)))
    if spread <= X.shape[0] * epsilon * float(xp.max(xp.abs(mean))):
        scale = 1.0
    else:  # divided by the spread first: squares must neither over- nor underflow
        variance = float(xp.mean(share @ (X / spread) ** 2))
        scale = 1 / spread / math.sqrt(X.shape[1] * variance)
    return (mean if center else xp.zeros_like(mean)), scale


def scaled_inputs(X, offset, scale, constant, dtype):
    """x~ in the precision `dtype`; without the last column if `constant` is None."""
    xp, _, device = get_namespace_and_device(X)
    X = xp.astype((X - offset) * scale, getattr(xp, dtype), copy=False)
    if constant is None:
        return X
    column = xp.full((X.shape[0], 1), constant, dtype=X.dtype, device=device)
    return xp.concat([X, column], axis=1)


def as_matrix(y):
    """Targets of shape (n, t)."""
    return y[:, None] if y.ndim == 1 else y


def as_numpy(array):
    """Array of any namespace, or array-like, as NumPy has it."""
    return np.asarray(move_to(array, xp=np, device="cpu"))
