"""CPU kernels of sequential acquisition: dynamic programming over what is known.

`known` is the cell of each used feature, -1 if unknown. `tree` is ``column, cut, left,
right, label, share``, the last of the mass of a node's interval that goes left.
`actions` is ``owner, member, cost, outcome, n_outcomes, first, cells, chance``: the
action that buys each feature, a mask of each action's features, its cost, the outcome
of each row, and for the outcomes of each action, from ``first[action]`` on, the cells
they reveal and their probability. `rows` is ``cells, weight, order``; the rows that
agree with `known` are ``order[begin:end]``, and without rows (length 0) features are
independent.
"""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def cheapest_need(known, tree, actions):
    """Least cost of an action that could still matter, -1 if the label is determined."""
    column, cut, left, right, label, _ = tree
    owner, cost = actions[0], actions[2]
    waiting = np.empty(len(column) // 2 + 1, np.int32)
    n_waiting, node, first, least = 0, 0, -1, np.inf
    determined = True
    while True:
        k = column[node]
        if k >= 0:
            if known[k] < 0:
                least = min(least, cost[owner[k]])
                waiting[n_waiting] = right[node]
                n_waiting += 1
                node = left[node]
            else:
                node = left[node] if known[k] <= cut[node] else right[node]
            continue
        if first < 0:
            first = label[node]
        determined = determined and label[node] == first
        if n_waiting == 0:
            return -1.0 if determined else least
        n_waiting -= 1
        node = waiting[n_waiting]


@njit(cache=True, nogil=True)
def next_on_path(known, tree, actions):
    """Action that buys the next unknown feature on the tree's own path."""
    column, cut, left, right, _, _ = tree
    node = 0
    while known[column[node]] >= 0:
        k = column[node]
        node = left[node] if known[k] <= cut[node] else right[node]
    return actions[0][column[node]]


@njit(cache=True, nogil=True)
def chances(known, action, actions, rows, begin, end):
    """Probability of each outcome of an action."""
    _, member, _, outcome, n_outcomes, first, cells, chance = actions
    _, weight, order = rows
    p = np.zeros(n_outcomes[action])
    if len(order):
        for r in range(begin, end):
            p[outcome[order[r], action]] += weight[order[r]]
    else:
        for v in range(len(p)):
            at = first[action] + v
            agrees = True
            for k in range(len(known)):
                if member[action, k] and known[k] >= 0 and known[k] != cells[at, k]:
                    agrees = False
            if agrees:
                p[v] = chance[at]
    return p / p.sum()


@njit(cache=True, nogil=True)
def partition(action, actions, rows, begin, end):
    """Sort the rows by outcome; return the ends of the outcomes' parts."""
    outcome, n_outcomes = actions[3], actions[4]
    order = rows[2]
    ends = np.full(n_outcomes[action] + 1, begin)
    if not len(order):
        return ends
    for r in range(begin, end):
        ends[outcome[order[r], action] + 1] += 1
    for v in range(n_outcomes[action]):
        ends[v + 1] += ends[v] - begin
    place = ends.copy()
    before = order[begin:end].copy()
    for row in before:
        v = outcome[row, action]
        order[place[v]] = row
        place[v] += 1
    return ends


@njit(cache=True, nogil=True)
def reveal(known, action, v, actions):
    """What is known after an outcome."""
    _, member, _, _, _, first, cells, _ = actions
    after = known.copy()
    for k in range(len(known)):
        if member[action, k]:
            after[k] = cells[first[action] + v, k]
    return after


@njit(cache=True, nogil=True)
def cost_to_leaf(known, tree, actions):
    """Expected cost of going on to a leaf, of independent features."""
    column, cut, left, right, _, share = tree
    owner, cost = actions[0], actions[2]
    # What is waiting: a node, its probability, and what is bought on its path.
    nodes = np.empty(len(column) // 2 + 1, np.int32)
    chances_of = np.empty(len(nodes))
    bought = np.zeros((len(nodes), len(cost)), np.bool_)
    path = np.zeros(len(cost), np.bool_)
    node, chance, n_waiting, total = 0, 1.0, 0, 0.0
    while True:
        k = column[node]
        if k >= 0 and known[k] >= 0:
            node = left[node] if known[k] <= cut[node] else right[node]
            continue
        if k >= 0 and chance > 0:
            if not path[owner[k]]:
                total += chance * cost[owner[k]]
                path[owner[k]] = True
            nodes[n_waiting] = right[node]
            chances_of[n_waiting] = chance * (1 - share[node])
            bought[n_waiting] = path
            n_waiting += 1
            chance *= share[node]
            node = left[node]
            continue
        if n_waiting == 0:
            return total
        n_waiting -= 1
        node, chance = nodes[n_waiting], chances_of[n_waiting]
        path[:] = bought[n_waiting]


@njit(cache=True, nogil=True)
def follow(known, tree, actions, rows, begin, end):
    """Expected cost of the tree's own order.

    Over rows it ends when the label is determined. Of independent features there are too
    many outcomes to see to that: it ends at once or at a leaf.
    """
    if cheapest_need(known, tree, actions) < 0:
        return 0.0
    if not len(rows[2]):
        return cost_to_leaf(known, tree, actions)
    action = next_on_path(known, tree, actions)
    p = chances(known, action, actions, rows, begin, end)
    ends = partition(action, actions, rows, begin, end)
    total = actions[2][action]
    for v in range(len(p)):
        if p[v] > 0:
            after = reveal(known, action, v, actions)
            total += p[v] * follow(after, tree, actions, rows, ends[v], ends[v + 1])
    return total


@njit(cache=True, nogil=True)
def is_available(known, action, actions):
    """Whether the action reveals anything."""
    for k in range(len(known)):
        if actions[1][action, k] and known[k] < 0:
            return True
    return False


@njit(cache=True, nogil=True)
def rollout(known, tree, actions, rows, begin, end):
    """Best action if the tree's own order comes after it."""
    best, best_action = np.inf, next_on_path(known, tree, actions)
    for action in range(len(actions[2])):
        if not is_available(known, action, actions):
            continue
        p = chances(known, action, actions, rows, begin, end)
        ends = partition(action, actions, rows, begin, end)
        total = actions[2][action]
        for v in range(len(p)):
            if p[v] > 0:
                after = reveal(known, action, v, actions)
                total += p[v] * follow(after, tree, actions, rows, ends[v], ends[v + 1])
        if total < best:
            best, best_action = total, action
    return best_action


@njit(cache=True, nogil=True)
def rollout_cost(known, tree, actions, rows, begin, end, count):
    """Expected cost of taking :func:`rollout` in every state, -1 if they are too many.

    `count` is the number of states met and their limit.
    """
    if cheapest_need(known, tree, actions) < 0:
        return 0.0
    if count[0] == count[1]:
        return -1.0
    count[0] += 1
    action = rollout(known, tree, actions, rows, begin, end)
    p = chances(known, action, actions, rows, begin, end)
    ends = partition(action, actions, rows, begin, end)
    total = actions[2][action]
    for v in range(len(p)):
        if p[v] > 0:
            after = reveal(known, action, v, actions)
            begin_after, end_after = ends[v], ends[v + 1]
            cost = rollout_cost(
                after, tree, actions, rows, begin_after, end_after, count
            )
            if cost < 0:
                return -1.0
            total += p[v] * cost
    return total


@njit(cache=True, nogil=True)
def find_slot(states, best_action, known):
    """Place of a state in the hash table, or the free one where it belongs."""
    h = np.uint64(14695981039346656037)
    for k in range(len(known)):
        h = (h ^ np.uint64(known[k] + 1)) * np.uint64(1099511628211)
    slot = np.int64((h ^ (h >> np.uint64(29))) % np.uint64(len(best_action)))
    while best_action[slot] >= 0:
        same = True
        for k in range(len(known)):
            if states[slot, k] != known[k]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) % len(best_action)
    return slot


@njit(cache=True, nogil=True)
def move_states(table, new):
    """Copy what is solved into a larger table."""
    states, value, best_action = table
    for old in range(len(best_action)):
        if best_action[old] >= 0:
            slot = find_slot(new[0], new[2], states[old])
            new[0][slot], new[1][slot] = states[old], value[old]
            new[2][slot] = best_action[old]


@njit(cache=True, nogil=True)
def solve(known, tree, actions, rows, begin, end, table, count):
    """Least expected cost from a state on, or -1 if the table is full.

    `table` is ``states, value, best_action``, an open hash table of what is solved, and
    `count` its number of states and their limit. Actions are tried in the order of a
    lower bound, their cost and that of the cheapest need after each outcome, and left
    as soon as the bound reaches the best action so far.
    """
    if cheapest_need(known, tree, actions) < 0:
        return 0.0
    states, value, best_action = table
    slot = find_slot(states, best_action, known)
    if best_action[slot] >= 0:
        return value[slot]
    cost = actions[2]
    bounds = np.full(len(cost), np.inf)
    needs = np.zeros((len(cost), actions[4].max()))
    for action in range(len(cost)):
        if not is_available(known, action, actions):
            continue
        p = chances(known, action, actions, rows, begin, end)
        bounds[action] = cost[action]
        for v in range(len(p)):
            if p[v] > 0:
                after = reveal(known, action, v, actions)
                needs[action, v] = p[v] * max(cheapest_need(after, tree, actions), 0.0)
                bounds[action] += needs[action, v]
        if cost[action] == 0:
            # What is free is taken at once.
            bounds[:action] = np.inf
            break
    best, best_so_far = np.inf, -1
    for action in np.argsort(bounds, kind="mergesort"):
        if bounds[action] >= best:
            break
        p = chances(known, action, actions, rows, begin, end)
        ends = partition(action, actions, rows, begin, end)
        total = bounds[action]
        for v in range(len(p)):
            if p[v] > 0:
                after = reveal(known, action, v, actions)
                cost_after = solve(
                    after, tree, actions, rows, ends[v], ends[v + 1], table, count
                )
                if cost_after < 0:
                    return -1.0
                total += p[v] * cost_after - needs[action, v]
                if total >= best:
                    break
        if total < best:
            best, best_so_far = total, action
    if count[0] == count[1]:
        return -1.0
    slot = find_slot(states, best_action, known)
    states[slot], value[slot], best_action[slot] = known, best, best_so_far
    count[0] += 1
    return best
