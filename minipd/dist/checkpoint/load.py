"""load_state_dict and load_merged_state_dict: read a checkpoint, on any mesh."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minipd.dist.checkpoint import folder as files
from minipd.dist.checkpoint import nested
from minipd.dist.checkpoint.meeting import Meeting
from minipd.dist.checkpoint.metadata import Metadata, decoded
from minipd.dist.checkpoint.save import finish_saves
from minipd.dist.checkpoint.values import blocks_of, copy_block, fill, held, is_here, room_for, shape_of
from minipd.dist.group import Group
from minipd.dist.reshard.across import overlap
from minipd.dist.sharding import Block
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.errors import InputError
from minipd.framework.files import reason
from minipd.framework.tensor import Tensor
from minipd.io.unpickling import Refused

__all__ = ["load_merged_state_dict", "load_state_dict"]

METHODS = ("send_recv", "broadcast", "multi_group_broadcast", "grouped_send_recv", "parallel_broadcast")
MANY = 5


class Stored(NamedTuple):
    """A tensor in a checkpoint: its blocks (shape, offsets) and the file of each."""

    shape: tuple[int, ...]
    dtype: np.dtype
    blocks: list[tuple[tuple[int, ...], tuple[int, ...], str]]

    def text(self) -> str:
        return f"{dtypes.of(self.dtype).short}{list(self.shape)}"


class Checkpoint:
    """What is in a folder.

    Raises: InputError if there is no checkpoint, or it is none.
    """

    def __init__(self, folder: Path, number: int | None):
        self.folder = folder
        try:
            number = files.latest(folder) if number is None else number
            if number is None:
                raise InputError("a folder with a checkpoint (0.metadata and its files)", str(folder),
                                 "check the path")
            data = (folder / f"{number}.metadata").read_bytes()
        except OSError as e:
            raise InputError("a whole checkpoint, with its metadata", f"{folder / f'{number}.metadata'} ({reason(e)})",
                             "check the path and unique_id; a save that was interrupted leaves no metadata") from None
        try:
            self.tensors = dict(_tensors(decoded(data)))
        except Refused as e:
            raise InputError("the metadata of a checkpoint", f"{folder / f'{number}.metadata'} with {e}",
                             "use another checkpoint") from None
        index = files.read_index(folder / f"{number}.index.json")
        self.checksums: dict[str, dict[str, int]] = index["checksums"]
        self.values = {tuple(path): value for path, value in index["values"]}

    def read(self, wanted: Mapping[str, tuple[np.ndarray, list[Block]]]) -> None:
        """Fill arrays.   wanted: by key, an array and where in it which blocks of the tensor are."""
        jobs: dict[str, list[tuple]] = defaultdict(list)
        for key, (array, blocks) in wanted.items():
            for block in blocks:
                found = 0
                for shape, offsets, file in self.tensors[key].blocks:
                    common = overlap((block.shape, block.offsets), (shape, offsets))
                    if common is not None:
                        found += math.prod(common[0])
                        jobs[file].append((key, shape, offsets, common, array, block))
                if found != math.prod(block.shape):
                    raise InputError(f"all of {key} in the checkpoint", f"{found} of {math.prod(block.shape)} elements "
                                     f"of the block {list(block.shape)} at {list(block.offsets)} in {self.folder}",
                                     "use another checkpoint")
        for file in sorted(jobs):
            opened = files.DataFile(self.folder / file, self.checksums.get(file))
            read: dict[str, np.ndarray] = {}
            for key, shape, offsets, common, array, block in jobs[file]:
                if key not in read:
                    read[key] = opened.read(key, shape, self.tensors[key].dtype)
                copy_block(common, read[key], offsets, array, block)


def _tensors(metadata: Metadata) -> Iterable[tuple[str, Stored]]:
    where = {(i.tensor_key, i.global_offset): file for i, file in metadata.storage_metadata.items()
             if i.replica_id in (None, 0)}
    for key, blocks in metadata.state_dict_metadata.items():
        found: dict[tuple[tuple, tuple, str], None] = {}            # each once: copies of a block are blocks, too
        for b in blocks:
            if b.is_flattened:
                raise Refused(f"{key} in flattened pieces, which are not read here")
            if (key, b.global_offset) not in where:
                raise Refused(f"no file for {key} at {list(b.global_offset)}")
            found.setdefault((b.local_shape, b.global_offset, where[key, b.global_offset]))
        if not found:
            raise Refused(f"no block of {key}")
        shape = blocks[0].global_shape or tuple(
            max(o[d] + s[d] for s, o, _ in found) for d in range(len(blocks[0].local_shape)))
        try:
            dtype = dtypes.to_np(blocks[0].dtype)
        except (TypeError, ValueError) as e:
            raise Refused(f"{key} of a dtype that is none ({e})") from None
        yield key, Stored(tuple(shape), dtype, list(found))


def load_state_dict(state_dict: dict[str, Any], path: str, process_group: Group | None = None,
                    coordinator_rank: int = 0, unique_id: int | None = None, offload: bool = False,
                    mw_name_compatibility: bool = True, aoa_config: Any = None, safetensors: bool = False,
                    worker_groups: Any = None, comm_method: str = "broadcast") -> None:
    """Fill the tensors of a state with what a checkpoint has, whatever mesh it was saved from; in place.

    Every rank calls it, with the tensors that it has, and reads what it holds of them.  Plain values are put into the
    dicts that they were in.  Nothing is changed, on any rank, unless everything fits on all.  What the checkpoint has
    beyond the state is left alone, with a warning.

    Args:
        state_dict: a dict, perhaps of dicts, of the tensors to fill.
        path: the folder; all ranks see the same files.
        process_group, coordinator_rank: the ranks that load together, and which of them warns.
        unique_id: the number of the checkpoint; the last there is unless given.
        offload, mw_name_compatibility, safetensors, worker_groups, comm_method: accepted as in Paddle, without effect:
            ranks read the files, and say nothing to each other of what is in them.

    Raises: InputError, on every rank, if the checkpoint lacks a tensor of the state (where Paddle warns, and leaves it
    as it was), has it in another shape or dtype, is not whole, or is not what was written; NotImplementedError for an
    aoa_config.
    """
    if aoa_config is not None:
        raise NotImplementedError("load_state_dict: expected no aoa_config, which renames and joins tensors, got "
                                  f"{aoa_config!r}; load into a state with the names of the checkpoint")
    if comm_method not in METHODS:
        raise ValueError(f"load_state_dict: expected comm_method to be one of {', '.join(METHODS)}, got "
                         f"{comm_method!r}")
    meeting = Meeting(process_group, coordinator_rank)
    if not meeting.is_member:
        return
    finish_saves(meeting)
    problem: Exception | None = None
    tensors, values, paths, arrays = {}, {}, {}, {}         # type: Any, Any, Any, Any
    checkpoint: Any = None
    try:
        tensors, values, paths = nested.flat(state_dict, "load_state_dict")
        checkpoint = Checkpoint(Path(path), unique_id)
        _check(tensors, paths, values, checkpoint)
        arrays = {key: room_for(t) for key, t in tensors.items() if is_here(t)}
        checkpoint.read({key: (array, blocks_of(tensors[key])) for key, array in arrays.items()
                         if key in checkpoint.tensors})
        for key, array in arrays.items():
            if key not in checkpoint.tensors:               # a number that was saved as one
                array[...] = checkpoint.values[paths[key]]
        values = _plain(state_dict, values, checkpoint)
    except (TypeError, ValueError) as e:
        problem = e
    meeting.agree(problem)
    asked = {key for mine in meeting.all([*tensors, *map(".".join, values)]) for key in mine}
    extra = sorted(checkpoint.tensors.keys() - asked)
    if extra and meeting.leads:
        warnings.warn(f"load_state_dict: the checkpoint {path} also has {_some(extra)}, which the state has no place "
                      "for", stacklevel=2)
    with using(grad=False):
        for key, array in arrays.items():
            fill(tensors[key], array)
    for place, value in values.items():
        nested.parent(state_dict, place)[place[-1]] = value


def _check(tensors: nested.Tensors, paths: Mapping[str, nested.Path], values: Mapping[nested.Path, Any],
           checkpoint: Checkpoint) -> None:
    """InputError unless the checkpoint has the tensors of a state, in their shapes and dtypes."""
    where = str(checkpoint.folder)
    missing = [key for key, t in tensors.items() if key not in checkpoint.tensors and not (
        math.prod(shape_of(t)) == 1 and isinstance(checkpoint.values.get(paths[key]), (bool, int, float)))]
    missing += [".".join(place) for place in values
                if place not in checkpoint.values and ".".join(place) not in checkpoint.tensors]
    if missing:
        extra = sorted(checkpoint.tensors.keys() - tensors.keys())
        raise InputError(f"a checkpoint of the {len(tensors) + len(values)} entries of the state",
                         f"{where} without {_some(missing)}" + (f", but with {_some(extra)}" if extra else ""),
                         "load into a state that has the names of the checkpoint, or leave out what it lacks")
    for key, t in tensors.items():
        if key not in checkpoint.tensors:
            continue
        p, stored = held(t), checkpoint.tensors[key]
        if shape_of(t) != stored.shape or p.dtype != stored.dtype:
            raise InputError(f"{key}: {Stored(shape_of(t), p.dtype, []).text()}", f"{stored.text()} in {where}",
                             "make the model as it was made when the checkpoint was saved")
        if any(q.is_partial() for q in getattr(p, "placements", ())):
            raise ValueError(f"load_state_dict: expected {key} to be replicated or sharded, got {p!r}; reshard it, "
                             "then load")


def _plain(state: Any, wanted: Mapping[nested.Path, Any], checkpoint: Checkpoint) -> dict[nested.Path, Any]:
    """The plain values for a state: those of the checkpoint whose dict the state has, and numbers that the checkpoint
    has as tensors."""
    found = {place: value for place, value in checkpoint.values.items()
             if (into := nested.parent(state, place)) is not None and not isinstance(into.get(place[-1]), Tensor)}
    for place in wanted.keys() - found.keys():
        stored = checkpoint.tensors[key := ".".join(place)]
        if math.prod(stored.shape) != 1:
            raise InputError(f"{key}: a value", f"{stored.text()} in {checkpoint.folder}",
                             "make the state as it was made when the checkpoint was saved")
        one = np.empty(stored.shape, stored.dtype)
        checkpoint.read({key: (one, [Block(stored.shape, (0,) * one.ndim, (0,) * one.ndim)])})
        found[place] = one.item()
    return found


def _some(names: list[str]) -> str:
    return ", ".join(names[:MANY]) + (f" and {len(names) - MANY} more" if len(names) > MANY else "")


def load_merged_state_dict(path: str, prefix: str | None = None, unique_id: int | None = None, offload: bool = False,
                           aoa_config: Any = None, safetensors: bool = False) -> dict[str, Tensor]:
    """All tensors of a checkpoint as ordinary ones, whole, by key (`model.w`).

    prefix: only those whose key begins with it, without it: with "model", `w`.
    Raises: InputError if there is no checkpoint, or it is not whole.

    >>> from tempfile import TemporaryDirectory
    >>> from minipd.dist.checkpoint.save import save_state_dict
    >>> from minipd.ops.creation import ones
    >>> with TemporaryDirectory() as folder:
    ...     save_state_dict({"model": {"w": ones([2])}}, folder)
    ...     {name: t.tolist() for name, t in load_merged_state_dict(folder, "model").items()}
    {'w': [1.0, 1.0]}
    """
    if aoa_config is not None:
        raise NotImplementedError("load_merged_state_dict: expected no aoa_config, which renames and joins tensors, "
                                  f"got {aoa_config!r}; rename what this returns")
    checkpoint = Checkpoint(Path(path), unique_id)
    keys = [key for key in checkpoint.tensors if prefix is None or key.startswith(prefix)]
    arrays = {key: np.empty(checkpoint.tensors[key].shape, checkpoint.tensors[key].dtype) for key in keys}
    checkpoint.read({key: (a, [Block(a.shape, (0,) * a.ndim, (0,) * a.ndim)]) for key, a in arrays.items()})
    return {key[len(prefix) + 1:] if prefix else key: Tensor(a) for key, a in arrays.items()}
