"""Types of values.

A type is immutable, and there is one of a kind: equal types are the same object (see `context`), as Paddle's are.
`tensor<8x16xf32>` is a `DenseTensorType`; a dimension is an int or a `DimExpr`, which prints by name in the exact style
(`tensor<S0x16xf32>`, `tensor<(2*S0)x16xf32>`) and as -1 in Paddle's.

A floor above that needs another type writes a subclass and registers it with `@type_keyword` under the word its text
starts with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self, TypeVar, cast

import ml_dtypes
import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import DimExpr
from minipd.ir.attributes import Attribute, attribute, attribute_kind
from minipd.ir.context import CONTEXT, Uniqued

__all__ = ["DenseTensorType", "Type", "VectorType"]

#: numpy dtype -> Paddle's spelling inside `tensor<...>`; no kernel computes in eight bits, but files have such tensors
SPELLING = {t.np: t.short for t in dtypes.ALL} | {
    np.dtype(np.uint8): "u8", np.dtype(ml_dtypes.float8_e4m3fn): "f8e4m3fn", np.dtype(ml_dtypes.float8_e5m2): "f8e5m2"}
BY_SPELLING = {text: dtype for dtype, text in SPELLING.items()}

#: the word that a type's text starts with -> the class; the parser looks here
TYPES = CONTEXT.types

T = TypeVar("T", bound="type[Type]")


def type_keyword(*words: str) -> Callable[[T], T]:
    """Register a class of types; its `parse(parser, word)` reads what follows one of `words`."""

    def register(cls: T) -> T:
        cls.word = words[0]
        for word in words:
            TYPES[word] = cls
        return cls
    return register


class Type(Uniqued):
    """Base of all types."""

    __slots__ = ()
    #: what its text starts with
    word: ClassVar[str]

    def __new__(cls, *parts: Any) -> Self:
        """Parts are what attributes can be: numbers, text, dtypes, other types, tuples of these."""
        if len(parts) != len(cls.PARTS):
            raise TypeError(f"{cls.__name__}: expected {len(cls.PARTS)} parts ({', '.join(cls.PARTS) or 'none'}), got "
                            f"{len(parts)}")
        typed = tuple(map(attribute, parts))            # as attributes, 1 and True are not the same
        return cls.unique(typed, *(a.value for a in typed))

    @property
    def logical(self) -> Type:
        """The type without where its values lie: all that two values that may stand for each other must agree in."""
        return self

    def text(self, exact: bool) -> str:
        """The spelling in one of the two print styles; unless a type spells it otherwise, its parts as attributes."""
        parts = ", ".join(attribute(getattr(self, name)).text(exact) for name in self.PARTS)
        return f"{self.word}<{parts}>" if parts else self.word

    @classmethod
    def parse(cls, parser: Any, word: str) -> Type:
        """Read the rest of the exact spelling, after `word`."""
        return cls(*(a.value for a in parser.sequence("<", parser.attribute, ">"))) if cls.PARTS else cls()

    def __repr__(self) -> str:
        return self.text(exact=True)

    def as_vec_type(self) -> VectorType | None:
        """This type if it is a vector's."""
        return self if isinstance(self, VectorType) else None


class TensorType(Type):
    """A type with a shape and a dtype: dense tensors here, distributed ones in their own floor."""

    word = "tensor"
    __slots__ = ("shape", "dtype")  # noqa: RUF023 - in the order of construction
    shape: tuple[int | DimExpr, ...]
    dtype: np.dtype

    def notation(self) -> str:
        """How errors and pictures write it: `f32[S0, 16]`."""
        return f"{SPELLING[self.dtype]}[{', '.join(map(str, self.shape))}]"

    def body(self, exact: bool) -> str:
        """What stands between the angle brackets: `S0x16xf32`, `-1x16xf32`, `f32`."""
        return "".join(f"{dim_text(d, exact)}x" for d in self.shape) + SPELLING[self.dtype]


