"""Paddle's `paddle.pir`: the classes of programs, and where and how static mode writes the next operation.

Static mode, and every trace, writes at an insertion point, which is usually the end of the main program:

    >>> from minipd.static import Program as StaticProgram, data, program_guard
    >>> main = StaticProgram()
    >>> with program_guard(main):
    ...     x = data("x", [2, 3])
    ...     y = x + x
    ...     set_insertion_point(y.payload.get_defining_op())
    ...     z = x.tanh()                    # before the addition
    ...     reset_insertion_point_to_end()
    >>> [op.name() for op in main.global_block()]
    ['pd_op.data', 'pd_op.tanh', 'pd_op.add']

What these functions are given may be a value of the program or the Tensor that holds it.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import DimExpr, fresh_symbols
from minipd.framework.tensor import Tensor
from minipd.ir.attributes import Int32Attribute, StrAttribute
from minipd.ir.block import Block
from minipd.ir.builder import Builder, InsertionPoint
from minipd.ir.mapping import CloneOptions, IrMapping
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.types import NULL_TYPE, DenseTensorType, TensorType, Type
from minipd.ir.value import OpOperand, Value
from minipd.static.program import default_main_program

__all__ = [
    "Block", "CloneOptions", "InsertionPoint", "IrMapping", "OpOperand", "Operation", "Program", "Type", "Value",
    "create_shaped_type", "fake_value", "get_chunk_id", "get_comp_op_name", "get_current_insertion_point",
    "get_fake_value_name", "get_op_role", "is_fake_value", "register_dist_dialect", "register_paddle_dialect",
    "reset_insertion_point_to_end", "reset_insertion_point_to_start", "set_chunk_id", "set_comp_op_name",
    "set_insertion_point", "set_insertion_point_after", "set_insertion_point_to_block_end", "set_op_role",
    "value_is_persistable",
]  # fmt: skip


def value_of(x: Any) -> Value:
    """The value that `x` is, or holds.

    Raises: TypeError for a tensor that is not being traced, and for what is no tensor.
    """
    value = x.payload if isinstance(x, Tensor) else x
    if not isinstance(value, Value):
        raise TypeError(f"expected a value of a program, or a tensor that is being traced, got {type(x).__name__} {x}; "
                        "call enable_static() first, or work inside of a program_guard")
    return value


# ------------------------------------------------------------------------------------------------------- types
def create_shaped_type(type: Type, shape: list[int | DimExpr]) -> DenseTensorType:
    """The dense type of a tensor type's dtype, of another shape; -1 is a size that only the run knows.

    >>> create_shaped_type(DenseTensorType((2, 3), "float32"), [-1, 5])
    tensor<S0x5xf32>

    Raises: TypeError if `type` is no tensor's.
    """
    if not isinstance(type, TensorType):
        raise TypeError(f"create_shaped_type: expected the type of a tensor, got {type}")
    unknown = fresh_symbols([shape])
    return DenseTensorType(tuple(next(unknown) if isinstance(d, int) and d == -1 else d for d in shape), type.dtype)


# ------------------------------------------------------------------------------------------------ no value at all
class FakeValue(Value):
    """Stands where a list of values has none: the gradient of what has no gradient."""

    __slots__ = ()

    def initialized(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Value(nullptr value)"


def fake_value() -> FakeValue:
    """A value that is none.

    >>> is_fake_value(fake_value())
    True
    """
    return FakeValue(NULL_TYPE)


def is_fake_value(value: Any) -> bool:
    """Whether `fake_value` made it."""
    return isinstance(value, FakeValue)


def get_fake_value_name() -> str:
    """The name that Paddle gives to what is no value."""
    return "Fake_var"


def value_is_persistable(value: Any) -> bool:
    """Whether the value is program state."""
    return value_of(value).persistable


# ------------------------------------------------------------------------------------- where operations are written
def _builder() -> Builder:
    return default_main_program().trace.build


def get_current_insertion_point() -> InsertionPoint:
    """Where the main program's next operation goes."""
    return _builder().insertion_point


def set_insertion_point(place: Operation | InsertionPoint) -> None:
    """Write before this operation from now on, or at this place."""
    _builder().set_insertion_point(place)


def set_insertion_point_after(op: Operation) -> None:
    """Write after this operation from now on."""
    _builder().set_insertion_point_after(op)


def set_insertion_point_to_block_end(block: Block) -> None:
    """Write at the end of this block from now on."""
    _builder().set_insertion_point_to_block_end(block)


def reset_insertion_point_to_start() -> None:
    """Write at the start of the main program from now on."""
    _builder().set_insertion_point_to_start(default_main_program().global_block())


def reset_insertion_point_to_end() -> None:
    """Write at the end of the main program from now on."""
    _builder().set_insertion_point_to_block_end(default_main_program().global_block())


# --------------------------------------------------------------------------------- facts that operations are given
def _note(name: str, attribute: Any, none: bool) -> None:
    facts = _builder().facts
    facts.pop(name, None)
    if not none:
        facts[name] = attribute


def _noted(name: str, none: Any) -> Any:
    found = _builder().facts.get(name)
    return none if found is None else found.value


def set_op_role(role: int) -> None:
    """The attribute `op_role` of operations that the main program gets from now on; -1: none."""
    _note("op_role", Int32Attribute(role), role == -1)


def get_op_role() -> int:
    return _noted("op_role", -1)


def set_chunk_id(chunk: int) -> None:
    """The attribute `chunk_id` of operations that the main program gets from now on; -1: none."""
    _note("chunk_id", Int32Attribute(chunk), chunk == -1)


def get_chunk_id() -> int:
    return _noted("chunk_id", -1)


def set_comp_op_name(name: str) -> None:
    """The attribute `comp_op_name` of operations that the main program gets from now on: of which operator they are a
    part; "": none."""
    _note("comp_op_name", StrAttribute(name), not name)


def get_comp_op_name() -> str:
    return _noted("comp_op_name", "")


# ------------------------------------------------------------------------------------------------------ dialects
def register_paddle_dialect() -> None:
    """Does nothing: the dialect `pd_op` is there from the start."""


def register_dist_dialect() -> None:
    """Does nothing: the dialect `dist_op` comes with `minipd.dist`."""
