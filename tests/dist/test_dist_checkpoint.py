"""Checkpoints across meshes: whatever mesh reads has, bit by bit, what was saved; every rank hears what is wrong."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minipd as paddle
import minipd.distributed as dist
from minipd import nn
from minipd.dist.checkpoint import folder as files
from minipd.dist.checkpoint.metadata import LocalTensorIndex, LocalTensorMetadata, Metadata, decoded, encoded
from minipd.dist.checkpoint.save import Described, assign
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.errors import InputError
from minipd.framework.rank import current
from minipd.io.unpickling import Refused
from tests.dist.ranks import on_mesh

R, S0, S1 = Replicate(), Shard(0), Shard(1)
RNG = np.random.default_rng(7)
STATE = {"w": RNG.normal(size=(5, 7)), "b": RNG.normal(size=(7,)).astype(np.float32),
         "h": RNG.normal(size=(6, 4)).astype(ml_dtypes.bfloat16), "ids": RNG.integers(-9, 9, (9,)),
         "mask": RNG.integers(0, 2, (3, 3)).astype(bool), "one": np.array(2.5), "none": np.zeros((0, 3))}

# mesh -> the placements of the tensors on it, the last ones repeated for what has fewer dimensions
LAYOUTS = {
    "dp=2,tp=2": [S0, S1], "tp=4": [S0], "dp=3": [S0], "x=1": [R], "a=2,b=2": [S0, S0],
    "c=2,d=2": [Shard(0, shard_order=1), Shard(0, shard_order=0)], "dp=2,r=2": [R, S1],
}


def state_on(mesh, placements, state=STATE):
    def place(array):
        fitting = [p if not p.is_shard() or p.get_dim() < array.ndim else R for p in placements]
        return dist.shard_tensor(array, mesh, fitting)
    return {key: place(a) for key, a in state.items()}


def empty_on(mesh, placements, state=STATE):
    return state_on(mesh, placements, {key: np.zeros_like(a) for key, a in state.items()})


def assert_equal(state, wanted=STATE):
    for key, array in wanted.items():
        got = state[key].numpy()
        assert got.dtype == array.dtype and got.tobytes() == array.tobytes(), key


@pytest.mark.parametrize("safetensors", [False, True])
@pytest.mark.parametrize(("source", "target"), [
    ("dp=2,tp=2", "tp=4"), ("tp=4", "dp=3"), ("dp=3", "x=1"), ("x=1", "a=2,b=2"), ("a=2,b=2", "c=2,d=2"),
    ("c=2,d=2", "dp=2,r=2"), ("dp=2,r=2", "dp=2,tp=2"),
])
def test_every_mesh_reads_what_another_wrote(tmp_path, source, target, safetensors):
    def save(mesh):
        dist.save_state_dict({"model": state_on(mesh, LAYOUTS[source])}, tmp_path, safetensors=safetensors)

    def load(mesh):
        state = empty_on(mesh, LAYOUTS[target])
        before = dict(state)
        dist.load_state_dict({"model": state}, tmp_path, safetensors=safetensors)
        assert all(state[key] is t for key, t in before.items()), "in place"
        assert_equal(state)
        return {key: t.placements for key, t in state.items()}
    on_mesh(source, save)
    for placed in on_mesh(target, load):
        assert placed["w"] == [p for p in placed["w"]] and len(placed["w"]) == len(LAYOUTS[target])
    merged = dist.load_merged_state_dict(tmp_path, "model", safetensors=safetensors)
    assert not any(t.is_dist() for t in merged.values())
    assert_equal(merged)


@settings(max_examples=15)
@given(st.data())
def test_random_shapes_and_layouts(tmp_path_factory, data):
    """Also parts by a split factor, on either side."""
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    array = np.arange(float(np.prod(shape))).reshape(shape)
    folder = tmp_path_factory.mktemp("ck")

    def layout():
        text = data.draw(st.sampled_from(["a=2,b=2", "a=3", "a=2,b=1,c=2", "a=4"]))
        placements = []
        for _ in text.split(","):
            dim = data.draw(st.sampled_from([None, *range(len(shape))]))
            placements.append(R if dim is None else Shard(dim))
        if all(p is R for p in placements[1:]) and placements[0] is not R:
            dim = placements[0].get_dim()
            factor = data.draw(st.sampled_from([k for k in (1, 2, 3) if shape[dim] % k == 0]))
            placements[0] = Shard(dim, split_factor=factor)
        return text, placements
    (source, before), (target, after) = layout(), layout()
    on_mesh(source, lambda m: dist.save_state_dict({"x": dist.shard_tensor(array, m, before)}, folder))

    def load(mesh):
        x = dist.shard_tensor(np.zeros_like(array), mesh, after)
        dist.load_state_dict({"x": x}, folder)
        return x.numpy()
    for got in on_mesh(target, load):
        np.testing.assert_array_equal(got, array, err_msg=f"{source} {before} -> {target} {after}")


def test_equal_parts_are_written_once(tmp_path):
    def save(mesh):
        x = dist.shard_tensor(np.ones((4, 4), np.float32), mesh, [S0, R])
        dist.save_state_dict({"x": x, "y": paddle.ones([8]), "z": paddle.ones([8])}, tmp_path)
        dist.save_state_dict({"x": x}, tmp_path / "all", save_replicas=True)
    on_mesh("dp=2,r=2", save)
    metadata = decoded((tmp_path / "0.metadata").read_bytes())
    assert len(metadata.storage_metadata) == 4 and len(set(metadata.storage_metadata.values())) == 4, "spread evenly"
    replicas = decoded((tmp_path / "all" / "0.metadata").read_bytes()).storage_metadata
    assert sorted(i.replica_id for i in replicas) == [0, 0, 1, 1]


def test_what_each_rank_writes():
    """By hand: rows 0-2 on ranks 0 and 1, rows 3-4 on ranks 2 and 3; and a bias that all have."""
    first, second = (((3, 2), (0, 0)),), (((2, 2), (3, 0)),)
    bias = Described((2,), "float32", (((2,), (0,)),))
    ranks = [{"w": Described((5, 2), "float32", blocks), "b": bias} for blocks in (first, first, second, second)]
    jobs = assign(ranks, range(4), 4, "0.distcp")
    assert {key: [w.rank for w in writers] for key, writers in jobs.items()} == {
        ("w", (0, 0)): [0, 1], ("w", (3, 0)): [2, 3], ("b", (0,)): [1, 3, 2, 0]}


def test_a_partial_is_saved_as_what_it_stands_for(tmp_path):
    def run(mesh):
        x = dist.dtensor_from_local(np.array([1.0, 10.0]) * (current().rank + 1), mesh, [Partial()])
        dist.save_state_dict({"x": x}, tmp_path)
        y = dist.shard_tensor(np.zeros(2), mesh, [S0])
        dist.load_state_dict({"x": y}, tmp_path)
        return y.tolist()
    assert on_mesh("x=2", run) == [[3.0, 30.0]] * 2


def test_stages_on_parts_of_the_ranks(tmp_path):
    """Each rank has the state of its stage only, or names that of the other too."""
    def save(mesh):
        stage = current().rank // 2
        part = mesh[stage]
        dist.save_state_dict({f"s{stage}": dist.shard_tensor(np.arange(4.0) + stage, part, [S0])}, tmp_path)

    def load(mesh):
        state = {f"s{i}": dist.shard_tensor(np.zeros(4), mesh[i], [R]) for i in range(2)}
        dist.load_state_dict(state, tmp_path)
        return state[f"s{current().rank // 2}"].tolist()
    on_mesh("pp=2,dp=2", save)
    assert on_mesh("pp=2,dp=2", load) == [[0.0, 1.0, 2.0, 3.0]] * 2 + [[1.0, 2.0, 3.0, 4.0]] * 2


def test_plain_values(tmp_path):
    values = {"epoch": 3, "best": 0.5, "note": "x", "last": None, "flags": {"a": True}, "rates": [0.1, 0.2]}
    on_mesh("x=2", lambda m: dist.save_state_dict({"w": paddle.ones([1]), "run": values}, tmp_path))

    def load(mesh):
        state = {"w": paddle.zeros([1]), "run": {"epoch": 0, "flags": {}}}
        dist.load_state_dict(state, tmp_path)
        return state["run"]
    assert on_mesh("x=2", load) == [values] * 2


# ------------------------------------------------------------------------------------------------- training goes on
def trained(mesh, placed, folder=None, save_after=None, in_place=True, optimizer=None):
    """The losses of 4 steps; saved after some, or gone on with from a folder."""
    paddle.seed(3)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5))

    def place(name, layer, m):
        for key, p in layer.named_parameters(include_sublayers=False):
            dist.shard_tensor(p, m, placed(name, key, p.ndim))
    dist.shard_layer(model, mesh, place)
    rate = paddle.optimizer.lr.StepDecay(0.1, 2)
    adamw = paddle.optimizer.AdamW(rate, parameters=model.parameters())
    adamw = adamw if optimizer == "plain" else dist.shard_optimizer(adamw)
    start = 0
    if folder is not None and save_after is None:
        state = {"model": model.state_dict(), "opt": adamw.state_dict(), "lr": rate.state_dict()}
        dist.load_state_dict(state, folder)
        rate.set_state_dict(state["lr"])
        if not in_place:
            adamw.set_state_dict(state["opt"])
        start = 2
    losses = []
    for step in range(start, 4):
        if step == save_after:
            dist.save_state_dict({"model": model.state_dict(), "opt": adamw.state_dict(), "lr": rate.state_dict()},
                                 folder)
        rng = np.random.default_rng(step)
        x, y = (dist.shard_tensor(rng.normal(size=(5, n)).astype("float32"), mesh, [R] * mesh.ndim) for n in (6, 5))
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        adamw.step()
        adamw.clear_grad()
        rate.step()
        losses.append(loss.item())
    return losses


def by_columns(name, key, ndim):
    return [R, Shard(ndim - 1)]


def by_rows(name, key, ndim):
    return [S0]


@pytest.mark.parametrize("in_place", [True, False])
def test_training_goes_on_on_another_mesh(tmp_path, in_place):
    whole = on_mesh("dp=2,tp=2", lambda m: trained(m, by_columns, tmp_path, save_after=2))[0]
    rest = on_mesh("tp=4", lambda m: trained(m, by_rows, tmp_path, in_place=in_place))
    for losses in rest:
        np.testing.assert_allclose(losses, whole[2:], rtol=2e-5)


# -------------------------------------------------------------------------------------------------------------- async
def test_async(tmp_path):
    """What is saved is what the tensors were; the next save or load waits."""
    def run(mesh):
        x = dist.shard_tensor(np.arange(4.0), mesh, [S0])
        dist.save_state_dict({"x": x}, tmp_path, async_save=True)
        x.zero_()
        dist.load_state_dict({"x": x}, tmp_path)
        return x.tolist()
    assert on_mesh("x=2", run) == [[0.0, 1.0, 2.0, 3.0]] * 2


def test_a_failed_async_save_is_told_of_later(tmp_path):
    def run(mesh):
        folder = tmp_path / f"{mesh.size}"
        folder.mkdir(exist_ok=True)
        dist.save_state_dict({"x": paddle.ones([2])}, folder, async_save=True)
        for save in current().saves:
            save.thread.join()
            save.problem = OSError("no space left")
        with pytest.raises(OSError, match="no space left") as error:
            dist.save_state_dict({"x": paddle.ones([2])}, folder)
        return error.value.__notes__
    assert on_mesh("x=2", run) == [["met with by rank 0 of [0, 1]"]] * 2


# -------------------------------------------------------------------------------------------------------------- files
@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_rank_that_cannot_write(tmp_path, monkeypatch, asynchronous):
    """Every rank hears of it, and the checkpoint that was there before is there still."""
    def save(mesh, value, **how):
        dist.save_state_dict({"w": dist.shard_tensor(np.full(4, value), mesh, [S0])}, tmp_path, **how)
    on_mesh("x=2", lambda m: save(m, 1.0))
    write = files.write_data

    def full(path, arrays, names):
        if path.name.startswith("1_"):
            raise OSError(28, "No space left on device")
        write(path, arrays, names)
    monkeypatch.setattr(files, "write_data", full)
    if asynchronous:
        def run(mesh):
            save(mesh, 2.0, async_save=True)
            with pytest.raises(OSError, match="No space left on device"):
                save(mesh, 3.0)
        on_mesh("x=2", run)
    else:
        assert "InputError: expected a folder in which files can be written" in refused(lambda m: save(m, 2.0))
    monkeypatch.undo()
    assert dist.load_merged_state_dict(tmp_path)["w"].tolist() == [1.0] * 4
    on_mesh("x=2", lambda m: save(m, 4.0))
    assert dist.load_merged_state_dict(tmp_path)["w"].tolist() == [4.0] * 4
    assert not [name for name in os.listdir(tmp_path) if "writ" in name]


def test_the_files(tmp_path):
    for _ in range(2):
        on_mesh("x=2", lambda m: dist.save_state_dict({"w": dist.shard_tensor(np.ones(4), m, [S0])}, tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["0.index.json", "0.metadata", "0_0.distcp", "1_0.distcp"]
    on_mesh("x=1", lambda m: dist.save_state_dict({"w": paddle.zeros([4], "float64")}, tmp_path, unique_id=3))
    on_mesh("x=1", lambda m: dist.save_state_dict({"w": paddle.ones([4], "float64")}, tmp_path, unique_id=0))
    assert sorted(os.listdir(tmp_path)) == ["0.index.json", "0.metadata", "0_0.distcp", "3.index.json", "3.metadata",
                                            "0_3.distcp"][:3] + ["0_3.distcp", "3.index.json", "3.metadata"]
    assert dist.load_merged_state_dict(tmp_path)["w"].tolist() == [0.0] * 4, "the last one"
    assert dist.load_merged_state_dict(tmp_path, unique_id=0)["w"].tolist() == [1.0] * 4


def test_the_metadata_is_paddles():
    """As Paddle 3.3.1's own pickle of it reads; other classes, calls and shapes of it are refused."""
    one = Metadata({"w": [LocalTensorMetadata((0, 2), (3, 2), "float32", (3, 4))]},
                   {LocalTensorIndex("w", (0, 2), local_shape=(3, 2)): "1_0.distcp"}, {"w": ("w",)})
    data = encoded(one)
    assert decoded(data) == one and b"paddle.distributed.flex_checkpoint.dcp.metadata\nLocalTensorIndex" in data
    for bad in (data.replace(b"dcp.metadata\nMetadata", b"dcp.metadata\nMetadato"), data[:-9], encoded({"a": 1}),
                encoded(Metadata({"w": [LocalTensorMetadata((0,), (-3,), "float32")]}, {})),
                encoded(Metadata({}, {LocalTensorIndex("w", (0,)): "../x"})),
                b"cos\nsystem\n(X\x02\x00\x00\x00lstR."):
        with pytest.raises(Refused):
            decoded(bad)


