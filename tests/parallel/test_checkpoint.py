"""Checkpoints: what was saved comes back to the bit, and what does not fit is refused before anything is touched."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from minipd.dist.api import shard_tensor
from minipd.dist.checkpoint.values import local_array
from minipd.dist.comm.sim import World
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Replicate, Shard
from minipd.framework.context import RankContext
from minipd.framework.errors import InputError
from minipd.framework.rank import current, enter, leave
from minipd.framework.tensor import Tensor
from minipd.parallel import checkpoint
from minipd.parallel.checkpoint import load_checkpoint, read_index, save_checkpoint


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


def on_ranks(body, ranks=2):
    """What `body(comm)` returns on each rank."""
    def rank(comm):
        token = enter(RankContext(comm.rank, comm.size, comm))
        try:
            return body(comm)
        finally:
            leave(token)
    return World(ranks).run(rank)


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


def _lose_mesh(folder: Path) -> None:
    index = json.loads((folder / "index.json").read_text())
    del index["tensors"]["half"]["ranks"]
    (folder / "index.json").write_text(json.dumps(index))


def _lose_dimension(folder: Path) -> None:
    index = json.loads((folder / "index.json").read_text())
    index["tensors"]["half"] |= {"mesh": {"tp": 1}, "split": [1]}
    (folder / "index.json").write_text(json.dumps(index))


@pytest.mark.parametrize("damage, said", [
    (_damage_index, "expected a checkpoint of format 2, got format None"), (_cut_index, "readable index.json"),
    (_another_format, "got format 0"), (_cut_shard, "a complete checkpoint"), (_lose_shard, "a complete checkpoint"),
    (_another_shape, r"half: bf16\[1\], got bf16\[2\] in .*rank_00000.safetensors"),
    (_lose_tensor, "File does not contain tensor half"), (_lose_mesh, "expected an index.json that says what its"),
    (_lose_dimension, "an index.json that says what its tensors are, got .*half: expected Shard")])
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
    fresh = {**state(), "extra": Tensor(np.zeros(1))}
    with pytest.raises(InputError, match="without extra"):
        load_checkpoint(folder, fresh)
    del fresh["half"], fresh["step"]
    with pytest.raises(InputError, match="without extra, with step, half"):
        load_checkpoint(folder, fresh)
    assert values(fresh) == {"weight": [[0.0] * 3] * 2, "extra": [0.0]}


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


# ------------------------------------------------------------------------------------------------- several ranks
MESH = parse_mesh("dp=2,tp=2")
S, R = Shard, Replicate()
PLACED = {"rows": [S(0), R], "columns": [R, S(1)], "both": [S(0), S(0)], "crossed": [S(1), S(0)], "all": [R, R],
          "few": [S(0), S(0)], "turned": [S(0, shard_order=1), S(0)]}


def sharded(mesh=MESH, values=None, placed=PLACED):
    """Tensors of 5 x 7, split unevenly; of `few` rows there is one, so that three ranks have none."""
    out = {}
    for name, placements in placed.items():
        whole = np.zeros((1 if name == "few" else 5, 7)) if values is None else values[name]
        out[name] = shard_tensor(whole, mesh, placements)
    return out


def odd_values():
    """Every kind of bits: denormals, infinities, NaNs with a payload, -0."""
    bits = np.random.default_rng(3).integers(0, 2**64, (7, 5, 7), np.uint64)
    found = dict(zip(PLACED, bits.view(np.float64), strict=True))
    found["all"][0, :4] = [-0.0, np.inf, 5e-324, np.nan]
    return {**found, "few": found["few"][:1]}


def held(tensors):
    return {name: local_array(t).tobytes() for name, t in tensors.items()}


def test_four_ranks_bit_by_bit(tmp_path):
    def body(comm):
        saved = sharded(values=odd_values())
        folder = save_checkpoint(tmp_path / "c", saved, {"note": "x"}, comm)
        fresh = sharded()
        index = load_checkpoint(folder, fresh, comm)
        same = held(fresh) == held(saved)
        return same, [t.placements for t in fresh.values()] == list(PLACED.values()), index["note"]
    assert on_ranks(body, 4) == [(True, True, "x")] * 4
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == [
        "index.json", *(f"rank_{r:05d}.safetensors" for r in range(4))]
    shapes = [load_file(tmp_path / "c" / f"rank_{r:05d}.safetensors")["few"].shape for r in range(4)]
    assert shapes == [(1, 7), (0, 7), (0, 7), (0, 7)]


@pytest.mark.parametrize("damage", ["cut", "lost", "other"])
def test_one_damaged_file_is_refused_by_all_ranks(tmp_path, damage):
    """Ranks whose own files are whole must not go on with half of another state."""
    def body(comm):
        folder = save_checkpoint(tmp_path / "c", sharded(values=odd_values()), {}, comm)
        comm.barrier()
        if comm.rank == 0:
            file = folder / "rank_00002.safetensors"
            if damage == "cut":
                file.write_bytes(file.read_bytes()[:-8])
            elif damage == "lost":
                file.unlink()
            else:
                save_file({**load_file(file), "both": np.zeros((3, 3))}, file)
        comm.barrier()
        fresh = sharded()
        before = held(fresh)
        with pytest.raises(InputError) as error:
            load_checkpoint(folder, fresh, comm)
        return str(error.value), held(fresh) == before
    texts, untouched = zip(*on_ranks(body, 4), strict=True)
    assert all(untouched) and len(set(texts)) == 1 and "rank_00002.safetensors" in texts[0]


@pytest.mark.parametrize("other", ["tp=2,dp=2", "dp=4,tp=1", "reordered", "dp=3,tp=1", "dp=1,tp=1", "dp=3,tp=2"])
def test_another_mesh(tmp_path, other):
    """Every rank gets its part under its own mesh, bit by bit: more ranks or fewer, in another order."""
    values = odd_values()
    on_ranks(lambda comm: save_checkpoint(tmp_path / "c", sharded(values=values), {}, comm), 4)
    mesh = ProcessMesh([[3, 2], [1, 0]], ["dp", "tp"]) if other == "reordered" else parse_mesh(other)

    def body(comm):
        fresh = sharded(mesh)
        load_checkpoint(tmp_path / "c", fresh, comm)
        return held(fresh) == held(sharded(mesh, values))
    assert all(on_ranks(body, mesh.size))


def test_ranks_of_stages_have_different_tensors(tmp_path):
    """Saved by two stages of two ranks, read by one rank, by two stages the other way round, and by all ranks alike."""
    values = {name: odd_values()[name] for name in ("rows", "columns")}

    def stages(mesh, values=None):
        """`rows` on the first stage, `columns` on the second, a count on every rank."""
        stage = mesh.get_rank_by_dim_and_process_id("pp", current().rank)
        own, name = mesh.get_mesh_with_dim("pp", stage), ("rows", "columns")[stage]
        return {**sharded(own, values, {name: [S(1)]}), "count": Tensor(np.array(0 if values is None else 7))}

    on_ranks(lambda comm: save_checkpoint(tmp_path / "c", stages(parse_mesh("pp=2,tp=2"), values), {}, comm), 4)

    def others(comm):
        mesh = parse_mesh("tp=2,pp=2")
        fresh = stages(mesh)
        load_checkpoint(tmp_path / "c", fresh, comm)
        return held(fresh) == held(stages(mesh, values))
    assert on_ranks(others, 4) == [True] * 4

    def alike(comm):
        placed = {"rows": [S(0)], "columns": [S(0)]}
        fresh = {**sharded(parse_mesh("dp=3"), None, placed), "count": Tensor(np.array(0))}
        load_checkpoint(tmp_path / "c", fresh, comm)
        return held(fresh) == {**held(sharded(parse_mesh("dp=3"), values, placed)), "count": np.array(7).tobytes()}
    assert on_ranks(alike, 3) == [True] * 3

    def one_stage_less(comm):
        with pytest.raises(InputError, match="expected a checkpoint of this model: 2 tensors, got 3 .* with columns"):
            load_checkpoint(tmp_path / "c", {"rows": Tensor(np.zeros((5, 7))), "count": Tensor(np.array(0))}, comm)
        return True
    assert on_ranks(one_stage_less, 2) == [True] * 2


@pytest.mark.parametrize("damage", ["nothing", "no index", "no tensors"])
def test_no_checkpoint_at_all(tmp_path, damage):
    folder = tmp_path / "c"
    if damage != "nothing":
        folder.mkdir()
    if damage == "no tensors":
        (folder / "index.json").write_text('{"format": 2}')

    def body(comm):
        fresh = sharded(parse_mesh("dp=2,tp=1"))
        with pytest.raises(InputError) as error:
            load_checkpoint(folder, fresh, comm)
        return str(error.value)
    first, second = on_ranks(body)
    assert first == second == (
        f"expected an index.json with `ranks` and `tensors`, got ['format'] in {folder}: use another checkpoint"
        if damage == "no tensors" else
        f"expected a checkpoint (a folder with index.json), got {folder}: name another folder")


@pytest.mark.parametrize("victim", [0, 1])
def test_an_interrupted_save_leaves_only_what_is_called_tmp(tmp_path, victim, monkeypatch):
    """The disk is full on one rank: the older checkpoint stays, and the next save cleans up."""
    def body(comm, step):
        return save_checkpoint(tmp_path / f"step-{step}", sharded(parse_mesh("dp=2,tp=1")), {"step": step}, comm)
    on_ranks(lambda comm: body(comm, 1))
    before = {p.name: p.read_bytes() for p in (tmp_path / "step-1").iterdir()}

    def full(arrays, path):
        if path.name == f"rank_{victim:05d}.safetensors":
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")
        save_file(arrays, path)
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "save_file", full)
        with pytest.raises(OSError, match="No space left on device"):
            on_ranks(lambda comm: body(comm, 2))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-1", "step-2.tmp"]
    assert {p.name: p.read_bytes() for p in (tmp_path / "step-1").iterdir()} == before
    on_ranks(lambda comm: body(comm, 2))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-1", "step-2"]


def test_a_folder_that_one_rank_sees_is_not_overwritten(tmp_path, monkeypatch):
    """Also when the other does not see it yet, as on a network disk: all refuse."""
    (tmp_path / "c").mkdir()

    class Late(type(tmp_path)):
        def exists(self, **_):
            return False

    def body(comm):
        with pytest.raises(InputError, match="a folder that does not exist for the checkpoint"):
            save_checkpoint((tmp_path if comm.rank else Late(tmp_path)) / "c", {}, {}, comm)
        return sorted(p.name for p in tmp_path.iterdir())
    assert on_ranks(body) == [["c"]] * 2


def test_what_shares_a_tensor_sees_what_is_loaded(tmp_path):
    """A detached handle does; a gradient that has saved the old value refuses it."""
    folder = save_checkpoint(tmp_path / "c", {"w": Tensor(np.array([5.0, 6.0]))}, {})
    w = Tensor(np.array([1.0, 2.0]))
    w.stop_gradient = False
    seen, loss = w.detach(), (w * w).sum()
    load_checkpoint(folder, {"w": w})
    assert (w.tolist(), seen.tolist()) == ([5.0, 6.0], [5.0, 6.0])
    with pytest.raises(RuntimeError, match="was saved for the gradient of multiply and modified in place afterwards"):
        loss.backward()


@pytest.mark.parametrize("read", [True, False])
def test_a_partial_tensor(tmp_path, read):
    """It is saved as what it was resolved to; one that nobody has read is resolved."""
    def body(comm):
        total = shard_tensor(np.arange(10.0).reshape(5, 2), parse_mesh("dp=2"), [S(0)]).sum(axis=0)
        if read:
            total.numpy()
        folder = save_checkpoint(tmp_path / "c", {"total": total}, {}, comm)
        fresh = {"total": Tensor(np.zeros(2))}
        load_checkpoint(folder, fresh, comm)
        return fresh["total"].tolist()
    assert on_ranks(body) == [[20.0, 25.0]] * 2
