"""Drawing programs: a node for each operation, an edge for each use of a value, a cluster for each region.

Values have the names that the program's text gives them (`%12`).  Constants that only spell attributes are written into
the node that reads them, and bundles are looked through, so that what is seen is the tensors and what computes them.

With a `depth`, operations that a layer has made stand in a frame of the layer's name, and those of deeper layers are
folded into one node each.  Operations of a layer that is called twice make two frames: a frame is a run of operations,
so that arrows never go back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from minipd.ir.attributes import StrAttribute
from minipd.ir.block import Block
from minipd.ir.operation import Operation, walk_inside
from minipd.ir.printer import ProgramPrinter
from minipd.ir.program import Program
from minipd.ir.schema import constant_of, is_attribute_only, mutable_operands, number_of_tensors
from minipd.ir.traits import IrTrait
from minipd.ir.types import TensorType
from minipd.ir.value import Value
from minipd.viz.graph import Cluster, Edge, Graph, Node
from minipd.viz.render import graph_svg
from minipd.viz.svg import Svg

__all__ = ["Mark", "program", "program_graph"]

FUSION = "cinn_op.fusion"
REGIONS = {"pd_op.if": ("if true", "if false"), "pd_op.while": ("while",)}
BUNDLES = ("builtin.combine", "builtin.split")
NAMES = ("name", "parameter_name", "tensor_name", "output_name", "kernel")
SEEN_IN_TYPE = ("shape", "dtype")
MOST_GIVEN = 3      # results of a folded layer that are named
#: kind of a fusion group -> colour of its frame
PATTERNS = {"Trivial": "trivial", "Reduce": "reduce", "ReduceTree": "tree", "ReduceTree+Trivial": "treetop",
            "Anchor": "anchor", "HorizontalFusion": "horizontal"}
MANY = 120          # a program of more operations is drawn with its parameters written into the nodes that read them


@dataclass(frozen=True)
class Mark:
    """What is to be seen of an operation, or of a value at whatever makes it, besides what it is: a colour, "" for the
    usual one, and words, a line each."""

    kind: str = ""
    words: tuple[str, ...] = ()


#: (who makes a value, who reads it) -> how the arrow looks
Links = Mapping[tuple[Operation, Operation], Mark]


def program(program: Program | Operation, title: str = "", ops: range | None = None, depth: int | None = None) -> Svg:
    """The picture of a program, of the part of it that `ops` counts out (operations as they stand in its text, from 0),
    or of one operation with its regions.

    depth: how many layers within layers are frames; what lies deeper is folded.  None: no layers, all operations.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> program(trace(lambda x: x.exp(), Meta((2,), dtypes.float32.np)).program)
    <Svg 'program', ...>
    """
    return graph_svg(program_graph(program, title, ops, depth))


def program_graph(program: Program | Operation, title: str = "", ops: range | None = None,
                  depth: int | None = None, marks: Mapping[Operation | Value, Mark] | None = None,
                  links: Links | None = None) -> Graph:
    """The drawing of a program, as nodes and edges.  marks: what is to be pointed at.  links: for a maker and a reader,
    the colour and the words of the arrow between them.

    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> graph = program_graph(trace(lambda x: x.exp().sum(), Meta((2,), dtypes.float32.np)).program)
    >>> [node.label for node in graph.root.nodes]
    ['data input_0\\n%0: f32[2]', 'exp\\n%1: f32[2]', 'sum axis=(0,)\\n%3: f32[]', 'shadow_output output_0']
    >>> [(edge.source, edge.target) for edge in graph.edges]
    [('op0', 'op1'), ('op1', 'op2'), ('op2', 'op3')]
    """
    if isinstance(program, Operation):
        shown, block = [program], outermost(program.parent)
        title = title or program.name()
    else:
        shown, block = program.global_block().ops, program.global_block()
        title = title or "program"
        shown = shown if ops is None else [shown[i] for i in ops if i < len(shown)]
    return part_graph(shown, value_names(block), title, depth, marks=marks, links=links)


def part_graph(ops: Sequence[Operation], names: dict[Value, str], title: str, depth: int | None, inside: int = 0,
               marks: Mapping[Operation | Value, Mark] | None = None, links: Links | None = None) -> Graph:
    """The drawing of operations that follow each other; `inside` so many layers, whose frames are not drawn."""
    drawing = _Drawing(names, len(ops) > MANY and depth is None, None if depth is None else depth + inside, links)
    root = Cluster("", title)
    drawing.block(ops if depth is None else with_readers(ops), root, level=inside)
    for what, mark in (marks or {}).items():
        for node in drawing.at(what):
            node.kind = mark.kind or node.kind
            node.label = "\n".join([node.label, *mark.words])
    return Graph(title, root, drawing.edges)


def outermost(block: Block | None) -> Block | None:
    """The global block around a block."""
    while block is not None and block.parent_block is not None:
        block = block.parent_block
    return block


def value_names(block: Block | None) -> dict[Value, str]:
    """What the text of the program whose global block this is calls each value."""
    printer = ProgramPrinter("exact")
    for outer in block or ():
        for op in walk_inside(outer):
            for value in (*op.results(), *op.operands_source(), *(a for b in op.blocks() for a in b.args())):
                printer.name(value)
    return printer.names


class _Drawing:
    """Nodes and edges of a program.  fold: parameters are lines of the nodes that read and write them.  depth: layers
    within so many others are folded; None: layers are not drawn.  links: see `program_graph`."""

    def __init__(self, names: dict[Value, str], fold: bool, depth: int | None = None, links: Links | None = None):
        self.names, self.fold, self.depth, self.links = names, fold, depth, links or {}
        self.nodes: dict[Operation, Node] = {}
        self.values: dict[object, Node] = {}        # arguments of blocks, and what comes from parts not drawn
        self.given: dict[Value, Value] = {}         # result of a fusion group -> the member's that it is
        self.edges: list[Edge] = []
        self.n_clusters = 0

    def at(self, what: Operation | Value) -> list[Node]:
        """Where an operation stands, or what makes a value."""
        op = what if isinstance(what, Operation) else what.get_defining_op()
        if op in self.nodes:
            return [self.nodes[op]]
        return [node for key, node in self.values.items() if what in (key if isinstance(key, tuple) else (key,))]

    def block(self, ops: Sequence[Operation], cluster: Cluster, owner: Operation | None = None, level: int = 0) -> None:
        """The operations of a block; what it yields goes to the node of its owner.  level: of how many layers the
        frames are around."""
        if self.depth is not None:
            for layer, run in runs(ops, level):
                if not layer:
                    self.operations(run, cluster, owner)
                elif level >= self.depth:
                    self.folded_layer(layer, run, cluster)
                else:
                    inner = Cluster(f"c{self.n_clusters}", layer, "layer")
                    self.n_clusters += 1
                    cluster.clusters.append(inner)
                    self.block(run, inner, owner, level + 1)
            return
        self.operations(ops, cluster, owner)

    def folded_layer(self, layer: str, ops: Sequence[Operation], cluster: Cluster) -> None:
        """One node for all operations of a layer: their number, and what others read of them."""
        inside = {inner for op in ops for inner in walk_inside(op)}
        given = [r for op in ops for r in op.results() if any(u.owner() not in inside for u in r.uses)]
        words = [f"{self.names.get(r, '')}: {type_text(r)}" for r in given[:MOST_GIVEN]]
        words += [f"and {len(given) - MOST_GIVEN} more"] * (len(given) > MOST_GIVEN)
        seen = [op for op in inside if not quiet(op)]
        number, held = sum(not is_held(op) for op in seen), sum(map(is_held, seen))
        words[:0] = [f"{number} operation{'s' * (number != 1)}" + f", {held} parameter{'s' * (held != 1)}" * bool(held)]
        tip = f"{layer}: {', '.join(dict.fromkeys(short(op) for op in ops if not quiet(op) and not is_held(op)))}"
        node = Node(f"op{len(self.nodes)}", "\n".join([layer, *words]), "layer", tip)
        cluster.nodes.append(node)
        self.nodes.update(dict.fromkeys(inside, node))
        for op in inside:
            self.values.update((argument, node) for block in op.blocks() for argument in block.args())
        read = [v for op in ops for inner in walk_inside(op) if not quiet(inner) for v in inner.operands_source()
                if v is not None and not constant_attribute(v)]
        self.connect(list(dict.fromkeys(read)), node.name, cluster)

    def operations(self, ops: Sequence[Operation], cluster: Cluster, owner: Operation | None) -> None:
        """Operations, each for itself."""
        for op in ops:
            if quiet(op):
                continue
            if op.name() == "cf.yield":
                if owner is not None and owner.name() == FUSION:        # what the group gives is what members make
                    self.given.update(zip(owner.results(), op.operands_source(), strict=True))
                elif owner is not None:
                    self.connect(op.operands_source(), self.nodes[owner].name, cluster)
                continue
            if op.name() == FUSION:
                self.regions(op, cluster)
                continue
            if self.fold and self.folded(op):
                continue
            self.nodes[op] = node = Node(f"op{len(self.nodes)}", self.label(op), kind(op))
            self.regions(op, cluster)
            cluster.nodes.append(node)
            operands = op.operands_source()
            self.connect(operands if op.row is None else operands[:number_of_tensors(op, op.row)], node.name, cluster,
                         op)

    def folded(self, op: Operation) -> bool:
        """Whether the operation is a line in another's node: a parameter with one reader, or its new value."""
        if op.name() == "builtin.parameter":
            return op.result(0).has_one_use()
        if op.name() == "builtin.set_parameter":
            source = op.operand_source(0).get_defining_op()
            if source in self.nodes:
                self.nodes[source].label += f"\nwrites {op.attributes['parameter_name'].value}"
                return True
        return False

    def regions(self, op: Operation, cluster: Cluster) -> None:
        """A cluster for each region of `op`."""
        for i, region in enumerate(op.regions):
            fusion = op.name() == FUSION
            given = ", ".join(self.names.get(r, "") for r in op.results())
            pattern = op.attributes["pattern"].value if "pattern" in op.attributes else ""
            names = (f"fusion group: {given}" + f", {pattern}" * bool(pattern),) if fusion else REGIONS.get(
                op.name(), ())
            title = names[i] if i < len(names) else f"region {i} of {op.name()}"
            inner = Cluster(f"c{self.n_clusters}", title, PATTERNS.get(pattern, "fusion") if fusion else "region")
            self.n_clusters += 1
            cluster.clusters.append(inner)
            for block in region.blocks:
                self.arguments(block, op, inner)
                self.block(block.ops, inner, op)

    def arguments(self, block: Block, op: Operation, cluster: Cluster) -> None:
        """A node for each argument of a block; where there are as many as the last operands, they start as those."""
        args = block.args()
        given = op.operands_source()[-len(args):] if args else []
        for i, argument in enumerate(args):
            self.values[argument] = node = self.stranger(argument, "argument", cluster)
            if len(given) == len(args):
                self.connect([given[i]], node.name, cluster)

    def stranger(self, value: Value, what: str, cluster: Cluster) -> Node:
        """A node for a value that no drawn operation makes."""
        name = self.names.get(value, "%?")
        op = value.get_defining_op()
        seen = op is not None and kind(op) == "input"
        label = self.label(op) if op is not None and seen else f"{what}\n{name}: {type_text(value)}"
        node = Node(f"v{len(self.values)}", label, "input" if seen else "use")
        cluster.nodes.append(node)
        return node

    def connect(self, values: Sequence[Value | None], target: str, cluster: Cluster,
                reader: Operation | None = None) -> None:
        """An edge from whatever makes each value; none from an operand that is left out.  reader: who reads them."""
        for value in values:
            if value is None:
                continue
            value = self.given.get(value, value)
            op = value.get_defining_op()
            if op is not None and op.name() in BUNDLES:
                self.connect(op.operands_source(), target, cluster, reader)
                continue
            if self.fold and op is not None and op not in self.nodes and self.folded(op):
                owner = next(n for n in cluster.nodes if n.name == target)
                owner.label += f"\nreads {op.attributes['parameter_name'].value}"
                continue
            if op in self.nodes:
                source = self.nodes[op]
            else:
                key = value if op is None else (value, id(cluster))     # one for each frame, near where it is read
                if key not in self.values:
                    self.values[key] = self.stranger(value, "from outside" if op is None else short(op), cluster)
                source = self.values[key]
            if source.name != target:
                name = self.names.get(value, "")
                mark = self.links.get((op, reader), Mark()) if op is not None and reader is not None else Mark()
                label = "\n".join([f"{name}: {type_text(value)}", *mark.words])
                self.edges.append(Edge(source.name, target, label, kind=mark.kind or "wire", tag=name))

    def label(self, op: Operation) -> str:
        """The operation's name with the attributes that tell something, and names and types of its results."""
        row = op.row
        shown = [str(op.attributes[n].value) for n in NAMES if n in op.attributes]
        if row is not None:
            known = {n: constant_of(v) for n, v in mutable_operands(op).items()}
            stored = {n: op.attributes[n].value for n in row.attrs if n in op.attributes and n not in SEEN_IN_TYPE}
            shown += [f"{n}={v}" for n, v in {**stored, **known}.items() if v is not None and v != row.attrs.get(n)]
        results = [f"{self.names.get(r, '')}: {type_text(r)}" for r in op.results()]
        return "\n".join([" ".join([short(op), *shown]), *results])


