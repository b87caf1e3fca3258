"""What a trace had to assume about its symbolic dimensions.

While a program is traced, a symbolic size has no value: `S0 == 8` or `S0 % 4 == 0` can neither be confirmed nor
refuted.  Where an operator needs such a fact, it is *recorded* in the current `Constraints`, together with what needed
it and the user's line, and the executor checks the record against the real sizes before it runs the program.

The invariant: whatever was simplified under an assumption, the assumption is in the record, or follows from what is.
So a program run on sizes that it was not traced for raises, and never computes something else in silence.

What is assumed is also *used* (`dim_solver`): equal symbols count as one from then on, what follows from the record is
not recorded again, and what contradicts it is an error while tracing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minipd.framework.rank import current

if TYPE_CHECKING:
    from minipd.framework.dim_solver import Facts

PACKAGE = str(Path(__file__).resolve().parent.parent)


#: kind of an assumption -> its text
RELATIONS = {"equal": "{} == {}", "unequal": "{} != {}", "divisible": "{} % {} == 0", "at least": "{} >= {}",
             "broadcastable": "Broadcastable({},{})"}


class OpenSize(Exception):
    """Something could not be told of open sizes.  symbols: theirs; a program in which they are fixed has no doubt."""

    def __init__(self, text: str, symbols: frozenset[str]):
        super().__init__(text)
        self.symbols = symbols


class UnknownSize(OpenSize, TypeError):
    """Its value, or the answer to a question about it, is wanted while tracing, and only the run knows it."""


class Contradiction(OpenSize, ValueError):
    """An assumption that no sizes fulfil together with those made before."""


@dataclass(frozen=True)
class Constraint:
    """One assumption: `left == right` (kind "equal"), `left != right` ("unequal"), `left % right == 0` ("divisible"),
    `left >= right` ("at least"), or that the two are equal or one of them is 1 ("broadcastable").

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
        return RELATIONS[self.kind].format(self.left, self.right)

    def __str__(self) -> str:
        return f"{self.relation}  ({self.what}, {self.where})"

    def holds(self, bindings: dict[str, int]) -> bool:
        left, right = _value(self.left, bindings), _value(self.right, bindings)
        match self.kind:
            case "equal":
                return left == right
            case "unequal":
                return left != right
            case "at least":
                return left >= right
            case "broadcastable":
                return left == right or 1 in (left, right)
        return right != 0 and left % right == 0

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols it is about."""
        return frozenset().union(*(getattr(dim, "symbols", ()) for dim in (self.left, self.right)))


class Constraints:
    """The assumptions of one trace, in the order in which they were made, without those that follow from others.

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
        self._facts: Facts | None = None

    def __len__(self) -> int:
        return len(self._by_fact)

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self._by_fact.values())

    def __contains__(self, c: Constraint) -> bool:
        """Whether the same is assumed, wherever it came from, or follows from what is."""
        return self._key(c) in self._by_fact or self._solved().judge(c) is True

    def __repr__(self) -> str:
        return "Constraints(" + "; ".join(map(str, self)) + ")"

    def record(self, kind: str, left: Any, right: Any, what: str) -> None:
        """Makes an assumption of a kind that RELATIONS has.

        One that follows from others is not kept, nor are others that follow from it.
        Raises: ValueError if it contradicts those made before.
        """
        c = Constraint(kind, left, right, what, user_line())
        if self._key(c) in self._by_fact:
            return
        verdict = self._solved().judge(c)
        if verdict is None:
            facts = self._solved().and_also(c)
            alone = facts.only(c)
            verdicts = [(f, alone.judge(f)) for f in self if f.kind != "equal"]
            if any(holds is False for _, holds in verdicts):
                raise self._contradiction(c)
            for other, holds in verdicts:
                if holds:
                    del self._by_fact[self._key(other)]
            self._facts, self._by_fact[self._key(c)] = facts, c
        elif verdict is False:
            raise self._contradiction(c)

    def follows(self, kind: str, left: Any, right: Any) -> bool | None:
        """Whether a relation holds for all sizes that fulfil the assumptions, or for none; None if it depends."""
        c = Constraint(kind, left, right, "", "")
        return True if self._key(c) in self._by_fact else self._solved().judge(c)

    def add(self, constraint: Constraint) -> None:
        """Adds an assumption that was made elsewhere (in the trace that a program was read from), as it is.

        Raises: ValueError if it contradicts those that are there.
        """
        verdict = self._solved().judge(constraint)
        if verdict is False:
            raise self._contradiction(constraint)
        if verdict is None:
            self._facts = self._solved().and_also(constraint)
        self._by_fact.setdefault(self._key(constraint), constraint)

    def copy(self) -> Constraints:
        """The same assumptions, to which more can be added."""
        other = Constraints()
        other._by_fact, other._facts = dict(self._by_fact), self._facts
        return other

    def simplified(self, tree: Any) -> Any:
        """A dimension, or nested tuples of them, with the least symbols that the equalities leave.

        >>> from minipd.framework.dim import symbol, require_equal
        >>> constraints = Constraints()
        >>> with constraints.collect():
        ...     _ = require_equal(symbol("S1"), symbol("S0"), "add: dimension 0")
        >>> constraints.simplified((symbol("S0") * symbol("S1"), 3))
        (S0*S0, 3)
        """
        if self._facts is None:
            return tree
        if isinstance(tree, tuple):
            return tuple(map(self.simplified, tree))
        return self._facts.simplified(tree)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """What is known of the smallest and the largest value of symbols."""
        return {} if self._facts is None else self._facts.ranges

    def _solved(self) -> Facts:
        if self._facts is None:
            from minipd.framework.dim_solver import Facts
            self._facts = Facts()
        return self._facts

    @staticmethod
    def _key(c: Constraint) -> tuple:
        """What two constraints that say the same share: an equality has no direction."""
        pair = (c.left, c.right)
        return c.kind, *(sorted(pair, key=str) if c.kind in ("equal", "unequal", "broadcastable") else pair)

    def _contradiction(self, c: Constraint) -> Contradiction:
        about, others = set(c.symbols), []
        for f in sorted(self, key=lambda f: not f.symbols & c.symbols):     # and what is linked to it by others
            if f.symbols & about:
                about |= f.symbols
                others.append(str(f))
        return Contradiction(f"{c.what}: expected {c.relation}, which no sizes fulfil"
                             + (f" together with {'; '.join(others)}" if others else ""), frozenset(about))

    @contextmanager
    def collect(self, of_user: bool = False, sizes: dict[str, int] | None = None) -> Iterator[Constraints]:
        """Makes this the record into which the dimension functions of this rank write, until the block ends.

        of_user: the block runs user code, whose questions about open sizes are answered and recorded (`asked`).  sizes:
        what decides them, the values of symbols in the call that is traced.
        """
        context = current()
        before = context.constraints, context.asking
        context.constraints, context.asking = self, Asking(self, sizes) if of_user else None
        try:
            yield self
        finally:
            context.constraints, context.asking = before

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


@dataclass(frozen=True)
class Asking:
    """User code that is being traced.  constraints: what its questions are recorded in.  sizes: what decides them."""

    constraints: Constraints
    sizes: dict[str, int] | None = None


def current_asking() -> Asking | None:
    """The user code in force, or None if there is none."""
    return current().asking


def current_constraints() -> Constraints | None:
    """The record in force, or None outside of any trace."""
    return current().constraints


def recorder(otherwise: str) -> Constraints:
    """The collector of assumptions in force; with none, ValueError that begins with `otherwise`."""
    collector = current_constraints()
    if collector is None:
        raise ValueError(f"{otherwise}, and no trace is recording assumptions (with Constraints().collect(): ...)")
    return collector


def _value(dim: Any, bindings: dict[str, int]) -> int:
    return dim if isinstance(dim, int) else dim.substitute(bindings)


def user_line() -> str:
    """The innermost line outside of the package: where the user asked for what needs the assumption."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
