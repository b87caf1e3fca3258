"""`minipd explain FILE.py:function`: what the compiler makes of a function, and why."""

from __future__ import annotations

import argparse
from pathlib import Path

from minipd.framework.errors import InputError
from minipd.ir.program import Program
from minipd.viz.command.programs import load_program, load_value, parse_spec, wrong_inputs

__all__ = ["main"]


def main(argv: list[str]) -> int:
    """Print the explanation, or write it as a page.  Returns the exit status.

    Raises: InputError for what is not there, or cannot be traced, naming it.
    """
    parser = argparse.ArgumentParser(prog="minipd explain", description="what the compiler makes of a function: which "
                                     "operators become one kernel and why, bytes moved, schedules, loops, code")
    parser.add_argument("what", help="FILE.py:function (or :layer), a program as text (FILE.pir), or a saved model "
                                     "(FILE.json)")
    parser.add_argument("-i", "--input", action="append", default=[], metavar="DTYPE[DIMS]",
                        help="what an argument looks like, such as float32[8,S,64]; once for each")
    parser.add_argument("-g", "--gradient", action="store_true", help="the gradients of float inputs are wanted, too")
    parser.add_argument("-s", "--summary", action="store_true", help="a line for each kernel only")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE.html", help="a page, with pictures; without, text")
    given = parser.parse_args(argv)
    found = _explained(given)
    if given.out is None:
        print(found.summary if given.summary else found)
    else:
        from minipd.viz.cinn.page import page
        page(found).save(given.out)
        print(given.out)
    return 0


def _explained(given: argparse.Namespace):                              # type: ignore[no-untyped-def]
    from minipd.cinn.explanation import explain  # with numba, which takes long
    thing = load_value(given.what) if ".py:" in given.what else load_program(given.what, given.input)
    if isinstance(thing, Program):
        return explain(thing)
    specs = [parse_spec(text) for text in given.input]
    for spec in specs:
        spec.stop_gradient = not given.gradient or spec.dtype.np.kind in "iub"
    try:
        return explain(thing, *specs)
    except TypeError as error:
        raise wrong_inputs(len(specs), given.what, error) from None
    except ValueError as error:
        raise InputError("a function that can be traced", given.what, str(error)) from None
