"""The search that all solvers share: what their steps certify, and the end of it."""

import numpy as np
from scipy.sparse import csr_array

from skextra.mdp._model import Halving

# Iterations without much progress, once rounding is as large as the interval.
STUCK = 20
LARGEST = 1e200  # reward; values of states are sums of many


class Search:
    """The best step so far, and the bounds and draws of all.

    Each certificate bounds the best gain, so the least upper bound of all steps holds
    for it. The policy is that of the step that reaches the tolerance, or until then has
    the largest lower bound.
    """

    def __init__(self, model, tol):
        self.model = model
        self.require_in_range(np.abs(model.rewards).max() < LARGEST)
        self.width = tol * (1 - model.discount) if model.discount < 1 else tol
        self.best, self.high, self.n_samples, self.history = None, np.inf, 0, []
        self.converged = self.exhausted = False
        self.halving = Halving()

    def take(self, step):
        """Take a step in, and return whether the search is over."""
        self.require_in_range(np.isfinite(step.high - step.low))
        self.history.append((step.low, step.high))
        self.n_samples += step.n_samples
        self.high = min(self.high, step.high)
        width = step.high - step.low
        since = self.halving.update(width)
        self.converged = bool(step.stops and width <= self.width)
        stuck = width <= 2 * step.rounding and since >= STUCK
        self.exhausted = stuck and not self.converged
        if self.best is None or step.low >= self.best.low or self.converged:
            self.best = step
        return self.converged or self.exhausted

    def require_in_range(self, fits):
        """Raise if values leave the range of floating-point numbers."""
        if not fits:
            raise ValueError(
                "The values of the states leave the range of floating-point numbers: "
                "divide the rewards, here up to "
                f"{np.abs(self.model.rewards).max():.3g}, by a constant."
            )

    def fitted(self, labels):
        """Return the fitted attributes that a solver gives."""
        model, step = self.model, self.best
        q = model.backup(step.h) if step.q is None else step.q
        gain = (step.low + self.high) / 2
        policy = model.greedy(q)
        if model.discount == 1:  # h and q + gain are free but for a constant
            h, q = step.h - step.h[0], q - step.h[0] - gain
        elif not model.ends:  # the middle of MacQueen's bounds
            middle = (step.low + step.high) / 2 / (1 - model.discount) - step.h.mean()
            h, q = step.h + middle, q + model.discount * middle
        else:
            h = step.h
        return {
            "policy_": labels[policy],
            "gain_": float(gain),
            "gain_interval_": np.array([step.low, self.high]),
            "gain_history_": np.array(self.history),
            "bias_": h,
            "q_": model.table(q),
            "actions_": labels,
            "reward_": model.table(model.rewards),
            "n_iter_": len(self.history),
            "n_samples_": self.n_samples,
            "span_residual_": float(step.high - step.low),
            "converged_": self.converged,
            "discount_": None if model.discount == 1 else model.discount,
        }

    def shortfall(self, max_iter, max_samples):
        """Return why the search ended before the tolerance was reached, and a mend."""
        if self.exhausted:
            return "rounding leaves no more to gain. Increase tol."
        if len(self.history) >= max_iter:
            return f"max_iter={max_iter} iterations were not enough. Increase max_iter."
        return (
            f"max_samples={max_samples} draws would not do for another step. Increase "
            "max_samples or sample_tol."
        )


def transition_table(model):
    """Return the transitions as rows ``state * n_actions + action``, CSR."""
    n_rows = model.n_states * model.n_actions
    sizes = np.zeros(n_rows, dtype=np.int64)
    sizes[model.pair_states * model.n_actions + model.actions] = np.diff(model.indptr)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(model.indptr.dtype)
    return csr_array(
        (model.probabilities, model.indices, indptr), shape=(n_rows, model.n_states)
    )
