"""Stages run as programs: the numbers of one rank, whatever the mesh, the schedule and the model's connections."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from minipd import nn
from minipd.dist.placements import Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.dist.value import DistValue
from minipd.framework.rank import current
from minipd.ir.verify import verify
from minipd.models.config import ModelConfig
from minipd.models.placements import parameter_placements, stage_of
from minipd.nn import functional as F
from minipd.nn.initializer import Normal
from minipd.parallel.pipeline.stage import Batch
from minipd.static.nn import cond
from tests.models.llamas import TIED, batch, filled
from tests.parallel.staged import FLOAT64, alone, assert_same, build, staged
from tests.parity.runs import numpy_run, parameters

#: two query heads share a key head; three layers go to the first of two stages, two to the second
FIVE = ModelConfig(vocab_size=29, dim=16, layers=5, heads=4, kv_heads=2, ffn_dim=24, max_seq=8, norm_eps=1e-6,
                   tie_embeddings=False)
#: six sequences, with a different number of counted labels in each
BATCHES = [batch(FIVE, b=6, s=8, seed=20 + i, uneven=True) for i in range(3)]


@pytest.fixture(scope="module")
def expected():
    return numpy_run(FIVE, BATCHES)


@functools.cache
def llama(mesh, n_micro=3, config=FIVE, **options):
    stages = int(mesh.partition("pp=")[2].partition(",")[0])
    return staged(lambda: filled(config, parameters(config)), mesh, lambda name: stage_of(name, config.layers, stages),
                  BATCHES, n_micro, placements_of=parameter_placements, **options)


# ---------------------------------------------------------------------------------------------------------- parity
@pytest.mark.parametrize(("mesh", "n_micro", "schedule"), [
    ("pp=1", 3, "1F1B"), ("pp=2", 3, "1F1B"), ("pp=2", 3, "FThenB"), ("pp=2", 1, "1F1B"), ("pp=4", 2, "1F1B"),
    ("pp=5", 6, "1F1B"), ("pp=2,tp=2", 3, "1F1B"), ("tp=2,pp=3", 2, "FThenB"), ("dp=2,pp=2", 3, "1F1B"),
])
def test_every_mesh_equals_numpy(expected, mesh, n_micro, schedule):
    runs = llama(mesh) if (n_micro, schedule) == (3, "1F1B") else llama(mesh, n_micro, schedule=schedule)
    assert_same(runs, expected)
    assert all(run.steps == len(BATCHES) for run in runs)


def test_compiled_stages_equal_numpy(expected):
    assert_same(llama("pp=2,tp=2", cinn=True), expected)


def test_four_sequences_over_three_ranks_of_dp(expected):
    """A micro-batch of two sequences: the third rank has none."""
    assert_same(llama("dp=3,pp=2", 3), expected)


def test_communication_is_that_of_a_step_without_stages():
    """All-reduces over tp by Megatron's arithmetic, per micro-batch: one for the embedding, four per layer, four for
    the loss and the input of the output layer.  Then one for the clipping norm over tp, one over the stages.
    Splitting forward from backward adds none, and one hidden state crosses, and its gradient."""
    first, _, last, _ = llama("pp=2,tp=2")
    assert first.counts == {"all_reduce": 3 * (1 + 4 * 3) + 2, "send": 3, "recv": 3}
    assert last.counts == {"all_reduce": 3 * (4 * 2 + 4) + 2, "send": 3, "recv": 3}


def test_tied_embeddings():
    """The matrix lives on the first stage, and travels to the last; its gradient is whole on the first."""
    runs = llama("pp=2,tp=2", 3, TIED)
    assert_same(runs, numpy_run(TIED, BATCHES))
    assert "llama.embed_tokens.weight" not in runs[-1].parameters


def test_evaluation_is_the_loss_without_training(expected):
    """After the last step, on the first batch: what a run that goes on from there computes as its next loss."""
    again = numpy_run(FIVE, [*BATCHES, BATCHES[0]])
    for run in llama("pp=2,tp=2"):
        np.testing.assert_allclose(run.evaluated, again.losses[-1], rtol=1e-10)


# ------------------------------------------------------------------------------------------------- other connections
class Chain(nn.Layer):
    """Four layers, one or two per stage, with a function `(layers, hidden) -> hidden` between table and logits."""

    def __init__(self, connect):
        super().__init__()
        current().rng.seed(5)
        self.connect = connect
        self.table = nn.Embedding(11, 6, weight_attr=Normal(0.0, 1.0))
        self.layers = nn.LayerList([nn.Linear(6, 6, weight_attr=Normal(0.0, 0.5)) for _ in range(4)])
        self.drop = nn.LayerList([nn.Dropout(0.4) for _ in range(4)])
        self.head = nn.Linear(6, 11, weight_attr=Normal(0.0, 0.5))

    def loss(self, ids, labels, n_tokens):
        logits = self.head(self.connect(self, self.table(ids)))
        return F.cross_entropy(logits, labels, ignore_index=-100, reduction="sum") / n_tokens


def three(name):
    """Stages of `Chain`: table and layer 0; layers 1 and 2; layer 3 and head."""
    return 0 if name.startswith(("table", "layers.0", "drop.0")) else 2 if name.startswith(("layers.3", "head")) else 1


def batches(n=2):
    r = np.random.default_rng(9)
    made = [(r.integers(0, 11, (4, 3)), r.integers(0, 11, (4, 3))) for _ in range(n)]
    for _, labels in made:
        labels[0, :2] = labels[3] = -100
    return made


def skips(m, h):
    """What the first layer makes is read by every stage after it, the table by the last."""
    a = m.layers[0](h)
    b = F.silu(m.layers[1](a)) + m.layers[2](a * a)
    return m.layers[3](b) * a + h


def passes_through(m, h):
    """The middle stage computes nothing."""
    return m.layers[3](m.layers[0](h))


def draws(m, h):
    """Dropout on every stage, twice on one layer, and on what crosses."""
    for layer, drop in zip(m.layers, m.drop, strict=True):
        h = drop(F.silu(layer(drop(h))))
    return h


def stops(m, h):
    """A value crosses whose gradient stops."""
    a = m.layers[0](h)
    return m.layers[3](m.layers[1](a.detach()) + m.layers[2](h))


def split_by_rows(name, mesh):
    """Of what h @ layers.0.weight adds up, each rank of tp has a part."""
    dim = {"table.weight": 1, "layers.0.weight": 0}.get(name)
    return [Shard(dim) if axis == "tp" and dim is not None else Replicate() for axis in mesh.dim_names]


def test_what_is_partial_becomes_whole_before_it_crosses():
    def make():
        return Chain(lambda m, h: m.layers[3](m.layers[1](h @ m.layers[0].weight)))

    def crossing(mesh):
        stage = build(make, mesh, three, (4, 3), 2, split_by_rows).stage
        return [b.placements for b in (*stage.inputs, *stage.outputs)]
    assert simulate("pp=3,tp=2", crossing, FLOAT64) == [[(Replicate(),)]] * 2 + [[(Replicate(),)] * 2] * 2 + [
        [(Replicate(),)]] * 2
    assert_same(staged(make, "pp=3,tp=2", three, batches(), 2, placements_of=split_by_rows), alone(make, batches(), 2))


def branches(m, h):
    """The middle stage has a branch, whose gradient computes the stage again."""
    a = m.layers[0](h)
    return m.layers[3](cond(a.sum() > 0, lambda: F.silu(m.layers[1](a)), lambda: m.layers[1](a) * m.layers[2](a)))


@pytest.mark.parametrize("connect", [skips, passes_through, draws, stops, branches], ids=lambda f: f.__name__)
@pytest.mark.parametrize("mesh", ["pp=3", "pp=3,tp=2", "dp=2,pp=3"])
def test_other_connections_equal_one_rank(connect, mesh):
    def split(name, mesh):
        """Layers 0 and 2 by columns, 3 by rows: sharded values cross."""
        dim = {"layers.0.weight": 1, "layers.2.weight": 1, "layers.3.weight": 0}.get(name)
        return [Shard(dim) if axis == "tp" and dim is not None else Replicate() for axis in mesh.dim_names]
    runs = staged(lambda: Chain(connect), mesh, three, batches(), 2, placements_of=split)
    assert_same(runs, alone(lambda: Chain(connect), batches(), 2))


def test_random_draws_are_those_of_one_rank():
    """The first stage's second draw of a layer, with micro-batches of different masks; see `draws`."""
    runs = staged(lambda: Chain(draws), "pp=2", lambda name: int(three(name) > 0), batches(), 4)
    assert_same(runs, alone(lambda: Chain(draws), batches(), 4))
    assert runs[0].losses != alone(lambda: Chain(draws), batches(), 2).losses


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_a_stage_whose_parameters_are_frozen(frozen):
    """It has no gradients, but takes part in the norm that all clip by, and counts the step."""
    def make():
        model = Chain(skips)
        for name, p in model.named_parameters():
            p.stop_gradient = three(name) == frozen
        return model
    runs = staged(make, "pp=3", three, batches(), 2)
    assert_same(runs, alone(make, batches(), 2))
    assert [run.steps for run in runs] == [2, 2, 2] and runs[frozen].gradients == {}


