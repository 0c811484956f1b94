"""One demonstration a sub-package: data, our estimator, and what people use today."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from sklearn.datasets import load_digits
from sklearn.metrics import get_scorer
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import skextra


@dataclass(frozen=True)
class Demo:
    """What a sub-package shows; its ``_demo.py`` holds one as ``DEMO``."""

    name: str  # the sub-package
    task: str  # "regression", "clustering", ...
    problem: str  # the user's question, in plain words
    answer: str  # what skextra offers for it, in one line
    data: str  # the data set
    load: Callable  # () -> X, y, and a dict of what else fit takes of each row, if any
    estimator: Callable  # () -> ours, tuned by a GridSearchCV where it has to be
    baseline: Callable  # () -> the same with what people use today
    baseline_name: str
    scoring: str | Callable  # a scorer, or its name in scikit-learn: higher is better
    plot: Callable  # (ax, Result) draws one panel
    needs_torch: bool = False

    @property
    def score_name(self):
        """Return what the score is called."""
        return getattr(self.scoring, "__name__", self.scoring)


@dataclass(frozen=True)
class Fitted:
    """A fitted search, its score on the test rows and the seconds that fit took."""

    search: object
    score: float
    seconds: float


@dataclass(frozen=True)
class Result:
    """What one demonstration found."""

    demo: Demo
    X_test: object
    y_test: object
    rows: int
    ours: Fitted
    baseline: Fitted

    def row(self):
        """Return the line of the table."""
        return {
            "name": self.demo.name,
            "task": self.demo.task,
            "data": self.demo.data,
            "rows": self.rows,
            "scoring": self.demo.score_name,
            "score": self.ours.score,
            "baseline": self.demo.baseline_name,
            "baseline_score": self.baseline.score,
            "fit_seconds": self.ours.seconds,
            "baseline_fit_seconds": self.baseline.seconds,
        }


def scaled_digits():
    """Return the digits, with pixels between 0 and 1, and their labels."""
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def demos():
    """Return the demonstrations of all sub-packages, by name."""
    modules = [f"skextra.{name}._demo" for name in skextra.__all__]
    found = [import_module(module).DEMO for module in modules if find_spec(module)]
    return {demo.name: demo for demo in found}


def run(demo, advance):
    """Fit our search and the baseline on the same rows; call ``advance`` after each.

    Both get one BLAS thread, which is fair, and steady on a busy machine.
    """
    X, y, *more = demo.load()
    more = more[0] if more else {}
    X_train, X_test, y_train, y_test, *parts = train_test_split(
        X, y, *more.values(), test_size=0.25, random_state=0
    )
    params = dict(zip(more, parts[::2], strict=True))

    def fit(search):
        start = time.perf_counter()
        with threadpool_limits(1):
            search.fit(X_train, y_train, **params)
        seconds = time.perf_counter() - start
        score = get_scorer(demo.scoring)(search, X_test, y_test)
        advance()
        return Fitted(search, float(score), seconds)

    ours, baseline = fit(demo.estimator()), fit(demo.baseline())
    return Result(demo, X_test, y_test, len(X), ours, baseline)
