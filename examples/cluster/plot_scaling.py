"""
==============================
A million rows, no n x n table
==============================

The usual way from label columns to one partition goes through a table of all pairs of
rows, which a million rows rule out: it would have 8 TB.
:class:`~skextra.cluster.GPEnsembleClustering` works on rows and clusters instead. This
example times both.
"""

# %%
# The data are label columns of 20 clusterings of ten classes, each with 10 to 30
# clusters. Of each column a fifth of the labels is wrong. The dense ways are the table
# of all pairs, made by :func:`~skextra.cluster.coassociation`, followed by the average
# linkage of scipy or the spectral clustering of scikit-learn. They stop at a few
# thousand rows here, and at some ten thousand for want of memory.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import SpectralClustering
from sklearn.metrics import normalized_mutual_info_score

from skextra.cluster import GPEnsembleClustering, coassociation
from skextra.datasets import make_label_ensemble


def ours(labels):
    model = GPEnsembleClustering(10, input="labels", n_jobs=2, random_state=0)
    return model.fit_predict(labels)


def average_linkage(labels):
    merges = linkage(squareform(1 - coassociation(labels), checks=False), "average")
    return fcluster(merges, 10, "maxclust")


def dense_spectral(labels):
    model = SpectralClustering(10, affinity="precomputed", random_state=0)
    return model.fit_predict(coassociation(labels))


ways = {
    "GPEnsembleClustering": (ours, [1000, 3000, 10_000, 30_000, 100_000, 1_000_000]),
    "all pairs, average linkage": (average_linkage, [1000, 2000, 4000, 8000]),
    "all pairs, SpectralClustering": (dense_spectral, [1000, 2000, 4000]),
}
warm_up, _ = make_label_ensemble(500, k_range=(10, 15), random_state=0)
seconds = {}
for name, (fit, sizes) in ways.items():
    fit(warm_up)  # compiles
    for n in sizes:
        labels, y = make_label_ensemble(n, k_range=(10, 30), random_state=0)
        times = []
        for _ in range(3 if n <= 3000 else 1):
            start = perf_counter()
            found = fit(labels)
            times.append(perf_counter() - start)
        seconds[name, n] = min(times)
        nmi = normalized_mutual_info_score(y, found)
        print(f"{name:30} {n:9,} rows {seconds[name, n]:7.2f} s, NMI {nmi:.3f}")

# %%
# Both axes are logarithmic. On the dotted line ten times the rows take ten times as
# long.

COLORS = ["C0", "C1", "C3"]
fig, ax = plt.subplots(figsize=(9, 5.2), layout="constrained")
for (name, (_, sizes)), color in zip(ways.items(), COLORS, strict=True):
    times = [seconds[name, n] for n in sizes]
    ax.plot(sizes, times, "o-", color=color, lw=2)
    right = sizes[-1] == 8000
    ax.annotate(
        name,
        (sizes[-1], times[-1]),
        xytext=(8 if right else -8, 6),
        textcoords="offset points",
        ha="left" if right else "right",
        color=color,
        weight="bold",
    )
line = np.array([2e4, 1e6])
ax.plot(line, seconds["GPEnsembleClustering", 1_000_000] / 2e6 * line, ":", color="0.5")
ax.text(1.1e6, seconds["GPEnsembleClustering", 1_000_000] / 2, "slope 1", color="0.5")
ax.set(xscale="log", yscale="log", xlim=(300, 2e6))
ax.set(xlabel="rows", ylabel="seconds")
ax.grid(color="0.92")
ax.spines[["top", "right"]].set_visible(False)
ax.set_title("A million rows in seconds; tables of all pairs end at thousands")
plt.show()

# %%
# From some 30 000 rows on the time grows about in proportion to them. A million rows of
# twenty labels take ten to twenty seconds on two cores. Below, most of it goes into the
# pairs that the weights draw, whose number is fixed; up to 5000 distinct rows all pairs
# are compared instead. With 1000 rows the dense ways are as fast, or faster.
#
# Their lines are steeper: a table of all pairs grows with the square of the rows, and
# the work on it at least as fast. A hundred thousand rows would need a table of 80 GB.
# All ways find the ten classes: the data are easy, and only the time is compared here.
