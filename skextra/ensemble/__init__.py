"""Ensembles of random-feature regressors and their infinite-width limit."""

from skextra.ensemble._diagnostics import (
    ensemble_or_wider,
    variance_decomposition,
    width_bias,
)
from skextra.ensemble._display import EnsembleOrWiderDisplay
from skextra.ensemble._functions import (
    effective_ridge,
    gaussian_feature_variance,
    rf_kernel,
)
from skextra.ensemble._rf_ensemble import RFEnsembleRegressor
from skextra.ensemble._steps import RankDeficientWarning

__all__ = [
    "EnsembleOrWiderDisplay",
    "RFEnsembleRegressor",
    "RankDeficientWarning",
    "effective_ridge",
    "ensemble_or_wider",
    "gaussian_feature_variance",
    "rf_kernel",
    "variance_decomposition",
    "width_bias",
]
