"""Static mode: code writes into a default program, and an `Executor` runs it.

    paddle.enable_static()                              what follows is written, not computed
    x = paddle.static.data("x", [None, 4])
    loss = paddle.static.nn.fc(x, 1).mean()
    paddle.optimizer.SGD(0.1).minimize(loss)
    exe = paddle.static.Executor()
    exe.run(paddle.static.default_startup_program())    first values of the parameters, into the scope
    exe.run(feed={"x": ...}, fetch_list=[loss])

It is the trace of `to_static` with the door left open: the same interpreter stands on the ground until static mode is
left.  What lives from run to run (parameters, moments) is program state.  Its first values are written by a second
program, the startup program; the handle of a state holds its newest value in the main program, and where that is not
the value that was read, a run stores it.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minipd.framework import mode
from minipd.framework.constraints import Asking, Constraints
from minipd.framework.context import using
from minipd.framework.dim import DimExpr
from minipd.framework.meta import Meta
from minipd.framework.random import Generator
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.ir import program as ir
from minipd.ir.builder import Builder
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.trace import Trace
from minipd.ir.value import Value

__all__ = ["Program", "default_main_program", "default_startup_program", "program_guard"]


class Program(ir.Program):
    """A PIR program that static mode writes into.

    trace: the interpreter that writes it.  random_seed: of its random draws in every run; 0: those of `paddle.seed`.
    original, twins: of what it is a copy, and which of its values stands for which of the original's.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trace = StaticTrace(self)
        self.random_seed = 0
        self.original: Program | None = None
        self.twins: dict[Value, Value] = {}

    def clone(self, mapping: IrMapping | bool | None = None, for_test: bool = False) -> Program:
        """A copy, with program state of the same names; an Executor fetches from it by the original's tensors too.

        mapping: learns which value of the copy stands for which.
        for_test (the first argument, if it is a bool): a copy for evaluation, without what only training needs.
        Dropout keeps everything, batch normalisation uses the running statistics, and a run writes no state.

        >>> from minipd.nn import functional as F
        >>> from minipd.static.declarations import data
        >>> main = Program()
        >>> with program_guard(main):
        ...     y = F.dropout(data("x", [2, 3]) * 2.0, 0.5)
        >>> [op.name() for op in main.clone(for_test=True).global_block()]
        ['pd_op.data', 'pd_op.full', 'pd_op.multiply']
        """
        from minipd.static import for_test as copies
        if for_test or mapping is True:
            return copies.for_test(self)
        return copies.copied(self, mapping if isinstance(mapping, IrMapping) else IrMapping())

    @property
    def num_blocks(self) -> int:
        return len(self.region.blocks)

    def global_seed(self, seed: int = 0) -> None:
        """Set `random_seed` of this program, and the seed of `paddle.seed`."""
        self.random_seed = int(seed)
        current().rng.seed(seed)

    def executable(self, fetched: Sequence[Value] = ()) -> ir.Program:
        """A copy as a run wants it: outputs `fetch_0`, `fetch_1`, ... are the values asked for, and state that has been
        given a new value is written."""
        mapping = IrMapping()
        run = super().clone(mapping)
        build = Trace(run).build
        for name, (handle, read) in self.trace.state.items():
            if handle.payload is not read:
                build.set_parameter(name, mapping.look_up(handle.payload))
        for i, value in enumerate(fetched):
            build.output(f"fetch_{i}", mapping.look_up(value))
        return run

    def all_parameters(self) -> list[Parameter]:
        """The parameters that have been made in this program, in order."""
        return [handle for handle, _ in self.trace.state.values() if isinstance(handle, Parameter)]

    def trainable_parameters(self) -> list[Parameter]:
        """Those of them that an optimizer updates."""
        return [p for p in self.all_parameters() if not p.stop_gradient]

    def state_dict(self, mode: str = "all", scope: Any = None) -> dict[str, Tensor]:
        """The values of program state in the scope, by name.

        mode: "all", "param" (parameters only) or "opt" (what optimizers keep).
        Raises: ValueError for another mode; KeyError if the startup program has not run.
        """
        wanted = {"all": (True, False), "param": (True,), "opt": (False,)}.get(mode)
        if wanted is None:
            raise ValueError(f'state_dict: expected mode "all", "param" or "opt", got {mode!r}')
        scope = current_programs().scope if scope is None else scope
        return {name: Tensor(np.array(scope.array(name))) for name, (handle, _) in self.trace.state.items()
                if isinstance(handle, Parameter) in wanted}

    def set_state_dict(self, state_dict: dict[str, Any], scope: Any = None) -> None:
        """Store values of program state in the scope.

        Raises: ValueError for a name that is no state of this program, or a value of another shape.
        """
        scope = current_programs().scope if scope is None else scope
        for name, value in state_dict.items():
            if name not in self.trace.state:
                raise ValueError(f"set_state_dict: expected names of this program's state, "
                                 f"{', '.join(self.trace.state) or 'which has none'}, got {name!r}")
            read = self.trace.state[name][1]
            array = np.asarray(value.values("set_state_dict") if isinstance(value, Tensor) else value)
            if array.shape != read.shape:
                raise ValueError(f"set_state_dict: expected {name} of shape {list(read.shape)}, got "
                                 f"{list(array.shape)}")
            scope[name] = array.astype(read.dtype)


