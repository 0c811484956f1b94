"""Artificial data for clustering and for models of densities."""

from numbers import Integral, Real

import numpy as np
from sklearn.datasets import make_moons
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_params


@validate_params(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_clusterings": [Interval(Integral, 1, None, closed="left")],
        "n_classes": [Interval(Integral, 1, None, closed="left")],
        "k_range": ["array-like", None],
        "noise": [Interval(Real, 0, 1, closed="both"), "array-like"],
        "missing": [Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_label_ensemble(
    n_samples=1000,
    n_clusterings=20,
    *,
    n_classes=10,
    k_range=None,
    noise=0.2,
    missing=0.0,
    random_state=None,
):
    """Generate label columns of many clusterings of the same samples.

    The samples of a class lie on a circle. A clustering cuts each circle into arcs of
    equal length, from a place drawn at random, and each arc is a cluster; then some
    labels are replaced by that of any cluster, and some go missing.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.

    n_clusterings : int, default=20
        Number of clusterings, the columns.

    n_classes : int, default=10
        Number of classes, equally likely.

    k_range : tuple (low, high) of int, default=None
        Least and most clusters of a clustering, at least `n_classes`. None stands for
        ``(n_classes, 10 * n_classes)``.

    noise : float or array-like of shape (n_clusterings,), default=0.2
        Share of the labels that are replaced at random, in all or in each clustering.

    missing : float, default=0.0
        Share of the labels that go missing, below 1; every sample and every
        clustering keeps one at least.

    random_state : int, RandomState instance or None, default=None
        Draws the data.

    Returns
    -------
    labels : ndarray of shape (n_samples, n_clusterings)
        Labels from 0, -1 where missing.

    y : ndarray of shape (n_samples,)
        Classes.

    Raises
    ------
    ValueError
        If a parameter is not as documented.

    Examples
    --------
    >>> from skextra.datasets import make_label_ensemble
    >>> labels, y = make_label_ensemble(100, 5, n_classes=3, random_state=0)
    >>> labels.shape, y.shape
    ((100, 5), (100,))
    """
    if k_range is None:
        k_range = n_classes, 10 * n_classes
    k_range = tuple(k_range)
    whole = len(k_range) == 2 and all(isinstance(k, Integral) for k in k_range)
    if not whole or not n_classes <= k_range[0] <= k_range[1]:
        raise ValueError(
            "k_range must be two integers, n_classes <= low <= high, with n_classes="
            f"{n_classes}; got {k_range!r}."
        )
    noise = np.asarray(noise, dtype=float)
    if (
        noise.shape not in [(), (n_clusterings,)]
        or not ((noise >= 0) & (noise <= 1)).all()
    ):
        raise ValueError(
            f"noise must be a share from 0 to 1, or {n_clusterings} of them, one for "
            f"each clustering; got {noise!r}."
        )
    rng = check_random_state(random_state)
    y = rng.randint(n_classes, size=n_samples)
    place = rng.uniform(size=n_samples)
    labels = np.empty((n_samples, n_clusterings), dtype=np.int64)
    for t, share in enumerate(np.broadcast_to(noise, n_clusterings)):
        k = rng.randint(k_range[0], k_range[1] + 1)
        arcs = np.full(n_classes, k // n_classes)
        arcs[rng.permutation(n_classes)[: k % n_classes]] += 1
        turned = (place + rng.uniform(size=n_classes)[y]) % 1
        labels[:, t] = (np.cumsum(arcs) - arcs)[y] + (turned * arcs[y]).astype(int)
        noisy = rng.uniform(size=n_samples) < share
        labels[noisy, t] = rng.randint(k, size=noisy.sum())
    lost = rng.uniform(size=labels.shape) < missing
    lost[np.arange(n_samples), rng.randint(n_clusterings, size=n_samples)] = False
    lost[rng.randint(n_samples, size=n_clusterings), np.arange(n_clusterings)] = False
    labels[lost] = -1
    return labels, y


@validate_params(
    {
        "n_samples": [Interval(Integral, 7, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_shapes(n_samples=800, *, noise=0.1, random_state=None):
    """Generate seven groups of points in the plane, of unlike size and shape.

    A ring around a disc, two moons, a bar, and a large disc that nearly touches a small
    one: k-means cuts some of them and joins others.

    Parameters
    ----------
    n_samples : int, default=800
        Number of points, at least 7.

    noise : float, default=0.1
        Standard deviation of the noise added to the coordinates.

    random_state : int, RandomState instance or None, default=None
        Draws the points.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points.

    y : ndarray of shape (n_samples,)
        Groups, from 0 to 6.

    Raises
    ------
    ValueError
        If a parameter is not as documented.

    Examples
    --------
    >>> from skextra.datasets import make_shapes
    >>> X, y = make_shapes(random_state=0)
    >>> X.shape, len(set(y.tolist()))
    ((800, 2), 7)
    """
    rng = check_random_state(random_state)
    shares = np.array([0.22, 0.1, 0.13, 0.13, 0.12, 0.22, 0.08])
    sizes = 1 + np.floor(shares * (n_samples - 7)).astype(int)
    sizes[0] += n_samples - sizes.sum()

    def arc(size, radius, start=0.0, stop=2 * np.pi):
        angle = rng.uniform(start, stop, size=size)
        return radius * np.column_stack([np.cos(angle), np.sin(angle)])

    def disc(size, radius):
        return np.sqrt(rng.uniform(size=(size, 1))) * arc(size, radius)

    groups = [
        arc(sizes[0], 3.0),
        disc(sizes[1], 1.0),
        arc(sizes[2], 2.0, 0, np.pi) + [7, -1],
        arc(sizes[3], 2.0, np.pi, 2 * np.pi) + [9, 0],
        rng.uniform([-3, 5], [5, 5.8], size=(sizes[4], 2)),
        disc(sizes[5], 1.6) + [8.5, 5.5],
        disc(sizes[6], 0.7) + [11.3, 5.5],
    ]
    y = np.repeat(np.arange(7), sizes)
    X = np.concatenate(groups) + noise * rng.normal(size=(n_samples, 2))
    order = rng.permutation(n_samples)
    return X[order], y[order]


@validate_params(
    {
        "kind": [StrOptions({"ring", "moons", "checkerboard"})],
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_plane_density(kind="ring", n_samples=2000, *, random_state=None):
    """Draw points of the plane from a density that is hard to learn.

    Parameters
    ----------
    kind : {"ring", "moons", "checkerboard"}, default="ring"
        "ring": eight normal distributions of standard deviation 0.1 around a circle of
        radius 2. "moons": those of :func:`sklearn.datasets.make_moons` with noise 0.05.
        "checkerboard": even on every other square of a board of four by four squares of
        side 1, around the origin.

    n_samples : int, default=2000
        Number of points.

    random_state : int, RandomState instance or None, default=None
        Draws the points.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Points.

    Raises
    ------
    ValueError
        If a parameter is not as documented.

    Examples
    --------
    >>> from skextra.datasets import make_plane_density
    >>> make_plane_density("checkerboard", 500, random_state=0).shape
    (500, 2)
    """
    rng = check_random_state(random_state)
    if kind == "moons":
        return make_moons(n_samples, noise=0.05, random_state=rng)[0]
    if kind == "ring":
        angle = np.pi / 4 * rng.randint(8, size=n_samples)
        centers = 2 * np.column_stack([np.cos(angle), np.sin(angle)])
        return centers + 0.1 * rng.normal(size=(n_samples, 2))
    column, half = rng.randint(4, size=n_samples), rng.randint(2, size=n_samples)
    square = np.column_stack([column, 2 * half + column % 2])
    return square + rng.uniform(size=(n_samples, 2)) - 2
