"""Which nests a function will have, and which blocks go into them: found out before anything is changed.

The axes of a nest are *rows* (its outer loops) and what lies inside a row.  Row by row, a nest makes *passes* over the
elements of a row: a reduction along the row is known after its pass, so what reads it is in a later one.  A reduction
over rows is known only after the nest, so what reads it is in a later nest.

    softmax, x: f32[i, j]                       one nest, rows i
        max_0 (folds j)                             pass 0
        exp_2 = exp(x - max_0), sum_3 (folds j)     pass 1
        y0 = exp_2 / sum_3                          pass 2

Element-wise blocks have no pass of their own: they are computed wherever somebody reads them (`again`), but for
expensive ones that two passes need, which are kept from the first of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from minipd.cinn.ir.ast import Expr
from minipd.cinn.schedule.config import BaseInfo, Place, ScheduleConfig
from minipd.cinn.schedule.tactics.group import BlockInfo, number

__all__ = ["Arrangement", "Kept", "Nest", "arrange"]

Axes = frozenset[str]


@dataclass
class Nest:
    """rows: its outer axes, in order.  passes: for each block in it, the number of its pass."""

    rows: tuple[str, ...]
    passes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """Where a value is kept; `output` names the output in whose row it is."""

    place: Place
    output: str | None = None


@dataclass
class Arrangement:
    """blocks: what `group_of` found.  nests: in the order in which they run.  kept: values that have a place of their
    own, element-wise ones that are missing are computed again."""

    blocks: dict[str, BlockInfo]
    nests: list[Nest]
    kept: dict[str, Kept] = field(default_factory=dict)

    @cached_property
    def nest_of(self) -> dict[str, Nest]:
        return {name: nest for nest in self.nests for name in nest.passes}

    def finished_late(self, name: str) -> bool:
        """Whether a reduction folds rows of its nest, so that it is known after it only."""
        return bool(self.blocks[name].folded.intersection(self.nest_of[name].rows))

    @cached_property
    def row(self) -> dict[str, Expr]:
        """The axes inside a row of the largest nest, and how far they go."""
        if not self.nests:
            return {}
        nest = max(self.nests, key=lambda nest: len(nest.passes))
        return {a: self.blocks[name].extents[a] for name in nest.passes for a in self.blocks[name].axes
                if a not in nest.rows}

    @property
    def base_info(self) -> BaseInfo:
        """What the largest nest is."""
        if not self.nests:
            return BaseInfo("", None, None, (0, 0))
        nest = max(self.nests, key=lambda nest: len(nest.passes))
        inner = list(self.row)
        extents = {a: n for name in nest.passes for a, n in self.blocks[name].extents.items()}
        reductions = [name for name in nest.passes if self.blocks[name].folded]
        late = sum(map(self.finished_late, reductions))
        folded = {a for name in reductions for a in self.blocks[name].folded if a in inner}
        space = "S" * len(nest.rows) + "".join("R" if a in folded else "S" for a in inner)
        return BaseInfo(space, size(extents, nest.rows), size(extents, inner), (len(reductions) - late, late))


def size(extents: Mapping[str, Expr], axes: Iterable[str]) -> int | None:
    """How many elements the axes run through, if that is known."""
    known = [number(extents[a]) for a in axes]
    return None if None in known else prod(known)  # type: ignore[arg-type]


def arrange(blocks: dict[str, BlockInfo], outputs: dict[str, np.dtype], config: ScheduleConfig) -> Arrangement:
    """The arrangement with the fewest nests over all rows; among equals, that with the shortest rows.

    outputs: the dtype of each output parameter.
    """
    sources = _sources(blocks)
    wanted = config.rows
    found = [_nests(blocks, sources, rows) for rows in (_candidates(blocks) if wanted is None else [wanted])]
    _, best = min(enumerate(found), key=lambda x: (*_price(x[1], blocks), x[0]))
    kept = _kept(best, sources, outputs, config)
    return Arrangement(blocks, best.nests, kept)


def _candidates(blocks: dict[str, BlockInfo]) -> list[tuple[str, ...]]:
    """Axes that may be the rows: what a reduction keeps, or folds, or keeps in front; all axes where there is none."""
    everything = list(dict.fromkeys(sorted(a for b in blocks.values() for a in b.axes)))
    found: list[tuple[str, ...]] = []
    for b in blocks.values():
        if b.folded:
            front = next((n for n, a in enumerate(b.axes) if a in b.folded), len(b.axes))
            found += [b.kept, tuple(a for a in b.axes if a in b.folded), b.axes[:front]]
    return list(dict.fromkeys(found)) or [tuple(everything)]


# ------------------------------------------------------------------------------------------------------- nests
#: for each block, what it needs of blocks with a nest of their own, and along which axes it stands where these do
Sources = dict[str, dict[str, Axes]]


def _sources(blocks: dict[str, BlockInfo], kept: dict[str, Kept] | None = None) -> Sources:
    """Through element-wise blocks, which are computed wherever they are needed (but for those in `kept`)."""
    found: Sources = {}
    for b in blocks.values():
        own: dict[str, Axes] = {}
        for read in b.reads:
            if blocks[read.buffer].terminal or read.buffer in (kept or {}):
                _add(own, read.buffer, read.aligned)
            else:
                for name, aligned in found[read.buffer].items():
                    _add(own, name, aligned & (read.aligned | (aligned - set(blocks[read.buffer].axes))))
        found[b.name] = own
    return found


def _add(found: dict[str, Axes], name: str, aligned: Axes) -> None:
    found[name] = found.get(name, aligned) & aligned


def _nests(blocks: dict[str, BlockInfo], sources: Sources, rows: tuple[str, ...]) -> Arrangement:
    """Every block with a nest of its own joins the last nest of its rows where it may; else it begins a new one."""
    nests: list[Nest] = []
    at: dict[str, int] = {}
    for b in blocks.values():
        if not b.terminal or b.kind == "init":
            continue
        own = rows if set(rows) <= set(b.axes) else (b.kept or b.axes)
        n = next((n for n in reversed(range(len(nests))) if nests[n].rows == own), None)
        number = None if n is None else _pass(blocks, sources[b.name], nests[n], n, at)
        if n is None or number is None:
            n, number = len(nests), 0
            nests.append(Nest(own))
        nests[n].passes[b.name] = number
        at[b.name] = n
    return Arrangement(blocks, nests)


def _pass(blocks: dict[str, BlockInfo], needs: dict[str, Axes], nest: Nest, n: int, at: dict[str, int]) -> int | None:
    """The number of the pass over the rows of a nest that a block can be in; None if it can't be in that nest."""
    number = 0
    rows = set(nest.rows)
    for name, aligned in needs.items():
        source = blocks[name]
        if at[name] > n:
            return None
        if at[name] == n:
            if source.folded & rows or not rows.intersection(source.kept) <= aligned:
                return None                             # known after the nest only, or needed from another row
            done = bool(source.folded) or not aligned >= set(source.kept)
            number = max(number, nest.passes[name] + done)
    return number


