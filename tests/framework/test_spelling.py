"""What was written rides along with what it means, into a trace, and nowhere else."""

import copy
import pickle

import numpy as np
import pytest

import minipd
from minipd.framework.context import MetaOnly, using
from minipd.framework.meta import Meta
from minipd.framework.spelling import SpelledInt, SpelledTuple, as_given
from minipd.ir.traced import trace
from minipd.ops.shapes import normalize_axes, normalize_axis


@pytest.fixture
def somebody_writes():
    with using(ground=MetaOnly()):
        yield


def test_eager_mode_has_plain_numbers():
    assert type(as_given(1, -1)) is int and type(normalize_axes("f", None, 2)) is tuple
    assert type(normalize_axis("f", -1, 3)) is int


@pytest.mark.usefixtures("somebody_writes")
def test_a_spelled_number_is_a_number():
    axis = as_given(1, -1)
    assert isinstance(axis, SpelledInt) and axis == 1 and hash(axis) == hash(1) and [5, 6][axis] == 6
    assert type(axis + 0) is int and axis.given == -1 and as_given(1, 1).__class__ is int
    assert pickle.loads(pickle.dumps(axis)) == 1 and copy.deepcopy(as_given((0, 1), ())) == (0, 1)


@pytest.mark.usefixtures("somebody_writes")
def test_normalised_axes_remember():
    assert normalize_axis("f", -1, 3).given == -1 and type(normalize_axis("f", 2, 3)) is int
    assert normalize_axis("f", normalize_axis("f", -1, 3), 3).given == -1
    axes = normalize_axes("f", None, 2)
    assert isinstance(axes, SpelledTuple) and axes == (0, 1) and axes.given == ()
    assert normalize_axes("f", axes, 2) is axes
    assert normalize_axes("f", (0, 1), 2).__class__ is tuple


def written(fn, shape=(4, 6)):
    program = trace(fn, Meta(shape, np.dtype(np.float32))).program
    return [dict(op.attributes["as_written"].value) for op in program.walk() if "as_written" in op.attributes], program


def test_a_trace_notes_it_and_stores_plain_numbers():
    notes, program = written(lambda x: minipd.nn.functional.softmax(x, -1)[:, -2:].sum())
    assert notes == [{"axis": -1}, {"starts": (-2,), "ends": (2 ** 31 - 1,)}, {"axis": ()}]
    for op in program.walk():
        for attribute in op.attributes.values():
            assert type(attribute.value) not in (SpelledInt, SpelledTuple)
            if isinstance(attribute.value, tuple):
                assert not any(isinstance(v, SpelledInt) for v in attribute.value)


def test_what_was_written_is_shown_only_while_it_means_the_same():
    _, program = written(lambda x: minipd.nn.functional.softmax(x, -1))
    softmax = next(op for op in program.walk() if op.name() == "pd_op.softmax")
    assert "axis:-1" in str(program)
    softmax.set_attr("axis", 0)                 # as a pass might
    assert "axis:0" in str(program) and "axis:-1" not in str(program)
