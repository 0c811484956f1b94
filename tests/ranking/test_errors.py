"""What the functions refuse, and what they say then."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.exceptions import AxisError
from numpy.testing import assert_allclose, assert_array_equal

from skextra.ranking import (
    lapsum,
    lapsum_inverse,
    soft_permutation,
    soft_permutation_loss,
    soft_quantile,
    soft_rank,
    soft_rank_vjp,
    soft_sort,
    soft_sort_vjp,
    soft_topk,
    soft_topk_vjp,
)
from tests.ranking.common import BY_CALL, CALLS

NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).normal(size=(3, 5))
TARGET = np.argsort(np.argsort(X, axis=-1), axis=-1)

WITH_AXIS = {name: call for name, call in CALLS.items() if name[0] not in "il"}


@BY_CALL
def test_bad_x(call):
    for bad in (NAN, INF, -INF):
        for x in ([1.0, bad], [[1.0, 2.0], [bad, 0.0]], [bad, bad]):
            with pytest.raises(ValueError, match="x .*contains NaN or infinity"):
                call(np.array(x))
    with pytest.raises(ValueError, match="x spans more than float64"):
        call(np.array([-1e308, 1e308]))
    with pytest.raises(ValueError, match="x spans more than float64"):
        call(np.array([-1e308, 1e308]), alpha="scale")
    with pytest.raises(ValueError, match="x must have a value along axis"):
        call(np.empty((2, 0)))
    for dtype in (complex, object, "U3", "S3", "M8[s]", "m8[s]"):
        with pytest.raises(TypeError, match="x must hold real numbers; got dtype"):
            call(np.ones((2, 2)).astype(int).astype(dtype))


@pytest.mark.parametrize("x", [1.0, np.float64(1.0), np.array(1.0)])
def test_scalars(x):
    for call in (soft_rank, soft_sort, lambda x: soft_topk(x, 1)):
        with pytest.raises(ValueError, match="x must have at least one dimension"):
            call(x)
    with pytest.raises(ValueError, match="x must have at least one dimension"):
        soft_rank(torch.tensor(1.0))


@pytest.mark.parametrize("x", [None, {1, 2}, {}, "abc", object()])
def test_no_arrays(x):
    for call in (soft_rank, soft_sort, soft_permutation, lambda x: soft_topk(x, 1)):
        with pytest.raises(TypeError, match="x must hold real numbers; got dtype"):
            call(x)


@BY_CALL
def test_masked_arrays(call):
    for x in (X, X[0], X.astype(np.float32)):
        for mask in (False, x > 0):
            with pytest.raises(TypeError, match="x is a masked array, .* fill it"):
                call(np.ma.masked_array(x, mask))


@BY_CALL
def test_bad_alpha(call):
    for x in (X, X[0]):
        for bad in (
            0,
            -1.0,
            9e-301,
            2e300,
            NAN,
            INF,
            -INF,
            "auto",
            10**400,
            np.float32("inf"),
        ):
            with pytest.raises(ValueError, match="alpha must "):
                call(x, alpha=bad)
        for bad in (None, 1j, [1j], b"scale", ["1"], {}):
            with pytest.raises(TypeError, match="alpha must hold real numbers"):
                call(x, alpha=bad)
    for bad in ([1.0, 2.0], np.ones((3, 1)), np.ones((2, 3))):
        with pytest.raises(ValueError, match=r"alpha must .* shape \(3,\)"):
            call(X, alpha=bad)
    for bad in ([1.0, 0.0, 1.0], [1.0, NAN, 1.0], [1.0, 1.0, INF]):
        with pytest.raises(ValueError, match="alpha must be from 1e-"):
            call(X, alpha=bad)
    with pytest.raises(ValueError, match=r"alpha must .* shape \(\)"):
        call(X[0], alpha=[1.0])


@pytest.mark.parametrize("call", WITH_AXIS.values(), ids=WITH_AXIS)
def test_bad_axis(call):
    for axis in (2, -3, 10):
        with pytest.raises(AxisError, match=f"axis {axis} is out of bounds"):
            call(X, axis=axis)
    for axis in (None, 0.5, "0", (0, 1)):
        with pytest.raises(TypeError):
            call(X, axis=axis)


def test_bad_k():
    g = np.zeros_like(X)
    for call in (soft_topk, lambda x, k: soft_topk_vjp(g, x, k)):
        for bad in (-1e-9, 5.001, NAN, INF, [1.0, 2.0, NAN], [1, 2, 6]):
            with pytest.raises(ValueError, match="k must be between 0 and the 5"):
                call(X, bad)
        with pytest.raises(ValueError, match=r"k must .* shape \(3,\)"):
            call(X, [1.0, 2.0])
        for bad in (None, 1j, np.array(1j), "2", ["1", "1", "1"], [None] * 3):
            with pytest.raises(TypeError, match="k must hold real numbers"):
                call(X, bad)
    with pytest.raises(ValueError, match="k must .*got 7"):
        soft_topk(torch.tensor(X), torch.tensor(7.0, requires_grad=True))


def test_bad_q_b_and_w():
    for bad in (0, 1, -0.1, NAN, [0.5, 1.0], [0.5, NAN]):
        with pytest.raises(ValueError, match="q must be above 0 and below 1"):
            soft_quantile(X, bad)
    with pytest.raises(ValueError, match="q must have at most one dimension"):
        soft_quantile(X, [[0.5]])
    for bad in (0, 5, -1, NAN, INF, [1.0, 5.0]):
        with pytest.raises(ValueError, match="w must be above 0 and below the 5"):
            lapsum_inverse(bad, X)
    for bad in (NAN, INF, -INF, [1.0, INF]):
        with pytest.raises(ValueError, match="b must be finite"):
            lapsum(bad, X)
    shape = np.ones((2, 4))
    with pytest.raises(ValueError, match=r"w must .* broadcast to the shape \(3, 4\)"):
        lapsum_inverse(shape, X)
    with pytest.raises(ValueError, match=r"b must .* broadcast to the shape \(3, 4\)"):
        lapsum(shape, X)
    with pytest.raises(ValueError, match=r"b must .* broadcast"):
        lapsum(np.ones((1, 3, 2)), X)
    for bad in (None, 1j, [1j], "0.5", ["0.5"]):
        with pytest.raises(TypeError, match="q must hold real numbers"):
            soft_quantile(X, bad)
        with pytest.raises(TypeError, match="w must hold real numbers"):
            lapsum_inverse(bad, X)
        with pytest.raises(TypeError, match="b must hold real numbers"):
            lapsum(bad, X)


def test_bad_target():
    for bad in ([[0, 1, 2, 3, 3]] * 3, [[1, 2, 3, 4, 5]] * 3, [[-1, 0, 1, 2, 3]] * 3):
        with pytest.raises(ValueError, match="target must hold each of 0 .. 4 once"):
            soft_permutation_loss(X, bad)
    for bad in (TARGET[0], TARGET[:2], TARGET.T, 0):
        with pytest.raises(ValueError, match="target must have the shape of x"):
            soft_permutation_loss(X, bad)
    for bad in (TARGET.astype(float), X, TARGET.astype(str), TARGET > 0, None):
        with pytest.raises(TypeError, match="target must hold whole numbers"):
            soft_permutation_loss(X, bad)
    for bad in ("median", None, "", 0):
        with pytest.raises(ValueError, match="reduction must be one of"):
            soft_permutation_loss(X, TARGET, reduction=bad)


def test_shapes_in_messages_are_the_users():
    x, right = np.zeros((2, 3, 4)), r"must have the shape of x, \(2, 3, 4\); got "
    for shape in ((2, 4, 3), (3, 2, 4), (4,)):
        bad, message = np.zeros(shape, int), right + re.escape(str(shape)) + "$"
        for axis in (0, 1, 2, -2):
            for values in (x, torch.tensor(x)):
                with pytest.raises(ValueError, match=f"^target {message}"):
                    soft_permutation_loss(values, bad, axis=axis)
            with pytest.raises(ValueError, match=f"^g {message}"):
                soft_rank_vjp(bad, x, axis=axis)
            with pytest.raises(ValueError, match=f"^g {message}"):
                soft_topk_vjp(bad, x, 1, axis=axis)


def test_bad_g():
    vjps = soft_rank_vjp, soft_sort_vjp, lambda g, x: soft_topk_vjp(g, x, 1)
    for vjp in vjps:
        for bad in (1.0, X[0], X[:, :4], X[None], X.T):
            with pytest.raises(ValueError, match="g must have the shape of x"):
                vjp(bad, X)
        for bad in (X + 0j, X.astype(object), X.astype(str)):
            with pytest.raises(TypeError, match="g must hold real numbers"):
                vjp(bad, X)


@pytest.mark.parametrize("unit", [1e-305, 1e304])
def test_scales_beyond_what_alpha_may_be(unit):
    x = np.array([[0.0, 1.0, 2.0], [0.0, unit, 3 * unit]])
    with pytest.raises(ValueError, match="alpha must be from 1e-300 to 1e.300, but"):
        soft_rank(x, alpha="scale")


@pytest.mark.parametrize("kind", [np.asarray, list, np.float32, pd.Series])
def test_torch_parameters_beside_other_values(kind):
    """They are taken, unless they want a gradient, which would not come."""
    x = kind(X[0])
    half, leaf = torch.tensor(0.5), torch.tensor(0.5, requires_grad=True)
    calls = {
        "alpha": lambda v: soft_rank(x, alpha=v),
        "k": lambda v: soft_topk(x, v),
        "q": lambda v: soft_quantile(x, v),
        "w": lambda v: lapsum_inverse(v, x),
        "b": lambda v: lapsum(v, x),
    }
    for name, call in calls.items():
        for bad in (leaf, 1 * leaf):
            with pytest.raises(TypeError, match=f"^{name} is a torch .*: x must be on"):
                call(bad)
        assert_array_equal(call(leaf.detach()), call(0.5))
        assert_array_equal(call(half), call(0.5))


HALVES = {
    "numpy": lambda values: np.asarray(values, np.float16),
    "torch": lambda values: torch.tensor(values).half(),
}


@pytest.mark.parametrize("halves", HALVES.values(), ids=HALVES)
def test_results_that_float16_does_not_hold(halves):
    x = halves(np.linspace(-3, 3, 100_000))
    falling = np.arange(300)[::-1].copy()
    calls = {
        "ranks": lambda: soft_rank(x),
        "falling ranks": lambda: soft_rank(x, descending=True),
        "one rank": lambda: soft_rank(x, alpha=1e-3)[-1],
        "levels": lambda: soft_sort(halves([6e4, 6e4, 6e4]), alpha=1e5),
        "sums": lambda: lapsum(9.0, x),
        "loss": lambda: soft_permutation_loss(
            halves(np.arange(300)), falling, alpha=0.1, reduction="sum"
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls.values():
            with pytest.raises(ValueError, match="x must .* 65504 do not fit in .*16"):
                call()
        # Those that fit do come, infinite ones too where they were so before.
        ranks = soft_rank(x[:60_000], alpha=1e-4)
        assert np.isfinite(np.asarray(ranks)).all() and ranks.dtype == x.dtype
        assert_array_equal(soft_topk(x[:9], 0, log=True), np.full(9, -INF))
        assert soft_topk(x[:9], 9, return_threshold=True)[1] == -INF


def test_results_that_bfloat16_rounds():
    ranks = soft_rank(torch.linspace(-3, 3, 100_000).bfloat16(), alpha=1e-4)
    assert ranks.dtype == torch.bfloat16
    assert_allclose(ranks.max().double(), 1e5, rtol=0.01)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3), (0, 1)])
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_loss_of_nothing(shape, kind):
    x, target = kind(np.zeros(shape)), np.zeros(shape, int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for settings in ({}, {"reduction": "mean"}):
            with pytest.raises(
                ValueError, match="x must hold a value to take the mean"
            ):
                soft_permutation_loss(x, target, **settings)
        total = soft_permutation_loss(x, target, reduction="sum")
        none = soft_permutation_loss(x, target, reduction="none")
    assert total == 0 and total.dtype == none.dtype == x.dtype
    assert none.shape == shape
