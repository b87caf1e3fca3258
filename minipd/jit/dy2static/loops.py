"""`while` and `for`.  What Python can decide is Python's loop; from a test that is a traced tensor on, a `pd_op.while`.

A `for` over what Python can go through (a list, a range, a tensor of known length) is unrolled, as a trace does it.  A
`break` that a tensor decides does not change that: the iterations after it are branches.  A `for` over what only the
program can count (`range(n)` of a tensor, a tensor of symbolic length) is a `pd_op.while` (see `traced_loop`).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Sequence
from typing import Any

from minipd.jit.dy2static.branches import Branch
from minipd.jit.dy2static.changes import spent
from minipd.jit.dy2static.indexed import Indexed, indexed
from minipd.jit.dy2static.logic import Not, traced, truth
from minipd.jit.dy2static.traced_loop import TracedLoop
from minipd.jit.dy2static.variables import Place, places
from minipd.ops.creation import full

__all__: list[str] = []


def While(test_fn: types.FunctionType, body_fn: types.FunctionType, names: Sequence[str],
          stop: str | None = None, read: Sequence[str] = ()) -> None:
    """`while test_fn(): body_fn()`.

    names: what the functions may change.  stop: the variable that ends it when it is true.  read: variables that are
    read right after it.
    """
    found = places(names, [body_fn, test_fn])
    flag = next((p for p in found if p.name == stop), None)
    while True:
        stopped = False if flag is None else flag.get()
        if traced(stopped):
            goes_on = Branch(truth(stopped), (lambda: False, test_fn), found).write()
        elif stopped:
            return
        else:
            goes_on = test_fn()
        if traced(goes_on):
            TracedLoop(truth(goes_on), test_fn, body_fn, found, flag, read).write()
            return
        if not goes_on:
            return
        body_fn()


def For(iterable: Any, body_fn: types.FunctionType, names: Sequence[str], stop: str | None = None,
        read: Sequence[str] = ()) -> None:
    """`for item in iterable: body_fn(item)`"""
    found = places(names, [body_fn])
    flag = next((p for p in found if p.name == stop), None)
    counted = indexed(iterable)
    if counted is not None:
        _count(counted, body_fn, found, flag, read)
        return
    if isinstance(iterable, Iterator):
        spent(iterable, "a loop")
    for item in iterable:
        stopped = False if flag is None else flag.get()
        if traced(stopped):
            Branch(truth(Not(stopped)), (functools.partial(body_fn, item), None), found).write()
            continue
        if stopped:
            return
        body_fn(item)


def _count(items: Indexed, body_fn: types.FunctionType, found: list[Place], flag: Place | None,
           read: Sequence[str]) -> None:
    """A loop that the program counts: the count is one more variable of it."""
    at = [full([], 0, "int64")]
    count = Place("the count", lambda: at[0], lambda value: at.__setitem__(0, value), lambda: None)

    def test() -> Any:
        return at[0] < items.length

    def body() -> None:
        i = at[0]
        at[0] = i + 1
        body_fn(items.at(i))
    TracedLoop(truth(test()), test, body, [*found, count], flag, read, free=True).write()
