"""Running a Python file that the user names on a command line."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from minipd.framework.errors import InputError

__all__: list[str] = []


def run_file(path: Path) -> ModuleType:
    """The module that a file makes, run anew.

    While it runs, it is found under its name: dataclasses look for theirs there.  Not where there is a module of that
    name: a file `json.py` does not take the place of Python's.

    Raises: InputError for a file that fails.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:          # whatever the user's file does
        raise InputError(f"{path} to run", f"{type(error).__name__}: {error}", "mend the file") from error
    finally:
        if sys.modules.get(path.stem) is module:
            del sys.modules[path.stem]
    return module
