"""Formulas of random-feature ensembles, for the user's own arrays."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils._array_api import (
    _max_precision_float_dtype,
    get_namespace_and_device,
    move_to,
)
from sklearn.utils._param_validation import (
    Interval,
    Options,
    StrOptions,
    validate_params,
)

from skextra.ensemble import _theory
from skextra.ensemble._features import FEATURE_MAPS, FOURIER_MAPS
from skextra.ensemble._inputs import as_matrix, as_numpy, scaled_inputs
from skextra.ensemble._kernels import kernel

_WIDTH = [Interval(Integral, 1, None, closed="left"), Options(Real, {np.inf})]


@validate_params(
    {
        "feature_map": [StrOptions(set(FEATURE_MAPS)), callable],
        "weight_scale": [Interval(Real, 0, None, closed="neither")],
        "bias_scale": [Interval(Real, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def rf_kernel(X, Y=None, feature_map="relu", *, weight_scale=1.0, bias_scale=0.0):
    """Kernel that random features with standard normal weights approach.

    The expectation of ``phi(w @ x) * phi(w @ y)`` over the weights ``w``, where x and y
    are the rows times `weight_scale`, with `bias_scale` appended if it is positive.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_features)
        Rows.

    Y : array-like of shape (n_samples_Y, n_features), default=None
        Rows; those of `X` if None.

    feature_map : {"relu", "erf", "fourier", "fourier_paired", "step", "softplus"} or \
            callable, default="relu"
        The nonlinearity phi. The Fourier maps give the Gaussian kernel, and "relu" and
        "step" the arc-cosine kernels of order 1 and 0. "softplus" and callables, which
        must be elementwise, are integrated with 128 Gauss-Hermite nodes. For rows of
        norm up to 4 that leaves 1e-8 for "softplus", 1e-4 for the hyperbolic tangent,
        and some per cent for a function with kinks or jumps.

    weight_scale : float, default=1.0
        Factor of the rows.

    bias_scale : float, default=0.0
        Value of a constant appended to each row, if positive. Not used by the Fourier
        maps.

    Returns
    -------
    K : array of shape (n_samples_X, n_samples_Y)
        Kernel matrix, in float64. A row of zeros has ``phi(0)`` as its feature, so
        that its kernel is 0 with "relu", "step" and "erf".

    Raises
    ------
    ValueError
        If a parameter is not as documented, the arrays hold NaN or infinity, or their
        numbers of columns differ.

    References
    ----------
    N. Dern, J. P. Cunningham, G. Pleiss, "Theoretical Limitations of Ensembles in the
    Age of Overparameterization", ICML 2025, :arxiv:`2410.16201`. The angle of the
    arc-cosine kernel is printed there with x twice; it is the one between x and x'.

    Examples
    --------
    >>> from skextra.ensemble import rf_kernel
    >>> rf_kernel([[3.0, 4.0]])
    array([[12.5]])
    """
    xp, _, device = get_namespace_and_device(X)
    wide = _max_precision_float_dtype(xp, device)
    X = check_array(X, dtype=wide)
    constant = (
        bias_scale if bias_scale > 0 and feature_map not in FOURIER_MAPS else None
    )
    dtype = "float64" if wide == xp.float64 else "float32"
    X = scaled_inputs(X, 0.0, weight_scale, constant, dtype)
    if Y is None:
        return kernel(X, X, feature_map)
    Y = check_array(move_to(Y, xp=xp, device=device), dtype=wide)
    Y = scaled_inputs(Y, 0.0, weight_scale, constant, dtype)
    if X.shape[1] != Y.shape[1]:
        n_constants = constant is not None
        raise ValueError(
            "X and Y must have the same number of columns; got "
            f"{X.shape[1] - n_constants} and {Y.shape[1] - n_constants}."
        )
    return kernel(X, Y, feature_map)


@validate_params(
    {
        "eigvals": ["array-like"],
        "n_components": _WIDTH,
        "alpha": [Interval(Real, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def effective_ridge(eigvals, n_components, alpha):
    """Penalty at which the infinite width predicts as members of finite width.

    It solves ``t = alpha + t / n_components * sum(d / (t + d))`` over the eigenvalues d
    of the kernel matrix: a narrow member is regularised by its width.

    Parameters
    ----------
    eigvals : array-like of shape (n_samples,)
        Eigenvalues of the kernel matrix of the training rows, not negative but for
        rounding.

    n_components : int or np.inf
        Width of a member.

    alpha : float
        Ridge penalty of the members. With 0 the answer is 0 for members as wide as the
        kernel's rank, and positive for narrower ones.

    Returns
    -------
    ridge : float
        The effective penalty, at least `alpha`.

    Raises
    ------
    ValueError
        If an eigenvalue is negative, NaN or infinite, or a parameter not as documented.

    References
    ----------
    A. Jacot, B. Simsek, F. Spadaro, C. Hongler, F. Gabriel, "Implicit Regularization of
    Random Feature Models", ICML 2020, :arxiv:`2002.08404`.

    Examples
    --------
    >>> from skextra.ensemble import effective_ridge
    >>> round(effective_ridge([1.0, 1.0], n_components=1, alpha=0.0), 12)
    1.0
    """
    eigvals = check_array(as_numpy(eigvals), ensure_2d=False, dtype=np.float64)
    if eigvals.ndim != 1:
        raise ValueError(f"eigvals must be 1-D; got an array of shape {eigvals.shape}.")
    if eigvals.min() < -1e-8 * eigvals.max():
        raise ValueError(f"eigvals must not be negative; got {eigvals.min()}.")
    return _theory.effective_ridge(np.maximum(eigvals, 0), n_components, alpha)


@validate_params(
    {
        "K": ["array-like"],
        "K_test": ["array-like"],
        "diag_test": ["array-like"],
        "y": ["array-like"],
        "n_components": _WIDTH,
        "alpha": [Interval(Real, 0, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def gaussian_feature_variance(K, K_test, diag_test, y, n_components, alpha=0.0):
    """Mean and variance of one member's prediction over its random features.

    For features that are Gaussian with the given kernel, without an intercept. For
    ``alpha=0`` and more features than rows plus one the formula is exact; otherwise it
    holds to leading order in the width. Real features have the same kernel but are not
    Gaussian: the pattern is right, the size to some ten per cent.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Kernel matrix of the training rows.

    K_test : array-like of shape (n_test, n_samples)
        Kernel of the test rows with the training rows.

    diag_test : array-like of shape (n_test,)
        Kernel of each test row with itself.

    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Training targets.

    n_components : int or np.inf
        Width of a member.

    alpha : float, default=0.0
        Ridge penalty of a member.

    Returns
    -------
    mean : ndarray of shape (n_test,) or (n_test, n_targets)
        Mean of a member's predictions.

    variance : ndarray of shape (n_test,) or (n_test, n_targets)
        Their variance: divide by the number of members for that of the ensemble. It is
        infinite for ridgeless members whose width is the rank of `K` or one more.

    Raises
    ------
    ValueError
        If the shapes do not fit, `K` is not symmetric, or the arrays hold NaN or
        infinity.

    References
    ----------
    N. Dern, J. P. Cunningham, G. Pleiss, "Theoretical Limitations of Ensembles in the
    Age of Overparameterization", ICML 2025, for the ridgeless case. The
    mean with a ridge is that of A. Jacot et al., "Implicit Regularization of Random
    Feature Models", ICML 2020; the variance follows from the same calculation.

    Examples
    --------
    >>> import numpy as np
    >>> from skextra.ensemble import gaussian_feature_variance
    >>> mean, variance = gaussian_feature_variance(
    ...     np.eye(2), np.array([[0.5, 0.0]]), np.ones(1), [1.0, 2.0], n_components=5
    ... )
    >>> print(mean, variance)
    [0.5] [1.875]
    """
    K, K_test = (check_array(as_numpy(A), dtype=np.float64) for A in (K, K_test))
    diag_test, y = (
        check_array(as_numpy(A), dtype=np.float64, ensure_2d=False)
        for A in (diag_test, y)
    )
    check_consistent_length(K, y)
    check_consistent_length(K_test, diag_test)
    size = np.abs(K).max()
    if K.shape[0] != K.shape[1] or np.abs(K - K.T).max() > 1e-8 * size:
        raise ValueError(f"K must be symmetric; got an array of shape {K.shape}.")
    if np.linalg.eigvalsh(K)[0] < -1e-8 * size * len(K) or (diag_test < 0).any():
        raise ValueError(
            "K must be positive semi-definite and diag_test not negative; got the "
            f"eigenvalue {np.linalg.eigvalsh(K)[0]:.3g} and {diag_test.min():.3g}."
        )
    if K_test.shape[1] != K.shape[0] or diag_test.ndim != 1 or y.ndim > 2:
        raise ValueError(
            "K_test must be (n_test, n_samples), diag_test (n_test,) and y (n_samples,) "
            f"or (n_samples, n_targets); got {K_test.shape}, {diag_test.shape}, "
            f"{y.shape} for n_samples={K.shape[0]}."
        )
    moments = _theory.gaussian_feature_moments(
        K, K_test, diag_test, as_matrix(y), n_components, alpha
    )
    return tuple(moment if y.ndim == 2 else moment[:, 0] for moment in moments)
