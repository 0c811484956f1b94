"""The LapSum, a sum of Laplace distribution functions, and its inverse."""

import numpy as np

from skextra.ranking._inputs import Lanes


def lapsum(b, x, *, alpha=1.0):
    """Return the sum of Laplace distribution functions about the values, at b.

    ``F(b) = sum_j L((b - x_j) / alpha)`` rises from 0 to n: it counts softly how many
    values lie below b [1]_.

    Parameters
    ----------
    b : float or array-like of shape (..., m)
        Places: one for all lanes, m for each or m for all.
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. Towards 0 the
        result becomes the number of values below, of which those at b count half; with
        larger values it goes to n / 2.
        ``"scale"`` is a tenth of the standard deviation of each lane (1 if it is
        constant), through which no gradient flows.

    Returns
    -------
    sums : array of shape (...), or (..., m) if b has m places, of the kind of x
        Of the dtype of `x`. Whole numbers give the default floating dtype.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array.
    ValueError
        If `x` is a scalar, is empty along its last axis, holds NaN or infinity or spans
        more than float64 can hold; if `alpha` is not from 1e-300 to 1e300 or `b` not
        finite; if shapes do not fit; or if a result does not fit in float16, where `x`
        has it.

    See Also
    --------
    lapsum_inverse : Where the sum is w.

    References
    ----------
    .. [1] Struski, Bednarczyk, Podolak and Tabor, "LapSum - One Method to Differentiate
       Them All: Ranking, Sorting and Top-k Selection", ICML 2025, section 3.

    Examples
    --------
    >>> from skextra.ranking import lapsum
    >>> lapsum([0.0, 1.0, 9.0], [1.0, 2.0, 3.0], alpha=0.5).round(3)
    array([0.078, 0.577, 3.   ])
    """
    lanes = Lanes(x)
    rows = lanes.many_each(b, "b", lambda b: (b > -np.inf) & (b < np.inf), "finite")
    value, _ = lanes.maths.lapsum(rows, lanes.rows, lanes.alpha(alpha))
    return lanes.restore(value) if np.ndim(b) else lanes.restore_each(value)


def lapsum_inverse(w, x, *, alpha=1.0):
    """Find where the sum of Laplace distribution functions about the values is w.

    The b at which ``sum_j L((b - x_j) / alpha)`` is w, in closed form between the two
    sorted values about it [1]_. Soft sorts, quantiles and thresholds are such places.

    Parameters
    ----------
    w : float or array-like of shape (..., m)
        Sums above 0 and below n: one for all lanes, m for each or m for all.
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. Towards 0 the result
        becomes a value of `x`, or the middle between two where w is whole. ``"scale"``
        is a tenth of the standard deviation of each lane (1 if it is constant), through
        which no gradient flows.

    Returns
    -------
    b : array of shape (...), or (..., m) if w has m sums, of the kind of x
        Of the dtype of `x`. Whole numbers give the default floating dtype.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array.
    ValueError
        If `x` is a scalar, is empty along its last axis, holds NaN or infinity or spans
        more than float64 can hold; if `alpha` is not from 1e-300 to 1e300 or `w` not
        above 0 and below n; if shapes do not fit; or if a result does not fit in
        float16, where `x` has it.

    See Also
    --------
    lapsum : The sum.

    References
    ----------
    .. [1] Struski, Bednarczyk, Podolak and Tabor, "LapSum - One Method to Differentiate
       Them All: Ranking, Sorting and Top-k Selection", ICML 2025, section 3.

    Examples
    --------
    >>> from skextra.ranking import lapsum, lapsum_inverse
    >>> b = lapsum_inverse(1.25, [1.0, 2.0, 4.0], alpha=0.5)
    >>> float(lapsum(b, [1.0, 2.0, 4.0], alpha=0.5).round(12))
    1.25
    """
    lanes = Lanes(x)
    accepted = f"above 0 and below the {lanes.n} values of a lane"
    rows = lanes.many_each(w, "w", lambda w: (w > 0) & (w < lanes.n), accepted)
    b = lanes.levels(rows, lanes.alpha(alpha))
    return lanes.restore(b) if np.ndim(w) else lanes.restore_each(b)
