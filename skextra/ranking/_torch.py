"""LapSum on the rows of a torch tensor, with its gradients for autograd.

Each function returns what that of :mod:`skextra.ranking._rows` of its name does, but
keeps what gradients need to itself. Tensors on CPUs share their memory with the kernels;
those on CUDA devices stay there.
"""

import numpy as np
import torch

from skextra.ranking import _arrays, _rows


def topk(x, k, alpha, largest=True, log=False, check_finite=True):
    """Weights of a soft top-k of each row, and their threshold."""
    return *_LapSum.apply("topk", (largest, log, check_finite), x, k, alpha), None


def rank(x, alpha):
    """Soft ranks of each row, ascending."""
    return *_LapSum.apply("rank", (), x, alpha), None


def levels(w, x, alpha):
    """Where the LapSum of each row is w: at ``anchor + rest``.

    All change is in the rest: the anchor is a place to look from.
    """
    return *_LapSum.apply("levels", (), w, x, alpha), None


def lapsum(b, x, alpha):
    """LapSum of each row at each of its b."""
    return *_LapSum.apply("lapsum", (), b, x, alpha), None


class _LapSum(torch.autograd.Function):
    """A function of the maths, by name, and its vector-Jacobian product."""

    @staticmethod
    def forward(ctx, name, options, *inputs):
        ctx.set_materialize_grads(False)
        # torch then says if one was changed before the gradients are asked for.
        ctx.save_for_backward(*(t for t in inputs if isinstance(t, torch.Tensor)))
        maths = _maths(inputs)
        *results, saved = getattr(maths, name)(*map(_given, inputs), *options)
        ctx.name, ctx.vjp, ctx.saved = name, getattr(maths, f"{name}_vjp"), saved
        results = tuple(map(_taken, results))
        if name == "levels":
            ctx.mark_non_differentiable(results[0])
        return results

    @staticmethod
    def backward(ctx, *cotangents):
        tensors = ctx.saved_tensors
        if ctx.name == "levels":
            cotangents = cotangents[1:]
        if all(g is None for g in cotangents):
            return (None,) * len(ctx.needs_input_grad)
        grads = ctx.vjp(*map(_given, cotangents), ctx.saved)
        pairs = zip(grads, ctx.needs_input_grad[2:], strict=True)
        grads = [_taken(g) if is_wanted else None for g, is_wanted in pairs]
        if torch.is_grad_enabled():  # somebody may want their gradients
            grads = [g if g is None else _Last.apply(g, *tensors) for g in grads]
        return None, None, *grads


class _Last(torch.autograd.Function):
    """Gradients that have none themselves, and say so."""

    @staticmethod
    def forward(ctx, grad, *tensors):
        return grad.clone()

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError(
            "The functions of skextra.ranking have no gradients of gradients; detach "
            "the first ones, or leave create_graph=False"
        )


def _maths(inputs):
    """Return the room that computes where the tensors are."""
    is_cuda = any(isinstance(t, torch.Tensor) and t.is_cuda for t in inputs)
    return _arrays if is_cuda else _rows


def _given(value):
    """Return what the maths take: NumPy arrays for tensors on CPUs."""
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach()
    return np.ascontiguousarray(value.numpy()) if value.is_cpu else value


def _taken(result):
    """Return a tensor of what the maths gave."""
    return result if isinstance(result, torch.Tensor) else torch.from_numpy(result)
