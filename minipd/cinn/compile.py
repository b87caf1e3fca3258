"""From a program to kernels: decompose, group, lower, schedule, build.

`apply_cinn_pass` is the whole of it.  What cannot become a kernel stays what it was: a group that cannot be lowered or
built goes back into the program as library kernels, with one warning that names its operators.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from minipd.cinn.dialect import FUSION, JIT_KERNEL
from minipd.cinn.frontend import build_groups, inline
from minipd.cinn.frontend.tracker import NAME
from minipd.cinn.ir.ast import Expr, Function
from minipd.cinn.ir.printer import text
from minipd.cinn.kernels import kernel_named, kernel_of
from minipd.cinn.lower import CannotLower, lower
from minipd.cinn.optim import finalize
from minipd.cinn.parts import prepare
from minipd.cinn.runtime.buckets import BucketedKernel
from minipd.cinn.runtime.build import build_versions
from minipd.cinn.runtime.compiler import process_compiler
from minipd.cinn.runtime.kernel import Kernel, Version
from minipd.cinn.runtime.no_elements import folded_by
from minipd.cinn.schedule import ScheduleConfig, Scheduled, ScheduleError, arrangement_of, buckets_for, schedule
from minipd.executor import calls_ahead
from minipd.framework.dim import is_symbolic
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.types import TensorType
from minipd.passes.rewriter import inherited

__all__ = ["Made", "apply_cinn_pass", "compile_groups", "function_of", "made_of", "prepare"]

#: how many groups' functions are remembered
REMEMBERED = 256
#: How long the text of a function may be.  4 thousand characters take about a second to compile; a formula of 60
#: operators has 3 thousand.
LONGEST = 50_000
#: attributes of operations that lowering does not look at: where they come from, and their names in an explanation
UNSEEN = frozenset({"op_callstack", NAME})
#: what a group says -> what was made of it
_MADE: dict[tuple[Any, ...], Made] = {}


def apply_cinn_pass(program: Program, comm: Any = None) -> int:
    """Compile what can be kernels, in place; returns how many groups became kernels.

    comm: with it, all ranks compile their programs at once, and share the kernels through the cache (collective).
    Warns once, naming the groups, if some have to run as library kernels.
    """
    prepare(program)
    build_groups(program)
    return compile_groups(program, comm)


def compile_groups(program: Program, comm: Any = None) -> int:
    """The last part of `apply_cinn_pass`: kernels for the groups that the program has."""
    groups = [op for op in program.walk() if op.name() == FUSION]
    failed: list[tuple[str, str]] = []          # the operators of a group, and what is wrong
    lowered: list[Operation] = []
    for group in groups:
        try:
            group.set_str_attr("kernel", kernel_for(made_of(group)))
            lowered.append(group)
        except (CannotLower, ScheduleError) as problem:
            failed.append(_give_up(group, problem))
    versions = versions_of(program, lowered)
    unique = list(dict.fromkeys(versions.values()))
    errors = dict(zip(unique, build_versions(unique, comm), strict=True))
    for group, version in versions.items():
        error = errors[version]
        if error is None:
            _replace(group)
        else:
            failed.append(_give_up(group, error))
    if failed:
        _warn(failed, len(groups))
    return len(groups) - len(failed)


def kernel_for(made: Made) -> str:
    """The name of a group's kernel, not built yet.  Equal groups, those of a model's layers, share one."""
    name = key_of(made.function)

    def make() -> Kernel:
        folded = folded_by(made.lowered)
        if made.longer is None:
            return Kernel(made.function, process_compiler(), folded)
        assert made.row_at_most is not None
        longer = Kernel(made.longer, process_compiler(), folded)
        return BucketedKernel(made.function, process_compiler(), made.row, made.row_at_most, longer, folded)
    kernel_named(name, make)
    return name


def versions_of(program: Program, groups: Sequence[Operation]) -> dict[Operation, Version]:
    """The machine code that each group will want, as far as the program tells now.

    For a program of known sizes that is told by how its values will lie in memory.  For others, code without threads
    for arrays of their own is a start; what else they want is built when they run.
    """
    if any(is_symbolic(v.shape) for v in program.list_vars() if isinstance(v.type(), TensorType)):
        return {op: Version(kernel_of(op)) for op in groups}
    ahead = {call.op: kernel_of(call.op).wanted(operands, outs) for call, operands, outs in calls_ahead(program)}
    return {op: ahead[op] or Version(kernel_of(op)) for op in groups}


class Made(NamedTuple):
    """The stations of a group on its way to code: one block per operator, scheduled, and the flat form, named.

    row: how long a row is; if that may exceed `row_at_most`, `longer` is to run instead.
    """

    lowered: Function
    scheduled: Scheduled
    function: Function
    row: tuple[Expr, ...] = ()
    row_at_most: int | None = None
    longer: Function | None = None


def function_of(group: Operation) -> Function:
    """The function of a group as it is to be compiled, named by its operators and what it computes: equal groups (those
    of a model's layers) have equal functions.

    Raises: CannotLower, ScheduleError.
    """
    return made_of(group).function


def made_of(group: Operation) -> Made:
    """The same, with what it was on the way.  Groups that are written alike, of a model's layers, are lowered once."""
    key = _structure(group)
    made = _MADE.get(key)
    if made is None:
        made = _made(lower(group, any_rows=True))
        if len(_MADE) >= REMEMBERED:
            _MADE.clear()
        _MADE[key] = made
    return made


def _structure(group: Operation) -> tuple[Any, ...]:
    """What lowering sees of a group: equal for groups with the same operations on values of the same types."""
    numbers = {v: i for i, v in enumerate(group.operands_source())}
    said: list[Any] = [v.type() for v in numbers]
    for op in group.regions[0].front():
        attributes = frozenset([(n, a) for n, a in op.attributes.items() if n not in UNSEEN])
        said.append((op.name(), attributes, tuple([numbers[v] for v in op.operands_source()]),
                     tuple([r.type() for r in op.results()])))
        for r in op.results():
            numbers[r] = len(numbers)
    return tuple(said)


@functools.lru_cache(maxsize=REMEMBERED)
def _made(lowered: Function) -> Made:
    """A function scheduled, finished and named: layers of a model have equal ones."""
    arrangement = arrangement_of(lowered, ScheduleConfig())
    short, *long = (schedule(lowered, bucket=bucket) for bucket in buckets_for(arrangement.base_info))
    function = _named(finalize(short.function))
    others = [f for f in (_named(finalize(s.function)) for s in long) if f != function]
    return Made(lowered, short, function, tuple(arrangement.row.values()),
                short.config.row_at_most if short.config else None, others[0] if others else None)


def _named(function: Function) -> Function:
    """Raises: CannotLower for one that would take minutes to compile: no formula is worth that."""
    operators = "_".join(dict.fromkeys(function.comment))
    plain = text(replace(function, params=tuple(replace(p, view=None) for p in function.params)))
    if len(plain) > LONGEST:
        raise CannotLower(f"its loops are a text of {len(plain):,} characters, of which at most {LONGEST:,} are "
                          "compiled, as more would take minutes")
    return replace(function, name=f"{operators[:40].rstrip('_')}_{_digest(plain)}")


def key_of(function: Function) -> str:
    """The name of a function's kernel.  Functions of one name are one machine code; how they see the caller's arrays
    (f32[8, 16, 4] as rows of 4) may still differ."""
    views = [p.view for p in function.params]
    return function.name if not any(views) else f"{function.name}.{_digest(repr(views))[:4]}"


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def _replace(group: Operation) -> None:
    """Put the call of its kernel in a group's place."""
    attributes = inherited(group)
    attributes.update((n, group.attributes[n]) for n in ("kernel", "stop_gradient") if n in group.attributes)
    new = Operation(JIT_KERNEL, group.operands_source(), attributes, [r.type() for r in group.results()])
    assert group.parent is not None
    group.parent.insert_before(group, new)
    group.replace_all_uses_with(new.results())
    group.erase()


def _give_up(group: Operation, problem: Exception) -> tuple[str, str]:
    """Make library kernels of a group; returns its operators and the problem, for the warning."""
    operators = ", ".join(op.row.name for op in group.regions[0].front() if op.row is not None and op.num_operands())
    inline(group)
    return operators, str(problem)


def _warn(failed: Sequence[tuple[str, str]], number: int) -> None:
    """One warning for all of them: where no kernel at all can be built, one is enough to read."""
    operators, problem = failed[0]
    more = f" (and {len(failed) - 1} more of {number})" if len(failed) > 1 else ""
    warnings.warn(f"the group of {operators}{more} runs as library kernels, which is slower: {problem}", stacklevel=3)
