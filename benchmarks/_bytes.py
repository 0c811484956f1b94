"""A small decoder of text as bytes, and a text that comes with Python."""

import hashlib
from pydoc_data.topics import topics

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, FEED_FORWARD, LAYERS, LENGTH = 96, 3, 256, 2, 64


def load_text():
    """Return the numbers of the text's symbols, and a hash of the text.

    The text are the help topics of Python, which differ a little between versions.
    """
    text = "".join(topics[key] for key in sorted(topics)).encode()
    symbols, numbers = np.unique(np.frombuffer(text, np.uint8), return_inverse=True)
    return torch.as_tensor(numbers), len(symbols), hashlib.sha256(text).hexdigest()


class Block(nn.Module):
    """Causal attention and a gated feed-forward layer, each behind a norm."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)])
        self.query, self.key, self.value, self.out = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        self.gate, self.up = (
            nn.Linear(WIDTH, FEED_FORWARD, bias=False) for _ in range(2)
        )
        self.down = nn.Linear(FEED_FORWARD, WIDTH, bias=False)

    def forward(self, x):
        """Return the next layer's input."""
        h = self.norms[0](x)
        heads = (
            layer(h).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    """Predict each next symbol."""

    def __init__(self, n_symbols):
        super().__init__()
        self.symbols = nn.Embedding(n_symbols, WIDTH)
        self.positions = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, n_symbols, bias=False)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, numbers):
        """Return the scores of each position's next symbol."""
        place = torch.arange(numbers.shape[1])
        x = self.symbols(numbers) + self.positions(place)
        return self.head(self.norm(self.blocks(x)))


def loss_of(model, windows):
    """Return the mean cross-entropy, in nats, of windows of LENGTH + 1 symbols."""
    scores = model(windows[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())
