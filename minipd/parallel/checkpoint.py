"""Checkpoints: a folder with one safetensors file per rank and an index, renamed into place when it is complete.

A rank writes what it holds: its shard of every tensor that it has.  The index (`index.json`) says what the shards are
of: global shape, dtype, and which ranks have which part, per tensor; and whatever the trainer adds (step,
configuration).  So a folder under its final name is always whole; an interrupted save leaves only a `.tmp` folder.

It is read on any mesh: each rank puts together what it holds there (`stored.py`).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from minipd.dist.checkpoint.values import fill, local_array, resolved
from minipd.framework.context import using
from minipd.framework.errors import InputError
from minipd.framework.meta import Meta, describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.parallel.stored import Stored, entry, merged, window_of

__all__ = ["load_checkpoint", "read_index", "save_checkpoint"]

FORMAT = 2


def _file(rank: int) -> str:
    return f"rank_{rank:05d}.safetensors"


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], extra: Mapping[str, Any], comm: Any = None) -> Path:
    """Write a checkpoint; every rank calls this, and when it returns on any of them the folder is complete.

    folder: the final name, which must not exist.  tensors: those that this rank has; ranks may have different ones (the
    stages of a pipeline do).  extra: JSON values for the index.
    Raises: InputError on every rank if the folder exists already.
    """
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    temporary = folder.with_name(folder.name + ".tmp")
    taken = folder.exists()
    if comm is not None:
        taken = any(comm.all_gather_object(taken))
    if taken:
        raise InputError("a folder that does not exist for the checkpoint", str(folder), "choose another name")
    if rank == 0:
        shutil.rmtree(temporary, ignore_errors=True)        # left behind by an interrupted save
        temporary.mkdir(parents=True)
    if comm is not None:
        comm.barrier()
    arrays = {name: np.asarray(local_array(resolved(t)), order="C") for name, t in tensors.items()}
    save_file(arrays, temporary / _file(rank))
    mine = {name: entry(t) for name, t in tensors.items()}
    entries = [mine] if comm is None else comm.all_gather_object(mine)      # the index is written when every shard is
    if rank == 0:
        index = {"format": FORMAT, "ranks": size, "tensors": merged(entries), **extra}
        (temporary / "index.json").write_text(json.dumps(index, indent=1), encoding="utf-8")
        os.replace(temporary, folder)
    if comm is not None:
        comm.barrier()
    return folder


def read_index(folder: Path) -> dict[str, Any]:
    """The index of a checkpoint.

    Raises: InputError if there is none, or it is not readable.
    """
    try:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("a checkpoint (a folder with index.json)", str(folder), "name another folder") from None
    except ValueError as e:
        raise InputError("a readable index.json", f"{folder / 'index.json'} ({e})", "use another checkpoint") from None
    version = index.get("format") if isinstance(index, dict) else None
    if version != FORMAT:
        raise InputError(f"a checkpoint of format {FORMAT}", f"format {version} in {folder}",
                         "use the version of minipd that wrote it")
    if not isinstance(index.get("ranks"), int) or not isinstance(index.get("tensors"), dict):
        raise InputError("an index.json with `ranks` and `tensors`", f"{sorted(index)} in {folder}",
                         "use another checkpoint")
    return index


def load_checkpoint(folder: Path, tensors: Mapping[str, Tensor], comm: Any = None) -> dict[str, Any]:
    """Fill `tensors` with what a checkpoint holds, whatever mesh it was written on; every rank calls this, with the
    tensors that it has.  Returns the index.

    Nothing is touched, on any rank, unless everything fits on all of them.
    Raises: InputError, on every rank, if the checkpoint is of another model, or damaged.
    """
    problem: InputError | None = None
    index, arrays, wanted = {}, {}, {name: describe(_whole(t)) for name, t in tensors.items()}
    if comm is not None:                # what another stage reads is not missing here
        wanted = {name: text for mine in comm.all_gather_object(wanted) for name, text in mine.items()}
    try:
        index = read_index(folder)
        arrays = _fitting(folder, index, tensors, wanted)
    except InputError as error:
        problem = error
    if comm is not None:                # a rank that goes on alone would have half of another state
        problem = next((p for p in comm.all_gather_object(problem) if p is not None), None)
    if problem is not None:
        raise problem
    with using(grad=False):
        for name, t in tensors.items():
            fill(t, arrays.pop(name))
    return index


def _whole(t: Tensor) -> Meta:
    return Meta(tuple(t.payload.shape), t.payload.dtype)


def _fitting(folder: Path, index: Mapping[str, Any], tensors: Mapping[str, Tensor],
             wanted: Mapping[str, str]) -> dict[str, np.ndarray]:
    """What this rank holds of its tensors, from the files.   wanted: shape and dtype of the tensors of all ranks."""
    rank = current().rank
    try:
        stored = {name: Stored(name, found) for name, found in index["tensors"].items()}
    except (KeyError, TypeError, ValueError) as e:
        raise InputError("an index.json that says what its tensors are", f"{folder / 'index.json'} ({e!r})",
                         "use another checkpoint") from None
    found = {name: describe(Meta(s.shape, s.dtype)) for name, s in stored.items()}
    if wanted != found:
        raise InputError(f"a checkpoint of this model: {len(wanted)} tensors", _difference(wanted, found, folder),
                         "resume with the configuration that the checkpoint was written with")
    with ExitStack() as files:
        opened: dict[int, Any] = {}

        def read(holder: int, name: str, meta: Meta) -> np.ndarray:
            path = folder / _file(holder)
            try:
                if holder not in opened:
                    opened[holder] = files.enter_context(safe_open(path, framework="numpy"))
                array = opened[holder].get_tensor(name)
            except (OSError, SafetensorError) as e:
                raise InputError("a complete checkpoint", f"{path} ({e})", "use another checkpoint") from None
            if describe(array) != describe(meta):
                raise InputError(f"{name}: {describe(meta)}", f"{describe(array)} in {path}", "use another checkpoint")
            return array
        return {name: stored[name].read(window_of(t), rank, read) for name, t in tensors.items()}


def _difference(wanted: Mapping[str, str], found: Mapping[str, str], folder: Path) -> str:
    missing, extra = ([n for n in a if n not in b] for a, b in ((wanted, found), (found, wanted)))
    if missing or extra:
        return (f"{len(found)} in {folder}" + (f", without {_some(missing)}" if missing else "")
                + (f", with {_some(extra)}" if extra else ""))
    name = next(n for n in wanted if wanted[n] != found[n])
    return f"{name}: expected {wanted[name]}, found {found[name]} in {folder}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
