"""What the compiler makes of a function, and why: `minipd.cinn.explain(f, x, ...)`.

The function is traced as `to_static` traces it, and its programs (forward, and the gradient's where an input wants one)
go through the compiler's own steps, on copies, with everything kept that the steps say: which operators become one
kernel, why each edge between two operators is fused or not, how the schedule of each kernel was written, its loops
before and after, and the code.  Nothing is run, and no machine code is made.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import indent, wrap
from typing import Any

from minipd.cinn.codegen.numba_source import numba_source
from minipd.cinn.compile import made_of
from minipd.cinn.frontend import FusionTracker, build_groups, bytes_moved
from minipd.cinn.frontend.tracker import Decision, Edge
from minipd.cinn.frontend.traffic import bytes_of_op
from minipd.cinn.ir.ast import Function
from minipd.cinn.ir.printer import text
from minipd.cinn.lower import CannotLower
from minipd.cinn.named import as_in_program
from minipd.cinn.parts import prepare
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.trace import Trace
from minipd.ir.operation import Operation
from minipd.ir.paddle import from_paddle
from minipd.ir.program import Program
from minipd.ir.schema import is_attribute_only
from minipd.ir.traits import IrTrait
from minipd.jit import StaticFunction
from minipd.jit.stages import Options
from minipd.nn.layer import Layer
from minipd.static.input import InputSpec

__all__ = ["Explanation", "KernelReport", "Part", "explain"]

WIDE = 100


@dataclass(frozen=True)
class KernelReport:
    """One kernel.

    number: of the group among the part's.  pattern: its kind.  operators: by name, as edges have them.
    bytes_apart, bytes_fused: what the operators move one by one, and what the kernel moves.
    edges: those between its operators.  lowered: its loops, one nest for each operator; trace: the primitives that
    schedule it; tactics: (name, number of its first step, of the step behind its last); function: the loops then;
    source: the code; operators have in them the numbers of the program, where the kernel itself has its own.
    same_as: the number of an earlier group with the same kernel, whose operators name the loops.
    problem: why it stays library kernels; then there is none of these.
    """

    number: int
    pattern: str
    operators: tuple[str, ...]
    bytes_apart: int
    bytes_fused: int
    edges: tuple[Edge, ...]
    name: str = ""
    lowered: Function | None = None
    trace: Trace = Trace()
    tactics: tuple[tuple[str, int, int], ...] = ()
    function: Function | None = None
    source: str = ""
    same_as: int | None = None
    problem: str = ""

    def __str__(self) -> str:
        lines = [self.summary, *wrap(", ".join(self.operators), WIDE, initial_indent="    ", subsequent_indent="    "),
                 f"    moves {size(self.bytes_fused)}; the operators one by one, {size(self.bytes_apart)}"]
        if self.edges:
            lines += ["  why one kernel:", *(f"    {edge}" for edge in self.edges)]
        if self.problem:
            lines += ["  stays library kernels:", f"    {self.problem}"]
        elif self.same_as is None:
            lines += self._made()
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """The group in a line."""
        made = f"kernel {self.name}" if self.name else "library kernels"
        again = f", the same as group {self.same_as}'s" if self.same_as is not None else ""
        return f"group {self.number}, {self.pattern}: {len(self.operators)} operators, {made}{again}"

    @property
    def steps(self) -> list[str]:
        """The schedule: its primitives as they are called, with the tactic where one begins."""
        begins = {first: name for name, first, behind in self.tactics if behind > first}
        return [f"{step}    # {begins[i]}" if i in begins else str(step) for i, step in enumerate(self.trace.steps)]

    def _made(self) -> list[str]:
        assert self.function is not None and self.lowered is not None
        return ["  loops as lowered:", indent(text(self.lowered).rstrip(), "    "),
                "  schedule:", *(f"    {step}" for step in self.steps),
                "  loops as scheduled:", indent(text(self.function).rstrip(), "    "),
                "  code:", indent(self.source.rstrip(), "    ")]


@dataclass(frozen=True)
class Part:
    """One program: "forward", "backward", or "program".

    traced: as it was traced.  decomposed: its big operators in parts, as far as the compiler wants them; fused: with
    kernels to be as `cinn_op.fusion`.  kernels: the groups.  library: the operators left to the library, and how often.
    edges: those that are not fused.  decisions: all merges that were tried, in order.
    bytes_before, bytes_after: moved by one run, operator by operator as traced, and fused; calls_before, calls_after:
    of kernels.
    """

    title: str
    traced: Program
    decomposed: Program
    fused: Program
    kernels: tuple[KernelReport, ...]
    library: dict[str, int]
    edges: tuple[Edge, ...]
    decisions: tuple[Decision, ...]
    bytes_before: int
    bytes_after: int
    calls_before: int
    calls_after: int
    tracker: FusionTracker = field(repr=False, default_factory=FusionTracker)

    def __str__(self) -> str:
        lines = [self.summary]
        if self.library:
            calls = ", ".join(f"{name} ({n} times)" if n > 1 else name for name, n in self.library.items())
            lines += wrap(f"library calls: {calls}", WIDE, subsequent_indent="    ")
        for kernel in self.kernels:
            lines += ["", str(kernel)]
        if self.edges:
            lines += ["", "why not one kernel:", *(f"    {edge}" for edge in self.edges)]
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """The part in a line."""
        less = f", {self.bytes_before / self.bytes_after:.1f} times less" if self.bytes_after else ""
        return (f"{self.title}: {self.calls_before} calls become {self.calls_after}, {len(self.kernels)} of them of "
                f"kernels; {size(self.bytes_before)} moved become {size(self.bytes_after)}{less}")


@dataclass(frozen=True)
class Explanation:
    """What `explain` found: a text when printed, a page in a notebook.

    parts: the forward program, and the gradient's if there is one.
    """

    name: str
    parts: tuple[Part, ...]

    @property
    def kernels(self) -> list[KernelReport]:
        """The kernels of all parts."""
        return [kernel for part in self.parts for kernel in part.kernels]

    @property
    def edges(self) -> list[Edge]:
        """All edges between operators that the compiler has looked at: fused, or why not."""
        return [edge for part in self.parts for edge in part.tracker.edges]

    @property
    def bytes_before(self) -> int:
        return sum(part.bytes_before for part in self.parts)

    @property
    def bytes_after(self) -> int:
        return sum(part.bytes_after for part in self.parts)

    @property
    def summary(self) -> str:
        """Each part, and each of its kernels, in a line; equal ones once."""
        lines = [self.name]
        for part in self.parts:
            times = Counter(kernel.number if kernel.same_as is None else kernel.same_as for kernel in part.kernels)
            lines.append(f"  {part.summary}")
            lines += [f"    {kernel.summary}" + f", {times[kernel.number]} times" * (times[kernel.number] > 1)
                      for kernel in part.kernels if kernel.same_as is None]
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n\n".join([self.name, *map(str, self.parts)])

    def _repr_html_(self) -> str:
        from minipd.viz.cinn.page import page
        return page(self)._repr_html_()

    def save(self, path: str | Path) -> Path:
        """Write it as a page with pictures, .html; returns the path.

        Raises: InputError for another ending, or a place that cannot be written.
        """
        from minipd.viz.cinn.page import page
        return page(self).save(path)


def explain(function: Any, *inputs: Any, **named: Any) -> Explanation:
    """What the compiler makes of a function called with these inputs, a layer, or a program, and why.

    inputs: tensors or arrays, of which only shape, dtype and `stop_gradient` count: where an input, or a parameter,
    wants a gradient, the gradient's program is explained too.  Or `InputSpec`s, which may leave dimensions open.
    A layer is given what its `forward` takes.  Of a program there are no inputs.

    >>> import minipd as paddle
    >>> def rms_norm(x, w):
    ...     return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
    >>> found = explain(rms_norm, paddle.ones([64, 256]), paddle.ones([256]))
    >>> print(found.summary.splitlines()[1])
      forward: 6 calls become 1, 1 of them of kernels; 450.5 KB moved become 129.0 KB, 3.5 times less
    >>> found.kernels[0].pattern, all(edge.fused for edge in found.edges)
    ('ReduceTree+Trivial', True)

    Raises: TypeError for what is no function, layer or program, for inputs that it does not take, and where Python asks
    a tensor for its value.
    """
    if isinstance(function, Program):
        if inputs or named:
            raise TypeError(f"explain: expected no inputs for a program, which has its own, got {len(inputs)}")
        return Explanation("program", (_explained("program", from_paddle(function)),))
    name, static = _static(function, inputs)
    if inputs and all(isinstance(x, InputSpec) for x in inputs) and not named:
        static.concrete_program                                         # noqa: B018  (compiles for the specs)
        compiled = static.last
        assert compiled is not None
    else:
        _, compiled = static.get_concrete_program(*inputs, **named)
    programs = {"forward": compiled.forward, "backward": compiled.backward}
    return Explanation(name, tuple(_explained(title, run.program) for title, run in programs.items()
                                   if run is not None))


def _static(function: Any, inputs: tuple) -> tuple[str, StaticFunction]:
    """The function as `to_static` would have it, compiled up to where the compiler begins."""
    if isinstance(function, Layer):
        name, function = type(function).__name__, function.forward
    else:
        name = getattr(function, "__qualname__", type(function).__name__)
    if isinstance(function, StaticFunction):
        name, function = function.name, function.dygraph_function
    if not callable(function):
        raise TypeError(f"explain: expected a function, a layer or a program, got {function!r}")
    specs = list(inputs) if inputs and all(isinstance(x, InputSpec) for x in inputs) else None
    return name, StaticFunction(function, specs, Options("CINN", until="graph_passes"))


def _explained(title: str, traced: Program) -> Part:
    decomposed = traced.clone()
    prepare(decomposed)
    fused, tracker = decomposed.clone(), FusionTracker()
    groups = build_groups(fused, tracker)
    known: dict[str, KernelReport] = {}
    kernels = tuple(_kernel(i, op, tracker, known) for i, op in enumerate(groups))
    inside = {op for group in groups for op in group.regions[0].front()}
    library = Counter(op.name().partition(".")[2] for op in fused.walk() if op not in inside and _is_call(op))
    return Part(title, traced, decomposed, fused, kernels, dict(library),
                tuple(edge for edge in tracker.edges if not edge.fused), tuple(tracker.decisions),
                bytes_moved(traced), bytes_moved(fused), sum(map(_is_call, traced.walk())),
                sum(library.values()) + len(kernels), tracker)


def _kernel(number: int, op: Operation, tracker: FusionTracker, known: dict[str, KernelReport],
            ) -> KernelReport:
    """The report of a group.  known: those of the first groups that have a kernel, by its name."""
    group = tracker.groups[number]
    members = set(group.operators)
    edges = tuple(edge for edge in tracker.edges if edge.fused and {edge.upstream, edge.downstream} <= members)
    apart = sum(bytes_of_op(inner) for inner in op.regions[0].front())
    facts: dict[str, Any] = {"number": number, "pattern": str(group.kind), "operators": group.operators, "edges": edges,
                             "bytes_apart": apart, "bytes_fused": bytes_of_op(op)}
    try:
        made = made_of(op)
    except (CannotLower, ScheduleError) as problem:
        return KernelReport(**facts, problem=str(problem))
    name = made.function.name
    if name in known:
        same = known[name]
        return replace(same, **facts, same_as=same.number)
    made = as_in_program(made, op)
    function, scheduled = made.function, made.scheduled
    known[name] = KernelReport(**facts, name=name, lowered=made.lowered, trace=scheduled.trace,
                               tactics=scheduled.tactics, function=function, source=numba_source(function))
    return known[name]


def _is_call(op: Operation) -> bool:
    """Whether an operation is a call of a kernel: neither a view, nor a constant, nor what only names a value."""
    row = op.row
    return row is not None and not row.view and not (IrTrait.CONSTANT in op.info.traits and is_attribute_only(op)) \
        and op.name() != "pd_op.full"


def size(n: float) -> str:
    """
    >>> size(1536), size(64), size(3 << 30)
    ('1.5 KB', '64 bytes', '3.0 GB')
    """
    for unit in ("bytes", "KB", "MB"):
        if n < 1024:
            return f"{n:.1f} {unit}" if unit != "bytes" else f"{n} bytes"
        n /= 1024
    return f"{n:.1f} GB"
