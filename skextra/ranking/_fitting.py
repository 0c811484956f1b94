"""What the fits of all estimators share: rows that count, like columns, the search."""

import warnings
from functools import partial

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import _check_sample_weight

LARGEST = 1e150  # whose square is still a number
EPS = np.finfo(float).eps


def fit_by_search(estimator, rows, start, stages):
    """Search from ``start``, tell of each iteration, and set the fitted attributes.

    ``rows`` are X, y and weights, for scikit-learn's callbacks. Each of the ``stages``
    is a pair: an objective, which gives a value and its gradient, to be minimised by
    L-BFGS-B from where the stage before has ended; and what turns a point and the
    number of iterations so far into fitted attributes. Warn, in the name of the caller
    of ``fit``, where the last stage was cut short.
    """
    X, y, weight = rows
    data = {"estimator": estimator, "X": X, "y": y}
    data["metadata"] = {"sample_weight": weight}
    fit_task = estimator._init_callback_context(max_subtasks=None)
    fit_task.call_on_fit_task_begin(**data)
    n_iter, stopped = 0, False

    def report(fitted, x):
        nonlocal n_iter, stopped
        n_iter += 1
        task = fit_task.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(**data)
        stopped = task.call_on_fit_task_end(
            **data, reconstruction_attributes=partial(fitted, x, n_iter)
        )
        if stopped:
            raise StopIteration

    x = start
    for objective, fitted in stages:
        result = minimize(
            objective,
            x,
            jac=True,
            method="L-BFGS-B",
            callback=partial(report, fitted),
            options={
                "maxiter": estimator.max_iter,
                "maxfun": np.iinfo(np.int32).max,
                "maxls": 50,
                "gtol": estimator.tol,
                "ftol": 64 * EPS,
            },
        )
        x = result.x
        if stopped:
            break
    vars(estimator).update(fitted(x, n_iter))
    fit_task.call_on_fit_task_end(**data, reconstruction_attributes={})
    slope = np.abs(result.jac).max()
    if not (result.success or stopped or slope <= estimator.tol):
        warnings.warn(
            f"L-BFGS ended after {result.nit} iterations at a gradient of {slope:.1e}, "
            f"more than tol={estimator.tol:g}; increase max_iter "
            f"({estimator.max_iter}) or tol.",
            ConvergenceWarning,
            stacklevel=5,
        )


def weighted_rows(X, y, sample_weight):
    """Return the rows of positive weight, and their weights."""
    weight = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    kept = weight > 0
    total = weight.sum()
    if not 1 / LARGEST < total < LARGEST:
        raise ValueError(
            f"sample_weight must sum to more than {1 / LARGEST:g} and less than "
            f"{LARGEST:g}, got {total:g}."
        )
    return (X, y, weight) if kept.all() else (X[kept], y[kept], weight[kept])


def standardised(x, share):
    """Return x with mean 0 and standard deviation 1, and what that was.

    All are 0 where x is constant. ``share`` are the weights of the rows, of sum 1.
    """
    if x.min() == x.max():
        return np.zeros_like(x), 0.0
    x = x - share @ x
    size = np.abs(x).max()  # whose square may be no number
    x = x / size
    x -= share @ x
    deviation = np.sqrt(share @ x**2)
    return x / deviation, deviation * size


def alike(X, weight, ridge, centre=True):
    """Return columns whose coefficients have about the same curvature in a search.

    They are ``(X - offset) * scale``; the offset and the scale are returned after them.
    The curvature is the variance of the column, or its mean square without ``centre``,
    plus ``ridge``. A sparse matrix is not shifted. With ``centre``, which is for models
    that need no constant column, such a column gets a scale of 0.
    """
    largest = abs(X).max()
    if largest > LARGEST:
        raise ValueError(
            f"X must hold no value beyond {LARGEST:g} in size, got {largest:g}; scale "
            "its columns, as StandardScaler does."
        )
    reach = _dense(X.max(axis=0)) - _dense(X.min(axis=0))
    if ((reach > 0) & (reach < 1 / LARGEST)).any():
        raise ValueError(
            f"X must not have columns that vary by less than {1 / LARGEST:g} without "
            "being constant; scale its columns, as StandardScaler does."
        )
    share = weight / weight.sum()
    if issparse(X):
        mean, variance = mean_variance_axis(X, axis=0, weights=share)
        spread = np.sqrt(np.maximum(variance, 0))
    else:
        mean = share @ X
        spread = np.sqrt(share @ (X - mean) ** 2)
    # As StandardScaler has it: no more than rounding errors.
    constant = spread <= len(share) * EPS * np.abs(mean)
    if not centre:
        spread = np.hypot(spread, mean)
        constant = spread == 0
    spread[constant] = np.inf
    scale = 1 / np.hypot(spread, np.sqrt(ridge))
    if issparse(X):
        return X.multiply(scale).tocsr(), np.zeros_like(scale), scale
    offset = mean if centre else np.zeros_like(scale)
    return (X - offset) * scale, offset, scale


def _dense(row):
    return row.toarray().ravel() if issparse(row) else row
