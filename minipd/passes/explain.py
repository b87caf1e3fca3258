"""Why a rule does not fire: the partial match that came furthest, and where it stopped.

    print(drr.explain(Silu, program))

Matching is tried everywhere, from every node of the pattern on, by the matcher itself; what is added here are reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import tensor_operands
from minipd.ir.value import Value, describe
from minipd.passes.formula import Attr
from minipd.passes.matching import Match, Source, _agrees, _meets, in_one_block, spread
from minipd.passes.nodes import Input, Node, Output
from minipd.passes.reading import call

__all__ = ["Explanation", "explain", "places"]


@dataclass
class Explanation:
    """What came of a rule in a program.

    fires: how many places there are where the rule would rewrite.  Of the best partial match, if there is none:
    matched: the operations that were matched, by node; total: how many nodes there are; op: the operation at which it
    stopped, if one is to blame; wanted: the name of the operation that the rule looked for; reason: why; line: the
    user's line.
    """

    rule: str
    fires: int = 0
    matched: dict[Node, Operation] = field(default_factory=dict)
    total: int = 0
    op: Operation | None = None
    wanted: str = ""
    reason: str = ""
    line: str = ""

    @property
    def text(self) -> str:
        if self.fires:
            return f"rule {self.rule} fires: it matches at {self.fires} place{'s' * (self.fires > 1)}"
        lines = [f"rule {self.rule} does not fire; the best partial match has {len(self.matched)} of {self.total} "
                 "operations"]
        lines += [f"    {node.name:24} is {op}{_from(op)}" for node, op in self.matched.items()]
        lines.append(f"  it stopped {'' if self.op is None else f'at {self.op}{_from(self.op)}, '}"
                     f"where the rule has {self.wanted}:" if self.wanted else "  and then:")
        return "\n".join([*lines, f"    {self.reason}"])

    def __str__(self) -> str:
        return self.text


@dataclass
class Try:
    """A partial match.  score: how far it came, to be compared."""

    score: tuple[int, int]
    match: Match
    op: Operation | None
    wanted: str
    reason: str


#: of a try with all nodes: how far it came among the conditions
CLOSED, GRADIENTS, CONSTRAINT, PLACE, FIRES = range(5)


def explain(rule: Any, program: Program) -> Explanation:
    """Where in `program`, and why, the best partial match of a rule stopped.

    rule: of `drr`, or of Paddle's classes.
    Raises: TypeError for what is no such rule.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> from minipd.passes.drr import drr, ops
    >>> @drr()
    ... class Silu:
    ...     def source(x):
    ...         return x * ops.sigmoid(x)
    ...     def result(x):
    ...         return ops.silu(x)
    >>> x = Meta((2,), dtypes.float32.np)
    >>> program = trace(lambda a, b: a * (1.0 / ((-b).exp() + 1.0)), x, x).program
    >>> explain(Silu, program).reason
    'operand 1: expected a result of pd_op.sigmoid, got result 0 of pd_op.divide: tensor<2xf32>'
    """
    if not hasattr(type(rule), "sources"):          # (of the rule, it would read it, and hide what that raises)
        raise TypeError(f"explain: expected a rule of drr, got {type(rule).__name__} {rule!r}; a pattern that is "
                        "written by hand tells nobody what it looks for")
    seen = rule.seen(program) if hasattr(rule, "seen") else program
    ops = list(seen.walk())
    best: Try | None = None
    for source in rule.sources:
        fires = 0
        for found in _tries(rule, source, ops):
            if found.score == (len(source.nodes), FIRES):
                fires += 1
            elif best is None or found.score > best.score:
                best = found
        if fires:
            return Explanation(rule.name, fires, total=len(source.nodes))
    for source in rule.sources:                 # from another operation on, more of it may be found
        for start in source.nodes:
            for found in _tries(rule, source.started_at(start), ops) if start is not source.plan[0][0] else ():
                if best is None or found.score > best.score and found.score[1] != FIRES:
                    best = found
    source = rule.sources[0]
    if best is None:
        names = ", ".join(dict.fromkeys(n.name for n in source.nodes))
        return Explanation(rule.name, total=len(source.nodes), wanted=source.outputs[0].node.name,
                           reason=f"the program has none of {names}")
    return Explanation(rule.name, 0, dict(best.match.nodes), len(source.nodes), best.op, best.wanted, best.reason,
                       _line(best.op) or next(filter(None, map(_line, best.match.nodes.values())), ""))


def places(rule: Any, program: Program) -> list[Match]:
    """All matches of a rule of `drr` at which it would rewrite, as the program stands; those of the longest of its
    formulas that has any.  (Two may share operations: then only one is rewritten.)"""
    ops = list(program.walk())
    for source in rule.sources:
        found = [one.match for one in _tries(rule, source, ops) if one.score == (len(source.nodes), FIRES)]
        if found:
            return found
    return []


def _tries(rule: Any, source: Source, ops: list[Operation]) -> Iterator[Try]:
    for op in ops:
        if op.name() == source.plan[0][0].name:
            yield from _from_here(rule, source, Match(words=source.words), 0, op)


def _from_here(rule: Any, source: Source, match: Match, step: int, start: Operation) -> Iterator[Try]:
    """All ends of the search that extends `match`."""
    if step == len(source.plan):
        yield _whole(rule, source, match)
        return
    node, via = source.plan[step]
    candidates = source._candidates(node, via, match, start)
    if not candidates:
        value = match.values.get(via)           # type: ignore[arg-type]
        users = [] if value is None else [u for u in value.all_used_ops() if u not in match.ops]
        others = ", ".join(dict.fromkeys(u.name() for u in users)) or "nobody else"
        reason = f"nothing more of {node.name} is to be found at {describe(value)}, which goes into {others}"
        blamed = users[0] if users else None if value is None else value.get_defining_op()
        yield Try((step, 0), match, blamed, node.name, reason)
    for op in candidates:
        fits = False
        for extended in source._bind(node, op, match):
            fits = True
            yield from _from_here(rule, source, extended, step + 1, start)
        if not fits:
            far, reason = _why(node, op, match)
            yield Try((step, far), match, op, node.name, reason)


def _whole(rule: Any, source: Source, match: Match) -> Try:
    """All nodes are matched; what else is in the way?"""
    total, here = len(source.plan), source.at(match)

    def stopped(stage: int, op: Operation | None, reason: str) -> Try:
        return Try((total, stage), match, op, "", reason)
    if not in_one_block(match):
        return stopped(CLOSED, next(iter(match.ops)), "the operations stand in different blocks; a pattern lies in one")
    own = here.own_input(match)
    if own is not None:
        value = match.values[own]
        return stopped(CLOSED, value.get_defining_op(), f"{own.name} is {describe(value)}, which is matched itself, "
                       "and gone afterwards")
    if not source.keep and not here._is_closed(match):
        outputs = {match.values[o] for o in here.outputs}
        value, user = next((r, u.owner()) for op in match.ops for r in op.results() if r not in outputs
                           for u in r.uses if u.owner() not in match.ops)
        return stopped(CLOSED, user, f"{describe(value)} lies between inputs and outputs and would be gone, but "
                       f"{user}{_from(user)} uses it; @drr(..., keep=True) lets it stay")
    if not here._gradients_agree(match):
        cut = next((op for op in match.nodes.values() if any(r.stop_gradient for r in op.results())
                    and not all(v.stop_gradient for v in tensor_operands(op))), None)
        return stopped(GRADIENTS, cut, "a gradient flows through one part of it and not through another")
    names = rule._names(source, match)
    if rule.constraint is not None and not call(rule.constraint, names):
        said = ", ".join(f"{n}={v.type() if isinstance(v, Value) else v!r}"
                         for n, v in sorted(names.items(), key=lambda pair: source.order(pair[0])) if n != "match")
        return stopped(CONSTRAINT, match.nodes[here.outputs[0].node], f"the constraint refuses {said}")
    if rule.place(here, match) is None:
        return stopped(PLACE, match.nodes[here.outputs[0].node],
                       "there is no place for the result that is behind all inputs and before all users of outputs")
    return stopped(FIRES, None, "")


def _why(node: Node, op: Operation, match: Match) -> tuple[int, str]:
    """How much of an operation fits a node, and what does not."""
    if op.name() != node.name:
        return 0, f"expected {node.name}, got {op.name()}"
    try:
        operands, attrs = node.read(op)
    except ValueError as error:
        return 0, str(error)
    results, wanted = node.results_of(op), spread(node, len(operands))
    if wanted is None:
        return 0, f"expected {len(node.operands)} operands, got {len(operands)}"
    if not node.number_fits(len(results)):
        return 0, f"expected {node.results} results, got {len(results)}"
    orders = [operands, operands[::-1]] if node.commutes else [operands]
    return max((_first_difference(node, op, match.copy(), wanted, order, attrs) for order in orders),
               key=lambda pair: pair[0])


def _first_difference(node: Node, op: Operation, found: Match, wanted: Any, operands: Any, attrs: Any,
                      ) -> tuple[int, str]:
    for i, (p, v) in enumerate(zip(wanted, operands, strict=True)):
        if not _meets(found, p, v):
            return i, f"operand {i}: {_operand(found, p, v)}"
    for name, p in node.attrs.items():
        if not _agrees(found, p, attrs.get(name)):
            want = found.attrs[p.name] if isinstance(p, Attr) else p
            return len(wanted), f"attribute {name}: expected {want!r}, got {attrs.get(name)!r}"
    for i, v in enumerate(node.results_of(op)):
        if not found.value(Output(node, i), v):
            return len(wanted), f"result {i} is not the one that the rest of the match reads"
    return len(wanted), "a list has another length here than elsewhere in the pattern"


def _operand(found: Match, pattern: Any, value: Any) -> str:
    if isinstance(pattern, Input):
        known, got = found.values[pattern], describe(value)
        if describe(known) == got:              # two of a kind
            return f"{pattern!r} is {_which(known)} already, got {_which(value)}"
        return f"{pattern!r} is {describe(known)} already, got {got}"
    if isinstance(pattern, Output):
        op = pattern.node.maker_of(value)
        if op is not None and op.name() == pattern.node.name:
            return f"expected the result of {pattern.node.name} that is matched already, got another one"
        return f"expected a result of {pattern.node.name}, got {describe(value)}"
    if isinstance(pattern, Attr):
        return (f"expected the number {found.attrs[pattern.name]!r}" if pattern.name in found.attrs else
                "expected a constant number") + f", got {describe(value)}"
    return f"expected the number {pattern!r}, got {describe(value)}" if pattern is not None else (
        f"expected no operand, got {describe(value)}")


def _which(value: Value) -> str:
    op = value.get_defining_op()
    number = "" if op is None or op.parent is None else f", operation {op.parent.ops.index(op)} of its block"
    return describe(value) + (number + _from(op) if op is not None else "")


def _line(op: Operation | None) -> str:
    return op.callstack[0] if op is not None and op.callstack else ""


def _from(op: Operation) -> str:
    return f" (from {_line(op)})" if _line(op) else ""
