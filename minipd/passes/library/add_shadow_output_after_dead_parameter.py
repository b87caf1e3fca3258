"""A parameter that nothing reads becomes an output, under its own name: a run takes note of it, and no pass removes it.

    >>> from minipd.nn import Linear
    >>> from minipd.passes import create_pass
    >>> from minipd.passes.show import brief, program_of
    >>> program = program_of(Linear(2, 3), (4, 2))
    >>> _ = Builder(program.global_block(), program.global_block().front()).parameter("dead", (2,), "float32")
    >>> create_pass("add_shadow_output_after_dead_parameter_pass").run(program)
    1
    >>> print(brief(program))
    a = matmul(input, weight)
    b = add(a, bias)
    return b, dead

As Paddle's pass of this name, which comes first in its inference, where a parameter that no operation uses would have
no variable.  Where dead parameters should go, use `dead_code_elimination_pass`.
"""

from __future__ import annotations

from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.passes.table import function_pass

__all__: list[str] = []


@function_pass("add_shadow_output_after_dead_parameter_pass", opt_level=0, exact=True)
def keep_dead_parameters(program: Program) -> int:
    """A parameter that nothing reads becomes an output."""
    build = Builder(program.global_block())
    dead = {name: value for name, value in program.parameters().items() if value.use_empty()}
    for name, value in dead.items():
        build.output(name, value)
    return len(dead)
