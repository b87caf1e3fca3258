# %% [markdown]
# # Chapter 1: Tensors and autograd
#
# The lesson is `chapters/01_tensors_and_autograd/README.md`. Here you play with it: change a number, run the cell, see
# what becomes of it. Every cell runs with the later floors closed (`MINIPD_FLOOR=1`).

# %%
import numpy as np

import minipd as paddle
from minipd import viz
from minipd.framework.context import MetaOnly, using
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ops.matrix import saved

# %% [markdown]
# ## One call, and the stack behind it
#
# `x * x` goes through `dispatch`. The tape notes the call, because x wants a gradient; the kernel computes.

# %%
x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
y = (x * x).sum()
y.item(), y.node, y.node.edges[0][0]

# %% [markdown]
# The same line with another interpreter on the ground computes nothing. This tensor would need four terabytes:

# %%
big = Tensor(Meta((1_000_000, 1_000_000), np.dtype("float32")))
with using(ground=MetaOnly()):
    print((big * 2.0 + x[:1]).shape)

# %% [markdown]
# ## What an operator is
#
# A row: schema, kernels, gradient rules, and what these save. (In brackets: only shape and dtype.)

# %%
for name in ("softmax", "add", "multiply", "exp", "matmul"):
    print(f"{ROWS[name]!r:55} saves {saved(ROWS[name])}")

# %% [markdown]
# What the tape keeps depends on who wants a gradient. A product with a constant keeps the constant, and of x only shape
# and dtype. (Kept with its values: payload, owner, version. Else: shape and dtype.)

# %%
w = paddle.to_tensor([10.0, 20.0, 30.0])
print([len(kept) for kept in (x * w).node.saved], "x * w, w a constant")
print([len(kept) for kept in (x * x).node.saved], "x * x")
print([len(kept) for kept in (x + w).node.saved], "x + w")

# %% [markdown]
# ## The gradient of softmax, three ways
#
# By the rule, by the full Jacobian (which nobody would build for a large x), and by differences.

# %%
values, g = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.0, -2.0])

x = paddle.to_tensor(values, stop_gradient=False)
paddle.softmax(x).backward(paddle.to_tensor(g))

p = np.exp(values) / np.exp(values).sum()
jacobian = np.diag(p) - np.outer(p, p)


def loss(v):
    e = np.exp(v)
    return (g * e / e.sum()).sum()


step = 1e-6
differences = [(loss(values + step * unit) - loss(values - step * unit)) / (2 * step) for unit in np.eye(3)]
print(np.round(x.grad.numpy(), 6))
print(np.round(jacobian @ g, 6))
print(np.round(differences, 6))

# %% [markdown]
# ## Broadcasting, and its way back
#
# The gradient of a copy is a sum. Before you run this cell: which shapes will come, and which numbers?

# %%
x = paddle.to_tensor([[1.0], [2.0]], stop_gradient=False)
y = paddle.to_tensor([10.0, 20.0, 30.0], stop_gradient=False)
(x * y).sum().backward()
print(x.grad.tolist(), y.grad.tolist())

# %% [markdown]
# ## The order of backward
#
# The graph of the lesson. Its tape, drawn: gradients flow along the arrows, and the numbers say in which order the
# nodes were made. Backward takes the largest number first.

# %%
a = paddle.to_tensor(2.0, stop_gradient=False)
b = paddle.to_tensor(3.0, stop_gradient=False)
a.name, b.name = "a", "b"
c, d = a + b, a * b
y = c + d + c * d
viz.tape(y)

# %% [markdown]
# A hook sees what arrives at c: one gradient, and complete.

# %%
c.register_hook(lambda g: print("c receives", g.item()))
d.register_hook(lambda g: print("d receives", g.item()))
y.backward()
print("a", a.grad.item(), " b", b.grad.item())

# %% [markdown]
# Now the popular proposal: call a node's rule, then go into its inputs. In ten lines, on numbers. Each call of a rule
# is counted; the results are right, but look at the counts when diamonds stand in a row.


# %%
def by_depth(slopes, name, g, grads, calls):
    """slopes: name -> [(input, derivative by it)]."""
    grads[name] = grads.get(name, 0.0) + g
    for source, slope in slopes.get(name, []):
        calls[0] += 1
        by_depth(slopes, source, g * slope, grads, calls)


for diamonds in (1, 2, 5, 10, 15):
    slopes = {f"h{i + 1}": [(f"h{i}", 1.0), (f"h{i}", 1.0)] for i in range(diamonds)}      # h1 = h0 + h0, h2 = h1 + h1
    grads, calls = {}, [0]
    by_depth(slopes, f"h{diamonds}", 1.0, grads, calls)
    print(f"{diamonds:3} diamonds: gradient {grads['h0']:7.0f}, {calls[0]:6} calls by depth, {2 * diamonds:3} in order")

# %% [markdown]
# ## Writing in place
#
# The tape saved h for the gradient of `h * h`. Whoever writes h afterwards is found out. Which of the other writes are
# legal?

# %%
x = paddle.to_tensor(3.0, stop_gradient=False)
h = x * 1.0
y = h * h
h.add_(paddle.to_tensor(1.0))
try:
    y.backward()
except RuntimeError as error:
    print(error)

# %%
h = x * 1.0
h.add_(paddle.to_tensor(1.0))       # before it is used: legal
(h * h).backward()
print(x.grad.item())

w = paddle.to_tensor(5.0)
y = x + w
w.zero_()                           # the rule of + reads no values: legal
y.backward()
print(x.grad.item(), "(gradients of several passes add up)")

# %% [markdown]
# ## The same random numbers on any mesh
#
# Four windows of a 4 by 4 array, drawn one by one, and put together. (The second one alone would do: no state.)

# %%
from minipd.framework.philox import key_of, uniform

key = key_of(7, "a layer")
whole = uniform(key, (4, 4))
quarters = [[uniform(key, (2, 2), window=((4, 4), (row, column))) for column in (0, 2)] for row in (0, 2)]
print(np.round(whole, 3))
print("put together from four windows, equal:", bool((np.block(quarters) == whole).all()))

# %% [markdown]
# ## A model in twenty lines
#
# All of it together: y = sin x, learnt by two layers. Change the width or the learning rate.

# %%
paddle.seed(1)
xs = paddle.to_tensor(np.linspace(-3, 3, 64, dtype="float32").reshape(64, 1))
ys = paddle.sin(xs)
model = paddle.nn.Sequential(paddle.nn.Linear(1, 32), paddle.nn.Silu(), paddle.nn.Linear(32, 1))
optimizer = paddle.optimizer.AdamW(learning_rate=0.02, parameters=model.parameters())
losses = []
for _ in range(300):
    loss = ((model(xs) - ys) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(loss.item())
print(f"the loss at first: {losses[0]:.3f}; after 300 steps it is below 0.01:", losses[-1] < 0.01)

# %% [markdown]
# ## Now you
#
# `make exercise-1` writes the files, `make check-1` grades them. The lesson's last section says what each is about.
