# %% [markdown]
# # Chapter 4: The compiler
#
# The lesson is `chapters/04_compiler/README.md`. Here you take functions of your own down the whole way, look at each
# step, and put a mistake into one. All later floors are closed (`MINIPD_FLOOR=4`).

# %%
import re

import numpy as np

import minipd as paddle
from minipd import viz
from minipd.cinn import explain
from minipd.cinn.codegen.numba_source import numba_source
from minipd.cinn.compile import apply_cinn_pass, prepare
from minipd.cinn.frontend import build_groups, bytes_moved, run_group
from minipd.cinn.frontend.traffic import bytes_of_op
from minipd.cinn.ir.ast import Accumulate, Dim, For, Function, Init, Load, Param, Seq, Store, Var
from minipd.cinn.ir.build import binary, const
from minipd.cinn.ir.interpreter import LoopError, interpret
from minipd.cinn.ir.printer import text
from minipd.cinn.kernels import kernel_of
from minipd.cinn.lower import lower
from minipd.cinn.optim import finalize
from minipd.cinn.optim.finalize import steps
from minipd.cinn.overwriting import overwritable
from minipd.cinn.schedule import IRSchedule, ScheduleConfig, ScheduleError, schedule
from minipd.cinn.schedule.dependences import met_in
from minipd.cinn.schedule.nests import Nests, inside
from minipd.decomposition import decompose
from minipd.executor import Executor, Scope
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec


def traced(f, *shapes, dtype="float32"):
    """The program of f on inputs x0, x1, ... of these shapes."""
    return trace(f, *(InputSpec(list(s), dtype, f"x{i}") for i, s in enumerate(shapes))).program


def lowered(f, *shapes):
    """The one group of f, as blocks."""
    program = traced(f, *shapes)
    prepare(program)
    group, = build_groups(program)
    return lower(group)


def loops(function, **config):
    """What code is written from: scheduled by the tactics, and finished."""
    return finalize(schedule(function, ScheduleConfig(**config)).function)


def show(function):
    """Its text, without lines that are a brace."""
    print(re.sub(r"\n *[{}]", "", text(function)).rstrip())


# %% [markdown]
# ## Bytes
#
# How many bytes do these functions move, operator by operator and in groups? Guess the ratio before you run the cell:
# it is the number of times that an array of full size is read or written, over what must be.


# %%
def norm(x, w):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def gelu(x):
    return x * 0.5 * ((x * x * x * 0.044715 + x) * 0.7978845608).tanh() + x * 0.5


def new(x, w):
    return ((x ** 4).mean(-1, keepdim=True) + 1e-6).rsqrt().tanh() * x * w


for name, f, shapes in (("softmax", F.softmax, [(64, 288)]), ("rms norm", norm, [(64, 288), (288,)]),
                        ("gelu", gelu, [(64, 288)]), ("one that nobody has", new, [(64, 288), (288,)])):
    program = traced(f, *shapes)
    prepare(program)
    before = bytes_moved(program)
    groups = build_groups(program)
    after = bytes_moved(program)
    print(f"{name:20} {before:>9,} -> {after:>7,} bytes, {before / after:4.1f} times less, {len(groups)} kernel")

# %% [markdown]
# The last one is the point of a compiler: no library has that kernel. Which operator costs how much:

# %%
program = traced(F.softmax, (64, 288))
prepare(program)
for op in program.walk():
    if bytes_of_op(op):
        print(f"{op.name():16} {bytes_of_op(op):>8,}")

# %% [markdown]
# Flops for each byte, of 4096 by 4096 float32: a norm has four for each element (square, add, two products), however it
# is computed. Where would a matrix product be, and how small has it to be to be limited by memory, with a core that
# does 115 GFLOP/s and moves 13 GB/s?

# %%
A = 4096 * 4096 * 4
for name, flops, moved in (("norm, operator by operator", 4 * 4096**2, 7 * A), ("norm, one kernel", 4 * 4096**2, 2 * A),
                           ("matrix product", 2 * 4096**3, 3 * A)):
    intensity = flops / moved
    print(f"{name:27} {intensity:7.2f} flops for each byte, at most {min(115, 13 * intensity):6.1f} GFLOP/s")
for n in (16, 32, 64, 128):
    print(f"matrix product of {n:>3}: {2 * n**3 / (3 * n * n * 4):5.1f} flops for each byte")

# %% [markdown]
# ## Taken apart
#
# A softmax, and what it is made of. Each part says in `comp_op_name` which operator it comes from.

