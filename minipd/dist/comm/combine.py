"""What each collective does with the arrays of all members, where one process has them all.

A function of `WORK` is called once for a group: (group, the members' operands, *parameters) -> their results.  All
results are copies, because ranks run one after the other: by the time the next looks, this one may have written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.comm.base import Group
from minipd.dist.comm.errors import MismatchError
from minipd.dist.comm.reduction import fold

__all__: list[str] = []


def _all_reduce(group: Group, arrays: list[np.ndarray], op: str) -> list[np.ndarray]:
    return _for_each(fold(arrays, op), group.size)


def _all_gather(group: Group, arrays: list[np.ndarray], axis: int, sizes: tuple[int, ...]) -> list[np.ndarray]:
    return _for_each(_join(arrays, axis), group.size)


def _reduce_scatter(group: Group, chunks: list[list[np.ndarray]], axis: int, sizes: tuple[int, ...],
                    op: str) -> list[np.ndarray]:
    return [fold(mine, op) for mine in zip(*chunks, strict=True)]


def _all_to_all(group: Group, operands: list[tuple], split_axis: int, concat_axis: int, *_: Any) -> list[np.ndarray]:
    results = []
    for i, (_, expected) in enumerate(operands):
        mine = [pieces[i] for pieces, _ in operands]
        if (got := tuple(piece.shape[concat_axis] for piece in mine)) != expected:
            raise MismatchError(f"all_to_all: rank {group.ranks[i]} expects {expected} along axis {concat_axis} from "
                                f"the ranks {group.ranks}, but they give it {got}")
        results.append(_join(mine, concat_axis))
    return results


def _broadcast(group: Group, arrays: list[Any], root: int) -> list[np.ndarray]:
    return _for_each(arrays[group.ranks.index(root)].copy(), group.size)


def _all_gather_object(group: Group, texts: list[bytes]) -> list[list[bytes]]:
    return [texts] * group.size


def _barrier(group: Group, nothing: list[None]) -> list[None]:
    return list(nothing)


WORK: dict[str, Callable[..., list[Any]]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "reduce_scatter": _reduce_scatter, "all_to_all": _all_to_all,
    "broadcast": _broadcast, "all_gather_object": _all_gather_object, "barrier": _barrier,
}


def _for_each(x: np.ndarray, size: int) -> list[np.ndarray]:
    return [x, *(x.copy() for _ in range(size - 1))]


def _join(chunks: Sequence[np.ndarray], axis: int) -> np.ndarray:
    return np.ascontiguousarray(np.concatenate(chunks, axis))
