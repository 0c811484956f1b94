"""
===================================
One evaluation, two, and forty-nine
===================================

A diffusion model makes points out of noise in many small steps, each an evaluation of its
network. A consistency model jumps. Here both learn three densities of the plane from 2000
points each: eight heaps on a ring, two moons, a checkerboard.
"""

# %%
# Three models
# ------------
# The model trains its teacher, the diffusion model, and then itself, so that both can be
# compared. With ``tau="auto"`` a fifth of the points is held out, to find how much noise
# is best put back before the second evaluation.

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import wasserstein_distance_nd

from skextra.datasets import make_plane_density
from skextra.generative import ConsistencyModel

kinds = ("ring", "moons", "checkerboard")
models = {}
for kind in kinds:
    X = make_plane_density(kind, 2000, random_state=0)
    model = ConsistencyModel(max_iter=2000, tau="auto", random_state=0)
    models[kind] = model.fit(X)

# %%
# Samples
# -------
# The number over each picture is the Wasserstein distance of 300 of its points to as many
# fresh ones, in standard deviations.

samplers = {
    "1 evaluation": {"n_steps": 1},
    "2 evaluations": {"n_steps": 2},
    "49 evaluations": {"sampler": "teacher"},
}
figure, axes = plt.subplots(
    3, 4, figsize=(9, 7), layout="constrained", subplot_kw={"aspect": "equal"}
)
seconds = dict.fromkeys(samplers, 0.0)
for row, (kind, model) in zip(axes, models.items(), strict=True):
    fresh = make_plane_density(kind, 3000, random_state=1)
    pictures = {"fresh points": make_plane_density(kind, 3000, random_state=2)}
    for name, how in samplers.items():
        start = time.perf_counter()
        pictures[name] = model.sample(3000, random_state=0, **how)
        seconds[name] += time.perf_counter() - start
    for ax, (name, points) in zip(row, pictures.items(), strict=True):
        ax.hist2d(*points.T, bins=60, range=np.array([[-2.7, 2.7]] * 2), cmap="Blues")
        if kind == "moons":
            ax.clear()
            ax.hist2d(
                *points.T, bins=60, range=[[-1.5, 2.5], [-1.5, 2.0]], cmap="Blues"
            )
        distance = wasserstein_distance_nd(points[:300], fresh[:300]) / fresh.std()
        ax.set_title(f"{name}: {distance:.2f}", fontsize="small")
        ax.set(xticks=[], yticks=[])
for name, spent in seconds.items():
    print(f"{name}: {1e6 * spent / 9000:.1f} microseconds a point")

# %%
# What came out
# -------------
# In one evaluation points land between the heaps of the ring and on the bridges of the
# checkerboard; the second evaluation moves most of them to where the data are. The 49 of
# the diffusion model make the cleanest heaps and moons, and cost more than twenty times as
# much as two. Its checkerboard, after so short a training, is one of heaps, too.

plt.show()
