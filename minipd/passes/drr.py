"""Declarative rewrite rules (DRR): two formulas and a condition.

    @drr("silu_fuse_pass")
    class Silu:
        def source(x):
            return x * ops.sigmoid(x)

        def result(x):
            return ops.silu(x)

Positional parameters of `source` are tensors, keyword-only ones attributes (or constant operands) that a match binds.
`result` and `constraint` take those of these names that they need.  In `result` they are tensors to compute with, and
Python values; in `constraint`, which returns whether to rewrite, they are values of the program: `x.shape`, `x.dtype`,
`x.use_count()`, `constant_of(x)` (the number that it always is, or None):

    class RmsNorm:
        def source(x, weight, *, axis, epsilon):
            return x * ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=True) + epsilon) * weight

        def constraint(x, weight, axis):
            return weight.ndim == len(axis) and x.shape[-weight.ndim:] == weight.shape

        def result(x, weight, epsilon):
            return ops.rms_norm(x, weight, epsilon=epsilon)

What else a source may say:

    def source(x, w, b=None):           a tensor that may be missing: the formula is read with it and without it, and
        y = ops.matmul(x, w)            the longest that fits counts; the others get None for it
        return y if b is None else y + b
    def source(*xs, axis):              a list of tensors, of any length; `xs: list` is another
        return ops.concat(*xs, axis=axis)
    ops.split(x, ..., results=3)        so many results of an operator with any number; without it, all, as a list
    return a, b                         several outputs
    ops.exp(x).named("e")               a value in between, which constraints may ask for
    ops.op("pd_op.if", c, regions=r)    an operation that is no call of a row, as a whole; `r` are its regions

`post(...)`, if there is one, is called after each rewrite, with what it asks for: the source's names, `results` (the
new values), `match`, `rewriter`.

The result's operations are put where all inputs are there and no output has been used yet; where there is no such
place, nothing is rewritten.

(Paddle writes the source formula as a C++ or Python graph of named operators and tensors, `DrrPatternContext`; this is
what that graph says.  `paddle/` has that class too.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from itertools import combinations
from typing import Any

from minipd.ir.block import Block
from minipd.ir.operation import Operation, walk_inside
from minipd.ir.program import Program
from minipd.ir.schema import constant_of
from minipd.ir.value import Value, describe
from minipd.passes.explain import Explanation, explain
from minipd.passes.formula import Symbol, ops, reading
from minipd.passes.matching import Input, Match, Source
from minipd.passes.pattern import RULES, PatternRewriter, RewriteError, RewritePattern, add_rule
from minipd.passes.reading import call, optional, parameters
from minipd.passes.rewriter import Listener, inherited
from minipd.passes.writing import Writer

__all__ = ["RULES", "DrrRule", "Explanation", "constant_of", "drr", "explain", "ops"]


def drr(pass_name: str | None = None, benefit: int = 1, commutative: bool | Collection[str] = True,
        keep: bool = False) -> Callable[[type], DrrRule]:
    """Class decorator: the class becomes a rule, of the pass `pass_name` if that is given (several may share one).

    benefit: of the rules that match at one operation, the one with the most is tried first.
    commutative: operators whose operands may be met in either order: those that commute (True), none (False), or those
    that are named.
    keep: what is between the inputs and the outputs may have other users, for which it stays; by default such a place
    is no match, for it would be computed twice.

    >>> @drr(commutative=False)
    ... class Doubled:
    ...     def source(x):
    ...         return x + x
    ...     def result(x):
    ...         return x * 2.0
    >>> Doubled
    <rule Doubled: add>
    """
    def register(cls: type) -> DrrRule:
        rule = DrrRule(cls, benefit, commutative, keep)
        if pass_name is not None:
            add_rule(pass_name, rule)
        return rule
    return register


#: the functions of a rule; the first two must be there
PARTS = ("source", "result", "constraint", "post")
#: what the functions of a rule may ask for besides the names of its source -> which functions
OWN_NAMES = {"match": ("constraint", "result", "post"), "rewriter": ("post",), "results": ("post",)}


#: rules whose modules are named so are minipd's own
OURS = __name__.partition(".")[0] + "."


class DrrRule(RewritePattern):
    """A rule made of formulas; see the module.

    cls: its functions, or those of its bases, are the parts of the rule.
    Its source is read into patterns at once, so that an error shows where the rule stands.  minipd's own rules, of
    which there are many and a program needs few, are read when they are first asked for their patterns.

    Raises: TypeError for formulas that make no rule, saying why.
    """

    def __init__(self, cls: type, benefit: int = 1, commutative: bool | Collection[str] = True, keep: bool = False):
        self._parts: dict[str, Callable] = {n: getattr(cls, n) for n in PARTS if hasattr(cls, n)}
        self.benefit, self._name, self._module, self.__doc__ = benefit, cls.__name__, cls.__module__, cls.__doc__
        missing = [n for n in PARTS[:2] if n not in self._parts]
        if missing:
            raise TypeError(f"rule {cls.__name__}: expected functions source and result, got no {missing[0]}")
        odd = next((n for n, f in self._parts.items() if not callable(f)), None)
        if odd is not None:
            raise TypeError(f"rule {cls.__name__}: expected {odd} to be a function, got {self._parts[odd]!r}")
        code = getattr(self._parts["source"], "__code__", None)
        self._file = code.co_filename if code is not None else ""
        self._commutative, self._keep = commutative, keep
        self.result: Callable = self._parts["result"]
        self.constraint: Callable | None = self._parts.get("constraint")
        self.post: Callable | None = self._parts.get("post")
        if not cls.__module__.startswith(OURS):
            self.read()

    def read(self) -> None:
        """Read the source, if it has not been read yet.   Raises: TypeError, as above."""
        _ = self.sources

    @cached_property
    def sources(self) -> list[Source]:
        """What the source says, the longest formula first: one pattern for each choice of optional tensors."""
        function = self._parts["source"]
        may_miss = optional(function)
        variants = [Source(function, self.name, absent, self._commutative, self._keep)
                    for n in range(len(may_miss) + 1) for absent in combinations(may_miss, n)]
        self._check_names(variants)
        return sorted(variants, key=lambda s: -len(s.nodes))

    @property
    def source(self) -> Source:
        """The longest formula."""
        return self.sources[0]

    @cached_property
    def starts(self) -> list[list[Source]]:
        """Each source, from every operation at which matching it may start."""
        return [s.starts() for s in self.sources]

    @cached_property
    def roots(self) -> tuple[str, ...]:         # type: ignore[override]   # a class attribute of the base
        return tuple(dict.fromkeys(s.root.name for starts in self.starts for s in starts))

    def _check_names(self, sources: Iterable[Source]) -> None:
        """What the other functions ask for, the source has."""
        names = [p.name for p in parameters(self._parts["source"])]
        names += [n for s in sources for n in s.words if n not in names]
        for part in PARTS[1:]:
            for p in parameters(self._parts[part]) if part in self._parts else ():
                if p.name not in names and part not in OWN_NAMES.get(p.name, ()):
                    raise TypeError(f"rule {self.name}: parameter {p.name!r} of {self._parts[part].__name__} is none "
                                    f"of the source's: {', '.join(names)}")

    @property
    def name(self) -> str:
        return self._name

    @property
    def module(self) -> str:
        return self._module

    @property
    def file(self) -> str:
        return self._file

    def __repr__(self) -> str:
        return f"<rule {self.name}: {', '.join(n.name.removeprefix('pd_op.') for n in self.source.nodes)}>"

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        there = Names.of(rewriter)
        for starts in self.starts:
            source = starts[0] if len(starts) == 1 else min(starts, key=lambda s: there.counts[s.root.name])
            if source.root.name != op.name() or not there.all(source.names):
                continue
            for match in source.matches(op):
                here = source.at(match)
                if self.constraint is None or call(self.constraint, self._names(source, match)):
                    place = self.place(here, match)
                    if place is not None:
                        self._rewrite(here, match, place, rewriter)
                        return True
        return False

    def place(self, source: Source, match: Match) -> Operation | None:
        """The operation before which the result goes, None if there is none: `_place`, and behind the values in between
        that the result may compute with, if they stay."""
        found = _place(source, match)
        kept = [match.values[p].get_defining_op() for p in source.words.values()] if source.keep else []
        return None if found is None or any(op is not None and op.order >= found.order and op.parent is found.parent
                                            for op in kept) else found

    def _names(self, source: Source, match: Match) -> dict[str, Any]:
        others = {n: None for s in self.sources for n in s.words}       # of variants that are longer
        return {**others, **source.defaults, **match.names(), "match": match}

    def _rewrite(self, source: Source, match: Match, place: Operation, rewriter: PatternRewriter) -> None:
        rewriter.set_insertion_point(place)
        old = [match.values[o] for o in source.outputs]
        writer = Writer(rewriter, inherited(match.nodes[source.outputs[0].node]), f"rule {self.name}")
        names = self._names(source, match)
        with reading(writer):
            results = call(self.result, {n: writer.symbol(x) for n, x in names.items()})
        new = self._checked(results, old)
        for before, after in zip(old, new, strict=True):
            if after in writer.written:                     # (not an input that is passed through)
                after.stop_gradient = before.stop_gradient
            rewriter.replace_all_uses(before, after)
        self._erase(source, match, place, rewriter)
        if self.post is not None:
            call(self.post, {**names, "results": new, "rewriter": rewriter})

    def _checked(self, results: Any, old: list[Value]) -> list[Value]:
        """The values that take over from `old`."""
        results = results if isinstance(results, (tuple, list)) else (results,)
        new = [r.meaning if isinstance(r, Symbol) else r for r in results]
        if len(new) != len(old):
            raise RewriteError(f"rule {self.name}: expected {len(old)} results, as the source has, got {len(new)}")
        for before, after in zip(old, new, strict=True):
            if not isinstance(after, Value) or after.type() != before.type():
                raise RewriteError(f"rule {self.name}: expected a result of type {before.type()}, got "
                                   f"{describe(after)}; add a constraint that refuses such a match")
        return new

    def _erase(self, source: Source, match: Match, place: Operation, rewriter: PatternRewriter) -> None:
        """Erase what was matched, users first; with `keep`, what others or the result use stays."""
        block = place.parent
        assert block is not None
        block.number()
        for gone in sorted(match.ops, key=lambda o: -o.order):
            if gone in rewriter.erased:
                continue
            used = next((r for r in gone.results() if not r.use_empty()), None)
            if used is None:
                rewriter.erase_op(gone)
            elif not source.keep:
                raise RewriteError(f"rule {self.name}: expected a result that does without {describe(used)}, which is "
                                   "matched, and gone after it; compute it again, or write @drr(..., keep=True)")


class Names(Listener):
    """How many operations of each name there are: where one of a rule's is missing, nobody needs to look."""

    def __init__(self, program: Program):
        self.counts = Counter(op.name() for op in program.walk())

    @staticmethod
    def of(rewriter: PatternRewriter) -> Names:
        """The one that all rules share which this rewriter works for."""
        found = rewriter.shared.get(Names)
        if found is None:
            found = rewriter.shared[Names] = Names(rewriter.program)
            rewriter.listeners.append(found)
        return found

    def all(self, names: Iterable[str]) -> bool:
        return all(self.counts[name] for name in names)

    def inserted(self, op: Operation) -> None:
        self.counts.update(each.name() for each in walk_inside(op))

    def erased(self, op: Operation) -> None:
        self.counts.subtract(each.name() for each in walk_inside(op))


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


drr.explain = explain           # type: ignore[attr-defined]   # `from minipd.passes.drr import drr`; drr.explain(...)
