"""Typed attributes of operations.

`attribute(python value)` picks the class, `.value` gives the Python value back, exactly.  In the exact style the kind
is part of the text, so nothing is lost: `i64(3)`, `f64(1e-06)`, `ints(2, S0)`, `dtype(float32)`; `true`, `"text"` and
`[...]` speak for themselves.  Paddle's style is Paddle's: `3`, `1e-06`, `[2,-1]`, `float32`.

Where we differ from Paddle: a Python float is a double (Paddle's `bias` of `scale` is a float32 attribute), because an
attribute that is rounded when it is stored would make the program compute something else than the eager call.  A
symbolic dimension may stand where an int does (`DimAttribute`, inside `IntArrayAttribute`); Paddle prints it as -1.

A floor above that has attributes of another kind writes a subclass and registers it with `@attribute_kind`.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import ml_dtypes
import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import DimExpr
from minipd.ir.attribute import FROM_PYTHON, KINDS, Attribute, attribute_kind

__all__ = [
    "ArrayAttribute", "Attribute", "BoolAttribute", "Complex64Attribute", "ComplexAttribute", "DataTypeAttribute",
    "DimAttribute", "DoubleAttribute", "FloatAttribute", "IndexAttribute", "Int32Attribute", "Int64Attribute",
    "IntArrayAttribute", "PlaceAttribute", "StrAttribute", "TensorNameAttribute", "attribute",
]  # fmt: skip

#: numpy dtype -> its name; None is Paddle's dtype `Undefined`, which means "that of the input"
DTYPE_NAMES = {t.np: t.name for t in dtypes.ALL} | {
    np.dtype(t): t.__name__ for t in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)} | {None: "Undefined"}
DTYPES = {name: dtype for dtype, name in DTYPE_NAMES.items()}


@attribute_kind("bool", bool, np.bool_)
class BoolAttribute(Attribute):
    """`true` or `false`."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        return cls.unique(bool(value), bool(value))

    def text(self, exact: bool) -> str:
        return "true" if self.value else "false"


class _IntAttribute(Attribute):
    __slots__ = ()
    bits: ClassVar[int]

    def __new__(cls, value: Any) -> Self:
        return super().__new__(cls, in_bits(value, cls.bits))

    def literal(self) -> str:
        return str(self.value)

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.integer())


def in_bits(value: Any, bits: int) -> int:
    """`value` as a Python int.

    Raises: OverflowError if so many bits do not hold it.
    """
    value = int(value)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OverflowError(f"attribute: expected an integer of {bits} bits, got {value}")
    return value


@attribute_kind("i32", np.int32)
class Int32Attribute(_IntAttribute):
    """A 32-bit integer."""

    __slots__ = ()
    bits = 32


@attribute_kind("i64", int, np.integer)
class Int64Attribute(_IntAttribute):
    """A 64-bit integer: what a Python int becomes."""

    __slots__ = ()
    bits = 64


class _FloatAttribute(Attribute):
    __slots__ = ()

    def __new__(cls, value: float) -> Self:
        value = _canonical(value)
        return cls.unique(struct.pack("<d", value), value)      # the bits: nan equals nan, and 0.0 is not -0.0

    def paddle(self) -> str:
        return f"{self.value:g}"

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.number())


@attribute_kind("f32", np.float32)
class FloatAttribute(_FloatAttribute):
    """A 32-bit float.  Its value is the Python float that the 32 bits stand for."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        return super().__new__(cls, float(np.float32(value)))

    def literal(self) -> str:
        return str(np.float32(self.value))


@attribute_kind("f64", float, np.floating)
class DoubleAttribute(_FloatAttribute):
    """A 64-bit float: what a Python float becomes."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        return super().__new__(cls, float(value))

    def literal(self) -> str:
        return repr(self.value)


def _canonical(x: float) -> float:
    """All NaNs are one: their sign and payload are nothing that text could keep."""
    return math.nan if math.isnan(x) else x


class _ComplexAttribute(Attribute):
    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        value = complex(_canonical(value.real), _canonical(value.imag))
        return cls.unique(struct.pack("<2d", value.real, value.imag), value)

    def literal(self) -> str:
        return f"{self.value.real!r}, {self.value.imag!r}"

    def paddle(self) -> str:
        return f"({self.value.real:g},{self.value.imag:g})"

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        real = parser.number()
        parser.expect(",")
        return cls(complex(real, parser.number()))


@attribute_kind("c64", np.complex64)
class Complex64Attribute(_ComplexAttribute):
    """A complex number of two 32-bit floats."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        return super().__new__(cls, complex(np.complex64(value)))


@attribute_kind("c128", complex, np.complexfloating)
class ComplexAttribute(_ComplexAttribute):
    """A complex number of two 64-bit floats."""

    __slots__ = ()


@attribute_kind("index")
class IndexAttribute(_IntAttribute):
    """A size or a position, as Paddle's dialect of shapes has it."""

    __slots__ = ()
    bits = 64


@attribute_kind("dim", DimExpr)
class DimAttribute(Attribute):
    """A size that only the run knows."""

    __slots__ = ()

    def literal(self) -> str:
        return str(self.value)

    def paddle(self) -> str:
        return "-1"

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.dim())


@attribute_kind("str", str)
class StrAttribute(Attribute):
    """Text; the exact style escapes it as JSON does."""

    __slots__ = ()

    def text(self, exact: bool) -> str:
        return json.dumps(self.value) if exact else '"' + self.value.replace('"', '\\"') + '"'


