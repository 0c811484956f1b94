"""Instances of the branch-length estimator for scikit-learn's checks."""

from skextra.phylo import PhyloBranchLengths

INSTANCES = [
    PhyloBranchLengths(solver="coordinate"),
    PhyloBranchLengths(solver="lbfgs"),
    PhyloBranchLengths(solver="em", tol=1e-8),
    PhyloBranchLengths(n_rate_categories=3, alpha=0.5),
    PhyloBranchLengths(n_init=3),
]
