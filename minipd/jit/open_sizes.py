"""Programs for open dimensions: which calls one serves, and what is traced for a call that none serves.

A trace assumes something of open sizes where user code asks about them (`if x.shape[0] == 1`), or where an operator
needs it.  The sizes of the call decide, so the program serves all calls whose sizes fulfil the assumptions.

Sometimes the library's rules assume more than this call fulfils (that S0 is 8, beside a tensor of 8 rows, though here
it is 1), or cannot do without a size (`unbind`).  Then the function is traced with these dimensions *fixed* at the
sizes of the call; what is raised there is what eager mode would raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from minipd.framework.constraints import Constraint, Contradiction, OpenSize
from minipd.framework.dim import substitute_all
from minipd.jit.compiled import Compiled, NotOpen
from minipd.jit.signature import Argument

__all__: list[str] = []


class Served:
    """The sizes that a program serves.  fixed: those that are part of it.  assumed: what the others have to fulfil."""

    def __init__(self, assumed: Sequence[Constraint], fixed: Mapping[str, int]):
        self.assumed, self.fixed = assumed, fixed
        self._known: tuple[dict[str, int], str | None] | None = None

    def refuses(self, sizes: dict[str, int]) -> str | None:
        """Why the program does not serve a call of these sizes, as text; None if it does."""
        if not self.assumed and not self.fixed:
            return None
        if self._known is None or self._known[0] != sizes:
            self._known = sizes, self._refuses(sizes)
        return self._known[1]

    def _refuses(self, sizes: dict[str, int]) -> str | None:
        for name, size in self.fixed.items():
            if sizes[name] != size:
                return f"{name} is {sizes[name]}, was fixed at {size}"
        failed = unfulfilled(self.assumed, sizes)
        return None if failed is None else f"{failed.relation} does not hold for {_spelled(failed, sizes)}"

    def __iter__(self) -> Iterator[str]:
        """What must hold, as texts."""
        yield from (f"{name} == {size}" for name, size in self.fixed.items())
        yield from (c.relation for c in self.assumed)


def compiled_for(sizes: dict[str, int] | None, arguments: Sequence[Argument],
                 compiled_at: Callable[[Sequence[Argument], dict[str, int] | None], Compiled],
                 ) -> tuple[Compiled, Served]:
    """The program of a call, as open as it can be.

    sizes: of the open dimensions of the call, None where there is no call.  compiled_at: what makes the program, of its
    arguments and of the sizes that decide questions.
    Raises: what the trace raises though the dimensions are fixed.
    """
    if sizes is None:
        compiled = compiled_at(arguments, None)
        return compiled, Served(compiled.assumptions, {})
    fixed: dict[str, int] = {}
    while True:
        specs = [Argument(substitute_all(a.shape, fixed), a.dtype, a.stop_gradient, a.placed) for a in arguments]
        error: Exception | None = None
        try:
            compiled = compiled_at(specs, {n: size for n, size in sizes.items() if n not in fixed})
        except (NotOpen, Contradiction) as failure:
            error = failure.error if isinstance(failure, NotOpen) else failure
            doubtful = error.symbols if isinstance(error, OpenSize) else frozenset(sizes)
        else:
            assumed = compiled.assumptions
            failed = unfulfilled(assumed, sizes)
            if failed is None:
                return compiled, Served(assumed, fixed)
            doubtful = failed.symbols
        more = {name: sizes[name] for name in doubtful if name in sizes and name not in fixed}
        if error is not None and not more:
            raise error
        assert more, "what fails is about sizes that are fixed"
        fixed |= more


def unfulfilled(assumed: Sequence[Constraint], sizes: dict[str, int]) -> Constraint | None:
    """The first assumption that these sizes do not fulfil."""
    return next((c for c in assumed if not _holds(c, sizes)), None)


def _holds(c: Constraint, sizes: dict[str, int]) -> bool:
    try:
        return c.holds(sizes)
    except ValueError:                  # it speaks of a size that would not be whole
        return False


def _spelled(c: Constraint, sizes: dict[str, int]) -> str:
    return ", ".join(f"{name}={sizes[name]}" for name in sorted(c.symbols))
