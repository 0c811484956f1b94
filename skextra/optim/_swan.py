"""SWAN: an optimizer of weight matrices that keeps nothing between two steps."""

from math import prod

import torch
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from skextra.optim._checks import (
    check_names,
    check_split,
    check_values,
    learning_rate_ratio,
    matrix_shape,
    names_of,
)
from skextra.optim._directions import direction as compute_direction

# Equal shapes share a batch up to this many entries, so that temporary memory is
# that of a few such batches and not of the whole model.
BATCH_ENTRIES = 2**22


class SWAN(Optimizer):
    r"""Stateless optimizer: gradients with normalised rows, whitened.

    The gradient :math:`G` of a weight matrix with m rows (outputs) and n columns
    (inputs) becomes a step whose singular values are all about equal [1]_:

    .. math::

        X = \frac{G - \mathrm{mean}(G)}{\mathrm{std}(G)} \text{ (row by row)}, \quad
        D = (X X^\top)^{-1/2} X, \quad
        W \leftarrow (1 - \eta \lambda) W - \eta \frac{\|X\|_F}{\|D\|_F} D .

    Nothing is kept between steps, where AdamW keeps two numbers for each weight. The
    root of :math:`X X^\top` comes from Newton-Schulz iterations. A step has root mean
    square :math:`\eta`, however small the gradient is: a decaying learning rate is a
    part of the method. Positive factors of the gradient (scale of the loss, clipping)
    change nothing.

    Parameters without two axes, or with few rows or columns, get torch's own AdamW.

    Parameters
    ----------
    params : iterable
        Tensors, pairs (name, tensor) as from ``module.named_parameters()``, or groups
        (dicts with the key "params" and any of the parameters below), as from
        `swan_param_groups`. A group with ``"algorithm": "adamw"`` goes to AdamW as a
        whole.
    lr : float or tensor, default=1e-3
        Learning rate of AdamW. Schedulers change it, and the one of matrices with it.
    matrix_lr : float, default=None
        Learning rate of matrices at the start; its ratio to ``lr`` stays the same.
        None for ``matrix_lr_scale * lr``.
    matrix_lr_scale : float, default=0.05
        Learning rate of matrices over ``lr``.
    direction : {"swan", "whiten", "rownorm", "sinkhorn"}, default="swan"
        "whiten" leaves the rows as they are, "rownorm" does not whiten, and
        "sinkhorn" instead normalises rows and columns in turn, five times [2]_.
    ns_steps : int, default=10
        Newton-Schulz iterations.
    ns_beta : float, default=0.8
        Their step, above 1/3 and at most 1. 0.5 converges to singular value 1; 0.8
        lifts small singular values faster. Ten iterations with it bring those that are
        at least 1e-4 :math:`(\sum_i s_i^4)^{1/4}` between 0.56 and 1.6, or with the
        rounding of float32 between 0.4 and 2.2, before the step is scaled; smaller
        ones end lower.
    ns_dtype : {torch.float32, torch.float64, torch.bfloat16}, default=torch.float32
        Precision of these iterations; gradients in float64 stay so. bfloat16 allows
        five iterations at most.
    rescale : bool, default=True
        Whether a step is scaled to root mean square 1 (times the learning rate) over
        the rows that have a gradient.
    momentum : float, default=0.0
        Weight of the former steps in a running mean of gradients, which replaces the
        gradient. Above 0, one number for each weight is kept.
    betas : tuple of two floats, default=(0.9, 0.999)
        AdamW's decay of its two running means.
    eps : float, default=1e-8
        AdamW's term of the denominator.
    weight_decay : float, default=0.0
        Decoupled weight decay of matrices.
    fallback_weight_decay : float, default=None
        Weight decay of what AdamW updates; None for ``weight_decay``.
    min_dim : int, default=4
        Matrices with fewer rows or columns go to AdamW.
    split : dict of str to int, default=None
        For weights that hold several matrices one below the other, such as those of
        queries, keys and values: the parameter's name and the number of equal blocks
        of rows, each of which has a step of its own.
    batched_dims : int, default=0
        Number of leading axes that count matrices, such as 1 for a stack of experts
        (E, m, n). Give it in the group of such parameters. The axes after the first
        of these and the rows are columns: a convolution is (out, in * height * width).
    maximize : bool, default=False
        Whether to ascend.
    foreach : bool, default=None
        Passed to torch's AdamW.

    Raises
    ------
    TypeError
        If a parameter is no tensor, or a number is none.
    ValueError
        If a value is outside its range, ``params`` is empty, or ``split`` does not fit
        the parameters.

    References
    ----------
    .. [1] C. Ma, W. Gong, M. Scetbon, E. Meeds, "SWAN: SGD with Normalization and
       Whitening Enables Stateless LLM Training", ICML 2025.
    .. [2] M. Scetbon, C. Ma, W. Gong, E. Meeds, "Gradient Multi-Normalization for
       Stateless and Scalable LLM Training", NeurIPS 2025.

    Examples
    --------
    >>> import torch
    >>> from skextra.optim import SWAN, swan_param_groups
    >>> net = torch.nn.Sequential(
    ...     torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    ... )
    >>> optimizer = SWAN(swan_param_groups(net), lr=1e-3, matrix_lr_scale=1.0)
    >>> net(torch.ones(4, 8)).square().mean().backward()
    >>> optimizer.step()
    >>> len(optimizer.state)  # those of AdamW: two biases and the output layer
    3
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        *,
        matrix_lr=None,
        matrix_lr_scale=0.05,
        direction="swan",
        ns_steps=10,
        ns_beta=0.8,
        ns_dtype=torch.float32,
        rescale=True,
        momentum=0.0,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        fallback_weight_decay=None,
        min_dim=4,
        split=None,
        batched_dims=0,
        maximize=False,
        foreach=None,
    ):
        defaults = {
            "lr": lr,
            "matrix_lr_scale": learning_rate_ratio(lr, matrix_lr, matrix_lr_scale),
            "algorithm": "swan",
            "direction": direction,
            "ns_steps": ns_steps,
            "ns_beta": ns_beta,
            "ns_dtype": ns_dtype,
            "rescale": rescale,
            "momentum": momentum,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "fallback_weight_decay": fallback_weight_decay,
            "min_dim": min_dim,
            "split": {} if split is None else split,
            "batched_dims": batched_dims,
            "maximize": maximize,
            "foreach": foreach,
        }
        check_values(defaults)
        super().__init__(params, defaults)
        check_names(
            defaults["split"], [n for g in self.param_groups for n in names_of(g)]
        )

    def add_param_group(self, param_group):
        """Add a group of parameters.

        Parameters
        ----------
        param_group : dict
            Has the key "params", and any of the optimizer's own parameters.
        """
        if isinstance(param_group, dict):
            values = self.defaults | param_group
            if "matrix_lr" in param_group:
                values["matrix_lr_scale"] = learning_rate_ratio(
                    values["lr"], values.pop("matrix_lr"), values["matrix_lr_scale"]
                )
            values["split"] = values["split"] or {}
            check_values(values)
            param_group = values
        super().add_param_group(param_group)
        group = self.param_groups.pop()
        check_split(group, own=group["split"] is not self.defaults["split"])
        self.param_groups.append(group)

    @torch.no_grad()
    def step(self, closure=None):
        """Update the parameters that have a gradient.

        Parameters
        ----------
        closure : callable, default=None
            Computes the loss and its gradients anew.

        Returns
        -------
        loss : tensor or None
            What the closure returned.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            matrices, gradients, buffers, shapes = [], [], [], []
            params, grads, means, squares, steps = [], [], [], [], []
            self._init_group(
                group,
                matrices,
                gradients,
                buffers,
                shapes,
                params,
                grads,
                means,
                squares,
                steps,
            )
            for buffer, gradient in zip(buffers, gradients, strict=False):
                buffer.lerp_(gradient, 1 - group["momentum"])
            update_matrices(matrices, buffers or gradients, shapes, group)
            if params:
                decay = group["fallback_weight_decay"]
                adamw(
                    params,
                    grads,
                    means,
                    squares,
                    [],
                    steps,
                    foreach=group["foreach"],
                    amsgrad=False,
                    beta1=group["betas"][0],
                    beta2=group["betas"][1],
                    lr=group["lr"],
                    weight_decay=group["weight_decay"] if decay is None else decay,
                    eps=group["eps"],
                    maximize=group["maximize"],
                )
        return loss

    def _init_group(
        self,
        group,
        matrices,
        gradients,
        buffers,
        shapes,
        params,
        grads,
        means,
        squares,
        steps,
    ):
        """Sort a group's parameters; torch.compile runs this outside of its graph."""
        for parameter, name in zip(group["params"], names_of(group), strict=True):
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.is_complex():
                raise RuntimeError("SWAN does not support complex gradients")
            if gradient.layout != torch.strided:
                raise RuntimeError(
                    f"SWAN does not support sparse gradients, got {gradient.layout}"
                )
            shape = matrix_shape(parameter.shape, name, group)
            if shape is not None:
                matrices.append(parameter)
                gradients.append(gradient)
                shapes.append(shape)
                if group["momentum"]:
                    state = self.state[parameter]
                    if "momentum_buffer" not in state:
                        state["momentum_buffer"] = torch.zeros_like(parameter)
                    buffers.append(state["momentum_buffer"])
                continue
            state = self.state[parameter]
            if "exp_avg" not in state:
                state["step"] = torch.tensor(0.0, dtype=torch.float32)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
            params.append(parameter)
            grads.append(gradient)
            means.append(state["exp_avg"])
            squares.append(state["exp_avg_sq"])
            steps.append(state["step"])


