"""Pictures of the diagnostics."""

from sklearn.utils._optional_dependencies import check_matplotlib_support

from skextra.ensemble._diagnostics import ensemble_or_wider


class EnsembleOrWiderDisplay:
    """Picture of the comparison of an ensemble with one wider model.

    Make it with :meth:`from_estimator`, or from the result of
    :func:`ensemble_or_wider`.

    Parameters
    ----------
    result : :class:`~sklearn.utils.Bunch`
        What :func:`ensemble_or_wider` returned.

    Attributes
    ----------
    lines_ : list of :class:`matplotlib.container.ErrorbarContainer`
        The curves of the ensemble and of the single model.

    ax_ : :class:`matplotlib.axes.Axes`
        Axes of the plot.

    figure_ : :class:`matplotlib.figure.Figure`
        Figure of the plot.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skextra.ensemble import EnsembleOrWiderDisplay, RFEnsembleRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> est = RFEnsembleRegressor(n_components=32, alpha=1.0, random_state=0)
    >>> display = EnsembleOrWiderDisplay.from_estimator(
    ...     est, X, y, budgets=[64, 128], n_repeats=3
    ... )
    >>> display.ax_.get_xlabel()
    'Features in all'
    """

    def __init__(self, result):
        self.result = result

    @classmethod
    def from_estimator(cls, est, X, y, *, budgets=None, n_repeats=20, cv=5, ax=None):
        """Compare and plot.

        Parameters
        ----------
        est : RFEnsembleRegressor or Pipeline
            Model whose members are compared with wider ones.

        X : array-like of shape (n_samples, n_features)
            Inputs.

        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.

        budgets : array-like of int, default=None
            As in :func:`ensemble_or_wider`.

        n_repeats : int, default=20
            As in :func:`ensemble_or_wider`.

        cv : int, cross-validation generator or iterable, default=5
            As in :func:`ensemble_or_wider`.

        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : EnsembleOrWiderDisplay
            The plotted comparison, with the numbers in `result`.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        result = ensemble_or_wider(est, X, y, budgets, n_repeats=n_repeats, cv=cv)
        return cls(result).plot(ax=ax)

    def plot(self, ax=None):
        """Plot the error of both against the number of features.

        Parameters
        ----------
        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : EnsembleOrWiderDisplay
            This object.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        result = self.result
        self.lines_ = [
            ax.errorbar(
                result.budget,
                result[f"{kind}_mse"],
                yerr=2 * result[f"{kind}_standard_error"],
                marker="o",
                capsize=3,
                label=label,
            )
            for kind, label in (("ensemble", "Ensemble"), ("single", "One wider model"))
        ]
        ax.set_xscale("log", base=2)
        ax.set_xticks(result.budget, [str(b) for b in result.budget])
        ax.set(
            xlabel="Features in all",
            ylabel="Mean squared error, held-out rows",
            title=result.recommendation.split(".")[0].split(",")[0],
        )
        ax.legend(title="bars: 2 standard errors")
        self.ax_, self.figure_ = ax, ax.figure
        return self
