"""Products of vectors and matrices: what follows from matmul and multiply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.dim import prod, same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import aligned, whole
from minipd.ops.broadcast import expand
from minipd.ops.complex import conj
from minipd.ops.diagonal import diagonal
from minipd.ops.linalg import matmul
from minipd.ops.making import into
from minipd.ops.promotion import promoted
from minipd.ops.reorder import roll
from minipd.ops.shapes import agree, normalize_axis, stretches

__all__ = ["addmm", "baddbmm", "bmm", "cross", "dot", "ger", "inner", "kron", "mm", "mv", "outer",
           "tensordot", "trace", "vecdot"]


def _require_ndim(what: str, *wanted: tuple[Tensor, int]) -> None:
    if any(x.ndim != n for x, n in wanted):
        raise ValueError(f"{what}: expected operands of {' and '.join(str(n) for _, n in wanted)} dimensions, got "
                         f"{' and '.join(describe(x) for x, _ in wanted)}")


def mm(input: Tensor, mat2: Tensor, name: str | None = None) -> Tensor:
    """The matrix product, as `matmul`.

    >>> from minipd.ops.creation import to_tensor
    >>> mm(to_tensor([[1.0, 2.0]]), to_tensor([[3.0], [4.0]])).tolist()
    [[11.0]]
    """
    return matmul(input, mat2)


@whole
def bmm(x: Tensor, y: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The product of each matrix of x with that of y: [b, m, k] x [b, k, n] -> [b, m, n].

    Raises: ValueError for other numbers of dimensions, or sizes that do not fit.

    >>> from minipd.ops.creation import ones
    >>> bmm(ones([2, 1, 3]), ones([2, 3, 1])).tolist()
    [[[3.0]], [[3.0]]]
    """
    _require_ndim("bmm", (x, 3), (y, 3))
    if not agree(y.payload.shape[0], x.payload.shape[0], "bmm: the number of matrices"):
        raise ValueError(f"bmm: expected as many matrices in both operands, got {describe(x)} and {describe(y)}")
    x, y = aligned(("amk", "akn"), x, y, prefer=("a",))
    return into(out, matmul(x, y))


@whole
def mv(x: Tensor, vec: Tensor, name: str | None = None) -> Tensor:
    """A matrix times a vector: [m, n] x [n] -> [m].

    >>> from minipd.ops.creation import to_tensor
    >>> mv(to_tensor([[1.0, 2.0], [3.0, 4.0]]), to_tensor([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    _require_ndim("mv", (x, 2), (vec, 1))
    return matmul(x, vec)


@whole
def dot(x: Tensor, y: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The sum of the products of two vectors' elements; of two matrices, row by row: [n] -> [], [m, n] -> [m].

    Raises: ValueError for operands of other, or of different, shapes.

    >>> from minipd.ops.creation import to_tensor
    >>> dot(to_tensor([1, 2, 3]), to_tensor([4, 5, 6])).item()
    32
    """
    if x.ndim not in (1, 2) or tuple(x.payload.shape) != tuple(y.payload.shape):
        raise ValueError(f"dot: expected two tensors of one shape, of 1 or 2 dimensions, got {describe(x)} and "
                         f"{describe(y)}")
    return into(out, (x * y).sum(-1))


def vecdot(x: Tensor, y: Tensor, axis: int = -1, name: str | None = None) -> Tensor:
    """The inner product of vectors along `axis`: the sum of conj(x) * y, broadcast.

    >>> from minipd.ops.creation import to_tensor
    >>> vecdot(to_tensor([[1.0, 2.0], [3.0, 4.0]]), to_tensor([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    return (conj(x) * y).sum(axis)


def inner(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The inner product over the last dimension: [..., k] and [..., k] -> [(those of x), (those of y)].  A 0-D operand
    multiplies.

    Raises: ValueError if the last dimensions differ.

    >>> from minipd.ops.creation import to_tensor
    >>> inner(to_tensor([[1.0, 2.0], [3.0, 4.0]]), to_tensor([[1.0, 1.0]])).tolist()
    [[3.0], [7.0]]
    """
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    xs, ys = x.payload.shape, y.payload.shape
    if not agree(ys[-1], xs[-1], "inner: the last dimensions"):
        raise ValueError(f"inner: expected operands with equal last dimensions, got {describe(x)} and {describe(y)}")
    rows, columns = x.reshape([prod(xs[:-1]), xs[-1]]), y.reshape([prod(ys[:-1]), ys[-1]])
    return matmul(rows, columns, transpose_y=True).reshape([*xs[:-1], *ys[:-1]])


