"""Curves over steps, and bars: plain charts on the same sheet as the other pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from minipd.viz.style import text_width
from minipd.viz.svg import Point, Sheet, Svg

__all__ = ["Line", "bars", "curves", "round_step", "time_axis"]

WIDTH, HEIGHT = 760.0, 280.0        # pixels of the plot
MOST = 1200                         # points of a drawn line
BAR, BESIDE = 20, 10


class Line(NamedTuple):
    """Points (x, y) under a name.  kind: a colour of lines; dots: with a mark at each point."""

    name: str
    points: Sequence[Point]
    kind: str = "first"
    dots: bool = False


def curves(lines: Sequence[Line], levels: Mapping[str, float], x_name: str, y_name: str, title: str) -> Svg:
    """Lines over a common x, with horizontal levels by name to compare with.  Points that are not finite are left out.

    Raises: ValueError if no line has a point.

    >>> curves([Line("loss", [(1, 6.9), (2, 6.1)])], {"unigram": 5.2}, "step", "nats", "loss curve")
    <Svg 'loss curve', ...>
    """
    lines = [line._replace(points=[p for p in line.points if math.isfinite(p[1])]) for line in lines]
    known = [p for line in lines for p in line.points]
    if not known:
        raise ValueError(f"{title}: expected points to draw, got none that is finite")
    axes = _Axes([x for x, _ in known], [y for _, y in known] + list(levels.values()))
    sheet = Sheet(title)
    axes.draw(sheet, x_name, y_name)
    for (name, value), y in zip(levels.items(), _spread([axes.y(v) for v in levels.values()]), strict=True):
        sheet.line([(0, axes.y(value)), (WIDTH, axes.y(value))], "wire dash")
        sheet.text(WIDTH + 8, y + 4, f"{name} {value:.2f}", "dim", 11)
    at = 4.0
    for line in lines:
        if not line.points:
            continue
        _curve(sheet, line, axes)
        sheet.line([(at, -14), (at + 18, -14)], f"{line.kind} thick")
        sheet.text(at + 24, -10, line.name, "dim", 11)
        at += 40 + text_width(line.name, 11)
    return sheet.done()


class _Axes:
    def __init__(self, xs: Sequence[float], ys: Sequence[float]):
        self.x0, self.x1 = min(xs), max(max(xs), min(xs) + 1)
        low, high = min(ys), max(max(ys), min(ys) + 1e-3)
        self.y_step = round_step(high - low, 8)
        self.y0, self.y1 = math.floor(low / self.y_step) * self.y_step, math.ceil(high / self.y_step) * self.y_step

    def x(self, x: float) -> float:
        return (x - self.x0) / (self.x1 - self.x0) * WIDTH

    def y(self, y: float) -> float:
        return HEIGHT - (y - self.y0) / (self.y1 - self.y0) * HEIGHT

    def draw(self, sheet: Sheet, x_name: str, y_name: str) -> None:
        sheet.rect(0, 0, WIDTH, HEIGHT, "card", radius=2)
        for i in range(round((self.y1 - self.y0) / self.y_step) + 1):
            value = self.y0 + i * self.y_step
            sheet.line([(0, self.y(value)), (WIDTH, self.y(value))], "wire ghost")
            sheet.text(-8, self.y(value) + 4, f"{round(value, 10):g}", "end dim", 11)
        step = max(round_step(self.x1 - self.x0, 10), 1)
        for i in range(math.ceil(self.x0 / step), math.floor(self.x1 / step) + 1):
            at = self.x(i * step)
            sheet.line([(at, HEIGHT), (at, HEIGHT + 4)], "wire")
            sheet.text(at, HEIGHT + 18, f"{i * step:g}", "mid dim", 11)
        sheet.text(WIDTH / 2, HEIGHT + 36, x_name, "mid dim", 11)
        sheet.text(WIDTH, -10, y_name, "end dim", 11)


def _curve(sheet: Sheet, line: Line, axes: _Axes) -> None:
    every = -(-len(line.points) // MOST)
    points = [*line.points[:-1:every], line.points[-1]]
    drawn = [(axes.x(x), axes.y(y)) for x, y in points]
    if len(drawn) > 1:
        sheet.line(drawn, f"{line.kind} thick" if line.dots else line.kind)
    if line.dots or len(drawn) == 1:
        for (x, y), (at, value) in zip(drawn, points, strict=True):
            sheet.dot(x, y, 3, line.kind, f"{line.name} {value:.4f} at {at:g}")


def _spread(places: Sequence[float], apart: float = 14) -> list[float]:
    """The places, moved so far that none is nearer than `apart` to another; in the same order.

    >>> _spread([10, 12, 50])
    [4.0, 18.0, 50]
    """
    found = dict(enumerate(places))
    order = sorted(found, key=lambda i: found[i])
    for a, b in zip(order, order[1:], strict=False):
        lack = apart - (found[b] - found[a])
        if lack > 0:
            found[a], found[b] = found[a] - lack / 2, found[b] + lack / 2
    return [found[i] for i in range(len(places))]


def bars(values: Mapping[str, float], words: Mapping[str, str], title: str) -> Svg:
    """A bar for each value, with words at its end.

    Raises: ValueError for no values.

    >>> bars({"rank 0": 3.0, "rank 1": 1.5}, {"rank 0": "3 MiB", "rank 1": "1.5 MiB"}, "memory")
    <Svg 'memory', ...>
    """
    if not values:
        raise ValueError(f"{title}: expected values to draw, got none")
    sheet, most = Sheet(title), max(values.values()) or 1
    left = max(text_width(name, 11) for name in values) + 10
    for i, (name, value) in enumerate(values.items()):
        y = i * (BAR + BESIDE)
        sheet.text(left - 10, y + BAR / 2 + 4, name, "end", 11)
        sheet.rect(left, y, WIDTH * 0.7, BAR, "idle", radius=3)
        sheet.rect(left, y, max(WIDTH * 0.7 * value / most, 1), BAR, "forward", f"{name}: {words[name]}", 3)
        sheet.text(left + WIDTH * 0.7 + 10, y + BAR / 2 + 4, words[name], "dim", 11)
    return sheet.done()


def time_axis(sheet: Sheet, x: float, y: float, width: float, whole: float, name: str, step: float) -> None:
    """A line from 0 to `whole` with numbers at every `step`."""
    sheet.line([(x, y), (x + width, y)], "wire")
    for i in range(int(whole / step + 1e-9) + 1):
        at = x + i * step / whole * width
        sheet.line([(at, y), (at, y + 4)], "wire")
        sheet.text(at, y + 17, f"{i * step:g}", "mid dim", 10.5)
    sheet.text(x + width + 26, y + 17, name, "dim", 10.5)


def round_step(whole: float, most: int) -> float:
    """A round distance (1, 2 or 5 times a power of ten) of which at most `most` fit in `whole`.

    >>> round_step(7, 10), round_step(0.83, 10), round_step(1300, 5)
    (1.0, 0.1, 500.0)
    """
    power = 10.0 ** math.floor(math.log10(whole / most))
    return next(s * power for s in (1, 2, 5, 10) if s * power * most >= whole * (1 - 1e-9))