# -------------------------------------------------------------------------------------------------------------- errors
def refused(function, ranks="x=2", kinds=(InputError, ValueError, TypeError, NotImplementedError)):
    """The one error that all ranks raise."""
    def run(mesh):
        with pytest.raises(kinds) as error, warnings.catch_warnings():
            warnings.simplefilter("error")
            function(mesh)
        return f"{type(error.value).__name__}: {error.value}"
    texts = on_mesh(ranks, run)
    assert len(set(texts)) == 1, texts
    return texts[0]


def saved(folder, safetensors=False):
    def save(mesh):
        dist.save_state_dict({"w": dist.shard_tensor(np.arange(6.0), mesh, [S0]), "n": 1, "b": paddle.ones([2])},
                             folder, safetensors=safetensors)
    on_mesh("x=2", save)
    return folder


def state(mesh, n=6, **more):
    return {"w": dist.shard_tensor(np.zeros(n), mesh, [S0]), "b": paddle.zeros([2]), **more}


def test_a_checkpoint_of_another_model(tmp_path):
    saved(tmp_path)
    found = refused(lambda m: dist.load_state_dict({**state(m), "v": paddle.ones([1]), "u": 3}, tmp_path))
    assert found == (f"InputError: expected a checkpoint of the 4 entries of the state, got {tmp_path} without v, u: "
                     "load into a state that has the names of the checkpoint, or leave out what it lacks")
    found = refused(lambda m: dist.load_state_dict({"v": paddle.ones([1])}, tmp_path))
    assert f"{tmp_path} without v, but with b, w" in found
    assert f"w: f64[7], got f64[6] in {tmp_path}" in refused(lambda m: dist.load_state_dict(state(m, 7), tmp_path))
    assert "b: f64[2], got f32[2]" in refused(lambda m: dist.load_state_dict(
        {**state(m), "b": paddle.zeros([2], "float64")}, tmp_path))
    assert "expected w to be replicated or sharded, got f64[6]{P_x}" in refused(lambda m: dist.load_state_dict(
        {"w": dist.shard_tensor(np.zeros(6), m, [Partial()])}, tmp_path))
    with pytest.warns(UserWarning, match=r"also has b, which the state has no place for"):
        on_mesh("x=2", lambda m: dist.load_state_dict({"w": dist.shard_tensor(np.zeros(6), m, [R])}, tmp_path))


