"""Soft order statistics: top-k weights, ranks, sorted values and quantiles."""

import numpy as np

from skextra.ranking._inputs import Lanes


def soft_topk(
    x,
    k,
    *,
    alpha=1.0,
    axis=-1,
    largest=True,
    log=False,
    return_threshold=False,
    check_finite=True,
):
    """Return weights from 0 to 1 that sum to k, near 1 for the k largest values.

    The weight of a value is ``L((x - t) / alpha)``, where L is the Laplace distribution
    function and the threshold t makes the weights sum to `k`. They depend smoothly on
    `x`, `k` and `alpha`, and gradients flow to those that are torch tensors. One sort,
    and O(n) work beside it [1]_.

    Parameters
    ----------
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    k : float or array of the shape of x without its axis
        Sum of the weights, from 0 to n; it need not be whole.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. Towards 0 the weights
        become 0 and 1, with larger values all go to k / n. ``"scale"`` is a tenth of
        the standard deviation of each lane (1 if it is constant), through which no
        gradient flows.
    axis : int, default=-1
        Axis along which the values lie.
    largest : bool, default=True
        Whether the largest values get the weight, or the smallest.
    log : bool, default=False
        Whether to return the logarithms of the weights, which do not underflow.
    return_threshold : bool, default=False
        Whether to return the threshold too.
    check_finite : bool, default=True
        Whether to raise if `x` holds NaN or infinity. Without, lanes that do are NaN.

    Returns
    -------
    weights : array of the shape, kind and dtype of x
        Whole numbers give the default floating dtype. All is computed in float64.
    threshold : array of the shape of x without its axis
        Only if `return_threshold`; of the dtype of `x`. Infinite for k = 0 and k = n,
        where the weights are exactly 0 and 1.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array.
    ValueError
        If `x` is a scalar, is empty along its axis, holds NaN or infinity or spans more
        than float64 can hold; if `alpha` is not from 1e-300 to 1e300 or `k` not between
        0 and n; if shapes do not fit; or if a result does not fit in float16, where `x`
        has it.
    numpy.exceptions.AxisError
        If `x` has no such axis.

    See Also
    --------
    soft_topk_vjp : Gradients for NumPy arrays.

    Notes
    -----
    Where k is whole and the gap at the threshold many alphas wide, gradients by `x` are
    near 0 and that by `k` depends on the last digits of `x`. At k = 0 and k = n, those
    by `x` and `alpha` are 0, and that of logarithms by k is infinite at k = 0, and
    where a weight is nearly too small for float64.

    References
    ----------
    .. [1] Struski, Bednarczyk, Podolak and Tabor, "LapSum - One Method to Differentiate
       Them All: Ranking, Sorting and Top-k Selection", ICML 2025, section 4.

    Examples
    --------
    >>> from skextra.ranking import soft_topk
    >>> weights = soft_topk([0.1, 2.0, 1.5, -1.0], k=2, alpha=0.3)
    >>> weights.round(2)
    array([0.05, 0.99, 0.95, 0.  ])
    >>> float(weights.sum().round(12))
    2.0
    """
    lanes = Lanes(x, axis)
    weights, threshold, _ = lanes.maths.topk(
        lanes.rows, lanes.counts(k), lanes.alpha(alpha), largest, log, check_finite
    )
    weights = lanes.restore(weights)
    return (weights, lanes.restore_each(threshold)) if return_threshold else weights


def soft_rank(x, *, alpha=1.0, axis=-1, descending=False):
    """Return ranks from 1 to n that depend smoothly on the values.

    The rank of a value is 1/2 and the sum of ``L((x_i - x_j) / alpha)`` over all
    values, itself included: it counts softly how many lie below [1]_. Ranks sum to
    n (n + 1) / 2, and equal values share their average rank, whatever alpha is.

    Parameters
    ----------
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. Towards 0 the ranks
        become those of :func:`scipy.stats.rankdata`, with larger values all go to (n +
        1) / 2. ``"scale"`` is a tenth of the standard deviation of each lane (1 if it
        is constant), through which no gradient flows.
    axis : int, default=-1
        Axis along which the values lie.
    descending : bool, default=False
        Whether the largest value has rank 1.

    Returns
    -------
    ranks : array of the shape, kind and dtype of x
        Whole numbers give the default floating dtype. All is computed in float64.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array.
    ValueError
        If `x` is a scalar, is empty along its axis, holds NaN or infinity or spans more
        than float64 can hold; if `alpha` is not from 1e-300 to 1e300; if shapes do not
        fit; or if a result does not fit in float16, where `x` has it.
    numpy.exceptions.AxisError
        If `x` has no such axis.

    See Also
    --------
    soft_rank_vjp : Gradients for NumPy arrays.

    References
    ----------
    .. [1] Struski, Bednarczyk, Podolak and Tabor, "LapSum - One Method to Differentiate
       Them All: Ranking, Sorting and Top-k Selection", ICML 2025, section 4.

    Examples
    --------
    >>> from skextra.ranking import soft_rank
    >>> soft_rank([30.0, 10.0, 20.0, 20.0], alpha=1.0).round(3)
    array([4. , 1. , 2.5, 2.5])
    >>> soft_rank([30.0, 10.0, 20.0, 20.0], alpha=10.0).round(2)
    array([3.56, 1.44, 2.5 , 2.5 ])
    """
    lanes = Lanes(x, axis)
    ranks, _ = lanes.maths.rank(lanes.rows, lanes.alpha(alpha))
    return lanes.restore(lanes.n + 1 - ranks if descending else ranks)


