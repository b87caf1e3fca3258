"""The command line finds its commands, refuses what it does not know, and prepares the environment."""

import json
import os
import subprocess
import sys
from types import ModuleType

import pytest

from minipd import cli
from minipd.framework import environment
from minipd.framework.errors import InputError


@pytest.fixture
def command(monkeypatch):
    """A command `probe` whose main is what the test gives it."""
    module = ModuleType("probe_command")
    monkeypatch.setitem(sys.modules, "probe_command", module)
    monkeypatch.setattr(cli, "COMMANDS", (*cli.COMMANDS, cli.Command("probe", "try", "probe_command:main")))

    def define(main):
        module.main = main
    return define


def test_help_lists_every_command(capsys):
    assert cli.main([]) == 0
    text = capsys.readouterr().out
    for entry in cli.COMMANDS:
        assert f"  {entry.name} " in text and entry.summary in text


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == "minipd 0.1.0\n"


@pytest.mark.parametrize(("word", "message"), [
    ("trian", "minipd: no command 'trian'; did you mean 'train'? `minipd --help` lists them\n"),
    ("xyzzy", "minipd: no command 'xyzzy'; `minipd --help` lists them\n"),
])
def test_an_unknown_command_is_refused(word, message, capsys):
    assert cli.main([word]) == 2
    assert capsys.readouterr().err == message


def test_a_command_gets_its_own_arguments(command):
    seen = []
    command(lambda argv: seen.append(argv))
    assert cli.main(["probe", "--mesh", "dp=2", "--help"]) == 0
    assert seen == [["--mesh", "dp=2", "--help"]]


def test_the_status_is_the_commands(command):
    command(lambda argv: 7)
    assert cli.main(["probe"]) == 7


def test_bad_input_is_one_line_and_status_2(command, capsys):
    def main(argv):
        raise InputError("a mesh of 4 ranks", "dp=2,tp=4", "change --mesh")
    command(main)
    assert cli.main(["probe"]) == 2
    assert capsys.readouterr().err == "minipd: expected a mesh of 4 ranks, got dp=2,tp=4: change --mesh\n"


def test_other_errors_keep_their_traceback(command):
    def main(argv):
        raise ZeroDivisionError
    command(main)
    with pytest.raises(ZeroDivisionError):
        cli.main(["probe"])


def test_a_closed_floor_closes_its_commands():
    done = subprocess.run([sys.executable, "-m", "minipd", "launch"], env={**os.environ, "MINIPD_FLOOR": "4"},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("minipd: floor 5 is closed in chapter 4: minipd.dist")


def test_each_rank_gets_its_share_of_the_cores():
    share = environment.rank_environment(2, cores=8)
    assert {share[name] for name in environment.THREAD_VARIABLES} == {"4"}
    assert share["OPENBLAS_THREAD_TIMEOUT"] == "4" and "MPIR_CVAR_ENABLE_HEAVY_YIELD" not in share
    crowded = environment.rank_environment(4, cores=2)
    assert crowded["OMP_NUM_THREADS"] == "1" and crowded["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "1"


def test_the_users_settings_win():
    assert environment.missing({"A": "1", "B": "2"}, {"A": "9"}) == {"B": "2"}


def test_the_process_restarts_once_with_the_environment_set():
    """What is missing is set before numpy is loaded; what the user has set stays."""
    code = ("import json, os, sys\n"
            "sys.argv = ['minipd', 'probe', 'x y']\n"
            "from minipd.framework import environment\n"
            "os.execve = lambda path, argv, env: print(json.dumps([argv, env]))\n"
            "environment.restart_prepared('minipd', sys.argv[1:])\n")
    bare = {k: v for k, v in os.environ.items() if k not in environment.rank_environment(1)}
    done = subprocess.run([sys.executable, "-c", code], env={**bare, "OMP_NUM_THREADS": "3"}, capture_output=True,
                          text=True, timeout=120, check=True)
    argv, prepared = json.loads(done.stdout)
    assert argv == [sys.executable, "-m", "minipd", "probe", "x y"]
    assert prepared["OMP_NUM_THREADS"] == "3"
    assert prepared["OPENBLAS_THREAD_TIMEOUT"] == "4"
    again = subprocess.run([sys.executable, "-c", code], env=prepared, capture_output=True, text=True, timeout=120,
                           check=True)
    assert again.stdout == ""


def test_the_environment_is_known_without_numpy():
    code = ("import runpy, sys\n"
            f"runpy.run_path({environment.__file__!r})\n"
            "assert 'numpy' not in sys.modules and 'minipd' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
