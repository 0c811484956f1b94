"""Slow and obvious versions of everything that ``skextra.mdp`` computes.

Nothing of ``skextra`` is used. A model is a dense pair: ``P`` (A, S, S) and ``R``
(S, A), where -inf marks a pair that is not allowed (its row of ``P`` is ignored).
"""

from itertools import product

import numpy as np
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components
from scipy.stats import binom

# ----------------------------------------------------------------- Bellman operator


def span(x):
    return np.max(x) - np.min(x)


def backup(P, R, h, discount=1.0):
    """q (S, A): the reward and what the next state is worth."""
    return np.where(np.isfinite(R), R + discount * (np.asarray(P) @ h).T, -np.inf)


def sweep(P, R, h, discount=1.0):
    return backup(P, R, h, discount).max(axis=1)


def certificate(P, R, h):
    """Interval of the best gain, and of that of the policy greedy in r + P h."""
    rho = sweep(P, R, h) - h
    return rho.min(), rho.max()


def anchored(P, R, n, h0):
    """Spans of Th - h at the iterates 0..n of Halpern's iteration from h0."""
    h0 = np.asarray(h0, dtype=float)
    Th, residuals = h0, []
    for k in range(n + 1):
        b = k / (k + 2)
        h = (1 - b) * h0 + b * Th
        Th = sweep(P, R, h)
        residuals.append(span(Th - h))
    return residuals


def damped_iterates(P, R, n, tau=0.5):
    """The iterates 0..n of damped relative value iteration from zero."""
    iterates = [np.zeros(len(R))]
    for _ in range(n):
        h = iterates[-1]
        h = h + tau * (sweep(P, R, h) - h)
        iterates.append(h - h[0])
    return iterates


def damped(P, R, n, tau=0.5):
    """Spans of Th - h at the iterates 0..n of damped relative value iteration."""
    return [span(sweep(P, R, h) - h) for h in damped_iterates(P, R, n, tau)]


def anchored_discounted(P, R, gamma, n, v0=None):
    """Largest |TV - V| at the iterates 0..n of anchored discounted value iteration."""
    v0 = np.zeros(len(R)) if v0 is None else np.asarray(v0, dtype=float)
    TV, errors = v0, []
    for k in range(n + 1):
        # 1 / (1 + gamma^-2 + ... + gamma^-2k)
        w = gamma ** (2 * k) / sum(gamma ** (2 * i) for i in range(k + 1))
        V = w * v0 + (1 - w) * TV
        TV = sweep(P, R, V, gamma)
        errors.append(np.abs(TV - V).max())
    return errors


# ------------------------------------------------------------------------ solutions


def gain_lp(P, R):
    """Best gain of a weakly communicating model, by linear programming.

    HiGHS takes probabilities below 1e-9 for zeros, so expect 2e-8 of error.
    """
    S = len(R)
    rows = [
        [*(P[a][s] - np.eye(S)[s]), -1.0] for s, a in zip(*np.nonzero(np.isfinite(R)))
    ]
    rewards = R[np.isfinite(R)]
    result = linprog(
        [*np.zeros(S), 1.0],
        A_ub=np.array(rows),
        b_ub=-rewards,
        A_eq=[[1.0, *np.zeros(S)]],
        b_eq=[0.0],
        bounds=(None, None),
        method="highs",
    )
    assert result.status == 0, result.message
    return result.fun


def closed_classes(M):
    """Sets of states of a chain that lead to each other and to nothing else."""
    n, label = connected_components(M > 0, directed=True, connection="strong")
    classes = [np.flatnonzero(label == i) for i in range(n)]
    return [c for c in classes if not (np.delete(M[c], c, axis=1) > 0).any()]


