"""Optimizers over distributed parameters: where their state is, and the scale of low-precision gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.amp.grad_scaler import GradScaler
from minipd.dist.joining import current_comm
from minipd.dist.mesh import ProcessMesh
from minipd.dist.rows import Match
from minipd.dist.value import DistValue
from minipd.framework.context import using
from minipd.framework.meta import describe, is_traced
from minipd.framework.tensor import Tensor
from minipd.optimizer.optimizer import Optimizer, replace

__all__ = ["ShardingStage1", "ShardingStage2", "ShardingStage3", "shard_optimizer", "shard_scaler"]


class _Stage:
    """A sharding stage: over which axis of which mesh (None: the one that is set)."""

    def __init__(self, sharding_mesh_dim: int | str, mesh: ProcessMesh | None = None):
        self._sharding_mesh_dim, self._mesh = sharding_mesh_dim, mesh

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._sharding_mesh_dim!r}, {self._mesh!r})"

    def __call__(self, key: str, param: Tensor, tensor: Tensor) -> Tensor:
        raise NotImplementedError(
            f"{self!r}: expected placements of optimizer state that a function chooses, got a sharding stage; pass "
            "shard_optimizer a function shard_fn(name, param, accumulator) that returns shard_tensor(accumulator, "
            "param.process_mesh, placements)")


class ShardingStage1(_Stage):
    """Optimizer state that is split over an axis."""


class ShardingStage2(_Stage):
    """Optimizer state and gradients that are split over an axis."""


class ShardingStage3(_Stage):
    """Optimizer state, gradients and parameters that are split over an axis."""


class _ShardOptimizer(Optimizer):
    """What `shard_optimizer` adds to an optimizer."""

    _inner_opt: Optimizer
    _shard_fn: Callable | None
    gradient_accumulation_steps: int

    def init_state(self, param: Tensor) -> dict[str, Tensor]:
        state = super().init_state(param)
        if self._shard_fn is not None:
            for name, tensor in state.items():
                placed = self._shard_fn(name, param, tensor)
                if not isinstance(placed, Tensor) or placed.shape != tensor.shape:
                    got = describe(placed.payload) if isinstance(placed, Tensor) else type(placed).__name__
                    raise ValueError(f"shard_optimizer: expected shard_fn to return {name} of {param.name}, "
                                     f"{describe(tensor.payload)}, under other placements, got {got}")
                tensor.payload = placed.payload
        return state

    def state_dict(self) -> dict[str, Any]:
        """The state, made now if there is none yet: so that `load_state_dict` of a checkpoint has something to fill.
        All in it, the number of steps too, is the optimizer's own, not a copy."""
        if not self._state:
            self.prepare()
        return super().state_dict() | {"step": self.scalars()[1], "missed_steps": self._missed}

    def apply_gradients(self, params_grads: Any, unless: Any = False) -> None:
        before = {} if self._shard_fn is None else {
            (p.name, name): t.payload for p, _ in params_grads for name, t in self.state_of(p).items()
            if isinstance(t.payload, DistValue) or is_traced(t.payload)}
        super().apply_gradients(params_grads, unless)
        with using(grad=False):         # the rule of a step computes where the parameter is: back to where it is kept
            for (param, name), old in before.items():
                tensor = self._state[param][name]
                if is_traced(old) or tensor.payload.placements != old.placements:
                    replace(tensor, Match(tensor, Tensor(old)))


