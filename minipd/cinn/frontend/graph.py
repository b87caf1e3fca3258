"""Who reads what in a block, as grouping sees it.

Three sorts of operations:

* *free* ones move no data: views, parts and constants (`compute` entries Broadcast, Indexed if it is one piece, and
  Fill), and bundles.  A group takes a copy of each that it needs, so they stand in no one's way: a path through them is
  an edge.
* *members* are calls that a group may hold: element-wise operators, reductions, and what is put together from pieces.
* all others stay where they are.

A *barrier* (a collective, a region, a side effect) ends a segment: members before and after it are never in one group,
so what a rank does between two messages stays between them.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence

from minipd.cinn.compute.table import Broadcast, Elementwise, Fill, Indexed, Reduction, compute_of
from minipd.cinn.dialect import FUSION
from minipd.cinn.lower import CannotLower, lower_group
from minipd.framework.dim import same
from minipd.framework.row import Trait
from minipd.ir.block import Block
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation, captured
from minipd.ir.schema import constant_of, is_attribute_only, mutable_operands, op_attrs, result_values, tensor_operands
from minipd.ir.sizes import nbytes
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__ = ["Graph", "in_order", "is_barrier", "is_free", "is_member", "outputs_of", "reads_of", "sources_of",
           "why_not_lowered"]

BUNDLE = "builtin.combine"
#: what is less than one in so many of an array is a small part
PART = 4


def is_free(op: Operation) -> bool:
    """A view, a constant, a part or a bundle: nothing is computed, and nothing moves."""
    if op.name() == BUNDLE or IrTrait.CONSTANT in op.info.traits:
        return True
    compute = None if op.row is None or not _attributes_known(op) else compute_of(op.row)
    match compute:
        case Fill():
            return not tensor_operands(op) and _lowers(op)      # (full_like reads the shape of another tensor)
        case Broadcast() | Indexed() if op.num_results() == 1 and tensor_operands(op):      # (eye reads nothing)
            return _is_seen_in_rows(op, compute) and _lowers(op)
    return False


def _is_seen_in_rows(op: Operation, compute: Broadcast | Indexed) -> bool:
    """Whether a kernel may as well read the operand.  Otherwise the view is made outside: of an array that is turned
    over, whose rows are not next to each other in memory, and of a small part of one."""
    tensors, out = tensor_operands(op), result_values(op)[0]
    x = tensors[0]
    try:
        if isinstance(compute, Broadcast):
            dims = compute.dims(op_attrs(op), x.shape, out.shape)
            kept = [i for i in dims or () if i is not None and not same(x.shape[i], 1)]
            return kept[-1:] == sorted(kept)[-1:]
        pieces = compute.pieces(op_attrs(op), [v.shape for v in tensors], [out.shape], 0)
    except TypeError:
        return False
    return len(pieces) == 1 and pieces[0].operand == 0 and PART * nbytes(out) >= nbytes(x)


def is_member(op: Operation) -> bool:
    """Whether the operation alone could be a kernel."""
    row = op.row
    if row is None or not isinstance(compute_of(row), Elementwise | Reduction | Indexed) or not _attributes_known(op):
        return False
    return not (row.traits & {Trait.RANDOM, Trait.SIDE_EFFECT, Trait.COMM}) and _lowers(op) and not is_free(op)


def _attributes_known(op: Operation) -> bool:
    return all(constant_of(v) is not None for v in mutable_operands(op).values())


def _lowers(op: Operation) -> bool:
    return why_not_lowered(op) is None


def why_not_lowered(op: Operation) -> str | None:
    """Why the operation alone cannot be lowered, None if it can.  What it is called with decides that, so the answers
    are kept."""
    tensors = tensor_operands(op)
    which = tuple(tensors.index(v) for v in tensors)        # x + x is another call than x + y
    key = (op.name(), which, *(v.type() for v in tensors), *map(repr, op_attrs(op).items()))
    if key not in _ANSWERS:
        if len(_ANSWERS) >= 4096:
            _ANSWERS.clear()
        try:
            lower_group([op], list(dict.fromkeys(tensors)), result_values(op))
            _ANSWERS[key] = None
        except CannotLower as problem:
            _ANSWERS[key] = str(problem)
    return _ANSWERS[key]


_ANSWERS: dict[tuple, str | None] = {}


def is_barrier(op: Operation) -> bool:
    """Whether nothing may be fused across the operation."""
    traits = op.info.traits
    return bool(op.regions) or Trait.COMM in traits or Trait.SIDE_EFFECT in traits


class Graph:
    """The members and the others of a block, with edges between them that look through free operations.

    position: of each operation in the block.  segment: of each member.
    readers, producers: operation -> those, not free, that read its results, or whose results it reads.
    """

    def __init__(self, block: Block):
        self.members: list[Operation] = []
        self.position: dict[Operation, float] = {}
        self.segment: dict[Operation, int] = {}
        self.free: set[Operation] = set()
        self.readers: dict[Operation, list[Operation]] = {}
        self.producers: dict[Operation, list[Operation]] = {}
        segment = 0
        for at, op in enumerate(block):
            self.position[op] = at
            if is_free(op):
                self.free.add(op)
                continue
            self.readers[op] = []
            self._link(op)
            if is_barrier(op):
                segment += 1
            elif is_member(op):
                self.members.append(op)
                self.segment[op] = segment

    def copy(self, ops: Sequence[Operation], readers: Sequence[Operation]) -> list[Operation]:
        """Copies of the members `ops`, in order, in front of the first of the members `readers` that needs them; these
        read the copies from now on, through copies of the views in between."""
        needing = [r for r in readers if any(p in ops for p in self.producers[r])]
        first = min(needing, key=self.position.__getitem__)
        mapping = IrMapping()
        made: list[Operation] = []

        def copied(op: Operation) -> Operation:
            for v in op.operands_source():
                through(v)
            new = clone_operation(op, mapping)
            assert first.parent is not None
            first.parent.insert_before(first, new)
            made.append(new)
            return new

        def through(value: Value) -> Value:
            op = value.get_defining_op()
            if op in self.free and not mapping.has(value) and any(p in ops for p in self._origins(op)):
                self.free.add(copied(op))
            return mapping.look_up(value)
        copies = [copied(op) for op in ops]
        for reader in needing:
            for operand in reader.operands():
                operand.set_source(through(operand.source()))
        for i, op in enumerate(made):
            self.position[op] = self.position[first] - 1 + (i + 1) / (len(made) + 1)
        for op in copies:
            self.segment[op] = self.segment[first]
            self.readers[op] = []
            insort(self.members, op, key=self.position.__getitem__)
        for op in (*copies, *needing):
            self._link(op)
        return copies

    def remove_unused(self, op: Operation) -> bool:
        """Erase a member if nobody reads it, not even through views; returns whether."""
        if self.readers[op]:
            return False
        views = [user for v in op.results() for user in v.all_used_ops()]
        for user in views:
            views += [u for v in user.results() for u in v.all_used_ops()]
        if any(user not in self.free for user in views):
            return False
        for view in reversed(list(dict.fromkeys(views))):
            self.free.discard(view)
            del self.position[view]
            view.erase()
        for producer in self.producers.pop(op):
            self.readers[producer].remove(op)
        self.members.remove(op)
        del self.readers[op], self.position[op], self.segment[op]
        op.erase()
        return True

    def _link(self, op: Operation) -> None:
        """The edges that lead to an operation, as its operands say now."""
        for producer in self.producers.get(op, ()):
            self.readers[producer].remove(op)
        self.producers[op] = list(dict.fromkeys(self._origins(op)))
        for producer in self.producers[op]:
            self.readers[producer].append(op)

    def _origins(self, op: Operation) -> Iterator[Operation]:
        """The operations of this block, not free, whose results `op` reads, if only through views."""
        pending = reads_of(op)
        while pending:
            producer = pending.pop().get_defining_op()
            if producer is None or producer not in self.position:
                continue
            if producer in self.free:
                pending += producer.operands_source()
            else:
                yield producer


def reads_of(op: Operation) -> list[Value]:
    """What an operation reads, with its regions.  (What a group reads inside are its operands, or constants in it.)"""
    inside = captured(op) if op.regions and op.name() != FUSION else []
    return op.operands_source() + inside


def sources_of(ops: list[Operation], free: set[Operation]) -> tuple[list[Operation], list[Value]]:
    """What the members `ops` (in order) need: the free operations to copy, in order, and the values from outside.

    Constants that stand for attributes are copied too.
    """
    inside = {v for op in ops for v in op.results()}
    copied: dict[Operation, None] = {}
    outside: dict[Value, None] = {}

    def visit(value: Value) -> None:
        if value in inside:
            return
        op = value.get_defining_op()
        if op is None or op not in free and not _constant(op):
            outside.setdefault(value)
            return
        if op not in copied:
            for v in op.operands_source():
                visit(v)
            copied[op] = None
    for op in ops:
        for v in op.operands_source():
            visit(v)
    return list(copied), list(outside)


def _constant(op: Operation) -> bool:
    return IrTrait.CONSTANT in op.info.traits and is_attribute_only(op)


def outputs_of(ops: list[Operation], free: set[Operation]) -> list[Value]:
    """The values of the members `ops` that somebody else reads."""
    inside = set(ops)

    def read_outside(value: Value) -> bool:
        for use in value.uses:
            user = use.owner()
            if user not in inside and (user not in free or any(map(read_outside, user.results()))):
                return True
        return False
    return [v for op in ops for v in op.results() if read_outside(v)]


def in_order(copied: list[Operation], ops: list[Operation]) -> list[Operation]:
    """Copies of free operations and the members, what is read before who reads it."""
    where = {v: op for op in (*copied, *ops) for v in op.results()}
    done: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        if op in done:
            return
        for value in op.operands_source():
            if value in where:
                visit(where[value])
        done[op] = None
    for op in ops:
        visit(op)
    return list(done)