@pytest.mark.parametrize("safetensors", [False, True])
@pytest.mark.parametrize("damage", ["cut", "bytes", "gone", "another", "metadata", "no metadata", "index", "moved"])
def test_a_file_that_lies(tmp_path, damage, safetensors):
    """Nothing is loaded, on any rank, also where only one meets with it."""
    saved(tmp_path, safetensors)
    path = tmp_path / ("1_0.safetensors" if safetensors else "1_0.distcp")
    data = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(data[:-12])
        case "bytes":
            at = data.index(np.array([3.0, 4.0, 5.0]).tobytes())
            path.write_bytes(data[:at] + b"\1" + data[at + 1:])
        case "gone":
            path.unlink()
        case "another":
            path.write_bytes((tmp_path / path.name.replace("1_", "0_")).read_bytes())
        case "metadata":
            (tmp_path / "0.metadata").write_bytes((tmp_path / "0.metadata").read_bytes()[:50])
        case "no metadata":
            (tmp_path / "0.metadata").unlink()
        case "index":
            (tmp_path / "0.index.json").write_text(json.dumps({"format": 9}))
        case "moved":
            metadata = decoded((tmp_path / "0.metadata").read_bytes())
            metadata.state_dict_metadata["w"].pop()
            (tmp_path / "0.metadata").write_bytes(encoded(metadata))

    def load(mesh):
        x = state(mesh)
        with pytest.raises(InputError) as error:
            dist.load_state_dict(x, tmp_path)
        assert x["w"].tolist() == [0.0] * 6 and x["b"].tolist() == [0.0, 0.0]
        return str(error.value)
    texts = on_mesh("x=2", load)
    assert len(set(texts)) == 1 and str(tmp_path) in texts[0]


