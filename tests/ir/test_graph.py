"""Values, uses, operations, blocks: the links stay consistent under every change."""

import copy as copy_module
import itertools
import pickle
import random

import pytest

from minipd import ops  # noqa: F401  (fills the operator table)
from minipd.framework.row import ROWS
from minipd.ir import IrMapping, Operation, Program
from minipd.ir.builder import Builder
from minipd.ir.dialect import op_info
from minipd.ir.evaluate import evaluate
from minipd.ir.parser import parse
from minipd.ir.schema import constant_of, is_pure, op_attrs, result_values, tensor_operands
from minipd.ir.types import NULL_TYPE
from minipd.ir.verify import VerifyError, verify


@pytest.fixture
def built():
    """x, y, s = x + y, t = s * x, and the program."""
    program = Program()
    build = Builder(program.global_block())
    x, y = build.data("x", (2, 3), "float32"), build.data("y", (2, 3), "float32")
    s, = build.call(ROWS["add"], (x, y), {})
    t, = build.call(ROWS["multiply"], (s, x), {})
    return program, x, y, s, t


def test_use_lists(built):
    _, x, y, s, t = built
    assert [(u.owner().name(), u.index()) for u in x.uses] == [("pd_op.add", 0), ("pd_op.multiply", 1)]
    assert x.all_used_ops() == [s.get_defining_op(), t.get_defining_op()]
    assert y.has_one_use() and y.first_use().owner() is s.get_defining_op()
    assert t.use_empty() and t.first_use() is None
    assert s.get_defining_op().operands_source() == [x, y]


def test_replace_all_uses(built):
    program, x, y, s, t = built
    x.replace_all_uses_with(y)
    assert x.use_empty()
    assert [u.owner().name() for u in y.uses] == ["pd_op.add", "pd_op.add", "pd_op.multiply"]
    assert s.get_defining_op().operands_source() == [y, y]
    verify(program)


def test_erase_needs_unused_results(built):
    program, x, y, s, t = built
    with pytest.raises(ValueError, match="erase pd_op.add: .*result 0 is operand 0 of pd_op.multiply; replace"):
        s.get_defining_op().erase()
    t.get_defining_op().erase()
    s.get_defining_op().erase()
    assert x.use_empty() and y.use_empty() and program.num_ops() == 2
    verify(program)


def test_move_and_order(built):
    program, x, y, s, t = built
    add, mul, first = s.get_defining_op(), t.get_defining_op(), x.get_defining_op()
    block = program.global_block()
    assert first.is_before(add) and add.is_before(mul) and not mul.is_before(add)
    y.get_defining_op().move_before(first)
    assert [op.name() for op in block.ops] == ["pd_op.data", "pd_op.data", "pd_op.add", "pd_op.multiply"]
    assert block.front() is y.get_defining_op() and block.front().is_before(first)
    first.move_after(mul)
    assert block.back() is first and mul.is_before(first)
    with pytest.raises(ValueError, match="defined after its use"):
        verify(program)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_holds_however_many_come_between_two(seed):
    """Numbers have gaps; that they are used up is not seen."""
    rng, block = random.Random(seed), Program().global_block()
    for n in range(300):
        block.insert_before(rng.choice([None, *block.ops[-2:], *block.ops[:2]]), Operation("pd_op.full"))
        if n % 7 == 6:
            block.back().move_before(rng.choice(block.ops[:-1]))
        now = block.ops
        for a, b in (*itertools.pairwise(now[:4]), *itertools.pairwise(now[-4:])):
            assert a.is_before(b) and not b.is_before(a)
    assert [op.order for op in block] == sorted({op.order for op in block})


def test_an_operation_is_in_one_block(built):
    program, *_ = built
    with pytest.raises(ValueError, match="expected an operation in no block, got one in a block"):
        program.global_block().append(program.global_block().front())


