"""Drawing use-def chains: values, the operations that make them, and the operands that hold them.

An operand is a thing of its own, as in the IR: it belongs to one operation and holds one value.  The chain of a value
is the list of the operands that hold it, in the order in which they took it.
"""

from __future__ import annotations

from minipd.ir.operation import Operation
from minipd.ir.value import OpOperand, Value
from minipd.viz.graph import Cluster, Edge, Graph, Node
from minipd.viz.ir.program import kind, outermost, short, type_text, value_names
from minipd.viz.render import graph_svg
from minipd.viz.svg import Svg

__all__ = ["use_def", "use_def_graph"]


def use_def(of: Value | Operation, depth: int = 1) -> Svg:
    """The picture of the use-def chains around a value, or around the results and operands of an operation.

    depth: how many operations away from it, upwards and downwards.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> program = trace(lambda x: x * x, Meta((2,), dtypes.float32.np)).program
    >>> use_def(program.global_block().front().result(0))
    <Svg 'use-def chain of %0', ...>
    """
    return graph_svg(use_def_graph(of, depth))


def use_def_graph(of: Value | Operation, depth: int = 1) -> Graph:
    """The drawing of use-def chains, as nodes and edges.

    Raises: TypeError for anything but a value or an operation.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> program = trace(lambda x: x * x, Meta((2,), dtypes.float32.np)).program
    >>> [n.label for n in use_def_graph(program.global_block().front().result(0)).root.nodes]
    ['data', '%0: f32[2]', 'use 0: operand 0', 'multiply', 'use 1: operand 1']
    """
    if not isinstance(of, Value | Operation):
        raise TypeError(f"use_def: expected a Value or an Operation, got {type(of).__name__}")
    drawing = _Chains(of)
    start: list[Value | Operation] = [of]
    for _ in range(depth + isinstance(of, Operation)):
        start = drawing.around(start)
    what = drawing.name(of) if isinstance(of, Value) else of.name()
    title = f"use-def chain{'s' * isinstance(of, Operation)} of {what}"
    order = {name: i for i, name in enumerate(drawing.nodes)}
    edges = [Edge(a, b, tag=drawing.nodes[a].label)
             for a, b in sorted(drawing.edges, key=lambda e: (order[e[0]], order[e[1]]))]
    return Graph(title, Cluster("", title, nodes=list(drawing.nodes.values())), edges)


class _Chains:
    def __init__(self, of: Value | Operation):
        self.of = of
        self.names = value_names(outermost(of.parent if isinstance(of, Operation) else of.parent_block()))
        self.nodes: dict[str, Node] = {}
        self.edges: dict[tuple[str, str], None] = {}
        self.keys: dict[object, str] = {}

    def around(self, things: list[Value | Operation]) -> list[Value | Operation]:
        """Draw what values are defined and used by, and what operations read and give; returns the operations met, with
        what they give."""
        met: dict[Value | Operation, None] = {}
        for thing in things:
            if isinstance(thing, Operation):
                for operand in thing.operands():
                    if operand.source() is not None:            # none is held where an operand is left out
                        self.use(operand)
                        met[operand.source()] = None
                for result in thing.results():
                    self.defined(result)
                    met[result] = None
                continue
            self.defined(thing)
            maker = thing.get_defining_op()
            if maker is not None:
                met[maker] = None
            for use in thing.uses:
                self.use(use)
                met[use.owner()] = None
        return list(met)

    def defined(self, value: Value) -> None:
        maker = value.get_defining_op()
        if maker is None:
            self.value(value)
        else:
            self.edges[self.operation(maker), self.value(value)] = None

    def use(self, operand: OpOperand) -> None:
        number = operand.source().uses.index(operand)
        value = self.value(operand.source())
        pill = self.node(operand, f"use {number}: operand {operand.index()}", "use")
        self.edges[value, pill] = None
        self.edges[pill, self.operation(operand.owner())] = None

    def value(self, value: Value) -> str:
        return self.node(value, f"{self.name(value)}: {type_text(value)}", "focus" if value is self.of else "input")

    def operation(self, op: Operation) -> str:
        return self.node(op, short(op), "focus" if op is self.of else kind(op) if kind(op) == "output" else "op")

    def node(self, thing: object, label: str, kind: str) -> str:
        if thing not in self.keys:
            self.keys[thing] = name = f"n{len(self.keys)}"
            self.nodes[name] = Node(name, label, kind)
        return self.keys[thing]

    def name(self, value: Value) -> str:
        return self.names.get(value, "%?")