def test_what_cannot_be_saved(tmp_path):
    assert refused(lambda m: dist.save_state_dict({"a": {"f": len}}, tmp_path)) == (
        "TypeError: save_state_dict: expected Tensors, numbers, strings, None, or dicts and lists of them, got "
        "builtin_function_or_method at a.f")
    assert "expected keys that are strings, got 3" in refused(lambda m: dist.save_state_dict({3: 1}, tmp_path))
    assert "expected one w on all ranks, got float32 [1] on rank 0 and float32 [2] on rank 1" in refused(
        lambda m: dist.save_state_dict({"w": paddle.ones([current().rank + 1])}, tmp_path))
    assert "expected one unique_id on all ranks, got [0, 1] on [0, 1]" in refused(
        lambda m: dist.save_state_dict({}, tmp_path, unique_id=current().rank))
    assert "expected unique_id to be a whole number >= 0, got -1" in refused(
        lambda m: dist.save_state_dict({}, tmp_path, unique_id=-1))
    Path(tmp_path, "file").write_text("")
    assert "InputError: expected a folder for the checkpoint" in refused(
        lambda m: dist.save_state_dict({}, tmp_path / "file" / "x"))
    assert "expected no aoa_config" in refused(lambda m: dist.load_state_dict({}, tmp_path, aoa_config={}))
    assert "expected comm_method to be one of" in refused(lambda m: dist.load_state_dict({}, tmp_path, comm_method="x"))
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".metadata")]