def test_erasing_while_iterating():
    program = Program()
    build = Builder(program.global_block())
    for i in range(6):
        build.full((1,), i, "int64")
    for op in program.global_block():
        if op.attrs()["value"] % 2:
            op.erase()
    assert [op.attrs()["value"] for op in program.global_block()] == [0, 2, 4]


def test_clone_maps_values(built):
    program, x, y, s, t = built
    mapping = IrMapping()
    copy = program.clone(mapping)
    assert copy == program and copy is not program
    assert mapping.look_up(t).get_defining_op().operands_source() == [mapping.look_up(s), mapping.look_up(x)]
    assert mapping.look_up(t).get_defining_op().parent is copy.global_block()
    mapping.look_up(t).get_defining_op().set_str_attr("struct_name", "/a/")
    assert copy != program and not t.get_defining_op().has_attr("struct_name")


def test_clone_of_one_operation_keeps_outer_operands(built):
    program, x, y, s, t = built
    copy = s.get_defining_op().clone()
    assert copy.parent is None and copy.operands_source() == [x, y]
    copy.move_before(t.get_defining_op())
    verify(program)


def test_result_flags_are_per_result(built):
    _, x, y, s, t = built
    assert s.stop_gradient and not s.persistable
    s.stop_gradient, s.persistable = False, True
    op = s.get_defining_op()
    assert op.attrs()["stop_gradient"] == (False,) and op.attrs()["persistable"] == (True,)
    op.add_result(s.type())
    assert op.attrs()["stop_gradient"] == (False, True) and op.attrs()["persistable"] == (True, False)


def test_names_and_attributes_of_the_schema(built):
    _, x, y, s, t = built
    build = Builder(s.parent_block())
    out, = build.call(ROWS["scale"], (x,), {"scale": 0.1, "bias": 2.0})
    op = out.get_defining_op()
    assert op.get_input_names() == ["x", "scale"] and op.get_output_names() == ["out"]
    assert op.get_attr_names() == ["bias", "bias_after_scale"]
    assert op.attrs() == {"bias": 2.0, "bias_after_scale": True, "stop_gradient": (True,)}
    assert op_attrs(op) == {"scale": 0.1, "bias": 2.0, "bias_after_scale": True}
    assert constant_of(op.operand_source(1)) == 0.1 and constant_of(x) is None
    assert op.num_operands() == 2 and op.num_results() == 1 and op.row is ROWS["scale"]


def test_an_attribute_that_is_computed_is_no_constant(built):
    _, x, y, s, t = built
    build = Builder(s.parent_block())
    out, = build.call(ROWS["scale"], (x,), {"scale": 0.1})
    factor = build.data("factor", (1,), "float32")
    out.get_defining_op().operand(1).set_source(factor)
    with pytest.raises(ValueError, match="attribute 'scale': expected a constant, got result 0 of pd_op.data"):
        op_attrs(out.get_defining_op())


def test_vectors_are_looked_through(built):
    _, x, y, s, t = built
    build = Builder(s.parent_block())
    joined, = build.call(ROWS["concat"], (x, y), {"axis": 1})
    op = joined.get_defining_op()
    assert [v.get_defining_op().name() for v in op.operands_source()] == ["builtin.combine", "pd_op.full"]
    assert tensor_operands(op) == [x, y] and op_attrs(op) == {"axis": 1} and joined.shape == (2, 6)
    parts = build.call(ROWS["split"], (joined,), {"sections": (2, 4), "axis": 1})
    assert [p.shape for p in parts] == [(2, 2), (2, 4)]
    assert parts[0].get_defining_op().name() == "builtin.split"
    split = parts[0].get_defining_op().operand_source(0).get_defining_op()
    assert result_values(split) == list(parts) and op_attrs(split) == {"sections": (2, 4), "axis": 1}


def test_unknown_operations_and_dialects():
    with pytest.raises(KeyError, match="no dialect 'nowhere'; there are builtin, cf, pd_op"):
        op_info("nowhere.add")
    with pytest.raises(KeyError, match="dialect 'pd_op' has no operation 'frobnicate'"):
        op_info("pd_op.frobnicate")


