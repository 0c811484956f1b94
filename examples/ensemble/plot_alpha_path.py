"""
=============================================
Tuning the ridge for the price of a few fits
=============================================

Given an array of ``alpha``, :class:`~skextra.ensemble.RFEnsembleRegressor` computes the
leave-one-out error of the ensemble for each of them, exactly and without a refit, and
keeps the best. This example compares it with the usual way, a
:class:`~sklearn.model_selection.GridSearchCV` over the same values: what each chooses,
how well that does on held-out rows, and how long it takes.
"""

# %%
# Both get the same ten members of width 512, the same 25 values of ``alpha``, and one
# thread, on six splits of the diabetes data into 300 rows for training and 142 for
# testing.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from threadpoolctl import threadpool_limits

from skextra.ensemble import RFEnsembleRegressor

X, y = load_diabetes(return_X_y=True)
alphas = np.logspace(-3, 3, 25)
splits = list(ShuffleSplit(6, train_size=300, random_state=0).split(X))


def timed_fit(model, train):
    with threadpool_limits(1):
        start = perf_counter()
        model.fit(X[train], y[train])
        return perf_counter() - start


def test_error(model, test):
    return mean_squared_error(y[test], model.predict(X[test]))


seconds = np.empty((len(splits), 2))
paths, grids = [], []
print("split  alpha: path, grid search   test error: path, grid search")
for i, (train, test) in enumerate(splits):
    path = RFEnsembleRegressor(alpha=alphas, random_state=i)
    grid = GridSearchCV(
        RFEnsembleRegressor(random_state=i),
        {"alpha": alphas},
        scoring="neg_mean_squared_error",
        cv=5,
    )
    seconds[i] = timed_fit(path, train), timed_fit(grid, train)
    paths.append(path)
    grids.append(grid)
    chosen = f"{path.alpha_:11.2f}{grid.best_params_['alpha']:13.2f}"
    print(f"{i:5d}{chosen}{test_error(path, test):19.0f}{test_error(grid, test):13.0f}")

# %%
# The two choose the same ``alpha`` in all but one split, and then the two models are
# the same; in that one they are a step of the grid apart, and the leave-one-out choice
# happens to do better on the test rows. For that split, the first, we draw the two
# curves, and the error of every ``alpha`` on the test rows.

train, test = splits[0]
on_test = [
    test_error(
        RFEnsembleRegressor(alpha=a, random_state=0).fit(X[train], y[train]), test
    )
    for a in alphas
]
median = np.median(seconds, axis=0)
ratio = np.median(seconds[:, 1] / seconds[:, 0])
print(f"grid search / path: {ratio:.1f} times the time")

fig, axes = plt.subplots(
    1, 2, figsize=(9, 4), layout="constrained", width_ratios=[5, 2.5]
)

ax = axes[0]
for label, error, color in [
    ("leave-one-out path", paths[0].loo_score_path_, "C0"),
    ("5-fold grid search", -grids[0].cv_results_["mean_test_score"], "C1"),
]:
    best = np.argmin(error)
    ax.loglog(alphas, error, color=color, label=label)
    ax.loglog(alphas[best], error[best], "*", color=color, ms=14)
ax.loglog(alphas, on_test, "k:", label="test rows")
ax.set(xlabel="alpha", ylabel="mean squared error", title="Stars: the choice")
ax.minorticks_off()
ticks = [3000, 4000, 5000, 6000]
ax.set_yticks(ticks, ticks)
ax.legend()

ax = axes[1]
bars = ax.bar(["path", "grid search"], median, color=["C0", "C1"])
ax.bar_label(bars, fmt="%.2f s")
ax.margins(y=0.1)
ax.set(title=f"Time: {ratio:.0f} to 1", ylabel="seconds")
plt.show()

# %%
# The two curves nearly coincide. Around their minimum they are so flat that a step of
# the grid makes next to no difference. On these test rows a somewhat larger ``alpha``
# would have been best, which neither search could know.
#
# The grid search fits the ensemble for 25 values on each of five folds, and once more.
# The path takes one eigen-decomposition for each member, whatever the number of values,
# so that the ratio grows with it.
