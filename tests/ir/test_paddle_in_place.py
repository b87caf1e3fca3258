"""Paddle's operators that write an operand: what reads it afterwards, and state that is written."""

import numpy as np
import pytest

from minipd.executor.executor import Executor
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.paddle import from_paddle, to_paddle
from minipd.ir.parser import parse
from minipd.ir.program import Program

DATA = ('(%{0}) = "pd_op.data" () {{dtype:float32,name:"{1}",place:Place(undefined:0),{2}shape:[{3}],'
        'stop_gradient:[true]}} : () -> tensor<{4}f32>')


def read(*lines):
    return from_paddle(parse("{\n" + "".join(f"    {line}\n" for line in lines) + "}\n", "paddle"))


def test_who_reads_an_operand_that_was_written_reads_the_result():
    program = read(
        DATA.format(0, "x", "", 3, "3x"),
        '(%1) = "pd_op.abs" (%0) {stop_gradient:[true]} : (tensor<3xf32>) -> tensor<3xf32>',
        '(%2) = "pd_op.tanh" (%1) {stop_gradient:[true]} : (tensor<3xf32>) -> tensor<3xf32>',
        '(%3) = "pd_op.relu_" (%0) {stop_gradient:[true]} : (tensor<3xf32>) -> tensor<3xf32>',
        '(%4) = "pd_op.add" (%0, %2) {stop_gradient:[true]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>',
        '() = "builtin.shadow_output" (%4) {output_name:"y"} : (tensor<3xf32>) -> ')
    x = np.array([-2.0, 0.5, 3.0], np.float32)
    assert np.allclose(Executor(program).run({"x": x})["y"], np.maximum(x, 0) + np.tanh(np.abs(x)))


def test_state_that_a_step_writes_is_written_by_name():
    state = "persistable:[true],"
    program = read(
        DATA.format(0, "rate", state, "", ""), DATA.format(1, "w", state, 2, "2x"), DATA.format(2, "g", "", 2, "2x"),
        DATA.format(3, "v", state, 2, "2x"),
        '(%4, %5, %6) = "pd_op.momentum_" (%1, %2, %3, %0, <<NULL VALUE>>) {mu:0.5,multi_precision:false,'
        'regularization_coeff:0,regularization_method:"",rescale_grad:1,stop_gradient:[true,true,true],'
        'use_nesterov:false} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, <<NULL TYPE>>) -> '
        'tensor<2xf32>, tensor<2xf32>, <<NULL TYPE>>')
    assert sorted(program.parameters()) == ["rate", "v", "w"]
    scope = {"rate": np.float32(0.1).reshape(()), "w": np.ones(2, np.float32), "v": np.zeros(2, np.float32)}
    g = np.array([1.0, -2.0], np.float32)
    executor = Executor(program)
    for _ in range(2):
        executor.run({"g": g}, scope)
    assert np.allclose(scope["v"], 1.5 * g) and np.allclose(scope["w"], 1 - 0.1 * 2.5 * g)
    assert scope["rate"] == np.float32(0.1)


def test_first_moments_of_a_startup_program_are_state():
    program = read(
        '(%0) = "pd_op.full" () {dtype:float32,persistable:[true],place:Place(undefined:0),shape:[2],'
        'stop_gradient:[true],value:3} : () -> tensor<2xf32>',
        '() = "builtin.shadow_output" (%0) {output_name:"w_moment"} : (tensor<2xf32>) -> ')
    scope = {}
    Executor(program).run({}, scope)
    assert scope["w_moment"].tolist() == [3.0, 3.0]


def test_a_branch_that_writes_a_value_from_around_it_is_refused_when_it_runs():
    program = read(
        DATA.format(0, "x", "", 3, "3x"),
        '(%1) = "pd_op.data" () {dtype:bool,name:"c",place:Place(undefined:0),shape:[],'
        'stop_gradient:[true]} : () -> tensor<b>',
        '() = "pd_op.if" (%1) {} ->  {',
        '    (%2) = "pd_op.relu_" (%0) {stop_gradient:[true]} : (tensor<3xf32>) -> tensor<3xf32>',
        '} else {', '}',
        '() = "builtin.shadow_output" (%0) {output_name:"y"} : (tensor<3xf32>) -> ')
    with pytest.raises(NotImplementedError, match="relu_"):
        Executor(program).run({"x": np.ones(3, np.float32), "c": np.bool_(True)})


@pytest.mark.parametrize("skip", [False, True])
def test_a_saved_step_leaves_the_old_values_to_those_who_read_them(skip):
    """A step of ours is a function; Paddle's writes its operands."""
    program = Program()
    build = Builder(program.global_block())
    w, g, rate = build.parameter("w", (2,), "float32"), build.data("g", (2,), "float32"), build.data("r", (), "float32")
    stop = build.data("skip", (), "bool")
    new, = build.call(ROWS["sgd"], (w, g, rate, stop), {})
    change, = build.call(ROWS["subtract"], (new, w), {})
    build.output("change", change)
    build.set_parameter("w", new)
    feed = {"g": np.array([1.0, 2.0], np.float32), "r": np.float32(0.5), "skip": np.bool_(skip)}
    again = from_paddle(to_paddle(program))
    scope = {"w": np.zeros(2, np.float32)}
    out = Executor(again).run(feed, scope)["change"]
    assert out.tolist() == scope["w"].tolist() == ([0.0, 0.0] if skip else [-0.5, -1.0])


def test_a_step_that_we_do_not_have_is_refused_by_name_when_it_runs():
    """Though it leaves an operand out."""
    program = read(
        DATA.format(0, "w", "persistable:[true],", 2, "2x"), DATA.format(1, "g", "", 2, "2x"),
        '(%2, %3) = "pd_op.strange_step_" (%0, %1, <<NULL VALUE>>) {stop_gradient:[true,true]} : (tensor<2xf32>, '
        'tensor<2xf32>, <<NULL TYPE>>) -> tensor<2xf32>, <<NULL TYPE>>')
    executor = Executor(program)
    with pytest.raises(NotImplementedError, match="strange_step_"):
        executor.run({"g": np.ones(2, np.float32)}, {"w": np.ones(2, np.float32)})
