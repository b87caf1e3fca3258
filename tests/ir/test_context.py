"""Types and attributes are uniqued: equal ones are one object, nobody changes them, and unused ones are forgotten."""

import copy
import gc
import math
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipd import ops  # noqa: F401  (fills the operator table)
from minipd.framework.dim import symbol
from minipd.framework.dtype import float32
from minipd.ir.attributes import (
    ArrayAttribute,
    BoolAttribute,
    Complex64Attribute,
    ComplexAttribute,
    DataTypeAttribute,
    DoubleAttribute,
    FloatAttribute,
    IndexAttribute,
    Int32Attribute,
    Int64Attribute,
    IntArrayAttribute,
    TensorNameAttribute,
    attribute,
)
from minipd.ir.context import IrContext, Uniqued
from minipd.ir.types import NULL_TYPE, DenseTensorType, IndexType, NullType, StackType, Type, VectorType

S0 = symbol("S0")
F23 = DenseTensorType((2, 3), "float32")

leaves = (st.booleans() | st.integers(-2**63, 2**63 - 1) | st.floats() | st.complex_numbers() | st.text(max_size=3)
          | st.sampled_from([np.dtype("float32"), np.dtype("bool"), S0, 2 * S0 + 1]))
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=6)


@pytest.mark.parametrize("same", [
    lambda: DenseTensorType([2, S0], np.float32), lambda: DenseTensorType((2, symbol("S0")), float32),
    lambda: DenseTensorType(dtype="float32", shape=(np.int64(2).item(), S0))])
def test_equal_types_are_one_object(same):
    assert same() is DenseTensorType((2, S0), np.dtype("float32"))
    assert VectorType([same(), F23]) is VectorType((same(), F23))
    assert VectorType([same(), F23]) is not VectorType((F23, same()))


def test_other_types_are_other_objects():
    types = [F23, DenseTensorType((3, 2), "float32"), DenseTensorType((2, 3), "float64"),
             DenseTensorType((2, S0), "float32"), DenseTensorType((), "float32"), VectorType([F23]), VectorType([]),
             StackType("inlet"), NULL_TYPE]
    assert len(set(types)) == len(types)
    assert NullType() is NULL_TYPE


@given(values)
def test_equal_attributes_are_one_object(value):
    assert attribute(value) is attribute(copy.deepcopy(value))


@given(values, values)
def test_attributes_are_one_object_exactly_if_they_read_the_same(a, b):
    a, b = attribute(a), attribute(b)
    assert (a is b) == (a == b) == (a.text(exact=True) == b.text(exact=True))


def test_kinds_are_kept_apart_though_python_calls_their_values_equal():
    ones = [BoolAttribute(True), Int32Attribute(1), Int64Attribute(1), FloatAttribute(1), DoubleAttribute(1),
            ComplexAttribute(1), Complex64Attribute(1), IntArrayAttribute((1,)), ArrayAttribute((Int64Attribute(1),)),
            ArrayAttribute((BoolAttribute(True),)), attribute("1"), IndexAttribute(1), TensorNameAttribute("1")]
    assert len(set(ones)) == len(ones)
    assert str(BoolAttribute(1)) == "true" and str(Int64Attribute(True)) == "i64(1)"
    assert str(DenseTensorType((True, 2), "float32")) == "tensor<1x2xf32>"


def test_zeros_with_signs_and_nans():
    assert DoubleAttribute(0.0) is not DoubleAttribute(-0.0)
    assert math.copysign(1, DoubleAttribute(-0.0).value) == -1
    assert DoubleAttribute(math.nan) is DoubleAttribute(-math.nan) is DoubleAttribute(float("nan"))
    assert ComplexAttribute(complex(0.0, -0.0)) is not ComplexAttribute(0j)


def test_copies_and_pickles_are_the_object_itself():
    things = [F23, DenseTensorType((2, S0), "bool"), VectorType([F23]), StackType("outlet"), NULL_TYPE,
              attribute((2, S0)), attribute([True, "a", [1.5, float32]]), attribute(math.nan), DataTypeAttribute(None)]
    for thing in things:
        assert copy.copy(thing) is copy.deepcopy(thing) is pickle.loads(pickle.dumps(thing)) is thing


