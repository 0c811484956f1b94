"""Checks of what users bring: matrices to a model, and labels."""

from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from sklearn.utils import Bunch, check_array
from sklearn.utils.validation import _get_feature_names, validate_data

from skextra.mdp._components import end_components
from skextra.mdp._model import Model, index_arrays
from skextra.mdp._states import given_states, numbered_states

NEAR_ONE = 0.999  # the discount for multichain="discount"

P_FORMATS = (
    "an array of shape (n_actions, n_states, n_states), a list of one such matrix for "
    "each action, or a matrix of shape (n_states * n_actions, n_states) whose row "
    "state * n_actions + action holds the probabilities of the next state"
)
REWARD_FORMATS = (
    "of shape (n_states, n_actions) or (n_states,), or like P for rewards by next state"
)


def make_model(P, R, mask=None, discount=None):
    """Validate a model, and return it by its feasible pairs."""
    P, n_actions = by_pairs(P, "P")
    n_states = P.shape[1]
    rewards = expected_rewards(R, P, n_states, n_actions)
    feasible = feasible_pairs(rewards, mask, n_states, n_actions)
    kept = np.flatnonzero(feasible.ravel())
    if kept.size < feasible.size:
        P = P[kept]
    P = canonical(P)
    probabilities = checked_probabilities(P, kept, n_actions)
    return from_pairs(
        P, probabilities, kept, rewards.ravel()[kept], n_actions, discount
    )


def from_pairs(P, probabilities, pairs, rewards, n_actions, discount, ends=False):
    """Return the model whose pair is number ``state * n_actions + action``."""
    states, actions = np.divmod(pairs, n_actions)
    starts = np.searchsorted(states, np.arange(P.shape[1] + 1))
    return Model(
        n_actions=n_actions,
        starts=starts.astype(np.int64),
        actions=actions.astype(np.int32),
        rewards=rewards,
        **index_arrays(P),
        probabilities=probabilities,
        discount=1.0 if discount is None else float(discount),
        ends=ends,
    )


def by_pairs(matrices, name):
    """Return CSR rows ``state * n_actions + action``, and the number of actions."""
    if not has_sparse(matrices):
        matrices = real_array(matrices, name, P_FORMATS)
        if matrices.ndim not in (2, 3):
            raise ValueError(f"{name} must be {P_FORMATS}; got {matrices.shape}.")
    if issparse(matrices) or getattr(matrices, "ndim", 3) == 2:
        rows = floats(matrices, name)
        if 0 in rows.shape or rows.shape[0] % rows.shape[1]:
            raise ValueError(f"{name} must be {P_FORMATS}; got shape {rows.shape}.")
        return rows, rows.shape[0] // rows.shape[1]
    matrices = [floats(matrix, name) for matrix in matrices]
    n_actions = len(matrices)
    shapes = sorted({matrix.shape for matrix in matrices})
    if len(shapes) != 1 or shapes[0][0] != shapes[0][1] or not shapes[0][0]:
        raise ValueError(f"{name} must be {P_FORMATS}; got matrices of {shapes}.")
    n_states = shapes[0][0]
    by_state = np.arange(n_states)[:, None] + n_states * np.arange(n_actions)
    return vstack(matrices, format="csr")[by_state.ravel()], n_actions


def real_array(values, name, formats):
    """Return an array of real numbers, in formats that the error lists."""
    try:
        array = np.asarray(values)
        array = array.astype(float) if array.dtype == object else array
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be {formats}; {error}.") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got {array.dtype}.")
    return array


def floats(matrix, name):
    """Return a CSR matrix of float32 where it was, and of float64 otherwise."""
    matrix = csr_array(matrix)
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got {matrix.dtype}.")
    return matrix if matrix.dtype == np.float32 else matrix.astype(float, copy=False)


def has_sparse(matrices):
    """Return whether this is a sparse matrix, or a list with one."""
    in_list = isinstance(matrices, list | tuple) and any(map(issparse, matrices))
    return issparse(matrices) or in_list


def as_labels(labels, name):
    """Return one-dimensional labels, all strings or all numbers."""
    from_list = isinstance(labels, list | tuple)
    labels = np.asarray(labels, dtype=object if from_list else None)
    if labels.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional labels; got shape {labels.shape}."
        )
    if labels.dtype == object:
        kinds = set(map(type, labels.tolist()))
        if not any(
            all(issubclass(kind, wanted) for kind in kinds)
            for wanted in (str, (Real, np.bool_))
        ):
            raise ValueError(
                f"{name} must be labels of one kind, all strings or all numbers; got "
                f"{sorted(kind.__name__ for kind in kinds)}."
            )
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "biufUMT":
        raise ValueError(f"{name} must be strings or numbers; got {labels.dtype}.")
    if labels.dtype.kind in "fM" and not np.isfinite(labels).all():
        raise ValueError(f"{name} must not be NaN or infinite.")
    return labels


