"""Numbers and lengths as tensors of zeros and ones, and the paths of a beam search."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import is_symbolic
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.by_number import require_index
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.embedding import take_along_axis
from minipd.ops.joining import stack
from minipd.ops.reshape import unsqueeze

__all__ = ["gather_tree", "one_hot", "sequence_mask"]


@whole
def one_hot(x: Tensor, num_classes: Any = -1, name: str | None = None) -> Tensor:
    """A 1 at each number, and 0 elsewhere.   x: int [...] -> float32 [..., num_classes]

    num_classes: -1 means the greatest number plus 1 (not while tracing).
    Raises: ValueError for a number outside 0 .. num_classes - 1.  (Where a program finds one, all is 0.)

    >>> from minipd.ops.creation import to_tensor
    >>> one_hot(to_tensor([1, 0]), 3).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    require_index("one_hot", x.payload)
    n = num_classes.item() if isinstance(num_classes, Tensor) else num_classes
    if not is_symbolic(n) and n == -1:
        n = int(x.values("one_hot() without num_classes").max(initial=-1)) + 1
    if hasattr(x.payload, "min") and x.size:
        low, high = x.payload.min(), x.payload.max()
        if low < 0 or high >= n:
            raise ValueError(f"one_hot: expected numbers in 0 .. {n - 1}, got {low if low < 0 else high}")
    return cast(unsqueeze(x, -1) == arange(n, dtype=x.dtype), "float32")


def sequence_mask(x: Tensor, maxlen: Any = None, dtype: Any = "int64", name: str | None = None) -> Tensor:
    """A row for each length, with 1 at so many positions and then 0.   x: int [...] -> [..., maxlen]

    maxlen: None means the greatest length (not while tracing).

    >>> from minipd.ops.creation import to_tensor
    >>> sequence_mask(to_tensor([2, 0, 3])).tolist()
    [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    """
    n = maxlen.item() if isinstance(maxlen, Tensor) else maxlen
    if n is None:
        n = int(x.values("sequence_mask() without maxlen").max(initial=0))
    return cast(arange(n, dtype=x.dtype) < unsqueeze(x, -1), dtype)


def gather_tree(ids: Tensor, parents: Tensor) -> Tensor:
    """The whole sequences that a beam search has found, traced back from each of its ends.

    ids, parents: int [time, batch, beam], the number chosen at each step, and the beam it came from.

    >>> from minipd.ops.creation import to_tensor
    >>> gather_tree(to_tensor([[[1, 2]], [[3, 4]]]), to_tensor([[[0, 0]], [[1, 0]]])).tolist()
    [[[2, 1]], [[3, 4]]]
    """
    if ids.ndim != 3 or tuple(ids.shape) != tuple(parents.shape):
        raise ValueError(f"gather_tree: expected ids and parents of one shape [time, batch, beam], got "
                         f"{describe(ids.payload)} and {describe(parents.payload)}")
    steps = ids.payload.shape[0]
    if steps == 0:
        return ids.clone()
    found, beam = [ids[-1]], parents[-1]
    for t in range(steps - 2, -1, -1):
        found.append(take_along_axis(ids[t], beam, -1))
        beam = take_along_axis(parents[t], beam, -1)
    return stack(found[::-1])
