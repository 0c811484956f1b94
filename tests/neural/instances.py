"""Further instances that must pass scikit-learn's checks."""

from skextra.neural import NeuralClassifier, NeuralRegressor

INSTANCES = [NeuralClassifier(optimizer="swan"), NeuralRegressor(optimizer="swan")]
