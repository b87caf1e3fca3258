"""What a run holds, by the allocation hook, against what any run must hold: within 10 %."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
from minipd import nn, static
from minipd.executor import Executor, Memory
from minipd.executor.liveness import liveness
from minipd.executor.plan import ALIGNMENT
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.ir import Program
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.models.config import ModelConfig
from minipd.models.llama import LlamaForCausalLM
from minipd.nn import functional as F
from minipd.static.nn import cond

F32 = np.dtype("float32")


# ------------------------------------------------------------------------------------------------ training steps
def mlp():
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return net, ([32, 64], "float32"), lambda x, y: F.cross_entropy(net(x), y)


def cnn():
    net = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2),
                        nn.Conv2D(8, 16, 3, padding=1), nn.BatchNorm2D(16), nn.ReLU(), nn.Flatten(),
                        nn.Linear(16 * 8 * 8, 10))
    return net, ([4, 3, 16, 16], "float32"), lambda x, y: F.cross_entropy(net(x), y)


def bert():
    layer, head = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.1), nn.Linear(64, 10)
    net = nn.LayerList([layer, head])
    return net, ([4, 32, 64], "float32"), lambda x, y: F.cross_entropy(head(layer(x)[:, 0]), y)


def llama():
    net = LlamaForCausalLM(ModelConfig(vocab_size=64, dim=64, layers=1, heads=4, kv_heads=2, ffn_dim=128, max_seq=32))
    return net, ([4, 32], "int64"), lambda x, y: F.cross_entropy(net(x)[:, 0], y)


@pytest.fixture
def static_mode():
    paddle.enable_static()
    yield
    paddle.disable_static()


def measured(run):
    """(the executor that `run` runs, the peak of its allocations)"""
    found, original = [], Executor.run

    def watching(self, feed=None, scope=None, memory=None, sizes=None):
        found.append((self, memory := Memory()))
        return original(self, feed, scope, memory, sizes)
    Executor.run = watching
    try:
        run()
    finally:
        Executor.run = original
    (executor, memory), = found
    return executor, memory.peak


@pytest.mark.parametrize("make", [mlp, cnn, bert, llama])
def test_training_steps_hold_what_they_must(make, static_mode):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        net, (shape, dtype), loss_of = make()
        loss = loss_of(static.data("x", shape, dtype), static.data("y", [shape[0]], "int64"))
        paddle.optimizer.AdamW(1e-3, parameters=net.parameters()).minimize(loss)
    runner = static.Executor()
    runner.run(startup)
    r = np.random.default_rng(0)
    x = r.integers(0, 10, shape) if dtype == "int64" else r.standard_normal(shape).astype(dtype)
    feed = {"x": x, "y": r.integers(0, 10, shape[0])}
    runner.run(main, feed=feed, fetch_list=[loss])          # copies the state that it will write over
    executor, peak = measured(lambda: runner.run(main, feed=feed, fetch_list=[loss]))
    bound = liveness(executor.program).peak
    assert 0.9 * bound <= peak <= 1.1 * bound, f"{peak / bound:.3f}"


# ----------------------------------------------------------------------------------------------- random programs
@st.composite
def large_programs(draw):
    """Programs of kernels and views on 16 KiB, of which some results leave."""
    program = Program()
    build = Builder(program.global_block())
    seen = [build.data("x", (64, 64), F32)]
    for _ in range(draw(st.integers(3, 25))):
        x, y = (draw(st.sampled_from(seen[-6:])) for _ in "xy")
        name = draw(st.sampled_from(["exp", "tanh", "add", "multiply", "matmul", "transpose", "concat", "sum"]))
        match name:
            case "exp" | "tanh":
                new, = build.call(ROWS[name], (x,), {})
            case "transpose":
                new, = build.call(ROWS[name], (x,), {"perm": (1, 0)})
            case "concat":
                whole, = build.call(ROWS[name], (x, y), {"axis": 0})
                new, = build.call(ROWS["slice"], (whole,), {"axes": (0,), "starts": (32,), "ends": (96,)})
            case "sum":
                row, = build.call(ROWS[name], (x,), {"axis": (0,), "keepdim": True})
                new, = build.call(ROWS["add"], (x, row), {})
            case _:
                new, = build.call(ROWS[name], (x, y), {})
        seen.append(new)
    for i, value in enumerate({*draw(st.lists(st.sampled_from(seen), max_size=2)), seen[-1]}):
        build.output(f"y{i}", value)
    return program


@given(large_programs())
@settings(max_examples=40)
@np.errstate(all="ignore")
def test_random_programs_hold_what_they_must(program):
    """What leaves has memory beside the arena, and the arena does not shrink when it comes."""
    executor, memory = Executor(program), Memory()
    executor.run({"x": np.full((64, 64), 0.01, F32)}, None, memory)
    found = liveness(program)
    leaving = sum(nbytes for _, last, nbytes in found.spans.values() if last == len(found.alive) - 1)
    copies = sum(layout.nbytes(v) for layout in [bound_layout(executor)] for v in layout.copies)
    assert memory.peak <= 1.1 * found.peak + leaving + copies + ALIGNMENT


def bound_layout(executor):
    bound, = executor._arena.bindings.values()
    return bound.layout


# --------------------------------------------------------------------------------------------------- the bound
def spans(f, *metas):
    program = trace(f, *metas).program
    ops = program.global_block().ops
    return {ops[first].name().removeprefix("pd_op."): (first, last, nbytes)
            for first, last, nbytes in liveness(program).spans.values()}


def test_lifetimes():
    def f(x):
        h = x.exp()                     # 1
        a = h.reshape([-1])             # 2 (its shape) 3: a view of h
        b = x.tanh()                    # 4
        return a.sum() + b.sum()        # 6, 8, 9; 10 gives it out
    assert spans(f, Meta((4, 4), F32)) == {
        "exp": (1, 6, 64), "tanh": (4, 8, 64), "sum": (8, 9, 4), "add": (9, 10, 4)}


def test_a_program_with_branches_has_no_one_bound():
    program = trace(lambda x: cond(x.sum() > 0.0, lambda: x, lambda: x * 2.0), Meta((4,), F32)).program
    with pytest.raises(NotImplementedError, match=r"expected a program without regions, got pd_op\.if"):
        liveness(program)
