"""What a program's calls will be given, known before it runs: for who prepares something for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from minipd.executor.binding import Binding
from minipd.executor.calls import Call
from minipd.executor.kernel.lowering import pd_op_to_kernel_pass
from minipd.executor.layout import Layout
from minipd.executor.preparation import Preparation
from minipd.ir.program import Program

__all__: list[str] = []


def calls_ahead(program: Program) -> Iterator[tuple[Call, list[Any], list[Any]]]:
    """Each call with a `bind` of a program without symbolic sizes, its operands and the buffers of its results.

    The arrays lie as those of a run will: which share memory, which are contiguous.  Their elements mean nothing.
    """
    lowered = pd_op_to_kernel_pass(program)
    prepared = Preparation(lowered)
    layout = Layout(prepared, {})
    binding = Binding(prepared, layout, np.empty(layout.plan.size, np.uint8), {})
    for item in prepared.items:
        if item.call is not None and item.call.bind is not None:
            yield replace(item.call, op=item.origin), *binding.arrays(item)
