"""Nodes, edges and nested clusters: what a drawer of graphs makes, and DOT text of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import graphviz

from minipd.viz.style import COLOURS

__all__ = ["Cluster", "Edge", "Graph", "Node"]


@dataclass
class Node:
    """A box.  label: its name, then what is to be said of it, a line each.  kind: a colour of the style sheet.  tip:
    shown when the pointer rests on it."""

    name: str
    label: str
    kind: str = "op"
    tip: str = ""


@dataclass
class Edge:
    """An arrow between nodes, by name.  label: shown when the pointer rests on it.  back: it points at its source.
    kind: a colour of lines.  tag: the word that stands at its target where it would be too long to be drawn."""

    source: str
    target: str
    label: str = ""
    back: bool = False
    kind: str = "wire"
    tag: str = ""


@dataclass
class Cluster:
    """Nodes that belong together, in a frame.  kind: a colour of the style sheet."""

    name: str
    label: str
    kind: str = "region"
    nodes: list[Node] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)

    def all_nodes(self) -> list[Node]:
        """Its nodes, and those of the clusters inside."""
        return [*self.nodes, *(n for c in self.clusters for n in c.all_nodes())]

    def all_clusters(self) -> list[Cluster]:
        """The clusters inside, outer before inner."""
        return [c for inner in self.clusters for c in (inner, *inner.all_clusters())]


@dataclass
class Graph:
    """A drawing of nodes and edges.

    >>> graph = Graph("tiny", Cluster("", "", nodes=[Node("a", "x", "input"), Node("b", "exp")]), [Edge("a", "b")])
    >>> print(graph.dot())
    digraph tiny {
        graph [fontname=Helvetica rankdir=TB]
        node [fontname=Helvetica fontsize=11 shape=box style="rounded,filled"]
        edge [color="#6b7280" fontname=Helvetica fontsize=9]
        a [label=x color="#60a5fa" fillcolor="#dbeafe"]
        b [label=exp color="#94a3b8" fillcolor="#ffffff"]
        a -> b
    }
    <BLANKLINE>
    """

    title: str
    root: Cluster
    edges: list[Edge] = field(default_factory=list)

    def dot(self) -> str:
        """DOT text, for Graphviz."""
        out = graphviz.Digraph(self.title)
        out.attr("graph", rankdir="TB", fontname="Helvetica")
        out.attr("node", shape="box", style="rounded,filled", fontname="Helvetica", fontsize="11")
        out.attr("edge", color="#6b7280", fontname="Helvetica", fontsize="9")
        _write(out, self.root)
        for edge in self.edges:
            label = graphviz.escape(edge.label) if edge.label else None
            out.edge(edge.source, edge.target, label=label, **({"dir": "back"} if edge.back else {}))
        return out.source.replace("\t", "    ")


def _write(out: graphviz.Digraph, cluster: Cluster) -> None:
    for node in cluster.nodes:
        fill, edge, *_ = COLOURS[node.kind]
        out.node(node.name, label=graphviz.escape(node.label).replace("\n", "\\n"), fillcolor=fill, color=edge)
    for inner in cluster.clusters:
        fill, edge, *_ = COLOURS[inner.kind]
        with out.subgraph(name=f"cluster_{inner.name}") as part:
            part.attr(label=graphviz.escape(inner.label), style="rounded,filled", fillcolor=fill, color=edge)
            _write(part, inner)
