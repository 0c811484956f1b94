"""The bridge: torch modules as scikit-learn estimators, trained by skorch."""

from skextra.neural._base import BaseNeural
from skextra.neural._classifier import NeuralClassifier
from skextra.neural._regressor import NeuralRegressor

__all__ = ["BaseNeural", "NeuralClassifier", "NeuralRegressor"]
