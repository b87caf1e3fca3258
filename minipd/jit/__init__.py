"""Compiled functions: Paddle's `paddle.jit`.

    api            to_static, and what it returns
    signature      under which key a program is kept
    capture        the trace that binds outside tensors by their handle
    compiled       one signature: programs, bindings, calls
    joint          a program and its gradient, cut into two
    stages         the table of compile stages that floors register into
"""

from minipd.jit.api import StaticFunction, enable_to_static, not_to_static, to_static
from minipd.jit.stages import register_stage

__all__ = ["StaticFunction", "enable_to_static", "not_to_static", "register_stage", "to_static"]
