"""`paddle.base.unique_name` (and `paddle.utils.unique_name`): the names that layers and parameters are given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from minipd.framework.rank import current

__all__ = ["generate", "guard", "switch"]


def generate(key: str) -> str:
    """`key_0`, `key_1`, ...: a name that has not been given yet."""
    return current().unique_name(key)


def switch(new_generator: MutableMapping[str, int] | None = None) -> MutableMapping[str, int]:
    """Count names with these counters from now on, or begin anew; returns the counters so far."""
    context = current()
    before = context.counters
    context.counters = defaultdict(int) if new_generator is None else new_generator
    return before


@contextmanager
def guard(new_generator: Any = None) -> Iterator[None]:
    """Inside, names are counted anew: two programs that are built alike name their parameters alike, and share them.

    new_generator: a prefix for the names that are generated inside, or counters that `switch` has returned.

    >>> with guard():
    ...     generate("fc")
    'fc_0'
    >>> with guard("student_"):
    ...     generate("fc")
    'student_fc_0'

    Raises: TypeError for another new_generator.
    """
    prefix = new_generator.decode() if isinstance(new_generator, bytes) else new_generator
    named = isinstance(prefix, str)
    if not named and new_generator is not None and not isinstance(new_generator, MutableMapping):
        raise TypeError(f"unique_name.guard: expected a prefix, or counters from `switch`, got {new_generator!r}")
    context, before = current(), switch(None if named else new_generator)
    own = vars(context)
    outer = own.get("unique_name")
    if named:
        own["unique_name"] = lambda key: prefix + type(context).unique_name(context, key)
    try:
        yield
    finally:
        switch(before)
        own.pop("unique_name", None)
        if outer is not None:
            own["unique_name"] = outer
