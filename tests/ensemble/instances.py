"""Instances of this sub-package that must pass scikit-learn's estimator checks."""

import numpy as np

from skextra.ensemble import RFEnsembleRegressor

INSTANCES = [
    RFEnsembleRegressor(n_members=3, n_components=8, solver="primal"),
    RFEnsembleRegressor(n_members=3, alpha=0),
    RFEnsembleRegressor(n_components=np.inf),
    RFEnsembleRegressor(n_members=3, dtype="float32"),
    RFEnsembleRegressor(n_members=3, n_components=64, feature_map="fourier"),
    RFEnsembleRegressor(n_members=3, feature_map="erf", alpha=1e-10),
    RFEnsembleRegressor(n_members=3, solver="cg", alpha=0.1),
]
