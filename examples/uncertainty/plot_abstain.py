"""
When to ask for a second examination
====================================

A model that may say "I do not know" must be told what that costs. With a cost for each
action and each outcome, to abstain is one more action: it is taken where the expected cost
of every other one is higher.
"""

# %%
# Tumours are benign or malignant. To miss a malignant one costs 20, a false alarm 2, and a
# second examination, which settles the case, has a price that we vary. The 569 samples of
# the breast cancer data are judged by models that have not seen them: five folds, four
# times.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import RepeatedStratifiedKFold

from skextra.uncertainty import LossUncertaintyClassifier, make_loss_scorer

X, y = load_breast_cancer(return_X_y=True)
y = np.where(y == 0, "malignant", "benign")
folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)


def costs(price):
    """Return the cost of each action: call it benign, call it malignant, examine."""
    return np.array([[0.0, 20.0], [2.0, 0.0], [price, price]])  # benign, malignant


# %%
# The costs go into the estimator, with a name for the action that is no class. They change
# the decisions, not the forest, which is therefore fitted once for all prices.
# :func:`~skextra.uncertainty.make_loss_scorer` makes the scorer that a search would use:
# minus the mean cost of what is decided.

prices = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
decided, asked, named = [], [], []
for train, test in folds.split(X, y):
    forest = ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0)
    forest = FrozenEstimator(forest.fit(X[train], y[train]))
    for matrix in (costs(0)[:2], *(costs(price) for price in prices)):
        model = LossUncertaintyClassifier(
            forest,
            loss="cost",
            cost_matrix=matrix,
            abstain_label="examine" if len(matrix) == 3 else None,
        ).fit(X[train], y[train])
        score = make_loss_scorer("cost", cost_matrix=matrix)
        decided.append(-score(model, X[test], y[test]))
        asked.append((model.predict(X[test]) == "examine").mean())
    most_probable = forest.predict(X[test])
    missed = (y[test] == "malignant") & (most_probable == "benign")
    alarms = (y[test] == "benign") & (most_probable == "malignant")
    named.append((20 * missed + 2 * alarms).mean())

n_rows = 1 + len(prices)
cost = np.reshape(decided, (-1, n_rows)).mean(axis=0)
share = np.reshape(asked, (-1, n_rows)).mean(axis=0)
print(f"the most probable class: {np.mean(named):.3f} a patient")
print(f"the cheaper of both classes: {cost[0]:.3f}")
for price, c, s in zip(prices, cost[1:], share[1:], strict=True):
    print(f"with examinations at {price:.2f}: {c:.3f}, {s:.0%} examined")

# %%
# To name the cheaper class instead of the more probable one saves a third. Examinations
# save most of the rest while they are cheap, and are asked for less the dearer they are; at
# a price of 1.6 they hardly pay any more. At every price the model does better than to
# examine everyone, or nobody.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.axhline(np.mean(named), color="0.5", ls=":", label="most probable class")
left.axhline(cost[0], color="C1", ls="--", label="cheaper class")
left.plot(prices, prices, color="0.7", label="examine everyone")
left.plot(prices, cost[1:], "C0o-", label="cheapest action, examination included")
left.set(xscale="log", xlabel="price of an examination", ylabel="cost a patient")
left.set_ylim(0, 1.7 * np.mean(named))
left.legend(fontsize="small", loc="upper left")
right.plot(prices, share[1:], "C0o-")
right.set(xscale="log", xlabel="price of an examination", ylabel="share examined")
right.set_ylim(0, None)
plt.show()
