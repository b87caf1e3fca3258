"""Rows that make a tensor of numbers, repeat one, or give it another shape without touching the order of its elements.

A reshape that does more than add and drop dimensions of size 1 has its dimensions found by `lower.axes`: a loop over
the new shape may need other indices than one over the old, and a reduction in front of it would be read in the wrong
rows (hard case C1).
"""

from __future__ import annotations

from typing import Any

from minipd.cinn.compute.table import Dims, broadcast, fill
from minipd.framework.dim import same

__all__: list[str] = []

fill("full")
fill("full_like")
fill("arange", "start", "step")
fill("dim", "size")


@broadcast("expand")
@broadcast("expand_as")
def expand(attrs: dict[str, Any], x: tuple, out: tuple) -> Dims:
    lead = len(out) - len(x)
    return tuple(None if i < lead or not same(x[i - lead], n) else i - lead for i, n in enumerate(out))


@broadcast("transpose")
def permuted(attrs: dict[str, Any], x: tuple, out: tuple) -> Dims:
    return tuple(attrs["perm"])


@broadcast("unsqueeze")
@broadcast("squeeze")
@broadcast("reshape")
def reshape(attrs: dict[str, Any], x: tuple, out: tuple) -> Dims | None:
    kept = [i for i, n in enumerate(x) if not same(n, 1)]
    found = [j for j, n in enumerate(out) if not same(n, 1)]
    if not all(same(x[i], out[j]) for i, j in zip(kept, found, strict=False)) or len(kept) != len(found):
        return None
    back = dict(zip(found, kept, strict=True))
    return tuple(back.get(j) for j in range(len(out)))
