"""Consensus clustering: many clusterings, weighed, become one."""

from skextra.cluster._functions import (
    coassociation,
    consensus_labels,
    ensemble_bias_diversity,
    ensemble_weights,
)
from skextra.cluster._gp_ensemble_clustering import GPEnsembleClustering
from skextra.cluster._weights import SparseTargetWarning

__all__ = [
    "GPEnsembleClustering",
    "SparseTargetWarning",
    "coassociation",
    "consensus_labels",
    "ensemble_bias_diversity",
    "ensemble_weights",
]
