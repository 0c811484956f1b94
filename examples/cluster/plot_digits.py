"""
===============================
How many clusterings, and which
===============================

One run of k-means on the digits finds a different partition each time, none of them
good. This example compares it with a consensus of 5 to 80 runs, with equal and with
learned weights.
"""

# %%
# For each of eight seeds, 80 runs of k-means with 10 to 42 clusters make the largest
# ensemble, and its first columns the smaller ones. The score is the normalised mutual
# information (NMI) with the true digits, which no method sees.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score

from skextra.cluster import GPEnsembleClustering, consensus_labels, ensemble_weights

X, y = load_digits(return_X_y=True)
sizes, seeds = [5, 10, 20, 40, 80], range(8)
ways = {
    "equal weights": ("uniform", None),
    "equal weights, entropy": ("uniform", "entropy"),
    "learned weights": ("bias-diversity", None),
    "learned weights, entropy": ("bias-diversity", "entropy"),
}
scores = {way: np.empty((len(seeds), len(sizes))) for way in ways}
for seed in seeds:
    model = GPEnsembleClustering(
        10, n_estimators=sizes[-1], weighting="uniform", n_jobs=2, random_state=seed
    )
    columns = model.fit(X).base_labels_
    for i, m in enumerate(sizes):
        labels = columns[:, :m]
        for way, (weighting, entropy) in ways.items():
            weights, _ = ensemble_weights(labels, weighting=weighting)
            found = consensus_labels(
                labels, 10, weights, random_state=seed, cluster_weighting=entropy
            )
            scores[way][seed, i] = normalized_mutual_info_score(y, found)

single = np.array(
    [
        normalized_mutual_info_score(
            y, KMeans(10, n_init=1, random_state=seed).fit_predict(X)
        )
        for seed in range(20)
    ]
)
print(f"{'one k-means with 10 clusters':30}{single.mean():.3f} +- {single.std():.3f}")
for way, values in scores.items():
    cells = [
        f"{mean:.3f} +- {deviation:.3f}"
        for mean, deviation in zip(values.mean(axis=0), values.std(axis=0), strict=True)
    ]
    print(f"{way:30}" + "  ".join(cells))

# %%
# Points are means over the seeds, bars one standard deviation.

STYLES = {
    "learned weights": ("C0", "o-"),
    "learned weights, entropy": ("C0", "o--"),
    "equal weights": ("0.45", "s-"),
    "equal weights, entropy": ("0.45", "s--"),
}
fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
for shift, (way, (color, style)) in enumerate(STYLES.items()):
    mean, deviation = scores[way].mean(axis=0), scores[way].std(axis=0)
    ax.errorbar(
        np.array(sizes) * 1.03 ** (shift - 1.5),
        mean,
        deviation,
        fmt=style,
        color=color,
        mfc="w" if "entropy" in way else color,
        ms=6,
        capsize=2,
        elinewidth=1,
    )
    ax.text(94, mean[-1], way, color=color, va="center")
low, high = single.mean() - single.std(), single.mean() + single.std()
ax.axhspan(low, high, color="C1", alpha=0.2, lw=0)
ax.axhline(single.mean(), color="C1")
ax.text(94, single.mean() + 0.003, "one k-means", color="C1")
ax.set(xscale="log", xlabel="clusterings in the ensemble", ylabel="NMI with the digits")
ax.set_xlim(4.4, 190)
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.set_title("Any consensus beats one k-means, and learned weights beat equal ones")
plt.show()

# %%
# One run of k-means with ten clusters has an NMI of 0.74. Equal weights add about five
# points to it, and more clusterings than twenty add nothing: all are k-means, and they
# share its errors. Learned weights are worth three points more from ten clusterings on,
# and vary less from seed to seed. Five clusterings are too few to tell which are good.
#
# The entropy factor, which trusts clusters that the other clusterings do not split,
# helps equal weights here by up to two points. On top of learned weights it costs one
# to two from ten clusterings on. On other data it helps there, too. Which is better,
# only data with known classes can tell.
