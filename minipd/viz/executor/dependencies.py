"""Drawing dependencies: a node for each instruction, an arrow for each dependency that no others imply.

Those that come of values are drawn in one colour, those that come of memory that is used again, of state and of the
order of the program in another.
"""

from __future__ import annotations

from minipd.executor.schedule import Dependencies
from minipd.executor.schedule.streams import stream_of
from minipd.viz.graph import Cluster, Edge, Graph, Node
from minipd.viz.render import graph_svg
from minipd.viz.svg import Svg

__all__ = ["dependencies", "dependency_graph"]

KINDS = {"data": "input", "parameter": "input", "constant": "input", "shadow_output": "output", "fetch": "output",
         "set_parameter": "output", "if": "control", "while": "control"}


def dependencies(graph: Dependencies, title: str = "") -> Svg:
    """The picture of a graph of instructions.

    >>> from minipd.executor import Executor
    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> dependencies(Executor(trace(lambda x: x.exp(), Meta((2,), dtypes.float32.np)).program).dependencies())
    <Svg 'dependencies', ...>
    """
    return graph_svg(dependency_graph(graph, title))


def dependency_graph(graph: Dependencies, title: str = "") -> Graph:
    """The drawing, as nodes and edges."""
    root = Cluster("", title or "dependencies")
    for i in graph.instructions:
        kind = "comm" if i.communicates else KINDS.get(i.label.split()[0], "op")
        root.nodes.append(Node(f"i{i.index}", f"{i.label}\n{stream_of(i)}", kind))
    edges = [Edge(f"i{e.before}", f"i{e.after}", f"{e.kind}: {e.on}", kind="wire" if e.kind == "true" else "second")
             for e in graph.reduced()]
    return Graph(root.label, root, edges)
