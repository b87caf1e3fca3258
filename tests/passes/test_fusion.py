"""The rules for RMSNorm, SwiGLU and rotary embedding: on their own, and on the training program of a Llama."""

import collections

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor, Scope
from minipd.framework import dtype as dtypes
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from minipd.framework.tensor import Parameter
from minipd.ir.backward import append_backward
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.models.llama import LlamaForCausalLM, rotate
from minipd.optimizer import AdamW
from minipd.parallel.program import loss_program, train_program
from minipd.parallel.step import training_state
from minipd.passes import create_pass, fuse_forward
from tests.models.llamas import SMALL, TIED
from tests.passes.meaning import names, same

F32, F64 = np.dtype("float32"), np.dtype("float64")
NORM, ROPE = "add_norm_fuse_pass", "fused_rotary_position_embedding_pass"
rms_norm, silu = paddle.nn.functional.rms_norm, paddle.nn.functional.silu


def fused(name, f, *shapes, dtype=F64, rtol=1e-12):
    before = trace(f, *(Meta(s, dtype) for s in shapes)).program
    changed, n = same(before, create_pass(name).run, rtol)
    return names(changed), n


# ------------------------------------------------------------------------------------------------ RMSNorm
def test_rms_norm():
    def norm(x, w):
        return rms_norm(x, tuple(w.shape), w, 1e-6)
    assert fused(NORM, norm, (2, 3, 8), (8,)) == (["rms_norm"], 1)
    assert fused(NORM, norm, (2, 3, 8), (3, 8)) == (["rms_norm"], 1)
    assert fused(NORM, lambda x, w: w * (x * (x.square().mean(-1, keepdim=True) + 0.5).rsqrt()), (2, 8), (8,)
                 ) == (["rms_norm"], 1)


