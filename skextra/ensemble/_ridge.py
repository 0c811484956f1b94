"""Ridge and ridgeless regression on given features or kernels, with exact leave-one-out.

F is the (N, D) matrix of features and y the (N, t) matrix of targets, both centred (if
there is an intercept) and multiplied by the roots of the sample weights. S is F F^T or
a kernel matrix ("dual"), or F^T F ("primal"). `unit`, the normalised root weights,
is the direction of an unpenalised intercept: F and y are orthogonal to it. Without an
intercept it is None.
"""

from contextlib import nullcontext
from functools import cached_property
from threading import Lock

import numpy as np
from scipy import linalg
from sklearn.utils._array_api import _is_numpy_namespace, get_namespace_and_device
from threadpoolctl import ThreadpoolController


class _OneSciPyThread:
    """Context in which the BLAS of SciPy's wheels, if there is one, has one thread.

    The threads of NumPy's own BLAS wait awake for a while. Those of SciPy's would
    compete with them for the cores, which costs several times what they save. The last
    one out of the context restores the limit, since members may be fitted in threads.
    """

    def __init__(self):
        self._lock, self._inside = Lock(), 0

    @cached_property
    def _blas(self):
        found = ThreadpoolController()
        paths = [library.filepath for library in found.lib_controllers]
        return found.select(filepath=[path for path in paths if "scipy.libs" in path])

    def __enter__(self):
        with self._lock:
            if self._inside == 0:
                self._limiter = self._blas.limit(limits=1)
            self._inside += 1

    def __exit__(self, *error):
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limiter.restore_original_limits()


_ONE_SCIPY_THREAD = _OneSciPyThread()


def _scipy_threads(flops):
    """One thread for what takes SciPy less than a tenth of a second."""
    return _ONE_SCIPY_THREAD if flops < 5e9 else nullcontext()


class PositiveDefinite:
    """Cholesky factor of a symmetric positive definite matrix, which is overwritten.

    Raises `numpy.linalg.LinAlgError` if the matrix is not, numerically.
    """

    def __init__(self, A):
        xp, _, _ = get_namespace_and_device(A)
        self._in_numpy = _is_numpy_namespace(xp)
        if self._in_numpy:  # the transpose is in LAPACK's order, so nothing is copied
            with _scipy_threads(A.shape[0] ** 3 / 3):
                self._factor = linalg.cholesky(
                    A.T, lower=True, overwrite_a=True, check_finite=False
                )
            return
        try:
            self._factor = xp.linalg.cholesky(A)
        except RuntimeError as error:  # what torch's LinAlgError is
            raise np.linalg.LinAlgError(str(error)) from error
        if not bool(xp.all(xp.isfinite(self._factor))):  # what CuPy returns
            raise np.linalg.LinAlgError("The matrix is not positive definite.")

    def solve(self, B):
        """A^{-1} B."""
        if self._in_numpy:
            with _scipy_threads(2 * self._factor.size * B.shape[1]):
                return linalg.cho_solve((self._factor, True), B, check_finite=False)
        xp, _, _ = get_namespace_and_device(B)
        return xp.linalg.solve(self._factor.mT, xp.linalg.solve(self._factor, B))


def rounding(S):
    """The alpha up to which a solution with S + alpha I is lost in its rounding."""
    xp, _, _ = get_namespace_and_device(S)
    epsilon = float(xp.finfo(S.dtype).eps)
    return S.shape[0] * epsilon * (float(xp.linalg.trace(S)) or 1.0)


def regularise(S, alpha, unit=None):
    """Add alpha I to S, in place, and for an intercept a multiple of unit unit^T.

    S is singular along `unit`. With that one eigenvalue lifted above the others the
    matrix is as well conditioned as the problem, and the lift, which is returned, is
    easy to take out of the inverse again.
    """
    xp, _, device = get_namespace_and_device(S)
    lift = 0.0
    if unit is not None:
        lift = 2 * float(xp.linalg.trace(S)) or 1.0
        S += lift * unit[:, None] * unit[None, :]
    if _is_numpy_namespace(xp):
        S.flat[:: S.shape[0] + 1] += alpha
    else:
        S += alpha * xp.eye(S.shape[0], dtype=S.dtype, device=device)
    return lift


