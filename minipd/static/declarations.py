"""What code declares in static mode: the inputs of the default main program, and its parameters."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import fresh_symbols
from minipd.framework.meta import Meta
from minipd.framework.tensor import Parameter, Tensor
from minipd.nn import parameter
from minipd.static.program import default_main_program, writing

__all__ = ["create_parameter", "data"]


def data(name: str, shape: Any, dtype: Any = None, lod_level: int = 0) -> Tensor:
    """An input of the default main program; a dimension that is None or -1 may have any size.

    Raises: ValueError if the program has an input of that name already.
    """
    program = default_main_program()
    trace = program.trace
    np_dtype = dtypes.get_default_dtype_np() if dtype is None else dtypes.to_np(dtype)
    fresh = fresh_symbols(op.result(0).shape for op in program.global_block() if op.name() == "pd_op.data")
    dims = tuple(next(fresh) if d is None or d == -1 else int(d) for d in shape)
    if name in trace.input_names:
        raise ValueError(f"static.data: this program has an input called {name!r} already; use another name, or a new "
                         "Program under program_guard")
    return Tensor(trace.input(name, Meta(dims, np_dtype)))


def create_parameter(shape: Any, dtype: Any, name: str | None = None, attr: Any = None, is_bias: bool = False,
                     default_initializer: Any = None) -> Parameter:
    """Paddle's `static.create_parameter`: `paddle.create_parameter`, in the default main program."""
    with writing(default_main_program()):
        return parameter.create_parameter(shape, dtype, name, attr, is_bias, default_initializer)
