"""Groups: what they hold, that they mean the same, and what may not be one."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compile import prepare
from minipd.cinn.dialect import FUSION
from minipd.cinn.frontend import build_groups, bytes_moved, inline
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError, verify
from minipd.nn import functional as F
from minipd.static import InputSpec
from tests.cinn.programs import check, grouped, names, traced
from tests.decomposition.programs import run

R = np.random.default_rng(0)
X = R.normal(size=(6, 10))


# --------------------------------------------------------------------------------------------- what is one kernel
def test_a_composed_rms_norm_is_one_group_that_reads_and_writes_once():
    def norm(x, w):
        return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w
    w = R.normal(size=10)
    group, = check(norm, X, w)
    assert len(group.operands()) == 2 and len(group.results()) == 1
    program, _ = traced(norm, X, w)
    grouped(program)
    assert bytes_moved(program) == 2 * X.nbytes + w.nbytes


def test_another_formula_moves_the_same_bytes():
    """Nobody wrote a kernel for it: the mean of x^4, and a tanh more."""
    def norm(x, w):
        return paddle.tanh(x * paddle.rsqrt((x ** 4).mean(-1, keepdim=True) + 1e-5) * w)
    w = R.normal(size=10)
    group, = check(norm, X, w)
    assert "tanh" in names(group) and "pow" in names(group)
    program, _ = traced(norm, X, w)
    grouped(program)
    assert bytes_moved(program) == 2 * X.nbytes + w.nbytes


@pytest.mark.parametrize("fn", [F.softmax, lambda x: F.log_softmax(x), lambda x: F.silu(x) + 1.0,
                                lambda x: (x - x.mean(-1, keepdim=True)) / (x.max() - x.min())])
def test_one_group(fn):
    assert len(check(fn, X)) == 1


def test_softmax_and_cross_entropy_of_one_tensor_with_the_gradient_are_one_group():
    labels = R.integers(0, 10, (6,))
    labels[2] = -100

    def loss(x, y):
        x.stop_gradient = False
        out = F.cross_entropy(x, y)
        return out, paddle.grad(out, [x])[0]
    groups = check(loss, X, labels)
    biggest = max(groups, key=lambda g: len(names(g)))
    assert {"exp", "log", "max"} <= set(names(biggest)) and tuple(biggest.results()[0].shape) in ((6, 10), (6, 1), ())


def test_the_gradient_of_a_norm_sums_rows_and_columns_in_one_group():
    def step(x, w, g):
        w.stop_gradient = x.stop_gradient = False
        return paddle.grad(F.rms_norm(x, [10], w), [x, w], [g])
    groups = check(step, X, R.normal(size=10), R.normal(size=(6, 10)))
    last = groups[-1]
    assert sorted(tuple(r.shape) for r in last.results()) == [(6, 10), (10,)]
    assert [n for n in names(last) if n == "sum"] != []


def test_a_row_whose_library_kernel_takes_several_passes_is_a_group_alone():
    group, = check(lambda x, y: F.swiglu(x, y), X, X + 1)
    assert names(group) == ["swiglu"]


# ----------------------------------------------------------------------------------------------- what is not
def test_what_would_not_fuse_keeps_its_library_kernel():
    """A softmax down long columns, of which none is near when it is gone over again; a look-up without a reduction."""
    def f(x, i):
        return F.softmax(x, 0), ROWS["take_along_axis"](x, i, axis=1)
    program, _ = traced(f, R.normal(size=(600, 10)), R.integers(0, 10, (600, 1)))
    assert grouped(program) == []
    assert {"pd_op.softmax", "pd_op.take_along_axis"} <= {op.name() for op in program.walk()}


def test_a_lone_pass_stays_with_the_library():
    assert check(lambda x, y: x + y, X, X) == []


def test_c1_a_reshape_between_a_reduction_and_a_broadcast_keeps_them_apart():
    def f(x):
        s = x.sum(1, keepdim=True)
        b = paddle.expand(s, [2, 3])
        return paddle.expand(b.reshape([3, 2]), [4, 3, 2]) * 1.0
    x = np.array([[0.0, 1, 2], [3, 4, 5]])
    check(f, x)
    program, feed = traced(f, x)
    grouped(program)
    assert run(program, feed)["output_0"][0].tolist() == [[3, 3], [3, 12], [12, 12]]


def test_rows_and_columns_of_a_square_are_not_one_axis():
    """x + sum over rows + sum over columns: unified, the square's two dimensions would become one loop."""
    x = R.normal(size=(5, 5))
    check(lambda x: x.exp() + x.exp().sum(0) * x.exp().sum(1, keepdim=True), x)
    check(lambda x: x.exp().sum(0) + x.exp().sum(1), x)


