"""The members of an ensemble and their limit: from scaled rows to coefficients."""

import math
from functools import cached_property
from typing import NamedTuple

from sklearn.utils._array_api import get_namespace_and_device

from skextra.ensemble._features import features
from skextra.ensemble._kernels import (
    N_DRAWS,
    is_monte_carlo,
    kernel,
    kernel_diagonal,
    monte_carlo_error,
    monte_carlo_features,
)
from skextra.ensemble._ridge import (
    Spectrum,
    conjugate_gradient,
    factorise,
    leave_one_out,
    solve_path,
)
from skextra.utils import row_blocks

CG_TOLERANCE, CG_ITERATIONS = 1e-8, 1000


class Rows(NamedTuple):
    """Training rows, without those of weight zero."""

    X: object  # (N, p_aug), the paper's x~
    y: object  # (N, t), centred by `y_offset`, times `root`
    root: object  # (N,), roots of the sample weights
    unit: object  # (N,), `root` normalised, or None without an intercept
    y_offset: object  # (t,)


def make_rows(X, y, sample_weight, fit_intercept):
    """Weight and centre the targets; X is scaled already."""
    xp, _, device = get_namespace_and_device(X)
    kept = sample_weight > 0
    if not bool(xp.all(kept)):
        X, y, sample_weight = X[kept], y[kept], sample_weight[kept]
    root = xp.sqrt(sample_weight)
    unit, y_offset = None, xp.zeros(y.shape[1], dtype=y.dtype, device=device)
    if fit_intercept:
        unit = root / xp.linalg.vector_norm(root)
        y_offset = unit**2 @ y
    return Rows(X, (y - y_offset) * root[:, None], root, unit, y_offset)


class Member(NamedTuple):
    """What a fit of one member, or of the limit, returns for each alpha."""

    coef: object  # (n_alphas, D or N, t)
    intercept: object  # (n_alphas, t)
    residuals: object  # (n_alphas, N, t) and (n_alphas, N), or None
    rank: object  # int or None
    cg_residual: float = 0.0  # relative, at the end of conjugate gradients


def member_features(rows, weights, phases, feature_map):
    """F and the mean that was taken out of the features, zero without an intercept."""
    xp, _, device = get_namespace_and_device(rows.y)
    F = features(rows.X, weights, phases, feature_map)
    F = xp.astype(F, rows.y.dtype, copy=False)
    mean = xp.zeros(F.shape[1], dtype=F.dtype, device=device)
    if rows.unit is not None:
        mean = rows.unit**2 @ F
        F -= mean
        if _is_rounding(F, mean):
            F *= 0.0
    F *= (rows.root / math.sqrt(F.shape[1]))[:, None]
    return F, mean / math.sqrt(F.shape[1])


def _is_rounding(F, mean):
    """Whether centring left nothing of the features: the rows are all alike."""
    xp, _, _ = get_namespace_and_device(F)
    norm = xp.linalg.vector_norm
    noise = F.shape[0] * float(xp.finfo(F.dtype).eps) * float(norm(mean))
    # a look at one row spares the pass over all of them
    alike = float(norm(F[0, :])) <= noise
    return alike and float(norm(F)) <= noise * math.sqrt(F.shape[0])


def fit_member(rows, weights, phases, alphas, feature_map, dual, rcond, residuals):
    """Fit one member for each alpha; `dual` solves N x N systems, else D x D."""
    F, mean = member_features(rows, weights, phases, feature_map)
    dual = dual and 0.0 not in alphas  # ridgeless coefficients come from F itself
    coef, loo, rank = solve_path(
        (lambda: F @ F.T) if dual else (lambda: F.T @ F),
        rows.y,
        alphas,
        F=None if dual else F,
        unit=rows.unit,
        rcond=rcond,
        residuals=residuals,
    )
    if dual:
        coef = F.T @ coef
    return Member(coef, rows.y_offset - mean @ coef, loo, rank)


