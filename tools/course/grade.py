"""Grades exercises: each in a process of its own, bounded in time, and says what came of it."""

from __future__ import annotations

import json
import re
import signal
import tempfile
from pathlib import Path
from typing import NamedTuple

from tools.course import child, process
from tools.course.chapter import Chapter, Exercise
from tools.course.errors import CourseError
from tools.course.workspace import file_of

#: Seconds that one exercise may take.
TIMEOUT = 60.0


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
        folder = Path(scratch)
        ended = process.run(child.main, (str(exercise.target), file, exercise.check, folder),
                            environment(chapter.number), timeout)
        fields = _last(folder / "report")
        if fields["state"] == "running":        # it never came to an end
            fields = _unfinished(fields["check"], _line_in(folder / "stack", file), timeout, ended.status)
    return Verdict(exercise, file, fields["state"], fields, ended.printed)


def environment(number: int) -> dict[str, str]:
    """What the environment of a chapter's code has besides the user's."""
    threads = {name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return {**threads, "MINIPD_FLOOR": str(number), "PYTHONHASHSEED": "0"}


def _last(report: Path) -> dict:
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    return json.loads(lines[-1]) if lines else {"state": "running", "check": "the start of the check"}


def _line_in(stack: Path, file: Path) -> str:
    """The innermost line of the student's file on a stack."""
    text = stack.read_text(encoding="utf-8") if stack.exists() else ""
    found = re.search(rf'File "{re.escape(str(file))}", line (\d+) in (\S+)', text)
    return f"line {found[1]}, in {found[2]}, when it was stopped" if found else ""


def _unfinished(check: str, at: str, timeout: float, status: int | None) -> dict:
    """What is told of a process that said nothing at its end.  status: its exit status, None if time ran out."""
    if status is None:
        got = f"still running after {timeout:g} seconds"
    elif status < 0:
        got = f"the process was killed by {signal.Signals(-status).name}"
    else:
        got = f"the process ended with status {status} (os._exit?)"
    return child.failure("the check to come to its end", got, "", check, at)
