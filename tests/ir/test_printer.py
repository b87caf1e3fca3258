"""The two print styles.  The texts in Paddle's style are what PaddlePaddle 3.3.1 prints for these programs."""

import math

import numpy as np
import pytest

from minipd import ops  # noqa: F401  (fills the operator table)
from minipd.framework.dim import symbol
from minipd.framework.row import ROWS
from minipd.ir import DenseTensorType, Program
from minipd.ir.builder import Builder
from minipd.ir.printer import print_operation
from minipd.ir.types import StackType
from minipd.ir.verify import verify


@pytest.fixture
def build():
    return Builder(Program().global_block())


def text(build, style="paddle"):
    program = Program()
    program.region = build.block.region
    return verify(program).to_string(style)


def test_a_layer_and_a_norm(build):
    b = symbol("S0")
    w = build.parameter("linear_0.w_0", (8, 16), "float32")
    bias = build.parameter("linear_0.b_0", (16,), "float32")
    x = build.data("x", (b, 8), "float32")
    layer = {"struct_name": "/Linear/"}
    h, = build.call(ROWS["matmul"], (x, w), {}, layer)
    h, = build.call(ROWS["add"], (h, bias), {}, layer)
    m, = build.call(ROWS["mean"], (h,), {"axis": (1,), "keepdim": True})
    build.call(ROWS["scale"], (m,), {"scale": 1.0, "bias": 1e-06})
    assert text(build) == """\
{
    (%0) = "builtin.parameter" () {is_distributed:[false],is_parameter:[true],need_clip:[true],\
parameter_name:"linear_0.w_0",persistable:[true],stop_gradient:[false],trainable:[true]} : () -> tensor<8x16xf32>
    (%1) = "builtin.parameter" () {is_distributed:[false],is_parameter:[true],need_clip:[true],\
parameter_name:"linear_0.b_0",persistable:[true],stop_gradient:[false],trainable:[true]} : () -> tensor<16xf32>
    (%2) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[-1,8],stop_gradient:[true]} : () -> tensor<-1x8xf32>
    (%3) = "pd_op.matmul" (%2, %0) {stop_gradient:[false],struct_name:"/Linear/",transpose_x:false,transpose_y:false} : \
(tensor<-1x8xf32>, tensor<8x16xf32>) -> tensor<-1x16xf32>
    (%4) = "pd_op.add" (%3, %1) {stop_gradient:[false],struct_name:"/Linear/"} : (tensor<-1x16xf32>, tensor<16xf32>) -> tensor<-1x16xf32>
    (%5) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[1]} : () -> tensor<1xi64>
    (%6) = "pd_op.mean" (%4, %5) {keepdim:true,stop_gradient:[false]} : (tensor<-1x16xf32>, tensor<1xi64>) -> tensor<-1x1xf32>
    (%7) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:1} : () -> tensor<1xf32>
    (%8) = "pd_op.scale" (%6, %7) {bias:1e-06,bias_after_scale:true,stop_gradient:[false]} : (tensor<-1x1xf32>, tensor<1xf32>) -> tensor<-1x1xf32>
}
"""  # noqa: E501


def test_state_is_written_by_name(build):
    w = build.full((16,), 0, "float32")
    build.set_parameter("linear_0.b_0", w)
    assert text(build).splitlines()[2] == \
        '    () = "builtin.set_parameter" (%0) {parameter_name:"linear_0.b_0"} : (tensor<16xf32>) -> '


