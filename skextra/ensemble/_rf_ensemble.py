"""Ensembles of random-feature ridge regressors and their infinite-width limit."""

import math
import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._array_api import (
    _max_precision_float_dtype,
    check_same_namespace,
    get_namespace_and_device,
    move_to,
)
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from skextra.ensemble._features import (
    FEATURE_MAPS,
    FOURIER_MAPS,
    WEIGHT_DISTRIBUTIONS,
    draw_weights,
    features,
)
from skextra.ensemble._incremental import add_batch, fit_member_by_blocks, solve_sums
from skextra.ensemble._inputs import as_matrix, centre_and_scale, scaled_inputs
from skextra.ensemble._kernels import is_monte_carlo
from skextra.ensemble._members import (
    CG_ITERATIONS,
    CG_TOLERANCE,
    fit_member,
    fit_member_cg,
    score_path,
)
from skextra.ensemble._training_rows import TrainingRowsMixin
from skextra.utils import DocLinkMixin, row_blocks, run_parallel

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


def _has_finite_width(estimator):
    if estimator.n_components == np.inf:
        raise AttributeError("partial_fit needs a finite n_components; got inf.")
    return True


class RFEnsembleRegressor(
    DocLinkMixin,
    TrainingRowsMixin,
    CallbackSupportMixin,
    RegressorMixin,
    BaseEstimator,
):
    """Mean of random-feature ridge regressors, or their infinite-width limit.

    Each member draws its own random hidden layer, phi(omega . x), and fits its output
    layer by ridge regression on all rows; the prediction is the mean of the members.
    As `n_components` grows, every member approaches kernel ridge regression with the
    kernel of the random features, which ``n_components=np.inf`` computes itself.

    Read more in the :ref:`User Guide <ensemble>`.

    Parameters
    ----------
    n_members : int, default=10
        Number of members. Ignored when `n_components` is infinite.

    n_components : int or np.inf, default=512
        Number of random features of a member, its width. ``np.inf`` fits the limit.
        "fourier_paired" needs an even number.

    feature_map : {"relu", "erf", "fourier", "fourier_paired", "step", "softplus"} or \
            callable, default="relu"
        The nonlinearity phi. The Fourier maps are random Fourier features of a
        shift-invariant kernel: "fourier" draws a phase for each cosine,
        "fourier_paired" takes the cosine and the sine of half as many directions. A
        callable is applied elementwise to an array of any shape.

    weight_distribution : {"normal", "uniform", "laplace", "student_t"} or callable, \
            default="normal"
        Distribution of the hidden weights, of mean 0 and variance 1; "student_t" is
        the multivariate one with 3 degrees of freedom, of scale 1. With a Fourier map
        the four stand for the Gaussian kernel, a product of sinc functions, a product
        of Cauchy functions, and the Matern kernel with nu=3/2. A callable takes
        ``(rng, shape)``, a :class:`numpy.random.RandomState` and
        ``(n_inputs, n_components)``, and returns an array.

    weight_scale : float or "auto", default="auto"
        Factor of the centred inputs. "auto" is 1 / sqrt(n_features * variance), with
        the weighted variance of all inputs around their column means, or 1 if that
        is zero.

    bias_scale : float, default=1.0
        Value of the constant input that is appended to each row. Not used by the
        Fourier maps.

    center : bool, default=True
        Whether to subtract the weighted column means from the inputs.

    alpha : float or array-like of shape (n_alphas,), default=1e-3
        Ridge penalty of each member, in the units of the sum of squared errors. 0 is
        ridgeless regression, the least-squares solution of minimum norm. From an
        array, the value of least error is chosen, see `alpha_selection`.

    alpha_selection : {"loo", "gcv"}, default="loo"
        Error that chooses `alpha` from an array: the exact leave-one-out error of the
        ensemble mean, or its generalised cross-validation.

    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.

    solver : {"auto", "dual", "primal", "cg"}, default="auto"
        "dual" solves systems of the size of the rows, "primal" of the features.
        "cg" runs conjugate gradients, preconditioned by the infinite-width kernel,
        to a relative residual of 1e-8, without storing the features; it needs one
        `alpha` above 0. "auto" chooses "dual" if there are no more rows than
        features and "primal" otherwise, or "cg" from 5000 rows and twice as many
        features on.

    rcond : float or "auto", default="auto"
        Cut-off of ridgeless regression: eigenvalues of a member's Gram matrix up to
        `rcond` times the largest count as zero. "auto" is the number of rows times
        the machine epsilon of float64.

    dtype : {"float64", "float32"}, default="float64"
        Precision of the features of float64 input. Features of float32 input are
        always float32. Systems are solved in float64.

    n_jobs : int, default=None
        Number of members to fit at once, through joblib.

    random_state : int, RandomState instance or None, default=None
        Seed of the random features. They depend on it, on the number of input
        features, and on the two sizes alone.

    Attributes
    ----------
    weights_ : array of shape (n_members, n_inputs, n_components)
        Hidden weights omega. `n_inputs` is `n_features_in_`, and one more for the
        constant unless the map is a Fourier map. Not for infinite width.

    phases_ : array of shape (n_members, n_components) or None
        Phases of the Fourier maps, in radians.

    coef_ : array of shape (n_members, n_components, n_targets)
        Output weights theta; a member is ``phi / sqrt(n_components) @ coef``. Not for
        infinite width.

    dual_coef_ : array of shape (n_samples_with_weight, n_targets)
        Coefficients of the kernel with each training row of positive weight. Only
        for infinite width.

    intercept_ : array of shape (n_members, n_targets)
        Intercepts, 0 without `fit_intercept`; one row for infinite width.

    alpha_ : float
        Ridge penalty used.

    loo_score_path_ : array of shape (n_alphas,)
        Mean squared leave-one-out error (or the GCV) of the ensemble for each value
        of an array `alpha`.

    effective_ridge_ : float
        Penalty with which the limit predicts what an average member of this width
        predicts (Jacot et al., 2020). Computed when read, in O(n_samples^3).

    rank_ : array of shape (n_members,)
        Numerical ranks, where an eigen-decomposition was needed: for `alpha` 0, for
        an array, and for a matrix that is singular to machine precision.

    x_offset_ : array of shape (n_features,)
        What is subtracted from the inputs.

    weight_scale_ : float
        What the centred inputs are multiplied by.

    kernel_standard_error_ : float
        Largest standard error of an entry of the training kernel, where infinite
        width needs a kernel that has no formula here and is estimated from 16384
        random features: for a callable distribution, or one that is not normal with
        a map that is not a Fourier map.

    X_fit_ : array of shape (n_samples, n_features)
        Training inputs, kept by `fit` for the leave-one-out and infinite-width
        methods.

    y_fit_ : array of shape (n_samples,) or (n_samples, n_targets)
        Training targets.

    sample_weight_fit_ : array of shape (n_samples,)
        Training weights.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had string names.

    See Also
    --------
    skextra.ensemble.ensemble_or_wider : Compares more members with more width.
    sklearn.kernel_approximation.RBFSampler : Random Fourier features alone.
    sklearn.kernel_ridge.KernelRidge : Kernel ridge regression with any kernel.

    Notes
    -----
    The spread of the members, ``std="members"``, is how much a prediction depends on
    the draw of the random features. It says nothing about noise or about the amount
    of data; :meth:`predict_interval` does. The mean of infinitely many members of
    width D differs from the infinite-width limit by O(1/D), although the paper's
    Theorem 3.2 says that they are equal for ridgeless members.

    References
    ----------
    .. [1] N. Dern, J. P. Cunningham, G. Pleiss, "Theoretical Limitations of Ensembles
       in the Age of Overparameterization", ICML 2025, :arxiv:`2410.16201`.
    .. [2] A. Jacot, B. Simsek, F. Spadaro, C. Hongler, F. Gabriel, "Implicit
       Regularization of Random Feature Models", ICML 2020, :arxiv:`2002.08404`.
    .. [3] R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani, "Predictive
       Inference with the Jackknife+", Annals of Statistics 49(1), 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from skextra.ensemble import RFEnsembleRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RFEnsembleRegressor(alpha=np.logspace(-2, 2, 9), random_state=0)
    >>> model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.4
    True
    >>> model.predict_interval(X[300:], coverage=0.9).shape
    (142, 2)
    """

    _parameter_constraints: dict = {
        "n_members": [Interval(Integral, 1, None, closed="left")],
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Options(Real, {np.inf}),
        ],
        "feature_map": [StrOptions(set(FEATURE_MAPS)), callable],
        "weight_distribution": [StrOptions(set(WEIGHT_DISTRIBUTIONS)), callable],
        "weight_scale": [
            StrOptions({"auto"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "bias_scale": [Interval(Real, 0, None, closed="left")],
        "center": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "alpha_selection": [StrOptions({"loo", "gcv"})],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions({"auto", "dual", "primal", "cg"})],
        "rcond": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "dtype": [StrOptions({"float64", "float32"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_members=10,
        n_components=512,
        *,
        feature_map="relu",
        weight_distribution="normal",
        weight_scale="auto",
        bias_scale=1.0,
        center=True,
        alpha=1e-3,
        alpha_selection="loo",
        fit_intercept=True,
        solver="auto",
        rcond="auto",
        dtype="float64",
        n_jobs=None,
        random_state=None,
    ):
        self.n_members = n_members
        self.n_components = n_components
        self.feature_map = feature_map
        self.weight_distribution = weight_distribution
        self.weight_scale = weight_scale
        self.bias_scale = bias_scale
        self.center = center
        self.alpha = alpha
        self.alpha_selection = alpha_selection
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.rcond = rcond
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Fit the members, or the infinite-width limit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs.

        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Training targets.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared errors, not negative. A row of weight zero is as
            good as absent.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as documented: NaN or infinity, an odd
            `n_components` with "fourier_paired", an `alpha` below 0, a solver that
            cannot do what is asked, weights below 0 or all 0.

        Warns
        -----
        RankDeficientWarning
            If `alpha_` is 0 and a member's features have less than full rank.
        ConvergenceWarning
            If conjugate gradients end above their tolerance.
        """
        self._validate_width()
        alphas, select = self._validate_alpha()
        X, y, sample_weight = self._validate_rows(X, y, sample_weight)
        self._forget()
        self._prepare_inputs(X, y, sample_weight)
        self.X_fit_, self.y_fit_, self.sample_weight_fit_ = X, y, sample_weight
        rows = self._training_rows()
        if select and rows.y.shape[0] < 2:
            raise ValueError(
                "An array of alpha needs at least 2 rows of positive weight; got "
                f"n_samples={rows.y.shape[0]}."
            )

        n_solves = 1 if math.isinf(self.n_components) else self.n_members
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        fit_task = self._init_callback_context(max_subtasks=n_solves)
        fit_task.call_on_fit_task_begin(estimator=self, **data)
        solved, results = [], iter(self._solve(rows, alphas, select))
        for _ in range(n_solves):
            task = fit_task.subcontext(task_name="member")
            task.call_on_fit_task_begin(estimator=self, **data)
            solved.append(next(results))
            if task.call_on_fit_task_end(
                estimator=self,
                reconstruction_attributes=partial(self._fitted, solved, alphas, rows),
                **data,
            ):
                break
        vars(self).update(self._fitted(solved, alphas, rows))
        self._warn(solved, rows)
        fit_task.call_on_fit_task_end(
            estimator=self, reconstruction_attributes={}, **data
        )
        return self

    @available_if(_has_finite_width)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, sample_weight=None):
        """Add a batch of rows to the fit.

        Each member keeps sums of the size of its features, not the rows, so what
        needs the training rows (leave-one-out, intervals, the infinite width) is not
        available. The centre and the scale of the inputs are those of the first
        batch, which should have more than a few rows: the order of the batches matters
        as far as it changes the first one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs of the batch.

        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets of the batch.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared errors.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If `alpha` is an array, if the batch does not have the columns and the
            targets of the earlier ones, or if a parameter other than `alpha`, `rcond`
            and `n_jobs` has changed since the first one. An infinite `n_components`
            has no such method.
        """
        self._validate_params()  # scikit-learn does so for the first batch only
        self._validate_width()
        alphas, select = self._validate_alpha()
        if select:
            raise ValueError(
                "partial_fit cannot choose among several alpha, because it does not "
                f"keep the rows; got {self.alpha!r}."
            )
        first = not hasattr(self, "intercept_")
        if not first:
            self._validate_continuation()
        X, y, sample_weight = self._validate_rows(X, y, sample_weight, reset=first)
        if first:
            self._forget()
            self._prepare_inputs(X, y, sample_weight)
        elif hasattr(self, "X_fit_"):  # go on from where fit ended
            self._add_batch(self.X_fit_, self.y_fit_, self.sample_weight_fit_)
            del self.X_fit_, self.y_fit_, self.sample_weight_fit_
        self._add_batch(X, y, sample_weight)
        fit_intercept = self._fixed["fit_intercept"]
        members = [
            solve_sums(sums, alphas[0], fit_intercept, self.rcond)
            for sums in self._sums
        ]
        vars(self).update(self._fitted(members, alphas, None))
        return self

    def predict(self, X, return_std=False, std="members"):
        """Predict the mean of the members.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        return_std : bool, default=False
            Whether to return a standard deviation as well.

        std : {"members", "ensemble", "gp"}, default="members"
            Which one. "members": the standard deviation over the members (``ddof=1``),
            how much one member depends on its random features. "ensemble": the
            standard error of their mean, the same divided by ``sqrt(n_members)``.
            "gp": the latent standard deviation of the Gaussian process whose kernel
            is that of infinite width and whose noise variance is `alpha_`, in the
            units of the prior, which has the kernel's variance; it costs
            O(n_samples^3). None of them is the error to expect: for that, see
            :meth:`predict_interval`.

        Returns
        -------
        y_pred : array of shape (n_samples,) or (n_samples, n_targets)
            Predictions.

        y_std : array of the shape of `y_pred`
            Standard deviations, if `return_std`.

        Raises
        ------
        ValueError
            If the standard deviation asked for does not exist: that of one member or
            of infinite width, or "gp" after `partial_fit`.
        """
        X = self._validate_X(X, "predict")
        if not return_std:
            return self._as_targets(self._mean_of_members(X))
        self._validate_std(std)
        xp, _, _ = get_namespace_and_device(X)
        if std == "gp":
            y_pred = self._mean_of_members(X)
            y_std = self._gp_std(X)[:, None] * xp.ones_like(y_pred)
            return self._as_targets(y_pred), self._as_targets(y_std)
        y_pred, y_std = [], []
        for members in self._blocks_of_members(X):
            y_pred.append(xp.mean(members, axis=0))
            y_std.append(xp.std(members, axis=0, correction=1.0))
        y_pred, y_std = xp.concat(y_pred), xp.concat(y_std)
        if std == "ensemble":
            y_std = y_std / math.sqrt(self.coef_.shape[0])
        return self._as_targets(y_pred), self._as_targets(y_std)

    def predict_members(self, X):
        """Predict with each member on its own.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        y_pred : array of shape (n_members, n_samples[, n_targets])
            Predictions of the members.

        Raises
        ------
        ValueError
            If the width is infinite: that model has no members.
        """
        X = self._validate_X(X, "predict_members")
        self._require_members("predict_members")
        xp, _, _ = get_namespace_and_device(X)
        return self._as_targets(xp.concat(list(self._blocks_of_members(X)), axis=1))

    # The rest is private: first what is refused, then the parts of fit and predict.

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
        for name in list(vars(self)):
            if name == "_sums" or (name.endswith("_") and not name.endswith("_in_")):
                delattr(self, name)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "intercept_")

    def __dir__(self):
        # The HTML view reads every attribute that is listed, and this one is slow;
        # so does scikit-learn's own __dir__.
        names = [name for name in object.__dir__(self) if name != "effective_ridge_"]
        return [name for name in names if hasattr(self, name)]

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
        elif dual or select:
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.array_api_support = True
        return tags
