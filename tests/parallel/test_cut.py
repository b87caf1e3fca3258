"""Cutting a traced model into stages: what crosses, what is copied, and that the stages together compute the model."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.executor import Executor, Scope
from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.verify import verify
from minipd.models.config import ModelConfig
from minipd.models.placements import stage_of
from minipd.parallel.pipeline.cut import Crossing, cut
from minipd.parallel.program import loss_program
from tests.models.llamas import TIED, batch, filled
from tests.parity.runs import parameters

FIVE = ModelConfig(vocab_size=29, dim=16, layers=5, heads=4, kv_heads=2, ffn_dim=24, max_seq=8, norm_eps=1e-6,
                   tie_embeddings=False)
F64 = np.dtype("float64")


def traced(model, *inputs):
    """The program of `model(*inputs)`, inputs float64 arrays called x_0, x_1, ..., with the output "loss"."""
    program = Program()
    trace = Trace(program)
    named = dict(model.named_parameters())
    with using(ground=trace, middle=None), program.constraints.collect():
        before = {n: p.payload for n, p in named.items()}
        for n, p in named.items():
            p.payload = trace.parameter(n, Meta(tuple(p.payload.shape), p.payload.dtype), True)
        given = [Tensor(trace.input(f"x_{i}", Meta(x.shape, x.dtype))) for i, x in enumerate(inputs)]
        trace.build.output("loss", model(*given).payload)
        for n, p in named.items():
            p.payload = before[n]
    return program, trace, {n: p.payload for n, p in named.items()}


def run(program, feed, state):
    executor = Executor(program)
    return executor.run({n: feed[n] for n in executor.inputs}, Scope(state))


def one_after_the_other(parts, feed, state, stage):
    """The outputs of the last stage; each is given only its own parameters, and what the one before gave it."""
    found = {}
    for i, part in enumerate(parts):
        verify(part.program)
        own = {n: a for n, a in state.items() if stage(n) == i}
        assert part.program.parameters().keys() <= own.keys()
        found = run(part.program, {**feed, **{c.name: found[c.name] for c in part.inputs}}, own)
        assert [c.name for c in part.outputs] == [n for n in found if n != "loss"]
    return found


def llama(config):
    model = filled(config, parameters(config))
    program, trace = loss_program(model, (2, 8), fuse=False, grad=True)
    ids, labels = batch(config, b=2, s=8, uneven=True)
    feed = {"ids": ids, "labels": labels, "n_tokens": np.array(5.0), **trace.captures}
    return program, feed, {n: p.payload for n, p in model.named_parameters()}


@pytest.fixture(autouse=True)
def float64():
    paddle.set_default_dtype("float64")


# ---------------------------------------------------------------------------------------------------- the model itself
@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_a_llama_of_five_layers(stages):
    """One hidden state crosses each boundary: neither masks, nor labels, nor halves of a norm."""
    program, feed, state = llama(FIVE)
    text = program.to_string("exact")

    def stage(name):
        return stage_of(name, FIVE.layers, stages)
    parts = cut(program, stage, stages)
    assert program.to_string("exact") == text
    assert [p.inputs for p in parts] == [()] + [p.outputs for p in parts[:-1]] and parts[-1].outputs == ()
    for i, part in enumerate(parts[:-1]):
        assert part.outputs == (Crossing(f"crossing_{i}", True),)
        assert part.program.get_output_value_by_name(f"crossing_{i}").shape == (2, 8, FIVE.dim)
    found = one_after_the_other(parts, feed, state, stage)
    np.testing.assert_array_equal(found["loss"], run(program, feed, state)["loss"])


def test_every_stage_has_its_own_copy_of_what_depends_on_no_parameter():
    program, feed, _ = llama(FIVE)
    parts = cut(program, lambda name: stage_of(name, 5, 2), 2)
    inputs = [{op.attributes["name"].value for op in p.program.global_block() if op.name() == "pd_op.data"}
              for p in parts]
    assert set(feed) == (inputs[0] | inputs[1]) - {"crossing_0"}
    assert "ids" in inputs[0] and "ids" not in inputs[1]
    assert not {"labels", "n_tokens"} & inputs[0] and {"labels", "n_tokens"} < inputs[1]
    shared = inputs[0] & inputs[1]                          # cos, sin and the causal mask
    assert len(shared) == 3 and all(name.startswith("captured") for name in shared)


def test_tied_embeddings_cross_as_a_value():
    """The last layer reads the matrix of the first stage: it travels, and its gradient comes back."""
    program, feed, state = llama(TIED)

    def stage(name):
        return stage_of(name, TIED.layers, 2)
    parts = cut(program, stage, 2)
    shapes = {c.name: parts[0].program.get_output_value_by_name(c.name).shape for c in parts[0].outputs}
    assert sorted(shapes.values()) == [(2, 8, 16), (29, 16)] and all(c.flows for c in parts[0].outputs)
    found = one_after_the_other(parts, feed, state, stage)
    np.testing.assert_array_equal(found["loss"], run(program, feed, state)["loss"])


# -------------------------------------------------------------------------------------------------------- small cases
class Chain(nn.Layer):
    """Three weights [2, 2], a, b and c, and a function of them and of x."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        for i, name in enumerate("abc"):
            values = np.random.default_rng(i).normal(size=(2, 2))
            setattr(self, name, self.create_parameter([2, 2], default_initializer=nn.initializer.Assign(values)))

    def forward(self, *xs):
        return self.function(self, *xs)


