# %% [markdown]
# # Chapter 2: Programs
#
# The lesson is `chapters/02_programs/README.md`. Here you trace functions of your own, look at what was written, break
# it, differentiate it, save it, count its memory, and put it on streams. All later floors are closed
# (`MINIPD_FLOOR=2`).

# %%
import re

import numpy as np

import minipd as paddle
from minipd import viz
from minipd.executor import Executor
from minipd.framework.context import using
from minipd.ir import Program
from minipd.ir.backward import append_backward
from minipd.ir.dce import remove_dead_ops
from minipd.ir.parser import parse
from minipd.ir.trace import Trace
from minipd.ir.traced import trace
from minipd.ir.verify import VerifyError, verify
from minipd.static.input import InputSpec

# %% [markdown]
# ## The same call writes a line
#
# By hand first: an empty program, a trace on the ground of the stack, and one line of tensor code. (`trace` does this
# for a whole function.)

# %%
program = Program()
tracer = Trace(program)
with using(ground=tracer):
    x = paddle.Tensor(tracer.input("x", InputSpec([2, 3], "float32")))
    y = x * x + 1.0
print(y.payload)
print(program)

# %% [markdown]
# A function, and the picture of its program. What a node reads stands above it.


# %%
def layer(x, w):
    p = paddle.nn.functional.softmax(paddle.matmul(x, w))
    return (p * p).sum()


traced = trace(layer, InputSpec(["B", 8], "float32", "x"), InputSpec([8, 4], "float32", "w", stop_gradient=False))
traced.program

# %% [markdown]
# ## Captured, not baked in
#
# w comes from outside. It is an input, bound to the tensor. Change what the tensor holds, and the compiled function
# sees it.

# %%
w = paddle.to_tensor([10.0, 20.0])
f = paddle.jit.to_static(lambda x: x * w + w)
print(f(paddle.ones([2])).tolist())
w.set_value(np.array([1.0, 2.0], "float32"))
print(f(paddle.ones([2])).tolist())

# %% [markdown]
# Python's `if` on a traced tensor cannot be decided. The error says what to do instead. (`to_static` rewrites the
# function first; that is [below](#Python's-own-if-and-while).)


# %%
def wrong(x):
    return x if x.sum() > 0.0 else -x


try:
    trace(wrong, InputSpec([2], "float32", "x"))
except TypeError as error:
    print(re.sub(r"asked for at \S+", "asked for at", str(error)))


# %%
def branch(x):
    h = x.exp()
    return paddle.static.nn.cond(x.sum() > 0.0, lambda: h * 2.0, lambda: h.tanh())


branching = trace(branch, InputSpec([2], "float32", "x", stop_gradient=False))
branching.program

# %% [markdown]
# ## Sizes that are not known yet
#
# One program for every size. What it has to assume of the sizes is written down, with the line that needed it.


