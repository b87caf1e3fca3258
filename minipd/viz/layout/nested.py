"""Clusters: each is laid out by itself, and is a box of the level around it.

An edge into a cluster is a wire of the level around, which ends at an inlet on the cluster's upper border; from there a
wire of the level inside goes on.  Edges from one node into one cluster share their inlet, and the way there.  Out of
clusters it is the same, with outlets on the lower border.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from minipd.viz.graph import Cluster, Edge, Graph, Node
from minipd.viz.layout.flat import Box, Flat, Point, Wire, flat

__all__ = ["Placed", "Run", "place"]

PAD = 12
HEAD = 24               # room for a cluster's label, where nothing enters
MANY, FAR, NEAR = 80, 24, 6         # levels of more boxes than that draw only short wires


@dataclass
class Run:
    """A drawn piece of an edge.  first, last: whether it begins at the source (an arrow back: or at the tag that stands
    for it), and ends at the target."""

    edge: Edge
    points: list[Point]
    first: bool
    last: bool


@dataclass
class Placed:
    """Everything with its place: (x, y, width, height) of nodes by name and of clusters, pieces of edges, tags."""

    nodes: dict[str, tuple[float, float, float, float]] = field(default_factory=dict)
    frames: list[tuple[Cluster, float, float, float, float]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    tags: list[tuple[Edge, float, float]] = field(default_factory=list)


@dataclass
class _Inside:
    """One level while it is being put together.  Things are nodes' names, id's of clusters, and borders."""

    cluster: Cluster
    things: dict[object, Box] = field(default_factory=dict)
    wires: dict[tuple[object, ...], tuple[Edge, bool, bool]] = field(default_factory=dict)
    order: dict[object, int] = field(default_factory=dict)
    done: Flat | None = None

    def pad(self, border: str) -> float:
        """What is left free at a border, "top" or "bottom": nothing where wires come through it, which leave room."""
        free = not any(box.border == border for box in self.things.values())
        return {"top": HEAD, "bottom": PAD}[border] * free

    def port(self, border: object) -> float:
        """Where an inlet or outlet is, from the frame's left edge."""
        assert self.done is not None
        return self.done.corners[self.order[border]][0] + PAD + 1


def place(graph: Graph, size: Callable[[Node], tuple[float, float]], label: Callable[[Cluster], float],
          tag: Callable[[Edge], float]) -> Placed:
    """Lay out a graph.  size: how large a node is; label: how wide a cluster's label; tag: how wide an edge's tag."""
    return _Nested(graph, size, label, tag).placed()


class _Nested:
    def __init__(self, graph: Graph, size: Callable, label: Callable, tag: Callable):
        self.graph, self.label, self.tag = graph, label, tag
        self.levels: dict[object, _Inside] = {id(c): _Inside(c) for c in (graph.root, *graph.root.all_clusters())}
        self.paths: dict[str, tuple[Cluster, ...]] = {}
        self._enter(graph.root, (), size)
        for edge in graph.edges:
            self._connect(edge)

    def _enter(self, cluster: Cluster, outside: tuple[Cluster, ...], size: Callable) -> None:
        path = (*outside, cluster)
        level = self.levels[id(cluster)]
        for node in cluster.nodes:
            self.paths[node.name] = path
            level.things[node.name] = Box(*size(node))
        for inner in cluster.clusters:
            level.things[id(inner)] = Box(0, 0)         # its size is known once it is laid out
            self._enter(inner, path, size)

    def _connect(self, edge: Edge) -> None:
        a, b = edge.source, edge.target
        ups, downs = self.paths[a], self.paths[b]
        common = sum(1 for x, y in zip(ups, downs, strict=False) if x is y)
        leaves: object = a                              # what stands for the source, level by level outwards
        for cluster in reversed(ups[common:]):
            level, outlet = self.levels[id(cluster)], ("out", a)
            level.things.setdefault(outlet, Box(2, 0, "bottom"))
            level.wires.setdefault((leaves, outlet), (edge, leaves == a, False))
            leaves = id(cluster)
        inwards = downs[common:]
        enters: object = id(inwards[0]) if inwards else b
        around = self.levels[id(ups[common - 1])]
        own = id(edge) if enters == b else a            # the last piece of its way is each edge's own
        around.wires.setdefault((leaves, enters, own), (edge, leaves == a, enters == b))
        for i, cluster in enumerate(inwards):
            level, inlet = self.levels[id(cluster)], ("in", a)
            level.things.setdefault(inlet, Box(2, 0, "top"))
            next_: object = id(inwards[i + 1]) if i + 1 < len(inwards) else b
            own = id(edge) if next_ == b else a
            level.wires.setdefault((inlet, next_, own), (edge, False, next_ == b))

    def placed(self) -> Placed:
        for cluster in reversed([self.graph.root, *self.graph.root.all_clusters()]):
            self._lay_out(self.levels[id(cluster)])
        out = Placed()
        self._collect(self.levels[id(self.graph.root)], 0, 0, out)
        return out

    def _lay_out(self, level: _Inside) -> None:
        level.order = {thing: i for i, thing in enumerate(level.things)}
        wires = []
        for (source, target, *_), (edge, _, _) in level.wires.items():
            leaves = self.levels[source].port(("out", edge.source)) if source in self.levels else None
            enters = self.levels[target].port(("in", edge.source)) if target in self.levels else None
            wires.append(Wire(level.order[source], level.order[target], leaves, enters, self.tag(edge)))
        level.done = flat(list(level.things.values()), wires, NEAR if len(level.things) > MANY else FAR)
        for around in self.levels.values():
            if id(level.cluster) in around.things:
                width = max(level.done.width, self.label(level.cluster)) + 2 * PAD
                height = level.pad("top") + level.done.height + level.pad("bottom")
                around.things[id(level.cluster)] = Box(width, height)

    def _collect(self, level: _Inside, x: float, y: float, out: Placed) -> None:
        """Add a level whose content begins at (x, y)."""
        assert level.done is not None
        corners = level.done.corners
        for thing, i in level.order.items():
            (dx, dy), box = corners[i], level.things[thing]
            if isinstance(thing, str):
                out.nodes[thing] = (x + dx, y + dy, box.width, box.height)
            elif thing in self.levels:
                inner = self.levels[thing]
                out.frames.append((inner.cluster, x + dx, y + dy, box.width, box.height))
                self._collect(inner, x + dx + PAD, y + dy + inner.pad("top"), out)
        for i, (edge, first, last) in enumerate(level.wires.values()):
            points = [(x + dx, y + dy) for dx, dy in level.done.routes[i]]
            out.runs.append(Run(edge, points, first and (edge.back or i not in level.done.tags), last))
            if i in level.done.tags:
                dx, dy = level.done.tags[i]
                out.tags.append((edge, x + dx, y + dy))
