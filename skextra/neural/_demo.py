"""Written digits, told apart by a small convolutional network."""

from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.neural_network import MLPClassifier

from skextra._demo import Demo, scaled_digits
from skextra.neural._classifier import NeuralClassifier


def _convolutions(out_features):
    from torch import nn

    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(512, out_features),
    )


def _network():
    return NeuralClassifier(
        _convolutions, learning_rate=3e-3, max_epochs=20, random_state=0
    )


def _perceptron():
    return MLPClassifier(max_iter=300, random_state=0)


def _plot(ax, result):
    ConfusionMatrixDisplay.from_estimator(
        result.ours.search,
        result.X_test,
        result.y_test,
        ax=ax,
        colorbar=False,
        cmap="Blues",
    )
    ax.set_title(f"Digits: {result.ours.score:.1%} right")


DEMO = Demo(
    name="neural",
    task="classification",
    problem="How do I use a torch module of mine in a Pipeline and a GridSearchCV?",
    answer="NeuralClassifier and NeuralRegressor train any torch.nn.Module as an "
    "estimator, with skorch's callbacks and any optimizer.",
    data="digits",
    load=scaled_digits,
    estimator=_network,
    baseline=_perceptron,
    baseline_name="MLPClassifier",
    scoring="accuracy",
    plot=_plot,
    needs_torch=True,
)
