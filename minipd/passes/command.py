"""`minipd passes` and `minipd bisect`: which passes there are, what they do to a program, and which one breaks it."""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

import numpy as np

from minipd.framework.errors import InputError
from minipd.framework.files import reason
from minipd.io.combined_tensors import read_combined
from minipd.ir.program import Program
from minipd.passes.bisection import bisect
from minipd.passes.listing import listing
from minipd.passes.manager import PassManager
from minipd.passes.pipelines import inference_passes
from minipd.passes.plugins import load_passes
from minipd.passes.table import pass_names
from minipd.static.saved_model import PARAMETERS, PROGRAM, file_of, imported, read_model, stored_names
from minipd.viz.command.programs import load_program, parse_sizes

__all__ = ["main_bisect", "main_passes"]

State = dict[str, np.ndarray]


def main_passes(argv: list[str]) -> int:
    """List the passes, or apply some to a program.  Returns the exit status.

    Raises: InputError for what is not there, naming it.
    """
    parser = argparse.ArgumentParser(
        prog="minipd passes", description="list the passes; with --on, apply those that are named to a program")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these passes only, with all that is known of each")
    parser.add_argument("-l", "--long", action="store_true", help="file, rules, options and dependents of each too")
    parser.add_argument("--on", metavar="PROGRAM", help=f"the program to apply NAMEs to, in order: {WHAT}")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE.pir", help="where it goes then (on the screen)")
    parser.add_argument("--level", type=int, default=4, help="skip passes of a higher level (%(default)s: none)")
    parser.add_argument("--print-ir", type=Path, metavar="FOLDER", help="write the program before and after each pass")
    parser.add_argument("--statistics", action="store_true", help="print changes, operations, time and memory per pass")
    parser.add_argument("--debug", action="store_true", help="verify the program after every pass and every rewrite")
    _shared_arguments(parser)
    given = parser.parse_args(argv)
    _load(given.load)
    if given.on is None:
        print(listing(known(given.names) or None, bool(given.names) or given.long))
        return 0
    if not given.names:
        raise InputError("names of passes to apply", "none", "name them: minipd passes NAME ... --on PROGRAM")
    program, _ = load(given.on, given.input)
    manager = PassManager(given.level, debug=given.debug)
    for name in known(given.names):
        manager.add_pass(name)
    if given.print_ir:
        manager.enable_ir_printing(given.print_ir)
    if given.statistics:
        manager.enable_print_statistics()
    manager.run(program)
    if given.out is None:
        print(program)
    else:
        _write(given.out, program)
    return 0


def main_bisect(argv: list[str]) -> int:
    """Find the pass, and the rewrite, that changes a program's result.  Returns 0 if none does, 1 if one does.

    Raises: InputError for what is not there, or does not run, naming it.
    """
    parser = argparse.ArgumentParser(
        prog="minipd bisect", description="run passes one by one on a program, and find the first after which it "
                                          "computes something else; of a pass made of rules, the rewrite")
    parser.add_argument("what", metavar="PROGRAM", help=WHAT)
    parser.add_argument("-p", "--passes", action="append", default=[], metavar="NAME[,NAME...]",
                        help="the pipeline (those of paddle.inference)")
    parser.add_argument("--feed", type=Path, metavar="FILE.npz", help="the inputs, by name (random ones)")
    parser.add_argument("--params", type=Path, metavar="FILE",
                        help="parameters: a .pdiparams, or an .npz by name (those beside a saved model; else random)")
    parser.add_argument("-s", "--size", action="append", default=[], metavar="S0=8",
                        help="what an open dimension of the inputs is; once for each (small ones)")
    parser.add_argument("--seed", type=int, default=0, help="of random inputs (%(default)s)")
    parser.add_argument("--rtol", type=float, help="how far results may be apart, in parts of the largest number of "
                                                   "each; 0: to the bit (what the dtype suggests)")
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER",
                        help="write the program just before and after as before.pir and after.pir")
    _shared_arguments(parser)
    given = parser.parse_args(argv)
    names = passes_of(given.passes, given.load) or inference_passes()
    program, state = load(given.what, given.input)
    if given.params is not None:
        state |= _parameters(program, given.params)
    feed = None if given.feed is None else _arrays(given.feed)
    found = bisect(program, names, feed, given.rtol, state=state, sizes=parse_sizes(given.size), seed=given.seed)
    if found is None:
        print(f"the result stays the same after each of {len(names)} passes: {', '.join(names)}")
        return 0
    print(found)
    if given.out is not None:
        _write(given.out / "before.pir", found.before)
        _write(given.out / "after.pir", found.after)
    return 1


WHAT = ("FILE.py:function, a program as text (FILE.pir, exact style), or a saved model (FILE.json, or the path without "
        ".json; its .pdiparams beside it)")


def _shared_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py",
                        help="a file of your own that registers passes; once for each")
    parser.add_argument("-i", "--input", action="append", default=[], metavar="DTYPE[DIMS]",
                        help="what an argument of the function looks like, such as float32[8,S,64]; once for each")


def load(what: str, inputs: list[str]) -> tuple[Program, State]:
    """The program that the words name, and the values of its parameters as far as there are some.

    Raises: InputError.
    """
    path = Path(what)
    prefix = path.with_name(path.name.removesuffix(PROGRAM)) if path.suffix == PROGRAM else path
    file, parameters = file_of(prefix, PROGRAM), file_of(prefix, PARAMETERS)
    if ".py:" in what or not file.is_file() or path.suffix not in ("", PROGRAM) and path.is_file():
        return load_program(what, inputs), {}
    if not parameters.is_file():
        return imported(load_program(what, inputs), str(file)), {}
    model = read_model(prefix)
    return imported(model.saved.program, str(file)), dict(model.values)


def apply(program: Program, passes: list[str], files: list[str]) -> None:
    """Run the passes of `passes_of`.   Raises: InputError for a name that is not there."""
    manager = PassManager(opt_level=4)
    for name in passes_of(passes, files):
        manager.add_pass(name)
    manager.run(program)


def passes_of(texts: list[str], files: list[str]) -> list[str]:
    """The names of passes that texts such as "a_pass,b_pass" have, of the table, or of these files of the user's.

    Raises: InputError for a name that is not there.
    """
    _load(files)
    return known([name for text in texts for name in text.split(",") if name])


def _load(files: list[str]) -> None:
    for file in files:
        load_passes(file)


def known(names: list[str]) -> list[str]:
    """The names, if they are all in the table.

    Raises: InputError for one that is not.
    """
    there = pass_names()
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, there, 1)
            raise InputError("the name of a pass", repr(name), (f"did you mean {near[0]}? " if near else "") +
                             "`minipd passes` lists them, and --load FILE.py adds those of a file")
    return names


def _parameters(program: Program, file: Path) -> State:
    if file.suffix == ".npz":
        return _arrays(file)
    return read_combined(file, stored_names(program))


def _arrays(file: Path) -> State:
    try:
        with np.load(file) as found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError) as error:
        raise InputError("arrays by name, as numpy.savez writes them", f"{file} ({error})", "check the path") from None


def _write(file: Path, program: Program) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(program.to_string("exact"), encoding="utf-8")
    except OSError as error:
        raise InputError(f"a place to write {file.name}", f"{file} ({reason(error)})", "give a path that can be "
                         "written") from error
    print(file)
