"""`f(...)` is `_jst.Call(f)(...)`: what a transformed function calls is transformed too.

    a user's function, lambda, method               rewritten (see `rewrite`)
    a layer                                         itself, with the `forward` of it and of the layers inside rewritten
    an object with `__call__`, a partial            of a rewritten function
    `apply` of a PyLayer                            with its forward and backward rewritten
    print, len, range, enumerate, zip, int, ...     the converter, for traced tensors
    a user's class                                  the class, with its `__init__` rewritten
    minipd, numpy, the standard library, other classes, generators, `not_to_static`         as they are

The library calls some functions that it is given, in the midst of a trace: those are rewritten before they are passed.
"""

from __future__ import annotations

import functools
import logging
import os
import random
import sysconfig
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minipd.autograd.py_layer import PyLayer
from minipd.framework.constraints import PACKAGE
from minipd.framework.rank import current
from minipd.jit.dy2static.builtins import BUILTINS, log
from minipd.jit.dy2static.changes import Change, Changes, spent
from minipd.jit.dy2static.merging import spelled
from minipd.jit.dy2static.rewrite import rewritten
from minipd.jit.dy2static.scopes import MUTATORS
from minipd.jit.dy2static.variables import CONTENTS
from minipd.nn.layer import Layer

__all__ = ["ignore_module"]

STDLIB = tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib"))
SITE = tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("purelib", "platlib"))
#: modules whose functions stay as they are; they compute on what is no tensor
_ignored = {"numpy", "scipy", "numba", "pytest", "_pytest", "hypothesis", "matplotlib", "pandas", "rich", "minipd",
            "paddle"}
#: generators of random numbers that a program knows nothing of
RANDOM = (random.Random, np.random.RandomState, np.random.Generator)
#: functions of the library that call what they are given
_TAKE_FUNCTIONS = {"recompute", "cond", "while_loop", "case", "switch_case"}


def ignore_module(modules: Any) -> None:
    """Leave the functions of these modules as they are (Paddle's `paddle.jit.ignore_module`).

    >>> import textwrap
    >>> ignore_module([textwrap])
    """
    for module in modules if isinstance(modules, (list, tuple)) else [modules]:
        if not isinstance(module, types.ModuleType):
            raise TypeError(f"ignore_module: expected modules, got {module!r}")
        _ignored.add(module.__name__)


def Call(f: Any) -> Any:
    """What to call instead of `f`."""
    kind = type(f)
    if isinstance(getattr(f, "__self__", None), RANDOM) and not isinstance(f, type):
        spent(f.__self__, f"{f.__name__}()")
    if kind is types.BuiltinFunctionType or kind is type and f in BUILTINS:
        if f.__name__ in MUTATORS:
            Change(f.__self__, "(...)[]")
        try:
            return BUILTINS.get(f, f)
        except TypeError:               # a method of something that has no hash
            return f
    if getattr(f, "__module__", None) == logging.__name__ and kind in (types.FunctionType, types.MethodType):
        return functools.partial(log, f)
    if kind is types.FunctionType:
        if getattr(f, "__not_to_static__", False):
            return f
        if f.__name__ in _TAKE_FUNCTIONS and is_library(f):
            return _with_functions(f)
        if f in BUILTINS:               # of Python's modules
            return BUILTINS[f]
        return f if is_library(f) else rewritten(f)
    if kind is types.MethodType:
        if f.__name__ in MUTATORS:      # of a Counter, say
            Change(f.__self__, "(...)[]")
        if isinstance(f.__self__, type) and issubclass(f.__self__, PyLayer) and f.__name__ == "apply":
            return rewritten_rule(f.__self__).apply
        return types.MethodType(Call(f.__func__), f.__self__) if type(f.__func__) is types.FunctionType else f
    if kind is functools.partial:
        return functools.partial(Call(f.func), *f.args, **f.keywords)
    if f is np.random.default_rng:
        return BUILTINS[f]
    if isinstance(f, Layer):
        return functools.partial(_call_layer, f)
    if isinstance(f, type) and _is_plain(f):
        return functools.partial(_construct, f)
    if isinstance(f, type) or not callable(f):
        return f
    method = getattr(kind, "__call__", None)    # noqa: B004  # not whether there is one, but which
    if type(method) is types.FunctionType and not is_library(method):
        return types.MethodType(Call(method), f)
    return f


