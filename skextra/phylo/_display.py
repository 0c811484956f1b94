"""Picture of a tree with branch lengths and their errors."""

import numpy as np
from scipy.stats import norm
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from skextra.phylo._layout import edge_of, midpoint, places, rooted
from skextra.phylo._newick import checked_arrays


class PhyloTreeDisplay:
    """Tree whose edges are as long as their branch lengths, with error bars.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    parents : array-like of shape (n_nodes,)
        Parent of each node, -1 for the root; the first nodes are the leaves.

    branch_lengths : array-like of shape (n_edges,)
        Lengths of the edges, in the order of their lower nodes.

    leaf_names : list of str
        Names of the leaves.

    standard_errors : array-like of shape (n_edges,), default=None
        Their standard errors; a NaN has no error bar.

    at_bound : array-like of shape (n_edges,), default=None
        Edges that are drawn dotted, since their lengths are bounds.

    Attributes
    ----------
    ax_ : :class:`matplotlib.axes.Axes`
        Axes of the plot.

    figure_ : :class:`matplotlib.figure.Figure`
        Figure of the plot.

    See Also
    --------
    PhyloBranchLengths : Estimates the lengths.

    Examples
    --------
    >>> from skextra.phylo import PhyloBranchLengths, PhyloTreeDisplay
    >>> from skextra.phylo import simulate_characters
    >>> tree = "((a:.1,b:.2):.1,c:.1,d:.3);"
    >>> X = simulate_characters(tree, 500, as_frame=True, random_state=0)
    >>> model = PhyloBranchLengths(tree).fit(X)
    >>> PhyloTreeDisplay.from_estimator(model).ax_.get_xlabel()
    'expected changes per site'
    """

    def __init__(
        self,
        parents,
        branch_lengths,
        leaf_names,
        standard_errors=None,
        at_bound=None,
    ):
        self.parents = parents
        self.branch_lengths = branch_lengths
        self.leaf_names = leaf_names
        self.standard_errors = standard_errors
        self.at_bound = at_bound

    @classmethod
    def from_estimator(
        cls, estimator, *, outgroup=None, coverage=0.95, labels=None, ax=None
    ):
        """Plot the tree of a fitted estimator.

        Parameters
        ----------
        estimator : PhyloBranchLengths
            The fitted estimator.

        outgroup : str or list of str, default=None
            Leaves on one side of the root, which is drawn in the middle of the edge to
            them. None draws it in the middle of the longest path between leaves.

        coverage : float or None, default=0.95
            Coverage of the error bars under a normal distribution; None for no bars.

        labels : str or None, default=None
            Format of the lengths beside the edges, such as ".3f"; None for no labels.

        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : PhyloTreeDisplay
            The picture.

        Raises
        ------
        ValueError
            If no edge has the outgroup alone on one side, `coverage` is not a share, or
            the parents, lengths and names do not make a tree.
        """
        check_is_fitted(estimator)
        display = cls(
            estimator.parents_,
            estimator.branch_lengths_,
            estimator.leaf_names_,
            estimator.standard_errors_,
            estimator.at_bound_,
        )
        return display.plot(outgroup=outgroup, coverage=coverage, labels=labels, ax=ax)

    def plot(self, *, outgroup=None, coverage=0.95, labels=None, ax=None):
        """Draw the tree.

        Parameters
        ----------
        outgroup : str or list of str, default=None
            Leaves on one side of the root, which is drawn in the middle of the edge to
            them. None draws it in the middle of the longest path between leaves.

        coverage : float or None, default=0.95
            Coverage of the error bars under a normal distribution; None for no bars.

        labels : str or None, default=None
            Format of the lengths beside the edges, such as ".3f"; None for no labels.

        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : PhyloTreeDisplay
            This object.

        Raises
        ------
        ValueError
            If no edge has the outgroup alone on one side, `coverage` is not a share, or
            the parents, lengths and names do not make a tree.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        if coverage is not None and not 0 < coverage < 1:
            raise ValueError(f"coverage must be None or in (0, 1), got {coverage}.")

        parents, (lengths, errors, bound, named) = self._rooted(outgroup)
        x, y = places(parents, lengths)
        if ax is None:
            height = 1 + 0.25 * len(self.leaf_names)
            _, ax = plt.subplots(figsize=(7, height), layout="constrained")
        edges = np.flatnonzero(parents >= 0)
        above = parents[edges]
        ends = x[above], x[edges]
        dotted = bound[edges] == 1
        ax.vlines(ends[0], y[above], y[edges], colors="0.3", lw=1.2)
        for some, style in ((~dotted, "solid"), (dotted, "dotted")):
            start, end = (side[some] for side in ends)
            ax.hlines(y[edges][some], start, end, colors="0.3", lw=1.2, ls=style)
        reach = np.zeros(len(parents))
        if coverage is not None:
            reach = norm.ppf((1 + coverage) / 2) * np.nan_to_num(errors)
            known = edges[~np.isnan(errors[edges])]
            bars = np.minimum(reach[known], lengths[known]), reach[known]
            style = {"fmt": "none", "ecolor": "C0", "elinewidth": 3, "alpha": 0.6}
            ax.errorbar(x[known], y[known], xerr=bars, **style)
        note = {"textcoords": "offset points", "va": "center"}
        for leaf, name in enumerate(self.leaf_names):
            ax.annotate(name, (x[leaf] + reach[leaf], y[leaf]), (5, 0), **note)
        note = {**note, "ha": "center", "va": "bottom", "fontsize": 7}
        if labels is not None:
            for edge in edges[~np.isnan(named[edges])]:
                middle = (x[edge] + x[parents[edge]]) / 2, y[edge]
                ax.annotate(format(named[edge], labels), middle, (0, 1), **note)
        ax.set(xlabel="expected changes per site", yticks=[])
        ax.set_ylim(len(self.leaf_names) - 0.4, -0.6)
        ax.spines[["left", "right", "top"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _rooted(self, outgroup):
        """Return the parents with a root, and values by node: what the edges have.

        These are the lengths as they are drawn, the errors, the bounds, and the
        lengths as they are.
        """
        tree = checked_arrays(self.parents, self.branch_lengths, self.leaf_names)
        parents, names = tree.parents, list(self.leaf_names)
        if np.isnan(tree.branch_lengths[parents >= 0]).any():
            raise ValueError(
                "branch_lengths must have a length for each edge, got NaN."
            )
        values = np.full((4, len(parents)), np.nan)
        lengths = self.branch_lengths
        given = lengths, self.standard_errors, self.at_bound, lengths
        for row, value in zip(values, given, strict=True):
            if value is not None:
                row[parents >= 0] = value
        # A length at the upper bound would leave no room for the others.
        long = (values[2] == 1) & (values[0] > 1)
        if long.any():
            values[0, long] = 1.5 * max(0.1, np.nanmax(np.where(long, 0, values[0])))
        if outgroup is None:
            edge, up = midpoint(parents, values[0], len(names))
        else:
            leaves = [outgroup] if isinstance(outgroup, str) else list(outgroup)
            unknown = [name for name in leaves if name not in names]
            edge = None
            if not unknown:
                chosen = [names.index(name) for name in leaves]
                edge = edge_of(parents, chosen, len(names))
            if edge is None:
                raise ValueError(
                    "outgroup must be the leaves on one side of an edge of the tree, got "
                    f"{outgroup!r}; the leaves are {names}."
                )
            up = values[0, edge] / 2
        return rooted(parents, values, edge, up)
