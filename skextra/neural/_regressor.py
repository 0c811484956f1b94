"""Any torch module as a scikit-learn regressor."""

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils import check_array

from skextra.neural._predictor import NeuralPredictor


class NeuralRegressor(RegressorMixin, NeuralPredictor):
    """Regressor of any torch module.

    The module is trained by skorch; without one, the model is a multi-layer
    perceptron. X and y should be scaled: see
    :class:`~sklearn.preprocessing.StandardScaler` and
    :class:`~sklearn.compose.TransformedTargetRegressor`.

    Parameters
    ----------
    module : class, callable, Module or None, default=None
        What makes the module, called with ``module_params`` and with ``in_features``
        and ``out_features`` if it has parameters of these names, as
        :class:`torch.nn.Linear` has; or a module, of which each ``fit`` trains a copy.
        It returns one column for each target. None is a multi-layer perceptron with the
        parameters
        ``hidden_layer_sizes=(100,)``, ``activation=torch.nn.ReLU`` and ``dropout=0``.
    module_params : dict, default=None
        Parameters of ``module``.
    criterion : class, callable, Module or None, default=None
        Loss of the module's output and the targets, both of shape
        (n_samples, n_targets): the mean over a batch.
        None is the squared error, :class:`torch.nn.MSELoss`.
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
    NeuralClassifier : Classifier of any torch module.
    sklearn.neural_network.MLPRegressor : Perceptron without torch.

    Notes
    -----
    There is no ``sample_weight``: with weights, a mini-batch is no longer what the
    repeated rows would have been, so weighting and repeating would not agree.

    Predictions are computed in float64 from the float32 weights, so that a row's
    prediction does not depend on the rows beside it. A module that makes float32 tensors
    of its own cannot do that, and predicts in float32.

    Fits in threads of one process take turns, since torch's initialisers and dropout
    share one generator; processes do not wait for each other.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skextra.neural import NeuralRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X, y = scale(X), scale(y)
    >>> model = NeuralRegressor(max_epochs=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.5
    True
    """

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y=None):
        """Train for one epoch, from where an earlier call ended.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dataset or DataLoader
            As in ``fit``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            As in ``fit``.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return self._learn(X, y, 1, getattr(self, "net_", None))

    def predict(self, X):
        """Predict the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dataset or DataLoader
            As in ``fit``; targets that a Dataset holds are not looked at.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The module's output, computed in float64.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        ValueError
            If the rows are others than in ``fit``, or the module returns NaN.
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if self._one_target else outputs

    def _note_targets(self, y, again):
        """Return the targets as the module has them, and no strata."""
        y = check_array(
            y, dtype=np.float32, ensure_2d=False, input_name="y", estimator=self
        )
        self._note_width(y, again)
        return y.reshape(len(y), -1), None

    def _note_loaded_targets(self, y, loader, again):
        """Note the shape of the targets of a loader; return that it was not read."""
        self._note_width(y, again)
        return False

    def _note_width(self, y, again):
        """Note how many targets there are; refuse others than before."""
        width = y.shape[1] if y.ndim > 1 else 1
        if again and width != self._n_outputs:
            raise ValueError(
                f"y must have {self._n_outputs} targets, as before; got {width}."
            )
        if not again:
            self._n_outputs, self._one_target = width, y.ndim == 1

    def _default_criterion(self):
        """Return the squared error."""
        from torch import nn

        return nn.MSELoss()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
