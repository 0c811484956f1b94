"""Random models, and the package's form of them."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from skextra.mdp._inputs import make_model
from tests.mdp import reference

EXACT_SOLVERS = ["auto", "rvi", "anchored", "policy_iteration", "lp"]


def examples(n):
    """Settings of tests of random models: the same ones in each run."""
    return settings(max_examples=n, deadline=None, derandomize=True)


def masked_garnet(n_states, n_actions, n_successors, seed, share=0.7):
    """A random model P, R in which some pairs are not feasible (-inf)."""
    rng = np.random.default_rng(seed)
    P, R = reference.garnet(n_states, n_actions, n_successors, rng)
    mask = rng.random(R.shape) < share
    mask[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
    return P, np.where(mask, R, -np.inf)


def model_of(P, R, discount=None):
    return make_model(P, R, None, discount)


def dense_rows(P):
    """The same model with rows state * n_actions + action."""
    return np.swapaxes(P, 0, 1).reshape(-1, P.shape[2])


def earned(P, R, mdp):
    """What the fitted policy earns from each state, by linear systems."""
    numbers = [list(mdp.actions_).index(label) for label in mdp.policy_]
    return reference.policy_gain(P, R, numbers)


@st.composite
def small_models(draw, max_states=5, max_actions=3, communicating=True):
    """A tiny model with pairs that are not feasible; also periodic and transient ones.

    If ``communicating``, one state is reached from all others under every policy now
    and then, or all lead around a ring: then the best gain is one number.
    """
    n_states = draw(st.integers(1, max_states))
    n_actions = draw(st.integers(1, max_actions))
    seed = draw(st.integers(0, 2**32 - 1))
    n_successors = draw(st.integers(1, min(n_states, 3)))
    P, R = masked_garnet(n_states, n_actions, n_successors, seed)
    R = np.where(np.isfinite(R), np.round(6 * R - 3, draw(st.integers(0, 3))), R)
    if communicating:
        if draw(st.booleans()):
            P = 0.7 * P
            P[:, :, 0] += 0.3
        else:  # the first feasible action of each state leads around
            first = np.isfinite(R).argmax(axis=1)
            states = np.arange(n_states)
            P[first, states] = np.roll(np.eye(n_states), 1, axis=1)
    return P, R
