"""Passes that fuse networks: where they fire, where they must not, and that the numbers stay."""

import math
import tracemalloc

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.executor import Executor
from minipd.framework import dtype as dtypes
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.passes import create_pass
from minipd.passes.compare import random_feed, random_state
from minipd.passes.library.activated import FORMULAS
from minipd.passes.show import program_of
from tests.passes.meaning import names, same

F = nn.functional
F32, F64 = np.dtype("float32"), np.dtype("float64")
BN, CONV, GEMM, NORM, GELU = ("conv2d_bn_fuse_pass", "conv2d_add_act_fuse_pass", "fused_gemm_epilogue_pass",
                              "add_norm_fuse_pass", "gelu_fuse_pass")
FLASH, MASKED, ROPE = ("fused_flash_attn_pass", "fused_dot_product_attention_pass",
                       "fused_rotary_position_embedding_pass")


def traced(f, *specs, dtype=F64):
    """specs: shapes, or Metas for other dtypes."""
    return trace(f, *(s if isinstance(s, Meta) else Meta(s, dtype) for s in specs)).program


def fused(name, program, rtol=1e-12):
    """The names of the operations afterwards; a second run finds nothing."""
    changed, n = same(program, create_pass(name).run, rtol)
    assert create_pass(name).run(changed) == 0
    return names(changed), n


def layer_program(layer, *shapes):
    layer.eval()
    rng = np.random.default_rng(5)
    for key, buffer in layer.named_buffers():
        if key.endswith("_variance"):
            buffer.set_value(rng.uniform(0.5, 2.0, buffer.shape).astype("float32"))
    return program_of(layer, *shapes)


# ------------------------------------------------------------------------------------------------ gelu
ROOT, SLOPE = math.sqrt(2.0), math.sqrt(2.0 / math.pi)


@pytest.mark.parametrize("f", [
    lambda x: 0.5 * x * (1.0 + paddle.erf(x / ROOT)),
    lambda x: x * 0.5 * (1.0 + paddle.erf(x * (1 / ROOT))),
    lambda x: x * (paddle.erf(x / ROOT) + 1.0) * 0.5,
    lambda x: x * ((1.0 + paddle.erf(x / ROOT)) * 0.5),
    lambda x: 0.5 * x * (1.0 + paddle.tanh(SLOPE * (x + 0.044715 * paddle.pow(x, 3.0)))),
    lambda x: 0.5 * x * (1.0 + paddle.tanh((x + (x * x * x) * 0.044715) * SLOPE)),
])
def test_gelu_in_every_spelling(f):
    assert fused(GELU, traced(f, (3, 5)), 1e-9) == (["gelu"], 1)


@pytest.mark.parametrize("f", [
    lambda x: 0.5 * x * (1.0 + paddle.erf(x / 2.0)),                # another width
    lambda x: 0.5 * (x + 1.0) * (1.0 + paddle.erf(x / ROOT)),       # not the same x
    lambda x: 0.25 * x * (1.0 + paddle.erf(x / ROOT)),
    lambda x: 0.5 * x * (1.0 + paddle.tanh(SLOPE * (x + 0.0447 * paddle.pow(x, 3.0)))),
])
def test_what_is_no_gelu(f):
    assert fused(GELU, traced(f, (3, 5)))[1] == 0


# ------------------------------------------------------------------------------------------------ products
ACTIVATIONS = {"relu": F.relu, "sigmoid": F.sigmoid, "tanh": paddle.tanh, "silu": F.silu, "gelu": F.gelu,
               "gelu_tanh": lambda x: F.gelu(x, approximate=True), "relu6": F.relu6, "hardswish": F.hardswish,
               "quick_gelu": lambda x: x * F.sigmoid(1.702 * x)}


def test_every_activation_is_spelled():
    assert ACTIVATIONS.keys() == FORMULAS.keys()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_product_takes_its_bias_and_activation(activation):
    program = traced(lambda x, w, b: ACTIVATIONS[activation](paddle.matmul(x, w) + b), (2, 3, 4), (4, 5), (5,))
    changed, n = same(program, create_pass(GEMM).run, 1e-12)
    assert (names(changed), n) == (["fused_gemm_epilogue"], 2)
    op = next(op for op in changed.walk() if op.name() == "pd_op.fused_gemm_epilogue")
    assert op.attributes["activation"].value == activation


