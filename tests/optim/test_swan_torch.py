"""SWAN among torch's optimizers: its AdamW part, state, manners, and bad input."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch
from torch import nn

from skextra.optim import SWAN, swan_param_groups
from tests.optim.common import copies, model, parameter, train, weights

# ------------------------------------------------------------------------- AdamW's part


@pytest.mark.parametrize("foreach", [None, False, True])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_fallback_is_bit_equal_to_adamw(foreach, maximize, dtype):
    shapes = [(7,), (3, 5), (), (1, 1), (64,)]
    ps = [parameter(*s, seed=i, dtype=dtype) for i, s in enumerate(shapes)]
    qs = copies(ps)
    common = {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.03}
    common |= {"foreach": foreach, "maximize": maximize}
    ours, theirs = SWAN(ps, **common), torch.optim.AdamW(qs, **common)
    for seed in range(20):
        for i, (p, q) in enumerate(zip(ps, qs)):
            p.grad = parameter(*p.shape, seed=100 * seed + i, dtype=dtype).grad
            q.grad = p.grad.clone()
        ours.step()
        theirs.step()
        assert all(torch.equal(p, q) for p, q in zip(ps, qs))
    for p, q in zip(ps, qs):
        assert ours.state[p].keys() == theirs.state[q].keys()
        for key, value in theirs.state[q].items():
            assert torch.equal(ours.state[p][key], value)


def test_network_without_matrices_is_bit_equal_to_adamw():
    ours, theirs = model(), model()
    train(ours, SWAN(ours.named_parameters(), lr=0.01, min_dim=100), 20)
    train(theirs, torch.optim.AdamW(theirs.parameters(), lr=0.01, weight_decay=0.0), 20)
    assert torch.equal(weights(ours), weights(theirs))


# --------------------------------------------------------------------- state and resume


def state_bytes(optimizer):
    return sum(
        value.numel() * value.element_size()
        for state in optimizer.state.values()
        for value in state.values()
    )


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_bytes_of_state(momentum):
    net = model()
    optimizer = SWAN(swan_param_groups(net), momentum=momentum)
    train(net, optimizer, 2)
    matrices, rest = (group["params"] for group in optimizer.param_groups)
    entries = sum(p.numel() for p in rest)
    buffers = sum(p.numel() for p in matrices) if momentum else 0
    assert state_bytes(optimizer) == 8 * entries + 4 * len(rest) + 4 * buffers
    assert len(matrices) == 2


def test_state_of_matrices_alone_is_empty():
    optimizer = SWAN([parameter(8, 12), parameter(4, 3, 3, 3)])
    optimizer.step()
    assert optimizer.state_dict()["state"] == {} and not optimizer.state


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("way", ["state_dict", "file", "deepcopy", "pickle"])
def test_resumes_bit_exactly(way, momentum):
    def make(net):
        groups = swan_param_groups(net)
        return SWAN(groups, lr=0.02, weight_decay=0.01, momentum=momentum)

    straight = model()
    train(straight, make(straight), 10)
    net = model()
    optimizer = make(net)
    train(net, optimizer, 4)
    if way in ("state_dict", "file"):
        saved = copy.deepcopy((net.state_dict(), optimizer.state_dict()))
        if way == "file":
            file = io.BytesIO()
            torch.save(saved, file)
            file.seek(0)
            saved = torch.load(file, weights_only=True)
        net = model(seed=1)
        optimizer = make(net)
        net.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
    elif way == "deepcopy":
        net, optimizer = copy.deepcopy((net, optimizer))
    else:
        net, optimizer = pickle.loads(pickle.dumps((net, optimizer)))
    train(net, optimizer, 6, first=4)
    assert torch.equal(weights(net), weights(straight))


# ---------------------------------------------------------------------- torch's manners


def test_closure():
    net = model()
    optimizer = SWAN(swan_param_groups(net))
    X = torch.ones(3, 6)

    def closure():
        optimizer.zero_grad()
        loss = net(X).square().mean()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(20)]
    assert losses[-1] < losses[0]
    assert optimizer.step() is None


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zero_grad(set_to_none):
    p = parameter(8, 12)
    SWAN([p]).zero_grad(set_to_none=set_to_none)
    assert p.grad is None if set_to_none else not p.grad.any()


def test_hooks():
    optimizer = SWAN([parameter(8, 12)])
    seen = []
    optimizer.register_step_pre_hook(lambda *args: seen.append("before"))
    optimizer.register_step_post_hook(lambda *args: seen.append("after"))
    optimizer.step()
    assert seen == ["before", "after"]


def test_add_param_group():
    p, q = parameter(8, 12), parameter(8, 12, seed=1)
    optimizer = SWAN([p], matrix_lr=0.1)
    optimizer.add_param_group({"params": q, "matrix_lr": 0.3})
    before = q.detach().clone()
    optimizer.step()
    step = (before - q).detach().square().mean().sqrt()
    assert float(step) == pytest.approx(0.3, rel=1e-5)
    assert "matrix_lr" not in optimizer.param_groups[1]
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [p]})
    with pytest.raises(ValueError, match="direction='left'"):
        optimizer.add_param_group({"params": [parameter(4, 4)], "direction": "left"})
    assert len(optimizer.param_groups) == 2


@pytest.mark.parametrize("kind", [float, torch.tensor])
def test_schedulers_move_both_learning_rates(kind):
    p, b = parameter(8, 12), parameter(5)
    optimizer = SWAN([p, b], lr=kind(0.01), matrix_lr=0.004)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    for i in range(4):
        before = p.detach().clone()
        optimizer.step()
        scheduler.step()
        step = (before - p).detach().square().mean().sqrt()
        assert float(step) == pytest.approx(0.004 * 0.5**i, rel=1e-3)
    assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(0.01 / 16)


def test_scheduler_and_optimizer_resume():
    def make(net):
        optimizer = SWAN(swan_param_groups(net), lr=0.01, matrix_lr=0.004)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        return optimizer, scheduler

    def run(net, optimizer, scheduler, steps, first=0):
        for i in range(first, first + steps):
            train(net, optimizer, 1, first=i)
            scheduler.step()

    straight = model()
    run(straight, *make(straight), 8)
    net = model()
    optimizer, scheduler = make(net)
    run(net, optimizer, scheduler, 3)
    saved = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
    optimizer, scheduler = make(net)
    optimizer.load_state_dict(saved[0])
    scheduler.load_state_dict(saved[1])
    run(net, optimizer, scheduler, 5, first=3)
    assert torch.equal(weights(net), weights(straight))


@pytest.mark.parametrize("params", [{}, {"momentum": 0.9}, {"direction": "sinkhorn"}])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_step_agrees(backend, params):
    torch._dynamo.reset()
    nets = [model(), model()]
    optimizers = [
        SWAN(swan_param_groups(net), lr=0.01, weight_decay=0.1, **params)
        for net in nets
    ]
    step = torch.compile(optimizers[1].step, backend=backend)
    train(nets[0], optimizers[0], 5)
    train(nets[1], optimizers[1], 5, step=step)
    torch.testing.assert_close(weights(nets[0]), weights(nets[1]))


def test_compiled_step_is_one_graph():
    torch._dynamo.reset()
    net = model()
    optimizer = SWAN(swan_param_groups(net), lr=0.01)
    train(net, optimizer, 1)
    compiled = torch.compile(optimizer.step, fullgraph=True, backend="eager")
    before = weights(net)
    compiled()
    assert not torch.equal(weights(net), before)


def test_training_lowers_the_loss():
    for direction in ("swan", "whiten", "rownorm", "sinkhorn"):
        net = model()
        X = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
        optimizer = SWAN(
            swan_param_groups(net), lr=0.01, matrix_lr_scale=0.5, direction=direction
        )
        losses = []
        for _ in range(60):
            optimizer.zero_grad()
            loss = (net(X) - X[:, :2].sin()).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.2 * losses[0]


# --------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"lr": -0.1}, ValueError, r"lr=-0\.1 must be finite and at least 0"),
        ({"lr": np.nan}, ValueError, "lr=nan must be finite"),
        ({"lr": np.inf}, ValueError, "lr=inf must be finite"),
        ({"lr": "fast"}, TypeError, "lr='fast' must be a number"),
        ({"lr": torch.tensor([0.1, 0.2])}, ValueError, r"one number, got shape \(2,\)"),
        ({"lr": torch.tensor(-0.1)}, ValueError, "at least 0"),
        (
            {"lr": torch.tensor(0.1), "foreach": True},
            ValueError,
            "foreach=True needs lr",
        ),
        ({"matrix_lr": -1.0}, ValueError, r"matrix_lr=-1\.0 must"),
        ({"matrix_lr": "a"}, TypeError, "matrix_lr='a' must be a number"),
        ({"lr": 0.0, "matrix_lr": 0.1}, ValueError, "set matrix_lr_scale instead"),
        ({"matrix_lr_scale": -1.0}, ValueError, "matrix_lr_scale"),
        (
            {"direction": "left"},
            ValueError,
            "direction='left' must be one of .*'whiten'",
        ),
        ({"ns_steps": 0}, ValueError, "ns_steps=0 must be at least 1"),
        ({"ns_steps": 2.5}, TypeError, "ns_steps=2.5 must be an integer"),
        ({"ns_beta": 1 / 3}, ValueError, "above 1/3 and at most 1"),
        ({"ns_beta": 1.01}, ValueError, "above 1/3 and at most 1"),
        ({"ns_dtype": torch.int32}, ValueError, "ns_dtype=torch.int32"),
        ({"ns_dtype": torch.bfloat16}, ValueError, "ns_steps=10 must be at most 5"),
        ({"momentum": 1.0}, ValueError, "momentum=1.0 must be at least 0 and below 1"),
        ({"momentum": -0.1}, ValueError, "momentum=-0.1"),
        ({"betas": (0.9, 1.0)}, ValueError, r"betas\[1\]=1.0 must"),
        ({"betas": (-0.1, 0.9)}, ValueError, r"betas\[0\]=-0.1 must"),
        ({"betas": 0.9}, ValueError, "betas=0.9 must be two numbers"),
        ({"betas": (0.9,)}, ValueError, "must be two numbers"),
        ({"eps": -1e-8}, ValueError, "eps=-1e-08"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay=-1.0"),
        ({"fallback_weight_decay": -1.0}, ValueError, "fallback_weight_decay=-1.0"),
        ({"min_dim": 0}, ValueError, "min_dim=0 must be at least 1"),
        ({"batched_dims": -1}, ValueError, "batched_dims=-1 must be at least 0"),
        ({"foreach": "no"}, ValueError, "foreach='no'"),
        ({"split": 3}, TypeError, "split=3 must be a dict"),
        ({"split": {"w": 0}}, ValueError, r"split\['w'\]=0 must be at least 1"),
        ({"split": {"w": 1.5}}, TypeError, r"split\['w'\]=1.5 must be an integer"),
    ],
)
def test_bad_values(params, error, message):
    with pytest.raises(error, match=message):
        SWAN([parameter(8, 12)], **params)
    if "lr" in params or "matrix_lr" in params or "split" in params:
        return
    with pytest.raises(error, match=message):
        SWAN([{"params": [parameter(8, 12)], **params}])


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ([], ValueError, "empty parameter list"),
        (["w"], TypeError, "can only optimize Tensors"),
        ([np.zeros((8, 12))], TypeError, "can only optimize Tensors"),
        ([1.0], TypeError, "can only optimize Tensors"),
        (torch.zeros(8, 12), TypeError, "iterable of Tensors or dicts"),
        ([{"params": [torch.zeros(4, 4)], "algorithm": "adam"}], ValueError, "'adamw'"),
    ],
)
def test_bad_parameters(params, error, message):
    with pytest.raises(error, match=message):
        SWAN(params)


def test_bad_group():
    optimizer = SWAN([parameter(8, 12)])
    with pytest.raises(TypeError, match="param_group must be a dict"):
        optimizer.add_param_group([parameter(4, 4)])


def test_bad_split():
    p, b = parameter(8, 12), parameter(8)
    with pytest.raises(ValueError, match=r"split names \['w'\].*give named parameters"):
        SWAN([p], split={"w": 2})
    with pytest.raises(ValueError, match=r"split names \['v'\]"):
        SWAN([("w", p)], split={"v": 2})
    with pytest.raises(ValueError, match="8 rows do not make 5 blocks"):
        SWAN([("w", p)], split={"w": 5}, min_dim=1)
    with pytest.raises(ValueError, match="AdamW updates blocks of this parameter"):
        SWAN([("w", p)], split={"w": 4})
    with pytest.raises(ValueError, match="AdamW updates blocks of this parameter"):
        SWAN([("w", p), ("b", b)], split={"b": 2})
    with pytest.raises(ValueError, match=r"split names \['w'\]"):
        SWAN([{"params": [("v", p)], "split": {"w": 2}}])


@pytest.mark.parametrize("shape", [(8, 12), (8,)])
def test_complex_gradients(shape):
    p = nn.Parameter(torch.zeros(shape, dtype=torch.complex64))
    p.grad = torch.zeros_like(p)
    with pytest.raises(RuntimeError, match="complex gradients"):
        SWAN([p]).step()


@pytest.mark.parametrize("algorithm", ["swan", "adamw"])
def test_sparse_gradients(algorithm):
    p = nn.Parameter(torch.zeros(8, 12))
    p.grad = torch.zeros(8, 12).to_sparse()
    with pytest.raises(RuntimeError, match="sparse gradients, got torch.sparse_coo"):
        SWAN([{"params": [p], "algorithm": algorithm}]).step()
