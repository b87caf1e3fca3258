"""What is told about rewriting: Paddle's `set_code_level` and `set_verbosity`."""

from __future__ import annotations

import sys

from minipd.framework.rank import current

__all__ = ["set_code_level", "set_verbosity"]

CODE, VERBOSITY = "dy2static_code_level", "dy2static_verbosity"         # among this rank's flags
STDOUT = "_to_stdout"


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Show functions as they are rewritten, on standard error (and output), when that happens.

    level: 0 for nothing; any other shows the code that runs, Paddle's level 100 (the code between the passes is not
    kept).

    Raises: TypeError if level is no int.
    """
    _set("set_code_level", CODE, level, also_to_stdout)


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Tell which functions are rewritten (from level 1 on), and which are left as they are (from level 2 on).

    Raises: TypeError if level is no int.
    """
    _set("set_verbosity", VERBOSITY, level, also_to_stdout)


def _set(what: str, flag: str, level: int, also_to_stdout: bool) -> None:
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"{what}: expected level to be an int, got {level!r}")
    current().flags[flag], current().flags[flag + STDOUT] = level, bool(also_to_stdout)


def tell_rewritten(name: str, where: str, code: str | None) -> None:
    """A function has been rewritten, or, if there is no code, looked at and left as it is."""
    flags = current().flags
    verbosity = flags.get(VERBOSITY, 0)
    if code is not None and verbosity >= 1:
        _say(VERBOSITY, f"to_static: rewrote {name} ({where})")
    if code is None and verbosity >= 2:
        _say(VERBOSITY, f"to_static: left {name} ({where}) as it is")
    if code is not None and flags.get(CODE, 0):
        _say(CODE, f"to_static: {name} ({where}) as it runs:\n{code}")


def _say(flag: str, text: str) -> None:
    print(text, file=sys.stderr)
    if current().flags.get(flag + STDOUT):
        print(text)
