"""Who may have the text of a traced tensor, which stands for no values.

Error messages and debuggers may: `Value(define_op_name=...)`, as Paddle writes it.  For the user's code in a function
that becomes one program it would be a wrong answer in silence: `file.write(f"{loss}")` would write these words.
"""

from __future__ import annotations

import dataclasses
import linecache
import reprlib
import sysconfig
import types

from minipd.framework.constraints import PACKAGE

__all__: list[str] = []

STDLIB = sysconfig.get_paths()["stdlib"]
#: what asks for the text of something else because it was asked itself
ON_BEHALF = ("__repr__", "__str__", "__format__")
BETWEEN = (dataclasses.__file__, reprlib.__file__, PACKAGE + "/jit/dy2static/builtins.py")
DEBUGGERS = ("/pdb.py", "/bdb.py", "/cmd.py", "/code.py", "pydevd", "debugpy", "/IPython/", "/_pytest/")


def who_asks(frame: types.FrameType | None) -> str | None:
    """The place, `file:line`, of the user's code that asks for a text; None if minipd or a debugger does.

    frame: the innermost.
    """
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        typed = file.startswith("<") and code.co_name == "<module>"         # at the prompt of a debugger
        if not typed and code.co_name not in ON_BEHALF and file not in BETWEEN:
            if file.startswith(PACKAGE) or any(name in file for name in DEBUGGERS):
                return None
            if not file.startswith("<frozen") and (not file.startswith(STDLIB) or "site-packages" in file):
                return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "a place without source text"


def quoted(where: str) -> str:
    """A place `file:line` with what stands there."""
    path, _, number = where.rpartition(":")
    line = linecache.getline(path, int(number)).strip() if number.isdigit() else ""
    return f"{where}: `{line}`" if line else where
