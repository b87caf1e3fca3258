"""Graphs as pictures."""

from __future__ import annotations

from minipd.viz.graph import Graph, Node
from minipd.viz.layout.nested import Run, place
from minipd.viz.style import text_width
from minipd.viz.svg import Point, Sheet, Svg

__all__ = ["draw_graph", "graph_svg"]

TITLE, DETAIL = 12, 10.5            # sizes of a node's first line and of the others
LINE, MARGIN, WIDE = 14, 7, 52      # pixels, pixels, characters


def graph_svg(graph: Graph) -> Svg:
    """The picture of a graph, and its DOT text as `source`.

    >>> from minipd.viz.graph import Cluster, Edge
    >>> picture = graph_svg(Graph("t", Cluster("", "", nodes=[Node("a", "x"), Node("b", "exp")]), [Edge("a", "b")]))
    >>> picture.svg.count("<rect"), picture.svg.count('class="line'), picture.svg.count("<text")
    (3, 1, 2)
    """
    return draw_graph(graph).done(graph.dot())


def draw_graph(graph: Graph) -> Sheet:
    """A graph on a sheet: frames, then arrows, then boxes."""
    sheet = Sheet(graph.title)
    nodes = {n.name: n for n in graph.root.all_nodes()}
    placed = place(graph, _size, lambda c: text_width(c.label, 11), lambda e: text_width(e.tag or "…", 10, mono=True))
    for cluster, x, y, w, h in placed.frames:
        sheet.rect(x, y, w, h, cluster.kind, radius=8)
    for run in placed.runs:
        _arrow(sheet, run)
    for cluster, x, y, _, _ in placed.frames:
        sheet.text(x + 9, y + 15, cluster.label, f"dim halo on-{cluster.kind}", 11)
    for edge, x, y in placed.tags:
        sheet.text(x, y + 9, edge.tag or "…", "mono dim", 10)
    for name, node in nodes.items():
        _box(sheet, node, *placed.nodes[name])
    return sheet


def _size(node: Node) -> tuple[float, float]:
    lines = _lines(node)
    widest = max(text_width(line, TITLE if not i else DETAIL, mono=bool(i)) for i, line in enumerate(lines))
    return max(widest + 2 * MARGIN, 30), len(lines) * LINE + 2 * MARGIN - 3


def _lines(node: Node) -> list[str]:
    return [line if len(line) <= WIDE else line[:WIDE - 1] + "…" for line in node.label.splitlines() or [""]]


def _box(sheet: Sheet, node: Node, x: float, y: float, w: float, h: float) -> None:
    cut = any(len(line) > WIDE for line in node.label.splitlines())
    sheet.rect(x, y, w, h, node.kind, node.tip or (node.label if cut else ""), 5)
    for i, line in enumerate(_lines(node)):
        at = y + MARGIN + 8 + i * LINE
        sheet.text(x + w / 2, at, line, "mid mono dim" if i else "mid", DETAIL if i else TITLE)


def _arrow(sheet: Sheet, run: Run) -> None:
    points, edge = run.points, run.edge
    path = f"M{_at(points[0])}"
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        if x0 == x1:
            path += f" L{_at((x1, y1))}"
        elif y1 > y0:
            middle = (y0 + y1) / 2
            path += f" C{_at((x0, middle))} {_at((x1, middle))} {_at((x1, y1))}"
        else:                           # back up, beside what is between
            path += f" C{_at((x0, y0 + 40))} {_at((x1, y1 - 40))} {_at((x1, y1))}"
    sheet.path(path, points, edge.kind, edge.label)
    if edge.back and run.first:
        x, y = points[0]
        sheet.head((x, y + 1), (x, y), edge.kind)
    elif run.last and not edge.back:
        x, y = points[-1]
        sheet.head((x, y - 1), (x, y), edge.kind)


def _at(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
