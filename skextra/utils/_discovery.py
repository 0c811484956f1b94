"""Find what the package offers."""

import inspect
from importlib import import_module

from sklearn.base import BaseEstimator

import skextra


def all_estimators():
    """List the public estimators of all sub-packages.

    Returns
    -------
    estimators : list of (str, type) tuples
        Name and class of every estimator in the ``__all__`` of a sub-package,
        sorted by name.

    Examples
    --------
    >>> from skextra.utils import all_estimators
    >>> isinstance(all_estimators(), list)
    True
    """
    modules = [import_module(f"skextra.{name}") for name in skextra.__all__]
    # What a door imports only when asked, since it needs torch, is no estimator.
    public = [
        (name, vars(module)[name])
        for module in modules
        for name in module.__all__
        if name in vars(module)
    ]
    return sorted(
        (name, item)
        for name, item in public
        if inspect.isclass(item)
        and issubclass(item, BaseEstimator)
        and not inspect.isabstract(item)
    )
