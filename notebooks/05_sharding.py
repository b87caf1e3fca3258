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
from minipd.dist.api import dtensor_from_local, reshard
from minipd.dist.comm.faults import Slow
from minipd.dist.comm.links import Link, Links
from minipd.dist.comm.sim import World
from minipd.dist.completion import complete
from minipd.dist.dialect import placement_text
from minipd.dist.mesh import parse_mesh
from minipd.dist.partition import partition
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import COLLECTIVES, bytes_sent, plan
from minipd.dist.sharding import ceil_chunk, local_window
from minipd.dist.simulate import simulate
from minipd.dist.spmd import infer
from minipd.dist.static.passes import stages
from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.traced import trace as traced

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
# A part of a mesh is a mesh. Which ranks are the second stage of the pipeline? Which have tp = 0?

# %%
cube = dist.ProcessMesh(np.arange(8).reshape(2, 2, 2), dim_names=["pp", "dp", "tp"])
print(cube[1].process_ids, cube.get_mesh_with_dim("tp", 0).process_ids)

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
# The inner axis may split first (`shard_order`), and an axis may split each of several parts (`split_factor`): so it is
# with the weights of q, k and v in one tensor. Which rows has rank 1, in both?

# %%
viz.sharding((8, 4), two, [S(0, shard_order=1), S(0)])

# %%
viz.sharding((12, 4), parse_mesh("tp=2"), [S(0, split_factor=3)], name="qkv")

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
# ## The mean of means
#
# Rows over two ranks. Where the ranks have as many, the mean is an average of parts, P(avg); else it is taken apart
# into a sum of parts and a division, P. For how many rows is which, and how wrong would the mean of the means be?


# %%
def mean_of(rows):
    def run(mesh):
        x = dist.shard_tensor(np.arange(4.0 * rows).reshape(rows, 4), mesh, [S(0)])
        part, mean = x._local_value(), x.mean()
        return part.mean().item() if part.size else float("nan"), placement_text(mean.placements[0]), mean.item()
    return simulate("tp=2", run)


for rows in range(1, 7):
    ranks = mean_of(rows)
    naive = sum(part for part, _, _ in ranks) / 2
    print(f"{rows} rows: the mean is {ranks[0][1]:<7} {ranks[0][2]:<5} the mean of the means {naive}")

# %% [markdown]
# ## What a Partial may pass
#
# The ranks hold parts of a sum, 10 and 35. For each function: is the result still Partial? And is the value right?
# One of them is linear, and added up first all the same. Which, and what does its rule say about that
# (`minipd/dist/spmd/elementwise.py`, `scale`)?


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
# ## What a reshape may keep
#
# A tensor of 4 x 6, split by rows or by columns over two ranks, read in other shapes. Which of them have to gather
# first, and why? (`f64[8_tp, 3]` is still split; `f64[8, 3]` was gathered.)

# %%
def reshaped(mesh):
    table = []
    for shape in ([24], [2, 2, 6], [4, 3, 2], [8, 3], [3, 8], [4, 2, 3]):
        by = [dist.shard_tensor(np.arange(24.0).reshape(4, 6), mesh, [S(d)]).reshape(shape) for d in (0, 1)]
        table.append(f"{str(shape):<12} by rows: {by[0].payload!r:<18} by columns: {by[1].payload!r}")
    return table


print(*simulate("tp=2", reshaped)[0], sep="\n")

# %% [markdown]
# ## Words and classes in pieces
#
# The table has 5 words over two ranks. Each rank answers for the words that it has: guess both lists.

# %%
def look_up(mesh):
    table = dist.shard_tensor([[10.0], [11.0], [12.0], [13.0], [14.0]], mesh, [S(0)])
    y = F.embedding(paddle.to_tensor([4, 0, 3, 2]), table)
    return repr(y.payload), y._local_value().flatten().tolist()


for rank, (kind, answers) in enumerate(simulate("tp=2", look_up)):
    print(f"rank {rank}: {kind} {answers}")

# %% [markdown]
# And the loss, with as many classes as you like. How does what is sent depend on `classes`? Then put
# `F.softmax(x).sum()` in the place of the loss.

# %%
def loss_of(classes, log):
    def run(mesh):
        x = dist.shard_tensor(np.arange(2.0 * classes).reshape(2, classes) % 7, mesh, [S(1)])
        return F.cross_entropy(x, paddle.to_tensor([0, classes - 1])).item()
    return simulate("tp=2", run, log=log)[0]


for classes in (4, 1000):
    log = []
    print(f"{classes} classes: {loss_of(classes, log):.4f}", *log, sep="\n   ")

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
# And in bytes? A tensor of 8 x 8 floats is 256 bytes; here is what rank 0 sends, on n ranks. Which of the columns grow
# with n, which fall, and which end somewhere?

# %%
print("n      all_gather  reduce_scatter  all_reduce  all_to_all")
for n in (2, 4, 8):
    on = parse_mesh(f"tp={n}")
    amounts = [bytes_sent(plan((p,), (q,), on, 2), (8, 8), np.dtype("float32"), rank=0)
               for p, q in ((S(0), R), (P, S(0)), (P, R), (S(0), S(1)))]
    print(f"{n:<6}" + "".join(f"{amount:>12}" for amount in amounts))

