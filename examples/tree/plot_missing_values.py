"""
========================================
Which predictions survive missing values
========================================

A tree does not need all features to classify a row. If each way to fill in the missing
values leads to leaves of one label, that label is *proven*, and
:meth:`~skextra.tree.BooleanTree.is_determined` says so. This example removes more and
more values from test rows and asks two questions. How many predictions stay proven? And
how good are the others, beside what people use today?
"""

# %%
# One tree of depth 3 is fitted on complete training rows. Values are missing only when
# it predicts. Four ways to go on from there:
#
# - :class:`~skextra.tree.BooleanTree` mixes all leaves that the row can reach,
# - :class:`~sklearn.impute.KNNImputer` fills in the mean of five similar training rows,
# - :class:`~sklearn.tree.DecisionTreeClassifier` itself sends NaN to the larger child
#   of a node, as it does where it saw none in training,
# - :class:`~sklearn.impute.SimpleImputer` fills in the mean of the training rows.
#
# Values are removed at random, each with the same probability, from the test rows of
# ten splits of two data sets.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from skextra.tree import BooleanTree

lost = np.array([0, 0.1, 0.3, 0.5, 0.7, 0.9])
splits = StratifiedShuffleSplit(10, test_size=0.3, random_state=0)


def predictions(tree, X_train, X_test):
    """Return what each way predicts for the test rows."""
    cart, scaler = tree.estimator_, StandardScaler().fit(X_train)
    similar = KNNImputer().fit(scaler.transform(X_train))
    filled = scaler.inverse_transform(similar.transform(scaler.transform(X_test)))
    return {
        "BooleanTree": tree.predict(X_test),
        "KNNImputer": cart.predict(filled),
        "NaN of the tree": cart.predict(X_test),
        "SimpleImputer": cart.predict(SimpleImputer().fit(X_train).transform(X_test)),
    }


def measure(X, y):
    """Return, by name, what comes out of each split and share of lost values."""
    found = {}
    for seed, (train, test) in enumerate(splits.split(X, y)):
        tree = BooleanTree(max_depth=3, min_samples_leaf=3, random_state=seed)
        tree.fit(X[train], y[train])
        tested = np.unique([f for f in tree.estimator_.tree_.feature if f >= 0])
        uniform = np.random.default_rng(seed).random(X[test].shape)
        for share in lost:
            X_test = np.where(uniform < share, np.nan, X[test])
            labels = predictions(tree, X[train], X_test)
            right = {name: label == y[test] for name, label in labels.items()}
            proven = tree.is_determined(X_test)
            complete = ~np.isnan(X_test[:, tested]).any(axis=1)
            of_proven = right["BooleanTree"][proven]
            results = {name: r.mean() for name, r in right.items()} | {
                "proven": proven.mean(),
                "all tested features known": complete.mean(),
                "right where proven": of_proven.mean() if proven.any() else np.nan,
            }
            for name, value in results.items():
                found.setdefault(name, []).append(value)
    shape = splits.get_n_splits(), len(lost)
    return {name: np.reshape(values, shape) for name, values in found.items()}


data = {
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
}
results = {name: measure(X, y) for name, (X, y) in data.items()}
for name, result in results.items():
    print(f"{name}, mean over the splits   lost: 0 %   30 %   50 %   70 %")
    for what, values in result.items():
        cells = "".join(f"{v:7.3f}" for v in np.nanmean(values, axis=0)[[0, 2, 3, 4]])
        print(f"    {what:32}{cells}")

# %%
# The bands go from the lower to the upper quartile of the splits.

colors = {"BooleanTree": "C0", "KNNImputer": "C2", "NaN of the tree": "C1"}
colors |= {"SimpleImputer": "0.5", "proven": "C0", "all tested features known": "0.5"}
panels = [
    ["BooleanTree", "KNNImputer", "NaN of the tree", "SimpleImputer"],
    ["proven", "all tested features known"],
]
titles = ["Right predictions", "Predictions that are certain"]

fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained", sharex=True)
for column, (name, result) in enumerate(results.items()):
    for ax, lines, title in zip(axes[:, column], panels, titles, strict=True):
        for line in lines:
            low, high = np.quantile(result[line], [0.25, 0.75], axis=0)
            ax.fill_between(lost, low, high, color=colors[line], alpha=0.15, lw=0)
            mean = result[line].mean(axis=0)
            ax.plot(lost, mean, "o-", ms=4, color=colors[line], label=line)
        ax.set(title=f"{title}: {name}", ylim=(0, 1.02))
    axes[0, column].set_ylim(0.35, 1)
    axes[1, column].set_xlabel("share of the values that are lost")
for ax in axes[:, 0]:
    ax.set_ylabel("share of the test rows")
for ax in axes[:, 1]:
    ax.legend(loc="lower left" if ax is axes[0, 1] else "upper right")
plt.show()

# %%
# The lower row is what :class:`~skextra.tree.BooleanTree` is for. With 30 % of the
# values lost, more than half of the predictions are proven, while only a fifth (wine)
# or a sixth (breast cancer) of the rows have all features that the tree tests. No way
# to fill in the values could change a proven prediction. Proven means that it is what
# the tree would say of the complete row; the tree itself can be wrong, but on these
# rows it is wrong no more often than on complete ones.
#
# The upper row is about the rest. Mixing the leaves beats the mean of a column and
# scikit-learn's own NaN, though not by much. It is far behind the nearest rows: features
# of these data are strongly correlated, so that what is lost can be guessed from what is
# left. A single tree looks at a handful of features and cannot do this. If the number
# of right answers is all that counts, impute well, and ask ``is_determined`` which of
# the answers do not depend on the imputation.
