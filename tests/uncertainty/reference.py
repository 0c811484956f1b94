"""Uncertainties written from their definitions, slowly: loops, enumeration, quadrature."""

from itertools import product

import numpy as np
from scipy.integrate import quad
from scipy.special import digamma, gammaln, ndtr
from scipy.stats import entropy

OUTCOMES = np.array([-1.0, 0.5, 2.0, 3.5, 5.0])
COSTS = np.array(
    [
        [0.0, 2.0, 1.0, 4.0, 1.0],
        [1.0, 0.0, 3.0, 1.0, 2.0],
        [2.0, 1.0, 0.0, 0.5, 5.0],
        [0.8, 0.8, 0.8, 0.8, 0.8],
    ]
)


# ------------------------------------------------------------------ beliefs over classes


def shares(weights, n):
    weights = np.ones(n) if weights is None else np.asarray(weights, float)
    return weights / weights.sum()


def quantile(p, outcomes, tau):
    """Lowest outcome whose distribution function reaches tau."""
    order = np.argsort(outcomes)
    below = np.cumsum(np.asarray(p)[order])
    return np.asarray(outcomes)[order][np.argmax(below > tau - 1e-13)]


def pinball(action, outcome, tau):
    rest = outcome - action
    return tau * rest if rest > 0 else (tau - 1) * rest


def expected_pinball(p, outcomes, tau):
    action = quantile(p, outcomes, tau)
    return sum(m * pinball(action, z, tau) for m, z in zip(p, outcomes))


def variance(p, z):
    return p @ (z - p @ z) ** 2


def half_distance(p, z):
    return (
        sum(p[i] * p[j] * abs(z[i] - z[j]) for i, j in product(range(len(z)), repeat=2))
        / 2
    )


def bregman(p, z, phi, w):
    weight = p @ w(z)
    if weight == 0:
        return 0.0
    action = p @ (w(z) * z) / weight
    return p @ (w(z) * phi(z)) - weight * phi(action)


def uncertainty(p, loss, costs=None, outcomes=None):
    """h of one belief (C,). Losses of numbers are pairs (name, parameters)."""
    p = np.asarray(p, float)
    name, *parameters = loss if isinstance(loss, tuple) else (loss,)
    if name == "log_loss":
        return entropy(p)
    if name == "brier":
        return 1 - sum(m**2 for m in p)
    if name == "zero_one":
        return 1 - max(p)
    if name == "cost":
        return min(sum(c * m for c, m in zip(row, p)) for row in costs)
    z = np.asarray(outcomes, float)
    if name == "squared_error":
        return variance(p, z)
    if name == "absolute_error":
        return 2 * expected_pinball(p, z, 0.5)
    if name == "pinball":
        return expected_pinball(p, z, *parameters)
    if name == "crps":
        return half_distance(p, z)
    return bregman(p, z, *parameters)


def decomposition(p, weights, h):
    """Total, irreducible and reducible of one belief (K, C)."""
    weights = shares(weights, len(p))
    total = h(weights @ p)
    irreducible = sum(v * h(member) for v, member in zip(weights, p))
    return total, irreducible, total - irreducible


def reduction(labels, target, weights, h):
    """Reduction of h at one target (K, Z) by label tables: a list of points (K, C).

    Every joint label is drawn from the model, and reweights the members.
    """
    weights = shares(weights, len(target))
    after = 0.0
    for classes in product(*(range(point.shape[1]) for point in labels)):
        likelihood = weights.copy()
        for point, c in zip(labels, classes):
            likelihood = likelihood * point[:, c]
        mass = likelihood.sum()
        if mass > 0:
            after += mass * h((likelihood / mass) @ target)
    return h(weights @ target) - after


def pairwise(p_pool, p_target, weights, h, n_steps=1):
    return np.array(
        [[reduction([x] * n_steps, t, weights, h) for t in p_target] for x in p_pool]
    )


