"""`minipd draw`: a picture of a program, of its fusion groups, or of their loop nests."""

from __future__ import annotations

import argparse
import importlib.util
import re
from pathlib import Path
from typing import Any

from minipd.framework.dtype import to_np
from minipd.framework.errors import InputError
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.jit import StaticFunction
from minipd.static.input import InputSpec
from minipd.viz.program import program_graph
from minipd.viz.render import save

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Draw what the command line names; returns the exit status.

    Raises: InputError for what cannot be drawn, naming it.
    """
    parser = argparse.ArgumentParser(prog="minipd draw", description="draw a program, its fusion groups, or its loops")
    parser.add_argument("what", help="FILE.py:function, or a program as text (FILE.pir, exact style)")
    parser.add_argument("-i", "--input", action="append", default=[], metavar="DTYPE[DIMS]",
                        help="what an argument of the function looks like, such as float32[8,S,64]; once for each")
    parser.add_argument("-o", "--out", type=Path, help="FILE.svg or FILE.dot; DOT text (loops: text) on the screen if "
                                                       "left out")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--groups", action="store_true", help="with operators in their fusion groups")
    shown.add_argument("--loops", action="store_true", help="the loop nests of the fusion groups")
    given = parser.parse_args(argv)
    program = load(given.what, given.input)
    if given.loops:
        return _draw_loops(program, given.out)
    if given.groups:
        from minipd.viz.loops import group
        program = group(program)
    graph = program_graph(program, given.what)
    if given.out is None:
        print(graph.dot(), end="")
    else:
        save(graph, given.out)
    return 0


def _draw_loops(program: Program, out: Path | None) -> int:
    from minipd.viz.loops import loop_nests, loops_svg, loops_text
    functions = loop_nests(program)
    if out is None:
        print(loops_text(functions), end="")
    elif out.suffix == ".svg":
        out.write_text(loops_svg(functions))
    elif out.suffix == ".txt":
        out.write_text(loops_text(functions))
    else:
        raise InputError("loop nests as .svg or .txt", str(out), "choose one of these endings")
    return 0


def load(what: str, inputs: list[str]) -> Program:
    """The program that the command line names."""
    path, _, name = what.partition(":") if ".py:" in what else (what, "", "")
    file = Path(path)
    if not file.is_file():
        raise InputError("FILE.py:function or FILE.pir", what, "no such file; check the path")
    if file.suffix != ".py":
        try:
            return parse(file.read_text())
        except ValueError as error:
            raise InputError("a program in the exact style (Program.to_string('exact'))", str(file), str(error)) \
                from None
    if not name:
        raise InputError("FILE.py:function", what, "name the function after a colon")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if found is None:
        raise InputError(f"a name that {file} defines", repr(name), "check the spelling")
    return program_of(found, [parse_spec(text) for text in inputs], what)


def program_of(found: Any, specs: list[InputSpec], what: str) -> Program:
    """The program of what a file defines: a Program, a compiled function with its input_spec, or any function."""
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
        return trace(found, *specs).program
    except TypeError as error:
        problem = f"give --input once for each argument ({error})"
        raise InputError(f"a function of {len(specs)} tensors", what, problem) from None


def parse_spec(text: str) -> InputSpec:
    """`float32[8,S,64]` as a specification.

    >>> parse_spec("float32[8,S,-1]")
    InputSpec(shape=(8, S, -1), dtype=paddle.float32, name=None, stop_gradient=True)
    """
    match = re.fullmatch(r"(\w+)\[([\w\s,-]*)\]", text)
    if match is None:
        raise InputError("an input such as float32[8,S,64]", repr(text), "write the dtype, then the dimensions")
    dims = [d.strip() for d in match[2].split(",") if d.strip()]
    try:
        return InputSpec([int(d) if d.lstrip("-").isdecimal() else d for d in dims], to_np(match[1]))
    except (TypeError, ValueError) as error:
        raise InputError("an input such as float32[8,S,64]", repr(text), str(error)) from None
