"""Paddle's names for decomposition, and the rules of what is a function here, called as Paddle's operators are."""

import inspect

import numpy as np
import pytest

import minipd as paddle
from minipd.base import core
from minipd.decomposition import functions
from minipd.decomposition.decomp import call_decomp_rule as by_paddles_path
from minipd.decomposition.functions import FUNCTION_RULES
from minipd.decomposition.rules import call_decomp_rule, call_vjp, has_decomp_rule, has_vjp, rule_names, rule_of
from minipd.framework import philox, rank
from minipd.framework.context import RankContext
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.paddle.signatures import signature
from minipd.ir.program import Program
from minipd.ir.verify import verify
from tests.decomposition.cases import FORWARD
from tests.decomposition.programs import run

UP = "upscale_in_train"
RNG = np.random.default_rng(4)
X = RNG.normal(size=(2, 4, 3, 5))


def t(x):
    return paddle.to_tensor(np.asarray(x))


def softmax_program():
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (3, 5), "float64", False)
    y, = build.call(ROWS["softmax"], (x,), {"axis": 1})
    return program, build, x, y


# ------------------------------------------------------------------------------------------------- operations
def test_a_rule_is_written_in_front_of_an_operation_that_stays():
    program, build, x, y = softmax_program()
    (new,), = core.call_decomp_rule(y.get_defining_op())
    build.output("y", y)
    build.output("new", new)
    verify(program)
    names = [op.name() for op in program.global_block()]
    assert names.index("pd_op.divide") < names.index("pd_op.softmax")
    assert new.get_defining_op().attributes["comp_op_name"].value == "pd_op.softmax"
    found = run(program, {"x": X[0, 0]})
    np.testing.assert_allclose(found["new"], found["y"], rtol=1e-14)


def test_what_has_no_rule_is_refused():
    program, build, x, _ = softmax_program()
    z, = build.call(ROWS["exp"], (x,), {})
    assert not core.has_decomp_rule(z.get_defining_op()) and not core.has_decomp_rule(x.get_defining_op())
    with pytest.raises(ValueError, match="expected an operation with a rule, got pd_op.exp"):
        core.call_decomp_rule(z.get_defining_op())
    with pytest.raises(ValueError, match="expected an operator with a rule, got 'pd_op.exp'; those .* softmax"):
        call_decomp_rule("pd_op.exp", t([1.0]))
    assert rule_of("builtin.combine") is None


def test_the_gradient_of_one_operation():
    program, build, x, y = softmax_program()
    g = build.data("g", (3, 5), "float64")
    op = y.get_defining_op()
    assert core.has_vjp(op) and has_vjp("pd_op.softmax") and not has_vjp("pd_op.equal")
    (found,), = core.call_vjp(op, [[x]], [[y]], [[g]], [[False]])
    build.set_insertion_point_to_block_end(program.global_block())
    build.output("dx", found)
    verify(program)
    values, grads = X[0, 0], X[1, 1]
    e = np.exp(values) / np.exp(values).sum(1, keepdims=True)
    want = e * (grads - (grads * e).sum(1, keepdims=True))
    np.testing.assert_allclose(run(program, {"x": values, "g": grads})["dx"], want, rtol=1e-12)
    assert core.call_vjp(op, [[x]], [[y]], [[g]], [[True]]) == [[None]]
    with pytest.raises(ValueError, match="expected the operands and results of pd_op.softmax, got others"):
        call_vjp(op, [[y]], [[y]], [[g]], [[False]])


# ------------------------------------------------------------------------------------------------- programs
@pytest.fixture
def static():
    paddle.enable_static()
    yield paddle.static.Program()
    paddle.disable_static()
    core.prim_config["forward_blacklist"].clear()


def written(main):
    with paddle.static.program_guard(main):
        x = paddle.static.data("x", [4, 8], "float32")
        y = paddle.nn.functional.softmax(x)
        return paddle.nn.functional.gelu(y)


def test_static_programs_are_decomposed_in_place(static):
    z = written(static)
    core._set_prim_forward_enabled(True)
    assert core._is_fwd_prim_enabled() and not core._is_all_prim_enabled()
    new, = paddle.decomposition.decompose(static, [z])
    names = {op.name() for op in static.global_block()}
    assert isinstance(new, paddle.Tensor) and {"pd_op.erf", "pd_op.max"} <= names
    assert not names & {"pd_op.softmax", "pd_op.gelu"}
    exe, x = paddle.static.Executor(), X.reshape(-1, 8)[:4].astype("float32")
    got, = exe.run(static, feed={"x": x}, fetch_list=[new])
    paddle.disable_static()
    want = paddle.nn.functional.gelu(paddle.nn.functional.softmax(paddle.to_tensor(x))).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)
    core._set_prim_forward_enabled(False)


