"""`minipd draw` tape, program, matches, layers, memory, use-def, groups, loops, steps."""

from __future__ import annotations

import inspect
import re
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from minipd import viz
from minipd.framework.errors import InputError
from minipd.framework.tensor import Tensor
from minipd.viz.command.programs import load_program, load_value, parse_sizes, parse_spec, wrong_inputs
from minipd.viz.ir.layers import Page
from minipd.viz.svg import Svg

__all__: list[str] = []

Picture = tuple[Svg, str]


# --------------------------------------------------------------------------------------------------- arguments
def program_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", help="FILE.py:function, a program as text (FILE.pir, exact style), or a saved "
                                     "model (FILE.json, or the path without .json)")
    _input_argument(parser)
    parser.add_argument("-p", "--passes", action="append", default=[], metavar="NAME[,NAME...]",
                        help="draw what these passes make of it; `minipd passes` lists them")
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py",
                        help="a file of your own that registers passes; once for each")


def part_arguments(parser: ArgumentParser) -> None:
    program_arguments(parser)
    parser.add_argument("--ops", metavar="FROM:TO", help="only these operations, counted from 0 as the text has them")


def matches_arguments(parser: ArgumentParser) -> None:
    part_arguments(parser)
    parser.add_argument("-r", "--rules", action="append", default=[], metavar="PASS[:RULE]", required=True,
                        help="the rules of a pass, or one of them; once for each")


def layered_arguments(parser: ArgumentParser) -> None:
    part_arguments(parser)
    parser.add_argument("--side-by-side", action="store_true",
                        help="the program as it is beside what the passes make of it, line by line")
    parser.add_argument("--depth", type=int, metavar="N",
                        help="fold by layer: N layers within layers are frames, deeper ones a box each")


def sizes_arguments(parser: ArgumentParser) -> None:
    program_arguments(parser)
    parser.add_argument("-s", "--size", action="append", default=[], metavar="S0=8",
                        help="what an open dimension of the program is; once for each")


def value_arguments(parser: ArgumentParser) -> None:
    program_arguments(parser)
    parser.add_argument("--value", default="%0", metavar="%N",
                        help="a value, as the program's text names it (%(default)s)")
    parser.add_argument("--depth", type=int, default=1, metavar="N",
                        help="how many operations away from it (%(default)s)")


def function_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", help="FILE.py:function, or FILE.py:tensor")
    _input_argument(parser)


def _input_argument(parser: ArgumentParser) -> None:
    parser.add_argument("-i", "--input", action="append", default=[], metavar="DTYPE[DIMS]",
                        help="what an argument of the function looks like, such as float32[8,S,64]; once for each")


# ------------------------------------------------------------------------------------------------------ things
def program_of(given: Namespace) -> Any:
    """The program that is named, after the passes that are."""
    loaded = load_program(given.what, given.input)
    if given.passes or given.load:
        from minipd.passes.command import apply
        loaded = _ours(loaded)
        apply(loaded, given.passes, given.load)
    return loaded


def _ours(loaded: Any) -> Any:
    """A program in minipd's form."""
    from minipd.ir.paddle import from_paddle
    return from_paddle(loaded)


def tape(given: Namespace) -> Picture:
    """What the function records when it is called with ones that want gradients."""
    found = load_value(given.what)
    if callable(found) and not isinstance(found, Tensor):
        found = _called(found, given)
    results = [t for t in (found if isinstance(found, tuple | list) else [found])
               if isinstance(t, Tensor) and not t.stop_gradient]
    if not results:
        raise InputError("a tensor with a gradient history", f"{given.what}, which gives none", "give inputs of a "
                         "floating dtype, and compute outside of no_grad")
    return _graph(viz.tape(*results))


def _called(function: Any, given: Namespace) -> Any:
    specs = [parse_spec(text) for text in given.input]
    names = list(inspect.signature(function).parameters) if specs else []
    arguments = []
    for i, (spec, text) in enumerate(zip(specs, given.input, strict=True)):
        if not all(isinstance(d, int) and d >= 0 for d in spec.shape):
            raise InputError("inputs whose sizes are numbers", text, "the tape records a call with values")
        argument = Tensor(np.ones(tuple(spec.shape), spec.dtype.np))
        argument.stop_gradient = argument.payload.dtype.kind in "iub"
        argument.name = names[i] if i < len(names) else f"input_{i}"
        arguments.append(argument)
    try:
        return function(*arguments)
    except TypeError as error:
        raise wrong_inputs(len(specs), given.what, error) from None


def program(given: Namespace) -> Picture:
    if given.side_by_side:
        return _side_by_side(given)
    loaded = program_of(given)
    if given.depth is not None and given.depth < 0:
        raise InputError("a depth of at least 0", str(given.depth), "raise --depth")
    return _graph(viz.program(loaded, given.what, _ops(given.ops, loaded), given.depth))


