"""
=====================================
How many good trees are there really?
=====================================

There is rarely one best tree. The *Rashomon set* holds all trees that are nearly as
good as the best one, and is used to ask which features matter in every good model. But
many of its trees are the same function, drawn in another way. This example lists a
Rashomon set, removes the duplicates, and shows how that changes the importance of the
features.
"""

# %%
# All good trees, by brute force
# ------------------------------
# The data are four features of the breast cancer data, each compared with its three
# quartiles: 12 tests. Packages such as treefarms list Rashomon sets of larger problems;
# for this one a short recursion will do. The loss of a tree is its share of wrong rows,
# plus 0.01 for each leaf. The set holds all trees of depth up to 3 whose loss is at
# most 0.02 above the least.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from skextra.tree import essential_thresholds, rashomon_importance, unique_trees

data = load_breast_cancer(as_frame=True)
names = [
    "worst radius",
    "worst concave points",
    "mean concave points",
    "worst texture",
]
X, y = data.data[names].to_numpy(), data.target.to_numpy()
tests = [(j, t) for j in range(4) for t in np.quantile(X[:, j], [0.25, 0.5, 0.75])]
holds = [X[:, j] <= t for j, t in tests]

PER_LEAF, ABOVE_BEST, DEPTH = 0.01, 0.02, 3


def rashomon_set(weight):
    """List all good trees for rows of these weights, which sum to 1."""
    memo = {}

    def leaf_loss(rows, label):
        return PER_LEAF + weight[rows & (y != label)].sum()

    def least(rows, depth):
        """Return the least loss of a tree for the rows."""
        key = rows.tobytes(), depth
        if key not in memo:
            losses = [leaf_loss(rows, label) for label in (0, 1)]
            if depth and min(losses) > 2 * PER_LEAF:
                for test in holds:
                    sides = rows & test, rows & ~test
                    losses.append(sum(least(side, depth - 1) for side in sides))
            memo[key] = min(losses)
        return memo[key]

    def within(rows, depth, budget):
        """Yield all trees for the rows whose loss is within the budget."""
        for label in (0, 1):
            loss = leaf_loss(rows, label)
            if loss <= budget:
                yield {"prediction": label}, loss
        if depth == 0 or budget < 2 * PER_LEAF:
            return
        for (feature, threshold), test in zip(tests, holds, strict=True):
            left, right = rows & test, rows & ~test
            if not left.any() or not right.any():
                continue
            rest = budget - least(right, depth - 1)
            for true, loss in within(left, depth - 1, rest):
                for false, more in within(right, depth - 1, budget - loss):
                    tree = {"feature": feature, "threshold": threshold}
                    yield tree | {"true": true, "false": false}, loss + more

    rows = np.ones(len(y), bool)
    budget = least(rows, DEPTH) + ABOVE_BEST + 1e-9
    return [tree for tree, _ in within(rows, DEPTH, budget)]


trees = rashomon_set(np.full(len(y), 1 / len(y)))


def has_idle_split(tree):
    """Say whether some split has the same tree on both sides."""
    if "prediction" in tree:
        return False
    sides = tree["true"], tree["false"]
    return sides[0] == sides[1] or any(has_idle_split(side) for side in sides)


found = unique_trees(trees)
print(f"{len(trees)} trees")
print(f"{sum(not has_idle_split(t) for t in trees)} without idle splits")
print(f"{len(found.counts)} functions")
print("most flowcharts of one function:", found.counts.max())

# %%
# Most duplicates have an idle split: one whose two sides are the same. Dropping such
# trees is easy, and not enough. The function with most flowcharts is a simple one: it
# needs few of the splits that a tree of depth 3 has room for, and the others can be
# anything that changes no label.

largest = found.representatives[found.counts.argmax()]
print({names[j]: t.round(2).tolist() for j, t in essential_thresholds(largest).items()})

# %%
# What this does to importance
# ----------------------------
# The Rashomon importance distribution asks how important a feature is in good models,
# for samples like this one: a Rashomon set for each bootstrap sample, and the
# importance of each feature in each of its models. Counting trees, a function votes as
# often as it can be drawn. Counting functions, each votes once.

rng = np.random.default_rng(0)
sets = []
for _ in range(6):
    drawn = rng.integers(len(y), size=len(y))
    sets.append(rashomon_set(np.bincount(drawn, minlength=len(y)) / len(y)))
print("trees:    ", [len(one) for one in sets])
print("functions:", [len(unique_trees(one).counts) for one in sets])

counted = {
    "trees": rashomon_importance(sets, X, y, deduplicate=False),
    "functions": rashomon_importance(sets, X, y, deduplicate=True),
}
for j, name in enumerate(names):
    print(name)
    for what, result in counted.items():
        importance, weights = result.importances[:, j], result.weights
        mean, share = weights @ importance, weights @ (importance > 0.005)
        print(
            f"    {what:10} mean {mean:.3f}, above 0.005 in {share:.0%} of the models"
        )

# %%
# On the left, the functions of the first set in the order of their flowcharts. On the
# right, the share of the models in which the importance of a feature exceeds a value.

fig = plt.figure(figsize=(10, 5), layout="constrained")
left, right = fig.subfigures(1, 2, width_ratios=[2, 3])

ax = left.subplots()
counts = np.sort(found.counts)[::-1]
ax.bar(np.arange(1, len(counts) + 1), counts, width=1, color="C1")
ax.set(yscale="log", xlabel="function", ylabel="flowcharts in the Rashomon set")
ax.set_title(f"{len(trees)} trees, {len(counts)} functions")

axes = right.subplots(2, 2, sharex=True, sharey=True)
for j, (ax, name) in enumerate(zip(axes.flat, names, strict=True)):
    for (what, result), color in zip(counted.items(), ["C1", "C0"], strict=True):
        values, weights = result.importances[:, j], result.weights
        ax.ecdf(values, weights, complementary=True, color=color, lw=2, label=what)
    ax.set(title=name, ylim=(0, 1.02))
    ax.grid(color="0.9")
for ax in axes[1]:
    ax.set_xlabel("importance")
for ax in axes[:, 0]:
    ax.set_ylabel("share of the models")
axes[0, 0].legend(title="each counts once")
plt.show()

# %%
# Counting trees, more than half of the weight lies on one simple function of two
# features, and the steps of the orange lines are its importances. Counting functions,
# the other two features matter in about half of the good models, although they seemed
# to matter in one of six or nine. Neither count is a probability that a model is right.
# But the second does not depend on how many ways there are to draw a model.
