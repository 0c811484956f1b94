"""Ways up the likelihood, by iterations that never go down."""

from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from skextra.phylo._rates import gamma_rates

ALPHA_RANGE = (0.02, 100.0)
PATIENCE, SLOW = 10, 0.9  # sweeps, and the ratio of their changes, before L-BFGS


class Step(NamedTuple):
    """Where a search is after some iterations."""

    lengths: np.ndarray
    loglik: float
    n_iter: int = 0
    converged: bool = False
    alpha: float | None = None


class Limits(NamedTuple):
    """Bounds of the lengths, and when to stop."""

    t_min: float
    t_max: float
    tol: float
    max_iter: int

    def clip(self, lengths):
        """Return the lengths within their bounds."""
        return np.clip(lengths, self.t_min, self.t_max)

    def next(self, old, lengths, loglik):
        """Return the step after ``old``, and the largest change of a correlation."""
        change = np.abs(np.exp(-2 * lengths) - np.exp(-2 * old.lengths)).max()
        still = loglik - old.loglik < 1e-9 * max(1.0, abs(loglik))
        converged = bool(change < self.tol and still)
        step = old._replace(
            lengths=lengths, loglik=loglik, n_iter=old.n_iter + 1, converged=converged
        )
        return step, change


def coordinate(problem, start, limits, slow=np.inf):
    """Yield a step for each sweep, until they settle, or shrink slower than ``slow``."""
    sweeps = problem.ascend(start.lengths, limits.t_min, limits.t_max)
    old, last = start, np.inf
    for lengths, loglik in islice(sweeps, limits.max_iter - start.n_iter):
        old, change = limits.next(old, lengths, loglik)
        yield old
        sluggish = old.n_iter - start.n_iter >= PATIENCE and change > slow * last
        if old.converged or sluggish:
            return
        last = change


def em(problem, start, limits):
    """Yield a step for each time that edges get their expected share of changes."""
    old = start
    while old.n_iter < limits.max_iter and not old.converged:
        _, gradient = problem.gradient(old.lengths)
        theta = np.exp(-2 * old.lengths)
        p = -np.expm1(-2 * old.lengths) / 2
        p += p * (1 - p) * gradient / (theta * problem.total)
        p = np.minimum(p, -np.expm1(-2 * limits.t_max) / 2)
        lengths = limits.clip(-np.log1p(-2 * p) / 2)
        old, _ = limits.next(old, lengths, problem.value(lengths))
        yield old


def lbfgs(problem, start, limits):
    """Yield the step to where L-BFGS-B ends."""
    if start.n_iter < limits.max_iter:
        end, _ = _quasi_newton(problem, problem.gradient, start, limits)
        if end.loglik < start.loglik:  # by rounding, where there was nothing to gain
            end = end._replace(lengths=start.lengths, loglik=start.loglik)
        yield end
        # A sweep takes the edges that have nothing to lose to their bounds.
        sweeps = problem.ascend(end.lengths, limits.t_min, limits.t_max)
        for lengths, loglik in islice(sweeps, limits.max_iter > end.n_iter):
            yield end._replace(lengths=lengths, loglik=loglik, n_iter=end.n_iter + 1)


def auto(problem, start, limits):
    """Yield sweeps, and L-BFGS where these are slow or may be caught.

    A sweep cannot leave an edge of length `t_max`: no message crosses it, so the edges
    around it have nothing to gain. There the search is made from the start again.
    """
    best = start
    for step in coordinate(problem, start, limits, SLOW):
        best = step
        yield best
    if not best.converged:
        for step in lbfgs(problem, best, limits):
            best = step
            yield best
    if (best.lengths >= limits.t_max).any():
        for step in lbfgs(problem, start._replace(n_iter=best.n_iter), limits):
            better = step if step.loglik > best.loglik else best
            yield better._replace(n_iter=step.n_iter)


SOLVERS = {"auto": auto, "coordinate": coordinate, "em": em, "lbfgs": lbfgs}


def _quasi_newton(problem, value_and_gradient, start, limits, more=(), bounds=()):
    """Maximise over the lengths, and more variables, by L-BFGS-B.

    The variables are square roots of lengths: the curvature of a length that is a
    count of changes is the same, in its root, where it is small as where it is large.
    """
    n = len(start.lengths)

    def loss(x):
        value, gradient = value_and_gradient(limits.clip(x[:n] ** 2), *x[n:])
        gradient[:n] *= 2 * x[:n]
        return -value / problem.total, -gradient / problem.total

    box = [tuple(np.sqrt([limits.t_min, limits.t_max]))] * n + list(bounds)
    result = minimize(
        loss,
        np.append(np.sqrt(start.lengths), more),
        jac=True,
        method="L-BFGS-B",
        bounds=box,
        options={
            "maxiter": limits.max_iter - start.n_iter,
            "maxcor": 30,
            "maxls": 40,
            "ftol": 0,
            "gtol": 1e-8,
        },
    )
    # Rounding may stop a search that is at its end, so its own word is not enough.
    still = result.x - np.clip(result.x - result.jac, *np.transpose(box))
    step = start._replace(
        lengths=limits.clip(result.x[:n] ** 2),
        loglik=float(-result.fun * problem.total),
        n_iter=start.n_iter + result.nit,
        converged=bool(result.success or np.abs(still).max() < 1e-6),
    )
    return step, result.x[n:]


def with_best_alpha(problem, start, limits):
    """Maximise over the lengths and the shape of the gamma distribution of rates.

    The rates of the problem are then of that shape.
    """
    n_categories = len(problem.rates)

    def value_and_gradient(lengths, log_alpha):
        low, high, problem.rates = (
            gamma_rates(np.exp(log_alpha + shift), n_categories)
            for shift in (-1e-4, 1e-4, 0.0)
        )
        value, by_length, by_rate = problem.gradients(lengths)
        return value, np.append(by_length, by_rate @ (high - low) / 2e-4)

    step, (log_alpha,) = _quasi_newton(
        problem,
        value_and_gradient,
        start,
        limits,
        more=(0.0,),  # a shape of 1
        bounds=[tuple(np.log(ALPHA_RANGE))],
    )
    alpha = float(np.clip(np.exp(log_alpha), *ALPHA_RANGE))
    problem.rates = gamma_rates(alpha, n_categories)
    return step._replace(alpha=alpha, loglik=problem.value(step.lengths))


def climb(problem, lengths, solver, limits, alpha):
    """Yield the start and the steps from it; several rates without alpha have its best."""
    start, known = Step(lengths, problem.value(lengths), alpha=alpha), True
    if alpha is None and len(problem.rates) > 1:
        start = with_best_alpha(problem, start, limits)
        known = start.converged
    start = start._replace(converged=False)
    yield start
    for step in SOLVERS[solver](problem, start, limits):
        yield step._replace(converged=step.converged and known)


def search(problem, starts, solver, limits, alpha):
    """Yield the best step so far after each iteration from each start."""
    best = None
    for lengths in starts:
        for step in climb(problem, lengths, solver, limits, alpha):
            ahead = best is None or step.loglik > best.loglik + 1e-9 * abs(best.loglik)
            yield step if ahead else best
        best = step if ahead else best
