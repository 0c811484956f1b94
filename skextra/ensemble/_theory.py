"""Mean and variance of a member over its random features: Gaussian equivalents."""

import math

import numpy as np
from scipy import linalg, optimize


def effective_ridge(eigenvalues, n_components, alpha):
    """Solve t = alpha + (t / D) sum_i d_i / (t + d_i) (Jacot et al., 2020)."""
    if math.isinf(n_components) or not eigenvalues.any():
        return float(alpha)
    D, largest = n_components, eigenvalues.sum() / n_components
    if alpha > 0:
        bracket = alpha, alpha + largest

        def excess(t):
            return t - alpha - t / D * np.sum(eigenvalues / (t + eigenvalues))

    else:  # 0 once the features outnumber the rank, else the positive root
        cutoff = eigenvalues.size * np.finfo(float).eps * eigenvalues.max()
        eigenvalues = eigenvalues[eigenvalues > cutoff]
        if eigenvalues.size <= D:
            return 0.0
        # the sum exceeds D at this lower end: each term is above D / rank
        lower = eigenvalues.min() * (eigenvalues.size / D - 1)
        bracket = lower, largest

        def excess(t):
            return D - np.sum(eigenvalues / (t + eigenvalues))

    if excess(bracket[0]) >= 0:  # to rounding, an end is the root
        return float(bracket[0])
    if excess(bracket[1]) <= 0:
        return float(bracket[1])
    return optimize.brentq(
        excess, *bracket, xtol=np.finfo(float).tiny, rtol=4 * np.finfo(float).eps
    )


def gaussian_feature_moments(K, K_test, diag_test, y, n_components, alpha):
    """Mean and variance of a member's prediction for Gaussian features.

    Ridge: Jacot et al. (2020) for the mean; the variance is the same calculation to
    second order. Ridgeless with D > N + 1: exact (Dern et al., 2025).
    """
    d, Q = linalg.eigh(K)
    d = np.maximum(d, 0)
    d[d <= d.size * np.finfo(float).eps * d.max(initial=0)] = 0
    k, c = K_test @ Q, Q.T @ y
    t = effective_ridge(d, n_components, alpha)
    inverse = np.divide(1, d + t, out=np.zeros_like(d), where=d + t > 0)
    mean = k @ (inverse[:, None] * c)
    if math.isinf(n_components):
        return mean, np.zeros_like(mean)
    if t == 0:
        return mean, _ridgeless_variance(d, k, c, inverse, diag_test, n_components)
    slope = 1 / (1 - np.sum((d * inverse) ** 2) / n_components)
    # s2 = k** - 2 k*^T A k* + k*^T A K A k*, q = y^T A K A y, b = t k*^T A^2 y
    s2 = diag_test - k**2 @ (2 * inverse - d * inverse**2)
    q = (d * inverse**2) @ c**2
    b = t * (k @ (inverse[:, None] ** 2 * c))
    return mean, slope / n_components * (np.maximum(s2, 0)[:, None] * q + b**2)


def _ridgeless_variance(d, k, c, inverse, diag_test, n_components):
    """r_perp^2 (y^T K^+ y) / (D - N - 1), infinite for D in {N, N + 1}."""
    residual = diag_test - k**2 @ inverse
    rounding = d.size * np.finfo(float).eps * diag_test
    residual = np.where(residual > rounding, residual, 0.0)[:, None]
    spare = n_components - np.count_nonzero(d) - 1
    if spare <= 0:
        return np.where((residual > 0) & (inverse @ c**2 > 0), np.inf, 0.0)
    return residual * (inverse @ c**2) / spare
