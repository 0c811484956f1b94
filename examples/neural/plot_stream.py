"""
=============================
Batches that never come twice
=============================

Data that do not fit in memory, or that are made while one trains, come in batches.
``partial_fit`` takes them one at a time. Here each batch shows digits that were shifted
by up to a pixel and a half at random, so that the network never sees an image twice, and
learns to read digits that are not in the middle of their picture.
"""

# %%
# The stream
# ----------
# A generator of batches, without an end.

from itertools import islice

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import shift
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skextra.neural import NeuralClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, train_size=400, stratify=y, random_state=0
)


def batches(move, seed, size=64):
    """Yield random rows, each shifted by up to `move` pixels in both directions."""
    rng = np.random.default_rng(seed)
    while True:
        rows = rng.integers(len(X_train), size=size)
        images = X_train[rows].reshape(-1, 8, 8)
        by = rng.uniform(-move, move, size=(size, 2))
        moved = [shift(image, d, order=1) for image, d in zip(images, by, strict=True)]
        yield np.reshape(moved, (size, -1)), y_train[rows]


# %%
# Learning from it
# ----------------
# The same network, optimizer and number of batches, with and without shifts. The test
# rows are shown twice: as they are, and each shifted by a whole pixel.

rng = np.random.default_rng(0)
directions = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])[
    rng.integers(4, size=len(X_test))
]
X_moved = np.reshape(
    [
        shift(image, d, order=1)
        for image, d in zip(X_test.reshape(-1, 8, 8), directions, strict=True)
    ],
    X_test.shape,
)
scores = {}
for move in (0.0, 1.5):
    network = NeuralClassifier(
        module_params={"hidden_layer_sizes": (128, 128)},
        optimizer="swan",
        random_state=0,
    )
    for number, (rows, labels) in enumerate(
        islice(batches(move, seed=0), 2000), start=1
    ):
        network.partial_fit(rows, labels, classes=np.arange(10))
        if number % 100 == 0:
            scores.setdefault(move, []).append(
                (number, network.score(X_test, y_test), network.score(X_moved, y_test))
            )
    print(
        f"shifts up to {move} pixels: {scores[move][-1][1]:.1%} of the test rows right, "
        f"{scores[move][-1][2]:.1%} of the shifted ones"
    )

# %%
# What came out
# -------------
# Without shifts the network knows its 400 digits by heart after a few hundred batches,
# and most digits that are moved by a single pixel are strange to it. With shifts it reads
# both kinds about equally well, and goes on learning to the end. That has its price: on
# digits that are in the middle, as all training digits are, it is right less often. Show a
# network what it will meet, and not more.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for ax, column, title in zip(
    axes, (1, 2), ("Test rows as they are", "Shifted by a pixel"), strict=True
):
    for move, rows in scores.items():
        number, score = np.array(rows)[:, [0, column]].T
        ax.plot(number, score, label=f"trained on shifts up to {move} pixels")
    ax.set(xlabel="batches", title=title)
    ax.grid(alpha=0.3)
axes[0].set_ylabel("accuracy")
axes[1].legend(loc="lower right")
plt.show()
