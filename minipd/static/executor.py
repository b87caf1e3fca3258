"""Paddle's `static.Executor`: run a program with values for its inputs, and fetch values by handle or name."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from minipd import executor
from minipd.framework import dtype as dtypes
from minipd.framework.place import check_device
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.dce import remove_dead_ops
from minipd.ir.operation import user_error
from minipd.ir.value import Value
from minipd.static.places import CompiledProgram
from minipd.static.program import Program, current_programs, forget_absent_sizes, generator_of

__all__ = ["Executor"]


class _Ready(NamedTuple):
    """A program for certain fetches.

    reads: the names of program state that it reads.  size, state: the number of operations of the original, and the
    ids of the handles' values, when it was made; it serves while they are these.
    """

    runner: executor.Executor
    reads: tuple[str, ...]
    size: int
    state: tuple


class Executor:
    """Runs static programs.

    >>> from minipd.static.declarations import data
    >>> from minipd.static.program import program_guard
    >>> main = Program()
    >>> with program_guard(main):
    ...     y = data("x", [None]) * 2.0
    >>> Executor().run(main, feed={"x": np.float32([1, 2])}, fetch_list=[y])
    [array([2., 4.], dtype=float32)]
    """

    def __init__(self, place: Any = None):
        check_device("Executor", place)
        self._ready: dict[tuple, _Ready] = {}
        self._programs: dict[int, Program] = {}         # kept alive: the cache knows them by id

    def run(self, program: Program | CompiledProgram | None = None, feed: Any = None, feed_var_name: str = "feed",
            fetch_var_name: str = "fetch", fetch_list: Any = None, scope: Any = None, return_numpy: bool = True,
            use_program_cache: bool = False, use_prune: bool = False) -> list:
        """Run `program` (default: the default main program) once.

        feed: input name -> array, Tensor or nested list (or a list with such a dict, as a DataLoader gives it).
        fetch_list: tensors of the program, or names of them; their values are returned in order.  Only what they, and
        the program's writes of state, need is computed.
        feed_var_name, fetch_var_name, use_program_cache, use_prune: accepted as in Paddle, without effect.
        Raises: TypeError for what is no static program; ValueError for a feed or a fetch that does not fit.
        """
        program = current_programs().main if program is None else program
        if isinstance(program, CompiledProgram):
            program = program.program
        if not isinstance(program, Program):
            raise TypeError(f"Executor.run: expected a static.Program, got {type(program).__name__}; what "
                            "to_static and jit.load return is called like a function")
        scope = current_programs().scope if scope is None else scope
        given = _fed(feed)
        fetched = [_found(program, each) for each in _flat(fetch_list)]
        ready = self._prepared(program, [x for x in fetched if isinstance(x, Value)])
        for name in ready.reads:
            if name not in scope:
                raise KeyError(f"Executor.run: the scope has no value for {name!r}, which the program reads; run the "
                               "startup program first")
        context = current()
        before = context.rng
        context.rng = generator_of(program)         # regions draw while they run
        try:
            out = ready.runner.run(self._feed(program, ready, given), scope)
        finally:
            context.rng = before
        numbers = itertools.count()
        arrays = [out[f"fetch_{next(numbers)}"] if isinstance(x, Value) else x for x in fetched]
        return arrays if return_numpy else [Tensor(np.array(a)) for a in arrays]

    def close(self) -> None:
        """Forget what has been prepared."""
        self._ready.clear()
        self._programs.clear()

    def _prepared(self, program: Program, values: list[Value]) -> _Ready:
        key = (id(program), *map(id, values))
        state = tuple(id(handle.payload) for handle, _ in program.trace.state.values())
        found = self._ready.get(key)
        if found is None or (found.size, found.state) != (program.num_ops(), state):
            copy = program.executable(values)
            remove_dead_ops(copy)
            for op in list(copy.walk()):
                if op.name() == "pd_op.data" and op.result(0).use_empty():
                    op.erase()
                elif not op.info.registered:
                    raise NotImplementedError(user_error(op, "expected operators that minipd has, to run them: the "
                                                             "program can be kept, printed, drawn and saved, not run"))
            forget_absent_sizes(copy)
            found = self._ready[key] = _Ready(executor.Executor(copy), tuple(copy.parameters()),
                                             program.num_ops(), state)
            self._programs[id(program)] = program
        return found

    def _feed(self, program: Program, ready: _Ready, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The inputs of this run: what the user gives, tensors from outside as they are now, keys of random draws."""
        trace, rng = program.trace, current().rng
        unknown = [name for name in given if name not in trace.input_names]
        if unknown:
            inputs = ", ".join(sorted(trace.input_names)) or "none"
            raise ValueError(f"Executor.run: expected values for the inputs {inputs}, got one for {unknown[0]!r}")
        feed: dict[str, np.ndarray] = {}
        for name, value in ready.runner.inputs.items():
            if name in trace.draws:
                feed[name] = rng.next_key(trace.draws[name])
            elif name in trace.captures:
                holder = trace.holders.get(name)
                feed[name] = trace.captures[name] if holder is None else holder.payload
            elif name in given:
                feed[name] = _array(name, given[name], value)
            else:
                raise ValueError(f"Executor.run: expected a value for the input {name!r}, which the values that are "
                                 "fetched depend on, got none in feed")
        return feed


