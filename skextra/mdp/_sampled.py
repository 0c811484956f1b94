"""Solvers for a model that can only be sampled: generators of certified iterates.

All certificates of all steps hold together with probability 1 - delta. The generators
end when another step would draw more than `budget` next states.
"""

from itertools import count, islice

import numpy as np

from skextra.mdp._exact import auto
from skextra.mdp._model import Step, certificate, index_arrays

FIRST_DRAWS = 32  # of each pair, in the first round of the plug-in
SOLVER_STEPS = 200  # in which the plug-in's estimate is solved, or left as it is


def savia(model, sampler, tol, delta, budget, variant="improved"):
    """Yield the steps of SAVIA+: runs of 1, 2, 4, ... anchored iterations.

    T^k, the rewards and a sum of sampled differences, stands for the backup T Q^k; its
    error stays below `error` in every step (Azuma's inequality; Hoeffding's lemma and
    Ville's inequality if "improved").

    "paper": all runs start from 0; one with sp(T^n - Q^n) <= 14 error is the last, and
    the policy is greedy in Q^n. "improved": smaller constants; any step may be the last,
    the policy is greedy in T^k, and the certificate is for states and takes the error
    that the draws can have made. A run starts where the last one ended if that
    narrowed the certificate to 0.9 of the run before, not more than four times in a
    row, for a start from 0 has the better worst case.
    """
    improved = variant == "improved"
    error = (0.2 if improved else 1 / 16) * tol
    start = np.zeros(model.n_pairs)
    width_before, n_warm = np.inf, 0
    for i in count():
        n = 2**i
        if improved:
            alpha = np.log(2 * model.n_pairs * (i + 1) * (i + 2) / delta)
        else:
            shares = slow_weight(5, i) / delta
            alpha = np.log(2 * model.n_pairs * (n + 1) * shares)
        T, h, spread = model.rewards, np.zeros(model.n_states), 0.0
        for k in range(n + 1):
            b = k / (k + 2)
            Q = (1 - b) * start + b * T
            h, h_before = model.best(Q), h
            difference = h - h_before
            width = span(difference, model.ends)
            least = (
                alpha * slow_weight(1.055 if improved else 5, k) * (width / error) ** 2
            )
            size = np.maximum(np.ceil(least), 1)
            budget -= size * model.n_pairs
            if budget < 0:
                return
            size = int(size)
            T = T + model.discount * sampler.means(difference, size)
            spread += width**2 / size
            n_samples = size * model.n_pairs
            if improved:
                radius = error / 2 + alpha * spread / (4 * error)
                step = certified(model, h, model.best(T) - h, radius, T, n_samples)
            else:
                change = T - Q
                # Reported as q_: Q, by a constant as large as T.
                greedy_in_Q = Q + (change.min() + change.max()) / 2
                step = certified(model, h, change, error, greedy_in_Q, n_samples)
                step = step._replace(stops=k == n)
            yield step
        width = step.high - step.low
        warm = improved and i > 0 and width < 0.9 * width_before and n_warm < 4
        start, n_warm = (Q, n_warm + 1) if warm else (np.zeros(model.n_pairs), 0)
        width_before = width


def plug_in(model, sampler, tol, delta, budget, n_jobs=None):
    """Yield rounds that solve an estimated model and certify it with fresh draws.

    Each round draws as many next states as all before. It solves the model that they
    had given, and then backs its h up with the new draws alone, of which h is
    independent: by Hoeffding's inequality no mean of `size` draws is off by more than
    sp(h) sqrt(ln(2 n_pairs / delta_i) / (2 size)).
    """
    size = int(min(FIRST_DRAWS, budget // (2 * model.n_pairs)))
    budget -= size * model.n_pairs
    drawn, h, n_samples = sampler.counts(size), None, size * model.n_pairs
    for i in count():
        budget -= size * model.n_pairs
        if budget < 0:
            return
        estimate = estimated(model, drawn, size)
        for step in islice(auto(estimate, n_jobs, h), SOLVER_STEPS):
            h = step.h
            if step.high - step.low <= tol / 10:
                break
        fresh = sampler.counts(size)
        q = model.rewards + model.discount * (fresh @ h) / size
        log_term = np.log(2 * model.n_pairs * (i + 1) * (i + 2) / delta)
        radius = model.discount * span(h, model.ends) * np.sqrt(log_term / (2 * size))
        n_samples += size * model.n_pairs
        yield certified(model, h, model.best(q) - h, radius, q, n_samples)
        drawn, n_samples, size = drawn + fresh, 0, 2 * size


def slow_weight(factor, k):
    """Return c_k = factor (k + 2) ln(k + 2)^2, whose inverses sum to 2.11 / factor."""
    return factor * (k + 2) * np.log(k + 2) ** 2


def span(values, ends):
    """Return max - min of values; where the process may end, of its value 0 too."""
    low, high = values.min(), values.max()
    return max(high, 0.0) - min(low, 0.0) if ends else high - low


def certified(model, h, change, radius, q, n_samples):
    """Return the step whose change T h - h is known within a radius."""
    bounds = certificate(model, h, change.min() - radius, change.max() + radius)
    return Step(h, *bounds, q=q, n_samples=n_samples)


def estimated(model, drawn, size):
    """Return the model whose probabilities are the shares of `size` draws."""
    return model._replace(**index_arrays(drawn), probabilities=drawn.data / size)
