"""Draws the pictures of this chapter:  python chapters/03_passes/img/draw.py

before_after.svg    a program before the passes and after, from the programs themselves
match.svg           a pattern and the operations that it stands for
safe_place.svg      where the result of a rule may go
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import minipd as paddle
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.passes import PassManager, create_pass
from minipd.static import InputSpec

INK, LINE, PAPER = "#1f2933", "#7b8794", "#ffffff"
PLAIN, CONSTANT, TWIN, DEAD, GOOD = "#f1f5f9", "#dbeafe", "#fff3c4", "#fde2e4", "#dcfce7"
ROW, WIDTH = 30, 226


def text(x: float, y: float, words: str, size: int = 13, anchor: str = "start", style: str = "") -> str:
    """One line of text."""
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{INK}" {style}>'
            f'{escape(words)}</text>')


def row(x: float, y: float, words: str, fill: str, note: str = "", width: float = WIDTH) -> str:
    """A statement in a box, with a note at its right."""
    box = (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{ROW - 6}" rx="5" fill="{fill}" stroke="{LINE}"/>'
           + text(x + 10, y + 16, words, style='font-family="monospace"'))
    return box + (text(x + width + 10, y + 16, note, 12, style='font-style="italic"') if note else "")


def arrow(x1: float, y1: float, x2: float, y2: float, dashed: bool = False) -> str:
    """A line with a head at its end."""
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return (f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{LINE}" stroke-width="1.5"{dash} '
            'marker-end="url(#head)"/>')


def picture(width: float, height: float, title: str, parts: list[str]) -> str:
    """The parts as an SVG file."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'font-family="Helvetica, Arial, sans-serif" role="img"><title>{escape(title)}</title>\n'
            f'<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
            f'<path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker></defs>\n'
            f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>\n' + "\n".join(parts) + "\n</svg>\n")


# ------------------------------------------------------------------------------------------------- before, after
def wasteful() -> Program:
    """The program of the lesson's first section."""
    def f(x):
        half = paddle.full([2], 3.0) * 0.5
        unused = x.tanh()  # noqa: F841
        return x.exp() * half + x.exp()
    return trace(f, InputSpec([2], "float32", "x")).program


def lines(program: Program) -> list[str]:
    """Each operation as `%3 = multiply(%1, %2)`."""
    number: dict = {}
    shown = []
    for op in program.global_block():
        for result in op.results():
            number[result] = f"%{len(number)}"
        left = ", ".join(number[r] for r in op.results())
        operands = ", ".join(number[v] for v in op.operands_source())
        value = f" {op.attributes['value'].value}" if "value" in op.attributes else ""
        name = op.name().partition(".")[2]
        shown.append(f"{left} = {name}({operands}){value}" if left else f"{name}({operands})")
    return shown


def before_after() -> str:
    """The program as it was traced, with what is wasted marked, and what the three passes leave."""
    program = wasteful()
    before = lines(program)
    folded, twins, dead = (create_pass(f"{name}_pass") for name in (
        "constant_folding", "common_subexpression_elimination", "dead_code_elimination"))
    manager = PassManager()
    for each in (folded, twins, dead):
        manager.add_pass(each)
    manager.run(program)
    after = lines(program)
    notes = {1: (CONSTANT, "constant: always 1.5"), 2: (CONSTANT, ""), 3: (CONSTANT, ""),
             4: (DEAD, "dead: nobody reads it"), 7: (TWIN, "the same as %5")}
    parts = [text(20, 26, "as traced", 15, style='font-weight="600"'),
             text(460, 26, "after three passes", 15, style='font-weight="600"')]
    for i, line in enumerate(before):
        fill, note = notes.get(i, (PLAIN, ""))
        parts.append(row(20, 40 + i * ROW, line, fill, note))
    for i, line in enumerate(after):
        parts.append(row(460, 40 + i * ROW, line, GOOD if i in (1, 2) else PLAIN))
    return picture(710, 40 + len(before) * ROW + 10, "A program before the passes and after", parts)


# --------------------------------------------------------------------------------------------------------- match
def match() -> str:
    """The pattern of x * sigmoid(x) on a program in which it stands, and on one in which it does not."""
    parts = [text(20, 26, "pattern", 15, style='font-weight="600"'),
             text(250, 26, "y = a * sigmoid(a): a match", 15, style='font-weight="600"'),
             text(530, 26, "y = a * sigmoid(b): none", 15, style='font-weight="600"')]
    for x, names, last in ((20, ("x", "sigmoid", "multiply"), PLAIN), (250, ("a", "sigmoid", "multiply"), GOOD),
                           (530, ("a", "sigmoid", "multiply"), DEAD)):
        top, middle, low = 50, 120, 190
        parts.append(row(x, top, names[0], CONSTANT, width=60))
        if x == 530:
            parts.append(row(x + 110, top, "b", CONSTANT, width=60))
            parts.append(arrow(x + 140, top + 24, x + 140, middle - 2))
        else:
            parts.append(arrow(x + 50, top + 24, x + 120, middle - 2))
        parts += [row(x + 90, middle, names[1], PLAIN, width=96), row(x + 40, low, names[2], last, width=106),
                  arrow(x + 30, top + 24, x + 60, low - 2), arrow(x + 140, middle + 24, x + 110, low - 2)]
    parts += [text(250, 246, "x = a along both ways: the name agrees", 12, style='font-style="italic"'),
              text(530, 246, "x = a on the left, then b: it does not", 12, style='font-style="italic"'),
              text(20, 246, "matching starts at the bottom", 12, style='font-style="italic"')]
    return picture(790, 262, "A pattern, a match, and no match", parts)


# ---------------------------------------------------------------------------------------------------- safe place
def safe_place() -> str:
    """The three programs of the lesson: a place before the first output, one behind an input, and none."""
    cases = [
        ("before the reader", ["x = data", "p = exp(x)", "u = abs(p)", "q = tanh(x)"], {1, 3}, 1, "u reads p"),
        ("behind the input", ["x = data", "p = exp(x)", "y = abs(x)", "t = tanh(x)", "q = t + y"], {1, 3, 4}, 3,
         "the result reads y"),
        ("no place", ["x = data", "p = exp(x)", "u = square(p)", "y = abs(x)", "t = tanh(x)", "q = t + y"], {1, 4, 5},
         None, "behind y, and before u: nowhere"),
    ]
    parts = []
    for column, (title, statements, matched, place, note) in enumerate(cases):
        x, y = 20 + column * 260, 46
        parts.append(text(x, 26, title, 15, style='font-weight="600"'))
        for i, line in enumerate(statements):
            if i == place:
                parts.append(f'<line x1="{x}" y1="{y + 6:g}" x2="{x + 200}" y2="{y + 6:g}" stroke="#15803d" '
                             'stroke-width="3"/>' + text(x + 206, y + 10, "here", 12))
                y += 16
            parts.append(row(x, y, line, TWIN if i in matched else PLAIN, width=200))
            y += ROW
        parts.append(text(x, y + 14, note, 12, style='font-style="italic"'))
    return picture(790, 46 + 6 * ROW + 28, "Where the result of a rule may go; yellow is what it replaces", parts)


PICTURES = {"before_after.svg": before_after, "match.svg": match, "safe_place.svg": safe_place}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        (Path(__file__).parent / name).write_text(draw(), encoding="utf-8")
