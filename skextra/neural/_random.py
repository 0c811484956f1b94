"""A stream of random numbers of one's own, from generators that all share."""

from contextlib import contextmanager
from threading import RLock

import torch

# Initialisers and dropout draw from torch's default generators, of which a process has
# one for each device: estimators that are fitted in threads take turns.
_TURN = RLock()


@contextmanager
def private_stream(seed, device, states=None):
    """Seed torch's generators of the CPU and of a CUDA device; put them back at the end.

    With `states`, they go on from where an earlier stream ended.

    Yields
    ------
    get_states : callable
        Returns the states of the generators.
    """
    with _TURN:
        generators = [torch.default_generator]
        if device.type == "cuda":
            torch.cuda.init()
            index = device.index
            index = torch.cuda.current_device() if index is None else index
            generators.append(torch.cuda.default_generators[index])
        before = [generator.get_state() for generator in generators]
        try:
            for generator in generators:
                generator.manual_seed(seed)
            for generator, state in zip(generators, states or [], strict=False):
                generator.set_state(state)
            yield lambda: [generator.get_state() for generator in generators]
        finally:
            for generator, state in zip(generators, before, strict=True):
                generator.set_state(state)
