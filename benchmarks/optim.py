"""SWAN beside torch's Muon and AdamW: the time of their steps.

The quality is what the optimizer keeps between two steps, in kB. What the steps are good
for is measured by ``benchmarks._optim_pilot``.
"""

from functools import partial

import torch
from torch import nn

from benchmarks._bytes import LENGTH, Decoder, load_text, loss_of
from benchmarks._harness import Case, main
from benchmarks._optim_pilot import state_bytes, windows
from skextra.optim import make_optimizer

MUON = "torch's Muon for the matrices, AdamW for the rest"
ADAMW = "torch's AdamW, fused"


def cases(quick):
    """List what is measured; a quick run leaves the large matrices out."""
    torch.set_num_threads(1)
    numbers, n_symbols, _ = load_text()
    small = partial(Decoder, n_symbols)
    found = [
        stepped("decoder of width 96", small, 20, MUON, "swan", "muon", 1 / 0.9),
        stepped("decoder of width 96", small, 20, ADAMW, "swan", "adamw"),
        stepped("decoder of width 96, SinkGD", small, 20, ADAMW, "sinkgd", "adamw"),
        stepped(
            "decoder of width 96, 5 iterations",
            small,
            20,
            MUON,
            "swan",
            "muon",
            1 / 0.9,
            ns_steps=5,
        ),
        trained(numbers, small),
    ]
    if not quick:
        found += [
            stepped("layers of width 512", wide, 3, MUON, "swan", "muon", 1 / 0.9),
            stepped("layers of width 512, SinkGD", wide, 3, MUON, "sinkgd", "muon"),
        ]
    return found


def wide():
    """Return the layers of two blocks of width 512 of a transformer."""
    shapes = 2 * [*(4 * [(512, 512)]), *(2 * [(512, 1376)]), (1376, 512)]
    layers = [nn.Linear(m, n, bias=False) for m, n in shapes]
    return nn.ModuleList([*layers, nn.Linear(512, 100)])


def stepped(name, make, n_steps, against, ours, theirs, target=None, **params):
    """Do steps of both optimizers with the same random gradients."""
    return Case(
        f"{n_steps} steps, {name}",
        against,
        stepper(make(), ours, n_steps, **params),
        stepper(make(), theirs, n_steps),
        target=target,
        quality=kept,
    )


def stepper(module, name, n_steps, **params):
    """Return a function that does steps of an optimizer."""
    rng = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=rng)
    optimizer = make_optimizer(name, module, 1e-3, **params)

    def run():
        for _ in range(n_steps):
            optimizer.step()
        return optimizer

    return run


def kept(optimizer):
    """Return the kB that the optimizer keeps."""
    return state_bytes(optimizer) / 1000


def trained(numbers, make, n_steps=20):
    """Train for some steps, forward and backward included."""

    def trainer(name):
        model, rng = make(), torch.Generator().manual_seed(0)
        optimizer = make_optimizer(name, model, 1e-3)

        def run():
            for _ in range(n_steps):
                optimizer.zero_grad()
                loss_of(model, windows(numbers, 16, rng)).backward()
                optimizer.step()
            return optimizer

        return run

    return Case(
        f"{n_steps} training steps, decoder of width 96, {16 * LENGTH} tokens",
        ADAMW,
        trainer("swan"),
        trainer("adamw"),
        target=1 / 1.35,
        quality=kept,
    )


if __name__ == "__main__":
    main("optim")
