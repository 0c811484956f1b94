"""SWAN's steps of matrices, and what counts as a matrix."""

import numpy as np
import pytest
import torch
from torch import nn

from skextra.optim import SWAN, swan_param_groups
from skextra.optim import _swan as room
from tests.optim import reference
from tests.optim.common import copies, parameter


def update(p, **params):
    """What one step with learning rate 1 subtracts from a parameter."""
    before = p.detach().clone()
    SWAN([p], lr=1.0, matrix_lr_scale=1.0, **params).step()
    return (before - p).detach()


# ---------------------------------------------------------------------------- matrices


@pytest.mark.parametrize("shape", [(8, 12), (12, 8), (9, 9), (5, 40), (40, 5)])
@pytest.mark.parametrize(("steps", "beta"), [(10, 0.8), (25, 0.5)])
def test_step_of_a_matrix(shape, steps, beta):
    p = parameter(*shape, dtype=torch.float64)
    expected = reference.swan(p.grad, steps, beta)
    np.testing.assert_allclose(
        update(p, ns_steps=steps, ns_beta=beta), expected, atol=1e-8
    )


def test_step_of_other_directions():
    p = parameter(8, 12, dtype=torch.float64)
    G = p.grad.numpy()
    for direction, D in (
        ("whiten", reference.newton_schulz(G, 10, 0.8)),
        ("rownorm", reference.grad_norm(G)),
        ("sinkhorn", reference.sinkhorn(G)),
    ):
        expected = reference.unit_rms(D, 8)
        np.testing.assert_allclose(update(p, direction=direction), expected, atol=1e-9)


def test_without_rescaling():
    p = parameter(8, 12, dtype=torch.float64)
    D = reference.newton_schulz(reference.grad_norm(p.grad), 10, 0.8)
    np.testing.assert_allclose(update(p, rescale=False), D, atol=1e-9)


@pytest.mark.parametrize("shape", [(32, 48), (48, 32), (16, 64)])
def test_whitening_points_where_muon_without_momentum_does(shape):
    p = parameter(*shape)
    (q,) = copies([p])
    start = q.detach().clone()
    torch.optim.Muon([q], lr=1.0, momentum=0.0, weight_decay=0.0).step()
    D = update(p, direction="whiten", ns_steps=25, ns_beta=0.5)
    cosine = nn.functional.cosine_similarity(D.flatten(), (start - q).flatten(), dim=0)
    assert cosine > 0.98


def test_learning_rate_is_the_size_of_the_step():
    for G in (1e-20, 1.0, 1e20):
        p = parameter(8, 12)
        p.grad *= G
        before = p.detach().clone()
        SWAN([p], lr=0.02, matrix_lr=0.003).step()
        step = (before - p).detach().square().mean().sqrt()
        assert float(step) == pytest.approx(0.003, rel=1e-3)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, 0.05 * 0.01),
        ({"matrix_lr_scale": 0.5}, 0.005),
        ({"matrix_lr": 0.007}, 0.007),
        ({"matrix_lr": 0.007, "matrix_lr_scale": 0.5}, 0.007),
    ],
)
@pytest.mark.parametrize("kind", [float, torch.tensor, lambda lr: torch.tensor([lr])])
def test_learning_rate_of_matrices(params, expected, kind):
    p = parameter(8, 12)
    before = p.detach().clone()
    SWAN([p], lr=kind(0.01), **params).step()
    step = (before - p).detach().square().mean().sqrt()
    assert float(step) == pytest.approx(expected, rel=1e-4)


def test_learning_rates_of_groups():
    ps = [parameter(8, 12, seed=i) for i in range(3)]
    optimizer = SWAN(
        [
            {"params": [ps[0]]},
            {"params": [ps[1]], "lr": 0.1},
            {"params": [ps[2]], "lr": 0.1, "matrix_lr": 0.3},
        ],
        lr=0.01,
        matrix_lr=0.002,
    )
    before = [p.detach().clone() for p in ps]
    optimizer.step()
    sizes = [(b - p).detach().square().mean().sqrt() for b, p in zip(before, ps)]
    np.testing.assert_allclose(sizes, [0.002, 0.02, 0.3], rtol=1e-4)


def test_weight_decay_is_decoupled():
    p, b = parameter(8, 12), parameter(12)
    p2, b2 = copies([p, b])
    SWAN([p, b], lr=0.1, matrix_lr=0.2).step()
    start, start_b = p2.detach().clone(), b2.detach().clone()
    SWAN([p2, b2], lr=0.1, matrix_lr=0.2, weight_decay=0.3).step()
    torch.testing.assert_close(p - p2, 0.2 * 0.3 * start)
    torch.testing.assert_close(b - b2, 0.1 * 0.3 * start_b)


