"""Draws the pictures of this chapter.

    python chapters/01_tensors_and_autograd/img/draw.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

INK, LINE, PAPER = "#1f2933", "#7b8794", "#ffffff"
BLUE, GREEN, YELLOW, RED = "#dbeafe", "#dcfce7", "#fff3c4", "#fde2e4"


def text(x: float, y: float, words: str, size: int = 13, fill: str = INK, style: str = "") -> str:
    """One centred line of text."""
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="middle" fill="{fill}" {style}>'
            f'{escape(words)}</text>')


def box(x: float, y: float, w: float, h: float, fill: str, *lines: str, stroke: str = LINE) -> str:
    """A box with lines of text in its middle; (x, y) is its centre."""
    first = y + 4.5 - 8 * (len(lines) - 1)
    return (f'<rect x="{x - w / 2:g}" y="{y - h / 2:g}" width="{w:g}" height="{h:g}" rx="5" fill="{fill}" '
            f'stroke="{stroke}"/>' + "".join(text(x, first + 16 * i, line) for i, line in enumerate(lines)))


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str = LINE, dash: str = "") -> str:
    """A straight arrow."""
    head = "red" if colour != LINE else "head"
    return (f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="1.5" '
            f'{dash and f"stroke-dasharray={chr(34)}{dash}{chr(34)} "}marker-end="url(#{head})"/>')


def page(width: int, height: int, title: str, parts: list[str]) -> str:
    """A whole picture."""
    marker = "".join(f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                     f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{colour}"/></marker>'
                     for name, colour in (("head", LINE), ("red", "#c2410c")))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'font-family="Helvetica, Arial, sans-serif"><title>{escape(title)}</title><defs>{marker}</defs>',
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>', *parts, "</svg>", ""])


# ------------------------------------------------------------------------------------------------------ strides
def reading(x: float, title: str, rows: list[list[int]], strides: str, offset: int, fill: str) -> list[str]:
    """A matrix, and how it reads the line of cells."""
    h = 40 * len(rows)
    return [text(x, 150, title, 14, style='font-weight="600"'),
            cells(x - 20 * len(rows[0]), 162, [[str(n) for n in row] for row in rows], fill),
            text(x, 182 + h, f"strides {strides}, offset {offset}", 12)]


def strides() -> str:
    """One line of six cells, and three tensors that read it."""
    parts = [text(75, 62, "memory", 14, style='font-weight="600"'), cells(225, 37, [[str(n) for n in range(6)]], BLUE),
             text(580, 62, "arrows: where each begins", 12)]
    parts += reading(130, "x: [2, 3]", [[0, 1, 2], [3, 4, 5]], "[3, 1]", 0, GREEN)
    parts += reading(345, "x.T: [3, 2]", [[0, 3], [1, 4], [2, 5]], "[1, 3]", 0, YELLOW)
    parts += reading(560, "x[::-1, 1:]: [2, 2]", [[4, 5], [1, 2]], "[-3, 1]", 4, RED)
    for x, cell in ((130, 0), (345, 0), (560, 4)):      # where each begins
        parts.append(arrow(x, 134, 245 + 40 * cell, 80))
    return page(690, 315, "One memory, three tensors", parts)


# ------------------------------------------------------------------------------------------------- broadcasting
def cells(x: float, y: float, rows: list[list[str]], fill: str, size: int = 40) -> str:
    """A little matrix; (x, y) is its upper left corner."""
    return "".join(box(x + size * (j + 0.5), y + size * (i + 0.5), size, size, fill, word)
                   for i, row in enumerate(rows) for j, word in enumerate(row))


def broadcast() -> str:
    """A column is copied along the rows, and its gradient is summed along them."""
    parts = [
        text(60, 28, "x: [2, 1]"), cells(40, 40, [["1"], ["2"]], BLUE),
        arrow(95, 80, 175, 80), text(135, 70, "copied", 12),
        text(258, 28, "as [2, 3]"), cells(185, 40, [["1", "1", "1"], ["2", "2", "2"]], BLUE),
        text(335, 86, "×", 22),
        text(415, 28, "y: [3], copied twice"), cells(355, 40, [["10", "20", "30"]] * 2, YELLOW),
        text(505, 86, "=", 22),
        text(585, 28, "z: [2, 3]"), cells(525, 40, [["10", "20", "30"], ["20", "40", "60"]], GREEN),
        # and back
        text(585, 163, "g of z"), cells(525, 175, [["1", "1", "1"]] * 2, RED),
        arrow(515, 215, 435, 215), text(475, 205, "× y", 12),
        text(365, 163, "g × y: [2, 3]"), cells(305, 175, [["10", "20", "30"]] * 2, RED),
        arrow(295, 215, 95, 215), text(195, 205, "summed over the copies", 12),
        text(60, 163, "g of x: [2, 1]"), cells(40, 175, [["60"], ["60"]], RED),
    ]
    return page(690, 275, "A broadcast forward, a sum backward", parts)


# ------------------------------------------------------------------------------------------------------- order
PLACES = {"a": (60, 50), "b": (60, 190), "c": (170, 50), "d": (170, 190), "f": (280, 120), "y": (390, 120)}
EDGES = [("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("c", "f"), ("d", "f"), ("c", "y"), ("f", "y"), ("d", "y")]


def graph(dx: float, title: str, labels: dict[str, tuple[str, str]], fills: dict[str, str]) -> list[str]:
    """The graph of the lesson, with a number at every value."""
    parts = [text(dx + 210, 24, title, 14, style='font-weight="600"')]
    for s, t in EDGES:
        (x1, y1), (x2, y2) = PLACES[s], PLACES[t]
        parts.append(arrow(dx + x1 + 30, y1 + 14, dx + x2 - 31, y2 + 14))
    for name, (x, y) in PLACES.items():
        parts.append(box(dx + x, y + 14, 60, 40, fills.get(name, BLUE), *labels[name]))
    return parts


def order() -> str:
    """The same graph visited newest first, and by depth."""
    good = graph(0, "newest first: each rule runs once, on the whole", {
        "a": ("a", "25"), "b": ("b", "19"), "c": ("c", "1 + 6 = 7"), "d": ("d", "1 + 5 = 6"), "f": ("f", "1"),
        "y": ("y", "1")}, {})
    bad = graph(460, "by depth: c's rule runs before f has sent its 6", {
        "a": ("a", "1 + ..."), "b": ("b", "1 + ..."), "c": ("c", "only 1"), "d": ("d", "?"), "f": ("f", "?"),
        "y": ("y", "1")}, {"c": RED, "a": RED, "b": RED})
    (xy, yy), (xc, yc), (xa, ya) = PLACES["y"], PLACES["c"], PLACES["a"]
    bad += [arrow(460 + xy - 34, yy + 2, 460 + xc + 32, yc + 2, "#c2410c", "5 3"),
            arrow(460 + xc - 34, yc + 2, 460 + xa + 32, ya + 2, "#c2410c", "5 3")]
    notes = [text(210, 258, "c = a + b = 5,  d = a b = 6,  f = c d = 30,  y = c + d + f", 12),
             text(670, 258, "dashed: the first way that a search by depth walks", 12)]
    return page(920, 276, "Why backward needs an order", good + bad + notes)


# ---------------------------------------------------------------------------------------------------- Jacobian
def jacobian() -> str:
    """The matrix of derivatives of (x0 x1, x0^2, x1) by (x0, x1) at (1, 2): a row, and a combination of columns."""
    x, y, size = 290, 70, 46
    parts = [text(x + size, 28, "J: dy by dx, at x = [1, 2]", 14, style='font-weight="600"'),
             text(x + size / 2, 60, "x0", 12), text(x + size * 1.5, 60, "x1", 12)]
    for i, (name, row) in enumerate((("y0 = x0 x1", "21"), ("y1 = x0 x0", "20"), ("y2 = x1", "01"))):
        parts.append(text(x - 45, y + size * (i + 0.5) + 5, name, 12))
        parts.append(cells(x, y + size * i, [list(row)], RED if i == 1 else BLUE, size))
    middle = y + 1.5 * size
    parts += [text(95, middle - 24, "backward, u = [0, 1, 0]", 12), arrow(195, middle, 150, middle),
              cells(45, middle - 20, [["2", "0"]], RED), text(85, middle + 40, "u J: a row", 12),
              text(540, y - 10, "forward, v = [1, 10]", 12), arrow(x + 2 * size + 25, middle, 500, middle),
              cells(515, y + 9, [["12"], ["2"], ["10"]], GREEN), text(540, y + 152, "J v: 1 times column 0", 12),
              text(540, y + 168, "plus 10 times column 1", 12)]
    return page(660, 250, "A row by reverse mode, a column by forward mode", parts)


# ------------------------------------------------------------------------------------------------------ columns
def columns() -> str:
    """Four cells as the columns of a matrix of windows, by strides; and back, where windows add up."""
    bold = 'font-weight="600"'
    parts = [
        text(120, 28, "x: [4]", 14, style=bold), cells(40, 60, [["p", "q", "r", "s"]], BLUE),
        arrow(215, 80, 275, 80), text(245, 70, "a view", 12),
        text(350, 28, "windows: [2, 3], strides [1, 1]", 14, style=bold),
        cells(290, 40, [["p", "q", "r"], ["q", "r", "s"]], BLUE),
        text(545, 70, "filter [2] times windows [2, 3]", 12), text(545, 88, "= the convolution [3]", 12),
        text(350, 163, "gradient of the windows", 14, style=bold),
        cells(290, 175, [["1", "2", "3"], ["10", "20", "30"]], RED),
        arrow(275, 215, 215, 215), text(245, 205, "added", 12),
        text(120, 163, "gradient of x", 14, style=bold), cells(40, 195, [["1", "12", "23", "30"]], RED),
        text(120, 254, "12 = 10 + 2,  23 = 20 + 3", 12),
    ]
    return page(690, 275, "Sliding windows are a view; their gradient is a sum", parts)


# ------------------------------------------------------------------------------------------------------ windows
def window() -> str:
    """A 4 x 4 array over a mesh of 2 x 2: the numbers of its elements, and who draws which."""
    fills = [[BLUE, GREEN], [YELLOW, RED]]
    parts = [text(105, 24, "one rank draws all", 14, style='font-weight="600"')]
    for i in range(4):
        for j in range(4):
            parts.append(box(45 + 40 * j, 60 + 40 * i, 40, 40, fills[i // 2][j // 2], str(4 * i + j)))
    parts.append(text(430, 24, "four ranks draw a window each", 14, style='font-weight="600"'))
    for r in range(2):
        for c in range(2):
            x, y = 250 + 200 * c, 40 + 95 * r
            first = [8 * r + 2 * c, 8 * r + 2 * c + 4]
            parts.append(cells(x, y, [[str(n), str(n + 1)] for n in first], fills[r][c], 36))
            parts.append(text(x + 132, y + 26, f"rank {2 * r + c}", 12))
            parts.append(text(x + 132, y + 43, f"starts {first}", 11))
            parts.append(text(x + 132, y + 59, "run 2", 11))
    return page(650, 235, "Element numbers of an array, whole and in windows", parts)


PICTURES = {"strides.svg": strides, "broadcast.svg": broadcast, "order.svg": order, "jacobian.svg": jacobian,
            "window.svg": window, "columns.svg": columns}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        Path(__file__).with_name(name).write_text(draw(), encoding="utf-8")
