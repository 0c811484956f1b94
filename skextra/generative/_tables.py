"""Tables as the network sees them, and back."""

import numpy as np
from scipy.stats import norm
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler
from sklearn.utils._dataframe import is_pandas_df, is_polars_df
from sklearn.utils.validation import check_array


class Table:
    """The columns of a table, and the way to the network's space and back.

    The network's space holds the numeric columns, scaled, and then an indicator of each
    category of the categorical ones, all with standard deviation `sigma_data`.

    Parameters
    ----------
    scaling : {"standard", "global", "quantile"}
        Scale of the numeric columns: each by its own standard deviation, all by the
        same, or each by its quantiles to a normal distribution.

    sigma_data : float
        Standard deviation in the network's space.

    clip : bool
        Whether to clip numeric columns to the range that `fit` has seen.

    Attributes
    ----------
    is_categorical : ndarray of shape (n_features,), dtype bool
        Which columns are categorical.

    scaler : transformer
        Of the numeric columns.

    encoder : OneHotEncoder
        Of the categorical columns.
    """

    def __init__(self, scaling, sigma_data, clip):
        self.scaling = scaling
        self.sigma_data = sigma_data
        self.clip = clip

    def fit(self, X, container, is_categorical):
        """Learn the scales and the categories.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Validated values.
        container : {array-like, dataframe}
            What the user gave: rows come back in the same form.
        is_categorical : ndarray of shape (n_features,), dtype bool, or None
            Which columns are categorical.
        """
        n_features = X.shape[1]
        if is_categorical is None:
            is_categorical = np.zeros(n_features, dtype=bool)
        self.is_categorical = is_categorical
        self._form(container)
        numbers, labels = self._parts(X)
        self.low, self.high = numbers.min(axis=0), numbers.max(axis=0)
        self.is_constant = self.low == self.high
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            self.center, variances = numbers.mean(axis=0), numbers.var(axis=0)
        lost = ~np.isfinite(variances) | ((variances == 0) & ~self.is_constant)
        if lost.any():
            raise ValueError(
                "X must hold numbers whose squares are doubles; got column "
                f"{np.flatnonzero(~is_categorical)[lost][0]} with numbers from "
                f"{self.low[lost][0]} to {self.high[lost][0]}: scale it."
            )
        self.deviation = _scale(np.sqrt(variances))
        self.n_columns = numbers.shape[1]

        if self.scaling == "quantile":
            self.scaler = QuantileTransformer(
                n_quantiles=min(1000, len(X)),
                output_distribution="normal",
                subsample=None,
            )
        else:
            self.scaler = StandardScaler()
        if numbers.shape[1]:
            self.scaler.fit(numbers)
            self.shared_deviation = _scale(np.sqrt(variances.mean()))
            if self.scaling == "global":
                self.scaler.scale_ = np.full(numbers.shape[1], self.shared_deviation)
        self.encoder = OneHotEncoder(sparse_output=False)
        if is_categorical.any():
            indicators = self.encoder.fit_transform(labels)
            sizes = [len(names) for names in self.encoder.categories_]
            self.n_columns += sum(sizes)
            self.starts = np.cumsum([0, *sizes])
            self.means = indicators.mean(axis=0)
            # One scale for a column, or rare categories would be far outliers.
            variances = np.add.reduceat(indicators.var(axis=0), self.starts[:-1])
            self.scales = np.repeat(_scale(np.sqrt(variances / sizes)), sizes)
        return self

    def transform(self, X, rng=None):
        """Return rows in the network's space, of shape (n_samples, n_columns).

        With `rng`, of rows to train with, equal numbers are spread by chance over their
        quantiles: of a column with many of them, the distribution is then normal, too.
        """
        numbers, labels = self._parts(X)
        if self.scaling == "quantile" and rng is not None:
            numbers = _normal_scores(numbers, rng)
        elif numbers.shape[1]:
            numbers = self.scaler.transform(numbers)
        return self.sigma_data * np.hstack([numbers, self._indicators(labels)])

    def standardized(self, X, shared=False):
        """Return rows with columns around 0 with deviation 1, whatever the scaling.

        With `shared`, all numeric columns are divided by the same deviation.
        """
        numbers, labels = self._parts(X)
        scale = self.shared_deviation if shared else self.deviation
        numbers = (numbers - self.center) / scale
        return np.hstack([numbers, self._indicators(labels)])

    def inverse_transform(self, Z):
        """Return rows of the network's space in the form that `fit` got."""
        Z = np.asarray(Z, dtype=np.float64) / self.sigma_data
        n_numbers = np.count_nonzero(~self.is_categorical)
        numbers, columns = self._numbers(Z[:, :n_numbers]), iter(())
        if self.is_categorical.any():
            columns = iter(self._labels(Z[:, n_numbers:]))
        numbers = iter(numbers.T)
        columns = [
            next(columns) if categorical else _as_dtype(next(numbers), dtype)
            for categorical, dtype in zip(self.is_categorical, self.dtypes, strict=True)
        ]
        if self.template is None:
            return np.column_stack(columns)
        data = dict(zip(self.template.columns, columns, strict=True))
        if hasattr(self.template, "schema"):  # polars
            data = {name: column.tolist() for name, column in data.items()}
            return type(self.template)(data, schema=self.template.schema, strict=False)
        return type(self.template)(data).astype(self.template.dtypes.to_dict())

    def log_volume(self):
        """Return the log determinant of the way to the network's space."""
        scales = self.sigma_data / self.scaler.scale_
        return np.log(scales).sum()

    def _form(self, container):
        """Keep the form of the input: an empty table, and what the columns hold."""
        self.template = None  # copies, since a view would keep all rows
        if is_pandas_df(container):
            self.template = container.iloc[:0].copy()
        elif is_polars_df(container):
            self.template = container.clear()
        if self.template is not None:
            self.dtypes = [_numpy_dtype(container[name]) for name in container.columns]
        else:
            dtype = np.asarray(container).dtype
            self.dtypes = [dtype] * len(self.is_categorical)

    def _parts(self, X):
        """Return the numeric columns as float64, and the categorical ones."""
        numbers = X[:, ~self.is_categorical]
        if numbers.dtype != np.float64 and numbers.shape[1]:
            numbers = check_array(numbers, dtype=np.float64, input_name="X")
        return numbers.astype(np.float64), X[:, self.is_categorical]

    def _indicators(self, labels):
        """Return centred and scaled indicators of the categories."""
        if not labels.shape[1]:
            return np.empty(labels.shape)
        return (self.encoder.transform(labels) - self.means) / self.scales

    def _numbers(self, Z):
        """Return the numeric columns."""
        if not Z.shape[1]:
            return Z
        numbers = self.scaler.inverse_transform(Z)
        if self.clip:
            numbers = np.clip(numbers, self.low, self.high)
        numbers[:, self.is_constant] = self.low[self.is_constant]
        return numbers

    def _labels(self, Z):
        """Yield the categorical columns: of each, the category of the largest value."""
        shares = Z * self.scales + self.means
        for first, last, names in zip(
            self.starts[:-1], self.starts[1:], self.encoder.categories_, strict=True
        ):
            yield names[shares[:, first:last].argmax(axis=1)]