def _side_by_side(given: Namespace) -> Picture:
    from minipd.passes.command import passes_of
    from minipd.viz.passes.changes import changes_text
    if not given.passes or given.depth is not None or given.ops is not None:
        raise InputError("passes with --side-by-side, and neither --depth nor --ops",
                         "none" if not given.passes else "one of these", "name passes: --passes NAME")
    loaded, passes = _ours(load_program(given.what, given.input)), passes_of(given.passes, given.load)
    return viz.changes(loaded, passes, f"{given.what} before and after {', '.join(given.passes)}"), changes_text(
        loaded, passes)


def matches(given: Namespace) -> Picture:
    from minipd.viz.passes.matches import matches_text
    loaded = _ours(program_of(given))
    rules = [rule for text in given.rules for rule in _rules(text)]
    return viz.matches(loaded, rules, ops=_ops(given.ops, loaded)), matches_text(loaded, rules)


def _rules(text: str) -> list[Any]:
    """The rules that `PASS` or `PASS:RULE` names."""
    from minipd.passes.command import known
    from minipd.passes.listing import rules_of
    name, _, wanted = text.partition(":")
    there = rules_of(*known([name]))
    found = [rule for rule in there if rule.name == (wanted or rule.name)]
    if not found:
        raise InputError(f"a rule of {name}: {', '.join(rule.name for rule in there) or 'it has none'}", repr(wanted),
                         "`minipd passes --long` lists them")
    return found


def layers(given: Namespace) -> tuple[Page, str]:
    """The page, and the outermost picture as DOT text."""
    loaded = program_of(given)
    return viz.layers(loaded, given.what), viz.program(loaded, given.what, depth=0).source


def memory(given: Namespace) -> Picture:
    """The picture, and each buffer in a line."""
    from minipd.executor import Executor
    executor = Executor(_ours(program_of(given)))
    sizes = parse_sizes(given.size)
    names = {name for value in executor.inputs.values() for d in value.shape for name in getattr(d, "symbols", ())}
    if names != sizes.keys():
        raise InputError(f"a size for each open dimension of the program, {', '.join(sorted(names)) or 'none'}",
                         ", ".join(sorted(sizes)) or "none", "give each with --size, such as --size S0=8")
    plan = executor.plan(**sizes)
    return viz.memory(executor, f"memory plan of {given.what}", **sizes), (
        f"arena {plan.size} bytes, bound {plan.bound} bytes, {len(plan.offsets)} buffers at {plan.offsets}")


def groups(given: Namespace) -> Picture:
    from minipd.viz.cinn.groups import grouped
    loaded = grouped(program_of(given))
    return _graph(viz.groups(loaded, f"fusion groups of {given.what}", _ops(given.ops, loaded.program)))


def use_def(given: Namespace) -> Picture:
    from minipd.viz.ir.program import value_names
    names = value_names(program_of(given).global_block())
    wanted = given.value if given.value.startswith("%") else f"%{given.value}"
    found = next((value for value, name in names.items() if name == wanted), None)
    if found is None:
        raise InputError(f"a value of the program, %0 to %{len(names) - 1}", wanted, "see them in the program's text")
    if given.depth < 1:
        raise InputError("a depth of at least 1", str(given.depth), "raise --depth")
    return _graph(viz.use_def(found, given.depth))


def loops(given: Namespace) -> Picture:
    from minipd.viz.cinn.loops import loop_nests, loops_text
    functions = loop_nests(program_of(given))
    if not functions:
        raise InputError("a program of which the compiler makes loops", f"{given.what}, which stays library kernels",
                         "draw its fusion groups: minipd draw groups")
    return viz.loops(functions, f"loop nests of {given.what}"), loops_text(functions)


def steps(given: Namespace) -> Picture:
    from minipd.viz.cinn.steps import schedules_of
    loaded = program_of(given)
    lines = []
    for name, frames in schedules_of(loaded):
        lines.append(f"# {name}")
        lines += [f"{frame.caption}    # {frame.above}" if frame.above else frame.caption
                  for frame in frames if frame.caption]
    if not lines:
        raise InputError("a program of which the compiler makes loops", f"{given.what}, which stays library kernels",
                         "draw its fusion groups: minipd draw groups")
    return viz.steps(loaded, title=f"schedules of {given.what}"), "\n".join(lines)


def _graph(picture: Svg) -> Picture:
    return picture, picture.source


def _ops(text: str | None, program: Any) -> range | None:
    """`10:40` as a range.

    >>> _ops("10:40", None), _ops(None, None)
    (range(10, 40), None)
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d*):(\d*)", text)
    last = int(match[2]) if match and match[2] else len(program.global_block()) if match else 0
    first = int(match[1] or 0) if match else 0
    if first >= last:
        raise InputError("operations as FROM:TO, such as 10:40", repr(text), "count from 0, FROM before TO")
    return range(first, last)
