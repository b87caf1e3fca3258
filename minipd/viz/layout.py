"""A plain picture of a graph, for machines without Graphviz: rows of boxes, each below everything that it reads.

No crossings are avoided; what matters is there: order, clusters by colour of their frame, edges.
"""

from __future__ import annotations

from html import escape

from minipd.viz.graph import COLOURS, Cluster, Graph, Node

__all__ = ["svg"]

CHARACTER, LINE, MARGIN, GAP, STEP = 6.6, 14, 8, 24, 46     # pixels


def svg(graph: Graph) -> str:
    """SVG text.

    >>> from minipd.viz.graph import Edge
    >>> text = svg(Graph("t", Cluster("", "", nodes=[Node("a", "x"), Node("b", "exp")]), [Edge("a", "b")]))
    >>> text.count("<rect"), text.count("<line"), text.count("<text")
    (2, 1, 2)
    """
    nodes = {n.name: n for n in graph.root.all_nodes()}
    boxes = _boxes(nodes, _rows(nodes, graph))
    parts = [_frame(c, boxes) for c in _clusters(graph.root)]
    for edge in graph.edges:
        (x1, y1, w1, h1), (x2, y2, w2, _) = boxes[edge.source], boxes[edge.target]
        parts.append(f'<line x1="{x1 + w1 / 2:.0f}" y1="{y1 + h1:.0f}" x2="{x2 + w2 / 2:.0f}" y2="{y2:.0f}" '
                     f'stroke="#6b7280" marker-end="url(#tip)"><title>{escape(edge.label)}</title></line>')
    parts += [_box(node, boxes[name]) for name, node in nodes.items()]
    width = max((x + w for x, _, w, _ in boxes.values()), default=0) + GAP
    height = max((y + h for _, y, _, h in boxes.values()), default=0) + GAP
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            'font-family="Helvetica, sans-serif" font-size="11">\n'
            f'<title>{escape(graph.title)}</title>\n'
            '<defs><marker id="tip" markerWidth="8" markerHeight="6" refX="8" refY="3" orient="auto">'
            '<path d="M0,0 L8,3 L0,6" fill="#6b7280"/></marker></defs>\n' + "\n".join(parts) + "\n</svg>\n")


def _rows(nodes: dict[str, Node], graph: Graph) -> dict[str, int]:
    """Node -> its row: one below the lowest of those that it reads."""
    place = {name: i for i, name in enumerate(nodes)}
    rows = dict.fromkeys(nodes, 0)
    for _ in range(len(nodes)):
        changed = False
        for edge in sorted(graph.edges, key=lambda e: place[e.source]):
            if rows[edge.target] <= rows[edge.source] and edge.source != edge.target:
                rows[edge.target], changed = rows[edge.source] + 1, True
        if not changed:
            break
    return rows


def _boxes(nodes: dict[str, Node], rows: dict[str, int]) -> dict[str, tuple[float, float, float, float]]:
    boxes: dict[str, tuple[float, float, float, float]] = {}
    right: dict[int, float] = {}
    tall = max((len(n.label.splitlines()) for n in nodes.values()), default=1) * LINE + 2 * MARGIN
    for name, node in nodes.items():
        row, lines = rows[name], node.label.splitlines() or [""]
        x = right.get(row, float(GAP))
        width = max(map(len, lines)) * CHARACTER + 2 * MARGIN
        boxes[name] = (x, GAP + row * (tall + STEP), width, len(lines) * LINE + 2 * MARGIN)
        right[row] = x + width + GAP
    return boxes


def _box(node: Node, box: tuple[float, float, float, float]) -> str:
    x, y, w, h = box
    lines = "".join(f'<tspan x="{x + MARGIN:.0f}" dy="{LINE if i else 0}">{escape(line)}</tspan>'
                    for i, line in enumerate(node.label.splitlines()))
    return (f'<rect x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="5" fill="{COLOURS[node.kind]}" '
            f'stroke="#374151"/><text x="{x + MARGIN:.0f}" y="{y + MARGIN + 10:.0f}">{lines}</text>')


def _clusters(cluster: Cluster) -> list[Cluster]:
    return [c for inner in cluster.clusters for c in (inner, *_clusters(inner))]


def _frame(cluster: Cluster, boxes: dict[str, tuple[float, float, float, float]]) -> str:
    """One frame around each box of the cluster: the boxes of several clusters may stand among each other."""
    frames = []
    for node in cluster.all_nodes():
        x, y, w, h = boxes[node.name]
        frames.append(f'<rect x="{x - 5:.0f}" y="{y - 5:.0f}" width="{w + 10:.0f}" height="{h + 10:.0f}" rx="8" '
                      f'fill="{COLOURS[cluster.kind]}" stroke="#9ca3af"><title>{escape(cluster.label)}</title></rect>')
    return "\n".join(frames)