# %%
program = traced(F.softmax, (4, 8))
_ = decompose(program, [])
program


# %% [markdown]
# Why the maximum is subtracted: softmax of [0, d] for growing d, by the textbook and by the rule, in float32.


# %%
def textbook(x):
    e = x.exp()
    return e / e.sum(-1, keepdim=True)


with np.errstate(all="ignore"):
    for d in (1.0, 10.0, 80.0, 90.0, 1000.0):
        x = paddle.to_tensor(np.array([0.0, d], np.float32))
        print(f"{d:6}  textbook {textbook(x).numpy()[1]:.6f}   rule {F.softmax(x).numpy()[1]:.6f}")

# %% [markdown]
# And why the loss takes the logarithm on paper: logits [0, d], and the label is the improbable one. The loss is d.

# %%
with np.errstate(all="ignore"):
    for d in (1.0, 50.0, 100.0, 200.0):
        x = paddle.to_tensor(np.array([[0.0, d]], np.float32))
        loss = F.cross_entropy(x, paddle.to_tensor(np.array([0])))
        print(f"{d:6}  -log(softmax) {-F.softmax(x).log().numpy()[0, 0]:9.4f}   cross entropy {loss.item():9.4f}")


# %% [markdown]
# ## Groups
#
# What each frame holds becomes one kernel. The matmul stays outside, and keeps the two groups apart: a path leads
# from the first through the matmul to the second.


# %%
def block(x, w):
    a = x.exp() * 2.0
    return (paddle.matmul(a, w) + a).tanh() * 3.0


program = traced(block, (6, 10), (10, 10))
viz.groups(program)


# %% [markdown]
# Every decision was written down, with the policy that was against it:

# %%
found = explain(block, InputSpec([6, 10], "float32"), InputSpec([10, 10], "float32"))
for decision in found.parts[0].decisions:
    print(decision)

# %% [markdown]
# What kind of pattern is each of these? Say it before you run the cell; the table is in the lesson.


# %%
def two(x):
    return x.exp(), x.tanh()


def two_ends(x):
    a = x.exp()
    return a * 2.0, a.sum(-1)


def tree(x):
    return (x - x.max(-1, keepdim=True)).exp().sum(-1)


for name, f in (("gelu(x) + x", lambda x: F.gelu(x) + x), ("sum(x * x)", lambda x: (x * x).sum(-1)),
                ("sum(exp(x - max))", tree), ("softmax", F.softmax), ("a = exp(x); a * 2, sum(a)", two_ends),
                ("exp(x), tanh(x)", two), ("tanh(x @ x)", lambda x: paddle.matmul(x, x).tanh() * 2.0)):
    found = explain(f, InputSpec([64, 64], "float32"))
    print(f"{name:26} {', '.join(kernel.pattern for kernel in found.kernels)}")

# %% [markdown]
# A norm with its gradient. The sums along the rows (for dx) and down the columns (for dw) share one kernel, since
# both read the same arrays.


# %%
def gradient(x, w, g):
    x.stop_gradient = w.stop_gradient = False
    return paddle.grad(F.rms_norm(x, [8], w), [x, w], [g])


program = traced(gradient, (4, 8), (8,), (4, 8))
prepare(program)
groups = build_groups(program)
print(len(groups), "group", groups[-1])

# %% [markdown]
# ## Loops
#
# The softmax as it is lowered: a nest and an array for each operator, and two for each reduction. A block says what one
# element is; `axis.bind` says which loops lead to it.

# %%
program = traced(F.softmax, (4, 8))
prepare(program)
group, = build_groups(program)
softmax = lower(group, "softmax")
show(softmax)

# %% [markdown]
# The same in one nest. Three passes over the row; find what is computed twice.

# %%
viz.loops(loops(softmax, keep_cost=100, without=("Bind", "Vectorize")))

# %% [markdown]
# Three ways to run it: the group with library kernels (that is what it *means*), the loops in the interpreter, and
# further down the compiled kernel.

# %%
x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
meant, = run_group(group, [x])
y = np.empty_like(x)
interpret(softmax, [x], [y])
np.allclose(y, meant, rtol=1e-6)

# %% [markdown]
# The interpreter refuses what a kernel would do silently. A sum of neighbours that begins one too early:

# %%
f32, i = np.dtype("float32"), Var("i")
neighbours = binary("add", Load("x", (binary("sub", i, 1),), f32), Load("x", (i,), f32))
function = Function("neighbours", (Param("x", f32, 1), Param("y", f32, 1, output=True)),
                    For("i", Dim("x", 0), Store("y", (i,), neighbours)))
