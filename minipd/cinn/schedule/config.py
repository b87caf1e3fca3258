"""The numbers and choices behind the tactics: plain data, which a tuner may write as well as the rules here.

`BaseInfo` says what kind of work a function is; `BucketInfo` is a range of sizes; `config_for` gives the rules of thumb
for one.  A `ScheduleConfig` holds numbers, by which the tactics choose, and choices that are made already: those are
taken as they are, as long as they are legal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

__all__ = ["BaseInfo", "BucketInfo", "ScheduleConfig", "buckets_for", "config_for"]

#: where a value is that several passes over a row need: computed again by each, in the row of the output that is
#: written last, in a local row, or in an array of its own
Place = Literal["again", "output", "row", "array"]

#: the tactics in the order in which they run
TACTICS = ("AlignIterSpace", "ComputeInline", "TwoStepReduction", "Tile", "ComputeAt", "ArrangeStorage", "Bind",
           "Vectorize")


@dataclass(frozen=True)
class BucketInfo:
    """The sizes that a schedule is for: inclusive (lowest, highest) numbers of elements of a row, and of rows; None
    for any number.

    >>> BucketInfo(row=(1, 1024)).holds(rows=7, row=1024)
    True
    """

    rows: tuple[int, int | None] = (0, None)
    row: tuple[int, int | None] = (0, None)

    def holds(self, rows: int | None, row: int | None) -> bool:
        """Whether these sizes lie in it; an unknown one lies only in what holds all sizes."""
        return all(low <= n and (high is None or n <= high) if n is not None else (low, high) == (0, None)
                   for n, (low, high) in ((rows, self.rows), (row, self.row)))


@dataclass(frozen=True)
class BaseInfo:
    """What kind of work a function is.

    Attributes:
        space: its iteration space, a letter for each axis: "S" rows, "R" inside a row.  "SR" has row reductions.
        rows, row: how many rows there are, and elements in each; None where only the run knows.
        reductions: how many of its blocks fold a row, and how many fold rows.
    """

    space: str
    rows: int | None
    row: int | None
    reductions: tuple[int, int]


@dataclass(frozen=True)
class ScheduleConfig:
    """Numbers behind the rules of thumb:

        row_bytes: the longest local row.
        keep_cost: what a value must cost, in additions, to be kept rather than computed again.
        chunks: how many chunks a sum over rows gets, each of least_rows to most_rows; flat_chunks, least_elements: the
            same for a sum over single elements, whose partial results are scalars.
        parallel_elements: a loop nest with fewer iterations in all stays on one thread.
        block, block_from: the length of the blocks of a long float32 sum, and the sums that have none (the lanes of a
            vector are as many partial sums).
        row_at_most: what a row's length does not exceed, where only the run knows it; None if anything may come.
        tile: how many neighbours a reduction along another axis takes at once, where they lie side by side in memory.

    Choices:

        rows: the letters of the axes that are rows, or None for the rules to find them.
        keep: (block, place) for values whose place is not left to the rules.
        without: names of tactics that are left out.
    """

    row_bytes: int = 256 * 1024
    keep_cost: int = 8
    chunks: int = 16
    least_rows: int = 4
    most_rows: int = 1024
    flat_chunks: int = 64
    least_elements: int = 1024
    parallel_elements: int = 16384
    block: int = 1024
    block_from: int = 4096
    tile: int = 64
    row_at_most: int | None = None
    rows: tuple[str, ...] | None = None
    keep: tuple[tuple[str, Place], ...] = ()
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = sorted(set(self.without) - set(TACTICS))
        if unknown:
            raise ValueError(f"ScheduleConfig: no tactic {', '.join(unknown)}; there are {', '.join(TACTICS)}")
        places = sorted({place for _, place in self.keep} - {"again", "output", "row", "array"})
        if places:
            raise ValueError(f"ScheduleConfig: no place {', '.join(places)}; there are again, output, row, array")

    def to_json(self) -> str:
        """What differs from the defaults.

        >>> ScheduleConfig(chunks=8, keep=(("exp_2", "again"),)).to_json()
        '{"chunks": 8, "keep": [["exp_2", "again"]]}'
        """
        plain = asdict(self)
        return json.dumps({f.name: plain[f.name] for f in fields(self) if plain[f.name] != f.default})

    @staticmethod
    def from_json(text: str) -> ScheduleConfig:
        """
        >>> ScheduleConfig.from_json('{"chunks": 8, "keep": [["exp_2", "again"]]}').keep
        (('exp_2', 'again'),)
        """
        found = json.loads(text)
        for name in ("keep", "without", "rows"):
            if name in found:
                found[name] = tuple(tuple(x) if isinstance(x, list) else x for x in found[name])
        return ScheduleConfig(**found)


#: by bucket, the first that holds: what differs from the defaults
RULES: tuple[tuple[BucketInfo, dict[str, Any]], ...] = ((BucketInfo(), {}),)


def config_for(info: BaseInfo, rules: Mapping[BucketInfo, dict[str, Any]] | None = None,
               bucket: BucketInfo | None = None) -> ScheduleConfig:
    """The config of the first bucket that the function's sizes lie in; the defaults if there is none.

    rules: what a tuner has found, bucket by bucket; looked at before the built-in ones.
    bucket: the only sizes that it is to serve, if the run decides on these (see `buckets_for`).
    """
    row_at_most = bucket.row[1] if bucket is not None and info.row is None else None
    row = info.row if row_at_most is None else row_at_most
    for known, numbers in [*(rules or {}).items(), *RULES]:
        if known.holds(info.rows, row):
            return replace(ScheduleConfig(), row_at_most=row_at_most, **numbers)
    return ScheduleConfig(row_at_most=row_at_most)


def buckets_for(info: BaseInfo) -> tuple[BucketInfo, ...]:
    """The buckets that get a schedule each: one, but for row reductions whose length only the run knows.

    Short rows need no blocks in their sums, and what two passes need can be kept in a local row.

    >>> [bucket.row for bucket in buckets_for(BaseInfo("SR", None, None, (1, 0)))]
    [(0, 4096), (4097, None)]
    """
    if info.row is not None or not info.reductions[0]:
        return (BucketInfo(),)
    short = ScheduleConfig().block_from
    return BucketInfo(row=(0, short)), BucketInfo(row=(short + 1, None))
