"""The commands of the course; `make exercise-N`, `make check-N`, `make chapter-N` and `make notebooks` call them."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.course import chapter, grade, report, workspace
from tools.course.errors import CourseError
from tools.course.source import ROOT

Command = Callable[[argparse.Namespace], int]

#: The exit status of what Ctrl-C has ended, as shells have it.
INTERRUPTED = 130


def exercise(options: argparse.Namespace) -> int:
    """Write the files of a chapter's exercises."""
    for path, new in workspace.write(chapter.read(options.chapter), options.workspace):
        print(f"{'written' if new else 'kept   '}  {report.shown(path)}")
    print(f"Fill them in; `make check-{options.chapter}` checks them. "
          f"To start one over, move its file away and run this again.")
    return 0


def check(options: argparse.Namespace) -> int:
    """Grade a chapter's exercises: all of them, or those that are named."""
    lesson = chapter.read(options.chapter)
    exercises = [lesson.exercise(name) for name in options.exercises] or lesson.exercises
    if options.workspace != workspace.WORKSPACE and not options.workspace.is_dir():
        file = workspace.file_of(exercises[0], Path())
        raise CourseError(f"--workspace {options.workspace}", f"a folder with files such as {file}", "no such folder")
    verdicts = []
    for one in exercises:
        if sys.stdout.isatty():         # the verdict takes the place of this line
            print(f"{one.name} ...", end="\r", flush=True)
        try:
            verdict = grade.grade(lesson, one, workspace.file_of(one, options.workspace), options.timeout)
        except KeyboardInterrupt:
            print(f"\ninterrupted in {one.name}", file=sys.stderr)
            return INTERRUPTED
        print(report.verdict_text(lesson, verdict), end="\n\n", flush=True)
        verdicts.append(verdict)
    print(report.summary(verdicts))
    return 0 if all(verdict.passed for verdict in verdicts) else 1


def run(options: argparse.Namespace) -> int:
    """Run a chapter's tests, the examples in its text and its notebook, with later floors closed."""
    from tools.course import notebook  # late: students check their files often, and Jupyter takes its time

    lesson = chapter.read(options.chapter)
    chapter.verify(lesson)
    tested = subprocess.run([sys.executable, "-m", "pytest", "-q", *map(str, lesson.tests)], cwd=ROOT,
                            env={**os.environ, **grade.environment(lesson.number)})
    if tested.returncode != 0:
        return 1
    for path in notebook.sources([str(lesson.number)]):
        notebook.run(path)
        print(f"{report.shown(path)} runs")
    return 0


def notebooks(options: argparse.Namespace) -> int:
    """Run notebooks and write them with their outputs: all of them, or those that are named."""
    from tools.course import notebook

    for path in notebook.sources(options.names):
        changed = notebook.build(path)
        print(f"{report.shown(path.with_suffix('.ipynb'))}  {'written' if changed else 'as it was'}", flush=True)
    return 0


def _parser(command: Command) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m tools.course {command.__name__}", description=command.__doc__)
    if command is notebooks:
        parser.add_argument("names", nargs="*", metavar="NAME", help="a chapter's number, or a notebook's name")
        return parser
    parser.add_argument("chapter", type=int, help="its number")
    if command in (exercise, check):
        parser.add_argument("--workspace", type=Path, default=workspace.WORKSPACE, help="the folder of the student")
    if command is check:
        parser.add_argument("exercises", nargs="*", metavar="EXERCISE", help="default: all of the chapter")
        parser.add_argument("--timeout", type=float, default=grade.TIMEOUT, help="seconds for each exercise")
    return parser


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    commands = {command.__name__: command for command in (exercise, check, run, notebooks)}
    summary = "\n".join(f"  {name:10} {command.__doc__}" for name, command in commands.items())
    parser = argparse.ArgumentParser(prog="python -m tools.course", description=__doc__, epilog=summary,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=commands)
    command = commands[parser.parse_args(argv[:1]).command]
    options = _parser(command).parse_intermixed_args(argv[1:])      # names may follow options
    try:
        return command(options)
    except (CourseError, OSError) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")   # type: ignore[union-attr]  # a terminal that is not UTF-8
    sys.exit(main())
