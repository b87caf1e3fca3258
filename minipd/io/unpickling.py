"""Reading a pickle without running it.

A pickle is a program for a small stack machine, and one of its instructions calls any function of any module: that is
how a hostile file takes over whoever loads it.  Here is that machine with the instructions that build plain values, and
with a table in place of the modules (`CALLS`): what a file asks for is looked up there, and refused if it is not there.
Nothing is imported, nothing is called that is not written here, and no attribute is set.

What can be in a file: None, bools, numbers, strings, bytes, lists, tuples, dicts, sets; numpy's arrays and scalars of
numbers; and what Paddle's `save` makes of a tensor, `tuple((name, array))`.
"""

from __future__ import annotations

import pickletools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from minipd.io.pickled_array import Refused, array_of, dtype_of, from_bytes

__all__: list[str] = []


class Name:
    """What an instruction has named: a function of `CALLS`, not called yet."""

    def __init__(self, text: str):
        self.text = text


class Unbuilt:
    """A dtype, an array or an object whose content comes in a later instruction.  slots: where the memo has it."""

    def __init__(self, kind: str, value: Any = None):
        self.kind, self.value = kind, value
        self.slots: list[int] = []


class Arguments(tuple):
    """A tuple that holds a Name or something Unbuilt: good for a call, and no value."""


def load(file: Any, tensor: Callable[[str, np.ndarray], Any], classes: Mapping[str, Callable] | None = None) -> Any:
    """The value of the pickle that starts where `file` is; afterwards the file is behind it.

    tensor: makes what stands for a saved tensor, from its name and values.  classes: by the name in the file, what
    makes an object that was pickled with the attributes given as keywords.
    Raises: Refused.
    """
    try:
        return _Machine(tensor, classes or {}).run(file)
    except Refused:
        raise
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, MemoryError,
            RecursionError) as e:
        # whatever a broken file makes of the stack: an empty one, a list where a dict should be, an unhashable key, ...
        raise Refused(f"instructions that make no sense ({type(e).__name__}: {e})") from e


