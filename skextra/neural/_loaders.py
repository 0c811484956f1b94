"""Loaders of what a user trains on: arrays, a Dataset, or a DataLoader."""

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, IterableDataset, Subset, random_split

from skextra.neural._net import Rows, batches


class Replayed:
    """A loader whose first batch can be looked at, and is not lost by that."""

    def __init__(self, loader):
        self.loader, self.iterator = loader, iter(loader)
        self.first = next(self.iterator, None)
        if self.first is None:
            raise ValueError(
                "X gave no batch: a Dataset or DataLoader must hold rows, and give them "
                "each time that it is read; what can be read once is for partial_fit."
            )
        if not isinstance(self.first, list | tuple) or len(self.first) != 2:
            raise ValueError(
                "The batches of X must be pairs (rows, targets); got "
                f"{type(self.first).__name__}."
            )

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        iterator, self.iterator = self.iterator, None
        if iterator is None:
            yield from self.loader
        else:
            yield self.first
            yield from iterator


def labels_of(loader):
    """Return the sorted labels of all batches."""
    return np.unique(np.concatenate([np.unique(y) for _, y in loader]))


def of_arrays(X, y, batch_size, validation_fraction, strata, seed):
    """Return loaders of arrays, for training and for validation."""
    data = Rows(X, y)
    if validation_fraction is None:
        return batches(data, batch_size), None
    try:
        train, valid = train_test_split(
            np.arange(len(X)),
            test_size=validation_fraction,
            random_state=seed,
            stratify=strata,
        )
    except ValueError as error:
        raise ValueError(
            f"validation_fraction={validation_fraction} cannot split these {len(X)} "
            f"rows: {error}"
        ) from error
    return (
        batches(Subset(data, train), batch_size),
        batches(Subset(data, valid), batch_size, shuffle=False),
    )


def of_torch_data(data, batch_size, validation_fraction, seed):
    """Return loaders of a Dataset or a DataLoader, for training and for validation."""
    if isinstance(data, DataLoader | IterableDataset):
        if validation_fraction is not None:
            raise ValueError(
                "validation_fraction must be None, since a "
                f"{type(data).__name__} cannot be split; got {validation_fraction}."
            )
        if isinstance(data, IterableDataset):
            data = DataLoader(data, batch_size)
        return data, None
    valid = None
    if validation_fraction is not None:
        shares = [1 - validation_fraction, validation_fraction]
        generator = torch.Generator().manual_seed(seed)
        if int(len(data) * validation_fraction) < 1:
            raise ValueError(
                f"validation_fraction={validation_fraction} holds out none of "
                f"{len(data)} rows."
            )
        data, held_out = random_split(data, shares, generator)
        valid = DataLoader(held_out, batch_size)
    return DataLoader(data, batch_size, shuffle=True), valid


def rows_only(data, batch_size):
    """Yield the rows of each batch of a Dataset or a DataLoader."""
    loader = data if isinstance(data, DataLoader) else DataLoader(data, batch_size)
    for batch in loader:
        yield batch[0] if isinstance(batch, list | tuple) else batch