class StaticTrace(Trace):
    """The trace of a program that is never finished.

    state: name -> (its handle, the value that reads it).  first: name -> the value that a startup program gives it.
    used_stopped: the names of inputs that were used when they had stop_gradient=True.
    """

    def __init__(self, program: ir.Program):
        super().__init__(program)
        self.state: dict[str, tuple[Tensor, Value]] = {}
        self.first: dict[str, Value] = {}
        self.used_stopped: set[str] = set()
        self._handles: list[weakref.ref] = []

    def by_tape(self) -> bool:
        """Static programs are: see `gradients`."""
        super().by_tape()
        return True

    def meet(self, x: Tensor) -> None:
        super().meet(x)
        if x.stop_gradient and x._name in self.input_names:
            self.used_stopped.add(x.name)

    def around(self, handler: Callable) -> Callable:
        written = super().around(handler)

        def remembered(row: Any, inputs: Any, attrs: dict) -> Any:
            out = written(row, inputs, attrs)
            self._handles += map(weakref.ref, out if row.multi else (out,))
            return out
        return remembered

    def handle_called(self, name: str) -> Tensor | None:
        """The tensor of that name which this program computes, if it is still there."""
        return next((t for ref in self._handles if (t := ref()) is not None and t._name == name), None)

    def _at_entry(self, insert: Callable[[Builder], Value]) -> Value:
        """Inputs stand in front, in order; parameters in front of what is there when they are made, as in Paddle."""
        block = self.program.global_block()
        value = insert(Builder(block, block.front()))
        op = value.get_defining_op()
        if op is not None and op.name() == "pd_op.data":
            while op.next is not None and op.next.name() == "pd_op.data":
                op.move_after(op.next)
        return value

    # -------------------------------------------------------------------------------------------- program state
    def parameter_made(self, param: Parameter) -> None:
        """A parameter has been made in static mode: its values are the startup program's affair."""
        if param.name in self.state:
            raise ValueError(f"create_parameter: this program has a parameter called {param.name!r} already")
        startup = current_programs().startup.trace
        with writing(startup.program), using(grad=False):
            first = startup.value(param.initialize.values().payload)
        param.initialize = None
        self._own(param, first, startup)

    def buffer_made(self, buffer: Tensor) -> None:
        """A layer keeps a tensor from run to run: what was written to make it moves to the startup program.

        Raises: ValueError if it depends on an input of this program.
        """
        if not isinstance(buffer.payload, Value) or buffer.name in self.state:
            return
        startup = current_programs().startup.trace
        chain: list[Any] = []
        todo = [buffer.payload]
        while todo:
            op = todo.pop().get_defining_op()
            if op is None or op.name() in ("pd_op.data", "builtin.parameter"):
                raise ValueError(f"register_buffer: expected first values that depend on no input, got {buffer.name}, "
                                 "which is computed from one; the startup program has no inputs")
            chain.append(op)
            todo += op.operands_source()
        mapping = IrMapping()
        for op in reversed(list(dict.fromkeys(chain))):
            startup.build.insert(clone_operation(op, mapping))
        self._own(buffer, mapping.look_up(buffer.payload), startup)

    def adopt(self, optimizer: Any, params: Sequence[Tensor]) -> None:
        """What an optimizer keeps becomes program state, where it is not yet."""
        startup = current_programs().startup.trace
        for p in params:
            if p.name in optimizer._state:
                continue
            held, p.payload = p.payload, startup.first[p.name]
            try:
                with writing(startup.program), using(grad=False):
                    kept = optimizer._state[p.name] = optimizer.init_state(p)
            finally:
                p.payload = held
            for tensor in kept.values():
                self._own(tensor, tensor.payload, startup)
        _, step = optimizer.scalars()
        if step.name not in self.state:
            self._own(step, startup.value(step.payload), startup)

    def _own(self, handle: Tensor, first: Value, startup: StaticTrace) -> None:
        """`handle` is program state from now on, with this first value."""
        first.persistable = True
        startup.build.set_parameter(handle.name, first)
        startup.first[handle.name] = first
        value = self.parameter(handle.name, Meta(first.shape, first.dtype), trainable=not handle.stop_gradient)
        handle.payload = value
        self.state[handle.name] = handle, value

    def trainable(self) -> list[Parameter]:
        """The parameters that an optimizer without a list of its own updates."""
        return [handle for handle, _ in self.state.values() if isinstance(handle, Parameter)]


