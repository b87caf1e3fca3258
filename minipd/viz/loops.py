"""Drawing loop nests: a box for each loop, inside each other, and the statements in them."""

from __future__ import annotations

from html import escape

from minipd.cinn.compile import function_of, prepare
from minipd.cinn.frontend import build_groups
from minipd.cinn.ir.ast import For, Function, Seq, Stmt
from minipd.cinn.ir.printer import text
from minipd.cinn.lower import CannotLower
from minipd.cinn.schedule import ScheduleError
from minipd.ir.program import Program

__all__ = ["group", "loop_nests", "loops_svg", "loops_text"]

CHARACTER, LINE, MARGIN = 7.2, 16, 10       # pixels
COLOURS = {"parallel": "#dcfce7", "serial": "#f3f4f6", "vector": "#dbeafe"}


def group(program: Program) -> Program:
    """A copy of a program, decomposed and in fusion groups."""
    copy = program.clone()
    prepare(copy)
    build_groups(copy)
    return copy


def loop_nests(program: Program) -> list[Function]:
    """The scheduled functions of a program's fusion groups, equal ones once; groups that stay library kernels have
    none."""
    copy = program.clone()
    prepare(copy)
    found: dict[str, Function] = {}
    for op in build_groups(copy):
        try:
            function = function_of(op)
        except (CannotLower, ScheduleError):
            continue
        found[function.name] = function
    return list(found.values())


def loops_text(functions: list[Function]) -> str:
    """The functions as the loop IR prints them."""
    return "\n".join(text(f) if text(f).endswith("\n") else text(f) + "\n" for f in functions)


def loops_svg(functions: list[Function]) -> str:
    """The functions as nested boxes, one below the other: parallel loops green, serial grey, vector blue."""
    parts: list[str] = []
    y, width = float(MARGIN), 0.0
    for function in functions:
        parts.append(_line(MARGIN, y, f"{function.name}: {' '.join(function.comment)}", bold=True))
        inner, w, h = _draw(function.body, MARGIN, y + LINE + MARGIN)
        parts += inner
        width, y = max(width, w, len(function.name) * CHARACTER), y + LINE + h + 3 * MARGIN
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2 * MARGIN:.0f}" height="{y:.0f}" '
            'font-family="monospace" font-size="12">\n' + "\n".join(parts) + "\n</svg>\n")


def _draw(stmt: Stmt, x: float, y: float) -> tuple[list[str], float, float]:
    """(elements, width, height) of a statement at (x, y)."""
    if isinstance(stmt, Seq):
        parts: list[str] = []
        width = height = 0.0
        for inner in stmt.stmts:
            more, w, h = _draw(inner, x, y + height)
            parts += more
            width, height = max(width, w), height + h
        return parts, width, height
    if isinstance(stmt, For):
        head = f"{stmt.kind} for {stmt.var} in range({text(stmt.extent).strip()})"
        parts, w, h = _draw(stmt.body, x + MARGIN, y + LINE + MARGIN)
        width, height = max(w, len(head) * CHARACTER) + 2 * MARGIN, h + LINE + 2 * MARGIN
        box = (f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6" '
               f'fill="{COLOURS[stmt.kind]}" stroke="#6b7280"/>')
        return [box, _line(x + MARGIN, y + 4, head, bold=True), *parts], width, height + MARGIN
    lines = text(stmt).rstrip("\n").splitlines()
    return ([_line(x, y + i * LINE, line) for i, line in enumerate(lines)],
            max(map(len, lines), default=0) * CHARACTER, len(lines) * LINE)


def _line(x: float, y: float, words: str, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.0f}" y="{y + 12:.0f}"{weight} xml:space="preserve">{escape(words)}</text>'
