"""A batch, as a step is given it: which of it are inputs and labels, in how many parts it is computed, and what a
program must know of it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from minipd.dist.sharding import split_axes
from minipd.dist.value import DistValue
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor

__all__: list[str] = []


class Given:
    """A tensor that a step is given, as a specification: what an input of the program is made for."""

    def __init__(self, name: str, t: Any):
        p = t.payload
        self.name, self.shape, self.dtype = name, tuple(p.shape), np.dtype(p.dtype)
        self.stop_gradient = True
        self.placed = (p.mesh, p.placements) if isinstance(p, DistValue) else None

    @property
    def key(self) -> tuple:
        return self.shape, self.dtype, self.placed


def inputs_and_labels(args: Iterable, mode: str, layer: Any, loss: Any) -> tuple[list[Tensor], list[Tensor]]:
    """The tensors of a batch: what is in front, and what is last, a tensor or a list of them; all inputs where there is
    no loss.  A loss of the results alone, `paddle.mean` say, has no labels: what the layer does not take of the batch
    is left out.

    Raises: TypeError for what is no tensor, ValueError for inputs without labels.
    """
    parts = list(args)
    if len(parts) == 1 and isinstance(parts[0], (list, tuple)):
        parts = list(parts[0])
    if mode == "predict":
        return list(_flat(parts)), []
    if _asked(loss) == 1:
        return list(_flat(parts[:_asked(layer) or len(parts)])), []
    if len(parts) < 2:
        raise ValueError(f"DistModel: expected inputs and labels in the mode {mode!r}, got {len(parts)} argument"
                         "; pass the label last, or call predict()")
    return list(_flat(parts[:-1])), list(_flat(parts[-1:]))


def _asked(function: Any) -> int | None:
    """How many tensors a layer or function must be given, if it takes no others; None if that is not known."""
    try:
        parameters = inspect.signature(getattr(function, "forward", function)).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL or "label" in p.name for p in parameters):
        return None
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _flat(given: Iterable) -> Iterable[Tensor]:
    """Tensors in nested lists, one after the other."""
    for x in given:
        if isinstance(x, (list, tuple)):
            yield from _flat(x)
        elif isinstance(x, Tensor):
            yield x
        else:
            raise TypeError(f"DistModel: expected tensors, or lists of tensors, got {type(x).__name__} {x!r}; make one "
                            "with paddle.to_tensor, or give it to shard_dataloader")


def part_of(t: Tensor, m: int, passes: int) -> Tensor:
    """Part m of a batch that is cut into `passes`: of a distributed one every rank takes a part of what it has.

    Raises: ValueError if the parts would not be equal.
    """
    if passes == 1:
        return t
    p = t.payload
    local = p.local if isinstance(p, DistValue) else p
    ways = math.prod(p.mesh.sizes[axis] for axis in split_axes(p.placements, 0)) if isinstance(p, DistValue) else 1
    if not p.shape or p.shape[0] % (passes * ways):
        raise ValueError(f"DistModel: expected a batch that {passes} passes over {ways} ranks can share, got {p!r}; "
                         "change the batch size, or how often gradients are accumulated")
    shape = (p.shape[0] // passes, *p.shape[1:])
    if isinstance(local, np.ndarray):
        rows = local.shape[0] // passes
        local = local[m * rows:(m + 1) * rows]
    return Tensor(DistValue(local, shape, p.dtype, p.mesh, p.placements) if isinstance(p, DistValue) else local)


def of_spec(spec: Any) -> Tensor:
    """A tensor without values, for an `InputSpec`; a distributed one, if the spec says how."""
    mesh, placements = getattr(spec, "mesh", None), getattr(spec, "placements", None)
    shape, dtype = tuple(spec.shape), np.dtype(getattr(spec.dtype, "np", spec.dtype))
    meta = Meta(shape, dtype)
    return Tensor(meta if mesh is None or placements is None else
                  DistValue(meta, shape, dtype, mesh, tuple(placements)))