def factorise(make_S, alpha, unit=None):
    """Cholesky factor of the regularised S and its lift; None below the rounding of S.

    `make_S` returns S in memory of its own.
    """
    if alpha == 0:
        return None
    S = make_S()
    if alpha <= rounding(S):
        return None
    lift = regularise(S, alpha, unit)
    try:
        return PositiveDefinite(S), lift
    except np.linalg.LinAlgError:
        return None


class Spectrum:
    """Decomposition of one member that gives the solution for every alpha.

    Parameters
    ----------
    make_S : callable
        Returns the dual or primal matrix in memory of its own.
    y : array of shape (N, t)
        Targets.
    F : array of shape (N, D) or None
        Features, for the primal form; None for the dual one.
    unit : array of shape (N,) or None
        Direction of the intercept.
    rcond : float or "auto"
        Eigenvalues up to `rcond` times the largest one count as zero when alpha is 0;
        "auto" is N times the machine epsilon.
    ridgeless : bool
        Whether alpha will be 0. With F, the singular values of F are found then,
        because S has only half of their digits.
    """

    def __init__(self, make_S, y, F=None, unit=None, rcond="auto", ridgeless=False):
        xp, _, _ = get_namespace_and_device(y)
        self._dual, self._y, self._unit = F is None, y, unit
        self._tolerance = y.shape[0] * float(xp.finfo(y.dtype).eps)
        if F is not None and ridgeless:
            U, s, Vt = xp.linalg.svd(F, full_matrices=False)
            d, Q, self._rows = s**2, Vt.T, U * s
            self._rounding = self._tolerance * (float(xp.sum(d)) or 1.0)
        else:
            S = make_S()
            self._rounding, empty = rounding(S), float(xp.linalg.trace(S)) == 0
            if self._dual:
                regularise(S, 0.0, unit)
            d, Q = xp.linalg.eigh(S)
            if self._dual and unit is not None:  # without the lifted one
                d, Q = d[:-1], Q[:, :-1]
            if empty:  # beside the lifted one there is only its rounding
                d *= 0.0
            self._rows = Q if self._dual else F @ Q
        self.eigenvalues, self.vectors = xp.clip(d, 0, None), Q
        largest = float(xp.max(d)) if d.shape[0] else 0.0
        self._kept = self.eigenvalues > largest * (
            self._tolerance if rcond == "auto" else rcond
        )
        self.rank = int(xp.count_nonzero(self._kept))
        self._projected = self._rows.T @ y
        self._interpolates = self.rank >= y.shape[0] - (unit is not None)

    def filter(self, alpha):
        """1 / (d + alpha); below the rounding of S, 0 where d is zero for it."""
        xp, _, _ = get_namespace_and_device(self.eigenvalues)
        if alpha > self._rounding:
            return 1 / (self.eigenvalues + alpha)
        d = xp.where(self._kept, self.eigenvalues + alpha, 1.0)
        return xp.where(self._kept, 1 / d, 0.0)

    def solve(self, alphas):
        """Dual or primal coefficients for each alpha, (n_alphas, N or D, t)."""
        return self._times(self.vectors, [self.filter(alpha) for alpha in alphas])

    def operator(self, alpha):
        """Matrix that takes y to the coefficients: dual (N, N), primal (D, N)."""
        return (self.vectors * self.filter(alpha)) @ self._rows.T

    def residuals(self, alphas):
        """Residuals (n_alphas, N, t) and 1 - leverages (n_alphas, N) of the rows.

        Their ratio is the leave-one-out residual. Rows that a ridgeless fit
        interpolates have 0 / 0 there; they get the limit for alpha to 0, numerator and
        denominator both divided by alpha.
        """
        xp, _, _ = get_namespace_and_device(self._y)
        d, norms = self.eigenvalues, 1.0
        if not self._dual:  # squared lengths of the columns of `_rows`
            norms = xp.where(self._kept, d, 1.0)
        # r = alpha C y and 1 - h = alpha C_ii where C has all directions
        whole = [alpha > 0 and (self._dual or self._interpolates) for alpha in alphas]
        weights = [
            1 / (d + alpha) / norms if w else self.filter(alpha) * d / norms
            for alpha, w in zip(alphas, whole, strict=True)
        ]
        applied = self._times(self._rows, weights)
        diagonal = xp.stack(weights) @ (self._rows**2).T
        r, slack = [], []
        for k, alpha in enumerate(alphas):
            if whole[k]:
                r.append(alpha * applied[k, ...])
                slack.append(alpha * diagonal[k, :])
                continue
            r.append(self._y - applied[k, ...])
            slack.append(1 - diagonal[k, :])
            if self._unit is not None:
                slack[k] -= self._unit**2
            if alpha == 0:
                limit = self.filter(0.0) / norms
                interpolated = (slack[k] <= 100 * self._tolerance) | self._interpolates
                limit_r = self._times(self._rows, [limit])[0, ...]
                r[k] = xp.where(interpolated[:, None], limit_r, r[k])
                slack[k] = xp.where(interpolated, self._rows**2 @ limit, slack[k])
        return xp.stack(r), xp.stack(slack)

    def _times(self, M, weights):
        """M (weight * rows^T y) for each of the weights, in one product."""
        xp, _, _ = get_namespace_and_device(M)
        projected = xp.stack(weights).T[:, :, None] * self._projected[:, None, :]
        product = M @ xp.reshape(projected, (projected.shape[0], -1))
        product = xp.reshape(product, (M.shape[0], *projected.shape[1:]))
        return xp.permute_dims(product, (1, 0, 2))


