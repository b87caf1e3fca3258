"""Drawing loop nests: a box for each loop, inside each other, and the statements in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

from minipd.cinn.compile import function_of
from minipd.cinn.ir.ast import For, Function, ScheduleBlock, Seq, Stmt, Var
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.walk import map_expressions, substitute
from minipd.cinn.lower import CannotLower
from minipd.cinn.schedule import ScheduleError
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.viz.cinn.groups import grouped, is_group
from minipd.viz.style import text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["Look", "draw", "loop_nests", "loops", "loops_text", "places"]

SIZE, LINE, MARGIN = 11, 16, 9              # of letters; of lines and around boxes, in pixels
WIDE, NARROW = 96, 48                       # characters of a line; of one among panels
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
        y += draw(sheet, function.body, 0, y + 3)[1] + 3 * MARGIN
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


@dataclass(frozen=True)
class Look:
    """How loops are drawn.  short: heads as `parallel i < 8`.  known: what is nothing new, as `places` gives it; what
    else there is stands out.  None: nothing stands out.
    """

    short: bool = False
    known: frozenset[str] | None = None

    def is_new(self, place: str) -> bool:
        return self.known is not None and place not in self.known


PLAIN = Look()


def draw(sheet: Sheet, stmt: Stmt, x: float, y: float, look: Look = PLAIN,
         inside: str = "") -> tuple[float, float]:
    """Draw a statement at (x, y); returns its width and height.  inside: the heads of the loops around."""
    if isinstance(stmt, Seq):
        width = height = 0.0
        for inner in stmt.stmts:
            w, h = draw(sheet, inner, x, y + height, look, inside)
            width, height = max(width, w), height + h
        return width, height
    if isinstance(stmt, For):
        head = head_of(stmt) if look.short else text(stmt).splitlines()[0]
        place = inside + head_of(stmt) + "; "
        box = Sheet("")
        w, h = draw(box, stmt.body, 0, 0, look, inside + around(stmt))
        width = max(w, text_width(head, SIZE, mono=True)) + 2 * MARGIN
        height = LINE + 6 + h + MARGIN / 2
        sheet.rect(x, y + 3, width, height, "focus" if look.is_new(place) else COLOURS.get(stmt.kind, "use"), radius=6)
        _words(sheet, x + MARGIN, y + 7, head, "bold")
        if not box.empty:
            sheet.place(box, x + MARGIN + box.left, y + LINE + 9 + box.top)
        return width, height + 6
    lines = said(stmt, look.short)
    for i, line in enumerate(lines):
        _words(sheet, x, y + i * LINE, line, "bold" if look.is_new(inside + line) else "")
    return max((text_width(line, SIZE, mono=True) for line in lines), default=0), len(lines) * LINE


def head_of(loop: For) -> str:
    """A loop in few words: `parallel i < 8`."""
    kind = "" if loop.kind == "serial" else f"{loop.kind} "
    return f"{kind}{loop.var} < {text(loop.extent)}"


def around(loop: For) -> str:
    """What a loop is to those inside, whatever its kind."""
    return f"{loop.var} < {text(loop.extent)}; "


def said(stmt: Stmt, short: bool = False) -> list[str]:
    """The lines of a statement without loops.

    A block says what it does with the values of the loops around it; short: it says what it does with its own iter
    vars, and what these are where they are not simply loops.
    """
    if not isinstance(stmt, ScheduleBlock):
        lines = text(stmt).rstrip("\n").splitlines()
        return _broken(lines) if short else lines
    values = {v.name: value for v, value in zip(stmt.iter_vars, stmt.iter_values, strict=True)}
    where = [] if stmt.predicate is None else [f"where {text(stmt.predicate)}:"]
    if short:
        bound = [f"{name} = {text(value)}" for name, value in values.items() if not isinstance(value, Var)]
        return _broken([*where, *bound, *text(stmt.body).rstrip("\n").splitlines()])
    body = map_expressions(lambda e: substitute(e, values), stmt.body)
    return [*where, *text(body).rstrip("\n").splitlines()]


def _broken(lines: list[str]) -> list[str]:
    """Lines that are not longer than a narrow panel."""
    return [part for line in lines for part in wrap(line, NARROW, subsequent_indent="    ", break_long_words=False)]


def places(stmt: Stmt, inside: str = "") -> Iterator[str]:
    """The loops and lines of a statement in short, each with the loops around it: what a picture may point at."""
    if isinstance(stmt, Seq):
        for inner in stmt.stmts:
            yield from places(inner, inside)
    elif isinstance(stmt, For):
        yield inside + head_of(stmt) + "; "
        yield from places(stmt.body, inside + around(stmt))
    else:
        yield from (inside + line for line in said(stmt, True))


def _words(sheet: Sheet, x: float, y: float, words: str, kind: str) -> float:
    sheet.text(x, y + 12, words, f"mono {kind}".strip(), SIZE)
    return y + LINE
