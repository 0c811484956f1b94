"""Data that scikit-learn does not have."""

from skextra.datasets._generators import make_label_ensemble, make_shapes
from skextra.datasets._loaders import load_brca1

__all__ = ["load_brca1", "make_label_ensemble", "make_shapes"]
