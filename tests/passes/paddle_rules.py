"""Rules and programs that Paddle 3.3.1 and minipd both read: each function is given the module.

The rules are those that people write first: what Paddle's own tests of its Python rules look for.
"""

from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    """rule(paddle) -> the context; program(paddle) -> the results, inside of a program guard."""

    rule: Callable
    program: Callable


def sides(paddle):
    ctx = paddle.pir.DrrPatternContext()
    pat = ctx.SourcePattern()
    return ctx, pat, pat.ResultPattern()


def constant(side, out, name, **attrs):
    """A pd_op.full or pd_op.full_int_array that makes `out`."""
    side.Op(name, attrs)([], [side.Tensor(out)])


def data(paddle, name, shape, dtype="float32"):
    return paddle.static.data(name=name, shape=shape, dtype=dtype)


# --------------------------------------------------------------------------------------------------------- silu
def silu_rule(paddle):
    ctx, pat, res = sides(paddle)
    pat.Op("pd_op.sigmoid")([pat.Tensor("x")], [pat.Tensor("s")])
    pat.Op("pd_op.multiply")([pat.Tensor("x"), pat.Tensor("s")], [pat.Tensor("out")])
    res.Op("pd_op.swish")([res.Tensor("x")], [res.Tensor("out")])
    return ctx


def silu_program(paddle):
    x = data(paddle, "x", [3, 1, 4, 5])
    return [paddle.assign(paddle.multiply(x, paddle.nn.Sigmoid()(x)))]


# ------------------------------------------------------------------------------------------------ matmul, scale
def matmul_scale_rule(paddle):
    ctx, pat, res = sides(paddle)
    kept = {name: pat.Attr(name) for name in ("shape", "value", "dtype", "place")}
    flags = {name: pat.Attr(name) for name in ("transpose_x", "transpose_y")}
    pat.Op("pd_op.matmul", flags)([pat.Tensor("x"), pat.Tensor("w")], [pat.Tensor("product")])
    constant(pat, "factor", "pd_op.full", **kept)
    pat.Op("pd_op.scale", {"bias": pat.Attr("bias"), "bias_after_scale": pat.Attr("after")})(
        [pat.Tensor("product"), pat.Tensor("factor")], [pat.Tensor("out")])
    pat.AddConstraint(lambda match: abs(match.Float32Attr("bias")) <= 1e-6)
    constant(res, "new_factor", "pd_op.full", **kept)
    res.Op("pd_op.scale", {"bias": res.Float32Attr(0.0), "bias_after_scale": pat.Attr("after")})(
        [res.Tensor("w"), res.Tensor("new_factor")], [res.Tensor("scaled")])
    res.Op("pd_op.matmul", flags)([res.Tensor("x"), res.Tensor("scaled")], [res.Tensor("out")])
    return ctx


def matmul_scale_program(paddle):
    x, w = data(paddle, "x", [3, 2]), data(paddle, "w", [2, 3])
    return [paddle.assign(paddle.scale(paddle.matmul(x, w), scale=2.0, bias=1e-7))]


# -------------------------------------------------------------------------------------------- matmul, transpose
def matmul_transpose_rule(paddle):
    ctx, pat, res = sides(paddle)

    def swaps_the_last(match):
        perm = list(match.VectorInt32Attr("perm"))
        n = len(perm)
        return len(match.Tensor("a").shape) >= 2 and len(match.Tensor("b").shape) >= 2 and perm == [
            *range(n - 2), n - 1, n - 2]
    pat.Op("pd_op.matmul", {"transpose_x": pat.Attr("tx"), "transpose_y": pat.Attr("ty")})(
        [pat.Tensor("a"), pat.Tensor("b")], [pat.Tensor("product")])
    pat.Op("pd_op.transpose", {"perm": pat.Attr("perm")})([pat.Tensor("product")], [pat.Tensor("out")])
    pat.AddConstraint(swaps_the_last)
    res.Op("pd_op.matmul", {"transpose_x": res.ComputeAttr(lambda m: (not m.BoolAttr("ty"), "bool")),
                            "transpose_y": res.ComputeAttr(lambda m: (not m.BoolAttr("tx"), "bool"))})(
        [res.Tensor("b"), res.Tensor("a")], [res.Tensor("out")])
    return ctx


def matmul_transpose_program(paddle):
    a, b = data(paddle, "a", [1, 2, 3]), data(paddle, "b", [1, 3, 2])
    return [paddle.assign(paddle.transpose(paddle.matmul(a, b), perm=[0, 2, 1]))]


