"""Rules of a tree: boxes in which it has one label."""

import time
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from skextra.tree._boxes import grow, uncovered_cell
from skextra.tree._errors import BudgetExceededError
from skextra.tree._flat import LEAF
from skextra.tree._numba import first_maximal
from skextra.utils import row_blocks


class Rule(NamedTuple):
    """A box of feature intervals in which a tree has one label.

    Parameters
    ----------
    label : object
        The label.

    bounds : dict of int to (float, float)
        For each bounded feature its interval ``low < x <= high``; at least one end is
        finite. A feature that is not listed may have any value.

    support : float or None
        Weight of the training rows in the box, each row counting 1 without sample
        weights. Rules may overlap. None if the tree was taken over without rows.

    precision : float or None
        Share of that weight whose target is `label`. None without rows in the box, or
        without their targets.

    Examples
    --------
    >>> from skextra.tree import Rule
    >>> Rule("setosa", {2: (float("-inf"), 2.45)}, 50.0, 1.0).bounds
    {2: (-inf, 2.45)}
    """

    label: object
    bounds: dict
    support: float | None
    precision: float | None


def prime_boxes(tree, label, max_terms):
    """All largest boxes of cells in which the tree has the label.

    Bottom-up: a largest box of a split's region is one of a child's, or the union,
    across the threshold, of a left and a right one, with the other features' intervals
    intersected. As starts and stops, of shape (n_boxes, n_used) each.
    """
    start, stop = (np.zeros((len(tree.feature), len(tree.used)), int) for _ in "ab")
    start[tree.leaves], stop[tree.leaves] = tree.leaf_cells
    nothing = start[:0]
    found = {}
    for node in range(len(tree.feature))[::-1]:
        if tree.feature[node] != LEAF:
            left, right = found.pop(tree.left[node]), found.pop(tree.right[node])
            k, cell = tree.column[node], tree.cut[node] + 1
            found[node] = _join(left, right, k, cell, max_terms)
        elif tree.label[node] == label:
            found[node] = start[node : node + 1], stop[node : node + 1]
        else:
            found[node] = nothing, nothing
    return found[0]


def _join(left, right, k, cell, max_terms):
    """Largest boxes of a split at the cell of feature k from those of its children."""
    p_start, p_stop = (ends[left[1][:, k] == cell] for ends in left)
    q_start, q_stop = (ends[right[0][:, k] == cell] for ends in right)
    found = _largest(*map(np.concatenate, zip(left, right, strict=True)), max_terms)
    if not len(p_start) or not len(q_start):
        return found
    for rows in row_blocks(len(p_start), 16 * q_start.size):
        starts = np.maximum(p_start[rows, None], q_start)
        stops = np.minimum(p_stop[rows, None], q_stop)
        starts[:, :, k], stops[:, :, k] = p_start[rows, None, k], q_stop[:, k]
        meet = (starts < stops).all(axis=2)
        start = np.concatenate([found[0], starts[meet]])
        stop = np.concatenate([found[1], stops[meet]])
        found = _largest(start, stop, max_terms)
    return found


def _largest(start, stop, max_terms):
    """Drop the boxes that lie in others."""
    order = np.argsort(-(stop - start).sum(axis=1), kind="stable")
    start, stop = start[order], stop[order]
    kept = first_maximal(start, stop, min(max_terms, len(start)))
    if len(start) and not len(kept):
        raise BudgetExceededError(
            f"The prime implicants of a part of the tree are more than "
            f"max_terms={max_terms}. Raise max_terms, or take "
            'rule_form="irredundant", which needs no list of them.'
        )
    return start[kept], stop[kept]


