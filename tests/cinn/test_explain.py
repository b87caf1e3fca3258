"""`cinn.explain`: groups, reasons, bytes, schedules, code; and that asking changes nothing."""

import re

import numpy as np
import pytest

import minipd as paddle
import minipd.nn.functional as F
from minipd.cinn import explain
from minipd.cinn.command import main
from minipd.cinn.ir.ast import Init, Let, ScheduleBlock
from minipd.cinn.ir.walk import statements
from minipd.cinn.kernels import KERNELS
from minipd.framework.errors import InputError
from minipd.ir.paddle import to_paddle
from minipd.ir.traced import trace
from minipd.static import InputSpec


def rms_norm(x, w):
    return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def wanting(*shape):
    x = paddle.ones(list(shape))
    x.stop_gradient = False
    return x


def test_a_formula_is_one_kernel_each_way():
    found = explain(rms_norm, wanting(64, 256), wanting(256))
    assert [part.title for part in found.parts] == ["forward", "backward"]
    forward, backward = found.parts
    assert (forward.calls_before, forward.calls_after, backward.calls_after) == (6, 1, 1)
    kernel, = forward.kernels
    assert kernel.pattern == "ReduceTree+Trivial"
    # x is read and the result written once; w, and the number per row that the gradient wants, are the rest
    assert forward.bytes_after == kernel.bytes_fused == 4 * (2 * 64 * 256 + 256 + 64)
    assert kernel.bytes_apart > 3 * kernel.bytes_fused and found.bytes_after < found.bytes_before / 4
    assert all(edge.fused for edge in found.edges)
    assert [edge.downstream.rpartition("_")[0] for edge in kernel.edges][:2] == ["sum", "divide"]
    for word in ("why one kernel:", "fused by SinkTrivialPattern", "loops as lowered:", "ScheduleBlock(root)",
                 "schedule:", "s.vectorize('j", "# ComputeAt", "loops as scheduled:", "parallel for (i",
                 "np.float32(256.0)", "6 calls become 1"):
        assert word in str(found)


def test_why_not_is_said():
    """A product of matrices stands between; and the row sums of a transposed matrix go another way."""
    def f(x, w):
        return paddle.exp(paddle.matmul(paddle.tanh(x) * 2.0, w)) + 1.0
    found = explain(f, paddle.ones([8, 16]), paddle.ones([16, 4]))
    part, = found.parts
    assert part.library == {"matmul": 1} and len(part.kernels) == 2
    reasons = {edge.reason for edge in part.edges}
    assert any("matmul" in reason and "library call" in reason for reason in reasons)
    assert "why not one kernel:" in str(found) and "library calls: matmul" in str(found)


def test_equal_layers_share_a_kernel():
    net = paddle.nn.Sequential(*[paddle.nn.Sequential(paddle.nn.Linear(8, 8), paddle.nn.GELU()) for _ in range(3)])
    found = explain(net, paddle.ones([4, 8]))
    first, second, third = found.parts[0].kernels
    assert first.same_as is None and (second.same_as, third.same_as) == (0, 0)
    assert second.name == first.name and "the same as group 0's" in str(second)
    assert found.summary.count(first.name) == 1 and "3 times" in found.summary
    assert str(found).count(f"def {first.name}") == 1 + str(found.parts[1]).count(f"def {first.name}")


def test_nothing_is_run_and_nothing_built():
    calls, before = [], dict(KERNELS)
    net = paddle.nn.Linear(4, 4)
    weight = net.weight.numpy().copy()
    optimizer = paddle.optimizer.SGD(0.5, parameters=net.parameters())
    optimizer.prepare()

    def step(x):
        calls.append(1)
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss
    found = explain(step, paddle.ones([2, 4]))
    assert found.parts[0].kernels and KERNELS == before
    np.testing.assert_array_equal(net.weight.numpy(), weight)


def test_open_dimensions_stay_open():
    found = explain(rms_norm, InputSpec([None, 256], "float32", "x"), InputSpec([256], "float32", "w"))
    kernel, = found.kernels
    assert "x0.shape[0]" in str(kernel)
    found = explain(lambda x: paddle.nn.functional.softmax(x), InputSpec([None, None], "float32", "x"))
    assert "x0.shape[1]" in found.kernels[0].source or "x0_dim1" in found.kernels[0].source


