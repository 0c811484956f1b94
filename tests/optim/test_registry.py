"""Optimizers by name, Muon with AdamW as one, and what works without torch."""

import copy
import pickle
import sys

import pytest
import torch
from torch import nn

import skextra.optim
from skextra.optim import SWAN, make_optimizer
from skextra.optim._registry import NAMES
from tests.optim.common import model, train, weights


@pytest.mark.parametrize("name", NAMES)
def test_each_name_trains(name):
    net = model()
    X = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
    optimizer = make_optimizer(name, net, 0.01)
    assert isinstance(optimizer, torch.optim.Optimizer)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = (net(X) - X[:, :2].sin()).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.4 * losses[0]


@pytest.mark.parametrize(
    ("name", "kind", "params"),
    [
        ("adam", torch.optim.Adam, {"fused": True}),
        ("adamw", torch.optim.AdamW, {"fused": True}),
        ("radam", torch.optim.RAdam, {}),
        ("sgd", torch.optim.SGD, {"momentum": 0.9}),
    ],
)
def test_names_of_torch(name, kind, params):
    ours, theirs = model(), model()
    optimizer = make_optimizer(name, ours, 0.01, weight_decay=0.1)
    assert type(optimizer) is kind
    train(ours, optimizer, 5)
    train(theirs, kind(theirs.parameters(), lr=0.01, weight_decay=0.1, **params), 5)
    assert torch.equal(weights(ours), weights(theirs))
    assert make_optimizer("sgd", ours, 0.1, momentum=0.5).defaults["momentum"] == 0.5


def test_swan_and_sinkgd():
    net = model()
    swan = make_optimizer("swan", net, 0.01)
    sinkgd = make_optimizer("sinkgd", net, 0.01, weight_decay=0.1)
    assert type(swan) is type(sinkgd) is SWAN
    assert swan.defaults["direction"] == "swan"
    assert sinkgd.defaults["direction"] == "sinkhorn"
    assert sinkgd.defaults["weight_decay"] == 0.1
    assert [len(group["params"]) for group in swan.param_groups] == [2, 6]
    for params, scale in (
        ({}, 1.0),
        ({"matrix_lr": None}, 1.0),
        ({"matrix_lr": 0.02}, 2.0),
        ({"matrix_lr_scale": 0.3}, 0.3),
    ):
        optimizer = make_optimizer("swan", net, 0.01, **params)
        ratio = optimizer.param_groups[0]["matrix_lr_scale"]
        assert ratio == pytest.approx(scale)


def test_class_and_function():
    net = model()
    optimizer = make_optimizer(torch.optim.SGD, net, 0.1, momentum=0.3)
    assert type(optimizer) is torch.optim.SGD and optimizer.defaults["momentum"] == 0.3

    def function(params, lr):
        return torch.optim.Adagrad(params, lr=2 * lr)

    assert make_optimizer(function, net, 0.1).defaults["lr"] == 0.2


def test_bad_input():
    with pytest.raises(
        ValueError, match="optimizer='lion' is unknown.*'adamw'.*'swan'"
    ):
        make_optimizer("lion", model(), 0.1)
    with pytest.raises(TypeError, match="a name or callable, got 3"):
        make_optimizer(3, model(), 0.1)
    with pytest.raises(TypeError, match="nesterofu"):
        make_optimizer("sgd", model(), 0.1, nesterofu=True)
    with pytest.raises(TypeError, match=r"has no parameters \['momentums'\]"):
        make_optimizer("muon", model(), 0.1, momentums=0.9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lr": -1.0}, "is: -1.0"),
        ({"lr": float("nan")}, "is: nan"),
        ({"weight_decay": -1.0}, "is: -1.0"),
        ({"momentum": -0.1}, "is: -0.1"),
        ({"betas": (2, 3)}, "index 0: 2"),
        ({"eps": -1e-8}, "epsilon value: -1e-08"),
        ({"adjust_lr_fn": "none"}, "none is not supported"),
    ],
)
def test_bad_values_of_muon(params, message):
    with pytest.raises(ValueError, match=message):
        make_optimizer("muon", model(), **{"lr": 0.1} | params)


# --------------------------------------------------------------------- Muon with AdamW


def pair(net, lr, **muon):
    matrices = [net[0].weight, net[2].weight]
    rest = [p for p in net.parameters() if not any(p is m for m in matrices)]
    muon = {"weight_decay": 0.0, "adjust_lr_fn": "match_rms_adamw", **muon}
    adamw = torch.optim.AdamW(rest, lr=lr, weight_decay=muon["weight_decay"])
    return torch.optim.Muon(matrices, lr=lr, **muon), adamw


