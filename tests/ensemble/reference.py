"""Slow, obvious versions of what the package computes fast."""

import numpy as np
from scipy import special

MAPS = {
    "relu": lambda z: np.maximum(z, 0),
    "erf": special.erf,
    "step": lambda z: (z > 0).astype(float),
    "softplus": lambda z: np.logaddexp(0, z),
}


def features(est, X):
    """Features of each member, (n_members, n_samples, D) over sqrt(D)."""
    Z = (X - est.x_offset_) * est.weight_scale_
    if est.feature_map not in ("fourier", "fourier_paired"):
        Z = np.column_stack([Z, np.full(len(Z), est.bias_scale)])
    phi = MAPS.get(est.feature_map)
    members = []
    for m, W in enumerate(est.weights_):
        if phi is None:
            Phi = np.sqrt(2) * np.cos(Z @ W + est.phases_[m])
        else:
            Phi = phi(Z @ W)
        members.append(Phi / np.sqrt(W.shape[1]))
    return np.stack(members)


def ridge(F, y, alpha, sample_weight=None, fit_intercept=True):
    """Coefficients and intercept, by least squares on augmented rows."""
    w = np.ones(len(y)) if sample_weight is None else sample_weight
    mean = np.average(F, axis=0, weights=w) if fit_intercept else np.zeros(F.shape[1])
    y_mean = np.average(y, axis=0, weights=w) if fit_intercept else 0.0 * y[0]
    A = np.vstack(
        [np.sqrt(w)[:, None] * (F - mean), np.sqrt(alpha) * np.eye(F.shape[1])]
    )
    B = np.sqrt(w).reshape(-1, *[1] * (y.ndim - 1)) * (y - y_mean)
    B = np.concatenate([B, np.zeros((F.shape[1], *y.shape[1:]))])
    theta = np.linalg.lstsq(A, B, rcond=None)[0]
    return theta, y_mean - mean @ theta


def leave_one_out(est, X, y, X_test=None, sample_weight=None):
    """Refit the output layers without each row.

    Returns the ensemble's prediction of the row left out (n, ...), and with `X_test`
    the predictions there (n, n_test, ...).
    """
    F = features(est, X)
    F_test = F if X_test is None else features(est, X_test)
    out, test = [], []
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        w = None if sample_weight is None else sample_weight[keep]
        fits = [ridge(f[keep], y[keep], est.alpha_, w, est.fit_intercept) for f in F]
        out.append(np.mean([f[i] @ t + b for f, (t, b) in zip(F, fits)], axis=0))
        test.append(np.mean([f @ t + b for f, (t, b) in zip(F_test, fits)], axis=0))
    return np.array(out), np.array(test)


def kernel_2d(x, y, phi, n_nodes=64):
    """E[phi(w @ x) phi(w @ y)] by two-dimensional Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / weights.sum()
    r, s = np.linalg.norm(x), np.linalg.norm(y)
    rho = np.clip(x @ y / (r * s), -1, 1) if r * s > 0 else 0.0
    a, b = np.meshgrid(nodes, nodes, indexing="ij")
    second = rho * a + np.sqrt(1 - rho**2) * b
    return float(weights @ (phi(r * a) * phi(s * second)) @ weights)
