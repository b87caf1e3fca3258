"""shard_dataloader: the batches of a loader as distributed tensors.

Each rank loads its part of every batch: of the samples of a batch, in order, the chunk that the split rule gives it
along the mesh axis that splits batches.  So what the ranks have is, batch for batch, what one rank would have, whatever
sampler decides about it; also a last batch that is smaller than the others, or does not divide evenly, when some ranks
have fewer samples or none.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minipd.dist.api.local import dtensor_from_local
from minipd.dist.api.tensors import check_mesh, check_started, enable
from minipd.dist.crossing import elsewhere
from minipd.dist.joining import current_comm
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, Shard, check_placements
from minipd.dist.sharding import ceil_chunk
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.io.collate import default_collate_fn
from minipd.io.dataloader import DataLoader
from minipd.io.sampler import DistributedBatchSampler
from minipd.ir.structure import mapped

__all__ = ["ShardDataloader", "shard_dataloader"]


class _Share:
    """A batch sampler that gives this rank's chunk of every batch of another one.

    taken: of each batch that was asked for, (how many samples this rank has, how many the batch has).  A rank that has
    none of a batch loads its first sample, to know what one looks like.
    """

    def __init__(self, batches: Any, ways: int, index: int):
        self.batches, self.ways, self.index = batches, ways, index
        self.taken: deque[tuple[int, int]] = deque()

    def __iter__(self) -> Iterator[list[int]]:
        self.taken.clear()
        for batch in self.batches:
            batch = list(batch)
            size, start = ceil_chunk(len(batch), self.ways, self.index)
            self.taken.append((size, len(batch)))
            yield batch[start:start + size] or batch[:1]

    def __len__(self) -> int:
        return len(self.batches)


class ShardDataloader:
    """What `shard_dataloader` returns: an iterator over batches of distributed tensors, which can be started again.

    batch_size: how many samples of a batch a rank has (at most).
    """

    def __init__(self, dataloader: DataLoader, meshes: Any, input_keys: Sequence[str] | None = None,
                 shard_dims: Any = None, is_dataset_splitted: bool = False, dense_tensor_idx: Any = None):
        what = "shard_dataloader"
        if not isinstance(dataloader, DataLoader):
            raise TypeError(f"{what}: expected a DataLoader, got {dataloader!r}")
        if is_dataset_splitted and shard_dims is None:
            raise ValueError(f"{what}: expected shard_dims, the mesh axis whose ranks have different samples, for a "
                             "dataset that is split already (is_dataset_splitted=True), got None")
        self._meshes = _listed(meshes)
        if not self._meshes:
            raise ValueError(f"{what}: expected a mesh, or one for each input, got {meshes!r}")
        mapped(self._meshes, lambda m: check_started(check_mesh(m, what), what))
        self._shard_dims = _dims_of(shard_dims, self._meshes)
        self._input_keys = None if input_keys is None else list(input_keys)
        self.dense_tensor_idx = dense_tensor_idx
        rank = current().rank
        self._ways, self._index = self._place(rank)
        self._everyone = tuple(sorted({r for m in _flat(self._meshes) for r in m.process_ids}))
        self._loader, self._iterator = dataloader, None     # type: Any, Any
        self._share: _Share | None = None
        #: the rank loads a whole batch, of which a chunk is its own
        self._slices = False
        sampler = dataloader.batch_sampler
        size = getattr(sampler, "batch_size", dataloader.batch_size)
        #: the loader gives what the rank is to have
        fits = shard_dims is None or is_dataset_splitted or isinstance(sampler, DistributedBatchSampler)
        if not fits and sampler is None:
            self._slices = self._ways > 1
        elif not fits:
            self._share = _Share(sampler, self._ways, self._index)
            self._loader = copy.copy(dataloader)
            self._loader.batch_sampler, self._loader._kept = self._share, None
            size = None if size is None else -(-size // self._ways)
        self.batch_size = size
        self.batch_sampler = self._loader.batch_sampler

    def _place(self, rank: int) -> tuple[int, int]:
        """How many parts a batch has, and which is this rank's."""
        found = [(m, d) for m, d in zip(_flat(self._meshes), _flat(self._shard_dims), strict=True)]
        mine = [(m, d) for m, d in found if m.contains(rank)]
        if len({m for m, _ in mine}) > 1:
            raise ValueError(f"shard_dataloader: expected rank {rank} in one mesh, got it in "
                             f"{' and '.join(m.text() for m, _ in mine)}")
        mesh, dim = mine[0] if mine else found[0]
        return mesh.get_dim_size(dim), mesh.get_rank_by_dim_and_process_id(dim, rank) if mine else 0

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> ShardDataloader:
        self._iterator = None
        return self

    __call__ = __iter__

    def __next__(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self._loader)
        batch = next(self._iterator)
        known = None
        if self._share is not None:
            size, whole = self._share.taken.popleft()
            if size == 0:
                batch = mapped(batch, lambda x: Tensor(x.payload[:0]) if isinstance(x, Tensor) and x.ndim else x)
            if self._loader.collate_fn is default_collate_fn:       # then the first dimension is that of samples
                known = whole
        elif self._slices:
            known = _samples_of(batch)
            size, start = ceil_chunk(known, self._ways, self._index)
            batch = mapped(batch, lambda x: Tensor(np.array(x.payload[start:start + size]))
                           if isinstance(x, Tensor) and x.ndim else x)
        return self._placed(batch, known)

    # ------------------------------------------------------------------------------------------------------- placing
    def _placed(self, batch: Any, known: int | None) -> Any:
        """The batch with distributed tensors.   known: how many samples it has on all ranks together."""
        if isinstance(batch, Tensor):
            wanted: Any = self._wanted(0, batch)
        elif isinstance(batch, dict):
            keys = list(batch) if self._input_keys is None else self._input_keys
            missing = [k for k in keys if k not in batch]
            if missing:
                raise ValueError(f"shard_dataloader: expected batches with the entries {keys}, got one with "
                                 f"{list(batch)}")
            batch = {k: batch[k] for k in keys}
            self._check_count(len(keys))
            wanted = {k: self._wanted(i, batch[k]) for i, k in enumerate(keys)}
        elif isinstance(batch, (list, tuple)):
            batch = list(batch)
            self._check_count(len(batch))
            wanted = [self._wanted(i, x) for i, x in enumerate(batch)]
        else:
            raise TypeError(f"shard_dataloader: expected batches that are a tensor, or a list or dict of tensors, got "
                            f"{type(batch).__name__}")
        pairs = list(_pairs(batch, wanted))
        shapes = self._shapes(pairs, known)
        made = iter([x if how is None else _tensor(x, how, shape) for (x, how), shape in
                     zip(pairs, shapes, strict=True)])
        return mapped(batch, lambda _: next(made))

    def _check_count(self, n: int) -> None:
        if len(self._meshes) not in (1, n):
            raise ValueError(f"shard_dataloader: expected {len(self._meshes)} inputs in a batch, one for each of the "
                             f"meshes, got {n}")

    def _wanted(self, i: int, x: Any) -> Any:
        """For input i of a batch, or each of its tensors, (mesh, placements), None for what stays as it is."""
        at = 0 if len(self._meshes) == 1 else i
        mesh, dim = self._meshes[at], self._shard_dims[at]
        dense = () if self.dense_tensor_idx is None else self.dense_tensor_idx[i]
        if not isinstance(x, (list, tuple)):
            mesh, dim = (mesh[0], dim[0]) if isinstance(mesh, (list, tuple)) else (mesh, dim)
            return None if len(dense) else self._how(mesh, dim, x)
        n = len(x)
        meshes = list(mesh) if isinstance(mesh, (list, tuple)) else [mesh] * n
        dims = list(dim) if isinstance(dim, (list, tuple)) else [dim] * n
        if len(meshes) != n or len(dims) != n:
            raise ValueError(f"shard_dataloader: expected {len(meshes)} tensors in input {i}, one for each of its "
                             f"meshes, got {n}")
        return [None if j in dense else self._how(m, d, y) for j, (m, d, y) in
                enumerate(zip(meshes, dims, x, strict=True))]

    def _how(self, mesh: ProcessMesh, dim: Any, x: Any) -> tuple[ProcessMesh, tuple[Placement, ...]] | None:
        if not isinstance(x, Tensor):
            return None
        placements: list[Placement] = [Replicate()] * mesh.ndim
        if dim is not None and x.ndim:
            placements[mesh.axis(dim)] = Shard(0)
        return mesh, check_placements(placements, mesh, x.ndim, "shard_dataloader")

    def _shapes(self, pairs: list, known: int | None) -> list[tuple | None]:
        """The global shapes of a batch's tensors.  Where ranks may have what they like, they tell each other."""
        split = [how is not None and any(p.is_shard() for p in how[1]) for _, how in pairs]
        if known is not None or not any(split):
            return [None if how is None else (known, *x.shape[1:]) if cut else tuple(x.shape)
                    for (x, how), cut in zip(pairs, split, strict=True)]
        mine = [tuple(x.shape) if how is not None else None for x, how in pairs]
        comm = current_comm()
        if len(self._everyone) > 1 and comm.rank not in self._everyone or comm.size == 1:
            told = {r: mine for r in self._everyone}                    # alone: the others have as much
        else:
            told = dict(zip(self._everyone, comm.all_gather_object(mine, self._everyone), strict=True))
        return [None if how is None else _whole(i, how, told) if cut else tuple(x.shape)
                for i, ((x, how), cut) in enumerate(zip(pairs, split, strict=True))]


