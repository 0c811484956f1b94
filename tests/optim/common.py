"""Parameters with gradients, and a small network that trains."""

import torch
from torch import nn


def parameter(*shape, seed=0, dtype=torch.float32):
    """A parameter and its gradient, both Gaussian."""
    generator = torch.Generator().manual_seed(seed)
    value, gradient = torch.randn(2, *shape, generator=generator).to(dtype)
    p = nn.Parameter(value)
    p.grad = gradient
    return p


def copies(parameters):
    """The same parameters and gradients, once more."""
    new = [nn.Parameter(p.detach().clone()) for p in parameters]
    for p, q in zip(parameters, new):
        q.grad = p.grad.clone()
    return new


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(6, 12),
        nn.Tanh(),
        nn.Linear(12, 12),
        nn.LayerNorm(12),
        nn.Linear(12, 2),
    )


def train(net, optimizer, steps, first=0, step=None):
    """Some steps on Gaussian data that depend on the number of the step alone."""
    for i in range(first, first + steps):
        generator = torch.Generator().manual_seed(i)
        X = torch.randn(16, 6, generator=generator)
        optimizer.zero_grad()
        (net(X) - X[:, :2].sin()).square().mean().backward()
        (step or optimizer.step)()


def weights(net):
    return torch.cat([p.detach().flatten() for p in net.parameters()])
