"""Generators of data that scikit-learn does not have."""

from skextra.datasets._generators import make_label_ensemble, make_shapes

__all__ = ["make_label_ensemble", "make_shapes"]
