"""Operands of different dtypes: what the public functions do before a row is dispatched."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.boundary import tell_user
from minipd.framework.dim import DimExpr
from minipd.framework.rank import current
from minipd.framework.row import Row
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import Dim
from minipd.ops.making import into

__all__: list[str] = []

NO_ATTRS: dict = {}
FLOATS, INEXACT = dtypes.FLOATS, dtypes.INEXACT


def promoted(what: str, x: Any, y: Any, division: bool = False, arithmetic: bool = False) -> tuple[Any, Any]:
    """The operands of a binary operation, cast to a common dtype by Paddle's table (`dtype.promote`).

    division: ints become floats.  arithmetic: a 0-D tensor beside another counts by its kind only (`dtype.promote_0d`).
    A Python number takes the tensor's dtype, but a float beside an int tensor makes it the default float dtype (in
    Paddle always float32: here a float64 run stays float64), and a complex number makes every tensor complex.  numpy's
    scalars are numbers, its arrays are tensors.
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        dx, dy = x.payload.dtype, y.payload.dtype
        x0, y0 = x.payload.shape == (), y.payload.shape == ()
        if arithmetic and x0 is not y0:
            common = dtypes.promote_0d(dy, dx) if x0 else dtypes.promote_0d(dx, dy)
        else:
            common = dtypes.promote(dx, dy)
        if division and common not in dtypes.INEXACT:
            common = dtypes.get_default_dtype_np()
        return (x if dx == common else cast(x, common)), (y if dy == common else cast(y, common))
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        raise TypeError(f"{what}: expected at least one Tensor, got {type(x).__name__} and {type(y).__name__}")
    t, other = (x, y) if isinstance(x, Tensor) else (y, x)
    if isinstance(other, np.generic):
        other = other.item()
    if isinstance(other, np.ndarray):
        other = as_tensor(what, other)
        pair = (t, other) if t is x else (other, t)
        return promoted(what, pair[0], pair[1], division, arithmetic)
    if isinstance(other, DimExpr):
        other = Dim(size=other)
        x, y = (t, other) if t is x else (other, t)
        return promoted(what, x, y, division, arithmetic)
    if not isinstance(other, (bool, int, float, complex)):
        raise TypeError(f"{what}: expected a Tensor or a number, got {type(other).__name__}: {other!r}")
    own, floating = t.payload.dtype, dtypes.get_default_dtype_np()
    if type(other) is complex:
        t = cast(t, dtypes.complex_of(own if own in dtypes.INEXACT else floating))
    elif own not in dtypes.INEXACT:
        if division or type(other) is float:
            t = cast(t, floating)
        elif own == dtypes.bool.np and type(other) is int:
            t = cast(t, dtypes.int64)
        elif type(other) is int and not np.can_cast(np.min_scalar_type(other), own):
            other = int(np.array(other).astype(own))       # wraps, as a tensor of that dtype would
    elif type(other) is not float:
        other = float(other)                                # type: ignore[arg-type]  # complex has been dealt with
    return (t, other) if isinstance(x, Tensor) else (other, t)


def binary(row: Row, floating: bool = False) -> Any:
    """The public function of a two-operand row: promotion only when it is needed.

    floating: ints become the default float dtype.
    """
    what, arithmetic = row.name, row.name not in ("maximum", "minimum")

    def call(x: Tensor, y: Any, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
        try:
            if out is not None:
                return into(out, call(x, y))
            if isinstance(x, Tensor):
                d = x.payload.dtype
                fit = d is y.payload.dtype if isinstance(y, Tensor) else type(y) is float and d in FLOATS
            else:
                fit = type(x) is float and isinstance(y, Tensor) and (d := y.payload.dtype) in FLOATS
            if not fit or floating and d not in INEXACT:
                x, y = promoted(what, x, y, floating, arithmetic)
            return current().handler(row, (x, y), NO_ATTRS)
        except Exception as error:
            tell_user(call, (x, y), error)
            raise
    call.is_entrance = True  # type: ignore[attr-defined]
    call.row = row  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = what
    call.__doc__ = f"{row.doc}\n\nOperands of different dtypes are promoted by Paddle's table; numbers are weak."
    return call


def unary(row: Row, floating: bool = False) -> Any:
    """The public function of a one-operand row.  `floating`: ints become the default float dtype, as in Paddle."""
    def call(x: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
        try:
            if out is not None:
                return into(out, call(x))
            if not isinstance(x, Tensor) or floating and x.payload.dtype not in INEXACT:
                x = as_floating(row.name, x) if floating else as_tensor(row.name, x)
            return current().handler(row, (x,), NO_ATTRS)
        except Exception as error:
            tell_user(call, (x,), error)
            raise
    call.is_entrance = True  # type: ignore[attr-defined]
    call.row = row  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = row.name
    call.__doc__ = row.doc
    return call


def as_tensor(what: str, x: Any) -> Tensor:
    """x itself; of an array, a tensor that holds a copy.

    Raises: TypeError unless x is a Tensor or numpy's array.
    """
    if isinstance(x, Tensor):
        return x
    if isinstance(x, np.ndarray):
        dtypes.of(x.dtype)
        return Tensor(np.array(x))      # a copy: the caller may write the array before the gradient reads it
    raise TypeError(f"{what}: expected a Tensor, got {type(x).__name__}: {x!r}")


def as_floating(what: str, x: Any) -> Tensor:
    """x as a tensor of floats (or complex numbers): ints and bools become the default float dtype, as in Paddle."""
    x = as_tensor(what, x)
    return x if x.payload.dtype in dtypes.INEXACT else cast(x, dtypes.get_default_dtype_np())
