"""The pass to the kernel dialect: kernels chosen by key, places of values, and the program that runs."""

import numpy as np
import pytest
from hypothesis import given, settings

from minipd import viz
from minipd.executor import Executor
from minipd.executor.kernel import (
    KernelKey,
    kernels_of,
    pd_op_to_kernel_pass,
    register_array_module,
    register_kernel,
    register_transfer,
    table,
)
from minipd.framework.flags import set_flags
from minipd.framework.meta import Meta
from minipd.framework.place import Place
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.parser import ParseError, parse
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError, verify
from minipd.ops.broadcast import expand_as
from minipd.ops.embedding import embedding
from minipd.static.nn import cond
from tests.ir.random_programs import programs

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)


class Npu(Place):
    """A device of whose kind there is none."""

    kind = "npu"


def lowered(f, *metas):
    return pd_op_to_kernel_pass(trace(f, *metas).program).program


def ops(program):
    return {op.name().removeprefix("kernel."): op for op in program.walk()}


# ------------------------------------------------------------------------------------------------- choosing
def test_the_key_operand_selects():
    op = ops(lowered(lambda ids, table: embedding(ids, table), Meta((2,), I64), Meta((3, 4), F32)))["embedding"]
    assert op.attrs()["kernel_key"] == KernelKey("CPU", "NCHW", "float32")
    assert [str(v.type()) for v in op.operands_source()] == ["undefined_tensor<2xi64>", "undefined_tensor<3x4xf32>"]
    assert str(op.result(0).type()) == "cpu_tensor<2x4xf32>"


def test_where_results_live():
    def f(x, y):
        h = (x + y).exp()
        return expand_as(h.reshape([-1]).sum(), h) * 2.0
    program = Executor(trace(f, Meta((2, 3), F32), Meta((2, 3), F32)).program).kernel_program
    found = {name: op.attrs().get("memory") for name, op in ops(program).items()}
    assert found == {"data": None, "add": "arena", "exp": "arena", "reshape": "view", "sum": "arena",
                     "expand_as": "view", "full": "constant", "multiply": "own", "full_int_array": None,
                     "builtin.shadow_output": None}
    verify(program)


def test_updates_write_over_state():
    program = Program()
    build = Builder(program.global_block())
    w, g = build.parameter("w", (2,), F32), build.data("g", (2,), F32)
    rate, skip = build.data("rate", (), F32), build.data("skip", (), np.dtype(bool))
    new, = build.call(ROWS["sgd"], (w, g, rate, skip), {})
    build.set_parameter("w", new)
    assert ops(Executor(program).kernel_program)["sgd"].attrs()["memory"] == "state"


# ------------------------------------------------------------------------------------- a program like any other
@given(programs(max_ops=15))
@settings(max_examples=25)
def test_lowered_programs_verify_and_parse(program):
    before = program.to_string("exact")
    found = pd_op_to_kernel_pass(program)
    verify(found.program)
    text = found.program.to_string("exact")
    assert parse(text) == found.program and parse(text).to_string("exact") == text
    assert program.to_string("exact") == before
    assert [found.origins[op] for op in found.program.walk()] == list(program.walk())


def test_regions_are_lowered_too():
    program = lowered(lambda x: cond(x.sum() > 0.0, lambda: x.exp(), lambda: x * 2.0), Meta((3,), F32))
    branch = ops(program)["pd_op.if"]
    assert [op.name() for op in branch.regions[0].front()] == ["kernel.exp", "cf.yield"]
    assert str(branch.result(0).type()) == "cpu_tensor<3xf32>"
    assert '"exp(phi_kernel)"' in str(program) and 'kernel_key:<backend:CPU|layout:NCHW|dtype:float32>' in str(program)
    assert "exp" in viz.program(program).svg


def test_what_is_not_lowered_as_a_whole_is_refused():
    program = lowered(lambda x: x.exp(), Meta((3,), F32))
    exp = ops(program)["exp"]
    exp.result(0).set_type(trace(lambda x: x, Meta((3,), F32)).program.list_vars()[0].type())
    with pytest.raises(VerifyError, match=r"expected values that have a place, got result 0 of kernel\.exp"):
        verify(program)
    exp.erase_attr("kernel_key")
    with pytest.raises(VerifyError, match="expected attribute 'kernel_key', got none"):
        verify(program)


def test_keys_that_are_none_are_refused():
    text = lowered(lambda x: x.exp(), Meta((3,), F32)).to_string("exact")
    with pytest.raises(ParseError, match=r"expected backend\|layout\|dtype, such as CPU\|NCHW\|float32, got 'CPU'"):
        parse(text.replace("CPU|NCHW|float32", "CPU"))


def test_print_ir_shows_both(capsys):
    program = trace(lambda x: x.exp(), Meta((3,), F32)).program
    set_flags({"FLAGS_print_ir": True})
    try:
        Executor(program)
    finally:
        set_flags({"FLAGS_print_ir": False})
    text = capsys.readouterr().out
    assert text.index('IR before lowering = {') < text.index('"pd_op.exp" (%0)')
    assert text.index('"pd_op.exp" (%0)') < text.index("IR after lowering = {") < text.index('"exp(phi_kernel)" (%0)')