def test_an_unregistered_operation_is_kept_printed_copied_and_parsed_but_not_well_formed(built):
    program, x, *_ = built
    build = Builder(program.global_block())
    op = build.build("foo.bar", [x, None], {"a": 1}, [NULL_TYPE, x.type()], 1)
    op.regions[0].add_block()
    assert not op.info.registered and op.row is None and not is_pure(op)
    assert repr(op) == "foo.bar(tensor<2x3xf32>, <<NULL TYPE>>) -> <<NULL TYPE>>, tensor<2x3xf32>"
    assert program.clone() == program == parse(program.to_string("exact"))
    assert '"foo.bar" (%0, <<NULL VALUE>>) {a:1} : (tensor<2x3xf32>, <<NULL TYPE>>)' in str(program)
    assert verify(program, allow_unregistered=True) is program
    with pytest.raises(NotImplementedError, match=r"foo.bar \(from .*test_graph.py:\d+\): expected an operation that a "
                                                  "dialect knows, got foo.bar"):
        evaluate(program, lambda row, payloads, attrs: None, lambda op: None, lambda op, value: None)
    with pytest.raises(VerifyError, match="operation 'foo.bar': no dialect 'foo'.*\n.*; <<NULL VALUE>>"):
        verify(program)
    op.erase()
    verify(program)


def test_an_operand_is_left_out_in_paddles_form_only(built):
    program, x, *_ = built
    build = Builder(program.global_block())
    build.build("pd_op.add", [x, None], {}, [x.type()])
    with pytest.raises(VerifyError, match=r"pd_op.add .*: operand 1: expected a value, got none"):
        verify(program)
    program.form = "paddle"
    assert verify(program) is program and program.clone().form == "paddle"
    assert program == parse(program.to_string("exact"))


def test_equality_tells_a_missing_operand_from_a_foreign_one(built):
    program, x, *_ = built
    other = program.clone()
    outside = Builder(Program().global_block()).data("z", (2, 3), "float32")
    for p, second in ((program, outside), (other, None)):
        Builder(p.global_block()).build("pd_op.add", [p.list_vars()[0], second], {}, [x.type()])
    assert program != other


def test_asking_a_traced_value_for_its_values(built):
    _, x, *_ = built
    with pytest.raises(TypeError, match=r"bool\(\): expected a tensor with values, got result 0 of pd_op.data: "
                                        r"tensor<2x3xf32>, which is being traced.*paddle.static.nn.cond"):
        x.materialize("bool()")


def test_a_chain_of_5000_operations_needs_no_recursion():
    """Hard case A3 (karpathy/micrograd PR 90): printing, parsing, verifying, copying, comparing, pickling, erasing."""
    program = Program()
    build = Builder(program.global_block())
    x = build.data("x", (), "float32")
    for _ in range(5000):
        x, = build.call(ROWS["tanh"], (x,), {})
    assert verify(program).num_ops() == 5001
    assert str(program).count("pd_op.tanh") == 5000
    copy = program.clone()
    assert parse(copy.to_string("exact")) == program
    assert copy_module.deepcopy(program) == program == pickle.loads(pickle.dumps(program))
    for op in reversed(copy.global_block().ops):
        op.erase()
    assert copy.num_ops() == 0


def test_regions_nested_a_thousand_deep_need_no_recursion():
    program = Program()
    block = program.global_block()
    condition = Builder(block).full((), True, "bool")
    for _ in range(1200):
        branch = Builder(block).build("pd_op.if", [condition], num_regions=2)
        for region in branch.regions:
            region.add_block()
        block = branch.regions[0].front()
    assert verify(program).num_ops() == 1201
    copy = program.clone()
    assert parse(copy.to_string("exact")) == program
    copy.global_block().back().erase()
    assert copy.num_ops() == 1
