"""Instances of the ranking estimators for scikit-learn's checks, beside the default."""

from skextra.ranking import SoftTopKSelector, SpearmanRegressor, TopKClassifier

INSTANCES = [
    TopKClassifier(k=1),
    TopKClassifier(k=3, k_weights=[2, 1, 0], alpha=0.3, C=10.0, fit_intercept=False),
    SpearmanRegressor(alpha=0.3, C=10.0),
    SpearmanRegressor(alpha=5.0, C=0.01),
    SoftTopKSelector(1, n_anneal=1),
    SoftTopKSelector(0.3, loss="squared_error", n_anneal=3),
    SoftTopKSelector(1.0, alpha=0.1, C=0.1),
]
