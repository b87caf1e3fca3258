"""Types and attributes of Paddle's that minipd does not compute with, kept as they came.

A program with a sparse tensor, a tensor array or an attribute of a kind of its own can so be loaded, drawn and written
again, with nothing lost; it fails when it runs, at the operation that would need them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from minipd.ir.attributes import Attribute, attribute_kind
from minipd.ir.types import DenseTensorType, Type, checked_dtype, checked_shape, type_keyword

__all__ = ["OpaqueAttribute", "OpaqueTensorType", "OpaqueType"]


def compact(data: Any) -> str:
    """JSON without spaces, keys sorted: equal data has equal text."""
    return json.dumps(data, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


@attribute_kind("json")
class OpaqueAttribute(Attribute):
    """An attribute as it stands in a file; its value is the text.

    >>> OpaqueAttribute({"#": "4.a_tensor_dist", "D": [1]})
    json("{\\"#\\":\\"4.a_tensor_dist\\",\\"D\\":[1]}")
    """

    __slots__ = ()

    def __new__(cls, data: Any) -> OpaqueAttribute:
        return super().__new__(cls, data if isinstance(data, str) else compact(data))

    @property
    def data(self) -> Any:
        """What stands in the file."""
        return json.loads(self.value)

    def literal(self) -> str:
        return json.dumps(self.value)

    def paddle(self) -> str:
        data = self.data.get("D")
        return data if isinstance(data, str) else compact(data)

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.string())


@type_keyword("json")
class OpaqueType(Type):
    """A type as it stands in a file: a tensor array, a sparse tensor, ...

    >>> OpaqueType({"#": "1.t_dense_tensor_array", "D": [{"#": "0.t_f32"}, [2, 3], "NCHW"]}).text(exact=False)
    'pd_op.dense_tensor_array'
    """

    __slots__ = ("json",)
    json: str

    def __new__(cls, data: Any) -> OpaqueType:
        text = data if isinstance(data, str) else compact(data)
        return cls.unique(text, text)

    @property
    def data(self) -> Any:
        """What stands in the file."""
        return json.loads(self.json)

    def text(self, exact: bool) -> str:
        if exact:
            return f"json({json.dumps(self.json)})"
        from minipd.ir.serialize.codes import op_name
        code = str(self.data["#"])
        return (op_name(code) or code).replace(".t_", ".")

    @classmethod
    def parse(cls, parser: Any, word: str) -> OpaqueType:
        parser.expect("(")
        found = cls(parser.string())
        parser.expect(")")
        return found


@type_keyword("laid_out")
class OpaqueTensorType(DenseTensorType):
    """A dense tensor type whose layout, levels of detail or offset are not the usual ones; these are kept, not used."""

    __slots__ = ("rest",)
    rest: str

    def __new__(cls, shape: Sequence, dtype: Any, rest: str) -> OpaqueTensorType:
        parts = checked_shape(shape), checked_dtype(dtype), rest
        return cls.unique(parts, *parts)

    def text(self, exact: bool) -> str:
        plain = super().text(exact)
        return f"laid_out({json.dumps(self.rest)}) {plain}" if exact else plain

    @classmethod
    def parse(cls, parser: Any, word: str) -> OpaqueTensorType:
        parser.expect("(")
        rest = parser.string()
        parser.expect(")")
        parser.expect("tensor")
        plain = DenseTensorType.parse(parser, "tensor")
        return cls(plain.shape, plain.dtype, rest)
