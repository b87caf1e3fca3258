"""Reads that neither code nor objects tell: `getattr`, `hasattr`, `vars`, `globals()["G"]`, clocks and files.

A function is traced once, so what it reads is guarded (see `guards`).  Here rewritten code says what it reads by a name
that only the trace knows, and warns of what no guard can see.
"""

from __future__ import annotations

import builtins
import datetime
import os
import random
import secrets
import sys
import time
import types
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.framework.constraints import PACKAGE
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.jit.reads import MISSING, is_fixed, is_steady, slots_of
from minipd.nn.layer import Layer

__all__: list[str] = []

#: among this rank's flags: whom to tell what was read; the lists of what they keep alive, which nobody else may hold
READERS, KEPT = "dy2static_readers", "dy2static_kept"
#: what gives something else each time that it is called
ONCE = (time.time, time.time_ns, time.monotonic, time.monotonic_ns, time.perf_counter, time.perf_counter_ns,
        time.process_time, time.process_time_ns, datetime.datetime.now, datetime.datetime.today,
        datetime.datetime.utcnow, datetime.date.today, os.urandom, uuid.uuid1, uuid.uuid4, secrets.token_bytes,
        secrets.token_hex, secrets.randbelow, builtins.open, builtins.input)
#: what does if it is not given a seed
UNSEEDED = (np.random.default_rng, np.random.RandomState, random.Random)


def seen(owner: Any, kind: str, name: Any, value: Any) -> None:
    """Something is read: an "attribute" of an object, or an "item" of a namespace; value: MISSING for nothing."""
    for reader in current().flags.get(READERS, ()):
        reader(owner, kind, name, value)


def is_open(owner: Any) -> bool:
    """Whether the attributes of an object may change, and may be compared: not those of the library's."""
    if isinstance(owner, (Tensor, Layer, np.ndarray)):      # which tell themselves, or belong to the program
        return False
    if isinstance(owner, types.FunctionType):
        return not owner.__code__.co_filename.startswith(PACKAGE)
    return type(owner) is types.SimpleNamespace or not is_fixed(
        owner if isinstance(owner, (types.ModuleType, type)) else type(owner))


def is_stored(owner: Any, name: str) -> bool:
    """Whether an attribute is kept somewhere; what a property, `__getattr__` or an extension computes is another object
    each time."""
    kind = type(owner)
    if isinstance(owner, (types.ModuleType, type)) or name in getattr(owner, "__dict__", ()) or name in slots_of(kind):
        return True
    return hasattr(kind, name) and not hasattr(getattr(kind, name), "__get__")


def attribute(owner: Any, name: str, *default: Any) -> Any:
    """`getattr(owner, name, default)`."""
    try:
        value = getattr(owner, name)
    except AttributeError:
        if is_open(owner) and not hasattr(type(owner), "__getattr__"):
            seen(owner, "attribute", name, MISSING)
        if default:
            return default[0]
        raise
    if name[:2] != "__" and is_open(owner) and is_stored(owner, name) and is_steady(owner, name, value):
        seen(owner, "attribute", name, value)
    return value


def has_attribute(owner: Any, name: str) -> bool:
    return attribute(owner, name, MISSING) is not MISSING


def names_of(*args: Any) -> Any:
    """`vars(owner)`: all that an object holds counts."""
    held = vars(*args)
    if isinstance(args[0], Layer):
        for name, value in held.items():
            if name[0] != "_" and name != "forward":        # which is another while it is traced
                seen(args[0], "attribute", name, value)
    elif is_open(args[0]) and not isinstance(args[0], (types.ModuleType, type)):
        seen(args[0], "attribute", "__dict__", held)
    return held


def listed(*args: Any) -> list[str]:
    """`dir(owner)`"""
    found = dir(*args)
    if hasattr(args[0], "__dict__"):
        names_of(args[0])
    return found


def Item(names: Any, key: Any) -> Any:
    """`names[key]`, of `globals()`, `vars(...)` or a `__dict__`."""
    _item_is_read(names, key)
    return names[key]


def Get(names: Any, key: Any, *default: Any) -> Any:
    """`names.get(key, default)`"""
    _item_is_read(names, key)
    return names.get(key, *default)


def Has(key: Any, names: Any) -> bool:
    """`key in names`"""
    _item_is_read(names, key)
    return key in names


def _item_is_read(names: Any, key: Any) -> None:
    if isinstance(names, (dict, types.MappingProxyType)):
        seen(names, "item", key, names.get(key, MISSING))


# ------------------------------------------------------------------------------------------------ what no guard sees
def once(f: Callable) -> Callable:
    """A function that is called in the trace only: said once for each line."""
    def called(*args: Any, **kwargs: Any) -> Any:
        _warn(f.__name__)
        return f(*args, **kwargs)
    return called


def unseeded(f: Callable) -> Callable:
    def called(*args: Any, **kwargs: Any) -> Any:
        if all(x is None for x in (*args, *kwargs.values())):
            _warn(f.__name__)
        return f(*args, **kwargs)
    return called


def _warn(name: str) -> None:
    if READERS not in current().flags:
        return
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    warnings.warn_explicit(
        f"to_static: {name}() is called when the function is traced, and not by its program: what it gave then stays. "
        "Pass what it gives as an argument, or compile with full_graph=False", RuntimeWarning, frame.f_code.co_filename,
        frame.f_lineno, registry=frame.f_globals.setdefault("__warningregistry__", {}))


READING: dict[Any, Callable] = {
    builtins.getattr: attribute, builtins.hasattr: has_attribute, builtins.vars: names_of, builtins.dir: listed,
    **{f: once(f) for f in ONCE}, **{f: unseeded(f) for f in UNSEEDED}}