# ---------------------------------------------------------------------------------------------- other backends
@pytest.fixture
def npu(monkeypatch):
    """A table of kernels without any for the NPU, to be filled."""
    monkeypatch.setattr(table, "REGISTERED", {})
    monkeypatch.setattr(table, "TRANSFERS", {})
    return Npu()


def test_kernels_are_chosen_by_place(npu):
    calls = []
    register_kernel("exp", "NPU", lambda x: calls.append("exp") or np.exp(x))
    register_kernel("add", "NPU", kernel_out=lambda out, x, y: calls.append("add") or np.add(x, y, out=out))
    register_transfer("NPU", lambda x: calls.append("to it") or x.copy(), lambda x: calls.append("back") or x.copy())
    program = trace(lambda x: (x + x).exp(), Meta((2,), F32)).program
    x = np.array([1, 2], np.float32)
    out = Executor(program, npu).run({"input_0": x})["output_0"]
    np.testing.assert_array_equal(out, np.exp(x + x))
    assert calls == ["to it", "add", "exp", "back"]
    text = str(pd_op_to_kernel_pass(program, npu).program)
    assert '"memcpy_h2d(phi_kernel)" (%0)' in text and "(undefined_tensor<2xf32>) -> custom_tensor<2xf32>" in text
    assert "<backend:NPU|layout:NCHW|dtype:float32>" in text and "(custom_tensor<2xf32>) -> cpu_tensor<2xf32>" in text


def test_state_goes_there_and_comes_back(npu):
    register_array_module("NPU", np)
    program = Program()
    build = Builder(program.global_block())
    w = build.parameter("w", (2,), F32)
    new, = build.call(ROWS["multiply"], (w, w), {})
    build.set_parameter("w", new)
    scope = {"w": np.array([2, 3], np.float32)}
    Executor(program, npu).run({}, scope)
    assert scope["w"].tolist() == [4, 9]
    assert [op.name() for op in pd_op_to_kernel_pass(program, npu).program.walk()] == [
        "builtin.parameter", "kernel.memcpy_h2d", "kernel.multiply", "kernel.memcpy_d2h", "builtin.set_parameter"]


def test_dtype_and_layout_are_part_of_the_key(npu):
    register_kernel("exp", "NPU", lambda x: x * 0 + 1, dtypes=["float64"])
    register_kernel("exp", "NPU", lambda x: x * 0 + 2)
    register_kernel("exp", "NPU", lambda x: x * 0 + 3, layout="NCHW", dtypes=["int64"])
    for dtype, expected in (("float64", 1), ("float32", 2)):
        program = trace(lambda x: x.exp(), Meta((1,), np.dtype(dtype))).program
        assert Executor(program, npu).run({"input_0": np.zeros(1, dtype)})["output_0"] == expected
    assert table.select(ROWS["exp"], KernelKey("NPU", "NCHW", "int64")).kernel(np.zeros(1)) == 3
    with pytest.raises(ValueError, match=r"exp has kernels for <backend:NPU\|layout:ALL_LAYOUT\|.*float64> already"):
        register_kernel("exp", "NPU", np.exp, dtypes=["float64"])


def test_a_missing_kernel_is_an_error_that_lists_what_there_is(npu):
    register_kernel("exp", "GPU", np.exp)
    program = trace(lambda x: x.exp(), Meta((2,), F32)).program
    with pytest.raises(NotImplementedError, match=r"kernel of pd_op\.exp: expected one for <backend:NPU\|layout:NCHW\|"
                       r"dtype:float32>, got none; there are <backend:CPU\|.*>, <backend:GPU\|.*>\. Register one with "
                       r"register_kernel\('exp', 'NPU', \.\.\.\)") as caught:
        Executor(program, npu)
    assert caught.value.__notes__[0].startswith(f"pd_op.exp (from {__file__}:")
    assert kernels_of("exp") == [KernelKey(backend, "ALL_LAYOUT", "ALL_DTYPE") for backend in ("CPU", "GPU")]


@pytest.mark.parametrize(("given", "message"), [
    (("nothing", "NPU", np.exp), "no row 'nothing'"),
    (("exp", "NPU"), "expected kernel, kernel_out or both, got neither"),
    (("exp", "CPU", np.exp), "expected another backend than the CPU")])
def test_what_cannot_be_registered(npu, given, message):
    with pytest.raises((KeyError, ValueError), match=message):
        register_kernel(*given)


@given(programs(symbolic=False, max_ops=10))
@settings(max_examples=15)
@np.errstate(all="ignore")
def test_the_array_modules_kernels_compute_the_same(program):
    table.REGISTERED.clear()
    register_array_module("NPU", np)
    try:
        rng = np.random.default_rng(0)
        feed = {op.attrs()["name"]: rng.standard_normal(op.result(0).shape).astype(op.result(0).dtype)
                for op in program.walk() if op.name() == "pd_op.data"}
        scopes = [{name: rng.standard_normal(v.shape).astype(v.dtype) for name, v in program.parameters().items()}]
        scopes.append(dict(scopes[0]))
        for scope, place in zip(scopes, ([], [Npu()]), strict=True):
            Executor(program, *place).run(feed, scope)
        for name, want in scopes[0].items():
            np.testing.assert_allclose(scopes[1][name].astype(float), want.astype(float), rtol=1e-2)
    finally:
        table.REGISTERED.clear()
