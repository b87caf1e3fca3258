"""Saving and loading: nothing is lost on the way, and what cannot be loaded is named."""

import io
import json

import ml_dtypes
import numpy as np
import pytest
import safetensors

import minipd as paddle
from minipd import nn
from minipd.framework.errors import InputError
from minipd.io.tensor_file import write_tensors

DTYPES = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128"]


either = pytest.mark.parametrize("name", ["x.pdparams", "x.safetensors"])


@either
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_shape_comes_back(dtype, name, tmp_path):
    if (dtype, name) == ("complex128", "x.safetensors"):
        with pytest.raises(TypeError, match="expected a dtype that safetensors has, got complex128 at w"):
            paddle.save({"w": paddle.ones([1], dtype)}, tmp_path / name)
        return
    rng = np.random.default_rng(0)
    arrays = {str(shape): (rng.normal(size=shape) * 3).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
              for shape in [(), (1,), (0, 3), (2, 3, 4)]}
    arrays["strided"] = rng.integers(0, 2, (6, 8)).astype(dtype if dtype != "bfloat16" else ml_dtypes.bfloat16).T[::2]
    paddle.save({k: paddle.to_tensor(a) for k, a in arrays.items()}, tmp_path / name)
    back = paddle.load(tmp_path / name)
    assert list(back) == list(arrays)
    for key, a in arrays.items():
        assert back[key].dtype == dtype
        np.testing.assert_array_equal(back[key].numpy(), a)
    again = paddle.load(tmp_path / name, return_numpy=True)["strided"]
    np.testing.assert_array_equal(again.view(ml_dtypes.bfloat16) if again.dtype == "uint16" else again,
                                  arrays["strided"])


@either
def test_nesting_and_plain_values_come_back(name, tmp_path):
    obj = {"model": {"w": paddle.ones([2])}, "list": [1, 2.5, "text", None, True, (paddle.zeros([1]), [])],
           3: {"rate": 1e-3, "big": 2 ** 60, "inf": float("inf")}, "array": np.arange(3, dtype="int32"), "": {}}
    paddle.save(obj, str(tmp_path / name))
    back = paddle.load(str(tmp_path / name))
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


@either
@pytest.mark.parametrize("around", [lambda d: d, lambda d: {"nested": d, "step": 1}, lambda d: [d, 2.5]])
def test_a_shared_tensor_is_written_once_and_shared_again(around, name, tmp_path):
    """Tied embeddings, in a state dict and deeper."""
    w = paddle.ones([1000])
    paddle.save(around({"embedding": w, "head": w}), tmp_path / name)
    assert (tmp_path / name).stat().st_size < 1.5 * 4000
    back = paddle.load(tmp_path / name)
    back = back[0] if isinstance(back, list) else back.get("nested", back)
    assert back["embedding"] is back["head"]


def test_a_state_dict_may_be_plain_safetensors(tmp_path):
    """Anyone can read it: the keys are the names."""
    model = nn.Sequential(nn.Linear(2, 3), nn.RMSNorm(3))
    paddle.save({"model": model.state_dict(), "step": 7}, tmp_path / "x.safetensors")
    assert paddle.load(tmp_path / "x.safetensors")["step"] == 7
    with safetensors.safe_open(tmp_path / "x.safetensors", framework="numpy") as f:
        assert sorted(f.keys()) == ["model/0.bias", "model/0.weight", "model/1.weight"]
        np.testing.assert_array_equal(f.get_tensor("model/0.weight"), model[0].weight.numpy())


def test_safetensors_from_elsewhere(tmp_path):
    safetensors.numpy.save_file({"b": np.ones(2), "a": np.zeros(1, "float16")}, tmp_path / "x.safetensors")
    back = paddle.load(tmp_path / "x.safetensors")
    assert {k: v.dtype.name for k, v in back.items()} == {"a": "float16", "b": "float64"}


@either
def test_keys_that_would_collide(name, tmp_path):
    paddle.save({"a": {"b": paddle.zeros([1])}, "a/b": paddle.ones([1])}, tmp_path / name)
    back = paddle.load(tmp_path / name)
    assert back["a"]["b"].item() == 0.0 and back["a/b"].item() == 1.0


