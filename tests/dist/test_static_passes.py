"""The stages between a marked program and the programs of the ranks."""

from __future__ import annotations

import numpy as np
import pytest

from minipd.dist.api import reshard, shard_tensor
from minipd.dist.completion import complete
from minipd.dist.dialect import DistTensorType
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.partition import partition
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.static.passes import STAGES, apply_mix2dist_pass, stages
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.parser import parse
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.nn import functional as F
from minipd.passes.manager import PassManager
from minipd.static import InputSpec
from minipd.static.nn import cond, while_loop

R, P = Replicate(), Partial()
S0, S1 = Shard(0), Shard(1)
MESH = parse_mesh("dp=2,tp=2")
FIRST, SECOND = ProcessMesh([0, 1], ["x"]), ProcessMesh([2, 3], ["x"])


def traced(function, *shapes, gradients=False):
    """The program of f64 inputs x0, x1, ...; with the gradients of its sum as outputs, if they are asked for."""
    found = trace(function, *(InputSpec(s, "float64", f"x{i}", stop_gradient=False) for i, s in enumerate(shapes)))
    if gradients:
        gs = append_backward(found.program, found.output_values, found.input_values, pin=True)
        for i, g in enumerate(gs):
            Builder(found.program.global_block()).output(f"g{i}", g)
    return found.program


def mlp(x, w, b, v):
    x, w = shard_tensor(x, MESH, [S0, R]), shard_tensor(w, MESH, [R, S1])
    b, v = shard_tensor(b, MESH, [R, S0]), shard_tensor(v, MESH, [R, S0])
    return F.softmax(F.relu(x.matmul(w) + b).matmul(v), axis=-1).sum()


def two_meshes(x, w, v):
    x, w, v = shard_tensor(x, FIRST, [S0]), shard_tensor(w, FIRST, [R]), shard_tensor(v, SECOND, [S1])
    h = reshard(x.matmul(w).tanh(), SECOND, [R])
    return h.matmul(v).exp().sum()


def mean_of_parts(x):
    x = shard_tensor(x, MESH, [S0, S1])
    total = x.sum(axis=0)
    return (total * total).sum() + total.exp().sum()


def branching(x, y):
    x, y = shard_tensor(x, MESH, [S0, R]), shard_tensor(y, MESH, [S0, S1])
    return cond(x.mean() > y.mean(), lambda: (x.tanh() * y).exp().sum(), lambda: (x * x).sum())


def looping(x, y):
    x, y = shard_tensor(x, MESH, [S0, R]), shard_tensor(y, MESH, [S0, S1])
    return while_loop(lambda i, h: i < 3, lambda i, h: [i + 1, (h * y).tanh() + x.sum(axis=0)], [0, x])[1].sum()


CASES = {"mlp": (mlp, (6, 4), (4, 8), (8,), (8, 4)), "two meshes": (two_meshes, (4, 6), (6, 8), (8, 2)),
         "parts": (mean_of_parts, (6, 4)), "uneven": (mean_of_parts, (5, 3)), "empty": (mean_of_parts, (1, 1)),
         "branch": (branching, (6, 4), (6, 4)), "loop": (looping, (6, 4), (6, 4))}


@pytest.mark.filterwarnings("ignore:pd_op.if", "ignore:pd_op.while")
@pytest.mark.parametrize("gradients", [False, True], ids=["forward", "training"])
@pytest.mark.parametrize("name", CASES)
def test_the_stages_end_where_partition_does(name, gradients):
    """For the first and the last rank: each stage verifies, prints and is read back, finds nothing to do a second time,
    and the last one is the program that partition makes at once."""
    function, *shapes = CASES[name]
    program = traced(function, *shapes, gradients=gradients)
    whole = complete(program.clone(), None if name == "two meshes" else MESH, lambda op: None)
    for rank in (0, 3):
        found = stages(program, rank)
        assert tuple(found) == STAGES
        for stage, after in found.items():
            verify(after)
            assert parse(after.to_string("exact")) == after, stage
            manager = PassManager()
            manager.add_pass(stage, {"rank": rank} if stage in STAGES[3:] else {})
            again = after.clone()
            manager.run(again)
            assert again == after, stage
        at_once = partition(whole, None if name == "two meshes" else MESH, rank)
        assert spelled(found["dist2dense_pass"]) == spelled(at_once)


