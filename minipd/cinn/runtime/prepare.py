"""Building the kernels of a program on all ranks, each only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.cinn.ir.ast import Function
from minipd.cinn.runtime.compiler import Compiler, KernelError, content_key, process_compiler
from minipd.cinn.runtime.kernel import Kernel, compile_function

__all__ = ["prepare"]


def prepare(functions: Sequence[Function], comm: Any = None, elements: Sequence[int] | None = None,
            compiler: Compiler | None = None) -> list[Kernel | KernelError]:
    """Compile what is not on disk yet, shared out among the ranks; then every rank loads its own functions.

    All ranks of `comm` (a Communicator; None: this one only) call it, each with the functions of its own program; they
    need not be the same.  Two collectives: the keys are gathered, and a barrier separates compiling from loading.
    Where the folder cannot be written or is not shared, each rank compiles for itself.

    Args:
        elements: for each function, of the largest array, as in `compile_function`.

    Returns: for each function its kernel, or the error where it could not be built.
    """
    compiler = compiler or process_compiler()
    elements = elements or [0] * len(functions)
    if comm is not None and comm.size > 1:
        own = {}
        for function, count in zip(functions, elements, strict=True):
            kernel = Kernel(function, compiler)
            threaded = kernel.threads(count) > 1
            if not compiler.has(function, kernel.source, threaded):
                own[content_key(function, kernel.source), threaded] = function, count
        wanted: dict[tuple[str, bool], list[int]] = {}
        for rank, keys in enumerate(comm.all_gather_object(sorted(own))):
            for key in keys:
                wanted.setdefault(key, []).append(rank)
        # Kernels that several ranks want go round among them.
        for number, (key, ranks) in enumerate(sorted(wanted.items())):
            if ranks[number % len(ranks)] == comm.rank:
                _attempt(*own[key], compiler)
        comm.barrier()
    return [_attempt(f, n, compiler) for f, n in zip(functions, elements, strict=True)]


def _attempt(function: Function, elements: int, compiler: Compiler) -> Kernel | KernelError:
    try:
        return compile_function(function, elements, compiler)
    except KernelError as error:
        return error
