"""
What the temperature does
=========================

A mask of the largest values, ranks and sorted values are steps and kinks: almost
everywhere their gradient is 0, or knows one value alone. They are bent by
:func:`~skextra.ranking.soft_topk`, :func:`~skextra.ranking.soft_rank` and
:func:`~skextra.ranking.soft_sort`, and ``alpha``, which has the units of the data, says
how much. Here one of seven values moves from left to right past the six others, which
stay where the grey lines are.
"""

# %%
# All positions of the moving value are rows of one array, and each call below takes all
# of them at once.

import matplotlib.pyplot as plt
import numpy as np

from skextra.ranking import soft_rank, soft_sort, soft_topk, soft_topk_vjp

others = np.array([-2.0, -1.4, -0.2, 0.3, 1.1, 2.0])
moving = np.linspace(-3, 3, 601)
x = np.column_stack([moving, np.tile(others, (len(moving), 1))])
temperatures = [0.01, 0.1, 0.3, 1.0]

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
colours = plt.cm.viridis(np.linspace(0, 0.85, len(temperatures)))
for alpha, colour in zip(temperatures, colours):
    style = {"color": colour, "label": f"alpha = {alpha:g}"}
    axes[0].plot(moving, soft_topk(x, k=3, alpha=alpha)[:, 0], **style)
    axes[1].plot(moving, soft_rank(x, alpha=alpha)[:, 0], **style)
    axes[2].plot(moving, soft_sort(x, alpha=alpha)[:, 3], **style)
titles = [
    "Its weight among the top 3",
    "Its rank among the 7",
    "The middle of the 7 values",
]
for ax, title in zip(axes, titles):
    for value in others:
        ax.axvline(value, color="0.85", zorder=0)
    ax.set(title=title, xlabel="value that moves")
axes[0].legend(frameon=False)

# %%
# - **Small alpha**: the hard answer. The weight jumps from 0 to 1 at the third largest of
#   the others, the rank counts them one by one.
# - **Large alpha**: everything is smooth, and every value has a say. At ``alpha = 1``, half
#   of the spread of the values, the middle value lies beyond its neighbours at the ends.
# - **What never changes**: the weights sum to 3 and the ranks to 28, for every alpha.

for alpha in temperatures:
    assert np.allclose(soft_topk(x, k=3, alpha=alpha).sum(axis=1), 3)
    assert np.allclose(soft_rank(x, alpha=alpha).sum(axis=1), 28)

# %%
# What is gained is a gradient. A loss that wants the moving value among the top 3 pulls
# at it from afar when alpha is large, and only at the threshold when it is small:

wanted = np.zeros_like(x)
wanted[:, 0] = 1
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for alpha, colour in zip(temperatures[1:], colours[1:]):
    slope = soft_topk_vjp(wanted, x, 3, alpha=alpha)[0][:, 0]
    ax.plot(moving, slope, color=colour, label=f"alpha = {alpha:g}")
ax.set(title="Gradient of its weight by its value", xlabel="value that moves")
ax.legend(frameon=False)

# %%
# Start with ``alpha="scale"``, a tenth of the standard deviation of the values, and cool
# down where the answer must be hard in the end.

plt.show()
