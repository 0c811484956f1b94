"""The kernel: one sweep of the Bellman operator."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sweep(
    starts, indptr, indices, probabilities, rewards, discount,
    h, anchor, weights, shift, new, chosen, first, last,
):  # fmt: skip
    """Apply the Bellman operator T to the states from first to last, and move on.

    ``new`` gets ``weights @ (T h - shift, h, anchor)``, and ``chosen`` the pair that is
    best in h. Return the least and greatest ``T h - h``, and the largest absolute value
    met.
    """
    of_backup, of_h, of_anchor = weights
    low, high, top = np.inf, -np.inf, 0.0
    for s in range(first, last):
        best, pick = -np.inf, starts[s]
        for pair in range(starts[s], starts[s + 1]):
            ahead = 0.0
            for j in range(indptr[pair], indptr[pair + 1]):
                ahead += probabilities[j] * h[indices[j]]
            q = rewards[pair] + discount * ahead
            pick = pair if q > best else pick  # without a branch, which is a guess
            best = max(best, q)
        chosen[s] = pick
        change = best - h[s]
        low, high = min(low, change), max(high, change)
        top = max(top, abs(best), abs(h[s]))
        new[s] = of_backup * (best - shift) + of_h * h[s] + of_anchor * anchor[s]
    return low, high, top
