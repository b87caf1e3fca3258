"""What minipd prints for a static program is what the real Paddle prints for it; `make interop` has more."""

import re

import pytest

import minipd as paddle
from minipd import static


@pytest.fixture(autouse=True)
def static_mode():
    paddle.enable_static()
    yield
    paddle.disable_static()


def linear():
    paddle.nn.Linear(6, 4)(x([-1, 6])).mean()


def one_row():
    (x([2, 6])[0] * 2.0).sum()


def branches():
    v = x([2, 6])
    static.nn.cond(v.mean() > 0, lambda: v * v, lambda: v - 1).sum()


def every_second():
    (x([2, 6])[:, ::2] * 2.0).sum()


def stacked():
    v = x([2, 6])
    (paddle.stack([v, v * 2]) * 3.0).sum()


def x(shape):
    found = static.data("x", shape, "float32")
    found.stop_gradient = False
    return found


TEXTS = {
    "linear": """\
{
    (%0) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[-1,6],stop_gradient:[false]} : () -> tensor<-1x6xf32>
    (%1) = "builtin.parameter" () {is_distributed:[false],is_parameter:[true],need_clip:[true],parameter_name:"linear_0.b_0",persistable:[true],stop_gradient:[false],trainable:[true]} : () -> tensor<4xf32>
    (%2) = "builtin.parameter" () {is_distributed:[false],is_parameter:[true],need_clip:[true],parameter_name:"linear_0.w_0",persistable:[true],stop_gradient:[false],trainable:[true]} : () -> tensor<6x4xf32>
    (%3) = "pd_op.matmul" (%0, %2) {stop_gradient:[false],struct_name:"/Linear/",transpose_x:false,transpose_y:false} : (tensor<-1x6xf32>, tensor<6x4xf32>) -> tensor<-1x4xf32>
    (%4) = "pd_op.add" (%3, %1) {stop_gradient:[false],struct_name:"/Linear/"} : (tensor<-1x4xf32>, tensor<4xf32>) -> tensor<-1x4xf32>
    (%5) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[]} : () -> tensor<0xi64>
    (%6) = "pd_op.mean" (%4, %5) {keepdim:false,stop_gradient:[false]} : (tensor<-1x4xf32>, tensor<0xi64>) -> tensor<f32>
}
""",  # noqa: E501, W291
    "one_row": """\
{
    (%0) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[2,6],stop_gradient:[false]} : () -> tensor<2x6xf32>
    (%1) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[0]} : () -> tensor<1xi64>
    (%2) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[1]} : () -> tensor<1xi64>
    (%3) = "pd_op.slice" (%0, %1, %2) {axes:[0],decrease_axis:[0],infer_flags:[1],stop_gradient:[false]} : (tensor<2x6xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<6xf32>
    (%4) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:2} : () -> tensor<1xf32>
    (%5) = "pd_op.scale" (%3, %4) {bias:0,bias_after_scale:true,stop_gradient:[false]} : (tensor<6xf32>, tensor<1xf32>) -> tensor<6xf32>
    (%6) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[]} : () -> tensor<0xi64>
    (%7) = "pd_op.sum" (%5, %6) {dtype:Undefined,keepdim:false,stop_gradient:[false]} : (tensor<6xf32>, tensor<0xi64>) -> tensor<f32>
}
""",  # noqa: E501, W291
    "branches": """\
{
    (%0) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[2,6],stop_gradient:[false]} : () -> tensor<2x6xf32>
    (%1) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[]} : () -> tensor<0xi64>
    (%2) = "pd_op.mean" (%0, %1) {keepdim:false,stop_gradient:[false]} : (tensor<2x6xf32>, tensor<0xi64>) -> tensor<f32>
    (%3) = "pd_op.full" () {dtype:float32,place:Place(undefined:0),shape:[],stop_gradient:[true],value:0} : () -> tensor<f32>
    (%4) = "pd_op.greater_than" (%2, %3) {stop_gradient:[true]} : (tensor<f32>, tensor<f32>) -> tensor<b>
    (%5) = "pd_op.if" (%4) {stop_gradient:[false]} -> tensor<2x6xf32> {
        (%6) = "pd_op.multiply" (%0, %0) {stop_gradient:[false]} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
        () = "cf.yield" (%6) {} : (tensor<2x6xf32>) -> 
    } else {
        (%7) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:1} : () -> tensor<1xf32>
        (%8) = "pd_op.scale" (%0, %7) {bias:-1,bias_after_scale:true,stop_gradient:[false]} : (tensor<2x6xf32>, tensor<1xf32>) -> tensor<2x6xf32>
        () = "cf.yield" (%8) {} : (tensor<2x6xf32>) -> 
    }
    (%9) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[]} : () -> tensor<0xi64>
    (%10) = "pd_op.sum" (%5, %9) {dtype:Undefined,keepdim:false,stop_gradient:[false]} : (tensor<2x6xf32>, tensor<0xi64>) -> tensor<f32>
}
""",  # noqa: E501, W291
    "every_second": """\
{
    (%0) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[2,6],stop_gradient:[false]} : () -> tensor<2x6xf32>
    (%1) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[0]} : () -> tensor<1xi64>
    (%2) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[2147483647]} : () -> tensor<1xi64>
    (%3) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[2]} : () -> tensor<1xi64>
    (%4) = "pd_op.strided_slice" (%0, %1, %2, %3) {axes:[1],stop_gradient:[false]} : (tensor<2x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3xf32>
    (%5) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:2} : () -> tensor<1xf32>
    (%6) = "pd_op.scale" (%4, %5) {bias:0,bias_after_scale:true,stop_gradient:[false]} : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
    (%7) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[]} : () -> tensor<0xi64>
    (%8) = "pd_op.sum" (%6, %7) {dtype:Undefined,keepdim:false,stop_gradient:[false]} : (tensor<2x3xf32>, tensor<0xi64>) -> tensor<f32>
}
""",  # noqa: E501, W291
    "stacked": """\
{
    (%0) = "pd_op.data" () {dtype:float32,name:"x",place:Place(undefined:0),shape:[2,6],stop_gradient:[false]} : () -> tensor<2x6xf32>
    (%1) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:2} : () -> tensor<1xf32>
    (%2) = "pd_op.scale" (%0, %1) {bias:0,bias_after_scale:true,stop_gradient:[false]} : (tensor<2x6xf32>, tensor<1xf32>) -> tensor<2x6xf32>
    (%3) = "builtin.combine" (%0, %2) {stop_gradient:[false]} : (tensor<2x6xf32>, tensor<2x6xf32>) -> vec[tensor<2x6xf32>,tensor<2x6xf32>]
    (%4) = "pd_op.stack" (%3) {axis:0,stop_gradient:[false]} : (vec[tensor<2x6xf32>,tensor<2x6xf32>]) -> tensor<2x2x6xf32>
    (%5) = "pd_op.full" () {dtype:float32,place:Place(cpu),shape:[1],stop_gradient:[true],value:3} : () -> tensor<1xf32>
    (%6) = "pd_op.scale" (%4, %5) {bias:0,bias_after_scale:true,stop_gradient:[false]} : (tensor<2x2x6xf32>, tensor<1xf32>) -> tensor<2x2x6xf32>
    (%7) = "pd_op.full_int_array" () {dtype:int64,place:Place(cpu),stop_gradient:[true],value:[]} : () -> tensor<0xi64>
    (%8) = "pd_op.sum" (%6, %7) {dtype:Undefined,keepdim:false,stop_gradient:[false]} : (tensor<2x2x6xf32>, tensor<0xi64>) -> tensor<f32>
}
""",  # noqa: E501, W291
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_paddles(name):
    main = static.Program()
    with static.program_guard(main, static.Program()):
        globals()[name]()
    text = re.sub(r"linear_\d+", "linear_0", str(main))
    assert text.strip() == TEXTS[name].strip()


def test_startup_programs_too():
    startup = static.Program()
    with static.program_guard(static.Program(), startup):
        paddle.create_parameter([2, 3], "float32", name="w", default_initializer=paddle.nn.initializer.Constant(0.5))
    assert str(startup).strip() == """\
{
    (%0) = "pd_op.full" () {dtype:float32,persistable:[true],place:Place(undefined:0),shape:[2,3],stop_gradient:[true],value:0.5} : () -> tensor<2x3xf32>
    () = "builtin.set_parameter" (%0) {parameter_name:"w"} : (tensor<2x3xf32>) -> 
}"""  # noqa: E501, W291


def test_tensors_of_a_program_print_as_paddle_prints_values():
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        x = paddle.static.data("x", [None, 4])
        w = paddle.static.create_parameter([4], "float32")
        seen = []
        paddle.static.nn.while_loop(lambda a: a.sum() < 3.0, lambda a: seen.append(str(a)) or a + w, [x])
    assert str(w) == "Value(define_op_name=builtin.parameter, index=0, dtype=tensor<4xf32>, stop_gradient=False)"
    assert repr(x) == "Value(define_op_name=pd_op.data, index=0, dtype=tensor<-1x4xf32>, stop_gradient=True)"
    assert seen[0] == "Value(position block_arg, index = 0, dtype=tensor<-1x4xf32>, stop_gradient=True)"
    assert w.is_parameter and not x.is_parameter