def test_weight_decay_of_the_fallback():
    b, b2 = parameter(12), parameter(12)
    SWAN([b], lr=0.1, weight_decay=0.3, fallback_weight_decay=0.0).step()
    torch.optim.AdamW([b2], lr=0.1, weight_decay=0.0).step()
    assert torch.equal(b, b2)


@pytest.mark.parametrize("value", [0.0, 5.0])
def test_gradient_without_direction_leaves_decayed_weights(value):
    p = parameter(8, 12)
    before = p.detach().clone()
    p.grad.fill_(value)
    SWAN([p], lr=0.1, matrix_lr=0.1, weight_decay=0.5).step()
    torch.testing.assert_close(p.detach(), before * 0.95)


def test_maximize():
    ps = [parameter(8, 12), parameter(7)]
    qs = copies(ps)
    for q in qs:
        q.grad = -q.grad
    SWAN(ps, lr=0.1, maximize=True).step()
    SWAN(qs, lr=0.1).step()
    for p, q in zip(ps, qs):
        torch.testing.assert_close(p, q)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_gradients_reach_the_weights(bad):
    p, q = parameter(8, 12), parameter(8, 12, seed=1)
    p.grad[1, 2] = bad
    SWAN([p, q]).step()
    assert torch.isnan(p).any() and torch.isfinite(q).all()


