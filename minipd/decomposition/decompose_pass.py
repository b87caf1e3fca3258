"""Decomposing programs: an operation is replaced by its row's rule, traced in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minipd.decomposition.prim import PRIM_CONFIG
from minipd.decomposition.table import COLUMN
from minipd.framework.context import Ground, using
from minipd.framework.dim import is_symbolic, same
from minipd.framework.tensor import Tensor
from minipd.ir.attributes import StrAttribute
from minipd.ir.dce import erase_unread
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.schema import constant_of, mutable_operands, op_attrs, result_values, tensor_operands
from minipd.ir.trace import Trace
from minipd.ir.value import Value
from minipd.passes.rewriter import inherited

__all__ = ["DecomposePass", "decompose", "write_rule"]

#: what an operation of a decomposition says of the one it comes from (Paddle's attribute)
ORIGIN = "comp_op_name"


class DecomposePass:
    """Replaces operations that have a rule, and those that rules write, as long as `select` says so.

    select(op): whether to decompose this operation; by default every one that has a rule.
    replaced: after a run, for each result of an operation that is gone, the value that stands for it now.
    """

    name = "decompose"

    def __init__(self, select: Callable[[Operation], bool] = lambda op: True):
        self.select = select
        self.replaced: dict[Value, Value] = {}

    def run(self, program: Program) -> int:
        """Decompose in every region; returns how many operations have been replaced.

        Raises: ValueError if rules lead from an operator back to itself.
        """
        self.replaced = {}
        trace, done = Trace(program), 0
        #: operation -> the rows whose rules it comes from
        chains: dict[Operation, tuple[str, ...]] = {}
        pending = list(reversed(list(program.walk())))
        while pending:
            op = pending.pop()
            if not (_has_rule(op) and self.select(op)):
                continue
            assert op.row is not None
            chain = chains.pop(op, ())
            if op.row.name in chain:
                raise ValueError(user_error(op, "expected rules that come to an end, got the decompositions of "
                                                + " -> ".join((*chain, op.row.name))))
            written = self._replace(program, trace, op)
            chains.update(dict.fromkeys(written, (*chain, op.row.name)))
            pending += reversed(written)
            done += 1
        return done

    def _replace(self, program: Program, trace: Trace, op: Operation) -> list[Operation]:
        """Write the rule before `op`, and take `op` out; returns what has been written."""
        before = op.prev
        new = write_rule(program, trace, op)
        written = _written_since(before, op)
        for old, value in zip(result_values(op), new, strict=True):
            old.replace_all_uses_with(value)
            self.replaced[old] = value
        sources = op.operands_source()
        for user in [user for v in op.results() for user in v.all_used_ops()]:      # that took a vector apart
            user.erase()
        op.erase()
        erase_unread(sources)
        return written


def write_rule(program: Program, trace: Trace, op: Operation) -> list[Value]:
    """Write the rule of `op` in front of it; returns the values that its results would be."""
    row, before = op.row, op.prev
    assert row is not None
    trace.build.set_insertion_point(op)
    with using(ground=_InPlace(trace), middle=None, amp=None, grad=False), program.constraints.collect():
        out = row.columns[COLUMN](*map(Tensor, tensor_operands(op)), **op_attrs(op))
        new = [trace.value(o.payload) for o in (out if row.multi else (out,))]
    origin = op.attributes.get(ORIGIN, StrAttribute(op.name()))
    facts = inherited(op)
    for part in _written_since(before, op):
        part.attributes.update(facts, **{ORIGIN: origin})
    return new


def _written_since(before: Operation | None, op: Operation) -> list[Operation]:
    """The operations between two of a block."""
    written = []
    found = op.prev
    while found is not before:
        assert found is not None
        written.append(found)
        found = found.prev
    return written[::-1]


class _InPlace(Ground):
    """A trace whose values say of themselves whether a gradient flows; no handle has been asked."""

    def __init__(self, trace: Trace):
        self.trace = trace

    def run(self, row: Any, payloads: Sequence[Any], attrs: dict[str, Any]) -> Any:
        results = self.trace.build.call(row, [self.trace.value(p, payloads, row) for p in payloads], attrs)
        return results if row.multi else results[0]


def _has_rule(op: Operation) -> bool:
    """Whether there is a rule, and every attribute that it needs is known now."""
    row = op.row
    return row is not None and COLUMN in row.columns and not _is_told_by_sizes(op) and all(
        constant_of(v) is not None for v in mutable_operands(op).values())


def _is_told_by_sizes(op: Operation) -> bool:
    """Whether only a run knows along which dimensions `reduce_as` sums: Broadcast(S0,S1) down to S0, if S0 is 1."""
    assert op.row is not None
    if op.row.name != "reduce_as":
        return False
    own, wanted = (v.shape for v in tensor_operands(op))
    return any(is_symbolic(d) and not same(d, n)
               for d, n in zip(wanted, own[len(own) - len(wanted):], strict=True))


def decompose(program: Program, src_vars: Sequence[Any], blacklist: Iterable[str] = (),
              whitelist: Iterable[str] = (), start_index: int = 0, end_index: int = -1) -> list[Any]:
    """Decompose every operation of the program that has a rule, in place; Paddle's `paddle.decomposition.decompose`.

    blacklist: names (`pd_op.softmax`) of operations that stay.  whitelist: if given, only these are decomposed.
    start_index, end_index: only operations of the global block from number start_index on, and before end_index (-1:
    all).
    Returns what stands for `src_vars` now: values, or the tensors that hold them in static mode.

    >>> from minipd.framework.row import ROWS
    >>> from minipd.ir.builder import Builder
    >>> program = Program()
    >>> build = Builder(program.global_block())
    >>> y, = build.call(ROWS["silu"], (build.data("x", (2,), "float32"),), {})
    >>> new, = decompose(program, [y], blacklist=["pd_op.sigmoid"])
    >>> [op.name() for op in program.global_block()], new
    (['pd_op.data', 'pd_op.sigmoid', 'pd_op.multiply'], result 0 of pd_op.multiply: tensor<2xf32>)
    """
    refused, wanted = frozenset(blacklist) | PRIM_CONFIG["forward_blacklist"], frozenset(whitelist)
    ops = program.global_block().ops
    outside = {op for i, op in enumerate(ops) if i < start_index or end_index != -1 and i >= end_index}

    def select(op: Operation) -> bool:
        return op.name() not in refused and (not wanted or op.name() in wanted) and op not in outside
    run = DecomposePass(select)
    run.run(program)

    def now(x: Any) -> Any:
        value = x.payload if isinstance(x, Tensor) else x
        if value not in run.replaced:
            return x
        while value in run.replaced:        # what a rule wrote may have been replaced in turn
            value = run.replaced[value]
        return Tensor(value) if isinstance(x, Tensor) else value
    return [now(x) for x in src_vars]
