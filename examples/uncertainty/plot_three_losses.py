"""
One model, three uncertainties
==============================

How uncertain a model is depends on what it is asked for. The same forest of trees, with the
same probabilities, is uncertain in different places when it must give probabilities, name
a class, or decide something that costs.
"""

# %%
# Wines of three cultivars by two measurements of their chemistry. To take cultivar 2 for
# another costs 10, the reverse 1, and to mix up the first two next to nothing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from skextra.uncertainty import LossUncertaintyClassifier

X, y = load_wine(return_X_y=True, as_frame=True)
X = X[["flavanoids", "alcohol"]]
cost = [[0, 0.1, 10], [0.1, 0, 10], [1, 1, 0]]  # rows: named; columns: true
losses = {
    "log loss: give probabilities": {"loss": "log_loss"},
    "zero-one loss: name the class": {"loss": "zero_one"},
    "cost: missing cultivar 2 is dear": {"loss": "cost", "cost_matrix": cost},
}

# %%
# The forest is fitted once for each loss, with the same seed, so that the probabilities
# are the same. ``uncertainty`` is the loss that the model expects of its best action, and
# ``decompose`` says how much of it would be gone if the members were to agree.

grid = np.meshgrid(
    *(np.linspace(X[name].min() - 0.2, X[name].max() + 0.2, 120) for name in X)
)
points = X.iloc[:0].reindex(range(grid[0].size)).astype(float)
points["flavanoids"], points["alcohol"] = (axis.ravel() for axis in grid)

fig, axes = plt.subplots(
    2, 3, figsize=(10, 6), sharex=True, sharey=True, layout="constrained"
)
forest = RandomForestClassifier(200, min_samples_leaf=3, random_state=0)
most = []
for column, (name, params) in zip(axes.T, losses.items(), strict=True):
    model = LossUncertaintyClassifier(forest, **params).fit(X, y)
    parts = model.decompose(points)
    most.append(points.loc[parts.total.argmax()])
    for ax, part in zip(column, ("total", "reducible"), strict=True):
        image = ax.pcolormesh(
            *grid, parts[part].reshape(grid[0].shape), cmap="magma", vmin=0
        )
        fig.colorbar(image, ax=ax)
        ax.scatter(*X.T.to_numpy(), c=y, cmap="Set2", s=8, lw=0.3, edgecolor="k")
    column[0].set_title(name)
    column[1].set_xlabel("flavanoids")
    place = ", ".join(f"{key} {value:.1f}" for key, value in most[-1].items())
    print(f"{name}: at most {parts.total.max():.2f}, at {place}")
axes[0, 0].set_ylabel("alcohol\nuncertainty")
axes[1, 0].set_ylabel("alcohol\nof this, reducible")

# %%
# All three are unsure of the upper gap between the clusters, where hardly a wine was seen.
# In the lower left corner the forest cannot tell the last two cultivars: probabilities and
# names are uncertain there. The costs do not mind: to name cultivar 2 is the safe choice,
# and its price is low. They mind the strip beside it, where cultivar 2 is one in ten: names
# are nearly certain there, but to leave it out is as dear as to name it in vain.

plt.show()
