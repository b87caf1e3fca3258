"""Completion: the placements of every value of a global program, in its types, and in both print styles."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minipd as paddle
from minipd.dist.dialect import DistTensorType
from minipd.dist.mesh import parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.parser import parse
from minipd.ir.program import Program
from minipd.ir.traced import trace
from minipd.ir.types import VectorType
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.static import InputSpec
from minipd.static.nn import cond, while_loop
from tests.dist.programs import completed

R, P = Replicate(), Partial()
S0, S1 = Shard(0), Shard(1)
MESH = parse_mesh("dp=2,tp=2")


def program_of(function, *specs):
    return trace(function, *(InputSpec(shape, "float32", name, stop_gradient=False) for name, shape in specs)).program


def placements(program):
    """Operation name -> the placements of its results."""
    return [(op.name(), [r.type().placements for r in op.results() if isinstance(r.type(), DistTensorType)])
            for op in program.walk()]


def test_a_column_and_a_row_parallel_layer():
    """Megatron's pair: the first weight by columns, the second by rows, and one Partial at the end."""
    def layer(x, w, b, v):
        return F.relu(x.matmul(w) + b).matmul(v)
    program = program_of(layer, ("x", (6, 4)), ("w", (4, 8)), ("b", (8,)), ("v", (8, 4)))
    completed(program, MESH, {"x": [S0, R], "w": [R, S1], "b": [R, S0], "v": [R, S0]})
    assert placements(program)[4:-1] == [
        ("pd_op.matmul", [(S0, S1)]), ("pd_op.add", [(S0, S1)]), ("pd_op.relu", [(S0, S1)]),
        ("pd_op.matmul", [(S0, P)])]


def test_types_in_both_styles_and_the_way_back():
    def layer(x, w):
        return x.matmul(w).sum()
    program = program_of(layer, ("x", (6, 4)), ("w", (4, 8)))
    completed(program, MESH, {"x": [S0, R], "w": [R, S1]})
    kind = 'pd_dist.tensor<6x8xf32, mesh([2, 2], [0, 1, 2, 3], "dp", "tp"), S(0), S(1)>'
    total = 'pd_dist.tensor<f32, mesh([2, 2], [0, 1, 2, 3], "dp", "tp"), P, P>'
    assert kind in program.to_string("exact") and total in program.to_string("exact")
    again = parse(program.to_string("exact"))
    assert again == program and again.to_string("exact") == program.to_string("exact")
    assert verify(again).get_output_value_by_name("output_0").type() == DistTensorType(
        (), np.dtype("float32"), MESH, (P, P))


def test_types_as_paddle_spells_them():
    """Its own text of this product and sum, but for what completion adds to constants."""
    def layer(x, w):
        return x.matmul(w).sum()
    program = program_of(layer, ("x", (6, 4)), ("w", (4, 8)))
    completed(program, MESH, {"x": [S0, R], "w": [R, S1]})
    text = program.to_string()
    mesh = "mesh_shape:[2,2],process_ids:[0,1,2,3]"
    x = f"{mesh},dims_mappings:[0,-1], placements:[Shard(dim=0), Replicate()]"
    w = f"{mesh},dims_mappings:[-1,1], placements:[Replicate(), Shard(dim=1)]"
    y = f"{mesh},dims_mappings:[0,1], placements:[Shard(dim=0), Shard(dim=1)]"
    total = (f"{mesh},dims_mappings:[], partial(0,SUM),partial(1,SUM), placements:[Partial(reduce_type=SUM), "
             "Partial(reduce_type=SUM)]")
    assert (f'"pd_op.matmul" (%0, %1) {{op_dist_attr:{{mesh:{{shape:[2,2],process_ids:[0,1,2,3]}},operand(0):{{{x}}},'
            f"operand(1):{{{w}}},result(0):{{{y}}},chunk_id:-1}},stop_gradient:[false],transpose_x:false,"
            f"transpose_y:false}} : (pd_dist.tensor<6x4xf32, {x}>, pd_dist.tensor<4x8xf32, {w}>) -> "
            f"pd_dist.tensor<6x8xf32, {y}>") in text
    assert f"-> pd_dist.tensor<f32, {total}>" in text


def test_the_way_back_with_marks_symbols_and_other_partials():
    """Everything that distribution adds to the text: attributes of reshard, named dimensions, kinds of Partial."""
    program = trace(lambda x: ROWS["reshard"](x.max(axis=0), mesh=MESH, placements=(Shard(0), Partial("max"))) * 2.0,
                    InputSpec(["B", 4], "float32", "x")).program
    completed(program, MESH, {"x": [R, S0]})
    text = program.to_string("exact")
    assert "dist_op.reshard" in text and "P(max)" in text and "BX4" not in text and "Bx4xf32" in text
    assert parse(text) == program and parse(text).to_string("exact") == text


