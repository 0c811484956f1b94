"""NeuralClassifier beside skorch and scikit-learn, on the same perceptron.

The quality is the accuracy on the training rows.
"""

from functools import partial

import numpy as np
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.neural_network import MLPClassifier
from skorch import NeuralNetClassifier

from benchmarks._harness import Case, main
from skextra.neural import NeuralClassifier
from skextra.neural._modules import mlp

HIDDEN, EPOCHS, RATE = (100,), 10, 1e-3


def cases(quick):
    """List what is measured; a quick run leaves the large one out."""
    digits, labels = load_digits(return_X_y=True)
    found = compared("digits", (digits / 16).astype(np.float32), labels, 64)
    if not quick:
        X, y = make_classification(
            100_000, 50, n_informative=20, n_classes=5, random_state=0
        )
        found += compared("100 000 rows, 50 features", X.astype(np.float32), y, 64)
        found += compared("100 000 rows, 50 features", X.astype(np.float32), y, 1024)
        found.append(predicted(X.astype(np.float32), y))
    return found


def compared(data, X, y, batch_size):
    """Fit ours, skorch's and scikit-learn's for the same number of epochs."""
    name = f"fit {data}, batches of {batch_size}, {EPOCHS} epochs"
    ours = NeuralClassifier(
        max_epochs=EPOCHS,
        batch_size=batch_size,
        learning_rate=RATE,
        device="cpu",
        random_state=0,
    )
    fits = {
        "skorch with its own data loader": partial(by_skorch, X, y, batch_size),
        "scikit-learn's MLPClassifier, Adam": partial(by_sklearn, X, y, batch_size),
    }
    return [
        Case(
            name,
            peer,
            partial(ours.fit, X, y),
            fit,
            quality=lambda model: model.score(X, y),
            runs=3,
        )
        for peer, fit in fits.items()
    ]


def by_skorch(X, y, batch_size):
    """Fit a net of skorch as its guide shows it."""
    torch.manual_seed(0)
    net = NeuralNetClassifier(
        mlp,
        module__in_features=X.shape[1],
        module__out_features=len(np.unique(y)),
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        lr=RATE,
        max_epochs=EPOCHS,
        batch_size=batch_size,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )
    return net.fit(X, y.astype(np.int64))


def by_sklearn(X, y, batch_size):
    """Fit scikit-learn's perceptron, and never stop before the last epoch."""
    model = MLPClassifier(
        HIDDEN,
        batch_size=batch_size,
        learning_rate_init=RATE,
        max_iter=EPOCHS,
        n_iter_no_change=EPOCHS + 1,
        random_state=0,
    )
    return model.fit(X, y)


def predicted(X, y):
    """Predict 100 000 rows: ours in float64, theirs in float32."""
    ours = NeuralClassifier(max_epochs=1, batch_size=1024, random_state=0).fit(X, y)
    theirs = by_sklearn(X, y, 1024)
    return Case(
        "predict_proba of 100 000 rows",
        "scikit-learn's MLPClassifier, in float32",
        partial(ours.predict_proba, X),
        partial(theirs.predict_proba, X),
    )


if __name__ == "__main__":
    main("neural")
