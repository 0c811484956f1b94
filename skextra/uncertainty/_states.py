"""Labels of several points, or several labels of a point, as one label of many values."""

from itertools import combinations_with_replacement
from math import comb, factorial, prod

import numpy as np

LARGEST_EXACT = 10**5


def count_vectors(n_classes, n_steps):
    """Return how often each class can come in n_steps labels, and in how many orders."""
    n_states = comb(n_steps + n_classes - 1, n_steps)
    if n_states > LARGEST_EXACT:
        raise ValueError(
            f"n_steps must be smaller: {n_steps} labels of {n_classes} classes have "
            f"{n_states} outcomes, and at most {LARGEST_EXACT} are counted"
        )
    counts = np.array(
        [
            np.bincount(labels, minlength=n_classes)
            for labels in combinations_with_replacement(range(n_classes), n_steps)
        ]
    )
    orders = [
        factorial(n_steps) // prod(map(factorial, row)) for row in counts.tolist()
    ]
    return counts, np.array(orders, dtype=float)


def repeated(counts, orders, p):
    """Return the probabilities of the counts of labels at a point, (n, K, n_states)."""
    out = np.broadcast_to(orders, (*p.shape[:2], len(orders))).copy()
    for c in range(p.shape[2]):
        out *= p[:, :, c, None] ** counts[:, c]
    return out


def all_labels(p):
    """Return the probabilities of all labels of points (n, K, C), as (K, C^n)."""
    states = np.ones((p.shape[1], 1))
    for point in p:
        states = joint_labels(states, point[None])[0]
    return states


def drawn_labels(p, weights, members, uniform):
    """Return drawn labels of points (n, K, C) as states (K, n_samples) of equal mass.

    The labels of draw m are those of the member ``members[m]``, by the inverse of the
    distribution functions at `uniform` (n, n_samples). What a state says of the members
    is exact, and its mass is its share of the draws.
    """
    odds = np.ones((p.shape[1], len(members)))
    for point, u in zip(p, uniform, strict=False):
        below = point.cumsum(axis=1)
        below /= below[:, -1:]
        label = (u[:, None] >= below[members, :-1]).sum(axis=1)
        odds *= point[:, label]
        odds /= weights @ odds
    return odds / len(members)


def joint_labels(states, p):
    """Return the labels of points (n, K, C) together with states (K, S), (n, K, S C)."""
    n, n_members, _ = p.shape
    return (states[None, :, :, None] * p[:, :, None, :]).reshape(n, n_members, -1)
