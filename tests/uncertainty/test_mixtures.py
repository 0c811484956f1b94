"""Mixtures of normal distributions against quadrature, refits and many digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy
from scipy.stats import norm

from skextra.uncertainty import (
    BregmanLoss,
    PinballLoss,
    WeightedSquaredError,
    mixture_action,
    mixture_decomposition,
    mixture_eur,
    mixture_uncertainty,
)
from tests.uncertainty import reference

POSITIVE_PART = WeightedSquaredError("positive_part")
SMOOTH = WeightedSquaredError(lambda z: 1 + z**2)
EXPONENTIAL = BregmanLoss(np.exp, np.exp, w=lambda z: 1 + z**2)
LOSSES = {
    "squared_error": "squared_error",
    "absolute_error": "absolute_error",
    "crps": "crps",
    "log_loss": "log_loss",
    "pinball": PinballLoss(0.8),
    "positive_part": POSITIVE_PART,
    "smooth": SMOOTH,
    "exponential": EXPONENTIAL,
}
BY_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=(4, 3)) * 1.5
VAR = RNG.uniform(0.05, 2, size=(4, 3))
WEIGHTS = np.array([1.0, 0.4, 2.0])


def pointwise(loss):
    """Loss of an action and an outcome."""
    if loss == "squared_error":
        return lambda a, z: (z - a) ** 2
    if loss == "absolute_error":
        return lambda a, z: abs(z - a)
    return lambda a, z: float(loss.of(a, z))


def slow_uncertainty(loss, mean, std, weights):
    """Uncertainty and action of one mixture, by quadrature and a search."""
    weights = weights / weights.sum()

    def expected(function):
        return reference.mixture_expectation(function, mean, std, weights)

    if loss == "log_loss":
        return reference.mixture_entropy(mean, std, weights), expected(lambda z: z)
    if loss == "crps":
        return reference.mixture_crps(mean, std, weights), expected(lambda z: z)
    if loss == "squared_error":
        action = expected(lambda z: z)
    elif loss == "absolute_error" or isinstance(loss, PinballLoss):
        tau = 0.5 if loss == "absolute_error" else loss.tau
        action = brentq(
            lambda z: reference.distribution(z, mean, std, weights) - tau,
            -50,
            50,
            xtol=1e-14,
        )
        low, high = mean.min() - 12 * std.max(), mean.max() + 12 * std.max()
        function = pointwise(loss)

        def term(z):
            d = reference.density(z, mean, std, weights)
            return function(action, z) * d

        points = sorted({low, *mean, action, high})
        parts = [quad(term, a, b, epsabs=1e-13) for a, b in zip(points, points[1:])]
        return sum(value for value, _ in parts), action
    else:

        def w(z):
            return float(loss.weight(np.array([z]))[0])

        points = [*mean, 0.0] if loss is POSITIVE_PART else mean
        stds = [*std, std.min()] if loss is POSITIVE_PART else std

        def both(function):
            return reference.integral(
                lambda z: w(z) * function(z) * reference.density(z, mean, std, weights),
                points,
                stds,
            )

        action = both(lambda z: z) / both(lambda z: 1.0)
        function = pointwise(loss)
        return both(lambda z: function(action, z) / max(w(z), 1e-300)), action
    return expected(lambda z: pointwise(loss)(action, z)), action


@BY_LOSS
def test_uncertainty_and_action_by_quadrature(loss):
    total = mixture_uncertainty(MEAN, VAR, loss, weights=WEIGHTS)
    action = mixture_action(MEAN, VAR, loss, weights=WEIGHTS)
    assert total.shape == action.shape == (4,)
    for i in range(4):
        h, a = slow_uncertainty(loss, MEAN[i], np.sqrt(VAR[i]), WEIGHTS)
        assert_allclose(total[i], h, rtol=1e-8, atol=1e-9)
        assert_allclose(action[i], a, rtol=1e-8, atol=1e-9)


@BY_LOSS
def test_decomposition(loss):
    result = mixture_decomposition(MEAN, VAR, loss, weights=WEIGHTS)
    assert set(result) == {"total", "irreducible", "reducible"}
    assert_allclose(
        result.total,
        mixture_uncertainty(MEAN, VAR, loss, weights=WEIGHTS),
        rtol=1e-13,
    )
    alone = np.stack(
        [mixture_uncertainty(MEAN[:, [k]], VAR[:, [k]], loss) for k in range(3)], axis=1
    )
    mean_alone = alone @ (WEIGHTS / WEIGHTS.sum())
    assert_allclose(result.irreducible, mean_alone, rtol=1e-9)
    assert_allclose(
        result.reducible, result.total - result.irreducible, rtol=1e-9, atol=1e-12
    )
    assert (result.reducible > 0).all()


def test_squared_error_is_the_law_of_total_variance():
    w = WEIGHTS / WEIGHTS.sum()
    result = mixture_decomposition(MEAN, VAR, weights=WEIGHTS)
    between = (MEAN**2) @ w - (MEAN @ w) ** 2
    assert_allclose(result.irreducible, VAR @ w, rtol=1e-14)
    assert_allclose(result.reducible, between, rtol=1e-12)
    far = mixture_decomposition(1e8 + MEAN, VAR, weights=WEIGHTS)
    assert_allclose(far.reducible, between, rtol=1e-6)


def test_one_normal_distribution_in_closed_form():
    mean, var = np.array([[0.3], [-2.0]]), np.array([[2.0], [0.1]])
    std = np.sqrt(var[:, 0])
    z = norm.ppf(0.8)
    exact = {
        "squared_error": var[:, 0],
        "absolute_error": np.sqrt(2 / np.pi) * std,
        "crps": std / np.sqrt(np.pi),
        "log_loss": norm.entropy(scale=std),
        "pinball": norm.pdf(z) * std,
    }
    for name, values in exact.items():
        loss = LOSSES[name]
        assert_allclose(mixture_uncertainty(mean, var, loss), values, rtol=1e-10)
        result = mixture_decomposition(mean, var, loss)
        assert_allclose(result.irreducible, values, rtol=1e-12)
        assert_allclose(result.reducible, 0, atol=1e-12)
    action = mixture_action(mean, var, PinballLoss(0.8))
    assert_allclose(action, mean[:, 0] + z * std, rtol=1e-12)


@pytest.mark.parametrize("loss", [POSITIVE_PART, SMOOTH, EXPONENTIAL])
def test_no_other_prediction_is_better(loss):
    i = 2
    std = np.sqrt(VAR[i])
    w = WEIGHTS / WEIGHTS.sum()
    z = np.linspace(-15, 15, 30001)
    d = np.array([reference.density(x, MEAN[i], std, w) for x in z])

    def expected(a):
        return (loss.of(np.full_like(z, a), z) * d).sum() * (z[1] - z[0])

    best = minimize_scalar(expected, bounds=(-5, 5), options={"xatol": 1e-9})
    action = mixture_action(MEAN[[i]], VAR[[i]], loss, weights=WEIGHTS)
    least = mixture_uncertainty(MEAN[[i]], VAR[[i]], loss, weights=WEIGHTS)
    assert_allclose(action, best.x, atol=1e-4)
    assert_allclose(least, best.fun, rtol=1e-5)


# -------------------------------------------------------------------- without variance


@pytest.mark.parametrize(
    "loss", [v for k, v in LOSSES.items() if k not in ("log_loss",)]
)
def test_members_without_variance_are_classes(loss):
    from skextra.uncertainty import uncertainty_decomposition

    mean = np.array([[0.5, 2.0, -1.0, 3.5]])
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    onehot = np.eye(4)[None]
    finite = uncertainty_decomposition(onehot, loss, outcomes=mean[0], weights=weights)
    result = mixture_decomposition(mean, 0.0, loss, weights=weights)
    for name in finite:
        assert_allclose(result[name], finite[name], rtol=1e-10, atol=1e-11)


def test_a_member_without_variance_beside_others():
    mean, var = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    for tau in (0.1, 0.6, 0.75, 0.9):
        action = mixture_action(mean, var, PinballLoss(tau))[0]
        below = (norm.cdf(action - 1e-9) + (action - 1e-9 >= 1)) / 2
        above = (norm.cdf(action + 1e-9) + (action + 1e-9 >= 1)) / 2
        assert below - 1e-9 <= tau <= above + 1e-9
    assert mixture_uncertainty(mean, var) == 0.5 + 0.25
    for loss in ("crps", "absolute_error", POSITIVE_PART, SMOOTH):
        near = mixture_decomposition(mean, [[1.0, 1e-12]], loss)
        got = mixture_decomposition(mean, var, loss)
        for name in got:
            assert_allclose(got[name], near[name], rtol=1e-5)
        eur = mixture_eur(mean, var, mean, var, loss)
        assert np.isfinite(eur).all() and (eur > 0).all()
        assert (eur <= got.reducible * 1.05).all()  # a grid does not see the jump


# --------------------------------------------------------------------------- jackknife


@BY_LOSS
def test_jackknife_leaves_out_members_one_by_one_while_they_are_few(loss):
    n = 5
    rng = np.random.default_rng(2)
    mean, var = rng.normal(size=(3, n)), rng.uniform(0.1, 1, size=(3, n))
    result = mixture_decomposition(
        mean, var, loss, bias_correction="jackknife", return_se=True
    )
    whole = mixture_decomposition(mean, var, loss)
    left = [
        mixture_decomposition(
            np.delete(mean, k, axis=1), np.delete(var, k, axis=1), loss
        )
        for k in range(n)
    ]
    for name in whole:
        each = np.array([part[name] for part in left])
        corrected = n * whole[name] - (n - 1) * each.mean(axis=0)
        assert_allclose(result[name], corrected, rtol=1e-8, atol=1e-9)
        se = np.sqrt((n - 1) / n * ((each - each.mean(axis=0)) ** 2).sum(axis=0))
        assert_allclose(result.se[name], se, rtol=1e-7, atol=1e-9)


def test_jackknife_of_the_variance_has_no_bias():
    rng = np.random.default_rng(3)
    mean = rng.normal(size=(20000, 25))
    result = mixture_decomposition(
        mean, 1.0, bias_correction="jackknife", return_se=True
    )
    assert_allclose(result.reducible.mean(), 1, atol=0.01)
    assert_allclose(result.total.mean(), 2, atol=0.01)
    assert_allclose(result.irreducible, 1, rtol=1e-12)
    plain = mixture_decomposition(mean, 1.0)
    assert_allclose(plain.reducible.mean(), 24 / 25, atol=0.01)
    assert_allclose(result.se.reducible.mean(), result.reducible.std(), rtol=0.1)


def test_members_of_no_weight_are_left_out():
    mean, var = np.tile(MEAN, 2), np.tile(VAR, 2)
    weights = np.concatenate([WEIGHTS, np.zeros(3)])
    for loss in LOSSES.values():
        one = mixture_decomposition(mean, var, loss, weights=weights, return_se=True)
        other = mixture_decomposition(MEAN, VAR, loss, weights=WEIGHTS, return_se=True)
        for name in ("total", "irreducible", "reducible"):
            assert_allclose(one[name], other[name], rtol=1e-12)
            assert_allclose(one.se[name], other.se[name], rtol=1e-9, atol=1e-14)
        assert_allclose(
            mixture_eur(mean, var, mean, var, loss, weights=weights),
            mixture_eur(MEAN, VAR, MEAN, VAR, loss, weights=WEIGHTS),
            rtol=1e-9,
        )


def test_gaussian_approximation():
    exact = mixture_uncertainty(MEAN, VAR, "log_loss")
    result = mixture_decomposition(MEAN, VAR, "log_loss", approx="gaussian")
    variance = mixture_uncertainty(MEAN, VAR)
    assert_allclose(result.total, norm.entropy(scale=np.sqrt(variance)), rtol=1e-13)
    assert (result.total > exact).all()
    assert_allclose(result.irreducible, norm.entropy(scale=np.sqrt(VAR)).mean(axis=1))
    assert_allclose(
        mixture_uncertainty(MEAN, VAR, "log_loss", approx="gaussian"), result.total
    )


# -------------------------------------------------------------------------- reductions


def refit(loss, pool, target, weights, n_nodes=301):
    """Reduction at one target by one label, integrated over the label finely."""
    (m, v), (mt, vt) = pool, target
    weights = weights / weights.sum()
    std = np.sqrt(v)
    y = np.linspace((m - 9 * std).min(), (m + 9 * std).max(), n_nodes)
    odds = weights * norm.pdf(y[:, None], m, std)
    mass = odds.sum(axis=1)
    some = mass > 1e-14 * mass.max()
    odds, mass = odds[some] / mass[some, None], mass[some] * (y[1] - y[0])
    after = [
        mixture_uncertainty(mt[None], vt[None], loss, weights=row)[0] for row in odds
    ]
    before = mixture_uncertainty(mt[None], vt[None], loss, weights=weights)[0]
    return before - mass @ after


@BY_LOSS
def test_eur_by_conditioning_on_the_label(loss):
    pool, target = (MEAN[:2], VAR[:2]), (MEAN[2:], VAR[2:])
    slowly = [
        [
            refit(loss, (pool[0][i], pool[1][i]), (target[0][j], target[1][j]), WEIGHTS)
            for j in range(2)
        ]
        for i in range(2)
    ]
    got = mixture_eur(*pool, *target, loss, weights=WEIGHTS, pairwise=True, n_cells=256)
    assert_allclose(got, slowly, rtol=0.03)
    target_weights = np.array([3.0, 1.0])
    mean = mixture_eur(
        *pool,
        *target,
        loss,
        weights=WEIGHTS,
        target_weights=target_weights,
        n_cells=256,
    )
    assert_allclose(mean, got @ [0.75, 0.25], rtol=1e-12)
    assert_allclose(
        mixture_eur(*pool, *target, loss, weights=WEIGHTS, n_cells=256),
        got.mean(axis=1),
        rtol=1e-12,
    )


@BY_LOSS
def test_more_cells_come_nearer(loss):
    keywords = {"loss": loss, "weights": WEIGHTS, "pairwise": True}
    got = [
        mixture_eur(MEAN, VAR, MEAN, VAR, n_cells=n, **keywords)
        for n in (16, 64, 256, 1024)
    ]
    steps = [np.abs(a - got[-1]).max() for a in got[:-1]]
    assert steps[0] > steps[1] > steps[2]
    assert steps[1] < 0.05 * got[-1].max() and steps[2] < 0.01 * got[-1].max()


def test_cells_only_lose_information():
    for loss in ("squared_error", "log_loss", POSITIVE_PART):
        got = [
            mixture_eur(MEAN, VAR, MEAN, VAR, loss, n_cells=n, pairwise=True)
            for n in (8, 16, 32, 64, 128)
        ]
        assert (np.diff(got, axis=0) > -1e-12).all()


def test_eur_that_tells_members_apart_is_all_that_is_reducible():
    mean = np.array([[-50.0, 0.0, 50.0]])
    for loss in LOSSES.values():
        everything = mixture_decomposition(MEAN, VAR, loss).reducible
        got = mixture_eur(mean, 1e-4, MEAN, VAR, loss, pairwise=True, n_cells=512)
        assert_allclose(got[0], everything, rtol=0.03)


def test_eur_of_the_log_loss_is_symmetric():
    keywords = {"loss": "log_loss", "weights": WEIGHTS, "pairwise": True}
    one = mixture_eur(MEAN[:2], VAR[:2], MEAN, VAR, **keywords)
    other = mixture_eur(MEAN, VAR, MEAN[:2], VAR[:2], **keywords)
    assert_allclose(one, other.T, rtol=1e-9)


@BY_LOSS
def test_identical_members_have_nothing_to_learn(loss):
    mean = np.repeat(RNG.normal(size=(20, 1)), 7, axis=1)
    var = np.repeat(RNG.uniform(0.1, 2, size=(20, 1)), 7, axis=1)
    result = mixture_decomposition(mean, var, loss)
    assert_allclose(result.reducible, 0, atol=1e-15)
    other = RNG.normal(size=(20, 7))
    for pool, target in (((other, 1.0), (mean, var)), ((mean, var), (other, 1.0))):
        assert_allclose(mixture_eur(*pool, *target, loss), 0, atol=5e-12)


@BY_LOSS
def test_translation_and_scale(loss):
    if loss is SMOOTH or loss is EXPONENTIAL or loss is POSITIVE_PART:
        shift, scale = 0.0, 1.0 if loss is not POSITIVE_PART else 100.0
    else:
        shift, scale = 30.0, 1e-3
    power = (
        {"squared_error": 2, "log_loss": 0}.get(loss, 1)
        if isinstance(loss, str)
        else (3 if loss is POSITIVE_PART else 1)
    )
    one = mixture_decomposition(MEAN, VAR, loss)
    other = mixture_decomposition(shift + scale * MEAN, scale**2 * VAR, loss)
    assert_allclose(other.reducible, scale**power * one.reducible, rtol=1e-7)
    if loss != "log_loss":
        assert_allclose(other.total, scale**power * one.total, rtol=1e-9)
    else:
        assert_allclose(other.total, one.total + np.log(scale), rtol=1e-9)
    assert_allclose(
        mixture_action(shift + scale * MEAN, scale**2 * VAR, loss),
        shift + scale * mixture_action(MEAN, VAR, loss),
        rtol=1e-8,
        atol=1e-10,
    )
    assert_allclose(
        mixture_eur(shift + scale * MEAN, scale**2 * VAR, MEAN, VAR, loss),
        mixture_eur(MEAN, VAR, MEAN, VAR, loss),
        rtol=1e-7,
    )


def test_many_rows_come_in_blocks():
    mean = RNG.normal(size=(3000, 40))
    for loss in (POSITIVE_PART, SMOOTH, EXPONENTIAL):
        got = mixture_uncertainty(mean, 0.5, loss)
        some = [0, 1023, 1500, 2999]
        assert_allclose(got[some], mixture_uncertainty(mean[some], 0.5, loss))


def test_variances_that_broadcast_and_arrays_that_stay():
    mean, var = MEAN.copy(), VAR[0].copy()
    mean.setflags(write=False)
    var.setflags(write=False)
    for loss in LOSSES.values():
        full = np.broadcast_to(var, mean.shape)
        one = mixture_decomposition(mean, var, loss, return_se=True)
        other = mixture_decomposition(
            np.asfortranarray(mean), np.array(full), loss, return_se=True
        )
        for name in ("total", "irreducible", "reducible"):
            assert_allclose(one[name], other[name], rtol=1e-13)
        assert_allclose(
            mixture_eur(mean, var, mean[:2], 0.5, loss),
            mixture_eur(mean, full, mean[:2], np.full((2, 3), 0.5), loss),
            rtol=1e-12,
        )
        column = mixture_uncertainty(mean, [[0.1], [0.2], [0.3], [0.4]], loss)
        assert_allclose(column[1], mixture_uncertainty(mean[[1]], 0.2, loss)[0])
    assert_array_equal(mean, MEAN)
    assert_array_equal(var, VAR[0])


def test_bregman_of_z_log_z_under_weights():
    # Outcomes all but surely above 0.
    loss = BregmanLoss(lambda z: xlogy(z, np.abs(z)))
    mean, std = np.array([9.0, 12.0]), np.array([1.0, 0.5])
    w = np.array([0.5, 0.5])
    phi = reference.mixture_expectation(lambda z: xlogy(z, abs(z)), mean, std, w)
    centre = mean @ w
    exact = phi - centre * np.log(centre)
    assert_allclose(mixture_uncertainty([mean], [std**2], loss), exact, rtol=1e-8)


def test_entropy_of_members_far_apart():
    alone = np.log(2 * np.pi * np.e) / 2
    assert_allclose(
        mixture_uncertainty([[1e9, -1e9]], 1, "log_loss"), alone + np.log(2)
    )
    assert_allclose(mixture_uncertainty([[1e300, 1e300]], 1, "log_loss"), alone)
    with pytest.raises(ValueError, match="var must not be so small beside"):
        mixture_uncertainty([[1e14, -1e14]], 1, "log_loss")


def test_grid_of_the_crps_reaches_far_enough():
    # Members of one width: a label of no noise tells which it is, so that all that is
    # reducible goes; its integral has a tenth of a percent beyond 3 standard deviations.
    mean = [[-1.0, 0.0, 1.0]]
    reducible = mixture_decomposition(mean, 1.0, "crps").reducible
    found = mixture_eur(mean, 1e-6, mean, 1.0, "crps", n_cells=512)
    assert_allclose(found, reducible, rtol=1e-5)


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "crps", "log_loss"]
)
@pytest.mark.parametrize("std", [0.1, 100.0])
def test_grids_follow_a_member_that_is_far_away_or_wide(loss, std):
    # A label tells the last member from the others, and nothing of these.
    mean_pool = [np.r_[np.zeros(9), 50.0]]
    mean, var = [np.r_[np.zeros(9), 50.0]], [np.r_[np.full(9, 0.01), std**2]]
    reducible = mixture_decomposition(mean, var, loss).reducible
    found = mixture_eur(mean_pool, 1.0, mean, var, loss, n_cells=256)
    assert_allclose(found, reducible, rtol=0.07)
    assert found <= reducible * (1 + 1e-9)