# ----------------------------------------------------------------------------------------------------- add_norm
def add_norm_rule(paddle):
    ctx, pat, res = sides(paddle)
    pat.Op("pd_op.pow", {"y": pat.Attr("power")})([pat.Tensor("x")], [pat.Tensor("squares")])
    constant(pat, "axis", "pd_op.full_int_array", value=pat.Attr("axis"))
    pat.Op("pd_op.mean", {"keepdim": pat.Attr("keepdim")})([pat.Tensor("squares"), pat.Tensor("axis")],
                                                         [pat.Tensor("mean")])
    constant(pat, "one", "pd_op.full", value=pat.Attr("one"))
    pat.Op("pd_op.scale", {"bias": pat.Attr("epsilon")})([pat.Tensor("mean"), pat.Tensor("one")],
                                                         [pat.Tensor("shifted")])
    pat.Op("pd_op.rsqrt")([pat.Tensor("shifted")], [pat.Tensor("factor")])
    pat.Op("pd_op.multiply")([pat.Tensor("factor"), pat.Tensor("x")], [pat.Tensor("normal")])
    pat.Op("pd_op.multiply")([pat.Tensor("normal"), pat.Tensor("w")], [pat.Tensor("out")])

    def over_the_last(match):
        axis, rank = list(match.VectorInt64Attr("axis")), len(match.Tensor("x").shape)
        return len(axis) == 1 and axis[0] in (-1, rank - 1) and match.BoolAttr("keepdim") and match.DoubleAttr(
            "one") == 1.0 and match.Float32Attr("power") == 2.0
    pat.AddConstraint(over_the_last)
    res.Op("pd_op.rms_norm", {
        "epsilon": res.ComputeAttr(lambda m: (m.Float32Attr("epsilon"), "double")),
        "normalized_shape": res.ComputeAttr(lambda m: ([m.Tensor("w").shape[0]], "vector<int64>"))})(
        [res.Tensor("x"), res.Tensor("w")], [res.Tensor("out"), res.Tensor("inverse")])
    return ctx


def add_norm_program(paddle):
    x, w = data(paddle, "x", [1, 3, 16]), data(paddle, "w", [16])
    return [paddle.assign(paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * x * w)]


# --------------------------------------------------------------------------------- embedding, add, layer_norm
def embedding_rule(paddle):
    ctx, pat, res = sides(paddle)
    for i in "12":
        pat.Op("pd_op.embedding")([pat.Tensor(f"x{i}"), pat.Tensor(f"w{i}")], [pat.Tensor(f"e{i}")])
    pat.Op("pd_op.add")([pat.Tensor("e1"), pat.Tensor("e2")], [pat.Tensor("sum")])
    pat.Op("pd_op.layer_norm", {"epsilon": pat.Attr("epsilon")})(
        [pat.Tensor("sum"), pat.Tensor("scale"), pat.Tensor("bias")],
        [pat.Tensor("out"), pat.Tensor("mean"), pat.Tensor("variance")])

    def of_one_kind(match):
        one, two = match.Tensor("w1"), match.Tensor("w2")
        return one.dtype == two.dtype == paddle.float32 and list(match.Tensor("x1").shape) == list(
            match.Tensor("x2").shape)
    pat.AddConstraint(of_one_kind)
    for name, given in ("ids", "x"), ("tables", "w"):
        res.Op("builtin.combine")([res.Tensor(f"{given}1"), res.Tensor(f"{given}2")], [res.Tensor(name)])
    dtype = res.ComputeAttr(lambda match: (match.Tensor("w1").dtype, "datatype"))
    for name in "bias", "scale":
        res.Op("pd_op.cast", {"dtype": dtype})([res.Tensor(name)], [res.Tensor(f"cast_{name}")])
    res.Op("pd_op.fused_embedding_eltwise_layernorm", {"epsilon": pat.Attr("epsilon")})(
        [res.Tensor("ids"), res.Tensor("tables"), res.Tensor("cast_bias"), res.Tensor("cast_scale")],
        [res.Tensor("out")])
    return ctx


def embedding_program(paddle):
    x = data(paddle, "x", [1, 6], "int64")
    a, b, norm = paddle.nn.Embedding(7, 8), paddle.nn.Embedding(9, 8), paddle.nn.LayerNorm([8])
    return [paddle.assign(norm(paddle.add(a(x), b(x))))]


