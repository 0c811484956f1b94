"""Gradients of the soft order statistics for arrays without autograd."""

from skextra.ranking._inputs import Lanes


def soft_topk_vjp(g, x, k, *, alpha=1.0, axis=-1, largest=True, log=False):
    """Return the gradients of a loss through the weights of a soft top-k.

    The vector-Jacobian products of :func:`soft_topk`, from O(n) work beside one sort.

    Parameters
    ----------
    g : array-like of the shape of x
        Gradient of a loss by the weights, or by their logarithms.
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    k : float or array of the shape of x without its axis
        Sum of the weights, from 0 to n.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. As in :func:`soft_topk`.
        ``"scale"`` is a tenth of the standard deviation of each lane (1 if it is
        constant), through which no gradient flows.
    axis : int, default=-1
        Axis along which the values lie.
    largest : bool, default=True
        Whether the largest values get the weight, or the smallest.
    log : bool, default=False
        Whether `g` is the gradient by the logarithms of the weights.

    Returns
    -------
    grad_x : array of the shape, kind and dtype of x
        Gradient of the loss by the values.
    grad_k : array of the shape of x without its axis
        Gradient by the sum of the weights of each lane.
    grad_alpha : array of the shape of x without its axis
        Gradient by the temperature of each lane; sum it if all share one.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array or
        a torch tensor: autograd does this for tensors.
    ValueError
        If `x` is a scalar, is empty along its axis, holds NaN or infinity or spans more
        than float64 can hold; if `alpha` is not from 1e-300 to 1e300 or `k` not between
        0 and n; if shapes do not fit; or if a result does not fit in float16, where `x`
        has it.
    numpy.exceptions.AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> from skextra.ranking import soft_topk_vjp
    >>> grad_x, grad_k, grad_alpha = soft_topk_vjp([1.0, 0.0, 0.0], [3.0, 2.0, 0.0], k=1)
    >>> grad_x.round(3)
    array([ 0.162, -0.142, -0.019])
    """
    lanes = _lanes(x, axis)
    g = lanes.like_x(g, "g")
    *_, saved = lanes.maths.topk(
        lanes.rows, lanes.counts(k), lanes.alpha(alpha), largest, log
    )
    grad_x, *by_lane = lanes.maths.topk_vjp(g, None, saved)
    return lanes.restore(grad_x), *map(lanes.restore_each, by_lane)


def soft_rank_vjp(g, x, *, alpha=1.0, axis=-1, descending=False):
    """Return the gradients of a loss through soft ranks.

    The vector-Jacobian products of :func:`soft_rank`, from O(n) work beside one sort.

    Parameters
    ----------
    g : array-like of the shape of x
        Gradient of a loss by the ranks.
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. As in :func:`soft_rank`.
        ``"scale"`` is a tenth of the standard deviation of each lane (1 if it is
        constant), through which no gradient flows.
    axis : int, default=-1
        Axis along which the values lie.
    descending : bool, default=False
        Whether the largest value has rank 1.

    Returns
    -------
    grad_x : array of the shape, kind and dtype of x
        Gradient of the loss by the values.
    grad_alpha : array of the shape of x without its axis
        Gradient by the temperature of each lane; sum it if all share one.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array or
        a torch tensor: autograd does this for tensors.
    ValueError
        If `x` is a scalar, is empty along its axis, holds NaN or infinity or spans more
        than float64 can hold; if `alpha` is not from 1e-300 to 1e300; if shapes do not
        fit; or if a result does not fit in float16, where `x` has it.
    numpy.exceptions.AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> from skextra.ranking import soft_rank_vjp
    >>> grad_x, grad_alpha = soft_rank_vjp([1.0, 0.0, 0.0], [3.0, 2.0, 0.0])
    >>> grad_x.round(3)
    array([ 0.209, -0.184, -0.025])
    """
    lanes = _lanes(x, axis)
    g = lanes.like_x(g, "g")
    _, saved = lanes.maths.rank(lanes.rows, lanes.alpha(alpha))
    grad_x, grad_alpha = lanes.maths.rank_vjp(-g if descending else g, saved)
    return lanes.restore(grad_x), lanes.restore_each(grad_alpha)


def soft_sort_vjp(g, x, *, alpha=1.0, axis=-1, descending=False):
    """Return the gradients of a loss through a soft sort.

    The vector-Jacobian products of :func:`soft_sort`, from O(n) work beside one sort.

    Parameters
    ----------
    g : array-like of the shape of x
        Gradient of a loss by the sorted values.
    x : array-like of shape (..., n)
        Values: a NumPy array or what :func:`numpy.asarray` takes, a torch tensor or a
        CuPy array.
    alpha : float, array of the shape of x without its axis, or "scale", default=1.0
        Temperature, from 1e-300 to 1e300, in the units of `x`. As in :func:`soft_sort`.
        ``"scale"`` is a tenth of the standard deviation of each lane (1 if it is
        constant), through which no gradient flows.
    axis : int, default=-1
        Axis along which the values lie.
    descending : bool, default=False
        Whether the largest value comes first.

    Returns
    -------
    grad_x : array of the shape, kind and dtype of x
        Gradient of the loss by the values.
    grad_alpha : array of the shape of x without its axis
        Gradient by the temperature of each lane; sum it if all share one.

    Raises
    ------
    TypeError
        If `x` or a parameter does not hold real numbers, or if `x` is a masked array or
        a torch tensor: autograd does this for tensors.
    ValueError
        If `x` is a scalar, is empty along its axis, holds NaN or infinity or spans more
        than float64 can hold; if `alpha` is not from 1e-300 to 1e300; if shapes do not
        fit; or if a result does not fit in float16, where `x` has it.
    numpy.exceptions.AxisError
        If `x` has no such axis.

    Examples
    --------
    >>> from skextra.ranking import soft_sort_vjp
    >>> grad_x, grad_alpha = soft_sort_vjp([1.0, 0.0, 0.0], [3.0, 2.0, 0.0], alpha=0.5)
    >>> grad_x.round(3)
    array([0.002, 0.018, 0.98 ])
    """
    lanes = _lanes(x, axis)
    g = lanes.like_x(g, "g")
    g = lanes.xp.flip(g, axis=1) if descending else g
    w = lanes.spread(lanes.places() - 0.5)
    *_, saved = lanes.maths.levels(w, lanes.rows, lanes.alpha(alpha))
    _, grad_x, grad_alpha = lanes.maths.levels_vjp(g, saved)
    return lanes.restore(grad_x), lanes.restore_each(grad_alpha)


def _lanes(x, axis):
    """Return the lanes of an array of a kind that has no autograd."""
    lanes = Lanes(x, axis)
    if lanes.has_autograd:
        raise TypeError("x is a torch tensor, whose gradients autograd finds")
    return lanes
