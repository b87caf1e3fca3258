"""The two print styles.

"paddle" equals the text that Paddle prints (version 3.3): attributes sorted by name, `-1` for a symbolic dimension,
floats in six digits, the user's line hidden.  It is for reading beside Paddle, and it loses precision, the types of
attributes and the names of dimensions.

"exact" is ours, and loses nothing, so that `parse(print(program)) == program`:

    {
        assume S0 % 4 == 0, "split: dimension 0", "train.py:12"
        (%0) = "pd_op.data" () {dtype: dtype(float32), name: "x", shape: ints(S0, 8)} : () -> tensor<S0x8xf32>
        (%1) = "pd_op.if" (%2) {} : (tensor<b>) -> tensor<S0x8xf32> {
            ...
        } {
            ...
        }
    }

A program in Paddle's form says so in its first line, `form paddle`; one in ours is translated before it is printed in
Paddle's style.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from minipd.ir.attributes import Attribute
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.types import NULL_TYPE, StackType
from minipd.ir.value import NULL_VALUE, BlockArgument, Value

if TYPE_CHECKING:
    from minipd.ir.program import Program

__all__ = ["print_operation", "print_program"]

INDENT = "    "
HIDDEN_BY_PADDLE = frozenset({"as_written", "op_callstack"})


def _op_dist_attr(op: Operation) -> str:
    """Where an operation's operands and results are, as Paddle writes it; "" if none is distributed."""
    named = [*((f"operand({i})", v) for i, v in enumerate(op.operands_source()) if v is not None),
             *((f"result({i})", v) for i, v in enumerate(op.results()))]
    placed = {name: kind for name, v in named if hasattr(kind := v.type(), "dist_attr")}
    if not placed:
        return ""
    mesh = list(placed.values())[-1].mesh_attr()        # type: ignore[attr-defined]
    parts = ",".join(f"{name}:{{{kind.dist_attr()}}}" for name, kind in placed.items())     # type: ignore[attr-defined]
    return f"{{mesh:{{{mesh}}},{parts},chunk_id:-1}}"


def print_program(program: Program, style: str = "paddle") -> str:
    """The text of a program in style "paddle" or "exact"."""
    printer = ProgramPrinter(style)
    if style == "paddle" and program.form != "paddle":
        from minipd.ir.paddle.save import as_text  # which is written with what this file prints
        program = as_text(program)
    form = [f"{INDENT}form {program.form}\n"] if printer.exact and program.form != "minipd" else []
    assumptions = [f"{INDENT}assume {c.relation}, {json.dumps(c.what)}, {json.dumps(c.where)}\n"
                   for c in program.constraints] if printer.exact else []
    return "{\n" + "".join(form + assumptions) + printer.block(program.global_block(), INDENT) + "}\n"


def print_operation(op: Operation, style: str = "paddle") -> str:
    """The text of one operation; values are numbered from 0 as they are met."""
    printer = ProgramPrinter(style)
    return printer.walk([(op, "")])


