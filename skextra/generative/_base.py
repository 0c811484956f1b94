"""What a fitted generator does: sampling, scores, densities."""

from copy import deepcopy
from functools import partial
from numbers import Real

import numpy as np
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils._dataframe import is_pandas_df
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_categorical_features,
    check_is_fitted,
    validate_data,
)

from skextra.generative._distances import energy_distance
from skextra.generative._inputs import (
    checked_taus,
    known_codes,
    require_categories_named,
    require_count,
    require_image,
    require_none_missing,
)
from skextra.generative._schedule import grid
from skextra.generative._tables import Table
from skextra.neural import BaseNeural

TEACHER_RHO, TEACHER_STEPS = 7.0, 25  # of the sampler of Karras et al. 2022
MOST_ROWS = 5000  # that a score is computed of, for its time grows with their square
MOST_DIVERGENCE = 64  # columns of which a density is computed
NO_TEACHER = (
    "No teacher was kept: fit with method='tuning', or with method='distillation' and "
    "teacher='edm'."
)


def _keeps_teacher(model):
    """Whether the model has a trained teacher, or may have one once it is fitted."""
    if hasattr(model, "teacher_") or not hasattr(model, "ema_module_"):
        return True
    raise AttributeError(NO_TEACHER)


class BaseGenerator(BaseNeural):
    """Base of generators, for their fitted state.

    ``fit`` leaves `ema_module_` and, if there is one, `teacher_`; `tau_`; `classes_` and
    `class_prior_` if there are classes, of which there are ``_n_classes``.
    """

    _weights_of = "ema_module_"

    def sample(
        self,
        n_samples=1,
        *,
        y=None,
        n_steps=None,
        tau=None,
        sampler="consistency",
        random_state=None,
    ):
        """Draw new rows.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        y : label or array-like of shape (n_samples,), default=None
            Class of all rows, or of each one, whose number then is that of the rows if
            `n_samples` is 1. None draws the classes in the proportions of the training
            rows. Only for models that were fitted with classes.

        n_steps : int, default=None
            Evaluations of the consistency function: at most one more than there are
            values of `tau`, which None stands for if `tau` is given, and else for 1. Of
            the teacher, number of steps of Heun's method, which take ``2 * n_steps -
            1`` evaluations; None stands for 25.

        tau : float or array-like of float, default=None
            Levels to which noise is added again before the second and further
            evaluations. None stands for `tau_`.

        sampler : {"consistency", "teacher"}, default="consistency"
            Whether to sample by the consistency function or by its teacher.

        random_state : int, RandomState instance or None, default=None
            Determines the draws. None stands for `random_state` of the model.

        Returns
        -------
        X : {ndarray, dataframe} of shape (n_samples, n_features)
            Rows, in the form of the training rows: a dataframe of pandas or polars with
            the same columns and dtypes, or an array of the same dtype.

        y : ndarray of shape (n_samples,)
            Their classes. Only of models that were fitted with classes.

        Raises
        ------
        ValueError
            If `n_samples` or `n_steps` is below 1, a level is not between `sigma_min`
            and `sigma_max`, a class was not there in `fit`, the model was fitted
            without classes and `y` is given, `n_samples` is neither 1 nor the number of
            classes in `y`, `sampler` is unknown, no teacher was kept to sample from, or
            it is and `tau` is given.
        """
        check_is_fitted(self)
        require_count("n_samples", n_samples)
        seed = self.random_state if random_state is None else random_state
        rng = check_random_state(seed)
        codes, n_samples = self._codes_to_sample(y, n_samples, rng)
        draw = self._sampler(sampler, n_steps, tau)
        X = self._generate(draw, n_samples, codes, rng)
        return X if codes is None else (X, self.classes_[codes])

    def score(self, X, y=None):
        """Return minus the energy distance of rows and as many samples of one step.

        The columns are divided by their standard deviations in the training rows, or
        all by the same for images, so that models with different `scaling` compare; of
        more than 5000 rows, 5000 random ones count.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)
            Rows that the model should be able to draw.

        y : array-like of shape (n_samples,), default=None
            Their classes: a model fitted with classes draws the same. Ignored by
            others.

        Returns
        -------
        score : float
            At most 0, which is best.
        """
        check_is_fitted(self)
        rows, rng = self._validated_rows(X), check_random_state(self.random_state)
        y = y if self._n_classes else None
        if y is not None:
            check_consistent_length(X, y)
        if len(rows) > MOST_ROWS:
            chosen = rng.permutation(len(rows))[:MOST_ROWS]
            rows = rows[chosen]
            y = None if y is None else np.asarray(y)[chosen]
        codes, _ = self._codes_to_sample(y, len(rows), rng)
        draw = self._sampler("consistency", None, None)
        return -self._distance(rows, self._generate(draw, len(rows), codes, rng))

    def denoise(self, X, sigma, y=None):
        """Replace noisy rows by ones without noise, in one evaluation.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)
            Rows with noise.

        sigma : float
            Level of the noise, where columns of the training rows have standard
            deviation `sigma_data`.

        y : label or array-like of shape (n_samples,), default=None
            Classes of the rows. None evaluates the model without a class.

        Returns
        -------
        X : {ndarray, dataframe} of shape (n_samples, n_features)
            Rows, in the form of the training rows. For ``sigma=sigma_min`` they are the
            same, but for whole numbers, constant columns, and, with ``clip=True`` or
            ``scaling="quantile"``, numbers outside of the range of the training rows.

        Raises
        ------
        ValueError
            If `sigma` is not between `sigma_min` and `sigma_max`.
        """
        check_is_fitted(self)
        import torch

        from skextra.generative import _sampling

        Z, codes = self._exact_input(X, y)
        if not (isinstance(sigma, Real) and self.sigma_min <= sigma <= self.sigma_max):
            raise ValueError(
                f"sigma must be a number in [sigma_min, sigma_max] = [{self.sigma_min}, "
                f"{self.sigma_max}]; got {sigma!r}."
            )
        f = self._exact(self.ema_module_)

        def denoised(rows, codes):
            with torch.inference_mode():
                return f(rows, _sampling.repeated(float(sigma), rows), codes)

        Z = _sampling.piecewise(denoised, Z, codes, _sampling.CHUNK)
        return self._table.inverse_transform(Z.numpy())

    @available_if(_keeps_teacher)
    def score_samples(self, X, y=None):
        """Return log densities of rows under the teacher.

        They are those of the data with noise `sigma_min`, by the probability-flow
        equation with its exact divergence.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)
            Rows of at most 64 columns, none of them categorical.

        y : label or array-like of shape (n_samples,), default=None
            Classes of the rows. None evaluates the model without a class.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Natural logarithms, in the units of `X`.

        Raises
        ------
        ValueError
            If there are more than 64 columns, categorical columns, or
            ``scaling="quantile"``, whose density is not smooth.
        """
        check_is_fitted(self)
        from skextra.generative import _sampling

        Z, codes = self._exact_input(X, y)
        if Z.shape[1] > MOST_DIVERGENCE:
            raise ValueError(
                f"score_samples needs at most {MOST_DIVERGENCE} columns; got "
                f"{Z.shape[1]}."
            )
        if self.scaling == "quantile" or self._table.is_categorical.any():
            raise ValueError(
                "score_samples needs numbers that are scaled linearly; got categorical "
                f"columns or scaling={self.scaling!r}."
            )
        ends = TEACHER_RHO, self.sigma_min, self.sigma_max
        density = partial(
            _sampling.log_density,
            self._exact(self.teacher_),
            levels=grid(_sampling.DENSITY_STEPS, "decay", *ends).tolist(),
            sigma_data=self.sigma_data,
        )
        size = max(1, _sampling.CHUNK // Z.shape[1])  # each row once for each column
        found = _sampling.piecewise(density, Z, codes, size).detach().numpy()
        return found + self._table.log_volume()

    def _validated_rows(self, X, fit=False):
        """Return rows as an array: of objects, if there are strings."""
        if fit:
            shaped = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
            mask = _check_categorical_features(shaped, self.categorical_features)
            require_categories_named(X, mask)
        else:
            mask = self._table.is_categorical
        some = mask is not None and mask.any()
        try:
            rows = validate_data(
                self,
                X,
                # Of some frames scikit-learn would make numbers of all columns.
                dtype=(object if is_pandas_df(X) else None) if some else np.float64,
                # Nor does it know all missing values among objects.
                ensure_all_finite=not some,
                reset=fit,
                ensure_min_samples=2 if fit else 1,
            )
        except ValueError as error:
            if "could not convert string" in str(error):
                raise ValueError(
                    f"X holds strings in a column that is not in categorical_features: "
                    f"{error}."
                ) from error
            raise
        if some:
            require_none_missing("X", rows)
        if fit:
            self._table = Table(self.scaling, self.sigma_data, self.clip)
            self._table.fit(rows, X, mask)
            if self.input_shape is not None:
                require_image(self.input_shape, rows.shape[1], some)
        return rows

    def _codes_to_sample(self, y, n_samples, rng):
        """Return the numbers of the classes of samples, or None, and their number."""
        if y is None:
            if not self._n_classes:
                return None, n_samples
            codes = rng.choice(self._n_classes, n_samples, p=self.class_prior_)
            return codes, n_samples
        codes = known_codes(y, getattr(self, "classes_", None), n_samples)
        if n_samples not in (1, len(codes)):
            raise ValueError(
                f"n_samples must be 1 or the number of classes in y, {len(codes)}; got "
                f"{n_samples}."
            )
        return codes, len(codes)

    def _sampler(self, sampler, n_steps, tau):
        """Return a function that draws rows in the network's space."""
        from skextra.generative import _sampling

        if n_steps is not None:
            require_count("n_steps", n_steps)
        if sampler == "teacher":
            if not hasattr(self, "teacher_"):
                raise ValueError(NO_TEACHER)
            if tau is not None:
                raise ValueError(f"tau must be None for the teacher; got {tau!r}.")
            n_steps = n_steps or TEACHER_STEPS
            levels = [self.sigma_max]
            if n_steps > 1:
                ends = TEACHER_RHO, self.sigma_min, self.sigma_max
                levels = grid(n_steps - 1, "decay", *ends)[::-1].tolist()
            return partial(_sampling.heun_sample, self.teacher_, levels=levels)
        if sampler != "consistency":
            raise ValueError(
                f"sampler must be 'consistency' or 'teacher'; got {sampler!r}."
            )
        taus = self.tau_
        if tau is not None:
            taus = checked_taus(tau, self.sigma_min, self.sigma_max)
        n_steps = n_steps or (1 if tau is None else len(taus) + 1)
        if n_steps > len(taus) + 1:
            raise ValueError(
                f"n_steps={n_steps} needs {n_steps - 1} values of tau; got {len(taus)}."
            )
        levels = [self.sigma_max, *taus[: n_steps - 1].tolist()]
        return partial(_sampling.consistency_sample, self.ema_module_, levels=levels)

    def _generate(self, draw, n_samples, codes, rng):
        """Return samples in the form of the training rows."""
        import torch

        from skextra.generative._sampling import in_chunks

        generator = torch.Generator().manual_seed(rng.randint(np.iinfo(np.int32).max))
        codes = None if codes is None else torch.from_numpy(codes)
        device = next(self.ema_module_.parameters()).device
        size = n_samples, self._table.n_columns
        Z = in_chunks(draw, *size, codes, generator, device)
        return self._table.inverse_transform(Z.numpy())

    def _distance(self, rows, samples):
        """Return the energy distance of rows and samples, whatever the scaling."""
        samples = self._validated_rows(samples)
        shared = self.input_shape is not None
        return energy_distance(
            *(self._table.standardized(X, shared) for X in (rows, samples))
        )

    def _exact_input(self, X, y):
        """Return rows and classes for an evaluation in double precision."""
        import torch

        rows = self._validated_rows(X)
        Z = torch.from_numpy(self._table.transform(rows)).to(self._exact_device())
        if y is None:
            return Z, None
        codes = known_codes(y, getattr(self, "classes_", None), len(Z))
        check_consistent_length(Z, codes)
        return Z, torch.from_numpy(codes).to(Z.device)

    def _exact_device(self):
        """Return the device of the networks, or the CPU where it has no doubles."""
        device = next(self.ema_module_.parameters()).device
        return "cpu" if device.type == "mps" else device

    def _exact(self, module):
        """Return a module in double precision, so that batches do not matter."""
        return deepcopy(module).to(self._exact_device()).double().requires_grad_(False)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "ema_module_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.input_tags.categorical = self.categorical_features is not None
        return tags
