"""Formulas for the mean and the variance of members, and the paper's claim."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skextra.ensemble import (
    RFEnsembleRegressor,
    effective_ridge,
    gaussian_feature_variance,
    rf_kernel,
)

RNG = np.random.RandomState(0)
X, X_TEST, Y = RNG.randn(20, 3), RNG.randn(4, 3), RNG.randn(20)
K, K_TEST = rf_kernel(X, feature_map="fourier"), rf_kernel(X_TEST, X, "fourier")
DIAG = np.ones(4)


def gaussian_members(n_components, alpha, n_draws=20_000):
    """Predictions of members with exactly Gaussian features, (n_draws, n_test)."""
    joint = np.block(
        [[K, K_TEST.T], [K_TEST, rf_kernel(X_TEST, feature_map="fourier")]]
    )
    values, vectors = np.linalg.eigh(joint)
    root = vectors * np.sqrt(np.maximum(values, 0))
    rng = np.random.RandomState(1)
    out = []
    for _ in range(n_draws):
        F = root @ rng.randn(24, n_components) / np.sqrt(n_components)
        G = F[:20] @ F[:20].T + alpha * np.eye(20)
        out.append(F[20:] @ F[:20].T @ np.linalg.solve(G, Y))
    return np.array(out)


def test_ridgeless_variance_is_exact_for_gaussian_features():
    members = gaussian_members(60, 0.0)
    mean, variance = gaussian_feature_variance(K, K_TEST, DIAG, Y, 60)
    assert_allclose(mean, K_TEST @ np.linalg.solve(K, Y), rtol=1e-6)
    standard_error = members.std(axis=0) / np.sqrt(len(members))
    assert np.all(np.abs(members.mean(axis=0) - mean) < 5 * standard_error)
    assert_allclose(members.var(axis=0), variance, rtol=0.06)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0])
@pytest.mark.parametrize(
    ("n_components", "rtol"), [(10, 0.12), (40, 0.07), (100, 0.07)]
)
def test_ridge_variance_matches_monte_carlo(n_components, rtol, alpha):
    members = gaussian_members(n_components, alpha, 4000)
    mean, variance = gaussian_feature_variance(K, K_TEST, DIAG, Y, n_components, alpha)
    assert_allclose(members.var(axis=0), variance, rtol=rtol + 0.07)
    error = np.abs(members.mean(axis=0) - mean) / members.std(axis=0)
    assert np.all(error < 0.05 + 4 / np.sqrt(4000))


@pytest.mark.parametrize(("n_components", "alpha"), [(10, 0.0), (10, 0.1), (100, 1.0)])
def test_ridge_variance_is_its_formula(n_components, alpha):
    d = np.linalg.eigvalsh(K).clip(0)
    t = effective_ridge(d, n_components, alpha)
    slope = 1 / (1 - np.sum(d**2 / (t + d) ** 2) / n_components)
    A = np.linalg.inv(K + t * np.eye(20))
    s2 = DIAG - np.einsum("ij,jk,ik->i", K_TEST, 2 * A - A @ K @ A, K_TEST)
    q, c = Y @ A @ K @ A @ Y, t * K_TEST @ A @ A @ Y
    expected = slope / n_components * (s2 * q + c**2)
    mean, variance = gaussian_feature_variance(K, K_TEST, DIAG, Y, n_components, alpha)
    assert_allclose(mean, K_TEST @ A @ Y, rtol=1e-8)
    assert_allclose(variance, expected, rtol=1e-8)


def test_repeated_rows_count_as_one():
    """Ridgeless members see the mean of the targets of equal rows."""
    index = np.repeat(np.arange(20), 2)
    y = np.repeat(Y, 2) + np.tile([0.3, -0.3], 20)
    repeated = gaussian_feature_variance(
        K[np.ix_(index, index)], K_TEST[:, index], DIAG, y, 60
    )
    once = gaussian_feature_variance(K, K_TEST, DIAG, Y, 60)
    assert_allclose(repeated[0], once[0], rtol=1e-5)
    assert_allclose(repeated[1], once[1], rtol=1e-4)
    assert effective_ridge([1.0, 1e-18], 1, 0.0) == 0
    assert effective_ridge([1.0, -1e-18], 1, 0.0) == 0


def test_variance_of_several_targets_is_that_of_each():
    targets = np.column_stack([Y, Y**2])
    both = gaussian_feature_variance(K, K_TEST, DIAG, targets, 50, 0.1)
    for t in range(2):
        one = gaussian_feature_variance(K, K_TEST, DIAG, targets[:, t], 50, 0.1)
        assert_allclose(both[0][:, t], one[0])
        assert_allclose(both[1][:, t], one[1])


def test_limits_of_the_variance():
    for n_components in (20, 21):
        variance = gaussian_feature_variance(K, K_TEST, DIAG, Y, n_components)[1]
        assert np.all(np.isinf(variance))
    assert np.all(gaussian_feature_variance(K, K_TEST, DIAG, Y, np.inf, 0.1)[1] == 0)
    assert np.all(gaussian_feature_variance(K, K_TEST, DIAG, 0 * Y, 20)[1] == 0)
    # a training row is predicted exactly by every interpolating member
    at_train = gaussian_feature_variance(K, K, np.ones(20), Y, 60)[1]
    assert np.all(at_train < 1e-6)
    # below the number of rows, the effective ridge is positive
    assert np.isfinite(gaussian_feature_variance(K, K_TEST, DIAG, Y, 10)[1]).all()


@given(
    st.lists(st.floats(0, 1e3), min_size=1, max_size=20),
    st.integers(1, 40),
    st.sampled_from([0.0, 1e-8, 1e-3, 10.0]),
)
def test_effective_ridge_solves_its_equation(eigvals, n_components, alpha):
    d = np.array(eigvals)
    t = effective_ridge(d, n_components, alpha)
    assert t >= alpha
    if t > 0:
        right = alpha + t / n_components * np.sum(d / (t + d))
        if alpha > 0:
            assert_allclose(t, right, rtol=1e-9)
        else:  # directions below rounding are left out
            assert_allclose(t, right, rtol=1e-9 + 30 * 2.3e-16 * d.max() / t)
    else:
        assert n_components >= np.sum(d > d.size * 2.3e-16 * d.max())


def test_effective_ridge_of_a_narrow_model_is_the_positive_root():
    d = np.linalg.eigvalsh(rf_kernel(np.random.RandomState(3).randn(12, 2)))
    t = effective_ridge(np.maximum(d, 0), 6, 1e-4)
    assert t > 1e-3
    assert effective_ridge(d.clip(0), np.inf, 0.5) == 0.5
    assert effective_ridge(np.zeros(3), 2, 0.0) == 0
    widths = [effective_ridge(d.clip(0), n, 0.1) for n in (2, 4, 8, 1000, 10**6)]
    assert np.all(np.diff(widths) < 0) and widths[-1] < 0.1001


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1.0], 3, 0.1), "must not be negative"),
        (([[1.0]], 3, 0.1), "1-D"),
        (([1.0], 2.5, 0.1), "n_components"),
        (([1.0], 0, 0.1), "n_components"),
        (([1.0], 3, -0.1), "alpha"),
        (([np.nan], 3, 0.1), "NaN"),
    ],
)
def test_effective_ridge_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        effective_ridge(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": K[:, :3]}, "K must be symmetric"),
        ({"K": np.triu(K)}, "K must be symmetric"),
        ({"K": 1e-9 * np.triu(K)}, "K must be symmetric"),
        ({"K": -K}, "K must be positive semi-definite"),
        ({"diag_test": -DIAG}, "diag_test not negative"),
        ({"K_test": K_TEST[:, :5]}, "K_test must be"),
        ({"diag_test": DIAG[:2]}, "inconsistent numbers"),
        ({"y": Y[:4]}, "inconsistent numbers"),
        ({"y": np.where(Y > 0, np.inf, Y)}, "infinity"),
        ({"alpha": np.nan}, "alpha"),
    ],
)
def test_gaussian_feature_variance_refuses(change, message):
    arguments = {"K": K, "K_test": K_TEST, "diag_test": DIAG, "y": Y, "n_components": 9}
    with pytest.raises(ValueError, match=message):
        gaussian_feature_variance(**(arguments | change))


@pytest.mark.parametrize(
    ("n_components", "expected"), [(1, 7 / 24), (2, 7 / 48), (3, 0.0955), (4, 0.0707)]
)
def test_uncorrelated_features_are_not_enough_for_the_papers_equality(
    n_components, expected
):
    """E[w_perp W^T (W W^T)^-1] for N = 1, by enumeration: O(1/D) and not 0."""
    w = np.array([3, -3, 4, -4]) / np.sqrt(12.5)
    perp = np.where(np.abs(w) < 1, 4 / 3, -3 / 4) * w
    assert_allclose(
        [perp.mean(), (perp**2).mean(), (w * perp).mean()], [0, 1, 0], atol=1e-15
    )
    total = np.mean(
        [
            (perp[list(draw)] @ w[list(draw)]) / (w[list(draw)] @ w[list(draw)])
            for draw in product(range(4), repeat=n_components)
        ]
    )
    assert_allclose(total, expected, atol=6e-5)


def test_infinite_ensemble_of_narrow_members_is_not_the_infinite_width():
    """One training row, erf features of width 4: the mean is 0.432, the limit 0.447."""
    est = RFEnsembleRegressor(
        40_000, 4, feature_map="erf", weight_scale=1.0, center=False,
        fit_intercept=False, alpha=0.0, random_state=0,
    ).fit([[0.5]], [1.0])  # fmt: skip
    members = est.predict_members([[-0.7]])[:, 0]
    standard_error = members.std() / np.sqrt(len(members))
    assert abs(members.mean() - 0.43233) < 5 * (standard_error + 0.0004)
    assert_allclose(est.predict_infinite([[-0.7]]), 0.44717, atol=1e-5)
    assert abs(members.mean() - 0.44717) > 5 * standard_error


def test_width_bias_of_one_row_shrinks_as_one_over_the_width():
    """D x bias tends to -0.0476 for erf at -0.7; Richardson removes that term."""
    means, errors = [], []
    for n_components in (32, 64):
        est = RFEnsembleRegressor(
            12_000, n_components, feature_map="erf", weight_scale=1.0, center=False,
            fit_intercept=False, alpha=0.0, random_state=1,
        ).fit([[0.5]], [1.0])  # fmt: skip
        y_mean, y_std = est.predict([[-0.7]], return_std=True, std="ensemble")
        means.append(y_mean[0])
        errors.append(y_std[0])
    bias = np.array(means) - 0.44717
    assert np.all(
        np.abs(bias * [32, 64] + 0.0476) < 5 * np.array(errors) * [32, 64] + 0.01
    )
    richardson = 2 * means[1] - means[0] - 0.44717
    assert abs(richardson) < 5 * (2 * errors[1] + errors[0]) + 2e-4
