"""The groups of a Llama's training step, and the bytes that they save."""

import collections

import pytest

from minipd.cinn.compile import prepare
from minipd.cinn.dialect import FUSION
from minipd.cinn.frontend import build_groups, bytes_moved
from minipd.ir.verify import verify
from minipd.models.config import ModelConfig
from minipd.models.llama import LlamaForCausalLM
from minipd.models.placements import batch_placements, parameter_placements
from minipd.nn.clip import ClipGradByGlobalNorm
from minipd.optimizer import AdamW
from minipd.parallel.static_step import StaticStep
from minipd.parallel.step import shard_model
from tests.cinn.programs import names
from tests.dist.ranks import on_mesh

CONFIG = ModelConfig(vocab_size=128, dim=32, layers=2, heads=4, kv_heads=4, ffn_dim=64, max_seq=32, norm_eps=1e-6,
                     tie_embeddings=True)
BATCH = 8, 32


def training_program(mesh):
    model = LlamaForCausalLM(CONFIG)
    shard_model(model, mesh, parameter_placements)
    optimizer = AdamW(1e-3, parameters=model.parameters(), grad_clip=ClipGradByGlobalNorm(1.0))
    return StaticStep(model, optimizer, mesh, batch_placements(mesh), BATCH, 1).train.local


@pytest.fixture(scope="module")
def step():
    """(bytes before, the grouped program, its groups)."""
    program, = on_mesh("dp=1,tp=1", training_program)
    before = bytes_moved(program)
    prepare(program)
    groups = build_groups(program)
    verify(program)
    return before, program, groups


def test_outside_of_groups_nothing_is_computed_that_could_be_inside(step):
    """Left are matrix products and look-ups."""
    _, program, _ = step
    left = collections.Counter(op.row.name for op in program.global_block() if op.row is not None and not op.row.view)
    for name in ("full", "full_int_array", "arange", "matmul", "embedding", "embedding_grad"):
        del left[name]
    assert not left


def test_groups_are_those_that_one_would_write_by_hand(step):
    _, _, groups = step
    held = [set(names(g)) for g in groups]
    n = CONFIG.layers
    assert sum("adamw" in h for h in held) == 9 * n + 2
    assert sum("swiglu" in h for h in held) == n and sum("sigmoid" in h for h in held) == n
    assert sum({"where", "max", "exp"} <= h and "log" not in h for h in held) == n          # softmax under the mask
    assert sum("rsqrt" in h for h in held) == 2 * (2 * n + 1)                               # norms, and their gradients
    rotations = [g for g in groups if "concat" in names(g)]         # q and k, forward and backward, with what is beside
    assert len(rotations) == 4 * n and sum("multiply" in names(g)[-1:] for g in rotations) == n     # (q is scaled)
    assert all(len(g.results()) == 1 for g in rotations)
    loss, = (h for h in held if "log" in h)                         # with its gradient, in one kernel
    assert {"max", "exp", "sum", "log", "where", "subtract"} <= loss


def test_the_gradient_of_a_norm_reads_three_arrays_and_writes_two(step):
    """What the forward pass normalised is normalised again inside, not read."""
    _, _, groups = step
    last = [g for g in groups if "rsqrt" in names(g)][-1]
    big = [v for v in last.operands_source() if len(v.shape) == 3]
    assert len(big) <= 5 and [len(r.shape) for r in last.results()].count(3) == 1


def test_it_moves_half_of_the_bytes(step):
    """All operators counted, matrix products too, which move the same."""
    before, program, groups = step
    assert len(groups) == sum(op.name() == FUSION for op in program.walk())
    assert bytes_moved(program) < 0.54 * before
