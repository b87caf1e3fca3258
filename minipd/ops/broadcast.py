"""Broadcasting and its adjoint.

A size that comes from another tensor is an operand, not an attribute (decision 5): `expand_as(x, target)` and
`reduce_as(x, target)` read the target's shape only.  So a program with symbolic dimensions, and a shard of a tensor,
need no other rule than the whole tensor does.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import same
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.creation import shape_tuple, sizes
from minipd.ops.making import spread
from minipd.ops.shapes import broadcast_shapes, stretches

__all__ = ["broadcast_tensors", "broadcast_to", "expand", "expand_as", "reduce_as"]


def _check_expands(what: str, shape: tuple, target: tuple) -> None:
    if not stretches(what, shape, target):
        raise ValueError(f"{what}: shape {list(shape)} does not stretch to {list(target)}; sizes must be equal or 1")


def _stretched(xp: Any, x: Any, shape: tuple) -> Any:
    """xp.broadcast_to(x, shape).  Of numpy's, whose checks cost more than the view, only the view."""
    if not hasattr(xp, "nditer"):
        return xp.broadcast_to(x, shape)
    flags = "multi_index", "refs_ok", "zerosize_ok"
    return xp.nditer((x,), flags, ("readonly",), itershape=shape, order="C").itviews[0]


@op("expand", Trait.VIEW, Trait.EXACT)
class Expand:
    """x repeated along dimensions of size 1 (and along new leading ones) to `shape`, without a copy."""

    mutable = ("shape",)

    def infer_meta(x, *, shape):
        _check_expands("expand", x.shape, shape)
        return Meta(shape, x.dtype)

    def kernel(xp, x, *, shape):
        return _stretched(xp, x, shape)

    def vjp_x(g, x: Meta):
        return reduce_as(g, x)


@op("expand_as", Trait.VIEW, Trait.EXACT)
class ExpandAs:
    """x repeated to the shape of `target`, without a copy."""

    def infer_meta(x, target: Meta):
        _check_expands("expand_as", x.shape, target.shape)
        return Meta(target.shape, x.dtype)

    def kernel(xp, x, target):
        return _stretched(xp, x, target.shape)

    def vjp_x(g, x: Meta):
        return reduce_as(g, x)


@op("reduce_as")
class ReduceAs:
    """x summed down to the shape of `target`: the adjoint of broadcasting."""

    def infer_meta(x, target: Meta):
        _check_expands("reduce_as", target.shape, x.shape)
        return Meta(target.shape, x.dtype)

    def kernel(xp, x, target):
        return x.sum(axis=axes_to_sum(x.shape, target.shape), keepdims=True, dtype=x.dtype).reshape(target.shape)

    def kernel_out(xp, out, x, target):
        keep = out.reshape((1,) * (x.ndim - out.ndim) + out.shape)
        xp.add.reduce(x, axis=axes_to_sum(x.shape, target.shape), keepdims=True, dtype=x.dtype, out=keep)

    def vjp_x(g, x: Meta):
        return expand_as(g, x)


@op("shape_only", Trait.EXACT)
class ShapeOnly:
    """A value of which only the shape may be read (a shape-only operand): it occupies one element of memory."""

    def infer_meta(*, shape, dtype):
        return Meta(shape, dtype)

    def kernel(xp, *, shape, dtype):
        return xp.broadcast_to(xp.zeros((), dtype), shape)


def axes_to_sum(shape: tuple, target: tuple) -> tuple[int, ...]:
    """The axes of `shape` along which an operand of shape `target` was repeated, when it was stretched to `shape`: the
    new leading ones, and those where it has size 1 and `shape` has not.  What is summed over them fits the operand.

    shape: what the operand was broadcast to.  target: the operand's own shape; it has at most as many dimensions.

    >>> axes_to_sum((4, 2, 3), (2, 1))
    (0, 2)
    """
    lead = len(shape) - len(target)
    return tuple(range(lead)) + tuple(
        lead + i for i, d in enumerate(target) if d == 1 and shape[lead + i] != 1)


def reduce_to(g: Tensor, x: Any) -> Tensor:
    """The gradient g of a broadcast operand x, summed back to the operand's shape."""
    return g if g.payload.shape == x.shape else ReduceAs(g, as_operand(x))


def as_operand(x: Any) -> Any:
    """A shape-only operand: a Tensor as it is; a Meta (what a gradient rule saved) becomes a Tensor without values."""
    return x if isinstance(x, Tensor) else Tensor(x)


def expand_as(x: Tensor, y: Any, name: str | None = None) -> Tensor:
    """x repeated to the shape of y.

    >>> from minipd.ops.creation import to_tensor, ones
    >>> expand_as(to_tensor([1, 2]), ones([2, 2])).tolist()
    [[1, 2], [1, 2]]
    """
    return ExpandAs(x, as_operand(y))


def reduce_as(x: Tensor, target: Any, name: str | None = None) -> Tensor:
    """x summed down to the shape of `target`.

    >>> from minipd.ops.creation import to_tensor, ones
    >>> reduce_as(to_tensor([[1, 2], [3, 4]]), ones([2])).tolist()
    [4, 6]
    """
    return ReduceAs(x, as_operand(target))


@spread(1)
def expand(x: Tensor, shape: Any, name: str | None = None) -> Tensor:
    """x repeated along dimensions of size 1 to `shape`; -1 keeps a dimension as it is.

    >>> from minipd.ops.creation import to_tensor
    >>> expand(to_tensor([[1], [2]]), [-1, 2]).tolist()
    [[1, 1], [2, 2]]
    """
    given = sizes(shape)
    given = list(given) if isinstance(given, (list, tuple)) else [given]
    own = x.payload.shape
    lead = len(given) - len(own)
    if lead < 0 or any(same(d, -1) for d in given[:lead]):
        raise ValueError(f"expand: expected a shape of at least {len(own)} dimensions, whose new leading ones are "
                         f"given in full, got {given} for a tensor of shape {list(own)}")
    return Expand(x, shape=shape_tuple("expand", [own[i - lead] if same(d, -1) else d for i, d in enumerate(given)]))


def broadcast_to(x: Tensor, shape: Any, name: str | None = None) -> Tensor:
    """The same as `expand`."""
    return expand(x, shape)


def broadcast_tensors(input: Any, name: str | None = None) -> list[Tensor]:
    """The tensors of the list `input`, each repeated to their common shape.

    >>> from minipd.ops.creation import ones
    >>> [t.shape for t in broadcast_tensors([ones([3, 1]), ones([2])])]
    [paddle.Size([3, 2]), paddle.Size([3, 2])]
    """
    if not isinstance(input, (list, tuple)) or not all(isinstance(x, Tensor) for x in input):
        raise TypeError(f"broadcast_tensors: expected a list of tensors, got {type(input).__name__}; write [...] "
                        "around them")
    xs = list(input)
    shape = broadcast_shapes("broadcast_tensors", *(x.payload.shape for x in xs))
    return [x if x.payload.shape == shape else Expand(x, shape=shape) for x in xs]
