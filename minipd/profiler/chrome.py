"""Traces as files that a browser shows: chrome://tracing, or ui.perfetto.dev."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from minipd.framework.errors import InputError
from minipd.framework.files import reason, write_atomically
from minipd.profiler.recording import Span, TracerEventType

__all__ = ["export_chrome_tracing", "load_profiler_result"]


def write(path: Path, spans: Sequence[Span]) -> None:
    """Write spans as a Chrome trace: times in microseconds, from the first span on.

    Raises: InputError if the path cannot be written.
    """
    first = min((s.start for s in spans), default=0.0)
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": os.getpid(), "args": {"name": "minipd"}}]
    events += [{"ph": "X", "name": s.name, "cat": s.kind.name, "pid": os.getpid(), "tid": s.thread,
                "ts": round((s.start - first) * 1e6, 3), "dur": round(s.seconds * 1e6, 3), "args": s.detail or {}}
               for s in sorted(spans, key=lambda s: s.start)]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
    except OSError as e:
        raise InputError(f"a place to write {path.name}", f"{path} ({reason(e)})", "give another path") from e


def load_profiler_result(filename: str) -> list[Span]:
    """The spans of a trace file that a profiler has written; times are seconds from the first one on.

    Raises: InputError if there is no such file, or it is something else.
    """
    try:
        events = json.loads(Path(filename).read_text())["traceEvents"]
        return [Span(e["name"], TracerEventType[e["cat"]], e["ts"] / 1e6, e["dur"] / 1e6, e["tid"], e["args"] or None)
                for e in events if e["ph"] == "X"]
    except OSError as e:
        raise InputError("a trace file", f"{filename} ({reason(e)})", "check the path") from e
    except (ValueError, KeyError, TypeError) as e:
        raise InputError("a trace that a profiler has written", f"{filename} ({type(e).__name__}: {e})",
                         "export it again") from e


def export_chrome_tracing(dir_name: str, worker_name: str | None = None) -> Callable[[Any], None]:
    """For a profiler's `on_trace_ready`: write each trace into a folder, under the time and this process's name."""
    def handler(prof: Any) -> None:
        who = worker_name or f"host_{socket.gethostname()}pid_{os.getpid()}"
        when = time.strftime("%Y_%m_%d_%H_%M_%S") + f"_{time.time_ns() // 1_000_000 % 1000:03}"
        prof.export(str(Path(dir_name, f"{who}_time_{when}.paddle_trace.json")))
    return handler