class _Machine:
    """The stack, and the stacks below the marks; the memo, which has what is used again."""

    def __init__(self, tensor: Callable, classes: Mapping[str, Callable]):
        self.tensor, self.classes = tensor, classes
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self, file: Any) -> Any:
        for op, arg, at in pickletools.genops(file):
            if op.name == "STOP":
                return self.finished(self.stack.pop())
            if op.name in PUSHED:
                self.stack.append(PUSHED[op.name](arg))
            elif op.name not in SKIPPED:
                step = getattr(self, f"do_{op.name.lower()}", None)
                if step is None:
                    raise Refused(f"the instruction {op.name}, which builds no plain data, at byte {at}")
                step(arg)
        raise Refused("no end")

    def finished(self, x: Any) -> Any:
        """A value that goes into another one, or is the result."""
        if isinstance(x, NO_VALUE):
            raise Refused(f"a {type(x).__name__.lower()} where a value should be")
        return x

    def marked(self) -> list[Any]:
        """What has been pushed since the last mark."""
        values, self.stack = self.stack, self.below.pop()
        return values

    # ------------------------------------------------------------------------------------------------ containers
    def do_mark(self, _: Any) -> None:
        self.below.append(self.stack)
        self.stack = []

    def do_pop(self, _: Any) -> None:
        self.stack.pop()

    def do_pop_mark(self, _: Any) -> None:
        self.marked()

    def do_append(self, _: Any) -> None:
        value = self.finished(self.stack.pop())
        _of(self.stack[-1], list).append(value)

    def do_appends(self, _: Any) -> None:
        values = self.marked()
        _of(self.stack[-1], list).extend(map(self.finished, values))

    def do_list(self, _: Any) -> None:
        values = self.marked()
        self.stack.append([self.finished(v) for v in values])

    def do_tuple(self, _: Any) -> None:
        values = self.marked()
        self.stack.append(_together(values))

    def do_tuple1(self, _: Any) -> None:
        self.stack[-1:] = [_together(self.stack[-1:])]

    def do_tuple2(self, _: Any) -> None:
        self.stack[-2:] = [_together(self.stack[-2:], 2)]

    def do_tuple3(self, _: Any) -> None:
        self.stack[-3:] = [_together(self.stack[-3:], 3)]

    def do_dict(self, _: Any) -> None:
        values = self.marked()
        self.stack.append(self.filled({}, values))

    def do_setitem(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.filled(self.stack[-1], [key, value])

    def do_setitems(self, _: Any) -> None:
        values = self.marked()
        self.filled(self.stack[-1], values)

    def filled(self, into: Any, values: list[Any]) -> dict:
        into = _of(into, dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            into[self.finished(key)] = self.finished(value)
        return into

    def do_additems(self, _: Any) -> None:
        values = self.marked()
        _of(self.stack[-1], set).update(map(self.finished, values))

    def do_frozenset(self, _: Any) -> None:
        values = self.marked()
        self.stack.append(frozenset(map(self.finished, values)))

    # ------------------------------------------------------------------------------------------------------ memo
    def do_memoize(self, _: Any) -> None:
        self.do_put(len(self.memo))

    def do_put(self, slot: int) -> None:
        self.memo[slot] = top = self.stack[-1]
        if isinstance(top, Unbuilt):
            top.slots.append(slot)

    do_binput = do_long_binput = do_put

    def do_get(self, slot: int) -> None:
        self.stack.append(self.memo[slot])

    do_binget = do_long_binget = do_get

    # ----------------------------------------------------------------------------------------------------- calls
    def do_global(self, arg: str) -> None:
        module, _, name = arg.partition(" ")
        self.stack.append(self.named(module, name))

    def do_stack_global(self, _: Any) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.stack.append(self.named(module, name))

    def named(self, module: Any, name: Any) -> Name:
        text = f"{module}.{name}"
        text = OTHER_NAMES.get(text, text)
        if text not in CALLS and text not in self.classes:
            raise Refused(f"a call of {text}")
        return Name(text)

    def do_reduce(self, _: Any) -> None:
        arguments, name = self.stack.pop(), self.stack.pop()
        if not isinstance(name, Name):
            raise Refused(f"a call of {name!r}, which is no function")
        if name.text in self.classes:
            self.stack.append(Unbuilt("object", self.classes[name.text]))
        else:
            self.stack.append(CALLS[name.text](self, *_of(arguments, tuple)))

    def do_newobj(self, _: Any) -> None:
        self.do_reduce(_)

    def do_build(self, _: Any) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if not isinstance(target, Unbuilt):
            raise Refused(f"a state for a {type(target).__name__}")
        built: Any
        if target.kind == "object":
            built = target.value(**_of(state, dict))
        else:
            built = array_of(state) if target.kind == "array" else dtype_of(target.value, state)
        self.stack[-1] = built
        for slot in target.slots:
            self.memo[slot] = built


def _together(values: list[Any], n: int | None = None) -> tuple:
    if n is not None and len(values) != n:
        raise IndexError("too little on the stack")
    return (Arguments if any(isinstance(v, NO_VALUE) for v in values) else tuple)(values)


def _of(x: Any, kind: Any) -> Any:
    if not isinstance(x, kind):
        raise Refused(f"a {type(x).__name__} where there should be a {getattr(kind, '__name__', 'bytes')}")
    return x


# ------------------------------------------------------------------------------------------------ what may be called
def _tuple(machine: _Machine, items: Any = ()) -> Any:
    """tuple(items); of a name and an array, it is a tensor that Paddle has saved."""
    if isinstance(items, tuple) and len(items) == 2 and isinstance(items[0], str) and isinstance(items[1], np.ndarray):
        return machine.tensor(*items)
    return tuple(map(machine.finished, items))


def _scalar(machine: _Machine, dtype: Any, data: Any) -> Any:
    return from_bytes((), dtype, "C", data)[()]


def _encode(machine: _Machine, text: str, encoding: str = "latin1") -> bytes:
    """How protocol 2 writes bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise Refused(f"an encoding {encoding!r}")
    return text.encode("latin1")


def _ordered(machine: _Machine, pairs: Any = ()) -> OrderedDict:
    return OrderedDict((machine.finished(k), machine.finished(v)) for k, v in pairs)


NO_VALUE = (Name, Unbuilt, Arguments)
#: what a file may call: name -> what it means here
CALLS: dict[str, Callable] = {
    "builtins.tuple": _tuple,
    "builtins.dict": lambda machine: {},
    "builtins.bytes": lambda machine: b"",
    "builtins.set": lambda machine, items=(): set(map(machine.finished, items)),
    "builtins.frozenset": lambda machine, items=(): frozenset(map(machine.finished, items)),
    "builtins.complex": lambda machine, real=0.0, imag=0.0: complex(float(real), float(imag)),
    "builtins.bytearray": lambda machine, data=b"": bytearray(_of(data, (bytes, bytearray))),  # type: ignore[arg-type]
    "collections.OrderedDict": _ordered,
    "_codecs.encode": _encode,
    "numpy.dtype": lambda machine, text, *_: Unbuilt("dtype", text),
    "numpy.ndarray": lambda machine, *_: Unbuilt("array"),
    "numpy.multiarray._reconstruct": lambda machine, *_: Unbuilt("array"),
    "numpy.multiarray.scalar": _scalar,
    "numpy.numeric._frombuffer": lambda machine, data, dtype, shape, order: from_bytes(shape, dtype, order, data),
}
#: where else they have been
OTHER_NAMES = {f"{package}.{name}": f"numpy.{name}" for package in ("numpy.core", "numpy._core")
               for name in ("multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer")}
OTHER_NAMES |= {f"__builtin__.{name}": f"builtins.{name}"
                for name in ("tuple", "dict", "bytes", "set", "frozenset", "complex", "bytearray")}

SKIPPED = ("PROTO", "FRAME")
#: instructions that push one value
PUSHED: dict[str, Callable[[Any], Any]] = dict.fromkeys(
    ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE",
     "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"), lambda arg: arg)
PUSHED |= {"NONE": lambda arg: None, "NEWTRUE": lambda arg: True, "NEWFALSE": lambda arg: False,
           "EMPTY_LIST": lambda arg: [], "EMPTY_TUPLE": lambda arg: (), "EMPTY_DICT": lambda arg: {},
           "EMPTY_SET": lambda arg: set()}
