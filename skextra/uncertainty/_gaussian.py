"""Information and reductions where beliefs are jointly normal, as Gaussian processes'."""

import numpy as np

from skextra.uncertainty._inputs import (
    not_negative,
    number_or_array,
    real_array,
    shares,
)


def gaussian_bald(var, noise):
    """Return how much an outcome tells about the value of a Gaussian process there.

    Parameters
    ----------
    var : array-like of shape (n_samples,)
        Variance of the value, without noise.

    noise : float or array-like of shape (n_samples,)
        Variance of the noise of an outcome.

    Returns
    -------
    information : ndarray of shape (n_samples,)
        ``log(1 + var / noise) / 2``, in nats: infinite where there is no noise but
        something to learn, 0 where there is nothing to learn.

    Raises
    ------
    ValueError
        If a variance is negative or not finite, or the shapes do not fit.

    Examples
    --------
    >>> from skextra.uncertainty import gaussian_bald
    >>> gaussian_bald([0.0, 1.0, 3.0], 1.0).round(4)
    array([0.    , 0.3466, 0.6931])
    """
    var = not_negative(var, "var", 1)
    noise = number_or_array(noise, "noise", var.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(var > 0, np.log1p(var / noise) / 2, 0.0)


def gaussian_epig(
    cov,
    var_pool,
    var_target,
    noise_pool=0.0,
    noise_target=0.0,
    *,
    target_weights=None,
    pairwise=False,
):
    """Return how much a label tells about outcomes at targets of a Gaussian process.

    Parameters
    ----------
    cov : array-like of shape (n_pool, n_target)
        Covariance of the values at points and targets.

    var_pool : array-like of shape (n_pool,)
        Variances of the values at the points, without noise.

    var_target : array-like of shape (n_target,)
        Variances of the values at the targets, without noise.

    noise_pool : float or array-like of shape (n_pool,), default=0
        Variance of the noise of the labels.

    noise_target : float or array-like of shape (n_target,), default=0
        Variance of the noise of the outcomes at the targets.

    target_weights : array-like of shape (n_target,), default=None
        Weights of the targets; by default equal.

    pairwise : bool, default=False
        Whether to return the information about each target instead of the mean.

    Returns
    -------
    information : ndarray of shape (n_pool,) or (n_pool, n_target)
        ``-log(1 - rho^2) / 2`` in nats, with the correlation rho of the label and the
        outcome: infinite where one gives the other.

    Raises
    ------
    ValueError
        If a variance is negative, something is not finite, the shapes do not fit, or a
        covariance is larger than its variances allow.

    Examples
    --------
    >>> from skextra.uncertainty import gaussian_epig
    >>> gaussian_epig([[0.9], [0.0]], [1.0, 1.0], [1.0]).round(4)
    array([0.8304, 0.    ])
    """
    cov, var_pool, noise_pool = _joint(cov, var_pool, noise_pool)
    var_target = not_negative(var_target, "var_target", 1)
    if var_target.shape != cov.shape[1:]:
        raise ValueError(
            f"var_target must have shape {cov.shape[1:]}; got {var_target.shape}"
        )
    noise_target = number_or_array(noise_target, "noise_target", var_target.shape)
    _check_covariance(cov, np.sqrt(var_pool)[:, None] * np.sqrt(var_target))
    spread = np.sqrt(var_pool + noise_pool)[:, None] * np.sqrt(
        var_target + noise_target
    )
    rho = np.divide(cov, spread, out=np.zeros(cov.shape), where=spread > 0)
    with np.errstate(divide="ignore"):
        # (1 - rho) (1 + rho) is exact near 1, where 1 - rho^2 is not.
        rho = np.minimum(np.abs(rho), 1)
        near_1 = np.log(1 - rho) + np.log1p(rho)
        information = -np.where(rho < 0.5, np.log1p(-(rho**2)), near_1) / 2
    return _over_targets(np.maximum(information, 0.0), target_weights, pairwise)


def gaussian_eur(cov, var_pool, noise_pool=0.0, *, target_weights=None, pairwise=False):
    """Return by how much a label reduces the variance at targets of a Gaussian process.

    Parameters
    ----------
    cov : array-like of shape (n_pool, n_target)
        Covariance of the values at points and targets.

    var_pool : array-like of shape (n_pool,)
        Variances of the values at the points, without noise.

    noise_pool : float or array-like of shape (n_pool,), default=0
        Variance of the noise of the labels.

    target_weights : array-like of shape (n_target,), default=None
        Weights of the targets; by default equal.

    pairwise : bool, default=False
        Whether to return the reduction at each target instead of the mean.

    Returns
    -------
    reduction : ndarray of shape (n_pool,) or (n_pool, n_target)
        ``cov^2 / (var_pool + noise_pool)``, in squared units of the outcome: what
        training the process again with the label takes off the variance, whatever the
        label is.

    Raises
    ------
    ValueError
        If a variance is negative, something is not finite, or the shapes do not fit; if
        a point without variance has a covariance.

    Examples
    --------
    >>> from skextra.uncertainty import gaussian_eur
    >>> gaussian_eur([[0.9], [0.0]], [1.0, 1.0], 0.5).round(4)
    array([0.54, 0.  ])
    """
    cov, var_pool, noise_pool = _joint(cov, var_pool, noise_pool)
    _check_covariance(cov, np.where(var_pool > 0, np.inf, 0.0)[:, None])
    spread = np.sqrt(var_pool + noise_pool)[:, None]
    root = np.divide(cov, spread, out=np.zeros(cov.shape), where=spread > 0)
    return _over_targets(root**2, target_weights, pairwise)


def _joint(cov, var_pool, noise_pool):
    cov = real_array(cov, "cov", 2)
    var_pool = not_negative(var_pool, "var_pool", 1)
    if var_pool.shape != cov.shape[:1]:
        raise ValueError(
            f"var_pool must have shape {cov.shape[:1]}, one for each row of cov; got "
            f"{var_pool.shape}"
        )
    return cov, var_pool, number_or_array(noise_pool, "noise_pool", var_pool.shape)


def _check_covariance(cov, largest):
    wrong = np.abs(cov) > largest * (1 + 1e-7)
    if wrong.any():
        raise ValueError(
            f"cov must not be larger than the variances allow; got {cov[wrong][0]}"
        )


def _over_targets(pairs, target_weights, pairwise):
    target_weights = shares(target_weights, pairs.shape[1], "target_weights", "targets")
    return pairs if pairwise else pairs @ target_weights
