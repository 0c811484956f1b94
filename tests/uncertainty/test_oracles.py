"""Known numbers: conjugate models, and the two demonstrations of the paper."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.special import roots_hermitenorm, roots_jacobi
from scipy.stats import bernoulli, beta, norm
from scipy.stats import t as student

from skextra.uncertainty import (
    bald,
    batch_bald,
    epig,
    expected_uncertainty_reduction,
    mixture_decomposition,
    uncertainty_decomposition,
)
from tests.uncertainty import reference


def beta_members(a, b, n_nodes=60):
    """Beliefs (1, K, 2) and weights of Beta(a, b), by Gauss-Jacobi quadrature."""
    nodes, weights = roots_jacobi(n_nodes, b - 1, a - 1)
    chance = (1 + nodes) / 2
    return np.stack([chance, 1 - chance], axis=-1)[None], weights / weights.sum()


def test_beta_two_five():
    p, weights = beta_members(2, 5)
    result = uncertainty_decomposition(p, weights=weights)
    assert_allclose(result.total, 0.59826959, atol=5e-9)
    assert_allclose(result.reducible, 0.06493626, atol=1e-7)
    total, irreducible = reference.beta_entropies(2, 5)
    assert_allclose(result.total, total, rtol=1e-12)
    assert_allclose(result.irreducible, irreducible, atol=1e-7)
    one_step = expected_uncertainty_reduction(p, p, weights=weights)
    assert_allclose(one_step, 0.00758356, atol=5e-9)
    result = uncertainty_decomposition(p, "brier", weights=weights)
    assert_allclose(result.total, 0.40816327, atol=5e-9)
    assert_allclose(result.reducible, 0.05102041, atol=5e-9)
    one_step = expected_uncertainty_reduction(p, p, "brier", weights=weights)
    assert_allclose(one_step, 0.00637755, atol=5e-9)


@pytest.mark.parametrize("n_steps", [1, 2, 7])
def test_steps_are_those_of_conjugate_updates(n_steps):
    a, b = 2.0, 5.0
    p, weights = beta_members(a, b)
    expected = {"log_loss": 0.0, "brier": 0.0, "zero_one": 0.0}
    from scipy.stats import betabinom

    for k in range(n_steps + 1):
        m = (a + k) / (a + b + n_steps)
        mass = betabinom(n_steps, a, b).pmf(k)
        expected["log_loss"] -= mass * (m * np.log(m) + (1 - m) * np.log(1 - m))
        expected["brier"] += mass * 2 * m * (1 - m)
        expected["zero_one"] += mass * min(m, 1 - m)
    for loss, after in expected.items():
        before = uncertainty_decomposition(p, loss, weights=weights).total
        got = expected_uncertainty_reduction(
            p, p, loss, weights=weights, n_steps=n_steps
        )
        assert_allclose(got, before - after, atol=1e-12)


def test_three_classes_of_any_chance():
    # Dirichlet(1, 1, 1) by stick breaking: Beta(1, 2), then Beta(1, 1).
    first, w1 = beta_members(1, 2, 40)
    second, w2 = beta_members(1, 1, 40)
    x, y = first[0, :, 0][:, None], second[0, :, 0][None]
    p = np.stack([x + 0 * y, (1 - x) * y, (1 - x) * (1 - y)], axis=-1).reshape(1, -1, 3)
    weights = np.outer(w1, w2).ravel()
    result = uncertainty_decomposition(p, weights=weights)
    assert_allclose(result.total, np.log(3), rtol=1e-12)
    assert_allclose(result.irreducible, 5 / 6, atol=1e-5)
    assert_allclose(reference.dirichlet_entropies([1, 1, 1]), (np.log(3), 5 / 6))


def test_bias_of_few_members():
    rng = np.random.default_rng(0)
    alpha = [0.3, 2, 5]
    total, irreducible = reference.dirichlet_entropies(alpha)
    assert_allclose(total - irreducible, 0.1047, atol=5e-5)
    # Number of members: bias as it is, and after the jackknife.
    table = {
        5: (-0.0234, -0.0008),
        10: (-0.0118, -0.0001),
        20: (-0.0060, -0.0001),
        50: (-0.0023, 0.0001),
    }
    for n_members, biases in table.items():
        p = rng.dirichlet(alpha, size=(12000, n_members))
        for correction, bias in zip((None, "jackknife"), biases):
            got = uncertainty_decomposition(p, bias_correction=correction).reducible
            error = got.std() / np.sqrt(len(got))
            # Both numbers are Monte Carlo means.
            assert abs(got.mean() - (total - irreducible) - bias) < 4 * error + 3e-4


# ----------------------------------------------------------- the paper's demonstrations


def printed(value, digits):
    """Value as a table prints it."""
    return float(f"{value:.{digits - 1}e}")


DISCRETE = {
    1: (2.26e-3, 6.46e-7),
    10: (1.69e-3, 5.95e-6),
    100: (1.02e-4, 1.57e-8),
    1000: (1.29e-6, 2.4e-12),
}
CONTINUOUS = {
    1: (0.698, 2.43e-2),
    10: (9.22e-2, 4.02e-4),
    100: (6.38e-3, 5.39e-7),
    1000: (5.87e-4, 5.8e-10),
}


@pytest.mark.parametrize("n", DISCRETE)
def test_demonstration_with_a_coin(n):
    """Estimates of the two errors of BALD: as predictive and as parameter gain."""
    of_prediction, of_parameter = [], []
    seen = {}
    for seed in range(1, 51):
        heads = bernoulli(0.5).rvs(n, random_state=seed).sum()
        a, b = 5 + heads, 5 + n - heads
        if heads not in seen:
            p, weights = beta_members(a, b, 30)
            seen[heads] = uncertainty_decomposition(p, weights=weights)
        result = seen[heads]
        after = (beta(a + 1, b).entropy() + beta(a, b + 1).entropy()) / 2
        gain = beta(a, b).entropy() - after
        of_prediction.append((np.log(2) - result.irreducible[0]) ** 2)
        of_parameter.append((gain - result.reducible[0]) ** 2)
    for errors, published in zip((of_prediction, of_parameter), DISCRETE[n]):
        digits = 2 if published == 2.4e-12 else 3
        assert_allclose(printed(np.mean(errors), digits), published, rtol=1e-9)


@pytest.mark.parametrize("n", CONTINUOUS)
def test_demonstration_with_a_normal_distribution(n):
    nodes, node_weights = roots_hermitenorm(200)
    node_weights = node_weights / node_weights.sum()
    of_prediction, of_parameter = [], []
    for seed in range(1, 51):
        a, b, k, m = 1.0, 5.0, 1.0, 0.0
        for z in norm(1, 1).rvs(n, random_state=seed):
            a, b, k, m = reference.normal_gamma_posterior(a, b, k, m, z)
        total, irreducible = reference.normal_gamma_entropies(a, b, k)
        after = reference.normal_gamma_posterior(a, b, k, m, 1 + nodes)
        gain = reference.entropy_of_normal_gamma(a, b, k) - (
            node_weights @ reference.entropy_of_normal_gamma(*after[:3])
        )
        of_prediction.append((norm.entropy() - irreducible) ** 2)
        of_parameter.append((gain - (total - irreducible)) ** 2)
    for errors, published in zip((of_prediction, of_parameter), CONTINUOUS[n]):
        digits = 2 if published == 5.8e-10 else 3
        assert_allclose(printed(np.mean(errors), digits), published, rtol=1e-9)


def test_gains_coincide_where_outcomes_come_from_the_model():
    # Of a normal distribution: what one outcome tells of mean and precision is BALD.
    a, b, k, m = 3.0, 7.0, 4.0, 0.5
    total, irreducible = reference.normal_gamma_entropies(a, b, k)
    predictive = student(2 * a, m, np.sqrt(b * (k + 1) / (a * k)))
    z = predictive.ppf((np.arange(400000) + 0.5) / 400000)
    after = reference.normal_gamma_posterior(a, b, k, m, z)
    gain = reference.entropy_of_normal_gamma(a, b, k) - np.mean(
        reference.entropy_of_normal_gamma(*after[:3])
    )
    assert_allclose(gain, total - irreducible, atol=1e-5)
    assert_allclose(total - irreducible, 0.19644, atol=5e-6)
    # Of a coin.
    a, b = 3, 7
    p, weights = beta_members(a, b)
    heads, tails = beta(a + 1, b).entropy(), beta(a, b + 1).entropy()
    gain = beta(a, b).entropy() - (0.3 * heads + 0.7 * tails)
    assert_allclose(bald(p, weights=weights), gain, atol=1e-7)
    assert_allclose(gain, 0.0469, atol=5e-5)


def test_normal_members_of_a_normal_gamma_posterior():
    # Means given the precision by Gauss-Hermite, precisions by quantiles.
    a, b, k, m = 6.0, 7.0, 4.0, 0.5
    from scipy.stats import gamma

    nodes, node_weights = roots_hermitenorm(12)
    precision = gamma(a, scale=1 / b).ppf((np.arange(40) + 0.5) / 40)
    mean = m + nodes / np.sqrt(k * precision[:, None])
    var = np.broadcast_to(1 / precision[:, None], mean.shape)
    weights = np.tile(node_weights, 40)
    result = mixture_decomposition(
        [mean.ravel()], [var.ravel()], "log_loss", weights=weights
    )
    total, irreducible = reference.normal_gamma_entropies(a, b, k)
    assert_allclose(result.total, total, atol=5e-3)
    assert_allclose(result.irreducible, irreducible, atol=5e-3)


# ---------------------------------------------------------------- other formulas of EPIG


def test_epig_from_its_formula_in_torch():
    """The Kullback-Leibler divergence of the joint from the product of marginals."""
    rng = np.random.default_rng(0)
    pool, target = (rng.dirichlet(np.ones(c), size=(n, 9)) for n, c in ((7, 4), (5, 3)))
    x, z = torch.tensor(pool), torch.tensor(target)
    joint = torch.einsum("nkc,tkd->ntcd", x, z) / 9
    product = torch.einsum("nc,td->ntcd", x.mean(1), z.mean(1))
    pairs = (joint * (joint / product).log()).sum((-1, -2))
    assert_allclose(epig(pool, target), pairs.mean(1).numpy(), rtol=1e-11)
    weights = torch.tensor([1.0, 2, 3, 4, 5], dtype=torch.float64)
    weighted = (pairs * weights / weights.mean()).mean(1)
    got = epig(pool, target, target_weights=weights.numpy())
    assert_allclose(got, weighted.numpy(), rtol=1e-11)
    conditional = -(x * x.log()).sum(-1).mean(1)
    marginal = -(x.mean(1) * x.mean(1).log()).sum(-1)
    assert_allclose(bald(pool), (marginal - conditional).numpy(), rtol=1e-11)


def test_zeros_are_no_trouble():
    p = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    assert_allclose(epig(p, p[:1]), [np.log(2), 0], atol=1e-15)
    assert_allclose(bald(p), [np.log(2), 0], atol=1e-15)
    _, scores = batch_bald(p, 2)
    assert_allclose(scores, np.log(2))


def test_a_label_at_the_same_input_is_not_bald():
    # What a label tells of another label there is less than what it tells of the member.
    p, weights = beta_members(2, 5)
    assert epig(p, p, weights=weights) < 0.2 * bald(p, weights=weights)
