"""The compiler: groups of element-wise, broadcast and reduction operators become loops, and loops become kernels.

`ir` is the loop IR, `compute` what each operator computes per element, `lower` turns a fusion group into a `Function`
of the loop IR, `schedule` reorders its loops, `codegen` writes it out as a numba kernel.
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
