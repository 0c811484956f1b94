"""The steps of fit and predict, and the input that they refuse."""

import math
import warnings

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._array_api import (
    _max_precision_float_dtype,
    check_same_namespace,
    get_namespace_and_device,
    move_to,
)
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from skextra.ensemble._features import FOURIER_MAPS, draw_weights, features
from skextra.ensemble._incremental import add_batch, fit_member_by_blocks
from skextra.ensemble._inputs import as_matrix, centre_and_scale, scaled_inputs
from skextra.ensemble._kernels import is_monte_carlo
from skextra.ensemble._members import (
    CG_ITERATIONS,
    CG_TOLERANCE,
    fit_member,
    fit_member_cg,
    score_path,
)
from skextra.utils import forget, row_blocks, run_parallel

# What the fitted model is made of: later changes of these must not reach it.
FIXED = (
    "n_members",
    "n_components",
    "feature_map",
    "weight_distribution",
    "weight_scale",
    "bias_scale",
    "center",
    "fit_intercept",
    "dtype",
)
CG_FROM = 5000  # rows from which solver="auto" prefers conjugate gradients


class RankDeficientWarning(LinAlgWarning):
    """A ridgeless fit met features, or a kernel, of less than full rank."""


class StepsMixin:
    """What the methods of the ensemble's class are made of."""

    def _validate_rows(self, X, y, sample_weight, reset=True):
        """X, y and weights in the namespace of X; y and weights in float64."""
        xp, _, device = get_namespace_and_device(X)
        y, sample_weight = move_to(y, sample_weight, xp=xp, device=device)
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            dtype=[xp.float64, xp.float32],
            copy=True,
            multi_output=True,
            y_numeric=True,
        )
        wide = _max_precision_float_dtype(xp, device)
        sample_weight = _check_sample_weight(
            sample_weight, X, dtype=wide, ensure_non_negative=True
        )
        if not reset:
            check_same_namespace(X, self, attribute="intercept_", method="partial_fit")
            if y.shape[1:] != self._target_shape:
                raise ValueError(
                    f"y has targets of shape {y.shape[1:]}; the rows before had "
                    f"targets of shape {self._target_shape}."
                )
        self._target_shape = y.shape[1:]
        return X, xp.astype(y, wide), sample_weight

    def _validate_alpha(self):
        """The penalties as a list, and whether to choose among them."""
        try:
            alphas = np.asarray(self.alpha)
        except ValueError as error:
            raise ValueError(f"alpha must be 1-D; got {self.alpha!r}.") from error
        select = alphas.ndim > 0
        if alphas.dtype.kind not in "iuf":
            problem = f"a number or an array of numbers; got {self.alpha!r}"
        elif alphas.ndim > 1 or alphas.size == 0:
            problem = f"a number or a 1-D array of at least one; got {alphas.shape=}"
        elif not np.isfinite(alphas).all() or (alphas < 0).any():
            problem = f"finite and not negative; got {self.alpha!r}"
        elif select and self.alpha_selection == "gcv" and not alphas.all():
            problem = (
                "above 0 for alpha_selection='gcv', which is 0 / 0 for a model that "
                f"interpolates; got {self.alpha!r}. 'loo' accepts 0"
            )
        elif self.solver == "cg" and (select or alphas == 0):
            problem = f"one number above 0 for solver='cg'; got {self.alpha!r}"
        else:
            return alphas.astype(float).reshape(-1).tolist(), select
        raise ValueError(f"alpha must be {problem}.")

    def _validate_width(self):
        paired = self.feature_map == "fourier_paired"
        if paired and self.n_components % 2 and not math.isinf(self.n_components):
            raise ValueError(
                "feature_map='fourier_paired' needs an even n_components; got "
                f"{self.n_components}."
            )
        if math.isinf(self.n_components) and self.solver in ("primal", "cg"):
            raise ValueError(
                f"n_components=inf needs solver='auto' or 'dual'; got {self.solver!r}."
            )

    def _validate_continuation(self):
        """Refuse a batch for which the sums so far would be of another model."""
        changed = {
            name: (value, getattr(self, name))
            for name, value in self._fixed.items()
            if getattr(self, name) is not value and getattr(self, name) != value
        }
        if changed:
            words = [
                f"{name}={new!r}, was {old!r}" for name, (old, new) in changed.items()
            ]
            raise ValueError(
                "partial_fit continues the model of the first batch, whose parameters "
                f"must not change; got {'; '.join(words)}. Use a clone."
            )

    def _validate_X(self, X, method):
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="intercept_", method=method)
        xp, _, _ = get_namespace_and_device(X)
        return validate_data(self, X, reset=False, dtype=[xp.float64, xp.float32])

    def _validate_std(self, std):
        if std not in ("members", "ensemble", "gp"):
            raise ValueError(f"std must be 'members', 'ensemble' or 'gp'; got {std!r}.")
        if std == "gp":
            self._require_rows("std='gp'")
            return
        self._require_members(f"std={std!r}")
        if self.coef_.shape[0] == 1:
            raise ValueError(f"std={std!r} needs two members or more; n_members is 1.")

    def _require_members(self, what):
        if hasattr(self, "dual_coef_"):
            raise ValueError(
                f"{what} needs members, of which a model of infinite width has none; "
                "set a finite n_components."
            )

    def _forget(self):
        """Leave nothing of an earlier fit behind but the names of the features."""
        forget(self)
        vars(self).pop("_sums", None)

    def _prepare_inputs(self, X, y, sample_weight):
        """Centre and scale of the inputs, and the random features."""
        xp, _, device = get_namespace_and_device(X)
        self._fixed = {name: getattr(self, name) for name in FIXED}
        self.x_offset_, scale = centre_and_scale(X, sample_weight, self.center)
        self.weight_scale_ = scale if self.weight_scale == "auto" else self.weight_scale
        narrow = X.dtype == xp.float32
        fits = float(xp.max(xp.abs(y))) < 1e-3 * float(xp.finfo(xp.float32).max)
        self._output_dtype = "float32" if narrow and fits else "float64"
        self._feature_dtype = "float32" if narrow else self.dtype
        rng = check_random_state(self.random_state)
        if not math.isinf(self.n_components):
            n_inputs = X.shape[1] + (self.feature_map not in FOURIER_MAPS)
            draws = draw_weights(
                self.n_members,
                n_inputs,
                self.n_components,
                self.feature_map,
                self.weight_distribution,
                rng,
            )
            dtype = getattr(xp, self._feature_dtype)
            self.weights_, self.phases_ = (
                None if A is None else xp.asarray(A, dtype=dtype, device=device)
                for A in draws
            )
        self._kernel_seed = rng.randint(np.iinfo(np.int32).max)

    def _inputs(self, X):
        """The paper's x~ of validated rows."""
        fourier = self._fixed["feature_map"] in FOURIER_MAPS
        constant = None if fourier else self._fixed["bias_scale"]
        return scaled_inputs(
            X, self.x_offset_, self.weight_scale_, constant, self._feature_dtype
        )

    def _members(self):
        """Weights and phases of each member, as the maths rooms take them."""
        for m in range(self.weights_.shape[0]):
            phases = None if self.phases_ is None else self.phases_[m, :]
            yield self.weights_[m, :, :], phases

    def _is_dual(self, rows):
        if self.solver == "auto":
            return self._fixed["n_components"] >= rows.y.shape[0]
        return self.solver != "primal"

    def _solve(self, rows, alphas, select):
        """Solutions of the members, one by one as joblib delivers them."""
        if math.isinf(self.n_components):
            limit = self._limit(rows)
            if is_monte_carlo(self.feature_map, self.weight_distribution):
                self.kernel_standard_error_ = limit.standard_error()
            return [limit.fit(alphas, self.rcond, select)]
        dual, one = self._is_dual(rows), (alphas[0], self.feature_map)
        if factor := self._preconditioner(rows, alphas, select):
            task, args = fit_member_cg, (*one, factor)
        elif dual or select or alphas[0] == 0:
            task, args = (
                fit_member,
                (alphas, self.feature_map, dual, self.rcond, select),
            )
        else:
            task, args = fit_member_by_blocks, (*one, self.rcond)
        tasks = (delayed(task)(rows, *member, *args) for member in self._members())
        return run_parallel(tasks, self.n_jobs)

    def _preconditioner(self, rows, alphas, select):
        """Factor of the infinite-width kernel if conjugate gradients are to be used."""
        n_rows = rows.y.shape[0]
        wide = n_rows >= CG_FROM and self.n_components >= 2 * n_rows
        automatic = self.solver == "auto" and wide and not select and alphas[0] > 0
        if not automatic and self.solver != "cg":
            return None
        factor = self._limit(rows).factor(alphas[0])
        if factor is None and not automatic:
            raise ValueError(
                f"alpha={alphas[0]} is too small for solver='cg': the kernel plus "
                "alpha is singular to machine precision. Raise alpha, or use "
                "solver='dual'."
            )
        return factor

    def _warn(self, solved, rows):
        """Say where the solution is not what it should be."""
        residual = max(member.cg_residual for member in solved)
        if not residual <= CG_TOLERANCE:  # NaN is not
            warnings.warn(
                f"Conjugate gradients stopped after {CG_ITERATIONS} iterations at a "
                f"relative residual of {residual:.1e}, above {CG_TOLERANCE:.0e}. Raise "
                "alpha, or use solver='dual'.",
                ConvergenceWarning,
                stacklevel=5,  # past fit and its two decorators
            )
        full = min(rows.y.shape[0] - self.fit_intercept, self.n_components)
        if self.alpha_ == 0 and (lowest := min(m.rank for m in solved)) < full:
            warnings.warn(
                f"The ridgeless fit (alpha=0) has features of rank {lowest}, below the "
                f"full rank of {full}; eigenvalues below the cut-off rcond count as "
                "zero. Repeated rows do this, and inactive features.",
                RankDeficientWarning,
                stacklevel=5,
            )

    def _fitted(self, solved, alphas, rows):
        """Fitted attributes of the solutions so far."""
        xp, _, device = get_namespace_and_device(self.x_offset_)
        fitted, best = {}, 0
        if solved[0].residuals is not None:
            with np.errstate(all="ignore"):  # what comes of it is refused next
                path = score_path(solved, rows, self.alpha_selection)
            if not bool(xp.all(xp.isfinite(path))):
                raise ValueError(
                    f"alpha={self.alpha!r} has {self.alpha_selection} errors that are "
                    f"no finite numbers, {path}: leave out very small values, or bring "
                    "y and sample_weight nearer to 1."
                )
            fitted["loo_score_path_"], best = path, int(xp.argmin(path))
        fitted["alpha_"] = alphas[best]
        fitted["intercept_"] = xp.stack([m.intercept[best, ...] for m in solved])
        if math.isinf(self.n_components):
            fitted["dual_coef_"] = solved[0].coef[best, ...]
        else:
            fitted["coef_"] = xp.stack([m.coef[best, ...] for m in solved])
            fitted["weights_"] = self.weights_[: len(solved), ...]
            if self.phases_ is not None:
                fitted["phases_"] = self.phases_[: len(solved), ...]
        ranks = [m.rank for m in solved]
        if None not in ranks:
            fitted["rank_"] = xp.asarray(ranks, device=device)
        return fitted

    def _add_batch(self, X, y, sample_weight):
        """Add validated rows to the sums of each member."""
        X, y = self._inputs(X), as_matrix(y)
        previous = getattr(self, "_sums", [None] * self.weights_.shape[0])
        self._sums = [
            add_batch(
                sums,
                X,
                y,
                sample_weight,
                weights,
                phases,
                self._fixed["feature_map"],
                self._fixed["fit_intercept"],
            )
            for sums, (weights, phases) in zip(previous, self._members(), strict=True)
        ]

    def _blocks_of_members(self, X):
        """Predictions in float64, (n_members, rows of a block, n_targets)."""
        xp, _, _ = get_namespace_and_device(X)
        if hasattr(self, "dual_coef_"):
            limit = self._limit(self._training_rows())
            for block in row_blocks(X.shape[0], limit.row_bytes):
                K = limit.kernel(self._inputs(X[block, :]))
                yield (K @ self.dual_coef_ + self.intercept_)[None, ...]
            return
        scaled = self.coef_ / math.sqrt(self.coef_.shape[1])
        for block in row_blocks(X.shape[0], 8 * self.coef_.shape[1], memory=4):
            inputs = self._inputs(X[block, :])
            predictions = []
            for m, (weights, phases) in enumerate(self._members()):
                Phi = features(inputs, weights, phases, self._fixed["feature_map"])
                Phi = xp.astype(Phi, scaled.dtype, copy=False)
                predictions.append(Phi @ scaled[m, ...] + self.intercept_[m, :])
            yield xp.stack(predictions)

    def _mean_of_members(self, X):
        """The ensemble's predictions in float64, (n_samples, n_targets)."""
        xp, _, _ = get_namespace_and_device(X)
        return xp.concat([xp.mean(b, axis=0) for b in self._blocks_of_members(X)])

    def _as_targets(self, y):
        """Predictions in the precision of the training X, without an axis y lacked."""
        xp, _, _ = get_namespace_and_device(y)
        y = xp.astype(y, getattr(xp, self._output_dtype), copy=False)
        return y if self._target_shape else y[..., 0]
