"""Logged transitions as an empirical model."""

import numpy as np
from scipy.sparse import coo_array
from sklearn.metrics import r2_score

from skextra.mdp._components import end_components
from skextra.mdp._inputs import from_pairs

RESTART = 1e-3  # probability of the row after, where next states alone fall apart


def states_after(log, average):
    """Return the state after each row of a log; -1 where the process ends.

    `log` holds ``states``, ``actions``, ``rewards``, ``next_states`` (None: those of
    the rows after) and ``terminal`` for each row. After the last row comes the first.
    Average reward: a row that ends an episode leads to the row after.
    """
    rows_after = np.roll(log.states, -1)
    found = rows_after if log.next_states is None else log.next_states
    return np.where(log.terminal, rows_after if average else -1, found)


def log_model(log, n_states, n_actions, discount):
    """Return the empirical model of a log, and the probability of its restarts.

    Average reward: if the model is not weakly communicating, each row leads to the row
    after with a small probability, so that the log is one closed walk through all its
    states.
    """
    average = discount is None
    following, size = states_after(log, average), (n_states, n_actions, discount)
    model = empirical(log, following, 0.0, *size)
    if not average or len(end_components(model)) == 1:
        return model, 0.0
    return empirical(log, following, RESTART, *size), RESTART


def empirical(log, following, restart, n_states, n_actions, discount):
    """Return the model of the shares of the rows; -1 is the end of the process."""
    pairs, of_row, counts = np.unique(
        log.states * n_actions + log.actions, return_inverse=True, return_counts=True
    )
    rewards = np.bincount(of_row, weights=log.rewards) / counts
    goes_on = following >= 0
    rows, columns = of_row[goes_on], following[goes_on]
    weights = np.full(rows.size, 1 - restart)
    if restart:
        rows = np.concatenate([rows, of_row])
        columns = np.concatenate([columns, np.roll(log.states, -1)])
        weights = np.concatenate([weights, np.full(of_row.size, restart)])
    P = coo_array((weights, (rows, columns)), shape=(len(pairs), n_states)).tocsr()
    P.sum_duplicates()
    P.data /= np.repeat(counts, np.diff(P.indptr))
    ends = not goes_on.all()
    return from_pairs(P, P.data, pairs, rewards, n_actions, discount, ends)


def explained(log, q, bias, gain, discount, sample_weight):
    """Return R^2 of reward - gain + discount * value of the next state, told by q.

    A pair that the model does not have, of action -1 or value -inf, is told by the best
    of its state.
    """
    following = states_after(log, average=discount is None)
    ahead = np.where(following < 0, 0.0, bias[following])
    if discount is None:
        targets = log.rewards - gain + ahead
    else:
        targets = log.rewards + discount * ahead
    told = np.where(log.actions < 0, -np.inf, q[log.states, log.actions])
    told = np.where(told == -np.inf, q.max(axis=1)[log.states], told)
    return r2_score(targets, told, sample_weight=sample_weight)
