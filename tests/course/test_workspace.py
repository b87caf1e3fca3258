"""What a student is given, and that it is never taken away again."""

import ast
import subprocess
import sys

import pytest

from tools.course import workspace
from tools.course.chapter import folders, read_chapter
from tools.course.source import ROOT, find

ALL = [pytest.param(lesson, exercise, id=f"{lesson.folder.name}-{exercise.name}")
       for lesson in map(read_chapter, folders()) for exercise in lesson.exercises]


def test_the_file_of_a_method(lesson):
    assert workspace.stub(lesson, lesson.exercise("rule")).startswith(f'''\
# Exercise 2 of chapter 1: The gradient of a product (about 5 minutes)
#
# Write   Multiply.vjp_x, below. Return the gradient of x * y for x.
# Read    {lesson.folder}/README.md#gradients
# Check   make check-1 ARGS=rule
#
''')
    assert workspace.stub(lesson, lesson.exercise("rule")).endswith('''

class Multiply:
    """out = x * y, broadcast."""

    def vjp_x(g, x: Meta, y):
        raise NotImplementedError("exercise rule: Multiply.vjp_x is not written yet")
''')


def test_the_docstring_stays_and_the_body_goes(lesson):
    text = workspace.stub(lesson, lesson.exercise("unbroadcast"))
    assert "# Write   axes_to_sum, below. Its docstring says what it must do." in text
    assert "from minipd.ops.shapes import broadcast_shapes, stretches\n" in text
    assert text.endswith('''
    >>> axes_to_sum((4, 2, 3), (2, 1))
    (0, 2)
    """
    raise NotImplementedError("exercise unbroadcast: axes_to_sum is not written yet")
''')


@pytest.mark.parametrize(("text", "head"), [
    ("def f(x): return x + 1\n", "def f(x):"),
    ("def f(x):  # x + 1, that is\n    # the answer\n    return x + 1\n", "def f(x):"),
    ("def f(x, *, y: dict[str, int] = {1: 2},\n      z=lambda: 3) -> 'a:b':\n    return x\n",
     "def f(x, *, y: dict[str, int] = {1: 2},\n      z=lambda: 3) -> 'a:b':"),
])
def test_the_signature_stays_without_comments(text, head):
    assert workspace._signature(text) == head


def test_nothing_is_overwritten(lesson, tmp_path):
    first = workspace.write(lesson, tmp_path / "mine")
    assert [new for _, new in first] == [True, True]
    path = first[0][0]
    path.write_text("my work")
    first[1][0].unlink()
    again = workspace.write(lesson, tmp_path / "mine")
    assert [new for _, new in again] == [False, True]
    assert path.read_text() == "my work"


@pytest.mark.parametrize(("lesson", "exercise"), ALL)
def test_every_file_is_python_and_keeps_the_signature(lesson, exercise):
    found = find(exercise.target, "")
    tree = ast.parse(workspace.stub(lesson, exercise))
    (function,) = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
                   and node.name == exercise.target.function]
    assert ast.unparse(function.args) == ast.unparse(found.function.args)
    assert ast.get_docstring(function) == ast.get_docstring(found.function)
    assert len(function.body) == 1 + (ast.get_docstring(function) is not None)
    assert exercise.task or ast.get_docstring(function), f"{exercise.name}: nothing says what is to be done"


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_every_file_runs_by_itself(folder, tmp_path):
    """A student may run the file as it is, and try things at its end."""
    paths = [str(path) for path, _ in workspace.write(read_chapter(folder), tmp_path)]
    run = "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", run, *paths], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