@either
def test_the_old_file_stays_until_the_new_one_is_whole(name, tmp_path, monkeypatch):
    paddle.save({"w": paddle.zeros([1])}, tmp_path / name)

    def full(*_):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(safetensors.numpy, "save_file", full)
    monkeypatch.setattr("minipd.io.pickled.dump", full)
    with pytest.raises(InputError, match=rf"a place to write {name}, got .*{name} \(No space left on device\)"):
        paddle.save({"w": paddle.ones([1])}, tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert paddle.load(tmp_path / name)["w"].item() == 0.0


def test_folders_are_made(tmp_path):
    paddle.save({"w": paddle.ones([1])}, tmp_path / "a" / "b" / "x.pdparams")
    assert paddle.load(tmp_path / "a" / "b" / "x.pdparams")["w"].item() == 1.0


def test_file_objects_hold_one_after_the_other():
    file = io.BytesIO()
    paddle.save(nn.Linear(2, 1).state_dict(), file)
    paddle.save(paddle.to_tensor([3, 4]), file)
    file.seek(0)
    assert list(paddle.load(file)) == ["weight", "bias"] and paddle.load(file).tolist() == [3, 4]
    assert not file.read()
    with pytest.raises(InputError, match="got 0 bytes of a file that was cut short"):
        paddle.load(file)


def test_names_come_back():
    """A tensor is called as it was; on request a state dict tells the names of its own."""
    file, model = io.BytesIO(), nn.Linear(2, 1)
    paddle.save(model.state_dict(), file)
    file.seek(0)
    assert paddle.load(file)["weight"].name == model.weight.name
    file.seek(0)
    table = paddle.load(file, keep_name_table=True)["StructuredToParameterName@@"]
    assert table == {"weight": model.weight.name, "bias": model.bias.name}


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_every_protocol(protocol):
    obj = {"w": paddle.ones([2], "bfloat16"), "empty": paddle.zeros([0]), "n": [np.float32(1.5), 3 + 4j, b"b", {1, 2}]}
    file = io.BytesIO()
    paddle.save(obj, file, protocol=protocol)
    file.seek(0)
    back = paddle.load(file)
    assert back["w"].tolist() == [1, 1] and back["empty"].shape == [0] and back["n"] == obj["n"]
    assert type(back["n"][0]) is np.float32
    with pytest.raises(ValueError, match="expected protocol 2, 3 or 4, got 5"):
        paddle.save(obj, file, protocol=5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_binary_form(dtype, tmp_path):
    for shape in ((), (2, 3), (0, 300)):
        x = paddle.cast(paddle.arange(6)[:int(np.prod(shape))].reshape(shape), dtype)
        paddle.save(x, tmp_path / "x", use_binary_format=True)
        back = paddle.load(tmp_path / "x")
        assert back.dtype == dtype and back.shape == list(shape) and (back.numpy() == x.numpy()).all()
    with pytest.raises(TypeError, match="expected a single tensor with use_binary_format, got a dict"):
        paddle.save({"x": x}, tmp_path / "x", use_binary_format=True)
    data = (tmp_path / "x").read_bytes()
    for broken in (data[:18], data[:22], data + b"x", data[:16] + b"\xff\xff\xff\x7f" + data[20:],
                   data[:20] + b"\x18" + data[21:]):
        (tmp_path / "x").write_bytes(broken)
        with pytest.raises(InputError, match="expected a whole binary tensor in"):
            paddle.load(tmp_path / "x")


# --------------------------------------------------------------------------------------------------- what is refused
@either
def test_values_that_cannot_be_saved(name, tmp_path):
    for obj, said in [({"a": [object()]}, "got object at a/0"), ({3j: 2}, r"that are strings or \w+, got 3j"),
                      (nn.Linear(1, 1), r"got a Linear; save its state_dict\(\)"), ({(1,)}, "got set at the top"),
                      ({"a": np.array(["x"])}, "expected")]:
        with pytest.raises(TypeError, match=said):
            paddle.save(obj, tmp_path / name)
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
    paddle.save({"w": paddle.ones([1000])}, tmp_path / "x.safetensors")
    whole = (tmp_path / "x.safetensors").read_bytes()
    for cut in (len(whole) - 1, 2000, 100, 20, 9, 5, 0):
        refused(f"in .*x, got {cut} bytes of a file that was cut short: copy or save it again", whole[:cut])
    refused("got a zip archive with a pickle, as PyTorch's save", b"PK\x03\x04" + bytes(50))
    refused("got something else .*: load what minipd.save wrote", b"just some text, which is no file of tensors")
    refused("got something else", whole[:8] + b"x" * (len(whole) - 8))
    with pytest.raises(InputError, match="Is a directory"):
        paddle.load(tmp_path)
    with pytest.raises(InputError, match=r"expected a place to write y, got .*x/y \(Not a directory|File exists"):
        paddle.save({}, x / "y")
    with pytest.raises(ValueError, match="load: expected options among return_numpy, .*, got numpy"):
        paddle.load(x, numpy=True)


def test_dtypes_and_nestings_that_are_unknown(tmp_path):
    header = json.dumps({"w": {"dtype": "F8_E5M2", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    with pytest.raises(InputError, match="expected tensors of dtypes .*, got w of F8_E5M2"):
        paddle.load(tmp_path / "x")
    for tree in ("no json", '{"dict": [["a", {"tensor": "missing"}]]}', '{"strange": 1}'):
        write_tensors(tmp_path / "x", {}, {"minipd": tree})
        with pytest.raises(InputError, match="expected the nesting that minipd.save writes"):
            paddle.load(tmp_path / "x")
