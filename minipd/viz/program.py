"""Drawing programs: a node for each operation, an edge for each use of a value, a cluster for each region.

Constants that only spell attributes are written into the node that reads them, and bundles are looked through, so that
what is seen is the tensors and what computes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from minipd.framework.meta import Meta, describe
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import constant_of, is_attribute_only, mutable_operands, number_of_tensors
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value
from minipd.viz.graph import Cluster, Edge, Graph, Node

__all__ = ["program_graph"]

FUSION = "cinn_op.fusion"
REGIONS = {"pd_op.if": ("if true", "if false")}
NAMES = ("name", "parameter_name", "tensor_name", "output_name", "kernel")


def program_graph(program: Program, title: str = "program") -> Graph:
    """The drawing of a program.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> graph = program_graph(trace(lambda x: x.exp().sum(), Meta((2,), dtypes.float32.np)).program)
    >>> [node.label for node in graph.root.nodes]
    ['data input_0\\nf32[2]', 'exp\\nf32[2]', 'sum axis=(0,)\\nf32[]', 'shadow_output output_0']
    >>> [(edge.source, edge.target) for edge in graph.edges]
    [('op0', 'op1'), ('op1', 'op2'), ('op2', 'op3')]
    """
    drawing = _Drawing()
    root = Cluster("", title)
    drawing.block(program.global_block(), root)
    return Graph(title, root, drawing.edges)


class _Drawing:
    def __init__(self) -> None:
        self.nodes: dict[Operation, str] = {}
        self.edges: list[Edge] = []
        self.n_clusters = 0

    def block(self, block: Block, cluster: Cluster, owner: Operation | None = None) -> None:
        """The operations of a block; what it yields goes to the node of its owner."""
        for op in block:
            if op.name() in ("builtin.combine", "builtin.split") or (
                    IrTrait.CONSTANT in op.info.traits and is_attribute_only(op)):
                continue
            if op.name() == "cf.yield":
                if owner is not None:
                    self.connect(op.operands_source(), self.nodes[owner])
                continue
            self.nodes[op] = name = f"op{len(self.nodes)}"
            home = self.regions(op, cluster) if op.regions else cluster
            home.nodes.append(Node(name, label(op), kind(op)))
            operands = op.operands_source() if op.name() != FUSION else []      # its members read them
            self.connect(operands if op.row is None else operands[:number_of_tensors(op, op.row)], name)

    def regions(self, op: Operation, cluster: Cluster) -> Cluster:
        """A cluster for each region of `op`, which stands in the first if that is a fusion group, else outside."""
        for i, region in enumerate(op.regions):
            fusion = op.name() == FUSION
            names = REGIONS.get(op.name(), ())
            title = "fusion group" if fusion else names[i] if i < len(names) else f"region {i} of {op.name()}"
            inner = Cluster(f"c{self.n_clusters}", title, "fusion" if fusion else "region")
            self.n_clusters += 1
            cluster.clusters.append(inner)
            for block in region.blocks:
                self.block(block, inner, op)
            if fusion:
                return inner
        return cluster

    def connect(self, values: Sequence[Value], target: str) -> None:
        for value in values:
            op = value.get_defining_op()
            if op is not None and op.name() in ("builtin.combine", "builtin.split"):
                self.connect(op.operands_source(), target)
            elif op in self.nodes and self.nodes[op] != target:
                self.edges.append(Edge(self.nodes[op], target, type_text(value)))


def label(op: Operation) -> str:
    """The operation's name with the attributes that tell something, and the types of its results."""
    row = op.row
    shown = [str(op.attributes[n].value) for n in NAMES if n in op.attributes]
    if row is not None:
        known = {n: constant_of(v) for n, v in mutable_operands(op).items()}
        stored = {n: op.attributes[n].value for n in row.attrs if n in op.attributes and n not in ("shape", "dtype")}
        shown += [f"{n}={v}" for n, v in {**stored, **known}.items() if v is not None and v != row.attrs.get(n)]
    types = ", ".join(map(type_text, op.results()))
    first = " ".join([op.name().partition(".")[2], *shown])
    return f"{first}\n{types}" if types else first


def type_text(value: Value) -> str:
    """`f32[2, 3]`; anything but a tensor as it prints."""
    try:
        shape, dtype = value.shape, value.dtype
    except TypeError:
        return str(value.type())

    return describe(Meta(shape, dtype))


def kind(op: Operation) -> str:
    """How the node is coloured."""
    if op.name() in ("pd_op.data", "builtin.parameter", "builtin.constant"):
        return "input"
    if op.name() in ("builtin.shadow_output", "builtin.set_parameter", "pd_op.fetch"):
        return "output"
    return "op" if op.row is not None else "control"
