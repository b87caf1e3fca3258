"""The steps of fusion one by one: kinds, reasons, recomputation, groups as operations."""

import numpy as np
import pytest

import minipd as paddle
from minipd.cinn.compile import prepare
from minipd.cinn.dialect import FUSION, GROUP
from minipd.cinn.frontend import FusionTracker, build_groups, bytes_moved, cluster_groups, detect_groups
from minipd.cinn.lower import lower
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.passes import PassManager
from tests.cinn.programs import check, names, traced
from tests.decomposition.programs import run

R = np.random.default_rng(3)
X = R.normal(size=(6, 10))
W = R.normal(size=(10, 10))


def tracked(fn, *arrays):
    program, _ = traced(fn, *arrays)
    prepare(program)
    tracker = FusionTracker()
    return tracker, build_groups(program, tracker), program


# --------------------------------------------------------------------------------------------------------- kinds
@pytest.mark.parametrize(("fn", "kind"), [
    (lambda x: F.gelu(x * 2.0), "Trivial"),
    (lambda x: (x * x).sum(-1), "Reduce"),
    (lambda x: (x - x.max(-1, keepdim=True)).exp().sum(-1), "ReduceTree"),
    (lambda x: F.softmax(x), "ReduceTree+Trivial"),
    (lambda x: (x.exp() * 2.0, x.exp().sum(-1)), "HorizontalFusion"),
    (lambda x: ((e := x.exp()) * 2.0, e.sum(-1)), "Anchor"),
])
def test_a_fusion_says_its_kind(fn, kind):
    tracker, (group,), program = tracked(fn, X)
    assert group.attributes["pattern"].value == kind and str(tracker.groups[0].kind) == kind
    assert parse(program.to_string("exact")) == program


def test_what_finishes_a_library_call_is_an_anchor_pattern():
    def f(x, w, b):
        return F.gelu(paddle.matmul(x, w) + b), paddle.matmul(x, w.tanh())
    tracker, groups, _ = tracked(f, X, W, R.normal(size=10))
    epilogue, = (g for g in groups if "gelu" in names(g))
    assert epilogue.attributes["pattern"].value == "Anchor" and epilogue.attributes["anchor"].value == "pd_op.matmul"
    assert reason(tracker, "matmul", "add")[0] == "Anchor"


def test_a_result_that_others_read_is_no_memory_to_work_over():
    def f(x, w, b):
        h = paddle.matmul(x, w)
        return F.gelu(h + b), paddle.matmul(h, w)
    _, (group,), _ = tracked(f, X, W, R.normal(size=10))
    assert group.attributes["pattern"].value == "Trivial" and "anchor" not in group.attributes


# --------------------------------------------------------------------------------------------------------- reasons
def reason(tracker, upstream, downstream):
    edge, = (e for e in tracker.edges if e.upstream.startswith(upstream) and e.downstream.startswith(downstream))
    assert not edge.fused
    return edge.policy, edge.reason


def test_every_edge_is_fused_by_a_step_or_refused_with_a_reason():
    def f(x, w):
        a = x.exp() * 2.0
        return (paddle.matmul(a, w) + a).tanh() * 3.0
    tracker, _, _ = tracked(f, X, W)
    assert reason(tracker, "multiply", "add") == (
        "GeneralTopo", "matmul_3 would have to run in the middle of the kernel")
    assert reason(tracker, "multiply", "matmul")[0] == "Unsupport"
    fused = {(e.upstream.split("_")[0], e.downstream.split("_")[0]): e.step for e in tracker.edges if e.fused}
    assert fused == {("exp", "multiply"): "SinkTrivialPattern", ("add", "tanh"): "SinkTrivialPattern",
                     ("tanh", "multiply"): "SinkTrivialPattern"}


def test_steps_of_a_softmax():
    tracker, _, _ = tracked(F.softmax, X)
    merged = {d.upstream.split("_")[0]: d.step for d in tracker.merges()}
    assert merged == {"subtract": "SinkTrivialPattern", "sum": "ReduceTree_Trivial_Fusion",
                      "max": "ReduceTree_Trivial_Fusion", "exp": "AnchorPatternFusion"}


