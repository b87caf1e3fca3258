"""parse(print(p, exact)) == p, and errors that say where."""

import pytest
from hypothesis import given

from minipd import ops  # noqa: F401  (fills the operator table)
from minipd.ir import Program
from minipd.ir.equality import difference
from minipd.ir.parser import ParseError, parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static import InputSpec
from tests.ir.random_programs import programs


@given(programs())
def test_round_trip(program):
    text = program.to_string("exact")
    back = parse(text)
    assert difference(back, program) is None and back == program
    assert back.to_string("exact") == text
    assert str(back) == str(program)
    verify(back)


@given(programs())
def test_a_copy_is_equal_and_independent(program):
    copy = program.clone()
    assert copy == program
    copy.global_block().front().set_str_attr("struct_name", "changed")
    assert copy != program


def parse_error(text):
    with pytest.raises(ParseError) as caught:
        parse(text)
    return str(caught.value)


GOOD = """{
    (%0) = "pd_op.full" () {dtype: dtype(float32), shape: ints(2), value: f64(1.0)} : () -> tensor<2xf32>
    (%1) = "pd_op.add" (%0, %0) {} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
}
"""


def test_names_do_not_matter():
    assert parse(GOOD.replace("%1", "%out").replace("%0", "%in")) == parse(GOOD)


def test_white_space_does_not_matter():
    assert parse(" ".join(GOOD.split())) == parse(GOOD)


@pytest.mark.parametrize("old, new, message", [
    ("(%0, %0)", "(%0, %7)", '3:29: expected a value that is defined above, got %7'),
    ("(%1)", "(%0)", "3:6: expected a name that is not taken yet, got %0"),
    ("f64(1.0)", "f16(1.0)", "2:75: expected an attribute of one of the kinds bool, i32, i64"),
    ("f64(1.0)", "f64(one)", "2:79: expected a number, got 'one' (could not convert string to"),
    ("ints(2)", "ints(2", "2:67: expected a dimension such as 16, S0 or 2*S0+1, got 'value"),
    ("tensor<2xf32>\n    (%1)", "tensor<2xf31>\n    (%1)", "2:102: expected a dtype, one of b, i8, u8, i16"),
    ("tensor<2xf32>\n    (%1)", "tensor<2xx>\n    (%1)", "2:102: expected a dtype"),
    ("tensor<2xf32>\n    (%1)", "matrix<2xf32>\n    (%1)", "2:93: expected a type, one of tensor, vec, cf.stack"),
    ("(tensor<2xf32>, tensor<2xf32>)", "(tensor<2xf32>, tensor<3xf32>)",
     "3:38: expected the operands' types (tensor<2xf32>, tensor<2xf32>), got (tensor<2xf32>, tensor<3xf32>)"),
    ("dtype(float32)", "dtype(float8)", "2:42: expected a dtype such as float32, got 'float8'"),
    ('"pd_op.add"', "pd_op.add", "3:12: expected a string in double quotes, got 'pd_op.add (%0, %0) {} : (tenso...'"),
])
def test_errors_say_where(old, new, message):
    assert message in parse_error(GOOD.replace(old, new, 1))


def test_errors_at_the_ends():
    assert parse_error("") == "1:1: expected '{', got the end of the text"
    assert parse_error("{") == "1:2: expected '(', got the end of the text"
    assert parse_error("{\n}\n}") == "3:1: expected the end of the text, got '}'"
    assert parse_error("{\n}\nx") == "3:1: expected the end of the text, got 'x'"


def test_values_of_a_region_are_found_only_by_name():
    """The parser reads what the verifier then refuses: a value used outside of its region."""
    from minipd.ir.verify import VerifyError
    program = parse("""{
        (%c) = "pd_op.full" () {dtype: dtype(bool), shape: ints(), value: true} : () -> tensor<b>
        () = "pd_op.if" (%c) {} : (tensor<b>) -> {
            (%x) = "pd_op.full" () {dtype: dtype(float32), shape: ints(), value: f64(1.0)} : () -> tensor<f32>
        } {
        }
        (%y) = "pd_op.tanh" (%x) {} : (tensor<f32>) -> tensor<f32>
    }""")
    with pytest.raises(VerifyError, match="pd_op.tanh .*: operand 0: .*in a region that is not around it"):
        verify(program)


def test_an_empty_program():
    assert parse("{}") == Program()


@pytest.mark.parametrize("what, message", [
    ("[" * 5000 + "]" * 5000, "expected at most 100 brackets inside of one another"),
    ("i64(" + "9" * 6000 + ")", "expected an integer of 64 bits"),
    ("ints(" + "9" * 6000 + ")", "expected a dimension"),
    ("d" * 9000, "expected an attribute of one of the kinds"),
    ("type(tensor<" + "9" * 6000 + "xf32>)", "expected a dimension"),
])
def test_what_has_no_end_is_refused(what, message):
    error = parse_error(GOOD.replace("f64(1.0)", what))
    assert message in error and len(error) < 1500


def test_text_of_the_other_style_is_recognised():
    program = trace(lambda x: x.exp(), InputSpec([2], "float32", "x")).program
    with pytest.raises(ParseError) as caught:
        parse(program.to_string("paddle"))
    assert 'parse(text, "paddle")' in caught.value.__notes__[0]
    with pytest.raises(ParseError) as caught:
        parse("{ nothing")
    assert not hasattr(caught.value, "__notes__")
