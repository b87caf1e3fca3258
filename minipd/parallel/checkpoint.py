"""Checkpoints: a folder with one safetensors file per rank and an index, renamed into place when it is complete.

A rank writes what it holds: its shard of every tensor.  The index (`index.json`) says what the shards are of: global
shape, dtype and placements per tensor, with the mesh if it is split, and whatever the trainer adds (step,
configuration, random state).  A folder under its final name is therefore always whole; an interrupted save leaves only
a `.tmp` folder behind.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from minipd.dist.sharding import sharding_text
from minipd.dist.value import DistValue
from minipd.framework import dtype as dtypes
from minipd.framework.context import using
from minipd.framework.errors import InputError
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.optimizer.optimizer import replace

__all__ = ["load_checkpoint", "read_index", "save_checkpoint"]

FORMAT = 1


def held(t: Tensor) -> np.ndarray | DistValue:
    """A tensor's value as it is held now: a Partial that somebody has resolved is what it was resolved to."""
    return t.payload.held() if isinstance(t.payload, DistValue) else t.payload


def local_array(t: Tensor) -> np.ndarray:
    """What this rank holds of a tensor."""
    p = held(t)
    return p.local if isinstance(p, DistValue) else p


def _describe(t: Tensor) -> dict[str, Any]:
    """What the index says of a tensor.  One that is not distributed is whole on every rank: it reads as replicated.

    The mesh belongs to a split one: under another order of ranks, or of axes, the same rank has another part.
    """
    p = held(t)
    found = {"shape": list(p.shape), "dtype": dtypes.of(p.dtype).name, "sharding": describe(p)}
    if isinstance(p, DistValue):
        found["sharding"] = sharding_text(p.shape, p.dtype, p.mesh, p.placements)
        if not all(q.is_replicated() for q in p.placements):
            found["mesh"] = f"{p.mesh.text()} of the ranks {p.mesh.process_ids}"
    return found


def _file(rank: int) -> str:
    return f"rank_{rank:05d}.safetensors"


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], extra: Mapping[str, Any], comm: Any = None) -> Path:
    """Write a checkpoint; every rank calls this, and when it returns on any of them the folder is complete.

    folder: the final name, which must not exist.  extra: JSON values for the index.
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
    save_file({name: np.asarray(local_array(t), order="C") for name, t in tensors.items()}, temporary / _file(rank))
    if comm is not None:
        comm.barrier()                                      # the index is written when every shard is
    if rank == 0:
        index = {"format": FORMAT, "ranks": size, "tensors": {n: _describe(t) for n, t in tensors.items()}, **extra}
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
    """Fill `tensors` with what a checkpoint holds; every rank calls this.  Returns the index.

    Nothing is touched, on any rank, unless everything fits on all of them.
    Raises: InputError, on every rank, if the checkpoint is of another model, of another mesh, or damaged.
    """
    rank, size = (0, 1) if comm is None else (comm.rank, comm.size)
    problem: InputError | None = None
    try:
        index = read_index(folder)
        arrays = _fitting(folder, index, tensors, rank, size)
    except InputError as error:
        problem = error
    if comm is not None:                # a rank that goes on alone would have half of another state
        problem = next((p for p in comm.all_gather_object(problem) if p is not None), None)
    if problem is not None:
        raise problem
    with using(grad=False):
        for name, t in tensors.items():
            _fill(t, np.array(arrays.pop(name)))
    return index


def _fitting(folder: Path, index: Mapping[str, Any], tensors: Mapping[str, Tensor], rank: int,
             size: int) -> dict[str, np.ndarray]:
    """What the file of a rank holds, if it is what `tensors` want."""
    if index["ranks"] != size:
        raise InputError(f"a checkpoint of {size} rank(s)", f"one of {index['ranks']} in {folder}",
                         f"resume on {index['ranks']} rank(s), with the mesh it was written on")
    expected = {n: _describe(t) for n, t in tensors.items()}
    if index["tensors"] != expected:
        raise InputError(f"a checkpoint of this model: {len(expected)} tensors",
                         _difference(expected, index["tensors"], folder),
                         "resume with the configuration that the checkpoint was written with")
    try:
        arrays = load_file(folder / _file(rank))
    except (OSError, SafetensorError) as e:
        raise InputError("a complete checkpoint", f"{folder / _file(rank)} ({e})", "use another checkpoint") from None
    for name, t in tensors.items():
        want, got = describe(local_array(t)), describe(arrays[name]) if name in arrays else "nothing"
        if want != got:
            raise InputError(f"{name}: {want} on rank {rank}", f"{got} in {folder / _file(rank)}",
                             "use another checkpoint")
    return arrays


def _fill(t: Tensor, array: np.ndarray) -> None:
    """Other values for a tensor; who shares its memory sees them."""
    p = held(t)
    new = DistValue(array, p.shape, p.dtype, p.mesh, p.placements) if isinstance(p, DistValue) else array
    replace(t, Tensor(new))


def _difference(expected: Mapping[str, Any], found: Mapping[str, Any], folder: Path) -> str:
    missing, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if missing or extra:
        return (f"{len(found)} in {folder}" + (f", without {missing[0]}" if missing else "")
                + (f", with {extra[0]}" if extra else ""))
    name = next(n for n in expected if expected[n] != found[n])

    def text(d: Mapping[str, Any]) -> str:
        return f"{d['sharding']} on the mesh {d['mesh']}" if "mesh" in d else d["sharding"]
    return f"{name}: expected {text(expected[name])}, found {text(found[name])} in {folder}"
