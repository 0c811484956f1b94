"""Uncertainties, actions, scores and decompositions of beliefs over classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import xlogy
from scipy.stats import t

from skextra.uncertainty import (
    BregmanLoss,
    PinballLoss,
    WeightedSquaredError,
    bald,
    optimal_action,
    predictive_uncertainty,
    score_decomposition,
    uncertainty_decomposition,
)
from tests.uncertainty import reference
from tests.uncertainty.common import (
    BY_LOSS,
    BY_LOSS_WITH_ACTION,
    CASES,
    COSTS,
    OUTCOMES,
    POSITIVE,
    beliefs,
    gini,
    heavy_tail,
    positive_part,
    slow,
)

WEIGHTS = np.array([0.5, 2.0, 1.0, 0.1])


def losses_of(action, case):
    """Loss of one action for each of the five classes."""
    keywords, loss, outcomes = case
    name, *parameters = loss if isinstance(loss, tuple) else (loss,)
    if name == "log_loss":
        with np.errstate(divide="ignore"):
            return -np.log(action)
    if name == "brier":
        return ((action - np.eye(5)) ** 2).sum(axis=1)
    if name == "zero_one":
        return 1.0 - np.eye(5)[action]
    if name == "cost":
        return COSTS[action]
    if name == "squared_error":
        return (action - outcomes) ** 2
    if name == "absolute_error":
        return np.abs(action - outcomes)
    if name == "pinball":
        return np.array([reference.pinball(action, z, *parameters) for z in outcomes])
    if name == "crps":
        grid = np.linspace(-2, 6, 160001)
        F = sum(m * (grid >= z) for m, z in zip(action, outcomes))
        return np.array([((F - (grid >= z)) ** 2).sum() * 5e-5 for z in outcomes])
    return keywords["loss"].of(np.full(5, action), outcomes)


@BY_LOSS
def test_uncertainty_is_its_definition(case):
    p = beliefs(6, 4)
    h = slow(case)
    flat = p.reshape(-1, 5)
    assert_allclose(
        predictive_uncertainty(flat, **case[0]), [h(x) for x in flat], atol=1e-12
    )
    for weights in (None, WEIGHTS):
        mean = [reference.shares(weights, 4) @ x for x in p]
        got = predictive_uncertainty(p, weights=weights, **case[0])
        assert_allclose(got, [h(x) for x in mean], atol=1e-12)


@BY_LOSS_WITH_ACTION
def test_action_attains_the_uncertainty(case):
    p = beliefs(5, 1, seed=3)[:, 0]
    actions = optimal_action(p, **case[0])
    tolerance = 1e-3 if case[1] == ("crps",) else 1e-12
    h = predictive_uncertainty(p, **case[0])
    for x, action, least in zip(p, actions, h):
        losses = losses_of(action, case)
        assert abs(x[x > 0] @ losses[x > 0] - least) < tolerance


@BY_LOSS_WITH_ACTION
def test_no_other_action_is_better(case):
    p = beliefs(5, 1, seed=4)[:, 0]
    h = predictive_uncertainty(p, **case[0])
    actions = optimal_action(p, **case[0])
    rng = np.random.default_rng(0)
    slack = 1e-3 if case[1] == ("crps",) else 1e-12
    for x, action, least in zip(p, actions, h):
        if case[0]["loss"] == "zero_one":
            others = range(5)
        elif case[0]["loss"] == "cost":
            others = range(4)
        elif np.ndim(action):
            others = [0.9 * action + 0.1 * q for q in rng.dirichlet(np.ones(5), 5)]
        else:
            others = [*(action + np.array([-0.3, -1e-3, 1e-3, 0.3])), *case[2]]
        for other in others:
            losses = losses_of(other, case)
            assert x[x > 0] @ losses[x > 0] >= least - slack


@pytest.mark.parametrize("name", ["kl", "itakura_saito", "weighted", "positive_part"])
def test_bregman_losses_against_a_grid_of_actions(name):
    keywords, _, outcomes = CASES[name]
    p = beliefs(4, 1, seed=5)[1:, 0]
    grid = np.linspace(max(outcomes.min(), 0.01), outcomes.max(), 40001)
    losses = keywords["loss"].of(*np.broadcast_arrays(grid[:, None], outcomes))
    table = p @ losses.T
    assert_allclose(predictive_uncertainty(p, **keywords), table.min(1), atol=1e-7)
    assert_allclose(optimal_action(p, **keywords), grid[table.argmin(1)], atol=2e-4)


def test_shapes_and_types_of_actions():
    p = beliefs(6, 4)
    for loss in ("log_loss", "brier"):
        assert_allclose(optimal_action(p, loss), p.mean(axis=1), rtol=1e-14)
    for keywords in ({"loss": "zero_one"}, {"loss": "cost", "cost_matrix": COSTS}):
        action = optimal_action(p, **keywords)
        assert action.shape == (6,) and action.dtype.kind == "i"
    action = optimal_action(p, PinballLoss(0.3), outcomes=OUTCOMES)
    assert np.isin(action, OUTCOMES).all()
    assert_array_equal(
        action, [reference.quantile(x, OUTCOMES, 0.3) for x in p.mean(axis=1)]
    )


def test_ties_go_to_the_lowest():
    assert optimal_action([[0.4, 0.2, 0.4]], "zero_one")[0] == 0
    costs = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    assert optimal_action([[0.5, 0.5]], "cost", cost_matrix=costs)[0] == 0
    assert optimal_action([[0.5, 0.5]], "absolute_error", outcomes=[9, 2])[0] == 2


def test_nothing_has_weight():
    loss = WeightedSquaredError("positive_part")
    p = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    for kind in (loss, BregmanLoss(np.square, w=positive_part)):
        assert_array_equal(optimal_action(p, kind, outcomes=[-2, -1, 4]), 0)
        assert_array_equal(predictive_uncertainty(p, kind, outcomes=[-2, -1, 4]), 0)
    result = score_decomposition(p, [[0, 0, 1.0]] * 2, loss, outcomes=[-2, -1, 4])
    assert_allclose(result.score, 64)  # weight 4, action 0


@BY_LOSS_WITH_ACTION
def test_score_decomposition(case):
    p_pred, p_eval = beliefs(6, 2, seed=6).swapaxes(0, 1)
    p_pred[0] = 0.2  # that of a belief of 0 is infinite
    result = score_decomposition(p_pred, p_eval, **case[0])
    assert set(result) == {"score", "discrepancy", "dispersion", "uncertainty"}
    assert_allclose(result.score, result.discrepancy + result.dispersion, atol=1e-12)
    assert (result.discrepancy >= 0).all()
    h = slow(case)
    assert_allclose(result.dispersion, [h(x) for x in p_eval], atol=1e-12)
    assert_allclose(result.uncertainty, [h(x) for x in p_pred], atol=1e-12)
    actions = optimal_action(p_pred, **case[0])
    score = [q @ losses_of(a, case) for q, a in zip(p_eval, actions)]
    tolerance = 2e-3 if case[1] == ("crps",) else 1e-11
    assert_allclose(result.score, score, atol=tolerance)


@BY_LOSS_WITH_ACTION
def test_the_score_of_the_truth_is_its_dispersion(case):
    p = beliefs(6, 2, seed=7)[:, 1]
    result = score_decomposition(p, p, **case[0])
    assert_allclose(result.discrepancy, 0, atol=1e-13)
    assert_allclose(result.score, result.uncertainty, atol=1e-13)


def test_score_of_a_single_outcome():
    p = np.array([[0.7, 0.2, 0.1]])
    came = np.array([[0.0, 1.0, 0.0]])
    assert_allclose(score_decomposition(p, came).score, -np.log(0.2))
    assert_allclose(score_decomposition(p, came).discrepancy, -np.log(0.2))
    assert score_decomposition(p, came, "zero_one").score == 1
    assert_allclose(score_decomposition(p, came, "brier").score, 0.49 + 0.64 + 0.01)


def test_score_of_a_belief_that_rules_out_what_comes():
    result = score_decomposition([[1.0, 0.0]], [[0.5, 0.5]])
    assert result.score == np.inf and result.discrepancy == np.inf
    assert_allclose(result.dispersion, np.log(2))
    assert result.uncertainty == 0


def test_callables_have_no_score_and_no_action():
    with pytest.raises(ValueError, match="callable has no action"):
        optimal_action([[0.5, 0.5]], gini)
    with pytest.raises(ValueError, match="callable has no action"):
        score_decomposition([[0.5, 0.5]], [[0.5, 0.5]], gini)


def test_a_bregman_loss_without_grad_has_no_score():
    loss = BregmanLoss(np.square)
    assert_allclose(predictive_uncertainty([[0.5, 0.5]], loss, outcomes=[0, 2]), 1)
    with pytest.raises(ValueError, match="grad"):
        score_decomposition([[0.5, 0.5]], [[0.5, 0.5]], loss, outcomes=[0, 2])


def test_cost_of_an_error_is_zero_one():
    p = beliefs(7, 5)
    keywords = {"loss": "cost", "cost_matrix": 1 - np.eye(5)}
    assert_allclose(
        predictive_uncertainty(p, **keywords),
        predictive_uncertainty(p, "zero_one"),
        atol=1e-15,
    )
    assert_array_equal(optimal_action(p, **keywords), optimal_action(p, "zero_one"))
    for part, other in zip(
        uncertainty_decomposition(p, **keywords).values(),
        uncertainty_decomposition(p, "zero_one").values(),
    ):
        assert_allclose(part, other, atol=1e-15)


def test_losses_that_are_the_same():
    p = beliefs(7, 5)
    squared = predictive_uncertainty(p, "squared_error", outcomes=OUTCOMES)
    for loss in (
        WeightedSquaredError(np.ones_like),
        BregmanLoss(np.square),
        BregmanLoss(lambda z: z**2 - 3 * z + 5),
    ):
        assert_allclose(predictive_uncertainty(p, loss, outcomes=OUTCOMES), squared)
    median = predictive_uncertainty(p, PinballLoss(), outcomes=OUTCOMES)
    assert_allclose(
        predictive_uncertainty(p, "absolute_error", outcomes=OUTCOMES), 2 * median
    )
    two = beliefs(7, 5, n_classes=2)
    brier = predictive_uncertainty(two, "brier") / 2
    for loss in ("crps", "squared_error"):
        assert_allclose(predictive_uncertainty(two, loss, outcomes=[3, 4]), brier)


@pytest.mark.parametrize("far", [1e6, -1e9])
def test_numbers_far_from_zero(far):
    p = beliefs(7, 5)
    for loss in ("squared_error", "crps", "absolute_error", PinballLoss(0.2)):
        near = uncertainty_decomposition(p, loss, outcomes=OUTCOMES)
        there = uncertainty_decomposition(p, loss, outcomes=far + OUTCOMES)
        for name in near:
            assert_allclose(there[name], near[name], rtol=1e-6, atol=1e-12)
    loss = WeightedSquaredError(lambda z: np.abs(z - far))
    near = WeightedSquaredError(np.abs)
    assert_allclose(
        predictive_uncertainty(p, loss, outcomes=far + OUTCOMES),
        predictive_uncertainty(p, near, outcomes=OUTCOMES),
        rtol=1e-6,
    )
    assert_allclose(
        optimal_action(p, loss, outcomes=far + OUTCOMES) - far,
        optimal_action(p, near, outcomes=OUTCOMES),
        atol=1e-6,
    )


@BY_LOSS
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_decomposition_is_its_definition(case, weights):
    p = beliefs(6, 4)
    result = uncertainty_decomposition(p, weights=weights, **case[0])
    slowly = [reference.decomposition(x, weights, slow(case)) for x in p]
    for name, values in zip(("total", "irreducible", "reducible"), zip(*slowly)):
        assert_allclose(result[name], values, atol=1e-12)
    assert set(result) == {"total", "irreducible", "reducible"}
    assert (result.reducible >= 0).all()


def test_bald():
    p = beliefs(9, 4)
    for weights in (None, WEIGHTS):
        result = uncertainty_decomposition(p, weights=weights)
        assert_array_equal(bald(p, weights=weights), result.reducible)
        slowly = [reference.joint_information(x[None], weights) for x in p]
        assert_allclose(bald(p, weights=weights), slowly, atol=1e-13)


@BY_LOSS
def test_identical_members_have_nothing_to_learn(case):
    p = np.repeat(beliefs(20, 1, concentration=0.1), 7, axis=1)
    weights = np.random.default_rng(0).random(7)
    result = uncertainty_decomposition(p, weights=weights, **case[0])
    assert_allclose(result.reducible, 0, atol=1e-15)
    assert_allclose(result.total, result.irreducible, atol=1e-14)


def test_members_of_no_weight_are_left_out():
    p = beliefs(6, 5)
    weights = np.array([1.0, 0.0, 2.0, 0.0, 3.0])
    for keywords in ({}, {"return_se": True, "bias_correction": "jackknife"}):
        for loss in ("log_loss", "brier"):
            got = uncertainty_decomposition(p, loss, weights=weights, **keywords)
            few = uncertainty_decomposition(
                p[:, [0, 2, 4]], loss, weights=[1, 2, 3], **keywords
            )
            for name in ("total", "irreducible", "reducible"):
                assert_allclose(got[name], few[name], rtol=1e-13, atol=1e-15)
    assert_allclose(
        bald(p, weights=weights), bald(p[:, [0, 2, 4]], weights=[1, 2, 3]), rtol=1e-13
    )


def leave_one_out(p, h):
    """Corrected parts and standard errors of one belief (K, C) of equal members."""
    n = len(p)
    whole = np.array(reference.decomposition(p, None, h))
    left = np.array(
        [reference.decomposition(np.delete(p, k, axis=0), None, h) for k in range(n)]
    )
    corrected = n * whole - (n - 1) * left.mean(axis=0)
    se = np.sqrt((n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    return corrected, se


@BY_LOSS
def test_jackknife_of_equal_members(case):
    p = beliefs(4, 6)
    result = uncertainty_decomposition(
        p, bias_correction="jackknife", return_se=True, **case[0]
    )
    slowly = [leave_one_out(x, slow(case)) for x in p]
    for j, name in enumerate(("total", "irreducible", "reducible")):
        assert_allclose(result[name], [row[0][j] for row in slowly], atol=1e-11)
        assert_allclose(result.se[name], [row[1][j] for row in slowly], atol=1e-11)
    plain = uncertainty_decomposition(p, return_se=True, **case[0])
    for name in ("total", "irreducible", "reducible"):
        assert_array_equal(plain.se[name], result.se[name])
        assert_array_equal(plain[name], uncertainty_decomposition(p, **case[0])[name])
    assert "se" not in uncertainty_decomposition(
        p, bias_correction="jackknife", **case[0]
    )


def test_jackknife_of_weighted_members_is_without_bias_for_brier():
    # E[sum of squares of a weighted mean] - square of the mean is the variance times the
    # sum of squared weights: the jackknife removes exactly that.
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 2.0, 3.0, 0.5, 1.5])
    p = rng.dirichlet([0.3, 2, 5], size=(20000, 5))
    result = uncertainty_decomposition(
        p, "brier", weights=weights, bias_correction="jackknife", return_se=True
    )
    mean = np.array([0.3, 2, 5]) / 7.3
    truth = 1 - (mean**2).sum()
    error = result.total.std() / np.sqrt(20000)
    assert abs(result.total.mean() - truth) < 4 * error
    plain = uncertainty_decomposition(p, "brier", weights=weights).total
    assert abs(plain.mean() - truth) > 20 * error


def test_jackknife_of_squares_takes_out_those_of_the_members():
    # Without bias, a mean square holds no square of a member's own: of members that
    # share nothing it is 0.
    for weights in ([1.0, 2.0, 30.0, 0.5, 1.5], None):
        result = uncertainty_decomposition(
            np.eye(5)[None], "brier", weights=weights, bias_correction="jackknife"
        )
        assert_allclose(result.total, 1, rtol=1e-12)


def test_jackknife_leaves_a_weighted_mean_as_it_is():
    # The mean over members has no bias, whatever their weights.
    weights = np.array([1.0, 2.0, 30.0, 0.5, 1.5])
    p = beliefs(6, 5)
    for loss in ("log_loss", "brier", "zero_one"):
        plain = uncertainty_decomposition(p, loss, weights=weights)
        result = uncertainty_decomposition(
            p, loss, weights=weights, bias_correction="jackknife"
        )
        assert_allclose(result.irreducible, plain.irreducible, rtol=1e-12, atol=1e-14)
        assert_allclose(
            result.total - result.irreducible, result.reducible, rtol=1e-11, atol=1e-13
        )


def test_standard_errors_of_weighted_members():
    rng = np.random.default_rng(1)
    weights = np.array([1.0, 2.0, 3.0, 1.5, 1.0, 1.0, 2.0, 2.5])
    p = rng.dirichlet([2, 2, 5], size=(20000, 8))
    result = uncertainty_decomposition(p, "brier", weights=weights, return_se=True)
    for name in ("total", "irreducible"):
        assert_allclose(
            np.sqrt((result.se[name] ** 2).mean()), result[name].std(), rtol=0.05
        )


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(2)
    total, irreducible = reference.dirichlet_entropies([0.3, 2, 5])
    # Share of intervals with quantiles of Student's t, and with 1.96.
    shares = {5: (0.815, 0.73), 10: (0.86, 0.83), 20: (0.90, 0.88), 50: (0.92, 0.92)}
    for n_members, (by_t, by_normal) in shares.items():
        p = rng.dirichlet([0.3, 2, 5], size=(6000, n_members))
        result = uncertainty_decomposition(
            p, bias_correction="jackknife", return_se=True
        )
        off = np.abs(result.reducible - (total - irreducible)) / result.se.reducible
        inside = (off < t.ppf(0.975, n_members - 1)).mean()
        assert abs(inside - by_t) < 0.02
        assert abs((off < 1.96).mean() - by_normal) < 0.02


def test_a_callable_that_is_not_concave_is_told():
    p = [[[1.0, 0.0], [0.0, 1.0]]]
    with pytest.warns(UserWarning, match="loss is not concave"):
        uncertainty_decomposition(p, lambda p: (p**2).sum(axis=-1))


@pytest.mark.parametrize("name", ["weighted", "kl", "itakura_saito"])
def test_no_warning_where_rounding_alone_is_below_zero(name):
    p = np.repeat(beliefs(50, 1, concentration=0.01), 7, axis=1)
    result = uncertainty_decomposition(p, **CASES[name][0])
    assert (result.reducible == 0).all()


def test_outcomes_in_any_order():
    p = beliefs(6, 4)
    order = np.array([3, 1, 4, 0, 2])
    for keywords, _, outcomes in CASES.values():
        if outcomes is None:
            continue
        moved = {**keywords, "outcomes": outcomes[order]}
        one = uncertainty_decomposition(p, **keywords)
        other = uncertainty_decomposition(p[..., order], **moved)
        for name in one:
            assert_allclose(one[name], other[name], atol=1e-13)


def test_pointwise_losses():
    a, z = np.array([1.0, 2.0]), np.array([3.0, 1.0])
    assert_allclose(PinballLoss(0.8).of(a, z), [1.6, 0.2])
    assert_allclose(WeightedSquaredError(heavy_tail).of(a, z), [4 * 9.2, 1.2])
    assert_allclose(WeightedSquaredError("positive_part").of(a, [-1, -2.0]), 0)
    kl = CASES["kl"][0]["loss"].of(a, z)
    assert_allclose(kl, xlogy(z, z / a) - z + a)
    loss = CASES["itakura_saito"][0]["loss"]
    assert_allclose(loss.of(a, z), np.sqrt(z) * (z / a - np.log(z / a) - 1))
    assert (loss.of(*np.meshgrid(POSITIVE, POSITIVE)) >= 0).all()


@pytest.mark.parametrize("loss", ["log_loss", "zero_one", "brier"])
def test_sure_beliefs_have_no_uncertainty_whatever_the_number_of_members(loss):
    for n_members in range(2, 120):
        p = np.tile([1.0, 0.0, 0.0], (1, n_members, 1))
        assert predictive_uncertainty(p, loss) == 0
        assert uncertainty_decomposition(p, loss).total == 0
