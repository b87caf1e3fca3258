# %% [markdown]
# # Chapter 5: Sharding
#
# The lesson is `chapters/05_sharding/README.md`. Here you spread tensors over ranks, guess what each of them holds, and
# count what they say to each other. All ranks live in this process; nothing has to be installed. All later floors are
# closed (`MINIPD_FLOOR=5`).

# %%
import itertools

import numpy as np

import minipd as paddle
import minipd.distributed as dist
from minipd import viz
from minipd.dist.api import dtensor_from_local
from minipd.dist.comm.sim import World
from minipd.dist.completion import complete
from minipd.dist.dialect import placement_text
from minipd.dist.mesh import parse_mesh
from minipd.dist.partition import partition
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import COLLECTIVES, plan
from minipd.dist.sharding import ceil_chunk, local_window
from minipd.dist.simulate import simulate
from minipd.dist.spmd import infer
from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.trace import Trace

F = paddle.nn.functional
R, P, S = Replicate(), Partial(), Shard


def short(placements):
    """`S(0), R`"""
    return ", ".join(map(placement_text, placements))


# %% [markdown]
# ## One layer on two ranks
#
# `simulate` runs a function on every rank of a mesh. Every rank runs the same lines; what it holds, its placements say.
# Which line makes the ranks talk? Guess before you look at the log.

# %%
def layer(mesh):
    x = dist.shard_tensor([[1.0, 2.0], [3.0, 4.0]], mesh, [S(1)])       # by columns
    w = dist.shard_tensor([[10.0], [100.0]], mesh, [S(0)])              # by rows
    y = x @ w
    part = y._local_value().tolist()
    z = F.relu(y)
    return [repr(t.payload) for t in (x, w, y, z)], part, z.tolist()


log = []
for rank, (kinds, part, result) in enumerate(simulate("tp=2", layer, log=log)):
    print(f"rank {rank}: {kinds}\n        holds {part} of x @ w; in the end {result}")
print(log)

# %% [markdown]
# (Read `part` after the relu instead, and see: a Partial is added up once, the sum serves whoever asks next, and the
# parts are forgotten. Then one rank holds all of it, and the other nothing.)
#
# ## The mesh
#
# Lines join the ranks that talk when an axis communicates. Check one group by hand: who talks to rank 4 over dp?

# %%
mesh = dist.ProcessMesh([[0, 1, 2], [3, 4, 5]], dim_names=["dp", "tp"])
print(mesh.group(4, 0), mesh.group(4, 1))
viz.mesh(mesh)

# %% [markdown]
# Three axes. The innermost one, tp, joins neighbours.

# %%
viz.mesh(parse_mesh("pp=2,dp=2,tp=2"))

# %% [markdown]
# ## Who holds what
#
# Two axes, two dimensions. Change the placements and draw again: `[R, S(0)]`, `[P, S(1)]`, `[S(0), S(0)]`.

# %%
viz.sharding((4, 6), parse_mesh("dp=2,tp=2"), [S(0), S(1)], name="x")

# %% [markdown]
# Five rows do not divide by four. One axis of four ranks, and two axes of two ranks, both on the rows: are these the
# same?

# %%
print("tp=4:     ", [ceil_chunk(5, 4, i) for i in range(4)])
two = parse_mesh("dp=2,tp=2")
print("dp=2,tp=2:", [local_window((5,), two, (S(0), S(0)), rank) for rank in range(4)])
viz.sharding((5, 4), two, [S(0), S(0)])

# %% [markdown]
# ## The rule of matmul, as a table
#
# x comes as the row says, w as the column. The entry is the placement of x @ w, and in brackets what x and w must
# become first, where that is something else. Find the four lines of the lesson (data, column and row parallel, and
# nothing); then find a conflict, and say who wins.

# %%
x, w = np.zeros((8, 16)), np.zeros((16, 32))
choices = [R, S(0), S(1), P]
print("x \\ w   " + "".join(f"{placement_text(q):<18}" for q in choices))
for p in choices:
    cells = []
    for q in choices:
        got = infer(ROWS["matmul"], (x, w), [(p,), (q,)], {}, parse_mesh("tp=2"))
        moved = f" ({short(got.inputs[0])} | {short(got.inputs[1])})"
        cells.append(short(got.outputs[0]) + ("" if got.inputs == ((p,), (q,)) else moved))
    print(f"{placement_text(p):<8}" + "".join(f"{cell:<18}" for cell in cells))

# %% [markdown]
# ## What a Partial may pass
#
# The ranks hold parts of a sum, 10 and 35. For each function: is the result still Partial? And is the value right?


# %%
def meets(function):
    def run(mesh):
        part = dtensor_from_local(np.array([10.0, 35.0][current().rank], "float32"), mesh, [P])
        out = function(part)
        return placement_text(out.placements[0]), out.item()
    return simulate("tp=2", run)[0]


