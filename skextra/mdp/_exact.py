"""Solvers for a known model: generators of iterates, each with its certificate."""

from functools import partial
from itertools import count, islice

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from skextra.mdp._model import Halving, Sweeper

DAMPING = 0.5  # below 1, so that periodic chains settle too
FAST = 0.9  # the same where aperiodic chains are more usual
EVALUATIONS = 50  # sweeps of a policy alone, at most
PATIENCE = 500  # iterations in which "auto" expects the certificate to halve
FEW = 50  # iterations after which it turns to policy iteration, if that is cheap
SMALL = 5000  # states, of which even a dense matrix has factors of moderate size
NEARLY_ONE = 1 - 1e-6  # a discount of which linear equations are well conditioned
REFINEMENTS = 30  # solves for the value of a policy, at most
PIVOTS = 5  # iterations of HiGHS for each pair, at most, in "auto"
SLACK = 1e-9  # by which the gain of the first linear programme may be too small
BACKUP = 1.0, 0.0, 0.0  # the weights of T h alone


def damped(model, n_jobs=None, h=None):
    """Yield h <- h + (T h - h) / 2, less a constant that keeps h in place.

    The constant does not matter, for T (h + c) = T h + discount c, unless the process
    may end.
    """
    sweep = Sweeper(model, n_jobs)
    h = np.zeros(model.n_states) if h is None else h
    shift = 0.0
    while True:
        new, step = sweep(h, (DAMPING, 1 - DAMPING, 0.0), shift=shift)
        yield step
        if not model.ends:
            shift = (step.high + step.low) / 2 - (1 - model.discount) * h.mean()
        h = new


def anchored(model, n_jobs=None, h=None, restarts=True):
    """Yield Halpern's iterates, which are drawn to where they started.

    Average reward: h_k = (1 - b_k) h_0 + b_k T h_{k-1} with b_k = k / (k + 2), and
    sp(T h_n - h_n) <= 8 sp(h_0 - h*) / (n + 2). Discounted (Lee and Ryu, 2023):
    1 - b_k = 1 / sum_{i=0..k} discount^{-2i}. With restarts, each time the certificate
    has halved the iteration starts anew from where it is.
    """
    sweep = Sweeper(model, n_jobs)
    h = anchor = np.zeros(model.n_states) if h is None else h
    goal, shift, k = None, 0.0, 0
    while True:
        k += 1
        b = k / (k + 2) if model.discount == 1 else 1 - anchor_share(k, model.discount)
        new, step = sweep(h, (b, 0.0, 1 - b), anchor, shift)
        yield step
        width = step.high - step.low
        goal = width / 2 if goal is None else goal
        if restarts and width <= goal:
            anchor, goal, k = new, width / 2, 0
        if model.discount == 1:
            shift = (step.high + step.low) / 2
        h = new


def anchor_share(k, discount):
    """Return 1 / sum_{i=0..k} discount^{-2i}, a geometric sum."""
    rate = 2 * np.log(discount)
    return np.exp(rate * k) * np.expm1(rate) / np.expm1(rate * (k + 1))


def linear_program(model, n_jobs=None, h=None, max_iter=None):
    """Solve linear programmes with HiGHS, and yield policy iteration from there.

    Average reward: min g with g + h(s) - P h >= r, and then, for h is loose in states
    to which the best policy does not return, min sum h for this g, if that is bounded.
    Discounted: min sum h with h(s) - discount P h >= r. If HiGHS is limited to some
    iterations and fails, there are no steps.
    """
    scale = np.abs(model.rewards).max() or 1.0
    r, n_pairs = model.rewards / scale, model.n_pairs
    of_states = csr_array((np.ones(n_pairs), model.pair_states, np.arange(n_pairs + 1)))
    rows = of_states - model.discount * model.transition
    costs = np.ones(model.n_states)
    if model.discount == 1:
        with_g = hstack([rows, np.ones((n_pairs, 1))], format="csr")
        found = minimized(np.append(0 * costs, 1.0), with_g, r, 0, max_iter)
        if found.status == 0:
            visited = model.pair_states[found.ineqlin.marginals.argmin()]
            tight = minimized(costs, rows, r - found.fun - SLACK, visited, max_iter)
            found.x = tight.x if tight.status == 0 else found.x[:-1]
    else:
        found = minimized(costs, rows, r, None, max_iter)
    if found.status == 0:
        h = centered(model, scale * found.x)
        yield from policy_iteration(model, n_jobs, h)
    elif max_iter is None:
        raise ValueError(
            "HiGHS could not solve the linear programme of this model: "
            f"{found.message} Choose another solver, such as 'rvi'."
        )


def minimized(costs, rows, r, fixed, max_iter):
    """Minimise costs @ x with rows @ x >= r, and one entry of x fixed to 0."""
    bounds = [(None, None)] * costs.size
    if fixed is not None:
        bounds[fixed] = (0, 0)
    options = {} if max_iter is None else {"maxiter": max_iter}
    return linprog(
        costs, A_ub=-rows, b_ub=-r, bounds=bounds, method="highs-ds", options=options
    )


