"""Random features: how their weights are drawn and what they compute.

The paper's notation: a feature is phi(omega . x~), where x~ is the centred and scaled
row with a constant appended.
"""

import math

import numpy as np
from scipy import special
from sklearn.utils._array_api import (
    _is_numpy_namespace,
    _is_xp_namespace,
    get_namespace_and_device,
    move_to,
)

from skextra.ensemble import _numba

FEATURE_MAPS = ("relu", "erf", "fourier", "fourier_paired", "step", "softplus")
FOURIER_MAPS = ("fourier", "fourier_paired")
WEIGHT_DISTRIBUTIONS = ("normal", "uniform", "laplace", "student_t")
STUDENT_DOF = 3


def draw_weights(
    n_members, n_inputs, n_components, feature_map, weight_distribution, rng
):
    """Draw omega, (n_members, n_inputs, n_components), and the phases or None.

    One stream, member by member: the draws depend on nothing but the three sizes, and
    a larger ensemble begins with the members of a smaller one.
    """
    n_draws = n_components // 2 if feature_map == "fourier_paired" else n_components
    weights, phases = [], []
    for _ in range(n_members):
        weights.append(_draw(weight_distribution, rng, (n_inputs, n_draws)))
        if feature_map == "fourier":
            phases.append(rng.uniform(0, 2 * math.pi, n_draws))
    weights = np.stack(weights)
    if feature_map == "fourier_paired":  # [cos, sin]: a sine is a cosine, shifted
        weights = np.concatenate([weights, weights], axis=2)
        phases = np.repeat([[0.0, -math.pi / 2]] * n_members, n_draws, axis=1)
    return weights, np.asarray(phases) if len(phases) else None


def _draw(distribution, rng, shape):
    """Weights of mean 0 and variance 1 (Student's t: scale 1, so variance 3)."""
    if distribution == "normal":
        return rng.standard_normal(shape)
    if distribution == "uniform":
        return rng.uniform(-math.sqrt(3), math.sqrt(3), shape)
    if distribution == "laplace":
        return rng.laplace(0, math.sqrt(0.5), shape)
    if distribution == "student_t":  # multivariate: the columns share their divisor
        normal = rng.standard_normal(shape)
        return normal / np.sqrt(rng.chisquare(STUDENT_DOF, shape[1]) / STUDENT_DOF)
    weights = np.asarray(distribution(rng, shape), dtype=float)
    if weights.shape != shape or not np.isfinite(weights).all():
        raise ValueError(
            "weight_distribution must return an array of finite numbers of the shape "
            f"it was asked for, {shape}; it returned an array of shape {weights.shape}"
            + (" with NaN or infinity." if weights.shape == shape else ".")
        )
    return weights


def features(X, weights, phases, feature_map):
    """phi(omega . x~): the (n_samples, n_components) features of one member."""
    return activate(X @ weights, phases, feature_map)


def activate(Z, phases, feature_map):
    """phi(Z); NumPy arrays are overwritten."""
    xp, _, device = get_namespace_and_device(Z)
    in_numpy = _is_numpy_namespace(xp)
    if callable(feature_map):
        phi = feature_map(Z)
        if getattr(phi, "shape", None) != Z.shape:
            raise ValueError(
                "feature_map must be elementwise: it was given an array of shape "
                f"{Z.shape} and returned {getattr(phi, 'shape', type(phi).__name__)}."
            )
        if not bool(xp.all(xp.isfinite(phi))):
            raise ValueError("feature_map returned NaN or infinity for finite input.")
        return phi
    if feature_map in FOURIER_MAPS and in_numpy:
        _numba.cosine_features(Z, phases)
        return Z
    if feature_map in FOURIER_MAPS:
        return math.sqrt(2) * xp.cos(Z + phases)
    if feature_map == "erf":
        return special.erf(Z, out=Z) if in_numpy else _erf(Z, xp, device)
    if feature_map == "step":
        return xp.astype(Z > 0, Z.dtype)
    zero = xp.zeros((1, 1), dtype=Z.dtype, device=device)
    if feature_map == "relu":
        return np.maximum(Z, zero, out=Z) if in_numpy else xp.maximum(Z, zero)
    return xp.logaddexp(Z, zero)  # softplus


def _erf(Z, xp, device):
    """SciPy's erf, in the namespace itself where SciPy knows how."""
    if _is_xp_namespace(xp, "torch") or _is_xp_namespace(xp, "cupy"):
        return special.erf(Z)
    return xp.asarray(special.erf(move_to(Z, xp=np, device="cpu")), device=device)
