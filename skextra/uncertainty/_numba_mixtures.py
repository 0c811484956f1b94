"""Kernels: entropy and continuous ranked probability score of mixtures of normals."""

import math

import numpy as np
from numba import njit

from skextra.uncertainty._numba import xlogx

# Standard deviations from a mean at which panels of the quadrature begin and end, and the
# last of which a density is taken as 0: exp(-9.5^2/2) < 1e-19.
EDGES = np.array(
    [-9.5, -7.0, -5.0, -3.5, -2.25, -1.0, 0.0, 1.0, 2.25, 3.5, 5.0, 7.0, 9.5]
)
GAUSS, GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(8)


def entropy(mean, var, weights):
    """Return the entropy (n,) of mixtures of normal distributions (n, K)."""
    out = np.empty(len(mean))
    std = np.sqrt(var)
    mean = mean - mean[:, :1]
    if (np.ptp(mean, axis=1) * 1e-12 > std.min(axis=1)).any():
        raise ValueError(
            "var must not be so small beside the distances of mean that densities of "
            "members are narrower than the digits of a float64"
        )
    _entropy(mean, std, weights, EDGES, GAUSS, GAUSS_WEIGHTS, out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _entropy(mean, std, weights, around, nodes, node_weights, out):
    """Write the integral of -p log p, by panels that are narrow beside each member."""
    n, n_members = mean.shape
    n_around = len(around)
    edges = np.empty(n_members * n_around)
    for i in range(n):
        narrowest = np.inf
        for k in range(n_members):
            narrowest = min(narrowest, std[i, k])
            for e in range(n_around):
                edges[k * n_around + e] = mean[i, k] + around[e] * std[i, k]
        edges.sort()
        total = 0.0
        left = edges[0]
        for e in range(1, len(edges)):
            # Edges that are near each other beside all members are one.
            if edges[e] - left < 0.5 * narrowest and e < len(edges) - 1:
                continue
            half = (edges[e] - left) / 2
            for q in range(len(nodes)):
                z = left + half * (1.0 + nodes[q])
                density = 0.0
                for k in range(n_members):
                    r = (z - mean[i, k]) / std[i, k]
                    if abs(r) < around[-1]:
                        density += weights[k] / std[i, k] * math.exp(-0.5 * r * r)
                total -= (
                    half * node_weights[q] * xlogx(density / math.sqrt(2 * math.pi))
                )
            left = edges[e]
        out[i] = total


def crps(mean, var, weights):
    """Return half the mean distance (n,) of two draws of mixtures (n, K)."""
    out = np.empty(len(mean))
    _crps(mean, var, weights, out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _crps(mean, var, weights, out):
    n, n_members = mean.shape
    for i in range(n):
        total = 0.0
        for j in range(n_members):
            # The distance of two draws of one member is that of a normal one of variance
            # 2 var from 0, and each pair of members comes twice.
            total += weights[j] ** 2 * math.sqrt(var[i, j] / math.pi)
            for k in range(j):
                total += (
                    weights[j]
                    * weights[k]
                    * _distance(
                        mean[i, j] - mean[i, k], math.sqrt(var[i, j] + var[i, k])
                    )
                )
        out[i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _distance(mean, std):
    """Return E|z| of a normal distribution."""
    if std == 0:
        return abs(mean)
    r = mean / std
    density = math.exp(-0.5 * r * r) / math.sqrt(2 * math.pi)
    return mean * math.erf(r / math.sqrt(2)) + 2 * std * density