# --------------------------------------------------------------------------------------------------------- rope
def rope_rule(paddle):
    ctx, pat, res = sides(paddle)
    for t in "cos", "sin":
        for step in "squeeze", "at", "unsqueeze":
            constant(pat, f"{t}_{step}", "pd_op.full_int_array", value=pat.Attr(f"{t}_{step}"))
        pat.Op("pd_op.squeeze")([pat.Tensor(t), pat.Tensor(f"{t}_squeeze")], [pat.Tensor(f"{t}2")])
        pat.Op("pd_op.unsqueeze")([pat.Tensor("position_ids"), pat.Tensor(f"{t}_at")], [pat.Tensor(f"{t}_ids")])
        pat.Op("pd_op.gather_nd")([pat.Tensor(f"{t}2"), pat.Tensor(f"{t}_ids")], [pat.Tensor(f"{t}3")])
        pat.Op("pd_op.unsqueeze")([pat.Tensor(f"{t}3"), pat.Tensor(f"{t}_unsqueeze")], [pat.Tensor(f"{t}4")])
    for x in "q", "k":
        for half in "12":
            for end in "from", "to":
                constant(pat, f"{x}{half}_{end}", "pd_op.full_int_array", value=pat.Attr(f"{x}{half}_{end}"))
            pat.Op("pd_op.slice", {"axes": pat.Attr(f"{x}{half}_axes")})(
                [pat.Tensor(x), pat.Tensor(f"{x}{half}_from"), pat.Tensor(f"{x}{half}_to")], [pat.Tensor(f"{x}{half}")])
        constant(pat, f"{x}_minus", "pd_op.full", value=pat.Attr(f"{x}_minus"))
        pat.Op("pd_op.scale")([pat.Tensor(f"{x}2"), pat.Tensor(f"{x}_minus")], [pat.Tensor(f"{x}_less")])
        pat.Op("builtin.combine")([pat.Tensor(f"{x}_less"), pat.Tensor(f"{x}1")], [pat.Tensor(f"{x}_both")])
        constant(pat, f"{x}_axis", "pd_op.full", value=pat.Attr(f"{x}_axis"))
        pat.Op("pd_op.concat")([pat.Tensor(f"{x}_both"), pat.Tensor(f"{x}_axis")], [pat.Tensor(f"{x}_turned")])
        pat.Op("pd_op.multiply")([pat.Tensor(x), pat.Tensor("cos4")], [pat.Tensor(f"{x}_cos")])
        pat.Op("pd_op.multiply")([pat.Tensor(f"{x}_turned"), pat.Tensor("sin4")], [pat.Tensor(f"{x}_sin")])
        pat.Op("pd_op.add")([pat.Tensor(f"{x}_cos"), pat.Tensor(f"{x}_sin")], [pat.Tensor(f"out_{x}")])

    def halves(match):
        return all(list(match.VectorInt64Attr(f"{t}_squeeze")) == [0, 2]
                   and list(match.VectorInt64Attr(f"{t}_unsqueeze")) == [2] for t in ("cos", "sin")) and all(
            match.DoubleAttr(f"{x}_minus") == -1.0 for x in "qk")
    pat.AddConstraint(halves)
    res.Op("pd_op.fused_rotary_position_embedding", {
        "use_neox_rotary_style": res.BoolAttr(False), "time_major": res.BoolAttr(False),
        "rotary_emb_base": res.Float32Attr(10000.0)})(
        [res.Tensor("q"), res.Tensor("k"), res.InputNoneTensor(), res.Tensor("sin"), res.Tensor("cos"),
         res.Tensor("position_ids")],
        [res.Tensor("out_q"), res.Tensor("out_k"), res.OutputNoneTensor()])
    return ctx


def rope_program(paddle):
    q, k = data(paddle, "q", [2, 8, 2, 16]), data(paddle, "k", [2, 8, 2, 16])
    cos, sin = data(paddle, "cos", [1, 8, 1, 16]), data(paddle, "sin", [1, 8, 1, 16])
    ids = data(paddle, "ids", [2, 8], "int64")

    def turned(x):
        half = x.shape[-1] // 2
        return paddle.concat([-x[..., half:], x[..., :half]], axis=-1)
    cos, sin = (paddle.gather_nd(t.squeeze(axis=[0, 2]), ids.unsqueeze(-1)).unsqueeze(2) for t in (cos, sin))
    return [paddle.assign(q * cos + turned(q) * sin), paddle.assign(k * cos + turned(k) * sin)]


