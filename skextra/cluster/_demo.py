"""Group handwritten digits without their labels, beside k-means."""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from skextra._demo import Demo
from skextra.cluster._gp_ensemble_clustering import GPEnsembleClustering


def _load():
    return load_digits(return_X_y=True)


def _estimator():
    return GPEnsembleClustering(n_clusters=10, random_state=0)


def _baseline():
    return KMeans(n_clusters=10, n_init=20, random_state=0)


def _purity(y, labels):
    """Share of the rows that belong to the most frequent class of their cluster."""
    return contingency_matrix(y, labels).max(axis=0).sum() / len(y)


def _plot(ax, result):
    metrics = {
        "NMI": normalized_mutual_info_score,
        "ARI": adjusted_rand_score,
        "purity": _purity,
    }
    sides = {"today": (result.baseline, "0.7"), "skextra": (result.ours, "C0")}
    place = np.arange(len(metrics))
    for shift, (name, (fitted, color)) in zip([-0.2, 0.2], sides.items(), strict=True):
        labels = fitted.search.predict(result.X_test)
        heights = [metric(result.y_test, labels) for metric in metrics.values()]
        bars = ax.bar(place + shift, heights, 0.38, color=color, label=name)
        ax.bar_label(bars, fmt="%.2f")
    ax.set_xticks(place, list(metrics))
    ax.set(ylim=(0, 1.1), ylabel="agreement with the true digits")
    ax.legend(loc="upper right", ncols=2)
    ax.set_title("Digits found without labels, on new rows")


DEMO = Demo(
    name="cluster",
    task="clustering",
    problem="k-means gives other clusters with every start. Which grouping do many runs "
    "agree on, and how sure is it for each row?",
    answer="GPEnsembleClustering weighs many cheap clusterings, or label columns that "
    "you have, and returns one partition and a stability for each row.",
    data="handwritten digits",
    load=_load,
    estimator=_estimator,
    baseline=_baseline,
    baseline_name="KMeans, best of 20 starts",
    scoring="normalized_mutual_info_score",
    plot=_plot,
)
