"""Looking on while a program runs, instruction by instruction: for a profiler, and for `FLAGS_check_nan_inf`.

A run asks once whether anybody does.  If nobody does, nothing here is called.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from minipd.executor.binding import Binding
from minipd.executor.frame import Around
from minipd.executor.preparation import Item, results_of
from minipd.framework.flags import flag
from minipd.framework.nan_inf import check_finite
from minipd.ir.types import TensorType
from minipd.profiler.recording import Recording, Span, TracerEventType, recording

__all__: list[str] = []

Function = Callable[[], Any]


def watcher(bound: Binding) -> Around | None:
    """What is to be done around every instruction of a run, None if nothing is."""
    around: Around | None = None
    if flag("FLAGS_check_nan_inf"):
        around = checking(bound, flag("FLAGS_check_nan_inf_level") > 0)
    layer = recording()
    return around if layer is None else timing(layer, bound, around)


def checking(bound: Binding, only_warn: bool) -> Around:
    """Look for a NaN or an infinity in what each instruction makes (`framework.nan_inf`)."""
    slots = bound.frame.slots

    def around(item: Item, function: Function) -> None:
        function()
        results, operands = ([slots[bound.slot(v)] for v in values if v in bound.prepared.slots]
                             for values in (results_of(item), item.reads()))
        check_finite(item.origin.name(), results, operands, only_warn)
    return around


def timing(layer: Recording, bound: Binding, inner: Around | None) -> Around:
    """Note a span for every instruction."""
    clock, thread, spans = time.perf_counter, threading.get_ident(), layer.spans

    def around(item: Item, function: Function) -> None:
        start = clock()
        if inner is None:
            function()
        else:
            inner(item, function)
        seconds = clock() - start
        kind = (TracerEventType.Communication if item.call is not None and item.call.comm else
                TracerEventType.Operator)
        spans.append(Span(item.origin.name().partition(".")[2], kind, start, seconds, thread, detail(item, bound)))
    return around


def detail(item: Item, bound: Binding) -> dict[str, Any]:
    """What a span says of an instruction: the operation, its kernel, the bytes of its results."""
    found: dict[str, Any] = {"op": item.origin.name()}
    if "kernel_key" in item.op.attributes:
        found["kernel"] = repr(item.op.attributes["kernel_key"].value)
    found["bytes"] = sum(bound.layout.nbytes(v) for v in results_of(item) if isinstance(v.type(), TensorType))
    return found
