"""Networks of samples and noise levels, and the functions of them that are trained."""

from math import pi

import torch
from torch import nn
from torch.nn import functional as F

N_FREQUENCIES = 16


class NoiseEmbedding(nn.Module):
    """Embedding of a noise level, and of a class or of none.

    Parameters
    ----------
    width : int
        Size of the embedding.
    n_classes : int
        Number of classes; class `n_classes` means none.
    """

    def __init__(self, width, n_classes):
        super().__init__()
        self.register_buffer("frequencies", 2 * pi * torch.randn(N_FREQUENCIES))
        self.layers = nn.Sequential(
            nn.Linear(2 * N_FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width)
        )
        self.classes = nn.Embedding(n_classes + 1, width) if n_classes else None

    def forward(self, level, y):
        """Embed levels of shape (n,), and classes of shape (n,) or None."""
        angles = level[:, None] * self.frequencies
        embedding = self.layers(torch.cat([angles.sin(), angles.cos()], dim=1))
        if self.classes is not None:
            if y is None:
                y = level.new_full(
                    level.shape, self.classes.num_embeddings - 1, dtype=torch.long
                )
            embedding = embedding + self.classes(y)
        return F.silu(embedding)


def zeroed(layer):
    """Return the layer with all its weights at 0."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


class Modulations(nn.Module):
    """Scales and shifts of the inputs of all blocks by an embedding, none at first.

    Parameters
    ----------
    width : int
        Size of the embedding.
    sizes : list of int
        Channels of each block's input.
    """

    def __init__(self, width, sizes):
        super().__init__()
        self.layer = zeroed(nn.Linear(width, 2 * sum(sizes)))
        self.sizes = [2 * size for size in sizes]

    def forward(self, embedding):
        """Return the scales and shifts of each block, one after the other."""
        return self.layer(embedding).split(self.sizes, dim=1)


def modulated(x, change):
    """Return x of shape (n, n_channels, ...) with its scales and shifts."""
    change = change.reshape(len(x), -1, *[1] * (x.ndim - 2))
    scale, shift = change.chunk(2, dim=1)
    return torch.addcmul(shift, x, 1 + scale)


class MLPBlock(nn.Module):
    """Residual block of two layers."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.norm = nn.LayerNorm(n_in, elementwise_affine=False)
        self.layers = nn.Sequential(
            nn.Linear(n_in, n_out), nn.SiLU(), nn.Linear(n_out, n_out)
        )
        self.skip = nn.Identity() if n_in == n_out else nn.Linear(n_in, n_out)

    def forward(self, x, change):
        """Add the layers' output."""
        return self.skip(x) + self.layers(modulated(self.norm(x), change))


class ResidualMLP(nn.Module):
    """Residual network for rows of a table, whose output is 0 at first.

    Parameters
    ----------
    n_features : int
        Number of columns.
    hidden_layer_sizes : sequence of int
        Width of each residual block.
    n_classes : int, default=0
        Number of classes to condition on.
    """

    def __init__(self, n_features, hidden_layer_sizes, n_classes=0):
        super().__init__()
        width = hidden_layer_sizes[0]
        self.embedding = NoiseEmbedding(width, n_classes)
        self.first = nn.Linear(n_features, width)
        inputs = [width, *hidden_layer_sizes[:-1]]
        self.modulations = Modulations(width, inputs)
        self.blocks = nn.ModuleList(
            MLPBlock(a, b) for a, b in zip(inputs, hidden_layer_sizes, strict=True)
        )
        self.norm = nn.LayerNorm(hidden_layer_sizes[-1])
        self.last = zeroed(nn.Linear(hidden_layer_sizes[-1], n_features))

    def forward(self, x, level, y=None):
        """Map x of shape (n, n_features) at levels of shape (n,)."""
        changes, x = self.modulations(self.embedding(level, y)), self.first(x)
        for block, change in zip(self.blocks, changes, strict=True):
            x = block(x, change)
        return self.last(self.norm(x))


class ConvBlock(nn.Module):
    """Residual block of two convolutions."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.norm = nn.GroupNorm(1, n_in, affine=False)
        self.layers = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1),
        )
        self.skip = nn.Identity() if n_in == n_out else nn.Conv2d(n_in, n_out, 1)

    def forward(self, x, change):
        """Add the convolutions' output."""
        return self.skip(x) + self.layers(modulated(self.norm(x), change))


