"""Each rule of the verifier, broken once; the error names operation and value and says what was expected."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd import ops  # noqa: F401  (fills the operator table)
from minipd.framework.dim import Constraints, symbol
from minipd.framework.row import ROWS
from minipd.ir import DenseTensorType, Operation, Program
from minipd.ir.builder import Builder
from minipd.ir.types import StackType, VectorType
from minipd.ir.verify import VerifyError, verify
from tests.ir.random_programs import programs

F23 = DenseTensorType((2, 3), "float32")


@pytest.fixture
def program():
    return Program()


@pytest.fixture
def build(program):
    return Builder(program.global_block())


@pytest.fixture
def x(build):
    return build.data("x", (2, 3), "float32")


def fails(program, message):
    """The program is not well formed; the error names the operation, the line that made it, here or in the file that
    draws random programs, and says `message`."""
    with pytest.raises(VerifyError) as caught:
        verify(program)
    text = str(caught.value)
    name, file, rest = re.fullmatch(r"([a-z_0-9.]+) \(from (.*?):\d+\): (.*)", text, re.DOTALL).groups()
    assert Path(file).parent == Path(__file__).parent and name == caught.value.op.name()
    assert re.search(message, f"{name}: {rest}"), text
    return caught.value


@given(programs())
def test_random_programs_are_well_formed(program):
    assert verify(program) is program


@settings(max_examples=50)
@given(programs(), st.data())
def test_a_wrong_result_type_is_always_found(program, data):
    op = data.draw(st.sampled_from([op for op in program.walk() if op.row is not None or op.name() == "pd_op.data"]
                                   or [None]))
    if op is None:
        return
    op.result(0).set_type(DenseTensorType((7, 7, 7, 7), "int8"))
    with pytest.raises(VerifyError, match="expected"):
        verify(program)


def test_unknown_operation(program, build, x):
    build.build("pd_op.tanhh", [x], {}, [F23])
    fails(program, "pd_op.tanhh: operation 'pd_op.tanhh': dialect 'pd_op' has no operation 'tanhh'")


def test_number_of_operands(program, build, x):
    build.build("pd_op.add", [x], {}, [F23])
    error = fails(program, r"pd_op.add: expected 2 operands \(x, y\), got 1\n  its operands: result 0 of pd_op.data: "
                           r"tensor<2x3xf32>")
    assert error.op.name() == "pd_op.add"


def test_number_of_results(program, build, x):
    build.build("pd_op.add", [x, x], {}, [F23, F23])
    fails(program, r"expected 1 results \(out\), got 2")


def test_result_shape(program, build, x):
    build.build("pd_op.tanh", [x], {}, [DenseTensorType((3, 2), "float32")])
    fails(program, r"pd_op.tanh: result 0: expected tensor<2x3xf32>, which its shape rule gives .*got tensor<3x2xf32>")


def test_result_dtype(program, build, x):
    build.build("pd_op.cast", [x], {"dtype": np.dtype("int64")}, [F23])
    fails(program, r"result 0: expected tensor<2x3xi64>.*got tensor<2x3xf32>")


def test_what_the_shape_rule_refuses(program, build, x):
    y = build.data("y", (2, 4), "float32")
    build.build("pd_op.add", [x, y], {}, [F23])
    fails(program, r"pd_op.add: add: cannot broadcast shapes \[2, 3\] and \[2, 4\]")


def test_vector_results(program, build, x):
    sections, axis = build.constant((1, 1)), build.constant(0)
    op = build.build("pd_op.split", [x, sections, axis], {}, [F23])
    fails(program, r"pd_op.split: result 0: expected a vector of values, got tensor<2x3xf32>")
    op.result(0).set_type(VectorType((F23,)))
    fails(program, "pd_op.split: expected 2 results, got 1")


def test_a_vector_comes_from_combine(program, build, x):
    build.build("pd_op.concat", [x, build.constant(0)], {}, [F23])
    fails(program, "pd_op.concat: .*expected its last tensor operand to be a vector made by builtin.combine")


def test_unknown_attribute(program, build, x):
    build.build("pd_op.tanh", [x], {"axis": 1}, [F23])
    fails(program, "pd_op.tanh: attribute 'axis': expected one of none, or a common one")


def test_an_attribute_that_is_an_operand(program, build, x):
    out, = build.call(ROWS["scale"], (x,), {"scale": 2.0})
    out.get_defining_op().set_attr("scale", 2.0)
    fails(program, r"attribute 'scale': .*\(it is an operand here\)")


def test_missing_attribute(program, build, x):
    build.build("pd_op.cast", [x], {}, [F23])
    fails(program, "pd_op.cast: expected attribute 'dtype', got none")


def test_flags_have_one_entry_per_result(program, build, x):
    out, = build.call(ROWS["tanh"], (x,), {})
    out.get_defining_op().set_attr("stop_gradient", (True, True))
    fails(program, r"attribute 'stop_gradient': expected an array with one entry for each of the 1 results")


def test_use_before_definition(program, build, x):
    out, = build.call(ROWS["tanh"], (x,), {})
    build.call(ROWS["exp"], (out,), {})
    out.get_defining_op().move_after(program.global_block().back())
    fails(program, "pd_op.exp: operand 0: expected a value that is defined before .*of pd_op.tanh.*after its use")


def test_a_value_of_another_program(program, build, x):
    stranger = Builder(Program().global_block()).data("y", (2, 3), "float32")
    build.call(ROWS["add"], (x, stranger), {})
    fails(program, "pd_op.add: operand 1: .*nowhere in the program")


def test_use_lists(program, build, x):
    out, = build.call(ROWS["tanh"], (x,), {})
    del x._uses[out.get_defining_op().operand(0)]
    fails(program, "pd_op.tanh: operand 0: expected it in the use list of result 0 of pd_op.data")
    x._uses[out.get_defining_op().operand(0)] = None
    other = build.data("y", (2, 3), "float32")
    other._uses[out.get_defining_op().operand(0)] = None
    fails(program, "use list of result 0 of pd_op.data.*lists operand 0 of pd_op.tanh, which holds another value")


def branch(build, results=1):
    condition = build.full((), True, "bool")
    op = build.build("pd_op.if", [condition], {}, [F23] * results, 2)
    return op, [Builder(region.add_block()) for region in op.regions]


def test_values_of_one_region_are_not_seen_in_the_other(program, build, x):
    _, (true, false) = branch(build)
    inside, = true.call(ROWS["tanh"], (x,), {})
    true.build("cf.yield", [inside])
    false.build("cf.yield", [inside])
    fails(program, r"cf.yield: operand 0: .*result 0 of pd_op.tanh.*in a region that is not around it")


def test_values_of_a_region_are_not_seen_after_it(program, build, x):
    _, (true, false) = branch(build, 0)
    inside, = true.call(ROWS["tanh"], (x,), {})
    build.call(ROWS["exp"], (inside,), {})
    fails(program, "pd_op.exp: operand 0")


def test_a_region_sees_what_is_around_it(program, build, x):
    _, (true, false) = branch(build)
    for inside in (true, false):
        inside.build("cf.yield", inside.call(ROWS["tanh"], (x,), {}))
    verify(program)


def test_a_region_ends_with_a_yield(program, build, x):
    _, (true, false) = branch(build)
    true.build("cf.yield", [x])
    fails(program, "pd_op.if: region 1: expected cf.yield at its end, got an empty block")
    false.call(ROWS["tanh"], (x,), {})
    fails(program, "pd_op.if: region 1: expected cf.yield at its end, got pd_op.tanh")


def test_what_a_region_yields(program, build, x):
    _, (true, false) = branch(build)
    true.build("cf.yield", [x])
    false.build("cf.yield", [])
    fails(program, r"pd_op.if: what the false region yields: expected \(tensor<2x3xf32>\), got \(\)")


def test_a_terminator_stands_at_the_end(program, build, x):
    _, (true, false) = branch(build, 0)
    true.build("cf.yield", [])
    true.call(ROWS["tanh"], (x,), {})
    fails(program, "cf.yield: expected the end of its block after it, got pd_op.tanh")


def test_the_global_block_has_no_terminator(program, build, x):
    build.build("cf.yield", [x])
    fails(program, "cf.yield: expected to stand in a region")


def test_condition(program, build, x):
    build.build("pd_op.if", [x], {}, [], 2)
    for region in program.global_block().back().regions:
        region.add_block()
    fails(program, "pd_op.if: operand 0: expected a condition of type tensor<b>, got tensor<2x3xf32>")


def test_number_of_regions(program, build, x):
    build.block.append(Operation("pd_op.if", [build.full((), True, "bool")], {}, [], 1))
    fails(program, r"pd_op.if: expected 2 regions \(true, false\), got 1")


@pytest.mark.parametrize("twice, what", [
    (lambda b, x: b.data("x", (1,), "float32"), "name: expected a name that occurs once, got 'x' again"),
    (lambda b, x: [b.parameter("w", (1,), "float32") for _ in range(2)], "parameter_name: .*got 'w' again"),
    (lambda b, x: [b.set_parameter("w", x) for _ in range(2)], "builtin.set_parameter: parameter_name: .*'w' again")])
def test_names_are_unique(program, build, x, twice, what):
    twice(build, x)
    fails(program, what)


def test_data_declares_its_type(program, build, x):
    x.get_defining_op().set_attr("shape", (2, 4))
    fails(program, r"pd_op.data: result 0: expected the declared shape \[2, 4\] and dtype float32, got tensor<2x3xf32>")


def test_combine_and_split(program, build, x):
    vector = build.combine([x, x])
    build.build("builtin.split", [vector], {}, [F23])
    fails(program, r"builtin.split: results: expected \(tensor<2x3xf32>, tensor<2x3xf32>\), got \(tensor<2x3xf32>\)")
    vector.set_type(VectorType((F23,)))
    fails(program, r"builtin.combine: results: expected \(vec\[tensor<2x3xf32>,tensor<2x3xf32>\]\)")


def stack(build):
    return build.build("cf.stack_create", (), {}, [StackType(end) for end in StackType.ENDS]).results()


def test_one_push_per_stack(program, build, x):
    _, inlet, _ = stack(build)
    build.build("cf.tuple_push", [inlet, x])
    verify(program)
    build.build("cf.tuple_push", [inlet, x])
    fails(program, "cf.tuple_push: expected one tuple_push per stack, got 2")


def test_what_is_popped_was_pushed(program, build, x):
    _, inlet, outlet = stack(build)
    pop = build.build("cf.tuple_pop", [outlet], {}, [F23])
    fails(program, "cf.tuple_pop: operand 0: .*got one without push")
    Operation("cf.tuple_push", [inlet, x, x]).move_before(pop)
    fails(program, r"cf.tuple_pop: results: expected \(tensor<2x3xf32>, tensor<2x3xf32>\), got \(tensor<2x3xf32>\)")


def test_the_users_line_is_named(program, build, x):
    build.build("pd_op.tanh", [x], {"op_callstack": ("model.py:12",)}, [])
    with pytest.raises(VerifyError, match=r"^pd_op.tanh \(from model.py:12\): expected 1 results"):
        verify(program)
    clone = program.clone()
    clone.global_block().back().erase_attr("op_callstack")          # the line outlives copies, not the attribute
    with pytest.raises(VerifyError, match="^pd_op.tanh: expected 1 results"):
        verify(clone)


def test_assumptions_are_on_record(program, build):
    a, b = build.data("a", (symbol("S0"),), "float32"), build.data("b", (8,), "float32")
    with Constraints().collect() as elsewhere:
        build.call(ROWS["add"], (a, b), {})
    fails(program, r"pd_op.add: it assumes S0 == 8 \(add: dimension -1\), which the program does not record")
    for constraint in elsewhere:
        program.constraints.add(constraint)
    verify(program)


# ------------------------------------------------------------------------------- where a value is that is not seen
def test_where_a_value_is_that_is_not_seen(program, build, x):
    gone, = build.call(ROWS["tanh"], (x,), {})
    user, = build.call(ROWS["exp"], (gone,), {})
    program.global_block().remove(gone.get_defining_op())
    fails(program, "pd_op.exp: operand 0: .*defined nowhere in the program: its operation is in no block")
    user.get_defining_op().operand(0).set_source(Builder(Program().global_block()).full((2, 3), 1.0, "float32"))
    fails(program, "pd_op.exp: operand 0: .*defined nowhere in the program, but in another one")


def test_an_argument_of_another_block_is_not_seen(program, build, x):
    op = loop(build)
    arg = op.regions[0].front().args()[0]
    build.call(ROWS["tanh"], (arg,), {})
    fails(program, "pd_op.tanh: operand 0: .*got block argument 0: tensor<f32>, .* region .* around it, of pd_op.while")


def test_the_result_of_a_loop_is_not_seen_in_its_body(program, build, x):
    op = loop(build)
    Builder(op.regions[0].front(), op.regions[0].front().back()).call(ROWS["tanh"], (op.result(0),), {})
    fails(program, "pd_op.tanh: operand 0: expected a value that is defined before .*result 0 of pd_op.while.* after")


def test_a_region_within_a_region_sees_the_arguments_around_it(program, build, x):
    body = loop(build).regions[0].front()
    inside = Builder(body, body.back())
    _, (true, false) = branch(inside, 0)
    true.call(ROWS["tanh"], (body.args()[0],), {})
    verify(program)


# ----------------------------------------------------------------------------------------------------- loops
def loop(build):
    """A loop that carries one number and never ends."""
    go, start = build.full((), True, "bool"), build.full((), 1.0, "float32")
    op = build.build("pd_op.while", [go, start], {}, [start.type()], 1)
    inside = Builder(op.regions[0].add_block())
    inside.build("cf.yield", [inside.full((), True, "bool"), inside.block.add_arg(start.type())])
    return op


@pytest.mark.parametrize("spoil, message", [
    (lambda op, end, x: op.operand(0).set_source(x), "operand 0: expected a condition of type tensor<b>, got tensor"),
    (lambda op, end, x: op.operand(1).set_source(x), r"the arguments of the body: expected \(tensor<2x3xf32>\), got "),
    (lambda op, end, x: op.result(0).set_type(F23), r"results: expected \(tensor<f32>\), got \(tensor<2x3xf32>\)"),
    (lambda op, end, x: end.operand(0).set_source(x), "what the body yields first: expected a condition of type tenso"),
    (lambda op, end, x: end.operand(1).set_source(x), r"what the body yields after its condition .*: expected \(ten"),
    (lambda op, end, x: end.drop_operands(), "what the body yields: expected whether to go on, and the values car"),
    (lambda op, end, x: end.erase(), "region 0: expected cf.yield at its end, got pd_op.full"),
    (lambda op, end, x: op.regions[0].add_block(), "region 0: expected one block, got 2")])
def test_loops(program, build, x, spoil, message):
    op = loop(build)
    verify(program)
    spoil(op, op.regions[0].front().back(), x)
    fails(program, f"pd_op.while: {message}")


# ---------------------------------------------------------------------------------- types of the ends of stacks
def test_a_stack_has_three_ends_in_order(program, build, x):
    build.build("cf.stack_create", (), {}, [StackType(end) for end in ("inlet", "stack", "outlet")])
    fails(program, "cf.stack_create: result 0: expected cf.stack, got cf.inlet")


@pytest.mark.parametrize("name, end, expected", [
    ("cf.tuple_push", 2, "cf.inlet, got cf.outlet"), ("cf.tuple_pop", 0, "cf.outlet, got cf.stack"),
    ("cf.has_elements", 1, "cf.stack, got cf.inlet")])
def test_each_takes_its_end_of_the_stack(program, build, x, name, end, expected):
    results = [DenseTensorType((1,), "bool")] if name == "cf.has_elements" else []
    build.build(name, [stack(build)[end]], {}, results)
    fails(program, f"{name}: operand 0: expected {expected}")


def test_a_vector_is_taken_apart(program, build, x):
    build.build("builtin.split", [x], {}, [F23])
    fails(program, "builtin.split: operand 0: expected a value of type vec, got tensor<2x3xf32>")


# ------------------------------------------------------------------------------------------------ kinds, and links
def test_flags_are_true_or_false(program, build, x):
    x.get_defining_op().set_attr("stop_gradient", ("no",))
    fails(program, r"pd_op.data: attribute 'stop_gradient': expected an array .* true or false, got \[\"no\"\]")


@pytest.mark.parametrize("name, value, expected", [
    ("name", 3, r"str, got i64\(3\)"), ("shape", 6, r"ints or array, got i64\(6\)"), ("dtype", "float32", "dtype, ")])
def test_attributes_are_of_their_kind(program, build, x, name, value, expected):
    x.get_defining_op().set_attr(name, value)
    fails(program, f"pd_op.data: attribute '{name}': expected one of kind {expected}")


def test_what_is_said_is_said_in_attributes_and_types(program, build, x):
    op = build.call(ROWS["tanh"], (x,), {})[0].get_defining_op()
    op.attributes["struct_name"] = "/Layer/"
    fails(program, "pd_op.tanh: attribute 'struct_name': expected an Attribute, got '/Layer/'; store it with set_attr")
    del op.attributes["struct_name"]
    op.result(0).set_type("float32")
    fails(program, "pd_op.tanh: result 0: expected a Type, got 'float32'")


def test_neighbours_know_each_other(program, build, x):
    op = build.call(ROWS["tanh"], (x,), {})[0].get_defining_op()
    op.prev = None
    fails(program, "pd_op.data: expected a place between its neighbours in its block, got one that they do not know")


def test_operands_and_results_belong_to_one_operation(program, build, x):
    first = build.call(ROWS["tanh"], (x,), {})[0].get_defining_op()
    second = build.call(ROWS["exp"], (x,), {})[0].get_defining_op()
    own, second._results = second._results, first._results
    fails(program, "pd_op.exp: result 0: expected it to belong here, got result 0 of pd_op.tanh")
    second._results = own
    build.call(ROWS["add"], (x, x), {})[0].get_defining_op()._operands.reverse()
    fails(program, "pd_op.add: operand 0: expected it to belong here, got operand 1 of pd_op.add")


def test_regions_blocks_and_arguments_belong_to_one_operation(program, build, x):
    first, second = loop(build), loop(build)
    own, second.regions = second.regions, first.regions
    fails(program, "pd_op.while: region 0: expected it to belong here, got one of pd_op.while")
    second.regions = own
    block = own[0].front()
    own[0].blocks[0] = first.regions[0].front()
    fails(program, "pd_op.while: region 0: expected blocks that belong to it, got one of another region")
    own[0].blocks[0] = block
    block._args = first.regions[0].front()._args
    fails(program, "pd_op.while: region 0: expected block argument 0 to belong to its block, got block argument 0")


@pytest.mark.parametrize("move", ["move_before", "move_after"])
def test_no_operation_is_inside_of_itself(program, build, x, move):
    """The way out of such a region has no end.  What is refused stays where it was."""
    op, (true, false) = branch(build, 0)
    for inner in (true, false):
        inner.build("cf.yield", [])
    with pytest.raises(ValueError, match="insert pd_op.if: expected a block outside of the operation, got one in its"):
        getattr(op, move)(true.block.ops[0])
    verify(program)
    free = op.clone()
    with pytest.raises(ValueError, match="insert pd_op.if: expected a block outside of the operation"):
        next(free.blocks()).append(free)