def _normal_scores(X, rng):
    """Return the normal quantiles of the ranks of each column, with ties by chance."""
    Z = np.empty_like(X)
    for column, values in enumerate(X.T):
        order = np.lexsort((rng.uniform(size=len(X)), values))
        Z[order, column] = norm.ppf((np.arange(len(X)) + 0.5) / len(X))
    return Z


def _scale(deviation):
    """Return the deviation to divide by: 1 for what is constant."""
    return np.where(deviation > 0, deviation, 1.0)


def _numpy_dtype(column):
    """Return the dtype of NumPy that a column of a dataframe stands for."""
    nullable = getattr(column.dtype, "numpy_dtype", None)  # of pandas
    return nullable if nullable is not None else column[:0].to_numpy().dtype


def _as_dtype(values, dtype):
    """Return numbers as the dtype: whole ones are rounded, and kept in its range."""
    if dtype.kind == "b":
        return values > 0.5
    if dtype.kind in "iu":
        # The largest 64-bit integers are no doubles: stay below.
        info, values = np.iinfo(dtype), np.rint(values)
        high = np.nextafter(float(info.max), 0) if dtype.itemsize == 8 else info.max
        return np.clip(values, info.min, high).astype(dtype)
    return values.astype(dtype) if dtype.kind == "f" else values
