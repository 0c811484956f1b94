"""Characters as site patterns: what differs, and how often it occurs."""

from typing import NamedTuple

import numpy as np


class Patterns(NamedTuple):
    """Different sites, in a fixed order."""

    states: np.ndarray  # (n_patterns, n_leaves) int8, those of `as_states`
    weights: np.ndarray  # (n_patterns,) sum of the weights of the sites
    inverse: np.ndarray  # (n_sites,) pattern of each site
    complemented: np.ndarray  # (n_sites,) whether states 0 and 1 have changed places


def as_states(X, binarize):
    """Return 1 where the state is 0, -1 where it is 1 and 0 where it is missing."""
    missing = np.isnan(X)
    if binarize is None:
        wrong = ~(missing | (X == 0) | (X == 1))
        if wrong.any():
            site, leaf = np.argwhere(wrong)[0]
            raise ValueError(
                "With binarize=None X must hold 0, 1 and NaN alone, got "
                f"{X[site, leaf]} in row {site}, column {leaf}."
            )
        binarize = 0.5
    states = np.where(X > binarize, -1, 1).astype(np.int8)
    states[missing] = 0
    return states


def compress(states, weights=None):
    """Count the different sites; a site and its complement are the same pattern.

    The two have the same probability, since the states are exchangeable. The pattern
    has state 0 at the first leaf that is not missing.
    """
    weights = np.ones(len(states)) if weights is None else weights
    first = (states != 0).argmax(axis=1)
    sign = states[np.arange(len(states)), first]
    states = states * np.where(sign == 0, 1, sign)[:, None]
    bits = [np.packbits(states == state, axis=1) for state in (-1, 0)]
    width = 2 * bits[0].shape[1]
    kind = next((np.dtype(f"u{size}") for size in (2, 4, 8) if width <= size), None)
    kind = kind or np.dtype((np.void, width))  # numbers are sorted faster
    keys = np.zeros((len(states), kind.itemsize), dtype=np.uint8)
    keys[:, :width] = np.hstack(bits)
    keys = keys.view(kind).ravel()
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    weights = np.bincount(inverse, weights, minlength=len(index))
    return Patterns(states[index], weights, inverse, sign < 0)