def quiet(op: Operation) -> bool:
    """Whether an operation is no node: a bundle, or a constant that spells attributes."""
    return op.name() in BUNDLES or IrTrait.CONSTANT in op.info.traits and is_attribute_only(op)


def constant_attribute(value: Value) -> bool:
    """Whether a value only spells an attribute."""
    op = value.get_defining_op()
    return op is not None and IrTrait.CONSTANT in op.info.traits and is_attribute_only(op)


def is_held(op: Operation) -> bool:
    """Whether an operation reads what the program does not get from its caller: state, or a captured tensor."""
    return op.name() in ("builtin.parameter", "builtin.constant") or op.name() == "pd_op.data" and \
        str(op.attributes["name"].value).startswith("captured_")


def with_readers(ops: Sequence[Operation]) -> list[Operation]:
    """The operations, the parameters that only one layer reads right before their first reader."""
    moved: dict[Operation, list[Operation]] = {}
    inside = {inner: op for op in ops for inner in walk_inside(op)}
    place = {op: i for i, op in enumerate(ops)}
    for op in ops:
        readers = [inside[u] for r in op.results() for u in r.all_used_ops() if u in inside] if is_held(op) else []
        if readers and len({layers_of(r)[:1] for r in readers}) == 1 and layers_of(readers[0]):
            moved.setdefault(min(readers, key=place.__getitem__), []).append(op)
    gone = {op for held in moved.values() for op in held}
    return [o for op in ops if op not in gone for o in (*moved.get(op, ()), op)]


