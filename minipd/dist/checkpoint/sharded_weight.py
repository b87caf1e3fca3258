"""ShardedWeight: a block of a tensor that is no distributed one, for whoever splits tensors by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minipd.dist.api.local import local_values
from minipd.dist.group import Group, init_parallel_env
from minipd.dist.value import DistValue
from minipd.framework.tensor import Tensor

__all__ = ["ShardedStateDict", "ShardedWeight", "build_sharded_state_dict", "shard_weight"]


class ShardedWeight:
    """What this rank has of a tensor: `local_tensor`, at `global_offset` of a tensor of `global_shape`.

    `save_state_dict` and `load_state_dict` take it where they take a tensor.
    Raises: ValueError for a block that is not inside of the tensor; NotImplementedError for a flattened one.

    >>> from minipd.ops.creation import ones
    >>> w = ShardedWeight("w", ones([2, 3]), (2, 3), (4, 3), (2, 0))
    >>> w.local_shape, w.global_offset
    ((2, 3), (2, 0))
    """

    def __init__(self, key: str, local_tensor: Tensor, local_shape: Sequence[int], global_shape: Sequence[int],
                 global_offset: Sequence[int], is_flattened: bool = False, flattened_range: slice | None = None):
        if is_flattened or flattened_range is not None:
            raise NotImplementedError(f"ShardedWeight {key}: expected a block, got a range of flattened elements, "
                                      "which is not part of this version")
        if isinstance(local_tensor.payload, DistValue):
            name = local_tensor.name
            local_tensor = Tensor(local_values(local_tensor.payload, f"ShardedWeight {key}"))
            local_tensor.name, local_shape = name, local_tensor.shape
        self.key, self.local_tensor = key, local_tensor
        self.local_shape, self.global_shape, self.global_offset = map(tuple, (local_shape, global_shape, global_offset))
        self.is_flattened, self.flattened_range = is_flattened, flattened_range
        fits = len(self.local_shape) == len(self.global_shape) == len(self.global_offset) and all(
            0 <= at and at + n <= whole for n, whole, at in
            zip(self.local_shape, self.global_shape, self.global_offset, strict=True))
        if self.local_shape != tuple(local_tensor.shape) or not fits:
            raise ValueError(f"ShardedWeight {key}: expected a tensor of the local shape, as a block inside of the "
                             f"global one, got {list(local_tensor.shape)} for {list(self.local_shape)} at "
                             f"{list(self.global_offset)} of {list(self.global_shape)}")

    def __repr__(self) -> str:
        return (f"ShardedWeight(key={self.key}, local_shape={self.local_shape}, global_shape={self.global_shape}, "
                f"global_offset={self.global_offset})")


ShardedStateDict = dict[str, ShardedWeight]


def shard_weight(key: str, weight: Tensor, axis: int, group: Group) -> ShardedWeight:
    """This rank's weight as its block of a tensor that the ranks of a group have in equal parts along an axis."""
    if not 0 <= axis < weight.ndim:
        raise ValueError(f"shard_weight: expected axis in 0 .. {weight.ndim - 1} for {key}, {list(weight.shape)}, got "
                         f"{axis}")
    shape, offset = list(weight.shape), [0] * weight.ndim
    offset[axis] = group.rank * shape[axis]
    whole = [n * group.nranks if d == axis else n for d, n in enumerate(shape)]
    return ShardedWeight(key, weight, shape, whole, offset)


def build_sharded_state_dict(state_dict: Mapping[str, Tensor], shard_rules: Mapping[str, int] | None = None,
                             prefix: str = "") -> dict[str, ShardedWeight]:
    """A state with every tensor as a ShardedWeight.

    shard_rules: by key, the axis along which the ranks that were started have equal parts; others are whole on all.
    """
    rules, found = dict(shard_rules or {}), {}
    group = init_parallel_env() if rules else None
    for key, t in state_dict.items():
        name = f"{prefix}{key}"
        if group is not None and key in rules:
            found[name] = shard_weight(name, t, rules[key], group)
        else:
            found[name] = ShardedWeight(name, t, t.shape, t.shape, [0] * t.ndim)
    return found