@whole
def outer(x: Tensor, y: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Every element of x times every element of y, both flattened: -> [elements of x, elements of y].

    >>> from minipd.ops.creation import to_tensor
    >>> outer(to_tensor([1, 2]), to_tensor([3, 4, 5])).tolist()
    [[3, 4, 5], [6, 8, 10]]
    """
    return into(out, x.flatten().unsqueeze(1) * y.flatten())


def ger(x: Tensor, y: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The same as `outer`."""
    return outer(x, y, out=out)


@whole
def addmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0,
          name: str | None = None) -> Tensor:
    """beta * input + alpha * (x @ y), where input broadcasts to the product.

    x: [m, k].  y: [k, n].
    Raises: ValueError if the sizes do not fit.

    >>> from minipd.ops.creation import ones
    >>> addmm(ones([1]), ones([2, 3]), ones([3, 1]), beta=0.5).tolist()
    [[3.5], [3.5]]
    """
    _require_ndim("addmm", (x, 2), (y, 2))
    return _add_product("addmm", input, matmul(x, y), beta, alpha)


@whole
def baddbmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0,
            name: str | None = None) -> Tensor:
    """beta * input + alpha * bmm(x, y), where input broadcasts to the product.

    >>> from minipd.ops.creation import ones
    >>> baddbmm(ones([1]), ones([1, 2, 3]), ones([1, 3, 1]), beta=0.5).tolist()
    [[[3.5], [3.5]]]
    """
    return _add_product("baddbmm", input, bmm(x, y), beta, alpha)


