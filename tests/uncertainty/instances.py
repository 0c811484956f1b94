"""Instances of both meta-estimators for scikit-learn's checks, beside the default."""

from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skextra.uncertainty import (
    LossUncertaintyClassifier,
    LossUncertaintyRegressor,
    PinballLoss,
)

INSTANCES = [
    LossUncertaintyClassifier(loss="zero_one", random_state=0),
    LossUncertaintyClassifier(loss="brier", bias_correction="jackknife"),
    LossUncertaintyClassifier(
        VotingClassifier(
            [("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"
        )
    ),
    LossUncertaintyRegressor(loss="absolute_error", noise=0.5),
    LossUncertaintyRegressor(loss="log_loss", noise=1.0),
    LossUncertaintyRegressor(loss=PinballLoss(0.55), noise=0.01),
]
