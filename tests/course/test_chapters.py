"""Every chapter stands by itself: its tests, the examples in its text, and its notebook, with later floors closed."""

import os
import subprocess
import sys

import pytest

from tools.course import notebook
from tools.course.chapter import folders, read_chapter
from tools.course.grade import environment
from tools.course.source import ROOT

CHAPTERS = folders()
NOTEBOOKS = notebook.sources()


@pytest.mark.parametrize("folder", CHAPTERS, ids=lambda folder: folder.name)
def test_a_chapters_tests_and_the_examples_in_its_text(folder):
    lesson = read_chapter(folder)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", *map(str, lesson.tests)], cwd=ROOT,
                          env={**os.environ, **environment(lesson.number)}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout.splitlines()[-1], done.stdout


@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_built_notebook_has_its_sources_cells(source):
    assert notebook.stale(source) == "", "run `make notebooks`"


@pytest.mark.parametrize("source", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_in_the_built_one(source):
    assert notebook.other_outputs(source, notebook.run(source)) == "", "run `make notebooks`"


def test_the_overview_lists_every_chapter():
    overview = (ROOT / "chapters" / "README.md").read_text()
    for folder in CHAPTERS:
        lesson = read_chapter(folder)
        assert f"| {lesson.number} [{lesson.title}]({folder.name}/README.md) |" in overview


def test_every_chapter_has_a_notebook():
    assert [path.stem for path in NOTEBOOKS] == [folder.name for folder in CHAPTERS]