def centered(model, h):
    """Return h less a constant that does not matter, for the sake of rounding."""
    return h if model.ends else h - (h.min() + h.max()) / 2


def improving(model, n_jobs=None, h=None):
    """Yield modified policy iteration: a sweep, and some of its greedy policy alone.

    These cost less by the number of actions, and end where they would gain little.
    """
    sweep = Sweeper(model, n_jobs)
    h = np.zeros(model.n_states) if h is None else h
    shift, weights = 0.0, (FAST, 1 - FAST, 0.0)
    while True:
        h, step = sweep(centered(model, h), weights, shift=shift)
        yield step
        goal = (step.high - step.low) / 10
        if not model.ends:
            shift = (step.high + step.low) / 2 - (1 - model.discount) * step.h.mean()
        follow = Sweeper(model.under(sweep.chosen), n_jobs)
        for _ in range(EVALUATIONS):
            h, inner = follow(h, weights, shift=shift)
            if inner.high - inner.low <= goal:
                break


def policy_iteration(model, n_jobs=None, h=None):
    """Yield Howard's policy iteration: the greedy policy is evaluated by solves.

    A state keeps its action where no other is better by more than rounding can make it.
    When all do, damped iterates go on from there.
    """
    sweep = Sweeper(model, n_jobs)
    h = np.zeros(model.n_states) if h is None else h
    _, step = sweep(h, BACKUP)
    policy = sweep.chosen
    while True:
        yield step
        alone = model.under(policy)
        h = evaluated(alone)
        kept, _ = Sweeper(alone, n_jobs)(h, BACKUP)
        best, step = sweep(h, BACKUP)
        better = best > kept + 100 * step.rounding
        if not better.any():
            break
        policy = np.where(better, sweep.chosen, policy)
    yield from damped(model, n_jobs, h)


def evaluated(model):
    """Return h with h + g = r + discount P h for the model of a policy, for some g.

    Where the discount is 1 or nearly so, the equations are singular, the more so the
    more gains the policy has. Those of a discount d not so near are not, and
    h <- (I - d P)^{-1} (r - g + (discount - d) P h) settles within a few solves, or
    moves on along the gains. The constant g does not matter unless the process may end.
    """
    P, r, discount = model.transition, model.rewards, model.discount
    d = discount if model.ends else min(discount, NEARLY_ONE)
    solve = splu((eye_array(model.n_states) - d * P).tocsc()).solve
    if model.ends:
        return solve(r)
    h, g, width = np.zeros(model.n_states), (r.min() + r.max()) / 2, np.inf
    for _ in range(REFINEMENTS):
        new = solve(r - g + (discount - d) * (P @ h))
        change = r + discount * (P @ new) - new
        if not np.ptp(change) <= width / 2:
            break
        h, g = centered(model, new), (change.min() + change.max()) / 2
        width = np.ptp(change)
    return h


def auto(model, n_jobs=None, h=None):
    """Yield improving iterates; where they are slow, go on with other solvers.

    These are policy iteration and linear programmes, in models whose linear equations
    are cheap, and the anchored iteration, which has a worst case. They take turns until
    the certificate is narrow, each for as long as it halves soon enough.
    """
    h = yield from while_halving(islice(improving(model, n_jobs, h), FEW), h, FEW)
    turns = [improving, anchored]
    if has_small_factors(model):
        limit = PIVOTS * model.n_pairs
        turns = [policy_iteration, partial(linear_program, max_iter=limit), *turns]
    for turn in count():
        for solver in turns:
            steps = solver(model, n_jobs, h)
            h = yield from while_halving(steps, h, PATIENCE * 2**turn)


def while_halving(steps, h, patience):
    """Yield steps while their certificate halves soon enough; return the last iterate."""
    halving = Halving()
    for step in steps:
        yield step
        h = step.h
        if halving.update(step.high - step.low) == patience:
            break
    return h


def has_small_factors(model):
    """Return whether the linear equations of a policy have factors of moderate size.

    Gaussian elimination does not leave the band of a matrix, which the reverse order of
    Cuthill and McKee makes narrow.
    """
    n_states = model.n_states
    if n_states <= SMALL:
        return True
    graph = model.state_graph
    place = np.empty(n_states, dtype=np.int64)
    place[reverse_cuthill_mckee(graph)] = np.arange(n_states)
    from_place = np.repeat(place, np.diff(graph.indptr))
    band = np.abs(from_place - place[graph.indices]).max()
    return n_states * band <= SMALL**2


SOLVERS = {
    "auto": auto,
    "rvi": damped,
    "anchored": anchored,
    "policy_iteration": policy_iteration,
    "lp": linear_program,
}
