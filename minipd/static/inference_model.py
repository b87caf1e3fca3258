"""Saving and loading what a static program computes, for inference: Paddle's `static.save_inference_model` and its
parts.

    static.save_inference_model("model/net", [image], [predict], exe)
    program, feed_names, fetch_targets = static.load_inference_model("model/net", exe)
    exe.run(program, feed={feed_names[0]: ...}, fetch_list=fetch_targets)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.framework.tensor import Parameter, Tensor
from minipd.ir import program as ir
from minipd.ir.dce import remove_dead_ops
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.serialize import program_json, read_program
from minipd.ir.value import Value
from minipd.static import saved_model
from minipd.static.for_test import for_test
from minipd.static.program import Program, current_programs, forget_absent_sizes

__all__ = ["deserialize_persistables", "deserialize_program", "load_from_file", "load_inference_model",
           "normalize_program", "save_inference_model", "save_to_file", "serialize_persistables", "serialize_program"]

#: which keyword arguments Paddle takes; `program` stands for the default main program
SAVE_OPTIONS = ("program", "clip_extra", "legacy_format", "readable", "trainable", "skip_prune_program")
LOAD_OPTIONS = ("model_filename", "params_filename")


def save_inference_model(path_prefix: str, feed_vars: Any, fetch_vars: Any, executor: Any, **kwargs: Any) -> None:
    """Write `path_prefix.json` and `path_prefix.pdiparams`: what computes `fetch_vars` from `feed_vars`.

    feed_vars, fetch_vars: inputs and values of the program, or lists of them.  kwargs: program (default: the default
    main program); trainable, False to leave out what only training needs; clip_extra, legacy_format, readable,
    skip_prune_program: accepted as in Paddle, without effect.

    Raises: ValueError for what is not fed and has no default, or values of another program; KeyError if the startup
    program has not run; InputError if the files cannot be written.
    """
    program = _program("save_inference_model", kwargs)
    found = _exported(program, _pruned("save_inference_model", program, feed_vars, fetch_vars))
    saved_model.write_model(Path(path_prefix), found, _values_of(program, found), bool(kwargs.get("trainable", True)))


def load_inference_model(path_prefix: str | None, executor: Any, **kwargs: Any) -> list:
    """[program, names of its inputs, its results], of what `save_inference_model` or `jit.save` has written.

    The parameters go to the scope.  kwargs: model_filename, params_filename: the names of files in the folder
    `path_prefix`; without a folder (None), the contents of the files, as bytes.
    Raises: InputError for files that are not there, damaged, or not of one save.
    """
    for name in kwargs:
        if name not in LOAD_OPTIONS:
            raise ValueError(f"load_inference_model: expected {' or '.join(LOAD_OPTIONS)}, got {name!r}")
    program_file, parameter_file = kwargs.get("model_filename"), kwargs.get("params_filename")
    if path_prefix is None:
        if not isinstance(program_file, bytes) or not isinstance(parameter_file, bytes):
            raise ValueError("load_inference_model: expected the bytes of both files as model_filename and "
                             "params_filename where path_prefix is None")
        saved = read_program(program_file)
        model = saved_model.Model(saved, saved_model.parse_parameters(saved.program, parameter_file))
    else:
        prefix = Path(path_prefix)
        model = saved_model.read_model(prefix, *(
            None if name is None else prefix / name for name in (program_file, parameter_file)))
    program = static_program(saved_model.imported(model.saved.program, str(path_prefix or "the data")))
    _store(program, model.values)
    return [program, _inputs(program), program.targets]


def normalize_program(program: Program, feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> LoadedProgram:
    """A program with only what computes `fetch_vars` from `feed_vars`, as it would be saved and loaded again.

    kwargs: skip_prune_program: accepted as in Paddle, without effect.
    Raises: TypeError for what is no program, or are no values; ValueError for an empty program.
    """
    if not isinstance(program, Program):
        raise TypeError(f"normalize_program: expected a static.Program, got {type(program).__name__}")
    found = static_program(_pruned("normalize_program", program, feed_vars, fetch_vars))
    kept = found.trace.input_names
    found.trace.captures = {n: x for n, x in program.trace.captures.items() if n in kept}
    found.trace.holders = {n: x for n, x in program.trace.holders.items() if n in kept}
    found.trace.draws = {n: path for n, path in program.trace.draws.items() if n in kept}
    return found


def serialize_program(feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> bytes:
    """The contents of the `.json` file.   kwargs: as `save_inference_model`."""
    program = _program("serialize_program", kwargs)
    found = _exported(program, _pruned("serialize_program", program, feed_vars, fetch_vars))
    return program_json(found).encode()


def deserialize_program(data: bytes) -> LoadedProgram:
    """The program in the contents of a `.json` file.

    Raises: InputError if it is damaged, or something else.
    """
    if not isinstance(data, bytes):
        raise TypeError(f"deserialize_program: expected bytes, got {type(data).__name__}")
    return static_program(saved_model.imported(read_program(data, "the data").program))


def serialize_persistables(feed_vars: Any, fetch_vars: Any, executor: Any, **kwargs: Any) -> bytes | None:
    """The contents of the `.pdiparams` file; None for a program without parameters.

    kwargs: as `save_inference_model`.   Raises: KeyError if the startup program has not run.
    """
    program = _program("serialize_persistables", kwargs)
    found = _exported(program, _pruned("serialize_persistables", program, feed_vars, fetch_vars))
    return saved_model.parameter_bytes(found, _values_of(program, found)) if found.parameters() else None


def deserialize_persistables(program: Program, data: bytes | None, executor: Any) -> None:
    """Store the contents of a `.pdiparams` file in the scope, as the parameters of `program`.

    Raises: InputError if they are damaged, or of another program.
    """
    if not isinstance(program, Program):
        raise TypeError(f"deserialize_persistables: expected a static.Program, got {type(program).__name__}")
    if program.parameters():
        if not isinstance(data, bytes):
            raise TypeError(f"deserialize_persistables: expected bytes, got {type(data).__name__}")
        _store(program, saved_model.parse_parameters(program, data))


def save_to_file(path: str, content: bytes) -> None:
    """Write bytes, whole or not at all.   Raises: InputError if the folder cannot be written."""
    if not isinstance(content, bytes):
        raise TypeError(f"save_to_file: expected bytes, got {type(content).__name__}")
    try:
        write_atomically(Path(path), content)
    except OSError as e:
        raise InputError("a file that can be written", f"{path} ({reason(e)})",
                         "give a name in a folder that exists and can be written") from e


def load_from_file(path: str) -> bytes:
    """The bytes of a file.   Raises: InputError if there is none."""
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise InputError("a file", f"{path} ({reason(e)})", "check the path") from e


# ----------------------------------------------------------------------------------------------------- in between
class LoadedProgram(Program):
    """A static program that came from a file.   targets: its results, in order."""

    targets: list[Tensor]


def static_program(program: ir.Program) -> LoadedProgram:
    """The program as one that static mode writes, which an executor runs and code may go on with."""
    found, mapping = LoadedProgram(), IrMapping()
    for c in program.constraints:
        found.constraints.add(c)
    found.targets = []
    for op in program.global_block():
        if op.name() == "builtin.shadow_output":
            found.targets.append(_handle(mapping.look_up(op.operand_source(0))))
            continue
        copy = clone_operation(op, mapping)
        found.trace.build.insert(copy)
        if op.name() == "pd_op.data":
            found.trace.input_names.add(op.attributes["name"].value)
            if is_key(op.result(0)):
                found.trace.draws[op.attributes["name"].value] = ""
        if op.name() == "builtin.parameter":
            value = copy.result(0)
            handle = Tensor(value) if value.stop_gradient else Parameter(value)
            handle.name = copy.attributes["parameter_name"].value
            found.trace.state[handle.name] = handle, value
    forget_absent_sizes(found)
    return found


def _handle(value: Value) -> Tensor:
    x = Tensor(value)
    x.stop_gradient = value.stop_gradient
    return x


def is_key(value: Value) -> bool:
    """Whether an input is the key of random draws, which every run draws anew: whether only they read it."""
    readers = [(use.owner().row, use.index()) for use in value.uses]
    return bool(readers) and all(row is not None and row.inputs[i:i + 1] == ("key",) for row, i in readers)


def _inputs(program: Program) -> list[str]:
    return [name for op in program.global_block() if op.name() == "pd_op.data"
            and (name := op.attributes["name"].value) not in program.trace.draws]


def _program(what: str, kwargs: dict[str, Any]) -> Program:
    for name in kwargs:
        if name not in SAVE_OPTIONS:
            raise ValueError(f"{what}: expected keywords of the names {', '.join(SAVE_OPTIONS)}, got {name!r}")
    program = kwargs.get("program")
    program = current_programs().main if program is None else program
    if not isinstance(program, Program):
        raise TypeError(f"{what}: expected program to be a static.Program, got {type(program).__name__}")
    return program


def _pruned(what: str, program: Program, feed_vars: Any, fetch_vars: Any) -> ir.Program:
    """What computes `fetch_vars` from `feed_vars`, in our form, as it is in evaluation: a model that is saved drops
    nothing, and normalises by its running statistics.

    Raises: ValueError for an input that the results need and that is not named.
    """
    feeds, fetches = (_values(f"{what}: {role}", given, program) for role, given in (
        ("feed_vars", feed_vars), ("fetch_vars", fetch_vars)))
    test = for_test(program, fetches)
    fetches = [test.twins[value] for value in fetches]
    names = set()
    for value in feeds:
        maker = value.get_defining_op()
        if maker is None or maker.name() != "pd_op.data":
            raise ValueError(f"{what}: expected feed_vars to be inputs made by static.data, got {value}")
        names.add(value.name)
    copy, trace = test.executable(fetches), test.trace
    for op in list(copy.global_block()):
        if op.name() == "builtin.set_parameter":
            op.erase()
    remove_dead_ops(copy)
    for op in list(copy.global_block()):
        if op.name() == "pd_op.data" and (name := op.attributes["name"].value) not in names:
            if op.result(0).use_empty():
                op.erase()
            elif name not in trace.captures and name not in trace.draws:
                raise ValueError(f"{what}: expected feed_vars to hold every input that fetch_vars depend on, got none "
                                 f"for {name!r}")
    return copy


def _exported(program: Program, pruned: ir.Program) -> ir.Program:
    """The pruned program in Paddle's form; tensors from outside of the program become parameters."""
    for op in list(pruned.global_block()):
        if op.name() == "pd_op.data" and op.attributes["name"].value in program.trace.captures:
            saved_model.as_parameter(op, op.attributes["name"].value)
    return saved_model.exported(pruned, program.trace.draws)


