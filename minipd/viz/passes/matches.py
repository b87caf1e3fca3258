"""Where rules match, in the picture of the program: each match in a colour of its own, with the rule's names at the
values and attributes that they stand for.

A rule that matches nowhere shows how near it came: what was matched, the operation at which it stopped, and why.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable

from minipd.framework.errors import InputError
from minipd.ir.operation import Operation, walk_inside
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.passes.drr import DrrRule
from minipd.passes.explain import explain, places
from minipd.passes.listing import rules_of
from minipd.passes.matching import Match
from minipd.viz.ir.program import MANY, Mark, part_graph, program_graph, value_names
from minipd.viz.render import draw_graph
from minipd.viz.style import PIECES
from minipd.viz.svg import Svg

__all__ = ["matches", "matches_text"]

Rules = str | DrrRule | Iterable[DrrRule]
WIDE = 90           # characters of the words below the picture


def matches(program: Program, rules: Rules, title: str = "", ops: range | None = None) -> Svg:
    """The picture of a program with all places where rules of `drr` would fire.  If there is none, that of how near
    they came.

    rules: one, several, or the name of a pass: all of its rules.  ops: only this part of the program, as operations
    stand in its text, from 0; by default all of it, and of one with more than 120 what is matched and reads that.

    >>> from minipd.nn.functional import sigmoid
    >>> from minipd.passes.show import program_of
    >>> matches(program_of(lambda a: a * sigmoid(a), "f32[2]"), "silu_fuse_pass")
    <Svg 'matches of Silu', ...>

    Raises: KeyError for the name of no pass; InputError for a pass without such rules.
    """
    listed = _rules(rules)
    marks, words = _found(program, listed)
    names = ", ".join(rule.name for rule in listed) if len(listed) <= 3 else f"{len(listed)} rules"
    title = title or f"matches of {names}"
    if ops is None and len(program.global_block()) > MANY:
        near = _near(program, marks)
        words.append(f"{len(near)} of {len(program.global_block())} operations are shown")
        graph = part_graph(near, value_names(program.global_block()), title, None, marks=marks)
    else:
        graph = program_graph(program, title, ops, marks=marks)
    sheet = draw_graph(graph)
    y = sheet.bottom + 26
    for i, line in enumerate(wrapped for each in words for wrapped in textwrap.wrap(each, WIDE)):
        sheet.text(sheet.left, y + 16 * i, line, "dim")
    return sheet.done(graph.dot())


def matches_text(program: Program, rules: Rules) -> str:
    """What the picture says, as text.

    >>> from minipd.nn.functional import sigmoid
    >>> from minipd.passes.show import program_of
    >>> print(matches_text(program_of(lambda a: a * sigmoid(a), "f32[2]"), "silu_fuse_pass"))
    Silu matches: multiply, sigmoid
    >>> print(matches_text(program_of(lambda a, b: a * sigmoid(b), "f32[2]", "f32[2]"), "silu_fuse_pass"))
    ...                                                                                        # doctest: +ELLIPSIS
    Silu: 1 of 2 operations match. It stops at sigmoid: operand 0: x is result 0 of pd_op.data: ...
    """
    return "\n".join(line for each in _found(program, _rules(rules))[1] for line in textwrap.wrap(each, 120))


def _rules(rules: Rules) -> list[DrrRule]:
    found = list(rules_of(rules)) if isinstance(rules, str) else [rules] if isinstance(rules, DrrRule) else list(rules)
    listed = [rule for rule in found if isinstance(rule, DrrRule)]
    if not listed:
        raise InputError("rules of drr", f"{rules} with none" if found or isinstance(rules, str) else "none",
                         "patterns that are written by hand tell nobody what they look for")
    return listed


def _found(program: Program, rules: list[DrrRule]) -> tuple[dict[Operation | Value, Mark], list[str]]:
    """What is to be marked, and what to be said."""
    marks: dict[Operation | Value, Mark] = {}
    words: Counter[str] = Counter()
    for rule in rules:
        for match in places(rule, program):
            _mark(marks, rule, match, PIECES[words.total() % len(PIECES)])
            words[f"{rule.name} matches: {', '.join(map(_short, match.nodes.values()))}"] += 1
    if words:
        return marks, [f"{said} ({n} times)" if n > 1 else said for said, n in words.items()]
    nearest = max((explain(rule, program) for rule in rules), key=lambda e: (len(e.matched) - e.total, len(e.matched)))
    for op in nearest.matched.values():
        marks[op] = Mark("focus", (nearest.rule,))
    said = f"{nearest.rule}: {len(nearest.matched)} of {nearest.total} operations match"
    if nearest.op is not None:
        marks[nearest.op] = Mark("comm", ("here it stops",))
        said += f". It stops at {_short(nearest.op)}"
    return marks, [f"{said}: " + re.sub(r" \(from [^)]*\)", "", nearest.reason)]


def _near(program: Program, marks: dict[Operation | Value, Mark]) -> list[Operation]:
    """The operations of the outermost block that are marked, or have a marked one inside, and those that read them."""
    seen = {op for op in marks if isinstance(op, Operation)}
    seen |= {user for op in seen for r in op.results() for user in r.all_used_ops()}
    return [op for op in program.global_block() if any(inner in seen for inner in walk_inside(op))]


def _mark(marks: dict[Operation | Value, Mark], rule: DrrRule, match: Match, kind: str) -> None:
    """Mark what a match has bound."""
    said = ", ".join(f"{name}={value}" for name, value in match.attrs.items() if not isinstance(value, Value))
    for i, op in enumerate(match.nodes.values()):
        _add(marks, op, kind, rule.name if i or not said else f"{rule.name}: {said}")
    for name, value in match.tensors().items():
        for each in value if isinstance(value, tuple) else (value,):
            _add(marks, each, "", f"{name} of {rule.name}")


def _add(marks: dict[Operation | Value, Mark], what: Operation | Value, kind: str, word: str) -> None:
    """A place that several matches share has the colour of the first, and the words of all."""
    before = marks.get(what, Mark())
    marks[what] = Mark(before.kind or kind, tuple(dict.fromkeys((*before.words, word))))


def _short(op: Operation) -> str:
    return op.name().partition(".")[2]
