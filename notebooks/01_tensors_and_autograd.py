# %% [markdown]
# # Chapter 1: Tensors and autograd
#
# The lesson is `chapters/01_tensors_and_autograd/README.md`. Here you play with it: change a number, run the cell, see
# what becomes of it. Every cell runs with the later floors closed (`MINIPD_FLOOR=1`).

# %%
import sys

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
# ## Memory, shape, strides
#
# One line of six cells, read in six ways. Which of these share memory with x? Guess, then write into the last one.

# %%
x = paddle.arange(6).reshape([2, 3])
readings = {"x": x, "x.T": x.T, "x[::-1, 1:]": x[::-1, 1:], "x[1]": x[1], "x.reshape([3, 2])": x.reshape([3, 2]),
            "x.T.reshape([6])": x.T.reshape([6])}


def show():
    for name, t in readings.items():
        kind = "x itself" if t is x else "view" if t._is_shared_buffer_with(x) else "copy"
        print(f"{name:18} shape {list(t.shape)!s:7} strides {t.strides!s:8} from cell {t.offset // t.itemsize}  "
              f"{kind:9} {t.tolist()}")


show()

# %%
x.reshape([3, 2])[2, 0] = 400       # the fifth cell
show()

# %% [markdown]
# When is a reshape a view? If there are strides that lead to the same cells in the same order. Change the numbers.

# %%
from minipd.framework.layout import view_strides

for shape, strides, target in [((2, 3), (3, 1), (6,)), ((3, 2), (1, 3), (6,)), ((4, 2), (1, 4), (2, 2, 2)),
                               ((6,), (-1,), (2, 3)), ((2, 3), (1, 0), (6,)), ((2, 1, 3), (3, 77, 1), (6,))]:
    found = view_strides(shape, strides, target)
    print(f"shape {shape!s:10} strides {strides!s:11} as {target!s:10}", found or "has to be copied")

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
x, w = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False), paddle.to_tensor([10.0, 20.0, 30.0])
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
# ## Gradients as rows
#
# Functions that have no row are made of rows, and so is their gradient. The standard deviation, as the tape sees it:

# %%
x = paddle.to_tensor([1.0, 3.0], stop_gradient=False)
x.name = "x"
viz.tape(paddle.std(x))

# %% [markdown]
# One row of each kind: what it saves, and where the gradient [1, 10, 100] goes. Element-wise: to the same place, times
# the slope. A sum: to everybody. A movement: back. A scan: to all that come before.

# %%
kinds = {"element-wise: x * x": lambda x: x * x,
         "reduction: x.sum(), and its copies": lambda x: x.sum() * paddle.ones([3]),
         "movement: x[::-1]": lambda x: x[::-1],
         "movement: gather [0, 2, 0]": lambda x: paddle.gather(x, paddle.to_tensor([0, 2, 0])),
         "scan: cumsum": lambda x: paddle.cumsum(x)}
for name, f in kinds.items():
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    f(x).backward(paddle.to_tensor([1.0, 10.0, 100.0]))
    print(f"{name:36} {x.grad.tolist()}")
for name in ("sin", "sum", "transpose", "gather", "cumsum"):
    print(f"{ROWS[name]!r:60} saves {saved(ROWS[name]) or 'nothing'}")

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
# ## Derivatives of derivatives
#
# With `create_graph=True` the backward pass is recorded. Here is the tape of the first derivative of x * x * x: two
# products of the function itself (1 and 3), and below them what the gradient rules made of their values.

# %%
x = paddle.to_tensor(3.0, stop_gradient=False)
x.name = "x"
y = x * x * x
(first,) = paddle.grad(y, x, create_graph=True)
viz.tape(first, title="3 x^2, computed by backward")


# %% [markdown]
# So it can be differentiated again, and again. The tape grows with each order; how fast, depends on the rules. Put in a
# function of your own.


# %%
def nodes(t):
    """How many nodes there are on the tape behind t."""
    seen, todo = set(), [t.node]
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += [edge[0] for edge in node.edges if edge is not None]
    return len(seen)


for name, f in {"x^4": lambda x: x * x * x * x, "sin": paddle.sin, "exp": paddle.exp, "tanh": paddle.tanh}.items():
    x = paddle.to_tensor(0.5, "float64", stop_gradient=False)
    d = f(x)
    line = f"{name:5} {d.item():8.4f} ({nodes(d)})"
    for _ in range(4):
        (d,) = paddle.grad(d, x, create_graph=True)
        line += f" {d.item():9.4f} ({0 if d.stop_gradient else nodes(d)})"
    print(line)
print("value (nodes) of the function and of its first four derivatives at x = 0.5; 0 nodes: a constant")

# %% [markdown]
# A Jacobian is computed row by row, as its rows are read. The hook counts the backward passes.

# %%
from minipd.autograd import PyLayer, hessian, jacobian, recompute

x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
y = paddle.stack([x[0] * x[1], x[0] * x[0], x[1]])
y.register_hook(lambda g: print("   a pass, from", g.tolist()))
J = jacobian(y, x)
print("row 1")
print(J[1].tolist())
print("all of it")
print(J[:].tolist())

# %% [markdown]
# A column, out of rows: u^T J is linear in u, so its gradient by u, weighted with v, is J v. Whatever u is.

# %%
for u in ([0.0, 0.0, 0.0], [3.0, -1.0, 7.0]):
    u = paddle.to_tensor(u, stop_gradient=False)
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = paddle.stack([x[0] * x[1], x[0] * x[0], x[1]])
    (row,) = paddle.grad(y, x, u, create_graph=True)
    (column,) = paddle.grad(row, u, paddle.to_tensor([1.0, 10.0]))
    print("u", u.tolist(), "  u^T J", row.tolist(), "  J v", column.tolist())