def test_vectors(build):
    a = build.data("a", (4, 6), "float32")
    build.call(ROWS["concat"], (a, a), {"axis": 1})
    build.call(ROWS["split"], (a,), {"sections": (2, 4), "axis": 1})
    assert text(build) == """\
{
    (%0) = "pd_op.data" () {dtype:float32,name:"a",place:Place(undefined:0),shape:[4,6],stop_gradient:[true]} : () -> tensor<4x6xf32>
    (%1) = "pd_op.full" () {dtype:int32,place:Place(cpu),shape:[1],stop_gradient:[true],value:1} : () -> tensor<1xi32>
    (%2) = "builtin.combine" (%0, %0) {stop_gradient:[true]} : (tensor<4x6xf32>, tensor<4x6xf32>) -> vec[tensor<4x6xf32>,tensor<4x6xf32>]
    (%3) = "pd_op.concat" (%2, %1) {stop_gradient:[true]} : (vec[tensor<4x6xf32>,tensor<4x6xf32>], tensor<1xi32>) -> tensor<4x12xf32>
    (%4) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[2,4]} : () -> tensor<2xi64>
    (%5) = "pd_op.full" () {dtype:int32,place:Place(cpu),shape:[1],stop_gradient:[true],value:1} : () -> tensor<1xi32>
    (%6) = "pd_op.split" (%0, %4, %5) {stop_gradient:[true]} : (tensor<4x6xf32>, tensor<2xi64>, tensor<1xi32>) -> vec[tensor<4x2xf32>,tensor<4x4xf32>]
    (%7, %8) = "builtin.split" (%6) {stop_gradient:[true,true]} : (vec[tensor<4x2xf32>,tensor<4x4xf32>]) -> tensor<4x2xf32>, tensor<4x4xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("value, dtype, printed", [
    (math.nan, "float32", "nan"), (math.inf, "float32", "inf"), (-math.inf, "float32", "-inf"),
    (1e10, "float32", "1e+10"),
    (123456789.0, "float32", "1.23457e+08"), (1 / 3, "float32", "0.333333"), (0, "float32", "0"), (3, "int64", "3")])
def test_numbers(build, value, dtype, printed):
    op = build.full((), value, dtype).get_defining_op()
    short = {"float32": "f32", "int64": "i64"}[dtype]
    assert print_operation(op) == (f'(%0) = "pd_op.full" () {{dtype:{dtype},place:Place(undefined:0),shape:[],'
                                   f'stop_gradient:[true],value:{printed}}} : () -> tensor<{short}>\n')


def test_quotes_are_escaped_and_lines_are_not(build):
    op = build.data('we"ird\n\\', (2,), "float32").get_defining_op()
    assert 'name:"we\\"ird\n\\",place' in print_operation(op)


def test_the_users_line_is_hidden_in_paddles_style(build):
    op = build.full((), 1, "float32").get_defining_op()
    op.set_attr("op_callstack", ("train.py:3",))
    assert "train.py" not in print_operation(op)
    assert 'op_callstack: ["train.py:3"]' in print_operation(op, "exact")


def branch(build):
    """if p: tanh(x) * y, keeping what the gradient needs; else x - y."""
    stack = build.build("cf.stack_create", (), {}, [StackType(end) for end in StackType.ENDS])
    x, y = build.data("x", (2, 3), "float32", False), build.data("y", (2, 3), "float32", False)
    p = build.data("p", (), "bool")
    op = build.build("pd_op.if", [p], {"stop_gradient": [False]}, [DenseTensorType((2, 3), "float32")], 2)
    true, false = (Builder(region.add_block()) for region in op.regions)
    h, = true.call(ROWS["tanh"], (x,), {})
    out, = true.call(ROWS["multiply"], (h, y), {})
    true.build("cf.tuple_push", [stack.result(1), h, out])
    true.build("cf.yield", [out])
    false.build("cf.yield", false.call(ROWS["subtract"], (x, y), {}))
    back = build.build("pd_op.if", [p], {}, [], 2)
    build.set_insertion_point_to_block_end(back.regions[0].add_block())
    build.build("cf.tuple_pop", [stack.result(2)], {"stop_gradient": [False, False]}, [h.type(), out.type()])
    back.regions[1].add_block()
    build.set_insertion_point_after(back)


def test_branches_and_stacks(build):
    branch(build)
    assert text(build) == """\
{
    (%stack_0, %inlet_0, %outlet_0) = "cf.stack_create" () {} : () -> cf.stack, cf.inlet, cf.outlet
    (%0) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[2,3],stop_gradient:[false]} : () -> tensor<2x3xf32>
    (%1) = "pd_op.data" () {dtype:float32,name:"y",place:Place(undefined:0),shape:[2,3],stop_gradient:[false]} : () -> tensor<2x3xf32>
    (%2) = "pd_op.data" () {dtype:bool,name:"p",place:Place(undefined:0),shape:[],stop_gradient:[true]} : () -> tensor<b>
    (%3) = "pd_op.if" (%2) {stop_gradient:[false]} -> tensor<2x3xf32> {
        (%4) = "pd_op.tanh" (%0) {stop_gradient:[false]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
        (%5) = "pd_op.multiply" (%4, %1) {stop_gradient:[false]} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        () = "cf.tuple_push" (%inlet_0, %4, %5) {} : (cf.inlet, tensor<2x3xf32>, tensor<2x3xf32>) -> 
        () = "cf.yield" (%5) {} : (tensor<2x3xf32>) -> 
    } else {
        (%6) = "pd_op.subtract" (%0, %1) {stop_gradient:[false]} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        () = "cf.yield" (%6) {} : (tensor<2x3xf32>) -> 
    }
    () = "pd_op.if" (%2) {} ->  {
        (%7, %8) = "cf.tuple_pop" (%outlet_0) {stop_gradient:[false,false]} : (cf.outlet) -> tensor<2x3xf32>, tensor<2x3xf32>
    } else {
    }
}
"""  # noqa: E501, W291


def test_the_exact_style(build):
    s = symbol("S0")
    x = build.data("x", (s, 8), "float32")
    y, = build.call(ROWS["reshape"], (x,), {"shape": (2 * s, 4)})
    build.call(ROWS["scale"], (y,), {"scale": 0.1, "bias": math.nan})
    program = Program()
    program.region = build.block.region
    program.constraints.record("divisible", s, 4, "reshape")
    where = next(iter(program.constraints)).where
    assert program.to_string("exact") == f"""\
{{
    assume S0 % 4 == 0, "reshape", "{where}"
    (%0) = "pd_op.data" () {{dtype: dtype(float32), name: "x", place: Place(undefined:0), shape: ints(S0, 8), stop_gradient: [true]}} : () -> tensor<S0x8xf32>
    (%1) = "pd_op.full_int_array" () {{dtype: dtype(int64), place: Place(cpu), stop_gradient: [true], value: ints(2*S0, 4)}} : () -> tensor<2xi64>
    (%2) = "pd_op.reshape" (%0, %1) {{stop_gradient: [true]}} : (tensor<S0x8xf32>, tensor<2xi64>) -> tensor<(2*S0)x4xf32>
    (%3) = "pd_op.full" () {{dtype: dtype(float32), place: Place(cpu), shape: ints(1), stop_gradient: [true], value: f64(0.1)}} : () -> tensor<1xf32>
    (%4) = "pd_op.scale" (%2, %3) {{bias: f64(nan), bias_after_scale: true, stop_gradient: [true]}} : (tensor<(2*S0)x4xf32>, tensor<1xf32>) -> tensor<(2*S0)x4xf32>
}}
"""  # noqa: E501


def test_float64_constants_are_typed_float64(build):
    x = build.data("x", (2,), "float64")
    out, = build.call(ROWS["scale"], (x,), {"scale": 0.1})
    assert out.get_defining_op().operand_source(1).dtype == np.float64


def test_only_two_styles():
    with pytest.raises(ValueError, match="""expected "paddle" or "exact", got 'mlir'"""):
        Program().to_string("mlir")
