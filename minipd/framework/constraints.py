"""What a trace had to assume about its symbolic dimensions.

While a program is traced, a symbolic size has no value: `S0 == 8` or `S0 % 4 == 0` can neither be confirmed nor
refuted.  Where an operator needs such a fact, it is *recorded* in the current `Constraints`, together with what needed
it and the user's line, and the executor checks the record against the real sizes before it runs the program.

The invariant: whatever was simplified under an assumption, the assumption is in the record.  So a program run on sizes
that it was not traced for raises, and never computes something else in silence.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGE = str(Path(__file__).resolve().parent.parent)
_CURRENT: ContextVar[Constraints | None] = ContextVar("constraints", default=None)


@dataclass(frozen=True)
class Constraint:
    """One assumption: `left == right` (kind "equal"), `left % right == 0` ("divisible"), `left >= right` ("at least").

    `what` names the thing that needs it ("add: dimension 0"), `where` is the user's line as "file:line".
    """

    kind: str
    left: Any
    right: Any
    what: str
    where: str

    @property
    def relation(self) -> str:
        """What is assumed, as text: `S0 % 4 == 0`."""
        return {"equal": "{} == {}", "divisible": "{} % {} == 0", "at least": "{} >= {}"}[self.kind].format(
            self.left, self.right)

    def __str__(self) -> str:
        return f"{self.relation}  ({self.what}, {self.where})"

    def holds(self, bindings: dict[str, int]) -> bool:
        left, right = _value(self.left, bindings), _value(self.right, bindings)
        if self.kind == "equal":
            return left == right
        return left >= right if self.kind == "at least" else right != 0 and left % right == 0


class Constraints:
    """The assumptions of one trace, each kept once, in the order in which they were made.

    >>> from minipd.framework.dim import symbol, require_equal
    >>> constraints = Constraints()
    >>> with constraints.collect():
    ...     require_equal(symbol("S0"), 8, "add: dimension 0")
    8
    >>> constraints.check({"S0": 8})
    >>> constraints.check({"S0": 5})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: add: dimension 0: expected S0 == 8, got 5 and 8 for S0=5 ... Trace again for these sizes...
    """

    def __init__(self) -> None:
        self._by_fact: dict[tuple, Constraint] = {}

    def __len__(self) -> int:
        return len(self._by_fact)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self._by_fact.values())

    def __contains__(self, c: Constraint) -> bool:
        """Whether the same is assumed, wherever it came from."""
        return (c.kind, c.left, c.right) in self._by_fact or c.kind == "equal" and (
            c.kind, c.right, c.left) in self._by_fact

    def __repr__(self) -> str:
        return "Constraints(" + "; ".join(map(str, self)) + ")"

    def record(self, kind: str, left: Any, right: Any, what: str) -> None:
        """Adds an assumption of a kind that Constraint has; the same fact again keeps the first one's origin."""
        self.add(Constraint(kind, left, right, what, user_line()))

    def add(self, constraint: Constraint) -> None:
        """Adds an assumption that was made elsewhere (in the trace that a program was read from)."""
        self._by_fact.setdefault((constraint.kind, constraint.left, constraint.right), constraint)

    @contextmanager
    def collect(self) -> Iterator[Constraints]:
        """Makes this the record into which the dimension functions write, until the block ends."""
        token = _CURRENT.set(self)
        try:
            yield self
        finally:
            _CURRENT.reset(token)

    def check(self, bindings: dict[str, int]) -> None:
        """Compares every assumption with the real sizes.  ValueError for the first one that does not hold."""
        for c in self:
            if not c.holds(bindings):
                sizes = ", ".join(f"{name}={size}" for name, size in sorted(bindings.items()))
                values = f"{_value(c.left, bindings)} and {_value(c.right, bindings)}"
                raise ValueError(
                    f"{c.what}: expected {c.relation}, got {values} for {sizes} (assumed at {c.where}). "
                    "Trace again for these sizes, or feed sizes for which it holds."
                )


def current_constraints() -> Constraints | None:
    """The record in force, or None outside of any trace."""
    return _CURRENT.get()


def _value(dim: Any, bindings: dict[str, int]) -> int:
    return dim if isinstance(dim, int) else dim.substitute(bindings)


def user_line() -> str:
    """The innermost line outside of the package: where the user asked for what needs the assumption."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
