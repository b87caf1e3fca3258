"""The rule that recognises RMSNorm."""

import numpy as np

import minipd as paddle
from minipd.executor import Executor, Scope
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.passes import create_pass
from minipd.static import InputSpec
from tools.course.checking import check

QUIET = ("data", "full", "full_int_array", "shadow_output")


def fused(f, x=(2, 4), w=(4,)):
    """(operators after the pass, the fused operation or None); the meaning must stay."""
    specs = InputSpec(list(x), "float64", "x"), InputSpec(list(w), "float64", "w")
    program = trace(f, *specs).program
    rng = np.random.default_rng(0)
    feed = {"x": rng.standard_normal(x), "w": rng.standard_normal(w)}
    before = Executor(program).run(feed, Scope())["output_0"]
    create_pass("add_norm_fuse_pass").run(program)
    after = Executor(program).run(feed, Scope())["output_0"]
    check(True, bool(np.allclose(before, after, rtol=1e-12, atol=1e-12)), "whether the program means the same")
    names = [op.name().split(".")[1] for op in program.walk()]
    norms = [op for op in program.walk() if op.name() == "pd_op.rms_norm"]
    return [n for n in names if n not in QUIET], norms[0] if norms else None


def by_hand(x, w, epsilon=1e-6):
    return x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt() * w


def test_as_it_is_written_by_hand():
    names, _ = fused(by_hand)
    check(["rms_norm"], names, "x * rsqrt(mean(square(x), -1, keepdim=True) + 1e-6) * w")


def test_as_the_public_function_composes_it():
    names, _ = fused(lambda x, w: F.rms_norm(x, [4], w, 1e-5))
    check(["rms_norm"], names, "paddle.nn.functional.rms_norm(x, [4], w, 1e-5)")


def test_epsilon_is_what_the_program_says():
    for epsilon in (1e-6, 0.5):
        _, norm = fused(lambda x, w, e=epsilon: by_hand(x, w, e))
        check(epsilon, norm.attributes["epsilon"].value, f"epsilon of the norm with epsilon={epsilon}")


def test_factors_in_another_order():
    names, _ = fused(lambda x, w: w * ((x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * x))
    check(["rms_norm"], names, "w * (rsqrt(mean(square(x), -1, keepdim=True) + 1e-6) * x)")


def test_over_two_dimensions():
    names, _ = fused(lambda x, w: F.rms_norm(x, [3, 4], w), (2, 3, 4), (3, 4))
    check(["rms_norm"], names, "rms_norm over the last two of three dimensions")


def test_a_sum_is_no_mean():
    names, _ = fused(lambda x, w: x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() * w)
    check(False, "rms_norm" in names, "whether a norm is found in x * rsqrt(sum(square(x)) + 1e-6) * w")


def test_another_axis():
    names, _ = fused(lambda x, w: x * (x.square().mean(0, keepdim=True) + 1e-6).rsqrt() * w, (4, 4))
    check(False, "rms_norm" in names, "whether a norm over axis 0 is taken for one over the last axis")


def test_of_another_tensor():
    names, _ = fused(lambda x, w: x * ((x + 1.0).square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w)
    check(False, "rms_norm" in names, "whether a norm is found where the mean is not that of x itself")


def test_the_gradient_is_that_of_the_fused_operator():
    """What is fused before append_backward: nothing of the composed form is left."""
    from minipd.passes import fuse_forward
    program = trace(lambda x, w: by_hand(paddle.tanh(x), w), InputSpec([2, 4], "float64", "x"),
                    InputSpec([4], "float64", "w")).program
    fuse_forward(program)
    names = [op.name().split(".")[1] for op in program.walk()]
    check(["tanh", "rms_norm"], [n for n in names if n not in QUIET], "a norm of tanh(x)")
