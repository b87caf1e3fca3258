"""Programs whose groups are kernels: they compute the same, say what they run, and fall back where they must."""

import warnings

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn import compile as compiling
from minipd.cinn.compile import apply_cinn_pass, made_of, prepare
from minipd.cinn.dialect import JIT_KERNEL
from minipd.cinn.frontend import build_groups, bytes_moved
from minipd.cinn.kernels import KERNELS, kernel_of
from minipd.cinn.lower import CannotLower, lower
from minipd.cinn.runtime.compiler import KernelError, process_compiler
from minipd.executor import Executor, calls_ahead
from minipd.framework.row import ROWS
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.static import InputSpec
from tests.cinn.programs import traced
from tests.decomposition.programs import run

R = np.random.default_rng(0)


def compiled(fn, *arrays, tolerance=1e-12):
    """The compiled program; it has been run, and gives what its operators give one by one."""
    program, feed = traced(fn, *arrays)
    want = run(program, feed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        apply_cinn_pass(program)
    verify(program)
    assert parse(program.to_string("exact")) == program
    got = Executor(program).run(feed)
    for name, array in want.items():
        assert got[name].dtype == array.dtype
        finite = np.abs(array[np.isfinite(array)])
        np.testing.assert_allclose(got[name], array, rtol=tolerance, atol=tolerance * finite.max(initial=0),
                                   err_msg=name)
    return program


def kernels(program):
    return [op for op in program.walk() if op.name() == JIT_KERNEL]


# ------------------------------------------------------------------------------ a formula nobody wrote a kernel for
def test_rms_norm_without_its_library_kernel_and_with_another_formula(monkeypatch):
    """The mean of x^4 and a tanh more: still one kernel, the same bytes moved, right, its text from the loop IR."""
    def no_kernel(*args, **attrs):
        raise AssertionError("the library kernel of rms_norm was called")
    row = ROWS["rms_norm"]
    monkeypatch.setattr(row, "kernels", [no_kernel] * len(row.kernels))
    monkeypatch.setattr(row, "kernel_outs", [no_kernel] * len(row.kernel_outs))

    def norm(x, w):
        return ROWS["rms_norm"](x, w, epsilon=1e-5)

    def other(x, w):
        return paddle.tanh(x * paddle.rsqrt((x ** 4).mean(-1, keepdim=True) + 1e-5) * w)
    x, w = R.normal(size=(7, 33)).astype(np.float32), R.normal(size=33).astype(np.float32)
    want = {norm: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w,
            other: np.tanh(x / np.sqrt((x ** 4).mean(-1, keepdims=True) + 1e-5) * w)}
    moved = []
    for fn, expected in want.items():
        program, feed = traced(fn, x, w)
        assert apply_cinn_pass(program) == 1
        kernel, = kernels(program)
        assert not [op for op in program.walk() if op.row is not None]      # one kernel and nothing else
        np.testing.assert_allclose(Executor(program).run(feed)["output_0"], expected, rtol=3e-6, atol=1e-6)
        moved.append(bytes_moved(program))
        source = kernel_of(kernel).source
        assert "rsqrt" in source and "def " in source and ("tanh" in source) == (fn is other)
    assert moved[0] == moved[1] == x.nbytes * 2 + w.nbytes


def test_a_look_up_is_part_of_the_kernel_that_reads_the_axis_anyhow():
    """Cross entropy in operators is one kernel, which reads the logits once; so is what adds a look-up's gradient."""
    def loss(x, label):
        z = x - x.max(-1, keepdim=True)
        return paddle.log(paddle.exp(z).sum(-1, keepdim=True)) - paddle.take_along_axis(z, label, -1)
    x, label = R.normal(size=(6, 33)), np.array([[0], [32], [7], [7], [31], [1]])
    program = compiled(loss, x, label)
    assert len(kernels(program)) == 1 and not [op for op in program.walk() if op.row is not None]
    assert bytes_moved(program) == x.nbytes + 2 * label.nbytes

    def scatter(g, label, x):
        return ROWS["take_along_axis_grad"](g, label, x, axis=1) + x
    program = compiled(scatter, R.normal(size=(6, 1)), label, x)
    assert len(kernels(program)) == 1 and not [op for op in program.walk() if op.row is not None]


@pytest.mark.parametrize("fn", [
    lambda x, i: paddle.take_along_axis(x, i, -1),                              # nobody reads the rest
    lambda x, i: paddle.take_along_axis(x * 2.0, i.expand([6, 4]), -1),         # several per row
    lambda x, i: paddle.take_along_axis(x * 2.0, i[:1].expand([1, 33]), 0)])    # not along the last axis
def test_other_look_ups_are_left_to_the_library(fn):
    program = compiled(fn, R.normal(size=(6, 33)), R.integers(0, 6, (6, 1)))
    assert any(op.name() == "pd_op.take_along_axis" for op in program.walk())


# ------------------------------------------------------------------------------------------------- right results
def test_cross_entropy_and_its_gradient_in_float32():
    labels = R.integers(0, 19, (5,))
    labels[1] = -100

    def loss(x, y):
        x.stop_gradient = False
        out = F.cross_entropy(x, y)
        return out, paddle.grad(out, [x])[0]
    program = compiled(loss, R.normal(size=(5, 19)).astype(np.float32), labels, tolerance=2e-6)
    assert len(kernels(program)) <= 2


def test_nan_and_infinity_are_kept():
    x = np.array([[1.0, np.nan, 2.0], [-np.inf, 0.0, 1.0], [np.inf, 1.0, 2.0], [-np.inf] * 3], np.float32)
    compiled(lambda x: (F.softmax(x), x.max(-1) * 2.0), x, tolerance=1e-6)


def test_a_symbolic_size_is_compiled_once():
    program = trace(lambda x: F.silu(x) * 2.0 + x.mean(-1, keepdim=True),
                    InputSpec([None, 5], "float64", "x")).program
    assert apply_cinn_pass(program) == 1
    executor = Executor(program)
    for n in (3, 1, 8):
        x = R.normal(size=(n, 5))
        np.testing.assert_allclose(executor.run({"x": x})["output_0"],
                                   x / (1 + np.exp(-x)) * 2 + x.mean(-1, keepdims=True), rtol=1e-12)


def test_equal_groups_share_a_kernel():
    def two_layers(x, w):
        for _ in range(2):
            x = paddle.matmul(F.silu(x) * 0.5, w)
        return x
    program = compiled(two_layers, R.normal(size=(4, 4)), R.normal(size=(4, 4)))
    names = [op.attributes["kernel"].value for op in kernels(program)]
    assert len(names) == 2 and len(set(names)) == 1


def test_a_kernel_serves_every_number_of_rows():
    """Two batches, and two parameters of different shapes: element-wise code and rows do not know how many they are."""
    def step(x, y, p, q):
        return F.softmax(x) * 2.0, F.softmax(y) * 2.0, p.exp() * 0.5, q.exp() * 0.5
    shapes = (4, 7), (3, 2, 7), (5,), (2, 3)
    program = compiled(step, *[R.normal(size=shape) for shape in shapes])
    called = [kernel_of(op) for op in kernels(program)]
    assert len(called) == 4 and len({k.source for k in called}) == len({k.function.name for k in called}) == 2


# ------------------------------------------------------------------------------------------------------ in place
def test_an_optimizer_step_writes_over_its_state():
    from minipd.ir.builder import Builder
    from minipd.ir.program import Program
    program = Program()
    build = Builder(program.global_block())
    p, m, v = (build.parameter(name, (6, 5), "float64") for name in ("p", "m", "v"))
    g, lr, step = build.data("g", (6, 5), "float64"), build.data("lr", (), "float64"), build.data("t", (), "int64")
    scaled, = build.call(ROWS["multiply"], (g, g), {})
    skip = build.full((), False, "bool")
    for name, new in zip("pmv", build.call(ROWS["adamw"], (p, scaled, m, v, step, lr, skip), {}), strict=True):
        build.set_parameter(name, new)
    state = {name: np.abs(R.normal(size=(6, 5))) for name in "pmv"}
    feed = {"g": R.normal(size=(6, 5)), "lr": np.array(0.1), "t": np.array(3)}
    want, program_before = run(program, feed, state), program.clone()
    assert apply_cinn_pass(program) == 1
    scope = {name: array.copy() for name, array in state.items()}
    executor = Executor(program)
    built = (process_compiler().statistics.compiled, process_compiler().statistics.loaded)
    executor.run(feed, scope)           # from now on the state is the executor's own
    for name in "pmv":
        np.testing.assert_allclose(scope[name], want[f"{name}'"], rtol=1e-12)
    held, want = dict(scope), run(program_before, feed, {name: array.copy() for name, array in scope.items()})
    executor.run(feed, scope)
    for name in "pmv":
        np.testing.assert_allclose(scope[name], want[f"{name}'"], rtol=1e-12)
        assert scope[name] is held[name], "the step has made new memory for state"
    assert built == (process_compiler().statistics.compiled, process_compiler().statistics.loaded), \
        "the step has built a version that was not foreseen"


def test_what_kernels_will_be_given_is_foreseen():
    """Results that are written over operands, slices of columns, values that come from outside: all that a run builds
    is built before it."""
    def step(x, y, w):
        a = (x + y).exp() * 2.0                         # over nothing, then
        b = paddle.matmul(a, w)
        columns = paddle.as_strided(a, [n, n], [2 * n, 1])
        c = (b * b).exp() + columns                     # over b; and a slice of columns, read where it is
        return paddle.matmul(F.softmax(c) * 0.5, w.transpose([1, 0]))
    n = 300
    program, feed = traced(step, *[R.normal(size=shape) / 20 for shape in ((n, 2 * n), (n, 2 * n), (2 * n, n))])
    want = run(program, feed)
    apply_cinn_pass(program)
    wanted = [(kernel_of(call.op), kernel_of(call.op).wanted(*given)) for call, *given in calls_ahead(program)]
    assert any(v.strided for _, v in wanted) and any(v.kernel is not kernel for kernel, v in wanted)
    statistics = process_compiler().statistics
    built = statistics.compiled + statistics.loaded
    for name, array in Executor(program).run(feed).items():
        np.testing.assert_allclose(array, want[name], rtol=1e-9)
    assert statistics.compiled + statistics.loaded == built


# ----------------------------------------------------------------------------------------------------- falling back
def softmax_and_silu(x, w):
    return F.softmax(x) * 2.0, paddle.matmul(x, w).exp() * 3.0


def check_fallback(match, number):
    program, feed = traced(softmax_and_silu, R.normal(size=(3, 4)), R.normal(size=(4, 4)))
    want = run(program, feed)
    with pytest.warns(UserWarning, match=match) as caught:
        assert apply_cinn_pass(program) == number
    assert len([w for w in caught if "library kernels" in str(w.message)]) == 1
    verify(program)
    for name, array in Executor(program).run(feed).items():
        np.testing.assert_allclose(array, want[name], rtol=1e-12)


def test_a_group_that_cannot_be_lowered_runs_as_library_kernels(monkeypatch):
    real = compiling.lower

    def lower(group, **options):
        if any(op.name() == "pd_op.max" for op in group.regions[0].front()):
            raise CannotLower("no maximum today")
        return real(group, **options)
    monkeypatch.setattr(compiling, "_MADE", {})
    monkeypatch.setattr(compiling, "lower", lower)
    check_fallback("group of max, subtract, exp, sum, divide, multiply runs as library kernels.*no maximum today", 1)


def test_what_would_take_minutes_to_compile_runs_as_library_kernels(monkeypatch):
    monkeypatch.setattr(compiling, "_MADE", {})
    monkeypatch.setattr(compiling, "LONGEST", 300)
    compiling._made.cache_clear()
    check_fallback(r"group of max, subtract, exp, sum, divide, multiply runs as library kernels, which is slower: its "
                   r"loops are a text of \d+ characters, of which at most 300 are compiled", 1)


def test_kernels_that_cannot_be_built_warn_once(monkeypatch):
    monkeypatch.setattr(compiling, "build_versions", lambda versions, comm: [
        KernelError(f"no kernel could be built for {v.kernel.function.name}: no compiler") for v in versions])
    check_fallback(r"\(and 1 more of 2\) runs as library kernels.*no compiler", 0)


def test_a_kernel_of_another_process_is_refused_by_name():
    program, _ = traced(lambda x: x.exp() * 2.0, R.normal(size=(3, 4)))
    apply_cinn_pass(program)
    op, = kernels(program)
    op.set_str_attr("kernel", "exp_multiply_0")
    assert "exp_multiply_0" not in KERNELS
    with pytest.raises(ValueError, match="'exp_multiply_0'; compile the program again"):
        Executor(program)


def test_groups_that_are_written_alike_are_lowered_once(monkeypatch):
    """Equal but for what lowering does not look at; a number in a formula it does look at."""
    def f(x, w, scale=2.0):
        for n in range(4):
            x = paddle.matmul((x * scale).tanh() + (1.0 if n else 3.0), w)
        return x
    program = trace(f, InputSpec([6, 6], "float64"), InputSpec([6, 6], "float64")).program
    prepare(program)
    groups = build_groups(program)
    assert len(groups) == 4
    lowered = []
    monkeypatch.setattr(compiling, "_MADE", {})
    monkeypatch.setattr(compiling, "lower", lambda op, **how: lowered.append(op) or lower(op, **how))
    made = [made_of(group) for group in groups]
    assert len(lowered) == 2 and made[1] is made[2] is made[3] and made[0].function != made[1].function
    for group, found in zip(groups, made, strict=True):
        assert found.lowered == lower(group, any_rows=True)


# --------------------------------------------------------------------------------------------------- no elements
@pytest.mark.parametrize("fn", [
    lambda x: (x * 2.0).max(1) + 1.0, lambda x: (x * 2.0).min(1) + 1.0,
    lambda x: (x * 2.0).argmax(1) + 1, lambda x: (x * 2.0).argmin(1) + 1,
    lambda x: (x * 2.0).max() + 1.0, lambda x: (x > 0.0).logical_not().astype("int32").max(1) * 2],
    ids=["max", "min", "argmax", "argmin", "all", "ints"])
def test_the_largest_of_no_elements_is_refused_when_it_is_met(fn):
    """The program does not know the size: its kernel refuses as the library does, and computes all else."""
    function = paddle.jit.to_static(fn, backend="CINN", input_spec=[InputSpec([None, None], "float32")])
    for shape in ((5, 7), (5, 1), (0, 3) if fn(paddle.ones([1, 3])).ndim else (1, 3)):
        x = paddle.to_tensor(R.normal(size=shape).astype("f4"))
        np.testing.assert_allclose(function(x).numpy(), fn(x).numpy(), rtol=1e-6)
    for _ in range(2):
        with pytest.raises(ValueError, match="is empty: nothing is the largest of no elements"):
            function(paddle.zeros([5, 0]))
