"""`paddle.pir`: where operations are written, what copies get, moving blocks, and the small names of the classes."""

import numpy as np
import pytest
from hypothesis import given

import minipd as paddle
from minipd import pir
from minipd.framework.row import ROWS
from minipd.ir import DenseTensorType, Operation, Program, VectorType
from minipd.ir.builder import Builder, InsertionPoint
from minipd.ir.parser import parse
from minipd.ir.verify import verify
from tests.ir.random_programs import programs

F = "float32"


def names(block):
    return [op.name().partition(".")[2] for op in block]


@pytest.fixture
def main():
    program = paddle.static.Program()
    with paddle.static.program_guard(program):
        yield program


# ------------------------------------------------------------------------------------------- where to write
def test_insertion_points_as_the_real_paddle_moves_them(main):
    x = paddle.static.data("x", [2, 3], F)
    op = (x + x).payload.get_defining_op()
    pir.set_insertion_point(op)
    paddle.tanh(x)
    assert names(main.global_block()) == ["data", "tanh", "add"]
    pir.reset_insertion_point_to_start()
    paddle.ones([2])
    pir.reset_insertion_point_to_end()
    paddle.zeros([2])
    pir.set_insertion_point_after(op)
    paddle.exp(x)
    assert names(main.global_block()) == ["full", "data", "tanh", "add", "exp", "full"]
    pir.set_insertion_point_to_block_end(main.global_block())
    place = pir.get_current_insertion_point()
    assert place.block() is main.global_block() and place.before is None
    verify(main)


def test_insertion_points_move(main):
    x = paddle.static.data("x", [2, 3], F)
    y = paddle.exp(paddle.tanh(x)).payload.get_defining_op()
    end = pir.get_current_insertion_point()
    with pytest.raises(ValueError, match="expected a place before an operation, got the end of a block"):
        end.get_operation()
    assert end.prev().get_operation() is y and end.prev().next() == end == end.next()
    first = end.prev().prev().prev()
    assert first.get_operation() is x.payload.get_defining_op() and first.prev() == first
    pir.set_insertion_point(end.prev())
    paddle.sin(x)
    assert names(main.global_block()) == ["data", "tanh", "sin", "exp"]


def test_a_guard_puts_the_insertion_point_back_whatever_happens():
    program = Program()
    build = Builder(program.global_block())
    x, y = build.data("x", (2,), F), build.data("y", (2,), F)
    build.set_insertion_point(y.get_defining_op())
    with pytest.raises(RuntimeError), build.insertion_guard():
        build.set_insertion_point_to_block_end(build.block)
        build.call(ROWS["tanh"], (y,), {})
        raise RuntimeError
    assert build.insertion_point == InsertionPoint(program.global_block(), y.get_defining_op())
    build.call(ROWS["exp"], (x,), {})
    assert names(program.global_block()) == ["data", "exp", "data", "tanh"]
    with pytest.raises(ValueError, match="insertion point: expected an operation in a block, got pd_op.full, which"):
        build.set_insertion_point(Operation("pd_op.full"))


def test_facts_that_operations_are_given(main):
    assert (pir.get_op_role(), pir.get_chunk_id(), pir.get_comp_op_name()) == (-1, -1, "")
    x = paddle.static.data("x", [2, 3], F)
    pir.set_op_role(2), pir.set_chunk_id(3), pir.set_comp_op_name("gelu")
    assert (pir.get_op_role(), pir.get_chunk_id(), pir.get_comp_op_name()) == (2, 3, "gelu")
    op = paddle.exp(x).payload.get_defining_op()
    assert (op.op_role, op.chunk_id, op.str_attr("comp_op_name")) == (2, 3, "gelu")
    pir.set_op_role(-1), pir.set_chunk_id(-1), pir.set_comp_op_name("")
    op = paddle.exp(x).payload.get_defining_op()
    assert (op.op_role, op.chunk_id) == (-1, -1) and not op.has_attr("comp_op_name")
    with pytest.raises(KeyError):
        op.int_attr("op_role")
    with pytest.raises(TypeError, match="attribute 'stop_gradient': expected int, got \\(True,\\)"):
        op.int_attr("stop_gradient")
    assert verify(main) and str(main).count("chunk_id:3,comp_op_name:\"gelu\",op_role:2") == 1