def spelled(program):
    """What a program does, without the lines that it is from."""
    for op in program.walk():
        op.attributes.pop("op_callstack", None)
    return program.to_string("exact")


def test_marks_become_types():
    program = traced(mlp, (6, 4), (4, 8), (8,), (8, 4))
    assert [op.name() for op in program.walk()].count("dist_op.shard_tensor") == 4
    assert apply_mix2dist_pass(program) == 4
    kinds = [op.result(0).type() for op in program.walk() if op.name() == "pd_op.data"]
    assert [k.placements for k in kinds] == [(S0, R), (R, S1), (R, S0), (R, S0)]
    assert str(kinds[0]) == 'pd_dist.tensor<6x4xf64, mesh([2, 2], [0, 1, 2, 3], "dp", "tp"), S(0), R>'


def test_a_mark_on_what_is_computed_is_a_reshard():
    program = traced(lambda x: shard_tensor(shard_tensor(x, MESH, [S0, R]) * 2.0, MESH, [R, S1]), (6, 4))
    found = stages(program, 0)
    names = [op.name() for op in found["partition_pass"].walk()]
    assert names.count("dist_op.reshard") == 1
    out = found["completion_pass"].get_output_value_by_name("output_0").type()
    assert out == DistTensorType((6, 4), np.dtype("f8"), MESH, (R, S1))


def test_what_is_marked_twice_is_resharded():
    def twice(x):
        return shard_tensor(x, MESH, [S0, R]) + shard_tensor(x, MESH, [R, S1])
    program = traced(twice, (6, 4))
    assert apply_mix2dist_pass(program) == 2
    assert [op.name() for op in program.walk()] == ["pd_op.data", "dist_op.reshard", "pd_op.add",
                                                    "builtin.shadow_output"]


def test_a_mark_that_does_not_fit():
    program = traced(lambda x: x * 1.0, (6, 4))
    op = next(op for op in program.walk() if op.name() == "pd_op.data")
    value, = Builder(op.parent, op.next).call(ROWS["shard_tensor"], [op.result(0)],
                                              {"mesh": MESH, "placements": (Shard(5), R)})
    with pytest.raises(ValueError, match=r"(?s)its marks.*: expected Shard\(dim=5\) to name one of its dimensions"):
        apply_mix2dist_pass(program)


def test_ranks_without_a_mesh_have_nothing_of_it():
    found = {rank: stages(traced(two_meshes, (4, 6), (6, 8), (8, 2)), rank)["dist2dense_pass"] for rank in (0, 3)}
    names = [op.name() for op in found[0].walk()]
    assert names[:4] == ["pd_op.data", "pd_op.data", "pd_op.matmul", "pd_op.tanh"]
    assert "pd_op.p2p_send" in names and "pd_op.p2p_recv" not in names and "builtin.shadow_output" not in names
    names = [op.name() for op in found[3].walk()]
    assert "pd_op.p2p_recv" in names and "pd_op.p2p_send" not in names and "pd_op.tanh" not in names
    assert names.count("pd_op.data") == 1 and "builtin.shadow_output" in names


def test_a_program_without_marks_stays_as_it_is():
    program = traced(lambda x: x.exp().sum(), (6, 4))
    before = program.to_string("exact")
    for stage in stages(program, 0).values():
        assert stage.to_string("exact") == before


def test_branches_across_meshes_are_refused():
    def across(x, y):
        x, y = shard_tensor(x, FIRST, [R]), shard_tensor(y, SECOND, [R])
        return cond(x.sum() > 0.0, lambda: y * 2.0, lambda: y)
    with pytest.raises(NotImplementedError, match="expected control flow whose condition and values are on one mesh, "
                                                  r"got x=2 of the ranks \[0, 1\] and x=2 of the ranks \[2, 3\]"):
        stages(traced(across, (4, 2), (4, 2)), 0)


