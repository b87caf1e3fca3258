"""The column "spmd" of the operator table.

    @spmd("matmul")                                          a rule in notation: (*metas, **attrs) -> Notation
    def matmul(x, y, *, transpose_x=False, transpose_y=False): ...

    @spmd_placed("reshard")                                  a rule that needs the placements themselves
    def reshard(call: Call) -> Inferred: ...

A rule's signature is the row's schema.  Rules are entered here when their file is imported, and become the rows'
columns when the package is (`attach`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.dist.spmd.notation import Local, Placements
from minipd.framework.row import Row, add_column
from minipd.ir.dialect import OpInfo
from minipd.ir.interfaces import Interface, interface

__all__: list[str] = []


class Inferred(NamedTuple):
    """Which placements a call's operands must have and its results get.

    inputs, outputs: one tuple of placements per operand and per result.
    local: rewrites the attributes for one rank, `local(attrs, inputs, outputs, mesh, rank) -> attrs`; None: they stay.
    """

    inputs: tuple[Placements, ...]
    outputs: tuple[Placements, ...]
    local: Local | None = None

    def attributes(self, attrs: dict, mesh: ProcessMesh, rank: int) -> dict:
        """The attributes with which `rank` runs the operator on its shards."""
        return attrs if self.local is None else self.local(attrs, self.inputs, self.outputs, mesh, rank)


class Decompose(NamedTuple):
    """The answer "run this operator's decomposition instead": its parts are placed one by one.

    inputs: the placements that the operands are brought to before, where they disagree; None: they stay.
    """

    inputs: tuple[Placements, ...] | None = None


DECOMPOSE = Decompose()


class Call(NamedTuple):
    """What a placed rule sees: one call, and the placements its caller would like for the result (None: none)."""

    metas: tuple[Any, ...]
    placements: tuple[Placements, ...]
    attrs: Mapping[str, Any]
    mesh: ProcessMesh
    wanted: Placements | None


class Rule(NamedTuple):
    """One entry of the column.  placed: `function` takes a `Call` and answers `Inferred`, else metas -> `Notation`."""

    function: Callable
    placed: bool

    @property
    def shown(self) -> str:
        """What the matrix of operators shows: nothing where the rule says it, or what happens in its stead."""
        return getattr(self.function, "shown", "")

    @property
    def why(self) -> str:
        return getattr(self.function, "why", "")


RULES: dict[str, Rule] = {}


@interface
class Spmd(Interface):
    """It can be placed on a mesh: `entry` is its rule, which `spmd.infer` reads."""

    name, column = "SPMD", "spmd"
    entry: Rule

    @classmethod
    def entry_of(cls, info: OpInfo) -> Any:
        return None if info.row is None else RULES.get(info.row.name)

    @classmethod
    def declare(cls, row: Row, entry: Callable) -> None:
        spmd(row.name)(entry)

    @classmethod
    def forget(cls, row: Row) -> None:
        RULES.pop(row.name, None)


def spmd(*names: str) -> Callable[[Callable], Callable]:
    """Enters a rule in notation for the rows `names`."""
    return _enter(names, placed=False)


def spmd_placed(*names: str) -> Callable[[Callable], Callable]:
    """Enters a rule that answers from the placements directly."""
    return _enter(names, placed=True)


def _enter(names: tuple[str, ...], placed: bool) -> Callable[[Callable], Callable]:
    def register(function: Callable) -> Callable:
        for name in names:
            if name in RULES:
                raise ValueError(f"row {name!r} has an SPMD rule already, in {RULES[name].function.__module__}")
            RULES[name] = Rule(function, placed)
        return function
    return register


def attach() -> None:
    """Makes every rule the "spmd" column of its row."""
    for name, rule in RULES.items():
        add_column(name, "spmd", rule)