def test_no_path_leads_out_of_a_group_and_back():
    """a -> matmul -> b, with b reading a too: one kernel could run neither before nor after the matmul."""
    def f(x, w):
        a = x.exp() * 2.0
        return (paddle.matmul(a, w) + a).tanh() * 3.0
    groups = check(f, X, R.normal(size=(10, 10)))
    assert [names(g) for g in groups] == [["exp", "multiply"], ["add", "tanh", "multiply"]]


def test_who_reads_a_result_between_the_members_moves_behind_the_group():
    def f(x, w):
        a = x.exp() * 2.0
        m = paddle.matmul(a, w)                     # stands between members of the first group
        b = a.tanh() * 0.5
        return m, b
    groups = check(f, X, R.normal(size=(10, 10)))
    assert len(groups) == 1 and len(groups[0].results()) == 2


def test_what_shares_nothing_but_a_number_stays_apart():
    def f(x, y, s):
        s = s.sqrt() + 1.0
        return (x * s).tanh() * s, (y * s).tanh() * s
    groups = check(f, X, R.normal(size=(4, 3)), np.array(2.0))
    assert sorted(len(g.operands()) for g in groups) == [1, 2, 2]


def test_no_group_reaches_over_a_collective():
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (4, 4), "float64")
    a, = build.call(ROWS["exp"], (x,), {})
    b, = build.call(ROWS["all_reduce"], (x,), {"group": (0, 1), "op": "sum"})
    c, = build.call(ROWS["tanh"], (a,), {})
    build.output("y", c), build.output("z", b)
    assert grouped(program) == []


def test_branches_are_grouped_within():
    def step(c, x):
        y = x.exp() + 1.0
        return paddle.static.nn.cond(c, lambda: y.tanh() * x, lambda: (y + x) * 2.0)
    program = trace(step, InputSpec([], "bool", "c"), InputSpec([6, 10], "float64", "x")).program
    feeds = [{"c": np.array(c), "x": X} for c in (True, False)]
    before = [run(program, feed)["output_0"] for feed in feeds]
    groups = grouped(program)
    assert len(groups) == 3 and sum(g.get_parent_op() is not None for g in groups) == 2
    for feed, want in zip(feeds, before, strict=True):
        np.testing.assert_allclose(run(program, feed)["output_0"], want, rtol=1e-14)


# --------------------------------------------------------------------------------------------- the operation
def test_small_constants_and_views_are_copied_in():
    def f(x, w):
        v = w.unsqueeze(0)
        return (x * v).exp() * 2.0, paddle.matmul(x, v.transpose([1, 0]))
    group, = check(f, X, R.normal(size=10))
    assert len(group.operands()) == 2 and "unsqueeze" in names(group)


def test_the_verifier_wants_operands_to_be_what_is_read():
    program, _ = traced(lambda x, y: (x.exp() + y.tanh()) * x, X, X)
    group, = grouped(program)
    extra = next(iter(program.global_block())).result(0)
    group.append_operand(extra)
    with pytest.raises(VerifyError, match="each value once"):
        verify(program)
    group.operands()[-1].set_source(group.regions[0].front().front().result(0))
    with pytest.raises(VerifyError):
        verify(program)


def test_both_print_styles_show_the_region():
    program, _ = traced(lambda x: x.exp() * x, X)
    grouped(program)
    for style in ("paddle", "exact"):
        text = program.to_string(style)
        assert '"cinn_op.fusion"' in text and '        (%' in text and '"cf.yield"' in text


def test_inline_undoes_it():
    def f(x, w):
        return F.softmax(x * w) + x, x.sum()
    program, feed = traced(f, X, R.normal(size=10))
    want = run(program, feed)
    for group in grouped(program):
        inline(group)
    verify(program)
    assert not any(op.name() == FUSION for op in program.walk())
    for name, array in run(program, feed).items():
        np.testing.assert_allclose(array, want[name], rtol=1e-12, atol=1e-12)


def test_a_second_pass_finds_nothing():
    program, _ = traced(lambda x: F.softmax(x.exp()) + 1.0, X)
    grouped(program)
    text = program.to_string("exact")
    prepare(program)
    assert build_groups(program) == [] and program.to_string("exact") == text


def test_symbolic_sizes_group_as_known_ones_do():
    def norm(x, w):
        return x * paddle.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w
    program = trace(norm, InputSpec([None, 10], "float64", "x0"), InputSpec([10], "float64", "x1")).program
    feed = {"x0": X, "x1": R.normal(size=10)}
    want = run(program, feed)["output_0"]
    assert len(grouped(program)) == 1
    np.testing.assert_allclose(run(program, feed)["output_0"], want, rtol=1e-12)