def soft_sort(x, *, alpha=1.0, axis=-1, descending=False):
    """Return sorted values that depend smoothly on all values.

    The i-th is where the LapSum, the sum of ``L((b - x_j) / alpha)`` over all values,
    is i - 1/2 [1]_.

    Parameters
    ----------
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. Towards 0 the result
        becomes that of :func:`numpy.sort`, with larger values it spreads. ``"scale"``
        is a tenth of the standard deviation of each lane (1 if it is constant), through
        which no gradient flows.
    axis : int, default=-1
        Axis along which the values lie.
    descending : bool, default=False
        Whether the largest value comes first.

    Returns
    -------
    values : array of the shape, kind and dtype of x
        In ascending order along `axis`, or in descending order.
        Whole numbers give the default floating dtype. All is computed in float64.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array.
    ValueError
        If `x` is a scalar, is empty along its axis, holds NaN or infinity or spans more
        than float64 can hold; if `alpha` is not from 1e-300 to 1e300; if shapes do not
        fit; or if a result does not fit in float16, where `x` has it.
    numpy.exceptions.AxisError
        If `x` has no such axis.

    See Also
    --------
    soft_quantile : Some of the sorted values.
    soft_sort_vjp : Gradients for NumPy arrays.

    Notes
    -----
    A soft sort does not keep the sum of the values, and it spreads ties: the lower half
    of n values c becomes ``c + alpha log((2 i - 1) / n)``, i = 1, 2, ..., and the upper
    half its mirror image. Values lie at most ``alpha log n`` beyond those of `x`.

    References
    ----------
    .. [1] Struski, Bednarczyk, Podolak and Tabor, "LapSum - One Method to Differentiate
       Them All: Ranking, Sorting and Top-k Selection", ICML 2025, section 4.

    Examples
    --------
    >>> from skextra.ranking import soft_sort
    >>> soft_sort([3.0, 1.0, 2.0], alpha=0.1).round(3)
    array([1., 2., 3.])
    >>> soft_sort([3.0, 1.0, 2.0], alpha=1.0).round(2)
    array([0.59, 2.  , 3.41])
    """
    lanes = Lanes(x, axis)
    values = lanes.levels(lanes.spread(lanes.places() - 0.5), lanes.alpha(alpha))
    return lanes.restore(lanes.xp.flip(values, axis=1) if descending else values)


def soft_quantile(x, q, *, alpha=1.0, axis=-1):
    """Return quantiles that depend smoothly on all values.

    The quantile q is where the LapSum, the sum of ``L((b - x_j) / alpha)`` over all n
    values, is q n [1]_: the quantile of the values, each blurred by a Laplace
    distribution.

    Parameters
    ----------
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    q : float or array-like of shape (m,)
        Probabilities, above 0 and below 1.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. Towards 0 the result
        becomes a value of `x`, or the middle between two where q n is whole; with
        larger values the blur outgrows them. ``"scale"`` is a tenth of the standard
        deviation of each lane (1 if it is constant), through which no gradient flows.
    axis : int, default=-1
        Axis along which the values lie.

    Returns
    -------
    quantiles : array of the shape of x without its axis, of its kind and dtype
        With an axis of length m before the others if `q` has one, as
        :func:`numpy.quantile`.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array.
    ValueError
        If `x` is a scalar, is empty along its axis, holds NaN or infinity or spans more
        than float64 can hold; if `alpha` is not from 1e-300 to 1e300 or `q` not between
        0 and 1; if `q` has more than one dimension; if shapes do not fit; or if a
        result does not fit in float16, where `x` has it.
    numpy.exceptions.AxisError
        If `x` has no such axis.

    See Also
    --------
    lapsum_inverse : Levels of any height.

    References
    ----------
    .. [1] Struski, Bednarczyk, Podolak and Tabor, "LapSum - One Method to Differentiate
       Them All: Ranking, Sorting and Top-k Selection", ICML 2025, section 3.

    Examples
    --------
    >>> from skextra.ranking import soft_quantile
    >>> soft_quantile([5.0, 1.0, 2.0, 3.0, 9.0], [0.25, 0.5], alpha=0.1).round(3)
    array([1.931, 3.   ])
    """
    lanes = Lanes(x, axis)
    if np.ndim(q) > 1:
        raise ValueError(f"q must have at most one dimension; got shape {np.shape(q)}")
    q = lanes.checked(q, "q", lambda q: (q > 0) & (q < 1), "above 0 and below 1")
    w = lanes.xp.reshape(lanes.as_float64(q) * lanes.n, (-1,))
    values = lanes.levels(lanes.spread(w), lanes.alpha(alpha))
    return lanes.restore(values, axis=0) if np.ndim(q) else lanes.restore_each(values)
