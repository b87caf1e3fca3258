"""Data types.

Inside the library a dtype is a `numpy.dtype`: arrays, metas and IR types all carry one.  `DataType` is the public face
(`paddle.float32`), with Paddle's name and Paddle's small integer code (its `VarType` enumeration, which is also what
`.pdparams` files hold).  A row keeps its kernels in a list indexed by that code.
"""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

from minipd.framework.rank import current

__all__ = ["DataType", "bfloat16", "bool", "cdouble", "cfloat", "complex64", "complex128", "double", "dtype", "finfo",
           "float", "float16", "float32", "float64", "get_default_dtype", "half", "iinfo", "int8", "int16", "int32",
           "int64", "set_default_dtype", "uint8"]


class DataType:
    """One element type.

    >>> float32, float32.code, float32.itemsize
    (paddle.float32, 5, 4)
    >>> float32 == "float32"
    True
    """

    __slots__ = ("code", "name", "np", "short")

    def __init__(self, name: str, code: int, np_type: Any, short: str):
        self.name, self.code, self.short = name, code, short
        self.np = np.dtype(np_type)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.np.itemsize

    def __repr__(self) -> str:
        return f"paddle.{self.name}"

    def __eq__(self, other: object) -> builtins.bool:
        if isinstance(other, DataType):
            return self is other
        if other is None:
            return False
        try:
            return to_np(other) == self.np
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.np)


bool = DataType("bool", 0, np.bool_, "b")
int16 = DataType("int16", 1, np.int16, "i16")
int32 = DataType("int32", 2, np.int32, "i32")
int64 = DataType("int64", 3, np.int64, "i64")
float16 = DataType("float16", 4, np.float16, "f16")
float32 = DataType("float32", 5, np.float32, "f32")
float64 = DataType("float64", 6, np.float64, "f64")
uint8 = DataType("uint8", 20, np.uint8, "ui8")
int8 = DataType("int8", 21, np.int8, "i8")
bfloat16 = DataType("bfloat16", 22, ml_dtypes.bfloat16, "bf16")
complex64 = DataType("complex64", 23, np.complex64, "c64")
complex128 = DataType("complex128", 24, np.complex128, "c128")

dtype = DataType                                   # Paddle's name of the class
half, float, double, cfloat, cdouble = float16, float32, float64, complex64, complex128

ALL = (bool, int8, uint8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128)
N_CODES = 1 + max(t.code for t in ALL)

_BY_NP = {t.np: t for t in ALL}
_BY_NAME = {t.name: t for t in ALL} | {"bool_": bool, "float": float, "double": double, "half": half, "cfloat": cfloat,
                                       "cdouble": cdouble}
CODE_OF_NUM = {t.np.num: t.code for t in ALL}      # numpy's own small integer of a dtype -> ours

FLOATS = frozenset(t.np for t in (float16, bfloat16, float32, float64))
LOW_PRECISION = frozenset(t.np for t in (float16, bfloat16))
INTS = frozenset(t.np for t in (int8, uint8, int16, int32, int64))
COMPLEX = frozenset(t.np for t in (complex64, complex128))
#: what division leads to, and what has gradients
INEXACT = FLOATS | COMPLEX

_NAMES = ", ".join(t.name for t in ALL)


def of(np_dtype: np.dtype) -> DataType:
    """The public DataType of a numpy dtype.

    Raises: TypeError for a dtype that minipd does not have (uint64, str, object, ...).
    """
    found = _BY_NP.get(np_dtype)
    if found is None:
        raise TypeError(f"dtype: expected one of {_NAMES}, got numpy's {np_dtype}; convert the array first")
    return found


def to_np(dtype: object) -> np.dtype:
    """The numpy dtype of whatever names one: a DataType, a numpy dtype, a Python type, or a string.

    >>> to_np("bfloat16"), to_np(float32), to_np(float)
    (dtype(bfloat16), dtype('float32'), dtype('float32'))
    """
    if isinstance(dtype, DataType):
        return dtype.np
    if isinstance(dtype, np.dtype):
        return of(dtype).np
    if isinstance(dtype, str):
        named = _BY_NAME.get(dtype.removeprefix("paddle."))
        if named is None:
            raise TypeError(f"dtype: expected one of {_NAMES}, got {dtype!r}")
        return named.np
    if dtype is builtins.float:
        return get_default_dtype_np()
    if dtype is int:
        return int64.np
    if dtype is complex:
        return complex_of(get_default_dtype_np())
    if isinstance(dtype, type):
        return of(np.dtype(dtype)).np
    raise TypeError(f"dtype: expected one of {_NAMES}, got {dtype!r}")


_RANK = {t.np: i for i, t in enumerate(ALL)}


def complex_of(real: np.dtype) -> np.dtype:
    """The dtype of complex numbers whose parts have dtype `real` (float32, where there is no narrower one).

    >>> complex_of(np.dtype("float64")), complex_of(np.dtype("int64"))
    (dtype('complex128'), dtype('complex64'))
    """
    return complex128.np if real in (float64.np, complex128.np) else complex64.np