# %% [markdown]
# To another mesh there is no collective. Dashed is what stays, an arrow has the colour of the piece that it brings.

# %%
first, second = dist.ProcessMesh([0, 1], ["tp"]), dist.ProcessMesh([1, 2, 3], ["tp"])
viz.reshard((6, 4), first, [S(0)], [S(0)], to=second)

# %% [markdown]
# Parts of a sum, and a large tensor: added up in chunks on one side, gathered on the other. Make the tensor small, and
# look again.

# %%
viz.reshard((4096, 4096), first, [P], [R], to=dist.ProcessMesh([2, 3], ["tp"]))

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
    print("\n".join(line.split(", at ")[0] for line in str(error).splitlines()))


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
# ## A slow rank
#
# The clock is reckoned, not measured: alpha for each message, beta for each byte. An all_reduce of 1000 floats on 4
# ranks is 6 rounds of 250 floats. What does it cost when one rank comes a millisecond late? When one link is ten times
# slower?

# %%
def add(comm):
    return comm.all_reduce(np.ones(1000, "float32"), group=(0, 1, 2, 3))


fast = Link(alpha=5e-6, beta=1e-10)
for name, links, faults in (("all alike", Links(fast), []), ("rank 2 is late", Links(fast), [Slow(2, 0.001)]),
                            ("a slow link", Links(fast, {(0, 1): Link(5e-5, 1e-9)}), [])):
    world = World(4, links=links, faults=faults)
    world.run(add)
    print(f"{name:<16}", [f"{comm.clock * 1e6:.1f} us" for comm in world.comms])

# %% [markdown]
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
# ## The way back
#
# x goes from one placement to another; its gradient comes in as the last column says. What runs in backward? Cover the
# right side, and write it down first: read the table of reshards from right to left.

# %%
def there_and_back(before, after, arrives):
    def run(mesh):
        def spread(placed):
            whole = np.ones((4, 4), "float32")
            return dtensor_from_local(whole / 2, mesh, [P]) if placed is P else dist.shard_tensor(whole, mesh, [placed])
        x = spread(before)
        x.stop_gradient = False
        comm = current().comm
        y = reshard(x, mesh, [after])
        forward, g = [*comm.counts], spread(arrives)
        comm.counts.clear()
        y.backward(g)
        return forward, [*comm.counts], short(x.grad.placements)
    return simulate("tp=2", run)[0]


ways = [(R, S(0), S(0)), (S(0), R, P), (S(0), R, R), (S(0), S(1), S(1)), (P, S(0), S(0)), (P, R, R)]
for before, after, arrives in ways:
    forward, backward, placed = there_and_back(before, after, arrives)
    print(f"{short([before])} -> {short([after])}:".ljust(14), f"{' '.join(forward) or '-':<16}",
          f"gradient {short([arrives])} -> {placed}:".ljust(24), " ".join(backward) or "-")

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

# %% [markdown]
# Printed as Paddle prints it: a group of ranks is a number there, `ring_id`. Who is in it? Guess, for rank 3.

# %%
local = partition(program, two, rank=3)
print(local)
print([op.attributes["group"].value for op in local.global_block() if op.name() == "pd_op.all_reduce"])

# %%
viz.program(local)

# %% [markdown]
# The same in six passes, each of which can be printed and drawn. In which does the collective appear? What is different
# on rank 0?

# %%
def two_layers(x, w, v):
    x, w = dist.shard_tensor(x, two, [S(0), R]), dist.shard_tensor(w, two, [R, S(1)])
    return F.relu(F.relu(x @ w) @ dist.shard_tensor(v, two, [R, S(0)]))


marked = traced(two_layers, Meta((4, 8), f32), Meta((8, 16), f32), Meta((16, 8), f32)).program
for name, stage in stages(marked, rank=3).items():
    print(f"{name:24}", *(op.name().split(".")[1] for op in stage.walk()))

# %%
viz.placed(marked, rank=3)

# %% [markdown]
# ## A model in five lines
#
# `parallelize` places the weights, `to_static` makes the programs. The losses are those of one rank.

# %%
def train(mesh):
    paddle.seed(0)
    model = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, 1))
    columns_then_rows = {"0": dist.ColWiseParallel(), "2": dist.RowWiseParallel()}
    model, opt = dist.parallelize(model, paddle.optimizer.SGD(0.1, model.parameters()), mesh,
                                  {"mp_config": {"parallelize_plan": columns_then_rows}})
    step = dist.to_static(model, None, paddle.nn.MSELoss(), opt)
    step.train()
    x, y = paddle.to_tensor(np.ones((2, 4), "float32")), paddle.to_tensor(np.ones((2, 1), "float32"))
    return [round(float(step(x, y)), 5) for _ in range(4)]


print("one rank: ", simulate("dp=1,mp=1", train)[0])
print("two ranks:", simulate("dp=1,mp=2", train)[1])

# %% [markdown]
# ## Yours
#
# 1. Mark `w` as `(R, R)` and `x` as `(S(0), R)`, complete and partition again. What is gone, and why?
# 2. Build the feed-forward block `relu(x @ w) @ v` with one collective in all. (The answer is in chapter 6.)
# 3. `make exercise-5`, then `make check-5`.
