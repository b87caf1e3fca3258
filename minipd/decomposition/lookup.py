"""Rules of what looks an element up by its number along an axis: the number is compared with every position.

A comparison is element-wise, so that the look-up fuses with the reductions around it, which read the whole axis anyhow.
`window` is the local attribute of a shard, (size of the whole axis, first position held here): what another shard has
is no hit here.  A kernel raises for a number that nobody has; element-wise code cannot, and gives NaN, so that the loss
of such a label is no number either.
"""

from __future__ import annotations

from typing import Any

from minipd.decomposition.normalizing import shifted
from minipd.decomposition.table import decompose_rule
from minipd.framework import dtype as dtypes
from minipd.framework.dim import same
from minipd.framework.tensor import Tensor
from minipd.ops.by_number import Gather
from minipd.ops.cast import cast
from minipd.ops.creation import Arange, Full
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.logic import equal, logical_and
from minipd.ops.math import where
from minipd.ops.reduce import Sum

__all__: list[str] = []

INT32_END = 2 ** 31


@decompose_rule("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits: Tensor, label: Tensor, *, ignore_index: int = -100,
                               axis: int) -> tuple[Tensor, Tensor]:
    """(softmax, loss): loss = log sum e^z - z[label] with z = x - max, and 0 where the label is `ignore_index`.

    label, loss: of size 1 along `axis`.  An ignored label need not be a position along `axis`, so it is not looked up.
    The reductions are those of vocabulary-parallel cross entropy (Shoeybi et al., Megatron-LM, 2019, section 3): the
    maximum, the sum, and the logit of the label, which one shard has and the others give as 0.
    """
    z = shifted(logits, axis)
    e = exp(z)
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(z, label * cast(valid, label.dtype), axis=axis)
    return e / total, where(valid, log(total) - picked, 0.0)


@decompose_rule("cross_entropy_with_softmax_grad")
def cross_entropy_with_softmax_grad(label: Tensor, softmax: Tensor, loss_grad: Tensor, *, ignore_index: int = -100,
                                    axis: int, window: Any = None) -> Tensor:
    """softmax g - (g where the class is the label's); g = 0 for ignored labels."""
    size = softmax.payload.shape[axis]
    g = where(label != ignore_index, _if_known(label, size, window, loss_grad), 0.0)
    return softmax * g - where(_hits(label, axis, size, window), g, 0.0)


@decompose_rule("embedding", small=True)
def embedding(x: Tensor, weight: Tensor, *, window: Any = None) -> Tensor:
    """gather; of a shard, the rows that it has, and zeros for the others."""
    if window is None:
        return Gather(weight, x, axis=0)
    if same(weight.payload.shape[0], 0):
        shape = (*x.payload.shape, *weight.payload.shape[1:])
        return Full(shape=shape, value=_zero(weight), dtype=weight.payload.dtype)
    place = cast(x, dtypes.int64) - window[1]
    here = logical_and(place >= 0, place < weight.payload.shape[0])
    return where(here.unsqueeze(-1), Gather(weight, where(here, place, 0), axis=0), _zero(weight))


@decompose_rule("take_along_axis")
def take_along_axis(x: Tensor, indices: Tensor, *, axis: int, window: Any = None) -> Tensor:
    """The sum along `axis` of x where the position is the index, 0 elsewhere; for one index per row, and for several
    along a dimension of their own."""
    size, floating, zero = x.payload.shape[axis], x.payload.dtype in dtypes.INEXACT, _zero(x)
    if indices.payload.shape[axis] == 1:
        picked = Sum(where(_hits(indices, axis, size, window), x, zero), axis=(axis,), keepdim=True)
    else:
        hit = _hits(indices.unsqueeze(axis + 1), axis + 1, size, window)
        picked = Sum(where(hit, x.unsqueeze(axis), zero), axis=(axis + 1,))
    return _if_known(indices, size, window, picked) if floating else picked


@decompose_rule("take_along_axis_grad")
def take_along_axis_grad(g: Tensor, indices: Tensor, like: Tensor, *, axis: int, window: Any = None) -> Tensor:
    """g where the position is the index, 0 elsewhere; of several indices, the sum of that over all of them."""
    size, floating = like.payload.shape[axis], g.payload.dtype in dtypes.INEXACT
    zero = 0.0 if floating else 0
    g = _if_known(indices, size, window, g) if floating else g
    if indices.payload.shape[axis] == 1:
        return where(_hits(indices, axis, size, window), g, zero)
    hit = _hits(indices.unsqueeze(axis + 1), axis + 1, size, window)
    return Sum(where(hit, g.unsqueeze(axis + 1), zero), axis=(axis,))


def _zero(x: Tensor) -> Any:
    """0 as a Python number that does not change the dtype of x."""
    return 0.0 if x.payload.dtype in dtypes.INEXACT else False if x.payload.dtype == dtypes.bool.np else 0


def _hits(index: Tensor, axis: int, size: Any, window: Any) -> Tensor:
    """Where each of `size` positions along `axis` is the one that `index`, of size 1 there, names."""
    first = 0 if window is None else window[1]
    # comparing as int32, where positions fit, needs half the vector registers (an index beyond is refused elsewhere)
    dtype = dtypes.int32 if isinstance(size, int) and first + size < INT32_END else dtypes.int64
    positions = Arange(start=first, stop=first + size, step=1, dtype=dtype.np)
    after = index.ndim - axis - 1
    if after:
        positions = positions.unsqueeze(list(range(1, after + 1)))
    return equal(positions, cast(index, dtype))


def _if_known(index: Tensor, size: Any, window: Any, value: Tensor) -> Tensor:
    """`value`, or NaN where nobody has the position `index`."""
    total = size if window is None else window[0]
    return where(logical_and(index >= 0, index < total), value, float("nan"))
