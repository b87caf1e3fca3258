"""Finding what is to be drawn: functions in files, programs as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from minipd.framework.errors import InputError
from minipd.framework.user_file import run_file

__all__ = ["load_program", "load_value", "parse_sizes", "parse_spec"]


def load_value(what: str) -> Any:
    """What `FILE.py:name` names.

    Raises: InputError for a file or a name that is not there, or a file that fails.
    """
    path, _, name = what.partition(".py:")
    file = Path(f"{path}.py")
    if not name:
        raise InputError("FILE.py:function", what, "name the function after a colon")
    _must_be_there(file, what)
    module = run_file(file)
    if not hasattr(module, name):
        raise InputError(f"a name that {file} defines", repr(name), "check the spelling")
    return getattr(module, name)


def load_program(what: str, inputs: list[str]) -> Any:
    """The program that `FILE.py:name`, a file with a program's text, or a saved model names.

    inputs: what the arguments of a function look like.  Raises: InputError.
    """
    if ".py:" in what or Path(what).suffix == ".py":
        return _program_of(load_value(what), [parse_spec(text) for text in inputs], what)
    file = Path(what)
    saved = file.with_name(file.name + ".json")
    if file.suffix == ".json" or not file.is_file() and saved.is_file():
        from minipd.ir.serialize import read_program_file
        return read_program_file(file if file.suffix == ".json" else saved).program
    from minipd.ir.parser import parse
    _must_be_there(file, what)
    try:
        return parse(file.read_text())
    except ValueError as error:
        raise InputError("a program in the exact style (Program.to_string('exact'))", str(file), str(error)) from None


def _must_be_there(file: Path, what: str) -> None:
    if not file.is_file():
        raise InputError("FILE.py:function, FILE.pir or FILE.json", what,
                         "no such file; check the path (the command's --help tells what else it takes)")


def _program_of(found: Any, specs: list, what: str) -> Any:
    """The program of what a file defines: a Program, a compiled function with its input_spec, or any function."""
    from minipd.ir.program import Program
    from minipd.ir.traced import trace
    from minipd.jit import StaticFunction
    from minipd.jit.dy2static import traceable
    if isinstance(found, Program):
        return found
    if isinstance(found, StaticFunction):
        if specs:
            found = StaticFunction(found.dygraph_function, specs, found.options)
        elif found.input_spec is None:
            raise InputError("inputs for a compiled function without input_spec", what, "give each with --input")
        return found.concrete_program.main_program
    if not callable(found):
        raise InputError("a function or a Program", f"{type(found).__name__} {what}", "name one of these")
    try:
        return trace(traceable(found), *specs).program
    except TypeError as error:
        raise wrong_inputs(len(specs), what, error) from None


def wrong_inputs(given: int, what: str, error: Exception) -> InputError:
    """The error for a function that does not take what is given."""
    return InputError(f"a function of {given} tensors", what, f"give --input once for each argument ({error})")


def parse_spec(text: str) -> Any:
    """`float32[8,S,64]` as a specification.   Raises: InputError."""
    from minipd.static.input import parse_spec
    try:
        return parse_spec(text)
    except (TypeError, ValueError) as error:
        raise InputError("an input such as float32[8,S,64]", repr(text), str(error)) from None


def parse_sizes(texts: list[str]) -> dict[str, int]:
    """What symbols are: each text such as `S0=8`.

    >>> parse_sizes(["S0=8", "S1=3"])
    {'S0': 8, 'S1': 3}

    Raises: InputError.
    """
    sizes = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not name or not number.isdecimal():
            raise InputError("a size such as S0=8", repr(text), "write the symbol as the program's text has it, = and "
                             "a number")
        sizes[name] = int(number)
    return sizes
