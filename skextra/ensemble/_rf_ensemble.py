"""Ensembles of random-feature ridge regressors and their infinite-width limit."""

import math
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils._array_api import (
    get_namespace_and_device,
)
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.metaestimators import available_if

from skextra.ensemble._features import (
    FEATURE_MAPS,
    WEIGHT_DISTRIBUTIONS,
)
from skextra.ensemble._incremental import solve_sums
from skextra.ensemble._steps import StepsMixin
from skextra.ensemble._training_rows import TrainingRowsMixin
from skextra.utils import DocLinkMixin


def _has_finite_width(estimator):
    if estimator.n_components == np.inf:
        raise AttributeError("partial_fit needs a finite n_components; got inf.")
    return True


class RFEnsembleRegressor(
    DocLinkMixin,
    StepsMixin,
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
        ensemble mean, or its generalised cross-validation. The unit of both is a row,
        whatever its weight: a row of weight 2 is not left out like two rows.

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
        Cut-off of ridgeless regression: eigenvalues of a member's Gram matrix, the
        squared singular values of its features, count as zero up to `rcond` times the
        largest. "auto" is the number of rows times the machine epsilon of float64.

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

    def __sklearn_is_fitted__(self):
        return hasattr(self, "intercept_")

    def __dir__(self):
        # The HTML view reads every attribute that is listed, and this one is slow;
        # so does scikit-learn's own __dir__.
        names = [name for name in object.__dir__(self) if name != "effective_ridge_"]
        return [name for name in names if hasattr(self, name)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.array_api_support = True
        return tags
