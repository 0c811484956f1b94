"""Slow and obvious float64 versions of what ``skextra.optim`` computes, in NumPy."""

import numpy as np


def grad_norm(G):
    """Rows of mean 0 and population standard deviation 1; constant ones are 0."""
    X = np.zeros(np.shape(G))
    for i, row in enumerate(np.asarray(G, dtype=float)):
        if np.ptp(row) > 0:
            X[i] = (row - np.mean(row)) / np.std(row)
    return X


def polar(X):
    """The polar factor: every singular value that is not zero becomes 1."""
    return of_singular_values(X, lambda s: (s > 1e-10 * max(s.max(), 1e-300)) * 1.0)


def newton_schulz(X, steps, beta):
    """The map of one singular value, steps times, on every singular value."""

    def mapped(s):
        s = s / np.sum(s**4) ** 0.25  # the fourth root of ||X X^T||_F^2
        for _ in range(steps):
            s = beta * (3 - s**2) * s
        return s

    return of_singular_values(X, mapped)


def of_singular_values(X, function):
    U, s, Vt = np.linalg.svd(np.asarray(X, dtype=float), full_matrices=False)
    return (U * function(s)) @ Vt


def sinkhorn(G, rounds=5):
    X = np.asarray(G, dtype=float).copy()
    m, n = X.shape
    for _ in range(rounds):
        for i in range(m):
            if np.any(X[i]):
                X[i] *= np.sqrt(n) / np.linalg.norm(X[i])
        for j in range(n):
            if np.any(X[:, j]):
                X[:, j] *= np.sqrt(m) / np.linalg.norm(X[:, j])
    return X


def unit_rms(D, live_rows):
    return D * np.sqrt(live_rows * D.shape[1]) / np.linalg.norm(D)


def swan(G, steps=10, beta=0.8):
    X = grad_norm(G)
    return unit_rms(newton_schulz(X, steps, beta), np.sum(np.any(X, axis=1)))
