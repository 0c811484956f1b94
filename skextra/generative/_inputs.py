"""What users give beside the rows: classes, levels, sizes; checked, with errors."""

from math import prod
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._dataframe import is_pandas_df, is_polars_df
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_categorical_features


def coded_labels(y, X, conditional):
    """Return the classes and the class of each row as a number, or None and None.

    For ``conditional="auto"`` values count as classes if they are of one column, not
    continuous, and half of the rows at least repeat the value of another.
    """
    if conditional is False:
        return None, None
    if y is None:
        if conditional is True:
            raise ValueError("conditional=True needs y, the classes; got y=None.")
        return None, None
    check_consistent_length(X, y)
    y = y.toarray() if issparse(y) else y
    require_none_missing("y", np.asarray(y))
    try:
        if conditional is True:
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        else:
            y = np.asarray(y)
            y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
            if y.ndim != 1 or not _repeats(y) or "continuous" in type_of_target(y):
                return None, None
        return np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y must hold classes of one type: {error}.") from error


def _repeats(y):
    """Whether there are at most half as many values as rows, or few rows."""
    return len(y) <= 20 or len(set(y.tolist())) <= len(y) / 2


def known_codes(y, classes, n_samples=None):
    """Return the numbers of classes, for each of `n_samples` if one class is given."""
    if classes is None:
        raise ValueError("y was given, but the model was fitted without classes.")
    y = np.asarray(y)
    y = np.full(n_samples, y[()]) if y.ndim == 0 and n_samples else column_or_1d(y)
    if not len(y):
        raise ValueError("y must hold at least one class; got none.")
    number = {label: code for code, label in enumerate(classes.tolist())}
    unseen = [label for label in dict.fromkeys(y.tolist()) if label not in number]
    if unseen:
        raise ValueError(
            f"y holds classes that fit has not seen: {unseen[:5]}; it has seen "
            f"{classes.tolist()[:20]}."
        )
    return np.array([number[label] for label in y.tolist()], dtype=np.int64)


def checked_taus(tau, sigma_min, sigma_max):
    """Return the levels of the second and further evaluations as an array."""
    taus = np.atleast_1d(np.asarray(tau, dtype=object)).ravel()
    good = [isinstance(t, Real) and sigma_min < t <= sigma_max for t in taus]
    if not (len(taus) and all(good)):
        raise ValueError(
            f"tau must be a level, or levels, in (sigma_min, sigma_max] = ({sigma_min}, "
            f"{sigma_max}]; got {tau!r}."
        )
    return taus.astype(np.float64)


def require_categories_named(X, is_categorical):
    """Raise a ValueError if a dataframe has a categorical column that is not named."""
    if not (is_pandas_df(X) or is_polars_df(X)):
        return
    by_dtype = _check_categorical_features(X, "from_dtype")
    if by_dtype is None:
        return
    missed = by_dtype if is_categorical is None else by_dtype & ~is_categorical
    if missed.any():
        names = [name for name, miss in zip(X.columns, missed, strict=True) if miss]
        raise ValueError(
            f"X has columns of a categorical dtype that are not in "
            f"categorical_features: {names}; name them there, or give "
            "categorical_features='from_dtype'."
        )


def require_none_missing(name, values):
    """Raise a ValueError if an array, of objects or not, has missing values."""
    for value in values.flat:
        if value is None or is_pandas_na(value) or is_scalar_nan(value):
            raise ValueError(f"{name} must hold no missing values; got {value}.")


def require_count(name, value):
    """Raise a ValueError unless the value is a whole number from 1 on."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")


def require_sizes(hidden_layer_sizes):
    """Raise a ValueError unless the sizes of the layers are whole numbers from 1 on."""
    sizes = np.asarray(hidden_layer_sizes, dtype=object)
    if sizes.ndim != 1 or not sizes.size:
        raise ValueError(
            "hidden_layer_sizes must be a sequence of whole numbers; got "
            f"{hidden_layer_sizes!r}."
        )
    for size in sizes.tolist():
        require_count("each of hidden_layer_sizes", size)


def require_image(input_shape, n_columns, has_categories):
    """Raise a ValueError unless the columns are the pixels of such images."""
    good = len(input_shape) in (2, 3) and all(
        isinstance(size, Integral) and size > 0 for size in input_shape
    )
    if not good:
        raise ValueError(
            "input_shape must be (height, width) or (channels, height, width); got "
            f"{input_shape!r}."
        )
    if has_categories:
        raise ValueError(
            "categorical_features must be None with input_shape: pixels are numbers."
        )
    if prod(input_shape) != n_columns:
        raise ValueError(
            f"input_shape={input_shape!r} needs rows of {prod(input_shape)} pixels; got "
            f"{n_columns} columns."
        )