def test_a_branch_on_one_of_two_meshes():
    """The other ranks have nothing of it; what it yields crosses."""
    def on_first(x, v):
        x, v = shard_tensor(x, FIRST, [S0]), shard_tensor(v, SECOND, [S1])
        h = cond(x.sum() > 0.0, lambda: x * 2.0, lambda: x.exp())
        return reshard(h, SECOND, [R]).matmul(v).sum()
    program = traced(on_first, (4, 2), (2, 6), gradients=True)
    for rank in range(4):
        names = [op.name() for op in stages(program, rank)["dist2dense_pass"].walk()]
        assert ("pd_op.if" in names) == (rank < 2)


def test_the_passes_are_in_the_table_and_print(tmp_path):
    program = traced(mlp, (6, 4), (4, 8), (8,), (8, 4))
    manager = PassManager(0, debug=True)
    for name in STAGES:
        manager.add_pass(name)
    manager.enable_ir_printing(tmp_path)
    manager.run(program)
    assert "all_reduce" in str(program) and "pd_dist" not in str(program)
    texts = [p.read_text() for p in tmp_path.rglob("*") if p.is_file()]
    assert any("pd_dist.tensor" in t for t in texts)




def test_inputs_are_placed_by_what_is_marked_behind_them():
    """A mark on the result alone: its rows come from x, its columns from w, and nothing is communicated."""
    program = traced(lambda x, w: shard_tensor(x.matmul(w), MESH, [S0, S1]), (6, 4), (4, 8))
    found = stages(program, 0)
    kinds = [op.result(0).type().placements for op in found["completion_pass"].walk() if op.name() == "pd_op.data"]
    assert kinds == [(S0, R), (R, S1)]
    assert [op.name() for op in found["dist2dense_pass"].walk()] == [
        "pd_op.data", "pd_op.data", "pd_op.matmul", "builtin.shadow_output"]


def test_a_reshard_places_nothing_before_it():
    """As eagerly: what every rank has stays so."""
    program = traced(lambda x: reshard(x * 2.0, MESH, [S0, R]), (6, 4))
    found = stages(program, 0)["completion_pass"]
    assert [op.result(0).type().placements for op in found.walk() if op.name() == "pd_op.data"] == [(R, R)]


def test_static_mode_and_the_names_of_paddle():
    """A program that static mode has written, through the functions of Paddle's modules."""
    import minipd as paddle
    from minipd.distributed.auto_parallel.static.mix_to_dist_pass import apply_mix2dist_pass
    from minipd.distributed.auto_parallel.static.pir_pass import (
        RemovePasses,
        ReshardPasses,
        apply_completion_pass,
        apply_dist2dense_pass,
        apply_partition_pass,
    )
    main = paddle.static.Program()
    with paddle.static.program_guard(main, paddle.static.Program()):
        x = shard_tensor(paddle.static.data("x", [6, 4]), MESH, [S0, R])
        layer = paddle.nn.Linear(4, 8)
        weight = shard_tensor(layer.weight, MESH, [R, S1])
        assert weight is layer.weight and weight.is_dist() and x.placements == [S0, R] and x.process_mesh == MESH
        total = layer(x).sum()
    program = main.executable([total.payload])
    assert apply_mix2dist_pass(program) == 1 and apply_completion_pass(program) > 0
    assert "dims_mappings:[-1,1], placements:[Replicate(), Shard(dim=1)]" in str(program)
    apply_partition_pass(program)
    ReshardPasses.apply_reshard_pass(program)
    RemovePasses.apply_all(program)
    assert apply_dist2dense_pass(program)
    shapes = [op.result(0).shape for op in program.walk() if op.name() in ("pd_op.data", "builtin.parameter")]
    assert (3, 4) in shapes and (4, 4) in shapes
