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


def levels() -> str:
    """One mechanism, two dialects, and the pass between them."""
    parts = [
        rect(20, 20, 330, 132, BLUE), text(34, 42, "dialect pd_op: what", 12, "start", 'font-weight="600"'),
        code(34, 70, "%0 = pd_op.data   tensor<2xf32>"), code(34, 94, "%1 = pd_op.exp    tensor<2xf32>"),
        text(34, 132, "traits: Pure, Elementwise;  interfaces: InferMeta, Vjp", 12, "start"),
        arrow(350, 86, 420, 86), text(385, 76, "a pass", 12), text(385, 106, "lowers", 12),
        rect(424, 20, 400, 132, GREEN), text(438, 42, "dialect kernel: by what code, where", 12, "start",
                                             'font-weight="600"'),
        code(438, 70, "%0 = kernel.data  undefined_tensor<2xf32>"),
        code(438, 94, "%1 = kernel.exp   cpu_tensor<2xf32>"),
        text(438, 132, "attributes: the key of the kernel, CPU, NCHW, float32", 12, "start"),
        rect(20, 176, 804, 58, GREY),
        text(34, 200, "written once, for all dialects:", 12, "start", 'font-weight="600"'),
        text(34, 221, "operations, values and their uses, regions, types that are one object  ·  print and parse  ·  "
                      "clone  ·  save  ·  verify  ·  draw", 12, "start"),
    ]
    return page(844, 250, "Two dialects over one mechanism", parts)


def segments() -> str:
    """Where Python asks for a value, the program so far is compiled and run."""
    rows = [("y = x * 2.0 + 1.0", 60), ("if float(y.sum()) > 3.0:", 102), ("    y = y - 1.0", 144),
            ("return y * y", 186)]
    parts = [text(40, 30, "Python, at every call", 12, "start", 'font-weight="600"'),
             text(330, 30, "noted", 12, "start", 'font-weight="600"'),
             text(590, 30, "compiled once, found by content", 12, "start", 'font-weight="600"')]
    for words, y in rows:
        parts += [rect(20, y - 21, 240, 32, YELLOW), code(34, y, words)]
    parts += [
        rect(310, 39, 190, 74, BLUE), code(324, 60, "multiply, add"), code(324, 102, "sum"),
        rect(310, 123, 190, 74, BLUE), code(324, 144, "subtract"), code(324, 186, "multiply"),
        arrow(260, 55, 308, 55), arrow(260, 97, 308, 97), arrow(260, 139, 308, 139), arrow(260, 181, 308, 181),
        arrow(500, 76, 574, 76), text(537, 67, "float()", 12), rect(576, 50, 226, 52, GREEN),
        text(689, 72, "segment 0: 3 operators"), text(689, 92, "y and its sum become arrays", 12),
        arrow(500, 160, 574, 160), text(537, 151, "the end", 12), rect(576, 134, 226, 52, GREEN),
        text(689, 156, "segment 1: 2 operators"), text(689, 176, "the result", 12),
    ]
    return page(822, 215, "A function that cannot be one program, in two segments", parts)


#: of the lesson's cube at 2: what is pushed, h afterwards; what is popped, the sum G and g afterwards
FORWARD, BACKWARD = [(2, 4), (4, 8)], [(4, 4, 2), (2, 8, 4)]


def loop() -> str:
    """The forward loop pushes, the backward loop pops."""
    parts = [text(110, 30, "forward: h = h * x", 13, "middle", 'font-weight="600"'),
             text(110, 52, "x = 2, h = 2", 12),
             text(385, 30, "the stack", 13, "middle", 'font-weight="600"'),
             text(680, 30, "backward: G += g * popped, g = g * x", 13, "middle", 'font-weight="600"'),
             text(680, 224, "g = 1, G = 0", 12)]
    tops = [64, 140]
    for (pushed, after), top in zip(FORWARD, tops, strict=True):
        parts += [rect(30, top, 160, 56, BLUE), text(110, top + 24, f"h = {pushed} * 2 = {after}"),
                  text(110, top + 44, f"push {pushed}", 12), arrow(190, top + 28, 330, top + 28),
                  rect(332, top + 8, 106, 40, YELLOW), text(385, top + 33, f"h was {pushed}"),
                  arrow(438, top + 28, 568, top + 28)]
    g, total = 1, 0
    for (popped, summed, after), top in zip(BACKWARD, reversed(tops), strict=True):
        parts += [rect(570, top, 220, 56, GREEN), text(680, top + 24, f"pop {popped}:  G = {total} + {g} * {popped} = "
                                                                      f"{summed}"),
                  text(680, top + 44, f"g = {g} * 2 = {after}", 12)]
        g, total = after, summed
    parts += [arrow(110, 120, 110, 138), arrow(680, 140, 680, 122), arrow(680, 212, 680, 198), arrow(680, 64, 680, 58),
              arrow(110, 196, 110, 212), text(110, 228, f"result: {FORWARD[-1][1]}", 12),
              text(680, 52, f"the stack is empty: dx = G + g = {total} + {g} = {total + g}", 12)]
    return page(820, 246, "The gradient of a loop: a stack between two loops", parts)


def streams() -> str:
    """Two streams on the simulated clock."""
    left, second = 110, 240
    parts = [text(left - 14, 75, "main", 13, "end"), text(left - 14, 155, "side", 13, "end"),
             rect(left + 2, 52, second - 4, 40, BLUE), text(left + second / 2, 77, "exp(x)"),
             rect(left + second + 2, 52, second - 4, 40, GREEN), text(left + 1.5 * second, 77, "add"),
             rect(left + 2, 132, second - 4, 40, YELLOW), text(left + second / 2, 157, "tanh(x)"),
             arrow(left + second - 4, 132, left + second + 4, 94, WARN),
             text(left + second + 14, 120, "event 1: recorded behind tanh, waited for before add", 12, "start",
                  fill=WARN)]
    for n in range(3):
        x = left + n * second
        parts += [f'<line x1="{x}" y1="40" x2="{x}" y2="186" stroke="#d1d5db"/>', text(x, 204, f"{n} s", 11)]
    parts.append(text(left, 26, "the data, and event 0 behind it, take no time; without the event, add would read what "
                                "is not there yet", 12, "start"))
    return page(720, 218, "Two streams and an event", parts)


PICTURES = {"trace.svg": traced, "regions.svg": regions, "arena.svg": arena, "levels.svg": levels,
            "segments.svg": segments, "loop.svg": loop, "streams.svg": streams}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        Path(__file__).with_name(name).write_text(draw(), encoding="utf-8")