def canonical(P):
    """Return a matrix without zeros and in order; the user's own is left alone."""
    in_order = P.has_canonical_format and P.count_nonzero() == P.nnz
    if not in_order:
        P = P.copy()
        P.sum_duplicates()
        P.eliminate_zeros()
    return P


def checked_probabilities(P, pairs, n_actions):
    """Return the probabilities as float64 whose rows sum to 1."""
    wrong = np.flatnonzero(~(np.isfinite(P.data) & (P.data >= 0)))
    if wrong.size:
        row = np.searchsorted(P.indptr, wrong[0], side="right") - 1
        raise ValueError(
            f"P must hold finite probabilities; got {P.data[wrong[0]]} for state "
            f"{pairs[row] // n_actions}, action {pairs[row] % n_actions} and next state "
            f"{P.indices[wrong[0]]}."
        )
    accepted = 1e-8 if P.dtype == np.float64 else 1e-5
    P = P.astype(np.float64, copy=False)
    sums = P.sum(axis=1)
    off = np.abs(sums - 1)
    wrong = np.flatnonzero(off > accepted)
    if wrong.size:
        row = wrong[0]
        raise ValueError(
            "The probabilities of the next state must sum to 1 within "
            f"{accepted}; those of state {pairs[row] // n_actions}, action "
            f"{pairs[row] % n_actions} sum to {sums[row]}"
            + (f", and {wrong.size - 1} more sums are off." if wrong.size > 1 else ".")
        )
    if off.max() > 1e-15:
        return P.data / np.repeat(sums, np.diff(P.indptr))
    return P.data


def expected_rewards(R, P, n_states, n_actions):
    """Return rewards of shape (n_states, n_actions), of next states under P."""
    if not has_sparse(R):
        R = real_array(R, "R", REWARD_FORMATS)
        by_pair = R.shape == P.shape != (n_states, n_actions)
        if R.ndim != 3 and not by_pair:
            return rewards_of_pairs(R, "R", n_states, n_actions)
    R, _ = by_pairs(R, "R")
    if R.shape != P.shape:
        raise ValueError(
            f"R must be {REWARD_FORMATS}; got one of {R.shape} by pairs, where P is "
            f"{P.shape}."
        )
    if not np.isfinite(R.data).all():
        raise ValueError(
            "Rewards by next state must be finite; mark a pair of state and action that "
            "is not feasible in mask."
        )
    P = P.astype(np.float64, copy=False)
    sums = P.sum(axis=1)  # 1, but for rounding; rows that are not feasible may be 0
    rewards = (P * R).sum(axis=1) / np.where(sums == 0, 1.0, sums)
    return rewards.reshape(n_states, n_actions)


def rewards_of_pairs(R, name, n_states, n_actions):
    """Return rewards that do not depend on the next state, (n_states, n_actions)."""
    R = real_array(R, name, REWARD_FORMATS).astype(float)
    if R.shape == (n_states,):
        R = np.repeat(R[:, None], n_actions, axis=1)
    if R.shape != (n_states, n_actions):
        raise ValueError(
            f"{name} must be of shape (n_states, n_actions) = ({n_states}, {n_actions}) "
            f"or ({n_states},); got {R.shape}."
        )
    return R


def require_finite(rewards):
    """Raise if rewards are NaN or infinite, but for -inf, which is not feasible."""
    wrong = np.argwhere(np.isnan(rewards) | (rewards == np.inf))
    if wrong.size:
        s, a = wrong[0]
        raise ValueError(
            "Rewards must be finite, or -inf where an action is not feasible; got "
            f"{rewards[s, a]} for state {s} and action {a}."
        )


def feasible_pairs(rewards, mask, n_states, n_actions):
    """Return which pairs are feasible, at least one in each state."""
    feasible = rewards > -np.inf
    if mask is not None:
        mask = np.asarray(mask)
        if mask.shape != feasible.shape or mask.dtype != bool:
            raise ValueError(
                "mask must be an array of booleans of shape (n_states, n_actions) = "
                f"({n_states}, {n_actions}), True where the action is feasible; got "
                f"{mask.dtype} of shape {mask.shape}."
            )
        feasible &= mask
        rewards = np.where(mask, rewards, -np.inf)
    require_finite(rewards)
    stuck = np.flatnonzero(~feasible.any(axis=1))
    if stuck.size:
        raise ValueError(
            f"State {stuck[0]} has no feasible action; each state needs one."
            + (f" So it is in {stuck.size - 1} more states." if stuck.size > 1 else "")
        )
    return feasible


