"""skorch nets that are fed by loaders, and the loaders."""

from copy import copy

import numpy as np
import torch
from skorch import NeuralNet, NeuralNetClassifier
from skorch.callbacks import Callback
from skorch.hf import AccelerateMixin
from skorch.utils import to_tensor
from torch.utils.data import DataLoader, Dataset, RandomSampler


def batches(data, batch_size, n_batches=None, shuffle=True):
    """Return a loader of rows in memory.

    It makes one pass over them, or `n_batches` batches of rows drawn with replacement.
    """
    n_rows, batch_size = len(data), int(batch_size)
    if n_batches is not None:
        draws = n_batches * batch_size
        sampler = RandomSampler(data, replacement=True, num_samples=draws)
        return DataLoader(data, batch_size, sampler=sampler, collate_fn=as_they_are)
    # Batch norms cannot be trained on a last batch of a single row.
    while shuffle and n_rows > batch_size and n_rows % batch_size == 1:
        batch_size += 1
    return DataLoader(data, batch_size, shuffle=shuffle, collate_fn=as_they_are)


class Rows(Dataset):
    """Rows of arrays or tensors, taken a batch at a time, not collated one by one.

    A batch is a pair; its second part is None if there is no y.
    """

    def __init__(self, X, y=None):
        self.X, self.y = X, y

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        X = torch.as_tensor(self.X[rows])
        return X, None if self.y is None else torch.as_tensor(self.y[rows])

    __getitems__ = __getitem__


def as_they_are(batch):
    """Collate nothing."""
    return batch


class LoadedMixin:
    """A net whose data are a pair of loaders: for training, and for validation.

    Its module and its criterion come as instances, and its optimizer as a function of
    the module.
    """

    def get_split_datasets(self, X, y=None, **params):
        """Return the loaders as they are."""
        return X

    def get_iterator(self, dataset, training=False):
        """Return the loader as it is."""
        return dataset

    def check_data(self, X, y=None):
        """Accept the loaders: the estimator has checked the data."""

    def run_single_epoch(self, iterator, training, prefix, step_fn, **params):
        """Run an epoch, which must have batches."""
        super().run_single_epoch(iterator, training, prefix, step_fn, **params)
        if training and not self.history[-1, f"{prefix}_batch_count"]:
            raise ValueError(
                f"X gave no batch in epoch {len(self.history)}: it must give its rows "
                "each time that it is read, or be read once, by partial_fit."
            )

    def initialize_module(self):
        """Take the module, and leave its class to skorch."""
        self.module_, self.module = self.module, type(self.module)
        return self

    def initialize_criterion(self):
        """Take the criterion."""
        self.criterion_ = self.criterion
        return self

    def initialize_optimizer(self):
        """Make the optimizer of the module."""
        self.optimizer_ = self.optimizer(self.module_)
        return self


class Net(LoadedMixin, NeuralNet):
    """A net whose criterion compares the module's output with y."""


class ClassifierNet(LoadedMixin, NeuralNetClassifier):
    """The same for labels 0, 1, ...: skorch can score it by accuracy."""


def softmax(output):
    """Return probabilities of classes."""
    return torch.softmax(output, dim=-1)


def sigmoid(output):
    """Return probabilities of labels."""
    return torch.sigmoid(output)


class ObjectiveNet(Net):
    """A net whose criterion is a function of the module, X and y."""

    def infer(self, x, **params):
        """Leave the module to the criterion."""
        return to_tensor(x, device=self.device)

    def get_loss(self, y_pred, y_true, X=None, training=False):
        """Return the loss of the batch."""
        if y_true is not None:
            y_true = to_tensor(y_true, device=self.device)
        return self.criterion_(self.module_, y_pred, y_true)


class _AcceleratedMixin(AccelerateMixin):
    def _initialize_accelerator(self):
        """Prepare all but the criterion: it has no weights, so processes refuse it."""
        criteria, self._criteria = self._criteria, []
        super()._initialize_accelerator()
        self._criteria = criteria
        self.criterion_.to(self.accelerator.device)


class AcceleratedNet(_AcceleratedMixin, Net):
    """A net that accelerate prepares."""


class AcceleratedClassifierNet(_AcceleratedMixin, ClassifierNet):
    """The same for labels."""


def copies(callbacks):
    """Return callbacks of skorch whose state, in a fit, is not that of the user's.

    Raise a TypeError if one is no callback.
    """
    copied = []
    for item in callbacks:
        name, callback = item if is_pair(item) else (None, item)
        kind = callback if isinstance(callback, type) else type(callback)
        if not issubclass(kind, Callback):
            raise TypeError(
                "callbacks must hold callbacks of skorch, or pairs of a name and one; "
                f"got {item!r}. Those of scikit-learn come by set_callbacks."
            )
        # Shallow, since they may hold files and writers.
        callback = copy(callback)
        copied.append(callback if name is None else (name, callback))
    return copied


def is_pair(item):
    """Return whether an item of the callbacks is a name and a callback."""
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)


class Reporter(Callback):
    """Tell scikit-learn's callbacks of each epoch, and stop if they ask for it."""

    def __init__(self, estimator, course):
        self.estimator, self.course, self.stopped = estimator, course, False

    def on_epoch_begin(self, net, **kwargs):
        """Begin a subtask."""
        self.task = self.course.root.subcontext(task_name="epoch")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.course.data)

    def on_epoch_end(self, net, **kwargs):
        """End the subtask; refuse a loss that is no number."""
        loss = net.history[-1, "train_loss"]
        if not np.isfinite(loss):
            raise ValueError(
                f"The training loss became {loss} in epoch {len(net.history)}. Scale X "
                "(and y), lower learning_rate, or clip the gradients: "
                "callbacks=[skorch.callbacks.GradientNormClipping(1.0)]."
            )
        self.stopped = self.task.call_on_fit_task_end(
            estimator=self.estimator,
            **self.course.data,
            reconstruction_attributes=lambda: self.estimator._fitted(net),
        )
        if self.stopped:
            raise KeyboardInterrupt  # as skorch's own callbacks do to stop
