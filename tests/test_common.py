"""Every public estimator meets scikit-learn's own checks by existing.

Beside its default instance, a sub-package can name further instances to check:
``INSTANCES`` in ``tests/<sub-package>/instances.py``.
"""

import os
import re
import runpy
from pathlib import Path
from unittest import SkipTest

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from skextra.utils import all_estimators

DEFAULT = [estimator() for _, estimator in all_estimators()]
EXTRA = [
    instance
    for path in sorted(Path(__file__).parent.glob("*/instances.py"))
    for instance in runpy.run_path(str(path))["INSTANCES"]
]
# scikit-learn skips its array checks where there is no such device or library.
ABSENT_HARDWARE = re.compile(r"cuda|mps|xpu|cupy|dpnp", re.IGNORECASE)


def test_array_api_checks_are_on():
    assert os.environ["SCIPY_ARRAY_API"] == "1"
    import scipy._lib._array_api as scipy_array_api

    assert scipy_array_api.SCIPY_ARRAY_API


@parametrize_with_checks(DEFAULT + EXTRA)
def test_estimator(estimator, check):
    try:
        check(estimator)
    except (SkipTest, pytest.skip.Exception) as skip:
        assert ABSENT_HARDWARE.search(str(skip)), f"skipped: {skip}"
        raise
