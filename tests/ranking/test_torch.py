"""Torch tensors: gradients by autograd, dtypes, views, and the room of GPUs."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from skextra.ranking import (
    _arrays,
    _torch,
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
from tests.ranking.common import everything

F64 = torch.float64
X = np.random.default_rng(0).normal(size=(2, 4, 3))
AXES = pytest.mark.parametrize("axis", [0, 1, 2, -1])


def tensor(values, grad=True):
    return torch.tensor(values, dtype=F64, requires_grad=grad)


def per_lane(axis, low, high):
    """Return a number for each lane of X."""
    shape = np.delete(X.shape, axis).tolist()
    return np.random.default_rng(1).uniform(low, high, size=shape)


def gradcheck(function, *inputs):
    assert torch.autograd.gradcheck(function, inputs, atol=1e-6, fast_mode=False)


def detached(value):
    return value.detach() if isinstance(value, torch.Tensor) else value


def enter(room, monkeypatch):
    """Compute on tensors of the CPU as they are, or as if they were on a GPU."""
    if room == "GPU":
        monkeypatch.setattr(_torch, "_maths", lambda inputs: _arrays)
        monkeypatch.setattr(_torch, "_given", detached)


@pytest.fixture(params=["CPU", "GPU"])
def room(request, monkeypatch):
    enter(request.param, monkeypatch)
    return request.param


# ------------------------------------------------------------------------- gradients


@AXES
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("log", [True, False])
def test_gradients_of_topk(room, axis, largest, log):
    n = X.shape[axis]
    flags = {"axis": axis, "largest": largest, "log": log, "return_threshold": True}

    def function(x, k, alpha):
        return soft_topk(x, k, alpha=alpha, **flags)

    k, alpha = per_lane(axis, 0.3, n - 0.3), per_lane(axis, 0.5, 1.5)
    gradcheck(function, tensor(X), tensor(k), tensor(alpha))
    gradcheck(function, tensor(X), tensor(0.37 * n), tensor(0.8))


@AXES
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("function", [soft_rank, soft_sort])
def test_gradients_of_ranks_and_sorts(room, axis, descending, function):
    flags = {"axis": axis, "descending": descending}
    alpha = per_lane(axis, 0.5, 1.5)
    for a in (alpha, 0.8):
        gradcheck(lambda x, a: function(x, alpha=a, **flags), tensor(X), tensor(a))


@AXES
def test_gradients_of_quantiles_and_permutations(room, axis):
    alpha = tensor(per_lane(axis, 0.5, 1.5))
    for q in (tensor(0.41), tensor([0.13, 0.77])):
        gradcheck(
            lambda x, q, a: soft_quantile(x, q, alpha=a, axis=axis), tensor(X), q, alpha
        )
    gradcheck(lambda x, a: soft_permutation(x, alpha=a, axis=axis), tensor(X), alpha)
    target = np.argsort(np.argsort(X, axis=axis), axis=axis)
    for order in (target, np.flip(target, axis).copy()):
        for reduction in ("mean", "none"):
            gradcheck(
                lambda x, a, o=order, r=reduction: soft_permutation_loss(
                    x, o, alpha=a, axis=axis, reduction=r
                ),
                tensor(X),
                alpha,
            )


@pytest.mark.parametrize("shape", [(), (2,), (4, 2), (2, 4, 2)])
def test_gradients_of_sums_and_levels(room, shape):
    rng = np.random.default_rng(2)
    alpha = tensor(per_lane(-1, 0.5, 1.5))
    b, w = tensor(rng.normal(size=shape)), tensor(rng.uniform(0.2, 2.8, size=shape))
    gradcheck(lambda b, x, a: lapsum(b, x, alpha=a), b, tensor(X), alpha)
    gradcheck(lambda w, x, a: lapsum_inverse(w, x, alpha=a), w, tensor(X), alpha)


def test_gradients_equal_those_of_numpy(room):
    g = np.random.default_rng(3).normal(size=X.shape)
    for axis in (0, 1, 2):
        a, k = per_lane(axis, 0.05, 2), per_lane(axis, 0, 2)
        for flag in (False, True):
            for log in (False, True):
                inputs = [tensor(v) for v in (X, k, a)]
                p = soft_topk(
                    inputs[0],
                    inputs[1],
                    alpha=inputs[2],
                    axis=axis,
                    largest=flag,
                    log=log,
                )
                found = torch.autograd.grad(p, inputs, torch.tensor(g))
                expected = soft_topk_vjp(
                    g, X, k, alpha=a, axis=axis, largest=flag, log=log
                )
                for one, other in zip(found, expected):
                    assert_allclose(one, other, rtol=1e-11, atol=1e-12)
            for function, vjp in (soft_rank, soft_rank_vjp), (soft_sort, soft_sort_vjp):
                inputs = tensor(X), tensor(a)
                flags = {"axis": axis, "descending": flag}
                out = function(inputs[0], alpha=inputs[1], **flags)
                found = torch.autograd.grad(out, inputs, torch.tensor(g))
                for one, other in zip(found, vjp(g, X, alpha=a, **flags)):
                    assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("k", [0.0, 2.0, 3.0])
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1.0, 1e6])
def test_rooms_agree_at_the_edges(k, alpha, monkeypatch):
    """Whole sums, wide gaps, ties, and g of 0 beside log weights of minus infinity."""
    x = [[0.0, 1.0, 1.0], [2.0, 2.0, 2.0], [1e6, 1e6 + 1, 5.0]]
    for largest in (True, False):
        for log in (True, False):
            found = []
            for room in ("CPU", "GPU"):
                inputs = [tensor(x), tensor([k] * 3), tensor([alpha] * 3)]
                with monkeypatch.context() as patch:
                    enter(room, patch)
                    p, t = soft_topk(
                        inputs[0],
                        inputs[1],
                        alpha=inputs[2],
                        largest=largest,
                        log=log,
                        return_threshold=True,
                    )
                    g = torch.tensor([[0.0, 1.0, -0.5], [1.0, 2.0, 0.0], [0.0, 0, 0]])
                    grads = torch.autograd.grad(p, inputs, g.to(F64), retain_graph=True)
                    found.append([p.detach(), t.detach(), *grads])
            for one, other in zip(*found):
                assert_allclose(one, other, rtol=1e-12, atol=1e-12 / min(alpha, 1))


@pytest.mark.parametrize("largest", [True, False])
def test_only_one_of_two_results_used(room, largest):
    x, k, alpha = tensor(X[0]), tensor(1.3), tensor(0.6)
    flags = {"alpha": alpha, "largest": largest, "return_threshold": True}
    p, t = soft_topk(x, k, **flags)
    alone = soft_topk(x, k, alpha=alpha, largest=largest)
    by_both = torch.autograd.grad(p.sin().sum() + 0 * t.sum(), (x, k, alpha))
    for one, other in zip(
        torch.autograd.grad(alone.sin().sum(), (x, k, alpha)), by_both
    ):
        assert_allclose(one, other, rtol=1e-14, atol=1e-15)
    p, t = soft_topk(x, k, **flags)
    by_x, by_k, _ = torch.autograd.grad(t.sum(), (x, k, alpha))
    assert_allclose(by_x.sum(dim=1), 1, rtol=1e-14)
    assert (by_k < 0) == largest


@pytest.mark.parametrize("kind", ["number", "0-d", "batch"])
def test_k_and_alpha_of_any_kind(room, kind):
    def as_kind(value):
        return {"number": value, "0-d": tensor(value)}.get(kind, tensor([value, value]))

    x, k, alpha = tensor(X[0, :2]), as_kind(1.2), as_kind(0.7)
    g = np.random.default_rng(4).normal(size=(2, 3))
    expected = soft_topk_vjp(g, X[0, :2], 1.2, alpha=0.7)
    soft_topk(x, k, alpha=alpha).backward(torch.tensor(g))
    assert_allclose(x.grad, expected[0], rtol=1e-12)
    if kind != "number":
        total = np.sum if kind == "0-d" else np.asarray
        assert_allclose(k.grad, total(expected[1]), rtol=1e-12)
        assert_allclose(alpha.grad, total(expected[2]), rtol=1e-12)
    x.grad = None
    soft_rank(x, alpha=alpha).backward(torch.tensor(g))
    assert_allclose(x.grad, soft_rank_vjp(g, X[0, :2], alpha=0.7)[0], rtol=1e-12)


def test_scale_is_a_constant():
    x = tensor(X[0])
    std = X[0].std(axis=1)
    p = soft_topk(x, 1.5, alpha="scale")
    assert_allclose(p.detach(), soft_topk(X[0], 1.5, alpha=std / 10), rtol=1e-12)
    p.backward(torch.tensor(X[1]))
    expected = soft_topk_vjp(X[1], X[0], 1.5, alpha=std / 10)
    assert_allclose(x.grad, expected[0], rtol=1e-10)


# ------------------------------------------------------------------------------ values


TARGET = np.argsort(np.argsort(-X, axis=-1), axis=-1)


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 1.0, 1e3])
def test_values_equal_those_of_numpy(room, alpha):
    lanes = np.full((2, 4), alpha)
    for x in (X, X + 1e6, np.round(X)):
        expected = everything(x, 1.5, lanes if x is X else alpha, TARGET)
        found = everything(
            torch.tensor(x),
            1.5,
            torch.tensor(lanes) if x is X else alpha,
            torch.tensor(TARGET),
        )
        for one, other in zip(found, expected):
            assert isinstance(one, torch.Tensor) and one.dtype == F64
            assert one.shape == np.shape(other)
            assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_dtypes(dtype):
    x = torch.tensor(X).to(dtype)
    exact = everything(x.double(), 1.5, 0.5, torch.tensor(TARGET))
    for one, other in zip(everything(x, 1.5, 0.5, torch.tensor(TARGET)), exact):
        assert one.dtype == dtype
        eps = torch.finfo(dtype).eps
        assert_allclose(one.double(), other, rtol=eps, atol=eps / 100)
    leaf = x.clone().requires_grad_()
    k = torch.tensor(1.5, dtype=torch.float32, requires_grad=True)
    soft_topk(leaf, k, alpha=0.5).square().sum().backward()
    assert leaf.grad.dtype == dtype and k.grad.dtype == torch.float32
    wide = x.double().requires_grad_()
    soft_topk(wide, 1.5, alpha=0.5).square().sum().backward()
    near = {"rtol": 4 * torch.finfo(dtype).eps, "atol": torch.finfo(dtype).eps}
    assert_allclose(leaf.grad.double(), wide.grad, **near)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.uint8, torch.bool])
def test_whole_numbers(dtype):
    x = torch.tensor([[3, 1, 2], [0, 0, 1]]).to(dtype)
    for one, other in zip(
        everything(x, 1.5, 0.5, torch.tensor([[0, 1, 2]] * 2)),
        everything(x.double(), 1.5, 0.5, torch.tensor([[0, 1, 2]] * 2)),
    ):
        assert one.dtype == torch.get_default_dtype() and not one.requires_grad
        assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_views():
    base = torch.tensor(np.random.default_rng(5).normal(size=(6, 8)))
    one = torch.tensor(X[0, 0])
    views = [base.T, base[::2, 1::3], base[:, 2], base.flip(0), one.expand(4, 3)]
    for view in views:
        numpy = view.numpy().copy()
        k = tensor(1.25).expand(view.shape[:-1])
        alpha = tensor(0.5).expand(view.shape[:-1])
        leaf = view.detach().requires_grad_()
        p = soft_topk(leaf, k, alpha=alpha)
        assert_allclose(p.detach(), soft_topk(numpy, 1.25, alpha=0.5), rtol=1e-14)
        g = np.cos(numpy)
        (grad,) = torch.autograd.grad(p, leaf, torch.tensor(g))
        expected = soft_topk_vjp(g, numpy, 1.25, alpha=0.5)[0]
        assert_allclose(grad, expected, rtol=1e-12, atol=1e-15)
        # A cotangent that is not contiguous: that of a sum is expanded.
        (grad,) = torch.autograd.grad(soft_sort(leaf, alpha=0.5).sum(), leaf)
        expected = soft_sort_vjp(np.ones_like(numpy), numpy, alpha=0.5)[0]
        assert_allclose(grad, expected, rtol=1e-12)
        assert_array_equal(view, numpy)


# ---------------------------------------------------------------------------- autograd

CALLS = {
    "topk": lambda x, a: soft_topk(x, 1.2, alpha=a),
    "log topk": lambda x, a: soft_topk(x, 1.2, alpha=a, log=True),
    "rank": lambda x, a: soft_rank(x, alpha=a),
    "sort": lambda x, a: soft_sort(x, alpha=a),
    "permutation": lambda x, a: soft_permutation(x, alpha=a),
    "sum": lambda x, a: lapsum([0.1, 0.9], x, alpha=a),
    "level": lambda x, a: lapsum_inverse([1.9, 0.3], x, alpha=a),
    "loss": lambda x, a: soft_permutation_loss(
        x, torch.arange(x.shape[-1]).expand(x.shape), alpha=a
    ),
}
BY_CALL = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@BY_CALL
def test_backward_twice(room, call):
    x, alpha = tensor(X), tensor(np.full((2, 4), 0.4))
    out = call(x, alpha).sin().sum()
    first = torch.autograd.grad(out, (x, alpha), retain_graph=True)
    call(torch.tensor(X[::-1].copy()), 0.1)
    second = torch.autograd.grad(out, (x, alpha))
    for one, other in zip(first, second):
        assert_array_equal(one, other)
    assert_array_equal(x.detach(), X)


@BY_CALL
@pytest.mark.parametrize("which", [0, 1])
def test_change_in_place_is_found(room, call, which):
    inputs = [tensor(X[0]), tensor(np.full(4, 0.4))]
    out = call(*inputs).sin().sum()
    with torch.no_grad():
        inputs[which].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_changed_k_in_place_is_found():
    x, k = tensor(X[0]), tensor(np.full(4, 1.4))
    out = soft_topk(x, k, log=True).sum()
    with torch.no_grad():
        k.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


LOSSES = {"linear": torch.sum, "curved": lambda out: out.sin().sum()}
NO_SECOND = pytest.raises(RuntimeError, match="have no gradients of gradients")


@BY_CALL
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("which", [0, 1])
def test_no_gradients_of_gradients(room, call, loss, which):
    """Also where the loss is linear in the result, and through what is before x."""
    inputs = tensor(X[0]), tensor(np.full(4, 0.4))
    first = torch.autograd.grad(loss(call(*inputs)), inputs, create_graph=True)
    assert first[which].requires_grad
    for objective in (first[which].sum(), first[which].square().sum()):
        for wanted in inputs:
            with NO_SECOND:
                torch.autograd.grad(objective, wanted, retain_graph=True)
    factor = tensor(1.3)
    x = factor * torch.tensor(X[0])
    (by_factor,) = torch.autograd.grad(loss(call(x, 0.4)), factor, create_graph=True)
    with NO_SECOND:
        by_factor.square().backward()


def test_no_gradient_penalty(room):
    x = tensor(X[0, 0])
    (g,) = torch.autograd.grad(soft_rank(x)[0], x, create_graph=True)
    with NO_SECOND:
        ((g**2).sum() + (x**2).sum()).backward()
    x, k = tensor(X[0]), tensor(np.full(4, 1.4))
    _, t = soft_topk(x, k, return_threshold=True)
    (g,) = torch.autograd.grad(t.sum(), k, create_graph=True)
    with NO_SECOND:
        g.sum().backward()
    w = tensor([0.4, 1.7])
    (g,) = torch.autograd.grad(lapsum_inverse(w, x).sum(), w, create_graph=True)
    with NO_SECOND:
        g.sum().backward()


@BY_CALL
def test_gradients_with_a_graph_that_nobody_follows(room, call):
    x, alpha = tensor(X[0]), tensor(np.full(4, 0.4))
    plain = torch.autograd.grad(call(x, alpha).sin().sum(), (x, alpha))
    out = call(x, alpha).sin().sum()
    graph = torch.autograd.grad(out, (x, alpha), create_graph=True)
    for one, other in zip(graph, plain):
        assert one.requires_grad and not other.requires_grad
        assert_array_equal(one.detach(), other)
    # Other parts of a loss have second derivatives, beside gradients that are detached.
    (cubes,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (cubes.sum() + (graph[0].detach() * x).sum()).backward()
    assert_allclose(x.grad, 6 * X[0] + plain[0].numpy(), rtol=1e-12)


@BY_CALL
def test_results_whose_gradient_is_undefined(room, call):
    """A function may say that it gives none, as if it did not use the result."""

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, out):
            return out.sum()

        @staticmethod
        def backward(ctx, g):
            return None

    x = tensor(X[0])
    (Nothing.apply(call(x, 0.4)) + (2 * x).sum()).backward()
    assert_array_equal(x.grad, np.full((4, 3), 2.0))


@BY_CALL
def test_other_devices(call):
    for x in (torch.empty(4, 3, device="meta"), torch.empty(3, device="meta")):
        for alpha in (0.4, torch.tensor(0.4), "scale"):
            with pytest.raises(ValueError, match="x must be on a CPU or a CUDA device"):
                call(x, alpha)


@BY_CALL
def test_only_where_asked(room, call):
    assert not call(torch.tensor(X), 0.4).requires_grad
    with torch.no_grad():
        assert not call(tensor(X), 0.4).requires_grad
    alpha = tensor(0.4)
    call(torch.tensor(X), alpha).sin().sum().backward()
    assert alpha.grad.isfinite()


def test_all_change_of_levels_is_in_the_rest(room):
    x, w = tensor(X[0]), tensor(np.full((4, 2), 1.3))
    anchor, rest, _ = _torch.levels(w, x, 0.4)
    assert rest.requires_grad and not anchor.requires_grad
    assert np.isin(anchor, X[0]).all()


def test_vjps_are_not_for_tensors():
    x = torch.tensor(X)
    for call in (
        lambda: soft_topk_vjp(x, x, 1),
        lambda: soft_rank_vjp(x, x),
        lambda: soft_sort_vjp(x, x),
    ):
        with pytest.raises(TypeError, match="x is a torch tensor"):
            call()


def test_lost_lanes_without_check(room):
    x = tensor([[1.0, float("nan"), 2.0], [3.0, 1.0, 2.0], [1.0, float("inf"), 0.0]])
    p, t = soft_topk(x, 1.5, check_finite=False, return_threshold=True)
    assert_array_equal(p.isnan().all(dim=1), [True, False, True])
    assert_array_equal(t.isnan(), [True, False, True])
    p[1].square().sum().backward()
    g = 2 * soft_topk([3.0, 1.0, 2.0], 1.5)
    expected = soft_topk_vjp(g, [3.0, 1.0, 2.0], 1.5)[0]
    assert_allclose(x.grad[1], expected, rtol=1e-12)


def test_training_reaches_the_aim():
    """Learn an order, then a median, by gradients alone."""
    x = torch.zeros(5, dtype=F64, requires_grad=True)
    with torch.no_grad():
        x += torch.arange(5) * 0.01
    target = torch.tensor([3, 0, 4, 1, 2])
    optimizer = torch.optim.Adam([x], lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        loss = soft_permutation_loss(x, target, alpha=0.3)
        loss.backward()
        optimizer.step()
    assert_array_equal(torch.argsort(torch.argsort(x)), target)
    assert loss < 0.1