def _fed(feed: Any) -> Mapping[str, Any]:
    """Name -> value, of what `run` is given."""
    if isinstance(feed, (list, tuple)) and len(feed) == 1:
        feed = feed[0]
    if not isinstance(feed, Mapping) and feed is not None:
        raise TypeError("Executor.run: expected feed to be a dict of input names and values, got "
                        f"{type(feed).__name__}")
    return feed or {}


def _flat(wanted: Any) -> list:
    """What `run` is asked for, one after the other; lists may hold lists."""
    if isinstance(wanted, (list, tuple)):
        return [x for each in wanted for x in _flat(each)]
    return [] if wanted is None else [wanted]


def _array(name: str, given: Any, value: Value) -> np.ndarray:
    """The value of an input as an array of its dtype; numbers of another width are converted, as numpy's float64.

    Raises: TypeError for numbers of another kind.
    """
    array = given.values("feed") if isinstance(given, Tensor) else given
    array = array if isinstance(array, np.ndarray) else np.asarray(array, value.dtype)
    if array.dtype != value.dtype:
        if _kind(array.dtype) != _kind(value.dtype):
            raise TypeError(f"Executor.run: expected values of dtype {value.dtype} for the input {name!r}, got "
                            f"{array.dtype}; convert them, astype({str(value.dtype)!r}), or declare the input so")
        array = array.astype(value.dtype)
    return array


def _kind(dtype: np.dtype) -> str:
    """Of what kind the numbers are: ints of all widths are of one, floats (with bfloat16) of another."""
    return "f" if dtype in dtypes.LOW_PRECISION else "i" if dtype.kind == "u" else dtype.kind


def _found(program: Program, wanted: Any) -> Any:
    """What is to be fetched: a value of the program, or an array that was never in it."""
    if isinstance(wanted, str):
        trace = program.trace
        handle = trace.state[wanted][0] if wanted in trace.state else _called(program, wanted)
        if handle is None:
            raise ValueError(f"Executor.run: expected fetch_list to name tensors of the program, got {wanted!r}, which "
                             "it does not have; give the tensor itself")
        wanted = handle
    payload: Any = wanted.payload if isinstance(wanted, Tensor) else wanted
    if isinstance(payload, Value):
        payload = program.twins.get(payload, payload)
    if isinstance(payload, Value) and payload.parent_block() is not program.global_block():
        raise ValueError("Executor.run: expected fetch_list to hold tensors of this program, got one of another")
    if not isinstance(payload, (Value, np.ndarray)):
        raise TypeError(f"Executor.run: expected tensors or names in fetch_list, got {type(wanted).__name__}")
    return payload


def _called(program: Program | None, name: str) -> Tensor | None:
    """The tensor of that name in the program, or in the one of which it is a copy."""
    if program is None:
        return None
    inputs = (op.result(0) for op in program.global_block()
              if op.name() == "pd_op.data" and op.attributes["name"].value == name)
    found = next(map(Tensor, inputs), None)
    if found is not None:
        return found
    found = program.trace.handle_called(name)
    return _called(program.original, name) if found is None else found
