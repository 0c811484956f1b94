"""The module that stands in where a user brings none."""

from itertools import pairwise

from torch import nn


def mlp(
    in_features,
    out_features,
    hidden_layer_sizes=(100,),
    activation=nn.ReLU,
    dropout=0.0,
):
    """Return a multi-layer perceptron: activation and dropout after each hidden layer."""
    layers = []
    for before, after in pairwise((in_features, *hidden_layer_sizes)):
        layers += [nn.Linear(before, after), activation()]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(
        *layers, nn.Linear((in_features, *hidden_layer_sizes)[-1], out_features)
    )
