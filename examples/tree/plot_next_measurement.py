"""
============================
What should we measure next?
============================

Measurements cost money, time or discomfort, and a tree rarely needs all of them.
:meth:`~skextra.tree.BooleanTree.acquisition_policy` finds the order with the least
expected cost: after each result it says what to measure next, and it stops as soon as
the tree's answer can no longer change. This example plans the measurements for the
breast cancer data and counts what is saved.

The costs are invented. They make the size of the cell nuclei dear and their texture
cheap, and say nothing about real clinics.
"""

# %%
# The data have ten properties of cell nuclei, such as their radius or texture, each
# with a mean, a standard error and a worst value. A third of the patients is kept for
# testing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.tree import plot_tree

from skextra.tree import BooleanTree

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]


def split(seed):
    return train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)


PRICES = {"texture": 1, "smoothness": 2, "compactness": 2, "symmetry": 2}
PRICES |= {"fractal": 2, "concav": 3, "radius": 5, "perimeter": 5, "area": 5}
costs = [next(PRICES[p] for p in PRICES if p in column) for column in X]
tree = BooleanTree(
    max_depth=3, min_samples_leaf=5, acquisition_costs=costs, random_state=0
)
X_train, X_test, y_train, y_test = split(2)
tree.fit(X_train, y_train)
print(f"accuracy on the test rows: {tree.score(X_test, y_test):.3f}")

# %%
# Four ways to get to the answer of this tree, from naive to best:
#
# - measure all that it tests,
# - follow it from the root to a leaf,
# - do so after :meth:`~skextra.tree.BooleanTree.simplify`, which drops tests that do
#   not change the answer,
# - follow the policy.
#
# They always end with the same answer. Each cost is the mean over the training rows,
# and ``optimal_`` certifies that no policy has a lower one.

policy = tree.acquisition_policy()
ways = {
    "all tests": policy.total_cost_,
    "the tree": policy.path_cost_,
    "simplified": tree.simplify().acquisition_policy().path_cost_,
    "policy": policy.expected_cost_,
}
for name, cost in ways.items():
    print(f"{name:12}{cost:6.2f}")
print("optimal:", policy.optimal_)

# %%
# On the test rows the policy costs about the same, and ends with the tree's answer for
# each of them.

bought = policy.run(X_test)
print(f"mean cost on the test rows: {bought.costs.mean():.2f}")
print("same answers:", np.array_equal(bought.labels, tree.predict(X_test)))

# %%
# Here are the tree, the policy and the costs.

COLORS = {"benign": "C0", "malignant": "C1"}
fig, axes = plt.subplot_mosaic(
    [["tree", "tree"], ["policy", "costs"]],
    figsize=(11, 8.5),
    layout="constrained",
    width_ratios=[4, 1],
    height_ratios=[4, 5],
)
ax = axes["tree"]
boxes = plot_tree(
    tree.estimator_, feature_names=list(X), class_names=tree.classes_, ax=ax
)
for box in boxes:
    lines = box.get_text().split("\n")
    label = lines[-1].removeprefix("class = ")
    if "<=" in lines[0]:
        box.set(text=lines[0], fontsize=8)
    elif label in COLORS:
        box.set(text=label, fontsize=8)
        box.get_bbox_patch().set(facecolor=COLORS[label], alpha=0.9)
    else:
        box.set(text="")  # the edges
ax.set_title("The tree as it was fitted (left: yes, right: no)")

ax = policy.plot(ax=axes["policy"]).ax_
ax.set_title("The policy: what to measure next")

ax = axes["costs"]
bars = ax.bar(list(ways), list(ways.values()), color=["0.7", "0.7", "0.7", "C2"])
ax.bar_label(bars, fmt="%.1f")
ax.tick_params(axis="x", rotation=45)
ax.set(title="Mean cost of an answer", ylabel="cost (invented unit)")
plt.show()

# %%
# The tree asks for the perimeter on each of its paths, with other thresholds on each.
# Who has paid for a perimeter has a number, not the answer to one question, so the
# policy starts with it: at either end of its range the number alone decides, although
# the tree begins with another feature. The first split on the area does nothing: both
# of its leaves say benign. That is why the simplified tree is cheaper. Results that no
# training row has had are not drawn.
#
# Other trees
# -----------
# How much is saved depends on the tree. Here is the cost of the policy relative to that
# of the fitted and of the simplified tree, for twenty splits of the data.

ratios = []
for seed in range(20):
    X_train, _, y_train, _ = split(seed)
    tree.fit(X_train, y_train)
    cost = tree.acquisition_policy().expected_cost_
    others = tree, tree.simplify()
    ratios.append([cost / t.acquisition_policy().path_cost_ for t in others])
for name, column in zip(["fitted", "simplified"], np.transpose(ratios), strict=True):
    low, median, high = np.quantile(column, [0, 0.5, 1])
    print(f"policy / {name} tree: {median:.2f}, from {low:.2f} to {high:.2f}")

# %%
# Measurements that come together
# -------------------------------
# Suppose that a laboratory sells three panels only: all ten means for 3, all errors for
# 2 and all worst values for 6. ``groups`` says so.

PANELS = {"mean": 3, "error": 2, "worst": 6}
panels = {tuple(c for c in X if word in c): PANELS[word] for word in PANELS}
X_train, _, y_train, _ = split(2)
tree.fit(X_train, y_train)
policy = tree.acquisition_policy(groups=panels)
print(f"all panels: {policy.total_cost_:g}")
print(f"the tree:   {policy.path_cost_:.2f}")
print(f"policy:     {policy.expected_cost_:.2f}")
print("first panel:", X.columns[policy.next_feature(np.full(X.shape[1], np.nan))])

# %%
# The tree starts with a mean, and needs the worst values in the end. The policy buys
# the worst values first, and the means only for those whom these leave undecided.
