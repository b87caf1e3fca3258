"""`paddle.jit.explain`: what has become of a function, and why."""

from __future__ import annotations

import inspect
import linecache
from dataclasses import dataclass, field
from typing import Any

from minipd.jit.function import StaticFunction
from minipd.jit.reads import end_of
from minipd.jit.segments import Flush
from minipd.nn.layer import Layer

__all__ = ["Explanation", "SegmentReport", "explain"]


@dataclass(frozen=True)
class SegmentReport:
    """One segment of a call.

    ops: the operators in it, by name.  reason: what was asked when it was flushed.  where: the line that asked.
    results: how many tensors it left.  how: "compiled", "found" (a program compiled earlier), "eager" (one operator, or
    too many programs), "nothing wanted".
    """

    ops: tuple[str, ...]
    reason: str
    where: str
    results: int
    how: str

    def __str__(self) -> str:
        path, _, number = self.where.rpartition(":")
        line = linecache.getline(path, int(number)).strip()
        text = (f"{len(self.ops)} operators, {self.results} results, {self.how}; flushed by {self.reason} at "
                f"{self.where}")
        return text + (f": `{line}`" if line else "")


@dataclass(frozen=True)
class Explanation:
    """What `explain` found.

    segments: of the call; one, without a flush, if the function is one program.  traces: why the function was traced,
    each time (only with full_graph).  guards: what the program that was used depends on, beside the signature.
    cached: programs that are kept.
    """

    name: str
    full_graph: bool
    segments: tuple[SegmentReport, ...]
    traces: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    cached: int = 0
    result: Any = field(default=None, repr=False)

    @property
    def ops_per_segment(self) -> list[int]:
        return [len(s.ops) for s in self.segments]

    @property
    def hits(self) -> int:
        """How many of the segments needed no compilation."""
        return sum(s.how == "found" for s in self.segments)

    def __str__(self) -> str:
        lines = [f"{self.name}: full_graph={self.full_graph}, {len(self.segments)} segments, {self.cached} programs "
                 "kept"]
        lines += [f"  segment {i}: {s}" for i, s in enumerate(self.segments)]
        lines += [f"  trace {i}: {why}" for i, why in enumerate(self.traces)]
        if self.guards:
            lines.append("  guards: " + ", ".join(self.guards))
        return "\n".join(lines)


def explain(function: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Call a compiled function, or a layer whose `forward` is one, and say what happened; print it for a text.

    >>> from minipd.jit.api import to_static
    >>> from minipd.ops.creation import ones
    >>> def f(x):
    ...     y = x * 2.0 + 1.0
    ...     if float(y.sum()) > 3.0:
    ...         y = y - 1.0
    ...     return y * y
    >>> report = explain(to_static(f, full_graph=False), ones([2]))
    >>> report.ops_per_segment, [s.reason for s in report.segments]
    ([3, 2], ['float()', 'the end of the function'])

    Raises: TypeError for what is no compiled function; what the call raises.
    """
    called = function
    if isinstance(function, Layer):
        function = function.forward
    if not isinstance(function, StaticFunction):
        raise TypeError(f"explain: expected a function that to_static has made, got {function!r}; give it to to_static "
                        "first, with full_graph=False if it cannot be one program")
    try:
        inspect.signature(function.dygraph_function).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"explain: expected the arguments of a call, since it calls {function.name} and tells what "
                        f"happens, got {error}; write explain({function.name}, x, ...)") from None
    result = called(*args, **kwargs)
    if not function.full_graph:
        return Explanation(function.name, False, tuple(map(_report, function.flushes)), (), (),
                           function.store.programs, result)
    kept = [entry for entries in function.cache.values() for entry in entries]
    used = next((entry for entry in kept if entry.compiled is function.last), None)
    if used is None:                    # it ran as a part of another trace, or not compiled
        return Explanation(function.name, True, (), tuple(function.traces), (), len(kept), result)
    ops = tuple(op.name().partition(".")[2] for op in used.compiled.program.global_block() if op.row is not None)
    segment = SegmentReport(ops, "the end of the function", end_of(function.dygraph_function, f"{function.name}:0"),
                            len(used.compiled.traced.outputs),
                            "found" if used.hits else "compiled")
    return Explanation(function.name, True, (segment,), tuple(function.traces),
                       (*map(str, used.guards), *used.served), len(kept), result)


def _report(flush: Flush) -> SegmentReport:
    ops = tuple(step.row.name for step in flush.step.path())
    return SegmentReport(ops, flush.asked, flush.where, flush.wanted, flush.how)