def stationary(M):
    """Stationary distribution of an irreducible chain, periodic or not."""
    n = len(M)
    system = np.vstack([M.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, [*np.zeros(n), 1.0], rcond=None)[0]


def limiting_matrix(M):
    """The long-run average of the powers of M, for chains of any kind."""
    S = len(M)
    limit, classes = np.zeros((S, S)), closed_classes(M)
    away = np.setdiff1d(np.arange(S), np.concatenate(classes))
    for c in classes:
        pi = stationary(M[np.ix_(c, c)])
        reach = np.zeros(S)
        reach[c] = 1
        reach[away] = np.linalg.solve(
            np.eye(len(away)) - M[np.ix_(away, away)], M[np.ix_(away, c)].sum(axis=1)
        )
        limit[:, c] += np.outer(reach, pi)
    return limit


def chain_of(P, R, policy):
    """Transitions (S, S) and rewards (S,) of a policy of action indices."""
    states = np.arange(len(R))
    return np.array([P[a][s] for s, a in zip(states, policy)]), R[states, policy]


def policy_gain(P, R, policy):
    """Long-run average reward from each state."""
    M, r = chain_of(P, R, policy)
    return limiting_matrix(M) @ r


def policy_bias(P, R, policy):
    """Bias of a policy, zero in state 0 (for chains of any kind)."""
    M, r = chain_of(P, R, policy)
    limit = limiting_matrix(M)
    h = np.linalg.solve(np.eye(len(r)) - M + limit, r - limit @ r)
    return h - h[0]


def all_policies(R):
    return product(*[np.flatnonzero(np.isfinite(row)) for row in R])


def best_gain_by_enumeration(P, R):
    """From each state, the best long-run average of all deterministic policies."""
    return np.max([policy_gain(P, R, list(p)) for p in all_policies(R)], axis=0)


def best_gain(P, R, n=5000):
    """Best gain to rounding error, a policy that earns it, and the values h.

    Damped sweeps find h and the policy, a linear system the gain of the policy; the
    certificate of h says that no policy is better.
    """
    h = np.zeros(len(R))
    for _ in range(n):
        Th = sweep(P, R, h)
        if span(Th - h) < 1e-12:
            break
        h = (h + Th) / 2
        h -= h[0]
    policy = backup(P, R, h).argmax(axis=1)
    gain, (low, high) = policy_gain(P, R, policy), certificate(P, R, h)
    assert high - low < 1e-10 and span(gain) < 1e-10, (low, high, gain)
    assert low - 1e-12 < gain[0] < high + 1e-12, (low, high, gain[0])
    return gain[0], policy, h


def policy_value(P, R, policy, discount):
    M, r = chain_of(P, R, policy)
    return np.linalg.solve(np.eye(len(r)) - discount * M, r)


def discounted_values(P, R, discount):
    """Best values and a best policy, by policy iteration."""
    policy = R.argmax(axis=1)
    while True:
        V = policy_value(P, R, policy, discount)
        q = backup(P, R, V, discount)
        better = q.max(axis=1) > q[np.arange(len(R)), policy] + 1e-12 * span(V) + 1e-14
        if not better.any():
            return V, policy
        policy = np.where(better, q.argmax(axis=1), policy)


# ------------------------------------------------------------------------ structure


def end_components(P, feasible):
    """Maximal end components: sets of states in which one can stay and roam."""
    pairs = {(int(s), int(a)) for s, a in zip(*np.nonzero(feasible))}
    while True:
        graph = np.zeros(P[0].shape, dtype=bool)
        for s, a in pairs:
            graph[s] |= P[a][s] > 0
        _, label = connected_components(graph, directed=True, connection="strong")
        stay = {(s, a) for s, a in pairs if (label[P[a][s] > 0] == label[s]).all()}
        if stay == pairs:
            break
        pairs = stay
    groups = {}
    for s, _ in sorted(pairs):
        groups.setdefault(int(label[s]), set()).add(s)
    return sorted(map(frozenset, groups.values()), key=min)


def is_closed(P, feasible, states):
    """Whether no allowed action leads out of a set of states."""
    inside = np.isin(np.arange(len(feasible)), list(states))
    return not any(
        (P[a][s][~inside] > 0).any()
        for s in states
        for a in np.flatnonzero(feasible[s])
    )


def is_weakly_communicating(P, feasible):
    """Whether there is one end component, and it is closed."""
    components = end_components(P, feasible)
    return len(components) == 1 and is_closed(P, feasible, components[0])


# ------------------------------------------------------------------------- sampling


def savia(P, R, q0, n, eps, delta, C, rng, log_factor=1, discount=1.0):
    """Iterates (Q, T, largest |T - TQ|) of sampled anchored value iteration.

    ``C`` is 5 in the paper and 1.055 in the improved variant; ``log_factor`` is n + 1
    in the paper and 1 in the improved variant: alpha = ln(2 S A log_factor / delta).
    """
    S, A = R.shape
    feasible = np.isfinite(R)
    alpha = np.log(2 * S * A * log_factor / delta)
    T, h_before, iterates = R.copy(), np.zeros(S), []
    for k in range(n + 1):
        b = k / (k + 2)
        Q = np.full((S, A), -np.inf)
        Q[feasible] = (1 - b) * np.asarray(q0)[feasible] + b * T[feasible]
        h = Q.max(axis=1)
        d = h - h_before
        c = C * (k + 2) * np.log(k + 2) ** 2
        m = max(int(np.ceil(alpha * c * span(d) ** 2 / eps**2)), 1)
        T = T.copy()
        for s, a in zip(*np.nonzero(feasible)):
            T[s, a] += discount * d[rng.choice(S, size=m, p=P[a][s])].mean()
        exact = backup(P, R, h, discount)
        iterates.append((Q, T, np.abs(T[feasible] - exact[feasible]).max()))
        h_before = h
    return iterates


def aggregate_log(codes, actions, rewards, next_codes, n_states=None, n_actions=None):
    """Shares of the next states and mean rewards of each pair; -inf if unseen."""
    seen = {}
    for s, a, r, t in zip(codes, actions, rewards, next_codes):
        seen.setdefault((int(s), int(a)), []).append((float(r), int(t)))
    S = n_states or 1 + max(*map(int, codes), *map(int, next_codes))
    A = n_actions or 1 + max(map(int, actions))
    P, R = np.zeros((A, S, S)), np.full((S, A), -np.inf)
    for (s, a), steps in seen.items():
        R[s, a] = sum(r for r, _ in steps) / len(steps)
        for _, t in steps:
            P[a, s, t] += 1 / len(steps)
    return P, R


# --------------------------------------------------------------------------- models


def riverswim():
    """Six states in a row: 0 swims left with the current, 1 right against it."""
    P, R = np.zeros((2, 6, 6)), np.zeros((6, 2))
    for s in range(6):
        P[0, s, max(s - 1, 0)] = 1
    P[1, 0, [0, 1]] = 0.4, 0.6
    for s in range(1, 5):
        P[1, s, [s - 1, s, s + 1]] = 0.05, 0.6, 0.35
    P[1, 5, [4, 5]] = 0.4, 0.6
    R[0, 0], R[5, 1] = 0.005, 1
    return P, R


def forest(S=3, r1=4, r2=2, p=0.1):
    """Ages of a forest: 0 waits (a fire with probability p), 1 cuts."""
    P, R = np.zeros((2, S, S)), np.zeros((S, 2))
    for s in range(S):
        P[0, s, 0] = p
        P[0, s, min(s + 1, S - 1)] += 1 - p
        P[1, s, 0] = 1
    R[1:, 1] = 1
    R[S - 1] = r1, r2
    return P, R


def access_control(same_step=True):
    """Ten servers; action 0 turns the customer at the head away, 1 serves her.

    State 4 f + j: f servers are free, and the customer would pay 2^j. Each busy server
    then finishes with probability 0.06 (the new customer's too, if ``same_step``), and
    the next customer is drawn uniformly. With no free server, serving is turning away.
    """
    P, R = np.zeros((2, 44, 44)), np.zeros((44, 2))
    for free, j, action in product(range(11), range(4), range(2)):
        s, served = 4 * free + j, int(action and free > 0)
        R[s, action] = 2.0**j * served
        busy = 10 - free + (served if same_step else 0)
        for done in range(busy + 1):
            t = 4 * (free - served + done)
            P[action, s, t : t + 4] += binom.pmf(done, busy, 0.06) / 4
    return P, R


def periodic_cycle():
    """Four states in a ring; both actions move on, action 1 earns less."""
    P = np.array([np.roll(np.eye(4), 1, axis=1)] * 2)
    return P, np.array([[0.5, 0.1], [1.0, 0.3], [2.0, 0.7], [3.0, 0.2]])


def toy_text(env):
    """P, R and the kept states of an environment whose episodes start over."""
    table = env.unwrapped.P
    start = np.asarray(env.unwrapped.initial_state_distrib, dtype=float)
    S, A = len(table), len(table[0])
    P, R = np.zeros((A, S, S)), np.zeros((S, A))
    for s, a in product(range(S), range(A)):
        for probability, t, reward, terminated in table[s][a]:
            P[a, s] += probability * (start if terminated else np.eye(S)[t])
            R[s, a] += probability * reward
    reached = start > 0
    while True:
        more = reached | (P[:, reached] > 0).any(axis=(0, 1))
        if (more == reached).all():
            break
        reached = more
    kept = np.flatnonzero(reached)
    return P[:, kept][:, :, kept], R[kept], kept


def frozenlake(size=4):
    return toy_text(FrozenLakeEnv(map_name=f"{size}x{size}", is_slippery=True))[:2]


def taxi():
    return toy_text(TaxiEnv())[:2]


def cliffwalking():
    return toy_text(CliffWalkingEnv())[:2]


def garnet(n_states, n_actions, n_successors, rng):
    """A random model in which each pair leads to a few random states."""
    P = np.zeros((n_actions, n_states, n_states))
    for a, s in product(range(n_actions), range(n_states)):
        to = rng.choice(n_states, size=n_successors, replace=False)
        P[a, s, to] = rng.dirichlet(np.ones(n_successors))
    return P, rng.random((n_states, n_actions))


MODELS = {
    "riverswim": riverswim,
    "forest3": lambda: forest(3),
    "forest10": lambda: forest(10),
    "access_control": access_control,
    "frozenlake4": lambda: frozenlake(4),
    "frozenlake8": lambda: frozenlake(8),
    "taxi": taxi,
    "cliffwalking": cliffwalking,
    "periodic_cycle": periodic_cycle,
}

# Of the policies that damped sweeps find, by linear systems; no policy earns 1e-12 more.
EXACT_GAINS = {
    "riverswim": 0.4286224337994643,
    "forest3": 3.24,
    "forest10": 1.549681955999999,
    "access_control": 2.747641950572486,
    "frozenlake4": 11 / 612,
    "frozenlake8": 0.010614143812393636,
    "taxi": 0.606732976281562,
    "cliffwalking": -1.0,
    "periodic_cycle": 1.625,
}