def _add_product(what: str, input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    target = tuple(product.payload.shape)
    if not stretches(what, tuple(input.payload.shape), target):
        raise ValueError(f"{what}: expected an input that broadcasts to the product {describe(product)}, got "
                         f"{describe(input)}")
    return input * beta + product * alpha


def cross(x: Tensor, y: Tensor, axis: int | None = 9, name: str | None = None) -> Tensor:
    """The cross product of the 3-vectors along `axis`; by default the first dimension of size 3.

    Raises: ValueError for operands of different shapes, or if there is no such dimension.

    >>> from minipd.ops.creation import to_tensor
    >>> cross(to_tensor([1.0, 0.0, 0.0]), to_tensor([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    shape = tuple(x.payload.shape)
    if shape != tuple(y.payload.shape):
        raise ValueError(f"cross: expected operands of one shape, got {describe(x)} and {describe(y)}")
    if axis is None or axis == 9:
        axis = next((i for i, d in enumerate(shape) if same(d, 3)), None)
        if axis is None:
            raise ValueError(f"cross: expected a dimension of size 3, got {describe(x)}")
    axis = normalize_axis("cross", axis, x.ndim)
    if not agree(shape[axis] if shape else 1, 3, "cross: the axis"):
        raise ValueError(f"cross: expected axis {axis} of size 3, got {describe(x)}")

    return roll(x, -1, axis) * roll(y, -2, axis) - roll(x, -2, axis) * roll(y, -1, axis)


@whole
def trace(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix: of the elements whose number along axis2 is that along axis1 plus offset.

    Raises: ValueError if both axes are one.

    >>> from minipd.ops.creation import to_tensor
    >>> trace(to_tensor([[1, 2], [3, 4]])).item(), trace(to_tensor([[1, 2], [3, 4]]), offset=1).item()
    (5, 2)
    """
    return diagonal(x, offset, axis1, axis2).sum(-1)


@whole
def kron(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """The Kronecker product: y as often as x has elements, each time multiplied by one of them.

    Size i of the result is the product of both operands' sizes i, counted from the last; missing ones are 1.

    >>> from minipd.ops.creation import to_tensor
    >>> kron(to_tensor([1, 10]), to_tensor([[1, 2]])).tolist()
    [[1, 2, 10, 20]]
    """
    x, y = promoted("kron", x, y)
    n = max(x.ndim, y.ndim)
    xs, ys = ((1,) * (n - t.ndim) + tuple(t.payload.shape) for t in (x, y))
    product = (x.reshape([d for size in xs for d in (size, 1)]) * y.reshape([d for size in ys for d in (1, size)]))
    return product.reshape([a * b for a, b in zip(xs, ys, strict=True)])


def tensordot(x: Tensor, y: Tensor, axes: Any = 2, name: str | None = None) -> Tensor:
    """The sum of products over some axes of x and as many of y.

    axes: an int n: the last n of x and the first n of y.  A list of ints: those axes of both.  Two lists: the axes of
    x, and of y; if one of them is shorter, the rest of the other completes it.
    -> the other axes of x, then those of y
    Raises: ValueError if sizes differ.

    >>> from minipd.ops.creation import to_tensor
    >>> tensordot(to_tensor([[1.0, 2.0], [3.0, 4.0]]), to_tensor([1.0, 10.0]), axes=[[0], [0]]).tolist()
    [31.0, 42.0]
    """
    x, y = promoted("tensordot", x, y)
    of_x, of_y = _contracted(x, y, axes)
    xs, ys = x.payload.shape, y.payload.shape
    for i, (a, b) in enumerate(zip(of_x, of_y, strict=True)):
        if same(xs[a], 1) != same(ys[b], 1):                    # size 1 repeats, as in Paddle
            wide = xs[a] * ys[b]
            x = expand(x, [wide if k == a else d for k, d in enumerate(x.payload.shape)])
            y = expand(y, [wide if k == b else d for k, d in enumerate(y.payload.shape)])
        elif not agree(ys[b], xs[a], f"tensordot: pair {i} of axes"):
            raise ValueError(f"tensordot: expected axis {a} of {describe(x)} and axis {b} of {describe(y)} to have one "
                             "size")
    rest_x = [a for a in range(x.ndim) if a not in of_x]
    rest_y = [b for b in range(y.ndim) if b not in of_y]
    xs, ys = x.payload.shape, y.payload.shape
    inside = prod(xs[a] for a in of_x)
    left = x.transpose([*rest_x, *of_x]).reshape([prod(xs[a] for a in rest_x), inside])
    right = y.transpose([*of_y, *rest_y]).reshape([inside, prod(ys[b] for b in rest_y)])
    return matmul(left, right).reshape([xs[a] for a in rest_x] + [ys[b] for b in rest_y])


def _contracted(x: Tensor, y: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    """The axes to sum over, of x and of y, in pairs, from the front."""
    axes = axes.tolist() if isinstance(axes, Tensor) else axes
    if isinstance(axes, int):
        most = min(x.ndim, y.ndim)
        if not 0 <= axes <= most:
            raise ValueError(f"tensordot: expected 0 to {most} axes for {describe(x)} and {describe(y)}, got {axes}")
        return list(range(x.ndim - axes, x.ndim)), list(range(axes))
    listed = [a.tolist() if isinstance(a, Tensor) else a for a in axes]
    if any(isinstance(a, Sequence) for a in listed):
        first, second = (listed * 2)[:2]
    else:
        first = second = listed
    of_x = [normalize_axis("tensordot", a, x.ndim) for a in ([first] if isinstance(first, int) else first)]
    of_y = [normalize_axis("tensordot", b, y.ndim) for b in ([second] if isinstance(second, int) else second)]
    of_x, of_y = of_x + of_y[len(of_x):], of_y + of_x[len(of_y):]
    if len(set(of_x)) != len(of_x) or len(set(of_y)) != len(of_y):
        raise ValueError(f"tensordot: axes {axes} name an axis twice")
    return of_x, of_y