def irredundant_boxes(tree, label):
    """Grow each leaf of the label, and keep few of the boxes that hold all leaves."""
    start, stop = tree.leaf_cells
    has_label = tree.label[tree.leaves] == label
    others = start[~has_label], stop[~has_label]
    n_cells = [len(thresholds) + 1 for thresholds in tree.grid]
    boxes = []
    for leaf in np.flatnonzero(has_label):
        box = start[leaf].copy(), stop[leaf].copy()
        grow(*box, others, range(len(n_cells)), n_cells)
        boxes.append(np.concatenate(box))
    if not boxes:
        return start[:0], stop[:0]
    _, first = np.unique(boxes, axis=0, return_index=True)
    box_start, box_stop = np.split(np.array(boxes)[np.sort(first)], 2, axis=1)
    holds = (box_start[:, None] <= start[has_label]).all(axis=2)
    holds &= (stop[has_label] <= box_stop[:, None]).all(axis=2)
    kept, open_leaves = [], np.ones(holds.shape[1], bool)
    while open_leaves.any():
        kept.append(np.argmax((holds & open_leaves).sum(axis=1)))
        open_leaves &= ~holds[kept[-1]]
    for box in kept[::-1]:
        rest = [other for other in kept if other != box]
        if holds[rest].any(axis=0).all():
            kept = rest
    return box_start[kept], box_stop[kept]


def minimal_boxes(tree, label, max_terms, time_limit):
    """Fewest boxes whose union is the label's region, and fewest bounds among these.

    A set cover of the region by prime boxes, in which a cell has to be covered only
    when a solution has left it out.
    """
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    start, stop = prime_boxes(tree, label, max_terms)
    n_cells = np.array([len(thresholds) + 1 for thresholds in tree.grid])
    n_bounds = (start > 0).sum(axis=1) + (stop < n_cells).sum(axis=1)
    leaf_start, leaf_stop = (
        ends[tree.label[tree.leaves] == label] for ends in tree.leaf_cells
    )
    # One box more costs more than all bounds that it could save: there is a cover with
    # a box for each leaf.
    costs = 1 + len(leaf_start) * n_bounds.max(initial=0) + n_bounds
    required, missed, cover = [], list(leaf_start), (start, stop)
    while missed:
        required += missed
        covers = [((start <= cell) & (cell < stop)).all(axis=1) for cell in required]
        left = deadline - time.monotonic()
        answer = None
        if left > 0:
            answer = milp(
                costs,
                integrality=np.ones(len(costs)),
                bounds=Bounds(0, 1),
                constraints=LinearConstraint(np.array(covers, float), lb=1),
                options={"mip_rel_gap": 0, "time_limit": min(left, 1e9)},
            )
        if answer is None or answer.status != 0:
            raise BudgetExceededError(
                f"The smallest rules were not found within time_limit={time_limit} "
                'seconds. Raise it, or take rule_form="irredundant".'
            )
        chosen = answer.x > 0.5
        cover = start[chosen], stop[chosen]
        cells = [
            uncovered_cell(*leaf, cover)
            for leaf in zip(leaf_start, leaf_stop, strict=True)
        ]
        missed = [cell for cell in cells if cell is not None]
    return cover


def condition(name, low, high, domain, decimals):
    """Write the interval ``low < x <= high`` of a feature."""
    if np.isfinite(low) and np.isfinite(high):
        return f"{_number(low, decimals)} < {name} <= {_number(high, decimals)}"
    return f"{name} {interval(low, high, domain, decimals)}"


def interval(low, high, domain, decimals=2):
    """Write an interval alone, for a picture."""
    if low == -np.inf and high == np.inf:
        return "any value"
    if domain == "binary":
        return f"= {int(low >= 0)}"
    if not np.isfinite(low):
        return f"<= {_number(high, decimals)}"
    if not np.isfinite(high):
        return f"> {_number(low, decimals)}"
    return f"{_number(low, decimals)} to {_number(high, decimals)}"


def _number(value, decimals):
    """Write a threshold, with as many digits as it takes not to look like 0."""
    text = f"{value:.{decimals}f}"
    return text if float(text) or not value else f"{value:.{max(1, decimals)}g}"
