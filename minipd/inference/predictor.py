"""A saved model, taken through the passes once, and run often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.executor import Executor, Scope
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor as Handle
from minipd.inference.config import Config
from minipd.inference.handle import Tensor
from minipd.ir.operation import user_error
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.jit.rerun import rerun
from minipd.passes.manager import PassManager, PassRun
from minipd.passes.pipelines import add_passes
from minipd.static.inference_model import is_key
from minipd.static.input import InputSpec
from minipd.static.saved_model import imported

__all__ = ["Predictor", "PredictorPool", "create_predictor", "get_version"]

Shapes = tuple[tuple[int, ...], ...]
#: told of an input or a result: (operator, name, tensor)
Hook = Callable[[str, str, Handle], None]


class Optimised:
    """A program behind the passes, its parameters, and what the passes did.

    inputs, outputs: the names that the program has for them; draws: its inputs that are keys of random draws.
    """

    def __init__(self, program: Program, values: dict[str, np.ndarray], config: Config):
        for op in program.walk():
            for result in op.results():
                result.stop_gradient = True         # nobody asks a predictor for gradients: parameters are constants
        self.program, self.scope = program, Scope(values)
        self.statistics: list[PassRun] = []
        if config.ir_optim():
            self.optimise(config)
        data = [op.result(0) for op in program.global_block() if op.name() == "pd_op.data"]
        self.draws = [value.name for value in data if is_key(value)]
        self.inputs = {value.name: value for value in data if value.name not in self.draws}
        self.outputs = [op.attributes["output_name"].value for op in program.global_block()
                        if op.name() == "builtin.shadow_output"]

    def optimise(self, config: Config) -> None:
        builder = config.pass_builder()
        manager = PassManager(config.optimization_level(), debug=config.ir_debug() or builder.debug)
        if config.ir_debug():
            manager.enable_ir_printing()
        add_passes(manager, builder.all_passes(), param_scope=self.scope)
        manager.run(self.program)
        self.statistics = manager.statistics
        if config.cinn_enabled():
            from minipd.cinn.compile import apply_cinn_pass
            apply_cinn_pass(self.program)


class Predictor:
    """What `create_predictor` returns.

    program: what is run, behind the passes.  statistics: what each pass did (`PassRun`).

    Inputs may have other sizes than the program was saved for, as far as its operators allow; for sizes that it leaves
    open nothing is done again, for others the program is traced and optimised anew, once for each.
    """

    def __init__(self, config: Config):
        self._config = Config(config)
        model = config.read()
        self._original = imported(model.saved.program, config.prog_file() or "the model")
        self._values = model.values
        _refuse_what_cannot_run(self._original, self._values)
        self._of_shapes: dict[Shapes | None, Optimised] = {}
        fetches = [op.attributes["name"].value for op in model.saved.program.global_block()
                   if op.name() == "pd_op.fetch"]
        self._start(fetches)

    def _start(self, fetches: list[str]) -> None:
        ready = self._optimised(None)
        self._executors: dict[Shapes | None, Executor] = {}
        self._inputs = {name: Tensor(name, value.dtype) for name, value in ready.inputs.items()}
        values = [ready.program.get_output_value_by_name(name) for name in ready.outputs]
        self._outputs = {name: Tensor(name, value.dtype) for name, value in zip(fetches, values, strict=True)}
        self._input_hooks: list[Hook] = []
        self._output_hooks: list[Hook] = []

    @property
    def program(self) -> Program:
        return self._optimised(None).program

    @property
    def statistics(self) -> list[PassRun]:
        return self._optimised(None).statistics

    def clone(self) -> Predictor:
        """Another predictor of the same program and parameters, with inputs and results of its own."""
        other = object.__new__(Predictor)
        other._config, other._original, other._values = self._config, self._original, self._values
        other._of_shapes = self._of_shapes
        other._start(list(self._outputs))
        return other

    # ------------------------------------------------------------------------------------------- inputs and results
    def get_input_names(self) -> list[str]:
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """Where to put an input.   Raises: KeyError for a name that is none."""
        return _found("get_input_handle", name, self._inputs)

    def get_output_handle(self, name: str) -> Tensor:
        """Where a result is found after `run`.   Raises: KeyError for a name that is none."""
        return _found("get_output_handle", name, self._outputs)

    # ------------------------------------------------------------------------------------------------------ running
    def run(self, inputs: Sequence[Handle] | None = None) -> list[Handle] | None:
        """Compute the results from what is in the input handles; or from tensors, in the order of the inputs, and then
        the results are returned as tensors too.

        Raises: TypeError for a tensor that stands alone, which is not taken for its rows; ValueError for another number
        of tensors, and for shapes that the program cannot take; RuntimeError if an input handle is empty.
        """
        if inputs is not None:
            if isinstance(inputs, Handle):
                raise TypeError("Predictor.run: expected a list of tensors, got a Tensor; write run([x])")
            if len(inputs) != len(self._inputs):
                raise ValueError(f"Predictor.run: expected {len(self._inputs)} tensors ({', '.join(self._inputs)}), "
                                 f"got {len(inputs)}")
            for handle, x in zip(self._inputs.values(), inputs, strict=True):
                handle.share_external_data(x)
        given = {name: handle.held("Predictor.run") for name, handle in self._inputs.items()}
        shapes = self._shapes(given)
        ready = self._optimised(shapes)
        executor = self._executors.get(shapes)
        if executor is None:
            executor = self._executors[shapes] = Executor(ready.program)
        self._tell(self._input_hooks, "pd_op.data", given)
        rng = current().rng
        found = executor.run({**given, **{name: rng.next_key("") for name in ready.draws}}, ready.scope)
        for handle, name in zip(self._outputs.values(), ready.outputs, strict=True):
            handle.array = found[name]
        self._tell(self._output_hooks, "pd_op.fetch", {name: x.array for name, x in self._outputs.items()})
        return None if inputs is None else [Handle(np.array(x.array)) for x in self._outputs.values()]

    def _shapes(self, given: dict[str, np.ndarray]) -> Shapes | None:
        """None where the inputs have the sizes that the program was saved for, else what they have."""
        declared = self._optimised(None).inputs
        if all(len(value.shape) == array.ndim and all(not isinstance(d, int) or d == n for d, n in zip(
                value.shape, array.shape, strict=True)) for value, array in zip(
                declared.values(), given.values(), strict=True)):
            return None
        return tuple(array.shape for array in given.values())

    def _optimised(self, shapes: Shapes | None) -> Optimised:
        if shapes not in self._of_shapes:
            program = self._original.clone() if shapes is None else self._traced(shapes)
            self._of_shapes[shapes] = Optimised(program, self._values, self._config)
        return self._of_shapes[shapes]

    def _traced(self, shapes: Shapes) -> Program:
        """The program for inputs of these shapes."""
        declared = self._optimised(None).inputs
        state = {name: Handle(array) for name, array in self._values.items()}
        specs = [InputSpec(shape, value.dtype, name) for shape, (name, value) in zip(
            shapes, declared.items(), strict=True)]
        traced = trace(lambda *xs: list(rerun(self._original, dict(zip(declared, xs, strict=True)), state).values()),
                       *specs, state=state)
        return traced.program

    def try_shrink_memory(self) -> int:
        """Give back the memory of intermediate results; the next run takes it again.  Returns 0, as Paddle on a CPU."""
        self._executors.clear()
        return 0

    def clear_intermediate_tensor(self) -> None:
        """As `try_shrink_memory`."""
        self._executors.clear()

    # -------------------------------------------------------------------------------------------------------- hooks
    def register_input_hook(self, hook: Hook) -> None:
        """Call `hook("pd_op.data", name, tensor)` for every input of every run, before it."""
        self._input_hooks.append(hook)

    def register_output_hook(self, hook: Hook) -> None:
        """Call `hook("pd_op.fetch", name, tensor)` for every result of every run.  (Paddle calls it for every operator
        inside too.)"""
        self._output_hooks.append(hook)

    def _tell(self, hooks: list[Hook], operator: str, arrays: dict[str, Any]) -> None:
        for hook in hooks:
            for name, array in arrays.items():
                hook(operator, name, Handle(array))


class PredictorPool:
    """Several predictors of one model, for as many threads.

    size: how many.   Raises: ValueError if that is less than one.
    """

    def __init__(self, config: Config, size: int):
        if size < 1:
            raise ValueError(f"PredictorPool: expected a size of at least 1, got {size}")
        first = Predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrieve(self, index: int) -> Predictor:
        """The predictor of that number.   Raises: IndexError if there is none."""
        if not 0 <= index < len(self._predictors):
            raise IndexError(f"PredictorPool.retrieve: expected a number below {len(self._predictors)}, got {index}")
        return self._predictors[index]


def create_predictor(config: Config) -> Predictor:
    """Read the model, take it through the passes of `config`, and prepare it.

    Raises: InputError for files that are not there, damaged, or not of one save; NotImplementedError for an operator
    that minipd does not have; KeyError for a pass that there is not.
    """
    return Predictor(config)


def get_version() -> str:
    """What answers here."""
    return "version: minipd"


def _found(who: str, name: str, handles: dict[str, Tensor]) -> Tensor:
    if name not in handles:
        raise KeyError(f"{who}: expected one of {', '.join(handles) or 'no names'}, got {name!r}")
    return handles[name]


def _refuse_what_cannot_run(program: Program, values: dict[str, np.ndarray]) -> None:
    for op in program.walk():
        if not op.info.registered:
            raise NotImplementedError(user_error(op, "expected operators that minipd has, to run them: the model can "
                                                     "be loaded, drawn and saved by jit.load, not run"))
    missing = sorted(program.parameters().keys() - values.keys())
    if missing:
        raise ValueError(f"create_predictor: expected values for all parameters, got none for {', '.join(missing)}, "
                         "which Paddle does not save: make them persistable")
