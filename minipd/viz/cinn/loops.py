"""Drawing loop nests: a box for each loop, inside each other, and the statements in them."""

from __future__ import annotations

import re
from textwrap import wrap

from minipd.cinn.compile import function_of
from minipd.cinn.ir.ast import For, Function, Seq, Stmt
from minipd.cinn.ir.printer import text
from minipd.cinn.lower import CannotLower
from minipd.cinn.schedule import ScheduleError
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.viz.cinn.groups import grouped, is_group
from minipd.viz.style import text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["loop_nests", "loops", "loops_text"]

SIZE, LINE, MARGIN = 11, 16, 9              # of letters; of lines and around boxes, in pixels
WIDE = 96                                   # characters of a line
COLOURS = {"parallel": "output", "serial": "use", "vector": "input"}


def loops(of: Program | Operation | Function | list[Function], title: str = "loop nests") -> Svg:
    """The picture of loop nests, one below the other: of a program's fusion groups, of one group, or of functions of
    the loop IR.  Parallel loops are green, vector loops blue.

    Raises: ValueError if nothing of it has loops: library kernels have none.
    """
    functions = loop_nests(of)
    if not functions:
        raise ValueError(f"loops: expected something that the compiler makes loops of, got a {type(of).__name__} that "
                         "stays library kernels; see its groups with viz.groups")
    sheet = Sheet(title)
    y = 0.0
    for function in functions:
        for line in wrap(", ".join(function.comment), WIDE, initial_indent="# ", subsequent_indent="# "):
            y = _words(sheet, 0, y, line, "dim")
        head = text(function).splitlines()[bool(function.comment)]
        kept = re.sub(r"(?<!,) |(?<=:,) ", "\u00a0", head)         # lines end only between parameters
        for line in wrap(kept, WIDE, subsequent_indent=" " * 8):
            y = _words(sheet, 0, y, line.replace("\u00a0", " "), "bold")
        y += _draw(sheet, function.body, 0, y + 3)[1] + 3 * MARGIN
    return sheet.done()


def loop_nests(of: Program | Operation | Function | list[Function]) -> list[Function]:
    """The scheduled functions of fusion groups, equal ones once; groups that stay library kernels have none."""
    if isinstance(of, Function):
        return [of]
    if isinstance(of, list):
        return of
    found: dict[str, Function] = {}
    for op in [of] if isinstance(of, Operation) else [o for o in grouped(of).program.walk() if is_group(o)]:
        try:
            function = function_of(op)
        except (CannotLower, ScheduleError):
            continue
        found[function.name] = function
    return list(found.values())


def loops_text(functions: list[Function]) -> str:
    """The functions as the loop IR prints them."""
    return "\n".join(text(f).rstrip("\n") + "\n" for f in functions)


def _draw(sheet: Sheet, stmt: Stmt, x: float, y: float) -> tuple[float, float]:
    """Draw a statement at (x, y); returns its width and height."""
    if isinstance(stmt, Seq):
        width = height = 0.0
        for inner in stmt.stmts:
            w, h = _draw(sheet, inner, x, y + height)
            width, height = max(width, w), height + h
        return width, height
    if isinstance(stmt, For):
        head = text(stmt).splitlines()[0]
        inside = Sheet("")
        w, h = _draw(inside, stmt.body, 0, 0)
        width = max(w, text_width(head, SIZE, mono=True)) + 2 * MARGIN
        height = LINE + 6 + h + MARGIN / 2
        sheet.rect(x, y + 3, width, height, COLOURS.get(stmt.kind, "use"), radius=6)
        _words(sheet, x + MARGIN, y + 7, head, "bold")
        if not inside.empty:
            sheet.place(inside, x + MARGIN + inside.left, y + LINE + 9 + inside.top)
        return width, height + 6
    lines = text(stmt).rstrip("\n").splitlines()
    for i, line in enumerate(lines):
        _words(sheet, x, y + i * LINE, line, "")
    return max((text_width(line, SIZE, mono=True) for line in lines), default=0), len(lines) * LINE


def _words(sheet: Sheet, x: float, y: float, words: str, kind: str) -> float:
    sheet.text(x, y + 12, words, f"mono {kind}".strip(), SIZE)
    return y + LINE
