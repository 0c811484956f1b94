"""What a fitted ensemble does with the rows that it was trained on."""

from numbers import Real

import numpy as np
from sklearn.utils._array_api import get_namespace_and_device
from sklearn.utils.validation import check_is_fitted

from skextra.ensemble._inputs import as_matrix, as_numpy
from skextra.ensemble._members import (
    Limit,
    jackknife,
    jackknife_plus,
    make_rows,
)
from skextra.ensemble._theory import effective_ridge
from skextra.utils import row_blocks


class TrainingRowsMixin:
    """Leave-one-out, intervals and the infinite width, for the ensemble's class."""

    def predict_infinite(self, X):
        """Predict with members of infinite width.

        The same inputs and `alpha_`, with the kernel that the random features
        approach; it is solved anew by each call, in O(n_samples^3).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y_pred : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions of the limit.

        Raises
        ------
        ValueError
            After `partial_fit`, which keeps no rows.
        """
        X = self._validate_X(X, "predict_infinite")
        if hasattr(self, "dual_coef_"):
            return self.predict(X)
        self._require_rows("predict_infinite")
        xp, _, _ = get_namespace_and_device(X)
        limit = self._limit(self._training_rows())
        solution = limit.fit([self.alpha_], self.rcond, False)
        y_pred = [
            limit.kernel(self._inputs(X[block, :])) @ solution.coef[0, ...]
            for block in row_blocks(X.shape[0], limit.row_bytes)
        ]
        return self._as_targets(xp.concat(y_pred) + solution.intercept[0, ...])

    def loo_predict(self):
        """Predict each training row with the ensemble fitted without it, exactly.

        Every member keeps its random features, its `alpha_` and the scaling of the
        inputs; only its output layer would be refitted. It costs about three
        fits with the dual or primal solver.

        Returns
        -------
        y_pred : array of shape (n_samples,) or (n_samples, n_targets)
            Leave-one-out predictions of the training rows, in their order. A row of
            weight 0 gets the prediction of the ensemble itself.

        Raises
        ------
        ValueError
            After `partial_fit`, or if fewer than two rows have a positive weight.
        """
        check_is_fitted(self)
        self._require_rows("loo_predict", n_rows=2)
        xp, _, _ = get_namespace_and_device(self.X_fit_)
        rows = self._training_rows()
        residual = [loo for loo, _ in self._jackknives(rows)]
        residual = sum(residual) / len(residual) / rows.root[:, None]
        y_pred = self._mean_of_members(self.X_fit_)
        kept = self.sample_weight_fit_ > 0
        y_pred[kept] = as_matrix(self.y_fit_)[kept] - residual
        return self._as_targets(y_pred)

    def predict_interval(self, X, coverage=0.9, method="jackknife+"):
        """Predict intervals that cover new targets, by the jackknife+.

        For exchangeable rows the coverage is at least ``2 * coverage - 1`` whatever
        the distribution, and about `coverage` in practice. The random features, the
        ridge penalty and the scaling of the inputs count as fixed. No model is
        refitted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        coverage : float, default=0.9
            Share of the targets to cover, between 0 and 1.

        method : {"jackknife+"}, default="jackknife+"
            How the intervals are made.

        Returns
        -------
        interval : array of shape (n_samples, 2) or (n_samples, 2, n_targets)
            Lower and upper ends. They are infinite where there are too few training
            rows for the coverage.

        Raises
        ------
        ValueError
            If `coverage` is not between 0 and 1, after `partial_fit`, or if fewer than
            two rows have a positive weight.
        """
        X = self._validate_X(X, "predict_interval")
        if not (isinstance(coverage, Real) and 0 < coverage < 1):
            raise ValueError(f"coverage must be between 0 and 1; got {coverage!r}.")
        if method != "jackknife+":
            raise ValueError(f"method must be 'jackknife+'; got {method!r}.")
        self._require_rows("predict_interval", n_rows=2)
        xp, _, _ = get_namespace_and_device(X)
        rows = self._training_rows()
        width = 0 if hasattr(self, "dual_coef_") else self.coef_.shape[1]
        row_bytes = 24 * rows.y.shape[0] * rows.y.shape[1] + 16 * width
        ends = [
            jackknife_plus(
                self._inputs(X[block, :]),
                self._mean_of_members(X[block, :]),
                rows,
                self._jackknives(rows),
                1 - coverage,
            )
            for block in row_blocks(X.shape[0], row_bytes, memory=256)
        ]
        return self._as_targets(xp.concat(ends))

    @property
    def effective_ridge_(self):
        """Penalty with which the limit predicts as an average member of this width."""
        check_is_fitted(self)
        if hasattr(self, "dual_coef_"):
            return self.alpha_
        if not hasattr(self, "X_fit_"):
            raise AttributeError(self._no_rows("effective_ridge_"))
        xp, _, _ = get_namespace_and_device(self.X_fit_)
        eigenvalues = xp.linalg.eigvalsh(self._limit(self._training_rows()).gram())
        eigenvalues = np.maximum(as_numpy(eigenvalues), 0)
        return effective_ridge(eigenvalues, self.coef_.shape[1], self.alpha_)

    def _no_rows(self, what):
        return (
            f"{what} needs the training rows, which partial_fit does not keep; "
            "use fit instead."
        )

    def _require_rows(self, what, n_rows=1):
        if not hasattr(self, "X_fit_"):
            raise ValueError(self._no_rows(what))
        xp, _, _ = get_namespace_and_device(self.X_fit_)
        positive = int(xp.count_nonzero(self.sample_weight_fit_))
        if positive < n_rows:
            raise ValueError(
                f"{what} needs at least {n_rows} training rows of positive weight; "
                f"the model was fitted with {positive}."
            )

    def _training_rows(self):
        """The training rows as the maths rooms take them."""
        return make_rows(
            self._inputs(self.X_fit_),
            as_matrix(self.y_fit_),
            self.sample_weight_fit_,
            self._fixed["fit_intercept"],
        )

    def _limit(self, rows):
        """The member of infinite width."""
        return Limit(
            rows,
            self._fixed["feature_map"],
            self._fixed["weight_distribution"],
            self._kernel_seed,
        )

    def _gp_std(self, X):
        """Latent standard deviation of the limit's Gaussian process, in float64."""
        xp, _, _ = get_namespace_and_device(X)
        limit = self._limit(self._training_rows())
        solve = limit.solver(self.alpha_, self.rcond)
        variance = [
            limit.variance(self._inputs(X[block, :]), solve, self.alpha_)
            for block in row_blocks(X.shape[0], limit.row_bytes)
        ]
        return xp.sqrt(xp.concat(variance))

    def _jackknives(self, rows):
        """Leave-one-out residuals and influence of each member, or of the limit."""
        if hasattr(self, "dual_coef_"):
            yield self._limit(rows).jackknife(self.alpha_, self.rcond)
            return
        dual = self._is_dual(rows)
        for weights, phases in self._members():
            yield jackknife(
                rows,
                weights,
                phases,
                self.alpha_,
                self._fixed["feature_map"],
                dual,
                self.rcond,
            )
