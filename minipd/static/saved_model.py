"""A program with its parameters as the two files that Paddle 3 writes.

    prefix.json        the program, in Paddle's form (see `minipd.ir.serialize`)
    prefix.pdiparams   the values of its parameters, in the order of their names; absent if it has none

A program of ours that is saved is translated to Paddle's form, and one that is loaded from it.  The loaded one is kept
in both forms: what Paddle's operators do that minipd has no row for can be drawn and written again, and fails when it
runs, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.io.combined_tensors import combined, read_combined, separated, write_combined
from minipd.ir.attributes import ArrayAttribute, BoolAttribute, Int32Attribute, StrAttribute
from minipd.ir.dce import remove_dead_ops
from minipd.ir.operation import Operation, user_error
from minipd.ir.paddle import from_paddle, to_paddle
from minipd.ir.paddle.open_sizes import open_sizes
from minipd.ir.paddle.parts import in_parts
from minipd.ir.paddle.reasons import REASONS, SOME_CALLS, our_name
from minipd.ir.program import Program
from minipd.ir.serialize import SavedProgram, program_json, read_program_file
from minipd.ir.types import TensorType
from minipd.ir.verify import verify

__all__: list[str] = []

PROGRAM, PARAMETERS = ".json", ".pdiparams"


class Model(NamedTuple):
    """A program as it is in the file, and the values of its parameters by name."""

    saved: SavedProgram
    values: dict[str, np.ndarray]


# ------------------------------------------------------------------------------------------------------- writing
def exported(program: Program, keys: Iterable[str] = ()) -> Program:
    """A program of ours in Paddle's form, as it is saved.

    Outputs become `pd_op.fetch`; what only other things need than these is left out, and so are writes of program
    state: a model that is only asked for answers stays as it is.  keys: the inputs that are keys of random draws, which
    Paddle's operators draw by themselves.
    """
    copy = program.clone()
    for op in list(copy.global_block()):
        if op.name() == "builtin.set_parameter":
            op.erase()
    remove_dead_ops(copy)
    in_parts(copy)
    remove_dead_ops(copy)
    result = to_paddle(open_sizes(copy))
    for op in result.walk():
        name = op.name().partition(".")[2]
        reason = REASONS.get(name) or SOME_CALLS.get(name)
        if reason is not None and op.name() == our_name(name):
            raise InputError("operators that Paddle has", user_error(op, reason),
                             "compute it with other operators")
    unread = set(keys)
    for op in list(result.global_block()):
        if op.name() == "pd_op.data" and op.attributes["name"].value in unread and op.result(0).use_empty():
            op.erase()
    _fetch_outputs(result)
    return result


def as_parameter(data: Operation, name: str) -> None:
    """Let an input be a parameter of that name instead."""
    value, block = data.result(0), data.parent
    assert block is not None
    stop = value.stop_gradient
    read = Operation("builtin.parameter", (), {
        "is_distributed": [False], "is_parameter": [True], "need_clip": [True], "parameter_name": name,
        "persistable": [True], "stop_gradient": [stop], "trainable": [not stop]}, [value.type()])
    block.insert_before(data, read)
    value.replace_all_uses_with(read.result(0))
    data.erase()


def _fetch_outputs(program: Program) -> None:
    """Let `pd_op.fetch` stand for every output.  As in Paddle, an output that is an input is called what that is."""
    outputs = [op for op in program.global_block() if op.name() == "builtin.shadow_output"]
    for i, op in enumerate(outputs):
        value = op.operand_source(0)
        maker = value.get_defining_op()
        named = maker is not None and maker.name() in ("pd_op.data", "builtin.parameter")
        fetch = Operation("pd_op.fetch", [value], {
            "name": StrAttribute(value.name if named else f"fetch_name_{i}"), "col": Int32Attribute(i),
            "persistable": ArrayAttribute((BoolAttribute(True),)),
            "stop_gradient": ArrayAttribute((BoolAttribute(value.stop_gradient),))}, [value.type()])
        program.global_block().insert_before(op, fetch)
        op.erase()


def write_model(prefix: Path, program: Program, values: Mapping[str, np.ndarray], trainable: bool = True) -> None:
    """Write the two files, each whole or not at all; the folder is made if it is not there.

    program: in Paddle's form.  values: at least those of its parameters.
    Raises: InputError if the folder cannot be written, or for what Paddle's format has no code for.
    """
    text = program_json(program, trainable)
    wanted = {name: values[name] for name in program.parameters()}
    try:
        prefix.parent.mkdir(parents=True, exist_ok=True)
        if wanted:
            write_combined(file_of(prefix, PARAMETERS), wanted)
        else:
            file_of(prefix, PARAMETERS).unlink(missing_ok=True)         # of an earlier save
        write_atomically(file_of(prefix, PROGRAM), text)
    except OSError as e:
        raise InputError(f"a place to write {prefix.name}{PROGRAM}", f"{prefix} ({reason(e)})",
                         "give a path in a folder that can be made and written") from e
    except UnicodeEncodeError as e:
        raise InputError("names that UTF-8 can write", str(e), "rename the parameter or input") from e


def parameter_bytes(program: Program, values: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of the parameter file."""
    return combined({name: values[name] for name in program.parameters()})


