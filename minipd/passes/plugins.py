"""Passes in a file of the user's own: the file is run, and what it registers is in the table.

    minipd passes --load my_passes.py                       from the shell
    load_passes("my_passes.py")                             from Python; so does importing it
"""

from __future__ import annotations

from pathlib import Path

from minipd.framework.errors import InputError
from minipd.framework.user_file import run_file
from minipd.passes.pattern import RULES
from minipd.passes.table import MAKERS, pass_names

__all__ = ["load_passes"]


def load_passes(file: str | Path) -> list[str]:
    """Run a file that registers passes, or rules for passes; returns the names of these passes.

    Raises: InputError for a file that is not there, that fails, or that registers nothing.
    """
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        raise InputError("a Python file that registers passes", str(file), "no such file; check the path")
    before = {name: _contents(name) for name in pass_names()}
    run_file(path)
    found = [name for name in pass_names() if before.get(name) != _contents(name)]
    if not found:
        raise InputError("a file that registers passes", f"{path}, which registers none",
                         'put @register_pass("my_pass") on a class, @function_pass("my_pass") on a function, or '
                         '@drr("my_pass") on a rule')
    return found


def _contents(name: str) -> tuple:
    """What there is of a pass: changes when something is registered."""
    return MAKERS.get(name), tuple(RULES.get(name, ()))
