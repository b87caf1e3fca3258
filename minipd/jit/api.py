"""`to_static` and what else Paddle has beside it: what is compiled, and what is left alone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minipd.framework.rank import current
from minipd.jit.function import ENABLED as ENABLED
from minipd.jit.function import StaticFunction
from minipd.jit.stages import Options
from minipd.nn.layer import Layer

__all__ = ["StaticFunction", "enable_to_static", "not_to_static", "to_static"]

BACKENDS = (None, "CINN")


def enable_to_static(enable_to_static_bool: bool) -> None:
    """Let functions given to `to_static` run compiled, or as they are written (for debugging)."""
    current().flags[ENABLED] = bool(enable_to_static_bool)


def not_to_static(func: Callable | None = None) -> Callable:
    """Mark a function: `to_static` leaves it as it is.  (Called by a compiled function, it is traced all the same.)"""
    if func is None:
        return not_to_static
    func.__not_to_static__ = True       # type: ignore[attr-defined]
    return func


def to_static(function: Any = None, input_spec: Any = None, build_strategy: Any = None, backend: str | None = None,
              full_graph: bool = True, **kwargs: Any) -> Any:
    """Compile a function, or a layer's `forward` (Paddle's `paddle.jit.to_static`); also a decorator.

    input_spec: an `InputSpec` for each tensor argument; its open dimensions may differ from call to call without a new
    compilation.  backend: "CINN" for generated kernels, None for library kernels.  build_strategy: accepted, without
    effect; the passes are those of `minipd.passes`.
    full_graph: with True (the default) the whole function becomes one program.  Python runs once for each signature,
    and again when something that it has read, a global or an attribute, has changed.  With False, Python runs at every
    call, and what lies between two looks at a value is compiled: anything may be in the function.

    What a program depends on.  Seen, and compared before it is used again: globals, closures, defaults, attributes of
    modules, classes and objects, also by `getattr`, `hasattr`, `vars` and `globals()["G"]`, `os.environ`, and values of
    tensors that Python has looked at.  Refused, with the line: a value, or the text, of a tensor that the function
    computes; random numbers of `random` and numpy from generators around it.  Warned of once for each line, for the
    program keeps what the trace got: clocks (`time.time()`), `os.urandom`, `uuid4`, generators without a seed, `open`.
    Not seen, so pass it as an argument, or compile with full_graph=False: the state of Python's and others' libraries
    (`sys.getrecursionlimit()`); an attribute of a class that is neither named, nor reached through `type(x)`, `cls` or
    an object (`classes[0].width`); `globals()` kept in a variable; what a file holds; names asked for by `getattr` and
    the like in code that is not rewritten, of properties and without source text.  And what Python does beside
    computing, printing words say, is done when the function is traced, and not again.
    A buffer of a layer that `forward` assigns, `self.n = self.n + 1`, is written, as in Paddle: the layer keeps its
    tensor, so who collects `layer.n` over several calls clones it.

    >>> from minipd.ops.creation import to_tensor
    >>> @to_static
    ... def f(x):
    ...     return (x * x).sum()
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> y = f(x)
    >>> y.backward()
    >>> y.item(), x.grad.tolist()
    (5.0, [2.0, 4.0])
    >>> [op.name() for op in f.concrete_program.main_program.global_block()][-2:]
    ['pd_op.sum', 'builtin.shadow_output']

    >>> @to_static(full_graph=False)
    ... def g(x):
    ...     y = x * x
    ...     print("the sum is", float(y.sum()))
    ...     return y + 1.0
    >>> g(x).tolist()
    the sum is 5.0
    [2.0, 5.0]

    Raises: ValueError for an unknown backend; TypeError for what is no function.  A call with full_graph=True raises
    TypeError where Python asks a tensor for its value.
    """
    if backend not in BACKENDS:
        raise ValueError(f"to_static: expected backend 'CINN' or None, got {backend!r}")
    unknown = kwargs.keys() - {"property"}
    if unknown:
        raise TypeError(f"to_static: expected input_spec, build_strategy, backend, full_graph, got "
                        f"{', '.join(sorted(unknown))}")
    if function is None:
        return functools.partial(to_static, input_spec=input_spec, build_strategy=build_strategy, backend=backend,
                                 full_graph=full_graph)
    if getattr(function, "__not_to_static__", False):
        return function
    options = Options(backend)
    if isinstance(function, Layer):
        forward = function.forward
        if not isinstance(forward, StaticFunction):
            function.forward = StaticFunction(forward, input_spec, options, full_graph)     # type: ignore[method-assign]
        return function
    if isinstance(function, StaticFunction):
        return function
    if isinstance(function, type) and issubclass(function, Layer):
        function.forward = to_static(function.forward, input_spec, None, backend, full_graph)   # type: ignore[method-assign]
        return function
    if not callable(function):
        raise TypeError(f"to_static: expected a function or a Layer, got {function!r}")
    return StaticFunction(function, input_spec, options, bool(full_graph))