def test_meshes_of_other_names_are_other_types():
    kinds = {DistTensorType((4,), np.dtype("f4"), parse_mesh(text), (S0, R)) for text in ("dp=2,tp=2", "a=2,b=2")}
    assert len(kinds) == 2


def test_shapes_stay_global_and_the_program_stays_the_same():
    program = program_of(lambda x: x.reshape([24]).tanh(), ("x", (6, 4)))
    before = [op.name() for op in program.walk()]
    completed(program, MESH, {"x": [S0, R]})
    assert [op.name() for op in program.walk()] == before
    value = program.get_output_value_by_name("output_0")
    assert (value.shape, value.type().placements) == ((24,), (S0, R))


def test_bundles_have_the_types_of_their_members():
    program = program_of(lambda x: paddle.concat([x, x * 2.0], axis=1).split(2, axis=1)[1], ("x", (4, 6)))
    completed(program, MESH, {"x": [S0, R]})
    for op in program.walk():
        if op.name() == "builtin.combine":
            assert op.result(0).type() == VectorType(tuple(v.type() for v in op.operands_source()))
        if op.name() == "builtin.split":
            assert op.operand_source(0).type() == VectorType(tuple(r.type() for r in op.results()))
            assert op.result(1).type().placements == (S0, R)


def test_random_rows_and_constants_are_replicated():
    program = program_of(lambda x: F.dropout(x, 0.5) + paddle.rand([4, 6]) + paddle.full([6], 2.0), ("x", (4, 6)))
    completed(program, MESH, {"x": [S0, S1]})
    found = dict(placements(program))
    assert found["pd_op.dropout"] == [(S0, S1)] and found["pd_op.uniform"] == [(R, R)]
    assert program.get_output_value_by_name("output_0").type().placements == (S0, S1)


def test_gradients_are_completed_with_what_they_are_gradients_of():
    """Backward first, completion over both: a gradient is placed like its primal, a parameter's is Partial over dp."""
    traced = trace(lambda x, w: F.relu(x.matmul(w)).sum(), *(InputSpec(s, "float32", n, stop_gradient=False)
                                                            for n, s in (("x", (6, 4)), ("w", (4, 8)))))
    gx, gw = append_backward(traced.program, traced.output_values, traced.input_values, pin=True)
    completed(traced.program, MESH, {"x": [S0, R], "w": [R, S1]})
    assert gx.type().placements == (S0, P) and gw.type().placements == (P, S1)


def test_a_symbolic_dimension_splits_evenly_by_assumption():
    program = program_of(lambda x: x.sum(axis=1), ("x", ("S0", 4)))
    completed(program, MESH, {"x": [S0, R]})
    assert [c.relation for c in program.constraints] == ["S0 % 2 == 0"]


