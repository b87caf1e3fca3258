"""Paddle's JSON -> program.

The file may come from anywhere, so everything is asked before it is used: kinds and ranges of all entries, that a value
is made once, before and where it is seen.  Operations, types and attributes that minipd does not know are kept as they
are.  Regions wait on a list, so that nesting costs no frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from minipd.framework.dim import DimExpr, fresh_symbols
from minipd.framework.errors import InputError
from minipd.framework.files import reason
from minipd.ir.attributes import (
    ArrayAttribute,
    Attribute,
    BoolAttribute,
    Complex64Attribute,
    ComplexAttribute,
    DataTypeAttribute,
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
from minipd.ir.serialize import codes
from minipd.ir.serialize.document import Node, document
from minipd.ir.serialize.opaque import OpaqueAttribute, OpaqueTensorType, OpaqueType, compact
from minipd.ir.types import NULL_TYPE, DenseTensorType, StackType, Type, VectorType
from minipd.ir.value import Value
from minipd.ir.verify import VerifyError, verify

__all__ = ["SavedProgram", "read_program", "read_program_file"]

#: how deep vectors of vectors and arrays of arrays may be
DEEPEST = 32


class SavedProgram(NamedTuple):
    """What a file holds.  trainable: whether it was saved with what only training needs."""

    program: Program
    trainable: bool


def read_program(data: str | bytes, file: str = "the program") -> SavedProgram:
    """The program, in Paddle's form; `file` says in errors where it comes from.

    Raises: InputError for what is no program of Paddle's JSON version 4, naming the place in the document.
    """
    root = document(data, file)
    head = root["base_code"]
    if head["magic"].value != codes.MAGIC:
        head["magic"].fail(f"the magic word {codes.MAGIC!r}")
    version = head["version"].whole()
    if version != codes.VERSION:
        older = version < codes.VERSION
        head["version"].fail(f"version {codes.VERSION} of the format", f"version {version}", (
            "load the program with Paddle 3.3, which reads older versions, and save it there" if older else
            "save the program with Paddle 3.3; this one is newer"))
    region, = root["program"]["regions"].items(1)
    block, = region["blocks"].items(1)
    if list(block["args"].items()):
        block["args"].fail("a global block without arguments")
    reader = Reader()
    reader.read(block)
    try:
        verify(reader.program)
    except VerifyError as error:
        raise InputError("a program in which values are seen where they are used", f"{error} in {file}",
                         "save the program again; the file was damaged or written by something else") from error
    return SavedProgram(reader.program, head["trainable"].boolean())


def read_program_file(path: Path) -> SavedProgram:
    """The program in a `.json` file.   Raises: InputError."""
    try:
        data = path.read_bytes()
    except OSError as e:
        old = path.with_suffix(".pdmodel")
        do = (f"{old.name} is there: save the model with Paddle 3, which writes {path.name}" if old.is_file() else
              "give the path that the model was saved under, without .json")
        raise InputError(f"the file {path.name} with a program", f"{path} ({reason(e)})", do) from e
    return read_program(data, str(path))


class Reader:
    """values: id -> the value that has been made."""

    def __init__(self) -> None:
        self.program = Program()
        self.program.form = "paddle"
        self.values: dict[int, Value] = {}
        self.sizes: Iterator[DimExpr] = fresh_symbols(())

    def read(self, block: Node) -> None:
        """Operations are read in the order of the text, those of regions after the operation that owns them."""
        pending: list[tuple[Block, Iterator[Node]]] = [(self.program.global_block(), block["ops"].items())]
        while pending:
            into, nodes = pending[-1]
            node = next(nodes, None)
            if node is None:
                pending.pop()
                continue
            op = self.operation(node)
            into.append(op)
            if op.regions:
                pending += reversed(list(self.blocks(op, node["regions"])))

    def blocks(self, op: Operation, regions: Node) -> Iterator[tuple[Block, Iterator[Node]]]:
        for region, given in zip(op.regions, regions.items(), strict=True):
            for node in given["blocks"].items():
                block = region.add_block()
                if node.has("kwargs") and node["kwargs"].value:
                    node["kwargs"].fail("a block whose arguments have no names")
                for argument in node["args"].items():
                    self.define(argument["#"], block.add_arg(self.type(argument["TT"])))
                yield block, node["ops"].items()

    # ---------------------------------------------------------------------------------------------- operations
    def operation(self, node: Node) -> Operation:
        name = codes.op_name(node["#"].string())
        if name is None:
            node["#"].fail("the code of an operation, such as 1.matmul")
        if name == codes.PARAMETER_NAME:
            return self.parameter(node)
        operands = [self.operand(n["%"]) for n in node["I"].items()]
        results = list(node["O"].items())
        attributes = self.attributes(node["A"])
        if node.has("OA"):
            attributes |= self.attributes(node["OA"])
        regions = sum(1 for _ in node["regions"].items()) if node.has("regions") else 0
        op = Operation(name, operands, attributes, [self.type(n["TT"]) for n in results], regions)
        for flag in codes.OF_RESULTS & attributes.keys():
            flags = attributes[flag]
            if not isinstance(flags, ArrayAttribute) or len(flags.items) != len(results):
                node.fail(f"one entry of {flag} for each of {len(results)} results", str(flags))
        for result, given in zip(op.results(), results, strict=True):
            self.define(given["%"], result)
        return op

    def parameter(self, node: Node) -> Operation:
        *flags, name = node["A"].items(1 + len(codes.FLAGS))
        attributes: dict[str, Attribute] = {
            n: ArrayAttribute((BoolAttribute(f.flag()),)) for n, f in zip(codes.FLAGS, flags, strict=True)}
        attributes["parameter_name"] = StrAttribute(name.string())
        if node.has("OA"):
            of_result = node["OA"].items(len(codes.RESULT_FLAGS))
            attributes |= {n: ArrayAttribute((BoolAttribute(f.flag()),))
                           for n, f in zip(codes.RESULT_FLAGS, of_result, strict=True)}
        op = Operation(codes.PARAMETER_NAME, (), attributes, [self.type(node["O"]["TT"])])
        self.define(node["O"]["%"], op.result(0))
        return op

    def operand(self, node: Node) -> Value | None:
        number = node.whole()
        if number == 0:
            return None
        if number not in self.values:
            node.fail("a value that an earlier operation has made", f"value {number}")
        return self.values[number]

    def define(self, node: Node, value: Value) -> None:
        number = node.whole()
        if number == 0 or number in self.values:
            node.fail("a number that no other value has", f"value {number}" if number else "0, which means no value")
        self.values[number] = value

    # --------------------------------------------------------------------------------------------------- types
    def type(self, node: Node, depth: int = 0) -> Type:
        code = node["#"].string()
        if code == codes.NULL:
            return NULL_TYPE
        if code == codes.VECTOR:
            return VectorType(tuple(self.type(n, _deeper(n, depth)) for n in node["D"].items()))
        ends = [end for end in StackType.ENDS if code == codes.STACK.format(end)]
        if ends:
            return StackType(ends[0])
        if code != codes.TENSOR:
            return OpaqueType(node.value)
        element, sizes, *rest = node["D"].items(2 + len(codes.USUAL))
        dtype = codes.BY_ELEMENT.get(element["#"].string())
        shape = tuple(self.size(n) for n in sizes.items())
        if dtype is None:
            return OpaqueType(node.value)
        if tuple(n.value for n in rest) == codes.USUAL:
            return DenseTensorType(shape, dtype)
        return OpaqueTensorType(shape, dtype, compact([n.value for n in rest]))

    def size(self, node: Node) -> int | DimExpr:
        n = node.whole()
        if n < -1:
            node.fail("a size of at least 0, or -1 for any")
        return next(self.sizes) if n == -1 else n

    # ---------------------------------------------------------------------------------------------- attributes
    def attributes(self, node: Node) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {}
        for entry in node.items():
            name = entry["N"].string()
            if name in found:
                entry["N"].fail("each attribute once", repr(name))
            found[name] = attribute(entry["AT"])
        return found


def _deeper(node: Node, depth: int) -> int:
    if depth == DEEPEST:
        node.fail(f"at most {DEEPEST} levels of vectors or arrays inside each other", "more")
    return depth + 1


def attribute(node: Node, depth: int = 0) -> Attribute:
    """An attribute, whatever its kind."""
    code = node["#"].string()
    if code == "0.a_array":
        return ArrayAttribute(tuple(attribute(n, _deeper(n, depth)) for n in node["D"].items()))
    found = KINDS[code](node) if code in KINDS else None
    return OpaqueAttribute(node.value) if found is None else found


def _number(node: Node) -> float:
    if not node.has("VD"):
        return node["D"].number()
    word = node["VD"].string()
    if word not in codes.SPECIAL:
        node["VD"].fail(f"one of {', '.join(codes.SPECIAL)}")
    return codes.SPECIAL[word]


def _complex(node: Node) -> complex:
    real, imag = node["D"].items(2)
    return complex(real.number(), imag.number())


def _place(node: Node) -> Attribute | None:
    """None for a device that we do not have."""
    kind, number, name = node["D"].items(3)
    device = codes.BY_PLACE.get(kind.whole())
    if device is None or name.string() or number.whole() < 0 or device == "cpu" and number.value:
        return None
    return PlaceAttribute(device if device == "cpu" else f"{device}:{number.value}")


def _dtype(node: Node) -> Attribute | None:
    """None for an element type that we do not have."""
    name = node["D"].string()
    return DataTypeAttribute(codes.BY_DTYPE[name]) if name in codes.BY_DTYPE else None


#: code -> attribute; None keeps what stands there
KINDS: dict[str, Callable[[Node], Attribute | None]] = {
    "0.a_bool": lambda node: BoolAttribute(node["D"].boolean()),
    "0.a_i32": lambda node: Int32Attribute(node["D"].whole(32)),
    "0.a_i64": lambda node: Int64Attribute(node["D"].whole()),
    "0.a_f32": lambda node: FloatAttribute(_number(node)),
    "0.a_f64": lambda node: DoubleAttribute(_number(node)),
    "0.a_c64": lambda node: Complex64Attribute(_complex(node)),
    "0.a_c128": lambda node: ComplexAttribute(_complex(node)),
    "0.a_index": lambda node: IndexAttribute(node["D"].whole()),
    "0.a_str": lambda node: StrAttribute(node["D"].string()),
    "0.a_tensorname": lambda node: TensorNameAttribute(node["D"].string()),
    "1.a_intarray": lambda node: IntArrayAttribute([n.whole() for n in node["D"].items()]),
    "1.a_dtype": _dtype,
    "1.a_place": _place,
}
