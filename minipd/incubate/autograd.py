"""`paddle.incubate.autograd`: derivatives of functions, called on tensors of any shape, which they flatten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.autograd import functional
from minipd.autograd.engine import as_list
from minipd.autograd.functional import jvp, vjp
from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.ops.joining import concat
from minipd.ops.reshape import reshape

__all__ = ["Hessian", "Jacobian", "jvp", "vjp"]


class Jacobian(functional.Jacobian):
    """The Jacobian of `func(*xs)`: all results flattened and joined, by all xs flattened and joined.

    func: takes the tensors xs, returns one tensor or several.  is_batched: the first dimension of all is a batch.

    >>> from minipd.ops.creation import to_tensor
    >>> Jacobian(lambda x: x * x, to_tensor([[1.0, 2.0]]))[:].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    def __init__(self, func: Callable, xs: Any, is_batched: bool = False):
        joined, parts = _joined(xs, is_batched)
        with using(grad=True):
            ys, _ = _joined(func(*parts(joined)), is_batched, leaf=False)
        super().__init__(ys, joined, is_batched)


class Hessian(functional.Hessian):
    """The Hessian of `func(*xs)`, which returns one element (batched: one per batch entry).

    >>> from minipd.ops.creation import to_tensor
    >>> Hessian(lambda x: (x * x).sum(), to_tensor([[1.0, 2.0]]))[:].tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(self, func: Callable, xs: Any, is_batched: bool = False):
        joined, parts = _joined(xs, is_batched)
        with using(grad=True):
            y = func(*parts(joined))
        if y.size != (y.shape[0] if is_batched and y.ndim else 1):
            raise ValueError("Hessian: expected a function with one element"
                             f"{' per batch entry' if is_batched else ''}, got {describe(y.payload)}")
        (gradient,) = functional._grad_or_zeros([y.sum()], [joined])
        super().__init__(gradient, joined, is_batched)


def _joined(xs: Any, batched: bool, leaf: bool = True) -> tuple[Any, Callable]:
    """The tensors flattened and joined into one (a leaf of its own, or with their history), and what takes it apart."""
    tensors = as_list(xs)
    lead = [tensors[0].shape[0]] if batched else []
    flat = concat([reshape(x, [*lead, -1]) for x in tensors], axis=-1)
    if leaf:
        flat = flat.detach()
        flat.stop_gradient = False

    def parts(whole: Any) -> list:
        sizes = [x.size // lead[0] if batched else x.size for x in tensors]
        pieces = whole.split(sizes, axis=-1) if len(sizes) > 1 else [whole]
        return [reshape(piece, x.shape) for piece, x in zip(pieces, tensors, strict=True)]
    return flat, parts
