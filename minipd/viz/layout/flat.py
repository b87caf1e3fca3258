"""One level of a picture: boxes and wires in, coordinates and routes out.

A wire that passes rows gets a narrow place of its own in each, so that it runs beside boxes, never through them.  One
that would pass more than `far` rows is not drawn: where it ends there is a tag instead, which says what comes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from minipd.viz.layout.across import centres, straighten
from minipd.viz.layout.order import ordered
from minipd.viz.layout.rows import rows_of

__all__ = ["Box", "Flat", "Wire", "flat"]

BESIDE, BETWEEN, STEEP = 16, 28, 0.05       # pixels between boxes, between rows; more where wires run far across
TAG_HEIGHT = 12
Point = tuple[float, float]


@dataclass
class Box:
    """border: "top" or "bottom" for the places where wires enter and leave the level."""

    width: float
    height: float
    border: str = ""


@dataclass
class Wire:
    """From box to box.  leaves, enters: where on them, from their left edge; None: wherever suits.  tag: how wide the
    tag would be that stands for it."""

    source: int
    target: int
    leaves: float | None = None
    enters: float | None = None
    tag: float = 24


@dataclass
class Flat:
    """Left upper corners of the boxes; for each wire its points and for each tag (by wire) its left upper corner."""

    corners: list[Point]
    routes: list[list[Point]]
    tags: dict[int, Point] = field(default_factory=dict)
    width: float = 0
    height: float = 0


def flat(boxes: Sequence[Box], wires: Sequence[Wire], far: int) -> Flat:
    """Lay out one level.

    >>> got = flat([Box(40, 20), Box(40, 20)], [Wire(0, 1)], far=9)
    >>> got.corners, got.routes
    ([(0.0, 0.0), (0.0, 48.0)], [[(20.0, 20.0), (20.0, 48.0)]])
    """
    if not boxes:
        return Flat([], [])
    return _Level(boxes, wires, far).laid_out()


class _Level:
    def __init__(self, boxes: Sequence[Box], wires: Sequence[Wire], far: int):
        self.wires, self.count = wires, len(boxes)
        self.top = [i for i, b in enumerate(boxes) if b.border == "top"]
        self.bottom = [i for i, b in enumerate(boxes) if b.border == "bottom"]
        self.row = rows_of(len(boxes), [(w.source, w.target) for w in wires], self.top, self.bottom)
        self.widths, self.heights = [b.width for b in boxes], [b.height for b in boxes]
        self.tags: dict[int, int] = {}                          # wire -> its tag's box
        self.chains = [self._chain(i, w, far) for i, w in enumerate(wires)]

    def _add(self, row: int, width: float, height: float) -> int:
        self.row.append(row)
        self.widths.append(width)
        self.heights.append(height)
        return len(self.row) - 1

    def _chain(self, number: int, wire: Wire, far: int) -> list[int]:
        """The boxes that a wire connects, row by row."""
        a, b = wire.source, wire.target
        start, end = self.row[a], self.row[b]
        if end <= start:
            return [a, b]                                       # closes a circle: straight back
        if end - start > far and a not in self.top and b not in self.bottom:
            self.tags[number] = self._add(end - 1, wire.tag, TAG_HEIGHT)
            return [self.tags[number], b]
        return [a, *(self._add(row, 2, 0) for row in range(start + 1, end)), b]

    def laid_out(self) -> Flat:
        rows: list[list[int]] = [[] for _ in range(max(self.row) + 1)]
        for box, row in enumerate(self.row):
            rows[row].append(box)
        up: list[list[int]] = [[] for _ in self.row]
        down: list[list[int]] = [[] for _ in self.row]
        for chain in self.chains:
            for a, b in zip(chain, chain[1:], strict=False):
                if self.row[a] < self.row[b]:
                    down[a].append(b)
                    up[b].append(a)
        rows = ordered(rows, up, down)
        x = centres(rows, self.widths, self._links(), BESIDE)
        straighten(x, rows, self.widths, [chain for chain in self.chains if len(chain) > 3], BESIDE)
        left = min((x[b] - self.widths[b] / 2 for b in range(len(x))), default=0)
        self.x = [at - left for at in x]
        begins, self.ends = self._down(rows)
        # Beside tall boxes, those that read nothing stand low, near their readers.
        self.y = [self.ends[row] - self.heights[box] if box < self.count and not up[box] else begins[row]
                  for box, row in enumerate(self.row)]
        tags = {i: (self.x[t] - self.widths[t] / 2, self.y[t]) for i, t in self.tags.items()}
        return Flat([(self.x[b] - self.widths[b] / 2, self.y[b]) for b in range(self.count)],
                    self._routes(), tags, max(at + w / 2 for at, w in zip(self.x, self.widths, strict=True)),
                    self.ends[-1])

    def _links(self) -> list[tuple[int, int, float, float, float]]:
        links: list[tuple[int, int, float, float, float]] = []
        for chain, wire in zip(self.chains, self.wires, strict=True):
            for a, b in zip(chain, chain[1:], strict=False):
                leaves = wire.leaves - self.widths[a] / 2 if a == wire.source and wire.leaves is not None else 0
                enters = wire.enters - self.widths[b] / 2 if b == wire.target and wire.enters is not None else 0
                bends = (a >= self.count) + (b >= self.count)   # what is only passing should run straight
                if self.row[a] < self.row[b]:
                    links.append((a, b, leaves, enters, (1, 2, 8)[bends]))
        return links

    def _down(self, rows: list[list[int]]) -> tuple[list[float], list[float]]:
        """Where each row begins and ends."""
        spread = [0.0] * len(rows)
        for chain in self.chains:
            for a, b in zip(chain, chain[1:], strict=False):
                spread[self.row[b]] = max(spread[self.row[b]], abs(self.x[a] - self.x[b]))
        begins, ends, at = [], [], 0.0
        for i, row in enumerate(rows):
            at += (BETWEEN + min(STEEP * spread[i], BETWEEN)) if i else 0
            begins.append(at)
            at += max((self.heights[b] for b in row), default=0)
            ends.append(at)
        return begins, ends

    def _routes(self) -> list[list[Point]]:
        leaves, enters = self._fan(True), self._fan(False)
        routes = []
        for i, chain in enumerate(self.chains):
            a, b = chain[0], chain[-1]
            points = [(leaves[i], self.y[a] + self.heights[a])]
            if self.row[a] < self.row[b]:
                points.append((leaves[i], self.ends[self.row[a]]))
                for passing in chain[1:-1]:
                    points += [(self.x[passing], self.y[passing]), (self.x[passing], self.ends[self.row[passing]])]
            points.append((enters[i], self.y[b]))
            routes.append([p for j, p in enumerate(points) if not j or p != points[j - 1]])
        return routes

    def _fan(self, leaving: bool) -> list[float]:
        """Where each wire leaves (or enters) its box: side by side, in the order of where they come from."""
        at: list[float] = [0.0] * len(self.chains)
        groups: dict[int, list[int]] = {}
        for i, (chain, wire) in enumerate(zip(self.chains, self.wires, strict=True)):
            box, fixed = (chain[0], wire.leaves) if leaving else (chain[-1], wire.enters)
            if fixed is not None and box < self.count:
                at[i] = self.x[box] - self.widths[box] / 2 + fixed
            else:
                groups.setdefault(box, []).append(i)
        for box, members in groups.items():
            members.sort(key=lambda i: self.x[self.chains[i][1 if leaving else -2]])
            if leaving:         # from one place: it is one value that goes several ways
                step = 0.0
            else:
                step = min(14.0, self.widths[box] / (len(members) + 1))
            for k, i in enumerate(members):
                at[i] = self.x[box] + (k - (len(members) - 1) / 2) * step
        return at
