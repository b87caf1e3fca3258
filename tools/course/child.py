"""Runs the checks of one exercise on one student's file.  `grade.py` calls it in a process of its own, which may hang,
crash or be ended by the student's code; whatever happens is then the result of that one exercise.

Nothing here may import minipd before the overlay is in place.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.course.checking import Mismatch
from tools.course.errors import CourseError
from tools.course.overlay import Overlay
from tools.course.source import ROOT, Target

#: More memory than this is a mistake (a list that grows for ever); more than half of the machine's slows it all down.
MEMORY = 8 << 30
#: How much of a text is shown.
SHOWN = 4000

#: What a function says that has yet to be written (`workspace.py` puts it there).  An error of a simulated rank has it
#: in its text.
UNWRITTEN = re.compile(r"exercise \w+: [\w.]+ is not written yet")

#: What is going on before the first check.
LOADING = "loading the library with your file in it"

Result = dict[str, Any]


def main(target: str, student: Path, check: Path, folder: Path) -> None:
    """Grade a file, and end the process.

    target: as in chapter.toml.  folder: in it, `report` tells how far it came, one JSON object a line, the last line
    counts; and `stack` where it was when the parent asked.
    """
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    _limit_memory()
    with (folder / "report").open("w", encoding="utf-8") as file, (folder / "stack").open("w") as stack:
        if hasattr(faulthandler, "register"):       # the parent asks for it when time runs out
            faulthandler.register(signal.SIGUSR1, stack, all_threads=False)

        def say(**fields: Any) -> None:
            file.write(json.dumps(fields) + "\n")
            file.flush()

        say(state="running", check=LOADING)
        result = _load(Target.parse(target, "target"), student)
        if result is None:
            recorder = Recorder(student, say)
            # -s: what the student's code prints goes to the pipe, where it is bounded.
            pytest.main([str(check), "-x", "-s", f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"),
                         "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:faulthandler",
                         "-p", "no:terminal"], plugins=[recorder])
            result = recorder.result()
        say(**result)
    with contextlib.suppress(Exception):        # they may have been closed
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)         # not a normal end: a thread that the student's code has left running would keep it alive


def _limit_memory() -> None:
    try:
        import resource
        bound = min(MEMORY, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
    except (ImportError, AttributeError, ValueError, OSError):
        pass            # no such limit on this system


def _load(target: Target, student: Path) -> Result | None:
    """Load minipd with the student's function; what went wrong, or None."""
    try:
        Overlay(target, student).install()
        importlib.import_module("minipd")
        importlib.import_module(target.module)
        return None
    except CourseError as error:
        return failure(expected=error.expected, got=error.got, on="", why=error.do, at=error.where.partition(", ")[2])
    except SyntaxError as error:
        at = f"line {error.lineno}: {(error.text or '').strip()}" if error.lineno else ""
        return failure(expected="a file that Python can read", got=f"{type(error).__name__}: {error.msg}", on="", at=at,
                       why="save it as UTF-8" if "encoding" in error.msg else "")
    except BaseException as error:          # SystemExit too: the other exercises are still to be graded
        result = explain(error, student, LOADING)
        if "partially initialized module 'minipd" in result.get("got", ""):
            result["why"] = "minipd is only half loaded when this line runs; inside of the function it runs later"
        return result


class Recorder:
    """A pytest plugin that keeps the first failure, and counts."""

    def __init__(self, student: Path, say: Any):
        self.student, self.say = student, say
        self.collected = self.passed = 0
        self.failure: Result | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = len(session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failure = failure(expected="checks that load", got=str(report.longrepr)[-2000:], on="")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say(state="running", check=_short(nodeid))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> Any:
        report = yield
        if call.excinfo is not None and self.failure is None:
            self.failure = explain(call.excinfo.value, self.student, _short(item.nodeid))
        elif report.when == "call" and report.passed:
            self.passed += 1
        return report

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo) -> None:      # or pytest.exit: both end pytest
        self.failure = self.failure or explain(excinfo.value, self.student, "")

    def result(self) -> Result:
        if self.failure is not None:
            return self.failure
        if self.collected and self.passed == self.collected:
            return {"state": "passed", "checks": self.passed}
        return failure(expected="checks that pass", got=f"{self.passed} of {self.collected} that did", on="")


def failure(expected: str, got: str, on: str, check: str = "", at: str = "", why: str = "", where: str = "") -> Result:
    """What a student is told.

    on: the input.  where: the place in the value.  check: the test.  at: the student's own line.
    """
    def cut(text: str) -> str:
        return text if len(text) <= SHOWN else f"{text[:SHOWN]} ... ({len(text)} characters)"

    return {"state": "failed", "expected": cut(expected), "got": cut(got), "on": cut(on), "check": check, "at": cut(at),
            "why": why, "where": where}


def explain(error: BaseException, student: Path, check: str) -> Result:
    """An exception, as what a student is told."""
    while isinstance(error, BaseExceptionGroup):         # several failures of one property test: the first will do
        error = error.exceptions[0]
    chain = list(_chain(error))
    if any(UNWRITTEN.search(str(one)) for one in chain):
        return {"state": "unwritten", "check": check}
    at = next(filter(None, (_line_of(one, student) for one in reversed(chain))), "")
    why = ""
    none = isinstance(error, Mismatch) and error.got == "None" != error.expected
    if none or not at and any("NoneType" in str(one) for one in chain):
        why = "does your function return None?  `return` or `yield` may be missing"
    at = at or next(filter(None, (_line_in_library(one) for one in reversed(chain))), "")
    if isinstance(error, Mismatch):
        return failure(error.expected, error.got, error.on, check, at, why, where=error.where)
    notes = "\n".join(getattr(error, "__notes__", ()))
    got = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return failure("the check to hold" if isinstance(error, AssertionError) else "no error", got, notes, check, at, why)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it came from."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _line_of(error: BaseException, student: Path) -> str:
    """The last line of the student's file that the error went through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(student)]
    return f"line {frames[-1].lineno}: {frames[-1].line}" if frames else ""


def _line_in_library(error: BaseException) -> str:
    """The last line of the library that the error went through: what the student's function gave it does not fit."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if Path(frame.filename).is_relative_to(ROOT / "minipd")]
    if not frames:
        return ""
    place = Path(frames[-1].filename).relative_to(ROOT).as_posix()
    return f"the library, with what your function gave it, at {place}:{frames[-1].lineno}"


def _short(nodeid: str) -> str:
    """`test_unbroadcast.py::test_a_row` as `test_a_row`."""
    return nodeid.rpartition("::")[2]