class UNet(nn.Module):
    """Small U-Net for images given as rows, whose output is 0 at first.

    Parameters
    ----------
    input_shape : tuple (height, width) or (channels, height, width)
        Shape of an image.
    hidden_layer_sizes : sequence of int
        Channels at each resolution, which halves from one to the next.
    n_classes : int, default=0
        Number of classes to condition on.
    """

    def __init__(self, input_shape, hidden_layer_sizes, n_classes=0):
        super().__init__()
        self.input_shape = (1, *input_shape)[-3:]
        channels, width = list(hidden_layer_sizes), 4 * hidden_layer_sizes[0]
        inputs = [channels[0], *channels[:-1]]
        upward = [2 * size for size in channels[::-1]]
        self.embedding = NoiseEmbedding(width, n_classes)
        self.first = nn.Conv2d(self.input_shape[0], channels[0], 3, padding=1)
        self.down = nn.ModuleList(map(ConvBlock, inputs, channels))
        self.middle = ConvBlock(channels[-1], channels[-1])
        # Each block upward also gets what the one beside it gave.
        self.up = nn.ModuleList(map(ConvBlock, upward, inputs[::-1]))
        self.modulations = Modulations(width, [*inputs, channels[-1], *upward])
        self.norm = nn.GroupNorm(1, channels[0])
        self.last = zeroed(nn.Conv2d(channels[0], self.input_shape[0], 3, padding=1))

    def forward(self, x, level, y=None):
        """Map x of shape (n, n_pixels) at levels of shape (n,)."""
        changes = iter(self.modulations(self.embedding(level, y)))
        x = self.first(x.reshape(len(x), *self.input_shape))
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.avg_pool2d(x, 2, ceil_mode=True) if i else x, next(changes))
            kept.append(x)
        x = self.middle(x, next(changes))
        for block in self.up:
            beside = kept.pop()
            if x.shape != beside.shape:
                x = F.interpolate(x, size=beside.shape[-2:])
            x = block(torch.cat([x, beside], dim=1), next(changes))
        return self.last(F.silu(self.norm(x))).flatten(1)


class Preconditioned(nn.Module):
    r"""A consistency function, or with ``sigma_min=0`` a denoiser, around a network.

    ``f(x, t) = skip(t) x + out(t) network(in(t) x, ln(t) / 4)``, where ``skip(eps)`` is
    1 and ``out(eps)`` is 0, so that ``f(x, eps)`` is x (Song et al. 2023, section 3;
    Karras et al. 2022, section 5).

    With a `basis`, all happens along its columns, and what is skipped is the exact
    consistency function, or denoiser, of a normal distribution with variances
    ``sigma_data ** 2`` along them.

    Levels are float64, on the CPU, where they are kept exact whatever the device of the
    network can do.

    Parameters
    ----------
    network : Module
        Function of inputs, levels and classes.
    sigma_data : float or tensor of shape (n_features,)
        Standard deviation of the data; along the basis, if there is one.
    sigma_min : float
        Least noise; 0 for a denoiser.
    basis : tensor of shape (n_features, n_features), default=None
        Orthogonal directions of a normal distribution, as columns.
    """

    def __init__(self, network, sigma_data, sigma_min, basis=None):
        super().__init__()
        self.network = network
        self.sigma_min = sigma_min
        self.register_buffer("basis", basis)
        # Of a basis, it is saved and loaded with the weights.
        dtype = torch.float64 if basis is None else torch.float32
        deviation = torch.as_tensor(sigma_data, dtype=dtype)
        self.register_buffer("deviation", deviation, persistent=basis is not None)

    @property
    def sigma_data(self):
        """The deviations, where levels are."""
        return self.deviation.cpu().double()

    def forward(self, x, t, y=None):
        """Map x of shape (n, n_features) at levels of shape (n,)."""
        skip, out, scale = (c.to(x.dtype).to(x.device) for c in self.scalings(t))
        level = (t.log() / 4).to(x.dtype).to(x.device)
        if self.basis is None:
            return skip * x + out * self.network(scale * x, level, y)
        along = x @ self.basis
        inner = self.network((scale * along) @ self.basis.T, level, y) @ self.basis
        return x + ((skip - 1) * along + out * inner) @ self.basis.T

    def scalings(self, t):
        """Return skip, out and in, for each level and direction."""
        t, s, low = t[:, None], self.sigma_data, self.sigma_min
        length = (t**2 + s**2).sqrt()
        if self.basis is not None and low > 0:
            skip = self.gaussian(t)
        else:
            skip = s**2 / ((t - low) ** 2 + s**2)
        return skip, s * (t - low) / length, 1 / length

    def gaussian(self, t):
        """Return the multipliers of the consistency function of the basis' normal."""
        s = self.sigma_data
        return ((s**2 + self.sigma_min**2) / (s**2 + t**2)).sqrt()

    def discretization_gap(self, x, t, lower):
        """Return how much a step from `lower` to t falls short for the basis' normal.

        The expectation of ``f(x_lower, lower)`` given ``x_t`` is less far from x than
        ``f(x_t, t)``. For the normal distribution the difference is known, and adding
        it to the targets leaves no bias to learn.
        """
        t, lower, s = t[:, None], lower[:, None], self.sigma_data
        step = (s**2 + lower * t) / (s**2 + t**2)
        gap = (self.gaussian(t) - self.gaussian(lower) * step).to(x.dtype).to(x.device)
        return (gap * (x @ self.basis)) @ self.basis.T