def shard_optimizer(optimizer: Optimizer, shard_fn: Callable | None = None,
                    gradient_accumulation_steps: int = 1) -> Any:
    """The optimizer for distributed parameters: the same parameters and the same state as `optimizer`.

    shard_fn(name, param, accumulator): returns the accumulator (the first moment, say) under the placements that it is
    to be kept with; unless given, those of the parameter.  gradient_accumulation_steps: how many batches a step's
    gradients come from; `to_static` makes so many passes per step, eagerly it is the caller who makes them.
    Raises: TypeError for what is no optimizer, ValueError for a number of steps below 1, NotImplementedError for
    sharding stages.

    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.placements import Replicate, Shard
    >>> from minipd.dist.simulate import simulate
    >>> from minipd.ops.creation import ones
    >>> from minipd.framework.tensor import Parameter
    >>> from minipd.optimizer import AdamW
    >>> def run(mesh):
    ...     w = shard_tensor(Parameter(ones([4])), mesh, [Replicate()])
    ...     halves = lambda name, param, moment: shard_tensor(moment, mesh, [Shard(0)])
    ...     adamw = shard_optimizer(AdamW(0.5, parameters=[w], weight_decay=0.0), halves)
    ...     (w * w).sum().backward()
    ...     adamw.step()
    ...     moments = [t for name, t in adamw.state_dict().items() if "moment" in name]
    ...     return w.tolist(), [m._local_shape for m in moments]
    >>> simulate("dp=2", run)[1]
    ([0.5, 0.5, 0.5, 0.5], [[2], [2]])
    """
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"shard_optimizer: expected an optimizer, got {type(optimizer).__name__}")
    if isinstance(optimizer, _ShardOptimizer):
        raise ValueError("shard_optimizer: expected an optimizer that is not sharded yet, got what shard_optimizer "
                         "returned")
    if isinstance(shard_fn, _Stage):
        raise NotImplementedError(
            f"shard_optimizer: expected shard_fn to be None or a function, got {shard_fn!r}; sharding stages are not "
            "part of this version, a function shard_fn(name, param, accumulator) that returns "
            "shard_tensor(accumulator, param.process_mesh, placements) splits optimizer state as stage 1 does")
    if shard_fn is not None and not callable(shard_fn):
        raise TypeError(f"shard_optimizer: expected a function shard_fn(name, param, accumulator), got {shard_fn!r}")
    steps = gradient_accumulation_steps
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(f"shard_optimizer: expected gradient_accumulation_steps to be a positive int, got {steps!r}")
    optimizer._inner_opt, optimizer._shard_fn = optimizer, shard_fn                         # type: ignore[attr-defined]
    optimizer.gradient_accumulation_steps = steps                                           # type: ignore[attr-defined]
    out: Any = object.__new__(type("_ShardOptimizer", (_ShardOptimizer, type(optimizer)), {}))
    out.__dict__ = optimizer.__dict__                   # one optimizer, two handles
    return out


class _ShardScaler(GradScaler):
    """What `shard_scaler` adds: gradients may be on several meshes, and all ranks decide together."""

    def _divide(self, params: list[Any]) -> Any:
        parts: dict[ProcessMesh | None, list[Any]] = {}         # None: what every rank has
        for p in params:
            parts.setdefault(getattr(p.grad.payload, "mesh", None), []).append(p)
        meshes = sorted((mesh for mesh in parts if mesh is not None), key=lambda mesh: mesh.process_ids)
        if len(meshes) < 2:
            return super()._divide(params)
        comm, found = current_comm(), True
        for mesh in (None, *meshes):
            finite = super()._divide(parts.get(mesh, []))
            if finite is not None and (mesh is None or mesh.contains(comm.rank)):
                found = bool(finite) and found
        ranks = tuple(sorted({r for mesh in meshes for r in mesh.process_ids}))
        if comm.rank in ranks:              # a step that one stage skips, all skip
            found = bool(comm.all_reduce(np.array(found, np.int32), ranks, "min"))
        return Tensor(np.array(found))


def shard_scaler(scaler: GradScaler) -> GradScaler:
    """The scaler for distributed gradients, also where they are on several meshes: the stages of a model.

    Raises: TypeError for what is no GradScaler.

    >>> from minipd.amp import GradScaler
    >>> shard_scaler(GradScaler(init_loss_scaling=8.0)).get_init_loss_scaling()
    8.0
    """
    if not isinstance(scaler, GradScaler):
        raise TypeError(f"shard_scaler: expected a GradScaler, got {type(scaler).__name__}")
    out = object.__new__(_ShardScaler)
    out.__dict__ = scaler.__dict__
    return out
