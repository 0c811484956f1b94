"""Tumours: name the class, or ask for a second examination, whichever costs less."""

import numpy as np
from scipy.special import expit, logit
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import GridSearchCV

from skextra._demo import Demo
from skextra.uncertainty._loss_uncertainty_classifier import LossUncertaintyClassifier
from skextra.uncertainty._scorer import make_loss_scorer

ACTIONS = ["benign", "malignant", "examine"]
MISSED, FALSE_ALARM, EXAMINATION = 20.0, 2.0, 0.5
# A row for each action, a column for each class.
COSTS = [[0.0, MISSED], [FALSE_ALARM, 0.0], [EXAMINATION, EXAMINATION]]
LEAVES = [1, 2, 5]
SHOWN = 2e-3  # a probability closer to 0 or 1 is drawn here


def _load():
    X, y = load_breast_cancer(return_X_y=True)
    return X, np.where(y == 0, "malignant", "benign")


def minus_cost(model, X, y):
    """Return the negated mean cost of what a model predicts."""
    action = [ACTIONS.index(label) for label in model.predict(X)]
    truth = [ACTIONS.index(label) for label in y]
    return -float(np.asarray(COSTS)[action, truth].mean())


def _forest():
    return ExtraTreesClassifier(100, random_state=0)


def _cheapest():
    model = LossUncertaintyClassifier(
        _forest(), loss="cost", cost_matrix=COSTS, abstain_label="examine"
    )
    return GridSearchCV(
        model,
        {"estimator__min_samples_leaf": LEAVES},
        scoring=make_loss_scorer("cost", cost_matrix=COSTS),
    )


def _most_probable():
    return GridSearchCV(_forest(), {"min_samples_leaf": LEAVES}, scoring=minus_cost)


def _expected(p):
    """Return the expected cost of each action at these probabilities of malignant."""
    return np.asarray(COSTS) @ [1 - p, p]


def _plot(ax, result):
    model, X, y = result.ours.search, result.X_test, result.y_test
    grid = expit(np.linspace(logit(SHOWN), -logit(SHOWN), 500))
    ax.plot(grid, _expected(grid).T, color="0.7", lw=1)
    ax.plot(grid, _expected(grid).min(axis=0), "C0", lw=2)
    p = model.predict_proba(X)[:, 1].clip(SHOWN, 1 - SHOWN)
    # Patients lie on the line; those of the same probability are moved apart.
    moved = np.random.default_rng(0).uniform(-0.03, 0.03, len(p))
    height = _expected(p).min(axis=0) + moved
    for label, color in {"benign": "C2", "malignant": "C3"}.items():
        rows = y == label
        ax.scatter(p[rows], height[rows], s=14, color=color, alpha=0.6, label=label)
    wrong = result.baseline.search.predict(X) != y
    ring = {"facecolor": "none", "edgecolor": "k", "label": "today wrong"}
    ax.scatter(p[wrong], height[wrong], s=80, **ring)
    for label, place in {"benign": 0.004, "examine": 0.3, "malignant": 0.99}.items():
        ax.text(place, -0.17, f"“{label}”", ha="center", color="C0")
    ax.set(xscale="logit", xlim=(SHOWN / 1.5, 1 - SHOWN / 1.5))
    ax.set(ylim=(-0.25, 1.1), xlabel="probability of malignant")
    ax.set(ylabel="expected cost of each action")
    ax.minorticks_off()
    ax.legend(fontsize="small", loc="upper center", ncols=3)
    asked = (model.predict(X) == "examine").mean()
    ax.set_title(
        f"{asked:.0%} examined: {-result.ours.score:.2f} a patient;\n"
        f"today {-result.baseline.score:.2f}, and {EXAMINATION} to examine all"
    )


DEMO = Demo(
    name="uncertainty",
    task="classification",
    problem="How uncertain is my model where errors differ in cost, when should it "
    "ask, and which label would help most?",
    answer="LossUncertaintyClassifier measures uncertainty in units of your loss, and "
    "decides or abstains by it; scores for what to label next, with error bars.",
    data="breast cancer, with costs",
    load=_load,
    estimator=_cheapest,
    baseline=_most_probable,
    baseline_name="ExtraTreesClassifier, its most probable class",
    scoring=minus_cost,
    plot=_plot,
)
