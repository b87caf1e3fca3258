"""save_state_dict: write a checkpoint."""

from __future__ import annotations

import itertools
import math
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minipd.dist.checkpoint import folder as files
from minipd.dist.checkpoint.meeting import Meeting
from minipd.dist.checkpoint.metadata import LocalTensorIndex, LocalTensorMetadata, Metadata, encoded
from minipd.dist.checkpoint.nested import flat
from minipd.dist.checkpoint.sharded_weight import ShardedWeight
from minipd.dist.checkpoint.values import blocks_of, held, is_here, local_array, resolved, shape_of
from minipd.dist.group import Group
from minipd.dist.reshard.across import Window, overlap
from minipd.framework import dtype as dtypes
from minipd.framework.errors import InputError
from minipd.framework.files import reason
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["save_state_dict"]

#: seconds for which files of other ranks are waited for by a process that has nothing else to do any more
PATIENCE = 60.0


class Described(NamedTuple):
    """What a rank says of a tensor that it has: global shape, dtype, and the blocks (shape, offsets) that it holds."""

    shape: tuple[int, ...]
    dtype: str
    blocks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


class Writing(NamedTuple):
    """A block that a rank writes: its block number `block` of the tensor `key`, to a file."""

    rank: int
    block: int
    file: str
    key: str


def save_state_dict(state_dict: dict[str, Any], path: str, process_group: Group | None = None,
                    coordinator_rank: int = 0, unique_id: int | None = None, async_save: bool = False,
                    safetensors: bool = False, save_replicas: bool = False) -> None:
    """Write a checkpoint of distributed tensors (and ordinary ones, and plain values) into a folder.

    Every rank calls it, with the tensors that it has: ranks may have different ones, as the stages of a model do.  Each
    writes what it holds; of what several hold, one of them.  When it returns, the checkpoint is whole; until then, the
    one that was there before is.

    Args:
        state_dict: a dict, perhaps of dicts: of tensors, numbers, strings, None and lists of them.
        path: the folder.  Paddle can read the tensors in it.
        process_group: the ranks that save together; all unless given.
        coordinator_rank: which of them puts the files into place.
        unique_id: the number of the checkpoint in the folder; one of this number is replaced.  The last there is, or 0,
            unless given.
        async_save: return at once, and write in a thread what the tensors are now.  The next save or load of this
            process waits for it; so does its end.
        safetensors: write safetensors files.
        save_replicas: write what several ranks hold as often as they hold it.

    Raises: TypeError for what cannot be saved, ValueError for tensors of which no started rank has all, InputError for
    a folder that cannot be written; on every rank.

    >>> from tempfile import TemporaryDirectory
    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.checkpoint.load import load_state_dict
    >>> from minipd.dist.placements import Replicate, Shard
    >>> from minipd.dist.simulate import simulate
    >>> def save(mesh):
    ...     save_state_dict({"w": shard_tensor([1.0, 2.0, 3.0], mesh, [Shard(0)]), "step": 7}, folder)
    >>> def load(mesh):
    ...     state = {"w": shard_tensor([0.0, 0.0, 0.0], mesh, [Shard(0)]), "step": 0}
    ...     load_state_dict(state, folder)
    ...     return state["w"].tolist(), state["step"]
    >>> with TemporaryDirectory() as folder:
    ...     simulate("dp=2", save), simulate("dp=3", load)[0]
    ([None, None], ([1.0, 2.0, 3.0], 7))
    """
    meeting = Meeting(process_group, coordinator_rank)
    if not meeting.is_member:
        return
    finish_saves(meeting)
    problem: Exception | None = None
    tensors, values, paths = {}, {}, {}                 # type: Any, Any, Any
    target = Path(path)
    try:
        tensors, values, paths = flat(state_dict, "save_state_dict")
        if unique_id is not None and (isinstance(unique_id, bool) or not isinstance(unique_id, int) or unique_id < 0):
            raise ValueError(f"save_state_dict: expected unique_id to be a whole number >= 0, got {unique_id!r}")
        target.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        problem = InputError("a folder for the checkpoint", f"{path} ({reason(e)})", "give another path")
    except (TypeError, ValueError) as e:
        problem = e
    meeting.agree(problem)

    tensors = {key: resolved(t) for key, t in tensors.items() if is_here(t)}
    number = (files.latest(target) or 0) if unique_id is None else unique_id
    told = meeting.all(({key: describe(t) for key, t in tensors.items()}, values, paths, number))
    numbers = [n for *_, n in told]
    if unique_id is not None and len(set(numbers)) > 1:
        raise ValueError(f"save_state_dict: expected one unique_id on all ranks, got {numbers} on "
                         f"{list(meeting.ranks)}")
    number = numbers[meeting.ranks.index(meeting.leader)]
    suffix = f"{number}.safetensors" if safetensors else f"{number}.distcp"
    described = [mine for mine, *_ in told]
    jobs = assign(described, meeting.ranks, meeting.comm.size, suffix)
    mine: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for writers in jobs.values():
        for w in writers if save_replicas else writers[:1]:
            if w.rank == meeting.rank:
                mine[w.file][w.key] = _block(tensors[w.key], w.block, copy=async_save)
    sums = {name: {key: files.checksum(a) for key, a in arrays.items()} for name, arrays in mine.items()}
    all_sums = {name: found for one in meeting.all(sums) for name, found in one.items()}
    metadata = encoded(describe_all(described, jobs, {k: p for _, _, ps, _ in told for k, p in ps.items()},
                                    save_replicas))
    merged = {path: value for _, found, *_ in reversed(told) for path, value in found.items()}
    index = {"checksums": all_sums, "values": [[list(path), value] for path, value in merged.items()]}
    names = {key: (t if isinstance(t, Tensor) else t.local_tensor).name for key, t in tensors.items()}

    def write() -> None:
        for name, arrays in mine.items():
            files.write_data(target / name, arrays, names)

    def publish() -> None:
        files.publish(target, number, all_sums, metadata, index)

    if async_save:
        current().saves.append(_Save(write, publish if meeting.leads else None,
                                     [files.written(target / name) for name in all_sums]))
        return
    meeting.agree(_tried(write, path))
    meeting.agree(_tried(publish, path) if meeting.leads else None)


