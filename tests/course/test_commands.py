"""The commands behind `make exercise-N` and `make check-N`."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tools.course import chapter, grade
from tools.course.__main__ import main
from tools.course.source import ROOT


@pytest.fixture(autouse=True)
def only_the_demo(folder, monkeypatch):
    monkeypatch.setattr(chapter, "CHAPTERS", folder.parent)


def test_from_files_to_verdicts(tmp_path, capsys):
    mine = tmp_path / "mine"
    command = ["--workspace", str(mine)]
    mine.mkdir()
    assert main(["check", "1", *command]) == 1
    assert "unbroadcast: no file" in capsys.readouterr().out

    assert main(["exercise", "1", *command]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"written  {mine}/01_demo/unbroadcast.py"
    assert main(["exercise", "1", *command]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"kept     {mine}/01_demo/unbroadcast.py"

    (mine / "01_demo" / "rule.py").write_text("class Multiply:\n    def vjp_x(g, x, y):\n        return g * y\n")
    assert main(["check", "1", *command]) == 1
    out = capsys.readouterr().out
    assert "rule: passed (1 check)" in out
    assert out.endswith("  unbroadcast  not written yet\n  rule         passed\n1 of 2 passed\n")
    assert main(["check", "1", *command, "rule"]) == 0
    assert main(["check", "1", "rule", *command]) == 0


def test_an_interrupt_names_the_exercise(tmp_path, monkeypatch, capsys):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(grade, "grade", interrupted)
    assert main(["check", "1", "rule", "--workspace", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "\ninterrupted in rule\n"


def ended(pid):
    """Whether the process is gone, ten seconds from now at the latest."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL, signal.SIGINT])
def test_a_loop_does_not_outlive_the_command(number, folder, tmp_path):
    (tmp_path / "01_demo").mkdir(exist_ok=True)
    (tmp_path / "01_demo" / "unbroadcast.py").write_text(textwrap.dedent(f"""
        import os, pathlib
        def axes_to_sum(shape, target):
            pathlib.Path({str(tmp_path)!r}, "part").write_text(str(os.getpid()))
            os.replace({str(tmp_path / "part")!r}, {str(tmp_path / "pid")!r})
            while True: pass
        """))
    command = ("import pathlib, sys; from tools.course import chapter, __main__ as course\n"
               f"chapter.CHAPTERS = pathlib.Path({str(folder.parent)!r})\n"
               f"sys.exit(course.main(['check', '1', 'unbroadcast', '--workspace', {str(tmp_path)!r}]))")
    started = subprocess.Popen([sys.executable, "-c", command], cwd=ROOT, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            if (tmp_path / "pid").exists():
                break
            time.sleep(0.05)
        pid = int((tmp_path / "pid").read_text())
    finally:
        started.send_signal(number)
        said = started.communicate()[1]
    assert ended(pid)
    if number == signal.SIGINT:
        assert (started.returncode, said) == (130, "\ninterrupted in unbroadcast\n")


def test_bad_requests_are_refused(capsys):
    assert main(["check", "1", "--workspace", "/nowhere"]) == 2
    assert capsys.readouterr().err == (
        "--workspace /nowhere: expected a folder with files such as 01_demo/unbroadcast.py, got no such folder\n")
    assert main(["check", "1", "ruel"]) == 2
    assert capsys.readouterr().err == (
        "chapter 1: expected one of the exercises unbroadcast, rule, got 'ruel'; did you mean rule?\n")
    assert main(["exercise", "7"]) == 2
    assert capsys.readouterr().err == "chapters/: expected a chapter that is there (1), got 7\n"