def _is_plain(kind: type) -> bool:
    """Whether a class of the user's makes its objects as Python does, so that only `__init__` has to be rewritten."""
    made = kind.__init__        # type: ignore[misc]
    return type(kind) is type and kind.__new__ is object.__new__ and type(made) is types.FunctionType and (
        not is_library(made) and not issubclass(kind, Layer))


def _construct(kind: type, *args: Any, **kwargs: Any) -> Any:
    made: Any = object.__new__(kind)
    Call(kind.__init__)(made, *args, **kwargs)      # type: ignore[misc]
    return made


def is_library(f: types.FunctionType) -> bool:
    """Whether a function belongs to the library, to Python, or to a module that is ignored."""
    module = f.__module__ or ""
    if module in _ignored or module.partition(".")[0] in _ignored or any(
            module.startswith(name + ".") for name in _ignored):
        return True
    file = f.__code__.co_filename
    return file.startswith((PACKAGE, "<frozen")) or file.startswith(STDLIB) and not file.startswith(SITE)


def _with_functions(f: Callable) -> Callable:
    def called(*args: Any, **kwargs: Any) -> Any:
        depth = _depth()
        return f(*[_function(x, f.__name__, depth) for x in args],
                 **{k: _function(v, f.__name__, depth) for k, v in kwargs.items()})
    return called


def _function(x: Any, who: str, depth: int) -> Any:
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return type(x)(_function(one, who, depth) for one in x)
    return _without_effects(Call(x), who, depth) if isinstance(x, (types.FunctionType, types.MethodType)) else x


def _depth() -> int:
    """How many regions are being written."""
    return len(getattr(current().ground, "scopes", ()))


def _without_effects(f: Callable, who: str, depth: int) -> Callable:
    """A function that may change nothing but tensors when it is traced in a region."""
    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        if _depth() <= depth:
            return f(*args, **kwargs)
        given = [*args, *kwargs.values()]
        with Changes() as changes:
            left = [f(*args, **kwargs)]
        for found in changes.take_back(left):
            if not any(found.place.owner is x for x in given):
                raise TypeError(
                    f"{who}: expected functions that return what they compute, got {f.__name__}, which changes "
                    f"`{found.place.name.removesuffix(CONTENTS)}` from {spelled(found.before)} to "
                    f"{spelled(found.after)}: only the program knows whether, and how often, it is called. Return the "
                    "value, or write a Python `if` or `while`, which hands on what its blocks change")
            found.place.put(found.after)
        return left[0]
    return called


def rewritten_rule(cls: type[PyLayer]) -> type[PyLayer]:
    """A user's operator with a gradient of its own, with both functions rewritten."""
    functions = {name: staticmethod(Call(getattr(cls, name))) for name in ("forward", "backward")}
    return type(cls.__name__, (cls,), {**functions, "__module__": cls.__module__, "__qualname__": cls.__qualname__})


# ----------------------------------------------------------------------------------------------------------- layers
def _call_layer(layer: Layer, *args: Any, **kwargs: Any) -> Any:
    with rewritten_layers(layer):
        return layer(*args, **kwargs)


@contextmanager
def rewritten_layers(layer: Layer) -> Iterator[None]:
    """Let a layer, and those inside, compute with their `forward` rewritten: a container of the library's calls the
    user's layers in it."""
    changed = []
    for one in layer.sublayers(include_self=True):
        forward = one.__dict__.get("forward")
        function = forward if forward is not None else types.MethodType(type(one).forward, one)
        if not isinstance(function, types.MethodType) and not isinstance(function, types.FunctionType):
            continue
        new = Call(function)
        if getattr(new, "__func__", new) is not getattr(function, "__func__", function):
            changed.append((one, forward))
            one.__dict__["forward"] = new
    try:
        yield
    finally:
        for one, forward in changed:
            if forward is None:
                one.__dict__.pop("forward", None)
            else:
                one.__dict__["forward"] = forward
