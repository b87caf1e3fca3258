"""Rows whose elements are those of their operands, at other places: parts, joined tensors, reversed and rolled ones.

    slice       out[i] = x[start + i]
    concat      out[i] = x0[i] where i < n0, else x1[i - n0]
    set_value   out[i] = value[(i - start) / stride] in the part that is written, else x[i]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.cinn.compute.scalar import Scalar
from minipd.cinn.compute.table import Piece, Place, Positions, indexed
from minipd.framework.dim import same

__all__: list[str] = []


def _identity(shape: tuple) -> list[Any]:
    return list(range(len(shape)))


def _moved(dim: int, by: Any, stride: int = 1) -> Place:
    """Along the result's dimension `dim`, position i is by + i * stride of the operand."""
    def place(at: Positions) -> Scalar:
        strided = at[dim] if stride == 1 else at[dim] * stride
        return strided - at.size(-by) if isinstance(by, int) and by < 0 else strided + at.size(by)
    return place


# -------------------------------------------------------------------------------------------------------- parts
@indexed("slice")
@indexed("strided_slice")
def part(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    index = _identity(outs[0])
    strides = attrs.get("strides", (1,) * len(attrs["axes"]))
    for axis, start, stride in zip(attrs["axes"], attrs["starts"], strides, strict=True):
        if stride != 1 or not same(shapes[0][axis], outs[0][axis]):
            index[axis] = _moved(axis, start, stride)
    return [Piece(0, tuple(index), counts=_counts(index))]


@indexed("split")
def section(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    axis = attrs["axis"]
    index = _identity(outs[k])
    if not same(shapes[0][axis], outs[k][axis]):
        before: Any = 0
        for out in outs[:k]:
            before = before + out[axis]
        index[axis] = _moved(axis, before)
    return [Piece(0, tuple(index), counts=_counts(index))]


def _counts(index: list[Any]) -> tuple[int, ...]:
    """The dimensions of the result that are not the operand's as they are."""
    return tuple(d for d, at in enumerate(index) if not isinstance(at, int))


@indexed("set_value")
def written_part(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    x, value = shapes
    named = list(zip(attrs["axes"], attrs["starts"], attrs["ends"], attrs["strides"], strict=True))
    lead = len(x) - len(value)
    index: list[Any] = [d + lead for d in range(len(value))]
    for axis, start, _, stride in named:
        if axis >= lead and not same(value[axis - lead], 1):
            index[axis - lead] = _within(axis, start, stride)
    if lead < 0:                                # dimensions of size 1 in front
        index = [0] * -lead + index[-lead:]
    whole = all(same(x[axis], end) and same(start, 0) and stride == 1 for axis, start, end, stride in named)
    where = None if whole else _inside(named, x)
    return [Piece(1, tuple(index), where, tuple(axis for axis, *_ in named)), Piece(0, tuple(_identity(x)))]


def _within(axis: int, start: Any, stride: int) -> Place:
    """Which element of range(start, ..., stride) the position is."""
    def place(at: Positions) -> Scalar:
        far = at[axis] - at.size(start) if stride > 0 else at.size(start) - at[axis]
        return far if abs(stride) == 1 else far // abs(stride)
    return place


def _inside(named: list[tuple[int, Any, Any, int]], shape: tuple) -> Place:
    """Whether a position is in the part.  (Bounds that every position keeps are not asked for.)"""
    def where(at: Positions) -> Scalar:
        found: Scalar | None = None

        def also(condition: Scalar) -> None:
            nonlocal found
            found = condition if found is None else found & condition
        for axis, start, end, stride in named:
            i = at[axis]
            low, high = (start, end) if stride > 0 else (end + 1, start + 1)
            if not same(low, 0):
                also(i >= at.size(low))
            if not same(high, shape[axis]):
                also(i < at.size(high))
            if abs(stride) > 1:
                also(((i - at.size(start)) % abs(stride)).equals(0))
        return at.size(0).equals(0) if found is None else found
    return where


# ------------------------------------------------------------------------------------------------------- joined
@indexed("concat")
def joined(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    axis = attrs["axis"]
    pieces: list[Piece] = []
    before: Any = 0
    for n, shape in enumerate(shapes):
        if same(shape[axis], 0):
            continue
        index = _identity(outs[0])
        if not same(shape[axis], outs[0][axis]):
            index[axis] = _moved(axis, 0 - before)
        before = before + shape[axis]
        pieces.append(Piece(n, tuple(index), _below(axis, before), (axis,)))
    if not pieces:
        return [Piece(None)]
    return [*pieces[:-1], pieces[-1]._replace(where=None, counts=(axis,) if len(pieces) > 1 else ())]


def _below(axis: int, end: Any) -> Place:
    return lambda at: at[axis] < at.size(end)


@indexed("pad")
def padded(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    paddings = attrs["paddings"]
    before, after = paddings[::2], paddings[1::2]
    if any(not same(n, 0) and not isinstance(n, int) for n in paddings) or any(
            isinstance(n, int) and n < 0 for n in paddings):
        raise TypeError(f"paddings {paddings}: expected numbers that are not negative")
    index = _identity(outs[0])
    named = []
    for d, (b, a, n) in enumerate(zip(before, after, shapes[0], strict=True)):
        if b or a:
            index[d] = _moved(d, -b)
            named.append((d, b, b + n, 1))
    if not named:
        return [Piece(0, tuple(index))]
    counts = _counts(index)
    around = Piece(None, counts=counts, value=attrs["pad_value"])
    return [Piece(0, tuple(index), _inside(named, outs[0]), counts), around]


# ------------------------------------------------------------------------------------------------ in other order
@indexed("flip")
def reversed_along(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    index = _identity(outs[0])
    for axis in attrs["axis"]:
        index[axis] = _moved(axis, outs[0][axis] - 1, -1)
    return [Piece(0, tuple(index), counts=_counts(index))]


@indexed("roll")
def rolled(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    """One piece for each way in which the axes wrap around or do not."""
    shape = outs[0]
    by: dict[int, int] = {}
    for shift, axis in zip(attrs["shifts"], attrs["axis"], strict=True):
        if not isinstance(shape[axis], int):
            raise TypeError(f"roll along an axis of size {shape[axis]}")
        by[axis] = (by.get(axis, 0) + shift) % (shape[axis] or 1)
    pieces = [Piece(0, tuple(_identity(shape)))]
    for axis, shift in by.items():
        if shift:
            pieces = [_shifted(p, axis, shift - wrapped, shift if wrapped else None, tuple(by))
                      for p in pieces for wrapped in (shape[axis], 0)]
    return pieces


def _shifted(piece: Piece, axis: int, by: int, below: int | None, counts: tuple[int, ...]) -> Piece:
    index = list(piece.places)
    index[axis] = _moved(axis, -by)
    inside = None if below is None else _below(axis, below)
    return piece._replace(places=tuple(index), where=_both(piece.where, inside), counts=counts)


def _both(one: Place | None, other: Place | None) -> Place | None:
    if one is None or other is None:
        return one or other
    return lambda at: one(at) & other(at)


# ------------------------------------------------------------------------------------- diagonals and triangles
@indexed("diagonal")
def diagonal(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    """out[..., i] = x[.., i, .., i + offset, ..], which starts lower in axis1 where the offset is negative."""
    axis1, axis2, offset = attrs["axis1"], attrs["axis2"], attrs["offset"]
    last = len(outs[0]) - 1
    rest = iter(range(last))
    places: list[int | Place] = []
    for d in range(len(shapes[0])):
        if d in (axis1, axis2):
            places.append(_moved(last, max(offset, 0) if d == axis2 else max(-offset, 0)))
        else:
            places.append(next(rest))
    return [Piece(0, tuple(places), counts=(last,))]


@indexed("fill_diagonal_tensor")
def written_diagonal(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    """y, which broadcasts to the diagonals, where the place is on one."""
    dim1, dim2, offset = attrs["dim1"], attrs["dim2"], attrs["offset"]
    x, y = shapes
    part: list[int | Place] = [d for d in range(len(x)) if d not in (dim1, dim2)]
    part.append(_moved(dim1, min(offset, 0)))
    return [Piece(1, tuple(part[len(part) - len(y):]), lambda at: (at[dim2] - at[dim1]).equals(offset), (dim1, dim2)),
            Piece(0, tuple(_identity(x)))]


def _triangle(keeps: Callable[[Scalar, Scalar], Scalar]) -> Callable:
    def pieces(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
        row, column, shift = len(outs[0]) - 2, len(outs[0]) - 1, attrs.get("diagonal", 0)
        return [Piece(0, tuple(_identity(outs[0])), lambda at: keeps(at[column], at[row] + shift), (row, column)),
                Piece(None, counts=(row, column))]
    return pieces


indexed("tril")(_triangle(lambda column, diagonal: column <= diagonal))
indexed("triu")(_triangle(lambda column, diagonal: column >= diagonal))


@indexed("eye")
def unit(attrs: dict[str, Any], shapes: list[tuple], outs: list[tuple], k: int) -> list[Piece]:
    return [Piece(None, where=lambda at: at[0].equals(at[1]), counts=(0, 1), value=1), Piece(None, counts=(0, 1))]
