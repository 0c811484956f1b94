"""Whether the best gain is one number: the end components of a model."""

from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components


def end_components(model):
    """Return the maximal sets of states in which the process can be kept for ever.

    They are found as strongly connected components, again and again without the pairs
    that can leave theirs. The model is weakly communicating if there is one: then every
    state outside is left under every policy.
    """
    pair_states = model.pair_states
    live = np.ones(model.n_pairs, dtype=bool)
    while True:
        _, labels = connected_components(moves_by(model, live), connection="strong")
        stays = live & stay_inside(model, labels)
        if (stays == live).all():
            break
        live = stays
    kept = np.unique(pair_states[live])
    order = kept[np.argsort(labels[kept], kind="stable")]
    found = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return sorted(found, key=lambda states: states[0])


def moves_by(model, live):
    """Return the graph of the moves from state to state by some of the pairs."""
    if live.all():
        return model.state_graph
    chosen = model.transition[live].tocoo()
    return csr_array(
        (chosen.data, (model.pair_states[live][chosen.row], chosen.col)),
        shape=(model.n_states, model.n_states),
    )


def stay_inside(model, labels):
    """Return which pairs lead only to states of the label of their own."""
    own = np.repeat(labels[model.pair_states], np.diff(model.indptr))
    return np.logical_and.reduceat(labels[model.indices] == own, model.indptr[:-1])


class OneGain:
    """Whether a model has one best gain, looked into when the search makes no progress.

    It has one if it is weakly communicating. If it has several components, it may have:
    the gain differs for sure once a component earns more than `tol` above what is
    possible in another one that cannot be left.
    """

    def __init__(self, model, numbers, tol):
        self.model, self.numbers, self.tol = model, numbers, tol

    @cached_property
    def components(self):
        """Return the sets of states in which the process can be kept for ever."""
        return end_components(self.model)

    def require_possible(self, step):
        """Raise if the bounds of an iterate prove that there are several gains."""
        if len(self.components) == 1:
            return
        model, pair_states = self.model, self.model.pair_states
        labels = np.full(model.n_states, -1)
        for label, states in enumerate(self.components):
            labels[states] = label
        stays = (labels[pair_states] >= 0) & stay_inside(model, labels)
        change = model.backup(step.h) - step.h[pair_states]
        lows = model.best(np.where(stays, change, -np.inf))
        highs = model.best(change)
        can_be_left = np.unique(labels[pair_states[~stays]])
        low = max(lows[states].min() for states in self.components)
        high = min(
            highs[states].max()
            for label, states in enumerate(self.components)
            if label not in can_be_left
        )
        if low - high > self.tol + step.rounding:
            raise ValueError(
                "The best average reward depends on the first state: there are "
                f"{len(self.components)} sets of states in which the process can stay "
                f"for ever, {describe(self.components, self.numbers)}, and they do not "
                "earn the same. Give a discount, or multichain='discount'."
            )


def describe(components, numbers):
    """Return a sentence part that lists components, the first states of each."""

    def one(states):
        shown = ", ".join(str(s) for s in numbers[states[:5]])
        return f"{{{shown}{', ...' if len(states) > 5 else ''}}}"

    listed = "; ".join(one(states) for states in components[:5])
    more = f"; and {len(components) - 5} more" if len(components) > 5 else ""
    return listed + more
