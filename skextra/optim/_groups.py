"""Which parameters of a module are matrices of hidden layers, and which are not."""

from skextra.utils import require_torch


def swan_param_groups(module, *, exclude=None, head=None, names=()):
    """Split the parameters of a module into matrices and the rest, for `SWAN`.

    The matrices are the parameters with two axes or more of hidden layers. The rest
    (embeddings, the output layer, biases, norms) is for AdamW.

    Parameters
    ----------
    module : torch.nn.Module
        The module to train.
    exclude : type or tuple of types, default=None
        Layers whose own parameters go to AdamW; None stands for
        `torch.nn.Embedding` and `torch.nn.EmbeddingBag`.
    head : torch.nn.Module or str, default=None
        The output layer, or its name, whose parameters go to AdamW. None takes the
        `torch.nn.Linear` that was registered last; name the layer where another one
        gives the output.
    names : sequence of str, default=()
        Names of further parameters that go to AdamW, such as learned positions that
        are no layer of their own.

    Returns
    -------
    groups : list of dict
        Parameter groups with the keys "params", "param_names" and "algorithm". The
        first has algorithm "swan", the second "adamw"; an empty one is left out. A
        weight that several layers share is listed once, for AdamW if one of its
        owners or names is.

    Raises
    ------
    ImportError
        If torch is not installed.
    TypeError
        If ``module`` is not a module, ``exclude`` holds something else than types, or
        ``names`` is one string.
    ValueError
        If ``head`` or one of the ``names`` is not in the module.

    References
    ----------
    C. Ma, W. Gong, M. Scetbon, E. Meeds, "SWAN: SGD with Normalization and Whitening
    Enables Stateless LLM Training", ICML 2025.

    Examples
    --------
    >>> from torch import nn
    >>> from skextra.optim import swan_param_groups
    >>> net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    >>> for group in swan_param_groups(net):
    ...     print(group["algorithm"], group["param_names"])
    swan ['0.weight']
    adamw ['0.bias', '2.weight', '2.bias']
    """
    require_torch("swan_param_groups", ("torch",))
    from torch import nn

    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {module!r}")
    if isinstance(names, str):
        raise TypeError(f"names must be a sequence of str, got the string {names!r}")
    if exclude is None:
        exclude = (nn.Embedding, nn.EmbeddingBag)
    elif isinstance(exclude, type):
        exclude = (exclude,)
    for kind in exclude:
        if not isinstance(kind, type):
            raise TypeError(f"exclude must hold types of layers, got {kind!r}")

    # All names of a shared weight, where named_parameters() gives the first alone.
    parameters = dict(module.named_parameters(remove_duplicate=False))
    unknown = [name for name in names if name not in parameters]
    if unknown:
        raise ValueError(
            f"names={unknown} are no parameters of the module; it has "
            f"{list(parameters)}"
        )
    rest = [parameters[name] for name in names]
    rest += output_layer(module, head)
    for layer in module.modules():
        if isinstance(layer, tuple(exclude)):
            rest += layer.parameters(recurse=False)
    rest = {id(parameter) for parameter in rest}

    groups = {}
    for name, parameter in module.named_parameters():
        hidden = parameter.ndim >= 2 and id(parameter) not in rest
        algorithm = "swan" if hidden else "adamw"
        group = groups.setdefault(
            algorithm, {"params": [], "param_names": [], "algorithm": algorithm}
        )
        group["params"].append(parameter)
        group["param_names"].append(name)
    return [groups[name] for name in ("swan", "adamw") if name in groups]


def output_layer(module, head):
    """List the parameters of the output layer."""
    from torch import nn

    layers = dict(module.named_modules(remove_duplicate=False))
    if head is None:
        linear = [layer for layer in layers.values() if isinstance(layer, nn.Linear)]
        return list(linear[-1].parameters()) if linear else []
    if isinstance(head, str) and head in layers:
        return list(layers[head].parameters())
    if any(head is layer for layer in layers.values()):
        return list(head.parameters())
    raise ValueError(
        f"head={head!r} is no layer of the module; give one of its layers, or one of "
        f"their names: {[name for name in layers if name]}"
    )
