"""What a student reads: verdicts as text."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from tools.course.chapter import Chapter
from tools.course.grade import Verdict
from tools.course.source import ROOT

#: How many lines of what the student's code printed are shown.
SHOWN = 12
#: What would move the cursor or change colours.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

WORDS = {"passed": "passed", "failed": "FAILED", "unwritten": "not written yet", "missing": "no file"}


def verdict_text(chapter: Chapter, verdict: Verdict) -> str:
    """One exercise: passed, or the first failure and where to read."""
    exercise, fields = verdict.exercise, verdict.fields
    lines = [f"{exercise.name}: {WORDS[verdict.state]}"]
    if verdict.passed:
        lines[0] += f" ({fields['checks']} check{'s' * (fields['checks'] != 1)})"
        return lines[0]
    rows = [("file", shown(verdict.file))]
    if verdict.state == "unwritten":
        rows.append(("write", f"{exercise.target.qualname}: {exercise.title}"))
    elif verdict.state == "missing":
        rows.append(("do", f"make exercise-{chapter.number} writes it; what is there already stays as it is"))
    else:
        place = f" (first difference at {fields['where']})" if fields["where"] else ""
        rows = [("on", fields["on"]), ("expected", fields["expected"]), ("got", fields["got"] + place),
                ("do", fields["why"]), *rows, ("at", fields["at"]), ("check", _check(verdict))]
    rows.append(("read", exercise.lesson))
    lines += [_row(label, text) for label, text in rows if text]
    if verdict.printed.strip():
        lines.append(_row("printed", _tail(verdict.printed)))
    return "\n".join(lines)


def summary(verdicts: list[Verdict]) -> str:
    """A line per exercise."""
    width = max(len(verdict.exercise.name) for verdict in verdicts)
    rows = [f"  {v.exercise.name:{width}}  {WORDS[v.state]}" for v in verdicts]
    done = sum(verdict.passed for verdict in verdicts)
    return "\n".join([*rows, f"{done} of {len(verdicts)} passed"])


def _row(label: str, text: str) -> str:
    return f"  {label:9} " + textwrap.indent(text, " " * 12).lstrip()


def _check(verdict: Verdict) -> str:
    name = verdict.fields["check"]
    return f"{shown(verdict.exercise.check)}::{name}" if name.startswith("test") else name


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def _tail(printed: str) -> str:
    lines = [CONTROL.sub("?", line[:200]) for line in printed.strip().splitlines()]
    return "\n".join(lines if len(lines) <= SHOWN else [f"... ({len(lines) - SHOWN} more lines)", *lines[-SHOWN:]])
