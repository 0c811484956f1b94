"""
==========================
A torch module in a search
==========================

A convolutional network is written as torch wants it, tuned by scikit-learn, and stopped
in time by skorch. The data are 1797 written digits of 8 x 8 pixels.
"""

# %%
# The module
# ----------
# Any function that returns a module will do. Its parameter ``out_features`` is filled in
# from the data, and ``channels`` is ours to tune. Rows of ``X`` reach it as float32; here
# they are images with one channel.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import MLPClassifier
from skorch.callbacks import EarlyStopping
from torch import nn

from skextra.neural import NeuralClassifier


def convolutions(out_features, channels=16):
    """Return a network of two convolutions."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(2 * channels * 16, out_features),
    )


X, y = load_digits(return_X_y=True)
images = X.reshape(-1, 1, 8, 8) / 16
train, test = train_test_split(np.arange(len(y)), test_size=0.5, random_state=0)

# %%
# The search
# ----------
# Two widths, two rates and two optimizers. A fifth of the training rows is held out, and
# when its loss has not fallen for five epochs, the training ends: `EarlyStopping` is
# skorch's.

network = NeuralClassifier(
    convolutions,
    max_epochs=40,
    validation_fraction=0.2,
    callbacks=[EarlyStopping(patience=5)],
    random_state=0,
)
grid = {
    "module_params": [{"channels": 4}, {"channels": 16}],
    "learning_rate": [1e-3, 3e-3],
    "optimizer": ["adamw", "swan"],
}
search = GridSearchCV(network, grid, cv=2).fit(images[train], y[train])
perceptron = MLPClassifier(max_iter=500, random_state=0).fit(X[train] / 16, y[train])
print(search.best_params_)
print(f"convolutions: {search.score(images[test], y[test]):.1%} right")
print(f"perceptron:   {perceptron.score(X[test] / 16, y[test]):.1%} right")

# %%
# The network that won
# --------------------
# ``history_`` has what skorch noted of each epoch. Dropout is on when the training loss
# is computed, and off for the held-out rows. Below are the test digits whose true label
# has the least probability: even people would hesitate.

best = search.best_estimator_
epochs = np.arange(1, best.n_iter_ + 1)
probability = best.predict_proba(images[test])
hardest = np.argsort(probability[np.arange(len(test)), y[test]])[:8]

figure = plt.figure(figsize=(9, 4), layout="constrained")
left, right = figure.subfigures(1, 2)
losses = left.subplots()
losses.semilogy(epochs, best.history_[:, "train_loss"], label="training rows")
losses.semilogy(epochs, best.history_[:, "valid_loss"], label="held-out rows")
losses.set(xlabel="epoch", ylabel="cross-entropy", title="The network that won")
losses.legend()
for ax, row in zip(right.subplots(2, 4).ravel(), hardest, strict=True):
    ax.imshow(images[test[row], 0], cmap="gray_r")
    label = probability[row].argmax()
    ax.set_title(f"{y[test[row]]}, read as {label}", fontsize="small")
    ax.set_axis_off()
plt.show()
