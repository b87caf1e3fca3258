"""The stubs say what there is: `minipd ops --stubs` would change nothing, and a type checker believes them."""

import subprocess
import sys
from pathlib import Path

import pytest

from minipd import cli
from minipd.ops import stubs

ROOT = Path(__file__).resolve().parent.parent


def test_they_are_not_stale():
    wanted = stubs.stubs()
    assert len(wanted) == 3
    for path, text in wanted.items():
        assert path.is_file() and path.read_text() == text, f"{path} is not what it should be: run `minipd ops --stubs`"


def test_the_command_says_so(capsys):
    assert cli.main(["ops", "--stubs"]) == 0
    assert capsys.readouterr().out == "the stubs are as they should be\n"


def checked(code: str, tmp_path: Path) -> str:
    """What mypy says of a user's file, with nothing of this repository's configuration."""
    file = tmp_path / "user.py"
    file.write_text(code)
    done = subprocess.run([sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", "--cache-dir",
                           str(tmp_path / "cache"), str(file)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    return done.stdout


@pytest.mark.long
def test_a_users_file_is_checked_against_generated_names(tmp_path):
    said = checked("import minipd as paddle\n"
                   "from minipd.nn import functional as F\n"
                   "x = paddle.exp(paddle.to_tensor([1.0])).tanh().sum(axis=0) + 1.0\n"
                   "reveal_type(paddle.exp(x))\n"
                   "reveal_type(x.tanh())\n"
                   "reveal_type(F.relu(x))\n"
                   "paddle.exp(x, nonsense=1)\n"
                   "x.no_such_method()\n", tmp_path)
    assert said.count('Revealed type is "minipd.framework.tensor.Tensor"') == 3
    assert 'Unexpected keyword argument "nonsense"' in said
    assert '"Tensor" has no attribute "no_such_method"' in said
