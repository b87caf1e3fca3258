"""Files that try to do something: loading them raises, and nothing has happened."""

import io
import os
import pickle
import pickletools
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minipd as paddle
from minipd import nn
from minipd.framework.errors import InputError
from minipd.io import unpickling

HAPPENED = []


def happen(*args):
    HAPPENED.append(args)
    return dict


class Reduce:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


class Stateful:
    def __setstate__(self, state):
        happen(state)

    def __getstate__(self):
        return {"a": 1}


def load(data):
    return paddle.load(io.BytesIO(data))


def refused(data, said=None):
    before = dict(os.environ), os.getcwd()
    with pytest.raises(InputError, match=said):
        load(data)
    assert not HAPPENED and (dict(os.environ), os.getcwd()) == before


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("attack", [
    Reduce(happen, 1), Reduce(os.system, "true"), Reduce(eval, "1"), Reduce(exec, "x = 1"), Reduce(getattr, {}, "get"),
    Reduce(__import__, "os"), Reduce(open, "/dev/null"), Reduce(np.load, "x"), Reduce(map, happen, [1]), Stateful(),
    Reduce(pickle.loads, b"N."), Reduce(type, "X", (), {}), Reduce(print, "hello"), Reduce(np.frombuffer, b"abc"),
    Reduce(bytes, 10 ** 12), Reduce(range, 10 ** 12), happen, os.system, tuple, np.ndarray, np.dtype("O"),
    np.array([{}, happen], object), np.zeros(1, "i4,f4"), np.array(["text"]), np.array([1], "datetime64[s]"),
], ids=lambda attack: getattr(getattr(attack, "call", attack), "__name__", type(attack).__name__))
def test_attacks(attack, protocol):
    """By themselves, and hidden in a state dict of which the rest is as it should be."""
    refused(pickle.dumps(attack, protocol))
    refused(pickle.dumps({"w": np.ones(2), "x": [attack]}, protocol))
    refused(pickle.dumps({"a": ("name", attack)}, protocol))


GLOBALS = [b"cos\nsystem\n", b"cbuiltins\neval\n", b"cminipd.io.unpickling\nload\n", b"cnumpy\nload\n",
           b"cbuiltins\ntuple.__class__\n", b"cbuiltins\n__import__\n", b"c__main__\nx\n", b"ccollections\nabc\n"]


@pytest.mark.parametrize("name", GLOBALS)
def test_names_by_hand(name):
    for call in (b"(S'true'\ntR.", b"(X\x04\x00\x00\x00truetR.", b"."):
        refused(b"\x80\x02" + name + call)


@pytest.mark.parametrize("data,said", [
    (b"\x80\x04}(X\x01\x00\x00\x00aK\x01ub.", None),                              # a state for a dict
    (b"\x80\x02ccollections\nOrderedDict\n)R}X\x01\x00\x00\x00xK\x01sb.", "a state for a OrderedDict"),
    (b"\x80\x02cbuiltins\ntuple\n}X\x07\x00\x00\x00__new__K\x01sb.", "a state for a Name"),
    (b"\x80\x02cbuiltins\ntuple\n.", "a name where a value should be"),
    (b"\x80\x02cbuiltins\ntuple\n\x85.", "an? arguments where a value should be"),
    (b"\x80\x02cnumpy\nndarray\n)R.", "an? unbuilt where a value should be"),
    (b"\x80\x02cnumpy\nndarray\n)\x81.", "an? unbuilt where a value should be"),
    (b"\x80\x02K\x01K\x02\x85R.", "a call of 1, which is no function"),
    (b"\x80\x02P0\n.", "the instruction PERSID, which builds no plain data"),
    (b"\x80\x02K\x01Q.", "BINPERSID"), (b"\x80\x02\x82\x01.", "EXT1"),
    (b"\x80\x02(ios\nsystem\nX.", None), (b"\x80\x02(cos\nsystem\no.", "a call of os.system"),
    (b"\x80\x04K\x01\x97.", "NEXT_BUFFER"), (b"\x80\x02.", "instructions that make no sense"),
    (b"\x80\x02K\x01a.", None), (b"\x80\x02h\x05.", None), (b"\x80\x02]]s.", None),
    (b"\x80\x02}]K\x01s.", "unhashable"),
    (b"\x80\x02" + b"(" * 1000 + b".", None), (b"\x80\x02" + b"]" * 10 + b"t.", None), (b"\x80\x05N", "no end|STOP"),
    (b"\x80\x04\x8e" + struct.pack("<Q", 2 ** 62) + b".", None), (b"\x80\x02\x8b\xff\xff\xff\x7f.", None),
])
def test_instructions_by_hand(data, said):
    refused(data, said)


