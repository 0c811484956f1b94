"""What the functions refuse, and what they say then."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skextra.uncertainty import (
    BregmanLoss,
    PinballLoss,
    WeightedSquaredError,
    bald,
    batch_bald,
    batch_eur,
    epig,
    expected_uncertainty_reduction,
    mixture_action,
    mixture_decomposition,
    mixture_eur,
    mixture_uncertainty,
    optimal_action,
    predictive_uncertainty,
    score_decomposition,
    uncertainty_decomposition,
)
from tests.uncertainty.common import beliefs, gini

NAN, INF = float("nan"), float("inf")
P = beliefs(4, 6, 3, seed=1)
TWO = beliefs(3, 6, 2, seed=2)

# Each puts beliefs (4, 6, 3) where the name says.
PLACES = {
    "p": [
        predictive_uncertainty,
        optimal_action,
        uncertainty_decomposition,
        bald,
        lambda p: batch_bald(p, 2),
        lambda p: predictive_uncertainty(p[:, 0]),
    ],
    "p_pred": [lambda p: score_decomposition(p[:, 0], P[:, 0])],
    "p_eval": [lambda p: score_decomposition(P[:, 0], p[:, 0])],
    "p_pool": [
        lambda p: epig(p, P),
        lambda p: expected_uncertainty_reduction(p, TWO, "brier", n_steps=2),
        lambda p: batch_eur(p, P, 2),
    ],
    "p_target": [
        lambda p: epig(P, p),
        lambda p: expected_uncertainty_reduction(P, p, "zero_one", pairwise=True),
        lambda p: batch_eur(P, p, 2),
    ],
}
BY_PLACE = pytest.mark.parametrize(
    "name, call", [(name, call) for name, calls in PLACES.items() for call in calls]
)


def with_row(row):
    p = P.copy()
    p[1, 0] = row
    return p


@BY_PLACE
def test_beliefs_that_are_none(name, call):
    call(P)
    for row, message in [
        ([0.5, 0.5, 0.1], f"{name} must sum to 1 over its last axis; got the sum 1.1"),
        ([0.5, 0.4, 0.1 - 2e-6], f"{name} must sum to 1"),
        ([0.0, 0.0, 0.0], f"{name} must sum to 1"),
        ([0.5, 0.6, -0.1], f"{name} must not be negative; got -0.1"),
        ([NAN, 0.5, 0.5], f"{name} contains NaN"),
        ([INF, 0.5, 0.5], f"{name} contains infinity"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            call(with_row(row))
    call(with_row([0.5, 0.4, 0.1 + 5e-7]))
    for bad in (P.astype(complex), np.full((4, 6, 3), "a")):
        with pytest.raises((ValueError, TypeError)):
            call(bad)
    with pytest.raises(TypeError, match=f"{name} is a masked array"):
        call(np.ma.masked_array(P, P > 2))


@BY_PLACE
def test_strings_of_numbers_are_no_beliefs(name, call):
    for kind in ("U30", "S30"):
        with pytest.raises((ValueError, TypeError), match=name):
            call(P.astype(kind))
    onehot = np.zeros((4, 6, 3), int)
    onehot[..., 0] = 1
    call(onehot)
    with pytest.raises((ValueError, TypeError), match=name):
        call(onehot.astype("M8[s]"))


def test_shapes():
    for bad in ([0.5, 0.5], np.full((2, 2, 2, 2), 0.5)):
        for call in (predictive_uncertainty, optimal_action):
            with pytest.raises(ValueError, match="p must have 2 or 3 dimensions"):
                call(bad)
    for bad in ([0.5, 0.5], [[0.5, 0.5]], np.full((2, 2, 2, 2), 0.5)):
        for call in (uncertainty_decomposition, bald, lambda p: batch_bald(p, 1)):
            with pytest.raises(ValueError, match="p must have 3 dimensions"):
                call(bad)
        with pytest.raises(ValueError, match="p_pool must have 3 dimensions"):
            epig(bad, P)
        with pytest.raises(ValueError, match="p_target must have 3 dimensions"):
            epig(P, bad)
    with pytest.raises(ValueError, match="p_pred must have 2 dimensions"):
        score_decomposition(P, P)
    with pytest.raises(ValueError, match="p_pred and p_eval must have the same shape"):
        score_decomposition(P[:, 0], TWO[:, 0])
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        with pytest.raises(ValueError, match="p must not be empty|minimum of 1"):
            bald(np.empty(shape))
    with pytest.raises(ValueError):
        predictive_uncertainty([[0.5, 0.5], [1.0]])


def test_numbers_of_members():
    for call in (
        epig,
        lambda a, b: batch_eur(a, b, 1),
        lambda a, b: expected_uncertainty_reduction(a, b, "brier"),
    ):
        with pytest.raises(ValueError, match="p_pool and p_target must have the same"):
            call(P, TWO[:, :5])
        call(P, TWO)  # other classes are no trouble


WEIGHED = [
    lambda w: predictive_uncertainty(P, weights=w),
    lambda w: optimal_action(P, weights=w),
    lambda w: uncertainty_decomposition(P, weights=w),
    lambda w: bald(P, weights=w),
    lambda w: epig(P, TWO, weights=w),
    lambda w: expected_uncertainty_reduction(P, TWO, weights=w),
    lambda w: batch_bald(P, 2, weights=w),
    lambda w: batch_eur(P, TWO, 2, weights=w),
    lambda w: mixture_uncertainty(P[..., 0], 1.0, weights=w),
    lambda w: mixture_action(P[..., 0], 1.0, weights=w),
    lambda w: mixture_decomposition(P[..., 0], 1.0, weights=w),
    lambda w: mixture_eur(P[..., 0], 1.0, P[..., 1], 1.0, weights=w),
]


@pytest.mark.parametrize("call", WEIGHED)
def test_weights(call):
    for bad, message in [
        (np.ones(5), "weights must have one entry for each of the 6 members; got 5"),
        (-np.ones(6), "weights must not be negative"),
        (np.zeros(6), "weights must not be negative, and not all 0"),
        ([1, 1, 1, 1, 1, NAN], "weights contains NaN"),
        ([1, 1, 1, 1, 1, INF], "weights contains infinity"),
        (np.ones((6, 1)), "weights must have 1 dimensions"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            call(bad)
    for good in ([1] * 6, np.full(6, 1e300), np.full(6, 1e-300), np.arange(1, 7)):
        call(good)


def test_scalars():
    for name, call in (
        ("weights", WEIGHED[0]),
        ("p", bald),
        ("mean", lambda m: mixture_uncertainty(m, 1.0)),
    ):
        with pytest.raises(ValueError, match=f"{name} must have .* dimensions"):
            call(1.0)


def test_weights_of_beliefs_without_members():
    with pytest.raises(ValueError, match="weights are for p of three dimensions"):
        predictive_uncertainty(P[:, 0], weights=[1.0] * 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda w: epig(P, TWO, target_weights=w),
        lambda w: expected_uncertainty_reduction(P, TWO, target_weights=w),
        lambda w: batch_eur(P, TWO, 2, target_weights=w),
        lambda w: mixture_eur(P[..., 0], 1.0, TWO[..., 0], 1.0, target_weights=w),
    ],
)
def test_target_weights(call):
    for bad in (np.ones(4), -np.ones(3), np.zeros(3), [1, 1, NAN], np.ones((3, 1))):
        with pytest.raises(ValueError, match="target_weights"):
            call(bad)


LOSSY = [
    lambda **k: predictive_uncertainty(P, **k),
    lambda **k: optimal_action(P, **k),
    lambda **k: score_decomposition(P[:, 0], P[:, 1], **k),
    lambda **k: uncertainty_decomposition(P, **k),
    lambda **k: expected_uncertainty_reduction(TWO[[0]], P, **k),
    lambda **k: batch_eur(TWO, P, 1, **k),
]


@pytest.mark.parametrize("call", LOSSY)
def test_losses(call):
    for bad in (
        "entropy",
        "pinball",
        None,
        3,
        ["brier"],
        np.array(["brier"]),
        b"brier",
    ):
        with pytest.raises(ValueError, match="loss must be one of 'log_loss', 'brier'"):
            call(loss=bad)
    call(loss=np.str_("brier"))
    with pytest.raises(ValueError, match='loss="cost" needs cost_matrix'):
        call(loss="cost")
    with pytest.raises(ValueError, match='cost_matrix is for loss="cost" only'):
        call(loss="brier", cost_matrix=np.eye(3))
    for loss in ("squared_error", "absolute_error", "crps", PinballLoss(0.3)):
        with pytest.raises(ValueError, match="a loss of numbers needs outcomes"):
            call(loss=loss)
    for loss in ("log_loss", "zero_one"):
        with pytest.raises(ValueError, match="outcomes is for a loss of numbers only"):
            call(loss=loss, outcomes=[1, 2, 3])
    for bad, message in [
        (np.eye(2), r"cost_matrix must have shape \(n_actions, 3\)"),
        (np.ones(3), "cost_matrix must have 2 dimensions"),
        ([[0, 1, NAN]], "cost_matrix contains NaN"),
        ([[0, 1, INF]], "cost_matrix contains infinity"),
        (np.empty((0, 3)), "cost_matrix must not be empty"),
    ]:
        with pytest.raises(ValueError, match=message):
            call(loss="cost", cost_matrix=bad)
    for bad, message in [
        ([1, 2], "outcomes must have one number for each of the 3 columns"),
        ([[1, 2, 3]], "outcomes must have 1 dimensions"),
        ([1, 2, NAN], "outcomes contains NaN"),
        ([1, 2, INF], "outcomes contains infinity"),
        (["a", "b", "c"], "must hold real numbers"),
    ]:
        for loss in ("squared_error", "crps", PinballLoss(0.3)):
            with pytest.raises(ValueError, match=message):
                call(loss=loss, outcomes=bad)


def test_functions_that_return_what_they_should_not():
    for bad in (
        lambda p: p,
        lambda p: p.sum(),
        lambda p: np.full(p.shape[:-1], NAN),
        lambda p: [1.0],
    ):
        for call in (LOSSY[0], LOSSY[3], LOSSY[4], LOSSY[5]):
            with pytest.raises(ValueError, match="loss must return a finite number"):
                call(loss=bad)
    call, outcomes = LOSSY[0], [1.0, 2.0, 3.0]
    for bad, message in [
        (lambda z: z.sum(), "phi must return an array of the shape it is given"),
        (
            lambda z: np.log(z - 1),
            "phi must be finite at outcomes and predictions; got -inf at 1",
        ),
        (lambda z: z * NAN, "phi must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            call(loss=BregmanLoss(bad), outcomes=outcomes)
    for bad, message in [
        (lambda z: 1.0, "w must return an array of the shape"),
        (lambda z: 2 - z, "w must not be negative; got -1.0 at the outcome 3.0"),
        (
            lambda z: 1 / (z - 2),
            "w must be finite at outcomes and predictions; got inf at 2.0",
        ),
    ]:
        for loss in (BregmanLoss(np.square, w=bad), WeightedSquaredError(bad)):
            with pytest.raises(ValueError, match=message):
                call(loss=loss, outcomes=outcomes)
    with pytest.raises(ValueError, match="w must not be negative"):
        mixture_uncertainty([[0.0]], 1.0, WeightedSquaredError(lambda z: z))
    loss = BregmanLoss(np.square, grad=lambda z: 1.0)
    with pytest.raises(ValueError, match="grad must return an array of the shape"):
        score_decomposition(P[:, 0], P[:, 1], loss, outcomes=outcomes)


def test_parameters_of_losses():
    for bad in (0, 1, 0.0, 1.0, -0.1, 1.5, NAN, "0.5", None, [0.5], 0.5j):
        with pytest.raises(ValueError, match="tau must be a number between 0 and 1"):
            PinballLoss(bad)
    assert PinballLoss(np.float32(0.25)).tau == 0.25
    for bad in ("negative_part", None, 1.0, np.ones(3)):
        with pytest.raises(TypeError, match='w must be callable or "positive_part"'):
            WeightedSquaredError(bad)
    for keywords in ({"phi": None}, {"phi": "square"}, {"phi": np.square, "grad": 1}):
        with pytest.raises(TypeError, match="must be callable"):
            BregmanLoss(**keywords)
    with pytest.raises(TypeError, match="w must be callable"):
        BregmanLoss(np.square, w="positive_part")
    assert repr(PinballLoss(0.3)) == "PinballLoss(0.3)"
    assert "positive_part" in repr(WeightedSquaredError("positive_part"))
    assert repr(BregmanLoss(np.square)).startswith("BregmanLoss(<ufunc 'square'>")


def test_a_single_member_has_no_standard_error():
    one = P[:, :1]
    only = [0, 0, 1, 0, 0, 0]
    for call in (
        lambda **k: uncertainty_decomposition(one, **k),
        lambda **k: uncertainty_decomposition(P, weights=only, **k),
        lambda **k: mixture_decomposition(one[..., 0], 1.0, **k),
        lambda **k: mixture_decomposition(P[..., 0], 1.0, weights=only, **k),
    ):
        call()
        for keywords in ({"return_se": True}, {"bias_correction": "jackknife"}):
            with pytest.raises(ValueError, match="at least 2 members"):
                call(**keywords)


def test_reductions_without_standard_errors():
    call = expected_uncertainty_reduction
    with pytest.raises(ValueError, match="return_se .*members"):
        call(P[:, :1], TWO[:, :1], return_se=True)
    with pytest.raises(ValueError, match="return_se .*members"):
        call(P, TWO, weights=[0, 0, 1, 0, 0, 0], return_se=True)
    with pytest.raises(ValueError, match="return_se .*target"):
        call(P, TWO[:1], return_se=True)
    with pytest.raises(ValueError, match="return_se.*pairwise=True"):
        call(P, TWO, return_se=True, pairwise=True)


def test_a_weight_beside_which_others_vanish():
    # Finite numbers, or an error that names the weights: no NaN.
    weights = [1, 1, 1e20, 1, 1, 1]
    for call in (
        lambda: uncertainty_decomposition(P, weights=weights, return_se=True).se.total,
        lambda: (
            expected_uncertainty_reduction(
                P, TWO, weights=weights, return_se=True
            ).member_se
        ),
        lambda: (
            mixture_decomposition(
                P[..., 0], 1.0, weights=weights, return_se=True
            ).se.total
        ),
    ):
        try:
            got = call()
        except ValueError as error:
            assert "weights" in str(error)
        else:
            assert np.isfinite(got).all()


def test_bias_correction():
    for bad in ("bootstrap", True, 1, [None]):
        for call in (
            lambda c: uncertainty_decomposition(P, bias_correction=c),
            lambda c: mixture_decomposition(P[..., 0], 1.0, bias_correction=c),
        ):
            with pytest.raises(ValueError, match="bias_correction must be None or"):
                call(bad)


def test_counts():
    for bad in (0, -1, 1.0, "1", None, 5):
        with pytest.raises(
            ValueError, match="batch_size must be an integer from 1 to 4"
        ):
            batch_bald(P, bad)
        with pytest.raises(
            ValueError, match="batch_size must be an integer from 1 to 4"
        ):
            batch_eur(P, TWO, bad)
    for bad in (0, -1, 1.5, "1", None):
        with pytest.raises(ValueError, match="n_steps must be an integer from 1"):
            expected_uncertainty_reduction(P, TWO, n_steps=bad)
        for call in (
            lambda n: batch_bald(P, 2, n_samples=n),
            lambda n: batch_eur(P, TWO, 2, n_samples=n),
        ):
            with pytest.raises(ValueError, match="n_samples must be an integer from 1"):
                call(bad)
        with pytest.raises(ValueError, match="n_cells must be"):
            mixture_eur(P[..., 0], 1.0, P[..., 0], 1.0, n_cells=bad)
    with pytest.raises(ValueError, match="n_cells must be at least 2"):
        mixture_eur(P[..., 0], 1.0, P[..., 0], 1.0, n_cells=1)
    with pytest.raises(ValueError, match="n_steps must be smaller"):
        expected_uncertainty_reduction(beliefs(2, 3, 20), TWO[:, :3], n_steps=20)
    one, other = np.int32(2), np.uint8(2)
    assert_array_equal(batch_bald(P, one)[0], batch_bald(P, other)[0])
    assert_array_equal(
        expected_uncertainty_reduction(P, TWO, n_steps=one),
        expected_uncertainty_reduction(P, TWO, n_steps=2),
    )
    mixture_eur(P[..., 0], 1.0, P[..., 0], 1.0, n_cells=one)


def test_methods_and_seeds():
    for bad in ("all", None, 1, ["exact"]):
        for call in (
            lambda m: batch_bald(P, 2, method=m),
            lambda m: batch_eur(P, TWO, 2, method=m),
        ):
            with pytest.raises(ValueError, match="method must be one of"):
                call(bad)
    wide = beliefs(9, 3, 10)
    for call in (
        lambda: batch_bald(wide, 8, method="exact"),
        lambda: batch_eur(wide, TWO[:, :3], 8, method="exact"),
    ):
        with pytest.raises(ValueError, match='method="exact" takes at most 10000000'):
            call()
    with pytest.raises(ValueError, match="seed"):
        batch_bald(P, 2, random_state="a")


MIXTURES = [
    lambda m, v, **k: mixture_uncertainty(m, v, **k),
    lambda m, v, **k: mixture_action(m, v, **k),
    lambda m, v, **k: mixture_decomposition(m, v, **k),
]


@pytest.mark.parametrize("call", MIXTURES)
def test_mixtures(call):
    mean = P[..., 0]
    for bad, message in [
        (mean[0], "mean must have 2 dimensions"),
        (P, "mean must have 2 dimensions"),
        (mean * NAN, "mean contains NaN"),
        (mean + INF, "mean contains infinity"),
        (np.empty((0, 3)), "mean must not be empty"),
        (np.empty((3, 0)), "mean must not be empty"),
        (mean + 0j, "must hold real numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            call(bad, 1.0)
    for bad, message in [
        (-1.0, "var must not be negative; got -1"),
        (np.r_[np.ones(5), -1e-9], "var must not be negative"),
        (NAN, "var contains NaN"),
        (INF, "var contains infinity"),
        (None, "var"),
        (np.ones(5), r"var must be a number or broadcast to shape \(4, 6\)"),
        (np.ones((2, 4, 6)), "var must have"),
    ]:
        with pytest.raises(ValueError, match=message):
            call(mean, bad)
    with pytest.raises(TypeError, match="var is a masked array"):
        call(mean, np.ma.masked_array(np.ones(6), [0, 0, 0, 0, 0, 1]))
    for bad in ("brier", "zero_one", "cost", None, gini, PinballLoss, ["crps"]):
        with pytest.raises(ValueError, match="loss must be one of 'squared_error'"):
            call(mean, 1.0, loss=bad)


def test_strings_of_numbers_are_no_variances():
    for call in MIXTURES:
        with pytest.raises((ValueError, TypeError), match="var"):
            call(P[..., 0], "1")


def test_entropy_of_members_without_variance():
    mean = P[..., 0]
    var = np.ones(6)
    var[2] = 0
    for call in (mixture_uncertainty, mixture_decomposition):
        with pytest.raises(ValueError, match="var must be above 0"):
            call(mean, var, "log_loss")
        with pytest.raises(ValueError, match="var must be above 0"):
            call(mean, var, "log_loss", approx="gaussian")
        # Members that do not count may have none.
        call(mean, var, "log_loss", weights=[1, 1, 0, 1, 1, 1])


def test_approx():
    mean = P[..., 0]
    for call in (mixture_uncertainty, mixture_decomposition):
        for bad in ("moments", True, 1, ["gaussian"]):
            with pytest.raises(ValueError, match='approx must be None or "gaussian"'):
                call(mean, 1.0, "log_loss", approx=bad)
        for loss in ("crps", "squared_error", PinballLoss(0.3)):
            with pytest.raises(ValueError, match='approx is for loss="log_loss" only'):
                call(mean, 1.0, loss, approx="gaussian")


def test_mixture_eur():
    mean = P[..., 0]
    call = mixture_eur
    with pytest.raises(
        ValueError, match="mean_pool and mean_target must have the same"
    ):
        call(mean, 1.0, mean[:, :5], 1.0)
    for bad in (-1.0, NAN, np.ones(5)):
        with pytest.raises(ValueError, match="var_pool"):
            call(mean, bad, mean, 1.0)
        with pytest.raises(ValueError, match="var_target"):
            call(mean, 1.0, mean, bad)
    with pytest.raises(ValueError, match="mean_pool"):
        call(mean[0], 1.0, mean, 1.0)
    with pytest.raises(ValueError, match="mean_target"):
        call(mean, 1.0, mean * NAN, 1.0)
    with pytest.raises(ValueError, match="loss must be one of 'squared_error'"):
        call(mean, 1.0, mean, 1.0, "brier")