# %% [markdown]
# The Hessian of a loss, and its product with a vector, which needs no Hessian.

# %%
x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
v = paddle.to_tensor([1.0, 10.0])
H = hessian(x[0] * x[0] * x[1], x)[:]
(g,) = paddle.grad(x[0] * x[0] * x[1], x, create_graph=True)
(hv,) = paddle.grad(g, x, v)
print(H.tolist(), (H @ v).tolist(), hv.tolist())

# %% [markdown]
# ### A plate that bends
#
# `examples/plate_bending.py`, on a small network and few points: its loss holds fourth derivatives of the network, and
# training takes one more. The plate's solution is known, and the network never sees it.

# %%
sys.path.insert(0, "..")
from examples import plate_bending as plate

paddle.set_default_dtype("float64")
a, b = plate.coordinates(plate.points(6)[0])
w = plate.Deflection(12)(a, b)
second = plate.second_derivatives(w, a, b)
fourth = plate.second_derivatives(second[0] + second[1], a, b)
print("nodes on the tape of the network", nodes(w), " of w_xx", nodes(second[0]), " of the Laplacian's w_xx",
      nodes(fourth[0]))
error = plate.solve(steps=80, width=12, n=6, report=0)
print("after 80 steps the deflection is right to 10 % everywhere:", error < 0.1)
paddle.set_default_dtype("float32")


# %% [markdown]
# ### A rule of your own
#
# A `PyLayer` is a node like any other. Its backward is made of operators, so it can be differentiated, too: see what
# stands behind its derivative.


# %%
class Cube(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g * 3.0 * x * x


x = paddle.to_tensor(2.0, stop_gradient=False)
x.name = "x"
y = Cube.apply(x) + x
viz.tape(y, title="x^3 + x, with a PyLayer")

# %%
(first,) = paddle.grad(y, x, create_graph=True)
(second,) = paddle.grad(first, x, create_graph=True)
print(first.item(), second.item())
viz.tape(first, title="its derivative, 3 x^2 + 1")

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
# ## What a tape weighs
#
# Sixteen blocks tanh(exp(h) / 10), each of which saves two arrays. In groups of k, recomputed: how many arrays are
# alive after the forward pass, and how many at most in backward? (Python counts the bytes.)

# %%
import tracemalloc

x = paddle.ones([100_000])
x.stop_gradient = False


def group(h, k):
    for _ in range(k):
        h = paddle.tanh(paddle.exp(h) * 0.1)
    return h


for k in (0, 1, 2, 4, 8, 16):
    tracemalloc.start()
    h = x
    for _ in range(16 // max(k, 1)):
        h = recompute(group, h, k) if k else group(h, 1)
    kept = tracemalloc.get_traced_memory()[0] / x.nbytes
    h.sum().backward()
    most = tracemalloc.get_traced_memory()[1] / x.nbytes
    tracemalloc.stop()
    print(f"{f'groups of {k}' if k else 'all kept':13} {round(kept):3} {'o' * round(kept)}")
    print(f"{'':13} {round(most):3} {'*' * round(most)}")
print("o: after forward;  *: the most in backward")

# %% [markdown]
# The second run draws the same dropout mask as the first, whatever has been drawn in between.

# %%
paddle.seed(3)
x = paddle.ones([8])
x.stop_gradient = False
y = recompute(lambda x: paddle.nn.functional.dropout(x * x, 0.5), x)
paddle.rand([100])
y.sum().backward()
print(y.tolist())
print(x.grad.tolist())

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
# ## A network that reads
#
# A convolution is a product of matrices, one of which is a view: the windows of x, by strides.

# %%
x = paddle.to_tensor([1.0, 2.0, 4.0, 8.0], stop_gradient=False)
windows = paddle.as_strided(x, [2, 3], [1, 1])
print(windows.tolist())
weights = paddle.to_tensor([10.0, 1.0])
print((weights @ windows).tolist())
print(paddle.nn.functional.conv1d(x.reshape([1, 1, 4]), weights.reshape([1, 1, 2])).tolist())
windows.backward(paddle.to_tensor([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]))
print(x.grad.tolist(), "the gradient of a copy is a sum")

# %% [markdown]
# Digits, drawn at random: a seven and an eight.

# %%
from examples.mnist_cnn import Digits, LeNet, accuracy, drawn

rng = np.random.default_rng(1)
pair = np.concatenate([drawn(7, 1, rng)[0], drawn(8, 1, rng)[0]], axis=1)
for line in pair[1:-1:2]:
    print("".join(" .#"[int(ink > 0.35) + int(ink > 0.7)] for ink in line).rstrip())

# %% [markdown]
# LeNet learns to read them. One pass over 960 images; then 200 that it has not seen.

# %%
paddle.seed(0)
model = LeNet()
print(sum(p.size for p in model.parameters()), "numbers to learn")
optimizer = paddle.optimizer.Adam(2e-3, parameters=model.parameters())
losses = []
for images, labels in paddle.io.DataLoader(Digits(960, seed=0), batch_size=32, shuffle=True):
    loss = paddle.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    losses.append(loss.item())
print(f"the loss begins near ln 10 = {np.log(10):.1f}:", abs(losses[0] - np.log(10)) < 0.3)
read = accuracy(model, paddle.io.DataLoader(Digits(200, seed=1), batch_size=100))
print("reads more than half of them:", read > 0.5)

# %% [markdown]
# ## Now you
#
# `make exercise-1` writes the files, `make check-1` grades them. The lesson's last section says what each is about.