def checked_labels(labels, n_actions):
    """Return the labels of the actions, by default their numbers."""
    if labels is None:
        return np.arange(n_actions)
    labels = as_labels(labels, "actions")
    if labels.shape != (n_actions,) or np.unique(labels).size < n_actions:
        raise ValueError(
            f"actions must be {n_actions} different labels; got {labels!r}."
        )
    return labels


def whole(value, name):
    """Return a number of states or actions."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
    return int(value)


def checked_log(X, y, actions, next_X, terminal, estimator):
    """Return the columns of a log, each as long as X."""
    n_rows = len(X)
    if actions is None:
        actions = np.zeros(n_rows, dtype=np.int64)
    actions = as_labels(actions, "actions")
    if terminal is None:
        terminal = np.zeros(n_rows, dtype=bool)
    terminal = np.asarray(terminal)
    if terminal.dtype.kind not in "biuf" or not np.isin(terminal, [0, 1]).all():
        raise ValueError(
            "terminal must hold booleans, True where the row ends an episode; got "
            f"{terminal!r}."
        )
    for column, name in ((actions, "actions"), (terminal, "terminal")):
        if column.shape != (n_rows,):
            raise ValueError(
                f"{name} must have one entry for each of the {n_rows} rows of X; got "
                f"shape {column.shape}."
            )
    if next_X is not None:
        next_X = checked_next(X, next_X, estimator)
    return Bunch(
        actions=actions, rewards=y, next_X=next_X, terminal=terminal.astype(bool)
    )


def checked_next(X, next_X, estimator):
    """Return the next rows, with the columns of X."""
    names = _get_feature_names(next_X)
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and list(names) != list(known):
        raise ValueError(
            "next_X must have the columns of X by the same names in the same order; got "
            f"{list(names)} where X has {list(known)}."
        )
    next_X = check_array(next_X, dtype=X.dtype, input_name="next_X")
    if next_X.shape != X.shape:
        raise ValueError(
            f"next_X must have the shape of X, {X.shape}; got {next_X.shape}."
        )
    return next_X


def checked_states(states, n_states, estimator, nearest=True):
    """Return the states of a model by their features; by default by their numbers."""
    if states is None:
        found = numbered_states(n_states)
        validate_data(estimator, found.rows)
        return found
    if np.ndim(states) == 1:
        states = np.asarray(states)[:, None]
    check_array(states, dtype=np.float64, input_name="states")
    rows = validate_data(estimator, states, dtype=[np.float64, np.float32])
    found = given_states(rows, nearest)
    if len(rows) != n_states or found is None:
        raise ValueError(
            f"states must be {n_states} different rows, the features of each state; got "
            f"{len(rows)}" + (", not all different." if found is None else ".")
        )
    return found


def discounted_if_multichain(model):
    """Return the model, with a discount if it has no single best average reward."""
    if model.discount < 1 or len(end_components(model)) == 1:
        return model
    return model._replace(discount=NEAR_ONE)


def env_model(found, discount):
    """Return the model of an environment as `from_gymnasium` has read it."""
    P, ends = canonical(found.P), bool(found.end.any())
    n_actions = found.R.shape[1]
    pairs = np.arange(P.shape[0])
    return from_pairs(P, P.data, pairs, found.R.ravel(), n_actions, discount, ends)


def generative_model(sampler, n_states, n_actions, reward, discount, solver):
    """Return a model whose transitions are not known."""
    if not callable(sampler):
        raise ValueError(
            "sampler must be a function sampler(s, a, size, rng) that returns next "
            f"states; got {sampler!r}."
        )
    if solver not in ("auto", "savia", "plug_in"):
        raise ValueError(
            "solver must be 'auto', 'savia' or 'plug_in' where the model can only be "
            f"sampled; got {solver!r}."
        )
    n_states, n_actions = whole(n_states, "n_states"), whole(n_actions, "n_actions")
    unknown = csr_array((n_states * n_actions, n_states))
    rewards = rewards_of_pairs(reward, "reward", n_states, n_actions)
    feasible = feasible_pairs(rewards, None, n_states, n_actions)
    kept = np.flatnonzero(feasible.ravel())
    unknown = unknown[kept]
    return from_pairs(
        unknown, unknown.data, kept, rewards.ravel()[kept], n_actions, discount
    )