@type_keyword("tensor")
class DenseTensorType(TensorType):
    """Paddle's `builtin.DenseTensorType`.

    >>> from minipd.framework.dim import symbol
    >>> DenseTensorType((symbol("S0"), 16), np.dtype("float32"))
    tensor<S0x16xf32>
    >>> DenseTensorType((), np.dtype("bool")).text(exact=False)
    'tensor<b>'
    """

    __slots__ = ()

    def __new__(cls, shape: Sequence, dtype: Any) -> DenseTensorType:
        if type(shape) is tuple and isinstance(dtype, np.dtype):
            reference = CONTEXT.references.get((cls, (shape, dtype)))      # what exists has been checked
            found = None if reference is None else reference()
            if found is not None:
                return cast(DenseTensorType, found)
        checked = checked_shape(shape), checked_dtype(dtype)
        return cls.unique(checked, *checked)

    def text(self, exact: bool) -> str:
        return f"tensor<{self.body(exact)}>"

    @classmethod
    def parse(cls, parser: Any, word: str) -> DenseTensorType:
        shape, dtype = parser.shape_and_dtype()
        parser.expect(">")
        return cls(shape, dtype)


@type_keyword("vec")
class VectorType(Type):
    """A sequence of values as one value: what `builtin.combine` makes and `builtin.split` takes apart.

    >>> VectorType((DenseTensorType((2,), np.dtype("int64")),) * 2)
    vec[tensor<2xi64>,tensor<2xi64>]
    """

    __slots__ = ("types",)
    types: tuple[Type, ...]

    def as_list(self) -> list[Type]:
        return list(self.types)

    def __new__(cls, types: Iterable[Type]) -> VectorType:
        types = tuple(types)
        return cls.unique(types, types)

    @property
    def logical(self) -> Type:
        return VectorType(t.logical for t in self.types)

    def text(self, exact: bool) -> str:
        return f"vec[{','.join(t.text(exact) for t in self.types)}]"

    @classmethod
    def parse(cls, parser: Any, word: str) -> VectorType:
        return cls(tuple(parser.sequence("[", parser.type, "]")))


@type_keyword("cf.stack", "cf.inlet", "cf.outlet")
class StackType(Type):
    """The stack that carries values from a forward region to its gradient region, and its two ends."""

    __slots__ = ("end",)
    end: str
    ENDS: ClassVar[tuple[str, ...]] = ("stack", "inlet", "outlet")

    def __new__(cls, end: str) -> StackType:
        if end not in cls.ENDS:
            raise ValueError(f"StackType: expected one of {', '.join(cls.ENDS)}, got {end!r}")
        return cls.unique(end, end)

    def text(self, exact: bool) -> str:
        return f"cf.{self.end}"

    @classmethod
    def parse(cls, parser: Any, word: str) -> StackType:
        return cls(word.removeprefix("cf."))


@type_keyword("<<NULL TYPE>>")
class NullType(Type):
    """The type of an operand that is left out, and of a result that nobody wants; in Paddle's form only.

    >>> NULL_TYPE
    <<NULL TYPE>>
    """

    __slots__ = ()


NULL_TYPE = NullType()


@type_keyword("index")
class IndexType(Type):
    """A size or a position, as wide as the machine's: the values of sizes that a program computes."""

    __slots__ = ()


@attribute_kind("type", Type)
class TypeAttribute(Attribute):
    """A type as an attribute.

    >>> attribute([VectorType([IndexType()]), 3])
    [type(vec[index]), i64(3)]
    """

    __slots__ = ()

    def literal(self) -> str:
        return self.value.text(exact=True)

    def paddle(self) -> str:
        return self.value.text(exact=False)

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.type())


def checked_shape(shape: Sequence) -> tuple[int | DimExpr, ...]:
    """A shape as types hold it."""
    for d in shape:
        if not (isinstance(d, int) and d >= 0 or isinstance(d, DimExpr)):
            raise ValueError(f"tensor type: expected sizes of at least 0 or symbolic dimensions, got {d!r} in "
                             f"shape {list(shape)}; name an unknown size with symbol('S0')")
    return tuple(d if isinstance(d, DimExpr) else int(d) for d in shape)


def checked_dtype(dtype: Any) -> np.dtype:
    """A dtype as types hold it, from whatever names one."""
    return dtype if isinstance(dtype, np.dtype) and dtype in SPELLING else dtypes.to_np(dtype)


def dim_text(dim: int | DimExpr, exact: bool) -> str:
    """One dimension inside `tensor<...>`.  A compound one stands in parentheses, so that its end is seen."""
    if isinstance(dim, int):
        return str(dim)
    if not exact:
        return "-1"
    text = repr(dim)
    return text if re.fullmatch("[A-Z][A-Z0-9]*", text) else f"({text})"


def type_of(meta: Any) -> DenseTensorType:
    """The dense type of anything with a shape and a dtype."""
    return DenseTensorType(tuple(meta.shape), meta.dtype)
