"""Which parameters swan_param_groups counts as hidden matrices."""

import pytest
import torch
from torch import nn

from skextra.optim import SWAN, swan_param_groups


class Decoder(nn.Module):
    def __init__(self, tied=False):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.positions = nn.Parameter(torch.zeros(16, 8))
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 20, bias=False)
        if tied:
            self.head.weight = self.embedding.weight


BLOCK = [
    "block.self_attn.in_proj_weight",
    "block.self_attn.out_proj.weight",
    "block.linear1.weight",
    "block.linear2.weight",
]


def names(module, algorithm="swan", **params):
    groups = {g["algorithm"]: g for g in swan_param_groups(module, **params)}
    return groups[algorithm]["param_names"] if algorithm in groups else []


def check_partition(module, groups):
    """Every parameter once, under its own name."""
    own = dict(module.named_parameters())
    listed = [
        (name, parameter)
        for group in groups
        for name, parameter in zip(group["param_names"], group["params"])
    ]
    assert sorted(name for name, _ in listed) == sorted(own)
    assert all(own[name] is parameter for name, parameter in listed)


@pytest.mark.parametrize("tied", [False, True])
def test_decoder(tied):
    net = Decoder(tied)
    groups = swan_param_groups(net)
    check_partition(net, groups)
    assert names(net) == ["positions", *BLOCK]
    rest = names(net, "adamw")
    assert rest.count("embedding.weight") == 1
    assert ("head.weight" in rest) == (not tied)


def test_names_stay_on_adamw():
    assert names(Decoder(), names=["positions"]) == BLOCK
    # A shared weight has two names, and either will do.
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2))
    net[1].weight = net[0].weight
    assert names(net) == ["0.weight"]
    assert names(net, names=["1.weight"]) == []


def test_head():
    net = Decoder()
    others = [*BLOCK[:3], "head.weight"]
    for head in ("block.linear2", net.block.linear2):
        assert names(net, head=head, names=["positions"]) == others
    assert names(net, head=net.block) == ["positions", "head.weight"]
    assert names(net, head="") == []


def test_a_single_layer_is_all_head():
    net = nn.Linear(8, 8)
    groups = swan_param_groups(net)
    assert [group["algorithm"] for group in groups] == ["adamw"]
    check_partition(net, groups)
    assert names(nn.Embedding(8, 8)) == []


def test_no_linear_layer():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 4, 3))
    assert names(net) == ["0.weight", "2.weight"]
    assert swan_param_groups(nn.ReLU()) == []


def test_exclude():
    net = nn.Sequential(nn.Conv1d(4, 8, 3), nn.EmbeddingBag(9, 8), nn.Linear(8, 2))
    assert names(net) == ["0.weight"]
    assert names(net, exclude=()) == ["0.weight", "1.weight"]
    for exclude in (nn.Conv1d, (nn.Conv1d,), [nn.Conv1d]):
        assert names(net, exclude=exclude) == ["1.weight"]


def test_tied_hidden_layers_are_one_matrix():
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8))
    net[2].weight = net[0].weight
    assert names(net) == ["1.weight"]
    layer = nn.Linear(8, 8)
    net = nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(8, 2))
    assert names(net) == ["0.weight"]
    check_partition(net, swan_param_groups(net))


def test_last_registered_is_the_last_name_of_a_shared_layer():
    layer = nn.Linear(8, 8)
    net = nn.Sequential(layer, nn.Linear(8, 8), layer)
    assert names(net) == ["1.weight"]


def test_optimizer_keeps_the_names():
    optimizer = SWAN(swan_param_groups(Decoder(), names=["positions"]))
    assert optimizer.param_groups[0]["param_names"] == BLOCK
    assert "param_names" in optimizer.state_dict()["param_groups"][1]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"head": "tail"}, ValueError, "head='tail' is no layer.*'block.linear1'"),
        ({"head": nn.Linear(2, 2)}, ValueError, "is no layer of the module"),
        ({"names": ["nothing"]}, ValueError, r"names=\['nothing'\].*'positions'"),
        ({"names": "positions"}, TypeError, "the string 'positions'"),
        ({"exclude": ("Embedding",)}, TypeError, "types of layers, got 'Embedding'"),
    ],
)
def test_bad_input(params, error, message):
    with pytest.raises(error, match=message):
        swan_param_groups(Decoder(), **params)


def test_not_a_module():
    with pytest.raises(TypeError, match="module must be a torch.nn.Module, got 3"):
        swan_param_groups(3)
