"""The pass: what it replaces, what new operations say of themselves, regions, and rules that never end."""

import numpy as np
import pytest

import minipd as paddle
from minipd.decomposition import DecomposePass, decompose
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static import InputSpec
from tests.decomposition.programs import run

X = np.random.default_rng(0).normal(size=(3, 5))


def softmax_of_silu(stop_gradient=True):
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (3, 5), "float64", stop_gradient)
    h, = build.call(ROWS["silu"], (x,), {}, {"op_callstack": ("model.py:7",)})
    y, = build.call(ROWS["softmax"], (h,), {"axis": 1})
    return program, build, x, y


def names(program):
    return [op.name().partition(".")[2] for op in program.walk() if op.name() != "pd_op.full"]


def test_new_operations_tell_where_they_come_from():
    program, build, _, y = softmax_of_silu()
    build.output("y", y)
    assert DecomposePass().run(program) == 3                # silu, its sigmoid, softmax
    verify(program)
    origin = {}
    for op in program.walk():
        found = op.attributes.get("comp_op_name")
        origin.setdefault(found and found.value, []).append(op)
    assert {op.name() for op in origin[None]} == {"pd_op.data", "builtin.shadow_output"}
    assert all(op.attributes["op_callstack"].value == ("model.py:7",) for op in origin["pd_op.silu"])
    assert [op.name() for op in origin["pd_op.softmax"] if op.row.name not in ("full_int_array", "full")] == [
        "pd_op.max", "pd_op.subtract", "pd_op.exp", "pd_op.sum", "pd_op.divide"]


def test_only_what_is_selected_goes():
    program, build, _, y = softmax_of_silu()
    build.output("y", y)
    assert DecomposePass(lambda op: op.row.name == "silu").run(program) == 1
    assert names(program) == ["data", "sigmoid", "multiply", "softmax", "shadow_output"]


def test_paddle_decompose_returns_the_new_values_and_obeys_the_lists():
    program, build, _, y = softmax_of_silu()
    new, = decompose(program, [y], blacklist=["pd_op.sigmoid"])
    build.output("y", new)
    assert new.get_defining_op().name() == "pd_op.divide" and "sigmoid" in names(program)
    program, build, _, y = softmax_of_silu()
    same, = decompose(program, [y], whitelist=["pd_op.silu"])
    assert same is y and "sigmoid" in names(program) and "softmax" in names(program)


def test_decomposed_before_backward_it_has_the_same_gradient():
    grads = []
    for first in (False, True):
        program, build, x, y = softmax_of_silu(stop_gradient=False)
        if first:
            y, = decompose(program, [y])
        tracer = Trace(program)
        w = tracer.input("w", X)
        g, = append_backward(program, [y], [x], [w], trace=tracer)
        tracer.build.output("g", g)
        verify(program)
        grads.append(run(program, {"x": X, "w": X ** 2})["g"])
    np.testing.assert_allclose(grads[1], grads[0], rtol=1e-12, atol=1e-15)


def test_regions_are_decomposed_in_place():
    def step(c, x):
        return paddle.static.nn.cond(c, lambda: paddle.nn.functional.softmax(x), lambda: paddle.nn.functional.silu(x))
    traced = trace(step, InputSpec([], "bool", "c"), InputSpec([3, 5], "float64", "x"))
    feeds = [{"c": np.array(c), "x": X} for c in (True, False)]
    before = [run(traced.program, feed)["output_0"] for feed in feeds]
    assert DecomposePass().run(traced.program) == 3
    verify(traced.program)
    assert "exp" not in [op.row.name for op in traced.program.global_block() if op.row is not None]
    for feed, want in zip(feeds, before, strict=True):
        np.testing.assert_allclose(run(traced.program, feed)["output_0"], want, rtol=1e-14)


def test_an_operation_whose_attribute_is_not_known_stays():
    program = Program()
    build = Builder(program.global_block())
    x, axis = build.data("x", (3, 5), "float64"), build.data("axis", (1,), "int64")
    y = build.build("pd_op.mean", [x, axis], {"keepdim": False, "stop_gradient": [True]}, [x.type()]).result(0)
    build.output("y", y)
    assert DecomposePass().run(program) == 0 and "mean" in names(program)


def test_rules_that_lead_back_are_refused(monkeypatch):
    monkeypatch.setitem(ROWS["sigmoid"].columns, "decompose", lambda x: ROWS["silu"](x) / x)
    program, build, _, y = softmax_of_silu()
    build.output("y", y)
    with pytest.raises(ValueError, match="silu -> sigmoid -> silu"):
        DecomposePass().run(program)


def test_a_second_run_finds_nothing():
    program, build, _, y = softmax_of_silu()
    build.output("y", y)
    DecomposePass().run(program)
    text = program.to_string("exact")
    assert DecomposePass().run(program) == 0 and program.to_string("exact") == text


def test_the_program_computes_the_same():
    program, build, _, y = softmax_of_silu()
    build.output("y", y)
    want = run(program, {"x": X})["y"]
    DecomposePass().run(program)
    np.testing.assert_allclose(run(program, {"x": X})["y"], want, rtol=1e-14)
