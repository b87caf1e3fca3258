"""Program -> Paddle's JSON.

The text is what Paddle itself writes, to the byte: keys sorted, no spaces, floats in the fewest digits, values numbered
as they come into being and block arguments downwards from -1.  It is put together from pieces; regions wait on a stack,
so that nesting costs no frames.
"""

from __future__ import annotations

import cmath
import json
from typing import Any

from minipd.framework.dim import DimExpr
from minipd.framework.errors import InputError
from minipd.ir.attributes import (
    ArrayAttribute,
    Attribute,
    BoolAttribute,
    Complex64Attribute,
    ComplexAttribute,
    DataTypeAttribute,
    DimAttribute,
    DoubleAttribute,
    FloatAttribute,
    IndexAttribute,
    Int32Attribute,
    Int64Attribute,
    IntArrayAttribute,
    PlaceAttribute,
    StrAttribute,
    TensorNameAttribute,
)
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.region import Region
from minipd.ir.serialize import codes
from minipd.ir.serialize.opaque import OpaqueAttribute, OpaqueTensorType, OpaqueType
from minipd.ir.types import DenseTensorType, NullType, StackType, Type, VectorType
from minipd.ir.value import Value

__all__ = ["program_json"]

PLAIN: dict[type[Attribute], str] = {
    BoolAttribute: "0.a_bool", Int32Attribute: "0.a_i32", Int64Attribute: "0.a_i64", IndexAttribute: "0.a_index",
    StrAttribute: "0.a_str", TensorNameAttribute: "0.a_tensorname"}
FLOATS: dict[type[Attribute], str] = {FloatAttribute: "0.a_f32", DoubleAttribute: "0.a_f64"}
COMPLEX: dict[type[Attribute], str] = {Complex64Attribute: "0.a_c64", ComplexAttribute: "0.a_c128"}


def program_json(program: Program, trainable: bool = True) -> str:
    """The text of a program in Paddle's form.

    trainable: whether to write what only training needs, the flags of results.
    Raises: ValueError for a program in our own form; InputError for what Paddle's format has no code for.
    """
    if program.form != "paddle":
        raise ValueError(f"program_json: expected a program in Paddle's form, got one in {program.form}'s; "
                         "translate it with minipd.ir.paddle.to_paddle")
    head = dump({"magic": codes.MAGIC, "trainable": trainable, "version": codes.VERSION})
    return f'{{"base_code":{head},"program":{{"regions":[{Writer(trainable).text(program.region)}]}}}}'


class Writer:
    """Numbers values, regions and blocks as they are met."""

    def __init__(self, trainable: bool):
        self.trainable = trainable
        self.ids: dict[Value | None, int] = {None: 0}
        self.results = self.arguments = self.regions = self.blocks = 0

    def text(self, region: Region) -> str:
        out: list[str] = []
        todo: list[Any] = [region]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                out.append(item)
                continue
            parts = (self.region(item) if isinstance(item, Region) else self.block(item) if isinstance(item, Block)
                     else self.operation(item))
            todo += reversed(parts)
        return "".join(out)

    # ---------------------------------------------------------------------------------------------- structure
    def region(self, region: Region) -> list[Any]:
        name = f"region_{self.regions}"
        self.regions += 1
        return [f'{{"#":"{name}","blocks":[', *_between(region.blocks), "]}"]

    def block(self, block: Block) -> list[Any]:
        name = f"block_{self.blocks}"
        self.blocks += 1
        args = []
        for arg in block.args():
            self.arguments -= 1
            self.ids[arg] = self.arguments
            args.append({"#": self.arguments, "TT": type_json(arg.type())})
        return [f'{{"#":"{name}","args":{dump(args)},"ops":[', *_between(block.ops), "]}"]

    def operation(self, op: Operation) -> list[Any]:
        # Values are numbered where they are made: a use before that is an error of the program.
        operands = [{"%": self.ids[v]} for v in op.operands_source()]
        results = [{"%": self.result(r), "TT": type_json(r.type())} for r in op.results()]
        if op.name() == codes.PARAMETER_NAME:
            return [dump(self.parameter(op, results[0]))]
        own: list[Any] = []
        of_results: list[Any] = []
        for name, attribute in op.attributes.items():
            if name not in codes.UNWRITTEN:
                entry = {"AT": attribute_json(attribute, f"attribute {name!r} of {op.name()}"), "N": name}
                (of_results if name in codes.OF_RESULTS else own).append(entry)
        fields = {"#": codes.op_code(op.name()), "A": own, "I": operands, "O": results}
        if self.trainable:
            fields["OA"] = sorted(of_results, key=lambda entry: entry["N"])
        if not op.regions:
            return [dump(fields)]
        return [dump(fields)[:-1] + ',"regions":[', *_between(op.regions), "]}"]

    def parameter(self, op: Operation, result: dict) -> dict[str, Any]:
        def flags(names: tuple[str, ...]) -> list[int]:
            return [int(op.attributes[n].value[0]) if n in op.attributes else 0 for n in names]
        fields = {"#": codes.PARAMETER, "A": [*flags(codes.FLAGS), op.attributes["parameter_name"].value], "DA": [],
                  "O": result, "QA": []}
        if self.trainable:
            fields["OA"] = flags(codes.RESULT_FLAGS)
        return fields

    def result(self, value: Value) -> int:
        self.results += 1
        self.ids[value] = self.results
        return self.results


