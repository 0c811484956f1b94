"""What a group of SWAN may hold, and which of its parameters are matrices."""

from math import isfinite, prod
from numbers import Integral, Real

import torch

DIRECTIONS = ("swan", "whiten", "rownorm", "sinkhorn")
ALGORITHMS = ("swan", "adamw")
NS_DTYPES = (torch.float32, torch.float64, torch.bfloat16)
LARGEST_BFLOAT16_STEPS = 5


def matrix_shape(shape, name, group):
    """Return the shape (b, m, n) as b matrices, or None if AdamW takes a parameter."""
    lead, matrix = shape[: group["batched_dims"]], shape[group["batched_dims"] :]
    if group["algorithm"] == "adamw" or len(matrix) < 2:
        return None
    blocks = group["split"].get(name, 1)
    rows, columns = matrix[0] // blocks, prod(matrix[1:])
    if min(rows, columns) < group["min_dim"]:
        return None
    return prod(lead) * blocks, rows, columns


def names_of(group):
    """List the names of a group's parameters, None for those without."""
    return group.get("param_names", [None] * len(group["params"]))


def learning_rate_ratio(lr, matrix_lr, scale):
    """Return the learning rate of matrices over that of AdamW."""
    check_number("lr", lr)
    if matrix_lr is None:
        return scale
    check_number("matrix_lr", matrix_lr)
    if lr == 0:
        raise ValueError(
            f"matrix_lr={matrix_lr} has no ratio to lr=0; set matrix_lr_scale instead"
        )
    return float(matrix_lr) / float(lr)


def check_values(group):
    """Raise a ValueError or TypeError for values that are outside their range."""
    for name in ("lr", "matrix_lr_scale", "eps", "weight_decay"):
        check_number(name, group[name])
    if group["fallback_weight_decay"] is not None:
        check_number("fallback_weight_decay", group["fallback_weight_decay"])
    check_number("momentum", group["momentum"], below=1)
    check_number("ns_beta", group["ns_beta"])
    if not 1 / 3 < group["ns_beta"] <= 1:
        raise ValueError(
            f"ns_beta={group['ns_beta']} must be above 1/3 and at most 1: the "
            "iterations diverge otherwise"
        )
    betas = group["betas"]
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ValueError(f"betas={betas!r} must be two numbers")
    for i, value in enumerate(betas):
        check_number(f"betas[{i}]", value, below=1)
    for name, least in (("ns_steps", 1), ("min_dim", 1), ("batched_dims", 0)):
        check_integer(name, group[name], least)
    for name, known in (
        ("direction", DIRECTIONS),
        ("algorithm", ALGORITHMS),
        ("ns_dtype", NS_DTYPES),
        ("rescale", (False, True)),
        ("maximize", (False, True)),
        ("foreach", (None, False, True)),
    ):
        if group[name] not in known:
            raise ValueError(f"{name}={group[name]!r} must be one of {known}")
    if (
        group["ns_dtype"] == torch.bfloat16
        and group["ns_steps"] > LARGEST_BFLOAT16_STEPS
    ):
        raise ValueError(
            f"ns_steps={group['ns_steps']} must be at most {LARGEST_BFLOAT16_STEPS} "
            "with ns_dtype=torch.bfloat16: more amplify its rounding"
        )
    if group["foreach"] and isinstance(group["lr"], torch.Tensor):
        raise ValueError("foreach=True needs lr to be a float, and it is a tensor")
    if not isinstance(group["split"], dict):
        raise TypeError(
            f"split={group['split']!r} must be a dict of names and numbers of blocks"
        )
    for name, blocks in group["split"].items():
        check_integer(f"split[{name!r}]", blocks, 1)


def check_number(name, value, below=None):
    """Raise unless the value is a number from 0 on, or a tensor of one for lr."""
    if isinstance(value, torch.Tensor) and name == "lr":
        if value.numel() != 1:
            raise ValueError(f"lr must be one number, got shape {tuple(value.shape)}")
        value = value.item()
    if not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} must be a number")
    if not (isfinite(value) and value >= 0):
        raise ValueError(f"{name}={value} must be finite and at least 0")
    if below is not None and value >= below:
        raise ValueError(f"{name}={value} must be at least 0 and below {below}")


def check_integer(name, value, least):
    """Raise unless the value is an integer from least on."""
    if not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} must be an integer")
    if value < least:
        raise ValueError(f"{name}={value} must be at least {least}")


def check_split(group, own):
    """Raise a ValueError if split does not fit the parameters of a group."""
    if own:
        check_names(group["split"], names_of(group))
    for name, parameter in zip(names_of(group), group["params"], strict=True):
        if name not in group["split"]:
            continue
        blocks, shape = group["split"][name], tuple(parameter.shape)
        if matrix_shape(shape, name, group) is None:
            raise ValueError(
                f"split={{{name!r}: {blocks}}}: AdamW updates blocks of this "
                f"parameter of shape {shape}; they are no matrices with min_dim="
                f"{group['min_dim']}, or their group's algorithm is 'adamw'"
            )
        rows = shape[group["batched_dims"]]
        if rows % blocks:
            raise ValueError(
                f"split={{{name!r}: {blocks}}}: {rows} rows do not make {blocks} blocks"
            )


def check_names(split, names):
    """Raise a ValueError if split names a parameter that is not there."""
    unknown = sorted(set(split) - set(names))
    if unknown:
        raise ValueError(
            f"split names {unknown}, which are no parameters here; give named "
            "parameters, as module.named_parameters() or swan_param_groups(module) do"
        )