def describe(t: Tensor | ShardedWeight) -> Described:
    """What this rank has of a tensor."""
    p = held(t)
    blocks = [(tuple(b.shape), tuple(b.offsets)) for b in blocks_of(t)]
    return Described(shape_of(t), dtypes.of(p.dtype).name, tuple(b for b in blocks if math.prod(b[0])))


def assign(described: Sequence[Mapping[str, Described]], ranks: Sequence[int], size: int,
           suffix: str) -> dict[tuple[str, tuple[int, ...]], list[Writing]]:
    """Who could write which block, the one who does first: (key, offsets) -> a list.  Every rank finds the same.

    Of those that hold a block, the one with the fewest bytes so far writes it.  A file has one block of a tensor: the
    second and further ones that a rank holds (a split factor parts what it has) go to files of other numbers.
    Raises: ValueError where ranks say different things of a tensor, or nobody has a part of it.
    """
    load: dict[int, int] = dict.fromkeys(ranks, 0)
    jobs: dict[tuple[str, tuple[int, ...]], list[Writing]] = {}
    for key in dict.fromkeys(key for mine in described for key in mine):
        found = {rank: mine[key] for rank, mine in zip(ranks, described, strict=True) if key in mine}
        first = next(iter(found.values()))
        for rank, d in found.items():
            if (d.shape, d.dtype) != (first.shape, first.dtype):
                raise ValueError(f"save_state_dict: expected one {key} on all ranks, got {first.dtype} "
                                 f"{list(first.shape)} on rank {next(iter(found))} and {d.dtype} {list(d.shape)} on "
                                 f"rank {rank}")
        if math.prod(first.shape) == 0:
            jobs[key, (0,) * len(first.shape)] = [Writing(next(iter(found)), 0, f"{next(iter(found))}_{suffix}", key)]
            continue
        holders: dict[tuple, list[Writing]] = {}
        for rank, d in found.items():
            for n, block in enumerate(d.blocks):
                holders.setdefault(block, []).append(Writing(rank, n, f"{rank + n * size}_{suffix}", key))
        there = sum(math.prod(shape) for shape, _ in holders)
        if there != math.prod(first.shape):
            raise ValueError(f"save_state_dict: expected all of {key}, {first.dtype} {list(first.shape)}, on the ranks "
                             f"{list(ranks)}, got {there} of its {math.prod(first.shape)} elements; save with all "
                             "ranks of its mesh")
        if (both := overlapping(list(holders))) is not None:
            raise ValueError(f"save_state_dict: expected parts of {key} that do not overlap, got (shape, offsets) "
                             f"{both[0]} and {both[1]}")
        for (shape, offsets), writers in holders.items():
            writers.sort(key=lambda w: (load[w.rank], w.rank))
            load[writers[0].rank] += math.prod(shape)
            jobs[key, offsets] = writers
    return jobs


