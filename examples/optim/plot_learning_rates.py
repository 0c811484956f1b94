"""
=================================
How well must the rate be chosen?
=================================

An optimizer that is good at one learning rate alone costs many trials. Five optimizers
train the same perceptron on written digits, ten epochs each, at rates from far too small
to far too large, with three seeds.
"""

# %%
# The sweep
# ---------
# One parameter changes the optimizer, and one the rate, so the sweep is a grid search.
# A fixed split takes the place of cross-validation, and the seeds are a parameter, too.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit

from skextra.neural import NeuralClassifier

X, y = load_digits(return_X_y=True)
network = NeuralClassifier(
    module_params={"hidden_layer_sizes": (64, 64)}, max_epochs=10
)
optimizers = ["adamw", "sgd", "muon", "swan", "sinkgd"]
search = GridSearchCV(
    network,
    {
        "optimizer": optimizers,
        "learning_rate": np.logspace(-4, 0, 9).round(5),
        "random_state": [0, 1, 2],
    },
    scoring=["accuracy", "neg_log_loss"],
    refit=False,
    cv=StratifiedShuffleSplit(1, test_size=0.3, random_state=0),
    error_score=np.nan,
).fit(X / 16, y)
found = pd.DataFrame(search.cv_results_)

# %%
# What came out
# -------------
# At its best rate each optimizer reads all but a few hundredths of the digits right: SWAN
# and Muon are ahead by about a hundredth. SWAN is good where AdamW is, at rates of 0.003 to
# 0.03, because a rate means the same for both: how much a weight changes in a step, about.
# Gradient descent with momentum wants rates some ten times larger. No optimizer forgives
# a rate that is wrong by ten, and the log-loss, on the right, forgives less than accuracy.

names = {"param_optimizer": "optimizer", "param_learning_rate": "rate"}
found = found.rename(columns=names)
found["loss"] = -found.mean_test_neg_log_loss
scores = found.groupby(["optimizer", "rate"])[["mean_test_accuracy", "loss"]].mean()
best = scores.loc[scores.groupby("optimizer")["mean_test_accuracy"].idxmax()]
print(best.round(4))

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name in optimizers:
    curve = scores.loc[name]
    axes[0].semilogx(curve.index, curve.mean_test_accuracy, marker=".", label=name)
    axes[1].loglog(curve.index, curve.loss, marker=".", label=name)
axes[0].set(xlabel="learning rate", ylabel="accuracy", ylim=(0.8, 1.0))
axes[1].set(xlabel="learning rate", ylabel="log-loss of the test rows")
axes[0].legend(loc="lower center")
figure.suptitle("Ten epochs, mean of three seeds")
plt.show()