def joint_information(points, weights):
    """Mutual information of the labels of points (b, K, C) and the member."""
    weights = shares(weights, points.shape[1])
    joint = [
        np.prod([point[:, c] for point, c in zip(points, classes)], axis=0)
        for classes in product(range(points.shape[2]), repeat=len(points))
    ]
    conditional = [entropy(point, axis=1) for point in points]
    return entropy([weights @ odds for odds in joint]) - weights @ sum(conditional)


def greedy(value, n_points, batch_size):
    """Indices and values of points added one by one, the lowest of equal ones."""
    chosen, values = [], []
    for _ in range(batch_size):
        rest = [i for i in range(n_points) if i not in chosen]
        each = [value([*chosen, i]) for i in rest]
        best = int(np.argmax(np.round(each, 12)))
        chosen.append(rest[best])
        values.append(each[best])
    return chosen, values


# --------------------------------------------------------------- mixtures of normals


def density(z, mean, std, weights):
    r = (z - np.asarray(mean)) / std
    return np.exp(-(r**2) / 2) @ (weights / std) / np.sqrt(2 * np.pi)


def distribution(z, mean, std, weights):
    return ndtr((z - np.asarray(mean)) / std) @ weights


def integral(function, mean, std):
    """Integral of what vanishes far from all members."""
    edges = np.unique(np.add.outer(mean, np.outer(std, [-12, -4, 0, 4, 12])))
    return sum(
        quad(function, a, b, epsabs=1e-13, epsrel=1e-12)[0]
        for a, b in zip(edges, edges[1:])
    )


def mixture_expectation(function, mean, std, weights):
    return integral(lambda z: function(z) * density(z, mean, std, weights), mean, std)


def mixture_entropy(mean, std, weights):
    def term(z):
        d = density(z, mean, std, weights)
        return -d * np.log(d) if d > 0 else 0.0

    return integral(term, mean, std)


def mixture_crps(mean, std, weights):
    def term(z):
        F = distribution(z, mean, std, weights)
        return F * (1 - F)

    return integral(term, mean, std)


# -------------------------------------------------------------------------- closed forms


def beta_entropies(a, b):
    """Entropy of the mean and mean entropy of a Bernoulli with a Beta(a, b) chance."""
    m = a / (a + b)
    mean = digamma(a + b + 1) - (a * digamma(a + 1) + b * digamma(b + 1)) / (a + b)
    return entropy([m, 1 - m]), mean


def dirichlet_entropies(alpha):
    alpha = np.asarray(alpha, float)
    m = alpha / alpha.sum()
    return entropy(m), digamma(alpha.sum() + 1) - m @ digamma(alpha + 1)


def entropy_of_gamma(a, rate):
    return a - np.log(rate) + gammaln(a) + (1 - a) * digamma(a)


def entropy_of_student(df, scale):
    half = (df + 1) / 2
    log_beta = gammaln(df / 2) + gammaln(0.5) - gammaln(half)
    spread = np.log(np.sqrt(df)) + log_beta + np.log(scale)
    return half * (digamma(half) - digamma(df / 2)) + spread


def normal_gamma_posterior(a, b, k, m, z):
    """Parameters after one outcome, or after each of many (last axis: outcomes)."""
    return (
        a + 0.5,
        b + k * (z - m) ** 2 / (2 * (k + 1)),
        k + 1,
        (k * m + z) / (k + 1),
    )


def normal_gamma_entropies(a, b, k):
    """Entropy of the predictive (Student's t) and mean entropy of a normal member."""
    total = entropy_of_student(2 * a, np.sqrt(b * (k + 1) / (a * k)))
    return total, (np.log(2 * np.pi) + 1 - digamma(a) + np.log(b)) / 2


def entropy_of_normal_gamma(a, b, k):
    """Entropy of (mean, precision): that of Gamma(a, rate b), and of the mean given it."""
    mean_log_precision = digamma(a) - np.log(b)
    given = (np.log(2 * np.pi * np.e) - np.log(k) - mean_log_precision) / 2
    return entropy_of_gamma(a, b) + given