def _price(a: Arrangement, blocks: dict[str, BlockInfo]) -> tuple[int, ...]:
    """The fewer the better: nests over the most axes, nests without rows, loops in another order than in memory,
    reductions over some of the rows only, axes inside a row."""
    everything = {x for b in blocks.values() for x in b.axes}
    widest = max((len(b.axes) for b in blocks.values()), default=0)
    full = [nest for nest in a.nests if any(len(blocks[name].axes) == widest for name in nest.passes)]
    across = any(blocks[name].axes[:len(nest.rows)] != nest.rows for nest in full for name in nest.passes)
    rows = min((len(nest.rows) for nest in full), default=0)
    some = sum(bool(blocks[name].folded.intersection(nest.rows)) and not blocks[name].folded.issuperset(nest.rows)
               for nest in full for name in nest.passes)
    return len(full), rows == 0, across, some, len(everything) - rows


# -------------------------------------------------------------------------------------------------- kept values
Pass = tuple[int, int]          # the number of a nest, and of a pass in it


def _kept(a: Arrangement, sources: Sources, outputs: dict[str, np.dtype], config: ScheduleConfig) -> dict[str, Kept]:
    """From the last block to the first: what several passes need, directly or through what is computed again."""
    numbers = {id(nest): n for n, nest in enumerate(a.nests)}
    passes: dict[str, Pass] = {name: (numbers[id(nest)], p) for nest in a.nests for name, p in nest.passes.items()}
    readers: dict[str, list[tuple[str, Axes]]] = {}
    for b in a.blocks.values():
        for read in b.reads:
            readers.setdefault(read.buffer, []).append((b.name, read.aligned))
    chosen = dict(config.keep)
    kept: dict[str, Kept] = {}
    needed: dict[str, set[Pass]] = {}
    hosts: set[tuple[Pass, str]] = set()
    for b in reversed(list(a.blocks.values())):
        if b.terminal:
            continue
        found: set[Pass] = set()
        for name, _ in readers.get(b.name, []):
            if a.blocks[name].terminal:
                found.add(passes[name])
            else:
                found |= {min(needed[name])} if name in kept else needed[name]
        needed[b.name] = found
        if b.name in chosen:
            place = _chosen(a, b, chosen[b.name], found, outputs, passes, hosts)
        elif len(found) > 1 and len({n for n, _ in found}) == 1 and _full_cost(a, b, found) >= config.keep_cost:
            place = _place(a, b, found, outputs, passes, hosts, config)
        else:
            place = None
        if place and all(aligned >= set(b.axes) for _, aligned in readers[b.name]):
            kept[b.name] = place
            n, p = min(found)
            a.nests[n].passes[b.name] = p
            if place.output:
                hosts.add((max(found), place.output))
    for nest in a.nests:                                # in the order of the program again
        nest.passes = {name: nest.passes[name] for name in a.blocks if name in nest.passes}
    return kept


