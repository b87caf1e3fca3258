"""What a gradient reads of the forward part: kept, or computed again.  A minimal cut says which.

A program in parts has many values between its inputs and what the gradient reads, and some of them are small:

    forward     m = max(x);  z = x - m;  e = exp(z);  s = sum(e);  y = e / s
    gradient    reads e, s, y               kept: m and s, one number per row; e and y are computed again from x

Every value that a gradient reads must be had again, from what is kept, by operations that are worth repeating.  What is
kept therefore cuts all paths from what cannot be repeated (inputs, products of matrices, reductions) to what the
gradient reads; and the cheapest such cut, each value weighed by its bytes, is a minimal cut of that graph, which by
Ford and Fulkerson (1956) is as large as the greatest flow through it.  What is there anyhow, inputs and outputs of the
forward part, weighs nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from minipd.framework.row import Trait
from minipd.framework.tensor import Tensor
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation, captured
from minipd.ir.program import Program
from minipd.ir.schema import constant_of, is_pure
from minipd.ir.sizes import nbytes
from minipd.ir.value import Value

__all__ = ["auto_recompute", "minimal_cut"]


def auto_recompute(program: Program, inputs: Sequence[Any], outputs: Sequence[Any], grad_outputs: Sequence[Any],
                   fwd_op_end_idx: int, backward_op_start_idx: int,
                   recomputable_ops: Iterable[str] | None = None) -> tuple[Program, int]:
    """Let the gradient in a program keep as few bytes of the forward part as it can, in place; Paddle's function.

    inputs, outputs: of the forward part, values or the tensors that hold them; grad_outputs: the gradients of the
    outputs.  fwd_op_end_idx, backward_op_start_idx: numbers of the last operation of the forward part, and of the first
    of the gradient.  recomputable_ops: names of operators that may run again; by default those that are element-wise,
    or views.
    Returns the program, and the number of the last operation of the forward part.

    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.framework.meta import Meta
    >>> from minipd.ir.backward import append_backward
    >>> from minipd.ir.traced import trace
    >>> from minipd.static import InputSpec
    >>> traced = trace(lambda x: x.sin().cos(), InputSpec([8], "float32", "x", stop_gradient=False))
    >>> x, y = traced.input_values[0], traced.output_values[0]
    >>> number = len(traced.program.global_block())
    >>> _ = append_backward(traced.program, [y], [x])
    >>> names = lambda: [op.name()[6:] for op in traced.program.global_block()][number:]
    >>> names().count("sin")                            # of cos; it reads the sine that has been kept
    1
    >>> _ = auto_recompute(traced.program, [x], [y], [], number - 2, number)
    >>> names().count("sin")                            # and here it is computed again from x
    2

    Raises: ValueError for numbers that are not in order.
    """
    ops = program.global_block().ops
    if not 0 <= fwd_op_end_idx < backward_op_start_idx <= len(ops):
        raise ValueError("auto_recompute: expected the last operation of the forward part before the first of the "
                         f"gradient, among {len(ops)}, got {fwd_op_end_idx} and {backward_op_start_idx}")
    ahead, behind = ops[:fwd_op_end_idx + 1], ops[backward_op_start_idx:]
    free = {x.payload if isinstance(x, Tensor) else x for x in (*inputs, *outputs, *grad_outputs)}
    free.update(v for op in behind if op.regions for v in captured(op))         # whole regions are not rewritten
    names = None if recomputable_ops is None else frozenset(recomputable_ops)
    again = {op for op in ahead if _may_run_again(op, names)}
    kept = _kept(ahead, behind, free, again)
    _rewrite(behind, ahead, kept, again)
    return program, fwd_op_end_idx


def _may_run_again(op: Operation, names: frozenset[str] | None) -> bool:
    row = op.row
    if row is None or not is_pure(op) or op.regions or row.traits & {Trait.RANDOM, Trait.COMM}:
        return False
    if names is not None:
        return op.name() in names
    return bool(row.traits & {Trait.ELEMENTWISE, Trait.VIEW}) or not row.inputs


def _kept(ahead: Sequence[Operation], behind: Sequence[Operation], free: set[Value],
          again: set[Operation]) -> set[Value]:
    """The values to keep: the minimal cut.  Each value is an edge, from (value, 0) to (value, 1), that weighs it."""
    edges: dict[Hashable, dict[Hashable, float]] = {}

    def edge(start: Hashable, end: Hashable, weight: float) -> None:
        edges.setdefault(start, {})[end] = weight
    for op in ahead:
        for v in op.results():
            edge((v, 0), (v, 1), 0 if v in free or _is_there(v) else nbytes(v))
            if op not in again:
                edge("source", (v, 0), float("inf"))
            for operand in op.operands_source() if op in again else ():
                if operand is not None:
                    edge((operand, 1), (v, 0), float("inf"))
    made: set[Value] = {v for op in ahead for v in op.results()}
    wanted = {v for op in behind for v in op.operands_source() if v in made}
    for read in wanted:
        edge((read, 1), "sink", float("inf"))
    for given in free - made:
        edge("source", (given, 0), float("inf"))
        edge((given, 0), (given, 1), 0)
    return {start[0] for start, end in minimal_cut(edges, "source", "sink")}            # type: ignore[index]


def _is_there(value: Value) -> bool:
    """Whether nobody has to keep the value: state, an input, a constant."""
    op = value.get_defining_op()
    return op is None or op.name() in ("pd_op.data", "builtin.parameter") or constant_of(value) is not None


def _rewrite(behind: Sequence[Operation], ahead: Sequence[Operation], kept: set[Value], again: set[Operation]) -> None:
    """Let the gradient read what is kept, and copies of the others, each made right before its first reader."""
    mapping, place = IrMapping(), {op: n for n, op in enumerate(ahead)}

    def repeated(value: Value | None) -> bool:
        return value is not None and value not in kept and value.get_defining_op() in again
    for reader in behind:
        needed: set[Operation] = set()
        pending: list[Value] = [v for v in reader.operands_source() if repeated(v)]
        while pending:
            value = pending.pop()
            op = value.get_defining_op()
            if op is not None and op not in needed and not mapping.has(value):
                needed.add(op)
                pending += [v for v in op.operands_source() if repeated(v)]
        for op in sorted(needed, key=place.__getitem__):
            assert reader.parent is not None
            reader.parent.insert_before(reader, clone_operation(op, mapping))
        for operand in reader.operands():
            source = operand.source()
            if repeated(source):
                operand.set_source(mapping.look_up(source))


# ------------------------------------------------------------------------------------------------------------ flow
def minimal_cut(edges: Mapping[Hashable, Mapping[Hashable, float]], source: Hashable,
                sink: Hashable) -> list[tuple[Hashable, Hashable]]:
    """The edges of least weight together without which no path leads from source to sink; weights may be infinite, and
    edges of weight 0 are cut where they stand between.

    edges: start -> {end: weight}.

    >>> minimal_cut({"s": {"a": 3, "b": 2}, "a": {"t": 2}, "b": {"t": 3}}, "s", "t")
    [('s', 'b'), ('a', 't')]

    Raises: ValueError if every cut has an infinite edge.
    """
    left: dict[Hashable, dict[Hashable, float]] = {}
    for start, ends in edges.items():
        for end, weight in ends.items():
            left.setdefault(start, {})[end] = left.get(start, {}).get(end, 0) + weight
            left.setdefault(end, {}).setdefault(start, 0)
    while path := _shortest_path(left, source, sink):
        flow = min(left[a][b] for a, b in path)
        if flow == float("inf"):
            raise ValueError("minimal_cut: expected a finite weight on every path from source to sink, got one without")
        for a, b in path:
            left[a][b] -= flow
            left[b][a] += flow
    near = _reached(left, source)
    return [(a, b) for a, ends in edges.items() if a in near for b in ends if b not in near]


def _shortest_path(left: Mapping[Hashable, Mapping[Hashable, float]], source: Hashable,
                   sink: Hashable) -> list[tuple[Hashable, Hashable]]:
    """A path through edges of which something is left (Edmonds and Karp, 1972: the shortest); empty if there is none.
    """
    before = _reached(left, source, sink)
    path, node = [], sink
    while node in before and node != source:
        path.append((before[node], node))
        node = before[node]
    return path[::-1]


def _reached(left: Mapping[Hashable, Mapping[Hashable, float]], source: Hashable,
             sink: Hashable = None) -> dict[Hashable, Hashable]:
    """What can be reached, each with where it was reached from; up to `sink`."""
    before: dict[Hashable, Hashable] = {source: source}
    ring = [source]
    while ring and sink not in before:
        following = []
        for node in ring:
            for end, weight in left.get(node, {}).items():
                if weight > 0 and end not in before:
                    before[end] = node
                    following.append(end)
        ring = following
    return before
