"""Operations: a name with its dialect, operands, typed attributes, results, regions.

An operation has no Python class of its own.  What its name means is looked up in its dialect (`info`), and for tensor
operators in the operator table (`row`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from minipd.framework.constraints import PACKAGE
from minipd.framework.row import Row, Trait
from minipd.ir.attributes import ArrayAttribute, Attribute, BoolAttribute, attribute
from minipd.ir.dialect import OpInfo, info_or_unregistered
from minipd.ir.interfaces import Interface, interface_named, interfaces_of
from minipd.ir.traits import IrTrait
from minipd.ir.types import NULL_TYPE, Type
from minipd.ir.value import OpOperand, OpResult, Value, describe

if TYPE_CHECKING:
    from minipd.ir.block import Block
    from minipd.ir.control_view import IfOp, WhileOp
    from minipd.ir.mapping import CloneOptions, IrMapping
    from minipd.ir.region import Region

__all__ = ["Operation"]

I = TypeVar("I", bound=Interface)
#: file and line
Place = tuple[str, int]


class Operation:
    """One operation, in a block or not yet in one.

    Args:
        name: dialect and name, `pd_op.add`.
        operands: the values it reads; None for an optional one that is left out, which only programs in Paddle's form
            have.
        attributes: Python values or `Attribute`s by name; None means absent.
        result_types: one type per result.
        num_regions: how many (empty) regions it owns.
        made_at: file and line to name in errors if there is no attribute `op_callstack`; default: the innermost line
            outside of the package.  It is no part of what the program says.
    """

    __slots__ = ("_name", "_operands", "_results", "attributes", "made_at", "next", "order", "parent", "prev",
                 "regions")

    def __init__(self, name: str, operands: Sequence[Value | None] = (), attributes: dict[str, Any] | None = None,
                 result_types: Sequence[Type] = (), num_regions: int = 0, made_at: Place | None = None):
        self._name = name
        self._operands = [OpOperand(self, i, v) for i, v in enumerate(operands)]
        self.attributes: dict[str, Attribute] = {
            k: attribute(v) for k, v in (attributes or {}).items() if v is not None}
        self._results = [OpResult(t, self, i) for i, t in enumerate(result_types)]
        self.regions: list[Region] = regions_of(self, num_regions) if num_regions else []
        self.parent: Block | None = None
        self.prev: Operation | None = None      # neighbours in the block's list
        self.next: Operation | None = None
        self.order = 0                          # grows along the block while the block's numbering is valid
        self.made_at = made_at if made_at is not None or "op_callstack" in self.attributes else _line_outside()

    # ------------------------------------------------------------------------------------------------ meaning
    def name(self) -> str:
        return self._name

    @property
    def info(self) -> OpInfo:
        """What the dialect says about operations of this name; `info.registered` is False if none knows it."""
        return info_or_unregistered(self._name)

    @property
    def row(self) -> Row | None:
        """The operator's row, None for operations of the program itself (parameters, control flow) and for operations
        that no dialect knows."""
        return info_or_unregistered(self._name).row

    def has_trait(self, trait: Trait | IrTrait | str) -> bool:
        """Whether the operation has a trait, given as it is or by name: `op.has_trait("Commutative")`."""
        traits = self.info.traits
        return trait in traits or isinstance(trait, str) and any(t.value == trait for t in traits)

    def has_interface(self, which: str | type[Interface]) -> bool:
        """Whether the operation can do what an interface asks: `op.has_interface("Vjp")`."""
        return interface_named(which).entry_of(self.info) is not None

    def interface(self, which: str | type[I]) -> I:
        """The operation, seen as something that has the interface.

        Raises: TypeError if it has not.
        """
        cls = interface_named(which)
        entry = cls.entry_of(self.info)
        if entry is None:
            there = ", ".join(interfaces_of(self.info)) or "no interface"
            raise TypeError(user_error(self, f"expected an operation with interface {cls.name}, got one with {there}"))
        return cast(I, cls(self, entry))

    # ----------------------------------------------------------------------------------------------- operands
    def num_operands(self) -> int:
        return len(self._operands)

    def operands(self) -> list[OpOperand]:
        return list(self._operands)

    def operand(self, index: int) -> OpOperand:
        return self._operands[index]

    def operand_source(self, index: int) -> Value:
        return self._operands[index].source()

    def operands_source(self) -> list[Value]:
        return [o.source() for o in self._operands]

    def append_operand(self, value: Value) -> None:
        """One more operand at the end (a terminator that yields one more value)."""
        self._operands.append(OpOperand(self, len(self._operands), value))

    def erase_operand(self, index: int) -> None:
        """One operand less; those behind it move up."""
        self._operands.pop(index).set_source(None)
        for i, operand in enumerate(self._operands):
            operand._index = i

    # ------------------------------------------------------------------------------------------------ results
    def num_results(self) -> int:
        return len(self._results)

    def results(self) -> list[OpResult]:
        return list(self._results)

    def result(self, index: int) -> OpResult:
        return self._results[index]

    def add_result(self, type: Type) -> OpResult:
        """One more result at the end (an `if` whose regions yield one more value).

        Attributes with one entry per result (`stop_gradient`, ...) get Paddle's default for it.
        """
        result = OpResult(type, self, len(self._results))
        self._results.append(result)
        for name in ("stop_gradient", "persistable"):
            flags = self.attributes.get(name)
            if isinstance(flags, ArrayAttribute):
                self.attributes[name] = ArrayAttribute((*flags.items, BoolAttribute(name == "stop_gradient")))
        return result

    def erase_result(self, index: int) -> None:
        """One result less; those behind it move up, and so do the attributes with one entry per result.

        Raises: ValueError if it is still used.
        """
        if not self._results[index].use_empty():
            raise ValueError(f"erase_result: expected a result without users, but result {index} of {self._name} is "
                             f"used by {self._results[index].all_used_ops()[0].name()}; replace its uses first")
        for name in ("stop_gradient", "persistable"):
            flags = self.attributes.get(name)
            if isinstance(flags, ArrayAttribute):
                self.attributes[name] = ArrayAttribute((*flags.items[:index], *flags.items[index + 1:]))
        del self._results[index]
        for i, result in enumerate(self._results):
            result._index = i

    def replace_all_uses_with(self, values: Sequence[Value]) -> None:
        """Result `i` is replaced everywhere by `values[i]`."""
        if len(values) != len(self._results):
            raise ValueError(f"{self._name}: expected {len(self._results)} values to replace its results, "
                             f"got {len(values)}")
        for old, new in zip(self._results, values, strict=True):
            old.replace_all_uses_with(new)

    # --------------------------------------------------------------------------------------------- attributes
    def attrs(self) -> dict[str, Any]:
        """The attributes as Python values, as they are stored (axes that are operands are not among them)."""
        return {k: a.value for k, a in self.attributes.items()}

    def has_attr(self, name: str) -> bool:
        return name in self.attributes

    def set_attr(self, name: str, value: Any, kind: str | None = None) -> None:
        """Store a Python value, or an `Attribute`, under `name`."""
        self.attributes[name] = attribute(value, kind)

    def erase_attr(self, name: str) -> None:
        del self.attributes[name]

    def set_bool_attr(self, name: str, value: bool) -> None:
        self.set_attr(name, value, "bool")

    def set_int_attr(self, name: str, value: int) -> None:
        self.set_attr(name, value, "i32")

    def set_str_attr(self, name: str, value: str) -> None:
        self.set_attr(name, value, "str")

    def set_int_array_attr(self, name: str, value: Sequence[int]) -> None:
        self.set_attr(name, value, "ints")

    def set_str_array_attr(self, name: str, value: Sequence[str]) -> None:
        self.set_attr(name, value, "array")

    # -------------------------------------------------------------------------------------------------- names
    def get_input_names(self) -> list[str]:
        """The names of the operands in the schema."""
        return list(self.info.inputs)

    def get_output_names(self) -> list[str]:
        """The names of the results in the schema."""
        return list(self.info.outputs)

    def get_attr_names(self) -> list[str]:
        """The names of the attributes in the schema, without those that are operands."""
        return list(self.info.attrs)

    # ------------------------------------------------------------------------------------------------- places
    def num_regions(self) -> int:
        return len(self.regions)

    def blocks(self) -> Iterator[Block]:
        """The blocks of all regions."""
        return (block for region in self.regions for block in region.blocks)

    def get_parent_block(self) -> Block | None:
        return self.parent

    def get_parent_op(self) -> Operation | None:
        """The operation in whose region this one is; None in a program's global block."""
        return None if self.parent is None else self.parent.parent_op

    def is_before(self, other: Operation) -> bool:
        """Whether this operation comes before `other`, which must be in the same block."""
        assert self.parent is not None and self.parent is other.parent, "is_before compares within one block"
        self.parent.number()
        return self.order < other.order

    def move_before(self, other: Operation) -> None:
        """Take this operation out of its place and put it before `other` (in any block that is not inside of it)."""
        assert other.parent is not None, "move_before: the target is in no block"
        other.parent.check_outside(self)
        if self.parent is not None:
            self.parent.remove(self)
        other.parent.insert_before(other, self)

    def move_after(self, other: Operation) -> None:
        """Take this operation out of its place and put it after `other` (in any block that is not inside of it)."""
        assert other.parent is not None, "move_after: the target is in no block"
        other.parent.check_outside(self)
        if self.parent is not None:
            self.parent.remove(self)
        other.parent.insert_before(other.next, self)

    def erase(self) -> None:
        """Remove this operation, with everything in its regions, from the program.

        Raises: ValueError if a result is still used, naming the user.
        """
        for result in self._results:
            use = result.first_use()
            if use is not None:
                raise ValueError(f"erase {self._name}: expected results without users, but result {result.index()} is "
                                 f"operand {use.index()} of {use.owner().name()}; replace its uses first")
        if self.parent is not None:
            self.parent.remove(self)
        for op in walk_inside(self):
            op.drop_operands()

    def drop_operands(self) -> None:
        """Let go of every operand: the first half of erasing."""
        for operand in self._operands:
            operand.set_source(None)
        self._operands = []

    def clone(self, mapping: IrMapping | None = None, options: CloneOptions | None = None) -> Operation:
        """A copy in no block, its operands and regions mapped by `mapping`, which learns the new results.

        options: what is copied besides the attributes and the types of the results; default: everything.
        """
        from minipd.ir.mapping import ALL, IrMapping, clone_operation
        return clone_operation(self, IrMapping() if mapping is None else mapping, ALL if options is None else options)

    # ------------------------------------------------------------------------------------ facts, by Paddle's names
    @property
    def callstack(self) -> list[str]:
        """The lines at which the operation was made."""
        stack = self.attributes.get("op_callstack")
        if isinstance(stack, ArrayAttribute):
            return list(stack.value)
        return [] if self.made_at is None else [f"{self.made_at[0]}:{self.made_at[1]}"]

    @property
    def op_role(self) -> int:
        """What the operation is for, as a number that the user gave; -1 if none."""
        return self.int_attr("op_role", -1)

    @property
    def chunk_id(self) -> int:
        """Which part of a pipeline it belongs to; -1 if none."""
        return self.int_attr("chunk_id", -1)

    def int_attr(self, name: str, default: int | None = None) -> int:
        """Raises: KeyError if there is no such attribute, and no default."""
        return self._plain(name, int, default)

    def str_attr(self, name: str, default: str | None = None) -> str:
        """Raises: KeyError if there is no such attribute, and no default."""
        return self._plain(name, str, default)

    def _plain(self, name: str, kind: type, default: Any) -> Any:
        found = self.attributes[name].value if name in self.attributes or default is None else default
        if not isinstance(found, kind):
            raise TypeError(user_error(self, f"attribute {name!r}: expected {kind.__name__}, got {found!r}"))
        return found

    def copy_attrs_from(self, other: Operation) -> None:
        """Take over all attributes of another operation."""
        self.attributes.update(other.attributes)

    def as_if_op(self) -> IfOp:
        """Raises: TypeError if it is no `pd_op.if`."""
        from minipd.ir.control_view import IfOp
        return IfOp(self)

    def as_while_op(self) -> WhileOp:
        """Raises: TypeError if it is no `pd_op.while`."""
        from minipd.ir.control_view import WhileOp
        return WhileOp(self)

    def __repr__(self) -> str:
        operands = ", ".join(str(NULL_TYPE if v is None else v.type()) for v in self.operands_source())
        return f"{self._name}({operands}) -> {', '.join(str(r.type()) for r in self._results)}"


