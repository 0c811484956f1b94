"""Grids of noise levels, the bias that a grid costs, and the draws of its steps."""

from math import ceil, expm1, floor, inf, log, log2, pi, sin
from numbers import Integral, Real

import numpy as np
from scipy.special import erf, expit
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

KINDS = ("decay", "uniform", "vp", "geometric")
PAIR_MEAN, PAIR_STD = -1.1, 2.0  # of the log levels that a consistency function sees
FEWEST_STEPS, MOST_STEPS = 10, 1280  # of doubling grids (improved consistency training)

_POSITIVE = [Interval(Real, 0, None, closed="neither")]
_GRID_CONSTRAINTS = {
    "kind": [StrOptions(set(KINDS))],
    "rho": [Interval(Real, 0, None, closed="right")],  # with infinity
    "sigma_min": _POSITIVE,
    "sigma_max": _POSITIVE,
}


def require_range(sigma_min, sigma_max):
    """Raise a ValueError unless the least noise is below the most."""
    if not sigma_min < sigma_max < inf:
        raise ValueError(
            "sigma_min must be below sigma_max, which must be finite; got "
            f"sigma_min={sigma_min} and sigma_max={sigma_max}."
        )


@validate_params(
    {
        "n_discretization": [Interval(Integral, 2, None, closed="left")],
        **_GRID_CONSTRAINTS,
    },
    prefer_skip_nested_validation=True,
)
def consistency_schedule(
    n_discretization, kind="decay", *, rho=7.0, sigma_min=0.002, sigma_max=80.0
):
    r"""Divide the range of noise levels into steps.

    With :math:`\epsilon` and :math:`T` for `sigma_min` and `sigma_max`, and `K` for
    `n_discretization`, the level `i` is

    - "decay": :math:`(\epsilon^{1/\rho} + \frac iK (T^{1/\rho} -
      \epsilon^{1/\rho}))^\rho`, whose steps shrink toward the data;
    - "uniform": the same with :math:`\rho = 1`;
    - "geometric": :math:`\epsilon (T / \epsilon)^{i/K}`, its limit for
      :math:`\rho \to \infty`;
    - "vp": :math:`\sqrt{e^{2s} - 1}` for equal steps of :math:`s`, the time of the
      variance-preserving process.

    Parameters
    ----------
    n_discretization : int
        Number of steps, at least 2.

    kind : {"decay", "uniform", "vp", "geometric"}, default="decay"
        How the steps are spaced.

    rho : float, default=7.0
        Decay of the steps; for "decay" only.

    sigma_min : float, default=0.002
        Least noise, at which samples count as data.

    sigma_max : float, default=80.0
        Most noise, from which samples start.

    Returns
    -------
    levels : ndarray of shape (n_discretization + 1,)
        Standard deviations of the noise, increasing, both ends exact.

    Raises
    ------
    ValueError
        If a parameter is out of range, or `sigma_min` is not below `sigma_max`.

    References
    ----------
    .. [1] T. Karras, M. Aittala, T. Aila and S. Laine, "Elucidating the Design Space of
       Diffusion-Based Generative Models", NeurIPS 2022, equation 5,
       :arxiv:`2206.00364`.
    .. [2] R. Yang, B. Jiang, C. Chen and S. Li, "Improved Discretization Complexity
       Analysis of Consistency Models: Variance Exploding Forward Process and Decay
       Discretization Scheme", ICML 2025, PMLR 267:70756-70775.

    Examples
    --------
    >>> from skextra.generative import consistency_schedule
    >>> consistency_schedule(4).round(3).tolist()
    [0.002, 0.17, 2.515, 17.528, 80.0]
    >>> consistency_schedule(2, "uniform").round(3).tolist()
    [0.002, 40.001, 80.0]
    """
    require_range(sigma_min, sigma_max)
    return grid(n_discretization, kind, rho, sigma_min, sigma_max)


