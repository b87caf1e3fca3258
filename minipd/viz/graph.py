"""Nodes, edges and nested clusters: what every drawer makes, and DOT text of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import graphviz

__all__ = ["Cluster", "Edge", "Graph", "Node"]


@dataclass
class Node:
    """A box.  kind: "op", "input", "output" or "control", by which it is coloured."""

    name: str
    label: str
    kind: str = "op"


@dataclass
class Edge:
    """An arrow between nodes, by name."""

    source: str
    target: str
    label: str = ""


@dataclass
class Cluster:
    """Nodes that belong together.  kind: "region" or "fusion"."""

    name: str
    label: str
    kind: str = "region"
    nodes: list[Node] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)

    def all_nodes(self) -> list[Node]:
        """Its nodes, and those of the clusters inside."""
        return [*self.nodes, *(n for c in self.clusters for n in c.all_nodes())]


COLOURS = {"op": "#ffffff", "input": "#dbeafe", "output": "#dcfce7", "control": "#f3f4f6",
           "region": "#f8fafc", "fusion": "#fef3c7"}


@dataclass
class Graph:
    """A drawing.

    >>> graph = Graph("tiny", Cluster("", "", nodes=[Node("a", "x", "input"), Node("b", "exp")]), [Edge("a", "b")])
    >>> print(graph.dot())
    digraph tiny {
        graph [fontname=Helvetica rankdir=TB]
        node [fontname=Helvetica fontsize=11 shape=box style="rounded,filled"]
        edge [color="#6b7280" fontname=Helvetica fontsize=9]
        a [label=x fillcolor="#dbeafe"]
        b [label=exp fillcolor="#ffffff"]
        a -> b
    }
    <BLANKLINE>
    """

    title: str
    root: Cluster
    edges: list[Edge] = field(default_factory=list)

    def dot(self) -> str:
        """DOT text."""
        out = graphviz.Digraph(self.title)
        out.attr("graph", rankdir="TB", fontname="Helvetica")
        out.attr("node", shape="box", style="rounded,filled", fontname="Helvetica", fontsize="11")
        out.attr("edge", color="#6b7280", fontname="Helvetica", fontsize="9")
        _write(out, self.root)
        for edge in self.edges:
            out.edge(edge.source, edge.target, label=graphviz.escape(edge.label) if edge.label else None)
        return out.source.replace("\t", "    ")


def _write(out: graphviz.Digraph, cluster: Cluster) -> None:
    for node in cluster.nodes:
        out.node(node.name, label=graphviz.escape(node.label).replace("\n", "\\n"), fillcolor=COLOURS[node.kind])
    for inner in cluster.clusters:
        with out.subgraph(name=f"cluster_{inner.name}") as part:
            part.attr(label=graphviz.escape(inner.label), style="rounded,filled", fillcolor=COLOURS[inner.kind],
                      color="#9ca3af")
            _write(part, inner)
