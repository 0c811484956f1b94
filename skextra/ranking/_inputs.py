"""Arrays of any kind, shape and dtype as rows of float64, and back."""

import math
from numbers import Real

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from sklearn.externals.array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_cupy_array,
    is_torch_array,
)

from skextra.ranking import _arrays, _rows

ALPHA_RANGE = 1e-300, 1e300  # beyond it digits are lost


class Lanes:
    """The lanes of an array along an axis, as the float64 `rows` of a matrix.

    `maths` is the room whose functions take such rows, and `xp` the namespace of what
    they return, which goes back to the kind, dtype and axis of the array.
    """

    def __init__(self, x, axis=-1):
        self.xp, self.maths, x = _kind(x)
        self.dtype = _result_dtype(self.xp, x)
        if x.ndim == 0:
            raise ValueError(f"x must have at least one dimension; got the scalar {x}")
        self.device = None if self.xp is np else device(x)
        self.shape, self.axis = tuple(x.shape), normalize_axis_index(axis, x.ndim)
        if x.shape[self.axis] == 0:
            raise ValueError(
                f"x must have a value along axis {axis}; got shape {self.shape}"
            )
        if self.axis < x.ndim - 1:
            x = self.xp.moveaxis(x, self.axis, -1)
        self.batch, self.n = tuple(x.shape[:-1]), x.shape[-1]
        self.rows = self._as_rows(self.xp.astype(x, self.xp.float64, copy=False))

    @property
    def has_autograd(self):
        """Return whether gradients flow without being asked for."""
        return self.maths not in (_rows, _arrays)

    def as_float64(self, values, name="x"):
        """Return values as an array like x in float64."""
        values = self._like_x(values)
        _result_dtype(self.xp, values, name)
        return self.xp.astype(values, self.xp.float64, copy=False)

    def _like_x(self, values):
        """Return values as an array of the kind of x."""
        if self.xp is np:
            return np.asarray(values)
        if isinstance(values, np.ndarray | np.generic) or not is_array_api_obj(values):
            # A copy: torch warns of arrays that are read-only.
            return self.xp.asarray(np.array(values), device=self.device)
        return values

    def _as_rows(self, values):
        """Return (..., m) as (rows, m)."""
        if values.ndim != 2:
            shape = (math.prod(self.batch), values.shape[-1])
            values = self.xp.reshape(values, shape)
        if self.xp is not np or values.flags.carray:
            return values
        # Kernels are compiled for writable arrays alone, though they write to no input.
        return np.array(values, order="C")

    def checked(self, values, name, test, accepted):
        """Return a float, or an array of float64, that passes a test."""
        number = isinstance(values, Real)
        if getattr(values, "requires_grad", False) and not self.has_autograd:
            raise TypeError(
                f"{name} is a torch tensor that requires a gradient: x must be one, too"
            )
        try:
            values = float(values) if number else self.as_float64(values, name)
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name} must hold real numbers; got {values!r}") from error
        right = test(values)
        if not (right if number else bool(self.xp.all(right))):
            if not number:
                values = values.detach() if self.has_autograd else values
                values = float(self.xp.reshape(values[~right], (-1,))[0])
            raise ValueError(f"{name} must be {accepted}; got {values}")
        return values

    def one_each(self, values, name, test, accepted):
        """Return a number, or one for each lane as (rows,)."""
        values = self.checked(values, name, test, accepted)
        if isinstance(values, float):
            return values
        return self._as_rows(self._broadcast(values, self.batch, name)[..., None])[:, 0]

    def many_each(self, values, name, test, accepted):
        """Return a number, or m for each lane or for all lanes, as (rows, m)."""
        values = self.checked(values, name, test, accepted)
        if isinstance(values, float) or values.ndim == 0:
            return self.spread(self.xp.reshape(self.as_float64(values), (1,)))
        return self._as_rows(
            self._broadcast(values, (*self.batch, values.shape[-1]), name)
        )

    def _broadcast(self, values, shape, name):
        try:
            fits = np.broadcast_shapes(tuple(values.shape), shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"{name} must be a number or broadcast to the shape {shape}; "
                f"got shape {tuple(values.shape)}"
            )
        return self.xp.broadcast_to(values, shape)

    def spread(self, values):
        """Return the same (m,) for each lane, as (rows, m)."""
        shape = (*self.batch, values.shape[0])
        return self._as_rows(self.xp.broadcast_to(values, shape))

    def places(self):
        """Return 1 .. n."""
        return self.xp.arange(1, self.n + 1, dtype=self.xp.float64, device=self.device)

    def counts(self, k):
        """Return the sum of the weights of each lane."""
        accepted = f"between 0 and the {self.n} values of a lane"
        return self.one_each(k, "k", lambda k: (k >= 0) & (k <= self.n), accepted)

    def alpha(self, alpha):
        """Return the temperature of each lane."""
        if isinstance(alpha, str) and alpha == "scale":
            return self._tenth_of_std()
        low, high = ALPHA_RANGE
        accepted = f'from {low:g} to {high:g}, or "scale"'
        if isinstance(alpha, str):
            raise ValueError(f"alpha must be {accepted}; got {alpha!r}")
        return self.one_each(
            alpha, "alpha", lambda a: (a >= low) & (a <= high), accepted
        )

    def _tenth_of_std(self):
        """Return a tenth of the standard deviation of each lane, 1 if it is constant."""
        xp = self.xp
        rows = self.rows.detach() if self.has_autograd else self.rows
        # From the first value: the deviations of a constant lane are then exactly 0.
        # Lanes that hold infinity, or a range that is, are found out elsewhere.
        with np.errstate(over="ignore", invalid="ignore"):
            from_first = rows - rows[:, :1]
            deviation = from_first - xp.mean(from_first, axis=1, keepdims=True)
            peak = xp.max(xp.abs(deviation), axis=1, keepdims=True)
            peak = xp.where(peak == 0, xp.ones_like(peak), peak)
            spread = xp.sqrt(xp.mean((deviation / peak) ** 2, axis=1))
            spread = spread * peak[:, 0] / 10
            spread = xp.where(spread == 0, xp.ones_like(spread), spread)
            low, high = ALPHA_RANGE
            wrong = (spread < low) | ((spread > high) & (spread < np.inf))
        if bool(xp.any(wrong)):
            raise ValueError(
                f"alpha must be from {low:g} to {high:g}, but a tenth of the "
                f"standard deviation of x is {float(spread[wrong][0])}; rescale x"
            )
        return spread

    def levels(self, w, alpha):
        """Return where the LapSum of each lane is w (rows, m)."""
        anchor, rest, _ = self.maths.levels(w, self.rows, alpha)
        return anchor + rest

    def like_x(self, values, name):
        """Return an array of the shape of x as rows."""
        return self._as_rows(self._aligned(self.as_float64(values, name), name))

    def permutations(self, target):
        """Return an array of the shape of x that holds permutations of 0 .. n - 1."""
        xp = self.xp
        target = self._like_x(target)
        if not xp.isdtype(target.dtype, "integral"):
            raise TypeError(f"target must hold whole numbers; got dtype {target.dtype}")
        target = self._as_rows(xp.astype(self._aligned(target, "target"), xp.int64))
        right = xp.sort(target, axis=1) == xp.arange(self.n, device=self.device)
        if not bool(xp.all(right)):
            raise ValueError(
                f"target must hold each of 0 .. {self.n - 1} once along the axis"
            )
        return target

    def _aligned(self, values, name):
        """Return an array of the shape of x with its axis last."""
        if tuple(values.shape) != self.shape:
            raise ValueError(
                f"{name} must have the shape of x, {self.shape}; "
                f"got {tuple(values.shape)}"
            )
        return self.xp.moveaxis(values, self.axis, -1)

    def restore(self, rows, axis=None):
        """Return (rows, m, ...) in the shape of x, with the m on its axis or another."""
        out = rows
        if len(self.batch) != 1:
            out = self.xp.reshape(rows, (*self.batch, *rows.shape[1:]))
        axis = self.axis if axis is None else axis
        if 0 <= axis < len(self.batch):
            out = self.xp.moveaxis(out, -1, axis)
        return self.narrow(out)

    def restore_each(self, values):
        """Return one value a lane in the shape of x without its axis."""
        return self.narrow(self.xp.reshape(values, self.batch))

    def narrow(self, out):
        """Return results in the dtype of x; NumPy's without a dimension as scalars."""
        if out.dtype != self.dtype:
            out = self._cast(out)
        return out[()] if self.xp is np else out

    def _cast(self, out):
        """Return results in the dtype of x, of which float16 may be too small."""
        with np.errstate(over="ignore"):
            cast = self.xp.astype(out, self.dtype)
        largest = float(self.xp.finfo(self.dtype).max)
        if largest < 1e5 and bool(
            self.xp.any(self.xp.isinf(cast) & ~self.xp.isinf(out))
        ):
            raise ValueError(
                f"x must be of a larger dtype: results beyond {largest:g} "
                f"do not fit in {self.dtype}"
            )
        return cast


def _kind(x):
    """Return the namespace of an array, the room that computes on it, and the array."""
    if is_torch_array(x):
        from skextra.ranking import _torch

        if x.device.type not in ("cpu", "cuda"):
            raise ValueError(f"x must be on a CPU or a CUDA device; got {x.device}")
        return array_namespace(x), _torch, x
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("x is a masked array, whose mask would be lost; fill it first")
    if isinstance(x, np.ndarray):
        return np, _rows, np.asarray(x)
    if is_cupy_array(x) or hasattr(x, "__array_namespace__"):
        return array_namespace(x), _arrays, x
    return np, _rows, np.asarray(x)


def _result_dtype(xp, x, name="x"):
    """Return the dtype of results: that of x, or the default one for whole numbers."""
    if xp is not np or x.dtype.kind in "biuf":
        if xp.isdtype(x.dtype, "real floating"):
            return x.dtype
        if xp.isdtype(x.dtype, ("bool", "integral")):
            return xp.asarray(0.0).dtype
    raise TypeError(f"{name} must hold real numbers; got dtype {x.dtype}")
