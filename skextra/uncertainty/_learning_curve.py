"""How much uncertainty more data would remove, by fits to growing data."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import Bunch, _safe_indexing, check_random_state, indexable
from sklearn.utils._param_validation import HasMethods, Interval, validate_params
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import column_or_1d

from skextra.uncertainty._functions import (
    predictive_uncertainty,
    uncertainty_decomposition,
)
from skextra.uncertainty._loss_uncertainty_regressor import LossUncertaintyRegressor
from skextra.uncertainty._losses import BregmanLoss, PinballLoss
from skextra.uncertainty._members import member_predictions
from skextra.uncertainty._mixture_functions import mixture_uncertainty
from skextra.uncertainty._power_law import fit_power_laws
from skextra.uncertainty._queries import QueryMixin
from skextra.uncertainty._scorer import OF_CLASSES, OF_NUMBERS, normal_of, row_losses
from skextra.utils import run_parallel

N_SIZES = 8
FEWEST = 3  # sizes that determine a power law


@validate_params(
    {
        "estimator": [HasMethods(["fit", "predict", "get_params"])],
        "loss": [str, PinballLoss, BregmanLoss, None],
        "cost_matrix": ["array-like", None],
        "train_sizes": ["array-like", None],
        "n_repeats": [Interval(Integral, 2, None, closed="left")],
        "test_size": [Interval(Real, 0, 1, closed="neither")],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "n_bootstrap": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=False,
)
def learning_curve_reducible(
    estimator,
    X,
    y,
    *,
    loss=None,
    cost_matrix=None,
    train_sizes=None,
    n_repeats=10,
    test_size=0.25,
    confidence=0.95,
    n_bootstrap=500,
    n_jobs=None,
    random_state=None,
):
    """Estimate how much uncertainty more data of the same kind would remove.

    Clones are fitted to growing parts of the data. On rows held out, the mean
    uncertainty of their predictions and the mean loss of what they decide are two
    curves of the number n of rows. Each gets a power law ``c + a n^-b``, whose limit c
    is the irreducible part. This asks the learner itself, where the decomposition by
    members asks only its beliefs.

    Parameters
    ----------
    estimator : classifier with `predict_proba`, or regressor
        What to fit. A :class:`LossUncertaintyRegressor`, or a regressor with
        ``predict(X, return_std=True)``, whose outcomes are taken for normal.

    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows.

    y : array-like of shape (n_samples,)
        What came.

    loss : str or loss object, default=None
        As in :func:`make_loss_scorer`; by default that of a
        :class:`LossUncertaintyClassifier` or :class:`LossUncertaintyRegressor`, with its
        costs, "log_loss" for other classifiers and "squared_error" for other regressors.

    cost_matrix : array-like of shape (n_decisions, n_classes), default=None
        Costs of decisions if `loss` is "cost", with columns in the sorted order of the
        classes.

    train_sizes : array-like of shape (n_sizes,), default=None
        Numbers of rows to fit to, or, of floats, shares of the rows that are not held
        out; three different ones at least. By default eight, in geometric progression
        from the larger of 20 rows and a twentieth to all.

    n_repeats : int, default=10
        Number of random splits.

    test_size : float, default=0.25
        Share of the rows that are held out.

    confidence : float, default=0.95
        Level of the intervals.

    n_bootstrap : int, default=500
        Number of resamples, of the repeats and of the sizes, for the intervals.

    n_jobs : int, default=None
        Number of fits that run at once.

    random_state : int, RandomState instance or None, default=None
        Randomness of splits and resamples.

    Returns
    -------
    curves : :class:`~sklearn.utils.Bunch`
        `train_sizes`, ndarray of shape (n_sizes,); `model_reducible`, the mean
        reducible part by members at the largest size, a float, or None if the estimator
        has no members that are known; and `uncertainty` and `score`, each a Bunch of
        `per_repeat`, ndarray of shape (`n_repeats`, n_sizes); `total`, their mean at the
        largest size; `irreducible`, the limit; `reducible`, the difference; `interval`,
        ndarray of shape (2,) for the last; `coef`, ndarray of shape (3,), the a, b and c;
        and `coef_bootstrap`, ndarray of shape (`n_bootstrap`, 3), those of the
        resamples: what to expect of n rows, and how surely, is ``c + a * n**-b``.

    Raises
    ------
    ValueError
        If a parameter or the data are not as documented.

    TypeError
        If the estimator does not give the distribution that is needed.

    Notes
    -----
    The limit is an extrapolation: it holds as far as the power law does, with b between
    0.05 and 2. Look at the curve: where the law misses its last points, do not trust the
    limit. Sizes are resampled together with repeats, so that such a law also varies
    more, but repeats share rows, and the intervals are approximate and rather too short.

    The reducible part of `uncertainty` may be negative: learners can grow less sure with
    more data. For losses that cannot be negative, the limit is not; where a curve shows
    no sign of a limit, that is 0, which says that the end is not in sight.

    The log loss of a class to which a classifier gives no probability is that of the
    machine epsilon, 36: a few such rows make the score of small forests jump. "log_loss"
    and "crps" of a regressor score the normal distribution of its mean and standard
    deviation, also where its uncertainty is that of a mixture.

    In each subset of a classifier's data, the first rows are one of each class.

    References
    ----------
    .. [1] F. Bickford Smith, J. Kossen, E. Trollope, M. van der Wilk, A. Foster and
       T. Rainforth, "Rethinking Aleatoric and Epistemic Uncertainty", ICML 2025,
       :arxiv:`2412.20892`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skextra.uncertainty import learning_curve_reducible
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> curves = learning_curve_reducible(
    ...     GaussianNB(), X, y, loss="brier", random_state=0
    ... )
    >>> bool(0 <= curves.score.irreducible <= curves.score.total)
    True
    """
    X, y = indexable(X, y)
    y = column_or_1d(y, warn=True)
    if loss is None and isinstance(estimator, QueryMixin):
        loss, cost_matrix = estimator.loss, getattr(estimator, "cost_matrix", None)
    loss = _checked_loss(estimator, loss, cost_matrix)
    if cost_matrix is not None:
        cost_matrix = np.asarray(cost_matrix, dtype=float)
    if isinstance(estimator, LossUncertaintyRegressor):
        estimator = clone(estimator).set_params(loss=loss)
    rng = check_random_state(random_state)
    splits = _splits(estimator, y, n_repeats, test_size, rng)
    sizes = _checked_sizes(train_sizes, len(splits[0][0]), estimator, y)

    judge = partial(_judge, estimator, X, y, loss, cost_matrix)
    tasks = (
        delayed(judge)(train[:size], test, size == sizes[-1])
        for train, test in splits
        for size in sizes
    )
    results = list(run_parallel(tasks, n_jobs))
    shape = n_repeats, len(sizes)
    uncertainty, score, model = zip(*results, strict=True)
    lower = 0.0 if cost_matrix is None else cost_matrix.min()
    if loss == "log_loss" and is_regressor(estimator):
        lower = -np.inf
    summary = partial(_summary, sizes, lower, confidence, n_bootstrap, rng)
    model = [value for value in model if value is not None]
    return Bunch(
        train_sizes=sizes,
        uncertainty=summary(np.reshape(uncertainty, shape)),
        score=summary(np.reshape(score, shape)),
        model_reducible=float(np.mean(model)) if model else None,
    )


def _checked_loss(estimator, loss, cost_matrix):
    """Return the loss, if it goes with the estimator."""
    if is_classifier(estimator):
        default, known = "log_loss", loss is None or loss in OF_CLASSES
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                "a classifier must have predict_proba; "
                f"{type(estimator).__name__} has none."
            )
    elif is_regressor(estimator):
        known = isinstance(loss, PinballLoss | BregmanLoss)
        default, known = "squared_error", known or loss is None or loss in OF_NUMBERS
    else:
        raise TypeError(
            "estimator must be a classifier or a regressor; got "
            f"{type(estimator).__name__}."
        )
    if not known:
        raise ValueError(
            f"loss must be one of {OF_CLASSES} for classifiers, and one of {OF_NUMBERS} "
            f"or a loss object for regressors; got {loss!r}."
        )
    loss = default if loss is None else loss
    if (cost_matrix is not None) != (loss == "cost"):
        raise ValueError(
            "cost_matrix must be given with loss='cost', and with no other; got "
            f"loss={loss!r} and cost_matrix={cost_matrix!r}."
        )
    return loss


def _splits(estimator, y, n_repeats, test_size, rng):
    """Return the rows to fit to, in random order, and those held out, per repeat."""
    rows = np.zeros(len(y))
    if not is_classifier(estimator):
        splitter = ShuffleSplit(n_repeats, test_size=test_size, random_state=rng)
        return list(splitter.split(rows))
    check_classification_targets(y)
    splitter = StratifiedShuffleSplit(n_repeats, test_size=test_size, random_state=rng)
    splits = []
    for train, test in splitter.split(rows, y):
        _, first = np.unique(y[train], return_index=True)
        rest = np.delete(train, first)
        splits.append((np.concatenate([train[first], rest]), test))
    return splits


def _checked_sizes(train_sizes, n_train, estimator, y):
    """Return the sizes as ascending integers."""
    fewest = len(np.unique(y)) if is_classifier(estimator) else 2
    if train_sizes is None:
        start = min(n_train, max(20, n_train / 20, fewest))
        sizes = np.geomspace(start, n_train, N_SIZES).round()
    else:
        sizes = np.asarray(train_sizes)
        if sizes.dtype.kind == "f":
            sizes = (sizes * n_train).round()
        elif sizes.dtype.kind not in "iu":
            raise ValueError(f"train_sizes must be numbers; got {train_sizes!r}.")
    sizes = np.unique(sizes)
    if len(sizes) < FEWEST or not (fewest <= sizes[0] and sizes[-1] <= n_train):
        raise ValueError(
            f"train_sizes must have {FEWEST} different sizes at least, integers from "
            f"{fewest} to {n_train} or shares of {n_train} rows; got "
            f"{train_sizes!r}, which stands for {sizes.tolist()}."
        )
    return sizes.astype(int)


def _judge(estimator, X, y, loss, cost_matrix, train, test, is_last):
    """Return mean uncertainty, loss, and reducible part, of a clone fitted to rows."""
    model = clone(estimator).fit(_safe_indexing(X, train), y[train])
    X_test = _safe_indexing(X, test)
    losses = row_losses(model, X_test, y[test], loss, cost_matrix)
    uncertainty = _uncertainty(model, X_test, loss, cost_matrix).mean()
    reducible = _reducible(model, X_test, loss, cost_matrix) if is_last else None
    return uncertainty, losses.mean(), reducible


def _uncertainty(model, X, loss, cost_matrix):
    """Return the uncertainty of each row."""
    if is_classifier(model):
        p = model.predict_proba(X)
        return predictive_uncertainty(p, loss, cost_matrix=cost_matrix)
    if isinstance(model, LossUncertaintyRegressor):
        return model.uncertainty(X)
    mean, std = normal_of(model, X)
    return mixture_uncertainty(mean[:, None], std[:, None] ** 2, loss)


def _reducible(model, X, loss, cost_matrix):
    """Return the mean reducible part by members, or None if there are none."""
    if isinstance(model, LossUncertaintyRegressor):
        return model.decompose(X).reducible.mean()
    if not is_classifier(model):
        return None  # how far outcomes are from a member is not known
    try:
        p, weights = member_predictions(model, X, return_weights=True)
    except TypeError:
        return None
    parts = uncertainty_decomposition(p, loss, cost_matrix=cost_matrix, weights=weights)
    return parts.reducible.mean()


def _summary(sizes, lower, confidence, n_bootstrap, rng, values):
    """Return a curve with its limit and what lies above it."""
    (coef,) = fit_power_laws(sizes, values.mean(axis=0)[None], lower)
    total = values[:, -1].mean()
    repeats = rng.randint(len(values), size=(n_bootstrap, len(values)))
    curves = values[repeats].mean(axis=1)
    picked = _picked_sizes(rng, n_bootstrap, len(sizes))
    drawn = fit_power_laws(
        sizes[picked], np.take_along_axis(curves, picked, axis=1), lower
    )
    tail = (1 - confidence) / 2
    return Bunch(
        per_repeat=values,
        total=float(total),
        irreducible=float(coef[2]),
        reducible=float(total - coef[2]),
        interval=np.quantile(curves[:, -1] - drawn[:, 2], [tail, 1 - tail]),
        coef=coef,
        coef_bootstrap=drawn,
    )


def _picked_sizes(rng, n_bootstrap, n_sizes):
    """Return resamples of the sizes: a law that does not fit then varies with them."""
    picked = rng.randint(n_sizes, size=(n_bootstrap, n_sizes))
    n_different = (np.diff(np.sort(picked, axis=1), axis=1) > 0).sum(axis=1) + 1
    picked[n_different < FEWEST] = np.arange(n_sizes)
    return picked