class Programs:
    """What static mode has of its own in a rank.

    main, startup: the default programs.  scope: where their state is.  below: what is on where nothing is written; None
    while that is so.  switches: how often static mode has been entered or left.
    """

    def __init__(self) -> None:
        from minipd.static.scope import Scope
        self.main, self.startup = Program(), Program()
        self.scope: Any = Scope()
        self.below: dict[str, Any] | None = None
        self.switches = 0

    def branch(self) -> Programs:
        """The same in another thread, which is not in static mode; what its guards change is its own."""
        other = copy.copy(self)
        other.below = None
        return other


def current_programs() -> Programs:
    """Those of this rank, made at first use."""
    context = current()
    if context.programs is None:
        context.programs = Programs()
    return context.programs


def _writer(program: ir.Program) -> dict[str, Any]:
    """What is on while code is written into `program`."""
    return {"ground": program.trace, "middle": None, "constraints": program.constraints,    # type: ignore[attr-defined]
            "asking": Asking(program.constraints)}


def writing(program: ir.Program) -> using:
    """What is called inside is written into `program`."""
    return using(**_writer(program))


def _switch(on: bool) -> None:
    """Enter static mode, or leave it."""
    programs, context = current_programs(), current()
    programs.switches += 1
    if on:
        writer = _writer(programs.main)
        programs.below = programs.below or context.layers(writer)
        context.switch(writer)
    elif programs.below is not None:
        context.switch(programs.below)
        programs.below = None


mode.install_static(_switch)


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Inside, these are the default programs, and code writes into them.

    Static mode may be entered and left in there, and what has been switched stays so behind the block.

    >>> from minipd.static.declarations import data
    >>> main = Program()
    >>> with program_guard(main, Program()):
    ...     y = data("x", [2, 3]) * 2.0
    >>> [op.name() for op in main.global_block()]
    ['pd_op.data', 'pd_op.full', 'pd_op.multiply']

    Raises: TypeError for what is no `static.Program`.
    """
    for program in (main_program, startup_program):
        if not isinstance(program, Program) and program is not None:
            raise TypeError(f"program_guard: expected a static.Program, got {type(program).__name__}")
    programs, context, writer = current_programs(), current(), _writer(main_program)
    defaults, switches = (programs.main, programs.startup), programs.switches
    below, before = programs.below, context.layers(writer)
    programs.main = main_program
    programs.startup = programs.startup if startup_program is None else startup_program
    programs.below = below or before
    context.switch(writer)
    try:
        yield
    finally:
        programs.main, programs.startup = defaults
        if programs.switches == switches:
            programs.below = below
            context.switch(before)
        elif context.static_mode:           # what was on before the block is not what was asked for in it
            context.switch(_writer(programs.main))


def default_main_program() -> Program:
    """The program that static mode writes into."""
    return current_programs().main


def default_startup_program() -> Program:
    """The program that gives parameters their first values."""
    return current_programs().startup


def forget_absent_sizes(program: ir.Program) -> None:
    """Drop what a program assumes of the sizes of inputs that have been left out of it."""
    there = {name for op in program.global_block() if op.name() == "pd_op.data" for d in op.result(0).shape
             if isinstance(d, DimExpr) for name in d.symbols}
    before, program.constraints = program.constraints, Constraints()
    for c in before:
        if there.issuperset(name for d in (c.left, c.right) if isinstance(d, DimExpr) for name in d.symbols):
            program.constraints.add(c)


def generator_of(program: Program) -> Generator:
    """Where a run's random draws come from."""
    return Generator(program.random_seed) if program.random_seed else current().rng
