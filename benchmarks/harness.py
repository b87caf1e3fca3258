"""Contenders measured side by side: interleaved rounds, medians, ratios.

A machine is never quiet, and speeds drift within a minute; what two programs took one after the other says little about
which is faster.  So every contender is a process of its own (another interpreter where it needs one, for frameworks do
not share thread pools well), all are warmed up, and then rounds go A B C A B C ...: a disturbance meets all of them.
Medians of the rounds are compared.  Each process has one thread, pinned to the same core, and what is counted is the
time that it had the core (user and system), not the time that others did.

A file of cases defines `cases(argument) -> {name: function}`; a call of a function is one iteration.  It may use only
what its interpreter has; so may this file, which serves it there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class Contender:
    """A process that runs cases.

    label: what the table calls it.  file: the file of cases.  argument: what its `cases` is given.  python: the
    interpreter.  ops: how many operations one iteration of a case does (1 if not named); figures are per operation.
    """

    label: str
    file: Path
    argument: str = ""
    python: str = sys.executable
    ops: dict[str, int] = field(default_factory=dict)

    def start(self) -> None:
        environment = {**os.environ, **dict.fromkeys(THREADS, "1"), "GLOG_minloglevel": "2"}
        self.process = subprocess.Popen([self.python, __file__, str(self.file), self.argument], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.cases: list[str] = self._read()

    def run(self, case: str, number: int) -> float:
        """Seconds of the process for `number` iterations, less those of as many empty ones."""
        assert self.process.stdin is not None
        print(json.dumps([case, number]), file=self.process.stdin, flush=True)
        return self._read()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _read(self):
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("@"):                    # anything else is chatter of a framework
                return json.loads(line[1:])
        raise RuntimeError(f"{self.label}: the process ended; run it alone to see why: "
                           f"{self.python} {__file__} {self.file} {self.argument}")


def compare(contenders: Sequence[Contender], rounds: int = 15, seconds: float = 0.02) -> dict[str, dict[str, float]]:
    """Case -> label -> median seconds per operation.  A trial takes about `seconds`; the first round is not counted."""
    for c in contenders:
        c.start()
    try:
        names = list(dict.fromkeys(case for c in contenders for case in c.cases))
        number = {(c.label, case): calibrated(c, case, seconds) for c in contenders for case in c.cases}
        times: dict[tuple[str, str], list[float]] = {key: [] for key in number}
        for n in range(rounds + 1):
            for case in names:
                for c in contenders:
                    if case in c.cases:
                        key = c.label, case
                        took = c.run(case, number[key]) / number[key] / c.ops.get(case, 1)
                        if n:
                            times[key].append(took)
    finally:
        for c in contenders:
            c.stop()
    return {case: {c.label: statistics.median(times[c.label, case]) for c in contenders if case in c.cases}
            for case in names}


def calibrated(contender: Contender, case: str, seconds: float) -> int:
    """How many iterations take about `seconds`."""
    number = 1
    while (took := contender.run(case, number)) < seconds / 2:
        number = max(number + 1, int(number * min(10, seconds / max(took, 1e-9))))
    return number


def table(found: dict[str, dict[str, float]], labels: Sequence[str], over: Sequence[tuple[str, str]],
          unit: float = 1e-6, name: str = "µs") -> str:
    """The medians of every case, and for each pair (a, b) in `over` the ratio a / b."""
    heads = ["case", *(f"{label}, {name}" for label in labels), *(f"{a} / {b}" for a, b in over)]
    lines = []
    for case, by in found.items():
        cells = [f"{by[label] / unit:.2f}" if label in by else "" for label in labels]
        cells += [f"{by[a] / by[b]:.2f}" if a in by and b in by else "" for a, b in over]
        lines.append([case, *cells])
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    rows = ["| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w)
                              for i, (c, w) in enumerate(zip(line, widths, strict=True))) + " |" for line in lines]
    head = "| " + " | ".join(h.ljust(w) for h, w in zip(heads, widths, strict=True)) + " |"
    rule = "| " + " | ".join("-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)) + " |"
    return "\n".join([head, rule, *rows])


def serve(file: str, argument: str) -> None:
    """In the contender's process: say which cases there are, then run what is asked for."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    spec = importlib.util.spec_from_file_location("cases_of_a_contender", file)
    module = importlib.util.module_from_spec(spec)          # type: ignore[arg-type]
    spec.loader.exec_module(module)                         # type: ignore[union-attr]
    cases: dict[str, Callable[[], object]] = module.cases(argument)
    empty = statistics.median(clocked(lambda: None, 20_000) for _ in range(9)) / 20_000
    answer(list(cases))
    for line in sys.stdin:
        case, number = json.loads(line)
        answer(clocked(cases[case], number) - number * empty)


def clocked(function: Callable[[], object], number: int) -> float:
    began = time.process_time()
    for _ in range(number):
        function()
    return time.process_time() - began


def answer(value: object) -> None:
    print("@" + json.dumps(value), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
