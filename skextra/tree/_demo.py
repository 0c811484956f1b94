"""Diagnose from incomplete measurements, and say which answers are certain."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from skextra._demo import Demo
from skextra.tree._boolean_tree import BooleanTree

GRID = {"model__max_depth": [2, 3, 4, 5], "model__min_samples_leaf": [1, 5, 10]}
LOST = 0.3  # share of the values that are removed


def _load():
    """Measurements of which some are lost at random."""
    X, y = load_breast_cancer(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < LOST] = np.nan
    return X, y


def _estimator():
    steps = [("model", BooleanTree(random_state=0))]
    return GridSearchCV(Pipeline(steps), GRID)


def _baseline():
    model = DecisionTreeClassifier(random_state=0)
    return GridSearchCV(Pipeline([("fill", SimpleImputer()), ("model", model)]), GRID)


def _plot(ax, result):
    X, y = result.X_test, result.y_test
    search, today = result.ours.search, result.baseline.search
    proven = search.best_estimator_[-1].is_determined(X)
    right = search.predict(X) == y
    names = ["today", "skextra", "proven", "the others"]
    shares = [
        np.mean(today.predict(X) == y),
        right.mean(),
        right[proven].mean() if proven.any() else 0,
        right[~proven].mean() if not proven.all() else 0,
    ]
    bars = ax.bar(names, shares, color=["0.7", "C0", "C2", "C1"])
    ax.bar_label(bars, [f"{share:.1%}" for share in shares])
    ax.set(ylim=(0, 1.1), ylabel="share of right answers")
    ax.set_title(
        f"{LOST:.0%} of the values lost:\n"
        f"{proven.mean():.0%} of the tree's answers are proven"
    )


DEMO = Demo(
    name="tree",
    task="classification",
    problem="Some of my values are missing. Which of a tree's answers are certain all "
    "the same, why does it give them, and what should I measure next?",
    answer="BooleanTree reads a tree as a function: proven answers with missing values, "
    "short reasons and rules, and the cheapest order of measurements.",
    data="breast cancer, 30 % of the values removed",
    load=_load,
    estimator=_estimator,
    baseline=_baseline,
    baseline_name="SimpleImputer + DecisionTreeClassifier",
    scoring="accuracy",
    plot=_plot,
)
