"""Reading the notation of sharded tensors: `x: f32[16_dp, 128, 64_tp]{P_pp}`."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard, canonical
from minipd.framework import dtype as dtypes
from minipd.framework.errors import InputError

__all__ = ["Described", "parse_sharding"]

FORM = "a sharded tensor such as f32[16_dp, 128, 64_tp]{P_pp}"


class Described(NamedTuple):
    """What the notation says; shape is global."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    placements: tuple[Placement, ...]


def parse_sharding(text: str, mesh: ProcessMesh) -> Described:
    """Read the notation that `sharding_text` writes; the dtype (f32 if left out) may have a name before it.

    Axes of one dimension stand in the order in which they split it, a split factor in brackets.
    Raises: InputError for what is no such text, or names an axis that the mesh lacks or twice.

    >>> from minipd.dist.mesh import parse_mesh
    >>> parse_sharding("x: f32[16_dp, 128]{P_tp}", parse_mesh("dp=2,tp=2"))
    Described(name='x', dtype=dtype('float32'), shape=(16, 128), placements=(Shard(dim=0), Partial(reduce_type=SUM)))
    """
    match = re.fullmatch(r"\s*(?:([\w.]+)\s*:)?\s*(\w*)\s*\[([^\]]*)\]\s*(?:\{([^}]*)\})?\s*", text)
    if match is None:
        raise InputError(FORM, repr(text), "write the dtype, the dimensions with the axes that split them, what is "
                                           "partial")
    kinds = {t.short: t.np for t in dtypes.ALL} | {t.name: t.np for t in dtypes.ALL}
    if match[2] and match[2] not in kinds:
        raise InputError(FORM, repr(text), f"{match[2]} is no dtype; there are {', '.join(t.short for t in dtypes.ALL)}")
    found: dict[str, Placement] = {}

    def place(axis: str, placement: Placement) -> None:
        if axis not in mesh.names or axis in found:
            raise InputError(f"axes of the mesh {mesh.text()}, each once", f"{axis} in {text!r}", "change the tensor "
                                                                                                   "or the mesh")
        found[axis] = placement

    shape = []
    for d, dim in enumerate(filter(None, (part.strip() for part in match[3].split(",")))):
        size, *axes = dim.split("_")
        if not size.isdecimal():
            raise InputError(FORM, repr(text), f"{size!r} is no size")
        shape.append(int(size))
        for number, axis in enumerate(axes):            # the one that splits first stands first
            named = re.fullmatch(r"(\w*)(?:\((\d+)\))?", axis)
            if named is None or named[2] == "0":
                raise InputError(FORM, repr(text), f"{axis!r} is no axis, or one with a split factor such as tp(3)")
            place(named[1], Shard(d, shard_order=number, split_factor=int(named[2] or 1)))
    for part in filter(None, (p.strip() for p in (match[4] or "").split(","))):
        kind, _, axis = part.partition("_")
        try:
            place(axis, Partial(kind[1:] or "sum"))
        except ValueError as error:
            raise InputError(FORM, repr(text), str(error)) from None
    placements = canonical([found.get(axis, Replicate()) for axis in mesh.names])
    return Described(match[1] or "", kinds[match[2] or "f32"], tuple(shape), placements)
