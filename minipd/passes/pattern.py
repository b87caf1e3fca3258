"""Rewriting by local rules: patterns, and the driver that applies them until none fires.

    class TwiceIsSum(RewritePattern):               # x + x for 2 x
        roots = ("pd_op.scale",)

        def match_and_rewrite(self, op, rewriter):
            if op_attrs(op) != {"scale": 2.0, "bias": 0.0, "bias_after_scale": True}:
                return False
            x, = tensor_operands(op)
            rewriter.replace_op_with(op, ROWS["add"], (x, x))
            return True

The driver ends when a sweep over all operations finds nothing to rewrite.  Within a sweep, what a rewrite has touched
(new operations, users of what was replaced, neighbours of what was erased) comes first, so that chains of rewrites
need no sweep each.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from minipd.ir.operation import Operation, walk_inside
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.ir.verify import VerifyError, verify
from minipd.passes.rewriter import Listener, PatternRewriter

__all__ = ["Listener", "PatternRewriter", "RewriteError", "RewritePattern", "add_rule", "apply_patterns_greedily",
           "watching_rewrites"]


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

    @property
    def module(self) -> str:
        """Where the rule is defined: the name of the module."""
        return type(self).__module__

    @property
    def file(self) -> str:
        """Where the rule is defined: the file."""
        return type(self).match_and_rewrite.__code__.co_filename

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        """Change the program through `rewriter` if the rule fits at `op`; returns whether it did.

        New operations are inserted before `op` unless the rewriter is told otherwise.
        """
        raise NotImplementedError(f"pattern {self.name}: expected a method match_and_rewrite(op, rewriter), got none; "
                                  "define it")


#: pass -> the rules that were registered for it, beside those that it brings itself
RULES: dict[str, list[RewritePattern]] = {}


def add_rule(pass_name: str, rule: RewritePattern) -> None:
    """Let the pass of this name apply `rule` too.  (A name that no pass was registered under is that of a pass that
    only has rules.)  A rule of the same name from the same module takes the place of the one there is: the module is
    run again, as a cell of a notebook is."""
    rules = RULES.setdefault(pass_name, [])
    for i, other in enumerate(rules):
        if (other.name, other.module) == (rule.name, rule.module):
            rules[i] = rule
            return
    rules.append(rule)


# ------------------------------------------------------------------------------------------------- looking on
@dataclass
class Watch:
    """How drivers work while somebody looks on.  limit: after so many rewrites they stop.  rewrites: done so far."""

    listeners: tuple[Listener, ...] = ()
    debug: bool = False
    limit: float = float("inf")
    rewrites: int = 0


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching_rewrites(*listeners: Listener, debug: bool = False, limit: float = float("inf")) -> Iterator[Watch]:
    """Look on at all rewriting inside, whichever pass it is done by.

    listeners: are told of every change, besides those who are told already.  debug: verify the program after every
    rewrite.  limit: how many rewrites may be done; after that, drivers end as if no rule fired any more.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> from minipd.passes import create_pass
    >>> program = trace(lambda x: x.scale(1.0).scale(1.0), Meta((2,), dtypes.float32.np)).program
    >>> with watching_rewrites(limit=1) as watch:
    ...     create_pass("identity_op_clean_pass").run(program)
    1
    >>> watch.rewrites, [op.name() for op in program.global_block()].count("pd_op.scale")
    (1, 1)
    """
    outer = _WATCH.get() or Watch()
    watch = Watch(outer.listeners + listeners, outer.debug or debug, limit)
    token = _WATCH.set(watch)
    try:
        yield watch
    finally:
        _WATCH.reset(token)


# ------------------------------------------------------------------------------------------------------ driver
#: of what an erased operation read, users are looked at again if there are at most so many (of a value that all of a
#: program reads, they would be looked at again at every rewrite; the next sweep comes to them)
NEIGHBOURS = 8
#: so many rewrites are remembered, for the error that says what does not end
REMEMBERED = 12


class Touched(Listener):
    """What a rewrite has touched: the driver looks at it again."""

    def __init__(self) -> None:
        self.ops: dict[Operation, None] = {}            # a set that keeps its order

    def inserted(self, op: Operation) -> None:
        self.ops[op] = None

    def modified(self, op: Operation) -> None:
        self.ops[op] = None

    def replaced(self, old: Value, new: Value) -> None:
        self._add(old.all_used_ops())
        source = new.get_defining_op()
        if source is not None:
            self.ops[source] = None

    def erased(self, op: Operation) -> None:
        for source in dict.fromkeys(v.get_defining_op() for o in walk_inside(op) for v in o.operands_source()):
            if source is not None:
                self.ops[source] = None                 # it loses a user
                for r in source.results():              # which may have stood in the way of a neighbour
                    if r.use_count() <= NEIGHBOURS:
                        self._add(r.all_used_ops())

    def _add(self, ops: Iterable[Operation]) -> None:
        self.ops.update(dict.fromkeys(ops))


class Ranked:
    """Patterns by the operation at which they may match, the largest benefit first.

    Raises: TypeError for what is no pattern, and for roots that can match nothing.
    """

    def __init__(self, patterns: Iterable[RewritePattern]):
        patterns = list(patterns)
        for p in patterns:
            if not isinstance(p, RewritePattern):
                name = p.__name__ if isinstance(p, type) else repr(p)
                raise TypeError(f"patterns: expected rules of drr, or objects of classes of RewritePattern, got {name}"
                                + (f"; write {name}()" if isinstance(p, type) else ""))
            wrong = p.roots if isinstance(p.roots, str) else next((r for r in p.roots or () if "." not in r), None)
            if wrong is not None:
                name = wrong if "." in wrong else f"pd_op.{wrong}"
                raise TypeError(f"pattern {p.name}: expected roots to be names of operations with their dialect, got "
                                f"{p.roots!r}; write roots = ({name!r},)")
        self._all = sorted(patterns, key=lambda p: -p.benefit)
        self._at: dict[str, list[RewritePattern]] = {}

    def at(self, op: Operation) -> list[RewritePattern]:
        found = self._at.get(op.name())
        if found is None:
            found = self._at[op.name()] = [p for p in self._all if p.roots is None or op.name() in p.roots]
        return found


def apply_patterns_greedily(program: Program, patterns: Iterable[RewritePattern], *,
                            ops: Iterable[Operation] | None = None, max_rewrites: int | None = None,
                            debug: bool = False, listeners: Sequence[Listener] = ()) -> int:
    """Apply `patterns` until none fires any more; returns how many rewrites that were.

    ops: where to look first (everywhere, by default); what rewrites touch is looked at too.
    max_rewrites: by default 10 for each operation, and 100 more.
    debug: verify the program after every rewrite.  listeners: are told of every change.
    Raises: RewriteError if rules do not come to an end, and for a rule that says it has changed something and has not,
    or the other way round.
    """
    watch, touched, ranked = _WATCH.get() or Watch(), Touched(), Ranked(patterns)
    limit = 10 * program.num_ops() + 100 if max_rewrites is None else max_rewrites
    rewriter = PatternRewriter(program, (touched, *listeners, *watch.listeners))
    rewrites, last = 0, Last(program, limit)
    seeds = dict.fromkeys(program.walk() if ops is None else ops)
    found = True
    debug = debug or watch.debug
    with program.constraints.collect():
        while found:
            found, rewriter.sweep = False, rewriter.sweep + 1
            worklist = dict.fromkeys(op for op in reversed(seeds) if op not in rewriter.erased)
            while worklist:
                if watch.rewrites >= watch.limit:
                    return rewrites
                op, _ = worklist.popitem()
                if op in rewriter.erased:
                    continue
                touched.ops.clear()
                pattern = next((p for p in ranked.at(op) if _fires(p, op, rewriter, debug)), None)
                if pattern is None:
                    continue
                found, rewrites, watch.rewrites = True, rewrites + 1, watch.rewrites + 1
                for listener in rewriter.listeners:
                    listener.applied(pattern.name, rewriter.at)
                last.add(pattern.name, rewriter.at, rewrites)
                if debug:
                    _verified(program, pattern, rewriter.at)
                for each in reversed((op, *touched.ops)):
                    worklist.pop(each, None)            # to the end, from which operations are taken
                    worklist[each] = seeds[each] = None
    return rewrites


def _fires(pattern: RewritePattern, op: Operation, rewriter: PatternRewriter, debug: bool) -> bool:
    rewriter.start(op)
    before = _looks(op) if debug else None
    try:
        said = pattern.match_and_rewrite(op, rewriter)
    except Exception as error:
        error.add_note(f"in pattern {pattern.name} at {rewriter.at}")
        raise
    if said and not rewriter.changes:
        raise RewriteError(f"pattern {pattern.name} at {rewriter.at}: expected a change, since it returned True, got "
                           "none; return False where nothing is rewritten, and change programs through the rewriter "
                           "(tell it of others with rewriter.modified(op))")
    if not said and rewriter.changes:
        raise RewriteError(f"pattern {pattern.name}: expected no change, since it returned False, got "
                           f"{rewriter.changes}; decide whether to match before changing anything")
    if debug and not said and _looks(op) != before:
        raise RewriteError(f"pattern {pattern.name}: expected no change, since it returned False, got another "
                           f"{op.name()}; return True after a change, and tell the rewriter of it with "
                           "rewriter.modified(op)")
    return bool(said)


def _looks(op: Operation) -> tuple:
    """What a pattern may have changed of the operation that it is asked about, behind the rewriter's back."""
    return op.parent, op.prev, op.next, tuple(op.operands_source()), tuple(op.attributes.items()), tuple(
        r.type() for r in op.results())


