"""Contenders measured side by side: interleaved rounds, medians, ratios.

A machine is never quiet, and speeds drift within a minute; what two programs took one after the other says little about
which is faster.  So every contender is a process of its own (another interpreter where it needs one, for frameworks do
not share thread pools well), all are warmed up, and then rounds go A B C A B C ...: a disturbance meets all of them.
Medians of the rounds are compared.  The processes are pinned to the same cores, one for each thread.

With one thread, what is counted is the time that a process had the core (user and system), not the time that others
did.  With more it is the time that passed, and trials during which others used more than `QUIET` of a core are left out
while enough remain.

The first call of a case may compile, and does not count.  Only one case at a time is kept alive: its contenders take
turns until it is done.

A file of cases defines `cases(argument) -> {name: function}`; a call of a function is one iteration.  It may use only
what its interpreter has; so may this file, which serves it there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
#: Memory of dead arrays stays in the process: without it, new ones cost more page faults than arithmetic.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 26)}
#: What others may use of the machine during a trial, in cores.
QUIET = 0.12


class Trial(NamedTuple):
    """seconds: that it took.  foreign: the cores that others used meanwhile."""

    seconds: float
    foreign: float


@dataclass
class Contender:
    """A process that runs cases.

    label: what the table calls it.  file: the file of cases.  argument: what its `cases` is given.  python: the
    interpreter.  ops: how many operations one iteration of a case does (1 if not named); figures are per operation.
    threads: how many it may use.  environment: variables that it gets besides.
    """

    label: str
    file: Path
    argument: str = ""
    python: str = sys.executable
    ops: dict[str, int] = field(default_factory=dict)
    threads: int = 1
    environment: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        environment = {**os.environ, **dict.fromkeys(THREADS, str(self.threads)), "GLOG_minloglevel": "2",
                       **self.environment}
        command = [self.python, __file__, str(self.file), self.argument, str(self.threads)]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.cases: list[str] = self._read()
        self.peak = 0

    def run(self, case: str, number: int) -> Trial:
        """`number` iterations, less what as many empty ones take."""
        assert self.process.stdin is not None
        print(json.dumps([case, number]), file=self.process.stdin, flush=True)
        return Trial(*self._read())

    def ask(self, case: str) -> float:
        """What one call of the case returns, where that is the figure."""
        assert self.process.stdin is not None
        print(json.dumps([case, 0]), file=self.process.stdin, flush=True)
        return self._read()

    def stop(self) -> None:
        """End the process.  `peak` is then the most memory that it held, in bytes, its libraries included."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.peak = self._read() if self.process.poll() is None else 0
        self.process.wait()

    def _read(self):
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("@"):                    # anything else is chatter of a framework
                return json.loads(line[1:])
        raise RuntimeError(f"{self.label}: the process ended; run it alone to see why: "
                           f"{self.python} {__file__} {self.file} '{self.argument}' {self.threads}")


def compare(contenders: Sequence[Contender], rounds: int = 15, seconds: float = 0.02,
            wanted: str = "") -> dict[str, dict[str, float]]:
    """Case -> label -> median seconds per operation.

    seconds: about how long a trial takes.  wanted: a part of the names of the cases to run.
    The first round is not counted.
    """
    for c in contenders:
        c.start()
    try:
        names = [n for n in dict.fromkeys(case for c in contenders for case in c.cases) if wanted in n]
        return {case: _compare([c for c in contenders if case in c.cases], case, rounds, seconds) for case in names}
    finally:
        for c in contenders:
            c.stop()


def _compare(contenders: Sequence[Contender], case: str, rounds: int, seconds: float) -> dict[str, float]:
    number = {c.label: calibrated(c, case, seconds) for c in contenders}
    trials: dict[str, list[Trial]] = {c.label: [] for c in contenders}
    for _ in range(rounds + 1):
        for c in contenders:
            trials[c.label].append(c.run(case, number[c.label]))
    return {c.label: typical(trials[c.label][1:]) / number[c.label] / c.ops.get(case, 1) for c in contenders}


def typical(trials: Sequence[Trial]) -> float:
    """The median of the quiet trials; of the quietest third where too few are quiet."""
    by_noise = sorted(trials, key=lambda t: t.foreign)
    quiet = [t for t in by_noise if t.foreign <= QUIET]
    return statistics.median(t.seconds for t in max(quiet, by_noise[:max(3, len(trials) // 3)], key=len))


def calibrated(contender: Contender, case: str, seconds: float) -> int:
    """How many iterations take about `seconds`."""
    contender.run(case, 1)
    number = 1
    while (took := contender.run(case, number).seconds) < seconds / 2:
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
    return markdown(heads, lines)


def beside(found: dict[str, dict[str, float]], labels: Sequence[str], unit: float = 1e-3, name: str = "ms") -> str:
    """The medians of every case; behind those of the other labels, how many times that of the first they are."""
    heads = ["case", f"{labels[0]}, {name}", *(f"{label}, {name} (times)" for label in labels[1:])]
    lines = []
    for case, by in found.items():
        own = by[labels[0]]
        cells = [f"{by[label] / unit:.2f} ({by[label] / own:.2f})" if label in by else "" for label in labels[1:]]
        lines.append([case, f"{own / unit:.2f}", *cells])
    return markdown(heads, lines)


def markdown(heads: list[str], lines: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in [heads, *lines]) for i in range(len(heads))]
    rows = ["| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w)
                              for i, (c, w) in enumerate(zip(line, widths, strict=True))) + " |" for line in lines]
    head = "| " + " | ".join(h.ljust(w) for h, w in zip(heads, widths, strict=True)) + " |"
    rule = "| " + " | ".join("-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)) + " |"
    return "\n".join([head, rule, *rows])


def serve(file: str, argument: str, threads: str) -> None:
    """In the contender's process: say which cases there are, then run what is asked for."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:int(threads)]))
    spec = importlib.util.spec_from_file_location("cases_of_a_contender", file)
    module = importlib.util.module_from_spec(spec)          # type: ignore[arg-type]
    spec.loader.exec_module(module)                         # type: ignore[union-attr]
    cases: dict[str, Callable[[], object]] = module.cases(argument)
    clock = time.process_time if threads == "1" else time.perf_counter
    empty = statistics.median(clocked(clock, lambda: None, 20_000) for _ in range(9)) / 20_000
    answer(list(cases))
    for line in sys.stdin:
        case, number = json.loads(line)
        if not number:
            answer(cases[case]())
            continue
        busy, own, began = of_all(), time.process_time(), time.perf_counter()
        took = clocked(clock, cases[case], number) - number * empty
        foreign = (of_all() - busy - (time.process_time() - own)) / (time.perf_counter() - began)
        answer([took, 0.0 if threads == "1" else max(0.0, foreign)])
    answer(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def clocked(clock: Callable[[], float], function: Callable[[], object], number: int) -> float:
    began = clock()
    for _ in range(number):
        function()
    return clock() - began


def of_all() -> float:
    """Seconds that the cores of this machine have been busy; 0 where the system does not say."""
    try:
        with open("/proc/stat") as file:
            _, user, nice, system, _, _, *interrupts = file.readline().split()
    except OSError:
        return 0.0
    return sum(map(int, (user, nice, system, *interrupts[:3]))) / os.sysconf("SC_CLK_TCK")


def answer(value: object) -> None:
    print("@" + json.dumps(value, default=float), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
