"""The picture of a tree."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from skextra.phylo import PhyloBranchLengths, PhyloTreeDisplay, simulate_characters
from skextra.phylo._layout import edge_of, midpoint, places, rooted
from tests.phylo.common import random_parents

matplotlib.use("Agg")
TREE = "((a:.1,b:.2):.1,(c:.1,(d:.3,e:.2):.2):.1);"


@pytest.fixture
def plt():
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    X = simulate_characters(TREE, 800, as_frame=True, random_state=0)
    return PhyloBranchLengths(TREE).fit(X)


def between(parents, lengths, n_leaves):
    """Lengths of the paths between leaves; the root's length does not count."""

    def up(node):
        path = {node: 0.0}
        while parents[node] >= 0:
            path[int(parents[node])] = path[node] + lengths[node]
            node = int(parents[node])
        return path

    paths = [up(leaf) for leaf in range(n_leaves)]
    return np.array(
        [[min(p[v] + q[v] for v in p if v in q) for q in paths] for p in paths]
    )


@pytest.mark.parametrize("seed", range(10))
def test_a_root_keeps_the_paths(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed
    parents = random_parents(n, rng, leaf_root=seed % 2)
    lengths = np.where(parents >= 0, rng.uniform(0.1, 1, len(parents)), np.nan)
    values = np.vstack([lengths, np.arange(len(parents)), np.zeros(len(parents))])
    before = between(parents, lengths, n)
    edge, up = midpoint(parents, lengths, n)
    assert 0 <= up <= lengths[edge]
    choices = [(edge, up)]
    choices += [(e, 0.3 * lengths[e]) for e in np.flatnonzero(parents >= 0)]
    for edge, up in choices:
        turned, moved = rooted(parents, values.copy(), edge, up)
        assert turned[-1] == -1 and (turned[:-1] >= 0).all()
        assert_allclose(between(turned, moved[0], n), before, rtol=1e-12)
        # Each error stays with its edge, that of the divided edge with one half.
        kept = moved[1][~np.isnan(moved[1])]
        expected = np.flatnonzero(parents >= 0)
        assert_array_equal(np.sort(kept), expected)
    turned, moved = rooted(parents, values.copy(), *midpoint(parents, lengths, n))
    x, y = places(turned, moved[0])
    assert x[-1] == 0 and x[:n].max() == pytest.approx(before.max() / 2)
    assert (np.sort(x[:n])[-2:] == pytest.approx(before.max() / 2)) or n == 2
    if parents[:n].min() >= 0:
        assert_array_equal(np.sort(y[:n]), np.arange(n))


def test_edge_of_leaves():
    parents = np.array([5, 5, 6, 7, 7, 6, -1, 6])
    assert edge_of(parents, [0], 5) == 0
    assert edge_of(parents, [0, 1], 5) == 5
    assert edge_of(parents, [2, 3, 4], 5) == 5
    assert edge_of(parents, [3, 4], 5) == 7
    assert edge_of(parents, [0, 2], 5) is None
    assert edge_of(parents, [], 5) is None
    assert edge_of(parents, range(5), 5) is None


def horizontals(ax):
    """The segments of the edges, by style."""
    solid, dotted = ax.collections[1], ax.collections[2]
    return solid.get_segments(), dotted.get_segments()


def test_picture(model, plt):
    display = PhyloTreeDisplay.from_estimator(model)
    ax = display.ax_
    assert display.figure_ is ax.figure
    assert ax.get_xlabel() == "expected changes per site"
    assert [text.get_text() for text in ax.texts] == list("abcde")
    solid, dotted = horizontals(ax)
    assert len(dotted) == 0 and len(solid) == len(model.edges_) + 1
    drawn = sum(abs(s[1, 0] - s[0, 0]) for s in solid)
    assert drawn == pytest.approx(model.branch_lengths_.sum())
    heights = [text.xy[1] for text in ax.texts]
    assert sorted(heights) == list(range(5))
    far = sorted(s[:, 0].max() for s in solid)[-2:]
    assert far[0] == pytest.approx(far[1])  # the root is in the middle


def error_bars(ax):
    (bars,) = ax.containers[0].lines[2]
    return np.array([segment[:, 0] for segment in bars.get_segments()])


@pytest.mark.parametrize("coverage", [0.5, 0.95])
def test_error_bars(model, plt, coverage):
    ax = PhyloTreeDisplay.from_estimator(model, coverage=coverage).ax_
    bars = error_bars(ax)
    assert len(bars) == len(model.edges_)
    ends = {round(s[1, 0], 9): s for s in horizontals(ax)[0]}
    z = norm.ppf((1 + coverage) / 2)
    assert (bars[:, 0] < bars[:, 1]).all()
    widths = np.sort(model.standard_errors_ * z)
    # A bar reaches as far beyond the end of its edge as the interval is wide.
    right = []
    for low, high in bars:
        candidates = [high - end for end in ends if high > end >= low - 1e-9]
        right.append(candidates)
    for width in widths:
        assert any(np.isclose(width, c).any() for c in right)
    for low, high in bars:
        assert high - low <= 2 * widths.max() + 1e-9


def test_no_error_bars(model, plt):
    assert not PhyloTreeDisplay.from_estimator(model, coverage=None).ax_.containers
    fitted = PhyloBranchLengths(TREE, standard_errors=None).fit(
        simulate_characters(TREE, 100, as_frame=True, random_state=0)
    )
    display = PhyloTreeDisplay.from_estimator(fitted)
    for container in display.ax_.containers:
        assert all(len(b.get_segments()) == 0 for b in container.lines[2])


@pytest.mark.parametrize("outgroup", ["a", ["a", "b"], ["c", "d", "e"], ["d", "e"]])
def test_outgroup(model, plt, outgroup):
    ax = model.plot(outgroup=outgroup).ax_
    side = {outgroup} if isinstance(outgroup, str) else set(outgroup)
    heights = {text.get_text(): text.xy[1] for text in ax.texts}
    inside = sorted(heights[name] for name in side)
    assert max(inside) - min(inside) == len(inside) - 1  # beside each other
    assert 0 in inside or 4 in inside
    at_root = [s for s in horizontals(ax)[0] if s[0, 0] == 0]
    assert len(at_root) == 2
    assert at_root[0][1, 0] == pytest.approx(at_root[1][1, 0])
    drawn = sum(abs(s[1, 0] - s[0, 0]) for s in horizontals(ax)[0])
    assert drawn == pytest.approx(model.branch_lengths_.sum())


@pytest.mark.parametrize("outgroup", [["a", "c"], ["z"], [], "ab", list("abcde")])
def test_no_such_outgroup(model, plt, outgroup):
    with pytest.raises(ValueError, match="one side of an edge of the tree, got"):
        model.plot(outgroup=outgroup)


def test_labels_and_axes(model, plt):
    _, ax = plt.subplots()
    display = model.plot(labels=".2f", ax=ax)
    assert display.ax_ is ax
    texts = [text.get_text() for text in ax.texts][5:]
    assert sorted(texts) == sorted(f"{t:.2f}" for t in model.branch_lengths_)


@pytest.mark.parametrize("coverage", [0, 1, 95])
def test_coverage_is_a_share(model, plt, coverage):
    with pytest.raises(ValueError, match=rf"coverage must be .* got {coverage}"):
        model.plot(coverage=coverage)


def test_edges_at_bounds_are_dotted(plt):
    parents = [4, 4, 5, 5, 5, -1]
    lengths = [1e-8, 0.2, 10.0, 0.1, 0.3]
    errors = [np.nan, 0.02, np.nan, 0.01, 0.4]
    bound = [True, False, True, False, False]
    display = PhyloTreeDisplay(parents, lengths, list("abcd"), errors, bound).plot()
    solid, dotted = horizontals(display.ax_)
    assert 2 <= len(dotted) <= 3 and len(solid) + len(dotted) == 6
    right = max(s[:, 0].max() for s in (*solid, *dotted))
    assert right < 2  # the long edge is cut
    bars = error_bars(display.ax_)
    assert len(bars) == 3


def test_two_leaves(plt):
    X = np.repeat([[0, 0], [0, 1]], [80, 20], axis=0)
    model = PhyloBranchLengths().fit(X)
    ax = model.plot(labels=".1f").ax_
    solid, _ = horizontals(ax)
    assert len(solid) == 2
    assert [s[1, 0] for s in solid] == pytest.approx([model.branch_lengths_[0] / 2] * 2)
    assert [text.get_text() for text in ax.texts[:2]] == ["x0", "x1"]


def test_alone(plt):
    display = PhyloTreeDisplay([3, 3, 3, -1], [0.1, 0.2, 0.3], ["a", "b", "c"])
    assert display.plot() is display
    assert len(horizontals(display.ax_)[0]) == 4