def test_what_is_known_after_the_last_row_is_not_fused_with_the_rows():
    tracker, _, _ = tracked(lambda x: (x - x.exp().mean(0)).tanh(), R.normal(size=(600, 4)))
    edge = next(e for e in tracker.edges if e.upstream.startswith("sum"))
    assert edge.policy == "ShardableAxes" and "row" in edge.reason


def test_a_collective_is_named_as_what_stands_between():
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (4, 4), "float64")
    a, = build.call(ROWS["exp"], (x,), {})
    b, = build.call(ROWS["all_reduce"], (x,), {"group": (0, 1), "op": "sum"})
    c, = build.call(ROWS["tanh"], (a,), {})
    build.output("y", c), build.output("z", b)
    assert build_groups(program) == []


# --------------------------------------------------------------------------------------------------- recomputation
def test_a_cheap_producer_is_computed_again_rather_than_kept():
    def f(x, w, b):
        h = paddle.matmul(x, w) + b
        return paddle.matmul(F.gelu(h), w) * h.tanh()
    first, second = check(f, X, W, R.normal(size=10))
    assert len(first.results()) == 1 and names(second)[0] == "add"
    tracker, _, _ = tracked(f, X, W, R.normal(size=10))
    assert [d.upstream.split("_")[0] for d in tracker.merges("SplitRecompute")] == ["add"]


def test_a_dear_producer_is_kept():
    def f(x, w):
        h = paddle.matmul(x, w).exp().tanh()
        return paddle.matmul(h * 2.0, w) * h + 1.0
    tracker, groups, _ = tracked(f, X, W)
    assert not list(tracker.merges("SplitRecompute")) and len(groups[0].results()) == 2
    assert "Cost" in {d.policy for d in tracker.refusals()}


def test_what_a_producer_is_made_of_is_not_kept_longer_than_its_result():
    def f(x, w):
        h = paddle.matmul(x, w) + paddle.matmul(x, w[:, :1])
        return paddle.matmul(h * 2.0, w) * h + 1.0
    tracker, _, _ = tracked(f, X, W)
    assert not list(tracker.merges("SplitRecompute")) and "Lifetime" in {d.policy for d in tracker.refusals()}


def test_a_mask_is_computed_where_it_is_read():
    """Two arange of one size are two loops, and nobody writes the mask."""
    def f(x, w):
        i = paddle.arange(10)
        mask = i.unsqueeze(1) >= i
        a = paddle.where(mask, x, x * 2.0).exp()
        return paddle.where(mask, paddle.matmul(a, w), x) * x
    groups = check(f, W, W)
    assert [names(g).count("greater_equal") for g in groups] == [1, 1]
    assert all(r.dtype == np.float64 for g in groups for r in g.results())