def test_products_of_other_forms():
    assert fused(GEMM, traced(lambda x, w, b: b + paddle.matmul(x, w, transpose_y=True), (3, 4), (5, 4), (5,))) == (
        ["fused_gemm_epilogue"], 1)
    assert fused(GEMM, traced(lambda x, w, b: paddle.matmul(x, w) + b, (3, 4), (4, 5), (1, 5))) == (
        ["reshape", "fused_gemm_epilogue"], 1)


@pytest.mark.parametrize(("f", "shapes"), [
    (lambda x, w, b: paddle.matmul(x, w) + b, [(3, 4), (4, 5), (3, 5)]),             # a residual
    (lambda x, w, b: paddle.matmul(x, w) + b, [(3, 4), (4, 5), (3, 1)]),             # a number for each row
    (lambda x, w, b: paddle.matmul(x, w) + b, [(3, 4), (4, 1), (5,)]),               # the bias is wider
    (lambda x, w, b: (lambda m: (m + b, m * 2.0))(paddle.matmul(x, w)), [(3, 4), (4, 5), (5,)]),    # read elsewhere
])
def test_what_is_no_epilogue(f, shapes):
    assert fused(GEMM, traced(f, *shapes))[1] == 0


def test_symbolic_sizes_are_kept():
    program = traced(lambda x, w, b: F.relu(paddle.matmul(x, w) + b), (symbol("B"), 4), (4, 5), (5,))
    assert create_pass(GEMM).run(program) == 2 and names(verify(program)) == ["fused_gemm_epilogue"]


# ------------------------------------------------------------------------------------------------ convolutions
class ConvNorm(nn.Layer):
    def __init__(self, conv, norm):
        super().__init__()
        self.conv, self.norm = conv, norm

    def forward(self, x):
        return self.norm(self.conv(x))


