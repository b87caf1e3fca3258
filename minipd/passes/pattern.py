"""Rewriting by local rules: patterns, and the driver that applies them until none fires.

    class TwiceIsSum(RewritePattern):               # x + x for 2 x
        roots = ("pd_op.scale",)

        def match_and_rewrite(self, op, rewriter):
            if op_attrs(op) != {"scale": 2.0, "bias": 0.0, "bias_after_scale": True}:
                return False
            x, = tensor_operands(op)
            rewriter.replace_op(op, rewriter.call(ROWS["add"], (x, x), {}))
            return True

The driver ends when a sweep over all operations finds nothing to rewrite.  Within a sweep, what a rewrite has touched
(new operations, users of what was replaced, neighbours of what was erased) comes first, so that chains of rewrites
need no sweep each.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from minipd.ir.attributes import ArrayAttribute
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation, walk_inside
from minipd.ir.program import Program
from minipd.ir.schema import is_pure
from minipd.ir.value import Value
from minipd.ir.verify import VerifyError, verify

__all__ = ["PatternPass", "PatternRewriter", "RewriteError", "RewritePattern", "apply_patterns_greedily"]


class RewriteError(RuntimeError):
    """A rule does not come to an end, or does not do what it says."""


class RewritePattern:
    """One rule.  benefit: of several that match, the one with the most is tried first.

    roots: names of the operations at which it may match; None: any.
    """

    benefit: int = 1
    roots: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return type(self).__name__

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        """Change the program through `rewriter` if the rule fits at `op`; returns whether it did.

        New operations are inserted before `op` unless the rewriter is told otherwise.
        """
        raise NotImplementedError


class PatternRewriter(Builder):
    """The builder that patterns change programs with.  What it changes, the driver looks at again."""

    def __init__(self, program: Program):
        super().__init__(program.global_block())
        self.program = program
        self.changes = 0
        self.touched: dict[Operation, None] = {}        # a set that keeps its order
        self.erased: set[Operation] = set()
        self.op: Operation | None = None                # the one that is rewritten

    def start(self, op: Operation) -> None:
        """A pattern is asked about `op`."""
        self.changes, self.touched, self.op = 0, {}, op
        self.set_insertion_point(op)

    @property
    def at(self) -> str:
        """The operation that is rewritten, as errors name it (it may be gone by then, and with it its operands)."""
        op = self.op
        assert op is not None
        line = op.attributes.get("op_callstack")
        where = f" (from {line.value[0]})" if isinstance(line, ArrayAttribute) and line.items else ""
        return f"{op.name()} -> {', '.join(str(r.type()) for r in op.results())}{where}"

    def insert(self, op: Operation) -> Operation:
        self.changes += 1
        self._touch(op)
        return super().insert(op)

    def replace_all_uses(self, old: Value, new: Value) -> None:
        """Whoever used `old` uses `new`."""
        self.changes += 1
        for user in old.all_used_ops():
            self._touch(user)
        old.replace_all_uses_with(new)
        self._touch(new.get_defining_op())

    def replace_op(self, op: Operation, values: Sequence[Value]) -> None:
        """Result `i` becomes `values[i]` everywhere, and `op` is gone."""
        for old, new in zip(op.results(), values, strict=True):
            self.replace_all_uses(old, new)
        self.erase_op(op)

    def erase_op(self, op: Operation) -> None:
        """Remove an operation without users, and the constants and bundles that only it used.

        Raises: ValueError if a result is still used.
        """
        self.changes += 1
        sources = [v.get_defining_op() for o in walk_inside(op) for v in o.operands_source()]
        self.erased.update(walk_inside(op))
        op.erase()
        for source in dict.fromkeys(sources):
            if source is None or source in self.erased:
                continue
            if _is_bundle(source) and all(r.use_empty() for r in source.results()):
                self.erase_op(source)
            else:
                self._touch(source)                     # it has lost a user
                for r in source.results():              # which may have stood in the way of a neighbour
                    for user in r.all_used_ops():
                        self._touch(user)

    def modified(self, op: Operation) -> None:
        """To be told of a change that is made directly: an operand set, an attribute."""
        self.changes += 1
        self._touch(op)

    def _touch(self, op: Operation | None) -> None:
        if op is not None:
            self.touched[op] = None


def _is_bundle(op: Operation) -> bool:
    return op.num_operands() == 0 and op.row is not None and is_pure(op) or op.name() == "builtin.combine"


def apply_patterns_greedily(program: Program, patterns: Iterable[RewritePattern], *,
                            ops: Iterable[Operation] | None = None, max_rewrites: int | None = None,
                            debug: bool = False) -> int:
    """Apply `patterns` until none fires any more; returns how many rewrites that were.

    ops: where to look first (everywhere, by default); what rewrites touch is looked at too.
    max_rewrites: by default 10 for each operation, and 100 more.
    debug: verify the program after every rewrite.
    Raises: RewriteError if rules do not come to an end, and for a rule that says it has changed something and has not,
    or the other way round.
    """
    ordered = sorted(patterns, key=lambda p: -p.benefit)
    limit = 10 * program.num_ops() + 100 if max_rewrites is None else max_rewrites
    rewriter, rewrites = PatternRewriter(program), 0
    last: deque[tuple[str, str]] = deque(maxlen=12)
    seeds = dict.fromkeys(program.walk() if ops is None else ops)
    found = True
    while found:
        found = False
        worklist = dict.fromkeys(op for op in reversed(seeds) if op not in rewriter.erased)
        while worklist:
            op, _ = worklist.popitem()
            pattern = None if op in rewriter.erased else _first(ordered, op, rewriter)
            if pattern is None:
                continue
            found, rewrites = True, rewrites + 1
            last.append((pattern.name, rewriter.at))
            if debug:
                _verified(program, pattern, rewriter.at)
            if rewrites > limit:
                raise RewriteError(_endless(rewrites, limit, last))
            for each in reversed((op, *rewriter.touched)):
                worklist.pop(each, None)                # to the end, from which operations are taken
                worklist[each] = seeds[each] = None
    return rewrites


def _first(ordered: list[RewritePattern], op: Operation, rewriter: PatternRewriter) -> RewritePattern | None:
    """The pattern that has rewritten `op`, if any did."""
    for pattern in ordered:
        if (pattern.roots is None or op.name() in pattern.roots) and _fires(pattern, op, rewriter):
            return pattern
    return None


def _fires(pattern: RewritePattern, op: Operation, rewriter: PatternRewriter) -> bool:
    rewriter.start(op)
    with rewriter.program.constraints.collect():
        said = pattern.match_and_rewrite(op, rewriter)
    if said and not rewriter.changes:
        raise RewriteError(f"pattern {pattern.name} at {rewriter.at}: expected a change, since it returned True, got "
                           "none; return False where nothing is rewritten, and change programs through the rewriter "
                           "(tell it of others with rewriter.modified(op))")
    if not said and rewriter.changes:
        raise RewriteError(f"pattern {pattern.name}: expected no change, since it returned False, got "
                           f"{rewriter.changes}; decide whether to match before changing anything")
    return said


def _verified(program: Program, pattern: RewritePattern, at: str) -> None:
    try:
        verify(program)
    except VerifyError as error:
        error.add_note(f"after a rewrite by pattern {pattern.name} at {at}")
        raise


def _endless(rewrites: int, limit: int, last: Iterable[tuple[str, str]]) -> str:
    last = list(last)
    counts = ", ".join(f"{name} ({n} times)" for name, n in Counter(name for name, _ in last).most_common())
    name, op = last[-1]
    return (f"apply_patterns_greedily: expected rules that come to an end, got {rewrites} rewrites, more than "
            f"max_rewrites={limit}. Of the last {len(last)}: {counts}; the very last by {name} at {op}. A rule must "
            "lead to something that no rule leads back from; if this one does, give a larger max_rewrites")


class PatternPass:
    """A pass that applies patterns until none fires."""

    def __init__(self, name: str, patterns: Sequence[RewritePattern], max_rewrites: int | None = None):
        self.name, self.patterns, self.max_rewrites = name, list(patterns), max_rewrites

    def run(self, program: Program, debug: bool = False) -> int:
        return apply_patterns_greedily(program, self.patterns, max_rewrites=self.max_rewrites, debug=debug)

    def __repr__(self) -> str:
        return f"PatternPass({self.name!r}, {[p.name for p in self.patterns]})"