functions = {"x * 2": lambda x: x * 2, "x + 10": lambda x: x + 10, "x + x": lambda x: x + x, "-x": lambda x: -x,
             "x * x": lambda x: x * x, "relu(x)": F.relu}
for name, function in functions.items():
    placed, value = meets(function)
    print(f"{name:<8} -> {placed}, value {value}")

# %% [markdown]
# ## Reshard: every pair
#
# From the row to the column on `tp=2`, for a tensor of two dimensions. Which entries send nothing, and why?

# %%
one = parse_mesh("tp=2")
print("from \\ to " + "".join(f"{placement_text(q):<26}" for q in choices))
for p in choices:
    steps = [" + ".join(step.action for step in plan((p,), (q,), one, 2)) or "-" for q in choices]
    print(f"{placement_text(p):<10}" + "".join(f"{step:<26}" for step in steps))

# %% [markdown]
# Two axes, and an order to choose. The slice comes first: then the all_reduce is half as large.

# %%
viz.reshard((4, 6), two, [P, R], [R, S(0)])

# %% [markdown]
# Here a gather over `dp` alone would permute rows; so the ranks that have the rows in question send them.

# %%
viz.reshard((4, 2), two, [S(0), S(0)], [R, S(0)])

# %% [markdown]
# What do all reshards on two axes cost? Of the 256 pairs of placements:

# %%
every = list(itertools.product(choices, repeat=2))
cost = [sum(step.action in COLLECTIVES for step in plan(p, q, two, 2)) for p in every for q in every]
for n in sorted(set(cost)):
    print(f"{n} collectives: {cost.count(n)} pairs")

# %% [markdown]
# ## Ranks that do not fit together
#
# On a cluster they would hang. The simulator names both calls.


# %%
def unequal(comm):
    return comm.all_reduce(np.ones(3 + comm.rank, "float32"), group=(0, 1))


try:
    World(2).run(unequal)
except RuntimeError as error:
    print(str(error).split(", at ")[0])


# %%
def crossed(comm):
    """Each rank waits for the other's message before it sends its own."""
    other = 1 - comm.rank
    got = comm.recv(src=other)
    comm.send(np.array([comm.rank]), dst=other)
    return got


try:
    World(2).run(crossed)
except RuntimeError as error:
    print("\n".join(line.split(", at ")[0] for line in str(error).splitlines()))

# %% [markdown]
# Repair `crossed`: which two lines must change places? (A send never waits.)
#
# ## A sum has an order
#
# The same three numbers, added in each of the six orders, in float32:

# %%
numbers = [np.float32(1e8), np.float32(1.0), np.float32(-1e8)]
for order in itertools.permutations(numbers):
    total = np.float32(0)
    for number in order:
        total = np.float32(total + number)
    print([float(n) for n in order], "->", float(total))

# %% [markdown]
# ## Backward talks by itself
#
# A row-parallel layer sums in forward, a column-parallel one in backward. Nobody wrote either.


# %%
def messages(x_placed, w_placed):
    def run(mesh):
        x = dist.shard_tensor(np.ones((4, 6), "float32"), mesh, x_placed, stop_gradient=False)
        w = dist.shard_tensor(np.ones((6, 8), "float32"), mesh, w_placed, stop_gradient=False)
        y = F.relu(x @ w)
        forward = sum(current().comm.counts.values())
        y.sum().backward()
        kinds = f"dx is {short(x.grad.placements)}, dw is {short(w.grad.placements)}"
        if x.grad.placements == [P]:
            x.grad.numpy()                                              # reading a Partial adds it up
        return f"forward {forward}, backward {sum(current().comm.counts.values()) - forward}; {kinds}"
    return simulate("tp=2", run)[0]


print("row parallel:   ", messages([S(1)], [S(0)]))
print("column parallel:", messages([R], [S(1)]))
print("data parallel:  ", messages([S(0)], [R]))

# %% [markdown]
# ## One program, completed and cut
#
# The global program speaks of no rank. Completion gives each value its placements; partition writes the program of one
# rank, with the collectives in it.

# %%
f32, program = np.dtype("float32"), Program()
trace = Trace(program)
with using(ground=trace, middle=None, grad=False):
    a, b = Tensor(trace.input("x", Meta((4, 2), f32))), Tensor(trace.input("w", Meta((2, 6), f32)))
    trace.build.output("y", F.relu(a @ b).payload)
marks = {"x": (S(0), S(1)), "w": (R, S(0))}
complete(program, two, lambda op: marks[op.attributes["name"].value])
for op in program.global_block():
    for value in op.results():
        print(f"{op.name():<13} {list(value.shape)}  {short(value.type().placements)}")

# %%
local = partition(program, two, rank=3)
print(local)

# %%
viz.program(local)

# %% [markdown]
# ## Yours
#
# 1. Mark `w` as `(R, R)` and `x` as `(S(0), R)`, complete and partition again. What is gone, and why?
# 2. Build the feed-forward block `relu(x @ w) @ v` with one collective in all. (The answer is in chapter 6.)
# 3. `make exercise-5`, then `make check-5`.
