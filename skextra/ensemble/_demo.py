"""Complete handwritten digits: the lower half from the upper one, 24 pixels at once."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skextra._demo import Demo
from skextra.ensemble._rf_ensemble import RFEnsembleRegressor

ALPHAS = np.logspace(-2, 2, 9)
GAMMAS = np.logspace(-3, -1, 5)
WIDTH = 512


def _load():
    """Upper halves, and the lower pixels that differ among the digits."""
    upper, lower = np.split(load_digits().data, 2, axis=1)
    return upper, lower[:, _varying(lower)]


def _varying(lower):
    return lower.std(axis=0) > 1


def _search(steps, grid):
    return GridSearchCV(Pipeline([("scale", StandardScaler()), *steps]), grid, cv=3)


def _estimator():
    model = RFEnsembleRegressor(n_components=WIDTH, alpha=ALPHAS, random_state=0)
    return _search([("model", model)], {"model__feature_map": ["relu", "erf"]})


def _baseline():
    features = RBFSampler(n_components=WIDTH, random_state=0)
    grid = {"features__gamma": GAMMAS, "model__alpha": ALPHAS}
    return _search([("features", features), ("model", Ridge())], grid)


def _plot(ax, result):
    lower = load_digits().data[:, 32:]
    shown = slice(0, 6)
    X, y = result.X_test[shown], result.y_test[shown]
    rows = []
    for pixels in (y, result.ours.search.predict(X), result.baseline.search.predict(X)):
        completed = np.tile(lower.mean(axis=0), (len(X), 1))
        completed[:, _varying(lower)] = pixels
        digits = np.hstack([X, completed]).reshape(-1, 8, 8)
        rows.append(
            np.hstack([np.pad(digit, 1, constant_values=6) for digit in digits])
        )
    ax.imshow(np.vstack(rows), cmap="gray_r", vmin=0, vmax=16)
    ax.set_yticks([4.5, 14.5, 24.5], ["true", "skextra", "today"])
    ax.set_xticks([])
    ax.set_title(
        "Lower halves from upper ones\n"
        f"R2 {result.ours.score:.3f}, today {result.baseline.score:.3f}"
    )


DEMO = Demo(
    name="ensemble",
    task="regression",
    problem="I have a table of numbers and want a nonlinear regression, tuned, with "
    "honest intervals. Does it take more models or a larger one?",
    answer="RFEnsembleRegressor tunes its ridge by exact leave-one-out in one fit and "
    "gives jackknife+ intervals without refits.",
    data="digits",
    load=_load,
    estimator=_estimator,
    baseline=_baseline,
    baseline_name=f"RBFSampler({WIDTH}) + Ridge",
    scoring="r2",
    plot=_plot,
)
