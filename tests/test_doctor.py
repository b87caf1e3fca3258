"""The doctor reports everything, with a fix for what is not here, and never fails itself."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from minipd import doctor

NAMES = ["Python", "minipd", "numpy", "numba", "TBB", "MPI", "dot", "g++", "CUDA", "cache", "threads"]


def run_doctor(*command: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)


def findings(text: str) -> dict[str, str]:
    """name -> mark; every line that is not a fix belongs to a finding."""
    lines = [line for line in text.splitlines() if not line.startswith(" ")]
    return {line.split()[1]: line.split()[0] for line in lines}


def test_the_command_reports_every_subject():
    done = run_doctor(sys.executable, "-m", "minipd", "doctor")
    assert done.returncode == 0, done.stderr
    marks = findings(done.stdout)
    assert list(marks) == NAMES
    assert all(marks[name] == "ok" for name in ("Python", "minipd", "numpy", "numba", "cache", "threads")), done.stdout


def test_everything_that_is_off_has_a_fix():
    done = run_doctor(sys.executable, "-m", "minipd", "doctor", PATH="", MINIPD_CACHE=os.devnull + "/no/folder")
    assert done.returncode == 0
    marks = findings(done.stdout)
    assert (marks["cache"], marks["g++"]) == ("MISSING", "off")
    off = sum(mark != "ok" for mark in marks.values())
    assert len(re.findall(r"^ +fix: \S", done.stdout, re.MULTILINE)) == off
    assert "fix: export MINIPD_CACHE=" in done.stdout


def test_it_needs_nothing_but_python(tmp_path):
    """An interpreter without any package, and the file alone: what `make doctor` runs before `make setup`."""
    package = tmp_path / "minipd"
    (package / "framework").mkdir(parents=True)
    source = Path(doctor.__file__).parent
    for name in ("doctor.py", "framework/environment.py"):
        shutil.copy(source / name, package / name)
    bare = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")]
    assert subprocess.run(bare, timeout=120).returncode == 0
    interpreter = next(path for path in (tmp_path / "venv").glob("*/python*") if path.is_file())
    done = run_doctor(str(interpreter), "-I", str(package / "doctor.py"), MINIPD_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    marks = findings(done.stdout)
    assert [marks[name] for name in ("Python", "minipd", "numpy", "MPI", "cache")] == [
        "ok", "MISSING", "MISSING", "off", "ok"]
    assert "No module named 'numpy'" in done.stdout
    assert f"fix: {interpreter} -m pip install 'numpy" in done.stdout


def test_a_check_that_hangs_or_is_not_there_is_a_finding(monkeypatch):
    monkeypatch.setattr(doctor, "PATIENCE", 0.2)
    good, said = doctor.python("import time; time.sleep(60)")
    assert not good and "timed out" in said
    assert doctor.run(["no-such-program-here"]) == (
        False, "[Errno 2] No such file or directory: 'no-such-program-here'")


def test_a_crash_on_import_is_a_finding():
    assert doctor.python("import os; os._exit(7)") == (False, "exit status 7")
    assert doctor.python("1 / 0") == (False, "ZeroDivisionError: division by zero")


@pytest.mark.parametrize(("fix", "optional", "mark"), [
    ("", False, "ok"), ("do", True, "off"), ("do", False, "MISSING")])
def test_marks(fix, optional, mark):
    assert doctor.Finding("dot", "detail", fix, optional).mark == mark