def test_what_is_to_stay_stays(static):
    core._set_prim_forward_blacklist({"pd_op.softmax"})
    z = written(static)
    paddle.decomposition.decompose(static, [z])
    names = {op.name() for op in static.global_block()}
    assert "pd_op.softmax" in names and "pd_op.gelu" not in names
    with pytest.raises(TypeError, match="expected names of operators, got 3"):
        core._set_prim_backward_blacklist(3)


def test_every_rank_has_switches_of_its_own():
    core._set_prim_all_enabled(True)
    core._set_prim_backward_blacklist("pd_op.softmax")
    token = rank.enter(RankContext())
    assert not core._is_bwd_prim_enabled() and not any(core.prim_config.values())
    rank.leave(token)
    assert core._is_all_prim_enabled() and core.prim_config["backward_blacklist"] == {"pd_op.softmax"}
    core._set_prim_all_enabled(False)
    core.prim_config["backward_blacklist"].clear()


def test_only_a_part_of_the_program(static):
    z = written(static)
    at = [op.name() for op in static.global_block()].index("pd_op.gelu")
    paddle.decomposition.decompose(static, [z], start_index=at)
    assert "pd_op.softmax" in {op.name() for op in static.global_block()}
    paddle.decomposition.decompose(static, [], end_index=at)
    assert "pd_op.softmax" not in {op.name() for op in static.global_block()}


# ------------------------------------------------------------------------------- functions under Paddle's names
WRITTEN_OUT = sorted(name for name, rule in FUNCTION_RULES.items() if inspect.isfunction(rule)
                     and rule.__module__ == functions.__name__ and rule.__name__ != "<lambda>")


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_a_rule_takes_what_paddles_operator_takes(name):
    takes = inspect.signature(FUNCTION_RULES[name]).parameters.values()
    found = signature(name)
    assert [p.name for p in takes if p.kind is not p.KEYWORD_ONLY] == [o.name for o in found.operands]
    assert {p.name for p in takes if p.kind is p.KEYWORD_ONLY} == set(found.attrs)


def test_losses_by_paddles_names():
    x, y = X[0, 0], X[0, 1]
    d = np.abs(x - y)
    loss, rest = call_decomp_rule("pd_op.huber_loss", t(x), t(y), delta=0.5)
    np.testing.assert_allclose(loss.numpy(), np.where(d < 0.5, d * d / 2, 0.5 * (d - 0.25)))
    np.testing.assert_allclose(rest.numpy(), y - x)
    p = np.exp(y)
    np.testing.assert_allclose(by_paddles_path("pd_op.kldiv_loss", t(x), t(p), reduction="sum").item(),
                               (p * (np.log(p) - x)).sum())
    np.testing.assert_allclose(call_decomp_rule("pd_op.squared_l2_norm", t(x)).numpy(), [(x * x).sum()])
    np.testing.assert_allclose(call_decomp_rule("pd_op.mean_all", t(x)).item(), x.mean())


def test_shapes_by_paddles_names():
    a, b = np.arange(3.0), np.arange(2.0)
    grids = call_decomp_rule("pd_op.meshgrid", [t(a), t(b)])
    for got, want in zip(grids, np.meshgrid(a, b, indexing="ij"), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)
    one_hot = call_decomp_rule("pd_op.one_hot", t([2, 0]), num_classes=3)
    np.testing.assert_array_equal(one_hot.numpy(), np.eye(3)[[2, 0]])
    w = RNG.normal(size=(4, 5))
    for weight, transpose in ((w, True), (w.T, False)):
        got = call_decomp_rule("pd_op.linear_v2", t(X), t(weight), t(np.ones(4)), transpose_weight=transpose)
        np.testing.assert_allclose(got.numpy(), X @ w.T + 1.0)
    np.testing.assert_array_equal(call_decomp_rule("pd_op.flatten", t(X), start_axis=1, stop_axis=2).shape, [2, 12, 5])