# ------------------------------------------------------------------------------------------------------ branches
def branch_program(true, false, **placed):
    """cond(flag, true(x), false(x)) of x: f32[4, 6]; returns the results' placements and what was warned."""
    traced = trace(lambda x, flag: cond(flag, lambda: true(x), lambda: false(x)), InputSpec([4, 6], "float32", "x"),
                   InputSpec([], "bool", "flag"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        completed(traced.program, MESH, placed)
    branch = next(op for op in traced.program.walk() if op.name() == "pd_op.if")
    return [r.type().placements for r in branch.results()], [str(w.message) for w in caught], traced.program


def test_branches_that_agree():
    placed, warned, _ = branch_program(lambda x: x * 2.0, lambda x: x.exp(), x=[S0, S1])
    assert (placed, warned) == ([(S0, S1)], [])


def test_a_replicated_branch_takes_the_others_placement():
    """It costs nothing: a slice, or keeping the value on one rank."""
    placed, warned, _ = branch_program(lambda x: (x * 2.0, x.sum(axis=0)),
                                       lambda x: (paddle.ones([4, 6]), paddle.ones([6])), x=[S0, R])
    assert (placed, warned) == ([(S0, R), (P, R)], [])


def test_branches_that_disagree_are_replicated_with_one_warning():
    def flipped(x):
        return ROWS["reshard"](x, mesh=MESH, placements=(S1, R))
    placed, warned, program = branch_program(lambda x: (x, x * 2.0, x), lambda x: (flipped(x), flipped(x) + 1.0, x),
                                             x=[S0, R])
    assert placed == [(R, R), (R, R), (S0, R)]
    text, = warned
    assert text.startswith("pd_op.if (from ")
    assert "test_completion.py:" in text and "): expected branches that place their results alike, but " in text
    assert "result 0 is f32[4_dp, 6] in one and f32[4, 6_dp] in the other; result 1 is " in text
    assert parse(program.to_string("exact")) == program


def test_what_a_branch_reads_is_resolved_before_it():
    """Resolved in one branch only, it would be missing in the other; so the gradient is replicated, too."""
    placed, _, program = branch_program(lambda x: x.sum(axis=0).exp(), lambda x: x.sum(axis=0) * 2.0, x=[S0, R])
    assert placed == [(P, R)]           # each region has a sum of its own; what exp gives is replicated, and joins

    def outside(x):
        total = x.sum(axis=0)
        return cond(total.sum() > 0.0, lambda: total.exp(), lambda: total * 2.0)
    traced = trace(outside, InputSpec([4, 6], "float32", "x"))
    completed(traced.program, MESH, {"x": [S0, R]})
    branch = next(op for op in traced.program.walk() if op.name() == "pd_op.if")
    assert branch.result(0).type().placements == (R, R)


def test_stacks_carry_placements():
    traced = trace(lambda x, y: cond(x.sum() > 0.0, lambda: (x.tanh() * y).exp(), lambda: x * y).sum(),
                   *(InputSpec([4, 6], "float32", n, stop_gradient=False) for n in "xy"))
    gs = append_backward(traced.program, traced.output_values, traced.input_values, pin=True)
    completed(traced.program, MESH, {"x": [S0, S1], "y": [S0, R]})
    pops = [r.type().placements for op in traced.program.walk() if op.name() == "cf.tuple_pop" for r in op.results()]
    assert pops and set(pops) == {(S0, S1)}
    assert [g.type().placements for g in gs] == [(S0, S1), (S0, S1)]


def loop_program(body, **placed):
    """Three times h = body(h, y), of x and y: f32[4, 6]; returns the placements of h, and what was warned."""
    traced = trace(lambda x, y: while_loop(lambda i, h: i < 3, lambda i, h: [i + 1, body(h, y)], [0, x])[1],
                   InputSpec([4, 6], "float32", "x"), InputSpec([4, 6], "float32", "y"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        completed(traced.program, MESH, placed)
    op = next(op for op in verify(traced.program).walk() if op.name() == "pd_op.while")
    found = [v.type().placements for v in (op.operand_source(2), op.regions[0].front().args()[1],
                                           op.regions[0].front().back().operand_source(2), op.result(1))]
    assert len(set(found)) == 1
    return found[0], [str(w.message) for w in caught]


def test_a_loop_that_keeps_its_placements():
    assert loop_program(lambda h, y: (h * y).exp(), x=[S0, S1], y=[S0, S1]) == ((S0, S1), [])


def test_what_the_body_shards_is_sharded_from_the_start():
    assert loop_program(lambda h, y: h * 2.0 + y, x=[R, R], y=[S0, R]) == ((S0, R), [])


def test_what_an_iteration_leaves_partial_is_resolved():
    assert loop_program(lambda h, y: y.sum(axis=0) + h * 0.0, x=[R, R], y=[S0, R]) == ((R, R), [])


def test_a_body_that_moves_what_it_carries_is_replicated_with_one_warning():
    placed, (text,) = loop_program(lambda h, y: ROWS["reshard"](h, mesh=MESH, placements=(S1, R)), x=[S0, R], y=[R, R])
    assert placed == (R, R)
    assert "variable 1 is f32[4_dp, 6] before an iteration and f32[4, 6_dp] after. Replicated where they differ" in text


def test_unknown_control_flow_is_named():
    from minipd.ir.evaluate import evaluate
    traced = trace(lambda x: cond(x.sum() > 0.0, lambda: x, lambda: x * 2.0), InputSpec([2], "float32", "x"))
    with pytest.raises(NotImplementedError, match=r"pd_op.if.*: expected a call of an operator: this interpreter does "
                                                  "not enter regions, so it has no meaning for pd_op.if"):
        evaluate(traced.program, lambda row, xs, attrs: row.infer_meta(*xs, **attrs), lambda op: op.result(0),
                 lambda op, x: None)


def test_marks_that_do_not_fit():
    program = Program()
    Builder(program.global_block()).data("x", (4,), "float32")
    with pytest.raises(ValueError, match=r"pd_op.data \(from .*test_completion.py:\d+\): its marks: expected 2 "
                                         "placements, one for each axis of the mesh dp=2,tp=2, got 1"):
        completed(program, MESH, {"x": [S0]})
