"""Instances of the solver of decision processes for scikit-learn's checks."""

from sklearn.cluster import KMeans
from sklearn.preprocessing import KBinsDiscretizer

from skextra.mdp import HalpernMDPSolver

INSTANCES = [
    HalpernMDPSolver(0.9),
    HalpernMDPSolver(solver="rvi", multichain="discount"),
    HalpernMDPSolver(solver="anchored"),
    HalpernMDPSolver(0.9, solver="policy_iteration"),
    HalpernMDPSolver(solver="lp"),
    # The rewards of the checks are class numbers and the like.
    HalpernMDPSolver(solver="savia", sample_tol=50.0),
    HalpernMDPSolver(solver="plug_in", sample_tol=50.0),
    HalpernMDPSolver(discretizer=KMeans(3, n_init=1, random_state=0)),
    HalpernMDPSolver(
        discretizer=KBinsDiscretizer(
            2, strategy="uniform", quantile_method="averaged_inverted_cdf"
        )
    ),
]
