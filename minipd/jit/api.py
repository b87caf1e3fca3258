"""`to_static`: a function or a layer, compiled at its first call for each signature."""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework.context import Kernels
from minipd.framework.dim import DimExpr
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.jit.compiled import Compiled, flat, rebuilt
from minipd.jit.dy2static import traceable, transformed
from minipd.jit.signature import arguments, as_tensors, input_specs, key_of, modes, modes_of
from minipd.jit.stages import Options
from minipd.nn.layer import Layer

__all__ = ["StaticFunction", "enable_to_static", "not_to_static", "to_static"]

BACKENDS = (None, "CINN")
ENABLED = "enable_to_static"        # among this rank's flags


class ConcreteProgram:
    """Paddle's `concrete_program`: the traced program of one signature.

    main_program: as it was traced.  inputs, outputs: its values.  parameters: the tensors that are its state.
    """

    def __init__(self, compiled: Compiled):
        self.main_program: Program = compiled.program
        self.inputs, self.outputs = compiled.traced.input_values, compiled.traced.output_values
        self.parameters = list(compiled.state.values())


class StaticFunction:
    """A function that runs compiled.  Made by `to_static`.

    The first call for a signature traces the function, which decides everything that is no tensor operation: which
    branches Python takes, the values of attributes and globals.  Arguments that are no tensors, training or evaluation
    mode, and whether gradients are recorded belong to the signature; other Python values that change later are not
    noticed.
    """

    def __init__(self, function: Callable, input_spec: Any = None, options: Options | None = None,
                 owner: Any = None):
        functools.update_wrapper(self, function)
        self.function, self.owner = function, owner
        self.input_spec, self.options = input_spec, options or Options()
        self.cache: dict[Any, Compiled] = {}
        self.last: Compiled | None = None
        self._bound: weakref.WeakKeyDictionary[Any, StaticFunction] = weakref.WeakKeyDictionary()

    def __get__(self, instance: Any, owner: type | None = None) -> StaticFunction:
        """As a method: one compiled function for each object."""
        if instance is None:
            return self
        found = self._bound.get(instance)
        if found is None:
            found = StaticFunction(self.function, self.input_spec, self.options, weakref.ref(instance))
            self._bound[instance] = found
        return found

    # ------------------------------------------------------------------------------------------------- calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.dygraph_function
        if not current().flags.get(ENABLED, True) or not isinstance(current().ground, Kernels):
            return transformed(function)(*args, **kwargs)        # inside of another trace: a part of that program
        args, kwargs = as_tensors(args), as_tensors(kwargs)
        tensors, structure = flat(args, kwargs)
        self.last = compiled = self._compiled(function, tensors, structure, (args, kwargs))
        return compiled(tensors)

    def _compiled(self, function: Callable, tensors: list[Tensor], structure: Any, tree: Any) -> Compiled:
        layers = layers_of(function)
        state = state_of(layers)
        specs = arguments(self.name, tensors, input_specs(self.input_spec))
        key = (tuple((s.shape, s.dtype, s.stop_gradient) for s in specs), key_of(tree), modes(),
               modes_of(list(layers.values())), tuple(map(id, state.values())))
        found = self.cache.get(key)
        if found is None or not found.holds():
            found = self.cache[key] = Compiled(self.name, rebuilt(structure, traceable(function)), specs, state, self.options)
            found.keeps = (tree, state)         # type: ignore[attr-defined]  # the key knows objects by their ids
        return found

    # ---------------------------------------------------------------------------------------------- looking in
    @property
    def name(self) -> str:
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    @property
    def dygraph_function(self) -> Callable:
        """The function as it was."""
        owner = self.owner() if isinstance(self.owner, weakref.ref) else self.owner
        return self.function if owner is None else types.MethodType(self.function, owner)

    def rollback(self) -> Callable:
        """The function as it was; a layer that was given to `to_static` computes with it again."""
        function = self.dygraph_function
        layer = getattr(function, "__self__", None)
        if isinstance(layer, Layer) and layer.__dict__.get("forward") is self:
            del layer.__dict__["forward"]
        return function

    @property
    def concrete_program(self) -> ConcreteProgram:
        """The program of the last signature that was called, or, before any call, that of `input_spec`.

        Raises: ValueError if there is neither.
        """
        if self.last is None:
            specs = input_specs(self.input_spec)
            if specs is None:
                raise ValueError(f"{self.name}: expected a call, or an input_spec, before concrete_program is asked "
                                 "for")
            examples = [_example(spec) for spec in specs]
            _, structure = flat(tuple(examples), {})
            self.last = self._compiled(self.dygraph_function, examples, structure, (tuple(examples), {}))
        return ConcreteProgram(self.last)

    @property
    def main_program(self) -> Program:
        return self.concrete_program.main_program

    def __repr__(self) -> str:
        return f"StaticFunction({self.name}, {len(self.cache)} compiled)"


def _example(spec: Any) -> Tensor:
    """A tensor that fits a spec: every open dimension has size 2."""
    shape = tuple(d.evaluate(dict.fromkeys(d.symbols, 2)) if isinstance(d, DimExpr) else 2 if d == -1 else d
                  for d in spec.shape)
    x = Tensor(np.zeros(shape, spec.dtype.np))
    x.stop_gradient = spec.stop_gradient
    return x


def layers_of(function: Callable) -> dict[str, Layer]:
    """The layers that a function computes with, by the name under which it sees them: its own, those that it closes
    over, and those among the globals that it names."""
    own = getattr(function, "__self__", None)
    if isinstance(own, Layer):
        return {"": own}
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    seen = {n: function.__globals__[n] for n in code.co_names if n in function.__globals__}
    try:
        seen.update({n: v for n, v in inspect.getclosurevars(function).nonlocals.items()})
    except (TypeError, ValueError):
        pass
    found: dict[str, Layer] = {}
    for name, value in seen.items():
        if isinstance(value, Layer) and not any(value is other for other in found.values()):
            found[name] = value
    return found


def state_of(layers: dict[str, Layer]) -> dict[str, Tensor]:
    """Parameters and buffers of layers, by name; layers that were made lazily are left to the trace, which says so."""
    state: dict[str, Tensor] = {}
    for prefix, layer in layers.items():
        for name, x in (*layer.named_parameters(), *layer.named_buffers()):
            if not isinstance(x.payload, (Meta, type(None))):
                state[f"{prefix}.{name}" if prefix else name] = x
    return state


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
    compilation.  backend: "CINN" for generated kernels, None for library kernels.
    full_graph: the whole function becomes one program; only True is there.

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

    Raises: ValueError for an unknown backend; TypeError for what is no function.  A call raises TypeError where Python
    asks a tensor for its value.
    """
    if backend not in BACKENDS:
        raise ValueError(f"to_static: expected backend 'CINN' or None, got {backend!r}")
    if not full_graph:
        raise ValueError("to_static: expected full_graph=True; parts of a function are not compiled on their own")
    if function is None:
        return functools.partial(to_static, input_spec=input_spec, build_strategy=build_strategy, backend=backend)
    if getattr(function, "__not_to_static__", False):
        return function
    options = Options(backend)
    if isinstance(function, Layer):
        forward = function.forward
        if not isinstance(forward, StaticFunction):
            function.forward = StaticFunction(forward, input_spec, options)     # type: ignore[method-assign]
        return function
    if isinstance(function, StaticFunction):
        return function
    if not callable(function):
        raise TypeError(f"to_static: expected a function or a Layer, got {function!r}")
    return StaticFunction(function, input_spec, options)
