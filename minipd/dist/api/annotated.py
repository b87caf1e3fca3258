"""Operators and layers with placements of their own: `shard_op` and `split`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.api.attribute import DistAttr
from minipd.dist.api.context import get_mesh
from minipd.dist.api.tensors import reshard, shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, Shard
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ir.structure import mapped
from minipd.nn.functional.common import embedding, linear
from minipd.nn.parameter import create_parameter, parameter_name

__all__ = ["shard_op", "split"]


def shard_op(op: Callable, process_mesh: ProcessMesh | None = None, in_shard_specs: Sequence | None = None,
             out_shard_specs: Sequence | None = None, **kwargs: Any) -> Callable:
    """The function with its tensors under placements.

    process_mesh: the one that `set_mesh` was given unless given.  in_shard_specs, out_shard_specs: for each tensor
    among arguments or results, per dimension the name of the mesh axis that splits it or None; None for a tensor that
    stays as it is.  kwargs: more arguments for every call.
    Raises: ValueError without a mesh, for a spec that does not fit, or another number of tensors.

    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.simulate import simulate
    >>> def run(mesh):
    ...     double = shard_op(lambda x: x * 2.0, mesh, [["x"]], [[None]])
    ...     return double(shard_tensor([1.0, 2.0], mesh, [Replicate()])).placements
    >>> simulate("x=2", run)
    [[Replicate()], [Replicate()]]
    """
    mesh = get_mesh() if process_mesh is None else process_mesh
    if mesh is None:
        raise ValueError("shard_op: expected a mesh, got none; pass process_mesh, or call set_mesh first")
    inputs = None if in_shard_specs is None else [s and DistAttr(mesh, s) for s in in_shard_specs]
    outputs = None if out_shard_specs is None else [s and DistAttr(mesh, s) for s in out_shard_specs]

    def called(*args: Any, **more: Any) -> Any:
        out = op(*_placed(args, inputs, mesh, "arguments"), **{**kwargs, **more})
        return _placed(out, outputs, mesh, "results")
    return called


def _placed(tree: Any, attrs: Sequence | None, mesh: ProcessMesh, what: str) -> Any:
    if attrs is None:
        return tree
    found: list[Any] = []
    mapped(tree, lambda x: found.append(x) if isinstance(x, Tensor) else None)
    if len(found) != len(attrs):
        raise ValueError(f"shard_op: expected {len(attrs)} tensors among its {what}, one for each spec, got "
                         f"{len(found)}")
    for x, attr in zip(found, attrs, strict=True):
        if attr is not None and len(attr.sharding_specs) != x.ndim:
            raise ValueError(f"shard_op: expected a tensor of {len(attr.sharding_specs)} dimensions, as many as "
                             f"{attr.sharding_specs}, got {list(x.shape)}")
    left = iter(attrs)

    def place(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        attr = next(left)
        return x if attr is None else reshard(x, mesh, attr.placements)
    return mapped(tree, place)


def split(x: Tensor, size: Sequence[int], operation: str, axis: int = 0, num_partitions: int = 1,
          gather_out: bool = True, weight_attr: Any = None, bias_attr: Any = None, name: str | None = None) -> Tensor:
    """In a program: a linear layer, or a look-up of embeddings, whose new weight is split over ranks.

    Args:
        size: of the weight, [in, out] or [vocabulary, dim].
        operation: "linear" or "embedding".
        axis: of the weight, which dimension is split; 0 for embeddings.
        num_partitions: over how many ranks, those with the numbers 0 to num_partitions - 1, or the next so many.
        gather_out: whether the result of a linear layer is replicated; else it stays as the layer leaves it.
        weight_attr, bias_attr: as those of layers; bias_attr=False for no bias.

    Raises: ValueError in eager mode, where (as in Paddle) every call would make a new weight.
    """
    if operation not in ("linear", "embedding"):
        raise ValueError(f"split: expected operation 'linear' or 'embedding', got {operation!r}")
    if len(size) != 2 or axis not in (0, 1) or operation == "embedding" and axis != 0:
        raise ValueError(f"split: expected a size of two numbers and axis 0 or 1, for embeddings 0, got size={size!r} "
                         f"and axis={axis!r}")
    if not current().static_mode:
        raise ValueError("split: expected static mode, got a call in eager mode, which would make a new weight each "
                         "time; make a Linear or an Embedding, and parallelize it with ColWiseParallel() or "
                         "RowWiseParallel()")
    first = current().rank // num_partitions * num_partitions
    mesh = ProcessMesh(np.arange(first, first + num_partitions), ["mp"])
    dtype = x.dtype if operation == "linear" else None
    stem = current().unique_name(name or f"split_{operation}")
    weight = shard_tensor(create_parameter(list(size), dtype, parameter_name(stem, False), weight_attr), mesh,
                          [Shard(axis)])
    if operation == "embedding":
        return embedding(x, weight)
    bias = None
    if bias_attr is not False:
        placed: Placement = Shard(0) if axis == 1 else Replicate()
        bias = shard_tensor(create_parameter([size[1]], dtype, parameter_name(stem, True), bias_attr, True), mesh,
                            [placed])
    out = linear(x, weight, bias)
    return reshard(out, mesh, [Replicate()]) if gather_out else out
