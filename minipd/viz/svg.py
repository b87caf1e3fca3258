"""SVG: a sheet to draw on, and the picture that it becomes.

The sheet remembers how far the drawing reaches, so that nothing is ever cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.viz.style import sheet, text_width

__all__ = ["Sheet", "Svg"]

MARGIN = 12
Point = tuple[float, float]


class Svg:
    """A finished picture.  A notebook shows it; `save` writes it.

    title: what it shows, in a line, for readers who hear it and for search.  source: the same as DOT text, where it is
    a graph.

    >>> picture = Sheet("A box").rect(0, 0, 20, 10, "op").done()
    >>> picture
    <Svg 'A box', ...>
    >>> picture.svg[:31], picture.svg == picture._repr_svg_()
    ('<svg xmlns="http://www.w3.org/2', True)
    """

    def __init__(self, title: str, width: float, height: float, body: str, box: str, source: str = ""):
        self.title, self.width, self.height, self.source = title, width, height, source
        self._body, self._box = body, box

    @property
    def svg(self) -> str:
        """The picture as text, complete in itself."""
        return self.inline(f"<style>{sheet()}</style>\n")

    def inline(self, style: str = "") -> str:
        """The picture as text for a page that has the style sheet already."""
        return (f'<svg xmlns="http://www.w3.org/2000/svg" class="minipd" role="img" width="{self.width:g}" '
                f'height="{self.height:g}" viewBox="{self._box}">\n<title>{escape(self.title)}</title>\n'
                f"{style}{self._body}\n</svg>\n")

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> Path:
        """Write the picture: .svg, or for a graph .dot or .gv too.  Returns the path.

        Raises: InputError for another ending, or a place that cannot be written.
        """
        path = Path(path)
        endings = [".svg", *((".dot", ".gv") if self.source else ())]
        if path.suffix not in endings:
            raise InputError(f"a drawing that ends in {' or '.join(endings)}", str(path), "choose such an ending")
        try:
            write_atomically(path, self.svg if path.suffix == ".svg" else self.source)
        except OSError as error:
            raise InputError("a place to write the drawing to", f"{path} ({reason(error)})", "name another") from None
        return path

    def __repr__(self) -> str:
        return f"<Svg {self.title!r}, {self.width:g} x {self.height:g}>"


class Sheet:
    """What is drawn on.  Coordinates are pixels, y grows downwards; the methods return the sheet.

    `kind` is one or more classes of the style sheet.  tip: shown when the pointer rests there.
    """

    def __init__(self, title: str):
        self.title = title
        self.parts: list[str] = []
        self.left = self.top = self.right = self.bottom = 0.0
        self.empty = True

    def reach(self, x: float, y: float, width: float = 0, height: float = 0) -> None:
        """The drawing goes that far."""
        if self.empty:
            self.left, self.top, self.right, self.bottom, self.empty = x, y, x + width, y + height, False
        self.left, self.top = min(self.left, x), min(self.top, y)
        self.right, self.bottom = max(self.right, x + width), max(self.bottom, y + height)

    def rect(self, x: float, y: float, width: float, height: float, kind: str, tip: str = "",
             radius: float = 4) -> Sheet:
        self.reach(x, y, width, height)
        head = f'<rect class="{kind}" x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" rx="{n(radius)}"'
        self.parts.append(f"{head}><title>{escape(tip)}</title></rect>" if tip else head + "/>")
        return self

    def text(self, x: float, y: float, words: str, kind: str = "", size: float = 12) -> Sheet:
        """One line; y is its baseline.  kind: mono, bold, dim, mid (x is the middle), end (x is the end)."""
        classes = kind.split()
        width = text_width(words, size, "mono" in classes, "bold" in classes)
        start = x - width / 2 if "mid" in classes else x - width if "end" in classes else x
        self.reach(start, y - size * 0.8, width, size)
        style = (f' class="{kind}"' if kind else "") + (f' font-size="{n(size)}"' if size != 12 else "")
        self.parts.append(f'<text{style} x="{n(x)}" y="{n(y)}">{escape(words)}</text>')
        return self

    def dot(self, x: float, y: float, radius: float, kind: str, tip: str = "") -> Sheet:
        """A filled circle; kind: a colour of lines."""
        self.reach(x - radius, y - radius, 2 * radius, 2 * radius)
        head = f'<circle class="solid {kind}" cx="{n(x)}" cy="{n(y)}" r="{n(radius)}"'
        self.parts.append(f"{head}><title>{escape(tip)}</title></circle>" if tip else head + "/>")
        return self

    def line(self, points: Sequence[Point], kind: str = "wire", arrow: bool = False, tip: str = "") -> Sheet:
        """Straight from point to point."""
        self.path("M" + " L".join(f"{n(x)},{n(y)}" for x, y in points), points, kind, tip)
        return self.head(points[-2], points[-1], kind) if arrow else self

    def path(self, path: str, points: Sequence[Point], kind: str = "wire", tip: str = "") -> Sheet:
        """SVG's path; `points` are how far it reaches."""
        for x, y in points:
            self.reach(x, y)
        head = f'<path class="line {kind}" d="{path}"'
        self.parts.append(f"{head}><title>{escape(tip)}</title></path>" if tip else head + "/>")
        return self

    def head(self, before: Point, tip: Point, kind: str = "wire") -> Sheet:
        """The head of an arrow that comes from `before`."""
        (x0, y0), (x1, y1) = before, tip
        length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1e-6)
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        corners = [tip, (x1 - 7 * ux - 3 * uy, y1 - 7 * uy + 3 * ux), (x1 - 7 * ux + 3 * uy, y1 - 7 * uy - 3 * ux)]
        self.parts.append(f'<path class="solid {kind}" d="M{" L".join(f"{n(x)},{n(y)}" for x, y in corners)} Z"/>')
        return self

    def place(self, other: Sheet, x: float, y: float) -> Sheet:
        """Another drawing, its corner at (x, y)."""
        self.reach(x, y, other.right - other.left, other.bottom - other.top)
        dx, dy = x - other.left, y - other.top
        self.parts += [f'<g transform="translate({n(dx)},{n(dy)})">', *other.parts, "</g>"]
        return self

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    def done(self, source: str = "", margin: float = MARGIN) -> Svg:
        """The picture, on a ground of its own: readable in whatever page it stands."""
        x, y = self.left - margin, self.top - margin
        width, height = round(self.width + 2 * margin), round(self.height + 2 * margin)
        box = f"{n(x)} {n(y)} {width} {height}"
        ground = f'<rect class="ground" x="{n(x)}" y="{n(y)}" width="{width}" height="{height}"/>'
        return Svg(self.title, width, height, "\n".join([ground, *self.parts]), box, source)


def n(x: Any) -> str:
    """A coordinate, to a tenth of a pixel."""
    return f"{round(x, 1) + 0.0:g}"         # + 0.0: no minus before a zero