def _values_of(program: Program, exported: ir.Program) -> dict[str, np.ndarray]:
    """The values of the parameters, from the scope or from outside of the program."""
    trace, scope = program.trace, current_programs().scope
    outside = trace.captures | {name: x.payload for name, x in trace.holders.items()}
    return {name: np.asarray(outside[name] if name in outside else scope.array(name)) for name in exported.parameters()}


def _values(what: str, given: Any, program: Program) -> list[Value]:
    """The values that tensors hold; of a copy, those that stand for the original's."""
    items = list(given) if isinstance(given, (list, tuple)) else [given]
    values = []
    for x in items:
        if not isinstance(x, Tensor) or not isinstance(x.payload, Value):
            raise TypeError(f"{what}: expected a tensor of a static program or a list of them, got {type(x).__name__}")
        values.append(program.twins.get(x.payload, x.payload))
        if values[-1].parent_block() is not program.global_block():
            raise ValueError(f"{what}: expected tensors of the program that is saved, got {x.payload}, which belongs "
                             "to another program")
    if not items:
        raise ValueError(f"{what}: expected at least one tensor, got none")
    return values


def _store(program: Program, values: dict[str, np.ndarray]) -> None:
    for name, array in values.items():
        if name in program.trace.state:
            current_programs().scope[name] = array
