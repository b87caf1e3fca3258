"""Blocks of what a rank holds: cut out, given away, received and put together; eagerly or in a program.

All of it is operators (`p2p_send`, `p2p_recv`, `slice`, ...) run by the interpreter below.  Only arrays are put
together in place, in one buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.reshard.across import Message
from minipd.dist.sharding import Block
from minipd.framework.row import ROWS

__all__: list[str] = []

#: keeps the messages of reshards apart from those of the user and of pipelines
TAG = 3000


def give(local: Any, held: Sequence[Block], messages: Sequence[Message], run: Callable, rank: int,
         tag: int = TAG) -> None:
    """This rank's sends.   local: what it holds.  held: which blocks that is."""
    for m in messages:
        if m.src == rank != m.dst:
            run(ROWS["p2p_send"], [block_of(local, held, m, run)], {"dst": m.dst, "tag": tag})


def take(local: Any, held: Sequence[Block], wanted: Sequence[Block], shape: tuple[int, ...], dtype: np.dtype,
         messages: Sequence[Message], run: Callable, rank: int, tag: int = TAG) -> Any:
    """What this rank gets, put together: a local value of this shape with the blocks `wanted`."""
    pieces = []
    for m in messages:
        if m.dst == rank:
            pieces.append((m, block_of(local, held, m, run) if m.src == rank else run(
                ROWS["p2p_recv"], [], {"src": m.src, "shape": m.shape, "dtype": dtype, "tag": tag})))
    if len(pieces) == 1 and pieces[0][0].shape == shape:
        return pieces[0][1]                             # the usual case: nothing to put together
    if all(isinstance(piece, np.ndarray) for _, piece in pieces) and pieces:
        out: Any = np.empty(shape, dtype)
        for m, piece in pieces:
            Block(m.shape, m.offsets, place(wanted, m)).of_local(out)[...] = piece
        return out
    out = run(ROWS["full"], [], {"shape": shape, "value": 0, "dtype": dtype})
    for m, piece in pieces:
        starts = place(wanted, m)
        out = run(ROWS["set_value"], [out, piece], {
            "axes": tuple(range(len(shape))), "starts": starts, "strides": (1,) * len(shape),
            "ends": tuple(s + n for s, n in zip(starts, m.shape, strict=True))})
    return out


def block_of(local: Any, held: Sequence[Block], m: Message, run: Callable) -> Any:
    """The block of a message, out of what a rank holds."""
    if tuple(local.shape) == m.shape:
        return local
    starts = place(held, m)
    return run(ROWS["slice"], [local], {"axes": tuple(range(len(starts))), "starts": starts,
                                        "ends": tuple(s + n for s, n in zip(starts, m.shape, strict=True))})


def place(held: Sequence[Block], m: Message) -> tuple[int, ...]:
    """Where the block of a message lies in a local value that is made of the blocks `held`."""
    for block in held:
        inside = tuple(o - b for o, b in zip(m.offsets, block.offsets, strict=True))
        if all(0 <= i and i + n <= whole for i, n, whole in zip(inside, m.shape, block.shape, strict=True)):
            return tuple(a + i for a, i in zip(block.at, inside, strict=True))
    raise AssertionError(f"{m}: what is sent is a part of what is held, {held}")
