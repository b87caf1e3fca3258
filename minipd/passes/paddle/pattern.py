"""Both sides of a rule of Paddle's Python API: operators, connected by the names of tensors.

The classes and their methods are Paddle's.  What Paddle takes in silence, and does not match, is refused here: the name
of an operator or an attribute that there is not, a number of operands that it cannot have.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from minipd.framework.row import ROWS
from minipd.ir.dialect import info_or_unregistered
from minipd.ir.paddle.signatures import Signature, names, signature
from minipd.passes.paddle.match import ATTRIBUTES, ComputeAttribute, MatchContext, NormalAttribute

if TYPE_CHECKING:
    from minipd.passes.paddle.drr import DrrPatternContext

__all__ = ["Graph", "Op", "ResultPattern", "SourcePattern", "Tensor"]


class Tensor:
    """A tensor of a pattern, by its name; None for one that is left out."""

    def __init__(self, name: str | None, graph: Graph):
        self.name, self.graph = name, graph

    def Assign(self, other: Tensor) -> None:
        """In a result: this tensor of the source is replaced by `other`, which the match was given."""
        if other.name is None or self.name is None:
            raise TypeError("Assign: expected tensors with names, got one that is left out")
        self.graph.assigned[self.name] = other.name

    def __repr__(self) -> str:
        return f"Tensor({self.name!r})"


class Op:
    """An operator of a pattern; calling it connects its operands and results."""

    def __init__(self, name: str, attributes: dict[str, Any], graph: Graph):
        self.name, self.attributes, self.graph = name, attributes, graph
        self.signature = graph.check(name, attributes)

    def __call__(self, input_tensors: Sequence[Tensor], output_tensors: Sequence[Tensor]) -> None:
        """Raises: TypeError for numbers of operands and results that the operator cannot have."""
        for what, tensors in ("operands", input_tensors), ("results", output_tensors):
            if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
                raise TypeError(f"{self.name}: expected lists of tensors of the pattern, got {tensors!r} as its {what}")
        self.graph.connect(self, list(input_tensors), list(output_tensors))


class Graph:
    """The operators of one side of a rule, in the order in which they were connected."""

    def __init__(self, side: str):
        self.side = side
        self.calls: list[tuple[Op, list[str | None], list[str | None]]] = []
        self.assigned: dict[str, str] = {}

    def check(self, name: str, attributes: dict[str, Any]) -> Signature | None:
        """Raises: TypeError for an operator or an attribute that there is not."""
        dialect, _, short = name.partition(".")
        found = signature(short) if dialect == "pd_op" else None
        if found is None and not (dialect == "pd_op" and short in ROWS) and not info_or_unregistered(name).registered:
            near = difflib.get_close_matches(short, [*names(), *ROWS], 3)
            raise TypeError(f"{self.side}: expected the name of an operator of Paddle's, got {name!r}"
                            + (f"; did you mean {' or '.join(f'pd_op.{n}' for n in near)}?" if near else ""))
        there = [] if found is None else list(found.attrs)
        if self.side == "ResultPattern" and found is not None:
            there += found.mutable
        for key in attributes if found is not None else ():
            if key not in there:
                operand = found is not None and key in found.mutable
                raise TypeError(f"{self.side}: {name} has the attributes {', '.join(there) or 'none'}, got {key!r}" + (
                    ", which is an operand: match the pd_op.full or pd_op.full_int_array that makes it" if operand
                    else ""))
        return found

    def connect(self, op: Op, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        found = op.signature
        if found is not None:
            most, given = len(found.operands), len(inputs)
            fewest = most - len(found.mutable) if self.side == "ResultPattern" else most
            if not fewest <= given <= most:
                takes = ", ".join(o.name for o in found.operands) or "nothing"
                raise TypeError(f"{self.side}: {op.name} takes {takes}, got {given} operands; "
                                "InputNoneTensor() stands for one that is left out")
            while len(outputs) > len(found.results) and outputs[-1].name is None:
                outputs = outputs[:-1]
            if len(outputs) > len(found.results) or self.side == "SourcePattern" and len(outputs) < len(found.results):
                raise TypeError(f"{self.side}: {op.name} gives {', '.join(found.results)}, got {len(outputs)} results")
        made = {t for _, _, results in self.calls for t in results}
        again = [t.name for t in outputs if t.name is not None and t.name in made]
        if again:
            raise TypeError(f"{self.side}: expected one operator to make {again[0]!r}, got {op.name} besides another")
        self.calls.append((op, [t.name for t in inputs], [t.name for t in outputs]))

    def made(self) -> dict[str, tuple[int, int]]:
        """Name -> which result of which call it is."""
        return {t: (i, j) for i, (_, _, results) in enumerate(self.calls) for j, t in enumerate(results)
                if t is not None}


#: the methods of the same names hide them
_Op: TypeAlias = Op
_Tensor: TypeAlias = Tensor


class _Side:
    """What both sides of a rule can make."""

    def __init__(self, ctx: DrrPatternContext, graph: Graph):
        self.ctx, self.graph = ctx, graph

    def Op(self, op_type: str, attributes: dict[str, Any] | None = None) -> _Op:
        """An operator, to be connected; its attributes are names (`Attr`) or values."""
        return _Op(op_type, dict(attributes or {}), self.graph)

    def Tensor(self, name: str) -> _Tensor:
        """The tensor of this name."""
        return _Tensor(name, self.graph)

    def Attr(self, attr_name: str) -> NormalAttribute:
        """An attribute that the source binds to this name."""
        return NormalAttribute(attr_name)

    def InputNoneTensor(self) -> _Tensor:
        """An operand that is left out."""
        return _Tensor(None, self.graph)

    def OutputNoneTensor(self) -> _Tensor:
        """A result that is left out."""
        return _Tensor(None, self.graph)


class SourcePattern(_Side):
    """What is looked for."""

    def ResultPattern(self) -> ResultPattern:
        return ResultPattern(self.ctx, self.ctx.result)

    def AddConstraint(self, function: Callable[[MatchContext], bool]) -> None:
        """The rule fires only where this is true of the match."""
        self.ctx.constraints.append(function)

    def AddPostProcess(self, function: Callable[[MatchContext], None]) -> None:
        """Called with each match, before it is rewritten."""
        self.ctx.post_processes.append(function)


class ResultPattern(_Side):
    """What takes its place."""

    def ComputeAttr(self, py_func: Callable[[MatchContext], Any]) -> ComputeAttribute:
        """An attribute that a function of the match gives: (value, "int32"), or the value."""
        return ComputeAttribute(py_func)


for _name, _make in ATTRIBUTES.items():
    setattr(ResultPattern, _name, _make)
