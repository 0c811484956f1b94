"""Optimizers by name."""

import inspect

from skextra.optim._groups import swan_param_groups
from skextra.utils import require_torch

NAMES = ("adam", "adamw", "muon", "radam", "sgd", "sinkgd", "swan")


def make_optimizer(optimizer, module, lr, **params):
    """Make the optimizer with this name for the parameters of a module.

    Parameters
    ----------
    optimizer : str or callable
        One of

        - "adam", "adamw", "radam": of `torch.optim`, the first two in one fused kernel
          unless ``params`` says otherwise;
        - "sgd": `torch.optim.SGD`, with momentum 0.9 unless ``params`` says otherwise;
        - "swan": `SWAN` on ``swan_param_groups(module)``;
        - "sinkgd": the same with the direction "sinkhorn";
        - "muon": `torch.optim.Muon` on those matrices of "swan" that have two axes,
          `torch.optim.AdamW` on the rest, in one optimizer, without weight decay
          unless ``params`` asks for it;

        or a class or function that is called as
        ``optimizer(module.parameters(), lr=lr, **params)``.
    module : torch.nn.Module
        The module to train.
    lr : float
        Learning rate. For "swan", "sinkgd" and "muon" it is close to the root mean
        square of a step for all parameters, as it is for AdamW, unless ``params`` has
        ``matrix_lr``, ``matrix_lr_scale`` or ``adjust_lr_fn``.
    **params : dict
        Further parameters of the optimizer. For "muon" each goes to those of its two
        parts that know it.

    Returns
    -------
    optimizer : torch.optim.Optimizer
        The optimizer.

    Raises
    ------
    ImportError
        If torch is not installed, or is too old for "muon".
    TypeError
        If ``optimizer`` is neither a string nor callable, or does not know one of the
        ``params``.
    ValueError
        If there is no optimizer of that name, or a value is outside its range.

    References
    ----------
    K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024.
    J. Liu et al., "Muon is Scalable for LLM Training", 2025, arXiv 2502.16982.
    M. Scetbon, C. Ma, W. Gong, E. Meeds, "Gradient Multi-Normalization for Stateless
    and Scalable LLM Training", NeurIPS 2025.

    Examples
    --------
    >>> from torch import nn
    >>> from skextra.optim import make_optimizer
    >>> net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    >>> type(make_optimizer("sgd", net, 0.1, momentum=0.5)).__name__
    'SGD'
    >>> [group["algorithm"] for group in make_optimizer("swan", net, 1e-3).param_groups]
    ['swan', 'adamw']
    """
    require_torch("make_optimizer", ("torch",))
    import torch

    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {module!r}")
    if callable(optimizer):
        return optimizer(module.parameters(), lr=lr, **params)
    if not isinstance(optimizer, str):
        raise TypeError(f"optimizer must be a name or callable, got {optimizer!r}")
    if optimizer not in NAMES:
        raise ValueError(f"optimizer={optimizer!r} is unknown; there are {NAMES}")
    if optimizer == "muon":
        return make_muon(module, lr, params)
    if optimizer in ("swan", "sinkgd"):
        from skextra.optim._swan import SWAN

        if optimizer == "sinkgd":
            params = {"direction": "sinkhorn", **params}
        if params.get("matrix_lr") is None:
            params = {"matrix_lr_scale": 1.0, **params}
        return SWAN(swan_param_groups(module), lr, **params)
    if optimizer == "sgd":
        params = {"momentum": 0.9, **params}
    if optimizer in ("adam", "adamw") and not {"foreach", "differentiable"} & set(
        params
    ):
        floats = all(p.is_floating_point() for p in module.parameters())
        params = {"fused": floats, **params}
    name = {"adam": "Adam", "adamw": "AdamW", "radam": "RAdam", "sgd": "SGD"}
    return getattr(torch.optim, name[optimizer])(module.parameters(), lr=lr, **params)


def make_muon(module, lr, params):
    """Make Muon for the hidden matrices of a module and AdamW for the rest."""
    import torch

    if not hasattr(torch.optim, "Muon"):
        raise ImportError(
            f'optimizer="muon" needs torch >= 2.9, and this is {torch.__version__}'
        )
    from skextra.optim._muon import MuonAdamW, is_muon_matrix

    params = {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0, **params}
    groups = {}
    for kind in (torch.optim.Muon, torch.optim.AdamW):
        known = inspect.signature(kind).parameters
        groups[kind] = {"lr": lr} | {k: v for k, v in params.items() if k in known}
    unknown = [name for name in params if not any(name in g for g in groups.values())]
    if unknown:
        raise TypeError(f'optimizer="muon" has no parameters {unknown}')
    for kind, group in groups.items():
        # torch checks the arguments of a constructor, and not the values of groups.
        kind([torch.zeros(1, 1)], **group)
        group |= {"params": [], "param_names": []}
    for group in swan_param_groups(module):
        for name, parameter in zip(group["param_names"], group["params"], strict=True):
            matrix = group["algorithm"] == "swan" and is_muon_matrix(parameter)
            kind = torch.optim.Muon if matrix else torch.optim.AdamW
            groups[kind]["params"].append(parameter)
            groups[kind]["param_names"].append(name)
    defaults = {"lr": lr, "weight_decay": params["weight_decay"]}
    return MuonAdamW([group for group in groups.values() if group["params"]], defaults)