def layers_of(op: Operation) -> tuple[str, ...]:
    """The layers that an operation was made in, outermost first: ("1", "self_attn") of `/1/self_attn/`."""
    found = op.attributes.get("struct_name")
    return tuple(filter(None, found.value.split("/"))) if isinstance(found, StrAttribute) else ()


def runs(ops: Sequence[Operation], level: int) -> list[tuple[str, list[Operation]]]:
    """Operations that follow each other in one layer, the `level`-th around them, with its name; "" for those that are
    in none.  What has no operands and no layer, constants above all, belongs to what comes after it, which reads it."""
    found: list[tuple[str, list[Operation]]] = []
    waiting: list[Operation] = []
    for op in ops:
        if quiet(op) or not op.num_operands() and not layers_of(op) and (level or kind(op) != "input" or is_held(op)):
            waiting.append(op)
            continue
        layer = "".join(layers_of(op)[level:level + 1])
        if not found or found[-1][0] != layer:
            found.append((layer, []))
        found[-1][1].extend([*waiting, op])
        waiting.clear()
    if waiting:
        found.append(("", waiting))
    return found


def short(op: Operation) -> str:
    """`matmul` of `pd_op.matmul`."""
    return op.name().partition(".")[2]


def type_text(value: Value) -> str:
    """`f32[2, 3]`, with how it is sharded if it is; anything but a tensor as it prints."""
    type = value.type()
    return type.notation() if isinstance(type, TensorType) else str(type)


def kind(op: Operation) -> str:
    """How the node is coloured."""
    if op.name() in ("pd_op.data", "builtin.parameter", "builtin.constant"):
        return "input"
    if op.name() in ("builtin.shadow_output", "builtin.set_parameter", "pd_op.fetch"):
        return "output"
    if op.name() == "cinn_runtime.jit_kernel":
        return "kernel"
    if op.row is None:
        return "control"
    return "comm" if op.row.comm else "op"