@pytest.mark.parametrize(("conv", "norm", "shape", "left"), [
    (nn.Conv2D(3, 4, 3, padding=1, bias_attr=False), nn.BatchNorm2D(4), (2, 3, 5, 4), "conv2d"),
    (nn.Conv2D(4, 6, 3, stride=2, groups=2), nn.BatchNorm2D(6), (2, 4, 5, 5), "conv2d"),
    (nn.Conv2D(3, 3, 1, groups=3), nn.BatchNorm2D(3, weight_attr=False), (1, 3, 4, 4), "conv2d"),
    (nn.Conv2DTranspose(3, 4, 2, stride=2, bias_attr=False), nn.BatchNorm2D(4), (2, 3, 3, 3), "conv2d_transpose"),
    (nn.Linear(4, 5), nn.BatchNorm1D(5), (3, 4), "matmul"),
    (nn.Conv2D(3, 4, 3), nn.Sequential(*(nn.BatchNorm2D(4) for _ in range(3))), (1, 3, 4, 4), "conv2d"),
])
def test_normalisation_goes_into_the_weights(conv, norm, shape, left):
    program = layer_program(ConvNorm(conv, norm), shape)
    state = random_state(program)
    feed = random_feed(program)
    want = Executor(program).run(feed, dict(state))
    changed, after = program.clone(), dict(state)
    assert create_pass(BN).run(changed) > 0 and create_pass(BN).run(changed) == 0
    create_pass("constant_folding_pass", {"param_scope": after}).run(changed)
    assert names(verify(changed)) == [left, "add"]
    for key, value in Executor(changed).run(feed, after).items():
        np.testing.assert_allclose(value, want[key], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("layer", [
    ConvNorm(nn.Conv2DTranspose(4, 4, 2, groups=2, bias_attr=False), nn.BatchNorm2D(4)),        # another layout
    nn.Sequential(nn.LayerNorm(4), nn.ReLU()),                                                  # no weight before it
])
def test_what_takes_no_factor(layer):
    program = layer_program(layer, (2, 4, 4, 4))
    create_pass(BN).run(program)
    assert not any(op.name() == "pd_op.reshape" and len(op.result(0).shape) == 4 and op.result(0).shape[0] != 1
                   for op in program.walk())


def test_factors_that_the_input_decides_stay():
    """The gate of a squeeze-and-excitation block has the shape of a weight, for one image, and is none."""
    program = traced(lambda x, w: F.conv2d(x, w) * F.sigmoid(x.mean([2, 3], keepdim=True)), (1, 3, 4, 4), (3, 3, 1, 1))
    assert fused(BN, program)[1] == 0


@pytest.mark.parametrize("activation", ["relu", "relu6", "silu"])
@pytest.mark.parametrize("residual", [False, True])
def test_a_convolution_takes_bias_residual_and_activation(activation, residual):
    def block(x, w, b, r):
        y = F.conv2d(x, w, b, padding=1)
        return ACTIVATIONS[activation](y + r if residual else y)

    found, n = fused(CONV, traced(block, (2, 3, 4, 5), (4, 3, 3, 3), (4,), (2, 4, 4, 5)))
    assert found[-1] == ("fused_conv2d_residual_add_act" if residual else "fused_conv2d_add_act")
    assert set(found[:-1]) == {"reshape"} and n == 2 + residual


@pytest.mark.parametrize(("f", "shapes"), [
    (lambda x, w, b: F.conv2d(x, w) + b, [(1, 3, 4, 4), (4, 3, 1, 1), (4, 4)]),      # a number for each position
    (lambda x, w, b: F.conv2d(x, w) + b, [(1, 3, 4, 4), (1, 3, 1, 1), (5, 1, 1)]),   # more channels than come
    (lambda x, w, b: (lambda y: (y + b, y * 2.0))(F.conv2d(x, w)), [(1, 3, 4, 4), (4, 3, 1, 1), (4, 1, 1)]),
])
def test_what_is_no_bias_of_a_convolution(f, shapes):
    assert fused(CONV, traced(f, *shapes))[1] == 0


# ------------------------------------------------------------------------------------------------ norms
def by_hand(x, w, b, squared, rooted):
    d = x - x.mean(-1, keepdim=True)
    return rooted(d, squared(d).mean(-1, keepdim=True) + 1e-5) * w + b


SQUARES = [paddle.square, lambda d: paddle.pow(d, 2.0), lambda d: d * d]
ROOTS = [lambda d, v: d * paddle.rsqrt(v), lambda d, v: d / paddle.sqrt(v)]


@pytest.mark.parametrize("squared", SQUARES)
@pytest.mark.parametrize("rooted", ROOTS)
def test_norms_by_hand(squared, rooted):
    assert fused(NORM, traced(lambda x, w, b: by_hand(x, w, b, squared, rooted), (2, 3, 8), (8,), (8,))) == (
        ["layer_norm"], 2)
    rms = traced(lambda x, w: w * rooted(x, squared(x).mean(-1, keepdim=True) + 1e-6), (2, 3, 8), (8,))
    assert fused(NORM, rms) == (["rms_norm"], 1)


@pytest.mark.parametrize("sizes", [(8,), (3, 8)])
def test_the_layer_norm_of_layers(sizes):
    program = traced(lambda x, w, b: F.layer_norm(x, sizes, w, b), (2, 3, 8), sizes, sizes)
    assert fused(NORM, program) == (["layer_norm"], 1)


@pytest.mark.parametrize(("f", "shapes"), [
    (lambda x, w, b: ROWS["standardize"](x, axis=(0,), epsilon=1e-5)[0] * w + b, [(8, 8), (8,), (8,)]),
    (lambda x, w, b: F.layer_norm(x, 8) * w + b, [(8, 8), (1,), (8,)]),                      # one number for all
    (lambda x, w, b: F.layer_norm(x, 8) * w + b, [(8, 8), (8,), (8, 8)]),                    # a residual
])
def test_what_is_no_layer_norm(f, shapes):
    assert fused(NORM, traced(f, *shapes))[1] == 0


def test_sums_go_into_norms():
    shapes = [(2, 3, 8), (2, 3, 8), (8,), (8,)]
    post = traced(lambda x, y, w, b: F.layer_norm(x + y, 8, w, b), *shapes)
    assert fused(NORM, post) == (["skip_layernorm"], 2)

    def pre(x, y, w, b):
        total = x + y
        return total * paddle.tanh(F.layer_norm(total, 8, w, b))
    assert fused(NORM, traced(pre, *shapes)) == (["fused_bias_residual_layernorm", "tanh", "multiply"], 2)

    def llama(x, y, w):
        total = x + y
        return total * paddle.tanh(F.rms_norm(total, 8, w))
    assert fused(NORM, traced(llama, *shapes[:3])) == (["fused_rms_norm_residual", "tanh", "multiply"], 2)
    broadcast = traced(lambda x, y, w, b: F.layer_norm(x + y, 8, w, b), (2, 3, 8), (8,), (8,), (8,))
    assert fused(NORM, broadcast)[0] == ["add", "layer_norm"]


# ------------------------------------------------------------------------------------------------ attention
HEADS = [(2, 3, 5, 4)] * 3              # [B, H, S, D]
ROWS_FIRST = [(2, 5, 4, 8), (2, 6, 2, 8), (2, 6, 2, 8)]       # [B, S, H, D], grouped
T = [0, 2, 1, 3]


def turned(*ops):
    return ["transpose"] * 3 + [*ops, "transpose"]


@pytest.mark.parametrize("scores", [
    lambda q, k: paddle.matmul(q, k, transpose_y=True),
    lambda q, k: paddle.matmul(q, k, transpose_y=True) / 2.0,
    lambda q, k: paddle.matmul(q, k.transpose([0, 1, 3, 2])) * 0.5,
    lambda q, k: paddle.matmul(q * 0.5, k.transpose([0, 1, 3, 2])),
])
def test_attention_in_every_spelling(scores):
    plain = traced(lambda q, k, v: paddle.matmul(F.softmax(scores(q, k)), v), *HEADS)
    assert fused(FLASH, plain)[0] == turned("flash_attn")
    masked = traced(lambda q, k, v, m: paddle.matmul(F.softmax(scores(q, k) + m), v), *HEADS, (2, 1, 1, 5))
    assert fused(MASKED, masked)[0] == turned("fused_dot_product_attention")
    hidden = traced(lambda q, k, v, m: paddle.matmul(F.softmax(paddle.where(m, scores(q, k), -1e4)), v), *HEADS,
                    Meta((5, 5), dtypes.bool.np))
    assert fused(MASKED, hidden)[0] == turned("fused_dot_product_attention")


@pytest.mark.parametrize("shapes", [[(2, 5, 3, 4)] * 3, ROWS_FIRST, [(1, 1, 2, 4), (1, 7, 2, 4), (1, 7, 2, 4)]])
@pytest.mark.parametrize("causal", [False, True])
def test_the_attention_of_the_library(shapes, causal):
    program = traced(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), *shapes)
    found = [n for n in fused(FLASH, program)[0] if n not in ("arange", "unsqueeze", "greater_equal")]
    assert found == ["flash_attn"]