print(text(function))
try:
    interpret(function, [np.arange(4, dtype=f32)], [np.empty(4, f32)])
except LoopError as error:
    print("LoopError:", error)

# %% [markdown]
# ## When iterations meet
#
# Which of these loops could run on several threads, and which in lanes? Say it before you run the cell.


# %%
def meets(function, loop, reduces):
    """The buffers in which the iterations of a loop meet."""
    nests = Nests(function)
    blocks = [b.name for b in inside(nests.loop(loop, ""))]
    return {a.buffer for a, b in met_in(nests, loop, blocks, reduces)}


for name, f, block in (("sum(1)", lambda x: (x * 2.0).sum(1), "sum_2"), ("sum(0)", lambda x: (x * 2.0).sum(0), "sum_2"),
                       ("max(1)", lambda x: (x * 2.0).max(1), "max_2"), ("exp(x) * 2", lambda x: x.exp() * 2.0, "y0")):
    function = lowered(f, (4, 6))
    for loop in IRSchedule(function).get_loops(block):
        threads, lanes = (meets(function, loop, reduces) or "nothing" for reduces in (True, False))
        print(f"{name:11} {loop:8} threads meet in {threads}, lanes in {lanes}")

# %% [markdown]
# ## Schedules
#
# Primitives, one at a time. A sum of six numbers in fours does not come out even: look for the condition, and for where
# it is after the last passes.

# %%
sums = lowered(lambda x: x.exp().sum(1), (4, 6))
s = IRSchedule(sums)
s.compute_inline("exp_0")
print(s.split("j_sum_1", [-1, 4]))
show(s.function)
show(finalize(s.function))

# %% [markdown]
# Which of these would change what the function means? Guess, then read the reasons.

# %%
for name, args in (("parallel", ["i_sum_1"]), ("parallel", ["j_sum_1"]), ("vectorize", ["j_sum_1"]),
                   ("reorder", [["j_sum_1", "i_sum_1"]]), ("compute_inline", ["exp_0"]), ("compute_inline", ["sum_1"]),
                   ("simple_compute_at", ["y0", "i_sum_1"]), ("simple_compute_at", ["y0", "i_exp_0"]),
                   ("compute_at", ["exp_0", "i_sum_1"]), ("rfactor", ["j_sum_1"]), ("rfactor", ["i_sum_1"])):
    s = IRSchedule(sums)
    try:
        getattr(s, name)(*args)
        print(f"{s.trace}: legal")
    except ScheduleError as error:
        print(error)

# %% [markdown]
# What the tactics do to an RMSNorm, primitive by primitive. Yellow is new or has moved.

# %%
rms = lowered(norm, (64, 288), (288,))
viz.steps(rms, schedule(rms).trace, "The schedule of an RMSNorm")

# %% [markdown]
# And to the softmax:

# %%
print(schedule(softmax).trace)
viz.loops(loops(softmax))

# %% [markdown]
# If keeping an exponential were not worth it, there would be no `set_buffer`, and e^(x - m) would be computed twice:

# %%
viz.loops(loops(softmax, keep_cost=100))

# %% [markdown]
# A sum over everything meets in its accumulator. It is cut into chunks, each with an accumulator of its own. How many
# there are depends on the size only, so the result is the same however many threads there are.

# %%
program = traced(lambda x: (x * x).sum(), (1 << 20,))
prepare(program)
total, = build_groups(program)
viz.loops(loops(lower(total, "total")))

# %% [markdown]
# What the blocks in it are for: 0.1 added a million times, one after the other, and in blocks. The error of the sum,
# as a share of it:

# %%
x = np.full(1 << 20, 0.1, np.float32)
exact = float(np.float32(0.1)) * x.size
for size in (1, 16, 256, 1024, 4096, 65536):
    blocks = np.add.accumulate(x.reshape(-1, size), axis=1)[:, -1]
    print(f"blocks of {size:>5}: {abs(float(np.add.accumulate(blocks)[-1]) / exact - 1):.0e}")

# %% [markdown]
# ## The last passes
#
# How many lines the function has after each of them. Print one that interests you:
# `show(stages["buffers_to_scalars"])`.

# %%
stages = dict(steps(schedule(softmax).function))
for name, function in stages.items():
    print(f"{name:28} {len([line for line in text(function).splitlines() if line.strip(' {}')])} lines")

# %% [markdown]
# ## Kernels
#
# The text that numba compiles:

# %%
print(numba_source(loops(softmax)))

