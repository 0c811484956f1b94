"""Score consensus on pools of base clusterings: ``python -m benchmarks._label_pools DIR``.

DIR holds files for MATLAB, one for each data set: ``members`` (n x 100), the labels of
100 base clusterings, and ``gt``, the classes. Their authors publish them without a
licence (the folder "datasets" of github.com/xuz2019/SDGCA, the files bc_pool_* of
github.com/huangdonghere/LWEA_LWGP, and UMIST of github.com/Siritao/EC-CMS), so that
they are not here. Twenty columns are drawn twenty times, and
the number of clusters is that of the classes. Beside it stand figures that the authors of
the method published for it, with a threshold from a grid of 20, in the tables of their
survey (github.com/xuz2019/ensemble-clustering-survey-interactive-explorer).
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track
from scipy.io import loadmat
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from skextra.cluster import GPEnsembleClustering

PUBLISHED = {  # normalised mutual information
    "Ecoli": 0.539,
    "GLIOMA": 0.498,
    "orlraws10P": 0.847,
    "Lung": 0.593,
    "Aggregation": 0.879,
    "VS": 0.146,
    "Semeion": 0.608,
    "MF": 0.663,
    "SPF": 0.098,
    "IS": 0.645,
    "Caltech20": 0.424,
    "LS": 0.510,
    "Texture": 0.699,
    "MNIST": 0.603,
    "UMIST": 0.652,
    "FCT": 0.214,
}
ENTROPY = {"cluster_weighting": "entropy"}
SETTINGS = {
    "uniform": {"weighting": "uniform"},
    "default": {},
    "entropy": ENTROPY,
    "alignment": {"weighting": "alignment"},
    "auto": {"alpha": "auto"},
    "average": {"consensus": "average"},
    "average, entropy, alpha 0.8": {"consensus": "average", "alpha": 0.8, **ENTROPY},
}


def score(path, seed, columns=20):
    """Return the score of each setting on one draw of the columns."""
    pool = loadmat(path)
    y = pool["gt"].ravel()
    rng = np.random.RandomState(seed)
    drawn = rng.choice(pool["members"].shape[1], columns, replace=False)
    labels = pool["members"][:, drawn]

    def one(params):
        model = GPEnsembleClustering(
            len(np.unique(y)), input="labels", random_state=seed, **params
        )
        return normalized_mutual_info_score(y, model.fit_predict(labels))

    with threadpool_limits(1):
        return {name: one(params) for name, params in SETTINGS.items()}


def main():
    """Print the mean over the draws of each pool, and how many reach what is published."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks._label_pools")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    console, rows = Console(width=150), {}
    for name in track(PUBLISHED, console=console):
        path = given.directory / f"{name}.mat"
        draws = range(100, 100 + given.draws)
        found = Parallel(n_jobs=-1)(delayed(score)(path, seed) for seed in draws)
        rows[name] = {"published": PUBLISHED[name], **pd.DataFrame(found).mean()}
    table = pd.DataFrame(rows).T
    reached = table.ge(table["published"], axis=0).sum()
    table.loc["mean"] = table.mean()
    table.loc["reached"] = reached
    console.print(table.round(3).to_string())


if __name__ == "__main__":
    main()