def _full_cost(a: Arrangement, b: BlockInfo, found: set[Pass]) -> int:
    """What computing the block's value again would cost for each element: not what it takes from values of the row."""
    rows = set(a.nests[min(found)[0]].rows)
    seen: set[str] = set()

    def visit(x: BlockInfo) -> None:
        if x.name in seen or x.terminal or set(x.axes) <= rows:
            return
        seen.add(x.name)
        for read in x.reads:
            visit(a.blocks[read.buffer])
    visit(b)
    return sum(a.blocks[name].cost for name in seen)


def _place(a: Arrangement, b: BlockInfo, found: set[Pass], outputs: dict[str, np.dtype], passes: dict[str, Pass],
           hosts: set[tuple[Pass, str]], config: ScheduleConfig) -> Kept | None:
    host = next(_hosts(a, b, found, outputs, passes, hosts), None)
    if host:
        return Kept("output", host)
    rows = a.nests[min(found)[0]].rows
    inner = [x for x in b.axes if x not in rows]
    elements = size(b.extents, inner)
    if elements is None and a.row.keys() >= set(inner):
        elements = config.row_at_most
    fits = elements is not None and elements * b.dtype.itemsize <= config.row_bytes
    return Kept("row") if fits and set(rows) <= set(b.axes) else None


def _chosen(a: Arrangement, b: BlockInfo, place: Place, found: set[Pass], outputs: dict[str, np.dtype],
            passes: dict[str, Pass], hosts: set[tuple[Pass, str]]) -> Kept | None:
    """Where a config wants the value, if it can be there."""
    if place == "output":
        host = next(_hosts(a, b, found, outputs, passes, hosts), None)
        return Kept("output", host) if host else None
    return None if place == "again" else Kept(place)


def _hosts(a: Arrangement, b: BlockInfo, found: set[Pass], outputs: dict[str, np.dtype], passes: dict[str, Pass],
           hosts: set[tuple[Pass, str]]) -> Iterator[str]:
    """The outputs that may hold the value: of its dtype and axes, written in the last pass that needs it, not in the
    first."""
    last = max(found)
    if any(p == last for p, _ in hosts):
        return                                          # one at a time: it has to be written last of all
    for name, dtype in outputs.items():
        y = a.blocks[name]
        if dtype == b.dtype and y.axes == b.axes and passes[name] == last and last != min(found):
            yield name
