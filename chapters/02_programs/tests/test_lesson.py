"""What the lesson claims, beyond the examples that it shows."""

import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor
from minipd.executor.layout import Layout
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.evaluate import evaluate
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.static.input import InputSpec

CHAPTER = Path(__file__).resolve().parent.parent
F32 = np.dtype("float32")


def test_later_floors_are_closed():
    run = subprocess.run([sys.executable, "-c", "import minipd, minipd.passes"], capture_output=True, text=True,
                         env={"MINIPD_FLOOR": "2"})
    assert run.returncode != 0 and "floor 3 is closed in chapter 2: minipd.passes is built in chapter 3" in run.stderr


DRAWN = runpy.run_path(str(CHAPTER / "img" / "draw.py"))


@pytest.mark.parametrize("name", list(DRAWN["PICTURES"]))
def test_pictures_are_what_their_script_draws(name):
    drawn = DRAWN["PICTURES"][name]()
    assert (CHAPTER / "img" / name).read_text(encoding="utf-8") == drawn, "run img/draw.py"
    ElementTree.fromstring(drawn)


def chain(x, w):
    a = paddle.matmul(x, w)
    b = paddle.matmul(a, w)
    c = paddle.matmul(b, w)
    d = paddle.matmul(c, w)
    return (a + d).sum()


def test_the_picture_of_the_arena_shows_the_plan():
    program = trace(chain, Meta((8, 8), F32), Meta((8, 8), F32)).program
    layout = Layout(Executor(program).prepared, {})
    shown = DRAWN["BUFFERS"]
    assert [(b.start, b.end, b.offset) for b in layout.own.values() if b.merged is None] == [
        (start, end, 256 * unit) for _, start, end, unit, _ in shown]


def test_the_picture_of_the_loop_shows_what_is_computed():
    """By Python's own loop, and by the program and its gradient."""
    x = h = 2.0
    for pushed, after in DRAWN["FORWARD"]:
        assert h == pushed
        h = h * x
        assert h == after
    g, total = 1.0, 0.0
    for (popped, summed, after), (pushed, _) in zip(DRAWN["BACKWARD"], reversed(DRAWN["FORWARD"]), strict=True):
        assert popped == pushed
        total, g = total + g * popped, g * x
        assert (total, g) == (summed, after)

    def cube(x):
        h = x
        for _ in range(len(DRAWN["FORWARD"])):
            h = h * x
        return h
    t = paddle.to_tensor(x, stop_gradient=False)
    cube(t).backward()
    assert t.grad.item() == total + g


def test_the_picture_of_the_segments_shows_what_is_noted():
    @paddle.jit.to_static(full_graph=False)
    def g(x):
        y = x * 2.0 + 1.0
        if float(y.sum()) > 3.0:
            y = y - 1.0
        return y * y
    shown = ElementTree.fromstring(DRAWN["segments"]())
    words = [e.text for e in shown.iter() if e.tag.endswith("text")]
    segments = paddle.jit.explain(g, paddle.ones([2])).segments
    assert [s.ops for s in segments] == [("multiply", "add", "sum"), ("subtract", "multiply")]
    assert {"multiply, add", "sum", "subtract", "multiply"} < set(words)
    for i, segment in enumerate(segments):
        assert f"segment {i}: {len(segment.ops)} operators" in words


def test_a_loop_that_changes_a_type_is_an_error():
    def f(x):
        while x.sum() < 10.0:
            x = paddle.concat([x, x])
        return x
    with pytest.raises((TypeError, ValueError), match="loop|while"):
        paddle.jit.to_static(f)(paddle.ones([1]))


def test_a_branch_that_python_decides_is_not_in_the_program():
    def f(x, flip):
        if flip:
            x = -x
        if x.sum() > 0.0:
            x = x * 2.0
        return x
    compiled = paddle.jit.to_static(f)
    assert compiled(paddle.ones([1]), True).item() == -1.0 and compiled(paddle.ones([1]), False).item() == 2.0
    ops = [op.name() for op in compiled.concrete_program.main_program.walk()]
    assert ops.count("pd_op.if") == 1


def test_the_executor_gives_what_the_definition_gives():
    """`evaluate` with kernels is what a program means."""
    program = trace(chain, Meta((8, 8), F32), Meta((8, 8), F32)).program
    rng = np.random.default_rng(0)
    feed = {f"input_{i}": rng.standard_normal((8, 8)).astype(F32) for i in range(2)}
    written = {}

    def run(row, payloads, attrs):
        return row.kernel(*payloads, **attrs)
    evaluate(program, run, lambda op: feed[op.attributes["name"].value],
             lambda op, value: written.update({op.attributes["output_name"].value: value}))
    np.testing.assert_array_equal(Executor(program).run(feed)["output_0"], written["output_0"])


def test_a_trained_weight_is_seen():
    """Captured, not baked in: the compiled function works at the second call, too."""
    w = paddle.to_tensor([10.0])
    f = paddle.jit.to_static(lambda x: x * w)
    assert f(paddle.ones([1])).tolist() == [10.0]
    w.set_value(np.array([3.0], "float32"))
    assert f(paddle.ones([1])).tolist() == [3.0]


def test_the_rules_run_once_on_the_sum():
    """Ten branchings in a row: the gradient grows by the same few operations each time."""
    def count(n):
        def f(x):
            for _ in range(n):
                x = x * 1.0 + x * 2.0
            return x.sum()
        traced = trace(f, InputSpec([2], "float32", "x", stop_gradient=False))
        before = traced.program.num_ops()
        append_backward(traced.program, traced.output_values, traced.input_values)
        return traced.program.num_ops() - before
    assert count(10) - count(9) == count(3) - count(2) < 10


def test_one_product_if_the_data_wants_no_gradient():
    def products(**stop):
        x, w = (InputSpec([4, 4], "float32", name, stop_gradient=stop.get(name, False)) for name in ("x", "w"))
        traced = trace(lambda x, w: paddle.matmul(x, w).sum(), x, w)
        wanted = [v for v in traced.input_values if not v.stop_gradient]
        append_backward(traced.program, traced.output_values, wanted)
        return sum(op.name() == "pd_op.matmul" for op in traced.program.walk())
    assert (products(), products(x=True)) == (3, 2)


def test_programs_can_be_read_back():
    program = trace(lambda x: (x.exp() * 0.1).sum(), InputSpec([None, 3], "float32", "x")).program
    assert parse(program.to_string("exact")) == program


def test_assumptions_are_checked_when_the_program_runs():
    two = InputSpec(["S0"], "float32"), InputSpec(["S1"], "float32")
    executor = Executor(trace(lambda x, y: x + y, *two).program)
    ones = {n: np.ones(n, F32) for n in (2, 3)}
    assert executor.run({"input_0": ones[2], "input_1": ones[2]})["output_0"].tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match=r"Broadcastable\(S0,S1\)"):
        executor.run({"input_0": ones[2], "input_1": ones[3]})


def test_a_use_list_of_operations_would_not_do():
    program = trace(lambda x: x * x, Meta((2,), F32)).program
    x = program.global_block().front().result(0)
    assert len(x.uses) == 2 and len(x.all_used_ops()) == 1
    y = Builder(program.global_block(), program.global_block().front()).data("y", (2,), "float32")
    x.uses[0].set_source(y)
    assert len(x.uses) == len(y.uses) == 1 and ROWS["multiply"] is x.first_use().owner().row