def fit_member_cg(rows, weights, phases, alpha, feature_map, factor):
    """Fit one wide member by conjugate gradients on (F F^T + alpha I) a = y.

    `factor`, of the infinite-width kernel plus alpha I, is the preconditioner. The
    features are made anew in each iteration, a block of columns at a time that stays
    in the cache, so that F never exists.
    """
    xp, _, device = get_namespace_and_device(rows.y)
    n_samples, D = rows.X.shape[0], weights.shape[1]
    blocks = list(row_blocks(D, 8 * n_samples, memory=4))
    mean = xp.zeros(D, dtype=rows.y.dtype, device=device)

    def column_blocks():
        for block in blocks:
            shift = None if phases is None else phases[block]
            Phi = features(rows.X, weights[:, block], shift, feature_map)
            yield block, xp.astype(Phi, rows.y.dtype, copy=False)

    def transposed(block, Phi, v, total):  # F^T v, for one block
        return (Phi.T @ v - mean[block][:, None] * total) / math.sqrt(D)

    def matvec(a):
        v = rows.root[:, None] * a
        total, Fu = xp.sum(v, axis=0), xp.zeros_like(v)
        for block, Phi in column_blocks():
            u = transposed(block, Phi, v, total)
            Fu += Phi @ u - mean[block] @ u
        return alpha * a + rows.root[:, None] * Fu / math.sqrt(D)

    if rows.unit is not None:
        for block, Phi in column_blocks():
            mean[block] = rows.unit**2 @ Phi
    size = xp.max(xp.abs(rows.y), axis=0)
    size = xp.where(size > 0, size, 1.0)  # squares must neither over- nor underflow
    a, residual = conjugate_gradient(
        matvec, factor.solve, rows.y / size, CG_TOLERANCE, CG_ITERATIONS
    )
    a *= size
    v = rows.root[:, None] * a
    total = xp.sum(v, axis=0)
    coef = xp.concat([transposed(*pair, v, total) for pair in column_blocks()])
    intercept = rows.y_offset - mean / math.sqrt(D) @ coef
    return Member(coef[None, ...], intercept[None, ...], None, None, residual)


class Limit:
    """The member of infinite width: kernel ridge regression with its own kernel.

    Parameters
    ----------
    rows : Rows
        Training rows.
    feature_map, weight_distribution, seed
        What `kernel` takes.
    """

    def __init__(self, rows, feature_map, weight_distribution, seed):
        self.rows = rows
        self._spec = feature_map, weight_distribution, seed

    @cached_property
    def _K(self):
        return self.kernel(self.rows.X)

    @cached_property
    def _mean(self):
        """Weighted means of the columns, m_j = sum_i w_i k_ij / sum_i w_i."""
        return self.rows.unit**2 @ self._K

    def kernel(self, X):
        """Kernel between rows of X and the training rows, (len(X), N)."""
        xp, _, _ = get_namespace_and_device(X)
        dtype = self.rows.y.dtype
        X, Y = (xp.astype(A, dtype, copy=False) for A in (X, self.rows.X))
        if is_monte_carlo(*self._spec[:2]):
            return monte_carlo_features(X, *self._spec) @ self._monte_carlo.T
        return kernel(X, Y, *self._spec)

    @cached_property
    def _monte_carlo(self):
        xp, _, _ = get_namespace_and_device(self.rows.y)
        X = xp.astype(self.rows.X, self.rows.y.dtype, copy=False)
        return monte_carlo_features(X, *self._spec)

    @property
    def row_bytes(self):
        """Memory that a row takes in `kernel` and what follows."""
        n_draws = N_DRAWS if is_monte_carlo(*self._spec[:2]) else 0
        return 32 * self.rows.y.shape[0] + 16 * n_draws

    def centred(self, K):
        """Centre and weight the columns of K, in place, as the training rows are."""
        if self.rows.unit is not None:
            squares = self.rows.unit**2
            row_means = K @ squares
            K -= self._mean
            K += (squares @ self._mean - row_means)[:, None]
        K *= self.rows.root
        return K

    def standard_error(self):
        """Largest standard error of the entries of an estimated kernel."""
        return monte_carlo_error(self._monte_carlo)

    def gram(self):
        """S of the dual form."""
        xp, _, _ = get_namespace_and_device(self.rows.y)
        S = self.centred(xp.asarray(self._K, copy=True))
        S *= self.rows.root[:, None]
        size = float(xp.sum(xp.linalg.diagonal(self._K) * self.rows.root**2))
        noise = S.shape[0] * float(xp.finfo(S.dtype).eps) * size
        if self.rows.unit is not None and float(xp.linalg.trace(S)) <= noise:
            S *= 0.0  # the rows are all alike, up to rounding
        return S

    def factor(self, alpha):
        """Cholesky factor of S + alpha I, or None below the rounding of S."""
        factor = factorise(self.gram, alpha, self.rows.unit)
        return factor and factor[0]

    def fit(self, alphas, rcond, residuals):
        """Dual coefficients for each alpha."""
        a, loo, rank = solve_path(
            self.gram, self.rows.y, alphas, None, self.rows.unit, rcond, residuals
        )
        dual_coef = a * self.rows.root[:, None]
        intercept = self.rows.y_offset + 0.0 * dual_coef[:, 0, :]
        if self.rows.unit is not None:
            intercept = intercept - self._mean @ dual_coef
        return Member(dual_coef, intercept, loo, rank)

    def solver(self, alpha, rcond):
        """Function that multiplies by the inverse, or pseudo-inverse, of S + alpha I."""
        if factor := self.factor(alpha):
            return factor.solve
        rows = self.rows
        inverse = Spectrum(self.gram, rows.y, None, rows.unit, rcond).operator(alpha)
        return lambda B: inverse @ B

    def variance(self, X, solve, alpha):
        """Variance of the latent Gaussian process at X, (len(X),).

        An unpenalised intercept is a constant of flat prior: it adds alpha / sum(w).
        """
        xp, _, _ = get_namespace_and_device(self.rows.y)
        K = self.kernel(X)
        prior = kernel_diagonal(xp.astype(X, K.dtype, copy=False), *self._spec)
        if self.rows.unit is not None:
            squares = self.rows.unit**2
            prior = prior - 2 * (K @ squares) + squares @ self._mean
            prior = prior + alpha / xp.sum(self.rows.root**2)
        k = self.centred(K).T
        return xp.clip(prior - xp.sum(k * solve(k), axis=0), 0, None)

    def jackknife(self, alpha, rcond):
        """As `jackknife`, for the member of infinite width."""
        rows = self.rows
        loo, inverse = leave_one_out(self.gram, rows.y, alpha, None, rows.unit, rcond)
        return loo, lambda X: self.centred(self.kernel(X)) @ inverse


