"""The table of the user guide on clustering: ``python -m benchmarks._cluster_table``."""

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skextra.cluster import GPEnsembleClustering
from skextra.datasets import make_shapes

SETTINGS = {
    "uniform": {"weighting": "uniform"},
    "default": {},
    "default, entropy": {"cluster_weighting": "entropy"},
    "alignment": {"weighting": "alignment"},
    "average": {"consensus": "average"},
}
DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
    "make_shapes": None,
}


def load(name, seed):
    """Return the rows, scaled but for the digits and the shapes, and their classes."""
    if name == "make_shapes":
        return make_shapes(random_state=seed)
    X, y = DATA[name](return_X_y=True)
    return (X if name == "digits" else StandardScaler().fit_transform(X)), y


def scores(name, seed):
    """Return the normalised mutual information of each way."""
    X, y = load(name, seed)
    k = len(np.unique(y))
    models = {"one k-means": KMeans(k, n_init=1, random_state=seed)} | {
        way: GPEnsembleClustering(k, random_state=seed, **setting)
        for way, setting in SETTINGS.items()
    }
    return {
        way: normalized_mutual_info_score(y, model.fit_predict(X))
        for way, model in models.items()
    }


def main():
    """Print means and standard deviations over twenty seeds."""
    console, means, deviations = Console(width=120), {}, {}
    for name in track(DATA, console=console):
        with threadpool_limits(1):
            found = pd.DataFrame([scores(name, seed) for seed in range(20)])
        means[name], deviations[name] = found.mean(), found.std(ddof=0)
    console.print(pd.DataFrame(means).T.round(2).to_string())
    console.print(pd.DataFrame(deviations).T.round(2).to_string())


if __name__ == "__main__":
    main()
