"""What Paddle's files fetch is an output of the program: `pd_op.fetch` becomes `builtin.shadow_output`.

    >>> from minipd.ir.program import Program
    >>> from minipd.passes import create_pass
    >>> program = Program()
    >>> build = Builder(program.global_block())
    >>> x = build.data("x", (2,), "float32")
    >>> fetch = build.build("pd_op.fetch", [x], {"name": "y", "col": 0, "stop_gradient": [True]}, [x.type()])
    >>> [op.name() for op in program.global_block()]
    ['pd_op.data', 'pd_op.fetch']
    >>> create_pass("replace_fetch_with_shadow_output_pass").run(program)
    1
    >>> [op.name() for op in program.global_block()]
    ['pd_op.data', 'builtin.shadow_output']

As Paddle's pass of this name.
"""

from __future__ import annotations

from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.passes.table import function_pass

__all__: list[str] = []


@function_pass("replace_fetch_with_shadow_output_pass", visits="operation", opt_level=0, exact=True)
def output_what_is_fetched(op: Operation) -> int:
    """`pd_op.fetch` becomes `builtin.shadow_output`."""
    if op.name() != "pd_op.fetch":
        return 0
    assert op.parent is not None
    value = op.operand_source(0)
    op.result(0).replace_all_uses_with(value)
    Builder(op.parent, op).output(op.attributes["name"].value, value)
    op.erase()
    return 1