# %%
def windows(x, y):
    z = paddle.concat([x, x[::2]]) + y
    return z[:4], paddle.full([paddle.shape(x)[0] // 2, 2], 1.0)


program = trace(windows, InputSpec(["S0", 3], "float32"), InputSpec(["S1", 3], "float32")).program
for output in program.get_output_value_by_name("output_0"), program.get_output_value_by_name("output_1"):
    print(output.shape)
for constraint in program.constraints:
    print(re.sub(r", \S+:\d+\)", ")", str(constraint)))

# %% [markdown]
# ## Values, and their users

# %%
h = branching.program.global_block().ops[1].result(0)
print(h, "is used by", [str(use) for use in h.uses])
viz.use_def(h)

# %% [markdown]
# ## Dead code
#
# Guess before you run it: how many operations go?


# %%
def wasteful(x):
    a = x.exp()
    b = a.tanh()
    (b + a).sqrt().abs()
    return a


program = trace(wasteful, InputSpec([2], "float32", "x")).program
print([op.name() for op in program.walk()])
print("gone:", remove_dead_ops(program))
print([op.name() for op in program.walk()])

# %% [markdown]
# ## Break it
#
# Move an operation before what it reads; give an operand a value from a branch; lie about a shape. What does the
# verifier say?

# %%
from minipd.ir import DenseTensorType


def report(program):
    try:
        verify(program)
        print("well formed")
    except VerifyError as error:
        print(re.sub(r" \(from \S+\)", "", str(error).split("\n")[0]))


program = trace(lambda x: x.exp().tanh(), InputSpec([2], "float32", "x")).program
report(program)
_, exp, tanh, _ = program.walk()
exp.move_after(tanh)
report(program)
exp.move_before(tanh)
exp.result(0).set_type(DenseTensorType((3,), "float32"))
report(program)

# %%
broken = branching.program.clone()
_if = next(op for op in broken.walk() if op.name() == "pd_op.if")
inside = _if.regions[0].front().ops[-2].result(0)       # computed in the first region
_if.regions[1].front().back().operand(0).set_source(inside)     # yielded by the second
report(broken)

# %% [markdown]
# ## Layers
#
# A program of a model is long. Each operation knows the layer that made it, so the drawing can be folded. Click on a
# line to open a layer.

# %%
class Block(paddle.nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.up = paddle.nn.Linear(width, 4 * width)
        self.down = paddle.nn.Linear(4 * width, width)
        self.norm = paddle.nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + self.down(paddle.nn.functional.gelu(self.up(x))))


model = paddle.nn.Sequential(Block(8), Block(8), paddle.nn.Linear(8, 2))
of_model = trace(model, InputSpec(["B", 8], "float32", "x")).program
viz.layers(of_model, open=1)

# %% [markdown]
# ## A dialect of your own
#
# An operation in six lines. What can it do by now? Change `infer_meta` so that it says something wrong, and verify.

# %%
from minipd.ir import Dialect, IrTrait, Trait, register_dialect

shop = register_dialect(Dialect("shop"), replace=True)


@shop.op("vat", Trait.ELEMENTWISE, IrTrait.SAME_OPERANDS_AND_RESULT_TYPE)
class Vat:
    """A price with its tax."""

    def infer_meta(price, *, rate: float = 0.2): return price
    def kernel(xp, price, *, rate): return price * (1 + rate)
    def vjp_price(g, rate): return g * (1 + rate)


price = paddle.to_tensor([10.0, 20.0], stop_gradient=False)
total = Vat(price, rate=0.5)
total.sum().backward()
print("eager:", total.tolist(), "gradient:", price.grad.tolist())
shopping = trace(lambda x: Vat(x, rate=0.5), InputSpec([2], "float32", "x")).program
print("read back:", parse(shopping.to_string("exact")) == shopping)
print(shopping)

# %% [markdown]
# The executor lowers it before it runs it. The same program in another dialect: who computes, and where a value lies.

# %%
print(Executor(shopping).lowered.program)

# %% [markdown]
# ## Python's own if and while
#
# The function, what it was rewritten into, and its program. Read `_jst.If` and `_jst.While` as "decide this when you
# are called".


# %%
def collatz(n):
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


compiled = paddle.jit.to_static(collatz)
print([compiled(paddle.to_tensor(n)).item() for n in (1, 6, 7, 27)])
print(compiled.code)

# %%
compiled.concrete_program.main_program

# %% [markdown]
# Given a number, the same function is Python's own, and nothing is left of it but the answer. A loop with a `break`
# gets a flag.

# %%
print(compiled(27))


def first_above(xs, limit):
    for x in xs:
        if x > limit:
            break
    else:
        return limit
    return x


compiled = paddle.jit.to_static(first_above)
print(compiled(paddle.to_tensor([1.0, 5.0, 9.0]), paddle.to_tensor(3.0)).item())
print(compiled.code)

# %% [markdown]
# ## When is it traced again?
#
# Guess before you run it: six calls. Which of them trace?

# %%
LIMITS = [1.0, 2.0]


@paddle.jit.to_static
def clipped(x, scale):
    return (x * scale).clip(*LIMITS)


def call(words, x, scale):
    report = paddle.jit.explain(clipped, x, scale)
    print(f"{words:32} traced {len(report.traces)} times so far, the last time: {report.traces[-1]}")


two, three = paddle.ones([2]), paddle.ones([3])
call("the first call", two, 3)
call("again", two, 3)
call("another shape", three, 3)
call("3.0 instead of 3", two, 3.0)
LIMITS.append(0.0)
LIMITS.pop()
call("LIMITS changed, and changed back", two, 3)
LIMITS[1] = 2.5
call("LIMITS[1] = 2.5", two, 3)

# %% [markdown]
# What cannot be in one program is cut into segments. The second call compiles nothing.


# %%
@paddle.jit.to_static(full_graph=False)
def cut(x):
    y = x * 2.0 + 1.0
    if float(y.sum()) > 3.0:
        y = y - 1.0
    z = (y * y).sum()
    print("so far", z.item())
    return z.sqrt()


for _ in range(2):
    for segment in paddle.jit.explain(cut, paddle.ones([2])).segments:
        print(f"{', '.join(segment.ops):24} {segment.how:10} {segment.reason}")

# %% [markdown]
# ## There and back
#
# The exact text of a program can be read back. It keeps the names of symbols, and floats in full.

# %%
program = trace(lambda x: x * 0.1, InputSpec(["B", 3], "float32", "x")).program
text = program.to_string("exact")
again = parse(text)
print(again == program)
try:
    parse(text.replace("(%0, %1)", "(%0, %9)"))
except ValueError as error:
    print(error)

# %% [markdown]
# ## The gradient of a program
#
# The rules of chapter 1, run under a trace. `w` wants a gradient, `x` does not: how many products are in it?

# %%
before = traced.program.num_ops()
(dw,) = append_backward(traced.program, traced.output_values, [traced.input_values[1]])
names = [op.name().partition(".")[2] for op in traced.program.walk()][before:]
print(names)
print("products:", names.count("matmul"))

# %% [markdown]
# Does it compute the same as the tape?

# %%
from minipd.ir.builder import Builder

Builder(traced.program.global_block()).output("dw", dw)
rng = np.random.default_rng(0)
feed = {"x": rng.standard_normal((5, 8)).astype("float32"), "w": rng.standard_normal((8, 4)).astype("float32")}
out = Executor(verify(traced.program)).run(feed)

w = paddle.to_tensor(feed["w"], stop_gradient=False)
layer(paddle.to_tensor(feed["x"]), w).backward()
print("the same to six digits:", np.allclose(out["dw"], w.grad.numpy(), rtol=1e-6, atol=1e-7))

# %% [markdown]
# ## The gradient of a loop
#
# x to the power n, by a loop whose length only the program knows. What the forward loop pushes, the backward loop pops.


# %%
def power(x, n):
    y = paddle.ones([])
    i = paddle.zeros([], "int64")
    while i < n:
        y = y * x
        i = i + 1
    return y


compiled = paddle.jit.to_static(power)
for n in (0, 1, 5):
    x = paddle.to_tensor(2.0, stop_gradient=False)
    y = compiled(x, paddle.to_tensor(n))
    y.backward()
    print(f"2 ** {n} = {y.item():g}, gradient {x.grad.item():g}, by hand {n * 2 ** (n - 1):g}")


# %%
def cube(x):
    body = lambda i, h: [i + 1, h * x]
    return paddle.static.nn.while_loop(lambda i, h: i < 2, body, [paddle.zeros([], "int64"), x])[1]


looping = trace(cube, InputSpec([], "float32", "x", stop_gradient=False))
append_backward(looping.program, looping.output_values, looping.input_values)
looping.program

# %% [markdown]
# ## In a file
#
# The two files of Paddle 3, byte by byte. Can you find the 3.0? What does the reader say of a file that was cut short,
# or that lies about a size?

# %%
import tempfile
from pathlib import Path

from minipd.io.combined_tensors import separated

net = paddle.nn.Linear(2, 1)
net.weight.set_value(np.float32([[1.0], [2.0]]))
net.bias.set_value(np.float32([3.0]))
with tempfile.TemporaryDirectory() as folder:
    paddle.jit.save(net, f"{folder}/net", input_spec=[InputSpec([None, 2], "float32", "x")])
    data = Path(folder, "net.pdiparams").read_bytes()
    print("read back:", paddle.jit.load(f"{folder}/net")(paddle.to_tensor([[1.0, 1.0]])).tolist())
print(data.hex(" ", -4))

for words, bad in [("whole", data), ("cut short", data[:-1]), ("a lie", data[:23] + b"\x7f" + data[24:])]:
    try:
        print(f"{words}:", separated(bad, ["bias", "weight"]))
    except ValueError as error:
        print(f"{words}:", error)

# %% [markdown]
# ## How much memory will it take?
#
# The lifetimes and the plan of the lesson's example, drawn. Each box is a buffer: positions to the right, bytes
# upwards. Change the function, and look at what becomes of the picture.


# %%
def chain(x, w):
    a = paddle.matmul(x, w)
    b = paddle.matmul(a, w)
    c = paddle.matmul(b, w)
    d = paddle.matmul(c, w)
    return (a + d).sum()


square = InputSpec([8, 8], "float32")
viz.memory(Executor(trace(chain, square, square).program))


# %% [markdown]
# A layer's gradient step needs more: what forward has made is kept for backward. Every operation of the gradient lets
# go of some of it.

# %%
def step(x, w1, w2):
    h = paddle.matmul(x, w1)
    loss = (paddle.matmul(h * paddle.nn.functional.sigmoid(h), w2) ** 2).mean()
    return paddle.grad(loss, [w1, w2])


rows, up, down = [64, 32], [32, 64], [64, 32]
program = trace(step, InputSpec(rows, "float32"), InputSpec(up, "float32", stop_gradient=False),
                InputSpec(down, "float32", stop_gradient=False)).program
viz.memory(Executor(program))

# %% [markdown]
# ## What must wait for what
#
# Two products that know nothing of each other, and one that needs both. The arrows are dependencies that no others
# imply. (Those of memory that is used again have another colour; here there are none.)


# %%
def two_towers(x, w):
    a = paddle.matmul(x, w).tanh()
    b = paddle.matmul(w, x).exp()
    return paddle.matmul(a, b)


graph = Executor(trace(two_towers, square, square).program).dependencies()
viz.dependencies(graph)

# %% [markdown]
# On two streams: who records which event, and who waits for it? Each product takes three seconds here, the others one.

# %%
from minipd.executor.schedule import RaceError, schedule, simulate

SECONDS = {"matmul": 3.0, "tanh": 1.0, "exp": 1.0}


def cost(instruction):
    return SECONDS.get(instruction.label.split()[0], 0.0)


plan = schedule(graph, lambda i: "side" if i.index in (4, 5) else "main")       # the second product, and its exp
print(plan)
line = simulate(plan, cost)
print(f"{line.seconds:g} seconds instead of {sum(map(cost, graph.instructions)):g}, both at work for "
      f"{line.overlapped():g}")
viz.streams(plan, cost)

# %% [markdown]
# Take an event away. On the clock it would have gone well, this time; it is an error all the same.

# %%
plan.lanes["main"].remove(("wait", 1))
try:
    simulate(plan, cost)
except RaceError as error:
    print(error)

# %% [markdown]
# ## Now you
#
# `make exercise-2` writes the files, `make check-2` grades them. The lesson's last section says what each is about.