def _verified(program: Program, pattern: RewritePattern, at: str) -> None:
    try:
        verify(program)
    except VerifyError as error:
        error.add_note(f"after a rewrite by pattern {pattern.name} at {at}")
        raise


class Last:
    """The last rewrites before the limit, and what they have made of the program."""

    def __init__(self, program: Program, limit: int):
        self.program, self.limit = program, limit
        self.rules: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)
        self.texts: list[str] = []

    def add(self, rule: str, at: str, rewrites: int) -> None:
        """Raises: RewriteError beyond the limit."""
        self.rules.append((rule, at))
        if rewrites > self.limit - REMEMBERED:          # printing a program takes long: only at the end
            self.texts.append(self.program.to_string("exact"))
        if rewrites > self.limit:
            raise RewriteError(self._endless(rewrites))

    def _endless(self, rewrites: int) -> str:
        counts = ", ".join(f"{name} ({n} times)" for name, n in Counter(name for name, _ in self.rules).most_common())
        name, op = self.rules[-1]
        return (f"apply_patterns_greedily: expected rules that come to an end, got {rewrites} rewrites, more than "
                f"max_rewrites={self.limit}. Of the last {len(self.rules)}: {counts}; the very last by {name} at {op}. "
                f"{self._circle()}A rule must lead to something that no rule leads back from; if this one does, give a "
                "larger max_rewrites")

    def _circle(self) -> str:
        """How many rewrites lead back to the same program, if they do."""
        now = self.texts[-1]
        back = next((n for n, text in enumerate(reversed(self.texts[:-1]), 1) if text == now), None)
        if back is None:
            return ""
        if back == 1:
            return f"That one left the program as it was: {self.rules[-1][0]} reports a change that is none. "
        return f"After every {back} of them the program is what it was. "
