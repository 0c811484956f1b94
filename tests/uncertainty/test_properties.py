"""What holds for any beliefs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skextra.uncertainty import (
    bald,
    batch_bald,
    epig,
    expected_uncertainty_reduction,
    mixture_decomposition,
    mixture_eur,
    optimal_action,
    predictive_uncertainty,
    score_decomposition,
    uncertainty_decomposition,
)
from tests.uncertainty.common import CASES

EXAMPLES = settings(derandomize=True, deadline=None, max_examples=60)
NAMES = st.sampled_from(list(CASES))
SLACK = 1e-11


@st.composite
def problems(draw, n_classes=None):
    """Pool, targets (of five classes), weights of members."""
    n_members = draw(st.integers(1, 6))
    n_pool, n_target = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    n_classes = n_classes or draw(st.integers(1, 4))
    # Powers make some members sure and some probabilities all but 0.
    power = draw(st.sampled_from([0, 1, 4, 40]))

    def beliefs(n, n_classes):
        shape = (n, n_members, n_classes)
        raw = draw(arrays(float, shape, elements=st.floats(0.01, 1))) ** power
        return raw / raw.sum(axis=-1, keepdims=True)

    weights = draw(arrays(float, n_members, elements=st.floats(0.01, 1)))
    return beliefs(n_pool, n_classes), beliefs(n_target, 5), weights


@EXAMPLES
@given(problems(), NAMES)
def test_one_label_reduces_less_than_all(problem, name):
    pool, target, weights = problem
    keywords = {"weights": weights, **CASES[name][0]}
    known = uncertainty_decomposition(target, **keywords).reducible
    size = 1 + np.abs(uncertainty_decomposition(target, **keywords).total)
    last = 0.0
    for n_steps in (1, 2):
        got = expected_uncertainty_reduction(
            pool, target, pairwise=True, n_steps=n_steps, **keywords
        )
        assert (got >= 0).all()
        assert (got <= known + SLACK * size).all()
        assert (got >= last - SLACK * size).all()
        last = got


@EXAMPLES
@given(problems())
def test_epig_is_symmetric_and_no_more_than_either_tells(problem):
    pool, target, weights = problem
    pairs = expected_uncertainty_reduction(pool, target, weights=weights, pairwise=True)
    back = expected_uncertainty_reduction(target, pool, weights=weights, pairwise=True)
    assert_allclose(pairs, back.T, atol=1e-13)
    of_pool, of_target = (bald(p, weights=weights) for p in (pool, target))
    assert (pairs <= np.minimum.outer(of_pool, of_target) + 1e-13).all()
    assert (epig(pool, target, weights=weights) <= of_pool + 1e-13).all()
    assert (of_pool <= np.log(pool.shape[2]) + 1e-13).all()
    positive = weights / weights.sum()
    assert (of_pool <= -(positive @ np.log(positive)) + 1e-13).all()


@EXAMPLES
@given(problems(), NAMES, st.integers(1, 5))
def test_identical_members_have_nothing_to_learn(problem, name, n_members):
    pool, target, _ = problem
    same = np.repeat(target[:, :1], n_members, axis=1)
    result = uncertainty_decomposition(same, **CASES[name][0])
    assert_allclose(result.reducible, 0, atol=1e-15)
    other = np.repeat(pool[:, :1], n_members, axis=1)
    got = expected_uncertainty_reduction(other, same, **CASES[name][0])
    assert_array_equal(got, np.zeros(len(pool)))


@EXAMPLES
@given(problems(), NAMES, st.randoms(use_true_random=False))
def test_order_of_members_and_repeats(problem, name, random):
    pool, target, weights = problem
    order = list(range(len(weights)))
    random.shuffle(order)
    keywords = CASES[name][0]
    one = uncertainty_decomposition(target, weights=weights, **keywords)
    gain = expected_uncertainty_reduction(pool, target, weights=weights, **keywords)
    # In another order; each twice; each twice with halves of its weight.
    for members, other_weights in (
        (order, weights[order]),
        (order + order, np.tile(weights[order], 2)),
        ([*order, order[0]], [weights[order[0]] / 2, *weights[order[1:]]]),
    ):
        other_weights = np.array(other_weights)
        if len(members) > len(other_weights):
            other_weights = np.append(other_weights, other_weights[0])
        other = uncertainty_decomposition(
            target[:, members], weights=other_weights, **keywords
        )
        size = 1 + np.abs(one.total).max()
        for part in one:
            assert_allclose(other[part], one[part], atol=SLACK * size)
        other = expected_uncertainty_reduction(
            pool[:, members], target[:, members], weights=other_weights, **keywords
        )
        assert_allclose(other, gain, atol=SLACK * size)


@EXAMPLES
@given(problems(), NAMES, st.lists(st.integers(1, 3), min_size=6, max_size=6))
def test_weights_are_repeats(problem, name, times):
    pool, target, weights = problem
    times = np.array(times[: len(weights)])
    keywords = CASES[name][0]
    repeats = np.repeat(np.arange(len(times)), times)
    one = uncertainty_decomposition(target, weights=times, **keywords)
    other = uncertainty_decomposition(target[:, repeats], **keywords)
    size = 1 + np.abs(one.total).max()
    for part in one:
        assert_allclose(other[part], one[part], atol=SLACK * size)
    assert_allclose(
        expected_uncertainty_reduction(pool, target, weights=times, **keywords),
        expected_uncertainty_reduction(
            pool[:, repeats], target[:, repeats], **keywords
        ),
        atol=SLACK * size,
    )


@EXAMPLES
@given(problems(), st.sampled_from(["log_loss", "brier", "zero_one", "cost"]))
def test_names_of_classes_do_not_matter(problem, loss):
    pool, target, weights = problem
    order = np.array([2, 0, 4, 1, 3])
    keywords = dict(CASES[loss][0])
    moved = dict(keywords)
    if loss == "cost":
        moved["cost_matrix"] = keywords["cost_matrix"][:, order]
    for function, arrays_, others in (
        (uncertainty_decomposition, (target,), (target[..., order],)),
        (
            expected_uncertainty_reduction,
            (pool, target),
            (pool[..., ::-1], target[..., order]),
        ),
    ):
        one = function(*arrays_, weights=weights, **keywords)
        other = function(*others, weights=weights, **moved)
        if isinstance(one, dict):
            one, other = (np.stack(list(b.values())) for b in (one, other))
        assert_allclose(other, one, atol=1e-12)


@EXAMPLES
@given(problems(), NAMES)
def test_uncertainty_is_concave_and_score_no_less(problem, name):
    _, target, weights = problem
    keywords = CASES[name][0]
    each = predictive_uncertainty(target.reshape(-1, 5), **keywords)
    total = predictive_uncertainty(target, weights=weights, **keywords)
    mean = each.reshape(target.shape[:2]) @ (weights / weights.sum())
    assert (total >= mean - SLACK).all()
    if name != "callable":
        a, b = target[:, 0], target[:, -1]
        result = score_decomposition(a, b, **keywords)
        assert (result.discrepancy >= 0).all()
        finite = np.isfinite(result.score)
        difference = result.score - result.discrepancy - result.dispersion
        assert_allclose(difference[finite], 0, atol=SLACK)
        optimal_action(target, weights=weights, **keywords)


@EXAMPLES
@given(problems())
def test_losses_of_decisions_reduce_to_each_other(problem):
    pool, target, weights = problem
    costs = 1 - np.eye(5)
    for n_steps in (1, 3):
        keywords = {"weights": weights, "n_steps": n_steps}
        one = expected_uncertainty_reduction(pool, target, "zero_one", **keywords)
        assert (one >= 0).all()
        other = expected_uncertainty_reduction(
            pool, target, "cost", cost_matrix=costs, **keywords
        )
        assert_allclose(one, other, atol=1e-14)


@EXAMPLES
@given(problems(n_classes=3), st.integers(1, 3))
def test_batches(problem, batch_size):
    pool, _, weights = problem
    batch_size = min(batch_size, len(pool))
    indices, scores = batch_bald(pool, batch_size, weights=weights)
    assert len(set(indices)) == batch_size
    assert_allclose(scores[0], bald(pool, weights=weights).max(), atol=1e-14)
    steps = np.diff(scores, prepend=0)
    assert (steps >= -1e-12).all() and (np.diff(steps) <= 1e-12).all()


@pytest.mark.parametrize(
    "loss", ["squared_error", "crps", "absolute_error", "log_loss"]
)
@settings(derandomize=True, deadline=None, max_examples=20)
@given(data=st.data())
def test_mixtures(loss, data):
    n_members = data.draw(st.integers(1, 4))
    shape = (2, n_members)
    mean = data.draw(arrays(float, shape, elements=st.floats(-3, 3)))
    var = data.draw(arrays(float, shape, elements=st.floats(0.01, 4)))
    weights = data.draw(arrays(float, n_members, elements=st.floats(0.01, 1)))
    result = mixture_decomposition(mean, var, loss, weights=weights)
    assert (result.reducible >= 0).all()
    members = list(range(n_members))[::-1] * 2
    other = mixture_decomposition(
        mean[:, members], var[:, members], loss, weights=np.tile(weights[::-1], 2)
    )
    for part in result:
        assert_allclose(other[part], result[part], atol=1e-9)
    gain = mixture_eur(mean, var, mean, var, loss, weights=weights, pairwise=True)
    # Of the losses on a grid, the reduction is that of the grid.
    slack = {"squared_error": 1e-12, "log_loss": 1e-9}.get(loss, 0.05)
    assert (gain >= 0).all()
    assert (gain <= result.reducible * (1 + slack) + 1e-9).all()
