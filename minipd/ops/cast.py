"""Changing the dtype."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.rank import dispatch
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.framework.views import write_anew

__all__ = ["cast", "cast_"]


@op("cast", Trait.ELEMENTWISE, Trait.EXACT)
class Cast:
    """x with another dtype; of a complex number, a real dtype takes the real part."""

    def infer_meta(x, *, dtype):
        return Meta(x.shape, dtype)

    def kernel(xp, x, *, dtype):
        return (_part(x, dtype) if x.dtype.kind == "c" else x).astype(dtype)

    def kernel_out(xp, out, x, *, dtype):
        out[...] = _part(x, dtype)

    def vjp_x(g, x: Meta):
        return cast(g, x.dtype)


def _part(x: Any, dtype: Any) -> Any:
    """What of x is cast: of a complex number the real part, but whether it is 0 (bool) is asked of the whole."""
    return x.real if x.dtype.kind == "c" and dtype.kind not in "cb" else x


def cast(x: Tensor, dtype: Any) -> Tensor:
    """x with another dtype; x itself if it has it already.

    >>> from minipd.ops.creation import to_tensor
    >>> cast(to_tensor([1.7, -1.7]), "int32").tolist()
    [1, -1]
    """
    own = x.payload.dtype
    if own is dtype or own == (d := dtypes.to_np(dtype)):
        return x
    return dispatch(Cast, (x,), {"dtype": d})


def widened(x: Tensor) -> Tensor:
    """x, in float32 if it is of low precision: for what is rounded once, at its end."""
    return cast(x, dtypes.float32) if x.payload.dtype in dtypes.LOW_PRECISION else x


def cast_(x: Tensor, dtype: Any) -> Tensor:
    """`cast`, in place: the tensor itself has the dtype from now on."""
    return write_anew(x, cast, dtype)
