"""What the sub-packages share."""

from skextra.utils._base import DocLinkMixin, forget
from skextra.utils._blocks import row_blocks, run_parallel
from skextra.utils._discovery import all_estimators

__all__ = ["DocLinkMixin", "all_estimators", "forget", "row_blocks", "run_parallel"]
