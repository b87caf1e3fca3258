"""Drawing a distributed program: the global one with the placements of its values, and beside it what one rank runs.

On the left a line for each operation, its type in the notation of shards and a small picture of how the value is cut; on
the right the operations that the rank does for it, of local shapes.  What communicates is red, and says with whom and
how much the rank sends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from minipd.dist.dialect import DistTensorType
from minipd.dist.mesh import ProcessMesh
from minipd.dist.sharding import ceil_chunk
from minipd.dist.static.passes import stages
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.viz.dist.cut import Cut
from minipd.viz.dist.reshard import size_text
from minipd.viz.dist.sharding import draw_small
from minipd.viz.ir.program import constant_attribute, kind, quiet, short, type_text, value_names
from minipd.viz.style import text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["Line", "Pair", "pairs", "placed", "placed_text"]

PAD, GAP, BOX, LEAST = 10, 26, 24, 30.0         # pixels: around words, between columns; heights of a box and a line


class Line(NamedTuple):
    """An operation: what it is, the type of its result (the notation, where it is distributed), its colour."""

    words: str
    type: str = ""
    kind: str = "op"
    cut: Cut | None = None


class Pair(NamedTuple):
    """A line of the global program and one of the rank's; None where there is none."""

    left: Line | None
    right: Line | None


def placed(program: Program, rank: int = 0, title: str = "") -> Svg:
    """The picture of a program whose inputs are marked (`shard_tensor`), or that is completed, with a rank's beside it.

    Raises: ValueError for a program without a mark.

    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Shard
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.framework.meta import Meta
    >>> from minipd.ir.traced import trace
    >>> mesh, f32 = parse_mesh("tp=2"), dtypes.float32.np
    >>> def product(x, w):
    ...     return (shard_tensor(x, mesh, [Shard(1)]) @ shard_tensor(w, mesh, [Shard(0)])).tanh()
    >>> program = trace(product, Meta((4, 6), f32), Meta((6, 8), f32)).program
    >>> placed(program, rank=1)
    <Svg 'program, and that of rank 1', ...>
    >>> print(placed_text(program, rank=1))
    data input_0               f32[4, 6_tp]       | data input_0                     f32[4, 3]
    data input_1               f32[6_tp, 8]       | data input_1                     f32[3, 8]
    %2 = matmul(%0, %1)        f32[4, 8]{P_tp}    | matmul                           f32[4, 8]
                                                  | all_reduce over tp, sends 128 B  f32[4, 8]
    %3 = tanh(%2)              f32[4, 8]          | tanh                             f32[4, 8]
    shadow_output(%3) output_0                    | shadow_output output_0
    """
    found = pairs(program, rank)
    title = title or f"program, and that of rank {rank}"
    left, right = [p.left for p in found if p.left], [p.right for p in found if p.right]
    wide = [_width([line.words for line in lines]) for lines in (left, right)]
    types = [_width([line.type for line in lines]) for lines in (left, right)]
    pictures = {p.left: _small(p.left.cut) for p in found if p.left and p.left.cut}
    across = max((s.width for s in pictures.values()), default=0.0)
    starts = [0.0, wide[0] + GAP, wide[0] + GAP + types[0] + PAD]
    starts += [starts[2] + across + 2 * GAP, starts[2] + across + 3 * GAP + wide[1]]
    sheet = Sheet(title)
    sheet.text(0, -12, "all ranks", "bold")
    sheet.text(starts[3], -12, f"rank {rank}", "bold")
    y = 0.0
    for pair in found:
        picture = pictures.get(pair.left) if pair.left else None
        height = max(LEAST, picture.height + 8 if picture else 0.0)
        for line, at, width, beside in ((pair.left, starts[0], wide[0], starts[1]),
                                        (pair.right, starts[3], wide[1], starts[4])):
            if line is None:
                continue
            sheet.rect(at, y + (height - BOX) / 2, width, BOX, line.kind)
            sheet.text(at + PAD, y + height / 2 + 4, line.words, "mono", 11)
            sheet.text(beside, y + height / 2 + 4, line.type, "mono", 11)
        if picture:
            sheet.place(picture, starts[2], y + (height - picture.height) / 2)
        y += height
    return sheet.done()


def placed_text(program: Program, rank: int = 0) -> str:
    """The same as text, in two columns."""
    found = pairs(program, rank)
    columns = []
    for side in (0, 1):
        lines = [pair[side] or Line("") for pair in found]
        first = max((len(line.words) for line in lines), default=0)
        columns.append([f"{line.words:{first}}  {line.type}" for line in lines])
    width = max(map(len, columns[0]), default=0)
    return "\n".join(f"{a:{width}}  | {b}".rstrip() for a, b in zip(*columns, strict=True))


