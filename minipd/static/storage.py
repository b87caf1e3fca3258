"""Saving and loading the state of a static program: `prefix.pdparams` and `prefix.pdopt`.

A program itself is saved by `paddle.save`, as its text in the exact style.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from minipd.framework.tensor import Parameter, Tensor
from minipd.io import serialization
from minipd.ir import program as ir
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.parser import parse
from minipd.static.program import Program

__all__ = ["load", "load_program_state", "save", "set_program_state"]


def save(program: Program, model_path: str, protocol: int = 4) -> None:
    """Write the parameters to `model_path.pdparams`, and what optimizers keep to `model_path.pdopt`."""
    for mode, suffix in (("param", ".pdparams"), ("opt", ".pdopt")):
        serialization.save(program.state_dict(mode), model_path + suffix, protocol)


def load(program: Program, model_path: str, executor: Any = None, var_list: Any = None) -> None:
    """Read what `save` has written into the scope.

    var_list: the parameters to read, None for all.  executor: accepted as in Paddle, not needed.
    """
    wanted = None if var_list is None else {v.name for v in var_list}
    state = load_program_state(model_path)
    program.set_state_dict({name: value for name, value in state.items() if wanted is None or name in wanted})


def load_program_state(model_path: str, var_list: Any = None) -> dict[str, np.ndarray]:
    """What `save` has written, by name."""
    found: dict[str, np.ndarray] = {}
    for suffix in (".pdparams", ".pdopt"):
        if suffix == ".pdparams" or Path(model_path + suffix).is_file():
            found |= serialization.load(model_path + suffix, return_numpy=True)
    return found


def set_program_state(program: Program, state_dict: dict[str, Any]) -> None:
    """Store values of program state in the scope, by name."""
    program.set_state_dict(state_dict)


def program_of(text: str) -> Program:
    """The static program that prints as `text`.   ValueError for text that is none."""
    program, mapping = Program(), IrMapping()
    for op in parse(text).global_block():
        copy = clone_operation(op, mapping)
        program.trace.build.insert(copy)
        if op.name() == "pd_op.data":
            program.trace.input_names.add(op.attributes["name"].value)
        if op.name() == "builtin.parameter":
            value = copy.result(0)
            handle = Tensor(value) if value.stop_gradient else Parameter(value)
            handle.name = copy.attributes["parameter_name"].value
            program.trace.state = {handle.name: (handle, value), **program.trace.state}     # the last made is in front
    return program


serialization.KINDS.append(serialization.Kind(
    b"minipd program\n", lambda x: isinstance(x, ir.Program), lambda program: program.to_string("exact").encode(),
    lambda data: program_of(data.decode())))