def test_a_nan_on_one_stage_skips_the_step_on_all():
    """sqrt(0 * bias) is 0, and its gradient infinity times 0: only the middle stage sees a NaN."""
    def make():
        return Chain(lambda m, h: m.layers[3](m.layers[1](m.layers[0](h))) + (m.layers[2].bias * 0.0).sqrt())
    named = simulate("dp=1", lambda mesh: dict(make().named_parameters()), FLOAT64)[0]
    before = {n: p.numpy() for n, p in named.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        runs = staged(make, "pp=3", three, batches(), 2)
    finite = [all(np.isfinite(g).all() for g in run.gradients.values()) for run in runs]
    assert finite == [True, False, True] and np.isfinite(runs[0].losses).all()
    for run in runs:
        assert run.steps == 0 and all(np.array_equal(p, before[n]) for n, p in run.parameters.items())


# --------------------------------------------------------------------------------------------------- programs, errors
def on_one_stage(check, mesh="pp=2", rank=1, **options):
    """`check(stage)` on one rank, with the stages of a Chain."""
    def run(whole):
        step = build(lambda: Chain(skips), whole, lambda name: int(three(name) > 0), (4, 3), 2, **options)
        return check(step.stage) if current().rank == rank else None
    return simulate(mesh, run, FLOAT64)[rank]


def test_the_programs_of_a_stage_verify_and_can_be_read():
    def check(stage):
        for program in (stage.training, stage.update, stage.evaluation):
            verify(program.whole)
            verify(program.local)
        for runnable in (stage.training.forward, stage.training.backward):
            verify(runnable.local)
        return stage.programs()
    texts = on_one_stage(check)
    assert sorted(texts) == ["step.rank1.backward.pir", "step.rank1.forward.pir", "step.rank1.update.pir",
                             "step.stage1.global.pir", "step.stage1.update.global.pir"]
    assert "dist_op.stage_sum" in texts["step.rank1.update.pir"]
    assert "adamw" in texts["step.rank1.update.pir"] and "adamw" not in texts["step.rank1.backward.pir"]
    compiled = on_one_stage(lambda stage: stage.programs(), cinn=True)
    assert {"step.rank1.forward.cinn.pir", "step.rank1.forward.kernels.py"} <= compiled.keys()


def received(stage):
    return tuple(DistValue(np.ones(b.shape, b.dtype), b.shape, b.dtype, stage.mesh, b.placements) for b in stage.inputs)


def test_what_a_stage_refuses():
    ids = np.zeros((2, 3), np.int64)
    good = Batch(ids, ids, np.array(6.0))

    def check(stage):
        with pytest.raises(RuntimeError, match="backward of micro-batch 1 on stage 1: expected one that has gone "
                                               "forward and not come back, got none in flight; check the schedule"):
            stage.backward(1, ())
        with pytest.raises(ValueError, match=r"stage 1: expected a micro-batch of 2 sequences of 3 tokens, for which "
                                             r"the programs were made, got \[4, 3\]"):
            stage.forward(0, Batch(np.zeros((4, 3), np.int64), ids, good.n_tokens), received(stage))
        values = [DistValue(v.local, v.shape, v.dtype, v.mesh, (Shard(0),)) for v in received(stage)]
        with pytest.raises(ValueError, match=r"input 'crossing_0': expected a value on pp=1 of the ranks \[1\], placed "
                                             r"\[Replicate\(\)\], got f64\[.*; reshard it first"):
            stage.forward(0, good, tuple(values))
        loss, = stage.forward(0, good, received(stage))
        stage.backward(0, ())
        with pytest.raises(RuntimeError, match="expected one that has gone forward and not come back"):
            stage.backward(0, ())
        return float(loss.local)
    assert np.isfinite(on_one_stage(check))


def test_an_update_without_gradients():
    with pytest.raises(RuntimeError, match="update of stage 1: expected a gradient of layers.1.weight, got none; run "
                                           "the backward job of a micro-batch first"):
        on_one_stage(lambda stage: stage.step())
