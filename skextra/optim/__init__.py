"""Optimizers of torch modules, one without state, and groups of parameters for them."""

from skextra.optim._groups import swan_param_groups
from skextra.optim._registry import make_optimizer
from skextra.utils import require_torch

__all__ = ["SWAN", "make_optimizer", "swan_param_groups"]


def __getattr__(name):
    """Import SWAN when it is asked for: its base class needs torch."""
    if name != "SWAN":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torch(name, ("torch",))
    from skextra.optim._swan import SWAN

    return SWAN


def __dir__():
    """List SWAN too."""
    return sorted({*globals(), *__all__})
