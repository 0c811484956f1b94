"""Label input that takes any numbers, for scikit-learn's checks."""

import numpy as np
from sklearn.utils.validation import validate_data

from skextra.cluster import GPEnsembleClustering


class CellClustering(GPEnsembleClustering):
    """Take the cell of a grid that a number lies in for its label.

    scikit-learn's checks of clusterers hand out numbers that are not integers, which
    label input refuses.
    """

    def _validate_X(self, X, reset):
        least = 2 if reset else 1
        X = validate_data(
            self,
            X,
            ensure_all_finite="allow-nan",
            ensure_min_samples=least,
            ensure_min_features=least,
            reset=reset,
        )
        cells = np.floor(2 * X.astype(float)) + 1000
        return np.where(np.isnan(cells), -1, cells).astype(int)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = False
        return tags
