"""LapSum beside vectorised torch, NumPy's sort and torchsort, forward and backward.

The quality of soft top-k is the largest distance of a row's sum from k; of soft ranks,
that of their sum from n (n + 1) / 2, over n. torchsort is measured where it is installed:
its wheels are for older torch, and to build it takes a compiler.
"""

from functools import partial
from importlib.util import find_spec

import numpy as np
import torch

from benchmarks._harness import Case, main
from benchmarks._torch_lapsum import VectorisedTopK
from skextra.ranking import soft_rank, soft_sort, soft_topk, soft_topk_vjp

ALPHA = 0.1
TORCH = "the same formulas in vectorised torch, gradient in closed form"
SORT = "numpy.sort alone"


def cases(quick):
    """List what is measured; a quick run leaves the long rows out."""
    torch.set_num_threads(1)
    shapes = [(1, 100), (1, 1000), (128, 1000), (1, 10**4)]
    lengths = [1000, 10**4]
    if not quick:
        shapes += [(16, 10**4), (1, 10**5), (1, 10**6)]
        lengths += [10**5, 10**6]
    found = [topk(*shape) for shape in shapes]
    found += [beside_sort(n) for n in lengths]
    if not quick:
        found += [growth("soft rank", soft_rank), growth("soft top-k", tenth_largest)]
        found += [threaded(1000, 1000)]
    found += [wrapper()]
    if find_spec("torchsort"):
        found += [beside_torchsort(name, n) for name in SOFT for n in lengths[:3]]
    return found


def tenth_largest(x, alpha):
    """Return the soft mask of the largest tenth of each row."""
    return soft_topk(x, x.shape[-1] / 10, alpha=alpha)


def vectorised(x, alpha):
    """Return the same from torch's functions."""
    return VectorisedTopK.apply(x, x.shape[-1] / 10, alpha)


def values(rows, n):
    """Return a tensor, which wants a gradient, and a cotangent."""
    rng = torch.Generator().manual_seed(0)
    x, g = torch.randn(2, rows, n, generator=rng, dtype=torch.float64)
    return x.requires_grad_(), g


def repeats(rows, n):
    """Return how often a job is done, so that it takes some milliseconds."""
    return max(1, 200_000 // (rows * n))


def trained(function, rows, n, times=None):
    """Return a job: forward and backward."""
    x, g = values(rows, n)

    def run():
        for _ in range(times or repeats(rows, n)):
            x.grad = None
            out = function(x, alpha=ALPHA)
            out.backward(g)
        return out.detach()

    return run


def off_by(weights):
    """Return how far the sums of weights are from a tenth of their number."""
    return (weights.sum(1) - weights.shape[1] / 10).abs().max()


def topk(rows, n, target=3):
    """Compare soft top-k; below 1000 values all is the cost of calls."""
    times = repeats(rows, n)
    return Case(
        f"{times} x soft top-k of {rows} x {n} values",
        TORCH,
        trained(tenth_largest, rows, n),
        trained(vectorised, rows, n),
        target=target if n >= 1000 else None,
        quality=off_by,
        runs=7,
    )


def rank_error(ranks):
    """Return how far the sum of ranks is from what it must be, over n."""
    n = ranks.shape[1]
    return (ranks.sum(1) / n - (n + 1) / 2).abs().max()


def beside_sort(n):
    """Compare soft ranks with the least that anything that ranks must do."""
    times, x = repeats(1, n), values(1, n)[0].detach().numpy()

    def sort():
        for _ in range(times):
            out = np.sort(x)
        return torch.tensor(np.argsort(np.argsort(out)) + 1.0)

    return Case(
        f"{times} x soft rank of {n} values",
        SORT,
        trained(soft_rank, 1, n),
        sort,
        target=1 / 20 if n in (10**4, 10**5) else None,
        quality=rank_error,
        runs=7,
    )


def growth(name, function):
    """Compare ten times as many values with ten times the work."""
    return Case(
        f"{name} of 1000000 values",
        "itself, 10 times 100000 values",
        trained(function, 1, 10**6),
        trained(function, 1, 10**5, times=10),
        target=10 / 13,
        runs=7,
    )


def threaded(rows, n):
    """Compare with two threads, for rows enough to be worth them."""

    def with_two(job):
        torch.set_num_threads(2)
        out = job()
        torch.set_num_threads(1)
        return out

    return Case(
        f"soft top-k of {rows} x {n} values, two threads",
        TORCH,
        partial(with_two, trained(tenth_largest, rows, n)),
        partial(with_two, trained(vectorised, rows, n)),
        target=3,
        quality=off_by,
        threads=2,
        runs=7,
    )


class _Same(torch.autograd.Function):
    """What torch itself takes to call a function and its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g * 1


def wrapper(n=100, times=1000):
    """Compare with the NumPy function and an empty one of torch: what autograd adds."""
    x, g = values(1, n)
    array, gradient = x.detach().numpy(), g.numpy()

    def apart():
        for _ in range(times):
            x.grad = None
            _Same.apply(x).backward(g)
            soft_topk_vjp(gradient, array, n / 10, alpha=ALPHA)
        return x

    return Case(
        f"{times} x soft top-k of {n} values (ms of difference are us a call)",
        "soft_topk_vjp on NumPy arrays and an empty autograd function",
        trained(tenth_largest, 1, n, times),
        apart,
        runs=7,
    )


SOFT = {"soft_rank": soft_rank, "soft_sort": soft_sort}


def beside_torchsort(name, n):
    """Compare with torchsort's operators, which are relaxations of another kind."""
    import torchsort

    def theirs(x, alpha):
        return getattr(torchsort, name)(x, regularization_strength=alpha)

    return Case(
        f"{repeats(1, n)} x {name} of {n} values",
        "torchsort",
        trained(SOFT[name], 1, n),
        trained(theirs, 1, n),
        runs=7,
    )


if __name__ == "__main__":
    main("ranking")
