"""What tensor and sequence parallelism do to one layer: the plans that `parallelize` takes.

    ColWiseParallel     a Linear's weight [in, out_mp] and bias [out_mp]; an Embedding's weight [vocabulary, dim_mp]
    RowWiseParallel     a Linear's weight [in_mp, out]; an Embedding's weight [vocabulary_mp, dim]
    SequenceParallel... activations [seq_mp, batch, hidden] between two places of the model
    PrepareLayer...     a function of the caller's around the layer

The mesh axis is called `mp`, and the one that splits batches, if there is one, `dp`.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from minipd.dist.api.tensors import reshard, shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, Shard
from minipd.dist.value import DistValue
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn.common import Embedding, Linear
from minipd.nn.layer import Layer
from minipd.ops.reshape import transpose

__all__ = ["ColWiseParallel", "ContextParallel", "ConvParallel", "PrepareContextParallel", "PrepareLayerInput",
           "PrepareLayerOutput", "RowWiseParallel", "SequenceParallelBegin", "SequenceParallelDisable",
           "SequenceParallelEnable", "SequenceParallelEnd", "SplitPoint"]


class PlanBase:
    """The base of all plans."""

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        """Change a layer in place.   shard_param_list: the parameters that are meant; all that the plan knows if
        none."""
        raise NotImplementedError(f"{type(self).__name__}: a plan defines apply(layer, process_mesh, "
                                  "shard_param_list)")


class ColWiseParallel(PlanBase):
    """Split the weight of a Linear or an Embedding along its second dimension, and the bias.

    gather_output: whether the result is replicated again; else it stays split along its last dimension.
    Raises: ValueError for a parameter that is not 1-D or 2-D.

    >>> ColWiseParallel(gather_output=True).gather_output
    True
    """

    def __init__(self, gather_output: bool = False):
        self.gather_output = gather_output

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        _expect_known(self, layer)
        _split_parameters(self, layer, process_mesh, shard_param_list or ("weight", "bias"), {1: Shard(0), 2: Shard(1)})
        if self.gather_output:
            layer.register_forward_post_hook(lambda _, inputs, out: _first(out, lambda x: _gathered(x, process_mesh)))


class RowWiseParallel(PlanBase):
    """Split the weight of a Linear or an Embedding along its first dimension; the bias stays whole.

    is_input_parallel: whether the input comes split along its last dimension, as ColWiseParallel leaves it; else it is
    split here.
    Raises: ValueError for a weight that is not 2-D.

    >>> RowWiseParallel().is_input_parallel
    True
    """

    def __init__(self, is_input_parallel: bool = True):
        self.is_input_parallel = is_input_parallel

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        _expect_known(self, layer)
        names = [name for name in shard_param_list if name != "bias"]
        _split_parameters(self, layer, process_mesh, names or ("weight",), {2: Shard(0)})
        if not self.is_input_parallel:
            layer.register_forward_pre_hook(lambda _, inputs: _first(
                inputs, lambda x: _on_mp(x, process_mesh, Shard(x.ndim - 1))))


class PrepareLayerInput(PlanBase):
    """Call a function of the caller's before the layer: `fn(process_mesh)` returns a forward pre-hook, `hook(layer,
    inputs)`.

    >>> plan = PrepareLayerInput(lambda process_mesh: lambda layer, inputs: inputs)
    """

    def __init__(self, fn: Callable | None = None):
        self.fn = _function(self, fn)

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        layer.register_forward_pre_hook(self.fn(process_mesh=process_mesh))


class PrepareLayerOutput(PlanBase):
    """Call a function of the caller's after the layer: `fn(process_mesh)` returns a forward post-hook, `hook(layer,
    inputs, outputs)`.

    >>> plan = PrepareLayerOutput(lambda process_mesh: lambda layer, inputs, outputs: outputs)
    """

    def __init__(self, fn: Callable | None = None):
        self.fn = _function(self, fn)

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        layer.register_forward_post_hook(self.fn(process_mesh=process_mesh))


class SequenceParallelBegin(PlanBase):
    """From the result of this layer on, the sequence is split: for the last layer before sequence parallelism.

    need_transpose: the result is [batch, seq, hidden] and becomes [seq_mp, batch, hidden]; else it is [seq, batch,
    hidden], or, where dp splits dimension 0, [batch, seq, hidden], and stays so.

    >>> SequenceParallelBegin().need_transpose
    True
    """

    def __init__(self, need_transpose: bool = True):
        self.need_transpose = need_transpose

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        layer.register_forward_post_hook(_split_sequence(process_mesh, self.need_transpose))


class SequenceParallelEnd(PlanBase):
    """Before this layer, the sequence is gathered: for the first layer after sequence parallelism.

    need_transpose: the input is [seq_mp, batch, hidden] and becomes [batch, seq, hidden]; else its dimensions stay.

    >>> SequenceParallelEnd(need_transpose=False).need_transpose
    False
    """

    def __init__(self, need_transpose: bool = True):
        self.need_transpose = need_transpose

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        layer.register_forward_pre_hook(_join_sequence(process_mesh, self.need_transpose))


class SequenceParallelEnable(PlanBase):
    """Inside of this layer, the sequence is split: input and result are [batch, seq, hidden], what the layer sees is
    [seq_mp, batch, hidden].

    >>> plan = SequenceParallelEnable()
    """

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        layer.register_forward_pre_hook(_split_sequence(process_mesh, True))
        layer.register_forward_post_hook(_join_sequence(process_mesh, True))


class SequenceParallelDisable(PlanBase):
    """Inside of this layer, the sequence is whole, and split around it.

    need_transpose: input and result are [seq_mp, batch, hidden], what the layer sees is [batch, seq, hidden]; else the
    dimensions stay.

    >>> SequenceParallelDisable().need_transpose
    True
    """

    def __init__(self, need_transpose: bool = True):
        self.need_transpose = need_transpose

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        layer.register_forward_pre_hook(_join_sequence(process_mesh, self.need_transpose))
        layer.register_forward_post_hook(_split_sequence(process_mesh, self.need_transpose))


class ConvParallel(PlanBase):
    """Split the input of a Conv2D along its width, where windows do not make that impossible: dilation 1, and either no
    padding, a stride as wide as the kernel and a width that divides by it, or padding and stride 1.

    What is computed is the same.  Where windows lie side by side (no padding, a stride as wide as the kernel) and every
    rank has as many, a rank computes its part of the width.  Windows that overlap would need what their neighbours
    have, which is not exchanged: the width is gathered again in front of such a convolution, and nothing is saved.

    >>> plan = ConvParallel()
    """

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        if not hasattr(layer, "_data_format"):
            raise TypeError(f"ConvParallel: expected a Conv2D, got {type(layer).__name__}")
        layer.register_forward_pre_hook(lambda conv, inputs: _first(inputs, lambda x: _by_width(conv, x, process_mesh)))


class _LaterPlan(PlanBase):
    """A plan of context parallelism, which this version has no use for."""

    def __init__(self, backend: str = "p2p"):
        if backend not in ("p2p", "all2all"):
            raise ValueError(f"{type(self).__name__}: expected backend 'p2p' or 'all2all', got {backend!r}")
        self.backend = backend

    def apply(self, layer: Layer, process_mesh: ProcessMesh, shard_param_list: Iterable[str]) -> None:
        raise NotImplementedError(f"{type(self).__name__}: expected plans of tensor and sequence parallelism, got one "
                                  "of context parallelism, which is not part of this version; split the sequence with "
                                  "SequenceParallelBegin and SequenceParallelEnd")


class ContextParallel(_LaterPlan):
    """Attention over a sequence that is split (not part of this version: using it raises)."""


class PrepareContextParallel(_LaterPlan):
    """Inputs of a model whose sequence is to be split (not part of this version: using it raises)."""


class SplitPoint(enum.Enum):
    """Where a pipeline is cut: before a layer or after it."""

    BEGINNING = 0
    END = 1


# ----------------------------------------------------------------------------------------------------------- parameters
def _expect_known(plan: PlanBase, layer: Layer) -> None:
    if not isinstance(layer, (Linear, Embedding)):
        warnings.warn(f"{type(plan).__name__}: expected a Linear or an Embedding, got {type(layer).__name__}; its "
                      "weight and bias are split if it has any", stacklevel=4)


def _split_parameters(plan: PlanBase, layer: Layer, mesh: ProcessMesh, names: Iterable[str],
                      by_ndim: dict[int, Placement]) -> None:
    """Place a layer's parameters, those that are not distributed yet: a parameter that two layers share is placed by
    the first plan that meets it."""
    for name in names:
        p = getattr(layer, name, None)
        if p is None or isinstance(p.payload, DistValue):
            continue
        if p.ndim not in by_ndim:
            raise ValueError(f"{type(plan).__name__}: expected {name} of {layer.full_name()} to be "
                             f"{' or '.join(f'{n}-D' for n in by_ndim)}, got {describe(p.payload)}")
        placements: list[Placement] = [Replicate()] * mesh.ndim
        placements[mp_axis(mesh, type(plan).__name__)] = by_ndim[p.ndim]
        shard_tensor(p, mesh, placements)


def mp_axis(mesh: ProcessMesh, what: str) -> int:
    """The number of the mesh axis `mp`."""
    if "mp" not in mesh.names:
        raise ValueError(f"{what}: expected a mesh with an axis 'mp', got {mesh.text()}")
    return mesh.names.index("mp")


def _function(plan: PlanBase, fn: Any) -> Callable:
    if not callable(fn):
        raise TypeError(f"{type(plan).__name__}: expected a function that takes process_mesh and returns a hook, got "
                        f"{fn!r}")
    return fn


# ---------------------------------------------------------------------------------------------------------- activations
def _first(x: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """x with its first tensor changed, where it is a tuple or a list; else x changed."""
    if isinstance(x, (tuple, list)):
        return type(x)([_first(x[0], change), *x[1:]])
    if not isinstance(x, Tensor):
        raise TypeError(f"parallelize: expected a tensor, first among what a layer is given or returns, got {x!r}")
    return change(x)


def _placements(x: Tensor, mesh: ProcessMesh) -> list[Placement]:
    p = x.payload
    return list(p.placements) if hasattr(p, "placements") else [Replicate()] * mesh.ndim


def _on_mp(x: Tensor, mesh: ProcessMesh, placement: Placement) -> Tensor:
    placements = _placements(x, mesh)
    placements[mp_axis(mesh, "parallelize")] = placement
    return reshard(x, mesh, placements)


def _gathered(x: Tensor, mesh: ProcessMesh) -> Tensor:
    return _on_mp(x, mesh, Replicate())


def _split_sequence(mesh: ProcessMesh, swap: bool) -> Callable:
    """A hook that splits the sequence, of inputs or of results."""
    def change(x: Tensor) -> Tensor:
        if x.ndim != 3:
            raise ValueError(f"sequence parallelism: expected [batch, seq, hidden], got {describe(x.payload)}")
        if swap:
            return _on_mp(transpose(x, [1, 0, 2]), mesh, Shard(0))
        batch = _placements(x, mesh)[mesh.names.index("dp")] if "dp" in mesh.names else None
        return _on_mp(x, mesh, Shard(1 if batch is not None and batch.is_shard(0) else 0))
    return _hook(change)


def _join_sequence(mesh: ProcessMesh, swap: bool) -> Callable:
    """A hook that gathers the sequence, of inputs or of results."""
    def change(x: Tensor) -> Tensor:
        whole = _gathered(x, mesh)
        return transpose(whole, [1, 0, 2]) if swap else whole
    return _hook(change)


def _hook(change: Callable[[Tensor], Tensor]) -> Callable:
    return lambda layer, *inputs_and_outputs: _first(inputs_and_outputs[-1], change)


def _by_width(conv: Any, x: Tensor, mesh: ProcessMesh) -> Tensor:
    """The input of a convolution split along its width, where that can be."""
    if conv._data_format not in ("NCHW", "NHWC"):
        raise ValueError(f"ConvParallel: expected data_format NCHW or NHWC, got {conv._data_format}")
    dim = 3 if conv._data_format == "NCHW" else 2
    width, kernel = x.shape[dim], conv.weight.shape[3]
    stride, padding, dilation = (_last(getattr(conv, name)) for name in ("_stride", "_padding", "_dilation"))
    aligned = width % stride == 0 and stride == kernel if padding == 0 else stride == 1 and kernel // 2 <= width
    if dilation != 1 or not aligned or width % mesh.get_dim_size("mp"):
        return x
    return _on_mp(x, mesh, Shard(dim))


def _last(numbers: Any) -> Any:
    return numbers[-1] if isinstance(numbers, (tuple, list)) else numbers
