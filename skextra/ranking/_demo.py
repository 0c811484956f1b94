"""Ten pixels of written digits, chosen together."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra._demo import Demo
from skextra.ranking._soft_topk_selector import SoftTopKSelector

N_PIXELS = 10


def _load():
    return load_digits(return_X_y=True)


def _pipeline(selector):
    return make_pipeline(StandardScaler(), selector, LogisticRegression(max_iter=1000))


def _gates():
    return GridSearchCV(
        _pipeline(SoftTopKSelector(N_PIXELS)),
        {"softtopkselector__C": [0.1, 1.0]},
        cv=3,
    )


def _elimination():
    step = RFE(LogisticRegression(max_iter=1000), n_features_to_select=N_PIXELS)
    return _pipeline(step)


def _plot(ax, result):
    chosen = result.ours.search.best_estimator_[1].get_support()
    ax.imshow(result.X_test.mean(axis=0).reshape(8, 8), cmap="Greys", alpha=0.5)
    rows, columns = np.divmod(np.flatnonzero(chosen), 8)
    ax.scatter(columns, rows, marker="s", s=120, facecolor="none", edgecolor="C3", lw=2)
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"{N_PIXELS} pixels: {result.ours.score:.1%} of digits right")


DEMO = Demo(
    name="ranking",
    task="feature selection",
    problem="Which k columns together tell most, for exactly k?",
    answer="SoftTopKSelector learns gates that sum to k together with a linear model; "
    "soft ranks, sorts and top-k with gradients for NumPy and torch.",
    data="digits",
    load=_load,
    estimator=_gates,
    baseline=_elimination,
    baseline_name=f"RFE to {N_PIXELS} pixels",
    scoring="accuracy",
    plot=_plot,
)
