"""PhyloBranchLengths beside IQ-TREE, phangorn and plain NumPy, on the same trees.

The quality is the log-likelihood that was found. IQ-TREE (Debian: ``apt install
iqtree``) and phangorn (``apt install r-cran-phangorn r-cran-ape``) are measured where
they are installed; the data of R's packages too.
"""

from warnings import catch_warnings, simplefilter

import numpy as np
import skbio
from rich import print
from sklearn.exceptions import ConvergenceWarning

from benchmarks import _phylo_peers as peers
from benchmarks._harness import Case, main
from skextra.datasets import load_brca1
from skextra.phylo import (
    PhyloBranchLengths,
    cfn_distance,
    neighbor_joining,
    random_tree,
    simulate_characters,
    to_newick,
)


def cases(quick):
    """List what is measured; a quick run leaves the large ones out."""
    brca1 = load_brca1(as_frame=True)
    sets = {"BRCA1": (brca1.data, brca1.tree)}
    phangorn = peers.has_phangorn()
    if phangorn and not quick:
        for name, X in peers.real_data().items():
            sets[name] = X, neighbor_joining(cfn_distance(X), X.columns)
    found = []
    for name, (X, tree) in sets.items():
        if peers.shutil.which("iqtree2") or peers.shutil.which("iqtree"):
            found.append(from_sites(name, X, tree))
        else:
            print("IQ-TREE is not installed (apt install iqtree): not measured.")
        if phangorn:
            found.append(from_patterns(name, X, tree))
        else:
            print(
                "phangorn is not installed (apt install r-cran-phangorn): not measured."
            )
    sites = 20_000 if quick else 1_000_000
    found += [
        paper(sites),
        lbfgs(brca1.data, brca1.tree),
        errors(brca1.data, brca1.tree),
        joining(50 if quick else 300),
        grown("sites", sites),
        grown("leaves", sites // 100),
    ]
    return found


def fitted(X, tree, **params):
    """Fit, and return the log-likelihood."""
    return PhyloBranchLengths(tree, **params).fit(X).loglik_


def swept(X, tree, n_sweeps):
    """Make so many sweeps from a cold start, and return the log-likelihood."""
    settings = {"solver": "coordinate", "init": "constant", "standard_errors": None}
    with catch_warnings():
        simplefilter("ignore", ConvergenceWarning)  # too few on purpose
        return fitted(X, tree, **settings, max_iter=n_sweeps)


def without_root(X, tree):
    """Return the tree as both programs take it; ours would leave the root out itself."""
    return PhyloBranchLengths(tree, max_iter=0).fit(X).tree_


def from_sites(name, X, tree):
    """Fit the lengths of a tree to a real alignment."""
    tree = without_root(X, tree)
    return Case(
        f"lengths on {name}, {X.shape[1]} leaves, {len(X)} sites",
        "IQ-TREE, one thread",
        lambda: fitted(X, tree, standard_errors=None),
        peers.iqtree(X, tree),
        target=0.5,
        quality=float,
    )


def from_patterns(name, X, tree):
    """Fit the lengths to different sites with their numbers."""
    tree = without_root(X, tree)
    sites = X.value_counts(dropna=False, sort=False)
    different, weights = sites.index.to_frame(index=False), sites.to_numpy()
    model = PhyloBranchLengths(tree, standard_errors=None)
    return Case(
        f"lengths on {name}, from {len(different)} different sites with weights",
        "phangorn's optim.pml",
        lambda: model.fit(different, sample_weight=weights).loglik_,
        peers.phangorn(different, weights, tree),
        target=1.0,
        quality=float,
    )


def simulated(n_leaves, n_sites):
    """Return characters of a random tree, and its Newick text without lengths."""
    tree = random_tree(n_leaves, random_state=0)
    X = simulate_characters(tree, n_sites, as_frame=True, random_state=0)
    return X, to_newick(tree.parents, names=tree.names)


def paper(n_sites):
    """Sweep over a tree of 11 leaves, the size of the paper's experiment.

    The sweeps take the edges in another order, so only their end is the same.
    """
    X, tree = simulated(11, n_sites)
    peer = peers.NumPyTree(X, tree)
    return Case(
        f"10 sweeps, 11 leaves, {n_sites} sites",
        "plain NumPy, all messages anew for each edge",
        lambda: swept(X, tree, 10),
        lambda: peer.coordinate(10),
        quality=float,
        runs=1,
    )


def lbfgs(X, tree):
    """Find the maximum beside L-BFGS-B with the gradient of two passes in NumPy."""
    tree = without_root(X, tree)
    peer = peers.NumPyTree(X, tree)
    return Case(
        "lengths on BRCA1, 55 leaves, 3009 sites",
        "SciPy's L-BFGS-B on the likelihood in NumPy",
        lambda: fitted(X, tree, standard_errors=None),
        peer.lbfgs,
        quality=float,
        runs=1,
    )


def errors(X, tree):
    """Show what the standard errors cost."""
    return Case(
        "lengths and standard errors on BRCA1",
        "ours without standard errors",
        lambda: fitted(X, tree),
        lambda: fitted(X, tree, standard_errors=None),
        quality=float,
    )


def joining(n_leaves):
    """Join neighbours."""
    X, _ = simulated(n_leaves, 2000)
    distances = cfn_distance(X)
    matrix = skbio.DistanceMatrix(distances, ids=list(X.columns))
    return Case(
        f"neighbour joining of {n_leaves} leaves",
        "scikit-bio's nj",
        lambda: neighbor_joining(distances, X.columns),
        lambda: skbio.tree.nj(matrix),
        quality=total_length,
    )


def total_length(tree):
    """Return the sum of the branch lengths."""
    tree = skbio.TreeNode.read([tree]) if isinstance(tree, str) else tree
    return sum(node.length or 0 for node in tree.traverse())


def grown(what, n_sites):
    """Show how the time of a sweep grows with the sites, or with the leaves."""
    sizes = {
        "sites": ((40, n_sites // 10), (40, n_sites)),
        "leaves": ((40, n_sites), (400, n_sites)),
    }
    small, large = (simulated(*size) for size in sizes[what])
    return Case(
        f"5 sweeps, {large[0].shape[1]} leaves, {len(large[0])} sites",
        f"ours on a tenth of the {what}, ten times",
        lambda: swept(*large, 5),
        lambda: np.sum([swept(*small, 5) for _ in range(10)]),
        target=1 / 1.15,
        runs=1 if what == "sites" else 3,
    )


if __name__ == "__main__":
    main("phylo")
