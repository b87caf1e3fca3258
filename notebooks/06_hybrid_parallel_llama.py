# %% [markdown]
# # Chapter 6: A hybrid-parallel Llama
#
# The lesson is `chapters/06_hybrid_parallel_llama/README.md`. Here you look at where a Llama's parameters live, follow
# a loss through a split vocabulary, draw pipelines, and prove that every mesh trains the same model. All ranks live in
# this process.

# %%
import numpy as np

import minipd as paddle
import minipd.distributed as dist
from minipd import viz
from minipd.dist.dialect import placement_text
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.models.build import build
from minipd.models.config import ModelConfig, RunConfig
from minipd.models.config.values import DataConfig, DistConfig, TrainConfig
from minipd.models.llama import LlamaForCausalLM
from minipd.models.placements import batch_placements, parameter_placements, stage_of
from minipd.parallel.pipeline.check import bubble, check, in_flight
from minipd.parallel.pipeline.schedule import Job, schedule

F = paddle.nn.functional
R, S = Replicate(), Shard
SMALL = ModelConfig(vocab_size=32, dim=16, layers=5, heads=4, kv_heads=2, ffn_dim=24, max_seq=8, tie_embeddings=False)


def short(placements):
    return ", ".join(map(placement_text, placements))


# %% [markdown]
# ## Where the parameters live
#
# The model knows of no mesh. A second file says where each parameter goes; a third axis, pp, says on which stage.

# %%
mesh = parse_mesh("dp=2,tp=2")
for name, p in LlamaForCausalLM(SMALL).named_parameters():
    if "layers.0" in name or "layers" not in name:
        placed = short(parameter_placements(name, mesh))
        print(f"{name:<47} {str(list(p.shape)):<9} {placed:<8} stage {stage_of(name, 5, 2)}")

# %% [markdown]
# Columns of the first matrix, rows of the second: in between, nobody talks.

# %%
viz.sharding((16, 24), mesh, parameter_placements("mlp.up_proj.weight", mesh), name="up_proj")

# %%
viz.sharding((24, 16), mesh, parameter_placements("mlp.down_proj.weight", mesh), name="down_proj")

# %% [markdown]
# ## A loss over a split vocabulary, by hand and by the library
#
# Logits `[0, 1 | 2, 3]` on two ranks, label 2. First by hand, in numpy, rank by rank; each `reduced` line is what the
# ranks have after talking.

# %%
shards, first, label = [np.array([0.0, 1.0]), np.array([2.0, 3.0])], [0, 2], 2
largest = max(z.max() for z in shards)                                          # reduced: max
sums = [np.exp(z - largest).sum() for z in shards]
picked = [float(z[label - at] - largest) if at <= label < at + 2 else 0.0
          for z, at in zip(shards, first, strict=True)]
print("maximum", largest, " sums", np.round(sums, 4), " label's logit", picked)
print("loss", round(float(np.log(sum(sums)) - sum(picked)), 5))                # reduced: sum, sum


# %%
def cross_entropy(mesh):
    logits = dist.shard_tensor([[0.0, 1.0, 2.0, 3.0]], mesh, [S(1)], stop_gradient=False)
    loss = F.cross_entropy(logits, paddle.to_tensor([2]))
    loss.backward()
    return round(loss.item(), 5), [f"{g:.4f}" for g in logits.grad._local_value().numpy()[0]]


log = []
for rank, (loss, gradient) in enumerate(simulate("tp=2", cross_entropy, log=log)):
    print(f"rank {rank}: loss {loss}, gradient of its logits {gradient}")
print(*log, sep="\n")

# %% [markdown]
# What would be the loss if the middle all_reduce were done twice? (Every rank's sum is then twice as large.) Reckon
# before you run.

# %%
print(round(float(np.log(2 * sum(sums)) - sum(picked)), 5), "is larger by", round(float(np.log(2)), 5))

# %% [markdown]
# ## Mean over tokens, not mean of means
#
# Two data-parallel ranks; the first has one token that counts, the second three.


# %%
def losses(mesh):
    counted = dist.shard_tensor(np.array([[1, 0, 0], [1, 1, 1]], "float32"), mesh, batch_placements(mesh))
    each = dist.shard_tensor(np.array([[4, 9, 9], [2, 2, 2]], "float32"), mesh, batch_placements(mesh))
    total, tokens = (each * counted).sum(), counted.sum()
    mine = total._local_value().item(), tokens._local_value().item()
    return mine, (total / tokens).item()


