"""Infinite-width kernels k(x, x') = E[phi(omega . x) phi(omega . x')].

Rows are scaled already, with their constant column where the map has one. Sources:
arc-cosine kernels, Cho & Saul (2009); arcsine kernel, Williams (1997); Fourier maps,
the characteristic function of the weights, Rahimi & Recht (2007).
"""

import math

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils._array_api import _is_numpy_namespace, get_namespace_and_device

from skextra.ensemble import _numba
from skextra.ensemble._features import FOURIER_MAPS, activate, draw_weights, features
from skextra.utils import row_blocks

N_NODES = 128  # of the Gauss-Hermite rule
N_DRAWS = 2**14  # random features that stand in where there is no formula


def kernel(X, Y, feature_map, weight_distribution="normal", seed=0):
    """Kernel matrix between the rows of `X` and those of `Y`."""
    if is_monte_carlo(feature_map, weight_distribution):
        phi, psi = (
            monte_carlo_features(A, feature_map, weight_distribution, seed)
            for A in (X, Y)
        )
        return phi @ psi.T
    if feature_map in FOURIER_MAPS:
        return _FOURIER_KERNELS[weight_distribution](X, Y)
    if feature_map in _KERNELS:
        return _KERNELS[feature_map](X, Y)
    return _hermite_kernel(X, Y, feature_map)


def kernel_diagonal(X, feature_map, weight_distribution="normal", seed=0):
    """k(x, x) for each row of `X`."""
    xp, _, device = get_namespace_and_device(X)
    if is_monte_carlo(feature_map, weight_distribution):
        phi = monte_carlo_features(X, feature_map, weight_distribution, seed)
        return xp.sum(phi**2, axis=1)
    if feature_map in FOURIER_MAPS:
        return xp.ones(X.shape[0], dtype=X.dtype, device=device)
    squares = xp.sum(X**2, axis=1)
    if feature_map == "relu":
        return squares / 2
    if feature_map == "step":
        return xp.astype(squares > 0, X.dtype) / 2
    if feature_map == "erf":
        return 2 / math.pi * xp.asin(2 * squares / (1 + 2 * squares))
    return xp.sum(_hermite_coefficients(xp.sqrt(squares), feature_map) ** 2, axis=1)


def is_monte_carlo(feature_map, weight_distribution):
    """Whether the kernel has no formula here and is estimated."""
    if callable(weight_distribution):
        return True
    return feature_map not in FOURIER_MAPS and weight_distribution != "normal"


def monte_carlo_features(X, feature_map, weight_distribution, seed):
    """`N_DRAWS` random features, scaled so that their inner product is the kernel."""
    xp, _, device = get_namespace_and_device(X)
    rng = np.random.RandomState(seed)
    weights, phases = (
        None if A is None else xp.asarray(A[0], dtype=X.dtype, device=device)
        for A in draw_weights(
            1, X.shape[1], N_DRAWS, feature_map, weight_distribution, rng
        )
    )
    return features(X, weights, phases, feature_map) / math.sqrt(N_DRAWS)


def monte_carlo_error(phi):
    """Largest standard error of the entries of the kernel matrix phi phi^T."""
    xp, _, _ = get_namespace_and_device(phi)
    variance = phi**2 @ (phi**2).T - (phi @ phi.T) ** 2 / N_DRAWS
    return float(xp.sqrt(xp.max(variance)))


def _arc_cosine(U, V, order):
    """Arc-cosine kernel between unit rows."""
    xp, _, _ = get_namespace_and_device(U)
    if _is_numpy_namespace(xp):
        K = U @ V.T
        _numba.arc_cosine(K, U, V, order)
        return K
    theta = xp.concat(
        [
            2 * xp.atan2(_distances(U[block, :], V), _distances(U[block, :], -V))
            for block in row_blocks(U.shape[0], V.shape[0] * V.shape[1] * 8)
        ]
    )
    K = math.pi - theta
    if order == 1:
        K = xp.sin(theta) + K * xp.cos(theta)
    return K / (2 * math.pi)


def _unit_rows(X, xp):
    norms = xp.linalg.vector_norm(X, axis=1)
    return X / xp.where(norms > 0, norms, xp.ones_like(norms))[:, None], norms


def _distances(X, Y):
    xp, _, _ = get_namespace_and_device(X)
    return xp.linalg.vector_norm(X[:, None, :] - Y[None, :, :], axis=2)


def _relu_kernel(X, Y):
    xp, _, _ = get_namespace_and_device(X)
    (U, x_norms), (V, y_norms) = _unit_rows(X, xp), _unit_rows(Y, xp)
    K = _arc_cosine(U, V, 1)
    K *= x_norms[:, None]
    K *= y_norms[None, :]
    return K


