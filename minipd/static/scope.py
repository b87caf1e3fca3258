"""Scopes under Paddle's names: where program state is between runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minipd.executor import scope as executor
from minipd.static.program import current_programs

__all__ = ["Scope", "global_scope", "scope_guard"]


class Scope(executor.Scope):
    """Program state by name; `var(name)` and `find_var(name)` give a variable, which holds an array once it is set."""

    def var(self, name: str) -> Variable:
        """The variable of that name, which need not have a value yet."""
        return Variable(self, name)

    def find_var(self, name: str) -> Variable | None:
        """The variable of that name, None if it has no value."""
        return Variable(self, name) if name in self else None

    def array(self, name: str) -> np.ndarray:
        """The value of that name.

        Raises: KeyError that says what to do.
        """
        if name not in self:
            raise KeyError(f"scope: expected a value called {name!r}, which has none yet; run the startup "
                           "program first")
        return self[name]


class Variable:
    """A name in a scope.  It is its own tensor: Paddle reads `scope.find_var(name).get_tensor()`."""

    def __init__(self, scope: Scope, name: str):
        self.scope, self.name = scope, name

    def get_tensor(self) -> Variable:
        return self

    def set(self, value: Any, place: Any = None) -> None:
        """Give it a value; the array is copied."""
        self.scope[self.name] = np.array(value)

    @property
    def shape(self) -> tuple:
        return self.scope.array(self.name).shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.scope.array(self.name), dtype)

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.scope.get(self.name)})"


def global_scope() -> Scope:
    """The scope in which executors find and store program state."""
    return current_programs().scope


@contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Inside, `scope` is the global scope."""
    programs = current_programs()
    before, programs.scope = programs.scope, scope
    try:
        yield
    finally:
        programs.scope = before