# -------------------------------------------------------------------------------------------------- copies
@given(programs())
def test_a_copy_says_the_same_and_shares_nothing(program):
    mapping = pir.IrMapping()
    copy = program.clone(mapping)
    assert verify(copy) == program and mapping.size() == len(program.list_vars())
    assert not {id(v) for v in program.list_vars()} & {id(v) for v in copy.list_vars()}
    assert all(mapping.look_up(a) is b for a, b in zip(program.list_vars(), copy.list_vars(), strict=True))
    before = program.to_string("exact")
    for op in reversed(list(copy.walk())):
        op.set_attr("struct_name", "changed")
    assert program.to_string("exact") == before


@given(programs())
def test_copying_into_a_block_and_moving_it_on(program):
    first, second = Program(), Program()
    for target in (first, second):
        for c in program.constraints:
            target.constraints.add(c)
    program.copy_to_block(pir.IrMapping(), first.global_block())
    assert first == program
    second.global_block().take_over(first.global_block())
    assert verify(second) == program and first.global_block().empty() and first.num_ops() == 0


def branch(build):
    op = build.build("pd_op.if", [build.full((), True, "bool")], {}, [DenseTensorType((2,), F)], 2)
    for region in op.regions:
        inner = Builder(region.add_block())
        inner.build("cf.yield", [inner.full((2,), 1.0, F)])
    return op


def test_what_a_copy_of_an_operation_gets():
    program = Program()
    op = branch(Builder(program.global_block()))
    whole = op.clone()
    assert whole.get_parent_block() is None and whole.operands_source() == op.operands_source()
    assert [names(b) for b in whole.blocks()] == [["full", "yield"]] * 2
    bare = op.clone(pir.IrMapping(), pir.CloneOptions(False, False, True))
    assert (bare.num_operands(), bare.num_regions(), bare.num_results()) == (0, 0, 1)
    assert bare.attributes == op.attributes and bare.made_at == op.made_at
    shallow = op.clone(pir.IrMapping(), pir.CloneOptions(False, True, True))
    assert (shallow.num_operands(), shallow.num_regions()) == (1, 0)
    assert pir.CloneOptions.all() == pir.CloneOptions(True, True, True)
    assert pir.CloneOptions(True, False, False).is_clone_regions()
    assert not pir.CloneOptions(True, False, False).is_clone_operands()


def test_a_mapping_replaces_operands_of_copies():
    build = Builder(Program().global_block())
    x, y = build.data("x", (2,), F), build.data("y", (2,), F)
    s, = build.call(ROWS["add"], (x, y), {})
    mapping = pir.IrMapping()
    mapping.add(x, y)
    copy = build.insert(s.get_defining_op().clone(mapping))
    assert copy.operands_source() == [y, y] and mapping.look_up(s) is copy.result(0) and mapping.has(s)
    assert mapping.look_up(y) is y and not mapping.has(y) and mapping.size() == 2


# -------------------------------------------------------------------------------------------------- blocks
def test_inlining_a_branch():
    program = Program()
    build = Builder(program.global_block())
    op = branch(build)
    build.output("out", op.result(0))
    chosen = op.as_if_op().true_block()
    end = chosen.back()
    value = end.operand_source(0)
    end.erase()
    program.global_block().take_over(chosen, op)
    op.result(0).replace_all_uses_with(value)
    op.erase()
    assert names(verify(program).global_block()) == ["full", "full", "shadow_output"]


def loop(build):
    """A loop that carries one number; its operation."""
    i, go = build.full((), 0, "int64"), build.full((), True, "bool")
    op = build.build("pd_op.while", [go, i], {}, [i.type()], 1)
    inner = Builder(op.regions[0].add_block())
    arg = inner.block.add_arg(i.type())
    end = inner.full((), 5, "int64")
    inner.build("cf.yield", [inner.call(ROWS["less_than"], (arg, end), {})[0], arg])
    return op


