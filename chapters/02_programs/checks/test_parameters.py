"""Oracle: files that are written here byte by byte; damaged ones must be refused before anything large is read."""

import io
import math
import struct

import numpy as np

from minipd.framework.errors import InputError
from minipd.io.combined_tensors import entries
from tools.course.checking import check

#: dtype -> its number in Paddle's format
CODES = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float32": 5, "float64": 6, "uint8": 20}


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n % 128 + 128]), n // 128
    return out + bytes([n])


def head(dtype, shape):
    """What stands before the values."""
    description = b"\x08" + varint(CODES[dtype]) + b"".join(b"\x10" + varint(n) for n in shape)
    return bytes(16) + struct.pack("<i", len(description)) + description


def tensor(dtype, shape):
    return head(dtype, shape) + b"\x01" * (math.prod(shape) * np.dtype(dtype).itemsize)


class File(io.BytesIO):
    """Counts what is read."""

    taken = 0

    def read(self, n=-1):
        found = super().read(n)
        self.taken += len(found)
        return found


def found(data):
    return lambda: [(e.what.dtype.name, e.what.shape, e.start) for e in entries(File(data), len(data), "a file")]


def refused(data):
    """"refused", if it is told as a user should be."""
    def run():
        try:
            list(entries(File(data), len(data), "a file"))
        except InputError as error:
            return "refused" if "a file" in str(error) else f"an error that does not name the file: {error}"
        return "accepted"
    return run


def test_no_tensor():
    check([], found(b""), "an empty file")


def test_one_tensor():
    check([("float32", (1,), 24)], found(tensor("float32", [1])),
          "one tensor of float32, shape [1]: 16 + 4 bytes, 4 of description, then the values")


def test_two_tensors():
    check([("float32", (1,), 24), ("int64", (2, 3), 54)], found(tensor("float32", [1]) + tensor("int64", [2, 3])),
          "float32 [1], which ends at byte 28, and int64 [2, 3], whose description has 6 bytes")


def test_numbers_and_nothing():
    check([("float64", (), 22), ("uint8", (0, 5), 56), ("bool", (3,), 80)],
          found(tensor("float64", []) + tensor("uint8", [0, 5]) + tensor("bool", [3])),
          "float64 without dimensions, uint8 [0, 5] without elements, bool [3]")


def test_a_long_description():
    shape = [1] * 30 + [300]
    check([("int16", tuple(shape), 20 + 2 + 60 + 3)], found(tensor("int16", shape)), "int16 with 31 dimensions")


def test_many():
    rng = np.random.default_rng(0)
    data, expected = b"", []
    for _ in range(40):
        dtype = str(rng.choice(list(CODES)))
        shape = tuple(int(n) for n in rng.integers(0, 200, rng.integers(0, 3)))
        expected.append((dtype, shape, len(data) + len(head(dtype, shape))))
        data += tensor(dtype, shape)
    check(expected, found(data), "40 random tensors, one after the other")


def test_values_are_not_read():
    data = tensor("float32", [100, 100]) + tensor("uint8", [50000])
    file = File(data)
    list(entries(file, len(data), "a file"))
    check(True, file.taken < 500, f"are fewer than 500 bytes read, of a file of {len(data)} bytes with two tensors? "
                                  f"{file.taken} were")


def test_values_that_are_cut_short():
    data = tensor("float32", [4])
    for n in (1, 15, 16):
        check("refused", refused(data[:-n]), f"float32 [4] without its last {n} bytes")


def test_cut_anywhere():
    data = tensor("int32", [3]) + tensor("float32", [2, 2])
    whole = len(tensor("int32", [3]))
    for n in range(1, len(data)):
        if n != whole:
            check("refused", refused(data[:n]),
                  f"the first {n} bytes of int32 [3] and float32 [2, 2] ({len(data)} bytes)")


def test_sizes_that_are_lies():
    for shape in ([1 << 60], [1 << 40, 1 << 40], [1 << 62, 2], [5]):
        check("refused", refused(head("float32", shape) + bytes(16)), f"a tensor that says {shape}, with 16 bytes")


def test_a_description_that_is_a_lie():
    for n in (-1, 1 << 30, 5000):
        check("refused", refused(bytes(16) + struct.pack("<i", n) + bytes(100)), f"a description of {n} bytes")
    check("refused", refused(bytes(16) + struct.pack("<i", 2) + b"\x08\x63" + bytes(8)), "a dtype of number 99")


def test_something_else():
    check("refused", refused(b"PK\x03\x04" + bytes(100)), "a zip file")
    check("refused", refused(tensor("float32", [2]) + b"more"), "a tensor, and four bytes behind it")
