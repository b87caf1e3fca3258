"""Draws the pictures of this chapter.

    python chapters/02_programs/img/draw.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

INK, LINE, PAPER, WARN = "#1f2933", "#7b8794", "#ffffff", "#c2410c"
BLUE, GREEN, YELLOW, RED, GREY = "#dbeafe", "#dcfce7", "#fff3c4", "#fde2e4", "#f1f5f9"


def text(x: float, y: float, words: str, size: int = 13, anchor: str = "middle", style: str = "",
         fill: str = INK) -> str:
    """One line of text."""
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" {style}>'
            f'{escape(words)}</text>')


def code(x: float, y: float, words: str, size: int = 12, fill: str = INK) -> str:
    """A line of code, from the left."""
    return text(x, y, words, size, "start", 'font-family="monospace"', fill)


def rect(x: float, y: float, w: float, h: float, fill: str, stroke: str = LINE) -> str:
    """A box; (x, y) is its upper left corner."""
    return (f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="6" fill="{fill}" stroke="{stroke}"/>')


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str = LINE, dashed: bool = False) -> str:
    """A straight arrow."""
    head = "warn" if colour == WARN else "head"
    dash = 'stroke-dasharray="5 3" ' if dashed else ""
    return (f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="1.5" {dash}'
            f'marker-end="url(#{head})"/>')


def page(width: int, height: int, title: str, parts: list[str]) -> str:
    """A whole picture."""
    marker = "".join(f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                     f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
                     for name, colour in (("head", LINE), ("warn", WARN)))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'font-family="Helvetica, Arial, sans-serif"><title>{escape(title)}</title><defs>{marker}</defs>',
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>', *parts, "</svg>", ""])


def traced() -> str:
    """The same call over two grounds."""
    parts = [
        rect(20, 70, 150, 44, YELLOW), code(52, 97, "y = x * w"),
        arrow(170, 92, 222, 92), rect(224, 70, 150, 44, BLUE), text(299, 97, "dispatch → tape"),
        arrow(374, 82, 430, 52), arrow(374, 102, 430, 148),
        text(500, 22, "ground: kernels", 12), rect(432, 30, 136, 44, BLUE), text(500, 57, "multiply arrays"),
        arrow(568, 52, 622, 52), rect(624, 30, 270, 44, GREEN), code(640, 57, "y.payload = array([2., 4.])"),
        text(500, 118, "ground: a trace", 12), rect(432, 126, 136, 44, BLUE), text(500, 153, "append a line"),
        arrow(568, 148, 622, 148), rect(624, 104, 270, 88, GREEN),
        code(640, 126, "%0 = data x      tensor<2xf32>"), code(640, 144, "%1 = data w      tensor<2xf32>"),
        code(640, 162, "%2 = multiply    tensor<2xf32>"), code(640, 180, "y.payload = the value %2"),
    ]
    return page(915, 205, "One call over two grounds: arrays, or a line of a program", parts)


def regions() -> str:
    """What may be read from where."""
    parts = [
        rect(20, 20, 560, 290, GREY), text(34, 42, "global block", 12, "start"),
        code(40, 66, "%x = data"), code(40, 90, "%c = greater_than(...)"),
        code(40, 114, "%y = if (%c)"),
        rect(60, 126, 230, 110, BLUE), text(74, 146, "if true", 12, "start"),
        code(74, 172, "%a = exp(%x)"), code(74, 196, "yield %a"),
        rect(320, 126, 230, 110, YELLOW), text(334, 146, "if false", 12, "start"),
        code(334, 172, "%b = tanh(%x)"), code(334, 196, "yield %a", fill=WARN), code(404, 196, "✗", 14, WARN),
        code(40, 262, "%z = add(%y, %x)"), code(40, 288, "%w = add(%z, %a)", fill=WARN), code(166, 288, "✗", 14, WARN),
        text(620, 80, "seen from an operation:", 13, "start", 'font-weight="600"'),
        text(620, 104, "what comes before it in its own block,", 13, "start"),
        text(620, 124, "and before the operation that owns", 13, "start"),
        text(620, 144, "the block, in the block around; and so on.", 13, "start"),
        text(620, 180, "not seen:", 13, "start", 'font-weight="600"'),
        text(620, 204, "what is defined in a region that is not", 13, "start"),
        text(620, 224, "around it; what comes later.", 13, "start"),
        text(620, 260, "What leaves a region, it yields.", 13, "start"),
    ]
    return page(890, 330, "What an operation in a region may read", parts)


#: of the program of the lesson: name, first and last position, offset in units of 256 bytes
BUFFERS = [("a = x w, then a + d", 2, 7, 0, BLUE), ("b = a w", 3, 4, 1, GREEN), ("c = b w", 4, 5, 2, YELLOW),
           ("d = c w", 5, 6, 1, RED)]


def arena() -> str:
    """Bytes upwards, positions to the right."""
    left, bottom, step, unit = 70, 210, 105, 50
    parts = [text(20, 24, "bytes of the arena", 12, "start"),
             text(left + 6 * step + 6, bottom + 36, "position", 12, "end")]
    for n in range(4):
        y = bottom - n * unit
        parts.append(f'<line x1="{left}" y1="{y}" x2="{left + 6 * step}" y2="{y}" stroke="#d1d5db"/>')
        parts.append(text(left - 10, y + 4, str(256 * n), 11, "end"))
    for name, start, end, offset, fill in BUFFERS:
        x, y = left + (start - 2) * step, bottom - (offset + 1) * unit
        parts += [rect(x + 3, y + 4, (end - start + 1) * step - 6, unit - 8, fill),
                  text(x + (end - start + 1) * step / 2, y + unit / 2 + 5, name)]
    for n in range(2, 8):
        parts.append(text(left + (n - 1.5) * step, bottom + 18, str(n), 11))
    return page(730, 256, "Four buffers in an arena of three", parts)


PICTURES = {"trace.svg": traced, "regions.svg": regions, "arena.svg": arena}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        Path(__file__).with_name(name).write_text(draw(), encoding="utf-8")
