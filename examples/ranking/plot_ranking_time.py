"""
Time of soft ranks and top-k
============================

A soft rank is a sum over all pairs of values, and was long computed as one. After a sort,
two scans give all of them, and two more their gradients: the time follows that of the
sort. This example measures forward and backward passes on the machine that builds this
page, and draws them over the number of values.
"""

# %%
# Beside ours: the same top-k in vectorised torch, with the gradient in closed form; the
# soft ranks as they are defined, all pairs at once; torchsort, if it is installed, whose
# ranks are of another kind; and NumPy's sort, which is the least that one can do.

import time
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
import torch

from skextra.ranking import soft_rank, soft_topk

torch.set_num_threads(1)


class TorchTopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, alpha):
        n = len(x)
        s = torch.sort(x / alpha).values
        up = torch.logcumsumexp(s, 0)
        down = torch.logcumsumexp(-s.flip(0), 0).flip(0)
        w = torch.tensor([n - k], dtype=x.dtype)
        lapsum = torch.arange(n) + (1 + torch.exp(down + s) - torch.exp(up - s)) / 2
        i = torch.searchsorted(lapsum, w).clamp(1, n - 1)
        up, down = up[i - 1], down[i]
        t = (up - down) / 2 + torch.asinh((w - i) * torch.exp(-(up + down) / 2))
        v = x / alpha - t
        kernel = torch.exp(-v.abs()) / 2
        ctx.save_for_backward(kernel)
        ctx.alpha = alpha
        return torch.where(v > 0, 1 - kernel, kernel)

    @staticmethod
    def backward(ctx, g):
        (kernel,) = ctx.saved_tensors
        return kernel * (g - (kernel * g).sum() / kernel.sum()) / ctx.alpha, None, None


def all_pairs(x):
    u = (x[:, None] - x[None, :]) / 0.1
    tail = torch.exp(-u.abs()) / 2
    return 0.5 + torch.where(u > 0, 1 - tail, tail).sum(1)


methods = {
    "soft_rank": lambda x: soft_rank(x, alpha=0.1),
    "soft_topk": lambda x: soft_topk(x, len(x) / 10, alpha=0.1),
    "top-k in vectorised torch": lambda x: TorchTopK.apply(x, len(x) / 10, 0.1),
    "ranks from all pairs": all_pairs,
}
if find_spec("torchsort"):
    import torchsort

    methods["torchsort.soft_rank"] = lambda x: torchsort.soft_rank(
        x[None], regularization_strength=0.1
    )


# %%
# Each time is the smallest of five. All pairs stop at 3000 values, whose matrices take
# 72 MB each.


def seconds(job, *args, repeats=5):
    job(*args)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job(*args)
        times.append(time.perf_counter() - start)
    return min(times)


def forward_and_backward(method, x, g):
    out = method(x)
    out.backward(g.reshape(out.shape))


lengths = [100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
times = {name: [] for name in [*methods, "numpy.sort"]}
for n in lengths:
    x = torch.randn(n, dtype=torch.float64).requires_grad_()
    g = torch.randn(n, dtype=torch.float64)
    for name, method in methods.items():
        if name != "ranks from all pairs" or n <= 3000:
            times[name].append(seconds(forward_and_backward, method, x, g))
    times["numpy.sort"].append(seconds(np.sort, x.detach().numpy()))

# %%

figure, ax = plt.subplots(figsize=(7.5, 5), layout="constrained")
styles = {"numpy.sort": {"color": "0.6", "linestyle": "--"}}
for name, taken in times.items():
    ax.plot(
        lengths[: len(taken)], taken, marker=".", label=name, **styles.get(name, {})
    )
ax.set(
    xscale="log",
    yscale="log",
    xlabel="number of values",
    ylabel="seconds, forward and backward",
    title="Soft ranks and top-k, one thread, float64",
)
ax.grid(alpha=0.3)
ax.legend(frameon=False)

# %%
# Up to some thousand values, what a call costs in Python and in torch's autograd is all
# that is seen. Above, the lines of ``soft_topk`` and ``numpy.sort`` run side by side; how
# far apart depends on the processor, on some of which NumPy sorts several values at once.
# ``soft_rank`` needs the order of the values too, which takes longer to find and more
# memory to walk through.

ratio = {name: taken[-1] / times["numpy.sort"][-1] for name, taken in times.items()}
for name, value in ratio.items():
    if len(times[name]) == len(lengths):
        print(f"{name}: {value:.1f} times the sort of {lengths[-1]} values")

plt.show()