@attribute_kind("tensor_name")
class TensorNameAttribute(Attribute):
    """The name under which a tensor comes with a program."""

    __slots__ = ()

    def paddle(self) -> str:
        return f'"{self.value}"'


@attribute_kind("dtype", np.dtype, dtypes.DataType)
class DataTypeAttribute(Attribute):
    """An element type; its value is the numpy dtype, None for Paddle's `Undefined` (which means: that of the input)."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        if value is not None and not (isinstance(value, np.dtype) and value in DTYPE_NAMES):
            value = DTYPES[value] if isinstance(value, str) and value in DTYPES else dtypes.to_np(value)
        return super().__new__(cls, value)

    def literal(self) -> str:
        return DTYPE_NAMES[self.value]

    paddle = literal

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.word("a dtype such as float32", DTYPES.__getitem__))


@attribute_kind("Place")
class PlaceAttribute(Attribute):
    """Where a tensor lives: `cpu`, `gpu:0`, or Paddle's `undefined:0` (wherever the computation is)."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if not re.fullmatch(r"\w+(:\d+)?", value):
            raise ValueError(f"Place: expected a device with or without a number, such as cpu or gpu:0, got {value!r}")
        return super().__new__(cls, value)

    def literal(self) -> str:
        return self.value

    def paddle(self) -> str:
        return f"Place({self.value})"

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.until(")"))


@attribute_kind("ints")
class IntArrayAttribute(Attribute):
    """A tuple of sizes or indices, each an int or a symbolic dimension."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        return super().__new__(cls, tuple(v if isinstance(v, DimExpr) else in_bits(v, 64) for v in value))

    def literal(self) -> str:
        return ", ".join(map(str, self.value))

    def paddle(self) -> str:
        return f"[{','.join('-1' if isinstance(v, DimExpr) else str(v) for v in self.value)}]"

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.items(parser.dim, ")"))


@attribute_kind("array")
class ArrayAttribute(Attribute):
    """A tuple of attributes.  `items` holds the attributes, `value` their Python values."""

    __slots__ = ("items",)
    items: tuple[Attribute, ...]

    def __new__(cls, items: Iterable[Attribute]) -> Self:
        items = tuple(items)
        return cls.unique(items, tuple([a.value for a in items]), items)

    def __reduce__(self) -> tuple:
        return type(self), (self.items,)

    def text(self, exact: bool) -> str:
        return f"[{(', ' if exact else ',').join(a.text(exact) for a in self.items)}]"


def attribute(value: Any, kind: str | None = None) -> Attribute:
    """The attribute of a Python value; `kind` names another class than the usual one (`"i32"`, `"f32"`, `"Place"`).

    bool, int, float, complex, str, dtypes and symbolic dimensions have one kind each; a tuple or list of ints (or
    symbolic dimensions) becomes an `IntArrayAttribute`, any other an `ArrayAttribute`.

    >>> attribute(1e-6), attribute(3), attribute(3, "i32"), attribute((2, 3)), attribute([True, "a"])
    (f64(1e-06), i64(3), i32(3), ints(2, 3), [true, "a"])
    >>> attribute((2, 3)).value
    (2, 3)

    Raises: TypeError for a value that no kind takes.
    """
    if kind is None:
        usual = FROM_PYTHON.get(type(value))
        if usual is not None:
            return usual(value)
    if isinstance(value, Attribute):
        return value
    if kind is not None and kind != "array":
        if kind not in KINDS:
            raise TypeError(f"attribute: expected one of the kinds {', '.join(KINDS)}, got {kind!r}")
        return KINDS[kind](value)
    if isinstance(value, (tuple, list)):
        return _sequence(value, kind)
    for base in type(value).__mro__:
        if base in FROM_PYTHON:
            return FROM_PYTHON[base](value)
    raise TypeError(f"attribute: expected a value of one of the types {', '.join(t.__name__ for t in FROM_PYTHON)}, "
                    f"got {value!r} ({type(value).__name__}); convert it, or register its kind with @attribute_kind")


def kind_of(declared: Any) -> tuple[type[Attribute], ...]:
    """The classes that an attribute may have, from its declaration: a Python type, the name of a kind, or a class; or
    a tuple of these.

    Where a float is asked for, an int will do.
    >>> kind_of(str), kind_of("Place")
    ((<class 'minipd.ir.attributes.StrAttribute'>,), (<class 'minipd.ir.attributes.PlaceAttribute'>,))

    Raises: TypeError for anything else.
    """
    if isinstance(declared, tuple):
        return tuple(kind for one in declared for kind in kind_of(one))
    if isinstance(declared, str) and declared in KINDS:
        return (KINDS[declared],)
    if declared in (tuple, list):
        return IntArrayAttribute, ArrayAttribute
    if declared is int:
        return Int64Attribute, Int32Attribute, DimAttribute
    if declared in (float, complex):
        wider = (Complex64Attribute, ComplexAttribute) if declared is complex else ()
        return (*wider, DoubleAttribute, FloatAttribute, *kind_of(int))
    if isinstance(declared, type) and issubclass(declared, Attribute):
        return (declared,)
    if declared in FROM_PYTHON:
        return (FROM_PYTHON[declared],)
    raise TypeError(f"kind of an attribute: expected a Python type that has one, one of {', '.join(KINDS)}, or a class "
                    f"of attributes, got {declared!r}")


def _sequence(value: Any, kind: str | None) -> Attribute:
    if kind is None and all(issubclass(t, (int, np.integer, DimExpr)) and t is not bool for t in set(map(type, value))):
        return IntArrayAttribute(value)
    return ArrayAttribute([attribute(v) for v in value])
