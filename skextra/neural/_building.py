"""From a user's module, criterion and data to what a net takes."""

import inspect
from copy import deepcopy

import torch
from torch import nn

from skextra.neural._modules import mlp


def build_module(module, params, in_features, out_features):
    """Return a new module; a function of its sizes gets those it has a name for."""
    if isinstance(module, nn.Module):
        if params:
            raise ValueError(
                f"module_params must be None if module is an instance; got {params!r}."
            )
        return deepcopy(module)
    make = module or mlp
    sizes = {"in_features": in_features, "out_features": out_features}
    accepted = inspect.signature(make).parameters
    built = make(
        **{name: size for name, size in sizes.items() if name in accepted}
        | (params or {})
    )
    if not isinstance(built, nn.Module):
        raise TypeError(
            "module must be a torch.nn.Module or make one; "
            f"got {module!r}, which made a {type(built).__name__}."
        )
    return built


def check_output(module, X, n_outputs):
    """Run the module on some rows, and return the dtype to predict in.

    That is float64, unless the module cannot. Raise a ValueError if the output has
    other than `n_outputs` columns.
    """
    module.eval()
    with torch.no_grad():
        require_shape(module(X.clone()), (len(X), n_outputs))
        try:
            deepcopy(module).double()(doubled(X.clone()))
        except (AssertionError, RuntimeError, TypeError):
            # It makes float32 tensors of its own, or asks for some.
            return torch.float32
    return torch.float64


def doubled(X):
    """Return floats in float64, and whole numbers as they are."""
    return X.double() if X.is_floating_point() else X


def require_shape(output, shape):
    """Raise a ValueError if the output of a module has not this shape."""
    if not isinstance(output, torch.Tensor) or output.shape != shape:
        got = getattr(output, "shape", type(output).__name__)
        got = tuple(got) if isinstance(got, torch.Size) else got
        raise ValueError(
            f"module must return a tensor of shape {tuple(shape)} for "
            f"{shape[0]} rows; got {got}."
        )


class Criterion(nn.Module):
    """A loss that sees output and target in the same shape, not in shapes to broadcast.

    Parameters
    ----------
    loss : Module, class of one, or callable
        Function of output and target.
    labels : bool
        Whether the targets are the numbers of classes.
    """

    def __init__(self, loss, labels):
        super().__init__()
        self.loss = loss() if inspect.isclass(loss) else loss
        self.labels = labels

    def forward(self, output, target):
        """Return the loss of a batch."""
        if self.labels:
            target = target.long()
        else:
            target = target if target.ndim > 1 else target[:, None]
            target = target.to(output.dtype)
            require_shape(output, target.shape)
        loss = self.loss(output, target)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            got = getattr(loss, "shape", loss)
            raise ValueError(
                f"criterion must return a tensor of one number; got {got}."
            )
        return loss


class WeightedCrossEntropy(nn.Module):
    """The mean over rows of the cross-entropy times the weight of the row's class.

    That of torch divides by the sum of the weights in the batch, so that a small batch
    undoes them.
    """

    def __init__(self, weights):
        super().__init__()
        self.register_buffer("weights", torch.as_tensor(weights, dtype=torch.float32))

    def forward(self, output, target):
        """Return the loss of a batch."""
        losses = nn.functional.cross_entropy(
            output, target, self.weights, reduction="none"
        )
        return losses.mean()


def outputs(module, batches, n_outputs, device, dtype):
    """Yield the module's output for each batch of X; raise a ValueError if it is NaN.

    In float64 a row's output depends on the other rows of its batch by some 1e-16 of it.
    """
    if device.type == "mps":
        device = torch.device("cpu")  # it has no float64
    module = deepcopy(module).to(device).eval()
    if dtype == torch.float64:
        module.double()
    with torch.inference_mode():
        for X in batches:
            X = torch.as_tensor(X, device=device)
            X = doubled(X) if dtype == torch.float64 else X
            output = module(X)
            require_shape(output, (len(X), n_outputs))
            if output.isnan().any():
                raise ValueError("module returned NaN for some rows of X.")
            yield output.double().cpu().numpy()
