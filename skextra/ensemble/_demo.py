"""Regression on the diabetes data: the features' ridge is tuned inside each fit."""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skextra._demo import Demo
from skextra.ensemble._rf_ensemble import RFEnsembleRegressor

ALPHAS = np.logspace(-2, 3, 11)
SCALES = np.array([0.1, 0.2, 0.4])


def _search(steps, grid):
    return GridSearchCV(Pipeline([("scale", StandardScaler()), *steps]), grid)


def _estimator():
    model = RFEnsembleRegressor(alpha=ALPHAS, random_state=0)
    return _search(
        [("model", model)],
        {
            "model__feature_map": ["relu", "fourier"],
            "model__weight_scale": SCALES,
        },
    )


def _baseline():
    # The kernel exp(-gamma |x - x'|^2) has the weight scale sqrt(2 gamma).
    return _search(
        [
            ("features", RBFSampler(n_components=512, random_state=0)),
            ("model", Ridge()),
        ],
        {"features__gamma": SCALES**2 / 2, "model__alpha": ALPHAS},
    )


def _plot(ax, result):
    model = result.ours.search.best_estimator_
    predicted = model.predict(result.X_test)
    low, high = model[-1].predict_interval(model[:-1].transform(result.X_test)).T
    order = np.argsort(predicted)
    covered = np.mean((low <= result.y_test) & (result.y_test <= high))
    ranks = np.arange(len(order))
    ax.fill_between(
        ranks,
        low[order],
        high[order],
        alpha=0.25,
        label=f"90 % intervals, {covered:.0%} covered",
    )
    ax.plot(ranks, predicted[order], label="prediction")
    ax.plot(ranks, result.y_test[order], "k.", ms=4, label="true")
    ax.set(
        title=f"ensemble: R2 {result.ours.score:.3f}, today {result.baseline.score:.3f}",
        xlabel="test rows, by prediction",
        ylabel="disease progression",
    )
    ax.legend(fontsize="small")


DEMO = Demo(
    name="ensemble",
    task="regression",
    problem="I have a table of numbers and want a nonlinear regression, tuned, with "
    "honest intervals. Does it take more models or a larger one?",
    answer="RFEnsembleRegressor tunes its ridge by exact leave-one-out in one fit and "
    "gives jackknife+ intervals without refits.",
    data="diabetes",
    load=lambda: load_diabetes(return_X_y=True),
    estimator=_estimator,
    baseline=_baseline,
    baseline_name="RBFSampler + Ridge",
    scoring="r2",
    plot=_plot,
)
