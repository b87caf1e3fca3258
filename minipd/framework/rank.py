"""Which rank is running: the one door to its context.

The context object itself is `context.RankContext`; this module only holds the ContextVar, so that everything may import
it.  Each simulated rank (a greenlet) has its own.  A thread that enters none gets a branch of the root: the same rank,
random numbers and names, but layers and a grad mode of its own, so that `no_grad` in one thread is not felt in another.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

__all__: list[str] = []

_current: ContextVar[Any] = ContextVar("minipd_rank")
_get = _current.get
_root: list[Any] = []


def current() -> Any:
    """The context of the rank that is running."""
    try:
        return _get()
    except LookupError:                 # a thread that has entered no context
        _current.set(_root[0].branch())
        return _get()


def enter(context: Any) -> Token:
    """Make `context` the current one; returns the token for `leave`."""
    return _current.set(context)


def leave(token: Token) -> None:
    """Undo `enter`."""
    _current.reset(token)


def set_root(context: Any) -> None:
    """The context of the process outside of any rank."""
    _root[:] = [context]
    _current.set(context)


def dispatch(row: Any, inputs: Any, attrs: dict) -> Any:
    """Call an operator: `inputs` are Tensors (or Python numbers), `attrs` its normalised attributes."""
    try:
        context = _get()
    except LookupError:
        context = current()
    return context.handler(row, inputs, attrs)
