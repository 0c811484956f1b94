"""More members or one wider model? Diagnostics of a random-feature ensemble."""

import math
from numbers import Integral

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, _safe_indexing, check_random_state, indexable
from sklearn.utils._array_api import get_namespace_and_device, move_to
from sklearn.utils._param_validation import HasMethods, Interval, validate_params
from sklearn.utils.parallel import delayed

from skextra.ensemble._inputs import as_numpy
from skextra.ensemble._rf_ensemble import RFEnsembleRegressor
from skextra.utils import run_parallel


def _check_ensemble(est):
    if not isinstance(est, RFEnsembleRegressor):
        raise TypeError(
            f"est must be a fitted RFEnsembleRegressor; got {type(est).__name__}. Of a "
            "pipeline, pass the last step and the transformed X."
        )


def width_bias(est, X):
    """How far the mean member is from infinite width.

    For ridgeless members the paper's Theorem 3.2 says that this is zero; it is O(1/D)
    for members of width D. A finite ensemble estimates it with a standard error.

    Parameters
    ----------
    est : RFEnsembleRegressor
        Ensemble fitted with :meth:`~RFEnsembleRegressor.fit`, of at least two members.

    X : array-like of shape (n_samples, n_features)
        Inputs.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        With the arrays of shape (n_samples,) or (n_samples, n_targets)

        bias
            Mean prediction of the members minus that of infinite width.
        standard_error
            Standard deviation of the members over ``sqrt(n_members)``.

    Raises
    ------
    ValueError
        If the ensemble has fewer than two members or was fitted by `partial_fit`.
    TypeError
        If `est` is something else.

    References
    ----------
    N. Dern, J. P. Cunningham, G. Pleiss, "Theoretical Limitations of Ensembles in the
    Age of Overparameterization", ICML 2025, Theorem 3.2.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skextra.ensemble import RFEnsembleRegressor, width_bias
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = RFEnsembleRegressor(alpha=1.0, random_state=0).fit(X, y)
    >>> width_bias(est, X[:5]).bias.shape
    (5,)
    """
    _check_ensemble(est)
    y_mean, standard_error = est.predict(X, return_std=True, std="ensemble")
    return Bunch(bias=y_mean - est.predict_infinite(X), standard_error=standard_error)


def variance_decomposition(est, X, y):
    """Split the error of a member into that of the ensemble and the members' spread.

    The identity ``member_mse = ensemble_mse + member_variance`` is exact: averaging
    removes the variance, and nothing else.

    Parameters
    ----------
    est : RFEnsembleRegressor
        Fitted ensemble of finite width.

    X : array-like of shape (n_samples, n_features)
        Inputs.

    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        True targets.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        With the floats, all means over rows and targets,

        member_mse
            Mean squared error of a member, on average.
        ensemble_mse
            Mean squared error of the mean of the members.
        member_variance
            Variance over the members (``ddof=0``).

    Raises
    ------
    ValueError
        If the width is infinite, or `y` does not have the shape of a prediction or is
        not finite.
    TypeError
        If `est` is something else.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skextra.ensemble import RFEnsembleRegressor, variance_decomposition
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = RFEnsembleRegressor(alpha=1.0, random_state=0).fit(X[:300], y[:300])
    >>> parts = variance_decomposition(est, X[300:], y[300:])
    >>> bool(abs(parts.member_mse - parts.ensemble_mse - parts.member_variance) < 1e-6)
    True
    """
    _check_ensemble(est)
    members = est.predict_members(X)
    xp, _, device = get_namespace_and_device(members)
    y = xp.asarray(move_to(y, xp=xp, device=device), dtype=members.dtype, device=device)
    if y.shape != members.shape[1:]:
        raise ValueError(
            f"y must have the shape of a prediction, {members.shape[1:]}; got "
            f"{y.shape}."
        )
    if not bool(xp.all(xp.isfinite(y))):
        raise ValueError("y must be finite; it has NaN or infinity.")
    ensemble = xp.mean(members, axis=0)
    return Bunch(
        member_mse=float(xp.mean((members - y) ** 2)),
        ensemble_mse=float(xp.mean((ensemble - y) ** 2)),
        member_variance=float(xp.mean((members - ensemble) ** 2)),
    )


