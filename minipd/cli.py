"""The `minipd` command.

Each subcommand is a line in `COMMANDS`: its name, what it does, and the `main(argv)` that does it.  Targets are named
as text, so that nothing is imported before it is asked for, and a closed floor closes its commands with it.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from typing import NamedTuple

from minipd import __version__
from minipd.framework.environment import restart_prepared
from minipd.framework.errors import InputError
from minipd.framework.floors import ClosedFloorError

__all__: list[str] = []

#: Exit status for a request that cannot be carried out as asked (argparse uses the same).
BAD_REQUEST = 2
#: Exit status after Ctrl-C, as shells have it.
INTERRUPTED = 130


class Command(NamedTuple):
    """A subcommand.

    target:   "module:function"; the function takes the remaining arguments and returns the exit status (None is 0).
    computes: whether it does heavy arithmetic in this process, which then needs its environment set before numpy.
    """

    name: str
    summary: str
    target: str
    computes: bool = False


COMMANDS = (
    Command("doctor", "what is here and what is not, with a fix for each", "minipd.doctor:main"),
    Command("ops", "the matrix of operators and what is known about each", "minipd.ops.matrix:main"),
    Command("draw", "draw a tape, a program, fusion groups, loops, a mesh, shards, a schedule",
            "minipd.viz.command.main:main"),
    Command("passes", "the passes there are, also from a file of yours; what they do to a program",
            "minipd.passes.command:main_passes"),
    Command("bisect", "find the pass, and the rewrite, that changes what a program computes",
            "minipd.passes.command:main_bisect", computes=True),
    Command("explain", "what the compiler makes of a function: kernels, and why, bytes, loops, code",
            "minipd.cinn.command:main"),
    Command("launch", "run a script on several ranks", "minipd.dist.launch:main"),
    Command("train", "train a Llama", "minipd.models.train:main", computes=True),
    Command("as-paddle", "run a script that says `import paddle`", "minipd.as_paddle:main", computes=True),
    Command("report", "write the report of a run, from its folder", "minipd.models.report:main"),
)


def _parser(commands: dict[str, Command]) -> argparse.ArgumentParser:
    width = max(map(len, commands))
    parser = argparse.ArgumentParser(
        prog="minipd", formatter_class=argparse.RawDescriptionHelpFormatter, usage="minipd COMMAND [ARGUMENTS]",
        epilog="commands:\n" + "\n".join(f"  {c.name:{width}}  {c.summary}" for c in commands.values())
               + "\n\n`minipd COMMAND --help` tells more.")
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"minipd {__version__}")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command line (default: that of this process); returns its exit status, 2 for what is refused."""
    from_shell = argv is None
    argv = sys.argv[1:] if argv is None else argv
    commands = {command.name: command for command in COMMANDS}
    # Only the first word is ours: every command parses its own arguments.
    name = _parser(commands).parse_args(argv[:1]).command
    if name is None:
        _parser(commands).print_help()
        return 0
    if name not in commands:
        near = difflib.get_close_matches(name, commands, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ";"
        return _refuse(f"no command {name!r}{hint} `minipd --help` lists them")
    command = commands[name]
    if command.computes and from_shell:
        restart_prepared("minipd", argv)
    try:
        module, _, function = command.target.partition(":")
        return getattr(importlib.import_module(module), function)(argv[1:]) or 0
    except (InputError, ClosedFloorError) as refusal:
        return _refuse(str(refusal))
    except KeyboardInterrupt:
        print("minipd: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough (`minipd ops | head`); Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _refuse(message: str) -> int:
    print(f"minipd: {message}", file=sys.stderr)
    return BAD_REQUEST
