"""The tables of the user guide: ``python -m benchmarks._ranking_table``.

Three estimators beside what people use today, with default parameters unless named; means
over seeds or folds, with standard errors.
"""

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import rankdata, spearmanr
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_classification,
    make_friedman1,
)
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    VarianceThreshold,
    f_classif,
    f_regression,
    mutual_info_classif,
    mutual_info_regression,
)
from sklearn.linear_model import HuberRegressor, Lasso, LogisticRegression, Ridge
from sklearn.metrics import top_k_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skextra.ranking import SoftTopKSelector, SpearmanRegressor, TopKClassifier


def mean(scores):
    """Return the mean and its standard error, in words."""
    scores = np.asarray(scores)
    return f"{scores.mean():.3f} ({scores.std(ddof=1) / np.sqrt(len(scores)):.3f})"


# Targets: what the columns are drawn from, the noise, and what is done to the sum.
DRAWS = {
    "normal columns": lambda rng, n: rng.normal(size=(n, 10)),
    "lognormal columns": lambda rng, n: rng.lognormal(size=(n, 10)),
    "Student columns": lambda rng, n: rng.standard_t(2, size=(n, 10)),
}
BENDS = {"as they are": lambda y: y, "cubed": lambda y: y**3}
ORDERED = {
    "Ridge": lambda X, y: Ridge().fit(X, y),
    "HuberRegressor": lambda X, y: HuberRegressor(max_iter=10_000).fit(X, y),
    "Ridge on ranks": lambda X, y: Ridge().fit(X, rankdata(y)),
    "SpearmanRegressor": lambda X, y: SpearmanRegressor().fit(X, y),
}


def orders():
    """Yield Spearman's correlation of predictions with the order without noise."""
    for name, draw in DRAWS.items():
        for bent, bend in BENDS.items():
            found = {model: [] for model in ORDERED}
            for seed in range(10):
                rng = np.random.default_rng(seed)
                X, new, coef = draw(rng, 300), draw(rng, 2000), rng.normal(size=10)
                y = X @ coef
                y = bend(y + 0.5 * y.std() * rng.standard_t(3, size=300))
                for model, fit in ORDERED.items():
                    predicted = fit(X, y).predict(new)
                    found[model].append(spearmanr(predicted, new @ coef).statistic)
            yield f"{name}, y {bent}", found
    X, y = load_diabetes(return_X_y=True)
    found = {model: [] for model in ORDERED}
    for seed in range(10):
        parts = train_test_split(
            StandardScaler().fit_transform(X), y, test_size=0.3, random_state=seed
        )
        for model, fit in ORDERED.items():
            predicted = fit(parts[0], parts[2]).predict(parts[1])
            found[model].append(spearmanr(predicted, parts[3]).statistic)
    yield "diabetes", found


def lasso(k):
    """Return the k columns of largest coefficients of a lasso."""
    return SelectFromModel(Lasso(0.05), max_features=k, threshold=-np.inf)


def l1(k):
    """Return the k columns of largest coefficients of an L1 logistic regression."""
    model = LogisticRegression(l1_ratio=1.0, C=0.1, solver="saga", max_iter=2000)
    return SelectFromModel(model, max_features=k, threshold=-np.inf)


CLASSIFY = {
    "SoftTopKSelector": SoftTopKSelector,
    "RFE": lambda k: RFE(LogisticRegression(max_iter=1000), n_features_to_select=k),
    "L1 penalty": l1,
    "mutual information": lambda k: SelectKBest(mutual_info_classif, k=k),
    "F test": lambda k: SelectKBest(f_classif, k=k),
}
REGRESS = {
    "SoftTopKSelector": SoftTopKSelector,
    "RFE": lambda k: RFE(Ridge(), n_features_to_select=k),
    "L1 penalty": lasso,
    "mutual information": lambda k: SelectKBest(mutual_info_regression, k=k),
    "F test": lambda k: SelectKBest(f_regression, k=k),
}


