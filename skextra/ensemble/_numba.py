"""CPU kernels of the random-feature ensembles."""

import math

import numpy as np
from numba import njit

_TURNS_PER_RADIAN = 1 / (2 * math.pi)

# sin(2 pi v) / v on |v| <= 1/4 as a polynomial in v^2, highest power first: the
# Chebyshev fit of degree 8, whose largest error is 1.3e-18.
_SINE = (
    0.10089695501646812,
    -0.7177337921413454,
    3.8199280942271643,
    -15.0946416761179,
    42.058693925428685,
    -76.70585975282492,
    81.60524927607362,
    -41.341702240399755,
    6.283185307179586,
)


@njit(cache=True, nogil=True)
def cosine_features(Z, phases):
    """Replace each `Z[i, j]` by ``sqrt(2) * cos(Z[i, j] + phases[j])``.

    Angles are counted in turns, where the range reduction is an exact subtraction;
    the loop has no branch, so that the compiler can vectorise it.
    """
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            turns = (Z[i, j] + phases[j]) * _TURNS_PER_RADIAN
            # cos(2 pi r) = sin(2 pi (1/4 - |r|)) for the reduced |r| <= 1/2
            v = 0.25 - abs(turns - np.rint(turns))
            s = v * v
            p = _SINE[0]
            p = p * s + _SINE[1]
            p = p * s + _SINE[2]
            p = p * s + _SINE[3]
            p = p * s + _SINE[4]
            p = p * s + _SINE[5]
            p = p * s + _SINE[6]
            p = p * s + _SINE[7]
            p = p * s + _SINE[8]
            Z[i, j] = math.sqrt(2.0) * (p * v)


@njit(cache=True, nogil=True)
def arc_cosine(cosines, U, V, order):
    """Replace the cosines of unit rows of `U` and `V` by their arc-cosine kernel.

    ``(sin t + (pi - t) cos t) / (2 pi)`` for order 1, ``(pi - t) / (2 pi)`` for order
    0. Near 0 and pi the arc cosine loses half of the digits of the angle t; there it
    is ``2 atan2(|u - v|, |u + v|)``.
    """
    for i in range(U.shape[0]):
        for j in range(V.shape[0]):
            cosine = cosines[i, j]
            if abs(cosine) < 0.9:
                angle = math.acos(cosine)
                sine = math.sqrt(1 - cosine * cosine)
            else:
                minus, plus = 0.0, 0.0
                for k in range(U.shape[1]):
                    minus += (U[i, k] - V[j, k]) ** 2
                    plus += (U[i, k] + V[j, k]) ** 2
                angle = 2 * math.atan2(math.sqrt(minus), math.sqrt(plus))
                sine = math.sin(angle)
                cosine = math.cos(angle)
            value = math.pi - angle
            if order == 1:
                value = sine + value * cosine
            cosines[i, j] = value / (2 * math.pi)
