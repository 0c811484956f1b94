"""How far mammals have drifted apart, from one gene."""

from skextra._demo import Demo
from skextra.datasets import load_brca1
from skextra.phylo._branch_lengths import PhyloBranchLengths

MAMMALS = [
    "Human",
    "Rhesus",
    "Galago",
    "Mouse",
    "Rat",
    "Jackrabbit",
    "Cat",
    "Dog",
    "Horse",
    "Cow",
    "HumpbackW",
    "FlyingFox",
    "AfricanEl",
    "Manatee",
    "Wombat",
]


def _load():
    X = load_brca1(as_frame=True).data[MAMMALS]
    return X, X.index  # there is no target: the numbers of the sites


def _estimator():
    return PhyloBranchLengths(n_rate_categories=4)


def _baseline():
    return PhyloBranchLengths(max_iter=0)


def loglik(estimator, X, y=None):
    """Return the mean log-likelihood of a site."""
    return estimator.score(X)


def _plot(ax, result):
    result.ours.search.plot(outgroup="Wombat", ax=ax)
    gain = (result.ours.score - result.baseline.score) * len(result.X_test)
    ax.set_title(f"95 % intervals; {gain:+.1f} log-likelihood on new sites")


DEMO = Demo(
    name="phylo",
    task="phylogeny",
    problem="How much has changed along each branch of a tree, and how sure is that?",
    answer="PhyloBranchLengths finds the lengths of greatest likelihood with their "
    "standard errors, where sites have different rates, and scores trees on new sites.",
    data="mammals",
    load=_load,
    estimator=_estimator,
    baseline=_baseline,
    baseline_name="neighbour joining and least squares, one rate",
    scoring=loglik,
    plot=_plot,
)