def array_of(shape, dtype, data, order=False, reconstruct="numpy._core.multiarray _reconstruct"):
    """A pickled array that says these things of itself."""
    class Array:
        def __reduce__(self):
            return np.zeros(1).__reduce__()[0], (np.ndarray, (0,), b"b"), (1, shape, dtype, order, data)
    return pickle.dumps(Array(), 4)


@pytest.mark.parametrize("shape,dtype,data", [
    ((2 ** 40,), np.dtype("f4"), b"abcd"), ((-1,), np.dtype("f4"), b"abcd"), ((1,), np.dtype("f8"), b"abcd"),
    ((2, 2 ** 63), np.dtype("f4"), b""), ("x", np.dtype("f4"), b""), ((1.0,), np.dtype("f4"), b"abcd"),
    ((1,), "f4", b"abcd"), ((1,), np.dtype("f4"), [1.0]), ((1,), np.dtype("O"), [happen]),
    ((True,), np.dtype("b"), b"a"), ((1,), np.dtype("f4"), "abcd"), (None, None, None)])
def test_arrays_that_lie(shape, dtype, data):
    refused(array_of(shape, dtype, data))
    refused(pickle.dumps(Reduce(Reduce, 1), 4))


def test_what_only_looks_odd_is_loaded():
    """Other byte orders, column-major arrays, names that look like code, deep nesting, shared and cyclic lists."""
    odd = {"big": np.arange(3, dtype=">i4"), "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
           "os.system": "__import__('os')", "names": ("cos\nsystem", np.float64(2))}
    back = load(pickle.dumps(odd, 4))
    assert back["big"].tolist() == [0, 1, 2] and back["big"].dtype == np.dtype("=i4")
    assert back["turned"].tolist() == odd["turned"].tolist() and back["os.system"] == odd["os.system"]
    deep = []
    for _ in range(100_000):
        deep = [deep]
    data = io.BytesIO()
    try:
        pickle._Pickler(data, 2).dump([])               # (the library's own cannot write it)
        data = b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
        found = load(data)
    except InputError:
        pytest.fail("a list in a list in a list is plain data")
    depth = 0
    while found:
        found, depth = found[0], depth + 1
    assert depth == 99_999
    cyclic = []
    cyclic.append(cyclic)
    again = load(pickle.dumps(cyclic, 4))
    assert again[0] is again


def state_file():
    file = io.BytesIO()
    model = nn.Linear(3, 2)
    adam = paddle.optimizer.Adam(0.1, parameters=model.parameters())
    model(paddle.ones([1, 3])).sum().backward()
    adam.step()
    paddle.save({"model": model.state_dict(), "optimizer": adam.state_dict(), "notes": ["text", (1, 2.5, None)]}, file)
    return file.getvalue()


STATE = state_file()


@given(st.integers(0, len(STATE) - 1))
def test_a_file_that_was_cut_short(length):
    with pytest.raises(InputError):
        load(STATE[:length])


@given(st.lists(st.tuples(st.integers(2, len(STATE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_bytes_that_were_changed(changes):
    """Other values, or an InputError; nothing else, and nothing runs."""
    data = bytearray(STATE)
    for at, byte in changes:
        data[at] = byte
    try:
        load(bytes(data))
    except InputError:
        pass
    assert not HAPPENED


@given(st.binary(max_size=60))
def test_any_bytes(data):
    for head in (b"", b"\x80\x02", b"\x80\x04", bytes(16)):
        try:
            load(head + data)
        except InputError:
            pass


def test_every_instruction_is_known_or_refused():
    """The ones that are known build values; what is left would call or import."""
    known = {*unpickling.PUSHED, *unpickling.SKIPPED, "STOP"}
    known |= {name[3:].upper() for name in dir(unpickling._Machine) if name.startswith("do_")}
    assert known <= {op.name for op in pickletools.opcodes}
    assert {op.name for op in pickletools.opcodes} - known == {
        "PERSID", "BINPERSID", "EXT1", "EXT2", "EXT4", "INST", "OBJ", "NEWOBJ_EX", "NEXT_BUFFER", "READONLY_BUFFER",
        "DUP", "STRING", "BINSTRING", "SHORT_BINSTRING"}
