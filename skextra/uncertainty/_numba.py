"""Kernels: x log x, and convex functions of the columns of joint tables."""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# log 2 in two parts; the last 21 bits of the first are 0: exact times an exponent.
LOG2_HIGH, LOG2_LOW = 6.93147180369123816490e-01, 1.9082149292705877e-10


@intrinsic
def _as_int(typingctx, x):
    """Return the bits of a float64 as int64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _as_float(typingctx, x):
    """Return the float64 of the bits of an int64."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@njit(nogil=True, error_model="numpy")
def xlogx(x):
    """Return x log x of x >= 0, and 0 of 0, to 2 units in the last place.

    Without a branch or a call, so that loops over it are vectorised: some five times as
    fast as the logarithm of the C library. Below 2.2e-308 it has two digits.
    """
    # x = 2^e m with m in [sqrt(1/2), sqrt(2)), whose bits begin at 0x3FE6A09E667F3BCD.
    bits = _as_int(x)
    high = (bits - 0x3FE6A09E667F3BCD) & -0x10000000000000
    e = float(high >> 52)
    # log m = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...) with s = f/(2 + f), f = m - 1.
    f = _as_float(bits - high) - 1.0
    s = f / (2.0 + f)
    w = s * s
    series = 1 / 17 + w * (1 / 19 + w / 21)
    series = 1 / 9 + w * (1 / 11 + w * (1 / 13 + w * (1 / 15 + w * series)))
    series = w * (1 / 3 + w * (1 / 5 + w * (1 / 7 + w * series)))
    # 2 s = f - s f, to keep the leading term f exact.
    log_m = f - s * (f - 2 * series)
    return x * (e * LOG2_HIGH + (e * LOG2_LOW + log_m)) if x > 0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def entropies(joint, out):
    """Write sum_cz J log J of joint tables (n, C, Z, T) to out (n, T)."""
    n, n_rows, n_columns, n_tables = joint.shape
    out[:] = 0.0
    for i in range(n):
        for c in range(n_rows):
            for z in range(n_columns):
                for t in range(n_tables):
                    out[i, t] += xlogx(joint[i, c, z, t])


@njit(cache=True, nogil=True)
def largest(joint, out):
    """Write sum_c max_z J of tables (n, C, Z, T) to out (n, T)."""
    n, n_rows, n_columns, n_tables = joint.shape
    peak = np.empty(n_tables)
    out[:] = 0.0
    for i in range(n):
        for c in range(n_rows):
            for t in range(n_tables):
                peak[t] = joint[i, c, 0, t]
            for z in range(1, n_columns):
                for t in range(n_tables):
                    peak[t] = max(peak[t], joint[i, c, z, t])
            for t in range(n_tables):
                out[i, t] += peak[t]


@njit(cache=True, nogil=True, error_model="numpy")
def squares(joint, mass, out):
    """Write sum_c (sum_z J^2)/mass_c of tables (n, C, Z, T), mass (n, C), to out (n, T)."""
    n, n_rows, n_columns, n_tables = joint.shape
    out[:] = 0.0
    for i in range(n):
        for c in range(n_rows):
            if mass[i, c] < 1e-300:  # too small to divide by, and to count
                continue
            factor = 1.0 / mass[i, c]
            for z in range(n_columns):
                for t in range(n_tables):
                    out[i, t] += factor * joint[i, c, z, t] ** 2


# Sums may be taken in another order, or this would take twice as long.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc"})
def mean_entropies(p, weights, out):
    """Write sum_j -w_j p_j log p_j of the rows of p (n, J) to out (n,)."""
    n, n_terms = p.shape
    for i in range(n):
        total = 0.0
        for j in range(n_terms):
            total -= weights[j] * xlogx(p[i, j])
        out[i] = total