# ------------------------------------------------------------------------------------------------------- reading
def read_model(prefix: Path, program_file: Path | None = None, parameter_file: Path | None = None) -> Model:
    """What the two files hold.   program_file, parameter_file: where they are, if not beside each other.

    Raises: InputError for files that are not there or are damaged, or do not belong together.
    """
    program_file = program_file or file_of(prefix, PROGRAM)
    parameter_file = parameter_file or file_of(prefix, PARAMETERS)
    saved = read_program_file(program_file)
    names = stored_names(saved.program)
    values = read_combined(parameter_file, names) if names else {}
    check_values(saved.program, values, str(parameter_file))
    return Model(saved, values)


def parse_parameters(program: Program, data: bytes, where: str = "the data") -> dict[str, np.ndarray]:
    """The values in the bytes of a parameter file.   Raises: InputError."""
    values = separated(data, stored_names(program), where)
    check_values(program, values, where)
    return values


def stored_names(program: Program) -> list[str]:
    """The parameters of which a file has values; Paddle leaves out what it does not call persistable."""
    return [name for name, value in program.parameters().items() if value.persistable]


def check_values(program: Program, values: Mapping[str, np.ndarray], where: str) -> None:
    """Raises: InputError for a value that does not fit its parameter."""
    for name, value in program.parameters().items():
        if not isinstance(value.type(), TensorType):
            raise InputError(f"{name} to be a tensor", f"a parameter of type {value.type()} beside {where}",
                             "save the program again; the file was damaged or written by something else")
        if name in values and (values[name].shape, values[name].dtype) != (value.shape, value.dtype):
            raise InputError(f"{name} to be {value.type()}",
                             f"{values[name].dtype}{list(values[name].shape)} in {where}",
                             "take program and parameters from the same save")


def imported(original: Program, file: str = "the program") -> Program:
    """The program in our form.  Its outputs are `output_0`, `output_1`, ..., in the order of Paddle's columns.

    Raises: InputError for operators that are given what they do not take.
    """
    copy = original.clone()
    fetches = [op for op in copy.global_block() if op.name() == "pd_op.fetch"]
    for i, op in enumerate(sorted(fetches, key=_column)):
        copy.global_block().append(Operation("builtin.shadow_output", [op.operand_source(0)],
                                             {"output_name": f"output_{i}"}))
    for op in fetches:
        if op.result(0).use_empty():
            op.erase()
    try:
        result = from_paddle(copy)
        remove_dead_ops(result)             # such as the state of a dropout that does not drop
        return verify(result, allow_unregistered=True)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
            ValueError) as error:
        raise InputError("a program of operators that take what they are given", f"{error} in {file}",
                         "save the program again; the file was damaged or written by something else") from error


def _column(fetch: Operation) -> int:
    col = fetch.attributes.get("col")
    return col.value if isinstance(col, Int32Attribute) else 0


def file_of(prefix: Path, suffix: str) -> Path:
    """`prefix` with a suffix after it, whatever dots are in it."""
    return prefix.with_name(prefix.name + suffix)
