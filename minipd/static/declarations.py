"""What code declares in static mode: the inputs of the default main program, and its state."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import fresh_symbols
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.nn import parameter
from minipd.ops.creation import full
from minipd.static.program import default_main_program, default_startup_program, writing

__all__ = ["create_global_var", "create_parameter", "data"]


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
    x = Tensor(trace.input(name, Meta(dims, np_dtype)))
    x.name = name
    return x


def create_parameter(shape: Any, dtype: Any, name: str | None = None, attr: Any = None, is_bias: bool = False,
                     default_initializer: Any = None) -> Parameter:
    """Paddle's `static.create_parameter`: `paddle.create_parameter`, in the default main program."""
    with writing(default_main_program()):
        return parameter.create_parameter(shape, dtype, name, attr, is_bias, default_initializer)


def create_global_var(shape: Any, value: float, dtype: Any, persistable: bool = False, force_cpu: bool = False,
                      name: str | None = None) -> Tensor:
    """State of the default main program that no optimizer trains; the startup program fills it with `value`.

    Write it in place (`paddle.assign(x, output=var)`, `var.set_value(x)`), and the next run reads what was written.
    persistable: whether the tensor says that it is; it is kept from run to run either way.  force_cpu: accepted.

    >>> from minipd.static import Executor, Program, program_guard
    >>> main, startup = Program(), Program()
    >>> with program_guard(main, startup):
    ...     count = create_global_var([1], 0, "int64", persistable=True, name="count")
    ...     count.set_value(count + 1)
    >>> exe = Executor()
    >>> exe.run(startup), [exe.run(main, fetch_list=[count])[0].item() for _ in range(3)]
    ([], [1, 2, 3])

    Raises: ValueError for a name that state of the program has already.
    """
    trace, startup = default_main_program().trace, default_startup_program().trace
    name = name or current().unique_name("_generated_var")
    if name in trace.state:
        raise ValueError(f"create_global_var: this program has state called {name!r} already")
    with writing(startup.program):
        x = full(shape, value, dtype)
    x.name, x.persistable, x.stop_gradient = name, persistable, True
    trace._own(x, x.payload, startup)
    return x
