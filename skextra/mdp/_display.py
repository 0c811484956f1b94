"""A picture of how a certified interval closes."""

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted


class GainIntervalDisplay:
    """How the certified interval of the best gain closes, over the iterations.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    intervals : ndarray of shape (n_iter, 2)
        Lower and upper bounds, one row for each iteration.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure.

    area_ : matplotlib artist
        The area between the bounds.

    Examples
    --------
    >>> from skextra.datasets import make_riverswim
    >>> from skextra.mdp import GainIntervalDisplay, HalpernMDPSolver
    >>> model = HalpernMDPSolver(solver="anchored").fit_mdp(**make_riverswim())
    >>> display = GainIntervalDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'iteration'
    """

    def __init__(self, intervals):
        self.intervals = intervals

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, name=None, **kwargs):
        """Draw the iterations of a fitted solver.

        Parameters
        ----------
        estimator : HalpernMDPSolver
            Fitted solver.

        ax : matplotlib Axes, default=None
            Axes to draw on. None makes new ones.

        name : str, default=None
            What the legend calls it. None stands for the name of the solver.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.fill_between`.

        Returns
        -------
        display : GainIntervalDisplay
            The display.
        """
        check_is_fitted(estimator)
        display = cls(estimator.gain_history_)
        return display.plot(ax, name=name or estimator.solver, **kwargs)

    def plot(self, ax=None, *, name=None, **kwargs):
        """Draw the bounds as an area that gets narrower.

        Each bound holds for the best gain, so the best so far is drawn.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes new ones.

        name : str, default=None
            What the legend calls it.

        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.fill_between`.

        Returns
        -------
        self : GainIntervalDisplay
            The display.
        """
        check_matplotlib_support("GainIntervalDisplay.plot")
        import matplotlib.pyplot as plt

        self.ax_ = plt.subplots()[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        low = np.maximum.accumulate(self.intervals[:, 0])
        high = np.minimum.accumulate(self.intervals[:, 1])
        iterations = np.arange(1, len(low) + 1)
        settings = {"alpha": 0.4, "step": "mid", "label": name} | kwargs
        self.area_ = self.ax_.fill_between(iterations, low, high, **settings)
        self.ax_.set(xscale="log", xlabel="iteration", ylabel="gain per step")
        return self
