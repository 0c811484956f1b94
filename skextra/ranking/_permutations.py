"""Soft permutations and their loss, for arrays of any kind."""

from skextra.ranking._columns import log_of, matrix
from skextra.ranking._inputs import Lanes

REDUCTIONS = ("mean", "sum", "none")


def soft_permutation(x, *, alpha=1.0, axis=-1):
    """Return a doubly stochastic matrix: how much each value is at each position.

    Entry (i, j) is the share of the Laplace distribution about value i that lies between
    the levels j and j + 1 of the LapSum [1]_. Rows and columns sum to 1, whatever alpha
    is. Takes n^2 memory; :func:`soft_permutation_loss` does not.

    Parameters
    ----------
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. Towards 0 the result
        becomes the permutation that sorts `x`, with larger values all entries go to 1 /
        n. ``"scale"`` is a tenth of the standard deviation of each lane (1 if it is
        constant), through which no gradient flows.
    axis : int, default=-1
        Axis along which the values lie.

    Returns
    -------
    P : array of shape (..., n, n), of the kind and dtype of x
        Values of `x` by positions in ascending order; the other axes of `x` come first.
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
    soft_permutation_loss : How far a permutation is from a given one.

    References
    ----------
    .. [1] Struski, Bednarczyk, Podolak and Tabor, "LapSum - One Method to Differentiate
       Them All: Ranking, Sorting and Top-k Selection", ICML 2025, section 4.

    Examples
    --------
    >>> from skextra.ranking import soft_permutation
    >>> soft_permutation([3.0, 1.0, 2.0], alpha=0.2).round(2)
    array([[0.  , 0.04, 0.96],
           [0.96, 0.04, 0.  ],
           [0.04, 0.92, 0.04]])
    """
    lanes = Lanes(x, axis)
    alpha = lanes.alpha(alpha)
    between = lanes.spread(lanes.places()[:-1])
    anchor, rest, _ = lanes.maths.levels(between, lanes.rows, alpha)
    P = matrix(lanes.xp, lanes.rows, anchor, rest, alpha)
    return lanes.restore(P, axis=-1)


def soft_permutation_loss(x, target, *, alpha=1.0, axis=-1, reduction="mean"):
    """Return the negative log-likelihood of an order under a soft permutation.

    ``-log P[i, target[i]]`` of the matrix P of :func:`soft_permutation`, computed from
    two levels a value in O(n log n) time and O(n) memory, without underflow.

    Parameters
    ----------
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    target : array-like of int, of the shape of x
        Position of each value in the right ascending order, from 0 to n - 1.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. As in
        :func:`soft_permutation`. ``"scale"`` is a tenth of the standard deviation of
        each lane (1 if it is constant), through which no gradient flows.
    axis : int, default=-1
        Axis along which the values lie.
    reduction : {"mean", "sum", "none"}, default="mean"
        Whether to average over all values, to add them up, or neither.

    Returns
    -------
    loss : scalar, or array of the shape of x, of its kind and dtype
        At least 0.

    Raises
    ------
    TypeError
        If `x` or `alpha` does not hold real numbers or `target` no whole ones, or if `x`
        is a masked array.
    ValueError
        If `x` is a scalar, is empty along its axis, holds NaN or infinity or spans more
        than float64 can hold; if `alpha` is not from 1e-300 to 1e300; if `target` does
        not hold a permutation of 0 .. n - 1 along the axis; if there is nothing to take
        the mean of; if `reduction` is not one of those listed; if shapes do not fit; or
        if a result does not fit in float16, where `x` has it.
    numpy.exceptions.AxisError
        If `x` has no such axis.

    See Also
    --------
    soft_permutation : The matrix.

    Examples
    --------
    >>> from skextra.ranking import soft_permutation_loss
    >>> float(soft_permutation_loss([3.0, 1.0, 2.0], [2, 0, 1], alpha=0.2).round(3))
    0.056
    >>> float(soft_permutation_loss([3.0, 1.0, 2.0], [0, 1, 2], alpha=0.2).round(1))
    4.9
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {REDUCTIONS}; got {reduction!r}")
    lanes = Lanes(x, axis)
    xp, alpha = lanes.xp, lanes.alpha(alpha)
    target = lanes.permutations(target)
    between = lanes.spread(lanes.places()[:-1])
    anchor, rest, _ = lanes.maths.levels(between, lanes.rows, alpha)
    loss = -log_of(xp, lanes.rows, anchor, rest, alpha, target)
    if reduction == "none":
        return lanes.restore(loss)
    if reduction == "mean" and loss.shape[0] == 0:
        raise ValueError(
            f"x must hold a value to take the mean of; got shape {lanes.shape}"
        )
    loss = xp.mean(loss) if reduction == "mean" else xp.sum(loss)
    return lanes.narrow(loss)
