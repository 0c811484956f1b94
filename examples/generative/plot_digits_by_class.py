"""
======================
Digits, drawn by class
======================

A model that was fitted with labels draws the class that it is asked for. Here it draws
written digits, beside two models that scikit-learn has for densities, one for each class:
a mixture of normal distributions and a kernel density.
"""

# %%
# The three models
# ----------------
# All pixels have the same scale, hence ``scaling="global"``.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC

from skextra.generative import ConsistencyModel, memorization_report

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=1200, stratify=y, random_state=0
)
model = ConsistencyModel(
    scaling="global", tau="auto", max_iter=2000, clip=True, random_state=0
).fit(X_train, y_train)

mixtures, kernels = {}, {}
for label in range(10):
    rows = X_train[y_train == label]
    mixtures[label] = GaussianMixture(
        3, covariance_type="diag", reg_covar=0.1, random_state=0
    ).fit(rows)
    widths = {"bandwidth": np.linspace(1, 4, 13)}
    kernels[label] = GridSearchCV(KernelDensity(), widths).fit(rows).best_estimator_

labels = np.repeat(np.arange(10), 120)
drawn = {
    "consistency, 1 evaluation": model.sample(y=labels, random_state=0)[0],
    "consistency, 2 evaluations": model.sample(y=labels, n_steps=2, random_state=0)[0],
    "diffusion, 49 evaluations": model.sample(
        y=labels, sampler="teacher", random_state=0
    )[0],
    "mixture": np.concatenate([mixtures[k].sample(120)[0] for k in range(10)]),
    "kernel density": np.concatenate(
        [kernels[k].sample(120, random_state=0) for k in range(10)]
    ),
}

# %%
# Two judges
# ----------
# A classifier that has seen real digits says whether a drawn digit looks like its label.
# A classifier that has seen drawn digits alone must tell real ones apart, and so misses
# whatever the drawings do not show. And `memorization_report` says whether drawings are
# copies: it divides the distance to the nearest training row by that to the second
# nearest. Copies have 0; real digits that no model has seen are in the last line.

real = SVC().fit(X_train, y_train)
print(f"{'':28}looks right  teaches  ratio of distances")
for name, rows in drawn.items():
    looks, teaches = (
        real.score(rows, labels),
        SVC().fit(rows, labels).score(X_test, y_test),
    )
    report = memorization_report(rows, X_train, X_test)
    print(f"{name:28}{looks:11.3f}  {teaches:7.3f}  {report.median_ratio:7.2f}")
looks, ratio = real.score(X_test, y_test), report.test_median_ratio
print(f"{'real digits':28}{looks:11.3f}           {ratio:7.2f}")

# %%
# What came out
# -------------
# In one evaluation, the consistency model teaches a classifier nearly as well as the
# diffusion model does in 49, and better than the mixture, whose digits all look right, but
# alike: it knows three kinds of each. The kernel density is level with the best. Its
# digits are real ones with noise on each pixel, which this judge does not mind, and which
# the picture shows. Nobody copies.

order = np.argsort(y_train, kind="stable")
shown = {"real": (X_train[order], y_train[order])}
shown |= {name: (rows, labels) for name, rows in drawn.items()}
strips = []
for rows, of in shown.values():
    first = np.concatenate([np.flatnonzero(of == k)[:2] for k in range(10)])
    padded = np.pad(rows[first].reshape(-1, 8, 8), ((0, 0), (1, 1), (0, 1)))
    strips.append(np.hstack(padded))
figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
ax.imshow(np.vstack(strips), cmap="gray_r", vmin=0, vmax=16)
ax.set_yticks(4.5 + 10 * np.arange(len(shown)), list(shown))
ax.set_xticks([])
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
plt.show()