@validate_params(
    {"tol": _POSITIVE, "scale": _POSITIVE, **_GRID_CONSTRAINTS},
    prefer_skip_nested_validation=True,
)
def required_discretization(
    tol=0.01, scale=0.5, kind="decay", *, rho=7.0, sigma_min=0.002, sigma_max=80.0
):
    r"""Return the number of steps for which the bias of a model is below a tolerance.

    For data :math:`N(0, s^2)` the fixed point of consistency training with the squared
    loss, and of distillation by Euler steps, is a linear function. The standard
    deviation of its samples is too small, in leading order and relative to the right
    one by :math:`C / K` with

    .. math:: C = \frac12 \int_\epsilon^T \frac{d\sigma}{du}
        \frac{s^2}{(s^2 + \sigma^2)^2} \, d\sigma

    where :math:`\sigma(u)`, :math:`0 \le u \le 1`, draws the grid. In closed form,
    :math:`C = \frac\rho4 [(T/s)^{1/\rho} - (\epsilon/s)^{1/\rho}] \kappa` with
    :math:`\kappa = \frac{\pi}{2\rho} / \sin \frac{\pi}{2\rho}` for "decay" with
    :math:`\rho \ge 1`, up to terms that vanish with :math:`\epsilon / s` and
    :math:`s / T`; and :math:`\frac14 \ln(T / \epsilon)` for "geometric".

    Parameters
    ----------
    tol : float, default=0.01
        Relative error of the standard deviation that is allowed.

    scale : float, default=0.5
        Smallest standard deviation that must come out right.

    kind : {"decay", "uniform", "vp", "geometric"}, default="decay"
        How the steps are spaced, see :func:`consistency_schedule`.

    rho : float, default=7.0
        Decay of the steps, at least 1; for "decay" only.

    sigma_min : float, default=0.002
        Least noise.

    sigma_max : float, default=80.0
        Most noise.

    Returns
    -------
    n_discretization : int
        Number of steps, at least 2.

    Raises
    ------
    ValueError
        If a parameter is out of range, or `sigma_min` is not below `sigma_max`.

    See Also
    --------
    consistency_schedule : The grids.

    Examples
    --------
    >>> from skextra.generative import required_discretization
    >>> [required_discretization(0.01, s) for s in (0.5, 0.1)]
    [285, 358]
    >>> required_discretization(0.01, 0.1, "uniform")
    31416
    """
    require_range(sigma_min, sigma_max)
    if kind == "decay" and rho < 1:
        raise ValueError(
            f"rho must be at least 1 for a bias in closed form; got {rho}."
        )
    try:
        n_steps = bias_coefficient(scale, kind, rho, sigma_min, sigma_max) / tol
        return max(2, ceil(n_steps))
    except (OverflowError, ValueError, ZeroDivisionError) as error:
        raise ValueError(
            f"tol={tol} and scale={scale} are beyond what doubles can hold."
        ) from error


def grid(n_steps, kind, rho, low, high):
    """Return the ``n_steps + 1`` levels of a grid."""
    u = np.linspace(0, 1, n_steps + 1)
    if kind == "geometric" or rho == inf and kind == "decay":
        levels = low * (high / low) ** u
    elif kind == "vp":
        first, last = np.log1p(low**2), np.log1p(high**2)  # twice the time
        levels = np.sqrt(np.expm1(first + u * (last - first)))
    else:
        # That is (low^(1/rho) + u (high^(1/rho) - low^(1/rho)))^rho, for any rho.
        rho = rho if kind == "decay" else 1.0
        with np.errstate(divide="ignore"):
            shrunk = np.log1p((1 - u) * np.expm1(-log(high / low) / rho))
            levels = high * np.exp(rho * shrunk)
    levels[[0, -1]] = low, high  # exact, for the boundary condition to hold
    if not np.all(np.diff(levels) > 0):
        raise ValueError(
            f"sigma_min={low}, sigma_max={high}, rho={rho} and {n_steps} steps give "
            "levels that doubles cannot tell apart: take fewer steps or a wider range."
        )
    return levels


def bias_coefficient(scale, kind, rho, low, high):
    """Return C: for K steps the standard deviation comes out smaller by about C / K."""
    if kind == "geometric" or rho == inf and kind == "decay":
        return log(high / low) / 4
    if kind == "vp":
        # By partial fractions, of the integral over the squares of the levels.
        low, high, square = low**2, high**2, scale**2
        part = [
            log(w / (square + w)) / square - (square - 1) / (square + w)
            for w in (low, high)
        ]
        return (part[1] - part[0]) * log((1 + high) / (1 + low)) / 8
    rho = rho if kind == "decay" else 1.0
    angle = pi / (2 * rho)
    reach = (low / scale) ** (1 / rho) * expm1(log(high / low) / rho)
    return rho * reach * angle / sin(angle) / 4


def rounded_up(n_steps):
    """Return the next 10, 20, 40, ..., 1280."""
    doublings = max(0, ceil(log2(n_steps / FEWEST_STEPS)))
    return min(FEWEST_STEPS * 2**doublings, MOST_STEPS)


def doubling_steps(n_iter, first, last):
    """Return the numbers of steps of the grids, and the iteration at which each begins.

    The number doubles at equal intervals until it is `last` (Song and Dhariwal 2024,
    section 3.4).
    """
    n_grids = floor(log2(last / first)) + 1
    interval = max(1, n_iter // n_grids)
    # A remainder of the division goes on doubling.
    doublings = range((n_iter - 1) // interval + 1)
    steps = list(dict.fromkeys(min(first * 2**k, last) for k in doublings))
    return steps, [interval * k for k in range(len(steps))]


def lognormal_pmf(levels):
    """Return the probabilities of the steps: of a lognormal level to be within each."""
    cdf = erf((np.log(levels) - PAIR_MEAN) / (np.sqrt(2) * PAIR_STD))
    pmf = np.diff(cdf)
    return pmf / pmf.sum()


def tuning_ratio(t, doublings):
    """Return how much of a level one step of tuning takes (Geng et al. 2025)."""
    return (1 + 8 * expit(-t)) / 2.0**doublings


def tuning_chain(doublings, low, high):
    """Return the levels that steps of tuning pass on the way down, increasing."""
    levels = [high]
    while levels[-1] > low:
        t = levels[-1]
        levels.append(max(low, t * (1 - tuning_ratio(t, doublings))))
    return np.array(levels[::-1])


def tuning_doublings(n_steps, low, high):
    """Return the least number of doublings after which a chain has `n_steps` steps."""
    doublings = 1
    while len(tuning_chain(doublings, low, high)) <= n_steps:
        doublings += 1
    return doublings
