"""A step of the clustering: patterns join the only one that reads them."""

import minipd as paddle
from minipd.cinn.compile import prepare
from minipd.cinn.frontend import build_groups, bytes_moved
from minipd.cinn.frontend.graph import Graph
from minipd.cinn.frontend.pattern import Kind
from minipd.cinn.frontend.pattern_graph import PatternGraph
from minipd.cinn.frontend.steps import growing
from minipd.cinn.frontend.tracker import FusionTracker
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from tools.course.checking import check

ALL = tuple(kind for kind in Kind if kind is not Kind.UNSUPPORT)


def traced(f, *shapes):
    program = trace(f, *(InputSpec(list(s), "float32", f"x{i}") for i, s in enumerate(shapes))).program
    prepare(program)
    return program


def patterns(want, f, upstream, downstream, on):
    """The operators of each pattern, after this step alone."""
    def got():
        graph = PatternGraph(Graph(traced(f, (4, 6), (6, 6)).global_block()), FusionTracker())
        growing(upstream, downstream)(graph, "Grow")
        return [[op.name().split(".")[1] for op in node.ops] for node in graph.patterns()]
    words = [" or ".join(map(str, kinds)) if len(kinds) < 6 else "anything" for kinds in (upstream, downstream)]
    check(want, got, f"{on}; {words[0]} joins {words[1]}")


def test_two():
    patterns([["exp", "tanh"]], lambda x, w: x.exp().tanh(), (Kind.TRIVIAL,), ALL, "tanh(exp(x))")


def test_a_chain():
    patterns([["exp", "tanh", "abs", "sin"]], lambda x, w: x.exp().tanh().abs().sin(), (Kind.TRIVIAL,), ALL,
             "sin(abs(tanh(exp(x))))")


def test_read_by_two():
    patterns([["exp"], ["tanh"], ["abs"]], _two, (Kind.TRIVIAL,), ALL, "a = exp(x); tanh(a), abs(a)")


def _two(x, w):
    a = x.exp()
    return a.tanh(), a.abs()


def test_read_by_two_of_one_pattern():
    """tanh and abs join add first; then all that read exp are in one pattern.  From the start, exp would stay alone."""
    def f(x, w):
        a = x.exp()
        return a.tanh() + a.abs()
    patterns([["exp", "tanh", "abs", "add"]], f, (Kind.TRIVIAL,), ALL, "a = exp(x); tanh(a) + abs(a)")


def test_a_reduction_is_not_trivial():
    patterns([["sum"], ["exp"]], lambda x, w: x.sum(-1).exp(), (Kind.TRIVIAL,), ALL, "exp(sum(x))")


def test_into_a_reduction():
    patterns([["exp", "sum"]], lambda x, w: x.exp().sum(-1), (Kind.TRIVIAL,), ALL, "sum(exp(x))")


def test_into_some_kinds_only():
    patterns([["exp"], ["sum"]], lambda x, w: x.exp().sum(-1), (Kind.TRIVIAL,), (Kind.TRIVIAL,), "sum(exp(x))")


def test_a_reduction_joins():
    patterns([["sum", "exp"]], lambda x, w: x.sum(-1).exp(), (Kind.REDUCE,), (Kind.TRIVIAL,), "exp(sum(x))")


def test_a_matrix_product_is_none():
    patterns([["exp"], ["tanh"]], lambda x, w: paddle.matmul(x.exp(), w).tanh(), (Kind.TRIVIAL,), ALL,
             "tanh(matmul(exp(x), w))")


def test_nobody_reads_it():
    patterns([["exp"]], lambda x, w: x.exp(), (Kind.TRIVIAL,), ALL, "exp(x)")


def test_read_by_a_matrix_product_too():
    """Readers that are in no pattern, such as a matrix product, don't count."""
    def f(x, w):
        a = x.exp()
        return paddle.matmul(a, w), a.tanh()
    patterns([["exp", "tanh"]], f, (Kind.TRIVIAL,), ALL, "a = exp(x); matmul(a, w), tanh(a)")


def test_a_single_number_stays():
    """What is computed of one number is not worth a place."""
    patterns([["sum"], ["exp"], ["multiply"]], lambda x, w: x * x.sum().exp(), (Kind.TRIVIAL,), ALL,
             "x * exp(sum(x)), with the sum of all")


def target(f, *shapes):
    program = traced(f, *shapes)
    return {"kernels": len(build_groups(program)), "bytes moved": bytes_moved(program)}


def norm(x, w):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def gradient(x, w, g):
    x.stop_gradient = w.stop_gradient = False
    return paddle.grad(norm(x, w), [x, w], [g])


def test_what_it_is_for():
    """The whole clustering, with your step in three places of it.  A is 64 * 288 * 4 = 73,728 bytes."""
    check({"kernels": 1, "bytes moved": 147_456}, lambda: target(F.softmax, (64, 288)),
          "softmax of f32[64, 288]: 2 A")
    check({"kernels": 1, "bytes moved": 148_608}, lambda: target(norm, (64, 288), (288,)),
          "RMSNorm of f32[64, 288]: 2 A, and the scale")
    check({"kernels": 1, "bytes moved": 223_488}, lambda: target(gradient, (64, 288), (288,), (64, 288)),
          "the gradient of that norm: x, dy and dx are 3 A, w and dw 1,152 bytes each")
