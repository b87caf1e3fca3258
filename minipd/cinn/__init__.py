"""The compiler: groups of operators become loops, and loops become kernels.  From a program on:

    parts       big operators in parts, as far as a kernel wants these; the rules are `minipd.decomposition`'s
    frontend    which operators become one kernel: `cinn_op.group`, then `cinn_op.fusion`
    lower       each fusion as a `Function` of the loop IR, a block for each operator; what an element of its result is,
                the column `compute` says
    schedule    few nests of loops where there was one for each block: tactics choose, primitives transform
    optim       no blocks any more, but loops and scalars, as code has them
    codegen     the text of a numba kernel
    runtime     machine code, kept on disk, and called: `cinn_runtime.jit_kernel`

`ir` is the loop IR: its grammar, text, meaning, and arithmetic of indices.  `dialect` has the operations.  `compile`
goes all the way; `stages` does so for `to_static`, `passes` step by step, by name; `fused_rows` compiles single
operators that stand for several.  `kernels` has what this process has built, `overwriting` says which arrays may be
written over.
`explanation`, and `command` for the shell, tell what came of a function and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minipd.cinn.explanation import Explanation

__all__ = ["explain"]


def explain(function: Any, *inputs: Any, **named: Any) -> Explanation:
    """What the compiler makes of a function, a layer or a program, and why (see `minipd.cinn.explanation`): print it,
    or look at it in a notebook.

    >>> import minipd as paddle
    >>> print(explain(lambda x: paddle.exp(x) + 1.0, paddle.ones([4, 8])).parts[0].summary)
    forward: 2 calls become 1, 1 of them of kernels; 520 bytes moved become 256 bytes, 2.0 times less
    """
    from minipd.cinn.explanation import explain as explained  # with numba, which takes long
    return explained(function, *inputs, **named)
