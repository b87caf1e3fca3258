"""Text that the real Paddle printed, read and printed again."""

import pytest

from minipd.framework.row import ROWS
from minipd.ir.equality import difference
from minipd.ir.paddle import from_paddle
from minipd.ir.parser import ParseError, parse

LAYER = """{
    (%0) = "builtin.parameter" () {is_distributed:[false],is_parameter:[true],need_clip:[true],parameter_name:"a\\"b",persistable:[true],stop_gradient:[false],trainable:[true]} : () -> tensor<3xf32>
    (%1) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[-1,3],stop_gradient:[true]} : () -> tensor<-1x3xf32>
    (%2, %3, %4) = "pd_op.layer_norm" (%1, %0, <<NULL VALUE>>) {begin_norm_axis:1,epsilon:1e-05,stop_gradient:[false,false,false]} : (tensor<-1x3xf32>, tensor<3xf32>, <<NULL TYPE>>) -> tensor<-1x3xf32>, tensor<-1xf32>, tensor<-1xf32>
    (%5) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:0.3} : () -> tensor<1xf32>
    (%6, %7) = "pd_op.dropout" (%2, <<NULL VALUE>>, %5) {fix_seed:false,is_test:false,mode:"upscale_in_train",seed:0,stop_gradient:[false,false]} : (tensor<-1x3xf32>, <<NULL TYPE>>, tensor<1xf32>) -> tensor<-1x3xf32>, tensor<-1x3xu8>
    (%8) = "builtin.combine" (%6, %2) {stop_gradient:[false]} : (tensor<-1x3xf32>, tensor<-1x3xf32>) -> vec[tensor<-1x3xf32>,tensor<-1x3xf32>]
    (%9) = "pd_op.add_n" (%8) {stop_gradient:[false]} : (vec[tensor<-1x3xf32>,tensor<-1x3xf32>]) -> tensor<-1x3xf32>
    (%10) = "custom_op.my_op" (%9) {how:2.5,sizes:[1,-1],stop_gradient:[true],what:Strange(1,2)} : (tensor<-1x3xf32>) -> pd_op.tensorarray<-1xf32>
}
"""  # noqa: E501

LOOP = """{
    (%stack_0, %inlet_0, %outlet_0) = "cf.stack_create" () {} : () -> cf.stack, cf.inlet, cf.outlet
    (%0) = "pd_op.data" () {dtype:int64,name:"i",place:Place(undefined:0),shape:[],stop_gradient:[true]} : () -> tensor<i64>
    (%1) = "pd_op.data" () {dtype:bool,name:"c",place:Place(undefined:0),shape:[],stop_gradient:[true]} : () -> tensor<b>
    (%2) = "pd_op.if" (%1) {stop_gradient:[true]} -> tensor<i64> {
        () = "cf.yield" (%0) {} : (tensor<i64>) -> 
    } else {
        (%3) = "pd_op.add" (%0, %0) {stop_gradient:[true]} : (tensor<i64>, tensor<i64>) -> tensor<i64>
        () = "cf.yield" (%3) {} : (tensor<i64>) -> 
    }
    (%4) = "pd_op.while" (cond=%1, inputs=%2) { 
    ^%arg_0 {stop_gradient:true}
        (%5) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:1} : () -> tensor<1xf32>
        (%6) = "pd_op.scale" (%arg_0, %5) {bias:1,bias_after_scale:true,stop_gradient:[true]} : (tensor<i64>, tensor<1xf32>) -> tensor<i64>
        (%7) = "pd_op.full" () {dtype:int64,place:Place(undefined:0),shape:[],stop_gradient:[true],value:9} : () -> tensor<i64>
        (%8) = "pd_op.less_than" (%6, %7) {stop_gradient:[true]} : (tensor<i64>, tensor<i64>) -> tensor<b>
        () = "cf.tuple_push" (%inlet_0, %6) {} : (cf.inlet, tensor<i64>) -> 
        () = "cf.yield" (%8, %6) {} : (tensor<b>, tensor<i64>) -> 
    }
    () = "pd_op.if" (%1) {} ->  {
    } else {
    }
}
"""  # noqa: E501, W291


@pytest.mark.parametrize("text", [LAYER, LOOP])
def test_text_of_paddle_survives_both_styles(text):
    program = parse(text, style="paddle")
    assert program.form == "paddle" and program.to_string("paddle") == text
    exact = parse(program.to_string("exact"))
    assert difference(exact, program) is None and exact.to_string("paddle") == text


def test_attributes_get_the_kinds_of_the_signature():
    ops = list(parse(LAYER, style="paddle").walk())
    norm, mine = ops[2], ops[-1]
    assert repr(norm.attributes["epsilon"]) == "f32(1e-05)" and repr(norm.attributes["begin_norm_axis"]) == "i32(1)"
    assert {k: repr(a) for k, a in mine.attributes.items() if k != "stop_gradient"} == {
        "how": "f64(2.5)", "sizes": "[i64(1), i64(-1)]", "what": 'raw("Strange(1,2)")'}


def test_what_paddle_wrote_becomes_calls_of_rows():
    program = from_paddle(parse(LAYER, style="paddle"))
    names = [op.name() for op in program.walk()]
    assert names[-1] == "custom_op.my_op" and not list(program.walk())[-1].info.registered
    assert {"pd_op.standardize", "pd_op.dropout", "pd_op.add_n"} <= set(names) and "pd_op.layer_norm" not in names
    assert all(name.partition(".")[2] in ROWS for name in names if name.startswith("pd_op.") and name != "pd_op.data")


@pytest.mark.parametrize(("old", "new", "line", "column", "problem"), [
    ("(%1, %0, <<", "(%1, %99, <<", 4, 44, "a value that is defined above, got %99"),
    ("dtype:float32,name", "dtype:,name", 3, 35, "an attribute such as"),
    ("(tensor<-1x3xf32>) -> pd_op", "(tensor<-1x4xf32>) -> pd_op", 9, 100, "the operands' types"),
    ("(%9) = ", "(%8) = ", 8, 6, "a name that is not taken yet, got %8"),
    ("-1xf32>\n}", "-1xf32>\n", 11, 1, "expected '(', got the end of the text"),
    ("tensorarray<-1xf32>\n}", "tensorarray<-1xf32>\n} x", 10, 3, "the end of the text"),
])
def test_errors_name_line_and_column(old, new, line, column, problem):
    with pytest.raises(ParseError) as caught:
        parse(LAYER.replace(old, new, 1), style="paddle")
    assert problem in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)


def test_an_unknown_style_is_refused():
    with pytest.raises(ValueError, match='"exact" or "paddle"'):
        parse("{\n}\n", style="Paddle")