def _between(items: Any) -> list[Any]:
    """The items with commas between them."""
    return [part for item in items for part in (",", item)][1:]


# ------------------------------------------------------------------------------------------- types and attributes
def type_json(type: Type) -> Any:
    """Raises: InputError for a type that Paddle's format has no code for."""
    if isinstance(type, OpaqueType):
        return type.data
    if isinstance(type, DenseTensorType):
        rest = json.loads(type.rest) if isinstance(type, OpaqueTensorType) else codes.USUAL
        return {"#": codes.TENSOR, "D": [{"#": codes.ELEMENTS[type.dtype]},
                                         [-1 if isinstance(d, DimExpr) else d for d in type.shape], *rest]}
    if isinstance(type, VectorType):
        return {"#": codes.VECTOR, "D": [type_json(t) for t in type.types]}
    if isinstance(type, NullType):
        return {"#": codes.NULL}
    if isinstance(type, StackType):
        return {"#": codes.STACK.format(type.end)}
    raise InputError("values of types that Paddle has", str(type), "save a program of dense tensors")


def attribute_json(attribute: Attribute, what: str) -> Any:
    """Raises: InputError for an attribute that Paddle's format has no code for; `what` names it."""
    value = attribute.value
    if type(attribute) in PLAIN:
        return {"#": PLAIN[type(attribute)], "D": value}
    if type(attribute) in FLOATS:
        special = next((word for word, x in codes.SPECIAL.items() if x == value or x != x and value != value), None)
        return {"#": FLOATS[type(attribute)], **({"D": value} if special is None else {"VD": special})}
    if isinstance(attribute, ArrayAttribute):
        return {"#": "0.a_array", "D": [attribute_json(a, what) for a in attribute.items]}
    if isinstance(attribute, IntArrayAttribute):
        return {"#": "1.a_intarray", "D": [-1 if isinstance(d, DimExpr) else d for d in value]}
    if isinstance(attribute, DataTypeAttribute):
        return {"#": "1.a_dtype", "D": codes.DTYPES[value]}
    if isinstance(attribute, PlaceAttribute):
        name, _, number = value.partition(":")
        if name in codes.PLACES:
            return {"#": "1.a_place", "D": [codes.PLACES[name], int(number or 0), ""]}
    if isinstance(attribute, OpaqueAttribute):
        return attribute.data
    if type(attribute) in COMPLEX:
        if not cmath.isfinite(value):           # `VD` has room for one word, and JSON none for infinity
            raise InputError("finite complex numbers: Paddle's files have no way to write others", f"{what} {value}",
                             "make it when the program runs, of two real tensors, with paddle.complex")
        return {"#": COMPLEX[type(attribute)], "D": [value.real, value.imag]}
    if isinstance(attribute, DimAttribute):
        raise InputError("sizes that are known, or operands, where a size is an attribute", f"{what} {value}",
                         "compute it from the shape of a tensor, or fix the dimension in the InputSpec")
    raise InputError("attributes that Paddle has", f"{what} ({attribute})", "save a program of Paddle's operators")


# -------------------------------------------------------------------------------------------------------- JSON
def dump(data: Any) -> str:
    """Compact JSON with sorted keys.

    >>> dump({"b": [1e15, 0.1], "a": "\\n"}), dump(123456789012345.0)
    ('{"a":"\\\\n","b":[1e+15,0.1]}', '123456789012345.0')
    """
    if isinstance(data, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{dump(v)}" for k, v in sorted(data.items())) + "}"
    if isinstance(data, (list, tuple)):
        return "[" + ",".join(map(dump, data)) + "]"
    if isinstance(data, float) and 1e15 <= abs(data) < 1e16:     # here Python writes sixteen digits, others an exponent
        digits = repr(abs(data)).replace(".", "").rstrip("0")
        return f"{'-' if data < 0 else ''}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e+15"
    return json.dumps(data, ensure_ascii=False)
