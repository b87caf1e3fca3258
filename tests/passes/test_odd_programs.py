"""Programs on which a rule must hold back, or mind what it does: other dtypes, numbers at the ends, signs of zero."""

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor
from minipd.nn import functional as F
from minipd.passes import create_pass
from minipd.passes.drr import drr, ops
from minipd.passes.pattern import apply_patterns_greedily
from minipd.passes.show import program_of
from tests.passes.meaning import names, same

FLASH, MASKED, GEMM, ROPE = ("fused_flash_attn_pass", "fused_dot_product_attention_pass", "fused_gemm_epilogue_pass",
                             "fused_rotary_position_embedding_pass")
HEADS = (2, 3, 5, 4)


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + paddle.concat([-x[..., half:], x[..., :half]], -1) * sin


def attention(q, k, v, mask=None, by=2.0):
    scores = q.matmul(k, transpose_y=True) / by
    return F.softmax(scores if mask is None else scores + mask, -1).matmul(v)


@pytest.mark.parametrize(("name", "function", "specs"), [
    (GEMM, lambda x, y, b: F.relu(x @ y + b), ("i32[3, 4]", "i32[4, 5]", "i32[5]")),
    (GEMM, lambda x, y, b: x @ y + b, ("c64[3, 4]", "c64[4, 5]", "c64[5]")),
    (ROPE, rotated, ("i32[2, 3, 8]", "i32[3, 8]", "i32[3, 8]")),
    (FLASH, lambda q, k, v: attention(q, k, v, by=0.0), (HEADS, HEADS, HEADS)),
    (MASKED, lambda q, k, v, m: attention(q, k, v, m, by=float("inf")), (HEADS, HEADS, HEADS, (5, 5))),
    # numbers that half precision does not have
    ("matmul_scale_fuse_pass", lambda x, y: x @ y / 65536.0, ("f16[8, 4]", "f16[4, 8]")),
    ("matmul_scale_fuse_pass", lambda x, y: x @ y * 1e-7, ("f16[8, 4]", "f16[4, 8]")),
    ("matmul_scale_fuse_pass", lambda x, y: x @ y * float("inf"), ((8, 4), (4, 8))),
    ("remove_redundant_scale_pass", lambda x: x * 60000.0 * (1 / 60000.0), ("f16[4]",)),
])
def test_a_rule_leaves_alone_what_its_operator_does_not_compute(name, function, specs):
    program = program_of(function, *specs)
    changed, changes = same(program, create_pass(name).run)
    assert (changes, names(changed)) == (0, names(program))


@pytest.mark.parametrize("operator", [paddle.maximum, paddle.minimum])
def test_of_two_zeros_the_first_stays_the_first(operator):
    """0.0 and -0.0 are equal: which one comes out shows the order of the operands."""
    def both(x, y):
        return operator(x, y), operator(y, x)

    def expanded(x, y):
        return operator(x, y.expand([2, 2])), operator(y.expand([2, 2]), x)
    feed = {"x": np.array([[0.0, -0.0]] * 2, "float32"), "y": np.array([-0.0, 0.0], "float32")}
    for name, function, shapes in (("common_subexpression_elimination_pass", both, ((2, 2), (2,))),
                                   ("remove_redundant_expand_pass", expanded, ((2, 2), (2,)))):
        program = program_of(function, *shapes)
        changed, _ = same(program, create_pass(name).run)
        before, after = (list(Executor(p).run(feed).values()) for p in (program, changed))
        assert [np.signbit(a).tolist() for a in after] == [np.signbit(a).tolist() for a in before]


@pytest.mark.parametrize("square", [lambda h: h.pow(2), lambda h: h * h, paddle.square])
@pytest.mark.parametrize("root", [lambda h, m: h * paddle.rsqrt(m), lambda h, m: h / paddle.sqrt(m)])
def test_rms_norm_of_half_precision_as_published_llamas_write_it(square, root):
    def norm(x, weight):
        h = x.cast("float32")
        return weight * root(h, square(h).mean(-1, keepdim=True) + 1e-6).cast("bfloat16")
    changed, _ = same(program_of(norm, "bf16[3, 8]", "bf16[8]"), create_pass("add_norm_fuse_pass").run, rtol=2e-2)
    assert names(changed) == ["rms_norm"]


def test_what_a_match_computes_is_no_input_of_it():
    """m + m for a product m: the second is a row, as a bias is, but gone with the first."""
    program = program_of(lambda x, y: (m := x @ y) + m, (1, 4), (4, 5))
    changed, changes = same(program, create_pass(GEMM).run)
    assert (changes, names(changed)) == (0, ["matmul", "add"])

    @drr()
    class WithBias:
        def source(x, y, bias):
            return ops.matmul(x, y) + bias

        def result(x, y, bias):
            return ops.fused_gemm_epilogue(x, y, bias)
    assert drr.explain(WithBias, program).reason.endswith("which is matched itself, and gone afterwards")


def test_an_output_of_a_match_is_no_input_of_it_either():
    """Side by side, x a and x (x a) would be one product that reads what it gives."""
    @drr()
    class SideBySide:
        def source(x, a, b):
            return ops.matmul(x, a), ops.matmul(x, b)

        def constraint(a, b):
            return a.shape == b.shape and a is not b

        def result(x, a, b):
            return tuple(ops.split(ops.matmul(x, ops.concat(a, b, axis=1)), axis=1, sections=(4, 4), results=2))

    def rewritten(function, *shapes):
        return same(program_of(function, *shapes), lambda p: apply_patterns_greedily(p, [SideBySide], debug=True),
                    rtol=1e-5)[1]
    assert rewritten(lambda x, a: x @ (x @ a), (4, 4), (4, 4)) == 0
    assert rewritten(lambda x, a, b: (x @ a, x @ b), (4, 4), (4, 4), (4, 4)) == 1


@pytest.mark.parametrize(("name", "function", "left"), [
    ("add_norm_fuse_pass", lambda x, w: x * (1.0 / paddle.sqrt((x * x).mean(-1, keepdim=True) + 1e-6)) * w, "rms_norm"),
    ("gelu_fuse_pass",
     lambda x, w: 0.5 * x * (1.0 + paddle.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x))), "gelu"),
])
def test_other_spellings_of_published_models(name, function, left):
    changed, _ = same(program_of(function, (3, 8), (8,)), create_pass(name).run, rtol=1e-5)
    assert names(changed) == [left]


@pytest.mark.parametrize(("name", "masks"), [(FLASH, ()), (MASKED, ((5, 5),))])
def test_scores_scaled_by_the_operator_of_that_name(name, masks):
    def attend(q, k, v, mask=None):
        scores = paddle.scale(q.matmul(k, transpose_y=True), 0.5)
        return F.softmax(scores if mask is None else scores + mask, -1).matmul(v)
    changed, _ = same(program_of(attend, HEADS, HEADS, HEADS, *masks), create_pass(name).run, rtol=1e-5)
    assert sum(n in ("flash_attn", "fused_dot_product_attention") for n in names(changed)) == 1
    assert not {"softmax", "scale"} & set(names(changed))
