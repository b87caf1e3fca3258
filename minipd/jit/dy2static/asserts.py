"""`assert`, and `raise` in a branch that the program decides: the program stops there, if it comes by."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from minipd.framework.constraints import PACKAGE
from minipd.framework.rank import current
from minipd.jit.dy2static.logic import traced, truth
from minipd.ops.creation import full
from minipd.static.effects import Assert as stop_unless

__all__: list[str] = []


def Assert(test: Any, message: Callable[[], Any] | None = None) -> None:
    """`assert test, message()`; of a traced tensor, when the program runs."""
    if traced(test):
        with telling():
            text = "" if message is None else str(message())
        stop_unless(truth(test), message=text)
    elif not test:
        raise AssertionError(*(() if message is None else (message(),)))


def raised_by_user(error: Exception) -> bool:
    """Whether an error comes from a `raise` (or an `assert`) that stands in the user's code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    return not code.co_filename.startswith(PACKAGE) and code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def stop_with(error: Exception) -> None:
    """Stop the program here, with what the error says."""
    with telling():
        text = f"{type(error).__name__}: {error}"
    stop_unless(full([], False, "bool"), message=text)


def Told(error: Callable[[], Any]) -> Any:
    """`raise error()`: its message may tell of traced tensors."""
    with telling():
        return error()


@contextmanager
def telling() -> Iterator[None]:
    """Let traced tensors have a text inside (see `ir.text`)."""
    ground: Any = current().ground
    before = getattr(ground, "tells", True)
    if not before:
        ground.tells = True
    try:
        yield
    finally:
        if not before:
            ground.tells = before
