"""SWAN with torch's tools, odd gradients, and layers of several kinds."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau

from skextra.optim import SWAN, make_optimizer, swan_param_groups

X = torch.randn(20, 8, generator=torch.Generator().manual_seed(1))


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3)
    )


def swan(module, **params):
    return SWAN(swan_param_groups(module), 0.01, matrix_lr_scale=1.0, **params)


def train(module, optimizer, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        module(X).square().mean().backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in module.parameters()]


def equal(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def step(gradient, parameter=None, **params):
    """Return the step that SWAN does for a gradient."""
    parameter = torch.zeros(gradient.shape) if parameter is None else parameter
    parameter = nn.Parameter(parameter)
    before = parameter.detach().clone()
    parameter.grad = gradient
    SWAN([parameter], 1.0, matrix_lr_scale=1.0, **params).step()
    return parameter.detach() - before


def test_copy_of_network_and_optimizer_goes_on():
    module = network()
    optimizer = swan(module, momentum=0.9, split={"0.weight": 2})
    train(module, optimizer)
    twin, its_optimizer = copy.deepcopy((module, optimizer))
    assert equal(train(module, optimizer), train(twin, its_optimizer))


def test_state_is_read_without_pickle():
    optimizer = swan(network(), ns_dtype=torch.bfloat16, ns_steps=5)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    group = torch.load(file, weights_only=True)["param_groups"][0]
    assert group["ns_dtype"] == torch.bfloat16


def test_scaled_loss():
    plain, scaled = network(), network()
    train(plain, swan(plain), steps=1)
    optimizer, scaler = swan(scaled), torch.amp.GradScaler("cpu")
    scaler.scale(scaled(X).square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert equal(plain.parameters(), scaled.parameters())
    optimizer.zero_grad()
    scaler.scale(scaled(X).square().mean() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert equal(plain.parameters(), scaled.parameters())
    assert scaler.get_scale() == 2.0**15


def test_clipped_gradients_of_matrices():
    free, clipped = network(), network()
    for module in (free, clipped):
        module(X).square().mean().backward()
    nn.utils.clip_grad_norm_(clipped.parameters(), 1e-6)
    for module in (free, clipped):
        swan(module).step()
    torch.testing.assert_close(free[0].weight, clipped[0].weight)
    torch.testing.assert_close(free[2].weight, clipped[2].weight)


def test_schedules():
    module = network()
    optimizer = swan(module, momentum=0.9)
    schedule = OneCycleLR(optimizer, max_lr=0.1, total_steps=4)
    rates = []
    for _ in range(3):
        train(module, optimizer, steps=1)
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    assert max(rates) > 0.05 > min(rates)
    assert {group["momentum"] for group in optimizer.param_groups} == {0.9}
    plateau = ReduceLROnPlateau(optimizer, patience=0)
    rate = optimizer.param_groups[0]["lr"]
    for _ in range(2):
        plateau.step(1.0)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(rate / 10)


@pytest.mark.parametrize("name", ["swan", "sinkgd", "muon"])
def test_frozen_layer_thaws(name):
    module = network()
    module[2].requires_grad_(False)
    frozen = module[2].weight.clone()
    optimizer = make_optimizer(name, module, 0.01)
    train(module, optimizer)
    assert torch.equal(module[2].weight, frozen)
    assert module[2].bias not in optimizer.state
    module[2].requires_grad_(True)
    train(module, optimizer)
    assert not torch.equal(module[2].weight, frozen)
    module.requires_grad_(False)
    assert make_optimizer(name, module, 0.01).step() is None


def test_no_learning_rate_no_change():
    module = network()
    optimizer = make_optimizer("swan", module, 0.0, weight_decay=0.1)
    assert equal(train(module, optimizer), network().parameters())


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (8, 4, 0)])
def test_nothing_to_do(shape):
    assert step(torch.zeros(shape)).shape == shape
    assert step(torch.zeros(0, 8, 8), batched_dims=1).shape == (0, 8, 8)


@pytest.mark.parametrize("kind", ["swan", "whiten", "rownorm", "sinkhorn"])
@pytest.mark.parametrize("scale", [1e38, 1e-44])
def test_extreme_gradients(kind, scale):
    gradient = torch.randn(8, 8, generator=torch.Generator().manual_seed(0))
    moved = step((gradient * scale).clamp(-3e38, 3e38), direction=kind)
    assert moved.square().mean().sqrt().item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", ["swan", "whiten", "rownorm", "sinkhorn"])
def test_layout_in_memory_does_not_matter(kind):
    gradient = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    expected = step(gradient, direction=kind)
    row = torch.randn(1, 16, generator=torch.Generator().manual_seed(2))
    for moved, known in (
        (step(gradient.T.contiguous().T, direction=kind), expected),
        (step(gradient, torch.zeros(16, 8).T, direction=kind), expected),
        (
            step(row.expand(8, 16), direction=kind),
            step(row.repeat(8, 1), direction=kind),
        ),
    ):
        torch.testing.assert_close(moved, known, rtol=0, atol=1e-4)


def test_gates_have_steps_of_their_own():
    torch.manual_seed(0)
    layer = nn.LSTM(8, 16)
    optimizer = SWAN(
        swan_param_groups(layer),
        1.0,
        matrix_lr_scale=1.0,
        split={"weight_ih_l0": 4, "weight_hh_l0": 4},
    )
    layer(torch.randn(3, 2, 8))[0].square().sum().backward()
    before = layer.weight_hh_l0.detach().clone()
    expected = torch.cat([step(gate) for gate in layer.weight_hh_l0.grad.chunk(4)])
    optimizer.step()
    torch.testing.assert_close(layer.weight_hh_l0 - before, expected)


@pytest.mark.parametrize(
    ("layer", "matrices"),
    [
        (nn.MultiheadAttention(8, 2), ["in_proj_weight"]),
        (
            nn.MultiheadAttention(8, 2, kdim=6, vdim=5),
            ["q_proj_weight", "k_proj_weight", "v_proj_weight"],
        ),
        (
            nn.TransformerEncoderLayer(8, 2, 16),
            ["self_attn.in_proj_weight", "self_attn.out_proj.weight", "linear1.weight"],
        ),
        (nn.GRU(8, 16), ["weight_ih_l0", "weight_hh_l0"]),
        (nn.Bilinear(8, 8, 8), ["weight"]),
        (
            nn.Sequential(nn.ConvTranspose2d(8, 4, 3), nn.Conv1d(4, 4, 1)),
            ["0.weight", "1.weight"],
        ),
        (nn.ParameterList([nn.Parameter(torch.ones(8, 8))]), ["0"]),
        (nn.Embedding(10, 8), []),
    ],
)
def test_matrices_of_layers(layer, matrices):
    groups = {g["algorithm"]: g["param_names"] for g in swan_param_groups(layer)}
    assert groups.get("swan", []) == matrices
    names = [name for own in groups.values() for name in own]
    assert sorted(names) == sorted(name for name, _ in layer.named_parameters())
