"""Primitives that compute nothing: notes on loops and blocks for those who come later (`annotate`, `unannotate`), and
barriers (`sync_threads`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from minipd.cinn.ir.ast import THREAD_AXES, For, Function, ScheduleBlock, SyncThreads
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.nests import Nests

__all__ = ["annotate", "sync_threads", "unannotate"]


def annotate(nests: Nests, name: str, key: str, value: Any) -> tuple[Function, None]:
    """The block or loop says `key: value`; what it said of the key before is gone."""
    found = _loop_or_block(nests, name, f"annotate({name}, {key!r}, {value!r})")
    kept = tuple((k, v) for k, v in found.annotations if k != key)
    return nests.edited({id(found): [replace(found, annotations=(*kept, (key, value)))]}), None


def unannotate(nests: Nests, name: str, key: str) -> tuple[Function, None]:
    """The block or loop says nothing of the key any more."""
    what = f"unannotate({name}, {key!r})"
    found = _loop_or_block(nests, name, what)
    kept = tuple((k, v) for k, v in found.annotations if k != key)
    if len(kept) == len(found.annotations):
        said = ", ".join(k for k, _ in found.annotations)
        raise ScheduleError(f"{what}: {name} says nothing of {key!r}; it has {said or 'no annotations'}")
    return nests.edited({id(found): [replace(found, annotations=kept)]}), None


def _loop_or_block(nests: Nests, name: str, what: str) -> For | ScheduleBlock:
    return nests.loop(name, what) if name in nests.loops else nests.block(name, what)


def sync_threads(nests: Nests, block: str, after: bool = True) -> tuple[Function, None]:
    """The threads of a GPU block meet behind the block (or in front of it) before any goes on.

    Needs: a loop around the block that is bound to a threadIdx axis.
    """
    what = f"sync_threads({block}, after={after})"
    found = nests.block(block, what)
    if not any(loop.kind in THREAD_AXES for loop in nests.blocks[block].around):
        raise ScheduleError(f"{what}: no loop around {block} is bound to a threadIdx axis: there are no threads that "
                            "could meet")
    return nests.edited({id(found): [found, SyncThreads()] if after else [SyncThreads(), found]}), None
