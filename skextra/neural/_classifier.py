"""Any torch module as a scikit-learn classifier."""

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
    check_classification_targets,
    type_of_target,
)

from skextra.neural._predictor import NeuralPredictor


class NeuralClassifier(ClassifierMixin, NeuralPredictor):
    """Classifier of any torch module.

    The module is trained by skorch; without one, the model is a multi-layer
    perceptron. X should be scaled: see
    :class:`~sklearn.preprocessing.StandardScaler`.

    Parameters
    ----------
    module : class, callable, Module or None, default=None
        What makes the module, called with ``module_params`` and with ``in_features``
        and ``out_features`` if it has parameters of these names, as
        :class:`torch.nn.Linear` has; or a module, of which each ``fit`` trains a copy.
        It returns one column for each class (two for two), or for each label of a row.
        None is a multi-layer perceptron with the parameters
        ``hidden_layer_sizes=(100,)``, ``activation=torch.nn.ReLU`` and ``dropout=0``.
    module_params : dict, default=None
        Parameters of ``module``.
    criterion : class, callable, Module or None, default=None
        Loss of the module's output, of shape (n_samples, n_classes), and the targets:
        numbers of classes of shape (n_samples,), or, for several labels a row, zeros
        and ones of shape (n_samples, n_labels). It is the mean over a batch. None is
        the cross-entropy of the softmax of the output, or of the sigmoid for each
        label.
    optimizer : str, class or callable, default="adamw"
        "adamw", "adam", "radam", "sgd", "muon", "swan", "sinkgd", or a function of the
        parameters and ``lr``; see :func:`skextra.optim.make_optimizer`.
    optimizer_params : dict, default=None
        Further parameters of the optimizer, but "lr".
    learning_rate : float, default=1e-3
        Learning rate.
    max_epochs : int, default=100
        Number of passes over the training rows.
    batch_size : int, default=64
        Rows of a batch; in training on arrays a few more where a last one would be a
        single row, of which batch norms learn nothing.
    class_weight : dict, "balanced" or None, default=None
        What the loss of a row is multiplied with, by class, as in other classifiers;
        not for several labels a row, nor with a ``criterion`` of yours, nor "balanced"
        where the rows come in parts.
    validation_fraction : float, default=None
        Share of the rows held out, whose loss is the ``valid_loss`` of ``history_``:
        callbacks as :class:`skorch.callbacks.EarlyStopping` need it.
    callbacks : list or tuple, default=None
        Callbacks of skorch, as for :class:`skorch.NeuralNet`. Each ``fit`` trains with
        copies, which are in ``net_.callbacks_``. Those of scikit-learn come by
        ``set_callbacks``.
    device : str, default="auto"
        Where to train and predict, as torch names it. "auto" is a GPU if there is one.
        A fitted model predicts elsewhere after ``set_params(device=...)``.
    accelerator : accelerate.Accelerator, default=None
        Trains on several devices, or in mixed precision; ``device`` is then for
        predictions only.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the weights of the last one, with a new optimizer.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, of dropout and of the order of the rows.
    verbose : int, default=0
        If positive, skorch prints a line for each epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels; for several labels a row, their numbers.
    multilabel_ : bool
        Whether a row may have several labels.
    module_ : torch.nn.Module
        Trained module.
    net_ : skorch.NeuralNet
        The net that trained it.
    history_ : skorch.history.History
        Losses and times of each epoch.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where all are strings.

    See Also
    --------
    NeuralRegressor : Regressor of any torch module.
    sklearn.neural_network.MLPClassifier : Perceptron without torch.

    Notes
    -----
    There is no ``sample_weight``: with weights, a mini-batch is no longer what the
    repeated rows would have been, so weighting and repeating would not agree.

    Predictions are computed in float64 from the float32 weights, so that a row's
    prediction does not depend on the rows beside it. A module that makes float32 tensors
    of its own cannot do that, and predicts in float32.

    Fits in threads of one process take turns, since torch's initialisers and dropout
    share one generator; processes do not wait for each other.

    Targets of a ``Dataset`` or ``DataLoader`` are the numbers of classes, 0, 1, ..., or
    rows of zeros and ones. ``fit`` reads such data once to see how many classes there
    are; ``partial_fit`` is told by `classes`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skextra.neural import NeuralClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NeuralClassifier(max_epochs=50, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_constraints: dict = {
        **NeuralPredictor._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
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
        class_weight=None,
        validation_fraction=None,
        callbacks=None,
        device="auto",
        accelerator=None,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
        super().__init__(
            module,
            module_params=module_params,
            criterion=criterion,
            optimizer=optimizer,
            optimizer_params=optimizer_params,
            learning_rate=learning_rate,
            max_epochs=max_epochs,
            batch_size=batch_size,
            validation_fraction=validation_fraction,
            callbacks=callbacks,
            device=device,
            accelerator=accelerator,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None, classes=None):
        """Train for one epoch, from where an earlier call ended.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dataset or DataLoader
            As in ``fit``.
        y : array-like of shape (n_samples,) or (n_samples, n_labels), default=None
            As in ``fit``.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come (for several labels a row: their numbers);
            needed in the first call.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If `classes` is missing in the first call, or changes later.
        """
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs all rows at once, and partial_fit has '
                "some: give the weights as a dict, from "
                "sklearn.utils.class_weight.compute_class_weight."
            )
        _check_partial_fit_first_call(self, classes)
        return self._learn(X, y, 1, getattr(self, "net_", None))

    def predict(self, X):
        """Predict the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dataset or DataLoader
            As in ``fit``; targets that a Dataset holds are not looked at.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
            The class of the greatest output; for several labels a row, 1 where the
            output is positive.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        ValueError
            If the rows are others than in ``fit``, or the module returns NaN.
        """
        outputs = self._outputs(X)
        if self.multilabel_:
            return (outputs > 0).astype(int)
        return self.classes_[outputs.argmax(axis=1)]

    def decision_function(self, X):
        """Return what the module gives for each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dataset or DataLoader
            As in ``predict``.

        Returns
        -------
        decision : ndarray of shape (n_samples,) or (n_samples, n_classes)
            The module's output, computed in float64; for two classes, that of the
            second less that of the first.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        ValueError
            If the rows are others than in ``fit``, or the module returns NaN.
        """
        outputs = self._outputs(X)
        if len(self.classes_) == 2 and not self.multilabel_:
            return outputs[:, 1] - outputs[:, 0]
        return outputs

    def predict_proba(self, X):
        """Predict the probabilities of the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dataset or DataLoader
            As in ``predict``.

        Returns
        -------
        probability : ndarray of shape (n_samples, n_classes)
            Softmax of the module's output; for several labels a row, its sigmoid.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        ValueError
            If the rows are others than in ``fit``, or the module returns NaN.
        """
        outputs = self._outputs(X)
        return expit(outputs) if self.multilabel_ else softmax(outputs, axis=1)

    def _note_targets(self, y, again):
        """Return the targets as the module has them, and the strata of a split."""
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind == "multiclass-multioutput":
            raise ValueError(
                "y must hold one label a row, or zeros and ones for each label; got "
                "several columns of labels: see "
                "sklearn.multioutput.MultiOutputClassifier."
            )
        if kind == "multilabel-indicator":
            y = y.toarray() if issparse(y) else y
            self._note_classes(np.arange(y.shape[1]), True, again)
            return y.astype(np.float32), None
        y = column_or_1d(y, warn=True)
        self._note_classes(np.unique(y), False, again, y)
        numbers = np.searchsorted(self.classes_, y)
        return numbers, numbers

    def _note_loaded_targets(self, y, loader, again):
        """Note the classes of a loader; return whether it was read for that."""
        from skextra.neural._loaders import labels_of

        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs an array y; give the weights of a '
                "Dataset's or DataLoader's classes as a dict."
            )
        unread = y.ndim > 1 or hasattr(self, "classes_")
        if y.ndim > 1:
            found = np.arange(y.shape[1])
        else:
            found = self.classes_ if unread else labels_of(loader)
        if not np.array_equal(found, np.arange(len(found))):
            raise ValueError(
                "The targets of a Dataset or DataLoader must be the numbers of the "
                f"classes, 0, 1, ...; got {found}."
            )
        self._note_classes(found, y.ndim > 1, again)
        return not unread

    def _note_classes(self, found, multilabel, again, y=None):
        """Note the classes and their weights; refuse others than before."""
        if not hasattr(self, "classes_"):
            self.classes_ = found
        if multilabel and len(found) != len(self.classes_):
            raise ValueError(
                f"y must have {len(self.classes_)} labels a row, as many as classes_; "
                f"got {len(found)}."
            )
        unknown = np.setdiff1d(found, self.classes_)
        if len(unknown) or (again and multilabel != self.multilabel_):
            raise ValueError(
                f"y must hold labels of classes_ alone, as before: {self.classes_}; "
                f"got {unknown if len(unknown) else 'another kind of target'}."
            )
        if self.class_weight is not None and (multilabel or self.criterion is not None):
            raise ValueError(
                "class_weight must be None for several labels a row, or with a "
                f"criterion of one's own; got {self.class_weight!r}."
            )
        self.multilabel_, self._numbers_classes = multilabel, not multilabel
        self._n_outputs = len(self.classes_)
        self._weights = None
        if self.class_weight is not None:
            self._weights = self._weights_of_classes(y)

    def _weights_of_classes(self, y):
        """Return the weight of each class: of one that y lacks, 1 if balanced."""
        if self.class_weight == "balanced":
            numbers = np.searchsorted(self.classes_, y)
            present, weights = np.unique(numbers), np.ones(len(self.classes_))
            weights[present] = compute_class_weight(
                "balanced", classes=self.classes_[present], y=y
            )
            return weights
        weights = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_
        )
        if not weights.any():
            raise ValueError(
                "class_weight must be positive for some of the classes; got "
                f"{self.class_weight!r}."
            )
        return weights

    def _default_criterion(self):
        """Return the cross-entropy."""
        import torch

        from skextra.neural._building import WeightedCrossEntropy

        if self.multilabel_:
            return torch.nn.BCEWithLogitsLoss()
        if self._weights is None:
            return torch.nn.CrossEntropyLoss()
        return WeightedCrossEntropy(self._weights)

    def _net_options(self):
        """Return how the net's output becomes probabilities, and its labels."""
        from skextra.neural import _net

        if self.multilabel_:
            return {"predict_nonlinearity": _net.sigmoid}
        labels = np.arange(self._n_outputs)
        return {"predict_nonlinearity": _net.softmax, "classes": labels}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
