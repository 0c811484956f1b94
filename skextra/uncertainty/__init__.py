"""Uncertainty for the decision at hand, what data can remove of it, and what to label."""

from skextra.uncertainty._batches import batch_bald, batch_eur
from skextra.uncertainty._functions import (
    bald,
    optimal_action,
    predictive_uncertainty,
    score_decomposition,
    uncertainty_decomposition,
)
from skextra.uncertainty._gaussian import gaussian_bald, gaussian_epig, gaussian_eur
from skextra.uncertainty._learning_curve import learning_curve_reducible
from skextra.uncertainty._loss_uncertainty_classifier import LossUncertaintyClassifier
from skextra.uncertainty._loss_uncertainty_regressor import LossUncertaintyRegressor
from skextra.uncertainty._losses import BregmanLoss, PinballLoss, WeightedSquaredError
from skextra.uncertainty._members import member_predictions
from skextra.uncertainty._mixture_functions import (
    mixture_action,
    mixture_decomposition,
    mixture_eur,
    mixture_uncertainty,
)
from skextra.uncertainty._reductions import epig, expected_uncertainty_reduction
from skextra.uncertainty._scorer import make_loss_scorer

__all__ = [
    "BregmanLoss",
    "LossUncertaintyClassifier",
    "LossUncertaintyRegressor",
    "PinballLoss",
    "WeightedSquaredError",
    "bald",
    "batch_bald",
    "batch_eur",
    "epig",
    "expected_uncertainty_reduction",
    "gaussian_bald",
    "gaussian_epig",
    "gaussian_eur",
    "learning_curve_reducible",
    "make_loss_scorer",
    "member_predictions",
    "mixture_action",
    "mixture_decomposition",
    "mixture_eur",
    "mixture_uncertainty",
    "optimal_action",
    "predictive_uncertainty",
    "score_decomposition",
    "uncertainty_decomposition",
]
