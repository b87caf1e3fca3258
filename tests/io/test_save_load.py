"""Saving and loading: nothing is lost on the way, and what cannot be loaded is named."""

import json
import pickle

import ml_dtypes
import numpy as np
import pytest
import safetensors

import minipd as paddle
from minipd import nn
from minipd.framework.errors import InputError
from minipd.io.tensor_file import read_tensors, write_tensors

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_shape_comes_back(dtype, tmp_path):
    rng = np.random.default_rng(0)
    arrays = {str(shape): (rng.normal(size=shape) * 3).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
              for shape in [(), (1,), (0, 3), (2, 3, 4)]}
    arrays["strided"] = rng.integers(0, 2, (6, 8)).astype(dtype if dtype != "bfloat16" else ml_dtypes.bfloat16).T[::2]
    paddle.save({k: paddle.to_tensor(a) for k, a in arrays.items()}, tmp_path / "x")
    back = paddle.load(tmp_path / "x")
    assert list(back) == list(arrays)
    for name, a in arrays.items():
        assert back[name].dtype == dtype
        np.testing.assert_array_equal(back[name].numpy(), a)
    np.testing.assert_array_equal(paddle.load(tmp_path / "x", return_numpy=True)["strided"], arrays["strided"])


def test_nesting_and_plain_values_come_back(tmp_path):
    obj = {"model": {"w": paddle.ones([2])}, "list": [1, 2.5, "text", None, True, (paddle.zeros([1]), [])],
           3: {"rate": 1e-3, "big": 2 ** 60, "inf": float("inf")}, "array": np.arange(3, dtype="int32"), "": {}}
    paddle.save(obj, str(tmp_path / "x.pdparams"))
    back = paddle.load(str(tmp_path / "x.pdparams"))
    assert list(back) == list(obj) and back[3] == obj[3] and back[""] == {}
    assert back["model"]["w"].tolist() == [1.0, 1.0] and back["list"][:5] == [1, 2.5, "text", None, True]
    assert isinstance(back["list"][5], tuple) and back["list"][5][0].tolist() == [0.0]
    assert type(back["array"]) is np.ndarray and back["array"].dtype == np.int32
    assert back["list"][4] is True and type(back[3]["big"]) is int


def test_a_bare_tensor(tmp_path):
    paddle.save(paddle.to_tensor(3.0), tmp_path / "x")
    assert paddle.load(tmp_path / "x").item() == 3.0


def test_what_is_loaded_is_a_tensor_like_any_other(tmp_path):
    paddle.save({"w": nn.Linear(2, 1).weight}, tmp_path / "x")
    w = paddle.load(tmp_path / "x")["w"]
    assert w.stop_gradient
    w[0] = 5.0
    assert w.tolist()[0] == [5.0]


def test_a_shared_tensor_is_written_once_and_shared_again(tmp_path):
    """Tied embeddings."""
    w = paddle.ones([100])
    paddle.save({"embedding": w, "head": w}, tmp_path / "x")
    assert len(read_tensors(tmp_path / "x")[0]) == 1
    back = paddle.load(tmp_path / "x")
    assert back["embedding"] is back["head"]


def test_a_state_dict_is_plain_safetensors(tmp_path):
    """Anyone can read it: the keys are the names."""
    model = nn.Sequential(nn.Linear(2, 3), nn.RMSNorm(3))
    paddle.save({"model": model.state_dict(), "step": 7}, tmp_path / "x")
    with safetensors.safe_open(tmp_path / "x", framework="numpy") as f:
        assert sorted(f.keys()) == ["model/0.bias", "model/0.weight", "model/1.weight"]
        np.testing.assert_array_equal(f.get_tensor("model/0.weight"), model[0].weight.numpy())


def test_safetensors_from_elsewhere(tmp_path):
    safetensors.numpy.save_file({"b": np.ones(2), "a": np.zeros(1, "float16")}, tmp_path / "x.safetensors")
    back = paddle.load(tmp_path / "x.safetensors")
    assert {k: v.dtype.name for k, v in back.items()} == {"a": "float16", "b": "float64"}


def test_keys_that_would_collide(tmp_path):
    paddle.save({"a": {"b": paddle.zeros([1])}, "a/b": paddle.ones([1])}, tmp_path / "x")
    back = paddle.load(tmp_path / "x")
    assert back["a"]["b"].item() == 0.0 and back["a/b"].item() == 1.0


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path, monkeypatch):
    paddle.save({"w": paddle.zeros([1])}, tmp_path / "x")

    def fails(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(safetensors.numpy, "save_file", fails)
    with pytest.raises(InputError, match=r"expected a place to write x, got .*x \(No space left on device\)"):
        paddle.save({"w": paddle.ones([1])}, tmp_path / "x")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert paddle.load(tmp_path / "x")["w"].item() == 0.0


# --------------------------------------------------------------------------------------------------- what is refused
def test_values_that_cannot_be_saved(tmp_path):
    for obj, said in [({"a": [object()]}, "got object at a/0"), ({(1,): 2}, r"that are strings or ints, got \(1,\)"),
                      (nn.Linear(1, 1), r"got a Linear; save its state_dict\(\)"), ({1j}, "got set at the top"),
                      ({"a": np.array(["x"])}, "expected one of")]:
        with pytest.raises(TypeError, match=said):
            paddle.save(obj, tmp_path / "x")
    assert not list(tmp_path.iterdir())
    with paddle.LazyGuard():
        layer = nn.Linear(1, 1)
    with pytest.raises(RuntimeError, match="save of weight: parameter .* was made under LazyGuard"):
        paddle.save(layer.state_dict(), tmp_path / "x")


def test_files_that_cannot_be_loaded(tmp_path):
    x = tmp_path / "x"

    def refused(said, data=None):
        if data is not None:
            x.write_bytes(data)
        with pytest.raises(InputError, match=said):
            paddle.load(x)
    refused(r"expected a file to load, got .*x \(No such file or directory\): check the path")
    paddle.save({"w": paddle.ones([1000])}, x)
    whole = x.read_bytes()
    for cut in (len(whole) - 1, 2000, 100, 20, 9, 5, 0):
        refused(f"expected a whole safetensors file in .*x, got {cut} bytes of a file that was cut short: copy or save "
                "it again", whole[:cut])
    refused("got a pickle, as Paddle's and PyTorch's own save.. write: loading it would run code",
            pickle.dumps({"w": np.ones(3)}))
    refused("got something else .*: load what minipd.save wrote", b"just some text, which is no file of tensors")
    refused("got something else", whole[:8] + b"x" * (len(whole) - 8))
    with pytest.raises(InputError, match="Is a directory"):
        paddle.load(tmp_path)
    with pytest.raises(InputError, match="expected a place to write x, got .*nowhere/x"):
        paddle.save({}, tmp_path / "nowhere" / "x")


def test_dtypes_and_nestings_that_are_unknown(tmp_path):
    header = json.dumps({"w": {"dtype": "F8_E5M2", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    with pytest.raises(InputError, match="expected tensors of dtypes .*, got w of F8_E5M2"):
        paddle.load(tmp_path / "x")
    for tree in ("no json", '{"dict": [["a", {"tensor": "missing"}]]}', '{"strange": 1}'):
        write_tensors(tmp_path / "x", {}, {"minipd": tree})
        with pytest.raises(InputError, match="expected the nesting that minipd.save writes"):
            paddle.load(tmp_path / "x")