def real_of(d: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex number; every other dtype is its own.

    >>> real_of(np.dtype("complex64")), real_of(np.dtype("float16"))
    (dtype('float32'), dtype('float16'))
    """
    return d if d not in COMPLEX else float32.np if d == complex64.np else float64.np


def promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """The dtype of a binary operation on tensors of dtypes `a` and `b`: two floats give the wider (float16 with
    bfloat16 gives float32), an int beside a float takes the float's dtype, two ints give the smallest that holds both.
    A complex operand makes the result complex, of float64 parts if either has them.

    Paddle answers the same for two floats, and for 0-D tensors; it refuses other mixtures, which are allowed here.

    >>> promote(np.dtype("int64"), np.dtype("float32")), promote(np.dtype("float32"), np.dtype("float64"))
    (dtype('float32'), dtype('float64'))
    """
    if a == b:
        return a
    if a in COMPLEX or b in COMPLEX:
        return max(complex_of(a), complex_of(b), key=_RANK.__getitem__)
    if a in FLOATS and b in FLOATS:
        return float32.np if a in LOW_PRECISION and b in LOW_PRECISION else max(a, b, key=_RANK.__getitem__)
    if a in FLOATS:
        return a
    if b in FLOATS:
        return b
    return of(np.promote_types(a, b)).np


def promote_0d(many: np.dtype, one: np.dtype) -> np.dtype:
    """The dtype of arithmetic on a tensor of dtype `many` and a 0-D tensor of dtype `one`, by Paddle's rule: the 0-D
    one counts only if it is of a higher kind (bool < int < float), so that a float64 constant does not widen all.
    (Beside a float, a complex one does: its parts must hold both.)

    >>> promote_0d(np.dtype("float32"), np.dtype("float64")), promote_0d(np.dtype("int32"), np.dtype("float64"))
    (dtype('float32'), dtype('float64'))
    """
    if _kind(one) == _kind(many):
        return many
    if many in COMPLEX or one in COMPLEX:
        return promote(many, one)
    return one if _kind(one) > _kind(many) else many


def _kind(d: np.dtype) -> int:
    return 3 if d in COMPLEX else 2 if d in FLOATS else 1 if d in INTS else 0


def get_default_dtype_np() -> np.dtype:
    """The numpy dtype of Python floats in creation functions."""
    return current().default_dtype


def get_default_dtype() -> str:
    """Paddle's `get_default_dtype`: the name of the dtype that Python floats become.

    >>> get_default_dtype()
    'float32'
    """
    return of(get_default_dtype_np()).name


def set_default_dtype(d: object) -> None:
    """Paddle's `set_default_dtype`: float16, bfloat16, float32 or float64 for Python floats, in this rank's context.

    Raises: TypeError if `d` is no floating dtype.
    """
    np_dtype = to_np(d)
    if np_dtype not in FLOATS:
        raise TypeError(f"set_default_dtype: expected float16, bfloat16, float32 or float64, got {d}")
    current().default_dtype = np_dtype


class finfo:
    """The limits of a floating dtype, or of the parts of a complex one.

    min, max, eps (the distance from 1 to the next number), tiny and smallest_normal (the smallest normal number),
    resolution, bits, dtype (the name).
    Raises: TypeError if `dtype` is not floating.

    >>> finfo("float32").eps, finfo(bfloat16).max
    (1.1920928955078125e-07, 3.3895313892515355e+38)
    """

    def __init__(self, dtype: object):
        d = real_of(to_np(dtype))
        if d not in FLOATS:
            raise TypeError(f"finfo: expected a floating dtype, got {dtype}; iinfo has the limits of ints")
        limits = ml_dtypes.finfo(d)
        self.min, self.max = builtins.float(limits.min), builtins.float(limits.max)
        self.eps, self.tiny = builtins.float(limits.eps), builtins.float(limits.tiny)
        self.smallest_normal = self.tiny
        self.resolution = builtins.float(str(limits.resolution))
        self.bits, self.dtype = limits.bits, of(d).name

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={getattr(self, name):g}" for name in ("min", "max", "eps", "resolution",
                                                                          "smallest_normal", "tiny"))
        return f"paddle.finfo({numbers}, bits={self.bits}, dtype={self.dtype})"


class iinfo:
    """The limits of an int dtype: min, max, bits, dtype (the name).

    Raises: TypeError if `dtype` is no int dtype.

    >>> iinfo("int8")
    paddle.iinfo(min=-128, max=127, bits=8, dtype=int8)
    """

    def __init__(self, dtype: object):
        d = to_np(dtype)
        if d not in INTS:
            raise TypeError(f"iinfo: expected an int dtype, got {dtype}; finfo has the limits of floats")
        limits = np.iinfo(d)
        self.min, self.max, self.bits, self.dtype = int(limits.min), int(limits.max), limits.bits, of(d).name

    def __repr__(self) -> str:
        return f"paddle.iinfo(min={self.min}, max={self.max}, bits={self.bits}, dtype={self.dtype})"
