# %% [markdown]
# # Chapter 2: Programs
#
# The lesson is `chapters/02_programs/README.md`. Here you trace functions of your own, look at what was written, break
# it, differentiate it, and count its memory. All later floors are closed (`MINIPD_FLOOR=2`).

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
# Python's `if` on a traced tensor cannot be decided. The error says what to do instead.


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
# ## How much memory will it take?
#
# The lifetimes and the plan of the lesson's example, drawn. Each box is a buffer: positions to the right, bytes
# upwards. Change the function, and look at what becomes of the picture.

# %%
from minipd.executor.layout import Layout
from minipd.viz.svg import Sheet


def chain(x, w):
    a = paddle.matmul(x, w)
    b = paddle.matmul(a, w)
    c = paddle.matmul(b, w)
    d = paddle.matmul(c, w)
    return (a + d).sum()


def arena(fn, *specs):
    """The buffers of the program of `fn`, where they lie and when they are alive."""
    layout = Layout(Executor(trace(fn, *specs).program).prepared, {})
    positions, size = len(layout.prepared.items), layout.plan.size
    wide, high = 700 / positions, 180 / size
    sheet = Sheet(f"An arena of {size} bytes; at least {layout.plan.bound} are needed")
    sheet.line([(0, 0), (700, 0)]).line([(0, 0), (0, -180)]).text(-8, -172, f"{size} bytes", "end")
    for value, buffer in layout.own.items():
        if buffer.merged is None:
            x, y = buffer.start * wide, -(buffer.offset + buffer.size) * high
            width, height = (buffer.end - buffer.start + 1) * wide, buffer.size * high
            name = value.get_defining_op().name().partition(".")[2]
            sheet.rect(x, y, width, height, "input", f"{value}")
            if height > 12:
                sheet.text(x + width / 2, y + height / 2 + 4, name, "mid", 10)
    for n in range(0, positions, 1 + positions // 15):
        sheet.text((n + 0.5) * wide, 16, str(n), "mid dim", 10)
    return sheet.done()


square = InputSpec([8, 8], "float32")
arena(chain, square, square)


# %% [markdown]
# A layer's gradient step needs more: what forward has made is kept for backward. Every operation of the gradient lets
# go of some of it.

# %%
def step(x, w1, w2):
    h = paddle.matmul(x, w1)
    loss = (paddle.matmul(h * paddle.nn.functional.sigmoid(h), w2) ** 2).mean()
    return paddle.grad(loss, [w1, w2])


rows, up, down = [64, 32], [32, 64], [64, 32]
arena(step, InputSpec(rows, "float32"), InputSpec(up, "float32", stop_gradient=False),
      InputSpec(down, "float32", stop_gradient=False))

# %% [markdown]
# ## Now you
#
# `make exercise-2` writes the files, `make check-2` grades them. The lesson's last section says what each is about.
