"""`import paddle` means minipd: for scripts, and documentation, that are written for Paddle.

    minipd.install_as_paddle()                  from here on, in this process
    minipd as-paddle script.py ...              for one script: `minipd as-paddle` stands where `python` would
    minipd as-paddle -m paddle.distributed.launch --nproc_per_node 2 script.py ...      for its ranks
    minipd launch -n 2 --as-paddle script.py ...                                        the same

`paddle.nn.functional` is then the very module `minipd.nn.functional`, under a second name.  A name that minipd does not
have raises an AttributeError that says so.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from minipd.framework.errors import InputError
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["disable_compat", "enable_compat", "install_as_paddle"]

OURS, PADDLES = "minipd", "paddle"


class _SecondName(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `paddle.x` (or another `name`.x) where there is a `minipd.x`, and loads it as that very module."""

    def __init__(self, name: str = PADDLES):
        self.name = name

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname != self.name and not fullname.startswith(self.name + "."):
            return None
        if importlib.util.find_spec(self.ours(fullname)) is None:
            raise ModuleNotFoundError(f"minipd has no module {fullname}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def ours(self, name: str) -> str:
        """What minipd calls the module."""
        return _ours(PADDLES + name.removeprefix(self.name))

    def create_module(self, spec: Any) -> ModuleType:
        module = importlib.import_module(self.ours(spec.name))
        spec.loader_state = module.__spec__     # the import system is about to put `spec` in its place
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        module.__spec__ = spec.loader_state


def _ours(name: str) -> str:
    """
    >>> _ours("paddle.nn.functional"), _ours("paddle.nn.layer.transformer")
    ('minipd.nn.functional', 'minipd.nn.transformer')
    """
    if name.startswith("paddle.nn.layer."):         # Paddle keeps its layers one folder deeper
        return f"{OURS}.nn.{name.removeprefix('paddle.nn.layer.')}"
    return OURS + name.removeprefix(PADDLES)


def install_as_paddle() -> None:
    """Let `import paddle`, and of everything in it, mean minipd in this process.

    Random numbers are then, after the same `paddle.seed`, those that Paddle draws on the CPU.
    Raises: ImportError if another paddle has been imported already.
    """
    _install(PADDLES, "install_as_paddle")
    Tensor.__module__ = PADDLES             # `<class 'paddle.Tensor'>`
    current().rng.draw_as_paddle()


def is_installed() -> bool:
    """Whether `import paddle` means minipd in this process."""
    return bool(_finders(PADDLES))


def _install(name: str, who: str) -> None:
    there = sys.modules.get(name)
    if there is not None and there is not sys.modules[OURS]:
        raise ImportError(f"{who}: {name} is imported already, from {getattr(there, '__file__', '?')}; call it before "
                          f"the first `import {name}`")
    if not _finders(name):
        sys.meta_path.insert(0, _SecondName(name))


def _finders(name: str) -> list[Any]:
    return [finder for finder in sys.meta_path if isinstance(finder, _SecondName) and finder.name == name]


def enable_compat(*, scope: Any = None, blocked_modules: Any = None, backend: str = "torch",
                  silent: bool = False) -> None:
    """Paddle's `enable_compat`: let `import torch` mean this library, many of whose functions take PyTorch's parameters
    too, until `disable_compat`.  (The other parameters are accepted, and without effect.)

    Raises: ImportError if torch has been imported already, ValueError for another backend.
    """
    if backend != "torch":
        raise ValueError(f"enable_compat: expected backend 'torch', got {backend!r}")
    _install(backend, "enable_compat")


def disable_compat() -> None:
    """Let `import torch` mean what it meant before."""
    for finder in _finders("torch"):
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
            del sys.modules[name]


@functools.lru_cache(256)
def _near(name: str, known: tuple[str, ...]) -> list[str]:
    """The name most like `name`, if one is.  (Tools ask modules for the same few names of theirs over and over.)"""
    return difflib.get_close_matches(name, known, n=1)


def say_what_is_missing(module: ModuleType) -> None:
    """Let a name that `module` lacks raise an AttributeError that says so, in Paddle's terms."""
    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        near = _near(name, tuple(n for n in vars(module) if not n.startswith("_")))
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"minipd has no {PADDLES}{module.__name__.removeprefix(OURS)}.{name}{hint}")
    vars(module).setdefault("__getattr__", missing)


def main(argv: list[str]) -> int:
    """Run a script, or a module, in which `import paddle` means minipd."""
    parser = argparse.ArgumentParser(
        prog="minipd as-paddle", description="run a script in which `import paddle` means minipd",
        usage="minipd as-paddle SCRIPT [ARGUMENTS]\n       minipd as-paddle -m MODULE [ARGUMENTS]",
        epilog="on several ranks: minipd as-paddle -m paddle.distributed.launch --nproc_per_node 2 SCRIPT, or "
               "minipd launch -n 2 --as-paddle SCRIPT (`python -m paddle.distributed.launch` is the real Paddle's)")
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script finds in sys.argv[1:]")
    args = parser.parse_args(argv)
    if not args.module and not Path(args.script).is_file():
        raise InputError("a Python file to run", repr(args.script), "give the path of a script")
    install_as_paddle()
    sys.argv = [args.script, *args.arguments]
    if args.module:
        sys.path.insert(0, "")
        ours = args.script == PADDLES or args.script.startswith(PADDLES + ".")
        runpy.run_module(_ours(args.script) if ours else args.script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(args.script).resolve().parent))
        runpy.run_path(args.script, run_name="__main__")
    return 0
