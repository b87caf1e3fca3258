"""How long an instruction takes, reckoned: good enough to see what overlaps, not to predict a run.

An instruction costs a start, and the bytes that it touches over the bandwidth of memory; a matrix product the larger of
this and its arithmetic; a collective the bytes that it sends over the bandwidth between ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from minipd.executor.preparation import results_of
from minipd.executor.schedule.dependencies import Dependencies, Instruction
from minipd.ir.types import TensorType
from minipd.ir.value import Value

__all__ = ["seconds_of"]

START, COMM_START = 1e-6, 2e-5                      # seconds
MEMORY, BETWEEN_RANKS = 1e10, 1e9                   # bytes a second
ARITHMETIC = 5e10                                   # floating-point operations a second


def seconds_of(graph: Dependencies) -> Callable[[Instruction], float]:
    """The cost function for a graph's sizes."""
    layout = graph.layout

    def nbytes(values: list[Value]) -> int:
        return sum(layout.nbytes(v) for v in values if isinstance(v.type(), TensorType))

    def seconds(instruction: Instruction) -> float:
        item = instruction.item
        call = item.call
        if call is None:
            inside = [inner for block in item.blocks for inner in block]
            return START + sum(seconds(Instruction(0, inner, "")) for inner in inside)
        made, read = list(results_of(item)), call.reads()
        if call.comm:
            return COMM_START + nbytes(read) / BETWEEN_RANKS
        if call.view:
            return START
        found = nbytes([*made, *read]) / MEMORY
        if call.op.name().endswith(".matmul"):
            depth = layout.shape(read[0])[-2 if layout.attrs[item].get("transpose_x") else -1]
            found = max(found, 2 * depth * math.prod(layout.shape(made[0])) / ARITHMETIC)
        return START + found
    return seconds
