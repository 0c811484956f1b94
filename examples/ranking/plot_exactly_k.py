"""
Exactly k pixels
================

Which 10 of the 64 pixels of a digit tell most? :class:`~skextra.ranking.SoftTopKSelector`
learns a gate on each pixel together with a classifier behind it: the gates sum to 10, they
start equal, and while the temperature falls they become 0 and 1. Unlike a lasso it needs no
penalty to be tuned until 10 are left, and unlike tests of one column at a time it sees what
columns tell together.
"""

# %%
# Pixels that hold much of the same are of little use together. ``SelectKBest`` cannot see
# that; ``RFE`` can, and drops one pixel after the other, with a fit for each.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE, SelectKBest, VarianceThreshold, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.ranking import SoftTopKSelector

X, y = load_digits(return_X_y=True, as_frame=True)
folds = StratifiedKFold(3, shuffle=True, random_state=0)
selectors = {
    "SoftTopKSelector": lambda k: SoftTopKSelector(k),
    "RFE": lambda k: RFE(LogisticRegression(max_iter=1000), n_features_to_select=k),
    "SelectKBest": lambda k: SelectKBest(f_classif, k=k),
}


def pipeline(selector):
    steps = VarianceThreshold(), StandardScaler(), selector
    return make_pipeline(*steps, LogisticRegression(max_iter=1000))


# %%
# The same logistic regression follows all three, and the pixels are chosen within the
# folds.

counts = [3, 5, 10, 20]
accuracy, taken = {}, {}
for name, make in selectors.items():
    start = time.perf_counter()
    scores = [
        cross_validate(pipeline(make(k)), X, y, cv=folds)["test_score"] for k in counts
    ]
    taken[name] = time.perf_counter() - start
    accuracy[name] = np.array(scores)
    means = ", ".join(f"{k}: {s.mean():.3f}" for k, s in zip(counts, accuracy[name]))
    print(f"{name}: {means} ({taken[name]:.0f} s)")

# %%
# Of few pixels, those that were chosen together are worth more, and the gates find better
# ones than dropping one by one; with 20 there is little to choose. What each method looks
# at, of all rows:

figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
for name, scores in accuracy.items():
    axes[0].errorbar(
        counts, scores.mean(1), scores.std(1) / np.sqrt(3), marker="o", label=name
    )
axes[0].set(xlabel="number of pixels", ylabel="accuracy", title="Logistic regression")
axes[0].legend(frameon=False)
for ax, (name, make) in zip(axes[1:], selectors.items()):
    chosen = pipeline(make(10)).fit(X, y)[:-1].get_feature_names_out()
    ax.imshow(X.mean().to_numpy().reshape(8, 8), cmap="Greys", alpha=0.5)
    rows, columns = np.transpose([name.split("_")[1:] for name in chosen]).astype(int)
    ax.scatter(columns, rows, marker="s", s=150, facecolor="none", edgecolor="C3", lw=2)
    ax.set(title=f"10 pixels of {name}", xticks=[], yticks=[])

# %%
# In a search the number of pixels is a parameter like any other:

search = GridSearchCV(
    pipeline(SoftTopKSelector()),
    {
        "softtopkselector__n_features_to_select": [5, 10],
        "softtopkselector__C": [0.1, 1.0],
    },
    cv=folds,
)
search.fit(X, y)
print(search.best_params_)

plt.show()
