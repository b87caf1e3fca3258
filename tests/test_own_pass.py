"""examples/own_pass.py: passes in a user's file are found, listed, run, drawn and bisected."""

import runpy
from pathlib import Path

import pytest

from minipd.cli import main
from minipd.framework.errors import InputError
from minipd.ir.parser import parse
from minipd.passes import PassManager, load_passes, pass_names
from minipd.passes.pattern import RULES
from minipd.passes.show import brief, program_of
from minipd.passes.table import MAKERS

EXAMPLE = str(Path(__file__).parents[1] / "examples" / "own_pass.py")
NAMES = ["drop_dropout_pass", "halves_pass"]


@pytest.fixture(autouse=True)
def clean():
    """What a test registers is gone afterwards."""
    before = {*pass_names()}
    yield
    for name in {*pass_names()} - before:
        RULES.pop(name, None), MAKERS.pop(name, None)


def test_the_example_shows_what_its_passes_do(capsys):
    runpy.run_path(EXAMPLE, run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "before", "  a = divide(x, 2.0)", "  b = divide(y, 3.0)", "  c = add(a, b)", "  return c",
        "after", "  a = multiply(x, 0.5)", "  b = divide(y, 3.0)", "  c = add(a, b)", "  return c",
        "2 changes leave a = multiply(x, 0.5); return a"]
    assert len(Path(EXAMPLE).read_text().splitlines()) <= 40


def test_its_passes_are_in_the_table_like_any_other_and_may_be_loaded_again():
    for _ in range(2):
        assert load_passes(EXAMPLE) == NAMES and {*NAMES} <= {*pass_names()}
    assert [rule.name for rule in RULES["halves_pass"]] == ["Halves"]
    manager = PassManager(debug=True)
    manager.add_pass("halves_pass")
    program = program_of(lambda x, n: (x / 2.0, n / 2), "f16[4]", "i64[4]")
    assert manager.run(program) == 2        # n / 2 divides floats made of n
    assert "divide" not in brief(program)


def test_the_listing_tells_where_they_are_and_what_they_do(capsys):
    assert main(["passes", "--load", EXAMPLE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["pass", *pass_names()] and {*NAMES} <= {*pass_names()}
    assert "halves_pass" in lines[1 + pass_names().index("halves_pass")]
    assert main(["passes", "--load", EXAMPLE, *NAMES]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "pass               level  exact  what it does",
        "drop_dropout_pass  1      -      Dropouts of a probability of at most `at_most` are removed",
        f"    file     {EXAMPLE}",
        "    options  at_most=0.0",
        "halves_pass        2      -      Division of floats by two becomes multiplication by a half, which gives the "
        "same numbers",
        f"    file     {EXAMPLE}",
        "    rules    Halves",
        "    options  max_rewrites: int | None = None"]


def test_they_are_applied_drawn_and_bisected_from_the_shell(tmp_path, capsys):
    (tmp_path / "net.py").write_text("def f(x):\n    return (x.tanh() / 2.0).exp()\n")
    given = [f"{tmp_path}/net.py:f", "--input", "float32[2,3]", "--load", EXAMPLE]
    assert main(["passes", "halves_pass", "--on", *given, "--out", str(tmp_path / "out.pir"), "--statistics",
                 "--print-ir", str(tmp_path / "ir"), "--debug"]) == 0
    statistics, file = capsys.readouterr().out.splitlines()
    assert statistics.startswith("halves_pass      1 changes") and statistics.endswith("KiB  Halves 1")
    assert brief(parse(Path(file).read_text())) == "a = tanh(input_0)\nb = multiply(a, 0.5)\nc = exp(b)\nreturn c"
    assert sorted(p.name for p in (tmp_path / "ir").iterdir()) == ["00_halves_pass.after.pir",
                                                                   "00_halves_pass.before.pir"]
    assert main(["draw", *given, "--passes", "halves_pass"]) == 0
    drawn = capsys.readouterr().out
    assert 'label="multiply' in drawn and 'label="divide' not in drawn
    assert main(["bisect", *given, "--passes", "halves_pass,drop_dropout_pass", "--rtol", "0"]) == 0
    assert capsys.readouterr().out.startswith("the result stays the same after each of 2 passes: halves_pass, drop")


@pytest.mark.parametrize("text, says", [
    ("import nothing_of_that_name", "to run, got ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    ("x = 1", "expected a file that registers passes, got .*, which registers none: put @register_pass"),
    ("from minipd.passes import Pass, register_pass\n@register_pass('inplace_or_so')\nclass P(Pass):\n    name = 'q'",
     "got ValueError: register_pass: expected P.name to be 'inplace_or_so', got 'q'"),
    ("from minipd.passes import *\nregister_pass('dead_code_elimination_pass')(Pass)",
     "got ValueError: register_pass: expected a new name, got 'dead_code_elimination_pass', which is the pass of "
     "minipd.passes.library.dead_code_elimination"),
])
def test_a_file_that_is_no_plug_in_is_refused(text, says, tmp_path):
    (tmp_path / "plug.py").write_text(text)
    with pytest.raises(InputError, match=says):
        load_passes(tmp_path / "plug.py")


def test_what_cannot_be_applied_is_refused(tmp_path, capsys):
    (tmp_path / "net.py").write_text("def f(x):\n    return x\n")
    assert main(["passes", "--on", f"{tmp_path}/net.py:f", "-i", "float32[2]"]) == 2
    assert "expected names of passes to apply, got none" in capsys.readouterr().err
    assert main(["passes", "dead_code_pass"]) == 2
    assert capsys.readouterr().err == (
        "minipd: expected the name of a pass, got 'dead_code_pass': did you mean dead_code_elimination_pass? `minipd "
        "passes` lists them, and --load FILE.py adds those of a file\n")