@validate_params(
    {
        "est": [HasMethods(["fit", "predict", "get_params"])],
        "budgets": ["array-like", None],
        "n_repeats": [Interval(Integral, 2, None, closed="left")],
        "cv": ["cv_object"],
    },
    prefer_skip_nested_validation=True,
)
def ensemble_or_wider(est, X, y, budgets=None, n_repeats=20, cv=5):
    """Compare an ensemble with one wider model of as many features, by cross-validation.

    For each budget of features, clones of `est` with ``budget / n_components`` members
    are fitted to the training folds, and clones with one member of ``budget``
    features; both predict the held-out rows. Each is repeated with new random
    features, so that the difference comes with its Monte Carlo error.

    Parameters
    ----------
    est : RFEnsembleRegressor or Pipeline
        Model whose `n_components` is the width of a member; it is not fitted itself.
        A pipeline that contains one, or any meta-estimator, will do. Give it an array
        of `alpha` to have each model choose its own.

    X : array-like of shape (n_samples, n_features)
        Inputs.

    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Targets.

    budgets : array-like of int, default=None
        Numbers of features in all, multiples of `n_components`. By default 2, 4, 8
        and 16 times `n_components`.

    n_repeats : int, default=20
        Draws of the random features for each budget and fold.

    cv : int, cross-validation generator or iterable, default=5
        Folds, as in :func:`sklearn.model_selection.cross_val_score`.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        With arrays of shape (n_budgets,), errors being means over rows and targets,

        budget
            Number of features.
        ensemble_mse, single_mse
            Mean squared error on the held-out rows, over all repeats.
        standard_error
            Monte Carlo standard error of their difference. The rows are the same for
            both and count as fixed.
        ensemble_standard_error, single_standard_error
            The same for each by itself.

        with arrays of shape (2, n_budgets), the ensemble first,

        bias2, variance
            Error of the mean over the repeats, and variance over them: they add up to
            the mean squared error.

        and the recommendation in words, `recommendation`, at the largest budget. It
        takes a side if the difference is significant at 5 %, by Student's t.

    Raises
    ------
    ValueError
        If `est` contains no random-feature ensemble of finite width, or a budget is
        not a multiple of `n_components`.

    See Also
    --------
    EnsembleOrWiderDisplay : The picture.

    References
    ----------
    N. Dern, J. P. Cunningham, G. Pleiss, "Theoretical Limitations of Ensembles in the
    Age of Overparameterization", ICML 2025. B. Ruben et al., "No Free Lunch
    from Random Feature Ensembles", ICML 2025, for tuned penalties.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skextra.ensemble import RFEnsembleRegressor, ensemble_or_wider
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = RFEnsembleRegressor(n_components=32, alpha=1.0, random_state=0)
    >>> result = ensemble_or_wider(est, X, y, budgets=[64, 128], n_repeats=3)
    >>> result.ensemble_mse.shape
    (2,)
    """
    prefix = _ensemble_prefix(est)
    width = est.get_params()[f"{prefix}n_components"]
    budgets = _check_budgets(budgets, width)
    X, y = indexable(X, y)
    splits = list(check_cv(cv).split(X, y))
    rng = check_random_state(est.get_params()[f"{prefix}random_state"])
    tasks, truth = (
        [],
        np.concatenate([as_numpy(_safe_indexing(y, s[1])) for s in splits]),
    )
    for budget in budgets:
        for n_members, n_components in ((budget // width, width), (1, budget)):
            for seed in rng.randint(np.iinfo(np.int32).max, size=n_repeats):
                model = clone(est).set_params(
                    **{
                        f"{prefix}n_members": int(n_members),
                        f"{prefix}n_components": int(n_components),
                        f"{prefix}random_state": int(seed),
                        f"{prefix}n_jobs": None,
                    }
                )
                tasks.extend((model, X, y, train, test) for train, test in splits)
    predictions = run_parallel(
        (delayed(_fit_predict)(*task) for task in tasks),
        est.get_params()[f"{prefix}n_jobs"],
    )
    predictions = np.concatenate(list(predictions))
    predictions = predictions.reshape(len(budgets), 2, n_repeats, *truth.shape)
    return _compare(budgets, predictions, truth, width)


def _ensemble_prefix(est):
    """Prefix of the ensemble's parameters in those of `est`."""
    names = est.get_params()
    for name in sorted(names, key=len):
        prefix = name.removesuffix("n_members")
        if name.endswith("n_members") and f"{prefix}n_components" in names:
            return prefix
    raise ValueError(
        "est must be or contain an RFEnsembleRegressor; got "
        f"{type(est).__name__} with parameters {sorted(names)}."
    )


def _check_budgets(budgets, width):
    if math.isinf(width):
        raise ValueError("est must have a finite n_components; got inf.")
    if budgets is None:
        return width * np.array([2, 4, 8, 16])
    budgets = np.asarray(budgets)
    integers = budgets.ndim == 1 and budgets.size and budgets.dtype.kind in "iu"
    if not integers or (budgets < 1).any() or (budgets % width).any():
        raise ValueError(
            "budgets must be a 1-D array of positive multiples of the width of a "
            f"member, n_components={width}; got {budgets.tolist()}."
        )
    return budgets


def _fit_predict(model, X, y, train, test):
    """Predictions of a clone on the held-out rows."""
    X_train, y_train = (_safe_indexing(A, train) for A in (X, y))
    model = clone(model).fit(X_train, y_train)
    return as_numpy(model.predict(_safe_indexing(X, test)))


def _compare(budgets, predictions, truth, width):
    """Statistics of predictions (n_budgets, 2, n_repeats, n_samples[, n_targets])."""
    rows = tuple(range(3, predictions.ndim))
    n_repeats = predictions.shape[2]
    mse = np.mean((predictions - truth) ** 2, axis=rows)
    errors = np.std(mse, axis=2, ddof=1) / math.sqrt(n_repeats)
    difference = mse[:, 0] - mse[:, 1]
    mean = predictions.mean(axis=2, keepdims=True)
    result = Bunch(
        budget=budgets,
        ensemble_mse=mse[:, 0].mean(axis=1),
        single_mse=mse[:, 1].mean(axis=1),
        standard_error=np.std(difference, axis=1, ddof=1) / math.sqrt(n_repeats),
        ensemble_standard_error=errors[:, 0],
        single_standard_error=errors[:, 1],
        bias2=np.mean((mean - truth) ** 2, axis=rows)[:, :, 0].T,
        variance=np.mean((predictions - mean) ** 2, axis=(2, *rows)).T,
    )
    result.recommendation = _recommend(result, width, n_repeats)
    return result


def _recommend(result, width, n_repeats):
    """The answer in words, at the largest budget, if 95 % sure of it."""
    at = int(np.argmax(result.budget))
    ensemble, single = result.ensemble_mse[at], result.single_mse[at]
    difference, error = abs(ensemble - single), result.standard_error[at]
    margin = stats.t.ppf(0.975, n_repeats - 1) * error + 1e-9 * (ensemble + single)
    facts = (
        f"With {result.budget[at]} features in all, the mean squared error is "
        f"{ensemble:.5g} for {result.budget[at] // width} members of {width} and "
        f"{single:.5g} for one model: a difference of {difference:.2g} with a standard "
        f"error of {error:.2g}."
    )
    if difference <= margin:
        return f"Either, whichever is cheaper to fit. {facts}"
    return f"{'More members' if ensemble < single else 'One wider model'}. {facts}"
