"""Whatever is in a student's file becomes that exercise's verdict; what is right passes, however it is written."""

import itertools
import signal
import textwrap

import pytest

from tools.course import process, workspace
from tools.course.grade import grade
from tools.course.report import verdict_text

RIGHT = """
def axes_to_sum(shape, target):
    lead = len(shape) - len(target)
    return tuple(range(lead)) + tuple(lead + i for i, n in enumerate(target) if n == 1 != shape[lead + i])
"""


@pytest.fixture
def graded(lesson, tmp_path):
    """Grades a text as the student's file of an exercise."""
    def run(text, name="unbroadcast", timeout=60):
        file = tmp_path / f"{name}.py"
        file.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
        verdict = grade(lesson, lesson.exercise(name), file, timeout)
        return verdict, verdict_text(lesson, verdict)
    return run


SAME = {
    "written another way": """
        import numpy as np
        def axes_to_sum(shape, target):
            padded = np.array((1,) * (len(shape) - len(target)) + tuple(target))
            missing = np.arange(len(shape)) < len(shape) - len(target)
            return tuple(int(i) for i in np.nonzero(missing | ((padded == 1) & (np.array(shape) != 1)))[0])
        """,
    "with helpers, above and below": """
        from itertools import zip_longest
        ONE = {}
        ONE["size"] = 1
        def pairs(shape, target):
            return reversed(list(zip_longest(reversed(shape), reversed(target))))
        def axes_to_sum(shape, target):
            return tuple(i for i, (n, m) in enumerate(pairs(shape, target)) if repeated(n, m))
        def repeated(n, m):
            return m is None or m == ONE["size"] != n
        """,
    "a lambda": """
        axes_to_sum = lambda shape, target: tuple(
            i for i, n in enumerate(shape) if i < len(shape) - len(target)
            or target[i - len(shape) + len(target)] == 1 != n)
        """,
    "decorated": "import functools\n@functools.lru_cache" + RIGHT,
    "defined twice": "def axes_to_sum(shape, target):\n    return ()\n" + RIGHT,
    "under a condition": "if True:\n" + textwrap.indent(RIGHT, "    "),
    "experiments beside it": RIGHT + """
import minipd as paddle
shape = paddle.ones([2, 3]).shape
print(axes_to_sum(shape, (3,)))
while True:
    input()
if __name__ == "__main__":
    raise SystemExit
""",
    "a byte order mark and Windows' line ends": b"\xef\xbb\xbf" + RIGHT.replace("\n", "\r\n").encode(),
    "a declared encoding": b"# -*- coding: latin-1 -*-\n# caf\xe9" + RIGHT.encode(),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_what_is_right_passes(graded, text):
    verdict, shown = graded(text)
    assert verdict.passed, shown
    assert shown == "unbroadcast: passed (2 checks)"


def test_a_method_and_its_helper_take_the_place_of_the_librarys(graded):
    verdict, shown = graded("""
        from minipd.ops.broadcast import reduce_to
        def times(g, y):
            return g * y
        class Multiply:
            '''Mine.'''
            def sum(g):
                "A name that is taken outside of the class, and free inside."
            def vjp_x(g, y, x):        # another save list is another way
                return reduce_to(times(g, y), x)
        """, "rule")
    assert verdict.passed, shown


# What is in the file, and what the student reads: some lines of it.
BROKEN = {
    "wrong": ("def axes_to_sum(shape, target): return ()", """
          on        axes_to_sum((2, 3), (3,))
          expected  (0,)
          got       ()"""),
    "a syntax error": ("def axes_to_sum(shape, target)\n    return ()", """
          expected  a file that Python can read
          got       SyntaxError: expected ':'
        ...
          at        line 1: def axes_to_sum(shape, target)"""),
    "a return outside": ("return 1\n" + RIGHT, "got       SyntaxError: 'return' outside function"),
    "a wrong encoding": (b"# caf\xe9\n" + RIGHT.encode(), """
          got       SyntaxError: invalid or missing encoding declaration
          do        save it as UTF-8"""),
    "a null byte": (RIGHT.encode() + b"\0", "got       SyntaxError: source code string cannot contain null bytes"),
    "nothing": ("", """
          expected  a function axes_to_sum
          got       none
          do        to start over, move the file away"""),
    "another name": ("def axis_to_sum(shape, target): return ()", """
          expected  a function axes_to_sum
          got       only axis_to_sum
          do        if axis_to_sum is it, give it back its name"""),
    "a broken import": ("import nowhere\n" + RIGHT, """
          expected  no error
          got       ModuleNotFoundError: No module named 'nowhere'
        ...
          at        line 1: import nowhere"""),
    "an import in a circle": ("from minipd.nn import Linear\n" + RIGHT, """
          do        minipd is only half loaded when this line runs; inside of the function it runs later
        ...
          at        line 1: from minipd.nn import Linear"""),
    "a later chapter": ("import minipd.dist\n" + RIGHT, "ClosedFloorError: floor 5 is closed in chapter 1"),
    "a name of the library": ("def expand_as(x, y): return x\ndef axes_to_sum(a, b): return expand_as(a, b)", """
          expected  names of your own besides axes_to_sum
          got       expand_as, which minipd.ops.broadcast has already
          do        give yours another name
        ...
          at        line 1"""),
    "a name of Python": ("def sum(x): return 0\ndef axes_to_sum(a, b): return sum(a)", """
          got       sum, which Python has already
          do        give yours another name"""),
    "import of everything": ("from numpy import *\n" + RIGHT, "expected  an import of names one by one"),
    "another signature": ("def axes_to_sum(shape): return ()", """
          got       TypeError: axes_to_sum() takes 1 positional argument but 2 were given"""),
    "an error": ("def axes_to_sum(shape, target):\n    return shape[7]", """
          got       IndexError: tuple index out of range
        ...
          at        line 2: return shape[7]
          check     ...test_unbroadcast.py::test_a_row"""),
    "nothing returned": ("def axes_to_sum(shape, target):\n    sorted(shape)", """
          on        axes_to_sum((2, 3), (3,))
          expected  (0,)
          got       None
          do        does your function return None?"""),
    "an endless message": ("def axes_to_sum(shape, target):\n    raise ValueError('a' * 10 ** 6)",
                           "a ... (1000012 characters)"),
    "recursion": ("def axes_to_sum(shape, target):\n    return axes_to_sum(shape, target)", """
          got       RecursionError: maximum recursion depth exceeded"""),
    "an exit": ("import sys\ndef axes_to_sum(shape, target):\n    sys.exit(0)", "got       SystemExit: 0"),
    "a hard exit": ("import os\ndef axes_to_sum(shape, target):\n    os._exit(0)", """
          expected  the check to come to its end
          got       the process ended with status 0 (os._exit?)
        ...
          check     ...::test_a_row"""),
    "a kill": ("import os\ndef axes_to_sum(shape, target):\n    os.kill(os.getpid(), 9)", "killed by SIGKILL"),
    "an interrupt": ("def axes_to_sum(shape, target):\n    raise KeyboardInterrupt", "got       KeyboardInterrupt"),
    "the end of pytest": ("import pytest\ndef axes_to_sum(shape, target):\n    pytest.exit('done')", "Exit: done"),
    "a skip": ("import pytest\ndef axes_to_sum(shape, target):\n    pytest.skip('hard')", "got       Skipped: hard"),
    "input": ("def axes_to_sum(shape, target):\n    return input()", "got       EOFError: EOF when reading a line"),
    "equal to everything": ("""
        class Always:
            def __eq__(self, other): return True
        def axes_to_sum(shape, target): return Always()""", "expected  (0,)\ngot       <minipd.ops.broadcast.Always"),
    "too much memory": ("def axes_to_sum(shape, target):\n    return bytearray(1 << 40)", "got       MemoryError"),
    "an output closed": ("import os\ndef axes_to_sum(shape, target):\n    os.close(1)\n    os.close(2)\n    return ()",
                         "expected  (0,)\ngot       ()"),
    "a thread left running": ("""
        import threading, time
        def axes_to_sum(shape, target):
            threading.Thread(target=time.sleep, args=(1000,)).start()
            return ()""", "expected  (0,)\ngot       ()"),
}


@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_told(graded, text, said):
    verdict, shown = graded(text)
    assert verdict.state == "failed"
    rest = textwrap.dedent(shown.replace("\n  ", "\n"))
    for part in textwrap.dedent(said).split("..."):
        part = textwrap.dedent(part).strip("\n")
        assert part in rest, shown
        rest = rest.partition(part)[2]
    assert "read      " + verdict.exercise.lesson in rest


@pytest.mark.parametrize("loop", ["while True: pass", "import time; time.sleep(1000)"])
def test_a_loop_is_stopped_and_its_line_named(graded, loop):
    verdict, shown = graded(f"def axes_to_sum(shape, target):\n    {loop}", timeout=8)
    assert "got       still running after 8 seconds" in shown
    assert "at        line 2, in axes_to_sum, when it was stopped" in shown
    assert "::test_a_row" in shown


def test_a_loop_that_nobody_stops_ends_itself(monkeypatch):
    monkeypatch.setattr(process, "GRACE", -59.0)            # of 60 seconds
    ended = process.run(sum, (itertools.count(),), {}, timeout=60)       # it holds Python's lock: no thread gets a turn
    assert ended.status == -signal.SIGALRM


def test_endless_printing_is_stopped_and_cut(graded):
    verdict, shown = graded("def axes_to_sum(shape, target):\n    while True: print('again', end=' ')", timeout=8)
    assert "got       still running after 8 seconds" in shown
    assert "printed   again again" in shown
    assert len(shown) < 2000


def test_what_a_wrong_solution_prints_is_shown(graded):
    verdict, shown = graded("def axes_to_sum(shape, target):\n    print('shape is', shape)\n    return ()")
    assert shown.endswith("printed   shape is (2, 3)")


def test_an_error_of_the_library_is_told_with_its_place(graded):
    verdict, shown = graded("class Multiply:\n    def vjp_x(g, x, y):\n        return [g * y]", "rule")
    assert "at        the library, with what your function gave it, at minipd/" in shown


def test_an_untouched_file_points_to_the_lesson(graded, lesson):
    for exercise in lesson.exercises:
        verdict, shown = graded(workspace.stub(lesson, exercise), exercise.name)
        assert verdict.state == "unwritten"
        assert shown.splitlines()[0] == f"{exercise.name}: not written yet"
        assert exercise.lesson in shown


def test_the_librarys_own_text_passes(graded, lesson):
    for exercise in lesson.exercises:
        verdict, shown = graded(workspace.solution(lesson, exercise), exercise.name)
        assert verdict.passed, shown


def test_a_check_without_tests_passes_nobody(graded, lesson):
    lesson.exercise("rule").check.write_text("")
    verdict, shown = graded(workspace.solution(lesson, lesson.exercise("rule")), "rule")
    assert verdict.state == "failed"
    assert "expected  checks that pass" in shown


def test_a_file_that_is_not_there(lesson, tmp_path):
    verdict = grade(lesson, lesson.exercise("rule"), tmp_path / "none.py")
    assert verdict.state == "missing"
    assert "do        make exercise-1 writes it; what is there already stays as it is" in verdict_text(lesson, verdict)
