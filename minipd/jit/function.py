"""StaticFunction: a function that runs compiled, one program per signature or in segments."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.framework.context import Kernels, using
from minipd.framework.dim import DimExpr
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.jit.compiled import Compiled, OnTensors, flat
from minipd.jit.dy2static import text_of, traceable, transformed
from minipd.jit.guards import Guards, Watch
from minipd.jit.open_sizes import Served, compiled_for
from minipd.jit.reads import end_of
from minipd.jit.segments import Flush, Segments, Store
from minipd.jit.signature import (
    Argument,
    aliases,
    arguments,
    as_tensors,
    input_specs,
    key_of,
    modes,
    plain_arguments,
    quick_key,
)
from minipd.jit.stages import Options
from minipd.nn.layer import Layer

__all__ = ["StaticFunction"]

ENABLED = "enable_to_static"        # among this rank's flags
#: how many programs a function keeps; how many for one signature
LIMIT, PER_KEY = 128, 8


class ConcreteProgram:
    """Paddle's `concrete_program`: the traced program of one signature.

    main_program: as it was traced.  inputs, outputs: its values.  parameters: the tensors that are its state.
    """

    def __init__(self, compiled: Compiled):
        self.main_program: Program = compiled.program
        self.inputs, self.outputs = compiled.traced.input_values, compiled.traced.output_values
        self.parameters = list(compiled.state.values())


class Entry:
    """A compiled program, and what else must hold for it to be used.  served: of the sizes of a call.  keeps: objects
    that its key knows by their ids.
    """

    def __init__(self, compiled: Compiled, guards: Guards, served: Served, keeps: Any):
        self.compiled, self.guards, self.served, self.keeps = compiled, guards, served, keeps
        self.hits = 0


class StaticFunction:
    """A function that runs compiled.  Made by `to_static`.

    With `full_graph`, the first call for a signature traces the function, which decides everything that is no tensor
    operation: which branches Python takes, the values of attributes and globals.  Arguments that are no tensors,
    training or evaluation mode, and whether gradients are recorded belong to the signature; what the function read
    around itself is guarded (`guards`), and when it has changed the function is traced again.
    Otherwise the function runs at every call, in `segments`.

    cache: key of a signature -> its entries, newest last.  traces: why each trace was made, in order.
    """

    def __init__(self, function: Callable, input_spec: Any = None, options: Options | None = None,
                 full_graph: bool = True, owner: Any = None):
        functools.update_wrapper(self, function)
        self.function, self.owner, self.full_graph = function, owner, full_graph
        self.input_spec, self.options = input_spec, options or Options()
        self.cache: dict[Any, list[Entry]] = {}
        self.quick: dict[Any, list[Entry]] = {}         # the same lists, by the keys of calls with tensors only
        self.last: Compiled | None = None
        self.traces: list[str] = []
        self.store = Store(LIMIT)
        self.flushes: list[Flush] = []
        self._bound: weakref.WeakKeyDictionary[Any, StaticFunction] = weakref.WeakKeyDictionary()

    def __get__(self, instance: Any, owner: type | None = None) -> StaticFunction:
        """As a method: one compiled function for each object."""
        if instance is None:
            return self
        found = self._bound.get(instance)
        if found is None:
            found = StaticFunction(self.function, self.input_spec, self.options, self.full_graph,
                                   weakref.ref(instance))
            self._bound[instance] = found
        return found

    def __deepcopy__(self, memo: dict) -> StaticFunction:
        """Of a layer that is copied: the same function of the copy, of which nothing is compiled yet."""
        found = memo[id(self)] = object.__new__(StaticFunction)
        function, owner = copy.deepcopy((self.function, self.owner), memo)
        found.__init__(function, self.input_spec, self.options, self.full_graph, owner)     # type: ignore[misc]
        return found

    def __reduce__(self) -> str | tuple:
        """To pickle: what stands under its name in its module; or the function, and how it is to be compiled."""
        name = getattr(self.function, "__qualname__", "<locals>")
        there = sys.modules.get(getattr(self.function, "__module__", ""))
        for step in name.split("."):
            there = getattr(there, step, None)
        if there is self:
            return name
        return StaticFunction, (self.function, self.input_spec, self.options, self.full_graph)

    # ------------------------------------------------------------------------------------------------- calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.dygraph_function
        context = current()
        if not context.flags.get(ENABLED, True) or context.ground.lazy:     # in a segment: a part of it
            return function(*args, **kwargs)
        if not isinstance(context.ground, Kernels):                         # in another trace: a part of that program
            return transformed(function)(*args, **kwargs)
        if not self.full_graph:
            return self._in_segments(function, args, kwargs)
        quick = None if kwargs or self.input_spec is not None else quick_key(args)
        if quick is not None:                   # the common call: nothing but tensors
            entry, _ = self._holding(self.quick.get(quick, ()))
            if entry is not None:
                self.last = entry.compiled
                return entry.compiled(args)
        given = args, kwargs
        args, kwargs = as_tensors(args), as_tensors(kwargs)
        tensors, structure = flat(args, kwargs)
        self.last = compiled = self._compiled(function, tensors, structure, (args, kwargs), quick)
        return compiled(tensors, given)

    @staticmethod
    def _holding(entries: Sequence[Entry], sizes: dict[str, int] | None = None) -> tuple[Entry | None, str | None]:
        """The newest entry that may be used, and what has changed since the newest of all.  sizes: of open dimensions.
        """
        why = None
        for entry in reversed(entries):
            changed = entry.guards.changed() or entry.compiled.changed() or (sizes and entry.served.refuses(sizes))
            if not changed:
                entry.hits += 1
                return entry, why
            why = why or changed
        return None, why

    def _compiled(self, function: Callable, tensors: list[Tensor], structure: Any, tree: Any,
                  quick: Any = None, examples: bool = False) -> Compiled:
        """The program for a call.  examples: it is no call, and the sizes of open dimensions are none that count."""
        specs, found = arguments(self.name, tensors, input_specs(self.input_spec))
        sizes = None if examples else found
        same = aliases(tensors)
        key = (tuple([(s.shape, s.dtype, s.stop_gradient, s.placed) for s in specs]), same, key_of(tree), modes())
        entries = self.cache.setdefault(key, [])
        if quick is not None:
            self.quick[quick] = entries
        entry, why = self._holding(entries, sizes)
        if entry is not None:
            return entry.compiled
        state = state_of(layers_of(function))
        run = OnTensors(structure, traceable(function), same, function)

        def compiled_at(inputs: Sequence[Argument], known: dict[str, int] | None) -> Compiled:
            return Compiled(self.name, run, inputs, state, self.options, known)
        with Watch(function, plain_arguments(function, *tree)) as watch:
            compiled, served = compiled_for(sizes, specs, compiled_at)
        self._make_room(entries)
        guards = watch.guards(compiled.effects)
        compiled.follow(guards)
        entries.append(Entry(compiled, guards, served, (tree, state)))
        self.traces.append(why or ("a new signature" if self.traces else "the first call"))
        return compiled

    def _make_room(self, entries: list[Entry]) -> None:
        """Forget the oldest programs where there are too many."""
        if len(entries) >= PER_KEY:
            del entries[0]
            self._thrashes(f"{PER_KEY} programs for one signature")
        while sum(map(len, self.cache.values())) >= LIMIT:
            oldest = next(k for k, found in self.cache.items() if found is not entries)
            self.cache.pop(oldest).clear()
            self._thrashes(f"{LIMIT} programs")

    def _thrashes(self, held: str) -> None:
        reasons = list(dict.fromkeys(self.traces[-PER_KEY:]))
        warnings.warn(f"{self.name} keeps {held} and was traced {len(self.traces)} times, lately because of: "
                      f"{'; '.join(reasons)}. Every trace costs more than many runs: pass what changes as a tensor, or "
                      "open dimensions with an input_spec", RuntimeWarning, stacklevel=5)

    def _in_segments(self, function: Callable, args: tuple, kwargs: dict) -> Any:
        """Run the function; what it computes is noted, and compiled where somebody looks."""
        ground = Segments(self.name, self.options, self.store)
        self.flushes = ground.flushes
        with using(ground=ground):
            try:
                return function(*args, **kwargs)
            finally:
                ground.settle("the end of the function", end_of(function, getattr(ground.step, "line", "")))

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

    def get_traced_count(self) -> int:
        """How often the function has been traced."""
        return len(self.traces)

    @property
    def concrete_program(self) -> ConcreteProgram:
        """The program of the last signature that was called, or, before any call, that of `input_spec`.

        Raises: ValueError if there is neither.
        """
        if self.last is None:
            specs = input_specs(self.input_spec)
            if specs is None:
                raise ValueError(f"{self.name}: expected a call, or an input_spec, before concrete_program is asked "
                                 "for" + ("" if self.full_graph else "; with full_graph=False there is no one program: "
                                          "see paddle.jit.explain"))
            examples = [_example(spec) for spec in specs]
            _, structure = flat(tuple(examples), {})
            self.last = self._compiled(self.dygraph_function, examples, structure, (tuple(examples), {}),
                                       examples=True)
        return ConcreteProgram(self.last)

    def get_concrete_program(self, *args: Any, **kwargs: Any) -> tuple[ConcreteProgram, Compiled]:
        """The program of a call with these arguments, which is not made, and what would run it.

        >>> from minipd.jit.api import to_static
        >>> from minipd.ops.creation import ones
        >>> program, _ = to_static(lambda x: x.exp()).get_concrete_program(ones([2]))
        >>> [op.name() for op in program.main_program.global_block()]
        ['pd_op.data', 'pd_op.exp', 'builtin.shadow_output']
        """
        args, kwargs = as_tensors(args), as_tensors(kwargs)
        tensors, structure = flat(args, kwargs)
        compiled = self._compiled(self.dygraph_function, tensors, structure, (args, kwargs))
        return ConcreteProgram(compiled), compiled

    @property
    def code(self) -> str:
        """The function as it is traced: rewritten, so that tensors may decide its branches and loops.

        Raises: ValueError for a function that is not rewritten: without source text, a generator.
        """
        function = self.dygraph_function
        return text_of(getattr(function, "__func__", function))         # type: ignore[arg-type]

    @property
    def main_program(self) -> Program:
        return self.concrete_program.main_program

    @property
    def inputs(self) -> list:
        """The values that stand for the tensors among the arguments."""
        return self.concrete_program.inputs

    @property
    def outputs(self) -> list:
        """The values that are the results."""
        return self.concrete_program.outputs

    def __repr__(self) -> str:
        held = sum(map(len, self.cache.values())) if self.full_graph else self.store.programs
        return f"StaticFunction({self.name}, {held} compiled)"


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
        if issubclass(type(value), Layer) and not any(value is other for other in found.values()):
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
