"""
=================================
More members, or one wider model?
=================================

A number of random features can be spent on many narrow members, whose predictions are
averaged, or on one wide model. For members that interpolate their data, Dern,
Cunningham and Pleiss (ICML 2025) find that both roads lead to the same place: the model
of infinite width. This example draws that equivalence in one dimension, measures where
it ends, and then puts the question to a real data set.
"""

# %%
# Six points in one dimension
# ---------------------------
# The regime of the paper's first figure, where members have width 200: six points of a
# sinusoid, ReLU features, and no ridge. Scaling, centring and the intercept are
# switched off, as in its formulas.

from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import ShuffleSplit

from skextra.ensemble import (
    EnsembleOrWiderDisplay,
    RFEnsembleRegressor,
    width_bias,
)

x_train = np.array([-4.0, -2.6, -1.0, 0.4, 1.5, 3.5])[:, None]
y_train = np.sin(1.5 * x_train[:, 0])
x = np.linspace(-5, 5, 201)[:, None]


def fit(n_members, n_components, random_state=0):
    model = RFEnsembleRegressor(
        n_members,
        n_components,
        weight_scale=1.0,
        center=False,
        fit_intercept=False,
        alpha=0.0,
        random_state=random_state,
    )
    return model.fit(x_train, y_train)


widths = 64 * 2 ** np.arange(4)
fits = {D: fit(4096, D, random_state=D) for D in widths}
members, limit = fits[256].predict_members(x), fits[256].predict_infinite(x)

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(x, members[:30].T, "0.8", lw=0.8, label=["30 members"] + 29 * [None])
ax.plot(x, members.mean(axis=0), "C0", lw=3, label="mean of 4096 members")
ax.plot(x, limit, "C1--", lw=2, label="infinite width")
ax.plot(x_train, y_train, "ko", label="data")
ax.set(title="Members of width 256", xlabel="x", ylabel="prediction")
ax.legend()
plt.show()

# %%
# The members differ where the data leave them free, and their mean lies on the infinite
# width to the thickness of the line. What about fewer members? An ensemble of M members
# of width 256 has 256 M features. We give a single model as many, and measure how far
# both are from the infinite width. The 4096 members make 4096 / M ensembles; the single
# models are drawn 30 times.


def rms(values):
    return np.sqrt(np.mean(values**2))


def ensembles(members):
    """Distance of ensembles of each size, made from one pool of members."""
    pools = [members.reshape(-1, M, len(x)) for M in sizes]
    return [rms(pool.mean(axis=1) - limit) for pool in pools]


sizes = 4 ** np.arange(5)
narrow = fits[64].predict_members(x)
wider = [rms(fit(30, 256 * M).predict_members(x) - limit) for M in sizes]

# %%
# What would be left of infinitely many members is the bias of their width: their mean
# minus the infinite width. Theorem 3.2 of the paper says that it is zero.
# :func:`~skextra.ensemble.width_bias` estimates it, with a standard error. If it is
# proportional to 1 / D, then twice the mean of members of width 2D minus the mean of
# members of width D, Richardson's extrapolation, is rid of it.

gaps = {D: width_bias(fits[D], x) for D in widths}
bias = [rms(gaps[D].bias) for D in widths]
noise = [rms(gaps[D].standard_error) for D in widths]
extrapolated = [rms(2 * gaps[2 * D].bias - gaps[D].bias) for D in widths[:-1]]

print("width   bias   Monte Carlo noise")
for row in zip(widths, bias, noise):
    print("{:5d} {:.4f}              {:.4f}".format(*row))

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")

ax = axes[0]
ax.loglog(64 * sizes, ensembles(narrow), "C2o-", label="members of width 64")
ax.loglog(256 * sizes, ensembles(members), "C0o-", label="members of width 256")
ax.loglog(256 * sizes, wider, "C1s-", label="one wider model")
ax.set(
    title="Ensembles stop at the bias of their width",
    xlabel="features in all",
    ylabel="distance from infinite width",
)
ax.legend()

ax = axes[1]
ax.loglog(widths, bias, "C0o-", label="mean of 4096 members")
ax.loglog(widths, bias[0] * 64 / widths, "k:", label="1 / D")
ax.loglog(widths[:-1], extrapolated, "C3^-", label="2 mean(2D) $-$ mean(D)")
ax.loglog(widths, noise, color="0.6", label="Monte Carlo noise")
ax.set(
    ylim=(3e-4, 0.15), title="The bias shrinks like 1 / D", xlabel="width D of a member"
)
ax.set_xticks(widths, widths)
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# *Left:* at equal numbers of features the ensemble and the wider model come equally
# close, until the ensemble stops at the bias of its width, which more members cannot
# remove; for members of width 64 that is soon. *Right:* the bias is far above its Monte
# Carlo noise at every width, so it is not zero. It falls about as 1 / D, and the
# extrapolation, although noisier, removes most of it: the mean of infinitely many
# members equals the infinite width only to O(1 / D). The user guide says
# :ref:`why <ensemble>`.
#
# A real data set
# ---------------
# In practice members are ridge regressions, and the question is one of test error.
# :class:`~skextra.ensemble.EnsembleOrWiderDisplay` answers it by cross-validation, with
# error bars for the draw of the random features. We train on 150 rows of the diabetes
# data and test on the other 292: first wide members that all but interpolate, then
# narrow ones, then narrow ones that choose their ridge by leave-one-out from an array.

X, y = load_diabetes(return_X_y=True)
cv = ShuffleSplit(3, train_size=150, random_state=0)
alphas = np.logspace(-2, 2, 9)
settings = {
    "width 256, alpha=1e-6": {"n_components": 256, "alpha": 1e-6},
    "width 32, alpha=1e-6": {"n_components": 32, "alpha": 1e-6},
    "width 32, alpha tuned": {"n_components": 32, "alpha": alphas},
}

fig, axes = plt.subplots(1, 3, figsize=(10, 4), layout="constrained")
for ax, (name, params) in zip(axes, settings.items()):
    model = RFEnsembleRegressor(random_state=0, **params)
    budgets = model.n_components * 2 ** np.arange(1, 6)
    display = EnsembleOrWiderDisplay.from_estimator(
        model, X, y, budgets=budgets, n_repeats=16, cv=cv, ax=ax
    )
    ax.set_title(f"{name}:\n{ax.get_title().lower()}")
    print(f"{name}\n{fill(display.result.recommendation, 75)}\n")

for ax in axes[:2]:
    ax.axhline(display.result.single_mse[-1], color="k", ls=":")
for ax in axes[1:]:
    ax.set_ylabel(None)
for ax in axes[:2]:
    ax.get_legend().remove()
plt.show()

# %%
# The scales of the three pictures differ; the dotted line is the error of the tuned
# model on the right.
#
# *Left:* wide members behave as the theory says. Both curves fall towards the same
# limit, with the wider model always somewhat ahead. *Middle:* members narrower than the
# data cannot interpolate them, which acts as a ridge, and averaging takes away their
# variance. The single model, with a peak where its width is near the 150 rows, fits the
# noise, so the ensemble wins by far. *Right:* once the ridge is tuned, nothing of this
# remains: both are better than anything on the left or in the middle, and the
# difference between them is a fraction of a per cent, which the repeats hardly tell
# from zero.
#
# So tune ``alpha`` before you count members. With a tuned ridge and a fixed number of
# features in all, Ruben et al. ("No Free Lunch from Random Feature Ensembles", ICML
# 2025) show that the expected error never falls when the features are split over more
# members. Members remain useful where they are cheaper than one model of their total
# width, which is where they are narrower than the number of rows, and because they can
# be fitted in parallel.
