"""The training step of a Llama: what it holds at most, and what it writes over."""

import random
import tracemalloc

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.executor import Memory
from minipd.executor.plan import ALIGNMENT
from minipd.ir.schema import result_values, tensor_operands
from minipd.models.config import ModelConfig
from minipd.models.llama import LlamaForCausalLM
from minipd.models.placements import batch_placements, parameter_placements
from minipd.nn.clip import ClipGradByGlobalNorm
from minipd.optimizer import AdamW
from minipd.parallel.static_step import StaticStep
from minipd.parallel.step import shard_model
from tests.executor.test_schedule import any_order, run_in

BATCH, SEQ = 4, 32
CONFIG = ModelConfig(vocab_size=256, dim=64, layers=2, heads=4, kv_heads=2, ffn_dim=128, max_seq=SEQ)


@pytest.fixture(scope="module")
def step():
    mesh = parse_mesh("dp=1,tp=1")
    model = LlamaForCausalLM(CONFIG)
    shard_model(model, mesh, parameter_placements)
    optimizer = AdamW(1e-3, parameters=model.parameters(), grad_clip=ClipGradByGlobalNorm(1.0))
    step = StaticStep(model, optimizer, mesh, batch_placements(mesh), (BATCH, SEQ))
    step(*batch(0))                     # the first run copies the state that it will write over
    return step


def batch(seed):
    r = np.random.default_rng(seed)
    return tuple(r.integers(0, CONFIG.vocab_size, (BATCH, SEQ)) for _ in range(2))


def run_measured(step, memory):
    executor = step.train.executor
    plain = executor.run
    executor.run = lambda feed, scope: plain(feed, scope, memory)
    try:
        step(*batch(1))
    finally:
        executor.run = plain


def liveness_bound(program):
    """The most bytes that values of the program occupy at once, views on their base, when each is gone after the last
    operation that reads it.  Reckoned from the program alone; state and inputs are not counted."""
    ops = program.global_block().ops
    base, last = {}, {}
    for at, op in enumerate(ops):
        row = op.row
        if row is None:
            if op.name() in ("builtin.set_parameter", "builtin.shadow_output"):
                last[base.get(op.operand_source(0))] = at
            continue
        tensors = tensor_operands(op)
        for i, v in enumerate(tensors):
            if i not in row.shape_only and v in base:
                last[base[v]] = at
        for r in result_values(op):
            base[r] = base.get(tensors[0]) if row.view else r
            last[base[r]] = max(last.get(base[r], at), at)
    born = {v: at for at, op in enumerate(ops) if op.row is not None for v in result_values(op) if base[v] is v}
    written = {op.operand_source(0) for op in ops if op.name() == "builtin.set_parameter"}
    alive = np.zeros(len(ops) + 1)
    for value, at in born.items():
        if value not in written:        # new state takes the place of the old
            alive[at:last[value] + 1] += np.prod(value.shape) * value.dtype.itemsize
    return alive.max()


def test_the_peak_is_what_must_be_alive(step):
    memory = Memory()
    run_measured(step, memory)
    executor = step.train.executor
    bound = liveness_bound(executor.program)
    assert 0.5 * bound < memory.peak <= 1.1 * bound
    plan = executor.plan()
    assert plan.size <= 1.1 * plan.bound
    assert plan.size + ALIGNMENT <= memory.peak <= plan.size + ALIGNMENT + 64       # the loss is all there is beside it


def test_the_allocator_says_the_same(step):
    """Nothing of any size is allocated behind the back of the hook, but what single kernels need for themselves."""
    step(*batch(1))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        step(*batch(1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before <= 0.1 * step.train.executor.plan().size + 4 * BATCH * SEQ * CONFIG.vocab_size * 4


def test_another_order_gives_the_same_step(step):
    """What must come before what is known of a whole training step: any order that respects it trains alike."""
    executor = step.train.executor
    graph, plain = executor.dependencies(), executor.run
    assert len(graph.instructions) > 100 and graph.reduced()
    state = {name: array.copy() for name, array in step.train.scope.items()}

    def stepped():
        for name, array in state.items():
            step.train.scope[name] = array.copy()
        step(*batch(3))
        return {name: array.copy() for name, array in step.train.scope.items()}
    expected = stepped()
    try:
        for seed in range(2):
            order = any_order(graph, random.Random(seed))
            executor.run = lambda feed, scope, order=order: run_in(executor, order, feed, scope, plain)
            for name, found in stepped().items():
                np.testing.assert_array_equal(found, expected[name], err_msg=name)
    finally:
        executor.run = plain


def test_state_is_written_over(step):
    executor = step.train.executor
    assert set(executor.prepared.inplace) == {n for n in step.state() if not n.endswith("step")}
    before = {name: step.train.scope[name] for name in executor.prepared.inplace}
    values = {name: a.copy() for name, a in before.items()}
    step(*batch(2))
    for name, array in before.items():
        assert step.train.scope[name] is array
        assert not np.array_equal(array, values[name]), name


def test_few_instructions_wait_for_arrays(step):
    """Views of the arena are no instruction: far fewer than there are operations."""
    executor = step.train.executor
    views = sum(op.row is not None and op.row.view for op in executor.program.walk())
    assert views > 50
    assert executor.instructions / executor.runs <= executor.program.num_ops() - views
