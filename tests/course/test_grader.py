"""The grader is proven: in every exercise the library passes, the untouched stub fails with a pointer to the lesson,
and every planted wrong solution fails (most of them in the long tests)."""

import re
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tools.course import chapter, grade, report, workspace
from tools.course.chapter import folders, read_chapter

EXERCISES = [pytest.param(folder, row["name"], id=f"{folder.name}-{row['name']}") for folder in folders()
             for row in tomllib.loads((folder / "chapter.toml").read_text())["exercise"]]


def test_every_exercise_has_wrong_solutions():
    for folder in folders():
        for exercise in read_chapter(folder).exercises:
            assert len(exercise.wrong) >= 3, exercise.name


@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize(("folder", "name"), EXERCISES)
def test_an_exercise_accepts_what_is_right_and_refuses_the_rest(folder, name, some, tmp_path):
    """some: of the wrong solutions the first and the last; each loads the library anew, and there are hundreds."""
    lesson = read_chapter(folder)
    exercise = lesson.exercise(name)
    wrong = exercise.wrong[::len(exercise.wrong) - 1] if some else exercise.wrong
    right, stub = tmp_path / "right.py", tmp_path / "stub.py"
    right.write_text(workspace.solution(lesson, exercise))
    stub.write_text(workspace.stub(lesson, exercise))
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(partial(grade.grade, lesson, exercise), [right, stub, *wrong]))
    texts = [report.verdict_text(lesson, verdict) for verdict in verdicts]
    assert verdicts[0].passed, texts[0]
    assert verdicts[1].state == "unwritten", texts[1]
    assert exercise.lesson in texts[1]
    for path, verdict, text in zip(wrong, verdicts[2:], texts[2:], strict=True):
        assert path.read_text().startswith("# "), f"{path}: the first line is to say what is wrong"
        assert verdict.state == "failed", f"{path} is wrong, and passes as {text}"
        assert verdict.fields["check"], f"{path} fails before it is checked:\n{text}"
        assert not re.search(r"\b(Name|Import|ModuleNotFound)Error: ", text), f"{path} is broken, not wrong:\n{text}"
        assert exercise.lesson in text


@pytest.mark.long
@pytest.mark.parametrize("path", sorted(chapter.CHAPTERS.glob("*/right/*/*.py")),
                         ids=lambda path: f"{path.parts[-4]}-{path.parts[-2]}-{path.stem}")
def test_an_exercise_accepts_other_right_solutions(path):
    lesson = read_chapter(path.parents[2])
    verdict = grade.grade(lesson, lesson.exercise(path.parent.name), path)
    assert verdict.passed, report.verdict_text(lesson, verdict)


def test_the_overview_shows_what_a_student_is_told(tmp_path):
    """The failure in chapters/README.md is that of a wrong solution of the exercise."""
    lesson = chapter.read(1)
    exercise = lesson.exercise("softmax_gradient")
    verdict = grade.grade(lesson, exercise, exercise.folder / "wrong" / exercise.name / "the_last_product.py")
    text = report.verdict_text(lesson, verdict._replace(file=workspace.file_of(exercise)))
    assert text in (chapter.CHAPTERS / "README.md").read_text()


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_a_chapter_is_whole(folder):
    lesson = read_chapter(folder)
    chapter.verify(lesson)
    assert len(lesson.exercises) >= 4
    there = {path.name for path in (folder / "wrong").iterdir()}
    assert there == {exercise.name for exercise in lesson.exercises}