def solve_path(make_S, y, alphas, F=None, unit=None, rcond="auto", residuals=False):
    """Coefficients for each alpha; with `residuals`, also what leave-one-out needs.

    One positive alpha takes a Cholesky factor; a ridgeless fit, a path or an alpha
    below the rounding of S takes one `Spectrum`. Returns the coefficients
    (n_alphas, N or D, t), the stacked `Spectrum.residuals` or None, and the rank or
    None.
    """
    dual_unit, right_side = (unit, y) if F is None else (None, F.T @ y)
    if not residuals and (factor := factorise(make_S, alphas[0], dual_unit)):
        return factor[0].solve(right_side)[None, ...], None, None
    spectrum = Spectrum(make_S, y, F, unit, rcond, 0.0 in alphas)
    loo = spectrum.residuals(alphas) if residuals else None
    return spectrum.solve(alphas), loo, spectrum.rank


def leave_one_out(make_S, y, alpha, F=None, unit=None, rcond="auto"):
    """Leave-one-out residuals (N, t) for one alpha, and `Spectrum.operator`.

    Dual form: (C y)_i / C_ii, where C is the inverse of S + alpha I without the
    direction of the intercept. Primal form: r_i / (1 - h_i).
    """
    xp, _, device = get_namespace_and_device(y)
    factor = factorise(make_S, alpha, unit if F is None else None)
    if factor is None:
        spectrum = Spectrum(make_S, y, F, unit, rcond, alpha == 0)
        r, slack = spectrum.residuals([alpha])
        return r[0, ...] / slack[0, :, None], spectrum.operator(alpha)
    factor, lift = factor
    size = y.shape[0] if F is None else F.shape[1]
    inverse = factor.solve(xp.eye(size, dtype=y.dtype, device=device))
    if F is None:
        operator, r, slack = inverse, inverse @ y, xp.linalg.diagonal(inverse)
        intercept = 0.0 if unit is None else unit**2 / (lift + alpha)
    else:
        operator = inverse @ F.T
        r, slack = y - F @ (operator @ y), 1 - xp.sum(F * operator.T, axis=1)
        intercept = 0.0 if unit is None else unit**2
    return r / (slack - intercept)[:, None], operator


def conjugate_gradient(matvec, precondition, y, tol, max_iter):
    """Solve A x = y for each column of y; returns x and the largest relative residual."""
    xp, _, _ = get_namespace_and_device(y)
    target = tol * xp.linalg.vector_norm(y, axis=0)
    x, r = xp.zeros_like(y), y
    z = p = precondition(r)
    rz = xp.sum(r * z, axis=0)
    for _ in range(max_iter):
        residual = xp.linalg.vector_norm(r, axis=0)
        if bool(xp.all(residual <= target)):
            break
        Ap = matvec(p)
        step = _ratio(rz, xp.sum(p * Ap, axis=0))
        x, r = x + step * p, r - step * Ap
        z = precondition(r)
        rz, previous = xp.sum(r * z, axis=0), rz
        p = z + _ratio(rz, previous) * p
    else:
        residual = xp.linalg.vector_norm(r, axis=0)
    return x, float(xp.max(_ratio(residual, xp.linalg.vector_norm(y, axis=0))))


def _ratio(a, b):
    """a / b, and 0 for a column that is solved already."""
    xp, _, _ = get_namespace_and_device(a)
    return xp.where(b > 0, a / xp.where(b > 0, b, 1.0), 0.0)