@pytest.mark.parametrize("shapes", [[(2, 5, 3, 4)] * 3, ROWS_FIRST])
@pytest.mark.parametrize("dtype", [F64, dtypes.bool.np])
def test_the_masked_attention_of_the_library(shapes, dtype):
    mask = Meta((shapes[0][1], shapes[1][1]), dtype)
    program = traced(F.scaled_dot_product_attention, *shapes, mask)
    found = [n for n in fused(MASKED, program)[0] if n not in ("greater_than", "cast")]
    assert found == ["fused_dot_product_attention"]


def test_a_query_that_sees_nothing_gets_what_it_got():
    heads = [np.random.default_rng(i).standard_normal((1, 2, 2, 4)) for i in range(3)]
    for dtype, nothing in ((F64, -np.inf), (dtypes.bool.np, False)):
        program = traced(F.scaled_dot_product_attention, *[(1, 2, 2, 4)] * 3, Meta((2, 2), dtype))
        mask = np.full((2, 2), True if dtype.kind == "b" else 0.5)
        mask[1] = nothing
        feed = dict(zip([f"input_{i}" for i in range(4)], [*heads, mask.astype(dtype)], strict=True))
        want = Executor(program.clone()).run(feed)["output_0"]
        assert create_pass(MASKED).run(program)
        got = Executor(program).run(feed)["output_0"]
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert (got[0, 1] == 0).all() and got[0, 0].all()


@pytest.mark.parametrize(("name", "f", "more"), [
    (FLASH, lambda q, k, v: paddle.matmul(F.softmax(paddle.matmul(q, k, transpose_y=True), 2), v), []),
    (FLASH, lambda q, k, v: paddle.matmul(F.dropout(F.softmax(paddle.matmul(q, k, transpose_y=True)), 0.1), v), []),
    (FLASH, lambda q, k, v: (lambda w: (paddle.matmul(w, v), w * 2.0))(F.softmax(paddle.matmul(
        q, k, transpose_y=True))), []),                                                             # weights are read
    (FLASH, lambda q, k, v: paddle.matmul(F.softmax(paddle.where(
        paddle.arange(5).unsqueeze(-1) > paddle.arange(5), paddle.matmul(q, k, transpose_y=True), -1e38)), v), []),
    (MASKED, lambda q, k, v, m: paddle.matmul(F.softmax(paddle.matmul(q, k, transpose_y=True)) * m, v), [(5, 5)]),
    (MASKED, lambda q, k, v, m: paddle.matmul(F.softmax(paddle.matmul(q, k, transpose_y=True) * m), v), [(5, 5)]),
])
def test_what_is_no_attention(name, f, more):
    assert fused(name, traced(f, *HEADS, *more))[1] == 0