STAGE = {"a": 0, "b": 1, "c": 2}.__getitem__
X = np.array([[1.0, 2.0], [3.0, 5.0]])


def parts_of(function, stage=STAGE, stages=3, xs=(X,)):
    program, _, state = traced(Chain(function), *xs)
    parts = cut(program, stage, stages)
    feed = {f"x_{i}": x for i, x in enumerate(xs)}
    found = one_after_the_other(parts, feed, state, stage)
    np.testing.assert_allclose(found["loss"], run(program, feed, state)["loss"], rtol=1e-15)
    return parts


def names(crossings):
    return [c.name for c in crossings]


def test_a_value_that_several_later_stages_read_is_handed_on():
    def function(m, x):
        h = x @ m.a
        return (h @ m.b + h @ m.c).sum()            # h is read by stages 1 and 2
    first, second, third = parts_of(function)
    assert names(first.outputs) == names(second.inputs) == ["crossing_0"]
    assert names(second.outputs) == names(third.inputs) == ["crossing_0", "crossing_1"]
    assert all(c.flows for c in second.outputs)


def test_a_value_that_only_the_last_stage_reads_passes_through():
    first, second, _ = parts_of(lambda m, x: (x @ m.a @ m.c).sum())
    assert names(first.outputs) == names(second.outputs) == ["crossing_0"]
    assert second.program.parameters() == {}            # nothing of b is used


def test_a_loss_that_needs_only_the_first_stage_still_is_the_last_ones():
    first, second, third = parts_of(lambda m, x: (x @ m.a).sum())
    assert names(third.inputs) == ["crossing_0"]
    assert third.program.get_output_value_by_name("loss").shape == ()


def test_stages_that_do_not_need_each_other():
    """Nothing crosses from a first stage that is not read."""
    first, second, _ = parts_of(lambda m, x: (x @ m.b @ m.c).sum())
    assert first.outputs == second.inputs == () and first.program.num_ops() == 0
    assert names(second.outputs) == ["crossing_0"]


def test_operands_of_a_list_may_be_of_different_stages():
    """No list of operands crosses, only what is in it."""
    parts = parts_of(lambda m, x: paddle.concat([x @ m.a, x, x @ m.b], axis=1).sum() + m.c.sum())
    assert [len(p.inputs) for p in parts] == [0, 1, 1]


def test_one_result_of_several_crosses():
    def function(m, x):
        left, right = paddle.split(x @ m.a, 2, axis=1)
        return (left * left).sum() + (right * m.b).sum() + m.c.sum()
    parts = parts_of(function)
    assert [len(p.inputs) for p in parts] == [0, 2, 1]


def test_no_gradient_flows_where_none_is_wanted():
    """A detached value crosses, and its gradient does not come back; a whole number never has one."""
    def function(m, x):
        h = x @ m.a
        return (h.detach() * (x @ m.b)).sum() + nn.functional.embedding(h.argmax(axis=1), m.c).sum() + h.sum()
    parts = parts_of(function)
    flows = {c.name: c.flows for p in parts for c in p.outputs}
    dtypes = {c.name: p.program.get_output_value_by_name(c.name).dtype for p in parts for c in p.outputs}
    assert sorted(flows.values()) == [False, False, True, True]         # detached h, argmax; h or its sum, stage 1's
    assert [flows[n] for n, d in dtypes.items() if d == np.int64] == [False]


def test_branches_belong_to_the_latest_stage_that_they_read():
    def function(m, x):
        h = x @ m.a
        return paddle.static.nn.cond(x.sum() > 0, lambda: (h @ m.b).sum(), lambda: h.sum()) + m.c.sum()
    parts = parts_of(function)
    kinds = [[op.name() for op in p.program.global_block() if op.regions] for p in parts]
    assert kinds == [[], ["pd_op.if"], []]


# ------------------------------------------------------------------------------------------------------------- errors
def test_a_stage_that_does_not_exist():
    program, _, _ = traced(Chain(lambda m, x: (x @ m.a @ m.c).sum()), X)
    with pytest.raises(ValueError, match="parameter c: expected stage_of to give a stage from 0 to 1, got 2"):
        cut(program, STAGE, 2)


def test_state_that_the_forward_program_writes():
    program, trace, _ = traced(Chain(lambda m, x: (x @ m.a).sum()), X)
    value = program.get_parameter_value_by_name("a")
    trace.build.set_parameter("a", value)
    with pytest.raises(NotImplementedError, match="expected a forward program that writes no state, got a write of a"):
        cut(program, STAGE, 3)
