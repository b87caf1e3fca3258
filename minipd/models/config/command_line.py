"""The command line of a run: every value of the configuration is an option.

`--train.lr 1e-3`, or `--lr 1e-3` where no other section has the name; a switch is `--eager` or `--no-eager`. What the
command line says goes over what the file of `--config` (or of the run to resume) says, and that over the defaults.
"""

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from minipd.framework.errors import InputError
from minipd.models.config.checks import validate
from minipd.models.config.toml import load
from minipd.models.config.values import KEYS, Key, RunConfig, a_kind, get, nearest_keys, resolve, with_values
from minipd.models.run_folder import find_config

COMMAND_LINE = "the command line"


def from_arguments(arguments: Sequence[str], program: str = "minipd train") -> RunConfig:
    """The configuration that these arguments ask for, resolved and validated (but for the number of ranks).

    With `--resume` and no `--config`, the configuration of the run to resume takes the place of the defaults: a resumed
    run differs from the first only where the command line says so.

    Raises:
        InputError: an option or key does not exist, a value has the wrong type, values do not fit together, a file is
            missing.
        SystemExit: `--help` was asked for, and printed.

    >>> from_arguments(["--lr", "1e-3", "--train.batch=8", "--eager"]).train.lr
    0.001
    """
    parser = _parser(program)
    known, unknown = parser.parse_known_args(list(arguments))
    for argument in unknown:
        if argument.startswith("--"):
            near = [_spellings(KEYS[key])[-1] for key in nearest_keys(argument[2:].partition("=")[0].replace("-", "_"))]
            do = f"did you mean {' or '.join(near)}?" if near else f"`{program} --help` lists the options"
            raise InputError("an option", f"{argument.partition('=')[0]} in {COMMAND_LINE}", do)
        raise InputError("options only", f"{argument!r} in {COMMAND_LINE}", f"see `{program} --help`")
    given = vars(known)
    file = given.pop("config", None)
    if file is None and given.get("resume"):
        file = find_config(given["resume"])
    config = RunConfig() if file is None else load(file)
    config = with_values(config, {name: _parse(KEYS[name], text) for name, text in given.items()}, COMMAND_LINE)
    config = resolve(config)
    validate(config)
    return config


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:  # argparse would print its usage and exit
        raise InputError("options with their values", f"{COMMAND_LINE} with: {message}", f"see `{self.prog} --help`")


def _parser(program: str) -> argparse.ArgumentParser:
    # Only what is given comes back (SUPPRESS), as text: values are converted and checked in one place.
    parser = _Parser(
        program,
        description="Train a Llama. A TOML file and the command line change any value.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=44, width=120),
        usage=f"{program} [--config FILE] [--KEY VALUE ...]",
    )
    parser.add_argument("--config", metavar="FILE", help="TOML file with values; the command line goes over it")
    groups: dict[str, Any] = {"": parser.add_argument_group("run")}
    for name, key in KEYS.items():
        if key.section not in groups:
            groups[key.section] = parser.add_argument_group(key.section)
        default = str(get(RunConfig(), name))
        about = f"{key.about} [{default}]" if default else key.about
        spellings = _spellings(key)
        _add_option(groups[key.section], key, spellings, about.replace("%", "%%"))
        dashed = [spelling.replace("_", "-") for spelling in spellings if "_" in spelling]
        if dashed:
            _add_option(groups[key.section], key, dashed, argparse.SUPPRESS)
    return parser


def _spellings(key: Key) -> list[str]:
    """`--section.name`, and `--name` where no other section has the name."""
    alone = sum(other.name == key.name for other in KEYS.values()) == 1
    return list(dict.fromkeys([f"--{key}", f"--{key.name}"])) if alone else [f"--{key}"]


def _add_option(group: Any, key: Key, options: list[str], about: str) -> None:
    if key.kind is bool:
        group.add_argument(*options, dest=str(key), action="store_const", const="true", help=about)
        off = [f"--no-{option[2:]}" for option in options]
        group.add_argument(*off, dest=str(key), action="store_const", const="false", help=argparse.SUPPRESS)
    else:
        metavar = {int: "INT", float: "FLOAT", str: "TEXT"}[key.kind]
        group.add_argument(*options, dest=str(key), metavar=metavar, help=about)


def _parse(key: Key, text: str) -> int | float | bool | str:
    if key.kind is bool:
        return text == "true"
    try:
        text.encode("utf-8")  # a path with stray bytes could not be saved in the run folder
        return key.kind(text)
    except ValueError as error:
        raise InputError(
            f"{key} to be {a_kind(key.kind)}",
            f"{text!r} in {COMMAND_LINE}",
            f"give {a_kind(key.kind)} ({key.about})",
        ) from error
