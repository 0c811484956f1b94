"""Data that scikit-learn does not have."""

from skextra.datasets._generators import (
    make_label_ensemble,
    make_plane_density,
    make_shapes,
)
from skextra.datasets._loaders import load_brca1
from skextra.datasets._mdps import (
    make_access_control,
    make_forest,
    make_garnet,
    make_inventory,
    make_riverswim,
    simulate_log,
)

__all__ = [
    "load_brca1",
    "make_access_control",
    "make_forest",
    "make_garnet",
    "make_inventory",
    "make_label_ensemble",
    "make_plane_density",
    "make_riverswim",
    "make_shapes",
    "simulate_log",
]
