"""Gymnasium's tabular environments as models."""

from operator import index

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order
from sklearn.utils import Bunch

from skextra.mdp._inputs import checked_probabilities, require_finite


def from_gymnasium(env, *, restart=True):
    """Read the model of a tabular environment of Gymnasium.

    Average reward needs a process that never ends: a step that ends an episode leads
    to the distribution of the first states. States which cannot be reached from there
    are left out.

    Parameters
    ----------
    env : gymnasium.Env
        Environment whose ``env.unwrapped.P[state][action]`` lists tuples (probability,
        next state, reward, whether the episode ends), and whose
        ``env.unwrapped.initial_state_distrib`` holds the probabilities of the first
        state: FrozenLake, Taxi, CliffWalking, and those made like them.

    restart : bool, default=True
        Whether a step that ends an episode leads to a first state. Otherwise it leads
        out of the model, and the probabilities of such a row sum to less than 1.

    Returns
    -------
    model : Bunch
        With

        P : csr_array of shape (n_states * n_actions, n_states)
            Row ``state * n_actions + action`` holds the probabilities of the next
            state.
        R : ndarray of shape (n_states, n_actions)
            Expected rewards.
        states : ndarray of shape (n_states,)
            The numbers that the environment gives to these states.
        start : ndarray of shape (n_states,)
            Probabilities of the first state.
        end : ndarray of shape (n_states, n_actions)
            Probabilities that a step leads out of the model.

    Raises
    ------
    ValueError
        If the environment has no such model, or one that is not valid, or its states
        have different actions.

    Examples
    --------
    >>> from skextra.mdp import from_gymnasium
    >>> class Corridor:
    ...     initial_state_distrib = [1.0, 0.0, 0.0]
    ...     P = {
    ...         0: {0: [(1.0, 1, 0.0, False)]},
    ...         1: {0: [(1.0, 2, 5.0, True)]},
    ...         2: {0: [(1.0, 2, 0.0, True)]},
    ...     }
    ...     unwrapped = property(lambda self: self)
    >>> model = from_gymnasium(Corridor())
    >>> model.states
    array([0, 1])
    >>> model.P.toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    inner = getattr(env, "unwrapped", env)
    table = getattr(inner, "P", None)
    start = getattr(inner, "initial_state_distrib", None)
    if table is None or start is None:
        raise ValueError(
            "env must be a tabular environment with P and initial_state_distrib, such as "
            f"FrozenLake, Taxi or CliffWalking; got {env!r}. Other environments can be "
            "logged and given to fit, or sampled and given to fit_generative."
        )
    n_states, n_actions = table_shape(table)
    rows = [
        (s * n_actions + a, *outcome)
        for s in range(n_states)
        for a in range(n_actions)
        for outcome in outcomes(table, s, a, n_actions)
    ]
    pair, probability, following, reward, done = map(np.array, zip(*rows, strict=True))
    start = checked_start(start, n_states)
    # One more column: the end of the episode.
    n_pairs = n_states * n_actions
    columns = np.where(done, n_states, following)
    P = coo_array((probability, (pair, columns)), shape=(n_pairs, n_states + 1)).tocsr()
    P.data = checked_probabilities(P, np.arange(n_pairs), n_actions)
    R = np.bincount(pair, weights=probability * reward) / np.bincount(pair, probability)
    R = R.reshape(n_states, n_actions)
    require_finite(R)
    ended, P = P[:, [n_states]], P[:, :n_states]
    reached = reachable(P, start, n_actions)
    if restart:
        P = P + ended @ csr_array(start[None, :])
        ended = csr_array(ended.shape)
    pairs = (reached[:, None] * n_actions + np.arange(n_actions)).ravel()
    return Bunch(
        P=P[pairs][:, reached],
        R=R[reached],
        states=reached,
        start=start[reached],
        end=ended.toarray().reshape(R.shape)[reached],
    )


def checked_start(start, n_states):
    """Return the probabilities of the first state."""
    try:
        start = np.asarray(start, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"env.initial_state_distrib must be numbers; {error}"
        ) from None
    sums_to_1 = start.shape == (n_states,) and abs(start.sum() - 1) <= 1e-8
    if not (sums_to_1 and (start >= 0).all()):
        raise ValueError(
            f"env.initial_state_distrib must be {n_states} probabilities that sum to 1; "
            f"got {start}."
        )
    return start / start.sum()


def table_shape(table):
    """Return the number of states, and that of actions in the first of them."""
    try:
        n_states, n_actions = len(table), len(table[0])
        if n_actions:
            return n_states, n_actions
        raise ValueError("no actions in state 0")
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            "env.P must have states and actions 0, 1, ..., and lists of what can follow: "
            f"P[state][action]; got {error!r}."
        ) from error


def outcomes(table, s, a, n_actions):
    """Return what can follow a pair: probability, next state, reward, whether it ends."""
    try:
        if len(table[s]) != n_actions:
            raise ValueError(f"{len(table[s])} actions, where state 0 has {n_actions}")
        found = [(float(p), index(n), float(r), bool(d)) for p, n, r, d in table[s][a]]
        if not found:
            raise ValueError("none")
        if not all(0 <= n < len(table) for _, n, _, _ in found):
            raise ValueError(f"a next state that is not among the {len(table)} states")
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"env.P must list, for state {s}, action {a}, tuples (probability, next "
            "state, reward, whether the episode ends), with states and actions 0, 1, ...; "
            f"got {error!r}."
        ) from error
    return found


def reachable(P, start, n_actions):
    """Return the states that can be reached from the first ones, in order."""
    n_states = P.shape[1]
    moves = P.tocoo()
    first = np.flatnonzero(start)
    source = np.full(first.size, n_states)  # one more state, before the first ones
    graph = csr_array(
        (
            np.ones(moves.nnz + first.size),
            (
                np.concatenate([moves.row // n_actions, source]),
                np.concatenate([moves.col, first]),
            ),
        ),
        shape=(n_states + 1, n_states + 1),
    )
    found = breadth_first_order(graph, n_states, return_predecessors=False)
    return np.sort(found[found < n_states]).astype(np.int64)
