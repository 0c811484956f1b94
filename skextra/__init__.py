"""Methods from recent machine-learning papers as scikit-learn estimators.

One method is one sub-package, imported when it is first used::

    import skextra

    skextra.ensemble.RFEnsembleRegressor()
"""

import pkgutil
from importlib import import_module

__version__ = "0.1.0"

# The sub-packages are the folders on disk: a new one needs no edit here.
__all__ = sorted(
    module.name for module in pkgutil.iter_modules(__path__) if module.ispkg
)


def __getattr__(name):
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
