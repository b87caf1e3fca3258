"""Whether an operation fits its declaration: how many operands, results and regions, which attributes, what types.

This is the half of the verifier that looks at one operation by itself; `verify` has the half that looks at the
operations around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc
from typing import TYPE_CHECKING

from minipd.ir.attributes import ArrayAttribute, Attribute, BoolAttribute
from minipd.ir.builtin import PARAMETER_FLAGS
from minipd.ir.dialect import COMMON_ATTRIBUTES, OpInfo, TypeConstraint
from minipd.ir.traits import check_of
from minipd.ir.types import Type
from minipd.ir.value import Value

if TYPE_CHECKING:
    from minipd.ir.operation import Operation

__all__ = ["check_declared", "check_signature"]


def check_signature(op: Operation, info: OpInfo) -> None:
    """Numbers, attributes and types.

    Raises: ValueError that says what was expected, and what is there.
    """
    _check_numbers(op, info)
    _check_data(op)
    _check_attributes(op, info)
    _check_types("operand", op.operands_source(), info.inputs, info)
    _check_types("result", op.results(), info.outputs, info)


def check_declared(op: Operation, info: OpInfo) -> None:
    """What the operation's traits ask for, and its declaration itself.

    Raises: ValueError that says what was expected, and what is there.
    """
    checked = [trait for trait in info.traits if check_of(trait) is not None]
    for trait in sorted(checked, key=lambda t: t.value):        # the same one fails first in every process
        check = check_of(trait)
        assert check is not None
        check(op)
    if info.check is not None:
        info.check(op)


def _check_numbers(op: Operation, info: OpInfo) -> None:
    for what, names, got in (("operands", info.inputs, op.num_operands()), ("results", info.outputs, op.num_results())):
        # a row takes any number of tensors as one vector, so the number of its operands is fixed too
        star = info.row is None and any(n.startswith("*") for n in names)
        least = len(names) - star
        if got < least or got > least and not star:
            number = f"at least {least}" if star else f"{least}"
            raise ValueError(f"expected {number} {what} ({', '.join(names)}), got {got}")
    for operand in op.operands():
        if operand.source() is None:
            raise ValueError(f"operand {operand.index()}: expected a value, got none; operands are left out in "
                             "programs of Paddle's form only")
    if op.num_regions() != info.regions:
        called = f" ({', '.join(info.region_names)})" if info.region_names else ""
        raise ValueError(f"expected {info.regions} regions{called}, got {op.num_regions()}")


def _check_data(op: Operation) -> None:
    """What is said of an operation is said in types and attributes, not in Python's own values."""
    for name, found in op.attributes.items():
        if not isinstance(found, Attribute):
            raise ValueError(f"attribute {name!r}: expected an Attribute, got {found!r}; store it with set_attr")
    for i, result in enumerate(op.results()):
        if not isinstance(result.type(), Type):
            raise ValueError(f"result {i}: expected a Type, got {result.type()!r}")


def _check_attributes(op: Operation, info: OpInfo) -> None:
    for name in op.attributes:
        if name not in info.attrs and name not in COMMON_ATTRIBUTES:
            hint = " (it is an operand here)" if info.row is not None and name in info.row.mutable else ""
            raise ValueError(f"attribute {name!r}: expected one of {', '.join(info.attrs) or 'none'}, or a common "
                             f"one{hint}")
    for name in info.required:
        if name not in op.attributes:
            raise ValueError(f"expected attribute {name!r}, got none")
    for name, kinds in info.kinds.items():
        found = op.attributes.get(name)
        if found is not None and not isinstance(found, kinds):
            raise ValueError(f"attribute {name!r}: expected one of kind {' or '.join(k.kind for k in kinds)}, got "
                             f"{found}")
    for name in ("stop_gradient", "persistable", *(PARAMETER_FLAGS if op.name() == "builtin.parameter" else ())):
        flag = op.attributes.get(name)
        if flag is not None and not (isinstance(flag, ArrayAttribute) and len(flag.items) == op.num_results()
                                     and all(isinstance(item, BoolAttribute) for item in flag.items)):
            raise ValueError(f"attribute {name!r}: expected an array with one entry for each of the "
                             f"{op.num_results()} results, true or false, got {flag}")


def _check_types(what: str, values: Sequence[Value], names: tuple[str, ...], info: OpInfo) -> None:
    """The declared types.  A name with a star stands for as many values as there are more than names."""
    if not info.types:
        return
    more = len(values) - len(names) + 1
    spread = [name for name in names for _ in range(more if name.startswith("*") else 1)]
    for i, (name, value) in enumerate(zip(spread, values, strict=False)):
        constraint = info.types.get(name)
        if constraint is not None and not fits(value.type(), constraint):
            raise ValueError(f"{what} {i}: expected {described(constraint)}, got {value.type()}")


def fits(type: Type, constraint: TypeConstraint) -> bool:
    """Whether a type is what a declaration asks for."""
    if isinstance(constraint, Type):
        return type is constraint
    return isinstance(type, constraint) if isinstance(constraint, _Class) else bool(constraint(type))


_Class = type


def described(constraint: TypeConstraint) -> str:
    """What a declaration asks for, in words."""
    if isinstance(constraint, Type):
        return str(constraint)
    if isinstance(constraint, _Class):
        return f"a value of type {getattr(constraint, 'word', None) or constraint.__name__}"
    return cleandoc(constraint.__doc__ or constraint.__name__).splitlines()[0].rstrip(".")