@pytest.mark.parametrize(
    "params",
    [{}, {"weight_decay": 0.1}, {"momentum": 0.5}, {"adjust_lr_fn": "original"}],
)
def test_muon_is_torch_muon_and_adamw(params):
    ours, theirs = model(), model()
    train(ours, make_optimizer("muon", ours, 0.01, **params), 6)
    first, second = pair(theirs, 0.01, **params)
    # AdamW's zero_grad leaves the gradients of matrices.
    second.register_step_post_hook(lambda *args: (first.step(), first.zero_grad()))
    train(theirs, second, 6)
    assert torch.equal(weights(ours), weights(theirs))


def test_muon_takes_parameters_of_both():
    optimizer = make_optimizer("muon", model(), 0.01, ns_steps=3, betas=(0.8, 0.9))
    matrices, rest = optimizer.param_groups
    assert matrices["ns_steps"] == 3 and "betas" not in matrices
    assert rest["betas"] == (0.8, 0.9) and "ns_steps" not in rest
    assert matrices["param_names"] == ["0.weight", "2.weight"]


def test_muon_leaves_convolutions_and_narrow_matrices_to_adamw():
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 2)
    )
    matrices, rest = make_optimizer("muon", net, 0.01).param_groups
    assert matrices["param_names"] == ["2.weight"]
    assert {"0.weight", "1.weight", "3.weight"} <= set(rest["param_names"])


def test_muon_without_matrices_is_adamw():
    ours, theirs = (nn.Sequential(nn.Linear(6, 2)) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    optimizer = make_optimizer("muon", ours, 0.01)
    assert len(optimizer.param_groups) == 1
    train(ours, optimizer, 5)
    train(theirs, torch.optim.AdamW(theirs.parameters(), lr=0.01, weight_decay=0.0), 5)
    assert torch.equal(weights(ours), weights(theirs))


def test_muon_without_the_rest():
    net = nn.Sequential(nn.Linear(6, 6, bias=False), nn.Conv1d(1, 1, 1, bias=False))
    optimizer = make_optimizer("muon", net, 0.01)
    assert len(optimizer.param_groups) == 1  # the only Linear is the head


@pytest.mark.parametrize("way", ["state_dict", "deepcopy", "pickle"])
def test_muon_resumes_bit_exactly(way):
    straight = model()
    train(straight, make_optimizer("muon", straight, 0.01), 9)
    net = model()
    optimizer = make_optimizer("muon", net, 0.01)
    train(net, optimizer, 4)
    if way == "state_dict":
        saved = copy.deepcopy(optimizer.state_dict())
        optimizer = make_optimizer("muon", net, 0.5)
        optimizer.load_state_dict(saved)
    elif way == "deepcopy":
        net, optimizer = copy.deepcopy((net, optimizer))
    else:
        net, optimizer = pickle.loads(pickle.dumps((net, optimizer)))
    train(net, optimizer, 5, first=4)
    assert torch.equal(weights(net), weights(straight))
    assert len(optimizer.state) == 8


def test_muon_follows_a_scheduler():
    net = model()
    optimizer = make_optimizer("muon", net, 0.01)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.0)
    before = weights(net)
    train(net, optimizer, 2)
    scheduler.step()
    assert torch.equal(weights(net), before)
    assert [group["lr"] for group in optimizer.param_groups] == [0.0, 0.0]
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    train(net, optimizer, 1)
    assert not torch.equal(weights(net), before)


def test_muon_manners():
    net = model()
    optimizer = make_optimizer("muon", net, 0.01)
    extra = nn.Parameter(torch.ones(3))
    extra.grad = torch.ones(3)
    optimizer.add_param_group({"params": [extra], "param_names": ["extra"]})
    seen = []
    optimizer.register_step_post_hook(lambda *args: seen.append(1))
    X = torch.ones(2, 6)

    def closure():
        loss = net(X).square().mean()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() > 0 and seen == [1]
    torch.testing.assert_close(extra.detach(), torch.full((3,), 0.99))
    optimizer.zero_grad()
    assert all(p.grad is None for p in [*net.parameters(), extra])


# -------------------------------------------------------------------------------- door


def test_door():
    assert skextra.optim.SWAN is SWAN
    assert set(skextra.optim.__all__) <= set(dir(skextra.optim))
    with pytest.raises(AttributeError, match="has no attribute 'SWAM'"):
        assert skextra.optim.SWAM


def test_needs_no_skorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "skorch", None)
    optimizer = make_optimizer("swan", model(), 0.1)
    assert type(optimizer) is skextra.optim.SWAN


def test_complex_parameters_are_not_fused():
    net = model()
    net.extra = torch.nn.Parameter(torch.ones(3, dtype=torch.complex64))
    optimizer = make_optimizer("adamw", net, 0.01)
    net.extra.grad = torch.ones_like(net.extra)
    optimizer.step()
    assert not torch.equal(net.extra, torch.ones_like(net.extra))
    make_optimizer("adam", model(), 0.01, differentiable=True)
