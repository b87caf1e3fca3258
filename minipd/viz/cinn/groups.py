"""Drawing what the compiler fuses: a program in its fusion groups, coloured by their kinds, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from minipd.cinn.compile import prepare
from minipd.cinn.dialect import FUSION
from minipd.cinn.frontend import FusionTracker, build_groups
from minipd.cinn.frontend.tracker import NAME, Edge
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.viz.ir.program import Mark, program_graph, value_names
from minipd.viz.render import draw_graph
from minipd.viz.svg import Svg

__all__ = ["Grouped", "grouped", "groups"]

#: the arrow of a value that goes through memory; and of a library call's result, over which a kernel works in place
NOT_FUSED, IN_PLACE = "second dash", "way"
WIDE, SIZE, LINE = 110, 11, 15


class Grouped(NamedTuple):
    """A program in fusion groups.  edges: what was decided about its values; empty where that is not known."""

    program: Program
    edges: Sequence[Edge] = ()


def groups(of: Program | Grouped, title: str = "fusion groups", ops: range | None = None) -> Svg:
    """The picture of a program's fusion groups: what each frame holds becomes one kernel; its colour is its kind.

    An orange arrow is a value that goes through memory though two kernels might have shared it; below the picture
    stands why they do not.  A green one is the result of a library call, over which the kernel works in place.  An
    arrow inside of a frame tells, when the pointer rests on it, which step fused it.
    The program itself is not changed.  One that has no groups yet is decomposed and grouped; `ops` counts out a part of
    what comes of that.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> groups(trace(lambda x: (x * x).exp(), Meta((2,), dtypes.float32.np)).program)
    <Svg 'fusion groups', ...>
    """
    found = of if isinstance(of, Grouped) else grouped(of)
    names = value_names(found.program.global_block())
    said = dict(_links(found))
    links = {pair: Mark("" if edge.fused else IN_PLACE if edge.policy == "Anchor" else NOT_FUSED, (_why(edge),))
             for pair, edge in said.items()}
    graph = program_graph(found.program, title, ops, links=links)
    sheet = draw_graph(graph)
    y = sheet.bottom + 10
    for words in _reasons(said, names, None if ops is None else [o for i, o in enumerate(
            found.program.global_block()) if i in ops]):
        for i, line in enumerate(wrap(words, WIDE)):
            sheet.text(sheet.left + 14 * bool(i), y + 9, line, "dim", SIZE)
            y += LINE
    return sheet.done(graph.dot())


def _reasons(said: Mapping[tuple[Operation, Operation], Edge], names: Mapping[Value, str],
             shown: Sequence[Operation] | None) -> Iterator[str]:
    """A line for each value that is not fused with readers of it, and the reason.  shown: what is drawn, None for all.
    """
    readers: dict[tuple[Operation, str], list[str]] = {}
    for (maker, reader), edge in said.items():
        if not edge.fused and (shown is None or _stands_in(maker, shown) and _stands_in(reader, shown)):
            readers.setdefault((maker, _why(edge)), []).append(_short(reader))
    for (maker, why), who in readers.items():
        given = " ".join(names[r] for r in maker.results() if r in names)
        yield f"{_short(maker)} {given} → {', '.join(dict.fromkeys(who))}: {why}"


def grouped(program: Program) -> Grouped:
    """A copy of a program, decomposed and in fusion groups, with the reasons; the program itself if it has groups."""
    if any(op.name() == FUSION for op in program.walk()):
        return Grouped(program)
    copy, tracker = program.clone(), FusionTracker()
    prepare(copy)
    build_groups(copy, tracker)
    return Grouped(copy, tracker.edges)


def is_group(op: Operation) -> bool:
    """Whether an operation is a fusion group."""
    return op.name() == FUSION


def _links(found: Grouped) -> Iterator[tuple[tuple[Operation, Operation], Edge]]:
    """For the arrows between two operators that have an edge: (who makes the value, who reads it), and the edge.

    Between the two may stand views, which a group has copies of; the arrow is then the last one, into the reader.
    """
    known = {(edge.upstream, edge.downstream): edge for edge in found.edges}
    given: dict[Value, Value] = {}
    for op in found.program.walk():
        if is_group(op):
            end = op.regions[0].front().back()
            assert end is not None
            given.update(zip(op.results(), end.operands_source(), strict=True))
    for reader in found.program.walk():
        if NAME not in reader.attributes:
            continue
        for value in reader.operands_source():
            arrow = maker = _maker(value, given)
            while maker is not None and NAME not in maker.attributes and maker.num_operands():
                maker = _maker(maker.operand_source(0), given)
            if arrow is None or maker is None or NAME not in maker.attributes:
                continue
            edge = known.get((maker.attributes[NAME].value, reader.attributes[NAME].value))
            if edge is not None:
                yield (arrow, reader), edge


def _maker(value: Value | None, given: dict[Value, Value]) -> Operation | None:
    return None if value is None else given.get(value, value).get_defining_op()


def _stands_in(op: Operation, shown: Sequence[Operation]) -> bool:
    around = op.parent.region.parent_op if op.parent is not None and op.parent.region is not None else None
    return op in shown or around in shown


def _why(edge: Edge) -> str:
    return f"fused by {edge.step}" if edge.fused else f"{edge.policy}: {edge.reason}"


def _short(op: Operation) -> str:
    return op.name().partition(".")[2]