def moments(x, axes):
    return x.mean(axes), x.var(axes)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_leaves_the_running_statistics_it_is_given(training, layout):
    x = X if layout == "NCHW" else np.moveaxis(X, 1, -1)
    mean, variance = t(RNG.normal(size=4)), t(RNG.uniform(1, 2, size=4))
    before = mean.numpy().copy(), variance.numpy().copy()
    scale, bias = RNG.normal(size=4), RNG.normal(size=4)
    out, new_mean, new_variance, saved, inverse = call_decomp_rule(
        "pd_op.batch_norm_", t(x), mean, variance, t(scale), t(bias), is_test=not training, momentum=0.75, epsilon=1e-3,
        data_format=layout, use_global_stats=False, trainable_statistics=False)
    np.testing.assert_array_equal(mean.numpy(), before[0])
    m, v = moments(X, (0, 2, 3)) if training else before
    if training:
        before = 0.75 * before[0] + 0.25 * m, 0.75 * before[1] + 0.25 * v
    want = (X - m[:, None, None]) / np.sqrt(v + 1e-3)[:, None, None] * scale[:, None, None] + bias[:, None, None]
    np.testing.assert_allclose(out.numpy(), want if layout == "NCHW" else np.moveaxis(want, 1, -1))
    np.testing.assert_allclose(new_mean.numpy(), before[0])
    np.testing.assert_allclose(new_variance.numpy(), before[1])
    np.testing.assert_allclose(saved.numpy(), m)
    np.testing.assert_allclose(inverse.numpy(), 1 / np.sqrt(v + 1e-3))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_group_norm_gives_its_moments(layout):
    x = X if layout == "NCHW" else np.moveaxis(X, 1, -1)
    out, mean, variance = call_decomp_rule("pd_op.group_norm", t(x), None, None, epsilon=1e-5, groups=2,
                                           data_format=layout)
    m, v = moments(X.reshape(2, 2, -1), -1)
    np.testing.assert_allclose(mean.numpy(), m)
    np.testing.assert_allclose(variance.numpy(), v)
    want = ((X.reshape(2, 2, -1) - m[..., None]) / np.sqrt(v + 1e-5)[..., None]).reshape(X.shape)
    np.testing.assert_allclose(out.numpy(), want if layout == "NCHW" else np.moveaxis(want, 1, -1))


def test_instance_norm_gives_its_moments():
    out, mean, inverse = call_decomp_rule("pd_op.instance_norm", t(X), epsilon=1e-3)
    m, v = moments(X, (2, 3))
    np.testing.assert_allclose(mean.numpy(), m.ravel())
    np.testing.assert_allclose(inverse.numpy(), 1 / np.sqrt(v.ravel() + 1e-3))
    np.testing.assert_allclose(out.numpy(), (X - m[..., None, None]) / np.sqrt(v + 1e-3)[..., None, None])


def test_rms_norm_with_everything_before_and_behind():
    x, bias, residual, weight, shift = (RNG.normal(size=s) for s in ((2, 3, 4), 4, (2, 3, 4), 4, 4))
    out, left, inverse = call_decomp_rule("pd_op.fused_rms_norm_quant", *map(t, (x, bias, residual, weight, shift)),
                                          epsilon=1e-5, begin_norm_axis=2)
    h = x + bias + residual
    r = 1 / np.sqrt((h * h).mean(-1) + 1e-5)
    np.testing.assert_allclose(left.numpy(), h)
    np.testing.assert_allclose(inverse.numpy(), r)
    np.testing.assert_allclose(out.numpy(), h * r[..., None] * weight + shift)


def test_rms_norm_is_quantised_within_bounds():
    x = np.array([[1.0, -1.0, 1.0, -1.0]])
    weight = np.array([0.5, 0.5, 3.0, 0.25])

    def quantised(how):
        return call_decomp_rule("pd_op.fused_rms_norm_quant", t(x), None, None, t(weight), None, epsilon=0.0,
                                begin_norm_axis=1, quant_scale=1.0, quant_round_type=how, quant_max_bound=5.0,
                                quant_min_bound=-5.0)[0]
    assert quantised(0).dtype == paddle.int8
    assert quantised(0).tolist() == [[2, -2, 5, -1]]            # 2.5 to even, 15 within the bounds, -1.25
    assert quantised(1).tolist() == [[3, -3, 5, -1]]            # away from 0


def test_dropout_in_parts_draws_the_same():
    x, key = t(X), paddle.Tensor(philox.key_of(3))
    for p, mode in ((0.3, UP), (0.3, "downscale_in_infer"), (1.0, UP), (0.0, UP)):
        np.testing.assert_array_equal(call_decomp_rule("pd_op.dropout", x, key, p=p, mode=mode).numpy(),
                                      ROWS["dropout"](x, key, p=p, mode=mode).numpy())


def test_names_of_all_rules():
    assert set(FORWARD) <= set(rule_names()) and all(has_decomp_rule(name) for name in rule_names())
