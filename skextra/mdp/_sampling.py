"""Draws of next states: from a model, or by a function of the user."""

from itertools import count

import numpy as np
from scipy.sparse import coo_array, csr_array

from skextra.utils import in_threads, row_blocks

DRAWS_AT_ONCE = 2**20  # asked of a user's function


class ModelSampler:
    """Draws from the rows of a known model, as counts of the next states.

    However many draws are asked for, a pair costs as much as it has successors. Blocks
    of pairs have generators of their own, so that threads do not change the draws.
    """

    def __init__(self, model, rng, n_jobs=None):
        self.model = model
        self.seed = rng.randint(np.iinfo(np.int32).max)
        self.calls = count()
        self.n_jobs = n_jobs
        most = np.diff(model.indptr).max() + 1
        self.blocks = list(row_blocks(model.n_pairs, 16 * most))

    def counts(self, size):
        """Return how often each next state came in `size` draws, shape of the model."""
        call = next(self.calls)
        tasks = [
            (size, block, np.random.default_rng([self.seed, call, i]))
            for i, block in enumerate(self.blocks)
        ]
        found = in_threads(self._counts_of, tasks, self.n_jobs)
        model = self.model
        return csr_array(
            (np.concatenate(found), model.indices, model.indptr),
            shape=(model.n_pairs, model.n_states),
        )

    def _counts_of(self, size, block, rng):
        """Return counts for a block of pairs, in the order of the model's entries."""
        indptr = self.model.indptr[block.start : block.stop + 1]
        lengths = np.diff(indptr)
        # Probabilities stand at the right end of their rows, where the last one gets
        # what rounding leaves; with an end, the end stands there.
        ends = int(self.model.ends)
        width = lengths.max() + ends
        filled = np.arange(width - ends) >= (width - ends - lengths)[:, None]
        table = np.zeros((lengths.size, width))
        table[:, : width - ends][filled] = self.model.probabilities[
            indptr[0] : indptr[-1]
        ]
        if ends:
            table[:, -1] = 1 - table.sum(axis=1)
        table = table.clip(0, 1)  # rounding
        return rng.multinomial(size, table)[:, : width - ends][filled]

    def means(self, values, size):
        """Return the mean of values of the next state over `size` draws of each pair."""
        return self.counts(size) @ values / size


class CallableSampler:
    """Draws by a function of the user, ``sampler(s, a, size, rng)``."""

    def __init__(self, sampler, model, rng):
        self.sampler = sampler
        self.model = model
        self.pairs = list(
            zip(model.pair_states.tolist(), model.actions.tolist(), strict=True)
        )
        self.rng = np.random.default_rng(rng.randint(np.iinfo(np.int32).max))

    def draws(self, s, a, size):
        """Yield the next states of a pair, a block at a time."""
        for left in range(size, 0, -DRAWS_AT_ONCE):
            asked = min(left, DRAWS_AT_ONCE)
            yield self.checked(self.sampler(s, a, asked, self.rng), s, a, asked)

    def checked(self, states, s, a, size):
        """Return next states as the sampler must give them."""
        states, n_states = np.asarray(states), self.model.n_states
        call = f"sampler({s}, {a}, {size}, rng)"
        if states.shape != (size,) or states.dtype.kind not in "iu":
            raise ValueError(
                f"{call} must return {size} integers, the next states; got "
                f"{states.dtype} of shape {states.shape}."
            )
        wrong = states[(states < 0) | (states >= n_states)]
        if wrong.size:
            raise ValueError(
                f"{call} must return states from 0 to {n_states - 1}; got {wrong[0]}."
            )
        return states

    def counts(self, size):
        """Return how often each next state came in `size` draws of each pair."""
        rows, columns, times = [], [], []
        for row, (s, a) in enumerate(self.pairs):
            for states in self.draws(s, a, size):
                different, counts = np.unique(states, return_counts=True)
                rows.append(np.full(different.size, row))
                columns.append(different)
                times.append(counts)
        places = np.concatenate(rows), np.concatenate(columns)
        shape = self.model.n_pairs, self.model.n_states
        return coo_array((np.concatenate(times), places), shape=shape).tocsr()

    def means(self, values, size):
        """Return the mean of values of the next state over `size` draws of each pair."""
        return np.array(
            [
                sum(values[states].sum() for states in self.draws(s, a, size)) / size
                for s, a in self.pairs
            ]
        )
