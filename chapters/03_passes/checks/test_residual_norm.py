"""The rule for a sum that a layer norm reads, and others."""

import numpy as np

from minipd.nn import functional as F
from minipd.passes.compare import outcome
from minipd.passes.show import program_of
from minipd.passes.table import create_pass
from tools.course.checking import check

QUIET = ("data", "full", "full_int_array", "shadow_output", "parameter")


def left(f, *inputs):
    """(the operators that the pass leaves, the outputs after it), on these arrays."""
    program = program_of(f, *(list(a.shape) for a in inputs))
    create_pass("add_norm_fuse_pass").run(program)
    names = [op.name().partition(".")[2] for op in program.walk()]
    feed = {name: a.astype(np.float32) for name, a in zip(program_inputs(program), inputs, strict=True)}
    return [n for n in names if n not in QUIET], list(outcome(program, feed).values())


def program_inputs(program):
    return [op.attributes["name"].value for op in program.walk() if op.name() == "pd_op.data"]


def norm(x, w, b, epsilon=1e-5):
    """The formula."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + epsilon) * w + b


def random(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s) for s in shapes]


def pre_norm(x, r, w, b):
    t = x + r
    return F.layer_norm(t, w.shape, w, b), t


def test_by_hand():
    """x + r = [2, 4]: mean 3, deviation 1."""
    inputs = [np.array([v]) for v in ([1.0, 1.0], [1.0, 3.0])] + [np.array([10.0, 10.0]), np.array([0.0, 1.0])]
    check((["fused_bias_residual_layernorm"], [[[-10.0, 11.0]], [[2.0, 4.0]]]), lambda: left(pre_norm, *inputs),
          "t = x + r; return layer_norm(t, w, b), t for x = [1, 1], r = [1, 3], w = [10, 10], b = [0, 1]", rtol=1e-4)


def becomes(names, f, wants, on, *inputs):
    check((names, wants), lambda: left(f, *inputs), f"(operators that are left, outputs) of {on}", rtol=1e-4)


def test_the_sum_is_read_further_down():
    def block(x, r, w, b):
        t = x + r
        return F.layer_norm(t, w.shape, w, b).tanh() + t
    x, r, w, b = random((2, 3), (2, 3), (3,), (3,))
    becomes(["fused_bias_residual_layernorm", "tanh", "add"], block, [np.tanh(norm(x + r, w, b)) + x + r],
            "t = x + r; return tanh(layer_norm(t)) + t", x, r, w, b)


def test_the_operands_in_the_other_order():
    def f(x, r, w, b):
        t = r + x
        return t, F.layer_norm(t, w.shape, w, b)
    x, r, w, b = random((2, 3), (2, 3), (3,), (3,))
    becomes(["fused_bias_residual_layernorm"], f, [x + r, norm(x + r, w, b)],
            "t = r + x; return t, layer_norm(t, w, b)", x, r, w, b)


def test_epsilon_is_what_the_program_says():
    def f(x, r, w, b):
        t = x + r
        return F.layer_norm(t, w.shape, w, b, epsilon=0.5), t
    x, r, w, b = random((2, 3), (2, 3), (3,), (3,))
    becomes(["fused_bias_residual_layernorm"], f, [norm(x + r, w, b, 0.5), x + r],
            "t = x + r; return layer_norm(t, w, b, epsilon=0.5), t", x, r, w, b)


def test_the_sum_is_for_the_norm_alone():
    x, r, w, b = random((2, 3), (2, 3), (3,), (3,))
    becomes(["skip_layernorm"], lambda x, r, w, b: F.layer_norm(x + r, w.shape, w, b), [norm(x + r, w, b)],
            "layer_norm(x + r, w, b), where the rule with the larger benefit fires", x, r, w, b)


def test_a_norm_of_what_is_no_sum():
    def product(x, r, w, b):
        t = x * r
        return F.layer_norm(t, w.shape, w, b), t
    x, r, w, b = random((2, 3), (2, 3), (3,), (3,))
    becomes(["multiply", "layer_norm"], product, [norm(x * r, w, b), x * r],
            "t = x * r; return layer_norm(t, w, b), t", x, r, w, b)

    def beside(x, r, w, b):
        return F.layer_norm(x, w.shape, w, b), x + r
    becomes(["layer_norm", "add"], beside, [norm(x, w, b), x + r],
            "layer_norm(x, w, b), x + r: the norm is not that of the sum", x, r, w, b)


def test_a_row_that_is_added():
    """x + r, r of one row: the fused operator wants two of one shape."""
    x, r, w, b = random((2, 3), (3,), (3,), (3,))
    becomes(["add", "layer_norm"], pre_norm, [norm(x + r, w, b), x + r],
            "t = x + r; return layer_norm(t, w, b), t with r of shape [3], x of shape [2, 3]", x, r, w, b)


def test_two_blocks():
    def f(x, r, w, b):
        t = x + r
        u = t + F.layer_norm(t, w.shape, w, b).tanh()
        return F.layer_norm(u, w.shape, w, b), u
    x, r, w, b = random((2, 3), (2, 3), (3,), (3,))
    t = x + r
    u = t + np.tanh(norm(t, w, b))
    becomes(["fused_bias_residual_layernorm", "tanh", "fused_bias_residual_layernorm"], f, [norm(u, w, b), u],
            "t = x + r; u = t + tanh(layer_norm(t)); return layer_norm(u), u", x, r, w, b)
