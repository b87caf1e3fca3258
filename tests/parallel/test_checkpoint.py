"""Checkpoints: what was saved comes back to the bit, and what does not fit is refused before anything is touched."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from minipd.dist.api import shard_tensor
from minipd.dist.comm.sim import World
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Replicate, Shard
from minipd.framework.context import RankContext
from minipd.framework.errors import InputError
from minipd.framework.rank import enter, leave
from minipd.framework.tensor import Tensor
from minipd.parallel.checkpoint import load_checkpoint, local_array, read_index, save_checkpoint


def state(weight: int = 0, step: int = 0, half: float = 0.0) -> dict[str, Tensor]:
    return {"weight": Tensor(np.full((2, 3), weight, np.float32)), "step": Tensor(np.array(step)),
            "half": Tensor(np.array([half], ml_dtypes.bfloat16))}


def values(tensors: dict[str, Tensor]) -> dict[str, list]:
    return {name: local_array(t).tolist() for name, t in tensors.items()}


def test_what_was_saved_comes_back(tmp_path):
    save_checkpoint(tmp_path / "c", state(7, 3, 1.5), {"step": 3})
    fresh = state()
    assert load_checkpoint(tmp_path / "c", fresh)["step"] == 3
    assert values(fresh) == values(state(7, 3, 1.5))
    index = read_index(tmp_path / "c")["tensors"]
    assert {n: d["sharding"] for n, d in index.items()} == {"weight": "f32[2, 3]", "step": "i64[]", "half": "bf16[1]"}
    stored = load_file(tmp_path / "c" / "rank_00000.safetensors")
    assert {n: list(a.shape) for n, a in stored.items()} == {n: d["shape"] for n, d in index.items()}


def on_ranks(body):
    """What `body(comm)` returns on each of two ranks."""
    def rank(comm):
        token = enter(RankContext(comm.rank, comm.size, comm))
        try:
            return body(comm)
        finally:
            leave(token)
    return World(2).run(rank)


def test_each_rank_keeps_its_shard_and_whole_tensors_read_as_replicated(tmp_path):
    """5 rows over two ranks are 3 and 2.  A count that was plain when it was saved may be distributed when it is read,
    and the other way round: either way every rank holds all of it."""
    mesh = parse_mesh("tp=2")

    def tensors(rows: np.ndarray, count: int, distributed: bool) -> dict[str, Tensor]:
        n = Tensor(np.array(count))
        return {"rows": shard_tensor(rows, mesh, [Shard(0)]),
                "count": shard_tensor(n, mesh, [Replicate()]) if distributed else n}

    def body(comm):
        for distributed in (False, True):
            folder = tmp_path / str(distributed)
            save_checkpoint(folder, tensors(np.arange(5.0), 9, distributed), {}, comm)
            fresh = tensors(np.zeros(5), 0, not distributed)
            load_checkpoint(folder, fresh, comm)
            assert values(fresh) == {"rows": [[0.0, 1.0, 2.0], [3.0, 4.0]][comm.rank], "count": 9}
        return True
    assert on_ranks(body) == [True, True]
    assert read_index(tmp_path / "True")["tensors"]["rows"]["sharding"] == "f64[5_tp]"


def _damage_index(folder: Path) -> None:
    (folder / "index.json").write_text("[]")


def _cut_index(folder: Path) -> None:
    (folder / "index.json").write_text("{")


def _another_format(folder: Path) -> None:
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**index, "format": 0}))


def _cut_shard(folder: Path) -> None:
    shard = folder / "rank_00000.safetensors"
    shard.write_bytes(shard.read_bytes()[:-3])


def _lose_shard(folder: Path) -> None:
    (folder / "rank_00000.safetensors").unlink()


def _another_shape(folder: Path) -> None:
    shard = folder / "rank_00000.safetensors"
    save_file({**load_file(shard), "half": np.zeros(2, ml_dtypes.bfloat16)}, shard)


def _lose_tensor(folder: Path) -> None:
    shard = folder / "rank_00000.safetensors"
    save_file({n: a for n, a in load_file(shard).items() if n != "half"}, shard)


@pytest.mark.parametrize("damage, said", [
    (_damage_index, "expected a checkpoint of format 1, got format None"), (_cut_index, "readable index.json"),
    (_another_format, "got format 0"), (_cut_shard, "a complete checkpoint"), (_lose_shard, "a complete checkpoint"),
    (_another_shape, r"half: bf16\[1\] on rank 0, got bf16\[2\]"),
    (_lose_tensor, r"half: bf16\[1\] on rank 0, got nothing")])
def test_a_damaged_checkpoint_is_refused_and_nothing_is_touched(tmp_path, damage, said):
    folder = save_checkpoint(tmp_path / "c", state(7, 3, 1.5), {})
    damage(folder)
    fresh = state()
    with pytest.raises(InputError, match=said):
        load_checkpoint(folder, fresh)
    assert values(fresh) == values(state())


def test_a_checkpoint_of_other_tensors_is_refused(tmp_path):
    folder = save_checkpoint(tmp_path / "c", state(7), {})
    other = {**state(), "weight": Tensor(np.zeros((2, 4), np.float32))}
    with pytest.raises(InputError, match=r"weight: expected f32\[2, 4\], found f32\[2, 3\]"):
        load_checkpoint(folder, other)
    with pytest.raises(InputError, match="without extra"):
        load_checkpoint(folder, {**state(), "extra": Tensor(np.zeros(1))})


def test_a_checkpoint_is_not_overwritten_and_what_an_interrupted_save_left_is(tmp_path):
    (tmp_path / "c.tmp").mkdir()
    (tmp_path / "c.tmp" / "rank_00007.safetensors").write_text("half of one")
    folder = save_checkpoint(tmp_path / "c", state(7), {})
    assert sorted(p.name for p in folder.iterdir()) == ["index.json", "rank_00000.safetensors"]
    assert not (tmp_path / "c.tmp").exists()
    with pytest.raises(InputError, match="a folder that does not exist"):
        save_checkpoint(folder, state(8), {})
    fresh = state()
    load_checkpoint(folder, fresh)
    assert values(fresh) == values(state(7))
