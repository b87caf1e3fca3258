"""Declarative rewrite rules (DRR): two formulas and a condition.

    @drr("silu_fuse_pass")
    class Silu:
        def source(x):
            return x * ops.sigmoid(x)

        def result(x):
            return ops.silu(x)

Positional parameters of `source` are tensors, keyword-only ones attributes (or constant operands) that a match binds.
`result` and `constraint` take those of these names that they need.  In `result` they are tensors to compute with, and
Python values; in `constraint`, which returns whether to rewrite, they have shapes and dtypes:

    class RmsNorm:
        def source(x, weight, *, axis, epsilon):
            return x * ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=True) + epsilon) * weight

        def constraint(x, weight, axis):
            return weight.ndim == len(axis) and x.shape[-weight.ndim:] == weight.shape

        def result(x, weight, epsilon):
            return ops.rms_norm(x, weight, epsilon=epsilon)

(Paddle writes the source formula as a C++ or Python graph of named operators and tensors, `DrrPatternContext`; this is
what that graph says.)

The result's operations are put where all inputs are there and no output has been used yet; where there is no such
place, nothing is rewritten.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from minipd.framework.row import Row
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.trace import scalar_dtype
from minipd.ir.value import Value, describe
from minipd.passes.formula import Symbol
from minipd.passes.matching import Input, Match, Source
from minipd.passes.pattern import RULES, PatternRewriter, RewriteError, RewritePattern, add_rule
from minipd.passes.rewriter import inherited

__all__ = ["RULES", "DrrRule", "drr"]

def drr(pass_name: str | None = None, benefit: int = 1) -> Callable[[type], DrrRule]:
    """Class decorator: the class becomes a rule, of the pass `pass_name` if that is given (several may share one).

    benefit: of the rules that match at one operation, the one with the most is tried first.
    """
    def register(cls: type) -> DrrRule:
        rule = DrrRule(cls, benefit)
        if pass_name is not None:
            add_rule(pass_name, rule)
        return rule
    return register


class DrrRule(RewritePattern):
    """A rule made of formulas; see the module.

    Raises: TypeError for formulas that make no rule, saying why.
    """

    def __init__(self, cls: type, benefit: int = 1):
        parts = dict(vars(cls))
        self.benefit, self._name, self.__doc__ = benefit, cls.__name__, cls.__doc__
        self.source = Source(parts["source"], cls.__name__)
        self.result: Callable = parts["result"]
        self.constraint: Callable | None = parts.get("constraint")
        self.roots = (self.source.outputs[0].node.name,)
        names = (*self.source.inputs, *self.source.attrs)
        for function in filter(None, (self.result, self.constraint)):
            for name in inspect.signature(function).parameters:
                if name not in names:
                    raise TypeError(f"rule {cls.__name__}: parameter {name!r} of {function.__name__} is none of the "
                                    f"source's: {', '.join(names)}")

    @property
    def name(self) -> str:
        return self._name

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        for match in self.source.matches(op):
            if self.constraint is None or _call(self.constraint, match.names()):
                place = _place(self.source, match)
                if place is not None:
                    self._rewrite(match, place, rewriter)
                    return True
        return False

    def _rewrite(self, match: Match, place: Operation, rewriter: PatternRewriter) -> None:
        rewriter.set_insertion_point(place)
        old = [match.values[o] for o in self.source.outputs]
        anchor = match.nodes[self.source.outputs[0].node]
        writer = Writer(rewriter, inherited(anchor))
        names = {n: Symbol(writer, x) if isinstance(x, Value) else x for n, x in match.names().items()}
        results = _call(self.result, names)
        results = results if isinstance(results, tuple) else (results,)
        new = [r.meaning if isinstance(r, Symbol) else r for r in results]
        if len(new) != len(old):
            raise RewriteError(f"rule {self.name}: expected {len(old)} results, as the source has, got {len(new)}")
        for before, after in zip(old, new, strict=True):
            if not isinstance(after, Value) or after.type() != before.type():
                raise RewriteError(f"rule {self.name}: expected a result of type {before.type()}, got "
                                   f"{describe(after)}; add a constraint that refuses such a match")
            if after in writer.written:                     # (not an input that is passed through)
                after.stop_gradient = before.stop_gradient
            rewriter.replace_all_uses(before, after)
        block = place.parent
        assert block is not None
        block.number()
        for gone in sorted(match.ops, key=lambda o: -o.order):          # users first
            if gone not in rewriter.erased:
                rewriter.erase_op(gone)


class Writer:
    """The interpreter of a result formula: a call is inserted into the program."""

    def __init__(self, rewriter: PatternRewriter, facts: dict[str, Any]):
        self.rewriter, self.facts = rewriter, facts
        self.written: set[Value] = set()

    def call(self, row: Row, operands: tuple, attrs: dict[str, Any]) -> Any:
        given = [x.meaning if isinstance(x, Symbol) else x for x in operands]
        values = [x if isinstance(x, Value) else self.rewriter.full((), x, scalar_dtype(x, given)) for x in given]
        results = self.rewriter.call(row, values, attrs, self.facts)
        self.written.update(results)
        symbols = tuple(Symbol(self, r) for r in results)
        return symbols if row.multi else symbols[0]


def _call(function: Callable, names: dict[str, Any]) -> Any:
    return function(**{name: names[name] for name in inspect.signature(function).parameters})


def _place(source: Source, match: Match) -> Operation | None:
    """The operation before which the result goes; None if there is no place for it.

    It must stand behind everything that defines an input, and not behind an operation outside of the match that uses
    an output, directly or in a region.  `block.number()` numbers the operations of a block: `op.order`.
    """
    block = next(iter(match.nodes.values())).parent
    assert block is not None
    block.number()
    defined = [d for p, v in match.values.items() if isinstance(p, Input)
               and (d := v.get_defining_op()) is not None and d.parent is block]
    after = max(defined, key=lambda d: d.order, default=None)
    outputs = [match.values[o] for o in source.outputs]
    users = [_in_block(u, block) for v in outputs for u in v.all_used_ops() if u not in match.ops]
    before = min(users, key=lambda u: u.order, default=None)
    place = min((op for v in outputs if (op := v.get_defining_op()) is not None), key=lambda d: d.order)
    if after is not None and place.order <= after.order:
        if after.next is None:
            return None
        place = after.next
    return None if before is not None and before.order < place.order else place


def _in_block(op: Operation, block: Block) -> Operation:
    """The operation of `block` that is `op`, or in whose regions it is."""
    while op.parent is not block:
        parent = op.get_parent_op()
        assert parent is not None, "a value is used outside of the block that defines it"
        op = parent
    return op
