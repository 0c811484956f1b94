"""Consistency models."""

from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skextra.generative._base import BaseGenerator
from skextra.generative._inputs import checked_taus, coded_labels, require_sizes
from skextra.generative._plan import epochs, make_plan
from skextra.generative._schedule import KINDS, require_range
from skextra.neural import BaseNeural
from skextra.utils import forget

TAUS = 0.2, 0.4, 0.8, 1.6, 3.2, 6.4  # that "auto" tries, in units of sigma_data
TUNING_SAMPLES = 2000
TEACHER_RATE = 3  # the learning rate of a teacher, over that of what follows it
MOST_HELD_OUT = 1000


class ConsistencyModel(BaseGenerator):
    """Generator of new rows in one or two network evaluations.

    A diffusion model turns noise into rows like those of a table in some fifty
    evaluations of a network. A consistency model [1]_ learns to jump to the end of that
    path at once. It is trained on steps between neighbouring noise levels; how many
    levels there must be, and how they must be spaced, is the subject of [2]_. Here
    their number comes from the bias that they cause for normal data, in closed form.

    Parameters
    ----------
    method : {"tuning", "training", "distillation"}, default="tuning"
        "tuning" trains a denoiser, the teacher [3]_, and then turns it into a
        consistency function whose steps become shorter and shorter [4]_. "training"
        needs no teacher: the consistency function is trained from scratch on steps of
        grids that become finer [5]_. "distillation" follows Euler steps of a teacher.

    schedule : {"decay", "uniform", "vp", "geometric"}, default="decay"
        Spacing of the noise levels, see :func:`consistency_schedule`. "tuning" has its
        own, and looks neither at this nor at `rho`.

    rho : float, default=7.0
        Decay of the steps of "decay".

    sigma_min : float, default=0.002
        Least noise, where rows count as data.

    sigma_max : float, default=80.0
        Most noise, where rows count as noise only.

    sigma_data : float, default=0.5
        Standard deviation to which the columns are scaled. All levels are in its unit.

    n_discretization : int or "auto", default="auto"
        Number of steps of the grid, at least 2. "auto" is for a bias of `tol` at the
        smallest standard deviation of the training rows in any direction (or, if that
        is smaller, at ten times `sigma_min`), by :func:`required_discretization`,
        rounded up to 10, 20, 40, ..., 1280; training then begins with 10 steps and
        doubles them. "tuning", whose steps are halved in the course of training, ends
        with at least as many steps as "decay" needs, and a bias of up to 1.6 `tol`. A
        number is used from the first iteration on; for "tuning", the last steps are as
        short as needed for as many.

    tol : float, default=0.01
        Bias that "auto" allows: relative error of the standard deviation of samples,
        for normal data, the squared loss, and a network without errors of its own.

    hidden_layer_sizes : array-like of int, default=(128, 128, 128)
        Width of each residual block. For images, channels at each resolution, which
        halves from one to the next.

    max_iter : int or "auto", default="auto"
        Iterations of the consistency function, each over one batch; of more than 100,
        up to 1 % less, so that epochs are equally long. "auto" is 4 per row, at least
        100 and at most 4000.

    teacher : {"edm", "kde"}, default="edm"
        Teacher of "distillation": a trained denoiser, or the exact denoiser of a kernel
        density of the training rows, whose bandwidth has the largest leave-one-out
        likelihood. It is not kept, and so the model holds no training rows.

    teacher_iter : int, default=None
        Iterations of the denoiser. None stands for `max_iter`.

    optimizer : str or callable, default="adam"
        As in :func:`skextra.optim.make_optimizer`.

    optimizer_params : dict, default=None
        Further parameters of the optimizer.

    batch_size : int, default=256
        Rows of a batch, drawn with replacement; never more than there are.

    learning_rate : float, default=1e-3
        Learning rate of the first iteration, from where it falls to 0 as a cosine. That
        of a teacher is three times as high.

    ema_decay : float, default=0.999
        Decay of the average of the weights, which is used after training.

    loss : {"pseudo_huber", "squared"}, default="pseudo_huber"
        How the ends of a step are compared.

    index_distribution : {"lognormal", "uniform"}, default="lognormal"
        How often the steps of a grid are trained. "tuning" is always lognormal.

    gaussian_preconditioning : bool, default=False
        Whether the networks only learn what distinguishes the data from a normal
        distribution with their covariance, which then comes out without bias.

    scaling : {"standard", "global", "quantile"}, default="standard"
        How numeric columns are scaled: each by its standard deviation; all by the same,
        for images; or by quantiles to normal distributions, for heavy tails.

    categorical_features : array-like of {bool, int, str}, "from_dtype" or None, \
            default=None
        Columns that hold categories, as a mask, by their numbers or by their names.
        "from_dtype" are those of the categorical dtypes of a dataframe.

    clip : bool, default=False
        Whether numbers are clipped to the range of the training rows.

    conditional : bool or "auto", default="auto"
        Whether to condition on y. "auto" does if y holds classes: one column, not
        continuous, and of more than 20 rows at most half as many values as rows.

    tau : float, array-like of float or "auto", default=0.8
        Level to which noise is added again before the second evaluation, or levels for
        the second and further ones. "auto" holds out a fifth of the rows, at most 1000,
        and takes the best of six levels by the energy distance of samples to them.

    input_shape : tuple, default=None
        Height and width, or channels, height and width, of images, of which each row
        holds the pixels. The network then is a small U-Net.

    device : str, default="auto"
        Device of torch, to train and to sample on. "auto" takes a GPU if there is one.

    callbacks : list, default=None
        Callbacks of skorch, for both networks.

    random_state : int, RandomState instance or None, default=None
        Determines the training, and samples for which nothing else is given.

    verbose : int, default=0
        Whether skorch prints each epoch.

    Attributes
    ----------
    ema_module_ : torch.nn.Module
        Consistency function with averaged weights, which makes the samples.

    module_ : torch.nn.Module
        The same with the weights of the last iteration.

    teacher_ : torch.nn.Module
        Denoiser with averaged weights. Only if one was trained.

    net_ : skorch.NeuralNet
        What trained the consistency function.

    history_ : skorch.history.History
        Its history.

    loss_curve_ : list of float
        Mean loss of each epoch of at most 100 batches. It grows where steps become
        shorter, and so is no measure of progress.

    n_iter_ : int
        Iterations of the consistency function; 0 if a callback ended the fit before
        they began, and then `net_`, `history_` and `loss_curve_` are the teacher's.

    schedule_ : ndarray of shape (`n_discretization_` + 1,)
        Noise levels of the last grid; for "tuning", those that its last steps pass on
        the way from the most noise to the least.

    n_discretization_ : int
        Number of their steps.

    tau_ : ndarray of shape (n_taus,)
        Levels for the second and further evaluations.

    scaler_ : estimator
        :class:`~sklearn.preprocessing.StandardScaler` or
        :class:`~sklearn.preprocessing.QuantileTransformer` of the numeric columns.

    classes_ : ndarray of shape (n_classes,)
        Classes, if the model is conditional.

    class_prior_ : ndarray of shape (n_classes,)
        Their shares of the training rows.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if they are all strings.

    See Also
    --------
    sklearn.mixture.GaussianMixture : A mixture of few normal distributions.
    sklearn.neighbors.KernelDensity : Noise around training rows.
    memorization_report : Whether samples are copies.

    Notes
    -----
    Categories become indicators, and the largest value gives the category of a sample.
    Columns of integers are rounded. Constant columns come back as they are.

    With the pseudo-Huber loss the bias of a grid is another than that of the squared
    loss, for which the closed form holds. A second evaluation does not remove the bias;
    it mends errors of the network.

    References
    ----------
    .. [1] Y. Song, P. Dhariwal, M. Chen and I. Sutskever, "Consistency Models",
       ICML 2023, :arxiv:`2303.01469`.
    .. [2] R. Yang, B. Jiang, C. Chen and S. Li, "Improved Discretization Complexity
       Analysis of Consistency Models: Variance Exploding Forward Process and Decay
       Discretization Scheme", ICML 2025, PMLR 267:70756-70775.
    .. [3] T. Karras, M. Aittala, T. Aila and S. Laine, "Elucidating the Design Space of
       Diffusion-Based Generative Models", NeurIPS 2022, :arxiv:`2206.00364`.
    .. [4] Z. Geng, A. Pokle, W. Luo, J. Lin and J. Z. Kolter, "Consistency Models Made
       Easy", ICLR 2025, :arxiv:`2406.14548`.
    .. [5] Y. Song and P. Dhariwal, "Improved Techniques for Training Consistency
       Models", ICLR 2024, :arxiv:`2310.14189`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skextra.generative import ConsistencyModel
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = ConsistencyModel(max_iter=100, random_state=0).fit(X, y)
    >>> X_new, y_new = model.sample(200)
    >>> list(X_new.columns) == list(X.columns), y_new.shape
    (True, (200,))
    >>> X_new, _ = model.sample(10, y=2, n_steps=2)
    >>> X_new.shape
    (10, 4)
    """

    _parameter_constraints: dict = BaseNeural._parameter_constraints | {
        "method": [StrOptions({"tuning", "training", "distillation"})],
        "schedule": [StrOptions(set(KINDS))],
        "rho": [Interval(Real, 0, None, closed="right")],
        "sigma_min": [Interval(Real, 0, None, closed="neither")],
        "sigma_max": [Interval(Real, 0, None, closed="neither")],
        "sigma_data": [Interval(Real, 0, None, closed="neither")],
        "n_discretization": [
            Interval(Integral, 2, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "hidden_layer_sizes": ["array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "teacher": [StrOptions({"edm", "kde"})],
        "teacher_iter": [Interval(Integral, 1, None, closed="left"), None],
        "ema_decay": [Interval(Real, 0, 1, closed="left")],
        "loss": [StrOptions({"pseudo_huber", "squared"})],
        "index_distribution": [StrOptions({"lognormal", "uniform"})],
        "gaussian_preconditioning": ["boolean"],
        "scaling": [StrOptions({"standard", "global", "quantile"})],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "clip": ["boolean"],
        "conditional": [StrOptions({"auto"}), "boolean"],
        "tau": [
            Interval(Real, 0, None, closed="neither"),
            "array-like",
            StrOptions({"auto"}),
        ],
        "input_shape": [tuple, list, None],
    }

    def __init__(
        self,
        *,
        method="tuning",
        schedule="decay",
        rho=7.0,
        sigma_min=0.002,
        sigma_max=80.0,
        sigma_data=0.5,
        n_discretization="auto",
        tol=0.01,
        hidden_layer_sizes=(128, 128, 128),
        max_iter="auto",
        teacher="edm",
        teacher_iter=None,
        optimizer="adam",
        optimizer_params=None,
        batch_size=256,
        learning_rate=1e-3,
        ema_decay=0.999,
        loss="pseudo_huber",
        index_distribution="lognormal",
        gaussian_preconditioning=False,
        scaling="standard",
        categorical_features=None,
        clip=False,
        conditional="auto",
        tau=0.8,
        input_shape=None,
        device="auto",
        callbacks=None,
        random_state=None,
        verbose=0,
    ):
        self.method = method
        self.schedule = schedule
        self.rho = rho
        self.sigma_min = sigma_min
        self.sigma_max = sigma_max
        self.sigma_data = sigma_data
        self.n_discretization = n_discretization
        self.tol = tol
        self.hidden_layer_sizes = hidden_layer_sizes
        self.max_iter = max_iter
        self.teacher = teacher
        self.teacher_iter = teacher_iter
        self.optimizer = optimizer
        self.optimizer_params = optimizer_params
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.ema_decay = ema_decay
        self.loss = loss
        self.index_distribution = index_distribution
        self.gaussian_preconditioning = gaussian_preconditioning
        self.scaling = scaling
        self.categorical_features = categorical_features
        self.clip = clip
        self.conditional = conditional
        self.tau = tau
        self.input_shape = input_shape
        self.device = device
        self.callbacks = callbacks
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Train the teacher, if the method has one, and the consistency function.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)
            Rows to learn, at least 2. Of images, each row holds the pixels.

        y : array-like of shape (n_samples,), default=None
            Classes to condition on, as `conditional` says.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as documented, or if the loss is no
            finite number.
        ImportError
            If torch or skorch is not installed.
        """
        forget(self)
        with self._all_or_nothing():
            return self._learn(X, y)

    def _learn(self, X, y):
        """Do as `fit` says; an error leaves attributes behind."""
        taus = self._checked_parameters()
        rng = check_random_state(self.random_state)
        rows, codes = self._validated_rows(X, fit=True), self._fit_labels(y, X)
        train, held_out = self._split(len(rows), codes, rng)
        Z = self._table.transform(rows[train], rng)
        self._plan = plan = make_plan(self, Z, rng)
        self.scaler_, self.tau_ = self._table.scaler, taus
        self.schedule_, self.n_discretization_ = plan.levels, len(plan.levels) - 1

        n_epochs = sum(epochs(n)[0] for n in (plan.teacher_iter, plan.n_iter))
        with self._course(n_epochs, X, y) as course:
            from skextra.generative import _training

            data, going, teacher = self._tensors(Z, codes, train), True, None
            if plan.teacher_iter:
                parts = _training.teacher(self, plan, Z.shape[1], self._n_classes)
                rate = TEACHER_RATE * self.learning_rate
                net, going = self._run(parts, data, plan.teacher_iter, course, rate)
                teacher = _training.averaged_module(net)
            if going:
                parts = _training.student(self, plan, data, self._n_classes, teacher)
                net, _ = self._run(parts, data, plan.n_iter, course)
                net.criterion_.denoise = None  # it may hold the training rows
            vars(self).update(self._fitted(net))
            if teacher is not None:
                self.teacher_ = teacher
        del self._plan
        if isinstance(self.tau, str):
            self.tau_ = self._tuned_tau(rows[held_out], rng)
        return self

    def _checked_parameters(self):
        """Check what does not depend on the data; return the levels, None for "auto"."""
        require_range(self.sigma_min, self.sigma_max)
        require_sizes(self.hidden_layer_sizes)
        if isinstance(self.tau, str):
            return None
        return checked_taus(self.tau, self.sigma_min, self.sigma_max)

    def _fit_labels(self, y, X):
        """Return the classes as numbers, or None."""
        classes, codes = coded_labels(y, X, self.conditional)
        self._n_classes = 0
        if classes is not None:
            self.classes_, self._n_classes = classes, len(classes)
            self.class_prior_ = np.bincount(codes) / len(codes)
        return codes

    def _split(self, n_samples, codes, rng):
        """Return the rows to train with, and those to tune tau with."""
        everything = np.arange(n_samples)
        n_held_out = min(n_samples // 5, MOST_HELD_OUT)
        if not isinstance(self.tau, str) or not n_held_out:
            return everything, everything
        shuffled = rng.permutation(n_samples)
        if codes is not None:  # a row of each class stays to train with
            first = np.unique(codes[shuffled], return_index=True)[1]
            shuffled = np.r_[np.delete(shuffled, first), shuffled[first]]
            n_held_out = min(n_held_out, n_samples - len(first))
            if not n_held_out:
                return everything, everything
        return shuffled[n_held_out:], shuffled[:n_held_out]

    def _tensors(self, Z, codes, train):
        """Return rows and classes on the device."""
        import torch

        Z = torch.tensor(Z, dtype=torch.float32)
        codes = None if codes is None else torch.from_numpy(codes[train])
        return [
            None if part is None else part.to(self._device()) for part in (Z, codes)
        ]

    def _run(self, parts, data, n_iter, course, rate=None):
        """Train a module; return its net, and whether training may go on."""
        from skextra.generative._training import callbacks

        schedule = callbacks(self.ema_decay, n_iter)
        net = self._make_net(*parts, callbacks=schedule, rate=rate)
        n_epochs, n_batches = epochs(n_iter)
        tensors = [part for part in data if part is not None]
        # Of few rows, larger batches would hold each several times.
        batch_size = min(self.batch_size, len(tensors[0]))
        loader = self._batches(tensors, n_batches, batch_size)
        return net, self._train(net, loader, n_epochs, course)

    def _fitted(self, net):
        """Return what a fit that ends now leaves: of a teacher, its network as it is."""
        from skextra.generative import _training

        average = _training.averaged_module(net)
        is_student = average.sigma_min > 0
        if not is_student:
            network = average.network
            average = _training.precondition(network, self, self._plan, self.sigma_min)
        n_batches = epochs(self._plan.n_iter)[1]
        return super()._fitted(net) | {
            "ema_module_": average,
            "loss_curve_": [float(loss) for loss in net.history[:, "train_loss"]],
            "n_iter_": len(net.history) * n_batches if is_student else 0,
        }

    def _tuned_tau(self, rows, rng):
        """Return the level for two evaluations whose samples are nearest to rows."""
        taus = np.multiply(TAUS, self.sigma_data)
        taus = taus[(taus > self.sigma_min) & (taus <= self.sigma_max)]
        taus = taus if taus.size else np.array([self.sigma_max])
        seed = rng.randint(np.iinfo(np.int32).max)
        distances = []
        for tau in taus:
            again = np.random.RandomState(seed)  # the same draws for all
            codes, n = self._codes_to_sample(None, TUNING_SAMPLES, again)
            samples = self._generate(
                self._sampler("consistency", 2, tau), n, codes, again
            )
            distances.append(self._distance(rows, samples))
        return taus[[np.argmin(distances)]]