def test_no_gradient_no_step():
    ps = [parameter(8, 12), parameter(8, 12, seed=1), parameter(5), parameter(5)]
    ps[0].grad = ps[2].grad = None
    before = [p.detach().clone() for p in ps]
    optimizer = SWAN(ps, weight_decay=0.1)
    optimizer.step()
    changed = [not torch.equal(p, b) for p, b in zip(ps, before)]
    assert changed == [False, True, False, True]
    assert list(optimizer.state) == [ps[3]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_parameters_keep_their_dtype(dtype):
    p = parameter(16, 24, dtype=dtype)
    start = p.detach().double()
    expected = start - 0.5 * torch.as_tensor(reference.swan(p.grad.double()))
    SWAN([p], matrix_lr=0.5).step()
    assert p.dtype == dtype
    tolerance = {torch.bfloat16: 0.02, torch.float16: 2e-3, torch.float64: 1e-9}[dtype]
    torch.testing.assert_close(p.detach().double(), expected, atol=tolerance, rtol=0)


def test_bfloat16_whitening():
    p, q = parameter(16, 24), parameter(16, 24)
    fine = update(p, ns_steps=5)
    coarse = update(q, ns_steps=5, ns_dtype=torch.bfloat16)
    assert (fine - coarse).norm() < 0.05 * fine.norm()


def test_momentum_is_the_running_mean_of_gradients():
    p, q = parameter(8, 12, dtype=torch.float64), parameter(8, 12, dtype=torch.float64)
    with_momentum = SWAN([p], lr=0.1, momentum=0.9)
    plain = SWAN([q], lr=0.1)
    mean = torch.zeros_like(p)
    for seed in range(4):
        gradient = parameter(8, 12, seed=seed, dtype=torch.float64).grad
        mean = 0.9 * mean + 0.1 * gradient
        p.grad, q.grad = gradient, mean.clone()
        with_momentum.step()
        plain.step()
    torch.testing.assert_close(p, q)
    torch.testing.assert_close(with_momentum.state[p]["momentum_buffer"], mean)


# ------------------------------------------------------- what a matrix is, and batches


def test_equal_shapes_are_one_batch_and_change_nothing(monkeypatch):
    shapes = [(8, 12)] * 5 + [(12, 8)] * 2 + [(8, 12), (4, 3, 4)]
    ps = [parameter(*s, seed=i, dtype=torch.float64) for i, s in enumerate(shapes)]
    qs = copies(ps)
    calls = []
    original = room.compute_direction

    def spy(G, *args):
        calls.append(tuple(G.shape))
        return original(G, *args)

    monkeypatch.setattr(room, "compute_direction", spy)
    SWAN(ps).step()
    assert calls == [(6, 8, 12), (2, 12, 8), (1, 4, 12)]
    for q in qs:
        SWAN([q]).step()
    for p, q in zip(ps, qs):
        torch.testing.assert_close(p, q)


def test_batches_are_bounded(monkeypatch):
    monkeypatch.setattr(room, "BATCH_ENTRIES", 200)
    shapes = [(1, 8, 12)] * 5 + [(1, 20, 20)] + [(1, 8, 12)]
    gradients = [torch.zeros(s) for s in shapes]
    assert room.batches(gradients, shapes) == [[0, 1], [2, 3], [4, 6], [5]]
    gradients[1] = gradients[1].double()
    assert room.batches(gradients, shapes) == [[0, 2], [3, 4], [6], [1], [5]]


def test_temporaries_are_those_of_a_batch(monkeypatch):
    monkeypatch.setattr(room, "BATCH_ENTRIES", 1)
    sizes = []
    original = room.compute_direction

    def spy(G, *args):
        sizes.append(G.numel())
        return original(G, *args)

    monkeypatch.setattr(room, "compute_direction", spy)
    SWAN([parameter(8, 12, seed=i) for i in range(5)]).step()
    assert sizes == [96] * 5


def test_convolution_is_flattened():
    p = parameter(8, 3, 3, 3)
    (q,) = copies([p])
    flat = nn.Parameter(q.detach().reshape(8, 27))
    flat.grad = q.grad.reshape(8, 27)
    SWAN([p]).step()
    SWAN([flat]).step()
    torch.testing.assert_close(p.detach().reshape(8, 27), flat.detach())


def test_convolution_with_channels_last():
    p = parameter(8, 4, 3, 3)
    (q,) = copies([p])
    q.data = q.data.to(memory_format=torch.channels_last)
    q.grad = q.grad.to(memory_format=torch.channels_last)
    SWAN([p]).step()
    SWAN([q]).step()
    assert q.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(p.detach(), q.detach())


@pytest.mark.parametrize(
    ("shape", "params", "matrix"),
    [
        ((8, 12), {}, True),
        ((4, 4), {}, True),
        ((3, 12), {}, False),
        ((12, 3), {}, False),
        ((12, 1), {}, False),
        ((1, 12), {}, False),
        ((1, 12), {"min_dim": 1}, True),
        ((3, 12), {"min_dim": 3}, True),
        ((8, 12), {"min_dim": 9}, False),
        ((12,), {}, False),
        ((), {}, False),
        ((12,), {"min_dim": 1}, False),
        ((32, 1, 3, 3), {}, True),
        ((32, 1, 1, 3), {}, False),
        ((5, 8, 12), {"batched_dims": 1}, True),
        ((5, 3, 12), {"batched_dims": 1}, False),
        ((8, 12), {"batched_dims": 1}, False),
        ((2, 3, 8, 12), {"batched_dims": 2}, True),
    ],
)
def test_which_parameters_are_matrices(shape, params, matrix):
    p = parameter(*shape)
    q = copies([p])[0]
    optimizer = SWAN([p], lr=0.1, **params)
    optimizer.step()
    assert (len(optimizer.state) == 0) == matrix
    torch.optim.AdamW([q], lr=0.1, weight_decay=0.0).step()
    assert torch.equal(p, q) == (not matrix)


def test_group_for_adamw():
    p, q = parameter(8, 12), parameter(8, 12)
    SWAN([{"params": [p], "algorithm": "adamw"}], lr=0.1).step()
    torch.optim.AdamW([q], lr=0.1, weight_decay=0.0).step()
    assert torch.equal(p, q)


def test_stack_of_experts():
    p = parameter(5, 8, 12, dtype=torch.float64)
    expected = [reference.swan(G) for G in p.grad]
    np.testing.assert_allclose(update(p, batched_dims=1), expected, atol=1e-8)


@pytest.mark.parametrize("form", ["pairs", "groups"])
def test_split_has_a_step_for_each_block(form):
    p, b = parameter(18, 8, dtype=torch.float64), parameter(18, dtype=torch.float64)
    before = p.detach().clone()
    named = [("qkv.weight", p), ("qkv.bias", b)]
    if form == "groups":
        named = [{"params": [pair]} for pair in named]
    SWAN(named, lr=1.0, matrix_lr=1.0, split={"qkv.weight": 3}).step()
    expected = np.concatenate([reference.swan(G) for G in p.grad.reshape(3, 6, 8)])
    np.testing.assert_allclose((before - p).detach(), expected, atol=1e-8)


def test_split_of_a_stack():
    p = parameter(2, 12, 8, dtype=torch.float64)
    before = p.detach().clone()
    groups = [
        {"params": [p], "param_names": ["w"], "batched_dims": 1, "split": {"w": 2}}
    ]
    SWAN(groups, matrix_lr=1.0).step()
    blocks = p.grad.reshape(4, 6, 8)
    expected = np.reshape([reference.swan(G) for G in blocks], (2, 12, 8))
    np.testing.assert_allclose((before - p).detach(), expected, atol=1e-8)


def test_attention_splits_by_its_name():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    SWAN(swan_param_groups(layer), split={"self_attn.in_proj_weight": 3})
