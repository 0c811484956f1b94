"""
=============================
What to do with missing cells
=============================

Nothing: leave them as NaN. The likelihood of a site is then that of the cells which are
there. This example deletes cells of an alignment, and compares the branch lengths
with those from all cells, beside two common ways out: drop the sites with gaps, or fill
in a state.
"""

# %%
# Twelve mammals
# --------------
# The sites at which all twelve have a base are the data here, and the lengths from them
# are what we want back.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skextra.datasets import load_brca1
from skextra.phylo import PhyloBranchLengths

TREE = """(((Human,Rhesus),((Mouse,Rat),Jackrabbit)),
    ((Cat,Dog),Horse,(Cow,HumpbackW),FlyingFox), Wombat);"""
names = (
    "Human Rhesus Mouse Rat Jackrabbit Cat Dog Horse Cow HumpbackW FlyingFox Wombat"
).split()
X = load_brca1(as_frame=True).data[names].dropna()
full = PhyloBranchLengths(TREE).fit(X)
print(f"{len(X)} sites without gaps, total length {full.branch_lengths_.sum():.3f}")
print(f"{full.at_bound_.sum()} of {len(full.edges_)} edges at a bound")

# %%
# Cells go missing
# ----------------
# Cells are lost one by one, or as a run of sites of each mammal, as when genes were
# only read in part. The number of lost cells is the same. Each is done ten times. If
# fewer than 20 sites are left in one of them, a way is given up.


def scattered(share, rng):
    """Return which cells are lost, each by chance."""
    return rng.uniform(size=X.shape) < share


def blocks(share, rng):
    """Return which cells are lost: a run of sites of each mammal."""
    start = rng.integers(len(X), size=X.shape[1])
    return (np.arange(len(X))[:, None] - start) % len(X) < share * len(X)


ways = {
    "NaN, cells scattered": (scattered, lambda X: X),
    "NaN, cells in blocks": (blocks, lambda X: X),
    "drop sites, cells scattered": (scattered, lambda X: X.dropna()),
    "fill in 0, cells scattered": (scattered, lambda X: X.fillna(0)),
}
shares = np.linspace(0.1, 0.8, 8)
rng = np.random.default_rng(0)
lengths, errors = ({name: [] for name in ways} for _ in range(2))
with warnings.catch_warnings():
    # With thirty sites some lengths have no standard error, and a warning says so.
    warnings.simplefilter("ignore", UserWarning)
    for share in shares:
        for name, (lose, treat) in ways.items():
            models = []
            for _ in range(10):
                seen = treat(X.mask(lose(share, rng)))
                if len(seen) >= 20:
                    models.append(PhyloBranchLengths(TREE).fit(seen))
            if len(models) == 10:
                lengths[name].append([model.branch_lengths_ for model in models])
                errors[name].append([model.standard_errors_ for model in models])

truth = full.branch_lengths_
totals, rmse, wider = {}, {}, {}
for name in ways:
    found = np.array(lengths[name])  # share, draw, edge
    totals[name] = found.sum(axis=2)
    rmse[name] = np.sqrt(np.mean((found - truth) ** 2, axis=(1, 2)))
    wider[name] = np.nanmedian(errors[name] / full.standard_errors_, axis=(1, 2))
    print(name)
    print("  share lost    ", shares[: len(found)].round(1))
    print("  total length  ", totals[name].mean(axis=1).round(3))
    print("  RMSE          ", rmse[name].round(4))
    print("  standard error", wider[name].round(2), "times that of all cells")

# %%
# The dotted lines are the total length from all cells, and the standard error that
# would follow from the number of cells alone.

fig, axes = plt.subplots(1, 3, figsize=(13, 4.3), layout="constrained")
colors = dict(zip(ways, ["C0", "C2", "C1", "C3"], strict=True))
for name, color in colors.items():
    at = 100 * shares[: len(totals[name])]
    style = {"marker": "o", "ms": 4, "color": color}
    axes[0].plot(at, totals[name].mean(axis=1), label=name, **style)
    low, high = totals[name].min(axis=1), totals[name].max(axis=1)
    axes[0].fill_between(at, low, high, color=color, alpha=0.15, lw=0)
    axes[1].semilogy(at, rmse[name], **style)
    if not name.startswith("fill"):
        axes[2].semilogy(at, wider[name], **style)
axes[0].axhline(truth.sum(), color="0.4", lw=1, ls=":")
axes[0].set(ylabel="total length (band: ten draws)", ylim=(0, 3.3))
axes[0].set_title("Filling in a state invents changes")
axes[0].legend(loc="upper left", fontsize=9)
axes[1].set(ylabel="RMSE of the lengths")
axes[1].set_title("Distance to the lengths of all cells")
bound = 1 / np.sqrt(1 - shares)
axes[2].semilogy(100 * shares, bound, color="0.4", lw=1, ls=":")
axes[2].set_yticks([1, 2, 3, 5], ["1", "2", "3", "5"])
axes[2].minorticks_off()
axes[2].set(ylabel="standard errors, times those of all cells")
axes[2].set_title("What the lost cells cost")
for ax in axes:
    ax.set_xlabel("cells lost (%)")
plt.show()

# %%
# With NaN the lengths stay right, up to 80 % lost cells. The mean total length is 0.54
# to 0.55 with scattered cells and 0.53 to 0.59 with blocks; that from all cells is
# 0.55. The standard errors say what the lost cells cost. With half of them lost they
# are 1.6 times as large, not much more than the 1.4 of half the data. The lengths are
# off by more if blocks are lost, since some pairs of mammals then share few sites: from
# 60 % on single draws go astray.
#
# Dropping sites is not wrong, but wasteful. With 10 % of the cells lost the errors are
# those of NaN with about 60 %, and with 20 % they have nearly quadrupled. With
# 30 % there is next to nothing left to fit. Filling in a state is wrong: each
# false cell looks like a change. With 10 % of them the total length has nearly doubled,
# and the standard errors, which cannot know, are far smaller than the error.
