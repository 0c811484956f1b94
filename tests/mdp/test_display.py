"""The picture of how a certified interval closes."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skextra.mdp import GainIntervalDisplay, HalpernMDPSolver
from tests.mdp import reference

matplotlib.use("Agg")


def test_best_bounds_so_far():
    """Bounds that hold stay in force, so the area never widens."""
    display = GainIntervalDisplay(np.array([[0.0, 5], [-1, 4], [1, 6], [2, 3]]))
    display.plot(step=None)
    vertices = display.area_.get_paths()[0].vertices
    for i, (low, high) in enumerate([(0, 5), (0, 4), (1, 4), (2, 3)], start=1):
        at = vertices[vertices[:, 0] == i, 1]
        assert at.min() == low and at.max() == high


def test_from_estimator():
    import matplotlib.pyplot as plt

    mdp = HalpernMDPSolver(solver="anchored").fit_mdp(*reference.riverswim())
    _, ax = plt.subplots()
    display = GainIntervalDisplay.from_estimator(mdp, ax=ax, color="red", alpha=0.2)
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert_array_equal(display.intervals, mdp.gain_history_)
    assert display.area_.get_label() == "anchored"
    assert display.area_.get_alpha() == 0.2
    assert_allclose(display.area_.get_facecolor()[0], [1, 0, 0, 0.2])
    named = GainIntervalDisplay.from_estimator(mdp, name="ours")
    assert named.area_.get_label() == "ours" and named.ax_ is not ax
    assert (named.ax_.get_xlabel(), named.ax_.get_xscale()) == ("iteration", "log")
    assert named.ax_.get_ylabel() == "gain per step"
    plt.close("all")


def test_not_fitted():
    with pytest.raises(NotFittedError):
        GainIntervalDisplay.from_estimator(HalpernMDPSolver())