@pytest.mark.parametrize("change", [
    lambda: setattr(F23, "shape", (1,)), lambda: setattr(attribute(1), "value", 2), lambda: delattr(F23, "shape"),
    lambda: setattr(F23, "name", "x"), lambda: object.__delattr__(F23, "no")])
def test_nothing_changes_them(change):
    with pytest.raises(AttributeError):
        change()
    assert F23.shape == (2, 3) and attribute(1).value == 1


def test_the_error_of_a_change_says_what_to_do():
    with pytest.raises(AttributeError, match="shape of tensor<2x3xf32>: expected no change, it is shared by all who "
                                             "use it; make another DenseTensorType instead"):
        F23.shape = (1,)


def test_what_is_not_used_is_forgotten():
    table = IrContext.instance().uniqued
    key = DenseTensorType, ((7, 77, 777), np.dtype("int8"))
    kept = DenseTensorType((7, 77, 777), "int8")
    assert table[key] is kept
    del kept
    gc.collect()
    assert key not in table


def test_threads_that_make_the_same_type_at_once_get_one_object():
    found, start = [], threading.Barrier(8)

    def make():
        start.wait()
        found.append([DenseTensorType((n, 9, 99), "int16") for n in range(500)])
    threads = [threading.Thread(target=make) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 8 and all(a is b for other in found for a, b in zip(found[0], other, strict=True))


def test_a_class_that_would_be_initialised_again_is_refused():
    with pytest.raises(TypeError, match="WithInit: expected __new__ that returns cls.unique"):
        class WithInit(Type):
            __slots__ = ()

            def __init__(self):
                pass
    with pytest.raises(TypeError, match="WithDict: expected __slots__ with the names of its parts"):
        class WithDict(Uniqued):
            pass


def test_asking_the_context():
    context = IrContext.instance()
    assert context is IrContext.instance()
    assert context.get_registered_op_info("pd_op.concat").inputs == ("*xs", "axis")
    assert context.get_registered_dialect("cf").name == "cf"
    with pytest.raises(KeyError, match="dialect 'nowhere': there is none; there are builtin, cf, pd_op"):
        context.get_registered_dialect("nowhere")


def test_types_of_eight_bits_and_attributes_without_a_dtype():
    assert str(DenseTensorType((2,), "uint8")) == "tensor<2xu8>"
    import ml_dtypes
    for t, text in ((ml_dtypes.float8_e4m3fn, "f8e4m3fn"), (ml_dtypes.float8_e5m2, "f8e5m2")):
        assert str(DenseTensorType((2,), np.dtype(t))) == f"tensor<2x{text}>"
        assert str(DataTypeAttribute(np.dtype(t))) == f"dtype({t.__name__})"
        assert DataTypeAttribute(t.__name__) is DataTypeAttribute(np.dtype(t))
    assert str(DataTypeAttribute(None)) == "dtype(Undefined)"
    assert DataTypeAttribute(None).text(exact=False) == "Undefined"


def test_every_kind_of_attribute_and_type_is_read_back_as_it_is_written():
    from minipd.ir.parser import Parser
    for written in (IndexAttribute(-3), TensorNameAttribute('a"b'), Complex64Attribute(1 + 2j), attribute(IndexType()),
                    DataTypeAttribute(None), attribute([VectorType([F23, StackType("inlet")]), F23])):
        assert Parser(written.text(exact=True)).attribute() is written
    for written in (IndexType(), NULL_TYPE, VectorType([IndexType()]), DenseTensorType((2,), "complex64")):
        assert Parser(written.text(exact=True)).type() is written
    assert TensorNameAttribute("w").text(exact=False) == '"w"' and IndexAttribute(5).text(exact=False) == "5"
    assert str(attribute(F23)) == "type(tensor<2x3xf32>)" and attribute(F23).text(exact=False) == "tensor<2x3xf32>"


@pytest.mark.parametrize("written", [IndexAttribute(2**40), TensorNameAttribute("w_0"), Complex64Attribute(1 - 2j)])
def test_kinds_that_only_files_have_are_written_and_read_as_paddle_does(written):
    from minipd.ir.serialize.document import Node
    from minipd.ir.serialize.reader import attribute as read
    from minipd.ir.serialize.writer import attribute_json
    assert read(Node(attribute_json(written, "a"), "file")) is written
