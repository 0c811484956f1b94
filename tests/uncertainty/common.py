"""Losses over five classes, as the functions take them and as the reference does."""

import numpy as np
import pytest
from scipy.special import xlogy

from skextra.uncertainty import BregmanLoss, PinballLoss, WeightedSquaredError
from tests.uncertainty import reference
from tests.uncertainty.reference import COSTS, OUTCOMES

POSITIVE = np.array(
    [0.5, 1.0, 2.0, 3.5, 5.0]
)  # outcomes of Kullback-Leibler and others


def ones(z):
    return np.ones_like(z)


def heavy_tail(z):
    return 0.2 + z**2


def positive_part(z):
    return np.maximum(z, 0)


def x_log_x(z):
    return xlogy(z, z)


def itakura_saito(z):
    return -np.log(z)


def gini(p):
    return 1 - (p**2).sum(axis=-1)


def numbers(loss, *slow, outcomes=OUTCOMES):
    return {"loss": loss, "outcomes": outcomes}, slow, outcomes


CASES = {
    "log_loss": ({"loss": "log_loss"}, "log_loss", None),
    "brier": ({"loss": "brier"}, "brier", None),
    "zero_one": ({"loss": "zero_one"}, "zero_one", None),
    "cost": ({"loss": "cost", "cost_matrix": COSTS}, "cost", None),
    "callable": ({"loss": gini}, "brier", None),
    "squared_error": numbers("squared_error", "squared_error"),
    "absolute_error": numbers("absolute_error", "absolute_error"),
    "crps": numbers("crps", "crps"),
    "unsorted": numbers("crps", "crps", outcomes=OUTCOMES[[3, 0, 4, 1, 2]]),
    "pinball": numbers(PinballLoss(0.8), "pinball", 0.8),
    "weighted": numbers(
        WeightedSquaredError(heavy_tail), "bregman", np.square, heavy_tail
    ),
    "positive_part": numbers(
        WeightedSquaredError("positive_part"), "bregman", np.square, positive_part
    ),
    "kl": numbers(
        BregmanLoss(x_log_x, lambda z: np.log(z) + 1),
        "bregman",
        x_log_x,
        ones,
        outcomes=POSITIVE,
    ),
    "itakura_saito": numbers(
        BregmanLoss(itakura_saito, lambda z: -1 / z, w=np.sqrt),
        "bregman",
        itakura_saito,
        np.sqrt,
        outcomes=POSITIVE,
    ),
}
BY_LOSS = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
BY_LOSS_WITH_ACTION = pytest.mark.parametrize(
    "case",
    [case for name, case in CASES.items() if name != "callable"],
    ids=[name for name in CASES if name != "callable"],
)


def slow(case):
    """h of one belief, from the definition."""
    _, loss, outcomes = case
    return lambda p: reference.uncertainty(p, loss, COSTS, outcomes)


def beliefs(n, n_members, n_classes=5, concentration=0.7, seed=0):
    """Beliefs of members, (n, K, C), a few of them sure."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_classes, concentration), size=(n, n_members))
    p[0, 0] = np.eye(n_classes)[0]
    return p
