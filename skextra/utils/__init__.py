"""What the sub-packages share."""

from skextra.utils._base import DocLinkMixin, forget
from skextra.utils._blocks import row_blocks, run_parallel
from skextra.utils._discovery import all_estimators
from skextra.utils._threads import in_threads
from skextra.utils._torch import require_torch

__all__ = [
    "DocLinkMixin",
    "all_estimators",
    "forget",
    "in_threads",
    "require_torch",
    "row_blocks",
    "run_parallel",
]
