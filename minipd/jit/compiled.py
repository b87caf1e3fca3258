"""One compiled signature: what its inputs are bound to, and how a call runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from minipd.autograd.engine import Pass
from minipd.autograd.tape import new_node, node_of
from minipd.executor import TensorScope
from minipd.framework import dtype as dtypes
from minipd.framework.constraints import Constraint
from minipd.framework.meta import Meta, describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.views import rebind
from minipd.ir.mapping import IrMapping
from minipd.ir.operation import Operation
from minipd.ir.structure import Leaf, Structure, flatten
from minipd.ir.traced import TracedProgram, trace
from minipd.ir.value import Value
from minipd.jit.capture import CapturingTrace
from minipd.jit.dy2static.changes import Changes
from minipd.jit.dy2static.inside import given_to
from minipd.jit.effects import Effect, Portable, is_plain, paths_of, restored
from minipd.jit.joint import Joint, split_backward
from minipd.jit.replay import STATE
from minipd.jit.runnable import Recorded, Runnable, Sources
from minipd.jit.signature import Argument
from minipd.jit.spread import place_of, supplied
from minipd.jit.stages import Options
from minipd.ops.creation import assign

if TYPE_CHECKING:
    from minipd.jit.guards import Guard, Guards

__all__: list[str] = []


class Handles(TensorScope):
    """Tensors as the scope of an executor."""

    def __getitem__(self, name: str) -> np.ndarray:
        return self.tensors[name].payload

    def __setitem__(self, name: str, array: np.ndarray) -> None:
        x = self.tensors[name]
        if x.storage is None:
            x.payload = array
        elif x.payload is not array:            # others see this memory
            np.copyto(x.payload, array)
            x.storage.version += 1
            x.seen = x.storage.version


class NotOpen(Exception):
    """A trace with open sizes has failed.  error: how."""

    def __init__(self, error: Exception):
        super().__init__(str(error))
        self.error = error


class Moving(NamedTuple):
    """A tensor that every call replaces: the number of the effect; which of the bound tensors it is; its guards."""

    number: int
    places: list[int]
    guards: list[Guard]


class Compiled:
    """A traced function, ready to run.

    sizes: of open dimensions, in the call for which it is traced; with them, it is NotOpen that a failing trace raises.
    fn: takes tensors, in the order of `arguments`.  state: tensors that it may read and write, by name.
    program: as it was traced and fused.  handles: the names of inputs -> outside tensors that they are bound to.
    same: the numbers of results that are an argument, or an outside tensor, itself -> its number, or that tensor.
    written: the numbers of arguments that are written in place, whose new values follow the results.
    twice: the numbers of results that are another result too -> that one's.  effects: what else a call changes.
    """

    def __init__(self, name: str, fn: OnTensors, arguments: Sequence[Argument], state: Mapping[str, Tensor],
                 options: Options, sizes: dict[str, int] | None = None):
        self.name = name
        state, again = dict(state), True
        placed = {f"input_{i}": a.placed for i, a in enumerate(arguments) if a.placed is not None}
        spread = bool(placed) or any(place_of(x.payload) is not None for x in state.values())
        while again:
            tracer = supplied().tracer(placed) if spread else CapturingTrace()
            function = _Traced(fn, tracer, state)
            try:
                self.traced: TracedProgram = trace(function, *arguments, state=state, tracer=tracer,
                                                   sizes=sizes)
            except Exception as error:
                if sizes:
                    raise NotOpen(error) from None
                raise
            finally:
                written = tracer.release()
            # an outside tensor that the function writes is state too, which only the trace tells: trace once more
            state |= {f"written_{len(state) + i}": x for i, x in enumerate(written)}
            again = bool(written) or tracer.spread and not spread
            spread = spread or tracer.spread
        self.handles, self.state = dict(tracer.handles), self.traced.state
        self.structure, self.same, self.written = function.structure, function.same, function.written
        self.twice, self.effects = function.twice, function.effects
        self.plain, self.moving = is_plain(self.structure.tree), list[Moving]()
        tree = self.structure.tree[0]
        #: the place of the one tensor that is all of the result, None for others
        self._one = tree.index if isinstance(tree, Leaf) and self.plain and not self.effects else None
        self.scope = supplied().scope(self.state) if spread else Handles(self.state)
        self.guards = [(x, *_meta(x)) for x in (*self.handles.values(), *self.state.values())]
        joint = function.joint(self.traced) if function.seeds else None
        traced = self.traced
        run: Any = Runnable
        if spread:
            captured = {n: place_of(p) for n, p in traced.captures.items()}
            bound = {n: place_of(x.payload) for n, x in self.handles.items()}
            held = {STATE + n: place_of(x.payload) for n, x in self.state.items()}
            run = functools.partial(supplied().runnable, {**placed, **captured, **bound, **held})
        self.runnable = run(name, traced.program, (*traced.inputs, *self.handles, *traced.captures, *traced.draws),
                            traced.outputs, options, current().grad_enabled, joint)
        self.program = traced.program = self.runnable.program
        # what else a call is given, beside its arguments, in the order of `runnable.given`
        self._bound = list(self.handles.values())
        self._captures = list(traced.captures.values())
        self._state = [self.state[n] for n in self.runnable.state]
        nothing = [None] * (len(traced.captures) + len(traced.draws))
        self._sources = [*map(ref, self._bound), *nothing, *map(ref, self._state)]
        self._nothing: list[Any] = nothing

    @property
    def assumptions(self) -> list[Constraint]:
        """What has to hold of the sizes of a call."""
        runs = (self.runnable.forward, self.runnable.backward)
        return list(dict.fromkeys(c for run in runs if run is not None for c in run.program.constraints))

    @property
    def joint(self) -> Joint | None:
        return self.runnable.joint

    @property
    def forward(self) -> Any:
        return self.runnable.forward

    @property
    def backward(self) -> Any:
        return self.runnable.backward

    def changed(self) -> str | None:
        """What is different with the outside tensors, as text; None if they are what they were in the trace."""
        for x, shape, dtype, stop, placed in self.guards:
            p = x.payload
            if p.shape != shape or p.dtype != dtype or x.stop_gradient != stop:
                return (f"tensor {x.name} is {describe(p)} with stop_gradient={x.stop_gradient}, was "
                        f"{describe(Meta(shape, dtype))} with stop_gradient={stop}")
            if (type(p) is not np.ndarray or placed is not None) and place_of(p) != placed:
                return f"tensor {x.name} is on {place_of(p) or 'no mesh'}, was on {placed or 'no mesh'}"
        return None

    # ---------------------------------------------------------------------------------------------------- calls
    def __call__(self, tensors: Sequence[Tensor], call: Any = ()) -> Any:
        """Run on these tensors; returns what the function returned.  call: the `(args, kwargs)` that they are from."""
        runnable, draws = self.runnable, self.traced.draws
        keys: list[Any] = []
        if draws:
            rng = current().rng
            keys = [rng.next_key(path) for path in draws.values()]
        fed, state = [*tensors, *self._bound], self._state
        arrays = [x.payload for x in fed] + self._captures + keys + [x.payload for x in state]
        if self.written:
            self._check_memory(tensors)
        if runnable.joint is None:
            found, _ = runnable.run(arrays, self.scope)
            outs = [Tensor(found[i]) for i in runnable.results]
        else:
            before, sources = runnable.before(arrays), self._read(tensors, fed)
            found, sizes = runnable.run(arrays, self.scope)
            made = {i: Tensor(found[i]) for i in runnable.results}
            outs = list(made.values())
            node, number = new_node(None, None, (), [], {}, 0), 0
            for i in runnable.flowing:
                x = made[i]
                x.node, x.index, x.stop_gradient = node, number, False
                number += 1
            Recorded(runnable, sources, before, found, sizes).fill(node, range(number), number)
        for i, argument in enumerate(self.written):
            rebind(tensors[argument], outs[len(outs) - len(self.written) + i], f"{self.name}: a write of an argument")
        for i, first in self.twice.items():
            outs[i] = outs[first]
        for i, it in self.same.items():
            outs[i] = tensors[it] if type(it) is int else it
        if self._one is not None:
            return outs[self._one]
        left = self.structure.rebuild(outs)
        result, values = left if self.plain else restored(left, call)
        for effect, value in zip(self.effects, values, strict=True):
            effect.do(value, call)
        for moving in self.moving:
            self._follow(moving, values[moving.number])
        return result

    def _read(self, tensors: Sequence[Tensor], fed: list[Tensor]) -> Sources:
        """What a call reads, for the tape.  fed: its arguments, and the outside tensors."""
        nothing, state = self._nothing, self._state
        slots = [None if x.stop_gradient else (x.node or node_of(x), x.index) for x in fed] + nothing + [
            None if x.stop_gradient else (x.node or node_of(x), x.index) for x in state]
        return Sources([*map(ref, tensors), *self._sources], slots,
                       [x.storage for x in fed] + nothing + [x.storage for x in state])

    def follow(self, guards: Guards) -> None:
        """Find the places that hold a tensor which every call reads and replaces, `self.h = f(self.h)`: the next call
        reads what this one has left there.  guards: what the program depends on."""
        every = list(guards)
        for number, effect in enumerate(self.effects):
            x = effect.before
            places = [i for i, bound in enumerate(self._bound) if bound is x]
            if not isinstance(x, Tensor) or effect.path is not None or not places or any(
                    it is x for it in (*self._state, *self.same.values())):
                continue
            mine = [g for g in every if g.value is x and effect.is_place(g.owner, g.kind, g.name)]
            if mine and not any(g.mentions(x) for g in every if g not in mine):
                self.moving.append(Moving(number, places, mine))

    def _follow(self, moving: Moving, x: Tensor) -> None:
        for i in moving.places:
            _, *meta = self.guards[i]
            if not isinstance(x, Tensor) or tuple(meta) != _meta(x):
                return
        for i in moving.places:
            self._bound[i], self._sources[i], self.guards[i] = x, ref(x), (x, *_meta(x))
        self.handles = dict(zip(self.handles, self._bound, strict=True))
        for guard in moving.guards:
            guard.renew(x)

    def _check_memory(self, tensors: Sequence[Tensor]) -> None:
        """Raise where a write of an argument would have to be seen in another tensor that the program reads.

        Raises: RuntimeError.
        """
        others = [*tensors, *self.handles.values(), *self.state.values()]
        for i in self.written:
            x = tensors[i]
            for y in others:
                if y is not x and x.storage is not None and y.storage is x.storage:
                    raise RuntimeError(f"{self.name}: its argument {x.name} is written in place, and shares memory "
                                       f"with {y.name}, which the program reads too: one of them would be wrong; give "
                                       "it a clone(), or compile with full_graph=False")


class _Traced:
    """The function as it is traced: beside its results, it returns the new values of arguments that it has written.

    seeds: the inputs that stand for the gradients of results, where the tape was asked to write the gradient: the
    function uses hooks, or rules that no row has.
    """

    def __init__(self, fn: OnTensors, tracer: CapturingTrace, state: Mapping[str, Tensor]):
        self.fn, self.tracer, self.outside = fn, tracer, list(state.values())
        self.seeds: dict[str, Value] = {}
        self.grads: dict[str, Tensor] = {}
        self.ahead: list[Operation] = []

    def __call__(self, *arguments: Tensor) -> list[Tensor]:
        tracer = self.tracer
        entered = [x.payload for x in arguments]
        before = [x.grad for x in self.outside]
        with Changes(given=self.fn.there) as changes:
            left = [self.fn(*arguments)]
        paths = paths_of(self.fn.given)
        found = changes.take_back(left)
        changes.refuse_emptied()
        self.effects = [Effect(each, paths.get(id(each.place.owner))) for each in found]
        portable = Portable(changes.around, paths)
        leaves, self.structure = flatten((portable.of(left[0]), [portable.of(e.value) for e in self.effects]))
        self.fn.given = ()
        for effect in self.effects:
            effect.value = None                 # it is in the structure
        for x, grad in (*zip(self.outside, before, strict=True), *tracer.gradients()):
            if x.grad is not grad:
                raise TypeError(f"to_static: expected a function that leaves .grad of {x.name} as it was, but it calls "
                                "backward(), which adds to it: use paddle.grad, clear the gradients in the function, "
                                "or compile with full_graph=False")
        self.written = [i for i, x in enumerate(arguments) if x.payload is not entered[i]]
        places = {id(x): i for i, x in enumerate(arguments)}
        outside = {id(x): x for x in (*self.outside, *tracer.handles.values())}
        self.same: dict[int, Any] = {}
        for i, leaf in enumerate(leaves):
            it = places.get(id(leaf), outside.get(id(leaf)))
            if it is not None:
                self.same[i] = it
        first_of: dict[int, int] = {}
        for i, leaf in enumerate(leaves):
            first_of.setdefault(id(leaf), i)
        self.twice = {i: first for i, leaf in enumerate(leaves) if (first := first_of[id(leaf)]) < i}
        results: list[Tensor] = []
        values: set[int] = set()                # the tape knows a result by its value, so each has one of its own
        for x in (*leaves, *(arguments[i] for i in self.written)):
            # and the program says of a PyLayer's result that no gradient flows to what has computed it
            cut = not x.stop_gradient and isinstance(x.payload, Value) and x.payload.stop_gradient
            results.append(assign(x) if cut or id(x.payload) in values else x)
            values.add(id(x.payload))
        if tracer.tape_wanted:
            with changes.done_again():
                self._differentiate(results, arguments)
        return results

    def _differentiate(self, results: list[Tensor], arguments: Sequence[Tensor]) -> None:
        """Let the tape write the gradient after everything else, from new inputs `grad_i`."""
        tracer = self.tracer
        flowing = [x for x in results if not x.stop_gradient and x.payload.dtype in dtypes.INEXACT]
        if self.written:
            raise TypeError("to_static: expected a function that does not write its arguments in place beside hooks or "
                            "a PyLayer; write a clone() of the argument, or compile with full_graph=False")
        sources = {x.payload.name: x for x in arguments} | tracer.handles
        for x in self.outside:
            op = x.payload.get_defining_op() if isinstance(x.payload, Value) else None
            if op is not None and op.name() == "builtin.parameter":
                sources[STATE + x.payload.name] = x
        wanted = {n: x for n, x in sources.items() if not x.stop_gradient and x.payload.dtype in dtypes.INEXACT}
        self.ahead = list(tracer.program.global_block())
        for i, x in enumerate(flowing):
            self.seeds[f"grad_{i}"] = tracer.input(f"grad_{i}", Meta(x.payload.shape, x.payload.dtype))
        slots = {n: (node_of(x), x.index) for n, x in wanted.items()}
        run = Pass(True, False, frozenset(slots.values()))
        run.run(list(zip(flowing, map(Tensor, self.seeds.values()), strict=True)))
        self.grads = {n: run.found[slot] for n, slot in slots.items() if slot in run.found}

    def joint(self, traced: TracedProgram) -> Joint:
        """The two programs; `traced` keeps the forward one."""
        whole = traced.program
        behind = {op for op in whole.global_block()} - set(self.ahead)
        behind -= {op for op in behind if op.name() in (
            "builtin.shadow_output", "builtin.set_parameter", "cf.stack_create")}       # the forward part pushes there
        ahead = [op for op in whole.global_block() if op not in behind]
        mapping = IrMapping()
        forward = whole.clone(mapping)
        for op, copy in reversed(list(zip(whole.global_block(), forward.global_block(), strict=True))):
            if op in behind:
                copy.erase()
        traced.program = forward
        joint = split_backward(whole, ahead, {n: g.payload for n, g in self.grads.items()})
        joint.wrt = list(self.grads)
        return joint


def _meta(x: Tensor) -> tuple:
    return tuple(x.payload.shape), x.payload.dtype, x.stop_gradient, place_of(x.payload)


class OnTensors:
    """`fn(*args, **kwargs)` as a function of the tensors in them.  same: as `signature.aliases` gives it.

    given: the `(args, kwargs)` of the last call.  user: the function as its author wrote it.
    """

    def __init__(self, structure: Structure, fn: Callable, same: Sequence[int], user: Callable):
        self.structure, self.fn, self.same, self.user = structure, fn, same, user
        self.given: Any = ()

    def __call__(self, *tensors: Tensor) -> Any:
        self.given = args, kwargs = self.structure.rebuild([tensors[i] for i in self.same])
        return self.fn(*args, **kwargs)

    def there(self) -> list[Any]:
        """Objects that were there before the last call."""
        args, kwargs = self.given or ((), {})
        return given_to(self.user, (*args, *kwargs.values()))


def flat(args: tuple, kwargs: dict) -> tuple[list[Tensor], Structure]:
    """The tensors in the arguments of a call, and what is around them."""
    return flatten((args, kwargs))
