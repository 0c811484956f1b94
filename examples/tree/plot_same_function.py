"""
============================
Two flowcharts, one function
============================

A decision tree is a flowchart for a function, and one function has many flowcharts.
Impurity importance (MDI, the ``feature_importances_`` of scikit-learn) belongs to the
flowchart. This example collects trees that are the same function, and compares their
impurity importances with the exact permutation importance, which depends on the
function alone.
"""

# %%
# The smallest case
# -----------------
# Let y be "a and b", on the four rows of the truth table. Both features play the same
# part. A tree has to test one of them first, and ``random_state`` decides which.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.tree import DecisionTreeClassifier, plot_tree

from skextra.tree import (
    essential_thresholds,
    exact_permutation_importance,
    trees_equivalent,
    unique_trees,
)

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
y = X.all(axis=1)
trees = [DecisionTreeClassifier(random_state=seed).fit(X, y) for seed in range(20)]
first = trees[0]
other = next(t for t in trees if t.tree_.feature[0] != first.tree_.feature[0])

print("same function:", trees_equivalent(first, other))
for tree in (first, other):
    exact = exact_permutation_importance(tree, X, y)
    print("MDI:", tree.feature_importances_.round(3), " exact:", exact.round(3))

# %%
# The feature that is tested last gets two thirds of the impurity importance, only
# because it is tested last. The exact permutation importance is equal for both.
#
# End boards of tic-tac-toe
# -------------------------
# The data are the 958 boards with which a game can end, described by 18 columns: is
# there an x, is there an o, on each of the nine squares a1 to c3. The label is whether
# x has won. The rules of the game give the table.

LINES = ["a1a2a3", "b1b2b3", "c1c2c3", "a1b1c1", "a2b2c2", "a3b3c3", "a1b2c3", "a3b2c1"]
squares = [row + column for row in "abc" for column in "123"]
lines = [[squares.index(line[i : i + 2]) for i in (0, 2, 4)] for line in LINES]


def has_won(board, player):
    return any(all(board[i] == player for i in line) for line in lines)


def end_boards(board=" " * 9, player="x", other="o"):
    if has_won(board, other) or " " not in board:
        return {board}
    moves = [i for i in range(9) if board[i] == " "]
    after = [board[:i] + player + board[i + 1 :] for i in moves]
    return set().union(*(end_boards(b, other, player) for b in set(after)))


boards = sorted(end_boards())
X = np.array([[square == p for p in "xo" for square in board] for board in boards])
y = np.array([has_won(board, "x") for board in boards])
names = [f"{p} {square}" for p in "xo" for square in squares]
print(X.shape, f"x has won on {y.mean():.1%} of the boards")

# %%
# We fit 2000 trees of depth 3. Each looks at six random columns per split, as the trees
# of a random forest do, so that they test in different orders.

trees = [
    DecisionTreeClassifier(max_depth=3, max_features=6, random_state=seed).fit(X, y)
    for seed in range(2000)
]


def flowchart(tree):
    return tuple(tree.tree_.feature), tuple(tree.tree_.value.argmax(axis=2).ravel())


found = unique_trees(trees)
print(f"{len({flowchart(t) for t in trees})} different flowcharts")
print(f"{len(found.counts)} different functions")

# %%
# Nearly half of the flowcharts are duplicates. Take the function of most flowcharts
# among those that are right on at least 74 % of the boards.

accuracy = np.array([tree.score(X, y) for tree in found.representatives])
chosen = np.argmax(np.where(accuracy >= 0.74, found.counts, 0))
same = [trees[i] for i in np.flatnonzero(found.inverse == chosen)]
essential = essential_thresholds(same[0])
print(f"{len(same)} trees, right on {accuracy[chosen]:.1%} of the boards")
print("the function depends on:", [names[j] for j in essential])

# %%
# It is "x has won unless x has none of the squares a3, b2 and c1", one of the two
# diagonals. The corners a3 and c1 play the same part in it. Here are two of its
# flowcharts, those whose impurity importances differ most. The darker a node, the purer
# it is.

mdi = np.array([tree.feature_importances_ for tree in same])
distance = np.abs(mdi[:, None] - mdi).sum(axis=2)
pair = [same[i] for i in np.unravel_index(distance.argmax(), distance.shape)]
exact = np.array([exact_permutation_importance(tree, X, y) for tree in same])
print("largest difference of the exact importances:", np.ptp(exact, axis=0).max())


def draw(tree, ax):
    boxes = plot_tree(
        tree, feature_names=names, class_names=["no", "won"], filled=True, ax=ax
    )
    for box in boxes:
        lines = box.get_text().split("\n")
        if "<=" in lines[0]:
            text = lines[0].replace(" <= 0.5", "?")
        elif len(lines) > 1:
            text = lines[-1].removeprefix("class = ")
        else:
            text = ""  # the edges
        box.set(text=text, fontsize=9)


fig, axes = plt.subplot_mosaic(
    [["first", "bars"], ["second", "bars"]],
    figsize=(11, 6.5),
    layout="constrained",
    width_ratios=[3, 2],
)
for name, tree in zip(["first", "second"], pair, strict=True):
    draw(tree, axes[name])
    axes[name].set_title(f"The {name} flowchart (left: no, right: yes)")

ax = axes["bars"]
used = np.flatnonzero(mdi.any(axis=0))
used = used[np.lexsort([used, exact[0, used]])]
shares = exact[0, used] / exact[0].sum()
jitter = np.random.default_rng(0).uniform(-0.2, 0.2, (len(same), 1))
rows = np.arange(len(used))
ax.plot(mdi[:, used], rows + jitter, "o", color="C1", alpha=0.5, ms=5, mew=0)
ax.plot([], [], "o", color="C1", label=f"MDI of {len(same)} trees")
ax.plot(shares, rows, "*", color="C0", ms=13, label="exact, the same for all")
ax.set_yticks(rows, [names[j] for j in used])
ax.grid(axis="y", color="0.9")
ax.set(xlabel="share of the importance", title="One function")
ax.legend(loc="lower right")
plt.show()

# %%
# The impurity importance of a corner is 7 % or about 45 %, whichever of the two comes
# first. Columns on which the function does not depend at all get up to 14 %: they are
# tested where all leaves below have the same label. The exact permutation importance is
# one number for each column, equal for the two corners, and zero for what does not
# matter.
#
# None of this says that impurity importance is computed wrongly. It describes how a
# tree was grown. It does not describe what the tree does.
