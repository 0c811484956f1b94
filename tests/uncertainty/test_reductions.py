"""Expected reductions by a label against enumeration of labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skextra.uncertainty import (
    _gains,
    bald,
    batch_eur,
    epig,
    expected_uncertainty_reduction,
    predictive_uncertainty,
    uncertainty_decomposition,
)
from tests.uncertainty import reference
from tests.uncertainty.common import BY_LOSS, CASES, COSTS, OUTCOMES, beliefs, slow

WEIGHTS = np.array([0.5, 2.0, 1.0, 0.1])
TARGET_WEIGHTS = np.array([3.0, 0.0, 1.0])
POOL = beliefs(6, 4, n_classes=3, seed=1)
TARGET = beliefs(3, 4, seed=2)


@BY_LOSS
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("n_steps", [1, 3])
def test_reduction_is_that_of_all_labels(case, weights, n_steps):
    slowly = reference.pairwise(POOL, TARGET, weights, slow(case), n_steps)
    keywords = {"weights": weights, "n_steps": n_steps, **case[0]}
    pairs = expected_uncertainty_reduction(POOL, TARGET, pairwise=True, **keywords)
    assert_allclose(pairs, slowly, atol=1e-12)
    mean = expected_uncertainty_reduction(POOL, TARGET, **keywords)
    assert_allclose(mean, slowly.mean(axis=1), atol=1e-12)
    weighted = expected_uncertainty_reduction(
        POOL, TARGET, target_weights=TARGET_WEIGHTS, **keywords
    )
    assert_allclose(weighted, slowly @ [0.75, 0, 0.25], atol=1e-12)
    assert (pairs >= 0).all()


def test_shapes():
    assert epig(POOL, TARGET).shape == (6,)
    pairs = expected_uncertainty_reduction(POOL, TARGET, pairwise=True)
    assert pairs.shape == (6, 3) and pairs.dtype == np.float64
    # Pool and targets have other numbers of classes, either way round.
    assert epig(TARGET, POOL).shape == (3,)
    pairs_back = expected_uncertainty_reduction(TARGET, POOL, pairwise=True)
    assert_allclose(pairs_back, pairs.T, atol=1e-14)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_epig(weights):
    keywords = {"weights": weights, "target_weights": TARGET_WEIGHTS}
    assert_array_equal(
        epig(POOL, TARGET, **keywords),
        expected_uncertainty_reduction(POOL, TARGET, "log_loss", **keywords),
    )


def test_many_steps_come_near_to_knowing_the_member():
    p = beliefs(3, 4, seed=5)[1:]
    for name, (keywords, *_) in CASES.items():
        steps = [
            expected_uncertainty_reduction(
                p, TARGET, n_steps=n, pairwise=True, **keywords
            )
            for n in (1, 4, 12)
        ]
        assert (np.diff(steps, axis=0) > -1e-12).all(), name
    known = bald(TARGET).mean()
    assert (epig(p, TARGET) < 0.7 * known).all()
    many = expected_uncertainty_reduction(p, TARGET, n_steps=12)
    assert (many > 0.75 * known).all() and (many <= known + 1e-12).all()


def test_labels_that_hardly_come():
    for sure in ([[1.0, 1e-80], [1.0, 1e-81]], [[1.0, 1e-310], [1.0, 1e-312]]):
        for n_steps in (1, 4):
            for keywords, *_ in CASES.values():
                got = expected_uncertainty_reduction(
                    [sure], TARGET[:, :2], n_steps=n_steps, **keywords
                )
                assert_allclose(got, 0, atol=1e-12)


@pytest.mark.parametrize("n_steps", [2, 40])
def test_sure_members_and_many_steps(n_steps):
    p = np.random.default_rng(0).dirichlet(np.full(3, 0.01), size=(20, 4))
    for keywords, *_ in CASES.values():
        got = expected_uncertainty_reduction(p, TARGET, n_steps=n_steps, **keywords)
        assert np.isfinite(got).all() and (got >= 0).all()


@pytest.mark.parametrize("loss", ["log_loss", "brier", "zero_one"])
def test_more_than_a_thousand_steps(loss):
    # Either counted, or refused by name: not an overflow.
    p = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    try:
        got = expected_uncertainty_reduction(p, p, loss, n_steps=1500)
    except ValueError as error:
        assert "n_steps" in str(error)
    else:
        every = {"log_loss": bald(p)[0], "brier": 0.32, "zero_one": 0.4}[loss]
        assert_allclose(got, every, rtol=1e-9)


@pytest.mark.parametrize("loss", ["crps", "squared_error", "absolute_error"])
def test_targets_of_one_outcome(loss):
    got = expected_uncertainty_reduction(
        POOL, np.ones((2, 4, 1)), loss, outcomes=[3.0], pairwise=True
    )
    assert_array_equal(got, np.zeros((6, 2)))
    assert_array_equal(predictive_uncertainty([[1.0]], loss, outcomes=[3.0]), 0)


@BY_LOSS
@pytest.mark.parametrize("n_steps", [1, 2])
def test_blocks_change_nothing(case, n_steps, monkeypatch):
    pool, target = beliefs(23, 4, n_classes=3), beliefs(17, 4)
    keywords = {"n_steps": n_steps, "weights": WEIGHTS, **case[0]}
    target_weights = np.arange(17.0)

    def both():
        return (
            expected_uncertainty_reduction(pool, target, pairwise=True, **keywords),
            expected_uncertainty_reduction(
                pool, target, target_weights=target_weights, **keywords
            ),
        )

    whole = both()
    shapes = []

    def watched(loss, joint, *rest, tables=_gains.tables):
        shapes.append((joint.shape[0], joint.shape[3]))
        return tables(loss, joint, *rest)

    monkeypatch.setattr(_gains, "tables", watched)
    monkeypatch.setattr(_gains, "LARGEST_MIB", 5 * 8 * 3 / 2**20)
    monkeypatch.setattr(_gains, "TABLE_MIB", 2000 / 2**20)
    parts = both()
    assert max(n for n, _ in shapes) < 23 and max(t for _, t in shapes) < 17
    for one, other in zip(whole, parts):
        assert_allclose(one, other, atol=1e-13)


def test_memory_of_the_tables(monkeypatch):
    sizes = []

    def watched(loss, joint, *rest, tables=_gains.tables):
        sizes.append(joint.nbytes)
        return tables(loss, joint, *rest)

    monkeypatch.setattr(_gains, "tables", watched)
    epig(beliefs(300, 4, 10), beliefs(2000, 4, 10))
    assert max(sizes) <= 32 * 2**20
    assert len(sizes) > 10


@pytest.mark.parametrize("loss", ["log_loss", "brier", "zero_one"])
def test_standard_errors(loss):
    result = expected_uncertainty_reduction(
        POOL, TARGET, loss, weights=WEIGHTS, return_se=True
    )
    assert set(result) == {"reduction", "member_se", "target_se", "ties"}
    for name in ("reduction", "member_se", "target_se"):
        assert result[name].shape == (6,)
        assert (result[name] >= 0).all()
    assert_array_equal(
        result.reduction,
        expected_uncertainty_reduction(POOL, TARGET, loss, weights=WEIGHTS),
    )


def test_member_se_of_few_equal_members_leaves_out_each():
    n = 7
    pool, target = beliefs(5, n, 3, seed=1), beliefs(4, n, seed=2)
    result = expected_uncertainty_reduction(pool, target, "brier", return_se=True)
    left = np.array(
        [
            expected_uncertainty_reduction(
                np.delete(pool, k, axis=1), np.delete(target, k, axis=1), "brier"
            )
            for k in range(n)
        ]
    )
    se = np.sqrt((n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    assert_allclose(result.member_se, se, rtol=1e-9)


def test_member_se_is_that_of_draws():
    rng = np.random.default_rng(3)

    def draw():
        # One parameter of a member for all points: a chance from Beta(2, 3).
        chance = rng.beta(2, 3, size=60)
        p = np.stack([chance, 1 - chance], axis=-1)
        return np.stack([p, p**2 / (p**2).sum(axis=-1, keepdims=True)])

    results = []
    for _ in range(300):
        p = draw()
        results.append(expected_uncertainty_reduction(p, p, return_se=True))
    spread = np.std([r.reduction for r in results], axis=0)
    se = np.sqrt(np.mean([r.member_se**2 for r in results], axis=0))
    assert_allclose(se, spread, rtol=0.2)


def test_target_se_is_that_of_a_mean():
    target = beliefs(9, 4, seed=2)
    pairs = expected_uncertainty_reduction(POOL, target, "brier", pairwise=True)
    result = expected_uncertainty_reduction(POOL, target, "brier", return_se=True)
    assert_allclose(result.target_se, pairs.std(axis=1, ddof=1) / 3, rtol=1e-12)
    weights = np.arange(1.0, 10)
    result = expected_uncertainty_reduction(
        POOL, target, "brier", return_se=True, target_weights=weights
    )
    w = weights / weights.sum()
    rest = pairs - (pairs @ w)[:, None]
    se = np.sqrt(((w * rest) ** 2).sum(axis=1) * 9 / 8)
    assert_allclose(result.target_se, se, rtol=1e-12)


def test_ties():
    p = np.array(
        [
            [[0.9, 0.1], [0.8, 0.2]],
            [[0.9, 0.1], [0.9, 0.1]],
            [[0.9, 0.1], [0.1, 0.9]],
            [[0.7, 0.3], [0.9, 0.1]],
        ]
    )
    target = [[[0.9, 0.1], [0.4, 0.6]]] * 2
    result = expected_uncertainty_reduction(p, target, "zero_one", return_se=True)
    assert result.ties == 0.75
    assert (result.reduction[[0, 1, 3]] == 0).all() and result.reduction[2] > 0
    result = expected_uncertainty_reduction(p, target, "brier", return_se=True)
    assert result.ties == 0


def test_standard_errors_without_the_members_of_no_weight():
    pool, target = beliefs(5, 12, 3, seed=1), beliefs(4, 12, seed=2)
    for some in ([0, 10], [0, 3, 10, 11], list(range(11))):
        weights = np.zeros(12)
        weights[some] = np.arange(1, len(some) + 1)
        got = expected_uncertainty_reduction(
            pool, target, weights=weights, return_se=True
        )
        few = expected_uncertainty_reduction(
            pool[:, some], target[:, some], weights=weights[some], return_se=True
        )
        for name in ("reduction", "member_se", "target_se"):
            assert_allclose(got[name], few[name], rtol=1e-10, atol=1e-15)


@BY_LOSS
def test_identical_members_have_nothing_to_learn(case):
    pool = np.repeat(beliefs(8, 1, 3), 7, axis=1)
    target = np.repeat(beliefs(6, 1), 7, axis=1)
    weights = np.random.default_rng(0).random(7)
    for keywords in (case[0], {**case[0], "weights": weights}):
        for one, other in (
            (pool, target),
            (pool, beliefs(6, 7)),
            (beliefs(8, 7, 3), target),
        ):
            got = expected_uncertainty_reduction(one, other, pairwise=True, **keywords)
            assert_array_equal(got, np.zeros((8, 6)))


def test_inputs_of_any_layout_stay_as_they_are():
    pool, target = POOL.copy(), TARGET.copy()
    weights, target_weights = WEIGHTS.copy(), TARGET_WEIGHTS.copy()
    for array in (pool, target, weights, target_weights):
        array.setflags(write=False)
    for keywords, *_ in CASES.values():
        for n_steps in (1, 2):
            more = {"weights": weights, "n_steps": n_steps, **keywords}
            more["target_weights"] = target_weights
            one = expected_uncertainty_reduction(pool, target, **more)
            other = expected_uncertainty_reduction(
                np.asfortranarray(np.repeat(pool, 2, axis=0))[::2],
                target[:, :, ::-1][:, :, ::-1],
                **more,
            )
            assert_allclose(one, other, atol=1e-14)
    assert_array_equal(pool, POOL)
    assert_array_equal(target, TARGET)


def test_a_callable_may_not_be_concave():
    p = [[[1.0, 0.0], [0.0, 1.0]]]
    for more in ({}, {"pairwise": True}, {"n_steps": 2}):
        with pytest.warns(UserWarning, match="loss is not concave"):
            expected_uncertainty_reduction(p, p, lambda p: (p**2).sum(axis=-1), **more)


@pytest.mark.parametrize("loss", ["squared_error", "crps", "absolute_error"])
def test_numbers_far_from_zero(loss):
    near = expected_uncertainty_reduction(POOL, TARGET, loss, outcomes=OUTCOMES)
    far = expected_uncertainty_reduction(POOL, TARGET, loss, outcomes=1e9 + OUTCOMES)
    assert_allclose(far, near, rtol=1e-6)


def test_a_callable_gets_beliefs_also_for_labels_that_never_come():
    def h(p):
        assert_allclose(p.sum(axis=-1), 1, rtol=1e-12)
        return 1 - (p**2).sum(axis=-1)

    pool = np.concatenate([POOL, np.zeros((6, 4, 1))], axis=-1)
    got = expected_uncertainty_reduction(pool, TARGET, h)
    brier = expected_uncertainty_reduction(POOL, TARGET, "brier")
    assert_allclose(got, brier, atol=1e-13)


def test_a_callable_that_is_all_but_concave():
    p = [[[0.6, 0.4], [0.4, 0.6]]]
    with pytest.warns(UserWarning, match="is -8e-05"):
        got = expected_uncertainty_reduction(
            p, p, lambda p: 1 + 0.1 * (p**2).sum(axis=-1)
        )
    assert -1e-3 < got[0] < -1e-5
    with pytest.warns(UserWarning, match="loss is not concave"):
        got = uncertainty_decomposition(p, lambda p: 1 + 1e-6 * (p**2).sum(axis=-1))
    assert -1e-7 < got.reducible[0] < 0


def test_one_label_may_change_no_decision_but_several_do():
    p = np.array([[[0.8, 0.2], [0.6, 0.4]]])
    target = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    steps = [
        expected_uncertainty_reduction(p, target, "zero_one", n_steps=n)[0]
        for n in (1, 2, 3, 12)
    ]
    slowly = [
        reference.pairwise(p, target, None, lambda q: 1 - max(q), n)[0, 0]
        for n in (1, 2, 3, 12)
    ]
    assert_allclose(steps, slowly, atol=1e-12)


def test_cost_of_an_error_is_zero_one():
    keywords = {"loss": "cost", "cost_matrix": 1 - np.eye(5), "n_steps": 2}
    assert_allclose(
        expected_uncertainty_reduction(POOL, TARGET, **keywords),
        expected_uncertainty_reduction(POOL, TARGET, "zero_one", n_steps=2),
        atol=1e-14,
    )


def test_costs_and_outcomes_are_those_of_the_targets():
    got = expected_uncertainty_reduction(POOL, TARGET, "cost", cost_matrix=COSTS)
    more = expected_uncertainty_reduction(
        POOL, TARGET, "cost", cost_matrix=np.vstack([COSTS, COSTS + 1])
    )
    assert_allclose(got, more, atol=1e-14)
    # A cost that depends only on what comes changes no reduction.
    shifted = COSTS + OUTCOMES**2
    shifted = expected_uncertainty_reduction(POOL, TARGET, "cost", cost_matrix=shifted)
    assert_allclose(got, shifted, atol=1e-13)


def test_the_warning_is_of_the_line_of_the_user():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=(4, 5))

    def convex(p):
        return (p**2).sum(axis=-1)

    calls = [
        lambda: uncertainty_decomposition(p, convex),
        lambda: expected_uncertainty_reduction(p, p, convex),
        lambda: expected_uncertainty_reduction(p, p, convex, pairwise=True),
        lambda: batch_eur(p, p, 1, convex),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="loss is not concave") as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}
