"""The commands of the course; `make exercise-N`, `make check-N`, `make chapter-N` and `make notebooks` call them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.course import grade, report, workspace
from tools.course.chapter import chapter
from tools.course.errors import CourseError


def exercise(options: argparse.Namespace) -> int:
    """Write the files of a chapter's exercises."""
    for path, new in workspace.write(chapter(options.chapter), options.workspace):
        print(f"{'written' if new else 'kept   '}  {report.shown(path)}")
    print(f"Fill them in; `make check-{options.chapter}` checks them. "
          f"To start one over, move its file away and run this again.")
    return 0


def check(options: argparse.Namespace) -> int:
    """Grade a chapter's exercises: all of them, or those that are named."""
    which = chapter(options.chapter)
    exercises = [which.exercise(name) for name in options.exercises] or which.exercises
    verdicts = []
    for one in exercises:
        verdict = grade.grade(which, one, workspace.file_of(one, options.workspace), options.timeout)
        print(report.verdict_text(which, verdict), end="\n\n", flush=True)
        verdicts.append(verdict)
    print(report.summary(verdicts))
    return 0 if all(verdict.passed for verdict in verdicts) else 1


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.course", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for run in (exercise, check):
        command = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("chapter", type=int, help="its number")
        command.add_argument("--workspace", type=Path, default=workspace.WORKSPACE, help="the folder of the student")
        if run is check:
            command.add_argument("exercises", nargs="*", metavar="EXERCISE", help="default: all of the chapter")
            command.add_argument("--timeout", type=float, default=grade.TIMEOUT, help="seconds for each exercise")
    options = parser.parse_args(argv)
    try:
        return options.run(options)
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
