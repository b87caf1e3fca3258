"""The plan of a reshard: which mesh axis changes when, from one set of placements to another on the same mesh.

`steps.py` has the steps and says which keep the value.  Of the ways that they make, the plan takes the cheapest (see
`cost.py`): so slices, which cost nothing, come before collectives that they make smaller, and where ranks are to swap
what they have, they do so directly.  With a few placements per axis it is found by search.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Replicate, Shard, canonical, check_placements
from minipd.dist.reshard import cost
from minipd.dist.reshard.steps import COLLECTIVES, AnyStep, Exchange, Placements, Step, right_steps
from minipd.framework.dim import is_symbolic

__all__: list[str] = []

#: ranks up to which every block of an exchange is looked at, to see whether it is cheaper
FEW = 32


class Plan(tuple[AnyStep, ...]):
    """The steps of a reshard, in order; and, for a picture, what it starts from.

    src, dst: the placements at the beginning and in the end, Replicate on axes of size 1.  ndim: how many dimensions
    the tensor has.
    """

    src: Placements
    dst: Placements
    mesh: ProcessMesh
    ndim: int
    #: each step, with the placements before and after it
    stages: tuple[tuple[AnyStep, Placements, Placements], ...]
    #: whether a split factor parts a dimension at some time
    parted: bool

    @classmethod
    def of(cls, steps: Iterable[AnyStep], src: Placements, dst: Placements, mesh: ProcessMesh, ndim: int) -> Plan:
        self = cls(steps)
        self.src, self.dst, self.mesh, self.ndim = src, dst, mesh, ndim
        placed = [src]
        for step in self:
            placed.append(step.applied(placed[-1]))
        self.stages = tuple(zip(self, placed[:-1], placed[1:], strict=True))
        self.parted = any(isinstance(p, Shard) and p.factor > 1 for placements in placed for p in placements)
        return self


@functools.lru_cache(maxsize=4096)
def plan(src: Placements, dst: Placements, mesh: ProcessMesh, ndim: int, shape: tuple | None = None) -> Plan:
    """The steps that bring a tensor of `ndim` dimensions from placements `src` to `dst`; () if there is nothing to do.

    Axes of size 1 need none: a lone rank holds the same whatever its placement is called.
    shape: the global one, which decides what is cheapest; without it, or with symbols in it, chunks count as even, and
    ranks exchange no blocks.
    Raises: ValueError for placements that do not fit the mesh or the tensor.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Partial, Shard
    >>> mesh = parse_mesh("dp=2,tp=2")
    >>> print(describe(plan((Partial(), Replicate()), (Replicate(), Shard(0)), mesh, 2), mesh))
    tp: Replicate() -> Shard(dim=0)  (slice)
    dp: Partial(reduce_type=SUM) -> Replicate()  (all_reduce)
    >>> swapped = Shard(0, shard_order=1), Shard(0)
    >>> print(describe(plan((Shard(0), Shard(0)), swapped, mesh, 1, (8,)), mesh))
    every rank: [Shard(dim=0), Shard(dim=0)] -> [Shard(dim=0, shard_order=1), Shard(dim=0)]  (exchange)
    """
    start = without_lone(check_placements(src, mesh, ndim, "reshard from"), mesh)
    goal = without_lone(check_placements(dst, mesh, ndim, "reshard to"), mesh)
    dear, found = _cheapest(start, goal, mesh, ndim, shape)
    gathers = len(found) > 1 and {"all_gather", "all_to_all"} & {*collectives(found)}  # else all is sent that must be
    if gathers and shape is not None and not is_symbolic(shape) and mesh.size <= FEW:
        _, found = _cheapest(start, goal, mesh, ndim, shape, most=dear)
    return Plan.of(found, start, goal, mesh, ndim)


def without_lone(placements: Placements, mesh: ProcessMesh) -> Placements:
    """The placements with Replicate on every axis of size 1, where they all say the same."""
    return canonical([Replicate() if size == 1 else p for p, size in zip(placements, mesh.sizes, strict=True)])


def _cheapest(start: Placements, goal: Placements, mesh: ProcessMesh, ndim: int, shape: tuple | None,
              most: Any = 0) -> tuple[Any, tuple[AnyStep, ...]]:
    """(cost, steps): Dijkstra's search.  Between equally dear ways the fewest bytes decide, then the fewest steps, then
    which was found first.   most: what a way with an exchange in it may cost."""
    largest = 0 if shape is None or is_symbolic(shape) else max(range(ndim), key=shape.__getitem__, default=0)
    queue: list[tuple[Any, Any, int, int, Placements, tuple[AnyStep, ...]]] = [(0, 0, 0, 0, start, ())]
    done: set[Placements] = set()
    found = 0
    while queue:
        dear, amount, count, _, now, steps = heapq.heappop(queue)
        if now == goal:
            return dear, steps
        if now in done:
            continue
        done.add(now)
        may: list[AnyStep] = [*right_steps(now, goal, mesh.sizes, ndim, largest)]
        if dear + 2 * cost.ALPHA < most:
            may += _exchanges(now, goal)
        for step in may:
            after = step.applied(now)
            if after not in done:
                found += 1
                more, sent = cost.of_step(step, now, mesh, shape)
                heapq.heappush(queue, (dear + more, amount + sent, count + 1, found, after, (*steps, step)))
    raise AssertionError(f"reshard {start} -> {goal}: through Replicate everywhere there is always a way")


def _exchanges(now: Placements, goal: Placements) -> list[AnyStep]:
    """The exchange that brings every axis to where it shall be, if only Partials that stay are there; what shall become
    Partial is whole until then."""
    target = canonical([q if not q.is_partial() or p is q else Replicate() for p, q in zip(now, goal, strict=True)])
    if target == now or any(p.is_partial() and p is not q for p, q in zip(now, target, strict=True)):
        return []
    return [Exchange(now, target)]


def collectives(steps: Sequence[AnyStep]) -> tuple[str, ...]:
    """The names of the collectives in a plan, in order."""
    return tuple(s.action for s in steps if s.action in COLLECTIVES)


def describe(steps: Sequence[AnyStep], mesh: ProcessMesh) -> str:
    """The plan as text, a line per step."""
    return "\n".join(
        f"{mesh.names[s.axis]}: {s.src!r} -> {s.dst!r}  ({s.action})" if isinstance(s, Step) else
        f"every rank: {[*s.src]} -> {[*s.dst]}  ({s.action})" for s in steps) or "nothing to do"


def bytes_sent(steps: Plan, shape: Sequence[int], dtype: Any, rank: int) -> int:
    """The bytes that `rank` gives to others in the whole plan (see `cost.py` for how they are counted).

    >>> import numpy as np
    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Partial
    >>> to_whole = plan((Partial(),), (Replicate(),), parse_mesh("tp=4"), 2)
    >>> bytes_sent(to_whole, (6, 8), np.dtype("float32"), 0)            # 3/4 of 192 bytes, there and back
    288
    """
    return dtype.itemsize * sum(cost.sent(step, now, steps.mesh, shape, rank) for step, now, _ in steps.stages)
