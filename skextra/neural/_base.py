"""The base of all estimators whose fit trains a torch module."""

from abc import ABC, abstractmethod
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skextra.optim import make_optimizer
from skextra.utils import DocLinkMixin, forget, require_torch


@dataclass(frozen=True)
class Course:
    """A fit that is under way."""

    root: object  # scikit-learn's callback context of the fit
    data: dict  # X and y, as its callbacks get them
    states: object  # function that returns the states of torch's generators


class BaseNeural(DocLinkMixin, CallbackSupportMixin, BaseEstimator, ABC):
    """Base of estimators whose ``fit`` trains a torch module with skorch.

    It is for the sub-packages of skextra, and may change with them. A subclass has the
    parameters ``optimizer``, ``optimizer_params``, ``learning_rate``, ``batch_size``,
    ``device``, ``callbacks``, ``random_state`` and ``verbose``; its ``fit``, under
    :func:`~sklearn.callback.with_callbacks`, validates its input as any estimator does,
    and then trains inside ``self._course``: ``self._make_net`` gives a skorch net of a
    module and an objective, and
    ``self._train`` hands it a loader of batches.

    - torch's global generator is seeded from ``random_state`` during the fit, so
      that initialisers and dropout are reproducible, and is left as it was before.
    - Each epoch is a subtask of scikit-learn's callbacks.
    - ``callbacks`` are skorch's: early stopping, schedules of the learning rate,
      checkpoints, gradient clipping, bars (of loaders that have a length).

    See Also
    --------
    NeuralClassifier : Classifier of any torch module.
    NeuralRegressor : Regressor of any torch module.

    Examples
    --------
    >>> from skextra.neural import BaseNeural, NeuralClassifier
    >>> issubclass(NeuralClassifier, BaseNeural)
    True
    """

    _parameter_constraints: dict = {
        "optimizer": [str, callable],
        "optimizer_params": [dict, None],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "device": [str],
        "callbacks": [list, tuple, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @abstractmethod
    def fit(self, X, y=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like
            Training data.
        y : array-like, default=None
            Targets.

        Returns
        -------
        self : object
            Fitted estimator.
        """

    def _device(self):
        """Return the torch device that ``device`` names."""
        import torch

        if self.device != "auto":
            try:
                return torch.empty(0, device=self.device).device
            except (AssertionError, RuntimeError) as error:
                raise ValueError(
                    "device must be 'auto' or a device that torch has here; got "
                    f"{self.device!r}: {error}"
                ) from error
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

    @contextmanager
    def _all_or_nothing(self):
        """Drop what a fit has set if it fails, or is interrupted."""
        try:
            yield
        except BaseException:
            forget(self)
            raise

    @contextmanager
    def _course(self, n_epochs, X, y, states=None):
        """Keep torch's generators apart, and tell the callbacks of begin and end.

        The random numbers go on from the states in which another fit ended.
        """
        require_torch(type(self).__name__)
        from skextra.neural._random import private_stream

        data = {"X": X, "y": y}
        root = self._init_callback_context(max_subtasks=n_epochs)
        root.call_on_fit_task_begin(estimator=self, **data)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        with private_stream(seed, self._device(), states) as get_states:
            yield Course(root, data, get_states)
        root.call_on_fit_task_end(estimator=self, **data, reconstruction_attributes={})

    def _make_net(
        self, module, objective, *, kind=None, callbacks=(), rate=None, **options
    ):
        """Return a skorch net of the module, ready to be trained.

        `objective` is a function of the module, X and y; it is a criterion of the
        module's output and y if `kind` is another net than ObjectiveNet. `rate` is
        `learning_rate` if it is None.
        """
        from skextra.neural import _net

        params = self.optimizer_params or {}
        if "lr" in params:
            raise ValueError("optimizer_params must not hold 'lr': set learning_rate.")
        options = {"device": str(self._device()), "verbose": self.verbose} | options
        optimizer = partial(
            make_optimizer, self.optimizer, lr=rate or self.learning_rate, **params
        )
        net = (kind or _net.ObjectiveNet)(
            module,
            criterion=objective,
            optimizer=optimizer,
            callbacks=[*callbacks, *_net.copies(self.callbacks or ())],
            batch_size=1,  # skorch's bars divide the length of a loader by it
            **options,
        )
        return net.initialize()

    def _batches(self, tensors, n_batches, batch_size):
        """Return a loader of random batches of tensors, drawn with replacement."""
        from skextra.neural._net import Rows, batches

        return batches(Rows(*tensors), batch_size, n_batches)

    def _train(self, net, loader, n_epochs, course, valid=None):
        """Train for some epochs; return whether no callback of scikit-learn stopped it."""
        from skextra.neural._net import Reporter

        reporter, net.max_epochs = Reporter(self, course), n_epochs
        # Ahead of callbacks that may stop the epoch, behind those that compute its loss.
        place = [name for name, _ in net.callbacks_].index("valid_loss") + 1
        net.callbacks_.insert(place, ("reporter", reporter))
        try:
            net.partial_fit((loader, valid))
        except KeyError as error:
            if valid is None and "valid_loss" in str(error):
                raise ValueError(
                    "callbacks ask for valid_loss, and there is none: hold rows out by "
                    'validation_fraction, or give the callback monitor="train_loss".'
                ) from error
            raise
        finally:
            del net.callbacks_[place]
            if hasattr(net, "accelerator"):
                net._unwrap_accelerator()  # which an error would have left out
        if "train_loss" not in net.history[-1]:
            # skorch keeps quiet about Ctrl-C, which ends an epoch before its loss is known.
            raise KeyboardInterrupt
        return not reporter.stopped

    def _fitted(self, net):
        """Return what a fit that ends now leaves, by name."""
        return {
            "net_": net,
            "module_": net.module_,
            "history_": net.history,
            "n_iter_": len(net.history),
        }

    _weights_of = "module_"  # the module whose weights are saved and loaded

    def save_weights(self, path):
        """Save the weights of the module as safetensors.

        Parameters
        ----------
        path : str or path-like
            File to write.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self)
        from safetensors.torch import save_model

        save_model(getattr(self, self._weights_of), str(path))

    def load_weights(self, path):
        """Load weights that an estimator of the same module has saved.

        Parameters
        ----------
        path : str or path-like
            File that ``save_weights`` wrote.

        Returns
        -------
        self : object
            The estimator, which must be fitted: its weights are replaced.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        RuntimeError
            If the names or shapes of the weights are others than the module's.
        """
        check_is_fitted(self)
        from safetensors.torch import load_model

        module = getattr(self, self._weights_of)
        loaded = deepcopy(
            module
        )  # torch would load the weights that fit, and then fail
        load_model(loaded, str(path))
        module.load_state_dict(loaded.state_dict())
        return self
