"""Paddle's parameter files: bytes reckoned by hand, round trips, and files that were damaged."""

import random
import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from minipd.framework.errors import InputError
from minipd.io.combined_tensors import combined, read_combined, separated, write_combined

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
          "complex128", ml_dtypes.bfloat16]
#: Paddle's number of each element type
CODES = [0, 20, 21, 1, 2, 3, 4, 5, 6, 23, 24, 22]


def by_hand(code, shape, values):
    """One tensor: versions and levels of detail, a protobuf message, the values."""
    message = bytes([8, code]) + b"".join(bytes([16, n]) for n in shape)
    return struct.pack("<IQI i", 0, 0, 0, len(message)) + message + values


@pytest.mark.parametrize("dtype,code", list(zip(DTYPES, CODES, strict=True)))
def test_bytes_of_every_dtype(dtype, code):
    array = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    data = combined({"b": array, "a": array[1]})
    assert data == by_hand(code, (3,), array[1].tobytes()) + by_hand(code, (2, 3), array.tobytes())
    found = separated(data, ["b", "a"])
    assert found["b"].dtype == array.dtype and np.array_equal(found["b"], array)
    assert np.array_equal(found["a"], array[1])


def test_shapes_layouts_and_names(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"w.10": rng.standard_normal((3, 4)).T, "w.9": np.float64(2.5), "e": np.zeros((0, 5), "int64"),
              "z": rng.standard_normal((2, 300)).astype("float32")[:, ::2], "ü": np.ones((1, 1, 1, 1, 1, 1, 1), "int8")}
    write_combined(tmp_path / "p", arrays)
    assert [f.name for f in tmp_path.iterdir()] == ["p"]
    found = read_combined(tmp_path / "p", reversed(arrays))
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].shape == array.shape and found[name].dtype == array.dtype
        assert np.array_equal(found[name], array) and found[name].flags.writeable
    assert read_combined(tmp_path / "p", arrays)["z"] is not found["z"]


def test_no_tensors():
    assert combined({}) == b"" and separated(b"", []) == {}


@pytest.mark.parametrize("data,message", [
    (by_hand(5, (2,), bytes(8)), "expected 2 tensors, one for each name in the program, got 1"),
    (by_hand(5, (2,), bytes(8))[:-1], "expected 8 bytes of values for tensor 0, float32.2., got 7 bytes"),
    (by_hand(5, (2,), bytes(8)) + b"\1", "no head of a binary tensor at byte 32"),
    (b"\x80" + bytes(40), "no head of a binary tensor at byte 0"),
    (by_hand(99, (2,), bytes(8)), "the dtype with code 99"),
    (struct.pack("<IQIi", 0, 0, 0, 2) + bytes([16, 2]) + bytes(8),
     r"a description without a dtype \(its field 1\) at byte 0 of net.pdiparams \(tensor 0\)"),
    (struct.pack("<IQIi", 0, 0, 0, -1), "a description of -1 bytes"),
    (struct.pack("<IQIi", 0, 0, 0, 1 << 30) + bytes(9), "a description of 1073741824 bytes"),
    (struct.pack("<IQIi", 0, 1, 0, 2) + bytes([8, 5]), "no head"),
    (struct.pack("<IQIi", 0, 0, 0, 4) + bytes([8, 5, 24, 1]), "an unknown field 24"),
    (struct.pack("<IQIi", 0, 0, 0, 3) + bytes([8, 5, 16]), "a description that was cut short"),
    (struct.pack("<IQIi", 0, 0, 0, 12) + bytes([8, 5, 16]) + b"\xff" * 8 + b"\x7f", "expected .* bytes of values"),
    (struct.pack("<IQIi", 0, 0, 0, 13) + bytes([8, 5, 16]) + b"\xff" * 9 + b"\x7f", "a shape of 1 dimensions"),
    (struct.pack("<IQIi", 0, 0, 0, 202) + bytes([8, 5]) + bytes([16, 1]) * 100 + bytes(4), "a shape of 100 dimensions"),
])
def test_damaged_files_say_what_is_wrong_and_where(data, message):
    with pytest.raises(InputError, match=message) as error:
        separated(data, ["a", "b"], "net.pdiparams")
    assert "net.pdiparams" in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_combined(tmp_path / "net.pdiparams", ["a"])
    with pytest.raises(InputError, match="a place to write net.pdiparams"):
        write_combined(tmp_path / "no" / "net.pdiparams", {"a": np.ones(2)})
    assert not list(tmp_path.iterdir())


def test_what_a_file_claims_is_never_allocated():
    huge = struct.pack("<IQIi", 0, 0, 0, 8) + bytes([8, 6, 16]) + b"\xff" * 4 + b"\x7f"        # 34 gigabytes of doubles
    tracemalloc.start()
    with pytest.raises(InputError, match="bytes of values for tensor 0"):
        separated(huge + bytes(1000), ["a"])
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


def test_no_damage_leads_to_anything_but_an_error_that_names_the_file():
    rng, refused = random.Random(0), 0
    good = combined({"a": np.arange(300, dtype="float32").reshape(3, 100), "b": np.int64(3), "c": np.ones(7, "int8")})
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(rng.choice((1, 2, 4))):
            at = rng.choice((rng.randrange(40), rng.randrange(len(data))))
            if rng.random() < 0.2:
                del data[at:at + rng.randrange(20)]
            else:
                data[at:at + 1] = bytes([rng.choice((0, 255, 127, 128, rng.randrange(256)))])
        try:
            found = separated(bytes(data), "abc", "net.pdiparams")
            assert sum(a.nbytes for a in found.values()) <= len(data)
        except InputError as error:
            assert "net.pdiparams" in str(error)
            refused += 1
    assert refused > 500
