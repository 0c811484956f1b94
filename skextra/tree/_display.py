"""Pictures of rules and of acquisition policies."""

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from skextra.tree._rules import interval


class RulesDisplay:
    """Picture of rules as bars over the ranges of the features.

    Each row is a rule and each column a feature; a bar shows the interval that the rule
    allows, between the least and the largest threshold of these rules and a margin.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    rules : list of Rule
        The rules.

    feature_names : list of str
        Names of all features.

    classes : array of shape (n_classes,)
        Class labels, in the order of the colours.

    domains : array of str of shape (n_features,)
        Domain of each feature: "continuous", "integer" or "binary".

    Attributes
    ----------
    bars_ : list of :class:`matplotlib.patches.Rectangle`
        The bars, rule by rule.

    ax_ : :class:`matplotlib.axes.Axes`
        Axes of the plot.

    figure_ : :class:`matplotlib.figure.Figure`
        Figure of the plot.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skextra.tree import BooleanTree, RulesDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = BooleanTree(max_depth=2, random_state=0).fit(X, y)
    >>> len(RulesDisplay.from_estimator(tree).rules)
    3
    """

    def __init__(self, rules, feature_names, classes, domains):
        self.rules, self.feature_names = rules, feature_names
        self.classes, self.domains = classes, domains

    @classmethod
    def from_estimator(cls, estimator, label=None, *, feature_names=None, ax=None):
        """Plot the rules of a fitted tree.

        Parameters
        ----------
        estimator : BooleanTree
            The fitted tree.

        label : object, default=None
            Label whose rules are drawn; None draws those of all.

        feature_names : array-like of str, default=None
            Names of the features. None takes those seen in `fit`, or x0, x1 and so on.

        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : RulesDisplay
            The picture.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        names = estimator._names(feature_names)
        rules, domains = estimator.rules(label), estimator._inputs.domains
        return cls(rules, names, estimator.classes_, domains).plot(ax=ax)

    def plot(self, ax=None):
        """Draw the rules.

        Parameters
        ----------
        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : RulesDisplay
            This object.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        rules = self.rules
        features = sorted({j for rule in rules for j in rule.bounds})
        if ax is None:
            size = 2.5 + 1.6 * max(1, len(features)), 1.2 + 0.45 * max(1, len(rules))
            _, ax = plt.subplots(figsize=size, layout="constrained")
        colors = {label: f"C{k}" for k, label in enumerate(self.classes)}
        self.bars_ = []
        for column, j in enumerate(features):
            ends = [rule.bounds.get(j, (-np.inf, np.inf)) for rule in rules]
            least, largest = _range(ends)
            ax.axvline(column, color="0.85", lw=0.8)
            for row, (rule, (low, high)) in enumerate(zip(rules, ends, strict=True)):
                if j not in rule.bounds:
                    continue
                left, right = (
                    (np.clip(end, least, largest) - least) / (largest - least) * 0.9
                    for end in (low, high)
                )
                bar = (column + 0.05 + left, row - 0.3), right - left, 0.6
                self.bars_.append(
                    ax.add_patch(
                        plt.Rectangle(*bar, color=colors[rule.label], alpha=0.5)
                    )
                )
                text = interval(low, high, self.domains[j])
                style = {"ha": "center", "va": "center", "fontsize": 7}
                ax.text(column + 0.5, row, text, **style)
        names = [str(self.feature_names[j]) for j in features]
        ax.set_xticks(np.arange(len(features)) + 0.5, names, rotation=20, ha="right")
        ax.set_yticks(range(len(rules)), [_title(rule) for rule in rules])
        ax.set(xlim=(0, max(1, len(features))), ylim=(len(rules) - 0.5, -0.5))
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _range(ends):
    """Return what to draw of a feature: its finite ends and a margin of a quarter."""
    finite = [end for pair in ends for end in pair if np.isfinite(end)]
    least, largest = min(finite), max(finite)
    margin = (largest - least) / 4 or 1.0
    return least - margin, largest + margin


def _title(rule):
    if rule.support is None:
        return str(rule.label)
    return f"{rule.label}  ({rule.support:g} rows)"


class AcquisitionDisplay:
    """Picture of an acquisition policy as a tree.

    Each box is a purchase, with its cost; each edge names the values that lead on.

    Make it with :meth:`AcquisitionPolicy.plot` or
    :meth:`BooleanTree.plot_acquisition`.

    Parameters
    ----------
    policy : AcquisitionPolicy
        The policy.

    max_depth : int, default=4
        Number of purchases after which the picture ends.

    Attributes
    ----------
    texts_ : list of :class:`matplotlib.text.Text`
        The boxes.

    ax_ : :class:`matplotlib.axes.Axes`
        Axes of the plot.

    figure_ : :class:`matplotlib.figure.Figure`
        Figure of the plot.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skextra.tree import BooleanTree
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = BooleanTree(max_depth=2, random_state=0).fit(X, y)
    >>> len(tree.plot_acquisition().texts_)
    4
    """

    def __init__(self, policy, *, max_depth=4):
        self.policy, self.max_depth = policy, max_depth

    def plot(self, ax=None):
        """Draw the policy.

        Parameters
        ----------
        ax : :class:`matplotlib.axes.Axes`, default=None
            Axes to draw on; new ones if None.

        Returns
        -------
        display : AcquisitionDisplay
            This object.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        import matplotlib.pyplot as plt

        root = self.policy.outline(self.max_depth)
        if ax is None:
            size = 1.5 + 1.7 * _width(root), 1.2 + 1.3 * _depth(root)
            _, ax = plt.subplots(figsize=size, layout="constrained")
        labels = {label: f"C{k}" for k, label in enumerate(self.policy.classes_)}
        self.texts_ = []
        self._draw(ax, root, 0.0, 0, labels)
        ax.set(xlim=(0, _width(root)), ylim=(-_depth(root) + 0.5, 0.5))
        ax.set_axis_off()
        ax.set_title(f"expected cost {self.policy.expected_cost_:.4g}")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax, node, left, depth, colors):
        """Draw a node above its children, which share its width."""
        x, y = left + _width(node) / 2, -depth
        color = "0.92" if node.label is None else colors[node.label]
        box = {
            "boxstyle": "round",
            "facecolor": color,
            "edgecolor": "0.4",
            "alpha": 0.9,
        }
        style = {"ha": "center", "va": "center", "fontsize": 8}
        self.texts_.append(ax.text(x, y, node.text, bbox=box, zorder=3, **style))
        for edge, child in node.children:
            end = left + _width(child) / 2, y - 1
            ax.plot([x, end[0]], [y, end[1]], color="0.6", zorder=1)
            middle = (x + 2 * end[0]) / 3, (y + 2 * end[1]) / 3
            plain = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            ax.text(*middle, edge, bbox=plain, zorder=2, **{**style, "fontsize": 7})
            self._draw(ax, child, left, depth + 1, colors)
            left += _width(child)


def _width(node):
    return max(1, sum(_width(child) for _, child in node.children))


def _depth(node):
    return 1 + max((_depth(child) for _, child in node.children), default=0)
