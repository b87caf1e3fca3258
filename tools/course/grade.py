"""Grades exercises: each in a process of its own, bounded in time, and says what came of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, NamedTuple

from tools.course.chapter import Chapter, Exercise
from tools.course.errors import CourseError
from tools.course.source import ROOT
from tools.course.workspace import file_of

#: Seconds that one exercise may take.
TIMEOUT = 60.0
#: How much of what the student's code prints is kept, in bytes, and shown, in lines.
KEPT = 1 << 16
SHOWN = 12


class Verdict(NamedTuple):
    """What came of one exercise: the state, and the fields of `child.failure`."""

    exercise: Exercise
    file: Path
    state: str          # passed, failed, unwritten, missing
    fields: dict
    printed: str

    @property
    def passed(self) -> bool:
        return self.state == "passed"


def grade(chapter: Chapter, exercise: Exercise, file: Path | None = None, timeout: float = TIMEOUT) -> Verdict:
    """Run the checks of one exercise on a student's file (default: the one in the workspace)."""
    if not exercise.check.is_file():
        raise CourseError(f"exercise {exercise.name}", f"its checks in checks/{exercise.check.name}", "no such file")
    file = (file or file_of(exercise)).resolve()
    if not file.is_file():
        return Verdict(exercise, file, "missing", {}, "")
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        for name in ("report", "stack"):
            Path(scratch, name).touch()
        process = subprocess.Popen(
            [sys.executable, "-m", "tools.course.child", str(exercise.target), str(file), str(exercise.check),
             scratch], cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env={**environment(chapter.number), "PYTHONUNBUFFERED": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
        printed = _Printed(process.stdout)      # type: ignore[arg-type]
        late = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            late = True
            _where_is_it(process)
        finally:
            _kill(process)
        states = [json.loads(line) for line in Path(scratch, "report").read_text(encoding="utf-8").splitlines()]
        fields = states[-1] if states else {"state": "running", "check": "starting"}
        if fields["state"] == "running":        # it never came to an end
            stack = Path(scratch, "stack").read_text(encoding="utf-8")
            fields = _unfinished(fields, _line_in(stack, file), timeout, None if late else process.returncode)
    return Verdict(exercise, file, fields["state"], fields, printed.text())


def environment(number: int) -> dict[str, str]:
    threads = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return {**os.environ, **threads, "MINIPD_FLOOR": str(number), "PYTHONHASHSEED": "0"}


class _Printed(threading.Thread):
    """Reads what a process prints, keeps the beginning, and throws the rest away: it must neither block nor pile up."""

    def __init__(self, pipe: IO[bytes]):
        super().__init__(daemon=True)
        self.pipe = pipe
        self.kept = bytearray()
        self.start()

    def run(self) -> None:
        while chunk := self.pipe.read1(1 << 16):        # type: ignore[attr-defined]
            if len(self.kept) > KEPT:
                del self.kept[KEPT // 2:-KEPT // 2]     # the beginning and the end
            self.kept += chunk

    def text(self) -> str:
        self.join(5)            # not for ever: a process that got away may hold the pipe open
        return self.kept.decode(errors="replace")


def _where_is_it(process: subprocess.Popen) -> None:
    """Ask the process for its stack, which it writes to a file."""
    if hasattr(signal, "SIGUSR1"):
        process.send_signal(signal.SIGUSR1)
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            pass


def _kill(process: subprocess.Popen) -> None:
    """End the process and those it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):
        process.kill()
    process.wait()


def _line_in(stack: str, file: Path) -> str:
    """The innermost line of the student's file on a stack."""
    found = re.search(rf'File "{re.escape(str(file))}", line (\d+) in (\S+)', stack)
    return f"line {found[1]}, in {found[2]}, when it was stopped" if found else ""


def _unfinished(last: dict, at: str, timeout: float, status: int | None) -> dict:
    """A process that said nothing at its end.  status: its exit status, or None if time ran out."""
    if status is None:
        got = f"still running after {timeout:g} seconds"
    elif status < 0:
        got = f"the process was killed by {signal.Signals(-status).name}"
    else:
        got = f"the process ended with status {status} (os._exit?)"
    return {"state": "failed", "expected": "the check to come to its end", "got": got, "on": "",
            "check": last["check"], "at": at, "why": "", "where": ""}
