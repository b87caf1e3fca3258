"""A program before and after, side by side: what stayed on one height, what is gone on the left, what is new on the
right.

Operations are told apart by what they are, not by how they read: one that a pass has left where it was is the same
operation, whatever it reads now.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from minipd.ir.mapping import IrMapping
from minipd.ir.operation import Operation
from minipd.ir.passes import Pass
from minipd.ir.program import Program
from minipd.passes.base import PatternRewritePass
from minipd.passes.manager import PassManager
from minipd.passes.pattern import RewritePattern
from minipd.passes.show import Brief, Line
from minipd.viz.style import text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["Row", "changes", "changes_text", "rows"]

#: what can be done to a program: the name of a pass, a pass, or a rule
Change = str | Pass | RewritePattern

ROW, PAD, GAP = 24, 8, 24          # pixels: from line to line, around words, between the columns
#: sign -> colour, what it means
SIGNS = {"-": ("comm", "gone"), "+": ("output", "new"), "~": ("fusion", "reads something else"),
         ">": ("input", "moved"), " ": ("op", "as it was")}


@dataclass(frozen=True)
class Row:
    """Lines on one height; "" where a side has none.  Signs: see SIGNS."""

    left: str = ""
    left_sign: str = " "
    right: str = ""
    right_sign: str = " "


def changes(program: Program, then: Program | Change | Iterable[Change], title: str = "") -> Svg:
    """The picture of a program before and after.

    then: the program that it has become; or passes, by name or themselves, and rules, which are applied to a copy.

    >>> from minipd.nn.functional import sigmoid
    >>> from minipd.passes.show import program_of
    >>> changes(program_of(lambda x: x * sigmoid(x), "f32[2]"), "silu_fuse_pass")
    <Svg 'before and after silu_fuse_pass', ...>

    Raises: KeyError for the name of no pass.
    """
    found, after = rows(program, then)
    columns = [[text_width(side, 12, mono=True) for row in found if (side := getattr(row, part))]
               for part in ("left", "right")]
    widths = [max([*column, 110]) + 2 * PAD + 14 for column in columns]
    sheet = Sheet(title or f"before and after{_named(then)}")
    for column, (part, shown) in enumerate((("left", program), ("right", after))):
        x = column * (widths[0] + GAP)
        sheet.text(x, 0, f"{('before', 'after')[column]}: {_number(shown)}", "bold", 13)
        for i, row in enumerate(found):
            words, sign = getattr(row, part), getattr(row, f"{part}_sign")
            if words:
                y = 12 + i * ROW
                sheet.rect(x, y, widths[column], ROW - 4, SIGNS[sign][0], SIGNS[sign][1])
                sheet.text(x + PAD, y + 14, f"{sign} {words}", "mono")
    for i, row in enumerate(found):                     # thin lines between what is the same on both sides
        if row.left and row.right and row.left_sign in " ~" and row.right_sign in " ~":
            middle = 12 + i * ROW + (ROW - 4) / 2
            sheet.line([(widths[0], middle), (widths[0] + GAP, middle)])
    return sheet.done()


def changes_text(program: Program, then: Program | Change | Iterable[Change]) -> str:
    """The same as text, in two columns.

    >>> from minipd.nn.functional import sigmoid
    >>> from minipd.passes.show import program_of
    >>> print(changes_text(program_of(lambda x: x * sigmoid(x) + 1.0, "f32[2]"), "silu_fuse_pass"))
      before: 6 operations  |   after: 5 operations
    - a = sigmoid(x)        |
    - b = multiply(x, a)    | + d = silu(x)
    ~ c = add(b, 1.0)       | ~ c = add(d, 1.0)
      return c              |   return c
    """
    found, after = rows(program, then)
    found = [Row(f"before: {_number(program)}", " ", f"after: {_number(after)}", " "), *found]
    width = max(len(row.left) for row in found)
    return "\n".join(f"{row.left_sign} {row.left:<{width}}  | {row.right_sign} {row.right}".rstrip() for row in found)


def rows(program: Program, then: Program | Change | Iterable[Change]) -> tuple[list[Row], Program]:
    """The lines of both, aligned; and the program afterwards."""
    if isinstance(then, Program):
        before, after = Brief(program).lines, Brief(then).lines
        return _aligned(before, after, list(map(str, before)), list(map(str, after))), then
    mapping = IrMapping()
    copy = program.clone(mapping)
    old = dict(zip(copy.walk(), program.walk(), strict=True))
    _apply(copy, then)
    first = Brief(program)
    second = Brief(copy, {mapping.look_up(value): name for value, name in first.names.items()})
    return _aligned(first.lines, second.lines, _keys(first.lines, {}), _keys(second.lines, old)), copy


def _apply(program: Program, then: Change | Iterable[Change]) -> None:
    manager = PassManager(opt_level=4)
    for each in _listed(then):
        manager.add_pass(PatternRewritePass(each.name, [each]) if isinstance(each, RewritePattern) else each)
    manager.run(program)


def _listed(then: Program | Change | Iterable[Change]) -> list[Change]:
    return [then] if isinstance(then, (str, Pass, RewritePattern)) else [] if isinstance(then, Program) else list(then)


def _named(then: Program | Change | Iterable[Change]) -> str:
    names = [each if isinstance(each, str) else each.name for each in _listed(then)]
    return f" {', '.join(names)}" if len(names) in (1, 2) else f" {len(names)} passes" if names else ""


def _number(program: Program) -> str:
    return f"{program.num_ops()} operation{'s' * (program.num_ops() != 1)}"


def _keys(lines: Sequence[Line], old: dict[Operation, Operation]) -> list[Hashable]:
    """What a line is: the operation that it was before and the how manieth line of it, or, of what a block gives, the
    how manieth such line."""
    seen: dict[Operation | None, int] = {}
    keys: list[Hashable] = []
    for line in lines:
        op = None if line.op is None else old.get(line.op, line.op)
        seen[op] = seen.get(op, 0) + 1
        keys.append((op, seen[op]))
    return keys


def _aligned(before: Sequence[Line], after: Sequence[Line], left: Sequence[Hashable], right: Sequence[Hashable],
             ) -> list[Row]:
    """left, right: what the lines are."""
    found: list[Row] = []
    both = set(left) & set(right)
    for tag, i, i_end, j, j_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            for a, b in zip(map(str, before[i:i_end]), map(str, after[j:j_end]), strict=True):
                sign = " " if a == b else "~"
                found.append(Row(a, sign, b, sign))
            continue
        gone = [(str(before[n]), ">" if left[n] in both else "-") for n in range(i, i_end)]
        new = [(str(after[n]), ">" if right[n] in both else "+") for n in range(j, j_end)]
        height = max(len(gone), len(new))               # what is new stands where the last of what is gone stood
        empty = [("", " ")]
        pairs = zip(empty * (height - len(gone)) + gone, empty * (height - len(new)) + new, strict=True)
        found += [Row(*one, *other) for one, other in pairs]
    return found