def pairs(program: Program, rank: int = 0) -> list[Pair]:
    """The lines of both programs, side by side where an operation is the rank's part of another."""
    found = stages(program, rank)
    whole, own = found["completion_pass"], found["dist2dense_pass"]
    if not _types(whole):
        raise ValueError("placed: expected a program with a distributed value, got one without; mark its inputs with "
                         "shard_tensor")
    mesh = next((t.mesh for t in _types(whole) if t.mesh.contains(rank)), None)
    if mesh is None:
        known = sorted({r for t in _types(whole) for r in t.mesh.process_ids})
        raise ValueError(f"placed: expected a rank that the program's values are on, one of {known}, got {rank}")
    names = value_names(whole.global_block())
    left = [op for op in whole.global_block() if not quiet(op)]
    right = [op for op in own.global_block() if not quiet(op)]
    lines = [_global(op, names) for op in left], [_own(op, mesh, rank) for op in right]
    out: list[Pair] = []
    matcher = SequenceMatcher(None, [op.name() for op in left], [op.name() for op in right], autojunk=False)
    for _, i0, i1, j0, j1 in matcher.get_opcodes():
        n = max(i1 - i0, j1 - j0)
        sides = [[*part, *[None] * (n - len(part))] for part in (lines[0][i0:i1], lines[1][j0:j1])]
        out += map(Pair, *sides)
    return out


def _global(op: Operation, names: dict[Value, str]) -> Line:
    results = op.results()
    given = ", ".join(names.get(v, "") for v in op.operands_source() if v is not None and not constant_attribute(v))
    words = _named(op, f"({given})" if given else "")
    if results and given:
        words = f"{', '.join(names.get(r, '') for r in results)} = {words}"
    if not results:
        return Line(words, kind=kind(op))
    of = results[0].type()
    cut = None
    if isinstance(of, DistTensorType):
        cut = Cut.of(of.shape, of.mesh, of.placements, of.dtype)
    return Line(words, ", ".join(map(type_text, results)), kind(op), cut)


def _own(op: Operation, mesh: ProcessMesh, rank: int) -> Line:
    words = _named(op)
    if op.row is not None and op.row.comm:
        attrs = {name: a.value for name, a in op.attributes.items() if name in ("group", "dst", "src")}
        if "group" in attrs:
            axis = next((n for a, n in enumerate(mesh.names) if mesh.contains(rank)
                         and mesh.group(rank, a) == tuple(attrs["group"])), None)
            words += f" over {axis}" if axis else f" among {' '.join(map(str, attrs['group']))}"
        words += f" to rank {attrs['dst']}" if "dst" in attrs else f" from rank {attrs['src']}" if "src" in attrs else ""
        amount = sent_by(op, rank)
        words += f", sends {size_text(amount)}" if amount else ""
    return Line(words, ", ".join(map(type_text, op.results())), kind(op))


def sent_by(op: Operation, rank: int) -> int:
    """The bytes that a rank gives to others in a collective or message; 0 if that cannot be said."""
    values = [v for v in op.operands_source() if v is not None]
    if not values or not all(isinstance(d, int) for d in values[0].shape):
        return 0
    attrs = {name: a.value for name, a in op.attributes.items()}
    total = math.prod(values[0].shape)
    name, ranks = short(op), tuple(attrs.get("group", ()))
    n = len(ranks)
    if name == "all_reduce":
        own = ceil_chunk(total, n, ranks.index(rank))[0]
        total = total - own + (n - 1) * own
    elif name == "all_gather":
        total *= n - 1
    elif name == "reduce_scatter":
        total -= math.prod(op.result(0).shape)
    elif name == "all_to_all":
        sizes = attrs["split_sizes"]
        total -= total * sizes[attrs["index"]] // max(sum(sizes), 1)
    elif name not in ("p2p_send", "send_v2"):
        return 0
    return total * values[0].dtype.itemsize


def _named(op: Operation, given: str = "") -> str:
    names = [str(op.attributes[n].value) for n in ("name", "parameter_name", "output_name") if n in op.attributes]
    return " ".join([short(op) + given, *names])


def _types(program: Program) -> list[DistTensorType]:
    types = (v.type() for op in program.global_block() for v in op.results())
    return [t for t in types if isinstance(t, DistTensorType)]


def _small(cut: Cut) -> Sheet:
    sheet = Sheet("")
    draw_small(sheet, cut)
    return sheet


def _width(lines: Sequence[str]) -> float:
    return max((text_width(line, 11, mono=True) for line in lines), default=0.0) + 2 * PAD