# %% [markdown]
# Compiled and run. NaN and infinity come through: the second row has a NaN, in the third the last element is masked.

# %%
program = traced(F.softmax, (3, 4))
print(apply_cinn_pass(program), [op.name() for op in program.global_block()])
x = np.array([[1, 2, 3, 4], [1, np.nan, 3, 4], [1, 2, 3, -np.inf]], np.float32)
with np.errstate(all="ignore"):
    print(Executor(program).run({"x0": x}, Scope())["output_0"].round(4))

# %% [markdown]
# One program for all sizes: the kernel for rows of up to 4096, and one for longer ones, which is built when the first
# such row comes. Nothing else is.

# %%
program = trace(F.softmax, InputSpec([None, None], "float32", "x0")).program
apply_cinn_pass(program)
call, = (op for op in program.global_block() if op.name() == "cinn_runtime.jit_kernel")
print(call, kernel_of(call).row_at_most)
executor = Executor(program)
for n in (2, 3, 8, 4096, 4097):
    y = executor.run({"x0": np.ones((2, n), np.float32)}, Scope())["output_0"]
    print(y.shape, np.allclose(y, 1 / n))

# %% [markdown]
# e^x as additions and products. x = k ln 2 + r, and e^x = 2^k e^r. With more terms of the series of e^r the largest
# error shrinks, until rounding to float32 is all that is left. (A unit in the last place is about 1e-7 of the value.)

# %%
x = np.linspace(-20, 20, 100_001).astype(np.float32)
k = np.round(x * np.float32(1 / np.log(2)))
exact = np.exp(x.astype(np.float64))
for parts in ((np.log(2),), (0.693359375, np.log(2) - 0.693359375)):
    r = x
    for part in parts:
        r = r - k * np.float32(part)
    for terms in (2, 4, 6, 8):
        e = np.float32(0)
        for n in range(terms, 0, -1):                   # (((r / 3 + 1) r / 2 + 1) r + 1
            e = (e + np.float32(1)) * r / np.float32(n)
        error = np.abs(np.ldexp(e + np.float32(1), k.astype(int)) / exact - 1).max()
        print(f"ln 2 in {len(parts)}, {terms} terms: {error:.0e}")

# %% [markdown]
# ## Writing over an input
#
# Which results may have the memory of which inputs? {number of the result: numbers of the inputs}

# %%
for name, f, shapes in (("softmax", F.softmax, [(4, 8)]), ("rms norm", norm, [(8, 8), (8,)]),
                        ("two results", lambda x, y: (x.exp() * y, x.tanh() * y), [(4, 8), (4, 8)])):
    program = traced(f, *shapes)
    prepare(program)
    group, = build_groups(program)
    print(f"{name:12} {overwritable(loops(lower(group)))}")

# %% [markdown]
# The weight of the norm is read again in every row, so nothing may be written over it. And what if a kernel looks at
# the *next* row first? Row i + 1 of x is read in iteration i, and again in iteration i + 1.

# %%
row, column = Var("i"), Var("j")
here, below = Load("x", (row, column), f32), Load("x", (binary("add", row, 1), column), f32)
top = For("j", const(4, row.dtype), Accumulate("m", "max", below))
shift = For("j", const(4, row.dtype), Store("y", (row, column), binary("sub", here, Var("m", f32))))
ahead = Function("ahead", (Param("x", f32, 2), Param("y", f32, 2, output=True)),
                 For("i", const(3, row.dtype), Seq((Init("m", const(-np.inf, f32)), top, shift))))
print(text(ahead))
print(overwritable(ahead))

# %% [markdown]
# ## A formula of yours
#
# All of the above, for a function that nobody has written a kernel for. (`explain(...)` alone, as the last line of a
# cell, is a page with everything in it.)

# %%
found = explain(new, InputSpec([64, 288], "float32"), InputSpec([288], "float32"))
kernel, = found.kernels
print(f"{kernel.pattern}: {', '.join(kernel.operators)}")
print(f"{found.bytes_before:,} bytes become {found.bytes_after:,}")
for edge in kernel.edges:
    print(edge)
print("\n".join(kernel.steps))

# %% [markdown]
# ## Try
#
# * Write a function of five element-wise operators and one reduction, and predict its bytes before and after.
# * `traced(lambda x: F.softmax(x, 0), (64, 288))`: what does the outer loop run over? When is a column's maximum known?
# * Change `loops(..., block=..., chunks=...)` for the sum, and print what comes out.
# * Schedule `sums` by hand, so that it has one nest and no array. How many steps do you need?
# * Then the exercises: `make exercise-4`.
