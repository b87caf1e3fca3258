"""The kernels of this process by name, and how the executor calls them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.cinn.dialect import FUSION, JIT_KERNEL
from minipd.cinn.ir.printer import text
from minipd.cinn.runtime.kernel import Kernel
from minipd.executor import Call, register_maker
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program

__all__ = ["KERNELS", "kernel_named", "kernel_of", "kernel_sources", "kernel_texts"]

#: what `cinn_runtime.jit_kernel` names; a name says what is computed, so that programs may share a kernel
KERNELS: dict[str, Kernel] = {}


def kernel_named(name: str, make: Callable[[], Kernel]) -> Kernel:
    """The kernel of that name; made if this process has none."""
    if name not in KERNELS:
        KERNELS[name] = make()
    return KERNELS[name]


def kernel_of(op: Operation) -> Kernel:
    """The kernel that a `cinn_runtime.jit_kernel` calls, or a `cinn_op.fusion` that is being compiled.

    Raises: ValueError if this process has none (a program that was read from its text).
    """
    name = op.attributes["kernel"].value if "kernel" in op.attributes else None
    kernel = KERNELS.get(name or "")
    if kernel is None:
        raise ValueError(user_error(op, f"expected a kernel that this process has built, got the name {name!r}; "
                                        "compile the program again (apply_cinn_pass)"))
    return kernel


def kernel_sources(program: Program) -> str:
    """The Python text of every kernel that a program calls, each once."""
    return "\n\n".join(kernel.source for kernel in kernels_of(program))


def kernel_texts(program: Program) -> str:
    """The loops of every kernel that a program calls, as they are scheduled, and the Python text made of them."""
    return "\n".join(f"loops of {kernel.function.name}, scheduled:\n{text(kernel.function)}\n"
                     f"source of {kernel.function.name}:\n{kernel.source}" for kernel in kernels_of(program))


def kernels_of(program: Program) -> list[Kernel]:
    """The kernels that a program calls, each once."""
    return list(dict.fromkeys(kernel_of(op) for op in program.walk() if op.name() == JIT_KERNEL))


def make_call(op: Operation) -> Call:
    """The call of a compiled kernel."""
    kernel = kernel_of(op)
    several = op.num_results() != 1

    def kernel_out(out: Any, *operands: Any) -> None:
        kernel(operands, out if several else (out,))

    def bind(outs: Sequence[Any], operands: Sequence[Any]) -> Any:
        return kernel.bind(operands, outs)
    operands, results = op.operands_source(), op.results()
    allowed = {r: tuple(i for i in found if operands[i].type() == results[r].type())
               for r, found in kernel.overwritable.items()}
    return Call(op, operands, results, kernel_out=kernel_out, bind=bind, multi=several,
                overwrites={r: found for r, found in allowed.items() if found}, updates=_updates(op, allowed))


def _updates(op: Operation, allowed: dict[int, tuple[int, ...]]) -> dict[int, int]:
    """Results that are the new value of program state, with the operand that is the old one."""
    found: dict[int, int] = {}
    for r, operands in allowed.items():
        writes = {use.owner().attributes["parameter_name"].value for use in op.result(r).uses
                  if use.owner().name() == "builtin.set_parameter"}
        for i in operands:
            read = op.operand_source(i).get_defining_op()
            if read is not None and read.name() == "builtin.parameter" and (
                    read.attributes["parameter_name"].value in writes):
                found[r] = i
    return found


register_maker(JIT_KERNEL, make_call)
register_maker(FUSION, make_call)