def _line_outside() -> Place | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def regions_of(op: Operation, number: int) -> list[Region]:
    """So many empty regions."""
    from minipd.ir.region import Region  # whose blocks hold operations
    return [Region(op) for _ in range(number)]


def walk_inside(op: Operation) -> Iterator[Operation]:
    """`op` and every operation in its regions, outer before inner, in order.  Needs no recursion."""
    stack = [op]
    while stack:
        op = stack.pop()
        yield op
        stack.extend(reversed([inner for block in op.blocks() for inner in block.ops]))


def captured(op: Operation) -> list[Value]:
    """The values that the regions of `op` read from around it, in order, each once."""
    inside: set[Value] = set()
    found: dict[Value, None] = {}
    pending: list[Operation] = []
    for block in reversed(list(op.blocks())):
        inside.update(block.args())
        pending += reversed(block.ops)
    while pending:
        inner = pending.pop()
        found.update((v, None) for v in inner.operands_source() if v is not None and v not in inside and v not in found)
        inside.update(inner.results())
        for block in reversed(list(inner.blocks())):
            inside.update(block.args())
            pending += reversed(block.ops)
    return list(found)


def user_error(op: Operation, problem: str) -> str:
    """`problem` with what is needed to find the operation: its name, its operands, the user's line if it is known."""
    where = op.attributes.get("op_callstack")
    if isinstance(where, ArrayAttribute) and where.items:
        line = f" (from {where.value[0]})"
    else:
        line = f" (from {op.made_at[0]}:{op.made_at[1]})" if op.made_at else ""
    operands = "; ".join(map(describe, op.operands_source()))
    return f"{op.name()}{line}: {problem}" + (f"\n  its operands: {operands}" if operands else "")