def jackknife(rows, weights, phases, alpha, feature_map, dual, rcond):
    """Leave-one-out residuals of one member, and how its rows move a prediction.

    Returns the residuals (N, t), times `root`, and a function of test rows that
    returns (len(X), N): the derivative of the prediction by `rows.y`, but for the
    intercept's share. The member without row i predicts mu(x) - H_i(x) residual_i.
    """
    F, mean = member_features(rows, weights, phases, feature_map)
    dual = dual and alpha > 0
    loo, operator = leave_one_out(
        (lambda: F @ F.T) if dual else (lambda: F.T @ F),
        rows.y,
        alpha,
        None if dual else F,
        rows.unit,
        rcond,
    )
    P = F.T @ operator if dual else operator
    mean_influence = mean @ P
    P /= math.sqrt(F.shape[1])

    def influence(X):
        xp, _, _ = get_namespace_and_device(X)
        Phi = xp.astype(features(X, weights, phases, feature_map), F.dtype, copy=False)
        return Phi @ P - mean_influence

    return loo, influence


def jackknife_plus(X, y_pred, rows, members, miscoverage):
    """Ends of the jackknife+ intervals of Barber et al. (2021), (len(X), 2, t).

    `y_pred` is the ensemble's prediction at X, `members` what `jackknife` returns for
    each of its members. The leave-one-out prediction at X is the mean of theirs.
    """
    xp, _, device = get_namespace_and_device(rows.y)
    n_samples, intercept = rows.y.shape[0], 0.0
    if rows.unit is not None:
        intercept = rows.unit / xp.linalg.vector_norm(rows.root)
    moves, residuals, n_members = 0.0, 0.0, 0
    for loo, influence in members:  # one at a time: each holds matrices of its own
        n_members += 1
        moves = moves + (influence(X) + intercept)[:, :, None] * loo[None, ...]
        residuals = residuals + loo
    centres = y_pred[:, None, :] - moves / n_members
    widths = xp.abs(residuals / n_members / rows.root[:, None])[None, ...]
    # the ranks floor(a (N + 1)) and ceil((1 - a) (N + 1)), safe from rounding
    low = math.floor(miscoverage * (n_samples + 1) + 1e-9)
    high = math.ceil((1 - miscoverage) * (n_samples + 1) - 1e-9)
    infinite = xp.full(y_pred.shape, math.inf, dtype=y_pred.dtype, device=device)
    lower, upper = -infinite, infinite
    if low >= 1:
        lower = xp.sort(centres - widths, axis=1)[:, low - 1, :]
    if high <= n_samples:
        upper = xp.sort(centres + widths, axis=1)[:, high - 1, :]
    return xp.stack([lower, upper], axis=1)


def score_path(solved, rows, criterion):
    """Leave-one-out error or GCV of the mean of the members, for each alpha.

    With the residuals r and their 1 - leverages of the weighted rows: the weighted
    mean of (r / (1 - h))^2, or N sum r^2 / (N - tr H)^2.
    """
    xp, _, _ = get_namespace_and_device(rows.y)
    n_samples = rows.y.shape[0]
    if criterion == "loo":
        loo = sum(m.residuals[0] / m.residuals[1][:, :, None] for m in solved)
        error = xp.sum((loo / len(solved)) ** 2, axis=1) / xp.sum(rows.root**2)
    else:
        r, slack = (sum(m.residuals[i] for m in solved) / len(solved) for i in (0, 1))
        degrees = xp.sum(slack, axis=1)[:, None]
        error = n_samples * xp.sum(r**2, axis=1) / degrees**2
    return xp.mean(error, axis=1)
