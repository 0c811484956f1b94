"""What the classifier and the regressor of a torch module share."""

import sys
from contextlib import nullcontext
from copy import deepcopy
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from skextra.neural._base import BaseNeural
from skextra.utils import forget


def _is_torch_data(X):
    """Return whether X is a Dataset or a DataLoader, without importing torch."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(X, data.Dataset | data.DataLoader)


class NeuralPredictor(BaseNeural):
    """Estimator of a module whose output for a row tells the row's target."""

    _numbers_classes = False  # whether the targets are the numbers of classes

    _parameter_constraints: dict = {
        **BaseNeural._parameter_constraints,
        "module": [callable, None],
        "module_params": [dict, None],
        "criterion": [callable, None],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "accelerator": "no_validation",
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        module=None,
        *,
        module_params=None,
        criterion=None,
        optimizer="adamw",
        optimizer_params=None,
        learning_rate=1e-3,
        max_epochs=100,
        batch_size=64,
        validation_fraction=None,
        callbacks=None,
        device="auto",
        accelerator=None,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
        self.module = module
        self.module_params = module_params
        self.criterion = criterion
        self.optimizer = optimizer
        self.optimizer_params = optimizer_params
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks
        self.device = device
        self.accelerator = accelerator
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Train the module.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dataset or DataLoader
            Rows of numbers, which the module gets as float32; with a `module` of yours
            they may have more axes, as images have. A torch ``Dataset`` of pairs
            (row, target) is read in batches of ``batch_size``, a ``DataLoader`` in its
            own; their rows reach the module as they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets; None if `X` holds them.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ImportError
            If torch or skorch is missing.
        TypeError
            If `module` makes something else, if `callbacks` hold something else, or if
            `module` or `optimizer` do not know one of their parameters.
        ValueError
            If a parameter, `X` or `y` cannot be used, if the module's output has another
            shape than the targets ask for, or if the loss becomes infinite or NaN.
        """
        if not (self.warm_start and hasattr(self, "module_")):
            forget(self)
            self._states = None  # of torch's generators, where the last fit ended
        return self._learn(X, y, self.max_epochs, net=None)

    def _learn(self, X, y, n_epochs, net):
        """Train a net for some epochs: one that goes on, or a new one if it is None."""
        again = hasattr(self, "module_")
        states = getattr(self, "_states", None)
        with (
            nullcontext() if again else self._all_or_nothing(),
            self._course(n_epochs, X, y, states) as course,
        ):
            train, valid, rows = self._load(X, y, again)
            net = net or self._new_net(rows, again)
            self._train(net, train, n_epochs, course, valid)
            vars(self).update(self._fitted(net))
            self._states = course.states()
        return self

    def _load(self, X, y, again):
        """Check the data; return loaders to train and to validate, and some rows."""
        import torch

        from skextra.neural._loaders import of_arrays

        if not again:  # rows that are held out once are held out in later calls, too
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            self._split_seed = seed
        if _is_torch_data(X):
            return self._load_torch_data(X, y, again)
        X, y = validate_data(
            self,
            X,
            y,
            reset=not again,
            dtype=np.float32,
            allow_nd=self.module is not None,
            multi_output=True,
        )
        self._note_shape(X, again)
        y, strata = self._note_targets(y, again)
        train, valid = of_arrays(
            X, y, self.batch_size, self.validation_fraction, strata, self._split_seed
        )
        return train, valid, torch.as_tensor(np.array(X[:2]))

    def _load_torch_data(self, X, y, again):
        """Do the same for a Dataset or a DataLoader."""
        from skextra.neural._loaders import Replayed, of_torch_data

        if y is not None:
            raise ValueError(
                "y must be None if X is a Dataset or a DataLoader, which hold the "
                f"targets; got a {type(y).__name__}."
            )
        loader, valid = of_torch_data(
            X, int(self.batch_size), self.validation_fraction, self._split_seed
        )
        train = Replayed(loader)
        rows, targets = train.first
        self._note_shape(rows, again)
        if not again:
            self.n_features_in_ = rows.shape[1] if rows.ndim > 1 else 1
            vars(self).pop("feature_names_in_", None)
        if self._note_loaded_targets(targets, train, again):
            train = Replayed(loader)  # all has been read
        # accelerate spreads nothing but a DataLoader.
        return train if self.accelerator is None else loader, valid, rows[:2]

    def _note_shape(self, X, again):
        """Note the shape of rows; refuse another one than before."""
        shape = tuple(X.shape[1:])
        if again and shape != self._input_shape:
            raise ValueError(
                f"X must have rows of shape {self._input_shape}, as in fit; got {shape}."
            )
        self._input_shape = shape

    def _new_net(self, rows, again):
        """Return a net of a new module, tried on some rows, or of a copy of the last."""
        from skextra.neural import _net
        from skextra.neural._building import Criterion, build_module, check_output

        if again:
            module = deepcopy(self.module_)
        else:
            module = build_module(
                self.module, self.module_params, self.n_features_in_, self._n_outputs
            )
            self._predict_dtype = check_output(module, rows, self._n_outputs)
        criterion = (
            self._default_criterion() if self.criterion is None else self.criterion
        )
        criterion = Criterion(criterion, self._numbers_classes)
        name, options = "Net", self._net_options()
        if self._numbers_classes:
            name = "ClassifierNet"
        if self.accelerator is None:
            return self._make_net(
                module, criterion, kind=getattr(_net, name), **options
            )
        net = self._make_net(
            module,
            criterion,
            kind=getattr(_net, f"Accelerated{name}"),
            accelerator=self.accelerator,
            device=None,
            # skorch's nets keep quiet by themselves, but not with accelerate's print.
            callbacks__print_log__sink="auto" if self.verbose else print,
            **options,
        )
        net.device = str(self.accelerator.device)
        return net

    def _outputs(self, X):
        """Return the module's output for each row."""
        check_is_fitted(self)
        from skextra.neural._building import outputs
        from skextra.neural._loaders import rows_only

        if _is_torch_data(X):
            batches = rows_only(X, int(self.batch_size))
        else:
            X = validate_data(
                self,
                X,
                reset=False,
                dtype=np.float32,
                allow_nd=self.module is not None,
            )
            self._note_shape(X, again=True)
            # Copies, since torch takes no read-only rows and none in reverse order.
            slices = gen_batches(len(X), self.batch_size)
            batches = (np.array(X[rows]) for rows in slices)
        found = outputs(
            self.module_, batches, self._n_outputs, self._device(), self._predict_dtype
        )
        return np.concatenate(list(found))

    def _net_options(self):
        """Return what else the net must know."""
        return {}

    def __sklearn_is_fitted__(self):
        return hasattr(self, "module_")
