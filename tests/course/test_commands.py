"""The commands behind `make exercise-N` and `make check-N`."""

import pytest

from tools.course import chapter
from tools.course.__main__ import main


@pytest.fixture(autouse=True)
def only_the_demo(folder, monkeypatch):
    monkeypatch.setattr(chapter, "CHAPTERS", folder.parent)


def test_from_files_to_verdicts(tmp_path, capsys):
    mine = tmp_path / "mine"
    command = ["--workspace", str(mine)]
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


def test_bad_requests_are_refused(capsys):
    assert main(["check", "1", "ruel"]) == 2
    assert capsys.readouterr().err == (
        "chapter 1: expected one of the exercises unbroadcast, rule, got 'ruel'; did you mean rule?\n")
    assert main(["exercise", "7"]) == 2
    assert capsys.readouterr().err == "chapters/: expected a chapter that is there (1), got 7\n"
