"""`import paddle` means minipd, after install_as_paddle() and under `minipd as-paddle`."""

import subprocess
import sys
import textwrap

import pytest

from minipd import cli


def python(code: str, *command: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *(command or ("-c", textwrap.dedent(code)))], capture_output=True, text=True,
                          timeout=120)


def test_every_module_is_the_very_same():
    done = python("""
        import minipd
        minipd.install_as_paddle()
        minipd.install_as_paddle()                  # a second time changes nothing
        import paddle
        import paddle.distributed as dist
        import paddle.nn.functional as F
        from paddle.nn import Layer, Linear
        from paddle.optimizer.lr import StepDecay
        assert paddle is minipd and F is minipd.nn.functional and dist is minipd.distributed
        assert Layer is minipd.nn.Layer and issubclass(Linear, paddle.nn.Layer)
        import importlib
        assert minipd.nn.__spec__.name == "minipd.nn" and importlib.import_module("paddle.nn") is minipd.nn
        print(paddle.to_tensor([1.0]))
        """)
    assert done.stdout == ("Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,\n       [1.])\n"), (
        done.stderr)


def test_it_can_stand_for_torch_too():
    done = python("""
        import minipd as paddle
        paddle.enable_compat()
        import torch
        import torch.nn.functional as F
        assert torch is paddle and F is paddle.nn.functional
        paddle.disable_compat()
        try:
            import torch
        except ModuleNotFoundError:
            pass
        else:
            assert torch is not paddle
        minipd = paddle
        minipd.install_as_paddle()
        print(type(minipd.ones([1])))
        """)
    assert done.stdout == "<class 'paddle.Tensor'>\n", done.stderr


@pytest.mark.parametrize("line, words", [
    ("paddle.no_such_name", "AttributeError: minipd has no paddle.no_such_name"),
    ("paddle.nn.Linearr", "AttributeError: minipd has no paddle.nn.Linearr; did you mean 'Linear'?"),
    ("import paddle.no_such_module", "ModuleNotFoundError: minipd has no module paddle.no_such_module"),
    ("from paddle.nn import Liner", "ImportError: cannot import name 'Liner' from 'minipd.nn'"),
])
def test_what_minipd_lacks_is_said(line, words):
    done = python(f"import minipd; minipd.install_as_paddle()\nimport paddle\n{line}")
    assert words in done.stderr


def test_another_paddle_that_is_there_already_is_not_replaced():
    done = python("""
        import sys, types
        sys.modules["paddle"] = types.ModuleType("paddle")
        import minipd
        minipd.install_as_paddle()
        """)
    assert "install_as_paddle: paddle is imported already" in done.stderr


def test_a_script_with_arguments(tmp_path):
    (tmp_path / "neighbour.py").write_text("value = 7\n")
    script = tmp_path / "script.py"
    script.write_text("import sys\nimport paddle\nimport neighbour\n"
                      "print(__name__, sys.argv[1:], paddle.ones([2]).sum().item(), neighbour.value)\n")
    done = python("", "-m", "minipd", "as-paddle", str(script), "--flag", "x")
    assert done.stdout == "__main__ ['--flag', 'x'] 2.0 7\n", done.stderr
    script.write_text("import sys\nimport paddle\nsys.exit(3)\n")
    assert python("", "-m", "minipd", "as-paddle", str(script)).returncode == 3
    script.write_text("import paddle\npaddle.ones([2]) + paddle.ones([3])\n")
    done = python("", "-m", "minipd", "as-paddle", str(script))
    assert done.returncode == 1 and "script.py\", line 2" in done.stderr and "cannot broadcast" in done.stderr


def test_a_script_that_is_not_there(capsys, tmp_path):
    assert cli.main(["as-paddle", str(tmp_path / "none.py")]) == 2
    assert "expected a Python file to run" in capsys.readouterr().err


def test_a_package_and_a_function_of_paddles_share_a_name():
    import minipd as paddle
    import minipd.dist.comm.sim as sim
    assert sim.__name__ == "minipd.dist.comm.sim" and paddle.dist.mesh.__name__ == "minipd.dist.mesh"
    assert paddle.dist(paddle.to_tensor([3.0, 0.0]), paddle.to_tensor([0.0, 4.0])).item() == 5.0