class ProgramPrinter:
    """Numbers values as they are met.  Keeps a stack of what is still to be printed, so nesting costs no frames."""

    def __init__(self, style: str):
        if style not in ("paddle", "exact"):
            raise ValueError(f'print style: expected "paddle" or "exact", got {style!r}')
        self.exact = style == "exact"
        self.names: dict[Value, str] = {}
        self.count = {"%": 0, "%arg_": 0, "%stack_": 0, "%inlet_": 0, "%outlet_": 0}

    # ---------------------------------------------------------------------------------------------- structure
    def block(self, block: Block, indent: str) -> str:
        return self.walk([(op, indent) for op in reversed(block.ops)])

    def walk(self, pending: list) -> str:
        """Print what is pending, last first: operations with their indentation, and finished lines."""
        lines: list[str] = []
        while pending:
            item = pending.pop()
            if isinstance(item, str):
                lines.append(item)
                continue
            op, indent = item
            head = indent + self.head(op)
            if not op.regions:
                lines.append(head + "\n")
                continue
            lines.append(head + (" { \n" if op.name() == "pd_op.while" and not self.exact else " {\n"))
            between = "} {\n" if self.exact else "} else {\n"
            todo: list = []
            for i, region in enumerate(op.regions):
                if i:
                    todo.append(indent + between)
                for block in region.blocks:
                    if block.args():
                        todo.append(indent + self.arguments(block))
                    todo += [(inner, indent + INDENT) for inner in block]
            todo.append(indent + "}\n")
            pending += reversed(todo)
        return "".join(lines)

    def arguments(self, block: Block) -> str:
        """The line that names the arguments of a block."""
        if not self.exact:
            flags = (f"{self.name(a)} {{stop_gradient:{str(a.stop_gradient).lower()}}}" for a in block.args())
            return f"^{', '.join(flags)}\n"
        named = (f"{self.name(a)} {self.attributes(a.attributes)} : {self.type(a)}" for a in block.args())
        return f"^ {', '.join(named)}\n"

    # ----------------------------------------------------------------------------------------- one operation
    def head(self, op: Operation) -> str:
        """Everything of an operation but its regions."""
        results = ", ".join(map(self.name, op.results()))
        if op.name() == "pd_op.while" and not self.exact:   # Paddle names what a while takes, and leaves out its types
            condition, *inputs = map(self.name, op.operands_source())
            return f'({results}) = {self.named(op)} (cond={condition}, inputs={", ".join(inputs)})'
        operands = ", ".join(map(self.name, op.operands_source()))
        takes = ", ".join(map(self.type, op.operands_source()))
        gives = ", ".join(map(self.type, op.results()))
        text = f"({results}) = {self.named(op)} ({operands}) {self.braced(self.fields(op))}"
        if op.name() == "pd_op.if" and not self.exact:      # Paddle prints an if without the types of its operands
            return f"{text} -> {gives}"
        return f"{text} : ({takes}) -> {gives}"

    def named(self, op: Operation) -> str:
        """The operation's name, quoted."""
        if self.exact:
            return json.dumps(op.name())
        dialect, _, name = op.name().partition(".")
        return f'"{name}(phi_kernel)"' if dialect == "kernel" else f'"{op.name()}"'     # as Paddle names chosen kernels

    def fields(self, op: Operation) -> dict[str, str]:
        """What stands in the braces of an operation: name -> text."""
        found = self.texts(op.attributes)
        if not self.exact and (placed := _op_dist_attr(op)):
            found["op_dist_attr"] = placed              # Paddle's, which says what the types say
            if op.name().startswith("dist_op."):
                found = {k: text for k, text in found.items() if k not in ("marked", "mesh", "placements")}
        return found

    def texts(self, attributes: dict[str, Attribute]) -> dict[str, str]:
        return {k: a.text(self.exact) for k, a in attributes.items() if self.exact or k not in HIDDEN_BY_PADDLE}

    def attributes(self, attributes: dict[str, Attribute]) -> str:
        return self.braced(self.texts(attributes))

    def braced(self, fields: dict[str, str]) -> str:
        if self.exact:
            return "{" + ", ".join(f"{_key(k)}: {text}" for k, text in sorted(fields.items())) + "}"
        return "{" + ",".join(f"{k}:{text}" for k, text in sorted(fields.items())) + "}"

    def type(self, value: Value) -> str:
        return (NULL_TYPE if value is None else value.type()).text(self.exact)

    def name(self, value: Value) -> str:
        if value is None:
            return NULL_VALUE
        found = self.names.get(value)
        if found is None:
            type = value.type()
            prefix = ("%arg_" if isinstance(value, BlockArgument) else
                      f"%{type.end}_" if isinstance(type, StackType) else "%")
            found = self.names[value] = f"{prefix}{self.count[prefix]}"
            self.count[prefix] += 1
        return found


def _key(name: str) -> str:
    """An attribute's name, quoted unless it is a plain word."""
    return name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else json.dumps(name)