def _step_kernel(X, Y):
    xp, _, _ = get_namespace_and_device(X)
    (U, x_norms), (V, y_norms) = _unit_rows(X, xp), _unit_rows(Y, xp)
    alive = (x_norms > 0)[:, None] & (y_norms > 0)[None, :]
    return xp.where(alive, _arc_cosine(U, V, 0), 0.0)


def _erf_kernel(X, Y):
    xp, _, _ = get_namespace_and_device(X)
    x_scale, y_scale = (xp.sqrt(1 + 2 * xp.sum(A**2, axis=1)) for A in (X, Y))
    sine = 2 * (X @ Y.T) / (x_scale[:, None] * y_scale[None, :])
    return 2 / math.pi * xp.asin(sine)


def _hermite_kernel(X, Y, feature_map):
    """Mehler's expansion, sum_n rho^n c_n(|x|) c_n(|x'|), for normal weights."""
    xp, _, device = get_namespace_and_device(X)
    (U, x_norms), (V, y_norms) = _unit_rows(X, xp), _unit_rows(Y, xp)
    rho = xp.clip(U @ V.T, -1, 1)
    a, b = (_hermite_coefficients(norms, feature_map) for norms in (x_norms, y_norms))
    K = xp.zeros(rho.shape, dtype=X.dtype, device=device)
    for n in reversed(range(N_NODES)):
        K = K * rho + a[:, n][:, None] * b[:, n][None, :]
    return K


def _hermite_coefficients(norms, feature_map):
    """c_n(r) = E[phi(r z) He_n(z)] / sqrt(n!), z normal, by Gauss-Hermite quadrature.

    With as many polynomials as nodes the expansion is complete on the nodes, so that
    sum_n c_n(r)^2 is the quadrature of E[phi(r z)^2] itself.
    """
    xp, _, device = get_namespace_and_device(norms)
    nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
    polynomials = np.ones((N_NODES, N_NODES))
    polynomials[:, 1] = nodes
    for n in range(1, N_NODES - 1):  # He_{n+1} = z He_n - n He_{n-1}, normalised
        polynomials[:, n + 1] = (
            nodes * polynomials[:, n] - math.sqrt(n) * polynomials[:, n - 1]
        ) / math.sqrt(n + 1)
    rule = polynomials * (weights / weights.sum())[:, None]
    nodes, rule = (
        xp.asarray(A, dtype=norms.dtype, device=device) for A in (nodes, rule)
    )
    return activate(norms[:, None] * nodes[None, :], None, feature_map) @ rule


def _squared_distances(X, Y):
    """Squared Euclidean distances; centred first, which keeps their digits."""
    xp, _, _ = get_namespace_and_device(X)
    centre = xp.mean(Y, axis=0)
    X, Y = X - centre, None if Y is X else Y - centre
    return euclidean_distances(X, Y, squared=True)


def _matern_kernel(X, Y):
    """Student's t with 3 degrees of freedom is the spectral density of Matern 3/2."""
    xp, _, _ = get_namespace_and_device(X)
    distance = math.sqrt(3) * xp.sqrt(_squared_distances(X, Y))
    return (1 + distance) * xp.exp(-distance)


def _product_kernel(X, Y, characteristic):
    """Independent weights: the product of their characteristic functions."""
    K = characteristic(X[:, 0][:, None] - Y[:, 0][None, :])
    for k in range(1, X.shape[1]):
        K = K * characteristic(X[:, k][:, None] - Y[:, k][None, :])
    return K


def _gaussian_kernel(X, Y):
    xp, _, _ = get_namespace_and_device(X)
    return xp.exp(-_squared_distances(X, Y) / 2)


def _laplace_kernel(X, Y):
    return _product_kernel(X, Y, lambda delta: 1 / (1 + delta**2 / 2))


def _uniform_kernel(X, Y):
    xp, _, _ = get_namespace_and_device(X)

    def sinc(delta):
        z = math.sqrt(3) * delta
        return xp.where(z == 0, xp.ones_like(z), xp.sin(z) / xp.where(z == 0, 1.0, z))

    return _product_kernel(X, Y, sinc)


_KERNELS = {"relu": _relu_kernel, "step": _step_kernel, "erf": _erf_kernel}
_FOURIER_KERNELS = {
    "normal": _gaussian_kernel,
    "student_t": _matern_kernel,
    "laplace": _laplace_kernel,
    "uniform": _uniform_kernel,
}