def selections():
    """Yield accuracies of logistic regression, and how many right columns are found."""
    for data, load, counts in [
        ("breast cancer", load_breast_cancer, (2, 5, 10)),
        ("digits", load_digits, (5, 10, 20)),
    ]:
        X, y = load(return_X_y=True)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        for k in counts:
            yield (
                f"{data}, k = {k}",
                {
                    name: cross_val_score(
                        make_pipeline(
                            VarianceThreshold(),
                            StandardScaler(),
                            make(k),
                            LogisticRegression(max_iter=1000),
                        ),
                        X,
                        y,
                        cv=folds,
                    )
                    for name, make in CLASSIFY.items()
                },
            )
    found = {name: [] for name in REGRESS}
    for seed in range(10):
        X, y = make_friedman1(300, 50, noise=1.0, random_state=seed)
        X = StandardScaler().fit_transform(X)
        for name, make in REGRESS.items():
            found[name].append(make(5).fit(X, y).get_support()[:5].mean())
    yield "Friedman's first: share of 5 columns of 50", found
    found = {name: [] for name in REGRESS}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        common = rng.normal(size=(200, 1))
        X = 0.7 * common + rng.normal(size=(200, 60))
        y = X[:, :5] @ [2, -1.5, 1, -1, 1] + rng.normal(size=200)
        for name, make in REGRESS.items():
            found[name].append(make(5).fit(X, y).get_support()[:5].mean())
    yield "correlated columns: share of 5 of 60", found


LISTS = {
    "LogisticRegression": lambda C: LogisticRegression(C=C, max_iter=5000),
    "TopKClassifier(k=1)": lambda C: TopKClassifier(1, C=C),
    "TopKClassifier(k=5)": lambda C: TopKClassifier(5, C=C),
}


def lists():
    """Yield how often the right class is first, or among the first, of test rows."""
    X, y = load_digits(return_X_y=True)
    for C in (0.1, 1.0):
        for k in (1, 3):
            found = {model: [] for model in LISTS}
            for seed in range(8):
                rng = np.random.default_rng(seed)
                train, test, labels, right = train_test_split(
                    X / 16, y, test_size=0.5, random_state=seed
                )
                wrong = rng.random(len(labels)) < 0.2
                labels = np.where(wrong, rng.integers(10, size=len(labels)), labels)
                for model, make in LISTS.items():
                    scores = make(C).fit(train, labels).decision_function(test)
                    found[model].append(top_k_accuracy_score(right, scores, k=k))
            yield (
                f"digits, a fifth of the labels drawn at random, C = {C}: top-{k}",
                found,
            )
    for C in (0.01, 0.1, 1.0):
        for k in (1, 5):
            found = {model: [] for model in LISTS}
            for seed in range(4):
                many = make_classification(
                    4000,
                    40,
                    n_informative=20,
                    n_classes=100,
                    n_clusters_per_class=1,
                    class_sep=1.0,
                    random_state=seed,
                )
                train, test, labels, right = train_test_split(*many, random_state=seed)
                scale = StandardScaler().fit(train)
                for model, make in LISTS.items():
                    fitted = make(C).fit(scale.transform(train), labels)
                    scores = fitted.decision_function(scale.transform(test))
                    found[model].append(top_k_accuracy_score(right, scores, k=k))
            yield f"100 classes, C = {C}: top-{k}", found


def main():
    """Print the three tables."""
    console = Console(width=160)
    for title, rows in [
        ("Rank correlation", orders()),
        ("Selected columns", selections()),
        ("Short lists", lists()),
    ]:
        table = Table(title=title)
        table.add_column("data")
        for n, (name, found) in enumerate(rows):
            if n == 0:
                for model in found:
                    table.add_column(model)
            table.add_row(name, *map(mean, found.values()))
        console.print(table)


if __name__ == "__main__":
    main()
