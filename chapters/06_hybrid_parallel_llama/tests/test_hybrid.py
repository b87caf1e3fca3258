"""What the lesson claims, held to account: on simulated ranks, in float64.  (The full product is tests/parity.)"""

import functools
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import minipd.distributed as dist
from minipd.dist.placements import Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.models.build import build
from minipd.models.config import ModelConfig, RunConfig
from minipd.models.config.values import DataConfig, DistConfig, TrainConfig
from minipd.nn import functional as F
from minipd.nn.clip import global_norm
from minipd.ops.creation import to_tensor
from minipd.parallel.pipeline.check import bubble, check, in_flight
from minipd.parallel.pipeline.schedule import schedule

F64 = np.dtype("float64")
LAYERS, BATCH, SEQ, MICRO = 3, 6, 8, 3


def config(mesh, **how):
    """Three layers, 29 tokens of vocabulary: nothing divides."""
    model = ModelConfig(vocab_size=29, dim=16, layers=LAYERS, heads=4, kv_heads=2, ffn_dim=24, max_seq=SEQ,
                        tie_embeddings=False)
    train = TrainConfig(batch=BATCH, micro_batches=MICRO, warmup=0.0, lr=1e-2, epsilon=1e-5, clip_norm=0.5,
                        dtype="float64")
    return RunConfig(model=model, data=DataConfig(seq_len=SEQ), train=train, dist=DistConfig(mesh=mesh, **how))


def data():
    random = np.random.default_rng(6)
    ids, labels = random.integers(0, 29, (BATCH, SEQ)), random.integers(0, 29, (BATCH, SEQ))
    for i in range(BATCH):
        labels[i, SEQ - i:] = -100              # 8, 7, 6, 5, 4, 3 of them count
    return ids, labels


@functools.cache
def trained(mesh, **how):
    """By rank: the losses of two steps in parts, the parameters, the bits held of replicated ones, what was counted."""
    def rank(grid):
        current().rng.seed(0)
        step = build(config(mesh, **how)).step
        losses = []
        for _ in range(2):
            before = current().comm.counts.copy()
            losses.append(step.share(step(*data())))
        counts = dict(current().comm.counts - before)
        held = {n: p.payload.held() for n, p in step.parameters().items()}
        whole = {n: v.local.tobytes() for n, v in held.items() if not any(p.is_shard() for p in v.placements)}
        return losses, {n: p.numpy() for n, p in step.parameters().items()}, whole, counts
    return simulate(mesh, rank, F64)


@pytest.fixture(scope="module")
def alone():
    (losses, parameters, _, _), = trained("dp=1", eager=True)
    return losses, parameters


@pytest.mark.parametrize("how", [{"eager": True}, {"eager": False, "cinn": False}], ids=["eager", "static"])
@pytest.mark.parametrize("mesh", ["dp=2", "tp=2", "pp=2", "dp=2,tp=2", "pp=2,tp=2"])
def test_every_mesh_trains_the_same_model(alone, mesh, how):
    ranks = trained(mesh, **how)
    np.testing.assert_allclose(np.sum([r[0] for r in ranks], axis=0), alone[0], rtol=1e-10)
    found = {}
    for _, parameters, _, _ in ranks:
        for name, value in parameters.items():
            np.testing.assert_array_equal(found.setdefault(name, value), value, err_msg=name)
    assert found.keys() == alone[1].keys()
    for name, expected in alone[1].items():
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=1e-10 * np.abs(expected).max(), err_msg=name)


def test_replicas_hold_the_same_bits():
    bits = {}
    for _, _, whole, _ in trained("dp=2,tp=2", eager=True):
        for name, held in whole.items():
            assert bits.setdefault(name, held) == held, name
    assert len(bits) == 2 * LAYERS + 1          # the weights of the norms


@pytest.mark.parametrize("mesh, dp, tp", [("dp=2", 2, 1), ("tp=2", 1, 2), ("dp=2,tp=2", 2, 2)])
def test_the_messages_that_the_lesson_counts(mesh, dp, tp):
    of_tp = (1 + 4 * LAYERS + 3 + 1) * MICRO + 1        # embedding, layers, loss, output layer; the norm
    of_dp = 9 * LAYERS + 3                              # one for each parameter
    assert trained(mesh, eager=True)[0][3] == {"all_reduce": of_dp * (dp > 1) + of_tp * (tp > 1)}


def test_the_loss_over_a_split_vocabulary():
    def losses(mesh):
        z = dist.shard_tensor(np.array([[0.0, 0.0, 0.0, 0.0], [1e4, 0.0, 0.0, 0.0]]), mesh, [Shard(1)])
        return F.cross_entropy(z, to_tensor([0, 3]), reduction="none").numpy()
    for got in simulate("tp=2", losses, F64):
        np.testing.assert_allclose(got, [np.log(4.0), 1e4])


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("n_micro", [1, 2, 3, 4, 5, 7])
def test_schedules_are_right_for_any_number_of_micro_batches(stages, n_micro):
    for name in ("FThenB", "1F1B"):
        jobs = schedule(name, stages, n_micro)
        check(jobs, n_micro)
        assert bubble(jobs) == pytest.approx((stages - 1) / (n_micro + stages - 1))
    assert [in_flight(j) for j in jobs] == [min(stages - stage, n_micro) for stage in range(stages)]


def test_a_gradient_is_summed_once_however_many_micro_batches_there_are():
    """Without accumulation it would be one message per parameter and micro-batch."""
    counts = trained("dp=2", eager=True)[0][3]
    assert counts["all_reduce"] < MICRO * (9 * LAYERS + 3)


def test_a_norm_counts_what_is_replicated_once():
    def norm(mesh):
        grads = [dist.shard_tensor(np.array([3.0]), mesh, [Replicate()]),
                 dist.shard_tensor(np.array([4.0, 0.0]), mesh, [Shard(0)])]
        return global_norm(grads).item()
    assert simulate("tp=2", norm, F64) == [5.0, 5.0]


def test_the_pictures_are_those_of_the_drawers():
    """But for the style sheet, which may change without the picture."""
    img = Path(__file__).parents[1] / "img"
    for name, picture in runpy.run_path(str(img / "draw.py"))["pictures"]().items():
        drawn, here = (re.sub("<style>.*?</style>", "", text, flags=re.DOTALL)
                       for text in (picture.svg, (img / name).read_text()))
        assert drawn == here, f"{name} is older than what draws it: run {img / 'draw.py'}"
