"""Drawing the autograd tape: the recorded calls behind a tensor, from the leaves down to it.

The arrows point the way that gradients flow, upwards.  A node says which of its inputs want a gradient, what it keeps
for its gradient rule, and its number: backward visits nodes from the highest number down.
"""

from __future__ import annotations

from typing import Any

from minipd.autograd.tape import Node as TapeNode
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.viz.graph import Cluster, Edge, Graph, Node
from minipd.viz.render import graph_svg
from minipd.viz.svg import Svg

__all__ = ["tape", "tape_graph"]


def tape(*tensors: Tensor, title: str = "") -> Svg:
    """The picture of the tape behind one or more tensors.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> tape((x * x).sum())
    <Svg 'tape of f32[]', ...>
    """
    return graph_svg(tape_graph(*tensors, title=title))


def tape_graph(*tensors: Tensor, title: str = "") -> Graph:
    """The drawing of the tape, as nodes and edges.

    Raises: TypeError for what is no tensor; ValueError where nothing was recorded.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> graph = tape_graph((x * x).sum())
    >>> [node.label.split("\\n")[0] for node in graph.root.nodes]
    ['leaf', 'multiply', 'sum', 'result']
    """
    for t in tensors:
        if not isinstance(t, Tensor):
            raise TypeError(f"tape: expected a Tensor, got {type(t).__name__}")
        if t.stop_gradient:
            raise ValueError(f"tape: expected a tensor with a history, got {describe(t)} with stop_gradient=True; "
                             "compute it from tensors that have stop_gradient=False, outside of no_grad")
    found = _reached([t.node for t in tensors if t.node is not None])
    first = min((node.seq for node in found), default=0)
    names = {id(node): f"n{i}" for i, node in enumerate(found)}
    nodes = [Node(names[id(node)], _label(node, first), "input" if node.row is None else "op") for node in found]
    edges = []
    for node in found:
        for i, edge in enumerate(node.edges):
            if edge is not None:
                name = _label(edge[0], first).split("\n")
                tag = name[0] if edge[0].row is None else name[1]
                edges.append(_arrow(names[id(edge[0])], names[id(node)], f"the gradient of {_input(node, i)}", tag))
    for i, t in enumerate(tensors):
        if t.node is None:                              # a leaf that nothing has used yet
            nodes.append(Node(f"t{i}", _leaf(t), "input"))
        elif t.node.row is not None:
            nodes.append(Node(f"t{i}", f"result\n{describe(t)}", "output"))
            edges.append(_arrow(names[id(t.node)], f"t{i}", "the gradient that backward starts with", ""))
    title = title or f"tape of {', '.join(map(describe, tensors))}"
    return Graph(title, Cluster("", title, nodes=nodes), edges)


def _arrow(above: str, below: str, label: str, tag: str) -> Edge:
    return Edge(above, below, label, back=True, kind="way", tag=tag)


def _reached(start: list[TapeNode]) -> list[TapeNode]:
    """The nodes from which gradients come to these, and themselves, in the order of their making."""
    found: dict[int, TapeNode] = {}
    pending = list(start)
    while pending:
        node = pending.pop()
        if id(node) not in found:
            found[id(node)] = node
            pending += [edge[0] for edge in node.edges if edge is not None]
    # A leaf's node is made when it is first used, after the node that uses it may have got its number.
    return sorted(found.values(), key=lambda node: (node.row is not None, node.seq))


def _label(node: TapeNode, first: int) -> str:
    if node.row is None:
        leaf = node.leaf() if node.leaf else None
        return "leaf (gone)" if leaf is None else _leaf(leaf)
    lines = [f"{node.row.name}", f"#{node.seq - first}"]
    wanted = [_input(node, i) for i, edge in enumerate(node.edges) if edge is not None]
    if len(node.edges) > 1 and wanted:
        lines.append("to " + ", ".join(wanted))
    if node.saved is None:
        lines.append("freed")
    elif kept := _kept(node):
        lines.append("keeps " + ", ".join(kept))
    return "\n".join(lines)


def _leaf(leaf: Tensor) -> str:
    lines = ["leaf" if leaf._name is None else f"leaf {leaf._name}", describe(leaf)]
    if leaf.grad is not None:
        lines.append("has its gradient")
    return "\n".join(lines)


def _input(node: TapeNode, i: int) -> str:
    inputs: tuple[str, ...] = getattr(node.row, "inputs", ())
    if getattr(node.row, "variadic", False) and i >= len(inputs) - 1:
        return f"{inputs[-1]}[{i - len(inputs) + 1}]"
    return inputs[i] if i < len(inputs) else f"input {i}"


def _kept(node: TapeNode) -> list[str]:
    """What the call keeps: inputs and results with their values, `shape of` where only that is read."""
    recipe: Any = node.recipe
    if recipe is None or not isinstance(getattr(node.row, "inputs", None), tuple):
        return []
    kept = [_input(node, i) for i in recipe.whole]
    kept += [f"shape of {_input(node, i)}" for i in recipe.metas]
    outputs = getattr(node.row, "outputs", ("out",))
    kept += [outputs[i] if i < len(outputs) else f"result {i}" for i in recipe.results]
    if recipe.variadic:
        kept.append("all inputs" if recipe.variadic == "whole" else "all shapes")
    return kept
