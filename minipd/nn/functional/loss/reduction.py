"""What all losses end with: the loss of each element, its mean, or its sum."""

from __future__ import annotations

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops import reduce
from minipd.ops.cast import cast
from minipd.ops.shapes import shapes_agree

__all__: list[str] = []


def check_reduction(what: str, reduction: str, *others: str) -> None:
    """ValueError unless the reduction is one of "mean", "sum" and "none", or of `others`."""
    if reduction not in ("mean", "sum", "none", *others):
        also = "".join(f", {name!r}" for name in others)
        raise ValueError(f"{what}: expected reduction 'mean', 'sum'{also} or 'none', got {reduction!r}")


def reduced(loss: Tensor, reduction: str, counted: Tensor | None = None) -> Tensor:
    """The loss reduced.  counted: what each element counts in the mean, one for each unless given; of nothing that
    counts the mean is 0."""
    if reduction == "none":
        return loss
    if reduction == "sum":
        return reduce.sum(loss)
    if counted is None:
        return reduce.mean(loss)
    n = reduce.sum(counted)
    return reduce.sum(loss) / (n + cast(n == 0.0, n.dtype))


def require_alike(what: str, **tensors: Tensor) -> None:
    """ValueError unless all these tensors have one shape."""
    (first, x), *others = tensors.items()
    for name, y in others:
        if not shapes_agree(tuple(y.payload.shape), tuple(x.payload.shape), what):
            raise ValueError(f"{what}: expected {first} and {name} of one shape, got {describe(x.payload)} and "
                             f"{describe(y.payload)}")