# ---------------------------------------------------------------------------------------------------- multihead
def multihead_rule(paddle):
    ctx, pat, res = sides(paddle)

    def attrs(*names, of=""):
        return {name: pat.Attr(f"{name}{of}") for name in names}
    pat.Op("pd_op.matmul", attrs("transpose_x", "transpose_y", of="1"))(
        [pat.Tensor("x"), pat.Tensor("w")], [pat.Tensor("m1")])
    pat.Op("pd_op.add")([pat.Tensor("m1"), pat.Tensor("bias")], [pat.Tensor("biased")])
    constant(pat, "shape1", "pd_op.full_int_array", value=pat.Attr("shape1"))
    pat.Op("pd_op.reshape")([pat.Tensor("biased"), pat.Tensor("shape1")], [pat.Tensor("r1")])
    pat.Op("pd_op.transpose", attrs("perm", of="1"))([pat.Tensor("r1")], [pat.Tensor("t1")])
    for i, t in enumerate("qkv"):
        constant(pat, f"{t}_from", "pd_op.full_int_array", value=pat.Attr(f"{t}_from"))
        constant(pat, f"{t}_to", "pd_op.full_int_array", value=pat.Attr(f"{t}_to"))
        pat.Op("pd_op.slice", attrs("axes", "infer_flags", "decrease_axis", of=str(i)))(
            [pat.Tensor("t1"), pat.Tensor(f"{t}_from"), pat.Tensor(f"{t}_to")], [pat.Tensor(t)])
    pat.Op("pd_op.transpose", attrs("perm", of="2"))([pat.Tensor("k")], [pat.Tensor("kt")])
    pat.Op("pd_op.matmul", attrs("transpose_x", "transpose_y", of="2"))(
        [pat.Tensor("q"), pat.Tensor("kt")], [pat.Tensor("m2")])
    constant(pat, "factor", "pd_op.full", value=pat.Attr("factor"))
    pat.Op("pd_op.scale", attrs("bias", "bias_after_scale"))([pat.Tensor("m2"), pat.Tensor("factor")],
                                                             [pat.Tensor("scaled")])
    pat.Op("pd_op.softmax", attrs("axis"))([pat.Tensor("scaled")], [pat.Tensor("softmax")])
    pat.Op("pd_op.matmul", attrs("transpose_x", "transpose_y", of="3"))(
        [pat.Tensor("softmax"), pat.Tensor("v")], [pat.Tensor("m3")])
    pat.Op("pd_op.transpose", attrs("perm", of="3"))([pat.Tensor("m3")], [pat.Tensor("t3")])
    constant(pat, "shape2", "pd_op.full_int_array", value=pat.Attr("shape2"))
    pat.Op("pd_op.reshape")([pat.Tensor("t3"), pat.Tensor("shape2")], [pat.Tensor("out")])

    def attention(match):
        plain = not any(match.BoolAttr(f"transpose_{o}{i}") for o in "xy" for i in "123")
        return plain and match.Int32Attr("axis") in (-1, 3) and len(match.Tensor("m1").shape) == 3
    pat.AddConstraint(attention)

    def cut(name, shape):
        def compute(match):
            sizes = list(match.Tensor(name).shape)
            return [*sizes[:-1], 3, sizes[-1] // 3], "vector<int64>"
        res.Op("pd_op.reshape", {"shape": res.ComputeAttr(compute)})(
            [res.Tensor(name)], [res.Tensor(shape), res.OutputNoneTensor()][:1])
    cut("w", "w3")
    cut("bias", "bias3")
    res.Op("pd_op.multihead_matmul", {
        "transpose_q": res.BoolAttr(False), "transpose_k": res.BoolAttr(False), "transpose_v": res.BoolAttr(False),
        "alpha": res.ComputeAttr(lambda m: (m.DoubleAttr("factor"), "float")),
        "head_number": res.ComputeAttr(lambda m: (m.Tensor("softmax").shape[1], "int32"))})(
        [res.Tensor("x"), res.Tensor("w3"), res.Tensor("bias3"), res.InputNoneTensor()], [res.Tensor("out")])
    return ctx


def multihead_program(paddle):
    batch, length, heads, size = 1, 5, 3, 4
    x = data(paddle, "x", [batch, length, heads * size])
    w, bias = data(paddle, "w", [heads * size, 3 * heads * size]), data(paddle, "bias", [3 * heads * size])
    qkv = paddle.add(paddle.matmul(x, w), bias)
    qkv = paddle.transpose(paddle.reshape(qkv, [batch, length, 3, heads, size]), [2, 0, 3, 1, 4])
    q, k, v = qkv[0, :, :, :, :], qkv[1, :, :, :, :], qkv[2, :, :, :, :]
    scores = paddle.scale(paddle.matmul(q, paddle.transpose(k, [0, 1, 3, 2])), scale=0.125, bias=0.0)
    out = paddle.matmul(paddle.nn.functional.softmax(scores), v)
    return [paddle.assign(paddle.reshape(paddle.transpose(out, [0, 2, 1, 3]), [batch, length, heads * size]))]


CASES = {name: Case(globals()[f"{name}_rule"], globals()[f"{name}_program"]) for name in (
    "silu", "matmul_scale", "matmul_transpose", "add_norm", "embedding", "rope", "multihead")}