for rank, ((total, tokens), loss) in enumerate(simulate("dp=2", losses)):
    print(f"rank {rank}: sum {total} over {tokens:g} tokens, its own mean {total / tokens:g}; the loss is {loss}")

# %% [markdown]
# ## Pipelines
#
# The same work in two orders. A backward job takes twice as long as a forward one. Where is each stage idle, and how
# many micro-batches does it keep?

# %%
costs = {"forward": 1, "backward": 2, "optimizer": 0}
viz.schedule(schedule("FThenB", stages=4, n_micro=6), costs, "FThenB")

# %%
viz.schedule(schedule("1F1B", stages=4, n_micro=6), costs, "1F1B")

# %%
print("micro-batches   waiting   kept by stage 0: FThenB, 1F1B")
for n in (1, 2, 4, 8, 16, 32):
    f_then_b, one_f_one_b = schedule("FThenB", 4, n), schedule("1F1B", 4, n)
    print(f"{n:>13} {bubble(one_f_one_b):>9.0%} {in_flight(f_then_b[0]):>25} {in_flight(one_f_one_b[0]):>5}")

# %% [markdown]
# A schedule is checked before it runs. Two stages that wait for each other:

# %%
wrong = [[Job("forward", 0), Job("backward", 0), Job("forward", 1), Job("backward", 1), Job("optimizer", 0)],
         [Job("forward", 0), Job("forward", 1), Job("backward", 0), Job("backward", 1), Job("optimizer", 0)]]
try:
    check(wrong, n_micro=2)
except ValueError as error:
    print(error)

# %% [markdown]
# ## Parity
#
# Five layers, three micro-batches, another number of labels in each sequence, float64. Every mesh must give the losses
# and the parameters of the single rank.

# %%
random = np.random.default_rng(6)
ids, labels = random.integers(0, 32, (6, 8)), random.integers(0, 32, (6, 8))
for i in range(6):
    labels[i, 8 - i:] = -100


def train(mesh, steps=3, before=lambda comm: None):
    """(losses, parameters after the last step, what rank 0 communicated in it).  before(comm) comes first."""
    config = RunConfig(
        model=SMALL, data=DataConfig(seq_len=8), dist=DistConfig(mesh=mesh, eager=True),
        train=TrainConfig(batch=6, micro_batches=3, warmup=0.0, lr=1e-2, epsilon=1e-5, dtype="float64"))

    def rank(grid):
        current().rng.seed(0)
        before(current().comm)
        step = build(config).step
        losses = []
        for _ in range(steps):
            counted = current().comm.counts.copy()
            losses.append(step.share(step(ids, labels)))
        counts = dict(current().comm.counts - counted)
        return losses, {n: p.numpy() for n, p in step.parameters().items()}, counts
    ranks = simulate(mesh, rank, np.dtype("float64"))
    return np.sum([r[0] for r in ranks], axis=0), {n: p for r in ranks for n, p in r[1].items()}, ranks[0][2]


alone, parameters, _ = train("dp=1")
print("one rank:", np.round(alone, 6))
for mesh in ("dp=2", "tp=2", "pp=2", "dp=2,tp=2", "dp=2,tp=2,pp=2"):
    losses, found, counts = train(mesh)
    worst = max(np.abs(found[n] - p).max() / np.abs(p).max() for n, p in parameters.items())
    print(f"{mesh:<15}", np.round(losses, 6), "equal" if worst < 1e-10 else f"DIFFERENT: {worst:.0e}", counts)

# %% [markdown]
# ## A mistake that the loss does not show
#
# Let the gradients of data-parallel ranks go unsynchronised: an all_reduce of anything but a single number returns what
# the rank itself gave. The first loss is the same, for nothing has been updated yet. The later ones fall, and even
# faster: each rank learns its own few sequences by heart. Only the parameters tell.


# %%
def forgetful(comm):
    true_sum = comm.all_reduce
    comm.all_reduce = lambda x, group, op="sum": true_sum(x, group, op) if x.ndim == 0 else x.copy()


losses, found, _ = train("dp=2", before=forgetful)
worst = max(np.abs(found[n] - p).max() / np.abs(p).max() for n, p in parameters.items())
print("losses", np.round(losses, 4), "instead of", np.round(alone, 4))
print(f"parameters off by {worst:.0%} of the largest of their tensor")

# %% [markdown]
# ## Yours
#
# 1. Change the model: other numbers of heads and layers, four stages, `dp=3`. Does parity hold?
# 2. Count the messages of `dp=2,tp=2` by hand before you print them.
# 3. `make exercise-6`, then `make check-6`. Then `make train`, and open the report.