def test_programs_and_compiled_functions():
    program = trace(rms_norm, InputSpec([4, 8], "float32", "x"), InputSpec([8], "float32", "w")).program
    text = program.to_string("exact")
    found = explain(program)
    assert found.parts[0].title == "program" and len(found.kernels) == 1
    assert program.to_string("exact") == text
    assert len(explain(to_paddle(program)).kernels) == 1        # as it is saved
    compiled = paddle.jit.to_static(rms_norm, backend="CINN")
    assert explain(compiled, np.ones((4, 8), "float32"), np.ones(8, "float32")).name == "rms_norm"
    assert not compiled.traces                      # it has not been called


# -------------------------------------------------------------------------------------------- page and command
def test_it_is_a_page_in_a_notebook(tmp_path):
    found = explain(rms_norm, wanting(8, 16), wanting(16))
    page = found._repr_html_()
    assert page.count("<details") >= 6 and page.count("<svg") == 6              # groups, schedule, loops, each way
    for word in ("fusion group: ", "ReduceTree+Trivial", "SinkTrivialPattern", f"def {found.kernels[0].name}"):
        assert word in page
    found.save(tmp_path / "p.html")
    assert (tmp_path / "p.html").read_text().startswith("<!doctype html>")
    with pytest.raises(InputError, match="ends in .html"):
        found.save(tmp_path / "p.svg")


SOURCE = """
import minipd as paddle
import minipd.nn.functional as F

def norm(x, w):
    return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w

net = paddle.nn.Linear(8, 8)

def asks(x):
    return x.numpy()
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def test_the_command_prints(file, capsys):
    assert main([f"{file}:norm", "-i", "float32[S,64]", "-i", "float32[64]"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("norm\n\nforward: ") and "loops as scheduled:" in text and "backward" not in text
    main([f"{file}:norm", "-i", "float32[8,64]", "-i", "float32[64]", "--gradient", "--summary"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and lines[3].startswith("  backward: ")
    main([f"{file}:net", "-i", "float32[4,8]", "-s"])
    assert capsys.readouterr().out.startswith("Linear\n")


def test_the_command_writes_a_page(file, tmp_path, capsys):
    main([f"{file}:norm", "-i", "float32[8,64]", "-i", "float32[64]", "-o", str(tmp_path / "n.html")])
    assert capsys.readouterr().out == f"{tmp_path / 'n.html'}\n" and "<svg" in (tmp_path / "n.html").read_text()


@pytest.mark.parametrize("arguments, message", [
    (["{file}:norm"], "expected a function of 0 tensors"), (["{file}:other"], "'other'"),
    (["{file}:norm", "-i", "float32[4,"], "expected an input such as"),
    (["{file}:asks", "-i", "float32[4]"], "numpy"), (["nowhere.py:f"], "no such file")])
def test_bad_commands(file, arguments, message):
    with pytest.raises(InputError, match=message):
        main([word.format(file=file) for word in arguments])


@pytest.mark.parametrize("call, message", [
    (lambda: explain(3), "expected a function, a layer or a program, got 3"),
    (lambda: explain(trace(lambda x: x.exp(), InputSpec([2], "float32")).program, paddle.ones([2])),
     "expected no inputs for a program"),
    (lambda: explain(rms_norm, paddle.ones([2])), "missing .* 'w'"),
    (lambda: explain(lambda x: np.exp(x.sum().numpy()), paddle.ones([2])), "numpy"),
])
def test_bad_requests(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_operators_have_one_number_in_groups_edges_schedules_loops_and_code():
    """Constants, views and library calls count among the operators of a program, and not of a kernel."""
    def f(x, w):
        left, right = paddle.split(paddle.matmul(x * 2.0, w) + 1.0, 2, -1)
        return F.softmax(paddle.concat([-right, left], -1) * x) * 3.0
    found = explain(f, wanting(8, 16), wanting(16, 16))
    own = [kernel for kernel in found.kernels if kernel.same_as is None]
    assert len(own) > 2
    for kernel in own:
        blocks = {s.name.removesuffix("__reduce_init") for s in statements(kernel.lowered.body)
                  if isinstance(s, ScheduleBlock)}
        loops = {name for name in blocks if not re.fullmatch(r"y\d+", name)}
        assert loops and loops <= set(kernel.operators)
        assert kernel.trace.replay(kernel.lowered).trace == kernel.trace
        lets = {s.name for s in statements(kernel.function.body) if isinstance(s, Let | Init)}
        assert {name for name in lets if re.fullmatch(r"[a-z]+_\d+", name)} <= set(kernel.operators)
        assert all(name in kernel.source for name in lets)
    assert any(edge.upstream in kernel.source for kernel in own for edge in kernel.edges)
