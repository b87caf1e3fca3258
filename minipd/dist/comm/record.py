"""What simulated ranks have communicated, one record for each collective and message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from minipd.dist.comm.calls import PARAMETERS, Call, array_text, call_text

__all__ = ["Record"]


class Record(NamedTuple):
    """A collective, when its last member came; or a message, when it was sent.

    kind: the method's name; "send" for a message.
    group: the members; (sender, receiver) of a message.
    number: how many collectives the group had before; how many messages under this tag.
    shape, dtype: of what each gave; None in the shape where the members' may differ, None for what has none.
    parameters: the other arguments by name.
    nbytes: bytes that each member gave; of a message, its size.
    begin, end: on the simulated clock, if there is one; else 0.

    As text it is the line of a log.
    """

    kind: str
    group: tuple[int, ...]
    number: int
    shape: tuple[int | None, ...] | None
    dtype: np.dtype | None
    parameters: Mapping[str, Any]
    nbytes: tuple[int, ...]
    begin: float = 0.0
    end: float = 0.0

    @classmethod
    def of_call(cls, group: tuple[int, ...], number: int, call: Call, nbytes: tuple[int, ...], begin: float,
                end: float) -> Record:
        kind, shape, dtype, *values = call
        parameters = dict(zip(PARAMETERS[kind], values, strict=True))
        return cls(kind, group, number, shape, dtype, parameters, nbytes, begin, end)

    def __str__(self) -> str:
        if self.kind == "send":
            assert self.shape is not None and self.dtype is not None
            return (f"send({array_text(self.shape, self.dtype)}, tag={self.parameters['tag']}) from {self.group[0]} to "
                    f"{self.group[1]}")
        call = (self.kind, self.shape, self.dtype, *self.parameters.values())
        return f"{call_text(call, self.number)} by {self.group}"