def overlapping(blocks: Sequence[Window]) -> tuple[Window, Window] | None:
    """Two different blocks that have elements in common; None if there are none.

    Blocks of one grid, which a mesh makes, differ in an interval that they have of some dimension; only where intervals
    overlap, as those of a tensor that is split by hand may, each block is compared with each.

    >>> overlapping([((2, 2), (0, 0)), ((2, 2), (0, 2)), ((1, 4), (1, 0))])
    (((2, 2), (0, 0)), ((1, 4), (1, 0)))
    """
    for dim in range(len(blocks[0][0])):
        intervals = sorted({(offsets[dim], shape[dim]) for shape, offsets in blocks})
        if any(start + n > after for (start, n), (after, _) in itertools.pairwise(intervals)):
            return next((pair for pair in itertools.combinations(blocks, 2) if overlap(*pair) is not None), None)
    return None


def describe_all(described: Sequence[Mapping[str, Described]], jobs: Mapping[tuple, list[Writing]],
                 paths: dict[str, tuple[str, ...]], replicas: bool) -> Metadata:
    """The metadata of a checkpoint."""
    about = {key: d for mine in described for key, d in mine.items()}
    shapes = {(key, offsets): shape for mine in described for key, d in mine.items() for shape, offsets in d.blocks}
    blocks: dict[str, list[LocalTensorMetadata]] = {}
    stored: dict[LocalTensorIndex, str] = {}
    for (key, offsets), writers in jobs.items():
        shape = shapes.get((key, offsets), about[key].shape)
        blocks.setdefault(key, []).append(LocalTensorMetadata(offsets, shape, about[key].dtype, about[key].shape))
        for i, w in enumerate(writers if replicas else writers[:1]):
            stored[LocalTensorIndex(key, offsets, replica_id=i if replicas else None, local_shape=shape)] = w.file
    return Metadata(blocks, stored, {key: paths[key] for key in about})


def _block(t: Tensor | ShardedWeight, number: int, copy: bool) -> np.ndarray:
    """A block of what this rank holds, in one piece."""
    if math.prod(shape_of(t)) == 0:
        return np.empty(shape_of(t), held(t).dtype)
    array = blocks_of(t)[number].of_local(local_array(t))
    return np.array(array) if copy else np.asarray(array, order="C")


def _tried(action: Any, path: str) -> Exception | None:
    try:
        action()
    except OSError as e:
        return InputError("a folder in which files can be written", f"{path} ({reason(e)})",
                          "make room, or give another path")
    return None


class _Save:
    """A save that goes on in a thread: writes this rank's files; where it leads, waits for all and puts them into
    place."""

    def __init__(self, write: Any, publish: Any, awaited: list[Path]):
        self.write, self.publish, self.awaited = write, publish, awaited
        self.problem: Exception | None = None
        self.given_up = False               # another rank has failed: its files will not come
        self.thread = threading.Thread(target=self._run, name="save_state_dict")
        self.thread.start()

    def _run(self) -> None:
        try:
            self.write()
            if self.publish is not None:
                self._wait()
                if not self.given_up:
                    self.publish()
        except Exception as e:
            self.problem = e
            if not threading.main_thread().is_alive():      # nobody will ask any more
                traceback.print_exc()

    def _wait(self) -> None:
        alone = None
        while not self.given_up and not all(path.exists() for path in self.awaited):
            if not threading.main_thread().is_alive():
                alone = alone or time.monotonic()
                if time.monotonic() - alone > PATIENCE:
                    raise TimeoutError(f"expected the files {[p.name for p in self.awaited if not p.exists()]} of "
                                       "other ranks, which have not been written")
            time.sleep(0.005)


def finish_saves(meeting: Meeting) -> None:
    """Wait for what this process still writes; what went wrong there is raised, on every rank.

    The rank that waits for the others' files is told first whether they can come.
    """
    saves = current().saves
    waits = any(save.publish is not None for save in saves)
    problem = None if waits else _joined(saves)
    failed = next((p for p in meeting.all(problem) if p is not None), None)
    if waits:
        for save in saves:
            save.given_up = failed is not None
        problem = _joined(saves)
    saves.clear()
    meeting.agree(failed or problem)


def _joined(saves: Sequence[_Save]) -> Exception | None:
    for save in saves:
        save.thread.join()
    return next((save.problem for save in saves if save.problem is not None), None)
