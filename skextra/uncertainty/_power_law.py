"""Power laws with a limit, fitted to curves."""

import numpy as np

EXPONENTS = 0.05, 2.0
N_EXPONENTS, N_ROUNDS = 41, 5


def fit_power_laws(sizes, curves, lower):
    """Fit ``c + a n^-b`` with ``c >= lower`` to curves, by least squares.

    For a given b the best a and c are linear least squares; b is found on grids, each
    between the neighbours of the best point of the one before.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,) or (n_curves, n_sizes)
        The n, more than one of each curve.
    curves : ndarray of shape (n_curves, n_sizes)
    lower : float
        Bound of the limits, may be minus infinity.

    Returns
    -------
    coef : ndarray of shape (n_curves, 3)
        The a, b and c.
    """
    largest = float(sizes.max())
    u = np.broadcast_to(sizes / largest, curves.shape)[:, None]
    low, high = np.log(np.outer(EXPONENTS, np.ones(len(curves))))
    for _ in range(N_ROUNDS):
        b = np.linspace(low, high, N_EXPONENTS, axis=1)
        a, c, errors = _linear(u, curves, np.exp(b), lower)
        best = errors.argmin(axis=1)[:, None]
        low, high = (
            np.take_along_axis(b, np.clip(best + step, 0, N_EXPONENTS - 1), axis=1)[
                :, 0
            ]
            for step in (-1, 1)
        )
    a, b, c = (np.take_along_axis(x, best, axis=1)[:, 0] for x in (a, np.exp(b), c))
    return np.column_stack([a * largest**b, b, c])


def _linear(u, curves, b, lower):
    """Return the best a and c for each b (n_curves, n_b), and the squared errors."""
    x = u ** -b[..., None]
    y = curves[:, None, :]
    x_rest, y_rest = (v - v.mean(axis=-1, keepdims=True) for v in (x, y))
    a = (x_rest * y_rest).sum(axis=-1) / (x_rest**2).sum(axis=-1)
    c = y.mean(axis=-1) - a * x.mean(axis=-1)
    bound = c < lower
    at = np.where(bound, lower, 0.0) if np.isfinite(lower) else 0.0
    alone = (x * (y - np.expand_dims(at, -1))).sum(axis=-1) / (x**2).sum(axis=-1)
    a, c = np.where(bound, alone, a), np.where(bound, lower, c)
    errors = ((y - c[..., None] - a[..., None] * x) ** 2).sum(axis=-1)
    return a, c, errors
