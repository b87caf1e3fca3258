"""How a sharded tensor is cut, and where its pieces stand in a drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Shard, check_placements
from minipd.dist.sharding import local_blocks, local_shape, local_window, sharding_text
from minipd.framework.dtype import to_np
from minipd.viz.style import PIECES

__all__ = ["Cut"]

#: (shape, offsets) of a block of the tensor
Window = tuple[tuple[int, ...], tuple[int, ...]]

SIDE, LEAST = 190.0, 34.0       # pixels: the longer side of the whole tensor, and the least of any


@dataclass(frozen=True)
class Cut:
    """A tensor, its placements, and how it is drawn: dimension `down` from top to bottom, `across` from left to right
    (None: the tensor has no such dimension), the planes that the chunks of other split dimensions make."""

    shape: tuple
    sizes: tuple[int, ...]                  # the shape, with numbers for what is symbolic
    dtype: np.dtype | None                  # None: it does not matter, and nothing is said of bytes
    mesh: ProcessMesh
    placements: tuple[Placement, ...]
    down: int | None
    across: int | None
    planes: tuple[int, ...]                 # the other split dimensions

    @classmethod
    def of(cls, shape: Sequence[Any], mesh: ProcessMesh, placements: Sequence[Placement], dtype: Any) -> Cut:
        """Choose what is drawn how: two split dimensions if there are two, else those beside the split one."""
        checked = check_placements(placements, mesh, len(shape), "sharding")
        ways = [math.prod([s for p, s in zip(checked, mesh.sizes, strict=True) if p.is_shard(d)])
                for d in range(len(shape))]
        parts = [math.prod([p.factor for p in checked if isinstance(p, Shard) and p.dim == d]) for d in range(len(shape))]
        sizes = tuple(d if isinstance(d, int) else 4 * w * k for d, w, k in zip(shape, ways, parts, strict=True))
        split = [d for d in range(len(shape)) if any(p.is_shard(d) for p in checked)]
        whole = [d for d in range(len(shape)) if d not in split]
        drawn = sorted([*split[-2:], *(whole[::-1] + [None, None])][:2], key=lambda d: -1 if d is None else d)
        return cls(tuple(shape), sizes, None if dtype is None else to_np(dtype), mesh, checked, drawn[0], drawn[1], tuple(split[:-2]))

    def after(self, placements: Sequence[Placement], mesh: ProcessMesh | None = None) -> Cut:
        """The same tensor under other placements (on another mesh), drawn the same way where that shows them."""
        other = Cut.of(self.shape, mesh or self.mesh, placements, self.dtype)
        if {p.dim for p in other.placements if isinstance(p, Shard)} <= {self.down, self.across}:
            return Cut(self.shape, other.sizes, self.dtype, other.mesh, other.placements, self.down, self.across, ())
        return other

    @property
    def text(self) -> str:
        """The notation: `f32[5_tp, 8]`."""
        return sharding_text(self.shape, self.dtype, self.mesh, self.placements)

    def named(self, name: str) -> str:
        """The notation with a name: `x: f32[5_tp, 8]`, or without a dtype `x[5_tp, 8]`."""
        return (f"{name}: " if name and self.dtype is not None else name) + self.text

    def windows(self, rank: int) -> list[Window]:
        """(shape, offsets) of each block that a rank holds: one, or several if a split factor parts a dimension."""
        if not any(isinstance(p, Shard) and p.factor > 1 for p in self.placements):
            return [local_window(self.sizes, self.mesh, self.placements, rank)]
        found = [(b.shape, b.offsets) for b in local_blocks(self.sizes, self.mesh, self.placements, rank)]
        return found or [(local_shape(self.sizes, self.mesh, self.placements, rank), (0,) * len(self.sizes))]

    @cached_property
    def pieces(self) -> dict[Window, list[int]]:
        """Window -> the ranks that hold it, in the order of the windows in the tensor."""
        found: dict[Window, list[int]] = {}
        for rank in self.mesh.process_ids:
            for window in self.windows(rank):
                found.setdefault(window, []).append(rank)
        return dict(sorted(found.items(), key=lambda item: item[0][1]))

    def local(self, rank: int) -> str:
        """The local shape in words: `[3, 8]`, `[B/2, 8]`; `nothing` if it has no elements."""
        found = local_shape(self.sizes, self.mesh, self.placements, rank)
        if 0 in found:
            return "nothing"
        ways = [math.prod([s for p, s in zip(self.placements, self.mesh.sizes, strict=True) if p.is_shard(d)])
                for d in range(len(found))]
        dims = [str(n) if isinstance(d, int) else f"{d}/{w}" if w > 1 else str(d)
                for n, d, w in zip(found, self.shape, ways, strict=True)]
        return f"[{', '.join(dims)}]"

    def part(self, rank: int) -> str:
        """Which part of a sum (a maximum, ...) a rank holds; nothing if it is no part."""
        at, found, of = self.mesh.coordinate(rank), 0, 1
        kinds = []
        for p, i, size in zip(self.placements, at, self.mesh.sizes, strict=True):
            if isinstance(p, Partial):
                found, of = found * size + i, of * size
                kinds.append(p.op)
        return f"part {found + 1} of {of}" + ("" if set(kinds) <= {"sum"} else f" ({kinds[0]})") if of > 1 else ""

    def extent(self) -> tuple[float, float]:
        """Width and height of one plane.  Sides are tempered: 1024 by 16 is drawn long, but not as a hair."""
        if self.across is None:
            return LEAST, LEAST
        if self.down is None:
            return SIDE, LEAST
        ratio = math.sqrt(max(self.sizes[self.down], 1) / max(self.sizes[self.across], 1))
        return (SIDE, max(SIDE * ratio, LEAST)) if ratio < 1 else (max(SIDE / ratio, LEAST), SIDE)

    @cached_property
    def levels(self) -> list[tuple[int, ...]]:
        """The planes, by the offsets of the dimensions that are not drawn."""
        return sorted({tuple(offsets[d] for d in self.planes) for _, offsets in self.pieces})

    def box(self, window: tuple, width: float, height: float) -> tuple[int, float, float, float, float]:
        """(plane, x, y, width, height) of a window, in a plane of that size."""
        local, offsets = window
        level = self.levels.index(tuple(offsets[d] for d in self.planes))

        def span(d: int | None, side: float) -> tuple[float, float]:
            if d is None or not self.sizes[d]:
                return 0.0, side
            return offsets[d] / self.sizes[d] * side, local[d] / self.sizes[d] * side

        (x, w), (y, h) = span(self.across, width), span(self.down, height)
        return level, x, y, w, h

    def colour(self, window: Window) -> str:
        """The colour of a piece."""
        return self._colours[window]

    @cached_property
    def _colours(self) -> dict[Window, str]:
        """All that one rank holds has one colour."""
        holders = list(dict.fromkeys(map(tuple, self.pieces.values())))
        return {window: PIECES[holders.index(tuple(ranks)) % len(PIECES)] for window, ranks in self.pieces.items()}
