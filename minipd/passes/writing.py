"""Writing the result formula of a rule: each call is inserted into the program."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

from minipd.framework.row import Row
from minipd.ir.dialect import info_or_unregistered
from minipd.ir.operation import Operation
from minipd.ir.region import Region
from minipd.ir.schema import vector_result
from minipd.ir.trace import scalar_dtype
from minipd.ir.types import Type
from minipd.ir.value import Value
from minipd.passes.formula import Symbol
from minipd.passes.pattern import PatternRewriter, RewriteError

__all__ = ["Writer"]


class Writer:
    """The interpreter of a result formula.

    facts: attributes that every operation gets.  what: the rule, as errors name it.
    written: all values that the result's operations make.
    """

    def __init__(self, rewriter: PatternRewriter, facts: dict[str, Any], what: str):
        self.rewriter, self.facts, self.what = rewriter, facts, what
        self.written: set[Value] = set()

    def symbol(self, x: Any) -> Any:
        """What the formula gets for what a match has bound: symbols for values, and for lists of them."""
        if isinstance(x, Value):
            return Symbol(self, x)
        return tuple(map(self.symbol, x)) if isinstance(x, tuple) else x

    def call(self, row: Row, operands: tuple, attrs: dict[str, Any], results: int | None) -> Any:
        given = [x.meaning if isinstance(x, Symbol) else x for x in operands]
        unknown = sorted(attrs.keys() - row.attrs.keys())
        if unknown:
            near = difflib.get_close_matches(unknown[0], row.attrs, 1)
            raise RewriteError(f"{self.what}: {row.name} has the attributes {', '.join(row.attrs) or 'none'}, got "
                               f"{unknown[0]}" + (f"; did you mean {near[0]}?" if near else ""))
        fixed = len(row.inputs) - row.variadic
        if len(given) < fixed or len(given) > fixed and not row.variadic:
            raise RewriteError(f"{self.what}: {row.name} takes {fixed}{' or more' if row.variadic else ''} tensors "
                               f"({', '.join(row.inputs)}), got {len(given)}")
        values = [x if isinstance(x, Value) else self._number(row, x, given) for x in given]
        made = self.rewriter.call(row, values, attrs, self.facts)
        self.written.update(made)
        symbols = tuple(Symbol(self, r) for r in made)
        if results is not None and vector_result(row) and len(symbols) != results:
            raise RewriteError(f"{self.what}: expected {results} results of {row.name}, got {len(symbols)}")
        return symbols if row.multi else symbols[0]

    def _number(self, row: Row, x: Any, given: Sequence[Any]) -> Value:
        if x is None or isinstance(x, (list, tuple, str)):
            raise RewriteError(f"{self.what}: {row.name}: expected tensors and numbers, got {x!r}; write *xs for a "
                               "list, and branch in the formula on what is optional")
        return self.rewriter.full((), x, scalar_dtype(x, given))

    def operation(self, name: str, operands: tuple, attrs: dict[str, Any], results: Any, regions: Any) -> Any:
        """An operation as it stands, with the regions of one that is matched."""
        if not info_or_unregistered(name).registered:
            raise RewriteError(f"{self.what}: expected the name of an operation, got {name!r}")
        regions = list(regions or ())
        types = self._types(name, results, regions)
        op = self.rewriter.build(name, [x.meaning for x in operands], {**attrs, **self.facts}, types, len(regions))
        move_regions(regions, op, self.rewriter.modified)
        self.written.update(op.results())
        symbols = tuple(Symbol(self, r) for r in op.results())
        return symbols[0] if len(symbols) == 1 else symbols

    def _types(self, name: str, results: Any, regions: Sequence[Region]) -> list[Type]:
        if isinstance(results, (list, tuple)):
            return list(results)
        last = regions[0].front().back() if regions and regions[0].blocks else None
        if last is None or last.name() != "cf.yield":
            raise RewriteError(f"{self.what}: expected results=[...], the types of what {name} gives, since it has no "
                               "region that yields them")
        return [v.type() for v in last.operands_source()]

    def named(self, name: str, meaning: Any) -> None:
        raise RewriteError(f"{self.what}: expected no .named({name!r}) in a result; it is for the source")


def move_regions(regions: Sequence[Region], op: Operation, modified: Callable[[Operation], None]) -> None:
    """Give what is inside of regions to those of `op`; what they were of has empty ones then."""
    for old, new in zip(regions, op.regions, strict=True):
        owner = old.parent_op
        for block in list(old.blocks):
            inner = new.add_block()
            for arg in block.args():
                copy = inner.add_arg(arg.type())
                copy.attributes.update(arg.attributes)
                arg.replace_all_uses_with(copy)
            inner.take_over(block)
        if owner is not None:
            modified(owner)
