"""chapter.toml is read, and what is wrong in it is told."""

import pytest

from tools.course.chapter import read, read_chapter, verify
from tools.course.errors import CourseError


def test_a_chapter_is_read(folder):
    lesson = read_chapter(folder)
    verify(lesson)
    assert (lesson.number, lesson.title, lesson.opens[0]) == (1, "A chapter to test with", "framework")
    first, second = lesson.exercises
    assert (first.name, first.target.module, first.target.qualname, first.minutes, first.task) == (
        "unbroadcast", "minipd.ops.broadcast", "axes_to_sum", 15, "")
    assert second.target.qualname == "Multiply.vjp_x"
    assert first.check == folder / "checks" / "test_unbroadcast.py"


# What is changed in the file, and what is said.
WRONG = [
    ("number = 1", "number = 2", r"toml: number: expected the number in the folder's name, 01_demo, got 2"),
    ("number = 1", "number = '1'", r"toml: number: expected a whole number, got '1'"),
    ("number = 1", "number = true", r"expected a whole number, got True"),
    ("number = 1", "number =", r"expected TOML, got an error: Invalid value \(at line 2, column 9\)"),
    ("number = 1", "", r"toml: expected the key number, got none"),
    ("title", "titel", r"expected the keys number, title, opens, exercise, got 'titel'; did you mean title\?"),
    ('name = "rule"', 'name = "the rule"', r"exercise 2 \(the rule\): name: expected a name for a Python file"),
    ('name = "rule"', 'name = "unbroadcast"', r"exercise 2: name: expected a name of its own, got 'unbroadcast'"),
    ("minutes = 5", "minutes = 0", r"exercise 2 \(rule\): minutes: expected at least 1, got 0"),
    ("minutes = 5", "", r"exercise 2: expected the key minutes, got none"),
    (":Multiply", ".Multiply", r"target: expected a target like .*, got 'minipd.ops.math.Multiply.vjp_x'"),
    ("minipd.ops.math", "os.path", r"expected a target like"),
    ("ops.math", "ops.maths", r"target: expected a module .* got no file minipd/ops/maths.py"),
    ("Multiply.vjp_x", "Multiply.vpj_x", r"target: expected one function vpj_x .*; did you mean vjp_x\?"),
    ("Multiply.vjp_x", "Multipy.vjp_x", r"target: expected one class Multipy .*; did you mean Multiply\?"),
]


@pytest.mark.parametrize(("old", "new", "said"), WRONG)
def test_what_is_wrong_is_told(folder, old, new, said):
    path = folder / "chapter.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(CourseError, match=said) as caught:
        read_chapter(folder)
    assert "01_demo/chapter.toml" in str(caught.value)


UNFINISHED = [
    ("opens = ['framework', ", "opens = [",
     r"opens: expected what floor 1 opens in minipd/__init__.py \(FLOORS\), \['framework', .*; make the two equal"),
    ("#gradients", "#gradient", r"exercise rule: read: expected the anchor of a heading of README.md, got 'gradient'; "
     r"did you mean #gradients\?"),
    ("README.md#gradients", "LESSON.md#gradients", r"expected a file of the chapter and an anchor, README.md#anchor"),
]


@pytest.mark.parametrize(("old", "new", "said"), UNFINISHED)
def test_an_unfinished_chapter_can_be_read_and_is_refused(folder, old, new, said):
    path = folder / "chapter.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(CourseError, match=said):
        verify(read_chapter(folder))


def test_checks_that_are_missing(folder):
    (folder / "checks" / "test_rule.py").unlink()
    with pytest.raises(CourseError, match="exercise rule: expected its checks, got no file checks/test_rule.py"):
        verify(read_chapter(folder))


def test_a_chapter_that_is_not_there():
    with pytest.raises(CourseError, match=r"chapters/: expected a chapter that is there \(1.*\), got 77"):
        read(77)


def test_an_exercise_that_is_not_there(lesson):
    with pytest.raises(CourseError, match="one of the exercises unbroadcast, rule, got 'ruel'; did you mean rule"):
        lesson.exercise("ruel")
