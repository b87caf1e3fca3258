"""From a program to kernels: decompose, group, lower, schedule, build.

`build_cinn_pass` is the whole of it.  What cannot become a kernel stays what it was: a group that cannot be lowered or
built goes back into the program as library kernels, with one warning that names its operators.
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from dataclasses import replace
from typing import Any

from minipd.cinn.compute.table import compute_of
from minipd.cinn.dialect import JIT_KERNEL
from minipd.cinn.frontend import build_groups, inline
from minipd.cinn.ir.ast import Function
from minipd.cinn.ir.printer import text
from minipd.cinn.kernels import KERNELS
from minipd.cinn.lower import CannotLower, lower
from minipd.cinn.runtime.compiler import KernelError
from minipd.cinn.runtime.prepare import prepare as build_kernels
from minipd.cinn.schedule import ScheduleError, schedule
from minipd.cinn.sizes import free_rows
from minipd.decomposition import DecomposePass
from minipd.framework.dim import is_symbolic, prod, same
from minipd.ir.dce import remove_dead_ops
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs

__all__ = ["build_cinn_pass", "function_of", "prepare"]

#: rows that take a shape from another tensor, which would have to live for it, whatever `compute` says of them
SHAPES = ("expand_as", "full_like", "reduce_as")
#: rows whose parts would not fuse: they move halves of a tensor
WHOLE = ("fused_rotary_position_embedding",)
#: rows that need all of `axis` before they know any of their result; loops have that only along rows
ALONG_AXIS = {"softmax": 0, "cross_entropy_with_softmax": 0, "cross_entropy_with_softmax_grad": 1}


def prepare(program: Program) -> int:
    """Decompose what has no `compute` entry; returns how many operations have been replaced."""
    replaced = DecomposePass(wants_rule).run(program)
    remove_dead_ops(program)
    return replaced


def wants_rule(op: Operation) -> bool:
    """Whether the compiler wants an operation in parts: as a whole it cannot be in a group, but the parts can."""
    row = op.row
    assert row is not None
    if row.name in SHAPES:
        return True
    if compute_of(row) is not None or row.name in WHOLE:
        return False
    if row.name in ALONG_AXIS:
        after = op.operand_source(ALONG_AXIS[row.name]).shape[op_attrs(op)["axis"] + 1:]
        return all(same(d, 1) for d in after)
    if row.name == "take_along_axis":       # comparing with every position pays where the whole axis is read anyhow
        origin = op.attributes.get("comp_op_name")
        return origin is not None and origin.value == "pd_op.cross_entropy_with_softmax"
    return True


def build_cinn_pass(program: Program, comm: Any = None) -> int:
    """Compile what can be kernels, in place; returns how many groups became kernels.

    comm: with it, all ranks compile their programs at once, and share the kernels through the cache (collective).
    Warns once, naming the groups, if some have to run as library kernels.
    """
    prepare(program)
    groups = build_groups(program)
    failed: list[tuple[Operation, str]] = []
    lowered: dict[str, list[tuple[Operation, Function]]] = {}       # groups of one key call one kernel
    for group in groups:
        try:
            function = function_of(group)
            lowered.setdefault(key_of(function), []).append((group, function))
        except (CannotLower, ScheduleError) as problem:
            failed.append((group, str(problem)))
    functions = [found[0][1] for found in lowered.values()]
    sizes = [max(_elements(group) for group, _ in found) for found in lowered.values()]
    for key, kernel in zip(lowered, build_kernels(functions, comm, sizes), strict=True):
        if isinstance(kernel, KernelError):
            failed += [(group, str(kernel)) for group, _ in lowered[key]]
            continue
        KERNELS[key] = kernel
        for group, _ in lowered[key]:
            _replace(group, key)
    if failed:
        _warn(failed, len(groups))
        for group, _ in failed:
            inline(group)
    return len(groups) - len(failed)


def function_of(group: Operation) -> Function:
    """The function of a group as it is to be compiled, named by its operators and what it computes: equal groups (those
    of a model's layers) have equal functions.

    Raises: CannotLower, ScheduleError.
    """
    function = _scheduled(free_rows(lower(group)))
    operators = "_".join(dict.fromkeys(function.comment))
    plain = replace(function, params=tuple(replace(p, view=None) for p in function.params))
    return replace(function, name=f"{operators[:40].rstrip('_')}_{_digest(text(plain))}")


@functools.lru_cache(maxsize=256)
def _scheduled(function: Function) -> Function:
    """The schedule of a function: layers of a model have equal ones."""
    return schedule(function)


def key_of(function: Function) -> str:
    """The name of a function's kernel.  Functions of one name are one machine code; how they see the caller's arrays
    (f32[8, 16, 4] as rows of 4) may still differ."""
    views = [p.view for p in function.params]
    return function.name if not any(views) else f"{function.name}.{_digest(repr(views))[:4]}"


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def _elements(group: Operation) -> int:
    """The size of the largest array that the group's kernel gets; 0 if that is not known now."""
    sizes = [prod(v.shape) for v in (*group.operands_source(), *group.results())]
    return max((int(n) for n in sizes if not is_symbolic(n)), default=0)


def _replace(group: Operation, kernel: str) -> None:
    attributes = {"kernel": kernel, "stop_gradient": group.attributes.get("stop_gradient")}
    new = Operation(JIT_KERNEL, group.operands_source(), attributes, [r.type() for r in group.results()])
    assert group.parent is not None
    group.parent.insert_before(group, new)
    group.replace_all_uses_with(new.results())
    group.erase()


def _warn(failed: list[tuple[Operation, str]], number: int) -> None:
    """One warning for all of them: where no kernel at all can be built, one is enough to read."""
    group, problem = failed[0]
    operators = ", ".join(op.row.name for op in group.regions[0].front() if op.row is not None and op.num_operands())
    more = f" (and {len(failed) - 1} more of {number})" if len(failed) > 1 else ""
    warnings.warn(f"the group of {operators}{more} runs as library kernels, which is slower: {problem}", stacklevel=3)
