"""
What to label next
==================

Labels cost. Which images should be labelled first? :class:`~skextra.uncertainty.\
LossUncertaintyClassifier` scores a pool by what a label is expected to do to the loss *at
targets*: images like those that will have to be read later. Here extra trees start from
20 labelled digits and buy 50 more, five at a time, with 20 random splits.
"""

# %%
# Two tasks with the same pool of all ten digits. In the first, all digits will come. In the
# second, only threes, fives and eights will: 60 images of what comes, without labels, are
# the targets.

import matplotlib.pyplot as plt
import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import train_test_split

from skextra.uncertainty import LossUncertaintyClassifier

X, y = load_digits(return_X_y=True)
n_first, n_last, n_batch, n_targets, n_seeds = 20, 70, 5, 60, 20

# %%
# "eur" is the expected reduction of the loss of the estimator, "epig" that of the log loss.
# "margin", the usual choice, looks at the point alone: how close are its two best classes?

strategies = {
    "random": None,
    "margin": {"strategy": "margin"},
    "information on targets (EPIG)": {"strategy": "epig"},
    "expected zero-one loss": {"strategy": "eur", "loss": "zero_one"},
    "expected Brier loss": {"strategy": "eur", "loss": "brier"},
}


def learn(choice, wanted, seed):
    """Return the accuracy after each batch of labels."""
    rng = np.random.default_rng(seed)
    X_pool, X_new, y_pool, y_new = train_test_split(
        X, y, test_size=600, stratify=y, random_state=seed
    )
    comes = np.isin(y_new, wanted)
    X_target, X_test = np.split(X_new[comes], [n_targets])
    y_test = y_new[comes][n_targets:]
    labelled = rng.permutation(len(X_pool))[:n_first]
    accuracy = []
    while True:
        rest = np.setdiff1d(np.arange(len(X_pool)), labelled)
        model = LossUncertaintyClassifier(
            ExtraTreesClassifier(50, random_state=seed),
            loss=(choice or {}).get("loss", "log_loss"),
            random_state=seed,
        )
        model.fit(X_pool[labelled], y_pool[labelled])
        accuracy.append(model.score(X_test, y_test))
        if len(labelled) == n_last:
            return accuracy
        if choice is None:
            best = rng.permutation(len(rest))[:n_batch]
        else:
            at = X_target if choice["strategy"] in ("eur", "epig") else None
            best = model.query(
                X_pool[rest], n_batch, at, strategy=choice["strategy"], random_ties=True
            )
        labelled = np.concatenate([labelled, rest[best]])


tasks = {"all digits will come": range(10), "only 3, 5 and 8 will come": (3, 5, 8)}
curves = {
    task: {
        name: np.array(
            Parallel(2)(delayed(learn)(choice, wanted, seed) for seed in range(n_seeds))
        )
        for name, choice in strategies.items()
    }
    for task, wanted in tasks.items()
}

# %%
# Where all digits will come, the margin is best, and costs least; the expected zero-one
# loss is hardly better than chance. Every image of the pool is then like a target.
#
# Where only some of the pool matters, the margin buys labels of digits that nobody asked
# about. The scores that know the targets do not, and the two that know the loss do better
# than the information.

for task, by_name in curves.items():
    print(task)
    for name, accuracy in by_name.items():
        mean = accuracy.mean(axis=1)
        error = mean.std(ddof=1) / np.sqrt(n_seeds)
        print(
            f"  {name:30s} mean accuracy {mean.mean():.3f} +- {error:.3f}, "
            f"at {n_last} labels {accuracy[:, -1].mean():.3f}"
        )

n_labels = np.arange(n_first, n_last + 1, n_batch)
fig, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (task, by_name) in zip(axes, curves.items(), strict=True):
    for color, (name, accuracy) in zip(
        ("0.5", "C1", "C0", "C2", "C3"), by_name.items(), strict=True
    ):
        mean = accuracy.mean(axis=0)
        error = accuracy.std(axis=0, ddof=1) / np.sqrt(n_seeds)
        ax.plot(n_labels, mean, color=color, label=name)
        ax.fill_between(n_labels, mean - error, mean + error, color=color, alpha=0.15)
    ax.set(title=task, xlabel="labels")
axes[0].set_ylabel(f"accuracy (mean of {n_seeds} splits, one standard error)")
axes[1].legend(loc="lower right")
plt.show()