def _whole(i: int, how: tuple, told: dict[int, list]) -> tuple:
    """The shape of tensor i of a batch, of which the ranks of its mesh have parts."""
    mesh, placements = how
    axis = next(a for a, p in enumerate(placements) if p.is_shard())
    first = mesh.process_ids[0]
    return (sum(told[r][i][0] for r in mesh.group(first, axis)), *told[first][i][1:])


def _tensor(x: Tensor, how: tuple[ProcessMesh, tuple[Placement, ...]], shape: Any) -> Tensor:
    mesh, placements = how
    if mesh.contains(current().rank):
        return dtensor_from_local(x, mesh, placements, shape)
    enable()
    return Tensor(elsewhere(tuple(shape), x.payload.dtype, mesh, placements))


def _pairs(batch: Any, wanted: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a batch with what is wanted of it, in order."""
    if isinstance(batch, dict):
        for k, v in batch.items():
            yield from _pairs(v, wanted[k])
    elif isinstance(batch, (list, tuple)):
        for i, v in enumerate(batch):
            yield from _pairs(v, wanted[i] if isinstance(wanted, list) else None)
    else:
        yield batch, wanted


def _samples_of(batch: Any) -> int:
    sizes: list[int] = []
    mapped(batch, lambda x: sizes.append(x.shape[0]) if isinstance(x, Tensor) and x.ndim else None)
    if len(set(sizes)) != 1:
        raise ValueError("shard_dataloader: expected batches of an iterable dataset whose tensors have one first "
                         f"dimension, that of samples, got {sizes}; split the dataset by ranks, is_dataset_splitted="
                         "True")
    return sizes[0]


def _listed(given: Any) -> list:
    return list(given) if isinstance(given, (list, tuple)) else [] if given is None else [given]


def _flat(nested: list) -> list:
    return [y for x in nested for y in (x if isinstance(x, (list, tuple)) else [x])]


def _dims_of(given: Any, meshes: list) -> list:
    """A mesh axis, or None, for each mesh."""
    if given is None or isinstance(given, (str, int)):
        given = [[given] * len(m) if isinstance(m, (list, tuple)) else given for m in meshes]
    if len(given) != len(meshes):
        raise ValueError(f"shard_dataloader: expected shard_dims to be a mesh axis, or one for each of the "
                         f"{len(meshes)} meshes, got {given!r}")
    dims = [d if isinstance(d, (list, tuple)) or not isinstance(m, (list, tuple)) else [d] * len(m)
            for m, d in zip(meshes, given, strict=True)]
    for mesh, dim in zip(_flat(meshes), _flat(dims), strict=True):
        if dim is not None:
            mesh.axis(dim)                              # raises for an axis that is not there
    return dims


def shard_dataloader(dataloader: DataLoader, meshes: Any, input_keys: Sequence[str] | None = None,
                     shard_dims: Any = None, is_dataset_splitted: bool = False,
                     dense_tensor_idx: list[list[int]] | None = None) -> ShardDataloader:
    """A loader whose batches are distributed tensors.

    Args:
        dataloader: the loader as one rank would use it, with the global batch size.
        meshes: the mesh of all inputs, or one for each input of a batch; for an input that is a list of tensors, also a
            list of meshes.
        input_keys: of batches that are dicts, which entries are taken, in the order of `meshes`; all unless given.
        shard_dims: the mesh axis, by name or number, over whose ranks the samples of a batch are split; one for all
            meshes or one for each.  Unless given, every rank has all samples.
        is_dataset_splitted: the dataset is this rank's own part: `dataloader` gives what the rank is to have.
        dense_tensor_idx: for each input, which of its tensors stay ordinary ones.

    Unlike Paddle, which deals whole datasets to the ranks and repeats samples until all have as many, this gives
    the batches of one rank, however uneven; and `shard_dims` is the axis that the batch is placed on, also where it is
    not the first.
    Raises: ValueError for meshes, axes or batches that do not fit.

    >>> from minipd.dist.simulate import simulate
    >>> from minipd.io import TensorDataset
    >>> from minipd.ops.creation import arange
    >>> def run(mesh):
    ...     loader = DataLoader(TensorDataset([arange(7)]), batch_size=4)
    ...     return [(x.shape[0], x._local_value().tolist()) for x, in shard_dataloader(loader, mesh, shard_dims="dp")]
    >>> simulate("dp=2", run)
    [[(4, [0, 1]), (3, [4, 5])], [(4, [2, 3]), (3, [6])]]
    """
    return ShardDataloader(dataloader, meshes, input_keys, shard_dims, is_dataset_splitted, dense_tensor_idx)
