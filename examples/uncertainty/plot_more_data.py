"""
How much would more data help?
==============================

The disagreement of an ensemble is often read as the uncertainty that more data would
remove. :func:`~skextra.uncertainty.learning_curve_reducible` asks the data instead: it fits
the model to growing subsets, follows its uncertainty and its loss on rows kept aside, and
extrapolates both.
"""

# %%
# Digits and the Brier loss, by bagged trees and by bagged logistic regressions. Bagging
# gives both members, so that there is a figure by their disagreement, too.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from skextra.uncertainty import learning_curve_reducible

X, y = load_digits(return_X_y=True)
models = {
    "random forest": RandomForestClassifier(50, min_samples_leaf=2, random_state=0),
    "bagged logistic regressions": BaggingClassifier(
        LogisticRegression(C=0.01, max_iter=500), 10, random_state=0
    ),
}
results = {
    name: learning_curve_reducible(
        model, X / 4, y, loss="brier", n_repeats=8, n_jobs=2, random_state=0
    )
    for name, model in models.items()
}

# %%
# Nobody has endless data. The coefficients of the power laws, and those of resamples of the
# repeats, say what to expect of ten times as many.


def at(coef, n):
    """Return power laws at n rows."""
    a, b, c = np.moveaxis(coef, -1, 0)
    return c + a * float(n) ** -b


for name, result in results.items():
    print(f"{name}: by the disagreement of members, {result.model_reducible:.3f}")
    n_rows = result.train_sizes[-1]
    for curve in ("uncertainty", "score"):
        part = result[curve]
        gains = [
            at(part.coef_bootstrap, n_rows) - at(part.coef_bootstrap, m)
            for m in (2 * n_rows, 10 * n_rows)
        ]
        low, high = np.quantile(gains, [0.025, 0.975], axis=1)
        print(
            f"  {curve} {part.total:.3f}; twice the rows take off {low[0]:.3f} to "
            f"{high[0]:.3f}, ten times {low[1]:.3f} to {high[1]:.3f}, endless rows "
            f"{part.interval[0]:.3f} to {part.interval[1]:.3f}"
        )

# %%
# The disagreement of members is a poor guide. The forest's is more than twice the loss that
# it really has, so more data cannot remove it all. The logistic regressions hardly
# disagree, since bags of rows change them little, although both of their curves fall as
# steeply. And the uncertainty of both is three times their loss: they are less sure than
# they could be. None of the curves has a limit in sight, so that the figures for endless
# rows say no more than that.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (name, result) in zip(axes, results.items(), strict=True):
    sizes = result.train_sizes
    n = np.geomspace(sizes[0], 20 * sizes[-1], 100)
    for color, curve in (("C0", "uncertainty"), ("C1", "score")):
        part = result[curve]
        mean, spread = part.per_repeat.mean(axis=0), part.per_repeat.std(axis=0)
        laws = np.array([at(part.coef_bootstrap, m) for m in n])
        low, high = np.quantile(laws, [0.025, 0.975], axis=1)
        ax.errorbar(sizes, mean, spread, fmt="o", color=color, label=curve)
        ax.fill_between(n, low, high, color=color, alpha=0.3)
    ax.axhline(result.model_reducible, color="0.5", ls="--", label="disagreement")
    ax.axvline(sizes[-1], color="0.8", lw=1)
    ax.set(xscale="log", xlabel="training rows", title=name)
axes[0].set_ylabel("Brier loss")
axes[1].legend()
plt.show()
