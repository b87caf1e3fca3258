"""Reads `chapters/NN_name/chapter.toml`: what a chapter opens, and its exercises."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tools.course.errors import CourseError
from tools.course.source import ROOT, Target, find

CHAPTERS = ROOT / "chapters"

CHAPTER_KEYS: dict[str, type] = {"number": int, "title": str, "opens": list, "exercise": list}
EXERCISE_KEYS: dict[str, type] = {"name": str, "target": str, "title": str, "read": str, "minutes": int, "task": str}
OPTIONAL = {"task"}


class Exercise(NamedTuple):
    """One function to write.

    name:    the file of the student, `<name>.py`; its checks are `checks/test_<name>.py`.
    target:  the function of the library that the student's takes the place of.
    read:    the part of the lesson to read, "README.md#anchor".
    minutes: about how long it takes.
    task:    what to do, where the function's docstring does not say it.
    """

    name: str
    target: Target
    title: str
    read: str
    minutes: int
    task: str
    folder: Path

    @property
    def check(self) -> Path:
        return self.folder / "checks" / f"test_{self.name}.py"

    @property
    def lesson(self) -> str:
        """The part to read, as a path from the root of the repository."""
        return f"{self.folder.relative_to(ROOT).as_posix() if self.folder.is_relative_to(ROOT) else self.folder}/" \
               f"{self.read}"

    @property
    def wrong(self) -> list[Path]:
        """Planted wrong solutions, which the checks must refuse."""
        return sorted((self.folder / "wrong" / self.name).glob("*.py"))


class Chapter(NamedTuple):
    number: int
    title: str
    opens: tuple[str, ...]
    exercises: tuple[Exercise, ...]
    folder: Path

    @property
    def tests(self) -> list[Path]:
        """What pytest runs for the chapter: its tests, and the examples in its text."""
        return [self.folder / "tests", self.folder / "README.md"]

    def exercise(self, name: str) -> Exercise:
        for exercise in self.exercises:
            if exercise.name == name:
                return exercise
        names = [exercise.name for exercise in self.exercises]
        near = difflib.get_close_matches(name, names, n=1)
        raise CourseError(f"chapter {self.number}", "one of the exercises " + ", ".join(names), repr(name),
                          f"did you mean {near[0]}?" if near else "")


def folders() -> list[Path]:
    """The folders of all chapters, in order."""
    return sorted(path.parent for path in CHAPTERS.glob("[0-9][0-9]_*/chapter.toml"))


def read(number: int) -> Chapter:
    """The chapter of that number."""
    for folder in folders():
        if int(folder.name[:2]) == number:
            return read_chapter(folder)
    there = ", ".join(str(int(folder.name[:2])) for folder in folders()) or "none"
    raise CourseError("chapters/", f"a chapter that is there ({there})", str(number))


def read_chapter(folder: Path) -> Chapter:
    """Raises: CourseError that names the file, the key and what was expected there."""
    path = folder / "chapter.toml"
    where = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(where, "TOML", f"an error: {error}") from None
    _check_keys(table, CHAPTER_KEYS, where)
    number = table["number"]
    if not folder.name.startswith(f"{number:02d}_"):
        raise CourseError(f"{where}: number", f"the number in the folder's name, {folder.name}", str(number))
    exercises: dict[str, Exercise] = {}
    for i, row in enumerate(table["exercise"], 1):
        exercise = _exercise(row, folder, f"{where}: exercise {i}")
        if exercise.name in exercises:
            raise CourseError(f"{where}: exercise {i}: name", "a name of its own", f"{exercise.name!r} a second time")
        exercises[exercise.name] = exercise
    return Chapter(number, table["title"], tuple(table["opens"]), tuple(exercises.values()), folder)


def _exercise(row: Any, folder: Path, where: str) -> Exercise:
    if not isinstance(row, Mapping):
        raise CourseError(where, "a table, [[exercise]]", repr(row))
    _check_keys(row, EXERCISE_KEYS, where)
    where = f"{where} ({row['name']})"
    if not row["name"].isidentifier():
        raise CourseError(f"{where}: name", "a name for a Python file", repr(row["name"]))
    if row["minutes"] < 1:
        raise CourseError(f"{where}: minutes", "at least 1", str(row["minutes"]))
    target = Target.parse(row["target"], f"{where}: target")
    find(target, f"{where}: target")
    return Exercise(row["name"], target, row["title"], row["read"], row["minutes"], row.get("task", ""), folder)


def verify(chapter: Chapter) -> None:
    """That the chapter opens what its floor opens, that each exercise has checks, and that the part of the lesson it
    points to is there.  (A chapter that is being written can be read and graded before.)

    Raises: CourseError.
    """
    from minipd import FLOORS  # late: see errors.py

    path = f"{chapter.folder.name}/chapter.toml"
    opens = next((floor.opens for floor in FLOORS if floor.number == chapter.number), ())
    if chapter.opens != opens:
        raise CourseError(f"{path}: opens", f"what floor {chapter.number} opens in minipd/__init__.py (FLOORS), "
                          f"{list(opens)}", str(list(chapter.opens)), "make the two equal")
    for exercise in chapter.exercises:
        where = f"{path}: exercise {exercise.name}"
        if not exercise.check.is_file():
            raise CourseError(where, "its checks", f"no file checks/{exercise.check.name}")
        _verify_anchor(exercise, f"{where}: read")


def _check_keys(table: Mapping[str, Any], keys: dict[str, type], where: str) -> None:
    for key in table:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            raise CourseError(where, "the keys " + ", ".join(keys), repr(key),
                              f"did you mean {near[0]}?" if near else "")
    for key, kind in keys.items():
        if key not in table:
            if key not in OPTIONAL:
                raise CourseError(where, f"the key {key}", "none")
        elif type(table[key]) is not kind:
            names = {int: "a whole number", str: "a text", list: "a list"}
            raise CourseError(f"{where}: {key}", names[kind], repr(table[key]))


def _verify_anchor(exercise: Exercise, where: str) -> None:
    file, _, anchor = exercise.read.partition("#")
    path = exercise.folder / file
    if not path.is_file():
        raise CourseError(where, "a file of the chapter and an anchor, README.md#anchor", repr(exercise.read))
    there = anchors(path.read_text(encoding="utf-8"))
    if anchor not in there:
        near = difflib.get_close_matches(anchor, there, n=1)
        raise CourseError(where, f"the anchor of a heading of {file}", repr(anchor),
                          f"did you mean #{near[0]}?" if near else f"there are {', '.join(there)}")


def anchors(markdown: str) -> list[str]:
    """The anchors of a page's headings, as GitHub makes them.

    >>> anchors("# What `x + y` costs\\n```\\n# a comment\\n```\\n## Views, again\\n## Views, again")
    ['what-x--y-costs', 'views-again', 'views-again-1']
    """
    found: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        if mark := re.match(r" {0,3}(```+|~~~+)", line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and (heading := re.match(r"#{1,6} +(.*?)[ #]*$", line)):
            anchor = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
            copies = sum(re.fullmatch(re.escape(anchor) + r"(-\d+)?", one) is not None for one in found)
            found.append(f"{anchor}-{copies}" if copies else anchor)
    return found