@pytest.mark.parametrize("f, shapes", [
    (lambda x, w: x * (x.square().mean(0, keepdim=True) + 1e-6).rsqrt() * w, [(8, 8), (8,)]),       # another axis
    (lambda x, w: x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() * w, [(8, 8), (8,)]),       # a sum
    (lambda x, w: x * (x.square().square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w, [(8, 8), (8,)]),
    (lambda x, w: x * (w.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w, [(8,), (8,)]),        # of another tensor
    (lambda x, w: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w, [(8, 8), (1,)]),      # a broadcast scale
    (lambda x, w: x * (x.square().mean(-1, keepdim=True) + w).rsqrt() * w, [(8, 8), (8,)]),         # no constant
])
def test_what_is_no_rms_norm(f, shapes):
    assert fused(NORM, f, *shapes)[1] == 0


@pytest.mark.parametrize("dtype", sorted(dtypes.LOW_PRECISION, key=str), ids=str)
def test_rms_norm_of_low_precision_rounds_once(dtype):
    eps = float(dtypes.finfo(dtype).eps)
    found = fused(NORM, lambda x, w: rms_norm(x, 8, w), (4, 8), (8,), dtype=dtype, rtol=2 * eps)
    assert found == (["rms_norm"], 1)


def test_rms_norm_of_symbolic_sizes():
    program = trace(lambda x, w: rms_norm(x, w.payload.shape, w), Meta((symbol("B"), symbol("D")), F32),
                    Meta((symbol("D"),), F32)).program
    assert create_pass(NORM).run(program) == 1
    assert names(verify(program)) == ["rms_norm"]


# ------------------------------------------------------------------------------------------------ rope
def test_rotary_embedding_is_the_same_to_the_bit():
    assert fused(ROPE, rotate, (2, 3, 5, 8), (5, 4), (5, 4), dtype=F32, rtol=0.0) == (
        ["fused_rotary_position_embedding"], 1)


def test_what_is_no_rotary_embedding():
    def swapped(x, cos, sin):
        a, b = x[..., :4], x[..., 4:]
        return paddle.concat([a * cos - b * sin, a * cos + b * sin], -1)

    def thirds(x, cos, sin):
        a, b = x[..., :4], x[..., 4:8]
        return paddle.concat([a * cos - b * sin, b * cos + a * sin], -1)

    assert fused(ROPE, swapped, (5, 8), (5, 4), (5, 4))[1] == 0
    assert fused(ROPE, thirds, (5, 12), (5, 4), (5, 4))[1] == 0
    assert fused(ROPE, lambda x, cos, sin: rotate(x, cos, sin), (8,), (5, 4), (5, 4))[1] == 0    # x is broadcast


# ------------------------------------------------------------------------------------------------ gradients
@pytest.mark.parametrize("f, shapes, n", [
    (lambda x, w: rms_norm(x, 8, w), [(3, 8), (8,)], 1),
    (lambda x, y: x * paddle.nn.functional.sigmoid(x) * y, [(3, 8), (3, 8)], 2),
    (rotate, [(3, 8), (3, 4), (3, 4)], 1),
])
def test_gradients_of_the_fused_program_are_those_of_the_composed_one(f, shapes, n):
    results = []
    for fuse in (False, True):
        specs = [paddle.static.InputSpec(s, "float64", stop_gradient=False) for s in shapes]
        found = trace(lambda *xs: (f(*xs) ** 2.0).sum(), *specs)
        inputs, loss = found.input_values, found.output_values[0]
        if fuse:
            count = found.program.num_ops()
            loss, = fuse_forward(found.program, [loss])
            assert found.program.num_ops() < count
        from minipd.ir.builder import Builder
        for i, g in enumerate(append_backward(found.program, [loss], inputs)):
            Builder(found.program.global_block()).output(f"g{i}", g)
        feed = {name: np.random.default_rng(i).standard_normal(s)
                for i, (name, s) in enumerate(zip(found.inputs, shapes, strict=True))}
        results.append(Executor(verify(found.program)).run(feed))
    assert results[0].keys() == results[1].keys()
    for name in results[0]:
        np.testing.assert_allclose(results[1][name], results[0][name], rtol=1e-12, atol=1e-12)


def test_values_that_python_holds_are_told_what_they_are_now():
    found = trace(lambda x: silu(x) * x, Meta((2,), F32))
    before = found.output_values[0]
    after, = fuse_forward(found.program, [before])
    assert after is not before and after is found.output_values[0]
    assert names(verify(found.program)) == ["swiglu"]


# ------------------------------------------------------------------------------------------------ the Llama
def counts(program):
    found = collections.Counter(op.name().removeprefix("pd_op.") for op in program.walk())
    return {name: found[name] for name in ("rms_norm", "swiglu", "fused_rotary_position_embedding", "square", "concat")}


@pytest.mark.parametrize("config", [SMALL, TIED], ids=["grouped", "tied"])
def test_every_layer_of_a_llama_is_fused(config):
    program, _ = loss_program(LlamaForCausalLM(config), (2, 8))
    layers = config.layers
    assert counts(verify(program)) == {"rms_norm": 2 * layers + 1, "fused_rotary_position_embedding": 2 * layers,
                                       "swiglu": layers, "square": 0, "concat": 0}


@pytest.mark.parametrize("n_micro", [1, 2])
def test_the_training_step_is_fused_before_its_gradient(n_micro):
    """The state after a step is the composed program's; micro-batches are fused one by one."""
    previous = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    try:
        model = LlamaForCausalLM(SMALL)
        optimizer = AdamW(1e-3, parameters=model.parameters())
        state = training_state(dict(model.named_parameters()), optimizer)
        runs = []
        for fuse in (False, True):
            program, written = train_program(model, optimizer, state, (2, 8), n_micro, fuse=fuse)
            verify(program)
            if fuse:        # each norm's gradient squares once more; each turn's gradient is a turn
                assert counts(program) == {
                    "rms_norm": 5 * n_micro, "fused_rotary_position_embedding": 8 * n_micro, "swiglu": 2 * n_micro,
                    "square": 5 * n_micro, "concat": 0}
            rng = np.random.default_rng(0)
            feed = {"n_tokens": np.array(16.0), "learning_rate": np.array(1e-3), **written.captures}
            for m in range(n_micro):
                feed[f"ids_{m}"], feed[f"labels_{m}"] = rng.integers(0, SMALL.vocab_size, (2, 2 // n_micro, 8))
            scope = Scope({n: np.array(t.payload) for n, t in state.items()})
            runs.append((Executor(program).run(feed, scope), scope))
    finally:
        paddle.set_default_dtype(previous)
    (loss, composed), (fused_loss, fused_state) = runs
    np.testing.assert_allclose(fused_loss["loss"], loss["loss"], rtol=1e-12)
    assert any(isinstance(t, Parameter) for t in state.values())
    for name, array in composed.items():
        np.testing.assert_allclose(fused_state[name], array, rtol=1e-9, atol=1e-12, err_msg=name)