# ------------------------------------------------------------------------------------- what is read at other places
def rope(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + paddle.concat([-x[..., half:], x[..., :half]], -1) * sin


def test_a_rotation_and_its_gradient_are_a_kernel_each():
    x, cos, sin, g = R.normal(size=(2, 5, 3, 8)), R.normal(size=(5, 1, 8)), R.normal(size=(5, 1, 8)), X.max()
    group, = check(rope, x, cos, sin)
    assert len(group.operands()) == 3

    def turned_back(x, cos, sin, g):
        x.stop_gradient = False
        return paddle.grad(rope(x, cos, sin), [x], [g])[0]
    group, = check(turned_back, x, cos, sin, x * g)
    assert len(group.operands()) == 3 and len(group.results()) == 1


@pytest.mark.parametrize(("fn", "shapes"), [
    (lambda x, w: F.silu(F.group_norm(x, 2, weight=w)), [(3, 4, 5, 5), (4,)]),          # through two reshapes
    (lambda x: (x - x.mean([0, 2], keepdim=True)) / x.std([0, 2], keepdim=True), [(3, 4, 5)]),      # rows: dimension 1
    (lambda x: F.softmax(x * 2.0, 1), [(3, 4, 5)]),                                     # columns that are short
    (lambda x, y: (x.transpose([0, 2, 1, 3]) * 2.0 + y).exp(), [(2, 5, 3, 4), (2, 3, 5, 4)]),
    (lambda x: F.swiglu(*paddle.split(x, 2, -1)) * 2.0, [(6, 10)]),
    (lambda x, w, c: rope(F.rms_norm(x, [8], w), c, c), [(6, 8), (8,), (6, 8)]),
    (lambda x, y: F.softmax(paddle.concat([x * 2.0, y.tanh()], -1)), [(6, 10), (6, 7)]),
    (lambda x: (x[1:] - x[:-1]).abs().sum(-1), [(7, 9)]),
    (lambda x: F.softmax(paddle.tril(x) * 2.0), [(7, 7)]),
])
def test_one_kernel(fn, shapes):
    group, = check(fn, *(R.normal(size=shape) for shape in shapes))
    assert lower(group).params


def test_rows_turned_over_are_left_outside():
    tracker, (group,), _ = tracked(lambda x, y: (x.transpose([1, 0]) + y).exp(), X, X.T)
    assert names(group) == ["add", "exp"]
    tracker, _, _ = tracked(lambda x, y: ((x * 2.0).tanh().transpose([1, 0]) + y).exp(), X, X.T)
    assert "rows turned over" in reason(tracker, "tanh", "transpose")[1]


def test_a_small_part_is_taken_outside():
    """A kernel that read the whole array for it would keep all of it alive."""
    _, (group,), _ = tracked(lambda x: (x[:, :1] * 2.0).exp(), X)
    assert [tuple(v.shape) for v in group.operands_source()] == [(6, 1)]


def test_what_needs_a_reduction_is_not_read_at_other_rows():
    def f(x):
        y = F.softmax(x)
        return y[1:] - y[:-1]
    check(f, X)
    tracker, _, _ = tracked(f, X)
    assert any("at other rows" in e.reason for e in tracker.edges)


# ------------------------------------------------------------------------------------------------------ the passes
def test_a_part_is_a_group_before_it_is_fusions():
    def f(x, w):
        return paddle.matmul(x.exp() * 2.0, w).tanh() * 0.5
    program, feed = traced(f, X, W)
    want = run(program, feed)["output_0"]
    prepare(program)
    group, = detect_groups(program)
    verify(program)
    assert group.name() == GROUP and names(group) == ["exp", "multiply", "matmul", "tanh", "multiply"]
    assert parse(program.to_string("exact")) == program
    fusions = cluster_groups(program)
    verify(program)
    assert [op.name() for op in fusions] == [FUSION] * 2
    assert [op.name() for op in program.global_block() if op.num_operands()] == [
        FUSION, "pd_op.matmul", FUSION, "builtin.shadow_output"]
    np.testing.assert_allclose(run(program, feed)["output_0"], want, rtol=1e-14)


def test_a_view_from_before_a_barrier_is_copied():
    def f(x, w):
        v = w.unsqueeze(0)
        a = x * v
        paddle.static.Print(a, message="a")
        return (x * v).tanh() + 1.0
    program, _ = traced(f, X, R.normal(size=10))
    prepare(program)
    groups = detect_groups(program)
    verify(program)
    assert [v.shape for v in groups[-1].operands_source()] == [(10,), (6, 10)]


def test_the_loss_of_a_library_call_and_its_gradient_read_the_logits_once():
    """The number of labels that count is a kernel of its own, so that all else can be one."""
    labels = R.integers(0, 10, (6, 1))

    def loss(x, y):
        x.stop_gradient = False
        out = F.cross_entropy(x, y)
        return out, paddle.grad(out, [x])[0]
    count, main = check(loss, X, labels)
    assert "exp" not in names(count)
    assert sum(v.shape == X.shape for v in (*main.operands_source(), *main.results())) == 2
    _, _, program = tracked(loss, X, labels)
    assert bytes_moved(program) < 2 * X.nbytes + 5 * labels.nbytes


def test_the_passes_by_name():
    manager = PassManager(4)
    for name in ("pd_to_cinn_pass", "build_cinn_pass", "cinn_group_cluster_pass"):
        manager.add_pass(name)
    program, feed = traced(F.softmax, X)
    want = run(program, feed)["output_0"]
    manager.run(program)
    assert [op.name() for op in program.global_block() if op.num_operands()] == [FUSION, "builtin.shadow_output"]
    np.testing.assert_allclose(run(program, feed)["output_0"], want, rtol=1e-14)