def test_a_process_alone_has_not_all_of_it(tmp_path):
    """Rank 0 of a mesh of two that nobody started has half of the tensor: no checkpoint is made of that."""
    x = dist.shard_tensor(np.arange(4.0), ProcessMesh([0, 1]), [S0])
    with pytest.raises(ValueError, match=r"all of x, float64 \[4\], on the ranks \[0\], got 2 of its 4 elements"):
        dist.save_state_dict({"x": x}, tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_group_of_ranks(tmp_path):
    """Those outside of it do nothing."""
    def run(mesh):
        dist.init_parallel_env()
        group = dist.new_group([1, 2])
        part = ProcessMesh([1, 2])
        dist.save_state_dict({"x": dist.shard_tensor(np.arange(3.0), part, [S0])}, tmp_path, group)
        y = {"x": dist.shard_tensor(np.zeros(3), part, [R])}
        dist.load_state_dict(y, tmp_path, group)
        return y["x"].tolist() if current().rank else None
    assert on_mesh("x=3", run) == [None, [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]




# ------------------------------------------------------------------------------------------------ tensors split by hand
def test_blocks_by_hand(tmp_path):
    """Saved as each rank has them, read as distributed tensors, and the other way round."""
    whole = np.arange(12.0).reshape(4, 3)

    def save(mesh):
        dist.init_parallel_env()
        mine = paddle.to_tensor(whole[2 * current().rank:2 * current().rank + 2])
        one = dist.shard_weight("w", mine, 0, dist.get_group())
        more = dist.build_sharded_state_dict({"v": mine, "b": paddle.ones([2])}, {"v": 0}, "p.")
        dist.save_state_dict({"w": one, **more}, tmp_path)

    def load(mesh):
        state = {"w": dist.shard_tensor(np.zeros((4, 3)), mesh, [S1]), "p.b": paddle.zeros([2])}
        column = paddle.zeros([4, 1], "float64")
        state["p.v"] = dist.ShardedWeight("p.v", column, (4, 1), (4, 3), (0, current().rank))
        dist.load_state_dict(state, tmp_path)
        return state["w"].numpy().tolist(), column[:, 0].tolist(), state["p.b"].tolist()
    on_mesh("x=2", save)
    assert on_mesh("x=3", load) == [(whole.tolist(), whole[:, r].tolist(), [1.0, 1.0]) for r in range(3)]


def test_blocks_that_do_not_fit(tmp_path):
    with pytest.raises(ValueError, match=r"got \[2\] for \[2\] at \[3\] of \[4\]"):
        dist.ShardedWeight("w", paddle.ones([2]), (2,), (4,), (3,))
    with pytest.raises(NotImplementedError, match="a range of flattened elements"):
        dist.ShardedWeight("w", paddle.ones([2]), (2,), (4,), (0,), True, slice(0, 2))
    assert "got 2 of its 4 elements" in refused(lambda m: dist.save_state_dict(
        {"w": dist.ShardedWeight("w", paddle.ones([2]), (2,), (4,), (0,))}, tmp_path))
    assert "that do not overlap, got (shape, offsets) ((2,), (0,)) and ((2,), (1,))" in refused(
        lambda m: dist.save_state_dict({"w": dist.ShardedWeight("w", paddle.ones([2]), (2,), (4,), (current().rank,))},
                                       tmp_path))


def test_parameters_that_were_made_lazily(tmp_path):
    """They have the values of the checkpoint, and are not filled again."""
    def run(mesh):
        dist.save_state_dict({"w": dist.shard_tensor(np.arange(4.0, dtype=np.float32), mesh, [S0])}, tmp_path)
        with paddle.LazyGuard():
            w = paddle.create_parameter([4], "float32")
        dist.load_state_dict({"w": w}, tmp_path)
        return w.tolist(), w.initialize
    assert on_mesh("x=2", run) == [([0.0, 1.0, 2.0, 3.0], None)] * 2