def test_arguments_of_blocks_are_removed_once_nobody_uses_them():
    build = Builder(Program().global_block())
    op = loop(build)
    body, other = op.as_while_op().body(), Builder(Program().global_block())
    assert op.as_while_op().block_arguments() == body.args() and op.as_while_op().cond() is op.operand_source(0)
    verify_ok = op.get_parent_block()
    with pytest.raises(ValueError, match="erase_arg: expected an argument without users, but argument 0 is used"):
        body.erase_arg(0)
    with pytest.raises(ValueError, match="take_over: expected block arguments without users, but argument 0 is used"):
        other.block.take_over(body)
    second = body.add_arg(DenseTensorType((), "bool"))
    body.args()[0].replace_all_uses_with(op.operand_source(1))
    body.erase_arg(0)
    assert body.args() == [second] and second.index() == 0 and verify_ok.num_ops() == 3


def test_moving_to_the_end_of_another_block():
    build = Builder(Program().global_block())
    op = branch(build)
    true, false = op.as_if_op().true_block(), op.as_if_op().false_block()
    moved = true.front()
    false.move_op_to_block_end(moved)
    assert names(true) == ["yield"] and names(false) == ["full", "yield", "full"] and moved.parent is false
    assert (true.num_ops(), false.num_ops(), true.empty()) == (1, 3, False)
    with pytest.raises(TypeError, match="pd_op.if .*: expected pd_op.while, got pd_op.if"):
        op.as_while_op()


# ------------------------------------------------------------------------------------------ values and types
def test_who_uses_a_value_in_its_own_block():
    build = Builder(Program().global_block())
    x = build.full((2,), 3.0, F)
    op = branch(build)
    op.as_if_op().true_block().back().operand(0).set_source(x)
    y, = build.call(ROWS["add"], (x, x), {})
    assert x.all_used_ops_in_same_block() == [op, y.get_defining_op()]
    assert y.all_used_ops_in_same_block() == []


def test_no_value_at_all(main):
    none = pir.fake_value()
    assert pir.is_fake_value(none) and not none.initialized() and repr(none) == "Value(nullptr value)"
    x = paddle.static.data("x", [2], F)
    assert not pir.is_fake_value(x.payload) and x.payload.initialized() and pir.get_fake_value_name() == "Fake_var"
    assert not pir.value_is_persistable(x)
    x.payload.persistable = True
    assert pir.value_is_persistable(x) and pir.value_is_persistable(x.payload)
    with pytest.raises(TypeError, match="expected a value of a program, or a tensor that is being traced, got int 3"):
        pir.value_is_persistable(3)


def test_types(main):
    x = paddle.static.data("x", [2, 3], F).payload
    assert str(pir.create_shaped_type(x.type(), [4, 5])) == "tensor<4x5xf32>"
    assert pir.create_shaped_type(x.type(), [-1, 5]).text(exact=False) == "tensor<-1x5xf32>"
    vector = VectorType([x.type()])
    with pytest.raises(TypeError, match="create_shaped_type: expected the type of a tensor, got vec"):
        pir.create_shaped_type(vector, [1])
    assert x.type().as_vec_type() is None and vector.as_vec_type().as_list() == [x.type()]
    assert x.is_dense_tensor_type() and not x.is_combine()
    assert Builder(x.parent_block()).combine([x]).is_combine()


def test_where_an_operation_was_made_and_what_it_takes_over(main):
    x = paddle.static.data("x", [2, 3], F)
    op, data = paddle.exp(x).payload.get_defining_op(), x.payload.get_defining_op()
    assert "test_pir.py" in op.callstack[0] and "test_pir.py" in data.callstack[0]
    op.set_str_attr("struct_name", "/Layer/")
    data.copy_attrs_from(op)
    assert data.str_attr("struct_name") == "/Layer/"
    assert main.parameters_num() == 0


def test_the_documented_names_are_there():
    for name in pir.__all__:
        assert getattr(paddle.pir, name) is getattr(pir, name)
    pir.register_paddle_dialect(), pir.register_dist_dialect()
    assert parse("{\n}\n") == pir.Program() and np.dtype(F) == DenseTensorType((), F).dtype
