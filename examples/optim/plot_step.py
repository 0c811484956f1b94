"""
===================
What a step is like
===================

A gradient of a weight matrix points mostly in a few directions: a handful of singular
values outweigh all others, and some rows outweigh others. SWAN takes both away. Here is a
layer of a network that has begun to tell written digits apart, its gradient, and the
steps that SWAN and the other directions make of it.
"""

# %%
# The gradient of a layer
# -----------------------

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn import functional as F

from skextra.neural import NeuralClassifier
from skextra.optim import SWAN

X, y = load_digits(return_X_y=True)
X = X / 16
network = NeuralClassifier(
    module_params={"hidden_layer_sizes": (96, 64)}, max_epochs=2, random_state=0
).fit(X, y)
module, layer = network.module_, network.module_[2]  # 64 rows, 96 columns
batch = torch.as_tensor(X[:128], dtype=torch.float32)
F.cross_entropy(module(batch), torch.as_tensor(y[:128])).backward()
gradient = layer.weight.grad.clone()

# %%
# The steps
# ---------
# With learning rate 1, a step is what the optimizer takes off the weights. All have root
# mean square 1 over the rows that have a gradient; the gradient is scaled to it here.


def step(direction):
    """Return the step that SWAN makes of the gradient, with this direction."""
    weight = torch.nn.Parameter(torch.zeros_like(gradient))
    weight.grad = gradient.clone()
    SWAN([weight], lr=1.0, matrix_lr_scale=1.0, direction=direction).step()
    return -weight.detach()


steps = {
    "gradient": gradient / gradient[gradient.any(dim=1)].square().mean().sqrt(),
    'rows normalised ("rownorm")': step("rownorm"),
    'rows and columns ("sinkhorn")': step("sinkhorn"),
    'SWAN ("swan")': step("swan"),
}

# %%
# What came out
# -------------
# On the left the singular values. Those of the gradient fall by orders of magnitude, and
# to normalise rows, or rows and columns, hardly changes that. SWAN brings all but the very
# smallest to about the same size. On the right how large each row is, that
# is, how much each unit of the layer is moved. To normalise rows makes them equal;
# whitening mixes the rows, and they stay close to equal. The units that no training row of
# the batch has woken have no gradient, and get no step from any of them.

figure, (values, rows) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for name, D in steps.items():
    values.semilogy(torch.linalg.svdvals(D), label=name)
    rows.plot(np.sort(D.square().mean(dim=1).sqrt().numpy())[::-1], label=name)
values.set(
    xlabel="number", ylabel="singular value", title="Directions", ylim=(1e-4, 100)
)
rows.set(xlabel="row, from the largest", ylabel="root mean square", title="Units")
rows.legend(loc="lower left", fontsize="small")
plt.show()
