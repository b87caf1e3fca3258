"""The verifier: what must hold of every program, and an error that teaches where it does not.

    1. Every operation is known to its dialect; its operands, results, regions and attributes fit the dialect's entry,
       and no operand is left out.
    2. SSA: a value is defined once, before its uses, and is seen from where it is used (a region sees the values of the
       blocks around it; what is defined in a region is not seen outside).
    3. What points to each other does so both ways: use lists and operands, neighbours, owners and what they own.
    4. For an operator of the table, shape and dtype of the results are what its shape rule gives for the operands, and
       what the rule must assume of symbolic dimensions is on record in the program.
    5. A region ends with its terminator; elsewhere there is none.
    6. Names of parameters, data and outputs are unique.

Of a program in Paddle's form, and of an operation that no dialect knows where these are allowed, only 2, 3 and 5 are
asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from minipd.framework.constraints import Constraints
from minipd.framework.row import Row
from minipd.ir.block import Block
from minipd.ir.dialect import op_info
from minipd.ir.operation import Operation, user_error
from minipd.ir.schema import constant_of, mutable_operands, static_attrs, tensor_operands, vector_result
from minipd.ir.signature import check_declared, check_signature
from minipd.ir.traits import IrTrait
from minipd.ir.types import DenseTensorType, TensorType, Type, VectorType
from minipd.ir.value import Value, describe

if TYPE_CHECKING:
    from minipd.ir.program import Program

__all__ = ["VerifyError", "verify"]

#: operation -> the attribute whose value may occur once per program
UNIQUE = {"builtin.parameter": "parameter_name", "builtin.set_parameter": "parameter_name", "pd_op.data": "name",
          "builtin.shadow_output": "output_name"}


class VerifyError(ValueError):
    """A program is not well formed.  `op` is the operation at which it shows."""

    def __init__(self, op: Operation, problem: str):
        self.op = op
        super().__init__(user_error(op, problem))


def verify(program: Program, allow_unregistered: bool = False) -> Program:
    """Check everything above; returns the program.

    allow_unregistered: let operations pass that no dialect knows, as programs of the real Paddle may have them.
    Raises: VerifyError at the first violation.
    """
    names: dict[tuple[str, Any], Operation] = {}
    visible: set[Value] = set()
    assumed = program.constraints.copy()        # what shape rules assume beyond them goes here
    for op in _walk(program.global_block(), visible):
        _check_links(op)
        _check_scope(op, visible)
        if program.form == "paddle" or allow_unregistered and not op.info.registered:
            _check_regions(op)
            continue
        try:
            info = op_info(op.name())
        except KeyError as error:
            raise VerifyError(op, error.args[0]) from None
        try:
            check_signature(op, info)
            _check_regions(op)
            check_declared(op, info)
            if info.row is not None:
                with assumed.collect():
                    _check_inference(op, info.row, assumed)
                if len(program.constraints) != len(assumed):
                    for c in (c for c in assumed if c not in program.constraints):
                        raise VerifyError(op, f"it assumes {c.relation} ({c.what}), which the program does not record: "
                                              "change sizes within `with program.constraints.collect():`")
        except VerifyError:
            raise
        except (TypeError, ValueError) as error:
            raise VerifyError(op, str(error)) from error
        _check_unique(op, names)
    return program


def _walk(block: Block, visible: set[Value]) -> Iterator[Operation]:
    """Every operation in order, with `visible` kept as the set of values that the operation at hand may use: when an
    operation is yielded, `visible` holds the results of those before it in its own block and in the blocks around, and
    the arguments of these blocks, nothing else.  An operation comes before those in its regions.
    """
    # operations that are still to come, and what to do to `visible` between them
    stack: list[Operation | Callable[[], None]] = list(reversed(block.ops))
    while stack:
        item = stack.pop()
        if not isinstance(item, Operation):
            item()
            continue
        yield item
        stack.append(partial(visible.update, item.results()))
        for inner in reversed(list(item.blocks())):
            stack.append(partial(visible.difference_update, inner.args(), *(op.results() for op in inner)))
            stack += reversed(inner.ops)
            stack.append(partial(visible.update, inner.args()))


def _check_scope(op: Operation, visible: set[Value]) -> None:
    for operand in op.operands():
        value = operand.source()
        if value is None:
            continue
        if operand not in value._uses:
            raise VerifyError(op, f"operand {operand.index()}: expected it in the use list of {describe(value)}, which "
                                  "misses it; change operands with set_source only")
        if value not in visible:
            raise VerifyError(op, f"operand {operand.index()}: expected a value that is defined before and seen from "
                                  f"here, got {describe(value)}, which is defined {_where(value, op)}")
    for result in op.results():
        if result in visible:
            raise VerifyError(op, f"{describe(result)} is defined twice: the operation is in two places")
        for use in result.uses:
            if use.source() is not result or use not in use.owner().operands():
                raise VerifyError(op, f"use list of {describe(result)}: it lists operand {use.index()} of "
                                      f"{use.owner().name()}, which holds another value")


def _where(value: Value, op: Operation) -> str:
    """Where a value comes into being that `op` does not see."""
    block = value.parent_block()
    if block is None:
        return "nowhere in the program: its operation is in no block"
    if block is op.parent:
        return "after its use"
    if _root(block) is not _root(op.parent):
        return "nowhere in the program, but in another one"
    owner = block.parent_op
    return "after its use" if owner is None else f"in a region that is not around it, of {owner.name()}"


def _root(block: Block | None) -> Block | None:
    while block is not None and block.parent_block is not None:
        block = block.parent_block
    return block


def _check_links(op: Operation) -> None:
    """What points to each other does so both ways: neighbours, operands, results, regions, blocks, arguments."""
    block = op.parent
    if block is None or (op.prev.next if op.prev else block.front()) is not op or \
            (op.next.prev if op.next else block.back()) is not op:
        raise VerifyError(op, "expected a place between its neighbours in its block, got one that they do not know; "
                              "insert and remove through the block")
    for i, operand in enumerate(op.operands()):
        if operand.owner() is not op or operand.index() != i:
            raise VerifyError(op, f"operand {i}: expected it to belong here, got {operand}")
    for i, result in enumerate(op.results()):
        if result.get_defining_op() is not op or result.index() != i:
            raise VerifyError(op, f"result {i}: expected it to belong here, got {describe(result)}")
    for i, region in enumerate(op.regions):
        if region.parent_op is not op:
            raise VerifyError(op, f"region {i}: expected it to belong here, got one of "
                                  f"{'a program' if region.parent_op is None else region.parent_op.name()}")
        for inner in region.blocks:
            if inner.region is not region:
                raise VerifyError(op, f"region {i}: expected blocks that belong to it, got one of another region")
            for n, arg in enumerate(inner.args()):
                if arg.parent_block() is not inner or arg.index() != n:
                    raise VerifyError(op, f"region {i}: expected block argument {n} to belong to its block, got "
                                          f"{describe(arg)}")


def _check_regions(op: Operation) -> None:
    for i, region in enumerate(op.regions):
        if len(region.blocks) != 1:
            raise VerifyError(op, f"region {i}: expected one block, got {len(region.blocks)}")
        end = region.front().back()
        if end is None or IrTrait.TERMINATOR not in end.info.traits:
            if op.num_results() and op.info.registered:
                raise VerifyError(op, f"region {i}: expected cf.yield at its end, got "
                                      f"{'an empty block' if end is None else end.name()}")
    if IrTrait.TERMINATOR in op.info.traits:
        if op.next is not None:
            raise VerifyError(op, f"expected the end of its block after it, got {op.next.name()}")
        if op.get_parent_op() is None:
            raise VerifyError(op, "expected to stand in a region, got the global block, which has no terminator")


def _check_inference(op: Operation, row: Row, assumed: Constraints) -> None:
    """Shape and dtype of the results are what the row infers.  Skipped where an attribute is known at run time only."""
    attrs = static_attrs(op)
    for name, value in mutable_operands(op).items():
        attrs[name] = constant_of(value)
        if attrs[name] is None:
            return
    metas = row.infer_meta(*tensor_operands(op), **attrs)
    expected = [DenseTensorType(m.shape, m.dtype) for m in (metas if row.multi else (metas,))]
    got: list[Type] = [v.type() for v in op.results()]
    if vector_result(row):
        vector = got[0]
        if not isinstance(vector, VectorType):
            raise VerifyError(op, f"result 0: expected a vector of values, got {vector}")
        got = list(vector.types)
    if len(got) != len(expected):
        raise VerifyError(op, f"expected {len(expected)} results, got {len(got)}")
    for i, (t, e) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(t, TensorType) or t.dtype != e.dtype or \
                t.shape != e.shape and assumed.simplified(t.shape) != assumed.simplified(e.shape):
            raise VerifyError(op, f"result {i}: expected {e}, which its shape rule gives for these operands, got {t}")


def _check_unique(op: Operation, names: dict[tuple[str, Any], Operation]) -> None:
    if op.name() in UNIQUE:
        key = op.name(), op.attributes[UNIQUE[op.name()]].value
        if key in names:
            raise VerifyError(op, f"{UNIQUE[op.name()]}: expected a name that occurs once, got {key[1]!r} again")
        names[key] = op
