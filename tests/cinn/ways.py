"""A group computed in every way that there is: by library kernels, by the loop interpreter in each form that the
compiler makes of it, and as a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from minipd.cinn.compile import function_of
from minipd.cinn.frontend import run_group
from minipd.cinn.ir.ast import Function
from minipd.cinn.ir.interpreter import interpret
from minipd.cinn.lower import lower
from minipd.cinn.runtime.compiler import Compiler
from minipd.cinn.runtime.kernel import Kernel
from minipd.framework.dim import bind_shape, substitute_all
from minipd.ir.operation import Operation


def forms(group: Operation) -> Iterator[tuple[str, Function]]:
    """Name -> the group's function as it is lowered, and as it is compiled."""
    yield "lowered", lower(group)
    yield "compiled", function_of(group)


def ways(group: Operation, arrays: Sequence[np.ndarray],
         compiler: Compiler | None) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Name -> the group's results; the first are those of library kernels.  compiler: None for no kernels."""
    with np.errstate(all="ignore"):
        yield "library", [np.asarray(y) for y in run_group(group, arrays)]
    sizes: dict[str, int] = {}
    for v, x in zip(group.operands_source(), arrays, strict=True):
        bind_shape(v.shape, x.shape, sizes, "an operand")

    def fresh() -> list[np.ndarray]:
        return [np.full(substitute_all(v.shape, sizes), 77).astype(v.dtype) for v in group.results()]
    contiguous = [np.ascontiguousarray(x).reshape(x.shape) for x in arrays]
    for name, function in forms(group):
        for shuffle in (None, 1) if name == "compiled" else (None,):
            outputs = fresh()
            interpret(function, contiguous, outputs, shuffle=shuffle)
            yield f"{name}, interpreted" + (", in another order" if shuffle else ""), outputs
    if compiler is None:
        return
    kernel = Kernel(function, compiler)
    outputs = fresh()
    kernel(arrays, outputs)
    yield "kernel", outputs
    if all(y.size for y in outputs):
        outputs = fresh()
        params = zip(function.params, (*contiguous, *outputs), strict=True)
        fitted = [kernel._fitted(p, a, n) for n, (p, a) in enumerate(params)]
        for call in kernel.calls(kernel.version(), fitted, tasks=3, threads=2):
            call()
        yield "kernel, in 3 tasks", outputs