def test_copied_heads_are_read_where_they_are():
    def repeated(x):
        return x.unsqueeze(2).expand([2, 2, 3, 5, 4]).reshape([2, 6, 5, 4])

    def attend(q, k, v):
        return paddle.matmul(F.softmax(paddle.matmul(q, repeated(k), transpose_y=True) / 2.0), repeated(v))
    assert fused(FLASH, traced(attend, (2, 6, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4)))[0] == turned("flash_attn")


@pytest.mark.parametrize("large", [False, True])
def test_scores_are_never_held_all_at_once(large):
    """As many scores as 32 MiB, in a few; large ones are taken off their row's maximum, others need not."""
    q, k, v = (np.random.default_rng(i).standard_normal((1, 1024, 8, 16)).astype(F32) * (6 if large else 1)
               for i in range(3))
    out = np.empty_like(q)
    tracemalloc.start()
    ROWS["flash_attn"].kernel_out(out, q, k, v, scale=0.5, causal=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 << 20
    scores = np.einsum("bihd,bjhd->bhij", q.astype(F64), k.astype(F64)) * 0.5
    scores[:, :, np.arange(1024)[:, None] < np.arange(1024)] = -np.inf
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = np.einsum("bhij,bjhd->bihd", weights / weights.sum(-1, keepdims=True), v)
    np.testing.assert_allclose(out, want, rtol=2e-4, atol=2e-4)


# ------------------------------------------------------------------------------------------------ rope
def half_turned(x):
    a, b = x[..., :4], x[..., 4:]
    return paddle.concat([-b, a], -1)


def split_turned(x):
    a, b = paddle.chunk(x, 2, -1)
    return paddle.concat([b * -1.0, a], -1)


@pytest.mark.parametrize("turned_half", [half_turned, split_turned])
def test_rotary_embedding_with_a_number_for_each_place(turned_half):
    program = traced(lambda x, cos, sin: x * cos + turned_half(x) * sin, (2, 3, 5, 8), (5, 8), (1, 1, 5, 8))
    assert fused(ROPE, program) == (["fused_rotary_position_embedding"], 1)


def test_what_is_no_rotary_embedding_by_places():
    def swapped(x):
        return paddle.concat([x[..., 4:], x[..., :4]], -1)
    assert fused(ROPE, traced(lambda x, c, s: x * c + swapped(x) * s, (5, 8), (5, 8), (5, 8)))[1] == 0
    assert fused(ROPE, traced(lambda x, c, s: x * c + half_turned(x) * s, (8,), (5, 8), (5, 8)))[1] == 0


# ------------------------------------------------------------------------------------------------ the rest
def test_embeddings_and_their_norm():
    ids = [Meta(s, dtypes.int64.np) for s in ((2, 3), (2, 3), (1, 3))]
    def begin(i, j, k, u, v, w, scale, bias):
        return F.layer_norm(F.embedding(i, u) + F.embedding(j, v) + F.embedding(k, w), 8, scale, bias)
    program = traced(begin, *ids, (7, 8), (4, 8), (3, 8), (8,), (8,))
    feed = {**random_feed(program), **{f"input_{i}": np.array([[0, 2, 1]] * n) for i, n in enumerate((2, 2, 1))}}
    want = Executor(program.clone()).run(feed)["output_0"]
    for passes in (["embedding_eltwise_layernorm_fuse_pass"], [NORM, "embedding_eltwise_layernorm_fuse_pass"]):
        changed = program.clone()
        for name in passes:
            assert create_pass(name).run(changed)
        assert names(verify(changed)) == ["fused_embedding_eltwise_layernorm"]
        np.testing.assert_allclose(Executor(changed).run(feed)["output_0"], want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("f", "left"), [
    (lambda i, j, u, v, w, b: F.layer_norm(s := F.embedding(i, u) + F.embedding(j, v), 8, w[0], b[0]) + s,
     ["layer_norm", "embedding", "embedding"]),                                         # another reads the sum
    (lambda i, j, u, v, w, b: F.layer_norm(F.embedding(i, u, padding_idx=0) + F.embedding(j, v), 8, w[0], b[0]),
     ["layer_norm", "embedding", "embedding"]),
    (lambda i, j, u, v, w, b: F.layer_norm(F.embedding(i, u) + v[0], 8, w[0], b[0]), ["layer_norm", "embedding"]),
    (lambda i, j, u, v, w, b: F.layer_norm(F.embedding(i, u) * F.embedding(j, v), 8, w[0], b[0]),
     ["layer_norm", "embedding", "embedding"]),
    (lambda i, j, u, v, w, b: F.layer_norm(F.embedding(i, u) + F.embedding(j, v), [3, 8], w, b),
     ["embedding", "embedding"]),                                                       # over more than a row
    (lambda i, j, u, v, w, b: F.layer_norm(F.embedding(i, u) + F.embedding(j, v), 8), ["embedding", "embedding"]),
])
def test_what_is_no_norm_of_embeddings(f, left):
    ids = [Meta((2, 3), dtypes.int64.np)] * 2
    program = traced(f, *ids, (7, 8), (4, 8), (3, 8), (3, 8))
    create_pass("embedding_eltwise_layernorm_fuse_pass").run(program)
    found = names(verify(program))
    assert "fused_embedding_eltwise_layernorm" not in found and all(found.count(n) == left.count(n) for n in left)


def test_dropout_and_its_residual():
    name = "fused_dropout_add_pass"
    key = np.array([3, 4])
    program = traced(lambda x, y: F.dropout(x, 0.25) + y, (4, 5), (4, 5))
    feed = {n: key if n.startswith("key") else v for n, v in random_feed(program).items()}
    want = Executor(program.clone()).run(feed)["output_0"]
    assert create_pass(name).run(program) == 1 and names(verify(program)) == ["fused_dropout_add"]
    np.testing.assert_array_equal(Executor(program).run(feed)["output_0"], want)
    assert fused(name, traced(lambda x, y: F.dropout(x, 0.25, training=False) + y, (4, 5), (4, 5)))[1] == 0
    assert create_pass(name).run(traced(lambda x, y: F.dropout(x, 0.25) + y, (4, 5), (5,))) == 0


def test_group_norm_and_silu():
    name = "group_norm_silu_fuse_pass"
    f = lambda x, w, b: F.group_norm(x, 2, weight=w, bias=b)                                    # noqa: E731
    assert fused(name, traced(f, (2, 4, 3, 5), (4,), (4,)))[0][-1] == "add_group_norm_silu"
    found, n = fused(name, traced(lambda *xs: F.silu(f(*xs)), (2, 4, 3, 5), (4,), (4,)))
    assert found[-1] == "add_group_norm_silu" and n == 2
    assert fused(name, traced(lambda x: F.silu(F.group_norm(x, 2)), (2, 4, 3, 5)))[1] == 0
    last = traced(lambda x, w, b: F.group_norm(x, 2, weight=w, bias=b, data_format="NHWC"), (2, 3, 5, 4), (4,), (4,))
    assert fused(name, last)[1] == 0


def test_expansions_that_broadcasting_does_are_removed_exactly():
    name = "remove_redundant_expand_pass"
    f = lambda x, y: x * y.expand([2, 3]) + y.expand([2, 3])                                    # noqa: E731
    assert fused(name, traced(f, (2, 3), (3,)), 0.0) == (["multiply", "add"], 2)
    assert fused(name, traced(lambda x, y: x * y.expand([2, 3]), (3,), (3,)), 0.0)[1] == 0      # it makes the shape


@pytest.mark.parametrize(("name", "f", "shapes"), [
    (GEMM, lambda x, w, b: F.gelu(paddle.matmul(x, w) + b), [(3, 4), (4, 5), (5,)]),
    (NORM, lambda x, w, b: F.layer_norm(x, 4, w, b), [(3, 4), (4,), (4,)]),
    (FLASH, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [(1, 3, 2, 4)] * 3),
])
def test_what_is_fused_can_be_differentiated(name, f, shapes):
    results = []
    for fuse in (False, True):
        specs = [paddle.static.InputSpec(s, "float64", stop_gradient=False) for s in shapes]
        found = trace(lambda *xs: (f(*xs) ** 2.0).sum(), *specs)
        if fuse:
            assert create_pass(name).run(found.program)
        gradients = append_backward(found.program, found.output_values, found.input_values)
        for i, g in enumerate(gradients):
            Builder(found.program.global_block()).output(f"g{i}", g)
        feed = {n: np.random.default_rng(i).standard_normal(s)
                for i, (n, s) in enumerate(zip(found.inputs, shapes, strict=True))}
        results.append(Executor(verify(found.program)).run(feed))
    for key, want in results[0].items():
        np.testing.assert_allclose(results[1][key], want, rtol=1e-11, atol=1e-11)
