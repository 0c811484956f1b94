"""The maths of a finite Markov decision process: its pairs, backups and certificates."""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array

from skextra.mdp import _numba
from skextra.utils import in_threads

# States that a thread gets at least: with fewer, starting it costs what it gains.
LEAST_STATES = 100_000


class Model(NamedTuple):
    """A finite Markov decision process, as a list of its feasible pairs.

    A pair is a state and an action that is feasible there; pairs are sorted by state,
    then by action. Row `pair` of a CSR matrix holds the probabilities of the next
    state.
    """

    n_actions: int
    starts: np.ndarray  # (n_states + 1,) the pairs of state s are starts[s]:starts[s+1]
    actions: np.ndarray  # (n_pairs,)
    rewards: np.ndarray  # (n_pairs,) expected
    indptr: np.ndarray  # (n_pairs + 1,)
    indices: np.ndarray  # of the same type, int32 where that is enough
    probabilities: np.ndarray  # float64; rows sum to 1, or less where the process ends
    discount: float = 1.0
    ends: bool = False  # some rows sum to less than 1: value 0 from there on

    @property
    def n_states(self):
        """Return the number of states."""
        return len(self.starts) - 1

    @property
    def n_pairs(self):
        """Return the number of feasible pairs of state and action."""
        return len(self.rewards)

    @property
    def pair_states(self):
        """Return the state of each pair, shape (n_pairs,)."""
        return np.repeat(np.arange(self.n_states), np.diff(self.starts))

    @property
    def transition(self):
        """Return the probabilities of the next state, one row for each pair."""
        return csr_array(
            (self.probabilities, self.indices, self.indptr),
            shape=(self.n_pairs, self.n_states),
        )

    @property
    def state_graph(self):
        """Return the matrix whose entries are the moves from state to state."""
        graph = csr_array(
            (self.probabilities, self.indices, self.indptr[self.starts]),
            shape=(self.n_states, self.n_states),
            copy=True,
        )
        graph.sum_duplicates()  # SciPy's graph routines need it
        return graph

    def table(self, of_pairs):
        """Return values of pairs by state and action, -inf where not feasible."""
        table = np.full((self.n_states, self.n_actions), -np.inf)
        table[self.pair_states, self.actions] = of_pairs
        return table

    def best(self, q):
        """Return the largest value of a pair in each state, shape (n_states,)."""
        return np.maximum.reduceat(q, self.starts[:-1])

    def greedy(self, q):
        """Return the first action of largest value in each state."""
        winners = np.flatnonzero(q == np.repeat(self.best(q), np.diff(self.starts)))
        first = winners[np.searchsorted(winners, self.starts[:-1])]
        return self.actions[first]

    def under(self, policy):
        """Return the model of a policy, which is one pair for each state."""
        P = self.transition[policy]
        return self._replace(
            starts=np.arange(self.n_states + 1),
            actions=self.actions[policy],
            rewards=self.rewards[policy],
            probabilities=P.data,
            **index_arrays(P),
        )

    def backup(self, h):
        """Return r + discount P h, shape (n_pairs,)."""
        return self.rewards + self.discount * (self.transition @ h)


class Step(NamedTuple):
    """An iterate and what it certifies.

    The policy greedy in `q` earns at least `low` a step from every state, and no policy
    more than `high` from any. With a discount these bound ``(1 - discount)`` times the
    mean value over the states instead, and `high - low` bounds ``(1 - discount)`` times
    what the policy loses in any state.
    """

    h: np.ndarray  # (n_states,)
    low: float
    high: float
    rounding: float = 0.0  # no smaller high - low can be certified
    q: np.ndarray | None = None  # (n_pairs,), r + discount P h where None
    n_samples: int = 0
    stops: bool = True  # whether the method may stop here


class Halving:
    """How many steps have passed since a width was last halved."""

    def __init__(self):
        self.goal, self.since = np.inf, 0

    def update(self, width):
        """Take in the next width, and return the number of steps."""
        halved = width <= self.goal
        self.since = 0 if halved else self.since + 1
        self.goal = width / 2 if halved else self.goal
        return self.since


def index_arrays(P):
    """Return the indices of a CSR matrix in the smallest type that SciPy takes."""
    small = max(P.nnz, *P.shape) <= np.iinfo(np.int32).max
    dtype = np.int32 if small else np.int64
    return {
        "indptr": P.indptr.astype(dtype, copy=False),
        "indices": P.indices.astype(dtype, copy=False),
    }


def certificate(model, h, low, high):
    """Return bounds of the gain from bounds low, high of T h - h.

    Average reward: min (T h - h) <= gain of the greedy policy <= best gain <=
    max (T h - h). Discounted (MacQueen): h + low / (1 - discount) <= value of the
    greedy policy <= best value <= h + high / (1 - discount); where the process may end
    the bounds must have 0 between them.
    """
    if model.ends:
        low, high = min(low, 0.0), max(high, 0.0)
    offset = (1 - model.discount) * h.mean() if model.discount < 1 else 0.0
    return offset + low, offset + high


def unsigned(indices):
    """Return indices as the kernel reads them: twice as fast without a check of sign."""
    return indices.view(np.dtype(f"u{indices.dtype.itemsize}"))


class Sweeper:
    """Sweeps over a model, by threads where it is large.

    `chosen` holds the pair of each state that was best in the last one.
    """

    def __init__(self, model, n_jobs=None):
        self.model = model
        self.n_jobs = n_jobs
        n_blocks = max(1, model.n_states // LEAST_STATES)
        if n_blocks > 1:
            n_blocks = min(n_blocks, effective_n_jobs(n_jobs))
        borders = np.linspace(0, model.n_states, n_blocks + 1).astype(np.uint64)
        self.blocks = list(pairwise(borders))
        most = np.diff(model.indptr).max()
        self.relative_rounding = (most + 3) * np.finfo(float).eps / 2
        self.transition = (
            *map(unsigned, (model.starts, model.indptr, model.indices)),
            model.probabilities,
        )

    def __call__(self, h, weights, anchor=None, shift=0.0):
        """Return ``weights @ (T h - shift, h, anchor)`` and the step that h is."""
        model, new = self.model, np.empty_like(h)
        self.chosen = np.empty(model.n_states, dtype=np.int64)
        arguments = (
            *(*self.transition, model.rewards, model.discount, h),
            *(h if anchor is None else anchor, weights, shift, new),
            unsigned(self.chosen),
        )
        found = in_threads(partial(_numba.sweep, *arguments), self.blocks, self.n_jobs)
        lows, highs, tops = zip(*found, strict=True)
        slack = self.relative_rounding * max(tops)
        low, high = certificate(model, h, min(lows) - slack, max(highs) + slack)
        return new, Step(h, low, high, rounding=2 * slack)
