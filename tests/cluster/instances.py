"""Instances of consensus clustering for scikit-learn's checks, beside the default."""

from skextra.cluster import GPEnsembleClustering
from tests.cluster.cells import CellClustering

INSTANCES = [
    GPEnsembleClustering(consensus="average"),
    GPEnsembleClustering(weighting="minmax", cluster_weighting="entropy"),
    CellClustering(2, input="labels"),
    CellClustering(2, input="labels", consensus="average"),
]
