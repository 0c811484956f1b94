"""What both meta-estimators share: members in blocks of rows, and queries."""

import numpy as np
from scipy.sparse import issparse
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import Bunch, _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from skextra.uncertainty._inputs import count
from skextra.uncertainty._members import draws_members, unwrap
from skextra.utils import row_blocks

WITH_TARGETS = "eur", "epig"


class QueryMixin(MetaEstimatorMixin):
    """Mixin of meta-estimators that judge rows by the members of what they fit.

    A class gives ``_default_estimator(X, sample_weight)``; ``_beliefs(estimator, X)``,
    a tuple of arrays with a first axis of rows; ``_scores(strategy, pool, targets,
    target_weights)`` of such tuples; and ``_strategies``, their names.
    """

    def _validate(self, X, y):
        """Return y as an array, once the features are seen; the estimator checks X."""
        if _is_table(X):
            validate_data(self, X, y, skip_check_array=True)
        elif y is None:
            validate_data(self, y=y, skip_check_array=True)
        return column_or_1d(y, warn=True)

    def _fit_clone(self, estimator, X, y, sample_weight):
        """Return a fitted clone; weights are passed only if there are any."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return clone(estimator).fit(X, y, **weights)

    def _try_members(self, estimator, X):
        """Return the bytes that the members take for a row: fails early without any."""
        row = _rows(X, slice(0, 1))
        return sum(belief.nbytes for belief in self._beliefs(estimator, row))

    def _blocks(self, X):
        """Yield the beliefs about the rows of X, block by block."""
        check_is_fitted(self)
        if _is_table(X):
            validate_data(self, X, skip_check_array=True, reset=False)
        n_rows = _num_samples(X)
        if n_rows * self._row_bytes <= 64 * 2**20:
            yield self._beliefs(self.estimator_, X)
            return
        for rows in row_blocks(n_rows, self._row_bytes, memory=64):
            yield self._beliefs(self.estimator_, _rows(X, rows))

    def _mapped(self, function, X):
        """Return a function of beliefs, computed in blocks."""
        return joined([function(*beliefs) for beliefs in self._blocks(X)])

    def acquisition(
        self,
        X_pool,
        X_target=None,
        *,
        strategy="eur",
        n_targets=100,
        target_weights=None,
    ):
        """Score rows by what their labels are worth.

        Parameters
        ----------
        X_pool : {array-like, sparse matrix} of shape (n_pool, n_features)
            Rows that could be labelled.

        X_target : {array-like, sparse matrix} of shape (n_targets, n_features), \
                default=None
            Rows whose uncertainty matters; by default those of the pool. Used by "eur"
            and "epig" alone.

        strategy : {"eur", "epig", "bald", "entropy", "margin", "variance"}, \
                default="eur"
            Score: the expected reduction of the uncertainty at the targets, under
            `loss` or under the log loss ("epig"); information on which member is right
            ("bald"); entropy; of classifiers, one less the lead of the best class over
            the second ("margin"); of regressors, "variance".

        n_targets : int, default=100
            Number of rows of the pool that are drawn as targets, at most, where
            `X_target` is None.

        target_weights : array-like of shape (n_targets,), default=None
            How much each row of `X_target` matters; by default all alike.

        Returns
        -------
        scores : ndarray of shape (n_pool,)
            Scores; higher is better.

        Raises
        ------
        ValueError
            If a parameter is not as documented.
        """
        check_is_fitted(self)
        self._check_strategy(strategy, X_target, target_weights)
        pool, targets = self._pool(X_pool, X_target, strategy, n_targets)
        return joined(
            [self._scores(strategy, p, targets, target_weights) for p in pool]
        )

    def _check_query(self, n_instances, X_pool):
        """Raise a ValueError if there are not as many rows."""
        check_is_fitted(self)
        count(n_instances, "n_instances", _num_samples(X_pool), " rows of X_pool")

    def _best(self, scores, n_instances, random_ties):
        """Return the indices of the highest scores, the best first."""
        order = np.arange(len(scores))
        if random_ties:
            order = check_random_state(self.random_state).permutation(order)
        return order[np.argsort(-scores[order], kind="stable")[:n_instances]]

    def _check_strategy(self, strategy, X_target, target_weights):
        """Raise a ValueError if what is asked for is not known."""
        if strategy not in self._strategies:
            raise ValueError(
                f"strategy must be one of {self._strategies}; got {strategy!r}."
            )
        if target_weights is not None and X_target is None:
            raise ValueError(
                "target_weights are of the rows of X_target, which is None: give both."
            )

    def _pool(self, X_pool, X_target, strategy, n_targets):
        """Return the beliefs about the pool, in blocks, and about the targets."""
        if strategy not in WITH_TARGETS:
            return self._blocks(X_pool), None
        # One row tells which estimator has the members.
        is_drawn = draws_members(unwrap(self.estimator_, _rows(X_pool, slice(1)))[0])
        if X_target is None:
            targets = self._target_rows(_num_samples(X_pool), n_targets)
            if is_drawn:
                (pool,) = self._together(X_pool)
                return [pool], tuple(belief[targets] for belief in pool)
            X_target = _rows(X_pool, targets)
        elif is_drawn:
            pool, targets = self._together(X_pool, X_target)
            return [pool], targets
        beliefs = list(self._blocks(X_target))
        return self._blocks(X_pool), tuple(
            map(np.concatenate, zip(*beliefs, strict=True))
        )

    def _together(self, *parts):
        """Return the beliefs about each part under the same draws."""
        for X in parts:
            validate_data(self, X, skip_check_array=True, reset=False)
        core, _ = unwrap(self.estimator_, parts[0])
        parts = [unwrap(self.estimator_, X)[1] for X in parts]
        X = parts[0] if len(parts) == 1 else np.vstack([np.asarray(X) for X in parts])
        beliefs = self._beliefs(core, X)
        ends = np.cumsum([_num_samples(X) for X in parts])
        rows = [
            slice(end - _num_samples(X), end)
            for X, end in zip(parts, ends, strict=True)
        ]
        return [tuple(belief[part] for belief in beliefs) for part in rows]

    def _target_rows(self, n_pool, n_targets):
        """Return the rows of the pool that serve as targets."""
        if count(n_targets, "n_targets") >= n_pool:
            return np.arange(n_pool)
        rng = check_random_state(self.random_state)
        return np.sort(rng.choice(n_pool, size=n_targets, replace=False))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        estimator = self.estimator
        if estimator is None:
            estimator = self._default_estimator(None, None)
        inner = get_tags(estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        return tags


@unwrap.register
def _(estimator: QueryMixin, X):
    check_is_fitted(estimator)
    return unwrap(estimator.estimator_, X)


def joined(parts):
    """Return the results of blocks, arrays or Bunches of them, as one."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return Bunch(**{key: joined([part[key] for part in parts]) for key in parts[0]})


def _rows(X, rows):
    """Return rows of any kind of X that estimators take."""
    if issparse(X):
        X = X.tocsr()
    elif not hasattr(X, "__getitem__"):
        X = np.asarray(X)
    return _safe_indexing(X, rows)


def _is_table(X):
    """Return whether X has columns to count; other kinds are for the estimator."""
    shape = getattr(X, "shape", None)
    return len(np.asarray(X).shape if shape is None else shape) == 2
