"""Batches of points against enumeration of their labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skextra.uncertainty import (
    _states,
    bald,
    batch_bald,
    batch_eur,
    expected_uncertainty_reduction,
)
from tests.uncertainty import reference
from tests.uncertainty.common import BY_LOSS, beliefs, slow

WEIGHTS = np.array([0.5, 2.0, 1.0, 0.1, 1.0])
POOL = beliefs(6, 5, n_classes=3, seed=1)
TARGET = beliefs(3, 5, seed=2)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_batch_bald_by_enumeration(weights, method):
    def value(chosen):
        return reference.joint_information(POOL[chosen], weights)

    chosen, values = reference.greedy(value, 6, 4)
    indices, scores = batch_bald(POOL, 4, weights=weights, method=method)
    assert_array_equal(indices, chosen)
    assert_allclose(scores, values, atol=1e-12)
    assert indices.dtype.kind == "i" and scores.dtype == np.float64


@BY_LOSS
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_batch_eur_by_enumeration(case, weights):
    h = slow(case)
    target_weights = np.array([1.0, 0.0, 2.0])

    def value(chosen):
        each = [reference.reduction(POOL[chosen], x, weights, h) for x in TARGET]
        return np.average(each, weights=target_weights)

    chosen, values = reference.greedy(value, 6, 2)
    indices, scores = batch_eur(
        POOL,
        TARGET,
        2,
        weights=weights,
        target_weights=target_weights,
        method="exact",
        **case[0],
    )
    assert_allclose(scores, values, atol=1e-12)
    # Points of equal value may change places by rounding.
    for i in range(2):
        assert_allclose(value(list(indices[: i + 1])), values[i], atol=1e-12)


def test_batch_eur_of_three_points():
    h = slow(({}, "brier", None))

    def value(chosen):
        return np.mean([reference.reduction(POOL[chosen], x, None, h) for x in TARGET])

    chosen, values = reference.greedy(value, 6, 3)
    indices, scores = batch_eur(POOL, TARGET, 3, "brier")
    assert_array_equal(indices, chosen)
    assert_allclose(scores, values, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "exact", "sampled"])
def test_a_batch_of_one(method):
    indices, scores = batch_bald(POOL, 1, weights=WEIGHTS, method=method)
    each = bald(POOL, weights=WEIGHTS)
    assert_array_equal(indices, [each.argmax()])
    assert_allclose(scores, [each.max()], rtol=1e-10)
    for loss in ("log_loss", "brier"):
        indices, scores = batch_eur(
            POOL, TARGET, 1, loss, weights=WEIGHTS, method=method
        )
        each = expected_uncertainty_reduction(POOL, TARGET, loss, weights=WEIGHTS)
        assert_array_equal(indices, [each.argmax()])
        assert_allclose(scores, [each.max()], rtol=1e-10)


def test_the_whole_pool_without_repeats():
    p = np.repeat(POOL[:3], 2, axis=0)
    for method in ("exact", "sampled"):
        indices, scores = batch_bald(p, 6, method=method, n_samples=50, random_state=0)
        assert_array_equal(np.sort(indices), np.arange(6))
        indices, _ = batch_eur(p, TARGET, 6, method=method, n_samples=50)
        assert_array_equal(np.sort(indices), np.arange(6))
    same = np.repeat(POOL[:1], 4, axis=0)
    same[:] = 0.25, 0.25, 0.5
    indices, scores = batch_bald(same, 4)
    assert_array_equal(indices, np.arange(4))  # the lowest of equal ones
    assert_allclose(scores, 0, atol=1e-14)


def test_scores_grow_and_stay_below_the_sum():
    _, scores = batch_bald(POOL, 6, method="exact")
    steps = np.diff(scores, prepend=0)
    assert (steps >= -1e-12).all()
    assert (np.diff(steps) <= 1e-12).all()  # each tells less next to more
    assert scores[-1] <= np.log(5) + 1e-12
    assert_allclose(scores[0], bald(POOL).max(), rtol=1e-12)


def test_twice_the_same_point_tells_less_than_another():
    sure = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    other = np.array([[0.1, 0.9], [0.1, 0.9], [0.9, 0.1], [0.9, 0.1]])
    indices, scores = batch_bald([sure, sure, other], 3)
    assert_array_equal(indices, [0, 2, 1])
    assert_allclose(scores[2], scores[1], atol=1e-14)


def test_sampled_comes_near_exact():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 0.5), size=(8, 12))
    target = rng.dirichlet(np.ones(4), size=(5, 12))
    weights = rng.random(12)
    exact = batch_bald(p, 4, weights=weights, method="exact")

    def by_enumeration(chosen):
        return reference.joint_information(p[chosen], weights)

    for seed in range(3):
        indices, scores = batch_bald(
            p, 4, weights=weights, method="sampled", n_samples=20000, random_state=seed
        )
        each = [by_enumeration(indices[: i + 1]) for i in range(4)]
        assert_allclose(scores, each, atol=0.015)
        assert_allclose(scores[-1], exact[1][-1], atol=0.02)
    for loss in ("log_loss", "brier", "zero_one"):
        _, exact = batch_eur(p, target, 3, loss, weights=weights, method="exact")
        _, scores = batch_eur(
            p,
            target,
            3,
            loss,
            weights=weights,
            method="sampled",
            n_samples=20000,
            random_state=0,
        )
        assert_allclose(scores, exact, atol=0.01)


def test_sampled_has_no_bias():
    p = np.random.default_rng(1).dirichlet(np.full(3, 0.5), size=(2, 6))
    weights = np.array([3.0, 1, 1, 1, 2, 0.5])
    exact = batch_bald(p, 2, weights=weights, method="exact")[1][1]
    scores = [
        batch_bald(
            p, 2, weights=weights, method="sampled", n_samples=400, random_state=s
        )[1][1]
        for s in range(200)
    ]
    assert abs(np.mean(scores) - exact) < 4 * np.std(scores) / np.sqrt(200)


def test_seeds():
    keywords = {"method": "sampled", "n_samples": 20}
    one, other, third = (
        batch_bald(POOL, 3, random_state=s, **keywords)[1] for s in (0, 0, 1)
    )
    assert_array_equal(one, other)
    assert (one[1:] != third[1:]).any()
    generator = np.random.RandomState(0)
    again = batch_bald(POOL, 3, random_state=generator, **keywords)[1]
    assert_array_equal(one, again)


def test_auto_draws_where_there_are_too_many_labels(monkeypatch):
    drawn = []

    def watched(p, *rest, draw=_states.drawn_labels):
        drawn.append(len(p))
        return draw(p, *rest)

    monkeypatch.setattr("skextra.uncertainty._batches.drawn_labels", watched)
    p = beliefs(12, 5, n_classes=10, seed=1)
    batch_bald(p, 6, n_samples=30, random_state=0)
    assert drawn == [5]  # 10^6 labels of the sixth
    drawn.clear()
    batch_eur(p, TARGET, 4, n_samples=30, random_state=0)
    assert drawn == [2, 3]  # 1000 labels are more than 300
    drawn.clear()
    batch_eur(p, TARGET, 2, n_samples=30, random_state=0)
    assert drawn == []


def test_labels_of_either_or():
    a = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    b = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    either = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    _, scores = batch_eur([a, b], [either], 2, "zero_one")
    assert_array_equal(scores, [0, 0.5])
    _, scores = batch_eur([a, b], [either], 2)
    assert_allclose(scores, [0, np.log(2)], atol=1e-15)


def test_members_of_no_weight():
    weights = np.array([1.0, 0, 2, 0, 1])
    few = POOL[:, [0, 2, 4]]
    one = batch_bald(POOL, 3, weights=weights)
    other = batch_bald(few, 3, weights=[1, 2, 1])
    assert_array_equal(one[0], other[0])
    assert_allclose(one[1], other[1], rtol=1e-12)
    drawn = batch_bald(
        POOL, 3, weights=weights, method="sampled", n_samples=20000, random_state=0
    )
    assert_allclose(drawn[1], one[1], atol=0.03)


def test_drawn_labels_are_of_the_drawn_members():
    p = np.array([[[1.0, 0, 0], [0, 0.5, 0.5]]])
    members = np.array([0, 1, 1, 1])
    uniform = np.array([[0.999999, 0.0, 0.49, 0.51]])
    states = _states.drawn_labels(p, np.array([0.5, 0.5]), members, uniform)
    assert_allclose(states * 4, [[2, 0, 0, 0], [0, 2, 2, 2]])
    assert_allclose(np.array([0.5, 0.5]) @ states, 0.25)


def test_states():
    counts, orders = _states.count_vectors(3, 4)
    assert_array_equal(counts.sum(axis=1), 4)
    assert len(counts) == 15 and orders.sum() == 3**4
    repeated = _states.repeated(counts, orders, POOL)
    assert_allclose(repeated.sum(axis=-1), 1, rtol=1e-14)
    states = _states.all_labels(POOL[:3])
    assert states.shape == (5, 27)
    assert_allclose(states.sum(axis=1), 1, rtol=1e-14)
    # The last point's label changes fastest.
    assert_allclose(states[:, 5], POOL[0, :, 0] * POOL[1, :, 1] * POOL[2, :, 2])
    joint = _states.joint_labels(_states.all_labels(POOL[:2]), POOL[2:3])[0]
    assert_allclose(joint, states)
