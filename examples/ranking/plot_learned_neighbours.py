"""
Neighbours that a network is trained for
========================================

A k-nearest-neighbours vote has no gradient: a row is among the k or it is not. With
:func:`~skextra.ranking.soft_topk` it has one, and the network that says what "near" means
can be trained for the vote itself. Here a small network puts written digits into a plane,
so that the ten nearest of 400 labelled digits there agree.
"""

# %%
# The module
# ----------
# Squared distances to the 400 rows go through a soft top-k of the smallest: weights that
# sum to 10. The share of each class among them is its probability. It is a torch module
# like any other, and :class:`~skextra.neural.NeuralClassifier` trains it.

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from torch import nn

from skextra.neural import NeuralClassifier
from skextra.ranking import soft_topk

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
X_fit, X_known, y_fit, y_known = train_test_split(
    X_train, y_train, test_size=400, stratify=y_train, random_state=0
)


def plane():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))


class Neighbours(nn.Module):
    """Classify by the soft k nearest of the known rows, in a learned plane."""

    def __init__(self, out_features, k=10, alpha=1.0):
        super().__init__()
        self.embed, self.k, self.alpha = plane(), k, alpha
        self.register_buffer("rows", torch.as_tensor(X_known).float())
        self.register_buffer(
            "classes", torch.eye(out_features)[torch.as_tensor(y_known)]
        )

    def forward(self, x):
        known = self.embed(self.rows.to(x.dtype))
        distances = torch.cdist(self.embed(x), known) ** 2
        weights = soft_topk(distances, self.k, alpha=self.alpha, largest=False)
        shares = weights @ self.classes.to(x.dtype) / self.k
        return torch.log(shares + 1e-6)


settings = {"max_epochs": 60, "learning_rate": 3e-3, "random_state": 0}
soft = NeuralClassifier(Neighbours, **settings).fit(X_fit, y_fit)

# %%
# What it is compared with
# ------------------------
# The same network trained as people do, by the cross-entropy of a linear layer behind the
# plane, and scikit-learn's neighbourhood components, the linear relative of ours. All are
# judged by the *hard* vote of the ten nearest of all training rows in their plane.


def through_plane(out_features):
    return nn.Sequential(plane(), nn.Linear(2, out_features))


crossed = NeuralClassifier(through_plane, **settings).fit(X_train, y_train)
linear = NeighborhoodComponentsAnalysis(2, random_state=0).fit(X_train, y_train)


def embedding(module):
    def embed(X):
        with torch.no_grad():
            return module(torch.as_tensor(X).float()).numpy()

    return embed


planes = {
    "soft top-k of neighbours": embedding(soft.module_.embed),
    "cross-entropy": embedding(crossed.module_[0]),
    "NeighborhoodComponentsAnalysis": linear.transform,
}

# %%

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
for ax, (name, embed) in zip(axes, planes.items()):
    vote = KNeighborsClassifier(10).fit(embed(X_train), y_train)
    accuracy = vote.score(embed(X_test), y_test)
    points = embed(X_test)
    ax.scatter(*points.T, c=y_test, cmap="tab10", s=8)
    for digit in range(10):
        ax.annotate(str(digit), points[y_test == digit].mean(axis=0), fontweight="bold")
    ax.set(title=f"{name}\n{accuracy:.1%} of test digits right", xticks=[], yticks=[])
everywhere = KNeighborsClassifier(10).fit(X_train, y_train).score(X_test, y_test)
print(f"Ten neighbours in all 64 dimensions: {everywhere:.1%}")

# %%
# The plane that was trained for the vote has a compact cloud for each digit. That of the
# cross-entropy has rays, which a linear layer likes, and of which neighbours near the
# centre are mixed. A linear plane has not room for ten digits. In all 64 dimensions the
# neighbours are better still: a plane is for looking at.

plt.show()
