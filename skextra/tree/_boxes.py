"""Boxes of cells: ``start <= cell < stop`` in each used feature of a tree."""

import numpy as np


def grow(start, stop, others, columns, n_cells):
    """Widen the box in place, one side at a time, without meeting the other boxes.

    `others` holds their starts and stops; a side moves as far as it can.
    """
    other_start, other_stop = others
    meets = (other_start < stop) & (other_stop > start)
    for k in columns:
        near = meets.sum(axis=1) - meets[:, k] == meets.shape[1] - 1
        below = near & (other_stop[:, k] <= start[k])
        above = near & (other_start[:, k] >= stop[k])
        start[k] = other_stop[below, k].max(initial=0)
        stop[k] = other_start[above, k].min(initial=n_cells[k])
        meets[:, k] = (other_start[:, k] < stop[k]) & (other_stop[:, k] > start[k])


def uncovered_cell(start, stop, cover):
    """Return a cell of the box that no box of the cover holds, or None.

    Each part of the box is cut along one box of the cover that meets it.
    """
    parts = [(start, stop)]
    while parts:
        start, stop = parts.pop()
        cover_start, cover_stop = cover
        meeting = ((cover_start < stop) & (cover_stop > start)).all(axis=1)
        if not meeting.any():
            return start
        box = np.argmax(meeting)
        start, stop = start.copy(), stop.copy()
        for k in range(len(start)):
            if start[k] < cover_start[box, k]:
                below = stop.copy()
                below[k] = cover_start[box, k]
                parts.append((start.copy(), below))
                start[k] = cover_start[box, k]
            if stop[k] > cover_stop[box, k]:
                above = start.copy()
                above[k] = cover_stop[box, k]
                parts.append((above, stop.copy()))
                stop[k] = cover_stop[box, k]
    return None