def update_matrices(matrices, gradients, shapes, group):
    """Do the step of the matrices of a group, equal shapes in one batch."""
    lr = group["lr"] * group["matrix_lr_scale"]
    for batch in batches(gradients, shapes):
        blocks = [gradients[i].reshape(shapes[i]) for i in batch]
        D = compute_direction(
            torch.cat(blocks) if len(blocks) > 1 else blocks[0],
            group["direction"],
            group["ns_steps"],
            group["ns_beta"],
            group["ns_dtype"],
            group["rescale"],
        )
        D.mul_(lr if group["maximize"] else -lr)
        for i, block in zip(batch, D.split([shapes[i][0] for i in batch]), strict=True):
            if group["weight_decay"]:
                matrices[i].mul_(1 - lr * group["weight_decay"])
            matrices[i].add_(block.reshape(matrices[i].shape))


def batches(gradients, shapes):
    """List the indices of each batch of matrices of one shape, dtype and device."""
    kinds = {}
    for i, (gradient, shape) in enumerate(zip(gradients, shapes, strict=True)):
        full = kinds.setdefault((shape[1:], gradient.dtype, gradient.device), [[]])
        entries = sum(prod(shapes[j]) for j in full[-1]) + prod(shape)
        if full[-1] and entries > BATCH_ENTRIES:
            full.append([])
        full[-1].append(i)
    return [batch for full in kinds.values() for batch in full]
